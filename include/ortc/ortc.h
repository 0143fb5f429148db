/* ortc/ortc.h: running ONNX models from a program.
 *
 *   ortc_model    a loaded file: graph, weights in the mapped file, packed forms. Immutable; shared by
 *                 sessions
 *   ortc_session  a model placed on providers, with its plans. Shared by threads
 *   ortc_context  what one run needs: arenas, workspaces. Taken from the session's pool if the caller does
 *                 not care
 *   ortc_state    what one conversation or stream keeps between its runs: a cache of keys and values, a
 *                 recurrent state
 *   ortc_value    a tensor, sequence, map or optional. Reference-counted
 *
 * Errors. Every fallible function takes an `ortc_error *` as its last parameter and returns the code. The
 * error is the caller's storage, needs no release, and may be NULL. On failure out-parameters are set to NULL
 * or left alone, as each function says, and nothing is lost: the objects involved stay usable.
 *
 * Ownership. `create` and `load` give a reference that `release` takes back; release(NULL) does nothing.
 * `retain` adds one. Strings and arrays that functions return are borrowed from the object they were asked
 * of.
 *
 * Threads. "Any thread" below means: at any time, also concurrently on one object. There is no thread-local
 * state. The library never prints, never exits or aborts, opens no socket, writes no file that it was not
 * told to write. Structs that begin with `size` have an _INIT macro: fields that are not set have their
 * defaults.
 */
#ifndef ORTC_ORTC_H
#define ORTC_ORTC_H

#include <stdbool.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_VERSION_MAJOR 0
#define ORTC_VERSION_MINOR 1
#define ORTC_VERSION_PATCH 0
#define ORTC_OPSET 28 /* the newest opset of the standard that this version knows */

/* "0.1.0": of the library that is linked, not of this header. Any thread. */
ORTC_EXPORT const char *ortc_version(void);

/* ---- Errors -------------------------------------------------------------------------------------------- */

typedef struct ortc_error {
    uint32_t size;
    ortc_status code; /* ORTC_OK, or what went wrong */
    char text[1016];  /* one line, UTF-8, terminated: what, where (node, operator, input), expected and got */
} ortc_error;
#ifdef __cplusplus
#define ORTC_ERROR_INIT \
    { \
        (uint32_t)sizeof(ortc_error), 0, { 0 } \
    }
#else
#define ORTC_ERROR_INIT \
    { \
        .size = (uint32_t)sizeof(ortc_error) \
    }
#endif

/* "INVALID_MODEL" for ORTC_INVALID_MODEL ...; "?" for unknown codes. Any thread. */
ORTC_EXPORT const char *ortc_status_name(ortc_status code);

/* ---- Values -------------------------------------------------------------------------------------------- */

/* A tensor of its own memory, 256-byte aligned, contents undefined (sub-byte types: whole tensor packed).
 * dims: rank extents >= 0. Owner: the caller; ortc_value_release. Errors: INVALID_ARGUMENT (negative dims,
 * strings: use ortc_value_create_strings), LIMIT (size overflows), OUT_OF_MEMORY; *out is NULL then. Any
 * thread. */
ORTC_EXPORT ortc_status ortc_value_create(ortc_dtype, int32_t rank, const int64_t *dims, ortc_value **out,
                                          ortc_error *);

/* A tensor over the caller's host memory, dense, row-major, any alignment; not copied. `release(arg)` is
 * called when the last reference goes; NULL: the caller keeps the memory alive as long as the value. NULL
 * when memory for the handle cannot be had or an argument is wrong. Any thread. */
ORTC_EXPORT ortc_value *ortc_wrap(void *data, ortc_dtype, int32_t rank, const int64_t *dims);
ORTC_EXPORT ortc_status ortc_value_wrap(void *data, ortc_dtype, int32_t rank, const int64_t *dims,
                                        void (*release)(void *arg), void *arg, ortc_value **out,
                                        ortc_error *);

/* A tensor of strings; lengths NULL: all are terminated. Bytes are copied. Any thread. */
ORTC_EXPORT ortc_status ortc_value_create_strings(int32_t rank, const int64_t *dims,
                                                  const char *const *strings, const size_t *lengths,
                                                  ortc_value **out, ortc_error *);

/* Sequence, map, optional. Elements are retained, not copied, and are not to be written into from then on. A
 * map holds two values: keys (a tensor of rank 1) and values (a tensor or a sequence of as many elements).
 * Optional: element NULL for none. Any thread. */
ORTC_EXPORT ortc_status ortc_value_create_sequence(const ortc_type *element, size_t count,
                                                   ortc_value *const *elements, ortc_value **out,
                                                   ortc_error *);
ORTC_EXPORT ortc_status ortc_value_create_map(ortc_value *keys, ortc_value *values, ortc_value **out,
                                              ortc_error *);
ORTC_EXPORT ortc_status ortc_value_create_optional(const ortc_type *element, ortc_value *element_or_null,
                                                   ortc_value **out, ortc_error *);

/* One reference more, for which the value is given back. NULL allowed. Any thread. */
ORTC_EXPORT ortc_value *ortc_value_retain(ortc_value *);
/* One reference less; the value goes with the last one. NULL allowed. Any thread. */
ORTC_EXPORT void ortc_value_release(ortc_value *);

