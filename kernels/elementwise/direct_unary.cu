/* kernels/elementwise/direct_unary.cu: functions of one tensor, by themselves (direct.cuh). */
#include "kernels/elementwise/direct.cuh"

template <typename E> static int choose(int op, const ortc_cu_direct *d, cudaStream_t stream, int *error)
{
    switch (op) {
#define CASE(name) \
    case ORTC_CU_##name: *error = go<E, ORTC_CU_##name, NOTHING>(d, stream); return 1;
        /* clang-format off */
        CASE(GELU) CASE(GELU_TANH) CASE(SIGMOID) CASE(TANH) CASE(SWISH) CASE(ERF) CASE(EXP) CASE(SQRT)
        CASE(HARD_SWISH)
        /* clang-format on */
#undef CASE
            default : return 0;
    }
}

extern "C" int ortc_cu_direct_unary(int op, const ortc_cu_direct *d, void *queue, int *error)
{
    cudaStream_t stream = (cudaStream_t)queue;
    switch (d->dtype) {
    case ORTC_F32: return choose<float>(op, d, stream, error);
    case ORTC_F16: return choose<__half>(op, d, stream, error);
    default: return choose<__nv_bfloat16>(op, d, stream, error);
    }
}
