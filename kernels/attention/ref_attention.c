/* kernels/attention/ref_attention.c: Attention on ref: one row of scores at a time, in double.
 *
 *   score[j] = q . key[j] * scale              output 3 in mode 0
 *   then softcap * tanh(score / softcap)       mode 1
 *   plus the mask of (row, j), 0 or -infinity where it is bool, causal, of a window or of padding    mode 2
 *   softmax over j, nothing of a row whose every key is masked                                       mode 3
 *   y = sum of softmax[j] * value[j]
 *
 * Masks that only say yes or no compare j with the row's own position: its index plus the keys that came
 * before the queries. softmax_precision asks for at least so much; double is more. A row that is masked
 * altogether is known by its mask, not by its scores, which may be NaN. Nothing is rounded to T1 before the
 * end.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/attention/attention.h"

typedef struct attention_state {
    bool causal, has_scale;
    double scale, softcap;
    int64_t q_heads, kv_heads, left, right, mode;
} attention_state;

/* A tensor of heads: elements from one to the next of each dim; the last is dense. */
typedef struct head_view {
    const void *data;
    ortc_dtype t;
    int64_t batch, head, step;
} head_view;

typedef struct attention_job {
    const attention_state *state;
    const ortc_call *call;
    head_view q, k, v, past_k, past_v, y;
    int64_t heads, group, length, fresh, past, total, size, value_size;
    bool masked;
    int64_t mask_step[3], mask_count; /* of batch, head, row; elements of its last dim */
    double scale;
} attention_job;

/* dims of [B, H, L, D] or [B, L, H * D] */
static head_view view_heads(const ortc_view *v, int64_t heads, int64_t *out_length, int64_t *out_size)
{
    const bool packed = v->rank == 3;
    const int64_t length = v->dims[packed ? 1 : 2], size = packed ? v->dims[2] / heads : v->dims[3];
    *out_length = length;
    *out_size = size;
    return (head_view){v->data, v->dtype, length * size * heads, packed ? size : length * size,
                       packed ? size * heads : size};
}

ORTC_INLINE double dot(ortc_dtype t, const double *a, const void *b, int64_t at, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * ortc_load_f64(b, t, at + i);
    return sum;
}

ORTC_INLINE void add_scaled(ortc_dtype t, double *to, double by, const void *b, int64_t at, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += by * ortc_load_f64(b, t, at + i);
}

/* Where key or value j of a head begins. */
static int64_t element_of(const attention_job *j, const head_view *past, const head_view *fresh, int64_t b,
                          int64_t head, int64_t at, const head_view **out)
{
    const head_view *v = at < j->past ? past : fresh;
    *out = v;
    return b * v->batch + head * v->head + (at < j->past ? at : at - j->past) * v->step;
}

/* What is added to score `key` of a row at `position`: the mask, and -infinity where the key may not be
 * seen. */
static double bias_of(const attention_job *j, int64_t mask_at, int64_t position, int64_t key, int64_t valid)
{
    const attention_state *s = j->state;
    const ortc_view *mask = &j->call->in[ORTC_ATTN_MASK];
    double bias = 0;
    if (key >= valid || (s->causal && key > position) || (s->left >= 0 && key < position - s->left) ||
        (s->right >= 0 && key > position + s->right))
        return -INFINITY;
    if (j->masked) {
        if (key >= j->mask_count) return -INFINITY;
        bias = ortc_load_f64(mask->data, mask->dtype, mask_at + key);
        if (mask->dtype == ORTC_BOOL) bias = bias != 0 ? 0 : -INFINITY;
    }
    return bias;
}

static void softmax(double *row, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) max = row[i] > max || row[i] != row[i] ? row[i] : max;
    if (max == -INFINITY) max = 0;
    for (int64_t i = 0; i < n; i++) sum += row[i] = exp(row[i] - max);
    for (int64_t i = 0; i < n; i++) row[i] /= sum == 0 ? 1 : sum;
}

