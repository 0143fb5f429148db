/* graph/onnx/proto.h: serialised messages to protobuf-c's structs: wire walk, then unpacking into an arena.
 *
 * Messages unpacked here are never freed one by one: they live in the arena, and so do their strings. The
 * raw_data of every tensor holds 16 bytes that say where the elements lie (wire.c); tensor.c reads them.
 */
#ifndef ORTC_ONNX_PROTO_H
#define ORTC_ONNX_PROTO_H

#include "graph/onnx/onnx.h"
#include "graph/onnx/onnx.pb-c.h"

/* The message that `root` of ortc_wire_compact names; NULL for another number. */
const ProtobufCMessageDescriptor *ortc_proto_root(int32_t root);

/* Walks, checks and unpacks. *out is of the root's struct type. */
ortc_status ortc_proto_read(const void *data, size_t bytes, int32_t root, ortc_arena *, void **out,
                            ortc_error *);

/* Strings that may be absent. */
static inline const char *ortc_proto_text(const char *s) { return s ? s : ""; }
/* "ai.onnx" is "". */
static inline const char *ortc_proto_domain(const char *s)
{
    return !s || strcmp(s, "ai.onnx") == 0 ? "" : s;
}

/* ---- Tensors (tensor.c) -------------------------------------------------------------------------------- */

/* A tensor's elements, wherever the message keeps them. */
typedef struct ortc_tensor_data {
    ortc_dtype dtype;
    int32_t rank;
    const int64_t *dims; /* the message's */
    int64_t count;
    size_t bytes;
    /* dense; in `base`, in an external file or in `owned`. Strings: an ortc_strings block */
    const void *data;
    void *owned; /* free() it; NULL: data is borrowed */
    bool mapped; /* data lies in a file that we mapped */
} ortc_tensor_data;

/* Where a message's bytes came from. */
typedef struct ortc_tensor_base {
    const void *data; /* what the wire walk was given */
    size_t bytes;
    bool mapped;         /* data lies in a file that we mapped */
    ortc_source *source; /* for external data; NULL: there must not be any */
} ortc_tensor_base;

/* Errors: INVALID_MODEL, UNSUPPORTED, LIMIT, OUT_OF_MEMORY and those of external files; nothing is owned
 * then. */
ortc_status ortc_tensor_read(const Onnx__TensorProto *, const ortc_tensor_base *, ortc_tensor_data *out,
                             ortc_error *);
/* The same for a sparse tensor, made dense. */
ortc_status ortc_tensor_read_sparse(const Onnx__SparseTensorProto *, const ortc_tensor_base *,
                                    ortc_tensor_data *out, ortc_error *);

#endif
