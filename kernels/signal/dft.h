/* kernels/signal/dft.h: what DFT and STFT are about, for the kernels of all providers on the host (ref.c). */
#ifndef ORTC_KERNELS_SIGNAL_DFT_H
#define ORTC_KERNELS_SIGNAL_DFT_H

#include <stdbool.h>

#include "ortc/op.h"

typedef struct ortc_dft_state {
    bool inverse, onesided;
} ortc_dft_state;
ortc_status ortc_dft_prepare(const ortc_node *n, ortc_prep *prep, void **out);

/* The axis, and how much is transformed along it. False: an input that says so has no value yet. */
bool ortc_dft_length(const ortc_dft_state *s, const ortc_view *in, uint32_t n_in, const ortc_view *y,
                     int32_t *axis, int64_t *n);
int64_t ortc_stft_length(const ortc_view *in, uint32_t n_in);

/* Lines of a tensor: those of an outer index lie `line` elements apart, their numbers `step`, each of `parts`
 * neighbouring elements; `count` numbers of each. */
typedef struct ortc_dft_side {
    int64_t outer, line, step, count, parts;
} ortc_dft_side;
typedef struct ortc_dft_lines {
    int64_t outers, lines; /* of an outer index */
    ortc_dft_side x, y;
} ortc_dft_lines;
ortc_dft_lines ortc_dft_lines_of(const ortc_view *x, const ortc_view *y, int32_t axis);
ortc_dft_lines ortc_stft_lines_of(const ortc_view *x, const ortc_view *y, int64_t frame_step, int64_t length);

#endif
