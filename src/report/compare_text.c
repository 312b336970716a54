/* A comparison for people: 80 columns. */
#include "report/compare.h"
#include "report/glyphs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OPERATIONS = 10, WIDTH = 80 };

static const tg_glyphs PLAIN = {.unicode = true};

/* Padded or cut to so many columns. */
static void append_cell(tg_text *out, const char *text, size_t columns)
{
    size_t taken = tg_glyphs_fit(&PLAIN, text, columns, out);
    for (; taken < columns; taken++)
        tg_text_append_char(out, ' ');
}

static void append_value(tg_text *out, double value, const char *unit)
{
    tg_text text = {0};
    if (isnan(value))
        tg_text_append_char(&text, '-');
    else if (strcmp(unit, "s") == 0)
        tg_glyphs_seconds(value, &text);
    else if (strncmp(unit, "bytes", 5) == 0)
        tg_glyphs_bytes(value, &text);
    else if (strcmp(unit, "share") == 0)
        tg_text_append_format(&text, "%.0f %%", 100 * value);
    else if (strcmp(unit, "%") == 0)
        tg_text_append_format(&text, "%.2f %%", value);
    else if (unit[0] == '\0')
        tg_text_append_format(&text, "%.4f", value);
    else
        tg_glyphs_count(value, &text);
    if (strcmp(unit, "1/s") == 0 || strcmp(unit, "bytes/s") == 0)
        tg_text_append_string(&text, isnan(value) ? "" : "/s");
    append_cell(out, tg_text_string(&text), 12);
    tg_text_done(&text);
}

/* "faster" of times, "better" and "worse" of what is good or bad, else "less" and "more". */
static const char *verdict(const tg_compare_row *row)
{
    if (row->change == TG_CHANGE_UNKNOWN)
        return "";
    if (row->change == TG_CHANGE_NONE)
        return "none";
    const bool more = row->change == TG_CHANGE_MORE;
    if (row->good == 0)
        return more ? "more" : "less";
    return (more ? 1 : -1) == row->good ? "better" : "worse";
}

static void print_row(const tg_compare_row *row, tg_text *out)
{
    char change[32] = "", noise[32] = "";
    const double size = fabs(row->a.mean);
    const double within = hypot(row->a.half_width, row->b.half_width);
    const bool points = strcmp(row->unit, "%") == 0 || strcmp(row->unit, "share") == 0;
    const double scale = strcmp(row->unit, "share") == 0 ? 100 : 1;
    if (points && !isnan(row->b.mean - row->a.mean)) {
        snprintf(change, sizeof change, "%+.1f pt", scale * (row->b.mean - row->a.mean));
        if (!isnan(within))
            snprintf(noise, sizeof noise, "+-%.1f", scale * within);
    } else if (size > 0 && !isnan(row->b.mean)) {
        const double part = (row->b.mean - row->a.mean) / size;
        snprintf(change, sizeof change, fabs(part) < 9.995 ? "%+.1f %%" : "%+.0f %%", 100 * part);
        if (!isnan(within))
            snprintf(noise, sizeof noise, within < size ? "+-%.1f %%" : "+-%.0f %%",
                     100 * within / size);
    }
    tg_text_append_string(out, "  ");
    append_cell(out, row->name, 29);
    tg_text_append_char(out, ' ');
    append_value(out, row->a.mean, row->unit);
    append_value(out, row->b.mean, row->unit);
    tg_text_append_format(out, "%-8s %-8s %s", change, noise, verdict(row));
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
    tg_text_append_char(out, '\n');
}

static void print_section(const tg_comparison *c, tg_compare_section section, const char *title,
                          tg_text *out)
{
    bool begun = false;
    for (size_t i = 0; i < c->row_count; i++) {
        if (c->rows[i].section != section)
            continue;
        if (!begun)
            tg_text_append_format(out, "\n%-32s%-12s%-12s%-9s%s\n", title, "A", "B", "change",
                                  "noise");
        begun = true;
        print_row(&c->rows[i], out);
    }
}

static void print_settings(const tg_comparison *c, tg_text *out)
{
    tg_text_append_string(out, "\nset differently\n");
    for (size_t i = 0; i < c->setting_count; i++) {
        const tg_compare_setting *s = &c->settings[i];
        tg_text_append_string(out, "  ");
        append_cell(out, s->name, 29);
        tg_text_append_char(out, ' ');
        append_cell(out, s->a, 23);
        tg_text_append_char(out, ' ');
        tg_glyphs_fit(&PLAIN, s->b, 24, out);
        tg_text_append_char(out, '\n');
    }
    if (!c->setting_count)
        tg_text_append_string(out, "  nothing\n");
}

