/* kernels/reorder/ref.c: Reorder on ref: element by element through the plain order, channels that only pad
 * are zero. */
#include <string.h>

#include "kernels/common/shape.h"

/* Where element (n, c, s) of a tensor [n, channels, spatial] lies. */
static int64_t place(uint16_t layout, int64_t n, int64_t c, int64_t s, int64_t channels, int64_t spatial)
{
    const int64_t block = layout == ORTC_LAYOUT_NCHW8C ? 8 : 16;
    if (layout == ORTC_LAYOUT_PLAIN) return (n * channels + c) * spatial + s;
    if (layout == ORTC_LAYOUT_NHWC) return (n * spatial + s) * channels + c;
    return ((n * ((channels + block - 1) / block) + c / block) * spatial + s) * block + c % block;
}

typedef struct job {
    const ortc_view *x, *y;
    int64_t channels, spatial;
    size_t bytes; /* of an element */
} job;

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = (const job *)arg;
    const char *x = (const char *)j->x->data;
    char *y = (char *)j->y->data;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        int64_t s = i % j->spatial, c = i / j->spatial % j->channels, n = i / j->spatial / j->channels;
        memcpy(y + (size_t)place(j->y->layout, n, c, s, j->channels, j->spatial) * j->bytes,
               x + (size_t)place(j->x->layout, n, c, s, j->channels, j->spatial) * j->bytes, j->bytes);
    }
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    job j = {&c->in[0], &c->out[0], 1, 1, ortc_dtype_bits(c->in[0].dtype) / 8};
    const int64_t count = ortc_view_count(j.x);
    (void)state, (void)pstate;
    if (j.x->rank > 1) j.channels = j.x->dims[1];
    for (int32_t i = 2; i < j.x->rank; i++) j.spatial *= j.x->dims[i];
    if (!count) return ORTC_OK;
    if (j.y->layout == ORTC_LAYOUT_NCHW8C || j.y->layout == ORTC_LAYOUT_NCHW16C) {
        const int64_t block = j.y->layout == ORTC_LAYOUT_NCHW8C ? 8 : 16;
        memset(j.y->data, 0,
               (size_t)(count / j.channels * ((j.channels + block - 1) / block * block)) * j.bytes);
    }
    return ortc_parallel(c, count, ortc_grain(4), chunk, &j);
}

static const ortc_kernel reorder = {.size = ORTC_SIZED(ortc_kernel),
                                    .flags = ORTC_KERNEL_LAYOUTS,
                                    .name = "reorder.ref",
                                    .run = run};

/* Elements below a byte, and strings, have the plain layout only. */
#define WHOLE_BYTES \
    (ORTC_TYPES_ALL & \
     ~(ORTC_TYPE(ORTC_STRING) | ORTC_TYPE(ORTC_U4) | ORTC_TYPE(ORTC_I4) | ORTC_TYPE(ORTC_F4E2M1) | \
       ORTC_TYPE(ORTC_U2) | ORTC_TYPE(ORTC_I2) | ORTC_TYPE(ORTC_F6E2M3) | ORTC_TYPE(ORTC_F6E3M2)))
ORTC_KERNELS(ref, reorder, ORTC_KERNEL_IN("ortc", "Reorder", 1, 1, (WHOLE_BYTES), &reorder));
