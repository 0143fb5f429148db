/* Parts of windows with few filters (few.h). */
#include "few.h"

#include <stdlib.h>
#include <string.h>

#include "blocked_weights.h"
#include "cpu.h"
#include "kernels/common/counts.h"
#include "kernels/common/vector/squares.h"

ORTC_VEC_TABLE(ortc_few_body)
ORTC_VEC_TABLE(ortc_squares)

#define ROWS 8           /* of a part */
#define COLUMNS 480      /* where rows are longer they are cut */
#define T_PIXELS 4096    /* of t: 256 KB in blocks */
#define LIMIT (16 << 20) /* bytes of a part, at most */
#define TASK 200e3       /* multiplications handed out together */

/* ---- Planning ------------------------------------------------------------------------------------------ */

/* Whether `dense`, which knows the first part alone, knows of a dim whether windows reach beyond the image,
 * and that each sees something of it. */
static int is_known(const ortc_window_extents *e, int d)
{
    const int64_t extent = (e->kernel[d] - 1) * e->dilation[d] + 1,
                  last = (e->out[d] - 1) * e->stride[d] - e->pad[d];
    if (e->pad[d] == 0) return last + extent <= e->in[d];
    return e->pad[d] > 0 && e->pad[d] < extent && last < e->in[d] && (e->dilation[d] == 1 || d == 2);
}

/* Pixels of a row of t for so many of y. */
static int64_t t_columns(const ortc_few_plan *p, int64_t columns)
{
    return columns + (p->width - 1) * p->dilation;
}

void ortc_few_geometry(const ortc_few_plan *p, const ortc_conv_geometry *g, ortc_conv_geometry *t)
{
    const int32_t last = g->spatial - 1;
    const int64_t part[3] = {1, p->rows, t_columns(p, p->columns)};
    *t = *g;
    t->images = 1, t->filters = g->filters * p->width;
    t->kernel[last] = t->dilation[last] = 1;
    t->kernel_count = g->kernel_count / p->width, t->out_count = 1;
    for (int32_t d = 0; d <= last; d++) t->out_count *= t->out[d] = part[d + 2 - last];
}

/* Where things lie behind what `dense` has; squares of t's last row read some pixels beyond it. */
static int find_scratch(ortc_few_plan *p)
{
    const int64_t vectors = p->dense.outs * p->dense.out_count + ORTC_BLOCK, sums = p->rows * p->columns;
    p->pixels = ceil_div(t_columns(p, p->columns), ORTC_BLOCK) * ORTC_BLOCK;
    p->at_t = (p->dense.scratch + 63) / 64 * 64;
    p->at_rows = p->at_t + (size_t)(vectors * ORTC_BLOCK) * sizeof(float);
    p->at_sums = p->at_rows + (size_t)(p->dense.outs * ORTC_BLOCK * p->pixels) * sizeof(float);
    p->at_space = p->at_sums + (size_t)(p->filters * sums) * sizeof(float);
    p->scratch = p->at_space + (size_t)sums * sizeof(float);
    return p->scratch <= LIMIT;
}

int ortc_few_plan_init(const ortc_conv_geometry *g, ortc_dtype x, ortc_few_plan *p)
{
    ortc_window_extents e;
    ortc_conv_geometry t;
    memset(p, 0, sizeof *p);
    if (g->group != 1 || g->filters < 1 || g->filters > ORTC_FEW_FILTERS || g->spatial < 1 || g->images < 1 ||
        g->out_count < 1 || !ortc_conv_extents(g, &e) || e.kernel[2] < 2 || e.kernel[2] > ORTC_BLOCKED_SEEN ||
        e.stride[2] != 1 || !is_known(&e, 0) || !is_known(&e, 1) || !is_known(&e, 2))
        return 0;
    p->type = x, p->images = g->images, p->filters = g->filters;
    p->width = e.kernel[2], p->dilation = e.dilation[2];
    for (int i = 0; i < 3; i++) p->out[i] = e.out[i], p->stride[i] = e.stride[i];
    p->column_parts = ceil_div(p->out[2], COLUMNS);
    p->columns = ceil_div(p->out[2], p->column_parts);
    p->column_parts = ceil_div(p->out[2], p->columns);
    const int64_t row = ceil_div(p->filters * p->width, ORTC_BLOCK) * t_columns(p, p->columns);
    p->rows = min64(max64(T_PIXELS / row, 1), min64(ROWS, p->out[1]));
    p->row_parts = ceil_div(p->out[1], p->rows);
    p->rows = ceil_div(p->out[1], p->row_parts);
    p->row_parts = ceil_div(p->out[1], p->rows);
    ortc_few_geometry(p, g, &t);
    if (!ortc_blocked_plan_init(&t, x, ORTC_BLOCKED_DENSE, 1, &p->dense)) return 0;
    /* not all of it as one long row, of which there would be no parts */
    if (p->dense.e.out[1] != p->rows || !find_scratch(p)) {
        ortc_few_plan_deinit(p);
        return 0;
    }
    p->image_bytes = p->dense.ins * p->dense.in_count * p->dense.pixel;
    return 1;
}

