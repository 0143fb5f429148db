/* The loops of tiled.h: planning, laying out, tiles, tasks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm/product_uk.h"
#include "seen.h"
#include "tiled_loops.h"

#define BAND_BYTES (384 * 1024)    /* of a task that lays out its own: in L2, beside weights */
#define BESIDE_BYTES (1024 * 1024) /* of images that are laid out beside each other */
#define MOST_BESIDE 8
#define TOGETHER_BYTES (1536 * 1024.0) /* of what is laid out first */
#define ROWS 8                         /* fewer in a band only where they do not fit */
#define TASK_CLOCKS 20e3
#define TASK_READ 16e3 /* bytes of x, which then are a clock each */
#define GRAIN_CLOCKS 8e3
#define GRAIN_OF_MANY 3e3 /* more than FEW_THREADS */
#define LONG_TASK 4e6
#define MANY_WEIGHTS 1.5 /* times what a task lays out */
#define MANY_TASKS 8     /* that share them, where threads are not known */
#define FEW_THREADS 4
#define SCRATCH_LIMIT (16.0 * 1024 * 1024)
#define BLOCK ORTC_BLOCK
#define UNIT ORTC_TILED_UNIT
#define AHEAD_BYTES (256 * 1024) /* of weights, fewer of which come soon enough as they are read */
#define CHUNK_BYTES (96 * 1024)  /* of weights in pieces: in L2, beside pixels */

typedef ortc_tiled_job job;
typedef ortc_tiled_band band;

static int64_t clocks_of_tile(int kind) { return ortc_tiled_in_pieces(kind) ? 96 : 16; }
/* How many times as long a tile takes with weights from far away and ends. Of pieces the measure
 * of TASK_CLOCKS is products alone. */
static double with_ends(int kind) { return ortc_tiled_in_pieces(kind) ? 1 : 4; }
/* Each costs some microseconds; floats have one grid for any number of threads. */
static int64_t most_tasks(int kind, uint32_t threads)
{
    if (kind == ORTC_TILED_BYTES && threads == 1) return 2;
    return ortc_tiled_in_pieces(kind) ? 32 : 16;
}

