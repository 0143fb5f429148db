/* graph/normalise/raise_casts.c: an operator computed in f32 between Casts, in f16 or bf16 itself.
 *
 *   y = Cast(op(Cast(x, f32), ...), type of x)        op: norms, Softmax, Gelu, Swish
 *
 * These compute in f32 whatever their type is, and round once, as the last Cast does. Other operands must be
 * constants whose every number the type has.
 */
#include "match.h"

static const char *const ops[] = {
    "LayerNormalization", "RMSNormalization", "Softmax", "LogSoftmax", "Gelu", "Swish"};

static bool among(const ortc_node *n)
{
    for (size_t i = 0; i < ORTC_LENGTH(ops); i++)
        if (ortc_match_is(n, ops[i])) return true;
    return false;
}

/* The Cast behind n, if all of n can be in t. */
static ortc_node *match(ortc_node *n, ortc_dtype t)
{
    ortc_node *last = ortc_match_typed(n->out[0], ORTC_F32) ? ortc_match_end(n, t) : NULL;
    if (!last || n->n_in < 1 || n->n_in > 3 || ortc_match_typed(n->in[0], t) || !ortc_match_root(n->in[0], t))
        return NULL;
    for (uint32_t i = 1; i < n->n_in; i++)
        if (n->in[i] && !ortc_match_narrows(n->in[i], t)) return NULL;
    for (uint32_t i = 1; i < n->n_out; i++)
        if (n->out[i]) return NULL;
    return last;
}

static ortc_status raise(ortc_normalise *p, const ortc_node *n, ortc_node *last, ortc_dtype t)
{
    ortc_edge *in[3] = {ortc_match_root(n->in[0], t)};
    ortc_node *raised;
    for (uint32_t i = 1; i < n->n_in; i++)
        if (n->in[i] && !(in[i] = ortc_match_narrow(p, n->in[i], t))) return ortc_no_memory(p->error, 0);
    ORTC_TRY(ortc_match_raise(p, n->op, last, in, n->n_in, &raised));
    return raised && !ortc_node_copy_attrs(raised, n) ? ortc_no_memory(p->error, 0) : ORTC_OK;
}

ortc_status ortc_pass_raise_casts(ortc_normalise *p)
{
    static const ortc_dtype types[] = {ORTC_F16, ORTC_BF16};
    for (ortc_node *n = p->graph->first; n; n = n->next) /* n itself stays until dead-nodes */
        for (size_t i = 0; among(n) && i < ORTC_LENGTH(types); i++) {
            ortc_node *last = match(n, types[i]);
            if (last) ORTC_TRY(raise(p, n, last, types[i]));
        }
    return ORTC_OK;
}
