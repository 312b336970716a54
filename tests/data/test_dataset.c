/* Folders become samples: order, names, links, classes, shares; and what is refused. */
#include "support/check.h"

#include "base/log.h"
#include "data/dataset.h"
#include "data/quote.h"
#include "os/folder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char log_lines[16384];

static void keep_log(void *user, tg_log_level level, const char *line)
{
    (void)user;
    (void)level;
    if (strlen(log_lines) + strlen(line) + 2 < sizeof log_lines) {
        strcat(log_lines, line);
        strcat(log_lines, "\n");
    }
}

static bool logged(const char *part)
{
    return strstr(log_lines, part) != NULL;
}

static const char *place(const char *root, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s/%s", tg_test_temp_dir(), root, name);
    return path;
}

static const char *root_of(const char *root)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", tg_test_temp_dir(), root);
    return path;
}

/* Makes a file with its folders; contents do not matter to a listing. */
static void put(const char *root, const char *name)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", place(root, name));
    *strrchr(folder, '/') = 0;
    assert_ok(tg_folder_make(folder));
    FILE *file = fopen(place(root, name), "w");
    assert_non_null(file);
    fputs("x", file);
    fclose(file);
}

static void put_folder(const char *root, const char *name)
{
    assert_ok(tg_folder_make(place(root, name)));
}

static tg_dataset open_split(const char *root, const char *split)
{
    tg_dataset dataset;
    tg_dataset_options options = {.root = root_of(root), .split = split};
    log_lines[0] = 0;
    assert_ok(tg_dataset_open(&options, &dataset));
    return dataset;
}

/* The path below the root of a test. */
static const char *tail(const tg_dataset *dataset, size_t i, const char *root)
{
    return dataset->samples[i].path + strlen(root_of(root)) + 1;
}

static void litter_and_extensions(void **state)
{
    (void)state;
    put("litter", ".DS_Store");
    put("litter", "b/.DS_Store");
    put("litter", "b/._a.jpg");
    put("litter", ".hidden/x.jpg");
    put("litter", "a/a.JPG");
    put("litter", "a/b.Jpeg");
    put("litter", "a/c.PNG");
    put("litter", "a/d.WEBP");
    put("litter", "a/e.gif");
    put("litter", "a/f.GIF");
    put("litter", "a/noext");
    put("litter", "b/deep/er/z.heic");
    put("litter", "stray.jpg");
    tg_dataset dataset = open_split("litter", NULL);
    assert_int_equal(dataset.class_count, 2);
    assert_int_equal(dataset.count, 5);
    assert_string_equal(tail(&dataset, 0, "litter"), "a/a.JPG");
    assert_string_equal(tail(&dataset, 4, "litter"), "b/deep/er/z.heic");
    assert_int_equal(dataset.samples[4].label, 1);
    assert_int_equal(dataset.passed_over.hidden, 4);
    assert_int_equal(dataset.passed_over.extension, 3);
    assert_int_equal(dataset.passed_over.stray, 1);
    assert_true(logged("2 .gif"));
    assert_true(logged("1 without extension"));
    assert_true(logged("4 beginning with a dot"));
    tg_dataset_done(&dataset);
}

static void number_names(void **state)
{
    (void)state;
    char name[64];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "%d/x.jpg", i);
        put("numbers", name);
    }
    tg_dataset dataset = open_split("numbers", NULL);
    const char *want[12] = {"0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9"};
    for (int i = 0; i < 12; i++)
        assert_string_equal(dataset.class_names[i], want[i]);
    assert_true(logged("numbers in the order of text"));
    tg_dataset_done(&dataset);
    put("few", "1/x.jpg");
    put("few", "2/x.jpg");
    dataset = open_split("few", NULL);
    assert_false(logged("numbers in the order of text"));
    tg_dataset_done(&dataset);
}

/* A split with an empty class keeps the indices of the ruling list. */
static void one_class_list_rules(void **state)
{
    (void)state;
    put("rule", "train/A/1.jpg");
    put("rule", "train/B/1.jpg");
    put("rule", "train/C/1.jpg");
    put("rule", "val/C/1.jpg");
    put("rule", "val/A/1.jpg");
    put_folder("rule", "val/B");
    tg_dataset train = open_split("rule", "train"), val;
    tg_dataset_options options = {.root = root_of("rule"),
                                  .split = "val",
                                  .class_names = (const char *const *)train.class_names,
                                  .class_count = train.class_count};
    log_lines[0] = 0;
    assert_ok(tg_dataset_open(&options, &val));
    assert_int_equal(val.count, 2);
    assert_int_equal(val.samples[1].label, 2);
    assert_true(logged("'B'"));
    tg_dataset_done(&val);
    put("rule", "val/D/1.jpg");
    options.root = root_of("rule");
    assert_error(tg_dataset_open(&options, &val), TG_ERROR_INPUT, "val/D");
    tg_dataset_done(&train);
}

