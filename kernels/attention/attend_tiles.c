/* kernels/attention/attend_tiles.c: Attention by tiles of f32, and by dots of few rows (attend_task.h). */
#include "kernels/attention/attend_task.h"

const float *ortc_attend_as_f32(const ortc_attend_task *t, const ortc_attend_heads *past,
                                const ortc_attend_heads *fresh, int64_t at, int64_t end, int64_t size,
                                float *space, size_t *ld)
{
    const ortc_attend_plan *p = t->j->p;
    int64_t count;
    const char *from = ortc_attend_find(t, past, fresh, at, end, &count);
    const ortc_attend_heads *h = at < p->past ? past : fresh;
    if (h->type == ORTC_FLOAT_F32 && count == end - at) {
        *ld = (size_t)h->step / 4;
        return (const float *)(const void *)from;
    }
    for (float *to = space; at < end; at += count, to += count * size) {
        from = ortc_attend_find(t, past, fresh, at, end, &count);
        h = at < p->past ? past : fresh;
        p->line->moves->vec->load[h->type]((size_t)count, (size_t)size, from,
                                           (size_t)(h->step / (int64_t)bytes_of(h->type)), to, (size_t)size);
    }
    *ld = (size_t)size;
    return space;
}

#define SET_BYTES 4096 /* lines so far apart are in one set of L1 */
#define FEW_KEYS 256

/* ---- Tiles --------------------------------------------------------------------------------------------- */

void ortc_attend_widen_queries(ortc_attend_task *t, int64_t r0, int64_t mr)
{
    const ortc_attend_plan *p = t->j->p;
    const ortc_attend_heads *q = &t->j->q;
    if (p->group == 1) { /* a step apart */
        p->line->moves->vec->load[q->type]((size_t)mr, (size_t)p->size, ortc_attend_query(t, r0),
                                           (size_t)(q->step / (int64_t)bytes_of(q->type)), t->wide,
                                           (size_t)p->size);
        return;
    }
    for (int64_t r = 0; r < mr; r++)
        p->convert->widen[q->type]((size_t)p->size, ortc_attend_query(t, r0 + r), t->wide + r * p->size);
}

/* Whether tiles read rows of queries where they lie: evenly apart, not all in one set of L1, and for so few
 * keys that packing them is felt. */
static bool reads_queries(const ortc_attend_task *t)
{
    const ortc_attend_plan *p = t->j->p;
    const ortc_attend_heads *q = &t->j->q;
    return p->line->can & ORTC_LINE_PLAIN && q->type == ORTC_FLOAT_F32 && p->group == 1 &&
           p->total <= FEW_KEYS && q->step % SET_BYTES;
}

/* Rows of queries as the micro-kernel wants them, [size][mr] for each MR rows (dealt evenly). */
static void pack_queries(ortc_attend_task *t)
{
    const ortc_attend_plan *p = t->j->p;
    const int64_t tiles = ceil_div(t->rows, p->line->a.width);
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t r0 = dealt(t->rows, tiles, i), mr = dealt(t->rows, tiles, i + 1) - r0;
        ortc_attend_widen_queries(t, r0, mr);
        p->line->moves->transpose((size_t)mr, (size_t)p->size, t->wide, (size_t)p->size, t->q + r0 * p->size,
                                  (size_t)mr);
    }
}

void ortc_attend_pack_keys(ortc_attend_task *t, int64_t at, int64_t end, float *to)
{
    const ortc_attend_plan *p = t->j->p;
    const int64_t width = p->line->b.width;
    for (; at < end; at += width, to += width * p->size) {
        const int64_t n = min64(end - at, width);
        size_t ld;
        const float *from = ortc_attend_as_f32(t, &t->j->past_k, &t->j->k, at, at + n, p->size, t->wide, &ld);
        p->line->moves->transpose((size_t)n, (size_t)p->size, from, ld, to,
                                  (size_t)ortc_attend_panel_width(p->line, n));
    }
}

/* A block of keys: packed panels, of those up to `packed`, and values. */
typedef struct block {
    int64_t at, end, packed;
    const float *k, *v;
    size_t ldv;
} block;

