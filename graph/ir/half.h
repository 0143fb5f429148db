/* graph/ir/half.h: single numbers of the floats of 16 bits, f16 and bf16, for constants that passes and
 * liftings read and make. */
#ifndef ORTC_HALF_H
#define ORTC_HALF_H

#include <math.h>
#include <string.h>

#include "ortc/types.h"

static inline double ortc_half_decode(uint16_t code, ortc_dtype t)
{
    const int mantissa_bits = t == ORTC_F16 ? 10 : 7, bias = t == ORTC_F16 ? 15 : 127;
    const int exponent = (code & 0x7fff) >> mantissa_bits, top = (1 << (15 - mantissa_bits)) - 1;
    const double mantissa = code & ((1 << mantissa_bits) - 1), whole = 1 << mantissa_bits;
    const double magnitude = exponent == top ? (mantissa != 0 ? (double)NAN : (double)INFINITY)
                             : exponent == 0 ? ldexp(mantissa / whole, 1 - bias)
                                             : ldexp(1 + mantissa / whole, exponent - bias);
    return code & 0x8000 ? -magnitude : magnitude;
}

/* The nearest; what is finite and too large becomes the largest. */
static inline uint16_t ortc_half_encode(double v, ortc_dtype t)
{
    const double magnitude = fabs(v);
    const int bits = t == ORTC_F16 ? 10 : 7, bias = t == ORTC_F16 ? 15 : 127;
    const uint32_t infinite = ((2U << (15 - bits)) / 2 - 1) << bits, whole = UINT32_C(1) << bits;
    int exponent;
    uint32_t code = infinite;
    if (isfinite(v)) {
        frexp(magnitude, &exponent); /* magnitude < 2^exponent */
        exponent = magnitude == 0 || exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
        if (exponent <= bias) /* a mantissa that rounds up carries into the exponent */
            code = ((uint32_t)(exponent + bias - 1) << bits) +
                   (uint32_t)nearbyint(ldexp(magnitude, bits - exponent));
        if (code >= infinite) code = infinite - 1;
    } else if (isnan(v))
        code |= whole / 2;
    return (uint16_t)(code | (signbit(v) ? 0x8000 : 0));
}

/* The same of f16 and f32, quickly, for tensors. */
static inline float ortc_f16_decode(uint16_t code)
{
    uint32_t bits = (uint32_t)(code & 0x7fff) << 13;
    float v;
    memcpy(&v, &bits, sizeof v);
    v *= 0x1p112f; /* denormals, too */
    memcpy(&bits, &v, sizeof bits);
    bits |= ((code & 0x7c00) == 0x7c00 ? 0x7f800000u : 0) | (uint32_t)(code & 0x8000) << 16;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static inline uint16_t ortc_f16_encode(float v)
{
    const float magnitude = fabsf(v), small = magnitude + 0.5f; /* whose last bit is 2^-24 */
    uint32_t bits, low;
    memcpy(&bits, &magnitude, sizeof bits);
    memcpy(&low, &small, sizeof low);
    const uint32_t usual = (bits - 0x38000000u + 0xfff + (bits >> 13 & 1)) >> 13,
                   large = bits > 0x7f800000u    ? 0x7e00
                           : bits == 0x7f800000u ? 0x7c00
                                                 : 0x7bff;
    const uint32_t code = bits < 0x38800000u ? low - 0x3f000000u : bits >= 0x477ff000u ? large : usual;
    return (uint16_t)(code | (signbit(v) ? 0x8000 : 0));
}

/* The same of an f32 as bf16, quickly, for tensors; a NaN keeps what it can. Without branches: compilers make
 * vectors of it. */
static inline uint16_t ortc_bf16_encode(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    const uint32_t magnitude = bits & 0x7fffffff, largest = (bits & 0x80000000) | 0x7f7f0000;
    uint32_t code = bits + 0x7fff + (bits >> 16 & 1);
    code = magnitude > 0x7f7f0000 ? largest : code;
    code = magnitude >= 0x7f800000 ? bits : code;
    code = magnitude > 0x7f800000 ? bits | 0x400000 : code;
    return (uint16_t)(code >> 16);
}

#endif
