/* The rule that names the rank others wait for: begins, changes and clears as its header says, and not
 * for noise or one hiccup. */
#include "support/check.h"

#include "train/straggler.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 4 };

/* Ranks of 1 s of own work, which meet: the slowest waits for nobody. */
typedef struct world {
    tg_straggler rule;
    double data[RANKS], forward[RANKS]; /* above the usual 0.1 and 0.3 s */
    int64_t images[RANKS];
    unsigned noise; /* state of a small generator; 0: none */
    int began, changed, cleared;
} world;

static void begin(world *w)
{
    *w = (world){.images = {16, 16, 16, 16}};
    assert_ok(tg_straggler_init(&w->rule, RANKS));
}

static double shake(world *w)
{
    if (!w->noise)
        return 1;
    w->noise = w->noise * 1664525U + 1013904223U;
    return 1 + 0.3 * ((double)(w->noise >> 8) / 0x1p24 - 0.5); /* +-15 % */
}

static void run(world *w, int steps)
{
    for (int i = 0; i < steps; i++) {
        tg_rank_step each[RANKS];
        double longest = 0;
        for (int r = 0; r < RANKS; r++) {
            const double by = shake(w);
            each[r] = (tg_rank_step){.images = w->images[r],
                                     .t_data = 0.1 * by + w->data[r],
                                     .t_forward = 0.3 * by + w->forward[r],
                                     .t_backward = 0.6 * by};
            each[r].t_step = each[r].t_data + each[r].t_forward + each[r].t_backward;
            longest = fmax(longest, each[r].t_step);
        }
        for (int r = 0; r < RANKS; r++) {
            each[r].t_reduce = longest - each[r].t_step + 0.05;
            each[r].t_step = longest + 0.05;
        }
        const tg_straggler_event event = tg_straggler_add(&w->rule, each);
        w->began += event == TG_STRAGGLER_BEGAN;
        w->changed += event == TG_STRAGGLER_CHANGED;
        w->cleared += event == TG_STRAGGLER_CLEARED;
    }
}

static void assert_events(const world *w, int began, int changed, int cleared)
{
    assert_int_equal(w->began, began);
    assert_int_equal(w->changed, changed);
    assert_int_equal(w->cleared, cleared);
}

/* What needs to be seen before anything is said, and the step that is left out. */
enum { ENOUGH = TG_STRAGGLER_STEPS * TG_STRAGGLER_WINDOWS, FIRST = 1 };

static void begins_and_clears(void **state)
{
    (void)state;
    world w;
    begin(&w);
    w.data[3] = 0.3;
    run(&w, FIRST + ENOUGH - 1);
    assert_events(&w, 0, 0, 0);
    run(&w, 1);
    assert_events(&w, 1, 0, 0);
    assert_int_equal(w.rule.found.rank, 3);
    assert_int_equal(w.rule.found.phase, TG_PHASE_DATA);
    assert_true(fabs(w.rule.found.own_s - 1.3) < 1e-9);
    assert_true(fabs(w.rule.found.others_s - 1.0) < 1e-9);
    assert_true(fabs(w.rule.found.phase_s - 0.4) < 1e-9);
    assert_true(fabs(w.rule.found.phase_others_s - 0.1) < 1e-9);
    assert_true(fabs(tg_straggler_excess(&w.rule.found) - 0.3 / 1.35) < 1e-9);
    run(&w, 10 * ENOUGH);
    assert_events(&w, 1, 0, 0); /* said once */
    w.data[3] = 0.08; /* no longer over what it takes to begin, still over what it takes to clear */
    run(&w, 10 * ENOUGH);
    assert_events(&w, 1, 0, 0);
    w.data[3] = 0;
    run(&w, ENOUGH - 1);
    assert_events(&w, 1, 0, 0);
    run(&w, 1);
    assert_events(&w, 1, 0, 1);
    assert_int_equal(w.rule.found.rank, -1);
    assert_int_equal(w.rule.rival.rank, 3);
    tg_straggler_done(&w.rule);
}

static void changes(void **state)
{
    (void)state;
    world w;
    begin(&w);
    w.data[3] = 0.3;
    run(&w, FIRST + ENOUGH);
    w.forward[1] = 0.35; /* a little slower than the named one: no news worth a line */
    run(&w, 4 * ENOUGH);
    assert_events(&w, 1, 0, 0);
    assert_int_equal(w.rule.found.rank, 3);
    w.forward[1] = 0.6;
    run(&w, ENOUGH);
    assert_events(&w, 1, 1, 0);
    assert_int_equal(w.rule.found.rank, 1);
    assert_int_equal(w.rule.found.phase, TG_PHASE_FORWARD);
    w.data[1] = 0.9; /* the same rank, another cause */
    run(&w, ENOUGH);
    assert_events(&w, 1, 2, 0);
    assert_int_equal(w.rule.found.rank, 1);
    assert_int_equal(w.rule.found.phase, TG_PHASE_DATA);
    w.data[1] = w.forward[1] = 0; /* and the first again, over the others as before */
    run(&w, ENOUGH);
    assert_events(&w, 1, 3, 0);
    assert_int_equal(w.rule.found.rank, 3);
    tg_straggler_done(&w.rule);
}

