/* The loops of winograd.h. */
#include "winograd.h"

#include <string.h>

#define BLOCK ORTC_BLOCK
#define L2_BYTES (640 * 1024)   /* of a batch: what is transformed, and sums */
#define MOST_BATCH 56           /* 4 of the widest tiles */
#define TASKS 16                /* batches that are enough tasks by themselves */
#define SHARED_BYTES (64 << 20) /* of what is transformed first */
#define INPUT_GRAIN 16          /* patches */
#define MOST_CHANNELS (1 << 16)

ORTC_VEC_TABLE(ortc_winograd_uk)

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
/* The first of n that are dealt evenly to `parts`, of part i. */
static int64_t share(int64_t n, int64_t parts, int64_t i) { return n / parts * i + min64(n % parts, i); }

static const ortc_winograd_side *side_of(int m) { return &ortc_winograd_uk_select()->of[m == 4]; }

/* ---- Plan ---------------------------------------------------------------------------------------------- */

static int is_for(const ortc_conv_geometry *g)
{
    int yes = g->spatial == 2 && g->group == 1 && g->images > 0 && g->channels > 0 && g->filters > 0 &&
              g->channels <= MOST_CHANNELS && g->filters <= MOST_CHANNELS;
    for (int32_t i = 0; i < g->spatial && yes; i++)
        yes = g->kernel[i] == 3 && g->stride[i] == 1 && g->dilation[i] == 1 && g->out[i] > 0;
    return yes;
}

/* Tiles of a batch: whole register tiles, as many as L2 holds. */
static void make_batches(ortc_winograd_plan *p)
{
    const int64_t most = (int64_t)p->uk->most_pixels,
                  tile_bytes = p->points * (p->ins + p->wide) * BLOCK * (int64_t)sizeof(float);
    p->batch = max64(1, min64(L2_BYTES / tile_bytes, MOST_BATCH) / most) * most;
    p->batches = ceil_div(p->tiles, p->batch);
    p->together = p->batches < TASKS;
    if (p->together) {
        const int64_t parts = ceil_div(p->outs, p->wide);
        p->batch = MOST_BATCH / most * most;
        while (p->batch >= 2 * most && ceil_div(p->tiles, p->batch) * parts < TASKS) p->batch -= most;
        p->batches = ceil_div(p->tiles, p->batch);
    }
    p->batch = ceil_div(p->tiles, p->batches);
}

int ortc_winograd_plan_init(const ortc_conv_geometry *g, ortc_dtype type, int m, ortc_winograd_plan *p)
{
    if (!is_for(g)) return 0;
    *p = (ortc_winograd_plan){.side = side_of(m),
                              .uk = ortc_blocked_uk_get(),
                              .g = *g,
                              .type = ortc_float_index(type),
                              .m = m,
                              .n = m + 2,
                              .points = (m + 2) * (m + 2),
                              .ins = ceil_div(g->channels, BLOCK),
                              .depth = (g->channels - 1) % BLOCK + 1,
                              .outs = ceil_div(g->filters, BLOCK),
                              .lanes = (g->filters - 1) % BLOCK + 1,
                              .down = ceil_div(g->out[0], m),
                              .across = ceil_div(g->out[1], m)};
    p->wide = (int64_t)p->uk->most_blocks;
    const double tiles = (double)g->images * (double)p->down * (double)p->across;
    if (tiles > 1e12) return 0;
    p->tiles = g->images * p->down * p->across;
    make_batches(p);
    const int64_t points = p->points * BLOCK, patches = points * p->ins * p->batch,
                  sums = points * p->wide * p->batch, rows = p->m * min64(p->across, p->batch) * p->m * BLOCK;
    if (p->together) {
        if ((double)p->tiles * (double)p->ins * (double)points * 4 > SHARED_BYTES) return 0;
        p->shared = (size_t)(p->tiles * p->ins * points) * sizeof(float);
    }
    p->at_sums = p->together ? 0 : patches;
    p->at_rows = p->at_sums + sums;
    p->at_patch = p->at_rows + rows;
    p->at_weights = p->at_patch +
                    points * p->ins; /* the patch of all blocks, when a tile is computed again */
    p->scratch = (size_t)(p->at_weights + p->ins * 9 * BLOCK * BLOCK) * sizeof(float);
    return 1;
}

