/* Two runs side by side: what was set, what is noise, steps of different size, operations, findings, and what a prediction
 * came to, alone, together, and where too much was changed to say. */
#include "support/check.h"
#include "support/history.h"

#include "base/json.h"
#include "report/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tg_comparison c;

/* Two cores; so many loader threads take `loader_cores`, and compute threads wait for a core as long as they have one where
 * that is much: the case of too many of them (Dataloader). */
static tg_test_run make_run(const char *options, int workers, double loader_cores, double step_s)
{
    tg_test_run run = tg_test_run_new();
    tg_step_record step = tg_test_step(step_s);
    tg_test_sample_values sample = tg_test_sample();
    tg_test_run_machine(&run, 2, 2, workers);
    tg_test_run_options(&run, options);
    tg_test_run_steps(&run, 200, &step);
    sample.user = (float)(0.5 * (0.6 + loader_cores));
    sample.system = sample.steal = 0;
    tg_test_sample_role(&sample, TG_ROLE_COMPUTE, 2, 0.6, loader_cores > 0.3 ? 1 : 0.01);
    tg_test_sample_role(&sample, TG_ROLE_LOADER, workers, loader_cores, 0);
    tg_test_run_samples(&run, "a", 2, 0, 200, &sample);
    return run;
}

static void compare(tg_test_run *a, tg_test_run *b)
{
    assert_ok(tg_compare(&a->history, &b->history, &c));
}

static void done(tg_test_run *a, tg_test_run *b)
{
    tg_comparison_done(&c);
    if (b != a)
        tg_test_run_done(b);
    tg_test_run_done(a);
}

static tg_change change_of(const char *key)
{
    const tg_compare_row *row = tg_comparison_row(&c, key);
    assert_non_null(row);
    return row->change;
}

static void a_run_beside_itself_differs_in_nothing(void **state)
{
    (void)state;
    tg_test_run a = make_run("workers: 1\n", 1, 0.2, 0.5);
    compare(&a, &a);
    assert_int_equal(c.setting_count, 0);
    assert_true(c.row_count > 5);
    for (size_t i = 0; i < c.row_count; i++)
        assert_int_equal(c.rows[i].change, TG_CHANGE_NONE);
    assert_true(c.alike.alike && c.alike.within == 1 && c.alike.most == 0);
    assert_int_equal(c.alike.equal_steps, 200);
    for (size_t i = 0; i < c.finding_count; i++)
        assert_int_equal(c.findings[i].fate, TG_FINDING_STILL);
    done(&a, &a);
}

static void settings_that_differ_are_listed(void **state)
{
    (void)state;
    tg_test_run a =
        make_run("workers: auto\nlr: 0.001\nmean: [0.5, 0.5]\nseed: 1\nbatch-size: 32\noutput: x\n",
                 4, 0.2, 0.5);
    tg_test_run b = make_run(
        "workers: 4\nlr: 1e-3\nmean: [0.5, 0.6]\nseed: 2\nbatch-size: 64\noutput: y\namp: true\n",
        4, 0.2, 0.5);
    compare(&a, &b);
    static const char *const WANTED[][3] = {{"mean", "0.5 0.5", "0.5 0.6"},
                                            {"seed", "1", "2"},
                                            {"batch-size", "32", "64"},
                                            {"amp", "-", "true"}};
    assert_int_equal(c.setting_count, 4); /* four threads are four threads, and 1e-3 is 0.001 */
    for (int i = 0; i < 4; i++) {
        assert_string_equal(c.settings[i].name, WANTED[i][0]);
        assert_string_equal(c.settings[i].a, WANTED[i][1]);
        assert_string_equal(c.settings[i].b, WANTED[i][2]);
    }
    assert_false(c.settings[1].time);
    assert_true(c.settings[2].time);
    done(&a, &b);
}

