/* kernels/select/cpu.c: NonZero on the cpu provider: a first loop counts what each piece has, a second writes
 * it behind what the pieces before have; and the family's table there. */
#include "kernels/select/select.h"

enum { PIECE = 16384 };

typedef struct nonzero_job {
    const ortc_view *x;
    int64_t *y, *before; /* before: what a piece has, then what pieces before it have */
    int64_t found;
} nonzero_job;

/* Elements as integers without the sign of floats: -0 is 0, NaN is not. */
#define EACH(type, mask, ...) \
    { \
        const type *x = j->x->data; \
        for (int64_t i = first; i < end; i++) { \
            const bool is = (x[i] & (type)(mask)) != 0; \
            __VA_ARGS__ \
        } \
        break; \
    }
/* clang-format off */
#define BY_TYPE(...) \
    switch (j->x->dtype) { \
    case ORTC_F32: EACH(uint32_t, 0x7fffffff, __VA_ARGS__) \
    case ORTC_F64: EACH(uint64_t, INT64_MAX, __VA_ARGS__) \
    case ORTC_F16: case ORTC_BF16: EACH(uint16_t, 0x7fff, __VA_ARGS__) \
    case ORTC_I8: case ORTC_U8: case ORTC_BOOL: EACH(uint8_t, -1, __VA_ARGS__) \
    case ORTC_I16: case ORTC_U16: EACH(uint16_t, -1, __VA_ARGS__) \
    case ORTC_I32: case ORTC_U32: EACH(uint32_t, -1, __VA_ARGS__) \
    default: EACH(uint64_t, -1, __VA_ARGS__) \
    }
/* clang-format on */

static int64_t end_of(const nonzero_job *j, int64_t first)
{
    const int64_t all = ortc_view_count(j->x);
    return all - first < PIECE ? all : first + PIECE;
}

static void count_chunk(void *arg, int64_t begin, int64_t stop, void *scratch)
{
    const nonzero_job *j = arg;
    (void)scratch;
    for (int64_t piece = begin; piece < stop; piece++) {
        const int64_t first = piece * PIECE, end = end_of(j, first);
        int64_t n = 0;
        BY_TYPE(n += is;)
        j->before[piece] = n;
    }
}

static void write_chunk(void *arg, int64_t begin, int64_t stop, void *scratch)
{
    const nonzero_job *j = arg;
    const int32_t rank = j->x->rank;
    for (int64_t piece = begin; piece < stop; piece++) {
        const int64_t first = piece * PIECE, end = end_of(j, first);
        int64_t *index = scratch, n = 0;
        BY_TYPE(index[n] = i; n += is;)
        int64_t inner = 1; /* places become indices from the last dim on */
        for (int32_t d = rank - 1; d >= 0; inner *= j->x->dims[d--]) {
            int64_t *y = j->y + d * j->found + j->before[piece];
            for (int64_t k = 0; k < n; k++)
                y[k] = d > 0 ? index[k] / inner % j->x->dims[d] : index[k] / inner;
        }
    }
}

static ortc_status nonzero_plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_workspace(p, (size_t)(ortc_view_count(&p->in[0]) / PIECE + 1) * sizeof(int64_t),
                        PIECE * sizeof(int64_t));
    return ORTC_OK;
}

static ortc_status nonzero_run(const void *state, const void *pstate, ortc_call *c)
{
    nonzero_job j = {.x = &c->in[0], .before = c->workspace};
    const int64_t pieces = (ortc_view_count(j.x) + PIECE - 1) / PIECE;
    (void)state, (void)pstate;
    ORTC_TRY(ortc_parallel(c, pieces, 1, count_chunk, &j));
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t n = j.before[i];
        j.before[i] = j.found;
        j.found += n;
    }
    ORTC_TRY(ortc_call_resize(c, 0, 2, (const int64_t[2]){j.x->rank, j.found}));
    j.y = c->out[0].data;
    return j.found ? ortc_parallel(c, pieces, 1, write_chunk, &j) : ORTC_OK;
}

static const ortc_kernel nonzero = {.size = ORTC_SIZED(ortc_kernel),
                                    .flags = ORTC_KERNEL_LATE_OUT,
                                    .name = "nonzero.cpu",
                                    .plan = nonzero_plan,
                                    .run = nonzero_run};

#define PLAIN ((ORTC_TYPES_NUM) | ORTC_TYPE(ORTC_BOOL))
ORTC_KERNELS(cpu, select, ORTC_KERNEL("NonZero", 9, ORTC_NEWEST, (PLAIN), &nonzero),
             ORTC_KERNEL("NonMaxSuppression", 11, ORTC_NEWEST, (0), &ortc_cpu_nms));
