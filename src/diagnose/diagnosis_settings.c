/* What was advised, as lines that --config reads. */
#include "diagnose/diagnose.h"

#include <math.h>
#include <string.h>

/* Whether the finding's option is one for the whole job, and nothing before it in the list sets it. */
static bool counts(const tg_findings *findings, size_t index)
{
    const tg_finding *f = &findings->each[index];
    if (!f->option[0] || !f->new_value[0] || f->explained_by || f->rank >= 0)
        return false;
    for (size_t i = 0; i < index; i++)
        if (strcmp(findings->each[i].option, f->option) == 0)
            return false;
    return true;
}

void tg_diagnosis_print_settings(const tg_diagnosis *diagnosis, tg_text *out)
{
    for (size_t i = 0; i < diagnosis->findings.count; i++) {
        const tg_finding *f = &diagnosis->findings.each[i];
        if (!counts(&diagnosis->findings, i))
            continue;
        tg_text_append_format(out, "%s: %s  # %s, now %s", f->option, f->new_value, f->rule,
                              f->old_value[0] ? f->old_value : "not set");
        if (!isnan(tg_finding_gain(f)))
            tg_text_append_format(out, ", step %.4g s -> %.4g s", f->step_s, f->predicted_step_s);
        tg_text_append_char(out, '\n');
    }
}
