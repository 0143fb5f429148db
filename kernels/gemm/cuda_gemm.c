/* kernels/gemm/cuda_gemm.c: the choice of a GEMM kernel on a GPU, by extents while planning, by addresses at
 * a launch. */
#include "kernels/gemm/cuda_gemm.h"

#include <string.h>

#include "ortc/op.h"

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

/* Hopper's tiles (gemm_wgmma.cuh), and what a model of their time has in it. The numbers are a fit to the
 * times of all tiles on some 60 shapes on an H200, then of those that take K in parts on 248 (1 to 1024
 * rows), not what a datasheet says of the things they are named after (tests/gpu/tiles.cu prints what the
 * choice costs over the best tile: 1.1 % on average of these 248, 17 % at most). */
static const struct wgmma_tile {
    int32_t kernel, m, n, a_rows; /* a_rows: of A in a piece; 16, 32: for so few rows */
    int32_t blocks, stages;       /* on a multiprocessor at once; pieces underway */
    int32_t turns;                /* storing is hidden behind the next tile */
    int32_t parts;                /* of K, at most */
    int32_t together;             /* products of one A can stand side by side */
    double slower, more; /* than the tensor cores could; clocks of storing, besides the costs below */
} wgmma_tiles[] = {{ORTC_CU_GEMM_WGMMA_128X256, 128, 256, 128, 1, 4, 0, 1, 1, 1.28, 0},
                   {ORTC_CU_GEMM_WGMMA_128X192, 128, 192, 128, 1, 5, 0, 1, 1, 1.21, 1042},
                   {ORTC_CU_GEMM_WGMMA_128X128, 128, 128, 128, 1, 6, 0, 1, 0, 1.44, 73},
                   {ORTC_CU_GEMM_WGMMA_128X128_TURNS, 128, 128, 128, 1, 6, 1, 1, 1, 0.178, 5058},
                   {ORTC_CU_GEMM_WGMMA_64X192, 64, 192, 64, 1, 6, 0, 1, 1, 0.144, 1250},
                   {ORTC_CU_GEMM_WGMMA_64X128, 64, 128, 64, 1, 8, 0, 1, 1, 2.5, 636},
                   {ORTC_CU_GEMM_WGMMA_64X64, 64, 64, 64, 2, 6, 0, 1, 0, 0.413, 2000},
                   {ORTC_CU_GEMM_WGMMA_128X128_PARTS, 128, 128, 128, 1, 5, 0, 4, 0, 0.572, 3502},
                   {ORTC_CU_GEMM_WGMMA_64X192_PARTS, 64, 192, 64, 1, 5, 0, 8, 0, 2.02, 3595},
                   {ORTC_CU_GEMM_WGMMA_64X128_PARTS, 64, 128, 64, 1, 7, 0, 8, 0, 3.0, 500},
                   {ORTC_CU_GEMM_WGMMA_64X64_PARTS, 64, 64, 64, 1, 11, 0, 8, 1, 3.5, 800},
                   {ORTC_CU_GEMM_WGMMA_32X64_PARTS, 64, 64, 32, 2, 8, 0, 8, 0, 2.3, 700},
                   {ORTC_CU_GEMM_WGMMA_16X64_PARTS, 64, 64, 16, 2, 10, 0, 8, 0, 2.2, 700},
                   {ORTC_CU_GEMM_ONCE_64X64, 64, 64, 64, 1, 12, 0, 1, 0, 3.31, 0},
                   {ORTC_CU_GEMM_ONCE_64X128, 64, 128, 64, 1, 8, 0, 1, 0, 2.36, 560},
                   {ORTC_CU_GEMM_ONCE_64X192, 64, 192, 64, 1, 6, 0, 1, 0, 0.144, 570}};
static const struct wgmma_costs {
    double flops, copied;   /* a multiprocessor's, each clock: operations, bytes out of L2 */
    double memory, latency; /* the device's bytes each clock; clocks of a round of copies */
    /* clocks of a launch; of storing a tile, and an element of it, with an activation */
    double start, store, each, act;
    double part, part_each; /* what parts of K add to that */
    double laid;            /* and where they are neither two nor four (exchange_parts) */
    double idle;            /* what memory loses to idle multiprocessors */
} wgmma_costs = {4096, 942.4, 4632, 3702, 3.271, 708.4, 0.1322, 0.2, 2700, 0.383, 4000, 1.736};

/* The share of the multiprocessors that clusters of so many blocks have at once, measured. */
static const double at_once[] = {1, 1, 0.97, 0.9, 0.88, 0.8, 0.73, 0.73, 0.73};

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

