/* kernels/loss/op.c: NegativeLogLikelihoodLoss, and SoftmaxCrossEntropyLoss, which is LogSoftmax and the
 * first: schemas and shapes. N samples, C classes (axis 1), any dims behind them.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_loss;

static ortc_status infer_loss(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), target = ortc_infer_in(c, 1), weight = ortc_infer_in(c, 2);
    const char *how = ortc_node_string(ortc_infer_node(c), "reduction", "mean");
    const bool each = !strcmp(how, "none");
    ortc_dim same;
    if (!each && strcmp(how, "mean") != 0 && strcmp(how, "sum") != 0)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "attribute reduction is '%s', expected none, sum or mean", how);
    if (x.rank == 0 || x.rank == 1)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected 2 at least", x.rank);
    if (x.rank >= 0 && target.rank >= 0) {
        if (target.rank != x.rank - 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the classes have rank %d, expected %d",
                                   target.rank, x.rank - 1);
        for (int32_t d = 0; d < target.rank; d++)
            ORTC_TRY(ortc_infer_same(c, "the classes do not fit the input", target.dims[d],
                                     x.dims[d ? d + 1 : 0], &same));
    }
    if (weight.type && weight.rank >= 0) {
        if (weight.rank != 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the weights have rank %d, expected 1",
                                   weight.rank);
        if (x.rank >= 0)
            ORTC_TRY(
                ortc_infer_same(c, "there is not a weight for each class", weight.dims[0], x.dims[1], &same));
    }
    return each ? ortc_infer_out(c, 0, x.dtype, target.rank, target.dims)
                : ortc_infer_out(c, 0, x.dtype, 0, NULL);
}

#define TYPES "T=float Tind=i32,i64"
/* Their logarithms of probabilities first. */
static ortc_status lift_softmax_loss(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const int32_t rank = ortc_node_in(n, 0).rank;
    if (rank == 0 || rank == 1)
        return ortc_lift_fail(l, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected 2 at least", rank);
    return ortc_lift_write(l,
                           "log_prob = LogSoftmax(scores) axis=1\n"
                           "output = NegativeLogLikelihoodLoss(log_prob, labels%s) &reduction &ignore_index",
                           ortc_node_n_in(n) > 2 && ortc_node_in(n, 2).type ? ", weights" : "");
}

static const ortc_op ops[] = {
    ORTC_OP("", "NegativeLogLikelihoodLoss", 22, 12, "13 12", "input:T target:Tind weight:T?", "loss:T",
            "ignore_index:i? reduction:s=mean", TYPES, infer_loss, NULL, 0),
    ORTC_COMPOSED("", "SoftmaxCrossEntropyLoss", 13, "12", "scores:T labels:Tind weights:T?",
                  "output:T log_prob:T?", "ignore_index:i? reduction:s=mean", TYPES, lift_softmax_loss),
};
ORTC_FAMILY(loss, ops, &ortc_kernels_ref_loss);
