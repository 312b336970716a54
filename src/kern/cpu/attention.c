#include "kern/cpu/attention.h"

#include "base/checked.h"
#include "dev/cpu/stream.h"
#include "kern/cpu/entries.h"

#include <assert.h>
#include <omp.h>
#include <stdbool.h>
#include <string.h>

enum { SCRATCH_SLOT = 16 };

static const tg_attention_kernel *kernel_of(const tg_stream *stream, tg_dtype dtype)
{
    tg_cpu_level level = tg_stream_level(stream);
#if defined(__x86_64__)
    if (dtype == TG_BF16)
        return level >= TG_CPU_AMX ? &tg_attention_bf16_amx : &tg_attention_bf16_avx512;
    if (level >= TG_CPU_AVX512)
        return &tg_attention_f32_avx512;
    if (level >= TG_CPU_AVX2)
        return &tg_attention_f32_avx2;
#endif
    (void)level;
    (void)dtype;
    return &tg_attention_f32_portable;
}

static void check_shape(const tg_stream *stream, const tg_attention_shape *s)
{
    assert(!stream->shared && s->T_q <= s->T && s->scale > 0);
    assert(s->dtype == TG_F32 || (s->dtype == TG_BF16 && tg_stream_has_bf16(stream)));
    (void)stream;
    (void)s;
}

static tg_status scratch_of(tg_stream *stream, size_t per_thread, void **out)
{
    size_t bytes;
    *out = NULL;
    if (tg_mul_size(per_thread, (size_t)tg_stream_threads(stream), &bytes))
        *out = tg_stream_scratch(stream, SCRATCH_SLOT, bytes);
    if (!*out)
        return tg_fail(TG_ERROR_MACHINE,
                       "attention: no memory for %zu bytes of scratch for each of %d threads",
                       per_thread, tg_stream_threads(stream));
    return TG_OK;
}

/* Element index of q (0), k (1) or v (2) of head h of sample b in [B,T,3,H,D]. */
static size_t packed_at(const tg_attention_shape *s, size_t b, size_t which, size_t h)
{
    return (b * s->T * 3 + which) * s->H * s->D + h * s->D;
}

static size_t o_at(const tg_attention_shape *s, size_t b, size_t h)
{
    return b * s->T_q * s->H * s->D + h * s->D;
}

/* Share h of the rows of sample b + 1 in an array of `columns` a row. */
static void look_ahead(const tg_attention_shape *s, const void *array, size_t rows, size_t columns,
                       size_t b, size_t h, size_t range, tg_attention_ahead *out)
{
    enum { LINE = 64, STEPS = 16 };
    if (b + 1 >= s->B)
        return;
    const size_t sample = rows * columns * tg_dtype_bytes(s->dtype), blocks = (s->T + 31) / 32;
    const char *begin = (const char *)array + (b + 1) * sample;
    const size_t lines = sample / s->H / LINE + 1, steps = blocks * blocks * STEPS;
    out->range[range].at = begin + sample * h / s->H;
    out->range[range].end = begin + sample * (h + 1) / s->H;
    out->range[range].lines = (lines + steps - 1) / steps;
}

static tg_attention_head head_of(const tg_attention_shape *s, const void *qkv, size_t b, size_t h,
                                 tg_attention_ahead *ahead)
{
    const char *base = qkv;
    size_t size = tg_dtype_bytes(s->dtype);
    return (tg_attention_head){.T = s->T,
                               .T_q = s->T_q,
                               .D = s->D,
                               .packed_stride = 3 * s->H * s->D,
                               .o_stride = s->H * s->D,
                               .scale = s->scale,
                               .q = base + packed_at(s, b, 0, h) * size,
                               .k = base + packed_at(s, b, 1, h) * size,
                               .v = base + packed_at(s, b, 2, h) * size,
                               .ahead = ahead};
}

/* Items of work per head: more than one only when there are too few heads for the threads, because
 * each item packs the keys again. */
static size_t parts_of(const tg_attention_shape *s, int threads)
{
    size_t heads = s->B * s->H, most = (s->T_q + TG_ATTENTION_BLOCK - 1) / TG_ATTENTION_BLOCK;
    size_t wanted = heads >= 4 * (size_t)threads ? 1 : (4 * (size_t)threads + heads - 1) / heads;
    return wanted < most ? wanted : most;
}

