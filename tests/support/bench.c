#include "support/bench.h"

tg_bench_options tg_test_bench_options(tg_comm *comm, int steps, bool shard)
{
    return (tg_bench_options){
        .kind = TG_BENCH_TRAIN,
        .model = "vit_tiny_patch16_224",
        .shape = {.img_size = 32,
                  .patch_size = 8,
                  .embed_dim = 32,
                  .depth = 2,
                  .num_heads = 2,
                  .reg_tokens = -1,
                  .num_classes = 5},
        .batch_size = 2,
        .steps = steps,
        .dtype = TG_F32,
        .threads = 1,
        .cpu_cap = TG_CPU_LEVEL_COUNT,
        .comm = comm,
        .ranks = {.first_bucket_bytes = 4096, .bucket_bytes = 16384, .shard = shard},
        .no_peak = true};
}
