/* The loops of blocked.h: planning, laying out, tiles, finishing; its weights are blocked_weights.c. */
#include "blocked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/counts.h"
#include "kernels/gemm/integer_tail.h"
#include "kernels/gemm/product_uk.h"
#include "blocked_weights.h"
#include "seen.h"
#include "tiled.h"

#define WEIGHT_BYTES (256 * 1024) /* of a chunk's weights for a tile: they stay in L2 */
#define STAGE_BYTES (256 * 1024)  /* of what a task lays out: beside them */
#define SCRATCH_LIMIT (16.0 * 1024 * 1024)
#define SEGMENT 224 /* pixels */
#define ROWS 4      /* fewer rows in a task only where they do not fit */
#define MOST_ROWS 1024
#define MOST_STRIDE 16
#define REACH 4096 /* of a window, in pixels: what is laid out fits 64 bits by far */
#define TASK_MACS 1e6
#define TASKS 64         /* enough for many threads */
#define EACH 4           /* of a thread, where their number is known */
#define FEW 4            /* tasks that a small convolution has, */
#define FEW_MACS 0.125e6 /* of two microseconds each: two threads gain by no less; */
#define OWN_MACS 0.25e6  /* more threads have one each of so many */
#define LONG_MACS 256e6  /* of two to four milliseconds: who cancels a run waits for no more */
#define GRAIN_MACS 0.1e6
#define FINISHED 4    /* tiles whose sums are finished together: in L1 */
#define MOST_SEEN 64  /* taps, where some may be left out */
#define MANY_PHASES 8 /* of a row, from where on they are turned at once */
#define FAR_COLUMNS 4 /* pixels between columns of a window, so that runs that see the same ones are long */
#define FAR_WEIGHT 5  /* times a multiplication of many pixels */
#define LAID_OUT 80   /* clocks of tiles that a vector which is laid out is worth: it takes a twentieth, */
#define LAID_PART 20  /* from L3 */
#define BEGIN 0.25
#define MOST_TIMES 4 /* more tasks than are wanted, where threads have less to do so */

ORTC_VEC_TABLE(ortc_blocked_uk)

const ortc_blocked_uk *ortc_blocked_uk_get(void) { return ortc_blocked_uk_select(); }

#if defined(__x86_64__)
extern const ortc_blocked_bytes ortc_blocked_bytes_avx512vnni, ortc_blocked_bytes_avxvnni,
    ortc_blocked_bytes_avx512, ortc_blocked_bytes_avx2;
extern const ortc_blocked_pairs ortc_blocked_pairs_avx512bf16;
#endif
const ortc_blocked_bytes *ortc_blocked_bytes_get(void)
{
#if defined(__x86_64__)
    const uint32_t has = ortc_cpu_features();
    /* of AMX's plain products six layers in ten are quicker, and all of them over several threads */
    if (has & ORTC_CPU_AMX) return NULL;
    if (has & ORTC_CPU_AVX512)
        return has & ORTC_CPU_AVX512_VNNI ? &ortc_blocked_bytes_avx512vnni : &ortc_blocked_bytes_avx512;
#ifdef ORTC_TILES_avxvnni
    if (has & ORTC_CPU_AVX2 && has & ORTC_CPU_AVX_VNNI) return &ortc_blocked_bytes_avxvnni;
#endif
    if (has & ORTC_CPU_AVX2) return &ortc_blocked_bytes_avx2;
#endif
    return NULL;
}

const ortc_blocked_pairs *ortc_blocked_pairs_get(void)
{
#ifdef ORTC_TILES_avx512bf16
    const uint32_t needs = ORTC_CPU_AVX512 | ORTC_CPU_AVX512_BF16; /* which is not set beside AMX */
    if ((ortc_cpu_features() & needs) == needs) return &ortc_blocked_pairs_avx512bf16;
#endif
    return NULL;
}

int ortc_conv_extents(const ortc_conv_geometry *g, ortc_window_extents *e)
{
    if (g->spatial > 3) return 0;
    for (int i = 0; i < 3; i++) {
        const int32_t d = g->spatial - 3 + i;
        e->in[i] = d < 0 ? 1 : g->in[d], e->out[i] = d < 0 ? 1 : g->out[d];
        e->kernel[i] = d < 0 ? 1 : g->kernel[d], e->stride[i] = d < 0 ? 1 : g->stride[d];
        e->dilation[i] = d < 0 ? 1 : g->dilation[d], e->pad[i] = d < 0 ? 0 : g->pad[d];
        if (e->stride[i] > MOST_STRIDE || e->dilation[i] > REACH ||
            (e->kernel[i] - 1) * e->dilation[i] > REACH)
            return 0;
    }
    return 1;
}

static int64_t type_bytes(int32_t type) /* of an element of x */
{
    return type == ORTC_FLOAT_F32 ? 4 : type == ORTC_BLOCKED_BYTES ? 1 : 2;
}
/* ---- Plan ---------------------------------------------------------------------------------------------- */

/* Whether no window reaches beyond the image in a dim. */
static int is_inside(const ortc_window_extents *e, int i)
{
    return e->pad[i] == 0 && (e->out[i] - 1) * e->stride[i] + (e->kernel[i] - 1) * e->dilation[i] < e->in[i];
}

/* Whether runs of a row that see the same columns are long. */
static int columns_are_far(const ortc_window_extents *e)
{
    return e->dilation[2] >= FAR_COLUMNS && e->stride[2] == 1;
}

/* Whether each window sees something of the image in a dim: those that begin in it do. */
static int always_sees(const ortc_window_extents *e, int i)
{
    const int64_t last = (e->out[i] - 1) * e->stride[i] - e->pad[i];
    for (int64_t at = -e->pad[i], first, end; at < 0 && at <= last; at += e->stride[i]) {
        ortc_taps_seen(e, i, at, at, &first, &end);
        if (first >= end) return 0;
    }
    return last < e->in[i];
}

int ortc_blocked_leaves_out(const ortc_blocked_plan *p)
{
    return p->type == ORTC_FLOAT_F32 && !p->bytes && !p->pairs && !p->stem && p->taps > 1 &&
           p->taps <= MOST_SEEN && !(is_inside(&p->e, 0) && is_inside(&p->e, 1) && is_inside(&p->e, 2));
}

