/* graph/normalise/match.h: what passes that raise exporters' decomposed forms ask of a graph.
 *
 * A match walks from one telling node to its operands and its only reader. Nothing is changed while matching.
 * A raised node takes the place and the output of the last node of the form, and gets the form as its body;
 * the others, then without readers, are left to dead-nodes.
 */
#ifndef ORTC_MATCH_H
#define ORTC_MATCH_H

#include <math.h>

#include "graph/ir/body.h"
#include "normalise.h"

static inline bool ortc_match_is(const ortc_node *n, const char *type)
{
    return n && n->op && !*n->domain && !n->epilogue && !strcmp(n->type, type);
}

/* Provably the same extent. */
static inline bool ortc_match_same(ortc_dim a, ortc_dim b) { return a == b && a != ORTC_DIM_UNKNOWN; }

/* Of as many dims, each the same. */
static inline bool ortc_match_same_shape(const ortc_edge *a, const ortc_edge *b)
{
    if (a->rank < 0 || a->rank != b->rank) return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (!ortc_match_same(a->dims[i], b->dims[i])) return false;
    return true;
}

/* The node that makes an edge, if it is of this type and has all of its first n_in inputs and the output. */
static inline ortc_node *ortc_match_made(const ortc_edge *e, const char *type, uint32_t n_in)
{
    ortc_node *n = e ? e->producer : NULL;
    if (!ortc_match_is(n, type) || e->producer_port != 0 || n->n_in < n_in) return NULL;
    for (uint32_t i = 0; i < n_in; i++)
        if (!n->in[i]) return NULL;
    return n;
}

/* The one node that reads an edge `times` times, NULL: others read it too, or it is an output of the
 * graph. */
static inline ortc_node *ortc_match_reader(const ortc_edge *e, uint32_t times)
{
    ortc_node *n = e && e->uses ? e->uses->node : NULL;
    if (!n || ortc_edge_n_uses(e) != times) return NULL;
    for (const ortc_use *u = e->uses; u; u = u->next)
        if (u->node != n) return NULL;
    return n;
}

/* ---- Types --------------------------------------------------------------------------------------------- */

/* A form of type t may step into f32 and back, as converters and autocast write it: Casts between the two are
 * looked through. Forms are tried in these types, the last of which has no Casts to look through; there f64
 * is taken for f32. */
static const ortc_dtype ortc_match_types[] = {ORTC_F16, ORTC_BF16, ORTC_F32};

static inline bool ortc_match_typed(const ortc_edge *e, ortc_dtype t)
{
    return e && e->type && ortc_type_equal(e->type, ortc_tensor_type(t));
}

/* Is n a Cast from t to f32 or back? */
static inline bool ortc_match_cast(const ortc_node *n, ortc_dtype t)
{
    return t != ORTC_F32 && ortc_match_is(n, "Cast") && n->n_in == 1 && n->n_out == 1 &&
           (ortc_match_typed(n->in[0], t) || ortc_match_typed(n->in[0], ORTC_F32)) &&
           (ortc_match_typed(n->out[0], t) || ortc_match_typed(n->out[0], ORTC_F32));
}

/* What e is, without Casts. */
static inline ortc_edge *ortc_match_source(ortc_edge *e, ortc_dtype t)
{
    while (e && ortc_match_cast(e->producer, t)) e = e->producer->in[0];
    return e;
}

static inline bool ortc_match_equal(ortc_edge *a, ortc_edge *b, ortc_dtype t)
{
    return a && ortc_match_source(a, t) == ortc_match_source(b, t);
}

/* What the form is applied to, in its type: e, or what e is a Cast of. */
static inline ortc_edge *ortc_match_root(ortc_edge *e, ortc_dtype t)
{
    if (ortc_match_typed(e, t) || (t == ORTC_F32 && ortc_match_typed(e, ORTC_F64))) return e;
    return e && ortc_match_cast(e->producer, t) && ortc_match_typed(e->producer->in[0], t)
               ? e->producer->in[0]
               : NULL;
}

