/* graph/normalise/raise_groupnorm.c: GroupNormalization, as PyTorch's exporters write it:
 *
 *   Reshape(InstanceNormalization(Reshape(x [N, C, ..], [N, G, -1]), ones, zeros), shape of x)
 *     = GroupNormalization(x, ones, zeros, num_groups=G)
 *
 * and a product with a constant of each channel, and a sum with one, behind it, which become its scale and
 * bias. Where values between are rounded to 8 bits, they are so before the first view and behind the last one
 * (rounded.h), and it is raised in the next round.
 */
#include "graph/ir/half.h"
#include "rounded.h"

/* A constant in which each element is v. */
static bool is_all(const ortc_edge *e, double v, ortc_dtype t)
{
    const ortc_constant *c = e && ortc_edge_is_const(e) ? e->constant : NULL;
    if (!c || c->dtype != t || c->rank != 1) return false;
    const size_t bytes = ortc_dtype_bits(t) / 8;
    const float f = (float)v;
    const uint16_t h = t == ORTC_F32 ? 0 : ortc_half_encode(v, t);
    for (int64_t i = 0; i < c->count; i++)
        if (memcmp((const char *)c->data + (size_t)i * bytes, t == ORTC_F32 ? (const void *)&f : &h, bytes) !=
            0)
            return false;
    return true;
}

/* A constant of type t with a number for each of the channels of x, and in no other dim. */
static bool is_by_channel(const ortc_edge *e, const ortc_edge *x, ortc_dtype t)
{
    const ortc_constant *c = e && ortc_edge_is_const(e) ? e->constant : NULL;
    if (!c || c->dtype != t || c->rank > x->rank || c->rank < x->rank - 1 || c->count != x->dims[1])
        return false;
    const int32_t axis = 1 - (x->rank - c->rank);
    return c->dims[axis] == x->dims[1];
}

/* The constant by channel that the one reader of *y, an `op`, combines it with: *y and *last are then its. */
static ortc_edge *taken(const char *op, const ortc_edge *x, ortc_dtype t, ortc_edge **y, ortc_node **last)
{
    ortc_node *n = ortc_match_reader(*y, 1);
    if (!ortc_match_is(n, op) || n->n_in != 2 || !n->out[0]) return NULL;
    ortc_edge *other = n->in[n->in[0] == *y];
    if (!is_by_channel(other, x, t) || !ortc_match_same_shape(n->out[0], x)) return NULL;
    *y = n->out[0], *last = n;
    return other;
}

/* The same numbers as a vector, or v for each of the channels. */
static ortc_edge *vector(ortc_normalise *p, const ortc_edge *e, double v, int64_t channels, ortc_dtype t)
{
    const size_t each = ortc_dtype_bits(t) / 8, bytes = (size_t)channels * each;
    const float f = (float)v;
    const uint16_t h = t == ORTC_F32 ? 0 : ortc_half_encode(v, t);
    char *data = ortc_data_alloc(bytes);
    for (int64_t c = 0; data && c < channels; c++)
        memcpy(data + (size_t)c * each,
               e               ? (const char *)e->constant->data + (size_t)c * each
               : t == ORTC_F32 ? (const void *)&f
                               : (const void *)&h,
               each);
    return ortc_graph_constant_take(p->graph, t, 1, &channels, data, bytes, p->error);
}

typedef struct form {
    ortc_node *n; /* InstanceNormalization */
    const ortc_node *first;
    ortc_node *back; /* the views */
    ortc_rounded before, behind;
} form;

