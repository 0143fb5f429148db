/* kernels/common/vector/vec.h: vectors for kernel bodies that are written once and compiled for every
 * instruction set.
 *
 * A register holds V_LANES elements of 32 bits (vf32, vi32, vu32) or half as many of 64 (vf64, vi64); a mask
 * (vm32, vm64) has a lane for each. Memory may hold other types: v_load_* and v_store_* convert (f16, bf16,
 * f64 to and from vf32; every integer to and from vi32), so that bodies compute in few types. The generic
 * form is the compiler's vector extension (gcc, clang); vec_<isa>.h, chosen by ORTC_ISA_HEADER, gives V_LANES
 * and whatever it does better: it defines the function and a macro of the same name, and the default here is
 * left out.
 *
 * Rules for bodies, so that lengths known only at run time (SVE, RVV) stay possible:
 *   - no V_LANES, no arrays of vectors (but squares, v_turn), no vectors in structs, no subscripts: V_FOR
 *     steps through an array, or a loop does by v_lanes(); loads and stores take n, the elements that are
 *     left: min(n, lanes) are touched, absent ones read as 0;
 *   - an operation means the same bits on every instruction set. v_max and v_min return their SECOND operand
 *     when one is NaN; conversions to integers truncate, saturate, and make 0 of NaN; integers wrap
 *     (-fwrapv);
 *   - fused multiply-add only where the body spells v_fma. Without FMA hardware (plain x86-64) it is rounded
 *     twice: there, and only there, results have other bits.
 */
#ifndef ORTC_KERNELS_VECTOR_VEC_H
#define ORTC_KERNELS_VECTOR_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(ORTC_ISA) || !defined(ORTC_ISA_HEADER)
#error "bodies over vectors are listed in vector_sources (kernels/common/vector/meson.build)"
#endif

#define VFN static inline __attribute__((always_inline, unused))
#define V_JOIN_(a, b) a##_##b
#define V_JOIN(a, b) V_JOIN_(a, b)
/* The name of what a body exports: V_NAME(ortc_softmax_rows) is ortc_softmax_rows_avx2, ... */
#define V_NAME(name) V_JOIN(name, ORTC_ISA)

/* ---- Types, from the instruction set's V_LANES (with V_PART_TYPES: before its functions) --------------- */

#if defined(__clang__)
#define V_UNROLL _Pragma("clang loop unroll(full)")
#else
#define V_UNROLL _Pragma("GCC unroll 32")
#endif

#define V_TYPES(lanes) \
    typedef float vf32 __attribute__((vector_size(4 * (lanes)))); \
    typedef int32_t vi32 __attribute__((vector_size(4 * (lanes)))); \
    typedef uint32_t vu32 __attribute__((vector_size(4 * (lanes)))); \
    typedef double vf64 __attribute__((vector_size(4 * (lanes)))); \
    typedef int64_t vi64 __attribute__((vector_size(4 * (lanes)))); \
    typedef uint64_t vu64 __attribute__((vector_size(4 * (lanes)))); \
    typedef int8_t v_mem_i8 __attribute__((vector_size(lanes))); \
    typedef uint8_t v_mem_u8 __attribute__((vector_size(lanes))); \
    typedef int16_t v_mem_i16 __attribute__((vector_size(2 * (lanes)))); \
    typedef uint16_t v_mem_u16 __attribute__((vector_size(2 * (lanes))));
/* Masks as whole lanes of ones; AVX-512 has its own. */
#define V_LANE_MASKS \
    typedef vi32 vm32; \
    typedef vi64 vm64;

#include ORTC_ISA_HEADER

VFN size_t v_lanes(void) { return V_LANES; } /* elements of 32 bits in a register: only to step by */

/* ---- Arithmetic: on every type of vector --------------------------------------------------------------- */

#define v_add(a, b) ((a) + (b))
#define v_sub(a, b) ((a) - (b))
#define v_mul(a, b) ((a) * (b))
#define v_div(a, b) ((a) / (b)) /* floats */
#define v_and(a, b) ((a) & (b)) /* integers, and masks */
#define v_or(a, b) ((a) | (b))
#define v_xor(a, b) ((a) ^ (b))
#define v_shl(a, k) \
    ((a) << (k)) /* integers, by a number; right: arithmetic on vi32, vi64, logical on vu32, vu64 */
