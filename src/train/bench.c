#include "train/bench.h"

#include "base/log.h"
#include "base/median.h"
#include "kern/traced.h"
#include "os/clock.h"
#include "os/memory.h"
#include "train/pictures.h"
#include "train/step_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Classes of a model that has none of its own, as those pretrained without labels. */
enum { DEFAULT_CLASSES = 1000 };

typedef enum bench_part {
    PART_STEP,
    PART_TEACHER,
    PART_FORWARD,
    PART_BACKWARD,
    PART_REDUCE,
    PART_OPTIMIZER,
    PART_EXCHANGE,
    PART_HIDDEN,
    PART_BEFORE_END,
    PART_BEHIND,
    PART_COUNT
} bench_part;

enum { RING_SPANS = 1 << 15, TRACE_BUDGET_BYTES = 64 << 20 };

typedef struct bench {
    const tg_bench_options *options;
    tg_stream *stream;
    tg_kern traced;  /* only with a profile, a trace or its cost */
    tg_trace *spans; /* the same */
    const tg_kern *kern;
    tg_dtype dtype;
    tg_network student, teacher;
    tg_arena state, activations;
    tg_optimizer optimizer;
    tg_ranks ranks;
    size_t optimizer_bytes;
    int stop; /* a rank's wish */
    tg_step step;
    tg_pictures pictures;
    double *seconds[PART_COUNT]; /* [steps] */
    tg_step_trace *trace;
    tg_overlap overlap; /* of the last step */
    tg_text picture;
    int64_t cpu_ns; /* of the thread that moves messages, in the timed steps */
} bench;

static bool has_ranks(const bench *b)
{
    return b->options->comm && b->options->comm->size > 1;
}

static int rank_of(const bench *b)
{
    return has_ranks(b) ? b->options->comm->rank : 0;
}

static size_t ranks_of(const bench *b)
{
    return has_ranks(b) ? (size_t)b->options->comm->size : 1;
}

static tg_status make_batch(bench *b)
{
    return tg_pictures_open(&b->student.info.config,
                            b->teacher.vit ? &b->teacher.info.config : NULL,
                            b->student.info.config.num_classes, b->options->batch_size,
                            (uint64_t)rank_of(b), &b->pictures);
}

/* Trained networks need classes; `network` is given DEFAULT_CLASSES where nothing says how many. */
static tg_status open_student(bench *b)
{
    tg_network_request request = {.model = b->options->model,
                                  .shape = b->options->shape,
                                  .fresh_head = true,
                                  .trainable = b->options->kind != TG_BENCH_INFER,
                                  .dtype = b->dtype,
                                  .seed = 1};
    tg_model_info info = {0};
    TG_TRY(tg_network_describe(&request, &info));
    if (request.trainable && info.config.num_classes == 0)
        request.shape.num_classes = DEFAULT_CLASSES;
    tg_model_info_done(&info);
    return tg_network_open(&request, b->kern, b->stream, &b->student);
}

static tg_status open_teacher(bench *b)
{
    if (b->options->kind != TG_BENCH_DISTILL)
        return TG_OK;
    if (!b->options->teacher)
        return tg_fail(TG_ERROR_USAGE, "a distillation step needs a teacher: --teacher MODEL");
    const tg_network_request request = {
        .model = b->options->teacher,
        .shape = {.reg_tokens = -1, .num_classes = (int64_t)b->student.info.config.num_classes},
        .fresh_head = true,
        .dtype = b->dtype,
        .seed = 2};
    tg_status status = tg_network_open(&request, b->kern, b->stream, &b->teacher);
    return status < 0 ? tg_fail_prefix(status, "teacher") : TG_OK;
}

