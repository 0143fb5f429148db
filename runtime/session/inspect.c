/* runtime/session/inspect.c: sessions, plans and providers described for `ortc info` and for tests. */
#include "graph/specialise/specialise.h"
#include "runtime/execute/context.h"
#include "runtime/plan/choose.h"
#include "runtime/registry/registry.h"
#include "session.h"

void ortc_model_values(const ortc_model *m, int (*each)(void *arg, const ortc_model_value *), void *arg)
{
    for (const ortc_node *n = m->graph->first; n; n = n->next)
        for (uint32_t i = 0; i < n->n_out; i++) {
            const ortc_edge *e = n->out[i];
            if (!e || !e->origin) continue;
            const ortc_model_value v = {
                .size = sizeof v, .name = e->origin, .node = n->name, .op = n->type, .type = e->type};
            if (each(arg, &v)) return;
        }
}

/* Names of a node's inputs, then of its outputs. */
typedef struct port_names {
    const char **outputs; /* by edge id: of the model's outputs; NULL for other values */
    const char **names;
    size_t capacity;
} port_names;

static bool port_names_init(port_names *p, const ortc_graph *g)
{
    *p = (port_names){.outputs = calloc(g->edges.count + 1, sizeof *p->outputs)};
    for (uint32_t i = g->n_outputs; p->outputs && i-- > 0;)
        p->outputs[g->outputs[i].edge->id] = g->outputs[i].name;
    return p->outputs != NULL;
}
static void port_names_deinit(port_names *p)
{
    free(p->outputs);
    free(p->names);
}

/* An output of the model goes by that name, whatever passes made it of; all else by the file's, if it has
 * one. */
static const char *shown_name(const port_names *p, const ortc_edge *e)
{
    return p->outputs[e->id] ? p->outputs[e->id] : e->origin ? e->origin : e->name;
}

static bool name_ports(port_names *p, const ortc_node *n)
{
    const size_t count = (size_t)n->n_in + n->n_out;
    if (count > p->capacity) {
        const char **grown = realloc(p->names, count * sizeof *grown);
        if (!grown) return false;
        p->names = grown;
        p->capacity = count;
    }
    for (size_t i = 0; i < count; i++) {
        const ortc_edge *e = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        p->names[i] = e ? shown_name(p, e) : NULL;
    }
    return true;
}

void ortc_session_placement(ortc_session *s, int (*each)(void *arg, const ortc_placement *), void *arg)
{
    const ortc_placed *placed = &s->unit.placed;
    uint32_t index = 0;
    char names[512];
    port_names ports;
    if (!port_names_init(&ports, placed->graph)) return;
    for (const ortc_node *n = placed->graph->first; n; n = n->next, index++) {
        const ortc_site *site = ortc_site_of(placed, n);
        ortc_text kernels = ORTC_TEXT(names);
        names[0] = 0;
        for (uint32_t i = 0; i < site->n_candidates; i++)
            ortc_text_add(&kernels, "%s%s", i ? "|" : "", site->candidates[i].kernel->name);
        if (!name_ports(&ports, n)) break;
        ortc_placement p = {.size = sizeof p,
                            .index = index,
                            .node = n->name,
                            .domain = n->domain,
                            .op = n->type,
                            .version = n->version,
                            .provider = ortc_target_of(placed, n)->provider->name,
                            .kernel = names,
                            .fused = n->fused ? n->fused : "",
                            .reasons = site->reasons ? site->reasons : "",
                            .n_in = n->n_in,
                            .n_out = n->n_out,
                            .in = ports.names,
                            .out = ports.names + n->n_in};
        if (each(arg, &p)) break;
    }
    port_names_deinit(&ports);
}

static void describe_outputs(const ortc_step *s, ortc_text *t)
{
    static const char *const from[] = {"", "constant", "input", "output", "arena", "slot"};
    for (uint32_t i = 0; i < s->n_out; i++) {
        const ortc_operand *o = &s->out[i];
        if (s->kind == ORTC_STEP_COPY && s->values)
            ortc_text_add(t, "a value");
        else if (s->kind == ORTC_STEP_COPY)
            ortc_text_add(t, "%zu bytes%s", s->copy_bytes,
                          s->out->space  ? " to the device,"
                          : s->in->space ? " to the host,"
                                         : "");
        else if (o->view.flags & ORTC_VIEW_VALUE)
            ortc_text_type(t, s->node->out[i]->type);
        else if (!o->view.dtype)
            continue;
        else
            ortc_text_tensor(t, o->view.dtype, o->view.rank, o->view.dims);
        if (o->view.layout) {
            ortc_text_add(t, " ");
            ortc_text_layout(t, o->view.layout, o->view.rank);
        }
        if (o->from == ORTC_FROM_ARENA)
            ortc_text_add(t, " @%zu", o->offset);
        else
            ortc_text_add(t, " %s", from[o->from]);
        if (i + 1 < s->n_out) ortc_text_add(t, "; ");
    }
}

