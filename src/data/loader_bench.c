#include "data/loader_bench.h"

#include "os/clock.h"

#include <sched.h>

static int count_cores(int workers)
{
    cpu_set_t allowed;
    int cores = 1;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        cores = CPU_COUNT(&allowed);
    if (workers < 1)
        return 1;
    return workers < cores ? workers : cores;
}

typedef struct listener {
    tg_loader_bench_progress progress;
    void *context;
} listener;

static tg_status run_pass(tg_loader *loader, int pass, const listener *to, tg_loader_bench *out)
{
    const tg_batch *batch;
    tg_status status;
    int64_t start = tg_clock_ns();
    TG_TRY(tg_loader_start_epoch(loader, (uint64_t)pass, 0));
    *out = (tg_loader_bench){0};
    while ((status = tg_loader_next(loader, &batch)) == TG_OK) {
        out->images += batch->count;
        out->skipped += batch->skipped;
        tg_loader_release(loader, batch);
        if (to->progress)
            TG_TRY(to->progress(to->context, pass, out->images + out->skipped));
    }
    out->seconds = tg_clock_seconds(tg_clock_ns() - start);
    return status < 0 ? status : TG_OK;
}

tg_status tg_loader_bench_run(const tg_dataset *dataset, const tg_loader_options *options,
                              int passes, tg_loader_bench_progress progress, void *context,
                              tg_loader_bench *out)
{
    tg_loader *loader;
    const listener to = {progress, context};
    tg_loader_bench best = {0}, pass;
    tg_loader_stats stats;
    tg_status status = TG_OK;
    if (passes < 1)
        return tg_fail(TG_ERROR_USAGE, "loader measurement with %d passes", passes);
    TG_TRY(tg_loader_open(dataset, options, &loader));
    for (int i = 0; i < passes; i++) {
        TG_TRY_GOTO(run_pass(loader, i, &to, &pass), close_loader);
        if (i == 0 || pass.seconds < best.seconds)
            best = pass;
    }
    tg_loader_get_stats(loader, &stats);
    best.cores = count_cores(options->workers);
    best.images_per_s = (double)best.images / best.seconds;
    best.images_per_s_per_core = best.images_per_s / best.cores;
    best.decode_s = tg_clock_seconds(stats.decode_ns);
    best.transform_s = tg_clock_seconds(stats.transform_ns);
    *out = best;
close_loader:
    tg_loader_close(loader);
    return status;
}
