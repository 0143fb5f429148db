/* ortc/op_calls.h: how the functions that op.h declares reach the host: tables of functions that the host
 * passes in, and inline forwarders to them, so that a plugin links to nothing; and the bodies of its macros.
 * op.h is what to read; it includes this file. The tables only grow at their ends.
 */
#ifndef ORTC_OP_CALLS_H
#define ORTC_OP_CALLS_H

#include "op.h"

/* Every handle's first field is the pointer to its table. */
#define ORTC_API_OF(table, handle) (*(const table *const *)(const void *)(handle))

/* ---- Dims ---------------------------------------------------------------------------------------------- */

static inline int ortc_dim_is_number(ortc_dim d) { return d >= ORTC_DIM_NUMBERS; }
/* ---- Ports: what is known of a node's input or output -------------------------------------------------- */

static inline const char *ortc_string_at(const ortc_strings *s, int64_t i, int64_t *out_length)
{
    *out_length = s->offsets[i + 1] - s->offsets[i];
    return (const char *)(s->offsets + s->count + 1) + s->offsets[i];
}
/* ---- Nodes --------------------------------------------------------------------------------------------- */

typedef struct ortc_node_api {
    uint32_t size;
    const char *(*domain)(const ortc_node *); /* "" for the standard's */
    const char *(*op)(const ortc_node *);
    int32_t (*version)(const ortc_node *);  /* since_version of the schema that the node is bound to */
    const char *(*name)(const ortc_node *); /* for messages; never NULL */
    uint32_t (*n_in)(const ortc_node *);    /* without what a control node's subgraphs capture */
    uint32_t (*n_out)(const ortc_node *);
    void (*in)(const ortc_node *, uint32_t port, ortc_port *out);  /* out->type NULL: left out */
    void (*out)(const ortc_node *, uint32_t port, ortc_port *out); /* out->type NULL: not wanted */
    /* given, else the schema's default, else kind 0 */
    void (*attr)(const ortc_node *, const char *name, ortc_attr *out);
    const struct ortc_pointwise *(*epilogue)(const ortc_node *); /* NULL: none */
    const ortc_graph *(*body)(const ortc_node *);                /* NULL: an ordinary node */
    const struct ortc_pointwise *(*program)(const ortc_node *);
} ortc_node_api;

static inline const char *ortc_node_op(const ortc_node *n) { return ORTC_API_OF(ortc_node_api, n)->op(n); }
static inline const char *ortc_node_domain(const ortc_node *n)
{
    return ORTC_API_OF(ortc_node_api, n)->domain(n);
}
static inline const char *ortc_node_name(const ortc_node *n)
{
    return ORTC_API_OF(ortc_node_api, n)->name(n);
}
static inline int32_t ortc_node_version(const ortc_node *n)
{
    return ORTC_API_OF(ortc_node_api, n)->version(n);
}
static inline uint32_t ortc_node_n_in(const ortc_node *n) { return ORTC_API_OF(ortc_node_api, n)->n_in(n); }
static inline uint32_t ortc_node_n_out(const ortc_node *n) { return ORTC_API_OF(ortc_node_api, n)->n_out(n); }
static inline ortc_port ortc_node_in(const ortc_node *n, uint32_t i)
{
    ortc_port p;
    p.size = ORTC_SIZED(ortc_port);
    ORTC_API_OF(ortc_node_api, n)->in(n, i, &p);
    return p;
}
static inline ortc_port ortc_node_out(const ortc_node *n, uint32_t i)
{
    ortc_port p;
    p.size = ORTC_SIZED(ortc_port);
    ORTC_API_OF(ortc_node_api, n)->out(n, i, &p);
    return p;
}
static inline ortc_attr ortc_node_attr(const ortc_node *n, const char *name)
{
    ortc_attr a;
    a.size = ORTC_SIZED(ortc_attr);
    ORTC_API_OF(ortc_node_api, n)->attr(n, name, &a);
    return a;
}
static inline int64_t ortc_node_int(const ortc_node *n, const char *name, int64_t otherwise)
{
    ortc_attr a = ortc_node_attr(n, name);
    return a.kind == ORTC_ATTR_INT ? a.i : otherwise;
}
static inline float ortc_node_float(const ortc_node *n, const char *name, float otherwise)
{
    ortc_attr a = ortc_node_attr(n, name);
    return a.kind == ORTC_ATTR_FLOAT ? a.f : otherwise;
}
static inline const char *ortc_node_string(const ortc_node *n, const char *name, const char *otherwise)
{
    ortc_attr a = ortc_node_attr(n, name);
    return a.kind == ORTC_ATTR_STRING ? a.u.s : otherwise;
}
static inline const int64_t *ortc_node_ints(const ortc_node *n, const char *name, size_t *out_count)
{
    ortc_attr a = ortc_node_attr(n, name);
    *out_count = a.kind == ORTC_ATTR_INTS ? a.count : 0;
    return a.kind == ORTC_ATTR_INTS ? a.u.ints : NULL;
}
static inline const float *ortc_node_floats(const ortc_node *n, const char *name, size_t *out_count)
{
    ortc_attr a = ortc_node_attr(n, name);
    *out_count = a.kind == ORTC_ATTR_FLOATS ? a.count : 0;
    return a.kind == ORTC_ATTR_FLOATS ? a.u.floats : NULL;
}
static inline const struct ortc_pointwise *ortc_node_epilogue(const ortc_node *n)
{
    return ORTC_API_OF(ortc_node_api, n)->epilogue(n);
}
static inline const ortc_graph *ortc_node_body(const ortc_node *n)
{
    return ORTC_API_OF(ortc_node_api, n)->body(n);
}
static inline const struct ortc_pointwise *ortc_node_program(const ortc_node *n)
{
    return ORTC_API_OF(ortc_node_api, n)->program(n);
}
typedef struct ortc_graph_api {
    uint32_t size;
    uint32_t (*n_nodes)(const ortc_graph *);
    /* in an order of execution; NULL: the first, of the last */
    const ortc_node *(*next)(const ortc_graph *, const ortc_node *);
    uint32_t (*n_in)(const ortc_graph *);
    uint32_t (*n_out)(const ortc_graph *);
    void (*in)(const ortc_graph *, uint32_t i, ortc_port *out);
    void (*out)(const ortc_graph *, uint32_t i, ortc_port *out);
} ortc_graph_api;

