/* forecast.h - how long a step takes on N ranks, from what it takes on one and a model of the network.
 *
 * A step is played through as train/step.c does it: parameters gathered behind the teacher's and the first
 * layers' forward (sharded), each layer's gradient final at its place in backward, buckets reduced one behind
 * the other while backward goes on, one meeting, the update. What a rank then waits is exposed.
 *
 * Link       of a host, `bytes_per_s` each way, shared by its ranks; between ranks of one host
 *            `local_bytes_per_s` each. A message takes latency_s to the other side. The switches between
 *            hosts carry all links at once.
 * Core       of a rank: the exchange takes K = messages x message_s + bytes x core_byte_s of it, for what a rank
 *            sends (as much comes), while the wire goes on (comm/cost.h counts, `bench comm` measures).
 *            ranks_per_core S ranks that compute on one core have all their exchanges on it: S K.
 * Phase      of a range of M bytes on N ranks, R of them a host (half of an all-reduce):
 *              direct  latency + max(R (N-R)/N M / link, (R-1)/N M / local, S K):
 *                      comm/host's exchange, everyone to everyone in one go
 *              ring    (N-1) latency + max((N-1)/N M / link, S K): each passes on a piece at a time, and one
 *                      rank of a host uses its link
 *            Latencies of several buckets overlap, the rest does not.
 * Computing  on a core that the exchange has no part of goes on as if alone (spare_core). Else, while phases that
 *            keep the link busy for B more still want K of the core, it goes on at the rate 1 - S K/B, in backward
 *            and behind the gathers of forward; the threads of a rank meet so often that what slows one of
 *            them slows all.
 * Spread     ranks are not equally fast: a step waits for the slowest of N, which is spread times the expected
 *            largest of N normal deviates behind (Blom, 1958).
 * Left out   other traffic on the links; a loader that is slower than the step; caches that the exchange clears.
 * Errors     TG_ERROR_MACHINE for memory. Threads reentrant.
 */
#ifndef TG_TRAIN_FORECAST_H
#define TG_TRAIN_FORECAST_H

#include "model/config.h"
#include "train/ranks.h"

#include <stdint.h>

typedef enum tg_exchange_method { TG_EXCHANGE_DIRECT, TG_EXCHANGE_RING } tg_exchange_method;

typedef struct tg_link {
    double latency_s;
    double message_s, core_byte_s;         /* of a core, for each message and byte sent */
    double bytes_per_s, local_bytes_per_s; /* INFINITY: no matter */
    int ranks_per_host;                    /* >= 1 */
    int ranks_per_core;                    /* whose computing shares a core; 0 is 1 */
    bool spare_core;                       /* the exchange has a core on which no rank computes */
    tg_exchange_method method;
} tg_link;

/* Seconds of one rank's own work. */
typedef struct tg_step_seconds {
    double teacher, forward, backward; /* of a micro-batch */
    double optimizer, other;           /* of a step */
} tg_step_seconds;

/* A stretch of the flat buffer that becomes final at once, and its shares of forward and backward. */
typedef struct tg_layer_range {
    size_t offset, count;
    double forward, backward; /* sum 1 over all */
} tg_layer_range;

typedef struct tg_forecast_request {
    tg_step_seconds alone;
    int64_t accumulation; /* micro-batches of a step, >= 1 */
    const tg_layer_range *ranges;
    size_t range_count;
    tg_ranks_options exchange;
    bool narrow; /* parameters come back as bf16 (train/parcels.h), nearly all of them */
    tg_link link;
    double spread; /* standard deviation of a rank's step over the step */
} tg_forecast_request;

typedef struct tg_forecast {
    double step_s;
    double exposed_s;  /* of it, waited for others: gradients, parameters, the meeting */
    double core_s;     /* of it, computed longer because the exchange had the core */
    double slowest_s;  /* of it, waited because ranks are not equally fast */
    double wire_s;     /* the link is busy so long */
    double efficiency; /* one rank's step over step_s: of the same batch on each */
} tg_forecast;

/* ranks >= 1. */
tg_status tg_forecast_step(const tg_forecast_request *request, int ranks,
                           tg_forecast *out) TG_MUST_CHECK;

/* Ranges of a model from the head of its buffer, as forward asks for them and backward, in reverse, reports
 * them; `behind` more floats (a projection's) are final before backward begins. *out is heap (free). */
tg_status tg_forecast_ranges(const tg_vit_config *config, size_t behind, tg_layer_range **out,
                             size_t *out_count) TG_MUST_CHECK;

/* One phase (above). */
typedef struct tg_phase {
    double busy_s;    /* of the link, or of a core that is slower */
    double latency_s; /* that passes besides */
    double core_s;    /* K */
} tg_phase;

/* work: a reduce-scatter or an all-gather. */
tg_phase tg_link_phase(const tg_link *link, int ranks, const tg_comm_work *work);

/* Expected largest of n standard normal deviates; 0 for n = 1. */
double tg_forecast_largest(int n);

#endif
