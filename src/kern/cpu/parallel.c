#include "kern/cpu/parallel.h"

#include "dev/cpu/stream.h"

#include <assert.h>
#include <omp.h>

static void run_piece(size_t n, size_t grain, int piece, int pieces, tg_parallel_body body,
                      void *args)
{
    size_t grains = (n + grain - 1) / grain;
    size_t begin = grains * (size_t)piece / (size_t)pieces * grain;
    size_t end = grains * ((size_t)piece + 1) / (size_t)pieces * grain;
    if (end > n)
        end = n;
    if (begin < end)
        body(args, begin, end);
}

void tg_parallel(tg_stream *stream, size_t n, size_t grain, tg_parallel_body body, void *args)
{
    const int threads = tg_stream_threads(stream);
    if (n == 0)
        return;
    assert(!stream->shared);
    if (threads == 1 || n <= grain) {
        body(args, 0, n);
        return;
    }
    /* always the full team: a smaller one would end and later restart the others' threads */
#pragma omp parallel num_threads(threads)
    run_piece(n, grain, omp_get_thread_num(), omp_get_num_threads(), body, args);
}
