/* kernels/shape/cpu.c: Transpose, Slice, Expand, Concat and Split on the cpu provider, for elements of
 * whole bytes: moves by strides (kernels/common/vector/strided.h). Where a view does, it is ref's view.
 */
#include "kernels/common/blocks.h"
#include "kernels/common/counts.h"
#include "kernels/common/layout.h"
#include "kernels/common/vector/strided.h"
#include "kernels/shape/shape_ops.h"

static void note_bytes(ortc_plan *p)
{
    double bytes = 0;
    for (uint32_t i = 0; i < p->n_out; i++)
        if (p->out[i].dtype)
            bytes += 2.0 * (double)ortc_view_count(&p->out[i]) * ortc_dtype_bits(p->out[i].dtype) / 8;
    ortc_plan_cost(p, 0, bytes);
}

/* The output, dense, takes elements of the input by strides. */
static ortc_status take(ortc_call *c, const int64_t *strides, int64_t start)
{
    const ortc_view *y = &c->out[0];
    ortc_strided m = {.to = y->data, .bytes = ortc_dtype_bits(y->dtype) / 8, .rank = y->rank};
    m.from = (const char *)c->in[0].data + start * (int64_t)m.bytes;
    for (int32_t d = 0; d < y->rank; d++) {
        m.dims[d] = y->dims[d];
        m.from_step[d] = strides[d];
    }
    ortc_dense_strides(y->rank, y->dims, m.to_step);
    return ortc_strided_move(c, &m);
}

/* ---- Transpose, Slice, Expand -------------------------------------------------------------------------- */

/* Channels go to the end, [N, C, ..] to [N, .., C], or come back from there: around what works on channels
 * last. */
enum { ELSEWHERE, TO_END, BACK };

static int channels_go(const void *state, int32_t rank)
{
    bool to_end = rank >= 3, back = rank >= 3;
    for (int32_t d = 0; d < rank; d++) {
        const int32_t axis = ortc_transpose_axis(state, rank, d);
        to_end &= axis == (d == 0 ? 0 : d + 1 < rank ? d + 1 : 1);
        back &= axis == (d == 0 ? 0 : d == 1 ? rank - 1 : d - 1);
    }
    return to_end ? TO_END : back ? BACK : ELSEWHERE;
}

/* Rows of channels, of which the second dim is a view. */
static ortc_layout rows_of(const ortc_view *second) { return ortc_layout_last(second->rank, 1); }

/* They may be in blocks where they are the second dim, or lie as they are on the other side. */
static ortc_status transpose_choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const int blocked = ortc_blocks_asked(q), go = channels_go(state, q->in[0].rank);
    const ortc_view *second = go == TO_END ? &q->in[0] : &q->out[0];
    if (go != ELSEWHERE && q->layout == rows_of(second)) {
        *(go == TO_END ? &o->in[0] : &o->out[0]) = q->layout;
        return ORTC_OK;
    }
    if (blocked < 0) return ortc_no(why, "plain, in blocks of %d channels, or rows of them", ORTC_BLOCK);
    o->clocks = (blocked ? 0.16 : 0.2) * (double)ortc_view_count(second) * ortc_dtype_bits(second->dtype) / 8;
    if (!blocked) return ORTC_OK;
    if (go == ELSEWHERE || ortc_view_count(second) == 0 || second->dims[1] % ORTC_BLOCK)
        return ortc_no(why, "only whole blocks of channels go to the end and back");
    *(go == TO_END ? &o->in[0] : &o->out[0]) = ortc_blocks();
    return ORTC_OK;
}

static ortc_status transpose_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_layout layout = p->in[0].layout ? p->in[0].layout : p->out[0].layout;
    note_bytes(p);
    if (!layout) return ortc_transpose_plan(state, p, pstate);
    if (layout != ortc_blocks()) ortc_plan_view(p, 0, 0, 0);
    return ORTC_OK;
}

