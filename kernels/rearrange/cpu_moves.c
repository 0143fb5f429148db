/* kernels/rearrange/cpu_moves.c: Tile, DepthToSpace and SpaceToDepth on the cpu provider, for elements of
 * whole bytes: moves by strides (kernels/common/strided.h). A repeat is a dim along which the source stays.
 */
#include "kernels/common/strided.h"
#include "kernels/rearrange/rearrange.h"

static ortc_status moves_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *y = &p->out[0];
    (void)state, (void)pstate;
    ortc_plan_cost(p, 0, 2.0 * (double)ortc_view_count(y) * ortc_dtype_bits(y->dtype) / 8);
    return ORTC_OK;
}

static ortc_strided move_of(const ortc_call *c)
{
    return (ortc_strided){.to = c->out[0].data,
                          .from = c->in[0].data,
                          .bytes = ortc_dtype_bits(c->out[0].dtype) / 8};
}

static ortc_status tile_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    int64_t dense[ORTC_RANK_LIMIT];
    ortc_strided m = move_of(c);
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

typedef void depth_fn(const void *state, const int64_t *x, ortc_depth_dims dims, ortc_depth_dims strides);
static ortc_status depth_run(depth_fn *order, const void *state, ortc_call *c)
{
    ortc_strided m = move_of(c);
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    m.rank = 6;
    order(state, c->in[0].dims, m.dims, m.from_step);
    ortc_dense_strides(m.rank, m.dims, m.to_step);
    return ortc_strided_move(c, &m);
}

static ortc_status to_space_run(const void *state, const void *pstate, ortc_call *c)
{
    (void)pstate;
    return depth_run(ortc_depth_to_space, state, c);
}

static ortc_status to_depth_run(const void *state, const void *pstate, ortc_call *c)
{
    (void)pstate;
    return depth_run(ortc_space_to_depth, state, c);
}

const ortc_kernel ortc_cpu_tile = {
    .size = ORTC_SIZED(ortc_kernel), .name = "tile.cpu", .host_in = 2, .plan = moves_plan, .run = tile_run};
const ortc_kernel ortc_cpu_depth_to_space = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "depth_to_space.cpu",
                                             .prepare = ortc_depth_prepare,
                                             .plan = moves_plan,
                                             .run = to_space_run};
const ortc_kernel ortc_cpu_space_to_depth = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "space_to_depth.cpu",
                                             .prepare = ortc_depth_prepare,
                                             .plan = moves_plan,
                                             .run = to_depth_run};
