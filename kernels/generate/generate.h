/* kernels/generate/generate.h: what the family's kernels of all providers share. */
#ifndef ORTC_KERNELS_GENERATE_H
#define ORTC_KERNELS_GENERATE_H

#include "kernels/common/shape.h"

/* start + i delta for i < count: floats in double, integers wrapping. */
typedef struct ortc_range {
    double start, delta;
    int64_t first, step;
    int64_t count;
} ortc_range;

extern const ortc_kernel ortc_ref_range; /* ref_range.c */
/* Reads the three inputs; fails where they make no range that ends. */
ortc_status ortc_range_read(ortc_call *, ortc_range *out);

/* ref.c. The attribute k of EyeLike, or axis of OneHot: an int64_t. */
ortc_status ortc_generate_prepare(const ortc_node *, ortc_prep *, void **out);
/* OneHot's depth, checked, the output made so large, and the indices behind the axis. */
ortc_status ortc_one_hot_resize(int64_t axis, ortc_call *, int64_t *out_depth, int64_t *out_inner);

#endif
