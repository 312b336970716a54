/* tagine plan: what a model costs before anything is started. */
#include "cli/plan.h"

#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options_infer.h"
#include "cli/options_model.h"
#include "kern/kern.h"
#include "os/file.h"
#include "tensor/param.h"

#include <math.h>
#include <stdio.h>

/* Of a photo as it is decoded (JPEGs from phones at reduced scale), when nobody has said which they will be. */
#define PHOTO_PX 3e6

static const char *const EXCHANGES[] = {"direct", "ring", NULL};
_Static_assert(TG_EXCHANGE_DIRECT == 0 && TG_EXCHANGE_RING == 1, "order of EXCHANGES");

#define AT(field) offsetof(tg_plan_settings, field)
#define REAL(option, field, start, least, most, meta, text)                                        \
    {                                                                                              \
        .name = option, .type = TG_OPTION_DOUBLE, .offset = AT(field), .initial = start,           \
        .metavar = meta, .help = text, .low = least, .high = most                                  \
    }
static const tg_option STEP_OPTIONS[] = {
    {.name = "batch-size",
     .letter = 'b',
     .type = TG_OPTION_INT,
     .offset = AT(batch_size),
     .initial = "128",
     .metavar = "N",
     .help = "images in a forward, on each rank",
     .low = 1,
     .high = 1 << 20},
    {.name = "grad-accum-steps",
     .type = TG_OPTION_INT,
     .offset = AT(grad_accum_steps),
     .initial = "1",
     .metavar = "N",
     .help = "batches whose gradients make one step",
     .low = 1,
     .high = 1e6},
    {.name = "teacher",
     .type = TG_OPTION_STRING,
     .offset = AT(teacher),
     .metavar = "MODEL",
     .help = "distil from it: model folder or architecture name",
     .flags = TG_OPTION_FILE | TG_OPTION_ARCHITECTURE},
    {.name = "amp",
     .type = TG_OPTION_BOOL,
     .offset = AT(amp),
     .help = "mixed precision: activations in --amp-dtype"},
    {.name = "amp-dtype",
     .type = TG_OPTION_CHOICE,
     .offset = AT(amp_dtype),
     .initial = "bfloat16",
     .choices = tg_amp_dtype_names,
     .help = "type of activations with --amp"},
    {.name = "model-ema",
     .type = TG_OPTION_BOOL,
     .offset = AT(model_ema),
     .help = "keep a running average of the weights"},
    {.name = "workers",
     .letter = 'j',
     .type = TG_OPTION_INT,
     .offset = AT(workers),
     .initial = "auto",
     .metavar = "N|auto",
     .help = "threads that decode photos; auto: as training would have",
     .low = 0,
     .high = 1024,
     .flags = TG_OPTION_AUTO},
};

static const tg_option NETWORK_OPTIONS[] = {
    {.name = "ranks",
     .type = TG_OPTION_STRING,
     .offset = AT(ranks),
     .metavar = "LIST",
     .help = "numbers of ranks to plan for, as in 1,2,32-4096 (a dash doubles from one to the "
             "other)"},
    {.name = "ranks-per-host",
     .type = TG_OPTION_INT,
     .offset = AT(ranks_per_host),
     .initial = "1",
     .metavar = "N",
     .help = "ranks that share a host and its link",
     .low = 1,
     .high = 1 << 16},
    REAL("link-gbit", link_gbit, "10", 1e-6, 1e6, "GBIT",
         "what a host's link carries each way, in Gbit/s"),
    REAL("local-gbit", local_gbit, NULL, 1e-6, 1e6, "GBIT",
         "what passes between ranks of one host, each way (default: no limit)"),
    REAL("latency-us", latency_us, "50", 0, 1e9, "US", "microseconds of a message to another rank"),
    REAL("message-us", message_us, "5", 0, 1e6, "US",
         "microseconds of a core for each message that a rank sends, beside the wire"),
    REAL("core-ns-per-kib", core_ns_per_kib, "0", 0, 1e9, "NS",
         "nanoseconds of a core for each KiB that a rank sends, the kernel's work included"),
    {.name = "spare-cores",
     .type = TG_OPTION_INT,
     .offset = AT(spare_cores),
     .initial = "0",
     .metavar = "N",
     .help = "cores of a rank on which it does not compute; with none the exchange takes its core "
             "time from computing",
     .low = 0,
     .high = 1 << 16},
    {.name = "ranks-per-core",
     .type = TG_OPTION_INT,
     .offset = AT(ranks_per_core),
     .initial = "1",
     .metavar = "N",
     .help = "ranks that compute on the same core, with a step's time as it is there",
     .low = 1,
     .high = 1 << 16},
    {.name = "exchange",
     .type = TG_OPTION_CHOICE,
     .offset = AT(exchange),
     .initial = "direct",
     .choices = EXCHANGES,
     .metavar = "KIND",
     .help = "direct: everyone to everyone, as --comm mpi does; ring: passed on"},
    {.name = "bench-comm",
     .type = TG_OPTION_STRING,
     .offset = AT(bench_comm),
     .metavar = "FILE",
     .help = "latency, link and core time as measured: what bench comm --json has written",
     .flags = TG_OPTION_FILE},
};

