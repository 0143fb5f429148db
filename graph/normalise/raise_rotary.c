/* graph/normalise/raise_rotary.c: RotaryEmbedding from the nodes that exporters write for LLaMA's
 * rotate_half.
 *
 *   y = x * cos + Concat(-x[D/2..], x[..D/2]) * sin        x [B, heads, L, D]
 *   cos = Unsqueeze(Cos(Concat(a, a)), 1), sin likewise: [B, L, D] or [1, L, D], with constant factors
 *
 * RotaryEmbedding reads the first halves of cos and sin only, so that the second must be provably the same:
 * that is what Concat(a, a) shows. The halves are taken by Slice, once for all nodes of the model that turn
 * by these angles, and expanded to B. The match starts at the Concat behind Neg. Angles may be computed in
 * f32 and Cast to the type of x.
 */
#include "match.h"

typedef struct rotary_form {
    ortc_edge *x;
    ortc_node *turned, *kept, *last; /* Mul by sin, Mul by cos, Add */
} rotary_form;

/* The one element of a constant vector; `otherwise` where it is left out. */
static bool element(const ortc_node *n, uint32_t port, int64_t otherwise, int64_t *out)
{
    const ortc_edge *e = ortc_node_in_edge(n, port);
    int32_t narrow;
    *out = otherwise;
    if (!e) return port > 2;
    if (!ortc_edge_is_const(e) || e->constant->count != 1) return false;
    if (e->constant->dtype == ORTC_I64) {
        memcpy(out, e->constant->data, sizeof *out);
        return true;
    }
    memcpy(&narrow, e->constant->data, e->constant->dtype == ORTC_I32 ? sizeof narrow : 0);
    *out = e->constant->dtype == ORTC_I32 ? narrow : 0;
    return e->constant->dtype == ORTC_I32;
}

/* x, of which e is the first or the second half of the last axis; its size is an even number. */
static ortc_edge *half_of(const ortc_edge *e, int which)
{
    const ortc_node *n = e ? e->producer : NULL;
    ortc_edge *x = n && n->n_in ? n->in[0] : NULL;
    int64_t start, end, axis, step;
    if (!x || x->rank != 4 || x->dims[3] <= 0 || x->dims[3] % 2 || e->rank != 4 ||
        e->dims[3] != x->dims[3] / 2)
        return NULL;
    if (ortc_match_is(n, "Split")) {
        axis = ortc_node_int(n, "axis", 0);
        return (axis == 3 || axis == -1) && n->n_out == 2 && e->producer_port == (uint32_t)which ? x : NULL;
    }
    if (!ortc_match_is(n, "Slice") || !element(n, 1, 0, &start) || !element(n, 2, 0, &end) ||
        !element(n, 3, 0, &axis) || !element(n, 4, 1, &step) || (axis != 3 && axis != -1) || step != 1)
        return NULL;
    start = start < 0 ? start + x->dims[3] : start;
    end = end < 0 ? end + x->dims[3] : end;
    return which == 0 ? (start == 0 && end == e->dims[3] ? x : NULL)
                      : (start == e->dims[3] && end >= x->dims[3] ? x : NULL);
}

/* [B, L, D] of which e [B, 1, L, D] is made, if both halves of its last axis are the same. */
static ortc_edge *angles_of(const ortc_edge *e, const char *function, const ortc_edge *x)
{
    const ortc_node *n = ortc_match_made(e, "Unsqueeze", 2);
    int64_t axis = 0, joined;
    ortc_edge *c = n ? n->in[0] : NULL;
    double v;
    if (!c || c->rank != 3 || !element(n, 1, 0, &axis) || (axis != 1 && axis != -3) ||
        (c->dims[0] != 1 && !ortc_match_same(c->dims[0], x->dims[0])) ||
        !ortc_match_same(c->dims[1], x->dims[2]) || !ortc_match_same(c->dims[2], x->dims[3]) || !c->type ||
        !ortc_type_equal(c->type, x->type))
        return NULL;
    const ortc_dtype t = x->type->dtype;
    const ortc_edge *at = ortc_match_source(c, t);
    for (const ortc_node *mul; (mul = ortc_match_made(at, "Mul", 2));) {
        const int of = ortc_edge_is_const(mul->in[0]);
        if (!ortc_match_scalar(mul->in[!of], mul->in[of]->rank, &v)) return NULL;
        at = ortc_match_source(mul->in[of], t);
    }
    const ortc_node *f = ortc_match_made(at, function, 1),
                    *concat = f ? ortc_match_made(f->in[0], "Concat", 2) : NULL;
    joined = concat ? ortc_node_int(concat, "axis", 0) : 0;
    return concat && concat->n_in == 2 && concat->in[0] == concat->in[1] && (joined == 2 || joined == -1)
               ? c
               : NULL;
}

