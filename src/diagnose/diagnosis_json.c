/* findings.json. */
#include "diagnose/diagnose.h"
#include "diagnose/use.h"

#include "os/clock.h"
#include "os/file.h"

#include <math.h>

static void put_evidence(tg_json_writer *w, const tg_finding *f)
{
    tg_json_begin_array(w, "evidence");
    for (size_t i = 0; i < f->evidence_count; i++) {
        tg_json_begin_object(w, NULL);
        tg_json_put_string(w, "name", f->evidence[i].name);
        tg_json_put_double(w, "value", f->evidence[i].value);
        tg_json_put_string(w, "unit", f->evidence[i].unit);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

static void put_text(tg_json_writer *w, const char *key, const char *text)
{
    tg_json_put_string(w, key, text[0] ? text : NULL);
}

static void put_place(tg_json_writer *w, const tg_finding *f)
{
    tg_json_put_double(w, "begin", f->begin);
    tg_json_put_double(w, "end", f->end);
    const int64_t steps[2] = {f->first_step, f->last_step};
    for (int i = 0; i < 2; i++)
        if (steps[i])
            tg_json_put_int(w, i ? "last_step" : "first_step", steps[i]);
        else
            tg_json_put_null(w, i ? "last_step" : "first_step");
    if (f->rank >= 0)
        tg_json_put_int(w, "rank", f->rank);
    else
        tg_json_put_null(w, "rank");
    put_text(w, "host", f->host);
}

void tg_finding_put_json(tg_json_writer *w, const char *key, const tg_finding *f)
{
    tg_json_begin_object(w, key);
    tg_json_put_string(w, "rule", f->rule);
    tg_json_put_string(w, "severity", tg_severity_name(f->severity));
    put_text(w, "title", f->title);
    put_text(w, "cause", f->cause);
    put_text(w, "advice", f->advice);
    put_evidence(w, f);
    put_place(w, f);
    put_text(w, "option", f->option);
    put_text(w, "old", f->old_value);
    put_text(w, "new", f->new_value);
    tg_json_put_double(w, "step_s", f->step_s);
    tg_json_put_double(w, "predicted_step_s", f->predicted_step_s);
    tg_json_put_double(w, "gain", tg_finding_gain(f));
    tg_json_put_double(w, "confidence", f->confidence);
    tg_json_put_string(w, "explained_by", f->explained_by);
    tg_json_end_object(w);
}

static void put_result(tg_json_writer *w, const tg_rule_result *r)
{
    static const char *const OUTCOMES[] = {"quiet", "fired", "lacks"};
    tg_json_begin_object(w, NULL);
    tg_json_put_string(w, "rule", r->rule->name);
    tg_json_put_string(w, "asks", r->rule->asks);
    tg_json_put_string(w, "outcome", OUTCOMES[r->outcome]);
    put_text(w, "lacks", r->lacks);
    tg_json_begin_object(w, "limits");
    for (size_t i = 0; i < r->rule->limit_count; i++)
        tg_json_put_double(w, r->rule->limits[i].name, r->limits[i]);
    tg_json_end_object(w);
    tg_json_end_object(w);
}

void tg_diagnosis_print_json(const tg_diagnosis *diagnosis, const tg_history *history, tg_text *out)
{
    char now[TG_CLOCK_ISO_BYTES];
    const tg_use_steps use = tg_use_of_steps(history);
    tg_json_writer w = tg_json_writer_init(out);
    tg_clock_iso(now);
    tg_json_begin_object(&w, NULL);
    tg_json_put_int(&w, "version", 1);
    tg_json_put_string(&w, "made", now);
    tg_json_put_int(&w, "steps",
                    history->step_count ? history->steps[history->step_count - 1].step : 0);
    tg_json_put_double(&w, "step_s", use.step_s);
    tg_json_put_double(&w, "images_per_s", use.images / use.step_s);
    tg_json_begin_array(&w, "findings");
    for (size_t i = 0; i < diagnosis->findings.count; i++)
        tg_finding_put_json(&w, NULL, &diagnosis->findings.each[i]);
    tg_json_end_array(&w);
    tg_json_begin_array(&w, "rules");
    for (size_t i = 0; i < diagnosis->result_count; i++)
        put_result(&w, &diagnosis->results[i]);
    tg_json_end_array(&w);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

tg_status tg_diagnosis_write(const tg_diagnosis *diagnosis, const tg_history *history,
                             const char *path)
{
    tg_text text = {0};
    tg_diagnosis_print_json(diagnosis, history, &text);
    tg_status status = tg_file_write_text(path, &text);
    tg_text_done(&text);
    return status;
}