static ortc_status copy_all(ortc_call *c)
{
    const int64_t n = ortc_view_count(&c->out[0]);
    const ortc_strided m = {.to = c->out[0].data,
                            .from = c->in[0].data,
                            .bytes = ortc_dtype_bits(c->out[0].dtype) / 8,
                            .rank = 1,
                            .dims = {n},
                            .to_step = {1},
                            .from_step = {1}};
    return n ? ortc_strided_move(c, &m) : ORTC_OK;
}

/* Between [N, C / block, pixels, block] and [N, pixels, C / block, block]. */
static ortc_status move_blocks(ortc_call *c, bool to_end)
{
    const ortc_view *second = to_end ? &c->in[0] : &c->out[0];
    const int64_t n = second->dims[0], channels = second->dims[1], blocks = channels / ORTC_BLOCK,
                  all = ortc_view_count(second), pixels = n && channels ? all / (n * channels) : 0;
    const int64_t last[4] = {pixels * channels, channels, ORTC_BLOCK, 1},
                  in_blocks[4] = {last[0], ORTC_BLOCK, pixels * ORTC_BLOCK, 1};
    ortc_strided m = {.to = c->out[0].data,
                      .from = c->in[0].data,
                      .bytes = ortc_dtype_bits(second->dtype) / 8,
                      .rank = 4,
                      .dims = {n, pixels, blocks, ORTC_BLOCK}};
    memcpy(m.to_step, to_end ? last : in_blocks, sizeof last);
    memcpy(m.from_step, to_end ? in_blocks : last, sizeof last);
    return all ? ortc_strided_move(c, &m) : ORTC_OK;
}

static ortc_status transpose_run(const void *state, const void *pstate, ortc_call *c)
{
    int64_t strides[ORTC_RANK_LIMIT];
    (void)pstate;
    const ortc_layout layout = c->in[0].layout ? c->in[0].layout : c->out[0].layout;
    if (layout == ortc_blocks()) return move_blocks(c, c->in[0].layout != ORTC_PLAIN);
    if (layout) return copy_all(c);
    ortc_transpose_strides(state, &c->in[0], strides);
    return take(c, strides, 0);
}

/* As ortc_slice_strides, of values in blocks of channels as memory has them, with one dim more; false: a
 * slice of channels that does not begin with a block, or ends within one that goes on. */
static bool slice_blocks(const ortc_view *in, uint32_t n_in, int64_t *dims, int64_t *strides, int64_t *start)
{
    const ortc_view *x = &in[0];
    ortc_slice_range ranges[ORTC_RANK_LIMIT];
    int32_t rank;
    *start = 0;
    if (!ortc_slice_ranges(in, n_in, ranges)) return false;
    ortc_layout_dims(ortc_blocks(), x->rank, x->dims, &rank, dims);
    ortc_dense_strides(rank, dims, strides);
    for (int32_t d = 0; d < x->rank; d++) {
        ortc_slice_range r = ranges[d];
        if (d == 1) {
            if (r.step != 1 || r.first % ORTC_BLOCK ||
                (r.count % ORTC_BLOCK && r.first + r.count < x->dims[1]))
                return false;
            r.first /= ORTC_BLOCK, r.count = ortc_blocks_of(r.count);
        }
        *start += r.first * strides[d];
        strides[d] = r.step == 1 || r.count > 1 ? strides[d] * r.step : 0;
        dims[d] = r.count;
    }
    return true;
}

/* Whether elements that are taken so lie together. */
static bool is_dense(int32_t rank, const int64_t *dims, const int64_t *strides)
{
    int64_t next = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        if (dims[d] != 1 && strides[d] != next) return false;
        next *= dims[d];
    }
    return true;
}

/* Constants. */
static bool bounds_are_known(const ortc_view *in, uint32_t n_in)
{
    for (uint32_t i = 1; i < n_in; i++)
        if (in[i].dtype && (!(in[i].flags & ORTC_VIEW_CONST) || !in[i].data ||
                            (in[i].dtype != ORTC_I32 && in[i].dtype != ORTC_I64) || in[i].rank != 1))
            return false;
    return n_in > 2;
}