static void what_lies_inside_the_noise_is_none(void **state)
{
    (void)state;
    tg_test_run a = make_run("workers: 1\n", 1, 0.2, 0.5),
                b = make_run("workers: 1\n", 1, 0.2, 0.51);
    for (size_t i = 0; i < 200; i++) { /* disturbances that stay for a while */
        a.history.steps[i].t_step *= i / 20 % 3 ? 1 : 1.15;
        b.history.steps[i].t_step *= i / 20 % 3 ? 1 : 1.15;
    }
    compare(&a, &b);
    assert_int_equal(change_of("step_s"), TG_CHANGE_NONE);
    assert_int_equal(change_of("images_per_s"), TG_CHANGE_NONE);
    assert_int_equal(change_of("forward_s"), TG_CHANGE_MORE); /* two percent without noise */
    done(&a, &b);
}

static void steps_of_other_size_are_compared_by_photos(void **state)
{
    (void)state;
    tg_test_run a = make_run("batch-size: 32\n", 1, 0.2, 0.5),
                b = make_run("batch-size: 64\n", 1, 0.2, 0.8);
    for (size_t i = 0; i < 200; i++)
        b.history.steps[i].images = 64;
    compare(&a, &b);
    assert_true(c.scaled);
    assert_float_equal(tg_comparison_row(&c, "step_s")->b.mean, 0.4, 1e-9);
    assert_int_equal(change_of("step_s"), TG_CHANGE_LESS);
    assert_float_equal(tg_comparison_row(&c, "images_per_s")->b.mean, 80, 1e-9);
    done(&a, &b);
}

static void add_operations(tg_test_run *run, const tg_operation *each, size_t count)
{
    tg_operation copy[8];
    memcpy(copy, each, count * sizeof *each);
    tg_operations operations = {.steps = 10, .seconds = 5, .each = copy, .count = count};
    tg_test_run_operations(run, &operations);
}

static void operations_come_and_go(void **state)
{
    (void)state;
    tg_test_run a = make_run("amp: false\n", 1, 0.2, 0.5), b = make_run("amp: true\n", 1, 0.2, 0.5);
    const tg_operation in_a[] = {
        {.name = "linear_forward",
         .phase = "forward",
         .dtype = "float32",
         .seconds = 1,
         .shape = {1}},
        {.name = "linear_forward",
         .phase = "forward",
         .dtype = "float32",
         .seconds = 1,
         .shape = {2}},
        {.name = "linear_forward", .phase = "teacher", .dtype = "float32", .seconds = 0.5},
        {.name = "softmax", .phase = "forward", .seconds = 0.20},
        {.name = "copy", .phase = "forward", .seconds = 0.1},
    };
    const tg_operation in_b[] = {
        {.name = "linear_forward", .phase = "forward", .dtype = "bfloat16", .seconds = 0.8},
        {.name = "linear_forward", .phase = "teacher", .dtype = "float32", .seconds = 0.7},
        {.name = "softmax", .phase = "forward", .seconds = 0.202},
        {.name = "cast", .phase = "forward", .seconds = 0.05},
    };
    add_operations(&a, in_a, 5);
    add_operations(&b, in_b, 4);
    compare(&a, &b);
    static const struct {
        const char *name, *phase;
        tg_operation_change change;
    } WANTED[] = {{"linear_forward", "forward", TG_OPERATION_FASTER},
                  {"linear_forward", "teacher", TG_OPERATION_SLOWER},
                  {"copy", "forward", TG_OPERATION_GONE},
                  {"cast", "forward", TG_OPERATION_ADDED},
                  {"softmax", "forward", TG_OPERATION_SAME}};
    assert_int_equal(c.operation_count, 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(c.operations[i].name, WANTED[i].name);
        assert_string_equal(c.operations[i].phase, WANTED[i].phase);
        assert_int_equal(c.operations[i].change, WANTED[i].change);
    }
    assert_float_equal(c.operations[0].a_s, 0.2, 1e-12);
    assert_string_equal(c.operations[0].b_dtype, "bfloat16");
    done(&a, &b);
}

static tg_finding_fate fate_of(const char *rule)
{
    for (size_t i = 0; i < c.finding_count; i++)
        if (strcmp(c.findings[i].rule, rule) == 0)
            return c.findings[i].fate;
    fail_msg("%s is not there", rule);
    return TG_FINDING_STILL;
}

