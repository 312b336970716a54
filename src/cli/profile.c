/* tagine profile: where the wall time of a run went, and its steps, operations and exchanges. */
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/profile_text.h"

#include <math.h>

typedef struct profile_settings {
    int64_t top;
} profile_settings;

static const tg_option OPTIONS[] = {
    {.name = "top",
     .type = TG_OPTION_INT,
     .offset = offsetof(profile_settings, top),
     .initial = "10",
     .metavar = "N",
     .help = "operations to show; the rest is summed up in one row",
     .low = 1,
     .high = 1e6},
};

static const tg_command_group GROUPS[] = {
    {"Profile", OPTIONS, TG_COUNT_OF(OPTIONS), 0},
};

static void put_ledger(tg_json_writer *w, const tg_ledger *l)
{
    tg_json_begin_object(w, "ledger");
    tg_json_put_double(w, "total_s", l->total_s);
    tg_json_begin_object(w, "seconds");
    for (int row = 0; row < TG_LEDGER_ROWS; row++)
        tg_json_put_double(w, tg_ledger_row_key((tg_ledger_row)row), l->seconds[row]);
    tg_json_end_object(w);
    tg_json_put_double(w, "other_in_steps_s", l->other_steps_s);
    tg_json_put_double(w, "begin", l->begin);
    tg_json_put_double(w, "end", l->end);
    tg_json_put_bool(w, "ended", l->ended);
    tg_json_put_uint(w, "attempts", l->attempts);
    tg_json_put_uint(w, "killed", l->killed);
    tg_json_put_int(w, "steps", l->steps);
    tg_json_put_int(w, "dropped_steps", l->dropped);
    tg_json_end_object(w);
}

static void put_missing(tg_json_writer *w, unsigned missing)
{
    tg_json_begin_array(w, "missing");
    for (int bit = 0; bit < TG_INPUT_COUNT; bit++)
        if (missing & (1u << bit))
            tg_json_put_string(w, NULL, tg_history_input_name((tg_history_input)(1 << bit)));
    tg_json_end_array(w);
}

static void print_json(const tg_history *h, const tg_ledger *l, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "run", h->path);
    put_ledger(&w, l);
    put_missing(&w, l->missing);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_missing(unsigned missing, tg_text *out)
{
    if (missing & TG_INPUT_STEPS)
        tg_text_append_string(out, "\nmetrics.jsonl has no steps: the run has done none yet, or it "
                                   "is not with the rest.\n");
    if (missing & TG_INPUT_SPANS)
        tg_text_append_string(
            out, "\nspans.jsonl is missing: start-up, evaluation, checkpoints and pauses are in\n"
                 "\"other\". Jobs of this version write it.\n");
    if (missing & TG_INPUT_RANKS)
        tg_text_append_string(out,
                              "\nranks.jsonl is missing: waiting for slower ranks cannot be told "
                              "from exchange.\n");
}

static void print_head(const tg_history *h, const tg_ledger *l, tg_text *out)
{
    tg_text_append_visible(out, h->path, "");
    tg_text_append_format(out, ": %lld step%s in ", (long long)l->steps, l->steps == 1 ? "" : "s");
    tg_profile_append_seconds(out, l->total_s);
    if (l->attempts > 1)
        tg_text_append_format(out, ", %zu attempts (%zu killed, %lld step%s repeated)", l->attempts,
                              l->killed, (long long)l->dropped, l->dropped == 1 ? "" : "s");
    tg_text_append_string(out, l->ended ? "\n\n" : ", no end yet: it runs, or was killed\n\n");
}

static void print_text(const tg_history *h, const tg_ledger *l, tg_text *out)
{
    print_head(h, l, out);
    tg_profile_print_ledger(l, out);
    print_missing(l->missing, out);
}

static tg_status run(const tg_invocation *invocation)
{
    tg_history history;
    tg_ledger ledger;
    tg_text text = {0};
    TG_TRY(tg_history_open(invocation->arguments[0], &history));
    tg_ledger_make(&history, &ledger);
    (invocation->common->json ? print_json : print_text)(&history, &ledger, &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    tg_history_close(&history);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine profile runs/teacher", "Where its wall time went"},
    {"tagine profile runs/teacher --json", "The same for programs, as one JSON object"},
    {0},
};

const tg_command tg_command_profile = {
    .name = "profile",
    .arguments = "RUN",
    .summary = "Show where the wall time of a run went",
    .description =
        "Reads the records of the run directory RUN and nothing else, so that the run may live, "
        "have\nended, have been killed, or be a copy from another machine. The ledger adds up to "
        "the whole\nwall time from the start of the first process to the last moment known, over "
        "all attempts.",
    .examples = EXAMPLES,
    .see_also = "train, distill, bench train",
    .work = TG_COMMAND_PRINTS,
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(profile_settings),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
