/* The ledger of a run's wall time: every row where it belongs, the total whatever the records lack. */
#include "support/check.h"

#include "profile/ledger.h"

#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static tg_step_record step(int64_t number, double time)
{
    return (tg_step_record){.step = number,
                            .t_step = 1,
                            .t_data = 0.125,
                            .t_forward = 0.25,
                            .t_backward = 0.25,
                            .t_reduce = 0.25,
                            .t_optimizer = 0.0625,
                            .t_other = 0.0625,
                            .time = time};
}

static void assert_seconds(const tg_ledger *l, tg_ledger_row row, double want)
{
    if (!(fabs(l->seconds[row] - want) < 1e-9))
        fail_msg("%s: %.9g s, not %.9g", tg_ledger_row_key(row), l->seconds[row], want);
}

static void assert_adds_up(const tg_ledger *l, double total)
{
    double sum = 0;
    for (int row = 0; row < TG_LEDGER_ROWS; row++) {
        assert_true(l->seconds[row] >= 0);
        sum += l->seconds[row];
    }
    if (!(fabs(sum - total) < 1e-6 && fabs(l->total_s - total) < 1e-6))
        fail_msg("rows add up to %.9g s, total %.9g s, not %.9g", sum, l->total_s, total);
}

static void test_one_attempt(void **state)
{
    tg_step_record steps[] = {step(1, 103), step(2, 104), step(3, 105.5)};
    tg_span spans[] = {{1, TG_SPAN_ATTEMPT, 100, NAN, 0},
                       {1, TG_SPAN_START, 100, 1.25, 0},
                       {1, TG_SPAN_RECORDS, 101.25, 0.25, 0},
                       {1, TG_SPAN_EVALUATION, 101.5, 0.5, 0},
                       {1, TG_SPAN_CHECKPOINT, 104, 0.5, 2},
                       {1, TG_SPAN_FINISH, 105.5, 1, 3},
                       {1, TG_SPAN_END, 107, 0, 3}};
    const tg_history h = {.inputs = TG_INPUT_SPANS | TG_INPUT_STEPS,
                          .steps = steps,
                          .step_count = COUNT(steps),
                          .spans = spans,
                          .span_count = COUNT(spans),
                          .ranks = 1};
    tg_ledger l;
    (void)state;
    tg_ledger_make(&h, &l);
    assert_adds_up(&l, 7);
    assert_seconds(&l, TG_LEDGER_START, 1.25);
    assert_seconds(&l, TG_LEDGER_RECORDS, 0.25);
    assert_seconds(&l, TG_LEDGER_DATA, 0.375);
    assert_seconds(&l, TG_LEDGER_FORWARD, 0.75);
    assert_seconds(&l, TG_LEDGER_EXCHANGE, 0.75);
    assert_seconds(&l, TG_LEDGER_SLOWER, 0);
    assert_seconds(&l, TG_LEDGER_EVALUATION, 0.5);
    assert_seconds(&l, TG_LEDGER_CHECKPOINT, 0.5);
    assert_seconds(&l, TG_LEDGER_FINISH, 1);
    /* in the steps, and half a second before the end that nothing names */
    assert_seconds(&l, TG_LEDGER_OTHER, 3 * 0.0625 + 0.5);
    assert_true(l.other_steps_s == 3 * 0.0625);
    assert_true(l.begin == 100 && l.end == 107 && l.ended);
    assert_int_equal(l.attempts, 1);
    assert_int_equal(l.killed, 0);
    assert_int_equal(l.missing, 0);
}

