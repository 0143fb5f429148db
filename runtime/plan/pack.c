/* runtime/plan/pack.c: packed forms of constants: made once on first request, shared, dropped with their last
 * user; or for one run, where its steps begin.
 *
 * The maker works outside the lock; others that want the same form wait for it. When a form has been made of
 * a constant in a mapped file, the source pages are dropped: they can be read again.
 */
#include "plan.h"
#include "runtime/call/call.h"

#define JOIN_NS 500000 /* to copy two megabytes into one page, where it is there */

bool ortc_pack_store_init(ortc_pack_store *s, uint64_t max_bytes)
{
    memset(s, 0, sizeof *s);
    s->max_bytes = max_bytes;
    s->cost = JOIN_NS;
    return !pthread_mutex_init(&s->lock, NULL) && !pthread_cond_init(&s->changed, NULL);
}

static void free_item(ortc_pack_store *s, ortc_pack_item *i)
{
    s->bytes -= i->packed.bytes;
    ortc_device_free(i->device, (void *)(uintptr_t)i->packed.data, i->packed.bytes);
    ortc_device_release(i->device);
    free(i);
}

void ortc_pack_store_deinit(ortc_pack_store *s)
{
    for (size_t b = 0; b < ORTC_LENGTH(s->buckets); b++)
        for (ortc_pack_item *i = s->buckets[b], *next; i; i = next) {
            next = i->next;
            free_item(s, i);
        }
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
}

static void unlink_item(ortc_pack_store *s, ortc_pack_item *i)
{
    ortc_pack_item **at = &s->buckets[i->hash % ORTC_LENGTH(s->buckets)];
    while (*at != i) at = &(*at)->next;
    *at = i->next;
}

static ortc_view view_of(const ortc_constant *c)
{
    return (ortc_view){.data = (void *)(uintptr_t)c->data,
                       .dtype = c->dtype,
                       .flags = ORTC_VIEW_CONST | ORTC_VIEW_HOST,
                       .rank = c->rank,
                       .dims = c->dims};
}

static ortc_status bytes_of(const ortc_constant *c, const ortc_packing *how, const void *param, size_t *out,
                            ortc_error *error)
{
    const ortc_view src = view_of(c);
    *out = how->bytes(&src, param);
    return *out ? ORTC_OK
                : ortc_fail(error, ORTC_LIMIT, "packing '%s': a constant is too large to pack", how->id);
}

static ortc_status fill_at(void *data, const ortc_constant *c, const ortc_packing *how, const void *param,
                           ortc_run_env *env)
{
    const ortc_view src = view_of(c);
    ortc_step_call call;
    ortc_step_call_init(&call, env, NULL);
    call.of_file = c->mapped;
    return how->fill(data, &src, param, &call.call);
}

static ortc_status fill_of(ortc_pack_store *s, ortc_pack_item *i, const ortc_constant *c,
                           const ortc_packing *how, const void *param, ortc_run_env *env, ortc_error *error)
{
    size_t bytes;
    ORTC_TRY(bytes_of(c, how, param, &bytes, error));
    pthread_mutex_lock(&s->lock);
    bool fits = !s->max_bytes || s->constants + s->bytes + bytes <= s->max_bytes;
    if (fits) s->bytes += bytes;
    pthread_mutex_unlock(&s->lock);
    if (!fits)
        return ortc_fail(error, ORTC_LIMIT, "packing '%s': %zu more bytes are over the model's limit of %llu",
                         how->id, bytes, (unsigned long long)s->max_bytes);
    void *data = ortc_device_alloc(i->device, bytes);
    if (!data) {
        pthread_mutex_lock(&s->lock);
        s->bytes -= bytes;
        pthread_mutex_unlock(&s->lock);
        return ortc_no_memory(error, bytes);
    }
    i->packed = (ortc_packed){data, bytes};
    bool staged = i->device && i->device->memory.device;
    if (s->interleaved && !staged) ortc_platform_interleave(data, bytes);
    if (staged && how == &ortc_packing_plain)
        ORTC_TRY(ortc_device_transfer(i->device, data, NULL, c->data, c->bytes, error));
    else if (staged) { /* packed on the host, then copied */
        void *staging = ortc_alloc_aligned(bytes);
        ortc_status status = staging ? fill_at(staging, c, how, param, env) : ortc_no_memory(error, bytes);
        if (status == ORTC_OK) status = ortc_device_transfer(i->device, data, NULL, staging, bytes, error);
        ortc_free_aligned(staging, bytes);
        ORTC_TRY(status);
    } else {
        ORTC_TRY(fill_at(data, c, how, param, env));
        ortc_platform_join_pages(data, bytes);
        if (!i->device || !i->device->memory.device) {
            pthread_mutex_lock(&s->lock);
            s->fresh = true;
            pthread_mutex_unlock(&s->lock);
            atomic_store_explicit(&s->unjoined, true, memory_order_relaxed);
        }
    }
    if (c->mapped) ortc_mapping_drop(c->data, c->bytes);
    return ORTC_OK;
}

