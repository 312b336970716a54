/* Progress, curves and what steps are spent on. */
#include "report/screen_parts.h"

#include <math.h>
#include <string.h>

#define MINUTE 60.0
enum { CURVE_LEAST = 8, FIGURES = 30 };

static void put_position(tg_screen_page *page)
{
    const tg_live *live = page->live;
    const tg_step_record *last = tg_live_last_step(live);
    const double planned = tg_live_steps_planned(live);
    const double epochs = tg_live_info_number(live, "plan.epochs");
    tg_text *line = tg_screen_begin(page, 0, "progress"), words = {0};
    if (!last) {
        tg_screen_append(page, line, "no step yet");
        return;
    }
    tg_text_append_format(&words, " step %lld", (long long)last->step);
    if (!isnan(planned))
        tg_text_append_format(&words, "/%.0f", planned);
    tg_text_append_format(&words, "  epoch %lld", (long long)last->epoch + 1);
    if (!isnan(epochs))
        tg_text_append_format(&words, "/%.0f", epochs);
    if (tg_live_get_state(live) == TG_LIVE_RUNS) {
        tg_text_append_string(&words, "  ");
        tg_glyphs_seconds(tg_live_seconds_left(live), &words);
        tg_text_append_string(&words, " left");
    }
    const size_t room = tg_screen_room(page, line), taken = words.length;
    if (!isnan(planned) && room > taken + CURVE_LEAST)
        tg_glyphs_bar(&page->screen->glyphs, (double)last->step / planned,
                      room - taken < 32 ? room - taken : 32, line);
    tg_screen_append(page, line, tg_text_string(&words) + (isnan(planned) ? 1 : 0));
    tg_text_done(&words);
}

/* A curve and, behind it, what it says now. */
static void put_curve(tg_screen_page *page, int rank, const char *label, const tg_series *series,
                      const char *figures)
{
    tg_text *line = tg_screen_begin(page, rank, label);
    const size_t room = tg_screen_room(page, line);
    const size_t taken = strlen(figures) + 2 > FIGURES ? strlen(figures) + 2 : FIGURES;
    if (room > taken + CURVE_LEAST)
        tg_glyphs_curve(&page->screen->glyphs, series->values, series->count, room - taken, line);
    tg_screen_append(page, line, "  ");
    tg_screen_append(page, line, figures);
}

/* The mean of the last steps: one alone says little. */
static double recent_loss(const tg_live *live)
{
    double sum = 0;
    size_t n = 0;
    for (const tg_step_record *step; n < 16 && (step = tg_live_step_back(live, n)); n++)
        sum += step->loss;
    return n ? sum / (double)n : NAN;
}

static void put_loss(tg_screen_page *page)
{
    const tg_live *live = page->live;
    tg_text figures = {0};
    if (!live->step_count)
        return;
    tg_text_append_format(&figures, "%.3f", recent_loss(live));
    if (live->loss.count > 1)
        tg_text_append_format(&figures, ", began at %.3f", live->loss.values[0]);
    put_curve(page, 4, "loss", &live->loss, tg_text_string(&figures));
    tg_text_done(&figures);
}

static void put_accuracy(tg_screen_page *page)
{
    const tg_live *live = page->live;
    tg_text figures = {0};
    if (!live->eval_count)
        return;
    tg_text_append_format(&figures, "top-1 %.1f %%, best %.1f in epoch %lld", live->eval.val_top1,
                          live->best.val_top1, (long long)live->best.epoch);
    put_curve(page, 5, "accuracy", &live->top1, tg_text_string(&figures));
    tg_text_done(&figures);
}

static void put_rate(tg_screen_page *page, const tg_live_ledger *ledger)
{
    const tg_live *live = page->live;
    const tg_step_record *last = tg_live_last_step(live);
    tg_text figures = {0};
    if (!last)
        return;
    tg_glyphs_count(last->images_per_s, &figures);
    tg_text_append_string(&figures, " now, ");
    tg_glyphs_count(ledger->images_per_s, &figures);
    tg_text_append_string(&figures, " over ");
    tg_glyphs_seconds(ledger->seconds, &figures);
    put_curve(page, 5, "images/s", &live->rate, tg_text_string(&figures));
    tg_text_done(&figures);
}

enum { PARTS = TG_LIVE_PHASES + 3 };

typedef struct part {
    const char *name;
    double share;
} part;

