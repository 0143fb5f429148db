/* graph/normalise/raise_attention.c: Attention from the nodes that exporters write for it.
 *
 *   y = MatMul(Softmax(MatMul(q, k') * scale + mask), v)            q, k, v [B, heads, length, size]
 *
 * The match starts at Softmax, and walks up to the first MatMul through what may stand in between, in any
 * order (walk): factors, masks that are added or chosen by Where, a softcap, a lower bound, and views of
 * [B * heads, ...] as [B, heads, ...]. Several masks become one, before the node. Factors also stand on q and
 * k; k' is a Transpose of k; grouped keys and values are repeated by Unsqueeze, Expand and Reshape; behind
 * Softmax Where may put 0 for NaN, as Attention does by itself. Where q, k and v are split into heads
 * (Reshape, Transpose) from [B, length, heads * size], and the result is put together again, that becomes a
 * part of the node: the attributes q_num_heads and kv_num_heads. Scores and weights must have no other
 * readers, shapes must be provably what they have to be, and masks must be stretched to the scores, not the
 * scores to them.
 *
 * f32, and f16 and bf16 with or without Casts to f32 around what lies between the products (match.h): scores
 * are then no longer rounded to that type. Other than by rounding, only rows change of which every key is
 * masked: by -infinity Softmax makes NaN of them, and Attention 0; where a large number takes the place of
 * scores, they count equally, and here by their scores. Vaswani et al., "Attention Is All You Need"; Ainslie
 * et al., "GQA".
 */
#include "match.h"

#define MAX_MASKS 4
#define MAX_STEPS 16
#define LOW (-1e4) /* as good as -infinity for a score: what exporters put, or less */

/* What is done to scores: they are added to, or kept where `at` says so (or not) and elsewhere `low`. */
typedef struct mask_step {
    ortc_edge *at;
    bool chooses, keeps; /* keeps: where it is true */
    double low, by;      /* by: the factor behind it */
} mask_step;

typedef struct attention_form {
    ortc_dtype t;
    ortc_edge *q, *k, *v; /* 4D, repeated heads not yet taken back; or all 3D: one head */
    ortc_edge *key_rows;  /* [B, S, H, D], of which k' is made by one Transpose; k is NULL then */
    ortc_node *softmax, *scores, *last; /* the second MatMul, or the view behind it */
    mask_step masks[MAX_MASKS];         /* from Softmax upwards */
    int n_masks;
    ortc_edge *mask;               /* of the node; NULL: none */
    double scale, before, softcap; /* before: the part of scale behind the first MatMul; softcap 0: none */
} attention_form;

/* What is transposed, if by these axes. */
static ortc_edge *transposed(const ortc_edge *e, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const ortc_node *n = ortc_match_made(e, "Transpose", 1);
    size_t count = 0;
    const int64_t *perm = n ? ortc_node_ints(n, "perm", &count) : NULL;
    return count == 4 && perm[0] == a && perm[1] == b && perm[2] == c && perm[3] == d ? n->in[0] : NULL;
}

/* ---- Between Softmax and the first product ------------------------------------------------------------- */

/* What n multiplies by a constant, which *factor becomes. */
static ortc_edge *scaled(const ortc_node *n, double *factor)
{
    const bool mul = ortc_match_is(n, "Mul");
    double v;
    if ((!mul && !ortc_match_is(n, "Div")) || n->n_in != 2 || !n->in[0] || !n->in[1]) return NULL;
    const int at = mul && ortc_edge_is_const(n->in[0]);
    if (!ortc_match_scalar(n->in[!at], n->in[at]->rank, &v) || !isfinite(v) || v == 0) return NULL;
    *factor = mul ? v : 1 / v;
    return n->in[at];
}

/* [B * H, L, S] as [B, H, L, S] or back: the last two dims stay. */
static ortc_edge *viewed(const ortc_node *n)
{
    const ortc_edge *y = ortc_match_is(n, "Reshape") ? n->out[0] : NULL, *x = y ? n->in[0] : NULL;
    return x && ((x->rank == 3 && y->rank == 4) || (x->rank == 4 && y->rank == 3)) &&
                   ortc_match_same(x->dims[x->rank - 1], y->dims[y->rank - 1]) &&
                   ortc_match_same(x->dims[x->rank - 2], y->dims[y->rank - 2])
               ? n->in[0]
               : NULL;
}

