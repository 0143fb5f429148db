/* ortc/types.h: what every reader of ortc's headers shares: status codes, element types, kinds of values.
 *
 * Included by ortc.h (programs that run models), op.h (operators and kernels) and provider.h (devices).
 * All integers have fixed widths: the size of a C enum depends on compiler flags, an ABI must not.
 * Numbers are stable: they are only ever added.
 */
#ifndef ORTC_TYPES_H
#define ORTC_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ORTC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define ORTC_EXPORT __attribute__((visibility("default")))
#else
#define ORTC_PRINTF(fmt, args)
#define ORTC_EXPORT
#endif

/* ---- Status -------------------------------------------------------------------------------------------- */

/* The result of every fallible function. 0 is success. */
typedef int32_t ortc_status;
enum {
    ORTC_OK = 0,
    ORTC_INVALID_ARGUMENT = 1,     /* the caller broke a function's contract */
    ORTC_INVALID_MODEL = 2,        /* the file is not a valid ONNX model */
    ORTC_UNSUPPORTED = 3,          /* valid, but no operator, kernel or build of ours can do it */
    ORTC_NOT_FOUND = 4,            /* a file, a name, a provider, a device */
    ORTC_IO = 5,                   /* reading or writing failed */
    ORTC_OUT_OF_MEMORY = 6,        /* host or device memory could not be had */
    ORTC_LIMIT = 7,                /* a limit (depth, counts, bytes) of ours or the caller's was reached */
    ORTC_SHAPE_MISMATCH = 8,       /* shapes do not fit the model or each other */
    ORTC_TYPE_MISMATCH = 9,        /* element types or kinds of values do not fit */
    ORTC_CANCELLED = 10,           /* the caller cancelled the run */
    ORTC_DEADLINE = 11,            /* the run's deadline passed */
    ORTC_DEVICE_ERROR = 12,        /* a device refused or failed; it may work again */
    ORTC_DEVICE_LOST = 13,         /* a device is gone until the process restarts */
    ORTC_INCOMPATIBLE_PLUGIN = 14, /* a plugin too new, too old, broken, or built with another sanitizer */
    ORTC_INVALID_STATE = 15,       /* the object is in a state in which this call makes no sense */
    ORTC_INTERNAL = 16             /* a bug in ortc: please report it */
};

/* ---- Element types ------------------------------------------------------------------------------------- */

/* TensorProto.DataType of ONNX 1.23 (opset 28), same numbers. 0: absent. */
typedef int32_t ortc_dtype;
enum {
    ORTC_ABSENT = 0,
    ORTC_F32 = 1,
    ORTC_U8 = 2,
    ORTC_I8 = 3,
    ORTC_U16 = 4,
    ORTC_I16 = 5,
    ORTC_I32 = 6,
    ORTC_I64 = 7,
    ORTC_STRING = 8, /* one immutable block, see ortc_strings in op.h */
    ORTC_BOOL = 9,   /* one byte, 0 or 1 */
    ORTC_F16 = 10,
    ORTC_F64 = 11,
    ORTC_U32 = 12,
    ORTC_U64 = 13,
    ORTC_C64 = 14, /* two f32: real, imaginary */
    ORTC_C128 = 15,
    ORTC_BF16 = 16,
    ORTC_F8E4M3FN = 17,
    ORTC_F8E4M3FNUZ = 18,
    ORTC_F8E5M2 = 19,
    ORTC_F8E5M2FNUZ = 20,
    ORTC_U4 = 21, /* sub-byte types are packed as in TensorProto.raw_data: first element in the low bits */
    ORTC_I4 = 22,
    ORTC_F4E2M1 = 23,
    ORTC_F8E8M0 = 24,
    ORTC_U2 = 25,
    ORTC_I2 = 26,
    ORTC_F6E2M3 = 27, /* four elements in three bytes */
    ORTC_F6E3M2 = 28,
    ORTC_DTYPE_COUNT = 29
};

/* Bits an element takes in memory: 2, 4, 6, 8 ... 128. 0 for ORTC_STRING, ORTC_ABSENT and unknown numbers. */
static inline uint32_t ortc_dtype_bits(ortc_dtype t)
{
    static const uint8_t bits[ORTC_DTYPE_COUNT] = {0,   32, 8, 8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64, 64,
                                                   128, 16, 8, 8, 8,  8,  4,  4,  4, 8, 2,  2,  6,  6};
    return t > 0 && t < ORTC_DTYPE_COUNT ? bits[t] : 0;
}

/* Short names, as in "f32[2,3]" on the command line: static strings; "?" for unknown numbers. */
static inline const char *ortc_dtype_name(ortc_dtype t)
{
    static const char *const names[ORTC_DTYPE_COUNT] = {
        "absent",     "f32", "u8",  "i8",     "u16",    "i16",  "i32",  "i64",      "string",     "bool",
        "f16",        "f64", "u32", "u64",    "c64",    "c128", "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2",
        "f8e5m2fnuz", "u4",  "i4",  "f4e2m1", "f8e8m0", "u2",   "i2",   "f6e2m3",   "f6e3m2"};
    return t >= 0 && t < ORTC_DTYPE_COUNT ? names[t] : "?";
}

/* ---- Kinds of values ----------------------------------------------------------------------------------- */

enum {
    ORTC_KIND_NONE = 0, /* type not known */
    ORTC_KIND_TENSOR = 1,
    ORTC_KIND_SEQUENCE = 2,
    ORTC_KIND_MAP = 3,
    ORTC_KIND_OPTIONAL = 4
};

/* The type of a value without its shape: f32, sequence(map(i64, f32)), optional(...). Immutable; lives as
 * long as what it was read from. */
typedef struct ortc_type {
    uint16_t kind;              /* ORTC_KIND_* */
    uint16_t reserved;          /* 0 */
    ortc_dtype dtype;           /* tensor: element type; map: key type; else 0 */
    const struct ortc_type *of; /* sequence, optional: the element's type; map: the value's; tensor: NULL */
} ortc_type;

/* A run-time value: tensor, sequence, map or optional. Opaque, reference-counted. */
typedef struct ortc_value ortc_value;

#ifdef __cplusplus
}
#endif
#endif
