/* kernels/attention/cpu_attention.c: Attention on the cpu provider, in one pass over the keys; scores are
 * never stored beyond a block of keys (online softmax: Milakov and Gimelshein, arXiv 1805.02867; with tiles:
 * Dao et al., arXiv 2205.14135). f32, f16 and bf16, summed in f32.
 *
 * The queries of all heads that share a head of keys are rows of one matrix, position by position. A task is
 * a block of such rows, and walks over blocks of keys: scores, weights, values added up. Four ways:
 *
 *   tiles  K's block is turned and packed once for all rows of the task, or of many tasks, V's is read where
 *          it lies (16-bit types: widened once); both products are gemm's micro-kernel of f32, over MR rows
 *          whose scores stay in L1;
 *   halves tiles of bf16 on a unit for such products (AMX), queries, keys and values being bf16: scores are
 *          f32, and weights rounded to bf16;
 *   pieces of other types on such a unit, as tiles, each f32 being a sum of three bf16;
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

#include "kernels/attention/attend_task.h"

ORTC_VEC_TABLE(ortc_attend_vec)

enum {
    ROWS = 128,        /* of a task at most: packing a block of keys costs as much as 4 rows of products, */
    HALVES_ROWS = 192, /* on units for products of more: */
    PIECES_MOST = 256,
    FEWEST_ROWS = 32,
    TASKS = 24,        /* enough for 8 threads to end together */
    HALVES_KEYS = 32,  /* a tile's width */
    PIECES_KEYS = 224, /* of fewer cutting costs what products gain */
    PIECES_ROWS = 16,
    LONGEST = 1024,           /* rows of queries that are cut */
    DOT_ROWS = 4,             /* so few rows do not pay for packing keys */
    BLOCK = 512,              /* keys: MR rows of their scores are 28 KiB */
    SPLIT = 512,              /* keys of a task of few rows */
    BLOCK_BYTES = 512 * 1024, /* of a block's keys and values, and of a task's queries and results */
    TOGETHER = 4,             /* tasks over the same keys find them packed, */
    TOGETHER_BYTES = 8 << 20, /* where they are no more */
};
#define TASK_FLOPS_MAX 100e6 /* about a millisecond */
#define LOOP_COST 100e3      /* scores times their sizes for a thread: some microseconds */

/* ---- Tasks --------------------------------------------------------------------------------------------- */

/* A finished row: sums over their weight. */
static void finish(const ortc_attend_job *j, int64_t b, int64_t head, int64_t i, double sum, const float *o)
{
    const ortc_attend_plan *p = j->p;
    char *y = (char *)(uintptr_t)j->y.data + b * j->y.batch + head * j->y.head + i * j->y.step;
    p->body->store[j->y.type]((size_t)p->value_size, o, sum == 0 ? 1 : (float)(1 / sum), y);
}

/* What the parts of the keys gave: sums and largest scores, [rows of all][splits], then [..][value_size]. */
typedef struct parts {
    ortc_attend_row *state;
    float *o;
} parts;
static parts parts_of(const ortc_attend_job *j)
{
    const ortc_attend_plan *p = j->p;
    char *at = (char *)j->call->workspace + p->at_parts;
    const size_t n = (size_t)(p->batch * p->kv_heads * p->rows * p->splits);
    return (parts){(ortc_attend_row *)(void *)at, (float *)(void *)(at + n * sizeof(ortc_attend_row))};
}

