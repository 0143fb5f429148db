/* graph/normalise/raise_layernorm.c: LayerNormalization and RMSNormalization from the nodes that exporters
 * write for them.
 *
 *   d = x - ReduceMean(x),  y = d / Sqrt(ReduceMean(d^2) + epsilon) * scale (+ bias)      LayerNormalization
 *                           y = x / Sqrt(ReduceMean(x^2) + epsilon) * scale               RMSNormalization
 *
 * The square is Pow by 2 or Mul by itself; the quotient is Div, or Mul by Reciprocal or by 1 / Sqrt; scale
 * and bias stand on either side. Axes are the last ones, scale and bias constants over them. The match starts
 * at Sqrt. Values in between must have no other readers. f32 only: a raised node may compute its statistics
 * in f32 (stash_type), which would be less than an f64 model asks for, and decomposed f16 models cast by
 * themselves.
 */
#include "match.h"

typedef struct layer_form {
    ortc_edge *x, *scale, *bias; /* bias NULL: none */
    ortc_node *last;
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
static ortc_edge *root_of(const ortc_edge *e, uint32_t *times)
{
    const ortc_node *n = ortc_match_made(e, "Mul", 2);
    double two;
    if (n && n->in[0] == n->in[1]) {
        *times = 2;
        return n->in[0];
    }
    n = ortc_match_made(e, "Pow", 2);
    *times = 1;
    return n && ortc_match_scalar(n->in[1], n->in[0]->rank, &two) && two == 2 ? n->in[0] : NULL;
}

/* A constant that is stretched over the normalised dims alone. */
static bool is_parameter(const ortc_edge *e, const ortc_edge *x, int64_t axis)
{
    const ortc_constant *c = e && ortc_edge_is_const(e) ? e->constant : NULL;
    if (!c || c->dtype != ORTC_F32 || c->rank > x->rank) return false;
    for (int32_t d = -1; d >= -c->rank; d--) {
        const int64_t have = c->dims[c->rank + d];
        if (have != 1 && (d < axis || have != x->dims[x->rank + d])) return false;
    }
    return true;
}

/* The node that divides `x` by what `root` (of Sqrt) makes. */
static ortc_node *quotient(const ortc_edge *x, const ortc_node *root)
{
    ortc_node *n = ortc_match_reader(root->out[0], 1);
    double one;
    if (ortc_match_is(n, "Div") && n->in[0] == x && n->in[1] == root->out[0]) return n;
    const bool inverse = ortc_match_is(n, "Reciprocal") ||
                         (ortc_match_is(n, "Div") && n->in[1] == root->out[0] &&
                          ortc_match_scalar(n->in[0], x->rank, &one) && one == 1);
    const ortc_edge *r = inverse ? n->out[0] : NULL;
    n = ortc_match_reader(r, 1);
    return ortc_match_is(n, "Mul") && ortc_match_other(n, r) == x ? n : NULL;
}

/* d = x - mean(x), read by the square and the quotient alone, gives x; anything else is not centred. false:
 * no form. */
static bool match_centre(ortc_edge *d, uint32_t times, int64_t axis, layer_form *f)
{
    const ortc_node *sub = ortc_match_made(d, "Sub", 2);
    int64_t own = 0;
    f->x = d;
    f->centred = sub && mean_of(sub->in[1], &own) == sub->in[0];
    if (!f->centred) return true;
    f->x = sub->in[0];
    return own == axis && ortc_edge_n_uses(d) == times + 1 && ortc_match_reader(sub->in[1], 1);
}

static bool match(const ortc_node *root, layer_form *f)
{
    uint32_t times = 0;
    const ortc_edge *sum = root->n_in ? root->in[0] : NULL;
    const ortc_node *add = ortc_match_made(sum, "Add", 2);
    if (!add || !root->out[0] || ortc_match_reader(sum, 1) != root) return false;
    const int mean_at = ortc_edge_is_const(add->in[0]);
    const ortc_edge *mean = add->in[mean_at];
    ortc_edge *square = mean_of(mean, &f->axis), *d = square ? root_of(square, &times) : NULL;
    if (!d || !ortc_match_scalar(add->in[!mean_at], d->rank, &f->epsilon) || !(f->epsilon >= 0) ||
        !ortc_match_reader(mean, 1) || !ortc_match_reader(square, 1))
        return false;
    ortc_node *div = quotient(d, root);
    if (!div || !div->out[0] || !match_centre(d, times, f->axis, f)) return false;
    if (f->x->rank != d->rank || f->x->rank < 1 || !f->x->type ||
        !ortc_type_equal(f->x->type, ortc_tensor_type(ORTC_F32)))
        return false;
    ortc_node *mul = ortc_match_reader(div->out[0], 1);
    f->scale = ortc_match_is(mul, "Mul") && mul->out[0] ? ortc_match_other(mul, div->out[0]) : NULL;
    if (!is_parameter(f->scale, f->x, f->axis)) return false;
    f->last = mul;
    ortc_node *more = f->centred ? ortc_match_reader(mul->out[0], 1) : NULL;
    ortc_edge *bias = ortc_match_is(more, "Add") && more->out[0] ? ortc_match_other(more, mul->out[0]) : NULL;
    if (is_parameter(bias, f->x, f->axis)) {
        f->bias = bias;
        f->last = more;
    }
    return true;
}

static ortc_status raise(ortc_normalise *p, const layer_form *f, const ortc_op *op)
{
    const ortc_attr axis = {.size = sizeof axis, .kind = ORTC_ATTR_INT, .i = f->axis};
    const ortc_attr epsilon = {.size = sizeof epsilon, .kind = ORTC_ATTR_FLOAT, .f = (float)f->epsilon};
    ortc_edge *const in[] = {f->x, f->scale, f->bias};
    ortc_node *n;
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
        layer_form f = {0};
        if (!ortc_match_is(n, "Sqrt") || !match(n, &f)) continue;
        const ortc_op *op = f.centred ? layer : rms;
        if (op) ORTC_TRY(raise(p, &f, op));
    }
    return ORTC_OK;
}
