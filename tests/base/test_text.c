/* Text buffers and the JSON writer: exact bytes, escapes of any byte, no allocation once grown. */
#include "support/check.h"

#include "base/json.h"
#include "base/json_writer.h"

#include <locale.h>
#include <math.h>
#include <string.h>

static void appends(void **state)
{
    (void)state;
    tg_text text = {0};
    assert_string_equal(tg_text_string(&text), "");
    tg_text_append_string(&text, "a");
    tg_text_append_format(&text, "-%d-%.2f", 7, 0.5);
    assert_string_equal(tg_text_string(&text), "a-7-0.50");
    tg_text_clear(&text);
    char wide[600];
    memset(wide, 'x', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    tg_text_append_format(&text, "<%s>", wide);
    assert_int_equal(text.length, 601);
    assert_int_equal(text.data[600], '>');
    assert_ok(tg_text_check(&text, "test"));
    tg_text_done(&text);
    tg_text_done(&text);
}

static void remembers_failure(void **state)
{
    (void)state;
    tg_text text = {0};
    tg_text_append_string(&text, "kept");
    tg_text_append(&text, "x", SIZE_MAX - 2); /* wraps: refused before anything is copied */
    assert_error(tg_text_check(&text, "record"), TG_ERROR_MACHINE, "record: out of memory");
    assert_string_equal(tg_text_string(&text), "kept");
    tg_text_clear(&text);
    assert_ok(tg_text_check(&text, "record"));
    tg_text_done(&text);
}

static void escapes(void **state)
{
    (void)state;
    const struct {
        const char *bytes;
        size_t length;
        const char *json;
    } cases[] = {
        {"plain", 5, "\"plain\""},
        {"a\"b\\c/\n\t\r\x01\x7f", 11, "\"a\\\"b\\\\c/\\n\\t\\u000d\\u0001\\u007f\""},
        {"nul\0x", 5, "\"nul\\u0000x\""},
        {"cr\xC3\xA8me \xF0\x9F\x8D\xB0", 11, "\"cr\xC3\xA8me \xF0\x9F\x8D\xB0\""},
        {"\xFF", 1, "\"\xEF\xBF\xBD\""},                                 /* never valid */
        {"\xC3", 1, "\"\xEF\xBF\xBD\""},                                 /* cut */
        {"\xC0\xAF", 2, "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},                 /* overlong */
        {"\xED\xA0\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""}, /* surrogate */
        {"\xE2\x82x", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBDx\""},
    };
    tg_text text = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_text_clear(&text);
        tg_text_append_json_string(&text, cases[i].bytes, cases[i].length);
        assert_string_equal(tg_text_string(&text), cases[i].json);
    }
    tg_text_done(&text);
}

/* All bytes, in pairs: what comes out is JSON that a reader takes. */
static void every_byte_gives_valid_json(void **state)
{
    (void)state;
    tg_text text = {0};
    for (int a = 1; a < 256; a++) {
        char bytes[512];
        for (int b = 1; b < 256; b++) {
            bytes[2 * (b - 1)] = (char)a;
            bytes[2 * (b - 1) + 1] = (char)b;
        }
        tg_text_clear(&text);
        tg_text_append_json_string(&text, bytes, 510);
        tg_json json;
        assert_ok(tg_json_parse(text.data, text.length, "pairs", &json));
        tg_json_done(&json);
    }
    tg_text_done(&text);
}

static void write_record(tg_text *text)
{
    tg_json_writer w = tg_json_writer_init(text);
    tg_json_begin_object(&w, NULL);
    tg_json_put_int(&w, "step", -3);
    tg_json_put_uint(&w, "bytes", UINT64_MAX);
    tg_json_put_double(&w, "loss", 0.1);
    tg_json_put_double(&w, "nan", NAN);
    tg_json_put_float(&w, "lr", 0.1f);
    tg_json_put_float(&w, "inf", INFINITY);
    tg_json_put_bool(&w, "ok", true);
    tg_json_begin_array(&w, "list");
    tg_json_put_int(&w, NULL, 1);
    tg_json_begin_object(&w, NULL);
    tg_json_end_object(&w);
    tg_json_begin_array(&w, NULL);
    tg_json_end_array(&w);
    tg_json_end_array(&w);
    tg_json_put_string(&w, "name", "a\"b");
    tg_json_put_null(&w, "none");
    tg_json_end_object(&w);
}

static const char RECORD[] =
    "{\"step\":-3,\"bytes\":18446744073709551615,\"loss\":0.1,\"nan\":null,"
    "\"lr\":0.1,\"inf\":null,\"ok\":true,\"list\":[1,{},[]],"
    "\"name\":\"a\\\"b\",\"none\":null}";

static void writes_records(void **state)
{
    (void)state;
    tg_text text = {0};
    write_record(&text);
    assert_string_equal(tg_text_string(&text), RECORD);
    size_t capacity = text.capacity;
    const char *data = text.data;
    for (int i = 0; i < 100; i++) {
        tg_text_clear(&text);
        write_record(&text);
        assert_ptr_equal(text.data, data);
        assert_int_equal(text.capacity, capacity);
    }
    if (setlocale(LC_ALL, "de_DE.UTF-8")) {
        tg_text_clear(&text);
        write_record(&text);
        assert_string_equal(tg_text_string(&text), RECORD);
        setlocale(LC_ALL, "C");
    }
    tg_text_done(&text);
}

static void assert_visible(const char *string, const char *keep, const char *want)
{
    tg_text text = {0};
    tg_text_append_visible(&text, string, keep);
    assert_string_equal(tg_text_string(&text), want);
    tg_text_done(&text);
}

static void wraps_words(void **state)
{
    (void)state;
    tg_text text = {0};
    tg_text_append_wrapped(&text, "  one two\nthree  fourteen\n", 2, 9);
    assert_string_equal(tg_text_string(&text), "one two\n  three\n  fourteen");
    tg_text_clear(&text);
    tg_text_append_wrapped(&text, " \n", 0, 9);
    assert_string_equal(tg_text_string(&text), "");
    tg_text_done(&text);
}

static void shows_what_cannot_be_seen(void **state)
{
    (void)state;
    assert_visible("", "", "");
    assert_visible("cr\xC3\xA8me br\xC3\xBBl\xC3\xA9"
                   "e \xFF 'a' \"b\"",
                   "",
                   "cr\xC3\xA8me br\xC3\xBBl\xC3\xA9"
                   "e \xFF 'a' \"b\"");
    assert_visible("a\nb\r\x1B[2J\x7F\\t", "", "a\\x0ab\\x0d\\x1b[2J\\x7f\\x5ct");
    assert_visible("\xC2\x9B"
                   "31m \xC2\xA0 \xC2",
                   "", "\\xc2\\x9b31m \xC2\xA0 \xC2");
    assert_visible("a\\x0a\nb\t", "\\", "a\\x0a\\x0ab\\x09");
    assert_visible("a\\x0a\nb\t", "\\\n", "a\\x0a\nb\\x09");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends),
        cmocka_unit_test(remembers_failure),
        cmocka_unit_test(escapes),
        cmocka_unit_test(every_byte_gives_valid_json),
        cmocka_unit_test(writes_records),
        cmocka_unit_test(wraps_words),
        cmocka_unit_test(shows_what_cannot_be_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
