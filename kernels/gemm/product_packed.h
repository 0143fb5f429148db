/* Where things lie in packed operands: shared by the planner, the packers and the loops over tiles, and by no
 * one else. A packed operand is a sequence of chunks of K; within a chunk, blocks of rows (A) or panels of
 * columns (B) one behind the other. A has no padding; the last panel of B is padded to the micro-kernel's
 * step.
 */
#ifndef ORTC_KERNELS_GEMM_PRODUCT_PACKED_H
#define ORTC_KERNELS_GEMM_PRODUCT_PACKED_H

#include "product_uk.h"

/* Length of a chunk of K: all of it, or equal parts rounded up to 64. */
static inline int64_t ortc_product_chunk(const ortc_product_line *uk, int64_t k)
{
    if (k <= uk->kc) return k;
    const int64_t longest = uk->kc < 1024 ? uk->kc : 1024;
    const int64_t parts = (k - 1) / longest + 1;
    return ((k - 1) / parts + 64) / 64 * 64;
}

/* First row of block b when m rows are dealt evenly to `blocks` blocks; deals anything else too. */
static inline int64_t ortc_product_row(int64_t m, int64_t blocks, int64_t b)
{
    const int64_t base = m / blocks, more = m % blocks;
    return b * base + (b < more ? b : more);
}

/* n columns, padded. */
static inline int64_t ortc_product_packed_width(const ortc_product_line *uk, int64_t n)
{
    return n / uk->step * uk->step + (n % uk->step ? uk->step : 0);
}

/* Width of the panel that begins at column n0. */
static inline int64_t ortc_product_panel_width(const ortc_product_line *uk, int64_t n, int64_t n0)
{
    return n - n0 >= uk->nr ? uk->nr : ortc_product_packed_width(uk, n - n0);
}

#endif
