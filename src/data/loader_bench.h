/* loader_bench.h - how many images a second a loader delivers; behind `tagine bench loader`.
 *
 * Reads `passes` whole epochs and gives the fastest. The consumer does nothing but release, so the
 * rate is that of reading, decoding, augmenting and building batches. Cores are those that this
 * thread may run on (affinity), at most one per worker.
 * Errors     those of the loader; TG_ERROR_USAGE for passes < 1.
 */
#ifndef TG_DATA_LOADER_BENCH_H
#define TG_DATA_LOADER_BENCH_H

#include "base/status.h"
#include "data/loader.h"

#include <stdint.h>

typedef struct tg_loader_bench {
    uint64_t images; /* of the fastest pass, as skipped */
    uint64_t skipped;
    double seconds;
    double images_per_s, images_per_s_per_core;
    int cores;
    double decode_s, transform_s; /* of all passes, summed over workers */
} tg_loader_bench;

/* Called after each batch from the thread that measures, between batches, so it has to be quick. An
 * error stops the measurement and is what it returns. */
typedef tg_status (*tg_loader_bench_progress)(void *context, int pass, uint64_t images);

/* `progress` may be NULL; pass counts from 0, images are those of the pass so far. */
tg_status tg_loader_bench_run(const tg_dataset *dataset, const tg_loader_options *options,
                              int passes, tg_loader_bench_progress progress, void *context,
                              tg_loader_bench *out) TG_MUST_CHECK;

#endif
