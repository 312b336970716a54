/* What ran and how it ended; settings and machine; what was not there. */
#include "report/html_parts.h"

#include "base/median.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *state_of(const tg_history *h, const tg_html_options *options)
{
    if (options->running)
        return "running";
    if (!(h->inputs & TG_INPUT_INFO))
        return "unknown";
    if (!tg_history_ended(h))
        return "lost";
    const double code = tg_history_info_number(h, "exit");
    if (code == 0)
        return "done";
    return code == 130 || code == 143 || code == 129 ? "stopped" : "failed";
}

/* Medians of all steps: a slow start and outliers do not move them. */
static double median_of(const tg_history *h, double (*value)(const tg_step_record *step))
{
    double *values = malloc((h->step_count + 1) * sizeof *values);
    size_t n = 0;
    for (size_t i = 0; values && i < h->step_count; i++)
        if (isfinite(value(&h->steps[i])))
            values[n++] = value(&h->steps[i]);
    if (values)
        tg_sort_doubles(values, n);
    const double median = values ? tg_quantile(values, n, 0.5) : NAN;
    free(values);
    return median;
}

static double step_s(const tg_step_record *step)
{
    return step->t_step;
}
static double images_per_s(const tg_step_record *step)
{
    return step->images_per_s;
}
static double images(const tg_step_record *step)
{
    return (double)step->images;
}

static void put_accuracy(tg_json_writer *w, const tg_history *h)
{
    const tg_eval_record *best = NULL, *last = NULL;
    for (size_t i = 0; i < h->eval_count; i++) {
        last = &h->evals[i];
        if (!best || last->val_top1 > best->val_top1)
            best = last;
    }
    tg_html_put_number(w, "best_top1", best ? best->val_top1 : NAN);
    tg_html_put_number(w, "last_top1", last ? last->val_top1 : NAN);
    tg_html_put_number(w, "best_epoch", best ? (double)best->epoch : NAN);
}

static void put_progress(tg_json_writer *w, const tg_history *h)
{
    const tg_step_record *last = h->step_count ? &h->steps[h->step_count - 1] : NULL;
    double epochs = h->eval_count ? (double)h->evals[h->eval_count - 1].epoch : NAN;
    if (isnan(epochs) && last)
        epochs = (double)last->epoch;
    tg_json_put_int(w, "steps", last ? last->step : 0);
    tg_html_put_number(w, "epochs_done", epochs);
    tg_html_put_number(w, "epochs", tg_history_option_number(h, "epochs"));
    tg_html_put_number(w, "images_per_s", median_of(h, images_per_s));
    tg_html_put_number(w, "median_step_s", median_of(h, step_s));
    tg_html_put_number(w, "batch", median_of(h, images));
}

void tg_html_put_run(tg_json_writer *w, const tg_history *h, const tg_html_options *options)
{
    const double begin = tg_history_begin(h), end = tg_history_end(h);
    tg_json_put_string(w, "version", options->version);
    tg_json_put_double(w, "written", options->written);
    tg_json_put_bool(w, "live", options->running);
    tg_json_put_double(w, "refresh_s", options->refresh_s);
    tg_json_begin_object(w, "run");
    tg_json_put_string(w, "path", h->path);
    tg_json_put_string(w, "command", tg_history_info_text(h, "command"));
    tg_json_put_string(w, "model", tg_history_option(h, "model"));
    tg_json_put_string(w, "state", state_of(h, options));
    tg_html_put_number(w, "exit", tg_history_info_number(h, "exit"));
    tg_json_put_string(w, "failure", tg_history_info_text(h, "failure"));
    tg_json_put_double(w, "begin", begin);
    tg_json_put_double(w, "end", end);
    tg_html_put_number(w, "seconds", end - begin);
    put_accuracy(w, h);
    put_progress(w, h);
    tg_html_put_number(w, "ranks", h->ranks > 0 ? h->ranks : NAN);
    tg_json_put_uint(w, "hosts", h->host_count);
    tg_html_put_number(w, "threads", tg_history_info_number(h, "threads"));
    tg_html_put_number(w, "workers", tg_history_info_number(h, "workers"));
    tg_json_end_object(w);
}

static void put_row(tg_json_writer *w, const char *name, const char *text)
{
    tg_json_begin_array(w, NULL);
    tg_json_put_string(w, NULL, name);
    tg_json_put_string(w, NULL, text);
    tg_json_end_array(w);
}

static void put_list(tg_json_writer *w, const tg_yaml_node *option)
{
    tg_text joined = {0};
    for (const tg_yaml_node *item = option->first; item; item = item->next) {
        tg_text_append_string(&joined, item == option->first ? "" : ", ");
        tg_text_append_string(&joined, item->text ? item->text : "");
    }
    put_row(w, option->key, tg_text_string(&joined));
    tg_text_done(&joined);
}

static void put_options(tg_json_writer *w, const tg_history *h)
{
    tg_json_begin_array(w, "options");
    const tg_yaml_node *option = h->options.root ? h->options.root->first : NULL;
    for (; option; option = option->next) {
        if (!option->key || tg_yaml_is_null(option))
            continue;
        if (option->kind == TG_YAML_SCALAR)
            put_row(w, option->key, option->text);
        else
            put_list(w, option);
    }
    tg_json_end_array(w);
}