#define v_shr(a, k) ((a) >> (k))

VFN vf32 v_set_f32(float x) { return x - (vf32){0}; } /* not x + 0: -0 stays */
VFN vi32 v_set_i32(int32_t x) { return x - (vi32){0}; }
VFN vu32 v_set_u32(uint32_t x) { return x - (vu32){0}; }
VFN vf64 v_set_f64(double x) { return x - (vf64){0}; }
VFN vi64 v_set_i64(int64_t x) { return x - (vi64){0}; }

/* The same bits as another type. */
VFN vi32 v_bits_f32(vf32 x) { return (vi32)x; }
VFN vf32 v_f32_bits(vi32 x) { return (vf32)x; }
VFN vi64 v_bits_f64(vf64 x) { return (vi64)x; }
VFN vf64 v_f64_bits(vi64 x) { return (vf64)x; }

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define V_HAS_FMA 1
#else
#define V_HAS_FMA 0
#endif
#ifndef v_fma
#define v_fma v_fma
#if V_HAS_FMA
VFN vf32 v_fma(vf32 a, vf32 b, vf32 c)
{
    for (int i = 0; i < V_LANES; i++) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
}
VFN vf64 v_fma_f64(vf64 a, vf64 b, vf64 c)
{
    for (int i = 0; i < V_LANES / 2; i++) c[i] = __builtin_fma(a[i], b[i], c[i]);
    return c;
}
#else
VFN vf32 v_fma(vf32 a, vf32 b, vf32 c) { return a * b + c; } /* a * b + c, rounded once where there is FMA */
VFN vf64 v_fma_f64(vf64 a, vf64 b, vf64 c) { return a * b + c; }
#endif
#endif

/* Rows become columns: of a square of registers, the one array of them there is. */
#ifndef v_turn
#define v_turn v_turn
VFN void v_turn(vf32 r[V_LANES])
{
    _Static_assert(V_LANES == 4, "other numbers of lanes have their own");
    vf32 t[V_LANES];
    for (int round = 0; round < 2; round++) { /* the upper half between the lower */
        t[0] = __builtin_shufflevector(r[0], r[2], 0, 4, 1, 5);
        t[1] = __builtin_shufflevector(r[0], r[2], 2, 6, 3, 7);
        t[2] = __builtin_shufflevector(r[1], r[3], 0, 4, 1, 5);
        t[3] = __builtin_shufflevector(r[1], r[3], 2, 6, 3, 7);
        for (int i = 0; i < V_LANES; i++) r[i] = t[i];
    }
}
#endif

/* ---- Masks and comparisons ----------------------------------------------------------------------------- */

#ifndef v_lt /* comparisons with NaN are false, but for v_ne */
#define v_lt v_lt
VFN vm32 v_lt(vf32 a, vf32 b) { return (vm32)(a < b); }
VFN vm32 v_le(vf32 a, vf32 b) { return (vm32)(a <= b); }
VFN vm32 v_eq(vf32 a, vf32 b) { return (vm32)(a == b); }
VFN vm32 v_ne(vf32 a, vf32 b) { return (vm32)(a != b); }
VFN vm32 v_lt_i32(vi32 a, vi32 b) { return (vm32)(a < b); }
VFN vm32 v_eq_i32(vi32 a, vi32 b) { return (vm32)(a == b); }
VFN vm32 v_lt_u32(vu32 a, vu32 b) { return (vm32)(a < b); }
VFN vm64 v_lt_f64(vf64 a, vf64 b) { return (vm64)(a < b); }
VFN vm64 v_eq_f64(vf64 a, vf64 b) { return (vm64)(a == b); }
VFN vm64 v_lt_i64(vi64 a, vi64 b) { return (vm64)(a < b); }
VFN vm64 v_eq_i64(vi64 a, vi64 b) { return (vm64)(a == b); }
#endif
#ifndef v_sel /* a where the mask is set, else b */
#define v_sel v_sel
VFN vf32 v_sel(vm32 m, vf32 a, vf32 b) { return (vf32)((m & (vi32)a) | (~m & (vi32)b)); }
VFN vi32 v_sel_i32(vm32 m, vi32 a, vi32 b) { return (m & a) | (~m & b); }
VFN vf64 v_sel_f64(vm64 m, vf64 a, vf64 b) { return (vf64)((m & (vi64)a) | (~m & (vi64)b)); }
VFN vi64 v_sel_i64(vm64 m, vi64 a, vi64 b) { return (m & a) | (~m & b); }
#endif
#ifndef v_look_up /* y[i] = table[x[i]] of 256 bytes; y may be x */
VFN void v_look_up(size_t n, const uint8_t *table, const uint8_t *x, uint8_t *y)
{
    for (size_t i = 0; i < n; i++) y[i] = table[x[i]];
}
#endif
#ifndef v_any
#define v_any v_any
VFN int v_any(vm32 m)
{
    int32_t any = 0;
    for (int i = 0; i < V_LANES; i++) any |= m[i];
    return any != 0;
}
#endif
#define v_not(m) ((__typeof__(m))~(m))
VFN vm32 v_gt(vf32 a, vf32 b) { return v_lt(b, a); }
VFN vm32 v_ge(vf32 a, vf32 b) { return v_le(b, a); }
VFN vm32 v_is_nan(vf32 a) { return v_ne(a, a); }

