/* tests/gpu/choice.c: which kernel kernels/gemm/cuda_gemm.c takes for a product on a Hopper GPU, where there
 * is none: the choice is arithmetic, and what it launches is a stub that says what it was given.
 *
 * The table holds shapes whose kernels were measured beside all others (tests/gpu/tiles.cu, `tiles time`;
 * docs/performance.md has the times). A change of the model's numbers that moves one is seen here, and wants
 * a new measurement. Random shapes are held against what each kernel asks for.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/gemm/cuda_gemm.h"
#include "ortc/op.h"

enum { PROCESSORS = 132 };
#define K(name) ORTC_CU_GEMM_##name

/* ---- What would be launched ---------------------------------------------------------------------------- */

static int32_t launched;
static int launched_count;
static const char *launcher;

#define STUB(NAME) \
    int ortc_cu_gemm_##NAME(const ortc_cu_gemm *g, void *queue) \
    { \
        (void)queue; \
        launched = g->kernel, launched_count = 1, launcher = #NAME; \
        return 0; \
    }
STUB(f16_nn)
STUB(f16_nt)
STUB(bf16_nn)
STUB(bf16_nt)
STUB(f32)
STUB(vector)
STUB(few)
STUB(split_few)

int ortc_cu_gemm_wgmma(const ortc_cu_gemm *g, int count, void *queue)
{
    (void)queue;
    launched = g->kernel, launched_count = count, launcher = "wgmma";
    return 0;
}

/* ---- Products ------------------------------------------------------------------------------------------ */

static int passed, failed;
static void check(int good, const char *what, const ortc_cu_gemm *g)
{
    if (good) {
        passed++;
        return;
    }
    failed++;
    printf("FAILED: %s: %lld x %lld x %lld, type %d, a %lld,%lld b %lld,%lld: kernel %d, %d parts\n", what,
           (long long)g->m, (long long)g->n, (long long)g->k, g->type, (long long)g->a_row,
           (long long)g->a_col, (long long)g->b_row, (long long)g->b_col, g->kernel, g->parts);
}

static uint64_t state = 1;
static int64_t draw(int64_t n) /* 0 .. n - 1 */
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(state >> 33) % n;
}

static ortc_cu_gemm product(int32_t type, int64_t m, int64_t n, int64_t k)
{
    return (ortc_cu_gemm){.m = m,
                          .n = n,
                          .k = k,
                          .a_row = k,
                          .a_col = 1,
                          .b_row = n,
                          .b_col = 1,
                          .y_row = n,
                          .alpha = 1,
                          .beta = 1,
                          .type = type,
                          .out_type = type,
                          .b_constant = 1};
}

/* ---- Shapes that were measured ------------------------------------------------------------------------- */