bool ortc_packing_has(const ortc_packing *how, uint32_t flag)
{
    return how->size > offsetof(ortc_packing, flags) && (how->flags & flag);
}

/* What the packing reads: a constant that is yet to be rounded is, in memory of its own, unless the packing
 * rounds it by itself. `rounded` is room for it, and what is then in its data is freed by the caller. */
static ortc_status source_of(const ortc_constant *c, const ortc_packing *how, ortc_constant *rounded,
                             const ortc_constant **out, ortc_error *error)
{
    *out = !c->of ? c : ortc_packing_has(how, ORTC_PACKING_ROUNDS) ? c->of : rounded;
    *rounded = *c;
    rounded->data = NULL;
    if (*out != rounded) return ORTC_OK;
    uint16_t *data = malloc(c->bytes + 1);
    if (!data) return ortc_no_memory(error, c->bytes);
    ortc_constant_round(c->of, data);
    rounded->data = data;
    return ORTC_OK;
}

static ortc_status fill(ortc_pack_store *s, ortc_pack_item *i, const ortc_constant *c,
                        const ortc_packing *how, const void *param, ortc_run_env *env, ortc_error *error)
{
    ortc_constant rounded;
    ORTC_TRY(source_of(c, how, &rounded, &c, error));
    const ortc_status status = fill_of(s, i, c, how, param, env, error);
    free((void *)(uintptr_t)rounded.data);
    return status;
}

static ortc_pack_item *new_item(const ortc_constant *c, ortc_open_device *device, const ortc_packing *how,
                                const void *param, size_t param_bytes)
{
    ortc_pack_item *i = calloc(1, sizeof *i + param_bytes);
    if (!i) return NULL;
    i->references = 1;
    i->constant = c->id;
    i->device = ortc_device_retain(device);
    i->id = how->id;
    i->param_bytes = param_bytes;
    if (param_bytes) memcpy(i->param, param, param_bytes);
    return i;
}

static uint64_t hash_of(const ortc_constant *c, const ortc_packing *how, const void *param,
                        size_t param_bytes)
{
    return ortc_hash(param, param_bytes, ortc_hash_string(how->id) ^ c->id * 0x9e3779b97f4a7c15u);
}

/* Under the lock; NULL: it is not there. */
static ortc_pack_item *look_up(const ortc_pack_store *s, uint64_t hash, const ortc_constant *c,
                               const ortc_open_device *device, const ortc_packing *how, const void *param,
                               size_t param_bytes)
{
    for (ortc_pack_item *i = s->buckets[hash % ORTC_LENGTH(s->buckets)]; i; i = i->next)
        if (i->hash == hash && i->constant == c->id && i->device == device && i->param_bytes == param_bytes &&
            !strcmp(i->id, how->id) && (!param_bytes || !memcmp(i->param, param, param_bytes)))
            return i;
    return NULL;
}

ortc_pack_item *ortc_pack_find(ortc_pack_store *s, const ortc_constant *c, const ortc_open_device *device,
                               const ortc_packing *how, const void *param, size_t param_bytes)
{
    pthread_mutex_lock(&s->lock);
    ortc_pack_item *i = look_up(s, hash_of(c, how, param, param_bytes), c, device, how, param, param_bytes);
    if (i && !i->ready) i = NULL;
    if (i) i->references++;
    pthread_mutex_unlock(&s->lock);
    return i;
}

ortc_status ortc_pack_acquire(ortc_pack_store *s, const ortc_constant *c, ortc_open_device *device,
                              const ortc_packing *how, const void *param, size_t param_bytes,
                              ortc_run_env *env, ortc_pack_item **out, ortc_error *error)
{
    const uint64_t hash = hash_of(c, how, param, param_bytes);
    *out = NULL;
    pthread_mutex_lock(&s->lock);
    ortc_pack_item *i = look_up(s, hash, c, device, how, param, param_bytes);
    if (i) {
        i->references++;
        while (!i->ready && !i->failed) pthread_cond_wait(&s->changed, &s->lock);
        const bool ready = i->ready, again = i->cancelled;
        pthread_mutex_unlock(&s->lock);
        if (!ready) {
            ortc_pack_release(s, i);
            if (again) return ortc_pack_acquire(s, c, device, how, param, param_bytes, env, out, error);
            return ortc_fail(error, ORTC_OUT_OF_MEMORY, "packing '%s' failed in another thread", how->id);
        }
        *out = i;
        return ORTC_OK;
    }
    if (!(i = new_item(c, device, how, param, param_bytes))) {
        pthread_mutex_unlock(&s->lock);
        return ortc_no_memory(error, sizeof *i + param_bytes);
    }
    i->hash = hash;
    i->next = s->buckets[hash % ORTC_LENGTH(s->buckets)];
    s->buckets[hash % ORTC_LENGTH(s->buckets)] = i;
    pthread_mutex_unlock(&s->lock);

    ortc_status status = fill(s, i, c, how, param, env, error);
    pthread_mutex_lock(&s->lock);
    i->ready = status == ORTC_OK;
    i->failed = !i->ready;
    /* by the run that made it: others make it for themselves */
    i->cancelled = status == ORTC_CANCELLED || status == ORTC_DEADLINE;
    if (i->failed) unlink_item(s, i);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (status == ORTC_OK)
        *out = i;
    else
        ortc_pack_release(s, i);
    return status;
}

