#include "cli/options_idle.h"

#include "base/log.h"
#include "cli/command.h"

#include <string.h>

typedef struct idle_rule {
    const char *option;
    bool idle;
    const char *why;
} idle_rule;

static void warn(const tg_options *options, const idle_rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool said = false; /* by an earlier rule of the same option */
        for (size_t j = 0; j < i; j++)
            said = said || (rules[j].idle && strcmp(rules[j].option, rules[i].option) == 0);
        if (rules[i].idle && !said && tg_options_given(options, rules[i].option))
            tg_log_warning("--%s has no effect %s", rules[i].option, rules[i].why);
    }
}

static void warn_of_recipe(const tg_options *options, const tg_train_settings *s)
{
    const tg_recipe *r = &s->train.recipe;
    const idle_rule rules[] = {
        {"amp-dtype", !r->amp, "without --amp"},
        {"model-ema-decay", !r->model_ema, "without --model-ema"},
        {"warmup-lr", !(r->warmup_epochs > 0), "without warm-up (--warmup-epochs 0)"},
        {"min-lr", r->sched == TG_SCHEDULE_CONSTANT, "with --sched constant"},
    };
    warn(options, rules, TG_COUNT_OF(rules));
    if (r->min_lr > r->lr && r->sched != TG_SCHEDULE_CONSTANT)
        tg_log_warning("--min-lr %g is above --lr %g: the learning rate rises to it", r->min_lr,
                       r->lr);
    if (tg_options_given(options, "warmup-epochs") && r->epochs > 0 &&
        r->warmup_epochs >= (double)r->epochs)
        tg_log_warning(
            "--warmup-epochs %g leaves nothing of --epochs %lld: the learning rate never "
            "reaches --lr",
            r->warmup_epochs, (long long)r->epochs);
}

static void warn_of_augmentation(const tg_options *options, const tg_train_settings *s)
{
    static const char plain[] = "with --no-aug";
    const tg_augment_choice *a = &s->train.augment;
    const bool mixup = a->mixup > 0 && !a->no_aug, cutmix = a->cutmix > 0 && !a->no_aug;
    const idle_rule rules[] = {
        {"scale", a->no_aug, plain},
        {"ratio", a->no_aug, plain},
        {"hflip", a->no_aug, plain},
        {"vflip", a->no_aug, plain},
        {"color-jitter", a->no_aug, plain},
        {"aa", a->no_aug, plain},
        {"reprob", a->no_aug, plain},
        {"mixup", a->no_aug, plain},
        {"cutmix", a->no_aug, plain},
        {"color-jitter", a->aa && *a->aa, "with --aa"},
        {"mixup-prob", !mixup && !cutmix, "without --mixup or --cutmix"},
        {"mixup-switch-prob", !mixup || !cutmix, "without both --mixup and --cutmix"},
    };
    warn(options, rules, TG_COUNT_OF(rules));
}

static void warn_of_distillation(const tg_options *options, const tg_train_settings *s)
{
    const double alpha = s->train.distill.objective.alpha;
    const bool kl = s->extra.kd_loss + 1 == TG_KD_KL;
    const idle_rule rules[] = {
        {"kd-loss", alpha <= 0, "with --kd-alpha 0"},
        {"kd-temperature", alpha <= 0, "with --kd-alpha 0"},
        {"kd-reduction", alpha <= 0, "with --kd-alpha 0"},
        {"kd-temperature", !kl, "with --kd-loss hard or feature"},
        {"kd-reduction", !kl, "with --kd-loss hard or feature"},
        {"smoothing", alpha >= 1, "with --kd-alpha 1, which leaves the labels out"},
    };
    warn(options, rules, TG_COUNT_OF(rules));
}

void tg_train_settings_warn_idle(const tg_options *options, const tg_train_settings *settings)
{
    warn_of_recipe(options, settings);
    warn_of_augmentation(options, settings);
    if (settings->train.distill.teacher)
        warn_of_distillation(options, settings);
}
