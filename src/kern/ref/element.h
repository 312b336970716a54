/* element.h - reading and writing one element of an fp32 or bf16 array, for the reference.
 *
 * The reference computes in double and rounds only where the contracts store something, so that it
 * is the oracle of every faster version. Reentrant, no memory.
 */
#ifndef TG_KERN_REF_ELEMENT_H
#define TG_KERN_REF_ELEMENT_H

#include "tensor/dtype.h"

#include <assert.h>
#include <stddef.h>

static inline double tg_element_load(const void *array, tg_dtype dtype, size_t i)
{
    assert(dtype == TG_F32 || dtype == TG_BF16);
    return dtype == TG_F32 ? ((const float *)array)[i]
                           : tg_f32_from_bf16(((const uint16_t *)array)[i]);
}

static inline void tg_element_store(void *array, tg_dtype dtype, size_t i, double value)
{
    assert(dtype == TG_F32 || dtype == TG_BF16);
    if (dtype == TG_F32)
        ((float *)array)[i] = (float)value;
    else
        ((uint16_t *)array)[i] = tg_bf16_from_f32((float)value);
}

/* What a value is after it was stored as `dtype` and read again. */
static inline double tg_element_round(double value, tg_dtype dtype)
{
    return dtype == TG_F32 ? (float)value : tg_f32_from_bf16(tg_bf16_from_f32((float)value));
}

/* Parameter gradients: adds to or overwrites one fp32 element. */
static inline void tg_element_sum(float *gradient, double value, int accumulate)
{
    *gradient = (float)(accumulate ? *gradient + value : value);
}

#endif
