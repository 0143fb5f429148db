/* graph/specialise/squeeze_excite.c: a convolution and what looks at all of its result, or scales all that it
 * reads, become one node, so that the values between pass through memory once less.
 *
 *   y = Conv(x), GlobalAveragePool(y)      squeezed: the mean of each channel; or ReduceMean of all but these
 *   Conv(Mul(x, factor))                   excited: a factor of each image's channel, [N, C, 1, ..]
 *
 * A node of ortc.Group with the two as its body, the Conv with its epilogue. Only with constant W, and where
 * the provider has a kernel that takes it.
 */
#include "pointwise_nodes.h"
#include "specialise.h"

static bool is(const ortc_node *n, const char *type)
{
    return n && n->op && !*n->domain && !strcmp(n->type, type) && !n->n_captures && n->n_out == 1;
}

static bool is_factor(const ortc_edge *f, const ortc_edge *x)
{
    bool yes = f && f->rank == x->rank && f->rank > 2 && !f->constant;
    for (int32_t i = 0; yes && i < f->rank; i++) yes = f->dims[i] == (i < 2 ? x->dims[i] : 1);
    return yes;
}

/* The Mul that makes what the Conv alone reads; NULL: none. */
static const ortc_node *excites(ortc_node *conv)
{
    const ortc_node *m = conv->in[0]->producer;
    if (!is(m, "Mul") || !ortc_read_inside(m->out[0], &conv, 1)) return NULL;
    for (uint32_t i = 0; i < 2; i++)
        if (m->in[i] && ortc_same_shape(m->in[i], m->out[0]) && is_factor(m->in[1 - i], m->in[i])) return m;
    return NULL;
}

bool ortc_averages(const ortc_node *n, const ortc_edge *x)
{
    return is(n, "GlobalAveragePool") || (is(n, "ReduceMean") && n->in[0] == x && is_factor(n->out[0], x));
}

/* The pool that reads the Conv's result beside others; NULL: none. */
static const ortc_node *squeezes(const ortc_node *conv)
{
    const ortc_node *found = NULL;
    bool others = false;
    for (const ortc_use *u = conv->out[0]->uses; u; u = u->next)
        if (!found && ortc_averages(u->node, conv->out[0]))
            found = u->node;
        else
            others = true;
    return others ? found : NULL;
}

ortc_status ortc_pass_squeeze_excite(ortc_specialise *s)
{
    for (ortc_node *n = s->graph->first, *next; n; n = next) {
        ortc_node *made = NULL;
        next = n->next;
        if (!is(n, "Conv") || n->n_in < 2 || !n->in[0] || !n->in[1] || !ortc_edge_is_const(n->in[1]))
            continue;
        const ortc_node *excite = excites(n), *squeeze = excite ? NULL : squeezes(n),
                        *other = excite ? excite : squeeze;
        if (!other || !s->together(s->arg, other, n)) continue;
        const ortc_node *nodes[2] = {excite ? excite : n, excite ? n : squeeze};
        ORTC_TRY(ortc_specialise_join(s, nodes, 2, excite ? "excited" : "squeezed", &made));
        if (made) next = made->next;
    }
    return ORTC_OK;
}
