/* graph/onnx/lift.c: the services that an operator's `lift` edits a node through (ortc_lift_api).
 *
 * Called when the node is the last of its graph and nobody has read its outputs yet, so nodes put behind it
 * are just appended. Every status that a service returns is remembered: a lifting that ignores one fails all
 * the same.
 */
#include "lift.h"

enum { MAX_PORTS = 64 };

ortc_status ortc_lift_note(ortc_lift *l, ortc_status status)
{
    if (l->status == ORTC_OK) l->status = status;
    return status;
}

ortc_status ortc_lift_no_memory(ortc_lift *l)
{
    return ortc_lift_note(l, ortc_no_memory(l->scope->in->error, 0));
}

static const ortc_node *api_node(const ortc_lift *l) { return l->node; }

static int32_t api_version(const ortc_lift *l) { return l->version; }

static void api_drop_attr(ortc_lift *l, const char *name) { ortc_node_drop_attr(l->node, name); }

static ortc_status set_attr(ortc_lift *l, const char *name, const ortc_attr *value)
{
    return ortc_node_set_attr(l->node, name, value) ? ORTC_OK : ortc_lift_no_memory(l);
}

static ortc_status api_set_int(ortc_lift *l, const char *name, int64_t value)
{
    return set_attr(l, name, &(ortc_attr){.kind = ORTC_ATTR_INT, .i = value});
}

static ortc_status api_set_ints(ortc_lift *l, const char *name, const int64_t *values, size_t count)
{
    return set_attr(l, name, &(ortc_attr){.kind = ORTC_ATTR_INTS, .count = count, .u.ints = values});
}

static ortc_status api_set_float(ortc_lift *l, const char *name, float value)
{
    return set_attr(l, name, &(ortc_attr){.kind = ORTC_ATTR_FLOAT, .f = value});
}

static ortc_status api_set_string(ortc_lift *l, const char *name, const char *value)
{
    return set_attr(l, name, &(ortc_attr){.kind = ORTC_ATTR_STRING, .count = strlen(value), .u.s = value});
}

static ortc_status api_set_strings(ortc_lift *l, const char *name, const char *const *values, size_t count)
{
    return set_attr(l, name, &(ortc_attr){.kind = ORTC_ATTR_STRINGS, .count = count, .u.strings = values});
}

ortc_edge *ortc_lift_constant(ortc_lift *l, ortc_dtype dtype, int32_t rank, const int64_t *dims,
                              const void *data)
{
    ortc_tensor_data t = {.dtype = dtype, .rank = rank, .dims = dims};
    ortc_constant *c;
    ortc_edge *e;

    if (rank < 0 || rank > ORTC_MAX_RANK || !ortc_count_elements(rank, dims, &t.count) ||
        !ortc_tensor_bytes(dtype, t.count, &t.bytes)) {
        ortc_lift_note(l, ortc_fail(l->scope->in->error, ORTC_INTERNAL,
                                    "the lifting makes a constant that cannot be"));
        return NULL;
    }
    t.data = t.owned = malloc(t.bytes ? t.bytes : 1);
    if (!t.owned) {
        ortc_lift_no_memory(l);
        return NULL;
    }
    if (t.bytes) memcpy(t.owned, data, t.bytes);
    if (ortc_lift_note(l, ortc_import_constant(l->scope->in, &t, &c)) != ORTC_OK) return NULL;
    e = ortc_graph_constant(l->node->graph, NULL, c);
    if (!e) ortc_lift_no_memory(l);
    return e;
}

static ortc_status api_const_in(ortc_lift *l, uint32_t port, ortc_dtype dtype, int32_t rank,
                                const int64_t *dims, const void *data)
{
    ortc_edge *e;

    if (port >= MAX_PORTS)
        return ortc_lift_note(l, ortc_fail(l->scope->in->error, ORTC_INTERNAL, "the lifting uses input %u",
                                           port));
    e = ortc_lift_constant(l, dtype, rank, dims, data);
    if (!e) return l->status;
    return ortc_node_set_in(l->node, port, e) ? ORTC_OK : ortc_lift_no_memory(l);
}

static ortc_status api_move_in(ortc_lift *l, uint32_t from, uint32_t to)
{
    ortc_edge *e = ortc_node_in_edge(l->node, from);

    if (to >= MAX_PORTS)
        return ortc_lift_note(l,
                              ortc_fail(l->scope->in->error, ORTC_INTERNAL, "the lifting uses input %u", to));
    if (!ortc_node_set_in(l->node, to, e) || !ortc_node_set_in(l->node, from, NULL))
        return ortc_lift_no_memory(l);
    while (l->node->n_in && !l->node->in[l->node->n_in - 1]) l->node->n_in--; /* as if it were not written */
    return ORTC_OK;
}

