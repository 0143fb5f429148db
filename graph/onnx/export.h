/* graph/onnx/export.h: what the files of the exporter share: messages under construction, names, and the
 * state of one export.
 *
 * Only what is small is built in memory: nodes, types, and of every initializer the message without its
 * elements. Names are unique in the whole file, subgraphs included, because a subgraph must not redefine a
 * name of the graphs around it.
 */
#ifndef ORTC_ONNX_EXPORT_H
#define ORTC_ONNX_EXPORT_H

#include "graph/onnx/onnx.h"

/* ---- Messages (export_message.c): appended; a lack of memory is noted and asked for at the end --------- */

typedef struct ortc_message {
    ORTC_ARRAY(uint8_t) bytes;
    bool failed;
} ortc_message;
void ortc_message_deinit(ortc_message *);
void ortc_message_int(ortc_message *, uint32_t field, int64_t);
void ortc_message_float(ortc_message *, uint32_t field, float);
void ortc_message_bytes(ortc_message *, uint32_t field, const void *, size_t bytes);
void ortc_message_text(ortc_message *, uint32_t field, const char *); /* "": left out */
/* Appends a finished message as a field, and ends it. */
void ortc_message_take(ortc_message *, uint32_t field, ortc_message *);
/* Appends a message's fields, without a field around them, and ends it. */
void ortc_message_append(ortc_message *, ortc_message *inner);
/* The beginning of a field of `bytes` bytes that follow. */
void ortc_message_head(ortc_message *, uint32_t field, uint64_t bytes);

/* ---- One export ---------------------------------------------------------------------------------------- */

/* An initializer of the file. Constants of subgraphs are written in the main graph, each once. */
typedef struct ortc_export_constant {
    const char *name;
    const ortc_constant *constant;
} ortc_export_constant;

typedef struct ortc_export_domain {
    const char *domain;
    int64_t version;
} ortc_export_domain;

typedef struct ortc_exporter {
    const ortc_model_info *info;
    ortc_arena arena;
    ortc_map names;     /* of values, taken */
    ortc_map nodes;     /* names of nodes, taken */
    ortc_map constants; /* id -> name */
    ORTC_ARRAY(ortc_export_constant) initializers;
    ORTC_ARRAY(ortc_export_domain) domains; /* [0]: the standard's */
    uint64_t dtypes;                        /* element types in use, a bit each */
    ortc_error *error;
} ortc_exporter;

/* export_node.c: the graph's nodes (GraphProto.node), and its name, inputs and outputs. */
ortc_status ortc_export_graph(ortc_exporter *, const ortc_graph *, ortc_message *nodes, ortc_message *ends);

/* export_types.c */
void ortc_export_type(ortc_exporter *, const ortc_type *, const ortc_edge *shape, ortc_message *);
void ortc_export_value_info(ortc_exporter *, const char *name, const char *doc, const ortc_edge *,
                            ortc_message *);
/* A TensorProto without the elements of a fixed size; strings (NULL: not strings) are in it. */
void ortc_export_tensor(ortc_exporter *, const char *name, ortc_dtype, int32_t rank, const int64_t *dims,
                        const ortc_strings *, ortc_message *);

enum { ORTC_EXPORT_LEAST_OPSET = 17 };

/* The fields' numbers are the standard's, as in onnx.proto. */
enum {
    ORTC_MODEL_IR_VERSION = 1,
    ORTC_MODEL_PRODUCER_NAME = 2,
    ORTC_MODEL_PRODUCER_VERSION = 3,
    ORTC_MODEL_DOMAIN = 4,
    ORTC_MODEL_VERSION = 5,
    ORTC_MODEL_DOC = 6,
    ORTC_MODEL_GRAPH = 7,
    ORTC_MODEL_OPSET = 8,
    ORTC_MODEL_METADATA = 14,
    ORTC_GRAPH_NODE = 1,
    ORTC_GRAPH_NAME = 2,
    ORTC_GRAPH_INITIALIZER = 5,
    ORTC_GRAPH_INPUT = 11,
    ORTC_GRAPH_OUTPUT = 12,
    ORTC_NODE_INPUT = 1,
    ORTC_NODE_OUTPUT = 2,
    ORTC_NODE_NAME = 3,
    ORTC_NODE_OP = 4,
    ORTC_NODE_ATTRIBUTE = 5,
    ORTC_NODE_DOMAIN = 7,
    ORTC_TENSOR_DIMS = 1,
    ORTC_TENSOR_DTYPE = 2,
    ORTC_TENSOR_STRING = 6,
    ORTC_TENSOR_NAME = 8,
    ORTC_TENSOR_RAW = 9,
    ORTC_TENSOR_EXTERNAL = 13,
    ORTC_TENSOR_LOCATION = 14
};

/* lower.c: the least opset in which the node is valid as it stands. */
int32_t ortc_export_since(const ortc_node *);

#endif