static inline const ortc_node *ortc_graph_next(const ortc_graph *g, const ortc_node *n)
{
    return ORTC_API_OF(ortc_graph_api, g)->next(g, n);
}
static inline uint32_t ortc_graph_n_in(const ortc_graph *g)
{
    return ORTC_API_OF(ortc_graph_api, g)->n_in(g);
}
static inline uint32_t ortc_graph_n_out(const ortc_graph *g)
{
    return ORTC_API_OF(ortc_graph_api, g)->n_out(g);
}
static inline ortc_port ortc_graph_in(const ortc_graph *g, uint32_t i)
{
    ortc_port p;
    p.size = ORTC_SIZED(ortc_port);
    ORTC_API_OF(ortc_graph_api, g)->in(g, i, &p);
    return p;
}
static inline ortc_port ortc_graph_out(const ortc_graph *g, uint32_t i)
{
    ortc_port p;
    p.size = ORTC_SIZED(ortc_port);
    ORTC_API_OF(ortc_graph_api, g)->out(g, i, &p);
    return p;
}
/* ---- Shape functions ----------------------------------------------------------------------------------- */

typedef struct ortc_infer_api {
    uint32_t size;
    const ortc_node *(*node)(const ortc_infer *);
    void (*in)(const ortc_infer *, uint32_t port, ortc_port *out);
    /* The values of an integer input where they are known (constants, or shape arithmetic): pointer to *count
     * dims, some may be symbols or ORTC_DIM_UNKNOWN; NULL when nothing is known. */
    const ortc_dim *(*values)(ortc_infer *, uint32_t port, int64_t *count);
    /* Sets an output's element type and shape. rank -1: unknown. Allowed to be refined by later calls. With
     * type 0 the shape alone: for a sequence or optional (out_type) that of every tensor in it, where all
     * have the same. */
    ortc_status (*out)(ortc_infer *, uint32_t port, ortc_dtype, int32_t rank, const ortc_dim *dims);
    /* for what is not a tensor; copied */
    ortc_status (*out_type)(ortc_infer *, uint32_t port, const ortc_type *);
    ortc_status (*out_values)(ortc_infer *, uint32_t port, int64_t count, const ortc_dim *values);
    ortc_dim (*dim)(ortc_infer *, int32_t what, ortc_dim a, ortc_dim b); /* ORTC_DIM_* */
    ortc_status (*fail)(ortc_infer *, ortc_status, const char *fmt, va_list);
    /* Infers a subgraph attribute (control flow): inputs by position; NULL when not available. */
    ortc_status (*body)(ortc_infer *, const ortc_graph *, uint32_t n_in, const ortc_port *in, uint32_t n_out,
                        ortc_port *out);
} ortc_infer_api;

