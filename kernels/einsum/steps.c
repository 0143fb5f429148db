/* kernels/einsum/steps.c: planning of Einsum (steps.h).
 *
 * Two operands at a time, those whose result is smallest first, become one. What only one of them has and
 * nobody needs is summed up before. The labels of both are then of four groups: those
 * that the result keeps of both (batch), of the first (m), of the second (n), and those summed over (k).
 * Where a group's dims lie behind each other it is one dim of a matrix, and operand and result are used as
 * they lie; else they are moved. A label twice in an operand is one whose stride is the sum of both; dims of
 * 1 have no label at all. Results in between are f32.
 */
#include "kernels/einsum/steps.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/common/shape.h"
#include "kernels/gemm/cpu_gemm.h"
#include "kernels/gemm/product_packing.h"

typedef struct tensor {
    ortc_einsum_place at;
    int32_t rank;
    int32_t labels[ORTC_RANK_LIMIT];
    int64_t dims[ORTC_RANK_LIMIT], strides[ORTC_RANK_LIMIT];
} tensor;

typedef struct group { /* of labels, outermost first */
    int32_t rank;
    int32_t labels[ORTC_RANK_LIMIT];
} group;

typedef struct builder {
    ortc_plan *p;
    ortc_einsum_steps *steps;
    tensor result; /* of the equation */
    double workspace;
    size_t product_workspace, scratch;
} builder;

/* ---- Tensors and groups -------------------------------------------------------------------------------- */

static int32_t find(int32_t rank, const int32_t *labels, int32_t label)
{
    for (int32_t i = 0; i < rank; i++)
        if (labels[i] == label) return i;
    return -1;
}
static bool has(const tensor *t, int32_t label) { return t && find(t->rank, t->labels, label) >= 0; }
static int64_t extent_of(const tensor *t, int32_t label) { return t->dims[find(t->rank, t->labels, label)]; }
static int64_t stride_of(const tensor *t, int32_t label)
{
    const int32_t i = find(t->rank, t->labels, label);
    return i < 0 ? 0 : t->strides[i];
}
static void append(group *g, int32_t label) { g->labels[g->rank++] = label; }

static double count_of(const tensor *t)
{
    double n = 1;
    for (int32_t i = 0; i < t->rank; i++) n *= (double)t->dims[i];
    return n;
}

static tensor operand(builder *b, const char *equation, uint32_t i, ortc_einsum_result *r)
{
    const ortc_view *v = &b->p->in[i];
    tensor t = {.at = {(int32_t)i, v->dtype, 0}};
    uint8_t labels[ORTC_EINSUM_LABELS];
    int64_t dense[ORTC_RANK_LIMIT];
    ortc_einsum_operand(equation, i, v->rank, labels, r);
    ortc_dense_strides(v->rank, v->dims, dense);
    for (int32_t d = 0; d < v->rank; d++) {
        const int32_t known = find(t.rank, t.labels, labels[d]);
        if (v->dims[d] == 1) continue;
        if (known >= 0) {
            t.strides[known] += dense[d];
            continue;
        }
        t.labels[t.rank] = labels[d];
        t.dims[t.rank] = v->dims[d];
        t.strides[t.rank++] = dense[d];
    }
    return t;
}

/* A group's dims of a tensor as one, of a stride, where they lie behind each other. */
static bool joins(const tensor *t, const group *g, int64_t *stride)
{
    *stride = 1;
    for (int32_t i = g->rank - 1; i >= 0; i--) {
        const int64_t own = stride_of(t, g->labels[i]);
        if (i < g->rank - 1 && own != stride_of(t, g->labels[i + 1]) * extent_of(t, g->labels[i + 1]))
            return false;
        if (i == g->rank - 1) *stride = own;
    }
    return true;
}

