/* tagine eval: how often a model is right about the photos of a data set, and where it is not. */
#include "base/json_writer.h"
#include "base/log.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/confusion.h"
#include "cli/console.h"
#include "cli/options_data.h"
#include "cli/options_infer.h"
#include "cli/signal.h"
#include "os/clock.h"
#include "train/evaluate.h"

#include <stdlib.h>

typedef struct eval_settings {
    tg_infer_choice infer;
    tg_data_choice data;
    int64_t seed;
} eval_settings;

#define AT(field) offsetof(eval_settings, field)
static const tg_option OPTIONS[] = {
    {.name = "workers",
     .letter = 'j',
     .type = TG_OPTION_INT,
     .offset = AT(data.workers),
     .initial = "auto",
     .metavar = "N|auto",
     .help = "threads that decode photos; auto: one for each compute thread",
     .low = 0,
     .high = 1024,
     .flags = TG_OPTION_AUTO},
    {.name = "strict",
     .type = TG_OPTION_BOOL,
     .offset = AT(data.strict),
     .help = "stop at the first photo that cannot be read"},
    {.name = "seed",
     .type = TG_OPTION_INT,
     .offset = AT(seed),
     .initial = "42",
     .metavar = "N",
     .help = "decides which photos a --val-split share holds out",
     .low = 0,
     .high = 1e15},
};

static const tg_command_group GROUPS[] = {
    {"Model", tg_infer_option_table, TG_INFER_OPTION_COUNT, AT(infer)},
    {"Data", tg_scored_option_table, TG_SCORED_OPTION_COUNT, AT(data)},
    {"Loading", OPTIONS, TG_COUNT_OF(OPTIONS), 0},
};

/* Everything one evaluation holds. */
typedef struct evaluation {
    const tg_invocation *invocation;
    const eval_settings *settings;
    tg_stream *stream;
    tg_network network;
    tg_arena arena;
    tg_dataset dataset;
    int64_t start_ns;
    uint64_t *confusion; /* [K,K], or NULL for very many classes */
} evaluation;

enum { CONFUSION_MAX_CLASSES = 4096 };

/* Wrong usage is found before anything is read. */
static tg_status check_settings(const eval_settings *settings)
{
    double share;
    TG_TRY(tg_infer_choice_check(&settings->infer));
    if (!settings->data.data)
        return tg_fail(TG_ERROR_USAGE, "no photos given: --data DIR");
    return tg_data_choice_share(&settings->data, &share);
}

static tg_status open_model(evaluation *e)
{
    const tg_infer_choice *choice = &e->settings->infer;
    if (!tg_network_is_path(choice->model))
        return tg_fail(TG_ERROR_INPUT, "model %s: there is no such file or folder", choice->model);
    TG_TRY(tg_stream_open_cpu(tg_invocation_threads(e->invocation),
                              (tg_cpu_level)e->invocation->common->cpu_isa, &e->stream));
    tg_dtype dtype = tg_infer_choice_dtype(choice);
    if (dtype == TG_BF16 && !tg_stream_has_bf16(e->stream)) {
        tg_log_info("this machine does not compute in bfloat16; float32 is used");
        dtype = TG_F32;
    }
    const tg_network_request request = {
        .model = choice->model, .shape = {.reg_tokens = -1, .num_classes = -1}, .dtype = dtype};
    TG_TRY(tg_network_open(&request, tg_kern_select(e->stream), e->stream, &e->network));
    if (e->network.info.config.num_classes == 0)
        return tg_fail(TG_ERROR_INPUT, "%s: the model has no classes, only features",
                       choice->model);
    return tg_arena_init(
        &e->arena,
        tg_vit_step_bytes(&e->network.info.config, (size_t)choice->batch_size, dtype, TG_VIT_INFER),
        "activations");
}

/* The model's class list rules; a model without names must have as many classes as the data. */
static tg_status open_data(evaluation *e)
{
    const tg_model_info *info = &e->network.info;
    size_t K = info->config.num_classes;
    tg_status status =
        tg_data_choice_open(&e->settings->data, TG_DATA_VAL, (uint64_t)e->settings->seed,
                            (const char *const *)info->class_names, info->class_count, &e->dataset);
    if (status < 0)
        return info->class_names ? tg_fail_prefix(status, "with the %zu classes of the model", K)
                                 : status;
    if (e->dataset.class_count != K)
        return tg_fail(TG_ERROR_INPUT,
                       "%s: the model has %zu classes without names, the data has %zu: they cannot "
                       "be matched",
                       e->settings->infer.model, K, e->dataset.class_count);
    if (!info->class_names)
        tg_log_warning(
            "the model folder has no class names; the data's classes are taken in order");
    if (K > CONFUSION_MAX_CLASSES)
        return TG_OK;
    e->confusion = calloc(K * K, sizeof *e->confusion);
    return e->confusion ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for %zu classes", K);
}

