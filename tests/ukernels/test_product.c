/* The driver of products against sums in double, on every line of the table and of tests (lines.h), with
 * operands and results of every type that the line may be given: random shapes around tiles, chunks and
 * grids, transposed, padded, packed, custom and batched operands; then the same run on 1 to 4 threads, and
 * with its tasks in reverse order, must give the same bits. s32 sums are exact, zero points and all.
 * Workspace and scratch are guarded.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/element.h"
#include "kernels/gemm/product_pack.h"
#include "kernels/gemm/product_packed.h"
#include "lines.h"
#include "pool.h"
#include "tests.h"

#define SCRATCH ((size_t)16 << 20)

typedef struct problem {
    int64_t m, n, k, batch, lda, ldb, ldc, ldr;
    uint32_t flags;
    int tail; /* bits: 1 alpha, 2 bias_col, 4 bias_row, 8 residual, 16 beta, 32 clip, 64 leaky, 128 tile */
    int32_t zero_a, zero_b;
    ortc_product_types types;
    void *a, *b, *c, *res;
    float *bias_col, *bias_row;
    int64_t a_step, b_step, c_step, r_step; /* elements between matrices of the batch */
    const ortc_product_line *line;
    void *packed_a, *packed_b;
    double *rows, *cols; /* what is summed, zero points taken off: [batch][m][k] of A, [batch][n][k] of B */
} problem;

/* Tasks one after the other, last first, in guarded scratch: a run must not depend on order. */
typedef struct backwards {
    guard scratch;
} backwards;
static int32_t run_backwards(void *context, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    backwards *b = context;
    for (int64_t i = (n - 1) / grain * grain; n > 0 && i >= 0; i -= grain)
        body(arg, i, i + grain < n ? i + grain : n, b->scratch.data);
    return 0;
}

static void locate(const void *arg, int64_t i, ortc_product_item *it)
{
    const problem *p = arg;
    /* a packed operand is shared by the batch */
    if (it->a && !p->packed_a) it->a = ortc_product_at(it->a, p->a_step * i, p->types.a);
    if (it->b && !p->packed_b) it->b = ortc_product_at(it->b, p->b_step * i, p->types.b);
    if (it->residual) it->residual = ortc_product_at(it->residual, p->r_step * i, p->types.c);
    it->c = ortc_product_at(it->c, p->c_step * i, p->types.c);
}

static double typed(ortc_dtype t, const void *p, int64_t i)
{
    return ortc_class_of(t) == ORTC_CLASS_FLOAT ? ortc_load_f64(p, t, i) : (double)ortc_load_i64(p, t, i);
}
static int64_t a_index(const problem *p, int64_t i, int64_t row, int64_t k)
{
    return (p->packed_a ? 0 : p->a_step * i) +
           (p->flags & ORTC_PRODUCT_TRANS_A ? k * p->lda + row : row * p->lda + k);
}
static int64_t b_index(const problem *p, int64_t i, int64_t k, int64_t col)
{
    return (p->packed_b ? 0 : p->b_step * i) +
           (p->flags & ORTC_PRODUCT_TRANS_B ? col * p->ldb + k : k * p->ldb + col);
}

static void pack_custom(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc,
                        void *dst, size_t dw)
{
    const problem *p = arg;
    const int is_a = (p->flags & ORTC_PRODUCT_CUSTOM_A) != 0;
    const ortc_dtype t = is_a ? p->types.a : p->types.b;
    const size_t size = (size_t)ortc_product_size(t);
    for (int64_t k = 0; k < kc; k++)
        for (size_t j = 0; j < dw; j++) {
            const int64_t col = n0 + (int64_t)j;
            void *to = (char *)dst + ((size_t)k * dw + j) * size;
            if ((int64_t)j >= nc)
                memset(to, 0, size);
            else if (is_a)
                memcpy(to, ortc_product_at(p->a, a_index(p, index, col, k0 + k), t), size);
            else
                memcpy(to, ortc_product_at(p->b, b_index(p, index, k0 + k, col), t), size);
        }
}