static void describe_offers(const ortc_step *s, ortc_text *t)
{
    for (uint32_t i = 0; i < s->n_offers; i++) {
        const ortc_step_offer *o = &s->offers[i];
        ortc_text_add(t, "%s%s", i ? "; " : "", o->name);
        if (o->layout) {
            ortc_text_add(t, "@");
            ortc_text_layout(t, o->layout, s->n_out ? s->out[0].view.rank : 0);
        }
        ortc_text_add(t, " %.3g", o->clocks);
    }
}

/* ---- Memory over time ---------------------------------------------------------------------------------- */

/* A form of a value in the arena: from the step that makes it to the last that reads it. */
typedef struct life {
    const ortc_operand *at;
    uint32_t from, to;
    uint32_t other; /* 1 + another form of the value; 0: none */
} life;

static size_t operand_bytes(const ortc_operand *o)
{
    size_t bytes = 0;
    if (o->view.dtype) ortc_bytes_laid_out(o->view.dtype, o->view.layout, o->view.rank, o->view.dims, &bytes);
    return bytes;
}

/* The life of this form of the operand's root, among those that begin at newest[root]; NULL: none yet. */
static life *life_of(life *lives, const uint32_t *newest, size_t count, const ortc_operand *o)
{
    if (o->from != ORTC_FROM_ARENA || o->root >= count) return NULL;
    for (uint32_t i = newest[o->root]; i; i = lives[i - 1].other)
        if (lives[i - 1].at->form == o->form) return &lives[i - 1];
    return NULL;
}

/* Per step, the arena's bytes in use; NULL when memory is short. A view counts as what it is a view of, each
 * layout of a value for itself. */
static uint64_t *live_bytes(const ortc_graph *g, const ortc_program *p)
{
    size_t n_lives = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) n_lives += p->steps[i].n_out;
    uint64_t *live = calloc(p->n_steps + 1u, sizeof *live);
    life *lives = calloc(n_lives + 1, sizeof *lives);
    uint32_t *newest = calloc(g->edges.count + 1, sizeof *newest), made = 0;
    for (uint32_t i = 0; live && lives && newest && i < p->n_steps; i++) {
        const ortc_step *s = &p->steps[i];
        for (uint32_t k = 0; k < s->n_in; k++) {
            life *l = life_of(lives, newest, g->edges.count, &s->in[k]);
            if (l) l->to = i;
        }
        for (uint32_t k = 0; k < s->n_out; k++) {
            const ortc_operand *o = &s->out[k];
            if (o->from != ORTC_FROM_ARENA || o->root >= g->edges.count) continue;
            life *l = life_of(lives, newest, g->edges.count, o);
            if (l) { /* a part of it was there before */
                if (operand_bytes(o) > operand_bytes(l->at)) l->at = o;
                continue;
            }
            lives[made] = (life){o, i, i, newest[o->root]};
            newest[o->root] = ++made;
            l = o->over ? life_of(lives, newest, g->edges.count, &s->in[o->over - 1]) : NULL;
            if (l && l->from < i) l->to = i - 1; /* whose place it takes */
        }
    }
    for (uint32_t e = 0; live && lives && newest && e < made; e++)
        for (uint32_t i = lives[e].from; i <= lives[e].to; i++) live[i] += operand_bytes(lives[e].at);
    free(newest);
    free(lives);
    return live;
}

static void describe_steps(const ortc_unit *u, const ortc_program *p,
                           int (*each)(void *, const ortc_step_info *), void *arg)
{
    static const char *const kinds[] = {"kernel", "copy", "signal", "wait", "control"};
    uint64_t *live = live_bytes(u->placed.graph, p);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const ortc_step *step = &p->steps[i];
        char buffer[1024], offers[512];
        ortc_text t = ORTC_TEXT(buffer), o = ORTC_TEXT(offers);
        buffer[0] = offers[0] = 0;
        describe_outputs(step, &t);
        describe_offers(step, &o);
        ortc_step_info info = {.size = sizeof info,
                               .index = i,
                               .kind = kinds[step->kind],
                               .node = step->node ? step->node->name : "",
                               .op = step->node ? step->node->type : "",
                               .provider = ortc_unit_target(u, step->device)->provider->name,
                               .kernel = step->kernel ? step->name : "",
                               .outputs = buffer,
                               .flops = step->flops,
                               .bytes = step->bytes,
                               .clocks = step->n_offers > 1 ? step->clocks : 0,
                               .offers = offers,
                               .workspace = step->workspace +
                                            (uint64_t)step->workspace_per_worker * u->threads};
        info.live = (live ? live[i] : 0) + info.workspace;
        if (each(arg, &info)) break;
    }
    free(live);
}

