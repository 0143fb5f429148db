/* The bodies of lines.h. Elements that are read for a register's worth of results mostly lie within a
 * register of the line, too, where it becomes longer: they are picked from that, else gathered. */
#include "kernels/resize/lines.h"

#include "kernels/common/blocks.h"
#include "kernels/common/vector/vec.h"

static void down(size_t count, size_t rows, const void *const *row, const double *weight, int first, void *to)
{
    float *y = to;
    const float *a = row[0], *b = row[rows > 1];
    if (first && rows == 2) { /* of most */
        const vf32 wa = v_set_f32((float)weight[0]), wb = v_set_f32((float)weight[1]);
        V_FOR(i, n, count,
              v_store_f32(y + i, v_fma(wb, v_load_f32(b + i, n), v_mul(wa, v_load_f32(a + i, n))), n););
        return;
    }
    V_FOR(i, n, count, {
        vf32 sum = first ? v_set_f32(0) : v_load_f32(y + i, n);
        for (size_t r = 0; r < rows; r++)
            sum = v_fma(v_set_f32((float)weight[r]), v_load_f32((const float *)row[r] + i, n), sum);
        v_store_f32(y + i, sum, n);
    });
}

/* Whether what a register of indices, rising, names is within one of the line from the first on. */
VFN int are_near(const int32_t *first, const int32_t *last, size_t n)
{
    return (uint32_t)(last[(n < v_lanes() ? n : v_lanes()) - 1] - *first) < v_lanes();
}

static void across(size_t count, size_t taps, const float *line, size_t length, const int32_t *index,
                   const float *weight, float *y)
{
    const vf32 nothing = v_set_f32(0);
    V_FOR(i, n, count, {
        vf32 sum = nothing;
        const int32_t base = index[i];
        if (are_near(index + i, index + (taps - 1) * count + i, n)) {
            const vf32 some = v_load_f32(line + base, length - (size_t)base);
            for (size_t k = 0; k < taps; k++) {
                const vf32 w = v_load_f32(weight + k * count + i, n);
                const vi32 at = v_sub(v_load_i32(index + k * count + i, n), v_set_i32(base));
                sum = v_sel(v_eq(w, nothing), sum, v_fma(w, v_pick_f32(some, v_keep_i32(at, n, 0)), sum));
            }
        } else {
            for (size_t k = 0; k < taps; k++) {
                const vf32 w = v_load_f32(weight + k * count + i, n);
                const vf32 x = v_gather_f32(line, v_load_i32(index + k * count + i, n), n);
                sum = v_sel(v_eq(w, nothing), sum, v_fma(w, x, sum));
            }
        }
        v_store_f32(y + i, sum, n);
    });
}

#define PICK(T, type) \
    static void pick_##T(size_t count, const void *from, size_t length, const int32_t *index, void *to) \
    { \
        const type *line = from; \
        type *y = to; \
        V_FOR(i, n, count, { \
            const int32_t base = index[i]; \
            if (are_near(index + i, index + i, n)) { \
                const vi32 at = v_sub(v_load_i32(index + i, n), v_set_i32(base)); \
                const vi32 some = v_load_##T(line + base, length - (size_t)base); \
                v_store_##T(y + i, v_pick_i32(some, v_keep_i32(at, n, 0)), n); \
            } else { \
                for (size_t k = i; k < i + n && k < count; k++) y[k] = line[index[k]]; \
            } \
        }); \
    }
PICK(u8, uint8_t)
PICK(u16, uint16_t)
PICK(i32, int32_t)

/* Both as one element of twice the size; of few by 16 bytes, for which compilers make no loop. */
#define LOW_1(a) __builtin_shufflevector(a, a, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7)
#define HIGH_1(a) __builtin_shufflevector(a, a, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15)
#define LOW_2(a) __builtin_shufflevector(a, a, 0, 0, 1, 1, 2, 2, 3, 3)
#define HIGH_2(a) __builtin_shufflevector(a, a, 4, 4, 5, 5, 6, 6, 7, 7)
#define LOW_4(a) __builtin_shufflevector(a, a, 0, 0, 1, 1)
#define HIGH_4(a) __builtin_shufflevector(a, a, 2, 2, 3, 3)
#define TWICE(size, type, wider) \
    static void twice_##type(size_t count, const void *from, void *to) \
    { \
        typedef type vec __attribute__((vector_size(16))); \
        const type *x = from; \
        type *y = to; \
        if (count >= 64) { \
            for (size_t i = 0; i < count; i++) { \
                const wider both = (wider)((wider)x[i] << (8 * size) | x[i]); \
                memcpy(y + 2 * i, &both, sizeof both); \
            } \
            return; \
        } \
        size_t i = 0; \
        for (; i + 16 / size <= count; i += 16 / size) { \
            vec v, low, high; \
            memcpy(&v, x + i, 16); \
            low = LOW_##size(v), high = HIGH_##size(v); \
            memcpy(y + 2 * i, &low, 16); \
            memcpy(y + 2 * i + 16 / size, &high, 16); \
        } \
        for (; i < count; i++) y[2 * i] = y[2 * i + 1] = x[i]; \
    }
