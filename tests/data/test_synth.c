/* Generated pictures are the same for the same numbers, different otherwise, named after rows of
 * the nutrition table, and written whole or not at all. */
#include "support/check.h"

#include "data/synth.h"
#include "os/file.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 32, BYTES = SIZE * SIZE * 3 };

static const char *in_temp(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", tg_test_temp_dir(), name);
    return path;
}

static uint64_t fnv(const void *bytes, size_t length)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        h = (h ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    return h;
}

static uint64_t picture(uint64_t seed, int class_index, uint32_t number, tg_synth_split split)
{
    static uint8_t rgb[BYTES];
    memset(rgb, 0xEE, sizeof rgb);
    assert_ok(tg_synth_draw(seed, class_index, number, split, SIZE, rgb, NULL));
    return fnv(rgb, sizeof rgb);
}

static void every_input_matters(void **state)
{
    (void)state;
    uint64_t first = picture(1, 3, 7, TG_SYNTH_TRAIN);
    assert_true(first == picture(1, 3, 7, TG_SYNTH_TRAIN));
    assert_true(first != picture(2, 3, 7, TG_SYNTH_TRAIN));
    assert_true(first != picture(1, 4, 7, TG_SYNTH_TRAIN));
    assert_true(first != picture(1, 3, 8, TG_SYNTH_TRAIN));
    assert_true(first != picture(1, 3, 7, TG_SYNTH_VAL));
}

/* All classes' pixels, pinned: another compiler or machine must give the same. The number changes
 * only when the drawing is changed on purpose; the failure prints the new one. */
static void pixels_are_pinned(void **state)
{
    (void)state;
    uint64_t all = 0;
    for (int k = 0; k < TG_SYNTH_CLASSES; k++)
        all = all * 31 + picture(0, k, 0, TG_SYNTH_TRAIN);
    if (all != UINT64_C(0x7de19e4954dac463))
        print_error("pixels now hash to 0x%016llx\n", (unsigned long long)all);
    assert_true(all == UINT64_C(0x7de19e4954dac463));
}

/* A picture is neither black nor white nor flat, at the smallest and an odd size, for each class.
 */
static void pictures_show_something(void **state)
{
    (void)state;
    static uint8_t rgb[97 * 97 * 3];
    const int sizes[] = {TG_SYNTH_SIZE_MIN_PX, 97};
    for (int k = 0; k < TG_SYNTH_CLASSES; k++) {
        for (int s = 0; s < 2; s++) {
            int quality = 0;
            size_t n = (size_t)(sizes[s] * sizes[s]) * 3;
            assert_ok(tg_synth_draw(5, k, 1, TG_SYNTH_TRAIN, sizes[s], rgb, &quality));
            double sum = 0, square = 0;
            for (size_t i = 0; i < n; i++) {
                sum += rgb[i];
                square += rgb[i] * rgb[i];
            }
            double mean = sum / (double)n, variance = square / (double)n - mean * mean;
            assert_true(mean > 10 && mean < 245);
            assert_true(variance > 100);
            assert_in_range(quality, 60, 95);
        }
    }
}

static void draw_refuses_bad_numbers(void **state)
{
    (void)state;
    uint8_t rgb[BYTES];
    assert_error(tg_synth_draw(0, -1, 0, TG_SYNTH_TRAIN, SIZE, rgb, NULL), TG_ERROR_USAGE,
                 "class -1");
    assert_error(tg_synth_draw(0, TG_SYNTH_CLASSES, 0, TG_SYNTH_TRAIN, SIZE, rgb, NULL),
                 TG_ERROR_USAGE, "class");
    assert_error(tg_synth_draw(0, 0, 0, TG_SYNTH_TRAIN, TG_SYNTH_SIZE_MAX_PX + 1, rgb, NULL),
                 TG_ERROR_USAGE, "px");
}

static void classes_are_in_the_nutrition_table(void **state)
{
    (void)state;
    char path[4200], *table;
    size_t length;
    snprintf(path, sizeof path, "%s/data/nutrition.csv", tg_test_source_dir());
    assert_ok(tg_file_read(path, 1 << 20, &table, &length));
    for (int k = 0; k < TG_SYNTH_CLASSES; k++) {
        char row[64];
        snprintf(row, sizeof row, "\n%s,", tg_synth_class_name(k));
        if (!strstr(table, row))
            fail_msg("%s has no row in %s", tg_synth_class_name(k), path);
        for (int other = 0; other < k; other++)
            assert_string_not_equal(tg_synth_class_name(k), tg_synth_class_name(other));
    }
    free(table);
    assert_null(tg_synth_class_name(-1));
    assert_null(tg_synth_class_name(TG_SYNTH_CLASSES));
}

static tg_synth_options small(const char *output)
{
    tg_synth_options o = tg_synth_options_default();
    o.output = output;
    o.class_count = 2;
    o.per_class = 4;
    o.val_share = 0.3;
    o.size_px = SIZE;
    return o;
}

