/* kernels/sample/deform.h: DeformConv's attributes, for ref (ref_deform.c) and the cpu (cpu_deform.c). */
#ifndef ORTC_KERNELS_SAMPLE_DEFORM_H
#define ORTC_KERNELS_SAMPLE_DEFORM_H

#include "kernels/common/window.h"

typedef struct ortc_deform_state {
    ortc_window window;
    int64_t group, offset_group;
} ortc_deform_state;

ortc_status ortc_deform_prepare(const ortc_node *, ortc_prep *, void **out);

extern const ortc_kernel ortc_cpu_deform_conv; /* cpu_deform.c */

#endif
