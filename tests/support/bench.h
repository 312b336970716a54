/* bench.h - the smallest step worth measuring: what tests of the bench on several ranks start from. */
#ifndef TG_TESTS_SUPPORT_BENCH_H
#define TG_TESTS_SUPPORT_BENCH_H

#include "train/bench.h"

/* 32 px, patch 8, width 32, 2 blocks, 2 heads, 5 classes, 2 photos, float32, one thread, and buckets so small
 * that there are several. `steps` are measured, after no others. */
tg_bench_options tg_test_bench_options(tg_comm *comm, int steps, bool shard);

#endif
