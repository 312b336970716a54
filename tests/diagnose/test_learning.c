/* LossNotDecreasing, ExplodingTensor, VanishingGradient, Overfit, Overtraining, StalledTraining and ClassImbalance: runs
 * that fire them, and runs that only look like it. */
#include "support/check.h"
#include "support/diagnose.h"

#include <math.h>
#include <string.h>

static double noise(size_t i)
{
    return (double)((i * 7919) % 101) / 50 - 1;
}

static tg_test_run with_losses(size_t steps, double (*loss)(size_t i))
{
    tg_test_run run = tg_test_run_new();
    const tg_step_record step = tg_test_step(0.1);
    tg_test_run_steps(&run, steps, &step);
    for (size_t i = 0; i < steps; i++)
        run.history.steps[i].loss = run.history.steps[i].loss_task = loss(i);
    return run;
}

static double by_chance(size_t i)
{
    return log(10) + 0.05 * noise(i);
}

static double learning(size_t i)
{
    return 2.3 * exp(-(double)i / 400) + 0.3 * noise(i);
}

static double learnt(size_t i) /* and level since long */
{
    return 0.1 + 2.2 * exp(-(double)i / 20) + 0.02 * noise(i);
}

static double rising(size_t i)
{
    return 1 + 1.3 * exp(-(double)i / 30) + (i > 300 ? 0.002 * (double)(i - 300) : 0) +
           0.05 * noise(i);
}

static void test_flat(void **state)
{
    tg_test_run run = with_losses(400, by_chance);
    (void)state;
    tg_test_run_info(&run, "{\"data\":{\"classes\":10}}");
    const tg_finding *f = tg_test_fires(&run, "LossNotDecreasing", NULL);
    assert_int_equal(f->severity, TG_SEVERITY_SERIOUS);
    assert_non_null(strstr(f->cause, "by chance"));
    tg_test_run_done(&run);
}

static void test_rising(void **state)
{
    tg_test_run run = with_losses(500, rising);
    (void)state;
    const tg_finding *f = tg_test_fires(&run, "LossNotDecreasing", NULL);
    assert_non_null(strstr(f->title, "rises"));
    tg_test_is_quiet(&run, "LossNotDecreasing", "LossNotDecreasing.increase_threshold_percent=80");
    tg_test_run_done(&run);
}

static void test_loss_lookalikes(void **state)
{
    tg_test_run run = with_losses(400, learning);
    (void)state;
    tg_test_is_quiet(&run, "LossNotDecreasing", NULL);
    tg_test_run_done(&run);
    run = with_losses(1000, learnt);
    tg_test_is_quiet(&run, "LossNotDecreasing", NULL);
    tg_test_run_done(&run);
    run = with_losses(99, by_chance);
    tg_test_lacks(&run, "LossNotDecreasing", "100");
    tg_test_run_done(&run);
}

static void test_not_finite(void **state)
{
    tg_test_run run = with_losses(400, learning);
    (void)state;
    tg_test_is_quiet(&run, "ExplodingTensor", NULL);
    run.history.steps[200].grad_norm = NAN;
    const tg_finding *f = tg_test_fires(&run, "ExplodingTensor", NULL);
    assert_int_equal(f->severity, TG_SEVERITY_WARNING);
    assert_int_equal(f->first_step, 201);
    for (size_t i = 390; i < 400; i++)
        run.history.steps[i].loss = NAN;
    f = tg_test_fires(&run, "ExplodingTensor", NULL);
    assert_int_equal(f->severity, TG_SEVERITY_SERIOUS);
    assert_non_null(strstr(f->title, "up to the last"));
    tg_test_run_done(&run);
}

static void test_vanishing(void **state)
{
    tg_test_run run = with_losses(100, by_chance);
    (void)state;
    tg_test_lacks(&run, "VanishingGradient", "size of the model");
    tg_test_run_info(&run, "{\"memory\":{\"weights_bytes\":{\"most\":4000000}}}");
    tg_test_is_quiet(&run, "VanishingGradient", NULL);
    for (size_t i = 0; i < 100; i++)
        run.history.steps[i].grad_norm = 5e-5; /* of a million parameters */
    tg_test_fires(&run, "VanishingGradient", NULL);
    run.history.steps[99].loss = 1e-3; /* nothing is left to learn */
    tg_test_is_quiet(&run, "VanishingGradient", NULL);
    tg_test_run_done(&run);
}

/* Ten epochs of ten steps, their training loss falling to `end`; evaluations as given. */
static tg_test_run with_evals(double end, const double *val_loss, const double *top1)
{
    tg_test_run run = tg_test_run_new();
    const tg_step_record step = tg_test_step(0.1);
    tg_test_run_steps(&run, 100, &step);
    for (size_t i = 0; i < 100; i++) {
        run.history.steps[i].epoch = (int64_t)i / 10;
        run.history.steps[i].loss_task = 2 + (end - 2) * (double)(i / 10) / 9;
    }
    for (int e = 0; e < 10; e++)
        tg_test_run_evals(&run, 1,
                          &(tg_eval_record){.val_loss = val_loss[e],
                                            .val_top1 = top1[e],
                                            .val_images = 100,
                                            .time = TG_TEST_RUN_BEGIN + e + 1});
    return run;
}

