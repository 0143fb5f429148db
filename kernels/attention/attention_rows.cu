/* kernels/attention/attention_rows.cu: what Attention does between its two products, row by row; and caches
 * put together.
 *
 * A row of scores is read and written by one group of threads, each of which keeps to its own elements: three
 * passes (what is added and the maximum; exponentials and their sum; quotients), no element of another
 * thread's is ever read. Semantics are those of ref_attention.c: a row whose every key is masked gives zeros,
 * whatever its scores.
 */
#include "kernels/attention/cuda_attention.h"
#include "kernels/attention/cuda_mask.cuh"

namespace {

using namespace ortc_attention;

/* Over the threads of a row: all get the result. LANES is 32 or a whole block of 256. */
template <int LANES, typename F> __device__ __forceinline__ float reduce(float x, F join, float *shared)
{
#pragma unroll
    for (int s = 16; s; s /= 2) x = join(x, __shfl_xor_sync(~0u, x, s));
    if (LANES > 32) {
        __syncthreads(); /* the last result has been read */
        if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
        __syncthreads();
        x = shared[0];
#pragma unroll
        for (int w = 1; w < LANES / 32; w++) x = join(x, shared[w]);
    }
    return x;
}

struct Larger { /* NaN wins */
    __device__ __forceinline__ float operator()(float a, float b) const { return a != a || a > b ? a : b; }
};
struct Plus {
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

template <typename T, int LANES>
__global__ void __launch_bounds__(LANES > 32 ? LANES : 128)
    softmax_rows(const __grid_constant__ ortc_cu_rows p, float *scores, T *out, int64_t pitch,
                 int64_t first_batch, int64_t first_head, int64_t heads, int64_t rows)
{
    constexpr int per_block = LANES > 32 ? 1 : 4;
    __shared__ float shared[LANES / 32];
    const int lane = threadIdx.x % LANES;
    const int64_t r = (int64_t)blockIdx.x * per_block + threadIdx.x / LANES;
    if (r >= rows) /* a whole row's threads */
        return;
    const int64_t rest = r / p.length, i = r - rest * p.length, b_local = rest / heads;
    const int64_t b = first_batch + b_local, h = first_head + rest - b_local * heads;
    const Row row = row_of(p, b, h, i);
    float *s = scores + r * pitch;
    T *qk = p.scores ? (T *)p.scores + ((b * p.heads + h) * p.length + i) * p.total : NULL;
    float most = -CUDART_INF_F, seen = 0.0f;
    for (int64_t j = lane; j < p.total; j += LANES) {
        float x = s[j];
        if (qk && p.mode == 0) qk[j] = from_float<T>(x);
        if (p.softcap > 0.0f) x = p.softcap * tanhf(x / p.softcap);
        if (qk && p.mode == 1) qk[j] = from_float<T>(x);
        const float bias = bias_of(p, row, j);
        x += bias;
        if (qk && p.mode == 2) qk[j] = from_float<T>(x);
        s[j] = x;
        most = Larger()(x, most);
        if (bias != -CUDART_INF_F) seen = 1.0f;
    }
    most = reduce<LANES>(most, Larger(), shared);
    seen = reduce<LANES>(seen, Larger(), shared);
    if (most == -CUDART_INF_F) most = 0.0f;
    float sum = 0.0f;
    for (int64_t j = lane; j < p.total; j += LANES) {
        const float e = seen != 0.0f ? expf(s[j] - most) : 0.0f;
        s[j] = e;
        sum += e;
    }
    sum = reduce<LANES>(sum, Plus(), shared);
    if (sum == 0.0f) sum = 1.0f;
    for (int64_t j = lane; j < p.total; j += LANES) {
        const T y = from_float<T>(s[j] / sum);
        out[r * pitch + j] = y;
        if (qk && p.mode == 3) qk[j] = y;
    }
}

template <typename T>
int softmax(const ortc_cu_rows &p, float *scores, void *out, int64_t pitch, int64_t first_batch,
            int64_t first_head, int64_t heads, int64_t rows, cudaStream_t stream)
{
    const int64_t per_block = p.total <= 1024 ? 4 : 1, most = (int64_t)1 << 30; /* blocks */
    if (rows > most * per_block)
        return cudaErrorInvalidConfiguration; /* more than 16 GB of scores: the caller cuts them smaller */
    const unsigned blocks = (unsigned)((rows + per_block - 1) / per_block);
    if (per_block == 4)
        softmax_rows<T, 32>
            <<<blocks, 128, 0, stream>>>(p, scores, (T *)out, pitch, first_batch, first_head, heads, rows);
    else
        softmax_rows<T, 256>
            <<<blocks, 256, 0, stream>>>(p, scores, (T *)out, pitch, first_batch, first_head, heads, rows);
    return cudaGetLastError();
}

/* Piece by piece: `width` pieces are a head's elements at one position. */
template <typename Piece>
__global__ void append(Piece *__restrict__ out, const Piece *__restrict__ past,
                       const Piece *__restrict__ fresh, int64_t pieces, int64_t heads, int64_t past_length,
                       int64_t fresh_length, int64_t width, int64_t batch_step, int64_t head_step,
                       int64_t length_step)
{
    const int64_t total = past_length + fresh_length;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < pieces;
         at += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = at / width, d = at - row * width, head_row = row / total,
                      j = row - head_row * total;
        const int64_t b = head_row / heads, h = head_row - b * heads;
        out[at] = j < past_length
                      ? past[(head_row * past_length + j) * width + d]
                      : fresh[b * batch_step + h * head_step + (j - past_length) * length_step + d];
    }
}

template <typename Piece>
int launch_append(void *out, const void *past, const void *fresh, int64_t batch, int64_t heads,
                  int64_t past_length, int64_t fresh_length, int64_t size, int64_t batch_step,
                  int64_t head_step, int64_t length_step, void *queue)
{
    constexpr int64_t bytes = sizeof(Piece);
    const int64_t pieces = batch * heads * (past_length + fresh_length) * (size / bytes);
    append<<<ortc_cu_blocks(pieces, 256), 256, 0, (cudaStream_t)queue>>>(
        (Piece *)out, (const Piece *)past, (const Piece *)fresh, pieces, heads, past_length, fresh_length,
        size / bytes, batch_step / bytes, head_step / bytes, length_step / bytes);
    return cudaGetLastError();
}

} // namespace