VFN vi32 v_iota(void) /* 0, 1, 2, .. */
{
    vi32 k = {0};
    for (int i = 0; i < V_LANES; i++) k[i] = i;
    return k;
}
#ifndef v_first /* the first n lanes */
#define v_first v_first
VFN vm32 v_first(size_t n) { return v_lt_i32(v_iota(), v_set_i32(n < V_LANES ? (int32_t)n : V_LANES)); }
#endif
/* v in the first n lanes, `other` in the rest: so that what was not loaded does not count. */
VFN vf32 v_keep(vf32 v, size_t n, float other)
{
    if (n >= V_LANES) return v;
    return v_sel(v_first(n), v, v_set_f32(other));
}
VFN vi32 v_keep_i32(vi32 v, size_t n, int32_t other)
{
    if (n >= V_LANES) return v;
    return v_sel_i32(v_first(n), v, v_set_i32(other));
}

/* ---- More arithmetic ----------------------------------------------------------------------------------- */

VFN vf32 v_abs(vf32 a) { return (vf32)((vi32)a & INT32_MAX); }
VFN vf32 v_neg(vf32 a) { return (vf32)((vi32)a ^ INT32_MIN); } /* NaN's sign, too */
VFN vf32 v_copysign(vf32 magnitude, vf32 sign)
{
    return (vf32)(((vi32)magnitude & INT32_MAX) | ((vi32)sign & INT32_MIN));
}
#ifndef v_max
#define v_max v_max
VFN vf32 v_max(vf32 a, vf32 b) { return v_sel(v_lt(b, a), a, b); }
VFN vf32 v_min(vf32 a, vf32 b) { return v_sel(v_lt(a, b), a, b); }
#endif
/* NaN if either is; of two zeros any. What ReduceMax, Max and MaxPool mean. */
#ifndef v_max_nan
#define v_max_nan v_max_nan
VFN vf32 v_max_nan(vf32 a, vf32 b) { return v_sel(v_is_nan(a), a, v_max(a, b)); }
VFN vf32 v_min_nan(vf32 a, vf32 b) { return v_sel(v_is_nan(a), a, v_min(a, b)); }
#endif
VFN vi32 v_max_i32(vi32 a, vi32 b) { return v_sel_i32(v_lt_i32(a, b), b, a); }
VFN vi32 v_min_i32(vi32 a, vi32 b) { return v_sel_i32(v_lt_i32(a, b), a, b); }
#ifndef v_max_f64
#define v_max_f64 v_max_f64
VFN vf64 v_max_f64(vf64 a, vf64 b) { return v_sel_f64(v_lt_f64(b, a), a, b); }
VFN vf64 v_min_f64(vf64 a, vf64 b) { return v_sel_f64(v_lt_f64(a, b), a, b); }
#endif
#ifndef v_sqrt
#define v_sqrt v_sqrt
VFN vf32 v_sqrt(vf32 a)
{
    for (int i = 0; i < V_LANES; i++) a[i] = __builtin_sqrtf(a[i]);
    return a;
}
#endif
#ifndef v_rint
#define v_rint v_rint
VFN vf32 v_rint(vf32 x) /* halves to even */
{
    const vf32 a = v_abs(x), big = v_set_f32(0x1p23f);
    return v_sel(v_lt(a, big), v_copysign(a + big - big, x), x);
}
VFN vf32 v_floor(vf32 x)
{
    const vf32 r = v_rint(x);
    return v_sel(v_lt(x, r), r - 1, r); /* never r - 0: -0 stays */
}
VFN vf32 v_ceil(vf32 x)
{
    const vf32 r = v_rint(x);
    return v_sel(v_lt(r, x), v_copysign(r + 1, x), r); /* -0.7 gives -0 */
}
VFN vf32 v_trunc(vf32 x) { return v_copysign(v_floor(v_abs(x)), x); }
#endif
#ifndef v_scale2
#define v_scale2 v_scale2
/* p * 2^floor(n) for n within -252 .. 254, rounded once (twice never: the first factor keeps it normal for
 * p from 1/2 to 4). ni is floor(n) as integers; instruction sets use the one they like. */
