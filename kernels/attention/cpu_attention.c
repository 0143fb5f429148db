/* kernels/attention/cpu_attention.c: Attention on the cpu provider, in one pass over the keys; scores are
 * never stored beyond a block of keys (online softmax: Milakov and Gimelshein, arXiv 1805.02867; with tiles:
 * Dao et al., arXiv 2205.14135). f32, f16 and bf16, summed in f32.
 *
 * The queries of all heads that share a head of keys are rows of one matrix, position by position. A task is
 * a block of such rows, and walks over blocks of keys: scores, weights, values added up. Three ways:
 *
 *   tiles  K's block is turned and packed once for all rows of the task, V's is read where it lies (16-bit
 *          types: widened once); both products are gemm's micro-kernel of f32, over MR rows whose scores stay
 *          in L1;
 *   halves tiles of bf16 on a unit for such products (AMX), queries, keys and values being bf16: scores are
 *          f32, and weights rounded to bf16;
 *   dots   few rows (decoding): K and V are streamed once, where they lie.
 *
 * Few rows over many keys are cut at every SPLIT keys into tasks of their own, whose parts are put together
 * in order. Blocks, tasks and parts follow from the extents alone: results are the same bits on any number of
 * threads.
 *
 * What a row may see by its position (causal, windows, lengths) and what its mask hides at either end is one
 * range of keys, and outside of the ranges of a task's rows nothing is read: NaN and infinity there do not
 * show, unlike on ref. A row without such keys is 0. Left to others: the scores as an output, f64, masks of
 * integers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/attention/attend.h"
#include "kernels/attention/attention.h"
#include "kernels/gemm/product.h"

ORTC_VEC_TABLE(ortc_attend_vec)

enum {
    ROWS = 128, /* of a task at most: packing a block of keys costs as much as 4 rows of products */
    FEWEST_ROWS = 32,
    TASKS = 24,               /* enough for 8 threads to end together */
    HALVES_KEYS = 96,         /* fewer are sooner multiplied as f32 (49 of 32 elements: 0.88 of the speed) */
    DOT_ROWS = 4,             /* so few rows do not pay for packing keys */
    BLOCK = 256,              /* keys: MR rows of their scores are 14 KiB */
    SPLIT = 512,              /* keys of a task of few rows */
    BLOCK_BYTES = 512 * 1024, /* of a block's keys and values, and of a task's queries and results */
};
#define TASK_FLOPS_MAX 100e6 /* about a millisecond */

typedef struct attend_state {
    bool causal, has_scale;
    float scale, softcap;
    int64_t q_heads, kv_heads, left, right;
} attend_state;

/* A tensor of heads: bytes from one to the next of each dim; the elements of a head are dense. */
typedef struct heads {
    const char *data;
    int type; /* ORTC_FLOAT_* */
    int64_t batch, head, step;
} heads;

typedef struct attend_plan {
    const ortc_attend_vec *body;
    const ortc_convert *convert;
    const ortc_product_line *line;
    int64_t batch, n_heads, kv_heads, group, length, fresh, past, total, size, value_size;
    int64_t rows, blocks, splits; /* of one head of keys: rows, tasks of them, parts of the keys */
    int64_t most_rows, block;     /* of a task: rows, and keys at a time */
    bool dots, halves;
    /* bytes in a worker's scratch, */
    size_t at_seen, at_state, at_q, at_o, at_k, at_v, at_s, at_p, at_wide;
    /* and in the workspace, where keys are split: what parts give */
    size_t at_parts;
} attend_plan;

typedef struct attend_job {
    const attend_state *s;
    const attend_plan *p;
    const ortc_call *call;
    heads q, k, v, past_k, past_v, y;
    float scale;
    int mask_kind;
    int64_t mask_step[3], mask_count; /* elements, of batch, head and query; of its last dim */
} attend_job;

typedef struct range {
    int64_t begin, end;
} range;

/* A task at hand: where it is, and its scratch. */
typedef struct task {
    const attend_job *j;
    int64_t b, kv, first, rows;
    range *seen;            /* [rows] */
    ortc_attend_row *state; /* [rows] */
    float *q, *o;           /* [rows][size], as the products want it; [rows][value_size] */
    float *k, *v, *s, *p, *wide;
} task;

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
/* Where part i of n dealt evenly to `parts` begins. */
static int64_t dealt(int64_t n, int64_t parts, int64_t i) { return i * (n / parts) + min64(i, n % parts); }
static size_t bytes_of(int type) { return type == ORTC_FLOAT_F32 ? 4 : 2; }

/* ---- What a row may see -------------------------------------------------------------------------------- */

static bool has_input(const ortc_view *in, uint32_t n_in, uint32_t port)
{
    return port < n_in && in[port].dtype != ORTC_ABSENT;
}

/* The range that the position of query i of a batch allows: as ref, whatever nonpad_kv_seqlen says. */
static range by_position(const attend_job *j, int64_t b, int64_t i)
{
    const attend_state *s = j->s;
    const attend_plan *p = j->p;
    const ortc_view *in = j->call->in;
    int64_t valid = p->total, position = i + p->past;
    if (has_input(in, j->call->n_in, ORTC_ATTN_NONPAD)) {
        int64_t says;
        memcpy(&says, (const char *)in[ORTC_ATTN_NONPAD].data + b * 8, sizeof says);
        valid = min64(max64(says, 0), INT64_C(1) << 60);
        position = i + valid - p->length;
    }
    range r = {0, min64(valid, p->total)};
    if (s->causal) r.end = min64(r.end, position + 1);
    if (s->right >= 0 && s->right < p->total) r.end = min64(r.end, position + s->right + 1);
    if (s->left >= 0) r.begin = max64(0, position - min64(s->left, p->total));
    return r;
}

