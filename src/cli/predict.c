/* tagine predict: the best classes of each photo, and what is in a serving of the best one. */
#include "base/log.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/nutrition_text.h"
#include "cli/options_infer.h"
#include "infer/scores.h"

#include <stdlib.h>
#include <string.h>

typedef struct predict_settings {
    tg_infer_choice infer;
    int64_t topk;
    const char *nutrition;
    bool logits, strict;
} predict_settings;

#define AT(field) offsetof(predict_settings, field)
static const tg_option OPTIONS[] = {
    {.name = "topk",
     .letter = 'k',
     .type = TG_OPTION_INT,
     .offset = AT(topk),
     .initial = "5",
     .metavar = "N",
     .help = "classes to show for each photo",
     .low = 1,
     .high = 1 << 20},
    {.name = "nutrition",
     .type = TG_OPTION_STRING,
     .offset = AT(nutrition),
     .metavar = "FILE",
     .help = "nutrition table of your own (CSV) in place of the built-in one",
     .flags = TG_OPTION_FILE},
    {.name = "logits",
     .type = TG_OPTION_BOOL,
     .offset = AT(logits),
     .help = "with --json: the raw logits as well, in the order of the model's classes"},
    {.name = "strict",
     .type = TG_OPTION_BOOL,
     .offset = AT(strict),
     .help = "a photo without an answer makes the exit code 3 (else only when none has one)"},
};

static const tg_command_group GROUPS[] = {
    {"Model", tg_infer_option_table, TG_INFER_OPTION_COUNT, AT(infer)},
    {"Answers", OPTIONS, TG_COUNT_OF(OPTIONS), 0},
};

typedef struct prediction {
    const tg_invocation *invocation;
    const predict_settings *settings;
    const tg_model_info *info;
    tg_nutrition nutrition;
    float *scores; /* [K] */
    size_t *best;  /* [K] */
    tg_text text;
    size_t failed;
    bool showed_nutrition;
} prediction;

/* The table's name for people, or the class name with its marks as blanks. */
static void append_class(const prediction *p, size_t k, tg_text *out)
{
    const char *name = p->info->class_names[k];
    const tg_nutrition_row *row = tg_nutrition_find(&p->nutrition, name);
    if (row) {
        tg_text_append_string(out, row->display_name);
        return;
    }
    size_t from = out->length;
    tg_text_append_visible(out, name, "");
    for (size_t i = from; i < out->length; i++)
        if (out->data[i] == '_')
            out->data[i] = ' ';
}

/* Below this score, or with the second so near, what follows about the first would read as a fact. */
#define SURE_SCORE 0.5
#define SURE_LEAD 0.15

static void append_doubt(const prediction *p, size_t count, tg_text *out)
{
    const size_t K = p->info->config.num_classes;
    double first = (double)p->scores[p->best[0]];
    double second = count > 1 ? (double)p->scores[p->best[1]] : 0;
    if (K < 2 || (first >= SURE_SCORE && first - second >= SURE_LEAD))
        return;
    tg_text_append_string(out, "  not sure: it may be ");
    append_class(p, p->best[0], out);
    if (count > 1) {
        tg_text_append_string(out, " or ");
        append_class(p, p->best[1], out);
    }
    tg_text_append_string(out, ", or something else\n");
}

static void write_text(prediction *p, const char *file, size_t count)
{
    tg_text *out = &p->text;
    tg_text_append_visible(out, file, "");
    tg_text_append_char(out, '\n');
    for (size_t i = 0; i < count; i++) {
        tg_text_append_format(out, "  %5.1f %%  ", 100 * (double)p->scores[p->best[i]]);
        append_class(p, p->best[i], out);
        tg_text_append_char(out, '\n');
    }
    const tg_nutrition_row *row =
        tg_nutrition_find(&p->nutrition, p->info->class_names[p->best[0]]);
    append_doubt(p, count, out);
    if (!row)
        return;
    tg_text_append_format(out, "\n  %s\n", row->display_name);
    tg_nutrition_text(row, out);
    p->showed_nutrition = true;
}

static void write_json(prediction *p, const char *file, const float *logits, size_t count)
{
    tg_json_writer w = tg_json_writer_init(&p->text);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "file", file);
    tg_json_begin_array(&w, "predictions");
    for (size_t i = 0; i < count; i++) {
        tg_json_begin_object(&w, NULL);
        tg_json_put_string(&w, "class", p->info->class_names[p->best[i]]);
        tg_json_put_float(&w, "score", p->scores[p->best[i]]);
        tg_json_end_object(&w);
    }
    tg_json_end_array(&w);
    tg_nutrition_json(tg_nutrition_find(&p->nutrition, p->info->class_names[p->best[0]]),
                      "nutrition", &w);
    if (p->settings->logits) {
        tg_json_begin_array(&w, "logits");
        for (size_t k = 0; k < p->info->config.num_classes; k++)
            tg_json_put_float(&w, NULL, logits[k]);
        tg_json_end_array(&w);
    }
    tg_json_end_object(&w);
    tg_text_append_char(&p->text, '\n');
}

/* The message without the file's name in front, which stands beside it anyway. */
static const char *reason_of(const char *file, const char *error)
{
    size_t n = strlen(file);
    return strncmp(error, file, n) == 0 && strncmp(error + n, ": ", 2) == 0 ? error + n + 2 : error;
}

