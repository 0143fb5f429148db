/* What element.h has of elements by any type. */
#include "kernels/common/element.h"

double ortc_load_any_f64(const void *data, ortc_dtype t, int64_t i)
{
    const ortc_float_format *f;
    switch (t) {
#define ORTC_LOADED(v) (double)(v)
        ORTC_NATIVE_FLOATS(ORTC_LOAD)
        ORTC_LOAD(ORTC_U64, uint64_t)
#undef ORTC_LOADED
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
    default:
        f = ortc_float_format_of(t);
        if (f) ortc_store_bits(data, ortc_dtype_bits(t), i, ortc_float_encode(f, v, false));
    }
}