static bool is_hidden(const attend_job *j, const char *mask, int64_t key)
{
    uint32_t word = 0;
    switch (j->mask_kind) {
    case ORTC_MASK_F32: memcpy(&word, mask + 4 * key, 4); return word == 0xff800000;
    case ORTC_MASK_F16: memcpy(&word, mask + 2 * key, 2); return word == 0xfc00;
    case ORTC_MASK_BF16: memcpy(&word, mask + 2 * key, 2); return word == 0xff80;
    case ORTC_MASK_BOOL: return mask[key] == 0;
    default: return false;
    }
}

static const char *mask_of(const attend_job *j, int64_t b, int64_t head, int64_t i)
{
    const int64_t at = b * j->mask_step[0] + head * j->mask_step[1] + i * j->mask_step[2];
    const int64_t bytes = j->mask_kind == ORTC_MASK_BOOL ? 1 : (int64_t)bytes_of(j->mask_kind);
    if (j->mask_kind == ORTC_MASK_NONE) return NULL;
    return (const char *)j->call->in[ORTC_ATTN_MASK].data + at * bytes;
}

/* Without what the mask hides at either end: masks of padding, and causal ones that are given as tensors. */
static range without_ends(const attend_job *j, const char *mask, range r)
{
    const int64_t size = j->mask_kind == ORTC_MASK_BOOL ? 1 : (int64_t)bytes_of(j->mask_kind),
                  each = 8 / size;
    uint64_t hidden = j->mask_kind == ORTC_MASK_F32    ? UINT64_C(0xff800000ff800000)
                      : j->mask_kind == ORTC_MASK_F16  ? UINT64_C(0xfc00fc00fc00fc00)
                      : j->mask_kind == ORTC_MASK_BF16 ? UINT64_C(0xff80ff80ff80ff80)
                                                       : 0,
             word;
    if (!mask) return r;
    r.end = min64(r.end, j->mask_count);
    for (; r.end - r.begin >= each; r.end -= each) {
        memcpy(&word, mask + (r.end - each) * size, sizeof word);
        if (word != hidden) break;
    }
    while (r.end > r.begin && is_hidden(j, mask, r.end - 1)) r.end--;
    for (; r.end - r.begin >= each; r.begin += each) {
        memcpy(&word, mask + r.begin * size, sizeof word);
        if (word != hidden) break;
    }
    while (r.begin < r.end && is_hidden(j, mask, r.begin)) r.begin++;
    return r;
}

/* Row r of a head of keys is query r / group of head r % group. */
static int64_t head_of(const task *t, int64_t r) { return t->kv * t->j->p->group + r % t->j->p->group; }

/* The range of each row, within those keys; and of all. */
static range look(task *t, range keys)
{
    const attend_job *j = t->j;
    range all = {keys.end, keys.begin};
    for (int64_t r = 0; r < t->rows; r++) {
        const int64_t row = t->first + r, i = row / j->p->group;
        range seen = by_position(j, t->b, i);
        seen = (range){max64(seen.begin, keys.begin), min64(seen.end, keys.end)};
        seen = without_ends(j, mask_of(j, t->b, head_of(t, row), i), seen);
        if (seen.begin >= seen.end) seen = (range){keys.end, keys.end};
        t->seen[r] = seen;
        if (seen.begin == seen.end) continue;
        all = (range){min64(all.begin, seen.begin), max64(all.end, seen.end)};
    }
    return all;
}

/* ---- Where keys and values lie ------------------------------------------------------------------------- */

/* Key or value `at`; *count: how many follow each other from there on, at most `end`. */
static const char *find(const task *t, const heads *past, const heads *fresh, int64_t at, int64_t end,
                        int64_t *count)
{
    const int64_t p = t->j->p->past;
    const heads *h = at < p ? past : fresh;
    *count = (at < p ? min64(end, p) : end) - at;
    return h->data + t->b * h->batch + t->kv * h->head + (at < p ? at : at - p) * h->step;
}