/* n is the Concat. */
static bool match(const ortc_node *n, rotary_form *f, ortc_edge **cos, ortc_edge **sin)
{
    const int64_t axis = ortc_node_int(n, "axis", 0);
    const ortc_node *neg = n->n_in == 2 ? ortc_match_made(n->in[0], "Neg", 1) : NULL;
    ortc_edge *x = neg ? half_of(neg->in[0], 1) : NULL;
    if (!x || half_of(n->in[1], 0) != x || (axis != 3 && axis != -1) || !n->out[0] ||
        !ortc_match_reader(n->in[0], 1) ||
        (!ortc_match_typed(x, ORTC_F32) && !ortc_match_typed(x, ORTC_F16) && !ortc_match_typed(x, ORTC_BF16)))
        return false;
    const ortc_dtype t = x->type->dtype;
    f->x = x;
    f->turned = ortc_match_reader(n->out[0], 1);
    if (!ortc_match_is(f->turned, "Mul") || !f->turned->out[0]) return false;
    *sin = angles_of(ortc_match_other(f->turned, n->out[0], t), "Sin", x);
    f->last = ortc_match_reader(f->turned->out[0], 1);
    if (!*sin || !ortc_match_is(f->last, "Add") || !f->last->out[0]) return false;
    ortc_edge *kept = ortc_match_other(f->last, f->turned->out[0], t);
    f->kept = ortc_match_made(kept, "Mul", 2);
    if (!f->kept || !ortc_match_reader(kept, 1) || (f->kept->in[0] != x && f->kept->in[1] != x)) return false;
    *cos = angles_of(ortc_match_other(f->kept, x, t), "Cos", x);
    return *cos != NULL;
}

/* ---- Halves -------------------------------------------------------------------------------------------- */

static ortc_edge *ints(ortc_normalise *p, int64_t value) { return ortc_match_integers(p, &value, 1); }

static ortc_edge *apply(ortc_normalise *p, ortc_node *before, const char *op, ortc_edge *const *in,
                        uint32_t n_in, int32_t rank, const ortc_dim *dims)
{
    return in[0] ? ortc_match_apply(p, before, op, n_in, in, in[0]->type->dtype, rank, dims) : NULL;
}

/* The first half of `full`, made right behind it by the first who asks. */
static ortc_edge *first_half(ortc_normalise *p, ortc_edge *full, const ortc_dim *dims)
{
    int64_t start, end, axis;
    for (const ortc_use *u = full->uses; u; u = u->next)
        if (ortc_match_is(u->node, "Slice") && u->node->n_in == 4 && u->node->out[0] &&
            element(u->node, 1, 0, &start) && start == 0 && element(u->node, 2, 0, &end) && end == dims[2] &&
            element(u->node, 3, 0, &axis) && axis == 2)
            return u->node->out[0];
    ortc_edge *const slice[] = {full, ints(p, 0), ints(p, dims[2]), ints(p, 2)};
    return apply(p, full->producer->next, "Slice", slice, 4, 3, dims);
}

static bool precedes(const ortc_node *a, const ortc_node *b)
{
    while (a && a != b) a = a->next;
    return a != NULL;
}