static void test_overfit(void **state)
{
    static const double GOING_UP[10] = {2, 1.9, 1.8, 1.8, 1.8, 1.9, 2, 2.1, 2.2, 2.3};
    static const double ALONG[10] = {2, 1.9, 1.7, 1.5, 1.3, 1.1, 0.9, 0.7, 0.6, 0.5};
    static const double TOP1[10] = {20, 30, 40, 45, 46, 46, 46, 45, 45, 44};
    static const double BETTER[10] = {20, 30, 40, 45, 50, 55, 60, 62, 64, 66};
    (void)state;
    tg_test_run run = with_evals(0.4, GOING_UP, TOP1);
    assert_int_equal(tg_test_fires(&run, "Overfit", NULL)->severity, TG_SEVERITY_WARNING);
    const tg_finding *f = tg_test_fires(&run, "Overtraining", NULL);
    assert_string_equal(f->option, "epochs");
    assert_string_equal(f->new_value, "5");
    tg_test_run_done(&run);
    run = with_evals(0.4, GOING_UP, BETTER); /* sure of itself, but more often right */
    assert_int_equal(tg_test_fires(&run, "Overfit", NULL)->severity, TG_SEVERITY_NOTE);
    tg_test_is_quiet(&run, "Overtraining", NULL);
    tg_test_run_done(&run);
    run = with_evals(0.4, ALONG, BETTER);
    tg_test_is_quiet(&run, "Overfit", NULL);
    tg_test_is_quiet(&run, "Overtraining", NULL);
    run.history.eval_count = 5;
    tg_test_lacks(&run, "Overfit", "evaluations");
    tg_test_lacks(&run, "Overtraining", "evaluations");
    tg_test_run_done(&run);
}

static void move_later(tg_test_run *run, size_t from, double seconds)
{
    for (size_t i = from; i < run->history.step_count; i++)
        run->history.steps[i].time += seconds;
}

static void test_stalled(void **state)
{
    tg_test_run run = with_losses(100, learning);
    (void)state;
    tg_test_run_machine(&run, 2, 2, 1);
    tg_test_is_quiet(&run, "StalledTraining", NULL);
    move_later(&run, 50, 1700);
    tg_test_is_quiet(&run, "StalledTraining", NULL);
    move_later(&run, 50, 200);
    const tg_finding *f = tg_test_fires(&run, "StalledTraining", NULL);
    assert_int_equal(f->first_step, 50);
    assert_int_equal(f->severity, TG_SEVERITY_WARNING);
    tg_test_run_span(&run, TG_SPAN_EVALUATION, TG_TEST_RUN_BEGIN + 6, 1895, 50);
    tg_test_is_quiet(&run, "StalledTraining", NULL);
    tg_test_run_done(&run);
}

/* No step any more, while samples of the machine go on: it stands still now. A run that has ended does not. */
static void test_stalled_now(void **state)
{
    tg_test_run run = with_losses(100, learning);
    tg_test_sample_values s = tg_test_sample();
    (void)state;
    tg_test_run_machine(&run, 2, 2, 1);
    s.seconds = 60;
    tg_test_run_samples(&run, "a", 2, 0, 40, &s);
    assert_int_equal(tg_test_fires(&run, "StalledTraining", NULL)->severity, TG_SEVERITY_SERIOUS);
    tg_test_run_info(&run, "{\"end\":\"2026-02-25T06:20:00.000Z\"}");
    tg_test_is_quiet(&run, "StalledTraining", NULL);
    tg_test_run_done(&run);
}

/* Killed, and resumed a day later. */
static void test_stalled_resumed(void **state)
{
    tg_test_run run = with_losses(100, learning);
    (void)state;
    tg_test_run_machine(&run, 2, 2, 1);
    move_later(&run, 50, 86400);
    tg_test_run_span(&run, TG_SPAN_ATTEMPT, TG_TEST_RUN_BEGIN + 86400, NAN, 50);
    tg_test_is_quiet(&run, "StalledTraining", NULL);
    for (size_t i = 0; i < 100; i++)
        run.history.steps[i].time = NAN;
    tg_test_lacks(&run, "StalledTraining", "time");
    tg_test_run_done(&run);
}

static void test_imbalance(void **state)
{
    tg_test_run run = tg_test_run_new();
    (void)state;
    tg_test_run_info(&run, "{\"data\":{\"classes\":3}}");
    tg_test_lacks(&run, "ClassImbalance", "data stats");
    tg_test_run_info(&run,
                     "{\"data\":{\"classes\":3,\"class_images\":{\"least\":20,\"most\":199}}}");
    tg_test_is_quiet(&run, "ClassImbalance", NULL);
    tg_test_run_info(&run,
                     "{\"data\":{\"classes\":3,\"class_images\":{\"least\":20,\"most\":201}}}");
    tg_test_fires(&run, "ClassImbalance", NULL);
    tg_test_run_done(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flat),
        cmocka_unit_test(test_rising),
        cmocka_unit_test(test_loss_lookalikes),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_vanishing),
        cmocka_unit_test(test_overfit),
        cmocka_unit_test(test_stalled),
        cmocka_unit_test(test_stalled_now),
        cmocka_unit_test(test_stalled_resumed),
        cmocka_unit_test(test_imbalance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