/* Rows at..end of keys or values as f32, dense: where they lie, or in `space`. *ld: elements of a row. */
static const float *as_f32(const task *t, const heads *past, const heads *fresh, int64_t at, int64_t end,
                           int64_t size, float *space, size_t *ld)
{
    const attend_plan *p = t->j->p;
    int64_t count;
    const char *from = find(t, past, fresh, at, end, &count);
    const heads *h = at < p->past ? past : fresh;
    if (h->type == ORTC_FLOAT_F32 && count == end - at) {
        *ld = (size_t)h->step / 4;
        return (const float *)(const void *)from;
    }
    for (float *to = space; at < end; at += count) {
        from = find(t, past, fresh, at, end, &count);
        h = at < p->past ? past : fresh;
        for (int64_t i = 0; i < count; i++, to += size)
            p->convert->widen[h->type]((size_t)size, from + i * h->step, to);
    }
    *ld = (size_t)size;
    return space;
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

/* Rows of queries as the micro-kernel wants them, [size][mr] for each MR rows (dealt evenly). */
static void pack_queries(task *t)
{
    const attend_plan *p = t->j->p;
    const int64_t tiles = ceil_div(t->rows, p->line->a.width);
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t r0 = dealt(t->rows, tiles, i), mr = dealt(t->rows, tiles, i + 1) - r0;
        for (int64_t r = 0; r < mr; r++) {
            const int64_t row = t->first + r0 + r;
            p->convert->widen[t->j->q.type]((size_t)p->size,
                                            t->j->q.data + t->b * t->j->q.batch +
                                                head_of(t, row) * t->j->q.head +
                                                row / p->group * t->j->q.step,
                                            t->wide + r * p->size);
        }
        p->line->moves->transpose((size_t)mr, (size_t)p->size, t->wide, (size_t)p->size, t->q + r0 * p->size,
                                  (size_t)mr);
    }
}

/* Columns of a panel as it is stored. */
static int64_t panel_width(const ortc_product_line *line, int64_t columns)
{
    return ceil_div(min64(columns, line->b.width), line->b.step) * line->b.step;
}

/* Panel after panel of `width` keys, [size][keys]. */
static void pack_keys(task *t, int64_t at, int64_t end)
{
    const attend_plan *p = t->j->p;
    const int64_t width = p->line->b.width;
    for (float *to = t->k; at < end; at += width, to += width * p->size) {
        const int64_t n = min64(end - at, width);
        size_t ld;
        const float *from = as_f32(t, &t->j->past_k, &t->j->k, at, at + n, p->size, t->wide, &ld);
        p->line->moves->transpose((size_t)n, (size_t)p->size, from, ld, to, (size_t)panel_width(p->line, n));
    }
}

/* Scores of a row's keys become weights, others of the block 0. */
static void weigh(task *t, int64_t r, int64_t at, int64_t n, float *s)
{
    const attend_job *j = t->j;
    const attend_plan *p = j->p;
    const int64_t row = t->first + r;
    const int64_t begin = min64(max64(t->seen[r].begin - at, 0), n),
                  end = max64(min64(t->seen[r].end - at, n), begin);
    for (int64_t i = 0; i < begin; i++) s[i] = 0;
    for (int64_t i = end; i < n; i++) s[i] = 0;
    if (begin == end) return;
    const char *mask = mask_of(j, t->b, head_of(t, row), row / p->group);
    if (mask) mask += (at + begin) * (j->mask_kind == ORTC_MASK_BOOL ? 1 : (int64_t)bytes_of(j->mask_kind));
    const float by = p->body->weigh((size_t)(end - begin), s + begin, mask, j->mask_kind, j->s->softcap,
                                    &t->state[r]);
    if (by != 1) p->body->scale((size_t)p->value_size, t->o + r * p->value_size, by);
}

/* What rows r0.. see of the keys at..end, all in all. */
static range seen_by(const task *t, int64_t r0, int64_t mr, int64_t at, int64_t end)
{
    range seen = {end, at};
    for (int64_t r = r0; r < r0 + mr; r++)
        if (t->seen[r].begin < t->seen[r].end)
            seen = (range){min64(seen.begin, t->seen[r].begin), max64(seen.end, t->seen[r].end)};
    return seen;
}

/* Rows r0.. with the keys at..end, whose packed panels and values are these. */
static void tile_block(task *t, int64_t r0, int64_t mr, int64_t at, int64_t end, const float *v, size_t ldv)
{
    const attend_plan *p = t->j->p;
    const ortc_product_line *line = p->line;
    const ortc_uk_tail_f32 tail = {.alpha = t->j->scale, .beta = 1, .act = ORTC_UK_ACT_NONE};
    const range seen = seen_by(t, r0, mr, at, end);
    const int64_t n = min64(end, seen.end) - at;
    if (n <= 0 || seen.begin >= end) return;
    for (int64_t c = 0; c < n; c += line->b.width) {
        const int64_t nr = min64(n - c, line->b.width),
                      ld = panel_width(line, min64(end - at - c, line->b.width));
        line->tile((size_t)mr, (size_t)nr, (size_t)p->size, t->q + r0 * p->size, t->k + c * p->size,
                   (size_t)ld, t->s + c, (size_t)p->block, 0, &tail, NULL);
    }
    for (int64_t r = 0; r < mr; r++) weigh(t, r0 + r, at, n, t->s + r * p->block);
    line->moves->transpose((size_t)mr, (size_t)n, t->s, (size_t)p->block, t->p, (size_t)mr);
    for (int64_t c = 0; c < p->value_size; c += line->b.width) {
        const int64_t nr = min64(p->value_size - c, line->b.width);
        line->tile((size_t)mr, (size_t)nr, (size_t)n, t->p, v + c, ldv, t->o + r0 * p->value_size + c,
                   (size_t)p->value_size, ORTC_UK_ACCUMULATE | ORTC_UK_B_EXACT, NULL, NULL);
    }
}

