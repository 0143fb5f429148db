/* graph/onnx/import_function.c: model-local functions, inlined where they are called.
 *
 * Before anything is inlined the table of functions is walked: recursion, calls nested too deep and bodies
 * that grow without measure (functions that call twice double with every level) are refused by arithmetic,
 * not by running out of memory. A name that the standard and we have an operator for is that operator, even
 * where the file brings a body.
 */
#include "import.h"

#include <stdio.h>

/* Inlining may make a graph this many times as large as the file has nodes, and FREE_NODES larger: a node
 * costs some microseconds of loading, however few bytes it has. */
enum { GROWTH = 4, FREE_NODES = 200000, KEY_BYTES = 256 };

/* ---- The table ----------------------------------------------------------------------------------------- */

/* Domain, name and overload as one string: in `buffer` when they fit, else in the arena; NULL: memory is
 * short. */
static const char *make_key(ortc_importer *in, char *buffer, const char *domain, const char *name,
                            const char *overload)
{
    domain = ortc_proto_domain(domain);
    int n = snprintf(buffer, KEY_BYTES, "%s\n%s\n%s", domain, ortc_proto_text(name),
                     ortc_proto_text(overload));
    return n < KEY_BYTES ? buffer
                         : ortc_arena_printf(&in->arena, "%s\n%s\n%s", domain, ortc_proto_text(name),
                                             ortc_proto_text(overload));
}

ortc_function *ortc_import_function(ortc_importer *in, const Onnx__NodeProto *node)
{
    char buffer[KEY_BYTES];
    const char *domain = ortc_proto_domain(node->domain), *key;
    ortc_function *f;

    if (in->functions.count == 0) return NULL;
    key = make_key(in, buffer, node->domain, node->op_type, node->overload);
    f = key ? ortc_map_get(&in->functions, key) : NULL;
    if (f && (*domain == 0 || strncmp(domain, "ai.onnx.", 8) == 0) &&
        ortc_op_find(domain, ortc_proto_text(node->op_type)))
        return NULL;
    return f;
}

static uint64_t saturating_add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static ortc_status measure(ortc_importer *, ortc_function *);

/* Adds the size of some nodes, their subgraphs and the functions that they call; depth: the deepest call. */
static ortc_status measure_nodes(ortc_importer *in, Onnx__NodeProto *const *nodes, size_t n, uint64_t *size,
                                 uint32_t *depth)
{
    for (size_t i = 0; i < n; i++) {
        ortc_function *f = ortc_import_function(in, nodes[i]);
        *size = saturating_add(*size, 1);
        if (f) {
            ORTC_TRY(measure(in, f));
            *size = saturating_add(*size, f->n_nodes);
            *depth = f->depth > *depth ? f->depth : *depth;
        }
        for (size_t k = 0; k < nodes[i]->n_attribute; k++) {
            const Onnx__AttributeProto *a = nodes[i]->attribute[k];
            for (size_t g = 0; g < a->n_graphs + (a->g != NULL); g++) {
                const Onnx__GraphProto *graph = g < a->n_graphs ? a->graphs[g] : a->g;
                ORTC_TRY(measure_nodes(in, graph->node, graph->n_node, size, depth));
            }
        }
    }
    return ORTC_OK;
}

static ortc_status measure(ortc_importer *in, ortc_function *f)
{
    const char *name = ortc_proto_text(f->proto->name);
    ortc_status status;

    if (f->visiting == 2) return ORTC_OK;
    if (f->visiting == 1) return ortc_fail(in->error, ORTC_INVALID_MODEL, "function '%s' calls itself", name);
    if (in->n_calls == ORTC_IMPORT_MAX_CALLS)
        return ortc_fail(in->error, ORTC_LIMIT, "functions call each other more than %d deep ('%s')",
                         ORTC_IMPORT_MAX_CALLS, name);
    f->visiting = 1;
    in->n_calls++;
    status = measure_nodes(in, f->proto->node, f->proto->n_node, &f->n_nodes, &f->depth);
    in->n_calls--;
    f->depth++;
    f->visiting = 2;
    /* Measured earlier, met deeper: the depth below counts too. */
    if (status == ORTC_OK && f->depth > ORTC_IMPORT_MAX_CALLS)
        return ortc_fail(in->error, ORTC_LIMIT, "functions call each other more than %d deep ('%s')",
                         ORTC_IMPORT_MAX_CALLS, name);
    return status;
}

static ortc_status add_function(ortc_importer *in, const Onnx__FunctionProto *p)
{
    char buffer[KEY_BYTES];
    ortc_function *f = ortc_arena_alloc(&in->arena, sizeof *f);
    const char *key = make_key(in, buffer, p->domain, p->name, p->overload);

    if (!f || !key || !(f->key = ortc_arena_string(&in->arena, key, strlen(key))))
        return ortc_no_memory(in->error, sizeof *f);
    f->proto = p;
    if (ortc_map_get(&in->functions, f->key))
        return ortc_fail(in->error, ORTC_INVALID_MODEL, "function '%s' of domain '%s' is defined twice",
                         ortc_proto_text(p->name), ortc_proto_text(p->domain));
    if (p->n_opset_import > ORTC_IMPORT_MAX_OPSETS)
        return ortc_fail(in->error, ORTC_LIMIT, "function '%s' imports %zu operator sets",
                         ortc_proto_text(p->name), p->n_opset_import);
    return ortc_map_set(&in->functions, f->key, f) ? ORTC_OK : ortc_no_memory(in->error, sizeof *f);
}

