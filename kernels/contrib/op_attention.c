/* kernels/contrib/op_attention.c: Attention and QAttention: with the products that make queries, keys and
 * values. */
#include <math.h>

#include "kernels/contrib/attention.h"

#define MAX_TURNED 65536 /* elements of a head that rotary embedding turns */

/* `q_turned` and `k_turned`: rotary embedding by the places behind the past, halves of a head turned against
 * each other, angles of base 10000; of onnxruntime's providers only CUDA's has it. */
static ortc_status turn_heads(ortc_lift *l, int64_t heads, int64_t width, const char *fresh, bool past)
{
    int64_t turned = ortc_lift_int(l, "rotary_embedding_dim", 0);
    if (turned == 0 && width > 0) turned = width / heads;
    if (turned < 2 || turned % 2 || turned > MAX_TURNED)
        return ortc_lift_fail(
            l, ORTC_UNSUPPORTED,
            "do_rotary needs rotary_embedding_dim, or a head of known size: an even number, it is %lld",
            LL(turned));
    const int64_t half = turned / 2;
    float *rates = malloc((size_t)half * sizeof *rates);
    if (!rates) return ortc_lift_fail(l, ORTC_OUT_OF_MEMORY, "no memory for angles");
    for (int64_t i = 0; i < half; i++) rates[i] = (float)pow(10000, -(double)(2 * i) / (double)turned);
    const ortc_status status = ortc_lift_name(l, "rates", ORTC_F32, 1, &half, rates);
    free(rates);
    ORTC_TRY(status);
    return ortc_lift_write(
        l,
        "count = Reshape(%s, [])\n"
        "steps = Range(0, count, 1)\n"
        "place = Add(steps, %s)\n"
        "place_real = Cast(place) to=1\n"
        "place_tall = Unsqueeze(place_real, [1])\n"
        "angles = Mul(place_tall, rates)\n"
        "cosine = Cos(angles)\n"
        "sine = Sin(angles)\n"
        "cos = Cast(cosine) to=@qkv\n"
        "sin = Cast(sine) to=@qkv\n"
        "grid = Shape(qkv) start=0 end=2\n"
        "ids = Expand(steps, grid)\n"
        "q_turned = RotaryEmbedding(q, cos, sin, ids) num_heads=%lld rotary_embedding_dim=%lld\n"
        "k_turned = RotaryEmbedding(k, cos, sin, ids) num_heads=%lld rotary_embedding_dim=%lld",
        fresh, past ? "begun" : "0", LL(heads), LL(turned), LL(heads), LL(turned));
}

/* The rest of Attention, from `qkv` [B, S, 3 parts]. */
static ortc_status attend(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const int64_t heads = ortc_lift_int(l, "num_heads", 0);
    const bool causal = ortc_lift_int(l, "unidirectional", 0) != 0, past = ortc_given(l, "past"),
               present = ortc_wanted(l, 1), rotary = ortc_lift_int(l, "do_rotary", 0) != 0;
    const ortc_port weights = ortc_lift_look(l, *ortc_node_op(n) == 'A' ? "weights" : "weight");
    size_t count;
    const int64_t *sizes = ortc_node_ints(n, "qkv_hidden_sizes", &count);
    const char *mask;
    char scale[40];
    const bool shared = past && ortc_given(l, "past_sequence_length");
    if (count == 3)
        ORTC_TRY(ortc_lift_write(l, "q, k, v = Split(qkv, [%lld,%lld,%lld]) axis=-1", LL(sizes[0]),
                                 LL(sizes[1]), LL(sizes[2])));
    else
        ORTC_TRY(ortc_lift_write(l, "q, k, v = Split(qkv) axis=-1 num_outputs=3"));
    ORTC_TRY(ortc_lift_write(l, "%s = Shape(input) start=1 end=2", past ? "fresh" : "total"));
    if (past)
        ORTC_TRY(ortc_lift_write(l, "past_k, past_v = Split(past) axis=0 num_outputs=2\n"
                                    "room_k = Squeeze(past_k, [0])\n"
                                    "room_v = Squeeze(past_v, [0])"));
    if (shared)
        ORTC_TRY(ortc_contrib_begun(l));
    else if (past)
        ORTC_TRY(ortc_lift_write(l, "begun = Shape(room_k) start=2 end=3"));
    if (past)
        ORTC_TRY(ortc_lift_write(l, "total = Add(begun, fresh)\n"
                                    "old_k = Slice(room_k, [0], begun, [2])\n"
                                    "old_v = Slice(room_v, [0], begun, [2])"));
    if (heads < 1 || heads > INT32_MAX)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "there are %lld heads", LL(heads));
    if (rotary)
        ORTC_TRY(turn_heads(l, heads,
                            count == 3                                 ? sizes[0]
                            : weights.rank == 2 && weights.dims[1] > 0 ? weights.dims[1] / 3
                                                                       : 0,
                            past ? "fresh" : "total", past));
    ORTC_TRY(
        ortc_contrib_mask(l, "mask_index", *ortc_node_op(n) == 'A' ? "attention_bias" : "_", "qkv", &mask));
    ORTC_TRY(
        ortc_lift_write(l,
                        "output, %s, %s = Attention(%s, %s, v, %s, %s, %s) is_causal=%d q_num_heads=%lld "
                        "kv_num_heads=%lld%s",
                        present ? "new_k" : "_", present ? "new_v" : "_", rotary ? "q_turned" : "q",
                        rotary ? "k_turned" : "k", mask, past ? "old_k" : "_", past ? "old_v" : "_", causal,
                        LL(heads), LL(heads), ortc_contrib_scale(l, scale)));
    if (!present) return ORTC_OK;
    if (shared) {
        ORTC_TRY(ortc_contrib_put_back(l, "full_k", "room_k", "new_k"));
        ORTC_TRY(ortc_contrib_put_back(l, "full_v", "room_v", "new_v"));
    }
    return ortc_lift_write(l,
                           "all_k = Unsqueeze(%s, [0])\n"
                           "all_v = Unsqueeze(%s, [0])\n"
                           "present = Concat(all_k, all_v) axis=0",
                           shared ? "full_k" : "new_k", shared ? "full_v" : "new_v");
}

ortc_status ortc_contrib_attention(ortc_lift *l)
{
    if (ortc_given(l, "bias"))
        ORTC_TRY(ortc_lift_write(l, "product = MatMul(input, weights)\n"
                                    "qkv = Add(product, bias)"));
    else
        ORTC_TRY(ortc_lift_write(l, "qkv = MatMul(input, weights)"));
    return attend(l);
}

ortc_status ortc_contrib_qattention(ortc_lift *l)
{
    ORTC_TRY(ortc_lift_write(l,
                             "step_in = Reshape(input_scale, [])\n"
                             "product = MatMulInteger(input, weight, input_zero_point, weight_zero_point)\n"
                             "real = Cast(product) to=@bias\n"
                             "step = Mul(step_in, weight_scale)\n"
                             "scaled = Mul(real, step)\n"
                             "qkv = Add(scaled, bias)"));
    return attend(l);
}
