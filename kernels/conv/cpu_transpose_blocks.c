/* kernels/conv/cpu_transpose_blocks.c: ConvTranspose on the cpu provider of values in blocks of 16 channels
 * (kernels/common/blocks.h). An element of Y is at one of as many places as the strides multiplied, from a
 * position on, and at each place positions are convolved with a window of its own, every stride-th element
 * of the kernel, turned around (blocked.h). Each place is a part of the work; or, where the kernel is a
 * multiple of the stride, so that all have as many taps, all of them are one part: a convolution of places
 * times filters. A band of a part's positions goes into the workspace, in L2, and is put where it belongs,
 * less what padding cuts off. W is constant and packed once, a place's filters behind those of the one
 * before. Few filters, of one part, make a Y that is plain.
 *
 * Where windows lie side by side (the kernel is the stride), positions are X's, and a convolution of one
 * pixel makes one long row of them.
 *
 * conv_transpose.rounded is the same of f32 that is rounded to bf16, where the device says so. Other
 * windows, groups and plain values go by cpu_transpose.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blocked.h"
#include "cpu.h"
#include "kernels/common/counts.h"
#include "kernels/common/cpu_device.h"
#include "kernels/gemm/product_uk.h"
#include "tiled.h"
#include "cpu_transpose.h"

#define BAND_BYTES (1024 * 1024) /* of results at a time, or as many as of weights, which a band reads */
#define MOVED 8                  /* clocks of a vector that is stored, read and stored again, */
#define PICKED 4                 /* and of some neighbouring lanes of one */
#define BEGUN 2000               /* clocks of a band: loops that threads share */
#define GRAIN_PIXELS 2048
#define PIECE 512     /* positions of a task, of one dim */
#define FEW_FILTERS 8 /* of which blocks of Y would be padding for the most part */
#define MAX_SPATIAL 3
#define MOST_PARTS 16
#define GRAIN_WEIGHTS 16384

enum { NO_TILES = -1 };

typedef struct pack_param {
    int64_t channels, filters, type, kind; /* kind: ORTC_TILED_*, or NO_TILES */
    int64_t apart;                         /* each place is a part */
    int64_t spatial, kernel[MAX_SPATIAL], stride[MAX_SPATIAL];
} pack_param;

static int64_t places_of(const pack_param *p)
{
    int64_t n = 1;
    for (int64_t i = 0; i < p->spatial; i++) n *= p->stride[i];
    return n;
}
static int64_t parts_of(const pack_param *p) { return p->apart ? places_of(p) : 1; }

/* The first place of a part in each dim. */
static void place_of(const pack_param *p, int64_t part, int64_t *place)
{
    for (int64_t i = p->spatial - 1; i >= 0; i--) {
        place[i] = p->apart ? part % p->stride[i] : 0;
        part /= p->stride[i];
    }
}

/* Taps of a place: every stride-th of the kernel, from it on. */
static int64_t taps_of(const pack_param *p, int64_t i, int64_t place)
{
    return ceil_div(p->kernel[i] - place, p->stride[i]);
}

/* The convolution that gives a part, but for its extents; all places with one tap have one dim. */
static ortc_conv_geometry windows_of(const pack_param *p, int64_t part)
{
    ortc_conv_geometry g = {.spatial = 1,
                            .kernel = {1},
                            .stride = {1},
                            .dilation = {1},
                            .images = 1,
                            .group = 1,
                            .channels = p->channels,
                            .filters = p->apart ? p->filters : places_of(p) * p->filters,
                            .kernel_count = 1};
    int64_t place[MAX_SPATIAL];
    place_of(p, part, place);
    for (int64_t i = 0; i < p->spatial; i++) g.kernel_count *= taps_of(p, i, place[i]);
    if (g.kernel_count == 1 && !p->apart) return g;
    g.spatial = (int32_t)p->spatial;
    for (int32_t i = 0; i < g.spatial; i++) {
        g.kernel[i] = taps_of(p, i, place[i]);
        g.stride[i] = g.dilation[i] = 1;
    }
    return g;
}

static int in_pieces(int64_t kind) { return kind == ORTC_TILED_PIECES || kind == ORTC_TILED_PLAIN; }

