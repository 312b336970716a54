#include "train/forecast.h"

#include "comm/cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What a rank tells each other one at the end of a step. */
#define MEETING_BYTES 256

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

/* Of a range that is reduced or gathered, as it travels. */
static double bytes_of(const tg_comm_work *work)
{
    const bool exact =
        work->kind == TG_COMM_ALL_GATHER; /* sums go back, and parameters go, as float32 */
    return (double)work->count * (double)(exact ? sizeof(float) : tg_dtype_bytes(work->wire));
}

/* Ranks whose exchanges are on the core of one. */
static double sharers(const tg_link *link)
{
    return link->ranks_per_core > 1 ? link->ranks_per_core : 1;
}

tg_phase tg_link_phase(const tg_link *link, int ranks, const tg_comm_work *work)
{
    const double N = ranks, R = fmin(link->ranks_per_host, N), piece = bytes_of(work) / N;
    const bool ring = link->method == TG_EXCHANGE_RING;
    if (ranks <= 1)
        return (tg_phase){0};
    const double core = (double)tg_comm_cost_messages(work, ranks) * link->message_s +
                        (N - 1) * piece * link->core_byte_s;
    const double away = ring ? (N > R) * (N - 1) : R * (N - R); /* pieces that pass a host's link */
    const double near = ring ? (R > 1) * (N - 1) : R - 1;
    const double wire =
        fmax(away * piece / link->bytes_per_s, near * piece / link->local_bytes_per_s);
    return (tg_phase){.busy_s = fmax(wire, sharers(link) * core),
                      .latency_s = (ring ? N - 1 : 1) * link->latency_s,
                      .core_s = core};
}

/* The one link of a rank, and its collectives one behind the other. */
typedef struct timeline {
    const tg_forecast_request *request;
    int ranks;
    double free_s, done_s; /* the link is free; the last one has ended */
    double busy_s;
    double at_s, pending_s; /* of the core, that is wanted between then and free_s */
    double taken_s;         /* computing took longer so far */
} timeline;

/* The core's work of the exchange is done evenly while the link is busy. */
static void advance(timeline *t, double to_s)
{
    t->pending_s = to_s < t->free_s ? t->pending_s * (t->free_s - to_s) / (t->free_s - t->at_s) : 0;
    t->at_s = to_s;
}

/* A phase that may begin at ready_s. */
static double add_phase(timeline *t, double ready_s, const tg_comm_work *work)
{
    const tg_phase phase = tg_link_phase(&t->request->link, t->ranks, work);
    advance(t, ready_s);
    t->free_s = fmax(t->free_s, ready_s) + phase.busy_s;
    t->busy_s += phase.busy_s;
    t->pending_s += phase.core_s;
    return phase.latency_s;
}

/* A collective that may begin at ready_s. */
static void exchange(timeline *t, double ready_s, const tg_comm_work *work)
{
    tg_comm_work phase = *work;
    double latency = 0;
    for (int gather = 0; gather < 2; gather++) {
        if (work->kind == (gather ? TG_COMM_REDUCE_SCATTER : TG_COMM_ALL_GATHER))
            continue;
        phase.kind = gather ? TG_COMM_ALL_GATHER : TG_COMM_REDUCE_SCATTER;
        latency += add_phase(t, ready_s, &phase);
    }
    t->done_s = fmax(t->done_s, t->free_s + latency);
}

/* When work_s of computing that begins at begin_s has ended. */
static double compute(timeline *t, double begin_s, double work_s)
{
    const tg_link *link = &t->request->link;
    if (link->spare_core || begin_s >= t->free_s)
        return begin_s + work_s;
    advance(t, begin_s);
    const double left = t->free_s - begin_s, core = sharers(link) * t->pending_s;
    const double rate = fmax(0, 1 - core / left);
    const double longer = work_s < rate * left ? work_s / rate - work_s : core;
    t->taken_s += longer;
    return begin_s + work_s + longer;
}

/* Parameters come back from the head on; as bf16, two in the place of one. */
static void gather(timeline *t, const tg_bucket *bucket)
{
    const tg_comm_work work = {.kind = TG_COMM_ALL_GATHER,
                               .count = bucket->count / (t->request->narrow ? 2 : 1)};
    exchange(t, 0, &work);
}

/* Gathers begin with the step. Forward waits where a layer's have not come. Returns when forward ends; *wait_s is
 * added to. */
static double play_forward(timeline *t, const tg_buckets *buckets, double *wait_s)
{
    const tg_forecast_request *q = t->request;
    timeline come = *t; /* of what has been asked for alone */
    size_t next = q->exchange.shard && t->ranks > 1 ? buckets->count : 0;
    for (size_t i = next; i-- > 0;)
        gather(t, &buckets->items[i]);
    double now = compute(t, 0, q->alone.other + q->alone.teacher);
    for (size_t i = 0; i < q->range_count; i++) {
        const tg_layer_range *range = &q->ranges[i];
        while (next > 0 && buckets->items[next - 1].offset < range->offset + range->count)
            gather(&come, &buckets->items[--next]);
        *wait_s += fmax(0, come.done_s - now);
        now = compute(t, fmax(now, come.done_s), range->forward * q->alone.forward);
    }
    return now;
}

/* Buckets go out as layers become final, from the tail. Returns when backward ends. */
static double play_backward(timeline *t, const tg_buckets *buckets, double begin_s)
{
    const tg_forecast_request *q = t->request;
    tg_comm_work work = {.kind = q->exchange.shard ? TG_COMM_REDUCE_SCATTER : TG_COMM_ALL_REDUCE,
                         .wire = q->exchange.wire};
    double now = begin_s;
    size_t next = 0;
    for (size_t i = q->range_count; i-- > 0;) {
        now = compute(t, now, q->ranges[i].backward * q->alone.backward);
        for (; next < buckets->count && buckets->items[next].offset >= q->ranges[i].offset;
             next++) {
            work.count = buckets->items[next].count;
            exchange(t, now, &work);
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
    const tg_comm_work words = {.kind = TG_COMM_ALL_GATHER,
                                .count = MEETING_BYTES / sizeof(float) * (size_t)ranks};
    double wait = 0;
    timeline t = {.request = q, .ranks = ranks};
    double now = play_forward(&t, buckets, &wait);
    now += (double)(q->accumulation - 1) * micro; /* parameters have come before */
    now = play_backward(&t, buckets, now);
    wait += fmax(0, t.done_s - now);
    now = fmax(now, t.done_s);
    const tg_phase meeting = tg_link_phase(&q->link, ranks, &words);
    wait += meeting.busy_s + meeting.latency_s;
    now += meeting.busy_s + meeting.latency_s +
           a->optimizer * (UPDATE_SHARE / shares + 1 - UPDATE_SHARE);
    *out = (tg_forecast){.step_s = now, .exposed_s = wait, .wire_s = t.busy_s, .core_s = t.taken_s};
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
