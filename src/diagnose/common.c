#include "diagnose/common.h"

#include "base/median.h"
#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void tg_common_mark(tg_finding *f, const tg_use_steps *steps)
{
    f->begin = steps->begin;
    f->end = steps->end;
    f->first_step = steps->first_step;
    f->last_step = steps->last_step;
}

bool tg_common_option_is(const tg_history *history, const char *name, const char *value)
{
    const char *text = tg_history_option(history, name);
    return text && strcmp(text, value) == 0;
}

bool tg_common_info_object(const tg_history *history, const char *path, tg_json_node *out)
{
    return tg_history_info_find(history, path, out) && tg_json_node_kind(out) == TG_JSON_OBJECT;
}

double tg_common_swing(const tg_history *history, const tg_use_steps *use, size_t offset)
{
    double *values = malloc((history->step_count + 1) * sizeof *values);
    size_t n = 0;
    for (size_t i = 0; values && i < history->step_count; i++) {
        const tg_step_record *r = &history->steps[i];
        const double value = *(const double *)(const void *)((const char *)r + offset);
        if (r->step >= use->first_step && r->step <= use->last_step && value > 0)
            values[n++] = value;
    }
    double swing = NAN;
    if (values && n >= TG_USE_STEPS_LEAST) {
        tg_sort_doubles(values, n);
        swing = values[n - 1 - n / 20] / values[n / 20];
    }
    free(values);
    return swing;
}

/* The host in `each` of run.json; without that array, the machine's. */
static const char *host_of_rank(const tg_history *history, int rank)
{
    tg_json_node root, each, row;
    const char *host = NULL;
    if (!history->info.root)
        return NULL;
    root = tg_json_root(&history->info);
    if (tg_json_node_kind(&root) == TG_JSON_OBJECT && tg_json_find(&root, "each", &each) &&
        tg_json_node_kind(&each) == TG_JSON_ARRAY && (size_t)rank < tg_json_count(&each)) {
        row = tg_json_element(&each, (size_t)rank);
        if (tg_json_node_kind(&row) == TG_JSON_OBJECT &&
            tg_json_get_string(&row, "host", TG_OPTIONAL, &host) < 0)
            return NULL;
    }
    return host ? host : tg_history_info_text(history, "machine.host");
}

const tg_system_host *tg_common_host_of_rank(const tg_history *history, int rank)
{
    const char *name = host_of_rank(history, rank);
    for (size_t i = 0; i < history->host_count && name; i++)
        if (strcmp(history->hosts[i].host, name) == 0)
            return &history->hosts[i];
    return history->host_count == 1 ? &history->hosts[0] : NULL;
}

const char *tg_common_seconds(double seconds, char out[TG_COMMON_SECONDS])
{
    if (seconds >= 0.9995)
        tg_number_print(out, TG_COMMON_SECONDS, "%.2f s", seconds);
    else
        tg_number_print(out, TG_COMMON_SECONDS, seconds >= 0.00995 ? "%.0f ms" : "%.1f ms",
                        seconds * 1e3);
    return out;
}

const char *tg_common_bytes(double bytes, char out[TG_COMMON_SECONDS])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    double value = bytes / 1024;
    while (value >= 1023.5 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    tg_number_print(out, TG_COMMON_SECONDS, value < 9.95 ? "%.1f %s" : "%.0f %s", value,
                    units[unit]);
    return out;
}

double tg_common_compute(const tg_use_steps *steps)
{
    return steps->teacher_s + steps->forward_s + steps->backward_s;
}
