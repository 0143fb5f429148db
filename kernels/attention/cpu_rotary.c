/* kernels/attention/cpu_rotary.c: RotaryEmbedding on the cpu provider: a head of a position at a time, f32
 * where it lies, f16 and bf16 through a worker's scratch. What is not turned of a head passes through.
 * Positions are looked up before anything is written.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/attention/attention.h"
#include "kernels/attention/rotate.h"
#include "kernels/common/vector/convert.h"

ORTC_VEC_TABLE(ortc_rotate_vec)

typedef struct rotary_state {
    bool interleaved;
    int64_t heads, turned;
} rotary_state;

typedef struct rotary_plan {
    const ortc_rotate_vec *body;
    const ortc_convert *convert;
    bool packed;
    int64_t heads, length, size, half, positions; /* positions: of the caches, with position_ids */
} rotary_plan;

typedef struct rotary_job {
    const rotary_plan *p;
    const ortc_call *call;
    bool interleaved;
    int type; /* ORTC_FLOAT_* */
} rotary_job;

/* The first element of a position's angles; -1: there is no such position. */
static int64_t angles_of(const rotary_plan *p, const ortc_call *c, int64_t b, int64_t at)
{
    int64_t id;
    if (c->n_in < 4 || !c->in[3].dtype) return (b * p->length + at) * p->half;
    memcpy(&id, (const char *)c->in[3].data + (b * p->length + at) * 8, sizeof id);
    id = id < 0 ? id + p->positions : id; /* as Gather counts */
    return id < 0 || id >= p->positions ? -1 : id * p->half;
}

static void rotary_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const rotary_job *j = arg;
    const rotary_plan *p = j->p;
    const char *x = j->call->in[0].data, *cos = j->call->in[1].data, *sin = j->call->in[2].data;
    char *y = j->call->out[0].data;
    const int64_t bytes = j->type == ORTC_FLOAT_F32 ? 4 : 2, turned = 2 * p->half;
    void (*const turn)(size_t, const float *, const float *, const float *,
                       float *) = j->interleaved ? p->body->pairs : p->body->halves;
    for (int64_t r = begin; r < end; r++) { /* in the order of memory */
        const int64_t at = p->packed ? r / p->heads % p->length : r % p->length,
                      b = r / (p->heads * p->length);
        const int64_t first = r * p->size * bytes, angles = angles_of(p, j->call, b, at) * bytes;
        const void *from = x + first, *c = cos + angles, *s = sin + angles;
        if (j->type == ORTC_FLOAT_F32) {
            turn((size_t)p->half, from, c, s, (float *)(void *)(y + first));
        } else {
            float *wide = scratch, *wide_c = wide + turned, *wide_s = wide_c + p->half;
            p->convert->widen[j->type]((size_t)turned, from, wide);
            p->convert->widen[j->type]((size_t)p->half, c, wide_c);
            p->convert->widen[j->type]((size_t)p->half, s, wide_s);
            turn((size_t)p->half, wide, wide_c, wide_s, wide);
            p->convert->narrow[j->type]((size_t)turned, wide, y + first);
        }
        if (x != y)
            memcpy(y + first + turned * bytes, x + first + turned * bytes,
                   (size_t)((p->size - turned) * bytes));
    }
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    rotary_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (rotary_state){ortc_node_int(n, "interleaved", 0) != 0, ortc_node_int(n, "num_heads", 0),
                        ortc_node_int(n, "rotary_embedding_dim", 0)};
    *out = s;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *c, void **out)
{
    const rotary_state *s = state;
    const ortc_view *x = &c->in[0];
    rotary_plan *p = calloc(1, sizeof *p);
    if (!p) return ortc_plan_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    p->body = ortc_rotate_vec_select();
    p->convert = ortc_convert_get();
    p->packed = x->rank == 3;
    p->heads = p->packed ? s->heads : x->dims[1];
    p->length = x->dims[p->packed ? 1 : 2];
    p->size = p->packed ? x->dims[2] / p->heads : x->dims[3];
    p->half = (s->turned ? s->turned : p->size) / 2;
    p->positions = c->in[1].dims[0];
    ortc_plan_in_place(c, 0, 0);
    ortc_plan_workspace(c, 0, (size_t)(4 * p->half) * sizeof(float));
    ortc_plan_cost(c, 3.0 * (double)ortc_view_count(x),
                   2.0 * (double)ortc_bytes_of(ortc_dtype_bits(x->dtype), ortc_view_count(x)));
    *out = p;
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const rotary_plan *p = pstate;
    const ortc_view *x = &c->in[0];
    rotary_job j = {p, c, ((const rotary_state *)state)->interleaved, ortc_float_index(x->dtype)};
    if (ortc_view_count(x) == 0) return ORTC_OK;
    for (int64_t b = 0; b < x->dims[0]; b++)
        for (int64_t at = 0; at < p->length; at++)
            if (angles_of(p, c, b, at) < 0)
                return ortc_call_fail(
                    c, ORTC_INVALID_ARGUMENT,
                    "position_ids has no position of the caches for token %lld of sample %lld, "
                    "which end at %lld",
                    (long long)at, (long long)b, (long long)p->positions);
    return ortc_parallel(c, x->dims[0] * p->heads * p->length, ortc_rows_grain(p->size), rotary_chunk, &j);
}

const ortc_kernel ortc_cpu_rotary = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "rotary_embedding.cpu",
                                     .prepare = prepare,
                                     .plan = plan,
                                     .run = run};
