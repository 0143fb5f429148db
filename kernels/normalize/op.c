/* kernels/normalize/op.c: normalisations without parameters: LpNormalization along an axis, LRN across channels,
 * MeanVarianceNormalization over a list of axes: schemas and shapes.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_normalize, ortc_kernels_cpu_normalize;

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
    if (size < 1)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute size is %lld", (long long)size);
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

static const ortc_op ops[] = {
    ORTC_OP("", "LpNormalization", 22, 1, "1", "input:T", "output:T", "axis:i=-1 p:i=2", "T=float", infer_lp, NULL, 0),
    ORTC_OP("", "LRN", 13, 1, "1", "X:T", "Y:T", "alpha:f=1e-4 beta:f=0.75 bias:f=1 size:i!", "T=float", infer_lrn, NULL, 0),
    ORTC_OP("", "MeanVarianceNormalization", 13, 9, "9", "X:T", "Y:T", "axes:is?", "T=float", infer_mvn, NULL, 0),
};
ORTC_FAMILY(normalize, ops, &ortc_kernels_ref_normalize, &ortc_kernels_cpu_normalize);
