#include "run/tune.h"

#include "base/json.h"
#include "base/json_writer.h"
#include "os/document.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { INT, INT64, DOUBLE } kind;

/* The numbers of an object, in order, for both directions. */
typedef struct field {
    const char *name;
    kind kind;
    size_t offset;
} field;

#define POINT(name, kind)                                                                          \
    {                                                                                              \
#name, kind, offsetof(tg_tune_point, name)                                                 \
    }
static const field POINT_FIELDS[] = {
    POINT(workers, INT),
    POINT(trials, INT),
    POINT(step, INT64),
    POINT(steps, INT64),
    POINT(images, INT64),
    POINT(seconds, DOUBLE),
    POINT(images_per_s, DOUBLE),
    POINT(noise, DOUBLE),
    POINT(wait_share, DOUBLE),
    POINT(loader_images_per_s, DOUBLE),
    POINT(voluntary_per_s, DOUBLE),
    POINT(involuntary_per_s, DOUBLE),
    POINT(compute_voluntary_per_s, DOUBLE),
    POINT(compute_involuntary_per_s, DOUBLE),
    POINT(run_queue, DOUBLE),
    POINT(pressure, DOUBLE),
};
#define SEARCH(name, kind)                                                                         \
    {                                                                                              \
#name, kind, offsetof(tg_tune_search_record, name)                                         \
    }
static const field SEARCH_FIELDS[] = {
    SEARCH(time, DOUBLE),      SEARCH(step, INT64),  SEARCH(steps, INT64), SEARCH(seconds, DOUBLE),
    SEARCH(cost_s, DOUBLE),    SEARCH(threads, INT), SEARCH(cores, INT),   SEARCH(ranks, INT),
    SEARCH(batch_size, INT64), SEARCH(best, INT),    SEARCH(chosen, INT),
};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void put_fields(tg_json_writer *w, const void *object, const field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)object + fields[i].offset;
        if (fields[i].kind == INT)
            tg_json_put_int(w, fields[i].name, *(const int *)at);
        else if (fields[i].kind == INT64)
            tg_json_put_int(w, fields[i].name, *(const int64_t *)at);
        else
            tg_json_put_double(w, fields[i].name, *(const double *)at);
    }
}

