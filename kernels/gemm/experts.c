/* kernels/gemm/experts.c: MoE and QMoE (com.microsoft) on the cpu: every expert multiplies the tokens that
 * chose it, and no others.
 *
 * T tokens of H elements, E experts of I inside; k of them for a token. Expert after expert: its tokens are
 * put together, go through two or three products with its weights, and are added up, times their shares,
 * where they belong. Weights of floats are panels that are packed once, where they are constants; those of 2,
 * 4 or 8 bits are unpacked by the task that multiplies with them. Sums are f32, in the order of the experts,
 * so bits do not depend on threads. Between the products nothing is rounded but what the next one reads.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/element.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/product_packing.h"
#include "ortc/op.h"

enum { INPUT, ROUTER };
enum { FIRST, THIRD, SECOND, LAYERS }; /* in the order in which they run */
enum { MOST_ROWS = 512 };              /* of an expert at a time, for which products are planned */

/* Inputs; 0: there is none. */
typedef struct ports {
    uint32_t weights[LAYERS], bias[LAYERS], scales[LAYERS], zeros[LAYERS], shares;
} ports;

static const ports of_floats = {.weights = {2, 6, 4}, .bias = {3, 7, 5}};
static const ports of_bits = {{2, 8, 5}, {4, 10, 7}, {3, 9, 6}, {11, 13, 12}, 14};

typedef enum activation { RELU, GELU, SILU, IDENTITY, SWIGLU, NONE } activation;

typedef struct experts_state {
    const ports *at;
    int64_t k, fusion, bits[LAYERS]; /* bits 0: floats */
    bool normalise;
    activation act;
    float alpha, beta, limit; /* of swiglu; no limit: infinity */
} experts_state;

typedef struct experts_plan {
    const ortc_product_line *line;
    const ortc_convert *convert;
    ortc_dtype type;
    uint32_t threads;
    int64_t tokens, rows, width, inner, experts; /* rows: the most at a time */
    struct {
        int64_t n, k, blocks;      /* blocks of a row, each with a scale */
        const ortc_packed *packed; /* NULL: as they lie */
    } layer[LAYERS];
    bool third;
    /* bytes in the workspace; behind them what products ask for */
    size_t at_which, at_share, at_rows, at_bias, at_scales, at_zeros, at_x, at_first, at_third, at_inner,
        at_made, at_sum, at_product;
} experts_plan;

static activation activation_of(const ortc_node *n)
{
    static const char *const names[] = {"relu", "gelu", "silu", "identity", "swiglu"};
    const char *name = ortc_node_string(n, "activation_type", "relu");
    for (int i = 0; i < NONE; i++)
        if (!strcmp(name, names[i])) return (activation)i;
    return NONE;
}

static const ports *ports_of(const ortc_node *n)
{
    return !strcmp(ortc_node_op(n), "QMoE") ? &of_bits : &of_floats;
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ports *at = ports_of(n);
    (void)device;
    if (activation_of(n) == NONE || ortc_node_int(n, "use_sparse_mixer", 0))
        return ortc_no(why, "its activation or router is not known here");
    for (int i = 0; i < LAYERS; i++) {
        const ortc_port w = ortc_node_in(n, at->weights[i]), scales = ortc_node_in(n, at->scales[i]);
        if (w.type && (w.rank != 3 || w.dims[1] == 1 || (at->scales[i] && scales.rank < 2)))
            return ortc_no(why, "the shapes of the weights are not known, or rows are alone");
    }
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    static const char *const bits[] = {"fc1_expert_weight_bits", "fc3_expert_weight_bits",
                                       "fc2_expert_weight_bits"};
    const ortc_attr limit = ortc_node_attr(n, "swiglu_limit");
    experts_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (experts_state){.at = ports_of(n),
                         .k = ortc_node_int(n, "k", 1),
                         .fusion = ortc_node_int(n, "swiglu_fusion", 0),
                         .normalise = ortc_node_int(n, "normalize_routing_weights", 0) != 0,
                         .act = activation_of(n),
                         .alpha = ortc_node_float(n, "activation_alpha", 1),
                         .beta = ortc_node_float(n, "activation_beta", 0),
                         .limit = limit.kind == ORTC_ATTR_FLOAT ? limit.f : INFINITY};
    if (s->act != SWIGLU) s->fusion = 0;
    for (int i = 0; s->at == &of_bits && i < LAYERS; i++)
        s->bits[i] = ortc_node_int(n, bits[i], ortc_node_int(n, "expert_weight_bits", 4));
    *out = s;
    return ORTC_OK;
}

