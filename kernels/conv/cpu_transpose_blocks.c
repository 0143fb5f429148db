/* kernels/conv/cpu_transpose_blocks.c: ConvTranspose on the cpu provider of values in blocks of 16 channels
 * (kernels/common/blocks.h), where the kernel is a multiple of the stride. An element of Y is at one of as
 * many places as the strides multiplied, from a position on, and positions are convolved with windows of
 * kernel / stride taps, turned around; all places together are one convolution of places times filters
 * (blocked.h). A band of positions goes into the workspace, in L2, and is put where it belongs, less what
 * padding cuts off. W is constant and packed once, a place's filters behind those of the one before. Few
 * filters make a Y that is plain.
 *
 * Where windows lie side by side (the kernel is the stride), positions are X's, and a convolution of one
 * pixel makes one long row of them.
 *
 * conv_transpose.rounded is the same of f32 that is rounded to bf16, where the device says so. Other
 * windows, groups and plain values go by cpu_transpose.c. */
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
#define GRAIN_PIXELS 2048
#define PIECE 512     /* positions of a task, of one dim */
#define FEW_FILTERS 8 /* of which blocks of Y would be padding for the most part */
#define MAX_SPATIAL 3
#define GRAIN_WEIGHTS 16384

enum { NO_TILES = -1 };

typedef struct pack_param {
    int64_t channels, filters, type, kind; /* kind: ORTC_TILED_*, or NO_TILES */
    int64_t spatial, kernel[MAX_SPATIAL], stride[MAX_SPATIAL];
} pack_param;

static int64_t places_of(const pack_param *p)
{
    int64_t n = 1;
    for (int64_t i = 0; i < p->spatial; i++) n *= p->stride[i];
    return n;
}

/* The convolution that gives all places, but for its extents; of one tap it has one dim. */
static ortc_conv_geometry windows_of(const pack_param *p)
{
    ortc_conv_geometry g = {.spatial = 1,
                            .kernel = {1},
                            .stride = {1},
                            .dilation = {1},
                            .images = 1,
                            .group = 1,
                            .channels = p->channels,
                            .filters = places_of(p) * p->filters,
                            .kernel_count = 1};
    for (int64_t i = 0; i < p->spatial; i++) g.kernel_count *= p->kernel[i] / p->stride[i];
    if (g.kernel_count == 1) return g;
    g.spatial = (int32_t)p->spatial;
    for (int32_t i = 0; i < g.spatial; i++) {
        g.kernel[i] = p->kernel[i] / p->stride[i];
        g.stride[i] = g.dilation[i] = 1;
    }
    return g;
}

static int in_pieces(int64_t kind) { return kind == ORTC_TILED_PIECES || kind == ORTC_TILED_PLAIN; }

/* Bytes of packed weights; of pieces W as a convolution has it is behind them (ortc_tiled_run). */
static size_t weight_bytes(const ortc_conv_geometry *g, const pack_param *p)
{
    if (p->kind == NO_TILES) return ortc_blocked_weight_bytes(g, (ortc_dtype)p->type, 0, NULL);
    return (ortc_tiled_weight_bytes(g, (int)p->kind) + 63) / 64 * 64;
}

static int64_t weights_of(const ortc_conv_geometry *g) { return g->filters * g->channels * g->kernel_count; }

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const pack_param *p = param;
    const ortc_conv_geometry g = windows_of(p);
    const int64_t behind = in_pieces(p->kind) ? ortc_product_size((ortc_dtype)p->type) : 0;
    (void)src;
    return weight_bytes(&g, p) + (size_t)(weights_of(&g) * behind);
}

/* Where in [place][filter][channels][taps] an element of the kernel is, of the first filter and channel. */
static int64_t turned_at(const pack_param *p, const ortc_conv_geometry *g, int64_t k)
{
    int64_t place = 0, tap = 0, places = 1, taps = 1;
    for (int64_t i = p->spatial - 1; i >= 0; i--) {
        const int64_t own = k % p->kernel[i], n = p->kernel[i] / p->stride[i];
        place += own % p->stride[i] * places, tap += (n - 1 - own / p->stride[i]) * taps;
        places *= p->stride[i], taps *= n, k /= p->kernel[i];
    }
    return place * p->filters * p->channels * g->kernel_count + tap;
}

