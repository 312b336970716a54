#include "monitor/incremental.h"

#include "base/json.h"
#include "os/file.h"
#include "os/folder.h"
#include "run/system_line.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CORES = 1 << 14, MOST_DEVICES = 1 << 10, NODE_BYTES = 256 };
#define ALL_CORES UINT32_MAX

typedef enum row_kind { CPU, IO_WAIT, GPU, GPU_MEMORY } row_kind;

typedef struct row {
    double time;
    float share; /* NaN: unknown */
    uint32_t node, index;
    row_kind kind;
} row;

typedef struct rows {
    row *each;
    size_t count, capacity;
    char (*nodes)[NODE_BYTES];
    size_t node_count, node_capacity;
} rows;

/* Room for one more, doubled when it is full; false without memory. */
static bool grow(void **array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    const size_t wanted = *capacity ? 2 * *capacity : 64;
    void *larger = realloc(*array, wanted * size);
    if (!larger)
        return false;
    *array = larger;
    *capacity = wanted;
    return true;
}

static tg_status no_memory(void)
{
    return tg_fail(TG_ERROR_MACHINE, "out of memory for rows of samples");
}

static tg_status find_node(rows *r, const char *name, uint32_t *out)
{
    for (size_t n = r->node_count; n-- > 0;)
        if (strncmp(r->nodes[n], name, NODE_BYTES - 1) == 0) {
            *out = (uint32_t)n;
            return TG_OK;
        }
    if (!grow((void **)&r->nodes, r->node_count, &r->node_capacity, sizeof *r->nodes))
        return no_memory();
    snprintf(r->nodes[r->node_count], NODE_BYTES, "%s", name);
    *out = (uint32_t)r->node_count++;
    return TG_OK;
}

/* "cpu12" -> 12; false for another word, or no number. */
static bool index_of(const char *name, const char *word, uint32_t most, uint32_t *out)
{
    const size_t n = strlen(word);
    char *end;
    if (strncmp(name, word, n) != 0 || name[n] < '0' || name[n] > '9')
        return false;
    const unsigned long value = strtoul(name + n, &end, 10);
    *out = (uint32_t)value;
    return *end == '\0' && value < most;
}

/* Whether it is a row of those that are kept. */
static bool classify(const char *dimension, const char *name, row *out)
{
    out->index = ALL_CORES;
    if (strcmp(dimension, "CPUUtilization") == 0) {
        out->kind = CPU;
        return index_of(name, "cpu", MOST_CORES, &out->index);
    }
    if (strcmp(dimension, "I/OWaitPercentage") == 0) {
        out->kind = IO_WAIT;
        return index_of(name, "cpu", MOST_CORES, &out->index) || !*name;
    }
    out->kind = strcmp(dimension, "GPUUtilization") == 0 ? GPU : GPU_MEMORY;
    return (out->kind == GPU || strcmp(dimension, "GPUMemoryUtilization") == 0) &&
           index_of(name, "gpu", MOST_DEVICES, &out->index);
}

static tg_status take_object(rows *r, const tg_json_node *root)
{
    const char *type, *name = "", *dimension, *node;
    double value;
    row one;
    TG_TRY(tg_json_get_string(root, "Type", TG_REQUIRED, &type));
    TG_TRY(tg_json_get_string(root, "Name", TG_OPTIONAL, &name));
    TG_TRY(tg_json_get_string(root, "Dimension", TG_REQUIRED, &dimension));
    TG_TRY(tg_json_get_double(root, "Value", TG_REQUIRED, &value));
    TG_TRY(tg_json_get_string(root, "NodeId", TG_REQUIRED, &node));
    TG_TRY(tg_json_get_double(root, "Timestamp", TG_REQUIRED, &one.time));
    if (!classify(dimension, name, &one))
        return TG_OK;
    TG_TRY(find_node(r, node, &one.node));
    one.share = value >= 0 && value <= 100 ? (float)(value / 100) : NAN;
    if (!grow((void **)&r->each, r->count, &r->capacity, sizeof *r->each))
        return no_memory();
    r->each[r->count++] = one;
    return TG_OK;
}

static tg_status take_line(rows *r, const char *line, size_t length, const char *path,
                           size_t number)
{
    char name[4096];
    tg_json json = {0};
    snprintf(name, sizeof name, "%s, line %zu", path, number);
    tg_status status = tg_json_parse(line, length, name, &json);
    if (status == TG_OK) {
        const tg_json_node root = tg_json_root(&json);
        status = take_object(r, &root);
    }
    tg_json_done(&json);
    return status;
}

static bool is_blank(const char *line, size_t length)
{
    return strspn(line, " \t\r\n") >= length;
}

