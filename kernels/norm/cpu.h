/* What the cpu's kernels of normalisation share. */
#ifndef ORTC_KERNELS_NORM_CPU_H
#define ORTC_KERNELS_NORM_CPU_H

#include "kernels/common/dequantised.h"
#include "ortc/op.h"

extern const ortc_kernel ortc_instance_blocks; /* cpu_instance.c */

/* The node that normalises: `norm` is n, or is in its body, behind DequantizeLinear of 8 bits. */
typedef struct ortc_norm_source {
    const ortc_node *norm;
    int32_t port[3];    /* of n: x, scale and bias; -1: none */
    ortc_dequantised x; /* type 0: x is numbers */
} ortc_norm_source;
/* 0: a group that is none of these. */
int ortc_norm_source_of(const ortc_node *n, ortc_norm_source *out);

static inline int ortc_norm_is_of_channels(const ortc_node *norm)
{
    return !strcmp(ortc_node_op(norm), "InstanceNormalization") ||
           !strcmp(ortc_node_op(norm), "GroupNormalization");
}

#endif
