/* Float32WhereBfloat16: a machine that multiplies bfloat16 faster, and a job that does not ask for it. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include <math.h>
#include <string.h>

enum { SHARE, GAIN };

static const tg_rule_limit LIMITS[] = {
    {"product_share", 85, 1, 100,
     "percent of forward and backward that is products, where no "
     "operations were recorded"},
    {"gain", 5, 0, 100, "percent of the step that bfloat16 must be predicted to bring"},
};

/* How many times faster than fp32 the machine's largest products are in bfloat16, by its instruction set
 * (docs/OBSERVE.md). */
static const struct {
    const char *set;
    double times;
} SPEED[] = {{"avx512_bf16", 1.86}, {"amx", 6.0}};

typedef struct precision {
    double times;  /* bfloat16 against fp32 */
    double share;  /* of forward, backward and teacher that is products in fp32 */
    bool measured; /* both come from this run's operations */
} precision;

static double times_of_set(const tg_history *history)
{
    const char *set = tg_history_info_text(history, "kernels.instruction_set");
    for (size_t i = 0; set && i < sizeof SPEED / sizeof *SPEED; i++)
        if (strcmp(SPEED[i].set, set) == 0)
            return SPEED[i].times;
    return 1;
}

/* Share of the recorded forward and backward that goes to products of fp32; NaN: nothing recorded. */
static double product_share(const tg_operations *ops)
{
    double products = 0, all = 0;
    for (size_t i = 0; i < ops->count; i++) {
        const tg_operation *o = &ops->each[i];
        if (strcmp(o->phase, "forward") != 0 && strcmp(o->phase, "backward") != 0 &&
            strcmp(o->phase, "teacher") != 0)
            continue;
        all += o->seconds;
        products += o->flops > 0 && strcmp(o->dtype, "float32") == 0 ? o->seconds : 0;
    }
    return all > 0 ? products / all : NAN;
}

static precision find_precision(const tg_history *history, const double *limits)
{
    precision p = {times_of_set(history), limits[SHARE] / 100, false};
    if (!history->operation_ranks || p.times <= 1)
        return p;
    const tg_operations *ops = &history->operations[0];
    const double share = product_share(ops);
    const double times = ops->peak_flops_bf16 / ops->peak_flops_f32;
    if (share >= 0)
        p.share = share;
    if (times > 0)
        p.times = times;
    p.measured = share >= 0 && times > 0;
    return p;
}

static tg_status report(const tg_history *history, const tg_use_steps *steps, const precision *p,
                        double step_s, tg_findings *out)
{
    tg_finding *f = tg_findings_add(out, "Float32WhereBfloat16", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    const char *set = tg_history_info_text(history, "kernels.instruction_set");
    TG_FINDING_SAY(f->title,
                   "the step computes in float32, on cores that do bfloat16 products %.2g "
                   "times as fast",
                   p->times);
    TG_FINDING_SAY(f->cause,
                   "products of matrices are %.0f %% of forward and backward%s, and the cores have "
                   "instructions for bfloat16 (%s); sums, moments and weights stay float32",
                   100 * p->share, p->measured ? ", as recorded" : " as a rule", set);
    tg_common_mark(f, steps);
    tg_finding_add_evidence(f, "forward, backward and teacher of the step",
                            100 * tg_common_compute(steps) / steps->step_s, "%");
    tg_finding_add_evidence(f, "products in float32, of these", 100 * p->share, "%");
    tg_finding_add_evidence(f, "products in bfloat16 against float32", p->times, "times");
    if (tg_common_option_is(history, "amp", "true"))
        tg_finding_set_option(f, "amp-dtype", "float32", "bfloat16");
    else
        tg_finding_set_option(f, "amp", "false", "true");
    tg_finding_predict(f, steps->step_s, step_s, p->measured ? 0.8 : 0.6);
    return TG_OK;
}

static tg_status check(const tg_history *history, const double *limits, tg_findings *out,
                       const char **lack)
{
    const tg_use_steps steps = tg_use_of_steps(history);
    if (!steps.steps || !tg_history_option(history, "amp")) {
        *lack = steps.steps ? "the option amp (job.yaml)" : TG_LACKS_STEPS;
        return TG_END;
    }
    const bool narrow = tg_common_option_is(history, "amp", "true") &&
                        !tg_common_option_is(history, "amp-dtype", "float32");
    const precision p = find_precision(history, limits);
    if (narrow || p.times <= 1)
        return TG_OK;
    const double compute = tg_common_compute(&steps);
    const double step_s = steps.step_s - compute * p.share * (1 - 1 / p.times);
    if (step_s > (1 - limits[GAIN] / 100) * steps.step_s)
        return TG_OK;
    return report(history, &steps, &p, step_s, out);
}

const tg_rule tg_rule_float32_where_bfloat16 = {
    .name = "Float32WhereBfloat16",
    .asks = "whether a job computes in float32 on cores that are faster in bfloat16",
    .needs = TG_INPUT_INFO | TG_INPUT_OPTIONS | TG_INPUT_STEPS,
    .limits = LIMITS,
    .limit_count = sizeof LIMITS / sizeof *LIMITS,
    .check = check,
};
