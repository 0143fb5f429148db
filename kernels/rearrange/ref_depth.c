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

static ortc_status depth_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    depth_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (depth_state){ortc_node_int(n, "blocksize", 1), !strcmp(ortc_node_string(n, "mode", "DCR"), "CRD")};
    *out = s;
    return ORTC_OK;
}

static ortc_status to_space_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(to_space_run, state, pstate, c);
    const depth_state *s = state;
    const int64_t *x = c->in[0].dims, b = s->b, plane = x[2] * x[3], channels = x[1] / (b * b);
    const int64_t channel = s->crd ? b * b * plane : plane, block = s->crd ? plane : channels * plane;
    const int64_t dims[6] = {x[0], channels, x[2], b, x[3], b};
    const int64_t strides[6] = {x[1] * plane, channel, x[3], b * block, 1, block};
    return ortc_move_strided(c, 6, dims, strides, 0);
}

static ortc_status to_depth_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(to_depth_run, state, pstate, c);
    const depth_state *s = state;
    const int64_t *x = c->in[0].dims, b = s->b, plane = x[2] * x[3], image = x[1] * plane;
    const int64_t dcr_dims[6] = {x[0], b, b, x[1], x[2] / b, x[3] / b},
                  dcr[6] = {image, x[3], 1, plane, b * x[3], b};
    const int64_t crd_dims[6] = {x[0], x[1], b, b, x[2] / b, x[3] / b},
                  crd[6] = {image, plane, x[3], 1, b * x[3], b};
    return ortc_move_strided(c, 6, s->crd ? crd_dims : dcr_dims, s->crd ? crd : dcr, 0);
}

const ortc_kernel ortc_ref_depth_to_space = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "depth_to_space.ref",
                                             .prepare = depth_prepare,
                                             .run = to_space_run};
const ortc_kernel ortc_ref_space_to_depth = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "space_to_depth.ref",
                                             .prepare = depth_prepare,
                                             .run = to_depth_run};
