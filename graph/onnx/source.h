/* graph/onnx/source.h: what the importer asks of a source: the model's bytes, and those of the files beside
 * it.
 */
#ifndef ORTC_ONNX_SOURCE_H
#define ORTC_ONNX_SOURCE_H

#include "graph/onnx/onnx.h"

/* Some bytes, valid as long as the source. */
typedef struct ortc_source_bytes {
    const uint8_t *data;
    size_t bytes;
    bool mapped; /* in a file that we mapped: pages may be dropped */
} ortc_source_bytes;

ortc_source_bytes ortc_source_model(const ortc_source *);
/* The file `location`, relative to the model's folder; opened once. */
ortc_status ortc_source_beside(ortc_source *, const char *location, ortc_source_bytes *out, ortc_error *);
/* Lets go of the mapped pages that were read so far: what is left to read is weights, and those once. */
void ortc_source_drop(const ortc_source *);

#endif
