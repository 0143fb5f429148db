/* runtime/registry/registry.c: providers and kernels by name (registry.h). */
#include "registry.h"

#include <pthread.h>
#include <stdio.h>

#include "kernels/families.h"
#include "providers/providers.h"

#define BUCKETS 1024
#define MAX_PROVIDERS 64

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
/* heads of (provider, domain, op) lists, chained by next_in_bucket */
static ortc_kernel_item *buckets[BUCKETS];
static ortc_provider providers[MAX_PROVIDERS];
static size_t n_providers;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static ortc_error init_error;

/* A struct of ours from one of another header: what that does not have is 0. false: it has less than the
 * first `least` bytes, or ends within a field. */
static bool copy_struct(void *to, size_t size, const void *from, size_t from_size, size_t least)
{
    memset(to, 0, size);
    if (!from || from_size < least || from_size % sizeof(void *)) return false;
    memcpy(to, from, from_size < size ? from_size : size);
    return true;
}

/* ---- Kernels ------------------------------------------------------------------------------------------- */

static const char *plain_domain(const char *domain)
{
    return domain && strcmp(domain, "ai.onnx") ? domain : "";
}

/* Where the list of an operator's kernels is hung, or would be: behind the last of its bucket. */
static ortc_kernel_item **head_of(const char *provider, const char *domain, const char *op)
{
    ortc_kernel_item **at = &buckets[ortc_hash_string(op) % BUCKETS];
    while (*at && (strcmp((*at)->entry->op, op) || strcmp((*at)->entry->domain, domain) ||
                   strcmp((*at)->provider, provider)))
        at = &(*at)->next_in_bucket;
    return at;
}

enum {
    KERNEL_FLAGS = ORTC_KERNEL_LATE_OUT | ORTC_KERNEL_NO_CAPTURE | ORTC_KERNEL_STATE | ORTC_KERNEL_VALUES |
                   ORTC_KERNEL_EPILOGUE | ORTC_KERNEL_LAYOUTS | ORTC_KERNEL_FAULTS | ORTC_KERNEL_ROUNDS |
                   ORTC_KERNEL_UNALIGNED
};

/* Entries and kernels stay where they are, unless they are of another size than ours or say ai.onnx. */
static ortc_status add_kernel(const char *provider, const ortc_kernel_entry *entry, ortc_kernel_item *item,
                              ortc_error *error)
{
    struct copy {
        ortc_kernel_entry entry;
        ortc_kernel kernel;
    } other;
    const ortc_kernel *k = entry->kernel;
    const char *domain = plain_domain(entry->domain);
    if (k && k->size != sizeof *k)
        k = copy_struct(&other.kernel, sizeof other.kernel, k, k->size, offsetof(ortc_kernel, release_slot))
                ? &other.kernel
                : NULL;
    if (!entry->op || !k || !k->name)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "a kernel entry of provider '%s' (operator '%s') is broken", provider,
                         entry->op ? entry->op : "?");
    if (!k->run) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "kernel '%s' has no run function", k->name);
    if (k->flags & ~(uint32_t)KERNEL_FLAGS)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "kernel '%s' has unknown flags %#x", k->name,
                         (unsigned)(k->flags & ~(uint32_t)KERNEL_FLAGS));
    if (domain != entry->domain || k != entry->kernel) {
        struct copy *c = malloc(sizeof *c);
        if (!c) return ortc_no_memory(error, sizeof *c);
        c->kernel = *k;
        c->entry = *entry;
        c->entry.domain = domain;
        c->entry.kernel = &c->kernel;
        entry = &c->entry;
    }
    *item = (ortc_kernel_item){.entry = entry, .provider = provider};
    pthread_rwlock_wrlock(&lock);
    ortc_kernel_item **at = head_of(provider, domain, entry->op);
    while (*at) at = &(*at)->next;
    *at = item;
    pthread_rwlock_unlock(&lock);
    return ORTC_OK;
}

