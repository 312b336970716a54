/* ExposedCommunication: waiting for what travels between ranks, where nobody is late. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include <math.h>

#define MIB 1048576.0

enum { SHARE };

static const tg_rule_limit LIMITS[] = {
    {"share", 5, 0, 100, "percent of the step in which all ranks wait for one another"},
};

/* Mean over steps of what the rank that waited least waited: it waited for nobody but the wire. */
static double exposed_s(const tg_history *history, const tg_use_steps *s)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < history->rank_row_count; i++) {
        const tg_history_rank_row *row = &history->rank_rows[i];
        double least = INFINITY;
        if (row->step < s->first_step || row->step > s->last_step)
            continue;
        for (size_t r = 0; r < row->ranks; r++)
            least = fmin(least, row->each[r].t_reduce);
        sum += isfinite(least) ? least : 0;
        n++;
    }
    return n ? sum / (double)n : NAN;
}

/* Of what is on its way in a step, all but what is exposed lies inside backward, and no more than fits there. */
typedef struct wire {
    double exposed, hidden, gradients; /* seconds, seconds, bytes */
    double bucket;                     /* bytes */
    bool wide, sharded, narrow_step;   /* fp32 on the way; zero 1; amp */
} wire;

static wire look(const tg_history *history, const tg_use_steps *s)
{
    wire w = {
        .exposed = exposed_s(history, s),
        .gradients = tg_history_info_number(history, "memory.gradients_bytes.most"),
        .bucket = tg_history_option_number(history, "bucket-mib") * MIB,
        .wide = !tg_common_option_is(history, "reduce-dtype", "bfloat16"),
        .sharded = tg_history_option_number(history, "zero") == 1,
        .narrow_step = tg_common_option_is(history, "amp", "true"),
    };
    const double buckets = w.gradients > 0 && w.bucket > 0 ? ceil(w.gradients / w.bucket) : 4;
    w.hidden = s->backward_s * (1 - 1 / fmax(1, buckets));
    return w;
}

/* What stays exposed when only `share` of the bytes travel. */
static double exposed_with(const wire *w, double share)
{
    return fmax(0, share * (w->exposed + w->hidden) - w->hidden);
}

/* Few large ranges: the last one, which nothing hides, is most of what is waited for. */
static bool few_buckets(const wire *w)
{
    return w->gradients > 0 && w->bucket > 0 && w->gradients / w->bucket < 3 && w->gradients > MIB;
}

static void advise(const wire *w, const tg_use_steps *s, tg_finding *f)
{
    if (few_buckets(w)) {
        const double mib = fmax(0.25, floor(4 * w->gradients / MIB / 8) / 4);
        tg_finding_set_number(f, "bucket-mib", w->bucket / MIB, mib);
        TG_FINDING_SAY(f->advice,
                       "Gradients go out in %.0f pieces only, so that backward hides little of "
                       "them; tagine tune tries sizes",
                       ceil(w->gradients / w->bucket));
        const double last = w->exposed * mib * MIB / fmin(w->bucket, w->gradients);
        tg_finding_predict(f, s->step_s, s->step_s - (w->exposed - last), 0.4);
    } else if (w->wide) {
        tg_finding_set_option(f, "reduce-dtype", "float32", "bfloat16");
        TG_FINDING_SAY(f->advice, "%s",
                       w->sharded || !w->narrow_step
                           ? "Half the bytes; sums stay float32"
                           : "Half the bytes; sums stay float32. --zero 1 with --amp sends "
                             "weights back as bfloat16, under the next forward");
        tg_finding_predict(f, s->step_s, s->step_s - (w->exposed - exposed_with(w, 0.5)), 0.4);
    } else if (!w->sharded && w->narrow_step) {
        tg_finding_set_option(f, "zero", "0", "1");
        TG_FINDING_SAY(f->advice,
                       "Weights then come back under the next forward, while it computes");
        tg_finding_predict(f, s->step_s, s->step_s - (w->exposed - exposed_with(w, 0.5)), 0.3);
    } else {
        TG_FINDING_SAY(f->advice,
                       "A larger batch or --grad-accum-steps exchanges less often; else a faster "
                       "network, or fewer ranks (tagine plan --run tells what they bring)");
    }
}

static tg_status report(const tg_history *history, const tg_use_steps *s, const wire *w,
                        tg_findings *out)
{
    tg_finding *f = tg_findings_add(out, "ExposedCommunication", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "%.0f %% of the step waits for what travels between %d ranks",
                   100 * w->exposed / s->step_s, history->ranks);
    TG_FINDING_SAY(f->cause,
                   "also the rank that comes last waits so long, so nobody is late: gradients "
                   "need longer on their way than backward can hide");
    tg_common_mark(f, s);
    tg_finding_add_evidence(f, "waited for in a step by all ranks", w->exposed, "s");
    tg_finding_add_evidence(f, "waiting of the first rank, late ones included", s->exchange_s, "s");
    tg_finding_add_evidence(f, "backward, which could hide it", s->backward_s, "s");
    tg_finding_add_evidence(f, "gradients of a step", w->gradients, "bytes");
    tg_finding_add_evidence(f, "gradients that go out at once", w->bucket, "bytes");
    advise(w, s, f);
    return TG_OK;
}

static tg_status check(const tg_history *history, const double *limits, tg_findings *out,
                       const char **lack)
{
    const tg_use_steps s = tg_use_of_steps(history);
    const wire w = look(history, &s);
    if (history->ranks < 2)
        return TG_OK;
    if (!s.steps || isnan(w.exposed)) {
        *lack = s.steps ? "times of these steps of all ranks (ranks.jsonl)" : TG_LACKS_STEPS;
        return TG_END;
    }
    return w.exposed >= limits[SHARE] / 100 * s.step_s ? report(history, &s, &w, out) : TG_OK;
}

const tg_rule tg_rule_exposed_communication = {
    .name = "ExposedCommunication",
    .asks = "whether ranks wait for the wire, and not for one another",
    .needs = TG_INPUT_OPTIONS | TG_INPUT_STEPS | TG_INPUT_RANKS,
    .limits = LIMITS,
    .limit_count = sizeof LIMITS / sizeof *LIMITS,
    .check = check,
};