static ortc_status api_n_out(ortc_lift *l, uint32_t count)
{
    for (uint32_t i = count; i < l->node->n_out; i++) {
        ortc_edge *e = l->node->out[i];
        if (!e) continue;
        /* Whoever reads the name from here on is told that nobody makes it. */
        if (e->origin && !ortc_map_set(&l->scope->edges, e->origin, NULL)) return ortc_lift_no_memory(l);
        ortc_node_set_out(l->node, i, NULL);
    }
    if (count < l->node->n_out) l->node->n_out = count;
    return ORTC_OK;
}

/* A node of the same domain with room for a data input, a constant vector if there is one, and an output. */
static ortc_node *create_wrapper(ortc_lift *l, const char *op_name, const int64_t *ints, size_t count)
{
    const ortc_op *op = ortc_op_find(l->node->domain, op_name);
    int64_t dim = (int64_t)count;
    ortc_node *n;
    ortc_edge *e;
    const char *name;

    if (!op) {
        ortc_lift_note(l, ortc_fail(l->scope->in->error, ORTC_UNSUPPORTED,
                                    "version %d of it needs operator '%s', which is not supported",
                                    l->version, op_name));
        return NULL;
    }
    name = ortc_arena_printf(&l->scope->in->arena, "%s/%s", l->node->name, op_name);
    n = name ? ortc_node_create(l->node->graph, op, name, ints ? 2 : 1, 1) : NULL;
    if (!n) {
        ortc_lift_no_memory(l);
        return NULL;
    }
    if (ints) {
        e = ortc_lift_constant(l, ORTC_I64, 1, &dim, ints);
        if (!e) return NULL;
        if (!ortc_node_set_in(n, 1, e)) {
            ortc_lift_no_memory(l);
            return NULL;
        }
    }
    return n;
}

static ortc_status api_wrap_in(ortc_lift *l, uint32_t port, const char *op, const int64_t *ints, size_t count)
{
    ortc_edge *data = ortc_node_in_edge(l->node, port), *between;
    ortc_node *n;

    if (!data)
        return ortc_lift_note(l, ortc_fail(l->scope->in->error, ORTC_INVALID_MODEL, "input %u is missing",
                                           port));
    n = create_wrapper(l, op, ints, count);
    if (!n) return l->status;
    between = ortc_edge_create(l->node->graph, NULL);
    if (!between || !ortc_node_set_in(n, 0, data) || !ortc_node_set_out(n, 0, between) ||
        !ortc_node_set_in(l->node, port, between))
        return ortc_lift_no_memory(l);
    ortc_node_move_before(n, l->node);
    /* the rest of the lifting may ask for the new input's rank */
    return ortc_lift_note(l, ortc_import_infer(l->scope->in, n));
}

static ortc_status api_wrap_out(ortc_lift *l, uint32_t port, const char *op, const int64_t *ints,
                                size_t count)
{
    ortc_edge *named = port < l->node->n_out ? l->node->out[port] : NULL, *between;
    ortc_node *n, *next = l->node->next;

    if (!named) /* nobody wants it */
        return ORTC_OK;
    n = create_wrapper(l, op, ints, count);
    if (!n) return l->status;
    between = ortc_edge_create(l->node->graph, NULL);
    if (!between || !ortc_node_set_out(l->node, port, between) || !ortc_node_set_in(n, 0, between) ||
        !ortc_node_set_out(n, 0, named))
        return ortc_lift_no_memory(l);
    if (next) /* right behind the node: before what an earlier wrap put there, which reads our output */
        ortc_node_move_before(n, next);
    return ORTC_OK;
}

static ortc_status api_rename(ortc_lift *l, const char *name)
{
    const ortc_op *op = ortc_op_find(l->node->domain, name);

    if (!op)
        return ortc_lift_note(l, ortc_fail(l->scope->in->error, ORTC_UNSUPPORTED,
                                           "version %d of it needs operator '%s', which is not supported",
                                           l->version, name));
    return ortc_node_set_op(l->node, op) ? ORTC_OK : ortc_lift_no_memory(l);
}

static ortc_status api_fail(ortc_lift *l, ortc_status status, const char *fmt, va_list args)
{
    return ortc_lift_note(l, ortc_vfail(l->scope->in->error, status, fmt, args));
}

/* The node's double in the body of a Scan, between the body's inputs and outputs. *turns: its inputs from
 * outside that are given and not captured. */