/* What the first run's finding says, found out by comparing it with itself. */
static tg_compare_prediction first_prediction(tg_test_run *a)
{
    compare(a, a);
    assert_true(c.prediction_count > 0);
    assert_int_equal(c.predictions[0].advice, TG_ADVICE_NOT_TRIED);
    const tg_compare_prediction p = c.predictions[0];
    assert_string_equal(p.option, "workers");
    assert_string_equal(p.old_value, "48");
    assert_true(p.predicted_s < p.step_s);
    assert_int_equal(c.joint.followed, 0);
    tg_comparison_done(&c);
    return p;
}

static tg_test_run followed(const tg_compare_prediction *p, const char *more, double step_s)
{
    char options[256];
    snprintf(options, sizeof options, "workers: %s\n%s", p->new_value, more);
    int workers = 0;
    sscanf(p->new_value, "%d", &workers);
    return make_run(options, workers, 0.1, step_s);
}

static void a_prediction_is_held_against_the_measurement(void **state)
{
    (void)state;
    tg_test_run a = make_run("workers: 48\n", 48, 0.4, 0.5);
    const tg_compare_prediction p = first_prediction(&a);
    const double half = (p.step_s + p.predicted_s) / 2;
    tg_test_run b = followed(&p, "", half);
    compare(&a, &b);
    assert_int_equal(fate_of(p.rule), TG_FINDING_RESOLVED);
    assert_int_equal(c.predictions[0].advice, TG_ADVICE_FOLLOWED);
    assert_int_equal(c.joint.others, 0);
    assert_float_equal(c.joint.predicted_s, p.predicted_s, 1e-6);
    assert_float_equal(c.joint.gain_came, 0.5, 1e-3);
    tg_comparison_done(&c);
    compare(&b, &a); /* the other way round */
    assert_int_equal(fate_of(p.rule), TG_FINDING_NEW);
    done(&a, &b);
}

static void too_much_at_once_is_said(void **state)
{
    (void)state;
    tg_test_run a = make_run("workers: 48\n", 48, 0.4, 0.5);
    const tg_compare_prediction p = first_prediction(&a);
    tg_test_run b = followed(&p, "amp: true\nseed: 7\n", 0.2);
    tg_text text = {0};
    compare(&a, &b);
    assert_int_equal(c.joint.followed, 1);
    assert_int_equal(c.joint.others, 1); /* amp: a seed takes no time */
    assert_true(isnan(c.joint.gain_came));
    tg_comparison_print_text(&c, &text);
    assert_non_null(strstr(tg_text_string(&text), "differently: amp\n"));
    tg_text_done(&text);
    done(&a, &b);
}

static void another_value_than_advised_says_nothing(void **state)
{
    (void)state;
    tg_test_run a = make_run("workers: 48\n", 48, 0.4, 0.5),
                b = make_run("workers: 7\n", 7, 0.3, 0.3);
    (void)first_prediction(&a);
    compare(&a, &b);
    assert_int_equal(c.predictions[0].advice, TG_ADVICE_OTHER);
    assert_string_equal(c.predictions[0].tried, "7");
    assert_int_equal(c.joint.followed, 0);
    assert_true(isnan(c.joint.gain_came));
    done(&a, &b);
}

/* Without samples a rule cannot be asked, and what it found before is not resolved by that. */
static void a_rule_that_lacks_its_input_resolves_nothing(void **state)
{
    (void)state;
    tg_test_run a = make_run("workers: 1\n", 1, 0.2, 0.5), b = tg_test_run_new();
    const tg_step_record step = tg_test_step(0.3);
    tg_test_run_machine(&b, 2, 2, 1);
    tg_test_run_steps(&b, 200, &step);
    compare(&a, &b);
    size_t unasked = 0;
    for (size_t i = 0; i < c.finding_count; i++)
        unasked += c.findings[i].fate == TG_FINDING_UNASKED;
    assert_true(unasked > 0);
    assert_int_not_equal(fate_of("LowUtilization"), TG_FINDING_RESOLVED);
    done(&a, &b);
}

