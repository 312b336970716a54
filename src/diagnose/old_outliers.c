/* StepOutlier, of the withdrawn tool: steps that take far longer than others, which part of the step grows, whether they
 * come regularly, and what the machine does at these times. */
#include "diagnose/rules.h"
#include "diagnose/series.h"
#include "diagnose/use.h"

#include <math.h>
#include <stdlib.h>

enum { DEVIATIONS, IGNORED, COST };
enum { LEAST_STEPS = 50 };
#define LEAST_DEVIATION 0.10 /* of the median: what steps differ by anyway */
#define ALONE 5.0            /* times the cost limit: then it does not matter how few they are */

static const tg_rule_limit OUTLIER_LIMITS[] = {
    {"stddev", 3, 1, 1000, "standard deviations above the usual step, estimated robustly"},
    {"n_outliers", 10, 0, 1e9, "outliers to ignore"},
    {"cost", 1, 0, 100, "percent of the time that they must cost"},
};

/* A part of the step, by its place in the record. */
typedef struct part {
    const char *name;
    size_t offset;
} part;

static const part PARTS[] = {
    {"waiting for photos", offsetof(tg_step_record, t_data)},
    {"the teacher", offsetof(tg_step_record, t_teacher)},
    {"forward", offsetof(tg_step_record, t_forward)},
    {"backward", offsetof(tg_step_record, t_backward)},
    {"waiting for other ranks", offsetof(tg_step_record, t_reduce)},
    {"the optimizer", offsetof(tg_step_record, t_optimizer)},
    {"the rest of the step", offsetof(tg_step_record, t_other)},
};
enum { PART_COUNT = sizeof PARTS / sizeof *PARTS };

static double part_of(const tg_step_record *r, size_t index)
{
    return *(const double *)((const char *)r + PARTS[index].offset);
}

typedef struct outliers {
    double limit_s, usual_s,
        all_s; /* a step beyond the limit is one; means without and with them */
    size_t count, steps;
    int64_t first, last;
    double usual_parts[PART_COUNT], their_parts[PART_COUNT]; /* means */
    double spacing; /* steps, where it is regular; else 0 */
} outliers;

static bool is_outlier(const tg_history *h, size_t i, double limit_s)
{
    return i > 0 && h->steps[i].t_step > limit_s;
}

static void add_parts(const tg_step_record *r, double *sums)
{
    for (size_t p = 0; p < PART_COUNT; p++)
        sums[p] += part_of(r, p);
}

/* Whether most outliers are as far apart as the middle two: something that comes by the clock, or by the step. */
static double regular_spacing(const tg_history *h, const outliers *o)
{
    double *gaps = malloc((o->count + 1) * sizeof *gaps), spacing = 0;
    size_t n = 0, near = 0;
    int64_t before = 0;
    for (size_t i = 1; gaps && i < h->step_count && n < o->count; i++) {
        if (!is_outlier(h, i, o->limit_s))
            continue;
        if (before)
            gaps[n++] = (double)(h->steps[i].step - before);
        before = h->steps[i].step;
    }
    if (n >= 4) {
        spacing = tg_series_median(gaps, n);
        for (size_t i = 0; i < n; i++)
            near += fabs(gaps[i] - spacing) <= fmax(1, 0.1 * spacing);
    }
    free(gaps);
    return 5 * near >= 4 * n && spacing > 1 ? spacing : 0;
}

static void count_outliers(const tg_history *h, outliers *o)
{
    double outlier_s = 0, usual_s = 0;
    for (size_t i = 1; i < h->step_count; i++) {
        const tg_step_record *r = &h->steps[i];
        const bool is = is_outlier(h, i, o->limit_s);
        o->steps++;
        *(is ? &outlier_s : &usual_s) += r->t_step;
        add_parts(r, is ? o->their_parts : o->usual_parts);
        if (is && o->count++ == 0)
            o->first = r->step;
        if (is)
            o->last = r->step;
    }
    for (size_t p = 0; p < PART_COUNT && o->count; p++) {
        o->their_parts[p] /= (double)o->count;
        o->usual_parts[p] /= (double)(o->steps - o->count);
    }
    o->usual_s = usual_s / (double)(o->steps - o->count);
    o->all_s = (usual_s + outlier_s) / (double)o->steps;
    o->spacing = regular_spacing(h, o);
}

static tg_status find_outliers(const tg_history *h, double deviations, outliers *out)
{
    *out = (outliers){0};
    const size_t n = h->step_count - 1;
    double *values = malloc(h->step_count * sizeof *values);
    if (!values)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for steps");
    for (size_t i = 0; i < n; i++)
        values[i] = h->steps[i + 1].t_step;
    const double median = tg_series_median(values, n);
    const double deviation = tg_series_deviation(values, n, median);
    free(values);
    out->limit_s = median + deviations * fmax(deviation, LEAST_DEVIATION * median);
    count_outliers(h, out);
    return TG_OK;
}

/* What of the machine was another thing while outliers ran; `least`: below it is nothing. */
typedef struct suspect {
    const char *name, *unit;
    int metric;
    double least;
} suspect;

