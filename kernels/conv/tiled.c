/* The loops of tiled.h: planning, laying out, tiles, finishing. */
#include "tiled.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm/integer_tail.h"
#include "kernels/gemm/product_uk.h"

#define BAND_BYTES (384 * 1024)        /* of a task that lays out its own: in L2, beside weights */
#define TOGETHER_BYTES (1536 * 1024.0) /* of what is laid out first */
#define AHEAD 4096                     /* bytes of weights: how far they are asked for ahead */
#define UNIT 128                       /* pixels that are finished together: their sums stay in L1 */
#define ROWS 8                         /* fewer in a band only where they do not fit */
#define TASK_CLOCKS 20e3
#define GRAIN_CLOCKS 8e3
#define SCRATCH_LIMIT (16.0 * 1024 * 1024)
#define WEIGHT_TILE 1024 /* bytes: 16 filters, a group, a tap, a piece */
#define BLOCK ORTC_BLOCK

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t share(int64_t n, int64_t parts, int64_t i) { return n / parts * i + min64(n % parts, i); }

static int64_t blocks_of_group(int kind) { return kind == ORTC_TILED_BYTES ? 4 : 2; }
static int64_t pieces_of(int kind) { return kind == ORTC_TILED_PIECES ? 3 : 1; }
static int64_t clocks_of_tile(int kind) { return kind == ORTC_TILED_PIECES ? 96 : 16; }
/* How many times as long a tile takes with weights from far away and ends. Of pieces the measure
 * of TASK_CLOCKS is products alone. */
static double with_ends(int kind) { return kind == ORTC_TILED_PIECES ? 1 : 4; }
static int64_t most_tasks(int kind) { return kind == ORTC_TILED_PIECES ? 32 : 16; }

static int64_t stem_pixel(int kind) { return ORTC_STEM_CHANNELS * (kind == ORTC_TILED_BYTES ? 1 : 2); }
/* The width of the window with what dilation leaves out; in 64 bytes. */
static int64_t span_of(const ortc_conv_geometry *g)
{
    return (g->kernel[g->spatial - 1] - 1) * g->dilation[g->spatial - 1] + 1;
}
static int64_t stem_columns(const ortc_conv_geometry *g, int kind)
{
    return ceil_div(span_of(g) * stem_pixel(kind), ORTC_TILE_ROW);
}
int ortc_tiled_is_stem(const ortc_conv_geometry *g, int kind)
{
    return kind != ORTC_TILED_PIECES && g->group == 1 && g->channels <= ORTC_STEM_CHANNELS &&
           g->spatial > 0 && g->dilation[g->spatial - 1] <= 64 && g->kernel[g->spatial - 1] <= 64;
}
/* Tiles of weights of a block, and of a group's taps. */
static int64_t taps_of(const ortc_conv_geometry *g, int kind)
{
    return ortc_tiled_is_stem(g, kind) ? g->kernel_count / g->kernel[g->spatial - 1] * stem_columns(g, kind)
                                       : g->kernel_count;
}

