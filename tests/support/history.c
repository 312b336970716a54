#include "support/history.h"
#include "support/check.h"

#include "os/file.h"
#include "os/folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory)
{
    if (!memory)
        fail_msg("out of memory");
    return memory;
}

/* Room for `more` behind `count` elements. */
static void *with_room(void *array, size_t count, size_t more, size_t *room, size_t element)
{
    if (count + more <= *room)
        return array;
    *room = count + more + *room;
    return checked(realloc(array, *room * element));
}

tg_test_run tg_test_run_new(void)
{
    tg_test_run run = {.history = {.ranks = 1}};
    run.history.path = checked(strdup("runs/test"));
    return run;
}

void tg_test_run_done(tg_test_run *run)
{
    tg_history_close(&run->history);
    *run = (tg_test_run){0};
}

void tg_test_run_options(tg_test_run *run, const char *yaml)
{
    assert_ok(tg_yaml_parse(yaml, strlen(yaml), "job.yaml", &run->history.options));
    run->history.inputs |= TG_INPUT_OPTIONS;
}

void tg_test_run_info(tg_test_run *run, const char *json)
{
    tg_json_done(&run->history.info);
    assert_ok(tg_json_parse(json, strlen(json), "run.json", &run->history.info));
    run->history.inputs |= TG_INPUT_INFO;
}

void tg_test_run_machine(tg_test_run *run, int cores, int threads, int workers)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"command\":\"train\",\"machine\":{\"host\":\"a\",\"cpus\":%d},\"cgroup\":{"
             "\"version\":2,\"cpu_quota\":null,\"memory_limit_bytes\":null,\"usable_cpus\":%d},"
             "\"ranks\":1,\"threads\":%d,\"workers\":%d,\"each\":null,\"start\":\"2026-02-25T06:13:"
             "20.000Z\",\"end\":null,\"exit\":null,\"failure\":null}",
             cores, cores, threads, workers);
    tg_test_run_info(run, json);
}

tg_step_record tg_test_step(double t_step)
{
    return (tg_step_record){.images = 32,
                            .loss = 2,
                            .loss_task = 2,
                            .loss_kd = NAN,
                            .lr = 1e-3,
                            .grad_norm = 1,
                            .t_step = t_step,
                            .t_forward = t_step / 3,
                            .t_backward = t_step / 3 * 2,
                            .rss_bytes = 1u << 30};
}

void tg_test_run_steps(tg_test_run *run, size_t count, const tg_step_record *step)
{
    tg_history *h = &run->history;
    const size_t before = h->step_count;
    double time = before ? h->steps[before - 1].time : TG_TEST_RUN_BEGIN;
    h->steps = with_room(h->steps, before, count, &run->step_room, sizeof *h->steps);
    for (size_t i = 0; i < count; i++) {
        tg_step_record r = *step;
        const double parts = r.t_data + r.t_teacher + r.t_forward + r.t_backward + r.t_reduce +
                             r.t_optimizer + r.t_other;
        r.step = (int64_t)(before + i) + 1;
        r.time = time += r.t_step;
        r.images_per_s = (double)r.images / r.t_step;
        r.t_other += fmax(0, r.t_step - parts);
        h->steps[h->step_count++] = r;
    }
    h->inputs |= TG_INPUT_STEPS;
}

void tg_test_run_evals(tg_test_run *run, size_t count, const tg_eval_record *eval)
{
    tg_history *h = &run->history;
    h->evals = with_room(h->evals, h->eval_count, count, &run->eval_room, sizeof *h->evals);
    for (size_t i = 0; i < count; i++) {
        tg_eval_record r = *eval;
        r.epoch = (int64_t)h->eval_count + 1;
        h->evals[h->eval_count++] = r;
    }
    h->inputs |= TG_INPUT_EVALS;
}

void tg_test_run_span(tg_test_run *run, tg_span_kind kind, double time, double seconds,
                      int64_t step)
{
    tg_history *h = &run->history;
    h->spans = with_room(h->spans, h->span_count, 1, &run->span_room, sizeof *h->spans);
    h->spans[h->span_count++] =
        (tg_span){.attempt = 1, .kind = kind, .time = time, .seconds = seconds, .step = step};
    h->inputs |= TG_INPUT_SPANS;
}

