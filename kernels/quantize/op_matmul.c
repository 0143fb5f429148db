/* kernels/quantize/op_matmul.c: shapes of MatMulInteger and QLinearMatMul.
 *
 * A's scale and zero point are one number, a vector with an element per row, or of A's rank with a last dim
 * of 1; B's one per column, or of B's rank with a 1 before the last dim.
 */
#include "kernels/common/product.h"
#include "kernels/quantize/quantize.h"

/* `along`: the dim of the matrix that the numbers belong to, from the end: 2 rows, 1 columns. */
static ortc_status check_numbers(ortc_infer *c, uint32_t matrix, uint32_t numbers, int32_t along)
{
    const ortc_port m = ortc_infer_in(c, matrix), p = ortc_infer_in(c, numbers);
    ortc_dim same;
    bool one = true;
    for (int32_t d = 0; d < p.rank; d++) one &= p.dims[d] == 1;
    if (!p.type || p.rank < 0 || m.rank < 0 || one) return ORTC_OK;
    const ortc_dim want = m.rank >= along ? m.dims[m.rank - along] : 1;
    if (p.rank == 1)
        return ortc_infer_same(c, "scale or zero point do not fit the matrix", p.dims[0], want, &same);
    if (p.rank != m.rank)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u has rank %d, expected 0, 1 or %d", numbers,
                               p.rank, m.rank);
    for (int32_t d = 0; d < p.rank; d++) {
        const ortc_dim expected = d < m.rank - 2 || d == m.rank - along ? m.dims[d] : 1;
        ORTC_TRY(ortc_infer_same(c, "scale or zero point do not fit the matrix", p.dims[d], expected, &same));
    }
    return ORTC_OK;
}

ortc_status ortc_infer_matmul_integer(ortc_infer *c)
{
    ORTC_TRY(check_numbers(c, 0, 2, 2));
    ORTC_TRY(check_numbers(c, 1, 3, 1));
    return ortc_infer_product(c, 0, 1, ORTC_I32);
}

ortc_status ortc_infer_gemm_integer(ortc_infer *c)
{
    const ortc_port a = ortc_infer_in(c, 0), b = ortc_infer_in(c, 1);
    ortc_dim k;
    if (a.rank < 0 || b.rank < 0) return ortc_infer_out(c, 0, ORTC_I32, -1, NULL);
    if (a.rank != 2 || b.rank != 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "operands must be matrices, got ranks %d and %d",
                               a.rank, b.rank);
    ORTC_TRY(check_numbers(c, 0, 2, 2));
    ORTC_TRY(check_numbers(c, 1, 3, 2));
    ORTC_TRY(ortc_infer_same(c, "elements summed over differ in A and B", a.dims[1], b.dims[1], &k));
    return ortc_infer_out(c, 0, ORTC_I32, 2, (ortc_dim[]){a.dims[0], b.dims[0]});
}

ortc_status ortc_infer_qlinear_matmul(ortc_infer *c)
{
    for (uint32_t i = 1; i <= 2; i++) {
        ORTC_TRY(check_numbers(c, 0, i, 2));
        ORTC_TRY(check_numbers(c, 3, i + 3, 1));
    }
    return ortc_infer_product(c, 0, 3, ortc_infer_in(c, 7).dtype);
}
