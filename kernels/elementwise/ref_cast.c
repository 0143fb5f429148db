/* kernels/elementwise/ref_cast.c: Cast between numbers of any type on ref.
 *
 * Integers to integers keep the low bits; floats to integers are cut towards zero; anything to a float is
 * rounded once, to nearest even. Eight-bit floats saturate unless `saturate` is 0; E8M0 rounds as
 * `round_mode` says.
 */
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/elementwise/elementwise.h"

typedef struct cast_state {
    bool saturate;
    int round_mode; /* ORTC_E8M0_* */
} cast_state;

typedef struct cast_job {
    const cast_state *state;
    const ortc_view *x;
    ortc_view *y;
} cast_job;

static bool is_small_float(ortc_dtype t)
{
    return ortc_float_format_of(t) && t != ORTC_F16 && t != ORTC_BF16;
}

static void cast_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const cast_job *j = arg;
    const ortc_dtype from = j->x->dtype, to = j->y->dtype;
    const ortc_class class = ortc_class_of(from);
    const void *x = j->x->data;
    void *y = j->y->data;
    for (int64_t i = begin; i < end; i++) {
        if (is_small_float(to))
            ortc_store_bits(y, ortc_dtype_bits(to), i,
                            ortc_float_encode(ortc_float_format_of(to), ortc_load_f64(x, from, i),
                                              j->state->saturate));
        else if (to == ORTC_F8E8M0)
            ((uint8_t *)y)[i] = (uint8_t)ortc_e8m0_encode(ortc_load_f64(x, from, i), j->state->round_mode,
                                                          j->state->saturate);
        else if (class == ORTC_CLASS_FLOAT)
            ortc_store_f64(y, to, i, ortc_load_f64(x, from, i));
        else if (class == ORTC_CLASS_INT)
            ortc_store_i64(y, to, i, ortc_load_i64(x, from, i));
        else
            ortc_store_u64(y, to, i, ortc_load_u64(x, from, i));
    }
}

static ortc_status cast_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    static const char *const modes[] = {"nearest", "up", "down"};
    const char *mode = ortc_node_string(n, "round_mode", "up");
    cast_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->saturate = ortc_node_int(n, "saturate", 1) != 0;
    for (s->round_mode = 0; s->round_mode < 3 && strcmp(mode, modes[s->round_mode]) != 0;) s->round_mode++;
    if (s->round_mode == 3) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "attribute round_mode is '%s', expected up, down or nearest", mode);
    }
    *out = s;
    return ORTC_OK;
}

static ortc_status cast_plan(const void *state, ortc_plan *p, void **pstate)
{
    if (p->in[0].dtype == p->out[0].dtype)
        ortc_plan_view(p, 0, 0, 0);
    else
        ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

static ortc_status cast_run(const void *state, const void *pstate, ortc_call *c)
{
    cast_job j = {state, &c->in[0], &c->out[0]};
    if (j.x->dtype == j.y->dtype) return ortc_run_copy(c);
    ortc_clear_tail(j.y, ortc_view_count(j.y));
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(10), cast_chunk, &j);
}

const ortc_kernel ortc_ref_cast = {.size = ORTC_SIZED(ortc_kernel),
                                   .name = "cast.ref",
                                   .prepare = cast_prepare,
                                   .plan = cast_plan,
                                   .run = cast_run};
