/* A run directory in memory: spans, operations, options, and what is absent or damaged. */
#include "support/check.h"

#include "os/clock.h"
#include "os/file.h"
#include "os/folder.h"
#include "run/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char run[4096];

static char *in_run(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", run, name);
    return path;
}

static int make_run(void **state)
{
    static int number;
    (void)state;
    snprintf(run, sizeof run, "%s/run %d", tg_test_temp_dir(), number++);
    assert_ok(tg_folder_make(in_run("trace")));
    assert_ok(tg_folder_make(in_run("system")));
    return 0;
}

static void write_text(const char *name, const char *text)
{
    assert_ok(tg_file_write(in_run(name), text, strlen(text)));
}

static void test_no_run(void **state)
{
    tg_history h;
    (void)state;
    assert_error(tg_history_open(run, &h), TG_ERROR_INPUT, "no run directory");
    assert_error(tg_history_open("/nowhere/at/all", &h), TG_ERROR_INPUT, "/nowhere/at/all");
}

static void test_spans(void **state)
{
    tg_spans spans;
    tg_history h;
    (void)state;
    assert_ok(tg_spans_open(in_run("spans.jsonl"), false, &spans));
    assert_ok(tg_spans_write(&spans,
                             &(tg_span){.kind = TG_SPAN_ATTEMPT, .time = 1000.25, .seconds = NAN}));
    assert_ok(tg_spans_write(
        &spans, &(tg_span){.kind = TG_SPAN_CHECKPOINT, .time = 1001, .seconds = 0.25, .step = 12}));
    tg_spans_close(&spans);
    FILE *file = fopen(in_run("spans.jsonl"), "a");
    fputs("{\"attempt\":1,\"what\":\"of_tomorrow\"}\n{\"attempt\":1,\"wh", file);
    fclose(file);
    assert_ok(tg_spans_open(in_run("spans.jsonl"), true, &spans));
    assert_int_equal(spans.attempt, 2);
    assert_ok(tg_spans_write(&spans, &(tg_span){.kind = TG_SPAN_END, .time = 1010, .seconds = 0}));
    tg_spans_close(&spans);
    assert_ok(tg_history_open(run, &h));
    assert_int_equal(h.inputs, TG_INPUT_SPANS);
    assert_int_equal(h.span_count, 3);
    assert_int_equal(h.bad_lines, 1);
    assert_true(isnan(h.spans[0].seconds));
    assert_int_equal(h.spans[1].kind, TG_SPAN_CHECKPOINT);
    assert_int_equal(h.spans[1].step, 12);
    assert_int_equal(h.spans[2].attempt, 2);
    assert_true(tg_history_begin(&h) == 1000.25);
    assert_true(tg_history_end(&h) == 1010);
    tg_history_close(&h);
}

static void test_operations(void **state)
{
    tg_operation each[2] = {{.name = "linear_forward",
                             .phase = "forward",
                             .dtype = "bfloat16",
                             .shape = {6304, 384, 1152},
                             .calls = 24,
                             .seconds = 0.5,
                             .flops = 1e11,
                             .bytes = 1e9},
                            {.name = "layer \"\x01", .calls = 1, .seconds = 0.25}};
    const tg_operations out = {.rank = 1,
                               .first_step = 3,
                               .last_step = 12,
                               .steps = 10,
                               .seconds = 2,
                               .peak_flops_f32 = NAN,
                               .peak_flops_bf16 = 7e11,
                               .each = each,
                               .count = 2};
    tg_history h;
    (void)state;
    assert_ok(tg_operations_write(in_run("trace/operations-rank-1.json"), &out));
    write_text("trace/operations-rank-0.json", "{\"damaged\"");
    assert_ok(tg_history_open(run, &h));
    assert_int_equal(h.operation_ranks, 1);
    assert_int_equal(h.bad_lines, 1);
    const tg_operations *o = &h.operations[0];
    assert_int_equal(o->rank, 1);
    assert_int_equal(o->steps, 10);
    assert_true(isnan(o->peak_flops_f32) && o->peak_flops_bf16 == 7e11);
    assert_int_equal(o->count, 2);
    assert_memory_equal(&o->each[0], &each[0], sizeof each[0]);
    assert_string_equal(o->each[1].name, "layer \"\x01");
    tg_history_close(&h);
}

