#include "report/screen_parts.h"

#include <math.h>
#include <string.h>

tg_text *tg_screen_begin(tg_screen_page *page, int rank, const char *label)
{
    const size_t at = page->count < TG_SCREEN_LINES ? page->count++ : TG_SCREEN_LINES - 1;
    tg_text *line = &page->lines[at];
    tg_text_clear(line);
    page->ranks[at] = rank;
    if (label) {
        tg_glyphs_color(&page->screen->glyphs, TG_COLOR_DIM, line);
        tg_text_append_format(line, "%-*s", TG_SCREEN_LABEL, label);
        tg_glyphs_color(&page->screen->glyphs, TG_COLOR_PLAIN, line);
    }
    return line;
}

size_t tg_screen_room(const tg_screen_page *page, const tg_text *line)
{
    const size_t taken = tg_glyphs_width(tg_text_string(line), line->length);
    return taken < page->screen->columns ? page->screen->columns - taken : 0;
}

void tg_screen_append(const tg_screen_page *page, tg_text *line, const char *text)
{
    tg_glyphs_fit(&page->screen->glyphs, text, tg_screen_room(page, line), line);
}

static const char *dot(const tg_screen_page *page)
{
    return page->screen->glyphs.unicode ? " · " : " - ";
}

/* "running 12:33", "ended with exit code 0", ... */
static void append_state(tg_screen_page *page, tg_text *line)
{
    const tg_live *live = page->live;
    const tg_glyphs *glyphs = &page->screen->glyphs;
    const tg_live_state state = tg_live_get_state(live);
    const double code = tg_live_info_number(live, "exit");
    tg_text words = {0};
    if (state == TG_LIVE_RUNS) {
        tg_text_append_string(&words, "running");
        if (live->now >= live->attempt_begin) {
            tg_text_append_char(&words, ' ');
            tg_glyphs_seconds(live->now - live->attempt_begin, &words);
        }
    } else if (state == TG_LIVE_SILENT) {
        tg_text_append_string(&words, "no end, and no process: killed, or its machine is gone");
    } else if (code == 0) {
        tg_text_append_string(&words, "done");
    } else {
        tg_text_append_format(
            &words, code >= 128 ? "stopped (exit code %.0f)" : "failed (exit code %.0f)", code);
    }
    tg_glyphs_color(glyphs,
                    state == TG_LIVE_RUNS || code == 0 ? TG_COLOR_GREEN
                    : code >= 128                      ? TG_COLOR_YELLOW
                                                       : TG_COLOR_RED,
                    line);
    tg_screen_append(page, line, tg_text_string(&words));
    tg_glyphs_color(glyphs, TG_COLOR_PLAIN, line);
    tg_text_done(&words);
}

static void put_title(tg_screen_page *page)
{
    const tg_live *live = page->live;
    const double ranks = tg_live_info_number(live, "ranks");
    const char *command = tg_live_info_text(live, "command");
    const char *host = tg_live_info_text(live, "machine.host");
    tg_text *line = tg_screen_begin(page, 0, NULL);
    tg_text words = {0};
    tg_glyphs_color(&page->screen->glyphs, TG_COLOR_BOLD, line);
    tg_glyphs_fit(&page->screen->glyphs, live->path, page->screen->columns / 3, line);
    tg_glyphs_color(&page->screen->glyphs, TG_COLOR_PLAIN, line);
    tg_text_append_format(&words, "%s%s on %.64s", dot(page), command ? command : "a job",
                          host ? host : "a machine");
    if (ranks > 1)
        tg_text_append_format(&words, "%s%.0f ranks", dot(page), ranks);
    tg_text_append_string(&words, dot(page));
    tg_screen_append(page, line, tg_text_string(&words));
    tg_text_done(&words);
    append_state(page, line);
}

static void put_slowest(tg_screen_page *page)
{
    tg_live_phase phase;
    double share;
    const int rank = tg_live_slowest(page->live, &phase, &share);
    if (page->live->rank_count < 2)
        return;
    tg_text *line = tg_screen_begin(page, 6, "slowest");
    if (rank < 0)
        tg_text_append_format(line, "%zu ranks are even", page->live->rank_count);
    else
        tg_text_append_format(line, "rank %d: +%.0f %% of a step, in %s", rank, 100 * share,
                              tg_live_phase_name(phase));
}

