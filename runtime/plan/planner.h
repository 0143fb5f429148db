/* runtime/plan/planner.h: the planner's inside, shared by its stages: planner_infer.c (shapes, segments, what
 * is needed), planner_home.c (where an edge's bytes are), planner_move.c (copies between spaces, reorderings,
 * signals, waits), planner_node.c (what kernels say, steps), planner_parts.c (values that are made where
 * others want them), planner_place.c (outputs, slots, arenas), planner.c (the whole).
 */
#ifndef ORTC_PLANNER_H
#define ORTC_PLANNER_H

#include "runtime/call/call.h"
#include "choose.h"

enum { LIVES_NOWHERE, LIVES_POINTER, LIVES_INPUT, LIVES_OUTPUT, LIVES_BLOCK, LIVES_SLOT };

/* A memory and a layout in which values may be. The first forms are the spaces, plain: the number of a space
 * is that of its plain form. */
typedef struct ortc_form {
    uint8_t space;
    ortc_layout layout;
} ortc_form;
#define ORTC_MAX_FORMS 128

/* Where an edge's bytes are in one form: in the memory of its root (itself, or what it is a view of). */
typedef struct ortc_home {
    uint32_t lives;   /* LIVES_*; of a root */
    uint32_t index;   /* input, output or block */
    uint32_t root;    /* among ortc_planner.homes */
    size_t offset;    /* in the root */
    const void *data; /* LIVES_POINTER */
    size_t bytes;     /* of a root */
    bool made;        /* by a step */
    uint8_t filler;   /* of a root in host memory that a device's queue fills: the device, */
    uint32_t signal;  /* and its signal to wait for; 0: none */
} ortc_home;

/* A kernel's offer to write an output over an input that is tied state. */
typedef struct ortc_in_place {
    uint32_t step, out, in; /* edges' ids */
    uint8_t form;           /* of both */
} ortc_in_place;
/* A kernel's offer to find an input where it wants it in its output. */
typedef struct ortc_part {
    uint32_t step, port, out, in; /* edges' ids */
    uint8_t form;                 /* of both */
    size_t offset;
} ortc_part;
typedef struct ortc_space {
    ORTC_ARRAY(ortc_block) blocks;
    ORTC_ARRAY(uint32_t) block_edges; /* edge id; UINT32_MAX: workspace of the step in `from` */
} ortc_space;

/* A block of host memory that a device's queue reads: it stays until the host has waited for that signal. */
typedef struct ortc_reading {
    uint8_t device;
    uint32_t block, signal;
} ortc_reading;

typedef struct ortc_planner {
    const ortc_placed *placed;
    const ortc_graph *graph;     /* placed->graph */
    const ortc_targets *targets; /* placed->targets */
    ortc_run_env *env;
    ortc_error *error;
    ortc_program *program;
    ortc_arena scratch;
    ortc_fact *facts; /* by edge id */
    bool *needed;     /* by edge id */
    const ortc_planner_input *inputs;
    const ortc_pick *picks; /* by node id: with what it runs */
    ortc_form forms[ORTC_MAX_FORMS];
    uint32_t n_forms;
    ortc_home *homes; /* by form, then by edge id: ortc_planner_at */
    uint8_t *primary; /* by edge id: the form in which it is made */
    const bool *wanted;
    const uint32_t *memory;       /* per output */
    const ortc_node *begin, *end; /* the segment; end NULL: to the last node */
    ortc_value *const *made;      /* slots of earlier segments; NULL: this is the first */
    bool *asked;   /* by edge id: read on some path to a wanted output, whatever shapes turn out to be */
    bool *crosses; /* by edge id: made here, read by a later segment or an output of a chain */
    bool once;     /* forms may pass */
    bool late;     /* a kernel of this segment makes extents that are not known yet */
    ORTC_ARRAY(ortc_in_place) in_place;
    ORTC_ARRAY(ortc_part) parts; /* in the order of steps */
    ORTC_ARRAY(ortc_slot) slots;
    ORTC_ARRAY(ortc_step) steps;
    ortc_space spaces[ORTC_MAX_SPACES];
    uint32_t waited[ORTC_MAX_DEVICES]; /* number of the last signal that the host has waited for */
    ORTC_ARRAY(ortc_reading) reading;
} ortc_planner;

/* planner_infer.c */
ortc_status ortc_planner_seed(ortc_planner *);
void ortc_planner_mark_asked(ortc_planner *); /* what a wanted output may need, by the graph alone */
/* Whether the node's kernel is to make this output; if not it is absent for everybody: the node leaves it
 * out, or nothing that was asked for needs it. */
bool ortc_planner_makes(const ortc_planner *, const ortc_node *, uint32_t port);
ortc_status ortc_planner_infer(ortc_planner *); /* shapes, up to the segment's end, which it sets */
void ortc_planner_mark_needed(ortc_planner *);  /* edges whose bytes some step must provide */
bool ortc_planner_runs(const ortc_planner *, const ortc_node *);
bool ortc_fact_is_sized(const ortc_fact *); /* every extent is a number */