static bool match(ortc_node *n, form *f)
{
    ortc_edge *y = n->out[0], *in = n->n_in == 3 ? ortc_match_unrounded(n->in[0], true, &f->before) : NULL;
    f->n = n, f->first = ortc_match_made(in, "Reshape", 2);
    if (!f->first || !y || ortc_edge_n_uses(in) != 1 || !in->type || in->type->kind != ORTC_KIND_TENSOR)
        return false;
    const ortc_edge *x = f->first->in[0];
    const ortc_dtype t = in->type->dtype;
    if ((t != ORTC_F32 && t != ORTC_F16 && t != ORTC_BF16) || in->rank < 3 || x->rank < 3 || !x->type ||
        !ortc_match_same(x->dims[0], in->dims[0]) || !ortc_dim_is_number(in->dims[1]) ||
        !ortc_dim_is_number(x->dims[1]) || in->dims[1] < 1 || x->dims[1] < 1 || x->dims[1] % in->dims[1] ||
        !is_all(n->in[1], 1, t) || !is_all(n->in[2], 0, t))
        return false;
    f->behind = (ortc_rounded){NULL, NULL};
    f->back = ortc_match_reader(y, 1);
    if (ortc_match_is(f->back, "QuantizeLinear") && f->back->out[0]) { /* and back */
        const ortc_node *d = ortc_match_reader(f->back->out[0], 1);
        ortc_edge *z = ortc_match_is(d, "DequantizeLinear") ? d->out[0] : NULL;
        if (!z || ortc_match_unrounded(z, true, &f->behind) != y) return false;
        f->back = ortc_match_reader(z, 1);
    }
    return ortc_match_is(f->back, "Reshape") && f->back->n_in == 2 && f->back->in[1] && f->back->out[0] &&
           ortc_match_same_shape(f->back->out[0], x);
}

/* Roundings go before the first view and behind the last one. */
static ortc_status move_roundings(ortc_normalise *p, const form *f)
{
    ortc_node *last = f->back;
    const ortc_edge *flat = f->n->in[0], *y = last->out[0];
    const ortc_dtype t = flat->type->dtype;
    ortc_edge *x = ortc_match_round(p, last, &f->before, f->first->in[0]);
    ortc_edge *in[3] = {ortc_match_apply(p, last, "Reshape", 2, (ortc_edge *[]){x, f->first->in[1]}, t,
                                         flat->rank, flat->dims),
                        f->n->in[1], f->n->in[2]};
    ortc_edge *z = ortc_match_apply(p, last, "InstanceNormalization", 3, in, t, flat->rank, flat->dims);
    if (!z || !ortc_node_copy_attrs(z->producer, f->n)) return ortc_no_memory(p->error, 0);
    z->producer->name = f->n->name;
    z = ortc_match_apply(p, last, "Reshape", 2, (ortc_edge *[]){z, last->in[1]}, t, y->rank, y->dims);
    if (z) z = ortc_match_round(p, last, &f->behind, z);
    if (!z) return ortc_no_memory(p->error, 0);
    return ortc_match_take_place(p, last, z->producer);
}

static ortc_status raise(ortc_normalise *p, const form *f)
{
    const ortc_edge *x = f->first->in[0];
    const ortc_dtype t = x->type->dtype;
    const int64_t groups = f->n->in[0]->dims[1], channels = x->dims[1];
    const ortc_attr epsilon = {.size = sizeof epsilon,
                               .kind = ORTC_ATTR_FLOAT,
                               .f = ortc_node_float(f->n, "epsilon", 1e-5F)};
    ortc_node *last = f->back, *made;
    ortc_edge *end = last->out[0], *scale = taken("Mul", x, t, &end, &last),
              *bias = taken("Add", x, t, &end, &last);
    ortc_edge *in[3] = {f->first->in[0], vector(p, scale, 1, channels, t), vector(p, bias, 0, channels, t)};
    if (!in[1] || !in[2]) return ortc_no_memory(p->error, 0);
    ORTC_TRY(ortc_match_raise(p, ortc_op_find("", "GroupNormalization"), last, in, 3, &made));
    if (!made) return ORTC_OK;
    made->name = f->n->name;
    if (!ortc_match_set_int(made, "num_groups", groups) || !ortc_node_set_attr(made, "epsilon", &epsilon))
        return ortc_no_memory(p->error, 0);
    return ORTC_OK;
}

ortc_status ortc_pass_raise_groupnorm(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first; n; n = n->next) { /* it stays until dead-nodes */
        form f;
        if (!ortc_match_is(n, "InstanceNormalization") || !match(n, &f)) continue;
        ORTC_TRY(f.before.quantise || f.behind.quantise ? move_roundings(p, &f) : raise(p, &f));
    }
    return ORTC_OK;
}