static void noise_is_no_news(void **state)
{
    (void)state;
    world w;
    begin(&w);
    w.noise = 7;
    run(&w, 4000);
    assert_events(&w, 0, 0, 0);
    for (int i = 0; i < 50; i++) { /* one hiccup in each of many windows that do not touch */
        w.forward[i % RANKS] = 5;
        run(&w, 1);
        w.forward[i % RANKS] = 0;
        run(&w, 2 * ENOUGH - 1);
    }
    assert_events(&w, 0, 0, 0);
    w.data[2] = 0.3; /* and yet what is there is found */
    run(&w, 3 * ENOUGH);
    assert_events(&w, 1, 0, 0);
    assert_int_equal(w.rule.found.rank, 2);
    run(&w, 2000);
    assert_events(&w, 1, 0, 0);
    tg_straggler_done(&w.rule);
}

static void the_first_step_is_left_out(void **state)
{
    (void)state;
    world w;
    begin(&w);
    w.forward[0] = 60;
    run(&w, 1);
    w.forward[0] = 0;
    run(&w, ENOUGH);
    tg_straggler_finding whole = tg_straggler_whole(&w.rule);
    assert_events(&w, 0, 0, 0);
    assert_true(tg_straggler_excess(&whole) < 1e-9);
    tg_straggler_done(&w.rule);
}

static void short_steps_need_their_time(void **state)
{
    (void)state;
    tg_straggler rule;
    tg_rank_step each[2] = {{.t_step = 0.01, .t_reduce = 0.005, .t_data = 0.005},
                            {.t_step = 0.01, .t_reduce = 0.001, .t_data = 0.009}};
    int steps = 0;
    assert_ok(tg_straggler_init(&rule, 2));
    while (tg_straggler_add(&rule, each) != TG_STRAGGLER_BEGAN)
        assert_true(++steps < 1000);
    assert_in_range(steps, 200, 203); /* two windows of a second, sums to rounding */
    tg_straggler_done(&rule);
}

static void the_run_as_a_whole(void **state)
{
    (void)state;
    world w;
    begin(&w);
    assert_int_equal(tg_straggler_whole(&w.rule).rank, -1);
    run(&w, FIRST + ENOUGH - 1);
    assert_int_equal(tg_straggler_whole(&w.rule).rank, -1);
    w.forward[2] = 0.4;
    run(&w, 3 * ENOUGH + 1);
    tg_straggler_finding whole = tg_straggler_whole(&w.rule);
    assert_int_equal(whole.rank, 2);
    assert_true(fabs(whole.own_s - (1 + 0.4 * (3 * ENOUGH + 1) / (4.0 * ENOUGH))) < 1e-9);
    tg_straggler_done(&w.rule);
}

static void says_who_and_why(void **state)
{
    (void)state;
    world w;
    tg_text text = {0};
    begin(&w);
    w.data[3] = 0.3;
    run(&w, FIRST + ENOUGH);
    tg_straggler_print(&w.rule.found, "b", &text);
    assert_non_null(strstr(text.data, "rank 3 on b, 1.30 s of own work a step"));
    assert_non_null(strstr(text.data, "median of the others 1.00 s"));
    assert_non_null(strstr(text.data, "t_data 0.40 s, the others 0.10 s"));
    assert_non_null(strstr(text.data, "--workers"));
    tg_text_clear(&text);
    w.rule.found.images = 24; /* more work, not a slower machine */
    tg_straggler_print(&w.rule.found, "b", &text);
    assert_non_null(strstr(text.data, "24.0 photos a step, the others 16.0"));
    assert_null(strstr(text.data, "--workers"));
    tg_text_done(&text);
    tg_straggler_done(&w.rule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_and_clears),
        cmocka_unit_test(changes),
        cmocka_unit_test(noise_is_no_news),
        cmocka_unit_test(the_first_step_is_left_out),
        cmocka_unit_test(short_steps_need_their_time),
        cmocka_unit_test(the_run_as_a_whole),
        cmocka_unit_test(says_who_and_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
