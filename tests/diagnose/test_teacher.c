/* TeacherCost, TeacherDisagrees, KdShareSmall, PreprocessingDiffers, NonFiniteLoss, FlatLoss: runs that have it, and what
 * only looks like it. */
#include "support/check.h"
#include "support/diagnose.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DISTIL                                                                                     \
    "teacher: runs/big\nepochs: 300\namp: true\nkd-reduction: batchmean\nkd-temperature: 4\n"

/* A teacher that is right on so many percent of 1000 photos of 10 classes; NaN: it was not scored. */
static tg_test_run make_run(double top1, double alpha)
{
    char text[512];
    tg_test_run run = tg_test_run_new();
    if (isnan(top1))
        snprintf(text, sizeof text,
                 "{\"data\":{\"train_images\":1000,\"classes\":10},\"teacher_score\":null}");
    else
        snprintf(
            text, sizeof text,
            "{\"data\":{\"train_images\":1000,\"classes\":10},\"teacher_score\":{\"val_top1\":%g,"
            "\"val_images\":1000}}",
            top1);
    tg_test_run_info(&run, text);
    snprintf(text, sizeof text, DISTIL "kd-alpha: %g\n", alpha);
    tg_test_run_options(&run, text);
    return run;
}

static void add_steps(tg_test_run *run, double teacher, double task, double kd)
{
    tg_step_record step = tg_test_step(0.2);
    step.t_teacher = teacher;
    step.t_forward = (0.2 - teacher) / 3;
    step.t_backward = 2 * step.t_forward;
    step.loss_task = task;
    step.loss_kd = kd;
    tg_test_run_steps(run, 100, &step);
}

static void test_cost(void **state)
{
    (void)state;
    tg_test_run run = make_run(80, 0.5);
    add_steps(&run, 0.1, 1, 1);
    const tg_finding *f = tg_test_fires(&run, "TeacherCost", NULL);
    /* 1000 photos, 300 epochs, 10 classes of 4 bytes and a seed */
    assert_true(tg_test_evidence(f, "answers of all epochs, kept on a disk") == 1000.0 * 300 * 44);
    assert_non_null(strstr(f->advice, "cannot keep them yet"));
    assert_string_equal(f->option, ""); /* it promises nothing that there is no option for */
    assert_true(isnan(f->predicted_step_s));
    tg_test_run_done(&run);
    run = make_run(80, 0.5);
    add_steps(&run, 0.039, 1, 1);
    tg_test_is_quiet(&run, "TeacherCost", NULL);
    tg_test_run_done(&run);
}

static void test_disagrees(void **state)
{
    (void)state;
    tg_test_run run = make_run(11, 0.5);
    const tg_finding *f = tg_test_fires(&run, "TeacherDisagrees", NULL);
    assert_int_equal(f->severity, TG_SEVERITY_SERIOUS);
    assert_true(tg_test_evidence(f, "guessing") == 10);
    tg_test_run_done(&run);
    run = make_run(35, 0.5); /* weak, and far from guessing */
    tg_test_is_quiet(&run, "TeacherDisagrees", NULL);
    tg_eval_record eval = {.val_top1 = 42, .val_top5 = 90, .val_loss = 1, .val_images = 1000};
    tg_test_run_evals(&run, 3, &eval);
    f = tg_test_fires(&run, "TeacherDisagrees", NULL);
    assert_true(tg_test_evidence(f, "the student's best top-1") == 42);
    tg_test_run_done(&run);
    run = make_run(NAN, 0.5);
    tg_test_lacks(&run, "TeacherDisagrees", "score");
    tg_test_run_done(&run);
}

static void test_share(void **state)
{
    (void)state;
    tg_test_run run = make_run(80, 0.1);
    add_steps(&run, 0.1, 2, 0.15); /* 0.83 % */
    const tg_finding *f = tg_test_fires(&run, "KdShareSmall", NULL);
    assert_string_equal(f->option, "kd-alpha");
    assert_string_equal(f->new_value, "0.5");
    tg_test_run_done(&run);
    run = make_run(80, 0.1);
    add_steps(&run, 0.1, 2, 0.2); /* 1.1 % */
    tg_test_is_quiet(&run, "KdShareSmall", NULL);
    tg_test_run_done(&run);
    run = make_run(80, 1); /* there is nothing else */
    add_steps(&run, 0.1, NAN, 1e-9);
    tg_test_is_quiet(&run, "KdShareSmall", NULL);
    tg_test_run_done(&run);
    run = make_run(80, 0.5);
    add_steps(&run, 0.1, NAN, 1);
    tg_test_lacks(&run, "KdShareSmall", "terms");
    tg_test_run_done(&run);
}