static size_t weight_bytes(const ortc_conv_geometry *g, const pack_param *p)
{
    const size_t bytes = p->kind == NO_TILES ? ortc_blocked_weight_bytes(g, (ortc_dtype)p->type, 0, NULL)
                                             : ortc_tiled_weight_bytes(g, (int)p->kind);
    return (bytes + 63) / 64 * 64;
}

static int64_t weights_of(const ortc_conv_geometry *g) { return g->filters * g->channels * g->kernel_count; }

/* Bytes of packed weights, a part behind the other. Of pieces W as convolutions have it is behind all of them
 * (ortc_tiled_run). */
static size_t packed_bytes(const pack_param *p)
{
    size_t bytes = 0;
    for (int64_t part = 0; part < parts_of(p); part++) {
        const ortc_conv_geometry g = windows_of(p, part);
        bytes += weight_bytes(&g, p);
    }
    return bytes;
}

static int64_t kernel_of(const pack_param *p)
{
    int64_t n = 1;
    for (int64_t i = 0; i < p->spatial; i++) n *= p->kernel[i];
    return n;
}

static size_t turned_bytes(const pack_param *p)
{
    return (size_t)(kernel_of(p) * p->filters * p->channels * ortc_product_size((ortc_dtype)p->type));
}

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const pack_param *p = param;
    (void)src;
    return packed_bytes(p) + (in_pieces(p->kind) ? turned_bytes(p) : 0);
}

/* Where an element of the kernel is in [place][filter][channels][taps], of the first filter and channel, and
 * how far it is from there to the next channel's. */
typedef struct spot {
    int64_t at, step;
} spot;

static void find_spots(const pack_param *p, spot *spots)
{
    for (int64_t k = 0; k < kernel_of(p); k++) {
        int64_t before = 0, tap = 0, taps = 1, inner = 1, rest = k; /* before: taps of all places before */
        for (int64_t i = p->spatial - 1; i >= 0; i--) {
            const int64_t kernel = p->kernel[i], stride = p->stride[i], own = rest % kernel,
                          place = own % stride, n = taps_of(p, i, place);
            before = (place * (kernel / stride) + min64(place, kernel % stride)) * inner + n * before;
            tap += (n - 1 - own / stride) * taps;
            taps *= n, inner *= kernel, rest /= kernel;
        }
        spots[k] = (spot){before * p->filters * p->channels + tap, taps};
    }
}

typedef struct turn_job {
    const pack_param *p;
    const char *from;
    char *to;
    const spot *spots; /* of each element of the kernel */
    int64_t kernel, size;
} turn_job;

/* Some channels of each filter: lines that are often a power of two apart, so that more of them would not
 * stay in L1. */
#define TURN(type) \
    for (int64_t m = begin; m < end; m++) { \
        const any_##type *from = (const any_##type *)j->from + (first * filters + m) * kernel; \
        for (int64_t k = 0; k < kernel; k++) { \
            const int64_t step = j->spots[k].step; \
            any_##type *to = (any_##type *)j->to + j->spots[k].at + (m * channels + first) * step; \
            for (int64_t c = 0; c < n; c++) to[c * step] = from[c * filters * kernel + k]; \
        } \
    }
static void turn_filters(void *arg, int64_t begin, int64_t end, void *scratch)
{
    enum { TOGETHER = 8 };
    typedef uint32_t any_32 __attribute__((aligned(1), may_alias));
    typedef uint16_t any_16 __attribute__((aligned(1), may_alias));
    const turn_job *j = arg;
    const int64_t channels = j->p->channels, filters = j->p->filters, kernel = j->kernel;
    (void)scratch;
    for (int64_t first = 0, n; first < channels; first += n) {
        n = min64(TOGETHER, channels - first);
        if (j->size == 4)
            TURN(32)
        else
            TURN(16)
    }
}

/* W [channels][filters][kernel] as [place][filter][channels][taps]. */
static ortc_status turn(const pack_param *p, const char *from, char *to, ortc_call *call)
{
    const int64_t kernel = kernel_of(p);
    spot *spots = malloc((size_t)kernel * sizeof *spots);
    if (!spots) return ortc_call_fail(call, ORTC_OUT_OF_MEMORY, "no memory to pack W");
    find_spots(p, spots);
    turn_job j = {p, from, to, spots, kernel, ortc_product_size((ortc_dtype)p->type)};
    const ortc_status status = ortc_parallel(call, p->filters, GRAIN_WEIGHTS / (kernel * p->channels) + 1,
                                             turn_filters, &j);
    free(spots);
    return status;
}

