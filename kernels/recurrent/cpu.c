/* kernels/recurrent/cpu.c: RNN, GRU and LSTM on the cpu provider: f32, f16 and bf16, with sums and states in
 * f32. recurrent.rounded rounds the operands of f32's products to bf16, where the device was asked to.
 *
 * Steps go by blocks. Of a block X is put in the order in which its rows are needed (each direction's own,
 * with every sequence's length) and multiplied with W in one product. Then, step by step, the states are
 * multiplied with R, packed once, what W gave being added where sums are stored; and the gates go over that
 * row by row. Small steps of two directions, and tiny ones, run a task for a direction and some steps; in
 * others each product is split, and so are the rows. Either follows from extents alone. Odd steps read R from
 * its end: of an R larger than the cache the step before has left that there. Behind a sequence's own length
 * its states stay and Y is 0. Extents S, B, I, H, D, G as in op.c. Leaves to others: products
 * (gemm/product.h), functions (gates_vec.c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cpu_device.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/cpu_gemm.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/product.h"
#include "kernels/recurrent/gates.h"

ORTC_VEC_TABLE(ortc_gates)

#define BLOCK_ROWS 256              /* of X multiplied together, or a step's */
#define BLOCK_BYTES (4.0 * 1048576) /* of what W gives for them */
#define SMALL_STEP 8.0e6            /* operations of one: of two directions a task each */
#define TINY_STEP 0.25e6
#define TASK \
    60.0e6 /* operations of a task with all of its operands at hand, and bytes of R that one reads: */
#define TASK_BYTES (40.0 * 1048576) /* both less than a millisecond */

/* Products with W, with R or its rows of the gates that know the old state, with R's others. */
enum { BY_W, BY_R, BY_LAST, PRODUCTS };

/* Places of a direction's floats. */
enum { AT_H, AT_C, AT_GATES, AT_TEMP, AT_BIAS, AT_LAST_BIAS, AT_PEEP, AT_XW, PLACES };

typedef struct recurrent_plan {
    const ortc_gates *body;
    const ortc_convert *convert;
    int64_t steps, batch, input, hidden, rows; /* rows: G H */
    int64_t block;                             /* steps of a block */
    int64_t some;                              /* of a task for a direction; 0: products and rows are split */
    int64_t shares;                            /* of a product's tasks: threads, as far as is known */
    ortc_product_plan product[PRODUCTS];
    bool used[PRODUCTS];
    const ortc_packed *packed[PRODUCTS][2]; /* by direction; NULL: made in each run */
    int64_t at[PLACES + 1];                 /* floats; the last is the size of all */
    /* Bytes in the workspace: of the first direction, X in order, a product's workspace, packed operands. */
    size_t at_x, x_bytes, at_work, work_bytes, at_packed[PRODUCTS][2];
} recurrent_plan;

typedef struct recurrent_job {
    const ortc_recurrent_state *s;
    const recurrent_plan *p;
    const ortc_view *x;
    ortc_view *y;           /* NULL: not wanted */
    const int32_t *lengths; /* NULL: all are as long as X */
    char *memory;
    const void *packed[PRODUCTS][2];
    int64_t first, count; /* steps of the block */
    bool peep;
    ortc_product_threads threads; /* of the call */
} recurrent_job;

/* ---- Planning ------------------------------------------------------------------------------------------ */

/* Rows of W or R of one direction. Compared bytewise. */
typedef struct pack_param {
    int64_t first, n, k;
    ortc_product_form form;
    ortc_dtype type;
} pack_param;
_Static_assert(sizeof(pack_param) == 3 * 8 + sizeof(ortc_product_form) + 4, "padding has no fixed bytes");

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const pack_param *p = param;
    (void)src;
    return ortc_product_packed_bytes(&p->form, p->n, p->k);
}

static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const pack_param *p = param;
    const ortc_product_threads threads = {ortc_call_parallel, call};
    return ortc_product_fill(ortc_product_moves_select(), &p->form, p->type, p->n, p->k, 1,
                             ortc_product_at(src->data, p->first * p->k, p->type), p->k, dst, &threads);
}

static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.recurrent", pack_bytes, pack_fill,
                                     ORTC_PACKING_PASSES};

