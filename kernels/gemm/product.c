/* Running a planned product: the shared packing loop, then the loop over tasks, and in a task the loops over
 * chunks of K, panels and row blocks that end in the micro-kernel. What is decided here is nothing: see
 * product_plan.c.
 */
#include "product.h"

#include <string.h>

#include "product_packed.h"
#include "product_pack.h"

typedef struct run_args {
    const ortc_product_plan *p;
    const ortc_product_args *x;
    ortc_product_item item; /* of the matrix at hand when the batch is walked outside */
    int64_t index;
    float *shared_a, *shared_b;
} run_args;

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* The matrix `index`, with operands exchanged where the plan is of the transposed product. */
static ortc_product_item locate(const ortc_product_plan *p, const ortc_product_args *x, int64_t index)
{
    ortc_product_item it = x->item;
    if (x->locate) x->locate(x->arg, index, &it);
    if (p->swapped) {
        const ortc_product_item was = it;
        it.a = was.b, it.b = was.a;
        it.bias_col = was.bias_row, it.bias_row = was.bias_col;
    }
    return it;
}

static ortc_uk_tail_f32 tail_at(const ortc_product_args *x, const ortc_product_item *it, int64_t row,
                                int64_t col)
{
    ortc_uk_tail_f32 t = {x->alpha, x->beta, NULL, NULL, NULL, (size_t)x->residual_stride,
                          x->act,   x->lo,   x->hi};
    if (it->bias_col) t.bias_col = it->bias_col + col;
    if (it->bias_row) t.bias_row = it->bias_row + row;
    if (it->residual) t.residual = it->residual + row * x->residual_stride + col;
    return t;
}

/* ---- Rows that no tile finishes: dot products (one row of A, rows of B contiguous) --------------------- */

/* A row of sums in place, term by term, so that each loop is one that compilers turn into vectors. */
static void finish_row(const ortc_uk_tail_f32 *t, float *c, int64_t n)
{
    const float bias = t->bias_row ? ortc_uk_load_f32(t->bias_row) : 0.0f, lo = t->lo, hi = t->hi;
    if (t->alpha != 1.0f)
        for (int64_t i = 0; i < n; i++) c[i] *= t->alpha;
    if (t->bias_col)
        for (int64_t i = 0; i < n; i++) c[i] += ortc_uk_load_f32(t->bias_col + i);
    if (t->bias_row)
        for (int64_t i = 0; i < n; i++) c[i] += bias;
    if (t->residual)
        for (int64_t i = 0; i < n; i++) c[i] += t->beta * ortc_uk_load_f32(t->residual + i);
    if (t->act == ORTC_UK_ACT_CLIP)
        for (int64_t i = 0; i < n; i++) {
            const float v = c[i] < lo ? lo : c[i]; /* NaN stays */
            c[i] = v > hi ? hi : v;
        }
    else if (t->act == ORTC_UK_ACT_LEAKY)
        for (int64_t i = 0; i < n; i++) c[i] = c[i] < 0 ? c[i] * lo : c[i];
}