static inline const ortc_node *ortc_infer_node(const ortc_infer *c)
{
    return ORTC_API_OF(ortc_infer_api, c)->node(c);
}
static inline ortc_port ortc_infer_in(const ortc_infer *c, uint32_t i)
{
    ortc_port p;
    p.size = ORTC_SIZED(ortc_port);
    ORTC_API_OF(ortc_infer_api, c)->in(c, i, &p);
    return p;
}
static inline const ortc_dim *ortc_infer_values(ortc_infer *c, uint32_t i, int64_t *count)
{
    return ORTC_API_OF(ortc_infer_api, c)->values(c, i, count);
}
static inline ortc_status ortc_infer_out(ortc_infer *c, uint32_t i, ortc_dtype t, int32_t rank,
                                         const ortc_dim *dims)
{
    return ORTC_API_OF(ortc_infer_api, c)->out(c, i, t, rank, dims);
}
static inline ortc_status ortc_infer_out_type(ortc_infer *c, uint32_t i, const ortc_type *t)
{
    return ORTC_API_OF(ortc_infer_api, c)->out_type(c, i, t);
}
static inline ortc_status ortc_infer_out_values(ortc_infer *c, uint32_t i, int64_t count,
                                                const ortc_dim *values)
{
    return ORTC_API_OF(ortc_infer_api, c)->out_values(c, i, count, values);
}
static inline ortc_status ortc_infer_like(ortc_infer *c, uint32_t out, uint32_t in)
{
    ortc_port p = ortc_infer_in(c, in);
    if (p.type && p.type->kind != ORTC_KIND_TENSOR) {
        ortc_status s = ortc_infer_out_type(c, out, p.type);
        if (s != ORTC_OK) return s;
    }
    return ortc_infer_out(c, out, p.dtype, p.rank, p.dims);
}
static inline ortc_status ortc_infer_body(ortc_infer *c, const ortc_graph *g, uint32_t n_in,
                                          const ortc_port *in, uint32_t n_out, ortc_port *out)
{
    return ORTC_API_OF(ortc_infer_api, c)->body(c, g, n_in, in, n_out, out);
}
static inline ortc_dim ortc_dim_add(ortc_infer *c, ortc_dim a, ortc_dim b)
{
    return ORTC_API_OF(ortc_infer_api, c)->dim(c, ORTC_DIM_ADD, a, b);
}
static inline ortc_dim ortc_dim_sub(ortc_infer *c, ortc_dim a, ortc_dim b)
{
    return ORTC_API_OF(ortc_infer_api, c)->dim(c, ORTC_DIM_SUB, a, b);
}
static inline ortc_dim ortc_dim_mul(ortc_infer *c, ortc_dim a, ortc_dim b)
{
    return ORTC_API_OF(ortc_infer_api, c)->dim(c, ORTC_DIM_MUL, a, b);
}
static inline ortc_dim ortc_dim_div(ortc_infer *c, ortc_dim a, ortc_dim b)
{
    return ORTC_API_OF(ortc_infer_api, c)->dim(c, ORTC_DIM_DIV, a, b);
}
static inline ortc_dim ortc_dim_ceil_div(ortc_infer *c, ortc_dim a, ortc_dim b)
{
    return ORTC_API_OF(ortc_infer_api, c)->dim(c, ORTC_DIM_CEIL_DIV, a, b);
}
static inline ortc_dim ortc_dim_max(ortc_infer *c, ortc_dim a, ortc_dim b)
{
    return ORTC_API_OF(ortc_infer_api, c)->dim(c, ORTC_DIM_MAX, a, b);
}
static inline ortc_dim ortc_dim_min(ortc_infer *c, ortc_dim a, ortc_dim b)
{
    return ORTC_API_OF(ortc_infer_api, c)->dim(c, ORTC_DIM_MIN, a, b);
}
static inline ortc_dim ortc_dim_broadcast(ortc_infer *c, ortc_dim a, ortc_dim b)
{
    return ORTC_API_OF(ortc_infer_api, c)->dim(c, ORTC_DIM_BROADCAST, a, b);
}
static inline ortc_dim ortc_element_add(ortc_infer *c, ortc_dim a, ortc_dim b)
{
    return ORTC_API_OF(ortc_infer_api, c)->dim(c, ORTC_DIM_OF_ELEMENTS | ORTC_DIM_ADD, a, b);
}
static inline ortc_dim ortc_element_sub(ortc_infer *c, ortc_dim a, ortc_dim b)
{
    return ORTC_API_OF(ortc_infer_api, c)->dim(c, ORTC_DIM_OF_ELEMENTS | ORTC_DIM_SUB, a, b);
}
static inline ortc_dim ortc_element_mul(ortc_infer *c, ortc_dim a, ortc_dim b)
{
    return ORTC_API_OF(ortc_infer_api, c)->dim(c, ORTC_DIM_OF_ELEMENTS | ORTC_DIM_MUL, a, b);
}
static inline ortc_status ortc_infer_fail(ortc_infer *c, ortc_status s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    s = ORTC_API_OF(ortc_infer_api, c)->fail(c, s, fmt, args);
    va_end(args);
    return s;
}
/* ---- Lifting: an older version's node to the newest form ----------------------------------------------- */