#ifdef ORTC_TILES_amx
extern const ortc_tiled_uk ortc_tiled_amx;
#endif
const ortc_tiled_uk *ortc_tiled_uk_get(void)
{
#ifdef ORTC_TILES_amx
    const uint32_t needs = ORTC_CPU_AVX512 | ORTC_CPU_AMX;
    if ((ortc_cpu_features() & needs) == needs) return &ortc_tiled_amx;
#endif
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

static double product_clocks(const ortc_tiled_plan *p)
{
    return (double)p->bands * (double)halves_of(p) * (double)p->outs * (double)p->groups * (double)p->taps *
           (double)clocks_of_tile(p->kind);
}

static void split(ortc_tiled_plan *p)
{
    const int64_t rows = p->e.out[1], columns = p->e.out[2], pairs = ceil_div(p->outs, ORTC_TILE_BLOCKS);
    const double macs = (double)p->images * (double)p->group * (double)p->out_count * (double)p->outs *
                        (double)p->groups * (double)p->taps * (double)clocks_of_tile(p->kind) *
                        with_ends(p->kind) / ORTC_TILE_HALF;
    const int64_t want = (int64_t)fmin(fmax(macs / TASK_CLOCKS, 1), (double)most_tasks(p->kind));
    lay_out(p, rows, columns);
    const int64_t outer = p->bands;
    p->together = (double)p->bands * (double)p->band <= TOGETHER_BYTES && outer < most_tasks(p->kind);
    /* Points: who lays pixels out multiplies them, with weights that all have at hand. */
    const int64_t point = p->taps == 1 && rows == 1 && columns > ORTC_TILE_PIXELS;
    if (point && (double)(p->outs * p->groups * p->pieces * WEIGHT_TILE) <= TOGETHER_BYTES) p->together = 0;
    if (!p->together) {
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
    p->units = p->flat ? ceil_div(run_of(p, p->rows, p->segment), UNIT)
                       : p->rows * ceil_div(p->segment, UNIT);
    p->blocks = p->outs, p->block_parts = 1, p->unit_parts = 1;
    if (p->together) { /* weights are read by few tasks where they are more than what is laid out */
        const int64_t parts = ceil_div(want, p->bands);
        const int heavy = p->outs * p->taps * WEIGHT_TILE * p->groups * p->pieces > p->band;
        const int64_t by_blocks = min64(pairs, heavy ? parts : ceil_div(parts, p->units));
        p->blocks = ceil_div(pairs, by_blocks) * ORTC_TILE_BLOCKS;
        p->block_parts = ceil_div(p->outs, p->blocks);
        p->unit_parts = min64(p->units, ceil_div(parts, p->block_parts));
    }
    const double task = product_clocks(p) * with_ends(p->kind) /
                        (double)(p->bands * p->block_parts * p->unit_parts);
    p->grain = task >= GRAIN_CLOCKS ? 1 : (int64_t)(GRAIN_CLOCKS / (task + 1)) + 1;
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
    return p->kind == ORTC_TILED_PIECES || (p->stem && p->kind != ORTC_TILED_BYTES);
}

int ortc_tiled_plan_init(const ortc_tiled_uk *uk, const ortc_conv_geometry *g, ortc_dtype type, int kind,
                         ortc_tiled_plan *p)
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
    p->per = blocks_of_group(kind), p->groups = ceil_div(p->ins, p->per), p->pieces = pieces_of(kind);
    p->in_count = g->in_count, p->out_count = g->out_count, p->taps = taps_of(g, kind);
    p->pixel = (p->stem ? 1 : BLOCK) * (bytes ? 1 : type == ORTC_F32 ? 4 : 2);
    p->step = p->stem ? p->e.stride[2] * stem_pixel(kind) : ORTC_TILE_ROW;
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
    split(p);
    if ((double)p->band + (double)(p->ins * p->taps) * BLOCK * BLOCK * 4 > SCRATCH_LIMIT) return 0;
    /* the last tile of the last row reads further than it is used */
    const size_t behind = ORTC_TILE_PIXELS * 2 * ORTC_TILE_ROW,
                 sums = ORTC_TILE_BLOCKS * UNIT * ORTC_TILE_ROW;
    const size_t laid = (size_t)((p->together ? p->bands : 1) * p->band) + behind;
    const size_t flags = may_be_odd(p) && p->together ? (size_t)p->bands * sizeof(atomic_int) : 0;
    p->at_weights = sums + (p->together ? 0 : laid);
    p->scratch = p->at_weights;
    if (p->kind == ORTC_TILED_PIECES)
        p->scratch += (size_t)(p->ins * p->taps * BLOCK * BLOCK) * sizeof(float);
    p->shared = p->together ? laid + flags : 0;
    p->offset = malloc((size_t)p->taps * sizeof *p->offset);
    if (!p->offset) return 0;
    find_taps(p);
    return 1;
}

void ortc_tiled_plan_deinit(ortc_tiled_plan *p) { free(p->offset); }

/* Clocks as measured (bench_conv on a Xeon with AMX): tiles reach 0.9 of the unit's rate; 64 bytes, of pieces
 * three times that, are laid out in so many; a vector of sums is stored, read and stored again in 5; and
 * weights come from memory as far as they are more than f32's. Small ones of pieces gain on one thread, and
 * lose more on eight, where something costs each some 50 us: 10 million multiplications 47 and 60 us, by
 * fused multiply-adds 85 and 33. */
#define BEGIN_PIECES 150e3
double ortc_tiled_clocks(const ortc_tiled_plan *p)
{
    static const double laid[ORTC_TILED_KINDS] = {5, 8, 18, 8};
    const double pixels = (double)p->bands * (double)p->band / ORTC_TILE_ROW / (double)p->pieces;
    const double vectors = (double)(p->images * p->group * p->outs * p->out_count);
    const double weights = (double)(p->group * p->outs * p->groups * p->taps * WEIGHT_TILE);
    return product_clocks(p) / 0.9 + laid[p->kind] * pixels + 5 * vectors +
           weights * ((double)p->pieces - 2) / 6 + (p->kind == ORTC_TILED_PIECES ? BEGIN_PIECES : 2000);
}

/* ---- Weights ------------------------------------------------------------------------------------------- */

static int64_t block_bytes(const ortc_conv_geometry *g, int kind)
{
    return ceil_div(g->channels, blocks_of_group(kind) * BLOCK) * taps_of(g, kind) * pieces_of(kind) *
           WEIGHT_TILE;
}
static int64_t words_behind(int kind) /* of a block */
{
    return kind == ORTC_TILED_BYTES ? BLOCK : kind == ORTC_TILED_PIECES ? 1 : 0;
}

size_t ortc_tiled_weight_bytes(const ortc_conv_geometry *g, int kind)
{
    const double each = (double)g->channels * (double)g->kernel_count;
    const int64_t blocks = g->group * ceil_div(g->filters, BLOCK);
    if (each * (double)g->group * (double)(g->filters + BLOCK) > 1e13) return 0;
    return (size_t)(blocks * (block_bytes(g, kind) + words_behind(kind) * 4));
}

/* Where, in bytes, block k of a group with `outs` begins, whose own bytes are `each`; *step: from a tap to
 * the next. */
static int64_t block_at(int64_t k, int64_t outs, int64_t each, int64_t pieces, int64_t *step)
{
    *step = (k / 2 * 2 + 1 < outs ? 2 : 1) * pieces * WEIGHT_TILE;
    return k / 2 * 2 * each + k % 2 * pieces * WEIGHT_TILE;
}

typedef struct fill_arg {
    const ortc_conv_geometry *g;
    ortc_dtype type;
    int kind;
    const char *w;
    char *dst;
} fill_arg;

/* Where in W, from a filter on, k of a tile of weights lies, the tile being of channels from c on and tap t;
 * -1: it is 0. Of pieces channels are those of two blocks in turn, as they are laid out; of a stem k is
 * [pixel][4 channels]. */
static int64_t place_of(const fill_arg *a, int64_t c, int64_t t, int64_t k)
{
    const ortc_conv_geometry *g = a->g;
    const int64_t taps = g->kernel_count;
    if (!ortc_tiled_is_stem(g, a->kind)) {
        c += a->kind == ORTC_TILED_PIECES ? k % 2 * BLOCK + k / 2 : k;
        return c < g->channels ? c * taps + t : -1;
    }
    const int64_t columns = stem_columns(g, a->kind), width = g->kernel[g->spatial - 1],
                  dilation = g->dilation[g->spatial - 1],
                  pixel = t % columns * ORTC_TILE_ROW / stem_pixel(a->kind) + k / ORTC_STEM_CHANNELS;
    c = k % ORTC_STEM_CHANNELS;
    if (c >= g->channels || pixel % dilation || pixel / dilation >= width) return -1;
    return c * taps + t / columns * width + pixel / dilation;
}

/* n filters: a tile of weights, or three. */
static int fill_floats(const fill_arg *a, const char *w, int64_t n, int64_t c, int64_t t, char *dst)
{
    const int64_t size = ortc_product_size(a->type), filter = a->g->channels * a->g->kernel_count;
    float turned[2 * BLOCK][BLOCK] = {{0}};
    for (int64_t k = 0; k < 2 * BLOCK; k++) {
        const int64_t at = place_of(a, c, t, k);
        for (int64_t o = 0; o < n && at >= 0; o++)
            ortc_convert_get()->widen[ortc_float_index(a->type)](1, w + (o * filter + at) * size,
                                                                 &turned[k][o]);
    }
    return ortc_product_moves_select()->pieces->pairs(BLOCK, 2 * BLOCK, turned[0], (size_t)pieces_of(a->kind),
                                                      2 * BLOCK, dst);
}

static void fill_bytes(const fill_arg *a, const char *w, int64_t n, int64_t c, int64_t t, char *dst,
                       int32_t *sums)
{
    const char flip = a->type == ORTC_U8 ? (char)0x80 : 0;
    const int64_t filter = a->g->channels * a->g->kernel_count;
    memset(dst, 0, WEIGHT_TILE);
    for (int64_t k = 0; k < 4 * BLOCK; k++) {
        const int64_t at = place_of(a, c, t, k);
        for (int64_t o = 0; o < n && at >= 0; o++) {
            const char v = (char)(w[o * filter + at] ^ flip);
            dst[(k / 4 * BLOCK + o) * 4 + k % 4] = v;
            sums[o] += (signed char)v;
        }
    }
}

static void fill_blocks(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_arg *a = arg;
    const ortc_conv_geometry *g = a->g;
    const int64_t outs = ceil_div(g->filters, BLOCK), deep = blocks_of_group(a->kind) * BLOCK,
                  taps = g->kernel_count, bytes = block_bytes(g, a->kind), words = words_behind(a->kind),
                  size = a->kind == ORTC_TILED_BYTES ? 1 : ortc_product_size(a->type);
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        const int64_t first = b % outs * BLOCK, n = min64(BLOCK, g->filters - first);
        const char *w = a->w + (b / outs * g->filters + first) * g->channels * taps * size;
        int64_t step;
        char *dst = a->dst + b / outs * outs * bytes +
                    block_at(b % outs, outs, bytes, pieces_of(a->kind), &step);
        int32_t behind[BLOCK] = {0};
        for (int64_t c = 0; c < g->channels; c += deep)
            for (int64_t t = 0; t < taps_of(g, a->kind); t++, dst += step) {
                if (a->kind == ORTC_TILED_BYTES)
                    fill_bytes(a, w, n, c, t, dst, behind);
                else
                    behind[0] |= fill_floats(a, w, n, c, t, dst);
            }
        memcpy(a->dst + g->group * outs * bytes + b * words * 4, behind, (size_t)words * 4);
    }
}

