/* Questions to a history. */
#include "run/history.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

static const char *const INPUT_NAMES[TG_INPUT_COUNT] = {
    "what ran (run.json)",
    "the options (job.yaml)",
    "records of steps (metrics.jsonl)",
    "evaluations (metrics.jsonl)",
    "records of several ranks (ranks.jsonl)",
    "spans besides the steps (spans.jsonl)",
    "samples of the machine (system/)",
    "samples of accelerators (system/)",
    "times of operations (trace/operations-rank-N.json)",
    "trials of loader workers (tune.json)",
};

const char *tg_history_input_name(tg_history_input input)
{
    int bit = 0;
    while (bit + 1 < TG_INPUT_COUNT && !((unsigned)input & (1u << bit)))
        bit++;
    return INPUT_NAMES[bit];
}

const char *tg_history_option(const tg_history *history, const char *name)
{
    const tg_yaml_node *node =
        history->options.root ? tg_yaml_find(history->options.root, name) : NULL;
    return node && node->kind == TG_YAML_SCALAR && !tg_yaml_is_null(node) ? node->text : NULL;
}

double tg_history_option_number(const tg_history *history, const char *name)
{
    double value;
    const char *text = tg_history_option(history, name);
    return text && tg_number_parse_double(text, strlen(text), &value) ? value : NAN;
}

bool tg_history_info_find(const tg_history *history, const char *path, tg_json_node *out)
{
    char key[64];
    if (!history->info.root)
        return false;
    tg_json_node node = tg_json_root(&history->info);
    for (;;) {
        const size_t n = strcspn(path, ".");
        if (n >= sizeof key || tg_json_node_kind(&node) != TG_JSON_OBJECT)
            return false;
        memcpy(key, path, n);
        key[n] = '\0';
        tg_json_node child;
        if (!tg_json_find(&node, key, &child))
            return false;
        node = child;
        if (!path[n])
            break;
        path += n + 1;
    }
    *out = node;
    return true;
}

double tg_history_info_number(const tg_history *history, const char *path)
{
    tg_json_node node;
    double value = NAN;
    if (!tg_history_info_find(history, path, &node))
        return NAN;
    const tg_json_kind kind = tg_json_node_kind(&node);
    if ((kind != TG_JSON_INT && kind != TG_JSON_DOUBLE) || tg_json_as_double(&node, &value) < 0)
        return NAN;
    return value;
}

const char *tg_history_info_text(const tg_history *history, const char *path)
{
    tg_json_node node;
    const char *text = NULL;
    if (!tg_history_info_find(history, path, &node) || tg_json_node_kind(&node) != TG_JSON_STRING ||
        tg_json_as_string(&node, &text) < 0)
        return NULL;
    return text;
}

bool tg_history_ended(const tg_history *history)
{
    return tg_history_info_text(history, "end") != NULL;
}

double tg_history_begin(const tg_history *h)
{
    double begin = NAN;
    for (size_t i = 0; i < h->span_count; i++)
        begin = fmin(begin, h->spans[i].time);
    for (size_t i = 0; i < h->step_count && isnan(begin); i++)
        begin = h->steps[i].time - h->steps[i].t_step;
    for (size_t i = 0; i < h->host_count && h->span_count == 0; i++)
        begin = fmin(begin, h->hosts[i].samples[0].time - h->hosts[i].samples[0].seconds);
    return begin;
}

double tg_history_end(const tg_history *h)
{
    double end = NAN;
    for (size_t i = 0; i < h->span_count; i++) {
        const double seconds = h->spans[i].seconds;
        end = fmax(end, h->spans[i].time + (isnan(seconds) ? 0 : seconds));
    }
    for (size_t i = 0; i < h->step_count; i++)
        end = fmax(end, h->steps[i].time);
    for (size_t i = 0; i < h->host_count && !tg_history_ended(h); i++)
        end = fmax(end, h->hosts[i].samples[h->hosts[i].sample_count - 1].time);
    return end;
}
