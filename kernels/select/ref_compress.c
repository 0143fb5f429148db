/* kernels/select/ref_compress.c: Compress on ref: slices whose condition is true. A short condition leaves
 * out what it does not reach, a long one must be false beyond.
 */
#include <stdlib.h>

#include "kernels/common/strings.h"
#include "kernels/select/select.h"

ortc_status ortc_slices_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const ortc_attr axis = ortc_node_attr(n, "axis");
    ortc_slices *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (ortc_slices){axis.kind != ORTC_ATTR_INT, axis.i, ortc_node_int(n, "sorted", 1)};
    *out = s;
    return ORTC_OK;
}

static ortc_status compress_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(compress_run, state, pstate, c);
    const ortc_slices *s = state;
    const ortc_view *x = &c->in[0];
    const uint8_t *take = c->in[1].data;
    const int64_t asked = ortc_view_count(&c->in[1]);
    const uint32_t bits = ortc_dtype_bits(x->dtype);
    int64_t outer, n, inner, dims[ORTC_RANK_LIMIT], found = 0, to = 0;
    int32_t axis;
    ortc_slices_of(s, x, &outer, &n, &inner, &axis);
    for (int64_t i = 0; i < asked; i++) {
        if (take[i] && i >= n)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                  "condition[%lld] is true, but there are %lld slices", (long long)i,
                                  (long long)n);
        found += take[i] != 0;
    }
    const int32_t rank = ortc_slices_dims(s, x, axis, found, dims);
    ORTC_TRY(ortc_call_resize(c, 0, rank, dims));
    for (int64_t o = 0; o < outer && found && inner; o++) {
        const int64_t full = to + found * inner;
        for (int64_t i = 0; to < full; i++) {
            int64_t run = 0;  /* slices that are taken together */
            if (inner == 1) { /* no branch on what nobody can foretell */
                ortc_move_element(c->out[0].data, to, x->data, o * n + i, bits);
                to += take[i] != 0;
                continue;
            }
            while (i + run < asked && take[i + run]) run++;
            ortc_move_elements(c->out[0].data, to, x->data, (o * n + i) * inner, run * inner, bits);
            to += run * inner;
            i += run;
        }
        ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

const ortc_kernel ortc_ref_compress = {.size = ORTC_SIZED(ortc_kernel),
                                       .flags = ORTC_KERNEL_LATE_OUT,
                                       .name = "compress.ref",
                                       .prepare = ortc_slices_prepare,
                                       .run = compress_run};
