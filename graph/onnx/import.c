/* graph/onnx/import.c: a model's message to a graph: the model, its graphs, initializers, inputs, outputs and
 * scopes.
 *
 * Initializers of IR version 4 and later are constants unless an input has the same name; then they are its
 * default. Before, every initializer had to be listed as an input, so there the initializer wins and the
 * input goes.
 */
#include "foreign.h"
#include "import.h"

#include "source.h"

ortc_edge ortc_import_absent = {.name = "", .rank = -1, .input = -1};

/* ---- Scopes -------------------------------------------------------------------------------------------- */

void ortc_scope_deinit(ortc_scope *s)
{
    ortc_map_deinit(&s->edges);
    ortc_map_deinit(&s->types);
    ortc_array_deinit(&s->inner);
}

/* What the subgraph `s` sees of the outer edge: a constant of its own that shares the bytes, or a capture. */
static ortc_edge *capture(ortc_scope *s, const char *name, ortc_edge *outer)
{
    size_t at = (size_t)(uintptr_t)ortc_map_get(&s->captures->index, name);
    ortc_edge *e;

    if (ortc_edge_is_const(outer))
        return ortc_graph_constant(s->graph, outer->name, ortc_constant_retain(outer->constant));
    e = ortc_edge_create(s->graph, outer->name);
    if (!e || !ortc_edge_set_shape(e, outer->type, outer->rank, outer->dims)) return NULL;
    e->origin = outer->origin;
    if (at == 0) {
        at = s->captures->outer.count + 1;
        if (!ortc_array_push(&s->captures->outer, outer) || !ortc_array_push(&s->captures->names, name) ||
            !ortc_map_set(&s->captures->index, name, (void *)(uintptr_t)at))
            return NULL;
    }
    while (s->inner.count < at)
        if (!ortc_array_push(&s->inner, NULL)) return NULL;
    s->inner.data[at - 1] = e;
    return e;
}

ortc_status ortc_scope_find(ortc_scope *s, const char *name, ortc_edge **out)
{
    *out = ortc_map_get(&s->edges, name);
    if (*out || !s->outer) return ORTC_OK;
    ORTC_TRY(ortc_scope_find(s->outer, name, out));
    if (!*out) return ORTC_OK;
    if (*out != &ortc_import_absent && (*out)->graph != s->graph) *out = capture(s, name, *out);
    return *out && ortc_map_set(&s->edges, name, *out) ? ORTC_OK : ortc_no_memory(s->in->error, sizeof **out);
}

ortc_status ortc_scope_alias(ortc_scope *s, const char *name, ortc_edge *e)
{
    if (ortc_map_get(&s->edges, name))
        return ortc_fail(s->in->error, ORTC_INVALID_MODEL, "'%s' is defined twice", name);
    return ortc_map_set(&s->edges, name, e) ? ORTC_OK : ortc_no_memory(s->in->error, sizeof *e);
}

ortc_status ortc_scope_define(ortc_scope *s, const char *name, ortc_edge **out)
{
    const Onnx__ValueInfoProto *info = ortc_map_get(&s->types, name);
    const char *full = *s->prefix ? ortc_arena_printf(&s->in->arena, "%s%s", s->prefix, name) : name;
    ortc_edge *e = full ? ortc_edge_create(s->graph, full) : NULL;

    if (!e) return ortc_no_memory(s->in->error, sizeof *e);
    if (!*s->prefix) e->origin = e->name;
    *out = e;
    ORTC_TRY(ortc_scope_alias(s, name, e));
    return info ? ortc_import_value_info(s->in, info, false, e) : ORTC_OK;
}

int64_t ortc_scope_opset(const ortc_scope *s, const char *domain)
{
    for (size_t i = 0; i < s->n_opsets; i++)
        if (strcmp(ortc_proto_domain(s->opsets[i]->domain), domain) == 0) return s->opsets[i]->version;
    /* Files of IR version 1 and 2 say nothing: the first operator set. onnxruntime's tools put operators of
     * its own domains in without an import; all of them are of version 1. */
    return (s->n_opsets == 0 && *domain == 0) || strncmp(domain, "com.microsoft", 13) == 0 ? 1 : 0;
}

/* ---- Initializers -------------------------------------------------------------------------------------- */

ortc_status ortc_import_constant(ortc_importer *in, ortc_tensor_data *t, ortc_constant **out)
{
    ortc_status status = ortc_constant_create(t->dtype, t->rank, t->dims, t->data, t->bytes,
                                              t->owned ? free : NULL, t->owned, out, in->error);
    if (status == ORTC_OK)
        (*out)->mapped = t->mapped;
    else
        free(t->owned);
    t->owned = NULL;
    return status;
}

