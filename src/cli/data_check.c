/* tagine data check: what is wrong with photos, found before training. */
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options_data.h"
#include "data/check.h"
#include "data/quote.h"

#include <string.h>

typedef struct check_settings {
    tg_data_choice data;
    int64_t seed, tiny_px, huge_pixels, near_bits;
    double imbalance;
    bool strict;
} check_settings;

#define AT(field) offsetof(check_settings, field)
static const tg_option OPTIONS[] = {
    {.name = "tiny",
     .type = TG_OPTION_INT,
     .offset = AT(tiny_px),
     .initial = "32",
     .metavar = "PX",
     .help = "report photos with a side below this",
     .low = 0,
     .high = 1e6},
    {.name = "huge",
     .type = TG_OPTION_INT,
     .offset = AT(huge_pixels),
     .initial = "50000000",
     .metavar = "PIXELS",
     .help = "report photos with more pixels than this",
     .low = 1,
     .high = 1e12},
    {.name = "near-bits",
     .type = TG_OPTION_INT,
     .offset = AT(near_bits),
     .initial = "3",
     .metavar = "N",
     .help = "how far two photos' hashes may differ to look alike; -1: do not look",
     .low = -1,
     .high = 3},
    {.name = "imbalance",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(imbalance),
     .initial = "10",
     .metavar = "FACTOR",
     .help = "report classes this much smaller than the largest",
     .low = 1,
     .high = 1e9},
    {.name = "seed",
     .type = TG_OPTION_INT,
     .offset = AT(seed),
     .initial = "42",
     .metavar = "N",
     .help = "decides which photos a --val-split share holds out",
     .low = 0,
     .high = 1e15},
    {.name = "strict",
     .type = TG_OPTION_BOOL,
     .offset = AT(strict),
     .help = "leave with exit code 3 when something was found"},
};

static const tg_command_group GROUPS[] = {
    {"Data", tg_data_option_table, TG_DATA_OPTION_COUNT, AT(data)},
    {"Check", OPTIONS, TG_COUNT_OF(OPTIONS), 0},
};

static void put_finding(const tg_check_finding *finding, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "kind", tg_check_kind_name(finding->kind));
    tg_json_put_string(&w, "split", finding->split);
    tg_json_put_string(&w, "path", finding->path);
    tg_json_put_string(&w, "other", finding->other);
    tg_json_put_bool(&w, "leak", finding->leak);
    tg_json_put_bool(&w, "conflict", finding->conflict);
    tg_json_put_string(&w, "detail", finding->detail);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

/* The detail without the path that some faults begin with: the line has it already. */
static const char *detail_alone(const tg_check_finding *finding)
{
    char quoted[TG_QUOTE_BYTES];
    const char *detail = finding->detail;
    size_t n = strlen(tg_quote(finding->path, quoted));
    return detail && strncmp(detail, quoted, n) == 0 && strncmp(detail + n, ": ", 2) == 0
               ? detail + n + 2
               : detail;
}

static void print_finding(const tg_check_finding *finding, tg_text *out)
{
    tg_text_append_format(out, "%-15s %-6s ", tg_check_kind_name(finding->kind), finding->split);
    tg_text_append_visible(out, finding->path, "");
    if (finding->other) {
        tg_text_append_string(out, " = ");
        tg_text_append_visible(out, finding->other, "");
    }
    if (finding->detail) { /* may quote a name that is visible already */
        tg_text_append_string(out, ": ");
        tg_text_append_visible(out, detail_alone(finding), "\\");
    }
    tg_text_append_format(out, "%s%s\n", finding->leak ? "  [in two splits]" : "",
                          finding->conflict ? "  [two labels]" : "");
}

static void put_summary(const tg_check_result *result, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "kind", "summary");
    tg_json_put_uint(&w, "photos", result->photos);
    for (int k = 0; k < TG_CHECK_KIND_COUNT; k++)
        tg_json_put_uint(&w, tg_check_kind_name((tg_check_kind)k), result->counts[k]);
    tg_json_put_uint(&w, "leaks", result->leaks);
    tg_json_put_uint(&w, "conflicts", result->conflicts);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_summary(const tg_check_result *result, tg_text *out)
{
    tg_text_append_format(out, "%zu photos:", result->photos);
    for (int k = 0; k < TG_CHECK_KIND_COUNT; k++)
        tg_text_append_format(out, " %s %zu,", tg_check_kind_name((tg_check_kind)k),
                              result->counts[k]);
    tg_text_append_format(out, " in two splits %zu, with two labels %zu\n", result->leaks,
                          result->conflicts);
}

static tg_status print_result(const tg_invocation *invocation, const tg_check_result *result)
{
    tg_text text = {0};
    bool json = invocation->common->json;
    for (size_t i = 0; i < result->count; i++)
        (json ? put_finding : print_finding)(&result->findings[i], &text);
    (json ? put_summary : print_summary)(result, &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static tg_status check(const tg_invocation *invocation, const tg_dataset *train,
                       const tg_dataset *val)
{
    const check_settings *s = invocation->settings;
    const tg_check_split splits[] = {{"train", train}, {"val", val}};
    tg_check_options options = tg_check_options_default();
    tg_check_result result = {0};
    options.splits = splits;
    options.split_count = val->count ? 2 : 1;
    options.workers = tg_invocation_threads(invocation);
    options.tiny_px = (int)s->tiny_px;
    options.huge_pixels = (uint64_t)s->huge_pixels;
    options.near_bits = (int)s->near_bits;
    options.imbalance = s->imbalance;
    TG_TRY(tg_data_check(&options, &result));
    tg_status status = print_result(invocation, &result);
    if (status == TG_OK && s->strict && result.count)
        status = tg_fail(TG_ERROR_INPUT, "--data %s: %zu finding%s (--strict)", s->data.data,
                         result.count, result.count == 1 ? "" : "s");
    tg_check_result_done(&result);
    return status;
}

static tg_status run(const tg_invocation *invocation)
{
    const check_settings *s = invocation->settings;
    tg_dataset train = {0}, val = {0};
    tg_status status = tg_data_choice_open_both(&s->data, (uint64_t)s->seed, &train, &val);
    if (status == TG_OK)
        status = check(invocation, &train, &val);
    tg_dataset_done(&val);
    tg_dataset_done(&train);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine data check --data photos", "What is wrong with photos/train and photos/val"},
    {"tagine data check --data photos --strict --quiet", "Stop a script when anything was found"},
    {0},
};

const tg_command tg_command_data_check = {
    .name = "data check",
    .arguments = "",
    .summary = "Find broken, odd, tiny, huge and repeated photos",
    .description =
        "Decodes every photo of both splits. Reported: photos that cannot be read or only with a\n"
        "warning, very small and very large ones, copies by content and by look (those in two "
        "splits\nspoil validation, those with two labels have a wrong one), and classes much "
        "smaller than the\nlargest. Control characters in names are shown as \\xHH; with --json "
        "they are escaped as "
        "JSON does.\nFindings do not change the exit code unless --strict is given.",
    .examples = EXAMPLES,
    .see_also = "train",
    .work = TG_COMMAND_THREADS,
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(check_settings),
    .run = run,
};
