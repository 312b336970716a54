/* memory.h - what one rank of a training job holds in memory: predicted from options, row by row.
 *
 *   predicted    tg_memory_predict, from shapes alone: `tagine plan`, and every job's start
 *   allocated    what a job then took (job_memory.c puts both side by side, and the peak of the process)
 *
 * Rows    program        the process before anything is loaded, and what libraries keep for themselves
 *         parameters     float32, with a projection's when features are distilled
 *         gradients      float32, whole on every rank
 *         moments        AdamW's two; sharded (ZeRO stage 1): of this rank's pieces alone
 *         average        of the weights; likewise
 *         prepared       copies of the weights that products read, forward and backward
 *         activations    the step arena: the student's tape, or the teacher's forward, which runs before
 *                        it in the same place, whichever is larger
 *         batches        what the loader keeps of this rank's share: one in use and `prefetch` more
 *         decoding       workers' photos on their way to pixels, and the list of all photos
 *         teacher        its float32 weights, and its prepared copies (forward only)
 *         exchange       what collectives keep between ranks (tg_comm_cost_memory)
 *
 * Accuracy  all rows but `program` and `decoding` are upper bounds that are met to a few per cent; those
 *           two are estimates. Errors TG_ERROR_USAGE when sizes do not fit the machine's numbers.
 * Threads   reentrant.
 */
#ifndef TG_TRAIN_MEMORY_H
#define TG_TRAIN_MEMORY_H

#include "data/loader.h"
#include "model/vit.h"
#include "train/ranks.h"

typedef enum tg_memory_row {
    TG_MEMORY_PROGRAM,
    TG_MEMORY_PARAMETERS,
    TG_MEMORY_GRADIENTS,
    TG_MEMORY_MOMENTS,
    TG_MEMORY_AVERAGE,
    TG_MEMORY_PREPARED,
    TG_MEMORY_ACTIVATIONS,
    TG_MEMORY_BATCHES,
    TG_MEMORY_DECODING,
    TG_MEMORY_TEACHER,
    TG_MEMORY_TEACHER_PREPARED,
    TG_MEMORY_EXCHANGE,
    TG_MEMORY_ROWS
} tg_memory_row;

/* bytes[row]; NaN: not known. */
typedef struct tg_memory {
    double bytes[TG_MEMORY_ROWS];
} tg_memory;

typedef struct tg_memory_request {
    const tg_vit_config *student, *teacher; /* teacher NULL: none */
    bool feature;                           /* features are distilled, by a projection */
    const tg_kern *kern;
    tg_dtype dtype;
    bool average;
    const tg_loader_options *loader; /* also says batch, rank and ranks */
    size_t photos;                   /* in the list; 0: not known yet */
    double photo_px;                 /* pixels of a large photo */
    tg_ranks_options exchange;
    double program_bytes; /* resident before anything is loaded; 0: about what this program has */
} tg_memory_request;

tg_status tg_memory_predict(const tg_memory_request *request, tg_memory *out) TG_MUST_CHECK;

/* Of all ranks of a job, row by row. */
typedef struct tg_memory_report {
    int ranks;
    tg_memory predicted;    /* the most of any rank */
    tg_memory least, most;  /* allocated */
    double predicted_bytes; /* in all, of the rank that needs the most */
    double available_bytes; /* to the first rank, its share of what its machine has */
    double peak_rss_bytes;  /* after the first step, the most of any rank; 0 before it */
    int peak_rank;          /* whose that is */
} tg_memory_report;

/* Sum of the rows that are known. */
double tg_memory_total(const tg_memory *memory);
/* Moments and average: what sharding divides by the number of ranks. */
double tg_memory_optimizer(const tg_memory *memory);
/* "weights as prepared"; and "prepared_bytes" for programs. Static storage. */
const char *tg_memory_row_title(tg_memory_row row);
const char *tg_memory_row_key(tg_memory_row row);

/* Room behind a student's parameters for a projection W [C_t,C_s] and b [C_t]. */
size_t tg_memory_projection_floats(size_t C_s, size_t C_t);
/* Elements of moments that rank `rank` of `ranks` keeps of a flat buffer. */
tg_status tg_memory_own_elements(const tg_ranks_options *options, size_t elements, int rank,
                                 int ranks, size_t *out) TG_MUST_CHECK;

/* Memory that this process may use beside what it has: the least of what the machine has left and what
 * its control group allows, divided by the `sharers` that start to fill it at the same time. */
double tg_memory_available(int sharers);

#endif
