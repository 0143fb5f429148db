/* What is decided before the loops of blocked.h run: micro-kernels, what fits, tasks, places in scratch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blocked.h"
#include "blocked_weights.h"
#include "kernels/common/counts.h"
#include "seen.h"

#define WEIGHT_BYTES (256 * 1024)   /* of a chunk's weights for a tile: they stay in L2 */
#define STAGE_BYTES (256 * 1024)    /* of what a task lays out: beside them */
#define WIDENED_BYTES (1024 * 1024) /* of an image of 16 bits, as f32 */
#define SCRATCH_LIMIT (16.0 * 1024 * 1024)
#define FAR_BYTES (1024 * 1024) /* of an image that is in no near cache, */
#define FAR_TIMES 4             /* and read so often, by blocks of output */
#define SEGMENT 224             /* pixels */
#define ROWS 4                  /* fewer rows in a task only where they do not fit */
#define MOST_ROWS 1024
#define REACH 4096 /* of a window, in pixels: what is laid out fits 64 bits by far */
#define FINISHED 8 /* tiles whose sums are finished together: near, and few calls */
#define TASK_MACS 1e6
#define TASKS 64         /* enough for many threads */
#define EACH 4           /* of a thread, where their number is known */
#define FEW 4            /* tasks that a small convolution has, */
#define FEW_MACS 0.125e6 /* of two microseconds each: two threads gain by no less; */
#define OWN_MACS 0.25e6  /* more threads have one each of so many */
#define LONG_MACS 256e6  /* of two to four milliseconds: who cancels a run waits for no more */
#define GRAIN_MACS 0.1e6
#define FAR_COLUMNS 4 /* pixels between columns of a window, so that runs that see the same ones are long */
#define FAR_WEIGHT 5  /* times a multiplication of many pixels */
#define LAID_OUT 80   /* clocks of tiles that a vector which is laid out is worth: it takes a twentieth, */
#define LAID_PART 20  /* from L3 */
#define BEGIN 0.25
/* Of bytes' taps are left out, and how many pixels that is: what their sums begin with is found anew. */
#define LEAST_LEFT 0.05
#define LEAST_PIXELS 16
#define WIDE_TILES 3 /* from so many on that read weights of 16 bits the first leaves them as f32 */
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
        if (e->stride[i] > ORTC_BLOCKED_STRIDE || e->dilation[i] > REACH ||
            (e->kernel[i] - 1) * e->dilation[i] > REACH)
            return 0;
    }
    return 1;
}

static int64_t type_bytes(int32_t type) /* of an element of x */
{
    return type == ORTC_FLOAT_F32 ? 4 : type == ORTC_BLOCKED_BYTES ? 1 : 2;
}

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

double ortc_blocked_seen(const ortc_blocked_plan *p)
{
    const ortc_window_extents *e = &p->e;
    if (!p->leaves_out) return 1;
    return ortc_share_seen(e, 0) * ortc_share_seen(e, 1) * (p->by_columns ? ortc_share_seen(e, 2) : 1);
}

/* Of 16 bits, which tiles of floats read as f32. */
static int is_narrow(const ortc_blocked_plan *p)
{
    return !p->bytes && !p->pairs && p->type != ORTC_FLOAT_F32;
}

/* Whether there are tiles of some of the taps. */
static int picks_taps(const ortc_blocked_plan *p) { return p->bytes ? p->bytes->some != NULL : !p->pairs; }

/* Of floats wherever some taps are beside the image, for only infinities and NaN would tell (of 16 bits,
 * whose weights are widened for all taps else, where columns are far); of bytes, whose sums begin
 * elsewhere then, where they are many. */
static void find_left_out(ortc_blocked_plan *p)
{
    p->leaves_out = picks_taps(p) && !p->stem && p->taps > 1 && p->taps <= ORTC_BLOCKED_SEEN &&
                    !(is_inside(&p->e, 0) && is_inside(&p->e, 1) && is_inside(&p->e, 2));
    p->by_columns = p->leaves_out && columns_are_far(&p->e);
    const int fits = (double)p->in_count * ORTC_BLOCK * sizeof(float) <= SCRATCH_LIMIT / 4;
    if (is_narrow(p) &&
        !(p->by_columns && fits && always_sees(&p->e, 0) && always_sees(&p->e, 1) && always_sees(&p->e, 2)))
        p->leaves_out = p->by_columns = 0;
    const double left_out = 1 - ortc_blocked_seen(p);
    if (p->bytes && (left_out < LEAST_LEFT || left_out * (double)p->out_count < LEAST_PIXELS))
        p->leaves_out = p->by_columns = 0;
}

/* Nothing outside of the image is read, or all of that left out; nothing skipped along a row. Of 16 bits
 * where taps are left out: else what is laid out is less than all of the image. */
