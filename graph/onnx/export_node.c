/* graph/onnx/export_node.c: a graph's nodes, attributes, inputs and outputs as messages; names; subgraphs.
 *
 * What a subgraph captures is an input of its node and of itself in the graph; in the file it is read by the
 * outer name. Two things that a graph allows and a file does not are written as Identity nodes: an output
 * that is a constant or a capture, and one value under two output names.
 */
#include "export.h"

/* AttributeProto */
enum {
    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_T = 5,
    ATTR_G = 6,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TENSORS = 10,
    ATTR_GRAPHS = 11,
    ATTR_TP = 14,
    ATTR_TYPE = 20
};

/* One graph of the file. */
typedef struct scope {
    ortc_exporter *x;
    const ortc_graph *graph;
    const char **names; /* by edge id; NULL: not named yet */
} scope;

/* ---- Names --------------------------------------------------------------------------------------------- */

static bool take_name(ortc_exporter *x, const char *name)
{
    return ortc_map_set(&x->names, name, (void *)(uintptr_t)name);
}

/* `wish`, or something like it that is not taken; NULL: memory is short. */
static const char *new_name(ortc_exporter *x, const char *wish)
{
    const char *name = wish;

    if (*wish == '%') /* a name of ours for a value without one */
        wish = name = ortc_arena_printf(&x->arena, "value_%s", wish + 1);
    if (name && !*name) wish = name = "value";
    for (unsigned i = 1; name && ortc_map_get(&x->names, name); i++)
        name = ortc_arena_printf(&x->arena, "%s_%u", wish, i);
    return name && take_name(x, name) ? name : NULL;
}

/* Names of nodes mean nothing, but there are runtimes that refuse a file in which one comes twice. */
static const char *node_name(ortc_exporter *x, const ortc_node *n)
{
    const char *name = n->name;

    for (unsigned i = n->id; name && ortc_map_get(&x->nodes, name); i++)
        name = ortc_arena_printf(&x->arena, "%s_%u", n->name, i);
    return name && ortc_map_set(&x->nodes, name, (void *)(uintptr_t)name) ? name : NULL;
}

/* The initializer that holds a constant, made on first use. */
static const char *constant_name(ortc_exporter *x, const ortc_edge *e)
{
    const char *key = ortc_arena_printf(&x->arena, "%llu", (unsigned long long)e->constant->id);
    const char *name = key ? ortc_map_get(&x->constants, key) : NULL;

    if (name || !key) return name;
    name = new_name(x, e->name);
    if (!name || !ortc_map_set(&x->constants, key, (void *)(uintptr_t)name) ||
        !ortc_array_push(&x->initializers, (ortc_export_constant){name, e->constant}))
        return NULL;
    return name;
}

static const char *name_of(const scope *s, const ortc_edge *e)
{
    return s->names[e->id] ? s->names[e->id] : ortc_edge_is_const(e) ? constant_name(s->x, e) : NULL;
}

/* The main graph's names are its interface and stay; a subgraph's mean nothing outside of it. */
static ortc_status name_inputs(scope *s, const ortc_node *node, const scope *outer)
{
    const ortc_graph *g = s->graph;
    uint32_t n_captures = node ? node->n_captures : 0;

    if (g->n_inputs < n_captures)
        return ortc_fail(s->x->error, ORTC_INTERNAL, "a subgraph of '%s' has fewer inputs than captures",
                         node->name);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const ortc_graph_input *in = &g->inputs[i];
        const char *name;
        if (i >= g->n_inputs - n_captures)
            name = name_of(outer, node->in[node->n_in - (g->n_inputs - i)]);
        else
            name = node ? new_name(s->x, in->name) : take_name(s->x, in->name) ? in->name : NULL;
        if (!name) return ortc_no_memory(s->x->error, 0);
        s->names[in->edge->id] = name;
        if (in->edge->constant && !node &&
            !ortc_array_push(&s->x->initializers, (ortc_export_constant){name, in->edge->constant}))
            return ortc_no_memory(s->x->error, 0);
    }
    return ORTC_OK;
}