static void tiles(task *t, range keys)
{
    const attend_plan *p = t->j->p;
    const int64_t n_tiles = ceil_div(t->rows, p->line->a.width);
    pack_queries(t);
    for (int64_t at = keys.begin; at < keys.end; at += p->block) {
        const int64_t end = min64(keys.end, at + p->block);
        size_t ldv;
        pack_keys(t, at, end);
        const float *v = as_f32(t, &t->j->past_v, &t->j->v, at, end, p->value_size, t->v, &ldv);
        for (int64_t i = 0; i < n_tiles; i++) {
            const int64_t r0 = dealt(t->rows, n_tiles, i);
            tile_block(t, r0, dealt(t->rows, n_tiles, i + 1) - r0, at, end, v, ldv);
        }
    }
}

/* ---- Tiles of bf16 ------------------------------------------------------------------------------------- */

enum { GROUP = 32 }; /* elements of k that lie together */
static int64_t in_groups(int64_t n) { return ceil_div(n, GROUP) * GROUP; }

/* Rows at..end of keys or values, which follow each other: where they lie, or in `space`. *step: bytes. */
static const char *as_rows(const task *t, const heads *past, const heads *fresh, int64_t at, int64_t end,
                           int64_t size, char *space, int64_t *step)
{
    int64_t count;
    const char *from = find(t, past, fresh, at, end, &count);
    *step = at < t->j->p->past ? past->step : fresh->step;
    if (count == end - at) return from;
    for (char *to = space; at < end; at += count) {
        from = find(t, past, fresh, at, end, &count);
        for (int64_t i = 0; i < count; i++, to += size * 2)
            memcpy(to, from + i * (at < t->j->p->past ? past->step : fresh->step), (size_t)size * 2);
    }
    *step = size * 2;
    return space;
}

/* Rows of queries, [group][mr][GROUP] for each MR rows. */
static void halve_queries(task *t)
{
    const attend_plan *p = t->j->p;
    const int64_t tiles = ceil_div(t->rows, p->line->a.width), padded = in_groups(p->size);
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t r0 = dealt(t->rows, tiles, i), mr = dealt(t->rows, tiles, i + 1) - r0;
        char *to = (char *)t->q + r0 * padded * 2;
        for (int64_t r = 0; r < mr; r++) {
            const int64_t row = t->first + r0 + r;
            const char *from = t->j->q.data + t->b * t->j->q.batch + head_of(t, row) * t->j->q.head +
                               row / p->group * t->j->q.step;
            for (int64_t k = 0; k < p->size; k += GROUP) {
                const size_t have = (size_t)min64(GROUP, p->size - k) * 2;
                if (have == GROUP * 2) { /* one move */
                    memcpy(to + (k * mr + r * GROUP) * 2, from + k * 2, GROUP * 2);
                    continue;
                }
                memcpy(to + (k * mr + r * GROUP) * 2, from + k * 2, have);
                memset(to + (k * mr + r * GROUP) * 2 + have, 0, GROUP * 2 - have);
            }
        }
    }
}

/* Panel after panel of keys, [pair of elements][keys][2]: words change places. */
static void halve_keys(task *t, int64_t at, int64_t end)
{
    const attend_plan *p = t->j->p;
    const int64_t width = p->line->b.width, words = p->size / 2, padded = in_groups(p->size) / 2;
    for (float *to = t->k; at < end; at += width, to += width * padded) {
        const int64_t n = min64(end - at, width), panel = panel_width(p->line, n);
        int64_t step;
        const char *from = as_rows(t, &t->j->past_k, &t->j->k, at, at + n, p->size, (char *)t->wide, &step);
        p->line->moves->transpose((size_t)n, (size_t)words, (const float *)(const void *)from,
                                  (size_t)step / 4, to, (size_t)panel);
        memset(to + words * panel, 0, (size_t)((padded - words) * panel) * 4);
    }
}

/* Two rows of values, or one and zeros, [columns][2]. */
static void pair_up(int64_t n, const uint16_t *a, const uint16_t *b, uint16_t *to)
{
    for (int64_t i = 0; i < n; i++) to[2 * i] = a[i], to[2 * i + 1] = b[i];
}

/* Panel after panel of columns, [pair of keys][columns][2]. */
static void halve_values(task *t, int64_t at, int64_t end)
{
    const attend_plan *p = t->j->p;
    static const uint16_t none[GROUP];
    const int64_t width = p->line->b.width, keys = in_groups(end - at);
    int64_t step;
    const char *from = as_rows(t, &t->j->past_v, &t->j->v, at, end, p->value_size, (char *)t->wide, &step);
    uint16_t *to = (uint16_t *)(void *)t->v;
    for (int64_t c = 0; c < p->value_size; c += width) {
        const int64_t n = min64(p->value_size - c, width), panel = panel_width(p->line, n);
        for (int64_t k = 0; k < keys; k += 2, to += 2 * panel) {
            const char *row = from + k * step + c * 2;
            const uint16_t *a = at + k < end ? (const uint16_t *)(const void *)row : none,
                           *b = at + k + 1 < end ? (const uint16_t *)(const void *)(row + step) : none;
            if (n == 32) /* with vectors */
                pair_up(32, a, b, to);
            else
                pair_up(n, a, b, to), memset(to + 2 * n, 0, (size_t)(panel - n) * 4);
        }
    }
}

