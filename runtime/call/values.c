/* runtime/call/values.c: what a kernel may do with values that are not plain tensors: make them of others,
 * look into them, give them as results.
 *
 * Making values of values counts references and copies no tensor, but for those whose memory the run or the
 * caller will use again (ortc_value_keep).
 */
#include "values.h"

static ortc_error *error_of(ortc_call *c) { return ((ortc_step_call *)(void *)c)->env->error; }

void *ortc_value_content(const ortc_value *v)
{
    return ortc_value_is_tensor(v) ? v->data : (void *)(uintptr_t)v;
}

/* ---- Giving -------------------------------------------------------------------------------------------- */

static ortc_status wrong_type(ortc_step_call *c, uint32_t out, const ortc_type *expected, const ortc_value *v)
{
    char a[128], b[128];
    ortc_text ta = ORTC_TEXT(a), tb = ORTC_TEXT(b);
    ortc_text_type(&ta, expected);
    ortc_text_type(&tb, v->type);
    return ortc_fail(c->env->error, ORTC_TYPE_MISMATCH, "output %u is %s, expected %s", out, b, a);
}

ortc_status ortc_step_check_given(ortc_step_call *c, uint32_t out, const ortc_value *v)
{
    const ortc_view *view = &c->call.out[out];
    const ortc_type *expected = view->flags & ORTC_VIEW_VALUE ? c->node->out[out]->type
                                                              : ortc_tensor_type(view->dtype);
    if (v->pending)
        return ortc_fail(c->env->error, ORTC_INVALID_STATE,
                         "output %u: %lld of %lld strings were not appended", out, (long long)v->pending,
                         (long long)v->count);
    if (view->flags & ORTC_VIEW_VALUE ? expected && !ortc_type_equal(expected, v->type)
                                      : !ortc_type_equal(expected, v->type))
        return wrong_type(c, out, expected, v);
    if (view->flags & (ORTC_VIEW_VALUE | ORTC_VIEW_LATE)) return ORTC_OK;
    if (v->rank != view->rank || (v->rank && memcmp(v->dims, view->dims, (size_t)v->rank * sizeof *v->dims)))
        return ortc_fail(c->env->error, ORTC_SHAPE_MISMATCH, "output %u is not of the shape that was planned",
                         out);
    return ORTC_OK;
}

/* ---- The kernels' services ----------------------------------------------------------------------------- */

ortc_status ortc_call_api_keep(ortc_call *c, ortc_value *v, ortc_value **out)
{
    return ortc_value_keep(v, out, error_of(c));
}

ortc_status ortc_call_api_strings(ortc_call *c, int32_t rank, const int64_t *dims, ortc_value **out)
{
    return ortc_strings_begin(rank, dims, out, error_of(c));
}

ortc_status ortc_call_api_append(ortc_call *c, ortc_value *strings, const char *bytes, size_t n)
{
    return ortc_strings_append(strings, bytes, n, error_of(c));
}

/* Puts kept elements where `make` expects them. */
static ortc_status keep_all(ortc_call *c, int64_t n, ortc_value *const *from, ortc_value **to)
{
    for (int64_t i = 0; i < n; i++)
        ORTC_TRY(from[i]
                     ? ortc_value_keep(from[i], &to[i], error_of(c))
                     : ortc_fail(error_of(c), ORTC_INVALID_ARGUMENT, "element %lld is NULL", (long long)i));
    return ORTC_OK;
}

ortc_status ortc_call_api_sequence(ortc_call *c, const ortc_type *element, int64_t n,
                                   ortc_value *const *elements, ortc_value **out)
{
    *out = NULL;
    if (n < 0)
        return ortc_fail(error_of(c), ORTC_INVALID_ARGUMENT, "a sequence of %lld elements", (long long)n);
    ortc_value **kept = calloc((size_t)n + 1, sizeof *kept);
    if (!kept) return ortc_no_memory(error_of(c), (size_t)n);
    ortc_status s = keep_all(c, n, elements, kept);
    if (s == ORTC_OK) s = ortc_value_create_sequence(element, (size_t)n, kept, out, error_of(c));
    for (int64_t i = 0; i < n; i++) ortc_value_release(kept[i]);
    free(kept);
    return s;
}

ortc_status ortc_call_api_map(ortc_call *c, ortc_value *keys, ortc_value *values, ortc_value **out)
{
    ortc_value *kept[2] = {NULL, NULL};
    *out = NULL;
    ortc_status s = keep_all(c, 2, (ortc_value *[]){keys, values}, kept);
    if (s == ORTC_OK) s = ortc_value_create_map(kept[0], kept[1], out, error_of(c));
    ortc_value_release(kept[0]);
    ortc_value_release(kept[1]);
    return s;
}

ortc_status ortc_call_api_optional(ortc_call *c, const ortc_type *element, ortc_value *element_or_null,
                                   ortc_value **out)
{
    ortc_value *kept = NULL;
    *out = NULL;
    if (element_or_null) ORTC_TRY(ortc_value_keep(element_or_null, &kept, error_of(c)));
    ortc_status s = ortc_value_create_optional(element, kept, out, error_of(c));
    ortc_value_release(kept);
    return s;
}

int64_t ortc_call_api_count(ortc_call *c, const ortc_value *v)
{
    (void)c;
    return ortc_value_count(v);
}

ortc_value *ortc_call_api_element(ortc_call *c, const ortc_value *v, int64_t i)
{
    (void)c;
    return i < 0 ? NULL : ortc_value_element(v, (size_t)i);
}

const ortc_type *ortc_call_api_type(ortc_call *c, const ortc_value *v)
{
    (void)c;
    return ortc_value_type(v);
}
