/* runtime/place/place.c: nodes to providers and kernels (place.h). Every "no" keeps its reason, to be
 * shown. */
#include "place.h"

#include "runtime/registry/registry.h"

static bool has_layout(const ortc_node *n)
{
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
        const ortc_edge *e = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (e && e->layout) return true;
    }
    return false;
}

const ortc_kernel *ortc_place_find(const ortc_session_device *d, const ortc_node *n, ortc_text *why)
{
    const ortc_kernel_item *i = ortc_kernels_of(d->provider->name, n->domain, n->type);
    if (!i && why) {
        const char *other = *n->domain ? ortc_kernels_elsewhere(d->provider->name, n->domain, n->type) : NULL;
        if (other)
            ortc_text_add(why, "no kernel (it has one for %s of %s: ORTC_KERNEL_IN names a domain); ",
                          n->type, *other ? other : "the standard's domain");
        else
            ortc_text_add(why, "no kernel; ");
    }
    for (; i; i = i->next) {
        const ortc_kernel *k = &i->kernel;
        if (!ortc_kernel_matches(i, n, why)) continue;
        if ((n->epilogue && !(k->flags & ORTC_KERNEL_EPILOGUE)) ||
            (has_layout(n) && !(k->flags & ORTC_KERNEL_LAYOUTS)))
            continue;
        if (d->space && (k->flags & (ORTC_KERNEL_LATE_OUT | ORTC_KERNEL_VALUES))) {
            if (why) ortc_text_add(why, "%s makes extents or values that are host objects; ", k->name);
            continue;
        }
        ortc_why w;
        ortc_why_init(&w, why);
        if (!k->supports || k->supports(n, d->device, &w) == ORTC_OK) return k;
    }
    return NULL;
}

/* Puts "cuda: no kernel; " behind what earlier providers said. */
bool ortc_add_reason(ortc_session *s, ortc_node *n, const char *provider, const char *why)
{
    char buffer[1024];
    ortc_text t = ORTC_TEXT(buffer);
    buffer[0] = 0;
    ortc_text_add(&t, "%s%s%s: %s", n->reasons, *n->reasons ? "; " : "", provider, *why ? why : "declined");
    if (t.length >= 2 && !strcmp(buffer + t.length - 2, "; ")) buffer[t.length - 2] = 0;
    return (n->reasons = ortc_arena_string(&s->graph->arena, buffer, strlen(buffer))) != NULL;
}

static ortc_status place_on(ortc_session *s, uint32_t device, ortc_node *n, ortc_error *error)
{
    char buffer[900];
    ortc_text why = ORTC_TEXT(buffer);
    const ortc_session_device *d = &s->devices[device];
    buffer[0] = 0;
    if (d->space && ortc_is_host_only(s, n))
        ortc_text_add(&why, "its results decide shapes, which is done on the host");
    else if ((n->kernel = ortc_place_find(d, n, &why))) {
        n->device = device;
        return ORTC_OK;
    }
    return ortc_add_reason(s, n, d->provider->name, buffer) ? ORTC_OK : ortc_no_memory(error, 0);
}

/* Before the last resort: bodies of raised nodes that are better placed in parts. */
static ortc_status place_bodies(ortc_session *s, ortc_error *error)
{
    bool any;
    ORTC_TRY(ortc_place_expand(s, &any, error));
    if (any) /* there are new edges */
        ORTC_TRY(ortc_mark_shapes_only(s, error));
    for (ortc_node *n = any ? s->graph->first : NULL; n; n = n->next) {
        if (n->reasons) continue;
        n->reasons = "";
        for (uint32_t d = 0; d + 1 < s->n_devices && !n->kernel; d++) ORTC_TRY(place_on(s, d, n, error));
    }
    return ORTC_OK;
}

ortc_status ortc_place(ortc_session *s, ortc_error *error)
{
    char buffer[900];
    ortc_text missing = ORTC_TEXT(buffer);
    uint32_t n_missing = 0;
    buffer[0] = 0;
    for (ortc_node *n = s->graph->first; n; n = n->next) {
        n->kernel = NULL;
        n->reasons = "";
    }
    for (uint32_t d = 0; d < s->n_devices; d++) {
        if (d + 1 == s->n_devices && d > 0) ORTC_TRY(place_bodies(s, error));
        ORTC_TRY(ortc_place_claims(s, d, error));
        for (ortc_node *n = s->graph->first; n; n = n->next)
            if (!n->kernel) ORTC_TRY(place_on(s, d, n, error));
    }
    for (ortc_node *n = s->graph->first; n; n = n->next)
        if (!n->kernel && n_missing++ < 4)
            ortc_text_add(&missing, "%snode '%s' (%s%s%s-%d; %s)", missing.length ? ", " : "", n->name,
                          n->domain, *n->domain ? "." : "", n->type, n->version, n->reasons);
    if (n_missing)
        return ortc_fail(error, ORTC_UNSUPPORTED, "%u node%s cannot be run by any provider: %s", n_missing,
                         n_missing == 1 ? "" : "s", buffer);
    return ortc_place_islands(s, error);
}

static bool in_list(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, n) && (at[n] == ',' || at[n] == 0)) return true;
    return false;
}

ortc_status ortc_place_require(const ortc_session *s, const char *providers, ortc_error *error)
{
    char buffer[900];
    ortc_text text = ORTC_TEXT(buffer);
    uint32_t outside = 0;
    buffer[0] = 0;
    for (const ortc_node *n = s->graph->first; n; n = n->next)
        if (!in_list(providers, s->devices[n->device].provider->name) && !ortc_is_host_only(s, n) &&
            outside++ < 4)
            ortc_text_add(&text, "%s'%s' (%s) is on %s (%s)", outside > 1 ? ", " : "", n->name, n->type,
                          s->devices[n->device].provider->name, n->reasons);
    return outside ? ortc_fail(error, ORTC_UNSUPPORTED, "%u node%s not on the required '%s': %s", outside,
                               outside == 1 ? " is" : "s are", providers, buffer)
                   : ORTC_OK;
}

ortc_status ortc_bind(ortc_session *s, ortc_error *error)
{
    for (ortc_node *n = s->graph->first; n; n = n->next) {
        if (!n->kernel->prepare) continue;
        ortc_prep p;
        ortc_prep_init(&p, s->devices[n->device].device, error);
        if (error) error->text[0] = 0;
        ortc_status status = n->kernel->prepare(n, &p, &n->state);
        if (status != ORTC_OK) {
            n->state = NULL;
            if (error && !error->text[0])
                ortc_fail(error, status, "kernel '%s' could not be prepared", n->kernel->name);
            ortc_error_prefix(error, "node '%s' (%s): ", n->name, n->type);
            return status;
        }
    }
    return ORTC_OK;
}

void ortc_unbind(ortc_session *s)
{
    for (ortc_node *n = s->graph->first; n; n = n->next) {
        if (n->state) (n->kernel->release ? n->kernel->release : free)(n->state);
        n->state = NULL;
    }
}
