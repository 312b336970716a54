/* tune_plot.h - what came of tune's trials as a chart: images/s against context switches and against the run queue, the choice
 * (the knee) marked, and why in words.
 *
 * Shown are the settings with the choice's batch and buckets, or all where it has no other; letters name them.
 * Errors  TG_ERROR_MACHINE of writing. Memory none that is kept.
 */
#ifndef TG_CLI_TUNE_PLOT_H
#define TG_CLI_TUNE_PLOT_H

#include "base/text.h"
#include "train/tune.h"

enum { TG_TUNE_DOTS = 26 };

/* A setting in the chart. */
typedef struct tg_tune_dot {
    char letter;
    tg_tune_setting setting;
    double images_per_s, switches_per_s, run_queue; /* run_queue NaN: not known */
} tg_tune_dot;

typedef struct tg_tune_plot {
    tg_tune_dot dots[TG_TUNE_DOTS]; /* by setting */
    size_t count, knee;
} tg_tune_plot;

/* count 0: nothing was measured. */
void tg_tune_plot_make(const tg_tune_result *result, tg_tune_plot *out);
/* In 80 columns, with a legend and why; nothing for fewer than two dots. */
void tg_tune_plot_print(const tg_tune_plot *plot, tg_text *out);
void tg_tune_plot_print_why(const tg_tune_plot *plot, tg_text *out);
/* The same as a picture that any browser shows (tune_svg.c). */
void tg_tune_plot_draw(const tg_tune_plot *plot, const char *title, tg_text *out);
/* Writes it to `path`. */
tg_status tg_tune_plot_write(const tg_tune_plot *plot, const char *title,
                             const char *path) TG_MUST_CHECK;

/* The largest of a panel: switches (0) or run queue (1); 0: nothing is known. */
double tg_tune_plot_most(const tg_tune_plot *plot, int panel);
double tg_tune_plot_x(const tg_tune_dot *dot, int panel);
/* The rates that the chart begins and ends with. */
void tg_tune_plot_range(const tg_tune_plot *plot, double *out_low, double *out_high);

#endif
