/* kernels/attention/cuda_attention.c: Attention on a GPU, in one of two ways, chosen while planning.
 *
 * In one pass (flash.cuh; f32 on Hopper: flash_split.cu): many queries, heads that are not too large, when
 * nobody wants the scores. Else a product, a softmax of its rows, a product, over workspace: scores are f32;
 * probabilities have the type of Q. Where a head's rows and the next head's follow each other (or there is
 * one row each), the query heads of one key head become the rows of one product, and its keys are read once.
 * The scores of a run are cut into pieces by sample, then by key head, that fit into SCORE_BYTES. With a
 * past, keys and values are put together first: in present_key and present_value where they are wanted, else
 * in the workspace.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/attention/attention.h"
#include "kernels/attention/cuda_attention.h"
#include "kernels/common/cuda.h"
#include "kernels/gemm/cuda_gemm.h"

#define SCORE_BYTES (INT64_C(512) << 20)

typedef struct attention_state {
    bool causal, has_scale;
    float scale, softcap;
    int64_t q_heads, kv_heads, left, right, mode;
} attention_state;

/* Where the heads of a tensor lie: elements from one to the next. */
typedef struct head_steps {
    int64_t batch, head, step;
} head_steps;

typedef struct attention_plan {
    ortc_cu_rows rows; /* all but addresses */
    bool one_pass;
    ortc_cu_flash flash; /* likewise; the products below are for when it is not one pass */
    bool wgmma;          /* by Hopper's instructions, where the addresses allow */
    size_t split_at;     /* one pass of f32: bytes into the workspace */
    /* not 0: few queries, where the addresses allow, in so many parts of the keys */
    int parts;
    ortc_cu_gemm scores, values; /* likewise, for a whole piece */
    head_steps q, k, v, y;       /* k and v: of what the products read, fresh or put together */
    head_steps fresh_k, fresh_v;
    int64_t kv_heads, group, fresh, size, value_size;
    int64_t pitch;                    /* elements of a row of scores, and of probabilities */
    int64_t batches, heads;           /* samples, and key heads, of a piece */
    int32_t bytes;                    /* of an element */
    bool joined_k, joined_v;          /* keys, values are put together */
    size_t probabilities, k_at, v_at; /* bytes into the workspace; scores are at 0 */
} attention_plan;

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_port q = ortc_node_in(n, ORTC_ATTN_Q), v = ortc_node_in(n, ORTC_ATTN_V);
    (void)device;
    if (q.dtype != v.dtype)
        return ortc_no(why, "Q is %s and V is %s: one type is computed here", ortc_dtype_name(q.dtype),
                       ortc_dtype_name(v.dtype));
    if (ortc_node_int(n, "softmax_precision", ORTC_F32) == ORTC_F64)
        return ortc_no(why, "softmax_precision asks for f64, f32 is what is computed here");
    return ORTC_OK;
}

static int64_t window(int64_t size) { return size < (INT64_C(1) << 61) ? size : INT64_C(1) << 61; }

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    attention_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (attention_state){.causal = ortc_node_int(n, "is_causal", 0) != 0,
                           .has_scale = ortc_node_attr(n, "scale").kind == ORTC_ATTR_FLOAT,
                           .scale = ortc_node_float(n, "scale", 1),
                           .softcap = ortc_node_float(n, "softcap", 0),
                           .q_heads = ortc_node_int(n, "q_num_heads", 0),
                           .kv_heads = ortc_node_int(n, "kv_num_heads", 0),
                           .left = window(ortc_node_int(n, "left_window_size", -1)),
                           .right = window(ortc_node_int(n, "right_window_size", -1)),
                           .mode = ortc_node_int(n, "qk_matmul_output_mode", 0)};
    *out = s;
    return ORTC_OK;
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

/* Steps of [B, H, L, D], or of [B, L, H * D] where `packed`. */
static head_steps steps_of(bool packed, int64_t heads, int64_t length, int64_t size)
{
    return packed ? (head_steps){length * heads * size, size, heads * size}
                  : (head_steps){heads * length * size, length * size, size};
}

static bool given(const ortc_view *v, uint32_t n, uint32_t port) { return port < n && v[port].dtype; }