static void dot_task(const run_args *r, const ortc_product_item *it, int64_t n0, int64_t n1)
{
    const ortc_product_plan *p = r->p;
    const int64_t ldb = p->swapped ? r->x->lda : r->x->ldb;
    for (int64_t j = n0; j < n1; j += ORTC_DOT_ROWS) {
        const size_t nr = (size_t)min64(n1 - j, ORTC_DOT_ROWS);
        const ortc_uk_tail_f32 t = tail_at(r->x, it, 0, j);
        float y[ORTC_DOT_ROWS]; /* c may be the residual */
        p->uk->dot(nr, (size_t)p->k, it->a, it->b + j * ldb, (size_t)ldb, y);
        finish_row(&t, y, (int64_t)nr);
        memcpy(it->c + j, y, nr * sizeof *y);
        if (r->x->post) r->x->post(r->x->arg, it->c + j, nr, 1, nr);
    }
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

/* What a task needs to know about one chunk of K. */
typedef struct chunk {
    int64_t k0, kc;
    int last;
    const float *a; /* packed rows from a_row on, this chunk */
    int64_t a_row;
    float *c; /* element (0, 0), and its row stride */
    int64_t ldc;
} chunk;

static void one_tile(const run_args *r, const ortc_product_item *it, const chunk *ch, int64_t block,
                     int64_t n0, const float *b, int64_t ldb, uint32_t flags)
{
    const ortc_product_plan *p = r->p;
    const int64_t row = ortc_product_row(p->m, p->blocks, block),
                  rows = ortc_product_row(p->m, p->blocks, block + 1) - row;
    const int64_t cols = min64(p->n - n0, p->uk->nr), ldc = ch->ldc;
    const int finish_now = ch->last && !(p->flags & ORTC_PRODUCT_TRANS_C);
    float *c = ch->c + row * ldc + n0;
    ortc_uk_tail_f32 tail;
    if (finish_now) tail = tail_at(r->x, it, row, n0);
    if (ch->k0 > 0) flags |= ORTC_UK_ACCUMULATE;
    p->uk->tile((size_t)rows, (size_t)cols, (size_t)ch->kc, ch->a + (row - ch->a_row) * ch->kc, b,
                (size_t)ldb, c, (size_t)ldc, flags, finish_now ? &tail : NULL);
    if (finish_now && r->x->post) r->x->post(r->x->arg, c, (size_t)ldc, (size_t)rows, (size_t)cols);
}

static void pack_panel(const run_args *r, const ortc_product_item *it, int64_t index, int64_t k0, int64_t kc,
                       int64_t n0, float *dst)
{
    const ortc_product_plan *p = r->p;
    const int64_t nc = min64(p->n - n0, p->uk->nr), width = ortc_product_panel_width(p->uk, p->n, n0);
    if (p->flags & ORTC_PRODUCT_CUSTOM_B)
        r->x->pack(r->x->arg, index, k0, kc, n0, nc, dst, (size_t)width);
    else
        ortc_product_pack_panel(p->uk, p->flags, it->b, p->swapped ? r->x->lda : r->x->ldb, n0, nc, k0, kc,
                                dst, width);
}

static void pack_block(const run_args *r, const ortc_product_item *it, int64_t index, int64_t k0, int64_t kc,
                       int64_t row, int64_t rows, float *dst)
{
    const ortc_product_plan *p = r->p;
    if (p->flags & ORTC_PRODUCT_CUSTOM_A)
        r->x->pack(r->x->arg, index, k0, kc, row, rows, dst, (size_t)rows);
    else
        ortc_product_pack_block(p->uk, p->flags, it->a, r->x->lda, row, rows, k0, kc, dst);
}

/* The packed rows of a task for one chunk, wherever they are. */
static void find_a(const run_args *r, const ortc_product_item *it, int64_t index, int64_t b0, int64_t b1,
                   chunk *ch, float *scratch)
{
    const ortc_product_plan *p = r->p;
    ch->a_row = 0;
    switch (p->how_a) {
    case ORTC_PRODUCT_PACKED: ch->a = it->a + ch->k0 * p->m; break;
    case ORTC_PRODUCT_SHARED: ch->a = r->shared_a + ch->k0 * p->m; break;
    case ORTC_PRODUCT_DIRECT: ch->a = it->a + ch->k0; break;
    default:
        ch->a = scratch;
        ch->a_row = ortc_product_row(p->m, p->blocks, b0);
        for (int64_t b = b0; b < b1; b++) {
            const int64_t row = ortc_product_row(p->m, p->blocks, b),
                          rows = ortc_product_row(p->m, p->blocks, b + 1) - row;
            pack_block(r, it, index, ch->k0, ch->kc, row, rows, scratch + (row - ch->a_row) * ch->kc);
        }
    }
}

/* TRANS_C: the task's sums, [m][columns] in scratch, become rows n0.. of C, and then get what a tail gives
 * them. */
static void turn(const run_args *r, const ortc_product_item *it, int64_t n0, int64_t columns,
                 const float *sums)
{
    const ortc_product_plan *p = r->p;
    const ortc_product_args *x = r->x;
    float *c = it->c + n0 * p->m;
    p->uk->pack_transpose((size_t)p->m, (size_t)columns, sums, (size_t)columns, c, (size_t)p->m);
    for (int64_t j = 0; j < columns; j++) {
        ortc_uk_tail_f32 t = {x->alpha, x->beta, NULL, NULL, NULL, 0, x->act, x->lo, x->hi};
        if (it->bias_col) t.bias_row = it->bias_col + n0 + j;
        if (it->bias_row) t.bias_col = it->bias_row;
        if (it->residual) t.residual = it->residual + (n0 + j) * p->m;
        finish_row(&t, c + j * p->m, p->m);
    }
    if (x->post) x->post(x->arg, c, (size_t)p->m, (size_t)columns, (size_t)p->m);
}

/* Panels q0..q1 over blocks b0..b1. With panels packed on the spot several are kept, and a block of A passes
 * over all of them; otherwise one panel stays in cache and the blocks pass over it. */
static void tile_task(const run_args *r, const ortc_product_item *it, int64_t index, int64_t b0, int64_t b1,
                      int64_t q0, int64_t q1, float *scratch)
{
    const ortc_product_plan *p = r->p;
    const int64_t nr = p->uk->nr, width = ortc_product_packed_width(p->uk, p->n);
    float *local_b = scratch;
    if (p->how_a == ORTC_PRODUCT_LOCAL) local_b += (p->task_blocks * p->uk->mr * p->kc + 15) / 16 * 16;
    const int64_t columns = min64(p->n, q1 * nr) - q0 * nr;
    float *turned = p->how_b == ORTC_PRODUCT_LOCAL ? local_b + (p->local_panels * nr * p->kc + 15) / 16 * 16
                                                   : local_b;
    for (int64_t i = 0; i < p->chunks; i++) {
        chunk ch = {i * p->kc, 0, i == p->chunks - 1, NULL, 0, it->c, r->x->ldc};
        if (p->flags & ORTC_PRODUCT_TRANS_C) ch.c = turned - q0 * nr, ch.ldc = columns;
        ch.kc = min64(p->k - ch.k0, p->kc);
        find_a(r, it, index, b0, b1, &ch, scratch);
        for (int64_t g = q0; g < q1; g += p->local_panels) {
            const int64_t g1 = min64(q1, g + p->local_panels);
            const float *packed = p->how_b == ORTC_PRODUCT_PACKED ? it->b : r->shared_b;
            if (p->how_b == ORTC_PRODUCT_LOCAL) {
                for (int64_t q = g; q < g1; q++)
                    pack_panel(r, it, index, ch.k0, ch.kc, q * nr, local_b + (q - g) * nr * ch.kc);
            }
            for (int64_t b = b0; b < b1; b++) {
                for (int64_t q = g; q < g1; q++) {
                    const int64_t n0 = q * nr, pw = ortc_product_panel_width(p->uk, p->n, n0);
                    if (p->how_b == ORTC_PRODUCT_DIRECT) {
                        const int64_t ldb = p->swapped ? r->x->lda : r->x->ldb;
                        one_tile(r, it, &ch, b, n0, it->b + ch.k0 * ldb + n0, ldb, ORTC_UK_B_EXACT);
                    } else if (p->how_b == ORTC_PRODUCT_LOCAL) {
                        one_tile(r, it, &ch, b, n0, local_b + (q - g) * nr * ch.kc, pw, 0);
                    } else {
                        one_tile(r, it, &ch, b, n0, packed + ch.k0 * width + n0 * ch.kc, pw, 0);
                    }
                }
            }
        }
    }
    if (p->flags & ORTC_PRODUCT_TRANS_C) turn(r, it, q0 * nr, columns, turned);
}

static void task_body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const run_args *r = arg;
    const ortc_product_plan *p = r->p;
    const int64_t per = p->tasks_m * p->tasks_n;
    for (int64_t t = begin; t < end; t++) {
        const int64_t index = p->batch_outside ? r->index : t / per, tm = t % per / p->tasks_n,
                      tn = t % p->tasks_n;
        const ortc_product_item it = p->batch_outside ? r->item : locate(p, r->x, index);
        const int64_t b0 = tm * p->task_blocks, b1 = min64(p->blocks, b0 + p->task_blocks);
        const int64_t q0 = tn * p->task_panels, q1 = min64(p->panels, q0 + p->task_panels);
        if (p->dot)
            dot_task(r, &it, q0 * p->uk->nr, min64(p->n, q1 * p->uk->nr));
        else
            tile_task(r, &it, index, b0, b1, q0, q1, scratch);
    }
}

