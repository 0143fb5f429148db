/* runtime/registry/module.c: providers, and kernels of a family, that come as modules of ortc's own:
 * libortc_NAME.so, beside libortc or where it installs.
 *
 * Looked for when a session names a provider that is not registered, when providers are listed, and when a
 * node needs such kernels; never before. They are loaded as plugins are.
 */
#include <pthread.h>
#include <stdio.h>

#include "registry.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *const ours[] = {"cuda"};

static bool is_plain(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= '0' && *c <= '9') && *c != '_') return false;
    return *name && strlen(name) < 64;
}

static bool try_load(const char *name, ortc_error *error)
{
    static const char *const folders[] = {"", "../lib/", "../lib/x86_64-linux-gnu/", "../lib64/"};
    char own[3072], path[4096];
    for (size_t i = 0; ortc_platform_own_folder(own, sizeof own) && i < ORTC_LENGTH(folders); i++) {
        ortc_error why = ORTC_ERROR_INIT;
        snprintf(path, sizeof path, "%s/%slibortc_%s.so", own, folders[i], name);
        ortc_status s = ortc_plugin_load(path, &why);
        if (s == ORTC_OK) return true;
        if (s != ORTC_NOT_FOUND) {
            ortc_fail(error, s, "%s", why.text);
            return false;
        }
    }
    return false;
}

const ortc_provider *ortc_provider_load(const char *name, ortc_error *error)
{
    const ortc_provider *p = ortc_provider_find(name);
    if (p || !is_plain(name)) return p;
    pthread_mutex_lock(&lock);
    if (!(p = ortc_provider_find(name)) && try_load(name, error)) p = ortc_provider_find(name);
    pthread_mutex_unlock(&lock);
    return p;
}

const char *ortc_kernels_load(const ortc_op *op)
{
    static struct {
        const char *family;
        ortc_error why;
    } tried[8];
    static size_t n_tried;
    const char *family = op->flags & ORTC_OP_MODULE ? ortc_op_family(op) : "", *why = NULL;
    if (!is_plain(family)) return NULL;
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < n_tried && strcmp(tried[i].family, family) != 0) i++;
    if (i == n_tried && i < ORTC_LENGTH(tried)) {
        tried[n_tried++].family = family;
        tried[i].why = (ortc_error)ORTC_ERROR_INIT;
        if (!try_load(family, &tried[i].why) && !tried[i].why.code)
            ortc_fail(&tried[i].why, ORTC_NOT_FOUND, "libortc_%s.so, which has its kernels, is not there",
                      family);
    }
    if (i < n_tried && tried[i].why.code) why = tried[i].why.text;
    pthread_mutex_unlock(&lock);
    return why;
}

void ortc_providers_load_all(void)
{
    for (size_t i = 0; i < ORTC_LENGTH(ours); i++) {
        ortc_error why = ORTC_ERROR_INIT;
        if (!ortc_provider_load(ours[i], &why) && why.code)
            ortc_log(ORTC_LOG_WARNING, "provider '%s': %s", ours[i], why.text);
    }
}