/* Rows r0.. with them. */
static void tile_block(ortc_attend_task *t, int64_t r0, int64_t mr, const block *b)
{
    const int64_t at = b->at, end = b->end;
    const ortc_attend_plan *p = t->j->p;
    const ortc_product_line *line = p->line;
    const ortc_attend_range seen = ortc_attend_seen_by(t, r0, mr, at, end);
    const int64_t n = min64(end, seen.end) - at, pitch = ortc_attend_pitch(p);
    const size_t ld_s = (size_t)pitch;
    if (n <= 0 || seen.begin >= end) return;
    ortc_attend_ask(t, r0, mr, at, n);
    const bool direct = reads_queries(t);
    const ortc_uk_plain rows = {(const float *)(const void *)ortc_attend_query(t, r0),
                                (size_t)t->j->q.step / sizeof(float)};
    const void *q = direct ? (const void *)&rows : t->q + r0 * p->size;
    for (int64_t c = 0; c < n; c += line->b.width) {
        const int64_t nr = min64(n - c, line->b.width),
                      ld = ortc_attend_panel_width(line, b->packed - at - c);
        line->tile((size_t)mr, (size_t)nr, (size_t)p->size, q, b->k + c * p->size, (size_t)ld, t->s + c, ld_s,
                   direct ? ORTC_UK_A_PLAIN : 0, NULL, NULL);
    }
    ortc_attend_weigh(t, r0, mr, at, n, t->s, pitch, t->j->scale);
    const ortc_uk_plain weights = {t->s, ld_s};
    const void *a = &weights;
    uint32_t flags = ORTC_UK_ACCUMULATE | ORTC_UK_B_EXACT | ORTC_UK_A_PLAIN;
    if (!(line->can & ORTC_LINE_PLAIN)) {
        line->moves->transpose((size_t)mr, (size_t)n, t->s, ld_s, t->p, (size_t)mr);
        a = t->p, flags &= ~(uint32_t)ORTC_UK_A_PLAIN;
    }
    for (int64_t c = 0; c < p->value_size; c += line->b.width) {
        const int64_t nr = min64(p->value_size - c, line->b.width);
        line->tile((size_t)mr, (size_t)nr, (size_t)n, a, b->v + c, b->ldv, t->o + r0 * p->value_size + c,
                   (size_t)p->value_size, flags, NULL, NULL);
    }
}

void ortc_attend_tiles(ortc_attend_task *t, ortc_attend_range keys)
{
    const ortc_attend_plan *p = t->j->p;
    const int64_t n_tiles = ceil_div(t->rows, p->line->a.width);
    if (!reads_queries(t)) pack_queries(t);
    for (int64_t at = keys.begin; at < keys.end; at += p->block) {
        block b = {at, min64(keys.end, at + p->block), min64(p->total, at + p->block)};
        if (p->together && at % p->block == 0) {
            b.k = ortc_attend_keys_at(t->j, t->b * p->kv_heads + t->kv, at / p->block);
        } else {
            b.packed = b.end, b.k = t->k;
            ortc_attend_pack_keys(t, at, b.end, t->k);
        }
        b.v = ortc_attend_as_f32(t, &t->j->past_v, &t->j->v, at, b.end, p->value_size, t->v, &b.ldv);
        for (int64_t i = 0; i < n_tiles; i++) {
            const int64_t r0 = dealt(t->rows, n_tiles, i);
            tile_block(t, r0, dealt(t->rows, n_tiles, i + 1) - r0, &b);
        }
    }
}

/* ---- Dots ---------------------------------------------------------------------------------------------- */

void ortc_attend_dots(ortc_attend_task *t, ortc_attend_range keys)
{
    const ortc_attend_job *j = t->j;
    const ortc_attend_plan *p = j->p;
    const int64_t pitch = ortc_attend_pitch(p);
    int64_t count;
    for (int64_t r = 0; r < t->rows; r++)
        p->convert->widen[j->q.type]((size_t)p->size, ortc_attend_query(t, r), t->q + r * p->size);
    for (int64_t at = keys.begin; at < keys.end; at += p->block) {
        const int64_t end = min64(keys.end, at + p->block), n = end - at;
        for (int64_t i = at; i < end; i += count) {
            const char *k = ortc_attend_find(t, &j->past_k, &j->k, i, end, &count);
            const ortc_attend_heads *h = i < p->past ? &j->past_k : &j->k;
            p->body->dots[h->type]((size_t)t->rows, (size_t)count, (size_t)p->size, t->q, k,
                                   (size_t)h->step / bytes_of(h->type), t->s + (i - at), (size_t)pitch);
        }
        ortc_attend_weigh(t, 0, t->rows, at, n, t->s, pitch, j->scale);
        for (int64_t i = at; i < end; i += count) {
            const char *v = ortc_attend_find(t, &j->past_v, &j->v, i, end, &count);
            const ortc_attend_heads *h = i < p->past ? &j->past_v : &j->v;
            p->body->mix[h->type]((size_t)t->rows, (size_t)count, (size_t)p->value_size, t->s + (i - at),
                                  (size_t)pitch, v, (size_t)h->step / bytes_of(h->type), t->o);
        }
    }
}
