/* kernels/attention/decode.cu: attention of few queries over many keys, where what counts is to read keys and
 * values once at the memory's rate: sm_90 on.
 *
 * A cluster of blocks takes a sample and a key head with all its query rows (of all heads of the group), each
 * block a part of the keys. Warps keep maxima, sums and values of their own (in base 2), which meet in shared
 * memory, and in that of the cluster's first block, in an order that never changes.
 *
 *   pairs    f16, bf16: a warp takes 16 keys a step, by tensor cores. Scores are rows by keys, which lie in
 *            registers as the second operand of values (dims by keys) times weights (keys by rows) does.
 *            Sums do not mind the order of what is summed, nor tiles that of their rows, so that each thread
 *            reads 16 bytes of a row and uses all of them: of keys, 8 dims for two steps; of values, 8 dims
 *            that are the same row of 8 tiles, four keys each
 *   decode   f32, and one row, which tensor cores do nothing for: as many lanes as hold a key in 16-byte
 *            pieces take one key each step, four keys underway. One row is bound by instructions: its lanes
 *            take four pieces of a key each, so that what a key costs besides products is done by fewer
 */
#include "kernels/attention/cuda_attention.h"
#include "kernels/attention/cuda_mask.cuh"
#include "kernels/gemm/mma.cuh"
#include "kernels/gemm/wgmma.cuh"

namespace {

using namespace ortc_attention;
using namespace ortc_hopper;
using ortc_gemm::power_of_2;

constexpr int WARPS = 8;

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

#ifdef ORTC_HOPPER
/* A block's part of the keys, its sample and key head; where the cluster's first block receives the results
 * of all, and the barrier that counts them. */
struct Place {
    int part, b, kv;
    uint32_t barrier, received;
};
/* How a block begins. shared_decode: the warps' results, then those of the cluster's blocks; come: a
 * barrier's place. What the kernel before wrote may be read from here on. */
template <int ROWS, int D>
__device__ __forceinline__ Place begin_block(const ortc_cu_flash &f, int parts, float *shared_decode,
                                             uint64_t *come)
{
    using R = Room<ROWS, D>;
    const int kv_heads = (int)(f.rows.heads / f.group), which = (int)blockIdx.x / parts;
    const Place place = {(int)blockIdx.x % parts, which / kv_heads, which % kv_heads,
                         (uint32_t)__cvta_generic_to_shared(come),
                         (uint32_t)__cvta_generic_to_shared(shared_decode + R::warps)};
    if (threadIdx.x == 0) {
        barrier_init(place.barrier, 1);
        barriers_made();
        if (place.part == 0) barrier_expect(place.barrier, parts * R::part * 4);
    }
    __syncthreads();
    if (parts > 1) cluster_sync();
    next_may_start();
    previous_wait();
    return place;
}

/* The results of a block's warps, then those of the cluster's blocks. */
template <typename T, int ROWS, int D>
__device__ __forceinline__ void meet(const ortc_cu_flash &f, int parts, const Place &place,
                                     float *shared_decode)
{
    using R = Room<ROWS, D>;
    const ortc_cu_rows &p = f.rows;
    const int rows = (int)(f.group * p.length), part = place.part, b = place.b, kv = place.kv;
    const uint32_t barrier = place.barrier, received = place.received;
    __syncthreads();
    const uint32_t there = address_in(received, 0) + part * R::part * 4,
                   barrier_there = address_in(barrier, 0);
    for (int i = (int)threadIdx.x; i < ROWS * R::row / 2;
         i += WARPS * 32) { /* pairs; the last of a row are its maximum and sum */
        const int r = i / (R::row / 2), d = i % (R::row / 2) * 2;
        const float *from = shared_decode + r * R::row;
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
#pragma unroll 8
        for (int c = 0; c < parts; c++) now = fmaxf(now, from[c * R::part + D]);
#pragma unroll 8
        for (int c = 0; c < parts; c++) {
            const float share = exp2f(from[c * R::part + D] - (now == -CUDART_INF_F ? 0.0f : now));
            x += share * from[c * R::part + d];
            all += share * from[c * R::part + D + 1];
        }
        if (d < f.value_size)
            ((T *)f.y)[b * f.y_step[0] + h * f.y_step[1] + r % (int)p.length * f.y_step[2] + d] =
                from_float<T>(all == 0.0f ? 0.0f : x / all);
    }
}
#endif

template <typename T, int ROWS, int D>
__global__ void __launch_bounds__(WARPS * 32, ROWS == 1 ? 2 : 1)
    decode(const __grid_constant__ ortc_cu_flash f, int parts)
{
#ifdef ORTC_HOPPER
    using R = Room<ROWS, D>;
    constexpr int PIECES = ROWS == 1 ? 4 : 1, UNDERWAY = 4 / PIECES; /* of a lane: of a key; keys */
    constexpr int W = Piece<T>::W, lanes = D / W / PIECES, together = 32 / lanes, step = WARPS * together,
                  own = W * PIECES;
    constexpr float log2_e = 1.44269504f;
    extern __shared__ __align__(16) float shared_decode[];
    __shared__ __align__(8) uint64_t come;
    const Place place = begin_block<ROWS, D>(f, parts, shared_decode, &come);
    const ortc_cu_rows &p = f.rows;
    const int part = place.part, b = place.b, kv = place.kv;
    const int rows = (int)(f.group * p.length), lane = threadIdx.x % 32, warp = threadIdx.x / 32,
              at = lane % lanes * W; /* and from there every lanes * W */
    float q[ROWS][own], o[ROWS][own], most[ROWS], sum[ROWS];
    Piece<T> asked[ROWS][PIECES] = {};
    Row row[ROWS];
    int begin = (int)p.total, end = 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int h = kv * (int)f.group + r / (int)p.length, i = r % (int)p.length;
        row[r] = {0, 0, 0};
        if (r < rows) {
            row[r] = row_of(p, b, h, i);
            begin = (int)row[r].from < begin ? (int)row[r].from : begin;
            end = (int)row[r].to > end ? (int)row[r].to : end;
#pragma unroll
            for (int c = 0; c < PIECES; c++)
                if (at + c * lanes * W < f.size)
                    asked[r][c].load((const T *)f.q + b * f.q_step[0] + h * f.q_step[1] + i * f.q_step[2] +
                                     at + c * lanes * W);
        }
    }
    const int64_t count = end > begin ? end - begin : 0;
    const int first = begin + (int)(count * part / parts), last = begin + (int)(count * (part + 1) / parts);
    const T *k = (const T *)f.k + b * f.k_step[0] + kv * f.k_step[1],
            *v = (const T *)f.v + b * f.v_step[0] + kv * f.v_step[1];
    Piece<T> ks[UNDERWAY][PIECES], vs[UNDERWAY][PIECES];
    auto load = [&](int j) { /* keys j + lane / lanes and on: what is not there is zeros */
#pragma unroll
                             for (int u = 0; u < UNDERWAY; u++)
#pragma unroll
                                 for (int c = 0; c < PIECES; c++) {
                                     const int key = j + lane / lanes + u * step, d = at + c * lanes * W;
                                     ks[u][c] = vs[u][c] = {};
                                     if (key < last && d < f.size) ks[u][c].load(k + key * f.k_step[2] + d);
                                     if (key < last && d < f.value_size)
                                         vs[u][c].load(v + key * f.v_step[2] + d);
                                 }
    };
    const int begun = first + warp * together;
    load(begun);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        most[r] = -CUDART_INF_F;
        sum[r] = 0.0f;
#pragma unroll
        for (int e = 0; e < own; e++) {
            q[r][e] = to_float(asked[r][e / W].at[e % W]);
            o[r][e] = 0.0f;
        }
    }
