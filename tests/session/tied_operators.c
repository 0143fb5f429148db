/* tests/session/tied_operators.c: operators for the tests of tied state: one that writes a cache in place,
 * one that fails on demand.
 */
#include "tests/session/tied_models.h"

int trip; /* Trip cancels its run after so many more calls; 0: never */
ortc_cancel *tripped;
const void *put_wrote[2], *put_read[2];
int n_puts;

static ortc_status infer_like(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }
/* As caches of com.microsoft's attention: as long as the longer one, which only numbers tell. */
static ortc_status infer_longer(ortc_infer *c)
{
    const ortc_port cache = ortc_infer_in(c, 0), update = ortc_infer_in(c, 1);
    ortc_dim dims[3] = {cache.dims[0], ORTC_DIM_UNKNOWN, cache.dims[2]};
    if (ortc_dim_is_number(cache.dims[1]) && ortc_dim_is_number(update.dims[1]))
        dims[1] = cache.dims[1] > update.dims[1] ? cache.dims[1] : update.dims[1];
    return ortc_infer_out(c, 0, cache.dtype, 3, dims);
}

/* cache [B, C, D], update [B, n, D], at [1]: update is written from position at[0] on. */
static ortc_status run_put(const void *state, const void *plan, ortc_call *call)
{
    (void)state, (void)plan;
    const ortc_view *cache = &call->in[0], *update = &call->in[1], *at = &call->in[2];
    float *out = call->out[0].data;
    int64_t c = cache->dims[1], d = cache->dims[2], n = update->dims[1], from = *(const int64_t *)at->data;
    if (from < 0 || from + n > c)
        return ortc_call_fail(call, ORTC_INVALID_ARGUMENT, "positions %lld to %lld of %lld", (long long)from,
                              (long long)(from + n), (long long)c);
    if (out != cache->data) memcpy(out, cache->data, (size_t)ortc_view_count(cache) * sizeof *out);
    for (int64_t b = 0; b < cache->dims[0]; b++)
        memcpy(out + (b * c + from) * d, (const float *)update->data + b * n * d,
               (size_t)(n * d) * sizeof *out);
    put_read[n_puts % 2] = cache->data;
    put_wrote[n_puts++ % 2] = out;
    return ORTC_OK;
}
static ortc_status plan_put(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_may_reuse(p, 0, 0);
    return ORTC_OK;
}
static ortc_status run_trip(const void *state, const void *plan, ortc_call *call)
{
    (void)state, (void)plan;
    memcpy(call->out[0].data, call->in[0].data, (size_t)ortc_view_count(&call->in[0]) * sizeof(float));
    if (trip && !--trip) ortc_cancel_set(tripped);
    return ortc_poll(call);
}
static const ortc_kernel put = {
    .size = sizeof put, .flags = ORTC_KERNEL_STATE, .name = "put", .plan = plan_put, .run = run_put};
static const ortc_kernel trip_kernel = {.size = sizeof put, .name = "trip", .run = run_trip};
static const ortc_op ops[] = {
    ORTC_OP("test", "Put", 1, 1, "", "cache:T update:T at:i64", "present:T", "", "T=f32", infer_like, NULL,
            0),
    ORTC_OP("test", "PutLonger", 1, 1, "", "cache:T update:T at:i64", "present:T", "", "T=f32", infer_longer,
            NULL, 0),
    ORTC_OP("test", "Trip", 1, 1, "", "x:T", "y:T", "", "T=f32", infer_like, NULL, 0),
};
ORTC_KERNELS(ref, state_test, ORTC_KERNEL_IN("test", "Put", 1, 1, (ORTC_TYPE(ORTC_F32)), &put),
             ORTC_KERNEL_IN("test", "PutLonger", 1, 1, (ORTC_TYPE(ORTC_F32)), &put),
             ORTC_KERNEL_IN("test", "Trip", 1, 1, (ORTC_TYPE(ORTC_F32)), &trip_kernel));
ORTC_FAMILY(state_test, ops, &ortc_kernels_ref_state_test);
