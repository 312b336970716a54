/* report.html: one file, small whatever the run, that nothing in the run's names can break out of. */
#include "support/check.h"
#include "support/history.h"

#include "report/html.h"

#include <string.h>

static const tg_html_options OPTIONS = {
    .refresh_s = 60, .written = TG_TEST_RUN_BEGIN, .version = "0.0"};

static bool has(const tg_text *page, const char *part)
{
    return strstr(tg_text_string(page), part) != NULL;
}

static size_t times(const tg_text *page, const char *part)
{
    size_t n = 0;
    for (const char *at = tg_text_string(page); (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

/* An hour of 48 cores at 500 ms and 100,000 steps. */
static void test_stays_small(void **state)
{
    tg_test_run run = tg_test_run_new();
    const tg_step_record step = tg_test_step(0.036);
    tg_test_sample_values sample = tg_test_sample();
    tg_text page = {0};
    (void)state;
    tg_test_run_machine(&run, 48, 48, 8);
    tg_test_run_steps(&run, 100000, &step);
    sample.user = 0.7f;
    tg_test_sample_role(&sample, TG_ROLE_COMPUTE, 48, 40, 1);
    tg_test_run_samples(&run, "a", 48, 0, 7200, &sample);
    assert_ok(tg_html_print(&run.history, &OPTIONS, &page));
    assert_in_range(page.length, 100000, 5000000);
    assert_true(has(&page, "\"findings\":["));
    assert_true(has(&page, "\"ledger\":{"));
    tg_text_done(&page);
    tg_test_run_done(&run);
}

/* Options, hosts and paths may hold anything. */
static void test_nothing_breaks_out(void **state)
{
    tg_test_run run = tg_test_run_new();
    const tg_step_record step = tg_test_step(0.5);
    tg_test_sample_values sample = tg_test_sample();
    tg_text plain = {0}, page = {0};
    (void)state;
    sample.user = 0.5f;
    tg_test_run_options(&run, "experiment: x\n");
    tg_test_run_steps(&run, 40, &step);
    tg_test_run_samples(&run, "a", 2, 0, 40, &sample);
    assert_ok(tg_html_print(&run.history, &OPTIONS, &plain));
    tg_test_run_done(&run);
    run = tg_test_run_new();
    tg_test_run_options(&run, "experiment: \"</script><script>alert(1)</script>'\\\"<!--\"\n");
    tg_test_run_steps(&run, 40, &step);
    tg_test_run_samples(&run, "</ScRiPt><img src=x>", 2, 0, 40, &sample);
    assert_ok(tg_html_print(&run.history, &OPTIONS, &page));
    assert_false(has(&page, "alert(1)</script>"));
    assert_false(has(&page, "<img src=x>"));
    assert_true(has(&page, "\\u003c/script>\\u003cscript>alert(1)"));
    assert_int_equal(times(&page, "<script"), times(&plain, "<script"));
    assert_int_equal(times(&page, "</script"), times(&plain, "</script"));
    tg_text_done(&plain);
    tg_text_done(&page);
    tg_test_run_done(&run);
}

/* Nothing is fetched from anywhere. */
static void test_needs_no_network(void **state)
{
    tg_test_run run = tg_test_run_new();
    const tg_step_record step = tg_test_step(0.5);
    tg_text page = {0};
    (void)state;
    tg_test_run_steps(&run, 2, &step);
    assert_ok(tg_html_print(&run.history, &OPTIONS, &page));
    assert_true(has(&page, "Content-Security-Policy"));
    assert_false(has(&page, "src=\"http"));
    assert_false(has(&page, "<link"));
    assert_false(has(&page, "@import"));
    tg_text_done(&page);
    tg_test_run_done(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stays_small),
        cmocka_unit_test(test_nothing_breaks_out),
        cmocka_unit_test(test_needs_no_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