int32_t ortc_tiled_weight_fill(const ortc_conv_geometry *g, ortc_dtype type, int kind, const void *w,
                               void *dst, const ortc_product_threads *threads)
{
    fill_arg a = {g, type, kind, w, dst};
    return threads->parallel(threads->context, g->group * ceil_div(g->filters, BLOCK), 1, fill_blocks, &a);
}

/* ---- Laying out ---------------------------------------------------------------------------------------- */

typedef struct job {
    const ortc_tiled_plan *p;
    const ortc_blocked_args *a;
    const char *plain;
    char *shared;
    atomic_int *odd; /* bands that pieces do not hold: of shared ones */
    ortc_blocked_end end;
    int straight;           /* f32 whose end is a residual and a clip */
    int weights_odd, again; /* again: what pieces do not hold */
    ortc_int_fixed fixed;   /* of bytes, where is_fixed */
    int is_fixed;
} job;

typedef struct band {
    const job *j;
    int64_t image, group, plane, row, rows, column, pixels; /* of output */
    char *laid;
} band;

/* Numbered [image][group][plane][rows][segment]. */
static band band_of(const job *j, int64_t i, char *laid)
{
    const ortc_tiled_plan *p = j->p;
    band b = {.j = j, .laid = laid};
    b.column = i % p->segments * p->segment, i /= p->segments;
    b.row = i % p->row_bands * p->rows, i /= p->row_bands;
    b.plane = i % p->e.out[0], i /= p->e.out[0];
    b.group = i % p->group, b.image = i / p->group;
    b.pixels = min64(p->segment, p->e.out[2] - b.column), b.rows = min64(p->rows, p->e.out[1] - b.row);
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

/* A phase of a row of input, `src` (NULL: of padding), of `blocks` blocks; floats: one block as f32. */
static int lay_phase(const band *b, const char *src, int64_t phase, int64_t blocks, int floats, char *dst)
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
    else if (floats)
        p->floats->widen[p->type]((size_t)(hi - lo), src, (size_t)(s * BLOCK), (float *)(void *)dst);
    else if (p->kind == ORTC_TILED_PIECES && p->type != ORTC_FLOAT_F32)
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
            for (int64_t k = 0; k < p->row_phases * rows * p->phases; k++) {
                const int64_t q = k % p->phases, i = k / p->phases % rows, r = k / p->phases / rows;
                const int64_t row = (b->row + i) * p->e.stride[1] + r - p->e.pad[1];
                const int inside = plane >= 0 && plane < p->e.in[0] && row >= 0 && row < p->e.in[1];
                char *to = b->laid + g * pieces * p->plane +
                           (((d * p->row_phases + r) * p->phases + q) * p->rows_in + i) * p->pitch * p->step;
                odd |= lay_phase(b, inside ? x + row * p->e.in[2] * p->pixel : NULL, q,
                                 min64(per, p->ins - g * per), floats, to);
            }
        }
    return odd;
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

