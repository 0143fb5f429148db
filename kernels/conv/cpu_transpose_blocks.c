/* kernels/conv/cpu_transpose_blocks.c: ConvTranspose on the cpu provider of values in blocks of 16 channels
 * (kernels/common/blocks.h), where windows lie side by side: the kernel is the stride, nothing is padded or
 * cut off. Each place of the window is then a convolution of one pixel, all of them together one with places
 * times filters (blocked.h), and each of its results is a pixel of Y: a band of X's lines is multiplied into
 * the workspace, in L2, and put where it belongs. W is constant and packed once, a place's filters behind
 * those of the one before. Few filters make a Y that is plain.
 *
 * conv_transpose.rounded is the same of f32 that is rounded to bf16, where the device says so. Other windows,
 * groups and plain values go by cpu_transpose.c. */
#include <stdlib.h>
#include <string.h>

#include "blocked.h"
#include "cpu.h"
#include "kernels/common/cpu_device.h"
#include "kernels/gemm/product_uk.h"
#include "tiled.h"
#include "cpu_transpose.h"

#define BAND_BYTES (1024 * 1024) /* of results at a time */
#define MOVED 8                  /* clocks of a vector that is stored, read and stored again, */
#define PICKED 4                 /* and of some neighbouring lanes of one */
#define GRAIN_PIXELS 2048
#define FEW_FILTERS 8 /* of which blocks of Y would be padding for the most part */

enum { NO_TILES = -1 };

typedef struct pack_param {
    int64_t channels, filters, places, type, kind; /* kind: ORTC_TILED_*, or NO_TILES */
} pack_param;

/* The convolution that gives all places. */
static ortc_conv_geometry points_of(int64_t channels, int64_t filters, int64_t places)
{
    return (ortc_conv_geometry){.spatial = 1,
                                .kernel = {1},
                                .stride = {1},
                                .dilation = {1},
                                .images = 1,
                                .group = 1,
                                .channels = channels,
                                .filters = places * filters,
                                .kernel_count = 1};
}

static int in_pieces(int64_t kind) { return kind == ORTC_TILED_PIECES || kind == ORTC_TILED_PLAIN; }

/* Bytes of packed weights; of pieces W as a convolution has it is behind them (ortc_tiled_run). */
static size_t weight_bytes(const ortc_conv_geometry *g, const pack_param *p)
{
    if (p->kind == NO_TILES) return ortc_blocked_weight_bytes(g, (ortc_dtype)p->type, 0, NULL);
    return (ortc_tiled_weight_bytes(g, (int)p->kind) + 63) / 64 * 64;
}

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const pack_param *p = param;
    const ortc_conv_geometry g = points_of(p->channels, p->filters, p->places);
    const int64_t behind = in_pieces(p->kind) ? ortc_product_size((ortc_dtype)p->type) : 0;
    (void)src;
    return weight_bytes(&g, p) + (size_t)(g.filters * g.channels * behind);
}

/* W [channels][filters][places] as [place][filter][channels], then packed. */
static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const pack_param *p = param;
    const ortc_conv_geometry g = points_of(p->channels, p->filters, p->places);
    const ortc_product_threads threads = {ortc_call_parallel, call};
    const ortc_dtype t = (ortc_dtype)p->type;
    const int64_t size = ortc_product_size(t);
    char *turned = malloc((size_t)(g.filters * p->channels * size));
    if (!turned) return ortc_call_fail(call, ORTC_OUT_OF_MEMORY, "no memory to pack W");
    const char *from = src->data;
    for (int64_t c = 0; c < p->channels; c++)
        for (int64_t m = 0; m < p->filters; m++)
            for (int64_t k = 0; k < p->places; k++, from += size)
                memcpy(turned + ((k * p->filters + m) * p->channels + c) * size, from, (size_t)size);
    int32_t status;
    if (p->kind == NO_TILES) {
        status = ortc_blocked_weight_fill(&g, t, 0, turned, dst, &threads);
    } else {
        status = ortc_tiled_weight_fill(&g, t, (int)p->kind, turned, dst, &threads);
        if (in_pieces(p->kind))
            memcpy((char *)dst + weight_bytes(&g, p), turned, (size_t)(g.filters * g.channels * size));
    }
    free(turned);
    return status;
}

