/* kernels/shape/ref_move.c: Transpose, Slice and Expand on ref as one loop: elements of the output in order,
 * taken from the input by strides. Where those elements lie together already, the output is a view.
 */
#include <stdlib.h>

#include "kernels/common/move.h"
#include "kernels/common/strings.h"
#include "kernels/shape/shape_ops.h"

/* Elements taken by strides lie together in the order of the output. */
static bool lies_dense(int32_t rank, const int64_t *dims, const int64_t *strides)
{
    int64_t expected = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        if (dims[d] < 0 || dims[d] == 0) return false;
        if (dims[d] != 1 && strides[d] != expected) return false;
        expected *= dims[d];
    }
    return true;
}

static void view_if_dense(ortc_plan *p, const int64_t *strides, int64_t start)
{
    const uint32_t bits = ortc_dtype_bits(p->out[0].dtype);
    if (lies_dense(p->out[0].rank, p->out[0].dims, strides) && start * (int64_t)bits % 8 == 0)
        ortc_plan_view(p, 0, 0, start * (int64_t)bits / 8);
}

static bool all_known(const ortc_view *v)
{
    for (int32_t d = 0; d < v->rank; d++)
        if (v->dims[d] < 0) return false;
    return true;
}

/* ---- Transpose ----------------------------------------------------------------------------------------- */

typedef struct transpose_state {
    bool reverse; /* no perm: the dims in reverse order */
    int32_t perm[ORTC_RANK_LIMIT];
} transpose_state;

ortc_status ortc_transpose_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    size_t count;
    const int64_t *perm = ortc_node_ints(n, "perm", &count);
    transpose_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->reverse = !perm;
    for (size_t i = 0; i < count && i < ORTC_RANK_LIMIT; i++) s->perm[i] = (int32_t)perm[i];
    *out = s;
    return ORTC_OK;
}

int32_t ortc_transpose_axis(const void *state, int32_t rank, int32_t d)
{
    const transpose_state *s = state;
    return s->reverse ? rank - 1 - d : s->perm[d];
}

void ortc_transpose_strides(const void *state, const ortc_view *x, int64_t *strides)
{
    int64_t dense[ORTC_RANK_LIMIT];
    ortc_dense_strides(x->rank, x->dims, dense);
    for (int32_t d = 0; d < x->rank; d++) strides[d] = dense[ortc_transpose_axis(state, x->rank, d)];
}

ortc_status ortc_transpose_plan(const void *state, ortc_plan *p, void **pstate)
{
    int64_t strides[ORTC_RANK_LIMIT];
    if (!all_known(&p->in[0])) return ORTC_OK;
    ortc_transpose_strides(state, &p->in[0], strides);
    view_if_dense(p, strides, 0);
    return ORTC_OK;
}

static ortc_status transpose_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(transpose_run, state, pstate, c);
    int64_t strides[ORTC_RANK_LIMIT];
    ortc_transpose_strides(state, &c->in[0], strides);
    return ortc_move_strided(c, c->out[0].rank, c->out[0].dims, strides, 0);
}

/* ---- Slice --------------------------------------------------------------------------------------------- */

ortc_status ortc_slice_plan(const void *state, ortc_plan *p, void **pstate)
{
    int64_t strides[ORTC_RANK_LIMIT], start;
    for (uint32_t i = 1; i < p->n_in; i++)
        if (p->in[i].dtype && (!p->in[i].data || !all_known(&p->in[i]))) return ORTC_OK;
    if (all_known(&p->in[0]) && all_known(&p->out[0]) && ortc_view_count(&p->out[0]) > 0 &&
        ortc_slice_strides(p->in, p->n_in, strides, &start))
        view_if_dense(p, strides, start);
    return ORTC_OK;
}

static ortc_status slice_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(slice_run, state, pstate, c);
    int64_t strides[ORTC_RANK_LIMIT], start;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    if (!ortc_slice_strides(c->in, c->n_in, strides, &start))
        return ortc_call_fail(
            c, ORTC_INVALID_ARGUMENT,
            "its bounds differ in number, an axis is outside of the rank or given twice, or a step is 0");
    return ortc_move_strided(c, c->out[0].rank, c->out[0].dims, strides, start);
}

/* ---- Expand -------------------------------------------------------------------------------------------- */

static ortc_status expand_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(expand_run, state, pstate, c);
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    int64_t dense[ORTC_RANK_LIMIT], strides[ORTC_RANK_LIMIT];
    ortc_dense_strides(x->rank, x->dims, dense);
    for (int32_t d = 0; d < y->rank; d++) {
        const int32_t i = d - (y->rank - x->rank);
        strides[d] = i >= 0 && x->dims[i] != 1 ? dense[i] : 0;
    }
    return ortc_move_strided(c, c->out[0].rank, c->out[0].dims, strides, 0);
}

const ortc_kernel ortc_ref_transpose = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "transpose.ref",
                                        .prepare = ortc_transpose_prepare,
                                        .plan = ortc_transpose_plan,
                                        .run = transpose_run};
const ortc_kernel ortc_ref_slice = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "slice.ref",
                                    .host_in = 0x1e,
                                    .plan = ortc_slice_plan,
                                    .run = slice_run};
const ortc_kernel ortc_ref_expand = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "expand.ref",
                                     .host_in = 2,
                                     .run = expand_run};