/* Any thread; results are borrowed from the value. */
ORTC_EXPORT const ortc_type *ortc_value_type(const ortc_value *);
ORTC_EXPORT ortc_dtype ortc_value_dtype(const ortc_value *);    /* tensor: element type; else 0 */
ORTC_EXPORT int32_t ortc_value_rank(const ortc_value *);        /* tensor; else 0 */
ORTC_EXPORT const int64_t *ortc_value_dims(const ortc_value *); /* tensor: rank extents; else NULL */
/* elements of a tensor or sequence, pairs of a map, 0 or 1 */
ORTC_EXPORT int64_t ortc_value_count(const ortc_value *);
ORTC_EXPORT size_t ortc_value_bytes(const ortc_value *); /* tensor: size of its data */
/* tensor, not strings: its elements; NULL otherwise */
ORTC_EXPORT const void *ortc_value_host(const ortc_value *);
/* the same, writable; the caller's own values only */
ORTC_EXPORT void *ortc_value_data(ortc_value *);
/* not terminated */
ORTC_EXPORT const char *ortc_value_string(const ortc_value *, int64_t i, size_t *out_length);
/* sequence, optional (0); map: 0 keys, 1 values */
ORTC_EXPORT ortc_value *ortc_value_element(const ortc_value *, size_t i);

/* Reads and writes a TensorProto, SequenceProto, MapProto or OptionalProto, as the standard's test data holds
 * them. `type` says which message the bytes are (decode). *out_data of encode: free() it. Any thread. */
ORTC_EXPORT ortc_status ortc_value_decode(const void *data, size_t bytes, const ortc_type *type,
                                          ortc_value **out, ortc_error *);
ORTC_EXPORT ortc_status ortc_value_encode(const ortc_value *, const char *name, void **out_data,
                                          size_t *out_bytes, ortc_error *);

/* ---- Models -------------------------------------------------------------------------------------------- */

typedef struct ortc_model ortc_model;
typedef struct ortc_cancel ortc_cancel;

/* Where bytes come from: a file, memory, something encrypted or streamed. `arg` is passed back. */
typedef struct ortc_reader {
    uint32_t size;
    uint32_t reserved;
    void *arg;
    uint64_t (*bytes)(void *arg); /* total length */
    ortc_status (*read_at)(void *arg, uint64_t offset, void *to, size_t bytes, ortc_error *);
    /* Address of the whole, valid until `close`; NULL or a NULL function: read_at is used and bytes are
     * copied. */
    const void *(*map)(void *arg);
    /* Opens a file beside this one, for external data; NULL: the model must not refer to any. */
    ortc_status (*open)(void *arg, const char *relative_path, struct ortc_reader *out, ortc_error *);
    void (*close)(void *arg); /* NULL: nothing to do */
} ortc_reader;

typedef struct ortc_model_options {
    uint32_t size;
    uint32_t flags; /* ORTC_MODEL_* */
    /* limit on constants in memory (not those that lie in a mapped file or in the caller's memory) and on
     * packed forms; 0: none */
    uint64_t max_bytes;
    /* names of normalising passes to leave out (`ortc info --passes` lists them) */
    const char *const *passes_off;
    size_t n_passes_off;
    /* what folding of constants may do in all, in operations of about a nanosecond each, as the reference
     * provider's kernels estimate them: the same nodes are folded on every machine. 0: 500 million, and 500
     * more for each byte of the weights; UINT64_MAX: no limit. Nodes that are more are left to the runs
     * (ortc_model_info.n_unfolded) */
    uint64_t fold_operations;
    ortc_cancel *cancel; /* NULL: loading cannot be cancelled */
    int64_t deadline_ns; /* of loading, CLOCK_MONOTONIC; 0: none */
} ortc_model_options;
enum {
    ORTC_MODEL_NO_PASSES = 1, /* no normalising pass at all: the graph as the file has it */
    /* external data may be reached through symbolic links (caches of model hubs) */
    ORTC_MODEL_FOLLOW_LINKS = 2,
    /* to look at only: operators may be missing (ortc_model_info.missing), no pass is run; sessions and
     * saving are refused as loading would be without it */
    ORTC_MODEL_DESCRIBE = 4,
    /* packed forms of weights lie over all of the machine's memory nodes, page by page in turn, so that
     * sessions whose threads are on several of them wait for none in particular. Without it a page lies where
     * the thread is that packs it. Not for weights that are used where they lie in the file; on one node, and
     * for forms below a page, nothing changes */
    ORTC_MODEL_INTERLEAVE = 8
};
#define ORTC_MODEL_OPTIONS_INIT \
    { \
        (uint32_t)sizeof(ortc_model_options), 0, 0, 0, 0, 0, 0, 0 \
    }

/* Loads a model. Weights are not read: they stay in the mapped file until a session needs them, so the file
 * must not be changed while the model lives. options NULL: defaults. Owner: the caller; ortc_model_release.
 * Any thread. Errors: NOT_FOUND, IO, INVALID_MODEL (text names the place), UNSUPPORTED (lists every operator
 * that is missing), LIMIT, OUT_OF_MEMORY, CANCELLED, DEADLINE; *out is NULL then. */
ORTC_EXPORT ortc_status ortc_model_load(const char *path, const ortc_model_options *, ortc_model **out,
                                        ortc_error *);
/* The same from memory, which must stay valid and unchanged while the model lives. */
ORTC_EXPORT ortc_status ortc_model_load_memory(const void *data, size_t bytes, const ortc_model_options *,
                                               ortc_model **out, ortc_error *);
/* The same from a reader, which is copied; `close` is called when the model needs it no more, also on
 * failure. */