static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const pack_param *p = param;
    const ortc_product_threads threads = {ortc_call_parallel, call};
    const ortc_dtype t = (ortc_dtype)p->type;
    char *own = in_pieces(p->kind) ? NULL : malloc(turned_bytes(p)),
         *turned = own ? own : (char *)dst + packed_bytes(p), *to = dst;
    if (!own && !in_pieces(p->kind)) return ortc_call_fail(call, ORTC_OUT_OF_MEMORY, "no memory to pack W");
    int32_t status = turn(p, src->data, turned, call);
    const char *from = turned;
    for (int64_t part = 0; !status && part < parts_of(p); part++) {
        const ortc_conv_geometry g = windows_of(p, part);
        status = p->kind == NO_TILES ? ortc_blocked_weight_fill(&g, t, 0, from, to, &threads)
                                     : ortc_tiled_weight_fill(&g, t, (int)p->kind, from, to, &threads);
        from += weights_of(&g) * ortc_product_size(t), to += weight_bytes(&g, p);
    }
    free(own);
    return status;
}

static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.conv_transpose.blocks", pack_bytes,
                                     pack_fill, ORTC_PACKING_PASSES};

/* ---- Choose and plan ----------------------------------------------------------------------------------- */

typedef struct part {
    int64_t places, results;   /* places; blocks of all their results */
    int64_t span[MAX_SPATIAL]; /* places of each dim */
    /* Positions: so many; the first one's first place is so far before Y, below 0: behind its begin. */
    int64_t count[MAX_SPATIAL], cut[MAX_SPATIAL];
    int64_t all, unit, band;    /* positions: all; a band is some units; */
    int64_t row, begin;         /* of so many, which are one in this dim of the convolution, */
    int32_t along;              /* where X begins so far behind them */
    ortc_conv_geometry windows; /* of a band */
    ortc_blocked_plan dense;
    ortc_tiled_plan tiled;
    size_t at_weights, at_plain; /* in the packed W: its own; W as a convolution has it, of pieces */
} part;

typedef struct blocks_plan {
    ortc_dtype type, result;            /* of X; of Y */
    int32_t spatial, plain;             /* plain: Y is */
    int64_t images, ins, outs, filters; /* in blocks: of X, of Y */
    int64_t in[MAX_SPATIAL], out[MAX_SPATIAL], stride[MAX_SPATIAL];
    int64_t in_count, out_count;
    pack_param param; /* its kind is that of all parts */
    /* In the workspace, behind the bias: [block of results][position of the band][16], and what tiles
     * share. */
    size_t at_results, at_shared;
    const ortc_packed *packed;
    int64_t opened, parts; /* opened: so many have plans of their convolution */
    part part[];
} blocks_plan;

static void close_plan(blocks_plan *b)
{
    for (int64_t i = 0; i < b->opened; i++) {
        if (b->param.kind == NO_TILES)
            ortc_blocked_plan_deinit(&b->part[i].dense);
        else
            ortc_tiled_plan_deinit(&b->part[i].tiled);
    }
    b->opened = 0;
}

static void free_plan(blocks_plan *b)
{
    if (b) close_plan(b);
    free(b);
}

static int open_tiles(blocks_plan *b, int64_t kind)
{
    b->param.kind = kind;
    for (part *p = b->part; p < b->part + b->parts; p++) {
        if (!ortc_tiled_plan_init(ortc_tiled_uk_get((int)kind), &p->windows, b->type, (int)kind, 0,
                                  &p->tiled))
            break;
        b->opened++;
        if (p->tiled.stem) break;
    }
    if (b->opened == b->parts && !b->part[b->parts - 1].tiled.stem) return 1;
    close_plan(b);
    return 0;
}

