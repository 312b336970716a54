/* observer.h - what the first rank of a job has done beside it while it runs: findings.json kept fresh by a program of its
 * own, new findings said, and what --on-finding asks for.
 *
 * Every interval_s one round of programs runs, one after the other and never two at once (the table in observer.c: `tagine
 * diagnose RUN --write`), at the lowest priority (os/child.h); a round that took long is not followed by the next before
 * fifty times as long, so that it takes no more than a fiftieth of a core. Then findings.json is read: a finding that
 * counts and is a warning or worse is said once, and that it is gone once, when three rounds in a row did not find it.
 * At the end a last round sees the whole run.
 * Nothing of it can fail a job: what does not work is a warning said once, and training goes on.
 *
 * Threads the job's own one. Memory: the struct, and texts of messages under way. Errors: only of the options.
 */
#ifndef TG_CLI_OBSERVER_H
#define TG_CLI_OBSERVER_H

#include "base/option.h"
#include "base/text.h"
#include "cli/on_finding.h"
#include "os/child.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_observer_choice {
    double interval_s; /* 0: off */
    const char *limits, *on_finding;
} tg_observer_choice;

enum { TG_OBSERVER_OPTION_COUNT = 3, TG_OBSERVER_KNOWN = 64, TG_OBSERVER_POSTS = 16 };
extern const tg_option tg_observer_option_table[TG_OBSERVER_OPTION_COUNT];

/* A finding that was said: by rule, machine, rank and option. */
typedef struct tg_observer_known {
    char key[400];
    tg_severity severity;
    bool found;   /* in the round that is read */
    int missing;  /* rounds in a row */
    bool cleared; /* and that was said */
} tg_observer_known;

typedef struct tg_observer_post {
    char target[TG_REACTION_TARGET];
    tg_text body;
} tg_observer_post;

typedef struct tg_observer {
    const char *run_path; /* NULL: off. Borrowed, as limits */
    const char *limits;
    double interval_s;
    tg_reactions reactions;
    tg_child child;
    bool posting;   /* the child is a message, not of a round */
    bool looked;    /* there are steps to look at */
    bool ending;    /* the job is over: nothing can be stopped any more */
    size_t program; /* of the round */
    double round_s; /* that it took so far */
    int64_t next_ns;
    tg_observer_known known[TG_OBSERVER_KNOWN];
    size_t known_count;
    tg_observer_post posts[TG_OBSERVER_POSTS]; /* waiting */
    size_t post_count;
    bool told_program, told_post; /* that one of them does not work */
    char stop_reason[600];        /* "": no finding asked to stop */
} tg_observer;

/* Whether the options are any. */
tg_status tg_observer_check(const tg_observer_choice *choice) TG_MUST_CHECK;
/* After tg_observer_check. */
void tg_observer_begin(tg_observer *observer, const tg_observer_choice *choice,
                       const char *run_path);
/* Cheap; to be called every step, and now and then while the model is scored. */
void tg_observer_look(tg_observer *observer);
/* A last round, in limited time, where there were steps. Accepts one that never began. */
void tg_observer_end(tg_observer *observer);

/* Of observer_findings.c: reads findings.json after a round, says what is new, and does what was asked for. */
void tg_observer_read_findings(tg_observer *observer);
/* Of observer_post.c: the next message on its way, as the child; false: none waits. */
bool tg_observer_post_next(tg_observer *observer);
void tg_observer_post_add(tg_observer *observer, const char *target, const char *body);
void tg_observer_post_ended(tg_observer *observer);

#endif
