/* runtime/plan/plan.h: programs: what a placed graph does for one key, laid out so that a run only walks it.
 *
 * The key is the type, dims and presence of every input, the values of those inputs that decide shapes, and
 * which outputs are wanted. A program is immutable once built; contexts run it through frames
 * (runtime/execute). The planner:
 *
 *   infer   every shape, with numbers; small integer values are carried along, and nodes that only make them
 *           vanish
 *   need    backwards from the wanted outputs: what must run at all
 *   choose  which kernel runs each node, and how values lie between them (choose.h)
 *   plan    each kernel's: algorithm, workspace, packed constants, views, in-place
 *   place   every tensor: constant, input, output, literal, or a range of the arena by lifetime
 *
 * Extents that only the run knows end a segment: the program stops behind the node that makes them (or before
 * one whose shape needs values that only the run knows), and the rest is planned when they are there, under a
 * key of its own: the program before, the extents, the values that decide shapes. What later segments read
 * lives in slots: values of their own, one per edge, in the context.
 *
 * Devices with memory of their own, and layouts: every tensor lives first in the space (host, or one device's
 * memory) and the layout in which it is made, and is copied and reordered on demand by steps of its own.
 * Copies and kernels of a device go through its queue in order; a queue signals behind a copy to the host,
 * and the host waits before the first step that reads it. Host memory that a queue may still be reading is
 * not reused before the host has waited for it.
 */
#ifndef ORTC_RUN_PLAN_H
#define ORTC_RUN_PLAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "graph/ir/infer.h"
#include "runtime/place/placed.h"

/* ---- Packed constants (pack.c): owned by the model ----------------------------------------------------- */

typedef struct ortc_pack_item {
    ortc_packed packed;            /* first: what kernels see */
    uint32_t references;           /* programs that use it; under the store's lock */
    bool ready, failed, cancelled; /* failed: no longer in the store */
    uint64_t constant;             /* id */
    ortc_open_device *device;      /* retained; whose memory it lies in, and whose kernels read it */
    size_t joined;                 /* its bytes in huge pages, where its memory is its own */
    const char *id;                /* of the packing */
    size_t param_bytes;
    uint64_t hash;
    struct ortc_pack_item *next;
    unsigned char param[];
} ortc_pack_item;

typedef struct ortc_pack_store {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ortc_pack_item *buckets[256];
    uint64_t bytes, max_bytes; /* max 0: none */
    uint64_t constants;        /* bytes of the model's constants in memory of ours, under the same limit */
    bool interleaved;          /* forms in host memory lie over all nodes in turn */
    atomic_bool unjoined;      /* some forms may have small pages, */
    bool fresh;                /* new ones among them */
    int64_t credit, cost;      /* ns: that joining them may take, that two megabytes took */
} ortc_pack_store;

/* A form that one run reads, in memory that it shares with those of other steps: made anew where its step
 * begins. So the first result of large weights waits for no memory of their own, which the second run packs
 * them into. */
#define ORTC_PASSING_MOST ((size_t)32 << 20)  /* larger forms are packed for good */
#ifndef ORTC_PASSING_LEAST                    /* else of the tests, for whose models that is 0 in one build */
#define ORTC_PASSING_LEAST ((int64_t)4 << 20) /* of a model's weights */
#endif
typedef struct ortc_passing {
    ortc_pack_item *item; /* in no store */
    const ortc_constant *constant;
    const ortc_packing *how;
    uint32_t step;
} ortc_passing;

struct ortc_run_env;
bool ortc_pack_store_init(ortc_pack_store *, uint64_t max_bytes);
void ortc_pack_store_deinit(ortc_pack_store *);
/* The packed form, made now if it is not there. One reference for the caller. */
ortc_status ortc_pack_acquire(ortc_pack_store *, const ortc_constant *, ortc_open_device *,
                              const ortc_packing *, const void *param, size_t param_bytes,
                              struct ortc_run_env *, ortc_pack_item **out, ortc_error *);
void ortc_pack_release(ortc_pack_store *, ortc_pack_item *);
/* The same where it is there already; NULL: it is not. */
ortc_pack_item *ortc_pack_find(ortc_pack_store *, const ortc_constant *, const ortc_open_device *,
                               const ortc_packing *, const void *param, size_t param_bytes);
/* A form that passes, without memory yet; freed with its item. LIMIT: too large to pack. */
ortc_status ortc_passing_make(const ortc_constant *, const ortc_packing *, const void *param,
                              size_t param_bytes, ortc_passing *out, ortc_error *);
/* Puts it into its memory. */
ortc_status ortc_passing_fill(const ortc_passing *, struct ortc_run_env *, ortc_error *);
/* While `unjoined`, small pages of forms become huge ones, behind a run of `ns` that packed nothing, for an
 * eighth of its time. Products that read weights in small pages from memory take up to a third longer. */