static void plan_extents(const attention_state *s, const ortc_plan *p, attention_plan *a)
{
    const ortc_view *q = &p->in[ORTC_ATTN_Q], *k = &p->in[ORTC_ATTN_K], *v = &p->in[ORTC_ATTN_V];
    const bool packed = q->rank == 3;
    ortc_cu_rows *r = &a->rows;
    *r = (ortc_cu_rows){.type = q->dtype,
                        .causal = s->causal,
                        .mode = (int32_t)s->mode,
                        .softcap = s->softcap,
                        .left = s->left,
                        .right = s->right,
                        .batch = q->dims[0],
                        .heads = packed ? s->q_heads : q->dims[1],
                        .length = q->dims[packed ? 1 : 2]};
    a->bytes = (int32_t)ortc_dtype_bits(q->dtype) / 8;
    a->kv_heads = packed ? s->kv_heads : k->dims[1];
    a->group = a->kv_heads > 0 ? r->heads / a->kv_heads : 1;
    a->fresh = k->dims[packed ? 1 : 2];
    a->size = packed ? k->dims[2] / a->kv_heads : k->dims[3];
    a->value_size = packed ? v->dims[2] / a->kv_heads : v->dims[3];
    r->past = given(p->in, p->n_in, ORTC_ATTN_PAST_K) ? p->in[ORTC_ATTN_PAST_K].dims[2] : 0;
    r->total = r->past + a->fresh;
    a->q = steps_of(packed, r->heads, r->length, a->size);
    a->y = steps_of(packed, r->heads, r->length, a->value_size);
    a->fresh_k = steps_of(packed, a->kv_heads, a->fresh, a->size);
    a->fresh_v = steps_of(packed, a->kv_heads, a->fresh, a->value_size);
    a->joined_k = r->past > 0 || given(p->out, p->n_out, 1);
    a->joined_v = r->past > 0 || given(p->out, p->n_out, 2);
    a->k = a->joined_k ? steps_of(false, a->kv_heads, r->total, a->size) : a->fresh_k;
    a->v = a->joined_v ? steps_of(false, a->kv_heads, r->total, a->value_size) : a->fresh_v;
    if (given(p->in, p->n_in, ORTC_ATTN_MASK)) {
        const ortc_view *m = &p->in[ORTC_ATTN_MASK];
        int64_t step = r->mask_count = m->dims[m->rank - 1];
        r->mask_type = m->dtype;
        for (int32_t d = m->rank - 2, at = 2; d >= 0; d--, at--) {
            r->mask_step[at] = m->dims[d] == 1 ? 0 : step;
            step *= m->dims[d];
        }
    }
}

/* A product over the heads of a piece whose M side is rows of queries: `steps` is where they lie outside (A
 * of the first product, Y of the second), scores inside have theirs. */
static void plan_rows(const attention_plan *a, ortc_cu_gemm *g, const head_steps *steps, int64_t *row,
                      int64_t *outside, int64_t *inside, const head_steps *keys)
{
    const int64_t length = a->rows.length, head = length * a->pitch;
    const bool merged = length == 1 || steps->head == length * steps->step;
    g->m = merged ? a->group * length : length;
    *row = length == 1 ? steps->head : steps->step;
    g->rank = merged ? 2 : 3;
    g->dims[0] = a->batches, g->dims[1] = a->heads, g->dims[2] = a->group;
    outside[0] = steps->batch, outside[1] = steps->head * a->group, outside[2] = steps->head;
    inside[0] = head * a->group * a->heads, inside[1] = head * a->group, inside[2] = head;
    g->b_step[0] = keys->batch, g->b_step[1] = keys->head, g->b_step[2] = 0;
}

static float scale_of(const attention_state *s, const attention_plan *a)
{
    return s->has_scale ? s->scale : (float)(1 / sqrt((double)a->size));
}

static void plan_products(const attention_state *s, attention_plan *a, const ortc_cuda_device *device)
{
    const int capability = device->major * 10 + device->minor;
    ortc_cu_gemm *g = &a->scores;
    const ortc_cu_rows *r = &a->rows;
    *g = (ortc_cu_gemm){.n = r->total,
                        .k = a->size,
                        .a_col = 1,
                        .b_row = 1,
                        .b_col = a->k.step,
                        .y_row = a->pitch,
                        .alpha = scale_of(s, a),
                        .beta = 1,
                        .type = r->type,
                        .out_type = ORTC_F32};
    plan_rows(a, g, &a->q, &g->a_row, g->a_step, g->y_step, &a->k);
    ortc_cu_gemm_plan(g, device->processors, capability);
    g = &a->values;
    *g = (ortc_cu_gemm){.n = a->value_size,
                        .k = r->total,
                        .a_row = a->pitch,
                        .a_col = 1,
                        .b_row = a->v.step,
                        .b_col = 1,
                        .alpha = 1,
                        .beta = 1,
                        .type = r->type,
                        .out_type = r->type};
    plan_rows(a, g, &a->y, &g->y_row, g->y_step, g->a_step, &a->v);
    ortc_cu_gemm_plan(g, device->processors, capability);
}

