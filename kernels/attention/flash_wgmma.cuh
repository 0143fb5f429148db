/* kernels/attention/flash_wgmma.cuh: attention of f16 and bf16 in one pass over the keys by Hopper's tensor
 * cores and copy engine (sm_90a).
 *
 * As flash.cuh, with other hands: a block takes 128 rows of queries of one head, a warpgroup 64 of them, and
 * one thread of a third warpgroup loads: the queries once, then keys and values piece by piece, each through
 * two buffers of its own. Scores of the next piece and values of this one are multiplied at the same time;
 * while the values are, the exponentials of the next piece are taken. Queries, keys and values lie in shared
 * memory in slabs of 64 elements of a head (wgmma.cuh), values in halves of 64 keys.
 */
#ifndef ORTC_KERNELS_ATTENTION_FLASH_WGMMA_CUH
#define ORTC_KERNELS_ATTENTION_FLASH_WGMMA_CUH

#include "kernels/attention/flash.cuh"
#include "kernels/attention/head_map.cuh"
#include "kernels/gemm/launch_blocks.cuh"

namespace ortc_attention {

using namespace ortc_hopper;

/* ROWS: of queries; PIECES: buffers of keys, and as many of values; BLOCKS: on a multiprocessor at once. */
template <int D_, int KEYS_, int ROWS_ = 128, int PIECES_ = 2, int BLOCKS_ = 1> struct FlashShape {
    static constexpr int D = D_, KEYS = KEYS_, rows = ROWS_, BLOCKS = BLOCKS_, slabs = D / 64;
    static constexpr int q_slab = rows * 128, k_slab = KEYS * 128, q_bytes = slabs * q_slab,
                         piece_bytes = slabs * k_slab;
    static constexpr int shared = 1024 + q_bytes + 2 * PIECES_ * piece_bytes; /* 1024: to align the slabs */
};

struct FlashMaps {
    CUtensorMap q, k, v;
};

#ifdef ORTC_HOPPER
/* A thread's two rows of a head: what they see, and what of them is summed up (in base 2). */
template <typename T, int KEYS> struct Scores {
    const ortc_cu_rows &p;
    float by, into_cap;
    int from[2], to[2], all_from, all_to; /* all: what each of the warp's 16 rows sees */
    int64_t mask[2];
    float s[KEYS / 2], most[2], sum[2], less[2]; /* less: by what former sums shrink */
    bool seen[2];

    static constexpr float log2_e = 1.44269504f;

    __device__ __forceinline__ Scores(const ortc_cu_flash &f, int b, int h, int64_t warp_first) : p(f.rows)
    {
        by = f.scale * log2_e;
        into_cap = p.softcap > 0.0f ? __fdividef(f.scale, p.softcap) : 0.0f;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t at = warp_first + threadIdx.x % 32 / 4 + i * 8;
            const Row r = row_of(p, b, h, at < p.length ? at : p.length - 1);
            from[i] = (int)r.from;
            to[i] = (int)(r.to < 0 ? 0 : r.to);
            mask[i] = r.mask;
            most[i] = -CUDART_INF_F;
            sum[i] = 0.0f;
            seen[i] = false;
        }
        const int64_t last = warp_first + 15;
        all_from = (int)row_of(p, b, h, last < p.length ? last : p.length - 1).from;
        all_to = (int)row_of(p, b, h, warp_first < p.length ? warp_first : p.length - 1).to;
    }
    /* Scores of keys `first` and on become exponentials. */
    __device__ __forceinline__ void softmax(int first)
    {
        float scale = by, raw[2];
        if (!(by > 0.0f) || p.softcap > 0.0f || p.mask_type || first < all_from || first + KEYS > all_to) {
            scale = 1.0f;
            if (p.softcap > 0.0f) {
#pragma unroll
                for (int n = 0; n < KEYS / 2; n++) {
                    const float x = s[n] * into_cap;
                    s[n] = log2_e * p.softcap * (sizeof(T) == 4 ? tanhf(x) : fast_tanh(x));
                }
            } else {
#pragma unroll
                for (int n = 0; n < KEYS / 2; n++) s[n] *= by;
            }
            const int key = first + threadIdx.x % 4 * 2;
            /* Every element is loaded, from some place of the row where it is not seen, so that loads need
             * not wait for each other. */
            auto add_mask = [&](auto load) {
#pragma unroll
                for (int n = 0; n < KEYS / 2; n++) {
                    const int at = key + n / 4 * 8 + n % 2, i = n / 2 % 2;
                    const bool inside = at >= from[i] && at < to[i];
                    const float bias = load(mask[i] + (at < to[i] ? at : 0));
                    s[n] = inside ? s[n] + log2_e * bias : -CUDART_INF_F;
                    seen[i] |= inside && bias != -CUDART_INF_F;
                }
            };
            if (p.mask_type == ORTC_BOOL)
                add_mask([&](int64_t at) { return ((const uint8_t *)p.mask)[at] ? 0.0f : -CUDART_INF_F; });
            else if (p.mask_type == p.type)
                add_mask([&](int64_t at) { return to_float(((const T *)p.mask)[at]); });
            else if (p.mask_type == ORTC_F32)
                add_mask([&](int64_t at) { return ((const float *)p.mask)[at]; });
            else if (p.mask_type)
                add_mask([&](int64_t at) { return load_mask(p.mask_type, p.mask, at); });
            else {
#pragma unroll
                for (int n = 0; n < KEYS / 2; n++) {
                    const int at = key + n / 4 * 8 + n % 2, i = n / 2 % 2;
                    const bool inside = at >= from[i] && at < to[i];
                    s[n] = inside ? s[n] : -CUDART_INF_F;
                    seen[i] |= inside;
                }
            }
        } else
            seen[0] = seen[1] = true;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            raw[i] = -CUDART_INF_F;
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++) /* NaN comes through below, as a probability */
                raw[i] = fmaxf(raw[i], fmaxf(s[n * 4 + i * 2], s[n * 4 + i * 2 + 1]));
            raw[i] = fmaxf(raw[i], __shfl_xor_sync(~0u, raw[i], 1));
            raw[i] = fmaxf(raw[i], __shfl_xor_sync(~0u, raw[i], 2));
            const float now = fmaxf(most[i], raw[i] * scale), base = now == -CUDART_INF_F ? 0.0f : now;
            less[i] = power_of_2(most[i] - base);
            most[i] = now;
            sum[i] *= less[i];
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float &x = s[n * 4 + i * 2 + e];
                    x = power_of_2(fmaf(x, scale, -base));
                    sum[i] += x;
                }
        }
    }
    /* As the second product takes them. */
    __device__ __forceinline__ void weights(uint32_t (&w)[KEYS / 16][4]) const
    {
#pragma unroll
        for (int k = 0; k < KEYS / 16; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) w[k][i] = pack(T(), s[k * 8 + i * 2], s[k * 8 + i * 2 + 1]);
    }
    /* What the values add up to, over the sums. */
    template <int R>
    __device__ __forceinline__ void store(const ortc_cu_flash &f, int b, int h, int64_t warp_first,
                                          const float (&o)[R])
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            sum[i] += __shfl_xor_sync(~0u, sum[i], 1);
            sum[i] += __shfl_xor_sync(~0u, sum[i], 2);
            float any = seen[i] ? 1.0f : 0.0f;
            any += __shfl_xor_sync(~0u, any, 1);
            any += __shfl_xor_sync(~0u, any, 2);
            const int64_t row = warp_first + lane / 4 + i * 8;
            const float share = sum[i] == 0.0f ? 0.0f : __fdividef(1.0f, sum[i]);
            T *y = (T *)f.y + b * f.y_step[0] + h * f.y_step[1] + row * f.y_step[2] + lane % 4 * 2;
            const int left = f.value_size - lane % 4 * 2;
            if (row < p.length)
