/* runtime/execute/padding.c: what fills up the last blocks of a value in blocks is zero, whoever writes it
 * (ortc/op.h). In debug and sanitizer builds every host kernel finds NaN there, and is an error where it
 * leaves anything but zeros. */
#include "values.h"

#ifndef NDEBUG

/* Calls `each` with every run of bytes that only fills up. */
static bool walk(const ortc_view *v, bool (*each)(unsigned char *, size_t))
{
    const int64_t block = ortc_layout_block(v->layout);
    const int32_t axis = ortc_layout_axis(v->layout);
    if (!block || !v->data || !(v->flags & ORTC_VIEW_HOST) || !ortc_view_count(v) ||
        v->dims[axis] % block == 0)
        return true;
    const size_t bytes = ortc_dtype_bits(v->dtype) / 8;
    const int64_t used = v->dims[axis] % block, blocks = v->dims[axis] / block + 1;
    int64_t outer = 1, inner = 1;
    bool behind = false;
    for (int32_t i = 0; i < v->rank; i++) {
        const int32_t a = ortc_layout_axis_at(v->layout, i);
        behind |= a == axis;
        if (a != axis) *(behind ? &inner : &outer) *= v->dims[a];
    }
    for (int64_t i = 0; i < outer; i++)
        for (int64_t k = 0; k < inner; k++) {
            const int64_t at = (((i + 1) * blocks - 1) * inner + k) * block + used;
            if (!each((unsigned char *)v->data + (size_t)at * bytes, (size_t)(block - used) * bytes))
                return false;
        }
    return true;
}

static bool poison(unsigned char *p, size_t bytes)
{
    memset(p, 0xFF, bytes);
    return true;
}
static bool is_zero(unsigned char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i]) return false;
    return true;
}

void ortc_step_poison_padding(const ortc_step *s, const ortc_call *call)
{
    for (uint32_t i = 0; i < s->n_out; i++)
        if (!s->out[i].over) walk(&call->out[i], poison);
}

ortc_status ortc_step_check_padding(const ortc_step *s, const ortc_call *call, ortc_error *error)
{
    for (uint32_t i = 0; i < s->n_out; i++)
        if (!walk(&call->out[i], is_zero))
            return ortc_fail(
                error, ORTC_INTERNAL,
                "node '%s' (%s): kernel '%s' leaves more than zeros in the last block of output %u",
                s->node->name, s->node->type, s->kernel->name, i);
    return ORTC_OK;
}

#endif