typedef struct turn_job {
    const pack_param *p;
    const char *from;
    char *to;
    const int64_t *at; /* of each element of the kernel */
    int64_t kernel, taps, size;
} turn_job;

static void turn_filters(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const turn_job *j = arg;
    const pack_param *p = j->p;
    (void)scratch;
    for (int64_t m = begin; m < end; m++)
        for (int64_t c = 0; c < p->channels; c++) {
            const char *from = j->from + (c * p->filters + m) * j->kernel * j->size;
            char *to = j->to + (m * p->channels + c) * j->taps * j->size;
            if (j->size == 4)
                for (int64_t k = 0; k < j->kernel; k++) memcpy(to + j->at[k] * 4, from + k * 4, 4);
            else
                for (int64_t k = 0; k < j->kernel; k++) memcpy(to + j->at[k] * 2, from + k * 2, 2);
        }
}

/* W [channels][filters][kernel] as [place][filter][channels][taps]. */
static ortc_status turn(const pack_param *p, const ortc_conv_geometry *g, const char *from, char *to,
                        ortc_call *call)
{
    const int64_t kernel = places_of(p) * g->kernel_count;
    int64_t *at = malloc((size_t)kernel * sizeof *at);
    if (!at) return ortc_call_fail(call, ORTC_OUT_OF_MEMORY, "no memory to pack W");
    for (int64_t k = 0; k < kernel; k++) at[k] = turned_at(p, g, k);
    turn_job j = {p, from, to, at, kernel, g->kernel_count, ortc_product_size((ortc_dtype)p->type)};
    const ortc_status status = ortc_parallel(call, p->filters, GRAIN_WEIGHTS / (kernel * p->channels) + 1,
                                             turn_filters, &j);
    free(at);
    return status;
}

static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const pack_param *p = param;
    const ortc_conv_geometry g = windows_of(p);
    const ortc_product_threads threads = {ortc_call_parallel, call};
    const ortc_dtype t = (ortc_dtype)p->type;
    /* what is turned stays behind pieces */
    const int stays = in_pieces(p->kind);
    char *own = stays ? NULL : malloc((size_t)(weights_of(&g) * ortc_product_size(t)));
    char *turned = stays ? (char *)dst + weight_bytes(&g, p) : own;
    if (!turned) return ortc_call_fail(call, ORTC_OUT_OF_MEMORY, "no memory to pack W");
    int32_t status = turn(p, &g, src->data, turned, call);
    if (!status)
        status = p->kind == NO_TILES ? ortc_blocked_weight_fill(&g, t, 0, turned, dst, &threads)
                                     : ortc_tiled_weight_fill(&g, t, (int)p->kind, turned, dst, &threads);
    free(own);
    return status;
}

static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.conv_transpose.blocks", pack_bytes,
                                     pack_fill, ORTC_PACKING_PASSES};

/* ---- Choose and plan ----------------------------------------------------------------------------------- */

typedef struct blocks_plan {
    ortc_dtype type, result;                             /* of X; of Y */
    int32_t spatial, plain;                              /* plain: Y is */
    int64_t images, ins, outs, filters, places, results; /* in blocks: of X, of Y, of all places */
    int64_t in[MAX_SPATIAL], out[MAX_SPATIAL], stride[MAX_SPATIAL];
    /* Positions: so many; what is cut off before the first one's places. */
    int64_t count[MAX_SPATIAL], cut[MAX_SPATIAL];
    int64_t in_count, out_count, all; /* all: positions */
    int64_t unit, band;               /* positions: a band is some units; */
    int32_t along;                    /* these follow each other in this dim of the convolution, */
    int64_t unit_in;                  /* and so many pixels of X */
    ortc_conv_geometry windows;       /* of a band */
    int64_t kind;                     /* of tiles, or NO_TILES */
    ortc_blocked_plan dense;
    ortc_tiled_plan tiled;
    /* In the workspace, behind the bias: [block of results][position of the band][16], and what tiles
     * share. */
    size_t at_results, at_shared, at_plain; /* at_plain: of W as a convolution has it, in the packed one */
    const ortc_packed *packed;
} blocks_plan;

