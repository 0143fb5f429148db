/* The bodies of keys.h: plain loops, of which compilers make what the instruction set has. */
#include "kernels/order/keys.h"

#include "kernels/common/vector/vec.h"

VFN int32_t key_of_f32(uint32_t bits)
{
    const int32_t key = (int32_t)(bits & 0x80000000 ? bits ^ 0x7fffffff : bits);
    return (bits & 0x7fffffff) > 0x7f800000 ? INT32_MAX : bits == 0x80000000 ? 0 : key;
}

VFN int64_t key_of_f64(uint64_t bits)
{
    const uint64_t sign = UINT64_C(1) << 63, infinity = UINT64_C(0x7ff) << 52;
    const int64_t key = (int64_t)(bits & sign ? bits ^ ~sign : bits);
    return (bits & ~sign) > infinity ? INT64_MAX : bits == sign ? 0 : key;
}

#define KEYS(name, type, ktype, ...) \
    static ktype keys_##name(size_t n, const void *from, int32_t flip, ktype *key) \
    { \
        const type *x = from; \
        ktype best = (ktype)(UINT64_C(1) << (8 * sizeof(ktype) - 1)); \
        for (size_t i = 0; i < n; i++) { \
            const type v = x[i]; \
            const ktype k = (ktype)(__VA_ARGS__) ^ flip; \
            key[i] = k; \
            best = k > best ? k : best; \
        } \
        return best; \
    }
#define NARROW(name, type, ...) KEYS(name, type, int32_t, __VA_ARGS__)
#define WIDE(name, type, ...) KEYS(name, type, int64_t, __VA_ARGS__)
ORTC_NARROW_KEYS(NARROW)
ORTC_WIDE_KEYS(WIDE)

/* Eight bytes of 0 and 1 become eight bits by a product that puts each in its place above the others. */
#define ABOVE(name, ktype) \
    static uint32_t name##_above(const ktype *key, ktype worst) \
    { \
        uint8_t is[32]; \
        uint32_t bits = 0; \
        for (int i = 0; i < 32; i++) is[i] = key[i] > worst; \
        for (int i = 0; i < 32; i += 8) { \
            uint64_t eight; \
            memcpy(&eight, is + i, sizeof eight); \
            bits |= (uint32_t)(eight * UINT64_C(0x0102040810204080) >> 56) << i; \
        } \
        return bits; \
    }
ABOVE(narrow, int32_t)
ABOVE(wide, int64_t)

#define OF(name, type, key) keys_##name,
const ortc_order_keys V_NAME(ortc_order_keys) = {{ORTC_NARROW_KEYS(OF)},
                                                 {ORTC_WIDE_KEYS(OF)},
                                                 narrow_above,
                                                 wide_above};
