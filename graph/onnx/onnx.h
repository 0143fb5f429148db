/* graph/onnx/onnx.h: files to graphs and back: the wire walk, protobuf-c, external data, and single values.
 *
 * Hostile input is expected: every length, count and depth is checked before protobuf-c sees a byte, raw_data
 * stays where it lies in the map, and external data cannot leave the model's folder.
 */
#ifndef ORTC_ONNX_H
#define ORTC_ONNX_H

#include "base/stop.h"
#include "graph/ir/graph.h"

/* The bytes of a model and of the files beside it. Owns mappings; constants of graphs point into them. */
typedef struct ortc_source ortc_source;
ortc_status ortc_source_open_file(const char *path, bool follow_links, ortc_source **out, ortc_error *);
ortc_status ortc_source_open_memory(const void *, size_t bytes, ortc_source **out, ortc_error *);
/* Copies the reader; closes it with the source, also when opening fails. */
ortc_status ortc_source_open_reader(const ortc_reader *, ortc_source **out, ortc_error *);
void ortc_source_close(ortc_source *);
/* Bytes that were copied into memory because a reader has no map. */
uint64_t ortc_source_owned(const ortc_source *);

/* Reads a model: the graph (nodes lifted, captures explicit, local functions inlined, operators bound and
 * checked, shapes inferred node by node, since liftings need ranks) and what describes it. `info` strings
 * live in the graph's arena. `main_inputs` etc. follow from the graph. UNSUPPORTED lists every operator that
 * is missing, not only the first. stop NULL: nobody ends it before its time. */
ortc_status ortc_onnx_import(ortc_source *, const ortc_stop *, ortc_graph **out_graph,
                             ortc_model_info *out_info, ortc_error *);
/* The same for looking at only: missing operators are no error but listed in out_info. */
ortc_status ortc_onnx_describe(ortc_source *, const ortc_stop *, ortc_graph **out_graph,
                               ortc_model_info *out_info, ortc_error *);
/* What loading says of a model that was only described; OK when nothing is missing. */
ortc_status ortc_onnx_missing(const ortc_model_info *, ortc_error *);

/* Writes a model graph (nothing fused or claimed in it) as a file of standard ONNX that no reader sees
 * half-written. `external`: NULL, or a file name without a folder: constants of at least `external_from`
 * bytes go there, beside `path`, each at the start of a page. Weights are streamed, not copied. Any
 * thread. */
ortc_status ortc_onnx_export(const ortc_graph *, const ortc_model_info *, const char *path,
                             const char *external, uint64_t external_from, ortc_error *);

/* The part of a model graph that save options name, as a copy. (part.c) */
ortc_status ortc_onnx_part(const ortc_graph *, const ortc_save_options *, ortc_graph **out, ortc_error *);

/* A copy of a model graph in which raised nodes of operators newer than everything else needs are their
 * bodies; *out NULL: there are none. (lower.c) */
ortc_status ortc_onnx_lower(const ortc_graph *, const ortc_model_info *, ortc_graph **out, ortc_error *);

/* One TensorProto / SequenceProto / MapProto / OptionalProto. */
ortc_status ortc_onnx_decode_value(const void *, size_t bytes, const ortc_type *, ortc_value **out,
                                   ortc_error *);
ortc_status ortc_onnx_encode_value(const ortc_value *, const char *name, void **out_data, size_t *out_bytes,
                                   ortc_error *);

/* ---- The wire walk (wire.c) ---------------------------------------------------------------------------- */

enum {
    ORTC_WIRE_MAX_DEPTH = 32,     /* nested graphs */
    ORTC_WIRE_MAX_TYPE_DEPTH = 8, /* nested types */
    ORTC_WIRE_MAX_NODES = 4000000
};
/* Walks a serialised message, checks it and writes a copy in which the raw_data of every tensor is replaced
 * by 16 bytes: offset and length (uint64, little-endian) of the original in `data`. *out is free()d by the
 * caller. `root` names the message: 0 ModelProto, else one of the value messages by ORTC_KIND_*. */
ortc_status ortc_wire_compact(const void *data, size_t bytes, int32_t root, uint8_t **out, size_t *out_bytes,
                              ortc_error *);

#endif
