/* The loops of blocked_depthwise.h. A task is some rows of a block; results that registers do not finish wait
 * in scratch, in L1, some rows at a time. Rows of 16 bits are widened once, with the zeros beside them, so
 * that all windows of a row are whole: as many are held as those windows read. */
#include "blocked_depthwise.h"

#include <math.h>
#include <string.h>

#include "kernels/common/counts.h"
#include "kernels/gemm/integer_tail.h"
#include "kernels/gemm/product_uk.h"

#define TASK_FLOATS 6144 /* of results: with what they read they stay in L1 */
#define GRAIN_MACS 0.03e6
#define FINISHED 1024  /* results, about */
#define THEIR_OWN 384  /* pixels of a thread, see below */
#define WIDE_PIXELS 14 /* of a tile: a strip of registers, or several */
#define HELD_ROWS 8    /* of a task of wide pixels, for what is held beside them */
#define MOST_HELD 64e6 /* bytes, of each worker */
#define MOST_CHANNELS (1 << 16)

/* Bytes of a row that is held as it is. */
static int64_t word_pitch(const ortc_blocked_depthwise_plan *p) { return (p->width + 3) * ORTC_BLOCK; }

static ortc_blocked_words_fn *by_words(void)
{
#ifdef ORTC_TILES_avx512vbmi
    const uint32_t needs = ORTC_CPU_AVX512 | ORTC_CPU_AVX512_VNNI | ORTC_CPU_AVX512_VBMI;
    if ((ortc_cpu_features() & needs) == needs) return ortc_uk_depthwise_words_avx512vbmi;
#endif
    return NULL;
}

/* Windows slide over rows where they lie, if only a window's half lies beside the image. */
static const ortc_blocked_halves *halves_for(const ortc_window_extents *e, int32_t type)
{
    const int64_t middle = e->kernel[2] / 2, last = (e->out[2] - 1) * e->stride[2] - e->pad[2] + middle;
    const ortc_blocked_halves *h = NULL;
    (void)type;
#if defined(__x86_64__)
    if (type == ORTC_FLOAT_F16 && ortc_cpu_features() & ORTC_CPU_AVX512) h = &ortc_blocked_halves_avx512;
#endif
#ifdef ORTC_TILES_avx512bf16
    const uint32_t any = ORTC_CPU_AVX512_BF16 | ORTC_CPU_AMX, has = ortc_cpu_features();
    if (type == ORTC_FLOAT_BF16 && (has & ORTC_CPU_AVX512) && (has & any))
        h = &ortc_blocked_halves_avx512bf16;
#endif
    const int fits = e->dilation[2] == 1 && e->pad[2] <= middle && last < e->in[2];
    return h && fits && h->takes((size_t)e->kernel[2], e->stride[2]) ? h : NULL;
}