ortc_status ortc_import_functions(ortc_importer *in)
{
    const Onnx__ModelProto *m = in->model;
    uint64_t size = 0, stored = m->graph->n_node;
    uint32_t depth = 0;

    if (m->n_functions == 0) return ORTC_OK;
    for (size_t i = 0; i < m->n_functions; i++) {
        ORTC_TRY(add_function(in, m->functions[i]));
        stored += m->functions[i]->n_node;
    }
    ORTC_TRY(measure_nodes(in, m->graph->node, m->graph->n_node, &size, &depth));
    if (size > ORTC_WIRE_MAX_NODES || size > FREE_NODES + GROWTH * stored)
        return ortc_fail(in->error, ORTC_LIMIT,
                         "with its functions inlined the model would have %s%llu nodes, stored are %llu",
                         size == UINT64_MAX ? "more than " : "", (unsigned long long)size,
                         (unsigned long long)stored);
    return ORTC_OK;
}

/* ---- Attributes ---------------------------------------------------------------------------------------- */

static const Onnx__AttributeProto *named(Onnx__AttributeProto *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(ortc_proto_text(list[i]->name), name) == 0) return list[i];
    return NULL;
}

const Onnx__AttributeProto *ortc_import_resolve(ortc_scope *s, const Onnx__AttributeProto *a,
                                                ortc_scope **out_scope)
{
    *out_scope = s;
    /* Each step goes one call outwards. */
    while (a && a->ref_attr_name && *a->ref_attr_name) {
        const ortc_bindings *b = s->bindings;
        const char *name = a->ref_attr_name;
        if (!b) return NULL;
        a = named(b->call->attribute, b->call->n_attribute, name);
        if (!a) return named(b->function->attribute_proto, b->function->n_attribute_proto, name);
        s = b->scope;
        *out_scope = s;
    }
    return a;
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

static ortc_status bind_inputs(ortc_scope *outer, ortc_scope *inner, const Onnx__NodeProto *call,
                               const Onnx__FunctionProto *p)
{
    if (call->n_input > p->n_input)
        return ortc_fail(outer->in->error, ORTC_INVALID_MODEL, "it has %zu inputs, the function takes %zu",
                         call->n_input, p->n_input);
    for (size_t i = 0; i < p->n_input; i++) {
        const char *name = i < call->n_input ? call->input[i] : "";
        ortc_edge *e = &ortc_import_absent;
        if (*name) ORTC_TRY(ortc_scope_find(outer, name, &e));
        if (!e)
            return ortc_fail(outer->in->error, ORTC_INVALID_MODEL,
                             "input %zu ('%s') is not defined before it", i, name);
        if (*p->input[i]) ORTC_TRY(ortc_scope_alias(inner, p->input[i], e));
    }
    return ORTC_OK;
}

/* The caller's names for what the body made: an edge without a name of the file's takes the caller's. */
static ortc_status bind_outputs(ortc_scope *outer, ortc_scope *inner, const Onnx__NodeProto *call,
                                const Onnx__FunctionProto *p)
{
    if (call->n_output > p->n_output)
        return ortc_fail(outer->in->error, ORTC_INVALID_MODEL, "it has %zu outputs, the function makes %zu",
                         call->n_output, p->n_output);
    for (size_t i = 0; i < call->n_output; i++) {
        const char *name = call->output[i];
        ortc_edge *e;
        ORTC_TRY(ortc_scope_find(inner, p->output[i], &e));
        if (*name == 0) continue;
        if (!e || e == &ortc_import_absent)
            return ortc_fail(outer->in->error, ORTC_INVALID_MODEL,
                             "output '%s' is not made in the function's body", p->output[i]);
        ORTC_TRY(ortc_scope_alias(outer, name, e));
        if (e->origin || e->producer == NULL) continue;
        const Onnx__ValueInfoProto *info = ortc_map_get(&outer->types, name);
        e->name = ortc_arena_printf(&outer->graph->arena, "%s%s", outer->prefix, name);
        if (!e->name) return ortc_no_memory(outer->in->error, 0);
        if (!*outer->prefix) e->origin = e->name;
        if (!info) continue;
        /* What the caller declares is joined with what the body computes, as for a plain node: it never
         * replaces it. */
        ORTC_TRY(ortc_import_value_info(outer->in, info, false, e));
        if (e->producer->op) ORTC_TRY(ortc_import_infer(outer->in, e->producer));
    }
    return ORTC_OK;
}

static ortc_status inline_body(ortc_scope *outer, ortc_scope *inner, const Onnx__NodeProto *call,
                               ortc_function *f)
{
    ORTC_TRY(bind_inputs(outer, inner, call, f->proto));
    if (!f->ordered) {
        ORTC_TRY(ortc_import_order(outer->in, f->proto->node, f->proto->n_node, &f->order));
        f->ordered = true;
    }
    ORTC_TRY(ortc_import_nodes(inner, f->proto->node, f->proto->n_node, f->order));
    return bind_outputs(outer, inner, call, f->proto);
}

ortc_status ortc_import_call(ortc_scope *outer, const Onnx__NodeProto *call, ortc_function *f)
{
    ortc_importer *in = outer->in;
    ortc_bindings bindings = {f->proto, call, outer};
    ortc_scope inner = {.in = in, .graph = outer->graph, .bindings = &bindings};
    ortc_status status;

    inner.opsets = f->proto->opset_import;
    inner.n_opsets = f->proto->n_opset_import;
    if (inner.n_opsets == 0) { /* written before functions had to say */
        inner.opsets = outer->opsets;
        inner.n_opsets = outer->n_opsets;
    }
    inner.prefix = ortc_arena_printf(&in->arena, "%s%s_%llu/", outer->prefix, ortc_proto_text(call->op_type),
                                     (unsigned long long)in->n_inlined++);
    if (!inner.prefix) return ortc_no_memory(in->error, 0);
    status = inline_body(outer, &inner, call, f);
    ortc_scope_deinit(&inner);
    return status;
}
