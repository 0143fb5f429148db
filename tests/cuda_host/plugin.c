/* tests/cuda_host/plugin.c: provider "cuda" without a GPU: its C files as they are, its kernels emulated on
 * host memory, so that every case can run through what plan and run compute. A stand-in for libortc_cuda.so:
 * never load both. */
#include <stdio.h>
#include <string.h>

#include "kernels/common/cuda.h"
#include "ortc/provider.h"

const char *ortc_cuda_error(int error)
{
    static _Thread_local char text[32];
    snprintf(text, sizeof text, "emulated error %d", error);
    return text;
}

static ortc_status devices(const ortc_host *host, ortc_device_info *infos, uint32_t *inout_n, ortc_why *why)
{
    (void)host, (void)why;
    if (*inout_n > 0) {
        infos[0] = (ortc_device_info){.size = sizeof *infos, .memory_kind = ORTC_MEMORY_HOST};
        strcpy(infos[0].name, "kernels for a GPU, emulated");
    }
    *inout_n = 1;
    return ORTC_OK;
}

static ortc_cuda_device device = {.major = 9,
                                  .processors = 3 /* so that small cases meet the choices of large ones */,
                                  .shared_bytes = 227 << 10,
                                  .l2_bytes = 50 << 20};

static ortc_status open_device(const ortc_host *host, uint32_t ordinal, const ortc_options *options,
                               ortc_device **out, ortc_why *why)
{
    (void)host, (void)ordinal, (void)options, (void)why;
    *out = (ortc_device *)(void *)&device;
    return ORTC_OK;
}
static void close_device(ortc_device *d) { (void)d; }

static const ortc_provider provider = {.size = sizeof provider,
                                       .abi = ORTC_ABI,
                                       .name = "cuda",
                                       .devices = devices,
                                       .open = open_device,
                                       .close = close_device};

extern const ortc_kernel_table ortc_kernels_cuda_gemm, ortc_kernels_cuda_gemm_siblings,
    ortc_kernels_cuda_nbits, ortc_kernels_cuda_attention, ortc_kernels_cuda_rotary;
static const ortc_kernel_table *const tables[] = {&ortc_kernels_cuda_gemm, &ortc_kernels_cuda_gemm_siblings,
                                                  &ortc_kernels_cuda_nbits, &ortc_kernels_cuda_attention,
                                                  &ortc_kernels_cuda_rotary};
static const ortc_family family = {.size = sizeof family,
                                   .op_size = sizeof(ortc_op),
                                   .name = "cuda",
                                   .n_tables = sizeof tables / sizeof *tables,
                                   .tables = tables};

static ortc_status init(const ortc_host *host)
{
    const ortc_status s = ortc_host_add_provider(host, &provider);
    return s == ORTC_OK ? ortc_host_add_family(host, &family) : s;
}

ORTC_PLUGIN("cuda_host", "1.0", init)