void ortc_pack_join(ortc_pack_store *, int64_t ns);
/* Whether one of these has no other user. */
bool ortc_pack_alone(ortc_pack_store *, ortc_pack_item *const *, size_t count);
/* The same bytes at an address that is a multiple of their element size (in one-file models they lie
 * anywhere). */
extern const ortc_packing ortc_packing_aligned;
bool ortc_packing_has(const ortc_packing *, uint32_t flag);
/* The same bytes in the memory of a device. */
extern const ortc_packing ortc_packing_plain;

/* ---- Programs ------------------------------------------------------------------------------------------ */

enum {
    ORTC_FROM_NOTHING,
    ORTC_FROM_POINTER,
    ORTC_FROM_INPUT,
    ORTC_FROM_OUTPUT,
    ORTC_FROM_ARENA,
    ORTC_FROM_SLOT
};

/* One tensor as a step sees it. */
typedef struct ortc_operand {
    ortc_view view; /* data NULL but for constants and literals; dims in the program's arena */
    uint16_t from;  /* ORTC_FROM_* */
    uint16_t space; /* ARENA: which */
    uint32_t edge;  /* the graph's: whose value it is */
    uint32_t index; /* of the graph's input, of the wanted output; SLOT: the edge's id */
    size_t offset;  /* into that memory */
    uint32_t root;  /* the edge whose value lies there: its own, or what it is a view of */
    uint32_t over;  /* of an output: 1 + the input of its step whose place it takes; 0: none */
    bool part;      /* of an input: made where its step's output wants it */
    uint8_t form;   /* while planning: of the planner's, in which memory and layout */
} ortc_operand;

enum { ORTC_STEP_KERNEL, ORTC_STEP_COPY, ORTC_STEP_SIGNAL, ORTC_STEP_WAIT };

/* What a candidate of a step's node has offered. */
typedef struct ortc_step_offer {
    const char *name;
    double clocks;
    ortc_layout layout; /* of the first output */
} ortc_step_offer;

/* Bytes in front of what each of several workers writes: kernels ask for what comes next a little beyond what
 * they have, and lines that another thread is writing would go to and fro between cores with every tile. */
static inline size_t ortc_worker_gap(uint32_t threads) { return threads > 1 ? 8192 : 0; }

typedef struct ortc_step {
    uint8_t kind; /* ORTC_STEP_* */
    /* of the targets: whose kernel it is, whose queue copies, signals or is waited for */
    uint8_t device;
    uint16_t queue; /* of the context's queues on that device; 0: the only one so far */
    bool captures;  /* may be part of a captured graph */
    uint32_t event; /* SIGNAL, WAIT (the host waits): which of the frame's events */
    uint32_t n_in, n_out;
    const ortc_node *node; /* COPY: NULL */
    const ortc_kernel *kernel;
    void *state;                   /* of the kernel's prepare: borrowed from the node's site */
    const char *name;              /* of the kernel's way, for display */
    double clocks;                 /* as it has offered; 0: it had no rival */
    const ortc_step_offer *offers; /* n_offers: all of them; NULL: there was no choice */
    uint32_t n_offers;
    void *pstate;
    ortc_operand *in, *out; /* COPY: in[0] to out[0], copy_bytes */
    size_t copy_bytes;
    /* reads or makes strings, sequences, maps or optionals; COPY: of such a value to a slot */
    bool values;
    /* bytes; in all workspace + per_worker * threads; arena offset. A worker's begin with a gap. */
    size_t workspace, workspace_per_worker, workspace_at;
    double flops, bytes;
} ortc_step;

typedef struct ortc_program_output {
    ortc_dtype dtype;
    int32_t rank;
    const int64_t *dims;
    size_t bytes;
    const ortc_type *type;
    uint32_t memory; /* where it is placed */
    bool in_place;   /* of tied state: written over the input it is tied to */
} ortc_program_output;

typedef struct ortc_slot {
    uint32_t edge;
    /* the kernel makes the value, by resize or give: late extents, strings, what is not a tensor */
    bool late;
    bool deciding; /* its values are part of the next segment's key */
    uint8_t space; /* in whose memory */
    ortc_dtype dtype;
    int32_t rank;
    const int64_t *dims;
} ortc_slot;

/* Values that the planner knew and a device's kernels read: put there when the program is made. */
typedef struct ortc_literal {
    ortc_open_device *device; /* retained */
    void *data;
    size_t bytes;
} ortc_literal;

/* Steps in a row that one device can run as a captured graph. */
typedef struct ortc_range {
    uint32_t first, count;
    uint8_t device;
} ortc_range;

