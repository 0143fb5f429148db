/* kernels/bits/ref.c: operators on bits on ref. A shift by a negative number, or by as many bits as there are
 * or more, shifts all bits out; to the right copies of the sign come in.
 */
#include <stdlib.h>

#include "kernels/common/shape.h"

enum { AND, OR, XOR, LEFT, RIGHT };

typedef struct bits_job {
    int what;
    const ortc_view *a, *b;
    ortc_view *y;
    ortc_walk walk;
} bits_job;

static ortc_status bits_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    static const char *const names[] = {"BitwiseAnd", "BitwiseOr", "BitwiseXor"};
    const char *direction = ortc_node_string(n, "direction", "");
    int *what = malloc(sizeof *what);
    if (!what) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    for (*what = AND; *what <= XOR && strcmp(ortc_node_op(n), names[*what]) != 0;) ++*what;
    if (*what > XOR) {
        *what = !strcmp(direction, "LEFT") ? LEFT : RIGHT;
        if (*what == RIGHT && strcmp(direction, "RIGHT") != 0) {
            free(what);
            return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                                  "attribute direction is '%s', expected LEFT or RIGHT", direction);
        }
    }
    *out = what;
    return ORTC_OK;
}

/* a holds the sign's copies above its type's bits, so that a right shift brings them in. */
static uint64_t shifted(bool left, int64_t a, int64_t by, uint32_t bits, bool is_signed)
{
    const bool all = is_signed ? by < 0 || by >= (int64_t)bits : (uint64_t)by >= bits;
    if (left) return all ? 0 : (uint64_t)a << by;
    if (!is_signed) return all ? 0 : (uint64_t)a >> by;
    return all ? (a < 0 ? UINT64_MAX : 0) : a < 0 ? ~(~(uint64_t)a >> by) : (uint64_t)a >> by;
}

static void bits_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const bits_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    ortc_walk w = j->walk;
    ortc_walk_seek(&w, begin);
    for (int64_t i = begin; i < end; i++, ortc_walk_next(&w)) {
        const int64_t a = ortc_load_i64(j->a->data, t, w.at[0]), b = ortc_load_i64(j->b->data, t, w.at[1]);
        uint64_t v;
        switch (j->what) {
        case AND: v = (uint64_t)(a & b); break;
        case OR: v = (uint64_t)(a | b); break;
        case XOR: v = (uint64_t)(a ^ b); break;
        default:
            v = shifted(j->what == LEFT, a, b, ortc_dtype_bits(t), ortc_class_of(t) == ORTC_CLASS_INT);
            break;
        }
        ortc_store_u64(j->y->data, t, i, v);
    }
}

static ortc_status bits_run(const void *state, const void *pstate, ortc_call *c)
{
    bits_job j = {*(const int *)state, &c->in[0], &c->in[1], &c->out[0]};
    const int64_t count = ortc_view_count(j.y);
    if (count == 0) return ORTC_OK;
    ortc_walk_init(&j.walk, j.y->rank, j.y->dims);
    ortc_walk_view(&j.walk, j.a);
    ortc_walk_view(&j.walk, j.b);
    ortc_walk_merge(&j.walk);
    return ortc_parallel(c, count, ortc_grain(8), bits_chunk, &j);
}

static ortc_status bits_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    ortc_plan_in_place(p, 0, 1);
    return ORTC_OK;
}

static void not_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const bits_job *j = arg;
    for (int64_t i = begin; i < end; i++)
        ortc_store_u64(j->y->data, j->y->dtype, i, ~(uint64_t)ortc_load_i64(j->a->data, j->y->dtype, i));
}

static ortc_status not_run(const void *state, const void *pstate, ortc_call *c)
{
    bits_job j = {.a = &c->in[0], .y = &c->out[0]};
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(4), not_chunk, &j);
}

static ortc_status not_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

static ortc_status cast_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_view(p, 0, 0, 0);
    return ORTC_OK;
}
static ortc_status cast_run(const void *state, const void *pstate, ortc_call *c) { return ortc_run_copy(c); }

static const ortc_kernel bits_ref = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "bits.ref",
                                     .prepare = bits_prepare,
                                     .plan = bits_plan,
                                     .run = bits_run};
static const ortc_kernel not_ref = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "bitwise_not.ref",
                                    .plan = not_plan,
                                    .run = not_run};
static const ortc_kernel cast_ref = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "bit_cast.ref",
                                     .plan = cast_plan,
                                     .run = cast_run};

#define WHOLE (ORTC_TYPES_INT | ORTC_TYPES_UINT)
#define EVERY (ORTC_TYPES_ALL & ~(ORTC_TYPE(ORTC_STRING) | ORTC_TYPE(ORTC_F6E2M3) | ORTC_TYPE(ORTC_F6E3M2)))
ORTC_KERNELS(ref, bits, ORTC_KERNEL("BitwiseAnd", 18, ORTC_NEWEST, (WHOLE), &bits_ref),
             ORTC_KERNEL("BitwiseOr", 18, ORTC_NEWEST, (WHOLE), &bits_ref),
             ORTC_KERNEL("BitwiseXor", 18, ORTC_NEWEST, (WHOLE), &bits_ref),
             ORTC_KERNEL("BitwiseNot", 18, ORTC_NEWEST, (WHOLE), &not_ref),
             ORTC_KERNEL("BitShift", 28, ORTC_NEWEST, (WHOLE), &bits_ref),
             ORTC_KERNEL("BitCast", 26, ORTC_NEWEST, (EVERY, EVERY), &cast_ref));
