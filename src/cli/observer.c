#include "cli/observer.h"

#include "base/log.h"
#include "base/option.h"
#include "diagnose/diagnose.h"
#include "os/clock.h"

#include <math.h>
#include <stddef.h>

#define PROGRAM "/proc/self/exe"
#define REST 50.0        /* times as long as a round took, before the next */
#define END_WAIT_S 10.0  /* for what runs at the end, and once more for the last round */
#define POST_WAIT_S 12.0 /* for each message at the end: longer than its own limit */

#define AT(field) offsetof(tg_observer_choice, field)
const tg_option tg_observer_option_table[TG_OBSERVER_OPTION_COUNT] = {
    {.name = "diagnose-interval",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(interval_s),
     .initial = "60",
     .metavar = "S",
     .help = "ask all rules so often, and say what is new (findings.json of the run); 0: off",
     .low = 0,
     .high = 1e6},
    {.name = "diagnose-limits",
     .type = TG_OPTION_STRING,
     .offset = AT(limits),
     .metavar = "RULE.NAME=NUMBER,...",
     .help = "other limits than usual, as --limits of diagnose"},
    {.name = "on-finding",
     .type = TG_OPTION_STRING,
     .offset = AT(on_finding),
     .metavar = "RULE=ACTION,...",
     .help = "what to do when RULE (or warning, or serious) finds something: warn, stop, "
             "webhook:URL or webhook:@FILE"},
};

/* A round: RUN stands for the run's folder, LIMITS for the option's text. */
static const char RUN[] = "RUN", LIMITS[] = "LIMITS";
enum { WORDS = 8 };
static const char *const PROGRAMS[][WORDS] = {
    {"tagine", "diagnose", RUN, "--write", "--quiet", LIMITS, NULL},
};
enum { PROGRAM_COUNT = sizeof PROGRAMS / sizeof *PROGRAMS };

tg_status tg_observer_check(const tg_observer_choice *choice)
{
    tg_reactions ignored;
    const tg_diagnose_options options = {.limits = choice->limits};
    TG_TRY(tg_diagnose_check_options(&options));
    TG_TRY(tg_reactions_parse(choice->on_finding, &ignored));
    if (ignored.count && choice->interval_s == 0)
        return tg_fail(TG_ERROR_USAGE,
                       "--on-finding: with --diagnose-interval 0 nothing would ever be found");
    return TG_OK;
}

static int64_t after(double seconds)
{
    return tg_clock_ns() + (int64_t)(seconds * 1e9);
}

void tg_observer_begin(tg_observer *observer, const tg_observer_choice *choice,
                       const char *run_path)
{
    *observer = (tg_observer){.limits = choice->limits, .interval_s = choice->interval_s};
    if (choice->interval_s == 0 || tg_reactions_parse(choice->on_finding, &observer->reactions) < 0)
        return;
    observer->run_path = run_path;
    observer->next_ns = after(choice->interval_s);
}

/* Said once: it is the same each time. */
static void tell_program(tg_observer *observer, const char *name, const char *why)
{
    if (!observer->told_program)
        tg_log_warning("%s beside the job: %s; training goes on without it", name, why);
    observer->told_program = true;
}

static bool start_program(tg_observer *observer)
{
    const char *argv[WORDS + 1] = {0};
    char limits[64 + TG_REACTION_TARGET];
    size_t n = 0;
    for (const char *const *word = PROGRAMS[observer->program]; *word; word++) {
        if (*word == LIMITS && !observer->limits)
            continue;
        argv[n++] = *word == RUN ? observer->run_path : *word;
        if (*word == LIMITS) {
            tg_finding_say(limits, sizeof limits, "--limits=%s", observer->limits);
            argv[n - 1] = limits;
        }
    }
    if (tg_child_start(&observer->child, PROGRAM, argv, NULL, 0) == TG_OK)
        return true;
    tell_program(observer, argv[1], tg_error_message());
    return false;
}

static void end_round(tg_observer *observer)
{
    observer->next_ns = after(fmax(observer->interval_s, REST * observer->round_s));
}

static void start_round(tg_observer *observer)
{
    observer->program = 0;
    observer->round_s = 0;
    if (!start_program(observer))
        end_round(observer);
}

/* A program of the round has ended. */
static void go_on(tg_observer *observer)
{
    observer->round_s += observer->child.seconds;
    if (observer->program == 0 && observer->child.exit_code == 0)
        tg_observer_read_findings(observer);
    else if (observer->child.exit_code != 0)
        tell_program(observer, PROGRAMS[observer->program][1],
                     "it failed; called by hand it says why");
    if (++observer->program == PROGRAM_COUNT || !start_program(observer))
        end_round(observer);
}

static void take_end(tg_observer *observer)
{
    if (observer->posting) {
        observer->posting = false;
        tg_observer_post_ended(observer);
    } else {
        go_on(observer);
    }
}

void tg_observer_look(tg_observer *observer)
{
    if (!observer->run_path)
        return;
    observer->looked = true;
    if (observer->child.pid) {
        if (tg_child_poll(&observer->child))
            take_end(observer);
        return;
    }
    if (tg_observer_post_next(observer))
        observer->posting = true;
    else if (tg_clock_ns() >= observer->next_ns)
        start_round(observer);
}

/* Until nothing runs any more and the round is through; what takes too long is ended. */
static void finish(tg_observer *observer)
{
    const int64_t end = after(END_WAIT_S);
    while (observer->child.pid) {
        const double left = tg_clock_seconds(end - tg_clock_ns());
        if (!tg_child_finish(&observer->child, observer->posting ? POST_WAIT_S : fmax(0, left)))
            return;
        take_end(observer);
    }
}

void tg_observer_end(tg_observer *observer)
{
    if (!observer->run_path)
        return;
    observer->ending = true;
    finish(observer);
    if (observer->looked && !observer->child.pid)
        start_round(observer);
    finish(observer);
    while (!observer->child.pid && tg_observer_post_next(observer)) {
        observer->posting = true;
        finish(observer);
    }
    for (size_t i = 0; i < observer->post_count; i++)
        tg_text_done(&observer->posts[i].body);
    observer->run_path = NULL;
}