void ortc_few_plan_deinit(ortc_few_plan *p) { ortc_blocked_plan_deinit(&p->dense); }

/* Registers hold `outs` blocks whole; a vector of t is laid down, turned, and added in five clocks, one of x
 * laid out in two, of bytes in half of one. */
double ortc_few_clocks(const ortc_few_plan *p, double least)
{
    const ortc_blocked_plan *d = &p->dense;
    const double parts = (double)(p->images * p->out[0] * p->row_parts * p->column_parts),
                 padded = (double)(d->outs * ORTC_BLOCK) / (double)(p->filters * p->width),
                 channels = d->bytes ? (double)((d->ins - 1) * d->step + d->depth) * 4 / (double)d->channels
                                     : 1,
                 laid_out = d->in_place ? 0 : (double)(d->ins * d->plane) / (double)d->step;
    return parts * (least * padded * channels / (0.93 * (d->bytes ? d->bytes->pace : 1)) +
                    5 * (double)(d->outs * d->out_count) + laid_out * (d->bytes ? 0.5 : 2) + 300);
}

/* ---- W ------------------------------------------------------------------------------------------------- */

/* Compared bytewise: no padding between these. */
typedef struct pack_param {
    ortc_conv_pack_param t;
    int64_t width;
} pack_param;

/* [filter][channel and rows][width] as [filter][width][channel and rows]; owner: free(). */
static void *turned(const ortc_view *w, const pack_param *p)
{
    const size_t size = ortc_dtype_bits(w->dtype) / 8;
    const int64_t deep = p->t.channels * p->t.kernel_count, filters = p->t.filters / p->width;
    char *all = malloc((size_t)(filters * p->width * deep) * size + 1), *to = all;
    const char *from = w->data;
    if (!all) return NULL;
    for (int64_t m = 0; m < filters; m++)
        for (int64_t k = 0; k < p->width; k++)
            for (int64_t i = 0; i < deep; i++, to += size)
                memcpy(to, from + ((m * deep + i) * p->width + k) * (int64_t)size, size);
    return all;
}

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const pack_param *p = param;
    const ortc_conv_geometry g = ortc_conv_pack_geometry(&p->t);
    void *w = turned(src, p);
    const size_t bytes = w ? ortc_blocked_weight_bytes(&g, (ortc_dtype)p->t.type, ORTC_BLOCKED_DENSE, w) : 0;
    free(w);
    return bytes;
}

static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const pack_param *p = param;
    const ortc_conv_geometry g = ortc_conv_pack_geometry(&p->t);
    const ortc_product_threads threads = {ortc_call_parallel, call};
    void *w = turned(src, p);
    if (!w) return ortc_call_fail(call, ORTC_OUT_OF_MEMORY, "no memory to pack weights");
    const ortc_status s = ortc_blocked_weight_fill(&g, (ortc_dtype)p->t.type, ORTC_BLOCKED_DENSE, w, dst,
                                                   &threads);
    free(w);
    return s;
}

static size_t sums_bytes(const ortc_view *src, const void *param)
{
    const ortc_conv_geometry g = ortc_conv_pack_geometry(&((const pack_param *)param)->t);
    (void)src;
    return ortc_blocked_tap_sums_bytes(&g);
}

static ortc_status sums_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const pack_param *p = param;
    const ortc_conv_geometry g = ortc_conv_pack_geometry(&p->t);
    const ortc_product_threads threads = {ortc_call_parallel, call};
    void *w = turned(src, p);
    if (!w) return ortc_call_fail(call, ORTC_OUT_OF_MEMORY, "no memory to pack weights");
    const ortc_status s = ortc_blocked_tap_sums(&g, src->dtype, w, dst, &threads);
    free(w);
    return s;
}

ortc_status ortc_few_pack(ortc_plan *p, ortc_few_plan *f, const ortc_conv_geometry *g)
{
    static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.conv.few", pack_bytes, pack_fill,
                                         ORTC_PACKING_PASSES},
                              sums = {ORTC_SIZED(ortc_packing), "cpu.conv.few_sums", sums_bytes, sums_fill,
                                      ORTC_PACKING_PASSES};
    ortc_conv_geometry t;
    ortc_few_geometry(f, g, &t);
    const pack_param param = {ortc_conv_pack_param_of(&t, p->in[1].dtype, 0), f->width};
    ORTC_TRY(ortc_plan_pack(p, 1, &packing, &param, sizeof param, &f->packed));
    return f->dense.bytes && f->dense.leaves_out
               ? ortc_plan_pack(p, 1, &sums, &param, sizeof param, &f->tap_sums)
               : ORTC_OK;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

typedef struct job {
    const ortc_few_plan *p;
    ortc_blocked_args args;
    const char *x;
    ortc_few_end *end;
    const void *arg;
} job;

/* A loop of `dense` within a task. */
static int32_t alone(void *scratch, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    (void)grain;
    body(arg, 0, n, scratch);
    return ORTC_OK;
}

/* Blocks of n pixels as rows of channels, `to_step` apart; as many pixels are read and written as make whole
 * squares. */