static bool walk(ortc_edge *e, attention_form *f, int steps);

static bool walk_masked(ortc_edge *e, attention_form *f, mask_step mask, int steps)
{
    const attention_form kept = *f;
    if (f->n_masks == MAX_MASKS || f->softcap != 0 || !mask.at) return false;
    mask.by = f->before;
    f->masks[f->n_masks++] = mask;
    if (walk(e, f, steps)) return true;
    *f = kept;
    return false;
}

/* Up from e, which only this form may read, to the first MatMul. */
static bool walk(ortc_edge *e, attention_form *f, int steps)
{
    double v;
    e = ortc_match_source(e, f->t);
    ortc_node *n = e && steps > 0 && ortc_match_uses(e, f->t) == 1 ? e->producer : NULL;
    if (ortc_match_made(e, "MatMul", 2) && n) {
        f->scores = n;
        return true;
    }
    ortc_edge *next = n ? scaled(n, &v) : NULL;
    if (next) {
        f->before *= v;
        return walk(next, f, steps - 1);
    }
    if (ortc_match_is(n, "Tanh") && f->softcap == 0 && f->before > 0) {
        f->softcap = f->before;
        f->before = 1;
        return walk(n->in[0], f, steps - 1);
    }
    if (ortc_match_is(n, "Add") && n->n_in == 2)
        return walk_masked(n->in[0], f, (mask_step){.at = n->in[1]}, steps - 1) ||
               walk_masked(n->in[1], f, (mask_step){.at = n->in[0]}, steps - 1);
    if (ortc_match_is(n, "Where") && n->n_in == 3)
        for (int i = 1; i < 3; i++)
            if (n->in[i] && ortc_match_scalar(n->in[i], 4, &v) && v <= LOW)
                return walk_masked(n->in[3 - i], f,
                                   (mask_step){.at = n->in[0], .chooses = true, .keeps = i == 2, .low = v},
                                   steps - 1);
    if (ortc_match_is(n, "Max") && n->n_in == 2)
        for (int i = 0; i < 2; i++)
            if (n->in[i] && ortc_match_scalar(n->in[i], 4, &v) && v <= LOW)
                return walk(n->in[!i], f, steps - 1);
    next = viewed(n);
    return next && walk(next, f, steps - 1);
}

/* The MatMul that reads the weights, and may read 0 for NaN. */
static ortc_node *weighted(ortc_node *softmax, ortc_dtype t)
{
    ortc_edge *e = softmax->out[0];
    double zero;
    for (const ortc_use *u = e ? e->uses : NULL; u && ortc_match_uses(e, t) == 2; u = u->next) {
        ortc_node *where = ortc_match_is(u->node, "IsNaN") && u->node->out[0]
                               ? ortc_match_reader(u->node->out[0], 1)
                               : NULL;
        if (ortc_match_is(where, "Where") && where->n_in == 3 && where->in[0] == u->node->out[0] &&
            ortc_match_equal(where->in[2], e, t) && ortc_match_scalar(where->in[1], 4, &zero) && zero == 0)
            e = where->out[0];
    }
    ortc_node *n = ortc_match_sink(e, 1, t);
    for (const ortc_edge *y; viewed(n) && (y = n->out[0]);) /* both ways, where masks were in between */
        e = n->out[0], n = ortc_match_sink(e, 1, t);
    return ortc_match_is(n, "MatMul") && n->n_in == 2 && ortc_match_equal(n->in[0], e, t) && n->in[1] &&
                   n->out[0]
               ? n
               : NULL;
}

/* ---- Queries, keys, values ----------------------------------------------------------------------------- */

/* e in the form's type, without factors, which *scale is multiplied by. Only its one reader sees each of
 * them. */
static ortc_edge *unscaled(ortc_edge *e, attention_form *f)
{
    double v;
    for (int i = 0; i < 4; i++) {
        ortc_edge *at = ortc_match_source(e, f->t);
        ortc_edge *next = at && ortc_match_uses(at, f->t) == 1 ? scaled(at->producer, &v) : NULL;
        if (!next) break;
        f->scale *= v;
        e = next;
    }
    return ortc_match_root(e, f->t);
}

