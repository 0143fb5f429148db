/* ortc/op.h: operators and kernels, for those who add them, here or in a plugin.
 *
 * An operator (ortc_op) is a name with a schema: inputs, outputs, attributes, allowed types, a shape
 * function, and a lifting that brings nodes of older versions to the newest form. A kernel (ortc_kernel)
 * computes an operator on one provider. Both are const tables beside the code they describe; a family
 * (ortc_family) lists them, and a plugin's entry point hands families to the host. Nothing here needs to be
 * linked with: the functions are inline and reach the host through tables that it passes in (op_calls.h,
 * which this header includes; there is no need to read it).
 *
 *   at load    supports(node, device, why)   may this kernel run this node, for every shape that it admits?
 *              prepare(node, prep) -> state  read attributes once; const afterwards, shared by threads
 *   per key    plan(state, plan) -> pstate   types, shapes, deciding values: algorithm, workspace, packs
 *   per run    run(state, pstate, call)      the work
 *
 * Only `run` must be there. What changes while running lives in the workspace, in the call's slot, in outputs
 * or in tied state; never in state or pstate, which threads share.
 *
 * Shapes: dims of a view are always the ONNX shape, whatever the layout in memory. While a model is loaded
 * dims may be symbols (see ortc_dim); while planning and running they are numbers. Structs that cross the
 * border begin with their size and only grow at the end. C11 and C++17.
 */
#ifndef ORTC_OP_H
#define ORTC_OP_H

#include <stdarg.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a struct or a meaning here or in provider.h changes incompatibly; structs growing at their end
 * do not raise it. Host and plugin must have the same. */
#define ORTC_ABI 2

/* The newest version of the standard operators known when a kernel was compiled. As an upper bound in a
 * kernel entry it says: "and newer revisions up to what I was compiled against". */
#define ORTC_NEWEST 28

#define ORTC_SIZED(type) ((uint32_t)sizeof(type))

typedef struct ortc_node ortc_node;     /* one node of a graph, read-only */
typedef struct ortc_graph ortc_graph;   /* read-only; only libortc edits graphs */
typedef struct ortc_device ortc_device; /* a provider's open device, opaque to everyone else */
typedef struct ortc_infer ortc_infer;   /* what a shape function reads and writes */
typedef struct ortc_lift ortc_lift;     /* what a lifting reads and writes */
typedef struct ortc_why ortc_why;       /* where a "no" writes its reason */
typedef struct ortc_prep ortc_prep;
typedef struct ortc_plan ortc_plan;
typedef struct ortc_call ortc_call;
typedef struct ortc_host ortc_host;
typedef struct ortc_packed ortc_packed;
typedef struct ortc_call_api ortc_call_api; /* op_calls.h */
typedef struct ortc_plan_api ortc_plan_api;
struct ortc_pw_builder; /* program.h */
struct ortc_pointwise;

/* ---- Dims ---------------------------------------------------------------------------------------------- */

/* A number (an extent, or an element of a small integer tensor, which may be negative) or the id of an
 * interned expression over the model's symbols: equal expressions have equal ids, so `a == b` is the test for
 * "provably equal". Combined only through ortc_dim_*. */
typedef int64_t ortc_dim;
#define ORTC_DIM_NUMBERS (-(INT64_C(1) << 62)) /* numbers from here on, ids and ORTC_DIM_UNKNOWN below */
/* Whether it is a number, and no symbol or expression over symbols. */
static inline int ortc_dim_is_number(ortc_dim d);

/* "The shape function cannot say": at load a fresh symbol takes its place, at plan time the extent is known
 * only when the kernel has run (ORTC_VIEW_LATE). */
#define ORTC_DIM_UNKNOWN INT64_MIN

enum {
    ORTC_DIM_ADD = 1,
    ORTC_DIM_SUB = 2,
    ORTC_DIM_MUL = 3,
    ORTC_DIM_DIV = 4,      /* towards minus infinity; the divisor must not be 0 */
    ORTC_DIM_CEIL_DIV = 5, /* towards plus infinity */
    ORTC_DIM_MAX = 6,
    ORTC_DIM_MIN = 7,
    /* of two extents that numpy's rule joins: a if b == 1, else b; fails if they do not fit */
    ORTC_DIM_BROADCAST = 8,
    /* a flag: elements of a tensor, which wrap around where extents must not (ortc_element_*) */
    ORTC_DIM_OF_ELEMENTS = 256
};

/* ---- Ports: what is known of a node's input or output -------------------------------------------------- */
enum {
    ORTC_PORT_CONST = 1, /* a constant of the model; `data` may be read */
    ORTC_PORT_GRAPH = 2  /* an input or output of the graph itself */
};

typedef struct ortc_port {
    uint32_t size;
    uint32_t flags;        /* ORTC_PORT_* */
    const ortc_type *type; /* NULL: left out, or not known */
    /* tensor: number of dims; sequence, optional: what every tensor in it has; -1: not known */
    int32_t rank;
    ortc_dtype dtype;     /* tensor: element type; 0: left out, not known or not a tensor */
    const ortc_dim *dims; /* rank extents or symbols; NULL when rank <= 0 */
    /* a constant's elements, dense, little-endian, any alignment; NULL otherwise. Strings: an ortc_strings
     * block */
    const void *data;
    /* the value's number: ports of a graph with the same number are connected; 0: left out */
    uint32_t edge;
    uint32_t reserved;
} ortc_port;

/* Strings of a tensor: one immutable block. String i is bytes[offsets[i]] .. bytes[offsets[i + 1]], not
 * terminated, offsets[0] == 0. `bytes` follows the n + 1 offsets directly. */
typedef struct ortc_strings {
    int64_t count;      /* number of elements */
    int64_t offsets[1]; /* count + 1 of them */
} ortc_strings;
static inline const char *ortc_string_at(const ortc_strings *s, int64_t i, int64_t *out_length);