/* out[i]: the file's name of output i; those that no edge has yet are for Identity nodes. */
static ortc_status name_outputs(scope *s, bool root, const char **out)
{
    const ortc_graph *g = s->graph;

    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const ortc_graph_input *o = &g->outputs[i];
        const char *name = o->name, *has = s->names[o->edge->id];
        if (has && (root || o->edge->producer) && !strcmp(has, name)) {
            out[i] = has;
            continue;
        }
        if (root && ortc_map_get(&s->x->names, name))
            return ortc_fail(s->x->error, ORTC_UNSUPPORTED, "two inputs or outputs are called '%s'", name);
        out[i] = root ? take_name(s->x, name) ? name : NULL : new_name(s->x, name);
        if (!out[i]) return ortc_no_memory(s->x->error, 0);
        if (!has && o->edge->producer) s->names[o->edge->id] = out[i];
    }
    return ORTC_OK;
}

/* Everything of this graph, before its subgraphs look for names. */
static ortc_status name_values(scope *s)
{
    const ortc_graph *g = s->graph;

    for (const ortc_node *n = g->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->n_out; i++)
            if (n->out[i] && !s->names[n->out[i]->id] &&
                !(s->names[n->out[i]->id] = new_name(s->x, n->out[i]->name)))
                return ortc_no_memory(s->x->error, 0);
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i] && ortc_edge_is_const(n->in[i]) && !constant_name(s->x, n->in[i]))
                return ortc_no_memory(s->x->error, 0);
    }
    return ORTC_OK;
}

/* ---- Attributes ---------------------------------------------------------------------------------------- */

static ortc_status export_branch(const scope *, const ortc_node *, const ortc_graph *, uint32_t field,
                                 ortc_message *to);

static ortc_status export_tensor_attr(const scope *s, const ortc_port *p, uint32_t field, ortc_message *to)
{
    ortc_message tensor = {0};
    int64_t count;
    size_t bytes = 0;

    if (!ortc_count_elements(p->rank, p->dims, &count) ||
        (p->dtype != ORTC_STRING && !ortc_tensor_bytes(p->dtype, count, &bytes)))
        return ortc_fail(s->x->error, ORTC_INTERNAL, "a tensor attribute has no size");
    ortc_export_tensor(s->x, "", p->dtype, p->rank, p->dims, p->dtype == ORTC_STRING ? p->data : NULL,
                       &tensor);
    if (bytes) ortc_message_bytes(&tensor, ORTC_TENSOR_RAW, p->data, bytes);
    ortc_message_take(to, field, &tensor);
    return ORTC_OK;
}

static ortc_status export_attr(const scope *s, const ortc_node *n, const ortc_attribute *a, ortc_message *to)
{
    const ortc_attr *v = &a->value;
    ortc_message type = {0};

    ortc_message_text(to, ATTR_NAME, a->name);
    ortc_message_int(to, ATTR_TYPE, v->kind);
    if (v->kind == ORTC_ATTR_FLOAT) {
        ortc_message_float(to, ATTR_F, v->f);
    } else if (v->kind == ORTC_ATTR_INT) {
        ortc_message_int(to, ATTR_I, v->i);
    } else if (v->kind == ORTC_ATTR_STRING) {
        ortc_message_bytes(to, ATTR_S, v->u.s, v->count);
    } else if (v->kind == ORTC_ATTR_TYPE_PROTO) {
        ortc_export_type(s->x, v->u.type, NULL, &type);
        ortc_message_take(to, ATTR_TP, &type);
    } else {
        for (size_t i = 0; i < v->count; i++) switch (v->kind) {
            case ORTC_ATTR_FLOATS: ortc_message_float(to, ATTR_FLOATS, v->u.floats[i]); break;
            case ORTC_ATTR_INTS: ortc_message_int(to, ATTR_INTS, v->u.ints[i]); break;
            case ORTC_ATTR_STRINGS:
                ortc_message_bytes(to, ATTR_STRINGS, v->u.strings[i], strlen(v->u.strings[i]));
                break;
            case ORTC_ATTR_TENSOR: ORTC_TRY(export_tensor_attr(s, &v->u.tensors[i], ATTR_T, to)); break;
            case ORTC_ATTR_TENSORS:
                ORTC_TRY(export_tensor_attr(s, &v->u.tensors[i], ATTR_TENSORS, to));
                break;
            case ORTC_ATTR_GRAPH: ORTC_TRY(export_branch(s, n, v->u.graphs[i], ATTR_G, to)); break;
            case ORTC_ATTR_GRAPHS: ORTC_TRY(export_branch(s, n, v->u.graphs[i], ATTR_GRAPHS, to)); break;
            default:
                return ortc_fail(s->x->error, ORTC_INTERNAL, "attribute '%s' is of kind %d", a->name,
                                 v->kind);
            }
    }
    return ORTC_OK;
}

