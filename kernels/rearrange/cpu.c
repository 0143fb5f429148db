/* kernels/rearrange/cpu.c: Pad and CenterCropPad on the cpu provider, for elements of whole bytes: a row of
 * the output, along its last dim, is a row of the input or nothing; what lies inside is one copy, what lies
 * outside goes element by element, as ref says. */
#include "kernels/common/vector/convert.h"
#include "kernels/rearrange/rearrange.h"

typedef struct pad_job {
    int mode;
    const ortc_view *x;
    ortc_view *y;
    const char *fill;
    size_t bytes;
    int64_t before[ORTC_RANK_LIMIT], strides[ORTC_RANK_LIMIT];
} pad_job;

static void fill(char *to, const char *element, int64_t n, size_t bytes)
{
    for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)i * bytes, element, bytes);
}
/* The widths of models inline, so that compilers make vectors of them. */
static void filling(char *to, const char *element, int64_t n, size_t bytes)
{
    switch (bytes) {
    case 1: fill(to, element, n, 1); break;
    case 2: fill(to, element, n, 2); break;
    case 4: fill(to, element, n, 4); break;
    default: fill(to, element, n, bytes);
    }
}

/* Where dims `first` to `end` lead from `at`; -1: outside. */
static int64_t place(const pad_job *j, const int64_t *index, int32_t first, int32_t end, int64_t at)
{
    for (int32_t d = first; d < end && at >= 0; d++) {
        const int64_t i = ortc_pad_source(j->mode, index[d] - j->before[d], j->x->dims[d]);
        at = i < 0 ? -1 : at + i * j->strides[d];
    }
    return at;
}

static void rows_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const pad_job *j = arg;
    const int32_t last = j->y->rank - 1;
    const int64_t width = j->y->dims[last], have = j->x->dims[last], before = j->before[last];
    int64_t from = before < 0 ? 0 : before < width ? before : width; /* the part of a row that lies inside */
    int64_t to = have + before > width ? width : have + before > from ? have + before : from;
    (void)scratch;
    int64_t index[ORTC_RANK_LIMIT], rest = begin;
    for (int32_t d = last - 1; d >= 0; d--) {
        index[d] = rest % j->y->dims[d];
        rest /= j->y->dims[d];
    }
    int64_t plane = 0; /* where the rows with these outer indices are; -1: outside */
    for (int64_t row = begin; row < end; row++) {
        char *y = (char *)j->y->data + (size_t)(row * width) * j->bytes;
        if (row == begin || (last > 0 && index[last - 1] == 0)) plane = place(j, index, 0, last - 1, 0);
        const int64_t at = place(j, index, last > 0 ? last - 1 : 0, last, plane);
        for (int32_t d = last - 1; d >= 0 && ++index[d] == j->y->dims[d]; d--) index[d] = 0;
        if (at < 0) {
            filling(y, j->fill, width, j->bytes);
            continue;
        }
        const char *x = (const char *)j->x->data + (size_t)at * j->bytes;
        if (to > from)
            memcpy(y + (size_t)from * j->bytes, x + (size_t)(from - before) * j->bytes,
                   (size_t)(to - from) * j->bytes);
        for (int side = 0; side < 2; side++) {
            const int64_t first = side ? to : 0, stop = side ? width : from;
            if (j->mode == ORTC_PADDING_CONSTANT)
                filling(y + (size_t)first * j->bytes, j->fill, stop - first, j->bytes);
            else
                for (int64_t i = first; i < stop; i++)
                    memcpy(y + (size_t)i * j->bytes,
                           x + (size_t)ortc_pad_source(j->mode, i - before, have) * j->bytes, j->bytes);
        }
    }
}

static ortc_status pad_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *y = &p->out[0], *pads = &p->in[1];
    bool nothing = pads->data !=
                   NULL; /* caches that have room, where a model pads them for what is to come */
    (void)state, (void)pstate;
    for (int64_t i = 0; nothing && i < ortc_view_count(pads); i++)
        nothing = ortc_load_i64(pads->data, ORTC_I64, i) == 0;
    if (nothing) ortc_plan_view(p, 0, 0, 0);
    ortc_plan_cost(p, 0, 2.0 * (double)ortc_view_count(y) * ortc_dtype_bits(y->dtype) / 8);
    return ORTC_OK;
}