#ifdef ORTC_TILES_amx
extern const ortc_tiled_uk ortc_tiled_amx;
#endif
const ortc_tiled_uk *ortc_tiled_uk_get(int kind)
{
#ifdef ORTC_TILES_amx
    const uint32_t needs = ORTC_CPU_AVX512 | ORTC_CPU_AMX |
                           (ortc_tiled_in_pieces(kind) ? ORTC_CPU_AMX_F32 : 0);
    if ((ortc_cpu_features() & needs) == needs) return &ortc_tiled_amx;
#endif
    (void)kind;
    return NULL;
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

/* Extents of what is laid out for bands of so many rows and pixels. */
static void lay_out(ortc_tiled_plan *p, int64_t rows, int64_t segment)
{
    const ortc_window_extents *e = &p->e;
    p->rows = rows, p->segment = segment;
    p->rows_in = rows + (e->kernel[1] - 1) * e->dilation[1] / e->stride[1];
    p->pitch = segment + (e->kernel[2] - 1) * e->dilation[2] / e->stride[2];
    if (p->stem) /* whole rows of tiles behind the last pixel */
        p->pitch = segment - 1 + ceil_div(p->taps / (e->kernel[0] * e->kernel[1]) * ORTC_TILE_ROW, p->step);
    p->plane = e->kernel[0] * p->row_phases * p->phases * p->rows_in * p->pitch * p->step;
    p->plane = ceil_div(p->plane, ORTC_TILE_ROW) * ORTC_TILE_ROW;
    p->band = p->groups * p->pieces * p->plane;
    p->row_bands = ceil_div(e->out[1], rows), p->segments = ceil_div(e->out[2], segment);
    p->bands = p->images * p->group * e->out[0] * p->row_bands * p->segments;
}

/* Pixels that tiles go over, of a band of whole rows. */
static int64_t run_of(const ortc_tiled_plan *p, int64_t rows, int64_t pixels)
{
    return (rows - 1) * p->pitch + pixels;
}
static int64_t halves_of(const ortc_tiled_plan *p)
{
    return p->flat ? ceil_div(run_of(p, p->rows, p->segment), ORTC_TILE_HALF)
                   : p->rows * ceil_div(p->segment, ORTC_TILE_HALF);
}

static int64_t weights_of(const ortc_tiled_plan *p) /* bytes, of a group's blocks */
{
    return p->outs * p->groups * p->taps * ortc_tiled_weight_tile(p->kind);
}

static double product_clocks(const ortc_tiled_plan *p)
{
    return (double)p->bands * (double)halves_of(p) * (double)p->outs * (double)p->groups * (double)p->taps *
           (double)clocks_of_tile(p->kind);
}

static int64_t tasks_of(const ortc_tiled_plan *p)
{
    const int plain = p->together && p->kind == ORTC_TILED_PLAIN;
    return (plain ? p->group : ceil_div(p->bands, p->beside)) * p->block_parts * p->unit_parts;
}

/* Where threads are more than bands, and wait less so, several lay out the same band, each for filters of its
 * own. To cut an element takes about a clock, and band / 6 are as many of three pieces. */
static void share_bands(ortc_tiled_plan *p, int64_t pairs, int64_t threads)
{
    const double laid = (double)p->band / 6, pair = product_clocks(p) / ((double)p->bands * (double)pairs);
    double best = INFINITY;
    for (int64_t n = 1; n <= min64(pairs, 2 * ceil_div(threads, p->bands)); n++) {
        const int64_t each = ceil_div(pairs, n), parts = ceil_div(pairs, each);
        const double cost = (double)ceil_div(p->bands * parts, threads) * (laid + (double)each * pair);
        if (cost >= 0.95 * best) continue;
        best = cost, p->blocks = each * ORTC_TILE_BLOCKS, p->block_parts = parts;
    }
}

/* Small images of 16 bits, two and more of which are a unit of tiles, go over the same weights, which are
 * read once for all that a task has, and by few tasks: while later images are multiplied, what comes next is
 * asked for. Many threads would all read all that is laid out. */
static void put_beside(ortc_tiled_plan *p, uint32_t threads)
{
    const int64_t run = ceil_div(run_of(p, p->rows, p->segment), ORTC_TILE_PIXELS) * ORTC_TILE_PIXELS,
                  pairs = ceil_div(p->outs, ORTC_TILE_BLOCKS);
    p->side = p->beside = 1;
    if (!ortc_tiled_in_16_bits(p->kind) || p->stem || p->units != 1 || !p->flat || p->bands != p->images ||
        p->images == 1 || UNIT / run < 2 || (p->together && threads > FEW_THREADS))
        return;
    p->side = min64(UNIT / run, p->images);
    if (p->together) {
        const int64_t parts = threads ? 2 * (int64_t)threads : most_tasks(p->kind, threads);
        p->beside = min64(p->images, MOST_BESIDE);
        p->blocks = ceil_div(pairs, min64(pairs, parts)) * ORTC_TILE_BLOCKS;
        p->block_parts = ceil_div(p->outs, p->blocks);
        return;
    }
    const int64_t fits = min64(BESIDE_BYTES / p->band, MOST_BESIDE),
                  each = ceil_div(p->images * p->block_parts, max64(threads, 1)); /* of a thread */
    p->beside = max64(min64(min64(fits, each), p->images), 1);
}

/* Of 16 bits: what the tiles of a unit that find their weights in L1 ask for at a tap, to L2: of those
 * behind, which are multiplied next. More than so many lines are in these tiles' own way, and many threads
 * wait for memory together. */
static size_t lines_ahead(const ortc_tiled_plan *p, uint32_t threads)
{
    enum { LINES = ORTC_TILE_BLOCKS * ORTC_TILED_TILE_BYTES / 64, MOST = 16 };
    const int64_t later = p->unit / ORTC_TILE_PIXELS - 1;
    if (!ortc_tiled_in_16_bits(p->kind) || p->stem || later < 1 || weights_of(p) < AHEAD_BYTES ||
        threads > FEW_THREADS)
        return 0;
    return (size_t)min64(ceil_div(LINES, later), MOST);
}

static void split(ortc_tiled_plan *p, uint32_t threads)
{
    const int64_t rows = p->e.out[1], columns = p->e.out[2], pairs = ceil_div(p->outs, ORTC_TILE_BLOCKS);
    const double macs = (double)p->images * (double)p->group * (double)p->out_count * (double)p->outs *
                        (double)p->groups * (double)p->taps * (double)clocks_of_tile(p->kind) *
                        with_ends(p->kind) / ORTC_TILE_HALF;
    const int64_t most = most_tasks(p->kind, threads),
                  point = p->taps == 1 && rows == 1 && columns > ORTC_TILE_PIXELS;
    /* Points of few filters wait for pixels, which come from the processors that have written them, rather
     * than for products; pieces, whose bands must be the same, are cut so for one thread, too. */
    const int reads = point && (threads != 1 || ortc_tiled_in_pieces(p->kind));
    const double read = reads ? (double)(p->images * p->group * p->ins * p->in_count * p->pixel) : 0;
    const int64_t want = (int64_t)fmin(fmax(fmax(macs / TASK_CLOCKS, read / TASK_READ), 1), (double)most);
    lay_out(p, rows, columns);
    const int64_t outer = p->bands;
    p->together = (double)p->bands * (double)p->band <= TOGETHER_BYTES && outer < most;
    /* Points: who lays pixels out multiplies them, with weights that all have at hand. */
    if (point && p->kind != ORTC_TILED_PLAIN && (double)weights_of(p) <= TOGETHER_BYTES) p->together = 0;
    /* Each task lays out all of a small image, and goes over filters of its own: so weights are read once by
     * all together, whoever reads these filters' results finds them, and nothing that is laid out goes from
     * one processor to the other, which takes longer than doing it twice. Of points with many weights, and
     * where threads are few. Bands, and so bits, are the same for any number of them. */
    const int many_weights = point && !p->together && p->band <= BAND_BYTES &&
                             (double)weights_of(p) > MANY_WEIGHTS * (double)p->band,
              few_threads = p->together && threads >= (p->kind == ORTC_TILED_BYTES ? 2 : 1) &&
                            threads <= (ortc_tiled_in_16_bits(p->kind) && p->taps == 1 ? 1 : FEW_THREADS) &&
                            pairs >= threads,
              by_filters = outer == 1 && pairs > 1 && (many_weights || few_threads);
    if (by_filters) p->together = 0;
    if (!p->together && !by_filters) {
        if (rows == 1) {
            const int64_t fits = BAND_BYTES / (p->band / p->pitch) / UNIT * UNIT;
            const int64_t parts = max64(ceil_div(columns, max64(fits, UNIT)),
                                        min64(ceil_div(want, outer), ceil_div(columns, ORTC_TILE_PIXELS)));
            lay_out(p, 1, ceil_div(ceil_div(columns, max64(parts, 1)), ORTC_TILE_PIXELS) * ORTC_TILE_PIXELS);
        } else {
            while (p->rows > 1 && p->band > BAND_BYTES) lay_out(p, ceil_div(p->rows, 2), columns);
            while (p->rows > ROWS && p->bands < want) lay_out(p, max64(ROWS, ceil_div(p->rows, 2)), columns);
            lay_out(p, ceil_div(rows, p->row_bands), columns);
        }
    }
    p->flat = 1;
    const int64_t as_one = halves_of(p);
    p->flat = 0;
    p->flat = as_one <= halves_of(p);
    const int64_t one = p->flat ? run_of(p, p->rows, p->segment) : p->segment, n = ceil_div(one, UNIT);
    p->units = (p->flat ? 1 : p->rows) * n;
    p->unit = ortc_tiled_in_16_bits(p->kind) ? ceil_div(ceil_div(one, n), ORTC_TILE_PIXELS) * ORTC_TILE_PIXELS
                                             : UNIT;
    p->half = ORTC_TILE_HALF;
    if (p->units == 1 && ortc_tiled_in_pieces(p->kind)) { /* a tile takes time for its rows */
        const int64_t run = p->flat ? run_of(p, p->rows, p->segment) : p->segment;
        p->half = (int)ceil_div(run, ceil_div(run, ORTC_TILE_HALF));
    }
    p->blocks = p->outs, p->block_parts = 1, p->unit_parts = 1, p->beside = 1;
    if (by_filters) {
        const int64_t parts = max64(threads ? threads : MANY_TASKS, (int64_t)(product_clocks(p) / LONG_TASK));
        p->blocks = ceil_div(p->outs, min64(pairs, parts));
        p->block_parts = ceil_div(p->outs, p->blocks);
    } else if (p->together && p->kind == ORTC_TILED_PLAIN) { /* bands are one behind the other */
        const int64_t parts = ceil_div(want, p->group), units = p->bands / p->group * p->units;
        p->blocks = ceil_div(pairs, min64(pairs, parts)) * ORTC_TILE_BLOCKS;
        p->block_parts = ceil_div(p->outs, p->blocks);
        p->unit_parts = min64(units, ceil_div(parts, p->block_parts));
    } else if (p->together) { /* weights are read by few tasks where they are more than what is laid out */
        const int64_t parts = ceil_div(want, p->bands);
        const int heavy = weights_of(p) > p->band;
        const int64_t by_blocks = min64(pairs, heavy ? parts : ceil_div(parts, p->units));
        p->blocks = ceil_div(pairs, by_blocks) * ORTC_TILE_BLOCKS;
        p->block_parts = ceil_div(p->outs, p->blocks);
        p->unit_parts = min64(p->units, ceil_div(parts, p->block_parts));
    } else if (threads > FEW_THREADS && p->bands < threads) {
        share_bands(p, pairs, threads);
    }
    put_beside(p, threads);
    p->ahead = lines_ahead(p, threads);
    const double work = product_clocks(p) * with_ends(p->kind) + read;
    const double task = work / (double)tasks_of(p),
                 grain = threads > FEW_THREADS ? GRAIN_OF_MANY : GRAIN_CLOCKS;
    p->grain = task >= grain ? 1 : (int64_t)(grain / (task + 1)) + 1;
}

static void find_taps(ortc_tiled_plan *p)
{
    const ortc_window_extents *e = &p->e;
    const int64_t columns = p->stem ? p->taps / (e->kernel[0] * e->kernel[1]) : e->kernel[2];
    for (int64_t t = 0; t < p->taps; t++) {
        const int64_t c = t % columns * (p->stem ? 1 : e->dilation[2]),
                      r = t / columns % e->kernel[1] * e->dilation[1], d = t / columns / e->kernel[1];
        const int64_t q = p->stem ? 0 : c % e->stride[2],
                      x = p->stem ? c * ORTC_TILE_ROW : c / e->stride[2] * p->step;
        const int64_t phase = (d * p->row_phases + r % e->stride[1]) * p->phases + q;
        p->offset[t] = ((phase * p->rows_in + r / e->stride[1]) * p->pitch * p->step + x) / 4;
    }
}

/* Whether a band may have what tiles do not multiply: pieces, and a stem's number that is not finite. */
static int may_be_odd(const ortc_tiled_plan *p)
{
    return ortc_tiled_in_pieces(p->kind) || (p->stem && p->kind != ORTC_TILED_BYTES);
}

int ortc_tiled_plan_init(const ortc_tiled_uk *uk, const ortc_conv_geometry *g, ortc_dtype type, int kind,
                         uint32_t threads, ortc_tiled_plan *p)
{
    const int64_t c = g->channels, f = g->filters;
    *p = (ortc_tiled_plan){.uk = uk, .floats = ortc_blocked_uk_get(), .kind = kind};
    if (!uk || g->images == 0 || f == 0 || c == 0 || g->out_count == 0) return 0;
    if (g->kernel_count < 1 || g->kernel_count > 4096) return 0;
    if (g->group > 1 && (c % BLOCK || f % BLOCK)) return 0;
    if (!ortc_conv_extents(g, &p->e)) return 0;
    p->stem = ortc_tiled_is_stem(g, kind);
    if (!p->stem) ortc_conv_make_long(g, &p->e);
    const int bytes = kind == ORTC_TILED_BYTES;
    p->type = bytes ? ORTC_BLOCKED_BYTES : ortc_float_index(type);
    p->flip = type == ORTC_I8;
    p->images = g->images, p->group = g->group, p->channels = c, p->filters = f;
    p->ins = ceil_div(c, BLOCK), p->outs = ceil_div(f, BLOCK), p->lanes = (f - 1) % BLOCK + 1;
    p->per = ortc_tiled_blocks_of_group(kind), p->groups = ceil_div(p->ins, p->per),
    p->pieces = ortc_tiled_pieces(kind);
    p->in_count = g->in_count, p->out_count = g->out_count, p->taps = ortc_tiled_taps(g, kind);
    p->pixel = (p->stem ? 1 : BLOCK) * (bytes ? 1 : type == ORTC_F32 ? 4 : 2);
    p->step = p->stem ? p->e.stride[2] * ortc_tiled_stem_pixel(kind) : ORTC_TILE_ROW;
    /* Where a window has one row, or column, those between windows are left out. */
    p->row_phases = p->e.kernel[1] == 1 ? 1 : p->e.stride[1],
    p->phases = p->stem || p->e.kernel[2] == 1 ? 1 : p->e.stride[2];
    /* what is counted below fits by far */
    const double rows = (double)p->e.out[1] + (double)(p->e.kernel[1] * p->e.dilation[1]),
                 columns = (double)p->e.out[2] + (double)(p->e.kernel[2] * p->e.dilation[2]);
    const double planes = (double)p->e.kernel[0] * (double)(p->e.stride[1] * p->e.stride[2]) *
                          (double)p->e.out[0];
    if (rows * columns * planes * (double)(p->images * p->group) * (double)(p->groups * p->pieces) > 1e15)
        return 0;
    split(p, threads);
    const int pieces = ortc_tiled_in_pieces(kind), plain = kind == ORTC_TILED_PLAIN;
    const int64_t split = ORTC_TILE_BLOCKS * p->taps * p->pieces * ORTC_TILED_TILE_BYTES; /* of a group */
    p->chunk = !plain ? 0
                      : min64(max64(CHUNK_BYTES / split, 1),
                              ortc_tiled_groups_at_once(kind, p->groups, p->taps));
    if ((double)p->band + (double)(p->chunk * split) + (double)(p->ins * p->taps) * BLOCK * BLOCK * 4 >
        SCRATCH_LIMIT)
        return 0;
    /* the last tile of the last row reads further than it is used */
    const size_t behind = ORTC_TILE_PIXELS * 2 * ORTC_TILE_ROW,
                 sums = (plain ? ORTC_TILED_UNITS : 1) * ORTC_TILE_BLOCKS * UNIT * ORTC_TILE_ROW;
    const size_t laid = (size_t)((p->together ? p->bands : p->beside) * p->band) + behind;
    const size_t flags = may_be_odd(p) && p->together ? (size_t)p->bands * sizeof(atomic_int) : 0;
    p->at_laid = sums;
    p->at_split = sums + (p->together ? 0 : laid);
    p->at_weights = p->at_split + (size_t)(p->chunk * split);
    p->scratch = p->at_weights;
    if (pieces) p->scratch += (size_t)(p->ins * p->taps * BLOCK * BLOCK) * sizeof(float);
    p->shared = p->together ? laid + flags : 0;
    p->offset = malloc((size_t)p->taps * sizeof *p->offset);
    if (!p->offset) return 0;
    find_taps(p);
    return 1;
}

void ortc_tiled_plan_deinit(ortc_tiled_plan *p) { free(p->offset); }

/* Whether bands leave out taps beside the image: of floats whose weights are packed. */
static int leaves_out(const ortc_tiled_plan *p)
{
    return !p->stem && p->kind != ORTC_TILED_BYTES && p->kind != ORTC_TILED_PLAIN;
}

/* Clocks as measured (bench_conv on a Xeon with AMX): tiles reach 0.9 of the unit's rate; 64 bytes, of pieces
 * three times that, are laid out in so many; a vector of sums is stored, read and stored again in 5; and
 * weights come from memory as far as they are more than f32's. Pieces begin later, most of all where one loop
 * lays out what another multiplies: on eight threads such small ones of 10 million multiplications lost to
 * fused multiply-adds (60 us and 33) what they gained on one (47 and 85). */
#define BEGIN_PIECES 15e3
#define BEGIN_TOGETHER 80e3
double ortc_tiled_clocks(const ortc_tiled_plan *p)
{
    static const double laid[ORTC_TILED_KINDS] = {5, 8, 20, 20, 8};
    const double pixels = (double)p->bands * (double)p->band / ORTC_TILE_ROW / (double)p->pieces;
    const double vectors = (double)(p->images * p->group * p->outs * p->out_count);
    const double weights = (double)p->group * (double)weights_of(p) / (double)p->pieces;
    const double more = p->kind == ORTC_TILED_PLAIN ? 0 : ((double)p->pieces - 2) / 6;
    const double seen = leaves_out(p) ? ortc_share_seen(&p->e, 0) : 1; /* rows are not counted */
    return product_clocks(p) * seen / 0.9 + laid[p->kind] * pixels + 5 * vectors + weights * more +
           (!ortc_tiled_in_pieces(p->kind) ? 2000
            : p->together                  ? BEGIN_TOGETHER
                                           : BEGIN_PIECES);
}

/* ---- Laying out ---------------------------------------------------------------------------------------- */

band ortc_tiled_band_of(const job *j, int64_t i, char *laid)
{
    const ortc_tiled_plan *p = j->p;
    band b = {.j = j, .laid = laid};
    /* Evenly; of those with a tile more one is the last, whose last tile may have few pixels. */
    const int64_t tiles = ceil_div(p->e.out[2], ORTC_TILE_PIXELS), left = p->segments - i % p->segments;
    b.column = (tiles - dealt(tiles, p->segments, left)) * ORTC_TILE_PIXELS;
    b.pixels = min64((tiles - dealt(tiles, p->segments, left - 1)) * ORTC_TILE_PIXELS, p->e.out[2]) -
               b.column;
    i /= p->segments;
    b.row = i % p->row_bands * p->rows, i /= p->row_bands;
    b.plane = i % p->e.out[0], i /= p->e.out[0];
    b.group = i % p->group, b.image = i / p->group;
    b.rows = min64(p->rows, p->e.out[1] - b.row);
    return b;
}

/* Pixels to pieces, of a type that is widened first, some at a time. As `lay` of tiled_uk.h. */
static int lay_narrow(const ortc_tiled_plan *p, int64_t n, const char *src, int64_t step, int64_t blocks,
                      char *dst)
{
    enum { SOME = 64 };
    float wide[2][SOME * BLOCK];
    const int64_t block = p->in_count * p->pixel;
    int odd = 0;
    for (int64_t i = 0; i < n; i += SOME) {
        const size_t some = (size_t)min64(n - i, SOME);
        for (int64_t k = 0; k < blocks; k++)
            p->floats->widen[p->type](some, src + i * step + k * block, (size_t)(step / p->pixel * BLOCK),
                                      wide[k]);
        odd |= p->uk->lay[p->kind](some, (const char *)wide, BLOCK * sizeof(float), sizeof *wide,
                                   (size_t)blocks, 0, dst + i * ORTC_TILE_ROW, (size_t)p->plane);
    }
    return odd;
}

/* A phase of a row of input, `src` (NULL: of padding), of `blocks` blocks; floats: one block as f32. factor:
 * of these blocks' channels, NULL: 1. */
static int lay_phase(const band *b, const char *src, const float *factor, int64_t phase, int64_t blocks,
                     int floats, char *dst)
{
    const ortc_tiled_plan *p = b->j->p;
    /* of a stem all pixels, one behind the other */
    const int64_t s = p->stem ? 1 : p->e.stride[2], first = b->column * p->e.stride[2] - p->e.pad[2] + phase,
                  all = p->stem ? p->pitch * p->e.stride[2] : p->pitch,
                  step = p->stem ? p->step / p->e.stride[2] : p->step;
    int64_t lo = first >= 0 ? 0 : min64(all, ceil_div(-first, s)),
            hi = p->e.in[2] > first ? min64(all, ceil_div(p->e.in[2] - first, s)) : 0;
    int odd = 0;
    if (!src || hi <= lo) lo = hi = 0;
    for (int64_t piece = 0; piece < (floats ? 1 : p->pieces); piece++) {
        char *to = dst + piece * p->plane;
        memset(to, b->j->a->zero, (size_t)(lo * step));
        memset(to + hi * step, b->j->a->zero, (size_t)((all - hi) * step));
    }
    if (hi <= lo) return 0;
    src += (first + lo * s) * p->pixel, dst += lo * step;
    if (p->stem)
        odd = p->uk->lay_stem[p->kind]((size_t)(hi - lo), src, (size_t)(p->in_count * p->pixel),
                                       (size_t)p->channels, p->flip, dst);
    else if (floats) {
        p->floats->widen[p->type]((size_t)(hi - lo), src, (size_t)(s * BLOCK), (float *)(void *)dst);
        for (int64_t i = 0; factor && i < (hi - lo) * BLOCK; i++)
            ((float *)(void *)dst)[i] *= factor[i % BLOCK];
    } else if (factor)
        odd = p->uk->lay_scaled((size_t)(hi - lo), src, (size_t)(s * p->pixel),
                                (size_t)(p->in_count * p->pixel), (size_t)blocks, factor, dst,
                                (size_t)p->plane);
    else if (ortc_tiled_in_pieces(p->kind) && p->type != ORTC_FLOAT_F32)
        odd = lay_narrow(p, hi - lo, src, s * p->pixel, blocks, dst);
    else
        odd = p->uk->lay[p->kind]((size_t)(hi - lo), src, (size_t)(s * p->pixel),
                                  (size_t)(p->in_count * p->pixel), (size_t)blocks, p->flip, dst,
                                  (size_t)p->plane);
    return odd;
}

/* Groups g0 .. g1-1 (floats: blocks) of a band. */
static int lay_band(const band *b, int64_t g0, int64_t g1, int floats)
{
    const ortc_tiled_plan *p = b->j->p;
    const int64_t per = floats ? 1 : p->per, pieces = floats ? 1 : p->pieces,
                  rows = p->rows_in - (p->rows - b->rows);
    int odd = 0;
    for (int64_t g = g0; g < g1; g++)
        for (int64_t d = 0; d < p->e.kernel[0]; d++) {
            const int64_t plane = b->plane * p->e.stride[0] - p->e.pad[0] + d * p->e.dilation[0];
            const int64_t block = (b->image * p->group + b->group) * (p->stem ? p->channels : p->ins) +
                                  g * per;
            const char *x = (const char *)b->j->a->x +
                            (block * p->e.in[0] + plane) * p->e.in[1] * p->e.in[2] * p->pixel;
            const float *factor = b->j->a->factor ? b->j->a->factor + block * BLOCK : NULL;
            for (int64_t k = 0; k < p->row_phases * rows * p->phases; k++) {
                const int64_t q = k % p->phases, i = k / p->phases % rows, r = k / p->phases / rows;
                const int64_t row = (b->row + i) * p->e.stride[1] + r - p->e.pad[1];
                const int inside = plane >= 0 && plane < p->e.in[0] && row >= 0 && row < p->e.in[1];
                char *to = b->laid + g * pieces * p->plane +
                           (((d * p->row_phases + r) * p->phases + q) * p->rows_in + i) * p->pitch * p->step;
                odd |= lay_phase(b, inside ? x + row * p->e.in[2] * p->pixel : NULL, factor, q,
                                 min64(per, p->ins - g * per), floats, to);
            }
        }
    return odd;
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

int64_t ortc_tiled_unit(const band *b, int64_t u, int64_t *to)
{
    const ortc_tiled_plan *p = b->j->p;
    const int64_t each = p->flat ? p->units : p->units / p->rows, row = u / each, first = u % each * p->unit,
                  end = p->flat         ? run_of(p, b->rows, b->pixels)
                        : row < b->rows ? b->pixels
                                        : 0;
    *to = row * p->pitch + min64(first + p->unit, end);
    return row * p->pitch + first;
}

int ortc_tiled_is_odd(const job *j, int64_t block)
{
    const ortc_tiled_plan *p = j->p;
    int32_t word;
    if (!ortc_tiled_in_pieces(p->kind)) return 0;
    memcpy(&word, (const char *)j->a->w + p->group * weights_of(p) + block * 4, sizeof word);
    return word != 0;
}

/* Tiles of pixels in units u0 .. u1-1. */
static int64_t tiles_in(const band *b, int64_t u0, int64_t u1)
{
    int64_t n = 0, to;
    for (int64_t u = u0; u < u1; u++) {
        const int64_t from = ortc_tiled_unit(b, u, &to);
        if (to > from) n += ceil_div(to - from, 2 * b->j->p->half);
    }
    return n;
}

ortc_tiled_tile ortc_tiled_tile_of(const job *j)
{
    const ortc_tiled_plan *p = j->p;
    return (ortc_tiled_tile){.step = (size_t)p->step,
                             .half = (size_t)p->half,
                             .offset = p->offset,
                             .group = p->pieces * p->plane,
                             .piece = p->plane,
                             .groups = (size_t)p->groups,
                             .taps = (size_t)p->taps,
                             .block = UNIT * ORTC_TILE_ROW};
}

const char *ortc_tiled_weights_at(const job *j, int64_t block, int64_t *step, int64_t *next)
{
    const ortc_tiled_plan *p = j->p;
    return (const char *)j->a->w + block / p->outs * weights_of(p) +
           ortc_tiled_block_at(p->kind, block % p->outs, p->outs, weights_of(p) / p->outs, step, next);
}

int64_t ortc_tiled_run_of_blocks(const job *j, int64_t first, int64_t k, int64_t end)
{
    if (ortc_tiled_is_odd(j, first + k)) return 0;
    return k % 2 || k + 1 == end || ortc_tiled_is_odd(j, first + k + 1) ? 1 : ORTC_TILE_BLOCKS;
}

/* Blocks `block` .. of bands of one unit, `to` pixels each, some of which read weights together. */
static void tiles_beside(const band *b, int64_t count, ortc_tiled_tile *tile, int blocks, int64_t block,
                         int asks, int64_t to, float *sums)
{
    const ortc_tiled_plan *p = b->j->p;
    const int64_t apart = UNIT / p->side / ORTC_TILE_PIXELS * ORTC_TILE_PIXELS * BLOCK,
                  at_once = ortc_tiled_groups_at_once(p->kind, p->groups, p->taps);
    const char *w = tile->w;
    /* the first images wait for weights, the others ask for those behind them */
    const int64_t all = blocks * (weights_of(p) / p->outs) / 64,
                  later = (count - p->side) * ceil_div(to, 2 * p->half) * p->groups * p->taps;
    const char *next = w + all * 64;
    for (int64_t first = 0; first < count; first += p->side) {
        tile->next_lines = first && asks ? (size_t)ceil_div(all, later) : 0;
        const int64_t end = min64(first + p->side, count);
        for (int64_t g = 0; g < p->groups; g += at_once) {
            tile->groups = (size_t)min64(at_once, p->groups - g), tile->more = g > 0;
            tile->w = w + g * p->taps * tile->w_step;
            for (int64_t i = first; i < end; i++)
                for (int64_t q = 0; q < to; q += 2 * p->half) {
                    tile->x = b[i].laid + g * tile->group + q * p->step;
                    tile->sums = sums + (i - first) * apart + q * BLOCK;
                    tile->next = next;
                    next += (int64_t)tile->next_lines * 64 * (int64_t)tile->groups * p->taps;
                    p->uk->run[p->kind](to - q > p->half ? 2 : 1, blocks, tile);
                }
        }
        for (int64_t i = first; i < end; i++)
            ortc_tiled_finish(&b[i], 0, sums + (i - first) * apart, block, blocks, 0, to);
    }
}

/* The taps that a band sees anything under, *first and so many behind it: others are left out, planes of the
 * window, or of one plane its rows. */
static int64_t seen_taps(const band *b, int64_t *first)
{
    const ortc_tiled_plan *p = b->j->p;
    const ortc_window_extents *e = &p->e;
    const int dim = e->kernel[0] > 1 ? 0 : 1;
    int64_t begin, end;
    *first = 0;
    if (!leaves_out(p)) return p->taps;
    const int64_t from = (dim ? b->row : b->plane) * e->stride[dim] - e->pad[dim],
                  last = from + (dim ? b->rows - 1 : 0) * e->stride[dim], each = p->taps / e->kernel[dim];
    ortc_taps_seen(e, dim, from, last, &begin, &end);
    if (begin >= end) return p->taps; /* it sees nothing */
    *first = begin * each;
    return (end - begin) * each;
}

/* Units u0 .. u1-1 of a band, blocks b0 .. b1-1 of its group's output; `count` bands alike have one unit. */
static void tiles(const band *b, int64_t count, int64_t b0, int64_t b1, int64_t u0, int64_t u1, float *sums)
{
    const job *j = b->j;
    const ortc_tiled_plan *p = j->p;
    const int64_t each = weights_of(p) / p->outs, tiles_each = tiles_in(b, u0, u1),
                  bytes = p->kind == ORTC_TILED_BYTES;
    int64_t first;
    const int64_t seen = seen_taps(b, &first), some = count == 1 && seen < p->taps,
                  at_once = some ? 1 : ortc_tiled_groups_at_once(p->kind, p->groups, p->taps);
    ortc_tiled_tile tile = ortc_tiled_tile_of(j);
    if (some) tile.taps = (size_t)seen, tile.offset += first; /* between groups some weights lie unused */
    /* Windows over a small image of bytes: all of its pixels, which lie in L1, beside one block of filters,
     * so that weights, which come from far away, are read once. */
    const int64_t wide = bytes && p->taps > 1 && u1 - u0 == 1 && tiles_each == 2,
                  pixels = (wide ? 4 : 2) * p->half;
    for (int64_t k = b0, n; k < b1; k += n) {
        const int64_t block = b->group * p->outs + k;
        n = wide ? 1 : ortc_tiled_run_of_blocks(j, b->group * p->outs, k, b1);
        if (!n) {
            n = 1;
            continue;
        }
        tile.w = ortc_tiled_weights_at(j, block, &tile.w_step, &tile.w_block);
        const ortc_int_ends *ends = j->a->int_ends;
        const int fixed = ortc_int_ends_has(ends, (size_t)block) &&
                          ortc_int_ends_has(ends, (size_t)(block + n - 1));
        tile.bias = fixed ? NULL : j->a->bias + block * BLOCK;
        /* Many tiles ask for the next blocks' weights, which lie behind; few for these. */
        const int64_t line = ORTC_TILED_TILE_BYTES / 64, lines = ceil_div(line, max64(tiles_each, 1));
        const int heavy = lines > 2;
        tile.next = tile.w + (heavy ? ORTC_TILED_AHEAD : n * each);
        tile.next_lines = !bytes ? 0 : heavy ? (size_t)line : k + n < b1 ? (size_t)lines : 0;
        /* Sums with much to do are finished a tile behind, while the unit is at work on the next. */
        const int behind = fixed && (ends->fixed->back || ends->fixed->adds);
        int64_t last = 0, last_end = 0;
        float *last_sums = sums, *next_sums = sums + ORTC_TILE_PIXELS * BLOCK;
        const char *w = tile.w, *ahead = w;
        for (int64_t u = u0; u < u1; u++) {
            int64_t to;
            const int64_t from = ortc_tiled_unit(b, u, &to);
            if (count > 1) {
                tiles_beside(b, count, &tile, (int)n, block, k + n < p->outs, to, sums);
                continue;
            }
            for (int64_t q = from, g = 0; q < to && g < p->groups;) {
                tile.groups = (size_t)min64(at_once, p->groups - g), tile.more = g > 0;
                tile.w = w + (g * p->taps + (some ? first : 0)) * tile.w_step;
                tile.x = b->laid + g * tile.group + q * p->step;
                tile.sums = behind ? next_sums : sums + (q - from) * BLOCK;
                if (p->ahead) {
                    const int64_t chunk = (int64_t)tile.groups * p->taps * n * ORTC_TILED_TILE_BYTES;
                    if (q == from) ahead = tile.w + chunk;
                    tile.next_lines = q == from ? 0 : p->ahead, tile.next = ahead;
                    ahead += (int64_t)tile.next_lines * 64 * (int64_t)tile.groups * p->taps;
                }
                p->uk->run[p->kind](wide ? 4 : to - q > p->half ? 2 : 1, (int)n, &tile);
                if (!heavy) tile.next += tile.next_lines * 64 * (size_t)(p->groups * p->taps);
                q += pixels;
                if (q >= to && g + at_once < p->groups) q = from, g += at_once;
                if (!behind) continue;
                if (last < last_end) ortc_tiled_finish(b, fixed, last_sums, block, n, last, last_end);
                last = q - pixels, last_end = min64(q, to);
                next_sums = last_sums, last_sums = tile.sums;
            }
            if (!behind && to > from) ortc_tiled_finish(b, fixed, sums, block, n, from, to);
        }
        if (last < last_end) ortc_tiled_finish(b, fixed, last_sums, block, n, last, last_end);
    }
}

/* ---- Tasks --------------------------------------------------------------------------------------------- */

/* [blocks][band] */
static void whole_bands(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_tiled_plan *p = j->p;
    float *sums = scratch, *weights = (float *)(void *)((char *)scratch + p->at_weights);
    p->uk->begin(p->half);
    for (int64_t i = begin; i < end; i++) {
        const int64_t runs = ceil_div(p->bands, p->beside), n = i % runs * p->beside,
                      count = min64(p->beside, p->bands - n), b0 = i / runs * p->blocks,
                      b1 = min64(b0 + p->blocks, p->outs);
        band b[MOST_BESIDE];
        int odd = 0;
        for (int64_t k = 0; k < count; k++) {
            b[k] = ortc_tiled_band_of(j, n + k, (char *)scratch + p->at_laid + k * p->band);
            odd |= lay_band(&b[k], 0, p->groups, 0);
        }
        if (!odd && p->chunk)
            ortc_tiled_plain_band(b, b0, b1, scratch);
        else if (!odd)
            tiles(b, count, b0, b1, 0, p->units, sums);
        if (!odd && !j->weights_odd) continue; /* of 16 bits none is */
        if (!p->stem) lay_band(b, 0, p->ins, 1);
        ortc_tiled_again(b, odd, b0, b1, 0, p->units, sums, weights);
    }
    p->uk->end();
}

/* [band][group]; again, as f32, all groups of the first of them. */
static void lay_all(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_tiled_plan *p = j->p;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i / p->groups, g = i % p->groups;
        const band b = ortc_tiled_band_of(j, n, j->shared + n * p->band);
        if (j->again && g == 0 && !p->stem && (j->weights_odd || j->odd[n])) lay_band(&b, 0, p->ins, 1);
        if (!j->again && lay_band(&b, g, g + 1, 0))
            atomic_store_explicit(&j->odd[n], 1, memory_order_relaxed);
    }
}

/* [blocks][band][units]: neighbours read the same weights. */
static void tiles_of(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_tiled_plan *p = j->p;
    p->uk->begin(p->half);
    for (int64_t i = begin; i < end; i++) {
        const int64_t u = i % p->unit_parts, runs = ceil_div(p->bands, p->beside),
                      n = i / p->unit_parts % runs * p->beside, count = min64(p->beside, p->bands - n),
                      b0 = i / p->unit_parts / runs * p->blocks;
        band b[MOST_BESIDE];
        for (int64_t k = 0; k < count; k++)
            b[k] = ortc_tiled_band_of(j, n + k, j->shared + (n + k) * p->band);
        if (!j->odd || !j->odd[n])
            tiles(b, count, b0, min64(b0 + p->blocks, p->outs), dealt(p->units, p->unit_parts, u),
                  dealt(p->units, p->unit_parts, u + 1), scratch);
    }
    p->uk->end();
}

/* [blocks][band] */
static void again_of(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_tiled_plan *p = j->p;
    float *weights = (float *)(void *)((char *)scratch + p->at_weights);
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i % p->bands, b0 = i / p->bands * p->blocks;
        const band b = ortc_tiled_band_of(j, n, j->shared + n * p->band);
        ortc_tiled_again(&b, j->odd && j->odd[n], b0, min64(b0 + p->blocks, p->outs), 0, p->units, scratch,
                         weights);
    }
}