static const struct {
    int32_t type, m, n, k, kernel, parts;
} measured[] = {
    {ORTC_F16, 8192, 8192, 8192, K(WGMMA_128X192), 1},
    {ORTC_F16, 4096, 4096, 4096, K(WGMMA_128X128_TURNS), 1},
    {ORTC_F16, 2048, 2048, 2048, K(WGMMA_128X256), 1},
    {ORTC_F16, 4096, 3072, 768, K(WGMMA_128X128_TURNS), 1},
    {ORTC_F16, 4096, 768, 3072, K(WGMMA_128X192), 1},
    {ORTC_F16, 4096, 768, 768, K(WGMMA_128X192), 1},
    {ORTC_F16, 1024, 1024, 1024, K(ONCE_64X128), 1},
    {ORTC_F16, 512, 3072, 768, K(ONCE_64X192), 1},
    {ORTC_F16, 512, 768, 768, K(ONCE_64X64), 1},
    {ORTC_F16, 512, 768, 3072, K(ONCE_64X64), 1},
    {ORTC_F16, 128, 768, 768, K(ONCE_64X64), 1},
    {ORTC_F16, 128, 2304, 768, K(ONCE_64X64), 1},
    {ORTC_F16, 128, 3072, 768, K(ONCE_64X64), 1},
    {ORTC_F16, 128, 768, 3072, K(WGMMA_64X64_PARTS), 4},
    {ORTC_F16, 64, 4096, 4096, K(WGMMA_64X64_PARTS), 2},
    {ORTC_F16, 32, 4096, 4096, K(WGMMA_32X64_PARTS), 3},
    {ORTC_F16, 16, 4096, 4096, K(WGMMA_16X64_PARTS), 3},
    {ORTC_F16, 1, 4096, 4096, K(WGMMA_16X64_PARTS), 3},
    {ORTC_F16, 8, 11008, 4096, K(WGMMA_16X64_PARTS), 1},
    {ORTC_F16, 64, 11008, 4096, K(WGMMA_64X192_PARTS), 2},
    {ORTC_F16, 384, 1024, 1024, K(ONCE_64X64), 1},
    {ORTC_F16, 256, 4096, 1024, K(ONCE_64X128), 1},
    {ORTC_BF16, 1024, 1024, 1024, K(ONCE_64X128), 1},
    {ORTC_F32, 4096, 4096, 4096, K(SPLIT_128X128), 1},
    {ORTC_F32, 2048, 2048, 2048, K(SPLIT_128X128), 1},
    {ORTC_F32, 4096, 3072, 768, K(SPLIT_128X128), 1},
    {ORTC_F32, 1024, 1024, 1024, K(SPLIT_128X128), 2},
    {ORTC_F32, 256, 4096, 4096, K(SPLIT_128X128), 2},
    {ORTC_F32, 512, 768, 3072, K(SPLIT_128X128), 4},
    {ORTC_F32, 512, 768, 768, K(SPLIT_64X128), 2},
    {ORTC_F32, 128, 4096, 4096, K(SPLIT_64X128), 2},
    {ORTC_F32, 128, 3072, 768, K(SPLIT_64X128), 2},
    {ORTC_F32, 128, 768, 3072, K(SPLIT_64X128), 8},
    {ORTC_F32, 128, 768, 768, K(SPLIT_64X128), 6},
    {ORTC_F32, 64, 32000, 4096, K(SPLIT_64X128), 1},
    {ORTC_F32, 64, 11008, 4096, K(SPLIT_64X128), 4},
    {ORTC_F32, 64, 4096, 4096, K(SPLIT_64X128), 3},
    {ORTC_F32, 48, 3072, 768, K(SPLIT_64X128), 4},
    {ORTC_F32, 32, 768, 768, K(FEW_16X64), 4},
    {ORTC_F32, 32, 4096, 4096, K(FEW_16X64), 1},
    {ORTC_F32, 16, 4096, 4096, K(FEW_16X64), 2},
    {ORTC_F32, 300, 300, 300, K(FEW_16X64), 1},
    {ORTC_F32, 256, 256, 256, K(FEW_16X64), 1},
    {ORTC_F32, 1024, 64, 64, K(FEW_16X64), 1},
    {ORTC_F32, 400, 400, 64, K(SPLIT_64X128), 1},
    {ORTC_F32, 1000, 1000, 128, K(SPLIT_64X128), 1},
    {ORTC_F32, 1, 4096, 4096, K(VECTOR), 1},
};

static void test_measured(void)
{
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        ortc_cu_gemm g = product(measured[i].type, measured[i].m, measured[i].n, measured[i].k);
        ortc_cu_gemm_plan(&g, PROCESSORS, 90);
        check(g.kernel == measured[i].kernel && g.parts == measured[i].parts, "not what was measured", &g);
    }
}

/* ---- Any shape ----------------------------------------------------------------------------------------- */

