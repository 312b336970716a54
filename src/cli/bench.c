/* tagine bench train, distill, infer: whole steps on this machine, against its own peak. */
#include "base/json_writer.h"
#include "cli/bench_profile.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options_infer.h"
#include "cli/options_model.h"
#include "cli/options_parallel.h"
#include "cli/rank_cores.h"
#include "cli/same_options.h"
#include "cli/signal.h"
#include "train/bench.h"

#include <math.h>

typedef struct bench_settings {
    tg_model_choice model;
    tg_parallel_choice parallel;
    const char *teacher;
    int64_t batch_size, steps, warmup;
    int amp_dtype;
    bool profile, trace_cost;
    const char *trace;
} bench_settings;

#define AT(field) offsetof(bench_settings, field)
#define STEP_OPTIONS(batch)                                                                        \
    {.name = "batch-size",                                                                         \
     .letter = 'b',                                                                                \
     .type = TG_OPTION_INT,                                                                        \
     .offset = AT(batch_size),                                                                     \
     .initial = batch,                                                                             \
     .metavar = "N",                                                                               \
     .help = "images in a step",                                                                   \
     .low = 1,                                                                                     \
     .high = 1 << 20},                                                                             \
        {.name = "steps",                                                                          \
         .type = TG_OPTION_INT,                                                                    \
         .offset = AT(steps),                                                                      \
         .initial = "20",                                                                          \
         .metavar = "N",                                                                           \
         .help = "timed steps, of which the median counts",                                        \
         .low = 1,                                                                                 \
         .high = 1e6},                                                                             \
        {.name = "warmup",                                                                         \
         .type = TG_OPTION_INT,                                                                    \
         .offset = AT(warmup),                                                                     \
         .initial = "3",                                                                           \
         .metavar = "N",                                                                           \
         .help = "steps before them that are not timed",                                           \
         .low = 0,                                                                                 \
         .high = 1e6},                                                                             \
        {.name = "amp-dtype",                                                                      \
         .type = TG_OPTION_CHOICE,                                                                 \
         .offset = AT(amp_dtype),                                                                  \
         .initial = "bfloat16",                                                                    \
         .choices = tg_amp_dtype_names,                                                            \
         .metavar = "TYPE",                                                                        \
         .help = "type of activations and products"},                                              \
        {.name = "trace",                                                                          \
         .type = TG_OPTION_STRING,                                                                 \
         .offset = AT(trace),                                                                      \
         .metavar = "DIR",                                                                         \
         .help = "write timelines of the timed steps, for Perfetto, to DIR/rank-N.json.gz",        \
         .flags = TG_OPTION_FOLDER},                                                               \
        {.name = "trace-cost",                                                                     \
         .type = TG_OPTION_BOOL,                                                                   \
         .offset = AT(trace_cost),                                                                 \
         .initial = "false",                                                                       \
         .help = "then run as many pairs of steps, one recorded as a job records it, one not"},    \
    {                                                                                              \
        .name = "profile", .type = TG_OPTION_BOOL, .offset = AT(profile), .initial = "false",      \
        .help = "then run as many steps again with every operation timed, and list them"           \
    }

static const tg_option TRAIN_OPTIONS[] = {STEP_OPTIONS("32")};
static const tg_option INFER_OPTIONS[] = {STEP_OPTIONS("1")};
static const tg_option DISTILL_OPTIONS[] = {
    STEP_OPTIONS("32"),
    {.name = "teacher",
     .type = TG_OPTION_STRING,
     .offset = AT(teacher),
     .initial = "vit_base_patch16_224",
     .metavar = "MODEL",
     .help = "the teacher: architecture name or model folder",
     .flags = TG_OPTION_FILE | TG_OPTION_ARCHITECTURE},
};

#define MODEL_GROUP                                                                                \
    {                                                                                              \
        "Model", tg_model_option_table, TG_MODEL_OPTION_COUNT, AT(model)                           \
    }
#define PARALLEL_GROUP                                                                             \
    {                                                                                              \
        "Ranks", tg_parallel_option_table, TG_PARALLEL_OPTION_COUNT, AT(parallel)                  \
    }
static const tg_command_group TRAIN_GROUPS[] = {
    MODEL_GROUP, {"Step", TRAIN_OPTIONS, TG_COUNT_OF(TRAIN_OPTIONS), 0}, PARALLEL_GROUP};
static const tg_command_group INFER_GROUPS[] = {
    MODEL_GROUP, {"Step", INFER_OPTIONS, TG_COUNT_OF(INFER_OPTIONS), 0}};
