#include "kern/traced.h"

#include "trace/trace.h"

#include <stdlib.h>

/* A handle of this table: the wrapped table's, and what keys and counts are made from. */
struct tg_weight {
    tg_weight *inner;
    void (*inner_free)(tg_weight *weight);
    size_t out_features, in_features;
    tg_dtype compute;
    bool trainable;
};

static const tg_kern *inner(const tg_stream *stream)
{
    return tg_kern_select(stream);
}

static double product(size_t a, size_t b)
{
    return (double)a * (double)b;
}

/* As PyTorch calls them. */
static const char *type_name(tg_dtype dtype)
{
    return dtype == TG_BF16 ? "bfloat16" : "float32";
}

/* Ends a span of a row operation on `bytes_each` bytes for each of rows x width elements. */
static void end_rows(const tg_stream *stream, const char *name, tg_dtype dtype, int64_t begin,
                     size_t rows, size_t width, size_t bytes_each)
{
    const tg_trace_key key = {.threads = tg_stream_siblings(stream),
                              .name = name,
                              .dtype = type_name(dtype),
                              .shape = {rows, width}};
    tg_trace_end(&key, begin, 0, product(rows, width) * (double)bytes_each);
}

/* The same for sweeps over n elements, whose lengths are not told apart. */
static void end_sweep(const tg_stream *stream, const char *name, tg_dtype dtype, int64_t begin,
                      size_t n, size_t bytes_each)
{
    const tg_trace_key key = {
        .threads = tg_stream_siblings(stream), .name = name, .dtype = type_name(dtype)};
    tg_trace_end(&key, begin, 0, product(n, bytes_each));
}

static tg_status weight_new(tg_stream *stream, size_t out_features, size_t in_features,
                            tg_dtype compute, bool trainable, tg_weight **out)
{
    const tg_linear_ops *ops = &inner(stream)->linear;
    tg_weight *weight = malloc(sizeof *weight);
    if (!weight)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a traced weight");
    *weight = (tg_weight){.inner_free = ops->weight_free,
                          .out_features = out_features,
                          .in_features = in_features,
                          .compute = compute,
                          .trainable = trainable};
    tg_status status =
        ops->weight_new(stream, out_features, in_features, compute, trainable, &weight->inner);
    if (status < 0) {
        free(weight);
        return status;
    }
    *out = weight;
    return TG_OK;
}

static void weight_free(tg_weight *weight)
{
    if (!weight)
        return;
    weight->inner_free(weight->inner);
    free(weight);
}

static tg_status weight_refresh(tg_stream *stream, tg_weight *weight, const float *w)
{
    int64_t begin = tg_trace_begin();
    tg_status status = inner(stream)->linear.weight_refresh(stream, weight->inner, w);
    size_t copies = weight->trainable ? 2 : 1; /* of the forward and of the input gradient */
    end_rows(stream, "weight_refresh", weight->compute, begin, weight->in_features,
             weight->out_features, sizeof(float) + copies * tg_dtype_bytes(weight->compute));
    return status;
}

static void end_linear(const tg_stream *stream, const char *name, int64_t begin,
                       const tg_weight *weight, size_t R)
{
    const size_t in = weight->in_features, out = weight->out_features;
    const tg_trace_key key = {.threads = tg_stream_siblings(stream),
                              .name = name,
                              .dtype = type_name(weight->compute),
                              .shape = {R, in, out}};
    tg_trace_end(&key, begin, 2 * (double)R * product(in, out), 0);
}

static tg_status linear_forward(tg_stream *stream, tg_weight *weight, size_t R, const void *x,
                                const float *bias, void *out_y, tg_dtype y_dtype)
{
    int64_t begin = tg_trace_begin();
    tg_status status =
        inner(stream)->linear.forward(stream, weight->inner, R, x, bias, out_y, y_dtype);
    end_linear(stream, "linear_forward", begin, weight, R);
    return status;
}

static tg_status linear_backward_input(tg_stream *stream, tg_weight *weight, size_t R,
                                       const void *dy, void *out_dx)
{
    int64_t begin = tg_trace_begin();
    tg_status status = inner(stream)->linear.backward_input(stream, weight->inner, R, dy, out_dx);
    end_linear(stream, "linear_backward_input", begin, weight, R);
    return status;
}