/* What of W or R a product multiplies with. */
static pack_param operand(const recurrent_plan *g, int which, int32_t d)
{
    const ortc_product_plan *p = &g->product[which];
    return (pack_param){.first = d * g->rows + (which == BY_LAST ? 2 * g->hidden : 0),
                        .n = p->n,
                        .k = p->k,
                        .form = p->line->b,
                        .type = p->types.b};
}

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* rounds: f32 may be. Of a machine with a unit of tiles one row, too: half as many bytes are read. */
static const ortc_product_line *line_of(const ortc_product_types *t, int rounds, int64_t m, int64_t n,
                                        int64_t k)
{
    const ortc_product_line *pairs = rounds ? ortc_product_select(ORTC_BF16, ORTC_BF16) : NULL,
                            *plain = ortc_gemm_quicker(t->a, t->b, m, n, k, 1, 1);
    const ortc_matmul_shape shape = {.m = m, .n = n, .k = k, .batch = 1};
    if (!pairs) return plain;
    return pairs->begin || (m > 1 && ortc_gemm_clocks(pairs, &shape, 1) < ortc_gemm_clocks(plain, &shape, 1))
               ? pairs
               : plain;
}

static ortc_status plan_products(const ortc_recurrent_state *s, ortc_plan *p, int rounds, recurrent_plan *g)
{
    const ortc_dtype t = p->in[0].dtype;
    const bool parts = s->what == ORTC_GRU && !s->reset_last;
    const int64_t m[PRODUCTS] = {g->block * g->batch, g->batch, parts ? g->batch : 0};
    const int64_t n[PRODUCTS] = {g->rows, parts ? 2 * g->hidden : g->rows, g->hidden};
    const int64_t k[PRODUCTS] = {g->input, g->hidden, g->hidden};
    size_t scratch = 0;
    for (int i = 0; i < PRODUCTS; i++) { /* of many tasks on one thread, too: steps in turn walk them back */
        const ortc_product_types types = {i == BY_W ? t : ORTC_F32, t, ORTC_F32};
        g->used[i] = m[i] > 0;
        if (!g->used[i]) continue;
        if (ortc_product_plan_init(&g->product[i], line_of(&types, rounds, m[i], n[i], k[i]), &types, m[i],
                                   n[i], k[i], 1, ORTC_PRODUCT_TRANS_B | ORTC_PRODUCT_PACKED_B, 0))
            return ortc_plan_fail(p, ORTC_LIMIT, "the products do not fit in memory");
        if (g->product[i].scratch > scratch) scratch = g->product[i].scratch;
        if (g->product[i].workspace > g->work_bytes) g->work_bytes = g->product[i].workspace;
    }
    g->work_bytes = aligned(g->work_bytes);
    g->at_packed[0][0] = g->at_work + (size_t)s->directions * g->work_bytes;
    size_t bytes = g->at_packed[0][0];
    for (int i = 0; i < PRODUCTS; i++)
        for (int32_t d = 0; g->used[i] && k[i] > 0 && d < s->directions; d++) {
            const uint32_t in = i == BY_W ? 1 : 2;
            const pack_param param = operand(g, i, d);
            g->at_packed[i][d] = bytes;
            if (p->in[in].flags & ORTC_VIEW_CONST)
                ORTC_TRY(ortc_plan_pack(p, in, &packing, &param, sizeof param, &g->packed[i][d]));
            else
                bytes += aligned(ortc_product_packed_bytes(&param.form, param.n, param.k));
        }
    ortc_plan_workspace(p, bytes, scratch);
    return ORTC_OK;
}

