/* How much of a machine was used: percentiles, histograms, and by what the job was doing. */
#include "report/html_parts.h"

#include "base/median.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 20 };

typedef enum row_kind {
    ROW_CPU,
    ROW_BUSIEST,
    ROW_IOWAIT,
    ROW_DEVICE,
    ROW_DEVICE_MEMORY,
    ROW_METRIC
} row_kind;

typedef struct row {
    const char *name;
    row_kind kind;
    int metric;
} row;

#define ROLE(role, of) TG_SYSTEM_ROLE(TG_ROLE_##role, TG_SYSTEM_##of)
static const row ROWS[] = {
    {"CPU, mean of the cores", ROW_CPU, 0},
    {"CPU, busiest core", ROW_BUSIEST, 0},
    {"waiting for disks, mean of the cores", ROW_IOWAIT, 0},
    {"accelerators", ROW_DEVICE, 0},
    {"memory of accelerators", ROW_DEVICE_MEMORY, 0},
    {"cores taken by compute threads", ROW_METRIC, ROLE(COMPUTE, CPU)},
    {"cores taken by loader threads", ROW_METRIC, ROLE(LOADER, CPU)},
    {"cores taken by communication", ROW_METRIC, ROLE(COMMUNICATION, CPU)},
    {"threads that run or wait for a core", ROW_METRIC, TG_SYSTEM_RUNNING},
    {"compute threads waiting for a core", ROW_METRIC, ROLE(COMPUTE, WAIT)},
    {"involuntary switches of compute threads", ROW_METRIC, ROLE(COMPUTE, INVOLUNTARY)},
    {"context switches", ROW_METRIC, TG_SYSTEM_SWITCHES},
    {"memory used", ROW_METRIC, TG_SYSTEM_MEMORY_USED_BYTES},
    {"memory of the job", ROW_METRIC, TG_SYSTEM_JOB_RSS_BYTES},
    {"memory in the cgroup", ROW_METRIC, TG_SYSTEM_GROUP_USED_BYTES},
    {"CPU quota used up", ROW_METRIC, TG_SYSTEM_GROUP_THROTTLED},
    {"read from disks", ROW_METRIC, TG_SYSTEM_DISK_READ_BYTES},
    {"written to disks", ROW_METRIC, TG_SYSTEM_DISK_WRITTEN_BYTES},
    {"received", ROW_METRIC, TG_SYSTEM_NET_RECEIVED_BYTES},
    {"sent", ROW_METRIC, TG_SYSTEM_NET_SENT_BYTES},
    {"major page faults", ROW_METRIC, TG_SYSTEM_MAJOR_FAULTS},
    {"frequency", ROW_METRIC, TG_SYSTEM_FREQUENCY_MHZ},
    {"the monitor itself", ROW_METRIC, TG_SYSTEM_MONITOR_CPU},
};

static double busiest(const tg_system_host *host, const tg_system_sample *s)
{
    double most = NAN;
    for (size_t i = 0; i < host->core_count; i++)
        most = fmax(most, tg_system_core_busy(&s->cores[i]));
    return most;
}

static double iowait(const tg_system_host *host, const tg_system_sample *s)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < host->core_count; i++)
        if (!isnan(s->cores[i].iowait)) {
            sum += s->cores[i].iowait;
            n++;
        }
    return n ? sum / (double)n : NAN;
}

static double devices(const tg_system_host *host, const tg_system_sample *s, bool memory)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; s->devices && i < host->device_count; i++) {
        const tg_system_device *d = &s->devices[i];
        const double v = memory ? d->memory_used_bytes / d->memory_total_bytes : d->utilisation;
        if (isnan(v))
            continue;
        sum += v;
        n++;
    }
    return n ? sum / (double)n : NAN;
}

static double value_of(const tg_system_host *host, const tg_system_sample *s, const row *r)
{
    switch (r->kind) {
    case ROW_CPU:
        return tg_system_busy(host, s);
    case ROW_BUSIEST:
        return busiest(host, s);
    case ROW_IOWAIT:
        return iowait(host, s);
    case ROW_DEVICE:
        return devices(host, s, false);
    case ROW_DEVICE_MEMORY:
        return devices(host, s, true);
    default:
        return s->values[r->metric];
    }
}