/* Row [name, value or null, unit] where run.json says it. */
static void put_info(tg_json_writer *w, const tg_history *h, const char *path, const char *name,
                     const char *unit)
{
    const char *text = tg_history_info_text(h, path);
    const double number = tg_history_info_number(h, path);
    if (text)
        put_row(w, name, text);
    else if (!isnan(number)) {
        tg_json_begin_array(w, NULL);
        tg_json_put_string(w, NULL, name);
        tg_json_put_double(w, NULL, number);
        tg_json_put_string(w, NULL, unit);
        tg_json_end_array(w);
    }
}

static void put_machine(tg_json_writer *w, const tg_history *h)
{
    static const char *const ROWS[][3] = {
        {"version", "tagine", NULL},
        {"machine.host", "host", NULL},
        {"machine.cpu", "processor", NULL},
        {"machine.cpus", "cores allowed", ""},
        {"cgroup.usable_cpus", "cores usable", ""},
        {"cgroup.cpu_quota", "CPU quota", "cores"},
        {"machine.memory_bytes", "memory", "bytes"},
        {"cgroup.memory_limit_bytes", "memory limit", "bytes"},
        {"machine.system", "system", NULL},
        {"libraries.matrix_products", "matrix products", NULL},
        {"kernels.instruction_set", "instruction set", NULL},
        {"kernels.attention", "attention kernels", NULL},
        {"kernels.rows", "row kernels", NULL},
        {"kernels.products", "products by", NULL},
        {"ranks", "ranks", ""},
        {"threads", "threads of a rank", ""},
        {"workers", "loader workers of a rank", ""},
        {"data.train_images", "training photos", ""},
        {"data.val_images", "validation photos", ""},
        {"data.classes", "classes", ""},
        {"teacher_score.val_top1", "teacher's top-1", "%"},
    };
    tg_json_begin_array(w, "machine");
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        put_info(w, h, ROWS[i][0], ROWS[i][1], ROWS[i][2]);
    tg_json_end_array(w);
}

static double memory_number(const tg_history *h, const char *name, const char *of)
{
    char path[80];
    snprintf(path, sizeof path, "memory.%s_bytes.%s", name, of);
    return tg_history_info_number(h, path);
}

static void put_memory(tg_json_writer *w, const tg_history *h)
{
    static const char *const NAMES[] = {
        "program",     "weights", "gradients", "moments",         "average",          "prepared",
        "activations", "batches", "decoding",  "teacher_weights", "teacher_prepared", "exchange"};
    if (isnan(tg_history_info_number(h, "memory.predicted_bytes"))) {
        tg_json_put_null(w, "memory");
        return;
    }
    tg_json_begin_object(w, "memory");
    tg_html_put_number(w, "predicted", tg_history_info_number(h, "memory.predicted_bytes"));
    tg_html_put_number(w, "available", tg_history_info_number(h, "memory.available_bytes"));
    tg_html_put_number(w, "peak", tg_history_info_number(h, "memory.peak_rss_bytes"));
    tg_json_begin_array(w, "rows");
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        const double predicted = memory_number(h, NAMES[i], "predicted");
        const double most = memory_number(h, NAMES[i], "most");
        if (!(predicted > 0) && !(most > 0))
            continue;
        tg_json_begin_object(w, NULL);
        tg_json_put_string(w, "name", NAMES[i]);
        tg_html_put_number(w, "predicted", predicted);
        tg_html_put_number(w, "most", most);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
    tg_json_end_object(w);
}

void tg_html_put_facts(tg_json_writer *w, const tg_history *h)
{
    put_memory(w, h);
    put_options(w, h);
    put_machine(w, h);
}

static const char *why_missing(const tg_history *h, tg_history_input input)
{
    switch (input) {
    case TG_INPUT_INFO:
        return "no run.json: neither machine, memory nor end are known";
    case TG_INPUT_OPTIONS:
        return "no job.yaml: settings are not known";
    case TG_INPUT_STEPS:
        return "no records of steps: no loss, no step times";
    case TG_INPUT_EVALS:
        return "nothing was evaluated: no accuracy";
    case TG_INPUT_RANKS:
        return h->ranks > 1 ? "no ranks.jsonl: ranks cannot be compared" : NULL;
    case TG_INPUT_SPANS:
        return "no spans.jsonl, as of older programs: start, evaluation and checkpoints have no "
               "times";
    case TG_INPUT_SYSTEM:
        return "no samples in system/: the monitor was off, or never began";
    case TG_INPUT_DEVICES:
        return "no accelerator was seen, or its vendor's library was not there";
    case TG_INPUT_OPERATIONS:
        return "no trace/operations-rank-N.json: operations were not recorded";
    default:
        return NULL;
    }
}

void tg_html_put_missing(tg_json_writer *w, const tg_history *h)
{
    tg_json_begin_array(w, "missing");
    for (int bit = 0; bit < TG_INPUT_COUNT; bit++) {
        const tg_history_input input = (tg_history_input)(1u << bit);
        const char *why = h->inputs & input ? NULL : why_missing(h, input);
        if (why)
            put_row(w, tg_history_input_name(input), why);
    }
    if (h->bad_lines) {
        char text[80];
        snprintf(text, sizeof text, "%zu were torn or no records, and left out", h->bad_lines);
        put_row(w, "lines", text);
    }
    tg_json_end_array(w);
}
