/* graph/specialise/integer_products.c: Conv, MatMul and Gemm between DequantizeLinear, as products of
 * integers.
 *
 *   y = op(DequantizeLinear(a, sa, za), DequantizeLinear(b, sb, zb)) + bias
 *     = Cast(opInteger(a, b, za, zb)) * (sa sb) + bias
 *
 * with MatMulInteger, GemmInteger (of transB) and ConvInteger, whose sums are exact: what was rounded in
 * every sum now is not. sa is one number, sb one or one for each channel of the result, both constant. What
 * follows is left to fuse-epilogue, QuantizeLinear included, and so the pass asks whether the integer node is
 * taken with Cast and Mul in its epilogue: where it is not, as on ref, all stays as it was.
 */
#include <stdlib.h>

#include "base/base.h"
#include "graph/ir/pointwise.h"
#include "graph/ir/quantised.h"
#include "specialise.h"

#define MOST_TERMS 33000 /* products of 8 bits in a sum that i32 holds for sure */

/* What is to be made. */
typedef struct form {
    ortc_quantised a, b; /* by their place in the node: x and w of a convolution */
    const char *domain, *op;
    ortc_edge *bias; /* added behind, broadcast; NULL: none */
    int32_t channel; /* the axis of the result along which b's scales go */
} form;

static bool is_const(const ortc_edge *e) { return e && ortc_edge_is_const(e); }

/* b's scales are one, or lie along this axis of b. */
static bool scales_along(const ortc_quantised *b, int64_t axis)
{
    const int64_t own = b->axis < 0 ? b->axis + b->x->rank : b->axis;
    return b->scale->count == 1 || own == axis;
}
static bool few_terms(int64_t terms) { return terms > 0 && terms <= MOST_TERMS; }

/* The bias of a convolution, [channels], as a constant along axis 1 of the result; *out NULL: there is
 * none. */
static float float_at(const void *arg, int64_t i) { return ortc_scale_at(arg, i); }
static bool conv_bias(ortc_specialise *s, const ortc_node *n, ortc_edge **out)
{
    const ortc_edge *b = ortc_node_in_edge(n, 2);
    *out = NULL;
    if (!b) return true;
    if (!is_const(b) || b->constant->dtype != ORTC_F32 || b->constant->count < 1) return false;
    return (*out = ortc_graph_along(s->graph, n->out[0]->rank, 1, b->constant->count, float_at, b->constant,
                                    s->error)) != NULL;
}

static bool read_conv(ortc_specialise *s, const ortc_node *n, form *f)
{
    const ortc_edge *w = f->b.x;
    int64_t terms = 1;
    if (w->rank < 3 || !scales_along(&f->b, 0)) return false;
    for (int32_t d = 1; d < w->rank; d++) {
        if (!ortc_dim_is_number(w->dims[d]) || w->dims[d] > MOST_TERMS) return false;
        terms *= w->dims[d];
        if (!few_terms(terms)) return false;
    }
    f->op = "ConvInteger";
    f->channel = 1;
    return conv_bias(s, n, &f->bias);
}

static bool read_matmul(const ortc_node *n, form *f)
{
    const ortc_edge *a = f->a.x, *b = f->b.x;
    if (a->rank < 1 || b->rank < 1) return false;
    const ortc_dim rows = b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0],
                   terms = ortc_dim_is_number(rows) ? rows : a->dims[a->rank - 1];
    if (!ortc_dim_is_number(terms) || !few_terms(terms)) return false;
    if (f->b.scale->count > 1 && (b->rank != 2 || !scales_along(&f->b, 1))) return false;
    f->op = "MatMulInteger";
    f->channel = n->out[0]->rank - 1;
    return true;
}

static bool read_gemm(const ortc_node *n, form *f)
{
    const bool turned = ortc_node_int(n, "transB", 0) != 0; /* b is [n][k] */
    if (ortc_node_int(n, "transA", 0) || ortc_node_float(n, "alpha", 1) != 1 || f->b.x->rank != 2 ||
        f->a.x->rank != 2 || !scales_along(&f->b, !turned))
        return false;
    const ortc_dim terms = f->b.x->dims[turned];
    f->bias = ortc_node_in_edge(n, 2);
    f->domain = turned ? "ortc" : "", f->op = turned ? "GemmInteger" : "MatMulInteger";
    f->channel = 1;
    return (!f->bias || ortc_node_float(n, "beta", 1) == 1) && ortc_dim_is_number(terms) && few_terms(terms);
}