static void put_percentiles(tg_json_writer *w, const row *r, double *sorted, size_t count)
{
    tg_sort_doubles(sorted, count);
    tg_json_begin_object(w, NULL);
    tg_json_put_string(w, "name", r->name);
    tg_json_put_string(w, "unit",
                       r->kind == ROW_METRIC ? tg_system_metric_unit(r->metric) : "share");
    tg_html_put_number(w, "min", sorted[0]);
    tg_html_put_number(w, "p50", tg_quantile(sorted, count, 0.5));
    tg_html_put_number(w, "p95", tg_quantile(sorted, count, 0.95));
    tg_html_put_number(w, "p99", tg_quantile(sorted, count, 0.99));
    tg_html_put_number(w, "max", sorted[count - 1]);
    tg_json_end_object(w);
}

static tg_status put_table(tg_json_writer *w, const tg_system_host *host)
{
    double *values = malloc((host->sample_count + 1) * sizeof *values);
    if (!values)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the report");
    tg_json_begin_array(w, "table");
    for (size_t r = 0; r < sizeof ROWS / sizeof ROWS[0]; r++) {
        size_t n = 0;
        for (size_t i = 0; i < host->sample_count; i++) {
            const double v = value_of(host, &host->samples[i], &ROWS[r]);
            if (isfinite(v))
                values[n++] = v;
        }
        if (n)
            put_percentiles(w, &ROWS[r], values, n);
    }
    tg_json_end_array(w);
    free(values);
    return TG_OK;
}

static void count_share(double share, int64_t counts[BUCKETS])
{
    if (!isnan(share))
        counts[(int)fmin(BUCKETS - 1, fmax(0, share * BUCKETS))]++;
}

static void put_counts(tg_json_writer *w, const char *key, const int64_t counts[BUCKETS])
{
    tg_json_begin_array(w, key);
    for (int i = 0; i < BUCKETS; i++)
        tg_json_put_int(w, NULL, counts[i]);
    tg_json_end_array(w);
}

static void put_histogram(tg_json_writer *w, const tg_system_host *host)
{
    int64_t cores[BUCKETS] = {0}, accelerators[BUCKETS] = {0};
    for (size_t i = 0; i < host->sample_count; i++) {
        const tg_system_sample *s = &host->samples[i];
        for (size_t c = 0; c < host->core_count; c++)
            count_share(tg_system_core_busy(&s->cores[c]), cores);
        for (size_t d = 0; s->devices && d < host->device_count; d++)
            count_share(s->devices[d].utilisation, accelerators);
    }
    tg_json_begin_object(w, "histogram");
    put_counts(w, "cores", cores);
    put_counts(w, "devices", accelerators);
    tg_json_end_object(w);
}

/* What the job was doing: spans, and steps or their parts. */
enum {
    DOING_START,
    DOING_STEPS,
    DOING_DATA,
    DOING_TEACHER,
    DOING_FORWARD,
    DOING_BACKWARD,
    DOING_REDUCE,
    DOING_OPTIMIZER,
    DOING_OTHER,
    DOING_EVALUATION,
    DOING_CHECKPOINT,
    DOING_TUNE,
    DOING_FINISH,
    DOINGS
};
static const char *const DOING_NAMES[DOINGS] = {
    "start-up",         "steps",      "waiting for data",  "teacher",
    "forward and loss", "backward",   "waiting for ranks", "optimizer",
    "rest of a step",   "evaluation", "checkpoints",       "tuning",
    "finishing"};

typedef struct interval {
    double begin, end;
    int doing;
} interval;

typedef struct intervals {
    interval *each;
    size_t count;
} intervals;

static int doing_of_span(tg_span_kind kind)
{
    switch (kind) {
    case TG_SPAN_START:
        return DOING_START;
    case TG_SPAN_EVALUATION:
        return DOING_EVALUATION;
    case TG_SPAN_CHECKPOINT:
        return DOING_CHECKPOINT;
    case TG_SPAN_TUNE:
        return DOING_TUNE;
    case TG_SPAN_FINISH:
        return DOING_FINISH;
    default:
        return -1;
    }
}

static void add(intervals *list, double begin, double end, int doing)
{
    if (doing >= 0 && end > begin)
        list->each[list->count++] = (interval){begin, end, doing};
}