static void put_points(tg_json_writer *w, const char *key, const tg_tune_point *points,
                       size_t count)
{
    tg_json_begin_array(w, key);
    for (size_t i = 0; i < count; i++) {
        tg_json_begin_object(w, NULL);
        put_fields(w, &points[i], POINT_FIELDS, COUNT(POINT_FIELDS));
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

static void put_search(tg_json_writer *w, const tg_tune_search_record *s)
{
    tg_json_begin_object(w, NULL);
    tg_json_put_string(w, "reason", s->reason);
    put_fields(w, s, SEARCH_FIELDS, COUNT(SEARCH_FIELDS));
    tg_json_put_string(w, "why", s->why);
    put_points(w, "points", s->points, s->point_count);
    put_points(w, "trials", s->trials, s->trial_count);
    tg_json_end_object(w);
}

tg_status tg_tune_write(const char *path, const tg_tune_file *file)
{
    tg_text text = {0};
    tg_json_writer w = tg_json_writer_init(&text);
    tg_json_begin_object(&w, NULL);
    tg_json_put_int(&w, "version", 1);
    tg_json_begin_array(&w, "searches");
    for (size_t i = 0; i < file->count; i++)
        put_search(&w, &file->searches[i]);
    tg_json_end_array(&w);
    tg_json_end_object(&w);
    tg_text_append_char(&text, '\n');
    tg_status status = tg_file_write_text(path, &text);
    tg_text_done(&text);
    return status;
}

static tg_status read_double(const tg_json_node *object, const char *key, double *out)
{
    tg_json_node node;
    *out = NAN;
    if (!tg_json_find(object, key, &node) || tg_json_node_kind(&node) == TG_JSON_NULL)
        return TG_OK;
    return tg_json_as_double(&node, out);
}

static tg_status read_fields(const tg_json_node *object, const field *fields, size_t count,
                             void *out)
{
    for (size_t i = 0; i < count; i++) {
        char *at = (char *)out + fields[i].offset;
        int64_t whole = 0;
        if (fields[i].kind == DOUBLE) {
            TG_TRY(read_double(object, fields[i].name, (double *)at));
            continue;
        }
        TG_TRY(tg_json_get_int(object, fields[i].name, TG_REQUIRED, &whole));
        if (fields[i].kind == INT64)
            *(int64_t *)at = whole;
        else if (whole >= 0 && whole <= INT32_MAX)
            *(int *)at = (int)whole;
        else
            return tg_json_fail(object, "%s: no count", fields[i].name);
    }
    return TG_OK;
}

static tg_status read_points(const tg_json_node *object, const char *key, size_t most,
                             tg_tune_point *out, size_t *out_count)
{
    tg_json_node list;
    TG_TRY(tg_json_get_array(object, key, TG_REQUIRED, &list, NULL));
    const size_t count = tg_json_count(&list);
    if (count > most)
        return tg_json_fail(&list, "%zu entries are more than %zu", count, most);
    for (size_t i = 0; i < count; i++) {
        tg_json_node element = tg_json_element(&list, i);
        TG_TRY(read_fields(&element, POINT_FIELDS, COUNT(POINT_FIELDS), &out[i]));
    }
    *out_count = count;
    return TG_OK;
}

static tg_status read_search(const tg_json_node *object, tg_tune_search_record *out)
{
    const char *reason = "", *why = "";
    *out = (tg_tune_search_record){0};
    TG_TRY(tg_json_get_string(object, "reason", TG_REQUIRED, &reason));
    TG_TRY(tg_json_get_string(object, "why", TG_OPTIONAL, &why));
    snprintf(out->reason, sizeof out->reason, "%s", reason);
    snprintf(out->why, sizeof out->why, "%s", why);
    TG_TRY(read_fields(object, SEARCH_FIELDS, COUNT(SEARCH_FIELDS), out));
    TG_TRY(read_points(object, "points", TG_TUNE_POINTS, out->points, &out->point_count));
    return read_points(object, "trials", TG_TUNE_TRIALS, out->trials, &out->trial_count);
}

static tg_status read_all(const tg_json_node *root, tg_tune_file *out)
{
    tg_json_node list;
    int64_t version = 0;
    TG_TRY(tg_json_get_int(root, "version", TG_REQUIRED, &version));
    if (version != 1)
        return tg_json_fail(root, "version %lld is not known", (long long)version);
    TG_TRY(tg_json_get_array(root, "searches", TG_REQUIRED, &list, NULL));
    for (size_t i = 0; i < tg_json_count(&list); i++) {
        tg_json_node element = tg_json_element(&list, i);
        tg_tune_search_record search;
        TG_TRY(read_search(&element, &search));
        TG_TRY(tg_tune_append(out, &search));
    }
    return TG_OK;
}

tg_status tg_tune_read(const char *path, tg_tune_file *out)
{
    tg_json json;
    tg_tune_file file = {0};
    TG_TRY(tg_json_read(path, &json));
    const tg_json_node root = tg_json_root(&json);
    tg_status status = read_all(&root, &file);
    tg_json_done(&json);
    if (status < 0)
        tg_tune_done(&file);
    else
        *out = file;
    return status;
}

tg_status tg_tune_append(tg_tune_file *file, const tg_tune_search_record *search)
{
    if (!file->searches)
        file->searches = calloc(TG_TUNE_SEARCHES, sizeof *file->searches);
    if (!file->searches)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for trials of workers");
    if (file->count == TG_TUNE_SEARCHES)
        memmove(file->searches, file->searches + 1, --file->count * sizeof *file->searches);
    file->searches[file->count++] = *search;
    return TG_OK;
}

void tg_tune_done(tg_tune_file *file)
{
    free(file->searches);
    *file = (tg_tune_file){0};
}

const tg_tune_search_record *tg_tune_last(const tg_tune_file *file)
{
    return file->count ? &file->searches[file->count - 1] : NULL;
}

const tg_tune_point *tg_tune_chosen(const tg_tune_search_record *search)
{
    for (size_t i = 0; i < search->point_count; i++)
        if (search->points[i].workers == search->chosen)
            return &search->points[i];
    return NULL;
}
