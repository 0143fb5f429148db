/* What the cpu's kernels of ConvTranspose share: of any windows (cpu_transpose.c), of few channels
 * (cpu_transpose_lines.c), and in blocks (cpu_transpose_blocks.c). */
#ifndef ORTC_KERNELS_CONV_CPU_TRANSPOSE_H
#define ORTC_KERNELS_CONV_CPU_TRANSPOSE_H

#include "kernels/gemm/epilogue.h"
#include "transpose.h"

typedef struct ortc_conv_transpose_state {
    ortc_transpose t;
    ortc_tail_spec tail; /* a bias, an activation, and programs that read nothing else but single numbers */
} ortc_conv_transpose_state;

/* cpu_transpose.c */
ortc_status ortc_conv_transpose_supports(const ortc_node *, const ortc_device *, ortc_why *);
ortc_status ortc_conv_transpose_prepare_tail(const ortc_node *, ortc_prep *, void **out);

/* The epilogue over `count` results of f32. `in`: the call's */
void ortc_conv_transpose_end(const ortc_tail_spec *, const ortc_view *in, float *y, int64_t count);

/* Packed forms of W are numbered from here on. */
#define ORTC_TRANSPOSE_FORM ((uint64_t)0x7a05 << 32)

extern const ortc_kernel ortc_conv_transpose_blocked, ortc_conv_transpose_rounded, ortc_conv_transpose_lines;

#endif
