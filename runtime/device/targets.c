/* runtime/device/targets.c: a list of device names to open devices (targets.h). */
#include "targets.h"

static ortc_status add(ortc_targets *t, const char *name, ortc_error *error)
{
    ortc_open_device *open;
    ORTC_TRY(ortc_device_open(name, &open, error));
    for (uint32_t i = 0; i < t->count; i++)
        if (t->list[i].open == open || (!open->memory.device && t->list[i].provider == open->provider)) {
            ortc_device_release(open);
            return ORTC_OK;
        }
    if (t->count == ORTC_MAX_DEVICES) {
        ortc_device_release(open);
        return ortc_fail(error, ORTC_LIMIT, "more than %d devices in one session", ORTC_MAX_DEVICES);
    }
    ortc_target *d = &t->list[t->count];
    *d = (ortc_target){open, open->provider, open->device, 0};
    if (open->memory.device) {
        t->of_space[t->n_spaces] = (uint8_t)t->count;
        d->space = (uint8_t)t->n_spaces++;
    }
    t->count++;
    return ORTC_OK;
}

ortc_status ortc_targets_open(ortc_targets *t, const char *names, ortc_error *error)
{
    *t = (ortc_targets){.n_spaces = 1};
    while (*names) {
        const char *comma = strchr(names, ',');
        size_t n = comma ? (size_t)(comma - names) : strlen(names);
        char name[512];
        if (n >= sizeof name) return ortc_fail(error, ORTC_NOT_FOUND, "there is no provider '%.80s'", names);
        memcpy(name, names, n);
        name[n] = 0;
        if (n) ORTC_TRY(add(t, name, error));
        names += n + (comma != NULL);
    }
    t->named = t->count;
    return add(t, "ref", error);
}

void ortc_targets_close(ortc_targets *t)
{
    for (uint32_t i = 0; i < t->count; i++) ortc_device_release(t->list[i].open);
    t->count = 0;
}