/* Nothing outside of the image is read, or all of that left out; nothing skipped along a row. */
static int reads_in_place(const ortc_blocked_plan *p)
{
    const int as_it_lies = p->bytes ? !p->flip : p->type == (p->pairs ? ORTC_FLOAT_BF16 : ORTC_FLOAT_F32);
    int yes = !p->stem && as_it_lies && p->e.stride[2] == 1;
    for (int i = 0; i < 3; i++)
        yes &= is_inside(&p->e, i) ||
               (ortc_blocked_leaves_out(p) && (i < 2 || columns_are_far(&p->e)) && always_sees(&p->e, i));
    return yes;
}

void ortc_conv_make_long(const ortc_conv_geometry *g, ortc_window_extents *e)
{
    int point = 1;
    for (int i = 0; i < 3; i++)
        point &= e->kernel[i] == 1 && e->stride[i] == 1 && e->pad[i] == 0 && e->in[i] == e->out[i];
    if (!point) return;
    e->in[2] = e->out[2] = g->out_count;
    e->in[0] = e->in[1] = e->out[0] = e->out[1] = 1;
}

/* Extents of what is laid out for `rows` rows of output. */
static void lay_out(ortc_blocked_plan *p, int64_t rows)
{
    p->rows = rows;
    p->rows_in = (rows - 1) * p->row_step + (p->e.kernel[1] - 1) * p->e.dilation[1] + 1;
    p->pitch = (p->segment + (p->e.kernel[2] - 1) * p->e.dilation[2] / p->e.stride[2]) * p->step;
    p->row = p->pitch * p->phases;
    p->plane = p->e.kernel[0] * p->rows_in * p->row;
    p->all = p->chunk * p->plane;
}

/* Blocks of a task where `others` tasks do each of them, on so many threads: those with which the thread that
 * has most to do has least, laying out being `least` blocks over LAID_PART; of those that are nearly as good,
 * up to `want` tasks, the most, for threads that come late. */
static int64_t shared_blocks(const ortc_blocked_plan *p, int64_t others, double least, int64_t threads,
                             int64_t want)
{
    const int64_t wide = (int64_t)p->uk->most_blocks, pairs = ceil_div(p->outs, wide);
    int64_t best = pairs * wide;
    double best_cost = INFINITY;
    for (int64_t n = 1; n <= pairs && (n == 1 || others * n <= MOST_TIMES * want); n++) {
        const int64_t blocks = ceil_div(pairs, n) * wide, tasks = others * ceil_div(p->outs, blocks);
        const double cost = (double)ceil_div(tasks, threads) *
                            ((double)min64(blocks, p->outs) + (p->in_place ? 0 : least / LAID_PART));
        if (cost < best_cost * (tasks <= want ? 1.02 : 1)) best = blocks, best_cost = fmin(cost, best_cost);
    }
    return best;
}

/* Tasks of so many multiplications; threads: how many share them, 0 where that does not matter. */
static int64_t tasks_wanted(double macs, uint32_t threads)
{
    const double large = fmin(macs / TASK_MACS, TASKS), small = fmin(macs / FEW_MACS, FEW),
                 own = fmin(macs / OWN_MACS, threads),
                 most = threads == 0   ? TASKS
                        : threads == 1 ? fmax(1, macs / LONG_MACS)
                                       : fmax(EACH * (double)threads, macs / LONG_MACS);
    return (int64_t)fmax(1, fmin(most, fmax(fmax(large, small), own)));
}

/* Parts of one long row, at least so many, of whole tiles: those with which the thread that has most to do
 * has least, blocks being dealt, too; a task costs BEGIN tiles of a pair of blocks more. */
static int64_t row_parts(int64_t tiles, int64_t least, int64_t pairs, int64_t others, int64_t threads)
{
    static const int64_t dealt_by[] = {1, 2, 3, 4, 6, 8, 12, 16};
    int64_t best = least;
    double best_cost = INFINITY;
    for (int64_t n = least; n <= min64(tiles, max64(least, EACH * threads)); n++) {
        const int64_t each = ceil_div(tiles, n), parts = ceil_div(tiles, each);
        for (size_t i = 0; i < sizeof dealt_by / sizeof *dealt_by && dealt_by[i] <= pairs; i++) {
            const int64_t blocks = ceil_div(pairs, dealt_by[i]),
                          tasks = others * parts * ceil_div(pairs, blocks);
            const double cost = (double)ceil_div(tasks, threads) * ((double)(each * blocks) + BEGIN);
            if (cost < best_cost) best = parts, best_cost = cost;
        }
    }
    return best;
}