static void close_plan(blocks_plan *b)
{
    if (b->kind == NO_TILES)
        ortc_blocked_plan_deinit(&b->dense);
    else
        ortc_tiled_plan_deinit(&b->tiled);
}

static double blocked_clocks(const blocks_plan *b)
{
    return ortc_conv_least_clocks(&b->windows, b->type) / 0.9;
}

/* Tiles where there are some and they are quicker; 0: neither can. */
static int open_plan(blocks_plan *b, int rounds)
{
    const ortc_conv_geometry *g = &b->windows;
    b->kind = b->type == ORTC_BF16 ? ORTC_TILED_BF16
              : rounds             ? ORTC_TILED_ROUNDED
                                   : ortc_tiled_kind(g, ORTC_TILED_PIECES);
    if (ortc_tiled_plan_init(ortc_tiled_uk_get((int)b->kind), g, b->type, (int)b->kind, 0, &b->tiled)) {
        const int must = b->result != b->type; /* the others store X's type */
        if (!b->tiled.stem && (must || ortc_tiled_clocks(&b->tiled) < blocked_clocks(b))) return 1;
        ortc_tiled_plan_deinit(&b->tiled);
    }
    b->kind = NO_TILES;
    return ortc_blocked_plan_init(g, b->type, 0, 0, &b->dense);
}

/* Positions of each dim, and the convolution's extents there; NULL, or why not. */
static const char *read_positions(const ortc_transpose *t, const ortc_view *x, const ortc_view *w,
                                  const ortc_view *y, blocks_plan *b)
{
    ortc_transpose own = *t;
    ortc_conv_geometry *g = &b->windows;
    int points = g->kernel_count == 1;
    for (int32_t i = 0; i < b->spatial; i++) {
        const int64_t kernel = w->dims[i + 2], stride = b->stride[i];
        own.window.kernel[i] = kernel;
        b->in[i] = x->dims[i + 2], b->out[i] = y->dims[i + 2];
        const int64_t pad = ortc_transpose_pad(&own, i, b->in[i], b->out[i]), first = pad / stride;
        if (pad < 0 || pad >= kernel) return "padding cuts off whole windows, or is negative";
        b->cut[i] = pad % stride;
        b->count[i] = (b->out[i] - 1 + pad) / stride - first + 1;
        points &= first == 0 && b->count[i] == b->in[i];
        if (g->kernel_count > 1)
            g->in[i] = b->in[i], g->out[i] = b->count[i], g->pad[i] = kernel / stride - 1 - first;
        b->places *= stride, b->in_count *= b->in[i], b->out_count *= b->out[i], b->all *= b->count[i];
    }
    if (g->kernel_count == 1 && !points) return "windows of one tap do not begin and end with X";
    const int64_t last = b->count[b->spatial - 1];
    b->unit = b->spatial == 1 ? 1 : points ? last : b->all / b->count[0];
    b->unit_in = points ? b->unit : b->in_count / b->in[0];
    b->along = points ? 2 : MAX_SPATIAL - b->spatial;
    return NULL;
}