/* ---- Shared packing ------------------------------------------------------------------------------------ */

/* Blocks of A and panels of B, as far as they are shared, are packed in slots: a slot takes its fraction of
 * both, so that a thread with the first slots packs the first rows of A, which the first tasks read, and B is
 * dealt evenly too. */
static int64_t shared_blocks(const ortc_product_plan *p)
{
    return p->how_a == ORTC_PRODUCT_SHARED ? p->blocks : 0;
}
static int64_t shared_panels(const ortc_product_plan *p)
{
    return p->how_b == ORTC_PRODUCT_SHARED ? p->panels : 0;
}
static int64_t shared_slots(const ortc_product_plan *p)
{
    const int64_t grain = ortc_product_pack_grain(p->uk, p->k), all = shared_blocks(p) + shared_panels(p);
    return all / grain + (all % grain != 0);
}

static void pack_slot(const run_args *r, int64_t slot, int64_t slots, int64_t k0, int64_t kc)
{
    const ortc_product_plan *p = r->p;
    const int64_t na = shared_blocks(p), nb = shared_panels(p),
                  width = ortc_product_packed_width(p->uk, p->n);
    const int64_t b1 = ortc_product_row(na, slots, slot + 1), q0 = ortc_product_row(nb, slots, slot);
    const int64_t q1 = ortc_product_row(nb, slots, slot + 1);
    for (int64_t b = ortc_product_row(na, slots, slot); b < b1; b++) {
        const int64_t row = ortc_product_row(p->m, p->blocks, b),
                      rows = ortc_product_row(p->m, p->blocks, b + 1) - row;
        pack_block(r, &r->item, r->index, k0, kc, row, rows, r->shared_a + k0 * p->m + row * kc);
    }
    if (!(p->flags & ORTC_PRODUCT_CUSTOM_B))
        ortc_product_pack_panels(p->uk, p->flags, r->item.b, p->swapped ? r->x->lda : r->x->ldb, p->n, q0, q1,
                                 k0, kc, r->shared_b);
    else
        for (int64_t q = q0; q < q1; q++)
            pack_panel(r, &r->item, r->index, k0, kc, q * p->uk->nr,
                       r->shared_b + k0 * width + q * p->uk->nr * kc);
}