/* Killed in step 5 after a checkpoint at 2; steps 3 and 4 are dropped; samples saw it live half a second longer. */
static void test_killed_and_resumed(void **state)
{
    tg_step_record steps[] = {step(1, 102), step(2, 103), step(3, 202), step(4, 203)};
    tg_span spans[] = {{1, TG_SPAN_ATTEMPT, 100, NAN, 0},  {1, TG_SPAN_START, 100, 1, 0},
                       {1, TG_SPAN_CHECKPOINT, 103, 1, 2}, {2, TG_SPAN_ATTEMPT, 200, NAN, 2},
                       {2, TG_SPAN_DROPPED, 104, 2, 2},    {2, TG_SPAN_START, 200, 1, 2},
                       {2, TG_SPAN_FINISH, 203, 1, 4},     {2, TG_SPAN_END, 204, 0, 4}};
    tg_system_sample samples[] = {{.time = 105.5}, {.time = 106.5}, {.time = 200.5}};
    tg_system_host host = {.samples = samples, .sample_count = COUNT(samples)};
    tg_history h = {.inputs = TG_INPUT_SPANS | TG_INPUT_STEPS,
                    .steps = steps,
                    .step_count = COUNT(steps),
                    .spans = spans,
                    .span_count = COUNT(spans),
                    .ranks = 1};
    tg_ledger l;
    (void)state;
    tg_ledger_make(&h, &l);
    assert_adds_up(&l, 104);
    assert_seconds(&l, TG_LEDGER_START, 2);
    assert_seconds(&l, TG_LEDGER_FORWARD, 1);
    assert_seconds(&l, TG_LEDGER_REPEATED, 2);
    assert_seconds(&l, TG_LEDGER_IDLE, 200 - 106);
    assert_seconds(&l, TG_LEDGER_OTHER, 4 * 0.0625);
    assert_int_equal(l.attempts, 2);
    assert_int_equal(l.killed, 1);
    assert_int_equal(l.dropped, 2);
    h.hosts = &host;
    h.host_count = 1;
    tg_ledger_make(&h, &l);
    assert_adds_up(&l, 104);
    assert_seconds(&l, TG_LEDGER_REPEATED, 2.5);
    assert_seconds(&l, TG_LEDGER_IDLE, 200 - 106.5);
}

/* The clock of the second machine is an hour behind: no time is made up, none counted twice. */
static void test_clock_behind(void **state)
{
    tg_step_record steps[] = {step(1, 3702), step(2, 3703), step(3, 102), step(4, 103)};
    tg_span spans[] = {{1, TG_SPAN_ATTEMPT, 3700, NAN, 0}, {1, TG_SPAN_START, 3700, 1, 0},
                       {1, TG_SPAN_END, 3703, 0, 2},       {2, TG_SPAN_ATTEMPT, 100, NAN, 2},
                       {2, TG_SPAN_START, 100, 1, 2},      {2, TG_SPAN_END, 103, 0, 4}};
    const tg_history h = {.inputs = TG_INPUT_SPANS | TG_INPUT_STEPS,
                          .steps = steps,
                          .step_count = COUNT(steps),
                          .spans = spans,
                          .span_count = COUNT(spans),
                          .ranks = 1};
    tg_ledger l;
    (void)state;
    tg_ledger_make(&h, &l);
    assert_adds_up(&l, 6);
    assert_seconds(&l, TG_LEDGER_IDLE, 0);
    assert_seconds(&l, TG_LEDGER_START, 2);
}

/* Rank 1 is slow: what rank 0 waits beyond what rank 1 waits too is not exchange, and no slow backward. */
static void test_slow_rank(void **state)
{
    tg_step_record steps[] = {step(1, 101), step(2, 102), step(3, 103)};
    tg_rank_step first[] = {{.t_reduce = 0.25}, {.t_reduce = 0.0625}};
    tg_rank_step third[] = {{.t_reduce = 0.25}, {.t_reduce = 0.5}};
    tg_history_rank_row rows[] = {{1, first, 2}, {3, third, 2}}; /* step 2's line was lost */
    tg_span spans[] = {{1, TG_SPAN_ATTEMPT, 100, NAN, 0}, {1, TG_SPAN_END, 103, 0, 3}};
    tg_history h = {.inputs = TG_INPUT_SPANS | TG_INPUT_STEPS | TG_INPUT_RANKS,
                    .steps = steps,
                    .step_count = COUNT(steps),
                    .spans = spans,
                    .span_count = COUNT(spans),
                    .rank_rows = rows,
                    .rank_row_count = COUNT(rows),
                    .ranks = 2};
    tg_ledger l;
    (void)state;
    tg_ledger_make(&h, &l);
    assert_adds_up(&l, 3);
    assert_seconds(&l, TG_LEDGER_EXCHANGE, 0.0625 + 0.25 + 0.25);
    assert_seconds(&l, TG_LEDGER_SLOWER, 0.25 - 0.0625);
    assert_seconds(&l, TG_LEDGER_BACKWARD, 0.75);
    h.rank_row_count = 0;
    h.inputs &= ~(unsigned)TG_INPUT_RANKS;
    tg_ledger_make(&h, &l);
    assert_seconds(&l, TG_LEDGER_SLOWER, 0);
    assert_int_equal(l.missing, TG_INPUT_RANKS);
}