/* ---- Nodes --------------------------------------------------------------------------------------------- */
enum {
    ORTC_ATTR_FLOAT = 1, /* AttributeProto.AttributeType, same numbers */
    ORTC_ATTR_INT = 2,
    ORTC_ATTR_STRING = 3,
    ORTC_ATTR_TENSOR = 4,
    ORTC_ATTR_GRAPH = 5,
    ORTC_ATTR_FLOATS = 6,
    ORTC_ATTR_INTS = 7,
    ORTC_ATTR_STRINGS = 8,
    ORTC_ATTR_TENSORS = 9,
    ORTC_ATTR_GRAPHS = 10,
    ORTC_ATTR_SPARSE_TENSOR = 11,
    ORTC_ATTR_SPARSE_TENSORS = 12,
    ORTC_ATTR_TYPE_PROTO = 13,
    ORTC_ATTR_TYPE_PROTOS = 14
};

/* An attribute's value; pointers borrow from the node. */
typedef struct ortc_attr {
    uint32_t size;
    int32_t kind; /* ORTC_ATTR_*; 0: neither given nor defaulted */
    int64_t i;    /* INT */
    float f;      /* FLOAT */
    uint32_t reserved;
    size_t count; /* elements of a list; length of a STRING in bytes */
    union {
        const char *s;                   /* STRING, also terminated */
        const int64_t *ints;             /* INTS */
        const float *floats;             /* FLOATS */
        const char *const *strings;      /* STRINGS, terminated */
        const ortc_port *tensors;        /* TENSOR (count 1), TENSORS */
        const ortc_graph *const *graphs; /* GRAPH (count 1), GRAPHS */
        const ortc_type *type;           /* TYPE_PROTO */
    } u;
} ortc_attr;

/* What a node says of itself. Everything returned is borrowed and lives as long as the node. Any thread. */
static inline const char *ortc_node_op(const ortc_node *n);
/* "" for the standard's. */
static inline const char *ortc_node_domain(const ortc_node *n);
/* For messages; never NULL. */
static inline const char *ortc_node_name(const ortc_node *n);
/* The since_version of the schema that the node is bound to, after lifting. */
static inline int32_t ortc_node_version(const ortc_node *n);
/* Without what a control node's subgraphs capture. */
static inline uint32_t ortc_node_n_in(const ortc_node *n);
static inline uint32_t ortc_node_n_out(const ortc_node *n);
/* A port. type NULL: an input left out, an output not wanted; so are ports beyond the node's count. */
static inline ortc_port ortc_node_in(const ortc_node *n, uint32_t i);
static inline ortc_port ortc_node_out(const ortc_node *n, uint32_t i);
/* An attribute as given, else the schema's default, else kind 0. Those of a known kind are read by the
 * functions below it, which give `otherwise` where there is neither. */
static inline ortc_attr ortc_node_attr(const ortc_node *n, const char *name);
static inline int64_t ortc_node_int(const ortc_node *n, const char *name, int64_t otherwise);
static inline float ortc_node_float(const ortc_node *n, const char *name, float otherwise);
static inline const char *ortc_node_string(const ortc_node *n, const char *name, const char *otherwise);
/* NULL and *out_count 0 when the attribute is left out. */
static inline const int64_t *ortc_node_ints(const ortc_node *n, const char *name, size_t *out_count);
static inline const float *ortc_node_floats(const ortc_node *n, const char *name, size_t *out_count);
/* What happens to each element of the operator's own result before it is stored: a pointwise program
 * (program.h); NULL: nothing. Proposed only to kernels with ORTC_KERNEL_EPILOGUE: `supports` decides, and
 * after a no is asked about less of what follows the node. A node that carries one has a body of the same
 * meaning.
 *
 *   input 0      the element as the operator sums it up, its own bias and attributes applied: f32 where the
 *                result would be f16 or bf16 (nothing is rounded in between), else of the result's type
 *   input i > 0  the node's port i, which lies behind all ports of the operator's schema; broadcast to the
 *                result's shape as in numpy. Its dims say what it is (ortc_pw_lies in program.h): an
 *                element, a vector along the channels, a tensor of the result's shape. A constant of one
 *                element is in the program, and has no port
 *   STORE        of the type of the node's output, which need not be the operator's own: a Cast or a
 *                quantisation may be the end of it
 *
 * The output has the shape of the operator's own result. */
static inline const struct ortc_pointwise *ortc_node_epilogue(const ortc_node *n);
/* The nodes that a raised, fused or claimed node stands for; inputs and outputs by position. NULL: an
 * ordinary node. */
static inline const ortc_graph *ortc_node_body(const ortc_node *n);
/* What the node does to each element (program.h), its inputs numbered as its ports: of an operator that
 * expands, and of a group of them (ortc.Group). NULL: it is no pointwise operator, or not for these types.
 * A provider's kernels for ortc.Group are asked about every node with a program, behind its kernels for the
 * node's operator. */
static inline const struct ortc_pointwise *ortc_node_program(const ortc_node *n);

/* A graph: the whole, for providers that claim nodes; the body of a group, for those that compile them.
 *
 * In an order of execution: for (n = ortc_graph_next(g, NULL); n; n = ortc_graph_next(g, n))
 */
static inline const ortc_node *ortc_graph_next(const ortc_graph *g, const ortc_node *n);
/* Formal inputs and outputs. Ports that carry the same `edge` are connected. */
static inline uint32_t ortc_graph_n_in(const ortc_graph *g);
static inline uint32_t ortc_graph_n_out(const ortc_graph *g);
static inline ortc_port ortc_graph_in(const ortc_graph *g, uint32_t i);
static inline ortc_port ortc_graph_out(const ortc_graph *g, uint32_t i);

/* ---- Shape functions ----------------------------------------------------------------------------------- */

