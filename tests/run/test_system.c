/* system/HOST.jsonl: what is written reads back, unknown stays unknown, merging keeps sums, a budget holds. */
#include "support/check.h"

#include "os/file.h"
#include "run/system.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *path_of(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", tg_test_temp_dir(), name);
    return path;
}

enum { CORES = 3 };

typedef struct fixture {
    tg_system_core cores[CORES];
    tg_system_device devices[1];
    tg_system_sample sample;
} fixture;

static void fill(fixture *f, double time, float busy, double running)
{
    *f = (fixture){.sample = {.time = time, .seconds = 0.5}};
    for (int m = 0; m < TG_SYSTEM_METRICS; m++)
        f->sample.values[m] = NAN;
    for (int c = 0; c < CORES; c++)
        f->cores[c] = (tg_system_core){.user = busy, .system = 0.25f, .iowait = 0, .steal = 0};
    f->devices[0] = (tg_system_device){.utilisation = NAN,
                                       .memory_utilisation = 0.5f,
                                       .memory_used_bytes = 1e9,
                                       .memory_total_bytes = NAN,
                                       .power_w = 300};
    f->sample.values[TG_SYSTEM_RUNNING] = running;
    f->sample.values[TG_SYSTEM_GROUP_LIMIT_BYTES] = INFINITY;
    f->sample.cores = f->cores;
    f->sample.devices = f->devices;
}

static void test_names(void **state)
{
    (void)state;
    for (int m = 0; m < TG_SYSTEM_METRICS; m++) {
        assert_non_null(tg_system_metric_name(m));
        assert_non_null(tg_system_metric_unit(m));
        for (int k = 0; k < m; k++)
            assert_string_not_equal(tg_system_metric_name(m), tg_system_metric_name(k));
    }
    assert_string_equal(
        tg_system_metric_name(TG_SYSTEM_ROLE(TG_ROLE_LOADER, TG_SYSTEM_INVOLUNTARY)),
        "loader_involuntary");
    assert_string_equal(tg_system_metric_name(TG_SYSTEM_METRICS - 1), "other_involuntary");
}

static void test_reads_back(void **state)
{
    fixture f;
    tg_system_writer writer;
    tg_system_host host;
    size_t bad = 9;
    (void)state;
    fill(&f, 1772000000.512, 0.5f, 3);
    f.cores[1].user = NAN;
    assert_ok(tg_system_open(tg_test_temp_dir(), "../a b", CORES, 1, 0, &writer));
    assert_ok(tg_system_write(&writer, &f.sample));
    tg_system_close(&writer);
    assert_ok(tg_system_read(path_of("_._a_b.jsonl"), 100, &host, &bad));
    assert_int_equal(bad, 0);
    assert_string_equal(host.host, "../a b");
    assert_int_equal(host.core_count, CORES);
    assert_int_equal(host.sample_count, 1);
    const tg_system_sample *s = &host.samples[0];
    assert_true(fabs(s->time - 1772000000.512) < 1e-6);
    assert_true(s->seconds == 0.5);
    assert_true(s->values[TG_SYSTEM_RUNNING] == 3);
    assert_true(isnan(s->values[TG_SYSTEM_BLOCKED]));
    assert_true(isinf(s->values[TG_SYSTEM_GROUP_LIMIT_BYTES]));
    assert_true(s->cores[0].user == 0.5f && s->cores[0].system == 0.25f);
    assert_true(isnan(s->cores[1].user));
    assert_true(isnan(s->devices[0].utilisation) && s->devices[0].power_w == 300);
    assert_true(fabs(tg_system_busy(&host, s) - 0.75) < 1e-6);
    tg_system_host_done(&host);
}

static void write_text(const char *path, const char *text)
{
    assert_ok(tg_file_write(path, text, strlen(text)));
}

