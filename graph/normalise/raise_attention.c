/* graph/normalise/raise_attention.c: Attention from the nodes that exporters write for it.
 *
 *   y = MatMul(Softmax(MatMul(q, k') * scale + mask), v)            q, k, v [B, heads, length, size]
 *
 * The scale is Mul or Div by constants, behind the first MatMul, on q, on k or on both; k' is a Transpose of
 * k; grouped keys and values are repeated by Unsqueeze, Expand and Reshape. Where q, k and v are split into
 * heads (Reshape, Transpose) from [B, length, heads * size], and the result is put together again, that
 * becomes a part of the node: the attributes q_num_heads and kv_num_heads. The match starts at Softmax.
 * Scores and weights must have no other readers, shapes must be provably what they have to be, and the mask
 * must be stretched to the scores, not the scores to it.
 *
 * f32 only: decomposed f16 models round where Attention does not. One thing changes: of a row whose every key
 * is masked by -infinity Softmax makes NaN, and Attention 0. Vaswani et al., "Attention Is All You Need";
 * Ainslie et al., "GQA".
 */
#include "match.h"

typedef struct attention_form {
    ortc_edge *q, *k, *v, *mask; /* 4D, repeated heads not yet taken back; mask NULL: none */
    ortc_edge *key_rows;         /* [B, S, H, D], of which k' is made by one Transpose; k is NULL then */
    ortc_node *scores, *last;    /* both MatMul */
    double scale;
} attention_form;

static bool same(ortc_dim a, ortc_dim b) { return a == b && a != ORTC_DIM_UNKNOWN; }

/* What is transposed, if by these axes. */
static ortc_edge *transposed(const ortc_edge *e, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const ortc_node *n = ortc_match_made(e, "Transpose", 1);
    size_t count = 0;
    const int64_t *perm = n ? ortc_node_ints(n, "perm", &count) : NULL;
    return count == 4 && perm[0] == a && perm[1] == b && perm[2] == c && perm[3] == d ? n->in[0] : NULL;
}

/* e without factors that are constants, which *scale is multiplied by. Only its one reader sees each of
 * them. */
static ortc_edge *unscaled(ortc_edge *e, double *scale)
{
    for (int i = 0; i < 4; i++) {
        const ortc_node *n = e->producer;
        const bool mul = ortc_match_is(n, "Mul");
        double v;
        if ((!mul && !ortc_match_is(n, "Div")) || n->n_in != 2 || !n->in[0] || !n->in[1] ||
            !ortc_match_reader(e, 1))
            break;
        const int at = mul && ortc_edge_is_const(n->in[0]); /* of what is scaled */
        if (!ortc_match_scalar(n->in[!at], n->in[at]->rank, &v) || !isfinite(v) || v == 0) break;
        *scale = mul ? *scale * v : *scale / v;
        e = n->in[at];
    }
    return e;
}

/* Of the mask every dim is 1 or that of the scores; the last one is never stretched, for Attention would pad
 * it. */
static bool mask_fits(const ortc_edge *mask, const ortc_edge *scores)
{
    if (!mask->type || !ortc_type_equal(mask->type, scores->type) || mask->rank < 1 || mask->rank > 4)
        return false;
    for (int32_t d = -1; d >= -mask->rank; d--)
        if (!same(mask->dims[mask->rank + d], scores->dims[4 + d]) &&
            (d == -1 || mask->dims[mask->rank + d] != 1))
            return false;
    return true;
}

/* From what Softmax reads up to the first MatMul. */
static bool match_scores(ortc_edge *e, attention_form *f)
{
    const ortc_node *add = ortc_match_made(e, "Add", 2);
    if (!ortc_match_reader(e, 1)) return false;
    for (int i = 0; i < 2; i++) {
        ortc_edge *at = add ? add->in[i] : e;
        double scale = 1;
        if (add && !ortc_match_reader(at, 1)) continue;
        ortc_edge *product = unscaled(at, &scale);
        ortc_node *n = ortc_match_made(product, "MatMul", 2);
        if (!n || product->rank != 4 || !product->type || !ortc_match_reader(product, 1) ||
            (add && !mask_fits(add->in[!i], product)))
            continue;
        f->scores = n;
        f->scale = scale;
        f->mask = add ? add->in[!i] : NULL;
        return true;
    }
    return false;
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
    return same(e->dims[0], k[0]) && same(e->dims[1], k[1]) && same(e->dims[2], k[3]) &&
                   same(e->dims[3], k[2]) && same(rows[1], k[2]) && same(rows[2], k[3])
               ? flat->in[0]
               : NULL;
}

