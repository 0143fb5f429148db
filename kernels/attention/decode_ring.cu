/* kernels/attention/decode_ring.cu: attention of few queries (f16, bf16) over many keys, which the copy
 * engine brings: sm_90a.
 *
 * As in decode.cu, a cluster of blocks takes a sample and a key head with all its query rows, each block a
 * part of the keys. One thread asks for pieces of 64 keys and their values, as many ahead as the ring has
 * room for: memory is asked for far more than registers could hold. Four warps take a piece, 16 keys each,
 * the other four the next one; the ring has an even number of stages, so that each is always the same four's
 * (who else could wait for a piece before the last one in its place has come, which a barrier's parity
 * cannot tell apart). Both products are keys or values times columns, by tensor cores: scores are keys by
 * rows of queries, whose transpose is the second operand of values (dims by keys) times weights (keys by
 * rows).
 *
 * The same by multiply-adds, one row: 12.4 us for 32 heads of 128, 2048 keys; 11.6 so. From shared memory,
 * load words: a plain load of 16 bytes that become elements is made one of 16 single bytes.
 */
#include "kernels/attention/decode.cuh"
#include "kernels/attention/head_map.cuh"
#include "kernels/gemm/mma.cuh"

namespace {

using namespace ortc_attention;
using ortc_gemm::power_of_2;

constexpr int KEYS = 64, MOST_STAGES = 4;

struct Maps {
    CUtensorMap k, v;
};

#ifdef ORTC_HOPPER
template <typename T> __device__ __forceinline__ uint32_t rounded(float x, float y)
{
    const T pair[2] = {from_float<T>(x), from_float<T>(y)};
    uint32_t bits;
    memcpy(&bits, pair, sizeof bits);
    return bits;
}
/* An 8 x 8 matrix of 16-bit elements, of which a lane has two of row lane / 4. */
__device__ __forceinline__ uint32_t transposed(uint32_t x)
{
    uint32_t y;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(y) : "r"(x));
    return y;
}
#endif

