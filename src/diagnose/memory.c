/* What memory there is, and what it could do: OptimizerNotSharded, LargerBatch. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include <math.h>

/* Rows of run.json, of the rank that needs the most; NaN: unknown. */
typedef struct rows {
    double moments, average, predicted, available;
    double per_image;  /* of a rank's batch: activations and batches of photos */
    double own_images; /* of a rank in a micro-batch */
} rows;

static double known_or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

static rows read_rows(const tg_history *history)
{
    const double group = tg_history_option_number(history, "global-batch-size");
    rows r = {
        .moments = tg_history_info_number(history, "memory.moments_bytes.most"),
        .average = known_or_zero(tg_history_info_number(history, "memory.average_bytes.most")),
        .predicted = tg_history_info_number(history, "memory.predicted_bytes"),
        .available = tg_history_info_number(history, "memory.available_bytes"),
        .own_images = tg_history_option_number(history, "batch-size"),
    };
    if (group > 0)
        r.own_images = ceil(group / history->ranks);
    r.per_image = (tg_history_info_number(history, "memory.activations_bytes.most") +
                   tg_history_info_number(history, "memory.batches_bytes.most")) /
                  r.own_images;
    return r;
}

enum { SAVED };

static const tg_rule_limit SHARDING_LIMITS[] = {
    {"saved", 5, 0, 100, "percent of a rank's memory that sharding must free"},
};

static tg_status report_sharding(const rows *r, int ranks, double saved, tg_findings *out)
{
    char has[TG_COMMON_SECONDS], needs[TG_COMMON_SECONDS];
    tg_finding *f =
        tg_findings_add(out, "OptimizerNotSharded",
                        saved > 0.2 * r->predicted ? TG_SEVERITY_WARNING : TG_SEVERITY_NOTE);
    if (!f)
        return TG_ERROR_MACHINE;
    const double state = r->moments + r->average;
    TG_FINDING_SAY(f->title,
                   "each of %d ranks holds all of the optimizer's %s; a share of it is %s", ranks,
                   tg_common_bytes(state, has), tg_common_bytes(state / ranks, needs));
    TG_FINDING_SAY(f->cause,
                   "with --zero 0 every rank keeps moments%s of all weights and makes the same "
                   "update; with --zero 1 each keeps and updates its share, and with --amp "
                   "weights travel as bfloat16",
                   r->average > 0 ? " and the average" : "");
    tg_finding_add_evidence(f, "moments and average of a rank", state, "bytes");
    tg_finding_add_evidence(f, "of it freed by shares", saved, "bytes");
    tg_finding_add_evidence(f, "memory of a rank", r->predicted, "bytes");
    const double more = floor(saved / r->per_image);
    tg_finding_add_evidence(f, "photos of a rank", r->own_images, "photos");
    if (more >= 1) {
        tg_finding_add_evidence(f, "photos that fit into what is freed", more, "photos");
        TG_FINDING_SAY(f->advice,
                       "What is freed holds %.0f more photos a rank, %.0f in place of %.0f", more,
                       r->own_images + more, r->own_images);
    }
    tg_finding_set_number(f, "zero", 0, 1);
    return TG_OK;
}

static tg_status check_sharding(const tg_history *history, const double *limits, tg_findings *out,
                                const char **lack)
{
    const rows r = read_rows(history);
    const double zero = tg_history_option_number(history, "zero");
    if (history->ranks < 2 || zero == 1)
        return TG_OK;
    if (isnan(r.moments) || isnan(r.predicted) || isnan(zero)) {
        *lack = "the rows of memory (run.json) and the option zero (job.yaml)";
        return TG_END;
    }
    const double saved = (r.moments + r.average) * (1 - 1.0 / history->ranks);
    return saved >= limits[SAVED] / 100 * r.predicted
               ? report_sharding(&r, history->ranks, saved, out)
               : TG_OK;
}

const tg_rule tg_rule_optimizer_not_sharded = {
    .name = "OptimizerNotSharded",
    .asks = "whether ranks could share the optimizer's state, and what that would free",
    .needs = TG_INPUT_INFO | TG_INPUT_OPTIONS,
    .limits = SHARDING_LIMITS,
    .limit_count = sizeof SHARDING_LIMITS / sizeof *SHARDING_LIMITS,
    .check = check_sharding,
};

enum { GAIN, ROOM, LARGEST };

static const tg_rule_limit BATCH_LIMITS[] = {
    {"gain", 4, 0, 100,
     "percent more photos a second that a larger batch must be predicted to bring"},
    {"room", 80, 1, 100, "percent of the memory that may be used"},
    {"largest", 128, 1, 1e6, "photos of a rank beyond which it is not asked for"},
};

