/* tools/ortc/element.c: elements as numbers; see element.h. The float formats below 32 bits are rows of one
 * table: OCP 8-bit and MX (FP8, FP6, FP4, E8M0), the FNUZ variants of ONNX, IEEE half and bfloat16. */
#include "element.h"

#include <math.h>
#include <string.h>

/* ---- Small float formats ------------------------------------------------------------------------------- */

typedef struct float_format {
    int exponent_bits, mantissa_bits, bias;
    /* FN: no infinity, NaN is all ones. FNUZ: NaN is -0. FINITE: neither */
    enum { IEEE, FN, FNUZ, FINITE } kind;
} float_format;

static const float_format *format_of(ortc_dtype t)
{
    static const float_format formats[ORTC_DTYPE_COUNT] = {
        [ORTC_F16] = {5, 10, 15, IEEE},    [ORTC_BF16] = {8, 7, 127, IEEE},
        [ORTC_F8E4M3FN] = {4, 3, 7, FN},   [ORTC_F8E4M3FNUZ] = {4, 3, 8, FNUZ},
        [ORTC_F8E5M2] = {5, 2, 15, IEEE},  [ORTC_F8E5M2FNUZ] = {5, 2, 16, FNUZ},
        [ORTC_F4E2M1] = {2, 1, 1, FINITE}, [ORTC_F6E2M3] = {2, 3, 1, FINITE},
        [ORTC_F6E3M2] = {3, 2, 3, FINITE},
    };
    return t > 0 && t < ORTC_DTYPE_COUNT && formats[t].exponent_bits ? &formats[t] : NULL;
}

static double format_decode(const float_format *f, uint32_t code)
{
    int m = f->mantissa_bits, e = f->exponent_bits;
    uint32_t sign = code >> (e + m) & 1, exponent = code >> m & ((1u << e) - 1),
             mantissa = code & ((1u << m) - 1);
    uint32_t ones = (1u << e) - 1;
    if (f->kind == IEEE && exponent == ones) return mantissa ? NAN : sign ? -INFINITY : INFINITY;
    if (f->kind == FN && exponent == ones && mantissa == (1u << m) - 1) return NAN;
    if (f->kind == FNUZ && sign && !exponent && !mantissa) return NAN;
    double v = exponent ? ldexp((double)(mantissa | 1u << m), (int)exponent - f->bias - m)
                        : ldexp((double)mantissa, 1 - f->bias - m);
    return sign ? -v : v;
}

static uint32_t format_encode(const float_format *f, double v)
{
    int m = f->mantissa_bits, e = f->exponent_bits;
    uint32_t sign = signbit(v) ? 1u << (e + m) : 0, all = (1u << (e + m)) - 1,
             infinity = ((1u << e) - 1) << m;
    uint32_t nan = f->kind == IEEE ? infinity | 1u << (m - 1) : f->kind == FN ? all : 1u << (e + m);
    uint32_t largest = f->kind == IEEE ? infinity - 1 : f->kind == FN ? all - 1 : all;
    if (isnan(v)) return f->kind == FINITE ? largest : nan;
    double a = fabs(v);
    uint32_t code;
    if (isinf(v)) {
        code = all + 1;
    } else if (a == 0) {
        code = 0;
    } else {
        int exponent = ilogb(a);
        if (exponent < 1 - f->bias) exponent = 1 - f->bias; /* subnormal: the mantissa alone says it */
        double mantissa = nearbyint(ldexp(a, m - exponent));
        double biased = (double)(exponent + f->bias - 1) * (1 << m) + mantissa;
        code = biased > all ? all + 1 : (uint32_t)biased;
    }
    if (code > largest)
        return f->kind == IEEE     ? sign | infinity
               : f->kind == FINITE ? sign | largest
               : f->kind == FN     ? sign | nan
                                   : nan;
    if (f->kind == FNUZ && code == 0) return 0;
    return sign | code;
}

/* ---- Bits ---------------------------------------------------------------------------------------------- */