#pragma unroll
                for (int n = 0; n < R / 4; n++) {
                    const float x0 = any != 0.0f ? o[n * 4 + i * 2] * share : 0.0f,
                                x1 = any != 0.0f ? o[n * 4 + i * 2 + 1] * share : 0.0f;
                    if (f.y_pairs && n * 8 + 1 < left) {
                        if constexpr (sizeof(T) == 4)
                            *(float2 *)(void *)(y + n * 8) = make_float2(x0, x1);
                        else
                            *(uint32_t *)(void *)(y + n * 8) = pack(T(), x0, x1);
                    } else {
                        if (n * 8 < left) y[n * 8] = from_float<T>(x0);
                        if (n * 8 + 1 < left) y[n * 8 + 1] = from_float<T>(x1);
                    }
                }
        }
    }
};

/* A piece of keys and one of values, into shared memory. */
template <class S>
__device__ __forceinline__ void load_keys(const FlashMaps &maps, uint32_t to, uint32_t full, int key,
                                          const int (&at)[3])
{
    for (int i = 0; i < S::slabs; i++) tile_load(to + i * S::k_slab, &maps.k, full, i * 64, key, at);
}
template <class S>
__device__ __forceinline__ void load_values(const FlashMaps &maps, uint32_t to, uint32_t full, int key,
                                            const int (&at)[3])
{
    for (int half = 0; half < S::KEYS / 64; half++)
        for (int i = 0; i < S::slabs; i++)
            tile_load(to + (half * S::slabs + i) * SLAB, &maps.v, full, i * 64, key + half * 64, at);
}
/* Both products of a warpgroup's 64 rows; they are underway when these return. */
template <typename T, class S>
__device__ __forceinline__ void multiply_keys(float (&s)[S::KEYS / 2], uint32_t queries, uint32_t keys)
{
    const uint64_t q = operand(queries, false), k = operand(keys, false);
    settle(s);
    products_begin();
#pragma unroll
    for (int d = 0; d < S::D / 16; d++)
        ortc_hopper::multiply<T, 0, 0>(s, q + (d / 4 * S::q_slab >> 4) + d % 4 * 2,
                                       k + (d / 4 * S::k_slab >> 4) + d % 4 * 2, d);
    products_commit();
    settle(s);
}
template <typename T, class S>
__device__ __forceinline__ void multiply_values(float (&o)[S::D / 2],
                                                const uint32_t (&weights)[S::KEYS / 16][4], uint32_t values)
{
    const uint64_t v = operand(values, true);
    settle(o);
    products_begin();
#pragma unroll
    for (int k = 0; k < S::KEYS / 16; k++)
        ortc_hopper::multiply<T, 1>(o, weights[k], v + (k / 4 * S::slabs * SLAB >> 4) + k % 4 * next_16(true),
                                    1);
    products_commit();
    settle(o);
}
#endif