static void test_documents(void **state)
{
    tg_history h;
    (void)state;
    write_text("job.yaml", "batch-size: 64\namp: false\nteacher: null\n");
    write_text("run.json", "{\"command\":\"train\",\"ranks\":2,\"machine\":{\"cpus\":48},"
                           "\"end\":null}");
    write_text("metrics.jsonl", "{\"step\":1,\"t_step\":0.5,\"time\":1000.5}\n"
                                "{\"step\":2,\"t_step\":0.5}\n"
                                "{\"epoch\":1,\"val_top1\":50}\n");
    write_text("ranks.jsonl", "damaged\n");
    assert_ok(tg_history_open(run, &h));
    assert_int_equal(h.inputs, TG_INPUT_INFO | TG_INPUT_OPTIONS | TG_INPUT_STEPS | TG_INPUT_EVALS);
    assert_int_equal(h.ranks, 2);
    assert_int_equal(h.bad_lines, 1);
    assert_true(tg_history_option_number(&h, "batch-size") == 64);
    assert_string_equal(tg_history_option(&h, "amp"), "false");
    assert_null(tg_history_option(&h, "teacher"));
    assert_true(isnan(tg_history_option_number(&h, "lr")));
    assert_true(tg_history_info_number(&h, "machine.cpus") == 48);
    assert_true(isnan(tg_history_info_number(&h, "machine.memory.bytes")));
    assert_string_equal(tg_history_info_text(&h, "command"), "train");
    assert_null(tg_history_info_text(&h, "machine"));
    assert_false(tg_history_ended(&h));
    assert_true(tg_history_begin(&h) == 1000);
    assert_true(isnan(h.steps[1].time));
    tg_history_close(&h);
}

static void test_many_records(void **state)
{
    enum { STEPS = 1000 };
    tg_metrics metrics;
    tg_rank_steps ranks;
    tg_history h;
    const tg_rank_step each[2] = {{.images = 1}, {.images = 2}};
    (void)state;
    assert_ok(tg_metrics_open(in_run("metrics.jsonl"), false, 0, 0, &metrics));
    assert_ok(tg_rank_steps_open(in_run("ranks.jsonl"), false, 0, &ranks));
    for (int i = 1; i <= STEPS; i++) {
        assert_ok(tg_metrics_write_step(&metrics, &(tg_step_record){.step = i, .time = 1000 + i}));
        assert_ok(tg_rank_steps_write(&ranks, i, each, 2));
    }
    tg_metrics_close(&metrics);
    tg_rank_steps_close(&ranks);
    assert_ok(tg_history_open(run, &h));
    assert_int_equal(h.step_count, STEPS);
    assert_int_equal(h.rank_row_count, STEPS);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(h.steps[i].step, i + 1);
        assert_int_equal(h.rank_rows[i].each[1].images, 2);
    }
    tg_history_close(&h);
}

static void test_label_clock(void **state)
{
    (void)state;
    const int64_t now = tg_clock_ns();
    const double a = tg_clock_unix(now), b = tg_clock_unix(now + 1500000000);
    assert_true(fabs(b - a - 1.5) < 1e-5);
    assert_true(a > 1.6e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_no_run, make_run),
        cmocka_unit_test_setup(test_spans, make_run),
        cmocka_unit_test_setup(test_operations, make_run),
        cmocka_unit_test_setup(test_documents, make_run),
        cmocka_unit_test_setup(test_many_records, make_run),
        cmocka_unit_test(test_label_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
