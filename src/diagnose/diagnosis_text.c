/* Findings for people: what, evidence, cause, do this, gain. 80 columns. */
#include "diagnose/diagnose.h"
#include "diagnose/use.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 80, INDENT = 12, NAME_WIDTH = 44 };

static void append_words(tg_text *out, const char *words, size_t indent)
{
    tg_text visible = {0};
    tg_text_append_visible(&visible, words, "\\");
    tg_text_append_wrapped(out, tg_text_string(&visible), indent, WIDTH);
    tg_text_done(&visible);
}

/* "  because   WORDS" */
static void append_part(tg_text *out, const char *label, const char *words)
{
    if (!words[0])
        return;
    tg_text_append_format(out, "  %-*s", INDENT - 2, label);
    append_words(out, words, INDENT);
    tg_text_append_char(out, '\n');
}

static void append_seconds(tg_text *out, double seconds)
{
    if (seconds < 1)
        tg_text_append_format(out, "%.3g ms", 1e3 * seconds);
    else if (seconds < 120)
        tg_text_append_format(out, "%.3g s", seconds);
    else if (seconds < 7200)
        tg_text_append_format(out, "%.3g min", seconds / 60);
    else
        tg_text_append_format(out, "%.3g h", seconds / 3600);
}

static void append_scaled(tg_text *out, double value, const char *unit)
{
    static const char *const PREFIXES[] = {"", "Ki", "Mi", "Gi", "Ti"};
    size_t i = 0;
    for (; fabs(value) >= 1024 && i + 1 < sizeof PREFIXES / sizeof *PREFIXES; i++)
        value /= 1024;
    tg_text_append_format(out, "%.3g %sB%s", value, PREFIXES[i], unit + strlen("bytes"));
}

/* Shown as it is, behind the number. */
static bool is_plain(const char *unit)
{
    return unit[0] && strncmp(unit, "bytes", 5) != 0 && strcmp(unit, "s") != 0 &&
           strcmp(unit, "share") != 0 && strcmp(unit, "1/s") != 0;
}

static void append_value(tg_text *out, const tg_evidence *e)
{
    if (strncmp(e->unit, "bytes", 5) == 0)
        append_scaled(out, e->value, e->unit);
    else if (strcmp(e->unit, "s") == 0)
        append_seconds(out, e->value);
    else if (strcmp(e->unit, "share") == 0)
        tg_text_append_format(out, "%.0f %%", 100 * e->value);
    else if (strcmp(e->unit, "1/s") == 0)
        tg_text_append_format(out, "%.*f a second", e->value < 10 ? 1 : 0, e->value);
    else
        tg_text_append_format(out, fabs(e->value) >= 1000 && fabs(e->value) < 1e9 ? "%.0f" : "%.3g",
                              e->value);
    if (is_plain(e->unit))
        tg_text_append_format(out, " %s", e->unit);
}

static void append_evidence(tg_text *out, const tg_finding *f)
{
    for (size_t i = 0; i < f->evidence_count; i++) {
        tg_text name = {0};
        tg_text_append_visible(&name, f->evidence[i].name, "\\");
        tg_text_append_format(out, "  %-*s%-*s  ", INDENT - 2, i ? "" : "evidence", NAME_WIDTH,
                              tg_text_string(&name));
        append_value(out, &f->evidence[i]);
        tg_text_append_char(out, '\n');
        tg_text_done(&name);
    }
}

void tg_finding_print_option(const tg_finding *finding, tg_text *out)
{
    if (!finding->option[0])
        return;
    if (strcmp(finding->new_value, "true") == 0)
        tg_text_append_format(out, "--%s", finding->option);
    else if (strcmp(finding->new_value, "false") == 0)
        tg_text_append_format(out, "--no-%s", finding->option);
    else
        tg_text_append_format(out, "--%s %s", finding->option, finding->new_value);
}

static void append_option(tg_text *out, const tg_finding *f)
{
    tg_text line = {0};
    tg_finding_print_option(f, &line);
    if (line.length && f->old_value[0])
        tg_text_append_format(&line, "   (now %s)", f->old_value);
    if (line.length)
        tg_text_append_format(out, "  %-*s%s\n", INDENT - 2, "do this", tg_text_string(&line));
    append_part(out, line.length ? "" : "do this", f->advice);
    tg_text_done(&line);
}

static void append_gain(tg_text *out, const tg_finding *f)
{
    tg_text words = {0};
    const double gain = tg_finding_gain(f);
    if (isnan(gain))
        return;
    append_seconds(&words, f->step_s);
    tg_text_append_string(&words, " a step -> ");
    append_seconds(&words, f->predicted_step_s);
    tg_text_append_format(&words, ": %.2g times as fast, ", f->step_s / f->predicted_step_s);
    append_seconds(&words, 86400 * gain);
    tg_text_append_string(&words, " less for what takes a day now");
    if (!isnan(f->confidence))
        tg_text_append_format(&words, " (confidence %.0f %%)", 100 * f->confidence);
    append_part(out, "expect", tg_text_string(&words));
    tg_text_done(&words);
}

static void append_clock(tg_text *out, double time)
{
    const time_t seconds = (time_t)time;
    struct tm tm;
    char text[16];
    if (gmtime_r(&seconds, &tm) && strftime(text, sizeof text, "%H:%M:%S", &tm))
        tg_text_append_string(out, text);
}

