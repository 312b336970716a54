/* stream.h - what a CPU stream is, for kern/cpu only.
 *
 * One engine and one oneDNN stream per tg_stream. tg_stream_enter() must be called before oneDNN or
 * OpenMP work: it makes this thread's OpenMP team as large as the stream asks for.
 */
#ifndef TG_DEV_CPU_STREAM_H
#define TG_DEV_CPU_STREAM_H

#include "dev/dev.h"

#include <dnnl.h>
#include <stdbool.h>

struct tg_stream {
    int threads;
    int siblings;             /* 1, or the parts of the stream that this one is a part of */
    bool shared;              /* its parts are at work: it must not be used */
    struct tg_stream **parts; /* [threads], made by the first tg_stream_share; NULL before */
    tg_cpu_level level;
    const void *host; /* an address that belongs to the thread it works for */
    dnnl_engine_t engine;
    dnnl_stream_t dnnl;
    void *scratch[TG_STREAM_SLOTS];
    size_t scratch_bytes[TG_STREAM_SLOTS];
    void *products; /* kern/cpu/product.c: prepared oneDNN primitives, shared by equal shapes */
    void (*products_free)(void *products);
};

void tg_stream_enter(const tg_stream *stream);

/* Frees what tg_stream_share made. */
void tg_stream_parts_free(tg_stream *stream);

/* TG_ERROR_MACHINE when less memory is left than oneDNN may need to generate the code of a primitive, and
 * the small allocations of its runs: it does not look whether it got either. To be asked before one is
 * made; takes two system calls and keeps nothing. */
tg_status tg_dnnl_room(void) TG_MUST_CHECK;

/* Turns a oneDNN status into ours, with what was attempted. */
tg_status tg_dnnl_status(dnnl_status_t status, const char *what);

#endif