static ortc_status add_table(const ortc_kernel_table *t, ortc_error *error)
{
    if (t->size < ORTC_SIZED(ortc_kernel_table) || !t->provider || (t->count && !t->entries))
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "a table of kernels has no %s",
                         t->size < ORTC_SIZED(ortc_kernel_table) ? "size of ortc_kernel_table"
                         : t->provider                           ? "entries"
                                                                 : "provider");
    if (t->count && (t->entry_size < sizeof *t->entries || t->entry_size % sizeof(void *)))
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "a table of kernels of provider '%s' has entries of %u bytes", t->provider,
                         t->entry_size);
    ortc_kernel_item *items = calloc(t->count ? t->count : 1, sizeof *items); /* for good */
    if (!items) return ortc_no_memory(error, t->count * sizeof *items);
    for (uint32_t i = 0; i < t->count; i++) {
        const char *entry = (const char *)t->entries + (size_t)i * t->entry_size;
        const ortc_status s = add_kernel(t->provider, (const ortc_kernel_entry *)(const void *)entry,
                                         &items[i], error);
        if (s != ORTC_OK) {
            if (!i) free(items); /* nobody knows them */
            return s;
        }
    }
    return ORTC_OK;
}

const ortc_kernel_item *ortc_kernels_of(const char *provider, const char *domain, const char *op)
{
    pthread_rwlock_rdlock(&lock);
    const ortc_kernel_item *i = *head_of(provider, plain_domain(domain), op);
    pthread_rwlock_unlock(&lock);
    return i; /* entries are only appended: a reader may miss a new tail, never see a broken one */
}

const char *ortc_kernels_elsewhere(const char *provider, const char *domain, const char *op)
{
    const char *found = NULL;
    pthread_rwlock_rdlock(&lock);
    for (size_t b = 0; b < BUCKETS && !found; b++)
        for (const ortc_kernel_item *i = buckets[b]; i && !found; i = i->next_in_bucket)
            if (!strcmp(i->provider, provider) && !strcmp(i->entry->op, op) &&
                strcmp(i->entry->domain, domain))
                found = i->entry->domain;
    pthread_rwlock_unlock(&lock);
    return found;
}

uint32_t ortc_kernels_count(const char *provider)
{
    uint32_t n = 0;
    pthread_rwlock_rdlock(&lock);
    for (size_t b = 0; b < BUCKETS; b++)
        for (const ortc_kernel_item *i = buckets[b]; i; i = i->next_in_bucket)
            if (!strcmp(i->provider, provider))
                for (const ortc_kernel_item *k = i; k; k = k->next) n++;
    pthread_rwlock_unlock(&lock);
    return n;
}

/* The element type that a node binds to the i-th type constraint of its schema; 0: it does not appear. */
static ortc_dtype bound_dtype(const ortc_node *n, const ortc_schema *s, int32_t constraint)
{
    for (int side = 0; side < 2; side++) {
        uint32_t count = side ? n->n_out : n->n_in;
        for (uint32_t i = 0; i < count; i++) {
            const ortc_formal *f = side ? ortc_schema_out(s, i) : ortc_schema_in(s, i);
            const ortc_edge *e = side ? n->out[i] : n->in[i];
            if (!f || f->constraint != constraint || !e || !e->type) continue;
            const ortc_type *t = e->type;
            while (t && t->kind != ORTC_KIND_TENSOR) t = t->of;
            return t ? t->dtype : 0;
        }
    }
    return 0;
}

static bool has_values(const ortc_node *n)
{
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
        const ortc_edge *e = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (e && e->type && e->type->kind != ORTC_KIND_TENSOR) return true;
    }
    return false;
}

bool ortc_kernel_matches(const ortc_kernel_item *item, const ortc_node *n, ortc_text *why)
{
    const ortc_kernel_entry *e = item->entry;
    if (n->version < e->since_min || n->version > e->since_max) {
        if (why)
            ortc_text_add(why, "%s is for versions %d to %d, not %d; ", e->kernel->name, e->since_min,
                          e->since_max, n->version);
        return false;
    }
    if (!(e->kernel->flags & ORTC_KERNEL_VALUES) && has_values(n)) {
        if (why) ortc_text_add(why, "%s is for tensors only; ", e->kernel->name);
        return false;
    }
    const ortc_schema *s = n->op ? ortc_op_schema(n->op) : NULL;
    for (uint32_t i = 0; s && i < s->n_types && i < ORTC_LENGTH(e->types); i++) {
        ortc_dtype t = e->types[i] ? bound_dtype(n, s, (int32_t)i) : 0;
        if (t && !(e->types[i] & ORTC_TYPE(t))) {
            if (why) ortc_text_add(why, "%s is not for %s; ", e->kernel->name, ortc_dtype_name(t));
            return false;
        }
    }
    return true;
}

/* ---- Providers ----------------------------------------------------------------------------------------- */

/* What stands between the parts of "cuda:1:key=value,cpu" is not in a name. */
static bool is_name(const char *name) { return name && *name && !strpbrk(name, ":,= \t\n"); }