/* k, of which e [B, H, D, S] is made as three dims: Reshape to [B * H, S, D], Transpose, Reshape. */
static ortc_edge *transposed_flat(const ortc_edge *e)
{
    const ortc_node *back = ortc_match_made(e, "Reshape", 2);
    const ortc_node *swap = back ? ortc_match_made(back->in[0], "Transpose", 1) : NULL;
    const ortc_node *flat = swap ? ortc_match_made(swap->in[0], "Reshape", 2) : NULL;
    size_t count = 0;
    const int64_t *perm = swap ? ortc_node_ints(swap, "perm", &count) : NULL;
    if (!flat || count != 3 || perm[0] != 0 || perm[1] != 2 || perm[2] != 1 || e->rank != 4 ||
        flat->in[0]->rank != 4)
        return NULL;
    const ortc_dim *k = flat->in[0]->dims, *rows = flat->out[0]->dims;
    return ortc_match_same(e->dims[0], k[0]) && ortc_match_same(e->dims[1], k[1]) &&
                   ortc_match_same(e->dims[2], k[3]) && ortc_match_same(e->dims[3], k[2]) &&
                   ortc_match_same(rows[1], k[2]) && ortc_match_same(rows[2], k[3])
               ? flat->in[0]
               : NULL;
}

/* k, of which e [N, D, S] is made. */
static ortc_edge *transposed_3d(const ortc_edge *e)
{
    const ortc_node *n = ortc_match_made(e, "Transpose", 1);
    size_t count = 0;
    const int64_t *perm = n ? ortc_node_ints(n, "perm", &count) : NULL;
    return count == 3 && perm[0] == 0 && perm[1] == 2 && perm[2] == 1 ? n->in[0] : NULL;
}

static bool match_keys(ortc_edge *e, attention_form *f)
{
    if (!(e = unscaled(e, f))) return false;
    if ((f->k = transposed(e, 0, 1, 3, 2)) || (f->k = transposed_flat(e)) || (f->k = transposed_3d(e)))
        return (f->k = unscaled(f->k, f)) != NULL;
    return (f->key_rows = transposed(e, 0, 2, 3, 1)) != NULL;
}

/* [B, heads, length, size], or for keys also [B, length, heads, size]. */
static bool is_4d(const ortc_edge *e, ortc_dtype t) { return e && e->rank == 4 && ortc_match_typed(e, t); }

/* [B, H, L, D] of which e [B * H, L, D] is a view. */
static ortc_edge *unflattened(const ortc_edge *e)
{
    ortc_edge *x = e && e->rank == 3 ? viewed(e->producer) : NULL;
    return x && x->dims[1] > 0 ? x : NULL; /* heads must be a number, or these need not be the same heads */
}

/* Three dims become four, if all have them. false: there is a mask, which needs them. */
static bool match_flat(attention_form *f)
{
    ortc_edge *q = unflattened(f->q), *k = unflattened(f->k), *v = unflattened(f->v);
    ortc_node *back = ortc_match_reader(f->last->out[0], 1);
    const ortc_edge *y = viewed(back) ? back->out[0] : NULL;
    if (q && k && v && y && y->rank == 4 && ortc_match_same(y->dims[0], q->dims[0]) &&
        ortc_match_same(y->dims[1], q->dims[1])) {
        f->q = q, f->k = k, f->v = v;
        f->last = back;
        return true;
    }
    return f->n_masks == 0 && f->q->rank == 3 && f->k->rank == 3 && f->v->rank == 3 &&
           ortc_match_same(f->q->dims[0], f->k->dims[0]) && ortc_match_same(f->q->dims[0], f->v->dims[0]) &&
           ortc_match_same(f->q->dims[2], f->k->dims[2]) && ortc_match_same(f->k->dims[1], f->v->dims[1]) &&
           ortc_match_typed(f->q, f->t) && ortc_match_typed(f->k, f->t) && ortc_match_typed(f->v, f->t);
}

/* ---- Masks --------------------------------------------------------------------------------------------- */

/* Of every mask every dim is 1 or that of the scores, cut to the end of a table or not; the last one of all
 * together is never stretched, for Attention would pad it. Nor can one of them stretch the scores there,
 * whatever its symbol says: values are as many as keys. dims: of all together. */