/* NULL, or why it is not for these windows. rounds: f32 to bf16. */
static const char *read_shapes(const ortc_transpose *t, int rounds, const ortc_view *x, const ortc_view *w,
                               const ortc_view *y, pack_param *param, blocks_plan *b)
{
    ortc_conv_geometry *g = &b->windows;
    *b = (blocks_plan){.type = x->dtype,
                       .result = y->dtype,
                       .spatial = x->rank - 2,
                       .images = x->dims[0],
                       .ins = ortc_blocks_of(x->dims[1]),
                       .outs = ortc_blocks_of(w->dims[1]),
                       .plain = w->dims[1] < FEW_FILTERS,
                       .filters = w->dims[1],
                       .places = 1,
                       .in_count = 1,
                       .out_count = 1,
                       .all = 1};
    *param = (pack_param){x->dims[1], b->filters, (int64_t)b->type, NO_TILES, b->spatial, {0}, {0}};
    if (t->group != 1 || b->spatial < 1 || b->spatial > MAX_SPATIAL)
        return "there are groups, or more than three dims";
    if (ortc_view_count(y) == 0 || ortc_view_count(x) == 0) return "there is nothing to do";
    for (int32_t i = 0; i < b->spatial; i++) {
        b->stride[i] = param->stride[i] = t->window.stride[i], param->kernel[i] = w->dims[i + 2];
        if (t->window.dilation[i] != 1 || w->dims[i + 2] == 0 || w->dims[i + 2] % b->stride[i])
            return "the window is no multiple of the stride, or dilated";
    }
    *g = windows_of(param);
    const char *wrong = read_positions(t, x, w, y, b);
    if (wrong) return wrong;
    b->results = ortc_blocks_of(b->places * b->filters);
    const int64_t bytes = max64(weights_of(g) * 4, BAND_BYTES), line = b->results * ORTC_BLOCK * 4 * b->unit,
                  units = max64(bytes / line, 1);
    b->band = min64(b->unit == 1 ? ceil_div(units, PIECE) * PIECE : units * b->unit, b->all);
    if (g->kernel_count == 1)
        g->in[0] = b->in_count, g->out[0] = b->band;
    else
        g->out[0] = b->band / b->unit;
    g->in_count = b->in_count, g->out_count = b->band;
    if (!open_plan(b, rounds)) return "it is too large";
    param->kind = b->kind;
    if (b->kind != NO_TILES || b->result == b->type) return NULL;
    close_plan(b);
    return "its result is of another type than X";
}

static ortc_status choose_as(int rounds, const void *state, const ortc_question *q, ortc_offer *o,
                             ortc_why *why)
{
    const ortc_layout l = ortc_blocks();
    blocks_plan b;
    pack_param param;
    if (q->layout != ORTC_ANY_LAYOUT && q->layout != l) return ortc_no(why, "it is for blocks of channels");
    if (!(q->in[1].flags & ORTC_VIEW_CONST)) return ortc_no(why, "W is not constant");
    const char *wrong = read_shapes(&((const ortc_conv_transpose_state *)state)->t, rounds, &q->in[0],
                                    &q->in[1], &q->out[0], &param, &b);
    if (wrong) return ortc_no(why, "%s", wrong);
    const int64_t neighbours = b.filters == 1 ? b.stride[b.spatial - 1] : 1; /* of a plain Y */
    const double bands = (double)b.images * (double)b.all / (double)b.band,
                 moves = (double)(b.plain ? b.places * b.filters / neighbours * PICKED : b.results * MOVED) *
                         (double)b.windows.out_count;
    const double products = b.kind == NO_TILES ? blocked_clocks(&b) : ortc_tiled_clocks(&b.tiled);
    o->clocks = bands * (products + moves);
    o->form = ORTC_TRANSPOSE_FORM | (uint64_t)(b.kind + 3);
    o->in[0] = l, o->out[0] = b.plain ? ORTC_PLAIN : l;
    close_plan(&b);
    return ORTC_OK;
}

