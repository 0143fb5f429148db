/* A tile of sums of products (sums.h), a body for every instruction set. */
#include "kernels/gemm/sums.h"

#include "kernels/common/vector/vec.h"

#define EACH_ROW for (int r = 0; r < ORTC_SUMS_ROWS; r++)
#define EACH_VECTOR for (int v = 0; v < ORTC_SUMS_VECTORS; v++)
#define UNROLLED _Pragma("GCC unroll 4")

#define TILE(name, type, reg, set, plus) \
    static void name(size_t k, const void *const *rows, size_t step, const void *panel, void *y) \
    { \
        reg sum[ORTC_SUMS_ROWS][ORTC_SUMS_VECTORS], b[ORTC_SUMS_VECTORS]; \
        const type *x[ORTC_SUMS_ROWS]; \
        const char *p = panel; \
        UNROLLED EACH_ROW x[r] = rows[r]; \
        UNROLLED EACH_ROW UNROLLED EACH_VECTOR sum[r][v] = (reg){0}; \
        for (size_t i = 0; i < k; i++, p += sizeof b) { \
            UNROLLED EACH_VECTOR memcpy(&b[v], p + (size_t)v * sizeof *b, sizeof *b); \
            UNROLLED EACH_ROW \
            { \
                const reg a = set(x[r][i * step]); \
                UNROLLED EACH_VECTOR sum[r][v] = plus(a, b[v], sum[r][v]); \
            } \
        } \
        UNROLLED EACH_ROW UNROLLED EACH_VECTOR memcpy((char *)y + \
                                                          (size_t)(r * ORTC_SUMS_VECTORS + v) * sizeof *b, \
                                                      &sum[r][v], sizeof *b); \
    }

VFN vu32 all_u32(uint32_t x) { return (vu32)v_set_i32((int32_t)x); }
VFN vu32 plus_u32(vu32 a, vu32 b, vu32 c) { return a * b + c; }

TILE(f64, double, vf64, v_set_f64, v_fma_f64)
TILE(u32, uint32_t, vu32, all_u32, plus_u32)

const ortc_sums_body V_NAME(ortc_sums_body) = {4 * V_LANES, f64, u32};
