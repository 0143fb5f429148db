/* graph/specialise/specialise.c: the table of specialising passes. */
#include "specialise.h"

#include <stdio.h>

const ortc_specialise_pass ortc_specialise_passes[] = {
    {"integer-moves", ortc_pass_integer_moves},
    {"integer-products", ortc_pass_integer_products}, /* whose epilogues are more than its own */
    {"between-bytes", ortc_pass_between_bytes},
    {"own-dequantised", ortc_pass_own_dequantised}, /* for those that follow */
    {"half-values", ortc_pass_half_values},
    {"fuse-epilogue", ortc_pass_fuse_epilogue},
    {"sibling-products", ortc_pass_sibling_products}, /* with their epilogues */
    {"squeeze-excite", ortc_pass_squeeze_excite},
    {"group-pointwise", ortc_pass_group_pointwise},
};
const size_t ortc_specialise_n_passes = ORTC_LENGTH(ortc_specialise_passes);

ortc_status ortc_specialise_run(ortc_specialise *s, uint64_t *edits)
{
    for (size_t i = 0; i < ortc_specialise_n_passes; i++) {
        s->edits = 0;
        ORTC_TRY(ortc_stop_poll(s->stop, s->error));
        ORTC_TRY(ortc_specialise_passes[i].run(s));
        edits[i] = s->edits;
#ifndef NDEBUG
        ORTC_TRY(ortc_graph_verify(s->graph, s->error));
#endif
    }
    return ORTC_OK;
}

ortc_status ortc_specialise_group_of(ortc_specialise *s, const ortc_graph *body, ortc_node *out)
{
    ortc_graph *g = (ortc_graph *)(uintptr_t)body;
    *out = (ortc_node){.api = &ortc_graph_node_api,
                       .op = &ortc_op_group,
                       .domain = ortc_op_group.domain,
                       .type = ortc_op_group.name,
                       .name = "",
                       .version = 1,
                       .n_in = body->n_inputs,
                       .n_out = body->n_outputs,
                       .body = g,
                       .graph = g};
    out->in = ortc_arena_array(&g->arena, out->n_in + 1u, sizeof *out->in);
    out->out = ortc_arena_array(&g->arena, out->n_out + 1u, sizeof *out->out);
    if (!out->in || !out->out) return ortc_no_memory(s->error, 0);
    for (uint32_t i = 0; i < out->n_in; i++) out->in[i] = body->inputs[i].edge;
    for (uint32_t i = 0; i < out->n_out; i++) out->out[i] = body->outputs[i].edge;
    return ORTC_OK;
}

typedef struct proposal {
    ortc_specialise *pass;
    const ortc_node *where;
} proposal;

static ortc_status ask(void *arg, const ortc_graph *body)
{
    const proposal *p = arg;
    ortc_node n;
    ORTC_TRY(ortc_specialise_group_of(p->pass, body, &n));
    return p->pass->accept(p->pass->arg, &n, NULL, p->where) ? ORTC_OK : ORTC_UNSUPPORTED;
}

ortc_status ortc_specialise_join(ortc_specialise *s, const ortc_node *const *nodes, uint32_t n,
                                 const char *called, ortc_node **out)
{
    proposal p = {s, nodes[0]};
    char list[256], name[64];
    ortc_text text = ORTC_TEXT(list);
    list[0] = 0;
    snprintf(name, sizeof name, "%s_%u", called, s->graph->next_node);
    for (uint32_t i = 0; i < n; i++)
        ortc_text_add(&text, "%s%s%s%s", i ? " " : "", nodes[i]->type, nodes[i]->fused ? " " : "",
                      nodes[i]->fused ? nodes[i]->fused : "");
    const ortc_status status = ortc_graph_group(s->graph, nodes, n, name, ask, &p, out, NULL);
    if (status == ORTC_UNSUPPORTED) return ORTC_OK;
    if (status != ORTC_OK) return ortc_no_memory(s->error, 0);
    if (!s->accept(s->arg, *out, *out, nodes[0])) return ortc_no_memory(s->error, 0);
    (*out)->fused = ortc_arena_string(&s->graph->arena, list, strlen(list));
    s->edits++;
    return (*out)->fused ? ORTC_OK : ortc_no_memory(s->error, 0);
}
