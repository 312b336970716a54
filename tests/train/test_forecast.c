/* The forecast against closed forms: one bucket, hidden buckets, a link that is too slow, ring, hosts of several
 * ranks, shards, the core that the exchange takes, and what only gets worse with more ranks. */
#include "support/check.h"

#include "train/forecast.h"

#include <math.h>
#include <stdlib.h>

enum { MIB = 1 << 20, ELEMENTS = 16 * MIB / 4 };

/* 16 MiB of gradients on hosts of one rank: 1 GB/s, 10 us; a step of 8 s. */
static const tg_layer_range WHOLE[] = {{0, ELEMENTS, 1, 1}};
static const tg_forecast_request PLAIN = {
    .alone = {.teacher = 1, .forward = 2, .backward = 4, .optimizer = 0.8, .other = 0.2},
    .accumulation = 1,
    .ranges = WHOLE,
    .range_count = 1,
    .exchange = {.first_bucket_bytes = 64 * MIB, .bucket_bytes = 64 * MIB, .wire = TG_F32},
    .link = {
        .latency_s = 1e-5, .bytes_per_s = 1e9, .local_bytes_per_s = INFINITY, .ranks_per_host = 1}};

static tg_forecast forecast(const tg_forecast_request *request, int ranks)
{
    tg_forecast f;
    assert_ok(tg_forecast_step(request, ranks, &f));
    return f;
}

static void assert_same(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want) + 1e-12)) {
        print_error("%.12g is not %.12g\n", got, want);
        fail();
    }
}

/* Of the meeting at the end: everyone's words to everyone. */
static double meeting(const tg_link *link, int N)
{
    return (N - 1) * 256.0 / link->bytes_per_s + link->latency_s;
}

/* Of a gather, as float32. */
static tg_phase phase(const tg_link *link, int ranks, double bytes)
{
    const tg_comm_work work = {.kind = TG_COMM_ALL_GATHER, .count = (size_t)(bytes / 4)};
    return tg_link_phase(link, ranks, &work);
}

/* One bucket, final when backward ends: t = compute + 2 ((N-1)/N M / bandwidth + latency) + meeting. */
static void test_nothing_hidden(void **state)
{
    (void)state;
    const double M = 16.0 * MIB;
    for (int N = 2; N <= 64; N *= 2) {
        const double exposed = 2 * ((N - 1.0) / N * M / 1e9 + 1e-5) + meeting(&PLAIN.link, N);
        const tg_forecast f = forecast(&PLAIN, N);
        assert_same(f.exposed_s, exposed);
        assert_same(f.step_s, 8 + exposed);
        assert_same(f.efficiency, 8 / (8 + exposed));
        assert_same(f.wire_s, 2 * (N - 1.0) / N * M / 1e9);
    }
    const tg_forecast one = forecast(&PLAIN, 1);
    assert_same(one.step_s, 8);
    assert_same(one.exposed_s, 0);
    assert_same(one.efficiency, 1);
}

/* bf16 halves the way out, not the way back. */
static void test_wire_type(void **state)
{
    (void)state;
    tg_forecast_request q = PLAIN;
    q.exchange.wire = TG_BF16;
    assert_same(forecast(&q, 4).wire_s, 0.75 * forecast(&PLAIN, 4).wire_s);
}

/* Four layers, four buckets: all but the last that becomes final hide behind backward. */
static void test_overlap(void **state)
{
    (void)state;
    tg_layer_range quarters[4];
    tg_forecast_request q = PLAIN;
    for (size_t i = 0; i < 4; i++)
        quarters[i] = (tg_layer_range){i * ELEMENTS / 4, ELEMENTS / 4, 0.25, 0.25};
    q.ranges = quarters;
    q.range_count = 4;
    q.exchange.first_bucket_bytes = q.exchange.bucket_bytes = 4 * MIB;
    const double quarter = 2 * (1.0 / 2 * 4 * MIB / 1e9);
    assert_same(forecast(&q, 2).exposed_s, quarter + 2e-5 + meeting(&q.link, 2));
    /* the wire needs longer than backward: what is left of it after the first quarter is exposed */
    q.link.bytes_per_s = 1e6;
    assert_same(forecast(&q, 2).exposed_s,
                4 * 1000 * quarter - 0.75 * 4 + 2e-5 + meeting(&q.link, 2));
    /* nothing moves while micro-batches before the last are computed */
    q.accumulation = 3;
    assert_same(forecast(&q, 2).step_s,
                8 + 2 * 7 + 4 * 1000 * quarter - 0.75 * 4 + 2e-5 + meeting(&q.link, 2));
}