void tg_test_run_ranks(tg_test_run *run, size_t count, const tg_rank_step *each, size_t ranks)
{
    tg_history *h = &run->history;
    h->rank_rows =
        with_room(h->rank_rows, h->rank_row_count, count, &run->row_room, sizeof *h->rank_rows);
    for (size_t i = 0; i < count; i++) {
        tg_rank_step *copy = checked(malloc(ranks * sizeof *copy));
        memcpy(copy, each, ranks * sizeof *copy);
        h->rank_rows[h->rank_row_count] = (tg_history_rank_row){
            .step = (int64_t)h->rank_row_count + 1, .each = copy, .ranks = ranks};
        h->rank_row_count++;
    }
    h->ranks = (int)ranks;
    h->inputs |= TG_INPUT_RANKS;
}

tg_test_sample_values tg_test_sample(void)
{
    tg_test_sample_values s = {.seconds = 0.5,
                               .user = NAN,
                               .system = NAN,
                               .iowait = NAN,
                               .steal = NAN,
                               .device = {NAN, NAN, NAN, NAN, NAN}};
    for (int m = 0; m < TG_SYSTEM_METRICS; m++)
        s.values[m] = NAN;
    return s;
}

void tg_test_sample_role(tg_test_sample_values *sample, tg_system_role role, double threads,
                         double cpu, double wait)
{
    sample->values[TG_SYSTEM_ROLE(role, TG_SYSTEM_THREADS)] = threads;
    sample->values[TG_SYSTEM_ROLE(role, TG_SYSTEM_CPU)] = cpu;
    sample->values[TG_SYSTEM_ROLE(role, TG_SYSTEM_WAIT)] = wait;
}

static tg_system_host *find_host(tg_history *h, const char *name, size_t cores, size_t devices)
{
    for (size_t i = 0; i < h->host_count; i++)
        if (strcmp(h->hosts[i].host, name) == 0)
            return &h->hosts[i];
    h->hosts = checked(realloc(h->hosts, (h->host_count + 1) * sizeof *h->hosts));
    tg_system_host *host = &h->hosts[h->host_count++];
    *host = (tg_system_host){.core_count = cores, .device_count = devices, .merged = 1};
    snprintf(host->host, sizeof host->host, "%s", name);
    h->inputs |= TG_INPUT_SYSTEM | (devices ? TG_INPUT_DEVICES : 0);
    return host;
}

static tg_system_sample make_sample(const tg_system_host *host, const tg_test_sample_values *from,
                                    double time)
{
    tg_system_sample s = {.time = time, .seconds = from->seconds};
    memcpy(s.values, from->values, sizeof s.values);
    s.cores = checked(calloc(host->core_count + 1, sizeof *s.cores));
    for (size_t c = 0; c < host->core_count; c++)
        s.cores[c] = (tg_system_core){from->user, from->system, from->iowait, from->steal};
    if (host->device_count)
        s.devices = checked(calloc(host->device_count, sizeof *s.devices));
    for (size_t d = 0; d < host->device_count; d++)
        s.devices[d] = from->device;
    return s;
}

void tg_test_run_samples(tg_test_run *run, const char *name, size_t cores, size_t devices,
                         size_t count, const tg_test_sample_values *sample)
{
    tg_system_host *host = find_host(&run->history, name, cores, devices);
    const size_t before = host->sample_count;
    double time = before ? host->samples[before - 1].time : TG_TEST_RUN_BEGIN;
    host->samples = checked(realloc(host->samples, (before + count + 1) * sizeof *host->samples));
    for (size_t i = 0; i < count; i++)
        host->samples[host->sample_count++] = make_sample(host, sample, time += sample->seconds);
}

void tg_test_run_operations(tg_test_run *run, const tg_operations *operations)
{
    tg_history *h = &run->history;
    h->operations =
        checked(realloc(h->operations, (h->operation_ranks + 1) * sizeof *h->operations));
    tg_operations *copy = &h->operations[h->operation_ranks++];
    *copy = *operations;
    copy->each = checked(malloc((operations->count + 1) * sizeof *copy->each));
    memcpy(copy->each, operations->each, operations->count * sizeof *copy->each);
    h->inputs |= TG_INPUT_OPERATIONS;
}

