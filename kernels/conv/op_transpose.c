/* kernels/conv/op_transpose.c: ConvTranspose: attributes and shape. X [N, C, D1 ..], W [C, M / group, K1 ..],
 * Y [N, M, O1 ..]. */
#include "kernels/conv/transpose.h"

const char *ortc_transpose_read(const ortc_node *n, int32_t spatial, ortc_transpose *t,
                                const char **attribute)
{
    const char *wrong;
    bool given;
    size_t count;
    const int64_t *shape = ortc_node_ints(n, "output_shape", &count);
    *t = (ortc_transpose){.group = ortc_node_int(n, "group", 1), .has_shape = shape != NULL};
    if ((wrong = ortc_window_read(n, spatial, &t->window, attribute)) ||
        (wrong = ortc_window_list(n, *attribute = "output_padding", 0, 0, &t->window.spatial, t->more, NULL,
                                  &given)))
        return wrong;
    *attribute = "output_shape";
    if (!shape) return NULL;
    const int32_t dims = t->window.spatial >= 0
                             ? t->window.spatial
                             : (int32_t)(count < ORTC_SPATIAL_LIMIT ? count : ORTC_SPATIAL_LIMIT);
    if (count != (size_t)dims && count != (size_t)dims + 2) /* some write N and C too */
        return "is not one element for each spatial dim";
    for (int32_t i = 0; i < dims; i++) {
        t->shape[i] = shape[count - (size_t)dims + (size_t)i];
        if (t->shape[i] < 0 || t->shape[i] > INT32_MAX) return "has an element out of range";
    }
    return NULL;
}

static ortc_status extent(ortc_infer *c, const ortc_transpose *t, int32_t i, ortc_dim in, ortc_dim *out)
{
    const ortc_window *w = &t->window;
    if (t->has_shape) {
        *out = t->shape[i];
        return ORTC_OK;
    }
    if (w->auto_pad == ORTC_PAD_SAME_UPPER || w->auto_pad == ORTC_PAD_SAME_LOWER) {
        *out = ortc_dim_mul(c, in, w->stride[i]);
        return ORTC_OK;
    }
    if (in == 0) {
        *out = 0;
        return ORTC_OK;
    }
    const int64_t beside = t->more[i] + ortc_window_span(w, i) - w->pad_begin[i] - w->pad_end[i];
    *out = ortc_dim_add(c, ortc_dim_mul(c, ortc_dim_sub(c, in, 1), w->stride[i]), beside);
    if (ortc_dim_is_number(*out) && *out < 0)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "pads leave %lld elements of spatial dim %d",
                               (long long)*out, i);
    return ORTC_OK;
}

ortc_status ortc_infer_conv_transpose(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), w = ortc_infer_in(c, 1), b = ortc_infer_in(c, 2);
    const int32_t rank = x.rank >= 0 ? x.rank : w.rank;
    const char *attribute, *wrong;
    ortc_transpose t;
    ortc_dim dims[ORTC_RANK_LIMIT], same = ORTC_DIM_UNKNOWN;
    if (rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    if (rank < 3 || (x.rank >= 0 && w.rank >= 0 && x.rank != w.rank))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "X has rank %d and W rank %d, expected [N, C, spatial ...]", x.rank, w.rank);
    if ((wrong = ortc_transpose_read(ortc_infer_node(c), rank - 2, &t, &attribute)))
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    if (t.group < 1) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "group is %lld", (long long)t.group);
    for (int32_t d = 0; d < rank; d++) dims[d] = ORTC_DIM_UNKNOWN;
    if (x.rank >= 0) dims[0] = x.dims[0];
    if (w.rank >= 0) dims[1] = ortc_dim_mul(c, w.dims[1], t.group);
    if (x.rank >= 0 && w.rank >= 0) {
        ORTC_TRY(ortc_infer_same(c, "channels of X and W", x.dims[1], w.dims[0], &same));
        if (same >= 0 && same % t.group)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%lld channels are not a multiple of group %lld",
                                   (long long)same, (long long)t.group);
    }
    if (b.rank >= 0) {
        if (b.rank != 1) return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "B has rank %d, expected 1", b.rank);
        ORTC_TRY(ortc_infer_same(c, "filters of W and elements of B", dims[1], b.dims[0], &dims[1]));
    }
    for (int32_t i = 0; i < rank - 2; i++) {
        const ortc_dim k = w.rank >= 0           ? w.dims[i + 2]
                           : t.window.has_kernel ? t.window.kernel[i]
                                                 : ORTC_DIM_UNKNOWN;
        if (k < 0) /* not known yet */
            continue;
        if (k < 1 || k > INT32_MAX || (t.window.has_kernel && t.window.kernel[i] != k))
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                   "W has %lld elements in spatial dim %d, kernel_shape says %lld",
                                   (long long)k, i, (long long)t.window.kernel[i]);
        t.window.kernel[i] = k;
        if (x.rank >= 0) ORTC_TRY(extent(c, &t, i, x.dims[i + 2], &dims[i + 2]));
    }
    return ortc_infer_out(c, 0, x.dtype, rank, dims);
}