template <typename T, class S>
__global__ void __launch_bounds__(384, 1)
    flash_wgmma(const __grid_constant__ ortc_cu_flash f, const __grid_constant__ FlashMaps maps)
{
#ifdef ORTC_HOPPER
    constexpr int keys = S::KEYS, D = S::D;
    extern __shared__ char shared_flash_wgmma[];
    __shared__ __align__(8) uint64_t barriers[9];
    const uint32_t q_tile = ((uint32_t)__cvta_generic_to_shared(shared_flash_wgmma) + 1023) / 1024 * 1024;
    const uint32_t k_tiles = q_tile + S::q_bytes, v_tiles = k_tiles + 2 * S::piece_bytes;
    const uint32_t q_full = (uint32_t)__cvta_generic_to_shared(barriers), k_full = q_full + 8,
                   k_empty = k_full + 16, v_full = k_empty + 16, v_empty = v_full + 16;
    const ortc_cu_rows &p = f.rows;
    const int tiles = ((int)p.length + S::rows - 1) / S::rows, head = (int)blockIdx.x / tiles;
    const int first = (tiles - 1 - ((int)blockIdx.x - head * tiles)) * S::rows;
    const int last = (first + S::rows < (int)p.length ? first + S::rows : (int)p.length) - 1;
    const int b = head / (int)p.heads, h = head - b * (int)p.heads;
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;

    if (threadIdx.x == 0) {
        barrier_init(q_full, 1);
        for (int i = 0; i < 2; i++) {
            barrier_init(k_full + i * 8, 1);
            barrier_init(v_full + i * 8, 1);
            barrier_init(k_empty + i * 8, 8);
            barrier_init(v_empty + i * 8, 8);
        }
        barriers_made();
        map_prefetch(&maps.q);
        map_prefetch(&maps.k);
        map_prefetch(&maps.v);
    }
    __syncthreads();
    next_may_start();
    previous_wait();
    const int begin = (int)(row_of(p, b, h, first).from / keys),
              end = (int)((row_of(p, b, h, last).to + keys - 1) / keys);

    if (group == 2) {
        registers_less<24>();
        if (threadIdx.x == 256 && begin < end) {
            const int at_q[3] = {h, b, 0}, at_k[3] = {h / (int)f.group, b, 0};
            barrier_expect(q_full, S::q_bytes);
            for (int i = 0; i < S::slabs; i++)
                tile_load(q_tile + i * S::q_slab, &maps.q, q_full, i * 64, first, at_q);
            for (int piece = begin, stage = 0, parity = 1; piece < end; piece++) {
                const uint32_t k = k_tiles + stage * S::piece_bytes, v = v_tiles + stage * S::piece_bytes;
                barrier_wait(k_empty + stage * 8, parity);
                barrier_expect(k_full + stage * 8, S::piece_bytes);
                load_keys<S>(maps, k, k_full + stage * 8, piece * keys, at_k);
                barrier_wait(v_empty + stage * 8, parity);
                barrier_expect(v_full + stage * 8, S::piece_bytes);
                load_values<S>(maps, v, v_full + stage * 8, piece * keys, at_k);
                parity ^= stage;
                stage ^= 1;
            }
        }
        return;
    }
    registers_more<240>();

    const int64_t warp_first = first + group * 64 + warp * 16;
    Scores<T, keys> scores(f, b, h, warp_first);
    float(&s)[keys / 2] = scores.s, o[D / 2];
    uint32_t weights[keys / 16][4];

    auto multiply_scores = [&](int stage) {
        multiply_keys<T, S>(s, q_tile + group * SLAB, k_tiles + stage * S::piece_bytes);
    };
    auto add_values = [&](int stage) { multiply_values<T, S>(o, weights, v_tiles + stage * S::piece_bytes); };
    auto release = [&](uint32_t barrier) {
        if (lane == 0) barrier_arrive(barrier);
    };

#pragma unroll
    for (int n = 0; n < D / 2; n++) o[n] = 0.0f;
    if (begin < end) {
        barrier_wait(q_full, 0);
        barrier_wait(k_full, 0);
        multiply_scores(0);
        products_wait<0>();
        settle(s);
        release(k_empty);
        scores.softmax(begin * keys);
        scores.weights(weights);
        int stage = 0, parity = 0; /* of the values that come next */
#pragma unroll 1
        for (int piece = begin + 1; piece < end; piece++) {
            const int next = stage ^ 1, next_parity = parity ^ stage;
            barrier_wait(k_full + next * 8, next_parity);
            multiply_scores(next);
            barrier_wait(v_full + stage * 8, parity);
            add_values(stage);
            products_wait<1>();
            settle(s);
            release(k_empty + next * 8);
            scores.softmax(piece * keys);
            products_wait<0>();
            settle(o);
            release(v_empty + stage * 8);
#pragma unroll
            for (int n = 0; n < D / 2; n++) o[n] *= scores.less[n / 2 % 2];
            scores.weights(weights);
            stage = next;
            parity = next_parity;
        }
        barrier_wait(v_full + stage * 8, parity);
        add_values(stage);
        products_wait<0>();
        settle(o);
    }
    scores.store(f, b, h, warp_first, o);
#endif
}