/* Written once per operator, run at load (dims may be symbols) and per plan (dims are numbers). Inputs may be
 * incomplete at load: a port with rank -1 means that nothing is known. A function that cannot say leaves
 * the output alone, or uses ORTC_DIM_UNKNOWN for a dim; it fails (ortc_infer_fail) only on what can never
 * be right. Small integer tensors (rank 0 or 1, at most 64 elements) carry their values along as dims.
 * Errors: what a setter returns is to be returned on (ORTC_OUT_OF_MEMORY, ORTC_SHAPE_MISMATCH against what
 * is known). */
static inline const ortc_node *ortc_infer_node(const ortc_infer *c);
static inline ortc_port ortc_infer_in(const ortc_infer *c, uint32_t i);
/* The values of an integer input where they are known (constants, or shape arithmetic): *count dims, some of
 * which may be symbols or ORTC_DIM_UNKNOWN. NULL when nothing is known. Borrowed for the call. */
static inline const ortc_dim *ortc_infer_values(ortc_infer *c, uint32_t i, int64_t *count);
/* Sets an output's element type and shape, copied; rank -1: unknown. Later calls may refine it. With type 0
 * the shape alone: for a sequence or optional (ortc_infer_out_type) that of every tensor in it, where all
 * have the same. */
static inline ortc_status ortc_infer_out(ortc_infer *c, uint32_t i, ortc_dtype t, int32_t rank,
                                         const ortc_dim *dims);
/* For what is not a tensor; copied. */
static inline ortc_status ortc_infer_out_type(ortc_infer *c, uint32_t i, const ortc_type *t);
/* The elements of a small integer output, copied. */
static inline ortc_status ortc_infer_out_values(ortc_infer *c, uint32_t i, int64_t count,
                                                const ortc_dim *values);
/* Output 0 .. like input `in`: the shape function of most elementwise operators. */
static inline ortc_status ortc_infer_like(ortc_infer *c, uint32_t out, uint32_t in);
/* What is known of a subgraph's outputs (type NULL: nothing); for control operators. */
static inline ortc_status ortc_infer_body(ortc_infer *c, const ortc_graph *g, uint32_t n_in,
                                          const ortc_port *in, uint32_t n_out, ortc_port *out);
/* Arithmetic on dims (ORTC_DIM_* says how each rounds). UNKNOWN in, UNKNOWN out. Where extents do not
 * broadcast, or do not fit into a dim, the node's inference fails. */
static inline ortc_dim ortc_dim_add(ortc_infer *c, ortc_dim a, ortc_dim b);
static inline ortc_dim ortc_dim_sub(ortc_infer *c, ortc_dim a, ortc_dim b);
static inline ortc_dim ortc_dim_mul(ortc_infer *c, ortc_dim a, ortc_dim b);
static inline ortc_dim ortc_dim_div(ortc_infer *c, ortc_dim a, ortc_dim b);
static inline ortc_dim ortc_dim_ceil_div(ortc_infer *c, ortc_dim a, ortc_dim b);
static inline ortc_dim ortc_dim_max(ortc_infer *c, ortc_dim a, ortc_dim b);
static inline ortc_dim ortc_dim_min(ortc_infer *c, ortc_dim a, ortc_dim b);
static inline ortc_dim ortc_dim_broadcast(ortc_infer *c, ortc_dim a, ortc_dim b);
/* The same of elements, for ortc_infer_out_values: ORTC_DIM_UNKNOWN where they do not fit into a dim, for
 * they wrap around. */
static inline ortc_dim ortc_element_add(ortc_infer *c, ortc_dim a, ortc_dim b);
static inline ortc_dim ortc_element_sub(ortc_infer *c, ortc_dim a, ortc_dim b);
static inline ortc_dim ortc_element_mul(ortc_infer *c, ortc_dim a, ortc_dim b);
/* Returns its status, so that `return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "...")` reads well. The node's
 * name and operator are put before the text. */
ORTC_PRINTF(3, 4)
static inline ortc_status ortc_infer_fail(ortc_infer *c, ortc_status s, const char *fmt, ...);

/* ---- Lifting: an older version's node to the newest form ----------------------------------------------- */

/* Edits one node while its model is loaded. A lifting turns attributes into inputs, renames, or replaces the
 * node by several; it is called with the version that the node is written in, for versions below the
 * operator's `form`. */
static inline const ortc_node *ortc_lift_node(const ortc_lift *l);
/* The version that the node was written in. */
static inline int32_t ortc_lift_version(const ortc_lift *l);
/* Attributes: given values are copied. */
static inline void ortc_lift_drop_attr(ortc_lift *l, const char *name);
static inline ortc_status ortc_lift_set_int(ortc_lift *l, const char *name, int64_t v);
static inline ortc_status ortc_lift_set_ints(ortc_lift *l, const char *name, const int64_t *v, size_t count);
static inline ortc_status ortc_lift_set_float(ortc_lift *l, const char *name, float v);
static inline ortc_status ortc_lift_set_string(ortc_lift *l, const char *name, const char *v);
static inline ortc_status ortc_lift_set_strings(ortc_lift *l, const char *name, const char *const *v,
                                                size_t count);
/* Makes a constant and connects it to an input port; ports between stay left out. */
static inline ortc_status ortc_lift_const_in(ortc_lift *l, uint32_t port, ortc_dtype t, int32_t rank,
                                             const int64_t *dims, const void *data);
/* Drops outputs that the newest form has not. */
static inline ortc_status ortc_lift_n_out(ortc_lift *l, uint32_t count);
/* Puts a node before an input or after an output of this one: `op` with one data input and, where `count` is
 * not 0, a vector of int64 as its second. For forms that became something between two others. */
static inline ortc_status ortc_lift_wrap_in(ortc_lift *l, uint32_t port, const char *op, const int64_t *v,
                                            size_t count);
static inline ortc_status ortc_lift_wrap_out(ortc_lift *l, uint32_t port, const char *op, const int64_t *v,
                                             size_t count);
