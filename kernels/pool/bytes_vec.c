/* The bodies of MaxPool and of means on bytes (bytes.h): plain loops, which compilers make vectors of. */
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
typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef int8_t i8x16 __attribute__((vector_size(16)));
#if defined(__SSE4_1__)
static inline u8x16 larger_u8(u8x16 a, u8x16 b) { return (u8x16)_mm_max_epu8((__m128i)a, (__m128i)b); }
static inline i8x16 larger_i8(i8x16 a, i8x16 b) { return (i8x16)_mm_max_epi8((__m128i)a, (__m128i)b); }
#else /* C has no choice between vectors by a mask, but for bits. */
#define LARGER(T) \
    static inline T##x16 larger_##T(T##x16 a, T##x16 b) \
    { \
        const T##x16 more = (T##x16)(a > b); \
        return (a & more) | (b & ~more); \
    }
LARGER(i8)
LARGER(u8)
#endif

#define BLOCKS(T, type) \
    static inline void blocks_##T(size_t n, size_t taps, const ortc_window_tap *tap, uint8_t *y, \
                                  ptrdiff_t y_step) \
    { \
        for (size_t i = 0; i < n; i++, y += y_step) { \
            T##x16 most, v; \
            memcpy(&most, tap->x + (ptrdiff_t)i * tap->step, sizeof most); \
            for (size_t t = 1; t < taps; t++) { \
                memcpy(&v, tap[t].x + (ptrdiff_t)i * tap[t].step, sizeof v); \
                most = larger_##T(most, v); \
            } \
            memcpy(y, &most, sizeof most); \
        } \
    } \
    /* The same of pixels beside each other, three taps at a time. */ \
    static inline void beside_##T(size_t n, size_t taps, const ortc_window_tap *tap, type *restrict y) \
    { \
        for (size_t t = 0; t < taps; t += 3) { \
            const type *a = (const type *)tap[t].x, *b = (const type *)tap[t + 1 < taps ? t + 1 : t].x, \
                       *c = (const type *)tap[t + 2 < taps ? t + 2 : t].x; \
            for (size_t i = 0; t == 0 && i < n; i++) { \
                const type m = a[i] > b[i] ? a[i] : b[i]; \
                y[i] = m > c[i] ? m : c[i]; \
            } \
            for (size_t i = 0; t > 0 && i < n; i++) { \
                const type m = a[i] > b[i] ? a[i] : b[i], o = m > c[i] ? m : c[i]; \
                y[i] = o > y[i] ? o : y[i]; \
            } \
        } \
    }
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
    /* Taps whose pixels lie side by side; those beside the image, the lowest number, can be left out. */
    enum { MOST = 64 };
    ortc_window_tap seen[MOST];
    size_t some = 0, beside = 0;
    for (size_t t = 0; t < taps && taps <= MOST; t++) {
        beside += tap[t].step == 0;
        if (tap[t].step == 16) seen[some++] = tap[t];
    }
    if (n < 2 || some == 0 || some + beside < taps || y_step != 16)
        (is_signed ? blocks_i8 : blocks_u8)(n, taps, tap, y, y_step);
    else if (is_signed)
        beside_i8(n * 16, some, seen, (int8_t *)y);
    else
        beside_u8(n * 16, some, seen, y);
}

typedef int16_t i16x16 __attribute__((vector_size(32)));
#define SUMS(T) \
    static inline void sums_##T(size_t n, const uint8_t *x, int64_t *sums) \
    { \
        enum { AT_ONCE = 4, TIMES = 128 }; /* so often 255 fits into 16 bits */ \
        for (size_t some; n; n -= some, x += some * 16) { \
            some = n < AT_ONCE * TIMES ? n : AT_ONCE * TIMES; \
            i16x16 each[AT_ONCE] = {{0}}; \
            T##x16 v; \
            size_t i = 0; \
            for (; i + AT_ONCE <= some; i += AT_ONCE) \
                for (int k = 0; k < AT_ONCE; k++) { \
                    memcpy(&v, x + (i + (size_t)k) * 16, sizeof v); \
                    each[k] += __builtin_convertvector(v, i16x16); \
                } \
            for (int k = 0; i < some; i++, k++) { \
                memcpy(&v, x + i * 16, sizeof v); \
                each[k] += __builtin_convertvector(v, i16x16); \
            } \
            for (int k = 0; k < AT_ONCE; k++) \
                for (int c = 0; c < 16; c++) sums[c] += each[k][c]; \
        } \
    }
SUMS(i8)
SUMS(u8)

static void sums(size_t n, const uint8_t *x, int is_signed, int64_t *to)
{
    (is_signed ? sums_i8 : sums_u8)(n, x, to);
}

const ortc_pool_bytes V_NAME(ortc_pool_bytes) = {rows, across, blocks, sums};
