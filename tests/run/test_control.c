/* control.json: written by several, followed by a job, and never in its way. */
#include "support/check.h"

#include "os/file.h"
#include "run/control.h"

#include <stdio.h>
#include <string.h>

static void ask_interval(void *user, tg_control *control)
{
    control->monitor_interval_ms = *(const int64_t *)user;
}

static void ask_trace(void *user, tg_control *control)
{
    (void)user;
    control->trace_steps = 3;
    control->trace_request++;
}

static void wishes_add_up_and_are_seen_once(void **state)
{
    const char *run = tg_test_temp_dir();
    const int64_t ms = 250;
    tg_control_follower follower;
    tg_control control;
    (void)state;
    tg_control_follow(run, &follower);
    assert_false(tg_control_poll(&follower, &control));
    assert_ok(tg_control_update(run, ask_interval, (void *)&ms));
    assert_true(tg_control_poll(&follower, &control));
    assert_int_equal(control.monitor_interval_ms, 250);
    assert_int_equal(control.trace_request, 0);
    assert_false(control.stop);
    assert_false(tg_control_poll(&follower, &control));
    assert_ok(tg_control_update(run, ask_trace, NULL));
    assert_ok(tg_control_update(run, ask_trace, NULL));
    assert_true(tg_control_poll(&follower, &control));
    assert_int_equal(control.monitor_interval_ms, 250); /* what another asked stays */
    assert_int_equal(control.trace_steps, 3);
    assert_int_equal(control.trace_request, 2);
    tg_control_follow(run, &follower); /* of a job that starts now */
    assert_false(tg_control_poll(&follower, &control));
    assert_ok(tg_control_remove(run));
    assert_ok(tg_control_remove(run));
    assert_false(tg_control_poll(&follower, &control));
    assert_ok(tg_control_read(run, &control));
    assert_int_equal(control.monitor_interval_ms, -1);
}

static void put(const char *text)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/control.json", tg_test_temp_dir());
    assert_ok(tg_file_write(path, text, strlen(text)));
}

static void bad_files_ask_for_nothing(void **state)
{
    tg_control_follower follower;
    tg_control control;
    const char *run = tg_test_temp_dir();
    const int64_t ms = 1;
    (void)state;
    tg_control_follow(run, &follower);
    put("{\"monitor_interval_ms\":\"often\"}");
    assert_false(tg_control_poll(&follower, &control));
    assert_error(tg_control_read(run, &control), TG_ERROR_INPUT, "monitor_interval_ms");
    put("{\"stop\":");
    assert_false(tg_control_poll(&follower, &control));
    put("{\"stop\":true,\"of_a_later_program\":[1]}");
    assert_true(tg_control_poll(&follower, &control));
    assert_true(control.stop);
    assert_error(tg_control_update("/nowhere/at/all", ask_interval, (void *)&ms), TG_ERROR_INPUT,
                 "/nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wishes_add_up_and_are_seen_once),
        cmocka_unit_test(bad_files_ask_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