static void joined_splits(void **state)
{
    (void)state;
    put("join", "train/b/1.jpg");
    put("join", "more/a/1.jpg");
    put("join", "more/b/0.jpg");
    tg_dataset dataset = open_split("join", "train+more");
    assert_int_equal(dataset.class_count, 2);
    assert_string_equal(tail(&dataset, 0, "join"), "train/b/1.jpg");
    assert_int_equal(dataset.samples[0].label, 1);
    assert_string_equal(tail(&dataset, 1, "join"), "more/a/1.jpg");
    assert_string_equal(tail(&dataset, 2, "join"), "more/b/0.jpg");
    tg_dataset_done(&dataset);
    tg_dataset_options options = {.root = root_of("join"), .split = "train+train"};
    assert_error(tg_dataset_open(&options, &dataset), TG_ERROR_USAGE, "twice");
    options.split = "train+";
    assert_error(tg_dataset_open(&options, &dataset), TG_ERROR_USAGE, "empty name");
    options.split = "absent";
    assert_error(tg_dataset_open(&options, &dataset), TG_ERROR_INPUT, "absent");
}

/* Links are followed, loops end, and a link never takes another class's photos. */
static void links(void **state)
{
    (void)state;
    put("links", "a/1.jpg");
    put("links", "b/1.jpg");
    put("links", "b/sub/2.jpg");
    put("elsewhere", "c/3.jpg");
    assert_int_equal(symlink("..", place("links", "a/loop")), 0);
    assert_int_equal(symlink("../b", place("links", "a/other")), 0);
    assert_int_equal(symlink("../b/sub", place("links", "a/deep")), 0);
    assert_int_equal(symlink("nowhere.jpg", place("links", "a/gone.jpg")), 0);
    assert_int_equal(symlink("1.jpg", place("links", "a/again.jpg")), 0);
    assert_int_equal(symlink("../elsewhere/c", place("links", "c")), 0);
    assert_int_equal(symlink("b", place("links", "aa")), 0);
    tg_dataset dataset = open_split("links", NULL);
    assert_int_equal(dataset.class_count, 4);
    assert_int_equal(dataset.count, 5);
    assert_string_equal(tail(&dataset, 0, "links"), "a/1.jpg");
    assert_string_equal(tail(&dataset, 1, "links"), "a/again.jpg");
    assert_int_equal(dataset.samples[2].label, 2);
    assert_string_equal(tail(&dataset, 3, "links"), "b/sub/2.jpg");
    assert_string_equal(tail(&dataset, 4, "links"), "c/3.jpg");
    assert_int_equal(dataset.passed_over.broken_links, 1);
    assert_true(logged("1 broken links"));
    assert_true(logged("under another name"));
    tg_dataset_done(&dataset);
}

static void any_bytes_in_names(void **state)
{
    (void)state;
    char quoted[TG_QUOTE_BYTES];
    put("bytes", "crème brûlée/饺子 01.jpg");
    put("bytes", "q\"uo,te\nx/\xff\x01.jpg");
    tg_dataset dataset = open_split("bytes", NULL);
    assert_int_equal(dataset.count, 2);
    assert_string_equal(dataset.class_names[0], "crème brûlée");
    assert_string_equal(dataset.class_names[1], "q\"uo,te\nx");
    assert_string_equal(tg_quote("a\nb\\", quoted), "'a\\x0ab\\x5c'");
    char longest[3000];
    memset(longest, 'a', sizeof longest);
    memcpy(longest + sizeof longest - 5, "z.jpg", 5);
    longest[sizeof longest - 1] = 0;
    tg_quote(longest, quoted);
    assert_true(strlen(quoted) < TG_QUOTE_BYTES && strstr(quoted, "z.jp'"));
    tg_dataset_done(&dataset);
}

/* A model's config.json holds UTF-8: another class name would not come back as it was. */
static void class_names_are_utf8(void **state)
{
    (void)state;
    tg_dataset dataset;
    put("latin", "cr\xe8me/01.jpg");
    put("latin", "tea/01.jpg");
    tg_dataset_options options = {.root = root_of("latin")};
    assert_error(tg_dataset_open(&options, &dataset), TG_ERROR_INPUT, "UTF-8");
}

