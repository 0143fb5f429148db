/* kernels/attention/attend_task.h: Attention on the cpu, cut in files: what they share. A task is a block of
 * rows of queries (cpu_attention.c deals them out); attend_seen.c says which keys a row sees, and makes
 * weights of its scores; attend_tiles.c, attend_halves.c and attend_pieces.c are the ways over keys and
 * values.
 */
#ifndef ORTC_KERNELS_ATTEND_TASK_H
#define ORTC_KERNELS_ATTEND_TASK_H

#include "kernels/attention/attend.h"
#include "kernels/attention/attention.h"
#include "kernels/common/counts.h"
#include "kernels/gemm/product.h"

typedef struct ortc_attend_state {
    bool causal, has_scale;
    float scale, softcap;
    int64_t q_heads, kv_heads, left, right;
} ortc_attend_state;

/* A tensor of heads: bytes from one to the next of each dim; the elements of a head are dense. */
typedef struct ortc_attend_heads {
    const char *data;
    int type; /* ORTC_FLOAT_* */
    int64_t batch, head, step;
} ortc_attend_heads;

typedef struct ortc_attend_plan {
    const ortc_attend_vec *body;
    const ortc_convert *convert;
    const ortc_product_line *line;
    int64_t batch, n_heads, kv_heads, group, length, fresh, past, total, size, value_size;
    int64_t rows, blocks, splits;        /* of one head of keys: rows, tasks of them, parts of the keys */
    int64_t most_rows, block;            /* of a task: rows, and keys at a time */
    bool dots, halves, pieces, together; /* together: keys are packed once, for all tasks */
    /* bytes in a worker's scratch, */
    size_t at_seen, at_state, at_q, at_o, at_k, at_v, at_s, at_p, at_wide, at_cut_k, at_cut_v;
    /* and in the workspace: where keys are split, what parts give; packed keys, block by block of a head */
    size_t at_parts, at_keys;
} ortc_attend_plan;

typedef struct ortc_attend_job {
    const ortc_attend_state *s;
    const ortc_attend_plan *p;
    const ortc_call *call;
    ortc_attend_heads q, k, v, past_k, past_v, y;
    float scale;
    int mask_kind;
    int64_t mask_step[3], mask_count; /* elements, of batch, head and query; of its last dim */
} ortc_attend_job;

typedef struct ortc_attend_range {
    int64_t begin, end;
} ortc_attend_range;

/* A task at hand: where it is, and its scratch. */
typedef struct ortc_attend_task {
    const ortc_attend_job *j;
    int64_t b, kv, first, rows;
    ortc_attend_range *seen; /* [rows] */
    ortc_attend_row *state;  /* [rows] */
    float *q, *o;            /* [rows][size], as the products want it; [rows][value_size] */
    float *k, *v, *s, *p, *wide;
    char *cut_k, *cut_v; /* pieces of panels of keys, of values */
} ortc_attend_task;

static inline size_t bytes_of(int type) { return type == ORTC_FLOAT_F32 ? 4 : 2; }
static inline bool has_input(const ortc_view *in, uint32_t n_in, uint32_t port)
{
    return port < n_in && in[port].dtype != ORTC_ABSENT;
}

/* Row r of a head of keys is query r / group of head r % group; divisions count where rows are short. */
static inline int64_t ortc_attend_head_of(const ortc_attend_task *t, int64_t r)
{
    const int64_t group = t->j->p->group;
    return group == 1 ? t->kv : t->kv * group + r % group;
}
static inline int64_t ortc_attend_index_of(const ortc_attend_task *t, int64_t r)
{
    return t->j->p->group == 1 ? r : r / t->j->p->group;
}

/* Row r of the task: a query of a head. */
static inline const char *ortc_attend_query(const ortc_attend_task *t, int64_t r)
{
    const int64_t row = t->first + r;
    return t->j->q.data + t->b * t->j->q.batch + ortc_attend_head_of(t, row) * t->j->q.head +
           ortc_attend_index_of(t, row) * t->j->q.step;
}

/* Key or value `at`; *count: how many follow each other from there on, at most `end`. */
static inline const char *ortc_attend_find(const ortc_attend_task *t, const ortc_attend_heads *past,
                                           const ortc_attend_heads *fresh, int64_t at, int64_t end,
                                           int64_t *count)
{
    const int64_t p = t->j->p->past;
    const ortc_attend_heads *h = at < p ? past : fresh;
    *count = (at < p ? min64(end, p) : end) - at;
    return h->data + t->b * h->batch + t->kv * h->head + (at < p ? at : at - p) * h->step;
}