/* ---- Nodes --------------------------------------------------------------------------------------------- */

/* The version of a domain is the least that the nodes need, and not below what the file imported. */
static bool need_domain(ortc_exporter *x, const char *domain, int64_t version)
{
    for (size_t i = 0; i < x->domains.count; i++) {
        ortc_export_domain *d = &x->domains.data[i];
        if (strcmp(d->domain, domain)) continue;
        if (d->version < version) d->version = version;
        return true;
    }
    for (size_t i = 0; i < x->info->n_opsets; i++)
        if (!strcmp(x->info->opset_domains[i], domain) && x->info->opset_versions[i] > version)
            version = x->info->opset_versions[i];
    return ortc_array_push(&x->domains, (ortc_export_domain){domain, version});
}

/* Empty names at the end are not written. */
static void export_names(ortc_message *to, uint32_t field, const char *const *names, uint32_t n)
{
    while (n > 0 && !*names[n - 1]) n--;
    for (uint32_t i = 0; i < n; i++) ortc_message_bytes(to, field, names[i], strlen(names[i]));
}

static ortc_status export_ports(const scope *s, const ortc_node *n, ortc_message *to)
{
    uint32_t n_in = n->n_in - n->n_captures;
    const char **names = ortc_arena_array(&s->x->arena, (size_t)n_in + n->n_out, sizeof *names);

    if (!names) return ortc_no_memory(s->x->error, 0);
    for (uint32_t i = 0; i < n_in; i++)
        if (!(names[i] = n->in[i] ? name_of(s, n->in[i]) : ""))
            return ortc_edge_is_const(n->in[i])
                       ? ortc_no_memory(s->x->error, 0)
                       : ortc_fail(s->x->error, ORTC_INTERNAL, "input %u has no name", i);
    for (uint32_t i = 0; i < n->n_out; i++) {
        names[n_in + i] = n->out[i] ? s->names[n->out[i]->id] : "";
        if (n->out[i] && n->out[i]->type && n->out[i]->type->kind == ORTC_KIND_TENSOR)
            s->x->dtypes |= UINT64_C(1) << n->out[i]->type->dtype;
    }
    export_names(to, ORTC_NODE_INPUT, names, n_in);
    export_names(to, ORTC_NODE_OUTPUT, names + n_in, n->n_out);
    return ORTC_OK;
}

static ortc_status fill_node(const scope *s, const ortc_node *n, ortc_message *to)
{
    const char *name;

    if (n->epilogue || !n->op) /* a body is not looked at: the operator says the same */
        return ortc_fail(s->x->error, ORTC_INTERNAL, "it is not a node of a model's graph");
    if (!need_domain(s->x, n->domain, ortc_export_since(n)) || !(name = node_name(s->x, n)))
        return ortc_no_memory(s->x->error, 0);
    ORTC_TRY(export_ports(s, n, to));
    ortc_message_text(to, ORTC_NODE_NAME, name);
    ortc_message_text(to, ORTC_NODE_OP, n->type);
    ortc_message_text(to, ORTC_NODE_DOMAIN, n->domain);
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        ortc_message a = {0};
        ortc_status status = export_attr(s, n, &n->attrs[i], &a);
        ortc_message_take(to, ORTC_NODE_ATTRIBUTE, &a);
        ORTC_TRY(status);
    }
    return ORTC_OK;
}