/* Keys that are all one piece: a block is one warpgroup, and there is nothing to overlap within it. What
 * hides its waits are the other blocks of its multiprocessor. */
template <typename T, class S>
__global__ void __launch_bounds__(128, S::BLOCKS)
    flash_piece(const __grid_constant__ ortc_cu_flash f, const __grid_constant__ FlashMaps maps)
{
#ifdef ORTC_HOPPER
    extern __shared__ char shared_flash_piece[];
    __shared__ __align__(8) uint64_t barriers[2];
    const uint32_t q_tile = ((uint32_t)__cvta_generic_to_shared(shared_flash_piece) + 1023) / 1024 * 1024;
    const uint32_t k_tile = q_tile + S::q_bytes, v_tile = k_tile + S::piece_bytes;
    const uint32_t k_full = (uint32_t)__cvta_generic_to_shared(barriers), v_full = k_full + 8;
    const ortc_cu_rows &p = f.rows;
    const int tiles = ((int)p.length + S::rows - 1) / S::rows, head = (int)blockIdx.x / tiles,
              first = ((int)blockIdx.x - head * tiles) * S::rows;
    const int b = head / (int)p.heads, h = head - b * (int)p.heads;

    if (threadIdx.x == 0) {
        barrier_init(k_full, 1);
        barrier_init(v_full, 1);
        barriers_made();
        const int at_q[3] = {h, b, 0}, at_k[3] = {h / (int)f.group, b, 0};
        barrier_expect(k_full, S::q_bytes + S::piece_bytes);
        barrier_expect(v_full, S::piece_bytes);
        previous_wait();
        for (int i = 0; i < S::slabs; i++)
            tile_load(q_tile + i * S::q_slab, &maps.q, k_full, i * 64, first, at_q);
        load_keys<S>(maps, k_tile, k_full, 0, at_k);
        load_values<S>(maps, v_tile, v_full, 0, at_k);
    }
    __syncthreads();
    next_may_start();
    previous_wait();
    const int64_t warp_first = first + threadIdx.x / 32 * 16;
    Scores<T, S::KEYS> scores(f, b, h, warp_first);
    barrier_wait(k_full, 0);
    multiply_keys<T, S>(scores.s, q_tile, k_tile);
    products_wait<0>();
    settle(scores.s);
    scores.softmax(0);
    uint32_t weights[S::KEYS / 16][4];
    scores.weights(weights);
    float o[S::D / 2];
#pragma unroll
    for (int n = 0; n < S::D / 2; n++) o[n] = 0.0f;
    barrier_wait(v_full, 0);
    multiply_values<T, S>(o, weights, v_tile);
    products_wait<0>();
    settle(o);
    scores.store(f, b, h, warp_first, o);
#endif
}

