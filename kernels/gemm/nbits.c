/* kernels/gemm/nbits.c: MatMulNBits (com.microsoft) on the cpu: A [.., K] times the transpose of weights [N,
 * K] of 4 or 8 bits, which are unpacked on the way, out of the bytes of the file: nothing is packed or kept.
 *
 * Where accuracy_level 4 lets A be rounded to bytes: nbits_rounded.c. Else, up to ORTC_NBITS_ROWS rows
 * (decoding), each row of weights is read once, in registers of f32 (nbits_vec.c); more are a product of f32
 * whose panels of B are unpacked by the task that multiplies with them. Weights are not rounded to A's type,
 * as the operator's composition does for f16 and bf16. Left to the composition: 2 bits.
 *
 * ROWS_OF_PAIRS rows and more are a product of bf16, weights rounded, too, where A is bf16 or may be rounded,
 * by the level on a unit of tiles, or by the device: finite numbers above bf16's largest, 3.39e38, become
 * infinity.
 *
 * Products of one A (graph/specialise/sibling_products.c: queries, keys and values; gate and up) are one
 * node: of few rows A is spread once for all, and their rows are one loop, since a small product
 * alone is done before all threads have come to it. A node by itself is a group of one.
 */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cpu_device.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/cpu_gemm.h"
#include "kernels/gemm/nbits.h"
#include "kernels/gemm/nbits_job.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/product.h"
#include "ortc/op.h"

ORTC_VEC_TABLE(ortc_nbits_vec)

enum {
    MOST_ROUNDED = 32768,   /* elements of a block, whose products of bytes 32 bits hold */
    MOST_ROWS_OF_BYTES = 2, /* a product of many rows is quicker then */
    ROWS_OF_PAIRS = 17,     /* of which bf16's tiles are quicker than bytes */
    TASK_BYTES = 32 * 1024, /* of weights, times the rows of x by four: some microseconds */
    TILE = 16,              /* rows of weights that a part of x is multiplied with */
    PART_BYTES = 16 * 1024  /* of x: half of L1 */
};

/* ---- Scales and zero points ---------------------------------------------------------------------------- */

/* Of `count` blocks of a row from `first` on. */
const float *ortc_nbits_scales(const nbits_job *j, int64_t row, int64_t first, int64_t count, float *space)
{
    const nbits_plan *p = j->p;
    const ortc_view *v = &j->in[SCALES];
    const int type = ortc_float_index(v->dtype);
    const char *at = (const char *)v->data + (row * p->blocks + first) * ortc_product_size(v->dtype);
    if (type == ORTC_FLOAT_F32) return (const float *)(const void *)at;
    p->convert->widen[type]((size_t)count, at, space);
    return space;
}

/* One number for each block of a row: packed as the weights are, or of a type of floats; or the middle. */
void ortc_nbits_zeros_of(const nbits_job *j, int64_t row, uint8_t *space, float *to)
{
    const nbits_plan *p = j->p;
    const char *data = ortc_nbits_given(j, ZEROS);
    const int type = data ? ortc_float_index(j->in[ZEROS].dtype) : 0;
    if (data && j->in[ZEROS].dtype != ORTC_U8) {
        p->convert->widen[type]((size_t)p->blocks, data + row * p->blocks * (type == ORTC_FLOAT_F32 ? 4 : 2),
                                to);
        return;
    }
    const uint8_t *bytes = (const uint8_t *)data;
    if (data && j->s->bits == 4) p->body->halves((size_t)p->blocks, bytes + row * p->zero_bytes, space);
    if (data)
        p->body->unpack((size_t)p->blocks, j->s->bits == 4 ? space : bytes + row * p->zero_bytes, 1, 0, to);
    else
        for (int64_t b = 0; b < p->blocks; b++) to[b] = (float)(1 << (j->s->bits - 1));
}

/* ---- Few rows ------------------------------------------------------------------------------------------ */

