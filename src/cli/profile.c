/* tagine profile: where the wall time of a run went, and its steps, operations and exchanges. */
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/profile_text.h"

#include <math.h>

typedef struct profile_settings {
    int64_t top;
    int by;
} profile_settings;

enum { VIEW_OPERATION, VIEW_SHAPE, VIEW_PHASE, VIEW_RANK };

static const char *const VIEWS[] = {"operation", "shape", "phase", "rank", NULL};

static const tg_option OPTIONS[] = {
    {.name = "top",
     .letter = 'n',
     .type = TG_OPTION_INT,
     .offset = offsetof(profile_settings, top),
     .initial = "10",
     .metavar = "N",
     .help = "operations to show; the others are summed up",
     .low = 1,
     .high = 1e6},
    {.name = "by",
     .type = TG_OPTION_CHOICE,
     .offset = offsetof(profile_settings, by),
     .initial = "operation",
     .metavar = "WHAT",
     .help = "what makes a row of operations: a name; each shape; a phase; a name, with the "
             "least and the most of the ranks",
     .choices = VIEWS},
};

static const tg_command_group GROUPS[] = {
    {"Profile", OPTIONS, TG_COUNT_OF(OPTIONS), 0},
};

static tg_operation_by rows_of(int by)
{
    return by == VIEW_SHAPE ? TG_BY_SHAPE : by == VIEW_PHASE ? TG_BY_PHASE : TG_BY_OPERATION;
}

/* What would tell more. */
static unsigned missing(const tg_history *h, const tg_profile *p)
{
    const unsigned inputs = p->ledger.missing | (TG_INPUT_OPERATIONS & ~h->inputs);
    /* a run that has done no step has nothing else to show, and needs no advice on it */
    return h->step_count ? inputs : inputs & (unsigned)TG_INPUT_STEPS;
}

static void print_json(const tg_history *h, const tg_profile *p, const profile_settings *s,
                       tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "run", h->path);
    tg_profile_put(p, (size_t)s->top, &w);
    tg_json_begin_array(&w, "missing");
    for (int bit = 0; bit < TG_INPUT_COUNT; bit++)
        if (missing(h, p) & (1u << bit))
            tg_json_put_string(&w, NULL, tg_history_input_name((tg_history_input)(1 << bit)));
    tg_json_end_array(&w);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_missing(unsigned inputs, tg_text *out)
{
    static const struct {
        tg_history_input input;
        const char *words;
    } NOTES[] = {
        {TG_INPUT_STEPS,
         "metrics.jsonl has no steps: the run has done none yet, or the file is not "
         "with the rest."},
        {TG_INPUT_SPANS, "spans.jsonl is missing: start-up, evaluation, checkpoints and pauses are "
                         "in \"other\". Jobs of this version write it."},
        {TG_INPUT_RANKS, "ranks.jsonl is missing: waiting for slower ranks cannot be told from the "
                         "exchange. Jobs of several ranks write it."},
        {TG_INPUT_OPERATIONS, "trace/operations-rank-N.json is missing: what the steps computed is "
                              "not known. Jobs write it while they train; of an older run, go on "
                              "for some steps with --resume auto."},
    };
    for (size_t i = 0; i < TG_COUNT_OF(NOTES); i++) {
        if (!(inputs & NOTES[i].input))
            continue;
        tg_text_append_char(out, '\n');
        tg_text_append_wrapped(out, NOTES[i].words, 0, 80);
        tg_text_append_char(out, '\n');
    }
}

static void print_head(const tg_history *h, const tg_ledger *l, tg_text *out)
{
    tg_text_append_visible(out, h->path, "");
    tg_text_append_format(out, ": %lld step%s in ", (long long)l->steps, l->steps == 1 ? "" : "s");
    tg_profile_append_seconds(out, l->total_s);
    if (!l->ended)
        tg_text_append_string(out, "; no end yet: it runs, or was killed");
    tg_text_append_char(out, '\n');
    if (l->attempts > 1)
        tg_text_append_format(out, "%zu attempts, %zu killed, %lld step%s repeated\n", l->attempts,
                              l->killed, (long long)l->dropped, l->dropped == 1 ? "" : "s");
    const char *failure = tg_history_info_text(h, "failure");
    if (failure) {
        tg_text words = {0};
        tg_text_append_string(&words, "failed: ");
        tg_text_append_visible(&words, failure, "");
        tg_text_append_wrapped(out, tg_text_string(&words), 0, 80);
        tg_text_append_char(out, '\n');
        tg_text_done(&words);
    }
    tg_text_append_char(out, '\n');
}

static void print_text(const tg_history *h, const tg_profile *p, const profile_settings *s,
                       tg_text *out)
{
    const tg_operation_view view = {
        .by = rows_of(s->by), .over_ranks = s->by == VIEW_RANK, .top = (size_t)s->top};
    print_head(h, &p->ledger, out);
    tg_profile_print_ledger(&p->ledger, out);
    tg_profile_print_steps(&p->steps, out);
    tg_profile_print_operations(&p->operations, &view, out);
    tg_profile_print_exchange(&p->exchange, out);
    print_missing(missing(h, p), out);
}

static tg_status run(const tg_invocation *invocation)
{
    const profile_settings *settings = invocation->settings;
    tg_history history;
    tg_profile profile;
    tg_text text = {0};
    TG_TRY(tg_history_open(invocation->arguments[0], &history));
    tg_status status = tg_profile_make(&history, rows_of(settings->by), &profile);
    if (status == TG_OK) {
        (invocation->common->json ? print_json : print_text)(&history, &profile, settings, &text);
        status = tg_console_print(&text);
        tg_profile_done(&profile);
    }
    tg_text_done(&text);
    tg_history_close(&history);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine profile runs/teacher", "Where its wall time went, then its steps and operations"},
    {"tagine profile runs/teacher --by phase", "What data, teacher, forward, backward took"},
    {"tagine profile runs/teacher --json", "The same for programs, as one JSON object"},
    {0},
};

const tg_command tg_command_profile = {
    .name = "profile",
    .arguments = "RUN",
    .summary = "Show where the wall time of a run went, and its top operations",
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
