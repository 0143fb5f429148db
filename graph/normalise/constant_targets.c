/* graph/normalise/constant_targets.c: Reshape and Expand to a shape that is computed, where a constant says
 * the same.
 *
 * Exporters split heads by Reshape to [Shape(x)[0], Shape(x)[1], 12, 64]. With what is known of shapes that
 * is the constant [0, 0, 12, 64], and the nodes that computed it go: a 0 of Reshape and a 1 of Expand keep
 * what is there. A -1 of Reshape is written only among numbers, for beside a dim that may be 0 it would mean
 * nothing.
 */
#include "match.h"

static bool same_dim(const ortc_edge *x, int32_t i, ortc_dim d)
{
    return i >= 0 && i < x->rank && x->dims[i] == d && d != ORTC_DIM_UNKNOWN;
}

static bool reshape_target(const ortc_edge *x, const ortc_edge *y, int64_t *target)
{
    int32_t kept = 0, open = 0;
    for (int32_t i = 0; i < y->rank; i++) {
        const ortc_dim d = y->dims[i];
        target[i] = d > 0 ? d : same_dim(x, i, d) ? 0 : -1;
        kept += target[i] == 0;
        open += target[i] == -1;
        if (d == 0 && target[i] != 0) return false;
    }
    return open == 0 || (open == 1 && kept == 0);
}

static bool expand_target(const ortc_edge *x, const ortc_edge *y, int64_t *target)
{
    for (int32_t i = 0; i < y->rank; i++) {
        const ortc_dim d = y->dims[i];
        target[i] = same_dim(x, i - (y->rank - x->rank), d) ? 1 : d;
        if (!ortc_dim_is_number(target[i])) return false;
    }
    return x->rank <= y->rank;
}

static ortc_status set_target(ortc_normalise *p, ortc_node *n, const int64_t *target, int64_t count)
{
    ortc_edge *e = ortc_match_integers(p, target, count);
    if (!e || !ortc_node_set_in(n, 1, e)) return ortc_no_memory(p->error, 0);
    ortc_node_drop_attr(n, "allowzero"); /* with it a 0 would be an extent */
    p->edits++;
    return ORTC_OK;
}

ortc_status ortc_pass_constant_targets(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first; n; n = n->next) {
        const bool reshape = ortc_match_is(n, "Reshape");
        int64_t target[ORTC_MAX_RANK];
        if ((!reshape && !ortc_match_is(n, "Expand")) || n->n_in != 2 || !n->in[0] || !n->in[1] ||
            !n->out[0] || ortc_edge_is_const(n->in[1]))
            continue;
        const ortc_edge *x = n->in[0], *y = n->out[0];
        if (x->rank < 0 || y->rank < 0 || y->rank > ORTC_MAX_RANK) continue;
        if (reshape ? reshape_target(x, y, target) : expand_target(x, y, target))
            ORTC_TRY(set_target(p, n, target, y->rank));
    }
    return ORTC_OK;
}