/* Rows r0.. with the keys at..end, whose panels and values are packed. */
static void halves_block(task *t, int64_t r0, int64_t mr, int64_t at, int64_t end)
{
    const attend_plan *p = t->j->p;
    const ortc_product_line *line = p->line;
    const ortc_uk_tail_f32 tail = {.alpha = t->j->scale, .beta = 1, .act = ORTC_UK_ACT_NONE};
    const int64_t padded = in_groups(p->size), width = line->b.width, keys = in_groups(end - at);
    const range seen = seen_by(t, r0, mr, at, end);
    const int64_t n = min64(end, seen.end) - at;
    if (n <= 0 || seen.begin >= end) return;
    for (int64_t c = 0; c < n; c += width)
        line->tile((size_t)mr, (size_t)min64(n - c, width), (size_t)(padded / GROUP),
                   (char *)t->q + r0 * padded * 2, (char *)t->k + c * padded * 2,
                   (size_t)panel_width(line, min64(end - at - c, width)), t->s + c, (size_t)p->block, 0,
                   &tail, NULL);
    for (int64_t r = 0; r < mr; r++) weigh(t, r0 + r, at, n, t->s + r * p->block);
    line->moves->pieces->runs((size_t)mr, (size_t)n, t->s, (size_t)p->block, 1, GROUP,
                              (uint16_t *)(void *)t->p, (size_t)mr);
    for (int64_t c = 0; c < p->value_size; c += width) {
        const int64_t nr = min64(p->value_size - c, width);
        line->tile((size_t)mr, (size_t)nr, (size_t)ceil_div(n, GROUP), t->p, (char *)t->v + c * keys * 2,
                   (size_t)panel_width(line, nr), t->o + r0 * p->value_size + c, (size_t)p->value_size,
                   ORTC_UK_ACCUMULATE, NULL, NULL);
    }
}

static void halves(task *t, range keys)
{
    const attend_plan *p = t->j->p;
    const int64_t n_tiles = ceil_div(t->rows, p->line->a.width);
    p->line->begin();
    halve_queries(t);
    for (int64_t at = keys.begin; at < keys.end; at += p->block) {
        const int64_t end = min64(keys.end, at + p->block);
        halve_keys(t, at, end);
        halve_values(t, at, end);
        for (int64_t i = 0; i < n_tiles; i++) {
            const int64_t r0 = dealt(t->rows, n_tiles, i);
            halves_block(t, r0, dealt(t->rows, n_tiles, i + 1) - r0, at, end);
        }
    }
    p->line->end();
}

/* ---- Dots ---------------------------------------------------------------------------------------------- */

static void dots(task *t, range keys)
{
    const attend_job *j = t->j;
    const attend_plan *p = j->p;
    int64_t count;
    for (int64_t r = 0; r < t->rows; r++) {
        const int64_t row = t->first + r;
        p->convert->widen[j->q.type]((size_t)p->size,
                                     j->q.data + t->b * j->q.batch + head_of(t, row) * j->q.head +
                                         row / p->group * j->q.step,
                                     t->q + r * p->size);
    }
    for (int64_t at = keys.begin; at < keys.end; at += p->block) {
        const int64_t end = min64(keys.end, at + p->block), n = end - at;
        for (int64_t i = at; i < end; i += count) {
            const char *k = find(t, &j->past_k, &j->k, i, end, &count);
            const heads *h = i < p->past ? &j->past_k : &j->k;
            p->body->dots[h->type]((size_t)t->rows, (size_t)count, (size_t)p->size, t->q, k,
                                   (size_t)h->step / bytes_of(h->type), j->scale, t->s + (i - at),
                                   (size_t)p->block);
        }
        for (int64_t r = 0; r < t->rows; r++) weigh(t, r, at, n, t->s + r * p->block);
        for (int64_t i = at; i < end; i += count) {
            const char *v = find(t, &j->past_v, &j->v, i, end, &count);
            const heads *h = i < p->past ? &j->past_v : &j->v;
            p->body->mix[h->type]((size_t)t->rows, (size_t)count, (size_t)p->value_size, t->s + (i - at),
                                  (size_t)p->block, v, (size_t)h->step / bytes_of(h->type), t->o);
        }
    }
}

/* ---- Tasks --------------------------------------------------------------------------------------------- */

/* A finished row: sums over their weight. */
static void finish(const attend_job *j, int64_t b, int64_t head, int64_t i, double sum, float *o)
{
    const attend_plan *p = j->p;
    char *y = (char *)(uintptr_t)j->y.data + b * j->y.batch + head * j->y.head + i * j->y.step;
    p->body->scale((size_t)p->value_size, o, sum == 0 ? 1 : (float)(1 / sum));
    p->convert->narrow[j->y.type]((size_t)p->value_size, o, y);
}

/* What the parts of the keys gave: sums and largest scores, [rows of all][splits], then [..][value_size]. */
typedef struct parts {
    ortc_attend_row *state;
    float *o;
} parts;
static parts parts_of(const attend_job *j)
{
    const attend_plan *p = j->p;
    char *at = (char *)j->call->workspace + p->at_parts;
    const size_t n = (size_t)(p->batch * p->kv_heads * p->rows * p->splits);
    return (parts){(ortc_attend_row *)(void *)at, (float *)(void *)(at + n * sizeof(ortc_attend_row))};
}

