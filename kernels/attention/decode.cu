/* kernels/attention/decode.cu: attention of few queries over many keys, where what counts is to read keys and
 * values once at the memory's rate: sm_90 on.
 *
 * A cluster of blocks takes a sample and a key head with all its query rows (of all heads of the group), each
 * block a part of the keys. As many lanes as hold a key in 16-byte pieces take one key each step, four keys
 * underway; every such group keeps a maximum, a sum and values of its own (in base 2), which meet by
 * shuffles, in shared memory, and in that of the cluster's first block, in an order that never changes.
 */
#include "kernels/attention/cuda_attention.h"
#include "kernels/attention/cuda_mask.cuh"
#include "kernels/gemm/wgmma.cuh"

namespace {

using namespace ortc_attention;
using namespace ortc_hopper;

constexpr int WARPS = 8, UNDERWAY = 4;

template <typename T> struct Piece {
    static constexpr int W = 16 / (int)sizeof(T);
    T at[W];
    __device__ __forceinline__ void load(const T *p)
    {
        const uint4 x = __ldg((const uint4 *)(const void *)p);
        memcpy(at, &x, 16);
    }
};

/* Floats: values of a row, its maximum, its sum. */
template <int ROWS, int D> struct Room {
    static constexpr int row = D + 2, part = ROWS * row, warps = WARPS * part;
};

template <typename T, int ROWS, int D>
__global__ void __launch_bounds__(WARPS * 32) decode(const __grid_constant__ ortc_cu_flash f, int parts)
{
#ifdef ORTC_HOPPER
    using R = Room<ROWS, D>;
    constexpr int W = Piece<T>::W, lanes = D / W, together = 32 / lanes, step = WARPS * together;
    constexpr float log2_e = 1.44269504f;
    /* the warps' results, then those of the cluster's blocks */
    extern __shared__ __align__(16) float shared_decode[];
    __shared__ __align__(8) uint64_t come;
    const uint32_t barrier = (uint32_t)__cvta_generic_to_shared(&come),
                   received = (uint32_t)__cvta_generic_to_shared(shared_decode + R::warps);
    const ortc_cu_rows &p = f.rows;
    const int part = (int)blockIdx.x % parts, kv_heads = (int)(p.heads / f.group),
              which = (int)blockIdx.x / parts, b = which / kv_heads, kv = which % kv_heads;
    const int rows = (int)(f.group * p.length), lane = threadIdx.x % 32, warp = threadIdx.x / 32,
              at = lane % lanes * W;
    if (threadIdx.x == 0) {
        barrier_init(barrier, 1);
        barriers_made();
        if (part == 0) barrier_expect(barrier, parts * R::part * 4);
    }
    __syncthreads();
    if (parts > 1) cluster_sync();
    next_may_start();
    previous_wait();

    float q[ROWS][W], o[ROWS][W], most[ROWS], sum[ROWS];
    Row row[ROWS];
    int64_t begin = p.total, end = 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int h = kv * (int)f.group + r / (int)p.length, i = r % (int)p.length;
        Piece<T> x = {};
        row[r] = {0, 0, 0};
        if (r < rows) {
            row[r] = row_of(p, b, h, i);
            begin = row[r].from < begin ? row[r].from : begin;
            end = row[r].to > end ? row[r].to : end;
            if (at < f.size)
                x.load((const T *)f.q + b * f.q_step[0] + h * f.q_step[1] + i * f.q_step[2] + at);
        }
        most[r] = -CUDART_INF_F;
        sum[r] = 0.0f;
#pragma unroll
        for (int e = 0; e < W; e++) {
            q[r][e] = r < rows && at < f.size ? to_float(x.at[e]) : 0.0f;
            o[r][e] = 0.0f;
        }
    }
    const int64_t count = end > begin ? end - begin : 0, first = begin + count * part / parts,
                  last = begin + count * (part + 1) / parts;
    const T *k = (const T *)f.k + b * f.k_step[0] + kv * f.k_step[1] + at,
            *v = (const T *)f.v + b * f.v_step[0] + kv * f.v_step[1] + at;
#pragma unroll 1
    for (int64_t j = first + warp * together; j < last;
         j += step * UNDERWAY) { /* of the warp: its lanes shuffle */
        const int64_t key = j + lane / lanes;
        Piece<T> ks[UNDERWAY] = {}, vs[UNDERWAY] = {};
#pragma unroll
        for (int u = 0; u < UNDERWAY; u++) {
            if (key + u * step < last && at < f.size) ks[u].load(k + (key + u * step) * f.k_step[2]);
            if (key + u * step < last && at < f.value_size) vs[u].load(v + (key + u * step) * f.v_step[2]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float s[UNDERWAY], now = most[r];
#pragma unroll
            for (int u = 0; u < UNDERWAY; u++) {
                s[u] = 0.0f;
#pragma unroll
                for (int e = 0; e < W; e++)
                    s[u] = fmaf(q[r][e], at < f.size ? to_float(ks[u].at[e]) : 0.0f, s[u]);
#pragma unroll
                for (int m = 1; m < lanes; m *= 2) s[u] += __shfl_xor_sync(~0u, s[u], m);
                s[u] *= f.scale;
                if (p.softcap > 0.0f) s[u] = p.softcap * tanhf(s[u] / p.softcap);
                const int64_t it = key + u * step;
                const float bias = r < rows && it < last ? bias_of(p, row[r], it) : -CUDART_INF_F;
                /* what is masked counts for nothing, NaN too */
                s[u] = bias == -CUDART_INF_F ? -CUDART_INF_F : (s[u] + bias) * log2_e;
                now = fmaxf(now, s[u]);
            }
            const float base = now == -CUDART_INF_F ? 0.0f : now, less = exp2f(most[r] - base);
            most[r] = now;
            sum[r] *= less;
#pragma unroll
            for (int e = 0; e < W; e++) o[r][e] *= less;
#pragma unroll
            for (int u = 0; u < UNDERWAY; u++) {
                const float weight = exp2f(s[u] - base);
                sum[r] += weight;
                if (weight != 0.0f) /* nothing times what nobody wrote is nothing */
#pragma unroll
                    for (int e = 0; e < W; e++) o[r][e] = fmaf(weight, to_float(vs[u].at[e]), o[r][e]);
            }
        }
    }

    /* The groups of a warp, the warps, the blocks. */
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int m = lanes; m < 32; m *= 2) {
            const float other = __shfl_xor_sync(~0u, most[r], m), now = fmaxf(most[r], other),
                        base = now == -CUDART_INF_F ? 0.0f : now;
            const float mine = exp2f(most[r] - base), theirs = exp2f(other - base);
            sum[r] = sum[r] * mine + __shfl_xor_sync(~0u, sum[r], m) * theirs;
#pragma unroll
            for (int e = 0; e < W; e++) o[r][e] = o[r][e] * mine + __shfl_xor_sync(~0u, o[r][e], m) * theirs;
            most[r] = now;
        }
        float *to = shared_decode + warp * R::part + r * R::row;
        if (lane < lanes)
#pragma unroll
            for (int e = 0; e < W; e++) to[at + e] = o[r][e];
        if (lane == 0) {
            to[D] = most[r];
            to[D + 1] = sum[r];
        }
    }
    __syncthreads();
    const uint32_t there = address_in(received, 0) + part * R::part * 4,
                   barrier_there = address_in(barrier, 0);
    for (int i = (int)threadIdx.x; i < ROWS * R::row / 2;
         i += WARPS * 32) { /* pairs; the last of a row are its maximum and sum */
        const int r = i / (R::row / 2), d = i % (R::row / 2) * 2;
        const float *from = shared_decode + r * R::row;
        float now = -CUDART_INF_F, x = 0.0f, y = 0.0f;
        for (int w = 0; w < WARPS; w++) now = fmaxf(now, from[w * R::part + D]);
        for (int w = 0; w < WARPS; w++) {
            const float share = exp2f(from[w * R::part + D] - (now == -CUDART_INF_F ? 0.0f : now));
            x += share * from[w * R::part + d];
            y += share * from[w * R::part + d + 1];
        }
        if (parts == 1)
            *(float2 *)(shared_decode + R::warps + r * R::row + d) = make_float2(d == D ? now : x, y);
        else
            push(there + (r * R::row + d) * 4, d == D ? now : x, y, barrier_there);
    }
    if (part != 0) return;
    if (parts == 1)
        __syncthreads();
    else
        barrier_wait(barrier, 0);
    for (int i = (int)threadIdx.x; i < rows * D; i += WARPS * 32) {
        const int r = i / D, d = i % D, h = kv * (int)f.group + r / (int)p.length;
        const float *from = shared_decode + R::warps + r * R::row;
        float now = -CUDART_INF_F, x = 0.0f, all = 0.0f;
        for (int c = 0; c < parts; c++) now = fmaxf(now, from[c * R::part + D]);
        for (int c = 0; c < parts; c++) {
            const float share = exp2f(from[c * R::part + D] - (now == -CUDART_INF_F ? 0.0f : now));
            x += share * from[c * R::part + d];
            all += share * from[c * R::part + D + 1];
        }
        if (d < f.value_size)
            ((T *)f.y)[b * f.y_step[0] + h * f.y_step[1] + r % (int)p.length * f.y_step[2] + d] =
                from_float<T>(all == 0.0f ? 0.0f : x / all);
    }