static ortc_status plan_as(const void *state, ortc_plan *p, int rounds, void **out)
{
    const ortc_recurrent_state *s = state;
    const ortc_view *x = &p->in[0];
    recurrent_plan *g = calloc(1, sizeof *g);
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *g = (recurrent_plan){.body = ortc_gates_select(),
                          .convert = ortc_convert_get(),
                          .steps = x->dims[s->batch_first],
                          .batch = x->dims[!s->batch_first],
                          .input = x->dims[2],
                          .hidden = p->in[2].dims[2],
                          .rows = p->in[2].dims[1]};
    const double b = (double)g->batch, h = (double)g->hidden, r = (double)g->rows, i = (double)g->input;
    const double step = 2 * b * h * r, row = 4 * b * r > 1 ? 4 * b * r : 1;
    double block = b * BLOCK_ROWS > 0 ? BLOCK_ROWS / b : 1;
    if (block * row > BLOCK_BYTES) block = BLOCK_BYTES / row;
    const int64_t most = block < 1 ? 1 : block < (double)g->steps ? (int64_t)block : g->steps;
    g->block = most ? (g->steps - 1) / ((g->steps - 1) / most + 1) + 1 : 0; /* of about one length */
    if (step < (s->directions == 2 ? SMALL_STEP : TINY_STEP)) {
        const double bytes = h * r * (double)ortc_product_size(x->dtype) + 1000;
        const double some = TASK / (step + 1000) < TASK_BYTES / bytes ? TASK / (step + 1000)
                                                                      : TASK_BYTES / bytes;
        g->some = some < 1 ? 1 : some < (double)g->block ? (int64_t)some : g->block > 0 ? g->block : 1;
    }
    g->shares = g->some ? 1 : p->threads;
    const double sizes[PLACES] = {b * h, b * h, b * r, b * r, r, r, 3 * h, (double)g->block * b * r};
    double floats = 0;
    for (int place = 0; place < PLACES; place++) {
        g->at[place] = (int64_t)floats;
        floats += ceil(sizes[place] / 16) * 16;
        if (floats > (double)(SIZE_MAX / 64)) {
            free(g);
            return ortc_plan_fail(p, ORTC_LIMIT, "the states do not fit in memory");
        }
    }
    g->at[PLACES] = (int64_t)floats;
    g->at_x = (size_t)s->directions * (size_t)g->at[PLACES] * sizeof(float);
    g->x_bytes = aligned((size_t)(g->block * g->batch * g->input * ortc_product_size(x->dtype)));
    g->at_work = g->at_x + (size_t)s->directions * g->x_bytes;
    const ortc_status status = plan_products(s, p, rounds, g);
    if (status) {
        free(g);
        return status;
    }
    ortc_plan_cost(p, (double)s->directions * (double)g->steps * (step + 2 * b * r * i),
                   (double)s->directions * r * (h + i) * (double)ortc_product_size(x->dtype));
    *out = g;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out) { return plan_as(state, p, 0, out); }
static ortc_status plan_rounded(const void *state, ortc_plan *p, void **out)
{
    return plan_as(state, p, 1, out);
}

static ortc_status supports_rounded(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    (void)n;
    if (!ortc_rounds_to_bf16(device)) return ortc_no(why, "f32 is not to be rounded to bf16");
    if (!ortc_product_select(ORTC_BF16, ORTC_BF16))
        return ortc_no(why, "there are no instructions for products of bf16");
    return ORTC_OK;
}

/* ---- A row of gates ------------------------------------------------------------------------------------ */

static float *place(const recurrent_job *j, int64_t d, int which)
{
    return (float *)(void *)j->memory + d * j->p->at[PLACES] + j->p->at[which];
}

/* Where in X's steps a row of the batch is at a step; -1: its sequence is over. */
static int64_t now(const recurrent_job *j, int64_t d, int64_t b, int64_t step)
{
    const int64_t length = j->lengths ? j->lengths[b] : j->p->steps;
    if (step >= length) return -1;
    return d == 1 || j->s->reverse ? length - 1 - step : step;
}

static void apply(const recurrent_job *j, int64_t d, int which, int64_t n, const float *x, float *y)
{
    const ortc_gate_function *f = &j->s->fn[d * j->s->functions + which];
    j->p->body->apply[f->kind]((size_t)n, x, (float)j->s->clip, (float)f->alpha, (float)f->beta, y);
}

static void lstm_row(const recurrent_job *j, int64_t d, int64_t b)
{
    const ortc_gates *v = j->p->body;
    const int64_t H = j->p->hidden;
    const size_t n = (size_t)H;
    const float *peep = place(j, d, AT_PEEP); /* of input, output, forget */
    float *i = place(j, d, AT_GATES) + b * 4 * H, *o = i + H, *f = o + H, *cell = f + H;
    float *h = place(j, d, AT_H) + b * H, *c = place(j, d, AT_C) + b * H;
    if (!j->peep && !j->s->input_forget) {
        apply(j, d, 0, 3 * H, i, i);
    } else {
        if (j->peep) v->multiply_add(n, peep, c, i, i);
        if (j->peep) v->multiply_add(n, peep + 2 * H, c, f, f);
        apply(j, d, 0, H, i, i);
        apply(j, d, 0, H, f, f);
    }
    apply(j, d, 1, H, cell, cell);
    if (j->s->input_forget) {
        v->mix(n, i, c, cell, c);
    } else {
        v->multiply(n, i, cell, cell);
        v->multiply_add(n, f, c, cell, c);
    }
    if (j->peep) v->multiply_add(n, peep + H, c, o, o);
    if (j->peep || j->s->input_forget) apply(j, d, 0, H, o, o);
    apply(j, d, 2, H, c, h);
    v->multiply(n, o, h, h);
}

