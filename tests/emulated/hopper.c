/* tests/emulated/hopper.c: the launchers of kernels that need instructions of Hopper's own (wgmma, TMA,
 * clusters). The module of the emulated device is not built for sm_90a: nobody may come here. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/attention/cuda_attention.h"
#include "kernels/gemm/cuda_gemm.h"
#include "kernels/gemm/cuda_nbits.h"

static int never(const char *name)
{
    fprintf(stderr, "emulated: %s, which needs a Hopper's own instructions, was launched\n", name);
    abort();
}
#define NEVER(name, ...) \
    int name(__VA_ARGS__) { return never(#name); }

NEVER(ortc_cu_flash_wgmma_f16, const ortc_cu_flash *f, void *queue)
NEVER(ortc_cu_flash_wgmma_bf16, const ortc_cu_flash *f, void *queue)
NEVER(ortc_cu_flash_split, const ortc_cu_flash *f, void *work, void *queue)
NEVER(ortc_cu_decode, const ortc_cu_flash *f, int parts, void *queue)
NEVER(ortc_cu_gemm_few, const ortc_cu_gemm *g, void *queue)
NEVER(ortc_cu_gemm_split_few, const ortc_cu_gemm *g, void *queue)
NEVER(ortc_cu_nbits_ring, const ortc_cu_nbits *g, void *queue)
NEVER(ortc_cu_gemm_wgmma, const ortc_cu_gemm *g, int count, void *queue)

int64_t ortc_cu_flash_split_bytes(int64_t key_heads, int64_t keys, int64_t size, int64_t value_size)
{
    (void)key_heads, (void)keys, (void)size, (void)value_size;
    return never("ortc_cu_flash_split_bytes");
}
