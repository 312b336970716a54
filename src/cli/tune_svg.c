/* The chart of tune's trials as SVG. */
#include "cli/tune_plot.h"

#include "os/file.h"

#include <math.h>
#include <string.h>

enum { LEFT = 70, TOP = 84, WIDTH = 330, HEIGHT = 240, GAP = 60, LINE = 20, TICKS = 4 };

static double x_of(int panel, double share)
{
    return LEFT + panel * (WIDTH + GAP) + share * WIDTH;
}

static double y_of(double share)
{
    return TOP + (1 - share) * HEIGHT;
}

/* Text that markup may surround. */
static void put_text(tg_text *out, double x, double y, const char *style, const char *words)
{
    tg_text_append_format(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
    for (const char *at = words; *at; at++) {
        if (*at == '<' || *at == '&')
            tg_text_append_string(out, *at == '<' ? "&lt;" : "&amp;");
        else
            tg_text_append_char(out, *at);
    }
    tg_text_append_string(out, "</text>\n");
}

static void put_number(tg_text *out, double x, double y, const char *anchor, double value,
                       int digits)
{
    tg_text_append_format(
        out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"#555\">%.*f</text>\n", x, y,
        anchor, digits, value);
}

static void draw_axes(const tg_tune_plot *plot, int panel, tg_text *out)
{
    static const char *const names[] = {"context switches a second",
                                        "run queue: threads that run or wait"};
    const double most = tg_tune_plot_most(plot, panel);
    double low, high;
    tg_tune_plot_range(plot, &low, &high);
    tg_text_append_format(
        out,
        "<rect x=\"%.1f\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999\"/>\n",
        x_of(panel, 0), TOP, WIDTH, HEIGHT);
    for (int i = 0; i <= TICKS; i++) {
        const double share = (double)i / TICKS;
        tg_text_append_format(
            out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#eee\"/>\n",
            x_of(panel, 0), x_of(panel, 1), y_of(share), y_of(share));
        if (most > 0)
            put_number(out, x_of(panel, share), TOP + HEIGHT + 16, "middle", share * most, panel);
        if (panel == 0)
            put_number(out, LEFT - 6, y_of(share) + 4, "end", low + share * (high - low), 1);
    }
    put_text(out, x_of(panel, 0.5), TOP + HEIGHT + 34, "text-anchor=\"middle\"",
             most > 0 ? names[panel] : "run queue: not known on this machine");
}

static void draw_dots(const tg_tune_plot *plot, int panel, tg_text *out)
{
    const double most = tg_tune_plot_most(plot, panel);
    double low, high;
    tg_tune_plot_range(plot, &low, &high);
    for (size_t i = 0; i < plot->count; i++) {
        const tg_tune_dot *d = &plot->dots[i];
        const double x = tg_tune_plot_x(d, panel);
        if (isnan(x) || most <= 0)
            continue;
        const double cx = x_of(panel, x / most), cy = y_of((d->images_per_s - low) / (high - low));
        const bool knee = i == plot->knee;
        tg_text_append_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"/>\n", cx,
                              cy, knee ? 7 : 5, knee ? "#c0392b" : "#2c6fad");
        tg_text_append_format(out, "<text x=\"%.1f\" y=\"%.1f\" %s>%c%s</text>\n", cx, cy - 10,
                              knee ? "fill=\"#c0392b\" font-weight=\"bold\" text-anchor=\"middle\""
                                   : "text-anchor=\"middle\"",
                              d->letter, knee ? " knee" : "");
    }
}

static double draw_legend(const tg_tune_plot *plot, double y, tg_text *out)
{
    for (size_t i = 0; i < plot->count; i++, y += LINE) {
        const tg_tune_dot *d = &plot->dots[i];
        tg_text line = {0};
        tg_text_append_format(
            &line, "%c  batch %lld, threads %d, workers %d: %.1f images/s, %.0f switches/s",
            d->letter, (long long)d->setting.batch_size, d->setting.threads, d->setting.workers,
            d->images_per_s, d->switches_per_s);
        if (!isnan(d->run_queue))
            tg_text_append_format(&line, ", run queue %.1f", d->run_queue);
        put_text(out, LEFT, y, i == plot->knee ? "fill=\"#c0392b\" font-weight=\"bold\"" : "",
                 tg_text_string(&line));
        tg_text_done(&line);
    }
    return y;
}

/* Words in lines of at most so many characters. */
static void draw_words(const char *words, double y, tg_text *out)
{
    tg_text wrapped = {0};
    tg_text_append_wrapped(&wrapped, words, 0, 108);
    for (char *at = wrapped.data; at && *at; y += LINE) {
        const size_t n = strcspn(at, "\n");
        char *next = at + n + (at[n] == '\n');
        at[n] = '\0';
        put_text(out, LEFT, y, "", at);
        at = next;
    }
    tg_text_done(&wrapped);
}

void tg_tune_plot_draw(const tg_tune_plot *plot, const char *title, tg_text *out)
{
    tg_text why = {0};
    const int width = LEFT + 2 * WIDTH + GAP + 30;
    const int height = TOP + HEIGHT + 70 + LINE * ((int)plot->count + 4);
    tg_text_append_format(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
        "height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
        width, height, width, height, width, height);
    put_text(out, LEFT, 28, "font-size=\"17\" font-weight=\"bold\"", title);
    put_text(out, LEFT, TOP - 30, "fill=\"#555\"", "images a second");
    for (int p = 0; p < 2; p++) {
        draw_axes(plot, p, out);
        draw_dots(plot, p, out);
    }
    const double y = draw_legend(plot, TOP + HEIGHT + 64, out);
    tg_tune_plot_print_why(plot, &why);
    draw_words(tg_text_string(&why), y + LINE / 2.0, out);
    tg_text_append_string(out, "</svg>\n");
    tg_text_done(&why);
}

tg_status tg_tune_plot_write(const tg_tune_plot *plot, const char *title, const char *path)
{
    tg_text text = {0};
    tg_tune_plot_draw(plot, title, &text);
    tg_status status = tg_text_check(&text, path);
    if (status == TG_OK)
        status = tg_file_write(path, text.data, text.length);
    tg_text_done(&text);
    return status;
}