/* How much is done at a time: chunks, rows, tasks. */
static void split(ortc_blocked_plan *p, uint32_t threads)
{
    const int64_t wide = (int64_t)p->uk->most_blocks, group_bytes = p->taps * p->step * ORTC_BLOCK * wide * 4;
    const int64_t rows = p->e.out[1], pairs = ceil_div(p->outs, wide);
    /* those of a single pixel take as long as weights from far away */
    const double macs = (double)p->images * (double)p->group * (double)p->ins * (double)p->step *
                        (double)p->outs * ORTC_BLOCK * (double)p->taps * (double)p->out_count *
                        (p->out_count > 1 ? 1 : FAR_WEIGHT);
    const int64_t want = tasks_wanted(macs, threads);
    int64_t segment = SEGMENT;
    if (rows == 1 && !p->stem) {
        const int64_t most = (int64_t)p->uk->most_pixels, tiles = ceil_div(p->e.out[2], most);
        /* A long row: its part of all blocks of input is read for every block of output. */
        if (p->taps == 1) segment = min64(max64(STAGE_BYTES / (p->ins * p->step * 4) / most, 4), 16) * most;
        if (threads > FEW)
            segment = ceil_div(tiles, row_parts(tiles, ceil_div(p->e.out[2], segment), pairs,
                                                p->images * p->group * p->e.out[0], min64(want, threads))) *
                      most;
    }
    p->segments = ceil_div(p->e.out[2], segment);
    p->segment = ceil_div(p->e.out[2], p->segments);
    p->segments = ceil_div(p->e.out[2], p->segment);
    p->chunk = 1;
    lay_out(p, min64(rows, ROWS));
    p->chunk = min64(max64(1, WEIGHT_BYTES / group_bytes), max64(1, STAGE_BYTES / 4 / p->plane));
    /* the segment was chosen for it; of windows far apart few taps are read at a time */
    if (p->taps == 1 || (p->in_place && ortc_blocked_leaves_out(p)))
        p->chunk = max64(1, WEIGHT_BYTES / group_bytes);
    p->chunks = ceil_div(p->ins, p->chunk);
    p->chunk = ceil_div(p->ins, p->chunks);
    p->chunks = ceil_div(p->ins, p->chunk);

    lay_out(p, min64(rows, MOST_ROWS));
    while (p->rows > 1 && p->all > STAGE_BYTES / 4) lay_out(p, ceil_div(p->rows, 2));
    const int64_t outer = p->images * p->group * p->e.out[0] * p->segments;
    /* Where weights are more than the image they are read once, by tasks of few blocks. */
    const int heavy = p->taps * p->outs * ORTC_BLOCK > p->in_count;
    p->block_tasks = heavy ? min64(pairs, ceil_div(want, outer * ceil_div(rows, p->rows))) : 1;
    while (p->rows > ROWS && outer * ceil_div(rows, p->rows) * p->block_tasks < want)
        lay_out(p, max64(ROWS, ceil_div(p->rows, 2)));
    p->row_tasks = ceil_div(rows, p->rows);
    lay_out(p, ceil_div(rows, p->row_tasks));
    p->row_tasks = ceil_div(rows, p->rows);
    p->block_tasks = max64(p->block_tasks, min64(pairs, ceil_div(want, outer * p->row_tasks)));
    p->blocks = ceil_div(pairs, p->block_tasks) * wide;
    /* Each of them lays out the same: a vector of that is worth LAID_OUT multiplications. */
    const double under = (double)(p->rows * p->segment * p->taps * p->step);
    const double least = p->in_place ? 1 : LAID_OUT * (double)p->plane / (double)p->step / under;
    while ((double)p->blocks < least && p->blocks < p->outs) p->blocks += wide;
    if (threads > 0) p->blocks = shared_blocks(p, outer * p->row_tasks, least, threads, want);
    p->block_tasks = ceil_div(p->outs, p->blocks);
    const double task = macs / (double)(outer * p->row_tasks * p->block_tasks);
    p->grain = task >= GRAIN_MACS ? 1 : (int64_t)(GRAIN_MACS / (task + 1)) + 1;
}

/* Where things lie in a task's scratch. 0: it is too large. */
static int find_scratch(ortc_blocked_plan *p)
{
    p->flat = !p->in_place && p->segments == 1 && p->e.kernel[1] == 1 && p->e.kernel[2] == 1;
    /* Results are finished in scratch, one row of a tile's blocks; between chunks all that a task has. */
    const double staged = p->in_place ? 0 : (double)p->chunk * (double)p->plane,
                 sums = (double)p->segment * ORTC_BLOCK *
                        (p->chunks > 1 ? (double)p->rows * (double)p->blocks
                         : p->flat     ? 2.0 * (double)p->rows
                                       : 2);
    const double line = p->stem ? (double)p->pitch * (double)p->e.stride[2] : 0;
    const double places = p->bytes && p->bytes->splits
                              ? (double)(ORTC_BLOCKED_PARTS * p->chunk * p->taps * p->step)
                              : 0;
    if ((staged + sums + line + 2 * places) * 4 > SCRATCH_LIMIT) return 0;
    p->sums = (int64_t)staged, p->line = (int64_t)(staged + sums);
    p->places = ((int64_t)(staged + sums + line) + 1) / 2 * 2;
    p->scratch = (size_t)p->places * sizeof(float) + (size_t)places * sizeof(int64_t);
    return 1;
}

double ortc_blocked_seen(const ortc_blocked_plan *p)
{
    const ortc_window_extents *e = &p->e;
    if (!ortc_blocked_leaves_out(p)) return 1;
    return ortc_share_seen(e, 0) * ortc_share_seen(e, 1) * (columns_are_far(e) ? ortc_share_seen(e, 2) : 1);
}

static void find_taps(ortc_blocked_plan *p)
{
    for (int64_t t = 0; t < p->taps; t++) {
        const int64_t c = t % p->e.kernel[2] * p->e.dilation[2],
                      r = t / p->e.kernel[2] % p->e.kernel[1] * p->e.dilation[1],
                      d = t / p->e.kernel[2] / p->e.kernel[1];
        p->offset[t] = p->in_place ? ((d * p->e.dilation[0] * p->e.in[1] + r) * p->e.in[2] + c) * p->step
                                   : (d * p->rows_in + r) * p->row + c % p->e.stride[2] * p->pitch +
                                         c / p->e.stride[2] * p->step;
    }
}