static void test_tolerates(void **state)
{
    static const char TEXT[] =
        "{\"time\":1,\"seconds\":1,\"values\":[1]}\n" /* before any head */
        "{\"host\":\"a\",\"cores\":1,\"metrics\":[\"running\",\"of_tomorrow\",\"faults\"]}\n"
        "{\"time\":1,\"seconds\":1,\"user\":[250],\"values\":[4,5,6]}\n" /* no share */
        "nonsense\n"
        "{\"time\":2,\"seconds\":0,\"values\":[4]}\n" /* no interval */
        "{\"host\":\"a\",\"cores\":2,\"metrics\":[\"faults\"]}\n"
        "{\"time\":3,\"seconds\":1,\"user\":[50,100],\"values\":[7]}\n"
        "{\"time\":4,\"seconds\":1,\"us"; /* torn */
    tg_system_host host;
    size_t bad = 0;
    (void)state;
    char *path = path_of("odd.jsonl");
    write_text(path, TEXT);
    assert_ok(tg_system_read(path, 100, &host, &bad));
    assert_int_equal(bad, 3);
    assert_int_equal(host.sample_count, 2);
    assert_int_equal(host.core_count, 2);
    assert_true(host.samples[0].values[TG_SYSTEM_RUNNING] == 4);
    assert_true(host.samples[0].values[TG_SYSTEM_FAULTS] == 6);
    assert_true(isnan(host.samples[0].cores[0].user));
    assert_true(isnan(host.samples[0].cores[1].user)); /* it was not there yet */
    assert_true(isnan(host.samples[1].values[TG_SYSTEM_RUNNING]));
    assert_true(host.samples[1].cores[1].user == 1);
    tg_system_host_done(&host);
}

/* Thinned or not, a series covers all the time, and its mean is the same. */
static void test_reading_is_bounded(void **state)
{
    enum { SAMPLES = 1003 };
    fixture f;
    tg_system_writer writer;
    tg_system_host host;
    double sum = 0, seconds = 0;
    (void)state;
    assert_ok(tg_system_open(tg_test_temp_dir(), "long", CORES, 1, 0, &writer));
    for (int i = 0; i < SAMPLES; i++) {
        fill(&f, 1000 + 0.5 * i, 0.5f, i % 10);
        assert_ok(tg_system_write(&writer, &f.sample));
    }
    tg_system_close(&writer);
    assert_ok(tg_system_read(path_of("long.jsonl"), 64, &host, NULL));
    assert_in_range(host.sample_count, 32, 64);
    assert_int_equal(host.merged, 16);
    for (size_t i = 0; i < host.sample_count; i++) {
        sum += host.samples[i].values[TG_SYSTEM_RUNNING] * host.samples[i].seconds;
        seconds += host.samples[i].seconds;
    }
    double want = 0;
    for (int i = 0; i < SAMPLES; i++)
        want += i % 10;
    assert_true(fabs(seconds - 0.5 * SAMPLES) < 1e-6);
    assert_true(fabs(sum / seconds - want / SAMPLES) < 1e-6);
    assert_true(host.samples[host.sample_count - 1].time == 1000 + 0.5 * (SAMPLES - 1));
    tg_system_host_done(&host);
}

static void test_file_is_bounded(void **state)
{
    enum { SAMPLES = 2000, BUDGET = 64 << 10 };
    fixture f;
    tg_system_writer writer;
    tg_system_host host;
    double seconds = 0;
    size_t bad = 0;
    struct stat about;
    (void)state;
    assert_ok(tg_system_open(tg_test_temp_dir(), "full", CORES, 1, BUDGET, &writer));
    for (int i = 0; i < SAMPLES; i++) {
        fill(&f, 1000 + 0.5 * i, 0.5f, 1);
        assert_ok(tg_system_write(&writer, &f.sample));
        assert_int_equal(stat(path_of("full.jsonl"), &about), 0);
        assert_in_range(about.st_size, 1, BUDGET);
    }
    tg_system_close(&writer);
    assert_ok(tg_system_read(path_of("full.jsonl"), 100000, &host, &bad));
    assert_int_equal(bad, 0);
    for (size_t i = 0; i < host.sample_count; i++)
        seconds += host.samples[i].seconds;
    assert_true(fabs(seconds - 0.5 * SAMPLES) < 1e-3 * seconds);
    tg_system_host_done(&host);
}

static void test_continues(void **state)
{
    fixture f;
    tg_system_writer writer;
    tg_system_host host;
    (void)state;
    for (int attempt = 0; attempt < 2; attempt++) {
        fill(&f, 1000 + attempt, 0.5f, 1);
        assert_ok(tg_system_open(tg_test_temp_dir(), "again", CORES, 1, 0, &writer));
        assert_ok(tg_system_write(&writer, &f.sample));
        tg_system_close(&writer);
    }
    assert_ok(tg_system_read(path_of("again.jsonl"), 100, &host, NULL));
    assert_int_equal(host.sample_count, 2);
    tg_system_host_done(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),           cmocka_unit_test(test_reads_back),
        cmocka_unit_test(test_tolerates),       cmocka_unit_test(test_reading_is_bounded),
        cmocka_unit_test(test_file_is_bounded), cmocka_unit_test(test_continues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
