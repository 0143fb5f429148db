/* kernels/attention/flash_split.cu: attention of f32 in one pass over the keys by Hopper's tensor cores
 * (sm_90a), at the accuracy of f32.
 *
 * A float is three of bf16, and of the nine products of pieces the six largest are taken (gemm/split.cuh). A
 * kernel before splits keys and values into three planes each in the workspace, so that they come by the copy
 * engine as operands; queries are split by the block that has them, exponentials in registers. As in
 * flash_wgmma.cuh a block takes 128 rows of queries of one head, a warpgroup 64 of them (64 rows where they
 * are few), and one thread loads. No more than 32 products are summed by tensor cores, which cut where f32
 * would round: these sums are added as f32. One buffer of keys and one of values do: while a warpgroup takes
 * exponentials or waits for a product, the other multiplies.
 *
 * What is infinite, NaN or so large that products might not be finite cannot be split: blocks that meet it,
 * which they are told by the kernel before, take their rows one by one.
 */
#include "kernels/attention/flash_wgmma.cuh"
#include "kernels/gemm/split.cuh"

namespace ortc_attention {

/* D: elements of a head, 64 or 128; GROUPS: warpgroups that multiply, 64 rows each. A plane of the queries
 * of a warpgroup, or of 64 keys or values, is slabs of 64 elements of a head. Pieces of 128 keys are as quick
 * (within 4 % either way), and slower where there are 64 keys in all (10.1 us and 7.8). */
template <int D_, int GROUPS_> struct SplitShape {
    static constexpr int D = D_, KEYS = 64, GROUPS = GROUPS_, rows = 64 * GROUPS, slabs = D / 64;
    static constexpr int plane = slabs * SLAB, q_bytes = GROUPS * 3 * plane, piece_bytes = 3 * plane;
    static constexpr int shared = 1024 + q_bytes + 2 * piece_bytes, loads = GROUPS * 128,
                         threads = loads + 128;
};

/* Keys and values split: planes [3, heads of keys, keys, pitch], and for each CHUNK keys of a head whether
 * all could be. */
constexpr int CHUNK = 32;
struct Planes {
    __nv_bfloat16 *k, *v;
    int32_t *odd; /* [key heads, chunks], of keys; likewise of values */
    int chunks, heads;
    int pitch_k, pitch_v;
};

__device__ __forceinline__ bool splits(float x) { return fabsf(x) < 1e18f; }

#ifdef ORTC_HOPPER

/* Eight elements of a row of `size`, from `at` on, as three pieces each; zeros behind its end. aligned: all
 * is in pieces of 16 bytes. */
__device__ __forceinline__ void split_eight(const float *row, int at, int size, bool aligned, uint4 (&p)[3],
                                            int &odd)
{
    float e[8];
    if (aligned && at < size) {
        *(float4 *)e = *(const float4 *)(const void *)(row + at);
        *(float4 *)(e + 4) = *(const float4 *)(const void *)(row + at + 4);
    } else
#pragma unroll
        for (int j = 0; j < 8; j++) e[j] = at + j < size ? row[at + j] : 0.0f;
#pragma unroll
    for (int j = 0; j < 8; j++) odd |= !splits(e[j]);
    ortc_gemm::split(make_float4(e[0], e[1], e[2], e[3]), make_float4(e[4], e[5], e[6], e[7]), p);
}

#endif

/* Blocks: chunks x heads of keys x (keys, values). */
__global__ void __launch_bounds__(128)
    split_heads(const __grid_constant__ ortc_cu_flash f, const __grid_constant__ Planes to)
{
#ifdef ORTC_HOPPER
    const bool values = blockIdx.z;
    const int pitch = values ? to.pitch_v : to.pitch_k, size = values ? f.value_size : f.size;
    const int head = (int)blockIdx.y, kv_heads = (int)(f.rows.heads / f.group), b = head / kv_heads,
              h = head - b * kv_heads, keys = (int)f.rows.total, first = (int)blockIdx.x * CHUNK;
    const int64_t *step = values ? f.v_step : f.k_step;
    const float *from = (const float *)(values ? f.v : f.k) + b * step[0] + h * step[1];
    __nv_bfloat16 *plane = (values ? to.v : to.k) + (int64_t)head * keys * pitch;
    const int64_t next_plane = (int64_t)to.heads * keys * pitch;
    int odd = 0;
    ortc_cu_previous();
    for (int i = (int)threadIdx.x; i < CHUNK * (pitch / 8); i += 128) {
        const int key = first + i / (pitch / 8), at = i % (pitch / 8) * 8;
        if (key >= keys) break;
        uint4 p[3];
        split_eight(from + key * step[2], at, size, f.aligned, p, odd);
#pragma unroll
        for (int j = 0; j < 3; j++)
            *(uint4 *)(void *)(plane + j * next_plane + (int64_t)key * pitch + at) = p[j];
    }
    odd = __syncthreads_or(odd);
    if (threadIdx.x == 0) to.odd[((int64_t)blockIdx.z * to.heads + head) * to.chunks + blockIdx.x] = odd;
#endif
}

#ifdef ORTC_HOPPER

/* Rows from `first` on, one by one, a warp each, as f32: by definition. */
template <class S> __device__ __noinline__ void rows_plainly(const ortc_cu_flash &f, int b, int h, int first)
{
    constexpr int D = S::D;
    const ortc_cu_rows &p = f.rows;
    const int lane = threadIdx.x % 32, warps = (int)blockDim.x / 32;
    const float *keys = (const float *)f.k + b * f.k_step[0] + h / f.group * f.k_step[1],
                *values = (const float *)f.v + b * f.v_step[0] + h / f.group * f.v_step[1];
    for (int i = (int)threadIdx.x / 32; i < S::rows && first + i < (int)p.length; i += warps) {
        const Row r = row_of(p, b, h, first + i);
        const float *q = (const float *)f.q + b * f.q_step[0] + h * f.q_step[1] + (first + i) * f.q_step[2];
        float most = -CUDART_INF_F, sum = 0.0f, o[D / 32] = {};
        bool seen = false;
        auto score = [&](int64_t j) {
            float s = 0.0f;
            for (int d = 0; d < f.size; d++) s = fmaf(q[d], keys[j * f.k_step[2] + d], s);
            s *= f.scale;
            if (p.softcap > 0.0f) s = p.softcap * tanhf(s / p.softcap);
            return s;
        };
        for (int64_t j = lane; j < p.total; j += 32) {
            const float bias = bias_of(p, r, j), s = score(j) + bias;
            seen |= bias != -CUDART_INF_F;
            most = s != s || s > most ? s : most; /* NaN stays */
        }
#pragma unroll
        for (int s = 16; s; s /= 2) {
            const float other = __shfl_xor_sync(~0u, most, s);
            most = other != other || other > most ? other : most;
        }
        seen = __any_sync(~0u, seen);
        if (most == -CUDART_INF_F) most = 0.0f;
        for (int64_t j = 0; j < p.total; j += 32) {
            float e = 0.0f;
            if (j + lane < p.total && seen) e = expf(score(j + lane) + bias_of(p, r, j + lane) - most);
            sum += e;
            for (int l = 0; l < 32 && j + l < p.total; l++) {
                const float by = __shfl_sync(~0u, e, l);
#pragma unroll
                for (int c = 0; c < D / 32; c++)
                    if (c * 32 + lane < f.value_size)
                        o[c] = fmaf(by, values[(j + l) * f.v_step[2] + c * 32 + lane], o[c]);
            }
        }
#pragma unroll
        for (int s = 16; s; s /= 2) sum += __shfl_xor_sync(~0u, sum, s);
        if (sum == 0.0f) sum = 1.0f;
        float *y = (float *)f.y + b * f.y_step[0] + h * f.y_step[1] + (first + i) * f.y_step[2];
#pragma unroll
        for (int c = 0; c < D / 32; c++)
            if (c * 32 + lane < f.value_size) y[c * 32 + lane] = o[c] / sum;
    }
}

/* The six products of pieces, the smallest first: of the left one and the right one. */
__device__ __forceinline__ constexpr int left_piece(int p) { return p == 0 ? 2 : p == 2 || p == 3; }
__device__ __forceinline__ constexpr int right_piece(int p) { return p == 1 ? 2 : p == 2 || p == 4; }

/* d = 32 elements of a head of queries times those of keys, underway. */
template <class S>
__device__ __forceinline__ void multiply_keys_split(float (&d)[S::KEYS / 2], uint32_t queries, uint32_t keys,
                                                    int chunk)
{
    settle(d);
    products_begin();
#pragma unroll
    for (int p = 0; p < 6; p++)
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const int k = chunk * 2 + part; /* of 16 */
            const uint64_t q = operand(queries, false) + (left_piece(p) * S::plane + k / 4 * SLAB >> 4),
                           x = operand(keys, false) + (right_piece(p) * S::plane + k / 4 * SLAB >> 4);
            ortc_hopper::multiply<__nv_bfloat16, 0, 0>(d, q + k % 4 * 2, x + k % 4 * 2, p | part);
        }
    products_commit();
    settle(d);
}
/* d = the weights of 32 keys times their values, underway. */
template <class S>
__device__ __forceinline__ void multiply_values_split(float (&d)[S::D / 2], const uint32_t (&w)[2][3][4],
                                                      uint32_t values, int chunk)
{
    settle(d);
    products_begin();
#pragma unroll
    for (int p = 0; p < 6; p++)
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const int k = chunk * 2 + part;
            const uint64_t v = operand(values, true) + (right_piece(p) * S::plane >> 4) + k * next_16(true);
            ortc_hopper::multiply<__nv_bfloat16, 1>(d, w[part][left_piece(p)], v, p | part);
        }
    products_commit();
    settle(d);
}

