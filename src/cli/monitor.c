/* tagine monitor: this machine by itself, the monitor of a job that runs, and files of another tool. */
#include "base/log.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/monitor_text.h"
#include "cli/signal.h"
#include "monitor/incremental.h"
#include "monitor/monitor.h"
#include "os/clock.h"
#include "os/file.h"
#include "run/control.h"
#include "run/system_line.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOST_BYTES = 256, HEAD_EVERY = 40, LOOK_MS = 100 };

typedef struct monitor_settings {
    int64_t interval, budget_mib;
    double duration;
    const char *output, *export_to, *import_from;
} monitor_settings;

#define AT(field) offsetof(monitor_settings, field)
static const tg_option OPTIONS[] = {
    {.name = "interval",
     .type = TG_OPTION_INT,
     .offset = AT(interval),
     .initial = "500",
     .metavar = "MS",
     .help = "sample so often (100 to 60000); with RUN: from now on, 0 for not at all",
     .low = 0,
     .high = TG_MONITOR_INTERVAL_MOST_MS},
    {.name = "duration",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(duration),
     .initial = "0",
     .metavar = "SECONDS",
     .help = "stop after so long; 0: when asked to, by ^C",
     .low = 0,
     .high = 1e9},
    {.name = "output",
     .type = TG_OPTION_STRING,
     .offset = AT(output),
     .metavar = "FOLDER",
     .help = "write samples to FOLDER/system, as a job does",
     .flags = TG_OPTION_FOLDER},
    {.name = "budget",
     .type = TG_OPTION_INT,
     .offset = AT(budget_mib),
     .initial = "64",
     .metavar = "MIB",
     .help = "disk for them; where it is full, old ones are made fewer",
     .low = 1,
     .high = 1 << 20},
    {.name = "export",
     .type = TG_OPTION_STRING,
     .offset = AT(export_to),
     .metavar = "FOLDER",
     .help = "write the samples of RUN as lines in FOLDER/system/incremental",
     .flags = TG_OPTION_FOLDER},
    {.name = "import",
     .type = TG_OPTION_STRING,
     .offset = AT(import_from),
     .metavar = "FOLDER",
     .help = "make a run of such lines, in --output",
     .flags = TG_OPTION_FOLDER},
};
static const tg_command_group GROUPS[] = {{"Monitor", OPTIONS, TG_COUNT_OF(OPTIONS), 0}};

/* What is shown, by the monitor's thread; the first one looks at it between. */
typedef struct show {
    bool json, terminal;
    char host[HOST_BYTES];
    size_t lines;
    tg_text text;
    atomic_int status;
} show;

static void show_sample(void *user, const tg_system_sample *sample, size_t cores, size_t devices)
{
    show *s = user;
    if (s->json) {
        if (!s->lines++)
            tg_system_head_print(s->host, cores, devices, &s->text);
        if (s->text.length)
            tg_text_append_char(&s->text, '\n');
        tg_system_sample_print(sample, cores, devices, &s->text);
        tg_text_append_char(&s->text, '\n');
    } else {
        if (s->lines == 0 || (s->terminal && s->lines % HEAD_EVERY == 0))
            tg_monitor_text_head(&s->text);
        s->lines++;
        tg_monitor_text_sample(sample, cores, devices, &s->text);
    }
    const tg_status status = tg_console_print(&s->text);
    if (status < 0)
        atomic_store(&s->status, status);
}

/* Until the time is over, somebody wants to leave, or nobody reads any more. */
static void wait_for_end(double duration_s, const show *s)
{
    const int64_t begin = tg_clock_ns();
    struct pollfd stop = {.fd = tg_signal_fd(), .events = POLLIN};
    while (!tg_signal_stop() && !atomic_load(&s->status) &&
           (duration_s <= 0 || tg_clock_seconds(tg_clock_ns() - begin) < duration_s))
        (void)poll(&stop, 1, LOOK_MS);
}

static tg_status watch_machine(const monitor_settings *settings, bool json)
{
    show s = {.json = json, .terminal = isatty(STDOUT_FILENO)};
    tg_monitor *monitor;
    tg_monitor_cost cost;
    char *folder = settings->output ? tg_path_join(settings->output, "system") : NULL;
    (void)gethostname(s.host, sizeof s.host - 1);
    const tg_monitor_options options = {.sampler = {.root = ""},
                                        .folder = folder,
                                        .host = s.host,
                                        .interval_ms = settings->interval,
                                        .budget_bytes = (uint64_t)settings->budget_mib << 20,
                                        .show = show_sample,
                                        .user = &s};
    tg_status status = tg_monitor_start(&options, &monitor);
    if (status == TG_OK) {
        wait_for_end(settings->duration, &s);
        tg_monitor_stop(monitor, &cost);
        tg_monitor_cost_print(&cost, &s.text);
        tg_log_info("monitor: %s", tg_text_string(&s.text));
        if (atomic_load(&s.status) && !tg_console_reader_left())
            status = tg_fail(TG_ERROR_MACHINE, "cannot write to standard output");
    }
    tg_text_done(&s.text);
    free(folder);
    return status;
}