static void gru_row(const recurrent_job *j, int64_t d, int64_t b, const float *xw)
{
    const ortc_gates *v = j->p->body;
    const int64_t H = j->p->hidden;
    float *z = place(j, d, AT_GATES) + b * 3 * H, *r = z + H, *hidden = r + H;
    float *h = place(j, d, AT_H) + b * H;
    if (j->s->reset_last) { /* else update and reset are done, and R's part is in */
        v->add((size_t)(2 * H), z, xw, z);
        apply(j, d, 0, 2 * H, z, z);
        v->multiply_add((size_t)H, r, hidden, xw + 2 * H, hidden);
    }
    apply(j, d, 1, H, hidden, hidden);
    v->mix((size_t)H, z, hidden, h, h);
}

/* ---- A step -------------------------------------------------------------------------------------------- */

typedef struct step_job {
    const recurrent_job *j;
    int64_t d, step;
    const float *xw; /* what W gave: [B, G H] */
} step_job;

/* The gates that a GRU's reset needs, and the states it makes of the old ones. */
static void reset_rows(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const step_job *t = arg;
    const int64_t H = t->j->p->hidden;
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        float *z = place(t->j, t->d, AT_GATES) + b * 3 * H;
        apply(t->j, t->d, 0, 2 * H, z, z);
        t->j->p->body->multiply((size_t)H, z + H, place(t->j, t->d, AT_H) + b * H,
                                place(t->j, t->d, AT_TEMP) + b * H);
    }
}

static void state_rows(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const step_job *t = arg;
    const recurrent_job *j = t->j;
    const recurrent_plan *p = j->p;
    const int64_t D = j->s->directions, d = t->d;
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        const int64_t at = now(j, d, b, t->step);
        float *h = place(j, d, AT_H) + b * p->hidden;
        if (at < 0) continue;
        switch (j->s->what) {
        case ORTC_LSTM: lstm_row(j, d, b); break;
        case ORTC_GRU: gru_row(j, d, b, t->xw + b * p->rows); break;
        default: apply(j, d, 0, p->hidden, place(j, d, AT_GATES) + b * p->hidden, h);
        }
        if (!j->y) continue;
        const int64_t to = j->s->batch_first ? (b * p->steps + at) * D + d : (at * D + d) * p->batch + b;
        p->convert->narrow[ortc_float_index(j->y->dtype)]((size_t)p->hidden, h,
                                                          ortc_product_at(j->y->data, to * p->hidden,
                                                                          j->y->dtype));
    }
}

static int32_t multiply(const recurrent_job *j, int which, int64_t d, const void *a, float *c,
                        const float *added, const float *bias, int64_t backward,
                        const ortc_product_threads *threads)
{
    const recurrent_plan *p = j->p;
    const ortc_product_args args = {
        .item = {.a = a, .b = j->packed[which][d], .c = c, .bias_col = bias, .residual = added},
        .lda = p->product[which].k,
        .ldc = p->rows,
        .residual_stride = p->rows,
        .alpha = 1,
        .beta = 1,
        .backward = backward,
        .workspace = j->memory + p->at_work + (size_t)d * p->work_bytes};
    return ortc_product_run(&p->product[which], &args, threads);
}

