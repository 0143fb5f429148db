/* kernels/quantize/ref_linear.c: QuantizeLinear and DequantizeLinear on ref, and the family's table.
 *
 * x / scale is rounded to the type of the scale (or to `precision`), as the standard says, then to the
 * nearest integer, then the zero point is added and the sum saturates. Small floats saturate in their own
 * conversion.
 */
#include <stdlib.h>

#include "kernels/quantize/quantize.h"

typedef struct linear_state {
    int64_t axis, block;
    ortc_dtype precision;
    bool saturate;
} linear_state;

typedef struct linear_job {
    const ortc_view *x, *scale, *zero; /* zero: NULL for none */
    ortc_view *y;
    ortc_granularity g;
    ortc_dtype precision;
    bool saturate;
} linear_job;

static ortc_status linear_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    linear_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (linear_state){ortc_node_int(n, "axis", 1), ortc_node_int(n, "block_size", 0),
                        (ortc_dtype)ortc_node_int(n, "precision", 0), ortc_node_int(n, "saturate", 1) != 0};
    *out = s;
    return ORTC_OK;
}

static void quantize_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const linear_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    const ortc_float_format *f = ortc_float_format_of(t);
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = ortc_granularity_at(&j->g, i);
        const double zero = j->zero ? ortc_load_f64(j->zero->data, t, at) : 0;
        const double v = ortc_rounded_to(j->precision,
                                         ortc_load_f64(j->x->data, j->x->dtype, i) /
                                             ortc_load_f64(j->scale->data, j->scale->dtype, at));
        if (f)
            ortc_store_bits(j->y->data, ortc_dtype_bits(t), i, ortc_float_encode(f, v + zero, j->saturate));
        else
            ortc_store_saturated(j->y->data, t, i, nearbyint(v) + zero);
    }
}

static void dequantize_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const linear_job *j = arg;
    const ortc_dtype t = j->x->dtype;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = ortc_granularity_at(&j->g, i);
        const double zero = j->zero ? ortc_load_f64(j->zero->data, t, at) : 0;
        ortc_store_f64(j->y->data, j->y->dtype, i,
                       (ortc_load_f64(j->x->data, t, i) - zero) *
                           ortc_load_f64(j->scale->data, j->scale->dtype, at));
    }
}

static ortc_status linear_run(const linear_state *s, ortc_call *c, ortc_parallel_fn chunk)
{
    linear_job j = {.x = &c->in[0],
                    .scale = &c->in[1],
                    .zero = c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL,
                    .y = &c->out[0],
                    .precision = s->precision,
                    .saturate = s->saturate};
    const int64_t count = ortc_view_count(j.x);
    if (count == 0) return ORTC_OK;
    j.g = ortc_granularity_of(j.x, j.scale, s->axis, s->block);
    if (!j.precision) /* integers divide in double, powers of two in f32 */
        j.precision = j.scale->dtype == ORTC_I32      ? ORTC_F64
                      : j.scale->dtype == ORTC_F8E8M0 ? ORTC_F32
                                                      : j.scale->dtype;
    ortc_clear_tail(j.y, count);
    return ortc_parallel(c, count, ortc_grain(20), chunk, &j);
}
static ortc_status quantize_run(const void *state, const void *pstate, ortc_call *c)
{
    return linear_run(state, c, quantize_chunk);
}
static ortc_status dequantize_run(const void *state, const void *pstate, ortc_call *c)
{
    return linear_run(state, c, dequantize_chunk);
}

const ortc_kernel ortc_ref_quantize = {.size = ORTC_SIZED(ortc_kernel),
                                       .name = "quantize.ref",
                                       .prepare = linear_prepare,
                                       .run = quantize_run};
const ortc_kernel ortc_ref_dequantize = {.size = ORTC_SIZED(ortc_kernel),
                                         .name = "dequantize.ref",
                                         .prepare = linear_prepare,
                                         .run = dequantize_run};

/* ---- The table ----------------------------------------------------------------------------------------- */

#define F32 ORTC_TYPE(ORTC_F32)
#define I32 ORTC_TYPE(ORTC_I32)
#define SCALES (F32 | ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16))
#define POWERS ORTC_TYPE(ORTC_F8E8M0)
#define EIGHT_INT (ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8))
#define EIGHT \
    (EIGHT_INT | ORTC_TYPE(ORTC_F8E4M3FN) | ORTC_TYPE(ORTC_F8E4M3FNUZ) | ORTC_TYPE(ORTC_F8E5M2) | \
     ORTC_TYPE(ORTC_F8E5M2FNUZ))
#define NARROW \
    (EIGHT | ORTC_TYPE(ORTC_I16) | ORTC_TYPE(ORTC_U16) | ORTC_TYPE(ORTC_U4) | ORTC_TYPE(ORTC_I4) | \
     ORTC_TYPE(ORTC_F4E2M1) | ORTC_TYPE(ORTC_U2) | ORTC_TYPE(ORTC_I2) | ORTC_TYPE(ORTC_F6E2M3) | \
     ORTC_TYPE(ORTC_F6E3M2))
#define K(op, since, kernel, ...) ORTC_KERNEL(op, since, ORTC_NEWEST, (__VA_ARGS__), kernel)
ORTC_KERNELS(ref, quantize,
             K("QuantizeLinear", 28, &ortc_ref_quantize, SCALES | I32, SCALES | I32 | POWERS, NARROW),
             K("DequantizeLinear", 28, &ortc_ref_dequantize, NARROW | I32, SCALES | POWERS, SCALES),
             K("DynamicQuantizeLinear", 11, &ortc_ref_dynamic_quantize, F32, ORTC_TYPE(ORTC_U8)),
             K("MatMulInteger", 10, &ortc_ref_matmul_integer, EIGHT_INT, EIGHT_INT, I32),
             ORTC_KERNEL_IN("ortc", "GemmInteger", 1, 1, (EIGHT_INT, EIGHT_INT, I32), &ortc_ref_gemm_integer),
             K("QLinearMatMul", 21, &ortc_ref_qlinear_matmul, SCALES, EIGHT, EIGHT, EIGHT));