TWICE(1, uint8_t, uint16_t)
TWICE(2, uint16_t, uint32_t)
TWICE(4, uint32_t, uint64_t)

/* ---- In double: plain loops, of which compilers make what they can ------------------------------------- */

static void down_wide(size_t count, size_t rows, const void *const *row, const double *weight, int first,
                      void *to)
{
    double *y = to;
    for (size_t r = 0; r < rows; r++) {
        const double *x = row[r], w = weight[r];
        if (first && r == 0)
            for (size_t i = 0; i < count; i++) y[i] = w * x[i];
        else
            for (size_t i = 0; i < count; i++) y[i] += w * x[i];
    }
}

static void across_wide(size_t count, size_t taps, const double *line, const int32_t *index,
                        const double *weight, double *y)
{
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (size_t k = i; k < taps * count; k += count) {
            const double v = weight[k] * line[index[k]];
            sum += weight[k] != 0 ? v : 0;
        }
        y[i] = sum;
    }
}

/* Halves to even: what is below 2^32 has no bits behind the point when 1.5 * 2^52 is added. */
#define WIDEN(t, type) \
    static void widen_##t(size_t count, const void *from, double *y) \
    { \
        const type *x = from; \
        for (size_t i = 0; i < count; i++) y[i] = (double)x[i]; \
    }
#define NARROW(t, type, lowest, highest) \
    static void narrow_##t(size_t count, const double *x, void *to) \
    { \
        type *y = to; \
        for (size_t i = 0; i < count; i++) { \
            const double v = x[i] > (lowest) ? x[i] : (lowest), w = v < (highest) ? v : (highest); \
            y[i] = (type)(w + 0x1.8p52 - 0x1.8p52); \
        } \
    }
ORTC_RESIZE_WIDE(WIDEN)
NARROW(I8, int8_t, -128.0, 127.0)
NARROW(U8, uint8_t, 0.0, 255.0)
NARROW(I16, int16_t, -32768.0, 32767.0)
NARROW(U16, uint16_t, 0.0, 65535.0)
NARROW(I32, int32_t, -0x1p31, 0x1p31 - 1)
NARROW(U32, uint32_t, 0.0, 0x1p32 - 1)
static void narrow_F64(size_t count, const double *x, void *to) { memcpy(to, x, count * sizeof *x); }

/* ---- Blocks -------------------------------------------------------------------------------------------- */

#define BLOCKS(T, type) \
    static void blocks_##T(size_t count, size_t rows, const void *const *row, const float *row_weight, \
                           size_t taps, const int32_t *index, const float *weight, void *to) \
    { \
        type *y = to; \
        for (size_t i = 0; i < count; i++, y += ORTC_BLOCK) \
            for (size_t c = 0; c < ORTC_BLOCK; c += v_lanes()) { \
                const size_t n = ORTC_BLOCK - c; \
                vf32 sum = v_set_f32(0); \
                for (size_t r = 0; r < rows; r++) \
                    for (size_t k = 0; k < taps; k++) { \
                        const float w = row_weight[r] * weight[k * count + i]; \
                        const type *x = (const type *)row[r] + (size_t)index[k * count + i] * ORTC_BLOCK; \
                        if (weight[k * count + i] == 0) continue; \
                        sum = v_fma(v_set_f32(w), v_load_##T(x + c, n), sum); \
                    } \
                v_store_##T(y + c, sum, n); \
            } \
    }
BLOCKS(f32, float)
BLOCKS(f16, uint16_t)
BLOCKS(bf16, uint16_t)

#define WIDEN_OF(t, type) widen_##t,
#define NARROW_OF(t, type) narrow_##t,
const ortc_resize_lines V_NAME(ortc_resize_lines) = {down,
                                                     down_wide,
                                                     across,
                                                     across_wide,
                                                     {ORTC_RESIZE_WIDE(WIDEN_OF)},
                                                     {ORTC_RESIZE_WIDE(NARROW_OF)},
                                                     {pick_u8, pick_u16, pick_i32},
                                                     {twice_uint8_t, twice_uint16_t, twice_uint32_t},
                                                     {blocks_f32, blocks_f16, blocks_bf16}};