/* Sums of `blocks` blocks of output from `block` on (of all), of pixels from .. to-1 of a band as tiles count
 * them, [block][UNIT][16], to where they belong. over: of bytes, for each block; NULL: otherwise. */
static void finish(const band *b, const ortc_int_over *over, float *sums, int64_t block, int64_t blocks,
                   int64_t from, int64_t to)
{
    const job *j = b->j;
    const ortc_tiled_plan *p = j->p;
    const int whole = p->pitch == p->e.out[2]; /* nothing lies between rows: they are one */
    for (int64_t q = from; q < to;) {
        const int64_t row = whole ? 0 : q / p->pitch, column = q - row * p->pitch;
        if (!whole && column >= b->pixels) {
            q = (row + 1) * p->pitch;
            continue;
        }
        const int64_t n = whole ? to - q : min64(b->pixels - column, to - q);
        for (int64_t k = 0; k < blocks; k++) {
            const int64_t all = block + k, lanes = all % p->outs + 1 < p->outs ? BLOCK : p->lanes;
            const int64_t at = ((b->image * p->group * p->outs + all) * p->out_count +
                                (b->plane * p->e.out[1] + b->row + row) * p->e.out[2] + b->column + column) *
                               BLOCK;
            float *s = sums + (k * UNIT + q - from) * BLOCK;
            if (over) {
                ortc_int_over_run(&over[k], (const int32_t *)(const void *)s, (size_t)n, at,
                                  (char *)j->a->y + at * (j->fixed.again ? 4 : 1));
            } else if (j->straight && lanes == BLOCK) {
                const int clip = j->a->tail->act == ORTC_UK_ACT_CLIP;
                const float *residual = j->a->residual;
                p->uk->clip((size_t)(n * BLOCK), s, residual ? residual + at : NULL,
                            clip ? j->a->tail->lo : -INFINITY, clip ? j->a->tail->hi : INFINITY,
                            (float *)j->a->y + at);
            } else {
                ortc_blocked_finish(&j->end, s, n, all * BLOCK, (size_t)lanes, at);
            }
        }
        q += n;
    }
}