int ortc_blocked_plan_init(const ortc_conv_geometry *g, ortc_dtype type, int form, uint32_t threads,
                           ortc_blocked_plan *p)
{
    const int64_t c = g->channels, f = g->filters;
    const int stem = form == ORTC_BLOCKED_STEM || form == ORTC_BLOCKED_STEM_PAIRS;
    memset(p, 0, sizeof *p);
    if (g->images == 0 || f == 0 || c == 0 || g->out_count == 0 || g->kernel_count > 4096) return 0;
    if (stem ? g->group > 1 || c > ORTC_STEM_CHANNELS : g->group > 1 && (c % ORTC_BLOCK || f % ORTC_BLOCK))
        return 0;
    p->uk = ortc_blocked_uk_get();
    p->columns = ortc_columns_uk_select();
    p->convert = ortc_convert_get();
    p->type = ortc_blocked_type(type);
    p->stem = stem;
    p->images = g->images, p->group = g->group, p->channels = c;
    p->ins = stem ? c : ceil_div(c, ORTC_BLOCK), p->depth = stem ? 1 : (c - 1) % ORTC_BLOCK + 1;
    p->step = stem ? 1 : ORTC_BLOCK;
    if (p->type == ORTC_BLOCKED_BYTES) {
        p->bytes = ortc_blocked_bytes_get();
        if (!p->bytes) return 0;
        p->flip = type == ORTC_I8;
        p->depth = ceil_div(p->depth, ORTC_BLOCKED_WORD), p->step = ceil_div(p->step, ORTC_BLOCKED_WORD);
        if (stem) p->ins = 1;
    }
    if (form == ORTC_BLOCKED_PAIRS || form == ORTC_BLOCKED_STEM_PAIRS) {
        p->pairs = ortc_blocked_pairs_get();
        if (!p->pairs || (stem && p->type != ORTC_FLOAT_BF16)) return 0;
        p->depth = ceil_div(p->depth, ORTC_BLOCKED_PAIR), p->step = ceil_div(p->step, ORTC_BLOCKED_PAIR);
        if (stem) p->ins = ceil_div(c, ORTC_BLOCKED_PAIR);
    }
    p->pixel = (stem ? 1 : ORTC_BLOCK) * type_bytes(p->type);
    p->outs = ceil_div(f, ORTC_BLOCK), p->lanes = (f - 1) % ORTC_BLOCK + 1;
    p->in_count = g->in_count, p->out_count = g->out_count, p->taps = g->kernel_count;
    if (!ortc_conv_extents(g, &p->e)) return 0;
    if (!stem) ortc_conv_make_long(g, &p->e);
    p->in_place = reads_in_place(p);
    /* Where a window has one row, rows between windows are left out; phases likewise. */
    p->row_skip = p->e.kernel[1] == 1 ? p->e.stride[1] : 1, p->row_step = p->e.stride[1] / p->row_skip;
    p->phases = p->e.kernel[2] == 1 ? 1 : p->e.stride[2];
    /* tasks of few threads may be larger than fits */
    split(p, threads);
    if (!find_scratch(p)) {
        split(p, 0);
        if (!find_scratch(p)) return 0;
    }
    p->offset = malloc((size_t)p->taps * sizeof *p->offset);
    if (!p->offset) return 0;
    find_taps(p);
    return 1;
}

void ortc_blocked_plan_deinit(ortc_blocked_plan *p) { free(p->offset); }

/* ---- Ends ---------------------------------------------------------------------------------------------- */

ortc_blocked_end ortc_blocked_end_of(const ortc_blocked_uk *uk, int32_t type, const ortc_blocked_args *a)
{
    if (a->tail && a->tail->widens) type = ORTC_FLOAT_F32; /* bytes have none */
    const int straight = type == ORTC_FLOAT_F32 && !a->tail->has_rest && a->tail->act != ORTC_UK_ACT_LEAKY;
    return (ortc_blocked_end){uk, a, type, straight};
}

void ortc_blocked_fixed(const ortc_blocked_args *a, int64_t block, const int32_t *sums, int64_t n, int64_t at)
{
    enum { TOGETHER = 256 };
    const int64_t size = ortc_dtype_bits(a->int_tail->type) / 8;
    const int32_t port = a->int_tail->residual;
    for (int64_t some; n > 0; n -= some, sums += some * ORTC_BLOCK, at += some * ORTC_BLOCK) {
        some = min64(n, TOGETHER);
        ortc_int_ends_run(a->int_ends, (size_t)block, sums, (size_t)some,
                          port < 0 ? NULL : (const char *)a->in[port].data + at, (char *)a->y + at * size);
    }
}

/* Sums of s32, for n pixels. */
static void finish_integers(const ortc_blocked_args *a, int32_t *sums, int64_t n, int64_t channel,
                            size_t lanes, int64_t at)
{
    const ortc_tail_place place = {
        .channel = channel, .channel_col = 1, .element = at, .row = ORTC_BLOCK, .col = 1};
    const size_t size = ortc_dtype_bits(a->int_tail->type) / 8;
    char *y = (char *)a->y + (size_t)at * size;
    if (a->int_tail->has_pass || a->int_tail->has_rest)
        ortc_int_tail_over(a->int_tail, a->in, &place, sums, ORTC_BLOCK, y, ORTC_BLOCK, (size_t)n, lanes);
    else
        memcpy(y, sums, (size_t)n * ORTC_BLOCK * size);
    for (int64_t i = 0; lanes < ORTC_BLOCK && i < n; i++)
        memset(y + ((size_t)i * ORTC_BLOCK + lanes) * size, 0, (ORTC_BLOCK - lanes) * size);
}

void ortc_blocked_finish_bytes(const ortc_blocked_end *e, int32_t *sums, int64_t n, int64_t channel,
                               size_t lanes, int64_t at)
{
    const int64_t block = channel / ORTC_BLOCK;
    if (ortc_int_ends_has(e->a->int_ends, (size_t)block))
        ortc_blocked_fixed(e->a, block, sums, n, at);
    else
        finish_integers(e->a, sums, n, channel, lanes, at);
}

/* Where an instruction rounds to bf16; else NULL. */
typedef void clip_fn(size_t n, const float *sums, const void *residual, float lo, float hi, void *y);
static clip_fn *clip_bf16(void)
{
    const ortc_tiled_uk *tiles = ortc_tiled_uk_get(ORTC_TILED_BF16);
    const ortc_blocked_pairs *pairs = ortc_blocked_pairs_get();
    return tiles ? tiles->clip_bf16 : pairs ? pairs->clip_bf16 : NULL;
}

int ortc_blocked_end_clips(const ortc_blocked_end *e)
{
    return !e->a->tail->has_rest && e->a->tail->act != ORTC_UK_ACT_LEAKY;
}