/* A step's parts follow one another in this order; samples that are longer than they are cannot tell them apart. */
static void add_step(intervals *list, const tg_step_record *s, bool parts)
{
    const double begin = s->time - s->t_step;
    if (!parts) {
        add(list, begin, s->time, DOING_STEPS);
        return;
    }
    const double each[] = {s->t_data,   s->t_teacher,   s->t_forward, s->t_backward,
                           s->t_reduce, s->t_optimizer, s->t_other};
    double at = begin;
    for (int i = 0; i < 7; i++)
        if (each[i] > 0) {
            add(list, at, at + each[i], DOING_DATA + i);
            at += each[i];
        }
}

static int by_begin(const void *a, const void *b)
{
    const double x = ((const interval *)a)->begin, y = ((const interval *)b)->begin;
    return (x > y) - (x < y);
}

/* Parts of a step are told apart where a usual step is as long as four samples. */
static bool parts_can_be_told(const tg_history *h, const tg_system_host *host)
{
    double seconds = 0, longest = 0;
    for (size_t i = 0; i < h->step_count; i++)
        seconds += h->steps[i].t_step;
    for (size_t i = 0; i < host->sample_count; i++)
        longest += host->samples[i].seconds;
    return h->step_count && host->sample_count &&
           seconds / (double)h->step_count > 4 * longest / (double)host->sample_count;
}

static tg_status make_intervals(const tg_history *h, const tg_system_host *host, intervals *out)
{
    const bool parts = parts_can_be_told(h, host);
    out->each = malloc((h->span_count + 7 * h->step_count + 1) * sizeof *out->each);
    if (!out->each)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the report");
    for (size_t i = 0; i < h->span_count; i++)
        add(out, h->spans[i].time, h->spans[i].time + h->spans[i].seconds,
            doing_of_span(h->spans[i].kind));
    for (size_t i = 0; i < h->step_count; i++)
        add_step(out, &h->steps[i], parts);
    qsort(out->each, out->count, sizeof *out->each, by_begin);
    return TG_OK;
}

typedef struct use {
    double seconds, cpu, cpu_s, device, device_s;
} use;

static void add_use(use *u, double seconds, double cpu, double device)
{
    u->seconds += seconds;
    if (!isnan(cpu)) {
        u->cpu += seconds * cpu;
        u->cpu_s += seconds;
    }
    if (!isnan(device)) {
        u->device += seconds * device;
        u->device_s += seconds;
    }
}

/* Each sample's use goes to what the job did meanwhile, by how long. */
static void share_out(const tg_system_host *host, const intervals *list, use uses[DOINGS])
{
    size_t first = 0;
    for (size_t i = 0; i < host->sample_count; i++) {
        const tg_system_sample *s = &host->samples[i];
        const double begin = s->time - s->seconds;
        const double cpu = tg_system_busy(host, s), device = devices(host, s, false);
        while (first < list->count && list->each[first].end <= begin)
            first++;
        for (size_t k = first; k < list->count && list->each[k].begin < s->time; k++) {
            const interval *v = &list->each[k];
            const double both = fmin(s->time, v->end) - fmax(begin, v->begin);
            if (both > 0)
                add_use(&uses[v->doing], both, cpu, device);
        }
    }
}

static tg_status put_phases(tg_json_writer *w, const tg_history *h, const tg_system_host *host)
{
    intervals list = {0};
    use uses[DOINGS] = {{0}};
    TG_TRY(make_intervals(h, host, &list));
    share_out(host, &list, uses);
    free(list.each);
    tg_json_begin_array(w, "phases");
    for (int i = 0; i < DOINGS; i++) {
        if (!(uses[i].seconds > 0))
            continue;
        tg_json_begin_object(w, NULL);
        tg_json_put_string(w, "name", DOING_NAMES[i]);
        tg_html_put_number(w, "seconds", uses[i].seconds);
        tg_html_put_number(w, "cpu", uses[i].cpu_s > 0 ? uses[i].cpu / uses[i].cpu_s : NAN);
        tg_html_put_number(w, "device",
                           uses[i].device_s > 0 ? uses[i].device / uses[i].device_s : NAN);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
    return TG_OK;
}

tg_status tg_html_put_use(tg_json_writer *w, const tg_history *h, const tg_system_host *host)
{
    TG_TRY(put_table(w, host));
    put_histogram(w, host);
    return put_phases(w, h, host);
}
