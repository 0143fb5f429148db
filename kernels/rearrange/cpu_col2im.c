/* kernels/rearrange/cpu_col2im.c: Col2Im of floats on the cpu, in f32: to a plane of the image the elements
 * of blocks are added one after another, each for all places of its block: rows, as far as they lie in the
 * image. Narrow types have a plane and a row of f32 in the scratch. */
#include "kernels/common/vector/convert.h"
#include "kernels/rearrange/rearrange.h"

/* Adds x[0 .. n] to every step-th element of y from `from` on that is one of `width`. */
static void add_row(float *y, int64_t width, int64_t from, int64_t step, int64_t n, const float *x)
{
    const int64_t first = from < 0 ? (step - 1 - from) / step : 0,
                  room = from < width ? (width - 1 - from) / step + 1 : 0, end = room < n ? room : n;
    if (step == 1)
        for (int64_t i = first; i < end; i++) y[from + i] += x[i];
    else
        for (int64_t i = first; i < end; i++) y[from + i * step] += x[i];
}

/* Places of element k of a block: where their row begins in the image; -1: outside of it. */
static int64_t row_of(const ortc_col_job *j, const int64_t *k, int64_t row)
{
    int64_t place[ORTC_SPATIAL_LIMIT], at = 0;
    const int32_t last = j->spatial - 1;
    for (int32_t d = last - 1; d >= 0; d--) {
        place[d] = row % j->places[d];
        row /= j->places[d];
    }
    for (int32_t d = 0; d < last; d++) {
        const int64_t pixel = k[d] * j->w->dilation[d] - j->w->pad_begin[d] + place[d] * j->w->stride[d];
        if (pixel < 0 || pixel >= j->y->dims[d + 2]) return -1;
        at = at * j->y->dims[d + 2] + pixel;
    }
    return at * j->y->dims[last + 2];
}

/* A plane of y from x; row: scratch for one of narrow types. */
static void plane(const ortc_col_job *j, const char *x, float *y, float *row)
{
    const int32_t last = j->spatial - 1, type = ortc_float_index(j->x->dtype);
    const int64_t length = j->places[last], rows = length ? j->place_count / length : 0;
    const int64_t bytes = length * (type == ORTC_FLOAT_F32 ? 4 : 2);
    int64_t k[ORTC_SPATIAL_LIMIT] = {0}; /* the element of a block */
    memset(y, 0, (size_t)j->image_count * sizeof *y);
    for (int64_t b = 0; b < j->block_count; b++) {
        const int64_t from = k[last] * j->w->dilation[last] - j->w->pad_begin[last];
        for (int64_t r = 0; r < rows; r++, x += bytes) {
            const int64_t at = row_of(j, k, r);
            if (at < 0) continue;
            const float *v = (const float *)(const void *)x;
            if (type != ORTC_FLOAT_F32) {
                ortc_convert_get()->widen[type]((size_t)length, x, row);
                v = row;
            }
            add_row(y + at, j->y->dims[last + 2], from, j->w->stride[last], length, v);
        }
        for (int32_t d = last; d >= 0 && ++k[d] == j->block[d]; d--) k[d] = 0;
    }
}

static void planes_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const ortc_col_job *j = arg;
    const int32_t type = ortc_float_index(j->x->dtype);
    const int64_t size = type == ORTC_FLOAT_F32 ? 4 : 2;
    for (int64_t i = begin; i < end; i++) {
        char *to = (char *)j->y->data + i * j->image_count * size;
        float *y = type == ORTC_FLOAT_F32 ? (float *)(void *)to : scratch;
        plane(j, (const char *)j->x->data + i * j->block_count * j->place_count * size, y,
              y + j->image_count);
        if (type != ORTC_FLOAT_F32) ortc_convert_get()->narrow[type]((size_t)j->image_count, y, to);
    }
}

static ortc_status col_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    int64_t image = 1;
    (void)state, (void)pstate;
    for (int32_t d = 2; d < y->rank; d++) image *= y->dims[d];
    /* a row is some of the places, of which x has the number */
    if (x->dtype != ORTC_F32 && ortc_view_count(y))
        ortc_plan_workspace(p, 0, (size_t)(image + x->dims[2]) * sizeof(float));
    return ORTC_OK;
}

static ortc_status col_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_col_job j;
    (void)pstate;
    ORTC_TRY(ortc_col_read(state, c, &j));
    const int64_t count = ortc_view_count(j.y);
    if (count == 0) return ORTC_OK;
    return ortc_parallel(c, count / j.image_count, ortc_grain((double)(j.block_count * j.place_count) / 2),
                         planes_chunk, &j);
}

const ortc_kernel ortc_cpu_col2im = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "col2im.cpu",
                                     .prepare = ortc_col_prepare,
                                     .plan = col_plan,
                                     .run = col_run};