static tg_status linear_backward_weight(tg_stream *stream, tg_weight *weight, size_t R,
                                        const void *x, const void *dy, float *dw, float *dbias,
                                        bool accumulate)
{
    int64_t begin = tg_trace_begin();
    tg_status status = inner(stream)->linear.backward_weight(stream, weight->inner, R, x, dy, dw,
                                                             dbias, accumulate);
    end_linear(stream, "linear_backward_weight", begin, weight, R);
    return status;
}

static void end_mlp(const tg_stream *stream, const char *name, int64_t begin, const tg_weight *w1,
                    size_t R, unsigned products)
{
    const size_t C = w1->in_features, F = w1->out_features;
    const tg_trace_key key = {.threads = tg_stream_siblings(stream),
                              .name = name,
                              .dtype = type_name(w1->compute),
                              .shape = {R, C, F}};
    tg_trace_end(&key, begin, 2.0 * products * (double)R * product(C, F), 0);
}

static tg_status mlp_forward(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                             const tg_mlp_forward *args)
{
    int64_t begin = tg_trace_begin();
    tg_status status = inner(stream)->mlp.forward(stream, w1->inner, w2->inner, args);
    end_mlp(stream, "mlp_forward", begin, w1, args->R, 2);
    return status;
}

static tg_status mlp_backward(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                              const tg_mlp_backward *args)
{
    int64_t begin = tg_trace_begin();
    tg_status status = inner(stream)->mlp.backward(stream, w1->inner, w2->inner, args);
    end_mlp(stream, "mlp_backward", begin, w1, args->R, 2);
    return status;
}

static tg_status mlp_backward_weights(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                                      const tg_mlp_weights *args)
{
    int64_t begin = tg_trace_begin();
    tg_status status = inner(stream)->mlp.backward_weights(stream, w1->inner, w2->inner, args);
    end_mlp(stream, "mlp_backward_weights", begin, w1, args->R, 2);
    return status;
}

static void norm_forward(tg_stream *stream, const tg_norm_forward *args)
{
    const size_t value = tg_dtype_bytes(args->dtype);
    int64_t begin = tg_trace_begin();
    inner(stream)->norm.forward(stream, args);
    end_rows(stream, "norm_forward", args->dtype, begin, args->R, args->C,
             sizeof(float) + (args->branch ? value + sizeof(float) : 0) +
                 (args->out_y ? value : 0));
}

static void norm_gather(tg_stream *stream, const tg_norm_gather *args)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->norm.gather(stream, args);
    end_rows(stream, "norm_gather", TG_F32, begin, args->chunks, args->C, 3 * sizeof(float));
}

static void norm_backward(tg_stream *stream, const tg_norm_backward *args)
{
    const size_t value = tg_dtype_bytes(args->dtype);
    size_t bytes = 0;
    if (args->dy)
        bytes += value + 2 * sizeof(float); /* dy, x, dres written */
    if (!args->dy || !args->dres_zero)
        bytes += sizeof(float); /* dres read */
    if (args->out_dbranch)
        bytes += value;
    if (args->dls)
        bytes += value;
    int64_t begin = tg_trace_begin();
    inner(stream)->norm.backward(stream, args);
    end_rows(stream, "norm_backward", args->dtype, begin, args->R, args->C, bytes);
}

static void end_attention(const tg_stream *stream, const char *name, int64_t begin,
                          const tg_attention_shape *s, unsigned products)
{
    const size_t C = s->H * s->D;
    const tg_trace_key key = {.threads = tg_stream_siblings(stream),
                              .name = name,
                              .dtype = type_name(s->dtype),
                              .shape = {s->B, s->T_q, s->T, C}};
    tg_trace_end(&key, begin, 2.0 * products * product(s->B, C) * product(s->T_q, s->T), 0);
}