/* Clocks that a product takes with a tile, so many of them beside each other, and K in so many parts: of the
 * waves of blocks, or of memory. beside: products side by side; with few rows they are all reading of B,
 * which comes slowly in pieces that are narrow, and hardly slower by half of the multiprocessors (fitted to
 * 28 of them: 0.7 % over the best on average, 8 % at most). */
static double wgmma_clocks(const ortc_cu_gemm *g, const struct wgmma_tile *t, double columns, int parts,
                           int beside)
{
    const struct wgmma_costs *c = &wgmma_costs;
    const int64_t clusters = (int64_t)(t->blocks * g->processors * at_once[parts] / parts),
                  places = (clusters > 0 ? clusters : 1) * parts;
    const double batch = (double)batch_of(g);
    const double blocks = (double)ceil_div(g->m, t->a_rows < t->m ? t->a_rows : t->m) * columns * batch *
                          parts;
    const double finish = g->act > ORTC_CU_ACT_LEAKY_RELU ? c->act : 0; /* what takes exponentials */
    const int64_t pieces = ceil_div(ceil_div(g->k, 64), parts),
                  waves = (int64_t)((blocks - 1) / (double)places) + 1;
    const double together = blocks > g->processors ? t->blocks : 1; /* on a multiprocessor */
    const double multiply = 2.0 * t->m * t->n * 64 / c->flops * t->slower * together,
                 copy = (t->a_rows + t->n) * 128.0 / c->copied * together;
    const double rounds = (double)ceil_div(pieces, t->stages) * c->latency,
                 store = c->store + t->more + (c->each + finish) * t->m * t->n;
    const double piece = multiply > copy ? multiply : copy,
                 body = (double)pieces * piece > rounds ? (double)pieces * piece : rounds;
    double clocks = c->start + (double)waves * body +
                    (t->turns ? store : (double)waves * store * (waves > 1 ? together : 1));
    if (parts > 1) clocks += c->part + c->part_each * t->m * t->n;
    if (parts > 1 && parts != 2 && parts != 4 && t->a_rows >= 64) clocks += c->laid;
    const double bytes = 2 * batch *
                         ((double)g->m * g->k * (g->m <= 64 ? 1 + columns * 0.02 : 1) + (double)g->n * g->k +
                          (double)g->m * g->n);
    const double idle = 1 - blocks / (1.4 * g->processors);
    const int reads = beside && g->m <= 64;
    const double narrow = reads && t->n < 192 ? 2 : 1, lost = reads ? c->idle / 2 : c->idle;
    const double memory = c->start + bytes / c->memory * narrow * (1 + lost * (idle > 0 ? idle : 0)) +
                          (parts > 1 ? c->part : 0);
    return clocks > memory ? clocks : memory;
}

/* The clocks of what is chosen, for g, or for `count` products side by side, which g is in all: their K is
 * one part, and each has tiles of its own. */
static double choose_wgmma(ortc_cu_gemm *g, const ortc_cu_gemm *products, int count)
{
    const int a_transposed = g->a_col != 1 && g->m > 1;
    double least = 0;
    g->kernel = 0;
    for (size_t i = 0; i < sizeof wgmma_tiles / sizeof *wgmma_tiles; i++) {
        const struct wgmma_tile *t = &wgmma_tiles[i];
        if ((t->a_rows < 64 && (g->m > t->a_rows || g->m <= t->a_rows - 16)) || t->together < (count > 0) ||
            (a_transposed && t->kernel != ORTC_CU_GEMM_WGMMA_64X64 &&
             t->kernel != ORTC_CU_GEMM_WGMMA_128X128_TURNS))
            continue;
        if (t->kernel >= ORTC_CU_GEMM_ONCE_64X64 &&
            (g->rank || ceil_div(g->m, t->m) * ceil_div(g->n, t->n) > g->processors))
            continue;
        double columns = count ? 0 : (double)ceil_div(g->n, t->n);
        for (int p = 0; p < count; p++) columns += (double)ceil_div(products[p].n, t->n);
        for (int parts = 1; parts <= t->parts && (parts == 1 || ceil_div(g->k, 64) >= 2 * parts); parts++) {
            if (parts == 5 || parts == 7 || (count && parts > 1)) continue;
            const double clocks = wgmma_clocks(g, t, columns, parts, count > 0);
            if (!g->kernel || clocks < least) {
                g->kernel = t->kernel;
                g->parts = parts;
                least = clocks;
            }
        }
    }
    return least;
}

