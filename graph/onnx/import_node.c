/* graph/onnx/import_node.c: one node: its operator, attributes, subgraphs, captures, lifting, shapes, and the
 * check against the schema.
 */
#include "graph/ir/infer.h"
#include "import.h"

/* ---- Attributes ---------------------------------------------------------------------------------------- */

/* Files of IR version 1 do not say which field counts. */
static int32_t attribute_kind(const Onnx__AttributeProto *a)
{
    if (a->has_type && a->type != 0) return a->type;
    return a->has_f           ? ORTC_ATTR_FLOAT
           : a->has_i         ? ORTC_ATTR_INT
           : a->has_s         ? ORTC_ATTR_STRING
           : a->t             ? ORTC_ATTR_TENSOR
           : a->g             ? ORTC_ATTR_GRAPH
           : a->sparse_tensor ? ORTC_ATTR_SPARSE_TENSOR
           : a->tp            ? ORTC_ATTR_TYPE_PROTO
           : a->n_floats      ? ORTC_ATTR_FLOATS
           : a->n_ints        ? ORTC_ATTR_INTS
           : a->n_strings     ? ORTC_ATTR_STRINGS
           : a->n_tensors     ? ORTC_ATTR_TENSORS
           : a->n_graphs      ? ORTC_ATTR_GRAPHS
           : a->n_type_protos ? ORTC_ATTR_TYPE_PROTOS
                              : 0;
}

/* A terminated copy of bytes; a zero byte inside would cut it short. */
static ortc_status import_string(ortc_importer *in, const ProtobufCBinaryData *s, const char **out)
{
    if (s->len && memchr(s->data, 0, s->len))
        return ortc_fail(in->error, ORTC_INVALID_MODEL, "a string with a zero byte");
    *out = ortc_arena_string(&in->arena, (const char *)s->data, s->len);
    return *out ? ORTC_OK : ortc_no_memory(in->error, s->len);
}

/* A tensor attribute: its dims and unpacked elements live with the graph. */
static ortc_status import_tensor(ortc_scope *s, const Onnx__TensorProto *p, ortc_port *out)
{
    ortc_importer *in = s->in;
    ortc_tensor_data t;

    ORTC_TRY(ortc_tensor_read(p, &in->base, &t, in->error));
    *out = (ortc_port){.size = sizeof *out,
                       .flags = ORTC_PORT_CONST,
                       .type = ortc_tensor_type(t.dtype),
                       .rank = t.rank,
                       .dtype = t.dtype,
                       .data = t.data};
    if (t.owned) {
        out->data = ortc_arena_copy(&s->graph->arena, t.owned, t.bytes);
        free(t.owned);
    }
    if (t.rank) out->dims = ortc_arena_copy(&s->graph->arena, t.dims, (size_t)t.rank * sizeof *t.dims);
    if ((t.bytes && !out->data) || (t.rank && !out->dims)) return ortc_no_memory(in->error, t.bytes);
    return ORTC_OK;
}

/* What importing a node's attributes gathers. */
typedef struct attributes {
    ortc_node *node;
    ortc_captures captures;
    ORTC_ARRAY(ortc_scope *) branches; /* in the import's arena */
} attributes;

static ortc_status import_branch(ortc_scope *s, attributes *to, const Onnx__GraphProto *g,
                                 const ortc_graph **out)
{
    ortc_scope *branch = ortc_arena_alloc(&s->in->arena, sizeof *branch);

    if (!branch || !ortc_array_push(&to->branches, branch))
        return ortc_no_memory(s->in->error, sizeof *branch);
    ORTC_TRY(ortc_import_subgraph(s, &to->captures, g, branch));
    *out = branch->graph;
    return ORTC_OK;
}

static ortc_status import_graphs(ortc_scope *s, ortc_scope *where, attributes *to,
                                 Onnx__GraphProto *const *graphs, size_t n, ortc_attr *out)
{
    const ortc_graph **list = ortc_arena_array(&s->in->arena, n, sizeof *list);

    if (where != s)
        return ortc_fail(s->in->error, ORTC_UNSUPPORTED,
                         "a graph that is passed to a function as an attribute");
    if (!list) return ortc_no_memory(s->in->error, n * sizeof *list);
    for (size_t i = 0; i < n; i++) ORTC_TRY(import_branch(s, to, graphs[i], &list[i]));
    out->count = n;
    out->u.graphs = list;
    return ORTC_OK;
}