/* Pixels of unit u. */
static int64_t unit_of(const band *b, int64_t u, int64_t *to)
{
    const ortc_tiled_plan *p = b->j->p;
    const int64_t each = p->flat ? p->units : p->units / p->rows, row = u / each, first = u % each * UNIT,
                  end = p->flat         ? run_of(p, b->rows, b->pixels)
                        : row < b->rows ? b->pixels
                                        : 0;
    *to = row * p->pitch + min64(first + UNIT, end);
    return row * p->pitch + first;
}

static int is_odd(const job *j, int64_t block)
{
    const ortc_tiled_plan *p = j->p;
    int32_t word;
    if (p->kind != ORTC_TILED_PIECES) return 0;
    memcpy(&word,
           (const char *)j->a->w + p->group * p->outs * p->groups * p->taps * p->pieces * WEIGHT_TILE +
               block * 4,
           sizeof word);
    return word != 0;
}

/* How sums of n blocks of bytes from `block` on (of all) end, which then begin as 0; 0: as others do. */
static int overs_of(const job *j, int64_t block, int64_t n, ortc_int_over *out)
{
    const ortc_tiled_plan *p = j->p;
    if (!j->is_fixed || ((block + n) % p->outs == 0 && p->lanes < BLOCK)) return 0;
    for (int64_t i = 0; i < n; i++)
        if (!ortc_int_over_init(&j->fixed, j->a->int_tail, j->a->in, (block + i) * BLOCK,
                                (const int32_t *)(const void *)j->a->bias + (block + i) * BLOCK, &out[i]))
            return 0;
    return 1;
}

