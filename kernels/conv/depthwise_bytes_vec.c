/* One tap of a depthwise convolution of bytes over a row (depthwise_bytes.h). */
#include "depthwise_bytes.h"

#include "kernels/common/vector/vec.h"

static void tap(size_t count, const uint8_t *x, int is_signed, size_t stride, int32_t x_zero, int32_t w,
                int32_t *sums)
{
    const vi32 zero = v_set_i32(x_zero), factor = v_set_i32(w), byte = v_set_i32(0xff);
    if (stride == 1) {
        V_FOR(i, n, count, {
            const vi32 v = is_signed ? v_load_i8((const int8_t *)x + i, n) : v_load_u8(x + i, n);
            v_store_i32(sums + i, v_load_i32(sums + i, n) + (v - zero) * factor, n);
        });
        return;
    }
    size_t done = 0;
    if (stride == 2 && count > 1) { /* pairs; that of the last may not be there */
        done = count - 1;
        V_FOR(i, n, done, {
            vi32 v = v_load_u16((const uint16_t *)(const void *)(x + 2 * i), n);
            v = is_signed ? (vi32)((vu32)v << 24) >> 24 : v & byte;
            v_store_i32(sums + i, v_load_i32(sums + i, n) + (v - zero) * factor, n);
        });
    }
    for (size_t i = done; i < count; i++)
        sums[i] += ((is_signed ? (int32_t)(int8_t)x[i * stride] : (int32_t)x[i * stride]) - x_zero) * w;
}

const ortc_depthwise_bytes_body V_NAME(ortc_depthwise_bytes_body) = {tap};
