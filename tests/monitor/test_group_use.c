/* Control groups of version 1, 2 and both, from copies of their trees: what is limited, used and held back. */
#include "monitor/tree.h"

#include "monitor/group_use.h"
#include "monitor/sampler.h"
#include "run/system_line.h"

#define SECOND_NS INT64_C(1000000000)
#define V2_MOUNT "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"

static tg_sampler *sampler;
static tg_system_sample sample;

static void open_sampler(void)
{
    const tg_sampler_options options = {.root = tree_root};
    assert_ok(tg_sampler_open(&options, 10 * SECOND_NS, &sampler));
    assert_ok(tg_sampler_make(sampler, 0, &sample));
}

static void close_sampler(void)
{
    tg_system_sample_done(&sample);
    tg_sampler_close(sampler);
}

#define VALUE(metric) sample.values[TG_SYSTEM_##metric]

static void version_2(void **state)
{
    (void)state;
    tree_begin("v2");
    tree_put("/proc/self/cgroup", "0::/slice/job\n");
    tree_put("/proc/self/mountinfo", V2_MOUNT);
    tree_put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
    tree_put("/sys/fs/cgroup/slice/job/cpu.max", "200000 100000\n");
    tree_put("/sys/fs/cgroup/slice/job/cpu.stat",
             "usage_usec 5\nnr_periods 100\nnr_throttled 10\nthrottled_usec 1000000\n");
    tree_put("/sys/fs/cgroup/slice/cpu.max", "max 100000\n");
    tree_put("/sys/fs/cgroup/slice/job/memory.max", "max\n");
    tree_put("/sys/fs/cgroup/slice/job/memory.current", "5\n");
    tree_put("/sys/fs/cgroup/slice/memory.max", "1000000\n");
    tree_put("/sys/fs/cgroup/slice/memory.high", "900000\n");
    tree_put("/sys/fs/cgroup/slice/memory.current", "700000\n");
    tree_put("/sys/fs/cgroup/slice/memory.stat",
             "anon 400000\nfile 300000\ninactive_file 250000\nactive_file 50000\n");
    open_sampler();
    tree_put("/sys/fs/cgroup/slice/job/cpu.stat",
             "usage_usec 5\nnr_periods 120\nnr_throttled 15\nthrottled_usec 3000000\n");
    tree_put("/sys/fs/cgroup/slice/memory.current", "720000\n");
    tg_sampler_take(sampler, 12 * SECOND_NS, &sample);
    NEAR(VALUE(GROUP_QUOTA_CORES), 2);
    NEAR(VALUE(GROUP_THROTTLED), 0.25);
    NEAR(VALUE(GROUP_THROTTLED_S), 1);
    NEAR(VALUE(GROUP_LIMIT_BYTES), 900000);
    NEAR(VALUE(GROUP_USED_BYTES), 420000);
    tree_put("/sys/fs/cgroup/slice/job/cpu.max", "max 100000\n"); /* lifted while the job runs */
    tg_sampler_take(sampler, 15 * SECOND_NS, &sample);
    NEAR(VALUE(GROUP_QUOTA_CORES), INFINITY);
    NEAR(VALUE(GROUP_THROTTLED), 0);
    close_sampler();
}

static void version_1(void **state)
{
    (void)state;
    tree_begin("v1");
    tree_put("/proc/self/cgroup", "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n");
    tree_put("/proc/self/mountinfo",
             "31 30 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
             "32 30 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    tree_put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
    tree_put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    tree_put("/sys/fs/cgroup/cpu,cpuacct/cpu.stat",
             "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
    tree_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    tree_put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "800\n");
    tree_put("/sys/fs/cgroup/memory/memory.stat",
             "inactive_file 1\ntotal_inactive_file 200\ntotal_active_file 100\n");
    open_sampler();
    tree_put("/sys/fs/cgroup/cpu,cpuacct/cpu.stat",
             "nr_periods 10\nnr_throttled 4\nthrottled_time 500000000\n");
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    NEAR(VALUE(GROUP_QUOTA_CORES), 1.5);
    NEAR(VALUE(GROUP_THROTTLED), 0.4);
    NEAR(VALUE(GROUP_THROTTLED_S), 0.5);
    NEAR(VALUE(GROUP_LIMIT_BYTES), INFINITY);
    NEAR(VALUE(GROUP_USED_BYTES), 500);
    tg_sampler_take(sampler, 12 * SECOND_NS, &sample); /* no period came to its end */
    NEAR(VALUE(GROUP_THROTTLED), 0);
    close_sampler();
}

static void both_versions(void **state)
{
    (void)state;
    tree_begin("hybrid");
    tree_put("/proc/self/cgroup", "5:cpu,cpuacct:/u/s\n0::/u/s\n");
    tree_put("/proc/self/mountinfo",
             "30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
             "31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
    tree_put("/sys/fs/cgroup/unified/cgroup.controllers", "\n");
    tree_put("/sys/fs/cgroup/cpu,cpuacct/u/cpu.cfs_quota_us", "-1\n");
    open_sampler();
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    NEAR(VALUE(GROUP_QUOTA_CORES), INFINITY);
    UNKNOWN(VALUE(GROUP_LIMIT_BYTES)); /* nobody has the memory controller here: not "none" */
    UNKNOWN(VALUE(GROUP_USED_BYTES));
    close_sampler();
}

static void what_is_absent_is_unknown(void **state)
{
    (void)state;
    tree_begin("none");
    open_sampler();
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    for (int m = TG_SYSTEM_GROUP_LIMIT_BYTES; m <= TG_SYSTEM_GROUP_THROTTLED_S; m++)
        UNKNOWN(sample.values[m]);
    close_sampler();
    UNKNOWN(tg_group_limit_parse("garbage"));
    UNKNOWN(tg_group_quota_parse("200000 0"));
    NEAR(tg_group_quota_parse("max 100000"), INFINITY);
    UNKNOWN(tg_group_throttle_parse("nr_periods 5\n", 2).seconds);
    UNKNOWN(
        tg_group_throttle_parse("throttled_usec 5\n", 1).seconds); /* the other version's name */
    UNKNOWN(tg_group_file_bytes("inactive_file 5\nactive_file 5\n", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_2),
        cmocka_unit_test(version_1),
        cmocka_unit_test(both_versions),
        cmocka_unit_test(what_is_absent_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
