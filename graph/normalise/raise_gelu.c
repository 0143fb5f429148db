/* graph/normalise/raise_gelu.c: Gelu from the nodes that exporters write for it.
 *
 *   y = 0.5 x (1 + erf(x / sqrt 2))                               approximate = none
 *   y = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))         approximate = tanh
 *
 * Exporters order and associate these in many ways, so neither argument is matched as a shape of nodes: it is
 * read as a polynomial in x, and the coefficients are compared (1e-6, relative; to f16's or bf16's rounding
 * where that is the type). Source: Hendrycks and Gimpel, "Gaussian Error Linear Units". The match starts at
 * Erf or Tanh. Values in between must have no other readers.
 */
#include "match.h"

#define MAX_DEPTH 8 /* nodes between x and the argument, one above the other */
typedef struct polynomial {
    double c[4]; /* c[i] x^i */
} polynomial;

static bool multiply(const polynomial *a, const polynomial *b, polynomial *out)
{
    polynomial r = {{0}};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            const double v = a->c[i] * b->c[k];
            if (i + k < 4)
                r.c[i + k] += v;
            else if (v != 0)
                return false;
        }
    *out = r;
    return true;
}

/* An edge as a polynomial in x, of degree 3 at most; values in between are read once. */
static bool read_polynomial(ortc_edge *e, ortc_edge *x, ortc_dtype t, int depth, polynomial *out)
{
    polynomial a, b;
    double v;
    *out = (polynomial){{0}};
    if (ortc_match_equal(e, x, t)) {
        out->c[1] = 1;
        return true;
    }
    if (ortc_match_scalar(e, x->rank, &v)) {
        out->c[0] = v;
        return true;
    }
    e = ortc_match_source(e, t);
    const ortc_node *n = e ? e->producer : NULL;
    if (!n || depth == 0 || n->n_in != 2 || (!ortc_match_sink(e, 1, t) && !ortc_match_sink(e, 2, t)) ||
        !read_polynomial(n->in[0], x, t, depth - 1, &a) || !read_polynomial(n->in[1], x, t, depth - 1, &b))
        return false;
    if (ortc_match_is(n, "Mul")) return multiply(&a, &b, out);
    if (ortc_match_is(n, "Add")) {
        for (int i = 0; i < 4; i++) out->c[i] = a.c[i] + b.c[i];
        return true;
    }
    if (b.c[1] != 0 || b.c[2] != 0 || b.c[3] != 0) return false;
    if (ortc_match_is(n, "Div") && b.c[0] != 0) {
        for (int i = 0; i < 4; i++) out->c[i] = a.c[i] / b.c[0];
        return true;
    }
    if (!ortc_match_is(n, "Pow") || (b.c[0] != 2 && b.c[0] != 3)) return false;
    *out = a;
    for (int i = 1; i < (int)b.c[0]; i++)
        if (!multiply(out, &a, out)) return false;
    return true;
}

static bool equals(const polynomial *p, double first, double third, ortc_dtype t)
{
    return p->c[0] == 0 && p->c[2] == 0 && ortc_match_near(p->c[1], first, t) &&
           ortc_match_near(p->c[3], third, t);
}

/* The edge that n halves: u * 0.5 or u / 2. */
static ortc_edge *half_of(const ortc_node *n)
{
    double v;
    if (ortc_match_is(n, "Mul") && n->n_in == 2)
        for (int i = 0; i < 2; i++)
            if (n->in[!i] && ortc_match_scalar(n->in[i], n->in[!i]->rank, &v) && v == 0.5) return n->in[!i];
    if (ortc_match_is(n, "Div") && n->n_in == 2 && n->in[0] &&
        ortc_match_scalar(n->in[1], n->in[0]->rank, &v) && v == 2)
        return n->in[0];
    return NULL;
}

/* The last node of 0.5 * x * a, and x, which is one of at most two edges: `which` says which to try. */
static ortc_node *match_product(ortc_edge *a, int which, ortc_dtype t, ortc_edge **x)
{
    ortc_node *first = ortc_match_sink(a, 1, t);
    ortc_node *second = first ? ortc_match_sink(first->out[0], 1, t) : NULL;
    ortc_edge *other = ortc_match_is(first, "Mul") ? ortc_match_other(first, a, t) : NULL;
    if (!first || !first->out[0]) return NULL;
    if (ortc_match_equal(half_of(first), a, t)) { /* (0.5 a) x */
        *x = ortc_match_is(second, "Mul") ? ortc_match_other(second, first->out[0], t) : NULL;
        return which == 0 ? second : NULL;
    }
    if (which == 0) { /* (0.5 x) a */
        other = ortc_match_source(other, t);
        *x = other && ortc_match_uses(other, t) == 1 ? half_of(other->producer) : NULL;
        return first;
    }
    *x = other; /* 0.5 (x a) */
    return second && ortc_match_equal(half_of(second), first->out[0], t) ? second : NULL;
}

/* n is Erf or Tanh. The last node of the form, NULL: none. */
static ortc_node *match(const ortc_node *n, bool is_tanh, ortc_dtype t, ortc_edge **out_x)
{
    const double first = is_tanh ? 0.79788456080286535588 : 0.70710678118654752440;
    ortc_edge *in = n->n_in ? n->in[0] : NULL;
    const ortc_node *add = n->out[0] ? ortc_match_sink(n->out[0], 1, t) : NULL;
    double one;
    if (!in || ortc_match_uses(in, t) != 1 || !ortc_match_is(add, "Add") || !add->out[0] ||
        !ortc_match_scalar(ortc_match_other(add, n->out[0], t), n->out[0]->rank, &one) || one != 1)
        return NULL;
    for (int which = 0; which < 2; which++) {
        ortc_edge *x = NULL;
        polynomial p;
        ortc_node *last = ortc_match_end(match_product(add->out[0], which, t, &x), t);
        x = ortc_match_root(x, t);
        if (last && x && !ortc_edge_is_const(x) && read_polynomial(in, x, t, MAX_DEPTH, &p) &&
            equals(&p, first, is_tanh ? first * 0.044715 : 0, t)) {
            *out_x = x;
            return last;
        }
    }
    return NULL;
}

ortc_status ortc_pass_raise_gelu(ortc_normalise *p)
{
    const ortc_op *gelu = ortc_op_find("", "Gelu");
    for (ortc_node *n = p->graph->first; n && gelu; n = n->next) { /* Erf and Tanh stay until dead-nodes */
        const bool is_tanh = ortc_match_is(n, "Tanh");
        ortc_edge *x = NULL;
        ortc_node *last = NULL;
        for (size_t i = 0; i < ORTC_LENGTH(ortc_match_types) && !last; i++)
            if (is_tanh || ortc_match_is(n, "Erf")) last = match(n, is_tanh, ortc_match_types[i], &x);
        if (!last) continue;
        const ortc_attr how = {.size = sizeof how,
                               .kind = ORTC_ATTR_STRING,
                               .count = 4,
                               .u.s = is_tanh ? "tanh" : "none"};
        ortc_node *raised;
        ORTC_TRY(ortc_match_raise(p, gelu, last, &x, 1, &raised));
        if (raised && !ortc_node_set_attr(raised, "approximate", &how)) return ortc_no_memory(p->error, 0);
    }
    return ORTC_OK;
}
