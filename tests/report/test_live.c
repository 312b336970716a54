/* A run followed by its files: what comes in pieces, a resumed run, machines, findings, time left, the last minute, who is
 * slow, whether it lives. */
#include "support/check.h"
#include "support/run_files.h"

#include "report/live.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGIN 1772000000.0

static tg_live live;

static void look(double now, bool wanted_news)
{
    bool news;
    assert_ok(tg_live_look(&live, now, &news));
    assert_int_equal(news, wanted_news);
}

static void what_comes_is_read_once(void **state)
{
    (void)state;
    char *run = tg_run_files_make("once");
    tg_run_files_write(run, "run.json", "{\"command\":\"train\",\"plan\":{\"total_steps\":40}}");
    tg_run_files_steps(run, 1, 10, BEGIN, 0.5);
    assert_ok(tg_live_open(run, NULL, &live));
    look(BEGIN + 6, true);
    assert_int_equal(live.step_count, 10);
    assert_string_equal(tg_live_info_text(&live, "command"), "train");
    look(BEGIN + 6, false);
    tg_run_files_append(run, "metrics.jsonl", "{\"step\":11,\"epoch\":1,\"t_st");
    look(BEGIN + 7, true);
    assert_int_equal(tg_live_last_step(&live)->step, 10);
    tg_run_files_append(run, "metrics.jsonl",
                        "ep\":0.5}\n{\"epoch\":1,\"val_top1\":50}\n{nonsense\n");
    look(BEGIN + 7, true);
    assert_int_equal(tg_live_last_step(&live)->step, 11);
    assert_int_equal(live.eval_count, 1);
    assert_true(live.best.val_top1 == 50);
    tg_live_close(&live);
    free(run);
}

static void a_resumed_run_forgets_what_it_dropped(void **state)
{
    (void)state;
    char *run = tg_run_files_make("resumed");
    tg_metrics metrics;
    char path[4096];
    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    tg_run_files_steps(run, 1, 10, BEGIN, 0.5);
    assert_ok(tg_live_open(run, NULL, &live));
    look(BEGIN + 6, true);
    assert_ok(tg_metrics_open(path, true, 4, 0, &metrics));
    look(BEGIN + 60, true);
    assert_int_equal(live.step_count, 4);
    assert_int_equal(live.loss.count, 4);
    tg_metrics_close(&metrics);
    tg_live_close(&live);
    free(run);
}

static void only_the_last_steps_are_kept(void **state)
{
    (void)state;
    char *run = tg_run_files_make("long");
    tg_run_files_steps(run, 1, TG_LIVE_STEPS + 3, BEGIN, 0.01);
    assert_ok(tg_live_open(run, NULL, &live));
    look(BEGIN + 6, true);
    assert_int_equal(tg_live_last_step(&live)->step, TG_LIVE_STEPS + 3);
    assert_int_equal(tg_live_step_back(&live, TG_LIVE_STEPS - 1)->step, 4);
    assert_null(tg_live_step_back(&live, TG_LIVE_STEPS));
    assert_in_range(live.loss.count, TG_SERIES_VALUES / 2, TG_SERIES_VALUES);
    assert_true(live.loss.values[0] > 1.5); /* the curve still begins where the run did */
    tg_live_close(&live);
    free(run);
}

static void samples_of_two_seconds_are_one(void **state)
{
    (void)state;
    char *run = tg_run_files_make("machines");
    tg_run_files_write(run, "run.json", "{}");
    for (int i = 0; i < 8; i++) {
        tg_system_sample sample =
            tg_run_files_sample(BEGIN + 0.5 * i, 2, i < 4 ? 0 : 0.5 + 0.5 * (i % 2), i);
        tg_run_files_add_sample(run, "b", 2, &sample);
    }
    assert_ok(tg_live_open(run, NULL, &live));
    look(BEGIN + 4, true);
    assert_int_equal(live.host_count, 1);
    assert_string_equal(live.hosts[0].head.host, "b");
    assert_float_equal(live.hosts[0].sample.cores[1].user, 0.75, 1e-6);
    assert_float_equal(live.hosts[0].sample.values[TG_SYSTEM_RUNNING], 5.5, 1e-9);
    tg_system_sample late = tg_run_files_sample(BEGIN + 5, 4, 1, 1);
    tg_run_files_add_sample(run, "a", 4, &late);
    look(BEGIN + 5, true); /* a machine that came later stands by its name */
    assert_int_equal(live.host_count, 2);
    assert_string_equal(live.hosts[0].head.host, "a");
    assert_int_equal(live.hosts[0].head.cores, 4);
    tg_live_close(&live);
    free(run);
}

