#include "trace/timeline.h"

#include "base/json_writer.h"
#include "os/file.h"

#include <stdlib.h>
#include <zlib.h>

enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8, CHUNK_BYTES = 16384, HELD_BACK = 65536 };

struct tg_timeline {
    tg_timeline_head head; /* host and backend are not kept */
    z_stream deflate;
    tg_text event;  /* the one being made */
    tg_text packed; /* the file so far */
    uint64_t left_out, unpacked_bytes;
    int64_t last_ns; /* the latest end of an event, with the offset */
    bool failed;     /* memory ran out for an event */
};

/* Compresses what `event` holds, and empties it. */
static void pack_with(tg_timeline *t, z_stream *deflater, int flush)
{
    unsigned char out[CHUNK_BYTES];
    t->failed = t->failed || t->event.failed;
    t->unpacked_bytes += t->event.length;
    deflater->next_in = (unsigned char *)(uintptr_t)tg_text_string(&t->event);
    deflater->avail_in = (unsigned)t->event.length;
    do {
        deflater->next_out = out;
        deflater->avail_out = sizeof out;
        (void)deflate(deflater, flush); /* it cannot fail with room for output */
        tg_text_append(&t->packed, out, sizeof out - deflater->avail_out);
    } while (deflater->avail_out == 0);
    tg_text_clear(&t->event);
}

static void pack(tg_timeline *t)
{
    pack_with(t, &t->deflate, Z_NO_FLUSH);
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
    pack(t);
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
    tg_json_begin_array(&w, "deviceProperties");
    tg_json_begin_object(&w, NULL);
    tg_json_put_int(&w, "id", 0);
    tg_json_put_string(&w, "name", "CPU");
    tg_json_put_int(&w, "numSms", head->threads);
    tg_json_end_object(&w);
    tg_json_end_array(&w);
    tg_json_begin_object(&w, "distributedInfo");
    tg_json_put_string(&w, "backend", head->backend ? head->backend : "none");
    /* HolisticTraceAnalysis looks for the blank */
    tg_text_append_format(&t->event, ",\"rank\": %d", head->rank);
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
    t->head.host = t->head.backend = NULL;
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

static void put_argument(tg_json_writer *w, const tg_timeline_argument *argument)
{
    if (argument->text)
        tg_json_put_string(w, argument->name, argument->text);
    else
        tg_json_put_double(w, argument->name, argument->value);
}

/* The compressor holds back some of what it has been given, which the file gets all the same. */
static bool is_full(const tg_timeline *t)
{
    const size_t budget = t->head.budget_bytes;
    return t->packed.length > budget - (budget > 4 * HELD_BACK ? HELD_BACK : 0) ||
           t->unpacked_bytes > TG_TIMELINE_MOST_BYTES;
}

void tg_timeline_add(tg_timeline *t, int row, const tg_timeline_event *event)
{
    if (is_full(t)) {
        t->left_out++;
        return;
    }
    const int64_t end_ns = event->end_ns + t->head.offset_ns;
    t->last_ns = end_ns > t->last_ns ? end_ns : t->last_ns;
    tg_text_append_string(&t->event, ",\n");
    tg_json_writer w = begin_event(t, "X", event->name, row);
    tg_json_put_string(&w, "cat", event->category);
    put_us(&t->event, "ts", event->begin_ns + t->head.offset_ns);
    put_us(&t->event, "dur", event->end_ns - event->begin_ns);
    if (event->argument_count) {
        tg_json_begin_object(&w, "args");
        for (size_t i = 0; i < event->argument_count; i++)
            put_argument(&w, &event->arguments[i]);
        tg_json_end_object(&w);
    }
    tg_json_end_object(&w);
    pack(t);
}

/* What is missing is said where it is missing. */
static void put_notice(tg_timeline *t)
{
    tg_text notice = {0};
    tg_text_append_format(&notice, "%llu events left out: this file's budget is used up",
                          (unsigned long long)t->left_out);
    tg_text_append_string(&t->event, ",\n");
    tg_json_writer w = begin_event(t, "i", tg_text_string(&notice), 0);
    tg_json_put_string(&w, "s", "p");
    put_us(&t->event, "ts", t->last_ns);
    tg_json_end_object(&w);
    tg_text_done(&notice);
}

size_t tg_timeline_bytes(const tg_timeline *t)
{
    return t->packed.length;
}

/* A copy of the compressor ends the document, so that the original can go on. */
tg_status tg_timeline_write(tg_timeline *t, const char *path)
{
    const size_t before = t->packed.length;
    const uint64_t unpacked = t->unpacked_bytes;
    z_stream end = {0};
    if (deflateCopy(&end, &t->deflate) != Z_OK)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory for a timeline", path);
    if (t->left_out)
        put_notice(t);
    tg_text_append_format(&t->event, "\n],\"eventsLeftOut\":%llu}\n",
                          (unsigned long long)t->left_out);
    pack_with(t, &end, Z_FINISH);
    deflateEnd(&end);
    tg_status status = tg_text_check(&t->packed, path);
    if (t->failed)
        status = tg_fail(TG_ERROR_MACHINE, "%s: out of memory for what happened", path);
    if (status == TG_OK)
        status = tg_file_write(path, tg_text_string(&t->packed), t->packed.length);
    t->packed.length = before;
    t->unpacked_bytes = unpacked;
    return status;
}
