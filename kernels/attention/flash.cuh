/* kernels/attention/flash.cuh: attention of f16 and bf16 in one pass over the keys: scores never leave the
 * registers.
 *
 * A block takes rows of queries of one head, a warp 16 of them. Keys and values come in pieces of 64 through
 * two buffers of shared memory, the next one underway while one is worked on. Per piece: scores by tensor
 * cores; scale, softcap and masks; a row's maximum and sum as seen so far (in base 2), by which what is
 * summed up already is scaled down; then the probabilities, which lie where the second product wants them,
 * times the values. Pieces that no row of the block sees are not read; in those that every row of a warp sees
 * whole, nothing is masked. Rows of queries see later keys, the later they are: the first and the last one of
 * a block say which pieces it needs. A head has at most D elements; those beyond its size are zeros.
 * Addresses and steps that are not whole pieces of 16 bytes cost single loads.
 */
#ifndef ORTC_KERNELS_ATTENTION_FLASH_CUH
#define ORTC_KERNELS_ATTENTION_FLASH_CUH

#include "kernels/attention/cuda_mask.cuh"
#include "kernels/gemm/gemm_mma.cuh"

namespace ortc_attention {

using namespace ortc_gemm;

__device__ __forceinline__ uint32_t pack(__half, float lo, float hi)
{
    const __half2 x = __floats2half2_rn(lo, hi);
    uint32_t y;
    memcpy(&y, &x, sizeof y);
    return y;
}
__device__ __forceinline__ uint32_t pack(__nv_bfloat16, float lo, float hi)
{
    const __nv_bfloat162 x = __floats2bfloat162_rn(lo, hi);
    uint32_t y;
    memcpy(&y, &x, sizeof y);
    return y;
}

/* As ortc_gemm::fill, from any address, one element at a time. */
template <int ROWS, int CHUNKS, int THREADS>
__device__ __forceinline__ void fill_slowly(char *tile, const uint16_t *from, int64_t pitch, int rows_left,
                                            int cols_left)
{
#pragma unroll 1
    for (int at = threadIdx.x; at < ROWS * CHUNKS; at += THREADS) {
        const int row = at / CHUNKS, col = at % CHUNKS * 8;
        uint32_t v[8];
#pragma unroll
        for (int e = 0; e < 8; e++)
            v[e] = row < rows_left && col + e < cols_left ? from[row * pitch + col + e] : 0u;
        *(uint4 *)(tile + chunk_at<CHUNKS>(row, at % CHUNKS)) =
            make_uint4(v[0] | v[1] << 16, v[2] | v[3] << 16, v[4] | v[5] << 16, v[6] | v[7] << 16);
    }
}

template <typename T, int D, int WARPS>
__global__ void __launch_bounds__(WARPS * 32) flash(const __grid_constant__ ortc_cu_flash f)
{
    constexpr int rows = WARPS * 16, keys = 64, threads = WARPS * 32, chunks = D / 8, q_bytes = rows * D * 2,
                  tile_bytes = keys * D * 2;
    constexpr float log2_e = 1.44269504f;
    extern __shared__ __align__(128) char shared_flash[];
    const uint32_t q_tile = shared_address(shared_flash), ring = q_tile + q_bytes;
    const ortc_cu_rows &p = f.rows;
    const int64_t tiles = (p.length + rows - 1) / rows, head = blockIdx.x / tiles;
    const int64_t first = (tiles - 1 - (blockIdx.x - head * tiles)) * rows,
                  last = (first + rows < p.length ? first + rows : p.length) - 1;
    const int64_t b = head / p.heads, h = head - b * p.heads, kv = h / f.group;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const T *q = (const T *)f.q + b * f.q_step[0] + h * f.q_step[1] + first * f.q_step[2];
    const T *k = (const T *)f.k + b * f.k_step[0] + kv * f.k_step[1],
            *v = (const T *)f.v + b * f.v_step[0] + kv * f.v_step[1];

    const int begin = (int)(row_of(p, b, h, first).from / keys),
              end = (int)((row_of(p, b, h, last).to + keys - 1) / keys);
    const int total = (int)p.total, size = f.size, value_size = f.value_size;
    auto load = [&](int piece) {
        const int64_t at = (int64_t)piece * keys;
        const int there = total - piece * keys;
        const int to = q_bytes + piece % 2 * 2 * tile_bytes, first_row = threadIdx.x / chunks,
                  col = threadIdx.x % chunks * 8;
        if (f.aligned) {
            fill<keys, chunks, threads>(q_tile + to, k + (at + first_row) * f.k_step[2] + col, f.k_step[2],
                                        there, size, k);
            fill<keys, chunks, threads>(q_tile + to + tile_bytes, v + (at + first_row) * f.v_step[2] + col,
                                        f.v_step[2], there, value_size, v);
        } else {
            fill_slowly<keys, chunks, threads>(shared_flash + to, (const uint16_t *)(k + at * f.k_step[2]),
                                               f.k_step[2], there, size);
            fill_slowly<keys, chunks, threads>(shared_flash + to + tile_bytes,
                                               (const uint16_t *)(v + at * f.v_step[2]), f.v_step[2], there,
                                               value_size);
        }
    };

    /* This thread's two rows, and what the warp's rows see: all of them keys all_from .. all_to. */
    int from[2], to[2];
    int64_t mask[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int64_t at = first + warp * 16 + lane / 4 + i * 8;
        const Row r = row_of(p, b, h, at < p.length ? at : p.length - 1);
        from[i] = (int)r.from;
        to[i] = (int)(r.to < 0 ? 0 : r.to);
        mask[i] = r.mask;
    }
    const int64_t warp_first = first + warp * 16, warp_last = warp_first + 15;
    const int all_from = (int)row_of(p, b, h, warp_last < p.length ? warp_last : p.length - 1).from;
    const int all_to = (int)row_of(p, b, h, warp_first < p.length ? warp_first : p.length - 1).to;

    float out[D / 8][4], most[2] = {-CUDART_INF_F, -CUDART_INF_F}, sum[2] = {0.0f, 0.0f};
    bool seen[2] = {false, false};
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) out[n][e] = 0.0f;