static ortc_status check_default(ortc_scope *s, const ortc_edge *e, const ortc_constant *c)
{
    bool fits = !e->type || e->rank < 0 || e->rank == c->rank;
    if (e->constant)
        return ortc_fail(s->in->error, ORTC_INVALID_MODEL, "initializer '%s' is defined twice", e->name);
    if (e->type && !ortc_type_equal(e->type, ortc_tensor_type(c->dtype)))
        return ortc_fail(s->in->error, ORTC_INVALID_MODEL,
                         "initializer '%s' is %s, the input of that name is not", e->name,
                         ortc_dtype_name(c->dtype));
    for (int32_t i = 0; fits && e->type && i < e->rank; i++)
        fits = !ortc_dim_is_number(e->dims[i]) || e->dims[i] == c->dims[i];
    if (fits) return ORTC_OK;
    char is[256], said[256];
    ortc_text ti = ORTC_TEXT(is), ts = ORTC_TEXT(said);
    ortc_text_dims(&ti, c->rank, c->dims);
    ortc_text_dims(&ts, e->rank, e->dims);
    return ortc_fail(s->in->error, ORTC_INVALID_MODEL,
                     "initializer '%s' is of shape %s, the input of that name of %s", e->name, is, said);
}

/* An initializer that is the default of input `e`. The input keeps its declared shape: callers may give
 * another that fits it. */
static ortc_status set_default(ortc_scope *s, ortc_edge *e, ortc_constant *c)
{
    const ortc_type *type = e->type;
    const ortc_dim *dims = e->dims;
    int32_t rank = e->rank;
    ortc_status status = check_default(s, e, c);

    if (status != ORTC_OK) {
        ortc_constant_release(c);
        return status;
    }
    ortc_edge_set_constant(e, c);
    if (type) {
        e->type = type;
        e->rank = rank;
        e->dims = dims;
    }
    return ORTC_OK;
}

static ortc_status add_initializer(ortc_scope *s, const char *name, ortc_tensor_data *t)
{
    ortc_importer *in = s->in;
    ortc_edge *e = name && *name ? ortc_map_get(&s->edges, name) : NULL;
    ortc_constant *c;

    in->n_initializers++;
    in->n_parameters += (uint64_t)t->count;
    in->weight_bytes += t->bytes;
    ORTC_TRY(ortc_import_constant(in, t, &c));
    if (!name || !*name) {
        ortc_constant_release(c);
        return ortc_fail(in->error, ORTC_INVALID_MODEL, "an initializer has no name");
    }
    if (e && e->input >= 0) return set_default(s, e, c);
    e = ortc_graph_constant(s->graph, name, c);
    if (!e) return ortc_no_memory(in->error, sizeof *e);
    e->origin = e->name;
    return ortc_scope_alias(s, name, e);
}

static ortc_status import_initializers(ortc_scope *s, const Onnx__GraphProto *g)
{
    ortc_tensor_data t;

    for (size_t i = 0; i < g->n_initializer; i++) {
        ortc_status status = ortc_tensor_read(g->initializer[i], &s->in->base, &t, s->in->error);
        if (status != ORTC_OK) {
            ortc_error_prefix(s->in->error, "initializer '%s': ", ortc_proto_text(g->initializer[i]->name));
            return status;
        }
        ORTC_TRY(add_initializer(s, g->initializer[i]->name, &t));
    }
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *p = g->sparse_initializer[i];
        const char *name = p->values ? p->values->name : NULL;
        ortc_status status = ortc_tensor_read_sparse(p, &s->in->base, &t, s->in->error);
        if (status != ORTC_OK) {
            ortc_error_prefix(s->in->error, "initializer '%s': ", ortc_proto_text(name));
            return status;
        }
        ORTC_TRY(add_initializer(s, name, &t));
    }
    return ORTC_OK;
}

/* ---- Graphs -------------------------------------------------------------------------------------------- */

static ortc_status import_input(ortc_scope *s, const Onnx__ValueInfoProto *p)
{
    const char *name = ortc_proto_text(p->name), *doc;
    ortc_edge *e;

    if (!*name)
        return ortc_fail(s->in->error, ORTC_INVALID_MODEL, "an input of graph '%s' has no name",
                         s->graph->name);
    ORTC_TRY(ortc_scope_define(s, name, &e));
    ORTC_TRY(ortc_import_value_info(s->in, p, true, e));
    if (!s->graph->parent && !e->type)
        return ortc_fail(s->in->error, ORTC_INVALID_MODEL, "input '%s' has no type", name);
    if (!ortc_graph_add_input(s->graph, name, e)) return ortc_no_memory(s->in->error, sizeof *e);
    if (p->doc_string && *p->doc_string) {
        doc = ortc_arena_string(&s->graph->arena, p->doc_string, strlen(p->doc_string));
        if (!doc) return ortc_no_memory(s->in->error, 0);
        s->graph->inputs[s->graph->n_inputs - 1].doc = doc;
    }
    return ORTC_OK;
}