static int reads_in_place(const ortc_blocked_plan *p)
{
    const int as_it_lies = p->bytes ? !p->flip
                                    : p->type == (p->pairs ? ORTC_FLOAT_BF16 : ORTC_FLOAT_F32) ||
                                          (is_narrow(p) && p->leaves_out);
    int yes = !p->stem && as_it_lies && p->e.stride[2] == 1;
    for (int i = 0; i < 3; i++)
        yes &= is_inside(&p->e, i) || (p->leaves_out && (i < 2 || p->by_columns) && always_sees(&p->e, i));
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
                        (p->out_count > 1 ? 1 : FAR_WEIGHT) * ortc_blocked_seen(p);
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
    const int far = p->in_place && p->leaves_out;
    if (p->taps == 1 || far) p->chunk = max64(1, WEIGHT_BYTES / group_bytes);
    if (p->widened) p->chunk = min64(p->chunk, max64(1, WIDENED_BYTES / 4 / (p->in_count * ORTC_BLOCK)));
    p->chunks = ceil_div(p->ins, p->chunk);
    p->chunk = ceil_div(p->ins, p->chunks);
    p->chunks = ceil_div(p->ins, p->chunk);

    lay_out(p, min64(rows, MOST_ROWS));
    /* far windows are more than what a task would lay out */
    while (p->rows > 1 && (far ? p->rows * p->segment * ORTC_BLOCK : p->all) > STAGE_BYTES / 4)
        lay_out(p, ceil_div(p->rows, 2));
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
    /* Results are finished in scratch, some tiles of two blocks together; between chunks all of a task's. */
    p->held = min64(p->rows * p->segment, FINISHED * (int64_t)p->uk->most_pixels);
    const double staged = p->widened    ? (double)p->chunk * (double)p->in_count * ORTC_BLOCK
                          : p->in_place ? 0
                                        : (double)p->chunk * (double)p->plane,
                 row = (double)p->segment * (p->flat ? (double)p->rows : 1),
                 sums = ORTC_BLOCK * (p->chunks > 1 ? (double)p->segment * (double)p->rows * (double)p->blocks
                                                    : ORTC_BLOCKED_BLOCKS * fmax(row, (double)p->held));
    const double line = p->stem ? (double)p->pitch * (double)p->e.stride[2] : 0;
    const double places = p->bytes && p->bytes->splits
                              ? (double)(ORTC_BLOCKED_PARTS * p->chunk * p->taps * p->step)
                              : 0;
    const int64_t tiles = p->rows * ceil_div(p->segment, (int64_t)p->uk->most_pixels);
    const int widens = is_narrow(p) && !p->widened && !p->stem && tiles >= WIDE_TILES;
    const double wide =
        widens ? (double)p->chunk * (double)(p->taps * p->step * ORTC_BLOCK) * (double)p->uk->most_blocks : 0;
    if ((staged + sums + line + 2 * places + wide) * 4 > SCRATCH_LIMIT) return 0;
    p->sums = (int64_t)staged, p->line = (int64_t)(staged + sums);
    p->places = ((int64_t)(staged + sums + line) + 1) / 2 * 2;
    p->wide = widens ? p->places + 2 * (int64_t)places : -1;
    p->scratch = (size_t)(p->places + 2 * (int64_t)places + (int64_t)wide) * sizeof(float);
    return 1;
}

/* Whether tiles ask for what the next ones read: of a large image that a task reads a few times. */
static int is_far(const ortc_blocked_plan *p)
{
    return p->in_place && !p->widened && picks_taps(p) && p->taps <= ORTC_BLOCKED_SEEN &&
           p->ins * p->in_count * p->pixel > FAR_BYTES &&
           ceil_div(p->blocks, (int64_t)p->uk->most_blocks) <= FAR_TIMES;
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
    p->uneven = g->group > 1 && (c % ORTC_BLOCK || f % ORTC_BLOCK);
    if (stem ? g->group > 1 || c > ORTC_STEM_CHANNELS
             : p->uneven && (type != ORTC_F32 || form != ORTC_BLOCKED_DENSE))
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
    p->outs = ceil_div(f, ORTC_BLOCK), p->lanes = (f - 1) % ORTC_BLOCK + 1, p->filters = f;
    p->in_count = g->in_count, p->out_count = g->out_count, p->taps = g->kernel_count;
    if (!ortc_conv_extents(g, &p->e)) return 0;
    if (!stem) ortc_conv_make_long(g, &p->e);
    find_left_out(p);
    p->in_place = !p->uneven && reads_in_place(p);
    p->widened = p->in_place && is_narrow(p);
    /* Where a window has one row, rows between windows are left out; phases likewise. */
    p->row_skip = p->e.kernel[1] == 1 ? p->e.stride[1] : 1, p->row_step = p->e.stride[1] / p->row_skip;
    p->phases = p->e.kernel[2] == 1 ? 1 : p->e.stride[2];
    /* tasks of few threads may be larger than fits */
    split(p, threads);
    if (!find_scratch(p)) {
        split(p, 0);
        if (!find_scratch(p)) return 0;
    }
    if (p->uneven && p->chunks > 1) return 0;
    p->offset = malloc((size_t)p->taps * sizeof *p->offset);
    if (!p->offset) return 0;
    find_taps(p);
    p->far = is_far(p);
    return 1;
}

void ortc_blocked_plan_deinit(ortc_blocked_plan *p) { free(p->offset); }
