#include "cli/tune_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 32, HEIGHT = 9, PANELS = 2 };

/* The rates shown span this share of the best at least, so that noise does not look like a cliff. */
static const double LEAST_SPAN = 0.1;

static bool shown(const tg_tune_row *row, const tg_tune_row *best, bool all)
{
    return row->fits && row->trials > 0 &&
           (all || (row->setting.batch_size == best->setting.batch_size &&
                    row->setting.bucket_mib == best->setting.bucket_mib));
}

static bool is_before(const tg_tune_setting *a, const tg_tune_setting *b)
{
    if (a->batch_size != b->batch_size)
        return a->batch_size < b->batch_size;
    if (a->threads != b->threads)
        return a->threads < b->threads;
    if (a->workers != b->workers)
        return a->workers < b->workers;
    return a->bucket_mib < b->bucket_mib;
}

static void add(tg_tune_plot *plot, const tg_tune_row *row)
{
    size_t at = plot->count;
    if (plot->count == TG_TUNE_DOTS)
        return;
    for (; at > 0 && is_before(&row->setting, &plot->dots[at - 1].setting); at--)
        plot->dots[at] = plot->dots[at - 1];
    plot->dots[at] =
        (tg_tune_dot){.setting = row->setting,
                      .images_per_s = row->images_per_s,
                      .switches_per_s = row->last.voluntary_per_s + row->last.involuntary_per_s,
                      .run_queue = row->last.run_queue};
    plot->count++;
}

static void collect(const tg_tune_result *r, bool all, tg_tune_plot *out)
{
    const tg_tune_row *best = &r->rows[r->best];
    *out = (tg_tune_plot){0};
    add(out, best);
    for (size_t i = 0; i < r->row_count; i++)
        if (i != r->best && shown(&r->rows[i], best, all))
            add(out, &r->rows[i]);
}

void tg_tune_plot_make(const tg_tune_result *r, tg_tune_plot *out)
{
    *out = (tg_tune_plot){0};
    if (r->best == TG_TUNE_NO_ROW)
        return;
    collect(r, false, out);
    if (out->count < 2)
        collect(r, true, out);
    const tg_tune_setting *best = &r->rows[r->best].setting;
    for (size_t i = 0; i < out->count; i++) {
        const tg_tune_setting *s = &out->dots[i].setting;
        out->dots[i].letter = (char)('a' + i);
        if (!is_before(s, best) && !is_before(best, s))
            out->knee = i;
    }
    out->dots[out->knee].letter = (char)('A' + out->knee);
}

double tg_tune_plot_x(const tg_tune_dot *dot, int panel)
{
    return panel == 0 ? dot->switches_per_s : dot->run_queue;
}

double tg_tune_plot_most(const tg_tune_plot *plot, int panel)
{
    double most = 0;
    for (size_t i = 0; i < plot->count; i++)
        most = fmax(most, tg_tune_plot_x(&plot->dots[i], panel)); /* NaN loses */
    return most;
}

void tg_tune_plot_range(const tg_tune_plot *plot, double *out_low, double *out_high)
{
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < plot->count; i++) {
        low = fmin(low, plot->dots[i].images_per_s);
        high = fmax(high, plot->dots[i].images_per_s);
    }
    *out_low = fmin(low, (1 - LEAST_SPAN) * high);
    *out_high = high;
}

typedef char grid[HEIGHT][PANELS][WIDTH + 1];

static void put(const tg_tune_plot *plot, const tg_tune_dot *dot, grid out)
{
    double low, high;
    tg_tune_plot_range(plot, &low, &high);
    const int row = (int)lround((high - dot->images_per_s) / (high - low) * (HEIGHT - 1));
    for (int p = 0; p < PANELS; p++) {
        const double x = tg_tune_plot_x(dot, p), most = tg_tune_plot_most(plot, p);
        if (!isnan(x) && most > 0)
            out[row][p][(int)lround(x / most * (WIDTH - 1))] = dot->letter;
    }
}