static void shared_body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const run_args *r = arg;
    const ortc_product_plan *p = r->p;
    (void)scratch;
    for (int64_t slot = begin; slot < end; slot++)
        for (int64_t i = 0; i < p->chunks; i++)
            pack_slot(r, slot, shared_slots(p), i * p->kc, min64(p->k - i * p->kc, p->kc));
}

static int32_t run_items(run_args *r, int64_t tasks, const ortc_product_threads *th)
{
    const ortc_product_plan *p = r->p;
    const int64_t slots = p->dot ? 0 : shared_slots(p);
    if (slots > 0) {
        const int32_t s = th->parallel(th->context, slots, 1, shared_body, r);
        if (s) return s;
    }
    /* Small matrices of a batch go out several at a time. */
    int64_t grain = 1;
    if (!p->batch_outside && p->batch > 1) {
        const double each = p->flops / (double)p->batch + p->bytes / (double)p->batch;
        grain = each > 0 && each < 5e5 ? (int64_t)(5e5 / each) + 1 : each > 0 ? 1 : 1024;
    }
    return th->parallel(th->context, tasks, grain, task_body, r);
}

int32_t ortc_product_run(const ortc_product_plan *p, const ortc_product_args *x,
                         const ortc_product_threads *th)
{
    if (p->m == 0 || p->n == 0 || p->batch == 0) return 0;
    run_args r = {p, x, {0}, 0, NULL, NULL};
    float *ws = x->workspace;
    if (p->how_a == ORTC_PRODUCT_SHARED) r.shared_a = ws, ws += (p->m * p->k + 15) / 16 * 16;
    if (p->how_b == ORTC_PRODUCT_SHARED) r.shared_b = ws;
    const int64_t per = p->tasks_m * p->tasks_n;
    if (p->batch > 1 && !p->batch_outside) return run_items(&r, p->batch * per, th);
    for (int64_t i = 0; i < p->batch; i++) {
        r.index = i;
        r.item = locate(p, x, i);
        const int32_t s = run_items(&r, per, th);
        if (s) return s;
    }
    return 0;
}
