/* tagine plan: what a model costs before anything is started. */
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options_model.h"
#include "kern/kern.h"
#include "model/vit.h"
#include "tensor/param.h"

typedef struct plan_settings {
    tg_model_choice model;
    int64_t batch_size;
    bool amp, model_ema;
    int amp_dtype;
} plan_settings;

static const char *const DTYPES[] = {"bfloat16", "float32", NULL};

#define AT(field) offsetof(plan_settings, field)
static const tg_option OPTIONS[] = {
    {.name = "batch-size",
     .letter = 'b',
     .type = TG_OPTION_INT,
     .offset = AT(batch_size),
     .initial = "128",
     .metavar = "N",
     .help = "images in a step",
     .low = 1,
     .high = 1 << 20},
    {.name = "amp",
     .type = TG_OPTION_BOOL,
     .offset = AT(amp),
     .help = "mixed precision: activations in --amp-dtype"},
    {.name = "amp-dtype",
     .type = TG_OPTION_CHOICE,
     .offset = AT(amp_dtype),
     .initial = "bfloat16",
     .choices = DTYPES,
     .help = "type of activations with --amp"},
    {.name = "model-ema",
     .type = TG_OPTION_BOOL,
     .offset = AT(model_ema),
     .help = "keep a running average of the weights"},
};

static const tg_command_group GROUPS[] = {
    {"Model", tg_model_option_table, TG_MODEL_OPTION_COUNT, AT(model)},
    {"Step", OPTIONS, TG_COUNT_OF(OPTIONS), 0},
};

typedef struct plan {
    size_t parameters;
    double macs; /* of one image's forward */
    double weights_bytes, gradients_bytes, moments_bytes, average_bytes, activations_bytes;
    double prepared_bytes;  /* copies of the weights that products read */
    double inference_bytes; /* activations of one image, forward only */
    double inference_prepared_bytes;
} plan;

/* What products keep of the weights on this machine. */
static tg_status add_prepared(const tg_vit_config *config, tg_dtype dtype, plan *p)
{
    tg_stream *stream;
    TG_TRY(tg_stream_open_cpu(1, tg_cpu_level_detect(), &stream));
    const tg_kern *kern = tg_kern_select(stream);
    p->prepared_bytes = (double)tg_vit_weight_bytes(config, kern, dtype, true);
    p->inference_prepared_bytes = (double)tg_vit_weight_bytes(config, kern, dtype, false);
    tg_stream_close(stream);
    return TG_OK;
}

static tg_status make_plan(const plan_settings *s, const tg_vit_config *config, plan *out)
{
    tg_param_table table = {0};
    TG_TRY(tg_vit_params(config, &table));
    tg_dtype dtype = s->amp && s->amp_dtype == 0 ? TG_BF16 : TG_F32;
    double copy_bytes = 4.0 * (double)table.elements;
    size_t B = (size_t)s->batch_size;
    *out = (plan){
        .parameters = tg_param_total(&table),
        .macs = tg_vit_macs(config),
        .weights_bytes = copy_bytes,
        .gradients_bytes = copy_bytes,
        .moments_bytes = 2 * copy_bytes,
        .average_bytes = s->model_ema ? copy_bytes : 0,
        .activations_bytes = (double)tg_vit_step_bytes(config, B, dtype, TG_VIT_TRAIN),
        .inference_bytes = (double)tg_vit_step_bytes(config, 1, dtype, TG_VIT_INFER),
    };
    tg_param_table_done(&table);
    return add_prepared(config, dtype, out);
}

static double total_bytes(const plan *p)
{
    return p->weights_bytes + p->gradients_bytes + p->moments_bytes + p->average_bytes +
           p->prepared_bytes + p->activations_bytes;
}

