/* attention.h - the seam between the attention driver and the code of one instruction set.
 *
 * attention.c checks shapes, finds scratch and shares the B*H heads among the threads of the
 * stream. A kernel computes one head on one thread, so results never depend on the thread count.
 *
 * Scratch  one block per thread, 64-byte aligned, of at least forward_bytes or backward_bytes.
 * Threads  kernels are reentrant; `enter` and `leave` (may be NULL) run on each thread around its
 *          share of heads, for state such as the AMX tile configuration.
 */
#ifndef TG_KERN_CPU_ATTENTION_H
#define TG_KERN_CPU_ATTENTION_H

#include "kern/attention.h"

#include <stddef.h>

/* Query rows that a forward kernel handles together; items of work begin at multiples of it. */
enum { TG_ATTENTION_BLOCK = 96 };

enum { TG_ATTENTION_RANGES = 3 };

/* Memory that the next sample's heads read, fetched while this head is computed: a kernel asks for
 * `lines` of each range at each of its (T/32)^2 * 16 or more steps, or not at all. Samples are fetched
 * whole, a share with each head: then lines follow each other and the hardware's own fetching joins in;
 * the rows of one head lie apart. */
typedef struct tg_attention_ahead {
    struct {
        const char *at, *end;
        size_t lines;
    } range[TG_ATTENTION_RANGES];
} tg_attention_ahead;

/* One head of one sample. Pointers are to the head's first row, strides in elements. */
typedef struct tg_attention_head {
    size_t T, T_q, D;
    size_t packed_stride; /* between tokens of q, k, v, dq, dk, dv */
    size_t o_stride;      /* between tokens of o and do */
    float scale;
    const void *q, *k, *v;
    tg_attention_ahead *ahead; /* used up by the kernel */
} tg_attention_head;

/* Forward computes query rows [begin, end) of the head. lse may be NULL. */
typedef struct tg_attention_forward_out {
    size_t begin, end;
    void *o;
    float *lse;
} tg_attention_forward_out;

typedef struct tg_attention_backward_args {
    const void *o, *d_o;
    const float *lse;
    void *dq, *dk, *dv;
} tg_attention_backward_args;

typedef struct tg_attention_kernel {
    size_t (*forward_bytes)(size_t T, size_t D);
    size_t (*backward_bytes)(size_t T, size_t T_q, size_t D);
    void (*forward)(const tg_attention_head *head, const tg_attention_forward_out *out,
                    void *scratch);
    void (*backward)(const tg_attention_head *head, const tg_attention_backward_args *args,
                     void *scratch);
    void (*enter)(void);
    void (*leave)(void);
} tg_attention_kernel;

extern const tg_attention_kernel tg_attention_f32_portable;
#if defined(__x86_64__)
extern const tg_attention_kernel tg_attention_f32_avx2, tg_attention_f32_avx512,
    tg_attention_bf16_avx512, tg_attention_bf16_amx;
#endif

/* Hands out the next `bytes` of scratch at *used, rounded up to 64; NULL (only *used moves) when
 * base is NULL, so that one layout function serves sizing and use. */
static inline void *tg_attention_take(void *base, size_t *used, size_t bytes)
{
    size_t at = *used;
    *used = at + ((bytes + 63) & ~(size_t)63);
    return base ? (char *)base + at : NULL;
}

static inline size_t tg_attention_round(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* Leading dimension of a scratch matrix with n columns: rows a power of two apart would share too
 * few sets of the first-level cache. */
static inline size_t tg_attention_ld(size_t n)
{
    return n % 128 == 0 ? n + 32 : n;
}

#endif