/* An input becomes another; its old port is left out. */
static inline ortc_status ortc_lift_move_in(ortc_lift *l, uint32_t from, uint32_t to);
/* The operator's new name, same domain. */
static inline ortc_status ortc_lift_rename(ortc_lift *l, const char *op);
/* ORTC_OP_COMPOSED, or a form that the newest has not: nodes of the standard's operators in the place of
 * this one, a line for each:
 *
 *   ortc_lift_write(l, "sum      = Add(input, skip)\n"
 *                      "mean     = ReduceMean(sum, [-1])\n"
 *                      "y, _, sd = LayerNormalization(sum, gamma, beta) axis=-1 epsilon=%g", epsilon)
 *
 * A name is an input or output of this operator, as its schema has it (of variadic ones "inputs[2]"), or the
 * result of a line before. An argument is a name, "_" (left out), or a constant: "2" and "[1,-1]" of int64,
 * with the type's name or a value of that type behind a colon "0.5:x", "[1,2]:f32". An input that was left
 * out stays left out. Attributes are numbers, lists, 'texts' (below 64 characters) or "@x", the type of x;
 * &name is this node's own attribute, if it has one, a subgraph with all that this node's subgraphs capture.
 * $name(..) calls the subgraph that is attribute `name`.
 * Every output that is wanted must be made once. */
ORTC_PRINTF(2, 3) static inline ortc_status ortc_lift_write(ortc_lift *l, const char *fmt, ...);
/* What is known of a name; type NULL: an input that was left out. */
static inline ortc_port ortc_lift_look(ortc_lift *l, const char *name);
/* Names a constant, whose elements are copied; names the bytes of the constant `of` as another type. */
static inline ortc_status ortc_lift_name(ortc_lift *l, const char *name, ortc_dtype t, int32_t rank,
                                         const int64_t *dims, const void *data);
static inline ortc_status ortc_lift_recast(ortc_lift *l, const char *name, const char *of, ortc_dtype t,
                                           int32_t rank, const int64_t *dims);
/* For forms that did the same to every sample: a Scan along axis 0 of all inputs takes the node's place, and
 * its outputs have what every turn gave along axis 0. From here on the lifting is that of the node in the
 * Scan's body, whose inputs have lost axis 0; inputs that were left out still are. SHAPE_MISMATCH for an
 * input without axes. */
static inline ortc_status ortc_lift_each(ortc_lift *l);
/* As ortc_infer_fail. */
ORTC_PRINTF(3, 4) static inline ortc_status ortc_lift_fail(ortc_lift *l, ortc_status s, const char *fmt, ...);

/* ---- Operators ----------------------------------------------------------------------------------------- */
enum {
    ORTC_OP_RANDOM = 1,  /* never folded, never shared between equal nodes */
    ORTC_OP_CONTROL = 2, /* runs subgraphs */
    ORTC_OP_STATE = 4,   /* changes something besides its outputs */
    /* its arithmetic grows faster than its bytes (MatMul, Conv): worth the way to a device */
    ORTC_OP_HEAVY = 8,
    /* nothing but others together: `lift` writes them (ortc_lift_write) in the place of every node, of every
     * version; there is no shape function, and no kernel is asked for. With a shape function (and one output)
     * the node stays, with them as its body, for providers that have a kernel for it */
    ORTC_OP_COMPOSED = 16,
    /* its kernels come as a module of ortc's own, libortc_FAMILY.so, when the first model has one */
    ORTC_OP_MODULE = 32,
    /* of its first input it reads what others name (Gather): rows of a table in a file */
    ORTC_OP_PICKS = 64
};

/* A schema, in its newest form, as three short strings:
 *
 *   inputs, outputs  "X:T W:T B:T? starts:I!"    name:constraint: one of `types`, or a type's name
 *                    ?  may be left out    *  any number of these, the last one    +  at least one
 *                    ~  (after * or +) each may have a type of its own
 *                    !  its values decide the shape of an output: read on the host, part of a plan's key
 *   attributes       "axis:i=-1 pads:is? auto_pad:s=NOTSET body:g!"    kinds: i int, f float, s string,
 *                    t tensor, g graph, p type; followed by an s: a list. =default, ? may be left out,
 *                    ! required
 *   types            "T=f16,f32,f64,bf16 I=i32,i64"    element types by their short names; groups: float
 *                    (f16 f32 f64 bf16), int (i8..i64), uint (u8..u64), f8 (the four), num (float int uint),
 *                    all (num, bool, string, c64, c128, f8...: every type); what is not a tensor: seq,
 *                    seq(...), map, opt
 *
 * The order of the constraints in `types` is the order of the masks in a kernel entry. */
typedef struct ortc_op {
    uint32_t size;
    uint32_t flags;     /* ORTC_OP_* */
    const char *domain; /* "" for the standard's */
    const char *name;
    int32_t since; /* newest since_version; what nodes are bound to after lifting */
    /* oldest version whose nodes are valid in the newest form; below it `lift` is called */
    int32_t form;
    const char *older; /* the other since_versions, newest first: "13 6 1"; "" for none */
    const char *inputs, *outputs, *attributes, *types;
    ortc_status (*infer)(ortc_infer *);
    ortc_status (*lift)(ortc_lift *); /* NULL: versions below `form` are refused */
    /* Pointwise operators: adds what the node does to one element, with the values of its inputs, and returns
     * the result's value, of the register type of the output; NONE: not for these types. Those of the node's
     * ports are known. NULL: no pointwise operator. */
    int32_t (*expand)(const ortc_node *, struct ortc_pw_builder *);
} ortc_op;

/* A line of a family's table of operators, its arguments in this order:
 * ORTC_OP(domain, name, since, form, older, inputs, outputs, attributes, types, infer, lift, flags)
 * ORTC_POINTWISE(the same, without flags, expand) is one with a program (program.h).
 * ORTC_COMPOSED(domain, name, since, older, inputs, outputs, attributes, types, lift) is one that others make
 * up. */

/* ---- Views: a tensor as a kernel sees it --------------------------------------------------------------- */

