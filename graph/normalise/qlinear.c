/* graph/normalise/qlinear.c: QLinearConv and QLinearMatMul get bodies of integer products.
 *
 *   y = saturate(round(f sum) + zy),  f = (sa sb) / sy    one number, or one for each channel
 *     = QuantizeLinear(Cast(opInteger(a, b, za, zb) + bias) * f, 1, zy)
 *
 * The node stays what it is, as its operator's kernels have it; where a provider has none, but products of
 * integers, its body is run there, and becomes one node again with all of it in the epilogue. f is rounded as
 * the operator's definition has it, so results are the same bits while sums are below 2^24, and where they
 * are not, but for ties. Scales must be constants of f32, a's one number.
 */
#include "graph/ir/quantised.h"
#include "match.h"

/* The ports of the two operators. */
typedef struct form {
    const char *product;
    const ortc_constant *a, *b, *y; /* scales */
    ortc_edge *y_zero, *bias;
    int32_t channel;
} form;

static const ortc_constant *scale(const ortc_node *n, uint32_t port)
{
    const ortc_edge *e = ortc_node_in_edge(n, port);
    const ortc_constant *c = e && ortc_edge_is_const(e) ? e->constant : NULL;
    return c && c->dtype == ORTC_F32 && c->count > 0 ? c : NULL;
}

static bool read(const ortc_node *n, form *f)
{
    const bool conv = ortc_match_is(n, "QLinearConv");
    const ortc_edge *y = n->n_out == 1 ? n->out[0] : NULL;
    if ((!conv && !ortc_match_is(n, "QLinearMatMul")) || n->body || n->n_in < 8 || !y || y->rank < 1 ||
        !ortc_is_bytes(y) || !ortc_is_bytes(n->in[0]) || !ortc_is_bytes(n->in[3]))
        return false;
    *f = (form){.product = conv ? "ConvInteger" : "MatMulInteger",
                .a = scale(n, 1),
                .b = scale(n, 4),
                .y = scale(n, 6),
                .y_zero = n->in[7],
                .bias = ortc_node_in_edge(n, 8),
                .channel = conv ? 1 : y->rank - 1};
    if (!f->a || !f->b || !f->y || f->a->count != 1 || f->y->count != 1 || f->b->rank > 1) return false;
    if (!f->y_zero || !ortc_edge_is_const(f->y_zero) || f->y_zero->constant->count != 1) return false;
    if (f->b->count > 1 && !conv && n->in[3]->rank != 2) return false;
    return !f->bias || (ortc_edge_is_const(f->bias) && f->bias->constant->dtype == ORTC_I32);
}

static float factor(const void *arg, int64_t i)
{
    const form *f = arg;
    return (float)((double)ortc_scale_at(f->a, 0) * (double)ortc_scale_at(f->b, i)) / ortc_scale_at(f->y, 0);
}

/* The bias, [channels], along axis 1 of the result. */
static ortc_edge *along_channels(ortc_normalise *p, const ortc_constant *c, int32_t rank)
{
    int64_t dims[64];
    if (rank > 64) return NULL;
    for (int32_t d = 0; d < rank - 1; d++) dims[d] = d == 0 ? c->count : 1;
    return ortc_graph_constant_copy(p->graph, c->dtype, rank - 1, dims, c->data, c->bytes, p->error);
}

/* A scalar of the same type as a constant of one element. */
static ortc_edge *scalar(ortc_normalise *p, ortc_edge *e)
{
    const ortc_constant *c = e->constant;
    return c->rank == 0 ? e
                        : ortc_graph_constant_copy(p->graph, c->dtype, 0, NULL, c->data, c->bytes, p->error);
}

/* The form in the place of n: its last node, which makes n's result. NULL: no memory. */
static ortc_node *write(ortc_normalise *p, ortc_node *n, const form *f)
{
    ortc_graph *g = p->graph;
    ortc_edge *y = n->out[0], *in[4] = {n->in[0], n->in[3], n->in[2], n->in[5]};
    ortc_node *product = ortc_node_like(g, n, f->product, ORTC_I32, y, 4, in), *cast, *mul;
    ortc_edge *scales = ortc_graph_along(g, y->rank, f->channel, f->b->count, factor, f, p->error),
              *one = ortc_match_constant(p, ORTC_F32, 1), *zero = scalar(p, f->y_zero);
    if (!product || !scales || !one || !zero) return NULL;
    if (f->channel == 1 && !strcmp(f->product, "ConvInteger") && !ortc_node_copy_attrs(product, n))
        return NULL;
    if (f->bias) {
        ortc_edge *bias = along_channels(p, f->bias->constant, y->rank);
        product = bias ? ortc_node_like(g, n, "Add", ORTC_I32, y, 2, (ortc_edge *[]){product->out[0], bias})
                       : NULL;
        if (!product) return NULL;
    }
    if (!ortc_scale_sums(g, n, product->out[0], scales, &cast, &mul)) return NULL;
    ortc_node *last = ortc_node_like(g, n, "QuantizeLinear", y->type->dtype, y, 3,
                                     (ortc_edge *[]){mul->out[0], one, zero});
    if (!last) return NULL;
    last->name = n->name;
    n->out[0] = NULL;
    return ortc_node_set_out(last, 0, y) ? last : NULL;
}

ortc_status ortc_pass_qlinear(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        form f;
        ortc_node *made, *last;
        next = n->next;
        if (!read(n, &f)) continue;
        ortc_edge *in[9];
        const uint32_t n_in = n->n_in < ORTC_LENGTH(in) ? n->n_in : (uint32_t)ORTC_LENGTH(in);
        for (uint32_t i = 0; i < n_in; i++) in[i] = n->in[i];
        if (!(last = write(p, n, &f))) return ortc_no_memory(p->error, 0);
        ortc_node_remove(n);
        ORTC_TRY(ortc_match_raise(p, n->op, last, in, n_in, &made));
        if (!made) continue; /* cannot be: all that is read is the node's, or constant */
        if (!ortc_node_copy_attrs(made, n)) return ortc_no_memory(p->error, 0);
    }
    return ORTC_OK;
}