/* What a step costs whatever its photos: update, exchange that is not hidden, and passes over weights and their
 * gradients in forward and backward, a third of the update (docs/OBSERVE.md). */
#define PASSES 0.3

static double fixed_cost(const tg_use_steps *s)
{
    return s->exchange_s + s->optimizer_s * (1 + PASSES) + s->other_s;
}

/* Doubled as long as memory, the limit and the data allow, and until half of what can be gained is. */
static double choose_batch(const tg_history *history, const rows *r, const double *limits)
{
    const double photos = tg_history_info_number(history, "data.train_images");
    double room = limits[LARGEST], batch = r->own_images;
    if (r->per_image > 0)
        room =
            fmin(room, batch + (limits[ROOM] / 100 * r->available - r->predicted) / r->per_image);
    if (photos > 0) /* some steps an epoch must stay */
        room = fmin(room, photos / history->ranks / 8);
    while (2 * batch <= room && batch < 8 * r->own_images)
        batch *= 2;
    return batch;
}

static tg_status report_batch(const tg_history *history, const tg_use_steps *s, const rows *r,
                              double batch, double step_s, tg_findings *out)
{
    char need[TG_COMMON_SECONDS], has[TG_COMMON_SECONDS];
    tg_finding *f = tg_findings_add(out, "LargerBatch", TG_SEVERITY_NOTE);
    if (!f)
        return TG_ERROR_MACHINE;
    const double fixed = fixed_cost(s);
    TG_FINDING_SAY(f->title, "%.0f %% of a step of %.0f photos is the same for any number of them",
                   100 * fixed / s->step_s, s->images);
    TG_FINDING_SAY(
        f->cause,
        "update, exchange and passes over the weights come once a step; %.0f photos a rank "
        "need %s of the %s that there are",
        batch, tg_common_bytes(r->predicted + r->per_image * (batch - r->own_images), need),
        tg_common_bytes(r->available, has));
    TG_FINDING_SAY(f->advice,
                   "A larger batch is another recipe: raise --lr with it (by the square root "
                   "for AdamW) and look at the accuracy");
    tg_common_mark(f, s);
    tg_finding_add_evidence(f, "update, a step", s->optimizer_s, "s");
    tg_finding_add_evidence(f, "waiting for other ranks, a step", s->exchange_s, "s");
    tg_finding_add_evidence(f, "memory of a rank", r->predicted, "bytes");
    tg_finding_add_evidence(f, "memory that it may use", r->available, "bytes");
    tg_finding_add_evidence(f, "memory of a photo", r->per_image, "bytes");
    if (tg_history_option_number(history, "global-batch-size") > 0)
        tg_finding_set_number(f, "global-batch-size",
                              tg_history_option_number(history, "global-batch-size"),
                              batch * history->ranks);
    else
        tg_finding_set_number(f, "batch-size", r->own_images, batch);
    tg_finding_predict(f, s->step_s, step_s, 0.5);
    return TG_OK;
}

static tg_status check_batch(const tg_history *history, const double *limits, tg_findings *out,
                             const char **lack)
{
    const tg_use_steps s = tg_use_of_steps(history);
    const rows r = read_rows(history);
    if (!s.steps || isnan(r.per_image) || isnan(r.predicted) || isnan(r.available)) {
        *lack =
            s.steps ? "the rows of memory (run.json) and batch-size (job.yaml)" : TG_LACKS_STEPS;
        return TG_END;
    }
    const double batch = choose_batch(history, &r, limits);
    const double step_s = s.step_s - fixed_cost(&s) * (1 - r.own_images / batch);
    if (batch <= r.own_images || s.step_s / step_s < 1 + limits[GAIN] / 100)
        return TG_OK;
    return report_batch(history, &s, &r, batch, step_s, out);
}

/* While threads are pushed aside, what a step costs by itself is not seen. */
static const char *const BATCH_YIELD[] = {"LoaderOversubscription", "LoaderStarvation", "OtherJobs",
                                          "CgroupThrottling",       "WrongAffinity",    NULL};

const tg_rule tg_rule_larger_batch = {
    .name = "LargerBatch",
    .asks = "whether memory is left for a batch that would make more photos a second",
    .needs = TG_INPUT_INFO | TG_INPUT_OPTIONS | TG_INPUT_STEPS,
    .yields_to = BATCH_YIELD,
    .limits = BATCH_LIMITS,
    .limit_count = sizeof BATCH_LIMITS / sizeof *BATCH_LIMITS,
    .check = check_batch,
};