/* The operands as doubles, so that `expected` only multiplies and adds. */
static void spell_out(problem *p)
{
    p->rows = malloc((size_t)(p->batch * p->m * p->k + 1) * sizeof(double));
    p->cols = malloc((size_t)(p->batch * p->n * p->k + 1) * sizeof(double));
    double *a = p->rows, *b = p->cols;
    for (int64_t i = 0; i < p->batch; i++) {
        for (int64_t row = 0; row < p->m; row++)
            for (int64_t k = 0; k < p->k; k++)
                *a++ = typed(p->types.a, p->a, a_index(p, i, row, k)) - p->zero_a;
        for (int64_t col = 0; col < p->n; col++)
            for (int64_t k = 0; k < p->k; k++)
                *b++ = typed(p->types.b, p->b, b_index(p, i, k, col)) - p->zero_b;
    }
}

/* What the callback does: twice the value, and something of its place, so that a wrong one shows. */
static double by_place(int64_t row, int64_t col)
{
    return 0.25 * (double)(row % 3) - 0.125 * (double)(col % 5);
}
static void twice(void *arg, float *tile, size_t rows, size_t cols, size_t ld, int64_t row0, int64_t col0)
{
    (void)arg;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            tile[i * ld + j] = 2 * tile[i * ld + j] + (float)by_place(row0 + (int64_t)i, col0 + (int64_t)j);
}

static ortc_product_args make_args(const problem *p, void *c, void *ws)
{
    ortc_product_args x = {.item = {.a = p->packed_a ? p->packed_a : p->a,
                                    .b = p->packed_b ? p->packed_b : p->b,
                                    .c = c},
                           .lda = p->lda,
                           .ldb = p->ldb,
                           .ldc = p->ldc,
                           .residual_stride = p->ldr,
                           .alpha = 1,
                           .beta = 1,
                           .zero_a = p->zero_a,
                           .zero_b = p->zero_b,
                           .locate = p->batch == 1 ? NULL : locate,
                           .arg = p,
                           .workspace = ws};
    if (p->flags & ORTC_PRODUCT_CUSTOM_B) x.pack = pack_custom, x.item.b = NULL;
    if (p->flags & ORTC_PRODUCT_CUSTOM_A) x.pack = pack_custom, x.item.a = NULL;
    if (p->tail & 1) x.alpha = -0.5f;
    if (p->tail & 2) x.item.bias_col = p->bias_col;
    if (p->tail & 4) x.item.bias_row = p->bias_row;
    if (p->tail & 8) x.item.residual = p->res;
    if (p->tail & 16) x.beta = 0.25f;
    if (p->tail & 32)
        x.act = ORTC_UK_ACT_CLIP, x.lo = 0, x.hi = 6;
    else if (p->tail & 64)
        x.act = ORTC_UK_ACT_LEAKY, x.lo = 0.1f;
    if (p->tail & 128) x.tile = twice;
    return x;
}

/* Where an element of C or of the residual lies. */
static int64_t place(const problem *p, int64_t ld, int64_t row, int64_t col)
{
    return (p->flags & ORTC_PRODUCT_TRANS_C ? col * ld + row : row * ld + col);
}

