/* The bodies of ortc_product_vec (product_uk.h): rows to f32 and back, and dot products. */
#include "product_uk.h"

#include "kernels/common/vector/reduce.h"

#define BOTH_WAYS(T, type) \
    static void load_##T(size_t rows, size_t cols, const void *src, size_t ld, float *dst, size_t dst_ld) \
    { \
        const type *s = src; \
        for (size_t r = 0; r < rows; r++, s += ld, dst += dst_ld) \
            V_FOR(i, n, cols, v_store_f32(dst + i, v_load_##T(s + i, n), n);); \
    } \
    static void store_##T(size_t rows, size_t cols, const float *src, size_t ld, void *dst, size_t dst_ld) \
    { \
        type *d = dst; \
        for (size_t r = 0; r < rows; r++, src += ld, d += dst_ld) \
            V_FOR(i, n, cols, v_store_##T(d + i, v_load_f32(src + i, n), n);); \
    }

/* Eight rows share each load of x; 8 sums hide the FMA's latency, and eight streams feed the prefetcher. */
#define EACH(M, ...) \
    M(0, __VA_ARGS__) \
    M(1, __VA_ARGS__) \
    M(2, __VA_ARGS__) \
    M(3, __VA_ARGS__) M(4, __VA_ARGS__) M(5, __VA_ARGS__) M(6, __VA_ARGS__) M(7, __VA_ARGS__)
#define ZERO(j, T) vf32 sum##j = v_set_f32(0);
#define TERM(j, T) sum##j = v_fma(xv, v_load_##T(r + (j)*ldw + i, n), sum##j);
#define FINISH(j, T) y[j] = V_ACROSS(v_sum, sum##j);
#define DOT(T, type) \
    static void dot_##T(size_t nr, size_t k, const float *x, const void *w, size_t ldw, float *y) \
    { \
        const type *r = w; \
        if (nr == ORTC_DOT_ROWS) { \
            EACH(ZERO, T) \
            V_FOR(i, n, k, const vf32 xv = v_load_f32(x + i, n); EACH(TERM, T)); \
            EACH(FINISH, T) \
            return; \
        } \
        for (size_t j = 0; j < nr; j++, r += ldw) { \
            ZERO(0, T) \
            V_FOR(i, n, k, const vf32 xv = v_load_f32(x + i, n); TERM(0, T)); \
            FINISH(0, T) \
            y++; \
        } \
    }
#define OF(T, type) BOTH_WAYS(T, type) DOT(T, type)
OF(f32, float)
OF(f16, uint16_t)
OF(bf16, uint16_t)

const ortc_product_vec V_NAME(ortc_product_vec) = {{load_f32, load_f16, load_bf16},
                                                   {store_f32, store_f16, store_bf16},
                                                   {dot_f32, dot_f16, dot_bf16}};