/* Ways of f32 whose blocks take K in parts, a tile each; times in nanoseconds, measured as above. */
static const struct f32_tile {
    int32_t kernel, m, n, piece, k_least; /* of K; least K of a part */
    int64_t k_most;                       /* of a part: chains of sums longer than 1024 would lose too much */
    double start, each, round; /* all there is once; a piece; what a further round of blocks takes */
    double parts, part;        /* to meet: once, and for each part */
} f32_tiles[] = {{ORTC_CU_GEMM_SPLIT_128X128, 128, 128, 32, 128, INT32_MAX, 5200, 1200, 3500, 1500, 0},
                 {ORTC_CU_GEMM_SPLIT_64X128, 64, 128, 32, 128, INT32_MAX, 3900, 700, 4500, 0, 200},
                 {ORTC_CU_GEMM_FEW_16X64, 16, 64, 1, 64, 16384, 3500, 7.25, 3000, 2300, 0}};

/* The one that is done first, where that is sooner than by fused multiply-adds in larger tiles, each K of
 * which takes 49 ns for a tile of 64 x 64, 76 for two, and all else 3500. */
static int choose_f32(ortc_cu_gemm *g)
{
    const int64_t small = ceil_div(ceil_div(g->m, 64) * ceil_div(g->n, 64) * batch_of(g), g->processors);
    double least = 3500 + (double)g->k * ((double)(small / 2) * 76 + (double)(small % 2) * 49);
    int found = 0;
    for (size_t i = 0; i < sizeof f32_tiles / sizeof *f32_tiles; i++) {
        const struct f32_tile *t = &f32_tiles[i];
        const int64_t tiles = ceil_div(g->m, t->m) * ceil_div(g->n, t->n) * batch_of(g);
        if (t->m < 128 && g->a_col != 1) continue; /* small tiles read A along K */
        for (int parts = 1; parts <= 8 && (parts == 1 || g->k >= (int64_t)t->k_least * parts); parts++) {
            const int64_t places = (int64_t)(g->processors * at_once[parts] / parts);
            if (places == 0 || parts == 5 || parts == 7 || g->k > t->k_most * parts) continue;
            const double rounds = (double)ceil_div(tiles, places),
                         pieces = (double)ceil_div(ceil_div(g->k, t->piece), parts);
            const double time = t->start + rounds * pieces * t->each + (rounds - 1) * t->round +
                                (parts > 1 ? t->parts + t->part * parts : 0);
            if (time >= least) continue;
            least = time;
            g->kernel = t->kernel;
            g->parts = parts;
            found = 1;
        }
    }
    return found;
}

/* Whether matrices with these steps can be read in aligned pieces of `width` elements, if the address can. */
static int pieces_fit(int64_t width, int64_t pitch, const int64_t *steps, int32_t rank)
{
    int64_t all = pitch;
    for (int32_t d = 0; d < rank; d++) all |= steps[d];
    return all % width == 0;
}

int ortc_cu_has_wgmma(int capability)
{
    return capability == 90 && strstr(ORTC_CUDA_ARCHITECTURES, "90a") != NULL;
}

/* Whether the copy engine takes the matrices: rows of whole 16 bytes (addresses are checked at the launch),
 * extents of 32 bits. */
static int wgmma_fits(const ortc_cu_gemm *g)
{
    const int width = g->type == ORTC_F32 ? 4 : 8;
    const int64_t most = INT64_C(1) << 30;
    const int a_k_dense = g->a_col == 1 || g->m == 1, b_k_dense = g->b_col != 1;
    const int64_t a_pitch = a_k_dense ? (g->m > 1 ? g->a_row : 0) : g->k > 1 ? g->a_col : 0;
    const int64_t b_pitch = b_k_dense ? (g->n > 1 ? g->b_col : 0) : g->k > 1 ? g->b_row : 0;
    return g->rank <= 3 && g->k > 0 && g->m < most && g->n < most && g->k < most &&
           ceil_div(g->m, 16) * ceil_div(g->n, 64) < most / 8 / batch_of(g) &&
           (g->m == 1 ? g->a_col == 1 : a_k_dense || g->a_row == 1) && (!b_k_dense || g->b_row == 1) &&
           pieces_fit(width, a_pitch, g->a_step, g->rank) && pieces_fit(width, b_pitch, g->b_step, g->rank);
}

