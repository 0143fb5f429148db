/* The GEMM driver against sums in double: random shapes around tiles, chunks and grids, transposed, padded,
 * packed, custom and batched operands; then the same run on 1 to 4 threads, and with its tasks in reverse
 * order, must give the same bits. Workspace and scratch are guarded.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm/product.h"
#include "pool.h"
#include "tests.h"

#define SCRATCH ((size_t)16 << 20)

typedef struct problem {
    int64_t m, n, k, batch, lda, ldb, ldc, ldr;
    uint32_t flags;
    int tail; /* bits: 1 alpha, 2 bias_col, 4 bias_row, 8 residual, 16 beta, 32 clip, 64 leaky, 128 post */
    float *a, *b, *c, *res, *bias_col, *bias_row;
    size_t a_step, b_step, c_step, r_step; /* elements between matrices of the batch */
    const ortc_product_line *uk;
    float *packed_a, *packed_b;
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
    if (it->a && !p->packed_a) it->a += p->a_step * (size_t)i; /* a packed operand is shared by the batch */
    if (it->b && !p->packed_b) it->b += p->b_step * (size_t)i;
    if (it->residual) it->residual += p->r_step * (size_t)i;
    it->c += p->c_step * (size_t)i;
}

static float a_at(const problem *p, int64_t i, int64_t row, int64_t k)
{
    const float *a = p->a + (p->packed_a ? 0 : p->a_step * (size_t)i);
    return p->flags & ORTC_PRODUCT_TRANS_A ? a[k * p->lda + row] : a[row * p->lda + k];
}
static float b_at(const problem *p, int64_t i, int64_t k, int64_t col)
{
    const float *b = p->b + (p->packed_b ? 0 : p->b_step * (size_t)i);
    return p->flags & ORTC_PRODUCT_TRANS_B ? b[col * p->ldb + k] : b[k * p->ldb + col];
}

static void pack_custom(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc,
                        float *dst, size_t dw)
{
    const problem *p = arg;
    for (int64_t k = 0; k < kc; k++)
        for (size_t j = 0; j < dw; j++) {
            float v = 0;
            if ((int64_t)j < nc && p->flags & ORTC_PRODUCT_CUSTOM_A)
                v = a_at(p, index, n0 + (int64_t)j, k0 + k);
            if ((int64_t)j < nc && p->flags & ORTC_PRODUCT_CUSTOM_B)
                v = b_at(p, index, k0 + k, n0 + (int64_t)j);
            dst[(size_t)k * dw + j] = v;
        }
}

static void post_double(const void *arg, float *c, size_t ldc, size_t rows, size_t cols)
{
    (void)arg;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) c[i * ldc + j] *= 2;
}

static ortc_product_args make_args(const problem *p, float *c, void *ws)
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
    if (p->tail & 128) x.post = post_double;
    return x;
}

/* Where an element of C or of the residual lies. */
static size_t place(const problem *p, int64_t ld, int64_t row, int64_t col)
{
    return (size_t)(p->flags & ORTC_PRODUCT_TRANS_C ? col * ld + row : row * ld + col);
}

static double expected(const problem *p, const ortc_product_args *x, int64_t i, int64_t row, int64_t col,
                       double *bound)
{
    double v = 0, mag = 0;
    for (int64_t k = 0; k < p->k; k++) {
        const double t = (double)a_at(p, i, row, k) * b_at(p, i, k, col);
        v += t, mag += fabs(t);
    }
    v *= x->alpha, mag *= fabs(x->alpha);
    if (x->item.bias_col) v += p->bias_col[col], mag += fabs(p->bias_col[col]);
    if (x->item.bias_row) v += p->bias_row[row], mag += fabs(p->bias_row[row]);
    if (x->item.residual) {
        const double r = x->beta * p->res[p->r_step * (size_t)i + place(p, p->ldr, row, col)];
        v += r, mag += fabs(r);
    }
    if (x->act == ORTC_UK_ACT_CLIP) v = v < x->lo ? x->lo : v > x->hi ? x->hi : v;
    if (x->act == ORTC_UK_ACT_LEAKY) v = v < 0 ? v * x->lo : v;
    *bound = ((double)p->k + 8) * FLT_EPSILON * mag;
    if (x->post) v *= 2, *bound *= 2;
    return v;
}

