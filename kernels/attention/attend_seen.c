/* kernels/attention/attend_seen.c: which keys a row of queries sees, and what its scores weigh
 * (attend_task.h). */
#include <string.h>

#include "kernels/attention/attend_task.h"

/* The range that the position of query i of a batch allows: as ref, whatever nonpad_kv_seqlen says. */
static ortc_attend_range by_position(const ortc_attend_job *j, int64_t b, int64_t i)
{
    const ortc_attend_state *s = j->s;
    const ortc_attend_plan *p = j->p;
    const ortc_view *in = j->call->in;
    int64_t valid = p->total, position = i + p->past;
    if (has_input(in, j->call->n_in, ORTC_ATTN_NONPAD)) {
        int64_t says;
        memcpy(&says, (const char *)in[ORTC_ATTN_NONPAD].data + b * 8, sizeof says);
        valid = min64(max64(says, 0), INT64_C(1) << 60);
        position = i + valid - p->length;
    }
    ortc_attend_range r = {0, min64(valid, p->total)};
    if (s->causal) r.end = min64(r.end, position + 1);
    if (s->right >= 0 && s->right < p->total) r.end = min64(r.end, position + s->right + 1);
    if (s->left >= 0) r.begin = max64(0, position - min64(s->left, p->total));
    return r;
}

static bool is_hidden(const ortc_attend_job *j, const char *mask, int64_t key)
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

static int64_t mask_bytes(const ortc_attend_job *j) /* of an element */
{
    return j->mask_kind == ORTC_MASK_BOOL ? 1 : (int64_t)bytes_of(j->mask_kind);
}

static const char *mask_of(const ortc_attend_job *j, int64_t b, int64_t head, int64_t i)
{
    const int64_t at = b * j->mask_step[0] + head * j->mask_step[1] + i * j->mask_step[2];
    if (j->mask_kind == ORTC_MASK_NONE) return NULL;
    return (const char *)j->call->in[ORTC_ATTN_MASK].data + at * mask_bytes(j);
}

