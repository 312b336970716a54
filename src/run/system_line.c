#include "run/system_line.h"

#include "base/json.h"
#include "base/json_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CORES = 1 << 16, MOST_DEVICES = 1 << 10 };

typedef struct float_column {
    const char *name;
    size_t offset;
} float_column;

static const float_column CORE[] = {
    {"user", offsetof(tg_system_core, user)},
    {"system", offsetof(tg_system_core, system)},
    {"iowait", offsetof(tg_system_core, iowait)},
    {"steal", offsetof(tg_system_core, steal)},
};
static const float_column DEVICE_SHARES[] = {
    {"gpu_utilisation", offsetof(tg_system_device, utilisation)},
    {"gpu_memory_utilisation", offsetof(tg_system_device, memory_utilisation)},
};
static const float_column DEVICE_NUMBERS[] = {
    {"gpu_memory_used_bytes", offsetof(tg_system_device, memory_used_bytes)},
    {"gpu_memory_total_bytes", offsetof(tg_system_device, memory_total_bytes)},
    {"gpu_power_w", offsetof(tg_system_device, power_w)},
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

tg_status tg_system_sample_make(size_t cores, size_t devices, tg_system_sample *out)
{
    *out = (tg_system_sample){.time = NAN, .seconds = NAN};
    out->cores = malloc((cores + 1) * sizeof *out->cores);
    out->devices = devices ? malloc(devices * sizeof *out->devices) : NULL;
    if (!out->cores || (devices && !out->devices)) {
        tg_system_sample_done(out);
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a sample of %zu cores", cores);
    }
    for (int m = 0; m < TG_SYSTEM_METRICS; m++)
        out->values[m] = NAN;
    for (size_t c = 0; c < cores; c++)
        out->cores[c] = (tg_system_core){NAN, NAN, NAN, NAN};
    for (size_t d = 0; d < devices; d++)
        out->devices[d] = (tg_system_device){NAN, NAN, NAN, NAN, NAN};
    return TG_OK;
}

void tg_system_sample_done(tg_system_sample *sample)
{
    free(sample->cores);
    free(sample->devices);
    *sample = (tg_system_sample){0};
}

void tg_system_head_print(const char *host, size_t cores, size_t devices, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "host", host);
    tg_json_put_uint(&w, "cores", cores);
    tg_json_put_uint(&w, "devices", devices);
    tg_json_begin_array(&w, "metrics");
    for (int m = 0; m < TG_SYSTEM_METRICS; m++)
        tg_json_put_string(&w, NULL, tg_system_metric_name(m));
    tg_json_end_array(&w);
    tg_json_end_object(&w);
}

/* Five digits are more than any of it is exact to. */
static void print_value(double value, tg_text *out)
{
    if (isnan(value))
        tg_text_append_string(out, "null");
    else if (isinf(value))
        tg_text_append_string(out, "\"none\"");
    else if (value == floor(value) && fabs(value) < 1e5)
        tg_text_append_format(out, "%.0f", value);
    else
        tg_text_append_format(out, "%.5g", value);
}

/* `stride` bytes from one item to the next. */
static void print_shares(const char *name, const void *first, size_t stride, size_t count,
                         tg_text *out)
{
    tg_text_append_format(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        const float share = *(const float *)((const char *)first + i * stride);
        if (i)
            tg_text_append_char(out, ',');
        print_value(isnan(share) ? NAN : round((double)share * 100), out);
    }
    tg_text_append_char(out, ']');
}

static void print_numbers(const char *name, const void *first, size_t stride, size_t count,
                          tg_text *out)
{
    tg_text_append_format(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i)
            tg_text_append_char(out, ',');
        print_value(*(const double *)((const char *)first + i * stride), out);
    }
    tg_text_append_char(out, ']');
}

void tg_system_sample_print(const tg_system_sample *s, size_t cores, size_t devices, tg_text *out)
{
    tg_text_append_format(out, "{\"time\":%.3f,\"seconds\":", s->time);
    print_value(s->seconds, out);
    for (size_t k = 0; k < COUNT(CORE); k++)
        print_shares(CORE[k].name, (const char *)s->cores + CORE[k].offset, sizeof *s->cores, cores,
                     out);
    print_numbers("values", s->values, sizeof *s->values, TG_SYSTEM_METRICS, out);
    for (size_t k = 0; devices && k < COUNT(DEVICE_SHARES); k++)
        print_shares(DEVICE_SHARES[k].name, (const char *)s->devices + DEVICE_SHARES[k].offset,
                     sizeof *s->devices, devices, out);
    for (size_t k = 0; devices && k < COUNT(DEVICE_NUMBERS); k++)
        print_numbers(DEVICE_NUMBERS[k].name, (const char *)s->devices + DEVICE_NUMBERS[k].offset,
                      sizeof *s->devices, devices, out);
    tg_text_append_char(out, '}');
}

/* null is NaN, "none" INFINITY. */
static tg_status read_value(const tg_json_node *array, size_t index, double *out)
{
    const tg_json_node element = tg_json_element(array, index);
    const char *text;
    switch (tg_json_node_kind(&element)) {
    case TG_JSON_NULL:
        *out = NAN;
        return TG_OK;
    case TG_JSON_STRING:
        TG_TRY(tg_json_as_string(&element, &text));
        *out = INFINITY;
        return strcmp(text, "none") == 0 ? TG_OK : tg_json_fail(&element, "is no number");
    default:
        return tg_json_as_double(&element, out);
    }
}

