/* tagine profile: tables of steps, operations and exchanges as text. */
#include "cli/profile_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEP_BAR = 16, CELL_BYTES = 64 };

/* Right-aligned in `width` columns, with a blank before it. */
static void append_cell(tg_text *out, double seconds, int width)
{
    tg_text cell = {0};
    tg_profile_append_seconds(&cell, seconds);
    tg_text_append_format(out, " %*s", width, tg_text_string(&cell));
    tg_text_done(&cell);
}

static void append_bar(tg_text *out, double share, int width)
{
    if (lround(share * width) > 0)
        tg_text_append_string(out, "  ");
    tg_profile_append_bar(out, share, width);
    tg_text_append_char(out, '\n');
}

static void print_parts(const tg_step_times *t, tg_text *out)
{
    tg_text_append_format(out, "  %-20s %9s %9s %9s %6s\n", "part of a step", "median", "mean",
                          "95 %", "%");
    for (int p = 0; p < TG_PARTS; p++) {
        const tg_step_spread *part = &t->parts[p];
        const double share = part->mean / t->step.mean;
        if (!(share >= 1e-4))
            continue;
        tg_text_append_format(out, "  %-20s", tg_step_part_name((tg_step_part)p));
        append_cell(out, part->median, 9);
        append_cell(out, part->mean, 9);
        append_cell(out, part->p95, 9);
        tg_text_append_format(out, " %6.1f", 100 * share);
        append_bar(out, share, STEP_BAR);
    }
}

static void print_part_ranks(const tg_step_times *t, tg_text *out)
{
    tg_text_append_format(out, "\n  %-20s %9s %5s %9s %9s %5s\n", "over ranks", "least", "rank",
                          "mean", "most", "rank");
    for (int p = 0; p < TG_PARTS; p++) {
        const tg_part_ranks *ranks = &t->part_ranks[p];
        if (!(ranks->most / t->step.mean >= 1e-4))
            continue;
        tg_text_append_format(out, "  %-20s", tg_step_part_name((tg_step_part)p));
        append_cell(out, ranks->least, 9);
        tg_text_append_format(out, " %5d", ranks->least_rank);
        append_cell(out, ranks->mean, 9);
        append_cell(out, ranks->most, 9);
        tg_text_append_format(out, " %5d\n", ranks->most_rank);
    }
}

static void print_slow(const tg_step_times *t, tg_text *out)
{
    if (!t->slow)
        return;
    tg_text_append_format(out, "\n  %zu step%s took more than %g medians, ", t->slow,
                          t->slow == 1 ? "" : "s", TG_STEP_SLOW);
    tg_profile_append_seconds(out, t->slow_beyond_s);
    tg_text_append_string(out, " beyond it together; the slowest:\n");
    for (size_t i = 0; i < t->worst_count; i++) {
        const tg_slow_step *slow = &t->worst[i];
        tg_text_append_format(out, "  step %-15lld", (long long)slow->step);
        append_cell(out, slow->seconds, 9);
        append_cell(out, slow->beyond_s, 9);
        tg_text_append_format(out, " more in %s\n", tg_step_part_name(slow->part));
    }
}

void tg_profile_print_steps(const tg_step_times *t, tg_text *out)
{
    if (!t->steps)
        return;
    tg_text_append_string(out, "\nSteps: median ");
    tg_profile_append_seconds(out, t->step.median);
    tg_text_append_string(out, ", 90 % between ");
    tg_profile_append_seconds(out, t->step.p5);
    tg_text_append_string(out, " and ");
    tg_profile_append_seconds(out, t->step.p95);
    tg_text_append_format(out, ", %.1f images/s\n\n", t->images_per_s);
    print_parts(t, out);
    if (t->ranks > 1)
        print_part_ranks(t, out);
    print_slow(t, out);
}