static void describe(const problem *p, const ortc_product_plan *plan)
{
    printf("  %s %lldx%lldx%lld batch %lld flags %u tail %d how %d,%d dot %d swapped %d chunks %lld tasks "
           "%lldx%lld\n",
           p->uk->name, (long long)p->m, (long long)p->n, (long long)p->k, (long long)p->batch,
           (unsigned)p->flags, p->tail, plan->how_a, plan->how_b, plan->dot, plan->swapped,
           (long long)plan->chunks, (long long)plan->tasks_m, (long long)plan->tasks_n);
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
    p->a_step = (size_t)(ar * p->lda), p->b_step = (size_t)(br * p->ldb);
    if (p->flags & ORTC_PRODUCT_TRANS_C) p->ldc = p->ldr = p->m;
    const int64_t c_rows = p->flags & ORTC_PRODUCT_TRANS_C ? p->n : p->m;
    p->c_step = (size_t)(c_rows * p->ldc), p->r_step = (size_t)(c_rows * p->ldr);
    const size_t batch = p->batch > 0 ? (size_t)p->batch : 1; /* packed operands exist for a batch of 0 too */
    guard gs[6] = {guard_open(p->a_step * batch * 4, 1), guard_open(p->b_step * batch * 4, 1),
                   guard_open(p->r_step * batch * 4, 1), guard_open((size_t)p->n * 4, 1),
                   guard_open((size_t)p->m * 4, 1),      guard_open(p->c_step * batch * 4, 1)};
    for (int i = 0; i < 5; i++) rng_fill(r, (void *)gs[i].data, gs[i].bytes / 4);
    p->a = (void *)gs[0].data, p->b = (void *)gs[1].data, p->res = (void *)gs[2].data;
    p->bias_col = (void *)gs[3].data, p->bias_row = (void *)gs[4].data, p->c = (void *)gs[5].data;
    const size_t c_bytes = gs[5].bytes;
    memset(p->c, 0xff, c_bytes);

    ortc_product_plan plan;
    int bad = 0;
    if (ortc_product_plan_init(&plan, p->uk, p->m, p->n, p->k, p->batch, p->flags)) bad++;
    if (plan.scratch > SCRATCH) printf("  scratch %zu\n", plan.scratch), bad++;
    const ortc_product_threads one = pool_threads(pools[0]);
    guard pa =
        guard_open(p->flags & ORTC_PRODUCT_PACKED_A ? ortc_product_packed_a_bytes(p->uk, p->m, p->k) : 0, 1);
    guard pb =
        guard_open(p->flags & ORTC_PRODUCT_PACKED_B ? ortc_product_packed_b_bytes(p->uk, p->n, p->k) : 0, 1);
    p->packed_a = p->packed_b = NULL;
    if (p->flags & ORTC_PRODUCT_PACKED_A) {
        p->packed_a = (void *)pa.data;
        ortc_product_fill_a(p->uk, p->m, p->k, p->flags, p->a, p->lda, p->packed_a, &one);
    }
    if (p->flags & ORTC_PRODUCT_PACKED_B) {
        p->packed_b = (void *)pb.data;
        ortc_product_fill_b(p->uk, p->n, p->k, p->flags, p->b, p->ldb, p->packed_b, &one);
    }
    guard ws = guard_open(plan.workspace, 1);
    backwards bw = {guard_open(plan.scratch, 1)};
    const ortc_product_args x = make_args(p, p->c, ws.data);
    const ortc_product_threads back = {run_backwards, &bw};
    if (!bad) ortc_product_run(&plan, &x, &back);

    for (int64_t i = 0; i < p->batch && !bad; i++)
        for (int64_t row = 0; row < p->m; row++)
            for (int64_t col = 0; col < (p->flags & ORTC_PRODUCT_TRANS_C ? p->n : p->ldc); col++) {
                const float got = p->c[p->c_step * (size_t)i + place(p, p->ldc, row, col)];
                double bound = 0;
                const double want = col < p->n ? expected(p, &x, i, row, col, &bound) : 0;
                uint32_t untouched;
                memcpy(&untouched, &got, 4);
                if (col >= p->n ? untouched != UINT32_MAX : !(fabs((double)got - want) <= bound)) {
                    if (!bad)
                        printf("  [%lld,%lld,%lld] is %g, expected %g +- %g\n", (long long)i, (long long)row,
                               (long long)col, (double)got, want, bound);
                    bad++;
                }
            }
    float *again = malloc(c_bytes + 1);
    for (int threads = 1; threads <= 4 && !bad; threads++) {
        memset(again, 0xff, c_bytes);
        const ortc_product_args y = make_args(p, again, ws.data);
        const ortc_product_threads th = pool_threads(pools[threads - 1]);
        ortc_product_run(&plan, &y, &th);
        if (memcmp(again, p->c, c_bytes)) printf("  %d threads give other bits\n", threads), bad++;
    }
    free(again);
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

static int random_shapes(const ortc_product_line *uk, rng *r, pool *const pools[4], uint32_t kind,
                         int batched, int count)
{
    int bad = 0;
    for (int i = 0; i < count; i++) {
        problem p = {.uk = uk, .batch = batched ? rng_range(r, 0, 7) : 1, .tail = (int)(rng_next(r) & 255)};
        p.m = extent(r, uk->mr, 150), p.n = extent(r, uk->nr, 200), p.k = extent(r, 64, 200);
        if (rng_next(r) % 16 == 0) p.k = 0;
        if (rng_next(r) % 16 == 0) p.m = rng_next(r) % 2 ? 0 : p.m, p.n = rng_next(r) % 2 ? 0 : p.n;
        p.flags = (rng_next(r) & 3) | kind;
        bad += check(&p, r, pools);
    }
    return bad;
}

/* Shapes that reach particular paths: chunks of K, many row blocks, shared packing, rows of tasks, one row,
 * one column, large matrices of a batch. */
static int chosen_shapes(const ortc_product_line *uk, rng *r, pool *const pools[4])
{
    static const int64_t shapes[][4] = {{60, 70, 1537, 1}, {33, 40, 3000, 1},  {300, 64, 300, 1},
                                        {1500, 24, 40, 1}, {24, 1500, 40, 1},  {1, 300, 700, 1},
                                        {700, 1, 300, 1},  {2, 130, 2100, 1},  {8, 900, 300, 1},
                                        {1, 1, 5000, 1},   {1, 1, 1, 1},       {0, 5, 5, 1},
                                        {5, 5, 0, 1},      {220, 220, 220, 2}, {1, 64, 64, 40},
                                        {17, 1, 33, 9}};
    int bad = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (uint32_t flags = 0; flags < 32; flags++) {
            const uint32_t both = ORTC_PRODUCT_PACKED_B | ORTC_PRODUCT_CUSTOM_B;
            const uint32_t turned = ORTC_PRODUCT_TRANS_C | ORTC_PRODUCT_CUSTOM_A;
            if ((flags & both) == both || rng_next(r) % 2) continue;
            problem p = {.uk = uk,
                         .m = shapes[i][0],
                         .n = shapes[i][1],
                         .k = shapes[i][2],
                         .batch = shapes[i][3],
                         .flags = (flags & 28) == 8 && rng_next(r) % 2 ? flags | turned : flags,
                         .tail = (int)(rng_next(r) & 255)};
            bad += check(&p, r, pools);
        }
    return bad;
}

static int overflows(const ortc_product_line *uk)
{
    ortc_product_plan p;
    const int64_t huge = (int64_t)1 << 40;
    int bad = ortc_product_plan_init(&p, uk, huge, huge, huge, 1, ORTC_PRODUCT_TRANS_B) != -1;
    bad += ortc_product_plan_init(&p, uk, -1, 1, 1, 1, 0) != -1;
    bad += ortc_product_packed_b_bytes(uk, huge, huge) != 0;
    bad += ortc_product_packed_b_bytes(uk, INT64_MAX, 1) != 0;
    bad += ortc_product_packed_a_bytes(uk, INT64_MAX, INT64_MAX) != 0;
    bad += ortc_product_plan_init(&p, uk, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, 0) != -1;
    return bad;
}

void test_product(tally *t, uint32_t isa_bits)
{
    static const char *const parts[] = {"random shapes", "batches",       "packed B", "packed A",
                                        "custom B",      "chosen shapes", "turned C", "overflow"};
    pool *pools[4];
    for (int i = 0; i < 4; i++) pools[i] = pool_open(i + 1, SCRATCH);
    for (size_t u = 0; u < ortc_product_line_count; u++) {
        const ortc_product_line *uk = &ortc_product_lines[u];
        for (int part = 0; part < 8; part++) {
            char name[96];
            snprintf(name, sizeof name, "product on %s: %s", uk->name, parts[part]);
            if (!tally_wants(t, name)) continue;
            if (uk->isa & ~isa_bits) {
                tally_skip(t, name, "this machine, or ORTC_CPU, has not its instructions");
                continue;
            }
            rng r = {t->seed * 31 + (uint64_t)part};
            int bad = 0;
            switch (part) {
            case 0: bad = random_shapes(uk, &r, pools, 0, 0, 40); break;
            case 1: bad = random_shapes(uk, &r, pools, 0, 1, 30); break;
            case 2: bad = random_shapes(uk, &r, pools, ORTC_PRODUCT_PACKED_B, 1, 30); break;
            case 3: bad = random_shapes(uk, &r, pools, ORTC_PRODUCT_PACKED_A, 1, 30); break;
            case 4:
                bad = random_shapes(uk, &r, pools, ORTC_PRODUCT_CUSTOM_B | ORTC_PRODUCT_PACKED_A, 1, 30);
                break;
            case 5: bad = chosen_shapes(uk, &r, pools); break;
            case 6:
                bad = random_shapes(uk, &r, pools, ORTC_PRODUCT_TRANS_C | ORTC_PRODUCT_PACKED_B, 1, 20);
                bad += random_shapes(uk, &r, pools,
                                     ORTC_PRODUCT_TRANS_C | ORTC_PRODUCT_PACKED_B | ORTC_PRODUCT_CUSTOM_A, 1,
                                     20);
                bad += random_shapes(uk, &r, pools,
                                     ORTC_PRODUCT_TRANS_C | ORTC_PRODUCT_PACKED_B | ORTC_PRODUCT_CUSTOM_A, 0,
                                     20);
                break;
            default: bad = overflows(uk); break;
            }
            tally_result(t, name, bad);
        }
    }
    for (int i = 0; i < 4; i++) pool_close(pools[i]);
}
