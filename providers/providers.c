/* providers/providers.c: the list of linked-in providers. */
#include "providers.h"

const ortc_provider *const ortc_builtin_providers[] = {&ortc_provider_cpu, &ortc_provider_ref, NULL};
