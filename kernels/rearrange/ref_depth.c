/* kernels/rearrange/ref_depth.c: DepthToSpace and SpaceToDepth on ref: both are a tensor of six dims in
 * another order.
 *
 * B: the block's edge. Channels of the deep tensor are (row in the block, column in the block, channel) where
 * mode is DCR, (channel, row, column) where it is CRD.
 */
#include <stdlib.h>

#include "kernels/rearrange/rearrange.h"

typedef struct depth_state {
    int64_t b;
    bool crd;
} depth_state;

ortc_status ortc_depth_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    depth_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (depth_state){ortc_node_int(n, "blocksize", 1), !strcmp(ortc_node_string(n, "mode", "DCR"), "CRD")};
    *out = s;
    return ORTC_OK;
}

bool ortc_depth_is_crd(const void *state) { return ((const depth_state *)state)->crd; }

void ortc_depth_to_space(const void *state, const int64_t *x, ortc_depth_dims dims, ortc_depth_dims strides)
{
    const depth_state *s = state;
    const int64_t b = s->b, plane = x[2] * x[3], channels = x[1] / (b * b);
    const int64_t channel = s->crd ? b * b * plane : plane, block = s->crd ? plane : channels * plane;
    memcpy(dims, (const ortc_depth_dims){x[0], channels, x[2], b, x[3], b}, sizeof(ortc_depth_dims));
    memcpy(strides, (const ortc_depth_dims){x[1] * plane, channel, x[3], b * block, 1, block},
           sizeof(ortc_depth_dims));
}

void ortc_space_to_depth(const void *state, const int64_t *x, ortc_depth_dims dims, ortc_depth_dims strides)
{
    const depth_state *s = state;
    const int64_t b = s->b, plane = x[2] * x[3], h = x[2] / b, w = x[3] / b;
    const int64_t of[6] = {x[0], b, b, x[1], h, w}, step[6] = {x[1] * plane, x[3], 1, plane, b * x[3], b};
    static const int crd[6] = {0, 3, 1, 2, 4, 5};
    for (int d = 0; d < 6; d++) {
        dims[d] = of[s->crd ? crd[d] : d];
        strides[d] = step[s->crd ? crd[d] : d];
    }
}

static ortc_status to_space_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(to_space_run, state, pstate, c);
    ortc_depth_dims dims, strides;
    ortc_depth_to_space(state, c->in[0].dims, dims, strides);
    return ortc_move_strided(c, 6, dims, strides, 0);
}

static ortc_status to_depth_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(to_depth_run, state, pstate, c);
    ortc_depth_dims dims, strides;
    ortc_space_to_depth(state, c->in[0].dims, dims, strides);
    return ortc_move_strided(c, 6, dims, strides, 0);
}

const ortc_kernel ortc_ref_depth_to_space = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "depth_to_space.ref",
                                             .prepare = ortc_depth_prepare,
                                             .run = to_space_run};
const ortc_kernel ortc_ref_space_to_depth = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "space_to_depth.ref",
                                             .prepare = ortc_depth_prepare,
                                             .run = to_depth_run};