void tg_profile_print_exchange(const tg_exchange *x, tg_text *out)
{
    if (!x->ranks)
        return;
    tg_text_append_format(out, "\nExchange between %zu ranks, a step\n\n", x->ranks);
    if (!isnan(x->exchange_s)) {
        tg_text_append_string(out, "  under way           ");
        append_cell(out, x->exchange_s, 9);
        tg_text_append_format(out, " %6.1f %%: %.2f MiB, %.1f %% of it hidden\n",
                              100 * x->exchange_s / x->step_s, x->bytes / 1048576, 100 * x->hidden);
    }
    tg_text_append_string(out, "  all ranks waited    ");
    append_cell(out, x->exposed_s, 9);
    tg_text_append_format(out, " %6.1f %%: the exchange itself\n", 100 * x->exposed_s / x->step_s);
    tg_text_append_string(out, "  waited for slower   ");
    append_cell(out, x->slower_s, 9);
    tg_text_append_format(out, " %6.1f %%: mean over ranks\n", 100 * x->slower_s / x->step_s);
    char label[CELL_BYTES];
    (void)snprintf(label, sizeof label, "rank %d works", x->slowest_rank);
    tg_text_append_format(out, "  %-20s", label);
    append_cell(out, x->slowest_s, 9);
    tg_text_append_string(out, ", the others");
    append_cell(out, x->others_s, 0);
    tg_text_append_char(out, '\n');
}

/* "144x96x384", "3 shapes", "". */
static void print_shape(const tg_operation_row *row, char out[CELL_BYTES])
{
    int length = 0;
    out[0] = '\0';
    if (row->shapes > 1)
        (void)snprintf(out, CELL_BYTES, "%zu shapes", row->shapes);
    for (int i = 0; i < TG_OPERATION_DIMENSIONS && row->key.shape[i] && length < 40; i++)
        length += snprintf(out + length, CELL_BYTES - (size_t)length, "%s%zu", i ? "x" : "",
                           row->key.shape[i]);
}

/* What stands first in a row. The teacher's forward has the student's operations. */
static void print_name(const tg_operation_row *row, char out[CELL_BYTES])
{
    tg_text visible = {0};
    tg_text_append_visible(&visible, row->key.name[0] ? row->key.name : row->key.phase, "");
    const bool teacher = row->key.name[0] && strcmp(row->key.phase, "teacher") == 0;
    (void)snprintf(out, CELL_BYTES, "%.22s%s", tg_text_string(&visible), teacher ? " (t)" : "");
    tg_text_done(&visible);
}

/* "406 GF/s", "58.2 GB/s", "310 MB/s". */
static void append_rate(tg_text *out, const tg_operation_row *row)
{
    const bool flops = !isnan(row->flops_per_s);
    const double rate = flops ? row->flops_per_s : row->bytes_per_s;
    const bool giga = rate >= 1e9;
    const double value = rate * (giga ? 1e-9 : 1e-6);
    if (isnan(rate))
        tg_text_append_format(out, " %10s", "");
    else
        tg_text_append_format(out, " %5.*f %c%s", value < 99.95 ? 1 : 0, value, giga ? 'G' : 'M',
                              flops ? "F/s" : "B/s");
    if (!isnan(row->peak_share))
        tg_text_append_format(out, " %5.1f", 100 * row->peak_share);
}

static void cut_blanks(tg_text *out)
{
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
    tg_text_append_char(out, '\n');
}

static void print_operation(const tg_operation_row *row, const tg_operation_view *view,
                            tg_text *out)
{
    char name[CELL_BYTES], shape[CELL_BYTES];
    print_name(row, name);
    print_shape(row, shape);
    if (view->over_ranks) {
        tg_text_append_format(out, "  %-22s", name);
        append_cell(out, row->least_s, 9);
        tg_text_append_format(out, " %4d", row->least_rank);
        append_cell(out, row->step_s, 9);
        append_cell(out, row->most_s, 9);
        tg_text_append_format(out, " %4d %5.1f", row->most_rank, 100 * row->share);
    } else {
        tg_text_append_format(out, "  %-22s %-15s %5.*f %8.2f %5.1f", name, shape,
                              row->calls < 9.5 && row->calls != round(row->calls) ? 1 : 0,
                              row->calls, 1e3 * row->step_s, 100 * row->share);
        append_rate(out, row);
    }
    cut_blanks(out);
}