static const tg_option TIME_OPTIONS[] = {
    {.name = "measure",
     .type = TG_OPTION_BOOL,
     .offset = AT(measure),
     .help = "measure a step of one rank, here and now"},
    REAL("step-seconds", step_seconds, NULL, 1e-9, 1e9, "S",
         "a step of one rank, as known from elsewhere"),
    {.name = "run",
     .type = TG_OPTION_STRING,
     .offset = AT(run),
     .metavar = "RUN",
     .help = "take the times of a run's steps, from its metrics.jsonl, and its model where no "
             "option says one",
     .flags = TG_OPTION_FOLDER},
    REAL("spread", spread, "0", 0, 100, "PERCENT",
         "standard deviation of a rank's step: all wait for the slowest"),
    REAL("images", images, NULL, 1, 1e15, "N", "pictures of an epoch, for hours"),
    REAL("epochs", epochs, "1", 1e-6, 1e9, "N", "epochs, likewise"),
    REAL("price-per-hour", price_per_hour, NULL, 0, 1e9, "PRICE", "of a host, for the cost"),
    {.name = "seen-hours",
     .type = TG_OPTION_DOUBLES,
     .offset = AT(seen_hours),
     .metavar = "HOURS...",
     .help =
         "hours that were really seen, one for each of --ranks, to explain; the first one gives "
         "the time of a step where nothing else does",
     .low = 1e-9,
     .high = 1e9},
};

static const tg_command_group GROUPS[] = {
    {"Model", tg_model_option_table, TG_MODEL_OPTION_COUNT, AT(model)},
    {"Step", STEP_OPTIONS, TG_COUNT_OF(STEP_OPTIONS), 0},
    {"Ranks", NETWORK_OPTIONS, TG_COUNT_OF(NETWORK_OPTIONS), 0},
    {"Update", tg_parallel_option_table + TG_PARALLEL_JOIN_COUNT,
     TG_PARALLEL_OPTION_COUNT - TG_PARALLEL_JOIN_COUNT, AT(parallel)},
    {"Time", TIME_OPTIONS, TG_COUNT_OF(TIME_OPTIONS), 0},
};

/* Of the model itself, and of predicting one picture. */
typedef struct counts {
    size_t parameters;
    double macs; /* of one image's forward */
    double inference_prepared_bytes, inference_bytes;
} counts;

/* A run's times are those of its own model: that one counts unless the options say another. */
static tg_model_choice choice_of(const tg_invocation *invocation)
{
    const tg_plan_settings *s = invocation->settings;
    tg_model_choice choice = s->model;
    char folder[4096];
    for (size_t i = 0; i < TG_MODEL_OPTION_COUNT; i++)
        if (tg_options_given(invocation->options, tg_model_option_table[i].name))
            return choice;
    if (s->run && snprintf(folder, sizeof folder, "%s/model", s->run) < (int)sizeof folder &&
        tg_file_exists(folder))
        choice.model = s->run;
    return choice;
}

static tg_status open_subject(const tg_invocation *invocation, tg_plan_subject *out)
{
    const tg_plan_settings *s = invocation->settings;
    *out = (tg_plan_subject){.settings = s,
                             .invocation = invocation,
                             .has_teacher = s->teacher != NULL,
                             .dtype = s->amp && s->amp_dtype == 0 ? TG_BF16 : TG_F32};
    const tg_model_choice student = choice_of(invocation);
    TG_TRY(tg_model_choice_config(&student, &out->student));
    const tg_model_choice teacher = {
        .model = s->teacher, .reg_tokens = -1, .num_classes = (int64_t)out->student.num_classes};
    if (!s->teacher)
        return TG_OK;
    tg_status status = tg_model_choice_config(&teacher, &out->teacher);
    return status < 0 ? tg_fail_prefix(status, "teacher") : TG_OK;
}

static tg_preprocess input_of(const tg_vit_config *config)
{
    tg_preprocess input = tg_preprocess_default((int)config->img_w);
    input.height_px = (int)config->img_h;
    return input;
}