static bool masks_fit(const ortc_normalise *p, const attention_form *f, ortc_dim *dims)
{
    const ortc_dim keys = f->k ? f->k->dims[2] : f->key_rows->dims[1];
    const ortc_dim scores[4] = {f->q->dims[0], f->q->dims[1], f->q->dims[2], keys};
    const ortc_dims *table = p->graph->dims;
    for (int i = 0; i < 4; i++) dims[i] = 1;
    for (int m = 0; m < f->n_masks; m++) {
        const ortc_edge *at = f->masks[m].at;
        if (at->rank < 1 || at->rank > 4 ||
            (f->masks[m].chooses ? !ortc_match_typed(at, ORTC_BOOL)
                                 : !ortc_match_typed(at, f->t) && !ortc_match_typed(at, ORTC_F32)))
            return false;
        for (int32_t d = 4 - at->rank; d < 4; d++) {
            const ortc_dim have = at->dims[d - (4 - at->rank)];
            if (ortc_match_same(have, scores[d])) {
                dims[d] = have;
            } else if (d < 3 ? ortc_dims_is_cut(table, have, scores[d])
                             : ortc_dims_is_clamped(table, have, scores[d])) {
                if (dims[d] != 1 && dims[d] != have && !ortc_match_same(dims[d], scores[d])) return false;
                if (dims[d] == 1) dims[d] = have;
            } else if (have != 1 && d < 3) {
                return false;
            }
        }
    }
    return f->n_masks == 0 || ortc_match_same(dims[3], scores[3]) ||
           ortc_dims_is_clamped(table, dims[3], scores[3]);
}

static ortc_edge *apply(ortc_normalise *p, ortc_node *before, const char *op, ortc_edge *const *in,
                        uint32_t n_in, ortc_dtype t, const ortc_dim *dims)
{
    return ortc_match_apply(p, before, op, n_in, in, t, 4, dims);
}

static ortc_edge *cast(ortc_normalise *p, ortc_node *before, ortc_edge *x, ortc_dtype t)
{
    const ortc_attr to = {.size = sizeof to, .kind = ORTC_ATTR_INT, .i = t};
    ortc_dim dims[4] = {1, 1, 1, 1};
    if (!x || ortc_match_typed(x, t)) return x;
    for (int32_t d = 0; d < x->rank; d++) dims[d] = x->dims[d];
    ortc_edge *y = apply(p, before, "Cast", &x, 1, t, dims);
    return y && ortc_edge_set_shape(y, y->type, x->rank, dims) && ortc_node_set_attr(y->producer, "to", &to)
               ? y
               : NULL;
}

/* All masks as one, which is added. */
static ortc_edge *one_mask(ortc_normalise *p, const attention_form *f, ortc_dtype t, const ortc_dim *dims)
{
    ortc_edge *sum = NULL;
    for (int m = f->n_masks - 1; m >= 0; m--) {
        const mask_step *s = &f->masks[m];
        if (s->chooses) {
            ortc_edge *stays = sum ? sum : ortc_match_constant(p, t, 0),
                      *low = ortc_match_constant(p, t, s->low * s->by);
            ortc_edge *const in[] = {s->at, s->keeps ? stays : low, s->keeps ? low : stays};
            sum = apply(p, f->last, "Where", in, 3, t, dims);
        } else {
            ortc_edge *at = cast(p, f->last, s->at, t);
            ortc_edge *const times[] = {at, s->by == 1 ? NULL : ortc_match_constant(p, t, s->by)};
            if (s->by != 1) at = apply(p, f->last, "Mul", times, 2, t, dims);
            ortc_edge *const both[] = {sum, at};
            sum = sum ? apply(p, f->last, "Add", both, 2, t, dims) : at;
        }
        if (!sum) return NULL;
    }
    return sum;
}

/* f->mask, if one of the masks will do as it is: added, or bool as Attention has it. */
static bool plain_mask(attention_form *f)
{
    const mask_step *s = f->masks;
    f->mask = NULL;
    if (f->n_masks == 1 && (s->chooses ? s->keeps && s->low == -INFINITY : s->by == 1)) {
        ortc_edge *root = s->chooses ? s->at : ortc_match_root(s->at, f->t);
        f->mask = root ? root : s->at;
    }
    return f->n_masks == 0 || f->mask;
}

/* ---- The form ------------------------------------------------------------------------------------------ */