static ortc_status check_provider(const ortc_provider *p, ortc_error *error)
{
    const int n_capture = !!p->capture_begin + !!p->capture_end + !!p->replay + !!p->capture_free;
    const uint32_t known = ORTC_PROVIDER_ASYNC | ORTC_PROVIDER_CAPTURE;
    if (!is_name(p->name))
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN, "provider '%s': %s", p->name ? p->name : "?",
                         p->name ? "a name is not empty, and without ':', ',', '=' and blanks"
                                 : "it has no name");
    if (p->abi != ORTC_ABI)
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN, "provider '%s': ABI %d, this library has %d",
                         p->name, p->abi, ORTC_ABI);
    if (!p->devices)
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN, "provider '%s' has no function devices", p->name);
    if (p->flags & ~known)
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN, "provider '%s' has unknown flags %#x", p->name,
                         (unsigned)(p->flags & ~known));
    if (p->slab_alloc &&
        (!p->slab_free || !p->copy || !p->queue_create || !p->queue_destroy || !p->signal || !p->wait))
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN,
                         "provider '%s' has memory of its own: then it needs slab_free, copy, "
                         "queue_create, queue_destroy, signal and wait, too",
                         p->name);
    if ((p->flags & ORTC_PROVIDER_CAPTURE) ? n_capture < 4 : n_capture % 4)
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN,
                         "provider '%s' has %d of the four functions of capturing", p->name, n_capture);
    if (p->claim && !p->compile)
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN,
                         "provider '%s' claims nodes but cannot compile them", p->name);
    return ORTC_OK;
}

static ortc_status add_provider(const ortc_provider *given, ortc_error *error)
{
    ortc_provider p;
    if (!copy_struct(&p, sizeof p, given, given ? given->size : 0, offsetof(ortc_provider, open)))
        return ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN,
                         "a provider's size is %u: it begins with ORTC_SIZED(ortc_provider)",
                         given ? given->size : 0);
    ORTC_TRY(check_provider(&p, error));
    ortc_status s = ORTC_OK;
    pthread_rwlock_wrlock(&lock);
    for (size_t i = 0; i < n_providers; i++)
        if (!strcmp(providers[i].name, p.name))
            s = ortc_fail(error, ORTC_INVALID_ARGUMENT, "provider '%s' is registered already", p.name);
    if (s == ORTC_OK && n_providers == MAX_PROVIDERS)
        s = ortc_fail(error, ORTC_LIMIT, "more than %d providers", MAX_PROVIDERS);
    if (s == ORTC_OK) providers[n_providers++] = p;
    pthread_rwlock_unlock(&lock);
    return s;
}

const ortc_provider *ortc_provider_find(const char *name)
{
    const ortc_provider *found = NULL;
    pthread_rwlock_rdlock(&lock);
    for (size_t i = 0; i < n_providers && !found; i++)
        if (!strcmp(providers[i].name, name)) found = &providers[i];
    pthread_rwlock_unlock(&lock);
    return found;
}

const ortc_provider *ortc_provider_at(size_t i)
{
    pthread_rwlock_rdlock(&lock);
    const ortc_provider *p = i < n_providers ? &providers[i] : NULL;
    pthread_rwlock_unlock(&lock);
    return p;
}

/* ---- Families and the host table ----------------------------------------------------------------------- */

/* `ours`: linked in, so that tests have seen its schemas; others' are looked at at once. */
static ortc_status add_family(const ortc_family *f, bool ours, ortc_error *error)
{
    if (!f || f->size < ORTC_SIZED(ortc_family) || (f->n_ops && !f->ops) || (f->n_tables && !f->tables))
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "a family is broken: its size, or a table of it, is missing");
    for (uint32_t i = 0; i < f->n_ops; i++) {
        ortc_op op;
        copy_struct(&op, sizeof op, (const char *)f->ops + (size_t)i * f->op_size, f->op_size, 0);
        ORTC_TRY(ortc_op_add(&op, f->name ? f->name : "", !ours, error));
    }
    for (uint32_t i = 0; i < f->n_tables; i++) /* NULL: a family of nothing but compositions */
        if (f->tables[i]) ORTC_TRY(add_table(f->tables[i], error));
    return ORTC_OK;
}

/* Why the last registration failed, for the plugin's loader, which lets in one at a time. */
static ortc_error refused = ORTC_ERROR_INIT;
const char *ortc_registry_refusal(void) { return refused.text; }

static ortc_status refuse(ortc_status s, const ortc_error *e)
{
    refused = *e;
    if (s != ORTC_OK) ortc_log(ORTC_LOG_ERROR, "%s", e->text);
    return s;
}

