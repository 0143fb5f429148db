/* graph/ir/infer.c: shape functions at work: the context they see, and the walk over a graph at load
 * (infer.h). */
#include "infer.h"

#include "ortc/program.h"

#include <stdio.h>

static const ortc_node *api_node(const ortc_infer *c) { return c->node; }

static ortc_edge *edge_in(const ortc_infer *c, uint32_t port)
{
    return port < c->node->n_in ? c->node->in[port] : NULL;
}

static void api_in(const ortc_infer *c, uint32_t port, ortc_port *out)
{
    c->node->api->in(c->node, port, out);
    const ortc_edge *e = edge_in(c, port);
    if (!e || !c->facts) return;
    const ortc_fact *f = &c->facts[e->id];
    out->type = f->type;
    out->rank = f->rank;
    out->dims = f->dims;
    out->dtype = f->type && f->type->kind == ORTC_KIND_TENSOR ? f->type->dtype : 0;
}

const ortc_dim *ortc_constant_values(const ortc_constant *c, ortc_arena *arena, int64_t *out_count)
{
    if ((c->dtype != ORTC_I64 && c->dtype != ORTC_I32) || c->rank > 1 || c->count > ORTC_MAX_VALUES)
        return NULL;
    ortc_dim *v = ortc_arena_array(arena, (size_t)c->count, sizeof *v);
    if (!v) return NULL;
    for (int64_t i = 0; i < c->count; i++) {
        int32_t narrow;
        if (c->dtype == ORTC_I64)
            memcpy(&v[i], (const char *)c->data + i * 8, 8);
        else {
            memcpy(&narrow, (const char *)c->data + i * 4, 4);
            v[i] = narrow;
        }
        /* "To the end" in Slice is INT64_MIN or MAX: saturated into the range of numbers, the same
         * meaning. */
        if (!ortc_dim_is_number(v[i])) v[i] = ORTC_DIM_NUMBERS;
    }
    *out_count = c->count;
    return v;
}

static const ortc_dim *api_values(ortc_infer *c, uint32_t port, int64_t *count)
{
    const ortc_edge *e = edge_in(c, port);
    *count = 0;
    if (!e) return NULL;
    const ortc_dim *values = c->facts ? c->facts[e->id].values : e->values;
    int64_t n = c->facts ? c->facts[e->id].n_values : e->n_values;
    if (!values && ortc_edge_is_const(e)) values = ortc_constant_values(e->constant, c->arena, &n);
    if (values) *count = n;
    return values;
}

static ortc_status api_out(ortc_infer *c, uint32_t port, ortc_dtype dtype, int32_t rank, const ortc_dim *dims)
{
    if (port >= c->node->n_out) return ORTC_OK;
    ortc_fact *f = &c->out[port];
    if (dtype) f->type = ortc_tensor_type(dtype);
    if (rank > ORTC_MAX_RANK)
        return ortc_fail(c->error, ORTC_LIMIT, "node '%s' (%s): output %u has %d dims, more than %d",
                         c->node->name, c->node->type, port, rank, ORTC_MAX_RANK);
    if (rank >= 0 && !(rank > 0 && !dims)) {
        f->dims = rank ? ortc_arena_copy(c->arena, dims, (size_t)rank * sizeof *dims) : NULL;
        if (rank && !f->dims) return ortc_no_memory(c->error, 0);
        f->rank = rank;
        for (int32_t i = 0; i < rank; i++)
            if (ortc_dim_is_number(f->dims[i]) && f->dims[i] < 0)
                return ortc_fail(c->error, ORTC_SHAPE_MISMATCH,
                                 "node '%s' (%s): output %u would have %lld elements along axis %d",
                                 c->node->name, c->node->type, port, (long long)f->dims[i], i);
    }
    return ORTC_OK;
}