static double expected(const problem *p, const ortc_product_args *x, int64_t i, int64_t row, int64_t col,
                       double *bound)
{
    const double *a = p->rows + (i * p->m + row) * p->k, *b = p->cols + (i * p->n + col) * p->k;
    double v = 0, mag = 0;
    for (int64_t k = 0; k < p->k; k++) v += a[k] * b[k], mag += fabs(a[k] * b[k]);
    *bound = 0;
    if (p->types.c == ORTC_I32) return v;
    v *= x->alpha, mag *= fabs(x->alpha);
    if (x->item.bias_col) v += p->bias_col[col], mag += fabs(p->bias_col[col]);
    if (x->item.bias_row) v += p->bias_row[row], mag += fabs(p->bias_row[row]);
    if (x->item.residual) {
        const double r = x->beta * typed(p->types.c, p->res, p->r_step * i + place(p, p->ldr, row, col));
        v += r, mag += fabs(r);
    }
    if (x->act == ORTC_UK_ACT_CLIP) v = v < x->lo ? x->lo : v > x->hi ? x->hi : v;
    if (x->act == ORTC_UK_ACT_LEAKY) v = v < 0 ? v * x->lo : v;
    *bound = ((double)p->k + 8) * FLT_EPSILON * mag;
    if (x->tile) {
        const int64_t r = i * (p->flags & ORTC_PRODUCT_TRANS_C ? p->n : p->m);
        v = 2 * v + (p->flags & ORTC_PRODUCT_TRANS_C ? by_place(r + col, row) : by_place(r + row, col));
        *bound = 2 * *bound + FLT_EPSILON * fabs(v);
    }
    *bound += test_rounding(p->types.c, fabs(v) + *bound);
    return v;
}

static void describe(const problem *p, const ortc_product_plan *plan)
{
    printf("  %s types %d,%d,%d %lldx%lldx%lld batch %lld flags %u tail %d how %d,%d dot %d swapped %d "
           "chunks %lld tasks "
           "%lldx%lld\n",
           p->line->name, (int)p->types.a, (int)p->types.b, (int)p->types.c, (long long)p->m, (long long)p->n,
           (long long)p->k, (long long)p->batch, (unsigned)p->flags, p->tail, plan->how_a, plan->how_b,
           plan->dot, plan->swapped, (long long)plan->chunks, (long long)plan->tasks_m,
           (long long)plan->tasks_n);
}

/* Whether as many threads give the same bits: with that plan, or one of their own (NULL). */
static int is_alike(const problem *p, const ortc_product_plan *plan, int threads, pool *const pools[4],
                    size_t c_bytes)
{
    ortc_product_plan own;
    int bad = 0;
    if (plan)
        own = *plan;
    else if (ortc_product_plan_init(&own, p->line, &p->types, p->m, p->n, p->k, p->batch, p->flags,
                                    (uint32_t)threads))
        return 1;
    if (own.scratch > SCRATCH) printf("  scratch %zu\n", own.scratch), bad++;
    guard space = guard_open(own.workspace, 1);
    void *c = malloc(c_bytes + 1);
    memset(c, 0xff, c_bytes);
    ortc_product_args x = make_args(p, c, space.data);
    x.backward = threads % 2 ? threads : 0;
    const ortc_product_threads th = pool_threads(pools[threads - 1]);
    if (!bad) ortc_product_run(&own, &x, &th);
    if (memcmp(c, p->c, c_bytes))
        printf("  %d threads, flags %u, give other bits\n", threads, (unsigned)p->flags), bad++;
    bad += !guard_intact(&space);
    guard_close(&space);
    free(c);
    return bad;
}