extern "C" int ortc_cu_attention_softmax(const ortc_cu_rows *p, float *scores, void *out, int64_t pitch,
                                         int64_t first_batch, int64_t batches, int64_t first_head,
                                         int64_t heads, void *queue)
{
    const int64_t rows = batches * heads * p->length;
    if (rows == 0 || p->total == 0) return 0;
    return p->type == ORTC_F32 ? softmax<float>(*p, scores, out, pitch, first_batch, first_head, heads, rows,
                                                (cudaStream_t)queue)
           : p->type == ORTC_F16 ? softmax<__half>(*p, scores, out, pitch, first_batch, first_head, heads,
                                                   rows, (cudaStream_t)queue)
                                 : softmax<__nv_bfloat16>(*p, scores, out, pitch, first_batch, first_head,
                                                          heads, rows, (cudaStream_t)queue);
}

extern "C" int ortc_cu_attention_append(void *out, const void *past, const void *fresh, int64_t batch,
                                        int64_t heads, int64_t past_length, int64_t fresh_length,
                                        int64_t size, int64_t batch_step, int64_t head_step,
                                        int64_t length_step, void *queue)
{
    const uint64_t all = (uint64_t)(uintptr_t)out | (uint64_t)(uintptr_t)past | (uint64_t)(uintptr_t)fresh |
                         (uint64_t)size | (uint64_t)batch_step | (uint64_t)head_step | (uint64_t)length_step;
    if (batch * heads * (past_length + fresh_length) * size == 0) return 0;
    return (all % 16 == 0  ? launch_append<uint4>
            : all % 4 == 0 ? launch_append<uint32_t>
                           : launch_append<uint16_t>)(out, past, fresh, batch, heads, past_length,
                                                      fresh_length, size, batch_step, head_step, length_step,
                                                      queue);
}