static int plan_init(const ortc_conv_geometry *g, ortc_dtype type, uint32_t threads, int wide,
                     ortc_blocked_depthwise_plan *p)
{
    const int64_t each = g->channels;
    memset(p, 0, sizeof *p);
    if (each != g->filters || each == 0 || g->group == 1 || g->kernel_count > 4096 || g->images == 0 ||
        g->out_count == 0 || !ortc_conv_extents(g, &p->extents) || p->extents.in[1] > INT32_MAX)
        return 0;
    p->uk = ortc_blocked_uk_get();
    p->size = ortc_dtype_bits(type) / 8;
    if (each > 1 && (each > p->uk->most_each || ORTC_BLOCK % each || wide || p->size == 1)) return 0;
    p->is_signed = type == ORTC_I8;
    p->type = p->size == 1 ? ORTC_BLOCKED_BYTES : ortc_float_index(type);
    if (p->size == 1 && g->kernel_count > ORTC_DEPTHWISE_EXACT) return 0;
    p->each = each;
    p->images = g->images, p->channels = g->group * each, p->blocks = ceil_div(p->channels, ORTC_BLOCK);
    p->in_count = g->in_count, p->out_count = g->out_count, p->taps = g->kernel_count;
    p->wide = wide ? p->blocks : 1, p->parts = p->blocks / p->wide;
    const int64_t *out = p->extents.out, pixel = p->wide * ORTC_BLOCK, row = out[2] * pixel;
    if (out[2] * ORTC_BLOCK > 1 << 20 || pixel > MOST_CHANNELS) return 0;
    p->rows = TASK_FLOATS / row > 1 ? TASK_FLOATS / row : wide && p->type != ORTC_FLOAT_F32 ? HELD_ROWS : 1;
    /* Points before and behind these windows are dealt to threads by pixels: so are rows, that each thread
     * finds what it wrote itself. Of small images they are dealt by filters (tiled.c), and threads would ask
     * for lines ahead that are another's: 7 rows of 14 pixels took a quarter longer so. */
    p->by_rows = threads > 1 && g->images == 1 && g->out_count / threads >= THEIR_OWN;
    const int64_t own = p->by_rows ? ceil_div(out[1], threads) : out[1]; /* of a thread */
    p->rows = ceil_div(own, ceil_div(own, p->rows));
    p->row_tasks = ceil_div(out[1], p->rows);
    const double macs = (double)(p->taps * each) * (double)(p->rows * row);
    p->grain = macs >= GRAIN_MACS ? 1 : (int64_t)(GRAIN_MACS / macs) + 1;
    p->some = ceil_div(p->rows, p->rows * row > FINISHED ? p->rows * row / FINISHED : 1);
    const int64_t strips = ceil_div(FINISHED, WIDE_PIXELS * pixel);
    p->tile = wide && strips * WIDE_PIXELS < out[2] ? strips * WIDE_PIXELS : out[2];
    p->scratch = (size_t)(p->some * p->extents.kernel[0] * p->extents.kernel[1]) * sizeof(char *) +
                 (size_t)p->extents.kernel[2] * sizeof(ortc_blocked_column) +
                 (size_t)(p->some * p->tile * pixel) * sizeof(float);
    const ortc_window_extents *e = &p->extents;
    if (!wide && each == 1) p->halves = halves_for(e, p->type);
    if (p->type == ORTC_FLOAT_F32 || p->halves) return 1;
    p->held = (p->some - 1) * e->stride[1] + (e->kernel[1] - 1) * e->dilation[1] + 1;
    p->width = (e->out[2] - 1) * e->stride[2] + (e->kernel[2] - 1) * e->dilation[2] + 1;
    /* strides and dilations may be any */
    const double held = (double)e->kernel[0] * (double)p->held * (double)p->width * (double)pixel *
                        sizeof(float);
    if (held > MOST_HELD) return 0;
    p->at_held = (p->scratch + 63) / 64 * 64;
    if (p->size == 1 && e->dilation[2] == 1) p->by_words = by_words();
    p->words = ceil_div(e->kernel[2], 4);
    if (p->by_words)
        p->scratch = p->at_held + (size_t)((e->kernel[0] * p->held + 1) * word_pitch(p));
    else
        p->scratch = p->at_held + (size_t)(e->kernel[0] * p->held * p->width * pixel) * sizeof(float);
    return 1;
}

int ortc_blocked_depthwise_plan_init(const ortc_conv_geometry *g, ortc_dtype type, uint32_t threads,
                                     ortc_blocked_depthwise_plan *p)
{
    return plan_init(g, type, threads, 0, p);
}

int ortc_blocked_depthwise_plan_rows(const ortc_conv_geometry *g, ortc_dtype type, uint32_t threads,
                                     ortc_blocked_depthwise_plan *p)
{
    return g->group % ORTC_BLOCK == 0 && ortc_dtype_bits(type) > 8 && plan_init(g, type, threads, 1, p);
}

size_t ortc_blocked_depthwise_weight_bytes(const ortc_conv_geometry *g)
{
    return (size_t)(ceil_div(g->group * g->channels, ORTC_BLOCK) * ORTC_BLOCK * g->channels *
                    g->kernel_count) *
           sizeof(float);
}

void ortc_blocked_depthwise_weight_fill(const ortc_conv_geometry *g, ortc_dtype type, const void *w,
                                        float *dst)
{
    const ortc_convert *convert = ortc_convert_get();
    const int64_t taps = g->kernel_count, each = g->channels;
    memset(dst, 0, ortc_blocked_depthwise_weight_bytes(g));
    for (int64_t c = 0; c < g->group * each; c++)
        for (int64_t i = 0; i < taps * each; i++) { /* [channel][tap] */
            float *to = dst + (c / ORTC_BLOCK * taps * each + i % taps * each + i / taps) * ORTC_BLOCK +
                        c % ORTC_BLOCK;
            const void *from = ortc_product_at(w, c * taps * each + i, type);
            if (ortc_dtype_bits(type) == 8)
                *to = type == ORTC_I8 ? *(const int8_t *)from : (float)(*(const uint8_t *)from - 128);
            else
                convert->widen[ortc_float_index(type)](1, from, to);
        }
}

static int64_t lines_of(const ortc_blocked_depthwise_plan *p)
{
    return p->extents.kernel[0] * p->extents.kernel[1];
}

static size_t weight_words(const ortc_blocked_depthwise_plan *p)
{
    return (size_t)(p->blocks * lines_of(p) * p->words) * 64;
}

