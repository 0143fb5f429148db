/* kernels/attention/attend_halves.c: Attention by tiles of bf16 on a unit for such products
 * (attend_task.h). */
#include <string.h>

#include "kernels/attention/attend_task.h"

/* Rows at..end of keys or values, which follow each other: where they lie, or in `space`. *step: bytes. */
static const char *as_rows(const ortc_attend_task *t, const ortc_attend_heads *past,
                           const ortc_attend_heads *fresh, int64_t at, int64_t end, int64_t size, char *space,
                           int64_t *step)
{
    int64_t count;
    const char *from = ortc_attend_find(t, past, fresh, at, end, &count);
    *step = at < t->j->p->past ? past->step : fresh->step;
    if (count == end - at) return from;
    for (char *to = space; at < end; at += count) {
        from = ortc_attend_find(t, past, fresh, at, end, &count);
        for (int64_t i = 0; i < count; i++, to += size * 2)
            memcpy(to, from + i * (at < t->j->p->past ? past->step : fresh->step), (size_t)size * 2);
    }
    *step = size * 2;
    return space;
}

/* Rows of queries, [group][mr][ORTC_ATTEND_GROUP] for each MR rows. */
static void halve_queries(ortc_attend_task *t, int64_t mr)
{
    const ortc_attend_plan *p = t->j->p;
    const int64_t padded = ortc_attend_in_groups(p->size);
    for (int64_t r = 0; r < t->rows; r++) {
        const char *from = ortc_attend_query(t, r);
        char *to = (char *)t->q + (r / mr * mr * padded + r % mr * ORTC_ATTEND_GROUP) * 2;
        for (int64_t k = 0; k < p->size; k += ORTC_ATTEND_GROUP, to += mr * ORTC_ATTEND_GROUP * 2) {
            const size_t have = (size_t)min64(ORTC_ATTEND_GROUP, p->size - k) * 2;
            if (have == ORTC_ATTEND_GROUP * 2) { /* one move */
                memcpy(to, from + k * 2, ORTC_ATTEND_GROUP * 2);
                continue;
            }
            memcpy(to, from + k * 2, have);
            memset(to + have, 0, ORTC_ATTEND_GROUP * 2 - have);
        }
    }
}

/* Panel after panel of keys, [pair of elements][keys][2]: words change places. */
static void halve_keys(ortc_attend_task *t, int64_t at, int64_t end)
{
    const ortc_attend_plan *p = t->j->p;
    const int64_t width = p->line->b.width, words = p->size / 2, padded = ortc_attend_in_groups(p->size) / 2;
    for (float *to = t->k; at < end; at += width, to += width * padded) {
        const int64_t n = min64(end - at, width), panel = ortc_attend_panel_width(p->line, n);
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
static void halve_values(ortc_attend_task *t, int64_t at, int64_t end)
{
    const ortc_attend_plan *p = t->j->p;
    static const uint16_t none[ORTC_ATTEND_GROUP];
    const int64_t width = p->line->b.width, keys = ortc_attend_in_groups(end - at);
    int64_t step;
    const char *from = as_rows(t, &t->j->past_v, &t->j->v, at, end, p->value_size, (char *)t->wide, &step);
    uint16_t *to = (uint16_t *)(void *)t->v;
    for (int64_t c = 0; c < p->value_size; c += width) {
        const int64_t n = min64(p->value_size - c, width), panel = ortc_attend_panel_width(p->line, n);
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

/* Rows r0.. with the keys at..end, whose panels and values are packed; mr of them are a tile's, the last of
 * which may be behind the task's: they are multiplied, and not looked at. */
static void halves_block(ortc_attend_task *t, int64_t r0, int64_t mr, int64_t at, int64_t end)
{
    static const ortc_uk_ahead near = {.near = 1}; /* panels of keys are short: nothing is to be asked for */
    const ortc_attend_plan *p = t->j->p;
    const ortc_product_line *line = p->line;
    const int64_t padded = ortc_attend_in_groups(p->size), width = line->b.width,
                  rows = min64(mr, t->rows - r0), keys = ortc_attend_in_groups(end - at),
                  ld = ortc_attend_in_groups(p->block);
    const ortc_attend_range seen = ortc_attend_seen_by(t, r0, rows, at, end);
    const int64_t n = min64(end, seen.end) - at;
    if (n <= 0 || seen.begin >= end) return;
    for (int64_t c = 0; c < n; c += width) { /* columns behind the last key, too: so registers are stored */
        const size_t panel = (size_t)ortc_attend_panel_width(line, min64(end - at - c, width));
        line->tile((size_t)mr, panel, (size_t)(padded / ORTC_ATTEND_GROUP), (char *)t->q + r0 * padded * 2,
                   (char *)t->k + c * padded * 2, panel, t->s + c, (size_t)ld, 0, NULL, &near);
    }
    ortc_attend_halve(t, r0, rows, at, n, ld, mr);
    for (int64_t c = 0; c < p->value_size; c += width) {
        const int64_t nr = min64(p->value_size - c, width);
        line->tile((size_t)mr, (size_t)nr, (size_t)ceil_div(n, ORTC_ATTEND_GROUP), t->p,
                   (char *)t->v + c * keys * 2, (size_t)ortc_attend_panel_width(line, nr),
                   t->o + r0 * p->value_size + c, (size_t)p->value_size, ORTC_UK_ACCUMULATE, NULL, NULL);
    }
}

void ortc_attend_halves(ortc_attend_task *t, ortc_attend_range keys)
{
    const ortc_attend_plan *p = t->j->p;
    const int64_t mr = ortc_attend_tile_rows(p, t->rows);
    halve_queries(t, mr);
    for (int64_t at = keys.begin; at < keys.end; at += p->block) {
        const int64_t end = min64(keys.end, at + p->block);
        halve_keys(t, at, end);
        halve_values(t, at, end);
        for (int64_t r0 = 0; r0 < t->rows; r0 += mr) halves_block(t, r0, mr, at, end);
    }
}