static int open_blocked(blocks_plan *b)
{
    b->param.kind = NO_TILES;
    for (part *p = b->part; p < b->part + b->parts; p++, b->opened++)
        if (!ortc_blocked_plan_init(&p->windows, b->type, 0, 0, &p->dense)) {
            close_plan(b);
            return 0;
        }
    return 1;
}

/* Tiles where there are some and they are quicker; 0: neither can. clocks: of all that is multiplied. */
static int open_plan(blocks_plan *b, int rounds, double *clocks)
{
    const int must = b->result != b->type; /* the others store X's type */
    double floats = INFINITY, tiles = 0;
    if (!must && open_blocked(b)) {
        floats = 0;
        for (const part *p = b->part; p < b->part + b->parts; p++)
            floats += (double)p->all / (double)p->band *
                      ortc_conv_dense_clocks(&p->windows, b->type, &p->dense);
        close_plan(b);
    }
    *clocks = floats;
    if (open_tiles(b, b->type == ORTC_BF16 ? ORTC_TILED_BF16
                      : rounds             ? ORTC_TILED_ROUNDED
                                           : ortc_tiled_kind(&b->part[0].windows, ORTC_TILED_PIECES))) {
        for (const part *p = b->part; p < b->part + b->parts; p++)
            tiles += (double)p->all / (double)p->band * ortc_tiled_clocks(&p->tiled);
        if (tiles < floats) {
            *clocks = tiles;
            return 1;
        }
        close_plan(b);
    }
    return floats < INFINITY && open_blocked(b);
}

/* Positions of each dim, and the convolution's extents there; NULL, or why not. */
static const char *read_positions(const ortc_transpose *t, const blocks_plan *b, int64_t index, part *p)
{
    ortc_transpose own = *t;
    ortc_conv_geometry *g = &p->windows;
    const int side = g->kernel_count == 1 && !b->param.apart; /* windows lie side by side */
    int64_t place[MAX_SPATIAL];
    place_of(&b->param, index, place);
    p->places = p->all = 1;
    for (int32_t i = 0; i < b->spatial; i++) {
        const int64_t kernel = b->param.kernel[i], stride = b->stride[i],
                      taps = taps_of(&b->param, i, place[i]);
        own.window.kernel[i] = kernel;
        const int64_t pad = ortc_transpose_pad(&own, i, b->in[i], b->out[i]);
        if (pad < 0 || pad >= kernel) return "padding cuts off whole windows, or is negative";
        const int64_t first = b->param.apart ? pad > place[i] ? ceil_div(pad - place[i], stride) : 0
                                             : pad / stride;
        p->span[i] = b->param.apart ? 1 : stride;
        p->cut[i] = pad - place[i] - first * stride;
        p->count[i] = b->out[i] + p->cut[i] > 0 ? (b->out[i] - 1 + p->cut[i]) / stride + 1 : 0;
        if (p->count[i] == 0 || first + p->count[i] > b->in[i] + taps - 1)
            return "some places see nothing of X";
        if (side && (first > 0 || p->count[i] != b->in[i]))
            return "windows of one tap do not begin and end with X";
        if (!side) g->in[i] = b->in[i], g->out[i] = p->count[i], g->pad[i] = taps - 1 - first;
        p->places *= p->span[i], p->all *= p->count[i];
    }
    const int64_t last = p->count[b->spatial - 1];
    p->unit = b->spatial == 1 ? 1 : side ? last : p->all / p->count[0];
    p->row = side ? 1 : p->unit;
    p->along = side ? 2 : MAX_SPATIAL - b->spatial;
    p->results = ortc_blocks_of(p->places * b->filters);
    return NULL;
}

/* Of how many positions a band is, and what convolution. That is planned for the band that sees most beside
 * X: the first one, or, where that sees nothing there, the last. */
static void cut_bands(const blocks_plan *b, part *p)
{
    ortc_conv_geometry *g = &p->windows;
    const int64_t bytes = max64(weights_of(g) * 4, BAND_BYTES), line = p->results * ORTC_BLOCK * 4 * p->unit,
                  units = max64(bytes / line, 1);
    p->band = min64(p->unit == 1 ? ceil_div(units, PIECE) * PIECE : units * p->unit, p->all);
    if (p->along == 2 && b->spatial > 1) /* side by side */
        g->in[0] = b->in_count, g->out[0] = p->band;
    else
        g->out[0] = p->band / p->unit;
    g->in_count = b->in_count, g->out_count = p->band;
    p->begin = g->pad[0];
    if (p->begin <= 0) g->pad[0] -= (p->all - p->band) / p->row;
}

