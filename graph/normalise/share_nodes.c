/* graph/normalise/share_nodes.c: common subexpressions: two nodes of one operator with the same inputs and
 * attributes compute the same, so the readers of the second read the first. Random, stateful and control
 * nodes are left alone. */
#include "normalise.h"

/* What two attributes are compared by; NULL: by nothing, they are not worth it (tensors, graphs, types).
 * Strings are compared one by one. */
static const void *bytes_of(const ortc_attr *a, size_t *bytes)
{
    *bytes = 0;
    switch (a->kind) {
    case ORTC_ATTR_INT: return *bytes = sizeof a->i, &a->i;
    case ORTC_ATTR_FLOAT: return *bytes = sizeof a->f, &a->f;
    case ORTC_ATTR_STRING: return *bytes = a->count, a->count ? a->u.s : (const void *)"";
    case ORTC_ATTR_INTS: return *bytes = a->count * sizeof(int64_t), a->count ? a->u.ints : (const void *)"";
    case ORTC_ATTR_FLOATS:
        return *bytes = a->count * sizeof(float), a->count ? a->u.floats : (const void *)"";
    case ORTC_ATTR_STRINGS: return "";
    default: return NULL;
    }
}

/* Attributes in any order. */
static uint64_t hash_node(const ortc_node *n)
{
    uint64_t h = ortc_hash_string(n->type) ^ ortc_hash_string(n->domain);
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        size_t bytes = 0;
        const void *data = bytes_of(&n->attrs[i].value, &bytes);
        h += ortc_hash(data, bytes, ortc_hash_string(n->attrs[i].name));
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
        uint32_t id = n->in[i] ? n->in[i]->id : UINT32_MAX;
        h = ortc_hash(&id, sizeof id, h);
    }
    return h;
}

static bool equal_attr(const ortc_attr *a, const ortc_attr *b)
{
    size_t na, nb;
    const void *x = bytes_of(a, &na), *y = bytes_of(b, &nb);
    if (a->kind != b->kind || a->count != b->count || !x || !y || na != nb || memcmp(x, y, na)) return false;
    for (size_t i = 0; i < a->count && a->kind == ORTC_ATTR_STRINGS; i++)
        if (strcmp(a->u.strings[i], b->u.strings[i])) return false;
    return true;
}

static bool equal_nodes(const ortc_node *a, const ortc_node *b)
{
    if (a->op != b->op || a->version != b->version || a->n_in != b->n_in || a->n_out != b->n_out ||
        a->n_attrs != b->n_attrs)
        return false;
    for (uint32_t i = 0; i < a->n_in; i++)
        if (a->in[i] != b->in[i]) return false;
    for (uint32_t i = 0; i < a->n_out; i++)
        if (!a->out[i] && b->out[i]) /* the first must make all that the second makes */
            return false;
    for (uint32_t i = 0; i < a->n_attrs; i++) {
        bool found = false;
        for (uint32_t k = 0; k < b->n_attrs && !found; k++)
            found = !strcmp(a->attrs[i].name, b->attrs[k].name) &&
                    equal_attr(&a->attrs[i].value, &b->attrs[k].value);
        if (!found) return false;
    }
    return true;
}

static bool shareable(const ortc_node *n)
{
    size_t bytes;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (!bytes_of(&n->attrs[i].value, &bytes)) return false;
    return n->op && !(n->op->flags & (ORTC_OP_RANDOM | ORTC_OP_CONTROL | ORTC_OP_STATE)) && !n->epilogue;
}

ortc_status ortc_pass_share_nodes(ortc_normalise *p)
{
    size_t capacity = 64;
    while (capacity < (size_t)p->graph->n_nodes * 2) capacity *= 2;
    ortc_node **table = calloc(capacity, sizeof *table);
    if (!table) return ortc_no_memory(p->error, capacity * sizeof *table);
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        if (!shareable(n)) continue;
        size_t at = hash_node(n) & (capacity - 1);
        while (table[at] && !equal_nodes(table[at], n)) at = (at + 1) & (capacity - 1);
        if (!table[at]) {
            table[at] = n;
            continue;
        }
        for (uint32_t i = 0; i < n->n_out; i++)
            if (n->out[i]) ortc_edge_replace(n->out[i], table[at]->out[i]);
        ortc_node_remove(n);
        p->edits++;
    }
    free(table);
    return ORTC_OK;
}
