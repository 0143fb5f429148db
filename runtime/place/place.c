/* runtime/place/place.c: nodes to providers and kernels (place.h). Every "no" keeps its reason, to be
 * shown. */
#include "place.h"

#include "runtime/registry/registry.h"

#define MAX_CANDIDATES 32 /* of a node */

/* Candidates of a node agree in what is asked before one is chosen. */
static bool agrees(const ortc_kernel *a, const ortc_kernel *b)
{
    const uint32_t of_one = ORTC_KERNEL_LAYOUTS | ORTC_KERNEL_ROUNDS | ORTC_KERNEL_UNALIGNED;
    return !((a->flags ^ b->flags) & ~of_one) && a->host_in == b->host_in && a->host_out == b->host_out;
}

/* What is asked: of a device, about a node, for at most `max` kernels. */
typedef struct search {
    const ortc_target *device;
    const ortc_node *node;
    const ortc_kernel **list;
    uint32_t max, count;
    ortc_text *why; /* NULL: nobody wants to know */
} search;

/* A kernel that takes all shapes ends the list. */
static bool ended(const search *s)
{
    return s->count == s->max || (s->count && !s->list[s->count - 1]->choose);
}

/* Kernels of a family are often asked by one function, and programs are lowered to answer. */
static bool supported(const search *s, const ortc_kernel *k)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->list[i]->supports == k->supports) return true;
    ortc_why w;
    ortc_why_init(&w, s->why);
    return !k->supports || k->supports(s->node, s->device->device, &w) == ORTC_OK;
}

static void consider(search *s, const ortc_kernel *k)
{
    if (s->count && !agrees(s->list[0], k)) return;
    if (s->node->epilogue && !(k->flags & ORTC_KERNEL_EPILOGUE)) return;
    if (s->device->space && (k->flags & (ORTC_KERNEL_LATE_OUT | ORTC_KERNEL_VALUES))) {
        if (s->why) ortc_text_add(s->why, "%s makes extents or values that are host objects; ", k->name);
        return;
    }
    if (supported(s, k)) s->list[s->count++] = k;
}

/* No kernel is asked about a node that does not fit: its attributes need not mean anything. */
static ortc_status run_misfit(const void *state, const void *pstate, ortc_call *c)
{
    (void)state, (void)pstate;
    return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "its inputs and attributes do not fit each other");
}
static const ortc_kernel misfit = {.size = ORTC_SIZED(ortc_kernel),
                                   .flags = ORTC_KERNEL_LATE_OUT | ORTC_KERNEL_VALUES,
                                   .name = "misfit",
                                   .run = run_misfit};

/* What a device has for a node, in order of preference; how many. First kernels of the operator, then those
 * of ortc.Group, which run any program: a pointwise operator is a group of one. */
static uint32_t find(const ortc_target *d, const ortc_node *n, const ortc_kernel **list, uint32_t max,
                     ortc_text *why)
{
    search s = {d, n, list, max, 0, why};
    if (n->misfit) {
        if (n->op) consider(&s, &misfit);
        return s.count;
    }
    const char *provider = d->provider->name, *lacks = n->op ? ortc_kernels_load(n->op) : NULL;
    const ortc_kernel_item *own = ortc_kernels_of(provider, n->domain, n->type);
    const ortc_kernel_item *programs =
        n->op && n->op->expand ? ortc_kernels_of(provider, ortc_op_group.domain, ortc_op_group.name) : NULL;
    if (!own && !programs && why) {
        const char *other = *n->domain ? ortc_kernels_elsewhere(provider, n->domain, n->type) : NULL;
        if (other)
            ortc_text_add(why, "no kernel (it has one for %s of %s: ORTC_KERNEL_IN names a domain); ",
                          n->type, *other ? other : "the standard's domain");
        else
            ortc_text_add(why, "%s; ", lacks ? lacks : "no kernel");
    }
    for (; own && !ended(&s); own = own->next)
        if (ortc_kernel_matches(own, n, why)) consider(&s, own->entry->kernel);
    for (; programs && !ended(&s); programs = programs->next) consider(&s, programs->entry->kernel);
    return s.count;
}

bool ortc_place_can(const ortc_target *d, const ortc_node *n)
{
    const ortc_kernel *k;
    return find(d, n, &k, 1, NULL) > 0;
}

