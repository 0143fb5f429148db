/* kernels/common/floats.h: the small float formats, to and from double.
 *
 * Every format but E8M0 is described by one ortc_float_format and converted by the same two functions.
 * Decoding is exact; encoding rounds once, to nearest even, from the double. E8M0 (a power of two, no sign,
 * no zero) has its own pair. f32 and f64 are not here: the compiler knows them.
 */
#ifndef ORTC_KERNELS_FLOATS_H
#define ORTC_KERNELS_FLOATS_H

#include <stdbool.h>
#include <string.h>

#include "ortc/types.h"

/* what the codes above `max` mean */
enum {
    ORTC_FLOAT_IEEE = 0,   /* max + 1 is infinity, NaN beyond */
    ORTC_FLOAT_NAN = 1,    /* NaN; there is no infinity */
    ORTC_FLOAT_FNUZ = 2,   /* there are none; the code of -0 is NaN, and zero has no sign */
    ORTC_FLOAT_FINITE = 3, /* there are none: neither NaN nor infinity */
};

typedef struct ortc_float_format {
    uint8_t exponent_bits, mantissa_bits;
    uint8_t specials; /* ORTC_FLOAT_* */
    uint8_t bias;
    uint16_t max; /* code of the largest finite magnitude */
    uint16_t nan; /* code of NaN */
} ortc_float_format;

/* NULL: not one of these formats. */
static inline const ortc_float_format *ortc_float_format_of(ortc_dtype t)
{
    static const ortc_float_format f16 = {5, 10, ORTC_FLOAT_IEEE, 15, 0x7bff, 0x7e00};
    static const ortc_float_format bf16 = {8, 7, ORTC_FLOAT_IEEE, 127, 0x7f7f, 0x7fc0};
    static const ortc_float_format e4m3fn = {4, 3, ORTC_FLOAT_NAN, 7, 0x7e, 0x7f};
    static const ortc_float_format e4m3fnuz = {4, 3, ORTC_FLOAT_FNUZ, 8, 0x7f, 0x80};
    static const ortc_float_format e5m2 = {5, 2, ORTC_FLOAT_IEEE, 15, 0x7b, 0x7f};
    static const ortc_float_format e5m2fnuz = {5, 2, ORTC_FLOAT_FNUZ, 16, 0x7f, 0x80};
    static const ortc_float_format e2m1 = {2, 1, ORTC_FLOAT_FINITE, 1, 0x7, 0};
    static const ortc_float_format e2m3 = {2, 3, ORTC_FLOAT_FINITE, 1, 0x1f, 0};
    static const ortc_float_format e3m2 = {3, 2, ORTC_FLOAT_FINITE, 3, 0x1f, 0};
    switch (t) {
    case ORTC_F16: return &f16;
    case ORTC_BF16: return &bf16;
    case ORTC_F8E4M3FN: return &e4m3fn;
    case ORTC_F8E4M3FNUZ: return &e4m3fnuz;
    case ORTC_F8E5M2: return &e5m2;
    case ORTC_F8E5M2FNUZ: return &e5m2fnuz;
    case ORTC_F4E2M1: return &e2m1;
    case ORTC_F6E2M3: return &e2m3;
    case ORTC_F6E3M2: return &e3m2;
    default: return NULL;
    }
}

static inline double ortc_double_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline uint64_t ortc_bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double ortc_float_decode(const ortc_float_format *f, uint32_t code)
{
    const uint32_t m = f->mantissa_bits, sign_bit = UINT32_C(1) << (m + f->exponent_bits);
    const uint32_t magnitude = code & (sign_bit - 1), exponent = magnitude >> m;
    const uint64_t sign = code & sign_bit ? UINT64_C(1) << 63 : 0,
                   mantissa = magnitude & ((UINT32_C(1) << m) - 1);
    if (f->specials == ORTC_FLOAT_FNUZ && code == f->nan)
        return ortc_double_of_bits(UINT64_C(0x7ff8000000000000));
    if (magnitude > f->max) {
        bool infinite = f->specials == ORTC_FLOAT_IEEE && magnitude == f->max + UINT32_C(1);
        return ortc_double_of_bits(sign |
                                   (infinite ? UINT64_C(0x7ff0000000000000) : UINT64_C(0x7ff8000000000000)));
    }
    if (exponent == 0) { /* mantissa * 2^(1 - bias - m): both factors and the product are exact */
        double scale = ortc_double_of_bits((uint64_t)(1023 + 1 - f->bias - (int32_t)m) << 52);
        return sign ? -((double)mantissa * scale) : (double)mantissa * scale;
    }
    return ortc_double_of_bits(sign | (uint64_t)(exponent + 1023 - f->bias) << 52 | mantissa << (52 - m));
}