static int check(problem *p, rng *r, pool *const pools[4])
{
    const int64_t ar = p->flags & ORTC_PRODUCT_TRANS_A ? p->k : p->m,
                  ac = p->flags & ORTC_PRODUCT_TRANS_A ? p->m : p->k;
    const int64_t br = p->flags & ORTC_PRODUCT_TRANS_B ? p->n : p->k,
                  bc = p->flags & ORTC_PRODUCT_TRANS_B ? p->k : p->n;
    const int pad = p->m != 1 && p->n != 1; /* vectors are contiguous */
    p->lda = ac + (pad ? rng_range(r, 0, 5) : 0), p->ldb = bc + (pad ? rng_range(r, 0, 5) : 0);
    p->ldc = p->n + (pad ? rng_range(r, 0, 5) : 0), p->ldr = p->n + (pad ? rng_range(r, 0, 5) : 0);
    p->a_step = ar * p->lda, p->b_step = br * p->ldb;
    if (p->flags & ORTC_PRODUCT_TRANS_C) p->ldc = p->ldr = p->m;
    const int64_t c_rows = p->flags & ORTC_PRODUCT_TRANS_C ? p->n : p->m;
    p->c_step = c_rows * p->ldc, p->r_step = c_rows * p->ldr;
    const int64_t batch = p->batch > 0 ? p->batch : 1; /* packed operands exist for a batch of 0 too */
    const ortc_dtype types[6] = {p->types.a, p->types.b, p->types.c, ORTC_F32, ORTC_F32, p->types.c};
    const int64_t counts[6] = {p->a_step * batch, p->b_step * batch, p->r_step * batch, p->n, p->m,
                               p->c_step * batch};
    guard gs[6];
    for (int i = 0; i < 6; i++) {
        gs[i] = guard_open((size_t)(counts[i] * ortc_product_size(types[i])), 1);
        if (i < 5 && types[i] != ORTC_I32) test_fill(r, types[i], gs[i].data, (size_t)counts[i]);
    }
    p->a = (void *)gs[0].data, p->b = (void *)gs[1].data, p->res = (void *)gs[2].data;
    p->bias_col = (void *)gs[3].data, p->bias_row = (void *)gs[4].data, p->c = (void *)gs[5].data;
    const size_t c_bytes = gs[5].bytes;
    memset(p->c, 0xff, c_bytes);

    ortc_product_plan plan;
    int bad = 0;
    if (ortc_product_plan_init(&plan, p->line, &p->types, p->m, p->n, p->k, p->batch, p->flags, 0)) bad++;
    if (plan.scratch > SCRATCH) printf("  scratch %zu\n", plan.scratch), bad++;
    const ortc_product_threads one = pool_threads(pools[0]);
    guard pa =
        guard_open(p->flags & ORTC_PRODUCT_PACKED_A ? ortc_product_packed_bytes(&p->line->a, p->m, p->k) : 0,
                   1);
    guard pb =
        guard_open(p->flags & ORTC_PRODUCT_PACKED_B ? ortc_product_packed_bytes(&p->line->b, p->n, p->k) : 0,
                   1);
    p->packed_a = p->packed_b = NULL;
    if (p->flags & ORTC_PRODUCT_PACKED_A) {
        p->packed_a = (void *)pa.data;
        ortc_product_fill(p->line->moves, &p->line->a, p->types.a, p->m, p->k,
                          !(p->flags & ORTC_PRODUCT_TRANS_A), p->a, p->lda, p->packed_a, &one);
    }
    if (p->flags & ORTC_PRODUCT_PACKED_B) {
        p->packed_b = (void *)pb.data;
        ortc_product_fill(p->line->moves, &p->line->b, p->types.b, p->n, p->k,
                          !!(p->flags & ORTC_PRODUCT_TRANS_B), p->b, p->ldb, p->packed_b, &one);
    }
    guard ws = guard_open(plan.workspace, 1);
    backwards bw = {guard_open(plan.scratch, 1)};
    const ortc_product_args x = make_args(p, p->c, ws.data);
    const ortc_product_threads back = {run_backwards, &bw};
    if (!bad) ortc_product_run(&plan, &x, &back);
    spell_out(p);

    for (int64_t i = 0; i < p->batch && !bad; i++)
        for (int64_t row = 0; row < p->m; row++)
            for (int64_t col = 0; col < (p->flags & ORTC_PRODUCT_TRANS_C ? p->n : p->ldc); col++) {
                const int64_t index = p->c_step * i + place(p, p->ldc, row, col);
                const double got = typed(p->types.c, p->c, index);
                double bound = 0;
                const double want = col < p->n ? expected(p, &x, i, row, col, &bound) : 0;
                const size_t size = (size_t)ortc_product_size(p->types.c);
                if (col >= p->n ? memcmp(ortc_product_at(p->c, index, p->types.c), "\xff\xff\xff\xff", size)
                                : !(fabs(got - want) <= bound)) {
                    if (!bad)
                        printf("  [%lld,%lld,%lld] is %g, expected %g +- %g\n", (long long)i, (long long)row,
                               (long long)col, got, want, bound);
                    bad++;
                }
            }
    for (int threads = 1; threads <= 3 && !bad; threads++) bad += is_alike(p, NULL, threads, pools, c_bytes);
    if (!bad) bad += is_alike(p, &plan, 4, pools, c_bytes);
    /* tasks pack B themselves: a batch has one */
    problem passing = *p;
    passing.flags ^= ORTC_PRODUCT_PACKED_B | ORTC_PRODUCT_PASSING_B;
    passing.packed_b = NULL, passing.b_step = 0;
    const int may_pass = p->flags & ORTC_PRODUCT_PACKED_B && !(p->flags & ORTC_PRODUCT_TRANS_C) &&
                         !p->line->begin && !(p->line->can & ORTC_LINE_SPLIT);
    for (int threads = 1; threads <= 3 && may_pass && !bad; threads++)
        bad += is_alike(&passing, NULL, threads, pools, c_bytes);
    free(p->rows), free(p->cols);
    guard *all[] = {&gs[0], &gs[1], &gs[2], &gs[3], &gs[4], &gs[5], &pa, &pb, &ws, &bw.scratch};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        bad += !guard_intact(all[i]);
        guard_close(all[i]);
    }
    if (bad) describe(p, &plan);
    return bad;
}

