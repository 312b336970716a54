#include "trace/timeline.h"

#include "base/json_writer.h"
#include "os/file.h"

#include <stdlib.h>
#include <zlib.h>

enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8, CHUNK_BYTES = 16384 };

struct tg_timeline {
    tg_timeline_head head; /* host is not kept */
    z_stream deflate;
    tg_text event;  /* the one being made */
    tg_text packed; /* the file so far */
    uint64_t left_out;
    bool failed; /* memory ran out for an event */
};

/* Compresses what `event` holds, and empties it. */
static void pack(tg_timeline *t, int flush)
{
    unsigned char out[CHUNK_BYTES];
    t->failed = t->failed || t->event.failed;
    t->deflate.next_in = (unsigned char *)(uintptr_t)tg_text_string(&t->event);
    t->deflate.avail_in = (unsigned)t->event.length;
    do {
        t->deflate.next_out = out;
        t->deflate.avail_out = sizeof out;
        (void)deflate(&t->deflate, flush); /* it cannot fail with room for output */
        tg_text_append(&t->packed, out, sizeof out - t->deflate.avail_out);
    } while (t->deflate.avail_out == 0);
    tg_text_clear(&t->event);
}

/* Whole nanoseconds in microseconds, as every locale writes them. */
static void put_us(tg_text *text, const char *key, int64_t ns)
{
    tg_text_append_format(text, ",\"%s\":%lld.%03lld", key, (long long)(ns / 1000),
                          (long long)(ns % 1000));
}

/* An event's beginning, up to where its own keys follow. */
static tg_json_writer begin_event(tg_timeline *t, const char *phase, const char *name, int row)
{
    tg_json_writer w = tg_json_writer_init(&t->event);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "ph", phase);
    tg_json_put_string(&w, "name", name);
    tg_json_put_int(&w, "pid", t->head.rank);
    tg_json_put_int(&w, "tid", row);
    return w;
}

static void begin_metadata(tg_timeline *t, const char *name, int row, tg_json_writer *out)
{
    tg_text_append_string(&t->event, ",\n");
    *out = begin_event(t, "M", name, row);
    tg_json_begin_object(out, "args");
}

static void end_metadata(tg_timeline *t, tg_json_writer *w)
{
    tg_json_end_object(w);
    tg_json_end_object(w);
    pack(t, Z_NO_FLUSH);
}

/* What tells ranks apart, and the first events: they name the process. */
static void put_head(tg_timeline *t, const tg_timeline_head *head)
{
    tg_text name = {0};
    tg_text_append_format(&name, "rank %d on %s", head->rank, head->host);
    tg_json_writer w = tg_json_writer_init(&t->event);
    tg_json_begin_object(&w, NULL);
    tg_json_put_int(&w, "schemaVersion", 1);
    tg_json_put_string(&w, "displayTimeUnit", "ms");
    tg_json_begin_object(&w, "distributedInfo");
    tg_json_put_int(&w, "rank", head->rank);
    tg_json_put_int(&w, "world_size", head->ranks);
    tg_json_end_object(&w);
    tg_json_begin_object(&w, "otherData");
    tg_json_put_string(&w, "host", head->host);
    tg_json_put_double(&w, "clock_offset_us", (double)head->offset_ns * 1e-3);
    tg_json_put_double(&w, "clock_error_us", (double)head->offset_error_ns * 1e-3);
    tg_json_end_object(&w);
    tg_json_begin_array(&w, "traceEvents");
    tg_text_append_char(&t->event, '\n');
    w = begin_event(t, "M", "process_name", 0);
    tg_json_begin_object(&w, "args");
    tg_json_put_string(&w, "name", tg_text_string(&name));
    end_metadata(t, &w);
    begin_metadata(t, "process_sort_index", 0, &w);
    tg_json_put_int(&w, "sort_index", head->rank);
    end_metadata(t, &w);
    tg_text_done(&name);
}

tg_status tg_timeline_open(const tg_timeline_head *head, tg_timeline **out)
{
    tg_timeline *t = calloc(1, sizeof *t);
    if (!t || deflateInit2(&t->deflate, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
                           MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(t);
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a timeline");
    }
    t->head = *head;
    t->head.host = NULL;
    put_head(t, head);
    *out = t;
    return TG_OK;
}

void tg_timeline_free(tg_timeline *t)
{
    if (!t)
        return;
    deflateEnd(&t->deflate);
    tg_text_done(&t->event);
    tg_text_done(&t->packed);
    free(t);
}

void tg_timeline_name_row(tg_timeline *t, int row, const char *name)
{
    tg_json_writer w;
    begin_metadata(t, "thread_name", row, &w);
    tg_json_put_string(&w, "name", name);
    end_metadata(t, &w);
    begin_metadata(t, "thread_sort_index", row, &w);
    tg_json_put_int(&w, "sort_index", row);
    end_metadata(t, &w);
}

void tg_timeline_add(tg_timeline *t, int row, const tg_timeline_event *event)
{
    if (t->packed.length > t->head.budget_bytes) {
        t->left_out++;
        return;
    }
    tg_text_append_string(&t->event, ",\n");
    tg_json_writer w = begin_event(t, "X", event->name, row);
    tg_json_put_string(&w, "cat", event->category);
    put_us(&t->event, "ts", event->begin_ns + t->head.offset_ns);
    put_us(&t->event, "dur", event->end_ns - event->begin_ns);
    if (event->argument_count) {
        tg_json_begin_object(&w, "args");
        for (size_t i = 0; i < event->argument_count; i++)
            tg_json_put_double(&w, event->arguments[i].name, event->arguments[i].value);
        tg_json_end_object(&w);
    }
    tg_json_end_object(&w);
    pack(t, Z_NO_FLUSH);
}

tg_status tg_timeline_write(tg_timeline *t, const char *path)
{
    tg_text_append_format(&t->event, "\n],\"eventsLeftOut\":%llu}\n",
                          (unsigned long long)t->left_out);
    pack(t, Z_FINISH);
    if (t->failed)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory for what happened", path);
    TG_TRY(tg_text_check(&t->packed, path));
    return tg_file_write(path, tg_text_string(&t->packed), t->packed.length);
}