/* The same tree made in opposite order gives the same list. */
static void order_of_creation(void **state)
{
    (void)state;
    char name[64];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "c%d/p%d.jpg", i % 3, i);
        put("forward", name);
    }
    for (int i = 39; i >= 0; i--) {
        snprintf(name, sizeof name, "c%d/p%d.jpg", i % 3, i);
        put("reverse", name);
    }
    tg_dataset a = open_split("forward", NULL), b = open_split("reverse", NULL);
    assert_int_equal(a.count, b.count);
    for (size_t i = 0; i < a.count; i++)
        assert_string_equal(tail(&a, i, "forward"), tail(&b, i, "reverse"));
    tg_dataset_done(&a);
    tg_dataset_done(&b);
}

/* Every photo is in exactly one part; the share holds in each class. */
static void validation_share(void **state)
{
    (void)state;
    char name[64];
    tg_dataset part[2], other;
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "c%d/p%d.jpg", i % 3, i);
        put("share", name);
    }
    put("share", "single/p.jpg");
    tg_dataset_options options = {.root = root_of("share"), .val_share = 0.25, .seed = 3};
    for (int p = 0; p < 2; p++) {
        options.part = p;
        assert_ok(tg_dataset_open(&options, &part[p]));
        assert_int_equal(part[p].class_count, 4);
    }
    assert_int_equal(part[0].count, 46);
    assert_int_equal(part[1].count, 15);
    size_t per_class[4] = {0};
    for (size_t i = 0; i < part[1].count; i++) {
        per_class[part[1].samples[i].label]++;
        for (size_t k = 0; k < part[0].count; k++)
            assert_string_not_equal(part[1].samples[i].path, part[0].samples[k].path);
    }
    for (int c = 0; c < 3; c++)
        assert_int_equal(per_class[c], 5);
    size_t same = 0;
    options.seed = 4;
    assert_ok(tg_dataset_open(&options, &other));
    for (size_t i = 0; i < other.count; i++)
        for (size_t k = 0; k < part[1].count; k++)
            same += strcmp(other.samples[i].path, part[1].samples[k].path) == 0;
    assert_true(same < part[1].count);
    options.val_share = 1;
    assert_error(tg_dataset_open(&options, &part[0]), TG_ERROR_USAGE, "share");
    tg_dataset_done(&other);
    options.val_share = 0.25;
    tg_dataset_done(&part[0]);
    tg_dataset_done(&part[1]);
}

static void unlabelled_and_empty(void **state)
{
    (void)state;
    tg_dataset dataset;
    put("flat", "1.jpg");
    put("flat", "sub/2.jpg");
    tg_dataset_options options = {.root = root_of("flat"), .unlabelled = 1};
    assert_ok(tg_dataset_open(&options, &dataset));
    assert_int_equal(dataset.count, 2);
    assert_int_equal(dataset.class_count, 0);
    assert_null(dataset.class_names);
    assert_int_equal(dataset.samples[0].label, -1);
    tg_dataset_done(&dataset);
    put("onlyflat", "1.jpg");
    options = (tg_dataset_options){.root = root_of("onlyflat")};
    assert_error(tg_dataset_open(&options, &dataset), TG_ERROR_INPUT, "no class folder");
    put_folder("hollow", "a");
    options.root = root_of("hollow");
    assert_error(tg_dataset_open(&options, &dataset), TG_ERROR_INPUT, "no photo");
    options.root = root_of("missing");
    assert_error(tg_dataset_open(&options, &dataset), TG_ERROR_INPUT, "missing");
    options.root = "";
    assert_error(tg_dataset_open(&options, &dataset), TG_ERROR_USAGE, "no data folder");
    tg_dataset_done(NULL);
}

/* A folder that may not be read is an error with its name, not a thinner data set. */
static void unreadable_folder(void **state)
{
    (void)state;
    tg_dataset dataset;
    put("locked", "a/1.jpg");
    put("locked", "b/1.jpg");
    assert_int_equal(chmod(place("locked", "b"), 0), 0);
    assert_int_equal(chmod(tg_test_temp_dir(), 0755), 0);
    bool root = geteuid() == 0;
    if (root && seteuid(65534) != 0)
        skip();
    tg_dataset_options options = {.root = root_of("locked")};
    tg_status status = tg_dataset_open(&options, &dataset);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(place("locked", "b"), 0755), 0);
    assert_error(status, TG_ERROR_INPUT, "locked/b");
}

int main(void)
{
    tg_log_set(keep_log, NULL, TG_LOG_DEBUG);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(litter_and_extensions),
        cmocka_unit_test(number_names),
        cmocka_unit_test(one_class_list_rules),
        cmocka_unit_test(joined_splits),
        cmocka_unit_test(links),
        cmocka_unit_test(any_bytes_in_names),
        cmocka_unit_test(class_names_are_utf8),
        cmocka_unit_test(order_of_creation),
        cmocka_unit_test(validation_share),
        cmocka_unit_test(unlabelled_and_empty),
        cmocka_unit_test(unreadable_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
