/* graph/ir/graph.h: the graph: nodes, edges (the values that nodes exchange), constants, bodies.
 *
 * Everything of a graph lives in its arena and dies with it; nodes and edges that passes remove stay
 * allocated. Nodes form a doubly linked list in an order of execution. An edge has one producer (a node, or
 * none: a graph input or a constant) and a list of uses. Weights are not copied: a constant points into the
 * mapped file, into a shared blob or into the arena. A subgraph (body of a control node, or the meaning of a
 * fused node) is a graph of its own whose outer values have become explicit inputs: `captures` says which
 * trailing inputs of the node feed them. Passes edit through the functions below;
 * ortc_graph_verify checks the invariants.
 */
#ifndef ORTC_GRAPH_H
#define ORTC_GRAPH_H

#include "dims.h"
#include "ortc/op.h"
#include "base/base.h"
#include "base/value.h"

typedef struct ortc_edge ortc_edge;
typedef struct ortc_constant ortc_constant;

/* A constant's bytes: shared by graphs, immutable, counted. The unit that packed forms are keyed by. */
struct ortc_constant {
    atomic_int references;
    ortc_dtype dtype;
    int32_t rank;
    const int64_t *dims; /* in the same allocation */
    int64_t count;
    size_t bytes;               /* of data; strings: of the block */
    const void *data;           /* dense, little-endian, any alignment; NULL where there is `of` */
    struct ortc_constant *of;   /* bf16: f32 that it is rounded from as it is packed; counted; NULL: none */
    bool mapped;                /* data lies in a file mapping: its pages may be dropped after packing */
    void (*release)(void *arg); /* of data; NULL: lives as long as the model's mappings */
    void *release_arg;
    uint64_t id; /* unique in the process */
};
/* Takes nothing over on failure. dims are copied. */
ortc_status ortc_constant_create(ortc_dtype, int32_t rank, const int64_t *dims, const void *data,
                                 size_t bytes, void (*release)(void *), void *arg, ortc_constant **out,
                                 ortc_error *);
/* The bytes of a constant, which has them in memory, as a tensor of another type and shape. */
ortc_status ortc_constant_seen_as(ortc_constant *of, ortc_dtype, int32_t rank, const int64_t *dims,
                                  ortc_constant **out, ortc_error *error);
/* A constant of f32, rounded to bf16, whose bytes nobody holds: only packed forms are made of it. */
ortc_status ortc_constant_rounded(ortc_constant *of, ortc_constant **out, ortc_error *error);
/* The same, written: count elements. The largest finite numbers stay finite. */
void ortc_constant_round(const ortc_constant *of, uint16_t *out);
ortc_constant *ortc_constant_retain(ortc_constant *);
void ortc_constant_release(ortc_constant *);

typedef struct ortc_use {
    ortc_node *node; /* NULL: an output of the graph */
    uint32_t port;   /* the node's input, or the graph's output index */
    struct ortc_use *next, *prev;
} ortc_use;

struct ortc_edge {
    const char *name; /* unique in its graph; "" never */
    /* the ONNX name whose value this equals; NULL: an intermediate without a counterpart */
    const char *origin;
    const ortc_type *type;  /* NULL: not known */
    int32_t rank;           /* -1: not known (or not a tensor) */
    uint32_t id;            /* index in the graph's edges */
    const ortc_dim *dims;   /* rank of them; NULL when rank <= 0 */
    const ortc_dim *values; /* small integer tensors: what is known of their elements; NULL: nothing */
    int64_t n_values;
    ortc_node *producer; /* NULL: graph input, constant */
    uint32_t producer_port;
    int32_t input; /* index among the graph's inputs; -1: not one */
    /* one reference held by the graph; NULL: none. With input >= 0: its default, overridable */
    ortc_constant *constant;
    ortc_use *uses;
    ortc_graph *graph;
    uint32_t same; /* 1 + id of the edge that replaced it and has the same value; 0: none */
    /* of group.c, while it makes a body; with the graph's mark they are this group's */
    uint32_t mark, twin_mark;
    ortc_edge *twin;
};
/* A constant for passes and kernels: has bytes that no caller can replace. */
static inline bool ortc_edge_is_const(const ortc_edge *e) { return e->constant && e->input < 0; }

typedef struct ortc_attribute {
    const char *name;
    ortc_attr value;
} ortc_attribute;