static tg_status read_file(rows *r, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0, number = 0;
    ssize_t n;
    tg_status status = TG_OK;
    if (!file)
        return tg_fail(tg_file_read_fault(errno), "cannot read %s: %s", path,
                       strerrordesc_np(errno));
    while (status == TG_OK && (n = getline(&line, &capacity, file)) > 0) {
        number++;
        if (is_blank(line, (size_t)n))
            continue;
        status = take_line(r, line, (size_t)n, path, number);
        if (status == TG_ERROR_INPUT && line[n - 1] != '\n')
            status = TG_OK; /* torn: whoever wrote it was ended */
    }
    if (status == TG_OK && ferror(file))
        status = tg_fail(TG_ERROR_MACHINE, "cannot read %s", path);
    free(line);
    fclose(file);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* Files of a folder, and of the folders of hours in it. */
static tg_status read_folder(rows *r, const char *path, int depth)
{
    const struct dirent *entry;
    tg_status status = TG_OK;
    DIR *folder = opendir(path);
    if (!folder)
        return tg_fail(tg_file_read_fault(errno), "cannot read %s: %s", path,
                       strerrordesc_np(errno));
    while (status == TG_OK && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        char *below = tg_path_join(path, entry->d_name);
        DIR *inner = below && depth > 0 ? opendir(below) : NULL;
        if (inner)
            closedir(inner);
        if (!below)
            status = no_memory();
        else if (inner)
            status = read_folder(r, below, depth - 1);
        else if (ends_with(entry->d_name, ".json"))
            status = read_file(r, below);
        free(below);
    }
    closedir(folder);
    return status;
}

static int by_node_and_time(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

/* What is written of one node. */
typedef struct node_output {
    tg_system_writer writer;
    tg_system_sample sample;
    size_t cores, devices;
} node_output;

static void clear_sample(node_output *o)
{
    for (size_t c = 0; c < o->cores; c++)
        o->sample.cores[c] = (tg_system_core){NAN, NAN, NAN, NAN};
    for (size_t d = 0; d < o->devices; d++)
        o->sample.devices[d] = (tg_system_device){NAN, NAN, NAN, NAN, NAN};
}

static void put_row(node_output *o, const row *one)
{
    switch (one->kind) {
    case CPU:
        o->sample.cores[one->index].user = one->share;
        o->sample.cores[one->index].system = o->sample.cores[one->index].steal = 0;
        break;
    case IO_WAIT:
        for (size_t c = 0; c < o->cores; c++)
            if (one->index == ALL_CORES || one->index == c)
                o->sample.cores[c].iowait = one->share;
        break;
    case GPU:
        o->sample.devices[one->index].utilisation = one->share;
        break;
    case GPU_MEMORY:
        o->sample.devices[one->index].memory_utilisation = one->share;
    }
}

static size_t tick_end(const row *each, size_t begin, size_t count)
{
    size_t end = begin;
    while (end < count && each[end].time - each[begin].time <= TG_INCREMENTAL_TICK_S)
        end++;
    return end;
}

/* The first sample's interval is taken to be the second's. */
static tg_status write_ticks(node_output *o, const row *each, size_t count, size_t *out_samples)
{
    double before = NAN;
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = tick_end(each, begin, count);
        clear_sample(o);
        for (size_t i = begin; i < end; i++)
            put_row(o, &each[i]);
        const double next = end < count ? each[end].time - each[begin].time : 1;
        o->sample.time = each[begin].time;
        o->sample.seconds = isnan(before) ? next : each[begin].time - before;
        before = each[begin].time;
        TG_TRY(tg_system_write(&o->writer, &o->sample));
        ++*out_samples;
    }
    return TG_OK;
}

static void measure_node(const row *each, size_t count, node_output *o)
{
    for (size_t i = 0; i < count; i++) {
        size_t *size = each[i].kind <= IO_WAIT ? &o->cores : &o->devices;
        if (each[i].index != ALL_CORES && each[i].index + 1 > *size)
            *size = each[i].index + 1;
    }
}

static tg_status write_node(const char *folder, const char *node, const row *each, size_t count,
                            size_t *out_samples)
{
    node_output o = {0};
    measure_node(each, count, &o);
    TG_TRY(tg_system_sample_make(o.cores, o.devices, &o.sample));
    tg_status status = tg_system_open(folder, node, o.cores, o.devices, 0, &o.writer);
    if (status == TG_OK) {
        status = write_ticks(&o, each, count, out_samples);
        tg_system_close(&o.writer);
    }
    tg_system_sample_done(&o.sample);
    return status;
}

static tg_status write_nodes(const rows *r, const char *folder, tg_incremental_count *out)
{
    for (size_t begin = 0, end; begin < r->count; begin = end) {
        end = begin;
        while (end < r->count && r->each[end].node == r->each[begin].node)
            end++;
        TG_TRY(write_node(folder, r->nodes[r->each[begin].node], r->each + begin, end - begin,
                          &out->samples));
        out->nodes++;
    }
    out->rows = r->count;
    return TG_OK;
}

static bool has_samples(const char *folder)
{
    const struct dirent *entry;
    bool found = false;
    DIR *dir = opendir(folder);
    while (dir && (entry = readdir(dir)))
        found = found || ends_with(entry->d_name, ".jsonl");
    if (dir)
        closedir(dir);
    return found;
}

static tg_status read_all(const char *folder, rows *r)
{
    char *below = tg_path_join(folder, "system/incremental");
    tg_status status =
        below ? read_folder(r, tg_file_exists(below) ? below : folder, 1) : no_memory();
    free(below);
    if (status == TG_OK && !r->count)
        status = tg_fail(TG_ERROR_INPUT, "%s: no rows of samples in it, nor in system/incremental",
                         folder);
    return status;
}

tg_status tg_system_import(const char *folder, const char *run_path, tg_incremental_count *out)
{
    rows r = {0};
    tg_incremental_count count = {0};
    char *system = tg_path_join(run_path, "system");
    tg_status status = system ? TG_OK : no_memory();
    if (status == TG_OK && has_samples(system))
        status = tg_fail(TG_ERROR_USAGE, "%s has samples already: give another --output", run_path);
    if (status == TG_OK)
        status = read_all(folder, &r);
    if (status == TG_OK)
        status = tg_folder_make(system);
    if (status == TG_OK) {
        qsort(r.each, r.count, sizeof *r.each, by_node_and_time);
        status = write_nodes(&r, system, &count);
    }
    if (status == TG_OK)
        *out = count;
    free(r.each);
    free(r.nodes);
    free(system);
    return status;
}