static void export_identity(const char *from, const char *name, ortc_message *to)
{
    ortc_message m = {0};
    ortc_message_text(&m, ORTC_NODE_INPUT, from);
    ortc_message_text(&m, ORTC_NODE_OUTPUT, name);
    ortc_message_text(&m, ORTC_NODE_OP, "Identity");
    ortc_message_take(to, ORTC_GRAPH_NODE, &m);
}

static ortc_status export_nodes(const scope *s, const char *const *outputs, ortc_message *to)
{
    const ortc_graph *g = s->graph;

    for (const ortc_node *n = g->first; n; n = n->next) {
        ortc_message m = {0};
        ortc_status status = fill_node(s, n, &m);
        ortc_message_take(to, ORTC_GRAPH_NODE, &m);
        if (status != ORTC_OK) {
            ortc_error_prefix(s->x->error, "node '%s' (%s): ", n->name, n->type);
            return status;
        }
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const char *has = name_of(s, g->outputs[i].edge);
        bool again = false;
        for (uint32_t k = 0; k < i && !again; k++) again = outputs[k] == outputs[i];
        if (!has) return ortc_no_memory(s->x->error, 0);
        if (!again && strcmp(has, outputs[i])) export_identity(has, outputs[i], to);
    }
    return ORTC_OK;
}

/* ---- Graphs -------------------------------------------------------------------------------------------- */

static ortc_status fill_graph(ortc_exporter *x, const ortc_graph *g, const ortc_node *node,
                              const scope *outer, ortc_message *nodes, ortc_message *ends)
{
    scope s = {x, g, ortc_arena_array(&x->arena, g->edges.count, sizeof *s.names)};
    const char **outputs = ortc_arena_array(&x->arena, g->n_outputs, sizeof *outputs);

    if (!s.names || !outputs) return ortc_no_memory(x->error, g->edges.count * sizeof *s.names);
    ORTC_TRY(name_inputs(&s, node, outer));
    ORTC_TRY(name_outputs(&s, !node, outputs));
    ORTC_TRY(name_values(&s));
    ORTC_TRY(export_nodes(&s, outputs, nodes));
    /* the standard wants one */
    ortc_message_text(ends, ORTC_GRAPH_NAME, g->name && *g->name ? g->name : "graph");
    for (uint32_t i = 0; i < g->n_inputs - (node ? node->n_captures : 0); i++) {
        ortc_message m = {0};
        ortc_export_value_info(x, s.names[g->inputs[i].edge->id], g->inputs[i].doc, g->inputs[i].edge, &m);
        ortc_message_take(ends, ORTC_GRAPH_INPUT, &m);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        ortc_message m = {0};
        ortc_export_value_info(x, outputs[i], g->outputs[i].doc, g->outputs[i].edge, &m);
        ortc_message_take(ends, ORTC_GRAPH_OUTPUT, &m);
    }
    return ORTC_OK;
}

/* Graphs nest to ORTC_WIRE_MAX_DEPTH at most. */
static ortc_status export_branch(const scope *outer, const ortc_node *node, const ortc_graph *g,
                                 uint32_t field, ortc_message *to)
{
    ortc_message m = {0};
    ortc_status status = fill_graph(outer->x, g, node, outer, &m, &m);
    ortc_message_take(to, field, &m);
    return status;
}

ortc_status ortc_export_graph(ortc_exporter *x, const ortc_graph *g, ortc_message *nodes, ortc_message *ends)
{
    return fill_graph(x, g, NULL, NULL, nodes, ends);
}
