/* kernels/quantize/expand.h: QuantizeLinear and DequantizeLinear as pointwise programs. */
#ifndef ORTC_KERNELS_QUANTIZE_EXPAND_H
#define ORTC_KERNELS_QUANTIZE_EXPAND_H

#include "ortc/program.h"

/* Integers of 8 and 16 bits, one scale for all or one for each index of an axis; the rest is ref's. The bits
 * are ref's, too. */
int32_t ortc_expand_quantize(const ortc_node *, ortc_pw_builder *);
int32_t ortc_expand_dequantize(const ortc_node *, ortc_pw_builder *);

#endif
