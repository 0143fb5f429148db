/* kernels/elementwise/ref_cast_string.c: Cast between strings and numbers on ref.
 *
 * A float is written with the fewest digits that read back as the same value of its type, without an exponent
 * from 1e-5 to 1e16; NaN, INF and -INF as the standard spells them. A string is read as the number that it is
 * as a whole; one that is no number is an error, where the standard leaves the result open. Neither depends
 * on the program's locale.
 */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/common/strings.h"
#include "kernels/elementwise/elementwise.h"

enum { MAX_NUMBER = 400 }; /* characters: the longest plain double has some 330 */

/* ---- To strings ---------------------------------------------------------------------------------------- */

static int write_float(double v, ortc_dtype t, char *to, size_t bytes)
{
    if (v != v) return snprintf(to, bytes, "NaN");
    if (isinf(v)) return snprintf(to, bytes, v < 0 ? "-INF" : "INF");
    int digits = 1;
    for (; digits <= 17; digits++) {
        unsigned char element[16] = {0};
        snprintf(to, bytes, "%.*e", digits - 1, v);
        ortc_store_f64(element, t, 0, strtod(to, NULL));
        if (ortc_load_f64(element, t, 0) == v) break;
    }
    const int exponent = atoi(strchr(to, 'e') + 1), decimals = digits - 1 - exponent;
    if (exponent < -5 || exponent > 15) return snprintf(to, bytes, "%.*g", digits, v);
    return snprintf(to, bytes, "%.*f", decimals > 0 ? decimals : 0, v);
}

static ortc_status to_strings(ortc_call *c)
{
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    ortc_value *v;
    char text[64];
    ORTC_TRY(ortc_call_strings(c, c->out[0].rank, c->out[0].dims, &v));
    ortc_status s = ORTC_OK;
    for (int64_t i = 0; i < count && s == ORTC_OK; i++) {
        int n;
        switch (ortc_class_of(x->dtype)) {
        case ORTC_CLASS_FLOAT:
            n = write_float(ortc_load_f64(x->data, x->dtype, i), x->dtype, text, sizeof text);
            break;
        case ORTC_CLASS_INT:
            n = snprintf(text, sizeof text, "%lld", (long long)ortc_load_i64(x->data, x->dtype, i));
            break;
        default:
            n = snprintf(text, sizeof text, "%llu", (unsigned long long)ortc_load_u64(x->data, x->dtype, i));
            break;
        }
        s = ortc_call_append(c, v, text, (size_t)n);
        if (s == ORTC_OK && i % 4096 == 4095) s = ortc_poll(c);
    }
    if (s == ORTC_OK) return ortc_call_give(c, 0, v);
    ortc_call_drop(c, v);
    return s;
}

/* ---- From strings -------------------------------------------------------------------------------------- */

/* The numbers as f32, f64, i64 or u64, for Cast to go on with. */
static ortc_dtype step_type(ortc_dtype to)
{
    switch (ortc_class_of(to)) {
    case ORTC_CLASS_INT: return ORTC_I64;
    case ORTC_CLASS_UINT: return to == ORTC_BOOL ? ORTC_F64 : ORTC_U64;
    default: return to == ORTC_F32 ? ORTC_F32 : ORTC_F64;
    }
}

/* The whole text as an element; false: it is no number. */
static bool read_number(ortc_span text, ortc_dtype t, void *to, int64_t i)
{
    char buffer[MAX_NUMBER + 1], *end = buffer;
    if (text.length == 0 || text.length > MAX_NUMBER) return false;
    memcpy(buffer, text.text, text.length);
    buffer[text.length] = 0;
    if (t == ORTC_I64 || t == ORTC_U64) {
        errno = 0;
        const uint64_t v = t == ORTC_I64 ? (uint64_t)strtoll(buffer, &end, 10) : strtoull(buffer, &end, 10);
        if (end == buffer + text.length && !errno) {
            ((uint64_t *)to)[i] = v;
            return true;
        }
        const double d = strtod(buffer, &end); /* 2.5 and 1e3: towards zero */
        ((uint64_t *)to)[i] = t == ORTC_I64 ? (uint64_t)ortc_int_of_double(d) : ortc_uint_of_double(d);
    } else if (t == ORTC_F32) {
        ((float *)to)[i] = strtof(buffer, &end);
    } else {
        ((double *)to)[i] = strtod(buffer, &end);
    }
    return end == buffer + text.length;
}

static ortc_status from_strings(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *in = c->in;
    const int64_t count = ortc_view_count(in);
    ortc_view step = *in;
    step.dtype = step_type(c->out[0].dtype);
    step.data = malloc((size_t)count * 8 + 8);
    if (!step.data)
        return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld numbers", (long long)count);
    ortc_status s = ORTC_OK;
    for (int64_t i = 0; i < count && s == ORTC_OK; i++) {
        const ortc_span text = ortc_span_at(in, i);
        if (!read_number(text, step.dtype, step.data, i))
            s = ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "string %lld, '%.*s', is not a number", (long long)i,
                               (int)(text.length < 60 ? text.length : 60), text.text);
        else if (i % 4096 == 4095)
            s = ortc_poll(c);
    }
    if (s == ORTC_OK) {
        c->in = &step;
        s = ortc_ref_cast.run(state, pstate, c);
        c->in = in;
    }
    free(step.data);
    return s;
}

static ortc_status cast_string_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING && c->out[0].dtype == ORTC_STRING)
        return ortc_run_on_strings(ortc_ref_cast.run, state, pstate, c);
    const locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!plain) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a locale");
    const locale_t before = uselocale(plain);
    const ortc_status s = c->out[0].dtype == ORTC_STRING ? to_strings(c) : from_strings(state, pstate, c);
    uselocale(before);
    freelocale(plain);
    return s;
}

static ortc_status cast_string_plan(const void *state, ortc_plan *p, void **pstate)
{
    if (p->in[0].dtype == p->out[0].dtype) ortc_plan_view(p, 0, 0, 0);
    return ORTC_OK;
}

static ortc_status cast_string_prepare(const ortc_node *n, ortc_prep *prep, void **state)
{
    return ortc_ref_cast.prepare(n, prep, state);
}

const ortc_kernel ortc_ref_cast_string = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "cast_string.ref",
                                          .prepare = cast_string_prepare,
                                          .plan = cast_string_plan,
                                          .run = cast_string_run};
