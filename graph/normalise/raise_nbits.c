/* graph/normalise/raise_nbits.c: MatMulNBits (com.microsoft) from products with constant weights that are
 * dequantised: how the standard writes weights of 2, 4 and 8 bits.
 *
 *   MatMul(A, DequantizeLinear(W [K, N]))          MatMul(A, Transpose(DequantizeLinear(W [N, K])))
 *   Gemm(A, DequantizeLinear(W), C [N]?)           alpha and beta 1, with transB either way
 *
 * by one scale, one for each of N, or one for each block along K, with or without zero points. Dequantised as
 * the file has it, all of W would be numbers at each run. Here it is laid out once as the operator wants it:
 * [N, K / block, bytes], unsigned; 2 bits become 4. Blocks are powers of 2 of 16 to 256 that divide K and
 * those of the file, whose scales are repeated where they hold several.
 *
 * Left alone: W as small as folding takes (fold_constants.c), W with more than MOST_READERS, each of which
 * would get its own, and where A is dequantised, too, for then there are products of integers.
 */
#include "graph/ir/quantised.h"
#include "match.h"

enum { LEAST_BLOCK = 16, MOST_BLOCK = 256, MOST_READERS = 4 };

/* A constant operand of few bits. */
typedef struct few_bits {
    const ortc_constant *w, *scale, *zero; /* zero: NULL for none */
    int64_t n, k, block, blocks;           /* blocks: of K */
    int64_t of_n, of_k;                    /* steps of w's elements from one to the next of N and of K */
    int64_t held, scale_n, scale_k;        /* of K under one scale; steps of scales, 0: one for all */
    uint32_t bits, width;                  /* in the file, and of the operator */
    unsigned flip, more;                   /* an element as it is stored: (element ^ flip) + more */
} few_bits;

static const ortc_constant *constant_of(const ortc_edge *e)
{
    return e && ortc_edge_is_const(e) ? e->constant : NULL;
}

static bool read_type(few_bits *f)
{
    const ortc_dtype t = f->w->dtype;
    f->bits = ortc_dtype_bits(t);
    f->width = f->bits == 8 ? 8 : 4;
    f->flip = f->more = 0;
    if (t == ORTC_I8 || t == ORTC_I4 || t == ORTC_I2) {
        f->flip = 1u << (f->bits - 1);
        f->more = f->bits == 2 ? 6 : 0; /* -2 is stored as 6 of 4 bits */
    }
    return t == ORTC_I8 || t == ORTC_U8 || t == ORTC_I4 || t == ORTC_U4 || t == ORTC_I2 || t == ORTC_U2;
}

/* Scales of a weight whose axis `along_k` goes along K. */
static bool read_scales(const ortc_node *n, int32_t along_k, few_bits *f)
{
    const int64_t block = ortc_node_int(n, "block_size", 0);
    int64_t axis = ortc_node_int(n, "axis", 1);
    axis += axis < 0 ? 2 : 0;
    f->held = f->k;
    f->scale_n = f->scale_k = 0;
    if (block) {
        if (block < 0 || axis != along_k || f->scale->rank != 2) return false;
        f->held = block < f->k ? block : f->k;
        const int64_t parts = (f->k + f->held - 1) / f->held;
        f->scale_n = along_k ? parts : 1;
        f->scale_k = along_k ? 1 : f->n;
        return f->scale->count == parts * f->n && (!f->zero || f->zero->count == f->scale->count);
    }
    if (f->zero && f->zero->count != f->scale->count) return false;
    if (f->scale->count == 1) return true;
    f->scale_n = 1;
    return f->scale->rank == 1 && f->scale->count == f->n && axis == !along_k;
}

