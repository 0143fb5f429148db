/* graph/normalise/normalise.h: device-neutral passes: standard operators in, standard operators out.
 *
 * Run once on a model after inference; the result is shared by its sessions and is what `ortc optimize`
 * writes. One pass a file; the table in normalise.c orders them and repeats them until nothing changes.
 */
#ifndef ORTC_NORMALISE_H
#define ORTC_NORMALISE_H

#include "base/stop.h"
#include "graph/ir/graph.h"

typedef struct ortc_normalise {
    ortc_graph *graph;
    ortc_error *error;
    const ortc_stop *stop; /* NULL: nobody ends it before its time */
    /* Computes a node whose inputs are constants: n_out new constants for the caller (NULL where not wanted).
     * LIMIT: that is more than what may be done; the node stays, and is counted. CANCELLED, DEADLINE,
     * OUT_OF_MEMORY end the passes. Others: it cannot be; the node stays. */
    ortc_status (*evaluate)(void *arg, const ortc_node *, ortc_constant **out, ortc_error *);
    void *evaluate_arg;
    uint64_t weight_bytes; /* of the model */
    uint64_t edits;        /* what the pass has changed so far */
    uint64_t unfolded;     /* nodes that were more than what may be done */
    /* by node id: `evaluate` has said no, and is not asked again; n_refused of them */
    bool *refused;
    uint32_t n_refused;
} ortc_normalise;

typedef struct ortc_normalise_pass {
    const char *name;
    ortc_status (*run)(ortc_normalise *);
} ortc_normalise_pass;

extern const ortc_normalise_pass ortc_normalise_passes[];
extern const size_t ortc_normalise_n_passes;

ortc_status ortc_pass_dead_nodes(ortc_normalise *);
ortc_status ortc_pass_fold_constants(ortc_normalise *);
ortc_status ortc_pass_remove_identity(ortc_normalise *);
ortc_status ortc_pass_rounded_views(ortc_normalise *);
ortc_status ortc_pass_share_nodes(ortc_normalise *);
ortc_status ortc_pass_transposed_windows(ortc_normalise *);
/* Whether that pass takes the node, whose weights then stay 8 bits. */
bool ortc_transposed_windows_takes(ortc_node *);
ortc_status ortc_pass_fold_pads(ortc_normalise *);
ortc_status ortc_pass_crop_windows(ortc_normalise *);
ortc_status ortc_pass_conv_batchnorm(ortc_normalise *);
ortc_status ortc_pass_conv_branches(ortc_normalise *);
ortc_status ortc_pass_decided_where(ortc_normalise *);
ortc_status ortc_pass_implied_expand(ortc_normalise *);
ortc_status ortc_pass_constant_targets(ortc_normalise *);
ortc_status ortc_pass_qlinear(ortc_normalise *);
ortc_status ortc_pass_flat_products(ortc_normalise *);
ortc_status ortc_pass_split_heads(ortc_normalise *);
ortc_status ortc_pass_added_views(ortc_normalise *);
ortc_status ortc_pass_gather_first(ortc_normalise *);
ortc_status ortc_pass_raise_nbits(ortc_normalise *);
ortc_status ortc_pass_raise_layernorm(ortc_normalise *);
ortc_status ortc_pass_raise_gelu(ortc_normalise *);
ortc_status ortc_pass_raise_groupnorm(ortc_normalise *);
ortc_status ortc_pass_raise_swish(ortc_normalise *);
ortc_status ortc_pass_raise_softmax(ortc_normalise *);
ortc_status ortc_pass_raise_rotary(ortc_normalise *);
ortc_status ortc_pass_raise_attention(ortc_normalise *);
ortc_status ortc_pass_image_views(ortc_normalise *);
ortc_status ortc_pass_expand_batchnorm(ortc_normalise *);
ortc_status ortc_pass_pixel_products(ortc_normalise *);
ortc_status ortc_pass_channel_products(ortc_normalise *);
ortc_status ortc_pass_raise_casts(ortc_normalise *);

/* Folding makes results of at most the inputs' bytes and so many, or a share of the model's weights
 * (fold_constants.c); of what is dequantised so many. */
#define ORTC_FOLDED_GROWTH ((size_t)1 << 20)
/* Whether e, dequantised, is a weight that raise_nbits.c makes one of few bits. */
bool ortc_is_nbits_weight(const ortc_edge *e);

/* Runs the table over a graph, leaving out the passes named in `off`; edits[i] counts what pass i changed. */
ortc_status ortc_normalise_run(ortc_normalise *, const char *const *off, size_t n_off, uint64_t *edits);

#endif