void ortc_cu_gemm_plan(ortc_cu_gemm *g, int processors, int capability)
{
    const int f32 = g->type == ORTC_F32, width = f32 ? 4 : 8, n_dense = g->b_col == 1;
    const int a_fits = g->a_col == 1 && pieces_fit(width, g->m > 1 ? g->a_row : 0, g->a_step, g->rank);
    const int64_t b_pitch = n_dense ? (g->k > 1 ? g->b_row : 0) : g->n > 1 ? g->b_col : 0;
    const int b_fits = (n_dense || g->b_row == 1) && pieces_fit(width, b_pitch, g->b_step, g->rank);
    const int nothing = g->m == 0 || g->n == 0 || batch_of(g) == 0,
              hopper = !nothing && ortc_cu_has_wgmma(capability) && wgmma_fits(g),
              most = f32 && hopper ? 4 : 8; /* rows of what goes by vectors */
    g->processors = processors > 0 ? processors : 1;
    g->parts = 1;
    if (nothing)
        g->kernel = ORTC_CU_GEMM_NOTHING;
    else if (!f32 && hopper)
        choose_wgmma(g, NULL, 0);
    else if (g->m <= most && b_fits && (n_dense ? g->n % width == 0 : a_fits && g->k % width == 0))
        g->kernel = ORTC_CU_GEMM_VECTOR;
    else if (f32) {
        if (!hopper || !choose_f32(g))
            g->kernel = choose(g, ffma_tiles, sizeof ffma_tiles / sizeof *ffma_tiles, processors);
    } else if (a_fits && b_fits)
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
    if (!aligned && g.type != ORTC_F32) g.kernel = ORTC_CU_GEMM_MMA_ANY;
    if (!aligned && g.kernel == ORTC_CU_GEMM_SPLIT_128X128) g.kernel = ORTC_CU_GEMM_FFMA_128X128;
    if (!aligned && (g.kernel == ORTC_CU_GEMM_FEW_16X64 || g.kernel == ORTC_CU_GEMM_SPLIT_64X128))
        g.kernel = ORTC_CU_GEMM_FFMA_64X64;
    if (g.kernel == ORTC_CU_GEMM_FEW_16X64) return ortc_cu_gemm_few(&g, queue);
    if (g.kernel == ORTC_CU_GEMM_SPLIT_64X128) return ortc_cu_gemm_split_few(&g, queue);
    if (g.kernel > ORTC_CU_GEMM_VECTOR) return ortc_cu_gemm_wgmma(&g, 1, queue);
    if (g.type == ORTC_F32) return ortc_cu_gemm_f32(&g, queue);
    if (g.type == ORTC_F16) return n_dense ? ortc_cu_gemm_f16_nn(&g, queue) : ortc_cu_gemm_f16_nt(&g, queue);
    return n_dense ? ortc_cu_gemm_bf16_nn(&g, queue) : ortc_cu_gemm_bf16_nt(&g, queue);
}

int32_t ortc_cu_gemm_plan_together(const ortc_cu_gemm *products, int count, int capability)
{
    const ortc_cu_gemm *g = products;
    ortc_cu_gemm all = *g;
    double alone = 0;
    if (count < 2 || count > ORTC_CU_GEMM_TOGETHER || g->type == ORTC_F32 || !ortc_cu_has_wgmma(capability))
        return ORTC_CU_GEMM_NOTHING;
    all.n = 0;
    for (int i = 0; i < count; i++) {
        const ortc_cu_gemm *p = &products[i];
        ortc_cu_gemm own = *p;
        if (p->kernel <= ORTC_CU_GEMM_VECTOR || p->rank || p->type != g->type || p->out_type != g->type ||
            p->m != g->m || p->k != g->k || (p->a_col != 1 && p->m > 1) || p->a_row != g->a_row ||
            p->a_col != g->a_col || (p->b_col == 1) != (g->b_col == 1) || p->n % 8 || p->y_row % 8 ||
            p->alpha != g->alpha || p->act != g->act || p->act_alpha != g->act_alpha ||
            p->act_beta != g->act_beta)
            return ORTC_CU_GEMM_NOTHING;
        all.n += p->n;
        all.b_constant &= p->b_constant;
        alone += choose_wgmma(&own, NULL, 0);
    }
    return wgmma_fits(&all) && choose_wgmma(&all, products, count) < alone ? all.kernel
                                                                           : ORTC_CU_GEMM_NOTHING;
}

int ortc_cu_gemm_run_together(const ortc_cu_gemm *products, int count, int32_t kernel, void *queue)
{
    int error = 0;
    uint64_t addresses = 0;
    for (int i = 0; i < count; i++) {
        const ortc_cu_gemm *p = &products[i];
        addresses |= (uint64_t)(uintptr_t)p->a | (uint64_t)(uintptr_t)p->b | (uint64_t)(uintptr_t)p->y |
                     (uint64_t)(uintptr_t)p->bias;
    }
    if (kernel != ORTC_CU_GEMM_NOTHING && addresses % 16 == 0) {
        ortc_cu_gemm all[ORTC_CU_GEMM_TOGETHER];
        memcpy(all, products, (size_t)count * sizeof *all);
        all[0].kernel = kernel;
        for (int i = 0; i < count; i++) all[0].b_constant &= products[i].b_constant;
        return ortc_cu_gemm_wgmma(all, count, queue);
    }
    for (int i = 0; i < count && !error; i++) error = ortc_cu_gemm_run(&products[i], queue);
    return error;
}