typedef struct ortc_lift_api {
    uint32_t size;
    const ortc_node *(*node)(const ortc_lift *);
    int32_t (*version)(const ortc_lift *); /* the version the node was written in */
    void (*drop_attr)(ortc_lift *, const char *name);
    ortc_status (*set_int)(ortc_lift *, const char *name, int64_t value);
    ortc_status (*set_ints)(ortc_lift *, const char *name, const int64_t *values, size_t count);
    ortc_status (*set_float)(ortc_lift *, const char *name, float value);
    ortc_status (*set_string)(ortc_lift *, const char *name, const char *value);
    /* Makes a constant and connects it to an input port (ports between stay left out). */
    ortc_status (*const_in)(ortc_lift *, uint32_t port, ortc_dtype, int32_t rank, const int64_t *dims,
                            const void *data);
    ortc_status (*n_out)(ortc_lift *, uint32_t count); /* drops outputs that the newest form has not */
    /* Puts a node before input `in` or after output `out` of this one: op with one data input, `n_const`
     * constant int64 vectors as its further inputs. Used for forms that became something between two
     * others. */
    ortc_status (*wrap_in)(ortc_lift *, uint32_t port, const char *op, const int64_t *ints, size_t count);
    ortc_status (*wrap_out)(ortc_lift *, uint32_t port, const char *op, const int64_t *ints, size_t count);
    ortc_status (*rename)(ortc_lift *, const char *op); /* the operator's new name, same domain */
    ortc_status (*fail)(ortc_lift *, ortc_status, const char *fmt, va_list);
    ortc_status (*set_strings)(ortc_lift *, const char *name, const char *const *values, size_t count);
    /* an input becomes another, its old port is left out */
    ortc_status (*move_in)(ortc_lift *, uint32_t from, uint32_t to);
    /* ORTC_OP_COMPOSED */
    ortc_status (*write)(ortc_lift *, const char *fmt, va_list);
    void (*look)(ortc_lift *, const char *name, ortc_port *out);
    ortc_status (*name)(ortc_lift *, const char *name, ortc_dtype, int32_t rank, const int64_t *dims,
                        const void *data);
    ortc_status (*recast)(ortc_lift *, const char *name, const char *of, ortc_dtype, int32_t rank,
                          const int64_t *dims);
    ortc_status (*each)(ortc_lift *);
} ortc_lift_api;

static inline const ortc_node *ortc_lift_node(const ortc_lift *l)
{
    return ORTC_API_OF(ortc_lift_api, l)->node(l);
}
static inline int32_t ortc_lift_version(const ortc_lift *l)
{
    return ORTC_API_OF(ortc_lift_api, l)->version(l);
}
static inline void ortc_lift_drop_attr(ortc_lift *l, const char *name)
{
    ORTC_API_OF(ortc_lift_api, l)->drop_attr(l, name);
}
static inline ortc_status ortc_lift_set_int(ortc_lift *l, const char *name, int64_t v)
{
    return ORTC_API_OF(ortc_lift_api, l)->set_int(l, name, v);
}
static inline ortc_status ortc_lift_set_ints(ortc_lift *l, const char *name, const int64_t *v, size_t count)
{
    return ORTC_API_OF(ortc_lift_api, l)->set_ints(l, name, v, count);
}
static inline ortc_status ortc_lift_set_float(ortc_lift *l, const char *name, float v)
{
    return ORTC_API_OF(ortc_lift_api, l)->set_float(l, name, v);
}
static inline ortc_status ortc_lift_set_string(ortc_lift *l, const char *name, const char *v)
{
    return ORTC_API_OF(ortc_lift_api, l)->set_string(l, name, v);
}
static inline ortc_status ortc_lift_set_strings(ortc_lift *l, const char *name, const char *const *v,
                                                size_t count)
{
    return ORTC_API_OF(ortc_lift_api, l)->set_strings(l, name, v, count);
}
static inline ortc_status ortc_lift_const_in(ortc_lift *l, uint32_t port, ortc_dtype t, int32_t rank,
                                             const int64_t *dims, const void *data)
{
    return ORTC_API_OF(ortc_lift_api, l)->const_in(l, port, t, rank, dims, data);
}
static inline ortc_status ortc_lift_n_out(ortc_lift *l, uint32_t count)
{
    return ORTC_API_OF(ortc_lift_api, l)->n_out(l, count);
}
static inline ortc_status ortc_lift_wrap_in(ortc_lift *l, uint32_t port, const char *op, const int64_t *v,
                                            size_t count)
{
    return ORTC_API_OF(ortc_lift_api, l)->wrap_in(l, port, op, v, count);
}
static inline ortc_status ortc_lift_wrap_out(ortc_lift *l, uint32_t port, const char *op, const int64_t *v,
                                             size_t count)
{
    return ORTC_API_OF(ortc_lift_api, l)->wrap_out(l, port, op, v, count);
}
static inline ortc_status ortc_lift_move_in(ortc_lift *l, uint32_t from, uint32_t to)
{
    return ORTC_API_OF(ortc_lift_api, l)->move_in(l, from, to);
}
static inline ortc_status ortc_lift_rename(ortc_lift *l, const char *op)
{
    return ORTC_API_OF(ortc_lift_api, l)->rename(l, op);
}
static inline ortc_status ortc_lift_write(ortc_lift *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const ortc_status s = ORTC_API_OF(ortc_lift_api, l)->write(l, fmt, args);
    va_end(args);
    return s;
}
static inline ortc_port ortc_lift_look(ortc_lift *l, const char *name)
{
    ortc_port p = {ORTC_SIZED(ortc_port), 0, NULL, -1, 0, NULL, NULL, 0, 0};
    ORTC_API_OF(ortc_lift_api, l)->look(l, name, &p);
    return p;
}
static inline ortc_status ortc_lift_name(ortc_lift *l, const char *name, ortc_dtype t, int32_t rank,
                                         const int64_t *dims, const void *data)
{
    return ORTC_API_OF(ortc_lift_api, l)->name(l, name, t, rank, dims, data);
}
static inline ortc_status ortc_lift_recast(ortc_lift *l, const char *name, const char *of, ortc_dtype t,
                                           int32_t rank, const int64_t *dims)
{
    return ORTC_API_OF(ortc_lift_api, l)->recast(l, name, of, t, rank, dims);
}
static inline ortc_status ortc_lift_each(ortc_lift *l) { return ORTC_API_OF(ortc_lift_api, l)->each(l); }
static inline ortc_status ortc_lift_fail(ortc_lift *l, ortc_status s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    s = ORTC_API_OF(ortc_lift_api, l)->fail(l, s, fmt, args);
    va_end(args);
    return s;
}
/* ---- Views: a tensor as a kernel sees it --------------------------------------------------------------- */

