/* The loops of winograd.h; what they go by is winograd_plan.c, W winograd_weights.c. */
#include <string.h>

#include "kernels/gemm/product_uk.h"
#include "winograd_batch.h"

#define INPUT_GRAIN 16 /* patches */

/* ---- Tiles --------------------------------------------------------------------------------------------- */

enum { PATCH = ORTC_WINOGRAD_SIDE * ORTC_WINOGRAD_SIDE * BLOCK }; /* floats of a block's, at most */
static const int64_t here;

typedef struct job {
    const ortc_winograd_plan *p;
    const ortc_blocked_args *a;
    const void *plain;
    float *shared;
    ortc_blocked_end end;
    const char *w;    /* packed, */
    int64_t first, n; /* of n blocks of output from the first on */
} job;

/* Where a tile lies: its first pixel in a part of a plane, whose first pixel of the output is `first`. */
typedef struct place {
    int64_t part, row, column;
    int64_t image, plane, first[2];
} place;

static void enter(const ortc_winograd_plan *p, place *at, int64_t part)
{
    at->part = part;
    const int64_t plane = part / p->phases[1] / p->phases[0];
    at->image = plane / p->window.out, at->plane = plane % p->window.out;
    at->first[0] = part / p->phases[1] % p->phases[0], at->first[1] = part % p->phases[1];
}

static place place_of(const ortc_winograd_plan *p, int64_t t)
{
    place at = {.row = t / p->across % p->down * p->m, .column = t % p->across * p->m};
    enter(p, &at, t / p->across / p->down);
    return at;
}

/* The next tile's. */
static void move_on(const ortc_winograd_plan *p, place *at)
{
    if ((at->column += p->m) < p->extent[1]) return;
    at->column = 0;
    if ((at->row += p->m) < p->extent[0]) return;
    at->row = 0;
    enter(p, at, at->part + 1);
}

/* Of the output, along rows or columns, that pixel i of a part is. */
static int64_t whole_of(const ortc_winograd_plan *p, const place *at, int axis, int64_t i)
{
    return at->first[axis] + i * p->dilation[axis];
}

/* Pixels of a part, of m from i on. */
static int64_t pixels_from(const ortc_winograd_plan *p, const place *at, int axis, int64_t i, int64_t m)
{
    return min64(m, ceil_div(p->g.out[axis] - at->first[axis], p->dilation[axis]) - i);
}

/* Of the input, the plane that plane k of a window sees. */
static int64_t plane_under(const ortc_winograd_plan *p, const place *at, int64_t k)
{
    return at->plane * p->window.stride - p->window.pad + k * p->window.dilation;
}
static int is_plane(const ortc_winograd_plan *p, int64_t plane) { return plane >= 0 && plane < p->window.in; }

static const char *pixel(const job *j, const place *at, int64_t part, int64_t row, int64_t column)
{
    const ortc_winograd_plan *p = j->p;
    const int64_t block = part % p->ins, plane = plane_under(p, at, part / p->ins),
                  rows = ((at->image * p->ins + block) * p->window.in + plane) * p->g.in[0];
    return (const char *)j->a->x +
           ((rows + row) * p->g.in[1] + column) * BLOCK * (p->type == ORTC_FLOAT_F32 ? 4 : 2);
}

/* The patch under a tile, of one part of what its windows see (a block of a plane: [plane][block]), to
 * [n][n][16] in f32 with its padding. */
static void lay_out(const job *j, const place *at, int64_t part, float *dst)
{
    const ortc_winograd_plan *p = j->p;
    const int seen = is_plane(p, plane_under(p, at, part / p->ins));
    const int64_t down = p->dilation[0], across = p->dilation[1],
                  row = whole_of(p, at, 0, at->row) - p->g.pad[0],
                  column = whole_of(p, at, 1, at->column) - p->g.pad[1],
                  lo = min64(ceil_div(max64(-column, 0), across), p->n),
                  hi = max64(min64(ceil_div(max64(p->g.in[1] - column, 0), across), p->n), lo);
    for (int64_t i = 0; i < p->n; i++, dst += p->n * BLOCK) {
        const int64_t r = row + i * down;
        const int inside = seen && r >= 0 && r < p->g.in[0] && hi > lo;
        const int64_t from = inside ? lo : p->n, to = inside ? hi : p->n;
        memset(dst, 0, (size_t)(from * BLOCK) * sizeof *dst);
        if (inside)
            p->uk->widen[p->type]((size_t)(to - from), pixel(j, at, part, r, column + from * across),
                                  (size_t)(across * BLOCK), dst + from * BLOCK);
        memset(dst + to * BLOCK, 0, (size_t)((p->n - to) * BLOCK) * sizeof *dst);
    }
}

