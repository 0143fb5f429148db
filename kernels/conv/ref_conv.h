/* kernels/conv/ref_conv.h: what ref's convolutions read of their node. */
#ifndef ORTC_KERNELS_REF_CONV_H
#define ORTC_KERNELS_REF_CONV_H

#include "kernels/common/window.h"

typedef struct conv_state {
    ortc_window window;
    int64_t group;
} conv_state;

ortc_status ortc_ref_conv_prepare(const ortc_node *, ortc_prep *, void **out); /* a conv_state; ref.c */

#endif
