#include "support/diagnose.h"
#include "support/check.h"

#include <math.h>
#include <string.h>

static void ask(const tg_test_run *run, const char *rule, const char *limits, tg_diagnosis *out)
{
    const tg_diagnose_options options = {.rules = rule, .limits = limits};
    assert_ok(tg_diagnose(&run->history, &options, out));
    assert_int_equal(out->result_count, 1);
}

const tg_finding *tg_test_fires(const tg_test_run *run, const char *rule, const char *limits)
{
    static tg_finding kept;
    tg_diagnosis diagnosis;
    ask(run, rule, limits, &diagnosis);
    if (diagnosis.results[0].outcome == TG_RULE_LACKS)
        fail_msg("%s lacks %s", rule, diagnosis.results[0].lacks);
    if (diagnosis.findings.count != 1)
        fail_msg("%s: %zu findings instead of one", rule, diagnosis.findings.count);
    kept = diagnosis.findings.each[0];
    tg_diagnosis_done(&diagnosis);
    assert_string_equal(kept.rule, rule);
    assert_true(kept.title[0] && kept.cause[0]);
    return &kept;
}

void tg_test_is_quiet(const tg_test_run *run, const char *rule, const char *limits)
{
    tg_diagnosis diagnosis;
    ask(run, rule, limits, &diagnosis);
    if (diagnosis.results[0].outcome == TG_RULE_LACKS)
        fail_msg("%s lacks %s", rule, diagnosis.results[0].lacks);
    if (diagnosis.findings.count)
        fail_msg("%s fires: %s", rule, diagnosis.findings.each[0].title);
    tg_diagnosis_done(&diagnosis);
}

void tg_test_lacks(const tg_test_run *run, const char *rule, const char *words)
{
    tg_diagnosis diagnosis;
    ask(run, rule, NULL, &diagnosis);
    if (diagnosis.results[0].outcome != TG_RULE_LACKS)
        fail_msg("%s lacks nothing", rule);
    if (!strstr(diagnosis.results[0].lacks, words))
        fail_msg("%s lacks \"%s\", not \"%s\"", rule, diagnosis.results[0].lacks, words);
    assert_int_equal(diagnosis.findings.count, 0);
    tg_diagnosis_done(&diagnosis);
}

double tg_test_evidence(const tg_finding *finding, const char *name)
{
    for (size_t i = 0; i < finding->evidence_count; i++)
        if (strcmp(finding->evidence[i].name, name) == 0)
            return finding->evidence[i].value;
    return NAN;
}
