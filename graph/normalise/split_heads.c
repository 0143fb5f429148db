/* graph/normalise/split_heads.c: queries, keys and values of one product, as vision transformers cut them.
 *
 *   Gather(Transpose(Reshape(x, [B, L, parts, heads, size]), [2, 0, 3, 1, 4]), i)
 *     = Transpose(Reshape(Split(x, axis 2)[i], [B, L, heads, size]), [0, 2, 1, 3])
 *
 * for x [B, L, parts * heads * size]. Moved twice becomes moved once; and Attention, which reads heads of
 * three dims, takes the rest away.
 */
#include "match.h"

#define MAX_PARTS 8

typedef struct heads {
    ortc_edge *x;
    ortc_dim batch, length;
    int64_t parts, count, size; /* count: heads */
    ortc_edge *split[MAX_PARTS];
} heads;

static bool number(ortc_dim d) { return d > 0 && d <= INT32_MAX; }

static bool match(const ortc_node *transpose, heads *h)
{
    static const int64_t want[5] = {2, 0, 3, 1, 4};
    size_t count = 0;
    const int64_t *perm = ortc_node_ints(transpose, "perm", &count);
    const ortc_node *reshape = ortc_match_made(transpose->in[0], "Reshape", 2);
    if (!reshape || count != 5 || memcmp(perm, want, sizeof want) != 0) return false;
    const ortc_edge *x = reshape->in[0], *y = reshape->out[0];
    if (x->rank != 3 || y->rank != 5 || x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1] ||
        x->dims[0] == ORTC_DIM_UNKNOWN || x->dims[1] == ORTC_DIM_UNKNOWN)
        return false;
    *h = (heads){reshape->in[0], x->dims[0], x->dims[1], y->dims[2], y->dims[3], y->dims[4], {NULL}};
    return number(h->parts) && h->parts <= MAX_PARTS && number(h->count) && number(h->size) &&
           x->dims[2] == h->parts * h->count * h->size;
}

/* Which part n gathers; -1: it does something else. */
static int64_t part_of(const ortc_node *n, const heads *h)
{
    const ortc_edge *at = ortc_match_is(n, "Gather") && n->n_in == 2 ? n->in[1] : NULL;
    double i;
    if (!at || at->rank != 0 || ortc_node_int(n, "axis", 0) != 0 || !ortc_match_scalar(at, 0, &i)) return -1;
    if (i < 0) i += (double)h->parts;
    return i >= 0 && i < (double)h->parts && n->out[0] ? (int64_t)i : -1;
}

/* A node before another; NULL: no memory. */
static ortc_node *node(ortc_normalise *p, ortc_node *before, const char *op, ortc_edge *x, ortc_edge *second,
                       uint32_t n_out)
{
    ortc_node *n = ortc_node_create(p->graph, ortc_op_find("", op), NULL, second ? 2 : 1, n_out);
    if (!n || !ortc_node_set_in(n, 0, x) || (second && !ortc_node_set_in(n, 1, second))) return NULL;
    ortc_node_move_before(n, before);
    return n;
}

static ortc_edge *result(ortc_node *n, uint32_t port, const ortc_type *type, int32_t rank,
                         const ortc_dim *dims)
{
    ortc_edge *y = ortc_edge_create(n->graph, NULL);
    return y && ortc_node_set_out(n, port, y) && ortc_edge_set_shape(y, type, rank, dims) ? y : NULL;
}

static bool split(ortc_normalise *p, ortc_node *before, heads *h)
{
    const int64_t each = h->count * h->size;
    const ortc_attr axis = {.size = sizeof axis, .kind = ORTC_ATTR_INT, .i = 2};
    const ortc_dim dims[3] = {h->batch, h->length, each};
    int64_t sizes[MAX_PARTS];
    for (int64_t i = 0; i < h->parts; i++) sizes[i] = each;
    ortc_edge *by = ortc_match_integers(p, sizes, h->parts);
    ortc_node *n = by ? node(p, before, "Split", h->x, by, (uint32_t)h->parts) : NULL;
    bool done = n && ortc_node_set_attr(n, "axis", &axis);
    for (int64_t i = 0; done && i < h->parts; i++)
        done = (h->split[i] = result(n, (uint32_t)i, h->x->type, 3, dims)) != NULL;
    return done;
}

static bool replace(ortc_normalise *p, ortc_node *gather, const heads *h, int64_t part)
{
    static const int64_t swap[4] = {0, 2, 1, 3};
    const ortc_attr perm = {.size = sizeof perm, .kind = ORTC_ATTR_INTS, .count = 4, .u.ints = swap};
    const int64_t target[4] = {0, 0, h->count, h->size};
    const ortc_dim dims[4] = {h->batch, h->length, h->count, h->size};
    ortc_edge *to = ortc_match_integers(p, target, 4), *y = gather->out[0];
    ortc_node *reshape = to ? node(p, gather, "Reshape", h->split[part], to, 1) : NULL;
    ortc_edge *rows = reshape ? result(reshape, 0, h->x->type, 4, dims) : NULL;
    ortc_node *transpose = rows ? node(p, gather, "Transpose", rows, NULL, 1) : NULL;
    if (!transpose || !ortc_node_set_attr(transpose, "perm", &perm)) return false;
    ortc_node_remove(gather);
    p->edits++;
    return ortc_node_set_out(transpose, 0, y);
}

ortc_status ortc_pass_split_heads(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first; n; n = n->next) {
        heads h;
        bool all = ortc_match_is(n, "Transpose") && n->n_in == 1 && n->in[0] && n->out[0] && match(n, &h);
        for (const ortc_use *u = all ? n->out[0]->uses : NULL; all && u; u = u->next)
            all = u->node && part_of(u->node, &h) >= 0;
        if (!all || !n->out[0]->uses) continue;
        if (!split(p, n, &h)) return ortc_no_memory(p->error, 0);
        while (n->out[0]->uses) {
            ortc_node *gather = n->out[0]->uses->node;
            if (!replace(p, gather, &h, part_of(gather, &h))) return ortc_no_memory(p->error, 0);
        }
    }
    return ORTC_OK;
}