static void print_grid(const tg_tune_plot *plot, tg_text *out)
{
    grid g;
    double low, high;
    memset(g, ' ', sizeof g);
    for (size_t i = 0; i < plot->count; i++)
        put(plot, &plot->dots[i], g);
    put(plot, &plot->dots[plot->knee], g); /* over all others */
    tg_tune_plot_range(plot, &low, &high);
    tg_text_append_string(out, "images/s\n");
    for (int row = 0; row < HEIGHT; row++) {
        if (row == 0 || row == HEIGHT - 1)
            tg_text_append_format(out, "%8.1f |", row ? low : high);
        else
            tg_text_append_string(out, "         |");
        for (int p = 0; p < PANELS; p++)
            tg_text_append_format(out, "%.*s%s", WIDTH, g[row][p], p ? "\n" : " |");
    }
}

static void print_axes(const tg_tune_plot *plot, tg_text *out)
{
    static const char *const names[PANELS] = {"context switches/s", "run queue, threads"};
    static const char dashes[] = "--------------------------------";
    tg_text_append_format(out, "         +%s-+%s\n          ", dashes, dashes);
    for (int p = 0; p < PANELS; p++) {
        const double most = tg_tune_plot_most(plot, p);
        char end[32] = "not known";
        if (most > 0)
            snprintf(end, sizeof end, "%.*f", p ? 1 : 0, most);
        tg_text_append_format(out, "0  %-*s%s%s", WIDTH - 3 - (int)strlen(end), names[p], end,
                              p ? "\n" : "  ");
    }
}

static void print_setting(const tg_tune_setting *s, tg_text *out)
{
    tg_text_append_format(out, "batch %lld, %d thread%s, %d worker%s", (long long)s->batch_size,
                          s->threads, s->threads == 1 ? "" : "s", s->workers,
                          s->workers == 1 ? "" : "s");
}

static void print_legend(const tg_tune_plot *plot, tg_text *out)
{
    for (size_t i = 0; i < plot->count; i++) {
        const tg_tune_dot *d = &plot->dots[i];
        tg_text line = {0};
        print_setting(&d->setting, &line);
        tg_text_append_format(out, "%c %c  %-32s %8.1f images/s %8.0f/s",
                              i == plot->knee ? '>' : ' ', d->letter, tg_text_string(&line),
                              d->images_per_s, d->switches_per_s);
        if (isnan(d->run_queue))
            tg_text_append_char(out, '\n');
        else
            tg_text_append_format(out, " queue %.1f\n", d->run_queue);
        tg_text_done(&line);
    }
}

/* The fastest beside the knee, or where that is the knee, the one that switches most. */
static const tg_tune_dot *rival_of(const tg_tune_plot *plot)
{
    const tg_tune_dot *knee = &plot->dots[plot->knee], *fastest = knee, *busiest = NULL;
    for (size_t i = 0; i < plot->count; i++) {
        const tg_tune_dot *d = &plot->dots[i];
        if (d->images_per_s > fastest->images_per_s)
            fastest = d;
        if (d != knee && (!busiest || d->switches_per_s > busiest->switches_per_s))
            busiest = d;
    }
    return fastest != knee ? fastest : busiest;
}

void tg_tune_plot_print_why(const tg_tune_plot *plot, tg_text *out)
{
    const tg_tune_dot *knee = &plot->dots[plot->knee], *rival = rival_of(plot);
    if (!rival)
        return;
    tg_text_append_format(out, "The knee is %c: ", knee->letter);
    print_setting(&knee->setting, out);
    const double gain = 100 * (knee->images_per_s / rival->images_per_s - 1);
    tg_text_append_format(out,
                          ". Beside %c it gives %.1f %% %s images/s, with %.0f context "
                          "switches/s in place of %.0f",
                          rival->letter, fabs(gain), gain < 0 ? "fewer" : "more",
                          knee->switches_per_s, rival->switches_per_s);
    if (!isnan(knee->run_queue) && !isnan(rival->run_queue))
        tg_text_append_format(out, " and a run queue of %.1f in place of %.1f", knee->run_queue,
                              rival->run_queue);
    tg_text_append_string(out, gain < 0 ? ": within the noise, the cheaper one is taken." : ".");
}

void tg_tune_plot_print(const tg_tune_plot *plot, tg_text *out)
{
    tg_text why = {0};
    if (plot->count < 2)
        return;
    print_grid(plot, out);
    print_axes(plot, out);
    print_legend(plot, out);
    tg_tune_plot_print_why(plot, &why);
    tg_text_append_wrapped(out, tg_text_string(&why), 0, 80);
    tg_text_append_char(out, '\n');
    tg_text_done(&why);
}