static inline int ortc_view_present(const ortc_view *v) { return v->dtype || (v->flags & ORTC_VIEW_VALUE); }
static inline int64_t ortc_view_count(const ortc_view *v)
{
    uint64_t n = 1; /* no sign: the product may pass any bound before a 0 comes */
    for (int32_t i = 0; i < v->rank; i++) n *= (uint64_t)v->dims[i];
    return (int64_t)n;
}
static inline ortc_layout ortc_layout_blocked(int32_t axis, int32_t block)
{
    return (ortc_layout)axis << 32 | (ortc_layout)block << 40;
}
static inline ortc_layout ortc_layout_last(int32_t rank, int32_t axis)
{
    ortc_layout l = 0;
    for (int32_t i = axis; i < rank; i++) l |= (ortc_layout)((i + 1 < rank ? i + 1 : axis) ^ i) << 4 * i;
    return l;
}
static inline int32_t ortc_layout_axis_at(ortc_layout l, int32_t place)
{
    return place < 8 ? (int32_t)(l >> 4 * place & 15) ^ place : place;
}
static inline int32_t ortc_layout_axis(ortc_layout l) { return (int32_t)(l >> 32 & 15); }
static inline int64_t ortc_layout_block(ortc_layout l) { return (int64_t)(l >> 40); }
static inline int64_t ortc_layout_at(ortc_layout l, int32_t rank, const int64_t *dims, const int64_t *index)
{
    const int64_t block = ortc_layout_block(l);
    const int32_t blocked = block ? ortc_layout_axis(l) : -1;
    int64_t at = 0;
    for (int32_t i = 0; i < rank; i++) {
        const int32_t a = ortc_layout_axis_at(l, i);
        at = a == blocked ? at * ((dims[a] + block - 1) / block) + index[a] / block : at * dims[a] + index[a];
    }
    return block ? at * block + index[blocked] % block : at;
}
static inline int64_t ortc_view_stored(const ortc_view *v)
{
    const int64_t block = ortc_layout_block(v->layout), n = ortc_view_count(v);
    const int64_t extent = block && n ? v->dims[ortc_layout_axis(v->layout)] : 1;
    return block && n ? n / extent * ((extent + block - 1) / block * block) : n;
}
/* ---- Running ------------------------------------------------------------------------------------------- */