typedef struct spaces {
    float *y, *sums, *scale, *zero; /* [m][TILE], [TILE][m][lanes], of the blocks of a row */
    uint8_t *bytes;                 /* a row of them */
} spaces;

/* `n` rows of weights of 4 bits from `row` on, by parts of K of which x stays in L1 meanwhile. */
static void rows_of_halves(const nbits_job *j, int64_t row, int64_t n, const spaces *t)
{
    const nbits_plan *p = j->p;
    const ortc_nbits_vec *body = p->body;
    const size_t m = (size_t)p->m, lanes = body->group / 8;
    const int64_t block = j->s->block;
    const uint8_t *w = (const uint8_t *)j->in[B].data + row * p->row_bytes;
    float y[ORTC_NBITS_ROWS];
    memset(t->sums, 0, (size_t)n * m * lanes * sizeof(float));
    for (int64_t k = 0; k < p->width; k += p->part) {
        const int64_t count = p->width - k < p->part ? p->width - k : p->part;
        for (int64_t i = 0; i < n; i++) {
            const uint8_t *at = w + i * p->row_bytes + k / 2;
            const float *scale = ortc_nbits_scales(j, row + i, k / block, count / block, t->scale);
            float *sums = t->sums + (size_t)i * m * lanes;
            body->row4(m, (size_t)count, (size_t)block, j->spread + k, (size_t)p->ldx, at, scale, sums);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        body->fold(m, t->sums + (size_t)i * m * lanes, y);
        for (size_t r = 0; r < m; r++) t->y[r * TILE + (size_t)i] = y[r];
        if (!ortc_nbits_given(j, ZEROS)) continue;
        const float *scale = ortc_nbits_scales(j, row + i, 0, p->blocks, t->scale);
        ortc_nbits_zeros_of(j, row + i, t->bytes, t->zero);
        for (size_t r = 0; r < m; r++)
            t->y[r * TILE + (size_t)i] -= body->offset((size_t)p->blocks, scale, t->zero, 8,
                                                       j->sums + r * (size_t)p->blocks);
    }
}

static void rows_of_bytes(const nbits_job *j, int64_t row, int64_t n, const spaces *t)
{
    const nbits_plan *p = j->p;
    float y[ORTC_NBITS_ROWS];
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *w = (const uint8_t *)j->in[B].data + (row + i) * p->row_bytes;
        ortc_nbits_zeros_of(j, row + i, t->bytes, t->zero);
        if (j->s->bits == 4) p->body->halves((size_t)p->width, w, t->bytes);
        p->body->row8((size_t)p->m, (size_t)p->width, (size_t)j->s->block, j->x, (size_t)p->ldx,
                      j->s->bits == 4 ? t->bytes : w, ortc_nbits_scales(j, row + i, 0, p->blocks, t->scale),
                      t->zero, y);
        for (int64_t r = 0; r < p->m; r++) t->y[r * TILE + i] = y[r];
    }
}

static void rows(const nbits_job *j, int64_t begin, int64_t end, void *space)
{
    const nbits_plan *p = j->p;
    const ortc_view *out = &j->out;
    char *at = space;
    const spaces t = {(float *)(void *)(at + p->at_y), (float *)(void *)(at + p->at_lanes),
                      (float *)(void *)(at + p->at_scale), (float *)(void *)(at + p->at_zero),
                      (uint8_t *)at + p->at_bytes};
    for (int64_t row = begin; row < end; row += TILE) {
        const int64_t n = end - row < TILE ? end - row : TILE;
        (j->s->bits == 4 && !j->exact ? rows_of_halves : rows_of_bytes)(j, row, n, &t);
        for (int64_t r = 0; r < p->m; r++) {
            float *y = t.y + r * TILE;
            for (int64_t i = 0; j->bias && i < n; i++) y[i] += j->bias[row + i];
            p->convert->narrow[ortc_float_index(out->dtype)](
                (size_t)n, y, (char *)out->data + (r * j->n + row) * ortc_product_size(out->dtype));
        }
    }
}

