/* tools/ortc/compare.c: the comparison of compare.h, as numpy.testing.assert_allclose does it. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

static bool close_numbers(double got, double expected, const tolerance *t)
{
    if (isnan(got) || isnan(expected)) return isnan(got) && isnan(expected);
    if (got == expected) /* infinities too */
        return true;
    if (isinf(got) || isinf(expected)) return false;
    return fabs(got - expected) <= t->atol + t->rtol * fabs(expected);
}

static bool close_elements(const ortc_value *got, const ortc_value *expected, int64_t i, const tolerance *t)
{
    ortc_dtype type = ortc_value_dtype(got);
    if (type == ORTC_STRING) {
        size_t n, m;
        const char *a = ortc_value_string(got, i, &n), *b = ortc_value_string(expected, i, &m);
        return n == m && memcmp(a, b, n) == 0;
    }
    const uint8_t *a = ortc_value_host(got), *b = ortc_value_host(expected);
    if (ortc_dtype_bits(type) == 64 && dtype_is_integer(type) && memcmp(a + 8 * i, b + 8 * i, 8) == 0)
        return true;
    return close_numbers(element_get(type, a, i), element_get(type, b, i), t) &&
           close_numbers(element_imaginary(type, a, i), element_imaginary(type, b, i), t);
}

/* "[1,2]" of the element at a flat position. */
static void position(const ortc_value *v, int64_t i, buffer *out)
{
    int64_t index[64];
    int32_t rank = ortc_value_rank(v) < 64 ? ortc_value_rank(v) : 64;
    for (int32_t d = rank - 1; d >= 0; d--) {
        int64_t extent = ortc_value_dims(v)[d];
        index[d] = i % extent;
        i /= extent;
    }
    buffer_printf(out, "[");
    for (int32_t d = 0; d < rank; d++) buffer_printf(out, d ? ",%lld" : "%lld", (long long)index[d]);
    buffer_printf(out, "]");
}

static bool equal_tensors(const ortc_value *got, const ortc_value *expected, const tolerance *asked,
                          buffer *why)
{
    tolerance own = *asked, *t = &own;
    if (ortc_value_dtype(got) == ORTC_BF16) t->rtol = fmax(t->rtol, 0x1p-6);
    int64_t count = ortc_value_count(got), wrong = 0, first = 0;
    if (!t->values || count == 0) return true;
    if (ortc_value_dtype(got) != ORTC_STRING && (!ortc_value_host(got) || !ortc_value_host(expected))) {
        buffer_printf(why, "the result is not in host memory");
        return false;
    }
    for (int64_t i = 0; i < count; i++)
        if (!close_elements(got, expected, i, t) && wrong++ == 0) first = i;
    if (!wrong) return true;
    buffer_printf(why, "%lld of %lld values differ, first at ", (long long)wrong, (long long)count);
    position(got, first, why);
    buffer_printf(why, ": got ");
    element_text(got, first, why);
    buffer_printf(why, ", expected ");
    element_text(expected, first, why);
    if (ortc_value_dtype(got) != ORTC_STRING) buffer_printf(why, " (rtol %g, atol %g)", t->rtol, t->atol);
    return false;
}

static bool same_form(const ortc_value *a, const ortc_value *b)
{
    if (!type_equal(ortc_value_type(a), ortc_value_type(b)) || ortc_value_count(a) != ortc_value_count(b))
        return false;
    if (ortc_value_type(a)->kind != ORTC_KIND_TENSOR) return true;
    int32_t rank = ortc_value_rank(a);
    return rank == ortc_value_rank(b) &&
           (rank == 0 || memcmp(ortc_value_dims(a), ortc_value_dims(b), (size_t)rank * sizeof(int64_t)) == 0);
}

bool values_equal(const ortc_value *got, const ortc_value *expected, const tolerance *t, buffer *why)
{
    if (!same_form(got, expected)) {
        buffer_printf(why, "got ");
        value_describe(got, why);
        buffer_printf(why, ", expected ");
        value_describe(expected, why);
        return false;
    }
    uint16_t kind = ortc_value_type(got)->kind;
    if (kind == ORTC_KIND_TENSOR) return equal_tensors(got, expected, t, why);
    size_t n = kind == ORTC_KIND_MAP ? 2 : (size_t)ortc_value_count(got);
    for (size_t i = 0; i < n; i++) {
        buffer inner = {0};
        if (!values_equal(ortc_value_element(got, i), ortc_value_element(expected, i), t, &inner)) {
            buffer_printf(why, "element %zu: %s", i, (const char *)inner.data);
            free(inner.data);
            return false;
        }
    }
    return true;
}