size_t ortc_blocked_depthwise_word_bytes(const ortc_blocked_depthwise_plan *p)
{
    return weight_words(p) + (size_t)(p->blocks * ORTC_BLOCK) * sizeof(int32_t);
}

void ortc_blocked_depthwise_word_fill(const ortc_blocked_depthwise_plan *p, ortc_dtype type, const void *w,
                                      void *dst)
{
    const int64_t lines = lines_of(p), columns = p->extents.kernel[2];
    int32_t *sums = (int32_t *)(void *)((char *)dst + weight_words(p));
    memset(dst, 0, ortc_blocked_depthwise_word_bytes(p));
    for (int64_t c = 0; c < p->channels; c++)
        for (int64_t l = 0; l < lines; l++)
            for (int64_t k = 0; k < columns; k++) {
                const uint8_t raw = ((const uint8_t *)w)[(c * lines + l) * columns + k];
                const int8_t v = (int8_t)(type == ORTC_U8 ? raw ^ 0x80 : raw);
                const int64_t word = (c / ORTC_BLOCK * lines + l) * p->words + k / 4;
                ((int8_t *)dst)[word * 64 + c % ORTC_BLOCK * 4 + k % 4] = v;
                sums[c] += v;
            }
}

typedef struct job {
    const ortc_blocked_depthwise_plan *p;
    const ortc_blocked_args *a;
    ortc_blocked_end end;
} job;

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

/* The columns of windows, and what pixels see all of them: of rows that are held, all. */
static void find_columns(const ortc_blocked_depthwise_plan *p, int64_t pixel, ortc_blocked_column *column,
                         ortc_blocked_windows *w)
{
    const ortc_window_extents *e = &p->extents;
    const int64_t s = e->stride[2], out = e->out[2];
    w->columns = (size_t)e->kernel[2], w->column = column;
    w->stride = s, w->left = p->held ? 0 : -e->pad[2];
    w->first = 0, w->end = out, w->width = p->held ? p->width : e->in[2];
    for (int64_t c = 0; c < e->kernel[2]; c++, column++) {
        const int64_t x = c * e->dilation[2] - (p->held ? 0 : e->pad[2]);
        column->x = x * pixel;
        if (p->held) {
            column->first = 0, column->end = out;
            continue;
        }
        column->first = x >= 0 ? 0 : clamp(ceil_div(-x, s), 0, out);
        column->end = x >= e->in[2] ? column->first : clamp(ceil_div(e->in[2] - x, s), column->first, out);
        w->first = column->first > w->first ? column->first : w->first;
        w->end = column->end < w->end ? column->end : w->end;
    }
}

/* Rows of a part's image. */
typedef struct rows {
    const ortc_blocked_depthwise_plan *p;
    const char *x; /* the image */
    int32_t zero;  /* of bytes */
    char *beside;  /* by words: a row of zero points; else NULL */
    float *held;   /* [plane of the window][row % p->held][p->width][pixel]; NULL: x is read where it lies */
    int64_t have;  /* rows before this one are held, as far as they are still read */
} rows;

static int64_t pixel_of(const ortc_blocked_depthwise_plan *p) { return p->wide * ORTC_BLOCK; }
static int64_t row_floats(const rows *r) { return r->p->extents.in[2] * pixel_of(r->p); }

/* Of those held, with what is beside the image. */
static const char *row_of(const rows *r, int64_t d, int64_t in_plane, int64_t row)
{
    const ortc_blocked_depthwise_plan *p = r->p;
    if (!r->held) return r->x + (in_plane * p->extents.in[1] + row) * row_floats(r) * p->size;
    const int64_t at = d * p->held + (uint32_t)row % (uint32_t)p->held; /* of 32 bits: quick */
    if (p->by_words) return (const char *)r->held + at * word_pitch(p);
    return (const char *)(r->held + at * p->width * pixel_of(p));
}

/* A row as it is, unsigned. */
static void hold_bytes(const rows *r, int64_t d, int64_t in_plane, int64_t row, int64_t left, int64_t right)
{
    const ortc_blocked_depthwise_plan *p = r->p;
    const size_t begin = (size_t)(left * ORTC_BLOCK), end = (size_t)(right * ORTC_BLOCK);
    const char *from = r->x + (in_plane * p->extents.in[1] + row) * row_floats(r);
    char *to = (char *)(uintptr_t)row_of(r, d, in_plane, row);
    memset(to, r->zero, begin);
    if (p->is_signed)
        for (size_t i = begin; i < end; i++) to[i] = (char)(from[i - begin] ^ 0x80);
    else
        memcpy(to + begin, from, end - begin);
    memset(to + end, r->zero, (size_t)word_pitch(p) - end);
}

