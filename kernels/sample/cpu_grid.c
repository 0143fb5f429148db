/* kernels/sample/cpu_grid.c: GridSample of f32, f16 and bf16 on the cpu provider, over one to three spatial
 * dims. Where a position reads and how much each pixel weighs is as on ref (grid.h), found once for all
 * channels: a task is a piece of the positions of an image, of which places and weights lie in scratch, those
 * of a tap together. Sums are f32.
 */
#include <stdlib.h>

#include "kernels/common/vector/convert.h"
#include "kernels/sample/deform.h"
#include "kernels/sample/grid.h"
#include "kernels/sample/grid_lines.h"
#include "kernels/sample/roi.h"

ORTC_VEC_TABLE(ortc_grid_lines)

enum { PIECE = 256, DIMS = 3, SMALL = 65536 /* pixels */ };

typedef struct grid_job {
    const ortc_grid_state *s;
    const ortc_grid_lines *lines;
    const ortc_convert *convert;
    const ortc_view *x, *grid;
    char *y;
    int32_t spatial;
    int64_t taps;                        /* of all dims */
    int64_t out_count, in_count, pieces; /* positions of a channel; pieces of them */
} grid_job;

/* Of a piece: [tap][PIECE] of all dims; what each dim has, and what is converted. */
typedef struct grid_piece {
    float normalized[PIECE], own_weight[2 * PIECE], sums[PIECE], pixels[PIECE];
    int32_t own[2 * PIECE];
    uint16_t picked[PIECE];
    int32_t *at;
    float *weight;
} grid_piece;

/* As ref does. */
static void read_any(const grid_job *j, int64_t first, int64_t n, grid_piece *p)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t g0 = (first + i) * j->spatial;
        ortc_grid_taps t[DIMS] = {{0}};
        for (int32_t d = j->spatial - 1; d >= 0; d--) /* coordinates come last dim first */
            t[d] = ortc_grid_around(j->s,
                                    ortc_load_f64(j->grid->data, j->grid->dtype, g0 + j->spatial - 1 - d),
                                    j->x->dims[d + 2]);
        for (int64_t k = 0; k < j->taps; k++) {
            int64_t rest = k, place = 0, step = 1;
            double w = 1;
            for (int32_t d = j->spatial - 1; d >= 0; d--) {
                const int64_t tap = rest % t[d].n;
                rest /= t[d].n;
                if (t[d].at[tap] < 0 || t[d].weight[tap] == 0) w = 0;
                w *= t[d].weight[tap];
                place += t[d].at[tap] * step;
                step *= j->x->dims[d + 2];
            }
            p->at[k * PIECE + i] = w == 0 ? 0 : (int32_t)place;
            p->weight[k * PIECE + i] = (float)w;
        }
    }
}

/* Those of a dim: n from element `first` of the grid on. */
static void read_coordinates(const grid_job *j, int64_t first, int64_t n, float *to)
{
    const float *grid = (const float *)j->grid->data + first;
    if (j->grid->dtype == ORTC_F32)
        for (int64_t i = 0; i < n; i++) to[i] = grid[i * j->spatial];
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)ortc_load_f64(j->grid->data, j->grid->dtype, first + i * j->spatial);
}

/* Most of what networks ask for, dim by dim from the last one on; tap k of a dim is the upper digit of those
 * so far. */
static void read_simple(const grid_job *j, int64_t first, int64_t n, grid_piece *p)
{
    const int own = ortc_grid_taps_of(j->s);
    int64_t step = 1;
    int have = 1;
    for (int32_t d = j->spatial - 1; d >= 0; d--) {
        const int64_t extent = j->x->dims[d + 2];
        read_coordinates(j, first * j->spatial + j->spatial - 1 - d, n, p->normalized);
        const bool is_last = d == j->spatial - 1;
        j->lines->around((size_t)n, p->normalized, extent, j->s->mode == ORTC_GRID_LINEAR,
                         j->s->padding == ORTC_GRID_BORDER, j->s->corners, PIECE, is_last ? p->at : p->own,
                         is_last ? p->weight : p->own_weight);
        for (int k = own; !is_last && k-- > 0;)
            for (int l = have; l-- > 0;) {
                const int to = (k * have + l) * PIECE;
                j->lines->combine((size_t)n, (int32_t)step, p->own + k * PIECE, p->own_weight + k * PIECE,
                                  p->at + l * PIECE, p->weight + l * PIECE, p->at + to, p->weight + to);
            }
        have *= own;
        step *= extent;
    }
}

/* Whether a channel of 16 bits is widened before elements are picked. */
static bool is_small(int64_t in_count, int64_t picks) { return in_count <= SMALL && in_count <= 8 * picks; }

