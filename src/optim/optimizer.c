#include "optim/optimizer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static int top_layer(const tg_param_table *table)
{
    int top = 0;
    for (size_t i = 0; i < table->count; i++)
        if (table->items[i].layer > top)
            top = table->items[i].layer;
    return top;
}

static void append_span(tg_optimizer *optimizer, const tg_param_table *table, size_t i, int top)
{
    const tg_param *p = &table->items[i];
    size_t end = i + 1 < table->count ? table->items[i + 1].offset : table->elements;
    float scale = (float)pow(optimizer->options.layer_decay, top - p->layer);
    tg_optimizer_span *last =
        optimizer->span_count ? &optimizer->spans[optimizer->span_count - 1] : NULL;
    if (last && last->decay == p->decay && last->lr_scale == scale) {
        last->count = end - last->offset;
        return;
    }
    optimizer->spans[optimizer->span_count++] = (tg_optimizer_span){
        .offset = p->offset, .count = end - p->offset, .decay = p->decay, .lr_scale = scale};
}

tg_status tg_optimizer_init(tg_optimizer *optimizer, const tg_optimizer_options *options,
                            const tg_kern *kern, tg_stream *stream, const tg_param_table *table,
                            float *params, float *m, float *v, float *average)
{
    *optimizer = (tg_optimizer){.options = *options,
                                .kern = kern,
                                .stream = stream,
                                .elements = table->elements,
                                .params = params,
                                .m = m,
                                .v = v,
                                .average = average};
    optimizer->spans = calloc(table->count ? table->count : 1, sizeof *optimizer->spans);
    if (!optimizer->spans)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the optimizer's groups");
    int top = top_layer(table);
    for (size_t i = 0; i < table->count; i++)
        append_span(optimizer, table, i, top);
    return TG_OK;
}

void tg_optimizer_done(tg_optimizer *optimizer)
{
    if (!optimizer)
        return;
    free(optimizer->spans);
    *optimizer = (tg_optimizer){0};
}

/* d_n of optimizer.h after `n` updates. */
static double average_decay(const tg_optimizer *optimizer, double n)
{
    double early = (1 + n) / (10 + n), decay = optimizer->options.ema_decay;
    return early < decay ? early : decay;
}

double tg_optimizer_clip(const tg_optimizer *optimizer, double grad_scale, double norm)
{
    double most = optimizer->options.clip_grad;
    return most > 0 && norm > most ? grad_scale * (most / (norm + 1e-6)) : grad_scale;
}

void tg_optimizer_begin_step(tg_optimizer *optimizer)
{
    optimizer->updates++;
}

void tg_optimizer_update_range(const tg_optimizer *optimizer, size_t offset, size_t count,
                               const float *grads, float *m, float *v, float *average,
                               double grad_scale, double lr)
{
    const tg_optimizer_options *o = &optimizer->options;
    const double t = (double)optimizer->updates;
    assert(optimizer->updates > 0 && offset % 16 == 0 && count % 16 == 0);
    assert(offset <= optimizer->elements && count <= optimizer->elements - offset);
    tg_adamw hyper = {.beta1 = o->beta1,
                      .beta2 = o->beta2,
                      .eps = (float)o->eps,
                      .grad_scale = (float)grad_scale,
                      .bias1 = 1 - pow(o->beta1, t),
                      .bias2 = 1 - pow(o->beta2, t),
                      .average_decay = (float)average_decay(optimizer, t)};
    for (size_t i = 0; i < optimizer->span_count; i++) {
        const tg_optimizer_span *s = &optimizer->spans[i];
        size_t begin = s->offset > offset ? s->offset : offset;
        size_t end = s->offset + s->count < offset + count ? s->offset + s->count : offset + count;
        if (begin >= end)
            continue;
        const size_t at = begin - offset;
        hyper.lr = (float)(lr * s->lr_scale);
        hyper.weight_decay = s->decay ? (float)o->weight_decay : 0;
        hyper.average = average ? average + at : NULL;
        optimizer->kern->optim.adamw(optimizer->stream, end - begin, optimizer->params + begin,
                                     grads + at, m + at, v + at, &hyper);
    }
}

tg_status tg_optimizer_step(tg_optimizer *optimizer, const float *grads, double grad_scale,
                            double lr, double *out_grad_norm)
{
    double norm = grad_scale * sqrt(optimizer->kern->optim.sum_squares(optimizer->stream,
                                                                       optimizer->elements, grads));
    *out_grad_norm = norm;
    if (!isfinite(norm))
        return TG_AGAIN;
    tg_optimizer_begin_step(optimizer);
    tg_optimizer_update_range(optimizer, 0, optimizer->elements, grads, optimizer->m, optimizer->v,
                              optimizer->average, tg_optimizer_clip(optimizer, grad_scale, norm),
                              lr);
    return TG_OK;
}

void tg_optimizer_count(const tg_param_table *table, size_t *out_decay, size_t *out_no_decay)
{
    size_t counts[2] = {0, 0};
    for (size_t i = 0; i < table->count; i++)
        counts[table->items[i].decay] += table->items[i].count;
    *out_no_decay = counts[0];
    *out_decay = counts[1];
}
