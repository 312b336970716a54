/* parallel.h - splits a range of work over the threads of a stream.
 *
 * The range is cut at multiples of `grain` into one piece per thread, in order, always the same
 * way. Work of one grain or less runs on the calling thread. Returns when all pieces are done. */
#ifndef TG_KERN_CPU_PARALLEL_H
#define TG_KERN_CPU_PARALLEL_H

#include "dev/dev.h"

#include <stddef.h>

/* Does [begin, end); `args` is what tg_parallel was given. */
typedef void (*tg_parallel_body)(void *args, size_t begin, size_t end);

void tg_parallel(tg_stream *stream, size_t n, size_t grain, tg_parallel_body body, void *args);

#endif