static bool given(const ortc_view *in, uint32_t n_in, uint32_t port)
{
    return port && port < n_in && in[port].dtype;
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

/* `count` elements of `bytes` behind *sum, at a whole line of cache. */
static size_t room(size_t *sum, int64_t count, size_t bytes)
{
    const size_t at = *sum;
    *sum += ((size_t)count * bytes + 63) & ~(size_t)63;
    return at;
}

static int plan_product(const experts_state *s, const experts_plan *p, int layer, int64_t m,
                        ortc_product_plan *out)
{
    const ortc_product_types types = {p->type, s->bits[layer] ? ORTC_F32 : p->type, ORTC_F32};
    const uint32_t flags = s->bits[layer]
                               ? ORTC_PRODUCT_CUSTOM_B
                               : ORTC_PRODUCT_TRANS_B | (p->layer[layer].packed ? ORTC_PRODUCT_PACKED_B : 0);
    return ortc_product_plan_init(out, p->line, &types, m, p->layer[layer].n, p->layer[layer].k, 1, flags,
                                  p->threads);
}

static ortc_status plan_layers(const experts_state *s, experts_plan *p, ortc_plan *c, size_t *workspace,
                               size_t *scratch)
{
    for (int i = 0; i < LAYERS; i++) {
        if (i == THIRD && !p->third) continue;
        const ortc_view *w = &c->in[s->at->weights[i]], *scales = &c->in[s->at->scales[i]];
        p->layer[i].n = w->dims[1], p->layer[i].k = w->dims[2] * (s->bits[i] ? 8 / s->bits[i] : 1);
        if (s->bits[i]) {
            p->layer[i].blocks = scales->rank == 3 ? scales->dims[2] : 1;
            if (w->dims[1] == 1)
                return ortc_plan_fail(c, ORTC_UNSUPPORTED, "an expert's layer has one row of weights");
        } else if (w->flags & ORTC_VIEW_CONST && w->dims[1] > 1 && w->dims[2] > 0) {
            const ortc_product_constant b = {p->experts, w->dims[1], w->dims[2], 1, p->type};
            ORTC_TRY(ortc_product_packed(c, s->at->weights[i], &p->line->b, &b, &p->layer[i].packed));
        }
        for (int64_t m = 1; m <= p->rows; m++) { /* how many an expert gets only the run knows */
            ortc_product_plan product;
            if (plan_product(s, p, i, m, &product))
                return ortc_plan_fail(c, ORTC_LIMIT, "the products' operands do not fit in memory");
            *workspace = product.workspace > *workspace ? product.workspace : *workspace;
            *scratch = product.scratch > *scratch ? product.scratch : *scratch;
        }
    }
    return ORTC_OK;
}

static void plan_rooms(const experts_state *s, experts_plan *p)
{
    const int64_t t = p->tokens;
    const size_t size = (size_t)ortc_product_size(p->type);
    int64_t longest = 0, blocks = 0;
    size_t at = 0;
    for (int i = 0; i < LAYERS; i++) {
        longest = p->layer[i].n > longest ? p->layer[i].n : longest;
        blocks = p->layer[i].n * p->layer[i].blocks > blocks ? p->layer[i].n * p->layer[i].blocks : blocks;
    }
    p->at_which = room(&at, t * s->k, sizeof(int32_t));
    p->at_share = room(&at, t * s->k, sizeof(float));
    p->at_rows = room(&at, t, sizeof(int64_t));
    p->at_bias = room(&at, longest, sizeof(float));
    p->at_scales = room(&at, blocks, sizeof(float));
    p->at_zeros = room(&at, blocks, sizeof(float));
    p->at_x = room(&at, p->rows * p->width, size);
    p->at_first = room(&at, p->rows * p->layer[FIRST].n, sizeof(float));
    p->at_third = room(&at, p->third ? p->rows * p->inner : 0, sizeof(float));
    p->at_inner = room(&at, p->rows * p->inner, size);
    p->at_made = room(&at, p->rows * p->width, sizeof(float));
    p->at_sum = room(&at, p->type == ORTC_F32 ? 0 : t * p->width, sizeof(float));
    p->at_product = at;
}

static ortc_status plan(const void *state, ortc_plan *c, void **out)
{
    const experts_state *s = state;
    const ortc_view *x = &c->in[INPUT], *w2 = &c->in[s->at->weights[SECOND]];
    size_t products = 0, scratch = 0;
    experts_plan *p = calloc(1, sizeof *p);
    if (!p) return ortc_plan_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    p->type = x->dtype, p->threads = c->threads;
    p->line = ortc_product_line_for(s->bits[FIRST] ? ORTC_F32 : p->type);
    p->convert = ortc_convert_get();
    p->experts = w2->dims[0], p->width = w2->dims[1];
    p->inner = w2->dims[2] * (s->bits[SECOND] ? 8 / s->bits[SECOND] : 1);
    p->tokens = p->width ? ortc_view_count(x) / p->width : 0;
    p->rows = p->tokens < MOST_ROWS ? p->tokens : MOST_ROWS;
    p->third = !s->fusion && given(c->in, c->n_in, s->at->weights[THIRD]);
    const ortc_status status = plan_layers(s, p, c, &products, &scratch);
    if (status != ORTC_OK) {
        free(p);
        return status;
    }
    plan_rooms(s, p);
    ortc_plan_workspace(c, p->at_product + products, scratch);
    const double each = (double)p->inner * (double)p->width * (p->third || s->fusion ? 3 : 2),
                 pairs = (double)(p->tokens * s->k),
                 read = pairs < (double)p->experts ? pairs : (double)p->experts,
                 bits = s->bits[FIRST] ? (double)s->bits[FIRST] : 8.0 * (double)ortc_product_size(p->type);
    ortc_plan_cost(c, 2 * pairs * each, read * each * bits / 8);
    *out = p;
    return ORTC_OK;
}

/* ---- The router ---------------------------------------------------------------------------------------- */

/* The k largest of a row, the first of equal ones first, and their shares: a softmax, or what is `given`. */
static void route(const experts_state *s, const float *row, const float *given, int64_t n, int32_t *which,
                  float *share)
{
    for (int64_t i = 0; i < s->k; i++) {
        int64_t best = -1;
        for (int64_t e = 0; e < n; e++) {
            bool taken = false;
            for (int64_t b = 0; b < i; b++) taken |= which[b] == e;
            if (!taken && (best < 0 || row[e] > row[best])) best = e;
        }
        which[i] = (int32_t)best;
    }
    double all = 0;
    for (int64_t i = 0; given && i < s->k; i++) all += (double)given[which[i]];
    for (int64_t i = 0; given && i < s->k; i++)
        share[i] = s->normalise ? (float)((double)given[which[i]] / all) : given[which[i]];
    if (given) return;
    const float top = row[which[0]];
    if (s->normalise)
        for (int64_t i = 0; i < s->k; i++) all += exp((double)row[which[i]] - (double)top);
    else
        for (int64_t e = 0; e < n; e++) all += exp((double)row[e] - (double)top);
    for (int64_t i = 0; i < s->k; i++) share[i] = (float)(exp((double)row[which[i]] - (double)top) / all);
}

static ortc_status route_all(const experts_state *s, const experts_plan *p, ortc_call *c)
{
    char *space = c->workspace;
    const int type = ortc_float_index(p->type);
    const size_t n = (size_t)p->experts;
    const bool shares = given(c->in, c->n_in, s->at->shares);
    float *row = malloc(2 * n * sizeof *row);
    if (!row) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a router");
    ortc_status status = ORTC_OK;
    for (int64_t t = 0; t < p->tokens && status == ORTC_OK; t++) {
        p->convert->widen[type](n, ortc_product_at(c->in[ROUTER].data, t * p->experts, p->type), row);
        if (shares)
            p->convert->widen[type](n, ortc_product_at(c->in[s->at->shares].data, t * p->experts, p->type),
                                    row + n);
        route(s, row, shares ? row + n : NULL, p->experts,
              (int32_t *)(void *)(space + p->at_which) + t * s->k,
              (float *)(void *)(space + p->at_share) + t * s->k);
        status = ortc_poll(c);
    }
    free(row);
    return status;
}

/* ---- An expert ----------------------------------------------------------------------------------------- */

typedef struct expert {
    const experts_state *s;
    const experts_plan *p;
    ortc_call *c;
    int64_t index, m;
    const int64_t *rows; /* m places in [T * k] */
    void *x, *inner;
    float *first, *third, *made, *sum; /* sum: [T][H] */
    const float *share;
} expert;

static void gather(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const expert *e = arg;
    const experts_plan *p = e->p;
    const size_t bytes = (size_t)(p->width * ortc_product_size(p->type));
    (void)scratch;
    for (int64_t i = begin; i < end; i++)
        memcpy((char *)e->x + (size_t)i * bytes,
               (const char *)e->c->in[INPUT].data + (size_t)(e->rows[i] / e->s->k) * bytes, bytes);
}

static float activate(activation a, float x, float alpha)
{
    switch (a) {
    case RELU: return x < 0 ? 0 : x;
    case GELU: return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    case SILU: return x / (1 + expf(-x));
    case SWIGLU: return x / (1 + expf(-alpha * x));
    default: return x;
    }
}

/* What lies between the layers: a row of it overwrites that of the first, from the front. */
static void between(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const expert *e = arg;
    const experts_plan *p = e->p;
    const experts_state *s = e->s;
    (void)scratch;
    for (int64_t r = begin; r < end; r++) {
        float *first = e->first + r * p->layer[FIRST].n, *to = first;
        const float *third = p->third ? e->third + r * p->inner : NULL;
        for (int64_t i = 0; i < p->inner; i++) {
            float gate = s->fusion == 1 ? first[2 * i] : first[i];
            float linear = s->fusion == 1   ? first[2 * i + 1]
                           : s->fusion == 2 ? first[p->inner + i]
                           : third          ? third[i]
                                            : 1;
            if (s->act == SWIGLU) {
                gate = gate > s->limit ? s->limit : gate;
                linear = linear > s->limit ? s->limit : linear < -s->limit ? -s->limit : linear;
                linear += s->beta;
            }
            to[i] = activate(s->act, gate, s->alpha) * linear;
        }
        p->convert->narrow[ortc_float_index(p->type)]((size_t)p->inner, to,
                                                      ortc_product_at(e->inner, r * p->inner, p->type));
    }
}

static void add_shares(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const expert *e = arg;
    const int64_t width = e->p->width;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const float share = e->share[e->rows[i]], *from = e->made + i * width;
        float *to = e->sum + e->rows[i] / e->s->k * width;
        for (int64_t h = 0; share != 0 && h < width; h++) to[h] += share * from[h];
    }
}

