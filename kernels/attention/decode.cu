/* kernels/attention/decode.cu: attention of few queries over many keys, where what counts is to read keys
 * and values once at the memory's rate: sm_90 on.
 *
 * A cluster of blocks takes a sample and a key head with all its query rows (of all heads of the group),
 * each block a part of the keys. Warps keep maxima, sums and values of their own (in base 2), which meet in
 * shared memory, and in that of the cluster's first block, in an order that never changes (decode.cuh).
 *
 * Here: f32; and one row of 16 bits for each of more key heads than there are multiprocessors, whose loads,
 * from as many warps as fit, fill the memory's queues best (16 x 32 heads, 2048 keys: 126 us, 132 by
 * decode_ring.cu, which has the rest). As many lanes as hold a key in 16-byte pieces take one key each step,
 * four keys underway. One row is bound by instructions: its lanes take four pieces of a key each, so that
 * what a key costs besides products is done by fewer.
 */
#include "kernels/attention/decode.cuh"
#include "kernels/gemm/mma.cuh"

namespace {

using namespace ortc_attention;
using ortc_gemm::power_of_2;

template <typename T> struct Piece {
    static constexpr int W = 16 / (int)sizeof(T);
    T at[W];
    __device__ __forceinline__ void load(const T *p)
    {
        const uint4 x = __ldg((const uint4 *)(const void *)p);
        memcpy(at, &x, 16);
    }
};

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
    const Place place = begin_block<ROWS, D>(f, parts, shared_decode + R::warps, &come);
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
    meet<T, ROWS, D>(f, parts, place, shared_decode, shared_decode + R::warps);
#endif
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

template <typename T, int ROWS, int D> int launch(const ortc_cu_flash &f, int parts, cudaStream_t stream)
{
    return launch_blocks(decode<T, ROWS, D>, clusters_of(f, parts), parts, WARPS * 32,
                         (WARPS + parts) * Room<ROWS, D>::part * 4, stream, f, parts);
}

template <typename T, int ROWS> int launch_of(const ortc_cu_flash &f, int parts, cudaStream_t stream)
{
    return f.size <= 64 && f.value_size <= 64 ? launch<T, ROWS, 64>(f, parts, stream)
                                              : launch<T, ROWS, 128>(f, parts, stream);
}

} // namespace

extern "C" int ortc_cu_decode(const ortc_cu_flash *f, int parts, void *queue)
{
    const cudaStream_t stream = (cudaStream_t)queue;
    const int64_t rows = f->group * f->rows.length;
    if (f->rows.type == ORTC_F32)
        return rows == 1   ? launch_of<float, 1>(*f, parts, stream)
               : rows <= 4 ? launch_of<float, 4>(*f, parts, stream)
                           : launch_of<float, 8>(*f, parts, stream);
    if (rows > 1 || f->rows.batch * f->rows.heads <= f->processors)
        return ortc_cu_decode_ring(f, parts, queue);
    return f->rows.type == ORTC_F16 ? launch_of<__half, 1>(*f, parts, stream)
                                    : launch_of<__nv_bfloat16, 1>(*f, parts, stream);
}