/* Element i of a type below a byte, packed from the low bits on, elements of 6 bits across bytes. */
static uint32_t bits_get(const uint8_t *data, int64_t i, uint32_t bits)
{
    uint64_t at = (uint64_t)i * bits;
    uint32_t v = data[at / 8];
    if (at % 8 + bits > 8) v |= (uint32_t)data[at / 8 + 1] << 8;
    return v >> at % 8 & ((1u << bits) - 1);
}

static void bits_set(uint8_t *data, int64_t i, uint32_t bits, uint32_t v)
{
    uint64_t at = (uint64_t)i * bits;
    uint32_t mask = ((1u << bits) - 1) << at % 8;
    v = v << at % 8 & mask;
    data[at / 8] = (uint8_t)((data[at / 8] & ~mask) | v);
    if (mask > 0xff) data[at / 8 + 1] = (uint8_t)((data[at / 8 + 1] & ~(mask >> 8)) | v >> 8);
}

static uint32_t code_get(const void *data, int64_t i, uint32_t bits)
{
    if (bits < 8) return bits_get(data, i, bits);
    if (bits == 8) return ((const uint8_t *)data)[i];
    uint16_t v;
    memcpy(&v, (const uint8_t *)data + 2 * i, 2);
    return v;
}

static void code_set(void *data, int64_t i, uint32_t bits, uint32_t code)
{
    uint16_t v = (uint16_t)code;
    if (bits < 8)
        bits_set(data, i, bits, code);
    else if (bits == 8)
        ((uint8_t *)data)[i] = (uint8_t)code;
    else
        memcpy((uint8_t *)data + 2 * i, &v, 2);
}

/* ---- Elements ------------------------------------------------------------------------------------------ */

bool dtype_is_float(ortc_dtype t)
{
    return t == ORTC_F32 || t == ORTC_F64 || t == ORTC_F8E8M0 || format_of(t);
}
bool dtype_is_complex(ortc_dtype t) { return t == ORTC_C64 || t == ORTC_C128; }
bool dtype_is_integer(ortc_dtype t)
{
    return t > 0 && t < ORTC_DTYPE_COUNT && t != ORTC_STRING && t != ORTC_BOOL && !dtype_is_float(t) &&
           !dtype_is_complex(t);
}

static bool is_signed(ortc_dtype t)
{
    return t == ORTC_I2 || t == ORTC_I4 || t == ORTC_I8 || t == ORTC_I16 || t == ORTC_I32 || t == ORTC_I64;
}

bool dtype_bytes(ortc_dtype t, int64_t count, size_t *out)
{
    uint32_t bits = ortc_dtype_bits(t);
    uint64_t total;
    if (!bits || count < 0 || __builtin_mul_overflow((uint64_t)count, bits, &total) || total > UINT64_MAX - 7)
        return false;
    *out = (size_t)((total + 7) / 8);
    return true;
}

/* Accessors for the whole-byte types, any alignment: X(dtype, C type). */
/* clang-format off */
#define WHOLE_TYPES(X) \
    X(ORTC_F32, float) X(ORTC_F64, double) X(ORTC_U8, uint8_t) X(ORTC_I8, int8_t) X(ORTC_U16, uint16_t) \
    X(ORTC_I16, int16_t) X(ORTC_I32, int32_t) X(ORTC_U32, uint32_t) X(ORTC_I64, int64_t) \
    X(ORTC_U64, uint64_t)
/* clang-format on */

