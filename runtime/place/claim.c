/* runtime/place/claim.c: groups of nodes that a provider takes as one and compiles (ortc_provider.claim and
 * .compile).
 *
 * A claimed group becomes one node of the operator `Group` whose body the nodes are. A claim is refused, with
 * a reason in the log, when the nodes are taken already, cannot run as one, run subgraphs or hold state, or
 * let run-time values decide shapes.
 */
#include <stdio.h>

#include "place.h"
#include "runtime/registry/registry.h"

typedef struct claims {
    ortc_placed *placed;
    uint32_t device;
    const ortc_kernel *kernel;
    ortc_error *error;
} claims;

static ortc_status compile(void *arg, const ortc_graph *body)
{
    claims *c = arg;
    const ortc_target *d = &c->placed->targets->list[c->device];
    char text[512];
    ortc_text t = ORTC_TEXT(text);
    ortc_why why;
    text[0] = 0;
    ortc_why_init(&why, &t);
    c->kernel = NULL;
    ortc_status s = d->provider->compile(d->device, body, NULL, &c->kernel, &why);
    if (s == ORTC_OK && (!c->kernel || c->kernel->size < sizeof *c->kernel || !c->kernel->run))
        s = ortc_no(&why, "compile gave no kernel");
    ortc_why_end(text);
    return s == ORTC_OK ? s : ortc_fail(c->error, s, "%s", text);
}

static ortc_status check(const ortc_placed *p, const ortc_node *n, ortc_error *error)
{
    const ortc_schema *schema = ortc_op_schema(n->op);
    if (ortc_kernel_of(p, n))
        return ortc_fail(error, ORTC_INVALID_STATE, "node '%s' (%s) is placed already", n->name, n->type);
    if (n->op->flags & (ORTC_OP_CONTROL | ORTC_OP_STATE))
        return ortc_fail(error, ORTC_UNSUPPORTED, "node '%s' (%s) runs subgraphs or holds state", n->name,
                         n->type);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const ortc_formal *f = ortc_schema_in(schema, i);
        if (f && (f->flags & ORTC_FORMAL_DECIDES) && n->in[i] && !ortc_edge_is_const(n->in[i]))
            return ortc_fail(error, ORTC_UNSUPPORTED,
                             "node '%s' (%s): values made by the run decide its shape", n->name, n->type);
    }
    return ORTC_OK;
}

static ortc_status take(void *arg, const ortc_claim *claim)
{
    claims *c = arg;
    ortc_placed *p = c->placed;
    const ortc_target *d = &p->targets->list[c->device];
    ortc_error why = ORTC_ERROR_INIT;
    ortc_node *group;
    char name[64];
    ortc_status s = claim->n ? ORTC_OK : ortc_fail(&why, ORTC_INVALID_ARGUMENT, "a claim without nodes");
    for (uint32_t i = 0; i < claim->n && s == ORTC_OK; i++) {
        s = check(p, claim->nodes[i], &why);
        if (s == ORTC_OK && d->space && ortc_is_host_only(p, claim->nodes[i]))
            s = ortc_fail(&why, ORTC_UNSUPPORTED,
                          "the results of node '%s' (%s) decide shapes, which is done on the host",
                          claim->nodes[i]->name, claim->nodes[i]->type);
    }
    snprintf(name, sizeof name, "%s_%u", d->provider->name, p->graph->next_node);
    c->error = &why;
    if (s == ORTC_OK) s = ortc_graph_group(p->graph, claim->nodes, claim->n, name, compile, c, &group, &why);
    if (s != ORTC_OK) {
        ortc_log(ORTC_LOG_INFO, "provider '%s': a claim of %u nodes is refused: %s", d->provider->name,
                 claim->n, why.text);
        char text[512];
        snprintf(text, sizeof text, "as a group: %.480s", why.text);
        for (uint32_t i = 0; i < claim->n; i++) {
            ortc_node *n = (ortc_node *)(uintptr_t)claim->nodes[i];
            if (!ortc_kernel_of(p, n) && !ortc_add_reason(p, n, d->provider->name, text))
                return ORTC_OUT_OF_MEMORY;
        }
        return s;
    }
    if (!ortc_placed_cover(p) || !ortc_place_at(p, group, c->device, &c->kernel, 1))
        return ORTC_OUT_OF_MEMORY;
    ortc_site_of(p, group)->reasons = "";
    char list[256];
    ortc_text t = ORTC_TEXT(list);
    list[0] = 0;
    for (const ortc_node *n = group->body->first; n; n = n->next)
        ortc_text_add(&t, "%s%s", t.length ? " " : "", n->type);
    group->fused = ortc_arena_string(&p->graph->arena, list, strlen(list));
    return group->fused ? ORTC_OK : ORTC_OUT_OF_MEMORY;
}

ortc_status ortc_place_claims(ortc_placed *p, uint32_t device, ortc_error *error)
{
    const ortc_target *d = &p->targets->list[device];
    claims c = {p, device, NULL, error};
    if (!d->provider->claim) return ORTC_OK;
    ortc_status status = d->provider->claim(d->device, p->graph, take, &c);
    return status == ORTC_OK
               ? status
               : ortc_fail(error, status, "provider '%s' failed to look for what it can take (%s)",
                           d->provider->name, ortc_status_name(status));
}