static void attend_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const ortc_attend_job *j = arg;
    const ortc_attend_plan *p = j->p;
    char *m = scratch;
    ortc_attend_task t = {.j = j,
                          .seen = (ortc_attend_range *)(void *)(m + p->at_seen),
                          .state = (ortc_attend_row *)(void *)(m + p->at_state),
                          .q = (float *)(void *)(m + p->at_q),
                          .o = (float *)(void *)(m + p->at_o),
                          .k = (float *)(void *)(m + p->at_k),
                          .v = (float *)(void *)(m + p->at_v),
                          .s = (float *)(void *)(m + p->at_s),
                          .p = (float *)(void *)(m + p->at_p),
                          .wide = (float *)(void *)(m + p->at_wide),
                          .cut_k = m + p->at_cut_k,
                          .cut_v = m + p->at_cut_v};
    const int by_unit = p->halves || p->pieces;
    if (by_unit) p->line->begin();
    for (int64_t i = begin; i < end; i++) {
        const int64_t part = i % p->splits, block = i / p->splits % p->blocks,
                      head = i / p->splits / p->blocks;
        t.b = head / p->kv_heads, t.kv = head % p->kv_heads;
        t.first = dealt(p->rows, p->blocks, block);
        t.rows = dealt(p->rows, p->blocks, block + 1) - t.first;
        const ortc_attend_range keys = ortc_attend_look(
            &t, (ortc_attend_range){p->splits > 1 ? part * SPLIT : 0,
                                    p->splits > 1 ? min64(p->total, (part + 1) * SPLIT) : p->total});
        for (int64_t r = 0; r < t.rows; r++) t.state[r] = (ortc_attend_row){0, -INFINITY};
        memset(t.o, 0, (size_t)(t.rows * p->value_size) * sizeof(float));
        if (keys.begin < keys.end) {
            if (p->dots)
                ortc_attend_dots(&t, keys);
            else if (p->halves)
                ortc_attend_halves(&t, keys);
            else if (p->pieces)
                ortc_attend_pieces(&t, keys);
            else
                ortc_attend_tiles(&t, keys);
        }
        const parts all = p->splits > 1 ? parts_of(j) : (parts){0};
        for (int64_t r = 0; r < t.rows; r++) {
            const int64_t row = t.first + r;
            float *o = t.o + r * p->value_size;
            if (p->splits == 1) {
                finish(j, t.b, ortc_attend_head_of(&t, row), ortc_attend_index_of(&t, row), t.state[r].sum,
                       o);
                continue;
            }
            const int64_t at = (head * p->rows + row) * p->splits + part;
            all.state[at] = t.state[r];
            memcpy(all.o + at * p->value_size, o, (size_t)p->value_size * sizeof(float));
        }
    }
    if (by_unit) p->line->end();
}

/* [head of keys][block of keys] */
static void pack_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const ortc_attend_job *j = arg;
    const ortc_attend_plan *p = j->p;
    const int64_t blocks = ceil_div(p->total, p->block);
    for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / blocks, at = i % blocks * p->block;
        ortc_attend_task t = {.j = j,
                              .b = head / p->kv_heads,
                              .kv = head % p->kv_heads,
                              .wide = (float *)(void *)((char *)scratch + p->at_wide)};
        ortc_attend_pack_keys(&t, at, min64(p->total, at + p->block),
                              ortc_attend_keys_at(j, head, i % blocks));
    }
}

/* The parts of a row, in order. */
static void join_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const ortc_attend_job *j = arg;
    const ortc_attend_plan *p = j->p;
    const parts all = parts_of(j);
    float *weights = scratch, *o = weights + p->splits;
    for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / p->rows, b = head / p->kv_heads, row = i % p->rows;
        const ortc_attend_row *state = all.state + i * p->splits;
        float most = -INFINITY;
        double sum = 0;
        for (int64_t k = 0; k < p->splits; k++) most = fmaxf(most, state[k].most);
        for (int64_t k = 0; k < p->splits; k++)
            weights[k] = most == -INFINITY ? 0 : exp2f(state[k].most - most);
        for (int64_t k = 0; k < p->splits; k++) sum += (double)weights[k] * state[k].sum;
        memset(o, 0, (size_t)p->value_size * sizeof(float));
        p->body->mix[ORTC_FLOAT_F32](1, (size_t)p->splits, (size_t)p->value_size, weights, 0,
                                     all.o + i * p->splits * p->value_size, (size_t)p->value_size, o);
        finish(j, b, head % p->kv_heads * p->group + row % p->group, row / p->group, sum, o);
    }
}

/* present = past and fresh, one behind the other: keys or values of all heads. */
typedef struct present_job {
    const ortc_attend_job *j;
    const ortc_attend_heads *past, *fresh;
    char *to;
    int64_t bytes; /* of one key or value */
} present_job;