/* Elements of 16 bits are picked one by one, of large channels, and computed as f32. */
static void sample_narrow(const grid_job *j, size_t n, const uint16_t *x, grid_piece *p, void *y)
{
    const int type = ortc_float_index(j->x->dtype);
    if (is_small(j->in_count, (int64_t)n * j->taps)) {
        float *wide = p->weight + j->taps * PIECE;
        j->convert->widen[type]((size_t)j->in_count, x, wide);
        j->lines->sample(n, (size_t)j->taps, PIECE, wide, p->at, p->weight, p->sums);
        j->convert->narrow[type](n, p->sums, y);
        return;
    }
    for (int64_t k = 0; k < j->taps; k++) {
        for (size_t i = 0; i < n; i++) p->picked[i] = x[p->at[k * PIECE + (int64_t)i]];
        j->convert->widen[type](n, p->picked, p->pixels);
        j->lines->add(n, p->pixels, p->weight + k * PIECE, k == 0, p->sums);
    }
    j->convert->narrow[type](n, p->sums, y);
}

static void grid_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const grid_job *j = arg;
    const int64_t channels = j->x->dims[1];
    const size_t bytes = ortc_dtype_bits(j->x->dtype) / 8;
    const bool simple = j->s->mode != ORTC_GRID_CUBIC && j->s->padding != ORTC_GRID_REFLECTION &&
                        j->grid->dtype != ORTC_F64;
    grid_piece *p = scratch;
    p->at = (int32_t *)(p + 1);
    p->weight = (float *)(p->at + j->taps * PIECE);
    for (int64_t task = begin; task < end; task++) {
        const int64_t image = task / j->pieces, first = task % j->pieces * PIECE;
        const int64_t n = j->out_count - first < PIECE ? j->out_count - first : PIECE;
        (simple ? read_simple : read_any)(j, image * j->out_count + first, n, p);
        for (int64_t c = 0; c < channels; c++) {
            const char *x = (const char *)j->x->data + (size_t)((image * channels + c) * j->in_count) * bytes;
            char *y = j->y + (size_t)((image * channels + c) * j->out_count + first) * bytes;
            if (j->x->dtype == ORTC_F32)
                j->lines->sample((size_t)n, (size_t)j->taps, PIECE, (const float *)(const void *)x, p->at,
                                 p->weight, (float *)(void *)y);
            else
                sample_narrow(j, (size_t)n, (const uint16_t *)(const void *)x, p, y);
        }
    }
}

static ortc_status grid_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const int32_t rank = ortc_node_in(n, 0).rank;
    (void)device;
    return rank >= 3 && rank <= 2 + DIMS ? ORTC_OK : ortc_no(why, "one to three spatial dims are done here");
}

static int64_t taps_of(const ortc_grid_state *s, int32_t spatial)
{
    int64_t taps = 1;
    for (int32_t d = 0; d < spatial; d++) taps *= ortc_grid_taps_of(s);
    return taps;
}

static ortc_status grid_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0];
    const int64_t taps = taps_of(state, x->rank - 2);
    double pixels = 1;
    (void)pstate;
    for (int32_t d = 2; d < x->rank; d++) pixels *= (double)x->dims[d];
    if (pixels > INT32_MAX)
        return ortc_plan_fail(p, ORTC_LIMIT, "a channel has more than %d pixels", INT32_MAX);
    const size_t wide = x->dtype != ORTC_F32 && pixels <= SMALL ? (size_t)pixels * sizeof(float) : 0;
    ortc_plan_workspace(p, 0,
                        sizeof(grid_piece) + (size_t)taps * PIECE * (sizeof(int32_t) + sizeof(float)) + wide);
    ortc_plan_cost(p, (double)ortc_view_count(&p->out[0]) * 2 * (double)taps,
                   8.0 * (double)ortc_view_count(&p->out[0]));
    return ORTC_OK;
}

static ortc_status grid_run(const void *state, const void *pstate, ortc_call *c)
{
    grid_job j = {.s = state,
                  .lines = ortc_grid_lines_select(),
                  .convert = ortc_convert_get(),
                  .x = &c->in[0],
                  .grid = &c->in[1],
                  .y = c->out[0].data,
                  .spatial = c->in[0].rank - 2,
                  .out_count = 1,
                  .in_count = 1};
    (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    for (int32_t d = 2; d < j.x->rank; d++) {
        j.out_count *= c->out[0].dims[d];
        j.in_count *= j.x->dims[d];
    }
    if (j.in_count == 0) return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "there is no pixel to sample");
    j.taps = taps_of(j.s, j.spatial);
    j.pieces = (j.out_count - 1) / PIECE + 1;
    const int64_t grain = 65536 / (PIECE * (j.taps * j.x->dims[1] + 100));
    return ortc_parallel(c, j.x->dims[0] * j.pieces, grain > 0 ? grain : 1, grid_chunk, &j);
}

static const ortc_kernel grid_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "grid_sample.cpu",
                                     .supports = grid_supports,
                                     .prepare = ortc_grid_prepare,
                                     .plan = grid_plan,
                                     .run = grid_run};

ORTC_KERNELS(cpu, sample,
             ORTC_KERNEL("GridSample", 22, ORTC_NEWEST, (ORTC_TYPES_BY_F32, ORTC_TYPES_FLOAT), &grid_cpu),
             ORTC_KERNEL("RoiAlign", 22, ORTC_NEWEST, (ORTC_TYPES_BY_F32, ORTC_TYPE(ORTC_I64)),
                         &ortc_cpu_roi_align),
             ORTC_KERNEL("MaxRoiPool", 22, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_cpu_max_roi_pool),
             ORTC_KERNEL("DeformConv", 22, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_cpu_deform_conv));