#pragma unroll 1
    for (int j = begun; j < last; j += step * UNDERWAY) { /* of the warp: its lanes shuffle */
        const int key = j + lane / lanes;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float s[UNDERWAY], now = most[r];
#pragma unroll
            for (int u = 0; u < UNDERWAY; u++) {
                s[u] = 0.0f;
#pragma unroll
                for (int e = 0; e < own; e++) s[u] = fmaf(q[r][e], to_float(ks[u][e / W].at[e % W]), s[u]);
#pragma unroll
                for (int m = 1; m < lanes; m *= 2) s[u] += __shfl_xor_sync(~0u, s[u], m);
                s[u] *= f.scale;
                if (p.softcap > 0.0f) s[u] = p.softcap * tanhf(s[u] / p.softcap);
                const int it = key + u * step;
                float bias = -CUDART_INF_F;
                if (ROWS == 1) { /* whose keys are those from begin to end */
                    if (it < last)
                        bias = p.mask_type ? load_mask(p.mask_type, p.mask, row[r].mask + it) : 0.0f;
                } else if (r < rows && it < last)
                    bias = bias_of(p, row[r], it);
                /* what is masked counts for nothing, NaN too */
                s[u] = bias == -CUDART_INF_F ? -CUDART_INF_F : (s[u] + bias) * log2_e;
                now = fmaxf(now, s[u]);
            }
            const float base = now == -CUDART_INF_F ? 0.0f : now, less = power_of_2(most[r] - base);
            most[r] = now;
            sum[r] *= less;
#pragma unroll
            for (int e = 0; e < own; e++) o[r][e] *= less;
#pragma unroll
            for (int u = 0; u < UNDERWAY; u++) {
                const float weight = power_of_2(s[u] - base);
                sum[r] += weight;
                if (weight != 0.0f) /* nothing times what nobody wrote is nothing */
#pragma unroll
                    for (int e = 0; e < own; e++)
                        o[r][e] = fmaf(weight, to_float(vs[u][e / W].at[e % W]), o[r][e]);
            }
        }
        load(j + step * UNDERWAY);
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
            for (int e = 0; e < own; e++)
                o[r][e] = o[r][e] * mine + __shfl_xor_sync(~0u, o[r][e], m) * theirs;
            most[r] = now;
        }
        float *to = shared_decode + warp * R::part + r * R::row;
        if (lane < lanes)
