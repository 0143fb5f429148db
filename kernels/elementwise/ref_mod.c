/* kernels/elementwise/ref_mod.c: Mod on ref: the remainder of a division rounded down (fmod=0, the sign of B)
 * or towards zero (fmod=1, the sign of A). Integers by zero give 0, as Div does.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/elementwise/elementwise.h"

typedef struct mod_job {
    bool truncate;
    const ortc_view *a, *b;
    ortc_view *y;
    ortc_walk walk;
} mod_job;

static double mod_floats(double a, double b, bool truncate)
{
    const double r = fmod(a, b);
    if (truncate || r != r) return r;
    return r == 0 ? copysign(0, b) : (r < 0) != (b < 0) ? r + b : r;
}
static int64_t mod_ints(int64_t a, int64_t b, bool truncate)
{
    const int64_t r = b == 0 || b == -1 ? 0 : a % b; /* the lowest number has no quotient by -1 */
    return !truncate && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static void mod_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const mod_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    const void *a = j->a->data, *b = j->b->data;
    ortc_walk w = j->walk;
    ortc_walk_seek(&w, begin);
    for (int64_t i = begin; i < end; i++, ortc_walk_next(&w)) switch (ortc_class_of(t)) {
        case ORTC_CLASS_FLOAT:
            ortc_store_f64(j->y->data, t, i,
                           mod_floats(ortc_load_f64(a, t, w.at[0]), ortc_load_f64(b, t, w.at[1]),
                                      j->truncate));
            break;
        case ORTC_CLASS_INT:
            ortc_store_i64(j->y->data, t, i,
                           mod_ints(ortc_load_i64(a, t, w.at[0]), ortc_load_i64(b, t, w.at[1]), j->truncate));
            break;
        default: {
            const uint64_t by = ortc_load_u64(b, t, w.at[1]);
            ortc_store_u64(j->y->data, t, i, by ? ortc_load_u64(a, t, w.at[0]) % by : 0);
        }
        }
}

static ortc_status mod_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const int64_t truncate = ortc_node_int(n, "fmod", 0);
    bool *state = malloc(sizeof *state);
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *state = truncate != 0;
    *out = state;
    return ORTC_OK;
}

static ortc_status mod_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    ortc_plan_in_place(p, 0, 1);
    return ORTC_OK;
}

static ortc_status mod_run(const void *state, const void *pstate, ortc_call *c)
{
    mod_job j = {*(const bool *)state, &c->in[0], &c->in[1], &c->out[0]};
    const int64_t count = ortc_view_count(j.y);
    if (count == 0) return ORTC_OK;
    ortc_walk_init(&j.walk, j.y->rank, j.y->dims);
    ortc_walk_view(&j.walk, j.a);
    ortc_walk_view(&j.walk, j.b);
    ortc_walk_merge(&j.walk);
    return ortc_parallel(c, count, ortc_grain(20), mod_chunk, &j);
}

const ortc_kernel ortc_ref_mod = {.size = ORTC_SIZED(ortc_kernel),
                                  .name = "mod.ref",
                                  .prepare = mod_prepare,
                                  .plan = mod_plan,
                                  .run = mod_run};
