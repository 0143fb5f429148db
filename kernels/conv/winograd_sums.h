/* Winograd's transform of a patch (winograd_uk.h), of one dimension: sums of registers.
 * They are written so that few operations are needed; each is a fixed tree, the same bits on every
 * instruction set with FMA. */
#ifndef ORTC_KERNELS_CONV_WINOGRAD_SUMS_H
#define ORTC_KERNELS_CONV_WINOGRAD_SUMS_H

#include "kernels/common/vector/vec.h"

VFN vf32 winograd_times(float c, vf32 x, vf32 y) { return v_fma(v_set_f32(c), x, y); } /* c x + y */

/* B' d */
VFN void winograd_input_2(const vf32 *d, vf32 *v)
{
    v[0] = v_sub(d[0], d[2]);
    v[1] = v_add(d[1], d[2]);
    v[2] = v_sub(d[2], d[1]);
    v[3] = v_sub(d[3], d[1]);
}

/* x (x - 1)(x + 1)(x - 1/2)(x + 2), less one factor for each point:
 *    1 -3/2  -2  3/2   1   .
 *    .  -1  1/2  5/2   1   .
 *    .   1 -5/2  1/2   1   .
 *    .  -2   -1    2   1   .
 *    . 1/2   -1 -1/2   1   .
 *    .   1 -3/2   -2 3/2   1 */
VFN void winograd_input_4(const vf32 *d, vf32 *v)
{
    const vf32 even = v_sub(d[4], d[2]), odd = v_sub(d[3], d[1]);
    v[0] = winograd_times(1.5f, odd, v_add(v_sub(d[0], d[2]), even));
    v[1] = v_sub(winograd_times(2.5f, d[3], winograd_times(0.5f, d[2], d[4])), d[1]);
    v[2] = v_add(winograd_times(-2.5f, d[2], winograd_times(0.5f, d[3], d[4])), d[1]);
    v[3] = winograd_times(2, odd, even);
    v[4] = winograd_times(-0.5f, odd, even);
    v[5] = winograd_times(1.5f, even, v_sub(v_sub(d[5], d[3]), odd));
}

#endif