/* scratch: a row of scores, then q, then y. */
static void attention_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const attention_job *j = arg;
    const attention_state *s = j->state;
    const ortc_view *out = j->call->out;
    const bool wants_scores = j->call->n_out > 3 && out[3].dtype;
    double *row = scratch, *q = row + j->total, *y = q + j->size;
    for (int64_t r = begin; r < end; r++) {
        const int64_t i = r % j->length, h = r / j->length % j->heads, b = r / j->length / j->heads,
                      kv = h / j->group;
        const int64_t mask_at = b * j->mask_step[0] + h * j->mask_step[1] + i * j->mask_step[2];
        const ortc_view *nonpad = j->call->n_in > ORTC_ATTN_NONPAD && j->call->in[ORTC_ATTN_NONPAD].dtype
                                      ? &j->call->in[ORTC_ATTN_NONPAD]
                                      : NULL;
        const head_view *from;
        int64_t valid = j->total, position = i + j->past;
        double most = -INFINITY;
        if (nonpad) { /* whatever it says: beyond the keys it means all of them, below 0 none */
            const int64_t says = ortc_load_i64(nonpad->data, ORTC_I64, b), most_keys = INT64_C(1) << 60;
            valid = says < 0 ? 0 : says > most_keys ? most_keys : says;
            position = i + valid - j->length;
        }
        for (int64_t d = 0; d < j->size; d++)
            q[d] = ortc_load_f64(j->q.data, j->q.t, b * j->q.batch + h * j->q.head + i * j->q.step + d);
        for (int64_t key = 0; key < j->total; key++) {
            const int64_t at = element_of(j, &j->past_k, &j->k, b, kv, key, &from);
            double score = j->scale * (from->t == ORTC_F32 ? dot(ORTC_F32, q, from->data, at, j->size)
                                                           : dot(from->t, q, from->data, at, j->size));
            if (wants_scores && s->mode == 0)
                ortc_store_f64(out[3].data, out[3].dtype, r * j->total + key, score);
            if (s->softcap > 0) score = s->softcap * tanh(score / s->softcap);
            if (wants_scores && s->mode == 1)
                ortc_store_f64(out[3].data, out[3].dtype, r * j->total + key, score);
            const double bias = bias_of(j, mask_at, position, key, valid);
            most = bias > most || bias != bias ? bias : most;
            row[key] = score + bias;
            if (wants_scores && s->mode == 2)
                ortc_store_f64(out[3].data, out[3].dtype, r * j->total + key, row[key]);
        }
        softmax(row, j->total);
        for (int64_t key = 0; most == -INFINITY && key < j->total; key++) row[key] = 0;
        for (int64_t key = 0; wants_scores && s->mode == 3 && key < j->total; key++)
            ortc_store_f64(out[3].data, out[3].dtype, r * j->total + key, row[key]);
        if (!out[0].dtype) continue;
        for (int64_t d = 0; d < j->value_size; d++) y[d] = 0;
        for (int64_t key = 0; key < j->total; key++) {
            const int64_t at = element_of(j, &j->past_v, &j->v, b, kv, key, &from);
            if (from->t == ORTC_F32)
                add_scaled(ORTC_F32, y, row[key], from->data, at, j->value_size);
            else
                add_scaled(from->t, y, row[key], from->data, at, j->value_size);
        }
        for (int64_t d = 0; d < j->value_size; d++)
            ortc_store_f64(out[0].data, out[0].dtype, b * j->y.batch + h * j->y.head + i * j->y.step + d,
                           y[d]);
    }
}

/* present = past and fresh, one behind the other; a row of the parallel loop is a batch's head. */
typedef struct present_job {
    const attention_job *job;
    const head_view *past, *fresh;
    ortc_view *to;
    int64_t heads, size;
} present_job;

static void present_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const present_job *p = arg;
    const attention_job *j = p->job;
    const uint32_t bits = ortc_dtype_bits(p->to->dtype);
    for (int64_t r = begin; r < end; r++) {
        const int64_t head = r / j->total % p->heads, b = r / j->total / p->heads;
        const head_view *from;
        const int64_t at = element_of(j, p->past, p->fresh, b, head, r % j->total, &from);
        ortc_move_elements(p->to->data, r * p->size, from->data, at, p->size, bits);
    }
}

static ortc_status attention_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    attention_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (attention_state){.causal = ortc_node_int(n, "is_causal", 0) != 0,
                           .has_scale = ortc_node_attr(n, "scale").kind == ORTC_ATTR_FLOAT,
                           .scale = (double)ortc_node_float(n, "scale", 1),
                           .softcap = (double)ortc_node_float(n, "softcap", 0),
                           .q_heads = ortc_node_int(n, "q_num_heads", 0),
                           .kv_heads = ortc_node_int(n, "kv_num_heads", 0),
                           .left = ortc_node_int(n, "left_window_size", -1),
                           .right = ortc_node_int(n, "right_window_size", -1),
                           .mode = ortc_node_int(n, "qk_matmul_output_mode", 0)};
    *out = s;
    return ORTC_OK;
}

