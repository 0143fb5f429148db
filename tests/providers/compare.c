/* tests/providers/compare.c: comparing results, with a tolerance per element type. */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/common/element.h"

/* Some tens of units in the last place of results around 1: sums in another order stay within, wrong ones do
 * not. */
static double type_tolerance(ortc_dtype t)
{
    switch (t) {
    case ORTC_F64: return 1e-13;
    case ORTC_F32:
    case ORTC_C64: return 1e-5;
    case ORTC_F16: return 2e-3;
    case ORTC_BF16: return 1.6e-2;
    default: return ortc_class_of(t) == ORTC_CLASS_FLOAT ? 0.3 : 0;
    }
}

static bool numbers_match(double a, double b, double allowed)
{
    if (a != a || b != b) return a != a && b != b;
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= allowed * (1 + fabs(b));
}

static bool element_matches(const void *got, const void *expected, ortc_dtype t, int64_t i, double tolerance,
                            char *why, size_t n)
{
    const ortc_class class = ortc_class_of(t);
    if (class == ORTC_CLASS_FLOAT) {
        const double a = ortc_load_f64(got, t, i), b = ortc_load_f64(expected, t, i);
        if (tolerance == 0 ? (a == b && signbit(a) == signbit(b)) || (a != a && b != b)
                           : numbers_match(a, b, tolerance * type_tolerance(t)))
            return true;
        snprintf(why, n, "element %lld is %.9g, expected %.9g", (long long)i, a, b);
    } else {
        const int64_t a = ortc_load_i64(got, t, i), b = ortc_load_i64(expected, t, i);
        if (a == b) return true;
        snprintf(why, n, "element %lld is %lld, expected %lld", (long long)i, (long long)a, (long long)b);
    }
    return false;
}

/* Of what is not a tensor: element by element; a map's are its keys and its values. */
static bool containers_match(const ortc_value *got, const ortc_value *expected, double tolerance, char *why,
                             size_t why_bytes)
{
    const uint16_t kind = ortc_value_type(expected)->kind;
    if (ortc_value_type(got)->kind != kind || ortc_value_count(got) != ortc_value_count(expected)) {
        snprintf(why, why_bytes, "kind %d of %lld elements, expected kind %d of %lld",
                 ortc_value_type(got)->kind, (long long)ortc_value_count(got), kind,
                 (long long)ortc_value_count(expected));
        return false;
    }
    const size_t n = kind == ORTC_KIND_MAP ? 2 : (size_t)ortc_value_count(expected);
    for (size_t i = 0; i < n; i++)
        if (!values_match(ortc_value_element(got, i), ortc_value_element(expected, i), tolerance, why,
                          why_bytes))
            return false;
    return true;
}

bool values_match(const ortc_value *got, const ortc_value *expected, double tolerance, char *why,
                  size_t why_bytes)
{
    if (ortc_value_type(expected)->kind != ORTC_KIND_TENSOR)
        return containers_match(got, expected, tolerance, why, why_bytes);
    const ortc_dtype t = ortc_value_dtype(expected);
    const int32_t rank = ortc_value_rank(expected);
    if (ortc_value_dtype(got) != t || ortc_value_rank(got) != rank) {
        snprintf(why, why_bytes, "%s of rank %d, expected %s of rank %d",
                 ortc_dtype_name(ortc_value_dtype(got)), ortc_value_rank(got), ortc_dtype_name(t), rank);
        return false;
    }
    for (int32_t d = 0; d < rank; d++)
        if (ortc_value_dims(got)[d] != ortc_value_dims(expected)[d]) {
            snprintf(why, why_bytes, "%lld elements in dim %d, expected %lld",
                     (long long)ortc_value_dims(got)[d], d, (long long)ortc_value_dims(expected)[d]);
            return false;
        }
    const int64_t count = ortc_value_count(expected);
    const void *a = ortc_value_host(got), *b = ortc_value_host(expected);
    if (t == ORTC_STRING) {
        for (int64_t i = 0; i < count; i++) {
            size_t na, nb;
            const char *x = ortc_value_string(got, i, &na), *y = ortc_value_string(expected, i, &nb);
            if (na != nb || memcmp(x, y, na)) {
                snprintf(why, why_bytes, "string %lld is '%.*s', expected '%.*s'", (long long)i, (int)na, x,
                         (int)nb, y);
                return false;
            }
        }
        return true;
    }
    if (t == ORTC_C64 || t == ORTC_C128) {
        for (int64_t i = 0; i < 2 * count; i++)
            if (!element_matches(a, b, t == ORTC_C64 ? ORTC_F32 : ORTC_F64, i, tolerance, why, why_bytes))
                return false;
        return true;
    }
    for (int64_t i = 0; i < count; i++)
        if (!element_matches(a, b, t, i, tolerance, why, why_bytes)) return false;
    return true;
}
