/* kernels/quantize/ref_dynamic.c: DynamicQuantizeLinear on ref: the range of the data, with zero in it, onto
 * 0 .. 255.
 *
 * All in float, as the standard's function body computes it, so that scale and zero point are the same bits.
 */
#include "kernels/quantize/quantize.h"

typedef struct dynamic_job {
    const float *x;
    uint8_t *y;
    float scale;
    float zero;
} dynamic_job;

static void dynamic_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const dynamic_job *j = arg;
    for (int64_t i = begin; i < end; i++)
        ortc_store_saturated(j->y, ORTC_U8, i,
                             nearbyintf((float)ortc_load_f64(j->x, ORTC_F32, i) / j->scale) + j->zero);
}

static ortc_status dynamic_run(const void *state, const void *pstate, ortc_call *c)
{
    const int64_t count = ortc_view_count(&c->in[0]);
    dynamic_job j = {.x = c->in[0].data, .y = c->out[0].data};
    float low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        const float v = (float)ortc_load_f64(j.x, ORTC_F32, i);
        low = v < low ? v : low;
        high = v > high ? v : high;
        if (i % 65536 == 65535) ORTC_TRY(ortc_poll(c));
    }
    j.scale = (high - low) / 255.0F;
    if (j.scale == 0) /* nothing but zeros */
        j.scale = 1;
    const float zero = nearbyintf((0 - low) / j.scale);
    j.zero = zero >= 0 ? zero <= 255 ? zero : 255 : 0;
    if (c->n_out > 1 && c->out[1].dtype) ortc_store_f64(c->out[1].data, ORTC_F32, 0, (double)j.scale);
    if (c->n_out > 2 && c->out[2].dtype) *(uint8_t *)c->out[2].data = (uint8_t)j.zero;
    return j.y ? ortc_parallel(c, count, ortc_grain(5), dynamic_chunk, &j) : ORTC_OK;
}

const ortc_kernel ortc_ref_dynamic_quantize = {.size = ORTC_SIZED(ortc_kernel),
                                               .name = "dynamic_quantize.ref",
                                               .run = dynamic_run};