static tg_status attention_forward(tg_stream *stream, const tg_attention_shape *shape,
                                   const void *qkv, void *out_o, float *out_lse)
{
    int64_t begin = tg_trace_begin();
    tg_status status = inner(stream)->attention.forward(stream, shape, qkv, out_o, out_lse);
    end_attention(stream, "attention_forward", begin, shape, 2);
    return status;
}

static tg_status attention_backward(tg_stream *stream, const tg_attention_shape *shape,
                                    const void *qkv, const void *o, const float *lse,
                                    const void *d_o, void *out_dqkv)
{
    int64_t begin = tg_trace_begin();
    tg_status status = inner(stream)->attention.backward(stream, shape, qkv, o, lse, d_o, out_dqkv);
    end_attention(stream, "attention_backward", begin, shape, 5);
    return status;
}

static void patch(tg_stream *stream, const tg_patch_shape *shape, const float *image,
                  void *out_patches)
{
    const tg_trace_key key = {.threads = tg_stream_siblings(stream),
                              .name = "patch",
                              .dtype = type_name(shape->dtype),
                              .shape = {shape->B, shape->S_h, shape->S_w, shape->P}};
    int64_t begin = tg_trace_begin();
    inner(stream)->patch.forward(stream, shape, image, out_patches);
    tg_trace_end(&key, begin, 0,
                 3.0 * (double)shape->B * product(shape->S_h, shape->S_w) *
                     (double)(sizeof(float) + tg_dtype_bytes(shape->dtype)));
}

static void end_tokens(const tg_stream *stream, const char *name, int64_t begin,
                       const tg_tokens_shape *s)
{
    const size_t T = s->prefix_count + s->N;
    const tg_trace_key key = {.threads = tg_stream_siblings(stream),
                              .name = name,
                              .dtype = type_name(s->dtype),
                              .shape = {s->B, T, s->C}};
    tg_trace_end(&key, begin, 0,
                 product(s->B, s->C) *
                     (product(T, sizeof(float)) + product(s->N, tg_dtype_bytes(s->dtype))));
}

static void tokens_assemble(tg_stream *stream, const tg_tokens_shape *shape, const void *patches,
                            const float *prefix, const float *pos, float *out_x)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->tokens.assemble(stream, shape, patches, prefix, pos, out_x);
    end_tokens(stream, "tokens_assemble", begin, shape);
}

static void tokens_assemble_backward(tg_stream *stream, const tg_tokens_shape *shape,
                                     const float *dx, void *out_dpatch, float *dprefix, float *dpos,
                                     bool accumulate)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->tokens.assemble_backward(stream, shape, dx, out_dpatch, dprefix, dpos,
                                            accumulate);
    end_tokens(stream, "tokens_assemble_backward", begin, shape);
}

static void end_mean(const tg_stream *stream, const char *name, int64_t begin, size_t B, size_t T,
                     size_t C, double rows)
{
    const tg_trace_key key = {.threads = tg_stream_siblings(stream),
                              .name = name,
                              .dtype = "float32",
                              .shape = {B, T, C}};
    tg_trace_end(&key, begin, 0, rows * product(B, C) * sizeof(float));
}

static void tokens_mean(tg_stream *stream, size_t B, size_t T, size_t C, size_t first,
                        const float *x, float *out_mean)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->tokens.mean(stream, B, T, C, first, x, out_mean);
    end_mean(stream, "mean_forward", begin, B, T, C, (double)(T - first));
}

static void tokens_mean_backward(tg_stream *stream, size_t B, size_t T, size_t C, size_t first,
                                 const float *d_out, float *dres, bool dres_zero)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->tokens.mean_backward(stream, B, T, C, first, d_out, dres, dres_zero);
    end_mean(stream, "mean_backward", begin, B, T, C,
             dres_zero ? (double)T : 2 * (double)(T - first));
}

static void tokens_from_f32(tg_stream *stream, size_t n, const float *x, tg_dtype dtype, void *out)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->tokens.from_f32(stream, n, x, dtype, out);
    end_sweep(stream, "from_f32", dtype, begin, n, sizeof(float) + tg_dtype_bytes(dtype));
}

