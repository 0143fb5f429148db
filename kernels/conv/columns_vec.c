/* Gathering image rows of bytes (ortc_columns_bytes): runs are short, so they are moved by two overlapping
 * pieces rather than by a call. */
#include <string.h>

#include "columns_uk.h"
#include "kernels/common/vector/vec.h"

static inline __attribute__((always_inline)) void move(uint8_t *to, const uint8_t *from, size_t n)
{
    struct sixteen {
        uint8_t at[16];
    } a, b;
    uint64_t c, d;
    if (n >= 16 && n <= 32) {
        memcpy(&a, from, 16), memcpy(&b, from + n - 16, 16);
        memcpy(to, &a, 16), memcpy(to + n - 16, &b, 16);
    } else if (n >= 8 && n < 16) {
        memcpy(&c, from, 8), memcpy(&d, from + n - 8, 8);
        memcpy(to, &c, 8), memcpy(to + n - 8, &d, 8);
    } else if (n < 8) {
        for (size_t i = 0; i < n; i++) to[i] = from[i];
    } else {
        memcpy(to, from, n);
    }
}

/* Every other byte: the low ones of pairs, but for the last, whose pair may not be there. */
static inline __attribute__((always_inline)) void move_even(uint8_t *to, const uint8_t *from, size_t count)
{
    const vi32 low = v_set_i32(0xff);
    if (count > 1)
        V_FOR(i, n, count - 1, {
            v_store_i8((int8_t *)to + i, v_load_u16((const uint16_t *)(const void *)(from + 2 * i), n) & low,
                       n);
        });
    if (count) to[count - 1] = from[2 * (count - 1)];
}

static void run(size_t rows, uint8_t *dst, size_t dst_step, const uint8_t *src, size_t src_step,
                size_t stride, size_t left, size_t count, size_t right, uint8_t pad)
{
    for (size_t r = 0; r < rows; r++, dst += dst_step, src += src_step) {
        uint8_t *to = dst + left;
        for (size_t i = 0; i < left; i++) dst[i] = pad;
        if (stride == 1)
            move(to, src, count);
        else if (stride == 2)
            move_even(to, src, count);
        else
            for (size_t i = 0; i < count; i++) to[i] = src[i * stride];
        for (size_t i = 0; i < right; i++) to[count + i] = pad;
    }
}

const ortc_columns_bytes V_NAME(ortc_columns_bytes) = {run};