static void print_ledger(const tg_comparison *c, tg_text *out)
{
    const tg_ledger *a = &c->ledger_a, *b = &c->ledger_b;
    if (!(a->total_s > 0) || !(b->total_s > 0))
        return;
    tg_text_append_format(out, "\n%-32s%-12s%-12s%-9s%s\n", "wall time of the runs", "A", "B", "A",
                          "B");
    for (int r = 0; r < TG_LEDGER_ROWS; r++) {
        const double in_a = a->seconds[r] / a->total_s, in_b = b->seconds[r] / b->total_s;
        if (in_a < 0.001 && in_b < 0.001)
            continue;
        tg_text_append_string(out, "  ");
        append_cell(out, tg_ledger_row_name((tg_ledger_row)r), 29);
        tg_text_append_char(out, ' ');
        append_value(out, a->seconds[r], "s");
        append_value(out, b->seconds[r], "s");
        tg_text_append_format(out, "%5.1f %%  %5.1f %%\n", 100 * in_a, 100 * in_b);
    }
    tg_text_append_format(out, "  %-30s", "all of it");
    append_value(out, a->total_s, "s");
    append_value(out, b->total_s, "s");
    tg_text_append_string(out, "100.0 %  100.0 %\n");
}

static void print_operations(const tg_comparison *c, tg_text *out)
{
    static const char *const CHANGES[] = {"none", "added", "gone", "faster", "slower"};
    if (!c->operation_count)
        return;
    tg_text_append_format(out, "\n%-32s%-12s%-12s%-9s\n", "operations, time a step", "A", "B",
                          "change");
    for (size_t i = 0; i < c->operation_count && i < OPERATIONS; i++) {
        const tg_compare_operation *op = &c->operations[i];
        char name[80], type[32] = "";
        snprintf(name, sizeof name, "%.40s, %s", op->name, op->phase);
        if (op->a_dtype[0] && op->b_dtype[0] && strcmp(op->a_dtype, op->b_dtype) != 0)
            snprintf(type, sizeof type, " %.4s-%.4s", op->a_dtype, op->b_dtype);
        tg_text_append_string(out, "  ");
        append_cell(out, name, 29);
        tg_text_append_char(out, ' ');
        append_value(out, op->a_s, "s");
        append_value(out, op->b_s, "s");
        tg_text_append_format(out, "%s%s\n", CHANGES[op->change], type);
    }
    if (c->operation_count > OPERATIONS)
        tg_text_append_format(out, "  and %zu that differ less\n", c->operation_count - OPERATIONS);
}

static void print_findings(const tg_comparison *c, tg_text *out)
{
    static const char *const FATES[] = {"resolved", "new", "still", "unknown"};
    if (c->finding_count)
        tg_text_append_string(out, "\nfindings\n");
    for (size_t i = 0; i < c->finding_count; i++) {
        const tg_compare_finding *f = &c->findings[i];
        tg_text words = {0}, visible = {0};
        tg_text_append_format(&words, "%s: %s", f->rule, f->title);
        tg_text_append_visible(&visible, tg_text_string(&words), "\\");
        tg_text_append_format(out, "  %-10s", FATES[f->fate]);
        tg_text_append_wrapped(out, tg_text_string(&visible), 12, WIDTH);
        tg_text_append_char(out, '\n');
        tg_text_done(&words);
        tg_text_done(&visible);
    }
}

static void print_paragraph(const tg_text *words, tg_text *out)
{
    tg_text visible = {0};
    tg_text_append_visible(&visible, tg_text_string(words), "\\");
    tg_text_append_string(out, "  ");
    tg_text_append_wrapped(out, tg_text_string(&visible), 2, WIDTH);
    tg_text_append_char(out, '\n');
    tg_text_done(&visible);
}

static void print_prediction(const tg_compare_prediction *p, tg_text *out)
{
    tg_text words = {0};
    tg_text_append_format(&words, "--%s %s instead of %s (%s): predicted ", p->option, p->new_value,
                          p->old_value, p->rule);
    tg_glyphs_seconds(p->predicted_s, &words);
    tg_text_append_string(&words, " instead of ");
    tg_glyphs_seconds(p->step_s, &words);
    tg_text_append_string(&words, " a step; ");
    if (p->advice == TG_ADVICE_OTHER)
        tg_text_append_format(&words, "B has %s, of which it says nothing", p->tried);
    else
        tg_text_append_string(&words, p->advice == TG_ADVICE_FOLLOWED ? "B has it" : "not tried");
    print_paragraph(&words, out);
    tg_text_done(&words);
}

