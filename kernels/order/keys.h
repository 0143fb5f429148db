/* Elements as integers of the same order, on vectors: the bodies' contract (keys_vec.c). NaN is above all, -0
 * is 0; `flip`, 0 or -1, is for the opposite order: what is largest then is what was smallest. */
#ifndef ORTC_KERNELS_ORDER_KEYS_H
#define ORTC_KERNELS_ORDER_KEYS_H

#include "kernels/common/uk.h"

/* X(name, type in memory, key of v): types of up to 32 bits, and of 64. */
#define ORTC_NARROW_KEYS(X) \
    X(F32, uint32_t, key_of_f32(v)) \
    X(BF16, uint16_t, key_of_f32((uint32_t)v << 16)) \
    X(F16, uint16_t, (v & 0x7fff) > 0x7c00 ? INT32_MAX : v & 0x8000 ? -(int32_t)(v & 0x7fff) : v) \
    X(I32, int32_t, v) \
    X(U32, uint32_t, v ^ 0x80000000) \
    X(I16, int16_t, v) \
    X(U16, uint16_t, v) \
    X(I8, int8_t, v) \
    X(U8, uint8_t, v)
#define ORTC_WIDE_KEYS(X) \
    X(F64, uint64_t, key_of_f64(v)) \
    X(I64, int64_t, v) \
    X(U64, uint64_t, v ^ UINT64_C(0x8000000000000000))
#define ORTC_KEY_NAME(name, type, key) ORTC_KEY_##name,
enum { ORTC_NARROW_KEYS(ORTC_KEY_NAME) ORTC_KEYS_NARROW };
enum { ORTC_WIDE_KEYS(ORTC_KEY_NAME) ORTC_KEYS_WIDE };

typedef struct ortc_order_keys {
    /* key[i] of x[i]; n > 0. Returns the largest. */
    int32_t (*narrow[ORTC_KEYS_NARROW])(size_t n, const void *x, int32_t flip, int32_t *key);
    int64_t (*wide[ORTC_KEYS_WIDE])(size_t n, const void *x, int32_t flip, int64_t *key);
    /* Bit i: key[i] > worst, of 32 keys. */
    uint32_t (*narrow_above)(const int32_t *key, int32_t worst);
    uint32_t (*wide_above)(const int64_t *key, int64_t worst);
} ortc_order_keys;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_order_keys)

#endif
