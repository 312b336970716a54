#include "diagnose/finding.h"

#include "base/number.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const SEVERITIES[] = {"note", "warning", "serious"};

const char *tg_severity_name(tg_severity severity)
{
    return SEVERITIES[severity];
}

tg_finding *tg_findings_add(tg_findings *findings, const char *rule, tg_severity severity)
{
    if (findings->count == findings->capacity) {
        const size_t capacity = findings->capacity ? 2 * findings->capacity : 8;
        tg_finding *each = realloc(findings->each, capacity * sizeof *each);
        if (!each) {
            (void)tg_fail(TG_ERROR_MACHINE, "out of memory for findings");
            return NULL;
        }
        findings->each = each;
        findings->capacity = capacity;
    }
    tg_finding *finding = &findings->each[findings->count++];
    *finding = (tg_finding){.rule = rule,
                            .severity = severity,
                            .begin = NAN,
                            .end = NAN,
                            .rank = -1,
                            .step_s = NAN,
                            .predicted_step_s = NAN,
                            .confidence = NAN};
    return finding;
}

void tg_findings_done(tg_findings *findings)
{
    free(findings->each);
    *findings = (tg_findings){0};
}

/* Takes a character of UTF-8 that was cut off its end. */
static void drop_half_character(char *text)
{
    size_t n = strlen(text);
    while (n && !tg_text_is_utf8(text, n))
        text[--n] = '\0';
}

void tg_finding_say(char *out, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = tg_number_vprint(out, size, format, args);
    va_end(args);
    if (length < 0)
        out[0] = '\0';
    else if ((size_t)length >= size)
        drop_half_character(out);
}

void tg_finding_add_evidence(tg_finding *finding, const char *name, double value, const char *unit)
{
    if (isnan(value) || finding->evidence_count == TG_FINDING_EVIDENCE)
        return;
    tg_evidence *evidence = &finding->evidence[finding->evidence_count++];
    TG_FINDING_SAY(evidence->name, "%s", name);
    TG_FINDING_SAY(evidence->unit, "%s", unit);
    evidence->value = value;
}

void tg_finding_set_option(tg_finding *finding, const char *option, const char *old_value,
                           const char *new_value)
{
    TG_FINDING_SAY(finding->option, "%s", option);
    TG_FINDING_SAY(finding->old_value, "%s", old_value ? old_value : "");
    TG_FINDING_SAY(finding->new_value, "%s", new_value);
}

static void print_number(double value, char out[TG_NUMBER_BYTES])
{
    if (isnan(value))
        out[0] = '\0';
    else
        tg_number_format_double(value, out);
}

void tg_finding_set_number(tg_finding *finding, const char *option, double old_value,
                           double new_value)
{
    char old_text[TG_NUMBER_BYTES], new_text[TG_NUMBER_BYTES];
    print_number(old_value, old_text);
    print_number(new_value, new_text);
    tg_finding_set_option(finding, option, old_text, new_text);
}

void tg_finding_predict(tg_finding *finding, double step_s, double predicted_step_s,
                        double confidence)
{
    if (!(predicted_step_s > 0 && predicted_step_s < step_s))
        return;
    finding->step_s = step_s;
    finding->predicted_step_s = predicted_step_s;
    finding->confidence = confidence;
    const double gain = tg_finding_gain(finding);
    finding->severity = gain >= TG_GAIN_SERIOUS   ? TG_SEVERITY_SERIOUS
                        : gain >= TG_GAIN_WARNING ? TG_SEVERITY_WARNING
                                                  : TG_SEVERITY_NOTE;
}

double tg_finding_gain(const tg_finding *finding)
{
    return 1 - finding->predicted_step_s / finding->step_s;
}
