/* runtime/registry/registry.h: the tables of providers and kernels, filled from linked-in families and from
 * plugins.
 *
 * Entries are never moved and never removed; a plugin's structs of another size are copied. Any thread.
 */
#ifndef ORTC_REGISTRY_H
#define ORTC_REGISTRY_H

#include "graph/ir/graph.h"
#include "ortc/provider.h"

/* Registers what is linked in, once; every public entry that needs tables calls it first. */
ortc_status ortc_registry_init(ortc_error *);

const ortc_provider *ortc_provider_find(const char *name); /* NULL: not registered */
/* The same; where it is not registered, the module that brings it is looked for (module.c). NULL: there is
 * none, or (with an error set) it cannot be loaded. */
const ortc_provider *ortc_provider_load(const char *name, ortc_error *);
void ortc_providers_load_all(void); /* the modules that ortc ships */
/* Sees to it that the kernels of an operator are there that come as a module (ORTC_OP_MODULE), which is
 * looked for once in a process. NULL, or why there are none. */
const char *ortc_kernels_load(const ortc_op *);
/* Providers in the order of registration; NULL behind the last. */
const ortc_provider *ortc_provider_at(size_t i);

/* One registered kernel entry; `next` is the next of the same provider, domain and operator, in order of
 * preference. */
typedef struct ortc_kernel_item {
    const ortc_kernel_entry *entry; /* its domain is "" for the standard's, its kernel of our size */
    const char *provider;
    struct ortc_kernel_item *next, *next_in_bucket;
} ortc_kernel_item;
const ortc_kernel_item *ortc_kernels_of(const char *provider, const char *domain, const char *op);
/* Another domain for which the provider has kernels of this operator's name; NULL: none. For messages. */
const char *ortc_kernels_elsewhere(const char *provider, const char *domain, const char *op);
uint32_t ortc_kernels_count(const char *provider);

/* Whether the entry's versions and types admit the node; when not, the reason in `why` (may be NULL). */
bool ortc_kernel_matches(const ortc_kernel_item *, const ortc_node *, ortc_text *why);

/* An ortc_why that writes into a text. */
struct ortc_why {
    const ortc_why_api *api;
    ortc_text *text;
};
void ortc_why_init(ortc_why *, ortc_text *);
void ortc_why_end(char *text); /* takes the last "; " away */

/* An ortc_prep for kernels of a device. */
struct ortc_prep {
    const ortc_prep_api *api;
    const ortc_device *device;
    ortc_error *error;
};
void ortc_prep_init(ortc_prep *, const ortc_device *, ortc_error *);

/* Why the last family or provider that a plugin handed over was refused; "" when it was not. Borrowed until
 * the next. */
const char *ortc_registry_refusal(void);

/* The host table that plugins and providers are given. */
const ortc_host *ortc_host_get(void);

#endif