int32_t ortc_tiled_run(const ortc_tiled_plan *p, const ortc_blocked_args *a, const void *plain, void *space,
                       const ortc_product_threads *threads)
{
    const int64_t lay_grain = ceil_div(16 * 1024, p->pieces * p->plane);
    job j = {
        .p = p, .a = a, .plain = plain, .shared = space, .end = ortc_blocked_end_of(p->floats, p->type, a)};
    j.straight = j.end.straight, j.end.straight = 0;
    for (int64_t i = 0; i < p->group * p->outs; i++) j.weights_odd |= ortc_tiled_is_odd(&j, i);
    if (!p->together) return threads->parallel(threads->context, tasks_of(p), p->grain, whole_bands, &j);
    if (may_be_odd(p)) {
        j.odd = (atomic_int *)(void *)(j.shared + p->bands * p->band + ORTC_TILE_PIXELS * 2 * ORTC_TILE_ROW);
        for (int64_t n = 0; n < p->bands; n++) atomic_init(&j.odd[n], 0);
    }
    for (int pass = 0; pass < 2; pass++) {
        int32_t status = threads->parallel(threads->context, p->bands * p->groups, lay_grain, lay_all, &j);
        if (!status)
            status = threads->parallel(threads->context, j.again ? p->bands * p->block_parts : tasks_of(p),
                                       p->grain,
                                       j.again    ? again_of
                                       : p->chunk ? ortc_tiled_plain_tasks
                                                  : tiles_of,
                                       &j);
        if (status) return status;
        j.again = j.weights_odd;
        for (int64_t n = 0; n < p->bands && j.odd; n++) j.again |= j.odd[n];
        if (!j.again) break;
    }
    return 0;
}