/* Whether the kernel can do it: as the launchers and the kernels assume. */
static const char *wrong_of(const ortc_cu_gemm *g, int hopper)
{
    const int f32 = g->type == ORTC_F32, transposed = g->a_col != 1 && g->m > 1;
    if (g->kernel < K(NOTHING) || g->kernel >= K(WGMMA_END)) return "no kernel";
    if ((g->kernel == K(NOTHING)) != (g->m == 0 || g->n == 0)) return "nothing, or something, to compute";
    if (g->kernel > K(VECTOR) && !hopper) return "Hopper's instructions elsewhere";
    if (g->kernel > K(VECTOR) && g->k == 0) return "copies of nothing";
    switch (g->kernel) {
    case K(NOTHING): break;
    case K(MMA_128X128):
    case K(MMA_128X64):
    case K(MMA_64X64):
    case K(MMA_64X32):
    case K(MMA_ANY):
        if (f32) return "f32 by half precision";
        break;
    case K(FFMA_128X128):
    case K(FFMA_64X64):
        if (!f32) return "16 bits by a kernel of f32";
        break;
    case K(VECTOR):
        if (g->m > 8) return "too many rows for vectors";
        break;
    case K(SPLIT_128X128):
    case K(FEW_16X64):
    case K(SPLIT_64X128):
        if (!f32) return "16 bits by a kernel of f32";
        if ((g->kernel == K(FEW_16X64) || g->kernel == K(SPLIT_64X128)) && g->a_col != 1)
            return "few rows read A along K";
        break;
    default:
        if (f32) return "f32 by half precision";
        if (transposed && g->kernel != K(WGMMA_64X64) && g->kernel != K(WGMMA_128X128_TURNS))
            return "a transposed A";
        if (g->kernel == K(WGMMA_32X64_PARTS) && g->m > 32) return "more than 32 rows";
        if (g->kernel == K(WGMMA_16X64_PARTS) && g->m > 16) return "more than 16 rows";
    }
    if (g->parts < 1 || g->parts > 8) return "a cluster has at most 8 blocks";
    if (g->parts > 1 && (g->kernel < K(WGMMA_128X128_PARTS) || g->kernel >= K(ONCE_64X64)))
        return "K of this kernel is one part";
    if (g->kernel >= K(ONCE_64X64) && g->rank) return "a tile for each block: no batch";
    const int piece = g->kernel == K(FEW_16X64) ? 16 : g->type == ORTC_F32 ? 32 : 64;
    if (g->parts > 1 && g->parts > (g->k + piece - 1) / piece) return "a part of K without a piece";
    return NULL;
}