/* What e is: W, or its transpose, dequantised, to be multiplied as [N, K] if `turned`, else as [K, N]. */
static bool read_weights(const ortc_edge *e, bool turned, few_bits *f)
{
    const ortc_node *n = e ? e->producer : NULL;
    size_t readers = e ? ortc_edge_n_uses(e) : 0;
    if (ortc_match_is(n, "Transpose") && n->n_in == 1 && e->rank == 2) {
        const ortc_attr perm = ortc_node_attr(n, "perm");
        if (perm.kind && (perm.count != 2 || perm.u.ints[0] != 1 || perm.u.ints[1] != 0)) return false;
        turned = !turned;
        e = n->in[0];
        n = e ? e->producer : NULL;
        readers *= e ? ortc_edge_n_uses(e) : 0;
    }
    if (!ortc_match_is(n, "DequantizeLinear") || n->n_in < 2 || !(f->w = constant_of(n->in[0])) ||
        !(f->scale = constant_of(n->in[1])) || f->w->rank != 2 || !ortc_match_typed(e, f->scale->dtype) ||
        !read_type(f))
        return false;
    if (readers * ortc_edge_n_uses(n->in[0]) > MOST_READERS) return false;
    const ortc_edge *zero = ortc_node_in_edge(n, 2);
    f->zero = constant_of(zero);
    if ((zero && !f->zero) || (f->zero && f->zero->dtype != f->w->dtype)) return false;
    const ortc_dtype t = f->scale->dtype;
    if (t != ORTC_F32 && t != ORTC_F16 && t != ORTC_BF16) return false;
    f->n = f->w->dims[!turned], f->k = f->w->dims[turned];
    f->of_n = turned ? f->k : 1, f->of_k = turned ? 1 : f->n;
    if (f->n < 1 || f->k < LEAST_BLOCK || f->n > INT32_MAX || f->k > INT32_MAX || !read_scales(n, turned, f))
        return false;
    for (f->block = MOST_BLOCK; f->k % f->block || (f->held < f->k && f->held % f->block);) f->block /= 2;
    f->blocks = f->k / f->block;
    return f->block >= LEAST_BLOCK;
}

/* n multiplies by weights of few bits. */
static bool match(const ortc_node *n, few_bits *f)
{
    const bool gemm = ortc_match_is(n, "Gemm");
    const ortc_edge *a = n->n_in > 1 ? n->in[0] : NULL, *c = ortc_node_in_edge(n, 2);
    ortc_quantised bytes;
    if ((!gemm && !ortc_match_is(n, "MatMul")) || n->body || !a || a->rank == 0 || a->rank == 1 ||
        !n->out[0] || !read_weights(n->in[1], gemm && ortc_node_int(n, "transB", 0), f))
        return false;
    if (ortc_edge_is_const(a) || !ortc_match_typed(a, f->scale->dtype)) return false;
    if (f->bits == 8 && ortc_read_dequantised(a, &bytes)) return false;
    if ((size_t)(f->n * f->k) * ortc_dtype_bits(f->scale->dtype) / 8 <=
        f->w->bytes + f->scale->bytes + ORTC_FOLDED_GROWTH)
        return false;
    return !gemm || (!ortc_node_int(n, "transA", 0) && ortc_node_float(n, "alpha", 1) == 1 &&
                     (!c || (ortc_node_float(n, "beta", 1) == 1 && c->rank == 1 && c->dims[0] == f->n)));
}

bool ortc_is_nbits_weight(const ortc_edge *e)
{
    few_bits f;
    for (const ortc_use *u = e->uses; u; u = u->next) {
        const bool turned = ortc_match_is(u->node, "Transpose") && u->node->out[0];
        for (const ortc_use *v = turned ? u->node->out[0]->uses : u; v; v = turned ? v->next : NULL)
            if (v->node && v->port == 1 && match(v->node, &f)) return true;
    }
    return false;
}

/* ---- Constants ----------------------------------------------------------------------------------------- */