/* Gradients, moments, optimizer and the step that joins them. */
static tg_status make_step(bench *b)
{
    static const tg_optimizer_options adamw = {
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.05, .layer_decay = 1};
    const size_t n = b->student.table.elements, B = b->options->batch_size;
    size_t own = n;
    if (has_ranks(b)) {
        TG_TRY(tg_ranks_open(&b->ranks, b->options->comm, &b->options->ranks, n));
        own = b->options->ranks.shard ? b->ranks.buckets.own_elements : n;
    }
    const size_t bytes = TG_ARENA_ROUND(n * sizeof(float)),
                 moments = TG_ARENA_ROUND(own * sizeof(float));
    TG_TRY(tg_arena_init(&b->state, bytes + 2 * moments, "gradients and moments"));
    float *grads = tg_arena_alloc(&b->state, bytes), *m = tg_arena_alloc(&b->state, moments),
          *v = tg_arena_alloc(&b->state, moments);
    b->optimizer_bytes = 2 * own * sizeof(float);
    TG_TRY(tg_optimizer_init(&b->optimizer, &adamw, b->kern, b->stream, &b->student.table,
                             b->student.params, m, v, NULL));
    b->step = (tg_step){.kern = b->kern,
                        .stream = b->stream,
                        .student = b->student.vit,
                        .teacher = b->teacher.vit,
                        .optimizer = &b->optimizer,
                        .arena = &b->activations,
                        .grads = grads,
                        .num_classes = b->student.info.config.num_classes,
                        .mean_over = B * ranks_of(b),
                        .seed = 1,
                        .ranks = has_ranks(b) ? &b->ranks : NULL};
    if (b->teacher.vit)
        b->step.objective = (tg_objective){.kd = TG_KD_KL, .alpha = 0.5, .temperature = 2};
    TG_TRY(tg_step_narrow(&b->step, &b->student.table));
    return tg_arena_init(&b->activations, tg_step_arena_bytes(&b->step, B, b->dtype),
                         "activations");
}

static tg_status prepare(bench *b)
{
    const tg_bench_options *o = b->options;
    TG_TRY(tg_stream_open_cpu(o->threads, o->cpu_cap, &b->stream));
    b->kern = tg_kern_select(b->stream);
    if (o->profile || o->trace || o->trace_cost) {
        TG_TRY(tg_trace_new(o->threads, RING_SPANS, &b->spans));
        b->traced = tg_kern_traced(b->stream);
        b->kern = &b->traced;
    }
    b->dtype = o->dtype;
    if (o->dtype == TG_BF16 && !tg_stream_has_bf16(b->stream)) {
        tg_log_info("this machine does not compute in bfloat16; float32 is used");
        b->dtype = TG_F32;
    }
    for (int part = 0; part < PART_COUNT; part++) {
        b->seconds[part] = calloc((size_t)o->steps, sizeof(double));
        if (!b->seconds[part])
            return tg_fail(TG_ERROR_MACHINE, "out of memory for %lld steps", (long long)o->steps);
    }
    TG_TRY(open_student(b));
    TG_TRY(open_teacher(b));
    TG_TRY(make_batch(b));
    if (o->kind != TG_BENCH_INFER)
        return make_step(b);
    return tg_arena_init(
        &b->activations,
        tg_vit_step_bytes(&b->student.info.config, o->batch_size, b->dtype, TG_VIT_INFER),
        "activations");
}

/* The exchange of the step that has just been; `draw`: as a picture, too. */
static void look_at_exchange(bench *b, const tg_step_report *report, bool draw)
{
    const tg_overlap_step step = {.records = b->ranks.records,
                                  .count = b->ranks.record_count,
                                  .backward_begin_ns = report->backward_begin_ns,
                                  .backward_end_ns = report->backward_end_ns};
    b->overlap = tg_overlap_of(&step);
    if (draw)
        tg_overlap_draw(&step, &b->picture);
}