/* Clocks: none where it is a view. */
static ortc_status slice_choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_view *x = &q->in[0], *y = &q->out[0];
    const int blocked = ortc_blocks_asked(q), known = bounds_are_known(q->in, q->n_in);
    int64_t dims[ORTC_RANK_LIMIT], strides[ORTC_RANK_LIMIT], start;
    (void)state;
    if (blocked < 0) return ortc_no(why, "plain or in blocks of %d channels", ORTC_BLOCK);
    o->clocks = (blocked ? 0.12 : 0.2) * (double)ortc_view_count(y) * ortc_dtype_bits(y->dtype) / 8;
    if (!blocked) {
        if (known && x->rank == y->rank && ortc_view_count(y) > 0 &&
            ortc_slice_strides(q->in, q->n_in, strides, &start) && is_dense(y->rank, y->dims, strides))
            o->clocks = 0;
        return ORTC_OK;
    }
    if (!known || x->rank < 3 || x->rank > 7 || ortc_view_count(y) == 0 ||
        !slice_blocks(q->in, q->n_in, dims, strides, &start))
        return ortc_no(why, "its bounds are not known, or channels are cut within a block");
    if (is_dense(x->rank + 1, dims, strides)) o->clocks = 0;
    o->in[0] = o->out[0] = ortc_blocks();
    return ORTC_OK;
}

static ortc_status slice_plan(const void *state, ortc_plan *p, void **pstate)
{
    int64_t dims[ORTC_RANK_LIMIT], strides[ORTC_RANK_LIMIT], start;
    note_bytes(p);
    if (!p->in[0].layout) return ortc_slice_plan(state, p, pstate);
    if (slice_blocks(p->in, p->n_in, dims, strides, &start) && is_dense(p->in[0].rank + 1, dims, strides))
        ortc_plan_view(p, 0, 0, start * ortc_dtype_bits(p->in[0].dtype) / 8);
    return ORTC_OK;
}

static ortc_status slice_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0];
    int64_t strides[ORTC_RANK_LIMIT], start;
    (void)state, (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    if (x->layout) {
        ortc_strided m = {.to = c->out[0].data, .bytes = ortc_dtype_bits(x->dtype) / 8, .rank = x->rank + 1};
        if (!slice_blocks(c->in, c->n_in, m.dims, m.from_step, &start))
            return ortc_call_fail(c, ORTC_INTERNAL, "a slice within a block of channels");
        m.from = (const char *)x->data + start * (int64_t)m.bytes;
        ortc_dense_strides(m.rank, m.dims, m.to_step);
        return ortc_strided_move(c, &m);
    }
    if (!ortc_slice_strides(c->in, c->n_in, strides, &start))
        return ortc_call_fail(
            c, ORTC_INVALID_ARGUMENT,
            "its bounds differ in number, an axis is outside of the rank or given twice, or a step is 0");
    return take(c, strides, start);
}

static ortc_status expand_plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    note_bytes(p);
    return ORTC_OK;
}

static ortc_status expand_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    int64_t dense[ORTC_RANK_LIMIT], strides[ORTC_RANK_LIMIT];
    (void)state, (void)pstate;
    ortc_dense_strides(x->rank, x->dims, dense);
    for (int32_t d = 0; d < y->rank; d++) {
        const int32_t i = d - (y->rank - x->rank);
        strides[d] = i >= 0 && x->dims[i] != 1 ? dense[i] : 0;
    }
    return take(c, strides, 0);
}

/* ---- Concat, Split: the parts of a whole along an axis, a move for each -------------------------------- */

/* n elements along the axis, or of a value in blocks of channels, whose axis that is, what they take. */
static int64_t stored(const ortc_view *v, int64_t n)
{
    return v->layout ? ortc_blocks_of(n) * ORTC_BLOCK : n;
}

