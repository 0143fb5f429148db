/* kernels/gemm/gemm_once.cu: small products of f16 or bf16 matrices, whose tiles are all there at once, by
 * Hopper's tensor cores and copy engine (sm_90a only): gemm_wgmma.cuh's tiles of one warpgroup.
 *
 * What is small is bound by what comes before the first piece and after the last: a kernel that knows of
 * one tile, no batch, no parts of K and no other product has less of both (0.2 to 0.6 us of 4 to 9). A piece
 * takes what it takes to come, some 64 bytes a clock; blocks that share pieces in clusters (multicast) have
 * them no sooner.
 */
#include "ortc/types.h"

#include "kernels/gemm/gemm_wgmma.cuh"

namespace ortc_gemm {

/* columns: of tiles. pieces: of K; so many of B, `ahead`, are asked for before the kernel
 * before has ended. */
template <class S, typename T, bool B_MN>
__global__ void __launch_bounds__(S::threads, 1)
    one_tile(const __grid_constant__ ortc_cu_gemm g, const __grid_constant__ Maps<1> maps, int columns,
             int pieces, int ahead, bool vec, bool copied)
{
#ifdef ORTC_HOPPER
    extern __shared__ char shared_once[];
    __shared__ __align__(8) uint64_t barriers[2 * S::STAGES];
    const uint32_t begun = (uint32_t)__cvta_generic_to_shared(shared_once),
                   ring = (begun + 1023) / 1024 * 1024;
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers), empty = full + S::STAGES * 8;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const Spot s = spot_of(g, columns, (int)blockIdx.x, S::tile_m, S::N);

    if (threadIdx.x == 128) {
        for (int i = 0; i < S::STAGES; i++) barrier_init(full + i * 8, 1);
        barriers_made();
    } else if (lane == 0 && warp < 4) {
        for (int i = warp; i < S::STAGES; i += 4) barrier_init(empty + i * 8, 4);
        barriers_made();
    } else if (threadIdx.x == 33) {
        map_prefetch(&maps.a);
        map_prefetch(maps.b);
        if (copied) map_prefetch(maps.y);
    }
    __syncthreads();
    next_may_start();

    if (warp == 4) { /* one thread asks */
        if (lane > 0) return;
        auto load_a = [&](int k, int at) {
            tile_load(ring + at * S::stage, &maps.a, full + at * 8, k * 64, s.row);
        };
        auto load_b = [&](int k, int at) {
            const uint32_t to = ring + at * S::stage + S::a_bytes;
#pragma unroll
            for (int i = 0; i < (B_MN ? S::N / 64 : 1); i++)
                tile_load(to + i * SLAB, maps.b, full + at * 8, B_MN ? s.col + i * 64 : k * 64,
                          B_MN ? k * 64 : s.col);
        };
        const int first = ahead < pieces ? ahead : pieces;
        for (int k = 0; k < first; k++) {
            barrier_expect(full + k * 8, S::stage);
            load_b(k, k);
        }
        previous_wait();
        for (int k = 0; k < first; k++) load_a(k, k);
        int at = first % S::STAGES, parity = first < S::STAGES;
        for (int k = first; k < pieces; k++) {
            barrier_wait(empty + at * 8, parity);
            barrier_expect(full + at * 8, S::stage);
            load_a(k, at);
            load_b(k, at);
            if (++at == S::STAGES) {
                at = 0;
                parity ^= 1;
            }
        }
        return;
    }