void ortc_pack_release(ortc_pack_store *s, ortc_pack_item *i)
{
    if (!i) return;
    pthread_mutex_lock(&s->lock);
    if (--i->references == 0) {
        if (!i->failed) unlink_item(s, i);
        free_item(s, i);
    }
    pthread_mutex_unlock(&s->lock);
}

ortc_status ortc_passing_make(const ortc_constant *c, const ortc_packing *how, const void *param,
                              size_t param_bytes, ortc_passing *out, ortc_error *error)
{
    size_t bytes;
    ORTC_TRY(
        bytes_of(c->of && ortc_packing_has(how, ORTC_PACKING_ROUNDS) ? c->of : c, how, param, &bytes, error));
    *out = (ortc_passing){new_item(c, NULL, how, param, param_bytes), c, how, 0};
    if (!out->item) return ortc_no_memory(error, sizeof *out->item + param_bytes);
    out->item->packed.bytes = bytes;
    return ORTC_OK;
}

ortc_status ortc_passing_fill(const ortc_passing *p, ortc_run_env *env, ortc_error *error)
{
    ortc_constant rounded;
    const ortc_constant *c;
    ORTC_TRY(source_of(p->constant, p->how, &rounded, &c, error));
    const ortc_status status = fill_at((void *)(uintptr_t)p->item->packed.data, c, p->how, p->item->param,
                                       env);
    if (c->mapped) ortc_mapping_drop(c->data, c->bytes);
    free((void *)(uintptr_t)rounded.data);
    return status;
}

static size_t aligned_bytes(const ortc_view *src, const void *param)
{
    size_t bytes;
    (void)param;
    return ortc_tensor_bytes(src->dtype, ortc_view_count(src), &bytes) ? bytes + 1 : 0; /* never 0 */
}
static ortc_status aligned_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    (void)call;
    memcpy(dst, src->data, aligned_bytes(src, param) - 1);
    return ORTC_OK;
}
const ortc_packing ortc_packing_aligned = {sizeof(ortc_packing), "host.aligned", aligned_bytes, aligned_fill};

const ortc_packing ortc_packing_plain = {sizeof(ortc_packing), "device.plain", aligned_bytes, aligned_fill};

/* The next two megabytes, under the lock; false: there are none left. */
static bool join_next(ortc_pack_store *s)
{
    for (size_t b = 0; b < ORTC_LENGTH(s->buckets); b++)
        for (ortc_pack_item *i = s->buckets[b]; i; i = i->next) {
            if (!i->ready || (i->device && i->device->memory.device)) continue;
            if (i->packed.bytes >= ORTC_HEAP_MOST &&
                ortc_platform_join_page((void *)(uintptr_t)i->packed.data, i->packed.bytes, &i->joined))
                return true;
        }
    return ortc_heap_join();
}

void ortc_pack_join(ortc_pack_store *s, int64_t ns)
{
    enum { SHARE = 8, MOST_NS = 20000000, SLOW_NS = 3000000 };
    if (s->interleaved || pthread_mutex_trylock(&s->lock)) return;
    const bool packed = s->fresh;
    s->fresh = false;
    s->credit = packed ? 0 : s->credit + ns / SHARE;
    s->credit = s->credit < MOST_NS ? s->credit : MOST_NS;
    while (s->credit >= s->cost) {
        const int64_t start = ortc_now_ns();
        bool goes_on = join_next(s);
        s->cost = ortc_now_ns() - start;
        s->credit -= s->cost;
        /* where the machine has to find the memory for it, the rest stays as it is until more is packed */
        if (s->cost > SLOW_NS) goes_on = false, s->cost = JOIN_NS;
        if (goes_on) continue;
        atomic_store_explicit(&s->unjoined, false, memory_order_relaxed);
        break;
    }
    pthread_mutex_unlock(&s->lock);
}

bool ortc_pack_alone(ortc_pack_store *s, ortc_pack_item *const *items, size_t count)
{
    bool alone = false;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < count && !alone; i++) alone = items[i]->references == 1;
    pthread_mutex_unlock(&s->lock);
    return alone;
}