/* Tiles of pixels in units u0 .. u1-1. */
static int64_t tiles_in(const band *b, int64_t u0, int64_t u1)
{
    int64_t n = 0, to;
    for (int64_t u = u0; u < u1; u++) {
        const int64_t from = unit_of(b, u, &to);
        if (to > from) n += ceil_div(to - from, ORTC_TILE_PIXELS);
    }
    return n;
}

/* Units u0 .. u1-1 of a band, blocks b0 .. b1-1 of its group's output. */
static void tiles(const band *b, int64_t b0, int64_t b1, int64_t u0, int64_t u1, float *sums)
{
    const job *j = b->j;
    const ortc_tiled_plan *p = j->p;
    const int64_t each = p->groups * p->taps * p->pieces * WEIGHT_TILE, tiles_each = tiles_in(b, u0, u1);
    ortc_tiled_tile tile = {.step = (size_t)p->step,
                            .offset = p->offset,
                            .group = p->pieces * p->plane,
                            .piece = p->plane,
                            .groups = (size_t)p->groups,
                            .taps = (size_t)p->taps,
                            .w_block = p->pieces * WEIGHT_TILE,
                            .block = UNIT * ORTC_TILE_ROW};
    for (int64_t k = b0, n; k < b1; k += n) {
        const int64_t block = b->group * p->outs + k;
        n = k % 2 ? 1 : min64(ORTC_TILE_BLOCKS, b1 - k);
        if (is_odd(j, block)) {
            n = 1;
            continue;
        }
        if (n == 2 && is_odd(j, block + 1)) n = 1;
        tile.w = (const char *)j->a->w + b->group * p->outs * each +
                 block_at(k, p->outs, each, p->pieces, &tile.w_step);
        ortc_int_over overs[ORTC_TILE_BLOCKS];
        const ortc_int_over *over = overs_of(j, block, n, overs) ? overs : NULL;
        tile.bias = over ? NULL : j->a->bias + block * BLOCK;
        /* Many tiles ask for the next blocks' weights, which lie behind; few for these. */
        const int64_t lines = ceil_div(n * WEIGHT_TILE / 64, max64(tiles_each, 1));
        const int heavy = lines > 4;
        tile.next = tile.w + (heavy ? AHEAD : n * each);
        tile.next_lines = heavy ? (size_t)(tile.w_step / 64) : k + n < b1 ? (size_t)lines : 0;
        /* Sums with much to do are finished a tile behind, while the unit is at work on the next. */
        const int behind = over && (j->fixed.back || j->fixed.adds);
        int64_t last = 0, last_end = 0;
        float *last_sums = sums, *next_sums = sums + ORTC_TILE_PIXELS * BLOCK;
        for (int64_t u = u0; u < u1; u++) {
            int64_t to;
            const int64_t from = unit_of(b, u, &to);
            for (int64_t q = from; q < to; q += ORTC_TILE_PIXELS) {
                tile.x = b->laid + q * p->step;
                tile.sums = behind ? next_sums : sums + (q - from) * BLOCK;
                p->uk->run[p->kind](to - q > ORTC_TILE_HALF ? 2 : 1, (int)n, &tile);
                if (!heavy) tile.next += tile.next_lines * 64 * (size_t)(p->groups * p->taps);
                if (!behind) continue;
                if (last < last_end) finish(b, over, last_sums, block, n, last, last_end);
                last = q, last_end = min64(q + ORTC_TILE_PIXELS, to);
                next_sums = last_sums, last_sums = tile.sums;
            }
            if (!behind && to > from) finish(b, over, sums, block, n, from, to);
        }
        if (last < last_end) finish(b, over, last_sums, block, n, last, last_end);
    }
}

static int32_t alone(void *scratch, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    (void)grain;
    body(arg, 0, n, scratch);
    return 0;
}