static int64_t extents(const tensor *t, const group *g)
{
    int64_t n = 1;
    for (int32_t i = 0; i < g->rank; i++) n *= extent_of(t, g->labels[i]);
    return n;
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

static ortc_einsum_step *add_step(builder *b, int kind)
{
    ortc_einsum_steps *s = b->steps;
    ortc_einsum_step *more = realloc(s->step, (s->count + 1) * sizeof *more);
    if (!more) return NULL;
    s->step = more;
    more += s->count++;
    memset(more, 0, sizeof *more);
    more->kind = kind;
    return more;
}

static ortc_status no_memory(builder *b)
{
    return ortc_plan_fail(b->p, ORTC_OUT_OF_MEMORY, "no memory for steps");
}

/* Dims of a group: steps of three tensors, any of which may be NULL. */
static void add_dims(ortc_einsum_step *s, const group *g, const tensor *a, const tensor *b, const tensor *c)
{
    for (int32_t i = 0; i < g->rank; i++, s->rank++) {
        const int32_t label = g->labels[i];
        s->dims[s->rank] = extent_of(has(a, label) ? a : has(b, label) ? b : c, label);
        s->a_step[s->rank] = a ? stride_of(a, label) : 0;
        s->b_step[s->rank] = b ? stride_of(b, label) : 0;
        s->c_step[s->rank] = c ? stride_of(c, label) : 0;
    }
}

static ortc_einsum_place take(builder *b, ortc_dtype type, double elements)
{
    const ortc_einsum_place at = {ORTC_EINSUM_IN_WORKSPACE, type, (size_t)b->workspace};
    const double bytes = elements * (double)ortc_product_size(type);
    if (bytes < 1e18 && b->workspace < 1e18) b->workspace += (double)(((size_t)bytes + 63) / 64 * 64);
    return at;
}

/* Dense, with the dims of groups that some of the tensors have, and no place yet. */
static tensor dense_of(const group *const *groups, int32_t n, const tensor *a, const tensor *b)
{
    tensor t = {0};
    for (int32_t k = 0; k < n; k++)
        for (int32_t i = 0; i < groups[k]->rank; i++) {
            const int32_t label = groups[k]->labels[i];
            t.labels[t.rank] = label;
            t.dims[t.rank++] = extent_of(has(a, label) ? a : b, label);
        }
    ortc_dense_strides(t.rank, t.dims, t.strides);
    return t;
}

static ortc_status move(builder *b, const tensor *from, const tensor *to)
{
    ortc_einsum_step *s = add_step(b, ORTC_EINSUM_MOVE);
    if (!s) return no_memory(b);
    group all = {.rank = to->rank};
    for (int32_t i = 0; i < to->rank; i++) all.labels[i] = to->labels[i];
    s->a = from->at;
    s->c = to->at;
    add_dims(s, &all, from, NULL, to);
    return ORTC_OK;
}

/* The tensor anew, its dims in the order of some groups. */
static ortc_status lay(builder *b, tensor *t, const group *const *groups, int32_t n)
{
    tensor to = dense_of(groups, n, t, NULL);
    to.at = take(b, t->at.type, count_of(&to));
    ORTC_TRY(move(b, t, &to));
    *t = to;
    return ORTC_OK;
}

/* ---- A product ----------------------------------------------------------------------------------------- */

typedef struct groups {
    group batch, m, n, k;
} groups;

/* As a matrix [rows][columns] (TRANS: [columns][rows]) with a row stride. */
typedef struct matrix {
    bool trans;
    int64_t ld;
} matrix;

static bool is_matrix(const tensor *t, const group *rows, const group *columns, matrix *m)
{
    int64_t row, column;
    if (!joins(t, rows, &row) || !joins(t, columns, &column)) return false;
    const int64_t height = extents(t, rows), width = extents(t, columns);
    *m = (matrix){false, height > 1 ? row : width};
    if (width == 1 || column == 1) return true;
    *m = (matrix){true, column};
    return height > 1 && row == 1;
}

static ortc_status as_matrix(builder *b, tensor *t, const groups *g, const group *rows, const group *columns,
                             matrix *m)
{
    const group *const order[] = {&g->batch, rows, columns};
    if (is_matrix(t, rows, columns, m)) return ORTC_OK;
    ORTC_TRY(lay(b, t, order, 3));
    is_matrix(t, rows, columns, m);
    return ORTC_OK;
}

/* A constant B that lies in memory as it is read is packed once. */
static ortc_status pack(builder *b, const tensor *t, const matrix *m, int64_t n, int64_t k,
                        ortc_einsum_step *s)
{
    const ortc_product_constant what = {1, n, k, m->trans ? 0 : 1, t->at.type};
    if (t->at.input < 0 || !(b->p->in[t->at.input].flags & ORTC_VIEW_CONST) || n == 1 ||
        m->ld != (m->trans ? n : k))
        return ORTC_OK;
    return ortc_product_packed(b->p, (uint32_t)t->at.input, &s->product.line->b, &what, &s->packed);
}

/* c = sum over k of a b, of each index of the batch; c has its dims, and a place. */
static ortc_status multiply_matrices(builder *b, tensor *x, tensor *y, const groups *g, const tensor *c)
{
    matrix a_is, b_is, c_is;
    ORTC_TRY(as_matrix(b, x, g, &g->m, &g->k, &a_is));
    ORTC_TRY(as_matrix(b, y, g, &g->n, &g->k, &b_is)); /* B transposed: [n][k] */
    const int64_t m = extents(x, &g->m), n = extents(y, &g->n), k = extents(x, &g->k);
    const int64_t batch = extents(c, &g->batch);
    tensor to = *c;
    if (!is_matrix(c, &g->m, &g->n, &c_is) || c_is.trans || (n == 1 && m > 1 && c_is.ld != 1)) {
        const group *const order[] = {&g->batch, &g->m, &g->n};
        to = dense_of(order, 3, x, y);
        to.at = take(b, c->at.type, count_of(&to));
        is_matrix(&to, &g->m, &g->n, &c_is);
    }
    const ortc_product_types types = {x->at.type, y->at.type, c->at.type};
    ortc_einsum_step *s = add_step(b, ORTC_EINSUM_PRODUCT);
    if (!s) return no_memory(b);
    uint32_t flags = (a_is.trans ? ORTC_PRODUCT_TRANS_A : 0) |
                     (b_is.trans || n == 1 ? 0 : ORTC_PRODUCT_TRANS_B);
    const ortc_product_line *line = ortc_gemm_quicker(types.a, types.b, m, n, k, batch, batch == 1);
    for (int again = 0; again < 2; again++) {
        if (ortc_product_plan_init(&s->product, line, &types, m, n, k, batch, flags, b->p->threads))
            return ortc_plan_fail(b->p, ORTC_LIMIT, "a product's operands do not fit in memory");
        if (again || batch != 1) break;
        ORTC_TRY(pack(b, y, &b_is, n, k, s));
        if (!s->packed) break;
        flags |= ORTC_PRODUCT_PACKED_B;
    }
    s->a = x->at, s->b = y->at, s->c = to.at;
    s->lda = a_is.ld, s->ldb = b_is.ld, s->ldc = c_is.ld;
    if (n == 1) s->ldb = s->ldc = 1;
    add_dims(s, &g->batch, x, y, &to);
    if (s->product.workspace > b->product_workspace) b->product_workspace = s->product.workspace;
    if (s->product.scratch > b->scratch) b->scratch = s->product.scratch;
    return to.at.offset != c->at.offset || to.at.input != c->at.input ? move(b, &to, c) : ORTC_OK;
}

/* ---- Two operands -------------------------------------------------------------------------------------- */

/* The innermost dims of a tensor that are all summed over, or all kept, as one: from which on. */
static int32_t innermost(const tensor *t, const group *summed)
{
    int32_t i = t->rank - 1;
    for (; i > 0; i--) {
        const bool is = find(summed->rank, summed->labels, t->labels[i]) >= 0,
                   before = find(summed->rank, summed->labels, t->labels[i - 1]) >= 0;
        if (is != before || t->strides[i - 1] != t->strides[i] * t->dims[i]) break;
    }
    return i;
}

static bool same_labels(const tensor *a, const tensor *b)
{
    return a->rank == b->rank && !memcmp(a->labels, b->labels, (size_t)a->rank * sizeof *a->labels);
}

/* Sums over what `other` (may be NULL) has not, and nobody wants; wanted: by label. To `to`, if it is the
 * last step. */
static ortc_status sum_out(builder *b, tensor *t, const tensor *other, const bool *wanted, const tensor *to)
{
    group kept = {0}, summed = {0}, outer = {0}, over = {0};
    for (int32_t i = 0; i < t->rank; i++)
        append(has(other, t->labels[i]) || wanted[t->labels[i]] ? &kept : &summed, t->labels[i]);
    if (summed.rank == 0) return ORTC_OK;
    const group *const order[] = {&kept};
    tensor sums = dense_of(order, 1, t, NULL);
    const bool direct = to && same_labels(&sums, to);
    sums.at = direct ? to->at : take(b, to ? to->at.type : ORTC_F32, count_of(&sums));
    ortc_einsum_step *s = add_step(b, ORTC_EINSUM_SUM);
    if (!s) return no_memory(b);
    const int32_t inner = innermost(t, &summed);
    for (int32_t i = 0; i < inner; i++)
        append(find(summed.rank, summed.labels, t->labels[i]) >= 0 ? &over : &outer, t->labels[i]);
    s->a = t->at, s->c = sums.at;
    s->across = find(summed.rank, summed.labels, t->labels[inner]) >= 0;
    s->step = t->strides[t->rank - 1];
    s->k = 1;
    for (int32_t i = inner; i < t->rank; i++) s->k *= t->dims[i];
    add_dims(s, &outer, t, NULL, &sums);
    add_dims(s, &over, t, NULL, NULL);
    s->summed = over.rank;
    s->rank -= over.rank;
    *t = sums;
    return to && !direct ? move(b, &sums, to) : ORTC_OK;
}

/* Of both, what is wanted: `to` with its place where it is the last step, else made here. */
static ortc_status contract(builder *b, tensor x, tensor y, const bool *wanted, const tensor *last,
                            tensor *out)
{
    groups g = {0};
    ORTC_TRY(sum_out(b, &x, &y, wanted, NULL));
    ORTC_TRY(sum_out(b, &y, &x, wanted, NULL));
    /* the side with the innermost dim of the result is the second: rows of the product are then rows there */
    if (last && last->rank > 0 && !has(&y, last->labels[last->rank - 1])) {
        const tensor t = x;
        x = y, y = t;
    }
    const tensor *const order[] = {last ? last : &x, &y};
    for (int i = 0; i < 2; i++) /* of y only what x has not, of the result all */
        for (int32_t d = 0; d < order[i]->rank && (i == 0 || !last); d++) {
            const int32_t label = order[i]->labels[d];
            const bool in_x = has(&x, label), in_y = has(&y, label);
            if (!wanted[label] || (i == 1 && in_x)) continue;
            append(in_x && in_y ? &g.batch : in_x ? &g.m : &g.n, label);
        }
    for (int32_t d = 0; d < x.rank; d++)
        if (!wanted[x.labels[d]]) append(&g.k, x.labels[d]);
    const group *const groups_of[] = {&g.batch, &g.m, &g.n};
    tensor c = last ? *last : dense_of(groups_of, 3, &x, &y);
    if (!last) c.at = take(b, ORTC_F32, count_of(&c));
    *out = c;
    if (g.k.rank > 0 && (g.m.rank > 0 || g.n.rank > 0)) return multiply_matrices(b, &x, &y, &g, &c);
    const group *const pair[] = {&g.batch, &g.k};
    int64_t stride;
    if (g.k.rank > 0 && (!joins(&x, &g.k, &stride) || stride != 1)) ORTC_TRY(lay(b, &x, pair, 2));
    if (g.k.rank > 0 && (!joins(&y, &g.k, &stride) || stride != 1)) ORTC_TRY(lay(b, &y, pair, 2));
    ortc_einsum_step *s = add_step(b, g.k.rank > 0 ? ORTC_EINSUM_DOT : ORTC_EINSUM_MULTIPLY);
    if (!s) return no_memory(b);
    group all = {.rank = c.rank};
    for (int32_t i = 0; i < c.rank; i++) all.labels[i] = c.labels[i];
    s->a = x.at, s->b = y.at, s->c = c.at;
    s->k = extents(&x, &g.k);
    add_dims(s, &all, &x, &y, &c);
    return ORTC_OK;
}

/* ---- All of them --------------------------------------------------------------------------------------- */

/* What is wanted when two of n operands, left and right, become one. */
static void find_wanted(const builder *b, const tensor *t, uint32_t n, uint32_t left, uint32_t right,
                        bool *wanted)
{
    memset(wanted, 0, ORTC_EINSUM_LABELS * sizeof *wanted);
    for (int32_t d = 0; d < b->result.rank; d++) wanted[b->result.labels[d]] = true;
    for (uint32_t i = 0; i < n; i++)
        for (int32_t d = 0; i != left && i != right && d < t[i].rank; d++) wanted[t[i].labels[d]] = true;
}

static double result_count(const tensor *x, const tensor *y, const bool *wanted)
{
    double n = 1;
    for (int32_t i = 0; i < x->rank; i++) n *= wanted[x->labels[i]] ? (double)x->dims[i] : 1;
    for (int32_t i = 0; i < y->rank; i++)
        n *= wanted[y->labels[i]] && !has(x, y->labels[i]) ? (double)y->dims[i] : 1;
    return n;
}

static ortc_status plan_all(builder *b, tensor *t, uint32_t n)
{
    bool wanted[ORTC_EINSUM_LABELS];
    for (; n > 1; n--) {
        uint32_t left = 0, right = 1;
        double least = -1;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = i + 1; k < n; k++) {
                find_wanted(b, t, n, i, k, wanted);
                const double count = result_count(&t[i], &t[k], wanted);
                if (least >= 0 && count >= least) continue;
                least = count, left = i, right = k;
            }
        if (least > 1e17) return ortc_plan_fail(b->p, ORTC_LIMIT, "results in between do not fit in memory");
        find_wanted(b, t, n, left, right, wanted);
        ORTC_TRY(contract(b, t[left], t[right], wanted, n == 2 ? &b->result : NULL, &t[left]));
        for (uint32_t i = right; i + 1 < n; i++) t[i] = t[i + 1];
        if (n == 2) return ORTC_OK;
    }
    find_wanted(b, t, 1, 0, 0, wanted);
    const uint32_t before = b->steps->count;
    ORTC_TRY(sum_out(b, &t[0], NULL, wanted, &b->result));
    return b->steps->count > before ? ORTC_OK : move(b, &t[0], &b->result);
}

