#include "run/rank_steps.h"

#include "base/json.h"
#include "base/json_writer.h"

#include <stdlib.h>

/* The arrays of a line, in order, for both directions. */
typedef struct column {
    const char *name;
    bool whole; /* a 64-bit integer; else a double */
    size_t offset;
} column;

#define COLUMN(name, whole)                                                                        \
    {                                                                                              \
#name, whole, offsetof(tg_rank_step, name)                                                 \
    }
static const column COLUMNS[] = {
    COLUMN(images, true),     COLUMN(t_step, false),      COLUMN(t_data, false),
    COLUMN(t_teacher, false), COLUMN(t_forward, false),   COLUMN(t_backward, false),
    COLUMN(t_reduce, false),  COLUMN(t_optimizer, false), COLUMN(t_other, false),
    COLUMN(rss_bytes, true),
};
enum { COLUMN_COUNT = sizeof COLUMNS / sizeof COLUMNS[0] };

static void print(int64_t step, const tg_rank_step *each, size_t ranks, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_int(&w, "step", step);
    tg_json_put_uint(&w, "ranks", ranks);
    for (size_t c = 0; c < COLUMN_COUNT; c++) {
        tg_json_begin_array(&w, COLUMNS[c].name);
        for (size_t r = 0; r < ranks; r++) {
            const char *at = (const char *)&each[r] + COLUMNS[c].offset;
            if (COLUMNS[c].whole)
                tg_json_put_uint(&w, NULL, *(const uint64_t *)at);
            else
                tg_json_put_double(&w, NULL, *(const double *)at);
        }
        tg_json_end_array(&w);
    }
    tg_json_end_object(&w);
}

tg_status tg_rank_steps_write(tg_rank_steps *writer, int64_t step, const tg_rank_step *each,
                              size_t ranks)
{
    tg_text_clear(&writer->lines.line);
    print(step, each, ranks, &writer->lines.line);
    return tg_lines_write(&writer->lines);
}

/* values: room for one column. */
static tg_status read_columns(const tg_json_node *root, size_t ranks, double *values,
                              tg_rank_step *out)
{
    for (size_t c = 0; c < COLUMN_COUNT; c++) {
        TG_TRY(tg_json_get_doubles(root, COLUMNS[c].name, TG_REQUIRED, ranks, values));
        for (size_t r = 0; r < ranks; r++) {
            char *at = (char *)&out[r] + COLUMNS[c].offset;
            if (!COLUMNS[c].whole)
                *(double *)at = values[r];
            else if (values[r] >= 0 && values[r] < 0x1p63)
                *(uint64_t *)at = (uint64_t)values[r];
            else
                return tg_json_fail(root, "%s: no count", COLUMNS[c].name);
        }
    }
    return TG_OK;
}

static tg_status read_each(const tg_json_node *root, tg_rank_step **out, size_t *out_ranks)
{
    tg_json_node steps;
    TG_TRY(tg_json_get_array(root, "t_step", TG_REQUIRED, &steps, NULL));
    const size_t ranks = tg_json_count(&steps);
    tg_rank_step *each = calloc(ranks + 1, sizeof *each);
    double *values = calloc(ranks + 1, sizeof *values);
    tg_status status = each && values
                           ? read_columns(root, ranks, values, each)
                           : tg_fail(TG_ERROR_MACHINE, "out of memory for %zu ranks", ranks);
    free(values);
    if (status < 0) {
        free(each);
        return status;
    }
    *out = each;
    *out_ranks = ranks;
    return TG_OK;
}

typedef struct reader {
    tg_rank_steps_visit visit;
    void *user;
    size_t bad;
} reader;

/* The message of a refused line is of no use to the caller and is dropped. */
bool tg_rank_steps_take(const char *line, size_t length, tg_rank_steps_visit visit, void *user)
{
    tg_json json = {0};
    tg_rank_step *each = NULL;
    size_t ranks = 0;
    int64_t step;
    tg_status status = tg_json_parse(line, length, "ranks", &json);
    if (status == TG_OK) {
        tg_json_node root = tg_json_root(&json);
        status = tg_json_get_int(&root, "step", TG_REQUIRED, &step);
        if (status == TG_OK)
            status = read_each(&root, &each, &ranks);
    }
    if (status == TG_OK)
        visit(user, step, each, ranks);
    free(each);
    tg_json_done(&json);
    if (status < 0)
        tg_error_clear();
    return status == TG_OK;
}

static tg_status read_line(void *user, const char *line, size_t length)
{
    reader *r = user;
    if (!tg_rank_steps_take(line, length, r->visit, r->user))
        r->bad++;
    return TG_OK;
}

tg_status tg_rank_steps_read(const char *path, tg_rank_steps_visit visit, void *user,
                             size_t *out_bad)
{
    reader r = {.visit = visit, .user = user};
    TG_TRY(tg_lines_read(path, read_line, &r));
    if (out_bad)
        *out_bad = r.bad;
    return TG_OK;
}

static bool keep_line(void *user, const char *line, size_t length)
{
    tg_json json = {0};
    int64_t step = 0;
    tg_status status = tg_json_parse(line, length, "ranks", &json);
    if (status == TG_OK) {
        tg_json_node root = tg_json_root(&json);
        status = tg_json_get_int(&root, "step", TG_REQUIRED, &step);
    }
    tg_json_done(&json);
    if (status < 0)
        tg_error_clear();
    return status == TG_OK && step <= *(const int64_t *)user;
}

tg_status tg_rank_steps_open(const char *path, bool resume, int64_t last_step, tg_rank_steps *out)
{
    return tg_lines_open(path, resume ? keep_line : NULL, &last_step, &out->lines);
}

tg_status tg_rank_steps_drop(const char *path, int64_t last_step)
{
    return tg_lines_drop(path, keep_line, &last_step);
}

void tg_rank_steps_close(tg_rank_steps *writer)
{
    if (writer)
        tg_lines_close(&writer->lines);
}
