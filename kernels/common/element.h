/* kernels/common/element.h: reading and writing one element of any type, for kernels that are right rather
 * than fast.
 *
 * Arithmetic is done in one of three classes (double, int64, uint64), so that 28 element types do not become
 * 28 copies of a kernel: load in the class, compute, store. Addresses may be unaligned. Elements narrower
 * than a byte are packed, first in the low bits; writing one keeps its neighbours, so threads must not share
 * a byte: ortc_grain gives multiples of 8.
 */
#ifndef ORTC_KERNELS_ELEMENT_H
#define ORTC_KERNELS_ELEMENT_H

#include "kernels/common/floats.h"
#include "ortc/op.h"

#ifndef ORTC_TRY
#define ORTC_TRY(expression) \
    do { \
        ortc_status ortc_try_status = (expression); \
        if (ortc_try_status != ORTC_OK) return ortc_try_status; \
    } while (0)
#endif

#define ORTC_INLINE static inline __attribute__((always_inline))

typedef enum ortc_class {
    ORTC_CLASS_NONE = 0, /* strings, complex numbers */
    ORTC_CLASS_FLOAT,    /* computed in double */
    ORTC_CLASS_INT,      /* in int64_t, wrapping */
    ORTC_CLASS_UINT,     /* in uint64_t, wrapping; bool too, as 0 and 1 */
} ortc_class;

/* Types that C has: ORTC_X(element type, C type) */
#define ORTC_NATIVE_FLOATS(X) X(ORTC_F32, float) X(ORTC_F64, double)
/* clang-format off */
#define ORTC_NATIVE_INTS(X) \
    X(ORTC_I8, int8_t) X(ORTC_I16, int16_t) X(ORTC_I32, int32_t) X(ORTC_I64, int64_t)
#define ORTC_NATIVE_UINTS(X) \
    X(ORTC_U8, uint8_t) X(ORTC_U16, uint16_t) X(ORTC_U32, uint32_t) X(ORTC_U64, uint64_t)
/* clang-format on */

static inline ortc_class ortc_class_of(ortc_dtype t)
{
    switch (t) {
    case ORTC_I8:
    case ORTC_I16:
    case ORTC_I32:
    case ORTC_I64:
    case ORTC_I4:
    case ORTC_I2: return ORTC_CLASS_INT;
    case ORTC_U8:
    case ORTC_U16:
    case ORTC_U32:
    case ORTC_U64:
    case ORTC_U4:
    case ORTC_U2:
    case ORTC_BOOL: return ORTC_CLASS_UINT;
    case ORTC_ABSENT:
    case ORTC_STRING:
    case ORTC_C64:
    case ORTC_C128: return ORTC_CLASS_NONE;
    default: return ORTC_CLASS_FLOAT;
    }
}

/* ---- Bits ---------------------------------------------------------------------------------------------- */

/* The bits of element i of a type of 2, 4, 6, 8 or 16 bits. */
static inline uint32_t ortc_load_bits(const void *data, uint32_t bits, int64_t i)
{
    const uint8_t *p = data;
    switch (bits) {
    case 2: return p[i >> 2] >> (i & 3) * 2 & 3u;
    case 4: return p[i >> 1] >> (i & 1) * 4 & 15u;
    case 6: { /* four elements in three bytes; an element lies in at most two of them */
        const int64_t byte = (i >> 2) * 3 + ((i & 3) * 6 >> 3);
        const uint32_t shift = (uint32_t)((i & 3) * 6 & 7);
        uint32_t v = p[byte];
        if (shift > 2) v |= (uint32_t)p[byte + 1] << 8;
        return v >> shift & 63u;
    }
    case 8: return p[i];
    default: {
        uint16_t v;
        memcpy(&v, p + 2 * i, sizeof v);
        return v;
    }
    }
}

static inline void ortc_store_bits(void *data, uint32_t bits, int64_t i, uint32_t v)
{
    uint8_t *p = data;
    switch (bits) {
    case 2: p[i >> 2] = (uint8_t)((p[i >> 2] & ~(3u << (i & 3) * 2)) | (v & 3u) << (i & 3) * 2); break;
    case 4: p[i >> 1] = (uint8_t)((p[i >> 1] & ~(15u << (i & 1) * 4)) | (v & 15u) << (i & 1) * 4); break;
    case 6: {
        const int64_t byte = (i >> 2) * 3 + ((i & 3) * 6 >> 3);
        const uint32_t shift = (uint32_t)((i & 3) * 6 & 7), mask = 63u << shift, put = (v & 63u) << shift;
        p[byte] = (uint8_t)((p[byte] & ~mask) | put);
        if (shift > 2) p[byte + 1] = (uint8_t)((p[byte + 1] & ~(mask >> 8)) | put >> 8);
        break;
    }
    case 8: p[i] = (uint8_t)v; break;
    default: {
        uint16_t w = (uint16_t)v;
        memcpy(p + 2 * i, &w, sizeof w);
    }
    }
}

