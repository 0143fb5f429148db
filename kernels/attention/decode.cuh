/* kernels/attention/decode.cuh: what attention of few queries shares, whichever way it reads keys and values
 * (decode.cu, decode_ring.cu): clusters of blocks, and how the results of warps and blocks meet. */
#ifndef ORTC_KERNELS_ATTENTION_DECODE_CUH
#define ORTC_KERNELS_ATTENTION_DECODE_CUH

#include "kernels/attention/cuda_attention.h"
#include "kernels/attention/cuda_mask.cuh"
#include "kernels/gemm/launch_blocks.cuh"
#include "kernels/gemm/wgmma.cuh"

namespace ortc_attention {

using namespace ortc_hopper;

constexpr int WARPS = 8; /* that compute; a block may have more */

/* Floats: values of a row, its maximum, its sum. */
template <int ROWS, int D> struct Room {
    static constexpr int row = D + 2, part = ROWS * row, warps = WARPS * part;
};

#ifdef ORTC_HOPPER
/* A block's part of the keys, its sample and key head; where the cluster's first block receives the results
 * of all, and the barrier that counts them. */
struct Place {
    int part, b, kv;
    uint32_t barrier, received;
};
/* How a block begins. received: where the cluster's first block has the results of all, R::part floats each;
 * come: a barrier's place. What the kernel before wrote may be read from here on. */
template <int ROWS, int D>
__device__ __forceinline__ Place begin_block(const ortc_cu_flash &f, int parts, float *received,
                                             uint64_t *come)
{
    using R = Room<ROWS, D>;
    const int kv_heads = (int)(f.rows.heads / f.group), which = (int)blockIdx.x / parts;
    const Place place = {(int)blockIdx.x % parts, which / kv_heads, which % kv_heads,
                         (uint32_t)__cvta_generic_to_shared(come),
                         (uint32_t)__cvta_generic_to_shared(received)};
    if (threadIdx.x == 0) {
        barrier_init(place.barrier, 1);
        barriers_made();
        if (place.part == 0) barrier_expect(place.barrier, parts * R::part * 4);
    }
    __syncthreads();
    if (parts > 1) cluster_arrive(); /* meet waits: where results go is there */
    next_may_start();
    previous_wait();
    return place;
}

/* The results of a block's warps, R::part floats each, then those of the cluster's blocks. */
template <typename T, int ROWS, int D>
__device__ __forceinline__ void meet(const ortc_cu_flash &f, int parts, const Place &place,
                                     const float *results, float *all)
{
    using R = Room<ROWS, D>;
    const ortc_cu_rows &p = f.rows;
    const int rows = (int)(f.group * p.length), part = place.part, b = place.b, kv = place.kv;
    const uint32_t barrier = place.barrier;
    __syncthreads();
    if (parts > 1) cluster_wait();
    const uint32_t there = address_in(place.received, 0) + part * R::part * 4,
                   barrier_there = address_in(barrier, 0);
    for (int i = (int)threadIdx.x; i < ROWS * R::row / 2;
         i += (int)blockDim.x) { /* pairs; the last of a row are its maximum and sum */
        const int r = i / (R::row / 2), d = i % (R::row / 2) * 2;
        const float *from = results + r * R::row;
        float now = -CUDART_INF_F, x = 0.0f, y = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; w++) now = fmaxf(now, from[w * R::part + D]);
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            const float share = exp2f(from[w * R::part + D] - (now == -CUDART_INF_F ? 0.0f : now));
            x += share * from[w * R::part + d];
            y += share * from[w * R::part + d + 1];
        }
        if (parts == 1)
            *(float2 *)(all + r * R::row + d) = make_float2(d == D ? now : x, y);
        else
            push(there + (r * R::row + d) * 4, d == D ? now : x, y, barrier_there);
    }
    if (part != 0) return;
    if (parts == 1)
        __syncthreads();
    else
        barrier_wait(barrier, 0);
    for (int i = (int)threadIdx.x; i < rows * D; i += (int)blockDim.x) {
        const int r = i / D, d = i % D, h = kv * (int)f.group + r / (int)p.length;
        const float *from = all + r * R::row;
        float now = -CUDART_INF_F, x = 0.0f, sum = 0.0f;
#pragma unroll 8
        for (int c = 0; c < parts; c++) now = fmaxf(now, from[c * R::part + D]);
#pragma unroll 8
        for (int c = 0; c < parts; c++) {
            const float share = exp2f(from[c * R::part + D] - (now == -CUDART_INF_F ? 0.0f : now));
            x += share * from[c * R::part + d];
            sum += share * from[c * R::part + D + 1];
        }
        if (d < f.value_size)
            ((T *)f.y)[b * f.y_step[0] + h * f.y_step[1] + r % (int)p.length * f.y_step[2] + d] =
                from_float<T>(sum == 0.0f ? 0.0f : x / sum);
    }
}
#endif

/* A cluster of `parts` blocks for each sample and key head. */
static inline dim3 clusters_of(const ortc_cu_flash &f, int parts)
{
    return dim3((unsigned)(f.rows.batch * (f.rows.heads / f.group) * parts));
}

} // namespace ortc_attention

#endif