static int is_dilated(const ortc_winograd_plan *p) { return p->dilation[0] > 1 || p->dilation[1] > 1; }

/* The same where it lies, or laid out; *row: floats from a row to the next. */
static const float *patch_at(const job *j, const place *at, int64_t part, float *patch, size_t *row)
{
    const ortc_winograd_plan *p = j->p;
    const int64_t top = at->row - p->g.pad[0], left = at->column - p->g.pad[1];
    const int inside = p->type == ORTC_FLOAT_F32 && !is_dilated(p) && top >= 0 && left >= 0 &&
                       top + p->n <= p->g.in[0] && left + p->n <= p->g.in[1] &&
                       is_plane(p, plane_under(p, at, part / p->ins));
    *row = (size_t)(inside ? p->g.in[1] : p->n) * BLOCK;
    if (inside) return (const float *)(const void *)pixel(j, at, part, top, left);
    lay_out(j, at, part, patch);
    return patch;
}

/* Part `part` of the batch t0 .. t1-1, transformed, to [point][part][tile][16], of pairs rounded. */
static void transform_block(const job *j, int64_t t0, int64_t t1, int64_t part, float *v)
{
    const ortc_winograd_plan *p = j->p;
    const int64_t count = t1 - t0;
    const size_t step = (size_t)patch_step(p, count);
    _Alignas(64) float points[PATCH];
    _Alignas(64) float patch[PATCH];
    place at = place_of(p, t0);
    for (int64_t t = t0; t < t1; t++, move_on(p, &at)) {
        size_t row;
        const float *x = patch_at(j, &at, part, patch, &row);
        float *to = v + (part * count + t - t0) * p->vector;
        p->side->input(x, row, p->pairs ? points : to, p->pairs ? BLOCK : step);
        if (p->pairs) p->pairs->spread((size_t)p->points, points, to, step * sizeof *to);
    }
}

/* Whether pieces do not hold what a tile reads: behind patches, [tile][group]. */
static char *odd_at(const ortc_winograd_plan *p, int64_t count, float *v)
{
    return (char *)(v + p->points * patch_step(p, count));
}

/* The same of two blocks, in pieces: [point][group][piece][tile][64 bytes]. */
static void transform_group(const job *j, int64_t t0, int64_t t1, int64_t group, float *v)
{
    const ortc_winograd_plan *p = j->p;
    const int64_t pairs = p->groups / p->window.kernel, first = group % pairs * 2,
                  part = group / pairs * p->ins + first, blocks = min64(2, p->ins - first);
    const int64_t count = t1 - t0, piece = rows_of(p, count) * ORTC_TILE_ROW;
    const size_t step = (size_t)patch_step(p, count) * sizeof *v;
    _Alignas(64) float points[2][PATCH];
    _Alignas(64) float patch[PATCH];
    char *odd = odd_at(p, count, v) + group, *to = (char *)v + group * PIECES * piece;
    place at = place_of(p, t0);
    memset(points[1], 0, sizeof points[1]);
    for (int64_t t = t0; t < t1; t++, move_on(p, &at), to += ORTC_TILE_ROW, odd += p->groups) {
        for (int64_t b = 0; b < blocks; b++) {
            size_t row;
            const float *x = patch_at(j, &at, part + b, patch, &row);
            p->side->input(x, row, points[b], BLOCK);
        }
        *odd = (char)p->tiles->cut((size_t)p->points, points[0], points[1], to, step, (size_t)piece);
    }
}

/* What is transformed together of a batch: parts, in pieces pairs of them; and which of these its windows
 * see, *end behind the last: at least one. Planes of an image come one behind the other. */