#endif
}

template <typename T, int ROWS, int D> int launch(const ortc_cu_flash &f, int parts, cudaStream_t stream)
{
    const auto kernel = decode<T, ROWS, D>;
    const int shared = (WARPS + parts) * Room<ROWS, D>::part * 4;
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (e != cudaSuccess) return e;
    cudaLaunchAttribute with[2] = {};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3((unsigned)(f.rows.batch * (f.rows.heads / f.group) * parts));
    launch.blockDim = dim3(WARPS * 32);
    launch.dynamicSmemBytes = (size_t)shared;
    launch.stream = stream;
    launch.attrs = with;
    launch.numAttrs = 2;
    with[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    with[0].val.programmaticStreamSerializationAllowed = 1;
    with[1].id = cudaLaunchAttributeClusterDimension;
    with[1].val.clusterDim.x = (unsigned)parts;
    with[1].val.clusterDim.y = with[1].val.clusterDim.z = 1;
    e = cudaLaunchKernelEx(&launch, kernel, f, parts);
    return e != cudaSuccess ? e : cudaGetLastError();
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

extern "C" int ortc_cu_decode(const ortc_cu_flash *f, int parts, void *queue)
{
    return f->rows.type == ORTC_F32   ? launch_of<float>(*f, parts, (cudaStream_t)queue)
           : f->rows.type == ORTC_F16 ? launch_of<__half>(*f, parts, (cudaStream_t)queue)
                                      : launch_of<__nv_bfloat16>(*f, parts, (cudaStream_t)queue);
}
