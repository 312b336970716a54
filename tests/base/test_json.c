/* JSON from outside: what is refused, and that every message says where. */
#include "support/check.h"

#include "base/json.h"

#include <locale.h>
#include <string.h>

static tg_status parse(const char *text, tg_json *out)
{
    return tg_json_parse(text, strlen(text), "f.json", out);
}

static void refuses_bad_text(void **state)
{
    (void)state;
    const struct {
        const char *text, *part;
    } cases[] = {
        {"", "f.json: line 1"},
        {"{\"a\":1,\n \"a\":2}", "f.json: line 2, column"},
        {"{\"a\":1,\"a\":2}", "duplicate object key"},
        {"{\"a\":NaN}", "NaN and Infinity are not JSON"},
        {"{\"a\":Infinity}", "NaN and Infinity are not JSON"},
        {"{\"a\":-Infinity}", "NaN and Infinity are not JSON"},
        {"{\"a\":1} x", "f.json: line 1"},
        {"{\"a\":1e999}", "f.json: line 1"},
        {"{\"a\":99999999999999999999}", "f.json: line 1"},
        {"{\"a\":\"\xff\"}", "f.json: line 1"},
        {"{\"a\":\"cut", "f.json: line 1"},
        {"{'a':1}", "f.json: line 1"},
        {"{\"a\":0,5}", "f.json: line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_json json = {0};
        assert_error(parse(cases[i].text, &json), TG_ERROR_INPUT, cases[i].part);
        assert_null(json.root);
    }
}

static void limits_depth(void **state)
{
    (void)state;
    char text[4 * TG_JSON_MAX_DEPTH];
    for (size_t depth = TG_JSON_MAX_DEPTH; depth <= TG_JSON_MAX_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        tg_json json = {0};
        tg_status status = tg_json_parse(text, 2 * depth, "deep", &json);
        if (depth == TG_JSON_MAX_DEPTH)
            assert_ok(status);
        else
            assert_error(status, TG_ERROR_INPUT, "deep: line 1, column 65: nested deeper than 64");
        tg_json_done(&json);
    }
    tg_json json = {0}; /* brackets inside strings do not count */
    memset(text, '[', sizeof text);
    text[0] = text[sizeof text - 1] = '"';
    assert_ok(tg_json_parse(text, sizeof text, "string", &json));
    tg_json_done(&json);
}

static void gets_values(void **state)
{
    (void)state;
    tg_json json;
    assert_ok(parse("\xEF\xBB\xBF{\"i\":224.0,\"d\":0.9,\"b\":true,\"s\":\"x\",\"n\":null,"
                    "\"mean\":[0.5,1,2e-1],\"o\":{\"k\":-2}}",
                    &json));
    tg_json_node root = tg_json_root(&json), child;
    int64_t i = 0;
    double d = 0, mean[3] = {0}, kept = 7;
    bool b = false, found = true;
    const char *s = NULL;
    size_t size = 0;
    assert_ok(tg_json_get_int(&root, "i", TG_REQUIRED, &i));
    assert_int_equal(i, 224);
    assert_ok(tg_json_get_size(&root, "i", TG_REQUIRED, &size));
    assert_ok(tg_json_get_double(&root, "d", TG_REQUIRED, &d));
    assert_true(d == 0.9);
    assert_ok(tg_json_get_bool(&root, "b", TG_REQUIRED, &b));
    assert_true(b);
    assert_ok(tg_json_get_string(&root, "s", TG_REQUIRED, &s));
    assert_string_equal(s, "x");
    assert_ok(tg_json_get_doubles(&root, "mean", TG_REQUIRED, 3, mean));
    assert_true(mean[0] == 0.5 && mean[1] == 1 && mean[2] == 0.2);
    assert_ok(tg_json_get_double(&root, "absent", TG_OPTIONAL, &kept));
    assert_ok(tg_json_get_double(&root, "n", TG_OPTIONAL, &kept));
    assert_true(kept == 7);
    assert_ok(tg_json_get_object(&root, "nope", TG_OPTIONAL, &child, &found));
    assert_false(found);
    assert_ok(tg_json_get_object(&root, "o", TG_REQUIRED, &child, &found));
    assert_true(found);
    assert_error(tg_json_get_size(&child, "k", TG_REQUIRED, &size), TG_ERROR_INPUT, "f.json: o.k:");
    tg_json_done(&json);
}

static void names_the_place(void **state)
{
    (void)state;
    tg_json json;
    assert_ok(parse("{\"a\":{\"list\":[1,\"x\"],\"half\":1.5},\"n\":null}", &json));
    tg_json_node root = tg_json_root(&json), a, list, element;
    int64_t i;
    double two[2] = {-1, -1};
    assert_ok(tg_json_get_object(&root, "a", TG_REQUIRED, &a, NULL));
    assert_ok(tg_json_get_array(&a, "list", TG_REQUIRED, &list, NULL));
    assert_int_equal(tg_json_count(&list), 2);
    element = tg_json_element(&list, 1);
    assert_error(tg_json_as_int(&element, &i), TG_ERROR_INPUT,
                 "f.json: a.list[1]: expected a whole number, found a string");
    assert_error(tg_json_get_doubles(&a, "list", TG_REQUIRED, 2, two), TG_ERROR_INPUT, "a.list[1]");
    assert_true(two[0] == -1);
    assert_error(tg_json_get_doubles(&a, "list", TG_REQUIRED, 3, two), TG_ERROR_INPUT,
                 "expected 3 numbers, found 2");
    assert_error(tg_json_get_int(&a, "half", TG_OPTIONAL, &i), TG_ERROR_INPUT, "found 1.5");
    assert_error(tg_json_get_int(&root, "gone", TG_REQUIRED, &i), TG_ERROR_INPUT,
                 "key \"gone\" is missing");
    assert_error(tg_json_get_int(&root, "n", TG_REQUIRED, &i), TG_ERROR_INPUT, "is null");
    assert_error(tg_json_get_int(&list, "k", TG_REQUIRED, &i), TG_ERROR_INPUT,
                 "a.list: expected an object");
    tg_json_done(&json);
}

static void walks_in_file_order(void **state)
{
    (void)state;
    tg_json json;
    assert_ok(parse("{\"z\":1,\"a\":2,\"m\":3}", &json));
    tg_json_node root = tg_json_root(&json), node;
    tg_json_iterator iterator = {0};
    const char *key, *order[] = {"z", "a", "m"};
    int64_t n = 0, value;
    while (tg_json_next(&root, &iterator, &key, &node)) {
        assert_string_equal(key, order[n]);
        assert_ok(tg_json_as_int(&node, &value));
        assert_int_equal(value, ++n);
    }
    assert_int_equal(n, 3);
    tg_json_done(&json);
}

static void reads_the_point_in_any_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        skip();
    tg_json json;
    double d = 0;
    assert_ok(parse("{\"d\":0.5}", &json));
    tg_json_node root = tg_json_root(&json);
    assert_ok(tg_json_get_double(&root, "d", TG_REQUIRED, &d));
    assert_true(d == 0.5);
    tg_json_done(&json);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_bad_text),    cmocka_unit_test(limits_depth),
        cmocka_unit_test(gets_values),         cmocka_unit_test(names_the_place),
        cmocka_unit_test(walks_in_file_order), cmocka_unit_test(reads_the_point_in_any_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
