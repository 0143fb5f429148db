/* kernels/norm/source.c: what a normalisation on the cpu reads: its own node's inputs, or, in a group behind
 * DequantizeLinear, those of the group (graph/specialise/between_bytes.c). */
#include "kernels/norm/cpu.h"

static const char *const norms[] = {"LayerNormalization", "RMSNormalization", "InstanceNormalization",
                                    "GroupNormalization"};

static int is_norm(const ortc_node *n)
{
    int yes = 0;
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        yes |= !*ortc_node_domain(n) && !strcmp(ortc_node_op(n), norms[i]);
    return yes;
}

/* Of f32 and with one result, as a group has it. */
static int is_alone(const ortc_node *n)
{
    return !ortc_node_epilogue(n) && ortc_node_out(n, 0).dtype == ORTC_F32 && !ortc_node_out(n, 1).type &&
           !ortc_node_out(n, 2).type;
}

/* With an epilogue a group is a node of its own body; its inputs are the first of that. */
static const ortc_graph *group_of(const ortc_node *n)
{
    const ortc_graph *body = ortc_node_body(n);
    for (const ortc_node *i = body ? ortc_graph_next(body, NULL) : NULL; i; i = ortc_graph_next(body, i))
        if (!strcmp(ortc_node_op(i), "Group")) return ortc_node_body(i);
    return body;
}

int ortc_norm_source_of(const ortc_node *n, ortc_norm_source *out)
{
    *out = (ortc_norm_source){.norm = n, .port = {0, 1, 2}};
    if (strcmp(ortc_node_op(n), "Group") != 0) return is_norm(n);
    const ortc_graph *body = group_of(n);
    const ortc_node *dq = body ? ortc_graph_next(body, NULL) : NULL,
                    *norm = dq ? ortc_graph_next(body, dq) : NULL;
    if (!norm || ortc_graph_next(body, norm) || ortc_graph_n_out(body) != 1 || !is_norm(norm) ||
        !is_alone(norm) || !ortc_read_dequantise(body, dq, &out->x) || !ortc_follows(norm, dq))
        return 0;
    out->norm = norm;
    out->port[0] = out->x.port;
    int good = 1;
    for (uint32_t k = 1; k < 3; k++) {
        const ortc_port p = ortc_node_in(norm, k);
        out->port[k] = ortc_group_port(body, &p);
        good &= !p.type || (out->port[k] >= 0 && p.dtype == ORTC_F32);
    }
    return good && out->port[1] >= 0;
}
