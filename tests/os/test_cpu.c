/* The share of cores and memory, read from copies of v1, v2 and hybrid trees. */
#include "support/check.h"

#include "os/clock.h"
#include "os/cpu.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char root[4200];

static void put(const char *path, const char *text)
{
    char full[8500];
    snprintf(full, sizeof full, "%s%s", root, path);
    *strrchr(full, '/') = '\0';
    assert_ok(tg_folder_make(full));
    snprintf(full, sizeof full, "%s%s", root, path);
    assert_ok(tg_file_write(full, text, strlen(text)));
}

static void fresh_root(const char *name)
{
    snprintf(root, sizeof root, "%s/%s", tg_test_temp_dir(), name);
}

#define V2_MOUNT "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define OTHER_MOUNT "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"

static tg_cpu_share share(int affinity, int scheduler)
{
    tg_cpu_share out;
    tg_cpu_share_read(root, affinity, scheduler, &out);
    return out;
}

static void v2_takes_the_least_of_the_path(void **state)
{
    (void)state;
    fresh_root("v2");
    put("/proc/self/cgroup", "0::/slice/job/step\n");
    put("/proc/self/mountinfo", OTHER_MOUNT V2_MOUNT);
    put("/sys/fs/cgroup/slice/job/step/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/slice/job/cpu.max", "250000 100000\n");
    put("/sys/fs/cgroup/slice/cpu.max", "800000 100000\n");
    put("/sys/fs/cgroup/slice/job/step/memory.max", "max\n");
    put("/sys/fs/cgroup/slice/memory.max", "1073741824\n");
    put("/sys/fs/cgroup/slice/memory.high", "536870912\n");
    tg_cpu_share s = share(80, 0);
    assert_int_equal(s.cpus, 2);
    assert_true(s.quota == 2.5);
    assert_int_equal(s.cgroup_version, 2);
    assert_int_equal(s.memory_limit_bytes, 536870912);
    assert_int_equal(share(1, 0).cpus, 1);
    assert_int_equal(share(80, 1).cpus, 1);
    put("/sys/fs/cgroup/slice/job/step/cpu.max", "20000 100000\n");
    assert_int_equal(share(80, 0).cpus, 1); /* a fifth of a core is still one thread */
}

static void v1_container_mounts_its_own_group(void **state)
{
    (void)state;
    fresh_root("v1");
    put("/proc/self/cgroup", "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n2:cpuset:/\n");
    put("/proc/self/mountinfo",
        "31 30 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
        "32 30 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    tg_cpu_share s = share(16, 0);
    assert_int_equal(s.cpus, 4);
    assert_int_equal(s.cgroup_version, 1);
    assert_int_equal(s.memory_limit_bytes, 2147483648u);
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    s = share(16, 0);
    assert_int_equal(s.cpus, 16);
    assert_int_equal(s.memory_limit_bytes, 0);
}

static void hybrid_finds_the_limits_in_v1(void **state)
{
    (void)state;
    fresh_root("hybrid");
    put("/proc/self/cgroup", "5:cpu,cpuacct:/u/s\n0::/u/s\n");
    put("/proc/self/mountinfo",
        "30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
    put("/sys/fs/cgroup/cpu,cpuacct/u/cpu.cfs_quota_us", "150000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/u/cpu.cfs_period_us", "50000\n");
    assert_int_equal(share(16, 0).cpus, 3);
}

static void absent_and_broken_files_are_no_limit(void **state)
{
    (void)state;
    fresh_root("none");
    assert_int_equal(share(6, 0).cpus, 6);
    assert_int_equal(share(6, 0).cgroup_version, 0);
    put("/proc/self/cgroup", "0::/../../x\nnonsense\n");
    put("/proc/self/mountinfo", "broken\n" V2_MOUNT);
    put("/sys/fs/cgroup/cpu.max", "garbage\n");
    assert_int_equal(share(6, 0).cpus, 6);
    put("/sys/fs/cgroup/cpu.max", "200000 0\n");
    assert_int_equal(share(6, 0).cpus, 6);
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_int_equal(share(6, 0).cpus, 2); /* the mount itself still counts */
}

static void real_machine(void **state)
{
    (void)state;
    tg_cpu_share s;
    tg_cpu_share_read("", 0, 0, &s);
    assert_true(s.cpus >= 1 && s.cpus <= s.affinity);
    char model[64] = "";
    tg_cpu_model("", model, sizeof model);
    assert_true(model[0]);
    uint64_t rss = tg_memory_rss_bytes(); /* before the peak: both grow */
    assert_true(rss > 0 && tg_memory_peak_rss_bytes() >= rss);
    assert_true(tg_memory_total_bytes() >= tg_memory_available_bytes());
}

static void clocks(void **state)
{
    (void)state;
    char iso[TG_CLOCK_ISO_BYTES], stamp[TG_CLOCK_ISO_BYTES];
    int64_t before = tg_clock_ns();
    tg_clock_iso(iso);
    tg_clock_stamp(stamp);
    assert_int_equal(strlen(iso), 24);
    assert_true(iso[10] == 'T' && iso[23] == 'Z');
    assert_int_equal(strlen(stamp), 15);
    assert_true(tg_clock_ns() >= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v2_takes_the_least_of_the_path),
        cmocka_unit_test(v1_container_mounts_its_own_group),
        cmocka_unit_test(hybrid_finds_the_limits_in_v1),
        cmocka_unit_test(absent_and_broken_files_are_no_limit),
        cmocka_unit_test(real_machine),
        cmocka_unit_test(clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