static bool match_keys(ortc_edge *e, attention_form *f)
{
    e = unscaled(e, &f->scale);
    if ((f->k = transposed(e, 0, 1, 3, 2)) || (f->k = transposed_flat(e))) {
        f->k = unscaled(f->k, &f->scale);
        return true;
    }
    return (f->key_rows = transposed(e, 0, 2, 3, 1)) != NULL;
}

/* [B, heads, length, size] of f32, or for keys also [B, length, heads, size]. */
static bool is_4d(const ortc_edge *e)
{
    return e && e->rank == 4 && e->type && ortc_type_equal(e->type, ortc_tensor_type(ORTC_F32));
}

static bool match(const ortc_node *softmax, attention_form *f)
{
    ortc_edge *in = softmax->n_in ? softmax->in[0] : NULL, *weights = softmax->out[0];
    const int64_t axis = ortc_node_int(softmax, "axis", -1);
    if (!in || in->rank != 4 || (axis != -1 && axis != 3) || !weights || !match_scores(in, f)) return false;
    f->last = ortc_match_reader(weights, 1);
    if (!ortc_match_is(f->last, "MatMul") || f->last->in[0] != weights || !f->last->in[1] || !f->last->out[0])
        return false;
    f->q = unscaled(f->scores->in[0], &f->scale);
    f->v = f->last->in[1];
    if (!match_keys(f->scores->in[1], f)) return false;
    const ortc_edge *keys = f->k ? f->k : f->key_rows;
    const int heads = f->k ? 1 : 2;
    return is_4d(f->q) && is_4d(keys) && is_4d(f->v) && same(f->q->dims[0], keys->dims[0]) &&
           same(f->q->dims[0], f->v->dims[0]) && same(f->q->dims[1], keys->dims[heads]) &&
           same(f->q->dims[1], f->v->dims[1]) && same(f->q->dims[3], keys->dims[3]) &&
           same(keys->dims[3 - heads], f->v->dims[2]) && f->scale > 0 && isfinite(f->scale);
}

/* ---- Heads --------------------------------------------------------------------------------------------- */

/* [B, Hk, S, D] of which e [B, Hk * r, S, D] is made by giving every head r times; e itself where it is
 * not. */
static ortc_edge *unrepeated(ortc_edge *e)
{
    const ortc_node *reshape = ortc_match_made(e, "Reshape", 2);
    const ortc_node *expand = reshape ? ortc_match_made(reshape->in[0], "Expand", 2) : NULL;
    const ortc_node *unsqueeze = expand ? ortc_match_made(expand->in[0], "Unsqueeze", 2) : NULL;
    if (!unsqueeze || !is_4d(unsqueeze->in[0]) || reshape->in[0]->rank != 5 || expand->in[0]->rank != 5)
        return e;
    ortc_edge *x = unsqueeze->in[0];
    const ortc_dim *one = expand->in[0]->dims, *all = reshape->in[0]->dims;
    static const int from[5] = {0, 1, -1, 2, 3};
    for (int i = 0; i < 5; i++)
        if (i != 2 && (!same(one[i], x->dims[from[i]]) || !same(all[i], one[i]))) return e;
    const int64_t axes_one = 2;
    const ortc_edge *axes = unsqueeze->in[1];
    if (!ortc_edge_is_const(axes) || axes->constant->dtype != ORTC_I64 || axes->constant->count != 1 ||
        memcmp(axes->constant->data, &axes_one, sizeof axes_one) != 0)
        return e;
    const bool numbers = x->dims[1] > 0 && all[2] > 0 && all[2] < INT32_MAX && x->dims[1] < INT32_MAX;
    return one[2] == 1 && numbers && e->dims[1] == x->dims[1] * all[2] && same(e->dims[0], x->dims[0]) &&
                   same(e->dims[2], x->dims[2]) && same(e->dims[3], x->dims[3])
               ? x
               : e;
}