static void the_last_minute_adds_up(void **state)
{
    (void)state;
    char *run = tg_run_files_make("minute");
    tg_live_ledger ledger;
    tg_run_files_write(run, "run.json", "{\"end\":\"then\",\"exit\":0}");
    tg_run_files_append(
        run, "spans.jsonl",
        "{\"attempt\":1,\"what\":\"attempt\",\"time\":1771999990,\"seconds\":null,\"step\":0}\n"
        "{\"attempt\":1,\"what\":\"start\",\"time\":1771999990,\"seconds\":10,\"step\":0}\n"
        "{\"attempt\":1,\"what\":\"evaluation\",\"time\":1772000005,\"seconds\":2,\"step\":10}\n");
    tg_run_files_steps(run, 1, 10, BEGIN, 0.5);
    assert_ok(tg_live_open(run, NULL, &live));
    look(BEGIN + 7, true);
    tg_live_get_ledger(&live, 60, &ledger);
    assert_float_equal(ledger.seconds, 17, 1e-6);
    assert_float_equal(ledger.start, 10.0 / 17, 1e-6);
    assert_float_equal(ledger.evaluation, 2.0 / 17, 1e-6);
    assert_float_equal(ledger.phases[TG_LIVE_BACKWARD], 3.0 / 17, 1e-6);
    assert_float_equal(ledger.rest, 0, 1e-6);
    assert_float_equal(ledger.images_per_s, 320.0 / 17, 1e-6);
    tg_live_get_ledger(&live, 4, &ledger); /* two seconds of evaluation, and of steps */
    assert_float_equal(ledger.evaluation, 0.5, 1e-6);
    assert_float_equal(ledger.phases[TG_LIVE_FORWARD], 0.15, 1e-6);
    assert_int_equal(ledger.steps, 4);
    tg_live_close(&live);
    free(run);
}

static void time_left_is_of_the_pace_so_far(void **state)
{
    (void)state;
    char *run = tg_run_files_make("left");
    tg_run_files_write(run, "run.json", "{\"plan\":{\"total_steps\":40}}");
    tg_run_files_steps(run, 1, 5, BEGIN, 0.5);
    tg_run_files_steps(run, 6, 10, BEGIN + 2.5 + 5, 0.5); /* five seconds went to something else */
    assert_ok(tg_live_open(run, NULL, &live));
    look(BEGIN + 10, true);
    assert_float_equal(tg_live_seconds_left(&live), 30, 1e-6);
    tg_live_close(&live);
    free(run);
}

static void the_slowest_rank_is_named(void **state)
{
    (void)state;
    char *run = tg_run_files_make("ranks");
    tg_live_phase phase;
    double share;
    tg_run_files_write(run, "run.json", "{}");
    assert_ok(tg_live_open(run, NULL, &live));
    assert_int_equal(tg_live_slowest(&live, &phase, &share), -1);
    for (int step = 1; step <= 4; step++)
        tg_run_files_append(
            run, "ranks.jsonl",
            "{\"step\":1,\"ranks\":3,\"images\":[1,1,1],\"t_step\":[1,1,1],\"t_data\":[0.1,0.4,0.1]"
            ","
            "\"t_teacher\":[0,0,0],\"t_forward\":[0.2,0.2,0.2],\"t_backward\":[0.3,0.3,0.3],"
            "\"t_reduce\":[0.3,0,0.3],\"t_optimizer\":[0.1,0.1,0.1],\"t_other\":[0,0,0],"
            "\"rss_bytes\":[1,1,1]}\n");
    look(BEGIN, true);
    assert_int_equal(tg_live_slowest(&live, &phase, &share), 1);
    assert_int_equal(phase, TG_LIVE_DATA);
    assert_float_equal(share, 0.3, 1e-9);
    tg_live_close(&live);
    free(run);
}