VFN vf32 v_scale2(vf32 p, vf32 n, vi32 ni)
{
    const vi32 h = ni >> 1;
    (void)n;
    return p * (vf32)((h + 127) << 23) * (vf32)((ni - h + 127) << 23);
}
#endif

#ifndef v_pick_8
#define v_pick_8 v_pick_8
/* table[i mod 8] */
VFN vf32 v_pick_8(const float table[8], vi32 i)
{
    vf32 r = {0};
    for (int k = 0; k < V_LANES; k++) r[k] = table[i[k] & 7];
    return r;
}
#endif

/* ---- Conversions --------------------------------------------------------------------------------------- */

#ifndef v_f32_of_i32
#define v_f32_of_i32 v_f32_of_i32
VFN vf32 v_f32_of_i32(vi32 x) { return __builtin_convertvector(x, vf32); }
#endif
#ifndef v_i32_of_f32
#define v_i32_of_f32 v_i32_of_f32
VFN vi32 v_i32_of_f32(vf32 x)
{
    const vm32 above = v_le(v_set_f32(0x1p31f), x), below = v_lt(x, v_set_f32(-0x1p31f));
    const vf32 safe = v_sel(v_or(v_or(above, below), v_is_nan(x)), v_set_f32(0), x);
    const vi32 low = v_sel_i32(below, v_set_i32(INT32_MIN), __builtin_convertvector(safe, vi32));
    return v_sel_i32(above, v_set_i32(INT32_MAX), low);
}
#endif
/* The same of numbers that i32 holds. */
VFN vi32 v_i32_within(vf32 x) { return __builtin_convertvector(x, vi32); }
/* The lower and the upper half of the lanes as f64, exactly, and back, rounded. */
#ifndef v_f64_lo
#define v_f64_lo v_f64_lo
typedef float v_half_f32 __attribute__((vector_size(2 * V_LANES)));
VFN vf64 v_f64_lo(vf32 x)
{
    v_half_f32 h;
    memcpy(&h, &x, sizeof h);
    return __builtin_convertvector(h, vf64);
}
VFN vf64 v_f64_hi(vf32 x)
{
    v_half_f32 h;
    memcpy(&h, (const char *)&x + sizeof h, sizeof h);
    return __builtin_convertvector(h, vf64);
}
VFN vf32 v_f32_of_f64(vf64 lo, vf64 hi)
{
    const v_half_f32 l = __builtin_convertvector(lo, v_half_f32), h = __builtin_convertvector(hi, v_half_f32);
    vf32 x;
    memcpy(&x, &l, sizeof l);
    memcpy((char *)&x + sizeof l, &h, sizeof h);
    return x;
}
#endif

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* v_load_T(p, n), v_store_T(p, v, n): addresses of any alignment. */
#define V_MEMORY(T, type, memory, reg) \
    VFN reg v_load_##T(const type *p, size_t n) \
    { \
        memory m = {0}; \
        memcpy(&m, p, n >= V_LANES ? sizeof m : n * sizeof *p); \
        return __builtin_convertvector(m, reg); \
    } \
    VFN void v_store_##T(type *p, reg v, size_t n) \
    { \
        const memory m = __builtin_convertvector(v, memory); \
        memcpy(p, &m, n >= V_LANES ? sizeof m : n * sizeof *p); \
    }