/* ---- Weights: [block of output][point][block of input][16][16] ----------------------------------------- */

size_t ortc_winograd_weight_bytes(const ortc_conv_geometry *g, int m)
{
    const double all = (double)ceil_div(g->channels, BLOCK) * (double)ceil_div(g->filters, BLOCK) * BLOCK *
                       BLOCK * (m + 2) * (m + 2) * sizeof(float);
    return all < 1e15 ? (size_t)all : 0;
}

typedef struct fill_arg {
    const ortc_conv_geometry *g;
    ortc_dtype type;
    int m;
    const char *w;
    float *dst;
} fill_arg;

static void fill_blocks(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_arg *a = arg;
    const int64_t c = a->g->channels, ins = ceil_div(c, BLOCK), points = (a->m + 2) * (a->m + 2);
    const ortc_winograd_side *side = side_of(a->m);
    const ortc_convert *convert = ortc_convert_get();
    float w[BLOCK][BLOCK * 9];
    (void)scratch;
    memset(w, 0, sizeof w);
    for (int64_t b = begin; b < end; b++) {
        float *dst = a->dst + b / ins * points * ins * BLOCK * BLOCK + b % ins * BLOCK * BLOCK;
        const int64_t first = b / ins * BLOCK, some = min64(BLOCK, c - b % ins * BLOCK);
        for (int64_t o = 0; o < BLOCK; o++) {
            const int64_t at = ((first + o) * c + b % ins * BLOCK) * 9;
            memset(w[o], 0, sizeof w[o]);
            if (first + o < a->g->filters)
                convert->widen[ortc_float_index(a->type)]((size_t)some * 9,
                                                          a->w + at * ortc_product_size(a->type), w[o]);
        }
        side->weights(BLOCK, w[0], BLOCK * 9, dst, (size_t)(ins * BLOCK * BLOCK));
    }
}

