/* graph/ir/graph.c: graphs, nodes, edges, constants: creation, editing and copying (graph.h).
 *
 * Uses of an edge are a list without order. Removed nodes and dropped uses stay in the arena until the graph
 * goes.
 */
#include "half.h"
#include "pointwise.h"

#include <stdio.h>

/* ---- Constants ----------------------------------------------------------------------------------------- */

ortc_status ortc_constant_create(ortc_dtype dtype, int32_t rank, const int64_t *dims, const void *data,
                                 size_t bytes, void (*release)(void *), void *arg, ortc_constant **out,
                                 ortc_error *error)
{
    static atomic_uint_fast64_t next_id = 1;
    int64_t count;
    *out = NULL;
    if (rank < 0 || rank > ORTC_MAX_RANK || !ortc_count_elements(rank, dims, &count))
        return ortc_fail(error, ORTC_LIMIT, "a constant's shape is not valid (rank %d)", rank);
    ortc_constant *c = calloc(1, sizeof *c + (size_t)rank * sizeof(int64_t));
    if (!c) return ortc_no_memory(error, sizeof *c);
    int64_t *copy = (int64_t *)(c + 1);
    if (rank) memcpy(copy, dims, (size_t)rank * sizeof *copy);
    atomic_init(&c->references, 1);
    c->dtype = dtype;
    c->rank = rank;
    c->dims = copy;
    c->count = count;
    c->data = data;
    c->bytes = bytes;
    c->release = release;
    c->release_arg = arg;
    c->id = atomic_fetch_add(&next_id, 1);
    *out = c;
    return ORTC_OK;
}

static void let_go(void *c) { ortc_constant_release(c); }

ortc_status ortc_constant_seen_as(ortc_constant *of, ortc_dtype dtype, int32_t rank, const int64_t *dims,
                                  ortc_constant **out, ortc_error *error)
{
    ORTC_TRY(ortc_constant_create(dtype, rank, dims, of->data, of->bytes, let_go, of, out, error));
    ortc_constant_retain(of);
    (*out)->mapped = of->mapped;
    return ORTC_OK;
}

ortc_status ortc_constant_rounded(ortc_constant *of, ortc_constant **out, ortc_error *error)
{
    ORTC_TRY(ortc_constant_create(ORTC_BF16, of->rank, of->dims, NULL, (size_t)of->count * 2, NULL, NULL, out,
                                  error));
    (*out)->of = ortc_constant_retain(of);
    return ORTC_OK;
}

void ortc_constant_round(const ortc_constant *of, uint16_t *out)
{
    for (int64_t i = 0; i < of->count; i++) {
        float v;
        memcpy(&v, (const char *)of->data + i * 4, sizeof v);
        out[i] = ortc_bf16_encode(v);
    }
    if (of->mapped) ortc_mapping_drop(of->data, of->bytes); /* it can be read again */
}

ortc_constant *ortc_constant_retain(ortc_constant *c)
{
    if (c) atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
    return c;
}

void ortc_constant_release(ortc_constant *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) != 1) return;
    if (c->release) c->release(c->release_arg);
    ortc_constant_release(c->of);
    free(c);
}

/* ---- Graphs -------------------------------------------------------------------------------------------- */

ortc_graph *ortc_graph_create(ortc_graph *parent)
{
    ortc_graph *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->api = &ortc_graph_graph_api;
    g->parent = parent;
    g->name = "";
    g->dims = parent ? parent->dims : calloc(1, sizeof *g->dims);
    if (!g->dims || (parent && !ortc_array_push(&parent->children, g))) {
        if (!parent) free(g->dims);
        free(g);
        return NULL;
    }
    return g;
}

void ortc_graph_destroy(ortc_graph *g)
{
    if (!g) return;
    for (size_t i = 0; i < g->children.count; i++) ortc_graph_destroy(g->children.data[i]);
    for (size_t i = 0; i < g->edges.count; i++) ortc_constant_release(g->edges.data[i]->constant);
    if (!g->parent) {
        ortc_dims_deinit(g->dims);
        free(g->dims);
    }
    ortc_array_deinit(&g->children);
    ortc_array_deinit(&g->edges);
    ortc_arena_deinit(&g->arena);
    free(g);
}