typedef struct rows_jobs {
    nbits_job of[MOST];
    int64_t end[MOST]; /* tasks of it and of those before */
} rows_jobs;

static void rows_chunk(void *arg, int64_t begin, int64_t end, void *space)
{
    const rows_jobs *all = arg;
    for (int64_t task = begin, i = 0; task < end; task++) {
        while (task >= all->end[i]) i++;
        const nbits_job *j = &all->of[i];
        const int64_t grain = j->p->grain, row = (task - (i ? all->end[i - 1] : 0)) * grain;
        rows(j, row, row + grain < j->n ? row + grain : j->n, space);
    }
}

/* x as f32, with zeros behind, spread, and the sums of its blocks. */
static void prepare_x(nbits_job *j, float *space)
{
    const nbits_plan *p = j->p;
    const ortc_view *a = &j->in[A];
    float *x = space + p->at_x, *spread = space + p->at_spread, *sums = space + p->at_sums;
    const int type = ortc_float_index(a->dtype);
    const int64_t k = j->s->k, size = type == ORTC_FLOAT_F32 ? 4 : 2;
    for (int64_t r = 0; r < p->m; r++) {
        float *row = x + r * p->ldx;
        p->convert->widen[type]((size_t)k, (const char *)a->data + r * k * size, row);
        memset(row + k, 0, (size_t)(p->ldx - k) * sizeof(float));
        if (j->s->bits == 8) continue;
        p->body->spread((size_t)p->ldx / p->body->group, row, spread + r * p->ldx);
        j->exact |= !ortc_nbits_finite(k, row);
        for (int64_t b = 0; j->s->zeros && b < p->blocks; b++) {
            float sum = 0;
            for (int64_t i = 0; i < j->s->block; i++) sum += row[b * j->s->block + i];
            sums[r * p->blocks + b] = sum;
            j->exact |= !isfinite(sum);
        }
    }
    j->x = x, j->spread = spread, j->sums = sums;
}

/* ---- Many rows ----------------------------------------------------------------------------------------- */

/* What a column's zero points are above the middle: of `count` blocks from `first` on, [count][ld]. */
void ortc_nbits_zeros(const nbits_job *j, int64_t n0, int64_t nc, int64_t first, int64_t count, float *to,
                      int64_t ld)
{
    const nbits_plan *p = j->p;
    const char *zeros = ortc_nbits_given(j, ZEROS);
    const float middle = (float)(1 << (j->s->bits - 1));
    memset(to, 0, (size_t)(count * ld) * sizeof(float));
    for (int64_t c = 0; zeros && c < nc; c++)
        for (int64_t b = first; b < first + count; b++) {
            const ortc_dtype t = j->in[ZEROS].dtype;
            const uint8_t *z = (const uint8_t *)zeros + (n0 + c) * p->zero_bytes;
            float zero;
            if (t == ORTC_U8)
                zero = (float)(j->s->bits == 8 ? z[b] : z[b / 2] >> b % 2 * 4 & 15);
            else
                p->convert->widen[ortc_float_index(t)](
                    1, zeros + ((n0 + c) * p->blocks + b) * ortc_product_size(t), &zero);
            to[(b - first) * ld + c] = zero - middle;
        }
}

/* Some of K of the columns of a panel: words, and what their blocks have. */
enum { STEP = 512, WIDTH = 32 };
typedef struct turned {
    uint32_t words[STEP / 4 * WIDTH];
    float scale[STEP / 16 * WIDTH], less[STEP / 16 * WIDTH], some[STEP / 16 * WIDTH];
} turned;