static int32_t run_step(const recurrent_job *j, int64_t d, int64_t step, const ortc_product_threads *threads)
{
    const recurrent_plan *p = j->p;
    step_job t = {j, d, step, place(j, d, AT_XW) + (step - j->first) * p->batch * p->rows};
    const int64_t grain = ortc_rows_grain(4 * p->rows);
    const bool late = j->s->what == ORTC_GRU && j->s->reset_last;
    const int64_t backward = step % 2 ? p->shares : 0;
    float *gates = place(j, d, AT_GATES);
    int32_t status = multiply(j, BY_R, d, place(j, d, AT_H), gates, late ? NULL : t.xw,
                              late ? place(j, d, AT_LAST_BIAS) : NULL, backward, threads);
    if (status == 0 && p->used[BY_LAST]) {
        status = threads->parallel(threads->context, p->batch, grain, reset_rows, &t);
        if (status == 0)
            status = multiply(j, BY_LAST, d, place(j, d, AT_TEMP), gates + 2 * p->hidden,
                              t.xw + 2 * p->hidden, NULL, backward, threads);
    }
    return status ? status : threads->parallel(threads->context, p->batch, grain, state_rows, &t);
}

/* ---- The run ------------------------------------------------------------------------------------------- */

/* All of a loop on this thread, with its scratch. */
static int32_t alone(void *scratch, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    (void)grain;
    body(arg, 0, n, scratch);
    return 0;
}

typedef struct direction_job {
    const recurrent_job *j;
    int64_t from, to; /* steps */
} direction_job;

static void direction_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const direction_job *t = arg;
    const ortc_product_threads threads = {alone, scratch};
    for (int64_t d = begin; d < end; d++)
        for (int64_t step = t->from; step < t->to; step++)
            run_step(t->j, d, step, &threads); /* cannot fail */
}

/* X's rows of the block in the order in which they are needed. */
static void gather(const recurrent_job *j, int64_t d, char *to)
{
    const recurrent_plan *p = j->p;
    const size_t bytes = (size_t)(p->input * ortc_product_size(j->x->dtype));
    for (int64_t step = j->first; step < j->first + j->count; step++)
        for (int64_t b = 0; b < p->batch; b++, to += bytes) {
            const int64_t t = now(j, d, b, step),
                          row = j->s->batch_first ? b * p->steps + t : t * p->batch + b;
            if (t < 0)
                memset(to, 0, bytes);
            else
                memcpy(to, (const char *)j->x->data + (size_t)row * bytes, bytes);
        }
}

static ortc_status run_block(ortc_call *c, recurrent_job *j)
{
    const recurrent_plan *p = j->p;
    const int64_t D = j->s->directions;
    for (int64_t d = 0; d < D; d++) {
        char *x = j->memory + p->at_x + (size_t)d * p->x_bytes;
        gather(j, d, x);
        if (j->count < p->block) /* the last one: the plan multiplies all rows */
            memset(x + (size_t)(j->count * p->batch * p->input * ortc_product_size(j->x->dtype)), 0,
                   (size_t)((p->block - j->count) * p->batch * p->input * ortc_product_size(j->x->dtype)));
        ORTC_TRY(multiply(j, BY_W, d, x, place(j, d, AT_XW), NULL, place(j, d, AT_BIAS), 0, &j->threads));
    }
    const int64_t end = j->first + j->count;
    if (p->some)
        for (direction_job t = {j, j->first, 0}; t.from < end; t.from = t.to) {
            t.to = t.from + p->some < end ? t.from + p->some : end;
            ORTC_TRY(ortc_parallel(c, D, 1, direction_chunk, &t));
        }
    for (int64_t step = j->first; !p->some && step < end; step++)
        for (int64_t d = 0; d < D; d++) ORTC_TRY(run_step(j, step % 2 ? D - 1 - d : d, step, &j->threads));
    return ORTC_OK;
}

/* n elements from `at` on as f32; of what is not there zeros. */
static void load(const recurrent_job *j, const ortc_view *v, int64_t at, int64_t n, float *to)
{
    if (v)
        j->p->convert->widen[ortc_float_index(v->dtype)]((size_t)n, ortc_product_at(v->data, at, v->dtype),
                                                         to);
    else
        memset(to, 0, (size_t)n * sizeof *to);
}

/* Biases: W's and R's together are added to what W gives; but R's of a hidden gate that is reset afterwards.
 * */
static void load_biases(const recurrent_job *j, const ortc_view *b, int64_t d)
{
    const recurrent_plan *p = j->p;
    float *sum = place(j, d, AT_BIAS), *last = place(j, d, AT_LAST_BIAS);
    load(j, b, d * 2 * p->rows, p->rows, sum);
    load(j, b, d * 2 * p->rows + p->rows, p->rows, last);
    const bool late = j->s->what == ORTC_GRU && j->s->reset_last;
    const int64_t both = late ? 2 * p->hidden : p->rows;
    p->body->add((size_t)both, sum, last, sum);
    memset(last, 0, (size_t)both * sizeof *last);
}

