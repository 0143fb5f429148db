/* graph/normalise/raise_layernorm.c: LayerNormalization and RMSNormalization from the nodes that exporters
 * write for them.
 *
 *   d = x - ReduceMean(x),  y = d / Sqrt(ReduceMean(d^2) + epsilon) * scale (+ bias)      LayerNormalization
 *                           y = x / Sqrt(ReduceMean(x^2) + epsilon) * scale               RMSNormalization
 *
 * The square is Pow by 2 or Mul by itself; the quotient is Div, or Mul by Reciprocal or by 1 / Sqrt; scale
 * and bias stand on either side. Axes are the last ones, scale and bias constants over them. The match starts
 * at Sqrt. Values in between must have no other readers.
 *
 * f16 and bf16: computed so, or in f32 between Casts, wherever these stand. The raised node computes its
 * statistics in f32 (stash_type), so that squares that left the range of f16 no longer do. That would be less
 * than an f64 model asks for: those are left.
 */
#include "match.h"

typedef struct layer_form {
    ortc_edge *x, *scale, *bias; /* bias NULL: none */
    ortc_node *last;
    ortc_dtype t; /* of x and y */
    int64_t axis; /* below zero, from the end */
    double epsilon;
    bool centred;
} layer_form;

/* The input of ReduceMean over the last k axes, kept as 1; *axis becomes -k. */
static ortc_edge *mean_of(const ortc_edge *e, int64_t *axis)
{
    const ortc_node *n = ortc_match_made(e, "ReduceMean", 2);
    const ortc_edge *axes = n ? n->in[1] : NULL;
    uint64_t seen = 0;
    if (!n || !ortc_node_int(n, "keepdims", 1) || !ortc_edge_is_const(axes) ||
        axes->constant->dtype != ORTC_I64)
        return NULL;
    const int64_t count = axes->constant->count, rank = n->in[0]->rank;
    if (rank < 1 || rank > 63 || count < 1 || count > rank) return NULL;
    for (int64_t i = 0; i < count; i++) {
        int64_t a;
        memcpy(&a, (const char *)axes->constant->data + i * 8, sizeof a);
        a = a < 0 ? a : a - rank;
        if (a < -count || a >= 0) return NULL;
        seen |= UINT64_C(1) << (-a - 1);
    }
    *axis = -count;
    return seen == (UINT64_C(1) << count) - 1 ? n->in[0] : NULL;
}

/* What is squared; *times: how often the square reads it. */
static ortc_edge *root_of(ortc_edge *e, uint32_t *times, ortc_dtype t)
{
    const ortc_node *n = ortc_match_made(e, "Mul", 2);
    double two;
    if (n && ortc_match_equal(n->in[0], n->in[1], t)) {
        *times = 2;
        return n->in[0];
    }
    n = ortc_match_made(e, "Pow", 2);
    *times = 1;
    return n && ortc_match_scalar(n->in[1], n->in[0]->rank, &two) && two == 2 ? n->in[0] : NULL;
}

/* A constant that is stretched over the normalised dims alone. */
static bool is_parameter(const ortc_edge *e, const layer_form *f)
{
    const ortc_constant *c = e && ortc_match_narrows(e, f->t) ? e->constant : NULL;
    if (!c || c->rank > f->x->rank) return false;
    for (int32_t d = -1; d >= -c->rank; d--) {
        const int64_t have = c->dims[c->rank + d];
        if (have != 1 && (d < f->axis || have != f->x->dims[f->x->rank + d])) return false;
    }
    return true;
}

/* The node that divides `x` by what `root` (of Sqrt) makes. */
static ortc_node *quotient(ortc_edge *x, const ortc_node *root, ortc_dtype t)
{
    ortc_edge *of = root->out[0];
    ortc_node *n = ortc_match_sink(of, 1, t);
    double one;
    if (ortc_match_is(n, "Div") && ortc_match_equal(n->in[0], x, t) && ortc_match_equal(n->in[1], of, t))
        return n;
    const bool inverse = ortc_match_is(n, "Reciprocal") ||
                         (ortc_match_is(n, "Div") && ortc_match_equal(n->in[1], of, t) &&
                          ortc_match_scalar(n->in[0], x->rank, &one) && one == 1);
    ortc_edge *r = inverse ? n->out[0] : NULL;
    n = ortc_match_sink(r, 1, t);
    return ortc_match_is(n, "Mul") && ortc_match_equal(ortc_match_other(n, r, t), x, t) ? n : NULL;
}