/* All that rows from .. to-1 of a plane of the output read. */
static void hold(rows *r, int64_t plane, int64_t from, int64_t to)
{
    const ortc_window_extents *e = &r->p->extents;
    const int64_t first = from * e->stride[1] - e->pad[1],
                  last = (to - 1) * e->stride[1] - e->pad[1] + (e->kernel[1] - 1) * e->dilation[1] + 1,
                  begin = first > r->have ? first : r->have, end = last < e->in[1] ? last : e->in[1];
    const int64_t pixel = pixel_of(r->p), width = r->p->width, left = clamp(e->pad[2], 0, width),
                  right = clamp(left + e->in[2], 0, width);
    for (int64_t d = 0; d < e->kernel[0]; d++) {
        const int64_t in_plane = plane * e->stride[0] - e->pad[0] + d * e->dilation[0];
        if (in_plane < 0 || in_plane >= e->in[0]) continue;
        for (int64_t row = begin < 0 ? 0 : begin; row < end; row++) {
            if (r->p->by_words) {
                hold_bytes(r, d, in_plane, row, left, right);
                continue;
            }
            float *dst = (float *)(uintptr_t)row_of(r, d, in_plane, row);
            memset(dst, 0, (size_t)(left * pixel) * sizeof *dst);
            const char *bytes = r->x + (in_plane * e->in[1] + row) * row_floats(r) * r->p->size;
            float *inside = dst + left * pixel;
            if (r->p->type == ORTC_BLOCKED_BYTES)
                r->p->uk->widen_bytes((size_t)((right - left) * ORTC_BLOCK), bytes, r->p->is_signed, r->zero,
                                      inside);
            else
                r->p->uk->widen[r->p->type]((size_t)((right - left) * r->p->wide), bytes, ORTC_BLOCK, inside);
            memset(dst + right * pixel, 0, (size_t)((width - right) * pixel) * sizeof *dst);
        }
    }
    if (end > r->have) r->have = end;
}

/* The lines of the windows of rows from .. to-1 of the output, in this block's image; NULL: beside it. */
static void find_lines(const rows *x, int64_t plane, int64_t from, int64_t to, const char **line)
{
    const ortc_window_extents *e = &x->p->extents;
    for (int64_t row = from; row < to; row++)
        for (int64_t d = 0; d < e->kernel[0]; d++)
            for (int64_t r = 0; r < e->kernel[1]; r++) {
                const int64_t in_plane = plane * e->stride[0] - e->pad[0] + d * e->dilation[0],
                              in_row = row * e->stride[1] - e->pad[1] + r * e->dilation[1];
                const int inside = in_plane >= 0 && in_plane < e->in[0] && in_row >= 0 && in_row < e->in[1];
                *line++ = inside ? row_of(x, d, in_plane, in_row) : x->beside;
            }
}