/* NULL, or why it is not for these shapes. */
static const char *read_param(const ortc_transpose *t, int apart, const ortc_view *x, const ortc_view *w,
                              pack_param *p)
{
    const int32_t spatial = x->rank - 2;
    *p = (pack_param){x->dims[1], w->dims[1], (int64_t)x->dtype, NO_TILES, apart, spatial, {0}, {0}};
    if (t->group != 1 || spatial < 1 || spatial > MAX_SPATIAL)
        return "there are groups, or more than three dims";
    for (int32_t i = 0; i < spatial; i++) {
        p->stride[i] = t->window.stride[i], p->kernel[i] = w->dims[i + 2];
        if (t->window.dilation[i] != 1 || p->kernel[i] < p->stride[i])
            return "the window is less than the stride, or dilated";
        if (!apart && p->kernel[i] % p->stride[i]) return "the window is no multiple of the stride";
    }
    if (apart && (p->filters < FEW_FILTERS || places_of(p) > MOST_PARTS))
        return "there are few filters, or many places";
    return NULL;
}

/* A plan, to be freed by the caller; NULL: there is none, and *why (no memory, where it is NULL). rounds: f32
 * to bf16. */
static blocks_plan *make_plan(const ortc_transpose *t, int rounds, int apart, const ortc_view *in,
                              const ortc_view *y, double *clocks, const char **why)
{
    const ortc_view *x = &in[0], *w = &in[1];
    const int32_t spatial = x->rank - 2;
    pack_param param;
    *why = read_param(t, apart, x, w, &param);
    if (!*why && (ortc_view_count(y) == 0 || ortc_view_count(x) == 0)) *why = "there is nothing to do";
    if (*why) return NULL;
    const size_t parts = (size_t)parts_of(&param);
    blocks_plan *b = calloc(1, sizeof *b + parts * sizeof *b->part);
    if (!b) return NULL;
    *b = (blocks_plan){.type = x->dtype,
                       .result = y->dtype,
                       .spatial = spatial,
                       .plain = w->dims[1] < FEW_FILTERS,
                       .images = x->dims[0],
                       .ins = ortc_blocks_of(x->dims[1]),
                       .outs = ortc_blocks_of(w->dims[1]),
                       .filters = w->dims[1],
                       .in_count = 1,
                       .out_count = 1,
                       .param = param,
                       .parts = (int64_t)parts};
    for (int32_t i = 0; i < spatial; i++) {
        b->in[i] = x->dims[i + 2], b->out[i] = y->dims[i + 2], b->stride[i] = param.stride[i];
        b->in_count *= b->in[i], b->out_count *= b->out[i];
    }
    for (int64_t i = 0; !*why && i < b->parts; i++) {
        b->part[i].windows = windows_of(&param, i);
        *why = read_positions(t, b, i, &b->part[i]);
        if (!*why) cut_bands(b, &b->part[i]);
    }
    if (!*why && !open_plan(b, rounds, clocks)) *why = "it is too large, or its result is of another type";
    if (*why) {
        free(b);
        return NULL;
    }
    const int64_t neighbours = b->filters == 1 ? b->stride[spatial - 1] : 1; /* of a plain Y */
    for (const part *p = b->part; p < b->part + b->parts; p++)
        *clocks += (double)(b->plain ? p->places * b->filters / neighbours * PICKED : p->results * MOVED) *
                       (double)p->all +
                   BEGUN * (double)ceil_div(p->all, p->band);
    *clocks *= (double)b->images;
    return b;
}

/* All places at once or each for itself, whichever is reckoned quicker. */
static blocks_plan *make_best(const ortc_transpose *t, int rounds, const ortc_view *in, const ortc_view *y,
                              double *clocks, const char **why)
{
    double other;
    const char *not_apart;
    blocks_plan *b = make_plan(t, rounds, 0, in, y, clocks, why),
                *apart = make_plan(t, rounds, 1, in, y, &other, &not_apart);
    if (!apart || (b && *clocks <= other)) {
        free_plan(apart);
        return b;
    }
    free_plan(b);
    *clocks = other;
    return apart;
}

