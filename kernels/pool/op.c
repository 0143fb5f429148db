/* kernels/pool/op.c: MaxPool, AveragePool and their global forms: schemas and shapes.
 *
 * X [N, C, D1 ..], Y [N, C, O1 ..]. Older versions lacked attributes (Indices and storage_order until 8,
 * ceil_mode and dilations until 10 or 19) and mean the same without them. With ceil_mode the last window must
 * begin inside the input or its first pad: AveragePool-19 says so, and frameworks have always done so.
 */
#include "kernels/common/window.h"

extern const ortc_kernel_table ortc_kernels_ref_pool;

static ortc_status infer_pool(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim dims[ORTC_RANK_LIMIT];
    ortc_window w;
    if (x.rank >= 0 && x.rank < 3)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X has rank %d, expected [N, C, spatial ...]", x.rank);
    ORTC_TRY(ortc_infer_window(c, x.rank < 0 ? -1 : x.rank - 2, &w));
    if (!w.has_kernel) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute kernel_shape is missing");
    dims[0] = dims[1] = ORTC_DIM_UNKNOWN;
    if (x.rank >= 0) memcpy(dims, x.dims, 2 * sizeof *dims);
    for (int32_t i = 0; i < w.spatial; i++)
        ORTC_TRY(
            ortc_infer_window_out(c, &w, i, x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[i + 2], &dims[i + 2]));
    ORTC_TRY(ortc_infer_out(c, 0, x.dtype, w.spatial + 2, dims));
    return ortc_node_n_out(ortc_infer_node(c)) > 1 ? ortc_infer_out(c, 1, ORTC_I64, w.spatial + 2, dims)
                                                   : ORTC_OK;
}

static ortc_status infer_global(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim dims[ORTC_RANK_LIMIT];
    if (x.rank >= 0 && x.rank < 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X has rank %d, expected [N, C, spatial ...]", x.rank);
    for (int32_t d = 0; d < x.rank; d++) dims[d] = d < 2 ? x.dims[d] : 1;
    return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
}

#define WINDOW "auto_pad:s=NOTSET ceil_mode:i=0 dilations:is? kernel_shape:is! pads:is? strides:is? "
static const ortc_op ops[] = {
    ORTC_OP("", "MaxPool", 22, 1, "12 11 10 8 1", "X:T", "Y:T Indices:I?", WINDOW "storage_order:i=0",
            "T=float,i8,u8 I=i64", infer_pool, NULL, 0),
    ORTC_OP("", "AveragePool", 22, 1, "19 11 10 7 1", "X:T", "Y:T", WINDOW "count_include_pad:i=0", "T=float",
            infer_pool, NULL, 0),
    ORTC_OP("", "GlobalMaxPool", 22, 1, "1", "X:T", "Y:T", "", "T=float", infer_global, NULL, 0),
    ORTC_OP("", "GlobalAveragePool", 22, 1, "1", "X:T", "Y:T", "", "T=float", infer_global, NULL, 0),
};
ORTC_FAMILY(pool, ops, &ortc_kernels_ref_pool);
