/* tagine compare: runs side by side. */
#include "report/compare.h"

#include "cli/commands.h"
#include "cli/console.h"

#include <stdlib.h>

enum { MOST_RUNS = 64 };

static tg_status print_and_free(tg_text *text)
{
    tg_status status = tg_console_print(text);
    tg_text_done(text);
    return status;
}

static tg_status compare_two(const tg_history *a, const tg_history *b, bool json)
{
    tg_comparison comparison;
    tg_text text = {0};
    TG_TRY(tg_compare(a, b, &comparison));
    (json ? tg_comparison_print_json : tg_comparison_print_text)(&comparison, &text);
    tg_comparison_done(&comparison);
    return print_and_free(&text);
}

static tg_status run_two(const tg_invocation *invocation)
{
    tg_history a, b;
    TG_TRY(tg_history_open(invocation->arguments[0], &a));
    tg_status status = tg_history_open(invocation->arguments[1], &b);
    if (status == TG_OK) {
        status = compare_two(&a, &b, invocation->common->json);
        tg_history_close(&b);
    }
    tg_history_close(&a);
    return status;
}

static tg_status make_line(const char *path, tg_compare_line *out)
{
    tg_history history;
    TG_TRY(tg_history_open(path, &history));
    tg_status status = tg_compare_line_make(&history, out);
    tg_history_close(&history);
    return status;
}

static tg_status run_many(const tg_invocation *invocation)
{
    const size_t count = invocation->argument_count;
    tg_compare_line *lines = calloc(count, sizeof *lines);
    tg_text text = {0};
    tg_status status = lines ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory");
    for (size_t i = 0; i < count && status == TG_OK; i++)
        status = make_line(invocation->arguments[i], &lines[i]);
    if (status == TG_OK) {
        (invocation->common->json ? tg_compare_lines_print_json
                                  : tg_compare_lines_print_text)(lines, count, &text);
        status = print_and_free(&text);
    }
    for (size_t i = 0; lines && i < count; i++)
        free(lines[i].path);
    free(lines);
    return status;
}

static tg_status run(const tg_invocation *invocation)
{
    return invocation->argument_count == 2 ? run_two(invocation) : run_many(invocation);
}

static const tg_command_note EXAMPLES[] = {
    {"tagine compare runs/teacher runs/tuned", "What was set differently, and what came of it"},
    {"tagine compare runs/teacher runs/tuned runs/student", "A line for each of several runs"},
    {0},
};

const tg_command tg_command_compare = {
    .name = "compare",
    .arguments = "RUN RUN...",
    .summary = "Two runs side by side, or several in a table",
    .description =
        "Options that differ, speed and phases, where the wall time went, operations, use of the\n"
        "machines, memory, what was learned, findings that are resolved or new, and what the "
        "first run's\nfindings predicted beside what the second one measured. A difference inside "
        "the noise of the\ntwo runs is called none.\n\nReads the run directories alone; runs may "
        "still go.",
    .examples = EXAMPLES,
    .see_also = "diagnose, watch, metrics, train, distill",
    .work = TG_COMMAND_PRINTS,
    .arguments_min = 2,
    .arguments_max = MOST_RUNS,
    .run = run,
};