struct ortc_node {
    const ortc_node_api *api;
    const ortc_op *op;         /* NULL only while importing */
    const char *domain, *type; /* "" and "Conv": also where op is NULL */
    const char *name;          /* the file's, or "Conv_12" */
    int32_t version;           /* bound since_version */
    uint32_t id;               /* unique in its graph */
    ortc_edge **in;            /* n_in of them; NULL: left out */
    ortc_edge **out;           /* n_out of them, but one at least; NULL: not wanted */
    ortc_use **uses;           /* n_in of them: what each input's edge lists of it */
    uint32_t n_in, n_out;
    uint32_t n_attrs;
    ortc_attribute *attrs;
    /* the last n_captures inputs are outer values of subgraphs, shared by all of them in order */
    uint32_t n_captures;
    const struct ortc_pointwise *epilogue; /* on its own result (op.h); NULL: none */
    /* raised, fused or claimed: what it means, inputs and outputs by position (body.h) */
    ortc_graph *body;
    const struct ortc_pointwise
        *program;      /* of a group of pointwise nodes (pointwise.h); NULL: made when asked for */
    const char *fused; /* what was fused, "BatchNormalization Relu"; NULL: nothing */
    uint32_t mark;     /* of group.c: inside the group that has the graph's mark */
    bool misfit;       /* in a branch: its shapes do not fit, so that it fails if it is ever run */
    ortc_graph *graph;
    ortc_node *prev, *next;
};

typedef struct ortc_graph_input {
    ortc_edge *edge;
    const char *name, *doc;
} ortc_graph_input;

struct ortc_graph {
    const ortc_graph_api *api; /* what providers read it through */
    ortc_arena arena;
    const char *name;
    ortc_dims *dims;    /* shared with subgraphs; owned by the root */
    ortc_graph *parent; /* NULL: a root */
    /* outputs may repeat an edge, or be an input or a constant directly */
    ortc_graph_input *inputs, *outputs;
    uint32_t n_inputs, n_outputs;
    uint32_t n_nodes, next_node;
    uint32_t mark; /* of the group that was looked at last */
    ortc_node *first, *last;
    ORTC_ARRAY(ortc_edge *) edges;     /* all ever made */
    ORTC_ARRAY(ortc_graph *) children; /* bodies and subgraphs, freed with this one */
};

extern const ortc_node_api ortc_graph_node_api;
extern const ortc_graph_api ortc_graph_graph_api;

ortc_graph *ortc_graph_create(ortc_graph *parent); /* NULL when memory is short */
void ortc_graph_destroy(ortc_graph *);
/* A copy of a root graph with its subgraphs. Constants are shared, symbols keep their ids; names, types and
 * attributes' data are borrowed from the original, which must outlive the copy. */
ortc_status ortc_graph_clone(const ortc_graph *, ortc_graph **out, ortc_error *);
/* The same of a subgraph or body, as a child of `parent`, which shares dims with the original or has copies
 * of them. NULL when memory is short. */
ortc_graph *ortc_graph_clone_child(const ortc_graph *, ortc_graph *parent, ortc_error *);

/* ---- Building and editing. All give NULL or false when memory is short; the graph stays consistent. ---- */

ortc_edge *ortc_edge_create(ortc_graph *, const char *name); /* a fresh unique name when NULL */
/* Makes it a node of that operator, in its newest version. */
bool ortc_node_set_op(ortc_node *, const ortc_op *);
/* A node at the end of the list, with n_in inputs and n_out outputs, all left out. */
ortc_node *ortc_node_create(ortc_graph *, const ortc_op *, const char *name, uint32_t n_in, uint32_t n_out);
void ortc_node_move_before(ortc_node *, ortc_node *before);
bool ortc_node_set_in(ortc_node *, uint32_t port, ortc_edge *); /* keeps uses; grows the ports if need be */
bool ortc_node_set_out(ortc_node *, uint32_t port, ortc_edge *);
/* copies deeply; subgraphs are taken */
bool ortc_node_set_attr(ortc_node *, const char *name, const ortc_attr *);
bool ortc_node_copy_attrs(ortc_node *, const ortc_node *from); /* all of them; a set one is replaced */
void ortc_node_drop_attr(ortc_node *, const char *name);
/* Unlinks a node whose outputs nobody uses. */
void ortc_node_remove(ortc_node *);
bool ortc_graph_add_input(ortc_graph *, const char *name, ortc_edge *);
bool ortc_graph_add_output(ortc_graph *, const char *name, ortc_edge *);
/* Everyone who reads `from` (graph outputs included) reads `to` instead; `to` keeps its own name. */
bool ortc_edge_replace(ortc_edge *from, ortc_edge *to);
/* What is known of an edge, as kernels and liftings see it; NULL: a port left out. */
void ortc_edge_port(const ortc_edge *, ortc_port *out);
/* copies dims */
bool ortc_edge_set_shape(ortc_edge *, const ortc_type *, int32_t rank, const ortc_dim *dims);
/* Makes the edge a constant; takes the reference. type and dims follow from it. */
bool ortc_edge_set_constant(ortc_edge *, ortc_constant *);
/* takes the reference, also on failure */
ortc_edge *ortc_graph_constant(ortc_graph *, const char *name, ortc_constant *);
/* A constant of data from ortc_data_alloc, which it takes, also on failure, or of a copy. NULL in,
 * NULL out. */