static int entries(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return -1;
    for (struct dirent *entry; (entry = readdir(dir));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static int entries_of(const char *output, const char *part)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", output, part);
    return entries(path);
}

static void options_are_checked(void **state)
{
    (void)state;
    tg_synth_options o = small(NULL);
    assert_error(tg_synth_write(&o, NULL, NULL), TG_ERROR_USAGE, "output");
    o = small(in_temp("refused"));
    o.class_count = 1;
    assert_error(tg_synth_write(&o, NULL, NULL), TG_ERROR_USAGE, "classes 1");
    o.class_count = TG_SYNTH_CLASSES + 1;
    assert_error(tg_synth_write(&o, NULL, NULL), TG_ERROR_USAGE, "2..20");
    o = small(o.output);
    o.per_class = 0;
    assert_error(tg_synth_write(&o, NULL, NULL), TG_ERROR_USAGE, "per class");
    o = small(o.output);
    o.val_share = NAN;
    assert_error(tg_synth_write(&o, NULL, NULL), TG_ERROR_USAGE, "share");
    o = small(o.output);
    o.size_px = TG_SYNTH_SIZE_MIN_PX - 1;
    assert_error(tg_synth_write(&o, NULL, NULL), TG_ERROR_USAGE, "size 15");
    o = small(o.output);
    o.threads = 0;
    assert_error(tg_synth_write(&o, NULL, NULL), TG_ERROR_USAGE, "threads");
    assert_int_equal(entries(o.output), -1);
}

static void val_count_rounds_up(void **state)
{
    (void)state;
    tg_synth_options o = tg_synth_options_default();
    assert_int_equal(tg_synth_val_count(&o), 40);
    o.per_class = 4;
    o.val_share = 0.3;
    assert_int_equal(tg_synth_val_count(&o), 2);
    o.val_share = 0;
    assert_int_equal(tg_synth_val_count(&o), 0);
}

static tg_status count_calls(void *context, size_t done, size_t total)
{
    size_t *seen = context;
    assert_true(done > seen[0] && done <= total);
    seen[0] = done;
    seen[1] = total;
    return TG_OK;
}

static uint64_t file_hash(const char *output, const char *name)
{
    char path[4400], *bytes;
    size_t length;
    snprintf(path, sizeof path, "%s/%s", output, name);
    assert_ok(tg_file_read(path, 1 << 20, &bytes, &length));
    uint64_t h = fnv(bytes, length);
    free(bytes);
    return h;
}

/* The layout, the same bytes from three threads as from one, and no second run over the first. */
static void data_set_is_written(void **state)
{
    (void)state;
    static const char *const names[] = {"train/pizza/00000.jpg", "train/doughnut/00003.jpg",
                                        "val/pizza/00001.jpg"};
    char one[4200], three[4200];
    snprintf(one, sizeof one, "%s", in_temp("deep/one"));
    snprintf(three, sizeof three, "%s", in_temp("three"));
    size_t seen[2] = {0, 0};
    tg_synth_options o = small(one);
    assert_ok(tg_synth_write(&o, count_calls, seen));
    assert_int_equal(seen[0], 12);
    assert_int_equal(seen[1], 12);
    assert_int_equal(entries(one), 2);
    assert_int_equal(entries_of(one, "train"), 2);
    assert_int_equal(entries_of(one, "train/doughnut"), 4);
    assert_int_equal(entries_of(one, "val/pizza"), 2);
    assert_error(tg_synth_write(&o, NULL, NULL), TG_ERROR_USAGE, "exists already");
    assert_int_equal(entries_of(one, "train/doughnut"), 4);
    o = small(three);
    o.threads = 3;
    assert_ok(tg_synth_write(&o, NULL, NULL));
    for (int i = 0; i < 3; i++)
        assert_true(file_hash(one, names[i]) == file_hash(three, names[i]));
}

static tg_status stop_early(void *context, size_t done, size_t total)
{
    (void)context;
    (void)total;
    return done >= 3 ? tg_fail(TG_ERROR_STOPPED, "asked to stop") : TG_OK;
}

static void stop_leaves_nothing(void **state)
{
    (void)state;
    tg_synth_options o = small(in_temp("stopped"));
    o.per_class = 60;
    assert_error(tg_synth_write(&o, stop_early, NULL), TG_ERROR_STOPPED, "asked to stop");
    assert_int_equal(entries(o.output), 0);
    o.per_class = 2;
    o.val_share = 0;
    assert_ok(tg_synth_write(&o, NULL, NULL));
    assert_int_equal(entries(o.output), 1);
}

/* A file in the way stands for every folder that cannot be made: it also stops root. */
static void unwritable_folder_is_named(void **state)
{
    (void)state;
    char file[4200], below[4300];
    snprintf(file, sizeof file, "%s", in_temp("a_file"));
    assert_ok(tg_file_write(file, "x", 1));
    snprintf(below, sizeof below, "%s/pictures", file);
    tg_synth_options o = small(below);
    tg_status status = tg_synth_write(&o, NULL, NULL);
    assert_error(status, TG_ERROR_USAGE, "a_file");
}

/* Files limited to 100 bytes fail as on a full disk; the data set's folder is left empty. */
static void full_disk_is_an_error(void **state)
{
    (void)state;
    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = before;
    tight.rlim_cur = 100;
    tg_synth_options o = small(in_temp("full"));
    o.threads = 2;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    tg_status status = tg_synth_write(&o, NULL, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_error(status, TG_ERROR_MACHINE, ".jpg");
    assert_int_equal(entries(o.output), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_input_matters),
        cmocka_unit_test(pixels_are_pinned),
        cmocka_unit_test(pictures_show_something),
        cmocka_unit_test(draw_refuses_bad_numbers),
        cmocka_unit_test(classes_are_in_the_nutrition_table),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(val_count_rounds_up),
        cmocka_unit_test(data_set_is_written),
        cmocka_unit_test(stop_leaves_nothing),
        cmocka_unit_test(unwritable_folder_is_named),
        cmocka_unit_test(full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
