/* graph/normalise/channel_products.c: a product over the channels of an image, which are brought to the end
 * for it and back, is a convolution of single pixels: so heads of attention are mixed ("talking heads").
 *
 *   Transpose(MatMul(Transpose(x, [0, 2, 3, 1]), W [C, M]) + b [M], [0, 3, 1, 2])
 *     = Conv(x [N, C, H, W], W transposed [M, C, 1, 1], b)
 *
 * W and b constant, b may be left out; one to three spatial dims. What others read, too, stays. Values
 * between that are rounded to 8 bits and back are so all the same (rounded.h), and W may be 8 bits that are
 * dequantised, where channels are few.
 */
#include "graph/ir/quantised.h"
#include "rounded.h"

enum { MAX_SPATIAL = 3 };
enum { FEW = 16 }; /* channels on either side, of 8 bits: with more, products of rows are as quick */

/* The second dim goes to the end, or comes back from there. */
static bool moves_channels(const ortc_node *n, bool back)
{
    const int32_t rank = n->in[0] ? n->in[0]->rank : -1;
    size_t count;
    const int64_t *perm = ortc_node_ints(n, "perm", &count);
    if (rank < 3 || rank > 2 + MAX_SPATIAL || !perm || count != (size_t)rank || perm[0] != 0) return false;
    for (int32_t i = 1; i < rank; i++)
        if (perm[i] != (back ? i == 1 ? rank - 1 : i - 1 : i + 1 < rank ? i + 1 : 1)) return false;
    return true;
}

/* A constant of so many dims and of type t. */
static ortc_edge *constant(ortc_edge *e, ortc_dtype t, int32_t rank)
{
    return e && ortc_edge_is_const(e) && e->constant->dtype == t && e->constant->rank == rank ? e : NULL;
}

/* What is between the two Transposes: a product, what is added to it, and where it is rounded. */
typedef struct form {
    ortc_node *product;
    ortc_edge *bias;               /* NULL: none */
    ortc_quantised w;              /* x NULL: W is a constant of the result's type */
    ortc_rounded before, of, ends; /* before the product, its result, and what is behind the bias */
} form;

/* W [C, M]: a constant, or one of 8 bits that is dequantised, by one scale or one for each column. */
static const ortc_edge *weights(ortc_edge *w, ortc_dtype t, form *f)
{
    f->w.x = NULL;
    if (constant(w, t, 2)) return w;
    if (t != ORTC_F32 || !ortc_read_dequantised(w, &f->w)) return NULL;
    const int64_t axis = f->w.axis < 0 ? f->w.axis + 2 : f->w.axis;
    const ortc_constant *c = f->w.x->constant;
    const bool fits = ortc_edge_is_const(f->w.x) && c->rank == 2 && c->dims[0] <= FEW && c->dims[1] <= FEW &&
                      (f->w.scale->count == 1 || axis == 1) && (!f->w.zero || ortc_edge_is_const(f->w.zero));
    return fits ? f->w.x : NULL;
}

static bool read_form(const ortc_node *last, ortc_dtype t, form *f)
{
    ortc_edge *e = ortc_match_unrounded(last->in[0], true, &f->ends);
    f->bias = NULL, f->of = (ortc_rounded){NULL, NULL};
    const ortc_node *add = ortc_match_inner(e, "Add", 2, t);
    for (int i = 0; add && i < 2 && !f->bias; i++)
        if ((f->bias = constant(add->in[i], t, 1))) e = ortc_match_unrounded(add->in[1 - i], true, &f->of);
    f->product = ortc_match_inner(e, "MatMul", 2, t);
    const ortc_edge *w = f->product ? weights(f->product->in[1], t, f) : NULL;
    return w && w->constant->count > 0 && (!f->bias || f->bias->constant->count == w->constant->dims[1]);
}

/* W as a window of one pixel, before another node. */
static ortc_edge *window(ortc_normalise *p, ortc_node *before, const form *f, ortc_dtype t, int32_t rank)
{
    ortc_edge *w = f->w.x ? f->w.x : f->product->in[1];
    const int64_t *dims = w->constant->dims;
    const ortc_dim turned[2] = {dims[1], dims[0]};
    int64_t extents[2 + MAX_SPATIAL] = {dims[1], dims[0], 1, 1, 1};
    const ortc_dtype own = f->w.x ? f->w.x->type->dtype : t;
    ortc_edge *in[2] = {ortc_match_apply(p, before, "Transpose", 1, &w, own, 2, turned),
                        ortc_match_integers(p, extents, rank)};
    ortc_edge *y = ortc_match_apply(p, before, "Reshape", 2, in, own, rank, extents);
    if (!y || !f->w.x) return y;
    ortc_edge *parts[3] = {y, f->product->in[1]->producer->in[1], f->w.zero};
    y = ortc_match_apply(p, before, "DequantizeLinear", f->w.zero ? 3 : 2, parts, t, rank, extents);
    return y && ortc_match_set_int(y->producer, "axis", 0) ? y : NULL;
}

/* b beside images, or NULL: no memory. */
static ortc_edge *beside(ortc_normalise *p, const ortc_constant *b, int32_t rank)
{
    int64_t dims[1 + MAX_SPATIAL] = {b->count, 1, 1, 1};
    return ortc_graph_constant_copy(p->graph, b->dtype, rank - 1, dims, b->data, b->bytes, p->error);
}

static ortc_status replace(ortc_normalise *p, ortc_node *last)
{
    ortc_edge *y = last->out[0];
    form f;
    if (!y || !y->type || y->type->kind != ORTC_KIND_TENSOR || !moves_channels(last, true)) return ORTC_OK;
    const ortc_dtype t = y->type->dtype;
    if (!read_form(last, t, &f)) return ORTC_OK;
    const ortc_node *first = ortc_match_inner(ortc_match_unrounded(f.product->in[0], true, &f.before),
                                              "Transpose", 1, t);
    if (!first || !moves_channels(first, false) || first->in[0]->rank != y->rank ||
        !ortc_match_typed(first->in[0], t))
        return ORTC_OK;
    const bool apart = f.bias && f.of.quantise; /* rounded before the bias is added */
    ortc_edge *in[3] = {ortc_match_round(p, last, &f.before, first->in[0]), window(p, last, &f, t, y->rank),
                        apart ? NULL : f.bias};
    ortc_edge *z = ortc_match_apply(p, last, "Conv", in[2] ? 3 : 2, in, t, y->rank, y->dims);
    if (!z) return ortc_no_memory(p->error, 0);
    z->producer->name = last->name;
    z = ortc_match_round(p, last, &f.of, z);
    ortc_edge *sum[2] = {z, apart ? beside(p, f.bias->constant, y->rank) : NULL};
    if (apart) z = ortc_match_apply(p, last, "Add", 2, sum, t, y->rank, y->dims);
    if (z) z = ortc_match_round(p, last, &f.ends, z);
    if (!z) return ortc_no_memory(p->error, 0);
    return ortc_match_take_place(p, last, z->producer);
}

ortc_status ortc_pass_channel_products(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        if (ortc_match_is(n, "Transpose")) ORTC_TRY(replace(p, n));
    }
    return ORTC_OK;
}