static char *join(const char *folder, const char *name)
{
    return checked(tg_path_join(folder, name));
}

static void write_records(const tg_history *h, const char *folder)
{
    tg_metrics metrics;
    char *path = join(folder, "metrics.jsonl");
    if (h->inputs & (TG_INPUT_STEPS | TG_INPUT_EVALS)) {
        assert_ok(tg_metrics_open(path, false, 0, 0, &metrics));
        for (size_t i = 0; i < h->step_count; i++)
            assert_ok(tg_metrics_write_step(&metrics, &h->steps[i]));
        for (size_t i = 0; i < h->eval_count; i++)
            assert_ok(tg_metrics_write_eval(&metrics, &h->evals[i]));
        tg_metrics_close(&metrics);
    }
    free(path);
    path = join(folder, "ranks.jsonl");
    tg_rank_steps ranks;
    if (h->inputs & TG_INPUT_RANKS) {
        assert_ok(tg_rank_steps_open(path, false, 0, &ranks));
        for (size_t i = 0; i < h->rank_row_count; i++)
            assert_ok(tg_rank_steps_write(&ranks, h->rank_rows[i].step, h->rank_rows[i].each,
                                          h->rank_rows[i].ranks));
        tg_rank_steps_close(&ranks);
    }
    free(path);
}

static void write_spans(const tg_history *h, const char *folder)
{
    tg_spans spans;
    char *path = join(folder, "spans.jsonl");
    if (h->inputs & TG_INPUT_SPANS) {
        assert_ok(tg_spans_open(path, false, &spans));
        for (size_t i = 0; i < h->span_count; i++)
            assert_ok(tg_spans_write(&spans, &h->spans[i]));
        tg_spans_close(&spans);
    }
    free(path);
}

static void write_samples(const tg_history *h, const char *folder)
{
    char *path = join(folder, "system");
    assert_ok(tg_folder_make(path));
    for (size_t i = 0; i < h->host_count; i++) {
        tg_system_writer writer;
        const tg_system_host *host = &h->hosts[i];
        assert_ok(tg_system_open(path, host->host, host->core_count, host->device_count, 1u << 26,
                                 &writer));
        for (size_t s = 0; s < host->sample_count; s++)
            assert_ok(tg_system_write(&writer, &host->samples[s]));
        tg_system_close(&writer);
    }
    free(path);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char *path = join(folder, name);
    assert_ok(tg_file_write(path, text, strlen(text)));
    free(path);
}

/* Only what tests ask the program for: the machine, and scalar options. */
static void write_documents(const tg_history *h, const char *folder)
{
    tg_text text = {0};
    if (h->inputs & TG_INPUT_OPTIONS) {
        for (const tg_yaml_node *n = h->options.root->first; n; n = n->next)
            tg_text_append_format(&text, "%s: %s\n", n->key, n->text ? n->text : "");
        write_text(folder, "job.yaml", tg_text_string(&text));
    }
    tg_text_clear(&text);
    if (h->inputs & TG_INPUT_INFO) {
        tg_text_append_format(
            &text,
            "{\"command\":\"train\",\"machine\":{\"host\":\"%s\"},\"cgroup\":{\"usable_cpus\":%g},"
            "\"ranks\":%d,\"threads\":%g,\"workers\":%g,\"end\":null}\n",
            tg_history_info_text(h, "machine.host"),
            tg_history_info_number(h, "cgroup.usable_cpus"), h->ranks,
            tg_history_info_number(h, "threads"), tg_history_info_number(h, "workers"));
        write_text(folder, "run.json", tg_text_string(&text));
    }
    tg_text_done(&text);
}

void tg_test_run_write(const tg_test_run *run, const char *path)
{
    const tg_history *h = &run->history;
    char *trace = join(path, "trace");
    assert_ok(tg_folder_make(trace));
    write_documents(h, path);
    write_records(h, path);
    write_spans(h, path);
    write_samples(h, path);
    for (size_t i = 0; i < h->operation_ranks; i++) {
        char name[64];
        snprintf(name, sizeof name, "operations-rank-%d.json", h->operations[i].rank);
        char *file = join(trace, name);
        assert_ok(tg_operations_write(file, &h->operations[i]));
        free(file);
    }
    free(trace);
}
