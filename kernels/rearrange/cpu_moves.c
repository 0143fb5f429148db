/* kernels/rearrange/cpu_tile.c: Tile on the cpu provider, for elements of whole bytes: moves by strides
 * (kernels/common/strided.h), in which a repeat is a dim along which the source stays. */
#include "kernels/common/strided.h"
#include "kernels/rearrange/rearrange.h"

static ortc_status tile_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *y = &p->out[0];
    (void)state, (void)pstate;
    ortc_plan_cost(p, 0, 2.0 * (double)ortc_view_count(y) * ortc_dtype_bits(y->dtype) / 8);
    return ORTC_OK;
}

static ortc_status tile_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    int64_t dense[ORTC_RANK_LIMIT];
    ortc_strided m = {.to = y->data, .from = x->data, .bytes = ortc_dtype_bits(y->dtype) / 8};
    (void)state, (void)pstate;
    if (ortc_view_count(y) == 0) return ORTC_OK;
    ortc_dense_strides(x->rank, x->dims, dense);
    for (int32_t d = 0; d < x->rank; d++) { /* a result with elements has at most 62 dims that are not 1 */
        if (y->dims[d] != x->dims[d]) {
            m.dims[m.rank] = y->dims[d] / x->dims[d];
            m.from_step[m.rank++] = 0;
        }
        if (x->dims[d] != 1) {
            m.dims[m.rank] = x->dims[d];
            m.from_step[m.rank++] = dense[d];
        }
    }
    ortc_dense_strides(m.rank, m.dims, m.to_step);
    return ortc_strided_move(c, &m);
}

const ortc_kernel ortc_cpu_tile = {
    .size = ORTC_SIZED(ortc_kernel), .name = "tile.cpu", .host_in = 2, .plan = tile_plan, .run = tile_run};