static tg_status run_step(bench *b, bool draw, tg_step_phases *out_phases)
{
    if (b->options->kind == TG_BENCH_INFER) {
        const tg_vit_input input = {.B = b->pictures.batch.count, .image = b->pictures.batch.image};
        tg_vit_output output;
        tg_arena_release(&b->activations, 0);
        *out_phases = (tg_step_phases){0};
        return tg_vit_forward(b->student.vit, &b->activations, &input, TG_VIT_INFER, &output);
    }
    tg_step_report report;
    int stop = b->options->stop ? b->options->stop(b->options->user) : 0;
    if (has_ranks(b))
        tg_ranks_forget(&b->ranks);
    TG_TRY(tg_step_micro(&b->step, &b->pictures.batch, 0, true));
    TG_TRY(tg_step_update(&b->step, 1e-4, stop, &report));
    b->stop = report.stop;
    if (has_ranks(b))
        look_at_exchange(b, &report, draw);
    *out_phases = report.phases;
    return TG_OK;
}

static void keep_step(bench *b, int64_t step, int64_t begin_ns, int64_t end_ns)
{
    const tg_step_window window = {.step = step,
                                   .begin_ns = begin_ns,
                                   .end_ns = end_ns,
                                   .records = has_ranks(b) ? b->ranks.records : NULL,
                                   .record_count = has_ranks(b) ? b->ranks.record_count : 0};
    tg_step_trace_add(b->trace, &window);
}

/* Step number `at`; the first `warmup` ones leave no record, but the very first is told. */
static tg_status time_step(bench *b, int64_t at, double *first_s)
{
    tg_step_phases phases;
    const int64_t row = at - b->options->warmup;
    const bool traced = b->trace && row >= 0;
    if (traced)
        tg_trace_attach(b->spans, 0);
    int64_t start = tg_clock_ns();
    tg_status status = run_step(b, row == b->options->steps - 1, &phases);
    int64_t end = tg_clock_ns();
    tg_trace_attach(NULL, 0);
    TG_TRY(status);
    double seconds = tg_clock_seconds(end - start);
    if (traced)
        keep_step(b, at + 1, start, end);
    if (at == 0)
        *first_s = seconds;
    if (row < 0)
        return TG_OK;
    b->seconds[PART_STEP][row] = seconds;
    b->seconds[PART_TEACHER][row] = tg_clock_seconds(phases.teacher_ns);
    b->seconds[PART_FORWARD][row] = tg_clock_seconds(phases.forward_ns);
    b->seconds[PART_BACKWARD][row] = tg_clock_seconds(phases.backward_ns);
    b->seconds[PART_REDUCE][row] = tg_clock_seconds(phases.reduce_ns);
    b->seconds[PART_OPTIMIZER][row] = tg_clock_seconds(phases.optimizer_ns);
    b->seconds[PART_EXCHANGE][row] = b->overlap.exchange_s;
    b->seconds[PART_HIDDEN][row] = b->overlap.hidden_s;
    b->seconds[PART_BEFORE_END][row] = b->overlap.before_end_s;
    b->seconds[PART_BEHIND][row] = b->overlap.behind_s;
    return TG_OK;
}

/* After step number `at` of all, timed or not. */
static tg_status tell(const bench *b, int64_t at)
{
    const tg_bench_options *o = b->options;
    int64_t total = o->warmup + o->steps * (1 + (o->profile ? 1 : 0) + (o->trace_cost ? 1 : 0));
    if (o->progress)
        o->progress(o->user, (uint64_t)at + 1, (uint64_t)total);
    if (has_ranks(b) ? b->stop : o->stop && o->stop(o->user)) /* all ranks at the same step */
        return tg_fail(TG_ERROR_STOPPED, "stopped by a signal");
    return TG_OK;
}

static int64_t exchange_cpu_ns(const bench *b)
{
    return has_ranks(b) ? tg_comm_get_traffic(b->options->comm).cpu_ns : 0;
}