static const tg_command_group DISTILL_GROUPS[] = {
    MODEL_GROUP, {"Step", DISTILL_OPTIONS, TG_COUNT_OF(DISTILL_OPTIONS), 0}, PARALLEL_GROUP};

static const char *dtype_name(tg_dtype dtype)
{
    return dtype == TG_BF16 ? "bfloat16" : "float32";
}

static void put_exchange(tg_json_writer *w, const tg_bench_result *r)
{
    const tg_overlap *o = &r->overlap;
    if (!o->buckets)
        return;
    tg_json_put_uint(w, "buckets", o->buckets);
    tg_json_put_double(w, "exchange_s", o->exchange_s);
    tg_json_put_double(w, "exchange_hidden_s", o->hidden_s);
    tg_json_put_double(w, "first_bucket_before_end_s", o->before_end_s);
    tg_json_put_double(w, "last_bucket_behind_s", o->behind_s);
    tg_json_put_double(w, "exchange_cpu_s", r->exchange_cpu_s);
}

static void print_json(const bench_settings *s, const char *teacher, const tg_bench_result *r,
                       tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_double(&w, "images_per_s", r->images_per_s);
    tg_json_put_double(&w, "step_s", r->step_s);
    tg_json_put_double(&w, "flops_per_s", r->flops_per_s);
    tg_json_put_double(&w, "matmul_peak_flops_per_s", r->peak.flops_per_s);
    tg_json_put_double(&w, "matmul_fastest_flops_per_s", r->peak.fastest_flops_per_s);
    tg_json_put_double(&w, "peak_share", r->flops_per_s / r->peak.flops_per_s);
    tg_json_put_double(&w, "peak_rss_mib", (double)r->peak_rss_bytes / 0x1p20);
    tg_json_put_string(&w, "model", r->architecture);
    if (teacher)
        tg_json_put_string(&w, "teacher", teacher);
    tg_json_put_uint(&w, "parameters", r->parameters);
    tg_json_put_uint(&w, "img_size", r->img_size);
    tg_json_put_int(&w, "batch_size", s->batch_size);
    tg_json_put_int(&w, "steps", s->steps);
    tg_json_put_string(&w, "amp_dtype", dtype_name(r->dtype));
    tg_json_put_string(&w, "cpu_isa", tg_cpu_level_name(r->level));
    tg_json_put_int(&w, "threads", r->threads);
    tg_json_put_double(&w, "flops_per_image", r->flops_per_image);
    tg_json_put_double(&w, "first_step_s", r->first_step_s);
    tg_json_put_double(&w, "step_min_s", r->step_min_s);
    tg_json_put_double(&w, "step_max_s", r->step_max_s);
    tg_json_put_double(&w, "teacher_s", r->teacher_s);
    tg_json_put_double(&w, "forward_s", r->forward_s);
    tg_json_put_double(&w, "backward_s", r->backward_s);
    tg_json_put_double(&w, "reduce_s", r->reduce_s);
    tg_json_put_double(&w, "optimizer_s", r->optimizer_s);
    tg_json_put_int(&w, "ranks", r->ranks);
    put_exchange(&w, r);
    tg_json_put_uint(&w, "optimizer_bytes", r->optimizer_bytes);
    if (r->cost.spans > 0) {
        tg_json_put_double(&w, "trace_cost_share", r->cost.share);
        tg_json_put_double(&w, "trace_cost_low", r->cost.low);
        tg_json_put_double(&w, "trace_cost_high", r->cost.high);
        tg_json_put_double(&w, "trace_spans", r->cost.spans);
        tg_json_put_double(&w, "trace_span_s", r->cost.span_s);
    }
    tg_bench_profile_put(&w, &r->profile, r->peak.flops_per_s);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_part(const char *name, double seconds, double whole, tg_text *out)
{
    if (!isnan(seconds))
        tg_text_append_format(out, "    %-12s%10.2f ms  %5.1f %%\n", name, 1e3 * seconds,
                              100 * seconds / whole);
}

/* How much of the exchange backward hid, and the last step as a picture. */
static void print_exchange(const tg_bench_result *r, tg_text *out)
{
    const tg_overlap *o = &r->overlap;
    if (!o->buckets)
        return;
    tg_text_append_format(out,
                          "\n  exchange      %10.2f ms of a step, %zu bucket%s, %.1f %% of it "
                          "inside backward\n"
                          "  first out     %10.2f ms before backward ends\n"
                          "  last back     %10.2f ms after it\n"
                          "  its thread    %10.2f ms of a core a step, %.1f %% of one\n\n%s",
                          1e3 * o->exchange_s, o->buckets, o->buckets == 1 ? "" : "s",
                          o->exchange_s > 0 ? 100 * o->hidden_s / o->exchange_s : 0.0,
                          1e3 * o->before_end_s, 1e3 * o->behind_s, 1e3 * r->exchange_cpu_s,
                          100 * r->exchange_cpu_s / r->step_s, tg_text_string(&r->picture));
}

static void print_text(const bench_settings *s, const char *teacher, const tg_bench_result *r,
                       tg_text *out)
{
    tg_text_append_format(out, "%s%s%s, %zu px, batch %lld, %s, %d thread%s, %s\n\n",
                          r->architecture, teacher ? " from " : "", teacher ? teacher : "",
                          r->img_size, (long long)s->batch_size, dtype_name(r->dtype), r->threads,
                          r->threads == 1 ? "" : "s", tg_cpu_level_name(r->level));
    tg_text_append_format(out,
                          "  images        %10.1f /s\n"
                          "  step          %10.2f ms  (%.2f to %.2f; the first took %.2f)\n",
                          r->images_per_s, 1e3 * r->step_s, 1e3 * r->step_min_s,
                          1e3 * r->step_max_s, 1e3 * r->first_step_s);
    if (!isnan(r->backward_s)) {
        print_part("teacher", r->teacher_s, r->step_s, out);
        print_part("forward", r->forward_s, r->step_s, out);
        print_part("backward", r->backward_s, r->step_s, out);
        print_part("other ranks", r->reduce_s, r->step_s, out);
        print_part("optimizer", r->optimizer_s, r->step_s, out);
    }
    tg_text_append_format(out,
                          "  work          %10.1f GFLOP/s, %.3f GFLOP an image\n"
                          "  peak          %10.1f GFLOP/s, the machine's best matrix product "
                          "(fastest single one %.1f)\n"
                          "  share of peak %10.1f %%\n"
                          "  memory, peak  %10.1f MiB\n",
                          1e-9 * r->flops_per_s, 1e-9 * r->flops_per_image,
                          1e-9 * r->peak.flops_per_s, 1e-9 * r->peak.fastest_flops_per_s,
                          100 * r->flops_per_s / r->peak.flops_per_s,
                          (double)r->peak_rss_bytes / 0x1p20);
    print_exchange(r, out);
    if (r->cost.spans > 0)
        tg_text_append_format(
            out,
            "  recording         %+8.2f %%  of a step (half of the pairs %+.2f to "
            "%+.2f %%); %.0f spans of %.0f ns\n",
            100 * r->cost.share, 100 * r->cost.low, 100 * r->cost.high, r->cost.spans,
            1e9 * r->cost.span_s);
    tg_bench_profile_append(out, &r->profile, r->peak.flops_per_s);
}

static void show_progress(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    tg_console_progress("bench", done, total, "");
}

static int wants_stop(void *user)
{
    (void)user;
    return tg_signal_stop();
}

static tg_status run_rank(const tg_invocation *invocation, tg_bench_kind kind, tg_comm *comm,
                          int threads)
{
    const bench_settings *s = invocation->settings;
    const char *teacher = kind == TG_BENCH_DISTILL ? s->teacher : NULL;
    const bool first = comm->rank == 0;
    const tg_bench_options options = {.kind = kind,
                                      .model = s->model.model,
                                      .shape = tg_model_choice_shape(&s->model),
                                      .teacher = teacher,
                                      .batch_size = (size_t)s->batch_size,
                                      .warmup = s->warmup,
                                      .steps = s->steps,
                                      .dtype = s->amp_dtype == 0 ? TG_BF16 : TG_F32,
                                      .threads = threads,
                                      .cpu_cap = (tg_cpu_level)invocation->common->cpu_isa,
                                      .comm = comm,
                                      .ranks = tg_parallel_ranks(&s->parallel),
                                      .profile = s->profile,
                                      .trace_cost = s->trace_cost,
                                      .trace = s->trace,
                                      .progress = first ? show_progress : NULL,
                                      .stop = wants_stop};
    tg_bench_result result;
    tg_text text = {0};
    tg_status status = TG_OK;
    TG_TRY(tg_bench_run(&options, &result));
    tg_console_progress_end();
    if (!first)
        goto free_all;
    (invocation->common->json ? print_json : print_text)(s, teacher, &result, &text);
    status = tg_console_print(&text);
free_all:
    tg_text_done(&result.picture);
    tg_text_done(&text);
    return status;
}

static tg_status run_kind(const tg_invocation *invocation, tg_bench_kind kind)
{
    const bench_settings *s = invocation->settings;
    tg_comm *comm = tg_comm_self();
    if (kind != TG_BENCH_INFER)
        TG_TRY(tg_parallel_open(&s->parallel, &comm));
    tg_rank_cores cores = {0};
    tg_status status = tg_same_options(comm, invocation->options);
    if (status == TG_OK)
        status = tg_rank_cores_open(invocation, comm, NULL, NULL, &cores);
    if (status == TG_OK && comm->rank == 0)
        tg_rank_cores_log(&cores, comm);
    if (status == TG_OK)
        status = run_rank(invocation, kind, comm, cores.threads);
    tg_rank_cores_close(&cores);
    tg_parallel_close(comm, status);
    return status;
}

static tg_status run_train(const tg_invocation *invocation)
{
    return run_kind(invocation, TG_BENCH_TRAIN);
}

static tg_status run_distill(const tg_invocation *invocation)
{
    return run_kind(invocation, TG_BENCH_DISTILL);
}

static tg_status run_infer(const tg_invocation *invocation)
{
    return run_kind(invocation, TG_BENCH_INFER);
}

#define DESCRIPTION                                                                                \
    "The median step on random pictures that already lie in memory. FLOPs are counted as usual "   \
    "(2 "                                                                                          \
    "for\na multiply-add of matrix products and attention, backward twice the forward) and held "  \
    "against the\nbest large matrix product of this machine in the same type, measured in the "    \
    "same "                                                                                        \
    "run (two\nseconds). With --json: {\"images_per_s\", \"step_s\", \"flops_per_s\", "            \
    "\"matmul_peak_flops_per_s\",\n\"peak_share\", \"peak_rss_mib\", ...}."                        \
    "\n\n--profile adds where the time goes: one row for each operation and shape of its "         \
    "arguments "                                                                                   \
    "(rows x\nin x out of products, images x queries x keys x width of attention), with calls "    \
    "and "                                                                                         \
    "time a step,\nFLOP/s of products as carried out, bytes/s of row operations (each array once " \
    "a "                                                                                           \
    "read or write), and\nin 'other' what lies between the operations; the rows add up to the "    \
    "step. "                                                                                       \
    "With --json in\n\"operations\"."                                                              \
    "\n\nWith several ranks (--comm mpi), how much of the exchange of gradients lay inside "       \
    "backward, what the\nthread that moves messages took of a core, and a picture of the last "    \
    "step. "                                                                                       \
    "--trace writes each rank's\ntimelines."

static const tg_command_note TRAIN_EXAMPLES[] = {
    {"tagine bench train --batch-size 4 --steps 3 --amp-dtype bfloat16",
     "Time a training step of ViT-Ti/16 in bfloat16"},
    {"tagine bench train --batch-size 4 --steps 3 --profile", "The same, part by part"},
    {0},
};

const tg_command tg_command_bench_train = {
    .name = "bench train",
    .arguments = "",
    .summary = "Measure a training step against this machine's peak",
    .description = DESCRIPTION,
    .examples = TRAIN_EXAMPLES,
    .see_also = "train, plan",
    .groups = TRAIN_GROUPS,
    .group_count = TG_COUNT_OF(TRAIN_GROUPS),
    .settings_bytes = sizeof(bench_settings),
    .run = run_train,
};

static const tg_command_note DISTILL_EXAMPLES[] = {
    {"tagine bench distill --teacher deit_small_patch16_224 --batch-size 4 --steps 3",
     "Time a step with a teacher"},
    {0},
};

const tg_command tg_command_bench_distill = {
    .name = "bench distill",
    .arguments = "",
    .summary = "Measure a distillation step against this machine's peak",
    .description = DESCRIPTION,
    .examples = DISTILL_EXAMPLES,
    .see_also = "distill",
    .groups = DISTILL_GROUPS,
    .group_count = TG_COUNT_OF(DISTILL_GROUPS),
    .settings_bytes = sizeof(bench_settings),
    .run = run_distill,
};

static const tg_command_note INFER_EXAMPLES[] = {
    {"tagine bench infer --batch-size 1 --steps 5 --json", "Time one photo at a time, for scripts"},
    {0},
};

const tg_command tg_command_bench_infer = {
    .name = "bench infer",
    .arguments = "",
    .summary = "Measure predicting against this machine's peak",
    .description = DESCRIPTION,
    .examples = INFER_EXAMPLES,
    .see_also = "predict",
    .groups = INFER_GROUPS,
    .group_count = TG_COUNT_OF(INFER_GROUPS),
    .settings_bytes = sizeof(bench_settings),
    .run = run_infer,
};