template <typename T, int ROWS, int D>
__global__ void __launch_bounds__((WARPS + 1) * 32, 2)
    ring(const __grid_constant__ ortc_cu_flash f, const __grid_constant__ Maps maps, int stages, int parts)
{
#ifdef ORTC_HOPPER
    using R = Room<ROWS, D>;
    constexpr int slabs = D / 64, piece = slabs * SLAB, tiles = D / 16;
    constexpr int COLS = ROWS == 1 ? 1 : 2; /* of a lane: rows of queries */
    constexpr float log2_e = 1.44269504f;
    extern __shared__ __align__(16) char shared_ring[];
    __shared__ __align__(8) uint64_t come, handed[3 * MOST_STAGES];
    const uint32_t here = (uint32_t)__cvta_generic_to_shared(shared_ring),
                   begun = (here + 1023) / 1024 * 1024;
    float *const results = (float *)(shared_ring + (begun - here)), /* where the ring was */
        *const received = results + stages * 2 * piece / 4;
    const uint32_t full_k = (uint32_t)__cvta_generic_to_shared(handed), full_v = full_k + MOST_STAGES * 8,
                   empty = full_v + MOST_STAGES * 8;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, of = lane / 4, turn = lane % 4;
    if (threadIdx.x == WARPS * 32) {
        for (int i = 0; i < stages; i++) {
            barrier_init(full_k + i * 8, 1);
            barrier_init(full_v + i * 8, 1);
            barrier_init(empty + i * 8, WARPS / 2);
        }
        barriers_made();
        map_prefetch(&maps.k);
        map_prefetch(&maps.v);
    }
    const Place place = begin_block<ROWS, D>(f, parts, received, &come);
    const ortc_cu_rows &p = f.rows;
    const int b = place.b, kv = place.kv, rows = (int)(f.group * p.length);

    /* Which keys this lane's rows see, and which all rows do. */
    Row row[COLS];
    int begin = (int)p.total, end = 0;
#pragma unroll
    for (int c = 0; c < COLS; c++) {
        const int r = COLS == 1 ? 0 : turn * 2 + c;
        row[c] = {p.total, 0, 0};
        if (r < rows) row[c] = row_of(p, b, kv * (int)f.group + r / (int)p.length, r % (int)p.length);
        begin = (int)row[c].from < begin ? (int)row[c].from : begin;
        end = (int)row[c].to > end ? (int)row[c].to : end;
    }
    if (COLS > 1)
#pragma unroll
        for (int m = 1; m < 4; m *= 2) {
            begin = min(begin, __shfl_xor_sync(~0u, begin, m));
            end = max(end, __shfl_xor_sync(~0u, end, m));
        }
    const int all = end > begin ? (end - begin + KEYS - 1) / KEYS : 0, first = all * place.part / parts,
              limit = all * (place.part + 1) / parts;

    if (warp == WARPS) {
        if (lane == 0) {
            const int which[3] = {kv, b, 0};
            int at = 0, parity = 1;
            for (int i = first; i < limit; i++) {
                const int key = begin + i * KEYS;
                const uint32_t to = begun + at * 2 * piece;
                if (i - first >= stages) barrier_wait(empty + at * 8, parity);
                barrier_expect(full_k + at * 8, piece);
                for (int s = 0; s < slabs; s++)
                    tile_load(to + s * SLAB, &maps.k, full_k + at * 8, s * 64, key, which);
                barrier_expect(full_v + at * 8, piece);
                for (int s = 0; s < slabs; s++)
                    tile_load(to + piece + s * SLAB, &maps.v, full_v + at * 8, s * 64, key, which);
                if (++at == stages) at = 0, parity ^= 1;
            }
        }
        __syncwarp();
        __syncthreads();
    } else {
        uint32_t q[tiles][2]; /* of row `of`: dims 16 tile + 2 turn and on, and 8 behind */
        float o[tiles][4], most[COLS], sum[COLS];
        {
            const T *from = (const T *)f.q + b * f.q_step[0] +
                            (kv * f.group + of / (int)p.length) * f.q_step[1] +
                            of % (int)p.length * f.q_step[2] + turn * 2;
#pragma unroll
            for (int j = 0; j < tiles; j++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int d = j * 16 + i * 8;
                    q[j][i] = of < rows && d < f.size ? __ldg((const uint32_t *)(const void *)(from + d)) : 0;
                }
        }
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) o[j][i] = 0.0f;
#pragma unroll
        for (int c = 0; c < COLS; c++) most[c] = -CUDART_INF_F, sum[c] = 0.0f;
        /* The rows of matrices that this lane tells the addresses of: of keys, of values (transposed). */
        const int own = warp % 4 * 16, k_row = own + lane % 16, v_row = own + lane / 16 * 8 + lane % 8;
        const uint32_t k_at = begun + k_row * 128, v_at = begun + piece + v_row * 128;
        int at = warp / 4, parity = 0;
#pragma unroll 1
        for (int i = first + at; i < limit; i += 2) {
            float s[2][4] = {};
            barrier_wait(full_k + at * 8, parity);
#pragma unroll
            for (int j = 0; j < tiles; j++) {
                uint32_t a[4];
                ortc_gemm::load_matrices(a, k_at + at * 2 * piece + j / 4 * SLAB +
                                                ((j % 4 * 2 + lane / 16) ^ (k_row & 7)) * 16);
                ortc_gemm::multiply<T>(s[j % 2], a, q[j][0], q[j][1]);
            }
            float now[COLS], weight[2][2] = {};
#pragma unroll
            for (int c = 0; c < COLS; c++) {
                now[c] = most[c];
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int key = begin + i * KEYS + own + of + half * 8;
                    float x = (s[0][half * 2 + c] + s[1][half * 2 + c]) * f.scale, bias = -CUDART_INF_F;
                    if (p.softcap > 0.0f) x = p.softcap * tanhf(x / p.softcap);
                    if (turn * 2 + c < rows) bias = bias_of(p, row[c], key);
                    /* what is masked counts for nothing, NaN too */
                    weight[half][c] = bias == -CUDART_INF_F ? -CUDART_INF_F : (x + bias) * log2_e;
                    now[c] = fmaxf(now[c], weight[half][c]);
                }
#pragma unroll
                for (int m = 4; m < 32; m *= 2) now[c] = fmaxf(now[c], __shfl_xor_sync(~0u, now[c], m));
            }
            bool higher = false, nothing = false;
#pragma unroll
            for (int c = 0; c < COLS; c++) higher |= now[c] != most[c];
            if (__any_sync(~0u, higher))
#pragma unroll
                for (int c = 0; c < COLS; c++) {
                    const float less = power_of_2(most[c] - (now[c] == -CUDART_INF_F ? 0.0f : now[c]));
                    most[c] = now[c];
                    sum[c] *= less;
#pragma unroll
                    for (int j = 0; j < tiles; j++) o[j][c] *= less, o[j][2 + c] *= less;
                }
#pragma unroll
            for (int c = 0; c < COLS; c++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const float x = power_of_2(weight[half][c] - (now[c] == -CUDART_INF_F ? 0.0f : now[c]));
                    nothing |= turn * 2 + c < rows && x == 0.0f;
                    sum[c] += x;
                    weight[half][c] = x;
                }
            const uint32_t w[2] = {transposed(rounded<T>(weight[0][0], weight[0][1])),
                                   transposed(rounded<T>(weight[1][0], weight[1][1]))};
            /* Nothing times what nobody wrote is nothing: values of keys that no row sees are zeros. */
            uint32_t seen[2] = {~0u, ~0u};
            if (__any_sync(~0u, nothing))
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const uint32_t low = __ballot_sync(~0u, (w[half] & 0xffff) != 0),
                                   high = __ballot_sync(~0u, w[half] >> 16 != 0);
                    seen[half] = (low & 0x11111111u << turn ? 0xffffu : 0) |
                                 (high & 0x11111111u << turn ? 0xffff0000u : 0);
                }
            barrier_wait(full_v + at * 8, parity);
