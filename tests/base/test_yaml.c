/* YAML from people: what is taken, what is refused, and that messages say where. */
#include "support/check.h"

#include "base/yaml.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

static tg_status parse(const char *text, tg_yaml *out)
{
    return tg_yaml_parse(text, strlen(text), "job.yaml", out);
}

static void gets_values(void **state)
{
    (void)state;
    tg_yaml yaml;
    assert_ok(parse("# settings\nlr: 0.001\nepochs: 5\namp: yes\nname: no\nempty:\nq: \"~\"\n"
                    "list: [a, 'b']\ninner:\n  deep: -3\n",
                    &yaml));
    const tg_yaml_node *root = yaml.root, *list, *inner = NULL;
    double lr = 0, kept = 9;
    int64_t epochs = 0, deep = 0;
    bool amp = false;
    const char *name = "", *q = "";
    assert_ok(tg_yaml_get_double(root, "lr", TG_REQUIRED, &lr));
    assert_true(lr == 0.001);
    assert_ok(tg_yaml_get_int(root, "epochs", TG_REQUIRED, &epochs));
    assert_int_equal(epochs, 5);
    assert_ok(tg_yaml_get_bool(root, "amp", TG_REQUIRED, &amp));
    assert_true(amp);
    assert_ok(tg_yaml_get_string(root, "name", TG_REQUIRED, &name));
    assert_string_equal(name, "no");
    assert_ok(tg_yaml_get_string(root, "q", TG_REQUIRED, &q));
    assert_string_equal(q, "~");
    assert_ok(tg_yaml_get_double(root, "empty", TG_OPTIONAL, &kept));
    assert_ok(tg_yaml_get_double(root, "absent", TG_OPTIONAL, &kept));
    assert_true(kept == 9);
    assert_ok(tg_yaml_get_list(root, "list", TG_REQUIRED, &list));
    assert_int_equal(list->count, 2);
    assert_string_equal(list->first->next->text, "b");
    assert_ok(tg_yaml_get_map(root, "inner", TG_REQUIRED, &inner));
    assert_ok(tg_yaml_get_int(inner, "deep", TG_REQUIRED, &deep));
    assert_int_equal(deep, -3);
    assert_ok(tg_yaml_get_map(root, "nothing", TG_OPTIONAL, &inner));
    assert_null(inner);
    tg_yaml_done(&yaml);
}

static void names_the_place(void **state)
{
    (void)state;
    tg_yaml yaml;
    double d;
    int64_t i;
    bool b;
    const tg_yaml_node *node;
    static const char *const KEYS[] = {"lr", "epochs", "batch-size"};
    assert_ok(parse("lr: 0,5\nepochs: 1.5\nbatch_size: 3\n", &yaml));
    assert_error(tg_yaml_get_double(yaml.root, "lr", TG_REQUIRED, &d), TG_ERROR_INPUT,
                 "job.yaml: line 1, column 5: lr: expected a number");
    assert_error(tg_yaml_get_int(yaml.root, "epochs", TG_REQUIRED, &i), TG_ERROR_INPUT,
                 "line 2, column 9: epochs: expected a whole number, found \"1.5\"");
    assert_error(tg_yaml_get_bool(yaml.root, "lr", TG_REQUIRED, &b), TG_ERROR_INPUT, "true or");
    assert_error(tg_yaml_get_list(yaml.root, "lr", TG_REQUIRED, &node), TG_ERROR_INPUT,
                 "expected a list, found a single value");
    assert_error(tg_yaml_get_int(yaml.root, "gone", TG_REQUIRED, &i), TG_ERROR_INPUT,
                 "key \"gone\" is missing");
    assert_error(tg_yaml_check_keys(yaml.root, KEYS, 3), TG_ERROR_INPUT,
                 "line 3, column 13: batch_size: unknown key; did you mean batch-size?");
    tg_yaml_done(&yaml);
}

static void refuses(void **state)
{
    (void)state;
    const struct {
        const char *text, *part;
    } cases[] = {
        {"a: 1\nb: 2\na: 3\n", "job.yaml: line 3, column 1: key \"a\" appears twice"},
        {"a: &x 1\n", "anchors"},
        {"a: *x\n", "aliases"},
        {"a: !!str 1\n", "tags"},
        {"a: 1\n---\nb: 2\n", "only one document"},
        {"[a]: 1\n", "a key has to be"},
        {"a: [1\n", "job.yaml: line"},
        {"a:\n\t- x\n", "job.yaml: line 2"},
        {"a: \"\\0\"\n", "zero byte"},
        {"a: \xff\n", "job.yaml: byte 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_yaml yaml = {0};
        assert_error(parse(cases[i].text, &yaml), TG_ERROR_INPUT, cases[i].part);
        assert_null(yaml.root);
    }
}

static void bounds(void **state)
{
    (void)state;
    char deep[200];
    tg_yaml yaml = {0};
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    assert_error(tg_yaml_parse(deep, 200, "deep", &yaml), TG_ERROR_INPUT, "nested too deep");
    assert_ok(tg_yaml_parse(deep + 70, 60, "deep", &yaml));
    tg_yaml_done(&yaml);
    size_t size = TG_YAML_MAX_BYTES + 1;
    char *large = malloc(size);
    memset(large, ' ', size);
    assert_error(tg_yaml_parse(large, size, "large", &yaml), TG_ERROR_INPUT, "larger than");
    free(large);
    assert_ok(tg_yaml_parse("", 0, "empty", &yaml));
    assert_int_equal(yaml.root->kind, TG_YAML_MAP);
    tg_yaml_done(&yaml);
    tg_yaml_done(&yaml);
}

static void reads_the_point_in_any_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        skip();
    gets_values(NULL);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gets_values),
        cmocka_unit_test(names_the_place),
        cmocka_unit_test(refuses),
        cmocka_unit_test(bounds),
        cmocka_unit_test(reads_the_point_in_any_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