static void write_error(prediction *p, const char *file, const char *error)
{
    error = reason_of(file, error);
    if (!p->invocation->common->json) {
        tg_text_append_visible(&p->text, file, "");
        tg_text_append_string(&p->text, "\n  no answer: ");
        tg_text_append_visible(&p->text, error, "\\");
        tg_text_append_char(&p->text, '\n');
        return;
    }
    tg_json_writer w = tg_json_writer_init(&p->text);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "file", file);
    tg_json_put_string(&w, "error", error);
    tg_json_end_object(&w);
    tg_text_append_char(&p->text, '\n');
}

static tg_status receive(void *user, const tg_engine_answer *answer)
{
    prediction *p = user;
    const char *file = p->invocation->arguments[answer->index];
    bool json = p->invocation->common->json;
    if (answer->index > 0 && !json)
        tg_text_append_char(&p->text, '\n');
    if (answer->error) {
        p->failed++;
        write_error(p, file, answer->error);
    } else {
        size_t K = p->info->config.num_classes;
        tg_scores_softmax(answer->logits, K, p->scores);
        size_t count = tg_scores_top(answer->logits, K, (size_t)p->settings->topk, p->best);
        if (json)
            write_json(p, file, answer->logits, count);
        else
            write_text(p, file, count);
    }
    TG_TRY(tg_console_print(&p->text));
    return tg_infer_check_stop();
}

static tg_status open_nutrition(const char *path, tg_nutrition *out)
{
    TG_TRY(path ? tg_nutrition_read(path, out) : tg_nutrition_shipped(out));
    const char *line = tg_text_string(&out->warnings);
    for (size_t n; *line; line += n + 1) {
        n = strcspn(line, "\n");
        tg_log_warning("%.*s", (int)n, line);
    }
    return TG_OK;
}

static tg_status reserve(const char *model, prediction *p)
{
    size_t K = p->info->config.num_classes;
    if (K == 0)
        return tg_fail(TG_ERROR_INPUT,
                       "%s: the model has no classes; \"tagine embed\" gives its features", model);
    p->scores = calloc(K, sizeof *p->scores);
    p->best = calloc(K, sizeof *p->best);
    return p->scores && p->best ? TG_OK
                                : tg_fail(TG_ERROR_MACHINE, "out of memory for %zu scores", K);
}

static tg_status finish(prediction *p, const tg_invocation *invocation)
{
    size_t count = invocation->argument_count;
    const char *own = p->settings->nutrition;
    if (p->showed_nutrition && !invocation->common->json) {
        tg_text_append_format(&p->text, "\nNutrition values: %s\n",
                              own ? own
                                  : "USDA food databases (public domain), typical recipes; not "
                                    "advice on diet.");
        TG_TRY(tg_console_print(&p->text));
    }
    if (p->failed == count || (p->failed && p->settings->strict))
        return tg_fail(TG_ERROR_INPUT, "%zu of %zu photos have no answer", p->failed, count);
    return TG_OK;
}

static tg_status check_settings(const tg_invocation *invocation)
{
    const predict_settings *s = invocation->settings;
    if (s->logits && !invocation->common->json)
        return tg_fail(TG_ERROR_USAGE, "--logits shows in the output of --json only; add it");
    return tg_infer_choice_check(&s->infer);
}

static tg_status run(const tg_invocation *invocation)
{
    const predict_settings *s = invocation->settings;
    prediction p = {.invocation = invocation, .settings = s};
    tg_engine *engine = NULL;
    tg_status status;
    TG_TRY_GOTO(check_settings(invocation), close_all);
    TG_TRY_GOTO(open_nutrition(s->nutrition, &p.nutrition), close_all);
    TG_TRY_GOTO(tg_infer_choice_open(&s->infer, invocation, &engine), close_all);
    p.info = tg_engine_info(engine);
    TG_TRY_GOTO(reserve(s->infer.model, &p), close_all);
    TG_TRY_GOTO(
        tg_engine_run_files(engine, invocation->arguments, invocation->argument_count, receive, &p),
        close_all);
    status = finish(&p, invocation);

close_all:
    tg_engine_close(engine);
    tg_nutrition_done(&p.nutrition);
    tg_text_done(&p.text);
    free(p.scores);
    free(p.best);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine predict --model runs/student --topk 3 photos/val/pizza/*.jpg",
     "The three best classes of some photos"},
    {"tagine predict --model runs/student --json photos/val/sushi/00000.jpg",
     "One JSON object a photo"},
    {0},
};

const tg_command tg_command_predict = {
    .name = "predict",
    .arguments = "FILE...",
    .summary = "Name what is on photos, with nutrition facts of the best class",
    .description =
        "Shows the best classes of each photo with their scores (softmax), and, when the "
        "best class\nstands in the nutrition table, what 100 g and a serving of it hold. "
        "JPEG, PNG, WebP and HEIF\nare known by their content. A photo that cannot be "
        "read is reported in its place and the\nothers are answered.\n\n"
        "With --json each photo is one line: {\"file\", \"predictions\": [{\"class\", "
        "\"score\"}],\n\"nutrition\"} or {\"file\", \"error\"}, in the order of the "
        "arguments. A table of your own\n(--nutrition) has a line of column names, of "
        "which only \"class\" must be there:\ndisplay_name, serving_description, "
        "serving_g, kcal_per_100g, kj_per_100g, carbohydrate_g,\nsugars_g, fiber_g, "
        "protein_g, fat_g, saturated_fat_g, sodium_mg, source_description,\n"
        "fdc_or_ndb_id, note; values per 100 g; an empty cell is unknown, not 0.",
    .examples = EXAMPLES,
    .see_also = "eval, embed, bench infer",
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(predict_settings),
    .arguments_min = 1,
    .arguments_max = (size_t)-1,
    .run = run,
};