bool ortc_place_at(ortc_placed *p, const ortc_node *n, uint32_t device, const ortc_kernel *const *list,
                   uint32_t count)
{
    ortc_site *s = ortc_site_of(p, n);
    ortc_candidate *candidates = ortc_arena_array(&p->graph->arena, count, sizeof *candidates);
    if (!candidates) return false;
    for (uint32_t i = 0; i < count; i++) candidates[i].kernel = list[i];
    s->device = device;
    s->candidates = candidates;
    s->n_candidates = count;
    return true;
}

bool ortc_place_on(ortc_placed *p, const ortc_node *n, uint32_t device, ortc_text *why)
{
    const ortc_kernel *list[MAX_CANDIDATES];
    uint32_t count = find(&p->targets->list[device], n, list, MAX_CANDIDATES, why);
    return !count || ortc_place_at(p, n, device, list, count);
}

bool ortc_place_groups(const ortc_placed *p, const ortc_node *n)
{
    return ortc_kernels_of(ortc_target_of(p, n)->provider->name, ortc_op_group.domain, ortc_op_group.name);
}

bool ortc_place_accepts(ortc_placed *p, const ortc_node *proposal, const ortc_node *node,
                        const ortc_node *where)
{
    const ortc_kernel *list[MAX_CANDIDATES];
    uint32_t device = ortc_site_of(p, where)->device;
    const uint32_t most = node ? MAX_CANDIDATES : 1;
    const uint32_t count = find(&p->targets->list[device], proposal, list, most, NULL);
    if (!count || !node) return count > 0;
    if (!ortc_placed_cover(p) || !ortc_place_at(p, node, device, list, count)) return false;
    ortc_site *s = ortc_site_of(p, node);
    if (!s->reasons) s->reasons = "";
    return true;
}

/* Puts "cuda: no kernel; " behind what earlier providers said. */
bool ortc_add_reason(ortc_placed *p, const ortc_node *n, const char *provider, const char *why)
{
    ortc_site *s = ortc_site_of(p, n);
    char buffer[1024];
    ortc_text t = ORTC_TEXT(buffer);
    buffer[0] = 0;
    ortc_text_add(&t, "%s%s%s: %s", s->reasons, *s->reasons ? "; " : "", provider, *why ? why : "declined");
    if (t.length >= 2 && !strcmp(buffer + t.length - 2, "; ")) buffer[t.length - 2] = 0;
    return (s->reasons = ortc_arena_string(&p->graph->arena, buffer, strlen(buffer))) != NULL;
}

/* One device is asked about one node, which nobody has taken so far; if it does not, once more, why. */
static ortc_status ask(ortc_placed *p, uint32_t device, const ortc_node *n, ortc_error *error)
{
    char buffer[900];
    ortc_text why = ORTC_TEXT(buffer);
    const ortc_target *d = &p->targets->list[device];
    buffer[0] = 0;
    if (d->space && ortc_is_host_only(p, n))
        ortc_text_add(&why, "its results decide shapes, which is done on the host");
    else if (!ortc_place_on(p, n, device, NULL))
        return ortc_no_memory(error, 0);
    else if (ortc_kernel_of(p, n))
        return ORTC_OK;
    else if (!ortc_place_on(p, n, device, &why))
        return ortc_no_memory(error, 0);
    return ortc_add_reason(p, n, d->provider->name, buffer) ? ORTC_OK : ortc_no_memory(error, 0);
}

/* Before the next device is asked: bodies of raised nodes that are better placed in parts on those before. */
static ortc_status place_bodies(ortc_placed *p, uint32_t devices, ortc_error *error)
{
    bool any;
    ORTC_TRY(ortc_place_expand(p, devices, &any, error));
    if (any) /* there are new edges */
        ORTC_TRY(ortc_mark_shapes_only(p, error));
    for (const ortc_node *n = any ? p->graph->first : NULL; n; n = n->next) {
        if (ortc_site_of(p, n)->reasons) continue;
        ortc_site_of(p, n)->reasons = "";
        for (uint32_t d = 0; d < devices && !ortc_kernel_of(p, n); d++) ORTC_TRY(ask(p, d, n, error));
    }
    return ORTC_OK;
}