static void print_phase(const tg_operation_row *row, tg_text *out)
{
    tg_text_append_format(out, "  %-22s", row->key.phase);
    append_cell(out, row->least_s, 9);
    append_cell(out, row->step_s, 9);
    append_cell(out, row->most_s, 9);
    tg_text_append_format(out, " %6.1f", 100 * row->share);
    append_bar(out, row->share, STEP_BAR);
}

static void print_columns(const tg_operation_view *view, tg_text *out)
{
    if (view->by == TG_BY_PHASE)
        tg_text_append_format(out, "  %-22s %9s %9s %9s %6s\n", "phase", "least", "mean", "most",
                              "%");
    else if (view->over_ranks)
        tg_text_append_format(out, "  %-22s %9s %4s %9s %9s %4s %5s\n", "operation", "least",
                              "rank", "mean", "most", "rank", "%");
    else
        tg_text_append_format(out, "  %-22s %-15s %5s %8s %5s %10s %5s\n", "operation", "shape",
                              "calls", "ms", "%", "rate", "%peak");
}

/* Rows in steps, or those beside them: the first `top`, and the sum of the others. */
static void print_rows(const tg_operation_table *t, const tg_operation_view *view, bool in_steps,
                       tg_text *out)
{
    size_t shown = 0, others = 0;
    double others_s = 0;
    for (size_t i = 0; i < t->count; i++) {
        const tg_operation_row *row = &t->rows[i];
        if (row->in_steps != in_steps)
            continue;
        if (shown >= view->top) {
            others++;
            others_s += row->step_s;
            continue;
        }
        shown++;
        if (view->by == TG_BY_PHASE)
            print_phase(row, out);
        else
            print_operation(row, view, out);
    }
    if (others)
        tg_text_append_format(out, "  %zu more, %.2f ms, %.1f %%\n", others, 1e3 * others_s,
                              100 * others_s / t->step_s);
}

static bool has_teacher(const tg_operation_table *t)
{
    bool teacher = false;
    for (size_t i = 0; i < t->count; i++)
        teacher |= strcmp(t->rows[i].key.phase, "teacher") == 0;
    return teacher;
}

static bool beats_peak(const tg_operation_table *t)
{
    bool beats = false;
    for (size_t i = 0; i < t->count; i++)
        beats |= t->rows[i].peak_share > 1.05;
    return beats;
}

static bool has_beside(const tg_operation_table *t)
{
    bool beside = false;
    for (size_t i = 0; i < t->count; i++)
        beside |= !t->rows[i].in_steps;
    return beside;
}

void tg_profile_print_operations(const tg_operation_table *t, const tg_operation_view *view,
                                 tg_text *out)
{
    if (!t->ranks)
        return;
    tg_text_append_format(out, "\nOperations of a step of ");
    tg_profile_append_seconds(out, t->step_s);
    tg_text_append_format(out, ", mean of %lld", (long long)t->steps);
    if (t->ranks > 1)
        tg_text_append_format(out, " and %zu ranks", t->ranks);
    tg_text_append_string(out, "\n\n");
    print_columns(view, out);
    print_rows(t, view, true, out);
    tg_text_append_format(out, "  in no operation: %.2f ms, %.1f %%", 1e3 * t->rest_s,
                          100 * t->rest_s / t->step_s);
    if (!isnan(t->recording_share))
        tg_text_append_format(out, "; of it recording: %.2f %%", 100 * t->recording_share);
    tg_text_append_char(out, '\n');
    if (view->by != TG_BY_PHASE && has_teacher(t))
        tg_text_append_string(out, "  (t): the teacher's\n");
    if (view->by == TG_BY_OPERATION && !view->over_ranks && beats_peak(t))
        tg_text_append_string(out, "  over 100 % of the peak: it was measured while others had the "
                                   "cores as well\n");
    if (!has_beside(t))
        return;
    tg_text_append_string(out, "\n  beside the steps, on other threads\n");
    print_rows(t, view, false, out);
}
