/* Disks, network, pressure and frequencies of copies of /proc and /sys. */
#include "monitor/tree.h"

#include "monitor/counters.h"
#include "monitor/frequency.h"
#include "monitor/pressure.h"
#include "monitor/sampler.h"
#include "run/system_line.h"

#define SECOND_NS INT64_C(1000000000)
#define VALUE(metric) sample.values[TG_SYSTEM_##metric]

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

static void put_disks(int sda, int nvme, bool more)
{
    char text[1024];
    snprintf(text, sizeof text,
             "   7 0 loop0 9 0 %d 0 9 0 %d 0 0 999 0\n"
             "   8 0 sda 1 0 %d 5 1 0 %d 5 0 %d 10 0 0 0 0\n"
             "   8 1 sda1 1 0 %d 5 1 0 %d 5 0 900 10\n"
             " 253 0 dm-0 1 0 %d 5 1 0 %d 5 0 900 10\n"
             " 259 0 nvme0n1 1 0 %d 5 1 0 %d 5 0 %d 10\n%s",
             sda, sda, sda, 2 * sda, sda, sda, 2 * sda, sda, 2 * sda, nvme, 0, nvme,
             more ? "   8 16 sdb 1 0 100000 5 1 0 5 5 0 5 10\nbroken line\n" : "");
    tree_put("/proc/diskstats", text);
}

static void whole_disks_count_once(void **state)
{
    (void)state;
    tree_begin("disks");
    put_disks(1000, 1000, false);
    open_sampler();
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    UNKNOWN(VALUE(DISK_READ_BYTES)); /* which disks are whole is not to be seen */
    close_sampler();
    tree_put("/sys/block/sda/size", "1\n");
    tree_put("/sys/block/dm-0/slaves/sda/x", "1\n");
    tree_put("/sys/block/nvme0n1/size", "1\n");
    tree_put("/sys/block/loop0/size", "1\n");
    tree_put("/sys/block/sdb/size", "1\n");
    open_sampler();
    put_disks(2000, 1500, true);
    tg_sampler_take(sampler, 12 * SECOND_NS, &sample);
    NEAR(VALUE(DISK_READ_BYTES),
         (1000 + 500) * 512 / 2.0); /* a disk that comes counts from now on */
    NEAR(VALUE(DISK_WRITTEN_BYTES), 2000 * 512 / 2.0);
    NEAR(VALUE(DISK_BUSY), 0.5);
    put_disks(1000, 1500, true); /* one was taken out and put in again */
    tg_sampler_take(sampler, 13 * SECOND_NS, &sample);
    NEAR(VALUE(DISK_READ_BYTES), 0);
    NEAR(VALUE(DISK_WRITTEN_BYTES), 0);
    close_sampler();
}

static void put_network(int bytes)
{
    char text[1024];
    snprintf(text, sizeof text,
             "Inter-|   Receive        |  Transmit\n face |bytes packets|bytes\n"
             "    lo: %d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n"
             "  eth0: %d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n"
             "docker0:%d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n",
             bytes, bytes, bytes, 2 * bytes, bytes, bytes);
    tree_put("/proc/net/dev", text);
}

static void network_is_what_leaves_the_machine(void **state)
{
    (void)state;
    tree_begin("net");
    put_network(0);
    open_sampler();
    put_network(1000);
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    NEAR(VALUE(NET_RECEIVED_BYTES), 2000); /* in a container no interface is a device */
    close_sampler();
    tree_put("/sys/class/net/eth0/device/vendor", "1\n");
    open_sampler();
    put_network(3000);
    tg_sampler_take(sampler, 12 * SECOND_NS, &sample);
    NEAR(VALUE(NET_RECEIVED_BYTES), 1000);
    NEAR(VALUE(NET_SENT_BYTES), 2000);
    UNKNOWN(VALUE(DISK_BUSY));
    close_sampler();
}

static void pressure_is_a_share(void **state)
{
    (void)state;
    tree_begin("pressure");
    tree_put("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n");
    tree_put("/proc/pressure/io", "full avg10=0.00 total=5\n");
    open_sampler();
    tree_put("/proc/pressure/cpu",
             "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 total=5\n");
    tg_sampler_take(sampler, 12 * SECOND_NS, &sample);
    NEAR(VALUE(PRESSURE_CPU), 0.25);
    UNKNOWN(VALUE(PRESSURE_MEMORY));
    UNKNOWN(VALUE(PRESSURE_IO));
    close_sampler();
    UNKNOWN(tg_pressure_parse("some avg10=0.00\nfull total=7\n"));
}

static void frequency_of_cpufreq_or_cpuinfo(void **state)
{
    (void)state;
    tree_begin("frequency");
    tree_put("/proc/stat", "cpu0 1 0 0 0\ncpu1 1 0 0 0\n");
    tree_put("/proc/cpuinfo", "model name : x\ncpu MHz\t\t: 2000.5\n\ncpu MHz\t\t: 1000.5\n");
    open_sampler();
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    NEAR(VALUE(FREQUENCY_MHZ), 1500);
    close_sampler();
    tree_put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n");
    open_sampler();
    tg_sampler_take(sampler, 11 * SECOND_NS, &sample);
    NEAR(VALUE(FREQUENCY_MHZ), 3000);
    close_sampler();
    UNKNOWN(tg_frequency_parse("processor : 0\nBogoMIPS : 50\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_disks_count_once),
        cmocka_unit_test(network_is_what_leaves_the_machine),
        cmocka_unit_test(pressure_is_a_share),
        cmocka_unit_test(frequency_of_cpufreq_or_cpuinfo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
