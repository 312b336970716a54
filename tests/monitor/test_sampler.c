/* Cores, memory and threads of copies of /proc: what is said, what is unknown, and what changed between two looks. */
#include "monitor/tree.h"

#include "monitor/core_use.h"
#include "monitor/sampler.h"
#include "monitor/threads.h"
#include "run/system_line.h"

#include <math.h>

#define SECOND_NS INT64_C(1000000000)

static tg_sampler *sampler;
static tg_system_sample sample;

static void open_sampler(const int64_t *pids, size_t count)
{
    const tg_sampler_options options = {.root = tree_root, .pids = pids, .pid_count = count};
    assert_ok(tg_sampler_open(&options, 10 * SECOND_NS, &sampler));
    assert_ok(tg_sampler_make(sampler, 0, &sample));
}

static void close_sampler(void)
{
    tg_system_sample_done(&sample);
    tg_sampler_close(sampler);
}

static double role(tg_system_role which, tg_system_of_role of)
{
    return sample.values[TG_SYSTEM_ROLE(which, of)];
}

static void shares_are_of_a_cores_own_ticks(void **state)
{
    (void)state;
    tree_begin("stat");
    tree_put("/proc/stat", "cpu  9 9 9 9 9 9 9 9 9 9\n"
                           "cpu0 100 0 50 1000 10 0 0 0 0 0\ncpu2 5 0 0 100 0 0 0 0 0 0\n"
                           "intr 12345 0 9\nctxt 1000\nprocs_running 1\nprocs_blocked 0\n");
    open_sampler(NULL, 0);
    assert_int_equal(tg_sampler_cores(sampler), 3);
    tree_put("/proc/stat", "cpu  9 9 9 9 9 9 9 9 9 9\n"
                           "cpu0 130 10 60 1020 9 5 5 20 0 0\ncpu2 5 0 0 100 0 0 0 0 0 0\n"
                           "intr 99999 0 9\nctxt 1500\nprocs_running 4\nprocs_blocked 2\n");
    tg_sampler_take(sampler, 12 * SECOND_NS, &sample);
    NEAR(sample.seconds, 2);
    NEAR(sample.cores[0].user, 0.40f); /* 30 + 10 of 100; waiting for a disk fell back by a tick */
    NEAR(sample.cores[0].system, 0.20f);
    NEAR(sample.cores[0].iowait, 0);
    NEAR(sample.cores[0].steal, 0.20f);
    UNKNOWN(sample.cores[1].user); /* off */
    UNKNOWN(sample.cores[2].user); /* stood still: not a tick */
    NEAR(sample.values[TG_SYSTEM_SWITCHES], 250);
    NEAR(sample.values[TG_SYSTEM_RUNNING], 3);
    NEAR(sample.values[TG_SYSTEM_BLOCKED], 2);
    close_sampler();
}

static void what_is_absent_is_unknown(void **state)
{
    (void)state;
    tree_begin("nothing");
    open_sampler(NULL, 0);
    assert_int_equal(tg_sampler_cores(sampler), 0);
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    for (int m = 0; m < TG_SYSTEM_METRICS; m++)
        UNKNOWN(sample.values[m]);
    close_sampler();
    tree_begin("half");
    tree_put("/proc/stat", "cpu0 1 2 3\nprocs_running x\n");
    tree_put("/proc/meminfo", "MemTotal: 100 kB\nMemFree:  30 kB\nnonsense\n");
    tree_put("/proc/vmstat", "pgfault 7\n");
    open_sampler(NULL, 0);
    tree_put("/proc/stat", "cpu0 2 2 3\n");
    tree_put("/proc/vmstat", "pgfault 5\n"); /* begun anew */
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    NEAR(sample.cores[0].user, 1); /* an old kernel's columns */
    NEAR(sample.values[TG_SYSTEM_MEMORY_TOTAL_BYTES], 102400);
    UNKNOWN(sample.values[TG_SYSTEM_MEMORY_USED_BYTES]);
    UNKNOWN(sample.values[TG_SYSTEM_SWAP_USED_BYTES]);
    UNKNOWN(sample.values[TG_SYSTEM_RUNNING]);
    UNKNOWN(sample.values[TG_SYSTEM_FAULTS]);
    UNKNOWN(sample.values[TG_SYSTEM_MAJOR_FAULTS]);
    close_sampler();
}

