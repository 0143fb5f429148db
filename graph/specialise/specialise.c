/* graph/specialise/specialise.c: the table of specialising passes. */
#include "specialise.h"

const ortc_specialise_pass ortc_specialise_passes[] = {
    {"integer-moves", ortc_pass_integer_moves},
    {"integer-products", ortc_pass_integer_products}, /* whose epilogues are more than its own */
    {"fuse-epilogue", ortc_pass_fuse_epilogue},
    {"sibling-products", ortc_pass_sibling_products}, /* with their epilogues */
    {"group-pointwise", ortc_pass_group_pointwise},
};
const size_t ortc_specialise_n_passes = ORTC_LENGTH(ortc_specialise_passes);

ortc_status ortc_specialise_run(ortc_specialise *s, uint64_t *edits)
{
    for (size_t i = 0; i < ortc_specialise_n_passes; i++) {
        s->edits = 0;
        ORTC_TRY(ortc_specialise_passes[i].run(s));
        edits[i] = s->edits;
#ifndef NDEBUG
        ORTC_TRY(ortc_graph_verify(s->graph, s->error));
#endif
    }
    return ORTC_OK;
}
