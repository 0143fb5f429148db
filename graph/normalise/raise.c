/* graph/normalise/raise.c: what passes that raise have in common: readers behind Casts, constants of any
 * float type, a node with a body in the place of a form (match.h). */
#include "graph/ir/half.h"
#include "match.h"

/* ---- Readers ------------------------------------------------------------------------------------------- */

static uint32_t count(const ortc_edge *e, ortc_dtype t, ortc_node **one)
{
    uint32_t n = 0;
    for (const ortc_use *u = e->uses; u; u = u->next) {
        if (u->node && ortc_match_cast(u->node, t)) {
            n += count(u->node->out[0], t, one);
            continue;
        }
        *one = n == 0 || *one == u->node ? u->node : NULL;
        n++;
    }
    return n;
}

uint32_t ortc_match_uses(const ortc_edge *e, ortc_dtype t)
{
    ortc_node *one = NULL;
    return e ? count(e, t, &one) : 0;
}

ortc_node *ortc_match_sink(const ortc_edge *e, uint32_t times, ortc_dtype t)
{
    ortc_node *first = NULL;
    if (!e || count(e, t, &first) != times || !first) return NULL;
    uint32_t reads = 0;
    for (uint32_t i = 0; i < first->n_in; i++)
        reads += first->in[i] == e || ortc_match_equal(first->in[i], (ortc_edge *)(uintptr_t)e, t);
    return reads == times ? first : NULL;
}

ortc_node *ortc_match_end(ortc_node *last, ortc_dtype t)
{
    ortc_edge *y = last ? last->out[0] : NULL;
    if (!y || ortc_match_root(y, t) == y) return y ? last : NULL;
    ortc_node *cast = ortc_match_reader(y, 1);
    return ortc_match_cast(cast, t) && ortc_match_typed(cast->out[0], t) ? cast : NULL;
}

/* ---- Constants ----------------------------------------------------------------------------------------- */

bool ortc_match_scalar(const ortc_edge *e, int32_t rank, double *out)
{
    const ortc_constant *c = e && ortc_edge_is_const(e) ? e->constant : NULL;
    float f;
    int64_t i;
    uint16_t h;
    if (!c || c->count != 1 || (c->rank > 0 && c->rank > rank)) return false;
    switch (c->dtype) {
    case ORTC_F16:
    case ORTC_BF16: memcpy(&h, c->data, sizeof h), *out = ortc_half_decode(h, c->dtype); return true;
    case ORTC_F32: memcpy(&f, c->data, sizeof f), *out = (double)f; return true;
    case ORTC_F64: memcpy(out, c->data, sizeof *out); return true;
    case ORTC_I64: memcpy(&i, c->data, sizeof i), *out = (double)i; return true;
    default: return false;
    }
}

static bool holds(float f, ortc_dtype t)
{
    const double have = ortc_half_decode(ortc_half_encode((double)f, t), t);
    return memcmp(&have, &(double){(double)f}, sizeof have) == 0;
}

ortc_edge *ortc_match_constant(ortc_normalise *p, ortc_dtype t, double v)
{
    const float f = (float)v;
    const uint16_t h = t == ORTC_F32 ? 0 : ortc_half_encode(v, t);
    return ortc_graph_constant_copy(p->graph, t, 0, NULL, t == ORTC_F32 ? (const void *)&f : &h,
                                    t == ORTC_F32 ? sizeof f : sizeof h, p->error);
}

bool ortc_match_narrows(const ortc_edge *e, ortc_dtype t)
{
    const ortc_constant *c = e && ortc_edge_is_const(e) ? e->constant : NULL;
    if (!c || c->dtype == t) return c != NULL;
    for (int64_t i = 0; i < c->count; i++) {
        float f;
        if (c->dtype != ORTC_F32 || (t != ORTC_F16 && t != ORTC_BF16)) return false;
        memcpy(&f, (const char *)c->data + i * 4, sizeof f);
        if (!holds(f, t)) return false;
    }
    return c->dtype == ORTC_F32;
}

ortc_edge *ortc_match_narrow(ortc_normalise *p, ortc_edge *e, ortc_dtype t)
{
    const ortc_constant *c = e && ortc_match_narrows(e, t) ? e->constant : NULL;
    if (!c || c->dtype == t) return c ? e : NULL;
    uint16_t *data = ortc_data_alloc((size_t)c->count * sizeof *data);
    for (int64_t i = 0; data && i < c->count; i++) {
        float f;
        memcpy(&f, (const char *)c->data + i * 4, sizeof f);
        data[i] = ortc_half_encode((double)f, t);
    }
    return ortc_graph_constant_take(p->graph, t, c->rank, c->dims, data, (size_t)c->count * sizeof *data,
                                    p->error);
}

/* ---- Raising ------------------------------------------------------------------------------------------- */

ortc_edge *ortc_match_integers(ortc_normalise *p, const int64_t *values, int64_t count)
{
    return ortc_graph_constant_copy(p->graph, ORTC_I64, 1, &count, values, (size_t)count * sizeof *values,
                                    p->error);
}

ortc_edge *ortc_match_apply(ortc_normalise *p, ortc_node *before, const char *op, uint32_t n_in,
                            ortc_edge *const *in, ortc_dtype t, int32_t rank, const ortc_dim *dims)
{
    ortc_node *n = ortc_node_create(p->graph, ortc_op_find("", op), NULL, n_in, 1);
    ortc_edge *y = n ? ortc_edge_create(p->graph, NULL) : NULL;
    if (!y || !ortc_node_set_out(n, 0, y) ||
        (dims && !ortc_edge_set_shape(y, ortc_tensor_type(t), rank, dims)))
        return NULL;
    for (uint32_t i = 0; i < n_in; i++)
        if (!in[i] || !ortc_node_set_in(n, i, in[i])) return NULL;
    ortc_node_move_before(n, before);
    return y;
}

ortc_status ortc_match_raise(ortc_normalise *p, const ortc_op *op, ortc_node *last, ortc_edge *const *in,
                             uint32_t n_in, ortc_node **out)
{
    ortc_edge *y = last->out[0];
    ortc_graph *body;

    *out = NULL;
    ORTC_TRY(ortc_body_collect(p->graph, in, n_in, y, &body, p->error));
    if (!body) return ORTC_OK;
    ortc_node *n = ortc_node_create(p->graph, op, last->name, n_in, 1);
    if (!n) return ortc_no_memory(p->error, 0);
    ortc_node_move_before(n, last);
    ortc_node_remove(last);
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i] && !ortc_node_set_in(n, i, in[i])) return ortc_no_memory(p->error, 0);
    if (!ortc_node_set_out(n, 0, y)) /* the result keeps the name that the file gave it */
        return ortc_no_memory(p->error, 0);
    n->body = body;
    p->edits++;
    *out = n;
    return ORTC_OK;
}