static ortc_status api_out_type(ortc_infer *c, uint32_t port, const ortc_type *type)
{
    if (port >= c->node->n_out || !type) return ORTC_OK;
    c->out[port].type = ortc_type_copy(c->arena, type); /* a shape function may have put it together itself */
    return c->out[port].type ? ORTC_OK : ortc_no_memory(c->error, sizeof *type);
}

static ortc_status api_out_values(ortc_infer *c, uint32_t port, int64_t count, const ortc_dim *values)
{
    if (port >= c->node->n_out || count < 0 || count > ORTC_MAX_VALUES) return ORTC_OK;
    ortc_fact *f = &c->out[port];
    f->values = ortc_arena_copy(c->arena, values, (size_t)count * sizeof *values);
    f->n_values = count;
    return f->values ? ORTC_OK : ortc_no_memory(c->error, 0);
}

static ortc_dim api_dim(ortc_infer *c, int32_t what, ortc_dim a, ortc_dim b)
{
    static const char *const signs[] = {"", "+", "-", "*", "/", "/", "", "", ""};
    const bool element = what & ORTC_DIM_OF_ELEMENTS;
    ortc_dims none = {0}; /* numbers never touch the table */
    ortc_dim r;
    what &= ~ORTC_DIM_OF_ELEMENTS;
    if (!c->dims && (!ortc_dim_is_number(a) || !ortc_dim_is_number(b))) return ORTC_DIM_UNKNOWN;
    ortc_status s = ortc_dims_combine(c->dims ? c->dims : &none, what, a, b, &r);
    if (s == ORTC_OK || (element && s == ORTC_SHAPE_MISMATCH) || c->status != ORTC_OK) return r;
    c->status = s != ORTC_SHAPE_MISMATCH ? ortc_dims_failed(c->error, s)
                : what == ORTC_DIM_BROADCAST
                    ? ortc_fail(c->error, s, "extents %lld and %lld do not broadcast", (long long)a,
                                (long long)b)
                    : ortc_fail(c->error, s, "the extent %lld %s %lld is more than 64 bits hold",
                                (long long)a, signs[what], (long long)b);
    ortc_error_prefix(c->error, "node '%s' (%s): ", c->node->name, c->node->type);
    return r;
}

static ortc_status api_fail(ortc_infer *c, ortc_status s, const char *fmt, va_list args)
{
    ortc_vfail(c->error, s, fmt, args);
    ortc_error_prefix(c->error, "node '%s' (%s): ", c->node->name, c->node->type);
    return s;
}

/* What the subgraph's own inference found at load; while planning only what are numbers. Exporters may leave
 * the types of a body's formal inputs out: at load they follow from what the node is given. */
static ortc_status api_body(ortc_infer *c, const ortc_graph *g, uint32_t n_in, const ortc_port *in,
                            uint32_t n_out, ortc_port *out)
{
    bool learned = false;
    for (uint32_t i = 0; c->dims && i < n_in && i < g->n_inputs; i++)
        if (in[i].type && !g->inputs[i].edge->type) {
            g->inputs[i].edge->type = in[i].type;
            learned = true;
        }
    if (learned) ORTC_TRY(ortc_graph_infer((ortc_graph *)(uintptr_t)g, c->error));
    for (uint32_t i = 0; i < n_out; i++) {
        const ortc_edge *e = i < g->n_outputs ? g->outputs[i].edge : NULL;
        out[i] = (ortc_port){.size = sizeof *out, .rank = -1};
        if (!e || !e->type) continue;
        out[i].type = e->type;
        out[i].dtype = e->type->kind == ORTC_KIND_TENSOR ? e->type->dtype : 0;
        out[i].rank = e->rank;
        out[i].dims = e->dims;
        if (c->dims || e->rank <= 0) continue;
        ortc_dim *dims = ortc_arena_copy(c->arena, e->dims, (size_t)e->rank * sizeof *dims);
        if (!dims) return ortc_no_memory(c->error, 0);
        for (int32_t k = 0; k < e->rank; k++)
            if (!ortc_dim_is_number(dims[k])) dims[k] = ORTC_DIM_UNKNOWN;
        out[i].dims = dims;
    }
    return ORTC_OK;
}

