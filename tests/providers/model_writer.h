/* tests/providers/model_writer.h: ONNX models of one node, written in memory. */
#ifndef ORTC_TESTS_MODEL_WRITER_H
#define ORTC_TESTS_MODEL_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ortc/types.h"

#define MAX_PORTS 16
#define MAX_DIMS 64
#define NEWEST_OPSET 28

typedef struct tensor {
    ortc_dtype dtype; /* 0: left out */
    int32_t rank;
    int64_t dims[MAX_DIMS];
    int64_t count;
    size_t bytes;
    void *data; /* malloc'ed; strings: `strings` instead */
    char **strings;
    bool constant;           /* an initializer */
    bool chosen;             /* its elements were given: they may decide shapes */
    uint16_t kind;           /* 0: a tensor; else ORTC_KIND_*, and dtype is the innermost tensor's */
    struct tensor *elements; /* n_elements of them, and at least one, for the type */
    size_t n_elements;
} tensor;

typedef struct attribute {
    char name[48];
    int kind; /* AttributeProto.AttributeType */
    double f;
    int64_t i;
    char s[64];
    int64_t ints[64];
    float floats[64];
    char strings[32][32];
    size_t count;
    tensor t;
} attribute;

typedef struct node_text {
    char op[64], domain[64];
    int64_t version; /* of the opset */
    tensor in[MAX_PORTS];
    size_t n_in, n_out;
    attribute attrs[MAX_PORTS];
    size_t n_attrs;
} node_text;

typedef struct writer {
    unsigned char *data;
    size_t bytes, capacity;
} writer;

enum {
    MODEL_SYMBOLIC = 1, /* every extent of an input is a symbol */
    /* inputs and outputs pass through another node first, so that the node may work in place */
    MODEL_CHAINED = 2,
    MODEL_CUT = 4, /* one output is asked for, and it is the node's last */
};

/* Inputs are named x0, x1 ...; outputs y0 ...; with MODEL_CHAINED there is an input `yes`, bool[], to be
 * true, and the types of the outputs (n_out of them) must be given. `alone`: 1 + the only output of the
 * graph, behind which the node has none, where it need not; 0: all. */
void write_model(writer *, const node_text *, int flags, const ortc_dtype *out_types, size_t alone);
void writer_deinit(writer *);

#endif