static bool match(ortc_node *softmax, attention_form *f)
{
    ortc_edge *in = softmax->n_in ? softmax->in[0] : NULL;
    const int64_t axis = ortc_node_int(softmax, "axis", -1);
    if (!in || in->rank < 3 || in->rank > 4 || !in->type || (axis != -1 && axis != in->rank - 1))
        return false;
    f->softmax = softmax;
    f->before = f->scale = 1;
    if (!walk(in, f, MAX_STEPS) || !(f->last = weighted(softmax, f->t))) return false;
    if (!(f->q = unscaled(f->scores->in[0], f)) || !match_keys(f->scores->in[1], f)) return false;
    f->v = ortc_match_root(f->last->in[1], f->t);
    f->scale *= f->softcap != 0 ? f->before * f->softcap : f->before;
    if (!f->v || !(f->scale > 0) || !isfinite(f->scale) || !ortc_match_typed(f->last->out[0], f->t))
        return false;
    if (f->q->rank == 3) {
        if (!f->k || !match_flat(f)) return false;
        if (f->q->rank == 3) return true;
    }
    const ortc_edge *keys = f->k ? f->k : f->key_rows;
    const int heads = f->k ? 1 : 2;
    return is_4d(f->q, f->t) && is_4d(keys, f->t) && is_4d(f->v, f->t) &&
           ortc_match_same(f->q->dims[0], keys->dims[0]) && ortc_match_same(f->q->dims[0], f->v->dims[0]) &&
           ortc_match_same(f->q->dims[1], keys->dims[heads]) &&
           ortc_match_same(f->q->dims[1], f->v->dims[1]) && ortc_match_same(f->q->dims[3], keys->dims[3]) &&
           ortc_match_same(keys->dims[3 - heads], f->v->dims[2]);
}

/* ---- Heads --------------------------------------------------------------------------------------------- */

/* [B, Hk, S, D] of which e [B, Hk * r, S, D] is made by giving every head r times; e itself where it is
 * not. */
static ortc_edge *unrepeated(ortc_edge *e, ortc_dtype t)
{
    const ortc_node *reshape = ortc_match_made(e, "Reshape", 2);
    const ortc_node *expand = reshape ? ortc_match_made(reshape->in[0], "Expand", 2) : NULL;
    const ortc_node *unsqueeze = expand ? ortc_match_made(expand->in[0], "Unsqueeze", 2) : NULL;
    if (!unsqueeze || !is_4d(unsqueeze->in[0], t) || reshape->in[0]->rank != 5 || expand->in[0]->rank != 5)
        return e;
    ortc_edge *x = unsqueeze->in[0];
    const ortc_dim *one = expand->in[0]->dims, *all = reshape->in[0]->dims;
    static const int from[5] = {0, 1, -1, 2, 3};
    for (int i = 0; i < 5; i++)
        if (i != 2 && (!ortc_match_same(one[i], x->dims[from[i]]) || !ortc_match_same(all[i], one[i])))
            return e;
    const int64_t axes_one = 2;
    const ortc_edge *axes = unsqueeze->in[1];
    if (!ortc_edge_is_const(axes) || axes->constant->dtype != ORTC_I64 || axes->constant->count != 1 ||
        memcmp(axes->constant->data, &axes_one, sizeof axes_one) != 0)
        return e;
    const bool numbers = x->dims[1] > 0 && all[2] > 0 && all[2] < INT32_MAX && x->dims[1] < INT32_MAX;
    return one[2] == 1 && numbers && e->dims[1] == x->dims[1] * all[2] &&
                   ortc_match_same(e->dims[0], x->dims[0]) && ortc_match_same(e->dims[2], x->dims[2]) &&
                   ortc_match_same(e->dims[3], x->dims[3])
               ? x
               : e;
}

/* x3 [B, L, H * D] of which `split` [B, L, H, D] is a Reshape. */
static ortc_edge *joined(const ortc_edge *split)
{
    const ortc_node *n = split ? ortc_match_made(split, "Reshape", 2) : NULL;
    const ortc_edge *x = n ? n->in[0] : NULL;
    if (!x || x->rank != 3 || split->rank != 4 || !ortc_match_same(x->dims[0], split->dims[0]) ||
        !ortc_match_same(x->dims[1], split->dims[1]) || split->dims[2] <= 0 || split->dims[3] <= 0 ||
        split->dims[2] > INT32_MAX || split->dims[3] > INT32_MAX ||
        x->dims[2] != split->dims[2] * split->dims[3])
        return NULL;
    return n->in[0];
}

/* The last node, if what follows the product puts heads together again: Transpose, Reshape to [B, L, H *
 * Dv]. */