static const ortc_infer_api api = {.size = sizeof api,
                                   .node = api_node,
                                   .in = api_in,
                                   .values = api_values,
                                   .out = api_out,
                                   .out_type = api_out_type,
                                   .out_values = api_out_values,
                                   .dim = api_dim,
                                   .fail = api_fail,
                                   .body = api_body};

void ortc_infer_init(ortc_infer *c, ortc_dims *dims, ortc_arena *arena, const ortc_fact *facts,
                     ortc_error *error)
{
    *c = (ortc_infer){.api = &api, .dims = dims, .arena = arena, .facts = facts, .error = error};
}

/* A group's results: the facts of its inputs walked through its body. */
static ortc_status infer_group(ortc_infer *c, const ortc_node *n, ortc_fact *out)
{
    const ortc_graph *g = n->body;
    ortc_fact *facts = ortc_arena_array(c->arena, g->edges.count + 1, sizeof *facts);
    ortc_infer inner;
    if (!facts) return ortc_no_memory(c->error, g->edges.count * sizeof *facts);
    for (size_t i = 0; i < g->edges.count; i++) {
        const ortc_edge *e = g->edges.data[i];
        facts[i] = (ortc_fact){.type = e->type, .rank = -1};
        if (!e->constant) continue;
        facts[i].rank = e->constant->rank;
        facts[i].dims = e->constant->dims;
        facts[i].values = ortc_constant_values(e->constant, c->arena, &facts[i].n_values);
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const ortc_edge *e = n->in[i];
        facts[g->inputs[i].edge->id] = c->facts
                                           ? c->facts[e->id]
                                           : (ortc_fact){e->type, e->rank, e->dims, e->values, e->n_values};
    }
    ortc_infer_init(&inner, c->dims, c->arena, facts, c->error);
    for (const ortc_node *b = g->first; b; b = b->next) {
        ortc_fact *made = ortc_arena_array(c->arena, b->n_out + 1u, sizeof *made);
        if (!made) return ortc_no_memory(c->error, 0);
        ORTC_TRY(ortc_infer_run(&inner, b, made));
        for (uint32_t i = 0; i < b->n_out; i++)
            if (b->out[i]) facts[b->out[i]->id] = made[i];
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) out[i] = facts[g->outputs[i].edge->id];
    return ORTC_OK;
}

ortc_status ortc_infer_run(ortc_infer *c, const ortc_node *n, ortc_fact *out)
{
    c->node = n;
    c->out = out;
    c->status = ORTC_OK;
    for (uint32_t i = 0; i < n->n_out; i++) out[i] = (ortc_fact){.rank = -1};
    if (n->op == &ortc_op_group) return infer_group(c, n, out);
    if (!n->op || !n->op->infer) return ORTC_OK;
    ortc_status s = n->op->infer(c);
    if (n->epilogue) out[0].type = ortc_tensor_type(n->epilogue->steps[n->epilogue->n - 1].type);
    return s != ORTC_OK ? s : c->status;
}

bool ortc_fact_values_known(const ortc_fact *f)
{
    if (!f->values) return false;
    for (int64_t i = 0; i < f->n_values; i++)
        if (!ortc_dim_is_number(f->values[i])) return false;
    return true;
}

/* ---- The walk at load ---------------------------------------------------------------------------------- */

/* Joins what the shape function says with what the file says (value_info, output types). What is
 * computed wins, for it is what will be. Where nothing is, a name that the file gives is taken, but no
 * number: what was folded with a false one would be a wrong result. */