static void findings_and_warnings_are_shown(void **state)
{
    (void)state;
    char *run = tg_run_files_make("findings");
    tg_run_files_write(
        run, "findings.json",
        "{\"findings\":[{\"rule\":\"A\",\"severity\":\"serious\",\"title\":\"x\"},7,"
        "{\"rule\":\"B\",\"explained_by\":\"A\"},{\"rule\":\"C\",\"explained_by\":null}]}");
    tg_run_files_append(run, "log/rank-0.log",
                        "2026-01-01T00:00:00.000Z info a\n"
                        "2026-01-01T00:00:01.000Z warning b\n"
                        "2026-01-01T00:00:02.000Z error c\n");
    tg_run_files_write(run, "run.json", "{}");
    assert_ok(tg_live_open(run, NULL, &live));
    look(BEGIN, true);
    assert_int_equal(live.finding_count, 2);
    assert_string_equal(live.findings[0].rule, "A");
    assert_string_equal(live.findings[1].rule, "C");
    assert_int_equal(live.warning_count, 2);
    assert_string_equal(live.warnings[0], "2026-01-01T00:00:01.000Z warning b");
    tg_run_files_write(run, "findings.json", "[");
    look(BEGIN, true);
    assert_int_equal(live.finding_count, 0);
    tg_live_close(&live);
    free(run);
}

static void a_run_lives_while_its_lock_is_held(void **state)
{
    (void)state;
    char *run = tg_run_files_make("lives"), path[4096];
    struct stat st;
    tg_run_files_write(run, "run.json", "{\"end\":null}");
    tg_run_files_write(run, "lock", "1\n");
    tg_run_files_steps(run, 1, 1, BEGIN, 0.5);
    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    assert_int_equal(stat(path, &st), 0);
    const double now = (double)st.st_mtim.tv_sec;
    assert_ok(tg_live_open(run, NULL, &live));
    look(now + 1, true); /* no lock that is seen from here, but a fresh record */
    assert_int_equal(tg_live_get_state(&live), TG_LIVE_RUNS);
    look(now + 3600, false);
    assert_int_equal(tg_live_get_state(&live), TG_LIVE_SILENT);
    snprintf(path, sizeof path, "%s/lock", run);
    const int fd = open(path, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    if (access("/proc/locks", R_OK) == 0)
        assert_int_equal(tg_live_get_state(&live), TG_LIVE_RUNS);
    close(fd);
    tg_run_files_write(run, "run.json", "{\"end\":\"2026\",\"exit\":0}");
    look(now + 3600, true);
    assert_int_equal(tg_live_get_state(&live), TG_LIVE_ENDED);
    tg_live_close(&live);
    free(run);
}

static void what_is_no_run_is_refused(void **state)
{
    (void)state;
    assert_error(tg_live_open("/nowhere", NULL, &live), TG_ERROR_INPUT, "/nowhere");
    assert_error(tg_live_open("/proc/self", NULL, &live), TG_ERROR_INPUT, "no run directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_is_read_once),
        cmocka_unit_test(a_resumed_run_forgets_what_it_dropped),
        cmocka_unit_test(only_the_last_steps_are_kept),
        cmocka_unit_test(samples_of_two_seconds_are_one),
        cmocka_unit_test(the_last_minute_adds_up),
        cmocka_unit_test(time_left_is_of_the_pace_so_far),
        cmocka_unit_test(the_slowest_rank_is_named),
        cmocka_unit_test(findings_and_warnings_are_shown),
        cmocka_unit_test(a_run_lives_while_its_lock_is_held),
        cmocka_unit_test(what_is_no_run_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
