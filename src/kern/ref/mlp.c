#include "kern/ref/ref.h"

#include "kern/ref/element.h"

#include <math.h>

static const double SQRT_2 = 1.41421356237309504880;
static const double SQRT_2_OVER_PI = 0.79788456080286535588;
static const double INV_SQRT_2PI = 0.39894228040143267794;

/* erfc keeps the digits of the left tail, where 1 + erf would cancel. */
static double gelu(tg_gelu kind, double h)
{
    if (kind == TG_GELU_EXACT)
        return 0.5 * h * erfc(-h / SQRT_2);
    double u = SQRT_2_OVER_PI * (h + 0.044715 * h * h * h);
    return h / (1 + exp(-2 * u)); /* (1 + tanh u) / 2 = 1 / (1 + exp(-2u)) */
}

static double gelu_slope(tg_gelu kind, double h)
{
    if (kind == TG_GELU_EXACT)
        return 0.5 * erfc(-h / SQRT_2) + h * INV_SQRT_2PI * exp(-0.5 * h * h);
    double u = SQRT_2_OVER_PI * (h + 0.044715 * h * h * h);
    double s = 1 / (1 + exp(-2 * u)), opposite = 1 / (1 + exp(2 * u));
    return s + h * 2 * s * opposite * SQRT_2_OVER_PI * (1 + 3 * 0.044715 * h * h);
}

/* One row of h, rounded as it is stored, into `row` [F]. */
static void hidden_row(const tg_weight *w1, const tg_mlp_forward *args, size_t r, double *row)
{
    const size_t C = w1->in_features, F = w1->out_features;
    for (size_t f = 0; f < F; f++) {
        double sum = args->b1 ? args->b1[f] : 0;
        for (size_t c = 0; c < C; c++)
            sum += tg_element_load(args->x, w1->compute, r * C + c) * w1->w[f * C + c];
        row[f] = tg_element_round(sum, w1->compute);
    }
}

tg_status tg_ref_mlp_forward(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                             const tg_mlp_forward *args)
{
    (void)stream;
    assert(w1->fresh && w2->fresh);
    const size_t C = w2->out_features, F = w1->out_features;
    double *row = w2->row;
    for (size_t r = 0; r < args->R; r++) {
        hidden_row(w1, args, r, row);
        for (size_t f = 0; f < F; f++) {
            if (args->out_h)
                tg_element_store(args->out_h, w1->compute, (args->row0 + r) * F + f, row[f]);
            row[f] = tg_element_round(gelu(args->gelu, row[f]), w1->compute);
        }
        for (size_t c = 0; c < C; c++) {
            double sum = args->b2 ? args->b2[c] : 0;
            for (size_t f = 0; f < F; f++)
                sum += row[f] * w2->w[c * F + f];
            tg_element_store(args->out_y, w2->compute, r * C + c, sum);
        }
    }
    return TG_OK;
}

tg_status tg_ref_mlp_backward(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                              const tg_mlp_backward *args)
{
    const size_t R = args->R, F = w1->out_features;
    const tg_dtype dtype = w1->compute;
    const size_t first = args->row0 * F;
    char *dh = (char *)args->out_dh + first * tg_dtype_bytes(dtype);
    TG_TRY(tg_ref_linear_backward_input(stream, w2, R, args->dy, dh));
    for (size_t i = 0; i < R * F; i++) {
        double h = tg_element_load(args->h, dtype, first + i);
        double dg = tg_element_load(dh, dtype, i);
        tg_element_store(args->out_g, dtype, first + i, gelu(args->gelu, h));
        tg_element_store(dh, dtype, i, dg * gelu_slope(args->gelu, h));
    }
    return tg_ref_linear_backward_input(stream, w1, R, dh, args->out_dx);
}

tg_status tg_ref_mlp_backward_weights(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                                      const tg_mlp_weights *args)
{
    TG_TRY(tg_ref_linear_backward_weight(stream, w2, args->R, args->g, args->dy, args->dw2,
                                         args->db2, args->accumulate));
    return tg_ref_linear_backward_weight(stream, w1, args->R, args->x, args->dh, args->dw1,
                                         args->db1, args->accumulate);
}