ortc_status ortc_einsum_plan(ortc_plan *p, const char *equation, size_t scratch, ortc_einsum_steps *out)
{
    ortc_einsum_result r = {0};
    builder b = {.p = p, .steps = out, .scratch = scratch};
    tensor *t = malloc((size_t)p->n_in * sizeof *t);
    *out = (ortc_einsum_steps){0};
    if (!t) return no_memory(&b);
    for (uint32_t i = 0; i < p->n_in; i++) {
        t[i] = operand(&b, equation, i, &r);
        for (int32_t d = 0; d < t[i].rank; d++) out->zero |= t[i].dims[d] == 0;
    }
    ortc_einsum_output(equation, &r);
    b.result.at = (ortc_einsum_place){ORTC_EINSUM_RESULT, p->out[0].dtype, 0};
    for (int32_t d = 0; d < r.rank; d++) {
        if (p->out[0].dims[d] == 1) continue;
        b.result.labels[b.result.rank] = r.labels[d];
        b.result.dims[b.result.rank++] = p->out[0].dims[d];
    }
    ortc_dense_strides(b.result.rank, b.result.dims, b.result.strides);
    ortc_status status = out->zero ? ORTC_OK : plan_all(&b, t, p->n_in);
    free(t);
    if (status == ORTC_OK && b.workspace > (double)(SIZE_MAX / 4))
        status = ortc_plan_fail(p, ORTC_LIMIT, "results in between do not fit in memory");
    if (status) {
        free(out->step);
        return status;
    }
    out->at_product = (size_t)b.workspace;
    double flops = 0, bytes = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        flops += out->step[i].product.flops;
        bytes += out->step[i].product.bytes;
    }
    ortc_plan_cost(p, flops, bytes + 2.0 * (double)ortc_view_count(&p->out[0]));
    ortc_plan_workspace(p, (size_t)b.workspace + b.product_workspace, b.scratch);
    return ORTC_OK;
}
