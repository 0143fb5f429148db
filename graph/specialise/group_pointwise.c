/* graph/specialise/group_pointwise.c: pointwise nodes beside each other become one node of ortc.Group, which
 * carries their program (ortc/program.h) and passes over memory once.
 *
 * A group has one result; every other value in it has the result's shape and is read nowhere else. Inputs
 * are broadcast. It lies on one device, whose kernel for ortc.Group decides; where that says no, it is asked
 * for half of the nodes. What computes shapes is left alone: those values are wanted while planning.
 */
#include <stdio.h>

#include "graph/ir/pointwise.h"
#include "specialise.h"

enum { MOST = 32 };

/* The elements are known at load, or a shape is read from them: cheap, and better seen as nodes. */
static bool is_about_shapes(const ortc_edge *e)
{
    if (e->values) return true;
    for (const ortc_use *u = e->uses; u; u = u->next) {
        const ortc_formal *f = u->node && u->node->op ? ortc_schema_in(ortc_op_schema(u->node->op), u->port)
                                                      : NULL;
        if (f && (f->flags & ORTC_FORMAL_DECIDES)) return true;
    }
    return false;
}

static bool fits(const ortc_node *n)
{
    const ortc_edge *y = n->n_out == 1 ? n->out[0] : NULL;
    return y && y->rank >= 0 && !n->n_captures && !n->epilogue && (!n->body || ortc_node_is_raised(n)) &&
           !is_about_shapes(y) && ortc_pointwise_of(n) != NULL;
}

static bool same_shape(const ortc_edge *a, const ortc_edge *b)
{
    if (a->rank != b->rank) return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

static bool contains(ortc_node *const *nodes, uint32_t n, const ortc_node *what)
{
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] == what) return true;
    return false;
}

static bool read_inside(const ortc_edge *e, ortc_node *const *nodes, uint32_t n)
{
    for (const ortc_use *u = e->uses; u; u = u->next)
        if (!u->node || !contains(nodes, n, u->node)) return false;
    return true;
}

/* From the result backwards until nothing more can come; in that order. */
static uint32_t grow(const ortc_specialise *s, ortc_node *sink, ortc_node **nodes)
{
    uint32_t n = 0;
    nodes[n++] = sink;
    for (uint32_t before = 0; before != n;) {
        before = n;
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t i = 0; i < nodes[k]->n_in && n < MOST; i++) {
                const ortc_edge *e = nodes[k]->in[i];
                ortc_node *from = e ? e->producer : NULL;
                if (from && s->together(s->arg, from, sink) && !contains(nodes, n, from) &&
                    same_shape(e, sink->out[0]) && read_inside(e, nodes, n) && fits(from))
                    nodes[n++] = from;
            }
    }
    return n;
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
    ortc_graph *g = (ortc_graph *)(uintptr_t)body;
    *n = (ortc_node){.api = &ortc_graph_node_api,
                     .op = &ortc_op_group,
                     .domain = ortc_op_group.domain,
                     .type = ortc_op_group.name,
                     .name = "",
                     .version = 1,
                     .n_in = body->n_inputs,
                     .n_out = body->n_outputs,
                     .body = g,
                     .graph = g};
    n->in = ortc_arena_array(&g->arena, n->n_in + 1u, sizeof *n->in);
    n->out = ortc_arena_array(&g->arena, n->n_out + 1u, sizeof *n->out);
    if (!n->in || !n->out) return ortc_no_memory(p->pass->error, 0);
    for (uint32_t i = 0; i < n->n_in; i++) n->in[i] = body->inputs[i].edge;
    for (uint32_t i = 0; i < n->n_out; i++) n->out[i] = body->outputs[i].edge;
    n->program = ortc_pointwise_of_body(g);
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
        ortc_node *nodes[MOST], *made = NULL;
        before = n->prev;
        if (!fits(n)) continue;
        for (uint32_t count = grow(s, n, nodes); count > 1 && !made; count /= 2)
            ORTC_TRY(group(s, nodes, count, &made));
        if (made) before = made->prev;
    }
    return ORTC_OK;
}
