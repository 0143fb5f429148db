/* One tap of a depthwise convolution of bytes over a row, and channels that are mixed (depthwise_bytes.h). */
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

/* Signed bytes as unsigned ones that are larger by 128. */
VFN void mixed(const size_t ins, size_t count, size_t filters, const uint8_t *x, size_t area, vi32 flip,
               int32_t zero, int32_t w[][ORTC_MIXED], int32_t *sums, size_t ld)
{
    vi32 start[ORTC_MIXED];
    for (size_t f = 0; f < filters; f++) {
        int32_t sum = 0;
        for (size_t c = 0; c < ins; c++) sum += w[f][c];
        start[f] = v_set_i32(-zero * sum);
    }
    V_FOR(i, n, count, {
        vi32 v[ORTC_MIXED];
        for (size_t c = 0; c < ins; c++) v[c] = v_load_u8(x + c * area + i, n) ^ flip;
        for (size_t f = 0; f < filters; f++) {
            vi32 sum = start[f];
            for (size_t c = 0; c < ins; c++) sum += v[c] * v_set_i32(w[f][c]);
            v_store_i32(sums + f * ld + i, sum, n);
        }
    });
}

static void mix(size_t count, size_t ins, size_t filters, const uint8_t *x, size_t area, int is_signed,
                int32_t x_zero, int32_t w[][ORTC_MIXED], int32_t *sums, size_t ld)
{
    const vi32 flip = v_set_i32(is_signed ? 0x80 : 0);
    const int32_t zero = x_zero + (is_signed ? 0x80 : 0);
#define OF(k) \
    case k: mixed(k, count, filters, x, area, flip, zero, w, sums, ld); break;
    switch (ins) {
        OF(2)
        OF(3)
        OF(4)
        OF(5)
        OF(6)
        OF(7)
        OF(8)
    }
#undef OF
}

const ortc_depthwise_bytes_body V_NAME(ortc_depthwise_bytes_body) = {tap, mix};