static const uint64_t zero[2];

static ortc_status pad_go(ortc_call *c, pad_job *j)
{
    const int64_t count = ortc_view_count(j->y);
    if (count == 0) return ORTC_OK;
    j->bytes = ortc_dtype_bits(j->y->dtype) / 8;
    if (j->y->rank == 0) {
        memcpy(j->y->data, j->x->data, j->bytes);
        return ORTC_OK;
    }
    int64_t have[ORTC_RANK_LIMIT], want[ORTC_RANK_LIMIT];
    ortc_view x = *j->x, y = *j->y;
    memcpy(have, x.dims, (size_t)x.rank * sizeof *have);
    memcpy(want, y.dims, (size_t)y.rank * sizeof *want);
    x.dims = have, y.dims = want, j->x = &x, j->y = &y;
    /* a last dim that stays as it is is a part of the elements of the one before */
    for (int32_t last = y.rank - 1; last > 0 && have[last] == want[last] && j->before[last] == 0; last--) {
        int64_t extent, before;
        if (j->mode != ORTC_PADDING_CONSTANT && want[last] != 1) break;
        if (__builtin_mul_overflow(have[last - 1], want[last], &extent) ||
            __builtin_mul_overflow(j->before[last - 1], want[last], &before))
            break;
        have[last - 1] = extent, j->before[last - 1] = before, want[last - 1] *= want[last];
        x.rank = y.rank = last;
    }
    ortc_dense_strides(x.rank, have, j->strides);
    const int64_t width = j->y->dims[j->y->rank - 1], grain = 65536 / (width * (int64_t)j->bytes + 32);
    return ortc_parallel(c, count / width, grain > 0 ? grain : 1, rows_chunk, j);
}

static ortc_status pad_run(const void *state, const void *pstate, ortc_call *c)
{
    pad_job j = {.mode = *(const int *)state, .x = &c->in[0], .y = &c->out[0], .fill = (const char *)zero};
    (void)pstate;
    const ortc_view *value = c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL;
    if (value && ortc_view_count(value) == 1) j.fill = value->data;
    if (ortc_view_count(j.y)) ORTC_TRY(ortc_pad_before(c, j.before));
    return pad_go(c, &j);
}

static ortc_status center_run(const void *state, const void *pstate, ortc_call *c)
{
    pad_job j = {.mode = ORTC_PADDING_CONSTANT, .x = &c->in[0], .y = &c->out[0], .fill = (const char *)zero};
    (void)state, (void)pstate;
    ortc_center_before(j.x, j.y, j.before);
    return pad_go(c, &j);
}

static const ortc_kernel pad = {.size = ORTC_SIZED(ortc_kernel),
                                .name = "pad.cpu",
                                .host_in = 0xa,
                                .prepare = ortc_pad_prepare,
                                .plan = pad_plan,
                                .run = pad_run};

static const ortc_kernel center = {.size = ORTC_SIZED(ortc_kernel),
                                   .name = "center_crop_pad.cpu",
                                   .host_in = 2,
                                   .run = center_run};

#define PLAIN (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
ORTC_KERNELS(cpu, rearrange, ORTC_KERNEL("Col2Im", 18, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_cpu_col2im),
             ORTC_KERNEL("Pad", 25, ORTC_NEWEST, (PLAIN), &pad),
             ORTC_KERNEL("CenterCropPad", 18, ORTC_NEWEST, (PLAIN), &center),
             ORTC_KERNEL("Tile", 13, ORTC_NEWEST, (PLAIN), &ortc_cpu_tile),
             ORTC_KERNEL("Trilu", 14, ORTC_NEWEST, (PLAIN), &ortc_cpu_trilu),
             ORTC_KERNEL("DepthToSpace", 28, ORTC_NEWEST, (PLAIN), &ortc_cpu_depth_to_space),
             ORTC_KERNEL("SpaceToDepth", 28, ORTC_NEWEST, (PLAIN), &ortc_cpu_space_to_depth));