#pragma unroll
            for (int e = 0; e < own; e++) to[at + e / W * (lanes * W) + e % W] = o[r][e];
        if (lane == 0) {
            to[D] = most[r];
            to[D + 1] = sum[r];
        }
    }
    meet<T, ROWS, D>(f, parts, place, shared_decode);
#endif
}

/* ---- By tensor cores ----------------------------------------------------------------------------------- */

#ifdef ORTC_HOPPER
/* 16 bytes; zeros where there is nothing. */
template <typename T> __device__ __forceinline__ uint4 piece(const T *p, bool there)
{
    return there ? __ldg((const uint4 *)(const void *)p) : make_uint4(0, 0, 0, 0);
}
__device__ __forceinline__ uint32_t word_of(const uint4 &x, int i)
{
    return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
}
/* Element i of each. */
__device__ __forceinline__ uint32_t both(const uint4 &x, const uint4 &y, int i)
{
    return __byte_perm(word_of(x, i / 2), word_of(y, i / 2), i % 2 ? 0x7632 : 0x5410);
}
template <typename T> __device__ __forceinline__ uint32_t rounded(float x, float y)
{
    const T pair[2] = {from_float<T>(x), from_float<T>(y)};
    uint32_t bits;
    memcpy(&bits, pair, sizeof bits);
    return bits;
}
#endif