static int workers_of(const tg_plan_subject *subject)
{
    tg_train_options options = {.threads = tg_invocation_threads(subject->invocation)};
    options.data.workers = subject->settings->workers;
    return tg_train_options_workers(&options);
}

tg_status tg_plan_memory(const tg_plan_subject *subject, int ranks, tg_memory *out)
{
    const tg_plan_settings *s = subject->settings;
    tg_stream *stream;
    TG_TRY(tg_stream_open_cpu(1, tg_cpu_level_detect(), &stream));
    tg_loader_options loader = {.batch_size = (size_t)s->batch_size * (size_t)ranks,
                                .ranks = ranks,
                                .workers = workers_of(subject),
                                .train = true,
                                .preprocess = input_of(&subject->student),
                                .has_teacher = subject->has_teacher,
                                .num_classes = subject->student.num_classes};
    if (subject->has_teacher)
        loader.teacher_preprocess = input_of(&subject->teacher);
    const tg_memory_request request = {.student = &subject->student,
                                       .teacher = subject->has_teacher ? &subject->teacher : NULL,
                                       .kern = tg_kern_select(stream),
                                       .dtype = subject->dtype,
                                       .average = s->model_ema,
                                       .loader = &loader,
                                       .photos = isnan(s->images) ? 0 : (size_t)s->images,
                                       .photo_px = PHOTO_PX,
                                       .exchange = tg_parallel_ranks(&s->parallel)};
    tg_status status = tg_memory_predict(&request, out);
    tg_stream_close(stream);
    return status;
}

static tg_status count(const tg_plan_subject *subject, counts *out)
{
    const tg_vit_config *config = &subject->student;
    tg_param_table table = {0};
    tg_stream *stream;
    TG_TRY(tg_vit_params(config, &table));
    const size_t parameters = tg_param_total(&table);
    tg_param_table_done(&table);
    TG_TRY(tg_stream_open_cpu(1, tg_cpu_level_detect(), &stream));
    const tg_kern *kern = tg_kern_select(stream);
    *out = (counts){.parameters = parameters,
                    .macs = tg_vit_macs(config),
                    .inference_prepared_bytes =
                        (double)tg_vit_weight_bytes(config, kern, subject->dtype, false),
                    .inference_bytes =
                        (double)tg_vit_step_bytes(config, 1, subject->dtype, TG_VIT_INFER)};
    tg_stream_close(stream);
    return TG_OK;
}

static void print_json(const tg_plan_subject *subject, const counts *c, const tg_memory *m,
                       tg_text *out)
{
    const tg_vit_config *config = &subject->student;
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "model", config->architecture);
    if (subject->has_teacher)
        tg_json_put_string(&w, "teacher", subject->teacher.architecture);
    tg_json_put_uint(&w, "img_size", config->img_h);
    tg_json_put_uint(&w, "tokens", tg_vit_tokens(config));
    tg_json_put_int(&w, "batch_size", subject->settings->batch_size);
    tg_json_put_uint(&w, "parameters", c->parameters);
    tg_json_put_double(&w, "macs", c->macs);
    tg_json_put_double(&w, "flops_forward", 2 * c->macs);
    tg_json_put_double(&w, "flops_train", 6 * c->macs);
    for (int row = 0; row < TG_MEMORY_ROWS; row++)
        tg_json_put_double(&w, tg_memory_row_key((tg_memory_row)row), m->bytes[row]);
    tg_json_put_double(&w, "total_bytes", tg_memory_total(m));
    tg_json_put_double(&w, "inference_prepared_bytes", c->inference_prepared_bytes);
    tg_json_put_double(&w, "inference_activations_bytes", c->inference_bytes);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_row(const char *name, double bytes, tg_text *out)
{
    tg_text_append_format(out, "  %-24s", name);
    tg_console_append_bytes(out, bytes);
    tg_text_append_char(out, '\n');
}

static void print_memory(const tg_plan_subject *subject, int ranks, const tg_memory *m,
                         tg_text *out)
{
    tg_text_append_format(out, "memory of %s, batch %lld, %s\n",
                          ranks > 1 ? "each rank" : "a training step",
                          (long long)subject->settings->batch_size,
                          subject->dtype == TG_BF16 ? "bfloat16" : "float32");
    for (int row = 0; row < TG_MEMORY_ROWS; row++)
        if (m->bytes[row] > 0)
            print_row(tg_memory_row_title((tg_memory_row)row), m->bytes[row], out);
    print_row("together, at most", tg_memory_total(m), out);
}

