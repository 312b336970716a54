/* --on-finding: what is taken, what is refused, and which finding an action is for. */
#include "support/check.h"

#include "cli/on_finding.h"

#include <string.h>

static void test_parse(void **state)
{
    tg_reactions r;
    (void)state;
    assert_ok(tg_reactions_parse(NULL, &r));
    assert_int_equal(r.count, 0);
    assert_ok(tg_reactions_parse("stepoutlier=warn,serious=webhook:https://h/"
                                 "p?a=b,LossNotDecreasing=stop,warning=webhook:@/f",
                                 &r));
    assert_int_equal(r.count, 4);
    assert_string_equal(r.each[0].rule, "StepOutlier");
    assert_int_equal(r.each[0].kind, TG_REACT_WARN);
    assert_string_equal(r.each[1].target, "https://h/p?a=b");
    assert_int_equal(r.each[2].kind, TG_REACT_STOP);
    assert_string_equal(r.each[3].target, "@/f");
}

static void test_refused(void **state)
{
    tg_reactions r;
    char many[2000] = "";
    (void)state;
    assert_error(tg_reactions_parse("Nothing=stop", &r), TG_ERROR_USAGE, "Nothing");
    assert_error(tg_reactions_parse("StepOutlier", &r), TG_ERROR_USAGE, "RULE=ACTION");
    assert_error(tg_reactions_parse("StepOutlier=jump", &r), TG_ERROR_USAGE, "webhook:URL");
    assert_error(tg_reactions_parse("StepOutlier=webhook:file:///etc/passwd", &r), TG_ERROR_USAGE,
                 "webhook:URL");
    assert_error(tg_reactions_parse("StepOutlier=webhook:@", &r), TG_ERROR_USAGE, "webhook:URL");
    for (int i = 0; i <= TG_REACTIONS; i++)
        strcat(many, "StepOutlier=warn,");
    assert_error(tg_reactions_parse(many, &r), TG_ERROR_USAGE, "at most");
}

static void test_which(void **state)
{
    tg_reactions r;
    (void)state;
    assert_ok(tg_reactions_parse("StepOutlier=warn,serious=warn,warning=warn", &r));
    assert_true(tg_reaction_is_for(&r.each[0], "StepOutlier", TG_SEVERITY_NOTE, true));
    assert_false(tg_reaction_is_for(&r.each[0], "Dataloader", TG_SEVERITY_SERIOUS, false));
    assert_true(tg_reaction_is_for(&r.each[1], "Dataloader", TG_SEVERITY_SERIOUS, false));
    assert_false(tg_reaction_is_for(&r.each[1], "Dataloader", TG_SEVERITY_WARNING, false));
    assert_false(tg_reaction_is_for(&r.each[1], "Dataloader", TG_SEVERITY_SERIOUS, true));
    assert_true(tg_reaction_is_for(&r.each[2], "Dataloader", TG_SEVERITY_SERIOUS, false));
    assert_false(tg_reaction_is_for(&r.each[2], "Dataloader", TG_SEVERITY_NOTE, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_which),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