static ortc_status plan_as(int rounds, const void *state, ortc_plan *p, void **out)
{
    pack_param param;
    blocks_plan *b = calloc(1, sizeof *b);
    if (!b || read_shapes(&((const ortc_conv_transpose_state *)state)->t, rounds, &p->in[0], &p->in[1],
                          &p->out[0], &param, b)) {
        free(b);
        return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    }
    const ortc_status status = ortc_plan_pack(p, 1, &packing, &param, sizeof param, &b->packed);
    if (status) {
        close_plan(b);
        free(b);
        return status;
    }
    const size_t results = (size_t)(b->results * ORTC_BLOCK * b->windows.out_count *
                                    ortc_product_size(b->result));
    const int on_tiles = b->kind != NO_TILES;
    b->at_results = (size_t)(b->results * ORTC_BLOCK) * sizeof(float);
    b->at_shared = (b->at_results + results + 63) / 64 * 64;
    b->at_plain = weight_bytes(&b->windows, &param);
    ortc_plan_workspace(p, b->at_shared + (on_tiles ? b->tiled.shared : 0),
                        on_tiles ? b->tiled.scratch : b->dense.scratch);
    const double sums = (double)(b->images * b->filters * b->places) * (double)b->in_count;
    ortc_plan_cost(p, 2 * sums * (double)(b->windows.channels * b->windows.kernel_count),
                   (double)(b->images * b->filters) * (double)b->out_count *
                       (double)ortc_product_size(b->type));
    *out = b;
    return ORTC_OK;
}

static void release_plan(const void *state, void *pstate)
{
    blocks_plan *b = pstate;
    (void)state;
    if (b) close_plan(b);
    free(b);
}

/* ---- The run ------------------------------------------------------------------------------------------- */

typedef struct place_job {
    const blocks_plan *p;
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
    const blocks_plan *p = j->p;
    const int64_t size = ortc_product_size(p->result);
    for (int64_t lane = filter % ORTC_BLOCK, some; lanes > 0; lanes -= some, filter += some, lane = 0) {
        const char *x = j->results + ((filter / ORTC_BLOCK * p->band + at) * ORTC_BLOCK + lane) * size;
        some = ORTC_BLOCK - lane < lanes ? ORTC_BLOCK - lane : lanes;
        ortc_block_move(y, step, x, (size_t)(ORTC_BLOCK * size), n, (size_t)(some * size));
        y += some * size;
    }
}

/* Where in an image of Y the row begins that a row of positions gives to a row of places; -1: cut off. */
static int64_t row_of(const blocks_plan *p, int64_t positions, int64_t places)
{
    const int32_t last = p->spatial - 1;
    int64_t at = 0, step = p->out[last];
    for (int32_t d = last - 1; d >= 0; d--) {
        const int64_t o = positions % p->count[d] * p->stride[d] + places % p->stride[d] - p->cut[d];
        if (o < 0 || o >= p->out[d]) return -1;
        at += o * step;
        positions /= p->count[d], places /= p->stride[d], step *= p->out[d];
    }
    return at;
}

/* What n positions from the band's `at` on, and x of the last dim, give to a row of places and of Y. */
static void put_row(const place_job *j, int64_t block, int64_t places, int64_t at, int64_t x, int64_t n,
                    char *y)
{
    const blocks_plan *p = j->p;
    const int32_t last = p->spatial - 1;
    const int64_t stride = p->stride[last], out = p->out[last], size = ortc_product_size(p->result),
                  lane = p->plain ? 1 : ORTC_BLOCK, pixel = lane * size,
                  lanes = p->plain ? 1 : ortc_block_lanes(block, p->filters);
    const int64_t begin = x * stride - p->cut[last],
                  end = begin + n * stride; /* of Y, less what is cut off */
    const int64_t from = begin > 0 ? begin : 0, to = end < out ? end : out;
    if (p->plain && p->filters == 1 && from == begin && to == end) { /* places are neighbours in both */
        put(j, places * stride, stride, at, n, y + begin * pixel, (size_t)(stride * pixel));
    } else {
        for (int64_t q = 0; q < stride; q++) {
            const int64_t before = begin + q < 0, behind = end - stride + q >= out;
            if (n > before + behind)
                put(j, (places * stride + q) * p->filters + block * lane, lanes, at + before,
                    n - before - behind, y + (begin + q + before * stride) * pixel, (size_t)(stride * pixel));
        }
    }
    if (lanes < lane)
        ortc_block_move(y + from * pixel + size * lanes, (size_t)pixel, NULL, 0, to - from,
                        (size_t)(size * (lane - lanes)));
    if (ends_in_rows(p))
        ortc_conv_transpose_end(j->tail, j->in, (float *)(void *)(y + from * pixel), to - from);
}

