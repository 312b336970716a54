#include "run/history.h"

#include "os/document.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DOCUMENT = 16 << 20 };

/* Arrays that grow by doubling: room for one more of `size` bytes. */
static void *more(void *array, size_t count, size_t size)
{
    const bool full = count == 0 || (count >= 16 && (count & (count - 1)) == 0);
    if (!full && count != 0)
        return array;
    return realloc(array, (count < 16 ? 16 : 2 * count) * size);
}

typedef struct reading {
    tg_history *h;
    tg_status status;
} reading;

static void no_memory(reading *r)
{
    r->status = tg_fail(TG_ERROR_MACHINE, "%s: out of memory for its records", r->h->path);
}

static void add_step(reading *r, const tg_step_record *step)
{
    tg_step_record *steps = more(r->h->steps, r->h->step_count, sizeof *steps);
    if (!steps) {
        no_memory(r);
        return;
    }
    r->h->steps = steps;
    steps[r->h->step_count++] = *step;
}

static void add_eval(reading *r, const tg_eval_record *eval)
{
    tg_eval_record *evals = more(r->h->evals, r->h->eval_count, sizeof *evals);
    if (!evals) {
        no_memory(r);
        return;
    }
    r->h->evals = evals;
    evals[r->h->eval_count++] = *eval;
}

static void add_record(void *user, const tg_step_record *step, const tg_eval_record *eval)
{
    reading *r = user;
    if (r->status == TG_OK && step)
        add_step(r, step);
    if (r->status == TG_OK && eval)
        add_eval(r, eval);
}

static void add_rank_row(void *user, int64_t step, const tg_rank_step *each, size_t ranks)
{
    reading *r = user;
    if (r->status < 0)
        return;
    tg_history_rank_row *rows = more(r->h->rank_rows, r->h->rank_row_count, sizeof *rows);
    tg_rank_step *copy = malloc((ranks + 1) * sizeof *copy);
    if (rows)
        r->h->rank_rows = rows;
    if (!rows || !copy) {
        free(copy);
        no_memory(r);
        return;
    }
    memcpy(copy, each, ranks * sizeof *copy);
    rows[r->h->rank_row_count++] =
        (tg_history_rank_row){.step = step, .each = copy, .ranks = ranks};
}

static void add_span(void *user, const tg_span *span)
{
    reading *r = user;
    if (r->status < 0)
        return;
    tg_span *spans = more(r->h->spans, r->h->span_count, sizeof *spans);
    if (!spans) {
        no_memory(r);
        return;
    }
    r->h->spans = spans;
    spans[r->h->span_count++] = *span;
}

/* A path inside the run; NULL, recorded, when memory is short. */
static char *inside(const tg_history *h, const char *name)
{
    char *path = tg_path_join(h->path, name);
    if (!path)
        (void)tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    return path;
}

/* What a file that is absent, or that nobody can read, leaves: nothing. Only memory is an error. */
static tg_status forgive(const tg_history *h, const char *name, tg_status status)
{
    if (status >= 0)
        return TG_OK;
    char *path = inside(h, name);
    const bool there = path && tg_file_exists(path);
    free(path);
    if (status == TG_ERROR_MACHINE && there)
        return status;
    tg_error_clear();
    return TG_OK;
}

/* Each of the line files, by its own reader. */
static tg_status read_lines(reading *r, const char *name,
                            tg_status (*read)(reading *r, const char *path, size_t *bad))
{
    size_t bad = 0;
    char *path = inside(r->h, name);
    if (!path)
        return TG_ERROR_MACHINE;
    tg_status status = read(r, path, &bad);
    free(path);
    TG_TRY(forgive(r->h, name, status));
    r->h->bad_lines += bad;
    return r->status;
}

static tg_status read_metrics(reading *r, const char *path, size_t *bad)
{
    return tg_metrics_read(path, add_record, r, bad);
}

static tg_status read_ranks(reading *r, const char *path, size_t *bad)
{
    return tg_rank_steps_read(path, add_rank_row, r, bad);
}

static tg_status read_spans(reading *r, const char *path, size_t *bad)
{
    return tg_spans_read(path, add_span, r, bad);
}

static tg_status read_info(tg_history *h)
{
    char *path = inside(h, "run.json");
    if (!path)
        return TG_ERROR_MACHINE;
    tg_status status = tg_json_read_within(path, MAX_DOCUMENT, &h->info);
    free(path);
    return forgive(h, "run.json", status);
}

static tg_status read_options(tg_history *h)
{
    char *path = inside(h, "job.yaml"), *bytes = NULL;
    size_t length;
    if (!path)
        return TG_ERROR_MACHINE;
    tg_status status = tg_file_read(path, MAX_DOCUMENT, &bytes, &length);
    if (status == TG_OK)
        status = tg_yaml_parse(bytes, length, path, &h->options);
    free(bytes);
    free(path);
    return forgive(h, "job.yaml", status);
}

/* Calls for every file of a folder whose name begins and ends so. */
static tg_status each_file(tg_history *h, const char *folder, const char *begin, const char *end,
                           tg_status (*take)(tg_history *h, const char *path))
{
    char *path = inside(h, folder);
    if (!path)
        return TG_ERROR_MACHINE;
    DIR *dir = opendir(path);
    tg_status status = TG_OK;
    for (struct dirent *e; dir && status == TG_OK && (e = readdir(dir));) {
        const size_t n = strlen(e->d_name), tail = strlen(end);
        if (e->d_name[0] == '.' || strncmp(e->d_name, begin, strlen(begin)) != 0 || n < tail ||
            strcmp(e->d_name + n - tail, end) != 0)
            continue;
        char *file = tg_path_join(path, e->d_name);
        status = file ? take(h, file) : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
        free(file);
    }
    if (dir)
        closedir(dir);
    free(path);
    return status;
}