ORTC_EXPORT ortc_status ortc_model_load_reader(const ortc_reader *, const ortc_model_options *,
                                               ortc_model **out, ortc_error *);
/* One reference more, for which the model is given back. NULL allowed. Any thread. */
ORTC_EXPORT ortc_model *ortc_model_retain(ortc_model *);
/* One reference less; the model goes with the last one, those of its sessions among them. NULL allowed. Any
 * thread. */
ORTC_EXPORT void ortc_model_release(ortc_model *);

/* An input or output of a model. Dims: an extent, or -1 where it is a symbol, with its name in `symbols`
 * (NULL for one without a name). */
typedef struct ortc_io {
    uint32_t size;
    uint32_t flags; /* ORTC_IO_OPTIONAL: an input that may be left out */
    const char *name;
    const ortc_type *type;
    ortc_dtype dtype;           /* tensor: element type; else 0 */
    int32_t rank;               /* tensor; -1: not known */
    const int64_t *dims;        /* rank of them */
    const char *const *symbols; /* rank of them */
    const char *doc;            /* "" when there is none */
} ortc_io;
enum { ORTC_IO_OPTIONAL = 1 }; /* it has a default in the file, or is of an optional type */

/* NULL behind the last. Borrowed from the model. Any thread. */
ORTC_EXPORT const ortc_io *ortc_model_input(const ortc_model *, size_t i);
ORTC_EXPORT const ortc_io *ortc_model_output(const ortc_model *, size_t i);

typedef struct ortc_model_info {
    uint32_t size;
    int32_t ir_version;
    const char *producer, *producer_version, *domain, *graph_name, *doc; /* "" when absent */
    int64_t model_version;
    uint64_t n_nodes, n_initializers; /* of the file, subgraphs included */
    uint64_t n_parameters;            /* elements of all initializers */
    uint64_t weight_bytes;
    size_t n_opsets;
    const char *const *opset_domains;
    const int64_t *opset_versions;
    size_t n_metadata;
    const char *const *metadata_keys, *const *metadata_values;
    size_t n_ops; /* operators of the file, with how often each stands in it, most frequent first */
    const char *const *op_names; /* "Conv", "my.domain.Relu6" */
    const uint64_t *op_counts;
    size_t n_passes; /* normalising passes, in their order, with the number of edits each made */
    const char *const *pass_names;
    const uint64_t *pass_edits;
    /* with ORTC_MODEL_DESCRIBE: operators that are missing, "Foo (domain my.domain, 3 nodes)" */
    size_t n_missing;
    const char *const *missing;
    /* nodes over constants that were more than fold_operations: each run computes them */
    uint64_t n_unfolded;
} ortc_model_info;
/* Borrowed from the model. Any thread. */
ORTC_EXPORT const ortc_model_info *ortc_model_describe(const ortc_model *);

/* A value inside the outermost graph, as the passes left it, which ortc_session_options.keep may name. */
typedef struct ortc_model_value {
    uint32_t size;
    uint32_t reserved;
    const char *name;      /* the file's */
    const char *node, *op; /* what computes it: the node's name, "Conv", "my.domain.Relu6" as "Relu6" */
    const ortc_type *type; /* NULL: not known */
} ortc_model_value;
/* Calls `each` for every such value, in the order of the nodes, until it does not return 0. Strings are
 * borrowed from the model. Values of the file that a pass has folded or raised away are not told of:
 * ORTC_MODEL_NO_PASSES has all. Any thread. */
ORTC_EXPORT void ortc_model_values(const ortc_model *, int (*each)(void *arg, const ortc_model_value *),
                                   void *arg);

typedef struct ortc_save_options {
    uint32_t size;
    uint32_t flags; /* ORTC_SAVE_* */
    /* with EXTERNAL: a file name without a folder; NULL: the model's file name + ".data" */
    const char *external_file;
    uint64_t external_from; /* with EXTERNAL: initializers of at least so many bytes go there; 0: 1024 */
    /* a part of the model: what makes these values (as ortc_model_values names them, or outputs), which are
     * its outputs, from these, which are its inputs besides those of the model's own that are still needed.
     * No outputs: the whole */
    const char *const *inputs, *const *outputs;
    size_t n_inputs, n_outputs;
} ortc_save_options;
enum {
    ORTC_SAVE_EXTERNAL = 1, /* weights in a file of their own beside the model, each at the start of a page */
    /* what the passes raised is written as its operator, even if that takes a newer opset */
    ORTC_SAVE_RAISED = 2
};
#define ORTC_SAVE_OPTIONS_INIT \
    { \
        (uint32_t)sizeof(ortc_save_options), 0, 0, 0, 0, 0, 0, 0 \
    }

/* Writes the model as its passes left it: standard operators, which any runtime can load. Operators of
 * plugins keep their domain. Names of inputs and outputs, their documentation and the metadata stay;
 * model-local functions are inlined, nodes of old versions are in their newest form, the producer is ortc.
 * The opset is not below that of the file, at least 17, and the smallest that the nodes allow: what the
 * passes raised to an operator of a newer one (Gelu, Attention) is written as the nodes that it was, unless
 * RAISED is given. path: replaced if it is there, also when the model was loaded from it; its folder must
 * exist. options NULL: defaults. Weights are streamed; no file has its name before it is whole and durable,
 * and nothing is left after a failure (the external file is named first, and may stay new beside an old model
 * when naming the model's fails). Errors: INVALID_ARGUMENT, NOT_FOUND (the folder; a value of a part), IO,
 * LIMIT (2 GiB without an external file), UNSUPPORTED, OUT_OF_MEMORY. Any thread. */
