/* kernels/reduce/reduce.cu: reductions over any dims on a GPU. f32, f16 and bf16 in f32 (products in f64, for
 * f32 may not hold what there is on the way), f64 in f64, integers in 64 bits.
 *
 *   the last dim is reduced: a block (or a warp, where rows are short) for each result, its threads along
 *   the reduced elements
 *   the last dim is kept: a block for 32 neighbouring results, 8 threads for each
 *   few results of many elements: in parts first, then the parts; always the same parts, in the same order
 */
#include <math.h>

#include "kernels/common/cuda.cuh"
#include "kernels/common/registers.cuh"
#include "kernels/elementwise/cuda_program.h"
#include "kernels/reduce/reduce_cuda.h"

namespace {

struct job {
    ortc_cu_reduce r;
    ortc_cu_divisor kept[ORTC_CU_REDUCE_RANK], reduced[ORTC_CU_REDUCE_RANK];
    int64_t splits, part; /* elements of a part */
    bool wide;            /* numbers do not fit 31 bits */
};

template <typename R> constexpr bool floats = R(0.5) != R(0);
template <typename R> struct limits;
template <> struct limits<float> {
    static __device__ float low() { return -INFINITY; }
    static __device__ float high() { return INFINITY; }
};
template <> struct limits<double> {
    static __device__ double low() { return -INFINITY; }
    static __device__ double high() { return INFINITY; }
};
template <> struct limits<int64_t> {
    static __device__ int64_t low() { return INT64_MIN; }
    static __device__ int64_t high() { return INT64_MAX; }
};
template <> struct limits<uint64_t> {
    static __device__ uint64_t low() { return 0; }
    static __device__ uint64_t high() { return UINT64_MAX; }
};

template <typename R> __device__ inline R neutral(int what)
{
    return what == ORTC_CU_PROD     ? R(1)
           : what == ORTC_CU_MAX_OF ? limits<R>::low()
           : what == ORTC_CU_MIN_OF ? limits<R>::high()
                                    : R(0);
}
/* What an element contributes, before it is joined with others. */
template <typename R> __device__ inline R term(int what, R v)
{
    if (what == ORTC_CU_L1) return is_negative(v) ? R(0) - v : v;
    return what == ORTC_CU_L2 || what == ORTC_CU_SUM_SQUARE ? v * v : v;
}
template <typename R> __device__ inline R join(int what, R a, R b)
{
    switch (what) {
    case ORTC_CU_PROD: return a * b;
    case ORTC_CU_MAX_OF: return a > b || a != a ? a : b;
    case ORTC_CU_MIN_OF: return a < b || a != a ? a : b;
    default: return a + b;
    }
}
__device__ inline float finish(int what, float v, int64_t each)
{
    return what == ORTC_CU_MEAN      ? v / (float)each
           : what == ORTC_CU_L2      ? sqrtf(v)
           : what == ORTC_CU_LOG_SUM ? logf(v)
                                     : v;
}
__device__ inline double finish(int what, double v, int64_t each)
{
    return what == ORTC_CU_MEAN      ? v / (double)each
           : what == ORTC_CU_L2      ? sqrt(v)
           : what == ORTC_CU_LOG_SUM ? log(v)
                                     : v;
}
__device__ inline int64_t finish(int what, int64_t v, int64_t each)
{
    return what == ORTC_CU_MEAN && each > 0 ? v / each : v;
}
__device__ inline uint64_t finish(int what, uint64_t v, int64_t each)
{
    return what == ORTC_CU_MEAN && each > 0 ? v / (uint64_t)each : v;
}

/* A narrower integer's own bounds, where nothing was reduced. */
template <typename E, typename R> __device__ inline E narrowed(int what, R v)
{
    if (floats<R> || (what != ORTC_CU_MAX_OF && what != ORTC_CU_MIN_OF) || sizeof(E) == sizeof(R))
        return put<E>::from(v);
    const int bits = 8 * (int)sizeof(E);
    const bool is_signed = is_negative(R(-1));
    const R high = (R)(UINT64_MAX >> (64 - bits + is_signed)), low = is_signed ? R(0) - high - 1 : R(0);
    return put<E>::from(v > high ? high : is_negative(v) && v < low ? low : v);
}

__device__ inline int64_t place(const ortc_cu_divisor *dims, const int64_t *extents, const int64_t *steps,
                                int n, int64_t index, bool wide)
{
    int64_t at = 0;
    uint32_t i = (uint32_t)index;
    if (wide) {
        for (int d = n - 1; d > 0; d--) {
            const int64_t rest = index / extents[d];
            at += (index - rest * extents[d]) * steps[d];
            index = rest;
        }
        return n > 0 ? at + index * steps[0] : 0;
    }
    for (int d = n - 1; d > 0; d--) {
        const uint32_t rest = (__umulhi(i, dims[d].multiplier) + i) >> dims[d].shift;
        at += (int64_t)(i - rest * dims[d].divisor) * steps[d];
        i = rest;
    }
    return n > 0 ? at + (int64_t)i * steps[0] : 0;
}

template <typename R> __device__ inline R shuffle(R v, int m) { return __shfl_xor_sync(0xffffffffu, v, m); }

/* Threads along the reduced elements: x is a group of `width` threads, y counts groups of a block. */
template <typename R, typename E> __global__ void __launch_bounds__(256) along(const __grid_constant__ job j)
{
    __shared__ R shared[8];
    const int what = j.r.what, width = blockDim.x;
    const int64_t jobs = j.r.results * j.splits;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < jobs;
         first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t mine = first + threadIdx.y;
        R v = neutral<R>(what);
        int64_t result = 0, split = 0;
        if (mine < jobs) {
            result = j.splits == 1 ? mine : mine / j.splits;
            split = mine - result * j.splits;
            const int64_t begin = split * j.part, end = begin + j.part < j.r.each ? begin + j.part : j.r.each;
            const E *x = (const E *)j.r.x +
                         place(j.kept, j.r.kept, j.r.kept_step, j.r.n_kept, result, j.wide);
            for (int64_t i = begin + threadIdx.x; i < end; i += width)
                v = join(what, v,
                         term(what, get<R, E>::from(x[place(j.reduced, j.r.reduced, j.r.reduced_step,
                                                            j.r.n_reduced, i, j.wide)])));
        }
#pragma unroll
        for (int m = 16; m > 0; m >>= 1) v = join(what, v, shuffle(v, m));
        if (width > 32) { /* then there is one group */
            __syncthreads();
            if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
            __syncthreads();
            v = threadIdx.x < width / 32 ? shared[threadIdx.x] : neutral<R>(what);
#pragma unroll
            for (int m = 4; m > 0; m >>= 1) v = join(what, v, shuffle(v, m));
        }
        if (threadIdx.x == 0 && mine < jobs) {
            if (j.splits > 1)
                ((R *)j.r.partial)[mine] = v;
            else
                ((E *)j.r.y)[result] = narrowed<E>(what, finish(what, v, j.r.each));
        }
    }
}

