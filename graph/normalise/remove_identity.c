/* graph/normalise/remove_identity.c: nodes that pass their input on: Identity, Dropout at inference, Cast and
 * Reshape to what is there already, Transpose that moves nothing. Their readers read the input. */
#include "normalise.h"

static bool same_shape(const ortc_edge *a, const ortc_edge *b)
{
    if (!a->type || !b->type || !ortc_type_equal(a->type, b->type) || a->rank < 0 || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

static bool passes_on(const ortc_node *n)
{
    if (*n->domain || !n->n_in || !n->in[0] || !n->n_out || !n->out[0]) return false;
    if (!strcmp(n->type, "Identity")) return true;
    if (!strcmp(n->type, "Dropout")) { /* ratio does not matter unless training_mode says so */
        ortc_edge *training = ortc_node_in_edge(n, 2);
        bool off = !training || (ortc_edge_is_const(training) && training->constant->count == 1 &&
                                 !*(const char *)training->constant->data);
        return off && !(n->n_out > 1 && n->out[1] && n->out[1]->uses);
    }
    if (!strcmp(n->type, "Cast"))
        return n->in[0]->type && n->out[0]->type && ortc_type_equal(n->in[0]->type, n->out[0]->type);
    if (!strcmp(n->type, "Reshape") || !strcmp(n->type, "Flatten") || !strcmp(n->type, "Expand"))
        return same_shape(n->in[0], n->out[0]);
    if (!strcmp(n->type, "Transpose")) {
        size_t count;
        const int64_t *perm = ortc_node_ints(n, "perm", &count);
        if (!perm) return n->in[0]->rank >= 0 && n->in[0]->rank <= 1;
        for (size_t i = 0; i < count; i++)
            if (perm[i] != (int64_t)i) return false;
        return true;
    }
    return false;
}

ortc_status ortc_pass_remove_identity(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        if (!passes_on(n)) continue;
        ortc_edge_replace(n->out[0], n->in[0]);
        ortc_node_remove(n);
        p->edits++;
    }
    return ORTC_OK;
}