/* d = x - mean(x), read by the square and the quotient alone, gives x; anything else is not centred. false:
 * no form. */
static bool match_centre(ortc_edge *d, uint32_t times, layer_form *f)
{
    ortc_edge *centred = ortc_match_source(d, f->t);
    const ortc_node *sub = ortc_match_made(centred, "Sub", 2);
    ortc_edge *mean = sub ? ortc_match_source(sub->in[1], f->t) : NULL;
    int64_t own = 0;
    f->centred = sub && ortc_match_equal(mean_of(mean, &own), sub->in[0], f->t);
    f->x = ortc_match_root(f->centred ? sub->in[0] : d, f->t);
    return f->x && (!f->centred || (own == f->axis && ortc_match_uses(centred, f->t) == times + 1 &&
                                    ortc_match_uses(mean, f->t) == 1));
}

static bool match(const ortc_node *root, layer_form *f)
{
    uint32_t times = 0;
    const ortc_dtype t = f->t;
    const ortc_node *add = root->n_in && root->out[0] ? ortc_match_inner(root->in[0], "Add", 2, t) : NULL;
    const int mean_at = add ? ortc_edge_is_const(add->in[0]) : 0;
    const ortc_node *mean = add ? ortc_match_inner(add->in[mean_at], "ReduceMean", 2, t) : NULL;
    ortc_edge *square = mean ? ortc_match_source(mean_of(mean->out[0], &f->axis), t) : NULL,
              *d = square ? root_of(square, &times, t) : NULL;
    if (!d || !ortc_match_scalar(add->in[!mean_at], d->rank, &f->epsilon) || !(f->epsilon >= 0) ||
        ortc_match_uses(square, t) != 1)
        return false;
    ortc_node *div = quotient(d, root, t);
    if (!div || !div->out[0] || !match_centre(d, times, f)) return false;
    if (f->x->rank != d->rank || f->x->rank < 1 || !ortc_match_typed(f->x, t)) return false;
    ortc_node *mul = ortc_match_sink(div->out[0], 1, t);
    f->scale = ortc_match_is(mul, "Mul") && mul->out[0] ? ortc_match_other(mul, div->out[0], t) : NULL;
    if (!is_parameter(f->scale, f)) return false;
    f->last = ortc_match_end(mul, t);
    ortc_node *more = f->centred ? ortc_match_sink(mul->out[0], 1, t) : NULL;
    ortc_edge *bias = ortc_match_is(more, "Add") && more->out[0] ? ortc_match_other(more, mul->out[0], t)
                                                                 : NULL;
    if (is_parameter(bias, f) && ortc_match_end(more, t)) {
        f->bias = bias;
        f->last = ortc_match_end(more, t);
    }
    return f->last != NULL;
}

static ortc_status raise(ortc_normalise *p, const layer_form *f, const ortc_op *op)
{
    const ortc_attr axis = {.size = sizeof axis, .kind = ORTC_ATTR_INT, .i = f->axis};
    const ortc_attr epsilon = {.size = sizeof epsilon, .kind = ORTC_ATTR_FLOAT, .f = (float)f->epsilon};
    ortc_edge *const in[] = {f->x, ortc_match_narrow(p, f->scale, f->t),
                             f->bias ? ortc_match_narrow(p, f->bias, f->t) : NULL};
    ortc_node *n;
    if (!in[1] || (f->bias && !in[2])) return ortc_no_memory(p->error, 0);
    ORTC_TRY(ortc_match_raise(p, op, f->last, in, f->bias ? 3 : 2, &n));
    if (n && (!ortc_node_set_attr(n, "axis", &axis) || !ortc_node_set_attr(n, "epsilon", &epsilon)))
        return ortc_no_memory(p->error, 0);
    return ORTC_OK;
}

ortc_status ortc_pass_raise_layernorm(ortc_normalise *p)
{
    const ortc_op *layer = ortc_op_find("", "LayerNormalization"),
                  *rms = ortc_op_find("", "RMSNormalization");
    for (ortc_node *n = p->graph->first; n; n = n->next) { /* Sqrt itself stays until dead-nodes */
        if (!ortc_match_is(n, "Sqrt")) continue;
        for (size_t i = 0; i < ORTC_LENGTH(ortc_match_types); i++) {
            layer_form f = {.t = ortc_match_types[i]};
            if (!match(n, &f)) continue;
            const ortc_op *op = f.centred ? layer : rms;
            if (op) ORTC_TRY(raise(p, &f, op));
            break;
        }
    }
    return ORTC_OK;
}