ortc_edge *ortc_edge_create(ortc_graph *g, const char *name)
{
    ortc_edge *e = ortc_arena_alloc(&g->arena, sizeof *e);
    if (!e) return NULL;
    e->graph = g;
    e->id = (uint32_t)g->edges.count;
    e->name = name ? ortc_arena_string(&g->arena, name, strlen(name))
                   : ortc_arena_printf(&g->arena, "%%%u", e->id);
    e->rank = -1;
    e->input = -1;
    if (!e->name || !ortc_array_push(&g->edges, e)) return NULL;
    return e;
}

bool ortc_edge_set_shape(ortc_edge *e, const ortc_type *type, int32_t rank, const ortc_dim *dims)
{
    const ortc_dim *copy = NULL;
    if (rank > 0 && !(copy = ortc_arena_copy(&e->graph->arena, dims, (size_t)rank * sizeof *dims)))
        return false;
    e->type = type;
    e->rank = rank;
    e->dims = copy;
    return true;
}

bool ortc_edge_set_constant(ortc_edge *e, ortc_constant *c)
{
    ortc_constant_release(e->constant);
    e->constant = c;
    e->type = ortc_tensor_type(c->dtype);
    e->rank = c->rank;
    e->dims = c->rank ? c->dims : NULL; /* numbers are dims */
    return true;
}

ortc_edge *ortc_graph_constant(ortc_graph *g, const char *name, ortc_constant *c)
{
    ortc_edge *e = ortc_edge_create(g, name);
    if (!e) {
        ortc_constant_release(c);
        return NULL;
    }
    ortc_edge_set_constant(e, c);
    return e;
}

ortc_edge *ortc_graph_constant_take(ortc_graph *g, ortc_dtype t, int32_t rank, const int64_t *dims,
                                    void *data, size_t bytes, ortc_error *error)
{
    ortc_constant *c;
    if (!data) return NULL;
    if (ortc_constant_create(t, rank, dims, data, bytes, ortc_data_free, data, &c, error) != ORTC_OK)
        return ortc_data_free(data), NULL;
    return ortc_graph_constant(g, NULL, c);
}

ortc_edge *ortc_graph_constant_copy(ortc_graph *g, ortc_dtype t, int32_t rank, const int64_t *dims,
                                    const void *data, size_t bytes, ortc_error *error)
{
    void *copy = ortc_data_alloc(bytes);
    if (copy && bytes) memcpy(copy, data, bytes);
    return ortc_graph_constant_take(g, t, rank, dims, copy, bytes, error);
}

/* ---- Uses ---------------------------------------------------------------------------------------------- */

static void use_link(ortc_edge *e, ortc_use *u)
{
    u->prev = NULL;
    u->next = e->uses;
    if (u->next) u->next->prev = u;
    e->uses = u;
}

static void use_unlink(ortc_edge *e, ortc_use *u)
{
    *(u->prev ? &u->prev->next : &e->uses) = u->next;
    if (u->next) u->next->prev = u->prev;
}

static ortc_use *use_add(ortc_edge *e, ortc_node *node, uint32_t port)
{
    ortc_use *u = ortc_arena_alloc(&e->graph->arena, sizeof *u);
    if (!u) return NULL;
    *u = (ortc_use){.node = node, .port = port};
    use_link(e, u);
    return u;
}

uint32_t ortc_edge_n_uses(const ortc_edge *e)
{
    uint32_t n = 0;
    for (const ortc_use *u = e->uses; u; u = u->next) n++;
    return n;
}

bool ortc_edge_replace(ortc_edge *from, ortc_edge *to)
{
    if (from == to) return true;
    while (from->uses) {
        ortc_use *u = from->uses;
        use_unlink(from, u);
        if (u->node)
            u->node->in[u->port] = to;
        else
            from->graph->outputs[u->port].edge = to;
        use_link(to, u);
    }
    from->same = to->graph == from->graph ? to->id + 1 : 0;
    return true;
}

