/* Reading the bodies of groups (ortc.Group) that begin with DequantizeLinear: constants of one number are in
 * the body, what else its nodes read are the group's inputs.
 */
#ifndef ORTC_KERNELS_COMMON_DEQUANTISED_H
#define ORTC_KERNELS_COMMON_DEQUANTISED_H

#include <string.h>

#include "ortc/op.h"

/* Integers of 8 bits that are numbers: (x - zero) * scale. */
typedef struct ortc_dequantised {
    int32_t port;    /* of the group's inputs */
    ortc_dtype type; /* 0: there are none */
    float scale;
    int32_t zero;
} ortc_dequantised;

/* An operator of the standard's, with nothing fused to it. */
static inline int ortc_is_plain(const ortc_node *n, const char *op)
{
    return n && !*ortc_node_domain(n) && !strcmp(ortc_node_op(n), op) && !ortc_node_epilogue(n);
}

static inline int ortc_is_byte(ortc_dtype t) { return t == ORTC_U8 || t == ORTC_I8; }

/* -1: no input of the group. */
static inline int32_t ortc_group_port(const ortc_graph *body, const ortc_port *p)
{
    for (uint32_t i = 0; p->type && i < ortc_graph_n_in(body); i++)
        if (ortc_graph_in(body, i).edge == p->edge) return (int32_t)i;
    return -1;
}

/* One scale, and one zero point (none: 0), that are known; 0: they are not. */
static inline int ortc_known_scale(const ortc_port *p, float *out)
{
    if (!p->type || !p->data || p->dtype != ORTC_F32 || p->rank > 1 || (p->rank && p->dims[0] != 1)) return 0;
    memcpy(out, p->data, sizeof *out);
    return 1;
}
static inline int ortc_known_zero(const ortc_port *p, int32_t *out)
{
    *out = 0;
    if (!p->type) return 1;
    if (!p->data || !ortc_is_byte(p->dtype)) return 0;
    *out = p->dtype == ORTC_I8 ? *(const int8_t *)p->data : *(const uint8_t *)p->data;
    return 1;
}

/* A DequantizeLinear to f32 by one scale, of an input of the group; 0: it is none. */
static inline int ortc_read_dequantise(const ortc_graph *body, const ortc_node *n, ortc_dequantised *out)
{
    if (!ortc_is_plain(n, "DequantizeLinear")) return 0;
    const ortc_port x = ortc_node_in(n, 0), scale = ortc_node_in(n, 1), zero = ortc_node_in(n, 2);
    *out = (ortc_dequantised){.port = ortc_group_port(body, &x), .type = x.dtype};
    return out->port >= 0 && ortc_is_byte(x.dtype) && ortc_node_out(n, 0).dtype == ORTC_F32 &&
           ortc_known_scale(&scale, &out->scale) && ortc_known_zero(&zero, &out->zero);
}

/* Whether n reads first what `before` makes. */
static inline int ortc_follows(const ortc_node *n, const ortc_node *before)
{
    return ortc_node_in(n, 0).edge == ortc_node_out(before, 0).edge;
}

#endif
