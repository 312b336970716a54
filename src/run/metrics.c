#include "run/metrics.h"

#include "base/json.h"
#include "base/json_writer.h"

#include <math.h>

/* The file's fields, in order, for both directions. */
typedef enum field_kind { FIELD_INT, FIELD_UINT, FIELD_DOUBLE, FIELD_TIME } field_kind;

typedef struct field {
    const char *name;
    field_kind kind;
    size_t offset;
} field;

#define STEP(name, kind)                                                                           \
    {                                                                                              \
#name, kind, offsetof(tg_step_record, name)                                                \
    }
static const field STEP_FIELDS[] = {
    STEP(step, FIELD_INT),
    STEP(epoch, FIELD_INT),
    STEP(images, FIELD_INT),
    STEP(loss, FIELD_DOUBLE),
    STEP(loss_task, FIELD_DOUBLE),
    STEP(loss_kd, FIELD_DOUBLE),
    STEP(lr, FIELD_DOUBLE),
    STEP(grad_norm, FIELD_DOUBLE),
    STEP(images_per_s, FIELD_DOUBLE),
    STEP(t_step, FIELD_DOUBLE),
    STEP(t_data, FIELD_DOUBLE),
    STEP(t_teacher, FIELD_DOUBLE),
    STEP(t_forward, FIELD_DOUBLE),
    STEP(t_backward, FIELD_DOUBLE),
    STEP(t_reduce, FIELD_DOUBLE),
    STEP(t_optimizer, FIELD_DOUBLE),
    STEP(t_other, FIELD_DOUBLE),
    STEP(rss_bytes, FIELD_UINT),
    STEP(time, FIELD_TIME),
};
enum { STEP_FIELD_COUNT = sizeof STEP_FIELDS / sizeof STEP_FIELDS[0] };

#define EVAL(name, kind)                                                                           \
    {                                                                                              \
#name, kind, offsetof(tg_eval_record, name)                                                \
    }
static const field EVAL_FIELDS[] = {
    EVAL(epoch, FIELD_INT),       EVAL(val_top1, FIELD_DOUBLE), EVAL(val_top5, FIELD_DOUBLE),
    EVAL(val_loss, FIELD_DOUBLE), EVAL(val_images, FIELD_INT),  EVAL(time, FIELD_TIME),
};
enum { EVAL_FIELD_COUNT = sizeof EVAL_FIELDS / sizeof EVAL_FIELDS[0] };

/* Whole milliseconds. */
static void put_time(tg_json_writer *w, const char *key, double seconds)
{
    tg_json_put_double(w, key, round(seconds * 1e3) / 1e3);
}

static void print_fields(const void *record, const field *fields, size_t count, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)record + fields[i].offset;
        if (fields[i].kind == FIELD_INT)
            tg_json_put_int(&w, fields[i].name, *(const int64_t *)at);
        else if (fields[i].kind == FIELD_UINT)
            tg_json_put_uint(&w, fields[i].name, *(const uint64_t *)at);
        else if (fields[i].kind == FIELD_TIME)
            put_time(&w, fields[i].name, *(const double *)at);
        else
            tg_json_put_double(&w, fields[i].name, *(const double *)at);
    }
    tg_json_end_object(&w);
}

/* An absent or null number is NaN, an absent count 0. */
static tg_status read_fields(const tg_json_node *object, const field *fields, size_t count,
                             void *out)
{
    for (size_t i = 0; i < count; i++) {
        char *at = (char *)out + fields[i].offset;
        bool required = i == 0; /* what makes it this kind of record */
        if (fields[i].kind == FIELD_INT) {
            *(int64_t *)at = 0;
            TG_TRY(tg_json_get_int(object, fields[i].name, required, (int64_t *)at));
        } else if (fields[i].kind == FIELD_UINT) {
            size_t value = 0;
            TG_TRY(tg_json_get_size(object, fields[i].name, required, &value));
            *(uint64_t *)at = value;
        } else {
            *(double *)at = NAN;
            TG_TRY(tg_json_get_double(object, fields[i].name, required, (double *)at));
        }
    }
    return TG_OK;
}

void tg_step_record_print(const tg_step_record *record, tg_text *out)
{
    print_fields(record, STEP_FIELDS, STEP_FIELD_COUNT, out);
}

void tg_eval_record_print(const tg_eval_record *record, tg_text *out)
{
    print_fields(record, EVAL_FIELDS, EVAL_FIELD_COUNT, out);
}

typedef struct either {
    bool is_step;
    tg_step_record step;
    tg_eval_record eval;
} either;

/* The message of a refused line is of no use to the caller and is dropped. */
static bool parse_line(const char *line, size_t length, either *out)
{
    tg_json json = {0};
    tg_status status = tg_json_parse(line, length, "metrics", &json);
    if (status == TG_OK) {
        tg_json_node root = tg_json_root(&json), ignored;
        out->is_step =
            tg_json_node_kind(&root) == TG_JSON_OBJECT && tg_json_find(&root, "step", &ignored);
        status = out->is_step ? read_fields(&root, STEP_FIELDS, STEP_FIELD_COUNT, &out->step)
                              : read_fields(&root, EVAL_FIELDS, EVAL_FIELD_COUNT, &out->eval);
    }
    tg_json_done(&json);
    if (status < 0)
        tg_error_clear();
    return status == TG_OK;
}

typedef struct reader {
    tg_metrics_visit visit;
    void *user;
    size_t bad;
} reader;

bool tg_metrics_take(const char *line, size_t length, tg_metrics_visit visit, void *user)
{
    either record;
    if (!parse_line(line, length, &record))
        return false;
    visit(user, record.is_step ? &record.step : NULL, record.is_step ? NULL : &record.eval);
    return true;
}

static tg_status read_line(void *user, const char *line, size_t length)
{
    reader *r = user;
    if (!tg_metrics_take(line, length, r->visit, r->user))
        r->bad++;
    return TG_OK;
}

tg_status tg_metrics_read(const char *path, tg_metrics_visit visit, void *user, size_t *out_bad)
{
    reader r = {.visit = visit, .user = user};
    TG_TRY(tg_lines_read(path, read_line, &r));
    if (out_bad)
        *out_bad = r.bad;
    return TG_OK;
}

typedef struct keeper {
    int64_t last_step, last_epoch;
} keeper;

static bool keep_line(void *user, const char *line, size_t length)
{
    const keeper *k = user;
    either record;
    if (!parse_line(line, length, &record))
        return false;
    return record.is_step ? record.step.step <= k->last_step : record.eval.epoch <= k->last_epoch;
}

tg_status tg_metrics_open(const char *path, bool resume, int64_t last_step, int64_t last_epoch,
                          tg_metrics *out)
{
    keeper k = {.last_step = last_step, .last_epoch = last_epoch};
    return tg_lines_open(path, resume ? keep_line : NULL, &k, &out->lines);
}

void tg_metrics_close(tg_metrics *metrics)
{
    if (metrics)
        tg_lines_close(&metrics->lines);
}

tg_status tg_metrics_write_step(tg_metrics *metrics, const tg_step_record *record)
{
    tg_text_clear(&metrics->lines.line);
    tg_step_record_print(record, &metrics->lines.line);
    return tg_lines_write(&metrics->lines);
}

tg_status tg_metrics_write_eval(tg_metrics *metrics, const tg_eval_record *record)
{
    tg_text_clear(&metrics->lines.line);
    tg_eval_record_print(record, &metrics->lines.line);
    return tg_lines_write(&metrics->lines);
}