/* ---- Nodes --------------------------------------------------------------------------------------------- */

static void link_before(ortc_node *n, ortc_node *before)
{
    ortc_graph *g = n->graph;
    n->next = before;
    n->prev = before ? before->prev : g->last;
    *(n->prev ? &n->prev->next : &g->first) = n;
    *(before ? &before->prev : &g->last) = n;
}

static void unlink_node(ortc_node *n)
{
    ortc_graph *g = n->graph;
    *(n->prev ? &n->prev->next : &g->first) = n->next;
    *(n->next ? &n->next->prev : &g->last) = n->prev;
    n->prev = n->next = NULL;
}

bool ortc_node_set_op(ortc_node *n, const ortc_op *op)
{
    if (ortc_op_ready(op, NULL) != ORTC_OK) return false;
    n->op = op;
    n->domain = op->domain;
    n->type = op->name;
    n->version = op->since;
    return true;
}

ortc_node *ortc_node_create(ortc_graph *g, const ortc_op *op, const char *name, uint32_t n_in, uint32_t n_out)
{
    ortc_node *n = ortc_arena_alloc(&g->arena, sizeof *n);
    if (!n) return NULL;
    n->api = &ortc_graph_node_api;
    n->graph = g;
    n->domain = n->type = "";
    if (op && !ortc_node_set_op(n, op)) return NULL;
    n->id = g->next_node++;
    n->in = ortc_arena_array(&g->arena, n_in, sizeof *n->in);
    n->uses = ortc_arena_array(&g->arena, n_in, sizeof *n->uses);
    n->out = ortc_arena_array(&g->arena, n_out ? n_out : 1, sizeof *n->out);
    n->n_in = n_in;
    n->n_out = n_out;
    n->name = name && *name ? ortc_arena_string(&g->arena, name, strlen(name))
                            : ortc_arena_printf(&g->arena, "%s_%u", n->type, n->id);
    if (!n->in || !n->uses || !n->out || !n->name) return NULL;
    link_before(n, NULL);
    g->n_nodes++;
    return n;
}

void ortc_node_move_before(ortc_node *n, ortc_node *before)
{
    unlink_node(n);
    link_before(n, before);
}

static bool grow_ports(ortc_graph *g, ortc_edge ***ports, uint32_t *count, uint32_t needed)
{
    if (needed <= *count) return true;
    ortc_edge **grown = ortc_arena_array(&g->arena, needed, sizeof *grown);
    if (!grown) return false;
    if (*count) memcpy(grown, *ports, *count * sizeof *grown);
    *ports = grown;
    *count = needed;
    return true;
}

bool ortc_node_set_in(ortc_node *n, uint32_t port, ortc_edge *e)
{
    if (port >= n->n_in) {
        ortc_use **grown = ortc_arena_array(&n->graph->arena, port + 1, sizeof *grown);
        if (!grown) return false;
        if (n->n_in) memcpy(grown, n->uses, n->n_in * sizeof *grown);
        n->uses = grown;
        if (!grow_ports(n->graph, &n->in, &n->n_in, port + 1)) return false;
    }
    ortc_edge *old = n->in[port];
    if (old == e) return true;
    ortc_use *use = e ? use_add(e, n, port) : NULL;
    if (e && !use) return false;
    if (old) use_unlink(old, n->uses[port]);
    n->uses[port] = use;
    n->in[port] = e;
    return true;
}

bool ortc_node_set_out(ortc_node *n, uint32_t port, ortc_edge *e)
{
    if (!grow_ports(n->graph, &n->out, &n->n_out, port + 1)) return false;
    if (n->out[port] && n->out[port]->producer == n) n->out[port]->producer = NULL;
    n->out[port] = e;
    if (e) {
        e->producer = n;
        e->producer_port = port;
    }
    return true;
}

void ortc_node_remove(ortc_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) {
            use_unlink(n->in[i], n->uses[i]);
            n->in[i] = NULL;
        }
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && n->out[i]->producer == n) n->out[i]->producer = NULL;
    unlink_node(n);
    n->graph->n_nodes--;
}

