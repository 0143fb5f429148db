/* providers/providers.h: the providers that are linked in, in the order in which `ortc providers` lists
 * them. */
#ifndef ORTC_PROVIDERS_H
#define ORTC_PROVIDERS_H

#include "ortc/provider.h"

extern const ortc_provider ortc_provider_ref, ortc_provider_cpu;
extern const ortc_provider *const ortc_builtin_providers[]; /* NULL behind the last */

#endif