/* Without what the mask hides at either end: masks of padding, and causal ones that are given as tensors. */
static ortc_attend_range without_ends(const ortc_attend_job *j, const char *mask, ortc_attend_range r)
{
    const int64_t size = mask_bytes(j), each = 8 / size;
    uint64_t hidden = j->mask_kind == ORTC_MASK_F32    ? UINT64_C(0xff800000ff800000)
                      : j->mask_kind == ORTC_MASK_F16  ? UINT64_C(0xfc00fc00fc00fc00)
                      : j->mask_kind == ORTC_MASK_BF16 ? UINT64_C(0xff80ff80ff80ff80)
                                                       : 0,
             word;
    r.end = min64(r.end, j->mask_count);
    if (r.begin < r.end && !is_hidden(j, mask, r.begin) && !is_hidden(j, mask, r.end - 1)) return r;
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

ortc_attend_range ortc_attend_look(ortc_attend_task *t, ortc_attend_range keys)
{
    const ortc_attend_job *j = t->j;
    const bool moves = j->s->causal || j->s->left >= 0 || j->s->right >= 0; /* with the position */
    ortc_attend_range all = {keys.end, keys.begin}, seen = by_position(j, t->b, 0);
    for (int64_t r = 0; r < t->rows; r++) {
        const int64_t row = t->first + r, i = ortc_attend_index_of(t, row);
        if (moves) seen = by_position(j, t->b, i);
        ortc_attend_range of = {max64(seen.begin, keys.begin), min64(seen.end, keys.end)};
        if (j->mask_kind != ORTC_MASK_NONE)
            of = without_ends(j, mask_of(j, t->b, ortc_attend_head_of(t, row), i), of);
        if (of.begin >= of.end) of = (ortc_attend_range){keys.end, keys.end};
        t->seen[r] = of;
        if (of.begin == of.end) continue;
        all = (ortc_attend_range){min64(all.begin, of.begin), max64(all.end, of.end)};
    }
    return all;
}

/* What row r sees of n keys from `at` on, counted from there; *mask: of key `at`. */
static ortc_attend_range scores_of(const ortc_attend_task *t, int64_t r, int64_t at, int64_t n,
                                   const char **mask)
{
    const ortc_attend_job *j = t->j;
    const int64_t row = t->first + r, begin = min64(max64(t->seen[r].begin - at, 0), n);
    *mask = mask_of(j, t->b, ortc_attend_head_of(t, row), ortc_attend_index_of(t, row));
    if (*mask) *mask += at * mask_bytes(j);
    return (ortc_attend_range){begin, max64(min64(t->seen[r].end - at, n), begin)};
}

void ortc_attend_ask(const ortc_attend_task *t, int64_t r0, int64_t rows, int64_t at, int64_t n)
{
    const ortc_attend_job *j = t->j;
    if (!j->mask_step[1] || !j->mask_step[2]) return;
    for (int64_t r = r0; r < r0 + rows; r++) {
        const char *mask;
        const ortc_attend_range of = scores_of(t, r, at, n, &mask);
        const int64_t bytes = mask_bytes(j);
        for (int64_t i = of.begin * bytes; i < of.end * bytes; i += 64) __builtin_prefetch(mask + i);
    }
}

static void results_times(ortc_attend_task *t, int64_t r, float by)
{
    const ortc_attend_plan *p = t->j->p;
    if (by != 1) p->body->scale((size_t)p->value_size, t->o + r * p->value_size, by);
}

/* Some rows from r0 on, `ld` apart from s on, as products. */
static void find_products(const ortc_attend_task *t, int64_t r0, int64_t rows, int64_t at, int64_t n,
                          float *s, int64_t ld, ortc_attend_products *x)
{
    for (int64_t k = 0; k < rows; k++) {
        const char *mask;
        const ortc_attend_range of = scores_of(t, r0 + k, at, n, &mask);
        x[k] = (ortc_attend_products){.begin = (size_t)of.begin,
                                      .end = (size_t)of.end,
                                      .s = s + k * ld,
                                      .mask = mask,
                                      .row = &t->state[r0 + k]};
    }
}

void ortc_attend_weigh(ortc_attend_task *t, int64_t r0, int64_t rows, int64_t at, int64_t n, float *s,
                       int64_t ld, float factor)
{
    const ortc_attend_job *j = t->j;
    for (int64_t i = 0, some; i < rows; i += some) {
        ortc_attend_products x[ORTC_ATTEND_TOGETHER];
        some = min64(rows - i, ORTC_ATTEND_TOGETHER);
        find_products(t, r0 + i, some, at, n, s + i * ld, ld, x);
        for (ortc_attend_products *row = x; row < x + some; row++) {
            for (size_t e = row->end; e < (size_t)n; e++) row->s[e] = 0;
            if (row->begin == 0) continue;
            memset(row->s, 0, row->begin * sizeof *row->s); /* the row begins at the first that is seen */
            if (row->mask) row->mask = (const char *)row->mask + row->begin * (size_t)mask_bytes(j);
            row->s += row->begin, row->end -= row->begin, row->begin = 0;
        }
        j->p->body->weigh((size_t)some, x, factor, j->mask_kind, j->s->softcap);
        for (int64_t k = 0; k < some; k++) results_times(t, r0 + i + k, x[k].by);
    }
}

void ortc_attend_halve(ortc_attend_task *t, int64_t r0, int64_t rows, int64_t at, int64_t n, int64_t ld,
                       int64_t mr)
{
    const ortc_attend_job *j = t->j;
    for (int64_t i = 0, some; i < rows; i += some) {
        ortc_attend_products x[ORTC_ATTEND_TOGETHER];
        some = min64(rows - i, ORTC_ATTEND_TOGETHER);
        find_products(t, r0 + i, some, at, n, t->s + i * ld, ld, x);
        for (int64_t k = 0; k < some; k++) x[k].to = (uint16_t *)(void *)t->p + (i + k) * ORTC_ATTEND_GROUP;
        j->p->body->halve((size_t)some, x, (size_t)ortc_attend_in_groups(n), j->scale, j->mask_kind,
                          j->s->softcap, (size_t)(mr * ORTC_ATTEND_GROUP));
        for (int64_t k = 0; k < some; k++) results_times(t, r0 + i + k, x[k].by);
    }
}

/* What rows r0.. see of the keys at..end, all in all. */
ortc_attend_range ortc_attend_seen_by(const ortc_attend_task *t, int64_t r0, int64_t mr, int64_t at,
                                      int64_t end)
{
    ortc_attend_range seen = {end, at};
    for (int64_t r = r0; r < r0 + mr; r++)
        if (t->seen[r].begin < t->seen[r].end)
            seen = (ortc_attend_range){min64(seen.begin, t->seen[r].begin), max64(seen.end, t->seen[r].end)};
    return seen;
}
