/* A comparison for programs. */
#include "base/json_writer.h"
#include "report/compare.h"

#include <math.h>

static void put_settings(tg_json_writer *w, const tg_comparison *c)
{
    tg_json_begin_array(w, "settings");
    for (size_t i = 0; i < c->setting_count; i++) {
        const tg_compare_setting *s = &c->settings[i];
        tg_json_begin_object(w, NULL);
        tg_json_put_string(w, "name", s->name);
        tg_json_put_bool(w, "option", s->option);
        tg_json_put_string(w, "a", s->a);
        tg_json_put_string(w, "b", s->b);
        tg_json_put_bool(w, "may_change_time", s->time);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

static void put_rows(tg_json_writer *w, const tg_comparison *c)
{
    static const char *const SECTIONS[] = {"speed", "phases", "use", "memory", "learning"};
    tg_json_begin_array(w, "rows");
    for (size_t i = 0; i < c->row_count; i++) {
        const tg_compare_row *r = &c->rows[i];
        tg_json_begin_object(w, NULL);
        tg_json_put_string(w, "section", SECTIONS[r->section]);
        tg_json_put_string(w, "key", r->key);
        tg_json_put_string(w, "unit", r->unit);
        tg_json_put_double(w, "a", r->a.mean);
        tg_json_put_double(w, "a_half_width", r->a.half_width);
        tg_json_put_double(w, "b", r->b.mean);
        tg_json_put_double(w, "b_half_width", r->b.half_width);
        tg_json_put_string(w, "change", tg_change_name(r->change));
        tg_json_put_int(w, "good", r->good);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

static void put_ledger(tg_json_writer *w, const char *key, const tg_ledger *ledger)
{
    tg_json_begin_object(w, key);
    for (int r = 0; r < TG_LEDGER_ROWS; r++)
        tg_json_put_double(w, tg_ledger_row_key((tg_ledger_row)r), ledger->seconds[r]);
    tg_json_put_double(w, "total", ledger->total_s);
    tg_json_end_object(w);
}

static void put_operations(tg_json_writer *w, const tg_comparison *c)
{
    static const char *const CHANGES[] = {"none", "added", "gone", "faster", "slower"};
    tg_json_begin_array(w, "operations");
    for (size_t i = 0; i < c->operation_count; i++) {
        const tg_compare_operation *op = &c->operations[i];
        tg_json_begin_object(w, NULL);
        tg_json_put_string(w, "operation", op->name);
        tg_json_put_string(w, "phase", op->phase);
        tg_json_put_double(w, "a_s", op->a_s);
        tg_json_put_double(w, "b_s", op->b_s);
        tg_json_put_string(w, "a_dtype", op->a_dtype);
        tg_json_put_string(w, "b_dtype", op->b_dtype);
        tg_json_put_string(w, "change", CHANGES[op->change]);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

static void put_findings(tg_json_writer *w, const tg_comparison *c)
{
    static const char *const FATES[] = {"resolved", "new", "still", "unknown"};
    tg_json_begin_array(w, "findings");
    for (size_t i = 0; i < c->finding_count; i++) {
        const tg_compare_finding *f = &c->findings[i];
        tg_json_begin_object(w, NULL);
        tg_json_put_string(w, "rule", f->rule);
        tg_json_put_string(w, "fate", FATES[f->fate]);
        tg_json_put_string(w, "severity", tg_severity_name(f->severity));
        tg_json_put_string(w, "title", f->title);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

static void put_predictions(tg_json_writer *w, const tg_comparison *c)
{
    static const char *const ADVICE[] = {"followed", "other value", "not tried"};
    tg_json_begin_array(w, "predictions");
    for (size_t i = 0; i < c->prediction_count; i++) {
        const tg_compare_prediction *p = &c->predictions[i];
        tg_json_begin_object(w, NULL);
        tg_json_put_string(w, "rule", p->rule);
        tg_json_put_string(w, "option", p->option);
        tg_json_put_string(w, "old", p->old_value);
        tg_json_put_string(w, "new", p->new_value);
        tg_json_put_string(w, "tried", p->tried);
        tg_json_put_string(w, "advice", ADVICE[p->advice]);
        tg_json_put_double(w, "step_s", p->step_s);
        tg_json_put_double(w, "predicted_step_s", p->predicted_s);
        tg_json_put_double(w, "confidence", p->confidence);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
    tg_json_begin_object(w, "together");
    tg_json_put_uint(w, "followed", c->joint.followed);
    tg_json_put_uint(w, "other_settings", c->joint.others);
    tg_json_put_double(w, "predicted_step_s", c->joint.predicted_s);
    tg_json_put_double(w, "a_step_s", c->joint.step_a_s);
    tg_json_put_double(w, "b_step_s", c->joint.step_b_s);
    tg_json_put_double(w, "gain_came", c->joint.gain_came);
    tg_json_put_double(w, "gain_half_width", c->joint.gain_half_width);
    tg_json_end_object(w);
}

static void put_alike(tg_json_writer *w, const tg_compare_alike *alike)
{
    if (!alike->parts) {
        tg_json_put_null(w, "alike");
        return;
    }
    tg_json_begin_object(w, "alike");
    tg_json_put_bool(w, "alike", alike->alike);
    tg_json_put_double(w, "within", alike->within);
    tg_json_put_double(w, "most", alike->most);
    tg_json_put_uint(w, "equal_steps", alike->equal_steps);
    tg_json_end_object(w);
}

void tg_comparison_print_json(const tg_comparison *c, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "a", c->a);
    tg_json_put_string(&w, "b", c->b);
    tg_json_put_double(&w, "a_images_per_step", c->images_a);
    tg_json_put_double(&w, "b_images_per_step", c->images_b);
    tg_json_put_bool(&w, "scaled", c->scaled);
    put_settings(&w, c);
    put_rows(&w, c);
    put_ledger(&w, "a_ledger", &c->ledger_a);
    put_ledger(&w, "b_ledger", &c->ledger_b);
    put_operations(&w, c);
    put_alike(&w, &c->alike);
    put_findings(&w, c);
    put_predictions(&w, c);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}
