/* Several runs, a line each. */
#include "report/compare_parts.h"

#include "base/json_writer.h"
#include "report/glyphs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double step_seconds(const tg_step_record *s)
{
    return s->t_step;
}

static double data_share(const tg_step_record *s)
{
    return s->t_data / s->t_step;
}

static double photos(const tg_step_record *s)
{
    return (double)s->images;
}

tg_status tg_compare_line_make(const tg_history *h, tg_compare_line *out)
{
    tg_comparison alone;
    tg_measure step, data, images;
    *out = (tg_compare_line){.ended = tg_history_ended(h)};
    TG_TRY(tg_compare_measure_steps(h, step_seconds, &step));
    TG_TRY(tg_compare_measure_steps(h, data_share, &data));
    TG_TRY(tg_compare_measure_steps(h, photos, &images));
    TG_TRY(tg_compare(h, h, &alone)); /* a run beside itself: its rows */
    const tg_compare_row *busy = tg_comparison_row(&alone, "busy");
    const tg_compare_row *rss = tg_comparison_row(&alone, "peak_rss");
    const tg_compare_row *top1 = tg_comparison_row(&alone, "best_top1");
    out->step_s = step.mean;
    out->step_half_width = step.half_width;
    out->images = images.mean;
    out->images_per_s = images.mean / step.mean;
    out->data_share = data.mean;
    out->busy = busy ? busy->a.mean : NAN;
    out->peak_rss_bytes = rss ? rss->a.mean : NAN;
    out->top1 = top1 ? top1->a.mean : NAN;
    out->hours = alone.ledger_a.total_s > 0 ? alone.ledger_a.total_s / 3600 : NAN;
    tg_comparison_done(&alone);
    out->path = strdup(h->path);
    return out->path ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for a comparison");
}

static void cell(tg_text *out, tg_text *text, size_t columns)
{
    tg_text_append_format(out, " %*s", (int)columns, tg_text_string(text));
    tg_text_clear(text);
}

static void share(tg_text *out, double value)
{
    if (isnan(value))
        tg_text_append_char(out, '-');
    else
        tg_text_append_format(out, "%.0f %%", 100 * value);
}

static void print_line(const tg_compare_line *l, tg_text *out)
{
    static const tg_glyphs PLAIN = {.unicode = true};
    tg_text text = {0};
    size_t taken = tg_glyphs_fit(&PLAIN, l->path, 18, out);
    for (; taken < 18; taken++)
        tg_text_append_char(out, ' ');
    tg_glyphs_count(l->images_per_s, &text);
    cell(out, &text, 8);
    tg_glyphs_seconds(l->step_s, &text);
    cell(out, &text, 7);
    if (isnan(l->step_half_width))
        tg_text_append_char(&text, '-');
    else
        tg_text_append_format(&text, "%.1f %%", 100 * l->step_half_width / l->step_s);
    cell(out, &text, 6);
    share(&text, l->data_share);
    cell(out, &text, 5);
    share(&text, l->busy);
    cell(out, &text, 5);
    tg_glyphs_bytes(l->peak_rss_bytes, &text);
    cell(out, &text, 8);
    share(&text, l->top1 / 100);
    cell(out, &text, 5);
    tg_glyphs_seconds(3600 * l->hours, &text);
    cell(out, &text, 7);
    tg_text_append_string(out, l->ended ? "\n" : " *\n");
    tg_text_done(&text);
}

void tg_compare_lines_print_text(const tg_compare_line *lines, size_t count, tg_text *out)
{
    bool unended = false;
    tg_text_append_format(out, "%-18s %8s %7s %6s %5s %5s %8s %5s %7s\n", "run", "images/s", "step",
                          "noise", "data", "busy", "memory", "top-1", "took");
    for (size_t i = 0; i < count; i++) {
        print_line(&lines[i], out);
        unended = unended || !lines[i].ended;
    }
    if (unended)
        tg_text_append_string(out, "* has no end yet\n");
}

void tg_compare_lines_print_json(const tg_compare_line *lines, size_t count, tg_text *out)
{
    for (size_t i = 0; i < count; i++) {
        const tg_compare_line *l = &lines[i];
        tg_json_writer w = tg_json_writer_init(out);
        tg_json_begin_object(&w, NULL);
        tg_json_put_string(&w, "run", l->path);
        tg_json_put_double(&w, "images_per_s", l->images_per_s);
        tg_json_put_double(&w, "images_per_step", l->images);
        tg_json_put_double(&w, "step_s", l->step_s);
        tg_json_put_double(&w, "step_half_width_s", l->step_half_width);
        tg_json_put_double(&w, "data_share", l->data_share);
        tg_json_put_double(&w, "busy", l->busy);
        tg_json_put_double(&w, "peak_rss_bytes", l->peak_rss_bytes);
        tg_json_put_double(&w, "top1", l->top1);
        tg_json_put_double(&w, "hours", l->hours);
        tg_json_put_bool(&w, "ended", l->ended);
        tg_json_end_object(&w);
        tg_text_append_char(out, '\n');
    }
}