    uint32_t queries[D / 16][4];
    if (begin < end) {
        if (f.aligned)
            fill<rows, chunks, threads>(q_tile,
                                        q + threadIdx.x / chunks * f.q_step[2] + threadIdx.x % chunks * 8,
                                        f.q_step[2], left(p.length - first), size, q);
        else
            fill_slowly<rows, chunks, threads>(shared_flash, (const uint16_t *)q, f.q_step[2],
                                               left(p.length - first), size);
        load(begin);
        copies_commit();
        copies_wait<0>();
        __syncthreads();
#pragma unroll
        for (int d = 0; d < D / 16; d++)
            load_matrices(queries[d], q_tile + chunk_at<chunks>(warp * 16 + lane % 16, d * 2 + lane / 16));
    }

#pragma unroll 1
    for (int piece = begin; piece < end; piece++) {
        copies_wait<0>();
        __syncthreads(); /* this piece is whole, and the buffers of the next are read no more */
        if (piece + 1 < end) load(piece + 1);
        copies_commit();
        const uint32_t k_tile = ring + piece % 2 * 2 * tile_bytes, v_tile = k_tile + tile_bytes;

        float s[keys / 8][4];
#pragma unroll
        for (int n = 0; n < keys / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) s[n][e] = 0.0f;
#pragma unroll
        for (int d = 0; d < D / 16; d++)
#pragma unroll
            for (int n = 0; n < keys / 16; n++) {
                uint32_t x[4];
                load_matrices(x, k_tile + chunk_at<chunks>(n * 16 + lane % 8 + lane / 16 * 8,
                                                           d * 2 + lane / 8 % 2));
                multiply<T>(s[n * 2], queries[d], x[0], x[1]);
                multiply<T>(s[n * 2 + 1], queries[d], x[2], x[3]);
            }

        if (p.softcap > 0.0f) {
#pragma unroll
            for (int n = 0; n < keys / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    s[n][e] = log2_e * p.softcap * tanhf(s[n][e] * f.scale / p.softcap);
        } else {
#pragma unroll
            for (int n = 0; n < keys / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) s[n][e] *= f.scale * log2_e;
        }
        if (p.mask_type || piece * keys < all_from || (piece + 1) * keys > all_to) {
#pragma unroll
            for (int n = 0; n < keys / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int key = piece * keys + n * 8 + lane % 4 * 2 + e % 2;
                    if (key < from[e / 2] || key >= to[e / 2])
                        s[n][e] = -CUDART_INF_F;
                    else if (p.mask_type) {
                        const float bias = load_mask(p.mask_type, p.mask, mask[e / 2] + key);
                        s[n][e] += log2_e * bias;
                        seen[e / 2] |= bias != -CUDART_INF_F;
                    } else
                        seen[e / 2] = true;
                }
        } else
            seen[0] = seen[1] = true;

#pragma unroll
        for (int i = 0; i < 2; i++) {
            float now = most[i];
#pragma unroll
            for (int n = 0; n < keys / 8; n++) /* NaN comes through below, as a probability */
                now = fmaxf(now, fmaxf(s[n][i * 2], s[n][i * 2 + 1]));
            now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
            now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
            const float base = now == -CUDART_INF_F ? 0.0f : now, less = power_of_2(most[i] - base);
            most[i] = now;
            sum[i] *= less;
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                out[n][i * 2] *= less;
                out[n][i * 2 + 1] *= less;
            }
#pragma unroll
            for (int n = 0; n < keys / 8; n++) {
                s[n][i * 2] = power_of_2(s[n][i * 2] - base);
                s[n][i * 2 + 1] = power_of_2(s[n][i * 2 + 1] - base);
                sum[i] += s[n][i * 2] + s[n][i * 2 + 1];
            }
        }

#pragma unroll
        for (int n = 0; n < keys / 16; n++) {
            const uint32_t a[4] = {pack(T(), s[n * 2][0], s[n * 2][1]), pack(T(), s[n * 2][2], s[n * 2][3]),
                                   pack(T(), s[n * 2 + 1][0], s[n * 2 + 1][1]),
                                   pack(T(), s[n * 2 + 1][2], s[n * 2 + 1][3])};
#pragma unroll
            for (int d = 0; d < D / 16; d++) {
                uint32_t x[4];
                load_matrices_transposed(x, v_tile + chunk_at<chunks>(n * 16 + lane % 16, d * 2 + lane / 16));
                multiply<T>(out[d * 2], a, x[0], x[1]);
                multiply<T>(out[d * 2 + 1], a, x[2], x[3]);
            }
        }
    }
    copies_wait<0>();

#pragma unroll
    for (int i = 0; i < 2; i++) {
        sum[i] += __shfl_xor_sync(~0u, sum[i], 1);
        sum[i] += __shfl_xor_sync(~0u, sum[i], 2);
        float any = seen[i] ? 1.0f : 0.0f;
        any += __shfl_xor_sync(~0u, any, 1);
        any += __shfl_xor_sync(~0u, any, 2);
        const int64_t row = warp_first + lane / 4 + i * 8;
        const float by = sum[i] == 0.0f ? 0.0f : 1.0f / sum[i];
        T *y = (T *)f.y + b * f.y_step[0] + h * f.y_step[1] + row * f.y_step[2];
        if (row < p.length)
#pragma unroll
            for (int n = 0; n < D / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (n * 8 + lane % 4 * 2 + e < value_size)
                        y[n * 8 + lane % 4 * 2 + e] = from_float<T>(any != 0.0f ? out[n][i * 2 + e] * by
                                                                                : 0.0f);
    }
}

template <typename T, int D, int WARPS> static int launch_flash(const ortc_cu_flash &f, void *queue)
{
    constexpr int rows = WARPS * 16, shared = (rows + 4 * 64) * D * 2;
    const int64_t blocks = (f.rows.length + rows - 1) / rows * f.rows.batch * f.rows.heads;
    if (shared > 48 << 10) {
        const cudaError_t e = cudaFuncSetAttribute(flash<T, D, WARPS>,
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
        if (e != cudaSuccess) return e;
    }
    flash<T, D, WARPS><<<(unsigned)blocks, WARPS * 32, shared, (cudaStream_t)queue>>>(f);
    return cudaGetLastError();
}

template <typename T> static int launch_flash(const ortc_cu_flash *f, void *queue)
{
    ortc_cu_flash g = *f;
    uint64_t all = (uint64_t)(uintptr_t)g.q | (uint64_t)(uintptr_t)g.k | (uint64_t)(uintptr_t)g.v;
    for (int i = 0; i < 3; i++) all |= (uint64_t)(g.q_step[i] | g.k_step[i] | g.v_step[i]) * 2;
    g.aligned = all % 16 == 0;
    if (g.size <= 64 && g.value_size <= 64)
        return g.warps == 4 ? launch_flash<T, 64, 4>(g, queue) : launch_flash<T, 64, 8>(g, queue);
    if (g.size > 128 || g.value_size > 128) return launch_flash<T, 256, 4>(g, queue);
    return g.warps == 4 ? launch_flash<T, 128, 4>(g, queue) : launch_flash<T, 128, 8>(g, queue);
}

} // namespace ortc_attention

#endif