static void turn(const int32_t *from, int64_t n, int32_t *to, int64_t to_step)
{
    const ortc_squares *squares = ortc_squares_select();
    if (squares->side) {
        const int64_t side = (int64_t)squares->side / 4;
        squares->turn[4]((char *)to, to_step * 4, (const char *)from, ORTC_BLOCK * 4,
                         (n + side - 1) / side * side, ORTC_BLOCK);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < ORTC_BLOCK; c++) to[c * to_step + i] = from[i * ORTC_BLOCK + c];
}

/* Rows of t to rows of y, `columns` apart for a filter. */
static void add_up(const ortc_few_plan *p, const char *t, char *rows, char *sums, int64_t n_rows,
                   int64_t columns)
{
    const ortc_few_body *body = ortc_few_body_select();
    const int64_t wide = t_columns(p, columns), pixel = ORTC_BLOCK * 4;
    const size_t step = (size_t)(p->pixels + p->dilation), all = (size_t)columns, taps = (size_t)p->width;
    for (int64_t r = 0; r < n_rows; r++) {
        for (int64_t b = 0; b < p->dense.outs; b++)
            turn((const int32_t *)(const void *)(t + (b * n_rows + r) * wide * pixel), wide,
                 (int32_t *)(void *)(rows + b * pixel * p->pixels), p->pixels);
        for (int64_t m = 0; m < p->filters; m++) {
            const void *from = rows + m * p->width * p->pixels * 4;
            void *to = sums + (m * n_rows + r) * columns * 4;
            if (p->dense.bytes)
                body->add_i32(all, taps, from, step, to);
            else
                body->add_f32(all, taps, from, step, to);
        }
    }
}

/* Parts are numbered [image][plane][rows][columns]. */
static void run_part(const job *j, int64_t part, char *scratch)
{
    const ortc_few_plan *p = j->p;
    const int64_t column = part % p->column_parts * p->columns,
                  columns = min64(p->columns, p->out[2] - column);
    const int64_t row = part / p->column_parts % p->row_parts * p->rows,
                  rows = min64(p->rows, p->out[1] - row);
    const int64_t planes = part / p->column_parts / p->row_parts, plane = planes % p->out[0],
                  image = planes / p->out[0];
    char *t = scratch + p->at_t, *sums = scratch + p->at_sums;
    ortc_blocked_plan dense = p->dense;
    ortc_blocked_args args = j->args;
    dense.e.pad[0] -= plane * p->stride[0], dense.e.pad[1] -= row * p->stride[1], dense.e.pad[2] -= column;
    dense.e.out[1] = rows, dense.e.out[2] = t_columns(p, columns);
    dense.out_count = dense.e.out[1] * dense.e.out[2];
    dense.row_tasks = ceil_div(rows, dense.rows), dense.segments = ceil_div(dense.e.out[2], dense.segment);
    args.x = j->x + image * p->image_bytes;
    args.y = t;
    ortc_blocked_run(&dense, &args, &(ortc_product_threads){alone, scratch});
    add_up(p, t, scratch + p->at_rows, sums, rows, columns);
    const int64_t run = columns == p->out[2] ? rows * columns : columns;
    for (int64_t m = 0; m < p->filters; m++)
        for (int64_t i = 0; i < rows * columns; i += run) {
            const int64_t y_row = ((image * p->filters + m) * p->out[0] + plane) * p->out[1] + row +
                                  i / columns;
            j->end(j->arg, m, y_row * p->out[2] + column, run, sums + (m * rows * columns + i) * 4,
                   (float *)(void *)(scratch + p->at_space));
        }
}

static void parts(void *arg, int64_t begin, int64_t end, void *scratch)
{
    for (int64_t i = begin; i < end; i++) run_part(arg, i, scratch);
}

size_t ortc_few_space(const ortc_few_plan *p) { return ortc_blocked_first_bytes(&p->dense); }

ortc_status ortc_few_run(const ortc_few_plan *p, int32_t zero, void *space, ortc_call *call,
                         ortc_few_end *end, const void *arg)
{
    static const ortc_tail_spec as_f32 = {
        .alpha = 1, .act = ORTC_UK_ACT_NONE, .bias = -1, .residual = -1, .widens = 1};
    static const ortc_int_tail as_i32 = {.type = ORTC_I32, .residual = -1};
    job j = {.p = p,
             .args = {.w = p->packed->data, .in = call->in},
             .x = call->in[0].data,
             .end = end,
             .arg = arg};
    if (p->dense.bytes) {
        j.args.int_tail = &as_i32;
        ortc_blocked_first(&p->dense, zero, p->tap_sums ? p->tap_sums->data : NULL, space, &j.args);
    } else {
        j.args.tail = &as_f32;
        j.args.bias = memset(space, 0, ortc_few_space(p));
    }
    const double macs = (double)(p->dense.outs * p->dense.out_count * ORTC_BLOCK) *
                        (double)(p->dense.ins * p->dense.taps * ORTC_BLOCK);
    return ortc_parallel(call, p->images * p->out[0] * p->row_parts * p->column_parts,
                         1 + (int64_t)(TASK / (1 + macs)), parts, &j);
}