struct ortc_call_api {
    uint32_t size;
    ortc_status (*resize)(ortc_call *, uint32_t out, int32_t rank, const int64_t *dims);
    ortc_status (*parallel)(ortc_call *, int64_t n, int64_t grain, ortc_parallel_fn, void *arg);
    ortc_status (*poll)(ortc_call *);
    ortc_status (*fail)(ortc_call *, ortc_status, const char *fmt, va_list);
    ortc_value *(*value)(ortc_call *, int32_t port);
    uint64_t (*seed)(ortc_call *);
    void (*mark)(ortc_call *, const char *phase);
    ortc_status (*give)(ortc_call *, uint32_t out, ortc_value *);
    ortc_status (*body)(ortc_call *, const char *name, uint32_t n_in, ortc_value *const *in, uint32_t n_out,
                        ortc_value **out);
    ortc_status (*make)(ortc_call *, ortc_dtype, int32_t rank, const int64_t *dims, ortc_value **out);
    ortc_status (*look)(ortc_call *, const ortc_value *, ortc_view *out);
    void (*drop)(ortc_call *, ortc_value *);
    ortc_status (*keep)(ortc_call *, ortc_value *, ortc_value **out);
    ortc_status (*strings)(ortc_call *, int32_t rank, const int64_t *dims, ortc_value **out);
    ortc_status (*append)(ortc_call *, ortc_value *strings, const char *bytes, size_t n);
    ortc_status (*sequence)(ortc_call *, const ortc_type *element, int64_t n, ortc_value *const *elements,
                            ortc_value **out);
    ortc_status (*map)(ortc_call *, ortc_value *keys, ortc_value *values, ortc_value **out);
    ortc_status (*optional)(ortc_call *, const ortc_type *element, ortc_value *element_or_null,
                            ortc_value **out);
    int64_t (*count)(ortc_call *, const ortc_value *);
    ortc_value *(*element)(ortc_call *, const ortc_value *, int64_t i);
    const ortc_type *(*type)(ortc_call *, const ortc_value *);
    void (*done_with)(ortc_call *, const void *data, size_t bytes); /* older hosts have none */
};

static inline ortc_status ortc_parallel(ortc_call *c, int64_t n, int64_t grain, ortc_parallel_fn body,
                                        void *arg)
{
    return c->api->parallel(c, n, grain, body, arg);
}
static inline ortc_status ortc_poll(ortc_call *c) { return c->api->poll(c); }
static inline ortc_status ortc_call_resize(ortc_call *c, uint32_t out, int32_t rank, const int64_t *dims)
{
    return c->api->resize(c, out, rank, dims);
}
static inline ortc_value *ortc_call_value(ortc_call *c, int32_t port) { return c->api->value(c, port); }
static inline ortc_status ortc_call_give(ortc_call *c, uint32_t out, ortc_value *v)
{
    return c->api->give(c, out, v);
}
static inline ortc_status ortc_call_make(ortc_call *c, ortc_dtype t, int32_t rank, const int64_t *dims,
                                         ortc_value **out)
{
    return c->api->make(c, t, rank, dims, out);
}
static inline ortc_status ortc_call_look(ortc_call *c, const ortc_value *v, ortc_view *out)
{
    return c->api->look(c, v, out);
}
static inline void ortc_call_drop(ortc_call *c, ortc_value *v) { c->api->drop(c, v); }
static inline ortc_status ortc_call_keep(ortc_call *c, ortc_value *v, ortc_value **out)
{
    return c->api->keep(c, v, out);
}
static inline ortc_status ortc_call_strings(ortc_call *c, int32_t rank, const int64_t *dims, ortc_value **out)
{
    return c->api->strings(c, rank, dims, out);
}
static inline ortc_status ortc_call_append(ortc_call *c, ortc_value *strings, const char *bytes, size_t n)
{
    return c->api->append(c, strings, bytes, n);
}
static inline ortc_status ortc_call_sequence(ortc_call *c, const ortc_type *element, int64_t n,
                                             ortc_value *const *elements, ortc_value **out)
{
    return c->api->sequence(c, element, n, elements, out);
}
static inline ortc_status ortc_call_map(ortc_call *c, ortc_value *keys, ortc_value *values, ortc_value **out)
{
    return c->api->map(c, keys, values, out);
}
static inline ortc_status ortc_call_optional(ortc_call *c, const ortc_type *element,
                                             ortc_value *element_or_null, ortc_value **out)
{
    return c->api->optional(c, element, element_or_null, out);
}
static inline int64_t ortc_call_count(ortc_call *c, const ortc_value *v) { return c->api->count(c, v); }
static inline ortc_value *ortc_call_element(ortc_call *c, const ortc_value *v, int64_t i)
{
    return c->api->element(c, v, i);
}
static inline const ortc_type *ortc_call_type(ortc_call *c, const ortc_value *v)
{
    return c->api->type(c, v);
}
static inline ortc_status ortc_call_body(ortc_call *c, const char *name, uint32_t n_in, ortc_value *const *in,
                                         uint32_t n_out, ortc_value **out)
{
    return c->api->body(c, name, n_in, in, n_out, out);
}
static inline void ortc_call_done_with(ortc_call *c, const void *data, size_t bytes)
{
    if (c->api->size > offsetof(ortc_call_api, done_with) && c->api->done_with)
        c->api->done_with(c, data, bytes);
}
static inline void ortc_call_mark(ortc_call *c, const char *phase) { c->api->mark(c, phase); }
static inline uint64_t ortc_call_seed(ortc_call *c) { return c->api->seed(c); }
static inline ortc_status ortc_call_fail(ortc_call *c, ortc_status s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    s = c->api->fail(c, s, fmt, args);
    va_end(args);
    return s;
}
/* ---- Planning ------------------------------------------------------------------------------------------ */