/* [block, or filter of a plain Y][piece of the band] */
static void put_pieces(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const place_job *j = arg;
    const blocks_plan *p = j->p;
    const int64_t width = p->count[p->spatial - 1], rows = p->places / p->stride[p->spatial - 1],
                  pixel = (p->plain ? 1 : ORTC_BLOCK) * ortc_product_size(p->result);
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t block = i / j->pieces, at = i % j->pieces * j->piece, position = j->first + at,
                      n = p->band - at < j->piece ? p->band - at : j->piece;
        for (int64_t row = 0; row < rows; row++) {
            const int64_t y = row_of(p, position / width, row);
            if (y >= 0)
                put_row(j, block, row, at, position % width, n, j->y + (block * p->out_count + y) * pixel);
        }
    }
}

/* The results of a band that begins at position `first` of an image, x: padding moves along, so that nothing
 * behind the image is read. */
static int32_t run_band(const blocks_plan *p, const ortc_tail_spec *tail, const char *x, int64_t first,
                        const ortc_call *c, const ortc_product_threads *threads)
{
    const ortc_tail_spec none = {.alpha = 1, .bias = -1, .residual = -1, .widens = tail->widens};
    const int64_t units = first / p->unit;
    char *workspace = c->workspace;
    const int64_t moved = p->windows.kernel_count == 1 ? first : units; /* of the padding */
    ortc_blocked_args args = {.x = x,
                              .w = p->packed->data,
                              .bias = (const float *)(void *)workspace,
                              .y = workspace + p->at_results,
                              .tail = ends_in_rows(p) ? &none : tail,
                              .in = c->in};
    if (p->kind != NO_TILES) {
        ortc_tiled_plan band = p->tiled;
        band.e.pad[p->along] -= moved;
        return ortc_tiled_run(&band, &args, (const char *)p->packed->data + p->at_plain,
                              workspace + p->at_shared, threads);
    }
    ortc_blocked_plan band = p->dense;
    if (band.in_place)
        args.x = x + units * p->unit_in * ORTC_BLOCK * ortc_product_size(p->type);
    else
        band.e.pad[p->along] -= moved;
    return ortc_blocked_run(&band, &args, threads);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_conv_transpose_state *s = state;
    const blocks_plan *p = pstate;
    const ortc_product_threads threads = {ortc_call_parallel, c};
    const void *given = ortc_call_data(c, ortc_conv_bias_port(&s->tail));
    const int64_t each = ortc_product_size(p->result), width = p->count[p->spatial - 1];
    float *bias = c->workspace;
    memset(bias, 0, p->at_results);
    for (int64_t k = 0; given && k < p->places; k++)
        ortc_convert_get()->widen[ortc_float_index(p->type)]((size_t)p->filters, given,
                                                             bias + k * p->filters);
    const int64_t piece = p->spatial == 1 ? min64(p->band, PIECE) : width;
    place_job job = {.p = p,
                     .results = (const char *)c->workspace + p->at_results,
                     .piece = piece,
                     .pieces = ceil_div(p->band, piece),
                     .tail = &s->tail,
                     .in = c->in};
    for (int64_t image = 0; image < p->images; image++) {
        const char *x = ortc_product_at(c->in[0].data, image * p->ins * p->in_count * ORTC_BLOCK, p->type);
        job.y = (char *)c->out[0].data +
                image * p->out_count * (p->plain ? p->filters : p->outs * ORTC_BLOCK) * each;
        for (int64_t at = 0; at < p->all; at += p->band) {
            /* the last band begins earlier, if it must: some positions are the same twice */
            job.first = at + p->band > p->all ? p->all - p->band : at;
            ORTC_TRY(run_band(p, &s->tail, x, job.first, c, &threads));
            ORTC_TRY(ortc_parallel(c, (p->plain ? p->filters : p->outs) * job.pieces,
                                   GRAIN_PIXELS / (p->places * piece) + 1, put_pieces, &job));
        }
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