static bool read_form(ortc_specialise *s, const ortc_node *n, form *f)
{
    const ortc_edge *y = n->n_out == 1 ? n->out[0] : NULL;
    *f = (form){.domain = ""};
    if (!y || y->rank < 1 || n->n_in < 2 || !ortc_read_dequantised(n->in[0], &f->a) ||
        !ortc_read_dequantised(n->in[1], &f->b) || f->a.scale->count != 1)
        return false;
    return ortc_is_op(n, "Conv")     ? read_conv(s, n, f)
           : ortc_is_op(n, "MatMul") ? read_matmul(n, f)
           : ortc_is_op(n, "Gemm")   ? read_gemm(n, f)
                                     : false;
}

/* ---- Building ------------------------------------------------------------------------------------------ */

static float product_of_scales(const void *arg, int64_t i)
{
    const form *f = arg;
    return ortc_scale_at(f->a.scale, 0) * ortc_scale_at(f->b.scale, i);
}

typedef struct made {
    ortc_node *nodes[4]; /* product, Cast, Mul, Add */
    uint32_t n;
} made;

static bool build(ortc_specialise *s, ortc_node *n, const form *f, made *m)
{
    ortc_graph *g = s->graph;
    ortc_edge *scale = ortc_graph_along(g, n->out[0]->rank, f->channel, f->b.scale->count, product_of_scales,
                                        f, s->error);
    if (!scale) return false;
    ortc_edge *in[4] = {f->a.x, f->b.x, f->a.zero, f->b.zero};
    const uint32_t n_in = f->b.zero ? 4 : f->a.zero ? 3 : 2;
    ortc_node *product = ortc_node_of_domain(g, n, f->domain, f->op, ORTC_I32, n->out[0], n_in, in);
    if (!product) return false;
    if (!strcmp(f->op, "ConvInteger") && !ortc_node_copy_attrs(product, n)) return false;
    product->name = n->name;
    m->nodes[0] = product;
    if (!ortc_scale_sums(g, n, product->out[0], scale, &m->nodes[1], &m->nodes[2])) return false;
    m->n = 3;
    if (!f->bias) return true;
    m->nodes[3] = ortc_node_like(g, n, "Add", ORTC_F32, n->out[0], 2,
                                 (ortc_edge *[]){m->nodes[2]->out[0], f->bias});
    m->n = 4;
    return m->nodes[3] != NULL;
}

/* Whether the integer node is taken with Cast and Mul in its epilogue, and every node by itself. */
static bool accepted(ortc_specialise *s, const ortc_node *where, const made *m)
{
    ortc_node proposal = *m->nodes[0];
    ortc_edge *ports[5] = {NULL, NULL, NULL, NULL, m->nodes[2]->in[1]}, *in[5] = {NULL};
    for (uint32_t i = 0; i < proposal.n_in; i++) in[i] = proposal.in[i];
    in[4] = ports[4];
    proposal.in = in;
    proposal.n_in = 5;
    proposal.out = m->nodes[2]->out;
    proposal.epilogue = ortc_pointwise_behind(m->nodes[0]->out[0], (ortc_node **)&m->nodes[1], 2, ports, 5);
    if (!proposal.epilogue || !s->accept(s->arg, &proposal, NULL, where)) return false;
    for (uint32_t i = 0; i < m->n; i++)
        if (!s->accept(s->arg, m->nodes[i], m->nodes[i], where)) return false;
    return true;
}

static void remove_unread(ortc_edge *e)
{
    ortc_node *n = e ? e->producer : NULL;
    if (n && n->n_out == 1 && !e->uses) ortc_node_remove(n);
}

static ortc_status rewrite(ortc_specialise *s, ortc_node *n)
{
    form f;
    made m = {.n = 0};
    if (!read_form(s, n, &f)) return ORTC_OK;
    if (!build(s, n, &f, &m)) return ortc_no_memory(s->error, 0);
    if (!accepted(s, n, &m)) {
        for (uint32_t i = m.n; i-- > 0;) ortc_node_remove(m.nodes[i]);
        return ORTC_OK;
    }
    ortc_edge *y = n->out[0], *read[3] = {n->in[0], n->in[1], ortc_node_in_edge(n, 2)},
              *own = m.nodes[m.n - 1]->out[0];
    ortc_node_remove(n);
    if (!ortc_node_set_out(m.nodes[m.n - 1], 0, y)) return ortc_no_memory(s->error, 0);
    own->producer = NULL;
    for (uint32_t i = 0; i < ORTC_LENGTH(read); i++) remove_unread(read[i]);
    s->edits++;
    return ORTC_OK;
}

ortc_status ortc_pass_integer_products(ortc_specialise *s)
{
    for (ortc_node *n = s->graph->first, *next; n; n = next) {
        next = n->next; /* what goes is before n */
        ORTC_TRY(rewrite(s, n));
    }
    return ORTC_OK;
}