static void attend_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const attend_job *j = arg;
    const attend_plan *p = j->p;
    char *m = scratch;
    task t = {.j = j,
              .seen = (range *)(void *)(m + p->at_seen),
              .state = (ortc_attend_row *)(void *)(m + p->at_state),
              .q = (float *)(void *)(m + p->at_q),
              .o = (float *)(void *)(m + p->at_o),
              .k = (float *)(void *)(m + p->at_k),
              .v = (float *)(void *)(m + p->at_v),
              .s = (float *)(void *)(m + p->at_s),
              .p = (float *)(void *)(m + p->at_p),
              .wide = (float *)(void *)(m + p->at_wide)};
    for (int64_t i = begin; i < end; i++) {
        const int64_t part = i % p->splits, block = i / p->splits % p->blocks,
                      head = i / p->splits / p->blocks;
        t.b = head / p->kv_heads, t.kv = head % p->kv_heads;
        t.first = dealt(p->rows, p->blocks, block);
        t.rows = dealt(p->rows, p->blocks, block + 1) - t.first;
        const range keys = look(&t, (range){p->splits > 1 ? part * SPLIT : 0,
                                            p->splits > 1 ? min64(p->total, (part + 1) * SPLIT) : p->total});
        for (int64_t r = 0; r < t.rows; r++) t.state[r] = (ortc_attend_row){0, -INFINITY};
        memset(t.o, 0, (size_t)(t.rows * p->value_size) * sizeof(float));
        if (keys.begin < keys.end) {
            if (p->dots)
                dots(&t, keys);
            else if (p->halves)
                halves(&t, keys);
            else
                tiles(&t, keys);
        }
        const parts all = p->splits > 1 ? parts_of(j) : (parts){0};
        for (int64_t r = 0; r < t.rows; r++) {
            const int64_t row = t.first + r;
            float *o = t.o + r * p->value_size;
            if (p->splits == 1) {
                finish(j, t.b, head_of(&t, row), row / p->group, t.state[r].sum, o);
                continue;
            }
            const int64_t at = (head * p->rows + row) * p->splits + part;
            all.state[at] = t.state[r];
            memcpy(all.o + at * p->value_size, o, (size_t)p->value_size * sizeof(float));
        }
    }
}

/* The parts of a row, in order. */
static void join_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const attend_job *j = arg;
    const attend_plan *p = j->p;
    const parts all = parts_of(j);
    float *weights = scratch, *o = weights + p->splits;
    for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / p->rows, b = head / p->kv_heads, row = i % p->rows;
        const ortc_attend_row *state = all.state + i * p->splits;
        ortc_attend_row both = {0, -INFINITY};
        double sum = 0;
        for (int64_t k = 0; k < p->splits; k++) weights[k] = state[k].most;
        p->body->weigh((size_t)p->splits, weights, NULL, ORTC_MASK_NONE, 0, &both);
        for (int64_t k = 0; k < p->splits; k++) sum += (double)weights[k] * state[k].sum;
        memset(o, 0, (size_t)p->value_size * sizeof(float));
        p->body->mix[ORTC_FLOAT_F32](1, (size_t)p->splits, (size_t)p->value_size, weights, 0,
                                     all.o + i * p->splits * p->value_size, (size_t)p->value_size, o);
        finish(j, b, head % p->kv_heads * p->group + row % p->group, row / p->group, sum, o);
    }
}

/* present = past and fresh, one behind the other: keys or values of all heads. */
typedef struct present_job {
    const attend_job *j;
    const heads *past, *fresh;
    char *to;
    int64_t bytes; /* of one key or value */
} present_job;

static void present_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const present_job *c = arg;
    const attend_plan *p = c->j->p;
    (void)scratch;
    for (int64_t i = begin, n; i < end; i += n) {
        const int64_t head = i / p->total, at = i % p->total;
        const task t = {.j = c->j, .b = head / p->kv_heads, .kv = head % p->kv_heads};
        const char *from = find(&t, c->past, c->fresh, at, min64(p->total, at + end - i), &n);
        const heads *h = at < p->past ? c->past : c->fresh;
        if (h->step == c->bytes)
            memcpy(c->to + i * c->bytes, from, (size_t)(n * c->bytes));
        else
            for (int64_t k = 0; k < n; k++)
                memcpy(c->to + (i + k) * c->bytes, from + k * h->step, (size_t)c->bytes);
    }
}

/* ---- Support and plan ---------------------------------------------------------------------------------- */

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    (void)device;
    if (ortc_node_n_out(n) > 3 && (ortc_node_out(n, 3).type || ortc_node_out(n, 3).edge))
        return ortc_no(why, "the scores are wanted, which are not stored here");
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    attend_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (attend_state){.causal = ortc_node_int(n, "is_causal", 0) != 0,
                        .has_scale = ortc_node_attr(n, "scale").kind == ORTC_ATTR_FLOAT,
                        .scale = ortc_node_float(n, "scale", 1),
                        .softcap = ortc_node_float(n, "softcap", 0),
                        .q_heads = ortc_node_int(n, "q_num_heads", 0),
                        .kv_heads = ortc_node_int(n, "kv_num_heads", 0),
                        .left = ortc_node_int(n, "left_window_size", -1),
                        .right = ortc_node_int(n, "right_window_size", -1)};
    *out = s;
    return ORTC_OK;
}