/* k..k+count of columns n0.. of B, rows of the file, become columns of `to`, dw side by side. */
static void turn(const nbits_job *j, int64_t n0, int64_t nc, int64_t k, int64_t count, size_t dw, turned *to)
{
    const nbits_plan *p = j->p;
    const int64_t block = j->s->block, each = 32 / j->s->bits, b0 = k / block,
                  blocks = (k + count - 1) / block - b0 + 1;
    ortc_uk_pack_f32 *const transpose = p->product->line->moves->transpose; /* moves bits */
    const bool plain = j->in[SCALES].dtype == ORTC_F32;
    transpose((size_t)nc, (size_t)((count + each - 1) / each),
              (const float *)(const void *)((const char *)j->in[B].data + n0 * p->row_bytes + k / each * 4),
              (size_t)p->row_bytes / 4, (float *)(void *)to->words, dw);
    for (int64_t c = 0; !plain && c < nc; c++)
        ortc_nbits_scales(j, n0 + c, b0, blocks, to->some + c * blocks);
    transpose((size_t)nc, (size_t)blocks, plain ? ortc_nbits_scales(j, n0, b0, blocks, NULL) : to->some,
              (size_t)(plain ? p->blocks : blocks), to->scale, dw);
    if (j->s->zeros || !p->pairs) ortc_nbits_zeros(j, n0, nc, b0, blocks, to->less, (int64_t)dw);
}

/* ortc_product_args.pack: words of the columns are turned, then each is eight or four rows of the panel; of
 * f32, or of half as many with pairs of bf16. */
static void unpack_panel(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc,
                         void *dst, size_t dw)
{
    const nbits_job *j = arg;
    const nbits_plan *p = j->p;
    const int64_t bits = j->s->bits, block = j->s->block, end = k0 + kc;
    turned t;
    (void)index;
    assert(dw <= WIDTH && k0 % 64 == 0);
    for (int64_t k = k0, count; k < end; k += count) {
        count = end - k < STEP ? end - k : STEP;
        turn(j, n0, nc, k, count, dw, &t);
        for (int64_t at = k, n; at < k + count; at += n) {
            const int64_t b = at / block, stop = (b + 1) * block < k + count ? (b + 1) * block : k + count;
            const uint32_t *words = t.words + (at - k) * bits / 32 * (int64_t)dw;
            const float *scale = t.scale + (b - k / block) * (int64_t)dw,
                        *less = t.less + (b - k / block) * (int64_t)dw;
            float *to = (float *)dst + (at - k0) / (p->pairs ? 2 : 1) * (int64_t)dw;
            n = stop - at;
            if (p->pairs)
                p->pairs((size_t)n, dw, (int)bits, words, dw, scale, j->s->zeros ? less : NULL,
                         (uint16_t *)(void *)to, dw);
            else
                (bits == 4 ? p->body->words4 : p->body->words8)((size_t)n, dw, words, dw, scale, less, to,
                                                                dw);
        }
    }
    if (!p->pairs) return;
    const int64_t group = p->product->line->b.group, have = (kc + 1) / 2,
                  whole = (kc + group - 1) / group * group / 2;
    memset((float *)dst + have * (int64_t)dw, 0, (size_t)(whole - have) * dw * sizeof(float));
}

static ortc_status run_many(nbits_job *j, const ortc_product_plan *product, ortc_call *c)
{
    const ortc_product_threads threads = {ortc_call_parallel, c};
    const ortc_product_args x = {.item = {.a = j->in[A].data, .c = j->out.data, .bias_col = j->bias},
                                 .lda = j->s->k,
                                 .ldb = j->n,
                                 .ldc = j->n,
                                 .alpha = 1,
                                 .beta = 1,
                                 .pack = unpack_panel,
                                 .arg = j,
                                 .workspace = c->workspace};
    return ortc_product_run(product, &x, &threads);
}

/* ---- Nodes, and groups of them ------------------------------------------------------------------------- */

static int32_t port_of(const ortc_graph *body, uint32_t edge)
{
    for (uint32_t i = 0; edge && i < ortc_graph_n_in(body); i++)
        if (ortc_graph_in(body, i).edge == edge) return (int32_t)i;
    return -1;
}

static bool is_product(const ortc_node *n)
{
    return !strcmp(ortc_node_domain(n), "com.microsoft") && !strcmp(ortc_node_op(n), "MatMulNBits");
}