#ifndef v_load_f32
#define v_load_f32 v_load_f32
V_MEMORY(f32, float, vf32, vf32)
V_MEMORY(i32, int32_t, vi32, vi32)
#endif
/* Integers to and from vi32: sign or zero extended, the low bits kept. */
#ifndef v_load_i8
#define v_load_i8 v_load_i8
V_MEMORY(i8, int8_t, v_mem_i8, vi32)
V_MEMORY(u8, uint8_t, v_mem_u8, vi32)
V_MEMORY(i16, int16_t, v_mem_i16, vi32)
V_MEMORY(u16, uint16_t, v_mem_u16, vi32)
#endif
VFN vi32 v_load_u32(const uint32_t *p, size_t n) { return v_load_i32((const int32_t *)p, n); }
VFN void v_store_u32(uint32_t *p, vi32 v, size_t n) { v_store_i32((int32_t *)p, v, n); }

/* 64-bit elements to and from registers of 32 bits: n counts elements, all lanes' worth of them. f64 is
 * rounded when it is read; of i64 the low bits are read. */
#ifndef v_load_f64
#define v_load_f64 v_load_f64
VFN vf32 v_load_f64(const double *p, size_t n)
{
    float t[V_LANES] = {0};
    vf32 v;
    for (size_t i = 0; i < V_LANES && i < n; i++) t[i] = (float)p[i];
    memcpy(&v, t, sizeof v);
    return v;
}
VFN void v_store_f64(double *p, vf32 v, size_t n)
{
    float t[V_LANES];
    memcpy(t, &v, sizeof v);
    for (size_t i = 0; i < V_LANES && i < n; i++) p[i] = (double)t[i];
}
VFN vi32 v_load_i64(const int64_t *p, size_t n)
{
    int32_t t[V_LANES] = {0};
    vi32 v;
    for (size_t i = 0; i < V_LANES && i < n; i++) t[i] = (int32_t)(uint32_t)(uint64_t)p[i];
    memcpy(&v, t, sizeof v);
    return v;
}
VFN void v_store_i64(int64_t *p, vi32 v, size_t n)
{
    int32_t t[V_LANES];
    memcpy(t, &v, sizeof v);
    for (size_t i = 0; i < V_LANES && i < n; i++) p[i] = t[i];
}
#endif
/* Registers of 64-bit lanes; n counts 64-bit elements. */
#define V_MEMORY_64(T, type, reg) \
    VFN reg v_load_wide_##T(const type *p, size_t n) \
    { \
        reg m = {0}; \
        memcpy(&m, p, n >= V_LANES / 2 ? sizeof m : n * sizeof *p); \
        return m; \
    } \
    VFN void v_store_wide_##T(type *p, reg v, size_t n) \
    { \
        memcpy(p, &v, n >= V_LANES / 2 ? sizeof v : n * sizeof *p); \
    }
V_MEMORY_64(f64, double, vf64)
V_MEMORY_64(i64, int64_t, vi64)

/* Booleans: bytes of 0 and 1; any other byte is read as true. */
VFN vm32 v_load_bool(const uint8_t *p, size_t n) { return v_not(v_eq_i32(v_load_u8(p, n), v_set_i32(0))); }
#ifndef v_store_bool
#define v_store_bool v_store_bool
VFN void v_store_bool(uint8_t *p, vm32 m, size_t n)
{
    v_store_u8(p, v_sel_i32(m, v_set_i32(1), v_set_i32(0)), n);
}
#endif