/* Tasks are numbered [image][part][plane][row task], or [row task][image][part][plane]. */
static void body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_blocked_depthwise_plan *p = j->p;
    const ortc_window_extents *e = &p->extents;
    const int straight = j->end.straight, clips = p->halves && ortc_blocked_end_clips(&j->end),
              clip = (straight || clips) && j->a->tail->act == ORTC_UK_ACT_CLIP;
    const float lo = clip ? j->a->tail->lo : -INFINITY, hi = clip ? j->a->tail->hi : INFINITY;
    const int64_t pixel = pixel_of(p), width = e->out[2], x_pixel = pixel * (p->halves ? 2 : 4);
    const char **line = scratch;
    const size_t lines = (size_t)(e->kernel[0] * e->kernel[1]);
    ortc_blocked_column *column = (ortc_blocked_column *)(void *)(line + (size_t)p->some * lines);
    float *sums = (float *)(void *)(column + e->kernel[2]);
    ortc_blocked_windows w = {.lines = lines,
                              .line = line,
                              .step = e->stride[2] * x_pixel,
                              .each = (size_t)p->each,
                              .blocks = (size_t)p->wide,
                              .lo = lo,
                              .hi = hi};
    find_columns(p, x_pixel, column, &w);
    for (int64_t i = begin; i < end; i++) {
        const int64_t all = p->images * p->parts * e->out[0]; /* planes */
        const int64_t first = (p->by_rows ? i / all : i % p->row_tasks) * p->rows,
                      rest = p->by_rows ? i % all : i / p->row_tasks;
        const int64_t plane = rest % e->out[0], part = rest / e->out[0]; /* of all images */
        const int64_t b = part % p->parts, last = first + p->rows < e->out[1] ? first + p->rows : e->out[1];
        const size_t lanes = p->wide > 1         ? (size_t)p->channels
                             : b + 1 < p->blocks ? ORTC_BLOCK
                                                 : (size_t)((p->channels - 1) % ORTC_BLOCK + 1);
        rows x = {.p = p,
                  .x = (const char *)j->a->x + part * p->in_count * pixel * p->size,
                  .zero = p->is_signed ? (int8_t)j->a->zero : j->a->zero};
        if (p->held) x.held = (float *)(void *)((char *)scratch + p->at_held);
        ortc_blocked_words words = {.lines = lines,
                                    .columns = (size_t)e->kernel[2],
                                    .words = (size_t)p->words};
        if (p->by_words) {
            x.zero = j->a->zero;
            x.beside = (char *)x.held + e->kernel[0] * p->held * word_pitch(p);
            memset(x.beside, x.zero, (size_t)word_pitch(p));
            words.line = (const uint8_t *const *)(const void *)line;
            words.w = (const int8_t *)j->a->w + (size_t)b * lines * (size_t)p->words * 64;
            words.first = (const int32_t *)(const void *)j->a->bias + b * ORTC_BLOCK;
            words.step = (size_t)(e->stride[2] * ORTC_BLOCK);
            words.y = (int32_t *)(void *)sums;
        }
        w.w = (const float *)j->a->w + b * p->taps * p->each * ORTC_BLOCK,
        w.bias = j->a->bias + b * ORTC_BLOCK;
        w.half = clips && lanes == ORTC_BLOCK;
        if (p->halves) w.lo = w.half ? lo : -INFINITY, w.hi = w.half ? hi : INFINITY;
        const int64_t tile = straight ? width : p->tile;
        for (int64_t from = first, to; from < last; from = to) {
            to = from + p->some < last ? from + p->some : last;
            if (p->held) hold(&x, plane, from, to);
            find_lines(&x, plane, from, to, line);
            for (w.from = 0; w.from < width; w.from += tile) {
                const int64_t n = w.from + tile < width ? tile : width - w.from, count = (to - from) * n;
                const int64_t at = (part * p->out_count + (plane * e->out[1] + from) * width + w.from) *
                                   pixel;
                const int64_t bytes = at * p->size;
                const char *more = straight || w.half ? j->a->residual : NULL;
                w.y = straight || w.half ? (float *)(void *)((char *)j->a->y + bytes) : sums;
                w.residual = more ? (const float *)(const void *)(more + bytes) : NULL;
                if (p->by_words)
                    p->by_words(to - from, n, &words);
                else if (p->halves)
                    p->halves->run(to - from, n, &w);
                else
                    p->uk->depthwise(to - from, n, &w);
                if (p->type == ORTC_BLOCKED_BYTES) {
                    if (!p->by_words) p->uk->to_integers((size_t)(count * ORTC_BLOCK), sums);
                    ortc_blocked_finish_bytes(&j->end, (int32_t *)(void *)sums, count, b * ORTC_BLOCK, lanes,
                                              at);
                    continue;
                }
                if (!w.half) ortc_blocked_finish(&j->end, w.y, count, b * ORTC_BLOCK, lanes, at);
                if (j->a->sums)
                    p->uk->sum[p->type](to - from, n, (const char *)j->a->y + bytes,
                                        j->a->sums + (rest * e->out[1] + from) * ORTC_BLOCK);
            }
        }
    }
}

int32_t ortc_blocked_depthwise_run(const ortc_blocked_depthwise_plan *p, const ortc_blocked_args *a,
                                   const ortc_product_threads *threads)
{
    job j = {p, a, ortc_blocked_end_of(p->uk, p->type, a)};
    return threads->parallel(threads->context, p->images * p->parts * p->extents.out[0] * p->row_tasks,
                             p->grain, body, &j);
}

void ortc_blocked_depthwise_mean(const ortc_blocked_depthwise_plan *p, const float *sums, void *to)
{
    const int64_t all = p->extents.out[0] * p->extents.out[1];
    const float count = (float)p->out_count;
    char *y = to;
    for (int64_t b = 0; b < p->images * p->blocks; b++, y += p->size * ORTC_BLOCK) {
        float sum[ORTC_BLOCK] = {0};
        for (int64_t r = 0; r < all; r++, sums += ORTC_BLOCK)
            for (int i = 0; i < ORTC_BLOCK; i++) sum[i] += sums[i];
        for (int i = 0; i < ORTC_BLOCK; i++) sum[i] /= count;
        p->uk->narrow[p->type](1, sum, ORTC_BLOCK, y);
    }
}
