#include "train/step.h"

#include "base/checked.h"
#include "os/clock.h"
#include "trace/trace.h"

#include <math.h>

static size_t teacher_width(const tg_step *step)
{
    return step->objective.kd == TG_KD_FEATURE ? tg_vit_get_config(step->teacher)->embed_dim
                                               : step->num_classes;
}

size_t tg_step_bytes(const tg_vit_config *student, const tg_vit_config *teacher, bool feature,
                     size_t B, tg_dtype dtype)
{
    const size_t K = student->num_classes;
    const size_t C_s = feature ? student->embed_dim : 0, C_t = feature ? teacher->embed_dim : 0;
    size_t bytes = tg_vit_step_bytes(student, B, dtype, TG_VIT_TRAIN), frozen = 0, kept = 0;
    if (teacher) {
        frozen = tg_vit_step_bytes(teacher, B, dtype, TG_VIT_INFER);
        kept = TG_ARENA_ROUND(B * (feature ? C_t : K) * sizeof(float));
    }
    bool fits = tg_add_size(bytes, tg_objective_bytes(B, K, C_s, C_t), &bytes) &&
                tg_add_size(bytes > frozen ? bytes : frozen, kept, &bytes);
    return fits ? bytes : (size_t)-1;
}

size_t tg_step_arena_bytes(const tg_step *step, size_t B, tg_dtype dtype)
{
    return tg_step_bytes(tg_vit_get_config(step->student),
                         step->teacher ? tg_vit_get_config(step->teacher) : NULL,
                         step->objective.kd == TG_KD_FEATURE, B, dtype);
}

tg_status tg_step_narrow(tg_step *step, const tg_param_table *table)
{
    const tg_projection *projection = step->projection;
    tg_parcels parcels;
    if (!step->ranks || !step->ranks->options.shard)
        return TG_OK;
    TG_TRY(tg_parcels_init(&parcels, step->kern, step->stream, table));
    for (size_t i = 0; i < table->count; i++) {
        const size_t at = table->items[i].offset;
        parcels.narrow[i] = tg_vit_reads_bf16(step->student, at) ||
                            (projection && projection->dtype == TG_BF16 &&
                             step->optimizer->params + at == step->projection_params);
    }
    return tg_ranks_narrow(step->ranks, &parcels);
}

/* Rows of logits in the student's class order. */
static void reorder_classes(const tg_step *step, size_t B, const float *logits, size_t K_t,
                            float *out)
{
    const size_t K = step->num_classes;
    for (size_t b = 0; b < B; b++)
        for (size_t k = 0; k < K; k++)
            out[b * K + k] = logits[b * K_t + step->teacher_class[k]];
}

/* What the teacher says of its own view of the batch, kept at the bottom of the arena. */
static tg_status ask_teacher(tg_step *step, const tg_batch *batch, const float **out)
{
    *out = NULL;
    if (!step->teacher)
        return TG_OK;
    const tg_vit_config *config = tg_vit_get_config(step->teacher);
    const size_t B = batch->count, width = teacher_width(step);
    float *kept = tg_arena_alloc(step->arena, B * width * sizeof *kept);
    size_t mark = tg_arena_mark(step->arena);
    const tg_vit_input input = {.B = B, .image = batch->teacher_image};
    tg_vit_output teacher;
    TG_TRY(tg_vit_forward(step->teacher, step->arena, &input, TG_VIT_INFER, &teacher));
    if (step->objective.kd == TG_KD_FEATURE)
        tg_stream_copy(step->stream, kept, teacher.feature, B * width * sizeof *kept);
    else if (step->teacher_class)
        reorder_classes(step, B, teacher.logits, config->num_classes, kept);
    else
        tg_stream_copy(step->stream, kept, teacher.logits, B * width * sizeof *kept);
    tg_arena_release(step->arena, mark);
    *out = kept;
    return TG_OK;
}

static tg_status run_objective(tg_step *step, const tg_batch *batch, const tg_vit_output *student,
                               const float *teacher, tg_objective_output *out)
{
    bool feature = step->objective.kd == TG_KD_FEATURE;
    const tg_objective_input input = {.B = batch->count,
                                      .K = step->num_classes,
                                      .mean_over = step->mean_over,
                                      .accumulate = step->images > 0,
                                      .target = batch->target,
                                      .logits = student->logits,
                                      .logits_dist = student->logits_dist,
                                      .feature = student->feature,
                                      .teacher_logits = feature ? NULL : teacher,
                                      .teacher_feature = feature ? teacher : NULL,
                                      .projection = step->projection};
    return tg_objective_run(&step->objective, step->kern, step->stream, step->arena, &input, out);
}

