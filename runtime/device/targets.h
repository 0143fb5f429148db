/* runtime/device/targets.h: the devices that a session's nodes may be placed on, in the caller's order, and
 * the kinds of memory that they work in.
 *
 * A *space* is a kind of memory: 0 the host's, else that of one device.
 */
#ifndef ORTC_TARGETS_H
#define ORTC_TARGETS_H

#include "device.h"

#define ORTC_MAX_DEVICES 16 /* of a session */
#define ORTC_MAX_SPACES (ORTC_MAX_DEVICES + 1)

typedef struct ortc_target {
    ortc_open_device *open; /* retained */
    const ortc_provider *provider;
    ortc_device *device;
    uint8_t space; /* its memory: 0 the host's, else one of its own */
} ortc_target;

typedef struct ortc_targets {
    ortc_target list[ORTC_MAX_DEVICES];
    uint32_t count, named;             /* the caller named the first `named`; ref is last */
    uint32_t n_spaces;                 /* at least 1 */
    uint8_t of_space[ORTC_MAX_SPACES]; /* of a space: index of its device */
} ortc_targets;

/* Opens "cuda:1,cpu" and ref behind them; a device named twice is there once. The caller closes, also after a
 * failure. Errors: NOT_FOUND, LIMIT, what opening says. */
ortc_status ortc_targets_open(ortc_targets *, const char *names, ortc_error *);
void ortc_targets_close(ortc_targets *);

/* The device whose memory a space is; NULL: the host. */
static inline ortc_open_device *ortc_targets_device_of(const ortc_targets *t, uint32_t space)
{
    return space ? t->list[t->of_space[space]].open : NULL;
}

#endif
