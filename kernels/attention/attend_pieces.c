/* kernels/attention/attend_pieces.c: Attention of f32 by tiles of pieces of bf16 (attend_task.h, gemm's
 * product_amx.c). Queries, with the scale in them, and weights are cut as A is, keys and values as B, by the
 * first tile over them. Weights have no check for what pieces do not hold: those below 2^-110 lose their last
 * piece, and one of a row is 1.
 */
#include <string.h>

#include "kernels/attention/attend_task.h"

/* The word behind rows that are cut: not 0 where they are [k][rows] of f32 instead. */
static void set_word(const ortc_attend_plan *p, char *to, int64_t rows, int64_t k, int32_t is_f32)
{
    memcpy(to + ortc_attend_in_groups(k) * p->line->a.planes * rows * 2, &is_f32, sizeof is_f32);
}

/* Rows of queries, a panel for each MR rows (dealt evenly). */
static void cut_queries(ortc_attend_task *t)
{
    const ortc_attend_plan *p = t->j->p;
    const ortc_product_moves *moves = p->line->moves;
    const int64_t tiles = ceil_div(t->rows, p->line->a.width), padded = ortc_attend_in_groups(p->size);
    char *to = (char *)t->q;
    for (int64_t i = 0; i < tiles; i++, to += ortc_attend_cut_bytes(p, p->line->a.width, p->size)) {
        const int64_t r0 = dealt(t->rows, tiles, i), mr = dealt(t->rows, tiles, i + 1) - r0;
        ortc_attend_widen_queries(t, r0, mr);
        p->body->scale((size_t)(mr * p->size), t->wide, t->j->scale);
        const int odd = moves->pieces->runs((size_t)mr, (size_t)p->size, t->wide, (size_t)p->size,
                                            p->line->a.planes, ORTC_ATTEND_GROUP, (uint16_t *)(void *)to,
                                            (size_t)mr);
        if (odd) {
            float *plain = (float *)(void *)to;
            moves->transpose((size_t)mr, (size_t)p->size, t->wide, (size_t)p->size, plain, (size_t)mr);
            memset(plain + p->size * mr, 0, (size_t)((padded - p->size) * mr) * sizeof *plain);
        }
        set_word(p, to, mr, p->size, odd);
    }
}

/* Nothing is cut yet of so many panels. */
static void forget(const ortc_attend_plan *p, char *pieces, int64_t panels, int64_t k)
{
    for (int64_t i = 0; i < panels; i++, pieces += ortc_attend_cut_bytes(p, p->line->b.width, k))
        memset(pieces, 0, ORTC_UK_PANEL_STATE);
}

/* Rows r0.. with the keys at..end, whose panels are packed, and values. */
static void pieces_block(ortc_attend_task *t, const char *q, int64_t r0, int64_t mr, int64_t at, int64_t end,
                         const float *v, size_t ldv)
{
    const ortc_attend_plan *p = t->j->p;
    const ortc_product_line *line = p->line;
    const int64_t width = line->b.width, keys = ortc_attend_pitch(p);
    const ortc_attend_range seen = ortc_attend_seen_by(t, r0, mr, at, end);
    int64_t n = min64(end, seen.end) - at;
    if (n <= 0 || seen.begin >= end) return;
    for (int64_t c = 0; c < n; c += width) {
        const int64_t panel = ortc_attend_panel_width(line, end - at - c);
        const ortc_uk_panel b = {t->k + c * p->size,
                                 t->cut_k + c / width * ortc_attend_cut_bytes(p, width, p->size), 0};
        line->tile((size_t)mr, (size_t)panel, (size_t)p->size, q, &b, (size_t)panel, t->s + c, (size_t)keys,
                   0, NULL, NULL);
    }
    if (*(int32_t *)(void *)t->cut_v == 0) n = end - at; /* who cuts values cuts all of them */
    for (int64_t r = 0; r < mr; r++) {                   /* some rows while they are in L1 */
        float *row = t->s + r * keys;
        if (r % ORTC_ATTEND_TOGETHER == 0)
            ortc_attend_weigh(t, r0 + r, min64(mr - r, ORTC_ATTEND_TOGETHER), at, n, row, keys, 1);
        memset(row + n, 0, (size_t)(ortc_attend_in_groups(n) - n) * sizeof *row);
        line->moves->pieces->runs(1, (size_t)ortc_attend_in_groups(n), row, 0, line->a.planes,
                                  ORTC_ATTEND_GROUP, (uint16_t *)(void *)t->p + r * ORTC_ATTEND_GROUP,
                                  (size_t)mr);
    }
    set_word(p, (char *)t->p, mr, n, 0);
    for (int64_t c = 0; c < p->value_size; c += width) {
        const ortc_uk_panel b = {v + c, t->cut_v + c / width * ortc_attend_cut_bytes(p, width, p->block), 0};
        line->tile((size_t)mr, (size_t)min64(p->value_size - c, width), (size_t)n, t->p, &b, ldv,
                   t->o + r0 * p->value_size + c, (size_t)p->value_size, ORTC_UK_ACCUMULATE | ORTC_UK_B_EXACT,
                   NULL, NULL);
    }
}

void ortc_attend_pieces(ortc_attend_task *t, ortc_attend_range keys)
{
    const ortc_attend_plan *p = t->j->p;
    const int64_t n_tiles = ceil_div(t->rows, p->line->a.width), width = p->line->b.width;
    cut_queries(t);
    for (int64_t at = keys.begin; at < keys.end; at += p->block) {
        const int64_t end = min64(keys.end, at + p->block);
        const char *q = (const char *)t->q;
        size_t ldv;
        ortc_attend_pack_keys(t, at, end, t->k);
        const float *v = ortc_attend_as_f32(t, &t->j->past_v, &t->j->v, at, end, p->value_size, t->v, &ldv);
        forget(p, t->cut_k, ceil_div(end - at, width), p->size);
        forget(p, t->cut_v, ceil_div(p->value_size, width), p->block);
        for (int64_t i = 0; i < n_tiles; i++, q += ortc_attend_cut_bytes(p, p->line->a.width, p->size)) {
            const int64_t r0 = dealt(t->rows, n_tiles, i);
            pieces_block(t, q, r0, dealt(t->rows, n_tiles, i + 1) - r0, at, end, v, ldv);
        }
    }
}
