/* runtime/execute/control.c: subgraphs at run time: each is a unit of its own, made with the one around it,
 * over the child graph; what it captures of the graph around it are the last inputs of the control node.
 */
#include "context.h"

ortc_status ortc_run_body(ortc_step_call *c, const char *name, uint32_t n_in, ortc_value *const *in,
                          uint32_t n_out, ortc_value **out)
{
    const ortc_node *n = c->node;
    ortc_unit *child = NULL;
    for (const ortc_unit_child *k = c->env->unit->children ? c->env->unit->children[n->id] : NULL; k;
         k = k->next)
        if (!strcmp(k->attribute, name)) child = k->unit;
    if (!child) return ortc_fail(c->env->error, ORTC_INTERNAL, "there is no subgraph '%s'", name);
    const ortc_graph *g = child->placed.graph;
    if (n_in + n->n_captures != g->n_inputs || n_out != g->n_outputs)
        return ortc_fail(c->env->error, ORTC_INVALID_MODEL,
                         "subgraph '%s' has %u inputs and %u outputs, expected %u and %u", name,
                         g->n_inputs - n->n_captures, g->n_outputs, n_in, n_out);
    ortc_in *ins = calloc(g->n_inputs + 1u, sizeof *ins);
    ortc_out *outs = calloc(n_out + 1u, sizeof *outs);
    size_t borrowed = c->env->borrowed.count;
    ortc_status s = ins && outs ? ORTC_OK : ortc_no_memory(c->env->error, g->n_inputs * sizeof *ins);
    for (uint32_t i = 0; i < g->n_inputs && s == ORTC_OK; i++) {
        ins[i].name = g->inputs[i].name;
        ins[i].value = i < n_in ? in[i] : ortc_step_call_input(c, n->n_in - n->n_captures + i - n_in);
        if (!ins[i].value)
            s = ortc_fail(c->env->error, ORTC_INTERNAL, "subgraph '%s': no value for '%s'", name,
                          ins[i].name);
    }
    for (uint32_t i = 0; i < n_out && s == ORTC_OK; i++) outs[i].name = g->outputs[i].name;
    if (s == ORTC_OK) {
        ortc_run_args a = ORTC_RUN_ARGS_INIT;
        a.in = ins;
        a.n_in = g->n_inputs;
        a.out = outs;
        a.n_out = n_out;
        a.cancel = c->env->cancel;
        a.deadline_ns = c->env->deadline_ns;
        a.seed = ortc_call_seed(&c->call);
        a.profiler = c->env->profiler;
        s = ortc_unit_run(child, &a, c->env->error);
    }
    for (uint32_t i = 0; i < n_out; i++) out[i] = s == ORTC_OK ? outs[i].value : NULL;
    while (c->env->borrowed.count > borrowed) /* captures: a loop runs its body many times */
        ortc_value_release(c->env->borrowed.data[--c->env->borrowed.count]);
    free(ins);
    free(outs);
    return s;
}