/* A node, or one of a group's body. NULL: it is read; else what is not possible. */
static const char *read_product(const ortc_node *n, const ortc_graph *body, nbits_state *s)
{
    const int64_t k = ortc_node_int(n, "K", 0), bits = ortc_node_int(n, "bits", 4),
                  block = ortc_node_int(n, "block_size", 0);
    const bool rounds = ortc_node_int(n, "accuracy_level", 0) == 4 && block <= MOST_ROUNDED,
               zeros = ortc_node_in(n, ZEROS).type != 0;
    if (ortc_node_in(n, G_IDX).type) return "columns in an order of their own are not unpacked here";
    if ((bits != 4 && bits != 8) || block < 16 || block & (block - 1))
        return "such bits and blocks are not unpacked here";
    if (!s->count)
        s->k = k, s->bits = bits, s->block = block, s->rounds = rounds, s->zeros = zeros;
    else if (k != s->k || bits != s->bits || block != s->block || rounds != s->rounds || zeros != s->zeros)
        return "the products' weights are of different forms";
    sibling *p = &s->of[s->count++];
    *p = (sibling){.n = ortc_node_int(n, "N", 0)};
    for (uint32_t i = 0; i < PORTS; i++) {
        const ortc_port in = ortc_node_in(n, i);
        p->port[i] = !in.type ? -1 : body ? port_of(body, in.edge) : (int32_t)i;
        if (in.type && p->port[i] < 0) return "an input is inside of the group";
    }
    if (p->port[A] != s->of->port[A]) return "the products are of different A";
    while (body && p->out < ortc_graph_n_out(body) &&
           ortc_graph_out(body, p->out).edge != ortc_node_out(n, 0).edge)
        p->out++;
    return body && p->out == ortc_graph_n_out(body) ? "a result is not one of the group" : NULL;
}

/* The types that single nodes have by the table below. */
static bool has_types(const ortc_node *n)
{
    const uint64_t floats = ORTC_TYPES_BY_F32;
    const ortc_dtype a = ortc_node_in(n, A).dtype, zeros = ortc_node_in(n, ZEROS).dtype;
    return (floats >> a & 1) && (!zeros || zeros == ORTC_U8 || (floats >> zeros & 1));
}

static const char *read_group(const ortc_node *n, nbits_state *s)
{
    const ortc_graph *body = ortc_node_body(n);
    if (!body) return "it is no group of products";
    for (const ortc_node *m = ortc_graph_next(body, NULL); m; m = ortc_graph_next(body, m)) {
        if (!is_product(m)) return "a node of the group is no product with weights of few bits";
        if (s->count == MOST) return "there are too many products";
        if (!has_types(m)) return "a type has no kernel here";
        const char *why = read_product(m, body, s);
        if (why) return why;
    }
    return s->count > 1 ? NULL : "there is one product";
}

/* Kernels of groups are asked for pointwise operators, too, which are groups of one. */
static const char *read_node(const ortc_node *n, nbits_state *s)
{
    return is_product(n) ? read_product(n, NULL, s) : read_group(n, s);
}

/* ---- The kernels --------------------------------------------------------------------------------------- */

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    nbits_state s = {0};
    const char *reason = read_node(n, &s);
    (void)device;
    return reason ? ortc_no(why, "%s", reason) : ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    nbits_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    const char *why = read_node(n, s);
    if (why) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    }
    *out = s;
    return ORTC_OK;
}

static void plan_few(nbits_plan *p, size_t *workspace, size_t *scratch)
{
    const int64_t group = (int64_t)p->body->group;
    p->at_x = ortc_nbits_room(workspace, p->m * p->ldx, 4) / 4;
    p->at_spread = ortc_nbits_room(workspace, p->m * p->ldx, 4) / 4;
    p->at_sums = ortc_nbits_room(workspace, p->m * p->blocks, 4) / 4;
    p->at_y = ortc_nbits_room(scratch, p->m * TILE, 4);
    p->at_lanes = ortc_nbits_room(scratch, p->m * TILE * (group / 8), 4);
    p->at_scale = ortc_nbits_room(scratch, p->blocks, 4);
    p->at_zero = ortc_nbits_room(scratch, p->blocks, 4);
    p->at_bytes = ortc_nbits_room(scratch, p->width, 1);
}