/* Bytes that `count` elements of `bits` bits take; the runtime has checked that they can be had. */
static inline size_t ortc_bytes_of(uint32_t bits, int64_t count)
{
    return bits >= 8 ? (size_t)count * (bits / 8) : ((size_t)count * bits + 7) / 8;
}

/* dst[i] = src[j], whatever the type: elements of `bits` bits. */
static inline void ortc_move_element(void *dst, int64_t i, const void *src, int64_t j, uint32_t bits)
{
    char *d = dst;
    const char *s = src;
    switch (bits) {
    case 8: d[i] = s[j]; break;
    case 16: memcpy(d + 2 * i, s + 2 * j, 2); break;
    case 32: memcpy(d + 4 * i, s + 4 * j, 4); break;
    case 64: memcpy(d + 8 * i, s + 8 * j, 8); break;
    case 128: memcpy(d + 16 * i, s + 16 * j, 16); break;
    default: ortc_store_bits(dst, bits, i, ortc_load_bits(src, bits, j));
    }
}

/* dst[i ..] = src[j ..], n elements. */
static inline void ortc_move_elements(void *dst, int64_t i, const void *src, int64_t j, int64_t n,
                                      uint32_t bits)
{
    if (bits >= 8) {
        if (n > 0) /* empty tensors may have no address */
            memcpy((char *)dst + (size_t)i * (bits / 8), (const char *)src + (size_t)j * (bits / 8),
                   (size_t)n * (bits / 8));
        return;
    }
    for (int64_t k = 0; k < n; k++) ortc_move_element(dst, i + k, src, j + k, bits);
}

static inline int64_t ortc_sign_extend(uint32_t v, uint32_t bits)
{
    const uint32_t top = UINT32_C(1) << (bits - 1);
    return (int64_t)(v ^ top) - (int64_t)top;
}

/* ---- Between classes ----------------------------------------------------------------------------------- */

/* Towards zero; what does not fit saturates and NaN is 0, where the standard leaves the result open. Narrower
 * integer types then keep the low bits. */
static inline int64_t ortc_int_of_double(double x)
{
    if (!(x >= -9223372036854775808.0)) return x != x ? 0 : INT64_MIN;
    return x >= 9223372036854775808.0 ? INT64_MAX : (int64_t)x;
}
static inline uint64_t ortc_uint_of_double(double x)
{
    if (!(x > -1.0)) return (uint64_t)ortc_int_of_double(x);
    return x >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)x;
}
/* An integer as a double that rounds to every narrower float as the integer itself would: the bits below
 * double's precision are folded into one sticky bit. */
static inline double ortc_sticky_double(uint64_t magnitude)
{
    if (magnitude >> 53) magnitude = (magnitude & ~UINT64_C(2047)) | (magnitude & 2047 ? UINT64_C(2048) : 0);
    return (double)magnitude;
}