static tg_status refresh_projection(tg_step *step)
{
    if (!step->projection)
        return TG_OK;
    return step->kern->linear.weight_refresh(step->stream, step->projection->weight,
                                             step->projection_params);
}

/* Parameters of the last update that forward is about to use. */
static tg_status bring(void *user, size_t offset, size_t count)
{
    tg_step *step = user;
    const size_t model = tg_vit_get_params(step->student)->elements;
    TG_TRY(tg_ranks_need(step->ranks, offset, count));
    TG_TRY(tg_vit_refresh_range(step->student, offset, count));
    if (offset + count < model)
        return TG_OK;
    const size_t all = step->ranks->buckets.elements;
    TG_TRY(tg_ranks_need(step->ranks, model, all - model));
    return refresh_projection(step);
}

tg_status tg_step_settle(tg_step *step)
{
    if (!step->ranks || !step->ranks->gathering)
        return TG_OK;
    const int64_t waited = step->ranks->wait_ns;
    tg_status status = bring(step, 0, tg_vit_get_params(step->student)->elements);
    step->ranks->wait_ns = waited; /* this is in no step's time */
    return status;
}

/* A rank whose share of the window's last batch is empty has its part in the sums all the same. Where it had nothing
 * before either, no forward has asked for the parameters, which may come through the gradients' memory. */
static tg_status reduce_without_backward(tg_step *step)
{
    const size_t all = step->ranks->buckets.elements;
    if (step->ranks->gathering)
        TG_TRY(bring(step, 0, tg_vit_get_params(step->student)->elements));
    step->backward_begin_ns = step->backward_end_ns = tg_clock_ns();
    if (step->images == 0)
        tg_stream_zero(step->stream, step->grads, all * sizeof *step->grads);
    tg_ranks_reduce(step->ranks, step->grads);
    tg_ranks_ready(step->ranks, 0, all);
    return TG_OK;
}

static tg_status backward(tg_step *step, const tg_objective_output *objective, bool last)
{
    const bool reduce = step->ranks && last;
    const tg_vit_backward_args args = {.dlogits = objective->dlogits,
                                       .dlogits_dist = objective->dlogits_dist,
                                       .dfeature = objective->dfeature,
                                       .grads = step->grads,
                                       .accumulate = step->images > 0,
                                       .ready = reduce ? tg_ranks_ready : NULL,
                                       .ready_user = step->ranks};
    const size_t model = tg_vit_get_params(step->student)->elements;
    if (reduce) {
        tg_ranks_reduce(step->ranks, step->grads);
        if (step->ranks->buckets.elements > model) /* the projection's are final already */
            tg_ranks_ready(step->ranks, model, step->ranks->buckets.elements - model);
    }
    return tg_vit_backward(step->student, step->arena, &args);
}

/* What follows belongs to the phase `name`, until the next one is named. */
static void enter(const char *name)
{
    tg_trace_set_phase(tg_trace_attached(), name);
}

static void trace(const char *name, int64_t begin_ns)
{
    tg_trace_end(&(tg_trace_key){.name = name, .phase = name, .group = true}, begin_ns, 0, 0);
}

tg_status tg_step_micro(tg_step *step, const tg_batch *batch, uint64_t epoch, bool last)
{
    if (batch->count == 0)
        return step->ranks && last ? reduce_without_backward(step) : TG_OK;
    int64_t start = tg_clock_ns();
    tg_arena_release(step->arena, 0);
    const float *teacher;
    enter("teacher");
    TG_TRY(ask_teacher(step, batch, &teacher));
    if (step->teacher)
        trace("teacher", start);
    enter("forward");
    int64_t asked = tg_clock_ns();
    const bool arriving = step->ranks && step->ranks->gathering;
    const int64_t waited = step->ranks ? step->ranks->wait_ns : 0;
    const tg_vit_input input = {.B = batch->count,
                                .image = batch->image,
                                .seed = step->seed,
                                .epoch = epoch,
                                .sample_index = batch->sample_index,
                                .needed = arriving ? bring : NULL,
                                .needed_user = step};
    tg_vit_output student;
    TG_TRY(tg_vit_forward(step->student, step->arena, &input, TG_VIT_TRAIN, &student));
    tg_objective_output objective;
    TG_TRY(run_objective(step, batch, &student, teacher, &objective));
    trace("forward", asked); /* spans end before the next one begins */
    enter("backward");
    int64_t forward = tg_clock_ns();
    TG_TRY(backward(step, &objective, last));
    trace("backward", forward);
    step->backward_begin_ns = forward;
    step->backward_end_ns = tg_clock_ns();
    step->phases.teacher_ns += asked - start;
    step->phases.forward_ns += forward - asked;
    if (step->ranks)
        step->phases.forward_ns -= step->ranks->wait_ns - waited;
    step->phases.backward_ns += step->backward_end_ns - forward;
    step->images += batch->count;
    step->task += objective.task;
    step->kd += objective.kd;
    return TG_OK;
}

