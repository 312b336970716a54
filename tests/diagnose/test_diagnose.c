/* The engine: which rules are asked, what they lack, what explains what, what comes first, and how it is shown. */
#include "support/check.h"
#include "support/diagnose.h"

#include "base/json.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tg_test_run make_case(void)
{
    tg_test_run run = tg_test_run_new();
    const tg_step_record step = tg_test_step(0.5);
    tg_test_sample_values sample = tg_test_sample();
    tg_test_run_machine(&run, 2, 2, 48);
    tg_test_run_span(&run, TG_SPAN_START, TG_TEST_RUN_BEGIN - 3600, 3600, 0);
    tg_test_run_steps(&run, 200, &step);
    sample.user = 1;
    sample.system = sample.steal = 0;
    tg_test_sample_role(&sample, TG_ROLE_COMPUTE, 2, 0.8, 1.1);
    tg_test_sample_role(&sample, TG_ROLE_LOADER, 48, 1.2, 20);
    tg_test_run_samples(&run, "a", 2, 0, 200, &sample);
    return run;
}

static void test_rules_are_sound(void **state)
{
    size_t count;
    const tg_rule *const *rules = tg_rules(&count);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        const tg_rule *r = rules[i];
        assert_ptr_equal(tg_rule_find(r->name), r); /* no name twice */
        assert_true(r->asks[0] >= 'a' && r->asks[0] <= 'z');
        assert_true(r->limit_count <= TG_RULE_LIMITS);
        for (size_t l = 0; l < r->limit_count; l++)
            assert_true(r->limits[l].initial >= r->limits[l].low &&
                        r->limits[l].initial <= r->limits[l].high);
        for (const char *const *name = r->yields_to; name && *name; name++) {
            const tg_rule *other = tg_rule_find(*name);
            for (const char *const *back = other ? other->yields_to : NULL; back && *back; back++)
                assert_string_not_equal(*back, r->name); /* each would explain the other */
        }
    }
}

/* An empty run directory: every rule says what it lacks, none fails. */
static void test_nothing_there(void **state)
{
    tg_test_run run = tg_test_run_new();
    tg_diagnosis d;
    tg_text text = {0};
    (void)state;
    assert_ok(tg_diagnose(&run.history, NULL, &d));
    assert_int_equal(d.findings.count, 0);
    for (size_t i = 0; i < d.result_count; i++) {
        assert_int_equal(d.results[i].outcome, TG_RULE_LACKS);
        assert_true(d.results[i].lacks[0]);
    }
    tg_diagnosis_print_text(&d, &run.history, &text);
    assert_non_null(strstr(tg_text_string(&text), "nothing found"));
    tg_text_done(&text);
    tg_diagnosis_done(&d);
    tg_test_run_done(&run);
}

static void check_options(const char *rules, const char *limits, const char *part)
{
    const tg_diagnose_options options = {.rules = rules, .limits = limits};
    assert_error(tg_diagnose_check_options(&options), TG_ERROR_USAGE, part);
}

static void test_options(void **state)
{
    (void)state;
    check_options("CPUBotleneck", NULL, "CPUBottleneck?");
    check_options("Dataloader,Nonsense", NULL, "Nonsense");
    check_options(NULL, "Dataloader", "RULE.NAME=NUMBER");
    check_options(NULL, "Dataloader.color=3", "min_threshold");
    check_options(NULL, "Nothing.at=1", "Nothing");
    check_options(NULL, "CPUBottleneck.threshold=101", "from 0 to 100");
    check_options(NULL, "CPUBottleneck.threshold=a", "from 0 to 100");
    assert_ok(tg_diagnose_check_options(&(tg_diagnose_options){
        .rules = "dataloader,CPUBottleneck", .limits = "dataloader.wait_threshold=5"}));
}

/* Two rules advise on --workers: one counts, the other is explained by it, and the text shows both. */
static void test_one_advice(void **state)
{
    tg_test_run run = make_case();
    tg_diagnosis d;
    tg_text text = {0};
    int workers = 0;
    (void)state;
    assert_ok(
        tg_diagnose(&run.history, &(tg_diagnose_options){.rules = "CPUBottleneck,Dataloader"}, &d));
    assert_int_equal(d.findings.count, 2);
    for (size_t i = 0; i < d.findings.count; i++)
        workers +=
            !d.findings.each[i].explained_by && strcmp(d.findings.each[i].option, "workers") == 0;
    assert_int_equal(workers, 1);
    assert_null(d.findings.each[0].explained_by);
    assert_string_equal(d.findings.each[1].explained_by, d.findings.each[0].rule);
    tg_diagnosis_print_text(&d, &run.history, &text);
    assert_non_null(strstr(tg_text_string(&text), "Explained by these"));
    assert_non_null(strstr(tg_text_string(&text), "--workers "));
    tg_text_done(&text);
    tg_diagnosis_done(&d);
    tg_test_run_done(&run);
}