static ortc_status join(ortc_infer *c, ortc_edge *e, const ortc_fact *f)
{
    const ortc_type *type = f->type ? f->type : e->type;
    if (e->type && f->type && !ortc_type_equal(e->type, f->type)) {
        char said[96], found[96];
        ortc_text t1 = ORTC_TEXT(said), t2 = ORTC_TEXT(found);
        ortc_text_type(&t1, e->type);
        ortc_text_type(&t2, f->type);
        return ortc_fail(c->error, ORTC_TYPE_MISMATCH,
                         "node '%s' (%s): output '%s' is declared as %s but computes %s", c->node->name,
                         c->node->type, e->name, said, found);
    }
    int32_t rank = f->rank >= 0 ? f->rank : e->rank;
    if (rank > 0) {
        ortc_dim dims[ORTC_MAX_RANK];
        bool declared = e->rank == rank;
        for (int32_t i = 0; i < rank; i++) {
            ortc_dim d = f->rank >= 0 ? f->dims[i] : ORTC_DIM_UNKNOWN;
            ortc_dim said = declared ? e->dims[i] : ORTC_DIM_UNKNOWN;
            if (d == ORTC_DIM_UNKNOWN && !ortc_dim_is_number(said)) d = said;
            if (d == ORTC_DIM_UNKNOWN) ORTC_TRY(ortc_dims_failed(c->error, ortc_dims_fresh(c->dims, &d)));
            dims[i] = d;
        }
        if (!ortc_edge_set_shape(e, type, rank, dims)) return ortc_no_memory(c->error, 0);
    } else {
        e->type = type;
        e->rank = rank;
        e->dims = NULL;
    }
    e->values = f->values;
    e->n_values = f->n_values;
    return ORTC_OK;
}

static ortc_status infer_outputs(ortc_infer *c, ortc_node *n)
{
    ortc_fact stack[8];
    ortc_fact *out = n->n_out <= ORTC_LENGTH(stack) ? stack
                                                    : ortc_arena_array(c->arena, n->n_out, sizeof *out);
    if (!out) return ortc_no_memory(c->error, 0);
    ORTC_TRY(ortc_infer_run(c, n, out));
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) ORTC_TRY(join(c, n->out[i], &out[i]));
    return ORTC_OK;
}

/* What the schema alone says: what follows a node that does not fit still wants types. */
static const ortc_type *type_by_schema(const ortc_node *n, uint32_t port)
{
    const ortc_schema *s = ortc_op_schema(n->op);
    const ortc_formal *f = ortc_schema_out(s, port);
    if (!f) return NULL;
    for (uint32_t i = 0; f->constraint >= 0 && i < n->n_in; i++) {
        const ortc_formal *in = ortc_schema_in(s, i);
        if (in && n->in[i] && in->constraint == f->constraint && n->in[i]->type) return n->in[i]->type;
    }
    for (ortc_dtype t = 1; t < ORTC_DTYPE_COUNT; t++)
        if (f->mask == ORTC_TYPE(t)) return ortc_tensor_type(t);
    return NULL;
}

/* A branch that is not taken may hold what does not fit, of shapes, values or attributes (exporters write
 * branches for ranks that a model never has): it fails when it is run. */
ortc_status ortc_infer_at_load(ortc_infer *c, ortc_node *n)
{
    const ortc_status s = infer_outputs(c, n);
    if (n->graph->parent &&
        (s == ORTC_SHAPE_MISMATCH || s == ORTC_INVALID_ARGUMENT || s == ORTC_INVALID_MODEL)) {
        n->misfit = true;
        for (uint32_t i = 0; i < n->n_out; i++)
            if (n->out[i] && !n->out[i]->type) n->out[i]->type = type_by_schema(n, i);
        if (c->error) *c->error = (ortc_error)ORTC_ERROR_INIT;
    } else if (s != ORTC_OK)
        return s;
    return ortc_node_check(n, c->error); /* its ports are read before it runs: they must be there */
}

ortc_status ortc_graph_infer(ortc_graph *g, ortc_error *error)
{
    ortc_infer c;
    ortc_infer_init(&c, g->dims, &g->arena, NULL, error);
    for (ortc_node *n = g->first; n; n = n->next) ORTC_TRY(ortc_infer_at_load(&c, n));
    return ORTC_OK;
}
