#include "kern/cpu/attention_bf16.h"

#include <immintrin.h>
#include <string.h>

enum { ROWS = 6, PANELS = 4 };

/* Two neighbours along K of one row, in every lane. */
static inline __m512i pair_of(const uint16_t *a)
{
    int word;
    memcpy(&word, a, 4);
    return _mm512_set1_epi32(word);
}

/* `rows` x `panels` accumulators in registers; both are constants at every call. */
static inline __attribute__((always_inline)) void block_of(const tg_attention_operands *p, size_t m,
                                                           size_t n, size_t rows, size_t panels)
{
    const uint16_t *a = p->a + m * p->lda, *b = p->b + n * p->K;
    float *c = p->c + m * p->ldc + n;
    __m512 sum[ROWS][PANELS];
#pragma GCC unroll 8
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (size_t j = 0; j < panels; j++)
            sum[i][j] = p->add ? _mm512_loadu_ps(c + i * p->ldc + 16 * j) : _mm512_setzero_ps();
    for (size_t k = 0; k < p->K; k += 2) {
        __m512i column[PANELS];
#pragma GCC unroll 8
        for (size_t j = 0; j < panels; j++)
            column[j] = _mm512_load_si512(b + (16 * j * p->K + 16 * k));
#pragma GCC unroll 8
        for (size_t i = 0; i < rows; i++) {
            __m512i row = pair_of(a + i * p->lda + k);
#pragma GCC unroll 8
            for (size_t j = 0; j < panels; j++)
                sum[i][j] = _mm512_dpbf16_ps(sum[i][j], (__m512bh)row, (__m512bh)column[j]);
        }
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 8
        for (size_t j = 0; j < panels; j++)
            _mm512_storeu_ps(c + i * p->ldc + 16 * j, sum[i][j]);
}

static inline __attribute__((always_inline)) void column_of_blocks(const tg_attention_operands *p,
                                                                   size_t n, size_t panels)
{
    size_t m = 0;
    for (; m + ROWS <= p->M; m += ROWS)
        block_of(p, m, n, ROWS, panels);
    for (; m + 2 <= p->M; m += 2)
        block_of(p, m, n, 2, panels);
    if (m < p->M)
        block_of(p, m, n, 1, panels);
}

static void product(const tg_attention_operands *p)
{
    size_t n = 0;
    for (; n + 64 <= p->N; n += 64)
        column_of_blocks(p, n, 4);
    for (; n + 32 <= p->N; n += 32)
        column_of_blocks(p, n, 2);
    if (n < p->N)
        column_of_blocks(p, n, 1);
}

static const tg_attention_bf16 level = {.product = product};

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

static void leave(void)
{
    _mm_sfence(); /* streamed stores are seen by whoever synchronises with this thread */
}

const tg_attention_kernel tg_attention_bf16_avx512 = {
    .forward_bytes = tg_attention_bf16_forward_bytes,
    .backward_bytes = tg_attention_bf16_backward_bytes,
    .forward = forward,
    .backward = backward,
    .leave = leave,
};
