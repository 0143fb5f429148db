/* What tiles do not multiply (tiled.h): numbers that pieces do not hold, in f32, and a stem's that are not
 * finite, by definition. */
#include <string.h>

#include "kernels/gemm/product_uk.h"
#include "tiled_loops.h"

#define BLOCK ORTC_BLOCK

typedef ortc_tiled_job job;
typedef ortc_tiled_band band;

static int32_t alone(void *scratch, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    (void)grain;
    body(arg, 0, n, scratch);
    return 0;
}

/* The same in f32, of a band laid out so: all of it, or blocks whose weights are odd. */
static void tiles_f32(const band *b, int all, int64_t b0, int64_t b1, int64_t u0, int64_t u1, float *sums,
                      float *weights)
{
    const job *j = b->j;
    const ortc_tiled_plan *p = j->p;
    static const ortc_dtype types[] = {
        [ORTC_FLOAT_F32] = ORTC_F32, [ORTC_FLOAT_F16] = ORTC_F16, [ORTC_FLOAT_BF16] = ORTC_BF16};
    const ortc_dtype type = types[p->type];
    const int64_t filter = p->channels * p->taps * ortc_product_size(type),
                  most = (int64_t)p->floats->most_pixels;
    const ortc_product_threads one = {alone, NULL};
    ortc_blocked_tile tile = {.offset = p->offset,
                              .plane = p->plane / (int64_t)sizeof(float),
                              .groups = (size_t)p->ins,
                              .taps = (size_t)p->taps,
                              .depth = (size_t)((p->channels - 1) % BLOCK + 1),
                              .w = weights};
    for (int64_t k = b0; k < b1; k++) {
        const int64_t block = b->group * p->outs + k, first = b->group * p->filters + k * BLOCK;
        if (!all && !ortc_tiled_is_odd(j, block)) continue;
        const ortc_conv_geometry some = {.group = 1,
                                         .channels = p->channels,
                                         .filters = min64(BLOCK, p->filters - k * BLOCK),
                                         .kernel_count = p->taps};
        ortc_blocked_weight_fill(&some, type, 0, j->plain + first * filter, weights, &one);
        tile.bias = j->a->bias + block * BLOCK;
        for (int64_t u = u0; u < u1; u++) {
            int64_t to;
            const int64_t from = ortc_tiled_unit(b, u, &to);
            for (int64_t q = from; q < to; q += most) {
                tile.x = (const float *)(const void *)(b->laid + q * ORTC_TILE_ROW);
                tile.y = sums + (q - from) * BLOCK;
                p->floats->dense[p->type]((size_t)min64(most, to - q), 1, &tile);
            }
            if (to > from) ortc_tiled_finish(b, 0, sums, block, 1, from, to);
        }
    }
}

static float rounded(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    if (v == v) memcpy(&v, &bits, sizeof v);
    return v;
}

/* One sum of a stem: filter o at a pixel of the band. */
static float sum_of(const band *b, int64_t o, int64_t row, int64_t column)
{
    const job *j = b->j;
    const ortc_tiled_plan *p = j->p;
    const ortc_window_extents *e = &p->e;
    const int64_t taps = e->kernel[0] * e->kernel[1] * e->kernel[2],
                  out[3] = {b->plane, b->row + row, b->column + column};
    float sum = j->a->bias[o];
    for (int64_t c = 0; c < p->channels; c++)
        for (int64_t t = 0; t < taps; t++) {
            const int64_t tap[3] = {t / e->kernel[2] / e->kernel[1], t / e->kernel[2] % e->kernel[1],
                                    t % e->kernel[2]};
            int64_t at = b->image * p->channels + c;
            int inside = 1;
            for (int i = 0; i < 3; i++) {
                const int64_t x = out[i] * e->stride[i] - e->pad[i] + tap[i] * e->dilation[i];
                inside &= x >= 0 && x < e->in[i];
                at = at * e->in[i] + x;
            }
            float v[2];
            if (!inside) continue;
            ortc_convert_get()->widen[p->type](1, (const char *)j->a->x + at * p->pixel, &v[0]);
            ortc_convert_get()->widen[p->type](1, j->plain + ((o * p->channels + c) * taps + t) * p->pixel,
                                               &v[1]);
            sum += rounded(v[0]) * rounded(v[1]);
        }
    return sum;
}

/* A stem by its definition, where a number is not finite. */
static void define(const band *b, int64_t b0, int64_t b1, int64_t u0, int64_t u1, float *sums)
{
    const ortc_tiled_plan *p = b->j->p;
    for (int64_t k = b0; k < b1; k++)
        for (int64_t u = u0; u < u1; u++) {
            int64_t to;
            const int64_t from = ortc_tiled_unit(b, u, &to), lanes = k + 1 < p->outs ? BLOCK : p->lanes;
            for (int64_t i = 0; i < (to - from) * lanes; i++) {
                const int64_t q = from + i / lanes, o = i % lanes;
                if (q % p->pitch < b->pixels)
                    sums[(q - from) * BLOCK + o] = sum_of(b, k * BLOCK + o, q / p->pitch, q % p->pitch);
            }
            if (to > from) ortc_tiled_finish(b, 0, sums, k, 1, from, to);
        }
}

void ortc_tiled_again(const band *b, int all, int64_t b0, int64_t b1, int64_t u0, int64_t u1, float *sums,
                      float *weights)
{
    if (!b->j->p->stem)
        tiles_f32(b, all, b0, b1, u0, u1, sums, weights);
    else if (all)
        define(b, b0, b1, u0, u1, sums);
}