/* A sentence on as many lines as it takes; those behind the first give way earlier. */
static void put_sentence(tg_screen_page *page, int rank, const char *label, tg_color color,
                         const char *sentence)
{
    const size_t columns = page->screen->columns;
    tg_text wrapped = {0};
    tg_text_append_wrapped(&wrapped, sentence, 0,
                           columns > TG_SCREEN_LABEL + 10 ? columns - TG_SCREEN_LABEL : 10);
    for (char *at = wrapped.data; at && *at; label = "") {
        char *end = at + strcspn(at, "\n");
        const bool more = *end;
        tg_text *line = tg_screen_begin(page, label[0] ? rank : rank + 2, label);
        *end = '\0';
        tg_glyphs_color(&page->screen->glyphs, color, line);
        tg_screen_append(page, line, at);
        tg_glyphs_color(&page->screen->glyphs, TG_COLOR_PLAIN, line);
        at = end + more;
    }
    tg_text_done(&wrapped);
}

static void put_findings(tg_screen_page *page)
{
    const tg_live *live = page->live;
    for (size_t i = 0; i < live->finding_count && i < TG_LIVE_FINDINGS; i++) {
        const tg_live_finding *finding = &live->findings[i];
        const bool serious = strcmp(finding->severity, "serious") == 0;
        tg_text sentence = {0};
        tg_text_append_format(&sentence, "%s: %s", finding->rule, finding->title);
        put_sentence(page, 4 + 2 * (int)i, i ? " " : "findings",
                     serious ? TG_COLOR_RED : TG_COLOR_YELLOW, tg_text_string(&sentence));
        tg_text_done(&sentence);
    }
}

/* "14:05:07 a photo ...": without the date and the level. */
static void put_warning(tg_screen_page *page, const char *warning, bool first, int rank)
{
    const char *time = strchr(warning, 'T'), *level = strchr(warning, ' ');
    const char *text = level ? strchr(level + 1, ' ') : NULL;
    tg_text *line = tg_screen_begin(page, rank, first ? "log" : "");
    if (time && text && time < level)
        tg_text_append_format(line, "%.*s ", 8, time + 1);
    tg_screen_append(page, line, text ? text + 1 : warning);
}

static void put_warnings(tg_screen_page *page)
{
    const tg_live *live = page->live;
    const char *failure = tg_live_info_text(live, "failure");
    const size_t kept =
        live->warning_count < TG_LIVE_WARNINGS ? live->warning_count : TG_LIVE_WARNINGS;
    if (failure)
        put_sentence(page, 1, tg_live_info_number(live, "exit") >= 128 ? "stopped" : "failure",
                     TG_COLOR_PLAIN, failure);
    for (size_t i = 0; i < kept; i++) /* the oldest first, and the first to give way */
        put_warning(page, live->warnings[(live->warning_count - kept + i) % TG_LIVE_WARNINGS],
                    i == 0, 5 + 2 * (int)(kept - 1 - i));
}

/* Lines that do not fit give way by their rank, of one rank the lowest first. */
static void print_page(const tg_screen_page *page, tg_text *out)
{
    bool left_out[TG_SCREEN_LINES] = {false};
    for (size_t lines = page->count; lines > page->screen->rows; lines--) {
        size_t worst = 0;
        for (size_t i = 0; i < page->count; i++)
            if (left_out[worst] || (!left_out[i] && page->ranks[i] >= page->ranks[worst]))
                worst = i;
        left_out[worst] = true;
    }
    for (size_t i = 0; i < page->count; i++) {
        if (left_out[i])
            continue;
        tg_text_append(out, tg_text_string(&page->lines[i]), page->lines[i].length);
        tg_text_append_char(out, '\n');
    }
}

void tg_screen_print(const tg_screen *screen, const tg_live *live, tg_text *out)
{
    tg_screen_page page = {.screen = screen, .live = live};
    put_title(&page);
    tg_screen_put_progress(&page);
    tg_screen_put_steps(&page);
    put_slowest(&page);
    tg_screen_put_machines(&page);
    put_findings(&page);
    put_warnings(&page);
    if (screen->keys) {
        tg_text *line = tg_screen_begin(&page, 3, NULL);
        tg_glyphs_color(&screen->glyphs, TG_COLOR_DIM, line);
        tg_screen_append(&page, line, screen->keys);
        tg_glyphs_color(&screen->glyphs, TG_COLOR_PLAIN, line);
    }
    print_page(&page, out);
    for (size_t i = 0; i < TG_SCREEN_LINES; i++) {
        out->failed = out->failed || page.lines[i].failed;
        tg_text_done(&page.lines[i]);
    }
}