/* ---- Weights of few bits ------------------------------------------------------------------------------- */

typedef struct bits_of {
    const uint8_t *rows; /* of the expert: the first element in the low bits */
    int64_t bits, row_bytes, block, blocks;
    const float *scales, *zeros; /* [n][blocks] */
} bits_of;

static int code(const uint8_t *bytes, int64_t i, int64_t bits)
{
    const int64_t each = 8 / bits;
    return bytes[i / each] >> i % each * bits & ((1 << bits) - 1);
}

/* ortc_product_args.pack: rows k0.. of columns n0.. as floats. */
static void unpack_panel(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc,
                         void *dst, size_t dw)
{
    const bits_of *b = arg;
    (void)index;
    for (int64_t c = 0; c < (int64_t)dw; c++) {
        float *to = (float *)dst + c;
        const uint8_t *row = b->rows + (n0 + c) * b->row_bytes;
        const float *scales = b->scales + (n0 + c) * b->blocks, *zeros = b->zeros + (n0 + c) * b->blocks;
        for (int64_t k = k0; k < k0 + kc; k++, to += dw)
            *to = c < nc ? ((float)code(row, k, b->bits) - zeros[k / b->block]) * scales[k / b->block] : 0;
    }
}

/* Scales and zero points of an expert as floats. Those of whole rows are packed along the rows. */
static bits_of read_bits(const expert *e, int layer)
{
    const experts_plan *p = e->p;
    const ortc_call *c = e->c;
    char *space = c->workspace;
    const ortc_view *scales = &c->in[e->s->at->scales[layer]], *w = &c->in[e->s->at->weights[layer]];
    const int64_t bits = e->s->bits[layer], n = p->layer[layer].n, blocks = p->layer[layer].blocks,
                  count = n * blocks, across = scales->rank == 3 ? blocks : n, lines = count / across,
                  bytes = (across * bits + 7) / 8;
    float *steps = (float *)(void *)(space + p->at_scales), *zeros = (float *)(void *)(space + p->at_zeros);
    const uint8_t *from = given(c->in, c->n_in, e->s->at->zeros[layer])
                              ? (const uint8_t *)c->in[e->s->at->zeros[layer]].data + e->index * lines * bytes
                              : NULL;
    p->convert->widen[ortc_float_index(scales->dtype)](
        (size_t)count, ortc_product_at(scales->data, e->index * count, scales->dtype), steps);
    for (int64_t i = 0; i < count; i++)
        zeros[i] = from ? (float)code(from + i / across * bytes, i % across, bits) : (float)(1 << (bits - 1));
    return (bits_of){(const uint8_t *)w->data + e->index * n * w->dims[2],
                     bits,
                     w->dims[2],
                     p->layer[layer].k / blocks,
                     blocks,
                     steps,
                     zeros};
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

static ortc_status multiply(const expert *e, int layer, const void *a, float *to)
{
    const experts_plan *p = e->p;
    const ports *at = e->s->at;
    const ortc_product_threads threads = {ortc_call_parallel, e->c};
    const int64_t n = p->layer[layer].n, k = p->layer[layer].k;
    const ortc_packed *packed = p->layer[layer].packed;
    char *space = e->c->workspace;
    bits_of bits;
    ortc_product_plan product;
    ortc_product_args x = {.item = {.a = a, .c = to},
                           .lda = k,
                           .ldb = k,
                           .ldc = n,
                           .alpha = 1,
                           .beta = 1,
                           .workspace = space + p->at_product};
    if (plan_product(e->s, p, layer, e->m, &product))
        return ortc_call_fail(e->c, ORTC_LIMIT, "a product is too large");
    if (e->s->bits[layer])
        bits = read_bits(e, layer), x.pack = unpack_panel, x.arg = &bits;
    else if (packed)
        x.item.b = (const char *)packed->data +
                   (size_t)e->index * ortc_product_packed_bytes(&p->line->b, n, k);
    else
        x.item.b = ortc_product_at(e->c->in[at->weights[layer]].data, e->index * n * k, p->type);
    if (given(e->c->in, e->c->n_in, at->bias[layer])) {
        float *bias = (float *)(void *)(space + p->at_bias);
        p->convert->widen[ortc_float_index(p->type)](
            (size_t)n, ortc_product_at(e->c->in[at->bias[layer]].data, e->index * n, p->type), bias);
        x.item.bias_col = bias;
    }
    return ortc_product_run(&product, &x, &threads);
}

/* e->m of its rows. */
static ortc_status run_rows(expert *e)
{
    const experts_plan *p = e->p;
    const int64_t grain = ortc_rows_grain(p->width);
    ORTC_TRY(ortc_parallel(e->c, e->m, grain, gather, e));
    ORTC_TRY(multiply(e, FIRST, e->x, e->first));
    if (p->third) ORTC_TRY(multiply(e, THIRD, e->x, e->third));
    ORTC_TRY(ortc_parallel(e->c, e->m, ortc_rows_grain(8 * p->inner), between, e));
    ORTC_TRY(multiply(e, SECOND, e->inner, e->made));
    return ortc_parallel(e->c, e->m, grain, add_shares, e);
}

static ortc_status run_expert(expert *e)
{
    const experts_plan *p = e->p;
    char *space = e->c->workspace;
    const int32_t *which = (const int32_t *)(const void *)(space + p->at_which);
    int64_t *rows = (int64_t *)(void *)(space + p->at_rows), count = 0;
    for (int64_t i = 0; i < p->tokens * e->s->k; i++)
        if (which[i] == e->index) rows[count++] = i;
    for (int64_t at = 0; at < count; at += e->m) {
        e->rows = rows + at;
        e->m = count - at < p->rows ? count - at : p->rows;
        ORTC_TRY(run_rows(e));
    }
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const experts_state *s = state;
    const experts_plan *p = pstate;
    char *space = c->workspace;
    const size_t count = (size_t)(p->tokens * p->width);
    if (!count) return ORTC_OK;
    expert e = {.s = s,
                .p = p,
                .c = c,
                .x = space + p->at_x,
                .inner = space + p->at_inner,
                .first = (float *)(void *)(space + p->at_first),
                .third = (float *)(void *)(space + p->at_third),
                .made = (float *)(void *)(space + p->at_made),
                .sum = p->type == ORTC_F32 ? c->out[0].data : (void *)(space + p->at_sum),
                .share = (const float *)(const void *)(space + p->at_share)};
    ORTC_TRY(route_all(s, p, c));
    memset(e.sum, 0, count * sizeof(float));
    for (; e.index < p->experts; e.index++) ORTC_TRY(run_expert(&e));
    if (p->type != ORTC_F32) p->convert->narrow[ortc_float_index(p->type)](count, e.sum, c->out[0].data);
    return ORTC_OK;
}

static const ortc_kernel experts = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "gemm.experts",
                                    .supports = supports,
                                    .prepare = prepare,
                                    .plan = plan,
                                    .run = run};

ORTC_KERNELS(cpu, experts,
             ORTC_KERNEL_IN("com.microsoft", "MoE", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &experts),
             ORTC_KERNEL_IN("com.microsoft", "QMoE", 1, ORTC_NEWEST,
                            (ORTC_TYPES_BY_F32, ORTC_TYPE(ORTC_U8), ORTC_TYPES_BY_F32), &experts));