int32_t ortc_winograd_weight_fill(const ortc_conv_geometry *g, ortc_dtype type, int m, const void *w,
                                  float *dst, const ortc_product_threads *threads)
{
    fill_arg a = {g, type, m, w, dst};
    const int64_t ins = ceil_div(g->channels, BLOCK), outs = ceil_div(g->filters, BLOCK);
    return threads->parallel(threads->context, ins * outs, 4, fill_blocks, &a);
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

typedef struct job {
    const ortc_winograd_plan *p;
    const ortc_blocked_args *a;
    const void *plain;
    float *shared;
    ortc_blocked_end end;
} job;

/* Where a tile lies: its first pixel of the output. */
typedef struct place {
    int64_t image, row, column;
} place;

static place place_of(const ortc_winograd_plan *p, int64_t t)
{
    return (place){t / p->across / p->down, t / p->across % p->down * p->m, t % p->across * p->m};
}

/* The next tile's. */
static void move_on(const ortc_winograd_plan *p, place *at)
{
    if ((at->column += p->m) < p->g.out[1]) return;
    at->column = 0;
    if ((at->row += p->m) < p->g.out[0]) return;
    at->row = 0, at->image++;
}

static const char *pixel(const job *j, const place *at, int64_t block, int64_t row, int64_t column)
{
    const ortc_conv_geometry *g = &j->p->g;
    const int64_t plane = (at->image * j->p->ins + block) * g->in[0];
    return (const char *)j->a->x +
           ((plane + row) * g->in[1] + column) * BLOCK * (j->p->type == ORTC_FLOAT_F32 ? 4 : 2);
}

/* The patch under a tile, of one block, to [n][n][16] in f32 with its padding. */
static void lay_out(const job *j, const place *at, int64_t block, float *dst)
{
    const ortc_winograd_plan *p = j->p;
    const int64_t row = at->row - p->g.pad[0], column = at->column - p->g.pad[1],
                  lo = min64(max64(-column, 0), p->n), hi = max64(min64(p->g.in[1] - column, p->n), lo);
    for (int64_t r = row; r < row + p->n; r++, dst += p->n * BLOCK) {
        const int inside = r >= 0 && r < p->g.in[0] && hi > lo;
        const int64_t from = inside ? lo : p->n, to = inside ? hi : p->n;
        memset(dst, 0, (size_t)(from * BLOCK) * sizeof *dst);
        if (inside)
            p->uk->widen[p->type]((size_t)(to - from), pixel(j, at, block, r, column + from), BLOCK,
                                  dst + from * BLOCK);
        memset(dst + to * BLOCK, 0, (size_t)((p->n - to) * BLOCK) * sizeof *dst);
    }
}

/* Block `block` of the batch t0 .. t1-1, transformed, to [point][block][tile][16]. */
static void transform(const job *j, int64_t t0, int64_t t1, int64_t block, float *v)
{
    const ortc_winograd_plan *p = j->p;
    const int64_t count = t1 - t0;
    float patch[ORTC_WINOGRAD_SIDE * ORTC_WINOGRAD_SIDE * BLOCK];
    place at = place_of(p, t0);
    for (int64_t t = t0; t < t1; t++, move_on(p, &at)) {
        const int64_t row = at.row - p->g.pad[0], column = at.column - p->g.pad[1];
        const int inside = p->type == ORTC_FLOAT_F32 && row >= 0 && column >= 0 && row + p->n <= p->g.in[0] &&
                           column + p->n <= p->g.in[1];
        if (!inside) lay_out(j, &at, block, patch);
        p->side->input(inside ? (const float *)(const void *)pixel(j, &at, block, row, column) : patch,
                       (size_t)(inside ? p->g.in[1] : p->n) * BLOCK, v + (block * count + t - t0) * BLOCK,
                       (size_t)(p->ins * count * BLOCK));
    }
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
                                     .kernel_count = 9};
    const ortc_dtype types[] = {ORTC_F32, ORTC_F16, ORTC_BF16}; /* by ORTC_FLOAT_* */
    const ortc_product_threads one = {alone, NULL};
    int64_t offset[9];
    for (int64_t i = 0; i < p->ins; i++) lay_out(j, at, i, patch + i * p->points * BLOCK);
    for (int64_t t = 0; t < 9; t++) offset[t] = (t / 3 * p->n + t % 3) * BLOCK;
    if (*turned != block)
        ortc_blocked_weight_fill(&some, types[p->type], 0,
                                 (const char *)j->plain + first * c * 9 * ortc_product_size(types[p->type]),
                                 weights, &one);
    *turned = block;
    ortc_blocked_tile tile = {.offset = offset,
                              .plane = p->points * BLOCK,
                              .groups = (size_t)p->ins,
                              .taps = 9,
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

/* ---- Results ------------------------------------------------------------------------------------------- */

/* Tiles t0 .. t1-1, neighbours in a row of an image, of one block of output; sums at s + point * step. */
static void finish_row(const job *j, int64_t t0, int64_t t1, int64_t block, const float *s, int64_t step,
                       float *scratch, int64_t *turned)
{
    const ortc_winograd_plan *p = j->p;
    const ortc_blocked_end *e = &j->end;
    place at = place_of(p, t0);
    const int64_t width = p->g.out[1], columns = min64((t1 - t0) * p->m, width - at.column),
                  rows = min64(p->m, p->g.out[0] - at.row);
    const int64_t first = (((at.image * p->outs + block) * p->g.out[0] + at.row) * width + at.column) * BLOCK;
    float *y = e->straight ? (float *)j->a->y + first : scratch + p->at_rows;
    const float *residual = e->straight && j->a->residual ? (const float *)j->a->residual + first : NULL;
    const size_t pitch = (size_t)((e->straight ? width : columns) * BLOCK);
    for (int64_t t = t0; t < t1; t++, at.column += p->m) {
        const int64_t to = (t - t0) * p->m * BLOCK;
        const ortc_winograd_end end = {.bias = j->a->bias + block * BLOCK,
                                       .residual = residual ? residual + to : NULL,
                                       .y = y + to,
                                       .pitch = pitch,
                                       .rows = (size_t)rows,
                                       .cols = (size_t)min64(p->m, width - at.column),
                                       .clip = e->straight && j->a->tail->act == ORTC_UK_ACT_CLIP,
                                       .lo = j->a->tail->lo,
                                       .hi = j->a->tail->hi};
        if (p->side->output(s + (t - t0) * BLOCK, (size_t)step, &end))
            again(j, &at, block, &end, scratch, turned);
    }
    for (int64_t r = 0; r < rows; r++)
        ortc_blocked_finish(e, y + (size_t)r * pitch, columns, block * BLOCK,
                            block + 1 < p->outs ? BLOCK : (size_t)p->lanes, first + r * width * BLOCK);
}

/* `blocks` of output from `block` on, of the batch t0 .. t1-1, whose patches are at v. */
static void products(const job *j, int64_t t0, int64_t t1, int64_t block, int64_t blocks, const float *v,
                     float *scratch)
{
    static const float zeros[2 * BLOCK];
    static const int64_t here;
    const ortc_winograd_plan *p = j->p;
    const int64_t count = t1 - t0, most = (int64_t)p->uk->most_pixels, parts = ceil_div(count, most);
    const int64_t weights = p->ins * BLOCK * BLOCK, step = p->wide * count * BLOCK;
    float *sums = scratch + p->at_sums;
    int64_t turned = -1;
    for (int64_t q = 0; q < p->points; q++) {
        ortc_blocked_tile tile = {.offset = &here,
                                  .plane = count * BLOCK,
                                  .groups = (size_t)p->ins,
                                  .taps = 1,
                                  .depth = (size_t)p->depth,
                                  .w = (const float *)j->a->w + (block * p->points + q) * weights,
                                  .w_block = (size_t)(p->points * weights),
                                  .y_block = (size_t)(count * BLOCK),
                                  .bias = zeros};
        for (int64_t i = 0; i < parts; i++) {
            const int64_t at = share(count, parts, i) * BLOCK;
            tile.x = v + q * p->ins * count * BLOCK + at;
            tile.y = sums + q * step + at;
            p->uk->dense[ORTC_FLOAT_F32]((size_t)(share(count, parts, i + 1) - share(count, parts, i)),
                                         (size_t)blocks, &tile);
        }
    }
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t t = t0, end; t < t1; t = end) {
            end = min64(t1, (t / p->across + 1) * p->across);
            finish_row(j, t, end, block + b, sums + (b * count + t - t0) * BLOCK, step, scratch, &turned);
        }
}

/* ---- Tasks --------------------------------------------------------------------------------------------- */

/* [batch] */
static void whole_batches(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_winograd_plan *p = j->p;
    for (int64_t i = begin; i < end; i++) {
        const int64_t t0 = share(p->tiles, p->batches, i), t1 = share(p->tiles, p->batches, i + 1);
        for (int64_t b = 0; b < p->ins; b++) transform(j, t0, t1, b, scratch);
        for (int64_t b = 0; b < p->outs; b += p->wide)
            products(j, t0, t1, b, min64(p->wide, p->outs - b), scratch, scratch);
    }
}

static float *shared_batch(const job *j, int64_t t0)
{
    return j->shared + t0 * j->p->points * j->p->ins * BLOCK;
}

/* [batch][block of input] */
static void patches_of(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_winograd_plan *p = j->p;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t b = i / p->ins, t0 = share(p->tiles, p->batches, b),
                      t1 = share(p->tiles, p->batches, b + 1);
        transform(j, t0, t1, i % p->ins, shared_batch(j, t0));
    }
}

/* [blocks of output][batch]: neighbours read the same weights */
static void products_of(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_winograd_plan *p = j->p;
    for (int64_t i = begin; i < end; i++) {
        const int64_t b = i % p->batches, block = i / p->batches * p->wide;
        const int64_t t0 = share(p->tiles, p->batches, b), t1 = share(p->tiles, p->batches, b + 1);
        products(j, t0, t1, block, min64(p->wide, p->outs - block), shared_batch(j, t0), scratch);
    }
}

int32_t ortc_winograd_run(const ortc_winograd_plan *p, const ortc_blocked_args *a, const void *plain,
                          float *space, const ortc_product_threads *threads)
{
    job j = {p, a, plain, space, ortc_blocked_end_of(p->uk, p->type, a)};
    if (!p->together) return threads->parallel(threads->context, p->batches, 1, whole_batches, &j);
    const int32_t status = threads->parallel(threads->context, p->batches * p->ins,
                                             max64(INPUT_GRAIN / p->batch, 1), patches_of, &j);
    return status ? status
                  : threads->parallel(threads->context, p->batches * ceil_div(p->outs, p->wide), 1,
                                      products_of, &j);
}
