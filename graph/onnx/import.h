/* graph/onnx/import.h: what the files of the importer share.
 *
 * Names and nested structs are borrowed from the unpacked message, which lives as long as the import. A scope
 * is one namespace: a graph's, or a function body's that is being inlined into a graph. Names are looked up
 * from the inside out; what a subgraph finds outside becomes a capture of its node, constants excepted: they
 * are shared.
 */
#ifndef ORTC_ONNX_IMPORT_H
#define ORTC_ONNX_IMPORT_H

#include "proto.h"

enum {
    ORTC_IMPORT_MAX_CALLS = 100, /* functions that call functions */
    ORTC_IMPORT_MAX_OPSETS = 256,
    ORTC_IMPORT_MAX_ATTRIBUTES = 256
};

/* A model-local function. */
typedef struct ortc_function {
    const Onnx__FunctionProto *proto;
    const char *key;
    uint32_t *order; /* of its nodes; NULL: as they stand */
    bool ordered;
    int visiting;     /* 1 while its calls are being counted, 2 after */
    uint32_t depth;   /* of calls below it, itself included */
    uint64_t n_nodes; /* when everything in it is inlined; saturates */
} ortc_function;

typedef struct ortc_importer {
    ortc_graph *root;
    const Onnx__ModelProto *model;
    ortc_tensor_base base;
    ortc_arena arena;   /* of the import */
    ortc_map functions; /* key -> ortc_function */
    ortc_map missing;   /* "Foo\ndomain" -> ortc_missing */
    ORTC_ARRAY(struct ortc_missing *) missing_list;
    int32_t n_graphs, n_calls; /* nesting, now */
    uint64_t n_inlined;        /* calls, for names */
    uint64_t n_initializers, n_parameters, weight_bytes;
    bool describe;         /* missing operators are listed, not refused */
    const ortc_stop *stop; /* NULL: nobody ends it before its time */
    bool named;            /* the error's text names its node already */
    ortc_error *error;
} ortc_importer;

/* An operator that is not there. */
typedef struct ortc_missing {
    const char *op, *domain;
    int64_t opset;
    bool known; /* but not in this opset, or not liftable */
    uint64_t count;
} ortc_missing;

/* The outer values that the subgraphs of one node use. */
typedef struct ortc_captures {
    ORTC_ARRAY(ortc_edge *) outer;
    ORTC_ARRAY(const char *) names;
    ortc_map index; /* name -> position + 1 */
} ortc_captures;

/* The values of a function's attributes in one call. */
typedef struct ortc_bindings {
    const Onnx__FunctionProto *function;
    const Onnx__NodeProto *call;
    struct ortc_scope *scope; /* of the call */
} ortc_bindings;

typedef struct ortc_scope {
    ortc_importer *in;
    ortc_graph *graph;
    struct ortc_scope *outer;      /* NULL: names end here */
    ortc_captures *captures;       /* of the node that this subgraph belongs to; with outer */
    ORTC_ARRAY(ortc_edge *) inner; /* this subgraph's side of the captures, by position; may be shorter */
    ortc_map edges;                /* name -> ortc_edge, or ortc_import_absent */
    ortc_map types;                /* name -> Onnx__ValueInfoProto */
    Onnx__OperatorSetIdProto *const *opsets;
    size_t n_opsets;
    const ortc_bindings *bindings; /* NULL: not in a function */
    const char *prefix;            /* of new names; "" outside of functions */
} ortc_scope;

extern ortc_edge ortc_import_absent; /* a function's parameter that the call leaves out */

void ortc_scope_deinit(ortc_scope *);
/* The edge of a name; *out NULL: there is none. */
ortc_status ortc_scope_find(ortc_scope *, const char *name, ortc_edge **out);
/* A new edge of that name, of the type that value_info gives. INVALID_MODEL when the name is taken. */
ortc_status ortc_scope_define(ortc_scope *, const char *name, ortc_edge **out);
/* Makes a name mean an edge that is there already. */
ortc_status ortc_scope_alias(ortc_scope *, const char *name, ortc_edge *);
int64_t ortc_scope_opset(const ortc_scope *, const char *domain); /* 0: not imported */

/* import.c */
ortc_status ortc_import_nodes(ortc_scope *, Onnx__NodeProto *const *, size_t n, const uint32_t *order);
/* A graph attribute of a node: a new child of the scope's graph. */
ortc_status ortc_import_subgraph(ortc_scope *outer, ortc_captures *, const Onnx__GraphProto *,
                                 ortc_scope *scope);
/* takes what is owned */
ortc_status ortc_import_constant(ortc_importer *, ortc_tensor_data *, ortc_constant **out);

/* import_constant.c */
ortc_status ortc_import_constant_node(ortc_scope *, const Onnx__NodeProto *);

/* import_node.c */
ortc_status ortc_import_node(ortc_scope *, const Onnx__NodeProto *);
/* what can be said of the outputs at load; checks */
ortc_status ortc_import_infer(ortc_importer *, ortc_node *);

/* import_types.c: shapes only of tensors; *out NULL: not known. */
ortc_status ortc_import_type(ortc_importer *, const Onnx__TypeProto *, const ortc_type **out);
ortc_status ortc_import_value_info(ortc_importer *, const Onnx__ValueInfoProto *, bool is_input, ortc_edge *);

/* import_function.c */
ortc_status ortc_import_functions(ortc_importer *); /* the table, with the checks of depth and size */
ortc_function *ortc_import_function(ortc_importer *, const Onnx__NodeProto *); /* NULL: not a call */
ortc_status ortc_import_call(ortc_scope *, const Onnx__NodeProto *, ortc_function *);
/* The attribute that gives the value: itself, what the call gave, or the default; NULL: left out. *out_scope:
 * where names in it belong. */
const Onnx__AttributeProto *ortc_import_resolve(ortc_scope *, const Onnx__AttributeProto *,
                                                ortc_scope **out_scope);

/* import_order.c: *out NULL when the nodes stand in an order of execution; else in the import's arena. */
ortc_status ortc_import_order(ortc_importer *, Onnx__NodeProto *const *, size_t n, uint32_t **out);

/* import_info.c */
ortc_status ortc_import_describe(ortc_importer *, ortc_model_info *out);
ortc_status ortc_import_miss(ortc_scope *, const Onnx__NodeProto *, bool known);
/* Lists them in `out`; refuses them unless the model is only described. */
ortc_status ortc_import_report_missing(ortc_importer *, ortc_model_info *out);

/* lift.c: brings the last node of the scope's graph from `version` to its operator's newest form. */
ortc_status ortc_import_lift(ortc_scope *, ortc_node *, int32_t version);
/* The same of a composed operator's: others take its place. */
ortc_status ortc_import_compose(ortc_scope *, ortc_node *, int32_t version);

/* "node 'x'" or, without a name, "node with output 'y'". */
void ortc_import_prefix(ortc_error *, const Onnx__NodeProto *);

#endif
