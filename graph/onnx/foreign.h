/* graph/onnx/foreign.h: names for files that are no ONNX models, for messages. */
#ifndef ORTC_FOREIGN_H
#define ORTC_FOREIGN_H

#include "base/base.h"

/* "a Git LFS pointer: ...": what the bytes look like, and the way out; NULL: nothing that is known. */
const char *ortc_foreign_format(const void *data, size_t bytes);

#endif
