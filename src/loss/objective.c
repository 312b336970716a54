#include "loss/objective.h"

#include <math.h>

/* Scratch and results of one run, on the caller's arena. */
typedef struct buffers {
    float *loss;                   /* [B] */
    float *dlogits, *dlogits_dist; /* [B,K] */
    float *row_scratch;            /* [B,K] the teacher's choice, or the mean of two heads */
    float *projected, *dprojected; /* [B,C_t] */
    void *projected_dtype, *feature_dtype; /* in the projection's compute dtype */
    float *dfeature;                       /* [B,C_s] */
} buffers;

size_t tg_objective_bytes(size_t B, size_t K, size_t C_s, size_t C_t)
{
    return TG_ARENA_ROUND(B * 4) + 3 * TG_ARENA_ROUND(B * K * 4) + 3 * TG_ARENA_ROUND(B * C_t * 4) +
           2 * TG_ARENA_ROUND(B * C_s * 4);
}

static tg_status place(tg_arena *arena, const tg_objective_input *in, buffers *out)
{
    const tg_projection *p = in->projection;
    size_t C_s = p ? p->C_s : 0, C_t = p ? p->C_t : 0;
    *out = (buffers){
        .loss = tg_arena_alloc(arena, in->B * 4),
        .dlogits = tg_arena_alloc(arena, in->B * in->K * 4),
        .dlogits_dist = tg_arena_alloc(arena, in->B * in->K * 4),
        .row_scratch = tg_arena_alloc(arena, in->B * in->K * 4),
        .projected = tg_arena_alloc(arena, in->B * C_t * 4),
        .dprojected = tg_arena_alloc(arena, in->B * C_t * 4),
        .projected_dtype = tg_arena_alloc(arena, in->B * C_t * 4),
        .feature_dtype = tg_arena_alloc(arena, in->B * C_s * 4),
        .dfeature = tg_arena_alloc(arena, in->B * C_s * 4),
    };
    return out->dfeature ? TG_OK
                         : tg_fail(TG_ERROR_MACHINE, "the step's memory has no room for the loss");
}

static double sum(const float *x, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += x[i];
    return total;
}

/* One-hot of the teacher's largest logit; the first of equal ones wins. */
static void teacher_choice(size_t B, size_t K, const float *logits, float *out)
{
    for (size_t b = 0; b < B; b++) {
        size_t best = 0;
        for (size_t k = 0; k < K; k++) {
            out[b * K + k] = 0;
            if (logits[b * K + k] > logits[b * K + best])
                best = k;
        }
        out[b * K + best] = 1;
    }
}

/* kd term on logits: adds its gradient to d (or writes it). */
static double logit_term(const tg_objective *o, const tg_kern *kern, tg_stream *stream,
                         const tg_objective_input *in, const buffers *buf, const float *logits,
                         float *d, bool add)
{
    double share = o->alpha / (double)in->mean_over;
    if (o->kd == TG_KD_HARD) {
        teacher_choice(in->B, in->K, in->teacher_logits, buf->row_scratch);
        kern->loss.cross_entropy(stream, in->B, in->K, logits, buf->row_scratch, (float)share,
                                 buf->loss, d, add);
        return sum(buf->loss, in->B);
    }
    double per_class = o->reduction == TG_KD_MEAN ? 1.0 / (double)in->K : 1.0;
    kern->loss.kl(stream, in->B, in->K, logits, in->teacher_logits, (float)o->temperature,
                  (float)(share * per_class), buf->loss, d, add);
    return sum(buf->loss, in->B) * per_class;
}

/* Projected student feature against the teacher's; gradients of projection and feature. */
static tg_status feature_term(const tg_objective *o, const tg_kern *kern, tg_stream *stream,
                              const tg_objective_input *in, const buffers *buf, double *out_kd)
{
    const tg_projection *p = in->projection;
    const tg_linear_ops *linear = &kern->linear;
    kern->tokens.from_f32(stream, in->B * p->C_s, in->feature, p->dtype, buf->feature_dtype);
    TG_TRY(linear->forward(stream, p->weight, in->B, buf->feature_dtype, p->bias, buf->projected,
                           TG_F32));
    kern->loss.squared_error(stream, in->B, p->C_t, buf->projected, in->teacher_feature,
                             (float)(o->alpha / (double)in->mean_over), buf->loss, buf->dprojected,
                             false);
    *out_kd = sum(buf->loss, in->B);
    kern->tokens.from_f32(stream, in->B * p->C_t, buf->dprojected, p->dtype, buf->projected_dtype);
    TG_TRY(linear->backward_weight(stream, p->weight, in->B, buf->feature_dtype,
                                   buf->projected_dtype, p->dw, p->db, in->accumulate));
    TG_TRY(
        linear->backward_input(stream, p->weight, in->B, buf->projected_dtype, buf->feature_dtype));
    kern->tokens.to_f32(stream, in->B * p->C_s, buf->feature_dtype, p->dtype, buf->dfeature);
    return TG_OK;
}

/* Label loss on the class head, or on the mean of two heads where no teacher trains the second: each
 * then gets half of the mean's gradient, so that one buffer serves both. */
static void label_term(const tg_objective *o, const tg_kern *kern, tg_stream *stream,
                       const tg_objective_input *in, const buffers *buf, tg_objective_output *out)
{
    bool used = o->alpha < 1;
    bool both = in->logits_dist && (o->kd == TG_KD_NONE || o->kd == TG_KD_FEATURE);
    const float *logits = in->logits;
    if (both) {
        tg_stream_copy(stream, buf->row_scratch, in->logits,
                       in->B * in->K * sizeof *buf->row_scratch);
        kern->optim.average(stream, in->B * in->K, buf->row_scratch, in->logits_dist, 0.5f);
        logits = buf->row_scratch;
    }
    double share = (1 - o->alpha) / (double)in->mean_over * (both ? 0.5 : 1);
    kern->loss.cross_entropy(stream, in->B, in->K, logits, in->target, (float)share, buf->loss,
                             used ? buf->dlogits : NULL, false);
    out->task = sum(buf->loss, in->B);
    out->dlogits = used ? buf->dlogits : NULL;
    out->dlogits_dist = both ? out->dlogits : NULL;
}

tg_status tg_objective_run(const tg_objective *o, const tg_kern *kern, tg_stream *stream,
                           tg_arena *arena, const tg_objective_input *in, tg_objective_output *out)
{
    buffers buf;
    TG_TRY(place(arena, in, &buf));
    tg_objective_output result = {.task = NAN, .kd = NAN};
    if (in->target)
        label_term(o, kern, stream, in, &buf, &result);
    if (o->kd == TG_KD_FEATURE) {
        TG_TRY(feature_term(o, kern, stream, in, &buf, &result.kd));
        result.dfeature = buf.dfeature;
    } else if (o->kd != TG_KD_NONE && in->logits_dist) {
        result.kd = logit_term(o, kern, stream, in, &buf, in->logits_dist, buf.dlogits_dist, false);
        result.dlogits_dist = buf.dlogits_dist;
    } else if (o->kd != TG_KD_NONE) {
        result.kd =
            logit_term(o, kern, stream, in, &buf, in->logits, buf.dlogits, result.dlogits != NULL);
        result.dlogits = buf.dlogits;
    }
    *out = result;
    return TG_OK;
}
