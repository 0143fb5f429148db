/* kernels/generate/cpu.c: Range and OneHot on the cpu provider. What a range is, how long it is and what is
 * no range is as on ref (generate.h); of OneHot each line along the axis, or each piece of lines beside each
 * other, is filled with "off" and then gets its "on". */
#include <stdlib.h>

#include "kernels/generate/generate.h"

/* ---- Range --------------------------------------------------------------------------------------------- */

typedef struct range_job {
    ortc_range r;
    ortc_dtype type;
    void *y;
} range_job;

#define RANGE(kind, type, ...) \
    case kind: { \
        type *y = j->y; \
        for (int64_t i = begin; i < end; i++) y[i] = (type)(__VA_ARGS__); \
        break; \
    }
static void range_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const range_job *j = arg;
    const ortc_range r = j->r;
    (void)scratch;
    switch (j->type) {
        RANGE(ORTC_F32, float, r.start + (double)i * r.delta)
        RANGE(ORTC_F64, double, r.start + (double)i * r.delta)
        RANGE(ORTC_I32, int32_t, (uint64_t)r.first + (uint64_t)i * (uint64_t)r.step)
    default: RANGE(ORTC_I64, int64_t, (uint64_t)r.first + (uint64_t)i * (uint64_t)r.step)
    }
}

static ortc_status range_run(const void *state, const void *pstate, ortc_call *c)
{
    range_job j = {.type = c->in[0].dtype};
    (void)state, (void)pstate;
    ORTC_TRY(ortc_range_read(c, &j.r));
    ORTC_TRY(ortc_call_resize(c, 0, 1, &j.r.count));
    j.y = c->out[0].data;
    return ortc_parallel(c, j.r.count, 16384, range_chunk, &j);
}

/* ---- OneHot -------------------------------------------------------------------------------------------- */

typedef struct one_hot_job {
    const ortc_view *x;
    char *y;
    const char *values; /* off, on */
    int64_t depth, inner, piece, pieces;
    size_t bytes;
} one_hot_job;

#define FILL(size) \
    { \
        char value[size]; /* `element` may lie in what is written, for all that compilers know */ \
        memcpy(value, element, size); \
        for (int64_t i = 0; i < n; i++) memcpy(to + i * (size), value, size); \
    }
static void fill(char *to, const char *element, int64_t n, size_t bytes)
{
    switch (bytes) {
    case 1: memset(to, *element, (size_t)n); break;
    case 2: FILL(2) break;
    case 4: FILL(4) break;
    case 8: FILL(8) break;
    default: FILL(16)
    }
}

/* A task is the whole depth under a piece of `inner` indices. */
static void one_hot_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const one_hot_job *j = arg;
    const bool floats = ortc_class_of(j->x->dtype) == ORTC_CLASS_FLOAT;
    (void)scratch;
    for (int64_t task = begin; task < end; task++) {
        const int64_t outer = task / j->pieces, first = task % j->pieces * j->piece;
        const int64_t n = j->inner - first < j->piece ? j->inner - first : j->piece;
        char *y = j->y + (size_t)(outer * j->depth * j->inner + first) * j->bytes;
        if (n == j->inner)
            fill(y, j->values, j->depth * n, j->bytes);
        else
            for (int64_t k = 0; k < j->depth; k++)
                fill(y + (size_t)(k * j->inner) * j->bytes, j->values, n, j->bytes);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = outer * j->inner + first + i;
            int64_t index = floats ? ortc_int_of_double(ortc_load_f64(j->x->data, j->x->dtype, at))
                                   : ortc_load_i64(j->x->data, j->x->dtype, at);
            if (index < 0 && ortc_class_of(j->x->dtype) != ORTC_CLASS_UINT) index += j->depth;
            if (index >= 0 && index < j->depth)
                memcpy(y + (size_t)(index * j->inner + i) * j->bytes, j->values + j->bytes, j->bytes);
        }
    }
}

static ortc_status one_hot_run(const void *state, const void *pstate, ortc_call *c)
{
    one_hot_job j = {.x = &c->in[0], .values = c->in[2].data, .bytes = ortc_dtype_bits(c->in[2].dtype) / 8};
    (void)pstate;
    ORTC_TRY(ortc_one_hot_resize(*(const int64_t *)state, c, &j.depth, &j.inner));
    j.y = c->out[0].data;
    const int64_t count = ortc_view_count(&c->out[0]);
    if (count == 0) return ORTC_OK;
    j.piece = 65536 / j.depth < 16 ? 16 : 65536 / j.depth;
    j.piece = j.piece < j.inner ? j.piece : j.inner;
    j.pieces = (j.inner - 1) / j.piece + 1;
    const int64_t grain = 32768 / (j.piece * j.depth);
    return ortc_parallel(c, count / j.depth / j.inner * j.pieces, grain > 0 ? grain : 1, one_hot_chunk, &j);
}

static const ortc_kernel range_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                      .flags = ORTC_KERNEL_LATE_OUT,
                                      .name = "range.cpu",
                                      .host_in = 7,
                                      .run = range_run};
static const ortc_kernel one_hot_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                        .flags = ORTC_KERNEL_LATE_OUT,
                                        .name = "one_hot.cpu",
                                        .host_in = 2,
                                        .prepare = ortc_generate_prepare,
                                        .run = one_hot_run};

#define RANGES (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F64) | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
#define PLAIN (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
#define INDEX ((ORTC_TYPES_NUM) & ~ORTC_TYPE(ORTC_BF16))
ORTC_KERNELS(cpu, generate, ORTC_KERNEL("Range", 27, ORTC_NEWEST, (RANGES), &range_cpu),
             ORTC_KERNEL("OneHot", 28, ORTC_NEWEST, (INDEX, INDEX, PLAIN), &one_hot_cpu));