/* Whether every part of the channels begins with a block. */
static bool is_of_whole_blocks(const ortc_view *parts, uint32_t n)
{
    for (uint32_t i = 0; i + 1 < n; i++)
        if (parts[i].dims[1] % ORTC_BLOCK) return false;
    return true;
}

#define CLOCKS_WITHIN 1.2 /* times those of copies: parts that begin within a block go by lanes */

static ortc_status parts_choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why,
                                bool join)
{
    const ortc_view *whole = join ? &q->out[0] : &q->in[0];
    const uint32_t n = join ? q->n_in : q->n_out;
    const int blocked = ortc_blocks_asked(q);
    int32_t axis;
    if (blocked < 0) return ortc_no(why, "plain or in blocks of %d channels", ORTC_BLOCK);
    o->clocks = 0.15 * (double)ortc_view_count(whole) * ortc_dtype_bits(whole->dtype) / 8;
    if (!blocked) return ORTC_OK;
    if (!ortc_axis_of(*(const int64_t *)state, whole->rank, &axis) || axis != 1 ||
        ortc_view_count(whole) == 0)
        return ortc_no(why, "only channels are joined and split in blocks");
    for (uint32_t i = 0; i < n; i++) {
        const ortc_view *part = join ? &q->in[i] : &q->out[i];
        if (part->dtype == 0 || part->rank != whole->rank || part->dims[1] < 1)
            return ortc_no(why, "part %d has no channels", (int)i);
        *(join ? &o->in[i] : &o->out[i]) = ortc_blocks();
    }
    *(join ? &o->out[0] : &o->in[0]) = ortc_blocks();
    if (!is_of_whole_blocks(join ? q->in : q->out, n))
        o->clocks *= CLOCKS_WITHIN;
    else if (!join && whole->dims[0] == 1)
        o->clocks = 0; /* views */
    return ORTC_OK;
}

static ortc_status concat_choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    return parts_choose(state, q, o, why, true);
}
static ortc_status split_choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    return parts_choose(state, q, o, why, false);
}

/* Parts in blocks that begin within one, some positions of an image at a time: so lines of the whole, which
 * several parts share, are in L1 until they are complete. */
typedef struct lanes_job {
    const ortc_view *whole, *parts;
    uint32_t n;
    bool join;
    int64_t bytes, inner, some; /* of an element; positions of an image, of a task */
} lanes_job;

/* `n` positions from `at` on: channels first.. of the whole, which are all of a part. */
static void move_lanes(const lanes_job *j, const ortc_view *part, int64_t first, int64_t image, int64_t at,
                       int64_t n)
{
    const int64_t bytes = j->bytes, position = ORTC_BLOCK * bytes, channels = part->dims[1];
    char *w = (char *)j->whole->data + image * stored(j->whole, j->whole->dims[1]) * j->inner * bytes +
              at * position,
         *p = (char *)part->data + image * stored(part, channels) * j->inner * bytes + at * position;
    for (int64_t k = 0, count; k < channels; k += count) {
        const int64_t lane = (first + k) % ORTC_BLOCK, own = k % ORTC_BLOCK;
        const int64_t room = ORTC_BLOCK - (lane > own ? lane : own);
        char *a = w + (first + k) / ORTC_BLOCK * j->inner * position + lane * bytes,
             *b = p + k / ORTC_BLOCK * j->inner * position + own * bytes;
        count = channels - k < room ? channels - k : room;
        if (a == b) continue; /* it was made there */
        if (count == ORTC_BLOCK)
            memcpy(j->join ? a : b, j->join ? b : a, (size_t)(n * position));
        else
            ortc_block_move(j->join ? a : b, (size_t)position, j->join ? b : a, (size_t)position, n,
                            (size_t)(count * bytes));
    }
    /* what fills up the target's last block */
    const int64_t have = j->join ? first + channels : channels, lanes = have % ORTC_BLOCK;
    if (lanes && (!j->join || have == j->whole->dims[1]))
        ortc_block_move((j->join ? w : p) + have / ORTC_BLOCK * j->inner * position + lanes * bytes,
                        (size_t)position, NULL, 0, n, (size_t)((ORTC_BLOCK - lanes) * bytes));
}