struct ortc_plan_api {
    uint32_t size;
    void (*workspace)(ortc_plan *, size_t bytes, size_t bytes_per_worker);
    void (*may_reuse)(ortc_plan *, uint32_t out, uint32_t in);
    void (*view)(ortc_plan *, uint32_t out, uint32_t in, int64_t byte_offset);
    ortc_status (*pack)(ortc_plan *, uint32_t in, const ortc_packing *, const void *param, size_t param_bytes,
                        const ortc_packed **out);
    void (*cost)(ortc_plan *, double flops, double bytes);
    ortc_status (*fail)(ortc_plan *, ortc_status, const char *fmt, va_list);
    const ortc_device *(*device)(const ortc_plan *);
    void (*part)(ortc_plan *, uint32_t out, uint32_t in, int64_t byte_offset);
};

static inline void ortc_plan_workspace(ortc_plan *p, size_t bytes, size_t bytes_per_worker)
{
    p->api->workspace(p, bytes, bytes_per_worker);
}
static inline void ortc_plan_may_reuse(ortc_plan *p, uint32_t out, uint32_t in)
{
    p->api->may_reuse(p, out, in);
}
static inline void ortc_plan_view(ortc_plan *p, uint32_t out, uint32_t in, int64_t byte_offset)
{
    p->api->view(p, out, in, byte_offset);
}
static inline void ortc_plan_part(ortc_plan *p, uint32_t out, uint32_t in, int64_t byte_offset)
{
    if (p->api->size > offsetof(ortc_plan_api, part) && p->api->part) p->api->part(p, out, in, byte_offset);
}
static inline ortc_status ortc_plan_pack(ortc_plan *p, uint32_t in, const ortc_packing *how,
                                         const void *param, size_t param_bytes, const ortc_packed **out)
{
    return p->api->pack(p, in, how, param, param_bytes, out);
}
static inline void ortc_plan_cost(ortc_plan *p, double flops, double bytes) { p->api->cost(p, flops, bytes); }
static inline ortc_status ortc_plan_fail(ortc_plan *p, ortc_status s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    s = p->api->fail(p, s, fmt, args);
    va_end(args);
    return s;
}
/* ---- Preparing and supporting -------------------------------------------------------------------------- */

typedef struct ortc_prep_api {
    uint32_t size;
    const ortc_device *(*device)(const ortc_prep *);
    ortc_status (*fail)(ortc_prep *, ortc_status, const char *fmt, va_list);
} ortc_prep_api;

static inline ortc_status ortc_prep_fail(ortc_prep *p, ortc_status s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    s = ORTC_API_OF(ortc_prep_api, p)->fail(p, s, fmt, args);
    va_end(args);
    return s;
}
typedef struct ortc_why_api {
    uint32_t size;
    void (*because)(ortc_why *, const char *fmt, va_list);
} ortc_why_api;

static inline ortc_status ortc_no(ortc_why *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ORTC_API_OF(ortc_why_api, w)->because(w, fmt, args);
    va_end(args);
    return ORTC_UNSUPPORTED;
}
/* ---- Plugins ------------------------------------------------------------------------------------------- */

typedef struct ortc_host_api {
    uint32_t size;
    int32_t abi; /* the host's ORTC_ABI */
    void (*log)(const ortc_host *, int32_t level, const char *text);
    /* Tables are not copied: they stay valid for the life of the process (plugins are never unloaded). */
    ortc_status (*add_family)(const ortc_host *, const ortc_family *);
    ortc_status (*add_provider)(const ortc_host *, const struct ortc_provider *);
    void *(*alloc)(const ortc_host *, size_t bytes); /* 64-byte aligned; NULL when there is none */
    void (*free)(const ortc_host *, void *);
    /* For providers that run another's kernels in a way of their own: every entry registered for it so far;
     * and the kernel that it would run a node with, NULL: none. */
    ortc_status (*kernels)(const ortc_host *, const char *provider,
                           ortc_status (*each)(void *arg, const ortc_kernel_entry *), void *arg);
    const ortc_kernel *(*kernel_for)(const ortc_host *, const char *provider, const ortc_node *);
} ortc_host_api;

