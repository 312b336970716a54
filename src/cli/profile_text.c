#include "cli/profile_text.h"

#include <math.h>

enum { LEDGER_BAR = 32 };

void tg_profile_append_seconds(tg_text *out, double seconds)
{
    static const struct {
        double below, factor;
        const char *unit;
    } UNITS[] = {{1e-3, 1e6, "us"}, {1, 1e3, "ms"}, {600, 1, "s"}, {36000, 1.0 / 60, "min"}};
    double factor = 1.0 / 3600;
    const char *unit = "h";
    if (isnan(seconds)) {
        tg_text_append_string(out, "-");
        return;
    }
    for (size_t i = sizeof UNITS / sizeof UNITS[0]; i-- > 0;)
        if (seconds < UNITS[i].below) {
            factor = UNITS[i].factor;
            unit = UNITS[i].unit;
        }
    const double value = seconds * factor;
    const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    tg_text_append_format(out, "%.*f %s", digits, value, unit);
}

void tg_profile_append_bar(tg_text *out, double share, int width)
{
    long full = isnan(share) ? 0 : lround(fmin(fmax(share, 0), 1) * width);
    for (; full > 0; full--)
        tg_text_append_char(out, '#');
}

/* Of all rows the same unit, so that a column can be read down. */
static void append_ledger_row(tg_text *out, const char *name, double seconds, double total)
{
    const double unit = total < 600 ? 1 : total < 36000 ? 60 : 3600;
    const double share = total > 0 ? seconds / total : 0;
    tg_text_append_format(out, "  %-25s %9.2f %6.1f", name, seconds / unit, 100 * share);
    if (lround(share * LEDGER_BAR) > 0)
        tg_text_append_string(out, "  ");
    tg_profile_append_bar(out, share, LEDGER_BAR);
    tg_text_append_char(out, '\n');
}

void tg_profile_print_ledger(const tg_ledger *l, tg_text *out)
{
    const char *unit = l->total_s < 600 ? "s" : l->total_s < 36000 ? "min" : "h";
    tg_text_append_format(out, "  %-25s %9s %6s\n", "wall time", unit, "%");
    for (int row = 0; row < TG_LEDGER_ROWS; row++)
        if (l->seconds[row] > 1e-4 * l->total_s)
            append_ledger_row(out, tg_ledger_row_name((tg_ledger_row)row), l->seconds[row],
                              l->total_s);
    tg_text_append_format(out, "  %-25s %9.2f %6.1f\n", "together",
                          l->total_s / (l->total_s < 600     ? 1
                                        : l->total_s < 36000 ? 60
                                                             : 3600),
                          100.0);
}