void ortc_blocked_finish(const ortc_blocked_end *e, float *sums, int64_t n, int64_t channel, size_t lanes,
                         int64_t at)
{
    if (e->type == ORTC_BLOCKED_BYTES) {
        finish_integers(e->a, (int32_t *)(void *)sums, n, channel, lanes, at);
        return;
    }
    const ortc_tail_spec *s = e->a->tail;
    const int64_t bytes = at * (e->type == ORTC_FLOAT_F32 ? 4 : 2), blocks = e->a->wide ? e->a->wide : 1;
    const size_t pixel = (size_t)blocks * ORTC_BLOCK, count = (size_t)n * pixel;
    const char *residual = e->a->residual;
    char *y = (char *)e->a->y + bytes;
    int stored = e->straight && lanes == pixel;
    clip_fn *const at_once = e->type == ORTC_FLOAT_BF16 && lanes == pixel ? clip_bf16() : NULL;
    if (at_once && ortc_blocked_end_clips(e)) {
        const int clip = s->act == ORTC_UK_ACT_CLIP;
        at_once(count, sums, residual ? residual + bytes : NULL, clip ? s->lo : -INFINITY,
                clip ? s->hi : INFINITY, y);
        return;
    }
    if (!e->straight) {
        const ortc_tail_place place = {
            .channel = channel, .channel_col = 1, .element = at, .row = (int64_t)pixel, .col = 1};
        if (residual || s->act != ORTC_UK_ACT_NONE)
            e->uk->finish[e->type](count, residual ? residual + bytes : NULL, s->act, s->lo, s->hi, sums);
        if (s->has_rest && e->type != ORTC_FLOAT_F32 && lanes == pixel) { /* at once */
            ortc_tail_store(s, e->a->in, &place, sums, pixel, y, pixel, (size_t)n, lanes);
            return;
        }
        stored = s->has_rest && e->type == ORTC_FLOAT_F32 && lanes == pixel;
        ortc_tail_over(s, e->a->in, &place, sums, pixel, stored ? (float *)(void *)y : sums, pixel, (size_t)n,
                       lanes);
    }
    if (at_once)
        at_once(count, sums, NULL, -INFINITY, INFINITY, y);
    else if (!stored)
        e->uk->narrow[e->type]((size_t)(n * blocks), sums, blocks > 1 ? ORTC_BLOCK : lanes, y);
}

/* ---- Laying out ---------------------------------------------------------------------------------------- */

typedef struct job {
    const ortc_blocked_plan *p;
    const ortc_blocked_args *a;
    ortc_blocked_end end;
    int half; /* of pairs: registers do all of it and store bf16 */
    ortc_blocked_more_of more;
} job;

/* What a task is about. */
typedef struct task {
    const job *j;
    int64_t image, group;
    int64_t plane, row, rows, column, pixels; /* of output */
    int64_t block, blocks;
    float *stage, *sums, *line;
    int64_t second;  /* of pairs of a plain image: bytes to the second channel; 0: there is none */
    int64_t *places; /* of what is taken once more */
    ortc_blocked_more more[ORTC_BLOCKED_PARTS];
} task;

/* Pixels of a plain image as a stem reads them: one channel's in f32, or words of two or of all channels. */
static const float *read_line(const task *t, const char *from, int64_t n)
{
    const ortc_blocked_plan *p = t->j->p;
    if (p->bytes)
        ortc_product_moves_select()->bytes->rows((size_t)n, (size_t)p->channels, (const uint8_t *)from,
                                                 (size_t)p->in_count, p->flip ? ORTC_I8 : ORTC_U8, ORTC_U8,
                                                 t->line, (size_t)n, NULL);
    else if (p->pairs)
        p->pairs->join((size_t)n, from, t->second ? from + t->second : NULL, t->line);
    else if (p->type == ORTC_FLOAT_F32)
        return (const float *)(const void *)from;
    else
        p->convert->widen[p->type]((size_t)n, from, t->line);
    return t->line;
}

/* A phase of rows of input: pixels first, first + stride, .., of which lo .. hi-1 are in the image. */
typedef struct phase {
    int64_t first, lo, hi;
} phase;

static phase phase_of(const task *t, int64_t q)
{
    const ortc_blocked_plan *p = t->j->p;
    const int64_t s = p->e.stride[2], first = t->column * s - p->e.pad[2] + q, n = p->pitch / p->step;
    const int64_t lo = first >= 0 ? 0 : min64(n, ceil_div(-first, s)),
                  hi = p->e.in[2] > first ? min64(n, ceil_div(p->e.in[2] - first, s)) : 0;
    return (phase){first, lo, hi > lo ? hi : lo};
}

/* That of one row, `src`, or NULL for one of padding. */
static void fill_phase(const task *t, const char *src, const phase *f, float *dst)
{
    const ortc_blocked_plan *p = t->j->p;
    const int64_t s = p->e.stride[2], lo = f->lo, hi = src ? f->hi : lo;
    const char *from = hi > lo ? src + (f->first + lo * s) * p->pixel : src;
    const size_t all = (size_t)p->pitch, begin = (size_t)(lo * p->step), end = (size_t)(hi * p->step);
    const int zero = t->j->a->zero; /* of floats 0 */
    if (begin > 0) memset(dst, zero, begin * sizeof *dst);
    if (hi > lo && p->stem)
        p->columns->run(1, dst + lo, 0, read_line(t, from, (hi - lo - 1) * s + 1), 0, (size_t)s, 0,
                        (size_t)(hi - lo), 0);
    else if (hi > lo && p->bytes)
        p->bytes->move((size_t)(hi - lo), from, (size_t)(s * p->pixel), p->flip, dst + begin);
    else if (hi > lo && p->pairs)
        (p->type == ORTC_FLOAT_F32 ? p->pairs->lay_f32 : p->pairs->lay_bf16)((size_t)(hi - lo), from,
                                                                             (size_t)(s * p->pixel),
                                                                             dst + begin);
    else if (hi > lo)
        p->uk->widen[p->type]((size_t)(hi - lo), from, (size_t)(s * ORTC_BLOCK), dst + begin);
    if (end < all) memset(dst + end, zero, (all - end) * sizeof *dst);
}

/* Pixels i0 .. i1-1 of all phases, one by one: pixel x at from[x - begin], zeros outside of begin .. end. */
static void fill_edge(const ortc_blocked_plan *p, const float *from, int64_t begin, int64_t end,
                      int64_t first, int64_t i0, int64_t i1, float *dst)
{
    const int64_t s = p->e.stride[2];
    for (int64_t i = i0; i < i1; i++)
        for (int64_t q = 0, x = first + i * s; q < s; q++, x++)
            dst[q * p->pitch + i] = x >= begin && x < end ? from[x - begin] : 0;
}