double element_get(ortc_dtype t, const void *data, int64_t i)
{
#define GET(dtype, type) \
    case dtype: { \
        type v; \
        memcpy(&v, (const uint8_t *)data + (size_t)i * sizeof v, sizeof v); \
        return (double)v; \
    }
    switch (t) {
        WHOLE_TYPES(GET)
    case ORTC_BOOL: return ((const uint8_t *)data)[i] != 0;
    case ORTC_C64: return element_get(ORTC_F32, data, 2 * i);
    case ORTC_C128: return element_get(ORTC_F64, data, 2 * i);
    case ORTC_F8E8M0: {
        uint32_t code = code_get(data, i, 8);
        return code == 255 ? NAN : ldexp(1.0, (int)code - 127);
    }
    default: break;
    }
#undef GET
    uint32_t bits = ortc_dtype_bits(t);
    const float_format *f = format_of(t);
    if (f) return format_decode(f, code_get(data, i, bits));
    if (bits == 0 || bits > 4) return NAN;
    int code = (int)code_get(data, i, bits); /* u4, i4, u2, i2 */
    return is_signed(t) && code >> (bits - 1) ? code - (1 << bits) : code;
}

double element_imaginary(ortc_dtype t, const void *data, int64_t i)
{
    return t == ORTC_C64    ? element_get(ORTC_F32, data, 2 * i + 1)
           : t == ORTC_C128 ? element_get(ORTC_F64, data, 2 * i + 1)
                            : 0;
}

/* The nearest integer of the type; casts of what is out of range would be undefined. */
static double clamp_integer(ortc_dtype t, double v)
{
    uint32_t bits = ortc_dtype_bits(t);
    double low = is_signed(t) ? -ldexp(1, (int)bits - 1) : 0;
    double high = ldexp(1, (int)bits - is_signed(t)) - 1;
    if (bits == 64)
        high = nextafter(ldexp(1, 64 - is_signed(t)), 0); /* the largest double below the type's end */
    v = isnan(v) ? 0 : nearbyint(v);
    return v < low ? low : v > high ? high : v;
}

bool element_set(ortc_dtype t, void *data, int64_t i, double v)
{
    double whole = dtype_is_integer(t) ? clamp_integer(t, v) : v;
#define SET(dtype, type) \
    case dtype: { \
        type x = (type)whole; \
        memcpy((uint8_t *)data + (size_t)i * sizeof x, &x, sizeof x); \
        break; \
    }
    switch (t) {
        WHOLE_TYPES(SET)
    case ORTC_BOOL: ((uint8_t *)data)[i] = v != 0; break;
    case ORTC_C64: element_set(ORTC_F32, data, 2 * i + 1, 0); return element_set(ORTC_F32, data, 2 * i, v);
    case ORTC_C128: element_set(ORTC_F64, data, 2 * i + 1, 0); return element_set(ORTC_F64, data, 2 * i, v);
    case ORTC_F8E8M0: {
        int exponent = isnan(v) ? 128 : v > 0 ? (int)nearbyint(log2(v)) : -127;
        code_set(data, i, 8, (uint32_t)(exponent > 128 ? 127 + 127 : exponent < -127 ? 0 : exponent + 127));
        break;
    }
    default: {
        const float_format *f = format_of(t);
        uint32_t bits = ortc_dtype_bits(t);
        if (f)
            code_set(data, i, bits, format_encode(f, v));
        else if (bits && bits <= 4)
            code_set(data, i, bits, (uint32_t)(int32_t)whole);
    }
    }
#undef SET
    double stored = element_get(t, data, i);
    return stored == v || (isnan(stored) && isnan(v));
}

/* ---- Text ---------------------------------------------------------------------------------------------- */