/* How a tensor lies in memory, of which its dims say nothing: the order in which axes are walked, the last
 * one fastest, and one axis that may be cut into blocks, which then are innermost of all. A number: 0 is the
 * plain layout, row-major in the order of dims, and equal layouts are equal numbers.
 *
 *   bits 4i .. 4i + 3  (i < 8) the axis at place i, xor i    32 .. 35  the blocked axis
 *   bits 40 .. 55      elements of a block; 0: no blocks
 *
 * Texts have a letter for each axis in the order of memory, the blocked one large, and then the block:
 * "aBcd16b" is also known as NCHW16c, "acdb" as NHWC. What fills up the last block of an axis is zero:
 * whoever writes a blocked value writes zeros there. Elements are of whole bytes. */
typedef uint64_t ortc_layout;
#define ORTC_PLAIN ((ortc_layout)0)
#define ORTC_ANY_LAYOUT (~(ortc_layout)0) /* in a question: whichever it likes */
/* Plain but for one axis, whose elements lie in blocks of so many behind all others: aBcd16b is (1, 16). */
static inline ortc_layout ortc_layout_blocked(int32_t axis, int32_t block);
/* Of tensors of that rank, up to 8: the axis moved behind all others. */
static inline ortc_layout ortc_layout_last(int32_t rank, int32_t axis);
static inline int32_t ortc_layout_axis_at(ortc_layout l, int32_t place);
static inline int32_t ortc_layout_axis(ortc_layout l);  /* the blocked one */
static inline int64_t ortc_layout_block(ortc_layout l); /* 0: no blocks */
/* Where the element of that index is, in elements from the first. */
static inline int64_t ortc_layout_at(ortc_layout l, int32_t rank, const int64_t *dims, const int64_t *index);

enum {
    ORTC_VIEW_CONST = 1, /* a constant of the model: the same bytes in every run */
    ORTC_VIEW_HOST = 2,  /* data is a host address */
    ORTC_VIEW_LATE = 4,  /* planning: some extents are known only when the producer has run */
    /* a sequence, map or optional: read by ortc_call_value, set by ortc_call_give; dtype is 0 */
    ORTC_VIEW_VALUE = 16
};

typedef struct ortc_view {
    /* planning: the value where it is known on the host (any alignment), else NULL; running: at least
     * aligned to its elements, but for constants that plan has packed, and those of ORTC_KERNEL_UNALIGNED.
     * Strings: ortc_strings */
    void *data;
    ortc_dtype dtype; /* 0: an input left out, an output not wanted, or not a tensor */
    uint32_t flags;   /* ORTC_VIEW_* */
    int32_t rank;
    int32_t reserved;
    const int64_t *dims; /* always the ONNX shape. Planning: -1 where ORTC_VIEW_LATE */
    ortc_layout layout;  /* plain, but for kernels whose offer has said otherwise */
} ortc_view;

/* Whether an input is given, an output wanted: a tensor, or a value of another kind. */
static inline int ortc_view_present(const ortc_view *v);

/* Elements. Extents beside one of 0 may be of any size. */
static inline int64_t ortc_view_count(const ortc_view *v);
/* Elements in memory: with what fills up a last block. */
static inline int64_t ortc_view_stored(const ortc_view *v);

/* ---- Running ------------------------------------------------------------------------------------------- */

typedef void (*ortc_parallel_fn)(void *arg, int64_t begin, int64_t end, void *scratch);

struct ortc_call {
    const ortc_call_api *api;
    uint32_t size, n_in, n_out, reserved;
    /* n_in of them, without a control node's captures. in[i].dtype == 0: optional input left out */
    const ortc_view *in;
    ortc_view *out; /* out[i].dtype == 0: output not wanted. Extents are set, data is writable */
    /* as asked for in plan, 256-byte aligned, on the kernel's device; contents undefined */
    void *workspace;
    /* one cell per (context, plan, step), NULL at first, for what holds addresses (descriptors, tensor
     * maps); freed by release_slot when an address moves */
    void **slot;
    void *queue; /* the provider's own stream object; NULL on the host */
    /* devices: a word that a kernel ORs a code into, read at the sync that is made anyway; NULL on the
     * host, where kernels call ortc_call_fail */
    uint32_t *fault;
};

/* codes of the fault word */
enum {
    ORTC_FAULT_INDEX = 1, /* an index from data lies outside its axis (and was clamped) */
    ORTC_FAULT_VALUE = 2  /* another value from data is not allowed; what was computed with it is undefined */
};

/* Splits 0 .. n into chunks of `grain` and runs `body` on them, on the run's threads, this one included.
 * Chunks depend on n and grain only, never on the number of threads. `scratch` is the worker's own part of
 * the workspace (bytes_per_worker in plan). Between chunks cancel and deadline are polled: chunks of up to a
 * millisecond please. Returns when all are done, ORTC_CANCELLED or ORTC_DEADLINE when they were cut short:
 * then just return it. */
static inline ortc_status ortc_parallel(ortc_call *c, int64_t n, int64_t grain, ortc_parallel_fn body,
                                        void *arg);
/* For long serial loops: ORTC_OK, or the reason to stop. */
static inline ortc_status ortc_poll(ortc_call *c);
/* ORTC_KERNEL_LATE_OUT: sets the extents of an output that the shape function could not know, and its
 * data. */
static inline ortc_status ortc_call_resize(ortc_call *c, uint32_t out, int32_t rank, const int64_t *dims);
/* An input as a value, borrowed for the call; NULL: left out. */
static inline ortc_value *ortc_call_value(ortc_call *c, int32_t port);
/* The value is the output; takes the reference, also on failure. For outputs with late extents
 * (ORTC_KERNEL_LATE_OUT), for strings, whose shape must be the planned one unless it is late, and for
 * sequences, maps and optionals. An output of another kind that was planned with a fixed shape gets its
 * bytes. */
static inline ortc_status ortc_call_give(ortc_call *c, uint32_t out, ortc_value *v);
/* A new tensor, contents undefined; the tensor of a value, writable while nobody else has it; a reference
 * given up. */