/* As an options file: one line an option, none of what is explained or of one rank alone. */
static void test_settings(void **state)
{
    tg_diagnosis d = {0};
    tg_text text = {0};
    (void)state;
    tg_finding *f = tg_findings_add(&d.findings, "Dataloader", TG_SEVERITY_WARNING);
    tg_finding_set_number(f, "workers", 48, 1);
    tg_finding_predict(f, 0.5, 0.25, 0.5);
    f = tg_findings_add(&d.findings, "Straggler", TG_SEVERITY_WARNING);
    tg_finding_set_number(f, "threads", 4, 2);
    f->rank = 3;
    tg_finding_set_option(tg_findings_add(&d.findings, "A", TG_SEVERITY_NOTE), "amp", "false",
                          "true");
    tg_finding_set_number(tg_findings_add(&d.findings, "CPUBottleneck", TG_SEVERITY_NOTE),
                          "workers", 48, 3);
    f = tg_findings_add(&d.findings, "B", TG_SEVERITY_NOTE);
    tg_finding_set_number(f, "zero", 0, 1);
    f->explained_by = "A";
    (void)tg_findings_add(&d.findings, "C", TG_SEVERITY_NOTE);
    tg_diagnosis_print_settings(&d, &text);
    assert_string_equal(tg_text_string(&text),
                        "workers: 1  # Dataloader, now 48, step 0.5 s -> 0.25 s\n"
                        "amp: true  # A, now false\n");
    tg_text_done(&text);
    tg_diagnosis_done(&d);
}

static void test_worst_first(void **state)
{
    tg_test_run run = make_case();
    tg_diagnosis d;
    (void)state;
    assert_ok(tg_diagnose(&run.history, NULL, &d));
    assert_true(d.findings.count >= 3);
    for (size_t i = 1; i < d.findings.count; i++) {
        const tg_finding *a = &d.findings.each[i - 1], *b = &d.findings.each[i];
        if (!a->explained_by && !b->explained_by)
            assert_true(a->severity >= b->severity);
        assert_false(a->explained_by && !b->explained_by);
    }
    tg_diagnosis_done(&d);
    tg_test_run_done(&run);
}

/* No line of the text is wider than a terminal, whatever the run is called. */
static void test_width(void **state)
{
    tg_test_run run = make_case();
    tg_diagnosis d;
    tg_text text = {0};
    (void)state;
    assert_ok(tg_diagnose(&run.history, NULL, &d));
    tg_diagnosis_print_text(&d, &run.history, &text);
    for (const char *line = tg_text_string(&text); *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80)
            fail_msg("wider than 80: %.*s", (int)strcspn(line, "\n"), line);
    tg_text_done(&text);
    tg_diagnosis_done(&d);
    tg_test_run_done(&run);
}

static void test_file(void **state)
{
    tg_test_run run = make_case();
    tg_diagnosis d;
    char path[4096];
    char *bytes;
    size_t length;
    tg_json json = {0};
    tg_json_node findings, rules, first;
    const char *rule, *title;
    (void)state;
    assert_ok(tg_diagnose(&run.history, NULL, &d));
    tg_finding_say(d.findings.each[0].title, sizeof d.findings.each[0].title, "a \"b\" \x01 \xff");
    snprintf(path, sizeof path, "%s/findings.json", tg_test_temp_dir());
    assert_ok(tg_diagnosis_write(&d, &run.history, path));
    assert_ok(tg_file_read(path, 1u << 20, &bytes, &length));
    assert_ok(tg_json_parse(bytes, length, path, &json));
    const tg_json_node root = tg_json_root(&json);
    assert_ok(tg_json_get_array(&root, "findings", TG_REQUIRED, &findings, NULL));
    assert_ok(tg_json_get_array(&root, "rules", TG_REQUIRED, &rules, NULL));
    assert_int_equal(tg_json_count(&findings), d.findings.count);
    assert_int_equal(tg_json_count(&rules), d.result_count);
    first = tg_json_element(&findings, 0);
    assert_ok(tg_json_get_string(&first, "rule", TG_REQUIRED, &rule));
    assert_string_equal(rule, d.findings.each[0].rule);
    assert_ok(tg_json_get_string(&first, "title", TG_REQUIRED, &title));
    tg_json_done(&json);
    free(bytes);
    tg_diagnosis_done(&d);
    tg_test_run_done(&run);
}

/* A run that was written and opened again says the same. */
static void test_written_run(void **state)
{
    tg_test_run run = make_case();
    tg_history opened;
    tg_diagnosis a, b;
    (void)state;
    tg_test_run_write(&run, tg_test_temp_dir());
    assert_ok(tg_history_open(tg_test_temp_dir(), &opened));
    assert_int_equal(opened.inputs, run.history.inputs);
    assert_ok(tg_diagnose(&run.history, NULL, &a));
    assert_ok(tg_diagnose(&opened, NULL, &b));
    assert_int_equal(a.findings.count, b.findings.count);
    for (size_t i = 0; i < a.findings.count; i++)
        assert_string_equal(a.findings.each[i].title, b.findings.each[i].title);
    tg_diagnosis_done(&a);
    tg_diagnosis_done(&b);
    tg_history_close(&opened);
    tg_test_run_done(&run);
}

/* What is too long is cut between characters. */
static void test_say(void **state)
{
    char small[8];
    (void)state;
    tg_finding_say(small, sizeof small, "abcdef\xc3\xa9");
    assert_string_equal(small, "abcdef");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_are_sound), cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_options),         cmocka_unit_test(test_one_advice),
        cmocka_unit_test(test_settings),        cmocka_unit_test(test_worst_first),
        cmocka_unit_test(test_width),           cmocka_unit_test(test_file),
        cmocka_unit_test(test_written_run),     cmocka_unit_test(test_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