/* dims of [B, H, L, D] or [B, L, H * D] */
static heads view_heads(const ortc_view *v, int64_t n_heads, int64_t *length, int64_t *size)
{
    const bool packed = v->rank == 3;
    const int type = ortc_float_index(v->dtype);
    const int64_t bytes = (int64_t)bytes_of(type);
    const int64_t rows = v->dims[packed ? 1 : 2];
    const int64_t each = !packed ? v->dims[3] : n_heads > 0 ? v->dims[2] / n_heads : 0, line = each * bytes;
    *length = rows;
    *size = each;
    return (heads){v->data, type, rows * line * n_heads, packed ? line : rows * line,
                   packed ? line * n_heads : line};
}

/* The extents, and where things lie (in plan: without addresses). */
static void read_views(const attend_state *s, const ortc_view *in, uint32_t n_in, attend_plan *p,
                       attend_job *j)
{
    const bool packed = in[ORTC_ATTN_Q].rank == 3;
    int64_t ignored;
    p->batch = in[0].dims[0];
    p->n_heads = packed ? s->q_heads : in[ORTC_ATTN_Q].dims[1];
    p->kv_heads = packed ? s->kv_heads : in[ORTC_ATTN_K].dims[1];
    p->group = p->kv_heads > 0 ? p->n_heads / p->kv_heads : 1;
    j->q = view_heads(&in[ORTC_ATTN_Q], p->n_heads, &p->length, &p->size);
    j->k = view_heads(&in[ORTC_ATTN_K], p->kv_heads, &p->fresh, &p->size);
    j->v = view_heads(&in[ORTC_ATTN_V], p->kv_heads, &p->fresh, &p->value_size);
    p->past = 0;
    if (has_input(in, n_in, ORTC_ATTN_PAST_K)) {
        j->past_k = view_heads(&in[ORTC_ATTN_PAST_K], p->kv_heads, &p->past, &ignored);
        j->past_v = view_heads(&in[ORTC_ATTN_PAST_V], p->kv_heads, &p->past, &ignored);
    }
    p->total = p->past + p->fresh;
    p->rows = p->group * p->length;
}

/* Room for `count` elements of `bytes` behind *sum, at a whole line of cache. False: too many. */
static bool room(size_t *sum, size_t *at, int64_t count, size_t bytes)
{
    size_t n;
    *at = *sum;
    return !__builtin_mul_overflow((size_t)count, bytes, &n) && !__builtin_add_overflow(n, 63, &n) &&
           !__builtin_add_overflow(*sum, n & ~(size_t)63, sum);
}

static bool lay_out(attend_plan *p, size_t *workspace, size_t *scratch)
{
    const int64_t mr = p->dots ? p->most_rows : p->line->a.width, nr = p->line->b.width, key = p->block + nr;
    const int64_t wide = max64(mr, nr), all = p->batch * p->kv_heads * p->rows * p->splits;
    const int64_t packs = p->dots ? 0 : 1, size = p->halves ? in_groups(p->size) : p->size;
    const int64_t block = p->halves ? in_groups(p->block) : p->block;
    const int64_t values = p->halves ? in_groups(p->value_size) : p->value_size;
    size_t joins = 0, ignored;
    bool fits = room(scratch, &p->at_seen, p->most_rows, sizeof(range)) &&
                room(scratch, &p->at_state, p->most_rows, sizeof(ortc_attend_row)) &&
                room(scratch, &p->at_q, p->most_rows, (size_t)size * 4) &&
                room(scratch, &p->at_o, p->most_rows, (size_t)p->value_size * 4) &&
                room(scratch, &p->at_k, packs * key, (size_t)size * 4) &&
                room(scratch, &p->at_v, packs * block, (size_t)values * 4) &&
                room(scratch, &p->at_s, mr, (size_t)p->block * 4) &&
                room(scratch, &p->at_p, packs * mr, (size_t)block * 4) &&
                room(scratch, &p->at_wide, packs * max64(wide, p->halves && p->past ? p->block : 0),
                     (size_t)max64(p->size, p->value_size) * 4);
    if (!fits || p->splits == 1) return fits;
    fits = room(workspace, &p->at_parts, all, sizeof(ortc_attend_row) + (size_t)p->value_size * 4) &&
           room(&joins, &ignored, p->splits, 4) && room(&joins, &ignored, p->value_size, 4);
    if (joins > *scratch) *scratch = joins;
    return fits;
}

/* The product of f32 that reads B where it lies: the best that this machine has. */
static const ortc_product_line *plain_line(void)
{
    for (size_t i = 0; i + 1 < ortc_product_line_count; i++) {
        const ortc_product_line *l = &ortc_product_lines[i];
        const uint32_t can = ORTC_LINE_TAIL | ORTC_LINE_DIRECT;
        if (!(l->isa & ~ortc_cpu_features()) && l->a.type == ORTC_F32 && l->b.type == ORTC_F32 &&
            l->a.planes == 1 && l->a.group == 1 && (l->can & can) == can)
            return l;
    }
    return &ortc_product_lines[ortc_product_line_count - 1];
}

/* Whether tiles of bf16 do: *line is theirs then. */
static bool by_halves(const attend_plan *p, const attend_job *j, const ortc_product_line **line)
{
    const ortc_product_line *l = ortc_product_select(ORTC_BF16, ORTC_BF16);
    const bool all = j->q.type == ORTC_FLOAT_BF16 && j->k.type == ORTC_FLOAT_BF16 &&
                     j->v.type == ORTC_FLOAT_BF16;
    if (p->dots || p->total < HALVES_KEYS || !all || !l || l->a.group != GROUP || !l->begin || p->size % 2 ||
        p->value_size == 0)
        return false;
    *line = l;
    return true;
}