ortc_status ortc_session_plan(ortc_session *s, const ortc_in *in, size_t n_in, ortc_plan_info *out,
                              int (*each)(void *arg, const ortc_step_info *), void *arg, ortc_error *error)
{
    ortc_context *c;
    ortc_program *p;
    if (!s || (n_in && !in))
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "ortc_session_plan: the session or the list of inputs is NULL");
    ORTC_TRY(ortc_context_take(&s->unit, &c, error));
    c->env = (ortc_run_env){.threads = s->unit.threads,
                            .error = error,
                            .allocator = s->unit.allocator,
                            .executor = s->unit.executor};
    ortc_status status = ortc_context_program(c, in, n_in, &p, error);
    if (status == ORTC_OK) {
        if (out) {
            uint64_t arena_bytes = 0;
            for (uint32_t i = 0; i < s->targets.n_spaces; i++) arena_bytes += p->arena_bytes[i];
            ortc_plan_info info = {.size = sizeof info,
                                   .n_steps = p->n_steps,
                                   .n_views = p->n_views,
                                   .n_folded = p->n_folded,
                                   .arena_bytes = arena_bytes,
                                   .workspace_bytes = p->workspace_bytes,
                                   .constant_bytes = p->constant_bytes,
                                   .packed_bytes = p->packed_bytes};
            *out = info;
        }
        if (each) describe_steps(&s->unit, p, each, arg);
        ortc_program_release(p);
    }
    c->env.error = NULL;
    ortc_context_return(c);
    return status;
}

void ortc_session_statistics(ortc_session *s, ortc_session_stats *out)
{
    ortc_unit *u = &s->unit;
    ortc_session_stats all = {.size = out->size};
    pthread_mutex_lock(&u->lock);
    all.n_contexts = u->n_contexts;
    pthread_mutex_unlock(&u->lock);
    pthread_mutex_lock(&u->plans.lock);
    all.plan_bytes = u->plans.bytes;
    pthread_mutex_unlock(&u->plans.lock);
    all.plans_made = atomic_load(&u->plans.made);
    all.captures = atomic_load(&u->captures);
    all.replays = atomic_load(&u->replays);
    all.bytes_to_devices = atomic_load(&u->bytes_to_devices);
    all.bytes_from_devices = atomic_load(&u->bytes_from_devices);
    all.arena_bytes = atomic_load(&u->arena_bytes);
    memcpy(out, &all, all.size < sizeof all ? all.size : sizeof all);
}

const char *ortc_session_pass(ortc_session *s, size_t i, uint64_t *out_edits)
{
    if (i >= ortc_specialise_n_passes) return NULL;
    if (out_edits) *out_edits = s->pass_edits[i];
    return ortc_specialise_passes[i].name;
}

void ortc_providers(int (*each)(void *arg, const ortc_provider_info *), void *arg)
{
    if (ortc_registry_init(NULL) != ORTC_OK) return;
    ortc_providers_load_all();
    const ortc_provider *p;
    for (size_t i = 0; (p = ortc_provider_at(i)); i++) {
        ortc_device_info devices[8];
        char buffer[512];
        ortc_text text = ORTC_TEXT(buffer);
        ortc_why why;
        uint32_t n = ORTC_LENGTH(devices);
        memset(devices, 0, sizeof devices);
        buffer[0] = 0;
        ortc_why_init(&why, &text);
        ortc_provider_info info = {.size = sizeof info,
                                   .provider = p->name,
                                   .device = "",
                                   .notes = buffer,
                                   .n_kernels = ortc_kernels_count(p->name)};
        if (p->devices(ortc_host_get(), devices, &n, &why) != ORTC_OK || n == 0) {
            ortc_why_end(buffer);
            if (each(arg, &info)) return;
            continue;
        }
        for (uint32_t d = 0; d < n && d < ORTC_LENGTH(devices); d++) {
            info.device = devices[d].name;
            info.notes = devices[d].notes;
            info.memory_bytes = devices[d].memory_bytes;
            info.memory_free = devices[d].memory_free;
            info.ordinal = d;
            if (each(arg, &info)) return;
        }
    }
}

_Static_assert(ORTC_OPSET == ORTC_NEWEST, "the two public headers say which opset is the newest");