static inline ortc_status ortc_host_add_family(const ortc_host *h, const ortc_family *f)
{
    return ORTC_API_OF(ortc_host_api, h)->add_family(h, f);
}
static inline void *ortc_host_alloc(const ortc_host *h, size_t bytes)
{
    return ORTC_API_OF(ortc_host_api, h)->alloc(h, bytes);
}
static inline void ortc_host_free(const ortc_host *h, void *p) { ORTC_API_OF(ortc_host_api, h)->free(h, p); }
static inline ortc_status ortc_host_kernels(const ortc_host *h, const char *provider,
                                            ortc_status (*each)(void *arg, const ortc_kernel_entry *),
                                            void *arg)
{
    return ORTC_API_OF(ortc_host_api, h)->kernels(h, provider, each, arg);
}
static inline const ortc_kernel *ortc_host_kernel_for(const ortc_host *h, const char *provider,
                                                      const ortc_node *n)
{
    return ORTC_API_OF(ortc_host_api, h)->kernel_for(h, provider, n);
}
static inline ortc_status ortc_host_add_provider(const ortc_host *h, const struct ortc_provider *p)
{
    return ORTC_API_OF(ortc_host_api, h)->add_provider(h, p);
}

/* ---- What the macros make ------------------------------------------------------------------------------ */

#define ORTC_OP(domain, name, since, form, older, inputs, outputs, attributes, types, infer, lift, flags) \
    { \
        ORTC_SIZED(ortc_op), flags, domain, name, since, form, older, inputs, outputs, attributes, types, \
            infer, lift, NULL \
    }
#define ORTC_POINTWISE(domain, name, since, form, older, inputs, outputs, attributes, types, infer, lift, \
                       expand) \
    { \
        ORTC_SIZED(ortc_op), 0, domain, name, since, form, older, inputs, outputs, attributes, types, infer, \
            lift, expand \
    }
#define ORTC_COMPOSED(domain, name, since, older, inputs, outputs, attributes, types, lift) \
    ORTC_OP(domain, name, since, 1, older, inputs, outputs, attributes, types, NULL, lift, ORTC_OP_COMPOSED)
#define ORTC_UNPAREN(...) __VA_ARGS__
#define ORTC_KERNEL(op, since_min, since_max, masks, kernel) \
    { \
        "", op, since_min, since_max, {ORTC_UNPAREN masks}, kernel \
    }
#define ORTC_KERNEL_IN(domain, op, since_min, since_max, masks, kernel) \
    { \
        domain, op, since_min, since_max, {ORTC_UNPAREN masks}, kernel \
    }
#ifdef __cplusplus
#define ORTC_CONST extern const
#else
#define ORTC_CONST const
#endif
#define ORTC_KERNELS(provider, family, ...) \
    static const ortc_kernel_entry ortc_entries_##provider##_##family[] = {__VA_ARGS__}; \
    extern const ortc_kernel_table ortc_kernels_##provider##_##family; \
    ORTC_CONST ortc_kernel_table ortc_kernels_##provider##_##family = { \
        ORTC_SIZED(ortc_kernel_table), \
        ORTC_SIZED(ortc_kernel_entry), \
        (uint32_t)(sizeof ortc_entries_##provider##_##family / sizeof(ortc_kernel_entry)), \
        0, \
        #provider, \
        ortc_entries_##provider##_##family}
#define ORTC_FAMILY(family, ops, ...) \
    static const ortc_kernel_table *const ortc_tables_##family[] = {__VA_ARGS__}; \
    extern const ortc_family ortc_family_##family; \
    ORTC_CONST ortc_family ortc_family_##family = {ORTC_SIZED(ortc_family), \
                                                   ORTC_SIZED(ortc_op), \
                                                   #family, \
                                                   ops, \
                                                   (uint32_t)(sizeof(ops) / sizeof(ortc_op)), \
                                                   (uint32_t)(sizeof ortc_tables_##family / sizeof(void *)), \
                                                   ortc_tables_##family}

enum {
    ORTC_SANITIZER_NONE = 0,
    ORTC_SANITIZER_ADDRESS = 1,
    ORTC_SANITIZER_THREAD = 2,
    ORTC_SANITIZER_MEMORY = 3
};
#if defined(__SANITIZE_ADDRESS__)
#define ORTC_SANITIZER ORTC_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define ORTC_SANITIZER ORTC_SANITIZER_THREAD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ORTC_SANITIZER ORTC_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define ORTC_SANITIZER ORTC_SANITIZER_THREAD
#elif __has_feature(memory_sanitizer)
#define ORTC_SANITIZER ORTC_SANITIZER_MEMORY
#endif
#endif
#ifndef ORTC_SANITIZER
#define ORTC_SANITIZER ORTC_SANITIZER_NONE
#endif
#ifdef __cplusplus
#define ORTC_ENTRY extern "C" ORTC_EXPORT
#else
#define ORTC_ENTRY ORTC_EXPORT
#endif
#define ORTC_PLUGIN(name, version, init) \
    ORTC_ENTRY const ortc_plugin_info *ortc_plugin(void); \
    ORTC_ENTRY const ortc_plugin_info *ortc_plugin(void) \
    { \
        static const ortc_plugin_info info = { \
            ORTC_SIZED(ortc_plugin_info), ORTC_ABI, ORTC_SANITIZER, 0, name, version, init}; \
        return &info; \
    }

#endif
