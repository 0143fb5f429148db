/* kernels/pool/ref_unpool.c: MaxUnpool on ref: every element goes back to where MaxPool found it, everything
 * else is 0.
 *
 * Indices count the elements of the tensor that the window says was pooled, batch and channels included. With
 * output_shape that tensor lies in the first corner of a larger (or smaller) one, as the standard's evaluator
 * has it.
 */
#include <stdlib.h>

#include "kernels/common/window.h"

extern const ortc_kernel ortc_ref_max_unpool;

static ortc_status unpool_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *attribute, *wrong;
    ortc_window *w = malloc(sizeof *w);
    if (!w) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    wrong = ortc_window_read(n, -1, w, &attribute);
    if (wrong) {
        free(w);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    }
    *out = w;
    return ORTC_OK;
}

/* The extents of what was pooled, and its elements; false: too many to be counted. */
static bool pooled(const ortc_window *w, const ortc_view *x, int64_t *dims, int64_t *count)
{
    *count = 1;
    for (int32_t d = 0; d < x->rank; d++) {
        dims[d] = x->dims[d];
        if (d >= 2) {
            const int32_t i = d - 2;
            if (__builtin_mul_overflow(x->dims[d] - 1, w->stride[i], &dims[d]) ||
                __builtin_add_overflow(dims[d], w->kernel[i] - w->pad_begin[i] - w->pad_end[i], &dims[d]))
                return false;
            if (dims[d] < 0) dims[d] = 0;
        }
        if (__builtin_mul_overflow(*count, dims[d], count)) return false;
    }
    return true;
}

static ortc_status unpool_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    int64_t dims[ORTC_RANK_LIMIT], count, n = ortc_view_count(x);
    const size_t bytes = ortc_bytes_of(ortc_dtype_bits(y->dtype), ortc_view_count(y));
    if (bytes) memset(y->data, 0, bytes);
    if (n == 0 || ortc_view_count(y) == 0) return ORTC_OK;
    if (!pooled(state, x, dims, &count))
        return ortc_call_fail(c, ORTC_LIMIT, "what was pooled has too many elements");
    const bool whole = !memcmp(dims, y->dims, (size_t)y->rank * sizeof *dims); /* an index is a place */
    const uint32_t bits = ortc_dtype_bits(x->dtype);
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = ortc_load_i64(c->in[1].data, ORTC_I64, i);
        int64_t rest = index, at = whole ? index : 0, step = 1;
        bool inside = true;
        if (i % 65536 == 0) ORTC_TRY(ortc_poll(c));
        if (index < 0 || index >= count)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "index %lld is outside of %lld pooled elements",
                                  (long long)index, (long long)count);
        for (int32_t d = x->rank - 1; d >= 0 && !whole; d--) {
            inside = inside && rest % dims[d] < y->dims[d];
            at += rest % dims[d] * step;
            rest /= dims[d];
            step *= y->dims[d];
        }
        if (inside) ortc_move_element(y->data, at, x->data, i, bits);
    }
    return ORTC_OK;
}

const ortc_kernel ortc_ref_max_unpool = {.size = ORTC_SIZED(ortc_kernel),
                                         .name = "max_unpool.ref",
                                         .prepare = unpool_prepare,
                                         .run = unpool_run};
