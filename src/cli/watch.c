/* tagine watch: a run in a terminal while it goes, from its files alone. */
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/signal.h"
#include "cli/terminal.h"
#include "report/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct watch_settings {
    double interval;
    bool once;
} watch_settings;

static const tg_option OPTIONS[] = {
    {.name = "interval",
     .type = TG_OPTION_DOUBLE,
     .offset = offsetof(watch_settings, interval),
     .initial = "1",
     .metavar = "SECONDS",
     .help = "how often to look",
     .low = 0.1,
     .high = 3600},
    {.name = "once",
     .type = TG_OPTION_BOOL,
     .offset = offsetof(watch_settings, once),
     .help = "print how it stands now, and leave"},
};

static const tg_command_group GROUPS[] = {{"Watch", OPTIONS, TG_COUNT_OF(OPTIONS), 0}};

/* The wall clock, as the run's files have it. */
static double wall_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* All of it, on 80 columns where the output is no terminal. */
static tg_status print_once(const tg_live *live, bool terminal)
{
    tg_text text = {0};
    tg_screen screen = {.glyphs = tg_terminal_glyphs(terminal)};
    tg_terminal_size(&screen.columns, &screen.rows);
    screen.rows = 1000;
    tg_screen_print(&screen, live, &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static tg_status draw(const tg_live *live)
{
    tg_text text = {0};
    tg_screen screen = {.glyphs = tg_terminal_glyphs(true), .keys = "q quits"};
    tg_terminal_size(&screen.columns, &screen.rows);
    tg_screen_print(&screen, live, &text);
    tg_status status = tg_text_check(&text, "the screen");
    if (status == TG_OK)
        status = tg_terminal_draw(&text);
    tg_text_done(&text);
    return status;
}

static bool goes_on(const tg_live *live)
{
    return tg_live_get_state(live) == TG_LIVE_RUNS;
}

/* Until the run ends or somebody has seen enough. */
static tg_status follow_on_terminal(tg_live *live, double interval)
{
    tg_terminal_event event = TG_TERMINAL_TIME;
    while (event != TG_TERMINAL_QUIT) {
        if (event == TG_TERMINAL_TIME)
            TG_TRY(tg_live_look(live, wall_time(), NULL));
        if (!goes_on(live))
            return TG_OK;
        TG_TRY(draw(live));
        event = tg_terminal_wait(interval);
    }
    return TG_OK;
}

typedef struct known_news {
    size_t warnings, findings;
    int64_t step;
} known_news;

static void append_visible(tg_text *out, const char *what, const char *text)
{
    tg_text_append_string(out, what);
    tg_text_append_visible(out, text, "\\");
    tg_text_append_char(out, '\n');
}

/* What has come since the last time, in lines. */
static void append_news(const tg_live *live, known_news *told, tg_text *out)
{
    const tg_step_record *last = tg_live_last_step(live);
    if (live->warning_count < told->warnings)
        told->warnings = 0;
    if (live->warning_count > told->warnings + TG_LIVE_WARNINGS)
        told->warnings = live->warning_count - TG_LIVE_WARNINGS;
    for (; told->warnings < live->warning_count; told->warnings++)
        append_visible(out, "log: ", live->warnings[told->warnings % TG_LIVE_WARNINGS]);
    for (size_t i = told->findings; i < live->finding_count && i < TG_LIVE_FINDINGS; i++)
        append_visible(out, "finding: ", live->findings[i].title);
    told->findings = live->finding_count;
    if (last && last->step != told->step) {
        tg_screen_print_line(live, out);
        tg_text_append_char(out, '\n');
        told->step = last->step;
    }
}

static tg_status follow_in_lines(tg_live *live, double interval)
{
    known_news told = {0};
    tg_text text = {0};
    tg_status status = TG_OK;
    tg_terminal_event event = TG_TERMINAL_TIME;
    while (status == TG_OK && event != TG_TERMINAL_QUIT && goes_on(live)) {
        append_news(live, &told, &text);
        status = text.length ? tg_console_print(&text) : TG_OK;
        event = tg_terminal_wait(interval);
        if (status == TG_OK && event == TG_TERMINAL_TIME)
            status = tg_live_look(live, wall_time(), NULL);
    }
    tg_text_done(&text);
    return status;
}

static tg_status follow(tg_live *live, double interval)
{
    tg_status status;
    if (!tg_terminal_is_there())
        return follow_in_lines(live, interval);
    status = tg_terminal_open();
    if (status == TG_OK)
        status = follow_on_terminal(live, interval);
    tg_terminal_close();
    return status;
}

/* A wish to leave is no failure: nothing is lost by it. */
static tg_status run(const tg_invocation *invocation)
{
    const watch_settings *s = invocation->settings;
    tg_live *live = malloc(sizeof *live);
    if (!live)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    tg_status status = tg_live_open(invocation->arguments[0], NULL, live);
    if (status < 0) {
        free(live);
        return status;
    }
    status = tg_live_look(live, wall_time(), NULL);
    if (status == TG_OK && !s->once && goes_on(live))
        status = follow(live, s->interval);
    if (status == TG_OK && (s->once || !tg_signal_stop()))
        status = print_once(live, tg_terminal_is_there());
    tg_live_close(live);
    free(live);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine watch --once runs/teacher", "How a run stands, in lines of 80 columns"},
    {"tagine watch runs/teacher", "The same once a second, until the run ends or q is pressed"},
    {0},
};

const tg_command tg_command_watch = {
    .name = "watch",
    .arguments = "RUN",
    .summary = "Follow a run in a terminal",
    .description =
        "Shows progress and time left, loss, accuracy and images/s, what the last minute went "
        "to,\nevery core of every machine, threads, memory, disks and network, the slowest rank, "
        "findings and\nthe last warnings. Only reads the files of RUN, so that any machine that "
        "sees them will do.\n\nEnds with the run, or by q or ^C, and leaves the last state "
        "standing. Where the output is no\nterminal there is a line each time instead. NO_COLOR "
        "takes colours away; without UTF-8 in LANG\nall is ASCII.",
    .examples = EXAMPLES,
    .see_also = "compare, metrics, train, distill",
    .work = TG_COMMAND_PRINTS,
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(watch_settings),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
