/* kernels/einsum/op.c: Einsum: schema and shape. */
#include "kernels/common/shape.h"
#include "kernels/einsum/equation.h"

extern const ortc_kernel_table ortc_kernels_ref_einsum, ortc_kernels_cpu_einsum;

static ortc_status infer_einsum(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const char *equation = ortc_node_string(n, "equation", ""), *wrong;
    const ortc_dtype t = ortc_infer_in(c, 0).dtype;
    ortc_einsum_result r = {0};
    ortc_dim extents[ORTC_EINSUM_LABELS], dims[ORTC_RANK_LIMIT];
    uint8_t labels[ORTC_EINSUM_LABELS];
    for (int32_t l = 0; l < ORTC_EINSUM_LABELS; l++) extents[l] = 1;
    if (ortc_einsum_count(equation) != ortc_node_n_in(n))
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "the equation '%s' has %u operands, the node %u",
                               equation, ortc_einsum_count(equation), ortc_node_n_in(n));
    for (uint32_t i = 0; i < ortc_node_n_in(n); i++) {
        const ortc_port p = ortc_infer_in(c, i);
        if (p.rank < 0) return ortc_infer_out(c, 0, t, -1, NULL);
        if ((wrong = ortc_einsum_operand(equation, i, p.rank, labels, &r)))
            return ortc_infer_fail(c, ORTC_INVALID_MODEL, "the equation '%s' %s (operand %u, rank %d)",
                                   equation, wrong, i, p.rank);
        for (int32_t d = 0; d < p.rank; d++) {
            ortc_dim *e = &extents[labels[d]];
            if (*e >= 0 && p.dims[d] >= 0 && *e != p.dims[d] && *e != 1 && p.dims[d] != 1)
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                       "a label of '%s' is %lld and %lld (operand %u, dim %d)", equation,
                                       (long long)*e, (long long)p.dims[d], i, d);
            *e = ortc_dim_broadcast(c, *e, p.dims[d]);
        }
    }
    if ((wrong = ortc_einsum_output(equation, &r)))
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "the equation '%s' %s", equation, wrong);
    for (int32_t d = 0; d < r.rank; d++) dims[d] = extents[r.labels[d]];
    return ortc_infer_out(c, 0, t, r.rank, dims);
}

static const ortc_op ops[] = {
    ORTC_OP("", "Einsum", 28, 12, "12", "Inputs:T+", "Output:T", "equation:s!", "T=num", infer_einsum, NULL,
            0),
};
ORTC_FAMILY(einsum, ops, &ortc_kernels_ref_einsum, &ortc_kernels_cpu_einsum);