/* Sharded: half of the traffic comes back behind the teacher's forward, and each updates its share. */
static void test_shards(void **state)
{
    (void)state;
    tg_forecast_request q = PLAIN;
    q.exchange.shard = true;
    const int N = 4;
    const double phase = 3.0 / 4 * 16 * MIB / 1e9 + 1e-5;
    tg_forecast f = forecast(&q, N);
    assert_same(f.exposed_s, phase + meeting(&q.link, N));
    assert_same(f.step_s, 7.2 + 0.8 * (0.75 / N + 0.25) + f.exposed_s);
    assert_same(f.wire_s, forecast(&PLAIN, N).wire_s);
    q.narrow = true; /* half of the way back */
    assert_same(forecast(&q, N).wire_s, 0.75 * f.wire_s);
    q.narrow = false;
    q.alone.teacher = q.alone.other = 0; /* nothing to hide behind */
    assert_same(forecast(&q, N).exposed_s, 2 * phase + meeting(&q.link, N));
}

/* The same bytes pass a rank's link; the latency comes N - 1 times. */
static void test_ring(void **state)
{
    (void)state;
    const tg_link direct = PLAIN.link;
    tg_link ring = direct;
    ring.method = TG_EXCHANGE_RING;
    for (int N = 2; N <= 100; N += 7) {
        const tg_phase a = phase(&direct, N, 1e6), b = phase(&ring, N, 1e6);
        assert_same(b.busy_s, a.busy_s);
        assert_same(b.latency_s, (N - 1) * a.latency_s);
    }
    /* a core's time for each message counts where it is longer than the wire's */
    tg_link busy_core = direct;
    busy_core.message_s = 1e-3;
    assert_same(phase(&busy_core, 100, 1e6).busy_s, 99 * 1e-3);
    /* 1 MB to each: 17 messages of 60 KiB */
    assert_same(phase(&busy_core, 3, 3e6).busy_s, 2 * 17 * 1e-3);
    assert_same(phase(&busy_core, 3, 3e6).core_s, 2 * 17 * 1e-3);
}

/* Eight ranks share a host's link: a direct exchange sends all pieces over it, a ring one. */
static void test_hosts(void **state)
{
    (void)state;
    tg_link link = PLAIN.link;
    link.ranks_per_host = 8;
    assert_same(phase(&link, 8, 1e6).busy_s,
                0); /* nobody is away, and the host's own memory is no limit */
    assert_same(phase(&link, 32, 1e6).busy_s, 8 * 24 * 1e6 / 32 / 1e9);
    link.method = TG_EXCHANGE_RING;
    assert_same(phase(&link, 32, 1e6).busy_s, 31 * 1e6 / 32 / 1e9);
    link.local_bytes_per_s = 1e8; /* the slowest link of a ring is the ring's */
    assert_same(phase(&link, 32, 1e6).busy_s, 31 * 1e6 / 32 / 1e8);
    link.method = TG_EXCHANGE_DIRECT;
    assert_same(phase(&link, 8, 1e6).busy_s, 7 * 1e6 / 8 / 1e8);
}

/* Two layers, two buckets, on a core that the exchange has a part of: K of B seconds of the link. */
static tg_forecast_request halves_of(tg_layer_range halves[2])
{
    tg_forecast_request q = PLAIN;
    for (size_t i = 0; i < 2; i++)
        halves[i] = (tg_layer_range){i * ELEMENTS / 2, ELEMENTS / 2, 0.5, 0.5};
    q.ranges = halves;
    q.range_count = 2;
    q.exchange.first_bucket_bytes = q.exchange.bucket_bytes = 8 * MIB;
    q.link.latency_s = 0;
    return q;
}

/* Of the core for an all-reduce of 8 MiB between two, by bytes: each sends 4 MiB twice. */
#define KERNEL_BYTES (2 * 4.0 * MIB)

/* The first bucket is exchanged while the second half of backward, 2 s, is computed; K is spread over B. */
static void test_core(void **state)
{
    (void)state;
    tg_layer_range halves[2];
    tg_forecast_request q = halves_of(halves);
    const double B = KERNEL_BYTES / 1e9, K = 0.4 * B;
    q.link.core_byte_s = 0.4e-9;
    tg_forecast f =
        forecast(&q, 2); /* the link is free long before backward ends: all of K is lost */
    assert_same(f.core_s, K);
    assert_same(f.exposed_s, B + meeting(&q.link, 2));
    assert_same(f.step_s, 8 + K + f.exposed_s);
    q.link.bytes_per_s =
        KERNEL_BYTES /
        5; /* the link is busy for 5 s, to the end: 2 s of computing take 2/(1 - K/B) */
    q.link.core_byte_s = 2 / KERNEL_BYTES;
    f = forecast(&q, 2);
    assert_same(f.core_s, 2 / (1 - 2.0 / 5) - 2);
    assert_same(f.step_s, 8 - 2 + 5 + 5 + meeting(&q.link, 2)); /* waited for in any case */
    q.link.spare_core = true;
    f = forecast(&q, 2);
    assert_same(f.core_s, 0);
    assert_same(f.exposed_s, 5 - 2 + 5 + meeting(&q.link, 2));
    assert_same(f.step_s, 8 - 2 + 5 + 5 + meeting(&q.link, 2));
}

