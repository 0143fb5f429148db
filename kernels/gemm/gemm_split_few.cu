/* kernels/gemm/gemm_split_few.cu: products of f32 matrices of few rows by Hopper's tensor cores (sm_90a), at
 * the accuracy of f32: gemm_split.cu's arithmetic the other way round.
 *
 * Where A has few rows, B is nearly all there is to read, and to split. So B is what goes through registers:
 * its columns are the rows of wgmma's operand, 64 for each of two warpgroups, which read them as the copy
 * engine brings them, split them, and multiply them by A. A, 64 rows of it, is split by a third warpgroup
 * into planes in shared memory, three for each piece of K: four pieces are underway (`made`, `used`), seven
 * of both matrices (`full`, `empty`), which one thread asks for: those of a constant B before the kernel
 * before has ended.
 *
 * Sums so lie transposed. They are laid out in shared memory, where those of the parts of K that blocks of a
 * cluster have meet as in wgmma_store.cuh. A sum that is NaN is taken again as in gemm_split.cu.
 *
 * A piece takes 690 ns (1,340 clocks, of which tensor cores work 768), however few blocks there are. Nothing
 * came of: two warpgroups that split A, products between which the next piece is split, taking turns at the
 * tensor cores (as long); two chains of sums (725 ns: 32 additions more). What made it 960 at first was
 * working out addresses and operands again for each piece.
 */
#include "kernels/gemm/launch_blocks.cuh"
#include "kernels/gemm/split.cuh"

