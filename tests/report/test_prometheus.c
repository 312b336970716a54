/* Prometheus' text format: HELP and TYPE once before the samples of a name, which stand together; labels escaped; nothing for
 * what is not known; accelerators by Triton's names; the file is replaced whole. */
#include "support/check.h"
#include "support/run_files.h"

#include "os/file.h"
#include "report/prometheus.h"
#include "run/system_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BEGIN 1772000000.0

static tg_live live;
static tg_text text;

static void print_run(const char *run)
{
    tg_text_clear(&text);
    assert_ok(tg_live_open(run, NULL, &live));
    assert_ok(tg_live_look(&live, BEGIN + 10, NULL));
    tg_prometheus_print(&live, &text);
}

static void assert_has(const char *part)
{
    if (!strstr(tg_text_string(&text), part))
        fail_msg("no \"%s\" in:\n%s", part, tg_text_string(&text));
}

static void assert_lacks(const char *part)
{
    if (strstr(tg_text_string(&text), part))
        fail_msg("\"%s\" in:\n%s", part, tg_text_string(&text));
}

/* A name's samples follow its HELP and TYPE, which come once. */
static void check_families(void)
{
    char name[128] = "", seen[8192] = "", word[130];
    for (const char *at = tg_text_string(&text); *at; at += strcspn(at, "\n") + 1) {
        if (strncmp(at, "# HELP ", 7) == 0) {
            const size_t n = strcspn(at + 7, " ");
            snprintf(name, sizeof name, "%.*s", (int)n, at + 7);
            snprintf(word, sizeof word, " %s ", name);
            assert_null(strstr(seen, word));
            strcat(seen, word);
        } else if (strncmp(at, "# TYPE ", 7) == 0) {
            assert_int_equal(strncmp(at + 7, name, strlen(name)), 0);
        } else {
            assert_int_equal(strncmp(at, name, strlen(name)), 0);
            assert_int_equal(at[strlen(name)], '{');
        }
    }
}

static void a_run_is_told(void **state)
{
    (void)state;
    char *run = tg_run_files_make("told");
    tg_run_files_write(run, "run.json",
                       "{\"command\":\"distill\",\"version\":\"1\",\"machine\":{\"host\":"
                       "\"a\\\"b\\\\c\\nd\"},\"ranks\":1,"
                       "\"plan\":{\"total_steps\":40},\"end\":\"then\",\"exit\":4}");
    tg_run_files_steps(run, 1, 10, BEGIN, 0.5);
    tg_run_files_append(run, "metrics.jsonl", "{\"epoch\":1,\"val_top1\":61.25}\n");
    tg_run_files_write(run, "findings.json",
                       "{\"findings\":[{\"rule\":\"A\",\"severity\":\"note\",\"title\":\"x\"},"
                       "{\"rule\":\"A\",\"severity\":\"note\",\"title\":\"y\"}]}");
    for (int h = 0; h < 2; h++) {
        tg_system_sample s = tg_run_files_sample(BEGIN + 1, 2, 0.5, 5);
        s.values[TG_SYSTEM_GROUP_LIMIT_BYTES] = INFINITY;
        s.values[TG_SYSTEM_DISK_BUSY] = 0.25;
        s.cores[1].user = NAN;
        tg_run_files_add_sample(run, h ? "b" : "a", 2, &s);
    }
    print_run(run);
    check_families();
    assert_has(",command=\"distill\",version=\"1\",host=\"a\\\"b\\\\c\\nd\"} 1\n");
    static const char *const SAMPLES[] = {"tagine_run_running{", "tagine_run_exit_code{",
                                          "tagine_step{", "tagine_validation_top1_ratio{"};
    static const char *const VALUES[] = {" 0\n", " 4\n", " 10\n", " 0.6125\n"};
    for (int i = 0; i < 4; i++) {
        assert_has(SAMPLES[i]);
        const char *at = strstr(tg_text_string(&text), SAMPLES[i]);
        assert_int_equal(strncmp(at + strcspn(at, " "), VALUES[i], strlen(VALUES[i])), 0);
    }
    assert_has("host=\"a\",core=\"0\"} 0.5\n");
    assert_lacks("core=\"1\"");
    assert_has("tagine_host_group_limit_bytes{");
    assert_has(" +Inf\n");
    assert_has("tagine_host_disk_busy_ratio{");
    assert_has("rule=\"A\",severity=\"note\"} 1\n");
    assert_lacks("nan");
    assert_lacks("nv_gpu");
    assert_lacks("tagine_validation_loss");
    assert_lacks("tagine_time_left");
    tg_live_close(&live);
    free(run);
}

static void accelerators_have_tritons_names(void **state)
{
    (void)state;
    char *run = tg_run_files_make("gpus"), *folder = tg_path_join(run, "system");
    tg_system_writer writer;
    tg_system_sample s;
    tg_run_files_write(run, "run.json", "{}");
    assert_ok(tg_system_sample_make(1, 2, &s));
    s.time = BEGIN;
    s.seconds = 0.5;
    s.devices[0] = (tg_system_device){0.5f, 0.25f, 1e9, 8e9, 70};
    s.devices[1].power_w = 30;
    assert_ok(tg_system_open(folder, "a", 1, 2, 1 << 20, &writer));
    assert_ok(tg_system_write(&writer, &s));
    tg_system_close(&writer);
    tg_system_sample_done(&s);
    print_run(run);
    check_families();
    assert_has("host=\"a\",gpu=\"0\"} 0.5\n");
    assert_has("nv_gpu_memory_total_bytes{");
    assert_has("gpu=\"1\"} 30\n");
    assert_lacks("gpu=\"1\"} 0");
    tg_live_close(&live);
    free(folder);
    free(run);
}

static void the_file_is_replaced_whole(void **state)
{
    (void)state;
    char *run = tg_run_files_make("file"), *path = tg_path_join(run, "a.prom"), *bytes;
    struct stat st;
    size_t length;
    tg_run_files_write(run, "run.json", "{}");
    tg_run_files_write(run, "a.prom", "old");
    print_run(run);
    assert_ok(tg_prometheus_write(&live, path));
    assert_ok(tg_file_read(path, 1 << 20, &bytes, &length));
    assert_string_equal(bytes, tg_text_string(&text));
    char *aside = tg_path_join(run, "a.prom.new");
    assert_int_not_equal(stat(aside, &st), 0);
    assert_error(tg_prometheus_write(&live, "/nowhere/a.prom"), TG_ERROR_MACHINE,
                 "/nowhere/a.prom");
    tg_live_close(&live);
    tg_text_done(&text);
    free(bytes);
    free(aside);
    free(path);
    free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_told),
        cmocka_unit_test(accelerators_have_tritons_names),
        cmocka_unit_test(the_file_is_replaced_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