static void number_text(ortc_dtype t, double v, buffer *out)
{
    if (isnan(v) || isinf(v))
        buffer_printf(out, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    else
        buffer_printf(out, "%.*g", t == ORTC_F64 || t == ORTC_C128 ? 9 : 6, v);
}

void element_text(const ortc_value *value, int64_t i, buffer *out)
{
    ortc_dtype t = ortc_value_dtype(value);
    const uint8_t *data = ortc_value_host(value);
    if (t == ORTC_STRING) {
        size_t n;
        const char *text = ortc_value_string(value, i, &n);
        buffer_printf(out, "\"%.*s\"", (int)(n > 60 ? 60 : n), text);
    } else if (!data) {
        buffer_printf(out, "?");
    } else if (t == ORTC_I64) {
        int64_t v;
        memcpy(&v, data + 8 * i, 8);
        buffer_printf(out, "%lld", (long long)v);
    } else if (t == ORTC_U64) {
        uint64_t v;
        memcpy(&v, data + 8 * i, 8);
        buffer_printf(out, "%llu", (unsigned long long)v);
    } else if (t == ORTC_BOOL) {
        buffer_printf(out, data[i] ? "true" : "false");
    } else if (dtype_is_complex(t)) {
        double imaginary = element_imaginary(t, data, i);
        number_text(t, element_get(t, data, i), out);
        buffer_printf(out, signbit(imaginary) ? "" : "+");
        number_text(t, imaginary, out);
        buffer_printf(out, "i");
    } else if (dtype_is_integer(t)) {
        buffer_printf(out, "%.0f", element_get(t, data, i));
    } else {
        number_text(t, element_get(t, data, i), out);
    }
}

void type_describe(const ortc_type *t, buffer *out)
{
    switch (t ? t->kind : ORTC_KIND_NONE) {
    case ORTC_KIND_TENSOR: buffer_printf(out, "%s", ortc_dtype_name(t->dtype)); return;
    case ORTC_KIND_SEQUENCE:
    case ORTC_KIND_OPTIONAL:
        buffer_printf(out, t->kind == ORTC_KIND_SEQUENCE ? "sequence(" : "optional(");
        type_describe(t->of, out);
        break;
    case ORTC_KIND_MAP:
        buffer_printf(out, "map(%s, ", ortc_dtype_name(t->dtype));
        type_describe(t->of, out);
        break;
    default: buffer_printf(out, "?"); return;
    }
    buffer_printf(out, ")");
}

void value_describe(const ortc_value *v, buffer *out)
{
    type_describe(ortc_value_type(v), out);
    if (ortc_value_type(v)->kind != ORTC_KIND_TENSOR) {
        buffer_printf(out, " of %lld", (long long)ortc_value_count(v));
        return;
    }
    for (int32_t i = 0; i < ortc_value_rank(v); i++)
        buffer_printf(out, "%c%lld", i ? ',' : '[', (long long)ortc_value_dims(v)[i]);
    buffer_printf(out, ortc_value_rank(v) ? "]" : "[]");
}

bool type_equal(const ortc_type *a, const ortc_type *b)
{
    for (; a && b; a = a->of, b = b->of)
        if (a->kind != b->kind || a->dtype != b->dtype) return false;
    return a == b;
}

const ortc_type *type_tensor(ortc_dtype t)
{
    static ortc_type types[ORTC_DTYPE_COUNT];
    if (t < 0 || t >= ORTC_DTYPE_COUNT) t = ORTC_ABSENT;
    types[t] = (ortc_type){.kind = ORTC_KIND_TENSOR, .dtype = t};
    return &types[t];
}

void io_shape_describe(const ortc_io *io, buffer *out)
{
    if (io->rank < 0) {
        buffer_printf(out, "[...]");
        return;
    }
    buffer_printf(out, "[");
    for (int32_t i = 0; i < io->rank; i++) {
        buffer_printf(out, i ? "," : "");
        if (io->dims[i] >= 0)
            buffer_printf(out, "%lld", (long long)io->dims[i]);
        else
            buffer_printf(out, "%s",
                          io->symbols && io->symbols[i] && io->symbols[i][0] ? io->symbols[i] : "?");
    }
    buffer_printf(out, "]");
}

bool count_elements(int32_t rank, const int64_t *dims, int64_t *out)
{
    int64_t n = 1;
    for (int32_t i = 0; i < rank; i++)
        if (dims[i] < 0 || (dims[i] && __builtin_mul_overflow(n, dims[i], &n))) return false;
    for (int32_t i = 0; i < rank; i++)
        if (dims[i] == 0) n = 0;
    *out = n;
    return true;
}
