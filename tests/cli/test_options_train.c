/* The training options: the tables fill the training options with their stated defaults, and what
 * is resolved afterwards follows its rules. */
#include "support/check.h"

#include "cli/options_train.h"

#include <math.h>
#include <string.h>

static tg_train_settings got;

/* What cli/command.h does with a command's groups. */
static void parse(tg_options *options, int count, const char *const *argv)
{
    static const struct {
        const char *title;
        const tg_option *options;
        size_t count, offset;
    } tables[] = {TG_TRAIN_GROUPS, TG_DISTILL_GROUP};
    enum { COUNT = sizeof tables / sizeof tables[0] };
    static tg_option_group groups[COUNT];
    for (size_t g = 0; g < COUNT; g++)
        groups[g] = (tg_option_group){tables[g].title, tables[g].options, tables[g].count,
                                      (char *)&got + tables[g].offset};
    memset(&got, 0, sizeof got);
    assert_ok(tg_options_init(options, groups, COUNT));
    assert_ok(tg_options_parse_arguments(options, count, argv));
}

#define SAME(field) assert_true(got.train.field == want.field)
#define BOTH_NAN(field) assert_true(isnan(got.train.field) && isnan(want.field))
#define SAME_TEXT(field) assert_string_equal(got.train.field, want.field)

static void defaults_are_those_of_training(void **state)
{
    (void)state;
    tg_options options;
    tg_train_options want = tg_train_options_default();
    parse(&options, 0, NULL);
    assert_ok(tg_train_settings_resolve(&got, "train", 1, TG_CPU_LEVEL_COUNT));
    SAME_TEXT(model.model);
    SAME(model.initial_checkpoint), SAME(model.img_size), SAME(model.patch_size);
    SAME(model.embed_dim), SAME(model.depth), SAME(model.num_heads), SAME(model.reg_tokens);
    SAME(model.global_pool);
    SAME(model.num_classes), SAME(model.drop_path);
    SAME_TEXT(data.train_split), SAME_TEXT(data.val_split);
    SAME(data.data), SAME(data.workers), SAME(data.max_bad_share), SAME(data.strict);
    SAME(augment.scale_min), SAME(augment.ratio_min), SAME(augment.hflip), SAME(augment.vflip);
    SAME(augment.color_jitter), SAME(augment.reprob), SAME(augment.smoothing), SAME(augment.mixup);
    SAME(augment.cutmix), SAME(augment.mixup_prob), SAME(augment.mixup_switch_prob);
    SAME(augment.aa), SAME(augment.no_aug);
    BOTH_NAN(preprocess.crop_pct);
    SAME(preprocess.interpolation), SAME(preprocess.has_mean), SAME(preprocess.has_std);
    SAME(recipe.epochs), SAME(recipe.batch_size), SAME(recipe.grad_accum_steps);
    BOTH_NAN(recipe.lr);
    SAME(recipe.min_lr), SAME(recipe.warmup_lr), SAME(recipe.warmup_epochs), SAME(recipe.sched);
    SAME(recipe.weight_decay), SAME(recipe.beta1), SAME(recipe.beta2), SAME(recipe.eps);
    SAME(recipe.layer_decay), SAME(recipe.clip_grad), SAME(recipe.model_ema);
    SAME(recipe.model_ema_decay), SAME(recipe.amp), SAME(recipe.seed);
    SAME(distill.teacher), SAME(distill.objective.kd), SAME(distill.objective.alpha);
    SAME(distill.objective.temperature), SAME(distill.objective.reduction);
    SAME(output.resume), SAME(output.checkpoint_hist), SAME(output.checkpoint_steps);
    SAME(output.eval_interval), SAME(output.max_steps), SAME(output.trace_last), SAME(output.trace),
        SAME(output.trace_outliers), SAME(output.trace_budget_mib);
    SAME(output.monitor_interval_ms), SAME(output.monitor_budget_mib);
    SAME(threads), SAME(cpu_cap);
    assert_memory_equal(got.train.output.output, "runs/train-2", 12);
    tg_options_done(&options);
}

static void options_reach_their_fields(void **state)
{
    (void)state;
    tg_options options;
    const char *argv[] = {"--scale",
                          "0.3",
                          "1",
                          "--ratio",
                          "0.5",
                          "2",
                          "--mean",
                          "0.5",
                          "--std",
                          "0.1",
                          "0.2",
                          "0.3",
                          "--opt-betas",
                          "0.8,0.99",
                          "--interpolation",
                          "bilinear",
                          "--amp",
                          "--teacher",
                          "t",
                          "--kd-loss",
                          "feature",
                          "--kd-reduction",
                          "mean",
                          "--output",
                          "o",
                          "--experiment",
                          "e",
                          "--sched",
                          "constant",
                          "--no-aug"};
    parse(&options, sizeof argv / sizeof argv[0], argv);
    assert_ok(tg_train_settings_resolve(&got, "distill", 3, TG_CPU_AVX2));
    const tg_train_options *t = &got.train;
    assert_true(t->augment.scale_min == 0.3 && t->augment.ratio_min == 0.5 && t->augment.no_aug);
    assert_true(t->preprocess.has_mean && t->preprocess.mean[2] == 0.5);
    assert_true(t->preprocess.has_std && t->preprocess.std[1] == 0.2);
    assert_true(t->recipe.beta1 == 0.8 && t->recipe.beta2 == 0.99 && t->recipe.amp);
    assert_int_equal(t->recipe.sched, TG_SCHEDULE_CONSTANT);
    assert_int_equal(t->preprocess.interpolation, TG_BILINEAR);
    assert_int_equal(t->distill.objective.kd, TG_KD_FEATURE);
    assert_int_equal(t->distill.objective.reduction, TG_KD_MEAN);
    assert_string_equal(t->output.output, "o/e");
    assert_true(t->threads == 3 && t->cpu_cap == TG_CPU_AVX2);
    tg_options_done(&options);
}

static void amp_in_float32_is_no_amp(void **state)
{
    (void)state;
    tg_options options;
    const char *argv[] = {"--amp", "--amp-dtype", "float32"};
    parse(&options, 3, argv);
    assert_ok(tg_train_settings_resolve(&got, "train", 1, TG_CPU_AMX));
    assert_false(got.train.recipe.amp);
    tg_options_done(&options);
}

static void impossible_values_are_refused(void **state)
{
    (void)state;
    const char *cases[][2] = {{"--scale", "0.1,0.5"}, {"--ratio", "0.5,3"}, {"--ratio", "2"},
                              {"--mean", "1,2"},      {"--std", "1,2,3,4"}, {"--opt-betas", "0.9"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_options options;
        parse(&options, 2, cases[i]);
        assert_error(tg_train_settings_resolve(&got, "train", 1, TG_CPU_AMX), TG_ERROR_USAGE,
                     cases[i][0]);
        tg_options_done(&options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_training),
        cmocka_unit_test(options_reach_their_fields),
        cmocka_unit_test(amp_in_float32_is_no_amp),
        cmocka_unit_test(impossible_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