static int64_t parts_of_input(const ortc_winograd_plan *p) { return p->tiles ? p->groups : p->all; }
static int64_t parts_seen(const ortc_winograd_plan *p, int64_t t0, int64_t t1, int64_t *end)
{
    const ortc_winograd_depth *w = &p->window;
    const place a = place_of(p, t0), b = place_of(p, t1 - 1);
    const int64_t each = parts_of_input(p) / w->kernel, last = a.image == b.image ? b.plane : w->out - 1,
                  from = a.image == b.image ? a.plane : 0;
    const int64_t before = w->pad - last * w->stride, room = w->in + w->pad - from * w->stride,
                  lo = min64(before > 0 ? ceil_div(before, w->dilation) : 0, w->kernel - 1),
                  hi = min64(room > 0 ? ceil_div(room, w->dilation) : 0, w->kernel);
    *end = max64(hi, lo + 1) * each;
    return lo * each;
}
static void transform(const job *j, int64_t t0, int64_t t1, int64_t part, float *v)
{
    const ortc_winograd_plan *p = j->p;
    int64_t end;
    const int seen = part >= parts_seen(p, t0, t1, &end) && part < end;
    if (seen) (p->tiles ? transform_group : transform_block)(j, t0, t1, part, v);
    for (int64_t t = 0; p->tiles && !seen && t < t1 - t0; t++)
        odd_at(p, t1 - t0, v)[t * p->groups + part] = 0;
}

/* ---- What is not finite -------------------------------------------------------------------------------- */

static int32_t alone(void *scratch, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    (void)grain;
    body(arg, 0, n, scratch);
    return 0;
}

/* A tile of a block of the output from the definition: `end` says where it goes; *turned: the block whose
 * weights scratch holds, -1: none. */
static void again(const job *j, const place *at, int64_t block, const ortc_winograd_end *end, float *scratch,
                  int64_t *turned)
{
    const ortc_winograd_plan *p = j->p;
    float *patch = scratch + p->at_patch, *weights = scratch + p->at_weights;
    const int64_t c = p->g.channels, first = block * BLOCK;
    const ortc_conv_geometry some = {.group = 1,
                                     .channels = c,
                                     .filters = min64(BLOCK, p->g.filters - first),
                                     .kernel_count = p->g.kernel_count};
    const ortc_product_threads one = {alone, NULL};
    const int64_t planes = p->window.kernel, floats = p->points * BLOCK;
    int64_t offset[9 * MOST_PLANES];
    for (int64_t i = 0; i < p->all; i++) /* [block][plane] */
        lay_out(j, at, i, patch + (i % p->ins * planes + i / p->ins) * floats);
    for (int64_t t = 0; t < 9 * planes; t++) offset[t] = t / 9 * floats + (t % 9 / 3 * p->n + t % 3) * BLOCK;
    if (*turned != block)
        ortc_blocked_weight_fill(&some, type_of(p), 0,
                                 (const char *)j->plain +
                                     first * c * some.kernel_count * ortc_product_size(type_of(p)),
                                 weights, &one);
    *turned = block;
    ortc_blocked_tile tile = {.offset = offset,
                              .plane = planes * floats,
                              .groups = (size_t)p->ins,
                              .taps = (size_t)(9 * planes),
                              .depth = (size_t)p->depth,
                              .w = weights,
                              .bias = end->bias,
                              .clip = end->clip,
                              .lo = end->lo,
                              .hi = end->hi};
    for (size_t r = 0; r < end->rows; r++)
        for (size_t q = 0, n; q < end->cols; q += n) {
            n = end->cols - q < p->uk->most_pixels ? end->cols - q : p->uk->most_pixels;
            tile.x = patch + ((int64_t)r * p->n + (int64_t)q) * BLOCK;
            tile.y = end->y + r * end->pitch + q * BLOCK;
            tile.residual = end->residual ? end->residual + r * end->pitch + q * BLOCK : NULL;
            p->uk->dense[p->type](n, 1, &tile);
        }
}

/* Whether pieces do not hold what makes tile t of a block; odd: as odd_at. */
static int is_odd(const job *j, int64_t block, const char *odd, int64_t t)
{
    const ortc_winograd_plan *p = j->p;
    int32_t word = 0;
    if (!odd) return 0;
    memcpy(&word, j->w + j->n * weight_bytes(&p->g, (int)p->m, ORTC_WINOGRAD_PIECES) + (block - j->first) * 4,
           sizeof word);
    for (int64_t g = 0; g < p->groups; g++) word |= odd[t * p->groups + g];
    return word != 0;
}