static ortc_status choose_as(int rounds, const void *state, const ortc_question *q, ortc_offer *o,
                             ortc_why *why)
{
    const ortc_layout l = ortc_blocks();
    const char *wrong;
    if (q->layout != ORTC_ANY_LAYOUT && q->layout != l) return ortc_no(why, "it is for blocks of channels");
    if (!(q->in[1].flags & ORTC_VIEW_CONST)) return ortc_no(why, "W is not constant");
    blocks_plan *b = make_best(&((const ortc_conv_transpose_state *)state)->t, rounds, q->in, &q->out[0],
                               &o->clocks, &wrong);
    if (!b) return ortc_no(why, "%s", wrong ? wrong : "there is no memory");
    o->form = ORTC_TRANSPOSE_FORM | (uint64_t)(b->param.kind + 3) << b->param.apart * 8;
    o->in[0] = l, o->out[0] = b->plain ? ORTC_PLAIN : l;
    free_plan(b);
    return ORTC_OK;
}

static ortc_status plan_as(int rounds, const void *state, ortc_plan *p, void **out)
{
    const char *wrong;
    double clocks;
    blocks_plan *b = make_best(&((const ortc_conv_transpose_state *)state)->t, rounds, p->in, &p->out[0],
                               &clocks, &wrong);
    if (!b) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    const ortc_status status = ortc_plan_pack(p, 1, &packing, &b->param, sizeof b->param, &b->packed);
    if (status) {
        free_plan(b);
        return status;
    }
    const int on_tiles = b->param.kind != NO_TILES;
    const int64_t size = ortc_product_size(b->type);
    size_t at_weights = 0, at_plain = packed_bytes(&b->param), results = 0, bias = 0, shared = 0, scratch = 0;
    double macs = 0;
    for (part *a = b->part; a < b->part + b->parts; a++) {
        a->at_weights = at_weights, a->at_plain = at_plain;
        at_weights += weight_bytes(&a->windows, &b->param);
        at_plain += (size_t)(weights_of(&a->windows) * size);
        const size_t own = on_tiles ? a->tiled.scratch : a->dense.scratch,
                     lanes = (size_t)(a->results * ORTC_BLOCK);
        if (bias < lanes * sizeof(float)) bias = lanes * sizeof(float);
        if (results < lanes * (size_t)a->band) results = lanes * (size_t)a->band;
        if (scratch < own) scratch = own;
        if (on_tiles && shared < a->tiled.shared) shared = a->tiled.shared;
        macs += (double)b->images * (double)b->in_count * (double)weights_of(&a->windows);
    }
    b->at_results = bias;
    b->at_shared = (bias + results * (size_t)ortc_product_size(b->result) + 63) / 64 * 64;
    ortc_plan_workspace(p, b->at_shared + shared, scratch);
    ortc_plan_cost(p, 2 * macs, (double)(b->images * b->filters) * (double)b->out_count * (double)size);
    *out = b;
    return ORTC_OK;
}

static void release_plan(const void *state, void *pstate)
{
    (void)state;
    free_plan(pstate);
}

/* ---- The run ------------------------------------------------------------------------------------------- */

typedef struct place_job {
    const blocks_plan *p;
    const part *part;
    const char *results;
    char *y;               /* of the image */
    int64_t first;         /* position of the band */
    int64_t piece, pieces; /* of the band: positions that are neighbours in the last dim */
    const ortc_tail_spec *tail;
    const ortc_view *in;
} place_job;

/* Results are mostly padding where Y is plain: then the epilogue is about rows of it. */
static int ends_in_rows(const blocks_plan *p) { return p->plain && p->result == ORTC_F32; }

/* `lanes` filters from the first of all places on, of n positions of the band, to every `step` bytes of y. */
static void put(const place_job *j, int64_t filter, int64_t lanes, int64_t at, int64_t n, char *y,
                size_t step)
{
    const int64_t size = ortc_product_size(j->p->result), band = j->part->band;
    for (int64_t lane = filter % ORTC_BLOCK, some; lanes > 0; lanes -= some, filter += some, lane = 0) {
        const char *x = j->results + ((filter / ORTC_BLOCK * band + at) * ORTC_BLOCK + lane) * size;
        some = ORTC_BLOCK - lane < lanes ? ORTC_BLOCK - lane : lanes;
        ortc_block_move(y, step, x, (size_t)(ORTC_BLOCK * size), n, (size_t)(some * size));
        y += some * size;
    }
}