/* A kernel of so many threads, with its maps. */
template <class S>
static int launch_flash(void (*kernel)(ortc_cu_flash, FlashMaps), int threads, const ortc_cu_flash &f,
                        void *queue)
{
    const int64_t blocks = (f.rows.length + S::rows - 1) / S::rows * f.rows.batch * f.rows.heads,
                  kv_heads = f.rows.heads / f.group;
    FlashMaps maps;
    if (!head_map(&maps.q, f, f.q, f.q_step, f.rows.length, f.rows.heads, f.size, S::rows) ||
        !head_map(&maps.k, f, f.k, f.k_step, f.rows.total, kv_heads, f.size, S::KEYS) ||
        !head_map(&maps.v, f, f.v, f.v_step, f.rows.total, kv_heads, f.value_size, 64))
        return cudaErrorInvalidValue;
    return launch_blocks(kernel, dim3((unsigned)blocks), 1, threads, S::shared, queue, f, maps);
}

template <typename T, class S> static int launch_pieces(const ortc_cu_flash &f, void *queue)
{
    return launch_flash<S>(flash_wgmma<T, S>, 384, f, queue);
}
template <typename T, class S> static int launch_piece(const ortc_cu_flash &f, void *queue)
{
    return launch_flash<S>(flash_piece<T, S>, 128, f, queue);
}

template <typename T> static int launch_flash_wgmma(const ortc_cu_flash *f, void *queue)
{
    ortc_cu_flash g = *f;
    const int size = g.size > g.value_size ? g.size : g.value_size;
    g.y_pairs = (uint64_t)(uintptr_t)g.y % 4 == 0 && (g.y_step[0] | g.y_step[1] | g.y_step[2]) % 2 == 0;
    if (g.rows.total <= 128 && size <= 128)
        return size <= 64 ? launch_piece<T, FlashShape<64, 128, 64, 1, 4>>(g, queue)
                          : launch_piece<T, FlashShape<128, 128, 64, 1, 2>>(g, queue);
    return size <= 64    ? launch_pieces<T, FlashShape<64, 128>>(g, queue)
           : size <= 128 ? launch_pieces<T, FlashShape<128, 128>>(g, queue)
           : size <= 192 ? launch_pieces<T, FlashShape<192, 64>>(g, queue)
                         : launch_pieces<T, FlashShape<256, 64>>(g, queue);
}

} // namespace ortc_attention

#endif