static void lanes_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const lanes_job *j = arg;
    const int64_t each = ceil_div(j->inner, j->some);
    (void)scratch;
    for (int64_t task = begin; task < end; task++) {
        const int64_t image = task / each, at = task % each * j->some,
                      n = j->inner - at < j->some ? j->inner - at : j->some;
        int64_t first = 0;
        for (uint32_t i = 0; i < j->n; first += j->parts[i++].dims[1])
            move_lanes(j, &j->parts[i], first, image, at, n);
    }
}

#define LINES_BYTES (16 * 1024) /* of the whole, in L1 */

static ortc_status parts_in_blocks(ortc_call *c, bool join)
{
    const ortc_view *whole = join ? &c->out[0] : &c->in[0];
    lanes_job j = {whole, join ? c->in : c->out, join ? c->n_in : c->n_out, join,
                   ortc_dtype_bits(whole->dtype) / 8};
    int64_t outer;
    ortc_around(whole, 1, &outer, &j.inner);
    const int64_t some = LINES_BYTES / (whole->dims[1] * j.bytes);
    j.some = some > ORTC_BLOCK ? some : ORTC_BLOCK;
    return ortc_parallel(c, outer * ceil_div(j.inner, j.some), 1, lanes_chunk, &j);
}

static ortc_status parts_run(ortc_call *c, int32_t axis, bool join)
{
    const ortc_view *whole = join ? &c->out[0] : &c->in[0];
    const int64_t bytes = ortc_dtype_bits(whole->dtype) / 8;
    int64_t outer, inner, first = 0;
    if (whole->layout && !is_of_whole_blocks(join ? c->in : c->out, join ? c->n_in : c->n_out))
        return parts_in_blocks(c, join);
    ortc_around(whole, axis, &outer, &inner);
    const int64_t row = stored(whole, whole->dims[axis]) * inner;
    for (uint32_t i = 0; i < (join ? c->n_in : c->n_out); i++) {
        const ortc_view *part = join ? &c->in[i] : &c->out[i];
        const int64_t n = join ? part->rank > axis ? part->dims[axis]
                                                   : 0 /* empty ones may have lost their rank */
                               : ortc_split_part(c->in, c->n_in, c->out, c->n_out, axis, i);
        const int64_t run = inner * stored(whole, n);
        char *at = (char *)whole->data + first * bytes;
        const ortc_strided m = {.to = join ? at : part->data,
                                .from = join ? part->data : at,
                                .bytes = (size_t)bytes,
                                .rank = 2,
                                .dims = {outer, run},
                                .to_step = {join ? row : run, 1},
                                .from_step = {join ? run : row, 1}};
        if (part->dtype && m.to != m.from) ORTC_TRY(ortc_strided_move(c, &m));
        first += run;
    }
    return ORTC_OK;
}

/* Parts of the dims before the axis, of which there are none, lie one behind the other: they may be made
 * there, up to the first that ends within a block. What fills up a last block is the output's. */
static void join_in_place(const void *state, ortc_plan *p)
{
    const ortc_view *y = &p->out[0];
    int64_t outer, inner, offset = 0;
    int32_t axis;
    if (!ortc_axis_of(*(const int64_t *)state, y->rank, &axis)) return;
    ortc_around(y, axis, &outer, &inner);
    for (uint32_t i = 0; i < p->n_in && outer == 1; i++) {
        const ortc_view *x = &p->in[i];
        const int64_t n = x->rank > axis ? x->dims[axis] : 0;
        if (stored(x, n) != n) break;
        if (n && inner) ortc_plan_part(p, 0, i, offset);
        offset += stored(x, n) * inner * ortc_dtype_bits(y->dtype) / 8;
    }
}

static ortc_status concat_plan(const void *state, ortc_plan *p, void **pstate)
{
    note_bytes(p);
    if (p->n_in > 1) join_in_place(state, p);
    return ortc_concat_plan(state, p, pstate);
}

