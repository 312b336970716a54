/* What data check and data stats find in a small made-up set, and with any number of threads. */
#include "support/check.h"

#include "data/check.h"
#include "data/stats.h"
#include "image/write_jpeg.h"
#include "os/file.h"
#include "os/folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tg_dataset train, val;

static void write_photo(const char *path, int side, int pattern, int quality)
{
    tg_image image = {0};
    uint8_t *bytes;
    size_t size;
    assert_ok(tg_image_reserve(&image, side, side));
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            for (int c = 0; c < 3; c++)
                image.rgb[(y * side + x) * 3 + c] =
                    (uint8_t)(127 + 100 * sin((x * (1 + pattern % 4) + y * (pattern % 3) + c * 9 +
                                               pattern * 5) *
                                              6.0 / side));
    assert_ok(tg_image_write_jpeg(&image, quality, TG_JPEG_444, &bytes, &size));
    assert_ok(tg_file_write(path, bytes, size));
    tg_image_done(&image);
    free(bytes);
}

static int make_sets(void **state)
{
    (void)state;
    char path[4096];
    const char *root = tg_test_temp_dir();
    static const char *const folders[] = {"train/a", "train/b", "train/few", "val/a", "val/b"};
    for (int f = 0; f < 5; f++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[f]);
        assert_ok(tg_folder_make(path));
    }
    for (int i = 0; i < 12; i++) {
        snprintf(path, sizeof path, "%s/train/%c/%02d.jpg", root, i < 11 ? 'a' : 'b', i);
        write_photo(path, 64, i, 95);
    }
    snprintf(path, sizeof path, "%s/train/few/x.jpg", root);
    write_photo(path, 16, 20, 95); /* tiny */
    snprintf(path, sizeof path, "%s/val/a/leak.jpg", root);
    write_photo(path, 64, 3, 95); /* the bytes of train/a/03 */
    snprintf(path, sizeof path, "%s/val/b/near.jpg", root);
    write_photo(path, 64, 4, 70); /* train/a/04 encoded anew, under another label */
    snprintf(path, sizeof path, "%s/val/b/broken.jpg", root);
    assert_ok(tg_file_write(path, "<html>", 6));
    tg_dataset_options options = {.root = root, .split = "train"};
    assert_ok(tg_dataset_open(&options, &train));
    options.split = "val";
    options.class_names = (const char *const *)train.class_names;
    options.class_count = train.class_count;
    assert_ok(tg_dataset_open(&options, &val));
    return 0;
}

static int remove_sets(void **state)
{
    (void)state;
    tg_dataset_done(&train);
    tg_dataset_done(&val);
    return 0;
}

static const tg_check_finding *find(const tg_check_result *result, tg_check_kind kind,
                                    const char *name)
{
    for (size_t i = 0; i < result->count; i++)
        if (result->findings[i].kind == kind && strstr(result->findings[i].path, name))
            return &result->findings[i];
    return NULL;
}

static void finds_what_is_wrong(void **state)
{
    (void)state;
    const tg_check_split splits[2] = {{"train", &train}, {"val", &val}};
    for (int workers = 1; workers < 6; workers += 2) {
        tg_check_options options = tg_check_options_default();
        tg_check_result result;
        options.splits = splits;
        options.split_count = 2;
        options.workers = workers;
        assert_ok(tg_data_check(&options, &result));
        assert_int_equal(result.photos, 16);
        const tg_check_finding *leak = find(&result, TG_CHECK_DUPLICATE, "leak.jpg");
        assert_non_null(leak);
        assert_true(leak->leak && !leak->conflict && strstr(leak->other, "a/03.jpg"));
        assert_string_equal(leak->split, "val");
        const tg_check_finding *near = find(&result, TG_CHECK_NEAR_DUPLICATE, "near.jpg");
        assert_non_null(near);
        assert_true(near->leak && near->conflict && strstr(near->other, "a/04.jpg"));
        const tg_check_finding *broken = find(&result, TG_CHECK_BROKEN, "broken.jpg");
        assert_non_null(broken);
        assert_true(broken->detail && strlen(broken->detail) > 5);
        assert_non_null(find(&result, TG_CHECK_TINY, "few/x.jpg"));
        assert_non_null(find(&result, TG_CHECK_SMALL_CLASS, "few"));
        assert_non_null(find(&result, TG_CHECK_SMALL_CLASS, "b"));
        assert_int_equal(result.counts[TG_CHECK_BROKEN], 1);
        assert_int_equal(result.counts[TG_CHECK_DUPLICATE], 1);
        assert_int_equal(result.counts[TG_CHECK_TINY], 1);
        assert_int_equal(result.counts[TG_CHECK_HUGE], 0);
        assert_int_equal(result.leaks, 2);
        tg_check_result_done(&result);
        options.near_bits = -1;
        assert_ok(tg_data_check(&options, &result));
        assert_int_equal(result.counts[TG_CHECK_NEAR_DUPLICATE], 0);
        tg_check_result_done(&result);
        options.split_count = 0;
        assert_error(tg_data_check(&options, &result), TG_ERROR_USAGE, "nothing");
    }
    assert_string_equal(tg_check_kind_name(TG_CHECK_NEAR_DUPLICATE), "near_duplicate");
}

static void counts_and_sizes(void **state)
{
    (void)state;
    tg_data_stats stats, again;
    assert_ok(tg_data_stats_collect(&train, 1, &stats));
    assert_ok(tg_data_stats_collect(&train, 4, &again));
    assert_int_equal(stats.photos, 13);
    assert_int_equal(stats.bad, 0);
    assert_int_equal(stats.class_counts[0], 11);
    assert_int_equal(stats.class_counts[2], 1);
    assert_int_equal(stats.formats[TG_IMAGE_JPEG], 13);
    assert_int_equal(stats.orientations[1], 13);
    assert_int_equal(stats.width_px.min, 16);
    assert_int_equal(stats.width_px.median, 64);
    assert_int_equal(stats.width_px.max, 64);
    for (int c = 0; c < 3; c++) {
        /* a sine of amplitude 100 around 127, not over whole periods */
        assert_true(stats.mean[c] > 0.4 && stats.mean[c] < 0.6);
        assert_true(stats.std[c] > 0.2 && stats.std[c] < 0.35);
        assert_true(stats.mean[c] == again.mean[c] && stats.std[c] == again.std[c]);
    }
    tg_data_stats_done(&again);
    tg_data_stats_done(&stats);
    assert_ok(tg_data_stats_collect(&val, 2, &stats));
    assert_int_equal(stats.bad, 1);
    tg_data_stats_done(&stats);
    tg_data_stats_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_is_wrong),
        cmocka_unit_test(counts_and_sizes),
    };
    return cmocka_run_group_tests(tests, make_sets, remove_sets);
}