static void another_course_is_not_alike(void **state)
{
    (void)state;
    tg_test_run a = make_run("lr: 1\n", 1, 0.2, 0.5), b = make_run("lr: 2\n", 1, 0.2, 0.5);
    for (size_t i = 0; i < 200; i++)
        b.history.steps[i].loss = i < 100 ? 2 : 1.5;
    compare(&a, &b);
    assert_false(c.alike.alike);
    assert_float_equal(c.alike.within, 0.5, 1e-9);
    assert_float_equal(c.alike.most, 0.25, 1e-9);
    assert_int_equal(c.alike.equal_steps, 100);
    done(&a, &b);
}

static void accuracy_has_the_noise_of_its_photos(void **state)
{
    (void)state;
    tg_test_run a = make_run("lr: 1\n", 1, 0.2, 0.5), b = make_run("lr: 2\n", 1, 0.2, 0.5);
    const tg_eval_record in_a = {.val_top1 = 60, .val_top5 = NAN, .val_loss = 1, .val_images = 100};
    tg_eval_record in_b = in_a;
    in_b.val_top1 = 66;
    tg_test_run_evals(&a, 3, &in_a);
    tg_test_run_evals(&b, 2, &in_b);
    compare(&a, &b);
    assert_int_equal(change_of("top1"), TG_CHANGE_NONE); /* six of a hundred */
    assert_non_null(strstr(tg_comparison_row(&c, "top1")->name, "epoch 2"));
    for (size_t i = 0; i < 3; i++)
        a.history.evals[i].val_images = 10000;
    for (size_t i = 0; i < 2; i++)
        b.history.evals[i].val_images = 10000;
    tg_comparison_done(&c);
    compare(&a, &b);
    assert_int_equal(change_of("best_top1"), TG_CHANGE_MORE);
    done(&a, &b);
}

static void output_fits_and_reads_back(void **state)
{
    (void)state;
    tg_test_run a = make_run(
        "workers: 48\nmodel: a_name_that_is_longer_than_its_column_can_ever_be\n", 48, 0.4, 0.5);
    const tg_compare_prediction p = first_prediction(&a);
    tg_test_run b = followed(&p, "", 0.3);
    tg_text text = {0};
    tg_json json = {0};
    compare(&a, &b);
    tg_comparison_print_text(&c, &text);
    for (const char *at = tg_text_string(&text); *at; at += strcspn(at, "\n") + 1)
        if (strcspn(at, "\n") > 80)
            fail_msg("wider than 80: %.*s", (int)strcspn(at, "\n"), at);
    tg_text_clear(&text);
    tg_comparison_print_json(&c, &text);
    assert_ok(tg_json_parse(tg_text_string(&text), text.length, "json", &json));
    tg_json_done(&json);
    tg_compare_line lines[2];
    assert_ok(tg_compare_line_make(&a.history, &lines[0]));
    assert_ok(tg_compare_line_make(&b.history, &lines[1]));
    assert_float_equal(lines[0].images_per_s, 64, 1e-6);
    tg_text_clear(&text);
    tg_compare_lines_print_text(lines, 2, &text);
    for (const char *at = tg_text_string(&text); *at; at += strcspn(at, "\n") + 1)
        assert_true(strcspn(at, "\n") <= 80);
    free(lines[0].path);
    free(lines[1].path);
    tg_text_done(&text);
    done(&a, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_beside_itself_differs_in_nothing),
        cmocka_unit_test(settings_that_differ_are_listed),
        cmocka_unit_test(what_lies_inside_the_noise_is_none),
        cmocka_unit_test(steps_of_other_size_are_compared_by_photos),
        cmocka_unit_test(operations_come_and_go),
        cmocka_unit_test(a_prediction_is_held_against_the_measurement),
        cmocka_unit_test(too_much_at_once_is_said),
        cmocka_unit_test(another_value_than_advised_says_nothing),
        cmocka_unit_test(a_rule_that_lacks_its_input_resolves_nothing),
        cmocka_unit_test(another_course_is_not_alike),
        cmocka_unit_test(accuracy_has_the_noise_of_its_photos),
        cmocka_unit_test(output_fits_and_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