/* planner_values.c: strings, and what is not a tensor */
bool ortc_fact_is_value(const ortc_fact *); /* a sequence, map or optional */
/* ... or strings: kernels give it as a value, and it lives in a slot */
bool ortc_fact_is_given(const ortc_fact *);
/* as many strings: one block may serve both, dense */
bool ortc_fact_same_strings(const ortc_fact *, const ortc_fact *);
/* extents (or the type) are known only when the node has run */
bool ortc_fact_is_late(const ortc_fact *);
/* some edge that is asked for is given, or an output that is one */
bool ortc_planner_has_values(const ortc_planner *);
ortc_status ortc_planner_value_operand(ortc_planner *, const ortc_edge *, bool input, ortc_operand *);
ortc_status ortc_planner_copy_value(ortc_planner *, const ortc_edge *); /* to the edge's own slot */

/* planner_home.c */
bool ortc_fact_bytes(const ortc_fact *, size_t *out); /* of a tensor whose size is known */
/* the same in a form, with an error that says why not */
ortc_status ortc_planner_bytes(ortc_planner *, const ortc_edge *, uint8_t form, size_t *out);
/* of an edge that is read; where it is made */
ortc_status ortc_planner_home(ortc_planner *, const ortc_edge *, ortc_home **out);
ortc_status ortc_planner_pack(ortc_planner *, const ortc_edge *, ortc_open_device *, const ortc_packing *,
                              const void *param, size_t param_bytes, ortc_pack_item **out);
ortc_status ortc_planner_space_of(const ortc_planner *, uint32_t memory, const char *what, uint8_t *out);
static inline ortc_home *ortc_planner_at(const ortc_planner *p, const ortc_edge *e, uint8_t form)
{
    return &p->homes[form * p->graph->edges.count + e->id];
}
static inline uint32_t ortc_planner_number(const ortc_planner *p, const ortc_home *h)
{
    return (uint32_t)(h - p->homes);
}
static inline ortc_home *ortc_planner_root(const ortc_planner *p, const ortc_home *h)
{
    return &p->homes[h->root];
}
/* Whose home it is. */
static inline ortc_edge *ortc_planner_owner(const ortc_planner *p, uint32_t home)
{
    return p->graph->edges.data[home % p->graph->edges.count];
}
/* The blocks of a form's memory. */
static inline ortc_space *ortc_planner_space(ortc_planner *p, uint8_t form)
{
    return &p->spaces[p->forms[form].space];
}
/* The form of a space and a layout, which some kernel was chosen with. */
uint8_t ortc_planner_form(const ortc_planner *, uint8_t space, ortc_layout);

/* planner_move.c */
/* its bytes are in `form` from here on */
ortc_status ortc_planner_reach(ortc_planner *, const ortc_edge *, uint8_t form);
ortc_status ortc_planner_ready(ortc_planner *, const ortc_edge *); /* the host may read it from here on */
void ortc_planner_note_use(ortc_planner *, const ortc_edge *, uint8_t form, uint32_t step);
/* A copy of an edge's bytes to an output, a slot, or (to ORTC_FROM_ARENA) its home in another space; forms
 * are plain. */
ortc_status ortc_planner_copy(ortc_planner *, const ortc_edge *, uint8_t from, uint16_t to, uint32_t index,
                              uint8_t to_space, size_t bytes);
ortc_status ortc_planner_add_block(ortc_planner *, uint8_t space, size_t bytes, uint32_t step, uint32_t edge,
                                   uint32_t *out);
ortc_status ortc_planner_bring_all(ortc_planner *);                  /* before the first step */
bool ortc_planner_captures(const ortc_planner *, const ortc_step *); /* a kernel's; its operands are placed */
ortc_status ortc_planner_mark_ranges(ortc_planner *); /* of steps that can be captured, when all are there */
void ortc_planner_end_reading(ortc_planner *);        /* after the last step */

/* planner_node.c */
ortc_status ortc_planner_node(ortc_planner *, const ortc_node *); /* one that runs */
/* From one layout to another in one space: a step whose result is at home in `to`. */
ortc_status ortc_planner_reorder(ortc_planner *, const ortc_edge *, uint8_t from, uint8_t to);
/* where and how its kernel wants a port */
uint8_t ortc_planner_port_form(const ortc_planner *, const ortc_node *, uint32_t port, bool input);
void ortc_step_drop_pstate(const ortc_step *);

/* planner_parts.c */
ortc_status ortc_planner_place_parts(ortc_planner *); /* before outputs and slots */

/* planner_place.c */
bool ortc_planner_is_output(const ortc_planner *, const ortc_edge *); /* a wanted one */
ortc_status ortc_planner_place_outputs(ortc_planner *);
void ortc_planner_place_ties(ortc_planner *); /* after the outputs */
ortc_status ortc_planner_fill_slots(ortc_planner *);
ortc_status ortc_planner_place_blocks(ortc_planner *);

#endif
