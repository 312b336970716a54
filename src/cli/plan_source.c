/* plan: where the times of a step and of the network come from. */
#include "cli/plan.h"

#include "base/json.h"
#include "base/number.h"
#include "cli/console.h"
#include "cli/signal.h"
#include "os/document.h"
#include "os/file.h"
#include "run/metrics.h"
#include "train/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEASURED_STEPS = 5, WARMUP_STEPS = 2, RANKS_LIMIT = 1 << 20, FIRST_STEPS = 2 };

#define FILE_MAX_BYTES (16u << 20)

static bool parse_count(const char *text, size_t length, int *out)
{
    int64_t value;
    if (!tg_number_parse_i64(text, length, &value) || value < 1 || value > RANKS_LIMIT)
        return false;
    *out = (int)value;
    return true;
}

/* One item of the list: a number, or two with a dash between. */
static bool parse_item(const char *text, size_t length, int *out, size_t *count)
{
    const char *dash = memchr(text, '-', length);
    int first, last;
    if (!parse_count(text, dash ? (size_t)(dash - text) : length, &first))
        return false;
    last = first;
    if (dash && (!parse_count(dash + 1, length - (size_t)(dash - text) - 1, &last) || last < first))
        return false;
    for (int64_t n = first; n < last; n *= 2) {
        if (*count == TG_PLAN_RANKS_MAX)
            return false;
        out[(*count)++] = (int)n;
    }
    if (*count == TG_PLAN_RANKS_MAX)
        return false;
    out[(*count)++] = last;
    return true;
}

tg_status tg_plan_parse_ranks(const char *text, int out[TG_PLAN_RANKS_MAX], size_t *out_count)
{
    size_t count = 0;
    const char *at = text;
    for (bool more = true; more; at++) {
        const size_t n = strcspn(at, ",");
        if (!parse_item(at, n, out, &count))
            return tg_fail(TG_ERROR_USAGE,
                           "--ranks %s: numbers of ranks with commas between, as in 1,2,32-4096 (a "
                           "dash doubles from one to the other), %d at most",
                           text, TG_PLAN_RANKS_MAX);
        at += n;
        more = *at == ',';
    }
    *out_count = count;
    return TG_OK;
}

tg_step_seconds tg_plan_split_step(const tg_plan_subject *subject, double step_s)
{
    const double student = tg_vit_macs(&subject->student);
    const double teacher = subject->has_teacher ? tg_vit_macs(&subject->teacher) : 0;
    const double micro = step_s / (double)subject->settings->grad_accum_steps;
    const double unit = micro / (3 * student + teacher);
    return (tg_step_seconds){
        .teacher = teacher * unit, .forward = student * unit, .backward = 2 * student * unit};
}

static void show_progress(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    tg_console_progress("measuring a step", done, total, "");
}

static int wants_stop(void *user)
{
    (void)user;
    return tg_signal_stop();
}

static tg_status measure(const tg_plan_subject *subject, tg_plan_source *out)
{
    const tg_plan_settings *s = subject->settings;
    const tg_bench_options options = {.kind =
                                          subject->has_teacher ? TG_BENCH_DISTILL : TG_BENCH_TRAIN,
                                      .model = s->model.model,
                                      .shape = tg_model_choice_shape(&s->model),
                                      .teacher = s->teacher,
                                      .batch_size = (size_t)s->batch_size,
                                      .warmup = WARMUP_STEPS,
                                      .steps = MEASURED_STEPS,
                                      .dtype = subject->dtype,
                                      .threads = tg_invocation_threads(subject->invocation),
                                      .cpu_cap = (tg_cpu_level)subject->invocation->common->cpu_isa,
                                      .no_peak = true,
                                      .progress = show_progress,
                                      .stop = wants_stop};
    tg_bench_result r;
    TG_TRY(tg_bench_run(&options, &r));
    tg_text_done(&r.picture);
    tg_console_progress_end();
    out->alone = (tg_step_seconds){.teacher = isnan(r.teacher_s) ? 0 : r.teacher_s,
                                   .forward = r.forward_s,
                                   .backward = r.backward_s,
                                   .optimizer = r.optimizer_s};
    tg_number_print(out->origin, sizeof out->origin, "measured here with %d thread%s", r.threads,
                    r.threads == 1 ? "" : "s");
    return TG_OK;
}

