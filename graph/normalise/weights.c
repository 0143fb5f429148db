/* graph/normalise/weights.c: the loop over whole weights that opening a network waits for, as vectors. */
#include "weights.h"

enum { AT_ONCE = 16 }; /* of f32, of any alignment, in registers */

static void scale_f32(const char *from, char *to, int64_t count, double by)
{
    float v[AT_ONCE];
    int64_t i = 0;
    for (; i + AT_ONCE <= count; i += AT_ONCE) {
        memcpy(v, from + i * (int64_t)sizeof *v, sizeof v);
        for (int k = 0; k < AT_ONCE; k++) v[k] = (float)((double)v[k] * by);
        memcpy(to + i * (int64_t)sizeof *v, v, sizeof v);
    }
    for (; i < count; i++) ortc_weights_write(ORTC_F32, to, i, ortc_weights_read(ORTC_F32, from, i) * by);
}

void ortc_weights_scale(ortc_dtype t, const void *from, void *to, int64_t first, int64_t count, double by)
{
    const int64_t at = first * (int64_t)(ortc_dtype_bits(t) / 8);
    const char *x = (const char *)from + at;
    char *y = (char *)to + at;
    if (t == ORTC_F32)
        scale_f32(x, y, count, by);
    else if (t == ORTC_F16)
        for (int64_t i = 0; i < count; i++)
            ortc_weights_write(ORTC_F16, y, i, ortc_weights_read(ORTC_F16, x, i) * by);
    else if (t == ORTC_BF16)
        for (int64_t i = 0; i < count; i++)
            ortc_weights_write(ORTC_BF16, y, i, ortc_weights_read(ORTC_BF16, x, i) * by);
    else
        for (int64_t i = 0; i < count; i++)
            ortc_weights_write(ORTC_F64, y, i, ortc_weights_read(ORTC_F64, x, i) * by);
}
