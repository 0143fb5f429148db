/* kernels/common/vector/reduce.h: a row becomes one number, the same on every instruction set.
 *
 * Element j of a row goes to logical lane j % 64, in order; then lanes are folded: l with l + 32, with l +
 * 16, .. 1. How many registers the 64 lanes take does not show in the result. The lanes are named variables,
 * V64_EACH spells them.
 *
 *   V_REDUCE(sum, v_sum, 0, count, i, n, v_load_f32(x + i, n))
 *
 * declares float sum: the fold by an operation, with its neutral element, of an expression over elements i, n
 * of them left (as V_FOR). The expression is compiled 64 / lanes times, or twice as often: keep it small;
 * what holds an exp is mapped first, then summed.
 */
#ifndef ORTC_KERNELS_VECTOR_REDUCE_H
#define ORTC_KERNELS_VECTOR_REDUCE_H

#include "kernels/common/vector/vec.h"

#if V_LANES == 16
#define V64_EACH(M, ...) M(0, __VA_ARGS__) M(1, __VA_ARGS__) M(2, __VA_ARGS__) M(3, __VA_ARGS__)
#define V64_HALVES(op) V64_PAIR(0, 2, op) V64_PAIR(1, 3, op) V64_PAIR(0, 1, op)
#elif V_LANES == 8
/* clang-format off */
#define V64_EACH(M, ...) \
    M(0, __VA_ARGS__) M(1, __VA_ARGS__) M(2, __VA_ARGS__) M(3, __VA_ARGS__) M(4, __VA_ARGS__) \
    M(5, __VA_ARGS__) M(6, __VA_ARGS__) M(7, __VA_ARGS__)
#define V64_HALVES(op) \
    V64_PAIR(0, 4, op) V64_PAIR(1, 5, op) V64_PAIR(2, 6, op) V64_PAIR(3, 7, op) V64_PAIR(0, 2, op) \
    V64_PAIR(1, 3, op) V64_PAIR(0, 1, op)
/* clang-format on */
#else
/* clang-format off */
#define V64_EACH(M, ...) \
    M(0, __VA_ARGS__) M(1, __VA_ARGS__) M(2, __VA_ARGS__) M(3, __VA_ARGS__) M(4, __VA_ARGS__) \
    M(5, __VA_ARGS__) M(6, __VA_ARGS__) M(7, __VA_ARGS__) M(8, __VA_ARGS__) M(9, __VA_ARGS__) \
    M(10, __VA_ARGS__) M(11, __VA_ARGS__) M(12, __VA_ARGS__) M(13, __VA_ARGS__) M(14, __VA_ARGS__) \
    M(15, __VA_ARGS__)
#define V64_HALVES(op) \
    V64_PAIR(0, 8, op) V64_PAIR(1, 9, op) V64_PAIR(2, 10, op) V64_PAIR(3, 11, op) V64_PAIR(4, 12, op) \
    V64_PAIR(5, 13, op) V64_PAIR(6, 14, op) V64_PAIR(7, 15, op) V64_PAIR(0, 4, op) V64_PAIR(1, 5, op) \
    V64_PAIR(2, 6, op) V64_PAIR(3, 7, op) V64_PAIR(0, 2, op) V64_PAIR(1, 3, op) V64_PAIR(0, 1, op)
/* clang-format on */
#endif
#define V64_PAIR(a, b, op) v64_##a = op(v64_##a, v64_##b);
#define V64_INIT(k, neutral) vf32 v64_##k = v_set_f32(neutral);
#define V64_STEP(k, op, at, i, n, ...) \
    { \
        const size_t i = (at) + (k)*V_LANES, n = V_LANES; \
        (void)n; \
        v64_##k = op(v64_##k, (__VA_ARGS__)); \
    }

#if V_LANES >= 8 /* short rows do not wait for memory */
#define V64_REST(op, neutral, i, n, ...) V64_EACH(V64_LAST, op, neutral, i, n, __VA_ARGS__)
#define V64_LAST(k, op, neutral, i, n, ...) \
    if (v64_at + (k)*V_LANES < v64_count) { \
        const size_t i = v64_at + (k)*V_LANES, n = v64_count - i; \
        v64_##k = op(v64_##k, v_keep((__VA_ARGS__), n, neutral)); \
    }
#else /* through memory, so that it is compiled once */
#define V64_SPILL(k, lanes) v_store_f32((lanes) + (k)*V_LANES, v64_##k, V_LANES);
#define V64_FILL(k, lanes) v64_##k = v_load_f32((lanes) + (k)*V_LANES, V_LANES);
#define V64_REST(op, neutral, i, n, ...) \
    if (v64_at < v64_count) { \
        float v64_lanes[64]; \
        V64_EACH(V64_SPILL, v64_lanes) \
        for (size_t i = v64_at; i < v64_count; i += V_LANES) { \
            const size_t n = v64_count - i; \
            float *v64_to = v64_lanes + (i - v64_at); \
            v_store_f32(v64_to, op(v_load_f32(v64_to, V_LANES), v_keep((__VA_ARGS__), n, neutral)), \
                        V_LANES); \
        } \
        V64_EACH(V64_FILL, v64_lanes) \
    }
#endif

#define V_REDUCE(result, op, neutral, count, i, n, ...) \
    float result; \
    do { \
        const size_t v64_count = (size_t)(count); \
        size_t v64_at = 0; \
        V64_EACH(V64_INIT, neutral) \
        for (; v64_at + 64 <= v64_count; v64_at += 64) { \
            V64_EACH(V64_STEP, op, v64_at, i, n, __VA_ARGS__) \
        } \
        V64_REST(op, neutral, i, n, __VA_ARGS__) \
        V64_HALVES(op) \
        result = V_ACROSS(op, v64_0); \
    } while (0)

/* A register's lanes folded by halves. */
#if V_LANES == 16
#define V_ACROSS_STEPS(op) \
    v = op(v, v_down(v, 8)), v = op(v, v_down(v, 4)), v = op(v, v_down(v, 2)), v = op(v, v_down(v, 1));
#elif V_LANES == 8
#define V_ACROSS_STEPS(op) v = op(v, v_down(v, 4)), v = op(v, v_down(v, 2)), v = op(v, v_down(v, 1));
#else
#define V_ACROSS_STEPS(op) v = op(v, v_down(v, 2)), v = op(v, v_down(v, 1));
#endif
#define V_ACROSS(op, v) v_across_##op(v)
/* Operations that rows are folded by; a body with another one adds its own line. */
#define V_ACROSS_OF(op) \
    VFN float v_across_##op(vf32 v) \
    { \
        V_ACROSS_STEPS(op) \
        return v[0]; \
    }
VFN vf32 v_sum(vf32 a, vf32 b) { return v_add(a, b); } /* a function: its name can be pasted */
VFN vf32 v_product(vf32 a, vf32 b) { return v_mul(a, b); }
V_ACROSS_OF(v_sum)
V_ACROSS_OF(v_product)
V_ACROSS_OF(v_max)
V_ACROSS_OF(v_min)
V_ACROSS_OF(v_max_nan)
V_ACROSS_OF(v_min_nan)

#endif