static void present_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const present_job *c = arg;
    const ortc_attend_plan *p = c->j->p;
    (void)scratch;
    for (int64_t i = begin, n; i < end; i += n) {
        const int64_t head = i / p->total, at = i % p->total;
        const ortc_attend_task t = {.j = c->j, .b = head / p->kv_heads, .kv = head % p->kv_heads};
        const char *from = ortc_attend_find(&t, c->past, c->fresh, at, min64(p->total, at + end - i), &n);
        const ortc_attend_heads *h = at < p->past ? c->past : c->fresh;
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
    ortc_attend_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (ortc_attend_state){.causal = ortc_node_int(n, "is_causal", 0) != 0,
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
static ortc_attend_heads view_heads(const ortc_view *v, int64_t n_heads, int64_t *length, int64_t *size)
{
    const bool packed = v->rank == 3;
    const int type = ortc_float_index(v->dtype);
    const int64_t bytes = (int64_t)bytes_of(type);
    const int64_t rows = v->dims[packed ? 1 : 2];
    const int64_t each = !packed ? v->dims[3] : n_heads > 0 ? v->dims[2] / n_heads : 0, line = each * bytes;
    *length = rows;
    *size = each;
    return (ortc_attend_heads){v->data, type, rows * line * n_heads, packed ? line : rows * line,
                               packed ? line * n_heads : line};
}

/* The extents, and where things lie (in plan: without addresses). */
static void read_views(const ortc_attend_state *s, const ortc_view *in, uint32_t n_in, ortc_attend_plan *p,
                       ortc_attend_job *j)
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

static bool lay_out(ortc_attend_plan *p, size_t *workspace, size_t *scratch)
{
    const int64_t mr = p->dots ? p->most_rows : p->line->a.width, nr = p->line->b.width, key = p->block + nr;
    const int64_t wide = max64(mr, nr), all = p->batch * p->kv_heads * p->rows * p->splits;
    const int64_t packs = p->dots ? 0 : 1, size = p->halves ? ortc_attend_in_groups(p->size) : p->size;
    const int64_t block = p->dots ? p->block : ortc_attend_in_groups(p->block);
    const int64_t values = p->halves ? ortc_attend_in_groups(p->value_size) : p->value_size;
    const int64_t rows = p->most_rows + (p->halves ? mr : 0); /* those behind a task's, too */
    /* with pieces: panels of queries, keys and values, each with what it holds, and of weights */
    const int64_t deep = p->pieces ? p->size : 0, panels_q = p->pieces * ceil_div(p->most_rows, mr),
                  panels_k = p->pieces * ceil_div(p->block, nr),
                  panels_v = p->pieces * ceil_div(p->value_size, nr);
    const size_t cut_q = (size_t)ortc_attend_cut_bytes(p, mr, deep),
                 cut_k = (size_t)ortc_attend_cut_bytes(p, nr, deep),
                 cut_v = (size_t)ortc_attend_cut_bytes(p, nr, p->block),
                 cut_p = (size_t)ortc_attend_cut_bytes(p, mr, p->block);
    size_t joins = 0, ignored;
    bool fits = room(scratch, &p->at_seen, p->most_rows, sizeof(ortc_attend_range)) &&
                room(scratch, &p->at_state, p->most_rows, sizeof(ortc_attend_row)) &&
                room(scratch, &p->at_q, p->pieces ? panels_q : rows, p->pieces ? cut_q : (size_t)size * 4) &&
                room(scratch, &p->at_o, rows, (size_t)p->value_size * 4) &&
                room(scratch, &p->at_k, packs * key, (size_t)size * 4) &&
                room(scratch, &p->at_v, packs * block, (size_t)values * 4) &&
                room(scratch, &p->at_s, mr, (size_t)ortc_attend_pitch(p) * 4) &&
                room(scratch, &p->at_p, p->pieces ? 1 : packs * mr, p->pieces ? cut_p : (size_t)block * 4) &&
                room(scratch, &p->at_cut_k, panels_k, cut_k) &&
                room(scratch, &p->at_cut_v, panels_v, cut_v) &&
                room(scratch, &p->at_wide, packs * max64(wide, p->halves && p->past ? p->block : 0),
                     (size_t)max64(p->size, p->value_size) * 4);
    if (fits && p->together)
        fits = room(workspace, &p->at_keys,
                    p->batch * p->kv_heads * ceil_div(p->total, p->block) * ortc_attend_key_floats(p), 4);
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
static bool by_halves(const ortc_attend_plan *p, const ortc_attend_job *j, const ortc_product_line **line)
{
    const ortc_product_line *l = ortc_product_select(ORTC_BF16, ORTC_BF16);
    const bool all = j->q.type == ORTC_FLOAT_BF16 && j->k.type == ORTC_FLOAT_BF16 &&
                     j->v.type == ORTC_FLOAT_BF16;
    if (p->dots || p->total < HALVES_KEYS || !all || !l || l->a.group != ORTC_ATTEND_GROUP || !l->begin ||
        p->size % 2 || p->value_size == 0)
        return false;
    *line = l;
    return true;
}

/* Whether tiles of pieces do, other types being widened: *line is theirs then. */
static bool by_pieces(const ortc_attend_plan *p, const ortc_product_line **line)
{
    const ortc_product_line *l = ortc_product_in_pieces(ORTC_F32);
    if (p->dots || p->halves || p->total < PIECES_KEYS || p->rows < PIECES_ROWS || p->size > LONGEST ||
        p->size == 0 || p->value_size == 0 || !l || l->a.group != ORTC_ATTEND_GROUP || !l->begin)
        return false;
    *line = l;
    return true;
}

static ortc_status plan(const void *state, ortc_plan *c, void **out)
{
    ortc_attend_job j = {0};
    size_t workspace = 0, scratch = 0;
    ortc_attend_plan *p = calloc(1, sizeof *p);
    if (!p) return ortc_plan_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    read_views(state, c->in, c->n_in, p, &j);
    p->body = ortc_attend_vec_select();
    p->convert = ortc_convert_get();
    p->line = plain_line();
    p->dots = p->rows <= DOT_ROWS;
    p->halves = by_halves(p, &j, &p->line);
    p->pieces = by_pieces(p, &p->line);
    p->splits = p->rows <= FEWEST_ROWS && p->total > SPLIT ? ceil_div(p->total, SPLIT) : 1;
    /* rows of a task: few enough for L2, for a millisecond, and for threads to share */
    const double each = 2.0 * (double)(p->size + p->value_size), row = each * (double)p->total;
    const int64_t heads_of_keys = p->batch * p->kv_heads, elements = max64(p->size + p->value_size, 1);
    int64_t most = min64(p->halves   ? HALVES_ROWS
                         : p->pieces ? PIECES_MOST
                                     : ROWS,
                         BLOCK_BYTES / 4 / elements);
    if (row > 0 && TASK_FLOPS_MAX / row < (double)most) most = (int64_t)(TASK_FLOPS_MAX / row);
    if (heads_of_keys > 0) most = min64(most, ceil_div(p->rows, ceil_div(TASKS, heads_of_keys)));
    most = max64(most, FEWEST_ROWS);
    p->blocks = max64(ceil_div(p->rows, most), 1);
    p->most_rows = ceil_div(p->rows, p->blocks);
    p->block = min64(BLOCK, max64(BLOCK_BYTES / 4 / elements, 64) / 32 * 32);
    p->block = min64(p->block, max64(p->total, 1));
    const double packed = (double)heads_of_keys * (double)ceil_div(p->total, p->block) *
                          (double)ortc_attend_key_floats(p) * 4;
    p->together = !p->dots && !p->halves && !p->pieces && p->splits == 1 && p->blocks >= TOGETHER &&
                  packed <= TOGETHER_BYTES;
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

static void read_mask(ortc_attend_job *j)
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
static ortc_status copy_present(ortc_attend_job *j, uint32_t port, const ortc_attend_heads *past,
                                const ortc_attend_heads *fresh, int64_t size)
{
    ortc_call *c = (ortc_call *)(uintptr_t)j->call;
    const ortc_attend_plan *p = j->p;
    if (port >= c->n_out || !c->out[port].dtype || ortc_view_count(&c->out[port]) == 0) return ORTC_OK;
    present_job copy = {j, past, fresh, c->out[port].data, size * (int64_t)bytes_of(fresh->type)};
    return ortc_parallel(c, p->batch * p->kv_heads * p->total, max64(1, 65536 / max64(copy.bytes, 1)),
                         present_chunk, &copy);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_attend_state *s = state;
    const ortc_attend_plan *p = pstate;
    ortc_attend_plan again; /* extents, which plan has */
    ortc_attend_job j = {.s = s, .p = p, .call = c};
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
    if (p->together)
        ORTC_TRY(ortc_parallel(c, heads_of_keys * ceil_div(p->total, p->block), 1, pack_chunk, &j));
    ORTC_TRY(ortc_parallel(c, heads_of_keys * p->blocks * p->splits, max64(1, (int64_t)(LOOP_COST / cost)),
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
