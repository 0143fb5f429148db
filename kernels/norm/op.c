/* kernels/norm/op.c: normalisations: schemas, shapes, older forms.
 *
 *   BatchNormalization         X [N, C, ...]; scale, B, input_mean, input_var [C]. With training_mode the
 *                              statistics are the
 *                              batch's own, and running_mean, running_var are the given ones moved towards
 *                              them by 1 - momentum
 *   LayerNormalization         over the dims from `axis` on; Scale and B stretched to X
 *   RMSNormalization           the same without a mean and B
 *   InstanceNormalization      X [N, C, ...]: over all that follows C; scale, B [C]
 *   GroupNormalization         X [N, C, ...]: over a group of C / num_groups channels; scale, bias [C], in
 *                              18 [num_groups]
 *   LpNormalization            along an axis
 *   LRN                        across neighbouring channels
 *   MeanVarianceNormalization  over a list of axes
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_norm_batch, ortc_kernels_ref_norm_layer,
    ortc_kernels_ref_norm_plain, ortc_kernels_cpu_norm_batch, ortc_kernels_cpu_norm_layer,
    ortc_kernels_cpu_norm_plain;

/* ---- By a batch's statistics --------------------------------------------------------------------------- */

static ortc_status infer_batch(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim channels = x.rank < 0 ? ORTC_DIM_UNKNOWN : x.rank < 2 ? 1 : x.dims[1];
    for (uint32_t i = 1; i < 5; i++) {
        const ortc_port p = ortc_infer_in(c, i);
        if (p.rank >= 0 && p.rank != 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                   "input %u has rank %d, expected one value per channel", i, p.rank);
        if (p.rank == 1)
            ORTC_TRY(
                ortc_infer_same(c, "channels of X and values per channel", channels, p.dims[0], &channels));
    }
    ORTC_TRY(ortc_infer_like(c, 0, 0));
    for (uint32_t i = 1; i < ortc_node_n_out(ortc_infer_node(c)); i++)
        ORTC_TRY(ortc_infer_out(c, i, ortc_infer_in(c, 3).dtype, 1, &channels));
    return ORTC_OK;
}

/* spatial = 0: statistics for every element of a sample, which are channels of a batch without spatial
 * dims. */
static ortc_status lift_not_spatial(ortc_lift *l)
{
    const ortc_port x = ortc_node_in(ortc_lift_node(l), 0);
    const int64_t flat[2] = {0, -1}, all[1] = {-1};
    int64_t back[ORTC_RANK_LIMIT] = {0};
    if (x.rank < 0) return ortc_lift_fail(l, ORTC_UNSUPPORTED, "spatial = 0 needs the shape of X");
    for (int32_t d = 1; d < x.rank; d++)
        if ((back[d] = x.dims[d]) < 0)
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "spatial = 0 needs the extents of X but the first");
    for (uint32_t i = 1; i < ortc_node_n_out(ortc_lift_node(l)); i++)
        ORTC_TRY(ortc_lift_wrap_out(l, i, "Reshape", back + 1, (size_t)x.rank - 1));
    ORTC_TRY(ortc_lift_wrap_in(l, 0, "Reshape", flat, 2));
    for (uint32_t i = 1; i < 5; i++) ORTC_TRY(ortc_lift_wrap_in(l, i, "Reshape", all, 1));
    return ortc_lift_wrap_out(l, 0, "Reshape", back, (size_t)x.rank);
}

/* Below 14 training was said by is_test (1, 6) or by wanting more outputs than Y (7, 9), and there were two
 * more of them, for a backward pass: the batch's own mean and variance (what the standard says; onnxruntime
 * gives 1 / sqrt(variance + epsilon) for the latter), which are running ones without momentum. */