static ortc_node *joining(const ortc_node *product)
{
    const ortc_node *swap = ortc_match_reader(product->out[0], 1);
    ortc_edge *rows = ortc_match_is(swap, "Transpose") ? swap->out[0] : NULL;
    ortc_node *last = rows && transposed(rows, 0, 2, 1, 3) ? ortc_match_reader(rows, 1) : NULL;
    const ortc_edge *y = ortc_match_is(last, "Reshape") && last->in[0] == rows ? last->out[0] : NULL;
    if (!y || y->rank != 3 || rows->rank != 4 || !ortc_match_same(y->dims[0], rows->dims[0]) ||
        !ortc_match_same(y->dims[1], rows->dims[1]) || rows->dims[2] <= 0 || rows->dims[3] <= 0 ||
        rows->dims[2] > INT32_MAX || rows->dims[3] > INT32_MAX || y->dims[2] != rows->dims[2] * rows->dims[3])
        return NULL;
    return last;
}

/* ---- Raising ------------------------------------------------------------------------------------------- */

static ortc_edge *transpose(ortc_normalise *p, ortc_node *before, ortc_edge *x, int a, int b, int c, int d)
{
    const int64_t perm[4] = {a, b, c, d};
    const ortc_attr by = {.size = sizeof by, .kind = ORTC_ATTR_INTS, .count = 4, .u.ints = perm};
    const ortc_dim dims[4] = {x->dims[a], x->dims[b], x->dims[c], x->dims[d]};
    ortc_node *n = ortc_node_create(p->graph, ortc_op_find("", "Transpose"), NULL, 1, 1);
    ortc_edge *y = ortc_edge_create(p->graph, NULL);
    if (!n || !y || !ortc_node_set_in(n, 0, x) || !ortc_node_set_out(n, 0, y) ||
        !ortc_node_set_attr(n, "perm", &by) || !ortc_edge_set_shape(y, x->type, 4, dims))
        return NULL;
    ortc_node_move_before(n, before);
    return y;
}

/* k' made of rows by one Transpose becomes two, with k between them. */
static bool make_keys(ortc_normalise *p, attention_form *f)
{
    double v;
    ortc_node *at = f->scores->in[1]->producer;
    while (!ortc_match_is(at, "Transpose")) { /* scaled or cast in between */
        ortc_edge *e = scaled(at, &v);
        at = e ? e->producer : at->in[0]->producer;
    }
    ortc_edge *k = transpose(p, at, f->key_rows, 0, 2, 1, 3), *t = k ? transpose(p, at, k, 0, 1, 3, 2) : NULL;
    if (!t) return false;
    f->k = k;
    return ortc_edge_replace(at->out[0], t);
}

/* The form anew, as the standard says it, with one mask, in the place of what was there: what lay between
 * cannot be the body, for it reads several masks, or views whose extents are computed elsewhere. The pass
 * comes to the new Softmax behind this one. */
static bool rewrite(ortc_normalise *p, attention_form *f, const ortc_dim *mask_dims)
{
    ortc_node *at = f->last;
    ortc_edge *y = at->out[0], *k = transpose(p, at, f->k, 0, 1, 3, 2), *v = f->v;
    const ortc_dtype t = f->softmax->in[0]->type->dtype;
    const ortc_attr last = {.size = sizeof last, .kind = ORTC_ATTR_INT, .i = -1};
    const ortc_dim dims[4] = {f->q->dims[0], f->q->dims[1], f->q->dims[2], f->k->dims[2]};
    const bool capped = f->softcap != 0;
    ortc_edge *scale = ortc_match_constant(p, f->t, capped ? f->scale / f->softcap : f->scale);
    ortc_edge *q = apply(p, at, "Mul", (ortc_edge *[]){f->q, scale}, 2, f->t, f->q->dims);
    ortc_edge *e = cast(p, at, apply(p, at, "MatMul", (ortc_edge *[]){q, k}, 2, f->t, dims), t);
    if (capped) {
        e = apply(p, at, "Tanh", &e, 1, t, dims);
        e = apply(p, at, "Mul", (ortc_edge *[]){e, ortc_match_constant(p, t, f->softcap)}, 2, t, dims);
    }
    if (f->n_masks) {
        f->mask = one_mask(p, f, t, mask_dims);
        e = apply(p, at, "Add", (ortc_edge *[]){e, f->mask}, 2, t, dims);
    }
    e = apply(p, at, "Softmax", &e, 1, t, dims);
    if (!e || !ortc_node_set_attr(e->producer, "axis", &last)) return false;
    e = apply(p, at, "MatMul", (ortc_edge *[]){cast(p, at, e, f->t), v}, 2, f->t, y->dims);
    if (!e) return false;
    ortc_node *product = e->producer;
    ortc_node_remove(at);
    return ortc_node_set_out(product, 0, y);
}