static void show_progress(void *user, uint64_t done, uint64_t total)
{
    char note[64];
    double seconds = tg_clock_seconds(tg_clock_ns() - ((const evaluation *)user)->start_ns);
    tg_number_print(note, sizeof note, "%.1f images/s", (double)done / seconds);
    tg_console_progress("eval", done, total, note);
}

static int wants_stop(void *user)
{
    (void)user;
    return tg_signal_stop();
}

static tg_status measure(evaluation *e, tg_evaluation *out)
{
    const eval_settings *s = e->settings;
    int workers = s->data.workers == TG_OPTION_AUTO_VALUE ? tg_invocation_threads(e->invocation)
                                                          : (int)s->data.workers;
    const tg_evaluate_options options = {.batch_size = (size_t)s->infer.batch_size,
                                         .workers = workers,
                                         .strict = s->data.strict,
                                         .preprocess = &e->network.info.preprocess,
                                         .confusion = e->confusion,
                                         .progress = show_progress,
                                         .user = e,
                                         .stop = wants_stop};
    e->start_ns = tg_clock_ns();
    TG_TRY(tg_evaluate(e->network.vit, &e->arena, &e->dataset, &options, out));
    tg_console_progress_end();
    if (out->images == 0)
        return tg_fail(TG_ERROR_INPUT, "none of %llu photos could be read",
                       (unsigned long long)out->skipped);
    if (out->not_finite)
        return tg_fail(TG_ERROR_INPUT,
                       "%s: the model's answers to %llu of %llu photos are not finite, though its "
                       "weights are: they are too large for its arithmetic",
                       s->infer.model, (unsigned long long)out->not_finite,
                       (unsigned long long)out->images);
    return TG_OK;
}

static void print_json(const tg_evaluation *r, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_double(&w, "top1", r->top1);
    tg_json_put_double(&w, "top5", r->top5);
    tg_json_put_double(&w, "loss", r->loss);
    tg_json_put_uint(&w, "images", r->images);
    tg_json_put_uint(&w, "skipped", r->skipped);
    tg_json_put_double(&w, "images_per_s", r->images_per_s);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_text(const evaluation *e, const tg_evaluation *r, tg_text *out)
{
    const tg_model_info *info = &e->network.info;
    tg_text_append_format(out, "%s (%s, %zux%zu px, %.2f million parameters)\n",
                          e->settings->infer.model, info->config.architecture, info->config.img_w,
                          info->config.img_h, 1e-6 * (double)tg_param_total(&e->network.table));
    tg_text_append_format(out, "%llu photos of %zu classes", (unsigned long long)r->images,
                          e->dataset.class_count);
    if (r->skipped)
        tg_text_append_format(out, ", %llu could not be read", (unsigned long long)r->skipped);
    tg_text_append_format(out,
                          "\n\n  top-1  %6.2f %%\n  top-5  %6.2f %%\n  loss   %6.3f\n"
                          "  speed  %6.1f images/s\n",
                          r->top1, r->top5, r->loss, r->images_per_s);
    if (e->confusion)
        tg_confusion_text(e->confusion, e->dataset.class_names, e->dataset.class_count, out);
}

static void evaluation_done(evaluation *e)
{
    free(e->confusion);
    tg_dataset_done(&e->dataset);
    tg_arena_done(&e->arena);
    tg_network_close(&e->network);
    tg_stream_close(e->stream);
}

static tg_status run(const tg_invocation *invocation)
{
    evaluation e = {.invocation = invocation, .settings = invocation->settings};
    tg_evaluation result;
    tg_text text = {0};
    tg_status status;
    TG_TRY_GOTO(check_settings(e.settings), close_evaluation);
    TG_TRY_GOTO(open_model(&e), close_evaluation);
    TG_TRY_GOTO(open_data(&e), close_evaluation);
    TG_TRY_GOTO(measure(&e, &result), close_evaluation);
    if (invocation->common->json)
        print_json(&result, &text);
    else
        print_text(&e, &result, &text);
    status = tg_console_print(&text);

close_evaluation:
    tg_text_done(&text);
    evaluation_done(&e);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine eval --model runs/student --data photos", "Score a run's model on photos/val"},
    {"tagine eval --model runs/student/model --data photos --json", "One JSON object, for scripts"},
    {0},
};

const tg_command tg_command_eval = {
    .name = "eval",
    .arguments = "",
    .summary = "Score a model on photos: accuracy, loss, and what it confuses",
    .description =
        "Every photo of the split counts once; top-1 and top-5 are shares in percent, "
        "the\nloss is plain cross-entropy. The class list of the model folder rules: class folders "
        "are matched\nby name, and one that the model does not know is refused. The photos are "
        "prepared as the model\nfolder says.\n\nWith --json: {\"top1\", \"top5\", \"loss\", "
        "\"images\", \"skipped\", \"images_per_s\"}.",
    .examples = EXAMPLES,
    .see_also = "predict, train, data stats",
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(eval_settings),
    .run = run,
};
