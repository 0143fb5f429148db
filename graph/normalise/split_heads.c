/* graph/normalise/split_heads.c: queries, keys and values of one product, as vision transformers cut them.
 *
 *   Gather(Transpose(Reshape(x, [B, L, parts, heads, size]), [2, 0, 3, 1, 4]), i)
 *     = Transpose(Reshape(Split(x, axis 2)[i], [B, L, heads, size]), [0, 2, 1, 3])
 *
 * for x [B, L, parts * heads * size]; the same where a part comes by Squeeze of Slice or of Split, as torch's
 * unbind is exported. Moved twice becomes moved once; and Attention, which reads heads of three dims, takes
 * the rest away.
 */
#include "match.h"

#define MAX_PARTS 8
#define MAX_BETWEEN 4

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

/* Which part n takes first; -1: it does something else. Of Split each output is the next part. */
static int64_t part_of(const ortc_node *n, const heads *h)
{
    double i = 0, axis = 0;
    bool is = n->n_in > 0;
    if (ortc_match_is(n, "Split"))
        is &= ortc_node_int(n, "axis", 0) == 0 && n->n_out == h->parts;
    else if (ortc_match_is(n, "Slice")) /* of the whole, which is more than what it leaves: of one */
        is &= n->n_in > 3 && ortc_match_scalar(n->in[1], 1, &i) && ortc_match_scalar(n->in[3], 1, &axis) &&
              axis == 0;
    else
        is &= ortc_match_is(n, "Gather") && n->n_in == 2 && n->in[1] && n->in[1]->rank == 0 &&
              ortc_node_int(n, "axis", 0) == 0 && ortc_match_scalar(n->in[1], 0, &i);
    if (i < 0) i += (double)h->parts;
    return is && i >= 0 && i < (double)h->parts ? (int64_t)i : -1;
}

/* Whether products alone read it, scaled or turned before by `most` nodes at most. */
static bool is_multiplied(const ortc_edge *part, int most)
{
    for (const ortc_use *u = part ? part->uses : NULL; u; u = u->next) {
        const ortc_node *n = u->node;
        double scale;
        const bool scaled = n && (ortc_match_is(n, "Mul") || ortc_match_is(n, "Div")) && n->n_in == 2 &&
                            ortc_match_scalar(n->in[1 - u->port], part->rank, &scale);
        const bool passes = most > 0 && (scaled || ortc_match_is(n, "Transpose"));
        if (!ortc_match_is(n, "MatMul") && !(passes && is_multiplied(n->out[0], most - 1))) return false;
    }
    return part && part->uses;
}

/* Whether all readers of e, [1, B, heads, L, size], only leave its first dim out. */
static bool is_squeezed(const ortc_edge *e, const heads *h)
{
    if (!e) return true;
    if (e->rank != 5 || e->dims[0] != 1) return false;
    for (const ortc_use *u = e->uses; u; u = u->next) {
        const ortc_edge *y = ortc_match_is(u->node, "Squeeze") && u->port == 0 ? u->node->out[0] : NULL;
        if (!y || y->rank != 4 || !ortc_match_same(y->dims[0], h->batch) || y->dims[1] != h->count ||
            !ortc_match_same(y->dims[2], h->length) || !is_multiplied(y, MAX_BETWEEN))
            return false;
    }
    return true;
}

/* Whether all that is read of `moved` are parts, for products. */
static bool is_cut(const ortc_edge *moved, const heads *h)
{
    for (const ortc_use *u = moved->uses; u; u = u->next) {
        if (!u->node || u->port != 0 || part_of(u->node, h) < 0) return false;
        if (ortc_match_is(u->node, "Gather") && !is_multiplied(u->node->out[0], MAX_BETWEEN)) return false;
        for (uint32_t i = 0; i < u->node->n_out && !ortc_match_is(u->node, "Gather"); i++)
            if (!is_squeezed(u->node->out[i], h)) return false;
    }
    return moved->uses != NULL;
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

/* `last`, whose output is a part. */
static bool replace(ortc_normalise *p, ortc_node *last, const heads *h, int64_t part)
{
    static const int64_t swap[4] = {0, 2, 1, 3};
    const ortc_attr perm = {.size = sizeof perm, .kind = ORTC_ATTR_INTS, .count = 4, .u.ints = swap};
    const int64_t target[4] = {0, 0, h->count, h->size};
    const ortc_dim dims[4] = {h->batch, h->length, h->count, h->size};
    ortc_edge *to = ortc_match_integers(p, target, 4), *y = last->out[0];
    ortc_node *reshape = to ? node(p, last, "Reshape", h->split[part], to, 1) : NULL;
    ortc_edge *rows = reshape ? result(reshape, 0, h->x->type, 4, dims) : NULL;
    ortc_node *transpose = rows ? node(p, last, "Transpose", rows, NULL, 1) : NULL;
    if (!transpose || !ortc_node_set_attr(transpose, "perm", &perm)) return false;
    ortc_node_remove(last);
    p->edits++;
    return ortc_node_set_out(transpose, 0, y);
}

/* Everything that the node takes. */
static bool replace_all(ortc_normalise *p, ortc_node *n, const heads *h)
{
    const int64_t part = part_of(n, h);
    if (ortc_match_is(n, "Gather")) return replace(p, n, h, part);
    for (uint32_t i = 0; i < n->n_out; i++)
        while (n->out[i] && n->out[i]->uses)
            if (!replace(p, n->out[i]->uses->node, h, part + i)) return false;
    ortc_node_remove(n);
    return true;
}

ortc_status ortc_pass_split_heads(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first; n; n = n->next) {
        heads h;
        if (!ortc_match_is(n, "Transpose") || n->n_in != 1 || !n->in[0] || !n->out[0] || !match(n, &h) ||
            !is_cut(n->out[0], &h))
            continue;
        if (!split(p, n, &h)) return ortc_no_memory(p->error, 0);
        while (n->out[0]->uses)
            if (!replace_all(p, n->out[0]->uses->node, &h)) return ortc_no_memory(p->error, 0);
    }
    return ORTC_OK;
}