static void print_json(const plan_settings *s, const tg_vit_config *config, const plan *p,
                       tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "model", config->architecture);
    tg_json_put_uint(&w, "img_size", config->img_h);
    tg_json_put_uint(&w, "tokens", tg_vit_tokens(config));
    tg_json_put_int(&w, "batch_size", s->batch_size);
    tg_json_put_uint(&w, "parameters", p->parameters);
    tg_json_put_double(&w, "macs", p->macs);
    tg_json_put_double(&w, "flops_forward", 2 * p->macs);
    tg_json_put_double(&w, "flops_train", 6 * p->macs);
    tg_json_put_double(&w, "weights_bytes", p->weights_bytes);
    tg_json_put_double(&w, "gradients_bytes", p->gradients_bytes);
    tg_json_put_double(&w, "moments_bytes", p->moments_bytes);
    tg_json_put_double(&w, "average_bytes", p->average_bytes);
    tg_json_put_double(&w, "prepared_bytes", p->prepared_bytes);
    tg_json_put_double(&w, "activations_bytes", p->activations_bytes);
    tg_json_put_double(&w, "total_bytes", total_bytes(p));
    tg_json_put_double(&w, "inference_prepared_bytes", p->inference_prepared_bytes);
    tg_json_put_double(&w, "inference_activations_bytes", p->inference_bytes);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_row(const char *name, double bytes, tg_text *out)
{
    tg_text_append_format(out, "  %-24s", name);
    tg_console_append_bytes(out, bytes);
    tg_text_append_char(out, '\n');
}

static void print_table(const plan_settings *s, const tg_vit_config *config, const plan *p,
                        tg_text *out)
{
    const char *dtype = s->amp && s->amp_dtype == 0 ? "bfloat16" : "float32";
    tg_text_append_format(out,
                          "%s, %zux%zu pixels, %zu tokens\n"
                          "  %-24s%.3f million\n  %-24s%.3f billion an image\n"
                          "  %-24s%.3f GFLOP forward, %.3f GFLOP a training step\n",
                          config->architecture, config->img_w, config->img_h, tg_vit_tokens(config),
                          "parameters", (double)p->parameters * 1e-6, "multiply-adds",
                          p->macs * 1e-9, "work an image", 2e-9 * p->macs, 6e-9 * p->macs);
    tg_text_append_format(out, "memory of a training step, batch %lld, %s\n",
                          (long long)s->batch_size, dtype);
    print_row("weights", p->weights_bytes, out);
    print_row("gradients", p->gradients_bytes, out);
    print_row("moments (AdamW)", p->moments_bytes, out);
    if (p->average_bytes > 0)
        print_row("average of the weights", p->average_bytes, out);
    print_row("weights as prepared", p->prepared_bytes, out);
    print_row("activations, at most", p->activations_bytes, out);
    print_row("total", total_bytes(p), out);
    tg_text_append_string(out, "memory of predicting one image\n");
    print_row("weights", p->weights_bytes, out);
    print_row("weights as prepared", p->inference_prepared_bytes, out);
    print_row("activations, at most", p->inference_bytes, out);
}

static tg_status run(const tg_invocation *invocation)
{
    const plan_settings *s = invocation->settings;
    tg_vit_config config;
    plan p;
    tg_text text = {0};
    TG_TRY(tg_model_choice_config(&s->model, &config));
    TG_TRY(make_plan(s, &config, &p));
    if (invocation->common->json)
        print_json(s, &config, &p, &text);
    else
        print_table(s, &config, &p, &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine plan --model vit_small_patch16_224 --batch-size 64 --amp",
     "The memory that a training step of ViT-S/16 takes"},
    {"tagine plan --model runs/teacher", "What a trained model costs"},
    {0},
};

const tg_command tg_command_plan = {
    .name = "plan",
    .arguments = "",
    .summary = "Show a model's parameters, work and memory before anything is started",
    .description =
        "Counts parameters and multiply-adds (twice that many FLOPs; a training step "
        "takes three\ntimes the forward), and the memory of a training step: weights, "
        "gradients and AdamW's\nmoments in float32, the copies of the weights that products "
        "read on this machine, and an\nupper bound of the activations.",
    .examples = EXAMPLES,
    .see_also = "train, bench train",
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(plan_settings),
    .run = run,
};
