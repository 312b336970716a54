/* tagine diagnose: what keeps a run from going faster, or from learning. */
#include "diagnose/diagnose.h"

#include "base/log.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "os/file.h"

#include <stdlib.h>

typedef struct diagnose_settings {
    tg_diagnose_options options;
    bool write, list, settings;
} diagnose_settings;

static const tg_option OPTIONS[] = {
    {.name = "rule",
     .type = TG_OPTION_STRING,
     .offset = offsetof(diagnose_settings, options.rules),
     .metavar = "NAME,...",
     .help = "ask these rules alone"},
    {.name = "limits",
     .type = TG_OPTION_STRING,
     .offset = offsetof(diagnose_settings, options.limits),
     .metavar = "RULE.NAME=NUMBER,...",
     .help = "other limits than usual, as in StepOutlier.stddev=4"},
    {.name = "list-rules",
     .type = TG_OPTION_BOOL,
     .offset = offsetof(diagnose_settings, list),
     .help = "show every rule and its limits, and leave"},
    {.name = "write",
     .type = TG_OPTION_BOOL,
     .offset = offsetof(diagnose_settings, write),
     .help = "keep what was found in findings.json of the run"},
    {.name = "settings",
     .type = TG_OPTION_BOOL,
     .offset = offsetof(diagnose_settings, settings),
     .help = "print only the options to change, worst first, as a file for --config"},
};

static const tg_command_group GROUPS[] = {{"Rules", OPTIONS, TG_COUNT_OF(OPTIONS), 0}};

static void put_rule(const tg_rule *rule, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "rule", rule->name);
    tg_json_put_string(&w, "asks", rule->asks);
    tg_json_begin_array(&w, "limits");
    for (size_t i = 0; i < rule->limit_count; i++) {
        tg_json_begin_object(&w, NULL);
        tg_json_put_string(&w, "name", rule->limits[i].name);
        tg_json_put_double(&w, "value", rule->limits[i].initial);
        tg_json_put_string(&w, "help", rule->limits[i].help);
        tg_json_end_object(&w);
    }
    tg_json_end_array(&w);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_rule(const tg_rule *rule, tg_text *out)
{
    tg_text_append_format(out, "%s\n    ", rule->name);
    tg_text_append_wrapped(out, rule->asks, 4, TG_HELP_WIDTH);
    tg_text_append_char(out, '\n');
    for (size_t i = 0; i < rule->limit_count; i++) {
        const tg_rule_limit *limit = &rule->limits[i];
        tg_text_append_format(out, "    %-18s %-6g ", limit->name, limit->initial);
        tg_text_append_wrapped(out, limit->help, 30, TG_HELP_WIDTH);
        tg_text_append_char(out, '\n');
    }
}

static tg_status list_rules(bool json)
{
    size_t count;
    tg_text text = {0};
    const tg_rule *const *rules = tg_rules(&count);
    for (size_t i = 0; i < count; i++)
        (json ? put_rule : print_rule)(rules[i], &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static tg_status write_findings(const tg_diagnosis *diagnosis, const tg_history *history)
{
    char *path = tg_path_join(history->path, "findings.json");
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    tg_status status = tg_diagnosis_write(diagnosis, history, path);
    free(path);
    return status;
}

static tg_status tell(const tg_invocation *invocation, const tg_diagnosis *diagnosis,
                      const tg_history *history)
{
    const diagnose_settings *s = invocation->settings;
    tg_text text = {0};
    if (s->settings)
        tg_diagnosis_print_settings(diagnosis, &text);
    else if (invocation->common->json)
        tg_diagnosis_print_json(diagnosis, history, &text);
    else
        tg_diagnosis_print_text(diagnosis, history, &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static tg_status run(const tg_invocation *invocation)
{
    const diagnose_settings *s = invocation->settings;
    tg_history history;
    tg_diagnosis diagnosis = {0};
    TG_TRY(tg_diagnose_check_options(&s->options));
    if (s->list)
        return list_rules(invocation->common->json);
    if (!invocation->argument_count)
        return tg_fail(TG_ERROR_USAGE, "RUN is missing: the run directory (--output of a job)");
    tg_console_open(invocation->common->quiet, invocation->common->verbose);
    TG_TRY(tg_history_open(invocation->arguments[0], &history));
    tg_status status = tg_diagnose(&history, &s->options, &diagnosis);
    if (status == TG_OK && s->write)
        status = write_findings(&diagnosis, &history);
    if (status == TG_OK)
        status = tell(invocation, &diagnosis, &history);
    tg_diagnosis_done(&diagnosis);
    tg_history_close(&history);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine diagnose runs/teacher", "What was found, worst first, and what to change"},
    {"tagine diagnose runs/teacher --write --json", "The same for programs, kept in findings.json"},
    {"tagine diagnose runs/teacher --settings",
     "The options to change alone, as lines that --config reads"},
    {"tagine diagnose --list-rules", "What is looked for, and from which limits on"},
    {0},
};

static const tg_command_note FILES[] = {
    {"RUN/findings.json", "With --write: what was found, and what each rule came to"},
    {0},
};

const tg_command tg_command_diagnose = {
    .name = "diagnose",
    .arguments = "[RUN]",
    .summary = "Say what keeps a run from going faster or from learning",
    .description =
        "Reads the run directory RUN alone, of a job that runs, has ended, or ran on another\n"
        "machine, and asks every rule. What a rule finds comes with its evidence, its cause, the\n"
        "option to change, and the step time that this should bring. A rule that lacks something\n"
        "says what.",
    .examples = EXAMPLES,
    .files = FILES,
    .see_also = "train, distill, tune train",
    .work = TG_COMMAND_PRINTS,
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(diagnose_settings),
    .arguments_max = 1,
    .run = run,
};