static void list_parts(const tg_live_ledger *ledger, part out[PARTS])
{
    for (int p = 0; p < TG_LIVE_PHASES; p++)
        out[p] = (part){tg_live_phase_name((tg_live_phase)p), ledger->phases[p]};
    out[TG_LIVE_PHASES] = (part){"evaluation", ledger->evaluation};
    out[TG_LIVE_PHASES + 1] = (part){"checkpoint", ledger->checkpoint};
    out[TG_LIVE_PHASES + 2] = (part){"start", ledger->start};
}

static void append_key(const tg_screen_page *page, size_t index, tg_text *out)
{
    tg_glyphs_part(&page->screen->glyphs, index, out);
    tg_text_append_char(out, ' ');
}

static void trim(tg_text *line)
{
    while (line->length && line->data[line->length - 1] == ' ')
        line->data[--line->length] = '\0';
}

/* Two lines at most hold the parts' names; what is below half a percent has none. */
static void put_legend(tg_screen_page *page, const part parts[PARTS], double rest)
{
    tg_text *line = tg_screen_begin(page, 3, "");
    for (int p = 0; p <= PARTS; p++) {
        const double share = p < PARTS ? parts[p].share : rest;
        tg_text words = {0};
        if (!(share >= 0.005))
            continue;
        if (p < PARTS)
            append_key(page, (size_t)p, &words);
        tg_text_append_format(&words, "%s %.0f %%  ", p < PARTS ? parts[p].name : "else",
                              100 * share);
        if (tg_glyphs_width(words.data, words.length) > tg_screen_room(page, line) + 2) {
            trim(line);
            line = tg_screen_begin(page, 3, "");
        }
        if (tg_glyphs_width(words.data, words.length) <= tg_screen_room(page, line) + 2)
            tg_text_append(line, words.data, words.length);
        tg_text_done(&words);
    }
    trim(line);
}

static void put_ledger(tg_screen_page *page, const tg_live_ledger *ledger)
{
    part parts[PARTS];
    double shares[PARTS];
    tg_text *line = tg_screen_begin(page, 2, "time"), words = {0};
    if (!(ledger->seconds > 0)) {
        tg_screen_append(page, line, "not known: records without time");
        return;
    }
    tg_text_append_string(&words, "  last ");
    tg_glyphs_seconds(ledger->seconds, &words);
    tg_text_append_string(&words, ", step ");
    tg_glyphs_seconds(ledger->step_s, &words);
    const size_t room = tg_screen_room(page, line);
    list_parts(ledger, parts);
    for (int p = 0; p < PARTS; p++)
        shares[p] = parts[p].share;
    if (room > words.length + CURVE_LEAST)
        tg_glyphs_parts(&page->screen->glyphs, shares, PARTS, 1, room - words.length, line);
    tg_screen_append(page, line, tg_text_string(&words));
    tg_text_done(&words);
    put_legend(page, parts, ledger->rest);
}

void tg_screen_put_progress(tg_screen_page *page)
{
    put_position(page);
}

void tg_screen_put_steps(tg_screen_page *page)
{
    tg_live_ledger ledger;
    tg_live_get_ledger(page->live, MINUTE, &ledger);
    put_loss(page);
    put_accuracy(page);
    put_rate(page, &ledger);
    if (page->live->step_count)
        put_ledger(page, &ledger);
}

void tg_screen_print_line(const tg_live *live, tg_text *out)
{
    const tg_step_record *last = tg_live_last_step(live);
    const double planned = tg_live_steps_planned(live);
    tg_live_ledger ledger;
    if (!last) {
        tg_text_append_string(out, "no step yet");
        return;
    }
    tg_live_get_ledger(live, MINUTE, &ledger);
    tg_text_append_format(out, "epoch %lld  step %lld", (long long)last->epoch + 1,
                          (long long)last->step);
    if (!isnan(planned))
        tg_text_append_format(out, "/%.0f", planned);
    tg_text_append_format(out, "  loss %.3f  ", recent_loss(live));
    tg_glyphs_count(ledger.images_per_s, out);
    tg_text_append_string(out, " images/s  step ");
    tg_glyphs_seconds(ledger.step_s, out);
    if (tg_live_get_state(live) != TG_LIVE_RUNS)
        return;
    tg_text_append_string(out, "  ");
    tg_glyphs_seconds(tg_live_seconds_left(live), out);
    tg_text_append_string(out, " left");
}
