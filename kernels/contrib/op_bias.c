/* kernels/contrib/op_bias.c: what is added to scores by the distance of two tokens, and Gemma's rotary
 * embedding. */
#include <math.h>

#include "kernels/contrib/attention.h"

/* bias_table [buckets, heads] by the bucket of key - query: small distances have one each, larger ones
 * share them by their logarithm, up to max_distance. */
ortc_status ortc_contrib_relative_position_bias(ortc_lift *l)
{
    const ortc_port table = ortc_lift_look(l, "bias_table");
    const int64_t most = ortc_lift_int(l, "max_distance", 0);
    const bool both = ortc_lift_int(l, "is_bidirectional", 0) != 0;
    if (table.rank != 2 || table.dims[0] < 0)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the number of buckets must be known");
    const int64_t buckets = both ? table.dims[0] / 2 : table.dims[0], exact = buckets / 2;
    if (exact < 1 || most <= exact)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "%lld buckets for distances below %lld",
                              (long long)table.dims[0], (long long)most);
    ORTC_TRY(ortc_lift_write(l, "queries = Reshape(query_length, [])\n"
                                "keys = Reshape(key_length, [])\n"
                                "row = Range(0, queries, 1)\n"
                                "here = Unsqueeze(row, [1])\n"
                                "there = Range(0, keys, 1)\n"
                                "way = Sub(there, here)"));
    if (both)
        ORTC_TRY(ortc_lift_write(l,
                                 "ahead = Greater(way, 0)\n"
                                 "first = Where(ahead, %lld, 0)\n"
                                 "far = Abs(way)",
                                 (long long)buckets));
    else
        ORTC_TRY(ortc_lift_write(l, "back = Neg(way)\n"
                                    "far = Max(back, 0)\n"
                                    "first = Mul(far, 0)"));
    ORTC_TRY(ortc_lift_write(l,
                             "near = Less(far, %lld)\n"
                             "real = Cast(far) to=1\n"
                             "share = Div(real, %lld:f32)\n"
                             "power = Log(share)\n"
                             "part = Div(power, %.9g:f32)\n"
                             "step = Mul(part, %lld:f32)\n"
                             "steps = Floor(step)\n"
                             "whole = Max(steps, 0:f32)\n"
                             "count = Cast(whole) to=7\n"
                             "later = Add(count, %lld)\n"
                             "last = Min(later, %lld)\n"
                             "own = Where(near, far, last)\n"
                             "bucket = Add(first, own)\n"
                             "rows = Gather(bias_table, bucket) axis=0\n"
                             "planes = Transpose(rows) perm=[2,0,1]\n"
                             "output = Unsqueeze(planes, [0])",
                             (long long)exact, (long long)exact, (double)logf((float)most / (float)exact),
                             (long long)(buckets - exact), (long long)exact, (long long)(buckets - 1)));
    return ORTC_OK;
}

/* rel_pos, for each query by a gate that its own head computes. */
ortc_status ortc_contrib_gated_position_bias(ortc_lift *l)
{
    const int64_t heads = ortc_lift_int(l, "num_heads", 0);
    const char *query =
        "query_layer"; /* [B, S, N * H], or the tokens that are no padding: zeros for the others */
    if (ortc_given(l, "token_offset")) {
        ORTC_TRY(ortc_contrib_spread(l, "all_tokens", query));
        query = "all_tokens";
    }
    return ortc_lift_write(l,
                           "sum = Add(%s, query_bias)\n"
                           "apart = Reshape(sum, [0,0,%lld,-1])\n"
                           "turned = Transpose(apart) perm=[0,2,1,3]\n"
                           "product = MatMul(turned, weight)\n"
                           "moved = Add(product, bias)\n"
                           "halves = Reshape(moved, [0,0,0,2,-1])\n"
                           "sums = ReduceSum(halves, [4]) keepdims=0\n"
                           "gates = Sigmoid(sums)\n"
                           "gate_u, gate_r = Split(gates) axis=3 num_outputs=2\n"
                           "scaled = Mul(gate_r, eco_a)\n"
                           "less = Sub(scaled, 1:eco_a)\n"
                           "inner = Mul(gate_u, less)\n"
                           "gate = Add(inner, 2:eco_a)\n"
                           "output = Mul(gate, rel_pos)",
                           query, (long long)heads);
}

ortc_status ortc_contrib_gemma_rotary(ortc_lift *l)
{
    return ortc_lift_write(l, "sine = Sin(emb)\n"
                              "cosine = Cos(emb)\n"
                              "typed_sine = Cast(sine) to=@q\n"
                              "typed_cosine = Cast(cosine) to=@q\n"
                              "s = Unsqueeze(typed_sine, [1])\n"
                              "c = Unsqueeze(typed_cosine, [1])\n"
                              "q_even = Mul(q, c)\n"
                              "q_odd = Mul(q_rot, s)\n"
                              "output1 = Add(q_even, q_odd)\n"
                              "k_even = Mul(k, c)\n"
                              "k_odd = Mul(k_rot, s)\n"
                              "output2 = Add(k_even, k_odd)");
}