static ortc_status complain(const ortc_placed *p, ortc_error *error)
{
    char buffer[900];
    ortc_text missing = ORTC_TEXT(buffer);
    uint32_t n_missing = 0;
    buffer[0] = 0;
    for (const ortc_node *n = p->graph->first; n; n = n->next)
        if (!ortc_kernel_of(p, n) && n_missing++ < 4)
            ortc_text_add(&missing, "%snode '%s' (%s%s%s-%d; %s)", missing.length ? ", " : "", n->name,
                          n->domain, *n->domain ? "." : "", n->type, n->version, ortc_site_of(p, n)->reasons);
    return n_missing ? ortc_fail(error, ORTC_UNSUPPORTED, "%u node%s cannot be run by any provider: %s",
                                 n_missing, n_missing == 1 ? "" : "s", buffer)
                     : ORTC_OK;
}

ortc_status ortc_place(ortc_placed *p, ortc_error *error)
{
    ORTC_TRY(ortc_mark_shapes_only(p, error));
    for (const ortc_node *n = p->graph->first; n; n = n->next) ortc_site_of(p, n)->reasons = "";
    for (uint32_t d = 0; d < p->targets->count; d++) {
        ORTC_TRY(place_bodies(p, d, error));
        ORTC_TRY(ortc_place_claims(p, d, error));
        for (const ortc_node *n = p->graph->first; n; n = n->next) {
            ORTC_TRY(ortc_stop_poll(p->stop, error));
            if (!ortc_kernel_of(p, n)) ORTC_TRY(ask(p, d, n, error));
        }
    }
    ORTC_TRY(complain(p, error));
    return ortc_place_islands(p, error);
}

static bool in_list(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, n) && (at[n] == ',' || at[n] == 0)) return true;
    return false;
}

ortc_status ortc_place_require(const ortc_placed *p, const char *providers, ortc_error *error)
{
    char buffer[900];
    ortc_text text = ORTC_TEXT(buffer);
    uint32_t outside = 0;
    buffer[0] = 0;
    for (const ortc_node *n = p->graph->first; n; n = n->next)
        if (!in_list(providers, ortc_target_of(p, n)->provider->name) && !ortc_is_host_only(p, n) &&
            outside++ < 4)
            ortc_text_add(&text, "%s'%s' (%s) is on %s (%s)", outside > 1 ? ", " : "", n->name, n->type,
                          ortc_target_of(p, n)->provider->name, ortc_site_of(p, n)->reasons);
    return outside ? ortc_fail(error, ORTC_UNSUPPORTED, "%u node%s not on the required '%s': %s", outside,
                               outside == 1 ? " is" : "s are", providers, buffer)
                   : ORTC_OK;
}

/* ---- The table, and its kernels' states ---------------------------------------------------------------- */

ortc_status ortc_placed_init(ortc_placed *p, ortc_graph *g, const ortc_targets *targets, ortc_error *error)
{
    p->graph = g;
    p->targets = targets;
    return ortc_placed_cover(p) ? ORTC_OK : ortc_no_memory(error, g->next_node * sizeof(ortc_site));
}

bool ortc_placed_cover(ortc_placed *p)
{
    size_t count = p->graph->next_node, old = p->sites.count;
    if (old >= count) return true;
    if (!ortc_array_reserve(&p->sites, count)) return false;
    memset(p->sites.data + old, 0, (count - old) * sizeof *p->sites.data);
    p->sites.count = count;
    return true;
}

static ortc_status prepare(const ortc_node *n, const ortc_target *d, ortc_candidate *c, ortc_error *error)
{
    ortc_prep p;
    ortc_prep_init(&p, d->device, error);
    if (error) error->text[0] = 0;
    ortc_status status = c->kernel->prepare(n, &p, &c->state);
    if (status == ORTC_OK) return status;
    c->state = NULL;
    if (error && !error->text[0])
        ortc_fail(error, status, "kernel '%s' could not be prepared", c->kernel->name);
    ortc_error_prefix(error, "node '%s' (%s): ", n->name, n->type);
    return status;
}

/* ---- Movers: kernels for other layouts ------------------------------------------------------------------
 * */

