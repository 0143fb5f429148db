/* The bodies of MaxPool on bytes (bytes.h): plain loops, which compilers make vectors of. */
#include "kernels/common/vector/vec.h"
#include "kernels/pool/bytes.h"

#define BODIES(T, type) \
    static inline void rows_##T(size_t n, const type *x, type *restrict line) \
    { \
        for (size_t i = 0; i < n; i++) line[i] = x[i] > line[i] ? x[i] : line[i]; \
    } \
    static inline void across_##T(size_t n, size_t step, const type *x, type *restrict y) \
    { \
        if (step == 1) \
            for (size_t i = 0; i < n; i++) y[i] = x[i] > y[i] ? x[i] : y[i]; \
        else if (step == 2) \
            for (size_t i = 0; i < n; i++) y[i] = x[2 * i] > y[i] ? x[2 * i] : y[i]; \
        else \
            for (size_t i = 0; i < n; i++) y[i] = x[step * i] > y[i] ? x[step * i] : y[i]; \
    }
BODIES(i8, int8_t)
BODIES(u8, uint8_t)

/* Of a block of channels, on registers of its size. */
#define BLOCKS(T, type) \
    typedef type T##x16 __attribute__((vector_size(16))); \
    static inline void blocks_##T(size_t n, size_t taps, const ortc_window_tap *tap, uint8_t *y, \
                                  ptrdiff_t y_step) \
    { \
        for (size_t i = 0; i < n; i++, y += y_step) { \
            T##x16 most, v; \
            memcpy(&most, tap->x + (ptrdiff_t)i * tap->step, sizeof most); \
            for (size_t t = 1; t < taps; t++) { \
                memcpy(&v, tap[t].x + (ptrdiff_t)i * tap[t].step, sizeof v); \
                const T##x16 more = (T##x16)(v > most); \
                most = (v & more) | (most & ~more); \
            } \
            memcpy(y, &most, sizeof most); \
        } \
    }

/* C has no choice between vectors by a mask, but for bits. */
BLOCKS(i8, int8_t)
BLOCKS(u8, uint8_t)

static void rows(size_t n, const uint8_t *x, int is_signed, uint8_t *line)
{
    if (is_signed)
        rows_i8(n, (const int8_t *)x, (int8_t *)line);
    else
        rows_u8(n, x, line);
}

static void across(size_t n, size_t kernel, size_t dilation, size_t stride, const uint8_t *line,
                   int is_signed, uint8_t *y)
{
    for (size_t i = 0; i < n; i++) y[i] = is_signed ? 0x80 : 0;
    for (size_t k = 0; k < kernel; k++, line += dilation)
        if (is_signed)
            across_i8(n, stride, (const int8_t *)line, (int8_t *)y);
        else
            across_u8(n, stride, line, y);
}

static void blocks(size_t n, size_t taps, const ortc_window_tap *tap, int is_signed, uint8_t *y,
                   ptrdiff_t y_step)
{
    (is_signed ? blocks_i8 : blocks_u8)(n, taps, tap, y, y_step);
}

const ortc_pool_bytes V_NAME(ortc_pool_bytes) = {rows, across, blocks};
