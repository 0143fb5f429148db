/* providers/cpu/cpu.c: the host's processor: the kernels that carry the time, vectorised, blocked, fused,
 * threaded. */
#include <stdio.h>
#include <string.h>

#include "kernels/common/cpu_device.h"
#include "kernels/common/uk.h"
#include "providers/providers.h"

static ortc_status devices(const ortc_host *host, ortc_device_info *infos, uint32_t *inout_n, ortc_why *why)
{
    (void)host, (void)why;
    if (*inout_n > 0) {
        infos[0] = (ortc_device_info){.size = sizeof *infos, .memory_kind = ORTC_MEMORY_HOST};
#define LINE(isa, needs, unused) {#isa, needs},
        static const ortc_uk sets[] = {ORTC_EACH_ISA(LINE, 0)};
        const ortc_uk *best = ORTC_UK_SELECT(sets, sizeof sets / sizeof *sets);
        const uint32_t f = ortc_cpu_features(), usual = ortc_cpu_features_usual();
        snprintf(infos[0].name, sizeof infos[0].name, "host processor, %s%s", best->name,
                 f & ORTC_CPU_AMX ? " and amx" : "");
        if (usual & ~f)
            strcpy(infos[0].notes, "limited by the environment variable ORTC_CPU");
        else if (f != ortc_cpu_features_detected())
            strcpy(infos[0].notes, "f32 without amx, which many processors slow down; ORTC_CPU=amx uses it");
    }
    *inout_n = 1;
    return ORTC_OK;
}

/* precision=f32, bf16 */
static ortc_status open_cpu(const ortc_host *host, uint32_t ordinal, const ortc_options *options,
                            ortc_device **out, ortc_why *why)
{
    static ortc_cpu_device rounding = {.bf16 = 1};
    (void)host, (void)ordinal;
    *out = NULL;
    for (uint32_t i = 0; i < options->count; i++) {
        if (strcmp(options->keys[i], "precision"))
            return ortc_no(why, "it has no option '%s'", options->keys[i]), ORTC_INVALID_ARGUMENT;
        if (!strcmp(options->values[i], "bf16"))
            *out = (ortc_device *)(void *)&rounding;
        else if (strcmp(options->values[i], "f32"))
            return ortc_no(why, "precision is f32 or bf16, not '%s'", options->values[i]),
                   ORTC_INVALID_ARGUMENT;
    }
    return ORTC_OK;
}

const ortc_provider ortc_provider_cpu = {
    .size = sizeof(ortc_provider), .abi = ORTC_ABI, .name = "cpu", .devices = devices, .open = open_cpu};