static tg_status take_host(tg_history *h, const char *path)
{
    size_t bad = 0;
    tg_system_host host;
    tg_system_host *hosts = more(h->hosts, h->host_count, sizeof *hosts);
    if (!hosts)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory", path);
    h->hosts = hosts;
    TG_TRY(tg_system_read(path, TG_HISTORY_SAMPLES, &host, &bad));
    h->bad_lines += bad;
    if (host.sample_count)
        hosts[h->host_count++] = host;
    else
        tg_system_host_done(&host);
    return TG_OK;
}

/* A file that is none of ours is passed over, as a bad line is. */
static tg_status take_operations(tg_history *h, const char *path)
{
    tg_operations operations;
    tg_operations *all = more(h->operations, h->operation_ranks, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory", path);
    h->operations = all;
    tg_status status = tg_operations_read(path, &operations);
    if (status == TG_ERROR_INPUT) {
        h->bad_lines++;
        tg_error_clear();
        return TG_OK;
    }
    TG_TRY(status);
    all[h->operation_ranks++] = operations;
    return TG_OK;
}

/* As an operations file: what is none of ours counts as a bad line. */
static tg_status read_tune(tg_history *h)
{
    char *path = inside(h, "tune.json");
    if (!path)
        return TG_ERROR_MACHINE;
    const bool there = tg_file_exists(path);
    tg_status status = there ? tg_tune_read(path, &h->tune) : TG_OK;
    free(path);
    if (status == TG_ERROR_INPUT) {
        h->bad_lines++;
        tg_error_clear();
        return TG_OK;
    }
    return status;
}

static int by_host(const void *a, const void *b)
{
    return strcmp(((const tg_system_host *)a)->host, ((const tg_system_host *)b)->host);
}

static int by_rank(const void *a, const void *b)
{
    const int x = ((const tg_operations *)a)->rank, y = ((const tg_operations *)b)->rank;
    return (x > y) - (x < y);
}

static void note_inputs(tg_history *h)
{
    bool devices = false;
    for (size_t i = 0; i < h->host_count; i++)
        devices = devices || h->hosts[i].device_count;
    h->inputs = (h->info.root ? TG_INPUT_INFO : 0u) | (h->options.root ? TG_INPUT_OPTIONS : 0u) |
                (h->step_count ? TG_INPUT_STEPS : 0u) | (h->eval_count ? TG_INPUT_EVALS : 0u) |
                (h->rank_row_count ? TG_INPUT_RANKS : 0u) | (h->span_count ? TG_INPUT_SPANS : 0u) |
                (h->host_count ? TG_INPUT_SYSTEM : 0u) | (devices ? TG_INPUT_DEVICES : 0u) |
                (h->operation_ranks ? TG_INPUT_OPERATIONS : 0u) |
                (h->tune.count ? TG_INPUT_TUNE : 0u);
    const double ranks = tg_history_info_number(h, "ranks");
    h->ranks = ranks >= 1 ? (int)ranks : 1;
}

static tg_status read_all(tg_history *h)
{
    reading r = {.h = h};
    TG_TRY(read_info(h));
    TG_TRY(read_options(h));
    TG_TRY(read_lines(&r, "metrics.jsonl", read_metrics));
    TG_TRY(read_lines(&r, "ranks.jsonl", read_ranks));
    TG_TRY(read_lines(&r, "spans.jsonl", read_spans));
    TG_TRY(each_file(h, "system", "", ".jsonl", take_host));
    TG_TRY(each_file(h, "trace", "operations-rank-", ".json", take_operations));
    TG_TRY(read_tune(h));
    if (h->host_count)
        qsort(h->hosts, h->host_count, sizeof *h->hosts, by_host);
    if (h->operation_ranks)
        qsort(h->operations, h->operation_ranks, sizeof *h->operations, by_rank);
    note_inputs(h);
    if (!h->inputs)
        return tg_fail(TG_ERROR_INPUT,
                       "%s: no run directory: neither run.json nor records of steps or machines",
                       h->path);
    return TG_OK;
}

tg_status tg_history_open(const char *path, tg_history *out)
{
    *out = (tg_history){.path = strdup(path)};
    if (!out->path)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory", path);
    tg_status status = tg_file_exists(path) ? read_all(out)
                                            : tg_fail(TG_ERROR_INPUT, "%s: %s", path,
                                                      strerrordesc_np(errno ? errno : ENOENT));
    if (status < 0)
        tg_history_close(out);
    return status;
}

void tg_history_close(tg_history *h)
{
    tg_json_done(&h->info);
    tg_yaml_done(&h->options);
    free(h->steps);
    free(h->evals);
    for (size_t i = 0; i < h->rank_row_count; i++)
        free(h->rank_rows[i].each);
    free(h->rank_rows);
    free(h->spans);
    for (size_t i = 0; i < h->host_count; i++)
        tg_system_host_done(&h->hosts[i]);
    free(h->hosts);
    for (size_t i = 0; i < h->operation_ranks; i++)
        tg_operations_done(&h->operations[i]);
    free(h->operations);
    tg_tune_done(&h->tune);
    free(h->path);
    *h = (tg_history){0};
}