static double total_loss(const tg_objective *objective, double task, double kd)
{
    if (objective->kd == TG_KD_NONE)
        return task;
    if (objective->alpha >= 1)
        return kd;
    return (1 - objective->alpha) * task + objective->alpha * kd;
}

static tg_status count_bad(tg_step *step, bool skipped)
{
    step->bad_in_a_row = skipped ? step->bad_in_a_row + 1 : 0;
    if (step->bad_in_a_row < TG_STEP_BAD_LIMIT)
        return TG_OK;
    return tg_fail(
        TG_ERROR_FAILED,
        "the loss or its gradient was not finite in %d steps in a row; the last "
        "checkpoint is still good. A lower --lr, --clip-grad 1 or --no-amp usually helps",
        step->bad_in_a_row);
}

static tg_status update_alone(tg_step *step, double lr, tg_step_report *report)
{
    tg_status status =
        tg_optimizer_step(step->optimizer, step->grads,
                          (double)step->mean_over / (double)report->images, lr, &report->grad_norm);
    TG_TRY(status);
    report->skipped = status == TG_AGAIN;
    if (report->skipped)
        return TG_OK;
    TG_TRY(tg_vit_refresh(step->student));
    return refresh_projection(step);
}

/* The same from sums over ranks; all of them decide alike. */
static tg_status update_with_ranks(tg_step *step, double lr, double squares, tg_step_report *report)
{
    const double scale = (double)step->mean_over / (double)report->images;
    report->grad_norm = scale * sqrt(squares);
    report->skipped = !isfinite(report->grad_norm);
    if (report->skipped)
        return TG_OK;
    TG_TRY(tg_ranks_update(step->ranks, step->optimizer, step->grads,
                           tg_optimizer_clip(step->optimizer, scale, report->grad_norm), lr));
    if (step->ranks->gathering)
        return TG_OK;
    TG_TRY(tg_vit_refresh(step->student));
    return refresh_projection(step);
}

tg_status tg_step_update(tg_step *step, double lr, int stop, tg_step_report *out)
{
    const int64_t start = tg_clock_ns(), waited = step->ranks ? step->ranks->wait_ns : 0;
    enter("optimizer");
    tg_ranks_sums sums = {.images = (double)step->images,
                          .task = step->task,
                          .kd = step->kd,
                          .stop = stop,
                          .keep = step->keep};
    if (step->ranks)
        TG_TRY(tg_ranks_sum(step->ranks, step->optimizer, step->grads, &sums));
    tg_step_report report = {.images = (size_t)sums.images,
                             .own_images = step->images,
                             .task = sums.task / sums.images,
                             .kd = sums.kd / sums.images,
                             .grad_norm = NAN,
                             .backward_begin_ns = step->backward_begin_ns,
                             .backward_end_ns = step->backward_end_ns,
                             .stop = sums.stop};
    report.loss = total_loss(&step->objective, report.task, report.kd);
    step->keep = sums.keep;
    const int64_t summed = tg_clock_ns();
    if (report.images && isfinite(report.loss))
        TG_TRY(step->ranks ? update_with_ranks(step, lr, sums.squares, &report)
                           : update_alone(step, lr, &report));
    else
        report.skipped = report.images > 0;
    trace("optimizer", summed);
    step->phases.optimizer_ns += tg_clock_ns() - start;
    if (step->ranks) {
        step->phases.optimizer_ns -= step->ranks->wait_ns - waited;
        step->phases.reduce_ns += step->ranks->wait_ns;
        step->ranks->wait_ns = 0;
    }
    report.phases = step->phases;
    step->images = 0;
    step->task = step->kd = 0;
    step->phases = (tg_step_phases){0};
    *out = report;
    return count_bad(step, report.skipped);
}