/* f16: v_h2f and v_f2h convert whole registers; rounded to nearest even, NaN stays NaN. */
#ifndef v_h2f
#define v_h2f v_h2f
VFN vf32
v_h2f(v_mem_u16 h) /* the exponent moved by a multiplication that is exact; infinity and NaN by hand */
{
    const vi32 x = __builtin_convertvector(h, vi32), m = (x & 0x7fff) << 13;
    const vf32 f = (vf32)m * v_set_f32(0x1p112f);
    const vi32 special = (vi32)(m > v_set_i32(0x0f7fffff)), nan = (vi32)(m > v_set_i32(0x0f800000));
    return (vf32)(((vi32)f & ~special) | (special & ((m + 0x70000000) | (nan & 0x400000))) |
                  ((x & 0x8000) << 16));
}
VFN v_mem_u16 v_f2h(vf32 v) /* denormals by adding 0.5 (whose ulp is 2^-24), normals by integer carry */
{
    const vi32 x = (vi32)v, a = x & 0x7fffffff, sign = (x >> 16) & 0x8000;
    const vi32 sub = (vi32)((vf32)a + v_set_f32(0.5f)) - 0x3f000000;
    const vi32 norm = (a + (v_set_i32(0xfff - 0x38000000) + ((a >> 13) & 1))) >> 13;
    const vi32 isnan = (vi32)(a > v_set_i32(0x7f800000)), big = (vi32)(a > v_set_i32(0x477fefff));
    const vi32 small = (vi32)(a < v_set_i32(0x38800000)), nan = 0x7e00 | ((a >> 13) & 0x3ff);
    const vi32 r = (small & sub) | (~small & ~big & norm) | (big & ~isnan & 0x7c00) | (isnan & nan) | sign;
    return __builtin_convertvector(r, v_mem_u16);
}
#endif
#ifndef v_load_f16
#define v_load_f16 v_load_f16
VFN vf32 v_load_f16(const uint16_t *p, size_t n)
{
    v_mem_u16 m = {0};
    memcpy(&m, p, n >= V_LANES ? sizeof m : n * sizeof *p);
    return v_h2f(m);
}
VFN void v_store_f16(uint16_t *p, vf32 v, size_t n)
{
    const v_mem_u16 m = v_f2h(v);
    memcpy(p, &m, n >= V_LANES ? sizeof m : n * sizeof *p);
}
#endif
/* bf16: the upper half of an f32; rounded to nearest even, NaN made quiet. */
VFN vf32 v_load_bf16(const uint16_t *p, size_t n) { return (vf32)(v_load_u16(p, n) << 16); }
#ifndef v_store_bf16
#define v_store_bf16 v_store_bf16
VFN void v_store_bf16(uint16_t *p, vf32 v, size_t n)
{
    const vi32 x = (vi32)v, up = (vi32)(((vu32)x + 0x7fff + (((vu32)x >> 16) & 1)) >> 16);
    const vi32 quiet = (vi32)(((vu32)x >> 16) | 0x40);
    v_store_u16(p, v_sel_i32(v_is_nan(v), quiet, up), n);
}
#endif

/* Registers of 16-bit numbers without signs, two a lane; the upper halves of a, then of b, as one. */
typedef uint16_t v_words __attribute__((vector_size(sizeof(vi32))));
#ifndef v_max_u16
VFN vi32 v_max_u16(vi32 a, vi32 b)
{
    const v_words less = (v_words)((v_words)a < (v_words)b);
    return (vi32)(((v_words)b & less) | ((v_words)a & ~less));
}
VFN vi32 v_min_u16(vi32 a, vi32 b)
{
    const v_words less = (v_words)((v_words)a < (v_words)b);
    return (vi32)(((v_words)a & less) | ((v_words)b & ~less));
}
VFN vi32 v_upper_halves(vf32 a, vf32 b)
{
    uint16_t halves[2 * V_LANES];
    vi32 both;
    v_store_u16(halves, (vi32)((vu32)a >> 16), V_LANES);
    v_store_u16(halves + V_LANES, (vi32)((vu32)b >> 16), V_LANES);
    memcpy(&both, halves, sizeof both);
    return both;
}
#endif

/* Only the lanes of a mask are touched; others read as 0. */
#ifndef v_load_masked_f32
#define v_load_masked_f32 v_load_masked_f32
VFN vf32 v_load_masked_f32(const float *p, vm32 m)
{
    vf32 v = {0};
    for (int i = 0; i < V_LANES; i++)
        if (m[i]) memcpy((char *)&v + 4 * i, p + i, 4);
    return v;
}
VFN void v_store_masked_f32(float *p, vf32 v, vm32 m)
{
    for (int i = 0; i < V_LANES; i++)
        if (m[i]) memcpy(p + i, (const char *)&v + 4 * i, 4);
}
#endif