static const ortc_view *given(const ortc_call *c, uint32_t i)
{
    return c->n_in > i && c->in[i].dtype ? &c->in[i] : NULL;
}

static ortc_status begin(ortc_call *c, recurrent_job *j)
{
    const recurrent_plan *p = j->p;
    const int64_t D = j->s->directions, H = p->hidden;
    for (int i = 0; i < PRODUCTS; i++)
        for (int32_t d = 0; p->used[i] && p->product[i].k > 0 && d < D; d++) {
            const pack_param param = operand(p, i, d);
            j->packed[i][d] = p->packed[i][d] ? p->packed[i][d]->data : j->memory + p->at_packed[i][d];
            if (!p->packed[i][d])
                ORTC_TRY(pack_fill(j->memory + p->at_packed[i][d], &c->in[i == BY_W ? 1 : 2], &param, c));
        }
    for (int64_t d = 0; d < D; d++) {
        load_biases(j, given(c, 3), d);
        if (j->peep) load(j, given(c, 7), d * 3 * H, 3 * H, place(j, d, AT_PEEP));
        for (int64_t b = 0; b < p->batch; b++)
            for (uint32_t i = 0; i < 2; i++)
                load(j, given(c, 5 + i), (j->s->batch_first ? b * D + d : d * p->batch + b) * H, H,
                     place(j, d, i ? AT_C : AT_H) + b * H);
    }
    if (j->y && j->lengths)
        memset(j->y->data, 0, ortc_bytes_of(ortc_dtype_bits(j->y->dtype), ortc_view_count(j->y)));
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_recurrent_state *s = state;
    const recurrent_plan *p = pstate;
    const int64_t D = s->directions, H = p->hidden;
    recurrent_job j = {.s = s,
                       .p = p,
                       .x = &c->in[0],
                       .y = c->out[0].dtype ? &c->out[0] : NULL,
                       .memory = c->workspace,
                       .peep = given(c, 7) != NULL,
                       .threads = {ortc_call_parallel, c}};
    if (given(c, 4)) {
        ORTC_TRY(ortc_recurrent_lengths(c, &c->in[4], p->steps));
        j.lengths = c->in[4].data;
    }
    if (p->batch == 0 || H == 0) return ORTC_OK;
    ORTC_TRY(begin(c, &j));
    for (; j.first < p->steps; j.first += j.count) {
        j.count = p->steps - j.first < p->block ? p->steps - j.first : p->block;
        ORTC_TRY(run_block(c, &j));
    }
    for (uint32_t o = 1; o < c->n_out; o++)
        for (int64_t i = 0; c->out[o].dtype && i < D * p->batch; i++) {
            const int64_t d = i / p->batch, b = i % p->batch, to = s->batch_first ? b * D + d : i;
            p->convert->narrow[ortc_float_index(c->out[o].dtype)]((size_t)H,
                                                                  place(&j, d, o == 1 ? AT_H : AT_C) + b * H,
                                                                  ortc_product_at(c->out[o].data, to * H,
                                                                                  c->out[o].dtype));
        }
    return ORTC_OK;
}

static const ortc_kernel recurrent_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "recurrent.cpu",
                                          .prepare = ortc_recurrent_prepare,
                                          .plan = plan,
                                          .run = run};

static const ortc_kernel recurrent_rounded = {.size = ORTC_SIZED(ortc_kernel),
                                              .flags = ORTC_KERNEL_ROUNDS,
                                              .name = "recurrent.rounded",
                                              .supports = supports_rounded,
                                              .prepare = ortc_recurrent_prepare,
                                              .plan = plan_rounded,
                                              .run = run};

#define K(op) \
    ORTC_KERNEL(op, 22, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32), ORTC_TYPE(ORTC_I32)), &recurrent_rounded), \
        ORTC_KERNEL(op, 22, ORTC_NEWEST, (ORTC_TYPES_BY_F32, ORTC_TYPE(ORTC_I32)), &recurrent_cpu)
ORTC_KERNELS(cpu, recurrent, K("RNN"), K("GRU"), K("LSTM"));
