/* kernels/common/cuda.h: what the families' cuda.c files share: the device, and launches that fail with a
 * text.
 *
 * A .cu file holds device code and extern "C" launchers: plain parameters, the stream last, the launch's
 * cudaError_t as result. cuda.c holds what ortc sees: supports, plan, run. It sees op.h and this, and no
 * header of CUDA's.
 */
#ifndef ORTC_KERNELS_CUDA_H
#define ORTC_KERNELS_CUDA_H

#include "ortc/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an ortc_device of provider cuda is, for kernels that choose by it. */
typedef struct ortc_cuda_device {
    int ordinal;
    int major, minor; /* compute capability */
    int processors;   /* multiprocessors */
    int shared_bytes; /* most that a block can ask for */
    int l2_bytes;
} ortc_cuda_device;

static inline const ortc_cuda_device *ortc_cuda_device_of(const ortc_plan *p)
{
    return (const ortc_cuda_device *)(const void *)p->api->device(p);
}

/* providers/cuda/device.c: the text of a cudaError_t. */
const char *ortc_cuda_error(int error);

/* `return ortc_cuda_done(call, ortc_cu_softmax(..., call->queue));` */
static inline ortc_status ortc_cuda_done(ortc_call *c, int error)
{
    return error
               ? ortc_call_fail(c, ORTC_DEVICE_ERROR, "launching a kernel failed: %s", ortc_cuda_error(error))
               : ORTC_OK;
}

#ifdef __cplusplus
}
#endif
#endif
