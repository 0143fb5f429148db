/* Ends of planes (plane_end.h). */
#include "plane_end.h"

#include <string.h>

#include "kernels/common/vector/convert.h"

const float *ortc_plane_floats(ortc_dtype type, const void *src, int64_t at, int64_t n, float *space)
{
    const void *from = ortc_product_at(src, at, type);
    if (type == ORTC_F32) return from;
    ortc_product_moves_select()->vec->load[ortc_float_index(type)](1, (size_t)n, from, 0, space, 0);
    return space;
}

void ortc_plane_tail(const ortc_plane_end *e, int64_t channel, int64_t element, int64_t n, float *sums,
                     float *space)
{
    const ortc_tail_spec *t = e->tail;
    float own, bias = e->bias ? ortc_uk_load_f32(ortc_plane_floats(e->type, e->bias, channel, 1, &own)) : 0;
    const float *residual = e->residual ? ortc_plane_floats(e->type, e->residual, element, n, space) : NULL;
    const ortc_uk_tail_f32 tail = {t->alpha, 1, NULL, &bias, residual, 0, t->act, t->lo, t->hi};
    ortc_product_tail(&tail, sums, (size_t)n, 1, (size_t)n);
}

void ortc_plane_store(const ortc_plane_end *e, int64_t channel, int64_t element, int64_t n, float *sums)
{
    const ortc_tail_place place = {.channel = channel, .element = element, .col = 1};
    void *y = ortc_product_at(e->y, element, e->type);
    const size_t count = (size_t)n;
    ortc_tail_over(e->tail, e->in, &place, sums, count, sums, count, 1, count);
    if (e->type != ORTC_F32)
        ortc_product_moves_select()->vec->store[ortc_float_index(e->type)](1, count, sums, 0, y, 0);
    else if (y != sums)
        memcpy(y, sums, count * sizeof *sums);
}
