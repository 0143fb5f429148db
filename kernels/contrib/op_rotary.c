/* kernels/contrib/op_rotary.c: RotaryEmbedding, for one position of a token and for three. */
#include "kernels/contrib/attention.h"

ortc_status ortc_contrib_rotary(ortc_lift *l)
{
    const ortc_port x = ortc_lift_look(l, "input"), ids = ortc_lift_look(l, "position_ids"),
                    cos = ortc_lift_look(l, "cos_cache");
    int64_t heads = ortc_lift_int(l, "num_heads", 0), turned = ortc_lift_int(l, "rotary_embedding_dim", 0);
    if ((x.rank != 3 && x.rank != 4) || ids.rank < 0) /* is_packed_batching only leaves a check out */
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the ranks of input and position_ids must be known");
    if (x.rank == 3 && heads == 0) {
        if (x.dims[2] < 0 || cos.rank != 2 || cos.dims[1] < 1 || cos.dims[1] > INT32_MAX)
            return ortc_lift_fail(l, ORTC_UNSUPPORTED,
                                  "num_heads must be given, or the size of a head be known");
        heads = x.dims[2] / (2 * cos.dims[1]);
    }
    if (ids.rank == 1) /* where the first token stands */
        ORTC_TRY(ortc_lift_write(l,
                                 "tokens = Shape(input) start=%d end=%d\n"
                                 "last = Reshape(tokens, [])\n"
                                 "steps = Range(0, last, 1)\n"
                                 "row = Add(steps, position_ids)\n"
                                 "lines = Shape(input) start=0 end=1\n"
                                 "shape = Concat(lines, tokens) axis=0\n"
                                 "places = Expand(row, shape)",
                                 x.rank - 2, x.rank - 1));
    return ortc_lift_write(l,
                           "output = RotaryEmbedding(input, cos_cache, sin_cache, %s) &interleaved "
                           "rotary_embedding_dim=%lld num_heads=%lld",
                           ids.rank == 1 ? "places" : "position_ids", LL(turned), LL(heads));
}

/* Three positions of each token, [3, B, S]: in time, height and width; each turns columns of its own, in
 * sections or, but for what is left over for time, in turn. */
ortc_status ortc_contrib_mrotary(ortc_lift *l)
{
    const ortc_port x = ortc_lift_look(l, "input"), cos = ortc_lift_look(l, "cos_cache");
    const int64_t heads = ortc_lift_int(l, "num_heads", 0),
                  turned = ortc_lift_int(l, "rotary_embedding_dim", 0);
    const bool mixed = ortc_lift_int(l, "mrope_layout", 0) != 0;
    size_t count;
    const int64_t *sections = ortc_node_ints(ortc_lift_node(l), "mrope_section", &count);
    if ((x.rank != 3 && x.rank != 4) || cos.rank != 2 || cos.dims[1] < 1 || cos.dims[1] > 65536)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED,
                              "the rank of input and the shape of cos_cache must be known");
    const int64_t half = cos.dims[1], dims[2] = {half, 3};
    if (x.rank == 3 && heads == 0 && (x.dims[2] < 0 || x.dims[2] % (2 * half)))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "num_heads must be given, or the size of a head be known");
    if (count != 3 || sections[0] < 0 || sections[1] < 0 || sections[2] < 0 || sections[0] > half ||
        sections[1] > half || sections[2] > half || sections[0] + sections[1] + sections[2] != half)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL,
                              "attribute mrope_section is not three parts of %lld columns", LL(half));
    float *which = calloc((size_t)half * 3, sizeof *which); /* 1 where a column is a position's */
    if (!which) return ortc_lift_fail(l, ORTC_OUT_OF_MEMORY, "no memory for sections");
    for (int64_t i = 0; i < half; i++) {
        const int64_t third = i % 3, own = mixed ? (third && i < 3 * sections[third] ? third : 0)
                                                 : (i >= sections[0]) + (i >= sections[0] + sections[1]);
        which[3 * i + own] = 1;
    }
    const ortc_status status = ortc_lift_name(l, "which", ORTC_F32, 2, dims, which);
    free(which);
    ORTC_TRY(status);
    static const char *const names[] = {"cos", "sin"};
    for (int i = 0; i < 2; i++)
        ORTC_TRY(ortc_lift_write(l,
                                 "%s_all = Gather(%s_cache, position_ids) axis=0\n"
                                 "%s_last = Transpose(%s_all) perm=[1,2,3,0]\n"
                                 "%s_typed = Cast(which) to=@cos_cache\n"
                                 "%s_own = Mul(%s_last, %s_typed)\n"
                                 "%s = ReduceSum(%s_own, [3]) keepdims=0",
                                 names[i], names[i], names[i], names[i], names[i], names[i], names[i],
                                 names[i], names[i], names[i]));
    return ortc_lift_write(
        l, "output = RotaryEmbedding(input, cos, sin) &interleaved rotary_embedding_dim=%lld num_heads=%lld",
        LL(turned), LL(heads || x.rank == 4 ? heads : x.dims[2] / (2 * half)));
}
