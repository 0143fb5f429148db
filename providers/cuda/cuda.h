/* providers/cuda/cuda.h: the kernels that the build found in the families (families.c, generated). */
#ifndef ORTC_PROVIDER_CUDA_H
#define ORTC_PROVIDER_CUDA_H

#include "ortc/provider.h"

extern const ortc_family ortc_family_cuda;

#endif
