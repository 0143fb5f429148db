/* kernels/layernorm/op.c: normalisations of a sample by its own statistics: schemas, shapes, older forms.
 *
 *   LayerNormalization     over the dims from `axis` on; Scale and B stretched to X
 *   RMSNormalization       the same without a mean and B
 *   InstanceNormalization  X [N, C, ...]: over all that follows C; scale, B [C]
 *   GroupNormalization     X [N, C, ...]: over a group of C / num_groups channels; scale, bias [C], in 18 [num_groups]
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_layernorm, ortc_kernels_cpu_layernorm;

/* Inputs 1 .. n are stretched to X, never X to them. */
static ortc_status check_stretched(ortc_infer *c, const ortc_port *x)
{
    for (uint32_t i = 1; i < ortc_node_n_in(ortc_infer_node(c)); i++) {
        const ortc_port p = ortc_infer_in(c, i);
        if (p.rank > x->rank)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u has rank %d, X %d", i, p.rank, x->rank);
        for (int32_t d = 0; d < p.rank; d++) {
            const ortc_dim have = p.dims[d], want = x->dims[x->rank - p.rank + d];
            if (have >= 0 && want >= 0 && have != 1 && have != want)
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u has %lld elements in dim %d, X has %lld", i,
                                       (long long)have, d, (long long)want);
        }
    }
    return ORTC_OK;
}

/* Mean and InvStdDev have the type that stash_type says; Y has Scale's, which but for RMSNormalization is X's. */
static ortc_status infer_layer(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0);
    const int64_t stash = ortc_node_int(n, "stash_type", 1);
    ortc_dim dims[ORTC_RANK_LIMIT];
    int32_t axis = 0;
    if (stash != ORTC_F32 && stash != ORTC_BF16)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "stash_type is %lld, expected 1 (float) or 16 (bfloat16)", (long long)stash);
    if (x.rank >= 0) {
        ORTC_TRY(ortc_infer_axis(c, ortc_node_int(n, "axis", -1), x.rank, &axis));
        ORTC_TRY(check_stretched(c, &x));
    }
    ORTC_TRY(ortc_infer_out(c, 0, ortc_infer_in(c, 1).dtype, x.rank, x.dims));
    for (int32_t d = 0; d < x.rank; d++)
        dims[d] = d < axis ? x.dims[d] : 1;
    for (uint32_t i = 1; i < ortc_node_n_out(n); i++)
        ORTC_TRY(ortc_infer_out(c, i, (ortc_dtype)stash, x.rank, dims));
    return ORTC_OK;
}

static ortc_status infer_channels(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0);
    if (x.rank >= 0 && x.rank < 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X has rank %d, expected N, C and more", x.rank);
    ortc_dim channels = x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[1];
    for (uint32_t i = 1; i < 3; i++) {
        const ortc_port p = ortc_infer_in(c, i);
        if (p.rank >= 0 && p.rank != 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u has rank %d, expected one value per channel", i, p.rank);
        if (p.rank == 1)
            ORTC_TRY(ortc_infer_same(c, "channels of X and values per channel", channels, p.dims[0], &channels));
    }
    if (!strcmp(ortc_node_op(n), "GroupNormalization")) {
        const int64_t groups = ortc_node_int(n, "num_groups", 1);
        if (groups < 1 || (channels >= 0 && channels % groups != 0))
            return ortc_infer_fail(c, ORTC_INVALID_MODEL, "%lld channels are not %lld equal groups", (long long)channels,
                                   (long long)groups);
    }
    return ortc_infer_like(c, 0, 0);
}

/* 18: one scale and one bias per group; each is repeated for the group's channels. */
static ortc_status lift_group(ortc_lift *l)
{
    const ortc_port x = ortc_node_in(ortc_lift_node(l), 0);
    const int64_t groups = ortc_node_int(ortc_lift_node(l), "num_groups", 0);
    if (x.rank < 2 || x.dims[1] < 0)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "for this version the channels of X must be known");
    if (groups < 1 || x.dims[1] % groups != 0)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "%lld channels are not %lld equal groups", (long long)x.dims[1],
                              (long long)groups);
    const int64_t column[2] = {groups, 1}, wide[2] = {groups, x.dims[1] / groups}, flat[1] = {x.dims[1]};
    for (uint32_t i = 1; i < 3; i++) {
        ORTC_TRY(ortc_lift_wrap_in(l, i, "Reshape", column, 2));
        ORTC_TRY(ortc_lift_wrap_in(l, i, "Expand", wide, 2));
        ORTC_TRY(ortc_lift_wrap_in(l, i, "Reshape", flat, 1));
    }
    return ORTC_OK;
}

static const ortc_op ops[] = {
    ORTC_OP("", "LayerNormalization", 17, 17, "", "X:T Scale:T B:T?", "Y:T Mean:U? InvStdDev:U?",
            "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", "T=float U=f32,bf16", infer_layer, NULL, 0),
    ORTC_OP("", "RMSNormalization", 23, 23, "", "X:T scale:V", "Y:V", "axis:i=-1 epsilon:f=1e-5 stash_type:i=1",
            "T=float V=float", infer_layer, NULL, 0),
    ORTC_OP("", "InstanceNormalization", 22, 6, "6 1", "input:T scale:T B:T", "output:T", "epsilon:f=1e-5", "T=float",
            infer_channels, ortc_lift_consumed, 0),
    ORTC_OP("", "GroupNormalization", 21, 21, "18", "X:T scale:T bias:T", "Y:T",
            "epsilon:f=1e-5 num_groups:i! stash_type:i=1", "T=float", infer_channels, lift_group, 0),
};
ORTC_FAMILY(layernorm, ops, &ortc_kernels_ref_layernorm, &ortc_kernels_cpu_layernorm);
