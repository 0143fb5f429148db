/* graph/normalise/normalise.c: the table of normalising passes and the loop over it. */
#include "normalise.h"

/* In this order, over and over until a round changes nothing: each may make work for the others. */
const ortc_normalise_pass ortc_normalise_passes[] = {
    {"remove-identity", ortc_pass_remove_identity},
    {"fold-constants", ortc_pass_fold_constants},
    {"share-nodes", ortc_pass_share_nodes},
    {"fold-pads", ortc_pass_fold_pads},
    {"crop-windows", ortc_pass_crop_windows},
    {"conv-branches", ortc_pass_conv_branches},
    {"conv-batchnorm", ortc_pass_conv_batchnorm},
    {"decided-where", ortc_pass_decided_where},
    {"implied-expand", ortc_pass_implied_expand},
    {"constant-targets", ortc_pass_constant_targets},
    {"dead-nodes", ortc_pass_dead_nodes}, /* before what is raised, which counts readers */
    {"qlinear", ortc_pass_qlinear},
    {"flat-products", ortc_pass_flat_products},
    {"split-heads", ortc_pass_split_heads},
    {"added-views", ortc_pass_added_views},
    {"gather-first", ortc_pass_gather_first},
    {"raise-nbits", ortc_pass_raise_nbits},
    {"raise-layernorm", ortc_pass_raise_layernorm},
    {"raise-groupnorm", ortc_pass_raise_groupnorm},
    {"raise-gelu", ortc_pass_raise_gelu},
    {"raise-swish", ortc_pass_raise_swish},
    {"raise-softmax", ortc_pass_raise_softmax},
    {"raise-casts", ortc_pass_raise_casts},
    {"raise-rotary", ortc_pass_raise_rotary},
    {"raise-attention", ortc_pass_raise_attention},
    {"rounded-views", ortc_pass_rounded_views},
    {"image-views", ortc_pass_image_views},
    {"expand-batchnorm", ortc_pass_expand_batchnorm},
    {"pixel-products", ortc_pass_pixel_products},
    {"channel-products", ortc_pass_channel_products},
    {"transposed-windows", ortc_pass_transposed_windows},
};
const size_t ortc_normalise_n_passes = ORTC_LENGTH(ortc_normalise_passes);

#define MAX_ROUNDS 16 /* a bound against two passes that undo each other */

static bool is_off(const char *name, const char *const *off, size_t n_off)
{
    for (size_t i = 0; i < n_off; i++)
        if (!strcmp(off[i], name)) return true;
    return false;
}

static ortc_status run_all(ortc_normalise *n, const char *const *off, size_t n_off, uint64_t *edits)
{
    for (size_t i = 0; i < ortc_normalise_n_passes; i++) edits[i] = 0;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        uint64_t changed = 0;
        for (size_t i = 0; i < ortc_normalise_n_passes; i++) {
            if (is_off(ortc_normalise_passes[i].name, off, n_off)) continue;
            n->edits = 0;
            ORTC_TRY(ortc_stop_poll(n->stop, n->error));
            ORTC_TRY(ortc_normalise_passes[i].run(n));
            edits[i] += n->edits;
            changed += n->edits;
#ifndef NDEBUG
            ORTC_TRY(ortc_graph_verify(n->graph, n->error));
#endif
        }
        if (!changed) break;
        /* new nodes need shapes before the next round reads them */
        ORTC_TRY(ortc_graph_infer(n->graph, n->error));
    }
    return ORTC_OK;
}

ortc_status ortc_normalise_run(ortc_normalise *n, const char *const *off, size_t n_off, uint64_t *edits)
{
    const ortc_status s = run_all(n, off, n_off, edits);
    free(n->refused);
    n->refused = NULL;
    n->n_refused = 0;
    return s;
}
