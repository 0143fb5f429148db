/* kernels/linalg/ref.c: Det and Inverse on ref: elimination with the largest pivot of a column, in double. */
#include <math.h>

#include "kernels/common/shape.h"

typedef struct det_job {
    const ortc_view *x;
    ortc_view *y;
    int64_t m;
} det_job;

static void swap_rows(double *a, int64_t m, int64_t i, int64_t k)
{
    for (int64_t j = 0; j < m; j++) {
        const double t = a[i * m + j];
        a[i * m + j] = a[k * m + j];
        a[k * m + j] = t;
    }
}

static double det(double *a, int64_t m)
{
    double d = 1;
    for (int64_t k = 0; k < m; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < m; i++)
            if (!(fabs(a[i * m + k]) <= fabs(a[pivot * m + k]))) pivot = i; /* a NaN is taken */
        if (pivot != k) {
            swap_rows(a, m, k, pivot);
            d = -d;
        }
        if (a[k * m + k] == 0) return 0;
        d *= a[k * m + k];
        for (int64_t i = k + 1; i < m; i++) {
            const double f = a[i * m + k] / a[k * m + k];
            for (int64_t j = k; j < m; j++) a[i * m + j] -= f * a[k * m + j];
        }
    }
    return d;
}

static void det_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const det_job *j = arg;
    const int64_t count = j->m * j->m;
    double *a = scratch;
    for (int64_t i = begin; i < end; i++) {
        for (int64_t k = 0; k < count; k++) a[k] = ortc_load_f64(j->x->data, j->x->dtype, i * count + k);
        ortc_store_f64(j->y->data, j->y->dtype, i, det(a, j->m));
    }
}

static ortc_status det_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0];
    const int64_t m = x->dims[x->rank - 1]; /* a matrix of the input: its size has been checked */
    if (ortc_view_count(x) > 0) ortc_plan_workspace(p, 0, (size_t)(m * m) * sizeof(double));
    return ORTC_OK;
}

static ortc_status det_run(const void *state, const void *pstate, ortc_call *c)
{
    det_job j = {&c->in[0], &c->out[0], c->in[0].dims[c->in[0].rank - 1]};
    const double m = (double)j.m;
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(m * m * (m + 5)), det_chunk, &j);
}

/* a becomes the unit matrix, b what it was multiplied by for that. A singular one divides by 0. */
static void invert(double *a, double *b, int64_t m)
{
    for (int64_t i = 0; i < m * m; i++) b[i] = i % (m + 1) == 0;
    for (int64_t k = 0; k < m; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < m; i++)
            if (!(fabs(a[i * m + k]) <= fabs(a[pivot * m + k]))) pivot = i;
        if (pivot != k) {
            swap_rows(a, m, k, pivot);
            swap_rows(b, m, k, pivot);
        }
        const double head = a[k * m + k];
        for (int64_t j = 0; j < m; j++) a[k * m + j] /= head, b[k * m + j] /= head;
        for (int64_t i = 0; i < m; i++) {
            const double f = a[i * m + k];
            for (int64_t j = 0; j < m && i != k; j++)
                a[i * m + j] -= f * a[k * m + j], b[i * m + j] -= f * b[k * m + j];
        }
    }
}

static void inverse_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const det_job *j = arg;
    const int64_t count = j->m * j->m;
    double *a = scratch, *b = a + count;
    for (int64_t i = begin; i < end; i++) {
        for (int64_t k = 0; k < count; k++) a[k] = ortc_load_f64(j->x->data, j->x->dtype, i * count + k);
        invert(a, b, j->m);
        for (int64_t k = 0; k < count; k++) ortc_store_f64(j->y->data, j->y->dtype, i * count + k, b[k]);
    }
}

static ortc_status inverse_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0];
    const int64_t m = x->dims[x->rank - 1];
    if (ortc_view_count(x) > 0) ortc_plan_workspace(p, 0, 2 * (size_t)(m * m) * sizeof(double));
    return ORTC_OK;
}

static ortc_status inverse_run(const void *state, const void *pstate, ortc_call *c)
{
    det_job j = {&c->in[0], &c->out[0], c->in[0].dims[c->in[0].rank - 1]};
    const double m = (double)j.m;
    const int64_t count = ortc_view_count(j.y);
    return count ? ortc_parallel(c, count / (j.m * j.m), ortc_grain(2 * m * m * (m + 5)), inverse_chunk, &j)
                 : ORTC_OK;
}

static const ortc_kernel inverse_ref = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "inverse.ref",
                                        .plan = inverse_plan,
                                        .run = inverse_run};
static const ortc_kernel det_ref = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "det.ref",
                                    .plan = det_plan,
                                    .run = det_run};
ORTC_KERNELS(ref, linalg, ORTC_KERNEL("Det", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &det_ref),
             ORTC_KERNEL_IN("com.microsoft", "Inverse", 1, 1, (ORTC_TYPES_FLOAT & ~ORTC_TYPE(ORTC_BF16)),
                            &inverse_ref));