/* ---- Results ------------------------------------------------------------------------------------------- */

/* Tiles t0 .. t1-1, neighbours in a row of a part of an image, of one block of output; sums at s + point *
 * step. odd: as odd_at, of the first tile. */
static void finish_row(const job *j, int64_t t0, int64_t t1, int64_t block, const float *s, int64_t step,
                       const char *odd, float *scratch, int64_t *turned)
{
    const ortc_winograd_plan *p = j->p;
    const ortc_blocked_end *e = &j->end;
    place at = place_of(p, t0);
    const int64_t width = p->g.out[1], across = p->dilation[1],
                  columns = pixels_from(p, &at, 1, at.column, (t1 - t0) * p->m),
                  rows = pixels_from(p, &at, 0, at.row, p->m);
    if (columns <= 0 || rows <= 0) return; /* of a part that ends before others do */
    const int64_t plane = (at.image * p->outs + block) * p->window.out + at.plane,
                  row = plane * p->g.out[0] + whole_of(p, &at, 0, at.row),
                  first = (row * width + whole_of(p, &at, 1, at.column)) * BLOCK;
    float *y = e->straight ? (float *)j->a->y + first : scratch + p->at_rows;
    const float *residual = e->straight && j->a->residual ? (const float *)j->a->residual + first : NULL;
    const size_t pitch = (size_t)((e->straight ? width : columns) * BLOCK);
    for (int64_t t = t0; t < t1 && (t - t0) * p->m < columns; t++, at.column += p->m) {
        const int64_t to = (t - t0) * p->m * BLOCK;
        const ortc_winograd_end end = {.bias = j->a->bias + block * BLOCK,
                                       .residual = residual ? residual + to : NULL,
                                       .y = y + to,
                                       .pitch = pitch,
                                       .rows = (size_t)rows,
                                       .cols = (size_t)min64(p->m, columns - (t - t0) * p->m),
                                       .clip = e->straight && j->a->tail->act == ORTC_UK_ACT_CLIP,
                                       .lo = j->a->tail->lo,
                                       .hi = j->a->tail->hi};
        const int wrong = p->side->output(s + (t - t0) * BLOCK, (size_t)step, &end);
        if (wrong || is_odd(j, block, odd, t - t0)) again(j, &at, block, &end, scratch, turned);
    }
    const size_t lanes = block + 1 < p->outs ? BLOCK : (size_t)p->lanes;
    const int64_t run = across > 1 ? 1 : columns; /* neighbours in the output */
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c += run)
            ortc_blocked_finish(e, y + (size_t)r * pitch + c * BLOCK, run, block * BLOCK, lanes,
                                first + (r * p->dilation[0] * width + c * across) * BLOCK);
}

/* Sums of `blocks` of output from `block` on, of patches at v: to [point][block][tile][16]. */
static void multiply(const job *j, int64_t t0, int64_t t1, int64_t block, int64_t blocks, const float *v,
                     float *sums)
{
    static const float zeros[2 * BLOCK];
    const ortc_winograd_plan *p = j->p;
    int64_t seen;
    const int64_t most = (int64_t)p->uk->most_pixels, count = t1 - t0, parts = ceil_div(count, most),
                  from = parts_seen(p, t0, t1, &seen);
    const int64_t part = p->vector * BLOCK, weights = p->all * part; /* words, of a block at a point */
    const float *w = (const float *)(const void *)j->w + (block - j->first) * p->points * weights +
                     from * part;
    const int64_t last = block + blocks < j->first + j->n ? p->points : p->points - 1, /* with more behind */
        lines = ceil_div(p->vector, parts);
    ortc_blocked_tile_fn *run = p->pairs ? p->pairs->dense : p->uk->dense[ORTC_FLOAT_F32];
    for (int64_t q = 0; q < p->points; q++) {
        const int64_t behind = q + 1 < p->points ? 1 : (blocks - 1) * p->points + 1;
        ortc_blocked_tile tile = {.offset = &here,
                                  .plane = count * p->vector,
                                  .groups = (size_t)(seen - from),
                                  .taps = 1,
                                  .depth = (size_t)(p->pairs ? ceil_div(p->depth, 2) : p->depth),
                                  .w = w + q * weights,
                                  .w_block = (size_t)(p->points * weights),
                                  .next_block = (size_t)(p->points * weights) * sizeof *w,
                                  .y_block = (size_t)(count * BLOCK),
                                  .bias = zeros};
        tile.next = (const char *)(w + (q + behind) * weights);
        for (int64_t i = 0; i < parts; i++) {
            const int64_t at = dealt(count, parts, i);
            tile.x = v + q * patch_step(p, count) + (from * count + at) * p->vector;
            tile.y = sums + q * sum_step(p, count) + at * BLOCK;
            tile.next_lines = q < last && i * lines < p->vector ? (size_t)lines : 0;
            run((size_t)(dealt(count, parts, i + 1) - at), (size_t)blocks, &tile);
            tile.next += lines * (seen - from) * ORTC_BLOCKED_LINE;
        }
    }
}