/* The same in f32, of a band laid out so: all of it, or blocks whose weights are odd. */
static void tiles_f32(const band *b, int all, int64_t b0, int64_t b1, int64_t u0, int64_t u1, float *sums,
                      float *weights)
{
    const job *j = b->j;
    const ortc_tiled_plan *p = j->p;
    static const ortc_dtype types[] = {
        [ORTC_FLOAT_F32] = ORTC_F32, [ORTC_FLOAT_F16] = ORTC_F16, [ORTC_FLOAT_BF16] = ORTC_BF16};
    const ortc_dtype type = types[p->type];
    const int64_t filter = p->channels * p->taps * ortc_product_size(type),
                  most = (int64_t)p->floats->most_pixels;
    const ortc_product_threads one = {alone, NULL};
    ortc_blocked_tile tile = {.offset = p->offset,
                              .plane = p->plane / (int64_t)sizeof(float),
                              .groups = (size_t)p->ins,
                              .taps = (size_t)p->taps,
                              .depth = (size_t)((p->channels - 1) % BLOCK + 1),
                              .w = weights};
    for (int64_t k = b0; k < b1; k++) {
        const int64_t block = b->group * p->outs + k, first = b->group * p->filters + k * BLOCK;
        if (!all && !is_odd(j, block)) continue;
        const ortc_conv_geometry some = {.group = 1,
                                         .channels = p->channels,
                                         .filters = min64(BLOCK, p->filters - k * BLOCK),
                                         .kernel_count = p->taps};
        ortc_blocked_weight_fill(&some, type, 0, j->plain + first * filter, weights, &one);
        tile.bias = j->a->bias + block * BLOCK;
        for (int64_t u = u0; u < u1; u++) {
            int64_t to;
            const int64_t from = unit_of(b, u, &to);
            for (int64_t q = from; q < to; q += most) {
                tile.x = (const float *)(const void *)(b->laid + q * ORTC_TILE_ROW);
                tile.y = sums + (q - from) * BLOCK;
                p->floats->dense[p->type]((size_t)min64(most, to - q), 1, &tile);
            }
            if (to > from) finish(b, NULL, sums, block, 1, from, to);
        }
    }
}

static float rounded(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    if (v == v) memcpy(&v, &bits, sizeof v);
    return v;
}

/* One sum of a stem: filter o at a pixel of the band. */
static float sum_of(const band *b, int64_t o, int64_t row, int64_t column)
{
    const job *j = b->j;
    const ortc_tiled_plan *p = j->p;
    const ortc_window_extents *e = &p->e;
    const int64_t taps = e->kernel[0] * e->kernel[1] * e->kernel[2],
                  out[3] = {b->plane, b->row + row, b->column + column};
    float sum = j->a->bias[o];
    for (int64_t c = 0; c < p->channels; c++)
        for (int64_t t = 0; t < taps; t++) {
            const int64_t tap[3] = {t / e->kernel[2] / e->kernel[1], t / e->kernel[2] % e->kernel[1],
                                    t % e->kernel[2]};
            int64_t at = b->image * p->channels + c;
            int inside = 1;
            for (int i = 0; i < 3; i++) {
                const int64_t x = out[i] * e->stride[i] - e->pad[i] + tap[i] * e->dilation[i];
                inside &= x >= 0 && x < e->in[i];
                at = at * e->in[i] + x;
            }
            float v[2];
            if (!inside) continue;
            ortc_convert_get()->widen[p->type](1, (const char *)j->a->x + at * p->pixel, &v[0]);
            ortc_convert_get()->widen[p->type](1, j->plain + ((o * p->channels + c) * taps + t) * p->pixel,
                                               &v[1]);
            sum += rounded(v[0]) * rounded(v[1]);
        }
    return sum;
}

/* A stem by its definition, where a number is not finite. */
static void define(const band *b, int64_t b0, int64_t b1, int64_t u0, int64_t u1, float *sums)
{
    const ortc_tiled_plan *p = b->j->p;
    for (int64_t k = b0; k < b1; k++)
        for (int64_t u = u0; u < u1; u++) {
            int64_t to;
            const int64_t from = unit_of(b, u, &to), lanes = k + 1 < p->outs ? BLOCK : p->lanes;
            for (int64_t i = 0; i < (to - from) * lanes; i++) {
                const int64_t q = from + i / lanes, o = i % lanes;
                if (q % p->pitch < b->pixels)
                    sums[(q - from) * BLOCK + o] = sum_of(b, k * BLOCK + o, q / p->pitch, q % p->pitch);
            }
            if (to > from) finish(b, NULL, sums, k, 1, from, to);
        }
}

