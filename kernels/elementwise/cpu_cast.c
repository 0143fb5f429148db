/* kernels/elementwise/cpu_cast.c: Cast on the cpu provider between the types that models use: blocks go
 * through f32 or i32 in L1, where that rounds once and keeps what ref keeps; other pairs are ref's. Floats
 * that do not fit 32 bits are converted one by one, as ref does it. Goes along with other layouts: what
 * fills up a block is 0 in every type. */
#include "kernels/common/layout.h"
#include "kernels/common/shape.h"
#include "kernels/elementwise/lines.h"

ORTC_VEC_TABLE(ortc_lines)

enum { BLOCK = 1024 };

static int line_of(ortc_dtype t)
{
    switch (t) {
    case ORTC_F32: return ORTC_LINE_F32;
    case ORTC_F16: return ORTC_LINE_F16;
    case ORTC_BF16: return ORTC_LINE_BF16;
    case ORTC_F64: return ORTC_LINE_F64;
    case ORTC_BOOL: return ORTC_LINE_BOOL;
    case ORTC_I8: return ORTC_LINE_I8;
    case ORTC_U8: return ORTC_LINE_U8;
    case ORTC_I16: return ORTC_LINE_I16;
    case ORTC_U16: return ORTC_LINE_U16;
    case ORTC_I32: return ORTC_LINE_I32;
    case ORTC_I64: return ORTC_LINE_I64;
    default: return -1;
    }
}
static bool is_float(int line) { return line <= ORTC_LINE_F64; }

/* Whether f32 or i32 between them changes nothing. */
static bool can(ortc_dtype from, ortc_dtype to)
{
    const int a = line_of(from), b = line_of(to);
    if (a < 0 || b < 0) return false;
    if (a == ORTC_LINE_F64)
        return b == ORTC_LINE_F32 ||
               b == ORTC_LINE_F64; /* to narrower ones it would round twice; integers have more bits */
    if (is_float(b) &&
        (a == ORTC_LINE_I32 || a == ORTC_LINE_I64)) /* f16: what f32 rounds is infinite there */
        return b == ORTC_LINE_F32 || b == ORTC_LINE_F16;
    return true;
}

typedef struct cast_job {
    const ortc_lines *body;
    const char *x;
    char *y;
    ortc_dtype from, to;
} cast_job;

/* n elements, at most a block; x and y may be the same memory. */
static void cast_block(const cast_job *j, size_t n, const void *x, void *y)
{
    const ortc_lines *body = j->body;
    const int a = line_of(j->from), b = line_of(j->to);
    float f[BLOCK];
    int32_t k[BLOCK];
    const float *values = a == ORTC_LINE_F32 ? x : f;
    if (a == ORTC_LINE_I64 && b == ORTC_LINE_BOOL) {
        body->bool_of_i64(n, x, y);
    } else if (b == ORTC_LINE_F32) {
        body->to_f32[a](n, x, y);
    } else if (is_float(a) || is_float(b)) {
        if (a != ORTC_LINE_F32) body->to_f32[a](n, x, f);
        if (is_float(b) || b == ORTC_LINE_BOOL)
            body->of_f32[b](n, values, y);
        else if (body->cut(n, values, k))
            body->of_i32[b](n, k, y);
        else
            for (size_t i = 0; i < n; i++)
                ortc_store_i64(y, j->to, (int64_t)i,
                               ortc_int_of_double((double)ortc_load_f64(values, ORTC_F32, (int64_t)i)));
    } else {
        body->to_i32[a](n, x, k);
        body->of_i32[b](n, k, y);
    }
}

static void cast_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const cast_job *j = arg;
    const int64_t from = ortc_dtype_bits(j->from) / 8, to = ortc_dtype_bits(j->to) / 8;
    (void)scratch;
    for (; begin < end; begin += BLOCK)
        cast_block(j, (size_t)(end - begin < BLOCK ? end - begin : BLOCK), j->x + begin * from,
                   j->y + begin * to);
}

static ortc_status cast_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_dtype from = ortc_node_in(n, 0).dtype, to = ortc_node_out(n, 0).dtype;
    (void)device;
    if (can(from, to)) return ORTC_OK;
    return ortc_no(why, "from %s to %s is not done here", ortc_dtype_name(from), ortc_dtype_name(to));
}

static double cast_bytes(const ortc_view *x, const ortc_view *y)
{
    return (double)ortc_view_count(x) * (ortc_dtype_bits(x->dtype) + ortc_dtype_bits(y->dtype)) / 8;
}

static ortc_status cast_choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const bool other = q->layout != ORTC_PLAIN;
    (void)state;
    if (q->layout == ORTC_ANY_LAYOUT) return ortc_no(why, "it goes along with others");
    if (other && (q->in[0].rank > 8 || ortc_layout_axis(q->layout) >= q->in[0].rank ||
                  q->in[0].dtype == q->out[0].dtype))
        return ortc_no(why, "not in this layout");
    o->in[0] = o->out[0] = q->layout;
    o->clocks = 0.1 * cast_bytes(&q->in[0], &q->out[0]);
    return ORTC_OK;
}

static ortc_status cast_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    (void)state, (void)pstate;
    if (x->dtype == y->dtype)
        ortc_plan_view(p, 0, 0, 0);
    else
        ortc_plan_in_place(p, 0, 0);
    ortc_plan_cost(p, 0, cast_bytes(x, y));
    return ORTC_OK;
}

static ortc_status cast_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *y = &c->out[0];
    const cast_job j = {ortc_lines_select(), c->in[0].data, y->data, c->in[0].dtype, y->dtype};
    int64_t dims[ORTC_RANK_LIMIT + 1], count = 1;
    int32_t rank;
    (void)state, (void)pstate;
    if (j.from == j.to) return ortc_run_copy(c);
    ortc_layout_dims(y->layout, y->rank, y->dims, &rank, dims);
    for (int32_t i = 0; i < rank; i++) count *= dims[i];
    return ortc_parallel(c, count, 16 * BLOCK, cast_chunk, (void *)&j);
}

static const ortc_kernel cast = {.size = ORTC_SIZED(ortc_kernel),
                                 .flags = ORTC_KERNEL_LAYOUTS,
                                 .name = "cast.cpu",
                                 .supports = cast_supports,
                                 .choose = cast_choose,
                                 .plan = cast_plan,
                                 .run = cast_run};

#define TYPES \
    (ORTC_TYPES_FLOAT | ORTC_TYPES_INT | ORTC_TYPE(ORTC_U8) | ORTC_TYPE(ORTC_U16) | ORTC_TYPE(ORTC_BOOL))
ORTC_KERNELS(cpu, cast, ORTC_KERNEL("Cast", 28, ORTC_NEWEST, (TYPES, TYPES), &cast));
