/* kernels/reorder/cpu.c: Reorder on the cpu provider: a move by strides (kernels/common/vector/strided.h), in
 * which the blocked axis is two dims, blocks and what is in them; and one more for a last block that is not
 * full. */
#include "kernels/common/layout.h"
#include "kernels/common/vector/strided.h"
#include "kernels/reorder/reorder.h"

/* Elements from one index of an axis to the next; of the blocked one from block to block. */
static void steps_of(const ortc_view *v, int64_t *steps)
{
    const int64_t block = ortc_layout_block(v->layout);
    int64_t step = block ? block : 1;
    for (int32_t i = v->rank - 1; i >= 0; i--) {
        const int32_t axis = ortc_layout_axis_at(v->layout, i);
        const bool blocked = block && axis == ortc_layout_axis(v->layout);
        steps[axis] = step;
        step *= blocked ? (v->dims[axis] + block - 1) / block : v->dims[axis];
    }
}

/* Which of the two is in blocks; NULL: neither. */
static const ortc_view *blocked_one(const ortc_view *x, const ortc_view *y)
{
    return ortc_layout_block(y->layout) ? y : ortc_layout_block(x->layout) ? x : NULL;
}

static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_view *x = &q->in[0], *y = &q->out[0], *b = blocked_one(x, y);
    (void)state;
    if (ortc_layout_block(x->layout) && ortc_layout_block(y->layout) && x->layout >> 32 != y->layout >> 32)
        return ortc_no(why, "blocks of two kinds");
    o->clocks = 2000 +
                0.15 * (double)(ortc_view_stored(b ? b : y) * (int64_t)(ortc_dtype_bits(x->dtype) / 8));
    return ORTC_OK;
}

/* Of the blocked axis the blocks from `first` on, `count` of them with `width` elements each. */
static ortc_status move(ortc_call *c, const ortc_view *x, const ortc_view *y, size_t bytes, int64_t first,
                        int64_t count, int64_t width)
{
    const ortc_view *b = blocked_one(x, y), *views[2] = {y, x};
    const int64_t block = b ? ortc_layout_block(b->layout) : 0;
    const int32_t axis = block ? ortc_layout_axis(b->layout) : -1;
    int64_t steps[2][ORTC_RANK_LIMIT], at[2] = {0, 0};
    ortc_strided m = {.bytes = bytes};
    int64_t *to[2] = {m.to_step, m.from_step};
    int32_t inside = -1; /* the dim of what is in a block */
    for (int k = 0; k < 2; k++) steps_of(views[k], steps[k]);
    for (int32_t i = 0; i < y->rank; i++) { /* in the order of the target */
        const int32_t a = ortc_layout_axis_at(y->layout, i);
        for (int k = 0; k < 2; k++) {
            const bool in_blocks = ortc_layout_block(views[k]->layout);
            to[k][m.rank] = a == axis && !in_blocks ? steps[k][a] * block : steps[k][a];
            if (a == axis) at[k] = first * to[k][m.rank];
        }
        m.dims[m.rank++] = a == axis ? count : y->dims[a];
        if (a != axis || ortc_layout_block(y->layout)) continue;
        inside = m.rank++;
    }
    if (axis >= 0 && inside < 0) inside = m.rank++;
    for (int k = 0; inside >= 0 && k < 2; k++)
        to[k][inside] = ortc_layout_block(views[k]->layout) ? 1 : steps[k][axis];
    if (inside >= 0) m.dims[inside] = width;
    m.to = (char *)y->data + (size_t)at[0] * bytes;
    m.from = (const char *)x->data + (size_t)at[1] * bytes;
    return ortc_strided_move(c, &m);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0], *b = blocked_one(x, y);
    const size_t bytes = ortc_dtype_bits(x->dtype) / 8;
    const int64_t block = b ? ortc_layout_block(b->layout) : 1,
                  extent = b ? b->dims[ortc_layout_axis(b->layout)] : 1;
    (void)state, (void)pstate;
    if (!ortc_view_count(x)) return ORTC_OK;
    ortc_status s = ORTC_OK;
    if (!b || extent / block) s = move(c, x, y, bytes, 0, extent / block, block);
    if (!s && extent % block) s = move(c, x, y, bytes, extent / block, 1, extent % block);
    if (!s) ortc_layout_zero_rest(y);
    return s;
}

static const ortc_kernel reorder = {.size = ORTC_SIZED(ortc_kernel),
                                    .flags = ORTC_KERNEL_LAYOUTS,
                                    .name = "reorder.strided",
                                    .run = run,
                                    .choose = choose};

ORTC_KERNELS(cpu, reorder, ORTC_KERNEL_IN("ortc", "Reorder", 1, 1, (WHOLE_BYTES), &reorder));
