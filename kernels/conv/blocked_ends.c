/* How results of the ways over blocks end (blocked.h). */
#include <math.h>
#include <string.h>

#include "blocked.h"
#include "kernels/common/counts.h"
#include "kernels/gemm/integer_tail.h"
#include "tiled.h"

ortc_blocked_end ortc_blocked_end_of(const ortc_blocked_uk *uk, int32_t type, const ortc_blocked_args *a)
{
    if (a->tail && a->tail->widens) type = ORTC_FLOAT_F32; /* bytes have none */
    const int straight = type == ORTC_FLOAT_F32 && !a->tail->has_rest && a->tail->act != ORTC_UK_ACT_LEAKY;
    return (ortc_blocked_end){uk, a, type, straight};
}

void ortc_blocked_fixed(const ortc_blocked_args *a, int64_t block, const int32_t *sums, int64_t n, int64_t at)
{
    enum { TOGETHER = 256 };
    const int64_t size = ortc_dtype_bits(a->int_tail->type) / 8;
    for (int64_t some; n > 0; n -= some, sums += some * ORTC_BLOCK, at += some * ORTC_BLOCK) {
        some = min64(n, TOGETHER);
        ortc_int_ends_run(a->int_ends, (size_t)block, sums, (size_t)some, a->in, at,
                          (char *)a->y + at * size);
    }
}

/* Sums of s32, for n pixels. */
static void finish_integers(const ortc_blocked_args *a, int32_t *sums, int64_t n, int64_t channel,
                            size_t lanes, int64_t at)
{
    const ortc_tail_place place = {
        .channel = channel, .channel_col = 1, .element = at, .row = ORTC_BLOCK, .col = 1};
    const size_t size = ortc_dtype_bits(a->int_tail->type) / 8;
    char *y = (char *)a->y + (size_t)at * size;
    if (a->int_tail->has_pass || a->int_tail->has_rest)
        ortc_int_tail_over(a->int_tail, a->in, &place, sums, ORTC_BLOCK, y, ORTC_BLOCK, (size_t)n, lanes);
    else
        memcpy(y, sums, (size_t)n * ORTC_BLOCK * size);
    if (lanes < ORTC_BLOCK)
        ortc_block_move(y + lanes * size, ORTC_BLOCK * size, NULL, 0, n, (ORTC_BLOCK - lanes) * size);
}

void ortc_blocked_finish_bytes(const ortc_blocked_end *e, int32_t *sums, int64_t n, int64_t channel,
                               size_t lanes, int64_t at)
{
    const int64_t block = channel / ORTC_BLOCK;
    if (ortc_int_ends_has(e->a->int_ends, (size_t)block))
        ortc_blocked_fixed(e->a, block, sums, n, at);
    else
        finish_integers(e->a, sums, n, channel, lanes, at);
}

/* Of 16 bits what clips, rounds and stores at once; of bf16 by an instruction, where there is one. */
static ortc_blocked_clip_fn *clip_of(const ortc_blocked_end *e)
{
    const ortc_tiled_uk *tiles = ortc_tiled_uk_get(ORTC_TILED_BF16);
    const ortc_blocked_pairs *pairs = ortc_blocked_pairs_get();
    if (e->type == ORTC_FLOAT_F32) return NULL;
    if (e->type == ORTC_FLOAT_BF16 && (tiles || pairs)) return tiles ? tiles->clip_bf16 : pairs->clip_bf16;
    return e->uk->clip[e->type];
}

int ortc_blocked_end_clips(const ortc_blocked_end *e)
{
    return !e->a->tail->has_rest && e->a->tail->act != ORTC_UK_ACT_LEAKY;
}

void ortc_blocked_finish(const ortc_blocked_end *e, float *sums, int64_t n, int64_t channel, size_t lanes,
                         int64_t at)
{
    if (e->type == ORTC_BLOCKED_BYTES) {
        finish_integers(e->a, (int32_t *)(void *)sums, n, channel, lanes, at);
        return;
    }
    const ortc_tail_spec *s = e->a->tail;
    const int64_t bytes = at * (e->type == ORTC_FLOAT_F32 ? 4 : 2), blocks = e->a->wide ? e->a->wide : 1;
    const size_t pixel = (size_t)blocks * ORTC_BLOCK, count = (size_t)n * pixel;
    const char *residual = e->a->residual;
    char *y = (char *)e->a->y + bytes;
    int stored = e->straight && lanes == pixel;
    ortc_blocked_clip_fn *const at_once = lanes == pixel ? clip_of(e) : NULL;
    if (at_once && ortc_blocked_end_clips(e)) {
        const int clip = s->act == ORTC_UK_ACT_CLIP;
        at_once(count, sums, residual ? residual + bytes : NULL, clip ? s->lo : -INFINITY,
                clip ? s->hi : INFINITY, y);
        return;
    }
    if (!e->straight) {
        const ortc_tail_place place = {
            .channel = channel, .channel_col = 1, .element = at, .row = (int64_t)pixel, .col = 1};
        if (residual || s->act != ORTC_UK_ACT_NONE)
            e->uk->finish[e->type](count, residual ? residual + bytes : NULL, s->act, s->lo, s->hi, sums);
        if (s->has_rest && e->type != ORTC_FLOAT_F32 && lanes == pixel) { /* at once */
            ortc_tail_store(s, e->a->in, &place, sums, pixel, y, pixel, (size_t)n, lanes);
            return;
        }
        stored = s->has_rest && e->type == ORTC_FLOAT_F32 && lanes == pixel;
        ortc_tail_over(s, e->a->in, &place, sums, pixel, stored ? (float *)(void *)y : sums, pixel, (size_t)n,
                       lanes);
    }
    if (at_once)
        at_once(count, sums, NULL, -INFINITY, INFINITY, y);
    else if (!stored)
        e->uk->narrow[e->type]((size_t)(n * blocks), sums, blocks > 1 ? ORTC_BLOCK : lanes, y);
}
