/* kernels/order/order.h: what the family's kernels share. */
#ifndef ORTC_KERNELS_ORDER_H
#define ORTC_KERNELS_ORDER_H

#include "kernels/common/shape.h"

typedef struct ortc_order_state {
    int64_t axis;
    bool largest, last; /* last: of equal elements the last is chosen */
} ortc_order_state;

ortc_status ortc_order_prepare(const ortc_node *, ortc_prep *, void **out); /* ref.c */

extern const ortc_kernel ortc_cpu_topk, ortc_cpu_arg_integers; /* cpu_topk.c */

#endif