/* Where in an image of Y the row begins that a row of positions gives to a row of places; -1: cut off. */
static int64_t row_of(const blocks_plan *p, const part *a, int64_t positions, int64_t places)
{
    const int32_t last = p->spatial - 1;
    int64_t at = 0, step = p->out[last];
    for (int32_t d = last - 1; d >= 0; d--) {
        const int64_t o = positions % a->count[d] * p->stride[d] + places % a->span[d] - a->cut[d];
        if (o < 0 || o >= p->out[d]) return -1;
        at += o * step;
        positions /= a->count[d], places /= a->span[d], step *= p->out[d];
    }
    return at;
}

/* What n positions from the band's `at` on, and x of the last dim, give to a row of places and of Y. */
static void put_row(const place_job *j, int64_t block, int64_t places, int64_t at, int64_t x, int64_t n,
                    char *y)
{
    const blocks_plan *p = j->p;
    const int32_t last = p->spatial - 1;
    const int64_t stride = p->stride[last], span = j->part->span[last], out = p->out[last],
                  size = ortc_product_size(p->result), lane = p->plain ? 1 : ORTC_BLOCK, pixel = lane * size,
                  lanes = p->plain ? 1 : ortc_block_lanes(block, p->filters);
    const int64_t begin = x * stride - j->part->cut[last],
                  end = begin + n * stride; /* of Y, less what is cut off */
    const int64_t from = begin > 0 ? begin : 0, to = end < out ? end : out;
    if (p->plain && p->filters == 1 && from == begin && to == end) { /* places are neighbours in both */
        put(j, places * stride, stride, at, n, y + begin * pixel, (size_t)(stride * pixel));
    } else {
        for (int64_t q = 0; q < span; q++) {
            const int64_t before = begin + q < 0, behind = end - stride + q >= out,
                          some = n - before - behind;
            char *row = y + (begin + q + before * stride) * pixel;
            if (some <= 0) continue;
            put(j, (places * span + q) * p->filters + block * lane, lanes, at + before, some, row,
                (size_t)(stride * pixel));
            if (lanes < lane)
                ortc_block_move(row + size * lanes, (size_t)(stride * pixel), NULL, 0, some,
                                (size_t)(size * (lane - lanes)));
        }
    }
    if (ends_in_rows(p))
        ortc_conv_transpose_end(j->tail, j->in, (float *)(void *)(y + from * pixel), to - from);
}

/* [block, or filter of a plain Y][piece of the band] */
static void put_pieces(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const place_job *j = arg;
    const blocks_plan *p = j->p;
    const part *a = j->part;
    const int64_t width = a->count[p->spatial - 1], rows = a->places / a->span[p->spatial - 1],
                  pixel = (p->plain ? 1 : ORTC_BLOCK) * ortc_product_size(p->result);
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t block = i / j->pieces, at = i % j->pieces * j->piece, position = j->first + at,
                      n = a->band - at < j->piece ? a->band - at : j->piece;
        for (int64_t row = 0; row < rows; row++) {
            const int64_t y = row_of(p, a, position / width, row);
            if (y >= 0)
                put_row(j, block, row, at, position % width, n, j->y + (block * p->out_count + y) * pixel);
        }
    }
}

/* The results of a band that begins at position `first` of an image, x: padding moves along. */
static int32_t run_band(const blocks_plan *p, const part *a, const ortc_tail_spec *tail, const char *x,
                        int64_t first, const ortc_call *c, const ortc_product_threads *threads)
{
    const ortc_tail_spec none = {.alpha = 1, .bias = -1, .residual = -1, .widens = tail->widens};
    char *workspace = c->workspace;
    const char *packed = p->packed->data;
    const int64_t pad = a->begin - first / a->row;
    const ortc_blocked_args args = {.x = x,
                                    .w = packed + a->at_weights,
                                    .bias = (const float *)(void *)workspace,
                                    .y = workspace + p->at_results,
                                    .tail = ends_in_rows(p) ? &none : tail,
                                    .in = c->in};
    if (p->param.kind != NO_TILES) {
        ortc_tiled_plan band = a->tiled;
        band.e.pad[a->along] = pad;
        return ortc_tiled_run(&band, &args, packed + a->at_plain, workspace + p->at_shared, threads);
    }
    ortc_blocked_plan band = a->dense;
    band.e.pad[a->along] = pad;
    return ortc_blocked_run(&band, &args, threads);
}

