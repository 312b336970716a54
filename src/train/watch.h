/* watch.h - what a training job tells whoever started it, while it runs.
 *
 * Every callback may be NULL; all run on the job's own thread. The command line draws its progress bar
 * from them; library users may do as they like.
 */
#ifndef TG_TRAIN_WATCH_H
#define TG_TRAIN_WATCH_H

#include "run/metrics.h"
#include "run/run_info.h"
#include "train/evaluate.h"
#include "train/memory.h"
#include "train/wall.h"

typedef struct tg_train_progress {
    int64_t epoch, epochs;         /* under way (from 0), planned */
    int64_t step, steps_per_epoch; /* within the epoch, from 1 */
    int64_t updates, total_updates;
    double seconds_left;    /* NaN: not known yet */
    double images_per_s;    /* of the last steps, smoothed */
    int slow_rank;          /* that the others wait for (train/straggler.h); -1: none */
    double slow_share;      /* of the step by which its own work exceeds the others' */
    const char *slow_phase; /* "t_data" */
} tg_train_progress;

typedef struct tg_train_watch {
    void *user;
    void (*step)(void *user, const tg_train_progress *progress, const tg_step_record *record);
    /* what: "student" after `epoch` epochs, or "teacher" before the first (0) */
    void (*evaluation)(void *user, const char *what, int64_t epoch,
                       const tg_evaluation *evaluation);
    void (*evaluating)(void *user, uint64_t done, uint64_t total);
    /* after opening, before memory */
    void (*subject)(void *user, const tg_run_subject *subject);
    /* after opening, and once more after the first step, with what it took at most */
    void (*memory)(void *user, const tg_memory_report *report);
    void (*workers)(void *user, int count); /* --workers auto has chosen */
    tg_status (*opened)(void *user);        /* all is there and checked; an error ends the job */
    tg_status (*present)(void *user); /* before a save: tg_run_dir_check of the run's folder */
    void (*stopping)(void *user, int stop); /* a rank, maybe another one, wants to stop: its wish */
    int (*stop)(void *user);                /* nonzero: save and leave (TG_ERROR_STOPPED) */
    tg_wall *wall; /* opened by the job, closed by whoever started it; NULL: none is kept */
} tg_train_watch;

#endif