    const int buffers = S::begin + warp * S::buffers * S::buffer; /* from the ring on */
    Copied<S, T> copies = {g, ring + buffers};
    copies.map = maps.y, copies.n = (int)g.n, copies.bias = (const T *)g.bias;
    touch<S>(g, g.bias, (int)g.n, s.col, vec, copied);
    previous_wait();
    const Tile t = tile_at(g, s);
    const int own_row = s.row + warp * 16;
    float d[S::N / 2];
#pragma unroll
    for (int e = 0; e < S::N / 2; e++) d[e] = 0;
    if (copied) copies.first(t, own_row, s.col, d);
    int at = 0, parity = 0, last = 0;
    auto multiply_piece = [&]() {
        barrier_wait(full + at * 8, parity);
        const uint64_t a = operand(ring + at * S::stage, false),
                       b = operand(ring + at * S::stage + S::a_bytes, B_MN);
        settle(d);
        products_begin();
#pragma unroll
        for (int part = 0; part < 4; part++)
            ortc_hopper::multiply<T, 0, B_MN>(d, a + part * next_16(false), b + part * next_16(B_MN), 1);
        products_commit();
        settle(d);
        last = at;
        if (++at == S::STAGES) {
            at = 0;
            parity ^= 1;
        }
    };
    multiply_piece();
#pragma unroll 1
    for (int k = 1; k < pieces; k++) {
        const int before = last;
        multiply_piece();
        products_wait<1>();
        if (lane == 0) barrier_arrive(empty + before * 8);
    }
    products_wait<0>();
    settle(d);
    if (__builtin_expect(!copied, 0)) {
        float *const sums = (float *)(void *)(shared_once + (ring - begun) + buffers);
        store_warp<S, T>(g, t, own_row, s.col, d, sums, vec, [](float(&)[8], int, int) {});
    } else {
        warps_sync(1, 128); /* all that was to come has been read: results leave from where A was */
        copies.room = ring + warp * S::stage;
        if (own_row < (int)g.m) copies.store(t, s, own_row, s.col, d);
    }
    if (lane == 0) tile_stores_read<0>();
#endif
}

template <class S, typename T, bool B_MN> static int launch_once(const ortc_cu_gemm &g, void *queue)
{
    const auto kernel = one_tile<S, T, B_MN>;
    const bool vec = vectors_fit(g), copied = vec && !g.c && g.out_type == g.type && g.n % 8 == 0 &&
                                              (g.alpha == 1.0f || (!g.bias && !g.residual));
    const int64_t blocks = tiles_of(g, S::tile_m, S::N);
    Maps<1> maps = {};
    ortc_cu_gemm result = g; /* as map_of takes one: N along its K */
    result.k = g.n;
    if (g.rank || (g.a_col != 1 && g.m > 1) || blocks > INT32_MAX ||
        !map_of(&maps.a, g, g.a, g.m, g.a_row, 1, g.a_step, false, S::a_rows) ||
        !map_of(maps.b, g, g.b, g.n, g.b_col, g.b_row, g.b_step, B_MN, B_MN ? 64 : S::N) ||
        (copied && !map_of(maps.y, result, g.y, g.m, g.y_row, 1, g.y_step, false, 16)))
        return cudaErrorInvalidValue;
    const int ahead = !g.b_constant ? 0 : blocks * 2 <= g.processors ? S::STAGES : S::STAGES / 2;
    return launch_blocks(kernel, dim3((unsigned)blocks), 1, S::threads, S::shared, queue, g, maps,
                         (int)((g.n + S::N - 1) / S::N), (int)((g.k + 63) / 64), ahead, vec, copied);
}

template <typename T, bool B_MN> static int launch_once(const ortc_cu_gemm &g, void *queue)
{
    switch (g.kernel) {
    case ORTC_CU_GEMM_ONCE_64X64: return launch_once<Deep64x64, T, B_MN>(g, queue);
    case ORTC_CU_GEMM_ONCE_64X128: return launch_once<Tile64x128, T, B_MN>(g, queue);
    case ORTC_CU_GEMM_ONCE_64X192: return launch_once<Tile64x192, T, B_MN>(g, queue);
    default: return cudaErrorInvalidValue;
    }
}

} // namespace ortc_gemm

extern "C" int ortc_cu_gemm_once(const ortc_cu_gemm *g, void *queue)
{
    using namespace ortc_gemm;
    if (g->type == ORTC_F16)
        return (g->b_col == 1 ? launch_once<__half, true> : launch_once<__half, false>)(*g, queue);
    return (g->b_col == 1 ? launch_once<__nv_bfloat16, true> : launch_once<__nv_bfloat16, false>)(*g, queue);
}
