/* Just enough of a runtime to run one kernel of op.h on given tensors: node, plan, packing and call, with
 * guarded workspace and outputs. For tests that are about kernels and must not depend on loading, placing and
 * planning.
 */
#ifndef ORTC_TESTS_MOCK_H
#define ORTC_TESTS_MOCK_H

#include "guard.h"
#include "ortc/op.h"

#define MOCK_PORTS 10
#define MOCK_RANK 6

typedef struct mock_attr {
    const char *name; /* NULL ends a list */
    int32_t kind;     /* ORTC_ATTR_INT, FLOAT, INTS, STRING */
    int64_t i;
    float f;
    const char *s;
    int64_t ints[2 * MOCK_RANK];
    size_t count;
} mock_attr;

/* A tensor of the node's type; data NULL with rank -1: left out. */
typedef struct mock_tensor {
    int32_t rank;
    int64_t dims[MOCK_RANK];
    float *data;
    int is_const;
} mock_tensor;

typedef struct mock_node {
    const ortc_node_api *api; /* set by mock_run */
    const char *op;
    const mock_attr *attrs;
    const struct ortc_pointwise *epilogue; /* NULL: none */
    uint32_t n_in;
    ortc_dtype dtype; /* of all tensors; 0: f32 */
    mock_tensor in[MOCK_PORTS];
    mock_tensor out;
    ortc_type type;
} mock_node;

/* The kernel for `op` in a provider's table of a family. */
/* The cheapest of the table's kernels of the node's operator for its shapes; NULL: none. */
const ortc_kernel *mock_choose(const ortc_kernel_table *t, mock_node *n);
const ortc_kernel *mock_kernel(const ortc_kernel_table *t, const char *op);

int64_t mock_count(const mock_tensor *t);

/* In three steps, for benchmarks: prepares and plans (NULL on failure), runs, frees. */
typedef struct mock_session mock_session;
mock_session *mock_open(const ortc_kernel *k, mock_node *n, int threads);
int mock_execute(mock_session *);
struct pool *mock_pool(mock_session *); /* its threads: a second pool would only spin beside them */
int mock_close(mock_session *);

/* A call whose loops run at once, and a plan of one constant input that packs it into guarded memory. */
ortc_call mock_serial(void);
typedef struct mock_packing {
    ortc_plan base;
    guard memory; /* from when it is packed on; the caller's to close */
    ortc_packed packed;
} mock_packing;
mock_packing mock_packing_of(const ortc_view *in);

/* Runs the node on `threads` threads (0: one, with the loop's chunks in reverse order). Returns the first
 * status that is not ORTC_OK, and prints what the kernel said; -1 when memory around the workspace was
 * touched. */
int mock_run(const ortc_kernel *k, mock_node *n, int threads);

#endif