/* x3 [B, L, H * D] of which `split` [B, L, H, D] is a Reshape. */
static ortc_edge *joined(const ortc_edge *split)
{
    const ortc_node *n = split ? ortc_match_made(split, "Reshape", 2) : NULL;
    const ortc_edge *x = n ? n->in[0] : NULL;
    if (!x || x->rank != 3 || split->rank != 4 || !same(x->dims[0], split->dims[0]) ||
        !same(x->dims[1], split->dims[1]) || split->dims[2] <= 0 || split->dims[3] <= 0 ||
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
    if (!y || y->rank != 3 || rows->rank != 4 || !same(y->dims[0], rows->dims[0]) ||
        !same(y->dims[1], rows->dims[1]) || rows->dims[2] <= 0 || rows->dims[3] <= 0 ||
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
    ortc_node *direct = f->scores->in[1]->producer, *at = direct;
    while (!ortc_match_is(at, "Transpose")) /* scaled in between */
        at = at->in[ortc_match_is(at, "Mul") && ortc_edge_is_const(at->in[0])]->producer;
    ortc_edge *k = transpose(p, at, f->key_rows, 0, 2, 1, 3), *t = k ? transpose(p, at, k, 0, 1, 3, 2) : NULL;
    if (!t) return false;
    f->k = k;
    return ortc_edge_replace(at->out[0], t);
}

static ortc_status raise(ortc_normalise *p, const ortc_op *op, attention_form *f)
{
    ortc_edge *k = f->k ? unrepeated(f->k) : NULL, *v = f->k ? unrepeated(f->v) : f->v;
    if (f->k && !same(k->dims[1], v->dims[1])) /* only one of them is repeated */
        k = f->k, v = f->v;
    ortc_edge *in[4] = {joined(transposed(f->q, 0, 2, 1, 3)),
                        joined(k ? transposed(k, 0, 2, 1, 3) : f->key_rows),
                        joined(transposed(v, 0, 2, 1, 3)), f->mask};
    ortc_node *n = NULL, *last = in[0] && in[1] && in[2] ? joining(f->last) : NULL;
    const ortc_attr scale = {.size = sizeof scale, .kind = ORTC_ATTR_FLOAT, .f = (float)f->scale};
    const ortc_attr q_heads = {.size = sizeof q_heads, .kind = ORTC_ATTR_INT, .i = f->q->dims[1]};
    const ortc_attr kv_heads = {.size = sizeof kv_heads, .kind = ORTC_ATTR_INT, .i = v->dims[1]};

    if (last) {
        ORTC_TRY(ortc_match_raise(p, op, last, in, f->mask ? 4 : 3, &n));
        if (n && (!ortc_node_set_attr(n, "q_num_heads", &q_heads) ||
                  !ortc_node_set_attr(n, "kv_num_heads", &kv_heads)))
            return ortc_no_memory(p->error, 0);
    } else {
        if (!k && !make_keys(p, f)) return ortc_no_memory(p->error, 0);
        in[0] = f->q, in[1] = k ? k : f->k, in[2] = v;
        ORTC_TRY(ortc_match_raise(p, op, f->last, in, f->mask ? 4 : 3, &n));
    }
    return n && !ortc_node_set_attr(n, "scale", &scale) ? ortc_no_memory(p->error, 0) : ORTC_OK;
}

ortc_status ortc_pass_raise_attention(ortc_normalise *p)
{
    const ortc_op *attention = ortc_op_find("", "Attention");
    for (ortc_node *n = p->graph->first; n && attention; n = n->next) { /* Softmax stays until dead-nodes */
        attention_form f = {0};
        if (ortc_match_is(n, "Softmax") && match(n, &f)) ORTC_TRY(raise(p, attention, &f));
    }
    return ORTC_OK;
}