static ortc_status host_add_family(const ortc_host *h, const ortc_family *f)
{
    (void)h;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = add_family(f, false, &e);
    return refuse(s, &e);
}
static ortc_status host_add_provider(const ortc_host *h, const ortc_provider *p)
{
    (void)h;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = add_provider(p, &e);
    return refuse(s, &e);
}
static void host_log(const ortc_host *h, int32_t level, const char *text)
{
    (void)h;
    ortc_log(level, "%s", text);
}
static void *host_alloc(const ortc_host *h, size_t bytes)
{
    (void)h;
    return bytes > SIZE_MAX - 63 ? NULL : aligned_alloc(64, (bytes + 63) & ~(size_t)63);
}
static void host_free(const ortc_host *h, void *p)
{
    (void)h;
    free(p);
}
static ortc_status host_kernels(const ortc_host *h, const char *provider,
                                ortc_status (*each)(void *, const ortc_kernel_entry *), void *arg)
{
    ortc_status s = ORTC_OK;
    (void)h;
    for (size_t b = 0; b < BUCKETS && s == ORTC_OK; b++)
        for (const ortc_kernel_item *i = buckets[b]; i && s == ORTC_OK; i = i->next_in_bucket)
            for (const ortc_kernel_item *k = strcmp(i->provider, provider) ? NULL : i; k && s == ORTC_OK;
                 k = k->next)
                s = each(arg, k->entry);
    return s;
}
static const ortc_kernel *host_kernel_for(const ortc_host *h, const char *provider, const ortc_node *n)
{
    ortc_why why;
    (void)h;
    ortc_why_init(&why, NULL);
    for (const ortc_kernel_item *i = ortc_kernels_of(provider, n->domain, n->type); i; i = i->next)
        if (ortc_kernel_matches(i, n, NULL) &&
            (!n->epilogue || (i->entry->kernel->flags & ORTC_KERNEL_EPILOGUE)) &&
            (!i->entry->kernel->supports || i->entry->kernel->supports(n, NULL, &why) == ORTC_OK))
            return i->entry->kernel;
    return NULL;
}
static const ortc_host_api host_api = {.size = sizeof host_api,
                                       .abi = ORTC_ABI,
                                       .log = host_log,
                                       .add_family = host_add_family,
                                       .add_provider = host_add_provider,
                                       .alloc = host_alloc,
                                       .free = host_free,
                                       .kernels = host_kernels,
                                       .kernel_for = host_kernel_for};
struct ortc_host {
    const ortc_host_api *api;
};
static const ortc_host host = {&host_api};
const ortc_host *ortc_host_get(void) { return &host; }

static void init_all(void)
{
    init_error = (ortc_error)ORTC_ERROR_INIT;
    for (size_t i = 0; ortc_builtin_providers[i] && !init_error.code; i++)
        add_provider(ortc_builtin_providers[i], &init_error);
    for (size_t i = 0; ortc_families[i] && !init_error.code; i++)
        add_family(ortc_families[i], true, &init_error);
}

ortc_status ortc_registry_init(ortc_error *error)
{
    pthread_once(&once, init_all);
    return init_error.code ? ortc_fail(error, init_error.code, "%s", init_error.text) : ORTC_OK;
}

/* ---- Small contexts for kernels ------------------------------------------------------------------------ */

static void why_because(ortc_why *w, const char *fmt, va_list args)
{
    char line[256];
    if (!w->text) return;
    vsnprintf(line, sizeof line, fmt, args);
    ortc_text_add(w->text, "%s; ", line);
}
static const ortc_why_api why_api = {.size = sizeof why_api, .because = why_because};
void ortc_why_init(ortc_why *w, ortc_text *text) { *w = (ortc_why){&why_api, text}; }
void ortc_why_end(char *text)
{
    size_t n = strlen(text);
    if (n >= 2 && !strcmp(text + n - 2, "; ")) text[n - 2] = 0;
}

static const ortc_device *prep_device(const ortc_prep *p) { return p->device; }
static ortc_status prep_fail(ortc_prep *p, ortc_status s, const char *fmt, va_list args)
{
    return ortc_vfail(p->error, s, fmt, args);
}
static const ortc_prep_api prep_api = {.size = sizeof prep_api, .device = prep_device, .fail = prep_fail};
void ortc_prep_init(ortc_prep *p, const ortc_device *device, ortc_error *error)
{
    *p = (ortc_prep){&prep_api, device, error};
}
