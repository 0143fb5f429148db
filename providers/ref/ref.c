/* providers/ref/ref.c: the reference provider: plain C, every operator and type, the last resort of every
 * session. */
#include <string.h>

#include "providers/providers.h"

static ortc_status devices(const ortc_host *host, ortc_device_info *infos, uint32_t *inout_n, ortc_why *why)
{
    (void)host, (void)why;
    if (*inout_n > 0) {
        infos[0] = (ortc_device_info){.size = sizeof *infos, .memory_kind = ORTC_MEMORY_HOST};
        strcpy(infos[0].name, "reference kernels in plain C");
    }
    *inout_n = 1;
    return ORTC_OK;
}

const ortc_provider ortc_provider_ref = {.size = sizeof(ortc_provider),
                                         .abi = ORTC_ABI,
                                         .name = "ref",
                                         .devices = devices};