/* A node that says which type is moved. */
static ortc_node *mover_node(ortc_placed *p, ortc_dtype t)
{
    ortc_graph *g = p->movers_graph ? p->movers_graph : (p->movers_graph = ortc_graph_create(NULL));
    const ortc_op *op = ortc_op_find("ortc", "Reorder");
    ortc_node *n = g && op ? ortc_node_create(g, op, "Reorder", 1, 1) : NULL;
    ortc_edge *in = n ? ortc_edge_create(g, NULL) : NULL, *out = n ? ortc_edge_create(g, NULL) : NULL;
    if (!in || !out || !ortc_edge_set_shape(in, ortc_tensor_type(t), -1, NULL) ||
        !ortc_edge_set_shape(out, ortc_tensor_type(t), -1, NULL) || !ortc_node_set_in(n, 0, in) ||
        !ortc_node_set_out(n, 0, out))
        return NULL;
    n->version = 1;
    return n;
}

/* The first device of the space that has a kernel for the type. */
static ortc_status add_mover(ortc_placed *p, uint32_t space, ortc_dtype t, ortc_error *error)
{
    ortc_mover m = {.space = space, .dtype = t, .node = mover_node(p, t)};
    if (!m.node) return ortc_no_memory(error, sizeof m);
    for (uint32_t d = 0; d < p->targets->count && !m.candidate.kernel; d++) {
        m.device = d;
        if (p->targets->list[d].space == space)
            find(&p->targets->list[d], m.node, &m.candidate.kernel, 1, NULL);
    }
    if (!m.candidate.kernel) return ORTC_OK;
    if (m.candidate.kernel->prepare)
        ORTC_TRY(prepare(m.node, &p->targets->list[m.device], &m.candidate, error));
    return ortc_array_push(&p->movers, m) ? ORTC_OK : ortc_no_memory(error, sizeof m);
}

/* For what nodes whose kernels know layouts read and write. */
static ortc_status add_movers(ortc_placed *p, const ortc_node *n, ortc_error *error)
{
    const ortc_site *s = ortc_site_of(p, n);
    const uint32_t space = ortc_target_of(p, n)->space;
    uint32_t flags = 0;
    for (uint32_t i = 0; i < s->n_candidates; i++) flags |= s->candidates[i].kernel->flags;
    for (uint32_t i = 0; (flags & ORTC_KERNEL_LAYOUTS) && i < n->n_in + n->n_out; i++) {
        const ortc_edge *e = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        const ortc_dtype t = e && e->type && e->type->kind == ORTC_KIND_TENSOR ? e->type->dtype : 0;
        if (t && ortc_dtype_bits(t) >= 8 && !ortc_mover_of(p, space, t))
            ORTC_TRY(add_mover(p, space, t, error));
    }
    return ORTC_OK;
}

/* The candidate before this one that was prepared the same way, and so has the same state; NULL: none. */
static const ortc_candidate *alike(const ortc_site *s, uint32_t index)
{
    const ortc_kernel *k = s->candidates[index].kernel;
    for (uint32_t i = 0; i < index; i++) {
        const ortc_kernel *other = s->candidates[i].kernel;
        if (other->prepare == k->prepare && other->release == k->release) return &s->candidates[i];
    }
    return NULL;
}

ortc_status ortc_bind(ortc_placed *p, ortc_error *error)
{
    ORTC_TRY(ortc_mark_deciding(p, error));
    for (const ortc_node *n = p->graph->first; n; n = n->next) {
        const ortc_site *s = ortc_site_of(p, n);
        ORTC_TRY(ortc_stop_poll(p->stop, error));
        for (uint32_t i = 0; i < s->n_candidates; i++) {
            if (!s->candidates[i].kernel->prepare) continue;
            const ortc_candidate *same = alike(s, i);
            if (same)
                s->candidates[i].state = same->state;
            else
                ORTC_TRY(prepare(n, ortc_target_of(p, n), &s->candidates[i], error));
        }
        ORTC_TRY(add_movers(p, n, error));
    }
    return ORTC_OK;
}

static void release_state(const ortc_candidate *c)
{
    if (c->state) (c->kernel->release ? c->kernel->release : free)(c->state);
}

void ortc_placed_deinit(ortc_placed *p)
{
    for (size_t k = 0; k < p->sites.count; k++)
        for (uint32_t i = 0; i < p->sites.data[k].n_candidates; i++)
            if (!alike(&p->sites.data[k], i)) release_state(&p->sites.data[k].candidates[i]);
    ortc_array_deinit(&p->sites);
    for (size_t i = 0; i < p->movers.count; i++) release_state(&p->movers.data[i].candidate);
    ortc_array_deinit(&p->movers);
    ortc_graph_destroy(p->movers_graph);
}
