/* kernels/select/ref.c: NonZero on ref: counts, then writes the indices, dimension by dimension. The
 * family's table. */
#include "kernels/common/element.h"
#include "kernels/common/shape.h"
#include "kernels/select/select.h"

static bool is_nonzero(const ortc_view *x, int64_t i)
{
    if (x->dtype == ORTC_STRING) {
        int64_t length;
        ortc_string_at(x->data, i, &length);
        return length != 0;
    }
    if (x->dtype == ORTC_C64 || x->dtype == ORTC_C128) { /* either part; -0 is zero */
        const ortc_dtype part = x->dtype == ORTC_C64 ? ORTC_F32 : ORTC_F64;
        return ortc_load_f64(x->data, part, 2 * i) != 0 || ortc_load_f64(x->data, part, 2 * i + 1) != 0;
    }
    switch (ortc_class_of(x->dtype)) {
    case ORTC_CLASS_FLOAT: return ortc_load_f64(x->data, x->dtype, i) != 0; /* NaN is not zero */
    case ORTC_CLASS_INT: return ortc_load_i64(x->data, x->dtype, i) != 0;
    default: return ortc_load_u64(x->data, x->dtype, i) != 0;
    }
}

static ortc_status run_nonzero(const void *state, const void *plan, ortc_call *c)
{
    (void)state, (void)plan;
    const ortc_view *x = &c->in[0];
    int64_t n = ortc_view_count(x), found = 0, at = 0;
    for (int64_t i = 0; i < n; i++) found += is_nonzero(x, i);
    ORTC_TRY(ortc_poll(c));
    int64_t dims[2] = {x->rank, found};
    ORTC_TRY(ortc_call_resize(c, 0, 2, dims));
    int64_t *y = c->out[0].data;
    for (int64_t i = 0; i < n && x->rank > 0; i++) {
        if (!is_nonzero(x, i)) continue;
        int64_t rest = i;
        for (int32_t d = x->rank - 1; d >= 0; d--) {
            y[d * found + at] = rest % x->dims[d];
            rest /= x->dims[d];
        }
        at++;
    }
    return ORTC_OK;
}

static const ortc_kernel nonzero = {.size = sizeof(ortc_kernel),
                                    .flags = ORTC_KERNEL_LATE_OUT,
                                    .name = "nonzero.ref",
                                    .run = run_nonzero};

#define PLAIN \
    (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_STRING) | ORTC_TYPE(ORTC_C64) | \
     ORTC_TYPE(ORTC_C128))
ORTC_KERNELS(ref, select, ORTC_KERNEL("NonZero", 9, ORTC_NEWEST, (ORTC_TYPES_ALL), &nonzero),
             ORTC_KERNEL("Compress", 28, ORTC_NEWEST, (PLAIN, ORTC_TYPE(ORTC_BOOL)), &ortc_ref_compress),
             ORTC_KERNEL("Unique", 28, ORTC_NEWEST, (PLAIN), &ortc_ref_unique),
             ORTC_KERNEL("NonMaxSuppression", 11, ORTC_NEWEST, (0), &ortc_ref_nms));