/* An extent that is likely to hit an edge of something. */
static int64_t extent(rng *r, int64_t tile, int64_t most)
{
    int64_t v;
    switch (rng_next(r) % 5) {
    case 0: v = rng_range(r, 1, 4); break;
    case 1: v = tile * rng_range(r, 1, 3) + rng_range(r, -1, 1); break;
    default: v = rng_range(r, 1, most); break;
    }
    return v < 1 ? 1 : v > most ? most : v;
}

/* A problem's types and zero points, where the line has sums to take them off with. */
static void choose_types(problem *p, rng *r)
{
    p->types = test_types(p->line, r);
    if (p->flags & ORTC_PRODUCT_TRANS_C && p->types.c == ORTC_I32) p->types.c = ORTC_F32;
    if (p->types.c == ORTC_I32) p->tail = 0; /* the sums themselves */
    if (p->line->a.sums && rng_next(r) % 2) p->zero_a = (int32_t)rng_range(r, 0, 255);
    if (p->line->b.sums && rng_next(r) % 2) p->zero_b = (int32_t)rng_range(r, -128, 127);
    if (p->line->b.sums && p->types.b == p->line->b.type && !p->zero_b && rng_next(r) % 4)
        p->flags |= ORTC_PRODUCT_SYMMETRIC_B;
}

/* One in how many: the paths through the driver are the lines' of f32, whose operands are of all types;
 * others get a third, those of tiles, which may be emulated, less. */
static int share(const tally *t, const ortc_product_line *line)
{
    return t->every * (line->begin ? 9 : ortc_form_is_plain(&line->b) ? 1 : 3);
}

static int random_shapes(const tally *t, const ortc_product_line *line, rng *r, pool *const pools[4],
                         uint32_t kind, int batched, int count)
{
    int bad = 0;
    for (int i = 0; i < count; i += share(t, line)) {
        problem p = {.line = line,
                     .batch = batched ? rng_range(r, 0, 7) : 1,
                     .tail = (int)(rng_next(r) & 255)};
        p.m = extent(r, line->a.width, 150), p.n = extent(r, line->b.width, 200), p.k = extent(r, 64, 200);
        if (rng_next(r) % 16 == 0) p.k = 0;
        if (rng_next(r) % 16 == 0) p.m = rng_next(r) % 2 ? 0 : p.m, p.n = rng_next(r) % 2 ? 0 : p.n;
        p.flags = (rng_next(r) & 3) | kind;
        choose_types(&p, r);
        bad += check(&p, r, pools);
    }
    return bad;
}