/* Where rows may be rounded to bytes or bf16, tiles of bf16 multiply many of them: the line; NULL: not so.
 * Bytes lose more of A than bf16 does of both operands, and a tile's sums of them would have to be scaled
 * block by block. */
static const ortc_product_line *pairs_line(const nbits_state *s, int64_t m, ortc_dtype t, int rounds)
{
#ifdef ORTC_TILES_avx512bf16
    const ortc_product_line *line = ortc_product_select(ORTC_BF16, ORTC_BF16);
    if (line && m >= ROWS_OF_PAIRS &&
        (s->rounds ? line->begin != NULL : t == ORTC_BF16 || (t == ORTC_F32 && rounds)))
        return line;
#endif
    (void)s, (void)m, (void)t, (void)rounds;
    return NULL;
}

/* false: a size does not fit */
static bool plan_many(const nbits_state *s, nbits_plan *p, ortc_dtype t, const ortc_product_line *pairs,
                      uint32_t threads, size_t *workspace, size_t *scratch)
{
    const ortc_product_types types = {t, pairs ? ORTC_BF16 : ORTC_F32, t};
    const uint32_t flags = ORTC_PRODUCT_CUSTOM_B | (pairs ? ORTC_PRODUCT_GROUPED_B : 0);
#ifdef ORTC_TILES_avx512bf16
    if (pairs) p->pairs = ortc_nbits_pairs_avx512bf16;
#endif
    for (uint32_t i = 0; i < s->count; i++) {
        const ortc_product_line *line = pairs ? pairs
                                              : ortc_gemm_quicker(t, ORTC_F32, p->m, s->of[i].n, s->k, 1, 1);
        if (ortc_product_plan_init(&p->product[i], line, &types, p->m, s->of[i].n, s->k, 1, flags, threads))
            return false;
        *workspace = p->product[i].workspace > *workspace ? p->product[i].workspace : *workspace;
        *scratch = p->product[i].scratch > *scratch ? p->product[i].scratch : *scratch;
    }
    return true;
}

static ortc_status plan(const void *state, ortc_plan *c, void **out)
{
    const nbits_state *s = state;
    const ortc_view *a = &c->in[s->of->port[A]];
    size_t workspace = 0, scratch = 0;
    int64_t columns = 0;
    nbits_plan *p = calloc(1, sizeof *p);
    if (!p) return ortc_plan_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    p->body = ortc_nbits_vec_select();
    p->convert = ortc_convert_get();
    p->m = ortc_view_count(a) / s->k;
    p->blocks = (s->k + s->block - 1) / s->block;
    p->width = p->blocks * s->block;
    p->row_bytes = p->width / 8 * s->bits;
    p->zero_bytes = (p->blocks * s->bits + 7) / 8;
    const ortc_product_line *pairs = pairs_line(s, p->m, a->dtype, ortc_rounds_to_bf16(c->api->device(c)));
    p->rounds = s->rounds && !pairs;
    p->few = !pairs && p->m <= (s->bits == 4 ? ORTC_NBITS_ROWS : MOST_ROWS_OF_BYTES);
    const int64_t group = (int64_t)p->body->group;
    p->ldx = (p->width + group - 1) / group * group;
    const int64_t whole = s->block > group ? s->block : group; /* both are powers of two */
    p->part = p->m <= 1 ? p->width : PART_BYTES / 4 / p->m / whole * whole;
    p->part = p->part > whole ? p->part : whole;
    p->grain = TASK_BYTES / (p->row_bytes * (p->m + 3) / 4 + 1);
    p->grain = p->grain > 1 ? p->grain : 1;
    if (p->few) /* less than the weights, which are in memory */
        plan_few(p, &workspace, &scratch);
    else if (!plan_many(s, p, a->dtype, pairs, c->threads, &workspace, &scratch)) {
        free(p);
        return ortc_plan_fail(c, ORTC_LIMIT, "the product's operands do not fit in memory");
    }
    if (p->rounds) ortc_nbits_plan_rounded(s, p, &workspace, &scratch);
    for (uint32_t i = 0; i < s->count; i++) {
        columns += s->of[i].n;
        p->at_bias[i] = ortc_nbits_room(&workspace, s->of[i].port[BIAS] < 0 ? 0 : s->of[i].n, 4) / 4;
    }
    ortc_plan_workspace(c, workspace, scratch);
    ortc_plan_cost(c, 2.0 * (double)p->m * (double)columns * (double)s->k,
                   (double)columns * (double)p->row_bytes);
    *out = p;
    return ORTC_OK;
}

