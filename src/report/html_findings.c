/* What was found, what each rule came to, and the ledger: the parts that other folders work out. */
#include "report/html_parts.h"

#include "diagnose/diagnose.h"
#include "profile/ledger.h"

#include <math.h>

/* Of the page's styles: parts of a step have the colours that the charts of steps give them. */
static const char *const COLORS[TG_LEDGER_ROWS] = {
    [TG_LEDGER_START] = "start",
    [TG_LEDGER_DATA] = "data",
    [TG_LEDGER_TEACHER] = "teacher",
    [TG_LEDGER_FORWARD] = "forward",
    [TG_LEDGER_BACKWARD] = "backward",
    [TG_LEDGER_EXCHANGE] = "reduce",
    [TG_LEDGER_SLOWER] = "l3",
    [TG_LEDGER_OPTIMIZER] = "optimizer",
    [TG_LEDGER_EVALUATION] = "evaluation",
    [TG_LEDGER_CHECKPOINT] = "checkpoint",
    [TG_LEDGER_TUNE] = "l6",
    [TG_LEDGER_RECORDS] = "l7",
    [TG_LEDGER_FINISH] = "l5",
    [TG_LEDGER_REPEATED] = "serious",
    [TG_LEDGER_IDLE] = "warning",
    [TG_LEDGER_OTHER] = "other",
};

void tg_html_put_ledger(tg_json_writer *w, const tg_history *history)
{
    tg_ledger ledger;
    tg_ledger_make(history, &ledger);
    if (!(ledger.total_s > 0)) {
        tg_json_put_null(w, "ledger");
        return;
    }
    tg_json_begin_object(w, "ledger");
    tg_html_put_number(w, "wall_s", ledger.total_s);
    tg_json_begin_array(w, "rows");
    for (int r = 0; r < TG_LEDGER_ROWS; r++) {
        tg_json_begin_object(w, NULL);
        tg_json_put_string(w, "name", tg_ledger_row_name((tg_ledger_row)r));
        tg_json_put_string(w, "color", COLORS[r]);
        tg_html_put_number(w, "seconds", fmax(0, ledger.seconds[r]));
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
    tg_json_end_object(w);
}

static void put_evidence(tg_json_writer *w, const tg_finding *f)
{
    tg_json_begin_array(w, "evidence");
    for (size_t i = 0; i < f->evidence_count; i++) {
        tg_json_begin_array(w, NULL);
        tg_json_put_string(w, NULL, f->evidence[i].name);
        tg_html_put_number(w, NULL, f->evidence[i].value);
        tg_json_put_string(w, NULL, f->evidence[i].unit);
        tg_json_end_array(w);
    }
    tg_json_end_array(w);
}

static void put_finding(tg_json_writer *w, const tg_finding *f, double origin)
{
    tg_json_begin_object(w, NULL);
    tg_json_put_string(w, "rule", f->rule);
    tg_json_put_string(w, "severity", tg_severity_name(f->severity));
    tg_json_put_string(w, "title", f->title);
    tg_json_put_string(w, "cause", f->cause);
    tg_json_put_string(w, "advice", f->advice);
    put_evidence(w, f);
    tg_html_put_number(w, "begin", f->begin - origin);
    tg_html_put_number(w, "end", f->end - origin);
    tg_json_put_int(w, "first_step", f->first_step);
    tg_json_put_int(w, "last_step", f->last_step);
    tg_json_put_int(w, "rank", f->rank);
    tg_json_put_string(w, "host", f->host);
    tg_json_put_string(w, "option", f->option);
    tg_json_put_string(w, "old", f->old_value);
    tg_json_put_string(w, "new", f->new_value);
    tg_html_put_number(w, "step_s", f->step_s);
    tg_html_put_number(w, "predicted_s", f->predicted_step_s);
    tg_html_put_number(w, "confidence", f->confidence);
    tg_json_put_string(w, "explained_by", f->explained_by);
    tg_json_end_object(w);
}

static void put_rule(tg_json_writer *w, const tg_rule_result *result)
{
    static const char *const OUTCOMES[] = {
        [TG_RULE_QUIET] = "quiet", [TG_RULE_FIRED] = "fired", [TG_RULE_LACKS] = "lacks"};
    tg_json_begin_object(w, NULL);
    tg_json_put_string(w, "name", result->rule->name);
    tg_json_put_string(w, "asks", result->rule->asks);
    tg_json_put_string(w, "outcome", OUTCOMES[result->outcome]);
    tg_json_put_string(w, "lacks", result->lacks);
    tg_json_end_object(w);
}

tg_status tg_html_put_findings(tg_json_writer *w, const tg_history *history, double origin)
{
    tg_diagnosis diagnosis = {0};
    TG_TRY(tg_diagnose(history, NULL, &diagnosis));
    tg_json_begin_array(w, "findings");
    for (size_t i = 0; i < diagnosis.findings.count; i++)
        put_finding(w, &diagnosis.findings.each[i], origin);
    tg_json_end_array(w);
    tg_json_begin_array(w, "rules");
    for (size_t i = 0; i < diagnosis.result_count; i++)
        put_rule(w, &diagnosis.results[i]);
    tg_json_end_array(w);
    tg_diagnosis_done(&diagnosis);
    return TG_OK;
}