/* Shapes that reach particular paths: chunks of K, many row blocks, shared packing, rows of tasks, one row,
 * one column, large matrices of a batch. */
static int chosen_shapes(const tally *t, const ortc_product_line *line, rng *r, pool *const pools[4])
{
    static const int64_t shapes[][4] = {{60, 70, 1537, 1}, {33, 40, 3000, 1}, {300, 64, 300, 1},
                                        {1500, 24, 40, 1}, {24, 1500, 40, 1}, {1, 300, 700, 1},
                                        {700, 1, 300, 1},  {2, 130, 2100, 1}, {3, 100, 2100, 1},
                                        {8, 900, 300, 1},  {1, 1, 5000, 1},   {1, 1, 1, 1},
                                        {0, 5, 5, 1},      {5, 5, 0, 1},      {220, 220, 220, 2},
                                        {1, 64, 64, 40},   {17, 1, 33, 9},    {70, 40, 1300, 1}};
    int bad = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (uint32_t flags = 0; flags < 32; flags++) {
            const uint32_t both = ORTC_PRODUCT_PACKED_B | ORTC_PRODUCT_CUSTOM_B;
            const uint32_t turned = ORTC_PRODUCT_TRANS_C | ORTC_PRODUCT_CUSTOM_A;
            if ((flags & both) == both || rng_next(r) % (uint32_t)(2 * share(t, line))) continue;
            problem p = {.line = line,
                         .m = shapes[i][0],
                         .n = shapes[i][1],
                         .k = shapes[i][2],
                         .batch = shapes[i][3],
                         .flags = (flags & 28) == 8 && line->sum == ORTC_F32 && rng_next(r) % 2
                                      ? flags | turned
                                      : flags,
                         .tail = (int)(rng_next(r) & 255)};
            choose_types(&p, r);
            bad += check(&p, r, pools);
        }
    return bad;
}

/* Constants of a megabyte and more go past the caches, in tasks of their own: the same bytes as panel by
 * panel, of either operand, from memory of any alignment. */
static int large_constants(const ortc_product_line *line, rng *r, pool *const pools[4])
{
    static const int64_t shapes[][2] = {{1735, 333}, {133, 4001}, {700, 1537}}; /* extent, k */
    int bad = 0;
    for (int i = 0; i < 6; i++) {
        const ortc_product_form *form = i & 1 ? &line->b : &line->a;
        const ortc_product_types types = test_types(line, r);
        const ortc_dtype type = i & 1 ? types.b : types.a;
        const int64_t extent = shapes[i / 2][0], k = shapes[i / 2][1], chunk = ortc_form_chunk(form, k);
        const int along = (int)(rng_next(r) % 2);
        const size_t bytes = ortc_product_packed_bytes(form, extent, k), n = (size_t)(extent * k);
        guard src = guard_open(n * (size_t)ortc_product_size(type) + 1, 1);
        char *from = (char *)src.data + i % 2, *got = aligned_alloc(64, (bytes + 63) / 64 * 64),
             *want = malloc(bytes);
        test_fill(r, type, src.data, n);
        memmove(from, src.data, n * (size_t)ortc_product_size(type));
        memset(got, 0xaa, bytes);
        memset(want, 0xaa, bytes);
        const ortc_product_source s = {
            .moves = line->moves, .data = from, .type = type, .ld = along ? k : extent, .along = along};
        const int64_t panels = ortc_form_panels(form, extent);
        for (int64_t k0 = 0; k0 < k; k0 += chunk)
            ortc_product_pack_panels(form, &s, extent, panels, 0, panels, k0, k - k0 < chunk ? k - k0 : chunk,
                                     want + ortc_form_at(form, extent, panels, k0, chunk));
        const ortc_product_threads threads = pool_threads(pools[i % 4]);
        bad += ortc_product_fill_far(line->moves, form, type, extent, k, along, from, got, &threads, NULL);
        bad += memcmp(got, want, bytes) != 0;
        free(got);
        free(want);
        guard_close(&src);
    }
    return bad;
}