static ortc_status lift_batch(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const bool spatial = ortc_node_int(n, "spatial", 1) != 0;
    bool saved = false, training = ortc_lift_version(l) < 7 && ortc_node_int(n, "is_test", 0) == 0;
    for (uint32_t i = 1; i < ortc_node_n_out(n); i++) {
        const bool wanted = ortc_node_out(n, i).edge != 0; /* its type may not be known yet */
        training |= wanted && ortc_lift_version(l) >= 7;
        saved |= wanted && (i == 3 || i == 4);
    }
    if (saved && !training)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "saved_mean and saved_var are for training");
    if (ortc_node_n_out(n) > (saved ? 5 : 3)) ORTC_TRY(ortc_lift_n_out(l, saved ? 5 : 3));
    if (!spatial) ORTC_TRY(lift_not_spatial(l));
    if (saved)
        return ortc_lift_write(
            l,
            "Y, running_mean, running_var = BatchNormalization(X, scale, B, input_mean, input_var) "
            "training_mode=1 &epsilon &momentum\n"
            "again, Y[3], Y[4] = BatchNormalization(X, scale, B, B, B) training_mode=1 momentum=0 &epsilon");
    ortc_lift_drop_attr(l, "is_test");
    ortc_lift_drop_attr(l, "spatial");
    ortc_lift_drop_attr(l, "consumed_inputs");
    if (training) ORTC_TRY(ortc_lift_set_int(l, "training_mode", 1));
    return ORTC_OK;
}

/* ---- By a sample's statistics -------------------------------------------------------------------------- */

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
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                       "input %u has %lld elements in dim %d, X has %lld", i, (long long)have,
                                       d, (long long)want);
        }
    }
    return ORTC_OK;
}

/* Mean and InvStdDev have the type that stash_type says; Y has Scale's, which but for RMSNormalization is
 * X's. */
static ortc_status infer_layer(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0);
    const int64_t stash = ortc_node_int(n, "stash_type", 1);
    ortc_dim dims[ORTC_RANK_LIMIT];
    int32_t axis = 0;
    if (stash != ORTC_F32 && stash != ORTC_BF16)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "stash_type is %lld, expected 1 (float) or 16 (bfloat16)", (long long)stash);
    if (x.rank >= 0) {
        ORTC_TRY(ortc_infer_axis(c, ortc_node_int(n, "axis", -1), x.rank, &axis));
        ORTC_TRY(check_stretched(c, &x));
    }
    ORTC_TRY(ortc_infer_out(c, 0, ortc_infer_in(c, 1).dtype, x.rank, x.dims));
    for (int32_t d = 0; d < x.rank; d++) dims[d] = d < axis ? x.dims[d] : 1;
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
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                   "input %u has rank %d, expected one value per channel", i, p.rank);
        if (p.rank == 1)
            ORTC_TRY(
                ortc_infer_same(c, "channels of X and values per channel", channels, p.dims[0], &channels));
    }
    if (!strcmp(ortc_node_op(n), "GroupNormalization")) {
        const int64_t groups = ortc_node_int(n, "num_groups", 1);
        if (groups < 1 || (channels >= 0 && channels % groups != 0))
            return ortc_infer_fail(c, ORTC_INVALID_MODEL, "%lld channels are not %lld equal groups",
                                   (long long)channels, (long long)groups);
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
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "%lld channels are not %lld equal groups",
                              (long long)x.dims[1], (long long)groups);
    const int64_t column[2] = {groups, 1}, wide[2] = {groups, x.dims[1] / groups}, flat[1] = {x.dims[1]};
    for (uint32_t i = 1; i < 3; i++) {
        ORTC_TRY(ortc_lift_wrap_in(l, i, "Reshape", column, 2));
        ORTC_TRY(ortc_lift_wrap_in(l, i, "Expand", wide, 2));
        ORTC_TRY(ortc_lift_wrap_in(l, i, "Reshape", flat, 1));
    }
    return ORTC_OK;
}

/* ---- Without parameters -------------------------------------------------------------------------------- */

