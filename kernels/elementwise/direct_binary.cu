/* kernels/elementwise/direct_binary.cu: a tensor with another, a repeated row or a number (direct.cuh). */
#include "kernels/elementwise/direct.cuh"

template <typename E, int OP> static int choose(const ortc_cu_direct *d, cudaStream_t stream)
{
    return !d->a         ? go<E, OP, NUMBER>(d, stream)
           : d->repeated ? go<E, OP, ROW>(d, stream)
                         : go<E, OP, SAME>(d, stream);
}

template <typename E> static int choose(int op, const ortc_cu_direct *d, cudaStream_t stream, int *error)
{
    switch (op) {
    case ORTC_CU_ADD: *error = choose<E, ORTC_CU_ADD>(d, stream); return 1;
    case ORTC_CU_SUB: *error = choose<E, ORTC_CU_SUB>(d, stream); return 1;
    case ORTC_CU_RSUB: *error = choose<E, ORTC_CU_RSUB>(d, stream); return 1;
    case ORTC_CU_MUL: *error = choose<E, ORTC_CU_MUL>(d, stream); return 1;
    case ORTC_CU_DIV: *error = choose<E, ORTC_CU_DIV>(d, stream); return 1;
    case ORTC_CU_MAX: *error = choose<E, ORTC_CU_MAX>(d, stream); return 1;
    case ORTC_CU_PRELU: *error = choose<E, ORTC_CU_PRELU>(d, stream); return 1;
    default: return 0;
    }
}

extern "C" int ortc_cu_direct_binary(int op, const ortc_cu_direct *d, void *queue, int *error)
{
    cudaStream_t stream = (cudaStream_t)queue;
    switch (d->dtype) {
    case ORTC_F32: return choose<float>(op, d, stream, error);
    case ORTC_F16: return choose<__half>(op, d, stream, error);
    default: return choose<__nv_bfloat16>(op, d, stream, error);
    }
}