static ortc_status concat_run(const void *state, const void *pstate, ortc_call *c)
{
    int32_t axis;
    (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0 || !ortc_axis_of(*(const int64_t *)state, c->out[0].rank, &axis))
        return ORTC_OK;
    return parts_run(c, axis, true);
}

/* Blocks of one image are pieces of the input's memory. */
static void split_blocks(ortc_plan *p)
{
    const ortc_view *x = &p->in[0];
    int64_t outer, inner, offset = 0;
    ortc_around(x, 1, &outer, &inner);
    for (uint32_t i = 0; i < p->n_out && outer == 1 && is_of_whole_blocks(p->out, p->n_out); i++) {
        ortc_plan_view(p, i, 0, offset);
        offset += stored(x, p->out[i].dims[1]) * inner * ortc_dtype_bits(x->dtype) / 8;
    }
}

static ortc_status split_plan(const void *state, ortc_plan *p, void **pstate)
{
    note_bytes(p);
    if (!p->in[0].layout) return ortc_split_plan(state, p, pstate);
    split_blocks(p);
    return ORTC_OK;
}

static ortc_status split_run(const void *state, const void *pstate, ortc_call *c)
{
    int32_t axis;
    (void)pstate;
    if (ortc_view_count(&c->in[0]) == 0 || !ortc_axis_of(*(const int64_t *)state, c->in[0].rank, &axis))
        return ORTC_OK;
    if (!ortc_split_fits(c->in, c->n_in, c->out, c->n_out, axis))
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "split does not add up to the %lld elements of axis %d",
                              (long long)c->in[0].dims[axis], axis);
    return parts_run(c, axis, false);
}

/* ---- The table ----------------------------------------------------------------------------------------- */

#define KERNEL(symbol, title, ...) \
    static const ortc_kernel symbol = {.size = ORTC_SIZED(ortc_kernel), .name = title, __VA_ARGS__}
KERNEL(transpose, "transpose.cpu", .flags = ORTC_KERNEL_LAYOUTS, .prepare = ortc_transpose_prepare,
       .plan = transpose_plan, .run = transpose_run, .choose = transpose_choose);
KERNEL(slice, "slice.cpu", .flags = ORTC_KERNEL_LAYOUTS, .host_in = 0x1e, .plan = slice_plan,
       .run = slice_run, .choose = slice_choose);
KERNEL(expand, "expand.cpu", .host_in = 2, .plan = expand_plan, .run = expand_run);
KERNEL(concat, "concat.cpu", .flags = ORTC_KERNEL_LAYOUTS, .prepare = ortc_axis_prepare, .plan = concat_plan,
       .run = concat_run, .choose = concat_choose);
KERNEL(split, "split.cpu", .flags = ORTC_KERNEL_LAYOUTS, .host_in = 2, .prepare = ortc_axis_prepare,
       .plan = split_plan, .run = split_run, .choose = split_choose);

#define F8 \
    (ORTC_TYPE(ORTC_F8E4M3FN) | ORTC_TYPE(ORTC_F8E4M3FNUZ) | ORTC_TYPE(ORTC_F8E5M2) | \
     ORTC_TYPE(ORTC_F8E5M2FNUZ) | ORTC_TYPE(ORTC_F8E8M0))
#define PLAIN (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
ORTC_KERNELS(cpu, shape, ORTC_KERNEL("Transpose", 25, ORTC_NEWEST, (PLAIN | F8), &transpose),
             ORTC_KERNEL("Slice", 13, ORTC_NEWEST, (PLAIN, INDEX), &slice),
             ORTC_KERNEL("Expand", 13, ORTC_NEWEST, (PLAIN), &expand),
             ORTC_KERNEL("Concat", 13, ORTC_NEWEST, (PLAIN), &concat),
             ORTC_KERNEL("Split", 18, ORTC_NEWEST, (PLAIN), &split));
