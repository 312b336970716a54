#include "kern/cpu/attention_avx512bf16.h"
#include "kern/cpu/attention_bf16.h"
#include "kern/cpu/tiles.h"

/* Tiles 0-3 accumulate a block of up to 32 x 32, 4 and 5 hold rows of a, 6 and 7 panels of b. */

static void enter(void)
{
    tg_tiles_enter();
}

static void leave(void)
{
    tg_tiles_leave();
    _mm_sfence(); /* streamed stores are seen by whoever synchronises with this thread */
}

typedef struct block {
    size_t K;
    const uint16_t *a;
    size_t a_bytes; /* between rows */
    const uint16_t *b;
    size_t panel; /* elements between panels of b */
    float *c;
    size_t c_bytes;
    bool add;
} block;

static void block_2x2(const block *x)
{
    const uint16_t *a1 = (const uint16_t *)((const char *)x->a + 16 * x->a_bytes);
    const uint16_t *b1 = x->b + x->panel;
    float *c1 = (float *)((char *)x->c + 16 * x->c_bytes);
    if (x->add) {
        _tile_loadd(0, x->c, x->c_bytes);
        _tile_loadd(1, x->c + 16, x->c_bytes);
        _tile_loadd(2, c1, x->c_bytes);
        _tile_loadd(3, c1 + 16, x->c_bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (size_t k = 0; k < x->K; k += 32) {
        _tile_loadd(4, x->a + k, x->a_bytes);
        _tile_loadd(6, x->b + 16 * k, 64);
        _tile_loadd(7, b1 + 16 * k, 64);
        _tile_loadd(5, a1 + k, x->a_bytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, x->c, x->c_bytes);
    _tile_stored(1, x->c + 16, x->c_bytes);
    _tile_stored(2, c1, x->c_bytes);
    _tile_stored(3, c1 + 16, x->c_bytes);
}

static void block_2x1(const block *x)
{
    const uint16_t *a1 = (const uint16_t *)((const char *)x->a + 16 * x->a_bytes);
    float *c1 = (float *)((char *)x->c + 16 * x->c_bytes);
    if (x->add) {
        _tile_loadd(0, x->c, x->c_bytes);
        _tile_loadd(2, c1, x->c_bytes);
    } else {
        _tile_zero(0);
        _tile_zero(2);
    }
    for (size_t k = 0; k < x->K; k += 32) {
        _tile_loadd(4, x->a + k, x->a_bytes);
        _tile_loadd(6, x->b + 16 * k, 64);
        _tile_loadd(5, a1 + k, x->a_bytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(2, 5, 6);
    }
    _tile_stored(0, x->c, x->c_bytes);
    _tile_stored(2, c1, x->c_bytes);
}

static void block_1x2(const block *x)
{
    const uint16_t *b1 = x->b + x->panel;
    if (x->add) {
        _tile_loadd(0, x->c, x->c_bytes);
        _tile_loadd(1, x->c + 16, x->c_bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
    }
    for (size_t k = 0; k < x->K; k += 32) {
        _tile_loadd(4, x->a + k, x->a_bytes);
        _tile_loadd(6, x->b + 16 * k, 64);
        _tile_loadd(7, b1 + 16 * k, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, x->c, x->c_bytes);
    _tile_stored(1, x->c + 16, x->c_bytes);
}

static void block_1x1(const block *x)
{
    if (x->add)
        _tile_loadd(0, x->c, x->c_bytes);
    else
        _tile_zero(0);
    for (size_t k = 0; k < x->K; k += 32) {
        _tile_loadd(4, x->a + k, x->a_bytes);
        _tile_loadd(6, x->b + 16 * k, 64);
        _tile_dpbf16ps(0, 4, 6);
    }
    _tile_stored(0, x->c, x->c_bytes);
}

static void product(const tg_attention_operands *p)
{
    for (size_t n = 0; n < p->N; n += 32)
        for (size_t m = 0; m < p->M; m += 32) {
            block x = {.K = p->K,
                       .a = p->a + m * p->lda,
                       .a_bytes = 2 * p->lda,
                       .b = p->b + n * p->K,
                       .panel = 16 * p->K,
                       .c = p->c + m * p->ldc + n,
                       .c_bytes = 4 * p->ldc,
                       .add = p->add};
            bool wide = n + 16 < p->N, tall = m + 16 < p->M;
            if (tall)
                (wide ? block_2x2 : block_2x1)(&x);
            else
                (wide ? block_1x2 : block_1x1)(&x);
        }
}

/* The exponentials of 16 rows x 32 columns; sums of the rows gather in `sum`. */
static void exp_block(const tg_attention_weights *w, size_t row, size_t t, __m512 sum[16])
{
    const __m512 factor = _mm512_set1_ps(w->factor);
    const __mmask16 low = tg_lanes(w->T - t), high = tg_lanes(w->T > t + 16 ? w->T - t - 16 : 0);
    for (size_t i = 0; i < 16; i++) {
        const float *s = w->s + (row + i) * w->ld + t;
        const __m512 max = _mm512_set1_ps(w->max[row + i]);
        __m512 e0 = tg_exp2_ps(_mm512_fmsub_ps(_mm512_load_ps(s), factor, max));
        __m512 e1 = tg_exp2_ps(_mm512_fmsub_ps(_mm512_load_ps(s + 16), factor, max));
        e0 = _mm512_maskz_mov_ps(low, e0);
        e1 = _mm512_maskz_mov_ps(high, e1);
        sum[i] = _mm512_add_ps(sum[i], _mm512_add_ps(e0, e1));
        _mm512_store_si512(w->p + (row + i) * w->ld + t, (__m512i)_mm512_cvtne2ps_pbh(e1, e0));
    }
    /* the tile intrinsics do not tell the compiler what they read */
    __asm__ volatile("" ::: "memory");
}

/* 16 rows: while the tile unit multiplies one step of 32 columns, the vector units raise the next.
 */
static void weigh_rows(const tg_attention_weights *w, size_t row)
{
    __m512 sum[16];
    for (size_t i = 0; i < 16; i++)
        sum[i] = _mm512_setzero_ps();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t t = 0; t < w->Tp; t += 32) {
        exp_block(w, row, t, sum);
        const uint16_t *v = w->v + 16 * t;
        _tile_loadd(4, w->p + row * w->ld + t, 2 * w->ld);
        _tile_loadd(5, v, 64);
        _tile_dpbf16ps(0, 4, 5);
        if (w->N > 16) {
            _tile_loadd(6, v + 16 * w->Tp, 64);
            _tile_dpbf16ps(1, 4, 6);
        }
        if (w->N > 32) {
            _tile_loadd(7, v + 32 * w->Tp, 64);
            _tile_dpbf16ps(2, 4, 7);
        }
        if (w->N > 48) {
            _tile_loadd(5, v + 48 * w->Tp, 64);
            _tile_dpbf16ps(3, 4, 5);
        }
    }
    float *o = w->o + row * w->ldo;
    _tile_stored(0, o, 4 * w->ldo);
    if (w->N > 16)
        _tile_stored(1, o + 16, 4 * w->ldo);
    if (w->N > 32)
        _tile_stored(2, o + 32, 4 * w->ldo);
    if (w->N > 48)
        _tile_stored(3, o + 48, 4 * w->ldo);
    for (size_t i = 0; i < 16; i++)
        w->sum[row + i] = _mm512_reduce_add_ps(sum[i]);
}

/* Four accumulators are there, so heads up to 64 wide. */
static bool weigh(const tg_attention_weights *w)
{
    if (w->N > 64)
        return false;
    for (size_t row = 0; row < w->rows; row += 16)
        weigh_rows(w, row);
    return true;
}

static const tg_attention_bf16 level = {.product = product,
                                        .weigh = weigh,
                                        .near_block = tg_attention_amx_near_block,
                                        .weigh_keys = tg_attention_amx_weigh_keys};

static void forward(const tg_attention_head *head, const tg_attention_forward_out *out,
                    void *scratch)
{
    tg_attention_bf16_forward(head, out, scratch, &level);
}

static void backward(const tg_attention_head *head, const tg_attention_backward_args *args,
                     void *scratch)
{
    tg_attention_bf16_backward(head, args, scratch, &level);
}

const tg_attention_kernel tg_attention_bf16_amx = {
    .forward_bytes = tg_attention_bf16_forward_bytes,
    .backward_bytes = tg_attention_bf16_backward_bytes,
    .forward = forward,
    .backward = backward,
    .enter = enter,
    .leave = leave,
};