static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.conv_transpose.blocks", pack_bytes,
                                     pack_fill, ORTC_PACKING_PASSES};

/* ---- Choose and plan ----------------------------------------------------------------------------------- */

typedef struct blocks_plan {
    ortc_dtype type, result;                             /* of X; of Y */
    int32_t spatial, plain;                              /* plain: Y is */
    int64_t images, ins, outs, filters, places, results; /* in blocks: of X, of Y, of all places */
    int64_t in[ORTC_SPATIAL_LIMIT], out[ORTC_SPATIAL_LIMIT], stride[ORTC_SPATIAL_LIMIT];
    int64_t in_count, out_count, lines, band; /* lines: of X's last dim; of a band */
    ortc_conv_geometry points;                /* of a band */
    int64_t kind;                             /* of tiles, or NO_TILES */
    ortc_blocked_plan dense;
    ortc_tiled_plan tiled;
    /* In the workspace, behind the bias: [block of results][pixel of the band][16], and what tiles share. */
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
    return ortc_conv_least_clocks(&b->points, b->type) / 0.9;
}

/* Tiles where there are some and they are quicker; 0: neither can. */
static int open_plan(blocks_plan *b, int rounds)
{
    const ortc_conv_geometry *g = &b->points;
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

/* NULL, or why it is not for these windows. rounds: f32 to bf16. */
static const char *read_shapes(const ortc_transpose *t, int rounds, const ortc_view *x, const ortc_view *w,
                               const ortc_view *y, blocks_plan *b)
{
    ortc_transpose own = *t;
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
                       .out_count = 1};
    if (t->group != 1 || b->spatial < 1 || b->spatial > 3) return "there are groups, or more than three dims";
    if (ortc_view_count(y) == 0 || ortc_view_count(x) == 0) return "there is nothing to do";
    for (int32_t i = 0; i < b->spatial; i++) {
        own.window.kernel[i] = w->dims[i + 2];
        b->in[i] = x->dims[i + 2], b->out[i] = y->dims[i + 2], b->stride[i] = t->window.stride[i];
        if (w->dims[i + 2] != b->stride[i] || t->window.dilation[i] != 1 ||
            b->out[i] != b->in[i] * b->stride[i] || ortc_transpose_pad(&own, i, b->in[i], b->out[i]) != 0)
            return "windows do not lie side by side";
        b->places *= b->stride[i], b->in_count *= b->in[i], b->out_count *= b->out[i];
    }
    b->results = ortc_blocks_of(b->places * b->filters);
    const int64_t width = b->in[b->spatial - 1], line = b->results * ORTC_BLOCK * width;
    b->lines = b->in_count / width, b->band = b->lines;
    if (line * 4 * b->lines > BAND_BYTES) b->band = line * 4 > BAND_BYTES ? 1 : BAND_BYTES / (line * 4);
    b->points = points_of(x->dims[1], b->filters, b->places);
    b->points.in_count = b->points.in[0] = b->in_count;
    b->points.out_count = b->points.out[0] = b->band * width;
    if (!open_plan(b, rounds)) return "it is too large";
    if (b->kind != NO_TILES || b->result == b->type) return NULL;
    close_plan(b);
    return "its result is of another type than X";
}

