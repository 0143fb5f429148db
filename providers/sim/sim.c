/* providers/sim/sim.c: the provider itself: its device, its options, its entry point (sim.h). */
#include "sim.h"

static ortc_status devices(const ortc_host *host, ortc_device_info *infos, uint32_t *inout_n, ortc_why *why)
{
    (void)host, (void)why;
    if (*inout_n > 0) {
        memset(infos, 0, sizeof *infos);
        infos[0].size = ORTC_SIZED(ortc_device_info);
        infos[0].memory_kind = ORTC_MEMORY_DEVICE;
        strcpy(infos[0].name, "a device that misbehaves, for tests");
    }
    *inout_n = 1;
    return ORTC_OK;
}

static ortc_status open_device(const ortc_host *host, uint32_t ordinal, const ortc_options *options,
                               ortc_device **out, ortc_why *why)
{
    sim_device *d = (sim_device *)calloc(1, sizeof *d);
    (void)ordinal;
    if (!d) return ORTC_OUT_OF_MEMORY;
    d->host = host;
    for (uint32_t i = 0; i < options->count; i++) {
        const char *key = options->keys[i], *value = options->values[i];
        if (!strcmp(key, "memory"))
            d->memory = strtoull(value, NULL, 10);
        else if (!strcmp(key, "delay"))
            d->delay = (unsigned)strtoul(value, NULL, 10);
        else if (!strcmp(key, "fail"))
            d->fail = atoi(value);
        else if (!strcmp(key, "claim"))
            d->claim = atoi(value);
        else if (!strcmp(key, "layout"))
            d->layout = atoi(value);
        else if (!strcmp(key, "only"))
            snprintf(d->only, sizeof d->only, "+%s+", value);
        else {
            ortc_no(why, "it has no option '%s'; it has memory, delay, fail, claim, layout, only", key);
            free(d);
            return ORTC_INVALID_ARGUMENT;
        }
    }
    *out = (ortc_device *)d;
    return ORTC_OK;
}

static void close_device(ortc_device *d) { free(d); }

static ortc_provider provider; /* filled by init: C++ has no designated initializers in this form */

static ortc_status init(const ortc_host *host)
{
    provider.size = ORTC_SIZED(ortc_provider);
    provider.abi = ORTC_ABI;
    provider.name = "sim";
    provider.flags = ORTC_PROVIDER_ASYNC | ORTC_PROVIDER_CAPTURE;
    provider.devices = devices;
    provider.open = open_device;
    provider.close = close_device;
    provider.slab_alloc = sim_slab_alloc;
    provider.slab_free = sim_slab_free;
    provider.copy = sim_copy;
    provider.queue_create = sim_queue_create;
    provider.queue_destroy = sim_queue_destroy;
    provider.signal = sim_signal;
    provider.wait = sim_wait;
    provider.query = sim_query;
    provider.event_destroy = sim_event_destroy;
    provider.capture_begin = sim_capture_begin;
    provider.capture_end = sim_capture_end;
    provider.replay = sim_replay;
    provider.capture_free = sim_capture_free;
    provider.claim = sim_claim;
    provider.compile = sim_compile;
    ortc_status s = ortc_host_add_provider(host, &provider);
    return s == ORTC_OK ? sim_add_kernels(host) : s;
}

ORTC_PLUGIN("sim", "1.0", init)