static inline ortc_status ortc_call_make(ortc_call *c, ortc_dtype t, int32_t rank, const int64_t *dims,
                                         ortc_value **out);
static inline ortc_status ortc_call_look(ortc_call *c, const ortc_value *v, ortc_view *out);
static inline void ortc_call_drop(ortc_call *c, ortc_value *v);

/* Values: sequences, maps, optionals, and tensors as their elements. Immutable once they are given or put
 * into another; every `out` is a reference for the caller, to give on (ortc_call_give) or to drop. Making one
 * keeps its elements: without a copy where that is safe.
 *
 *   ortc_value *v = ortc_call_value(c, 0);                  a sequence that came in: borrowed
 *   for (int64_t i = 0; i < ortc_call_count(c, v); i++)
 *       ortc_call_look(c, ortc_call_element(c, v, i), &view);
 */

/* A reference that may outlive the call, to a value from ortc_call_value or ortc_call_element: the value
 * itself, or a copy of what lies in memory that the run or the caller will use again. */
static inline ortc_status ortc_call_keep(ortc_call *c, ortc_value *v, ortc_value **out);
/* A tensor of strings in the making: as many ortc_call_append as it has elements, in row-major order, then it
 * is whole, and can be looked at, given, and put into other values. Bytes are copied. */
static inline ortc_status ortc_call_strings(ortc_call *c, int32_t rank, const int64_t *dims,
                                            ortc_value **out);
static inline ortc_status ortc_call_append(ortc_call *c, ortc_value *strings, const char *bytes, size_t n);
/* A sequence of n elements of one type; a map of keys (integers or strings, rank 1) to as many values (a
 * tensor, an element for each key, or a sequence); an optional that holds a value or none. Types are
 * copied. */
static inline ortc_status ortc_call_sequence(ortc_call *c, const ortc_type *element, int64_t n,
                                             ortc_value *const *elements, ortc_value **out);
static inline ortc_status ortc_call_map(ortc_call *c, ortc_value *keys, ortc_value *values, ortc_value **out);
static inline ortc_status ortc_call_optional(ortc_call *c, const ortc_type *element,
                                             ortc_value *element_or_null, ortc_value **out);
/* Elements of a tensor or sequence, pairs of a map, 0 or 1 of an optional. */
static inline int64_t ortc_call_count(ortc_call *c, const ortc_value *v);
/* Element i of a sequence, 0 of an optional; of a map 0 its keys, 1 its values. Borrowed; NULL: there is
 * none. */
static inline ortc_value *ortc_call_element(ortc_call *c, const ortc_value *v, int64_t i);
static inline const ortc_type *ortc_call_type(ortc_call *c, const ortc_value *v);

/* ORTC_OP_CONTROL: runs the subgraph that is the node's attribute, on `in` for its formal inputs; what it
 * captures of the graph around it comes by itself. out: n_out references, for the caller to give on or to
 * release. */
static inline ortc_status ortc_call_body(ortc_call *c, const char *name, uint32_t n_in, ortc_value *const *in,
                                         uint32_t n_out, ortc_value **out);
/* In `fill`: these bytes of the source are not read again. Where they are of a file, its pages go back now:
 * of a large constant in parts, one after the other, not all are there beside the packed form. */
static inline void ortc_call_done_with(ortc_call *c, const void *data, size_t bytes);
/* For profiles: what follows, up to the next mark or the end, is this phase. The name must outlive the run;
 * NULL: none. */
static inline void ortc_call_mark(ortc_call *c, const char *phase);
/* The seed of this node in this run: the same bits for the same run seed. */
static inline uint64_t ortc_call_seed(ortc_call *c);
ORTC_PRINTF(3, 4) static inline ortc_status ortc_call_fail(ortc_call *c, ortc_status s, const char *fmt, ...);

/* ---- Planning ------------------------------------------------------------------------------------------ */

/* How a packed form of a constant is made. The model owns the result, keyed by (constant, device, id, param),
 * shared by nodes, plans and sessions. `fill` may use ortc_parallel and ortc_poll of the call it is given;
 * the source is a dense host view of any alignment. */
/* Of a bf16 constant `src` may be the f32 that it is rounded from, and runs read the packed form alone: then
 * the constant itself need not exist. */
#define ORTC_PACKING_ROUNDS 1u
/* `plan` does not read the form, whose data may be NULL then: runs alone do. So in a first run it can be made
 * where its step begins, in memory that other steps' forms have, too. */
#define ORTC_PACKING_PASSES 2u
/* In such a run, where nobody has the form yet, none is made: ortc_plan_pack gives NULL, and the run makes
 * of the constant, at any alignment, what it needs, part by part. */
#define ORTC_PACKING_LEFT 4u
typedef struct ortc_packing {
    uint32_t size;
    const char *id;                                           /* "cpu.gemm.b": format and version */
    size_t (*bytes)(const ortc_view *src, const void *param); /* 0: cannot (overflow) */
    ortc_status (*fill)(void *dst, const ortc_view *src, const void *param, ortc_call *);
    uint32_t flags; /* ORTC_PACKING_*; since this version, older writers have none */
} ortc_packing;

struct ortc_plan {
    const ortc_plan_api *api;
    /* threads: how many a run may have at most, 0: not known; for what is quick on one and not on several.
     * Results have the same bits whatever it says */
    uint32_t size, n_in, n_out, threads;
    const ortc_view *in;
    /* extents from the operator's shape function; ORTC_VIEW_LATE where it could not say */
    const ortc_view *out;
};

/* Bytes of workspace for the call, and for each worker of ortc_parallel. */
static inline void ortc_plan_workspace(ortc_plan *p, size_t bytes, size_t bytes_per_worker);
/* Output may be written over the input, if the planner finds that nobody else needs it. Same bytes. */
static inline void ortc_plan_may_reuse(ortc_plan *p, uint32_t out, uint32_t in);
/* The output is a part of the input's memory: no step is made. */
static inline void ortc_plan_view(ortc_plan *p, uint32_t out, uint32_t in, int64_t byte_offset);
/* The input is a part of the output, as it lies, from that byte on, beside those of other inputs: where the
 * planner can, it is made there, and the kernel finds its data there and has nothing to copy; else, and with
 * libraries that know of no parts, elsewhere. Layouts are the same. */