#pragma unroll
            for (int j = 0; j < tiles; j++) {
                uint32_t a[4];
                ortc_gemm::load_matrices_transposed(a, v_at + at * 2 * piece + j / 4 * SLAB +
                                                           ((j % 4 * 2 + lane / 8 % 2) ^ (v_row & 7)) * 16);
                a[0] &= seen[0], a[1] &= seen[0], a[2] &= seen[1], a[3] &= seen[1];
                ortc_gemm::multiply<T>(o[j], a, w[0], w[1]);
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(empty + at * 8);
            at += 2;
            if (at >= stages) at -= stages, parity ^= 1;
        }
        __syncthreads(); /* the ring has been read */
        float *const to = results + warp * R::part;
#pragma unroll
        for (int c = 0; c < COLS; c++) {
            const int r = turn * 2 + c;
#pragma unroll
            for (int m = 4; m < 32; m *= 2) sum[c] += __shfl_xor_sync(~0u, sum[c], m);
            if (r < ROWS) {
#pragma unroll
                for (int j = 0; j < tiles; j++) {
                    to[r * R::row + j * 16 + of] = o[j][c];
                    to[r * R::row + j * 16 + of + 8] = o[j][2 + c];
                }
                if (of == 0) to[r * R::row + D] = most[c], to[r * R::row + D + 1] = sum[c];
            }
        }
    }
    meet<T, ROWS, D>(f, parts, place, results, received);
#endif
}

template <typename T, int ROWS, int D> int launch(const ortc_cu_flash &f, int parts, cudaStream_t stream)
{
    Maps maps;
    const int64_t heads = f.rows.heads / f.group;
    /* Four leave room for one block on a multiprocessor, two for two (measured: twice two are slower). */
    const int stages = f.rows.batch * heads * parts <= f.processors ? 4 : 2;
    static_assert(WARPS * Room<ROWS, D>::part * 4 <= 2 * 2 * (D / 64) * SLAB, "where the ring was");
    if (!head_map(&maps.k, f, f.k, f.k_step, f.rows.total, heads, f.size, KEYS) ||
        !head_map(&maps.v, f, f.v, f.v_step, f.rows.total, heads, f.value_size, KEYS))
        return cudaErrorInvalidValue;
    return launch_blocks(ring<T, ROWS, D>, clusters_of(f, parts), parts, (WARPS + 1) * 32,
                         1024 + stages * 2 * (D / 64) * SLAB + parts * Room<ROWS, D>::part * 4, stream, f,
                         maps, stages, parts);
}

template <typename T> int launch_of(const ortc_cu_flash &f, int parts, cudaStream_t stream)
{
    const int64_t rows = f.group * f.rows.length;
    if (f.size <= 64 && f.value_size <= 64)
        return rows == 1   ? launch<T, 1, 64>(f, parts, stream)
               : rows <= 4 ? launch<T, 4, 64>(f, parts, stream)
                           : launch<T, 8, 64>(f, parts, stream);
    return rows == 1   ? launch<T, 1, 128>(f, parts, stream)
           : rows <= 4 ? launch<T, 4, 128>(f, parts, stream)
                       : launch<T, 8, 128>(f, parts, stream);
}

} // namespace

extern "C" int ortc_cu_decode_ring(const ortc_cu_flash *f, int parts, void *queue)
{
    return f->rows.type == ORTC_F16 ? launch_of<__half>(*f, parts, (cudaStream_t)queue)
                                    : launch_of<__nv_bfloat16>(*f, parts, (cudaStream_t)queue);
}