namespace ortc_gemm {

struct SplitFew {
    static constexpr int tile_m = 64, N = 128, K = 32, STAGES = 7, MADE = 4;
    static constexpr int a_bytes = tile_m * K * 4, stage = a_bytes + N * K * 4, plane = tile_m * K * 2;
    static constexpr int split_pitch = N + 4; /* floats; lanes that lay out sums meet no bank twice */
    static constexpr int planes_at = STAGES * stage, shared = 1024 + planes_at + MADE * 3 * plane;
    static_assert(2 * tile_m * split_pitch * 4 <= planes_at, "parts of K meet where the ring was");
    static constexpr int multiply = 256, loads = multiply + 128, threads = loads + 128;
};

template <bool B_MN>
__global__ void __launch_bounds__(SplitFew::threads, 1)
    split_few(const __grid_constant__ ortc_cu_gemm g, const __grid_constant__ SplitMaps maps, int parts,
              bool vec)
{
#ifdef ORTC_HOPPER
    using S = SplitFew;
    extern __shared__ char shared_wgmma[];
    __shared__ __align__(8) uint64_t barriers[2 * S::STAGES + 2 * S::MADE + 1];
    const int skew = (1024 - (int)((uint32_t)__cvta_generic_to_shared(shared_wgmma) % 1024)) % 1024;
    char *const ring = shared_wgmma + skew;
    const uint32_t ring_at = (uint32_t)__cvta_generic_to_shared(ring),
                   full = (uint32_t)__cvta_generic_to_shared(barriers), empty = full + S::STAGES * 8,
                   made = empty + S::STAGES * 8, used = made + S::MADE * 8, parts_come = used + S::MADE * 8;
    const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const int part = (int)blockIdx.x % parts, all_pieces = (int)((g.k + S::K - 1) / S::K);
    const int k_begin = (int)((int64_t)all_pieces * part / parts),
              pieces = (int)((int64_t)all_pieces * (part + 1) / parts) - k_begin;
    const Spot s = spot_of(g, ((int)g.n + S::N - 1) / S::N, (int)blockIdx.x / parts, S::tile_m, S::N);
    auto load_a = [&](int i) {
        const int at = i % S::STAGES;
        load_split<false, S::tile_m>(ring_at + at * S::stage, &maps.a, full + at * 8, s.row,
                                     (k_begin + i) * S::K, g.rank, g.a_step, s.at);
    };
    auto load_b = [&](int i) {
        const int at = i % S::STAGES;
        load_split<B_MN, S::N>(ring_at + at * S::stage + S::a_bytes, &maps.b, full + at * 8, s.col,
                               (k_begin + i) * S::K, g.rank, g.b_step, s.at);
    };
    const int ahead = !g.b_constant ? 0 : pieces < S::STAGES ? pieces : S::STAGES;
    if (threadIdx.x == S::loads) {
        for (int i = 0; i < S::STAGES; i++) {
            barrier_init(full + i * 8, 1);
            barrier_init(empty + i * 8, 12);
        }
        for (int i = 0; i < S::MADE; i++) {
            barrier_init(made + i * 8, 4);
            barrier_init(used + i * 8, 8);
        }
        barrier_init(parts_come, 1);
        barriers_made();
        for (int i = 0; i < ahead; i++) {
            barrier_expect(full + i * 8, S::stage);
            load_b(i);
        }
    }
    __syncthreads();
    next_may_start();

    if (group == 3) {
        registers_less<48>();
        if (threadIdx.x == S::loads) {
            previous_wait();
            for (int i = 0; i < ahead; i++) load_a(i);
#pragma unroll 1
            for (int i = ahead; i < pieces; i++) {
                const int at = i % S::STAGES;
                if (i >= S::STAGES) barrier_wait(empty + at * 8, (i / S::STAGES - 1) % 2);
                barrier_expect(full + at * 8, S::stage);
                load_a(i);
                load_b(i);
            }
        }
        __syncwarp();
        meet_parts();
        return;
    }

    if (group == 2) { /* splits A */
        registers_less<96>();
#pragma unroll 1
        for (int i = 0; i < pieces; i++) {
            const int at = i % S::STAGES;
            const char *from = ring + at * S::stage;
            char *to = ring + S::planes_at + i % S::MADE * 3 * S::plane;
            uint4 p[2][3];
            barrier_wait(full + at * 8, i / S::STAGES % 2);
#pragma unroll
            for (int item = 0; item < 2; item++)
                split_eight<false>(from, item * 32 + warp * 8 + lane % 8, lane / 8 * 8, p[item]);
            barrier_wait(used + i % S::MADE * 8, i / S::MADE % 2 ^ 1);
#pragma unroll
            for (int item = 0; item < 2; item++)
#pragma unroll
                for (int e = 0; e < 3; e++)
                    *(uint4 *)(to + e * S::plane +
                               plane_at<false>(item * 32 + warp * 8 + lane % 8, lane / 8 * 8)) = p[item][e];
            tile_written();
            __syncwarp();
            if (lane == 0) {
                barrier_arrive(made + i % S::MADE * 8);
                barrier_arrive(empty + at * 8);
            }
        }
        meet_parts();
        return;
    }

    registers_more<184>();
    /* This warp's 16 columns of B in a piece are the rows of its operand. */
    const int column = group * 64 + warp * 16 + lane / 4;
    const uint32_t planes = planes_from<false>(ring_at + S::planes_at);
    int place[4], at = 0, parity = 0; /* of the next piece to take */
    split_places<B_MN>(column, place);
    auto take = [&](uint32_t(&b)[2][3][4]) {
        barrier_wait(full + at * 8, parity);
        split_operand<B_MN>(ring_at + S::a_bytes + at * S::stage, place, b);
        __syncwarp();
        if (lane == 0) barrier_arrive(empty + at * 8);
        if (++at == S::STAGES) at = 0, parity ^= 1;
    };
    uint32_t b[2][2][3][4]; /* this piece's, the next one's */
    float d[32], total[32];
#pragma unroll
    for (int e = 0; e < 32; e++) total[e] = 0.0f;
    auto multiply_piece = [&](int i, uint32_t(&now)[2][3][4], uint32_t(&next)[2][3][4]) {
        const int from = i % S::MADE;
        barrier_wait(made + from * 8, i / S::MADE % 2);
        multiply_split<false, S::plane>(d, now, planes + from * (3 * S::plane >> 4));
        if (i + 1 < pieces) take(next);
        products_wait<0>();
        settle(d);
        keep(now);
        __syncwarp();
        if (lane == 0) barrier_arrive(used + from * 8);
#pragma unroll
        for (int e = 0; e < 32; e++) total[e] += d[e];
    };
    if (pieces > 0) take(b[0]);
#pragma unroll 1
    for (int i = 0; i < pieces; i += 2) {
        multiply_piece(i, b[0], b[1]);
        if (i + 1 < pieces) multiply_piece(i + 1, b[1], b[0]);
    }
    const Tile t = tile_at(g, s);
    previous_wait();
    float *const sums = (float *)ring;
    const Band own = share_laid<S, S::multiply>(g, s.row, part, parts, sums, parts_come, [&](int) {
#pragma unroll
        for (int j = 0; j < 32; j++)
            sums[(j / 4 * 8 + lane % 4 * 2 + j % 2) * S::split_pitch + column + j / 2 % 2 * 8] = total[j];
    });
    each_of_band<S, S::multiply>(own, part, parts, sums, [&](float(&x)[8], int row, int col) {
        repair(g, t, x, s.row + row, s.col + col);
        finish<float, 8>(g, t, x, s.row + row, s.col + col, vec);
    });
    cluster_wait();
#endif
}

template <bool B_MN> static int launch_few(const ortc_cu_gemm &g, void *queue)
{
    using S = SplitFew;
    const int64_t blocks = tiles_of(g, S::tile_m, S::N) * g.parts;
    SplitMaps maps = {};
    if (blocks > INT32_MAX || (g.a_col != 1 && g.m > 1)) return cudaErrorInvalidValue;
    if (!map_of(&maps.a, g, g.a, g.m, g.a_row, g.a_col, g.a_step, false, S::tile_m) ||
        !map_of(&maps.b, g, g.b, g.n, g.b_col, g.b_row, g.b_step, B_MN, B_MN ? S::K : S::N))
        return cudaErrorInvalidValue;
    return launch_blocks(split_few<B_MN>, dim3((unsigned)blocks), g.parts, S::threads, S::shared, queue, g,
                         maps, (int)g.parts, vectors_fit(g));
}

} // namespace ortc_gemm

extern "C" int ortc_cu_gemm_split_few(const ortc_cu_gemm *g, void *queue)
{
    return g->b_col == 1 ? ortc_gemm::launch_few<true>(*g, queue) : ortc_gemm::launch_few<false>(*g, queue);
}