static unsigned element(const ortc_constant *c, uint32_t bits, int64_t i)
{
    const uint8_t *data = c->data;
    return bits == 8 ? data[i] : data[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
}

/* W [K, N] is turned TILE columns and LINE bytes of the result's rows at a time, in a tile that stays in L1:
 * rows themselves may lie so that few of them fit into it. */
enum { TILE = 128, LINE = 64 };
typedef uint8_t tile[TILE][LINE];

static void turn_bytes(const few_bits *f, int64_t n, int64_t columns, int64_t k, int64_t bytes, tile to)
{
    const uint8_t *w = (const uint8_t *)f->w->data + n, flip = (uint8_t)f->flip;
    for (int64_t j = 0; j < bytes; j++)
        for (int64_t i = 0; i < columns; i++) to[i][j] = w[(k + j) * f->n + i] ^ flip;
}
/* Of 4 bits, N an even number: two columns of two rows are a byte of two rows each. */
static void turn_halves(const few_bits *f, int64_t n, int64_t columns, int64_t k, int64_t bytes, tile to)
{
    const uint8_t flip = (uint8_t)(f->flip | f->flip << 4);
    for (int64_t j = 0; j < bytes; j++) {
        const uint8_t *upper = (const uint8_t *)f->w->data + (2 * (k + j) * f->n + n) / 2,
                      *lower = upper + f->n / 2;
        for (int64_t i = 0; i < columns / 2; i++) {
            const uint8_t a = upper[i] ^ flip, b = lower[i] ^ flip;
            to[2 * i][j] = (uint8_t)((a & 15) | b << 4);
            to[2 * i + 1][j] = (uint8_t)(a >> 4 | (b & 0xf0));
        }
    }
}
static void turn(const few_bits *f, uint8_t *out)
{
    const int64_t row = f->k * f->bits / 8;
    tile t;
    for (int64_t n = 0; n < f->n; n += TILE)
        for (int64_t k = 0; k < row; k += LINE) {
            const int64_t columns = f->n - n < TILE ? f->n - n : TILE,
                          bytes = row - k < LINE ? row - k : LINE;
            (f->bits == 8 ? turn_bytes : turn_halves)(f, n, columns, k, bytes, t);
            for (int64_t i = 0; i < columns; i++) memcpy(out + (n + i) * row + k, t[i], (size_t)bytes);
        }
}
static void turn_any(const few_bits *f, uint8_t *out)
{
    const int64_t row = f->k * f->width / 8;
    memset(out, 0, (size_t)(f->n * row));
    for (int64_t n = 0; n < f->n; n++)
        for (int64_t k = 0; k < f->k; k++)
            out[n * row + k * f->width / 8] |=
                (uint8_t)(((element(f->w, f->bits, n * f->of_n + k * f->of_k) ^ f->flip) + f->more)
                          << (k * f->width % 8));
}

static ortc_edge *seen_as(ortc_normalise *p, ortc_constant *of, ortc_dtype t, int32_t rank,
                          const int64_t *dims)
{
    ortc_constant *c;
    if (ortc_constant_seen_as(of, t, rank, dims, &c, p->error) != ORTC_OK) return NULL;
    return ortc_graph_constant(p->graph, NULL, c);
}

static ortc_edge *weights(ortc_normalise *p, const few_bits *f)
{
    const int64_t dims[3] = {f->n, f->blocks, f->block * f->width / 8};
    const size_t bytes = (size_t)(f->n * f->k) * f->width / 8;
    const bool as_is = !f->flip && f->bits == f->width;
    if (as_is && f->of_k == 1) return seen_as(p, (ortc_constant *)(uintptr_t)f->w, ORTC_U8, 3, dims);
    uint8_t *data = ortc_data_alloc(bytes);
    if (!data) return NULL;
    if (f->of_k != 1 && (f->bits == 8 || (f->bits == 4 && f->n % 2 == 0)))
        turn(f, data);
    else if (f->of_k == 1 && f->bits == f->width) /* all that changes is the sign */
        for (size_t i = 0; i < bytes; i++)
            data[i] = ((const uint8_t *)f->w->data)[i] ^ (uint8_t)(f->bits == 8 ? f->flip : f->flip * 17);
    else
        turn_any(f, data);
    return ortc_graph_constant_take(p->graph, ORTC_U8, 3, dims, data, bytes, p->error);
}

static int64_t scale_at(const few_bits *f, int64_t n, int64_t b)
{
    return n * f->scale_n + b * f->block / f->held * f->scale_k;
}

static ortc_edge *scales(ortc_normalise *p, const few_bits *f)
{
    const int64_t dims[2] = {f->n, f->blocks};
    const size_t each = ortc_dtype_bits(f->scale->dtype) / 8, bytes = (size_t)(f->n * f->blocks) * each;
    char *data = ortc_data_alloc(bytes);
    for (int64_t i = 0; data && i < f->n * f->blocks; i++)
        memcpy(data + (size_t)i * each,
               (const char *)f->scale->data + (size_t)scale_at(f, i / f->blocks, i % f->blocks) * each, each);
    return ortc_graph_constant_take(p->graph, f->scale->dtype, 2, dims, data, bytes, p->error);
}

static unsigned zero_at(const few_bits *f, int64_t n, int64_t b)
{
    const unsigned raw = f->zero ? element(f->zero, f->bits, scale_at(f, n, b)) : 0;
    return (raw ^ f->flip) + f->more;
}

/* Zero points of `row` bytes for each of N. */
static ortc_edge *zeros(ortc_normalise *p, const few_bits *f, ortc_dtype t, int32_t rank, const int64_t *dims,
                        int64_t row)
{
    uint8_t *data = ortc_data_alloc((size_t)f->n * (size_t)row);
    if (data) memset(data, 0, (size_t)f->n * (size_t)row);
    for (int64_t n = 0; data && n < f->n; n++)
        for (int64_t b = 0; b < f->blocks; b++) {
            const int64_t i = t == ORTC_U4 ? n * f->blocks + b : n * row * 8 / f->width + b;
            data[i * f->width / 8] |= (uint8_t)(zero_at(f, n, b) << (i * f->width % 8));
        }
    const int64_t count = f->n * f->blocks;
    return ortc_graph_constant_take(p->graph, t, rank, dims, data,
                                    t == ORTC_U4 ? (size_t)(count + 1) / 2 : (size_t)(f->n * row), p->error);
}

/* ---- The node ------------------------------------------------------------------------------------------ */

static bool middle(const few_bits *f)
{
    for (int64_t n = 0; n < f->n; n++)
        for (int64_t b = 0; b < f->blocks; b++)
            if (zero_at(f, n, b) != 1u << (f->width - 1)) return false;
    return true;
}

/* in: what the operator takes. n then multiplies by what these say, dequantised: its body. */
static bool write(ortc_normalise *p, ortc_node *n, const few_bits *f, ortc_edge **in)
{
    const ortc_dtype t = f->width == 8 ? ORTC_U8 : ORTC_U4;
    const int64_t rows[2] = {f->n, f->k}, turned[2] = {f->k, f->n}, per_block[2] = {f->n, f->blocks},
                  row = (f->blocks * f->width + 7) / 8, of_rows = f->n * row;
    const bool gemm = ortc_match_is(n, "Gemm");
    ortc_edge *of[3];
    if (!(in[1] = weights(p, f)) || !(in[2] = scales(p, f))) return false;
    if (!middle(f) && !(in[3] = zeros(p, f, ORTC_U8, 1, &of_rows, row))) return false;
    in[5] = gemm ? ortc_node_in_edge(n, 2) : NULL;
    of[0] = seen_as(p, in[1]->constant, t, 2, rows);
    of[1] = in[2];
    of[2] = zeros(p, f, t, 2, per_block, row);
    ortc_edge *y = ortc_match_apply(p, n, "DequantizeLinear", 3, of, f->scale->dtype, 2, rows);
    if (!y || !ortc_match_set_int(y->producer, "axis", 1) ||
        !ortc_match_set_int(y->producer, "block_size", f->block))
        return false;
    if (!gemm && !(y = ortc_match_apply(p, n, "Transpose", 1, &y, f->scale->dtype, 2, turned))) return false;
    return ortc_node_set_in(n, 1, y) && (!gemm || ortc_match_set_int(n, "transB", 1));
}

ortc_status ortc_pass_raise_nbits(ortc_normalise *p)
{
    const ortc_op *op = ortc_op_find("com.microsoft", "MatMulNBits");
    for (ortc_node *n = p->graph->first, *next; n && op; n = next) {
        few_bits f;
        ortc_node *made;
        next = n->next;
        if (!match(n, &f)) continue;
        ORTC_TRY(ortc_stop_poll(p->stop, p->error));
        ortc_edge *in[6] = {n->in[0]};
        if (!write(p, n, &f, in)) return ortc_no_memory(p->error, (size_t)(f.n * f.k));
        ORTC_TRY(ortc_match_raise(p, op, n, in, in[5] ? 6 : in[3] ? 4 : 3, &made));
        if (!made) continue; /* cannot be: all that is read is the node's, or constant */
        if (!ortc_match_set_int(made, "K", f.k) || !ortc_match_set_int(made, "N", f.n) ||
            !ortc_match_set_int(made, "bits", f.width) || !ortc_match_set_int(made, "block_size", f.block))
            return ortc_no_memory(p->error, 0);
    }
    return ORTC_OK;
}