/* Inputs, but in IR versions below 4 not those that are initializers. */
static ortc_status import_inputs(ortc_scope *s, const Onnx__GraphProto *g)
{
    bool old = s->in->model->ir_version < 4 && !s->graph->parent;
    ortc_map constants = {0};
    ortc_status status = ORTC_OK;

    for (size_t i = 0; old && i < g->n_initializer && status == ORTC_OK; i++)
        if (g->initializer[i]->name && !ortc_map_set(&constants, g->initializer[i]->name, g->initializer[i]))
            status = ortc_no_memory(s->in->error, 0);
    for (size_t i = 0; i < g->n_input && status == ORTC_OK; i++)
        if (!g->input[i]->name || !ortc_map_get(&constants, g->input[i]->name))
            status = import_input(s, g->input[i]);
    ortc_map_deinit(&constants);
    return status;
}

static ortc_status import_output(ortc_scope *s, const Onnx__ValueInfoProto *p)
{
    const char *name = ortc_proto_text(p->name), *doc;
    ortc_edge *e;

    ORTC_TRY(ortc_scope_find(s, name, &e));
    if (!e || e == &ortc_import_absent)
        return ortc_fail(s->in->error, ORTC_INVALID_MODEL,
                         "output '%s' of graph '%s' is not made by any node", name, s->graph->name);
    if (!ortc_graph_add_output(s->graph, name, e)) return ortc_no_memory(s->in->error, sizeof *e);
    if (p->doc_string && *p->doc_string) {
        doc = ortc_arena_string(&s->graph->arena, p->doc_string, strlen(p->doc_string));
        if (!doc) return ortc_no_memory(s->in->error, 0);
        s->graph->outputs[s->graph->n_outputs - 1].doc = doc;
    }
    return ORTC_OK;
}

static ortc_status index_types(ortc_scope *s, Onnx__ValueInfoProto **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i]->name && !ortc_map_set(&s->types, list[i]->name, list[i]))
            return ortc_no_memory(s->in->error, 0);
    return ORTC_OK;
}

static ortc_status import_graph(ortc_scope *s, const Onnx__GraphProto *g)
{
    const char *name = ortc_proto_text(g->name);
    uint32_t *order;

    s->graph->name = ortc_arena_string(&s->graph->arena, name, strlen(name));
    if (!s->graph->name) return ortc_no_memory(s->in->error, strlen(name));
    ORTC_TRY(import_inputs(s, g));
    ORTC_TRY(import_initializers(s, g));
    ORTC_TRY(index_types(s, g->value_info, g->n_value_info));
    ORTC_TRY(index_types(s, g->output, g->n_output));
    ORTC_TRY(ortc_import_order(s->in, g->node, g->n_node, &order));
    ORTC_TRY(ortc_import_nodes(s, g->node, g->n_node, order));
    for (size_t i = 0; i < g->n_output; i++) ORTC_TRY(import_output(s, g->output[i]));
    return ORTC_OK;
}

ortc_status ortc_import_nodes(ortc_scope *s, Onnx__NodeProto *const *nodes, size_t n, const uint32_t *order)
{
    for (size_t i = 0; i < n; i++) {
        const Onnx__NodeProto *node = nodes[order ? order[i] : i];
        ORTC_TRY(ortc_stop_poll(s->in->stop, s->in->error));
        ortc_status status = ortc_import_node(s, node);
        if (status != ORTC_OK) {
            if (!s->in->named) ortc_import_prefix(s->in->error, node);
            s->in->named = false; /* an outer node says that it is around it */
            return status;
        }
    }
    return ORTC_OK;
}

ortc_status ortc_import_subgraph(ortc_scope *outer, ortc_captures *captures, const Onnx__GraphProto *g,
                                 ortc_scope *scope)
{
    ortc_importer *in = outer->in;
    ortc_status status;

    *scope = (ortc_scope){.in = in,
                          .outer = outer,
                          .captures = captures,
                          .opsets = outer->opsets,
                          .n_opsets = outer->n_opsets,
                          .bindings = outer->bindings,
                          .prefix = outer->prefix};
    if (in->n_graphs == ORTC_WIRE_MAX_DEPTH)
        return ortc_fail(in->error, ORTC_LIMIT, "graphs nested more than %d deep", ORTC_WIRE_MAX_DEPTH);
    scope->graph = ortc_graph_create(outer->graph);
    if (!scope->graph) return ortc_no_memory(in->error, sizeof *scope->graph);
    in->n_graphs++;
    status = import_graph(scope, g);
    in->n_graphs--;
    return status;
}

/* ---- The model ----------------------------------------------------------------------------------------- */