static void ask_interval(void *user, tg_control *control)
{
    control->monitor_interval_ms = *(const int64_t *)user;
}

static tg_status set_interval(const tg_invocation *invocation, const monitor_settings *s)
{
    const char *run = invocation->arguments[0];
    int64_t interval = s->interval;
    if (tg_options_source(invocation->options, "interval") == TG_OPTION_FROM_DEFAULT)
        return tg_fail(TG_ERROR_USAGE,
                       "what of %s: --interval MS sets how often its machines are sampled, "
                       "--export FOLDER writes its samples; tagine watch shows them",
                       run);
    char *system = tg_path_join(run, "system");
    const bool there = system && tg_file_exists(system);
    free(system);
    if (!there)
        return tg_fail(TG_ERROR_INPUT, "%s: no run directory", run);
    TG_TRY(tg_control_update(run, ask_interval, &interval));
    tg_log_info("%s: %s, seen by a job that runs within a second", run,
                interval ? "asked" : "asked to stop sampling");
    return TG_OK;
}

static tg_status tell(const tg_invocation *invocation, const char *path,
                      const tg_incremental_count *count)
{
    tg_text text = {0};
    if (invocation->common->json)
        tg_text_append_format(&text, "{\"machines\":%zu,\"samples\":%zu,\"rows\":%zu}\n",
                              count->nodes, count->samples, count->rows);
    else
        tg_text_append_format(&text, "%s: %zu machine%s, %zu samples, %zu rows\n", path,
                              count->nodes, count->nodes == 1 ? "" : "s", count->samples,
                              count->rows);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static tg_status run_export(const tg_invocation *invocation, const monitor_settings *s)
{
    tg_incremental_count count;
    if (!invocation->argument_count)
        return tg_fail(TG_ERROR_USAGE, "--export FOLDER RUN: the run is missing");
    TG_TRY(tg_system_export(invocation->arguments[0], s->export_to, &count));
    return tell(invocation, s->export_to, &count);
}

static tg_status run_import(const tg_invocation *invocation, const monitor_settings *s)
{
    tg_incremental_count count;
    if (!s->output || invocation->argument_count)
        return tg_fail(TG_ERROR_USAGE,
                       "--import FOLDER --output RUN: give the new run as --output");
    TG_TRY(tg_system_import(s->import_from, s->output, &count));
    return tell(invocation, s->output, &count);
}

static tg_status run(const tg_invocation *invocation)
{
    const monitor_settings *s = invocation->settings;
    if (!tg_monitor_interval_is_good(s->interval))
        return tg_fail(TG_ERROR_USAGE, "--interval %lld: from %d to %d milliseconds",
                       (long long)s->interval, TG_MONITOR_INTERVAL_LEAST_MS,
                       TG_MONITOR_INTERVAL_MOST_MS);
    if (s->export_to && s->import_from)
        return tg_fail(TG_ERROR_USAGE, "--export and --import: one of them");
    if (s->import_from)
        return run_import(invocation, s);
    if (s->export_to)
        return run_export(invocation, s);
    if (invocation->argument_count)
        return set_interval(invocation, s);
    if (!s->interval)
        return tg_fail(TG_ERROR_USAGE, "--interval 0 is for a run that goes; name it");
    return watch_machine(s, invocation->common->json);
}

static const tg_command_note EXAMPLES[] = {
    {"tagine monitor --duration 1", "This machine for a second, in lines of 80 columns"},
    {"tagine monitor --duration 1 --output machine", "The same, kept where report finds it"},
    {"tagine monitor runs/teacher --interval 1000", "A job that runs samples once a second now"},
    {"tagine monitor --export rows runs/teacher", "Its samples as the withdrawn monitor kept them"},
    {"tagine monitor --import rows --output runs/old", "And a job of that one, to look at here"},
    {0},
};

static const tg_command_note FILES[] = {
    {"RUN/control.json", "What is asked of the job that runs there"},
    {"OUTPUT/system/HOST.jsonl", "A line a sample"},
    {0},
};

const tg_command tg_command_monitor = {
    .name = "monitor",
    .arguments = "[RUN]",
    .summary = "Sample this machine, or set how often a job does",
    .description =
        "Without RUN: a line for each sample of this machine (every core, who waits for one, "
        "memory,\ndisks, network, GPUs), until ^C or for --duration; --output keeps them. --json "
        "prints what\nis kept.\n\nWith RUN: how often the job that runs there samples its machines "
        "from now on. train and\ndistill do that by themselves (--monitor-interval).\n\n--export "
        "and --import write and read the rows of the withdrawn managed monitor, so that old\njobs "
        "and new ones are looked at with the same commands.",
    .examples = EXAMPLES,
    .files = FILES,
    .see_also = "watch, report, train, distill",
    .work = TG_COMMAND_PRINTS,
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(monitor_settings),
    .arguments_min = 0,
    .arguments_max = 1,
    .run = run,
};