/* The one node that reads what e is, through Casts, `times` times; NULL: others do too. (raise.c) */
ortc_node *ortc_match_sink(const ortc_edge *e, uint32_t times, ortc_dtype t);
/* How often e is read, through Casts; an output of the graph is a reader. */
uint32_t ortc_match_uses(const ortc_edge *e, ortc_dtype t);
/* The node that ends a form of type t: `last`, or the Cast to t behind it. NULL: it ends in another type. */
ortc_node *ortc_match_end(ortc_node *last, ortc_dtype t);

/* ---- Operands ------------------------------------------------------------------------------------------ */

/* The node that makes e, before any Casts, if it is of this type, has its first n_in inputs, and the form's
 * next node alone reads it. */
static inline ortc_node *ortc_match_inner(ortc_edge *e, const char *type, uint32_t n_in, ortc_dtype t)
{
    e = ortc_match_source(e, t);
    return e && ortc_match_uses(e, t) == 1 ? ortc_match_made(e, type, n_in) : NULL;
}

/* The operand of a node of two that is not `e`; e itself if it is both. */
static inline ortc_edge *ortc_match_other(const ortc_node *n, ortc_edge *e, ortc_dtype t)
{
    return n->n_in == 2 ? n->in[ortc_match_equal(n->in[0], e, t)] : NULL;
}

/* The value of a constant of one element that leaves the shape of a tensor of `rank` dims (-1: not known) as
 * it is. */
bool ortc_match_scalar(const ortc_edge *e, int32_t rank, double *out);

/* Exporters write constants in the model's type, or with some digits less than a double has; two may have
 * been multiplied. */
static inline bool ortc_match_near(double have, double want, ortc_dtype t)
{
    return fabs(have - want) <= (t == ORTC_F16 ? 0x1p-10 : t == ORTC_BF16 ? 0x1p-7 : 1e-6) * fabs(want);
}

/* A constant in type t: e itself, or what holds the same numbers; NULL: there is none, or no memory. */
ortc_edge *ortc_match_narrow(ortc_normalise *, ortc_edge *e, ortc_dtype t);
/* Would there be one? */
bool ortc_match_narrows(const ortc_edge *e, ortc_dtype t);
/* A scalar of f32, f16 or bf16, rounded; NULL: no memory. */
ortc_edge *ortc_match_constant(ortc_normalise *, ortc_dtype t, double value);

/* The result of a new node of the standard's, of one result, before another; dims NULL: inference finds what
 * it is. NULL: no memory, or an input is. (raise.c) */
ortc_edge *ortc_match_apply(ortc_normalise *, ortc_node *before, const char *op, uint32_t n_in,
                            ortc_edge *const *in, ortc_dtype t, int32_t rank, const ortc_dim *dims);
/* `last`, a new node of one result, takes n's place and its output. */
static inline ortc_status ortc_match_take_place(ortc_normalise *p, ortc_node *n, ortc_node *last)
{
    ortc_edge *y = n->out[0];
    ortc_node_move_before(last, n);
    ortc_node_remove(n);
    if (!ortc_node_set_out(last, 0, y)) return ortc_no_memory(p->error, 0);
    p->edits++;
    return ORTC_OK;
}
static inline bool ortc_match_set_int(ortc_node *n, const char *name, int64_t value)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INT, .i = value};
    return ortc_node_set_attr(n, name, &a);
}

static inline bool ortc_match_set_ints(ortc_node *n, const char *name, size_t count, const int64_t *v)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INTS, .count = count, .u.ints = v};
    return ortc_node_set_attr(n, name, &a);
}

/* A constant vector of integers; NULL: no memory. (raise.c) */
ortc_edge *ortc_match_integers(ortc_normalise *, const int64_t *values, int64_t count);

/* A node of `op` that takes the place and the output of `last`, with these inputs (NULL: left out) and, as
 * its body, what made that output of them so far. The caller sets attributes. *out NULL: nothing has changed,
 * for the output depends on something else too. (raise.c) */
ortc_status ortc_match_raise(ortc_normalise *, const ortc_op *op, ortc_node *last, ortc_edge *const *in,
                             uint32_t n_in, ortc_node **out);

#endif