static void forward_item(const tg_attention_kernel *kernel, const tg_attention_shape *s,
                         const void *qkv, void *out_o, float *out_lse, size_t item, size_t parts,
                         void *scratch)
{
    size_t part = item % parts, bh = item / parts, b = bh / s->H, h = bh % s->H;
    size_t blocks = (s->T_q + TG_ATTENTION_BLOCK - 1) / TG_ATTENTION_BLOCK;
    size_t end = blocks * (part + 1) / parts * TG_ATTENTION_BLOCK;
    tg_attention_ahead ahead = {0};
    if (parts == 1)
        look_ahead(s, qkv, s->T, 3 * s->H * s->D, b, h, 0, &ahead);
    tg_attention_head head = head_of(s, qkv, b, h, &ahead);
    tg_attention_forward_out out = {
        .begin = blocks * part / parts * TG_ATTENTION_BLOCK,
        .end = end < s->T_q ? end : s->T_q,
        .o = (char *)out_o + o_at(s, b, h) * tg_dtype_bytes(s->dtype),
        .lse = out_lse ? out_lse + bh * s->T_q : NULL,
    };
    kernel->forward(&head, &out, scratch);
}

tg_status tg_cpu_attention_forward(tg_stream *stream, const tg_attention_shape *s, const void *qkv,
                                   void *out_o, float *out_lse)
{
    check_shape(stream, s);
    if (s->B * s->H * s->T_q * s->D == 0)
        return TG_OK;
    const tg_attention_kernel *kernel = kernel_of(stream, s->dtype);
    int threads = tg_stream_threads(stream);
    size_t parts = parts_of(s, threads), items = s->B * s->H * parts;
    size_t per_thread = kernel->forward_bytes(s->T, s->D);
    void *scratch;
    TG_TRY(scratch_of(stream, per_thread, &scratch));
#pragma omp parallel num_threads(threads)
    {
        char *mine = (char *)scratch + per_thread * (size_t)omp_get_thread_num();
        if (kernel->enter)
            kernel->enter();
#pragma omp for schedule(static)
        for (size_t item = 0; item < items; item++)
            forward_item(kernel, s, qkv, out_o, out_lse, item, parts, mine);
        if (kernel->leave)
            kernel->leave();
    }
    return TG_OK;
}

static void backward_item(const tg_attention_kernel *kernel, const tg_attention_shape *s,
                          const void *qkv, const tg_attention_backward_args *all, size_t bh,
                          void *scratch)
{
    size_t b = bh / s->H, h = bh % s->H, size = tg_dtype_bytes(s->dtype);
    tg_attention_ahead ahead = {0};
    if (s->T_q == s->T) {
        look_ahead(s, qkv, s->T, 3 * s->H * s->D, b, h, 0, &ahead);
        look_ahead(s, all->o, s->T_q, s->H * s->D, b, h, 1, &ahead);
        look_ahead(s, all->d_o, s->T_q, s->H * s->D, b, h, 2, &ahead);
    }
    tg_attention_head head = head_of(s, qkv, b, h, &ahead);
    tg_attention_backward_args args = {
        .o = (const char *)all->o + o_at(s, b, h) * size,
        .d_o = (const char *)all->d_o + o_at(s, b, h) * size,
        .lse = all->lse + bh * s->T_q,
        .dq = (char *)all->dq + packed_at(s, b, 0, h) * size,
        .dk = (char *)all->dk + packed_at(s, b, 1, h) * size,
        .dv = (char *)all->dv + packed_at(s, b, 2, h) * size,
    };
    kernel->backward(&head, &args, scratch);
    for (size_t t = s->T_q; t < s->T; t++)
        memset((char *)args.dq + t * head.packed_stride * size, 0, s->D * size);
}

tg_status tg_cpu_attention_backward(tg_stream *stream, const tg_attention_shape *s, const void *qkv,
                                    const void *o, const float *lse, const void *d_o,
                                    void *out_dqkv)
{
    check_shape(stream, s);
    if (s->B * s->H * s->T * s->D == 0)
        return TG_OK;
    if (s->T_q == 0) {
        memset(out_dqkv, 0, s->B * s->T * 3 * s->H * s->D * tg_dtype_bytes(s->dtype));
        return TG_OK;
    }
    const tg_attention_kernel *kernel = kernel_of(stream, s->dtype);
    const tg_attention_backward_args all = {
        .o = o, .d_o = d_o, .lse = lse, .dq = out_dqkv, .dk = out_dqkv, .dv = out_dqkv};
    size_t per_thread = kernel->backward_bytes(s->T, s->T_q, s->D);
    void *scratch;
    TG_TRY(scratch_of(stream, per_thread, &scratch));
#pragma omp parallel num_threads(tg_stream_threads(stream))
    {
        char *mine = (char *)scratch + per_thread * (size_t)omp_get_thread_num();
        if (kernel->enter)
            kernel->enter();
#pragma omp for schedule(static)
        for (size_t bh = 0; bh < s->B * s->H; bh++)
            backward_item(kernel, s, qkv, &all, bh, mine);
        if (kernel->leave)
            kernel->leave();
    }
    return TG_OK;
}