ORTC_EXPORT ortc_status ortc_model_save(const ortc_model *, const char *path, const ortc_save_options *,
                                        ortc_error *);

/* ---- Sessions ------------------------------------------------------------------------------------------ */

typedef struct ortc_session ortc_session;
typedef struct ortc_context ortc_context;
typedef struct ortc_event ortc_event;
typedef struct ortc_state ortc_state;

/* Ties an output to an input: what a run with an ortc_state leaves in the output is the input of the next run
 * with it, without passing through the caller. Both are tensors of one type, not strings. Two kinds:
 *   fixed    axis -1, or an axis along which input and output have the same extent: one buffer of that
 *            shape, zeros at first (or the
 *            input's default in the file). With an axis a kernel may write it in place (TensorScatter into a
 *            cache): nothing is
 *            copied, shapes stay, one plan serves every step. The form for speed.
 *   growing  an axis along which the output is longer than the input (Concat of past and new): empty at
 *            first. The value
 *            is a dense tensor of the length so far, so every length has a plan of its own and every run
 *            copies it. A value that is as long as the output already (a cache of a fixed capacity, given to
 *            the first run) stays so, and is written in place as a fixed one. */
typedef struct ortc_tie {
    const char *input, *output;
    /* of positions, "past_length"; -1: the value is replaced as a whole (a recurrent state) */
    int32_t axis;
    uint32_t reserved; /* 0 */
    int64_t capacity;  /* most positions along the axis; 0 where the model fixes the extent */
} ortc_tie;

/* Host memory of the caller's: for arenas, tied state and the results that the library places; not for models
 * and small objects. Any thread. Values keep a copy of the struct: `arg` must live as long as the last value
 * of the session. */
typedef struct ortc_allocator {
    uint32_t size;
    uint32_t reserved; /* 0 */
    void *arg;
    /* bytes > 0, alignment a power of two; NULL: none left */
    void *(*alloc)(void *arg, size_t bytes, size_t alignment);
    void (*free)(void *arg, void *data, size_t bytes);
} ortc_allocator;
#define ORTC_ALLOCATOR_INIT \
    { \
        (uint32_t)sizeof(ortc_allocator), 0, 0, 0, 0 \
    }

/* Threads of the caller's, instead of the library's pool. `run` calls task(task_arg, i) once for every i
 * below n, on whatever threads and in whatever order, one after the other if need be, and returns when all
 * calls have. n is at most `threads`. It is called from the threads that call ortc_run, also at once; never
 * from inside a task. Results do not depend on it. */
typedef struct ortc_executor {
    uint32_t size;
    uint32_t threads; /* tasks worth running at once, 1 to 256 */
    void *arg;
    void (*run)(void *arg, uint32_t n, void (*task)(void *task_arg, uint32_t i), void *task_arg);
} ortc_executor;
#define ORTC_EXECUTOR_INIT \
    { \
        (uint32_t)sizeof(ortc_executor), 0, 0, 0 \
    }

