/* kernels/attention/ref_rotary.c: RotaryEmbedding on ref: y1 = x1 cos - x2 sin, y2 = x1 sin + x2 cos, in
 * double.
 *
 * x1 and x2 are the halves of what is turned of a head, or, interleaved, its even and its odd elements. What
 * is not turned passes through.
 */
#include <stdlib.h>

#include "kernels/attention/attention.h"

typedef struct rotary_state {
    bool interleaved;
    int64_t heads, turned;
} rotary_state;

typedef struct rotary_job {
    const ortc_call *call;
    bool interleaved, packed;
    int64_t heads, length, size, half, positions; /* positions: of the caches, with position_ids */
} rotary_job;

/* The first element of a position's angles; -1: there is no such position. */
static int64_t angles_of(const rotary_job *j, int64_t b, int64_t at)
{
    const ortc_view *ids = &j->call->in[3];
    if (j->call->n_in < 4 || !ids->dtype) return (b * j->length + at) * j->half;
    int64_t id = ortc_load_i64(ids->data, ORTC_I64, b * j->length + at);
    id = id < 0 ? id + j->positions : id; /* as Gather counts */
    return id < 0 || id >= j->positions ? -1 : id * j->half;
}

static void rotary_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const rotary_job *j = arg;
    const ortc_view *in = j->call->in, *y = &j->call->out[0];
    const ortc_dtype t = y->dtype;
    for (int64_t r = begin; r < end; r++) { /* a head of a position, in the order of memory */
        const int64_t inner = j->packed ? j->heads : j->length, b = r / (j->heads * j->length);
        const int64_t at = j->packed ? r / inner % j->length : r % inner;
        const int64_t first = r * j->size, angles = angles_of(j, b, at);
        for (int64_t i = 0; i < j->half; i++) {
            const int64_t one = first + (j->interleaved ? 2 * i : i),
                          two = first + (j->interleaved ? 2 * i + 1 : i + j->half);
            const double x1 = ortc_load_f64(in[0].data, t, one), x2 = ortc_load_f64(in[0].data, t, two);
            const double c = ortc_load_f64(in[1].data, t, angles + i),
                         s = ortc_load_f64(in[2].data, t, angles + i);
            ortc_store_f64(y->data, t, one, x1 * c - x2 * s);
            ortc_store_f64(y->data, t, two, x1 * s + x2 * c);
        }
        if (y->data != in[0].data)
            ortc_move_elements(y->data, first + 2 * j->half, in[0].data, first + 2 * j->half,
                               j->size - 2 * j->half, ortc_dtype_bits(t));
    }
}

static ortc_status rotary_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    rotary_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (rotary_state){ortc_node_int(n, "interleaved", 0) != 0, ortc_node_int(n, "num_heads", 0),
                        ortc_node_int(n, "rotary_embedding_dim", 0)};
    *out = s;
    return ORTC_OK;
}

static ortc_status rotary_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

static ortc_status rotary_run(const void *state, const void *pstate, ortc_call *c)
{
    const rotary_state *s = state;
    const ortc_view *x = &c->in[0];
    const bool packed = x->rank == 3;
    rotary_job j = {.call = c, .interleaved = s->interleaved, .packed = packed};
    j.heads = packed ? s->heads : x->dims[1];
    j.length = x->dims[packed ? 1 : 2];
    j.size = packed ? x->dims[2] / j.heads : x->dims[3];
    j.half = (s->turned ? s->turned : j.size) / 2;
    j.positions = c->in[1].dims[0];
    if (ortc_view_count(x) == 0) return ORTC_OK;
    for (int64_t b = 0; b < x->dims[0]; b++)
        for (int64_t at = 0; at < j.length; at++)
            if (angles_of(&j, b, at) < 0)
                return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                      "position_ids holds %lld for sample %lld, the caches end at %lld",
                                      (long long)ortc_load_i64(c->in[3].data, ORTC_I64, b * j.length + at),
                                      (long long)b, (long long)j.positions);
    const int64_t grain = ortc_grain(10.0 * (double)(j.size + 1)) / 8;
    return ortc_parallel(c, x->dims[0] * j.heads * j.length, grain > 0 ? grain : 1, rotary_chunk, &j);
}

const ortc_kernel ortc_ref_rotary = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "rotary_embedding.ref",
                                     .prepare = rotary_prepare,
                                     .plan = rotary_plan,
                                     .run = rotary_run};