static void read_info(const char *text, tg_history *h)
{
    assert_ok(tg_json_parse(text, strlen(text), "run.json", &h->info));
}

/* Records of an older program have neither moments nor spans. */
static void test_old_records(void **state)
{
    tg_step_record steps[] = {step(1, NAN), step(2, NAN)};
    tg_history h = {
        .inputs = TG_INPUT_STEPS, .steps = steps, .step_count = COUNT(steps), .ranks = 1};
    tg_ledger l;
    (void)state;
    tg_ledger_make(&h, &l);
    assert_adds_up(&l, 2);
    assert_int_equal(l.missing, TG_INPUT_SPANS);
    read_info("{\"start\":\"2026-01-31T23:59:55.250Z\",\"end\":\"2026-02-01T00:00:00.750Z\"}", &h);
    h.inputs |= TG_INPUT_INFO;
    tg_ledger_make(&h, &l);
    assert_adds_up(&l, 5.5);
    assert_seconds(&l, TG_LEDGER_OTHER, 5.5 - 2 + 2 * 0.0625);
    tg_json_done(&h.info);
    /* resumed under the older program: run.json has the last attempt alone */
    read_info("{\"start\":\"2026-01-31T23:59:55.250Z\",\"end\":\"2026-01-31T23:59:56.000Z\"}", &h);
    tg_ledger_make(&h, &l);
    assert_adds_up(&l, 2);
    tg_json_done(&h.info);
}

/* Begun by an older program, gone on with by this one. */
static void test_old_beginning(void **state)
{
    tg_step_record steps[] = {step(1, NAN), step(2, 102)};
    tg_span spans[] = {{1, TG_SPAN_ATTEMPT, 100, NAN, 1},
                       {1, TG_SPAN_DROPPED, NAN, 3, 3},
                       {1, TG_SPAN_START, 100, 1, 1},
                       {1, TG_SPAN_END, 102, 0, 2}};
    const tg_history h = {.inputs = TG_INPUT_SPANS | TG_INPUT_STEPS,
                          .steps = steps,
                          .step_count = COUNT(steps),
                          .spans = spans,
                          .span_count = COUNT(spans),
                          .ranks = 1};
    tg_ledger l;
    (void)state;
    tg_ledger_make(&h, &l);
    assert_adds_up(&l, 1 + 3 + 2);
    assert_seconds(&l, TG_LEDGER_REPEATED, 3);
}

/* Numbers that cannot be, of damaged lines, spoil nothing else. */
static void test_damage(void **state)
{
    tg_step_record steps[] = {step(1, 101), step(2, 1e300), step(3, 103)};
    tg_span spans[] = {{1, TG_SPAN_ATTEMPT, -1e308, NAN, 0},
                       {1, TG_SPAN_START, 100, -5, 0},
                       {1, TG_SPAN_CHECKPOINT, NAN, 1e308, 2},
                       {1, TG_SPAN_END, 103.5, 0, 3}};
    tg_history h = {.inputs = TG_INPUT_SPANS | TG_INPUT_STEPS,
                    .steps = steps,
                    .step_count = COUNT(steps),
                    .spans = spans,
                    .span_count = COUNT(spans),
                    .ranks = 1};
    tg_ledger l;
    (void)state;
    steps[0].t_forward = -1e300;
    tg_ledger_make(&h, &l);
    assert_adds_up(&l, 3.5);
    assert_seconds(&l, TG_LEDGER_FORWARD, 0.5);
    assert_seconds(&l, TG_LEDGER_CHECKPOINT, 0);
    spans[1].time = spans[3].time = NAN; /* no moment is known but the steps' */
    tg_ledger_make(&h, &l);
    assert_true(l.total_s > 2 && l.total_s < 4);
}

static void test_nothing(void **state)
{
    const tg_history h = {.ranks = 1};
    tg_ledger l;
    (void)state;
    tg_ledger_make(&h, &l);
    assert_adds_up(&l, 0);
    assert_int_equal(l.missing, TG_INPUT_SPANS | TG_INPUT_STEPS);
    assert_false(l.ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_attempt),  cmocka_unit_test(test_killed_and_resumed),
        cmocka_unit_test(test_clock_behind), cmocka_unit_test(test_slow_rank),
        cmocka_unit_test(test_old_records),  cmocka_unit_test(test_old_beginning),
        cmocka_unit_test(test_damage),       cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