/* Those of n blocks of output from `block` on, at a point. */
static const char *weights_at(const job *j, int64_t block, int64_t n, int64_t point)
{
    const ortc_winograd_plan *p = j->p;
    return j->w + block * weight_bytes(&p->g, (int)p->m, ORTC_WINOGRAD_PIECES) +
           point * p->groups * n * tile_bytes(&p->g, (int)p->m);
}

/* The same in pieces; cut: what weights of f32 become, which the first tile of patches makes. */
static void multiply_pieces(const job *j, int64_t t0, int64_t t1, int64_t block, int64_t blocks,
                            const float *v, float *sums, char *cut)
{
    const ortc_winograd_plan *p = j->p;
    int64_t seen;
    const int64_t count = t1 - t0, rows = rows_of(p, count), piece = rows * ORTC_TILE_ROW,
                  from = parts_seen(p, t0, t1, &seen);
    ortc_tiled_tile tile = {.step = ORTC_TILE_ROW,
                            .half = ORTC_TILE_HALF,
                            .offset = &here,
                            .group = PIECES * piece,
                            .piece = piece,
                            .groups = (size_t)(seen - from),
                            .taps = 1,
                            .w_block = WEIGHTS,
                            .block = piece};
    for (int64_t q = 0; q < p->points; q++)
        for (int64_t b = 0; b < blocks; b += PAIR) {
            const int64_t n = min64(PAIR, blocks - b);
            const char *w = weights_at(j, block + b, n, q) + from * n * tile_bytes(&p->g, (int)p->m);
            tile.w = p->plain ? cut : w, tile.w_step = n * WEIGHTS;
            tile.plain = p->plain ? w : NULL, tile.plain_step = n * ORTC_TILED_PLAIN_BYTES;
            if (p->plain) { /* as many lines of what comes next as there are here */
                tile.next = b + PAIR < blocks
                                ? weights_at(j, block + b + PAIR, min64(PAIR, blocks - b - PAIR), q)
                                : weights_at(j, block, min64(PAIR, blocks), q + 1);
                tile.next_lines = (size_t)ceil_div(n * ORTC_TILED_PLAIN_BYTES / ORTC_TILE_ROW,
                                                   ceil_div(rows, ORTC_TILE_PIXELS));
            }
            for (int64_t r = 0; r < rows; r += ORTC_TILE_PIXELS) {
                tile.x = (const char *)(v + q * patch_step(p, count) + r * BLOCK) + from * PIECES * piece;
                tile.sums = sums + q * sum_step(p, count) + (b * rows + r) * BLOCK;
                p->tiles->run[ORTC_TILED_PIECES](rows - r > ORTC_TILE_HALF ? 2 : 1, (int)n, &tile);
                tile.next += tile.next_lines * 64 * tile.groups;
                tile.plain = NULL;
            }
        }
}

