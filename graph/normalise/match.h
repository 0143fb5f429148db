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

/* The operand of a node of two that is not `e`; e itself if it is both. */
static inline ortc_edge *ortc_match_other(const ortc_node *n, const ortc_edge *e)
{
    return n->n_in == 2 ? n->in[n->in[0] == e] : NULL;
}

/* The value of a constant of one element that leaves the shape of a tensor of `rank` dims (-1: not known) as
 * it is. */
static inline bool ortc_match_scalar(const ortc_edge *e, int32_t rank, double *out)
{
    const ortc_constant *c = e && ortc_edge_is_const(e) ? e->constant : NULL;
    float f;
    int64_t i;
    if (!c || c->count != 1 || (c->rank > 0 && c->rank > rank)) return false;
    switch (c->dtype) {
    case ORTC_F32: memcpy(&f, c->data, sizeof f), *out = (double)f; return true;
    case ORTC_F64: memcpy(out, c->data, sizeof *out); return true;
    case ORTC_I64: memcpy(&i, c->data, sizeof i), *out = (double)i; return true;
    default: return false;
    }
}

/* Exporters write constants in f32, or with some digits less than a double has. */
static inline bool ortc_match_near(double have, double want)
{
    return fabs(have - want) <= 1e-6 * fabs(want);
}

/* A node of `op` that takes the place and the output of `last`, with these inputs (NULL: left out) and, as
 * its body, what made that output of them so far. The caller sets attributes. *out NULL: nothing has changed,
 * for the output depends on something else too. (raise.c) */
ortc_status ortc_match_raise(ortc_normalise *, const ortc_op *op, ortc_node *last, ortc_edge *const *in,
                             uint32_t n_in, ortc_node **out);

#endif