/* Pieces whose scores fit, as large as they may be. */
static void plan_pieces(attention_plan *a)
{
    const int64_t head = a->rows.length * a->pitch * 4 * a->group, sample = head * a->kv_heads;
    a->batches = a->rows.batch;
    a->heads = a->kv_heads;
    if (sample > 0 && sample * a->batches > SCORE_BYTES)
        a->batches = sample < SCORE_BYTES ? SCORE_BYTES / sample : 1;
    if (head > 0 && sample > SCORE_BYTES) a->heads = head < SCORE_BYTES ? SCORE_BYTES / head : 1;
}

/* A block has its rows walk over all keys: with few rows, products over workspace use more of the device. */
#define ONE_PASS_ROWS 32
/* f32: keys and values are split first. A block takes 64 rows; where such blocks are few and their keys many,
 * products over workspace do better (on an H200: 12 heads of 64 rows, 4096 keys, 61 us and 121 in one pass;
 * 64 heads, 8192 keys, 502 and 364). */
static bool splits_well(int64_t length, int64_t heads, int64_t keys, int processors)
{
    return length >= 64 && ((length + 63) / 64 * heads * 3 >= processors || keys <= 512);
}

/* Of the keys of a head. f32: as many clusters as run at once, of which three quarters of a device find room;
 * with one row a multiprocessor has room for two blocks. 16 bits: half as many blocks as multiprocessors,
 * which read at the memory's rate while the next kernel begins on the others (measured). */
static int decode_parts(int32_t type, int64_t keys, int64_t rows, int64_t heads, int processors)
{
    const int64_t most = keys / 128, at_once = (int64_t)processors * 3 / 4 * (rows == 1 ? 2 : 1);
    const int64_t blocks = type == ORTC_F32 ? at_once / heads : (processors / 2 + heads / 2) / heads;
    const int64_t parts = blocks < most ? blocks : most;
    return parts < 1 ? 1 : parts > 8 ? 8 : (int)parts;
}

static void plan_one_pass(const attention_state *s, const ortc_plan *p, attention_plan *a)
{
    const ortc_cu_rows *r = &a->rows;
    const ortc_cuda_device *device = ortc_cuda_device_of(p);
    const int64_t heads = r->batch * r->heads, tiles = (r->length + 127) / 128;
    const int capability = device->major * 10 + device->minor;
    /* The larger ones have been measured on Hopper only. */
    const int most = ortc_cu_has_wgmma(capability) && device->shared_bytes >= ORTC_CU_FLASH_LARGE ? 256 : 128;
    const bool f32 = r->type == ORTC_F32;
    a->one_pass = (f32 ? ortc_cu_has_wgmma(capability) && r->batch * a->kv_heads < 65536 && r->total > 0 &&
                             splits_well(r->length, heads, r->total, device->processors)
                       : r->length >= ONE_PASS_ROWS) &&
                  !given(p->out, p->n_out, 3) && given(p->out, p->n_out, 0) && a->size > 0 &&
                  a->value_size > 0 && a->size <= (f32 ? 128 : most) && a->value_size <= (f32 ? 128 : most) &&
                  r->total < INT64_C(1) << 30 && heads > 0 && 2 * tiles <= INT32_MAX / heads;
    a->flash = (ortc_cu_flash){.q_step = {a->q.batch, a->q.head, a->q.step},
                               .k_step = {a->k.batch, a->k.head, a->k.step},
                               .v_step = {a->v.batch, a->v.head, a->v.step},
                               .y_step = {a->y.batch, a->y.head, a->y.step},
                               .group = a->group,
                               .size = (int32_t)a->size,
                               .value_size = (int32_t)a->value_size,
                               .scale = scale_of(s, a),
                               .processors = device->processors,
                               .warps = tiles * heads >= device->processors ? 8 : 4};
    int64_t steps = 0;
    for (int i = 0; i < 3; i++) steps |= a->flash.q_step[i] | a->flash.k_step[i] | a->flash.v_step[i];
    const int64_t key_heads = r->batch * a->kv_heads, width = 16 / a->bytes;
    if (ortc_cu_has_wgmma(capability) && !given(p->out, p->n_out, 3) && given(p->out, p->n_out, 0) &&
        r->length > 0 && a->group * r->length <= ORTC_CU_DECODE_ROWS && a->size <= 128 &&
        a->value_size <= 128 && (steps | a->size | a->value_size) % width == 0 && r->total > 0 &&
        r->total < INT64_C(1) << 30 && key_heads > 0 && key_heads < INT32_MAX / 8)
        a->parts = decode_parts(r->type, r->total, a->group * r->length, key_heads, device->processors);
    a->wgmma = ortc_cu_has_wgmma(capability) && steps % 8 == 0 && r->length < INT64_C(1) << 30 &&
               r->total > 0;
}