static ortc_status import_tensors(ortc_scope *s, Onnx__TensorProto *const *tensors, size_t n, ortc_attr *out)
{
    ortc_port *list = ortc_arena_array(&s->in->arena, n, sizeof *list);

    if (!list) return ortc_no_memory(s->in->error, n * sizeof *list);
    for (size_t i = 0; i < n; i++) ORTC_TRY(import_tensor(s, tensors[i], &list[i]));
    out->count = n;
    out->u.tensors = list;
    return ORTC_OK;
}

static ortc_status import_strings(ortc_importer *in, const ProtobufCBinaryData *strings, size_t n,
                                  ortc_attr *out)
{
    const char **list = ortc_arena_array(&in->arena, n, sizeof *list);

    if (!list) return ortc_no_memory(in->error, n * sizeof *list);
    for (size_t i = 0; i < n; i++) ORTC_TRY(import_string(in, &strings[i], &list[i]));
    out->count = n;
    out->u.strings = list;
    return ORTC_OK;
}

static ortc_status attribute_value(ortc_scope *s, ortc_scope *where, attributes *to,
                                   const Onnx__AttributeProto *a, ortc_attr *out)
{
    ortc_importer *in = s->in;

    *out = (ortc_attr){.size = sizeof *out, .kind = attribute_kind(a)};
    switch (out->kind) {
    case ORTC_ATTR_FLOAT: out->f = a->f; return ORTC_OK;
    case ORTC_ATTR_INT: out->i = a->i; return ORTC_OK;
    case ORTC_ATTR_STRING: out->count = a->s.len; return import_string(in, &a->s, &out->u.s);
    case ORTC_ATTR_FLOATS:
        out->count = a->n_floats;
        out->u.floats = a->floats;
        return ORTC_OK;
    case ORTC_ATTR_INTS:
        out->count = a->n_ints;
        out->u.ints = a->ints;
        return ORTC_OK;
    case ORTC_ATTR_STRINGS: return import_strings(in, a->strings, a->n_strings, out);
    case ORTC_ATTR_TENSOR:
        if (!a->t) return ortc_fail(in->error, ORTC_INVALID_MODEL, "it says it holds a tensor and does not");
        return import_tensors(s, &a->t, 1, out);
    case ORTC_ATTR_TENSORS: return import_tensors(s, a->tensors, a->n_tensors, out);
    case ORTC_ATTR_GRAPH:
        if (!a->g) return ortc_fail(in->error, ORTC_INVALID_MODEL, "it says it holds a graph and does not");
        return import_graphs(s, where, to, &a->g, 1, out);
    case ORTC_ATTR_GRAPHS: return import_graphs(s, where, to, a->graphs, a->n_graphs, out);
    case ORTC_ATTR_TYPE_PROTO:
        ORTC_TRY(ortc_import_type(in, a->tp, &out->u.type));
        return out->u.type ? ORTC_OK : ortc_fail(in->error, ORTC_INVALID_MODEL, "it holds no type");
    case ORTC_ATTR_SPARSE_TENSOR:
    case ORTC_ATTR_SPARSE_TENSORS:
    case ORTC_ATTR_TYPE_PROTOS:
        return ortc_fail(in->error, ORTC_UNSUPPORTED, "attributes of type %d", out->kind);
    default: return ortc_fail(in->error, ORTC_INVALID_MODEL, "its type is %d, expected 1 to 14", out->kind);
    }
}

static bool has_attribute(const ortc_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, name) == 0) return true;
    return false;
}

static ortc_status import_attributes(ortc_scope *s, const Onnx__NodeProto *p, attributes *to)
{
    ortc_importer *in = s->in;

    if (p->n_attribute > ORTC_IMPORT_MAX_ATTRIBUTES)
        return ortc_fail(in->error, ORTC_LIMIT, "it has %zu attributes, at most %d are supported",
                         p->n_attribute, ORTC_IMPORT_MAX_ATTRIBUTES);
    for (size_t i = 0; i < p->n_attribute; i++) {
        const char *name = ortc_proto_text(p->attribute[i]->name);
        ortc_scope *where;
        const Onnx__AttributeProto *a = ortc_import_resolve(s, p->attribute[i], &where);
        ortc_attr value;
        ortc_status status;
        if (!a) continue;
        status = has_attribute(to->node, name) ? ortc_fail(in->error, ORTC_INVALID_MODEL, "it is given twice")
                                               : attribute_value(s, where, to, a, &value);
        if (status != ORTC_OK) {
            ortc_error_prefix(in->error, "attribute '%s': ", name);
            return status;
        }
        if (!ortc_node_set_attr(to->node, name, &value)) return ortc_no_memory(in->error, 0);
    }
    return ORTC_OK;
}

