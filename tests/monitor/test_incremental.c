/* Rows of the withdrawn monitor: read, refused with file and line, and written. */
#include "monitor/tree.h"

#include "monitor/incremental.h"
#include "run/system_line.h"

#include <stdlib.h>

#define ROW(name, dimension, value, node, time)                                                    \
    "{\"Type\":\"x\",\"Name\":\"" name "\",\"Dimension\":\"" dimension "\",\"Value\":" value       \
    ",\"NodeId\":\"" node "\",\"Timestamp\":" time "}\n"
#define CPU(n, value, time) ROW("cpu" #n, "CPUUtilization", value, "algo-1", time)
#define MEMORY                                                                                     \
    "{\"Type\":\"memory\",\"Dimension\":\"MemoryUsedPercent\",\"Value\":50,\"NodeId\":\"algo-1\"," \
    "\"Timestamp\":1591748169.5}\n"
#define HOUR "/old/system/incremental/2020061000/"

static char old[4300], made[4300];

static void begin(const char *name)
{
    tree_begin(name);
    snprintf(old, sizeof old, "%s/old", tree_root);
    snprintf(made, sizeof made, "%s/made", tree_root);
}

static tg_system_host read_node(const char *node)
{
    char path[8800];
    tg_system_host host;
    size_t bad;
    snprintf(path, sizeof path, "%s/system/%s.jsonl", made, node);
    assert_ok(tg_system_read(path, 100, &host, &bad));
    assert_int_equal(bad, 0);
    return host;
}

static void rows_become_samples(void **state)
{
    tg_incremental_count count;
    (void)state;
    begin("rows");
    tree_put(HOUR "1591748160.algo-1.json",
             CPU(1, "20", "1591748169.0") CPU(0, "10.4", "1591748169.0")
                 ROW("gpu0", "GPUUtilization", "80", "algo-1", "1591748169.01")
                     ROW("gpu0", "GPUMemoryUtilization", "4294967295", "algo-1", "1591748169.01")
                         ROW("eth0", "Algorithm", "5", "algo-1", "1591748169.0") MEMORY
             "{\"Type\":\"i/o\",\"Dimension\":\"I/OWaitPercentage\",\"Value\":7,\"NodeId\":"
             "\"algo-1\",\"Timestamp\":1591748169.0}\n");
    tree_put("/old/system/incremental/1591748220.algo-1.json", /* without a folder of its hour */
             CPU(0, "50", "1591748169.5") CPU(0, "60", "1591748170.0") "{\"Type\":\"cpu\",\"Na");
    tree_put(HOUR "1591748160.algo-2.json",
             ROW("cpu0", "CPUUtilization", "-1", "algo-2", "1591748169.0"));
    assert_ok(tg_system_import(old, made, &count));
    assert_int_equal(count.nodes, 2);
    assert_int_equal(count.samples, 4);
    tg_system_host host = read_node("algo-1");
    assert_int_equal(host.core_count, 2);
    assert_int_equal(host.device_count, 1);
    assert_int_equal(host.sample_count, 3);
    NEAR(host.samples[0].seconds, 0.5);
    NEAR(tg_system_core_busy(&host.samples[0].cores[0]), 0.10f); /* whole percents */
    NEAR(tg_system_core_busy(&host.samples[0].cores[1]), 0.20f);
    NEAR(host.samples[0].cores[1].iowait, 0.07f);
    NEAR(host.samples[0].devices[0].utilisation, 0.80f);
    UNKNOWN(host.samples[0].devices[0].memory_utilisation); /* no percent */
    UNKNOWN(host.samples[1].cores[1].user);
    NEAR(host.samples[2].time, 1591748170.0);
    tg_system_host_done(&host);
    host = read_node("algo-2");
    UNKNOWN(host.samples[0].cores[0].user);
    tg_system_host_done(&host);
    assert_error(tg_system_import(old, made, &count), TG_ERROR_USAGE, "already");
}

static void bad_lines_are_told_by_file_and_number(void **state)
{
    static const char *const BAD[] = {"nonsense\n", "{\"Type\":\"cpu\"}\n", "[1]\n",
                                      "{\"Type\":\"cpu\",\"Dimension\":\"CPUUtilization\"\n",
                                      ROW("cpu0", "CPUUtilization", "\"much\"", "a", "1")};
    tg_incremental_count count;
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        char name[16], text[1024];
        snprintf(name, sizeof name, "bad%zu", i);
        begin(name);
        snprintf(text, sizeof text, "%s%s%s", CPU(0, "1", "5.0"), BAD[i], CPU(0, "1", "6.0"));
        tree_put(HOUR "60.algo-1.json", text);
        assert_error(tg_system_import(old, made, &count), TG_ERROR_INPUT, "60.algo-1.json, line 2");
    }
    begin("nothing");
    tree_put("/old/x.txt", "");
    assert_error(tg_system_import(old, made, &count), TG_ERROR_INPUT, "no rows");
    assert_error(tg_system_import("/nowhere", made, &count), TG_ERROR_INPUT, "/nowhere");
    assert_error(tg_system_export("/nowhere", old, &count), TG_ERROR_INPUT, "/nowhere");
}

static void what_is_unknown_is_no_row(void **state)
{
    tg_incremental_count count;
    tg_system_writer writer;
    tg_system_sample sample;
    char folder[8400], path[8400];
    char *bytes;
    size_t length;
    (void)state;
    begin("export");
    snprintf(folder, sizeof folder, "%s/system", made);
    assert_ok(tg_folder_make(folder));
    assert_ok(tg_system_open(folder, "a b", 2, 1, 0, &writer));
    assert_ok(tg_system_sample_make(2, 1, &sample));
    sample.time = 1591748169.25;
    sample.seconds = 0.5;
    sample.cores[0] = (tg_system_core){0.25f, 0.25f, 0.5f, 0};
    sample.devices[0].utilisation = 0.5f;
    sample.values[TG_SYSTEM_MEMORY_TOTAL_BYTES] = 200;
    sample.values[TG_SYSTEM_MEMORY_USED_BYTES] = 50;
    assert_ok(tg_system_write(&writer, &sample));
    tg_system_close(&writer);
    tg_system_sample_done(&sample);
    assert_ok(tg_system_export(made, old, &count));
    assert_int_equal(count.rows, 4);
    snprintf(path, sizeof path, "%s" HOUR "1591748160.a_b.json", tree_root);
    assert_ok(tg_file_read(path, 4096, &bytes, &length));
    assert_string_equal(
        bytes,
        "{\"Type\":\"cpu\",\"Name\":\"cpu0\",\"Dimension\":\"CPUUtilization\",\"Value\":50,"
        "\"NodeId\":\"a b\",\"Timestamp\":1591748169.25}\n"
        "{\"Type\":\"gpu\",\"Name\":\"gpu0\",\"Dimension\":\"GPUUtilization\",\"Value\":50,"
        "\"NodeId\":\"a b\",\"Timestamp\":1591748169.25}\n"
        "{\"Type\":\"i/o\",\"Dimension\":\"I/OWaitPercentage\",\"Value\":50,\"NodeId\":\"a "
        "b\",\"Timestamp\":1591748169.25}\n"
        "{\"Type\":\"memory\",\"Dimension\":\"MemoryUsedPercent\",\"Value\":25,\"NodeId\":\"a "
        "b\",\"Timestamp\":1591748169.25}\n");
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_samples),
        cmocka_unit_test(bad_lines_are_told_by_file_and_number),
        cmocka_unit_test(what_is_unknown_is_no_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
