/* kernels/attention/op_flex.c: FlexAttention: attention whose scores and probabilities go through subgraphs,
 * as the standard's own operators with those subgraphs among them.
 *
 * Q [B, H, L, E], K and V [B, G, S, ..]: each of the G heads of keys and values serves H / G heads of queries
 * in a row.
 */
#include <math.h>

#include "kernels/attention/attention.h"
#include "kernels/common/shape.h"

/* name_heads: K or V with each head as often as heads of queries share it. */
static ortc_status repeat(ortc_lift *l, const char *name)
{
    return ortc_lift_write(l,
                           "%s_5d = Unsqueeze(%s, [2])\n"
                           "%s_times = Concat([1,1], times, [1,1]) axis=0\n"
                           "%s_all = Expand(%s_5d, %s_times)\n"
                           "%s_batch = Shape(%s) start=0 end=1\n"
                           "%s_rest = Shape(%s) start=2\n"
                           "%s_target = Concat(%s_batch, q_heads, %s_rest) axis=0\n"
                           "%s_heads = Reshape(%s_all, %s_target)",
                           name, name, name, name, name, name, name, name, name, name, name, name, name, name,
                           name, name);
}

/* root: the square root of the scale: each side of the product takes one, so that f16 does not overflow
 * before the sum. */
static ortc_status write_root(ortc_lift *l, const ortc_attr *scale, ortc_dim size)
{
    if (scale->kind || size > 0)
        return ortc_lift_write(l, "root = Cast(%.9g:f32) to=@Q",
                               (double)sqrtf(scale->kind ? scale->f : 1 / sqrtf((float)size)));
    return ortc_lift_write(l, "size = Shape(Q) start=3\n"
                              "elements = Cast(size) to=1\n"
                              "inverse = Reciprocal(elements)\n"
                              "half_root = Sqrt(inverse)\n"
                              "quarter_root = Sqrt(half_root)\n"
                              "root = Cast(quarter_root) to=@Q");
}

ortc_status ortc_lift_flex_attention(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const ortc_port q = ortc_node_in(n, 0), k = ortc_node_in(n, 1), v = ortc_node_in(n, 2);
    const ortc_attr scale = ortc_node_attr(n, "scale"), precision = ortc_node_attr(n, "softmax_precision");
    const bool score_mod = ortc_node_attr(n, "score_mod").kind, prob_mod = ortc_node_attr(n, "prob_mod").kind;
    const int64_t compute = precision.kind ? precision.i : q.dtype == ORTC_F64 ? ORTC_F64 : ORTC_F32;
    if (q.rank != 4 || k.rank != 4 || v.rank != 4)
        return ortc_lift_fail(l,
                              q.rank < 0 || k.rank < 0 || v.rank < 0 ? ORTC_UNSUPPORTED : ORTC_SHAPE_MISMATCH,
                              "Q, K and V must be known to have four dims");
    if (compute <= 0 || compute >= ORTC_DTYPE_COUNT || !(ORTC_TYPE(compute) & ORTC_TYPES_FLOAT))
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "attribute softmax_precision is %lld",
                              (long long)compute);
    const bool shared = q.dims[1] != k.dims[1];
    if (shared && q.dims[1] >= 0 && k.dims[1] >= 0 && (k.dims[1] == 0 || q.dims[1] % k.dims[1]))
        return ortc_lift_fail(l, ORTC_SHAPE_MISMATCH, "%lld heads of queries cannot share %lld of keys",
                              (long long)q.dims[1], (long long)k.dims[1]);
    if (shared) {
        ORTC_TRY(ortc_lift_write(l, "q_heads = Shape(Q) start=1 end=2\n"
                                    "k_heads = Shape(K) start=1 end=2\n"
                                    "times = Div(q_heads, k_heads)"));
        ORTC_TRY(repeat(l, "K"));
        ORTC_TRY(repeat(l, "V"));
    }
    ORTC_TRY(write_root(l, &scale, q.dims[3]));
    ORTC_TRY(ortc_lift_write(l,
                             "q = Mul(Q, root)\n"
                             "k = Mul(%s, root)\n"
                             "turned = Transpose(k) perm=[0,1,3,2]\n"
                             "product = MatMul(q, turned)\n"
                             "scores = Cast(product) to=%d",
                             shared ? "K_heads" : "K", (int)compute));
    if (score_mod) ORTC_TRY(ortc_lift_write(l, "modified = $score_mod(scores)"));
    ORTC_TRY(ortc_lift_write(l, "probs = Softmax(%s) axis=-1", score_mod ? "modified" : "scores"));
    if (prob_mod) ORTC_TRY(ortc_lift_write(l, "weights = $prob_mod(probs)"));
    return ortc_lift_write(l,
                           "values = Cast(%s) to=%d\n"
                           "mixed = MatMul(%s, values)\n"
                           "Y = Cast(mixed) to=@V",
                           shared ? "V_heads" : "V", (int)compute, prob_mod ? "weights" : "probs");
}