/* ---- Captures ------------------------------------------------------------------------------------------ */

/* Gives every subgraph an input for every captured value, in one order, and the node the outer values as
 * inputs. */
static ortc_status connect_captures(ortc_scope *s, attributes *a)
{
    size_t n = a->captures.outer.count;
    uint32_t first = a->node->n_in;

    for (size_t b = 0; b < a->branches.count; b++) {
        ortc_scope *branch = a->branches.data[b];
        for (size_t i = 0; i < n; i++) {
            ortc_edge *outer = a->captures.outer.data[i],
                      *e = i < branch->inner.count ? branch->inner.data[i] : NULL;
            if (!e) {
                e = ortc_edge_create(branch->graph, outer->name);
                if (!e || !ortc_edge_set_shape(e, outer->type, outer->rank, outer->dims))
                    return ortc_no_memory(s->in->error, sizeof *e);
                e->origin = outer->origin;
            }
            if (!ortc_graph_add_input(branch->graph, a->captures.names.data[i], e))
                return ortc_no_memory(s->in->error, sizeof *e);
        }
    }
    /* From the last one: the ports grow once. */
    for (size_t i = n; i-- > 0;)
        if (!ortc_node_set_in(a->node, first + (uint32_t)i, a->captures.outer.data[i]))
            return ortc_no_memory(s->in->error, sizeof(ortc_use));
    a->node->n_captures = (uint32_t)n;
    return ORTC_OK;
}

static void attributes_deinit(attributes *a)
{
    for (size_t i = 0; i < a->branches.count; i++) ortc_scope_deinit(a->branches.data[i]);
    ortc_array_deinit(&a->branches);
    ortc_array_deinit(&a->captures.outer);
    ortc_array_deinit(&a->captures.names);
    ortc_map_deinit(&a->captures.index);
}

/* ---- Nodes --------------------------------------------------------------------------------------------- */

/* Without those at the end that are left out. */
static size_t count_given(char *const *names, size_t n)
{
    while (n > 0 && *names[n - 1] == 0) n--;
    return n;
}

static ortc_status import_ports(ortc_scope *s, const Onnx__NodeProto *p, ortc_node *node, size_t n_in,
                                size_t n_out)
{
    ortc_importer *in = s->in;

    for (size_t i = 0; i < n_in; i++) {
        ortc_edge *e = &ortc_import_absent;
        if (*p->input[i]) ORTC_TRY(ortc_scope_find(s, p->input[i], &e));
        if (!e)
            return ortc_fail(in->error, ORTC_INVALID_MODEL,
                             "input %zu ('%s') is not made by any node before it", i, p->input[i]);
        if (e != &ortc_import_absent && !ortc_node_set_in(node, (uint32_t)i, e))
            return ortc_no_memory(in->error, sizeof(ortc_use));
    }
    for (size_t i = 0; i < n_out; i++) {
        ortc_edge *e;
        if (!*p->output[i]) continue;
        ORTC_TRY(ortc_scope_define(s, p->output[i], &e));
        if (!ortc_node_set_out(node, (uint32_t)i, e)) return ortc_no_memory(in->error, sizeof *e);
    }
    return ORTC_OK;
}

/* Names of an operator that is not there, for messages. */
static ortc_status name_missing(ortc_scope *s, const Onnx__NodeProto *p, ortc_node *node)
{
    const char *domain = ortc_proto_domain(p->domain), *op = ortc_proto_text(p->op_type);
    node->domain = ortc_arena_string(&s->graph->arena, domain, strlen(domain));
    node->type = ortc_arena_string(&s->graph->arena, op, strlen(op));
    return node->domain && node->type ? ORTC_OK : ortc_no_memory(s->in->error, 0);
}