static void print_text(const tg_plan_subject *subject, const counts *c, int ranks,
                       const tg_memory *m, tg_text *out)
{
    const tg_vit_config *config = &subject->student;
    tg_text_append_format(out,
                          "%s, %zux%zu pixels, %zu tokens\n"
                          "  %-24s%.3f million\n  %-24s%.3f billion an image\n"
                          "  %-24s%.3f GFLOP forward, %.3f GFLOP a training step\n",
                          config->architecture, config->img_w, config->img_h, tg_vit_tokens(config),
                          "parameters", (double)c->parameters * 1e-6, "multiply-adds",
                          c->macs * 1e-9, "work an image", 2e-9 * c->macs, 6e-9 * c->macs);
    if (subject->has_teacher)
        tg_text_append_format(out, "  %-24s%s, %.3f GFLOP an image\n", "teacher",
                              subject->teacher.architecture, 2e-9 * tg_vit_macs(&subject->teacher));
    print_memory(subject, ranks, m, out);
    if (ranks > 1)
        return;
    tg_text_append_string(out, "memory of predicting one image\n");
    print_row("weights", m->bytes[TG_MEMORY_PARAMETERS], out);
    print_row("weights as prepared", c->inference_prepared_bytes, out);
    print_row("activations, at most", c->inference_bytes, out);
}

/* Whether anything asks for the table of ranks. */
static bool wants_table(const tg_plan_settings *s)
{
    return s->ranks || s->measure || s->run || !isnan(s->step_seconds);
}

static tg_status show(const tg_plan_subject *subject, tg_text *text)
{
    const tg_plan_settings *s = subject->settings;
    int ranks[TG_PLAN_RANKS_MAX] = {1};
    size_t listed = 1;
    counts c;
    tg_memory m;
    if (s->ranks)
        TG_TRY(tg_plan_parse_ranks(s->ranks, ranks, &listed));
    TG_TRY(count(subject, &c));
    TG_TRY(tg_plan_memory(subject, ranks[0], &m));
    if (subject->invocation->common->json)
        print_json(subject, &c, &m, text);
    else
        print_text(subject, &c, ranks[0], &m, text);
    return wants_table(s) ? tg_plan_forecast(subject, text) : TG_OK;
}

static tg_status run(const tg_invocation *invocation)
{
    tg_plan_subject subject;
    tg_text text = {0};
    TG_TRY(open_subject(invocation, &subject));
    tg_status status = show(&subject, &text);
    if (status == TG_OK)
        status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine plan --model vit_small_patch16_224 --batch-size 64 --amp",
     "The memory that a training step of ViT-S/16 takes"},
    {"tagine plan --model runs/teacher", "What a trained model costs"},
    {"tagine plan --teacher vit_base_patch16_224 --ranks 4 --zero 1",
     "What each of four ranks holds while it distils, its state in shares"},
    {"tagine plan --ranks 1,2,32-4096 --step-seconds 1.5 --link-gbit 25 --ranks-per-host 8 "
     "--images 1e6 --epochs 100 --price-per-hour 30",
     "Step time, efficiency, hours and cost from a known step"},
    {"tagine plan --ranks 1,2,4 --measure --img-size 64 --batch-size 16",
     "The same from a step that is measured here"},
    {0},
};

const tg_command tg_command_plan = {
    .name = "plan",
    .arguments = "",
    .summary = "Show work, memory, time and cost before anything is started",
    .description =
        "Counts parameters and multiply-adds (twice that many FLOPs; a training step takes three\n"
        "times the forward), and what a rank holds: weights, gradients and AdamW's moments in\n"
        "float32, the copies of the weights that products read on this machine, activations, the\n"
        "loader's batches, a teacher, buffers of the exchange.\n\n"
        "--ranks plays a step through for each number of ranks: each layer's gradient final at "
        "its\n"
        "place in backward, buckets exchanged one behind the other meanwhile, parameters gathered\n"
        "behind the next forward (--zero 1). What ranks then wait is exposed. While messages move, "
        "a\n"
        "rank without a spare core computes more slowly, by the core time that the exchange takes\n"
        "(--core-ns-per-kib, --message-us, or --bench-comm). The step's own time\n"
        "comes from --measure, --run or --step-seconds, the network's from --bench-comm or the\n"
        "options of latency and link; efficiency is that of the same batch on each rank.\n\n"
        "--seen-hours explains a speed-up that was seen: how much of it the ranks are, and how "
        "much\n"
        "everything else is.",
    .examples = EXAMPLES,
    .see_also = "train, bench train, bench comm",
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(tg_plan_settings),
    .run = run,
};