static inline void ortc_plan_part(ortc_plan *p, uint32_t out, uint32_t in, int64_t byte_offset);
/* A packed form of constant input `in`; *out lives as long as the plan (NULL: ORTC_PACKING_LEFT). `param` is
 * copied, compared bytewise. */
static inline ortc_status ortc_plan_pack(ortc_plan *p, uint32_t in, const ortc_packing *how,
                                         const void *param, size_t param_bytes, const ortc_packed **out);
/* For cost models and `ortc info`: floating-point operations and bytes moved by one run. */
static inline void ortc_plan_cost(ortc_plan *p, double flops, double bytes);
ORTC_PRINTF(3, 4) static inline ortc_status ortc_plan_fail(ortc_plan *p, ortc_status s, const char *fmt, ...);
struct ortc_packed {
    const void *data; /* 256-byte aligned, in the device's memory */
    size_t bytes;
};

/* ---- Preparing and supporting -------------------------------------------------------------------------- */

/* Fails `prepare` with a text, before which the node's name and operator are put; gives the status. */
ORTC_PRINTF(3, 4) static inline ortc_status ortc_prep_fail(ortc_prep *p, ortc_status s, const char *fmt, ...);

/* `return ortc_no(why, "dilated pooling is not done here")`: ORTC_UNSUPPORTED, with the reason kept to be
 * shown. */
ORTC_PRINTF(2, 3) static inline ortc_status ortc_no(ortc_why *w, const char *fmt, ...);

/* ---- Choosing between kernels -------------------------------------------------------------------------- */

/* What a kernel is asked about one key: the ports as `plan` sees them, before anything is packed. */
enum { ORTC_ASK_NO_WINOGRAD = 1 /* ORTC_SESSION_NO_WINOGRAD */ };
typedef struct ortc_question {
    uint32_t size, n_in, n_out;
    uint32_t flags; /* ORTC_ASK_*: what the caller does without */
    const ortc_view *in, *out;
    const ortc_device *device;
    /* plain. ORTC_KERNEL_LAYOUTS are asked again: with ORTC_ANY_LAYOUT (what would they like best?), and with
     * every layout that some kernel around would like (would they go along?) */
    ortc_layout layout;
} ortc_question;

/* What it offers. */
typedef struct ortc_offer {
    uint32_t size, n_in, n_out;
    /* bit i: output 0 may be written over input i, if the planner finds that nobody else needs it */
    uint32_t reuse;
    const char *name; /* of the way that it would go, static: "conv.columns"; NULL: the kernel's name */
    /* What a run would take, in clocks of one core (of a device: its own), over all of its work: flops and
     * bytes over their rates. Compared between the candidates of a node, with those of other layouts, and
     * with the cost of reordering. Threads do not count: results are the same bits on any number of them. */
    double clocks;
    /* How each port is to lie in memory: n_in and n_out of them, plain when the kernel is asked. Ports that
     * are not whole tensors of the device (shapes on the host, late extents) stay plain. */
    ortc_layout *in, *out;
    /* Of the packed forms of constants that `plan` would ask for: equal numbers for equal forms; 0: none. A
     * constant has one form that it was given when the session was made, for the extents that it expects, and
     * one of the last candidate; offers with others are not taken. */
    uint64_t form;
} ortc_offer;

/* ---- Kernels ------------------------------------------------------------------------------------------- */
enum {
    ORTC_KERNEL_LATE_OUT = 4,   /* calls ortc_call_resize; in host memory only */
    ORTC_KERNEL_NO_CAPTURE = 8, /* must not run inside a captured graph */
    /* where it may reuse an input it writes only what is new, the rest stays: tied state in place */
    ORTC_KERNEL_STATE = 16,
    ORTC_KERNEL_VALUES = 32,   /* has ports that are not tensors; in host memory only */
    ORTC_KERNEL_EPILOGUE = 64, /* may be proposed nodes with an epilogue (ortc_node_epilogue) */
    ORTC_KERNEL_LAYOUTS = 256, /* `choose` knows layouts other than the plain one */
    /* rounds f32 operands to bf16, since its device was asked to: what lies between such products may be kept
     * as bf16 */
    ORTC_KERNEL_ROUNDS = 512,
    /* reads constants at any alignment, where they lie in the model's file: no copy is made for it */
    ORTC_KERNEL_UNALIGNED = 1024,
    ORTC_KERNEL_FAULTS = 128 /* on a device: may set the call's fault word */
};

/* A kernel: one way to compute an operator. A const struct that lives as long as the process; only `run` must
 * be there.
 *
 *   supports  UNSUPPORTED through ortc_no(why, ...) when it cannot run this node for every shape that the
 *             node admits; then the
 *             next entry is asked. Called at load, on one thread; ports of the node may have symbols for
 *             dims. No side effects.
 *   prepare   reads the attributes into a state of its own, which is const from then on and shared by
 *             threads. What it fails
 *             with fails the session: ORTC_OUT_OF_MEMORY, or ORTC_INVALID_MODEL for attributes that can
 *             never be right.
 *   plan      once per key, with numbers for dims: algorithm, workspace, views, packed constants. pstate is
 *             const from then
 *             on and shared by threads. May not decline what `supports` accepted.
 *   run       the work, on any thread, several at a time with calls of their own. Writes every byte of every
 *             wanted output.
 *             At most 64 KiB of stack. On failure: ortc_call_fail, and the outputs are undefined.
 *
 * Owner: the kernel makes state, pstate and slot; libortc releases each exactly once, after its last run.
 * Kernels with the same `prepare` and `release` that a node may choose from have one state together. */