ortc_status ortc_import_infer(ortc_importer *in, ortc_node *n)
{
    ortc_infer c;
    ortc_status status;

    ortc_infer_init(&c, n->graph->dims, &n->graph->arena, NULL, in->error);
    status = ortc_infer_at_load(&c, n);
    in->named = status != ORTC_OK;
    return status;
}

/* Shapes and the check against the schema: of the node and of those that its lifting put around it, in order,
 * so that the next node's lifting knows the ranks that it reads. */
static ortc_status infer_from(ortc_importer *in, ortc_node *first)
{
    for (ortc_node *n = first; n; n = n->next)
        if (n->op) ORTC_TRY(ortc_import_infer(in, n));
    return ORTC_OK;
}

/* Everything after the node is there: attributes, ports, lifting, captures. */
static ortc_status fill_node(ortc_scope *s, const Onnx__NodeProto *p, ortc_node *node, int32_t version,
                             attributes *a)
{
    size_t n_in = count_given(p->input, p->n_input), n_out = count_given(p->output, p->n_output);
    ortc_node *before = node->prev;

    a->node = node;
    if (!node->op) ORTC_TRY(name_missing(s, p, node));
    ORTC_TRY(import_attributes(s, p, a));
    ORTC_TRY(import_ports(s, p, node, n_in, n_out));
    while (node->n_in && !node->in[node->n_in - 1])
        node->n_in--; /* names of a function that is not given them */
    /* Behind an operator that is missing ranks are not known, which liftings may need: nothing will run. */
    ORTC_TRY(connect_captures(s, a));
    if (s->in->missing_list.count) return ORTC_OK;
    if (node->op->flags & ORTC_OP_COMPOSED) return ortc_import_compose(s, node, version);
    ORTC_TRY(ortc_import_lift(s, node, version));
    return infer_from(s->in, before ? before->next : s->graph->first);
}

/* The operator and the version that the node binds to; NULL: missing, and counted as such. */
static ortc_status bind(ortc_scope *s, const Onnx__NodeProto *p, const ortc_op **out, int32_t *out_version)
{
    const char *domain = ortc_proto_domain(p->domain);
    const ortc_op *op = ortc_op_find(domain, ortc_proto_text(p->op_type));
    int64_t opset = ortc_scope_opset(s, domain);

    *out = NULL;
    *out_version = 0;
    if (!op) return ortc_import_miss(s, p, false);
    ORTC_TRY(ortc_op_ready(op, s->in->error));
    if (opset == 0)
        return ortc_fail(s->in->error, ORTC_INVALID_MODEL, "the model imports no operator set of domain '%s'",
                         domain);
    *out_version = ortc_op_bind(op, opset);
    if (*out_version == 0 || (*out_version < op->form && !op->lift)) return ortc_import_miss(s, p, true);
    *out = op;
    return ORTC_OK;
}

static ortc_status import_plain(ortc_scope *s, const Onnx__NodeProto *p)
{
    const char *name = ortc_proto_text(p->name), *full = name;
    attributes a = {0};
    const ortc_op *op;
    ortc_node *node;
    int32_t version;
    ortc_status status;

    if (p->n_input > INT32_MAX / 2 || p->n_output > INT32_MAX / 2)
        return ortc_fail(s->in->error, ORTC_LIMIT, "it has too many inputs or outputs");
    ORTC_TRY(bind(s, p, &op, &version));
    if (*s->prefix && *name) full = ortc_arena_printf(&s->in->arena, "%s%s", s->prefix, name);
    node = full ? ortc_node_create(s->graph, op, full, (uint32_t)count_given(p->input, p->n_input),
                                   (uint32_t)count_given(p->output, p->n_output))
                : NULL;
    if (!node) return ortc_no_memory(s->in->error, sizeof *node);
    status = fill_node(s, p, node, version, &a);
    attributes_deinit(&a);
    return status;
}

ortc_status ortc_import_node(ortc_scope *s, const Onnx__NodeProto *p)
{
    ortc_function *f = ortc_import_function(s->in, p);

    if (f) return ortc_import_call(s, p, f);
    if (*ortc_proto_domain(p->domain) == 0 && strcmp(ortc_proto_text(p->op_type), "Constant") == 0)
        return ortc_import_constant_node(s, p);
    return import_plain(s, p);
}