static size_t take(size_t *at, int64_t bytes)
{
    const size_t begin = *at;
    *at += ((size_t)bytes + 255) & ~(size_t)255;
    return begin;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    attention_plan *a = calloc(1, sizeof *a);
    size_t bytes = 0;
    if (!a) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    plan_extents(state, p, a);
    const ortc_cu_rows *r = &a->rows;
    a->pitch = (r->total + 7) / 8 * 8;
    plan_pieces(a);
    plan_products(state, a, ortc_cuda_device_of(p));
    plan_one_pass(state, p, a);
    const int64_t scores = a->batches * a->heads * a->group * r->length * a->pitch,
                  keys = r->batch * a->kv_heads * r->total;
    if (!a->one_pass) take(&bytes, scores * 4);
    if (a->one_pass && r->type == ORTC_F32)
        a->split_at = take(&bytes, ortc_cu_flash_split_bytes(r->batch * a->kv_heads, r->total, a->size,
                                                             a->value_size));
    if (!a->one_pass && r->type != ORTC_F32) /* f32: in place */
        a->probabilities = take(&bytes, scores * a->bytes);
    if (a->joined_k && !given(p->out, p->n_out, 1)) a->k_at = take(&bytes, keys * a->size * a->bytes);
    if (a->joined_v && !given(p->out, p->n_out, 2)) a->v_at = take(&bytes, keys * a->value_size * a->bytes);
    ortc_plan_workspace(p, bytes, 0);
    ortc_plan_cost(p,
                   2.0 * (double)(r->batch * r->heads * r->length) * (double)r->total *
                       (double)(a->size + a->value_size),
                   0);
    *out = a;
    return ORTC_OK;
}

/* ---- Run ----------------------------------------------------------------------------------------------- */

/* Keys or values as the products read them. */
static int join(const attention_plan *a, ortc_call *c, uint32_t port, uint32_t past, uint32_t present,
                const head_steps *fresh, int64_t size, bool joined, size_t at, const void **out)
{
    const ortc_cu_rows *r = &a->rows;
    *out = c->in[port].data;
    if (!joined) return 0;
    void *to = given(c->out, c->n_out, present) ? c->out[present].data : (char *)c->workspace + at;
    *out = to;
    return ortc_cu_attention_append(to, r->past ? c->in[past].data : NULL, c->in[port].data, r->batch,
                                    a->kv_heads, r->past, a->fresh, size * a->bytes, fresh->batch * a->bytes,
                                    fresh->head * a->bytes, fresh->step * a->bytes, c->queue);
}

/* A tensor of heads, from sample b and head h on. */
static void *part(const attention_plan *a, const void *data, const head_steps *s, int64_t b, int64_t h)
{
    return (char *)(uintptr_t)data + (b * s->batch + h * s->head) * a->bytes;
}

