/* run_info.h - run.json: what ran, where, with what, and how it ended.
 *
 * Written when the job starts (end, exit and failure null) and again when it ends, by the first rank or, where
 * that one cannot, another; each time the whole file, aside and renamed. Text fields are borrowed; NULL is written as null.
 * Errors TG_ERROR_MACHINE for the disk. Threads reentrant.
 */
#ifndef TG_RUN_RUN_INFO_H
#define TG_RUN_RUN_INFO_H

#include "base/status.h"
#include "os/cpu.h"
#include "run/run_dir.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "onednn" -> "2.6.3", "attention_forward" -> "avx512_bf16". */
typedef struct tg_run_pair {
    const char *name, *value;
} tg_run_pair;

typedef struct tg_run_machine {
    char host[256], cpu_model[128], system[256]; /* system: kernel name and release */
    tg_cpu_share share;
    uint64_t memory_bytes;
} tg_run_machine;

/* Fills it for this machine; `scheduler_cpus` as for tg_cpu_share_read. */
void tg_run_machine_read(int scheduler_cpus, tg_run_machine *out);

/* A row of what a rank holds: the most that was predicted of any, and what was allocated on the one with
 * the least and on the one with the most; NaN: not known. */
typedef struct tg_run_memory_row {
    const char *name;
    double predicted_bytes, least_bytes, most_bytes;
} tg_run_memory_row;

typedef struct tg_run_memory {
    const tg_run_memory_row *rows; /* row_count 0: not known yet */
    size_t row_count;
    double predicted_bytes, available_bytes;
    double peak_rss_bytes; /* 0: no step yet */
} tg_run_memory;

/* How photos become a network's input (image/preprocess.h). */
typedef struct tg_run_view {
    int width_px, height_px;
    double crop_pct, mean[3], std[3];
    const char *interpolation, *crop_mode; /* "bicubic", "center"; NULL: there is no such view */
} tg_run_view;

/* What is trained on what. */
typedef struct tg_run_subject {
    uint64_t train_images, val_images; /* train_images 0: not known yet */
    size_t classes;
    uint64_t class_least,
        class_most; /* training photos of the smallest class and of the largest; 0: not known */
    tg_run_view student; /* in training and in its model folder */
    tg_run_view stored;  /* what its start weights came with, options aside */
    tg_run_view teacher;
} tg_run_subject;

/* The frozen teacher on the validation split; images 0: not scored. */
typedef struct tg_run_teacher_score {
    double top1, top5, loss; /* top1, top5: percent */
    uint64_t images;
} tg_run_teacher_score;

/* How far the job is to go; zeroed: not known before its first step. */
typedef struct tg_run_plan {
    int64_t epochs, steps_per_epoch, total_steps;
} tg_run_plan;

/* What one of several ranks works with. */
typedef struct tg_run_rank {
    const char *host, *cores; /* "0-3,8" */
    bool bound;               /* by this program */
    int threads, workers;
    double cpu_quota; /* 0: none */
} tg_run_rank;

typedef struct tg_run_info {
    const char *command, *version;
    tg_run_machine machine;
    const tg_run_pair *libraries, *kernels;
    size_t library_count, kernel_count;
    int ranks, threads, workers; /* threads, workers: of the first rank */
    const tg_run_rank *each;     /* [ranks], or NULL: one process alone */
    tg_run_subject subject;
    tg_run_teacher_score teacher_score;
    tg_run_memory memory;
    tg_run_plan plan;
    const char *start, *end; /* tg_clock_iso; end NULL while running */
    int exit_code;           /* meaningful once end is set */
    const char *failure;     /* reason, or NULL */
} tg_run_info;

tg_status tg_run_info_write(const tg_run_dir *dir, const tg_run_info *info) TG_MUST_CHECK;
/* For another rank, when the first is gone: how the job of an existing run.json ended. TG_END, and nothing is
 * written, where there is none or it has its end. */
tg_status tg_run_info_complete(const tg_run_dir *dir, const char *end, int exit_code,
                               const char *failure) TG_MUST_CHECK;

#endif