/* The times of a run's steps, one list a part. */
enum { PART_IMAGES, PART_TEACHER, PART_FORWARD, PART_BACKWARD, PART_OPTIMIZER, PART_OTHER, PARTS };
typedef struct step_times {
    double *seconds[PARTS];
    size_t count, capacity, seen;
    bool short_of_memory;
} step_times;

static bool grow(step_times *t)
{
    const size_t wanted = t->capacity ? 2 * t->capacity : 256;
    for (int p = 0; p < PARTS; p++) {
        double *more = realloc(t->seconds[p], wanted * sizeof *more);
        if (!more)
            return false;
        t->seconds[p] = more;
    }
    t->capacity = wanted;
    return true;
}

static void take_step(void *user, const tg_step_record *step, const tg_eval_record *eval)
{
    step_times *t = user;
    (void)eval;
    if (!step || t->seen++ < FIRST_STEPS) /* they hold what is done once */
        return;
    if (t->count == t->capacity && !grow(t)) {
        t->short_of_memory = true;
        return;
    }
    const double values[PARTS] = {(double)step->images, step->t_teacher,   step->t_forward,
                                  step->t_backward,     step->t_optimizer, step->t_other};
    for (int p = 0; p < PARTS; p++)
        t->seconds[p][t->count] = isnan(values[p]) ? 0 : values[p];
    t->count++;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

/* Ranks of a run, from its run.json. */
static tg_status read_ranks(const char *run, int64_t *out)
{
    char path[4096];
    tg_json json = {0};
    snprintf(path, sizeof path, "%s/run.json", run);
    TG_TRY(tg_json_read(path, &json));
    const tg_json_node root = tg_json_root(&json);
    *out = 1;
    tg_status status = tg_json_get_int(&root, "ranks", TG_OPTIONAL, out);
    tg_json_done(&json);
    if (status == TG_OK && *out < 1)
        status = tg_fail(TG_ERROR_INPUT, "%s: ranks: %lld", path, (long long)*out);
    return status;
}

/* Medians of a run's steps, brought to this batch. */
static tg_status read_run(const tg_plan_subject *subject, tg_plan_source *out)
{
    const tg_plan_settings *s = subject->settings;
    char path[4096];
    int64_t ranks;
    step_times t = {0};
    TG_TRY(read_ranks(s->run, &ranks));
    snprintf(path, sizeof path, "%s/metrics.jsonl", s->run);
    tg_status status = tg_metrics_read(path, take_step, &t, NULL);
    if (status == TG_OK && t.short_of_memory)
        status = tg_fail(TG_ERROR_MACHINE, "%s: out of memory", path);
    if (status == TG_OK && t.count == 0)
        status =
            tg_fail(TG_ERROR_INPUT, "%s: there are no more than %d steps in it", path, FIRST_STEPS);
    if (status == TG_OK) {
        const double images = median(t.seconds[PART_IMAGES], t.count) / (double)ranks;
        const double scale = (double)s->batch_size / fmax(images, 1);
        out->alone =
            (tg_step_seconds){.teacher = scale * median(t.seconds[PART_TEACHER], t.count),
                              .forward = scale * median(t.seconds[PART_FORWARD], t.count),
                              .backward = scale * median(t.seconds[PART_BACKWARD], t.count),
                              .optimizer = median(t.seconds[PART_OPTIMIZER], t.count),
                              .other = median(t.seconds[PART_OTHER], t.count)};
        tg_number_print(out->origin, sizeof out->origin,
                        "median of %zu steps of %.60s, %.0f pictures a rank", t.count, s->run,
                        images);
    }
    for (int p = 0; p < PARTS; p++)
        free(t.seconds[p]);
    return status;
}

tg_status tg_plan_read_source(const tg_plan_subject *subject, tg_plan_source *out)
{
    const tg_plan_settings *s = subject->settings;
    const int given = !isnan(s->step_seconds) + (s->run != NULL) + s->measure;
    *out = (tg_plan_source){.known = given == 1};
    if (given > 1)
        return tg_fail(TG_ERROR_USAGE,
                       "--step-seconds, --run and --measure all say how long a step "
                       "takes: give one of them");
    if (s->measure)
        return measure(subject, out);
    if (s->run)
        return read_run(subject, out);
    if (given) {
        out->alone = tg_plan_split_step(subject, s->step_seconds);
        snprintf(out->origin, sizeof out->origin, "as given");
    }
    return TG_OK;
}

/* What one line of `bench comm --json` says. */
typedef struct comm_line {
    const char *collective;
    double bytes, seconds, sent_bytes;
    double cpu_ns_per_kib, cpu_ns_per_message, packets_ns_per_kib; /* NaN: not said */
} comm_line;

static tg_status read_comm_line(const tg_json *json, comm_line *out)
{
    const tg_json_node root = tg_json_root(json);
    *out = (comm_line){.cpu_ns_per_kib = NAN, .cpu_ns_per_message = NAN, .packets_ns_per_kib = NAN};
    TG_TRY(tg_json_get_string(&root, "collective", TG_REQUIRED, &out->collective));
    TG_TRY(tg_json_get_double(&root, "seconds", TG_REQUIRED, &out->seconds));
    TG_TRY(tg_json_get_double(&root, "bytes", TG_OPTIONAL, &out->bytes));
    TG_TRY(tg_json_get_double(&root, "cpu_ns_per_kib", TG_OPTIONAL, &out->cpu_ns_per_kib));
    TG_TRY(tg_json_get_double(&root, "cpu_ns_per_message", TG_OPTIONAL, &out->cpu_ns_per_message));
    TG_TRY(tg_json_get_double(&root, "packets_ns_per_kib", TG_OPTIONAL, &out->packets_ns_per_kib));
    return tg_json_get_double(&root, "sent_bytes", TG_OPTIONAL, &out->sent_bytes);
}

/* What the kernel does for packets is left out where it is not known. */
static void take_core(const comm_line *line, tg_link *out)
{
    const double packets = isnan(line->packets_ns_per_kib) ? 0 : line->packets_ns_per_kib;
    if (isnan(line->cpu_ns_per_kib) || isnan(line->cpu_ns_per_message))
        return;
    out->core_byte_s = (line->cpu_ns_per_kib + packets) * 1e-9 / 1024;
    out->message_s = line->cpu_ns_per_message * 1e-9;
}

/* A meeting's time is a message's latency; the largest all-reduce, less its two latencies, the link's rate. */
static tg_status read_bench_comm(const char *path, char *text, tg_link *out)
{
    comm_line line, largest = {0};
    char *save = NULL;
    for (char *at = strtok_r(text, "\n", &save); at; at = strtok_r(NULL, "\n", &save)) {
        tg_json json = {0};
        TG_TRY(tg_json_parse(at, strlen(at), path, &json));
        tg_status status = read_comm_line(&json, &line);
        if (status == TG_OK && strcmp(line.collective, "meeting") == 0)
            out->latency_s = line.seconds;
        if (status == TG_OK && strcmp(line.collective, "core") == 0)
            take_core(&line, out);
        if (status == TG_OK && strcmp(line.collective, "all-reduce") == 0 &&
            line.bytes > largest.bytes)
            largest = (comm_line){
                .bytes = line.bytes, .seconds = line.seconds, .sent_bytes = line.sent_bytes};
        tg_json_done(&json);
        TG_TRY(status);
    }
    if (!(largest.sent_bytes > 0 && largest.seconds > 2 * out->latency_s))
        return tg_fail(TG_ERROR_INPUT,
                       "%s: there is no meeting and all-reduce in it, as bench comm --json writes",
                       path);
    out->bytes_per_s = largest.sent_bytes / (largest.seconds - 2 * out->latency_s);
    return TG_OK;
}

tg_status tg_plan_read_link(const tg_plan_settings *s, tg_link *out)
{
    *out = (tg_link){.latency_s = s->latency_us * 1e-6,
                     .message_s = s->message_us * 1e-6,
                     .bytes_per_s = s->link_gbit * 1.25e8,
                     .local_bytes_per_s = isnan(s->local_gbit) ? INFINITY : s->local_gbit * 1.25e8,
                     .ranks_per_host = (int)s->ranks_per_host,
                     .core_byte_s = s->core_ns_per_kib * 1e-9 / 1024,
                     .ranks_per_core = (int)s->ranks_per_core,
                     .spare_core = s->spare_cores > 0,
                     .method = (tg_exchange_method)s->exchange};
    if (!s->bench_comm)
        return TG_OK;
    char *text;
    size_t length;
    TG_TRY(tg_file_read(s->bench_comm, FILE_MAX_BYTES, &text, &length));
    tg_status status = read_bench_comm(s->bench_comm, text, out);
    free(text);
    return status;
}