/* p[0], p[2], ..: n of them. */
VFN vf32 v_load_even_f32(const float *p, size_t n)
{
    const vf32 a = v_load_f32(p, n >= V_LANES ? V_LANES : 2 * n - 1);
    const vf32 b = n > V_LANES / 2 ? v_load_f32(p + V_LANES, n >= V_LANES ? V_LANES - 1 : 2 * n - 1 - V_LANES)
                                   : a;
    return v_even(a, b);
}

/* base[index[i]] for the first n lanes, 0 in the rest. */
#ifndef v_gather_f32
#define v_gather_f32 v_gather_f32
VFN vf32 v_gather_f32(const float *base, vi32 index, size_t n)
{
    float t[V_LANES] = {0};
    int32_t k[V_LANES];
    vf32 v;
    memcpy(k, &index, sizeof k);
    for (size_t i = 0; i < V_LANES && i < n; i++) memcpy(&t[i], base + k[i], sizeof t[i]);
    memcpy(&v, t, sizeof v);
    return v;
}
#endif

/* Lane index[i] of v in lane i; indices are lanes. */
#ifndef v_pick_i32
#define v_pick_i32 v_pick_i32
VFN vi32 v_pick_i32(vi32 v, vi32 index)
{
    vi32 y = {0};
    for (int i = 0; i < V_LANES; i++) y[i] = v[index[i]];
    return y;
}
#endif
VFN vf32 v_pick_f32(vf32 v, vi32 index) { return v_f32_bits(v_pick_i32(v_bits_f32(v), index)); }

/* The low four bits of each lane, less 8. */
#ifndef v_f32_of_low4
#define v_f32_of_low4 v_f32_of_low4
VFN vf32 v_f32_of_low4(vi32 x) { return v_f32_of_i32(v_sub(v_and(x, v_set_i32(15)), v_set_i32(8))); }
#endif
/* p[0], .. p[0], p[1], ..: each `times` times, a power of two; n lanes, 0 in the rest. */
#ifndef v_repeat_f32
#define v_repeat_f32 v_repeat_f32
VFN vf32 v_repeat_f32(const float *p, size_t times, size_t n)
{
    float t[V_LANES] = {0};
    vf32 v;
    for (size_t i = 0; i < V_LANES && i < n; i++) memcpy(&t[i], p + i / times, sizeof t[i]);
    memcpy(&v, t, sizeof v);
    return v;
}
#endif

#ifndef v_dot_pairs
#define v_dot_pairs v_dot_pairs
/* sum + the four products of each lane's bytes of a and x, and of b and y: a and b from 0 to 15, x and y from
 * -127 to 127. Exact. */
VFN vi32 v_dot_pairs(vi32 sum, vi32 a, vi32 x, vi32 b, vi32 y)
{
    for (int byte = 0; byte < 32; byte += 8)
        sum += ((a >> byte) & 15) * ((x << (24 - byte)) >> 24) +
               ((b >> byte) & 15) * ((y << (24 - byte)) >> 24);
    return sum;
}
#endif

#ifndef v_dot_bytes
#define v_dot_bytes v_dot_bytes
/* sum + the four products of each lane's bytes: a from 0 to 255, x from -127 to 127. Exact. */
VFN vi32 v_dot_bytes(vi32 sum, vi32 a, vi32 x)
{
    for (int byte = 0; byte < 32; byte += 8) sum += ((a >> byte) & 255) * ((x << (24 - byte)) >> 24);
    return sum;
}
#endif

/* Brings the line of an address that will be read soon into the caches; any address. */
VFN void v_prefetch(const void *p) { __builtin_prefetch(p); }

/* ---- Loops --------------------------------------------------------------------------------------------- */

/* V_FOR(i, n, count, statements): the statements for elements i, i + 1, .. of count, a register at a time; n
 * elements are left. They are compiled twice, for whole registers, where n is a constant and tests of it go
 * away, and for the tail. */
#define V_FOR(i, n, count, ...) \
    do { \
        const size_t v_count_ = (size_t)(count); \
        size_t i = 0; \
        for (const size_t n = V_LANES; i + V_LANES <= v_count_; i += V_LANES) { \
            __VA_ARGS__ \
        } \
        if (i < v_count_) { \
            const size_t n = v_count_ - i; \
            __VA_ARGS__ \
        } \
    } while (0)

#endif
