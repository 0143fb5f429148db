/* graph/onnx/lower.c: raised nodes go back to their bodies where their operator is newer than the rest of the
 * model needs.
 *
 * A model of opset 17 has been chosen to load in runtimes that know opset 17. What normalising raised in it
 * (Gelu-20, RMSNormalization-23, Attention-23) would take it to theirs, so those nodes are written as what
 * they were; and so are composed ones that were kept (MatMulNBits), which the standard does not know.
 */
#include "export.h"
#include "graph/ir/body.h"

int32_t ortc_export_since(const ortc_node *n)
{
    /* what came to an operator after the opset that is written at least, and compositions use; or the
     * input of that number; neither: elements of 4 or 2 bits */
    static const struct {
        const char *type, *attribute;
        int32_t since;
        uint32_t input;
    } later[] = {{"Split", "num_outputs", 18},
                 {"Shape", "start", 15},
                 {"Pad", NULL, 18, 3},
                 {"DequantizeLinear", "block_size", 21},
                 {"QuantizeLinear", "block_size", 21},
                 {"QuantizeLinear", "output_dtype", 21},
                 {"DequantizeLinear", NULL, 21},
                 {"QuantizeLinear", NULL, 21},
                 {"DequantizeLinear", "output_dtype", 23}};
    int32_t since = n->op->form;
    for (size_t k = 0; !*n->domain && k < ORTC_LENGTH(later); k++) {
        bool uses = false;
        if (strcmp(n->type, later[k].type) != 0) continue;
        for (uint32_t i = 0; later[k].attribute && i < n->n_attrs; i++)
            uses |= !strcmp(n->attrs[i].name, later[k].attribute);
        if (later[k].input) uses = ortc_node_in_edge(n, later[k].input) != NULL;
        for (uint32_t i = 0; !later[k].attribute && !later[k].input && i < n->n_in; i++)
            uses |= n->in[i] && n->in[i]->type && n->in[i]->type->kind == ORTC_KIND_TENSOR &&
                    ortc_dtype_bits(n->in[i]->type->dtype) < 8;
        if (uses && later[k].since > since) since = later[k].since;
    }
    return since;
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* No operator of the standard, but made of those. */
static bool is_composed(const ortc_node *n)
{
    return ortc_node_is_raised(n) && n->op->flags & ORTC_OP_COMPOSED;
}

/* The least opset that the nodes need, raised ones left out. */
static int64_t needed(const ortc_graph *g, int64_t opset)
{
    for (const ortc_node *n = g->first; n; n = n->next) {
        if (n->op && !*n->domain && !ortc_node_is_raised(n)) opset = most(opset, ortc_export_since(n));
        if (is_composed(n)) opset = needed(n->body, opset);
        for (uint32_t i = 0; i < n->n_attrs; i++) {
            const ortc_attr *a = &n->attrs[i].value;
            for (size_t k = 0; (a->kind == ORTC_ATTR_GRAPH || a->kind == ORTC_ATTR_GRAPHS) && k < a->count;
                 k++)
                opset = needed(a->u.graphs[k], opset);
        }
    }
    return opset;
}

static bool is_newer(const ortc_node *n, int64_t opset)
{
    return is_composed(n) || (ortc_node_is_raised(n) && !*n->domain && n->op->form > opset);
}

ortc_status ortc_onnx_lower(const ortc_graph *g, const ortc_model_info *info, ortc_graph **out,
                            ortc_error *error)
{
    int64_t opset = ORTC_EXPORT_LEAST_OPSET;
    bool any = false;

    *out = NULL;
    for (size_t i = 0; i < info->n_opsets; i++)
        if (!*info->opset_domains[i]) opset = most(opset, info->opset_versions[i]);
    opset = needed(g, opset);
    for (const ortc_node *n = g->first; n && !any; n = n->next) any = is_newer(n, opset);
    if (!any) return ORTC_OK;
    ORTC_TRY(ortc_graph_clone(g, out, error));
    for (ortc_node *n = (*out)->first, *next; n; n = next) {
        next = n->next;
        if (is_newer(n, opset) &&
            ortc_node_expand(n, &next, error) != ORTC_OK) { /* then look at what came of it */
            ortc_graph_destroy(*out);
            *out = NULL;
            return ORTC_OUT_OF_MEMORY;
        }
    }
    return ORTC_OK;
}
