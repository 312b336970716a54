/* tagine metrics: a run's records in the formats of other tools. */
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/signal.h"
#include "cli/terminal.h"
#include "os/clock.h"
#include "os/file.h"
#include "report/export.h"
#include "report/prometheus.h"

#include <stdlib.h>

enum { PROMETHEUS, TENSORBOARD, CSV };

typedef struct metrics_settings {
    int format;
    const char *output;
    double interval; /* NaN: once */
} metrics_settings;

static const char *const FORMATS[] = {"prometheus", "tensorboard", "csv", NULL};

static const tg_option OPTIONS[] = {
    {.name = "format",
     .type = TG_OPTION_CHOICE,
     .offset = offsetof(metrics_settings, format),
     .initial = "prometheus",
     .choices = FORMATS,
     .help = "how it stands now; event files of all records; a table of all steps"},
    {.name = "output",
     .type = TG_OPTION_STRING,
     .offset = offsetof(metrics_settings, output),
     .metavar = "PATH",
     .help = "file to replace, of tensorboard the folder to add to (default: standard output)",
     .flags = TG_OPTION_FILE},
    {.name = "interval",
     .type = TG_OPTION_DOUBLE,
     .offset = offsetof(metrics_settings, interval),
     .metavar = "SECONDS",
     .help = "prometheus: write the file again and again until the run ends",
     .low = 0.1,
     .high = 86400},
};

static const tg_command_group GROUPS[] = {{"Metrics", OPTIONS, TG_COUNT_OF(OPTIONS), 0}};

static tg_status print_state(const tg_live *live, const char *output)
{
    tg_text text = {0};
    if (output)
        return tg_prometheus_write(live, output);
    tg_prometheus_print(live, &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

/* The last time once more when it has ended, so that the file says so. */
static tg_status keep_state(tg_live *live, const metrics_settings *s)
{
    tg_status status;
    for (;;) {
        TG_TRY(tg_live_look(live, tg_clock_unix(tg_clock_ns()), NULL));
        status = print_state(live, s->output);
        if (status < 0 || !(s->interval > 0) || tg_live_get_state(live) != TG_LIVE_RUNS ||
            tg_terminal_wait(s->interval) == TG_TERMINAL_QUIT)
            return status;
    }
}

static tg_status run_prometheus(const char *run, const metrics_settings *s)
{
    tg_live *live = malloc(sizeof *live);
    if (!live)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    tg_status status = tg_live_open(run, NULL, live);
    if (status == TG_OK) {
        status = keep_state(live, s);
        tg_live_close(live);
    }
    free(live);
    return status;
}

static tg_status write_table(const tg_history *history, const char *output)
{
    tg_text text = {0};
    tg_status status = tg_export_csv(history, &text);
    if (status == TG_OK && output)
        status = tg_file_write(output, tg_text_string(&text), text.length);
    else if (status == TG_OK)
        status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static tg_status run_export(const char *run, const metrics_settings *s)
{
    tg_history history;
    TG_TRY(tg_history_open(run, &history));
    tg_status status = s->format == CSV ? write_table(&history, s->output)
                                        : tg_export_tensorboard(&history, s->output);
    tg_history_close(&history);
    return status;
}

static tg_status run(const tg_invocation *invocation)
{
    const metrics_settings *s = invocation->settings;
    const char *path = invocation->arguments[0];
    if (s->interval > 0 && (s->format != PROMETHEUS || !s->output))
        return tg_fail(TG_ERROR_USAGE,
                       "--interval: only for --format prometheus with --output FILE");
    if (s->format == TENSORBOARD && !s->output)
        return tg_fail(TG_ERROR_USAGE, "--output is missing: the folder for the event files");
    return s->format == PROMETHEUS ? run_prometheus(path, s) : run_export(path, s);
}

static const tg_command_note EXAMPLES[] = {
    {"tagine metrics runs/teacher", "How it stands, in Prometheus' text format"},
    {"tagine metrics runs/teacher --format csv --output steps.csv", "A line for each step"},
    {"tagine metrics runs/teacher --format tensorboard --output events/teacher",
     "For tensorboard --logdir events"},
    {0},
};

const tg_command tg_command_metrics = {
    .name = "metrics",
    .arguments = "RUN",
    .summary = "A run's records for TensorBoard, Prometheus, or as a table",
    .description =
        "prometheus is how the run stands now, as a scraper reads it: --output FILE --interval 15 "
        "keeps\na file for node_exporter's textfile collector until the run ends. tensorboard and "
        "csv are all\nrecords. A job writes the first two itself with --prometheus and "
        "--tensorboard.",
    .examples = EXAMPLES,
    .see_also = "watch, compare, train, distill",
    .work = TG_COMMAND_PRINTS,
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(metrics_settings),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
