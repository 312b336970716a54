#include "train/forecast.h"

#include "comm/host/host.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What a rank tells each other one at the end of a step. */
#define MEETING_BYTES 256.0

/* Of the optimizer's time, what sharding divides (AdamW: 28 bytes a parameter); the rest makes the prepared
 * copies anew (8 to 12 bytes), which every rank does. */
#define UPDATE_SHARE 0.75

double tg_forecast_largest(int n)
{
    if (n <= 1)
        return 0;
    const double p = (n - 0.375) / (n + 0.25);
    double low = 0, high = 10; /* of the normal distribution's inverse */
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (low + high);
        if (0.5 * erfc(-middle / sqrt(2)) < p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static double messages_of(double bytes)
{
    return fmax(1, ceil(bytes / TG_HOST_MESSAGE_BYTES));
}

void tg_link_phase(const tg_link *link, int ranks, double bytes, double *out_busy_s,
                   double *out_latency_s)
{
    const double N = ranks, R = fmin(link->ranks_per_host, N), piece = bytes / N;
    const double away = N > R ? 1 : 0; /* whether anyone is on another host */
    *out_busy_s = *out_latency_s = 0;
    if (ranks <= 1)
        return;
    if (link->method == TG_EXCHANGE_RING) {
        const double wire =
            fmax(away * piece / link->bytes_per_s, (R > 1) * piece / link->local_bytes_per_s);
        *out_busy_s = (N - 1) * fmax(wire, messages_of(piece) * link->message_s);
        *out_latency_s = (N - 1) * link->latency_s;
        return;
    }
    const double wire = R * (N - R) * piece / link->bytes_per_s;
    const double local = (R - 1) * piece / link->local_bytes_per_s;
    const double core = (N - 1) * messages_of(piece) * link->message_s;
    *out_busy_s = fmax(fmax(wire, local), core);
    *out_latency_s = link->latency_s;
}

/* The one link of a rank, and its collectives one behind the other. */
typedef struct timeline {
    const tg_forecast_request *request;
    int ranks;
    double free_s, done_s; /* the link is free; the last one has ended */
    double busy_s;
} timeline;

/* A collective that may begin at ready_s: sums of so many bytes, then pieces of so many to all (0: no such
 * phase). */
static void exchange(timeline *t, double ready_s, double summed, double gathered)
{
    double busy = 0, latency = 0, phase_busy, phase_latency;
    const double phases[] = {summed, gathered};
    for (int i = 0; i < 2; i++)
        if (phases[i] > 0) {
            tg_link_phase(&t->request->link, t->ranks, phases[i], &phase_busy, &phase_latency);
            busy += phase_busy;
            latency += phase_latency;
        }
    t->free_s = fmax(t->free_s, ready_s) + busy;
    t->done_s = fmax(t->done_s, t->free_s + latency);
    t->busy_s += busy;
}

/* Gathers begin with the step, from the head on. Forward waits where a layer's have not come. Returns
 * when forward ends; *wait_s is added to. */
static double play_forward(timeline *t, const tg_buckets *buckets, double begin_s, double *wait_s)
{
    const tg_forecast_request *q = t->request;
    const bool arriving = q->exchange.shard && t->ranks > 1;
    double now = begin_s;
    size_t next = buckets->count; /* buckets from here on have been asked to come */
    for (size_t i = 0; i < q->range_count; i++) {
        const tg_layer_range *range = &q->ranges[i];
        while (arriving && next > 0 &&
               buckets->items[next - 1].offset < range->offset + range->count)
            exchange(t, 0, 0, (double)buckets->items[--next].count * sizeof(float));
        if (arriving && t->done_s > now) {
            *wait_s += t->done_s - now;
            now = t->done_s;
        }
        now += range->forward * q->alone.forward;
    }
    return now;
}

/* Buckets go out as layers become final, from the tail. Returns when backward ends. */
static double play_backward(timeline *t, const tg_buckets *buckets, double begin_s)
{
    const tg_forecast_request *q = t->request;
    const double element = q->exchange.wire == TG_BF16 ? 2 : 4;
    double now = begin_s;
    size_t next = 0;
    for (size_t i = q->range_count; i-- > 0;) {
        now += q->ranges[i].backward * q->alone.backward;
        for (; next < buckets->count && buckets->items[next].offset >= q->ranges[i].offset;
             next++) {
            const double M = (double)buckets->items[next].count; /* sums go back exact */
            exchange(t, now, M * element, q->exchange.shard ? 0 : M * sizeof(float));
        }
    }
    return now;
}

/* The step of ranks that are equally fast. */
static void play(const tg_forecast_request *q, int ranks, const tg_buckets *buckets,
                 tg_forecast *out)
{
    const tg_step_seconds *a = &q->alone;
    const double micro = a->teacher + a->forward + a->backward;
    const double shares = q->exchange.shard ? ranks : 1;
    double wait = 0, latency, busy;
    timeline t = {.request = q, .ranks = ranks};
    double now = play_forward(&t, buckets, a->other + a->teacher, &wait);
    now += (double)(q->accumulation - 1) * micro;
    t.free_s = t.done_s = 0; /* parameters have come long before */
    now = play_backward(&t, buckets, now);
    wait += fmax(0, t.done_s - now);
    now = fmax(now, t.done_s);
    tg_link_phase(&q->link, ranks, MEETING_BYTES * ranks, &busy, &latency);
    wait += busy + latency;
    now += busy + latency + a->optimizer * (UPDATE_SHARE / shares + 1 - UPDATE_SHARE);
    *out = (tg_forecast){.step_s = now, .exposed_s = wait, .wire_s = t.busy_s};
}

tg_status tg_forecast_step(const tg_forecast_request *request, int ranks, tg_forecast *out)
{
    const tg_step_seconds *a = &request->alone;
    const double alone = a->other + a->optimizer +
                         (double)request->accumulation * (a->teacher + a->forward + a->backward);
    const tg_layer_range *last = &request->ranges[request->range_count - 1];
    tg_comm place = {.size = ranks}; /* cuts ask for nothing else */
    tg_buckets buckets;
    if (ranks == 1) {
        *out = (tg_forecast){.step_s = alone, .efficiency = 1};
        return TG_OK;
    }
    TG_TRY(tg_buckets_init(&buckets, &place, last->offset + last->count,
                           request->exchange.first_bucket_bytes, request->exchange.bucket_bytes));
    play(request, ranks, &buckets, out);
    tg_buckets_done(&buckets);
    out->slowest_s = request->spread * alone * tg_forecast_largest(ranks);
    out->step_s += out->slowest_s;
    out->efficiency = alone / out->step_s;
    return TG_OK;
}

static size_t offset_of(const tg_param_table *table, const char *name)
{
    const tg_param *p = tg_param_find(table, name);
    return p ? p->offset : table->elements;
}

/* Where the ranges begin: stem, each block, the end. starts [depth + 2] */
static tg_status find_starts(const tg_vit_config *config, size_t *starts, size_t *out_elements)
{
    tg_param_table table = {0};
    char name[TG_PARAM_NAME_BYTES];
    TG_TRY(tg_vit_params(config, &table));
    for (size_t l = 0; l < config->depth; l++) {
        snprintf(name, sizeof name, "blocks.%zu.norm1.weight", l);
        starts[l + 1] = offset_of(&table, name);
    }
    starts[config->depth + 1] =
        offset_of(&table, config->pool == TG_POOL_TOKEN ? "norm.weight" : "fc_norm.weight");
    *out_elements = table.elements;
    tg_param_table_done(&table);
    return TG_OK;
}

/* Multiply-adds: of the stem and the heads as they are, the rest equally on the blocks. The stem's backward
 * has no gradient of its input to compute. */
static void share_work(const tg_vit_config *config, tg_layer_range *ranges)
{
    const size_t D = config->depth;
    const double C = (double)config->embed_dim, P = (double)config->patch;
    const double all = tg_vit_macs(config);
    const double stem = (double)tg_vit_patches(config) * C * 3 * P * P;
    const double top = (double)((1 + config->dist_token) * config->num_classes) * C;
    const double block = (all - stem - top) / (double)D;
    for (size_t i = 0; i < D + 2; i++) {
        const double work = i == 0 ? stem : i == D + 1 ? top : block;
        ranges[i].forward = work / all;
        ranges[i].backward = (i == 0 ? work / 2 : work) / (all - stem / 2);
    }
}

tg_status tg_forecast_ranges(const tg_vit_config *config, size_t behind, tg_layer_range **out,
                             size_t *out_count)
{
    const size_t count = config->depth + 2;
    size_t elements = 0, *starts = calloc(count + 2, sizeof *starts);
    tg_layer_range *ranges = calloc(count + 1, sizeof *ranges);
    tg_status status = starts && ranges
                           ? find_starts(config, starts, &elements)
                           : tg_fail(TG_ERROR_MACHINE, "out of memory for %zu layers", count);
    if (status != TG_OK) {
        free(ranges);
        free(starts);
        return status;
    }
    starts[count] = elements;
    starts[count + 1] = elements + behind;
    for (size_t i = 0; i < count + (behind > 0); i++)
        ranges[i] = (tg_layer_range){.offset = starts[i], .count = starts[i + 1] - starts[i]};
    share_work(config, ranges);
    free(starts);
    *out = ranges;
    *out_count = count + (behind > 0);
    return TG_OK;
}
