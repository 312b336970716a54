/* Stall: times in which a job lived and did nothing, and what its machine did then. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include <math.h>

enum { SECONDS, MEDIANS };

static const tg_rule_limit LIMITS[] = {
    {"seconds", 10, 0.1, 1e9, "seconds that a step, or the time since the last one, must take"},
    {"medians", 20, 2, 1e9, "times the median step that it must take"},
};

typedef struct stalls {
    size_t count;
    double lost_s, longest_s, begin, end; /* of all; of the longest */
    int64_t step;
    bool open; /* the longest is that since the last record */
} stalls;

static void add(stalls *s, double seconds, double begin, int64_t step, bool open)
{
    s->count++;
    s->lost_s += seconds;
    if (seconds <= s->longest_s)
        return;
    s->longest_s = seconds;
    s->begin = begin;
    s->end = begin + seconds;
    s->step = step;
    s->open = open;
}

/* Whether a span that is no step explains this moment: it evaluates, saves, starts or finishes. */
static bool is_explained(const tg_history *h, double time)
{
    for (size_t i = 0; i < h->span_count; i++) {
        const tg_span *span = &h->spans[i];
        if (span->kind != TG_SPAN_ATTEMPT && span->kind != TG_SPAN_DROPPED &&
            span->time <= time + 1 &&
            (span->time + span->seconds >= time - 1 || isnan(span->seconds)) &&
            span->kind != TG_SPAN_END)
            return true;
    }
    return false;
}

/* Of a job without an end: since its last step, as long as its machine was sampled. */
static void look_at_end(const tg_history *h, double least, stalls *s)
{
    const tg_step_record *last = &h->steps[h->step_count - 1];
    double seen = NAN;
    for (size_t i = 0; i < h->host_count; i++)
        if (h->hosts[i].sample_count)
            seen = fmax(seen, h->hosts[i].samples[h->hosts[i].sample_count - 1].time);
    const double silent = seen - last->time;
    if (!tg_history_ended(h) && silent >= least && !is_explained(h, last->time))
        add(s, silent, last->time, last->step, true);
}

static stalls find_stalls(const tg_history *h, const tg_use_steps *use, const double *limits)
{
    stalls s = {.begin = NAN, .end = NAN};
    const double least = fmax(limits[SECONDS], limits[MEDIANS] * use->median_s);
    for (size_t i = 1; i < h->step_count; i++) {
        const tg_step_record *r = &h->steps[i];
        if (r->t_step >= least && r->step > 1)
            add(&s, r->t_step, r->time - r->t_step, r->step, false);
    }
    look_at_end(h, least, &s);
    return s;
}

static double host_mean(const tg_system_host *host, const stalls *s, int metric)
{
    /* a stall may be shorter than what tg_use_mean asks for */
    double sum = 0, seconds = 0;
    for (size_t i = 0; host && i < host->sample_count; i++) {
        const tg_system_sample *sample = &host->samples[i];
        if (sample->time - sample->seconds < s->begin || sample->time > s->end ||
            isnan(sample->values[metric]))
            continue;
        sum += sample->values[metric] * sample->seconds;
        seconds += sample->seconds;
    }
    return seconds > 0 ? sum / seconds : NAN;
}

static void explain(const tg_history *h, const stalls *s, tg_finding *f)
{
    const tg_system_host *host = tg_common_host_of_rank(h, 0);
    const double compute = host_mean(host, s, TG_SYSTEM_ROLE(TG_ROLE_COMPUTE, TG_SYSTEM_CPU));
    const double io = host_mean(host, s, TG_SYSTEM_PRESSURE_IO);
    const double blocked = host_mean(host, s, TG_SYSTEM_BLOCKED);
    const double faults = host_mean(host, s, TG_SYSTEM_MAJOR_FAULTS);
    const double throttled = host_mean(host, s, TG_SYSTEM_GROUP_THROTTLED);
    tg_finding_add_evidence(f, "cores that compute threads took then", compute, "cores");
    tg_finding_add_evidence(f, "time in which something waited for a disk", 100 * io, "%");
    tg_finding_add_evidence(f, "threads that waited for a disk", blocked, "threads");
    tg_finding_add_evidence(f, "faults that wait for a disk", faults, "1/s");
    if (faults >= 100)
        TG_FINDING_SAY(f->cause, "memory was read back from swap or files %.0f times a second",
                       faults);
    else if (io >= 0.3 || blocked >= 0.8)
        TG_FINDING_SAY(f->cause, "threads waited for a disk");
    else if (throttled >= 0.5)
        TG_FINDING_SAY(f->cause, "the control group's CPU quota was used up");
    else if (compute < 0.1)
        TG_FINDING_SAY(f->cause,
                       "compute threads did nothing: the process was paused, or waited for "
                       "another rank, a lock or the network");
    else if (compute > 0)
        TG_FINDING_SAY(f->cause, "compute threads took %.2g cores meanwhile", compute);
    else
        TG_FINDING_SAY(f->cause, "there are no samples of the machine from then");
}

static tg_status report(const tg_history *h, const stalls *s, tg_findings *out)
{
    tg_finding *f =
        tg_findings_add(out, "Stall", s->open ? TG_SEVERITY_SERIOUS : TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    if (s->open)
        TG_FINDING_SAY(f->title, "the job lives, and for %.0f s no step was done after step %lld",
                       s->longest_s, (long long)s->step);
    else
        TG_FINDING_SAY(
            f->title, "%zu step%s stood still for %.0f s in all, the longest %.0f s (step %lld)",
            s->count, s->count == 1 ? "" : "s", s->lost_s, s->longest_s, (long long)s->step);
    TG_FINDING_SAY(f->advice, "%s",
                   s->open ? "The logs of all ranks (log/) say who waits for what; a job that "
                             "does not go on can be ended and resumed with --resume auto"
                           : "Look at what ran on the machine at that time");
    f->begin = s->begin;
    f->end = s->end;
    f->first_step = f->last_step = s->step;
    tg_finding_add_evidence(f, "longest", s->longest_s, "s");
    tg_finding_add_evidence(f, "in all", s->lost_s, "s");
    explain(h, s, f);
    return TG_OK;
}

static tg_status check(const tg_history *history, const double *limits, tg_findings *out,
                       const char **lack)
{
    const tg_use_steps use = tg_use_of_steps(history);
    if (!use.steps) {
        *lack = TG_LACKS_STEPS;
        return TG_END;
    }
    const stalls s = find_stalls(history, &use, limits);
    return s.count ? report(history, &s, out) : TG_OK;
}

const tg_rule tg_rule_stall = {
    .name = "Stall",
    .asks = "whether the job stood still, and what its machine did then",
    .needs = TG_INPUT_STEPS,
    .limits = LIMITS,
    .limit_count = sizeof LIMITS / sizeof *LIMITS,
    .check = check,
};
