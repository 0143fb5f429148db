/* graph/normalise/remove_identity.c: nodes that pass their input on: Identity, Dropout at inference, Cast and
 * Reshape to what is there already, Transpose that moves nothing, Slice and Tile that keep all extents,
 * Concat and Sum of one. Their readers read the input. */
#include "normalise.h"

static bool same_shape(const ortc_edge *a, const ortc_edge *b)
{
    if (!a->type || !b->type || !ortc_type_equal(a->type, b->type) || a->rank < 0 || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i] || a->dims[i] == ORTC_DIM_UNKNOWN) return false;
    return true;
}

/* Of a Slice: nothing is taken backwards. */
static bool goes_forward(const ortc_node *n)
{
    const ortc_edge *steps = ortc_node_in_edge(n, 4);
    if (!steps) return true;
    if (!ortc_edge_is_const(steps)) return false;
    const ortc_constant *c = steps->constant;
    for (int64_t i = 0; i < c->count; i++) {
        int64_t step = 0;
        int32_t narrow;
        if (c->dtype == ORTC_I64)
            memcpy(&step, (const char *)c->data + i * 8, sizeof step);
        else if (c->dtype == ORTC_I32)
            memcpy(&narrow, (const char *)c->data + i * 4, sizeof narrow), step = narrow;
        if (step <= 0) return false;
    }
    return true;
}

static bool is_of_one(const ortc_node *n)
{
    static const char *const ops[] = {"Concat", "Sum", "Max", "Min", "Mean"};
    for (size_t i = 0; n->n_in == 1 && i < ORTC_LENGTH(ops); i++)
        if (!strcmp(n->type, ops[i])) return true;
    return false;
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
    if (!strcmp(n->type, "Reshape") || !strcmp(n->type, "Flatten") || !strcmp(n->type, "Expand") ||
        !strcmp(n->type, "Tile"))
        return same_shape(n->in[0], n->out[0]);
    if (!strcmp(n->type, "Slice")) return same_shape(n->in[0], n->out[0]) && goes_forward(n);
    if (is_of_one(n)) return same_shape(n->in[0], n->out[0]);
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