static void tokens_to_f32(tg_stream *stream, size_t n, const void *x, tg_dtype dtype, float *out)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->tokens.to_f32(stream, n, x, dtype, out);
    end_sweep(stream, "to_f32", dtype, begin, n, sizeof(float) + tg_dtype_bytes(dtype));
}

/* Two arrays are read; the gradient is written, and read first where it is added to. */
static void end_loss(const tg_stream *stream, const char *name, int64_t begin, size_t B, size_t K,
                     const float *out_d, bool accumulate)
{
    size_t arrays = 2 + (out_d ? 1 : 0) + (out_d && accumulate ? 1 : 0);
    end_rows(stream, name, TG_F32, begin, B, K, arrays * sizeof(float));
}

static void cross_entropy(tg_stream *stream, size_t B, size_t K, const float *logits,
                          const float *target, float weight, float *out_loss, float *out_dlogits,
                          bool accumulate)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->loss.cross_entropy(stream, B, K, logits, target, weight, out_loss, out_dlogits,
                                      accumulate);
    end_loss(stream, "cross_entropy", begin, B, K, out_dlogits, accumulate);
}

static void kl(tg_stream *stream, size_t B, size_t K, const float *student, const float *teacher,
               float temperature, float weight, float *out_loss, float *out_dlogits,
               bool accumulate)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->loss.kl(stream, B, K, student, teacher, temperature, weight, out_loss,
                           out_dlogits, accumulate);
    end_loss(stream, "kl", begin, B, K, out_dlogits, accumulate);
}

static void squared_error(tg_stream *stream, size_t B, size_t K, const float *x, const float *y,
                          float weight, float *out_loss, float *out_dx, bool accumulate)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->loss.squared_error(stream, B, K, x, y, weight, out_loss, out_dx, accumulate);
    end_loss(stream, "squared_error", begin, B, K, out_dx, accumulate);
}

static void adamw(tg_stream *stream, size_t n, float *p, const float *g, float *m, float *v,
                  const tg_adamw *hyper)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->optim.adamw(stream, n, p, g, m, v, hyper);
    /* p, m, v and the average read and written, g read */
    end_sweep(stream, "adamw", TG_F32, begin, n, (hyper->average ? 9 : 7) * sizeof(float));
}

static double sum_squares(tg_stream *stream, size_t n, const float *x)
{
    int64_t begin = tg_trace_begin();
    double sum = inner(stream)->optim.sum_squares(stream, n, x);
    end_sweep(stream, "sum_squares", TG_F32, begin, n, sizeof(float));
    return sum;
}

static void average(tg_stream *stream, size_t n, float *e, const float *p, float decay)
{
    int64_t begin = tg_trace_begin();
    inner(stream)->optim.average(stream, n, e, p, decay);
    end_sweep(stream, "average", TG_F32, begin, n, 3 * sizeof(float));
}

tg_kern tg_kern_traced(const tg_stream *stream)
{
    return (tg_kern){
        .name = inner(stream)->name,
        .span_rows = inner(stream)->span_rows,
        .linear =
            {
                .weight_new = weight_new,
                .weight_free = weight_free,
                .weight_bytes = inner(stream)->linear.weight_bytes,
                .weight_refresh = weight_refresh,
                .forward = linear_forward,
                .backward_input = linear_backward_input,
                .backward_weight = linear_backward_weight,
            },
        .mlp = {.forward = mlp_forward,
                .backward = mlp_backward,
                .backward_weights = mlp_backward_weights},
        .norm = {.forward = norm_forward, .backward = norm_backward, .gather = norm_gather},
        .attention = {.forward = attention_forward, .backward = attention_backward},
        .patch = {.forward = patch},
        .tokens =
            {
                .assemble = tokens_assemble,
                .assemble_backward = tokens_assemble_backward,
                .mean = tokens_mean,
                .mean_backward = tokens_mean_backward,
                .from_f32 = tokens_from_f32,
                .to_f32 = tokens_to_f32,
            },
        .loss = {.cross_entropy = cross_entropy, .kl = kl, .squared_error = squared_error},
        .optim =
            {
                .adamw = adamw,
                .sum_squares = sum_squares,
                .average = average,
            },
    };
}