static nbits_job job_of(const nbits_state *s, const nbits_plan *p, uint32_t i, const ortc_call *c)
{
    const sibling *n = &s->of[i];
    nbits_job j = {.s = s, .p = p, .n = n->n, .out = c->out[n->out]};
    for (uint32_t k = 0; k < PORTS; k++)
        if (n->port[k] >= 0 && (uint32_t)n->port[k] < c->n_in) j.in[k] = c->in[n->port[k]];
    if (ortc_nbits_given(&j, BIAS)) {
        float *bias = (float *)c->workspace + p->at_bias[i];
        p->convert->widen[ortc_float_index(j.in[BIAS].dtype)]((size_t)n->n, j.in[BIAS].data, bias);
        j.bias = bias;
    }
    return j;
}

static ortc_status run_few(const nbits_state *s, const nbits_plan *p, ortc_call *c)
{
    rows_jobs all;
    int64_t tasks = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        nbits_job *j = &all.of[i], *first = all.of;
        *j = job_of(s, p, i, c);
        if (j == first) prepare_x(j, c->workspace);
        j->x = first->x, j->spread = first->spread, j->sums = first->sums, j->exact = first->exact;
        if (j->out.dtype) tasks += (j->n + p->grain - 1) / p->grain;
        all.end[i] = tasks;
    }
    return ortc_parallel(c, tasks, 1, rows_chunk, &all);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const nbits_state *s = state;
    const nbits_plan *p = pstate;
    ortc_status status = ORTC_OK;
    if (p->m == 0) return ORTC_OK;
    if (p->rounds) {
        nbits_job jobs[MOST];
        bool finite;
        for (uint32_t i = 0; i < s->count; i++) jobs[i] = job_of(s, p, i, c);
        status = ortc_nbits_run_rounded(jobs, s->count, c, &finite);
        if (status || finite) return status;
    }
    if (p->few) return run_few(s, p, c);
    for (uint32_t i = 0; i < s->count && !status; i++) {
        nbits_job j = job_of(s, p, i, c);
        if (j.out.dtype) status = run_many(&j, &p->product[i], c);
    }
    return status;
}

static const ortc_kernel nbits = {.size = ORTC_SIZED(ortc_kernel),
                                  .name = "gemm.nbits",
                                  .supports = supports,
                                  .prepare = prepare,
                                  .plan = plan,
                                  .run = run};

static const ortc_kernel nbits_siblings = {.size = ORTC_SIZED(ortc_kernel),
                                           .name = "gemm.nbits_siblings",
                                           .supports = supports,
                                           .prepare = prepare,
                                           .plan = plan,
                                           .run = run};

ORTC_KERNELS(cpu, nbits,
             ORTC_KERNEL_IN("com.microsoft", "MatMulNBits", 1, ORTC_NEWEST,
                            (ORTC_TYPES_BY_F32, ORTC_TYPES_BY_F32 | ORTC_TYPE(ORTC_U8)), &nbits),
             ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &nbits_siblings));