/* A part of an image, x and job->y. */
static ortc_status run_part(place_job *job, const char *x, ortc_call *c)
{
    const blocks_plan *p = job->p;
    const part *a = job->part;
    const ortc_product_threads threads = {ortc_call_parallel, c};
    job->piece = p->spatial == 1 ? min64(a->band, PIECE) : a->count[p->spatial - 1];
    job->pieces = ceil_div(a->band, job->piece);
    for (int64_t at = 0; at < a->all; at += a->band) {
        /* the last band begins earlier, if it must: some positions are the same twice */
        job->first = at + a->band > a->all ? a->all - a->band : at;
        ORTC_TRY(run_band(p, a, job->tail, x, job->first, c, &threads));
        ORTC_TRY(ortc_parallel(c, (p->plain ? p->filters : p->outs) * job->pieces,
                               GRAIN_PIXELS / (a->places * job->piece) + 1, put_pieces, job));
    }
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_conv_transpose_state *s = state;
    const blocks_plan *p = pstate;
    const void *given = ortc_call_data(c, ortc_conv_bias_port(&s->tail));
    const int64_t each = ortc_product_size(p->result);
    float *bias = c->workspace;
    memset(bias, 0, p->at_results);
    for (int64_t k = 0; given && k < p->part[0].places; k++)
        ortc_convert_get()->widen[ortc_float_index(p->type)]((size_t)p->filters, given,
                                                             bias + k * p->filters);
    place_job job = {.p = p,
                     .results = (const char *)c->workspace + p->at_results,
                     .tail = &s->tail,
                     .in = c->in};
    for (int64_t image = 0; image < p->images; image++) {
        const char *x = ortc_product_at(c->in[0].data, image * p->ins * p->in_count * ORTC_BLOCK, p->type);
        job.y = (char *)c->out[0].data +
                image * p->out_count * (p->plain ? p->filters : p->outs * ORTC_BLOCK) * each;
        for (job.part = p->part; job.part < p->part + p->parts; job.part++) ORTC_TRY(run_part(&job, x, c));
    }
    return ORTC_OK;
}

static ortc_status supports_rounded(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    if (!ortc_rounds_to_bf16(device)) return ortc_no(why, "f32 is not to be rounded to bf16");
    if (!ortc_tiled_uk_get(ORTC_TILED_ROUNDED)) return ortc_no(why, "there is no unit for products of bf16");
    return ortc_conv_transpose_supports(n, device, why);
}

#define TRANSPOSE(title, rounds, may, its_flags) \
    static ortc_status choose_##title(const void *state, const ortc_question *q, ortc_offer *o, \
                                      ortc_why *why) \
    { \
        return choose_as(rounds, state, q, o, why); \
    } \
    static ortc_status plan_##title(const void *state, ortc_plan *p, void **out) \
    { \
        return plan_as(rounds, state, p, out); \
    } \
    const ortc_kernel ortc_conv_transpose_##title = {.size = ORTC_SIZED(ortc_kernel), \
                                                     .flags = ORTC_KERNEL_EPILOGUE | ORTC_KERNEL_LAYOUTS | \
                                                              (its_flags), \
                                                     .name = "conv_transpose." #title, \
                                                     .supports = may, \
                                                     .prepare = ortc_conv_transpose_prepare_tail, \
                                                     .plan = plan_##title, \
                                                     .run = run, \
                                                     .release_plan = release_plan, \
                                                     .choose = choose_##title};
TRANSPOSE(blocked, 0, ortc_conv_transpose_supports, 0)
TRANSPOSE(rounded, 1, supports_rounded, ORTC_KERNEL_ROUNDS)