static ortc_status check_header(ortc_importer *in)
{
    const Onnx__ModelProto *m = in->model;

    if (m->ir_version < 1)
        return ortc_fail(in->error, ORTC_INVALID_MODEL,
                         "not an ONNX model: ir_version is %lld, expected at least 1",
                         (long long)m->ir_version);
    if (!m->graph) return ortc_fail(in->error, ORTC_INVALID_MODEL, "not an ONNX model: it has no graph");
    if (m->ir_version > 14)
        ortc_log(ORTC_LOG_WARNING, "the model's ir_version is %lld, the newest known is 14",
                 (long long)m->ir_version);
    if (m->n_opset_import == 0 && m->ir_version >= 3) /* the standard's first version that has the field */
        return ortc_fail(in->error, ORTC_INVALID_MODEL,
                         "no operator set is imported: from ir_version 3 on (it is %lld) a model says by "
                         "opset_import which operators it means",
                         (long long)m->ir_version);
    if (m->n_opset_import > ORTC_IMPORT_MAX_OPSETS)
        return ortc_fail(in->error, ORTC_LIMIT, "%zu operator sets are imported, at most %d are supported",
                         m->n_opset_import, ORTC_IMPORT_MAX_OPSETS);
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = m->opset_import[i];
        if (o->version < 1)
            return ortc_fail(in->error, ORTC_INVALID_MODEL, "operator set '%s' is imported in version %lld",
                             ortc_proto_domain(o->domain), (long long)o->version);
        if (*ortc_proto_domain(o->domain) == 0 && o->version > ORTC_NEWEST)
            ortc_log(ORTC_LOG_WARNING, "the model's opset is %lld, the newest known is %d",
                     (long long)o->version, ORTC_NEWEST);
    }
    if (m->graph->n_output == 0)
        ortc_log(ORTC_LOG_WARNING, "the model has no outputs: its runs give nothing");
    return ORTC_OK;
}

static ortc_status import_model(ortc_importer *in, ortc_model_info *out_info)
{
    ortc_scope scope = {.in = in, .prefix = ""};
    ortc_status status;

    ORTC_TRY(check_header(in));
    ORTC_TRY(ortc_import_functions(in));
    in->root = ortc_graph_create(NULL);
    if (!in->root) return ortc_no_memory(in->error, sizeof *in->root);
    scope.graph = in->root;
    scope.opsets = in->model->opset_import;
    scope.n_opsets = in->model->n_opset_import;
    in->n_graphs = 1;
    status = import_graph(&scope, in->model->graph);
    ortc_scope_deinit(&scope);
    ORTC_TRY(status);
    ORTC_TRY(ortc_import_describe(in, out_info));
    return ortc_import_report_missing(in, out_info);
}

static ortc_status import(ortc_source *source, const ortc_stop *stop, bool describe, ortc_graph **out_graph,
                          ortc_model_info *out_info, ortc_error *error)
{
    ortc_source_bytes bytes = ortc_source_model(source);
    ortc_importer in = {.base = {bytes.data, bytes.bytes, bytes.mapped, source},
                        .describe = describe,
                        .stop = stop,
                        .error = error};
    void *model;
    ortc_status status;

    *out_graph = NULL;
    if (!describe) ortc_heap_expect(bytes.bytes); /* weights are packed */
    status = bytes.bytes == 0 ? ortc_fail(error, ORTC_INVALID_MODEL, "not an ONNX model: it is empty")
                              : ortc_proto_read(bytes.data, bytes.bytes, 0, &in.arena, &model, error);
    if (status == ORTC_OK) {
        in.model = model;
        status = import_model(&in, out_info);
    }
    const char *foreign = status == ORTC_INVALID_MODEL && (!in.model || !in.model->graph)
                              ? ortc_foreign_format(bytes.data, bytes.bytes)
                              : NULL;
    if (foreign) ortc_fail(error, status, "not an ONNX model but %s", foreign);
    ortc_map_deinit(&in.functions);
    ortc_map_deinit(&in.missing);
    ortc_array_deinit(&in.missing_list);
    ortc_arena_deinit(&in.arena);
    if (status != ORTC_OK)
        ortc_graph_destroy(in.root);
    else
        *out_graph = in.root;
    ortc_source_drop(source);
    return status;
}

ortc_status ortc_onnx_import(ortc_source *source, const ortc_stop *stop, ortc_graph **out_graph,
                             ortc_model_info *out_info, ortc_error *error)
{
    return import(source, stop, false, out_graph, out_info, error);
}

ortc_status ortc_onnx_describe(ortc_source *source, const ortc_stop *stop, ortc_graph **out_graph,
                               ortc_model_info *out_info, ortc_error *error)
{
    return import(source, stop, true, out_graph, out_info, error);
}
