/* The loops of blocked.h: laying out, tiles. What they go by is blocked_plan.c, how results end
 * blocked_ends.c, their weights blocked_weights.c. */
#include "blocked.h"

#include <string.h>

#include "kernels/common/counts.h"
#include "kernels/gemm/product_uk.h"
#include "blocked_weights.h"
#include "seen.h"

#define PROGRAM 8     /* pixels of which a program does whole blocks */
#define MANY_PHASES 8 /* of a row, from where on they are turned at once */

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
    float *stage, *sums, *line, *wide;
    int64_t second;      /* of pairs of a plain image: bytes to the second channel; 0: there is none */
    int64_t lane, lanes; /* of uneven groups: the first channel's of a block of x; how many are laid out */
    int64_t *places;     /* of what is taken once more */
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

/* n pixels of a block of an uneven group, `step` bytes apart, from one block of x and the next. */
static void lay_lanes(const task *t, const char *from, size_t step, int64_t n, float *dst)
{
    const int64_t first = min64(t->lanes, ORTC_BLOCK - t->lane), rest = t->lanes - first, f32 = sizeof *dst;
    const size_t to_step = (size_t)(ORTC_BLOCK * f32);
    ortc_block_move((char *)dst, to_step, from + t->lane * f32, step, n, (size_t)(first * f32));
    if (rest > 0)
        ortc_block_move((char *)(dst + first), to_step, from + t->j->p->in_count * t->j->p->pixel, step, n,
                        (size_t)(rest * f32));
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
    else if (hi > lo && p->uneven)
        lay_lanes(t, from, (size_t)(s * p->pixel), hi - lo, dst + begin);
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
    phase phases[ORTC_BLOCKED_STRIDE];
    for (int64_t q = 0; q < p->phases; q++) phases[q] = phase_of(t, q);
    for (int64_t g = g0; g < g1; g++) {
        int64_t at = (t->image * p->group + t->group) * planes + g * each;
        if (p->uneven) {
            const int64_t channel = t->group * p->channels + g * ORTC_BLOCK;
            at = t->image * ortc_blocks_of(p->group * p->channels) + channel / ORTC_BLOCK;
            t->lane = channel % ORTC_BLOCK, t->lanes = min64(p->channels - g * ORTC_BLOCK, ORTC_BLOCK);
        }
        t->second = each > 1 && g * each + 1 < planes ? p->in_count * p->pixel : 0;
        for (int64_t d = 0; d < p->e.kernel[0]; d++) {
            const int64_t plane = t->plane * p->e.stride[0] - p->e.pad[0] + d * p->e.dilation[0];
            const char *x = (const char *)t->j->a->x + (at * p->e.in[0] + plane) * p->e.in[1] * row_bytes;
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

/* Blocks g0 .. g1-1 of the task's image, as they lie. */
static void widen_image(task *t, int64_t g0, int64_t g1)
{
    const ortc_blocked_plan *p = t->j->p;
    const int64_t plane = p->in_count * ORTC_BLOCK, first = (t->image * p->group + t->group) * p->ins + g0;
    p->convert->widen[p->type]((size_t)((g1 - g0) * plane),
                               (const char *)t->j->a->x + first * p->in_count * p->pixel, t->stage);
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

/* Weights of groups from g on of block `block` of all groups. */
static const char *weights_at(const task *t, int64_t block, int64_t g)
{
    const ortc_blocked_plan *p = t->j->p;
    const int64_t element = t->j->a->floats
                                ? (int64_t)sizeof(float)
                                : ortc_blocked_element_bytes(p->type, p->pairs  ? ORTC_BLOCKED_PAIRS
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
    int64_t taps;       /* which a tile may have less of, and ask for more at each */
    int64_t block;      /* bytes to a second one's */
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
    return (ahead){weights_at(t, next, g), all, ceil_div(all, tiles), p->taps,
                   weights_at(t, 1, 0) - weights_at(t, 0, 0)};
}
static void ask(const ahead *a, int64_t k, ortc_blocked_tile *tile)
{
    tile->next = a->next + k * a->lines * (int64_t)tile->groups * a->taps * ORTC_BLOCKED_LINE;
    tile->next_lines = k * a->lines < a->all ? (size_t)ceil_div(a->lines * a->taps, (int64_t)tile->taps) : 0;
    tile->next_block = (size_t)a->block;
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
    ortc_block_move((char *)(y + lanes), ORTC_BLOCK * sizeof *y, NULL, 0, n,
                    (ORTC_BLOCK - lanes) * sizeof *y);
}

/* n neighbouring pixels of a row, from `at` of the task's on, and the taps that see anything there, which are
 * the same for all of them. */
typedef struct run {
    int64_t at, n;
    size_t taps; /* 0: all of them */
    int64_t first, tap[ORTC_BLOCKED_SEEN], offset[ORTC_BLOCKED_SEEN], jump[ORTC_BLOCKED_SEEN];
} run;

/* The pixels from `at` on that see the same columns of the window. */
static int64_t alike(const task *t, int64_t at)
{
    const ortc_blocked_plan *p = t->j->p;
    const ortc_window_extents *e = &p->e;
    int64_t n = t->pixels - at;
    if (!p->by_columns) return n;
    for (int64_t c = 0; c < e->kernel[2]; c++) {
        const int64_t here = t->column + at - e->pad[2] + c * e->dilation[2], enters = -here,
                      leaves = e->in[2] - here;
        if (enters > 0) n = min64(n, enters);
        if (leaves > 0) n = min64(n, leaves);
    }
    return n;
}

/* Of a tap's weights for a block: of bytes as many lie in a word as make up for it. */
static int64_t tap_bytes_of(const ortc_blocked_plan *p)
{
    const int narrow = p->type == ORTC_FLOAT_F16 || p->type == ORTC_FLOAT_BF16;
    return p->step * ORTC_BLOCK * (narrow ? 2 : 4);
}

/* Taps beside the image are left out where whole rows, or many pixels of them, have them there. */
static void find_run(const task *t, int64_t row, int64_t at, run *r)
{
    const ortc_blocked_plan *p = t->j->p;
    const ortc_window_extents *e = &p->e;
    const int64_t columns = e->kernel[2], tap_bytes = tap_bytes_of(p);
    r->at = at, r->n = t->pixels - at, r->taps = 0, r->first = 0;
    if (!p->leaves_out && !p->far) return;
    r->n = alike(t, at);
    int64_t first[3], end[3], last = 0;
    const int64_t from[3] = {t->plane * e->stride[0] - e->pad[0], (t->row + row) * e->stride[1] - e->pad[1],
                             t->column + at - e->pad[2]};
    for (int i = 0; i < 3; i++) ortc_taps_seen(e, i, from[i], from[i], &first[i], &end[i]);
    if (!p->by_columns) first[2] = 0, end[2] = columns;
    if (!p->far && end[0] - first[0] == e->kernel[0] && end[1] - first[1] == e->kernel[1] &&
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
                r->tap[r->taps] = tap;
                r->offset[r->taps++] = p->offset[tap];
                last = tap;
            }
    if (r->taps) r->jump[r->taps - 1] = (p->taps - last + r->first) * tap_bytes;
}

/* What sums of bytes begin with where these taps alone are added up. */
static void first_of(const ortc_blocked_plan *p, const run *r, const int32_t *firsts, int64_t block,
                     int64_t blocks, int32_t *to)
{
    memset(to, 0, (size_t)(blocks * ORTC_BLOCK) * sizeof *to);
    for (int64_t b = 0; firsts && b < blocks; b++, to += ORTC_BLOCK)
        for (size_t k = 0; k < r->taps; k++) {
            const int32_t *from = firsts + ((block + b) * p->taps + r->tap[k]) * ORTC_BLOCK;
            for (int i = 0; i < ORTC_BLOCK; i++) to[i] += from[i];
        }
}

/* Blocks of output over a chunk of input: what is the same in all rows of a task. */
typedef struct pass {
    int64_t g0, block, blocks; /* of the chunk the first; blocks of all groups */
    size_t lanes[ORTC_BLOCKED_BLOCKS];
    int last, few, half, straight, apart; /* straight: sums are added up where results belong; else in
                                             scratch, apart: those of some tiles, which stay in L1 */
    int64_t most, size;                   /* pixels of a tile, bytes of an element of y */
    ortc_blocked_tile_fn *all, *some;
    ortc_blocked_tile tile; /* but for where it reads and writes */
    ahead next;
    int64_t asked;                  /* tiles that have asked for it */
    int64_t n, tiles, each, longer; /* how a run of n pixels is cut in tiles */
    int64_t room, held, at;         /* pixels that may be apart, that are, and the first one's place in y */
} pass;

/* The first channel of block `block` of all groups. */
static int64_t channel_of(const task *t, int64_t block)
{
    const ortc_blocked_plan *p = t->j->p;
    return p->uneven ? t->group * p->filters + (block - t->group * p->outs) * ORTC_BLOCK : block * ORTC_BLOCK;
}

static void begin_pass(const task *t, int64_t plane, int64_t g0, int64_t g1, int64_t block, int64_t blocks,
                       pass *s)
{
    const job *j = t->j;
    const ortc_blocked_plan *p = j->p;
    const int leaves_out = p->in_place && p->leaves_out, last = g1 == p->ins,
              few = blocks == 1 && ortc_blocked_has_half(p) && block % p->outs + 1 == p->outs && !leaves_out,
              half = j->half && last, straight = j->end.straight || half, joined = t->pixels == p->e.out[2],
              apart = p->uneven || (!straight && p->chunks == 1);
    const int64_t most = (int64_t)(few ? p->uk->half_pixels : p->uk->most_pixels),
                  room = min64(p->held, joined ? t->rows * t->pixels : t->pixels),
                  kept_block = (p->chunks > 1 ? t->rows : 1) * t->pixels * ORTC_BLOCK,
                  y_block = apart      ? room * ORTC_BLOCK
                            : straight ? p->out_count * ORTC_BLOCK
                                       : kept_block;
    *s = (pass){.g0 = g0,
                .block = block,
                .blocks = blocks,
                .last = last,
                .few = few,
                .half = half,
                .straight = straight,
                .apart = apart,
                .most = most,
                .size = half ? 2 : 4,
                .next = ahead_of(t, g0, g1, block, blocks, t->rows * ceil_div(t->pixels, most)),
                .room = room};
    for (int64_t b = 0; b < blocks; b++)
        s->lanes[b] = (block + b) % p->outs + 1 < p->outs ? ORTC_BLOCK : (size_t)p->lanes;
    s->all = p->pairs   ? p->stem ? p->pairs->stem : p->pairs->dense
             : p->bytes ? p->stem ? p->bytes->stem : p->bytes->dense
             : few      ? p->stem ? p->uk->half_stem : p->uk->half_dense
             : p->stem  ? p->uk->stem
                        : p->uk->dense[j->a->floats ? ORTC_FLOAT_F32 : p->type];
    s->some = few || p->pairs ? s->all : p->bytes ? p->bytes->some : p->uk->some[p->type];
    s->tile = (ortc_blocked_tile){.plane = plane,
                                  .far = p->far,
                                  .groups = (size_t)(g1 - g0),
                                  .depth = (size_t)(last ? p->depth : p->step),
                                  .w = weights_at(t, block, g0),
                                  .w_block = (size_t)(p->ins * p->taps * p->step * ORTC_BLOCK),
                                  .y_block = (size_t)y_block,
                                  .bias = g0 == 0 ? j->a->bias + channel_of(t, block) : NULL,
                                  .sums_block = (size_t)(half ? kept_block : y_block),
                                  .half = half,
                                  .clip = last && straight && j->a->tail->act == ORTC_UK_ACT_CLIP,
                                  .lo = straight ? j->a->tail->lo : 0,
                                  .hi = straight ? j->a->tail->hi : 0,
                                  .more = t->more};
    if (!t->wide) return;
    s->tile.wide = t->wide;
    s->tile.wide_block = s->tile.groups * (size_t)(p->taps * p->step * ORTC_BLOCK);
}

/* n pixels of a block of an uneven group, `at` elements into a block of y, end in its lanes of y. */
static void finish_lanes(const task *t, float *sums, int64_t n, int64_t channel, size_t lanes, int64_t at)
{
    const job *j = t->j;
    const int64_t channels = j->p->group * j->p->filters, blocks = ortc_blocks_of(channels),
                  lane = channel % ORTC_BLOCK;
    const size_t f32 = sizeof *sums, step = ORTC_BLOCK * f32,
                 unused = (size_t)(blocks * ORTC_BLOCK - channels),
                 first = (size_t)min64((int64_t)lanes, ORTC_BLOCK - lane);
    ortc_blocked_args here = *j->a;
    here.y = sums;
    ortc_blocked_end end = j->end;
    end.a = &here;
    ortc_blocked_finish(&end, sums, n, channel, lanes, 0);
    float *y = (float *)j->a->y + (t->image * blocks + channel / ORTC_BLOCK) * j->p->out_count * ORTC_BLOCK +
               at;
    ortc_block_move((char *)(y + lane), step, (const char *)sums, step, n, first * f32);
    if (lanes > first) {
        y += j->p->out_count * ORTC_BLOCK;
        ortc_block_move((char *)y, step, (const char *)(sums + first), step, n, (lanes - first) * f32);
    }
    if (unused && channel + (int64_t)lanes == channels)
        ortc_block_move((char *)(y + ORTC_BLOCK - unused), step, NULL, 0, n, unused * f32);
}

/* n pixels, the first of which is element `at` of y; their sums of a block, or bf16, from `sums` on, `block`
 * elements apart. */
static void finish(const task *t, const pass *s, char *sums, int64_t block, int64_t n, int64_t at)
{
    const job *j = t->j;
    for (int64_t b = 0; b < s->blocks; b++, sums += block * s->size, at += j->p->out_count * ORTC_BLOCK) {
        const int64_t channel = channel_of(t, s->block + b);
        if (j->p->uneven)
            finish_lanes(t, (float *)(void *)sums, n, channel, s->lanes[b],
                         at % (j->p->out_count * ORTC_BLOCK));
        else if (s->half)
            clear_beyond((uint16_t *)(void *)sums, n, s->lanes[b]);
        else if (j->p->bytes)
            ortc_blocked_finish_bytes(&j->end, (int32_t *)(void *)sums, n, channel, s->lanes[b], at);
        else
            ortc_blocked_finish(&j->end, (float *)(void *)sums, n, channel, s->lanes[b], at);
    }
}

/* The n first of the pixels that are held. */
static void let_go(const task *t, pass *s, int64_t n)
{
    const int64_t pitch = s->room * ORTC_BLOCK;
    finish(t, s, (char *)t->sums, pitch, n, s->at);
    s->held -= n, s->at += n * ORTC_BLOCK;
    for (int64_t b = 0; s->held > 0 && b < s->blocks; b++)
        memmove(t->sums + b * pitch, t->sums + b * pitch + n * ORTC_BLOCK,
                (size_t)(s->held * ORTC_BLOCK) * sizeof *t->sums);
}

/* A run of a row of the task. */
static void one_run(const task *t, pass *s, const run *r, const float *x, int64_t row)
{
    const job *j = t->j;
    const ortc_blocked_plan *p = j->p;
    const int64_t first = (t->image * p->group * p->outs + s->block) * p->out_count * ORTC_BLOCK +
                          ((t->plane * p->e.out[1] + t->row + row) * p->e.out[2] + t->column + r->at) *
                              ORTC_BLOCK;
    const int some_taps = r->taps && !s->few;
    float *kept = t->sums + (p->chunks > 1
                                 ? (((s->block - t->block) * t->rows + row) * t->pixels + r->at) * ORTC_BLOCK
                                 : 0);
    char *y = s->straight ? (char *)j->a->y + first * s->size : (char *)kept;
    const char *residual = s->last && s->straight ? j->a->residual : NULL;
    if (residual) residual += first * s->size;
    ortc_blocked_tile_fn *uk = some_taps ? s->some : s->all;
    ortc_blocked_tile tile = s->tile;
    tile.offset = some_taps ? r->offset : p->offset;
    tile.taps = some_taps ? r->taps : (size_t)p->taps;
    tile.jump = r->jump;
    if (some_taps) tile.w = (const char *)tile.w + r->first * tap_bytes_of(p);
    int32_t first_sums[ORTC_BLOCKED_BLOCKS * ORTC_BLOCK];
    if (p->bytes && some_taps && (int64_t)r->taps < p->taps && s->g0 == 0) {
        first_of(p, r, j->a->first, s->block, s->blocks, first_sums);
        tile.bias = (const float *)(const void *)first_sums;
    }
    if (s->n != r->n) {
        s->n = r->n, s->tiles = ceil_div(r->n, s->most);
        s->each = r->n / s->tiles, s->longer = r->n % s->tiles;
    }
    for (int64_t i = 0, at = 0, n; i < s->tiles; i++, at += n) {
        n = s->each + (i < s->longer);
        tile.x = x + (r->at + at) * p->step;
        if (s->next.next) ask(&s->next, s->asked++, &tile);
        if (t->wide && (row > 0 || at > 0)) {
            tile.w = t->wide, tile.w_block = tile.wide_block, tile.wide = NULL;
            uk = p->uk->dense[ORTC_FLOAT_F32];
        }
        tile.y = (float *)(void *)(y + at * ORTC_BLOCK * s->size);
        if (s->apart) {
            if (s->held + n > s->room) let_go(t, s, s->held / PROGRAM * PROGRAM);
            if (s->held == 0) s->at = first + at * ORTC_BLOCK;
            tile.y = t->sums + s->held * ORTC_BLOCK;
            s->held += n;
        }
        tile.sums = s->half ? kept + at * ORTC_BLOCK : tile.y;
        if (residual) tile.residual = (const float *)(const void *)(residual + at * ORTC_BLOCK * s->size);
        uk((size_t)n, (size_t)s->blocks, &tile);
    }
    if (s->last && !s->apart) finish(t, s, y, (int64_t)tile.y_block, r->n, first);
}

/* One row of the task. Results of several are finished together where they are neighbours in y. */
static void one_row(const task *t, pass *s, const float *x, int64_t row)
{
    run r;
    for (int64_t at = 0; at < t->pixels; at += r.n) {
        find_run(t, row, at, &r);
        one_run(t, s, &r, x, row);
    }
    if (s->held && (row + 1 == t->rows || t->pixels != t->j->p->e.out[2])) let_go(t, s, s->held);
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
            const int64_t before = p->widened ? 0 : (t->image * p->group + t->group) * p->ins + g0;
            if (p->widened) widen_image(t, g0, g1);
            x = (const float *)((uintptr_t)(p->widened ? t->stage : t->j->a->x) +
                                (uintptr_t)(before * plane + pixel * p->step) * sizeof *x);
        } else {
            if (p->flat && g0 > 0) t->rows = t->pixels / p->segment, t->pixels = p->segment;
            fill_stage(t, g0, g1);
            if (p->flat) t->pixels *= t->rows, t->rows = 1;
        }
        for (int64_t b = 0; b < t->blocks; b += wide) {
            const int64_t n = min64(wide, t->blocks - b);
            pass s;
            if (t->j->more.word) take_more(t, t->block + b, n, g0, g1, plane);
            begin_pass(t, plane, g0, g1, t->block + b, n, &s);
            for (int64_t r = 0; r < t->rows; r++) one_row(t, &s, x + r * row, r);
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
        t.wide = p->wide >= 0 && !j->a->floats ? space + p->wide : NULL;
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

/* ---- What sums of bytes begin with --------------------------------------------------------------------- */

size_t ortc_blocked_first_bytes(const ortc_blocked_plan *p)
{
    return (size_t)(p->group * p->outs * (p->leaves_out ? 1 + p->taps : 1)) * ORTC_BLOCK * sizeof(int32_t);
}

void ortc_blocked_first(const ortc_blocked_plan *p, int32_t zero, const int32_t *tap_sums, void *space,
                        ortc_blocked_args *a)
{
    const int64_t n = p->group * p->outs * ORTC_BLOCK;
    const int32_t *sums = (const int32_t *)(const void *)((const char *)a->w +
                                                          ortc_blocked_word_bytes(p->group * p->outs, p->ins,
                                                                                  p->taps, p->step));
    int32_t *first = space, *of_taps = first + n;
    for (int64_t i = 0; i < n; i++) first[i] = -zero * sums[i];
    a->zero = (uint8_t)zero;
    a->bias = (const float *)(const void *)first;
    a->first = p->leaves_out && zero ? of_taps : NULL;
    for (int64_t i = 0; a->first && i < n * p->taps; i++) of_taps[i] = -zero * tap_sums[i];
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