static bool add_end(ortc_graph *g, ortc_graph_input **list, uint32_t *count, const char *name, ortc_edge *e)
{
    /* Grows by doubling: capacity is the next power of two. */
    if ((*count & (*count - 1)) == 0) {
        ortc_graph_input *grown = ortc_arena_array(&g->arena, *count ? *count * 2u : 1u, sizeof *grown);
        if (!grown) return false;
        if (*count) memcpy(grown, *list, *count * sizeof *grown);
        *list = grown;
    }
    const char *copy = ortc_arena_string(&g->arena, name, strlen(name));
    if (!copy) return false;
    (*list)[(*count)++] = (ortc_graph_input){e, copy, ""};
    return true;
}

bool ortc_graph_add_input(ortc_graph *g, const char *name, ortc_edge *e)
{
    if (!add_end(g, &g->inputs, &g->n_inputs, name, e)) return false;
    e->input = (int32_t)g->n_inputs - 1;
    return true;
}

bool ortc_graph_add_output(ortc_graph *g, const char *name, ortc_edge *e)
{
    return use_add(e, NULL, g->n_outputs) && add_end(g, &g->outputs, &g->n_outputs, name, e);
}

/* ---- Attributes ---------------------------------------------------------------------------------------- */

static bool copy_attr(ortc_graph *g, ortc_attr *a)
{
    size_t element = 0;
    switch (a->kind) {
    case ORTC_ATTR_STRING: return (a->u.s = ortc_arena_string(&g->arena, a->u.s, a->count)) != NULL;
    case ORTC_ATTR_INTS: element = sizeof(int64_t); break;
    case ORTC_ATTR_FLOATS: element = sizeof(float); break;
    case ORTC_ATTR_TENSOR:
    case ORTC_ATTR_TENSORS: element = sizeof(ortc_port); break; /* their data is the importer's */
    case ORTC_ATTR_GRAPH:
    case ORTC_ATTR_GRAPHS: element = sizeof(ortc_graph *); break;
    case ORTC_ATTR_STRINGS: {
        const char **list = ortc_arena_array(&g->arena, a->count, sizeof *list);
        if (!list) return false;
        for (size_t i = 0; i < a->count; i++)
            if (!(list[i] = ortc_arena_string(&g->arena, a->u.strings[i], strlen(a->u.strings[i]))))
                return false;
        a->u.strings = list;
        return true;
    }
    default: return true;
    }
    void *copy = ortc_arena_array(&g->arena, a->count, element);
    if (!copy) return false;
    if (a->count) memcpy(copy, a->u.ints, a->count * element);
    a->u.ints = copy;
    return true;
}

bool ortc_node_set_attr(ortc_node *n, const char *name, const ortc_attr *value)
{
    ortc_attr copy = *value;
    copy.size = sizeof copy;
    if (!copy_attr(n->graph, &copy)) return false;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (!strcmp(n->attrs[i].name, name)) {
            n->attrs[i].value = copy;
            return true;
        }
    ortc_attribute *grown = ortc_arena_array(&n->graph->arena, n->n_attrs + 1, sizeof *grown);
    const char *key = ortc_arena_string(&n->graph->arena, name, strlen(name));
    if (!grown || !key) return false;
    if (n->n_attrs) memcpy(grown, n->attrs, n->n_attrs * sizeof *grown);
    grown[n->n_attrs] = (ortc_attribute){key, copy};
    n->attrs = grown;
    n->n_attrs++;
    return true;
}

bool ortc_node_copy_attrs(ortc_node *n, const ortc_node *from)
{
    for (uint32_t i = 0; i < from->n_attrs; i++)
        if (!ortc_node_set_attr(n, from->attrs[i].name, &from->attrs[i].value)) return false;
    return true;
}

void ortc_node_drop_attr(ortc_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (!strcmp(n->attrs[i].name, name)) {
            n->attrs[i] = n->attrs[--n->n_attrs];
            return;
        }
}

/* ---- The table that kernels and shape functions read nodes through ------------------------------------- */

