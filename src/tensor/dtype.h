/* dtype.h - element types, their sizes and their names in safetensors files. */
#ifndef TG_TENSOR_DTYPE_H
#define TG_TENSOR_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum tg_dtype {
    TG_F32,
    TG_BF16,
    TG_F16,
    TG_F64,
    TG_I64,
    TG_I32,
    TG_I16,
    TG_I8,
    TG_U8,
    TG_BOOL,
    TG_F8_E4M3,
    TG_F8_E5M2,
    TG_DTYPE_COUNT
} tg_dtype;

/* Bytes of one element. */
size_t tg_dtype_bytes(tg_dtype dtype);
/* "F32", "BF16", ...; never NULL for a valid dtype. */
const char *tg_dtype_name(tg_dtype dtype);
/* Looks a safetensors name up; returns TG_DTYPE_COUNT when unknown. */
tg_dtype tg_dtype_from_name(const char *name);

/* bf16 is the upper half of a float. Rounds to nearest, ties to even; NaN stays NaN. */
static inline uint16_t tg_bf16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)((bits >> 16) | 0x40u);
    bits += 0x7FFFu + ((bits >> 16) & 1u);
    return (uint16_t)(bits >> 16);
}

static inline float tg_f32_from_bf16(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

/* IEEE half precision, subnormals included; from_f32 rounds to nearest even, overflow gives inf. */
float tg_f32_from_f16(uint16_t value);
uint16_t tg_f16_from_f32(float value);

#endif