static void test_any(void)
{
    for (int i = 0; i < 20000; i++) {
        static const int32_t types[] = {ORTC_F16, ORTC_BF16, ORTC_F32};
        const int64_t most = draw(2) ? 200 : 20000;
        const int processors = draw(4) ? PROCESSORS : (int)draw(200), capability = draw(4) ? 90 : 80;
        const int aligned = draw(3) != 0;
        ortc_cu_gemm g = product(types[draw(3)], draw(most), draw(most), draw(most)), again;
        if (aligned) g.m = (g.m + 7) / 8 * 8, g.n = (g.n + 7) / 8 * 8, g.k = (g.k + 7) / 8 * 8;
        if (draw(4) == 0) g.m = draw(70);
        g.a_row = g.k, g.b_row = g.y_row = g.n;
        if (draw(4) == 0) g.a_row = 1, g.a_col = g.m;
        if (draw(2)) g.b_row = 1, g.b_col = g.k;
        g.act = (int32_t)draw(ORTC_CU_ACT_END);
        if (draw(4) == 0) {
            g.rank = 1, g.dims[0] = 1 + draw(40);
            g.a_step[0] = g.m * g.k, g.b_step[0] = draw(2) * g.k * g.n, g.y_step[0] = g.m * g.n;
        }
        again = g;
        ortc_cu_gemm_plan(&g, processors, capability);
        const char *wrong = wrong_of(&g, capability == 90);
        check(!wrong, wrong ? wrong : "", &g);
        ortc_cu_gemm_plan(&again, processors, capability);
        check(again.kernel == g.kernel && again.parts == g.parts, "another choice for the same shape", &g);
    }
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

static void launch(ortc_cu_gemm *g, int off, int32_t kernel, const char *by, const char *what)
{
    static _Alignas(16) char memory[64];
    ortc_cu_gemm_plan(g, PROCESSORS, 90);
    g->a = memory, g->b = memory + off, g->y = memory;
    launcher = "";
    const int error = ortc_cu_gemm_run(g, NULL);
    check(!error && !strcmp(launcher, by) && (kernel < 0 || launched == kernel), what, g);
}

/* Matrices that do not begin at 16 bytes go to kernels that take any. */
static void test_addresses(void)
{
    for (int32_t type = 0; type < 2; type++)
        for (int nt = 0; nt < 2; nt++) {
            static const char *const any[2][2] = {{"f16_nn", "f16_nt"}, {"bf16_nn", "bf16_nt"}};
            ortc_cu_gemm g = product(type ? ORTC_BF16 : ORTC_F16, 256, 512, 512);
            if (nt) g.b_row = 1, g.b_col = g.k;
            launch(&g, 0, -1, "wgmma", "16 bits, aligned");
            launch(&g, 2, K(MMA_ANY), any[type][nt], "16 bits, not aligned");
        }
    ortc_cu_gemm large = product(ORTC_F32, 1024, 1024, 1024), few = product(ORTC_F32, 16, 4096, 4096),
                 rows = product(ORTC_F32, 64, 4096, 4096), nothing = product(ORTC_F16, 0, 8, 8);
    launch(&large, 0, K(SPLIT_128X128), "wgmma", "f32, aligned");
    launch(&large, 4, K(FFMA_128X128), "f32", "f32, not aligned");
    launch(&few, 0, K(FEW_16X64), "few", "few rows of f32, aligned");
    launch(&few, 4, K(FFMA_64X64), "f32", "few rows of f32, not aligned");
    launch(&rows, 0, K(SPLIT_64X128), "split_few", "64 rows of f32, aligned");
    launch(&rows, 4, K(FFMA_64X64), "f32", "64 rows of f32, not aligned");
    launch(&nothing, 0, -1, "", "nothing to compute");
}

/* Queries, keys and values of BERT-base; and what has to go alone. */
static void test_together(void)
{
    static _Alignas(16) char memory[64];
    ortc_cu_gemm g[3];
    for (int i = 0; i < 3; i++) {
        g[i] = product(ORTC_F16, 128, 768, 768);
        ortc_cu_gemm_plan(&g[i], PROCESSORS, 90);
        g[i].a = g[i].b = memory, g[i].y = memory;
    }
    const int32_t kernel = ortc_cu_gemm_plan_together(g, 3, 90);
    check(kernel == K(WGMMA_64X64_PARTS), "side by side: not what was measured", g);
    /* on an H100 45.9 us, and 70.1 by tiles of 192 columns: of each product the last one is not full */
    ortc_cu_gemm heads[3];
    for (int i = 0; i < 3; i++) {
        heads[i] = product(ORTC_F16, 512, i ? 1024 : 4096, 4096);
        ortc_cu_gemm_plan(&heads[i], PROCESSORS, 90);
    }
    const int32_t wide = ortc_cu_gemm_plan_together(heads, 3, 90);
    check(wide == K(WGMMA_128X256), "side by side, of several widths: not what was measured", heads);
    for (int i = 0; i < 3; i++) { /* 28.9 us on an H200, 33.4 by tiles of 128 columns */
        heads[i] = product(ORTC_F16, 8, 4096, 4096);
        ortc_cu_gemm_plan(&heads[i], PROCESSORS, 90);
    }
    const int32_t rows = ortc_cu_gemm_plan_together(heads, 3, 90);
    check(rows == K(WGMMA_64X192), "few rows side by side: not what was measured", heads);
    check(ortc_cu_gemm_plan_together(g, 3, 80) == K(NOTHING), "side by side on another device", g);
    check(ortc_cu_gemm_plan_together(g, 1, 90) == K(NOTHING), "one alone side by side", g);
    check(!ortc_cu_gemm_run_together(g, 3, kernel, NULL) && launched_count == 3 && launched == kernel,
          "side by side: one launch", g);
    g[1].b = memory + 2;
    check(!ortc_cu_gemm_run_together(g, 3, kernel, NULL) && launched_count == 1,
          "side by side, not aligned: one by one", g);
    for (int what = 0; what < 5; what++) {
        ortc_cu_gemm other[3];
        memcpy(other, g, sizeof other);
        switch (what) {
        case 0: other[1].k = 512; break;
        case 1: other[2].act = ORTC_CU_ACT_RELU; break;
        case 2: other[2].n = 770; break;
        case 3: other[1].b_row = 1, other[1].b_col = 768; break;
        default: other[1].type = ORTC_BF16; break;
        }
        check(ortc_cu_gemm_plan_together(other, 3, 90) == K(NOTHING), "side by side, but they differ", other);
    }
}

int main(void)
{
    test_measured();
    test_any();
    test_addresses();
    test_together();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