/* 32 neighbouring results, 8 threads for each. */
template <typename R, typename E> __global__ void __launch_bounds__(256) beside(const __grid_constant__ job j)
{
    __shared__ R shared[8][32];
    const int what = j.r.what, x = threadIdx.x, y = threadIdx.y;
    const int64_t columns = (j.r.results + 31) / 32, jobs = columns * j.splits;
    for (int64_t block = blockIdx.x; block < jobs; block += gridDim.x) {
        const int64_t split = j.splits == 1 ? 0 : block % j.splits,
                      result = (j.splits == 1 ? block : block / j.splits) * 32 + x;
        const int64_t begin = split * j.part, end = begin + j.part < j.r.each ? begin + j.part : j.r.each;
        R v = neutral<R>(what);
        if (result < j.r.results) {
            const E *from = (const E *)j.r.x +
                            place(j.kept, j.r.kept, j.r.kept_step, j.r.n_kept, result, j.wide);
            for (int64_t i = begin + y; i < end; i += 8)
                v = join(what, v,
                         term(what, get<R, E>::from(from[place(j.reduced, j.r.reduced, j.r.reduced_step,
                                                               j.r.n_reduced, i, j.wide)])));
        }
        __syncthreads();
        shared[y][x] = v;
        __syncthreads();
        if (y == 0 && result < j.r.results) {
#pragma unroll
            for (int k = 1; k < 8; k++) v = join(what, v, shared[k][x]);
            if (j.splits > 1)
                ((R *)j.r.partial)[result * j.splits + split] = v;
            else
                ((E *)j.r.y)[result] = narrowed<E>(what, finish(what, v, j.r.each));
        }
    }
}