static void memory_is_without_what_can_be_given_back(void **state)
{
    (void)state;
    tree_begin("memory");
    tree_put("/proc/meminfo",
             "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 700 kB\n"
             "Buffers: 50 kB\nCached: 600 kB\nSwapCached: 1 kB\nSwapTotal: 500 kB\n"
             "SwapFree: 400 kB\nShmem: 20 kB\nSReclaimable: 30 kB\n");
    open_sampler(NULL, 0);
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    NEAR(sample.values[TG_SYSTEM_MEMORY_USED_BYTES], 300 * 1024);
    NEAR(sample.values[TG_SYSTEM_MEMORY_CACHE_BYTES], 660 * 1024);
    NEAR(sample.values[TG_SYSTEM_SWAP_USED_BYTES], 100 * 1024);
    close_sampler();
}

static void put_thread(int id, const char *name, long long cpu_ns, long long wait_ns, int switches)
{
    char path[128], text[256];
    snprintf(path, sizeof path, "/proc/77/task/%d/comm", id);
    snprintf(text, sizeof text, "%s\n", name);
    tree_put(path, text);
    snprintf(path, sizeof path, "/proc/77/task/%d/schedstat", id);
    snprintf(text, sizeof text, "%lld %lld 9\n", cpu_ns, wait_ns);
    tree_put(path, text);
    snprintf(path, sizeof path, "/proc/77/task/%d/status", id);
    snprintf(text, sizeof text,
             "Name:\t%s\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n", name,
             switches, 2 * switches);
    tree_put(path, text);
}

static void threads_are_counted_by_their_names(void **state)
{
    const int64_t pids[] = {77, 78};
    (void)state;
    tree_begin("threads");
    tree_put("/proc/77/statm", "1000 200 50 1 0 100 0\n");
    tree_put("/proc/77/io", "rchar: 5\nread_bytes: 4096\nwrite_bytes: 0\n");
    put_thread(77, "tagine", 1000000000, 0, 10);
    put_thread(80, "tg-compute", 2000000000, 0, 20);
    put_thread(81, "tg-loader", 0, 0, 0);
    put_thread(82, "tg-monitor", 5000000000, 0, 0);
    put_thread(83, "tagine", 0, 0, 0); /* of a library, or without its name yet */
    open_sampler(pids, 2);
    put_thread(77, "tagine", 1500000000, 100000000, 20);
    put_thread(80, "tg-compute", 3500000000, 300000000, 40);
    put_thread(81, "tg-loader", 250000000, 1000000000, 4);
    put_thread(83, "tg-comm", 0, 0, 6);
    put_thread(90, "tg-loader", 500000000, 0, 2); /* new: all it did was since */
    tree_put("/proc/77/io", "rchar: 5\nread_bytes: 8192\nwrite_bytes: 0\n");
    tg_sampler_take(sampler, 12 * SECOND_NS, &sample);
    NEAR(role(TG_ROLE_COMPUTE, TG_SYSTEM_THREADS), 2);
    NEAR(role(TG_ROLE_COMPUTE, TG_SYSTEM_CPU), 1);
    NEAR(role(TG_ROLE_COMPUTE, TG_SYSTEM_WAIT), 0.2);
    NEAR(role(TG_ROLE_COMPUTE, TG_SYSTEM_VOLUNTARY), 15);
    NEAR(role(TG_ROLE_COMPUTE, TG_SYSTEM_INVOLUNTARY), 30);
    NEAR(role(TG_ROLE_LOADER, TG_SYSTEM_THREADS), 2);
    NEAR(role(TG_ROLE_LOADER, TG_SYSTEM_CPU), 0.375);
    NEAR(role(TG_ROLE_COMMUNICATION, TG_SYSTEM_THREADS), 1);
    NEAR(role(TG_ROLE_OTHER, TG_SYSTEM_THREADS), 0);
    NEAR(role(TG_ROLE_OTHER, TG_SYSTEM_CPU), 0);     /* nobody takes nothing: that is known */
    NEAR(sample.values[TG_SYSTEM_JOB_PROCESSES], 1); /* the other is not to be seen */
    NEAR(sample.values[TG_SYSTEM_JOB_RSS_BYTES], 200 * 4096);
    NEAR(sample.values[TG_SYSTEM_JOB_READ_BYTES], 2048);
    close_sampler();
}