typedef struct ortc_session_options {
    uint32_t size;
    uint32_t flags; /* ORTC_SESSION_* */
    /* in order, "cuda:1,cpu": provider[:ordinal][:key=value]...; NULL: "cpu". `ref` is always appended,
     * the last resort */
    const char *providers;
    /* every node must be on one of these, "cpu"; else ORTC_UNSUPPORTED; NULL: no demand. Nodes that only
     * compute shapes are the host's, and not meant */
    const char *require;
    /* budget of one run; 0: the executor's, or one for each core that the process may use, efficiency cores
     * left out where there are others. A run of less than 2 ms goes to threads only while measurements say
     * that it gains by them */
    uint32_t threads;
    uint32_t max_contexts;     /* pooled contexts; 0: as many as there are concurrent runs */
    uint64_t plan_cache_bytes; /* 0: a 16th of the weights, 2 MiB at least and 32 MiB at most */
    /* limit on arenas (intermediates and workspaces) of all contexts, tied states, and plans; no single
     * tensor that a run makes besides (a result, one whose extents are known late) may be larger, either;
     * 0: none */
    uint64_t max_bytes;
    size_t n_dims; /* symbols fixed for this session: "batch" = 8 */
    const char *const *dim_names;
    const int64_t *dim_values;
    const ortc_tie *ties; /* for runs with an ortc_state; copied */
    size_t n_ties;
    const ortc_allocator *allocator; /* copied; NULL: the system's memory */
    const ortc_executor *executor;   /* copied; NULL: the process-wide pool. `arg` outlives the session */
    /* names of values inside the model's outermost graph that are to be outputs, too, for looking at them:
     * they are not fused away. Loading may have folded them already: ORTC_MODEL_NO_PASSES */
    const char *const *keep;
    size_t n_keep;
    /* "NODE=KERNEL", "OPERATOR=KERNEL" or "*=KERNEL": which of several kernels is to run, instead of the one
     * whose cost is least; where that kernel cannot run the shapes at hand, planning fails for a node that is
     * named so, and the choice is free otherwise. "KERNEL@LAYOUT", "@LAYOUT": the way in which it makes its
     * first output in that layout ("aBcd16b": a letter for each axis in the order of memory, the blocked one
     * large). Copied */
    const char *const *choose;
    size_t n_choose;
    /* "bf16": products of f32 with weights may round their operands to bf16, of which processors and GPUs
     * multiply many more, and what lies between two of them may be kept as bf16; sums within an operator,
     * inputs, results, and what leads from the last product to them, stay f32. For provider cpu
     * ("cpu:precision=bf16"), where the machine has the instructions. NULL, "f32": only what the model
     * rounds */
    const char *precision;
    ortc_cancel *cancel; /* NULL: making the session cannot be cancelled */
    int64_t deadline_ns; /* of making it, CLOCK_MONOTONIC; 0: none */
} ortc_session_options;
enum {
    ORTC_SESSION_NO_FUSION = 1, /* specialise nothing: one kernel per node of the normalised graph */
    /* No convolution by Winograd's transforms, which may make its rounding error about three times as large
     * (docs/performance.md): products of the definition are summed up, whatever it costs */
    ORTC_SESSION_NO_WINOGRAD = 2,
    /* Weights of 4 MB and more are packed in memory of their own by the first run. Without it that is for the
     * second: the first, which is the only one of many processes, lays out a step's weights where the last
     * step's were, and so gives its result early and in little memory */
    ORTC_SESSION_PACK_AT_ONCE = 4
};
#define ORTC_SESSION_OPTIONS_INIT \
    { \
        (uint32_t)sizeof(ortc_session_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
            0 \
    }

/* Places a model on providers. Retains the model. options NULL: defaults. Where a session of the model lives
 * that was made with the same flags, providers, require, threads, plan_cache_bytes and precision, and
 * neither has any other option (nor memory on devices), it is that session, with one
 * reference more: a second one would only hold everything twice. Owner: the caller; ortc_session_release.
 * Errors: NOT_FOUND (a provider, or a value of `keep`; the text lists what there is), UNSUPPORTED (`require`
 * is not met: the text names the first nodes and why; or a node that no provider can run), INVALID_ARGUMENT,
 * TYPE_MISMATCH, SHAPE_MISMATCH (a tie does not fit the model), OUT_OF_MEMORY, CANCELLED, DEADLINE; *out is
 * NULL then. Any thread. */
ORTC_EXPORT ortc_status ortc_session_create(ortc_model *, const ortc_session_options *, ortc_session **out,
                                            ortc_error *);
/* One reference more, for which the session is given back. NULL allowed. Any thread. */
ORTC_EXPORT ortc_session *ortc_session_retain(ortc_session *);
/* One reference less; the session goes with the last one, those of runs, contexts and states among them. NULL
 * allowed. Any thread. */
ORTC_EXPORT void ortc_session_release(ortc_session *);

typedef struct ortc_in {
    const char *name;
    ortc_value *value; /* borrowed for the run; for an input of an optional type also what is in it */
} ortc_in;
typedef struct ortc_out {
    const char *name;
    /* in: a tensor to write into, of the result's type and shape, or NULL, which it must be for strings
     * and what is not a tensor; out: the result, for the caller to release (the same value when it was
     * given) */
    ortc_value *value;
    uint32_t memory; /* where a NULL is placed: 0 host, else a device's memory (ortc_session_memory) */
    uint32_t reserved;
} ortc_out;

typedef struct ortc_run_args {
    uint32_t size;
    uint32_t flags; /* 0 */
    const ortc_in *in;
    size_t n_in;
    ortc_out *out;
    size_t n_out;          /* outputs that are not listed are not computed where that saves work */
    ortc_context *context; /* NULL: one from the session's pool */
    /* NULL: none: tied inputs and outputs are then inputs and outputs like all others */
    ortc_state *state;
    void *queue;         /* NULL: the context's; else the caller's native stream for the first device */
    ortc_cancel *cancel; /* NULL: cannot be cancelled */
    int64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
    uint64_t seed;       /* for random operators without a seed of their own; 0: the fixed default */
    /* NULL: return when finished. Else return when all is queued, *done tells the end: ortc_event_wait.
     * Work of the host (and models with extents known late, and runs with a state) is finished on return */
    ortc_event **done;
    const struct ortc_profiler *profiler; /* NULL: none, and no cost */
    /* with a state: positions that this run adds to fixed ties with an axis; growing ones count themselves */
    int64_t advance;
} ortc_run_args;
#define ORTC_RUN_ARGS_INIT \
    { \
        (uint32_t)sizeof(ortc_run_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* Runs the model. Inputs are matched by name; those with a default in the file, and those of an optional
 * type, may be left out. Tensors are read and written where they are, without copies, if their address is a
 * multiple of their element's size (up to 8 bytes). Results share elements with each other and with the
 * inputs that they come from (a sequence's tensors, which nobody may write into then); a result that is a
 * tensor is the caller's alone. Any thread; runs of one session are concurrent, each takes its own context. A
 * run keeps its session, up to the end of an asynchronous one: any thread may release the last reference
 * meanwhile. What else `args` names stays until then. The same session, plan, instruction set and seed give
 * the same bits on any number of threads. Errors: INVALID_ARGUMENT (an unknown, missing or repeated name),
 * TYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED, LIMIT, OUT_OF_MEMORY, CANCELLED, DEADLINE, DEVICE_*: outputs
 * that were NULL are NULL then, given ones are undefined, and the session stays usable. */
ORTC_EXPORT ortc_status ortc_run(ortc_session *, ortc_run_args *, ortc_error *);

/* A context of one's own, to keep arenas warm for one thread; one run at a time, a second one gets
 * INVALID_STATE. Retains the session. Owner: the caller; ortc_context_release. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Any thread. */
ORTC_EXPORT ortc_status ortc_context_create(ortc_session *, ortc_context **out, ortc_error *);
/* Ends it, and its session's reference with it: not while a run uses it. NULL allowed. */
ORTC_EXPORT void ortc_context_release(ortc_context *);

/* ---- Tied state: what one conversation keeps between its runs ------------------------------------------ */

/* A state of a session with ties, empty; memory is taken by its first run. Many states may live on one
 * session. Retains the session. Owner: the caller; ortc_state_release, not while a run uses it. Errors:
 * INVALID_ARGUMENT (the session has no ties), OUT_OF_MEMORY; *out is NULL then. Any thread.
 *
 *     ortc_tie ties[] = {{"past.key", "present.key", 2}, {"past.value", "present.value", 2}};
 *     options.ties = ties; options.n_ties = 2; ... ortc_session_create(model, &options, &session, &e);
 *     ortc_state_create(session, &state, &e);
 *     for (...) { args.state = state; args.advance = n_new; ... ortc_run(session, &args, &e); }
 *
 * A run with a state (ortc_run_args.state) takes tied inputs that it is not given from the state, and leaves
 * tied outputs there. Extents that the model does not fix (a batch) come from the run's other inputs or from
 * ortc_session_options.dim_names; once taken they stay. An input that is given all the same is read instead
 * of the state's, which then goes on from this run's result (that is how a state is loaded); an output that
 * is asked for all the same is a copy (that is how one is saved). One run at a time per state: a second one
 * gets INVALID_STATE. A run that fails, is cancelled or comes too late leaves the state as it was, up to what
 * in-place kernels wrote behind its length (into a ring: over its oldest positions; into a growing one that
 * does not grow: where the model says). Errors of such runs,
 * besides those of ortc_run: LIMIT (more than the capacity; over the session's max_bytes), INVALID_ARGUMENT
 * (a state of another session; an extent that nothing settles). */
ORTC_EXPORT ortc_status ortc_state_create(ortc_session *, ortc_state **out, ortc_error *);
/* Positions so far: of the longest tie with an axis. Fixed ties: the sum of ortc_run_args.advance. Not while
 * a run uses it. */
ORTC_EXPORT int64_t ortc_state_length(const ortc_state *);
/* Rolls back to the first `length` positions; 0 starts over, as newly made. Errors: INVALID_ARGUMENT (longer
 * than it is), INVALID_STATE (a run uses it; a tie without an axis cannot be rolled back, but to 0). One
 * thread at a time. */
ORTC_EXPORT ortc_status ortc_state_truncate(ortc_state *, int64_t length, ortc_error *);
/* Ends it, and its session's reference with it: not while a run uses it. NULL allowed. */
ORTC_EXPORT void ortc_state_release(ortc_state *);

/* A flag that any thread may set; what was given it (a run, loading, making a session) returns ORTC_CANCELLED
 * soon, until it is reset. Owner: the caller; ortc_cancel_release. Errors: OUT_OF_MEMORY; *out is NULL then.
 * Any thread. */
ORTC_EXPORT ortc_status ortc_cancel_create(ortc_cancel **out, ortc_error *);
/* Any thread. */
ORTC_EXPORT void ortc_cancel_set(ortc_cancel *);
ORTC_EXPORT void ortc_cancel_reset(ortc_cancel *);
/* Not while something that was given it goes on. NULL allowed. */
ORTC_EXPORT void ortc_cancel_release(ortc_cancel *);

/* Frees what can be made again (idle contexts, plans, memory of released results, the pool's free slabs);
 * returns the bytes freed. Any thread. */
ORTC_EXPORT uint64_t ortc_session_trim(ortc_session *);

/* ---- Memory of devices --------------------------------------------------------------------------------- */

/* Tensors may lie in the memory of a device: as inputs of a run (nothing is copied when the node that reads
 * them runs there), as given outputs, or where ortc_out.memory asks for it. Memories are numbered; 0 is the
 * host's. ortc_value_host gives NULL for what is not on the host: ortc_value_copy brings it there. */

/* The number of the memory that a session's device uses: by the name that `providers` gave it, by that of its
 * provider ("cuda": the first), or by provider and ordinal ("cuda:1"); 0 for devices that use host memory.
 * Errors: NOT_FOUND. Any thread. */
ORTC_EXPORT ortc_status ortc_session_memory(ortc_session *, const char *device, uint32_t *out_memory,
                                            ortc_error *);
/* The memory that a tensor lies in; 0: the host's. Any thread. */
ORTC_EXPORT uint32_t ortc_value_memory(const ortc_value *);
/* Where the elements of a tensor, not of strings, lie in its memory: an address for those who work there, as
 * ortc_value_host and ortc_value_data are for the host. NULL for what is no such tensor. Any thread. */
ORTC_EXPORT void *ortc_value_address(const ortc_value *);
/* Whose memory it is: the provider's name ("cuda"), which lives as long as the process, and the ordinal of
 * the device among the provider's. Errors: NOT_FOUND (0, the host's; a number that no open device has): NULL
 * and 0 then. Any thread. */
ORTC_EXPORT ortc_status ortc_memory_device(uint32_t memory, const char **out_provider, uint32_t *out_ordinal,
                                           ortc_error *);
/* As ortc_value_create and ortc_value_wrap; `data` is the device's address. The value keeps the device open.
 * Errors: as there, and NOT_FOUND for a number that no open device has. Any thread. */
ORTC_EXPORT ortc_status ortc_value_create_in(uint32_t memory, ortc_dtype, int32_t rank, const int64_t *dims,
                                             ortc_value **out, ortc_error *);
ORTC_EXPORT ortc_status ortc_value_wrap_in(uint32_t memory, void *data, ortc_dtype, int32_t rank,
                                           const int64_t *dims, void (*release)(void *arg), void *arg,
                                           ortc_value **out, ortc_error *);
/* Copies elements from one tensor to another of the same element type and count, wherever they lie; done on
 * return. Errors: INVALID_ARGUMENT, NOT_FOUND, OUT_OF_MEMORY, DEVICE_*. Any thread. */
ORTC_EXPORT ortc_status ortc_value_copy(const ortc_value *from, ortc_value *to, ortc_error *);

/* What the pool of a device's memory holds. Fragmentation: 1 - largest_free / (reserved - in_use). */
typedef struct ortc_memory_stats {
    uint32_t size;
    uint32_t unused;
    uint64_t in_use, peak;   /* bytes of blocks that are given out, now and at most */
    uint64_t reserved;       /* bytes taken from the device, in slabs */
    uint64_t largest_free;   /* bytes */
    uint64_t requests, hits; /* so far; hits needed no new slab */
    uint64_t blocks, slabs;  /* given out; taken */
} ortc_memory_stats;
#define ORTC_MEMORY_STATS_INIT \
    { \
        (uint32_t)sizeof(ortc_memory_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }
/* Fills in what fits into out->size, which the caller has set. Errors: NOT_FOUND (memory 0, the host's, has
 * no pool). Any thread. */
ORTC_EXPORT ortc_status ortc_memory_statistics(uint32_t memory, ortc_memory_stats *out, ortc_error *);
/* Gives what nobody uses back to the device, of memory 0 to the system; the bytes that went. Any thread. */
ORTC_EXPORT uint64_t ortc_memory_trim(uint32_t memory);

/* ---- Asynchronous runs --------------------------------------------------------------------------------- */

/* What ortc_run_args.done gives. Until a wait has returned, inputs must not be changed, and results neither
 * read nor released memory of (the event holds references of its own). Each run has one event, which keeps
 * the run's context until a wait has returned: with max_contexts, a thread that starts more runs than that
 * before it waits for any waits for ever. */
/* Waits for the end of the run and gives its status; again and again the same. Any thread. */
ORTC_EXPORT ortc_status ortc_event_wait(ortc_event *, ortc_error *);
/* 1: a wait would return at once; 0: not yet, or not known */
ORTC_EXPORT int ortc_event_done(ortc_event *);
/* Waits first. NULL allowed. Any thread. */
ORTC_EXPORT void ortc_event_release(ortc_event *);

/* ---- Looking inside ------------------------------------------------------------------------------------ */

/* One node of a session, after placement and specialisation. Strings are borrowed for the callback's
 * duration. */
typedef struct ortc_placement {
    uint32_t size;
    uint32_t index;
    const char *node, *domain, *op;
    int32_t version;
    int32_t reserved;
    const char *provider, *kernel; /* "cpu", "gemm.packed" */
    const char *fused;             /* what is fused into it, "BatchNormalization Relu"; "" */
    const char *reasons;           /* why earlier providers declined, "cpu: no kernel for f64; ..."; "" */
    /* names of the values that it reads and makes, by port; NULL: left out. What no node makes, and is no
     * input of the model, is a constant */
    uint32_t n_in, n_out;
    const char *const *in, *const *out;
} ortc_placement;
/* Calls `each` for every node in the order of execution; a non-zero result stops. Any thread. */
ORTC_EXPORT void ortc_session_placement(ortc_session *, int (*each)(void *arg, const ortc_placement *),
                                        void *arg);

/* One step of the plan for given input shapes. */
typedef struct ortc_step_info {
    uint32_t size;
    uint32_t index;
    const char *kind; /* "kernel", "copy", "signal", "wait", "control" */
    const char *node, *op, *provider, *kernel;
    const char *outputs; /* "f32[1,16,8,8] @0; ..." with arena offsets */
    double flops, bytes; /* as the kernel estimates them; 0: not known */
    uint64_t workspace;
    double clocks; /* what the chosen kernel offered; 0: it had no rival */
    /* all offers for these shapes, "conv.pointwise 1.2e+06; conv.columns 1.5e+06"; "": there was no choice */
    const char *offers;
    /* bytes of the host's and the devices' arenas that hold, while this step runs, values that it or a later
     * one reads, and its workspace */
    uint64_t live;
} ortc_step_info;
typedef struct ortc_plan_info {
    uint32_t size;
    uint32_t n_steps, n_views, n_folded; /* n_folded: nodes that only computed shapes and made no step */
    uint64_t arena_bytes, workspace_bytes, constant_bytes, packed_bytes;
} ortc_plan_info;
/* Plans for these inputs (shapes and types; values too where they decide shapes) without running, and
 * describes. Where an extent is known only when the model runs, what is described is the first segment. */
ORTC_EXPORT ortc_status ortc_session_plan(ortc_session *, const ortc_in *in, size_t n_in, ortc_plan_info *out,
                                          int (*each)(void *arg, const ortc_step_info *), void *arg,
                                          ortc_error *);

/* What a session holds at this moment, and has done so far. */
typedef struct ortc_session_stats {
    uint32_t size;
    uint32_t n_contexts; /* idle and running */
    /* since the session was created; a key that is found again makes none. Not the plan of a first run that
     * nobody runs again (ORTC_SESSION_PACK_AT_ONCE) */
    uint64_t plans_made;
    uint64_t plan_bytes;        /* of the plans in the cache */
    uint64_t arena_bytes;       /* of the contexts' arenas */
    uint64_t captures, replays; /* graphs captured from a device's steps, and launched, so far */
    uint64_t bytes_to_devices, bytes_from_devices; /* copied between host and devices by runs, so far */
} ortc_session_stats;
#define ORTC_SESSION_STATS_INIT \
    { \
        (uint32_t)sizeof(ortc_session_stats), 0, 0, 0, 0, 0, 0, 0, 0 \
    }
/* Fills in what fits into out->size, which the caller has set. Sessions of subgraphs are not counted. Any
 * thread. */
ORTC_EXPORT void ortc_session_statistics(ortc_session *, ortc_session_stats *out);

/* What a run with a profiler did. Strings live as long as the session. */
typedef struct ortc_profile_event {
    uint32_t size;
    uint32_t kind; /* ORTC_PROFILE_* */
    uint32_t step; /* index in its plan, as ortc_session_plan numbers them */
    uint32_t reserved;
    /* STEP: the node, "copy", "signal", "wait"; PHASE: as its kernel calls it; PLAN: "plan" */
    const char *name;
    const char *op, *provider, *kernel; /* "" for what is no kernel */
    int64_t start_ns, duration_ns;      /* CLOCK_MONOTONIC. Devices that work behind our back: of queueing */
    double flops, bytes;                /* as the kernel estimates them; 0: not known */
    double clocks;                      /* what the kernel was chosen by; 0: there was no choice */
} ortc_profile_event;
enum {
    ORTC_PROFILE_STEP = 1,
    ORTC_PROFILE_PHASE = 2, /* a part of a step (ortc_call_mark), told before its step */
    ORTC_PROFILE_PLAN = 3   /* planning for a key that is new */
};
typedef struct ortc_profiler {
    uint32_t size;
    uint32_t reserved; /* 0 */
    void *arg;
    /* Called on the thread of the run, when what it tells of has ended; steps of subgraphs come before the
     * step they are part of. */
    void (*record)(void *arg, const ortc_profile_event *);
} ortc_profiler;
#define ORTC_PROFILER_INIT \
    { \
        (uint32_t)sizeof(ortc_profiler), 0, 0, 0 \
    }

/* Specialising passes of a session, in order, with the number of edits each made; NULL behind the last. */
ORTC_EXPORT const char *ortc_session_pass(ortc_session *, size_t i, uint64_t *out_edits);

/* ---- Operators: what this library knows, for listings and coverage tables ------------------------------ */

/* One entry of a provider's kernels for an operator. */
typedef struct ortc_kernel_info {
    uint32_t size;
    int32_t since_min, since_max; /* schema versions, after lifting to the newest form */
    uint32_t reserved;
    const char *provider, *kernel; /* "cpu", "softmax.rows" */
    const uint64_t *types;         /* per type constraint of the schema: bit t: element type t */
} ortc_kernel_info;
typedef struct ortc_operator_info {
    uint32_t size;
    int32_t since, form;               /* newest version; nodes of versions below `form` are lifted to it */
    int32_t lifts;                     /* whether there is such a lifting; without one they are refused */
    const char *domain, *name, *older; /* "" for the standard's; older versions, newest first: "13 6 1" */
    const char *family;                /* kernels/<family> holds its story; a plugin's own name for it */
    uint32_t n_types, n_kernels;
    const char *const *type_names;   /* of the constraints, "T" */
    const uint64_t *types;           /* per constraint: what the standard allows, tensors' element types */
    const ortc_kernel_info *kernels; /* of every provider; of one provider in order of preference */
    int32_t composed;                /* others take its place when a model is loaded; it has no kernels */
    int32_t module;                  /* its kernels come as a module when the first model has one */
} ortc_operator_info;
/* Calls `each` for every operator, by domain and name, until it does not return 0. What it is given lives for
 * the call. Any thread. */
ORTC_EXPORT void ortc_operators(int (*each)(void *arg, const ortc_operator_info *), void *arg);

/* ---- Providers, plugins, log --------------------------------------------------------------------------- */

typedef struct ortc_provider_info {
    uint32_t size;
    uint32_t reserved;
    const char *provider, *device, *notes; /* a provider that cannot work: device "", notes say why */
    uint64_t memory_bytes, memory_free;
    uint32_t n_kernels; /* kernel entries registered for it */
    uint32_t ordinal;
} ortc_provider_info;
/* Calls `each` for every device of every provider. Any thread. */
ORTC_EXPORT void ortc_providers(int (*each)(void *arg, const ortc_provider_info *), void *arg);

/* Loads a plugin (a shared object that exports `ortc_plugin`) and registers what it brings, for models loaded
 * from then on. Plugins are never unloaded. Errors: NOT_FOUND, INCOMPATIBLE_PLUGIN (the text says in what).
 * Any thread. */
ORTC_EXPORT ortc_status ortc_plugin_load(const char *path, ortc_error *);

enum { ORTC_LOG_ERROR = 1, ORTC_LOG_WARNING = 2, ORTC_LOG_INFO = 3, ORTC_LOG_DEBUG = 4 };
/* Where messages go; NULL: nowhere, which is the default. The callback must not call ortc. Set-up only:
 * before other threads use the library. */
ORTC_EXPORT void ortc_log_set(void (*log)(void *arg, int32_t level, const char *text), void *arg,
                              int32_t max_level);

#ifdef __cplusplus
}
#endif
#endif