typedef struct ortc_kernel {
    uint32_t size, flags;
    const char *name; /* "softmax.last_axis": for info, profiles, tuning */
    /* bit i: port i is in host memory, even on a device; bit 31: and all that follow */
    uint32_t host_in, host_out;
    ortc_status (*supports)(const ortc_node *, const ortc_device *, ortc_why *); /* NULL: yes */
    ortc_status (*prepare)(const ortc_node *, ortc_prep *, void **state);        /* NULL: stateless */
    ortc_status (*plan)(const void *state, ortc_plan *, void **pstate);          /* NULL: nothing to say */
    ortc_status (*run)(const void *state, const void *pstate, ortc_call *);
    void (*release_slot)(void *slot);
    void (*release_plan)(const void *state, void *pstate); /* NULL with pstate: free() */
    void (*release)(void *state);                          /* NULL with state: free() */
    /* Where several kernels of a provider support a node, the cheapest offer for the shapes at hand is taken,
     * the first of equals; only its `plan` is called, and may not decline. Pure: says the same for the same
     * question, packs and keeps nothing. ortc_no(why, ...): not for these shapes. NULL: takes whatever
     * `supports` accepted, where all before it in the table have said no. Candidates behind such a kernel are
     * not asked for, nor are those that differ in host_in, host_out or flags (LAYOUTS aside); the last must
     * not say no to the plain layout. */
    ortc_status (*choose)(const void *state, const ortc_question *, ortc_offer *, ortc_why *why);
} ortc_kernel;

/* Sets of element types, for the masks of a kernel entry. */
#define ORTC_TYPE(t) (UINT64_C(1) << (t))
#define ORTC_TYPES_FLOAT \
    (ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F64) | ORTC_TYPE(ORTC_BF16))
#define ORTC_TYPES_INT (ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_I16) | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
#define ORTC_TYPES_UINT (ORTC_TYPE(ORTC_U8) | ORTC_TYPE(ORTC_U16) | ORTC_TYPE(ORTC_U32) | ORTC_TYPE(ORTC_U64))
#define ORTC_TYPES_NUM (ORTC_TYPES_FLOAT | ORTC_TYPES_INT | ORTC_TYPES_UINT)
#define ORTC_TYPES_ALL ((UINT64_C(1) << ORTC_DTYPE_COUNT) - 2)
#define ORTC_TYPES_ANY UINT64_C(0) /* no constraint */

/* "This kernel computes operator `op` of `domain`, bound to a schema version in since_min .. since_max, where
 * the i-th type constraint of the schema is one of types[i]." Entries of a provider that match and whose
 * `supports` agrees are a node's candidates, in order (ortc_kernel.choose); without `choose` it is the first
 * of them, so tables list the best first. */
typedef struct ortc_kernel_entry {
    const char *domain, *op;
    int32_t since_min, since_max;
    uint64_t types[8]; /* ORTC_TYPES_ANY: any */
    const ortc_kernel *kernel;
} ortc_kernel_entry;

typedef struct ortc_kernel_table {
    uint32_t size, entry_size; /* the host walks by the writer's stride */
    uint32_t count, reserved;
    const char *provider; /* "ref", "cpu", "cuda", or a plugin's own */
    const ortc_kernel_entry *entries;
} ortc_kernel_table;

/* ORTC_KERNELS(cpu, softmax, ORTC_KERNEL("Softmax", 13, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32)),
 * &softmax_last_axis), ...) defines the table `ortc_kernels_<provider>_<family>`; masks of several
 * constraints stand in the parentheses in order. ORTC_KERNEL_IN(domain, op, since_min, since_max, masks,
 * kernel) is for operators of another domain. */

/* A family: operators that share their story, and the kernels for them, whatever the provider. */
typedef struct ortc_family {
    uint32_t size, op_size; /* the host walks ops by the writer's stride */
    const char *name;
    const ortc_op *ops;
    uint32_t n_ops, n_tables;
    const ortc_kernel_table *const *tables;
} ortc_family;

/* ORTC_FAMILY(softmax, ops, &ortc_kernels_ref_softmax, &ortc_kernels_cpu_softmax) defines
 * `ortc_family_softmax` from the array `ops` and the tables; declare those of other files before: `extern
 * const ortc_kernel_table ...;`. */

/* ---- Plugins ------------------------------------------------------------------------------------------- */

struct ortc_provider;

/* What a plugin's one exported symbol, `ortc_plugin`, returns. */
typedef struct ortc_plugin_info {
    uint32_t size;
    int32_t abi;        /* the ORTC_ABI it was compiled with */
    uint32_t sanitizer; /* ORTC_SANITIZER: must be the host's */
    uint32_t reserved;
    const char *name, *version;
    ortc_status (*init)(const ortc_host *); /* registers; called once, on the loading thread */
} ortc_plugin_info;

/* ORTC_PLUGIN("name", "1.0", init) defines the entry point of a plugin. */

/* Called from `init`. Tables are not copied: they stay valid for the life of the process (plugins are never
 * unloaded). Errors: INVALID_ARGUMENT for a broken schema or table, LIMIT; the host's log says which. */
static inline ortc_status ortc_host_add_family(const ortc_host *h, const ortc_family *f);
static inline ortc_status ortc_host_add_provider(const ortc_host *h, const struct ortc_provider *p);
/* The host's memory, 64-byte aligned, counted with its own; NULL when there is none. Any thread. */
static inline void *ortc_host_alloc(const ortc_host *h, size_t bytes);
static inline void ortc_host_free(const ortc_host *h, void *p);
/* For providers that run another's kernels in a way of their own: every entry registered for it so far; and
 * the kernel that it would run a node with, NULL: none. */
static inline ortc_status ortc_host_kernels(const ortc_host *h, const char *provider,
                                            ortc_status (*each)(void *arg, const ortc_kernel_entry *),
                                            void *arg);
static inline const ortc_kernel *ortc_host_kernel_for(const ortc_host *h, const char *provider,
                                                      const ortc_node *n);

#include "op_calls.h"

#ifdef __cplusplus
}
#endif
#endif
