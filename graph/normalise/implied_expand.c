/* graph/normalise/implied_expand.c: an Expand before an operator that broadcasts its inputs itself.
 *
 *   Div(x, Expand(length, Shape(x)))  =  Div(x, length)
 *
 * where another input has the shape of what is expanded. So exporters write a division by a length
 * (torch.nn.functional.normalize).
 */
#include "match.h"

static bool broadcasts(const ortc_node *n)
{
    static const char *const names[] = {"Add",       "And",       "Div",
                                        "Equal",     "Greater",   "GreaterOrEqual",
                                        "Less",      "Max",       "LessOrEqual",
                                        "Min",       "Mod",       "Mul",
                                        "Or",        "Pow",       "Sub",
                                        "Where",     "Xor",       "BitwiseAnd",
                                        "BitwiseOr", "BitwiseXor"};
    for (size_t i = 0; i < ORTC_LENGTH(names); i++)
        if (ortc_match_is(n, names[i])) return true;
    return false;
}

/* Whether an input besides this one has its shape. */
static bool is_implied(const ortc_node *n, uint32_t port)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (i != port && n->in[i] && n->in[i] != n->in[port] && ortc_match_same_shape(n->in[i], n->in[port]))
            return true;
    return false;
}

ortc_status ortc_pass_implied_expand(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first; n; n = n->next) {
        if (!broadcasts(n)) continue;
        for (uint32_t i = 0; i < n->n_in; i++) {
            const ortc_node *expand = n->in[i] ? ortc_match_made(n->in[i], "Expand", 2) : NULL;
            if (!expand || !expand->in[0] || !is_implied(n, i)) continue;
            if (!ortc_node_set_in(n, i, expand->in[0])) return ortc_no_memory(p->error, 0);
            p->edits++;
        }
    }
    return ORTC_OK;
}
