/* tagine report: a run on one page, in one file. */
#include "report/html.h"

#include "base/log.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock_held.h"

#include <stdlib.h>
#include <string.h>

typedef struct report_settings {
    const char *output;
    double refresh_s;
} report_settings;

static const tg_option OPTIONS[] = {
    {.name = "output",
     .letter = 'o',
     .type = TG_OPTION_STRING,
     .offset = offsetof(report_settings, output),
     .metavar = "FILE",
     .help = "where to write it; RUN/report.html when not given"},
    {.name = "refresh",
     .type = TG_OPTION_DOUBLE,
     .offset = offsetof(report_settings, refresh_s),
     .initial = "60",
     .metavar = "S",
     .help = "the page of a run that is going looks for a newer one every so many seconds",
     .low = 1,
     .high = 86400},
};

static const tg_command_group GROUPS[] = {{"Report", OPTIONS, TG_COUNT_OF(OPTIONS), 0}};

/* A job of another machine holds a lock that is not seen here; its page is then one of a job that has not ended. */
static bool is_running(const tg_history *history)
{
    char *lock = tg_path_join(history->path, "lock");
    const bool held = lock && tg_lock_is_held(lock, "/proc/locks") == TG_LOCK_HELD;
    free(lock);
    return held && !tg_history_ended(history);
}

static tg_status write_page(const tg_history *history, const report_settings *s, const char *path)
{
    const tg_html_options options = {.running = is_running(history),
                                     .refresh_s = s->refresh_s,
                                     .written = tg_clock_unix(tg_clock_ns()),
                                     .version = TG_PROGRAM_VERSION};
    TG_TRY(tg_html_write(history, &options, path));
    tg_log_info("report: %s", path);
    return TG_OK;
}

static tg_status run(const tg_invocation *invocation)
{
    const report_settings *s = invocation->settings;
    tg_history history;
    tg_console_open(invocation->common->quiet, invocation->common->verbose);
    TG_TRY(tg_history_open(invocation->arguments[0], &history));
    char *path = s->output ? strdup(s->output) : tg_path_join(history.path, "report.html");
    tg_status status = path ? write_page(&history, s, path)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    free(path);
    tg_history_close(&history);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine report runs/teacher", "RUN/report.html: one file, to be opened or sent"},
    {0},
};

static const tg_command_note FILES[] = {
    {"RUN/report.html", "The page; it needs no network and no other file"},
    {0},
};

const tg_command tg_command_report = {
    .name = "report",
    .arguments = "RUN",
    .summary = "Show a run on one page: findings, times, machines, operations",
    .description =
        "Reads the run directory RUN alone, of a job that runs, has ended, or ran on another\n"
        "machine, and writes one HTML file: what was found and what to change first, then where\n"
        "the time went, loss and accuracy, steps, every core and device over time, ranks,\n"
        "operations, memory, and the configuration.",
    .examples = EXAMPLES,
    .files = FILES,
    .see_also = "diagnose, profile, compare, watch",
    .work = TG_COMMAND_PRINTS,
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(report_settings),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