template <typename R, typename E>
__global__ void __launch_bounds__(256) combine(const __grid_constant__ job j)
{
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < j.r.results;
         i += (int64_t)gridDim.x * 256) {
        R v = neutral<R>(j.r.what);
        for (int64_t k = 0; k < j.splits; k++)
            v = join(j.r.what, v, ((const R *)j.r.partial)[i * j.splits + k]);
        ((E *)j.r.y)[i] = narrowed<E>(j.r.what, finish(j.r.what, v, j.r.each));
    }
}

template <typename R, typename E> int launch(const job &j, cudaStream_t stream)
{
    const int64_t jobs = j.r.results * j.splits;
    const bool neighbours = j.r.n_kept && j.r.kept_step[j.r.n_kept - 1] == 1 && j.r.kept[j.r.n_kept - 1] > 1;
    if (neighbours) {
        const int64_t blocks = (j.r.results + 31) / 32 * j.splits;
        beside<R, E><<<ortc_cu_blocks(blocks, 1), dim3(32, 8), 0, stream>>>(j);
    } else if (j.part <= 512) {
        along<R, E><<<ortc_cu_blocks(jobs, 8), dim3(32, 8), 0, stream>>>(j);
    } else {
        along<R, E><<<ortc_cu_blocks(jobs, 1), dim3(256, 1), 0, stream>>>(j);
    }
    if (j.splits > 1) combine<R, E><<<ortc_cu_blocks(j.r.results, 256), 256, 0, stream>>>(j);
    return cudaGetLastError();
}

} // namespace

extern "C" int ortc_cu_reduce_run(const ortc_cu_reduce *r, void *queue)
{
    job j;
    cudaStream_t stream = (cudaStream_t)queue;
    j.r = *r;
    j.wide = (r->results | r->each) >> 31;
    for (int d = 0; !j.wide && d < ORTC_CU_REDUCE_RANK; d++) {
        j.kept[d] = ortc_cu_divisor_of((uint32_t)(d < r->n_kept && r->kept[d] ? r->kept[d] : 1));
        j.reduced[d] = ortc_cu_divisor_of((uint32_t)(d < r->n_reduced && r->reduced[d] ? r->reduced[d] : 1));
    }
    j.splits = ortc_cu_reduce_splits(r->results, r->each);
    j.part = (r->each + j.splits - 1) / j.splits;
    const bool product = r->what == ORTC_CU_PROD;
    switch (r->dtype) {
    case ORTC_F32: return product ? launch<double, float>(j, stream) : launch<float, float>(j, stream);
    case ORTC_F16: return product ? launch<double, __half>(j, stream) : launch<float, __half>(j, stream);
    case ORTC_BF16:
        return product ? launch<double, __nv_bfloat16>(j, stream) : launch<float, __nv_bfloat16>(j, stream);
    case ORTC_F64: return launch<double, double>(j, stream);
    case ORTC_I64: return launch<int64_t, int64_t>(j, stream);
    case ORTC_I32: return launch<int64_t, int32_t>(j, stream);
    case ORTC_I8: return launch<int64_t, int8_t>(j, stream);
    case ORTC_U64: return launch<uint64_t, uint64_t>(j, stream);
    case ORTC_U32: return launch<uint64_t, uint32_t>(j, stream);
    case ORTC_U8: return launch<uint64_t, uint8_t>(j, stream);
    default: return launch<uint64_t, boolean>(j, stream);
    }
}
