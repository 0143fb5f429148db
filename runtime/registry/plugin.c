/* runtime/registry/plugin.c: shared objects that bring operators, kernels and providers.
 *
 * A plugin exports one function, `ortc_plugin`. What it was built with is checked before any of its code but
 * that one function runs. Plugins are never unloaded: their tables are in use for the life of the process.
 */
#include <pthread.h>

#include "registry.h"

static const char *sanitizer_name(uint32_t s)
{
    static const char *const names[] = {"no sanitizer", "AddressSanitizer", "ThreadSanitizer",
                                        "MemorySanitizer"};
    return s < ORTC_LENGTH(names) ? names[s] : "an unknown sanitizer";
}

ortc_status ortc_plugin_load(const char *path, ortc_error *error)
{
    ORTC_TRY(ortc_registry_init(error));
    if (!path) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "the path of a plugin is NULL");
    ortc_error why = ORTC_ERROR_INIT;
    void *module = ortc_platform_open_module(path, &why);
    if (!module) return ortc_fail(error, why.code, "plugin '%s': %s", path, why.text);
    const ortc_plugin_info *(*entry)(void);
    void *symbol = ortc_platform_symbol(module, "ortc_plugin");
    if (!symbol)
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN, "plugin '%s': it does not export 'ortc_plugin'",
                         path);
    memcpy(&entry, &symbol, sizeof entry);
    const ortc_plugin_info *info = entry();
    if (!info || info->size < offsetof(ortc_plugin_info, init) + sizeof info->init || !info->init)
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN, "plugin '%s': its description is broken", path);
    if (info->abi != ORTC_ABI)
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN,
                         "plugin '%s': built for ABI %d, this library has %d: rebuild it", path, info->abi,
                         ORTC_ABI);
    if (info->sanitizer != ORTC_SANITIZER)
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN, "plugin '%s': built with %s, this library with %s",
                         path, sanitizer_name(info->sanitizer), sanitizer_name(ORTC_SANITIZER));
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one_at_a_time);
    ortc_status s = info->init(ortc_host_get());
    if (s != ORTC_OK)
        ortc_fail(error, s, "plugin '%s' (%s %s) failed to register%s%s", path, info->name ? info->name : "?",
                  info->version ? info->version : "?", *ortc_registry_refusal() ? ": " : "",
                  ortc_registry_refusal());
    pthread_mutex_unlock(&one_at_a_time);
    return s;
}