static ortc_status fill_body(ortc_lift *l, ortc_graph *g, ortc_node *inner, uint32_t *turns)
{
    const ortc_node *n = l->node;
    const uint32_t n_data = n->n_in - n->n_captures;
    inner->version = n->version;
    inner->n_captures = n->n_captures;
    *turns = 0;
    if (!ortc_node_copy_attrs(inner, n)) return ortc_lift_no_memory(l);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const ortc_edge *e = n->in[i];
        const int32_t less = i < n_data;
        if (!e) continue;
        if (less && e->rank == 0)
            return ortc_lift_note(l, ortc_fail(l->scope->in->error, ORTC_SHAPE_MISMATCH,
                                               "input %u has no axis of samples", i));
        ortc_edge *part = ortc_edge_create(g, NULL);
        if (!part ||
            !ortc_edge_set_shape(part, e->type, e->rank < 0 ? -1 : e->rank - less,
                                 e->rank > less ? e->dims + less : NULL) ||
            !ortc_graph_add_input(g, part->name, part) || !ortc_node_set_in(inner, i, part))
            return ortc_lift_no_memory(l);
        *turns += i < n_data;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        ortc_edge *part = ortc_edge_create(g, NULL);
        if (!part || !ortc_node_set_out(inner, i, part) || !ortc_graph_add_output(g, part->name, part))
            return ortc_lift_no_memory(l);
    }
    return ORTC_OK;
}

static ortc_status api_each(ortc_lift *l)
{
    ortc_node *n = l->node;
    const ortc_op *scan = ortc_op_find("", "Scan");
    ortc_graph *g = scan ? ortc_graph_create(n->graph) : NULL;
    ortc_node *inner = g ? ortc_node_create(g, n->op, n->name, n->n_in, n->n_out) : NULL;
    const ortc_graph *body = g;
    uint32_t turns, count = 0;
    if (!inner) return ortc_lift_no_memory(l);
    ORTC_TRY(fill_body(l, g, inner, &turns));
    if (!ortc_node_set_op(n, scan)) return ortc_lift_no_memory(l);
    n->n_attrs = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ortc_edge *e = n->in[i];
        if (!e) continue;
        if (!ortc_node_set_in(n, i, NULL) || !ortc_node_set_in(n, count++, e)) return ortc_lift_no_memory(l);
    }
    n->n_in = count;
    ORTC_TRY(set_attr(l, "body", &(ortc_attr){.kind = ORTC_ATTR_GRAPH, .count = 1, .u.graphs = &body}));
    ORTC_TRY(api_set_int(l, "num_scan_inputs", turns));
    l->node = inner;
    l->before = NULL;
    return ORTC_OK;
}

static const ortc_lift_api lift_api = {
    .size = sizeof lift_api,
    .node = api_node,
    .version = api_version,
    .drop_attr = api_drop_attr,
    .set_int = api_set_int,
    .set_ints = api_set_ints,
    .set_float = api_set_float,
    .set_string = api_set_string,
    .const_in = api_const_in,
    .n_out = api_n_out,
    .wrap_in = api_wrap_in,
    .wrap_out = api_wrap_out,
    .rename = api_rename,
    .fail = api_fail,
    .set_strings = api_set_strings,
    .move_in = api_move_in,
    .write = ortc_lift_compose,
    .look = ortc_lift_look_at,
    .name = ortc_lift_name_constant,
    .recast = ortc_lift_recast_constant,
    .each = api_each,
};

/* Runs the operator's lifting; what went wrong in a service counts, too. */
static ortc_status run(ortc_lift *l)
{
    const ortc_status status = l->node->op->lift(l);
    return status == ORTC_OK ? l->status : status;
}

static ortc_lift begin(ortc_scope *s, ortc_node *node, int32_t version)
{
    return (ortc_lift){.api = &lift_api,
                       .scope = s,
                       .node = node,
                       .before = node->prev,
                       .first_out = node->n_out ? node->out[0] : NULL,
                       .version = version};
}

ortc_status ortc_import_lift(ortc_scope *s, ortc_node *node, int32_t version)
{
    ortc_lift l = begin(s, node, version);

    node->version = version; /* while it is below `form`, attributes that are left out have no defaults */
    if (version < node->op->form) {
        const ortc_status status = run(&l);
        const bool written = l.names.count > 0; /* others take the place of this older form */
        ortc_array_deinit(&l.names);
        ORTC_TRY(status);
        if (written) return ortc_lift_finish(&l);
    }
    node->version = node->op->since;
    return ORTC_OK;
}

ortc_status ortc_import_compose(ortc_scope *s, ortc_node *node, int32_t version)
{
    ortc_lift l = begin(s, node, version);
    ortc_status status;

    node->version = node->op->since;
    ORTC_TRY(ortc_node_check(node, s->in->error));
    status = run(&l);
    ortc_array_deinit(&l.names);
    return status == ORTC_OK ? ortc_lift_finish(&l) : status;
}