#define VIEW(mean, crop, how)                                                                      \
    "{\"width_px\":224,\"height_px\":224,\"crop_pct\":" crop ",\"crop_mode\":\"center\","          \
    "\"interpolation\":\"" how "\",\"mean\":[" mean "," mean "," mean "],\"std\":[0.2,0.2,0.2]}"

static tg_test_run viewed(const char *student, const char *stored)
{
    char text[1024];
    tg_test_run run = tg_test_run_new();
    snprintf(text, sizeof text, "{\"preprocess\":{\"student\":%s,\"stored\":%s,\"teacher\":null}}",
             student, stored);
    tg_test_run_info(&run, text);
    return run;
}

static void test_preprocessing(void **state)
{
    (void)state;
    tg_test_run run = viewed(VIEW("0.5", "0.9", "bicubic"), VIEW("0.45", "0.9", "bicubic"));
    const tg_finding *f = tg_test_fires(&run, "PreprocessingDiffers", NULL);
    assert_string_equal(f->option, "mean");
    assert_string_equal(f->new_value, "0.45 0.45 0.45");
    tg_test_run_done(&run);
    run = viewed(VIEW("0.5", "0.9", "bicubic"), VIEW("0.5", "0.9", "bilinear"));
    f = tg_test_fires(&run, "PreprocessingDiffers", NULL);
    assert_string_equal(f->option, "interpolation");
    assert_int_equal(f->severity, TG_SEVERITY_NOTE);
    tg_test_run_done(&run);
    run = viewed(VIEW("0.5", "0.9", "bicubic"),
                 VIEW("0.49", "0.9", "bicubic")); /* as good as equal */
    tg_test_is_quiet(&run, "PreprocessingDiffers", NULL);
    tg_test_run_done(&run);
    run = viewed(VIEW("0.5", "0.9", "bicubic"), "null"); /* made anew */
    tg_test_is_quiet(&run, "PreprocessingDiffers", NULL);
    tg_test_run_done(&run);
    run = tg_test_run_new();
    tg_test_run_info(&run, "{\"command\":\"train\"}"); /* of an older program */
    tg_test_lacks(&run, "PreprocessingDiffers", "run.json");
    tg_test_run_done(&run);
}

static void test_finite(void **state)
{
    (void)state;
    tg_test_run run = make_run(80, 0.5);
    add_steps(&run, 0, 2, NAN);
    tg_test_is_quiet(&run, "NonFiniteLoss", NULL); /* a term that is not used is no fault */
    run.history.steps[40].loss = NAN;
    const tg_finding *f = tg_test_fires(&run, "NonFiniteLoss", NULL);
    assert_int_equal(f->severity, TG_SEVERITY_WARNING);
    assert_int_equal(f->first_step, 41);
    run.history.steps[41].grad_norm = NAN;
    f = tg_test_fires(&run, "NonFiniteLoss", NULL);
    assert_int_equal(f->severity, TG_SEVERITY_SERIOUS);
    assert_true(tg_test_evidence(f, "most in a row") == 2);
    tg_test_run_done(&run);
}

static void test_flat(void **state)
{
    (void)state;
    tg_test_run run = make_run(80, 0.5);
    add_steps(&run, 0, 2.30, NAN);
    tg_test_is_quiet(&run, "FlatLoss", NULL); /* 100 steps are early days */
    add_steps(&run, 0, 2.30, NAN);
    const tg_finding *f = tg_test_fires(&run, "FlatLoss", NULL);
    assert_true(fabs(tg_test_evidence(f, "ln of the number of classes") - log(10)) < 1e-9);
    for (size_t i = 0; i < run.history.step_count; i++)
        run.history.steps[i].lr = 1e-7;
    f = tg_test_fires(&run, "FlatLoss", NULL);
    assert_string_equal(f->option, "lr");
    add_steps(&run, 0, 2.25, NAN); /* 2.3 % below */
    tg_test_is_quiet(&run, "FlatLoss", NULL);
    tg_test_run_done(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost),   cmocka_unit_test(test_disagrees),
        cmocka_unit_test(test_share),  cmocka_unit_test(test_preprocessing),
        cmocka_unit_test(test_finite), cmocka_unit_test(test_flat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