/* `blocks` of output from `block` on, of the batch t0 .. t1-1, whose patches are at v. */
static void products(const job *j, int64_t t0, int64_t t1, int64_t block, int64_t blocks, float *v,
                     float *scratch)
{
    const ortc_winograd_plan *p = j->p;
    const int64_t count = t1 - t0, rows = rows_of(p, count);
    float *sums = scratch + p->at_sums;
    int64_t turned = -1;
    if (p->tiles)
        multiply_pieces(j, t0, t1, block, blocks, v, sums, (char *)(scratch + p->at_cut));
    else
        multiply(j, t0, t1, block, blocks, v, sums);
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t t = t0, end; t < t1; t = end) {
            end = min64(t1, (t / p->across + 1) * p->across);
            finish_row(j, t, end, block + b, sums + (b * rows + t - t0) * BLOCK, sum_step(p, count),
                       p->tiles ? odd_at(p, count, v) + (t - t0) * p->groups : NULL, scratch, &turned);
        }
}

/* ---- Tasks --------------------------------------------------------------------------------------------- */

/* [part of the filters][batch] */
static void whole_batches(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_winograd_plan *p = j->p;
    if (p->tiles) p->tiles->begin(ORTC_TILE_HALF);
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i % p->batches, part = i / p->batches, t0 = batch_at(p, n), t1 = batch_at(p, n + 1);
        const int64_t all = ceil_div(p->outs, p->wide),
                      last = min64(dealt(all, p->parts, part + 1) * p->wide, p->outs);
        for (int64_t b = 0; b < parts_of_input(p); b++) transform(j, t0, t1, b, scratch);
        for (int64_t b = dealt(all, p->parts, part) * p->wide; b < last; b += p->wide)
            products(j, t0, t1, b, min64(p->wide, last - b), scratch, scratch);
    }
    if (p->tiles) p->tiles->end();
}

static float *shared_batch(const job *j, int64_t i) { return j->shared + i * patches_of(j->p, j->p->batch); }

/* [batch][blocks of input] */
static void transform_all(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_winograd_plan *p = j->p;
    const int64_t parts = parts_of_input(p);
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t b = i / parts, t0 = batch_at(p, b), t1 = batch_at(p, b + 1);
        transform(j, t0, t1, i % parts, shared_batch(j, b));
    }
}

/* [blocks of output][batch]: neighbours read the same weights */
static void products_of(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_winograd_plan *p = j->p;
    if (p->tiles) p->tiles->begin(ORTC_TILE_HALF);
    for (int64_t i = begin; i < end; i++) {
        const int64_t b = i % p->batches, block = i / p->batches * p->wide;
        const int64_t t0 = batch_at(p, b), t1 = batch_at(p, b + 1);
        products(j, t0, t1, j->first + block, min64(p->wide, j->n - block), shared_batch(j, b), scratch);
    }
    if (p->tiles) p->tiles->end();
}

/* Weights are packed and multiplied chunk by chunk. */
static int32_t run_chunks(job *j, const ortc_product_threads *threads)
{
    const ortc_winograd_plan *p = j->p;
    char *w = (char *)j->shared + shared_patches(p);
    int32_t status = ORTC_OK;
    j->w = w;
    for (j->first = 0; j->first < p->outs && !status; j->first += p->chunk) {
        j->n = min64(p->chunk, p->outs - j->first);
        status = ortc_winograd_weight_fill(&p->g, type_of(p), (int)p->m, form_of(p), j->plain, j->first, j->n,
                                           w, threads);
        if (!status)
            status = threads->parallel(threads->context, p->batches * ceil_div(j->n, p->wide), 1, products_of,
                                       j);
    }
    return status;
}

int32_t ortc_winograd_run(const ortc_winograd_plan *p, const ortc_blocked_args *a, const void *plain,
                          float *space, const ortc_product_threads *threads)
{
    job j = {p, a, plain, space, ortc_blocked_end_of(p->uk, p->type, a), a->w, 0, p->outs};
    if (is_dilated(p)) j.end.straight = 0; /* neighbours in a tile are none in the output */
    if (!p->together) return threads->parallel(threads->context, p->batches * p->parts, 1, whole_batches, &j);
    const int32_t status = threads->parallel(threads->context, p->batches * parts_of_input(p),
                                             max64(INPUT_GRAIN / p->batch, 1), transform_all, &j);
    if (status) return status;
    return p->chunk ? run_chunks(&j, threads)
                    : threads->parallel(threads->context, p->batches * ceil_div(p->outs, p->wide), 1,
                                        products_of, &j);
}