/* All phases of one row of input of a stem, at once where they are all in the image. */
static int fill_phases(const task *t, const char *src, float *dst)
{
    const ortc_blocked_plan *p = t->j->p;
    const int64_t s = p->e.stride[2], first = t->column * s - p->e.pad[2], n = p->pitch;
    const int64_t begin = max64(first, 0), end = min64(p->e.in[2], first + n * s),
                  lo = ceil_div(begin - first, s), hi = (end - first) / s;
    if (!p->columns->phases || !p->stem || p->bytes || p->phases != s ||
        (s != 2 && s != 4 && s < MANY_PHASES) || !src || hi <= lo)
        return 0;
    const float *from = read_line(t, src + begin * p->pixel, end - begin);
    p->columns->phases((size_t)(hi - lo), (size_t)s, (size_t)s, from + (first + lo * s - begin), dst + lo,
                       (size_t)n);
    fill_edge(p, from, begin, end, first, 0, lo, dst);
    fill_edge(p, from, begin, end, first, hi, n, dst);
    return 1;
}

/* Blocks g0 .. g1-1 of input under the task. */
static void fill_stage(task *t, int64_t g0, int64_t g1)
{
    const ortc_blocked_plan *p = t->j->p;
    const int64_t row_bytes = p->e.in[2] * p->pixel,
                  planes = p->stem ? p->channels : p->ins, /* of an image */
        each = p->stem && p->pairs ? ORTC_BLOCKED_PAIR : 1;
    const int64_t rows_in = p->rows_in - (p->rows - t->rows) * p->row_step;
    phase phases[MOST_STRIDE];
    for (int64_t q = 0; q < p->phases; q++) phases[q] = phase_of(t, q);
    for (int64_t g = g0; g < g1; g++) {
        t->second = each > 1 && g * each + 1 < planes ? p->in_count * p->pixel : 0;
        for (int64_t d = 0; d < p->e.kernel[0]; d++) {
            const int64_t plane = t->plane * p->e.stride[0] - p->e.pad[0] + d * p->e.dilation[0];
            const char *x = (const char *)t->j->a->x +
                            (((t->image * p->group + t->group) * planes + g * each) * p->e.in[0] + plane) *
                                p->e.in[1] * row_bytes;
            float *dst = t->stage + (g - g0) * p->plane + d * p->rows_in * p->row;
            for (int64_t i = 0; i < rows_in; i++, dst += p->row) {
                const int64_t row = t->row * p->e.stride[1] - p->e.pad[1] + i * p->row_skip;
                const int inside = plane >= 0 && plane < p->e.in[0] && row >= 0 && row < p->e.in[1];
                const char *src = inside ? x + row * row_bytes : NULL;
                if (fill_phases(t, src, dst)) continue;
                for (int64_t q = 0; q < p->phases; q++) fill_phase(t, src, &phases[q], dst + q * p->pitch);
            }
        }
    }
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

/* Weights of groups from g on of block `block` of all groups. */
static const char *weights_at(const task *t, int64_t block, int64_t g)
{
    const ortc_blocked_plan *p = t->j->p;
    const int64_t element = ortc_blocked_element_bytes(p->type, p->pairs  ? ORTC_BLOCKED_PAIRS
                                                                : p->stem ? ORTC_BLOCKED_STEM
                                                                          : ORTC_BLOCKED_DENSE);
    return (const char *)t->j->a->w + t->image * t->j->a->w_image +
           (block * p->ins + g) * p->taps * p->step * ORTC_BLOCK * element;
}

/* The weights that come next, of which tiles ask for lines, tile k of so many, so that all are there when
 * they are multiplied: of the next blocks, the next chunk, or the next task. */
typedef struct ahead {
    const char *next;   /* NULL: nothing */
    int64_t all, lines; /* of a block at a tap: there are, a tile asks for */
} ahead;
static ahead ahead_of(const task *t, int64_t g0, int64_t g1, int64_t block, int64_t blocks, int64_t tiles)
{
    const ortc_blocked_plan *p = t->j->p;
    const int64_t all = (weights_at(t, 0, 1) - weights_at(t, 0, 0)) / p->taps / ORTC_BLOCKED_LINE;
    int64_t next = block + blocks, g = g0;
    if (next == t->block + t->blocks) {
        g = g1 < p->ins ? g1 : 0;
        if (g > 0) next = t->block;
    }
    if (p->stem || next == p->group * p->outs) return (ahead){NULL};
    return (ahead){weights_at(t, next, g), all, ceil_div(all, tiles)};
}
static void ask(const ahead *a, int64_t k, ortc_blocked_tile *tile)
{
    tile->next = a->next + k * a->lines * (int64_t)(tile->groups * tile->taps) * ORTC_BLOCKED_LINE;
    tile->next_lines = k * a->lines < a->all ? (size_t)a->lines : 0;
}

/* What blocks `block` on take once more of groups g0 .. g1-1, `plane` apart. */
static void take_more(task *t, int64_t block, int64_t blocks, int64_t g0, int64_t g1, int64_t plane)
{
    const ortc_blocked_more_of *m = &t->j->more;
    const int64_t *offset = t->j->p->offset;
    int64_t *at = t->places;
    for (int64_t i = 0; i < blocks * m->each; i++) {
        uint32_t from = m->begin[block * m->each + i], to = m->begin[block * m->each + i + 1];
        while (from < to && m->word[from].group < g0) from++;
        while (from < to && m->word[to - 1].group >= g1) to--;
        t->more[i] = (ortc_blocked_more){to - from, at, m->w + from * m->size};
        for (const ortc_blocked_word *w = m->word + from; w < m->word + to; w++)
            *at++ = ((w->group - g0) * plane + offset[w->tap] + w->word) * ORTC_BLOCKED_WORD;
    }
}

/* Channels of n pixels of bf16 from `lanes` on, which only pad the block. */
static void clear_beyond(uint16_t *y, int64_t n, size_t lanes)
{
    for (int64_t i = 0; lanes < ORTC_BLOCK && i < n; i++, y += ORTC_BLOCK)
        memset(y + lanes, 0, (ORTC_BLOCK - lanes) * sizeof *y);
}

/* n neighbouring pixels of a row, from `at` of the task's on, and the taps that see anything there, which are
 * the same for all of them. */
typedef struct run {
    int64_t at, n;
    size_t taps; /* 0: all of them */
    int64_t first, offset[MOST_SEEN], jump[MOST_SEEN];
} run;

/* The pixels from `at` on that see the same columns of the window. */
static int64_t alike(const task *t, int64_t at)
{
    const ortc_window_extents *e = &t->j->p->e;
    int64_t n = t->pixels - at;
    if (!columns_are_far(e)) return n;
    for (int64_t c = 0; c < e->kernel[2]; c++) {
        const int64_t here = t->column + at - e->pad[2] + c * e->dilation[2], enters = -here,
                      leaves = e->in[2] - here;
        if (enters > 0) n = min64(n, enters);
        if (leaves > 0) n = min64(n, leaves);
    }
    return n;
}

/* Taps beside the image are left out where whole rows, or many pixels of them, have them there: sums of f32
 * of windows that are laid out. */
static void find_run(const task *t, int64_t row, int64_t at, run *r)
{
    const ortc_blocked_plan *p = t->j->p;
    const ortc_window_extents *e = &p->e;
    const int64_t columns = e->kernel[2], tap_bytes = p->step * ORTC_BLOCK * (int64_t)sizeof(float);
    r->at = at, r->n = t->pixels - at, r->taps = 0, r->first = 0;
    if (!ortc_blocked_leaves_out(p)) return;
    r->n = alike(t, at);
    int64_t first[3], end[3], last = 0;
    const int64_t from[3] = {t->plane * e->stride[0] - e->pad[0], (t->row + row) * e->stride[1] - e->pad[1],
                             t->column + at - e->pad[2]};
    for (int i = 0; i < 3; i++) ortc_taps_seen(e, i, from[i], from[i], &first[i], &end[i]);
    if (!columns_are_far(e)) first[2] = 0, end[2] = columns;
    if (end[0] - first[0] == e->kernel[0] && end[1] - first[1] == e->kernel[1] &&
        end[2] - first[2] == columns)
        return;
    for (int64_t d = first[0]; d < end[0]; d++)
        for (int64_t i = first[1]; i < end[1]; i++)
            for (int64_t c = first[2]; c < end[2]; c++) {
                const int64_t tap = (d * e->kernel[1] + i) * columns + c;
                if (r->taps)
                    r->jump[r->taps - 1] = (tap - last) * tap_bytes;
                else
                    r->first = tap;
                r->offset[r->taps++] = p->offset[tap];
                last = tap;
            }
    if (r->taps) r->jump[r->taps - 1] = (p->taps - last + r->first) * tap_bytes;
}

/* A run of a row of the task, `blocks` output blocks from `block` on (of all groups), chunk g0 .. g1-1 of
 * input. */
static void one_run(const task *t, const run *r, const float *x, int64_t plane, int64_t g0, int64_t g1,
                    int64_t block, int64_t blocks, int64_t row)
{
    const job *j = t->j;
    const ortc_blocked_plan *p = j->p;
    const int64_t first = (t->image * p->group * p->outs + block) * p->out_count * ORTC_BLOCK +
                          ((t->plane * p->e.out[1] + t->row + row) * p->e.out[2] + t->column + r->at) *
                              ORTC_BLOCK;
    const int leaves_out = p->in_place && ortc_blocked_leaves_out(p);
    const int few = blocks == 1 && ortc_blocked_has_half(p) && block % p->outs + 1 == p->outs && !leaves_out;
    const int last = g1 == p->ins, most = (int)(few ? p->uk->half_pixels : p->uk->most_pixels);
    const int half = j->half && last, straight = j->end.straight || half; /* to where results belong */
    const int apart = !straight && p->chunks == 1; /* sums of some tiles, which stay in L1 */
    const int64_t kept_block = (p->chunks > 1 ? t->rows : 1) * t->pixels * ORTC_BLOCK,
                  y_block = straight ? p->out_count * ORTC_BLOCK : kept_block, size = half ? 2 : 4;
    float *kept = t->sums + (p->chunks > 1
                                 ? (((block - t->block) * t->rows + row) * t->pixels + r->at) * ORTC_BLOCK
                                 : 0);
    char *y = straight ? (char *)j->a->y + first * size : (char *)kept;
    const int some_taps = r->taps && !few;
    const int64_t tap_bytes = p->step * ORTC_BLOCK * (int64_t)sizeof(float); /* of f32 */
    ortc_blocked_tile tile = {.offset = some_taps ? r->offset : p->offset,
                              .jump = r->jump,
                              .plane = plane,
                              .groups = (size_t)(g1 - g0),
                              .taps = some_taps ? r->taps : (size_t)p->taps,
                              .depth = (size_t)(last ? p->depth : p->step),
                              .w = weights_at(t, block, g0) + (some_taps ? r->first * tap_bytes : 0),
                              .w_block = (size_t)(p->ins * p->taps * p->step * ORTC_BLOCK),
                              .y_block = (size_t)y_block,
                              .bias = g0 == 0 ? j->a->bias + block * ORTC_BLOCK : NULL,
                              .sums_block = (size_t)(half ? kept_block : y_block),
                              .half = half,
                              .clip = last && straight && j->a->tail->act == ORTC_UK_ACT_CLIP,
                              .lo = straight ? j->a->tail->lo : 0,
                              .hi = straight ? j->a->tail->hi : 0,
                              .more = t->more};
    ortc_blocked_tile_fn *uk = p->pairs    ? p->stem ? p->pairs->stem : p->pairs->dense
                               : p->bytes  ? p->stem ? p->bytes->stem : p->bytes->dense
                               : few       ? p->stem ? p->uk->half_stem : p->uk->half_dense
                               : some_taps ? p->uk->some
                               : p->stem   ? p->uk->stem
                                           : p->uk->dense[p->type];
    const char *residual = last && straight ? j->a->residual : NULL;
    if (residual) residual += first * size;
    const int64_t tiles = ceil_div(r->n, most), some = apart ? FINISHED : tiles;
    const ahead next = ahead_of(t, g0, g1, block, blocks, t->rows * tiles);
    const int64_t each = r->n / tiles, more = r->n % tiles;
    for (int64_t from = 0; from < tiles; from += some) {
        const int64_t to = min64(from + some, tiles), begin = dealt(r->n, tiles, from),
                      end = dealt(r->n, tiles, to), left = apart ? begin : 0;
        if (apart) tile.y_block = (size_t)((end - begin) * ORTC_BLOCK);
        for (int64_t i = from, at = begin, n; i < to; i++, at += n) {
            n = each + (i < more);
            tile.x = x + (r->at + at) * p->step;
            if (next.next) ask(&next, row * tiles + i, &tile);
            tile.y = (float *)(void *)(y + (at - left) * ORTC_BLOCK * size);
            tile.sums = half ? kept + at * ORTC_BLOCK : tile.y;
            if (residual) tile.residual = (const float *)(const void *)(residual + at * ORTC_BLOCK * size);
            uk((size_t)n, (size_t)blocks, &tile);
        }
        for (int64_t b = 0; last && b < blocks; b++) {
            const size_t lanes = (block + b) % p->outs + 1 < p->outs ? ORTC_BLOCK : (size_t)p->lanes;
            const int64_t channel = (block + b) * ORTC_BLOCK, n = end - begin,
                          at = first + (b * p->out_count + begin) * ORTC_BLOCK;
            char *sums = y + ((begin - left) * ORTC_BLOCK + b * (int64_t)tile.y_block) * size;
            if (half)
                clear_beyond((uint16_t *)(void *)sums, n, lanes);
            else if (p->bytes)
                ortc_blocked_finish_bytes(&j->end, (int32_t *)(void *)sums, n, channel, lanes, at);
            else
                ortc_blocked_finish(&j->end, (float *)(void *)sums, n, channel, lanes, at);
        }
    }
}

/* One row of the task. */
static void one_row(const task *t, const float *x, int64_t plane, int64_t g0, int64_t g1, int64_t block,
                    int64_t blocks, int64_t row)
{
    run r;
    for (int64_t at = 0; at < t->pixels; at += r.n) {
        find_run(t, row, at, &r);
        one_run(t, &r, x, plane, g0, g1, block, blocks, row);
    }
}

static void run_task(task *t)
{
    const ortc_blocked_plan *p = t->j->p;
    const int64_t wide = (int64_t)p->uk->most_blocks;
    for (int64_t g0 = 0; g0 < p->ins; g0 += p->chunk) {
        const int64_t g1 = min64(p->ins, g0 + p->chunk);
        const float *x = t->stage;
        int64_t plane = p->plane, row = p->row_step * p->row;
        if (p->in_place) {
            plane = p->in_count * p->step, row = p->e.stride[1] * p->e.in[2] * p->step;
            const int64_t pixel = ((t->plane * p->e.stride[0] - p->e.pad[0]) * p->e.in[1] +
                                   t->row * p->e.stride[1] - p->e.pad[1]) *
                                      p->e.in[2] +
                                  t->column - p->e.pad[2];
            /* may point beside the image, where taps are left out */
            x = (const float *)((uintptr_t)t->j->a->x +
                                (uintptr_t)(((t->image * p->group + t->group) * p->ins + g0) * plane +
                                            pixel * p->step) *
                                    sizeof *x);
        } else {
            if (p->flat && g0 > 0) t->rows = t->pixels / p->segment, t->pixels = p->segment;
            fill_stage(t, g0, g1);
            if (p->flat) t->pixels *= t->rows, t->rows = 1;
        }
        for (int64_t b = 0; b < t->blocks; b += wide) {
            const int64_t n = min64(wide, t->blocks - b);
            if (t->j->more.word) take_more(t, t->block + b, n, g0, g1, plane);
            for (int64_t r = 0; r < t->rows; r++) one_row(t, x + r * row, plane, g0, g1, t->block + b, n, r);
        }
    }
}

/* Tasks are numbered [image][group][plane][row task][segment][block task]. */
static void body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_blocked_plan *p = j->p;
    float *space = scratch;
    for (int64_t i = begin; i < end; i++) {
        int64_t rest = i;
        const int64_t b = rest % p->block_tasks * p->blocks;
        rest /= p->block_tasks;
        task t = {.j = j, .stage = space, .sums = space + p->sums, .line = space + p->line};
        t.places = (int64_t *)(void *)(space + p->places);
        t.column = rest % p->segments * p->segment, rest /= p->segments;
        t.pixels = min64(p->segment, p->e.out[2] - t.column);
        t.row = rest % p->row_tasks * p->rows, rest /= p->row_tasks;
        t.rows = min64(p->rows, p->e.out[1] - t.row);
        t.plane = rest % p->e.out[0], rest /= p->e.out[0];
        t.group = rest % p->group, t.image = rest / p->group;
        t.block = t.group * p->outs + b, t.blocks = min64(p->blocks, p->outs - b);
        run_task(&t);
    }
}

int32_t ortc_blocked_run(const ortc_blocked_plan *p, const ortc_blocked_args *a,
                         const ortc_product_threads *threads)
{
    job j = {p, a, ortc_blocked_end_of(p->uk, p->type, a)};
    j.half = p->pairs && p->type == ORTC_FLOAT_BF16 && !a->tail->has_rest &&
             a->tail->act != ORTC_UK_ACT_LEAKY;
    if (p->bytes && p->bytes->splits)
        j.more = ortc_blocked_more_at((char *)(uintptr_t)a->w,
                                      ortc_blocked_word_bytes(p->group * p->outs, p->ins, p->taps, p->step),
                                      p->group * p->outs, p->bytes->splits);
    return threads->parallel(threads->context,
                             p->images * p->group * p->e.out[0] * p->row_tasks * p->segments * p->block_tasks,
                             p->grain, body, &j);
}
