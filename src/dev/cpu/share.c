#include "dev/cpu/stream.h"

#include "trace/trace.h"

#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

void tg_stream_parts_free(tg_stream *stream)
{
    for (int i = 0; stream->parts && i < stream->threads; i++)
        tg_stream_close(stream->parts[i]);
    free(stream->parts);
    stream->parts = NULL;
}

static tg_status part_new(const tg_stream *stream, tg_stream **out)
{
    tg_stream *part = calloc(1, sizeof *part);
    if (!part)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a part of a stream");
    part->threads = 1;
    part->siblings = stream->threads;
    part->level = stream->level;
    part->engine = stream->engine; /* borrowed */
    *out = part;                   /* the caller closes it when what follows fails */
    return tg_dnnl_status(dnnl_stream_create(&part->dnnl, part->engine, dnnl_stream_default_flags),
                          "open a part of a stream");
}

static tg_status make_parts(tg_stream *stream)
{
    if (stream->parts)
        return TG_OK;
    stream->parts = calloc((size_t)stream->threads, sizeof *stream->parts);
    if (!stream->parts)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the parts of a stream");
    for (int i = 0; i < stream->threads; i++) {
        tg_status status = part_new(stream, &stream->parts[i]);
        if (status < 0) {
            tg_stream_parts_free(stream);
            return status;
        }
    }
    return TG_OK;
}

typedef struct sharing {
    tg_stream *stream;
    size_t n, grain;
    tg_stream_body body;
    void *user;
    tg_trace *trace;
    tg_status status; /* of the first part that failed */
    int failed;       /* its number */
    char message[TG_ERROR_BYTES];
} sharing;

/* Messages belong to the thread that failed, so they are carried over to the host. */
static void note_failure(sharing *s, int part, tg_status status)
{
#pragma omp critical(tg_stream_share)
    if (s->status == TG_OK || part < s->failed) {
        s->status = status;
        s->failed = part;
        snprintf(s->message, sizeof s->message, "%s", tg_error_message());
    }
}

static void run_part(sharing *s, int number)
{
    const size_t units = (s->n + s->grain - 1) / s->grain, parts = (size_t)s->stream->threads;
    size_t begin = units * (size_t)number / parts * s->grain;
    size_t end = units * ((size_t)number + 1) / parts * s->grain;
    end = end < s->n ? end : s->n;
    if (begin >= end)
        return;
    tg_stream *part = s->stream->parts[number];
    tg_stream_enter(part);
    tg_status status = s->body(part, begin, end, s->user);
    if (status < 0)
        note_failure(s, number, status);
}

/* All parts are done however many threads the team really has. */
static void run_parts(sharing *s, int thread, int team)
{
    bool attach = thread > 0 && s->trace && thread < tg_trace_threads(s->trace);
    if (attach)
        tg_trace_attach(s->trace, thread);
    for (int number = thread; number < s->stream->threads; number += team)
        run_part(s, number);
    if (attach)
        tg_trace_attach(NULL, 0);
}

tg_status tg_stream_share(tg_stream *stream, size_t n, size_t grain, tg_stream_body body,
                          void *user)
{
    if (n == 0)
        return TG_OK;
    if (!stream || stream->threads == 1)
        return body(stream, 0, n, user);
    TG_TRY(make_parts(stream));
    sharing s = {.stream = stream,
                 .n = n,
                 .grain = grain,
                 .body = body,
                 .user = user,
                 .trace = tg_trace_attached()};
    tg_stream_enter(stream);
    stream->shared = true;
#pragma omp parallel num_threads(stream->threads)
    run_parts(&s, omp_get_thread_num(), omp_get_num_threads());
    stream->shared = false;
    tg_stream_enter(stream);
    return s.status == TG_OK ? TG_OK : tg_fail(s.status, "%s", s.message);
}

int tg_stream_siblings(const tg_stream *stream)
{
    return stream->siblings;
}
