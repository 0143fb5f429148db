/* graph/specialise/group_pointwise.c: pointwise nodes beside each other become one node of ortc.Group, which
 * carries their program (ortc/program.h) and passes over memory once.
 *
 * A group has one result; every other value in it has the result's shape and is read nowhere else. Inputs
 * are broadcast. It lies on one device, whose kernel for ortc.Group decides; where that says no, it is asked
 * for half of the nodes. What computes shapes is left alone: those values are wanted while planning.
 */
#include <stdio.h>

#include "graph/ir/pointwise.h"
#include "pointwise_nodes.h"
#include "specialise.h"

typedef struct growth {
    const ortc_specialise *pass;
    const ortc_node *sink;
} growth;

static bool may(const void *arg, const ortc_node *n)
{
    const growth *w = arg;
    return w->pass->together(w->pass->arg, n, w->sink) && ortc_pointwise_fits(n);
}

typedef struct proposal {
    ortc_specialise *pass;
    const ortc_node *where;
    ortc_node node;
} proposal;

static ortc_status ask(void *arg, const ortc_graph *body)
{
    proposal *p = arg;
    ortc_node *n = &p->node;
    ORTC_TRY(ortc_specialise_group_of(p->pass, body, n));
    n->program = ortc_pointwise_of_body(n->body);
    return n->program && p->pass->accept(p->pass->arg, n, NULL, p->where) ? ORTC_OK : ORTC_UNSUPPORTED;
}

/* The new node in *out; NULL: nobody takes it. */
static ortc_status group(ortc_specialise *s, ortc_node *const *nodes, uint32_t n, ortc_node **out)
{
    proposal p = {.pass = s, .where = nodes[0]};
    char list[256], name[64];
    ortc_text text = ORTC_TEXT(list);
    list[0] = 0;
    snprintf(name, sizeof name, "pointwise_%u", s->graph->next_node);
    const ortc_status status = ortc_graph_group(s->graph, (const ortc_node *const *)nodes, n, name, ask, &p,
                                                out, NULL);
    if (status == ORTC_UNSUPPORTED) return ORTC_OK;
    if (status != ORTC_OK) return ortc_no_memory(s->error, 0);
    (*out)->program = p.node.program;
    if (!s->accept(s->arg, *out, *out, nodes[0])) return ortc_no_memory(s->error, 0);
    for (const ortc_node *b = (*out)->body->first; b; b = b->next)
        ortc_text_add(&text, "%s%s", text.length ? " " : "", b->type);
    (*out)->fused = ortc_arena_string(&s->graph->arena, list, strlen(list));
    s->edits++;
    return (*out)->fused ? ORTC_OK : ortc_no_memory(s->error, 0);
}

ortc_status ortc_pass_group_pointwise(ortc_specialise *s)
{
    for (ortc_node *n = s->graph->last, *before; n; n = before) {
        ortc_node *nodes[ORTC_POINTWISE_MOST], *made = NULL;
        const growth how = {s, n};
        before = n->prev;
        if ((s->groups && !s->groups(s->arg, n)) || !ortc_pointwise_fits(n)) continue;
        for (uint32_t count = ortc_pointwise_grow(n, may, &how, nodes); count > 1 && !made; count /= 2)
            ORTC_TRY(group(s, nodes, count, &made));
        if (made) before = made->prev;
    }
    return ORTC_OK;
}