#endif

template <class S>
__global__ void __launch_bounds__(S::threads, 1)
    flash_split(const __grid_constant__ ortc_cu_flash f, const __grid_constant__ FlashMaps maps,
                const __grid_constant__ Planes planes)
{
#ifdef ORTC_HOPPER
    constexpr int D = S::D, keys = S::KEYS;
    extern __shared__ char shared_flash_split[];
    __shared__ __align__(8) uint64_t barriers[4];
    const int skew = (1024 - (int)((uint32_t)__cvta_generic_to_shared(shared_flash_split) % 1024)) % 1024;
    char *const queries = shared_flash_split + skew;
    const uint32_t q_tile = (uint32_t)__cvta_generic_to_shared(queries), k_tile = q_tile + S::q_bytes,
                   v_tile = k_tile + S::piece_bytes;
    const uint32_t k_full = (uint32_t)__cvta_generic_to_shared(barriers), k_empty = k_full + 8,
                   v_full = k_empty + 8, v_empty = v_full + 8;
    const ortc_cu_rows &p = f.rows;
    const int tiles = ((int)p.length + S::rows - 1) / S::rows, head = (int)blockIdx.x / tiles;
    const int first = (tiles - 1 - ((int)blockIdx.x - head * tiles)) * S::rows;
    const int last = (first + S::rows < (int)p.length ? first + S::rows : (int)p.length) - 1;
    const int b = head / (int)p.heads, h = head - b * (int)p.heads,
              key_head = b * (int)(p.heads / f.group) + h / (int)f.group;
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;

    if (threadIdx.x == S::loads) {
        barrier_init(k_full, 1);
        barrier_init(v_full, 1);
        barrier_init(k_empty, 4 * S::GROUPS);
        barrier_init(v_empty, 4 * S::GROUPS);
        barriers_made();
        map_prefetch(&maps.k);
        map_prefetch(&maps.v);
    }
    next_may_start();
    previous_wait();
    const int begin = (int)(row_of(p, b, h, first).from / keys),
              end = (int)((row_of(p, b, h, last).to + keys - 1) / keys);
    auto load_planes = [&](const CUtensorMap *map, uint32_t to, uint32_t full, uint32_t empty, int piece,
                           int parity) {
        barrier_wait(empty, parity);
        barrier_expect(full, S::piece_bytes);
        for (int e = 0; e < 3; e++) {
            const int at[3] = {e * planes.heads + key_head, 0, 0};
            for (int i = 0; i < S::slabs; i++)
                tile_load(to + e * S::plane + i * SLAB, map, full, i * 64, piece * keys, at);
        }
    };
    auto load = [&](int piece, int parity) {
        load_planes(&maps.k, k_tile, k_full, k_empty, piece, parity);
        load_planes(&maps.v, v_tile, v_full, v_empty, piece, parity);
    };

    int odd = 0;
    if (threadIdx.x == S::loads) {
        if (begin < end) load(begin, 1);
    } else if (group < S::GROUPS) { /* this warpgroup's queries */
        const float *from = (const float *)f.q + b * f.q_step[0] + h * f.q_step[1];
#pragma unroll 2
        for (int i = (int)threadIdx.x % 128; i < 64 * D / 8; i += 128) {
            const int row = i / (D / 8), at = i % (D / 8) * 8, q = first + group * 64 + row;
            uint4 s[3];
            split_eight(from + q * f.q_step[2], at, q < (int)p.length ? f.size : 0, f.aligned, s, odd);
#pragma unroll
            for (int j = 0; j < 3; j++)
                *(uint4 *)(queries + (group * 3 + j) * S::plane + at / 64 * SLAB + row * 128 +
                           (at % 64 / 8 ^ (row & 7)) * 16) = s[j];
        }
        tile_written();
        const int32_t *told = planes.odd + (int64_t)key_head * planes.chunks;
        for (int i = (int)threadIdx.x; i < planes.chunks; i += S::loads)
            odd |= told[i] | told[(int64_t)planes.heads * planes.chunks + i];
    }
    if (__syncthreads_or(odd)) {
        rows_plainly<S>(f, b, h, first);
        if (threadIdx.x == S::loads && begin < end) { /* nothing comes after the block's end */
            barrier_wait(k_full, 0);
            barrier_wait(v_full, 0);
        }
        return;
    }
    if (group == S::GROUPS) {
        if constexpr (S::GROUPS > 1) registers_less<24>();
        if (threadIdx.x == S::loads)
            for (int piece = begin + 1, parity = 0; piece < end; piece++, parity ^= 1) load(piece, parity);
        return;
    }
    if constexpr (S::GROUPS > 1) registers_more<240>();

    const int64_t warp_first = first + group * 64 + warp * 16;
    Scores<float, keys> scores(f, b, h, warp_first);
    float(&s)[keys / 2] = scores.s, o[D / 2];
#pragma unroll
    for (int n = 0; n < D / 2; n++) o[n] = 0.0f;
    auto release = [&](uint32_t barrier) {
        __syncwarp();
        if (lane == 0) barrier_arrive(barrier);
    };
#pragma unroll 1
    for (int piece = begin, parity = 0; piece < end; piece++, parity ^= 1) {
        const uint32_t own = q_tile + group * 3 * S::plane;
        barrier_wait(k_full, parity);
        {
            float d[keys / 2];
            multiply_keys_split<S>(s, own, k_tile, 0);
            products_wait<0>();
            settle(s);
#pragma unroll
            for (int chunk = 1; chunk < D / 32; chunk++) {
                multiply_keys_split<S>(d, own, k_tile, chunk);
                products_wait<0>();
                settle(d);
#pragma unroll
                for (int n = 0; n < keys / 2; n++) s[n] += d[n];
            }
        }
        release(k_empty);
        scores.softmax(piece * keys);
#pragma unroll
        for (int n = 0; n < D / 2; n++) o[n] *= scores.less[n / 2 % 2];
        barrier_wait(v_full, parity);
        float d[D / 2];
#pragma unroll
        for (int chunk = 0; chunk < keys / 32; chunk++) {
            uint32_t w[2][3][4];
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const int at = chunk * 16 + e * 2;
                ortc_gemm::split(s[at], s[at + 1], w[e / 4][0][e % 4], w[e / 4][1][e % 4],
                                 w[e / 4][2][e % 4]);
            }
            multiply_values_split<S>(d, w, v_tile, chunk);
            products_wait<0>();
            settle(d);
            ortc_gemm::keep(w);
#pragma unroll
            for (int n = 0; n < D / 2; n++) o[n] += d[n];
        }
        release(v_empty);
    }
    scores.store(f, b, h, warp_first, o);
