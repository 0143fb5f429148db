/* kernels/gemm/siblings.c: see siblings.h. */
#include "kernels/gemm/siblings.h"

#include <string.h>

static int32_t port_of(const ortc_graph *body, uint32_t edge)
{
    for (uint32_t i = 0; edge && i < ortc_graph_n_in(body); i++)
        if (ortc_graph_in(body, i).edge == edge) return (int32_t)i;
    return -1;
}

int ortc_sibling_read(const ortc_graph *body, const ortc_node *n, ortc_sibling *s, const char **why)
{
    const uint32_t result = ortc_node_out(n, 0).edge;
    if (*ortc_node_domain(n) || (strcmp(ortc_node_op(n), "MatMul") && strcmp(ortc_node_op(n), "Gemm")))
        return *why = "a node of the group is no product", 0;
    s->n_in = ortc_node_n_in(n);
    if (s->n_in > ORTC_SIBLING_PORTS || ortc_node_in(n, 1).rank != 2)
        return *why = "a product's B is no matrix, or it has too many inputs", 0;
    for (uint32_t i = 0; i < s->n_in; i++) {
        const ortc_port p = ortc_node_in(n, i);
        s->port[i] = p.type ? port_of(body, p.edge) : -1;
        if (p.type && s->port[i] < 0) return *why = "an input is inside of the group", 0;
    }
    for (s->out = 0; s->out < ortc_graph_n_out(body); s->out++)
        if (ortc_graph_out(body, s->out).edge == result) return 1;
    return *why = "a result is not one of the group", 0;
}

void ortc_sibling_views(const ortc_sibling *s, const ortc_view *in, ortc_view *out)
{
    memset(out, 0, ORTC_SIBLING_PORTS * sizeof *out);
    for (uint32_t i = 0; i < s->n_in; i++)
        if (s->port[i] >= 0) out[i] = in[s->port[i]];
}
