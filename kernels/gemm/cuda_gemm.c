/* kernels/gemm/cuda_gemm.c: the choice of a GEMM kernel on a GPU, by extents while planning, by addresses at
 * a launch. */
#include "kernels/gemm/cuda_gemm.h"

#include "ortc/types.h"

/* Kernels by tile, with the share of its best rate that a multiprocessor reaches on a large product: the
 * larger the tile, the less is read for each multiplication. Estimates until measured
 * (tests/bench/bench_gemm_cuda.py). */
static const struct tile {
    int32_t kernel, m, n;
    double rate;
} mma_tiles[] = {{ORTC_CU_GEMM_MMA_128X128, 128, 128, 1.0},
                 {ORTC_CU_GEMM_MMA_128X64, 128, 64, 0.8},
                 {ORTC_CU_GEMM_MMA_64X64, 64, 64, 0.65},
                 {ORTC_CU_GEMM_MMA_64X32, 64, 32, 0.5}},
  ffma_tiles[] = {{ORTC_CU_GEMM_FFMA_128X128, 128, 128, 1.0}, {ORTC_CU_GEMM_FFMA_64X64, 64, 64, 0.7}};

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t batch_of(const ortc_cu_gemm *g)
{
    int64_t n = 1;
    for (int32_t d = 0; d < g->rank; d++) n *= g->dims[d];
    return n;
}

/* The tile with which the busiest multiprocessor is done first. */
static int32_t choose(const ortc_cu_gemm *g, const struct tile *tiles, int count, int processors)
{
    int32_t best = 0;
    double least = 0;
    for (int i = 0; i < count; i++) {
        const struct tile *t = &tiles[i];
        const int64_t blocks = ceil_div(g->m, t->m) * ceil_div(g->n, t->n) * batch_of(g);
        const double time = (double)ceil_div(blocks, processors > 0 ? processors : 1) * t->m * t->n / t->rate;
        if (!best || time < least) {
            best = t->kernel;
            least = time;
        }
    }
    return best;
}

/* Whether matrices with these steps can be read in aligned pieces of `width` elements, if the address can. */
static int pieces_fit(int64_t width, int64_t pitch, const int64_t *steps, int32_t rank)
{
    int64_t all = pitch;
    for (int32_t d = 0; d < rank; d++) all |= steps[d];
    return all % width == 0;
}

void ortc_cu_gemm_plan(ortc_cu_gemm *g, int processors)
{
    const int f32 = g->type == ORTC_F32, width = f32 ? 4 : 8, n_dense = g->b_col == 1;
    const int a_fits = g->a_col == 1 && pieces_fit(width, g->m > 1 ? g->a_row : 0, g->a_step, g->rank);
    const int64_t b_pitch = n_dense ? (g->k > 1 ? g->b_row : 0) : g->n > 1 ? g->b_col : 0;
    const int b_fits = (n_dense || g->b_row == 1) && pieces_fit(width, b_pitch, g->b_step, g->rank);
    if (g->m == 0 || g->n == 0 || batch_of(g) == 0)
        g->kernel = ORTC_CU_GEMM_NOTHING;
    else if (g->m <= 8 && b_fits && (n_dense ? g->n % width == 0 : a_fits && g->k % width == 0))
        g->kernel = ORTC_CU_GEMM_VECTOR;
    else if (f32)
        g->kernel = choose(g, ffma_tiles, sizeof ffma_tiles / sizeof *ffma_tiles, processors);
    else if (a_fits && b_fits)
        g->kernel = choose(g, mma_tiles, sizeof mma_tiles / sizeof *mma_tiles, processors);
    else
        g->kernel = ORTC_CU_GEMM_MMA_ANY;
}

int ortc_cu_gemm_run(const ortc_cu_gemm *plan, void *queue)
{
    ortc_cu_gemm g = *plan;
    const int aligned = ((uint64_t)(uintptr_t)g.a | (uint64_t)(uintptr_t)g.b) % 16 == 0,
              n_dense = g.b_col == 1;
    if (g.kernel == ORTC_CU_GEMM_NOTHING) return 0;
    if (g.kernel == ORTC_CU_GEMM_VECTOR) return ortc_cu_gemm_vector(&g, queue);
    if (!aligned && g.type != ORTC_F32)
        g.kernel = ORTC_CU_GEMM_MMA_ANY; /* adds in the same order: an address changes no bit */
    if (g.type == ORTC_F32) return ortc_cu_gemm_f32(&g, queue);
    if (g.type == ORTC_F16) return n_dense ? ortc_cu_gemm_f16_nn(&g, queue) : ortc_cu_gemm_f16_nt(&g, queue);
    return n_dense ? ortc_cu_gemm_bf16_nn(&g, queue) : ortc_cu_gemm_bf16_nt(&g, queue);
}