#endif
}

/* Of workspace: planes of keys, of values, flags. */
static int64_t pitch_of(int64_t size) { return (size + 7) / 8 * 8; }
static int64_t chunks_of(int64_t keys) { return (keys + CHUNK - 1) / CHUNK; }
static int64_t whole(int64_t bytes) { return (bytes + 255) / 256 * 256; }
static int64_t plane_bytes(int64_t heads, int64_t keys, int64_t size)
{
    return whole(3 * heads * keys * pitch_of(size) * 2);
}

/* Planes as rows of heads: a copy takes 64 of one. */
static bool plane_map(CUtensorMap *map, const Planes &planes, const void *data, int64_t keys, int64_t size,
                      int pitch)
{
    ortc_cu_gemm g = {};
    g.type = ORTC_BF16, g.k = size, g.rank = 1, g.dims[0] = 3 * (int64_t)planes.heads;
    const int64_t step[3] = {keys * pitch, 0, 0};
    return ortc_gemm::map_of(map, g, data, keys, pitch, 1, step, false, 64);
}

template <class S> static int launch_split(const ortc_cu_flash &f, const Planes &planes, void *queue)
{
    const int64_t blocks = (f.rows.length + S::rows - 1) / S::rows * f.rows.batch * f.rows.heads;
    FlashMaps maps = {};
    if (!plane_map(&maps.k, planes, planes.k, f.rows.total, f.size, planes.pitch_k) ||
        !plane_map(&maps.v, planes, planes.v, f.rows.total, f.value_size, planes.pitch_v))
        return cudaErrorInvalidValue;
    return launch_blocks(flash_split<S>, dim3((unsigned)blocks), 1, S::threads, S::shared, queue, f, maps,
                         planes);
}

} // namespace ortc_attention