/* Towards zero, and odd where that changed it: what rounds it once more, to 16 bits, rounds as once. */
static inline float ortc_rounded_to_odd(double v)
{
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits -= __builtin_fabs((double)f) > __builtin_fabs(v);
    bits |= (double)f != v;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* ---- Loading ------------------------------------------------------------------------------------------- */

/* ortc_load_*, ortc_store_*: the types that carry models are settled inline, so that a loop over a constant
 * type has no switch in it; the rest is one function per class. */
#define ORTC_LOAD(T, type) \
    case T: { \
        type v; \
        memcpy(&v, (const char *)data + sizeof(type) * (size_t)i, sizeof v); \
        return ORTC_LOADED(v); \
    }

static inline int64_t ortc_load_any_i64(const void *data, ortc_dtype t, int64_t i)
{
    switch (t) {
#define ORTC_LOADED(v) (int64_t)(v)
        ORTC_NATIVE_INTS(ORTC_LOAD)
        ORTC_NATIVE_UINTS(ORTC_LOAD)
#undef ORTC_LOADED
    case ORTC_BOOL: return ((const uint8_t *)data)[i] != 0;
    case ORTC_I4: return ortc_sign_extend(ortc_load_bits(data, 4, i), 4);
    case ORTC_I2: return ortc_sign_extend(ortc_load_bits(data, 2, i), 2);
    case ORTC_U4: return ortc_load_bits(data, 4, i);
    case ORTC_U2: return ortc_load_bits(data, 2, i);
    default: return 0;
    }
}

/* Of any type that is not a string or complex (element.c). */
double ortc_load_any_f64(const void *data, ortc_dtype t, int64_t i);

ORTC_INLINE double ortc_load_f64(const void *data, ortc_dtype t, int64_t i)
{
    if (t == ORTC_F32) {
        float v;
        memcpy(&v, (const char *)data + 4 * (size_t)i, sizeof v);
        return v;
    }
    return ortc_load_any_f64(data, t, i);
}
ORTC_INLINE int64_t ortc_load_i64(const void *data, ortc_dtype t, int64_t i)
{
    if (t == ORTC_I64) {
        int64_t v;
        memcpy(&v, (const char *)data + 8 * (size_t)i, sizeof v);
        return v;
    }
    return ortc_class_of(t) == ORTC_CLASS_FLOAT ? ortc_int_of_double(ortc_load_any_f64(data, t, i))
                                                : ortc_load_any_i64(data, t, i);
}
ORTC_INLINE uint64_t ortc_load_u64(const void *data, ortc_dtype t, int64_t i)
{
    return ortc_class_of(t) == ORTC_CLASS_FLOAT ? ortc_uint_of_double(ortc_load_any_f64(data, t, i))
                                                : (uint64_t)ortc_load_any_i64(data, t, i);
}

/* ---- Storing ------------------------------------------------------------------------------------------- */

#define ORTC_STORE(T, type) \
    case T: { \
        type w = (type)v; \
        memcpy((char *)data + sizeof(type) * (size_t)i, &w, sizeof w); \
        break; \
    }

/* An integer type's low bits; bool: not zero. */
static inline void ortc_store_any_int(void *data, ortc_dtype t, int64_t i, uint64_t v)
{
    switch (t) {
        ORTC_NATIVE_INTS(ORTC_STORE)
        ORTC_NATIVE_UINTS(ORTC_STORE)
    case ORTC_BOOL: ((uint8_t *)data)[i] = v != 0; break;
    case ORTC_U4:
    case ORTC_I4: ortc_store_bits(data, 4, i, (uint32_t)v); break;
    case ORTC_U2:
    case ORTC_I2: ortc_store_bits(data, 2, i, (uint32_t)v); break;
    default: break;
    }
}

/* Of a type of floats, rounded once (element.c). */
void ortc_store_any_float(void *data, ortc_dtype t, int64_t i, double v);

ORTC_INLINE void ortc_store_f64(void *data, ortc_dtype t, int64_t i, double v)
{
    if (t == ORTC_F32) {
        float w = (float)v;
        memcpy((char *)data + 4 * (size_t)i, &w, sizeof w);
    } else if (t == ORTC_BOOL) {
        ((uint8_t *)data)[i] = v != 0;
    } else if (ortc_class_of(t) == ORTC_CLASS_FLOAT) {
        ortc_store_any_float(data, t, i, v);
    } else {
        ortc_store_any_int(data, t, i,
                           ortc_class_of(t) == ORTC_CLASS_UINT ? ortc_uint_of_double(v)
                                                               : (uint64_t)ortc_int_of_double(v));
    }
}
ORTC_INLINE void ortc_store_u64(void *data, ortc_dtype t, int64_t i, uint64_t v)
{
    if (ortc_class_of(t) == ORTC_CLASS_FLOAT)
        ortc_store_any_float(data, t, i, t == ORTC_F64 ? (double)v : ortc_sticky_double(v));
    else
        ortc_store_any_int(data, t, i, v);
}
ORTC_INLINE void ortc_store_i64(void *data, ortc_dtype t, int64_t i, int64_t v)
{
    if (t == ORTC_I64)
        memcpy((char *)data + 8 * (size_t)i, &v, sizeof v);
    else if (ortc_class_of(t) == ORTC_CLASS_FLOAT && v < 0)
        ortc_store_any_float(data, t, i, t == ORTC_F64 ? (double)v : -ortc_sticky_double(0 - (uint64_t)v));
    else
        ortc_store_u64(data, t, i, (uint64_t)v);
}

/* ---- Loops --------------------------------------------------------------------------------------------- */

/* Calls fn(t, ...) with t a constant for the common types, so that an always-inline loop is compiled for each
 * of them; the other types share one copy. */
#define ORTC_SPECIALISE(t, fn, ...) \
    do { \
        switch (t) { \
        case ORTC_F32: fn(ORTC_F32, __VA_ARGS__); break; \
        case ORTC_I64: fn(ORTC_I64, __VA_ARGS__); break; \
        default: fn(t, __VA_ARGS__); break; \
        } \
    } while (0)

/* Elements for a chunk of ortc_parallel, when one costs about `cost` nanoseconds: some tenths of a
 * millisecond. A multiple of 8, so that no two chunks share a byte of a packed type. */
static inline int64_t ortc_grain(double cost)
{
    double n = 200e3 / (cost < 1 ? 1 : cost);
    return n < 8 ? 8 : ((int64_t)n + 7) & ~INT64_C(7);
}

/* Packed types: clears the unused bits of the last byte of an output before it is written. */
static inline void ortc_clear_tail(const ortc_view *v, int64_t count)
{
    const uint32_t bits = ortc_dtype_bits(v->dtype);
    if (bits < 8 && count > 0) ((uint8_t *)v->data)[ortc_bytes_of(bits, count) - 1] = 0;
}

#endif
