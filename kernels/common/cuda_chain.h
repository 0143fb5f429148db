/* kernels/common/cuda_chain.h: connected nodes that work element by element, as one program: what a
 * provider's claim and compile are made of (ortc/provider.h).
 */
#ifndef ORTC_KERNELS_CUDA_CHAIN_H
#define ORTC_KERNELS_CUDA_CHAIN_H

#include "ortc/provider.h"

ortc_status ortc_cuda_chain_claim(ortc_device *, const ortc_graph *,
                                  ortc_status (*take)(void *arg, const ortc_claim *), void *arg);
ortc_status ortc_cuda_chain_compile(ortc_device *, const ortc_graph *body, const ortc_cache *,
                                    const ortc_kernel **out, ortc_why *);

#endif
