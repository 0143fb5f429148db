/* graph/normalise/added_views.c: a sum of a view of a value, which is viewed as before again.
 *
 *   Reshape(Add(Reshape(x, [m, n, ..]), c), [m * n, ..])  =  Add(x, Reshape(c, [m * n, ..]))
 *
 * So Swin adds to the scores of windows, which are its batch, a mask for each window; without the views
 * Attention finds it. m and n are numbers, and c has both of them, or neither (then its Reshape has a 1
 * there).
 */
#include "match.h"

/* Dim i of c, of `rank` dims with ones before its own. */
static ortc_dim padded(const ortc_edge *c, int32_t rank, int32_t i)
{
    return i < rank - c->rank ? 1 : c->dims[i - (rank - c->rank)];
}

/* The dims of c beside x, whose view is v; false: there are none. */
static bool dims_of(const ortc_edge *x, const ortc_edge *v, const ortc_edge *c, int64_t *dims)
{
    if (x->rank < 1 || v->rank != x->rank + 1 || c->rank < 0 || c->rank > v->rank || v->dims[0] <= 0 ||
        v->dims[1] <= 0 || x->dims[0] != v->dims[0] * v->dims[1])
        return false;
    const bool both = padded(c, v->rank, 0) == v->dims[0] && padded(c, v->rank, 1) == v->dims[1];
    const bool neither = padded(c, v->rank, 0) == 1 && padded(c, v->rank, 1) == 1;
    if (!both && !neither) return false;
    dims[0] = both ? x->dims[0] : 1;
    for (int32_t i = 1; i < x->rank; i++) {
        const ortc_dim have = padded(c, v->rank, i + 1);
        if (x->dims[i] != v->dims[i + 1] || x->dims[i] == ORTC_DIM_UNKNOWN || have <= 0 ||
            (have != 1 && have != x->dims[i]))
            return false;
        dims[i] = have;
    }
    return true;
}

static bool replace(ortc_normalise *p, ortc_node *last, ortc_edge *x, ortc_edge *c, const int64_t *dims)
{
    ortc_edge *target = ortc_match_integers(p, dims, x->rank), *view = ortc_edge_create(p->graph, NULL),
              *y = last->out[0];
    ortc_node *reshape = ortc_node_create(p->graph, ortc_op_find("", "Reshape"), NULL, 2, 1);
    ortc_node *add = ortc_node_create(p->graph, ortc_op_find("", "Add"), NULL, 2, 1);
    if (!target || !view || !reshape || !add || !ortc_node_set_in(reshape, 0, c) ||
        !ortc_node_set_in(reshape, 1, target) || !ortc_node_set_out(reshape, 0, view) ||
        !ortc_edge_set_shape(view, c->type, x->rank, dims) || !ortc_node_set_in(add, 0, x) ||
        !ortc_node_set_in(add, 1, view))
        return false;
    ortc_node_move_before(reshape, last);
    ortc_node_move_before(add, last);
    ortc_node_remove(last);
    p->edits++;
    return ortc_node_set_out(add, 0, y);
}

ortc_status ortc_pass_added_views(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        ortc_edge *sum = ortc_match_is(n, "Reshape") && n->n_in == 2 && n->out[0] ? n->in[0] : NULL;
        const ortc_node *add = sum && ortc_match_reader(sum, 1) ? ortc_match_made(sum, "Add", 2) : NULL;
        for (int i = 0; add && i < 2; i++) {
            const ortc_node *view = ortc_match_made(add->in[i], "Reshape", 2);
            int64_t dims[ORTC_MAX_RANK];
            ortc_edge *c = add->in[!i];
            if (!view || !ortc_match_same_shape(sum, add->in[i]) ||
                !ortc_match_same_shape(view->in[0], n->out[0]) || !dims_of(view->in[0], add->in[i], c, dims))
                continue;
            if (!replace(p, n, view->in[0], c, dims)) return ortc_no_memory(p->error, 0);
            break;
        }
    }
    return ORTC_OK;
}