/* What the node may read, best first: heads as the attributes say, heads as a dim, heads repeated as they
 * are. A later one is for shapes that are computed of something else. */
static ortc_status place(ortc_normalise *p, const ortc_op *op, attention_form *f, ortc_node **out)
{
    const uint32_t n_in = f->mask ? 4 : 3;
    const bool flat = f->q->rank == 3;
    *out = NULL;
    for (int form = flat ? 2 : 0; form < 3 && !*out; form++) {
        if (form > 0 && !f->k && !make_keys(p, f)) return ortc_no_memory(p->error, 0);
        ortc_edge *k = f->k, *v = f->v;
        if (form < 2 && k) {
            k = unrepeated(k, f->t), v = unrepeated(v, f->t);
            if (!ortc_match_same(k->dims[1], v->dims[1])) /* only one of them is repeated */
                k = f->k, v = f->v;
        }
        ortc_edge *in[4] = {f->q, k, v, f->mask};
        ortc_node *last = f->last;
        int64_t heads = flat, kv_heads = heads;
        if (form == 0) {
            in[0] = joined(transposed(f->q, 0, 2, 1, 3));
            in[1] = joined(k ? transposed(k, 0, 2, 1, 3) : f->key_rows);
            in[2] = joined(transposed(v, 0, 2, 1, 3));
            heads = f->q->dims[1], kv_heads = v->dims[1];
            last = in[0] && in[1] && in[2] ? joining(f->last) : NULL;
        }
        if (!last) continue;
        ORTC_TRY(ortc_match_raise(p, op, last, in, n_in, out));
        const ortc_attr q_heads = {.size = sizeof q_heads, .kind = ORTC_ATTR_INT, .i = heads},
                        kv = {.size = sizeof kv, .kind = ORTC_ATTR_INT, .i = kv_heads};
        if (*out && heads &&
            (!ortc_node_set_attr(*out, "q_num_heads", &q_heads) ||
             !ortc_node_set_attr(*out, "kv_num_heads", &kv)))
            return ortc_no_memory(p->error, 0);
    }
    return ORTC_OK;
}

static ortc_status raise(ortc_normalise *p, const ortc_op *op, attention_form *f)
{
    const ortc_attr scale = {.size = sizeof scale, .kind = ORTC_ATTR_FLOAT, .f = (float)f->scale},
                    softcap = {.size = sizeof softcap, .kind = ORTC_ATTR_FLOAT, .f = (float)f->softcap};
    ortc_node *n;
    ortc_dim dims[4];
    if (f->q->rank == 4 && !masks_fit(p, f, dims)) return ORTC_OK;
    const bool views = f->q->rank == 4 && f->scores->out[0]->rank == 3;
    if (!plain_mask(f) || views) {
        const bool made = (f->k || make_keys(p, f)) && rewrite(p, f, dims);
        return made ? ORTC_OK : ortc_no_memory(p->error, 0);
    }
    ORTC_TRY(place(p, op, f, &n));
    return n && (!ortc_node_set_attr(n, "scale", &scale) ||
                 (f->softcap != 0 && !ortc_node_set_attr(n, "softcap", &softcap)))
               ? ortc_no_memory(p->error, 0)
               : ORTC_OK;
}

ortc_status ortc_pass_raise_attention(ortc_normalise *p)
{
    const ortc_op *attention = ortc_op_find("", "Attention");
    for (ortc_node *n = p->graph->first; n && attention; n = n->next) { /* Softmax stays until dead-nodes */
        if (!ortc_match_is(n, "Softmax")) continue;
        for (size_t i = 0; i < ORTC_LENGTH(ortc_match_types); i++) {
            attention_form f = {.t = ortc_match_types[i]};
            if (!match(n, &f)) continue;
            ORTC_TRY(raise(p, attention, &f));
            break;
        }
    }
    return ORTC_OK;
}