/* The extents that plan and run both need. */
static void read_extents(const attention_state *s, const ortc_view *in, uint32_t n_in, attention_job *j)
{
    const bool packed = in[ORTC_ATTN_Q].rank == 3,
               past = n_in > ORTC_ATTN_PAST_V && in[ORTC_ATTN_PAST_K].dtype;
    const int64_t kv_heads = packed ? s->kv_heads : in[ORTC_ATTN_K].dims[1];
    int64_t length;
    j->heads = packed ? s->q_heads : in[ORTC_ATTN_Q].dims[1];
    j->group = kv_heads > 0 ? j->heads / kv_heads : 1;
    j->q = view_heads(&in[ORTC_ATTN_Q], j->heads, &j->length, &j->size);
    j->k = view_heads(&in[ORTC_ATTN_K], kv_heads, &j->fresh, &j->size);
    j->v = view_heads(&in[ORTC_ATTN_V], kv_heads, &length, &j->value_size);
    if (past) {
        j->past_k = view_heads(&in[ORTC_ATTN_PAST_K], kv_heads, &j->past, &length);
        j->past_v = view_heads(&in[ORTC_ATTN_PAST_V], kv_heads, &j->past, &length);
    }
    j->total = j->past + j->fresh;
}

static ortc_status attention_plan(const void *state, ortc_plan *p, void **pstate)
{
    attention_job j = {0};
    read_extents(state, p->in, p->n_in, &j);
    ortc_plan_workspace(p, 0, sizeof(double) * ((size_t)j.total + (size_t)j.size + (size_t)j.value_size));
    ortc_plan_cost(p,
                   2.0 * (double)ortc_view_count(&p->in[0]) / (double)(j.size > 0 ? j.size : 1) *
                       (double)j.total * (double)(j.size + j.value_size),
                   0);
    return ORTC_OK;
}

static ortc_status attention_run(const void *state, const void *pstate, ortc_call *c)
{
    const attention_state *s = state;
    attention_job j = {.state = s, .call = c};
    int64_t ignored;
    read_extents(s, c->in, c->n_in, &j);
    const int64_t batch = c->in[0].dims[0], kv_heads = j.group > 0 ? j.heads / j.group : 0;
    j.scale = s->has_scale ? s->scale : 1 / sqrt((double)j.size);
    if (c->out[0].dtype) j.y = view_heads(&c->out[0], j.heads, &ignored, &ignored);
    if (c->n_in > ORTC_ATTN_MASK && c->in[ORTC_ATTN_MASK].dtype) {
        const ortc_view *m = &c->in[ORTC_ATTN_MASK];
        int64_t step = j.mask_count = m->dims[m->rank - 1];
        j.masked = true;
        for (int32_t d = m->rank - 2, at = 2; d >= 0; d--, at--) {
            j.mask_step[at] = m->dims[d] == 1 ? 0 : step;
            step *= m->dims[d];
        }
    }
    const double cost = (double)(j.total + 1) * (double)(j.size + j.value_size + 30) / 200e3;
    const int64_t rows = batch * j.heads * j.length, grain = cost > 1 ? 1 : (int64_t)(1 / cost);
    if (rows > 0) ORTC_TRY(ortc_parallel(c, rows, grain > 0 ? grain : 1, attention_chunk, &j));
    for (uint32_t i = 1; i < 3 && i < c->n_out; i++) {
        present_job p = {&j,       i == 1 ? &j.past_k : &j.past_v, i == 1 ? &j.k : &j.v, &c->out[i],
                         kv_heads, i == 1 ? j.size : j.value_size};
        if (c->out[i].dtype && ortc_view_count(&c->out[i]) > 0)
            ORTC_TRY(ortc_parallel(c, batch * kv_heads * j.total, 1000, present_chunk, &p));
    }
    return ORTC_OK;
}

const ortc_kernel ortc_ref_attention = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "attention.ref",
                                        .prepare = attention_prepare,
                                        .plan = attention_plan,
                                        .run = attention_run};