static const suspect SUSPECTS[] = {
    {"compute threads waiting for a core", "seconds/s",
     TG_SYSTEM_ROLE(TG_ROLE_COMPUTE, TG_SYSTEM_WAIT), 0.1},
    {"share of the time throttled by the cgroup's quota", "share", TG_SYSTEM_GROUP_THROTTLED, 0.05},
    {"page faults that wait for a disk", "1/s", TG_SYSTEM_MAJOR_FAULTS, 10},
    {"share of the time that something waits for a disk", "share", TG_SYSTEM_PRESSURE_IO, 0.05},
    {"bytes written to disks", "bytes/s", TG_SYSTEM_DISK_WRITTEN_BYTES, 1e6},
    {"bytes read from disks", "bytes/s", TG_SYSTEM_DISK_READ_BYTES, 1e6},
};

static int during(const tg_history *h, const tg_system_sample *sample, double limit_s)
{
    const double begin = sample->time - sample->seconds;
    for (size_t i = 1; i < h->step_count; i++)
        if (is_outlier(h, i, limit_s) && h->steps[i].time > begin &&
            h->steps[i].time - h->steps[i].t_step < sample->time)
            return 1;
    return 0;
}

/* Means of a metric while outliers ran and while none did. */
static void compare_metric(const tg_history *h, const tg_system_host *host, double limit_s,
                           int metric, double out[2])
{
    double sums[2] = {0}, seconds[2] = {0};
    for (size_t i = 0; i < host->sample_count; i++) {
        const tg_system_sample *s = &host->samples[i];
        const double value = s->values[metric];
        if (isnan(value))
            continue;
        const int is = during(h, s, limit_s);
        sums[is] += value * s->seconds;
        seconds[is] += s->seconds;
    }
    out[0] = sums[0] / seconds[0];
    out[1] = sums[1] / seconds[1];
}

/* Adds what stood out to the evidence; the name of the first such thing, or NULL. */
static const char *find_suspects(const tg_history *h, const outliers *o, tg_finding *f)
{
    const char *first = NULL;
    for (size_t m = 0; m < sizeof SUSPECTS / sizeof *SUSPECTS; m++)
        for (size_t i = 0; i < h->host_count && i < 4; i++) {
            double means[2];
            compare_metric(h, &h->hosts[i], o->limit_s, SUSPECTS[m].metric, means);
            if (!(means[1] >= SUSPECTS[m].least) || !(means[1] >= 2 * means[0]))
                continue;
            tg_finding_add_evidence(f, SUSPECTS[m].name, means[1], SUSPECTS[m].unit);
            tg_finding_add_evidence(f, "the same at other times", means[0], SUSPECTS[m].unit);
            first = first ? first : SUSPECTS[m].name;
            break;
        }
    return first;
}

static void explain_outliers(const tg_history *h, const outliers *o, tg_finding *f)
{
    size_t grown = 0;
    char spacing[64] = "";
    for (size_t p = 1; p < PART_COUNT; p++)
        if (o->their_parts[p] - o->usual_parts[p] > o->their_parts[grown] - o->usual_parts[grown])
            grown = p;
    tg_finding_add_evidence(f, "a usual step", o->usual_s, "s");
    tg_finding_add_evidence(f, "an outlier, more than", o->limit_s, "s");
    if (o->spacing > 0)
        TG_FINDING_SAY(spacing, ", one every %.0f steps,", o->spacing);
    const char *what = find_suspects(h, o, f);
    TG_FINDING_SAY(f->cause, "they%s spend the time in %s%s%s", spacing, PARTS[grown].name,
                   what ? "; at these times the machine differs in: " : "", what ? what : "");
    TG_FINDING_SAY(f->advice, "Look at their timelines in trace/, or record some around one with "
                              "--trace-steps");
}

static tg_status check_outliers(const tg_history *history, const double *limits, tg_findings *out,
                                const char **lack)
{
    outliers o;
    if (history->step_count < LEAST_STEPS) {
        *lack = "more steps (50 at least)";
        return TG_END;
    }
    TG_TRY(find_outliers(history, limits[DEVIATIONS], &o));
    const double cost = 100 * (1 - o.usual_s / o.all_s);
    const bool many = (double)o.count > limits[IGNORED] && cost > limits[COST];
    if (!o.count || !(many || cost > ALONE * limits[COST]))
        return TG_OK;
    tg_finding *f = tg_findings_add(out, "StepOutlier", TG_SEVERITY_NOTE);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title,
                   "%zu of %zu steps take far longer than the others, %.1f %% of the time", o.count,
                   o.steps, cost);
    f->first_step = o.first;
    f->last_step = o.last;
    explain_outliers(history, &o, f);
    tg_finding_predict(f, o.all_s, o.usual_s, 0.5);
    return TG_OK;
}

static const char *const OUTLIERS_YIELD[] = {"CgroupThrottling", NULL};

const tg_rule tg_rule_step_outlier = {
    .name = "StepOutlier",
    .asks = "whether some steps take far longer than others, and what happens then",
    .needs = TG_INPUT_STEPS,
    .yields_to = OUTLIERS_YIELD,
    .limits = OUTLIER_LIMITS,
    .limit_count = sizeof OUTLIER_LIMITS / sizeof *OUTLIER_LIMITS,
    .check = check_outliers,
};
