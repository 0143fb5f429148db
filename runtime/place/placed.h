/* runtime/place/placed.h: a placed graph: where each node runs, and with which kernels.
 *
 * A table beside the graph, by node id: the graph itself knows no device and no kernel. A node's candidates
 * are kernels of one device, in order of preference, which read and write the same ports on the host; the
 * last of them takes whatever its `supports` accepted. Filled by place and bind, const afterwards, shared by
 * threads.
 */
#ifndef ORTC_PLACED_H
#define ORTC_PLACED_H

#include "base/stop.h"
#include "graph/ir/graph.h"
#include "runtime/device/targets.h"

typedef struct ortc_candidate {
    const ortc_kernel *kernel;
    void *state; /* of kernel->prepare */
} ortc_candidate;

typedef struct ortc_site {
    uint32_t device;       /* index into the targets */
    uint32_t n_candidates; /* 0: not placed yet */
    ortc_candidate *candidates;
    const char *reasons; /* why earlier providers declined; NULL: nobody was asked */
    /* ortc_offer.form of the kernel that would be chosen for the expected extents (plan/settle.c); 0: any */
    uint64_t form;
} ortc_site;

/* What brings values of one type into other layouts, in one space: a kernel of the first device there that
 * has one for "ortc.Reorder". */
typedef struct ortc_mover {
    uint32_t device, space;
    ortc_dtype dtype;
    ortc_node *node; /* of a graph of its own: what the kernel was prepared with, and its name in profiles */
    ortc_candidate candidate;
} ortc_mover;

/* A choice that the caller has made (ortc_session_options.choose). */
typedef struct ortc_forced {
    const char *of;     /* a node's name, or an operator's */
    const char *kernel; /* an offer's name; "": any */
    bool laid_out;      /* only offers with this layout of the first output will do */
    ortc_layout layout;
} ortc_forced;

typedef struct ortc_placed {
    ortc_graph *graph; /* borrowed; its arena holds what the table points to */
    const ortc_targets *targets;
    ORTC_ARRAY(ortc_site) sites; /* by node id */
    bool *decides;               /* per graph input: its values are part of the key */
    bool *deciding;              /* per edge: its values decide shapes */
    bool *shapes_only;           /* per edge, of the first n_marked: nothing but shapes depends on it */
    size_t n_marked;
    const ortc_forced *forced; /* borrowed; n_forced of them */
    size_t n_forced;
    const ortc_stop *stop; /* while it is made; NULL afterwards, and where nobody ends it before its time */
    uint32_t ask;          /* ORTC_ASK_*, of every question to a kernel */
    ORTC_ARRAY(ortc_mover) movers;
    ortc_graph *movers_graph;
    /* for the expected extents (plan/settle.c), by edge id, what was chosen, by node id; NULL: nothing was */
    const struct ortc_fact *expected;
    const struct ortc_pick *settled;
} ortc_placed;

/* The node's site; it must be in the table. */
static inline ortc_site *ortc_site_of(const ortc_placed *p, const ortc_node *n)
{
    return &p->sites.data[n->id];
}
static inline const ortc_target *ortc_target_of(const ortc_placed *p, const ortc_node *n)
{
    return &p->targets->list[ortc_site_of(p, n)->device];
}
/* What a node's kernel is like in everything in which its candidates agree: flags, ports on the host. */
static inline const ortc_kernel *ortc_kernel_of(const ortc_placed *p, const ortc_node *n)
{
    const ortc_site *s = ortc_site_of(p, n);
    return s->n_candidates ? s->candidates[0].kernel : NULL;
}

/* "aBcd16b" (op.h): added to a text; read, false: that is none. */
void ortc_text_layout(ortc_text *, ortc_layout, int32_t rank);
bool ortc_layout_parse(const char *text, ortc_layout *out);

/* NULL: values of this type stay plain there. */
static inline const ortc_mover *ortc_mover_of(const ortc_placed *p, uint32_t space, ortc_dtype t)
{
    for (size_t i = 0; i < p->movers.count; i++)
        if (p->movers.data[i].space == space && p->movers.data[i].dtype == t) return &p->movers.data[i];
    return NULL;
}

/* Makes the table as large as the graph, whose nodes may have become more. false: no memory. */
bool ortc_placed_cover(ortc_placed *);
/* Releases the kernels' states and the table; the graph stays. */
void ortc_placed_deinit(ortc_placed *);

#endif