static bool is_followed(const tg_comparison *c, const char *option)
{
    for (size_t i = 0; i < c->prediction_count; i++)
        if (c->predictions[i].advice == TG_ADVICE_FOLLOWED &&
            strcmp(c->predictions[i].option, option) == 0)
            return true;
    return false;
}

static void append_others(const tg_comparison *c, tg_text *words)
{
    const char *comma = "";
    tg_text_append_string(words, "; what of it is whose nobody can say, because more was set "
                                 "differently: ");
    for (size_t i = 0; i < c->setting_count; i++) {
        if (!c->settings[i].time || is_followed(c, c->settings[i].name))
            continue;
        tg_text_append_format(words, "%s%s", comma, c->settings[i].name);
        comma = ", ";
    }
}

static void append_gain(const tg_compare_joint *joint, tg_text *words)
{
    const double noise = joint->gain_half_width;
    if (noise > 1)
        tg_text_append_format(
            words, ": the noise is %.1f times the gain, and hides whether it came", noise);
    else
        tg_text_append_format(words, ": %.0f %% of the gain came", 100 * joint->gain_came);
    if (noise <= 1)
        tg_text_append_format(words, " (+-%.0f %%)", 100 * noise);
}

/* All that were followed, against the measurement. */
static void print_joint(const tg_comparison *c, tg_text *out)
{
    const tg_compare_joint *joint = &c->joint;
    tg_text words = {0};
    if (!joint->followed)
        return;
    tg_text_append_format(&words, "%s",
                          joint->followed > 1 ? "together, if each works on what the others leave, "
                                              : "");
    tg_text_append_string(&words, "from ");
    tg_glyphs_seconds(joint->step_a_s, &words);
    tg_text_append_string(&words, " predicted ");
    tg_glyphs_seconds(joint->predicted_s, &words);
    tg_text_append_string(&words, ", measured ");
    tg_glyphs_seconds(joint->step_b_s, &words);
    if (joint->others)
        append_others(c, &words);
    else if (!isnan(joint->gain_came))
        append_gain(joint, &words);
    print_paragraph(&words, out);
    tg_text_done(&words);
}

static void print_alike(const tg_comparison *c, tg_text *out)
{
    const tg_compare_alike *alike = &c->alike;
    tg_text words = {0};
    if (!alike->parts)
        return;
    tg_text_append_string(out, "\nwhether they learn alike\n");
    tg_text_append_format(&words,
                          "%s: over the photos that both have seen, the losses differ by at most "
                          "2 %% in %.0f %% of the way, by at most %.3g %% anywhere",
                          alike->alike ? "they do" : "they do not", 100 * alike->within,
                          100 * alike->most);
    if (alike->equal_steps)
        tg_text_append_format(&words, "; the first %zu step%s equal", alike->equal_steps,
                              alike->equal_steps == 1 ? " is" : "s are");
    print_paragraph(&words, out);
    tg_text_done(&words);
}

void tg_comparison_print_text(const tg_comparison *c, tg_text *out)
{
    tg_text_append_string(out, "A  ");
    tg_glyphs_fit(&PLAIN, c->a, WIDTH - 3, out);
    tg_text_append_string(out, "\nB  ");
    tg_glyphs_fit(&PLAIN, c->b, WIDTH - 3, out);
    tg_text_append_char(out, '\n');
    if (c->scaled)
        tg_text_append_format(out,
                              "A step of A has %.0f photos, one of B %.0f: times of B are those of "
                              "%.0f photos.\n",
                              c->images_a, c->images_b, c->images_a);
    print_settings(c, out);
    print_section(c, TG_COMPARE_SPEED, "speed", out);
    print_section(c, TG_COMPARE_PHASES, "time a step", out);
    print_ledger(c, out);
    print_operations(c, out);
    print_section(c, TG_COMPARE_USE, "use of the machines", out);
    print_section(c, TG_COMPARE_MEMORY, "memory", out);
    print_section(c, TG_COMPARE_LEARNING, "learning", out);
    print_alike(c, out);
    print_findings(c, out);
    if (c->prediction_count)
        tg_text_append_string(out, "\npredicted and real\n");
    for (size_t i = 0; i < c->prediction_count; i++)
        print_prediction(&c->predictions[i], out);
    print_joint(c, out);
}
