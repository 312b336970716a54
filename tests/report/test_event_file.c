/* TensorBoard's records read back: lengths, checksums, values, steps; a session's start in a file that goes on; none of what
 * is unknown. */
#include "support/check.h"

#include "os/file.h"
#include "os/folder.h"
#include "report/event_file.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t little(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static uint64_t varint(const unsigned char **at)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return value;
    }
}

/* "tag=0.5 " for each value */
static void print_summary(const unsigned char *at, const unsigned char *end, tg_text *out)
{
    while (at < end) {
        assert_int_equal(*at++, 0x0A);
        const size_t bytes = varint(&at);
        const unsigned char *value_end = at + bytes;
        assert_int_equal(*at++, 0x0A);
        const size_t length = varint(&at);
        tg_text_append(out, at, length);
        at += length;
        assert_int_equal(*at++, 0x15);
        const uint32_t bits = (uint32_t)little(at, 4);
        float value;
        memcpy(&value, &bits, sizeof value);
        tg_text_append_format(out, "=%g ", (double)value);
        at += 4;
        assert_ptr_equal(at, value_end);
    }
}

/* "[TIME STEP content]" */
static void print_event(const unsigned char *at, const unsigned char *end, tg_text *out)
{
    assert_int_equal(*at++, 0x09);
    const uint64_t bits = little(at, 8);
    double time;
    memcpy(&time, &bits, sizeof time);
    at += 8;
    assert_int_equal(*at++, 0x10);
    tg_text_append_format(out, "[%.2f ", time);
    tg_text_append_format(out, "%llu ", (unsigned long long)varint(&at));
    const int key = *at++;
    const size_t length = varint(&at);
    assert_ptr_equal(at + length, end);
    if (key == 0x1A)
        tg_text_append(out, at, length);
    else if (key == 0x2A)
        print_summary(at, end, out);
    else if (key == 0x3A)
        tg_text_append_string(out, at[0] == 0x08 && at[1] == 1 ? "start" : "?");
    else
        fail_msg("key %d", key);
    tg_text_append_char(out, ']');
}

static void print_file(const char *path, tg_text *out)
{
    char *bytes;
    size_t length;
    assert_ok(tg_file_read(path, 1 << 20, &bytes, &length));
    const unsigned char *at = (const unsigned char *)bytes, *end = at + length;
    while (at < end) {
        const size_t n = little(at, 8);
        assert_int_equal(little(at + 8, 4), tg_crc32c_masked(at, 8));
        assert_true(12 + n + 4 <= (size_t)(end - at));
        assert_int_equal(little(at + 12 + n, 4), tg_crc32c_masked(at + 12, n));
        print_event(at + 12, at + 12 + n, out);
        at += 16 + n;
    }
    free(bytes);
}

static void crc_is_castagnolis(void **state)
{
    (void)state;
    assert_int_equal(tg_crc32c("123456789", 9), 0xE3069283u);
    assert_int_equal(tg_crc32c("", 0), 0);
    unsigned char zeros[32] = {0}; /* RFC 3720, B.4 */
    assert_int_equal(tg_crc32c(zeros, sizeof zeros), 0x8A9136AAu);
}

static void records_read_back(void **state)
{
    (void)state;
    tg_event_file file;
    tg_text got = {0};
    assert_ok(tg_event_file_open(tg_test_temp_dir(), 100.5, 1, &file));
    tg_event_file_add(&file, "loss", 0.5);
    tg_event_file_add(&file, "unknown", NAN);
    tg_event_file_add(&file, "images/s", 1e6);
    assert_ok(tg_event_file_end(&file, 300, 101.25));
    assert_ok(tg_event_file_end(&file, 301, 102)); /* nothing to say */
    tg_event_file_add(&file, "loss", INFINITY);
    assert_ok(tg_event_file_end(&file, 70000, 103));
    print_file(file.path, &got);
    assert_string_equal(tg_text_string(&got), "[100.50 0 brain.Event:2]"
                                              "[101.25 300 loss=0.5 images/s=1e+06 ]"
                                              "[103.00 70000 loss=inf ]");
    assert_non_null(strstr(file.path, "/events.out.tfevents.0000000100."));
    tg_text_done(&got);
    tg_event_file_close(&file);
    tg_event_file_close(&file);
    tg_event_file_close(NULL);
}

static void a_resumed_run_starts_a_session(void **state)
{
    (void)state;
    tg_event_file a, b;
    tg_text got = {0};
    char *folder = tg_path_join(tg_test_temp_dir(), "a/b");
    assert_ok(tg_event_file_open(folder, 7, 1, &a));
    assert_ok(tg_event_file_open(folder, 7, 13, &b)); /* the same second, another file */
    assert_string_not_equal(a.path, b.path);
    print_file(b.path, &got);
    assert_string_equal(tg_text_string(&got), "[7.00 0 brain.Event:2][7.00 13 start]");
    tg_text_done(&got);
    tg_event_file_close(&a);
    tg_event_file_close(&b);
    free(folder);
}

static void a_file_in_the_way_is_an_error(void **state)
{
    (void)state;
    tg_event_file file;
    char *folder = tg_path_join(tg_test_temp_dir(), "file");
    assert_ok(tg_file_write(folder, "x", 1));
    assert_error(tg_event_file_open(folder, 7, 1, &file), TG_ERROR_USAGE, "file");
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_is_castagnolis),
        cmocka_unit_test(records_read_back),
        cmocka_unit_test(a_resumed_run_starts_a_session),
        cmocka_unit_test(a_file_in_the_way_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
