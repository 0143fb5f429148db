/* graph/normalise/pixel_products.c: a ConvTranspose of one pixel, as generators of pictures begin with, is a
 * product: each input channel spreads its window, and no two places meet.
 *
 *   ConvTranspose(x [N, C, 1, 1], W [C, M, h, w], b)
 *     = Reshape(Gemm(Reshape(x, [N, C]), Reshape(W, [C, M h w]), b for each of h w), [N, M, h, w])
 *
 * One group, no padding, dilation or output_padding; W and b constant. One to three spatial dims.
 */
#include "weights.h"
#include "windows.h"

/* b for each place of its filter's window. NULL: no memory. */
static ortc_edge *of_places(ortc_normalise *p, const ortc_constant *b, int64_t places)
{
    const size_t size = ortc_dtype_bits(b->dtype) / 8, bytes = (size_t)(b->count * places) * size;
    const int64_t count = b->count * places;
    char *data = ortc_data_alloc(bytes);
    if (!data) return NULL;
    for (int64_t i = 0; i < count; i++)
        memcpy(data + (size_t)i * size, (const char *)b->data + (size_t)(i / places) * size, size);
    return ortc_graph_constant_take(p->graph, b->dtype, 1, &count, data, bytes, p->error);
}

/* Whether windows are whole, and side by side: *places of each. */
static bool is_of_a_pixel(const ortc_node *n, const ortc_edge *x, const ortc_constant *w, const ortc_edge *y,
                          int64_t *places)
{
    ortc_window_axis axes[ORTC_MAX_WINDOW_DIMS];
    if (w->rank < 3 || w->rank > 2 + ORTC_MAX_WINDOW_DIMS || w->count == 0 || x->rank != w->rank ||
        y->rank != w->rank || x->dims[1] != w->dims[0] || ortc_node_int(n, "group", 1) != 1 ||
        !ortc_window_axes(n, w, axes))
        return false;
    *places = 1;
    for (int32_t i = 0; i < w->rank - 2; i++) {
        if (x->dims[2 + i] != 1 || y->dims[2 + i] != axes[i].taps || axes[i].dilation != 1 ||
            axes[i].before || axes[i].after)
            return false;
        *places *= axes[i].taps;
    }
    return true;
}

static ortc_status replace(ortc_normalise *p, ortc_node *n)
{
    ortc_edge *x = n->in[0], *y = n->out[0];
    const ortc_edge *weights = ortc_node_in_edge(n, 1), *bias = ortc_node_in_edge(n, 2);
    int64_t places;
    if (!x || !y || !x->type || x->type->kind != ORTC_KIND_TENSOR || !weights ||
        !ortc_edge_is_const(weights) || (bias && !ortc_edge_is_const(bias)))
        return ORTC_OK;
    const ortc_constant *w = weights->constant, *b = bias ? bias->constant : NULL;
    if (w->dtype != x->type->dtype || !is_of_a_pixel(n, x, w, y, &places) ||
        (b && (b->dtype != w->dtype || b->rank != 1 || b->count != w->dims[1])))
        return ORTC_OK;
    const int64_t wide = w->dims[1] * places, flat[2] = {0, w->dims[0]}, matrix[2] = {w->dims[0], wide};
    int64_t windows[2 + ORTC_MAX_WINDOW_DIMS] = {0, w->dims[1]};
    for (int32_t i = 2; i < w->rank; i++) windows[i] = w->dims[i];
    const ortc_dim rows[2] = {x->dims[0], w->dims[0]}, results[2] = {x->dims[0], wide};
    ortc_node *last = ortc_node_create(p->graph, ortc_op_find("", "Reshape"), n->name, 2, 1);
    ortc_edge *shape = ortc_match_integers(p, windows, w->rank), *of[3] = {NULL};
    if (!last || !shape) return ortc_no_memory(p->error, 0);
    ortc_edge *image[2] = {x, ortc_match_integers(p, flat, 2)},
              *kernel[2] = {n->in[1], ortc_match_integers(p, matrix, 2)};
    of[0] = ortc_match_apply(p, n, "Reshape", 2, image, w->dtype, 2, rows);
    of[1] = ortc_match_apply(p, n, "Reshape", 2, kernel, w->dtype, 2, matrix);
    if (b) of[2] = of_places(p, b, places);
    ortc_edge *made = ortc_match_apply(p, n, b ? "Gemm" : "MatMul", b ? 3 : 2, of, w->dtype, 2, results);
    if (!made || !ortc_node_set_in(last, 0, made) || !ortc_node_set_in(last, 1, shape))
        return ortc_no_memory(p->error, 0);
    return ortc_match_take_place(p, n, last);
}

ortc_status ortc_pass_pixel_products(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        if (ortc_match_is(n, "ConvTranspose")) ORTC_TRY(replace(p, n));
    }
    return ORTC_OK;
}