/* Shares outside 0 to 1 are unknown: they are no shares. */
static tg_status read_shares(const tg_json_node *root, const char *name, size_t count, void *first,
                             size_t stride)
{
    tg_json_node array;
    bool found;
    TG_TRY(tg_json_get_array(root, name, TG_OPTIONAL, &array, &found));
    for (size_t i = 0; found && i < count && i < tg_json_count(&array); i++) {
        double percent;
        TG_TRY(read_value(&array, i, &percent));
        *(float *)((char *)first + i * stride) =
            percent >= 0 && percent <= 100 ? (float)(percent / 100) : NAN;
    }
    return TG_OK;
}

static tg_status read_numbers(const tg_json_node *root, const char *name, size_t count, void *first,
                              size_t stride)
{
    tg_json_node array;
    bool found;
    TG_TRY(tg_json_get_array(root, name, TG_OPTIONAL, &array, &found));
    for (size_t i = 0; found && i < count && i < tg_json_count(&array); i++)
        TG_TRY(read_value(&array, i, (double *)((char *)first + i * stride)));
    return TG_OK;
}

static tg_status read_values(const tg_json_node *root, const tg_system_head *head, double *values)
{
    tg_json_node array;
    TG_TRY(tg_json_get_array(root, "values", TG_REQUIRED, &array, NULL));
    for (size_t i = 0; i < head->column_count && i < tg_json_count(&array); i++)
        if (head->columns[i] < TG_SYSTEM_METRICS)
            TG_TRY(read_value(&array, i, &values[head->columns[i]]));
    return TG_OK;
}

static tg_status read_sample(const tg_json_node *root, const tg_system_head *head,
                             tg_system_sample *out)
{
    TG_TRY(tg_json_get_double(root, "time", TG_REQUIRED, &out->time));
    TG_TRY(tg_json_get_double(root, "seconds", TG_REQUIRED, &out->seconds));
    if (!(out->seconds > 0))
        return tg_json_fail(root, "seconds: no interval");
    for (size_t k = 0; k < COUNT(CORE); k++)
        TG_TRY(read_shares(root, CORE[k].name, head->cores, (char *)out->cores + CORE[k].offset,
                           sizeof *out->cores));
    for (size_t k = 0; k < COUNT(DEVICE_SHARES) && head->devices; k++)
        TG_TRY(read_shares(root, DEVICE_SHARES[k].name, head->devices,
                           (char *)out->devices + DEVICE_SHARES[k].offset, sizeof *out->devices));
    for (size_t k = 0; k < COUNT(DEVICE_NUMBERS) && head->devices; k++)
        TG_TRY(read_numbers(root, DEVICE_NUMBERS[k].name, head->devices,
                            (char *)out->devices + DEVICE_NUMBERS[k].offset, sizeof *out->devices));
    return read_values(root, head, out->values);
}

static size_t find_metric(const char *name)
{
    size_t m = 0;
    while (m < TG_SYSTEM_METRICS && strcmp(tg_system_metric_name((int)m), name) != 0)
        m++;
    return m;
}

static tg_status read_head(const tg_json_node *root, tg_system_head *out)
{
    tg_json_node metrics;
    const char *host;
    tg_system_head head = {0};
    TG_TRY(tg_json_get_string(root, "host", TG_REQUIRED, &host));
    snprintf(head.host, sizeof head.host, "%s", host);
    TG_TRY(tg_json_get_size(root, "cores", TG_REQUIRED, &head.cores));
    TG_TRY(tg_json_get_size(root, "devices", TG_OPTIONAL, &head.devices));
    if (head.cores > MOST_CORES || head.devices > MOST_DEVICES)
        return tg_json_fail(root, "more cores or devices than any machine has");
    TG_TRY(tg_json_get_array(root, "metrics", TG_REQUIRED, &metrics, NULL));
    for (size_t i = 0; i < tg_json_count(&metrics) && i < TG_SYSTEM_METRICS; i++) {
        const tg_json_node element = tg_json_element(&metrics, i);
        const char *name;
        TG_TRY(tg_json_as_string(&element, &name));
        head.columns[head.column_count++] = find_metric(name);
    }
    *out = head;
    return TG_OK;
}

static tg_status read_root(const tg_json_node *root, tg_system_head *head, tg_system_sample *out,
                           tg_system_line_kind *kind)
{
    tg_json_node ignored;
    if (tg_json_find(root, "metrics", &ignored)) {
        TG_TRY(read_head(root, head));
        *kind = TG_SYSTEM_LINE_HEAD;
        return TG_OK;
    }
    if (!head->column_count)
        return tg_json_fail(root, "a sample before its head");
    TG_TRY(tg_system_sample_make(head->cores, head->devices, out));
    *kind = TG_SYSTEM_LINE_SAMPLE;
    return read_sample(root, head, out);
}

tg_status tg_system_line_parse(const char *line, size_t length, tg_system_head *head,
                               tg_system_sample *out, tg_system_line_kind *out_kind)
{
    tg_json json = {0};
    *out_kind = TG_SYSTEM_LINE_BAD;
    *out = (tg_system_sample){0};
    tg_status status = tg_json_parse(line, length, "system", &json);
    if (status == TG_OK) {
        tg_json_node root = tg_json_root(&json);
        status = tg_json_node_kind(&root) == TG_JSON_OBJECT ? read_root(&root, head, out, out_kind)
                                                            : tg_json_fail(&root, "is no object");
    }
    tg_json_done(&json);
    if (status == TG_OK)
        return TG_OK;
    tg_system_sample_done(out);
    *out_kind = TG_SYSTEM_LINE_BAD;
    if (status == TG_ERROR_MACHINE)
        return status;
    tg_error_clear(); /* of no use to the caller */
    return TG_OK;
}