static ortc_status choose_as(int rounds, const void *state, const ortc_question *q, ortc_offer *o,
                             ortc_why *why)
{
    const ortc_layout l = ortc_blocks();
    blocks_plan b;
    if (q->layout != ORTC_ANY_LAYOUT && q->layout != l) return ortc_no(why, "it is for blocks of channels");
    if (!(q->in[1].flags & ORTC_VIEW_CONST)) return ortc_no(why, "W is not constant");
    const char *wrong = read_shapes(&((const ortc_conv_transpose_state *)state)->t, rounds, &q->in[0],
                                    &q->in[1], &q->out[0], &b);
    if (wrong) return ortc_no(why, "%s", wrong);
    const int64_t neighbours = b.filters == 1 ? b.stride[b.spatial - 1] : 1; /* of a plain Y */
    const double bands = (double)b.images * (double)b.lines / (double)b.band,
                 moves = (double)(b.plain ? b.places * b.filters / neighbours * PICKED : b.results * MOVED) *
                         (double)b.points.out_count;
    const double products = b.kind == NO_TILES ? blocked_clocks(&b) : ortc_tiled_clocks(&b.tiled);
    o->clocks = bands * (products + moves);
    o->form = ORTC_TRANSPOSE_FORM | (uint64_t)(b.kind + 3);
    o->in[0] = l, o->out[0] = b.plain ? ORTC_PLAIN : l;
    close_plan(&b);
    return ORTC_OK;
}

static ortc_status plan_as(int rounds, const void *state, ortc_plan *p, void **out)
{
    blocks_plan *b = calloc(1, sizeof *b);
    if (!b || read_shapes(&((const ortc_conv_transpose_state *)state)->t, rounds, &p->in[0], &p->in[1],
                          &p->out[0], b)) {
        free(b);
        return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    }
    const pack_param param = {b->points.channels, b->filters, b->places, (int64_t)b->type, b->kind};
    const ortc_status status = ortc_plan_pack(p, 1, &packing, &param, sizeof param, &b->packed);
    if (status) {
        close_plan(b);
        free(b);
        return status;
    }
    const size_t results = (size_t)(b->results * ORTC_BLOCK * b->points.out_count *
                                    ortc_product_size(b->result));
    const int on_tiles = b->kind != NO_TILES;
    b->at_results = (size_t)(b->results * ORTC_BLOCK) * sizeof(float);
    b->at_shared = (b->at_results + results + 63) / 64 * 64;
    b->at_plain = weight_bytes(&b->points, &param);
    ortc_plan_workspace(p, b->at_shared + (on_tiles ? b->tiled.shared : 0),
                        on_tiles ? b->tiled.scratch : b->dense.scratch);
    const double sums = (double)(b->images * b->filters * b->places) * (double)b->in_count;
    ortc_plan_cost(p, 2 * sums * (double)b->points.channels, sums * (double)ortc_product_size(b->type));
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
    char *y;       /* of the image */
    int64_t first; /* line of the band */
    const ortc_tail_spec *tail;
    const ortc_view *in;
} place_job;

/* Results are mostly padding where Y is plain: then the epilogue is about rows of it. */
static int ends_in_rows(const blocks_plan *p) { return p->plain && p->result == ORTC_F32; }

/* n filters of a place from the first of all places on, of a line of results, to every `step` bytes of y. */
static void put(const place_job *j, int64_t filter, int64_t n, int64_t line, char *y, size_t step)
{
    const blocks_plan *p = j->p;
    const int64_t width = p->in[p->spatial - 1], size = ortc_product_size(p->result);
    for (int64_t lane = filter % ORTC_BLOCK, some; n > 0; n -= some, filter += some, lane = 0) {
        const char *x = j->results +
                        (((filter / ORTC_BLOCK * p->band + line) * width) * ORTC_BLOCK + lane) * size;
        some = ORTC_BLOCK - lane < n ? ORTC_BLOCK - lane : n;
        ortc_block_move(y, step, x, (size_t)(ORTC_BLOCK * size), width, (size_t)(some * size));
        y += some * size;
    }
}

/* Where in an image of Y what a line of X's band gives to a row of windows' places begins, in pixels. */
static int64_t pixel_of(const place_job *j, int64_t line, int64_t row)
{
    const blocks_plan *p = j->p;
    const int32_t last = p->spatial - 1;
    int64_t at = 0, step = p->out[last], position = j->first + line;
    for (int32_t d = last - 1; d >= 0; d--) {
        at += (position % p->in[d] * p->stride[d] + row % p->stride[d]) * step;
        position /= p->in[d], row /= p->stride[d], step *= p->out[d];
    }
    return at;
}