static int run_piece(const attention_plan *a, const ortc_cu_rows *rows, ortc_call *c, const void *k,
                     const void *v, int64_t b, int64_t h)
{
    const int64_t batches = rows->batch - b < a->batches ? rows->batch - b : a->batches,
                  heads = a->kv_heads - h < a->heads ? a->kv_heads - h : a->heads;
    void *probabilities = (char *)c->workspace + a->probabilities;
    ortc_cu_gemm g = a->scores;
    g.dims[0] = batches, g.dims[1] = heads;
    g.y_step[0] = heads * g.y_step[1];
    g.a = part(a, c->in[ORTC_ATTN_Q].data, &a->q, b, h * a->group);
    g.b = part(a, k, &a->k, b, h);
    g.y = c->workspace;
    int error = ortc_cu_gemm_run(&g, c->queue);
    if (!error)
        error = ortc_cu_attention_softmax(rows, c->workspace, probabilities, a->pitch, b, batches,
                                          h * a->group, heads * a->group, c->queue);
    if (error || !given(c->out, c->n_out, 0)) return error;
    g = a->values;
    g.dims[0] = batches, g.dims[1] = heads;
    g.a_step[0] = heads * g.a_step[1];
    g.a = probabilities;
    g.b = part(a, v, &a->v, b, h);
    g.y = part(a, c->out[0].data, &a->y, b, h * a->group);
    return ortc_cu_gemm_run(&g, c->queue);
}

static int run_one_pass(const attention_plan *a, const ortc_cu_rows *rows, ortc_call *c, const void *k,
                        const void *v)
{
    ortc_cu_flash f = a->flash;
    f.rows = *rows;
    f.q = c->in[ORTC_ATTN_Q].data, f.k = k, f.v = v, f.y = c->out[0].data;
    if (rows->type == ORTC_F32) return ortc_cu_flash_split(&f, (char *)c->workspace + a->split_at, c->queue);
    if (a->wgmma && ((uintptr_t)f.q | (uintptr_t)f.k | (uintptr_t)f.v) % 16 == 0)
        return (rows->type == ORTC_F16 ? ortc_cu_flash_wgmma_f16 : ortc_cu_flash_wgmma_bf16)(&f, c->queue);
    return (rows->type == ORTC_F16 ? ortc_cu_flash_f16 : ortc_cu_flash_bf16)(&f, c->queue);
}

/* False: not here. */
static bool run_few(const attention_plan *a, const ortc_cu_rows *rows, ortc_call *c, const void *k,
                    const void *v, int *error)
{
    const void *q = c->in[ORTC_ATTN_Q].data;
    ortc_cu_flash f = a->flash;
    if (!a->parts || ((uintptr_t)q | (uintptr_t)k | (uintptr_t)v) % 16) return false;
    f.rows = *rows;
    f.q = q, f.k = k, f.v = v, f.y = c->out[0].data;
    *error = ortc_cu_decode(&f, a->parts, c->queue);
    return true;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const attention_plan *a = pstate;
    ortc_cu_rows rows = a->rows;
    const void *k, *v;
    (void)state;
    rows.mask = rows.mask_type ? c->in[ORTC_ATTN_MASK].data : NULL;
    rows.nonpad = given(c->in, c->n_in, ORTC_ATTN_NONPAD) ? c->in[ORTC_ATTN_NONPAD].data : NULL;
    rows.scores = given(c->out, c->n_out, 3) ? c->out[3].data : NULL;
    int error = join(a, c, ORTC_ATTN_K, ORTC_ATTN_PAST_K, 1, &a->fresh_k, a->size, a->joined_k, a->k_at, &k);
    if (!error)
        error = join(a, c, ORTC_ATTN_V, ORTC_ATTN_PAST_V, 2, &a->fresh_v, a->value_size, a->joined_v, a->v_at,
                     &v);
    if (!error && run_few(a, &rows, c, k, v, &error)) return ortc_cuda_done(c, error);
    if (a->one_pass) return ortc_cuda_done(c, error ? error : run_one_pass(a, &rows, c, k, v));
    for (int64_t b = 0; !error && b < rows.batch; b += a->batches)
        for (int64_t h = 0; !error && h < a->kv_heads; h += a->heads)
            error = run_piece(a, &rows, c, k, v, b, h);
    return ortc_cuda_done(c, error);
}

static const ortc_kernel kernel = {.size = sizeof kernel,
                                   .name = "attention.cuda",
                                   .supports = supports,
                                   .prepare = prepare,
                                   .plan = plan,
                                   .run = run};

#define TYPES (ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16) | ORTC_TYPE(ORTC_F32))
ORTC_KERNELS(cuda, attention,
             ORTC_KERNEL("Attention", 23, ORTC_NEWEST,
                         (TYPES, TYPES, ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL), ORTC_TYPE(ORTC_I64)),
                         &kernel));
