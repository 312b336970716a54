#include "tensor/dtype.h"

static const struct {
    const char *name;
    unsigned char bytes;
} info[TG_DTYPE_COUNT] = {
    [TG_F32] = {"F32", 4},          [TG_BF16] = {"BF16", 2},        [TG_F16] = {"F16", 2},
    [TG_F64] = {"F64", 8},          [TG_I64] = {"I64", 8},          [TG_I32] = {"I32", 4},
    [TG_I16] = {"I16", 2},          [TG_I8] = {"I8", 1},            [TG_U8] = {"U8", 1},
    [TG_BOOL] = {"BOOL", 1},        [TG_F8_E4M3] = {"F8_E4M3", 1},  [TG_F8_E5M2] = {"F8_E5M2", 1},
};

size_t tg_dtype_bytes(tg_dtype dtype)
{
    return info[dtype].bytes;
}

const char *tg_dtype_name(tg_dtype dtype)
{
    return info[dtype].name;
}

tg_dtype tg_dtype_from_name(const char *name)
{
    for (int i = 0; i < TG_DTYPE_COUNT; i++)
        if (strcmp(info[i].name, name) == 0)
            return (tg_dtype)i;
    return TG_DTYPE_COUNT;
}

float tg_f32_from_f16(uint16_t value)
{
    uint32_t sign = (uint32_t)(value & 0x8000u) << 16;
    uint32_t exponent = (value >> 10) & 0x1Fu;
    uint32_t mantissa = value & 0x3FFu;
    uint32_t bits;
    if (exponent == 31) {
        bits = sign | 0x7F800000u | (mantissa << 13);
    } else if (exponent) {
        bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
    } else if (mantissa) { /* subnormal: shift until the leading one is implicit */
        int shift = 0;
        while (!(mantissa & 0x400u)) {
            mantissa <<= 1;
            shift++;
        }
        bits = sign | ((uint32_t)(113 - shift) << 23) | ((mantissa & 0x3FFu) << 13);
    } else {
        bits = sign;
    }
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

uint16_t tg_f16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    uint16_t sign = (uint16_t)((bits >> 16) & 0x8000u);
    uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u)
        return (uint16_t)(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
    if (magnitude >= 0x47800000u) /* 65536 and above */
        return (uint16_t)(sign | 0x7C00u);
    if (magnitude < 0x33000000u) /* below half the smallest subnormal */
        return sign;
    int exponent = (int)(magnitude >> 23) - 127;
    uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    int drop = exponent < -14 ? 13 + (-14 - exponent) : 13;
    uint32_t kept = mantissa >> drop;
    uint32_t rest = mantissa & ((1u << drop) - 1);
    uint32_t half = 1u << (drop - 1);
    if (rest > half || (rest == half && (kept & 1)))
        kept++;
    /* for normals the implicit bit carries into the exponent field by addition */
    uint32_t out = exponent < -14 ? kept : kept + ((uint32_t)(exponent + 14) << 10);
    return (uint16_t)(sign | out);
}
