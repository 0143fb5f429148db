/* kernels/norm/op.c: BatchNormalization: schema, shape, older forms.
 *
 * X [N, C, ...]; scale, B, input_mean, input_var [C]. With training_mode the statistics are the batch's own, and
 * running_mean, running_var are the given ones moved towards them by 1 - momentum.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_norm, ortc_kernels_cpu_norm;

static ortc_status infer_batch(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim channels = x.rank < 0 ? ORTC_DIM_UNKNOWN : x.rank < 2 ? 1 : x.dims[1];
    for (uint32_t i = 1; i < 5; i++) {
        const ortc_port p = ortc_infer_in(c, i);
        if (p.rank >= 0 && p.rank != 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u has rank %d, expected one value per channel", i, p.rank);
        if (p.rank == 1)
            ORTC_TRY(ortc_infer_same(c, "channels of X and values per channel", channels, p.dims[0], &channels));
    }
    ORTC_TRY(ortc_infer_like(c, 0, 0));
    for (uint32_t i = 1; i < ortc_node_n_out(ortc_infer_node(c)); i++)
        ORTC_TRY(ortc_infer_out(c, i, ortc_infer_in(c, 3).dtype, 1, &channels));
    return ORTC_OK;
}

/* spatial = 0: statistics for every element of a sample, which are channels of a batch without spatial dims. */
static ortc_status lift_not_spatial(ortc_lift *l)
{
    const ortc_port x = ortc_node_in(ortc_lift_node(l), 0);
    const int64_t flat[2] = {0, -1}, all[1] = {-1};
    int64_t back[ORTC_RANK_LIMIT] = {0};
    if (x.rank < 0)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "spatial = 0 needs the shape of X");
    for (int32_t d = 1; d < x.rank; d++)
        if ((back[d] = x.dims[d]) < 0)
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "spatial = 0 needs the extents of X but the first");
    ORTC_TRY(ortc_lift_wrap_in(l, 0, "Reshape", flat, 2));
    for (uint32_t i = 1; i < 5; i++)
        ORTC_TRY(ortc_lift_wrap_in(l, i, "Reshape", all, 1));
    return ortc_lift_wrap_out(l, 0, "Reshape", back, (size_t)x.rank);
}

/* Below 14 training was said by is_test (1, 6) or by wanting more outputs than Y (7, 9), and there were two more of
 * them, for a backward pass. */
static ortc_status lift_batch(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const bool spatial = ortc_node_int(n, "spatial", 1) != 0;
    bool training = ortc_lift_version(l) < 7 && ortc_node_int(n, "is_test", 0) == 0;
    for (uint32_t i = 1; i < ortc_node_n_out(n); i++) {
        const bool wanted = ortc_node_out(n, i).type != NULL;
        training |= wanted && ortc_lift_version(l) >= 7;
        if (wanted && i > 2)
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "saved_mean and saved_var are for training");
    }
    if (ortc_node_n_out(n) > 3)
        ORTC_TRY(ortc_lift_n_out(l, 3));
    ortc_lift_drop_attr(l, "is_test");
    ortc_lift_drop_attr(l, "spatial");
    ortc_lift_drop_attr(l, "consumed_inputs");
    if (training)
        ORTC_TRY(ortc_lift_set_int(l, "training_mode", 1));
    return spatial ? ORTC_OK : lift_not_spatial(l);
}

static const ortc_op ops[] = {
    ORTC_OP("", "BatchNormalization", 15, 14, "14 9 7 6 1", "X:T scale:T1 B:T1 input_mean:T2 input_var:T2",
            "Y:T running_mean:T2? running_var:T2?", "epsilon:f=1e-5 momentum:f=0.9 training_mode:i=0",
            "T=float T1=float T2=float", infer_batch, lift_batch, 0),
};
ORTC_FAMILY(norm, ops, &ortc_kernels_ref_norm, &ortc_kernels_cpu_norm);
