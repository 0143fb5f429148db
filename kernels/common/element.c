/* What element.h has of elements by any type. */
#include "kernels/common/element.h"

#include <math.h>

/* ---- f16 and bf16, quickly ----------------------------------------------------------------------------- */

static float f32_of_bits(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static uint32_t bits_of_f32(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static double half_of(const void *data, ortc_dtype t, int64_t i)
{
    uint16_t code;
    memcpy(&code, (const char *)data + 2 * i, sizeof code);
    if (t == ORTC_BF16) return (double)f32_of_bits((uint32_t)code << 16);
    const uint32_t magnitude = bits_of_f32(f32_of_bits((uint32_t)(code & 0x7fff) << 13) * 0x1p112f),
                   beyond = (code & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
    return (double)f32_of_bits(magnitude | beyond | (uint32_t)(code & 0x8000) << 16);
}

/* Of a number. */
static uint16_t half_code(double v, ortc_dtype t)
{
    const uint32_t bits = bits_of_f32(ortc_rounded_to_odd(v)), magnitude = bits & 0x7fffffff,
                   sign = bits >> 16 & 0x8000;
    if (t == ORTC_BF16) return (uint16_t)((magnitude + 0x7fff + (magnitude >> 16 & 1)) >> 16 | sign);
    if (magnitude >= 0x477ff000) return (uint16_t)(0x7c00 | sign);
    if (magnitude < 0x38800000) /* denormal: the last bit of 0.5 + it is 2^-24 */
        return (uint16_t)((bits_of_f32(f32_of_bits(magnitude) + 0.5f) - 0x3f000000) | sign);
    return (uint16_t)((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13 | sign);
}

/* ---- Any type ------------------------------------------------------------------------------------------ */

double ortc_load_any_f64(const void *data, ortc_dtype t, int64_t i)
{
    const ortc_float_format *f;
    switch (t) {
#define ORTC_LOADED(v) (double)(v)
        ORTC_NATIVE_FLOATS(ORTC_LOAD)
        ORTC_LOAD(ORTC_U64, uint64_t)
#undef ORTC_LOADED
    case ORTC_F16:
    case ORTC_BF16: return half_of(data, t, i);
    case ORTC_F8E8M0: return ortc_e8m0_decode(((const uint8_t *)data)[i]);
    default:
        f = ortc_float_format_of(t);
        return f ? ortc_float_decode(f, ortc_load_bits(data, ortc_dtype_bits(t), i))
                 : (double)ortc_load_any_i64(data, t, i);
    }
}

void ortc_store_any_float(void *data, ortc_dtype t, int64_t i, double v)
{
    const ortc_float_format *f;
    switch (t) {
        ORTC_NATIVE_FLOATS(ORTC_STORE)
    case ORTC_F8E8M0: ((uint8_t *)data)[i] = (uint8_t)ortc_e8m0_encode(v, ORTC_E8M0_NEAREST, true); break;
    case ORTC_F16:
    case ORTC_BF16:
        if (!isnan(v)) {
            const uint16_t code = half_code(v, t);
            memcpy((char *)data + 2 * i, &code, sizeof code);
            break;
        }
        /* fall through */
    default:
        f = ortc_float_format_of(t);
        if (f) ortc_store_bits(data, ortc_dtype_bits(t), i, ortc_float_encode(f, v, false));
    }
}