typedef struct ortc_program {
    atomic_int references;
    ortc_arena arena;
    uint64_t id; /* unique in the process */
    ortc_step *steps;
    uint32_t n_steps, n_views, n_folded, n_outputs;
    ortc_program_output *outputs;        /* per output of the graph; dtype 0: not wanted */
    size_t arena_bytes[ORTC_MAX_SPACES]; /* per space of the targets */
    size_t workspace_bytes, constant_bytes, packed_bytes;
    uint32_t n_events;
    ortc_range *ranges;
    uint32_t n_ranges;
    uint32_t faults; /* bit d: kernels of device d may set its fault word */
    /* bit d: device d has work of this program in its queue when the last step is queued */
    uint32_t queues;
    /* segments */
    /* one of several, or with values that kernels make: outputs of the graph are taken from slots */
    bool chained;
    const ortc_node *end; /* where the next segment begins; NULL: this is the last */
    ortc_slot *slots;     /* what this segment makes for later ones and for outputs */
    uint32_t n_slots;
    ORTC_ARRAY(ortc_pack_item *) packs;
    bool once; /* for one run, in no cache: forms are passing, or were left */
    ORTC_ARRAY(ortc_passing)
    passing;    /* by step */
    void *room; /* room_bytes: of those of a step */
    size_t room_bytes;
    ORTC_ARRAY(ortc_literal) literals;
    ortc_pack_store *store;
    size_t bytes; /* what the cache counts */
    /* the cache's */
    uint64_t hash;
    void *key;
    size_t key_bytes;
    uint64_t last_used;
    bool held; /* as if it had been used later (cache.c) */
    struct ortc_program *next;
} ortc_program;

/* One input of a run, as the key and the planner see it. */
typedef struct ortc_planner_input {
    const ortc_value *value; /* NULL: left out (its default is used) */
    /* 1 + the output whose result may be written over the value, which is tied state's; 0: none */
    uint32_t tied;
} ortc_planner_input;

/* What a program is made for; all borrowed. */
typedef struct ortc_plan_request {
    const ortc_planner_input *inputs; /* per input of the graph */
    const bool *wanted;               /* per output of the graph */
    const uint32_t *memory;           /* per output: where it goes (0 host, else a device's memory) */
    const ortc_program *after;        /* the segment before; NULL: this is the first */
    ortc_value *const *slots;         /* by edge id, what is made so far; NULL: none */
    bool once;                        /* for one run: forms may pass */
} ortc_plan_request;

/* Makes the forms that pass which the step reads. */
ortc_status ortc_program_fill(const ortc_program *, uint32_t step, struct ortc_run_env *, ortc_error *);
/* Plans a bound graph. Packed forms are taken from the store, which must outlive the program, as the placed
 * graph must. */
ortc_status ortc_program_build(const ortc_placed *, ortc_pack_store *, const ortc_plan_request *,
                               struct ortc_run_env *, ortc_program **out, ortc_error *);
/* Whether a program is sound, whatever made it: every read is of bytes that were made before and not
 * written over since, lies inside what it is a view of, and comes after the wait for the copy that brought
 * it; nothing is written where a queue may still be reading, nor over a step's own inputs but where it says
 * so; signals, waits and captured ranges are in order; wanted outputs are made. INTERNAL with the first
 * violation. Every plan is checked in debug and sanitizer builds (check.c). */
ortc_status ortc_program_check(const ortc_program *, const ortc_placed *, const ortc_plan_request *,
                               ortc_error *);
ortc_program *ortc_program_retain(ortc_program *);
void ortc_program_release(ortc_program *);

/* Lays blocks with lifetimes into one range (offsets.c): a block lives from step `from` to step `to`, both
 * included. */
typedef struct ortc_block {
    size_t bytes; /* a multiple of ORTC_ALIGNMENT */
    uint32_t from, to;
    int32_t reuse; /* index of a block whose place this one may take in its last step; -1: none */
    size_t offset; /* out */
} ortc_block;
/* Blocks are in ascending order of `from`. Returns the bytes of the range; SIZE_MAX: no memory. */
size_t ortc_lay_out(ortc_block *, uint32_t count);

/* ---- The cache (cache.c): least recently used, by bytes; with packed constants, later ------------------ */

typedef struct ortc_plan_cache {
    pthread_mutex_t lock;
    ortc_program *buckets[256];
    uint64_t bytes, max_bytes, clock;
    atomic_uint_fast64_t made; /* programs built, for statistics */
} ortc_plan_cache;
bool ortc_plan_cache_init(ortc_plan_cache *, uint64_t max_bytes);
void ortc_plan_cache_deinit(ortc_plan_cache *);
/* A reference for the caller; NULL: not there. */
ortc_program *ortc_plan_cache_get(ortc_plan_cache *, const void *key, size_t key_bytes);
/* Puts a program in (it keeps a reference of its own) and evicts what is over the budget, the newest
 * never. */
bool ortc_plan_cache_put(ortc_plan_cache *, ortc_program *, const void *key, size_t key_bytes);
uint64_t ortc_plan_cache_clear(ortc_plan_cache *); /* bytes freed */
/* Evicts down to this many bytes, `but` never (NULL: all); bytes that are left. */
uint64_t ortc_plan_cache_shrink(ortc_plan_cache *, const ortc_program *but, uint64_t to);

#endif