static ortc_status infer_lp(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const int64_t p = ortc_node_int(ortc_infer_node(c), "p", 2);
    int32_t axis;
    if (p != 1 && p != 2)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute p is %lld, expected 1 or 2", (long long)p);
    if (x.rank >= 0)
        ORTC_TRY(ortc_infer_axis(c, ortc_node_int(ortc_infer_node(c), "axis", -1), x.rank, &axis));
    return ortc_infer_like(c, 0, 0);
}

static ortc_status infer_lrn(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const int64_t size = ortc_node_int(ortc_infer_node(c), "size", 0);
    if (size < 1) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute size is %lld", (long long)size);
    if (x.rank >= 0 && x.rank < 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X has rank %d, expected N, C and more", x.rank);
    return ortc_infer_like(c, 0, 0);
}

static ortc_status infer_mvn(ortc_infer *c)
{
    static const int64_t standard[] = {0, 2, 3};
    const ortc_port x = ortc_infer_in(c, 0);
    size_t count;
    const int64_t *axes = ortc_node_ints(ortc_infer_node(c), "axes", &count);
    if (!axes) {
        axes = standard;
        count = 3;
    }
    for (size_t i = 0; x.rank >= 0 && i < count; i++) {
        int32_t axis;
        ORTC_TRY(ortc_infer_axis(c, axes[i], x.rank, &axis));
    }
    return ortc_infer_like(c, 0, 0);
}

/* The standard has it from 17 on. In files of older operator sets it stands all the same: onnxruntime's
 * optimiser writes it, and means the same by it. */
static ortc_status lift_layer(ortc_lift *l)
{
    (void)l;
    return ORTC_OK;
}

static const ortc_op ops[] = {
    ORTC_OP("", "BatchNormalization", 15, 14, "14 9 7 6 1", "X:T scale:T1 B:T1 input_mean:T2 input_var:T2",
            "Y:T running_mean:T2? running_var:T2?", "epsilon:f=1e-5 momentum:f=0.9 training_mode:i=0",
            "T=float T1=float T2=float", infer_batch, lift_batch, 0),
    ORTC_OP("", "LayerNormalization", 17, 17, "1", "X:T Scale:T B:T?", "Y:T Mean:U? InvStdDev:U?",
            "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", "T=float U=f32,bf16", infer_layer, lift_layer, 0),
    ORTC_OP("", "RMSNormalization", 23, 23, "", "X:T scale:V", "Y:V",
            "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", "T=float V=float", infer_layer, NULL, 0),
    ORTC_OP("", "InstanceNormalization", 22, 6, "6 1", "input:T scale:T B:T", "output:T", "epsilon:f=1e-5",
            "T=float", infer_channels, ortc_lift_consumed, 0),
    ORTC_OP("", "GroupNormalization", 21, 21, "18", "X:T scale:T bias:T", "Y:T",
            "epsilon:f=1e-5 num_groups:i! stash_type:i=1", "T=float", infer_channels, lift_group, 0),
    ORTC_OP("", "LpNormalization", 22, 1, "1", "input:T", "output:T", "axis:i=-1 p:i=2", "T=float", infer_lp,
            NULL, 0),
    ORTC_OP("", "LRN", 13, 1, "1", "X:T", "Y:T", "alpha:f=1e-4 beta:f=0.75 bias:f=1 size:i!", "T=float",
            infer_lrn, NULL, 0),
    ORTC_OP("", "MeanVarianceNormalization", 13, 9, "9", "X:T", "Y:T", "axes:is?", "T=float", infer_mvn, NULL,
            0),
};
ORTC_FAMILY(norm, ops, &ortc_kernels_ref_norm_batch, &ortc_kernels_ref_norm_layer,
            &ortc_kernels_ref_norm_plain, &ortc_kernels_cpu_norm_batch, &ortc_kernels_cpu_norm_layer,
            &ortc_kernels_cpu_norm_plain);