using namespace ortc_attention;

extern "C" int64_t ortc_cu_flash_split_bytes(int64_t key_heads, int64_t keys, int64_t size,
                                             int64_t value_size)
{
    return plane_bytes(key_heads, keys, size) + plane_bytes(key_heads, keys, value_size) +
           whole(2 * key_heads * chunks_of(keys) * 4);
}

extern "C" int ortc_cu_flash_split(const ortc_cu_flash *flash, void *work, void *queue)
{
    ortc_cu_flash f = *flash;
    const int64_t heads = f.rows.batch * (f.rows.heads / f.group), keys = f.rows.total;
    Planes planes = {};
    uint64_t steps = (uint64_t)f.size | (uint64_t)f.value_size;
    char *at = (char *)work;
    planes.k = (__nv_bfloat16 *)at, at += plane_bytes(heads, keys, f.size);
    planes.v = (__nv_bfloat16 *)at, at += plane_bytes(heads, keys, f.value_size);
    planes.odd = (int32_t *)at;
    planes.chunks = (int)chunks_of(keys), planes.heads = (int)heads;
    planes.pitch_k = (int)pitch_of(f.size), planes.pitch_v = (int)pitch_of(f.value_size);
    for (int i = 0; i < 3; i++) steps |= (uint64_t)(f.q_step[i] | f.k_step[i] | f.v_step[i]) * 2;
    f.aligned = steps % 8 == 0 && ((uintptr_t)f.q | (uintptr_t)f.k | (uintptr_t)f.v) % 16 == 0;
    f.y_pairs = (uint64_t)(uintptr_t)f.y % 8 == 0 && (f.y_step[0] | f.y_step[1] | f.y_step[2]) % 2 == 0;
    const int error = ortc_cu_launch(split_heads, dim3((unsigned)planes.chunks, (unsigned)heads, 2), 128,
                                     (cudaStream_t)queue, f, planes);
    if (error) return error;
    /* Few rows: blocks of half as many, while the device has room for all. */
    const bool few = (f.rows.length + 63) / 64 * f.rows.batch * f.rows.heads <= f.processors;
    if (f.size <= 64 && f.value_size <= 64)
        return few ? launch_split<SplitShape<64, 1>>(f, planes, queue)
                   : launch_split<SplitShape<64, 2>>(f, planes, queue);
    return few ? launch_split<SplitShape<128, 1>>(f, planes, queue)
               : launch_split<SplitShape<128, 2>>(f, planes, queue);
}