static ortc_status plan(const void *state, ortc_plan *c, void **out)
{
    attend_job j = {0};
    size_t workspace = 0, scratch = 0;
    attend_plan *p = calloc(1, sizeof *p);
    if (!p) return ortc_plan_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    read_views(state, c->in, c->n_in, p, &j);
    p->body = ortc_attend_vec_select();
    p->convert = ortc_convert_get();
    p->line = plain_line();
    p->dots = p->rows <= DOT_ROWS;
    p->halves = by_halves(p, &j, &p->line);
    p->splits = p->rows <= FEWEST_ROWS && p->total > SPLIT ? ceil_div(p->total, SPLIT) : 1;
    /* rows of a task: few enough for L2, for a millisecond, and for threads to share */
    const double each = 2.0 * (double)(p->size + p->value_size), row = each * (double)p->total;
    const int64_t heads_of_keys = p->batch * p->kv_heads, elements = max64(p->size + p->value_size, 1);
    int64_t most = min64(ROWS, BLOCK_BYTES / 4 / elements);
    if (row > 0 && TASK_FLOPS_MAX / row < (double)most) most = (int64_t)(TASK_FLOPS_MAX / row);
    if (heads_of_keys > 0) most = min64(most, ceil_div(p->rows, ceil_div(TASKS, heads_of_keys)));
    most = max64(most, FEWEST_ROWS);
    p->blocks = max64(ceil_div(p->rows, most), 1);
    p->most_rows = ceil_div(p->rows, p->blocks);
    p->block = min64(BLOCK, max64(BLOCK_BYTES / 4 / elements, 64) / 32 * 32);
    p->block = min64(p->block, max64(p->total, 1));
    if (!lay_out(p, &workspace, &scratch)) {
        free(p);
        return ortc_plan_fail(c, ORTC_LIMIT, "the heads do not fit in memory");
    }
    *out = p;
    ortc_plan_workspace(c, workspace, scratch);
    ortc_plan_cost(c, row * (double)p->rows * (double)heads_of_keys, 0);
    return ORTC_OK;
}

/* ---- Run ----------------------------------------------------------------------------------------------- */

static void read_mask(attend_job *j)
{
    const ortc_view *m = &j->call->in[ORTC_ATTN_MASK];
    j->mask_kind = ORTC_MASK_NONE;
    if (!has_input(j->call->in, j->call->n_in, ORTC_ATTN_MASK)) return;
    j->mask_kind = m->dtype == ORTC_BOOL ? ORTC_MASK_BOOL : ortc_float_index(m->dtype);
    int64_t step = j->mask_count = m->dims[m->rank - 1];
    for (int32_t d = m->rank - 2, at = 2; d >= 0; d--, at--) {
        j->mask_step[at] = m->dims[d] == 1 ? 0 : step;
        step *= m->dims[d];
    }
}

/* Keys or values for a chunk: some tens of KiB. */
static ortc_status copy_present(attend_job *j, uint32_t port, const heads *past, const heads *fresh,
                                int64_t size)
{
    ortc_call *c = (ortc_call *)(uintptr_t)j->call;
    const attend_plan *p = j->p;
    if (port >= c->n_out || !c->out[port].dtype || ortc_view_count(&c->out[port]) == 0) return ORTC_OK;
    present_job copy = {j, past, fresh, c->out[port].data, size * (int64_t)bytes_of(fresh->type)};
    return ortc_parallel(c, p->batch * p->kv_heads * p->total, max64(1, 65536 / max64(copy.bytes, 1)),
                         present_chunk, &copy);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const attend_state *s = state;
    const attend_plan *p = pstate;
    attend_plan again; /* extents, which plan has */
    attend_job j = {.s = s, .p = p, .call = c};
    int64_t ignored;
    read_views(s, c->in, c->n_in, &again, &j);
    j.scale = s->has_scale ? s->scale : (float)(1 / sqrt((double)p->size));
    read_mask(&j);
    ORTC_TRY(copy_present(&j, 1, &j.past_k, &j.k, p->size));
    ORTC_TRY(copy_present(&j, 2, &j.past_v, &j.v, p->value_size));
    const int64_t heads_of_keys = p->batch * p->kv_heads;
    if (!c->out[0].dtype || ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    j.y = view_heads(&c->out[0], p->n_heads, &ignored, &ignored);
    const double cost = (double)(p->size + p->value_size + 30) * (double)(p->total / p->splits + 1) *
                        (double)p->most_rows;
    ORTC_TRY(ortc_parallel(c, heads_of_keys * p->blocks * p->splits, max64(1, (int64_t)(500e3 / cost)),
                           attend_chunk, &j));
    if (p->splits == 1) return ORTC_OK;
    return ortc_parallel(c, heads_of_keys * p->rows, ortc_rows_grain(p->value_size * p->splits), join_chunk,
                         &j);
}

const ortc_kernel ortc_cpu_attention = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "attention.cpu",
                                        .supports = supports,
                                        .prepare = prepare,
                                        .plan = plan,
                                        .run = run};