static void append_place(tg_text *out, const tg_finding *f)
{
    tg_text words = {0};
    if (f->host[0])
        tg_text_append_format(&words, "on %s", f->host);
    if (f->rank >= 0)
        tg_text_append_format(&words, "%srank %d", words.length ? ", " : "", f->rank);
    if (f->first_step)
        tg_text_append_format(&words, "%ssteps %lld to %lld", words.length ? ", " : "",
                              (long long)f->first_step, (long long)f->last_step);
    if (!isnan(f->begin) && !isnan(f->end)) {
        tg_text_append_string(&words, words.length ? ", " : "");
        append_clock(&words, f->begin);
        tg_text_append_string(&words, " to ");
        append_clock(&words, f->end);
        tg_text_append_string(&words, " UTC");
    }
    append_part(out, "where", tg_text_string(&words));
    tg_text_done(&words);
}

/* Said for the record: what it is needs no setting, and nothing is to be gained by one. */
static bool is_remark(const tg_finding *f)
{
    return f->severity == TG_SEVERITY_NOTE && !f->option[0] && !f->advice[0];
}

static void append_finding(tg_text *out, size_t number, const tg_finding *f)
{
    tg_text_append_format(out, "\n%zu. %s (%s)\n  ", number, f->rule,
                          tg_severity_name(f->severity));
    append_words(out, f->title, 2);
    tg_text_append_char(out, '\n');
    append_evidence(out, f);
    append_part(out, "because", f->cause);
    append_option(out, f);
    append_gain(out, f);
    append_place(out, f);
}

static void append_head(tg_text *out, const tg_diagnosis *d, const tg_history *history)
{
    size_t count = 0;
    const tg_use_steps use = tg_use_of_steps(history);
    for (size_t i = 0; i < d->findings.count; i++)
        count += !d->findings.each[i].explained_by && !is_remark(&d->findings.each[i]);
    tg_text_append_visible(out, history->path ? history->path : "", "");
    tg_text_append_format(
        out, ": %lld steps",
        (long long)(history->step_count ? history->steps[history->step_count - 1].step : 0));
    if (use.steps) {
        tg_text_append_string(out, ", ");
        append_seconds(out, use.step_s);
        const double rate = use.images / use.step_s;
        tg_text_append_format(out, rate < 1000 ? " each, %.3g images/s" : " each, %.0f images/s",
                              rate);
    }
    if (count)
        tg_text_append_format(out, "; %zu finding%s, worst first\n", count, count == 1 ? "" : "s");
    else
        tg_text_append_string(out, "; nothing found\n");
}

/* A paragraph of a list whose heading comes before the first. */
static void append_item(tg_text *out, bool first, const char *heading, tg_text *words)
{
    if (first)
        tg_text_append_format(out, "\n%s\n", heading);
    tg_text_append_string(out, "  ");
    append_words(out, tg_text_string(words), 4);
    tg_text_append_char(out, '\n');
    tg_text_done(words);
}

static void append_explained(tg_text *out, const tg_findings *findings)
{
    bool any = false;
    for (size_t i = 0; i < findings->count; i++) {
        const tg_finding *f = &findings->each[i];
        tg_text words = {0};
        if (!f->explained_by)
            continue;
        tg_text_append_format(&words, "%s, by %s: %s", f->rule, f->explained_by, f->title);
        append_item(out, !any, "Explained by these", &words);
        any = true;
    }
}

static void append_remarks(tg_text *out, const tg_findings *findings)
{
    bool any = false;
    for (size_t i = 0; i < findings->count; i++) {
        tg_text words = {0};
        if (!is_remark(&findings->each[i]) || findings->each[i].explained_by)
            continue;
        tg_text_append_string(&words, findings->each[i].title);
        append_item(out, !any, "For the record", &words);
        any = true;
    }
}

/* Whether a result before `i` lacked the same, and named this one with it. */
static bool is_told(const tg_diagnosis *d, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (d->results[j].outcome == TG_RULE_LACKS &&
            strcmp(d->results[j].lacks, d->results[i].lacks) == 0)
            return true;
    return false;
}

static void append_lacks(tg_text *out, const tg_diagnosis *d)
{
    bool any = false;
    for (size_t i = 0; i < d->result_count; i++) {
        const tg_rule_result *r = &d->results[i];
        tg_text words = {0};
        if (r->outcome != TG_RULE_LACKS || is_told(d, i))
            continue;
        tg_text_append_format(&words, "%s: ", r->lacks);
        for (size_t j = i; j < d->result_count; j++)
            if (d->results[j].outcome == TG_RULE_LACKS &&
                strcmp(d->results[j].lacks, r->lacks) == 0)
                tg_text_append_format(&words, "%s%s", j > i ? ", " : "", d->results[j].rule->name);
        append_item(out, !any, "Not looked for, because it is not there", &words);
        any = true;
    }
}

static void append_quiet(tg_text *out, const tg_diagnosis *d)
{
    tg_text words = {0};
    for (size_t i = 0; i < d->result_count; i++)
        if (d->results[i].outcome == TG_RULE_QUIET)
            tg_text_append_format(&words, "%s%s", words.length ? ", " : "",
                                  d->results[i].rule->name);
    if (words.length) {
        tg_text_append_string(out, "\nLooked for and not found\n  ");
        append_words(out, tg_text_string(&words), 2);
        tg_text_append_char(out, '\n');
    }
    tg_text_done(&words);
}

void tg_diagnosis_print_text(const tg_diagnosis *diagnosis, const tg_history *history, tg_text *out)
{
    append_head(out, diagnosis, history);
    size_t number = 0;
    for (size_t i = 0; i < diagnosis->findings.count; i++)
        if (!diagnosis->findings.each[i].explained_by && !is_remark(&diagnosis->findings.each[i]))
            append_finding(out, ++number, &diagnosis->findings.each[i]);
    append_explained(out, &diagnosis->findings);
    append_remarks(out, &diagnosis->findings);
    append_lacks(out, diagnosis);
    append_quiet(out, diagnosis);
}