template <typename T, int ROWS, int D>
__global__ void __launch_bounds__(WARPS * 32) pairs(const __grid_constant__ ortc_cu_flash f, int parts)
{
#ifdef ORTC_HOPPER
    using R = Room<ROWS, D>;
    constexpr int chunks = D / 32, tiles = D / 16, halves = D / 64, KEYS = 16;
    constexpr float log2_e = 1.44269504f;
    extern __shared__ __align__(16) float shared_decode[];
    __shared__ __align__(8) uint64_t come;
    const Place place = begin_block<ROWS, D>(f, parts, shared_decode, &come);
    const ortc_cu_rows &p = f.rows;
    const int part = place.part, b = place.b, kv = place.kv;
    const int rows = (int)(f.group * p.length), lane = threadIdx.x % 32, warp = threadIdx.x / 32,
              of = lane / 4, turn = lane % 4;
    /* The row `of`: its keys, and its query: dims 32 c + 8 turn and on */
    Row row = {p.total, 0, 0};
    uint4 q[chunks];
    {
        const int h = kv * (int)f.group + of / (int)p.length, i = of % (int)p.length;
        const T *from = (const T *)f.q + b * f.q_step[0] + h * f.q_step[1] + i * f.q_step[2] + turn * 8;
        if (of < rows) row = row_of(p, b, h, i);
#pragma unroll
        for (int c = 0; c < chunks; c++) q[c] = piece(from + c * 32, of < rows && c * 32 + turn * 8 < f.size);
    }
    int64_t begin = row.from, end = row.to;
#pragma unroll
    for (int m = 4; m < 32; m *= 2) {
        const int64_t x = __shfl_xor_sync(~0u, begin, m), y = __shfl_xor_sync(~0u, end, m);
        begin = x < begin ? x : begin;
        end = y > end ? y : end;
    }
    const int64_t count = end > begin ? end - begin : 0, first = begin + count * part / parts,
                  last = begin + count * (part + 1) / parts;
    const T *k = (const T *)f.k + b * f.k_step[0] + kv * f.k_step[1] + turn * 8,
            *v = (const T *)f.v + b * f.v_step[0] + kv * f.v_step[1] + of * 8;
    float most = -CUDART_INF_F, sum = 0.0f, o[tiles][4];
#pragma unroll
    for (int j = 0; j < tiles; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) o[j][i] = 0.0f;

#pragma unroll 1
    for (int64_t at = first + warp * KEYS; at < last; at += WARPS * KEYS) {
        uint4 ks[2][chunks], vs[4][halves]; /* keys of + 8 i; keys 2 turn + i % 2 + 8 (i / 2) */
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int c = 0; c < chunks; c++)
                ks[i][c] = piece(k + (at + of + 8 * i) * f.k_step[2] + c * 32,
                                 at + of + 8 * i < last && c * 32 + turn * 8 < f.size);
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < halves; c++) {
                const int64_t key = at + 2 * turn + i % 2 + 8 * (i / 2);
                vs[i][c] = piece(v + key * f.v_step[2] + c * 64,
                                 key < last && c * 64 + of * 8 < f.value_size);
            }
        float s[4]; /* of the keys of vs */
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
            for (int c = 0; c < chunks; c++) {
                const uint32_t low[4] = {q[c].x, 0, q[c].y, 0}, high[4] = {q[c].z, 0, q[c].w, 0};
                ortc_gemm::multiply<T>(d, low, ks[i][c].x, ks[i][c].y);
                ortc_gemm::multiply<T>(d, high, ks[i][c].z, ks[i][c].w);
            }
            s[2 * i] = d[0], s[2 * i + 1] = d[1];
        }
        float now = most;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int64_t key = at + 2 * turn + i % 2 + 8 * (i / 2);
            const float bias = key < last ? bias_of(p, row, key) : -CUDART_INF_F;
            s[i] *= f.scale;
            if (p.softcap > 0.0f) s[i] = p.softcap * tanhf(s[i] / p.softcap);
            /* what is masked counts for nothing, NaN too */
            s[i] = bias == -CUDART_INF_F ? -CUDART_INF_F : (s[i] + bias) * log2_e;
            now = fmaxf(now, s[i]);
        }
        now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
        now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
        const float base = now == -CUDART_INF_F ? 0.0f : now, less = exp2f(most - base);
        if (__any_sync(~0u, most != now)) {
            const float x = __shfl_sync(~0u, less, 8 * turn), y = __shfl_sync(~0u, less, 8 * turn + 4);
#pragma unroll
            for (int j = 0; j < tiles; j++) {
                o[j][0] *= x, o[j][1] *= y, o[j][2] *= x, o[j][3] *= y;
            }
        }
        most = now;
        sum *= less;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[i] = exp2f(s[i] - base);
            sum += s[i];
        }
        /* Nothing times what nobody wrote is nothing. */
        if (__any_sync(~0u, of < rows && (s[0] == 0.0f || s[1] == 0.0f || s[2] == 0.0f || s[3] == 0.0f)))
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const bool seen = (__ballot_sync(~0u, s[i] != 0.0f) & 0x11111111u << turn) != 0;
#pragma unroll
                for (int c = 0; c < halves; c++)
                    if (!seen) vs[i][c] = make_uint4(0, 0, 0, 0);
            }
        const uint32_t low = rounded<T>(s[0], s[1]), high = rounded<T>(s[2], s[3]);
#pragma unroll
        for (int j = 0; j < tiles; j++) { /* rows of a tile: dims 8 of + j, and 64 or 4 behind */
            const int c = halves - 1, i = halves == 2 ? j : j + 4;
            const uint32_t a[4] = {both(vs[0][0], vs[1][0], j), both(vs[0][c], vs[1][c], i),
                                   both(vs[2][0], vs[3][0], j), both(vs[2][c], vs[3][c], i)};
            ortc_gemm::multiply<T>(o[j], a, low, high);
        }
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    float *to = shared_decode + warp * R::part;
#pragma unroll
    for (int j = 0; j < tiles; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = 2 * turn + i % 2, d = of * 8 + j + i / 2 * (halves == 2 ? 64 : 4);
            if (r < ROWS) to[r * R::row + d] = o[j][i];
        }
    if (turn == 0 && of < ROWS) {
        to[of * R::row + D] = most;
        to[of * R::row + D + 1] = sum;
    }
    meet<T, ROWS, D>(f, parts, place, shared_decode);
#endif
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

template <typename T, int ROWS, int D> struct Kernel {
    static constexpr auto of = pairs<T, ROWS, D>;
};
template <typename T, int D> struct Kernel<T, 1, D> {
    static constexpr auto of = decode<T, 1, D>;
};
template <int ROWS, int D> struct Kernel<float, ROWS, D> {
    static constexpr auto of = decode<float, ROWS, D>;
};
template <int D> struct Kernel<float, 1, D> {
    static constexpr auto of = decode<float, 1, D>;
};

template <typename T, int ROWS, int D> int launch(const ortc_cu_flash &f, int parts, cudaStream_t stream)
{
    const auto kernel = Kernel<T, ROWS, D>::of;
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
