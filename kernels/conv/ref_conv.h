/* kernels/conv/ref_conv.h: what ref's convolutions read of their node. */
#ifndef ORTC_KERNELS_REF_CONV_H
#define ORTC_KERNELS_REF_CONV_H

#include "kernels/common/window.h"

typedef struct conv_state {
    ortc_window window;
    int64_t group;
} conv_state;

/* X and W as doubles, which are read once for each product: room for them, W being input w, */
static inline ortc_status ortc_ref_conv_room(ortc_plan *p, uint32_t w)
{
    const int64_t count = ortc_view_count(&p->in[0]) + ortc_view_count(&p->in[w]);
    ortc_plan_workspace(p, (size_t)count * sizeof(double), 0);
    return ORTC_OK;
}
/* and one of them. Returns what is behind it. */
static inline double *ortc_ref_doubles(const ortc_view *v, double *to)
{
    const int64_t count = ortc_view_count(v);
    for (int64_t i = 0; i < count; i++) to[i] = ortc_load_f64(v->data, v->dtype, i);
    return to + count;
}

ortc_status ortc_ref_conv_prepare(const ortc_node *, ortc_prep *, void **out); /* a conv_state; ref.c */

#endif