/* ---- What a row may see (attend_seen.c) ---------------------------------------------------------------- */

/* The range of each row, within those keys; and of all. */
ortc_attend_range ortc_attend_look(ortc_attend_task *t, ortc_attend_range keys);
/* What rows r0.. see of the keys at..end, all in all. */
ortc_attend_range ortc_attend_seen_by(const ortc_attend_task *t, int64_t r0, int64_t mr, int64_t at,
                                      int64_t end);
/* Asks memory for what their mask says of those keys, if each row of each head has its own. */
void ortc_attend_ask(const ortc_attend_task *t, int64_t r0, int64_t rows, int64_t at, int64_t n);
/* Products of rows r0.. with n keys from `at` on, `ld` apart, become weights: those that a row does not see
 * 0; what it has so far is scaled. factor: by which products are scores. */
void ortc_attend_weigh(ortc_attend_task *t, int64_t r0, int64_t rows, int64_t at, int64_t n, float *s,
                       int64_t ld, float factor);
/* The same for units of bf16, of rows r0.. whose products are in t->s, `ld` apart, in whole groups (halve of
 * attend.h); weights to t->p, in blocks of mr rows. */
void ortc_attend_halve(ortc_attend_task *t, int64_t r0, int64_t rows, int64_t at, int64_t n, int64_t ld,
                       int64_t mr);

/* ---- Ways: the rows of a task with those keys ---------------------------------------------------------- */

void ortc_attend_tiles(ortc_attend_task *t, ortc_attend_range keys);  /* attend_tiles.c */
void ortc_attend_dots(ortc_attend_task *t, ortc_attend_range keys);   /* attend_tiles.c */
void ortc_attend_halves(ortc_attend_task *t, ortc_attend_range keys); /* attend_halves.c */
void ortc_attend_pieces(ortc_attend_task *t, ortc_attend_range keys); /* attend_pieces.c */

/* Rows r0.. of queries as f32, dense, to t->wide. */
void ortc_attend_widen_queries(ortc_attend_task *t, int64_t r0, int64_t mr);
/* Rows at..end of keys or values as f32, dense: where they lie, or in `space`. *ld: elements of a row. */
const float *ortc_attend_as_f32(const ortc_attend_task *t, const ortc_attend_heads *past,
                                const ortc_attend_heads *fresh, int64_t at, int64_t end, int64_t size,
                                float *space, size_t *ld);
/* Panel after panel of a line's width of keys at..end, [size][keys] of f32, to `to`. */
void ortc_attend_pack_keys(ortc_attend_task *t, int64_t at, int64_t end, float *to);

/* So many elements of k as whole groups. */
static inline int64_t ortc_attend_in_groups(int64_t n)
{
    return ceil_div(n, ORTC_ATTEND_GROUP) * ORTC_ATTEND_GROUP;
}
/* Elements from one row of scores to the next: whole groups, and one behind them, where `weigh` may write. */
static inline int64_t ortc_attend_pitch(const ortc_attend_plan *p)
{
    return ortc_attend_in_groups(p->block) + ORTC_ATTEND_GROUP;
}
/* Room for the pieces of so many rows (columns), and what stands before or behind them. */
static inline int64_t ortc_attend_cut_bytes(const ortc_attend_plan *p, int64_t rows, int64_t k)
{
    return ortc_attend_in_groups(k) * p->line->a.planes * rows * 2 + 64;
}
/* Of a task by tiles of bf16, the rows of each: evenly, so that a thread's tiles are configured once; the
 * last may have some behind the task's. */
static inline int64_t ortc_attend_tile_rows(const ortc_attend_plan *p, int64_t rows)
{
    return ceil_div(rows, ceil_div(rows, p->line->a.width));
}
/* Room for a block of packed keys: whole panels. */
static inline int64_t ortc_attend_key_floats(const ortc_attend_plan *p)
{
    return (p->block + p->line->b.width) * p->size;
}
/* Where all tasks find those of a whole block. */
static inline float *ortc_attend_keys_at(const ortc_attend_job *j, int64_t head, int64_t block)
{
    const ortc_attend_plan *p = j->p;
    const int64_t blocks = ceil_div(p->total, p->block);
    return (float *)(void *)((char *)j->call->workspace + p->at_keys) +
           (head * blocks + block) * ortc_attend_key_floats(p);
}
/* Columns of a panel as it is stored. */
static inline int64_t ortc_attend_panel_width(const ortc_product_line *line, int64_t columns)
{
    return ceil_div(min64(columns, line->b.width), line->b.step) * line->b.step;
}

#endif
