/* compare.h - two runs side by side: what was set differently, and what came of it.
 *
 *   settings      options and machines that differ
 *   rows          speed, phases, use of the machine, memory, learning: a number of each run, with its noise
 *   ledger        where the wall time of each went
 *   operations    seconds a step of each kind of operation: added, gone, faster, slower
 *   findings      of diagnosis: resolved, new, still there
 *   predictions   what a finding of A promised for a setting, and what B measured
 *   alike         whether both learn the same (the withdrawn tool's SimilarAcrossRuns)
 *
 * Noise     report/measure.h: a difference inside it is none. It is the noise within each run; a machine that is another one
 *           on another day is not in it.
 * Photos    where the runs have steps of different size, times are those of as many photos as a step of A has.
 * Warm-up   the first tenth of the steps, ten at most, is left out of all times.
 * Honest    a prediction is held against the measurement alone only where nothing else was set differently that may change
 *           the time (`others`); several that were followed together are held against it together, as a product.
 *
 * Memory    heap, owned by the struct; histories and diagnoses are borrowed while it is made. Errors TG_ERROR_MACHINE.
 * Threads   reentrant.
 */
#ifndef TG_REPORT_COMPARE_H
#define TG_REPORT_COMPARE_H

#include "base/text.h"
#include "diagnose/diagnose.h"
#include "profile/ledger.h"
#include "report/measure.h"
#include "run/history.h"

/* What differs. */
typedef struct tg_compare_setting {
    char name[48], a[64], b[64]; /* "-": not set, or not known */
    bool option;                 /* of job.yaml; else of the machine */
    bool
        time; /* may change the time of a step: all but what only says where records go and when to stop */
} tg_compare_setting;

typedef enum tg_compare_section {
    TG_COMPARE_SPEED,
    TG_COMPARE_PHASES,
    TG_COMPARE_USE,
    TG_COMPARE_MEMORY,
    TG_COMPARE_LEARNING,
    TG_COMPARE_SECTIONS
} tg_compare_section;

typedef struct tg_compare_row {
    tg_compare_section section;
    char key[48];     /* "step_s" */
    char name[48];    /* for people */
    const char *unit; /* "s", "images/s", "share", "%", "bytes", "1/s", "threads", "cores", "" */
    tg_measure a, b;
    tg_change change;
    int good; /* 1: more is better, -1: less is, 0: neither */
} tg_compare_row;

typedef enum tg_operation_change {
    TG_OPERATION_SAME,
    TG_OPERATION_ADDED,
    TG_OPERATION_GONE,
    TG_OPERATION_FASTER,
    TG_OPERATION_SLOWER
} tg_operation_change;

/* All of one name and phase, over shapes and types; means over ranks. */
typedef struct tg_compare_operation {
    char name[48], phase[24], a_dtype[12], b_dtype[12];
    double a_s, b_s; /* a step, of as many photos as one of A has; NaN: it has none */
    tg_operation_change change;
} tg_compare_operation;

typedef enum tg_finding_fate {
    TG_FINDING_RESOLVED,
    TG_FINDING_NEW,
    TG_FINDING_STILL,
    TG_FINDING_UNASKED /* the rule lacked its input in one of them: nobody can say */
} tg_finding_fate;

typedef struct tg_compare_finding {
    const char *rule;
    tg_finding_fate fate;
    tg_severity severity;
    char title[TG_FINDING_WORDS]; /* of B where it is there, else of A */
} tg_compare_finding;

typedef enum tg_advice {
    TG_ADVICE_FOLLOWED,
    TG_ADVICE_OTHER, /* set differently, but not to that value */
    TG_ADVICE_NOT_TRIED
} tg_advice;

typedef struct tg_compare_prediction {
    const char *rule;
    char option[32], old_value[64], new_value[64], tried[64]; /* tried: the value in B */
    tg_advice advice;
    double step_s, predicted_s, confidence;
} tg_compare_prediction;

/* The predictions that were followed, one or several, against the measurement. Steps are those that diagnosis looks at
 * (diagnose/use.h: without stalls), as the prediction's are. */
typedef struct tg_compare_joint {
    size_t followed;
    size_t others;      /* settings besides these that differ and may change the time */
    double predicted_s; /* all that were followed; NaN: none */
    double step_a_s, step_b_s;
    double gain_came;       /* share of the gain; NaN: others differ too, or none was followed */
    double gain_half_width; /* the noise in that share; NaN: not known */
} tg_compare_joint;

/* The course of the loss over the photos that both have seen, in equal parts. */
typedef struct tg_compare_alike {
    size_t parts;       /* 0: not known */
    double within;      /* share of the parts in which the mean losses differ by 2 % at most */
    double most;        /* relative difference, the greatest */
    size_t equal_steps; /* first steps whose losses are equal to 1e-6 */
    bool alike;         /* within >= 0.9 */
} tg_compare_alike;

typedef struct tg_comparison {
    char *a, *b;               /* paths */
    double images_a, images_b; /* photos a step */
    bool scaled;               /* they differ */
    tg_compare_setting *settings;
    size_t setting_count;
    tg_compare_row *rows;
    size_t row_count;
    tg_ledger ledger_a, ledger_b;
    tg_compare_operation *operations; /* greatest difference first */
    size_t operation_count;
    tg_compare_finding *findings;
    size_t finding_count;
    tg_compare_prediction *predictions;
    size_t prediction_count;
    tg_compare_joint joint;
    tg_compare_alike alike;
} tg_comparison;

tg_status tg_compare(const tg_history *a, const tg_history *b, tg_comparison *out) TG_MUST_CHECK;
void tg_comparison_done(tg_comparison *comparison);

/* The row of that key; NULL: there is none. */
const tg_compare_row *tg_comparison_row(const tg_comparison *comparison, const char *key);

/* 80 columns, for people; one JSON object and a line end. */
void tg_comparison_print_text(const tg_comparison *comparison, tg_text *out);
void tg_comparison_print_json(const tg_comparison *comparison, tg_text *out);

/* Several runs, a line each. */
typedef struct tg_compare_line {
    char *path;
    double images_per_s, step_s, step_half_width, data_share, busy, peak_rss_bytes, top1, hours;
    double images; /* photos a step */
    bool ended;
} tg_compare_line;

tg_status tg_compare_line_make(const tg_history *history, tg_compare_line *out) TG_MUST_CHECK;
void tg_compare_lines_print_text(const tg_compare_line *lines, size_t count, tg_text *out);
void tg_compare_lines_print_json(const tg_compare_line *lines, size_t count, tg_text *out);

#endif