/* By messages: 8 MiB between two is 4 MiB to the other in 32 of them, out and back. */
static void test_core_messages(void **state)
{
    (void)state;
    tg_layer_range halves[2];
    tg_forecast_request q = halves_of(halves);
    q.link.bytes_per_s = 16e6; /* about half a second */
    q.link.message_s = 1e-3;
    assert_same(forecast(&q, 2).core_s, 138e-3); /* 69 messages of 60 KiB, out and back */
    q.link.ranks_per_core = 2; /* the other rank's exchange is on this core as well */
    assert_same(forecast(&q, 2).core_s, 276e-3);
    q.link.bytes_per_s = 1e12; /* the core is what is slow: it exchanges first and computes then */
    const tg_forecast f = forecast(&q, 2);
    assert_same(f.core_s, 276e-3);
    assert_same(f.wire_s, 2 * 276e-3);
}

/* Parameters on their way slow what is computed meanwhile: here the teacher. */
static void test_core_gathers(void **state)
{
    (void)state;
    tg_forecast_request q = PLAIN;
    q.exchange.shard = true;
    q.link.latency_s = 0;
    q.link.core_byte_s = 0.5e-9;
    const double B = 0.5 * 16 * MIB / 1e9;
    const tg_forecast f = forecast(&q, 2);
    assert_same(f.core_s, 0.5 * B);
    assert_same(f.exposed_s,
                B + meeting(&q.link, 2)); /* gradients of the one bucket: nothing to slow */
}

/* Expected largest of n: 1/sqrt(pi) of 2, 3/(2 sqrt(pi)) of 3 (exact); 2.5076 of 100 (tables). */
static void test_slowest(void **state)
{
    (void)state;
    const double pi = acos(-1);
    assert_true(tg_forecast_largest(1) == 0);
    assert_true(fabs(tg_forecast_largest(2) * sqrt(pi) - 1) < 0.05);
    assert_true(fabs(tg_forecast_largest(3) * 2 * sqrt(pi) / 3 - 1) < 0.05);
    assert_true(fabs(tg_forecast_largest(100) / 2.5076 - 1) < 0.01);
    tg_forecast_request q = PLAIN;
    q.spread = 0.02;
    const tg_forecast f = forecast(&q, 100);
    assert_same(f.slowest_s, 0.02 * 8 * tg_forecast_largest(100));
    assert_same(f.step_s, forecast(&PLAIN, 100).step_s + f.slowest_s);
}

/* Ranges of a model lie one behind the other, cover it, and share all the work. */
static void test_ranges(void **state)
{
    (void)state;
    static const char *const MODELS[] = {"vit_tiny_patch16_224", "deit_small_distilled_patch16_224",
                                         "vit_small_patch14_dinov2"};
    for (size_t m = 0; m < 3; m++)
        for (size_t behind = 0; behind <= 160; behind += 160) {
            tg_vit_config config;
            tg_param_table table = {0};
            tg_layer_range *ranges;
            size_t count, end = 0;
            double forward = 0, backward = 0;
            assert_ok(tg_vit_config_preset(MODELS[m], &config));
            assert_ok(tg_vit_params(&config, &table));
            assert_ok(tg_forecast_ranges(&config, behind, &ranges, &count));
            assert_int_equal(count, config.depth + 2 + (behind > 0));
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(ranges[i].offset, end);
                assert_true(ranges[i].count > 0);
                end += ranges[i].count;
                forward += ranges[i].forward;
                backward += ranges[i].backward;
            }
            assert_int_equal(end, table.elements + behind);
            assert_true(fabs(forward - 1) < 1e-9 && fabs(backward - 1) < 1e-9);
            free(ranges);
            tg_param_table_done(&table);
        }
}

/* A real model from 2 to 4,096 ranks: more ranks are never more efficient, the step never shorter. */
static void test_monotonic(void **state)
{
    (void)state;
    tg_vit_config config;
    tg_layer_range *ranges;
    size_t count;
    assert_ok(tg_vit_config_preset("vit_small_patch16_224", &config));
    assert_ok(tg_forecast_ranges(&config, 0, &ranges, &count));
    for (int method = 0; method < 2; method++) {
        tg_forecast_request q = PLAIN;
        double before = 1;
        q.ranges = ranges;
        q.range_count = count;
        q.exchange.first_bucket_bytes = MIB;
        q.exchange.bucket_bytes = 4 * MIB;
        q.link.method = (tg_exchange_method)method;
        q.link.message_s = 3e-6;
        q.spread = 0.01;
        for (int N = 2; N <= 4096; N *= 2) {
            const tg_forecast f = forecast(&q, N);
            assert_true(f.efficiency > 0 && f.efficiency <= before);
            assert_true(f.exposed_s > 0 && f.exposed_s < f.step_s);
            before = f.efficiency;
        }
    }
    free(ranges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_hidden), cmocka_unit_test(test_wire_type),
        cmocka_unit_test(test_overlap),        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_ring),           cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_core),           cmocka_unit_test(test_core_messages),
        cmocka_unit_test(test_core_gathers),   cmocka_unit_test(test_slowest),
        cmocka_unit_test(test_ranges),         cmocka_unit_test(test_monotonic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
