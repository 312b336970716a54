/* tune.h - tune.json of a run directory: which numbers of loader workers a job has tried while it trained, and why it
 * went on with the one it did.
 *
 *   {"version":1,"searches":[{"reason":"start","time":1772000000.1,"step":70,"steps":63,"seconds":12.1,"cost_s":1.3,
 *     "threads":2,"cores":2,"ranks":1,"batch_size":64,"best":2,"chosen":1,"why":"1 worker ...",
 *     "points":[{"workers":0,"trials":3,"images_per_s":20.9,...},...],
 *     "trials":[{"workers":0,"trials":1,"step":8,"steps":4,"images":256,"seconds":0.8,"images_per_s":21.0,...},...]}]}
 *
 * Written whole after each search by the first rank; the last search is the one in force. A point is a number of
 * workers by all its trials: medians, and the noise of its rate. Plot points: images_per_s against
 * voluntary_per_s + involuntary_per_s and against run_queue, `chosen` marked.
 *
 * Errors  read: TG_ERROR_INPUT for a file that is none of ours or absent, TG_ERROR_MACHINE for memory.
 * Memory  heap, owned by the struct. Threads reentrant.
 */
#ifndef TG_RUN_TUNE_H
#define TG_RUN_TUNE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { TG_TUNE_POINTS = 16, TG_TUNE_TRIALS = 64, TG_TUNE_SEARCHES = 16, TG_TUNE_WHY_BYTES = 320 };

/* A number of workers: one trial of it, or the medians of all. NaN: not known. */
typedef struct tg_tune_point {
    int workers;
    int trials;                          /* 1 in a trial */
    int64_t step, steps, images;         /* a trial's first timed step; timed ones, of all ranks */
    double seconds, images_per_s, noise; /* noise: of images_per_s, of a point alone */
    double wait_share;          /* of the time, waited for photos: the rank that waits most */
    double loader_images_per_s; /* that the workers could give in the long run */
    double voluntary_per_s, involuntary_per_s; /* context switches of all threads of all ranks */
    double compute_voluntary_per_s,
        compute_involuntary_per_s; /* of the first compute threads alone */
    double
        run_queue; /* of this job's threads on a machine, how many ran or waited for a core: mean */
    double pressure; /* share of the time in which something on the machine waited for a core */
} tg_tune_point;

typedef struct tg_tune_search_record {
    char reason[16];        /* "start", or "wait": photos were waited for more and more */
    double time;            /* wall time of its end (tg_clock_unix) */
    int64_t step, steps;    /* updates done at its end; that it took, timed or not */
    double seconds, cost_s; /* of these steps; more than the chosen one would have taken */
    int threads, cores, ranks;
    int64_t batch_size; /* of all ranks */
    int best, chosen;   /* workers: of the best rate; gone on with */
    char why[TG_TUNE_WHY_BYTES];
    tg_tune_point points[TG_TUNE_POINTS]; /* by workers */
    size_t point_count;
    tg_tune_point trials[TG_TUNE_TRIALS]; /* in their order */
    size_t trial_count;
} tg_tune_search_record;

typedef struct tg_tune_file {
    tg_tune_search_record *searches; /* the oldest first */
    size_t count;
} tg_tune_file;

tg_status tg_tune_read(const char *path, tg_tune_file *out) TG_MUST_CHECK;
tg_status tg_tune_write(const char *path, const tg_tune_file *file) TG_MUST_CHECK;
/* Adds a copy; of more than TG_TUNE_SEARCHES the oldest goes. */
tg_status tg_tune_append(tg_tune_file *file, const tg_tune_search_record *search) TG_MUST_CHECK;
void tg_tune_done(tg_tune_file *file);

/* The search in force; NULL: none. */
const tg_tune_search_record *tg_tune_last(const tg_tune_file *file);
/* Its chosen point; NULL when the file lacks it. */
const tg_tune_point *tg_tune_chosen(const tg_tune_search_record *search);

#endif