void ortc_edge_port(const ortc_edge *e, ortc_port *out)
{
    /* Written with the reader's size in mind: fields are only ever added at the end. */
    out->flags = 0;
    out->type = NULL;
    out->rank = -1;
    out->dtype = 0;
    out->dims = NULL;
    out->data = NULL;
    out->edge = 0;
    if (!e) return;
    out->edge = e->id + 1;
    out->type = e->type;
    out->rank = e->rank;
    out->dims = e->dims;
    out->dtype = e->type && e->type->kind == ORTC_KIND_TENSOR ? e->type->dtype : 0;
    if (ortc_edge_is_const(e)) {
        out->flags |= ORTC_PORT_CONST;
        out->data = e->constant->data;
    }
    if (e->input >= 0) out->flags |= ORTC_PORT_GRAPH;
}

static const char *node_domain(const ortc_node *n) { return n->domain; }
static const char *node_op(const ortc_node *n) { return n->type; }
static int32_t node_version(const ortc_node *n) { return n->version; }
static const char *node_name(const ortc_node *n) { return n->name; }
static uint32_t node_n_in(const ortc_node *n) { return n->n_in - n->n_captures; }
static uint32_t node_n_out(const ortc_node *n) { return n->n_out; }
static void node_in(const ortc_node *n, uint32_t i, ortc_port *out)
{
    ortc_edge_port(i < n->n_in ? n->in[i] : NULL, out);
}
static void node_out(const ortc_node *n, uint32_t i, ortc_port *out)
{
    ortc_edge_port(i < n->n_out ? n->out[i] : NULL, out);
}
static const ortc_pointwise *node_epilogue(const ortc_node *n) { return n->epilogue; }
static const ortc_graph *node_body(const ortc_node *n) { return n->body; }
static const ortc_pointwise *node_program(const ortc_node *n)
{
    return n->program ? n->program : ortc_pointwise_of(n);
}

static void node_attr(const ortc_node *n, const char *name, ortc_attr *out)
{
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (!strcmp(n->attrs[i].name, name)) {
            *out = n->attrs[i].value;
            return;
        }
    /* A node that is being lifted is still of an older form, whose defaults are the lifting's affair. */
    const ortc_schema *s = n->op && n->version >= n->op->form ? ortc_op_schema(n->op) : NULL;
    for (uint32_t i = 0; s && i < s->n_attrs; i++)
        if (!strcmp(s->attrs[i].name, name)) {
            *out = s->attrs[i].otherwise;
            return;
        }
    *out = (ortc_attr){.size = sizeof *out};
}

const ortc_node_api ortc_graph_node_api = {.size = sizeof(ortc_node_api),
                                           .domain = node_domain,
                                           .op = node_op,
                                           .version = node_version,
                                           .name = node_name,
                                           .n_in = node_n_in,
                                           .n_out = node_n_out,
                                           .in = node_in,
                                           .out = node_out,
                                           .attr = node_attr,
                                           .epilogue = node_epilogue,
                                           .body = node_body,
                                           .program = node_program};

static uint32_t graph_n_nodes(const ortc_graph *g) { return g->n_nodes; }
static const ortc_node *graph_next(const ortc_graph *g, const ortc_node *n) { return n ? n->next : g->first; }
static uint32_t graph_n_in(const ortc_graph *g) { return g->n_inputs; }
static uint32_t graph_n_out(const ortc_graph *g) { return g->n_outputs; }
static void graph_in(const ortc_graph *g, uint32_t i, ortc_port *out)
{
    ortc_edge_port(i < g->n_inputs ? g->inputs[i].edge : NULL, out);
}
static void graph_out(const ortc_graph *g, uint32_t i, ortc_port *out)
{
    ortc_edge_port(i < g->n_outputs ? g->outputs[i].edge : NULL, out);
}

const ortc_graph_api ortc_graph_graph_api = {.size = sizeof(ortc_graph_api),
                                             .n_nodes = graph_n_nodes,
                                             .next = graph_next,
                                             .n_in = graph_n_in,
                                             .n_out = graph_n_out,
                                             .in = graph_in,
                                             .out = graph_out};
