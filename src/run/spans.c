#include "run/spans.h"

#include "base/json.h"
#include "base/json_writer.h"

#include <math.h>
#include <string.h>

static const char *const NAMES[TG_SPAN_KINDS] = {
    "attempt", "start", "evaluation", "checkpoint", "tune", "records", "finish", "dropped", "end"};

const char *tg_span_kind_name(tg_span_kind kind)
{
    return NAMES[kind];
}

/* An unknown kind (of a newer program) is no span for this reader. */
static tg_status find_kind(const tg_json_node *object, tg_span_kind *out)
{
    const char *name;
    TG_TRY(tg_json_get_string(object, "what", TG_REQUIRED, &name));
    for (int k = 0; k < TG_SPAN_KINDS; k++) {
        if (strcmp(NAMES[k], name) != 0)
            continue;
        *out = (tg_span_kind)k;
        return TG_OK;
    }
    return tg_json_fail(object, "what: no kind of span");
}

static tg_status read_span(const tg_json_node *object, tg_span *out)
{
    *out = (tg_span){.time = NAN, .seconds = NAN};
    TG_TRY(tg_json_get_int(object, "attempt", TG_REQUIRED, &out->attempt));
    TG_TRY(find_kind(object, &out->kind));
    TG_TRY(tg_json_get_double(object, "time", TG_OPTIONAL, &out->time));
    TG_TRY(tg_json_get_double(object, "seconds", TG_OPTIONAL, &out->seconds));
    return tg_json_get_int(object, "step", TG_OPTIONAL, &out->step);
}

typedef struct reader {
    tg_spans_visit visit;
    void *user;
    size_t bad;
} reader;

/* The message of a refused line is of no use to the caller and is dropped. */
bool tg_spans_take(const char *line, size_t length, tg_spans_visit visit, void *user)
{
    tg_json json = {0};
    tg_span span;
    tg_status status = tg_json_parse(line, length, "spans", &json);
    if (status == TG_OK) {
        tg_json_node root = tg_json_root(&json);
        status = read_span(&root, &span);
    }
    tg_json_done(&json);
    if (status == TG_OK)
        visit(user, &span);
    else
        tg_error_clear();
    return status == TG_OK;
}

static tg_status read_line(void *user, const char *line, size_t length)
{
    reader *r = user;
    if (!tg_spans_take(line, length, r->visit, r->user))
        r->bad++;
    return TG_OK;
}

tg_status tg_spans_read(const char *path, tg_spans_visit visit, void *user, size_t *out_bad)
{
    reader r = {.visit = visit, .user = user};
    TG_TRY(tg_lines_read(path, read_line, &r));
    if (out_bad)
        *out_bad = r.bad;
    return TG_OK;
}

static void find_last(void *user, const tg_span *span)
{
    int64_t *last = user;
    if (span->attempt > *last)
        *last = span->attempt;
}

static bool keep_all(void *user, const char *line, size_t length)
{
    (void)user;
    (void)line;
    (void)length;
    return true;
}

tg_status tg_spans_open(const char *path, bool resume, tg_spans *out)
{
    int64_t last = 0;
    if (resume && tg_spans_read(path, find_last, &last, NULL) < 0)
        tg_error_clear(); /* absent */
    /* Dropping nothing drops the torn line that a killed job may have left. */
    TG_TRY(tg_lines_open(path, resume ? keep_all : NULL, NULL, &out->lines));
    out->attempt = last + 1;
    return TG_OK;
}

/* Whole milliseconds of the label, whole microseconds of the interval. */
tg_status tg_spans_write(tg_spans *writer, const tg_span *span)
{
    tg_text_clear(&writer->lines.line);
    tg_json_writer w = tg_json_writer_init(&writer->lines.line);
    tg_json_begin_object(&w, NULL);
    tg_json_put_int(&w, "attempt", writer->attempt);
    tg_json_put_string(&w, "what", NAMES[span->kind]);
    tg_json_put_double(&w, "time", round(span->time * 1e3) / 1e3);
    tg_json_put_double(&w, "seconds", round(span->seconds * 1e6) / 1e6);
    tg_json_put_int(&w, "step", span->step);
    tg_json_end_object(&w);
    return tg_lines_write(&writer->lines);
}

void tg_spans_close(tg_spans *writer)
{
    if (writer)
        tg_lines_close(&writer->lines);
}