/* [block, or filter of a plain Y][line of the band]: rows of Y. */
static void put_lines(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const place_job *j = arg;
    const blocks_plan *p = j->p;
    const int64_t stride = p->stride[p->spatial - 1], width = p->in[p->spatial - 1],
                  lane = p->plain ? 1 : ORTC_BLOCK, pixel = lane * ortc_product_size(p->result);
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t block = i / p->band, line = i % p->band,
                      n = p->plain ? 1 : ortc_block_lanes(block, p->filters);
        for (int64_t row = 0; row < p->places / stride; row++) {
            char *y = j->y + (block * p->out_count + pixel_of(j, line, row)) * pixel;
            if (p->plain && p->filters == 1) /* places of a row are neighbours in both */
                put(j, row * stride, stride, line, y, (size_t)(stride * pixel));
            else
                for (int64_t q = 0; q < stride; q++)
                    put(j, (row * stride + q) * p->filters + block * lane, n, line, y + q * pixel,
                        (size_t)(stride * pixel));
            if (n < lane)
                ortc_block_move(y + pixel / lane * n, (size_t)pixel, NULL, 0, width * stride,
                                (size_t)(pixel / lane * (lane - n)));
            if (ends_in_rows(p)) ortc_conv_transpose_end(j->tail, j->in, (float *)(void *)y, width * stride);
        }
    }
}

/* The results of a band whose lines begin at `first` of an image, x. What is laid out begins where a negative
 * padding says, so that nothing behind the image is read. */
static int32_t run_band(const blocks_plan *p, const ortc_tail_spec *tail, const char *x, int64_t first,
                        const ortc_call *c, const ortc_product_threads *threads)
{
    const ortc_tail_spec none = {.alpha = 1, .bias = -1, .residual = -1, .widens = tail->widens};
    char *workspace = c->workspace;
    const int64_t pixel = first * p->in[p->spatial - 1];
    ortc_blocked_args args = {.x = x,
                              .w = p->packed->data,
                              .bias = (const float *)(void *)workspace,
                              .y = workspace + p->at_results,
                              .tail = ends_in_rows(p) ? &none : tail,
                              .in = c->in};
    if (p->kind != NO_TILES) {
        ortc_tiled_plan band = p->tiled;
        band.e.pad[2] = -pixel;
        return ortc_tiled_run(&band, &args, (const char *)p->packed->data + p->at_plain,
                              workspace + p->at_shared, threads);
    }
    ortc_blocked_plan band = p->dense;
    if (band.in_place)
        args.x = x + pixel * ORTC_BLOCK * ortc_product_size(p->type);
    else
        band.e.pad[2] = -pixel;
    return ortc_blocked_run(&band, &args, threads);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_conv_transpose_state *s = state;
    const blocks_plan *p = pstate;
    const ortc_product_threads threads = {ortc_call_parallel, c};
    const void *given = ortc_call_data(c, ortc_conv_bias_port(&s->tail));
    const int64_t width = p->in[p->spatial - 1], each = ortc_product_size(p->result);
    float *bias = c->workspace;
    memset(bias, 0, p->at_results);
    for (int64_t k = 0; given && k < p->places; k++)
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
        for (int64_t line = 0; line < p->lines; line += p->band) {
            /* the last band begins earlier, if it must: some lines are the same twice */
            job.first = line + p->band > p->lines ? p->lines - p->band : line;
            ORTC_TRY(run_band(p, &s->tail, x, job.first, c, &threads));
            ORTC_TRY(ortc_parallel(c, (p->plain ? p->filters : p->outs) * p->band,
                                   GRAIN_PIXELS / (p->places * width) + 1, put_lines, &job));
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
