/* kernels/attention/rotary.cu: RotaryEmbedding: y1 = x1 cos - x2 sin, y2 = x1 sin + x2 cos. A thread turns a
 * pair, or copies one of the elements behind the turned ones. A position outside of the caches is clamped and
 * reported through the fault word. */
#include "kernels/attention/cuda_mask.cuh"

namespace {

using namespace ortc_attention;

/* rows: a head at a position, in the order of memory */
template <typename T>
__global__ void rotary(T *y, const T *x, const T *__restrict__ cosines, const T *__restrict__ sines,
                       const int64_t *__restrict__ ids, bool interleaved, bool packed, int64_t rows,
                       int64_t heads, int64_t length, int64_t size, int64_t half, int64_t positions,
                       uint32_t *fault)
{
    const int64_t width = size - half, n = rows * width; /* pairs, then single elements */
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < n;
         at += (int64_t)gridDim.x * blockDim.x) {
        const int64_t r = at / width, i = at - r * width, first = r * size;
        if (i >= half) {
            y[first + half + i] = x[first + half + i];
            continue;
        }
        const int64_t b = r / (heads * length), l = packed ? r / heads % length : r % length;
        int64_t angles = b * length + l;
        if (ids) {
            angles = ids[angles];
            angles += angles < 0 ? positions : 0;
            if (angles < 0 || angles >= positions) {
                atomicOr(fault, ORTC_FAULT_INDEX);
                angles = angles < 0 ? 0 : positions - 1;
            }
        }
        const float c = to_float(cosines[angles * half + i]), s = to_float(sines[angles * half + i]);
        const int64_t one = first + (interleaved ? 2 * i : i),
                      two = first + (interleaved ? 2 * i + 1 : i + half);
        const float x1 = to_float(x[one]), x2 = to_float(x[two]);
        y[one] = from_float<T>(x1 * c - x2 * s);
        y[two] = from_float<T>(x1 * s + x2 * c);
    }
}

template <typename T>
int launch(void *y, const void *x, const void *cosines, const void *sines, const void *ids, int interleaved,
           int packed, int64_t rows, int64_t heads, int64_t length, int64_t size, int64_t half,
           int64_t positions, uint32_t *fault, void *queue)
{
    rotary<T><<<ortc_cu_blocks(rows * (size - half), 256), 256, 0, (cudaStream_t)queue>>>(
        (T *)y, (const T *)x, (const T *)cosines, (const T *)sines, (const int64_t *)ids, interleaved != 0,
        packed != 0, rows, heads, length, size, half, positions, fault);
    return cudaGetLastError();
}

} // namespace

extern "C" int ortc_cu_rotary(void *y, const void *x, const void *cosines, const void *sines, const void *ids,
                              int type, int interleaved, int packed, int64_t batch, int64_t heads,
                              int64_t length, int64_t size, int64_t half, int64_t positions, uint32_t *fault,
                              void *queue)
{
    const int64_t rows = batch * heads * length;
    if (rows * size == 0) return 0;
    return (type == ORTC_F32   ? launch<float>
            : type == ORTC_F16 ? launch<__half>
                               : launch<__nv_bfloat16>)(y, x, cosines, sines, ids, interleaved, packed, rows,
                                                        heads, length, size, half, positions, fault, queue);
}