/* What is too large becomes the largest finite number where `saturate`, infinity included; else infinity, or
 * NaN in formats without one. FINITE formats always clamp. */
static inline uint32_t ortc_float_encode(const ortc_float_format *f, double x, bool saturate)
{
    const int32_t m = f->mantissa_bits;
    const uint32_t sign_bit = UINT32_C(1) << (m + f->exponent_bits);
    const uint64_t bits = ortc_bits_of_double(x), fraction = bits & ((UINT64_C(1) << 52) - 1);
    const uint32_t sign = bits >> 63 ? sign_bit : 0;
    const int32_t biased = (int32_t)(bits >> 52 & 0x7ff);
    if (biased == 0x7ff && fraction != 0) {
        if (f->specials == ORTC_FLOAT_FINITE) /* a zero of the other sign, as the standard's suite has it */
            return sign ^ sign_bit;
        return f->specials == ORTC_FLOAT_FNUZ ? f->nan : sign | f->nan;
    }
    uint32_t code;
    if (biased == 0x7ff) {
        code = UINT32_MAX;
    } else if (biased == 0) {
        code = 0; /* zero and double's own subnormals, far below every format */
    } else {
        const int32_t exponent = biased - 1023, lowest = 1 - f->bias;
        int32_t shift = 52 - m + (exponent < lowest ? lowest - exponent : 0);
        if (shift > 54) shift = 54; /* rounds to zero all the same */
        const uint64_t significand = UINT64_C(1) << 52 | fraction, half = UINT64_C(1) << (shift - 1);
        const uint64_t rest = significand & ((UINT64_C(1) << shift) - 1);
        uint64_t q = significand >> shift;
        q += rest > half || (rest == half && (q & 1));
        /* a carry out of the mantissa runs into the exponent, which is what it should do */
        const uint64_t whole = exponent < lowest ? q : ((uint64_t)(exponent - lowest) << m) + q;
        code = whole > f->max ? UINT32_MAX : (uint32_t)whole;
    }
    if (code == UINT32_MAX) {
        if (saturate || f->specials == ORTC_FLOAT_FINITE)
            code = f->max;
        else if (f->specials == ORTC_FLOAT_IEEE)
            code = f->max + UINT32_C(1);
        else
            return f->specials == ORTC_FLOAT_FNUZ ? f->nan : sign | f->nan;
    }
    return f->specials == ORTC_FLOAT_FNUZ && code == 0 ? 0 : sign | code;
}

static inline double ortc_e8m0_decode(uint32_t code)
{
    if (code == 0xff) return ortc_double_of_bits(UINT64_C(0x7ff8000000000000));
    return ortc_double_of_bits((uint64_t)(code + 1023 - 127) << 52);
}

enum { ORTC_E8M0_NEAREST = 0, ORTC_E8M0_UP = 1, ORTC_E8M0_DOWN = 2 };

/* The exponent of the float nearest to |x|, as Cast-24 says: infinity and NaN give NaN, zero the smallest
 * power. */
static inline uint32_t ortc_e8m0_encode(double x, int round_mode, bool saturate)
{
    const float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    const uint32_t exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
    if (exponent == 0xff) return 0xff;
    bool up = false;
    if (round_mode == ORTC_E8M0_UP)
        up = fraction != 0;
    else if (round_mode == ORTC_E8M0_NEAREST) /* halfway goes up, but for zero's neighbour */
        up = fraction > 0x400000 || (fraction == 0x400000 && exponent > 0);
    if (saturate && exponent == 0xfe) up = false;
    return exponent + up;
}

#endif