static void threads_that_end_and_processes_that_hide(void **state)
{
    const int64_t pids[] = {77};
    (void)state;
    tree_begin("hidden");
    open_sampler(pids, 1);
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    NEAR(sample.values[TG_SYSTEM_JOB_PROCESSES], 0);
    UNKNOWN(role(TG_ROLE_COMPUTE, TG_SYSTEM_THREADS));
    UNKNOWN(sample.values[TG_SYSTEM_JOB_RSS_BYTES]);
    close_sampler();
    tree_begin("ending");
    tree_put("/proc/77/statm", "1000 200 50 1 0 100 0\n");
    put_thread(77, "tagine", 0, 0, 0);
    put_thread(78, "tg-loader", 0, 0, 0);
    open_sampler(pids, 1);
    tree_remove("/proc/77/task/78");
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    NEAR(role(TG_ROLE_LOADER, TG_SYSTEM_THREADS), 0);
    NEAR(role(TG_ROLE_COMPUTE, TG_SYSTEM_CPU), 0);
    UNKNOWN(sample.values[TG_SYSTEM_JOB_READ_BYTES]);
    close_sampler();
}

static void without_schedstat_ticks_are_told_and_no_waiting(void **state)
{
    (void)state;
    tg_thread_counts counts = {NAN, NAN, NAN, NAN};
    assert_false(tg_schedstat_parse("0\n", &counts));
    UNKNOWN(counts.cpu_s);
    assert_true(
        tg_thread_stat_parse("5 (a) b ) R 1 1 1 0 -1 64 1 0 0 0 150 50 0 0 20", 100, &counts));
    NEAR(counts.cpu_s, 2);
    UNKNOWN(counts.wait_s);
    assert_false(tg_thread_stat_parse("5 (a) R 1 1", 100, &counts));
    tg_thread_status_parse("Name:\tx\n", &counts);
    UNKNOWN(counts.voluntary);
    assert_int_equal(tg_thread_role("tg-compute\n", false), TG_ROLE_COMPUTE);
    assert_int_equal(tg_thread_role("tg-compute2\n", false), TG_ROLE_OTHER);
    assert_int_equal(tg_thread_role("anything\n", true), TG_ROLE_COMPUTE);
    assert_int_equal(tg_thread_role("tg-monitor\n", false), TG_ROLES);
}

/* A moment that is no later than the one before, as clocks of virtual machines have given: rates stay finite. */
static void no_interval_is_too_short(void **state)
{
    (void)state;
    tree_begin("clock");
    tree_put("/proc/stat", "cpu0 1 0 0 1\nctxt 10\n");
    open_sampler(NULL, 0);
    tree_put("/proc/stat", "cpu0 2 0 0 2\nctxt 20\n");
    tg_sampler_take(sampler, 10 * SECOND_NS - 5, &sample);
    assert_true(sample.seconds > 0);
    NEAR(sample.values[TG_SYSTEM_SWITCHES], 10 / sample.seconds);
    NEAR(sample.cores[0].user, 0.5);
    close_sampler();
}

static void real_machine(void **state)
{
    (void)state;
    tree_root[0] = '\0';
    open_sampler(NULL, 0);
    assert_true(tg_sampler_cores(sampler) >= 1);
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    assert_true(sample.values[TG_SYSTEM_MEMORY_TOTAL_BYTES] > 1e8);
    assert_true(sample.values[TG_SYSTEM_RUNNING] >= 0);
    close_sampler();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_of_a_cores_own_ticks),
        cmocka_unit_test(what_is_absent_is_unknown),
        cmocka_unit_test(memory_is_without_what_can_be_given_back),
        cmocka_unit_test(threads_are_counted_by_their_names),
        cmocka_unit_test(threads_that_end_and_processes_that_hide),
        cmocka_unit_test(without_schedstat_ticks_are_told_and_no_waiting),
        cmocka_unit_test(no_interval_is_too_short),
        cmocka_unit_test(real_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