/* What tiles do not multiply: all of a band, or blocks whose weights are odd. */
static void tiles_again(const band *b, int all, int64_t b0, int64_t b1, int64_t u0, int64_t u1, float *sums,
                        float *weights)
{
    if (!b->j->p->stem)
        tiles_f32(b, all, b0, b1, u0, u1, sums, weights);
    else if (all)
        define(b, b0, b1, u0, u1, sums);
}

/* ---- Tasks --------------------------------------------------------------------------------------------- */

/* [band] */
static void whole_bands(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_tiled_plan *p = j->p;
    float *sums = scratch, *weights = (float *)(void *)((char *)scratch + p->at_weights);
    p->uk->begin();
    for (int64_t i = begin; i < end; i++) {
        const band b = band_of(j, i, (char *)scratch + ORTC_TILE_BLOCKS * UNIT * ORTC_TILE_ROW);
        const int odd = lay_band(&b, 0, p->groups, 0);
        if (!odd) tiles(&b, 0, p->outs, 0, p->units, sums);
        if (!odd && !j->weights_odd) continue;
        if (!p->stem) lay_band(&b, 0, p->ins, 1);
        tiles_again(&b, odd, 0, p->outs, 0, p->units, sums, weights);
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
        const band b = band_of(j, n, j->shared + n * p->band);
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
    float *weights = (float *)(void *)((char *)scratch + p->at_weights);
    if (!j->again) p->uk->begin();
    for (int64_t i = begin; i < end; i++) {
        const int64_t u = i % p->unit_parts, n = i / p->unit_parts % p->bands,
                      b0 = i / p->unit_parts / p->bands * p->blocks, b1 = min64(b0 + p->blocks, p->outs),
                      u0 = share(p->units, p->unit_parts, u), u1 = share(p->units, p->unit_parts, u + 1);
        const band b = band_of(j, n, j->shared + n * p->band);
        const int odd = j->odd && j->odd[n];
        if (j->again)
            tiles_again(&b, odd, b0, b1, u0, u1, scratch, weights);
        else if (!odd)
            tiles(&b, b0, b1, u0, u1, scratch);
    }
    if (!j->again) p->uk->end();
}

int32_t ortc_tiled_run(const ortc_tiled_plan *p, const ortc_blocked_args *a, const void *plain, void *space,
                       const ortc_product_threads *threads)
{
    const int64_t tasks = p->bands * p->block_parts * p->unit_parts,
                  lay_grain = ceil_div(16 * 1024, p->pieces * p->plane);
    job j = {
        .p = p, .a = a, .plain = plain, .shared = space, .end = ortc_blocked_end_of(p->floats, p->type, a)};
    j.straight = j.end.straight, j.end.straight = 0;
    for (int64_t i = 0; i < p->group * p->outs; i++) j.weights_odd |= is_odd(&j, i);
    const int64_t *kernel = p->e.kernel; /* of which sums are below 2^30 */
    j.is_fixed = p->kind == ORTC_TILED_BYTES &&
                 p->channels * kernel[0] * kernel[1] * kernel[2] < (1 << 30) / (255 * 128) &&
                 ortc_int_fixed_init(a->int_tail, a->in, &j.fixed);
    if (!p->together) return threads->parallel(threads->context, p->bands, p->grain, whole_bands, &j);
    if (may_be_odd(p)) {
        j.odd = (atomic_int *)(void *)(j.shared + p->bands * p->band + ORTC_TILE_PIXELS * 2 * ORTC_TILE_ROW);
        for (int64_t n = 0; n < p->bands; n++) atomic_init(&j.odd[n], 0);
    }
    for (int pass = 0; pass < 2; pass++) {
        int32_t status = threads->parallel(threads->context, p->bands * p->groups, lay_grain, lay_all, &j);
        if (!status) status = threads->parallel(threads->context, tasks, p->grain, tiles_of, &j);
        if (status) return status;
        j.again = j.weights_odd;
        for (int64_t n = 0; n < p->bands && j.odd; n++) j.again |= j.odd[n];
        if (!j.again) break;
    }
    return 0;
}