ortc_edge *ortc_graph_constant_take(ortc_graph *, ortc_dtype, int32_t rank, const int64_t *dims, void *data,
                                    size_t bytes, ortc_error *);
ortc_edge *ortc_graph_constant_copy(ortc_graph *, ortc_dtype, int32_t rank, const int64_t *dims,
                                    const void *data, size_t bytes, ortc_error *);
uint32_t ortc_edge_n_uses(const ortc_edge *);

static inline ortc_edge *ortc_node_in_edge(const ortc_node *n, uint32_t i)
{
    return i < n->n_in ? n->in[i] : NULL;
}

/* Takes nodes of the graph as one: builds their body, asks `accept` whether it pleases, then puts one node of
 * ortc_op_group in their place. UNSUPPORTED when they cannot run as one, or what `accept` says: the graph is
 * as before then. */
extern const ortc_op ortc_op_group;
ortc_status ortc_graph_group(ortc_graph *, const ortc_node *const *nodes, uint32_t n, const char *name,
                             ortc_status (*accept)(void *arg, const ortc_graph *body), void *arg,
                             ortc_node **out, ortc_error *);

/* Checks every invariant above; INTERNAL with the first that is broken. For tests and after passes in debug
 * builds. */
ortc_status ortc_graph_verify(const ortc_graph *, ortc_error *);

/* ---- The table of operators (registered families; runtime/registry fills it) --------------------------- */

/* The operator, NULL: not known. "" and "ai.onnx" are the same domain. Any thread. */
const ortc_op *ortc_op_find(const char *domain, const char *name);
/* Every operator, for listings. */
void ortc_op_each(void (*each)(void *arg, const ortc_op *), void *arg);
/* Registers; tables are borrowed for ever. LIMIT when the table is full, INVALID_ARGUMENT for what cannot be
 * an operator, and for a broken schema where it is to be parsed at once. */
ortc_status ortc_op_add(const ortc_op *, const char *family, bool at_once, ortc_error *);
/* The family that brought it, which is the folder of its story; for listings. */
const char *ortc_op_family(const ortc_op *);
/* The since_version that a node of `opset` binds to: the newest of op's versions <= opset; 0: none. */
int32_t ortc_op_bind(const ortc_op *, int64_t opset);

/* Sees to it that the operator's schema is parsed: INVALID_ARGUMENT where it is broken, OUT_OF_MEMORY. Any
 * thread. */
ortc_status ortc_op_ready(const ortc_op *, ortc_error *);

/* A parsed schema (schema.c); parsed on demand, cached for the process. */
typedef struct ortc_formal {
    const char *name;
    int32_t constraint; /* index into `masks`; -1: `mask` holds the types */
    uint32_t flags;     /* ORTC_FORMAL_* */
    uint64_t mask;
} ortc_formal;
enum {
    ORTC_FORMAL_OPTIONAL = 1,
    ORTC_FORMAL_VARIADIC = 2, /* the last: any number of these */
    ORTC_FORMAL_AT_LEAST_ONE = 4,
    ORTC_FORMAL_HETEROGENEOUS = 8,
    ORTC_FORMAL_DECIDES = 16 /* its values decide the shape of an output */
};
typedef struct ortc_attr_decl {
    const char *name;
    int32_t kind; /* ORTC_ATTR_* */
    bool required;
    ortc_attr otherwise; /* kind 0: no default */
} ortc_attr_decl;
typedef struct ortc_schema {
    uint32_t n_in, n_out, n_attrs, n_types;
    ortc_formal *in, *out;
    ortc_attr_decl *attrs;
    const char **type_names;
    uint64_t *masks; /* bit d: tensor of dtype d; ORTC_MASK_* for the rest */
} ortc_schema;
#define ORTC_MASK_SEQUENCE (UINT64_C(1) << 40)
#define ORTC_MASK_MAP (UINT64_C(1) << 41)
#define ORTC_MASK_OPTIONAL (UINT64_C(1) << 42)
/* NULL: it cannot be had, as ortc_op_ready says; of a node's operator it can. */
const ortc_schema *ortc_op_schema(const ortc_op *);
/* The formal of a port; variadic ones repeat. NULL: the operator has no such port. */
const ortc_formal *ortc_schema_in(const ortc_schema *, uint32_t port);
const ortc_formal *ortc_schema_out(const ortc_schema *, uint32_t port);
/* Checks a node against its schema: counts, types, required and unknown attributes and their kinds. */
ortc_status ortc_node_check(const ortc_node *, ortc_error *);

/* ---- Inference ----------------------------------------------------------------------------------------- */

/* Shapes and small values of every edge, in order, with symbols. Facts of the file stay unless they
 * contradict. */
ortc_status ortc_graph_infer(ortc_graph *, ortc_error *);

#endif