/* `half` for every sample of x, made by the first who asks. */
static ortc_edge *expanded(ortc_normalise *p, ortc_node *before, ortc_edge *x, ortc_edge *half)
{
    const ortc_dim dims[3] = {x->dims[0], half->dims[1], half->dims[2]}, one = 1, three = 3;
    const ortc_attr zero = {.size = sizeof zero, .kind = ORTC_ATTR_INT},
                    end = {.size = sizeof end, .kind = ORTC_ATTR_INT, .i = 1};
    if (ortc_match_same(half->dims[0], x->dims[0])) return half;
    for (const ortc_use *u = half->uses; u; u = u->next)
        if (ortc_match_is(u->node, "Expand") && u->node->out[0] && u->node->out[0]->rank == 3 &&
            ortc_match_same(u->node->out[0]->dims[0], dims[0]) &&
            ortc_match_same(u->node->out[0]->dims[1], dims[1]) &&
            ortc_match_same(u->node->out[0]->dims[2], dims[2]) && precedes(u->node, before))
            return u->node->out[0];
    ortc_edge *batch = apply(p, before, "Shape", &x, 1, 1, &one);
    if (!batch || !ortc_edge_set_shape(batch, ortc_tensor_type(ORTC_I64), 1, &one) ||
        !ortc_node_set_attr(batch->producer, "start", &zero) ||
        !ortc_node_set_attr(batch->producer, "end", &end))
        return NULL;
    ortc_edge *const parts[] = {batch, ints(p, 1), ints(p, 1)};
    ortc_edge *target = apply(p, before, "Concat", parts, 3, 1, &three);
    ortc_edge *const in[] = {half, target};
    return target && ortc_node_set_attr(target->producer, "axis", &zero)
               ? apply(p, before, "Expand", in, 2, 3, dims)
               : NULL;
}

/* The first half of `full`; `reader` reads Concat(half, half), unsqueezed as before, instead of `full`. */
static ortc_edge *halve(ortc_normalise *p, ortc_node *reader, ortc_edge *x, ortc_edge *full)
{
    const ortc_dim all[3] = {x->dims[0], full->dims[1], full->dims[2]};
    const ortc_dim half_dims[3] = {full->dims[0], full->dims[1], full->dims[2] / 2};
    const ortc_dim wide[4] = {x->dims[0], 1, full->dims[1], full->dims[2]};
    const ortc_attr last = {.size = sizeof last, .kind = ORTC_ATTR_INT, .i = -1};
    const uint32_t port = reader->in[0] == x || ortc_match_is(reader->in[0]->producer, "Concat");
    ortc_edge *half = first_half(p, full, half_dims);
    half = half ? expanded(p, reader, x, half) : NULL;
    ortc_edge *const twice[] = {half, half};
    ortc_edge *both = half ? apply(p, reader, "Concat", twice, 2, 3, all) : NULL;
    if (!both || !ortc_node_set_attr(both->producer, "axis", &last)) return NULL;
    ortc_edge *const unsqueeze[] = {both, ints(p, 1)};
    ortc_edge *spread = apply(p, reader, "Unsqueeze", unsqueeze, 2, 4, wide);
    return spread && ortc_node_set_in(reader, port, spread) ? half : NULL;
}

ortc_status ortc_pass_raise_rotary(ortc_normalise *p)
{
    const ortc_op *rotary = ortc_op_find("", "RotaryEmbedding");
    if (!rotary || !ortc_op_find("", "Slice") || !ortc_op_find("", "Concat") ||
        !ortc_op_find("", "Unsqueeze") || !ortc_op_find("", "Shape") || !ortc_op_find("", "Expand"))
        return ORTC_OK;
    for (ortc_node *n = p->graph->first; n; n = n->next) { /* Concat stays until dead-nodes */
        rotary_form f = {0};
        ortc_edge *cos, *sin;
        ortc_node *raised;
        if (!ortc_match_is(n, "Concat") || !match(n, &f, &cos, &sin)) continue;
        ortc_edge *const in[] = {f.x, halve(p, f.kept, f.x, cos), halve(p, f.turned, f.x, sin)};
        if (!in[1] || !in[2]) return ortc_no_memory(p->error, 0);
        ORTC_TRY(ortc_match_raise(p, rotary, f.last, in, 3, &raised));
    }
    return ORTC_OK;
}