static tg_status run_steps(bench *b, double *out_first_s)
{
    const tg_bench_options *o = b->options;
    const tg_step_trace_options timeline = {.comm = has_ranks(b) ? o->comm : tg_comm_self(),
                                            .compute = b->spans,
                                            .threads = o->threads,
                                            .budget_bytes = TRACE_BUDGET_BYTES};
    if (o->trace)
        TG_TRY(tg_step_trace_open(&timeline, &b->trace));
    for (int64_t at = 0; at < o->warmup + o->steps; at++) {
        if (at == o->warmup)
            b->cpu_ns = exchange_cpu_ns(b);
        TG_TRY(time_step(b, at, out_first_s));
        TG_TRY(tell(b, at));
    }
    b->cpu_ns = exchange_cpu_ns(b) - b->cpu_ns;
    return b->trace ? tg_step_trace_write(b->trace, o->trace) : TG_OK;
}

static int longer_first(const void *a, const void *b)
{
    const tg_trace_totals *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

/* The steps once more with this thread attached, which makes the traced table record. */
static tg_status run_profile(bench *b, tg_bench_profile *out)
{
    const tg_bench_options *o = b->options;
    tg_step_phases phases;
    tg_trace *trace = b->spans;
    tg_status status = TG_OK;
    if (!o->profile)
        return TG_OK;
    tg_trace_reset(trace);
    for (int64_t i = 0; i < o->steps; i++) {
        tg_trace_attach(trace, 0);
        int64_t start = tg_clock_ns();
        status = run_step(b, false, &phases);
        out->seconds += tg_clock_seconds(tg_clock_ns() - start);
        tg_trace_attach(NULL, 0);
        TG_TRY(status);
        TG_TRY(tell(b, o->warmup + o->steps + i));
    }
    out->steps = o->steps;
    out->operation_count = tg_trace_collect(trace, out->operations);
    qsort(out->operations, out->operation_count, sizeof *out->operations, longer_first);
    return TG_OK;
}

/* Both kinds in turns, each first as often as the other: what else is going on meets them alike. */
static tg_status run_pair(bench *b, int64_t pair, double out_seconds[2])
{
    tg_step_phases phases;
    for (int64_t k = 0; k < 2; k++) {
        const int with = (int)((pair + k) % 2);
        tg_trace_attach(with ? b->spans : NULL, 0);
        const int64_t start = tg_clock_ns();
        tg_status status = run_step(b, false, &phases);
        out_seconds[with] = tg_clock_seconds(tg_clock_ns() - start);
        tg_trace_attach(NULL, 0);
        TG_TRY(status);
    }
    return TG_OK;
}

static tg_status run_cost(bench *b, tg_bench_cost *out)
{
    const tg_bench_options *o = b->options;
    const size_t n = (size_t)o->steps;
    double *ratio = calloc(n, sizeof *ratio), seconds[2];
    if (!ratio)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu steps", n);
    tg_status status = TG_OK;
    tg_trace_reset(b->spans);
    for (int64_t i = 0; i < o->steps && status == TG_OK; i++) {
        status = run_pair(b, i, seconds);
        if (status == TG_OK)
            status = tell(b, o->warmup + o->steps * (o->profile ? 2 : 1) + i);
        ratio[i] = status == TG_OK ? seconds[1] / seconds[0] : 0;
    }
    const double median = tg_median(ratio, n); /* sorts */
    *out = (tg_bench_cost){.share = median - 1,
                           .low = ratio[n / 4] - 1,
                           .high = ratio[n - 1 - n / 4] - 1,
                           .spans = (double)tg_trace_recorded(b->spans, 0) / (double)n,
                           .span_s = tg_trace_span_cost_ns() * 1e-9};
    free(ratio);
    return status;
}

static double flops_per_image(const bench *b)
{
    double student = 2 * tg_vit_macs(&b->student.info.config);
    if (b->options->kind == TG_BENCH_INFER)
        return student;
    return 3 * student + (b->teacher.vit ? 2 * tg_vit_macs(&b->teacher.info.config) : 0);
}

static void summarise(bench *b, tg_bench_result *out)
{
    const size_t n = (size_t)b->options->steps;
    const bool trains = b->options->kind != TG_BENCH_INFER;
    memcpy(out->architecture, b->student.info.config.architecture, sizeof out->architecture);
    out->parameters = tg_param_total(&b->student.table);
    out->img_size = b->student.info.config.img_w;
    out->dtype = b->dtype;
    out->level = tg_stream_level(b->stream);
    out->threads = tg_stream_threads(b->stream);
    out->step_s = tg_median(b->seconds[PART_STEP], n);
    out->step_min_s = b->seconds[PART_STEP][0];
    out->step_max_s = b->seconds[PART_STEP][n - 1];
    out->teacher_s = b->teacher.vit ? tg_median(b->seconds[PART_TEACHER], n) : NAN;
    out->forward_s = trains ? tg_median(b->seconds[PART_FORWARD], n) : out->step_s;
    out->backward_s = trains ? tg_median(b->seconds[PART_BACKWARD], n) : NAN;
    out->reduce_s = has_ranks(b) ? tg_median(b->seconds[PART_REDUCE], n) : NAN;
    out->overlap = (tg_overlap){.buckets = b->overlap.buckets,
                                .exchange_s = tg_median(b->seconds[PART_EXCHANGE], n),
                                .hidden_s = tg_median(b->seconds[PART_HIDDEN], n),
                                .before_end_s = tg_median(b->seconds[PART_BEFORE_END], n),
                                .behind_s = tg_median(b->seconds[PART_BEHIND], n)};
    out->exchange_cpu_s = has_ranks(b) ? tg_clock_seconds(b->cpu_ns) / (double)n : NAN;
    out->ranks = (int)ranks_of(b);
    out->optimizer_bytes = b->optimizer_bytes;
    out->optimizer_s = trains ? tg_median(b->seconds[PART_OPTIMIZER], n) : NAN;
    out->flops_per_image = flops_per_image(b);
    out->images_per_s = (double)(b->options->batch_size * ranks_of(b)) / out->step_s;
    out->flops_per_s = out->flops_per_image * out->images_per_s;
    out->peak_rss_bytes = tg_memory_peak_rss_bytes();
}

/* All but the stream, so that the peak is measured with their memory given back. */
static void release(bench *b)
{
    tg_ranks_close(&b->ranks);
    tg_step_trace_close(b->trace);
    b->trace = NULL;
    tg_trace_free(b->spans);
    b->spans = NULL;
    tg_optimizer_done(&b->optimizer);
    tg_network_close(&b->teacher);
    tg_network_close(&b->student);
    tg_arena_done(&b->activations);
    tg_arena_done(&b->state);
    tg_pictures_close(&b->pictures);
    for (int part = 0; part < PART_COUNT; part++) {
        free(b->seconds[part]);
        b->seconds[part] = NULL;
    }
}

tg_status tg_bench_run(const tg_bench_options *options, tg_bench_result *out)
{
    bench b = {.options = options};
    tg_bench_result result = {0};
    tg_status status;
    TG_TRY_GOTO(prepare(&b), release_bench);
    TG_TRY_GOTO(run_steps(&b, &result.first_step_s), release_bench);
    TG_TRY_GOTO(run_profile(&b, &result.profile), release_bench);
    if (options->trace_cost)
        TG_TRY_GOTO(run_cost(&b, &result.cost), release_bench);
    summarise(&b, &result);
    release(&b);
    if (options->no_peak)
        goto give_result;
    if (has_ranks(&b)) /* all at once */
        TG_TRY_GOTO(tg_comm_agree(options->comm, "peak", TG_OK), release_bench);
    TG_TRY_GOTO(tg_kern_peak(b.stream, b.dtype, &result.peak), release_bench);
    result.peak.flops_per_s *= (double)ranks_of(&b);
    result.peak.fastest_flops_per_s *= (double)ranks_of(&b);
give_result:
    result.picture = b.picture;
    b.picture = (tg_text){0};
    *out = result;
release_bench:
    release(&b);
    tg_text_done(&b.picture);
    tg_stream_close(b.stream);
    return status;
}