static int overflows(const ortc_product_line *line)
{
    ortc_product_plan p;
    const ortc_product_types t = {line->sum == ORTC_I32 ? line->a.type : ORTC_F32,
                                  line->sum == ORTC_I32 ? line->b.type : ORTC_F32, ORTC_F32};
    const int64_t huge = (int64_t)1 << 40;
    int bad = ortc_product_plan_init(&p, line, &t, huge, huge, huge, 1, ORTC_PRODUCT_TRANS_B, 1) != -1;
    bad += ortc_product_plan_init(&p, line, &t, -1, 1, 1, 1, 0, 1) != -1;
    bad += ortc_product_packed_bytes(&line->b, huge, huge) != 0;
    bad += ortc_product_packed_bytes(&line->b, INT64_MAX, 1) != 0;
    bad += ortc_product_packed_bytes(&line->a, INT64_MAX, INT64_MAX) != 0;
    bad += ortc_product_plan_init(&p, line, &t, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, 0, 1) != -1;
    return bad;
}

void test_product(tally *t, uint32_t isa_bits)
{
    static const char *const parts[] = {"random shapes", "batches",  "packed B", "packed A",       "custom B",
                                        "chosen shapes", "turned C", "overflow", "large constants"};
    pool *pools[4];
    for (int i = 0; i < 4; i++) pools[i] = pool_open(i + 1, SCRATCH);
    const ortc_product_line *line;
    for (size_t u = 0; (line = test_line(u)); u++) {
        for (int part = 0; part < 9; part++) {
            if (part == 6 && line->sum != ORTC_F32) continue; /* sums of f32 are turned */
            char name[96];
            snprintf(name, sizeof name, "product on %s: %s", line->name, parts[part]);
            if (!tally_begins(t, name, !(line->isa & ~isa_bits))) continue;
            rng r = {t->seed * 31 + (uint64_t)part};
            int bad = 0;
            switch (part) {
            case 0: bad = random_shapes(t, line, &r, pools, 0, 0, 40); break;
            case 1: bad = random_shapes(t, line, &r, pools, 0, 1, 30); break;
            case 2: bad = random_shapes(t, line, &r, pools, ORTC_PRODUCT_PACKED_B, 1, 30); break;
            case 3: bad = random_shapes(t, line, &r, pools, ORTC_PRODUCT_PACKED_A, 1, 30); break;
            case 4:
                bad = random_shapes(t, line, &r, pools, ORTC_PRODUCT_CUSTOM_B | ORTC_PRODUCT_PACKED_A, 1, 30);
                break;
            case 5: bad = chosen_shapes(t, line, &r, pools); break;
            case 6:
                bad = random_shapes(t, line, &r, pools, ORTC_PRODUCT_TRANS_C | ORTC_PRODUCT_PACKED_B, 1, 20);
                bad += random_shapes(t, line, &r, pools,
                                     ORTC_PRODUCT_TRANS_C | ORTC_PRODUCT_PACKED_B | ORTC_PRODUCT_CUSTOM_A, 1,
                                     20);
                bad += random_shapes(t, line, &r, pools,
                                     ORTC_PRODUCT_TRANS_C | ORTC_PRODUCT_PACKED_B | ORTC_PRODUCT_CUSTOM_A, 0,
                                     20);
                break;
            case 7: bad = overflows(line); break;
            default: bad = large_constants(line, &r, pools); break;
            }
            tally_result(t, name, bad);
        }
    }
    for (int i = 0; i < 4; i++) pool_close(pools[i]);
}
