/* Running a planned product: the shared packing loop, then the loop over tasks, and in a task the loops over
 * chunks of K, panels and row blocks that end in the micro-kernel. What is decided here is nothing: see
 * product_plan.c.
 */
#include "product.h"

#include "kernels/common/counts.h"
#include "kernels/common/vector/convert.h"
#include "product_pack.h"
#include "product_packed.h"

typedef struct run_args {
    const ortc_product_plan *p;
    const ortc_product_args *x;
    ortc_product_item item; /* of the matrix at hand when the batch is walked outside */
    int64_t index;
    char *shared_a, *shared_b;
    int straight;           /* finished tiles are the micro-kernel's, in C; */
    int halves;             /* with all of K at once, which are bf16 */
    int64_t chunk0, chunk1; /* of K, that tasks go through */
    int64_t tasks;
} run_args;

/* One matrix of a task, and the task's scratch. */
typedef struct job {
    const run_args *r;
    ortc_product_item it;
    int64_t index;
    char *scratch;
} job;

/* The matrix `index`, with operands exchanged where the plan is of the transposed product. */
static ortc_product_item locate(const ortc_product_plan *p, const ortc_product_args *x, int64_t index)
{
    ortc_product_item it = x->item;
    if (x->locate) x->locate(x->arg, index, &it);
    if (p->swapped) {
        const ortc_product_item was = it;
        it.a = was.b, it.b = was.a;
        it.bias_col = was.bias_row, it.bias_row = was.bias_col;
    }
    return it;
}

static int64_t ldb_of(const run_args *r) { return r->p->swapped ? r->x->lda : r->x->ldb; }

/* ---- Results ------------------------------------------------------------------------------------------- */

/* The terms of a tail for the tile at (row, col), which has its residual where `residual` says. They are
 * written where they will be read: a copy would read several at once of what was written one by one, and wait
 * until results of the tiles before have left for memory. */
static void tail_at(const job *j, int64_t row, int64_t col, const float *residual, size_t stride,
                    ortc_uk_tail_f32 *t)
{
    const ortc_product_args *x = j->r->x;
    t->alpha = x->alpha, t->beta = x->beta;
    t->bias_col = j->it.bias_col ? j->it.bias_col + col : NULL;
    t->bias_row = j->it.bias_row ? j->it.bias_row + row : NULL;
    t->residual = residual, t->residual_stride = stride;
    t->act = x->act, t->lo = x->lo, t->hi = x->hi;
}

/* The residual under rows x cols at (row, col) of C as it is stored: where it lies, or in f32 in scratch. */
static const float *residual_at(const job *j, int64_t row, int64_t col, size_t rows, size_t cols, float *wide,
                                size_t *stride)
{
    const ortc_product_plan *p = j->r->p;
    const int64_t ld = p->flags & ORTC_PRODUCT_TRANS_C ? p->m : j->r->x->residual_stride;
    *stride = (size_t)ld;
    if (!j->it.residual) return NULL;
    const void *src = ortc_product_at(j->it.residual, row * ld + col, p->types.c);
    if (p->types.c == ORTC_F32) return src;
    *stride = cols;
    p->line->moves->vec->load[ortc_float_index(p->types.c)](rows, cols, src, (size_t)ld, wide, cols);
    return wide;
}

/* Term by term: each loop is one that compilers turn into vectors. */
void ortc_product_tail(const ortc_uk_tail_f32 *t, float *sums, size_t ld, size_t rows, size_t cols)
{
    const float lo = t->lo, hi = t->hi;
    for (size_t r = 0; r < rows; r++) {
        float *c = sums + r * ld;
        const float *residual = t->residual ? t->residual + r * t->residual_stride : NULL;
        const float bias = t->bias_row ? ortc_uk_load_f32(t->bias_row + r) : 0.0f;
        if (t->alpha != 1.0f)
            for (size_t i = 0; i < cols; i++) c[i] *= t->alpha;
        if (t->bias_col)
            for (size_t i = 0; i < cols; i++) c[i] += ortc_uk_load_f32(t->bias_col + i);
        if (t->bias_row)
            for (size_t i = 0; i < cols; i++) c[i] += bias;
        if (residual)
            for (size_t i = 0; i < cols; i++) c[i] += t->beta * ortc_uk_load_f32(residual + i);
        if (t->act == ORTC_UK_ACT_CLIP)
            for (size_t i = 0; i < cols; i++) {
                const float v = c[i] < lo ? lo : c[i]; /* NaN stays */
                c[i] = v > hi ? hi : v;
            }
        else if (t->act == ORTC_UK_ACT_LEAKY)
            for (size_t i = 0; i < cols; i++) c[i] = c[i] < 0 ? c[i] * lo : c[i];
    }
}

/* The callback, with C's rows of the batch's matrices counted on. A swapped product's C is a column. */
static void call_tile(const job *j, float *tile, size_t ld, size_t rows, size_t cols, int64_t row,
                      int64_t col)
{
    const ortc_product_plan *p = j->r->p;
    const ortc_product_args *x = j->r->x;
    const int64_t all = p->swapped || p->flags & ORTC_PRODUCT_TRANS_C ? p->n : p->m;
    if (!x->tile) return;
    if (p->swapped)
        x->tile(x->tile_arg, tile, cols, 1, 1, j->index * all + col, 0);
    else
        x->tile(x->tile_arg, tile, rows, cols, ld, j->index * all + row, col);
}

/* To C, rounded once. */
static void store(const job *j, const float *tile, size_t ld, size_t rows, size_t cols, int64_t row,
                  int64_t col, int64_t ldc)
{
    const ortc_product_plan *p = j->r->p;
    p->line->moves->vec->store[ortc_float_index(p->types.c)](
        rows, cols, tile, ld, ortc_product_at(j->it.c, row * ldc + col, p->types.c), (size_t)ldc);
}

/* ---- Dot products: one row of A, rows of B contiguous; no tile finishes them ----------------------------
 * */

static void dot_task(const job *j, int64_t n0, int64_t n1)
{
    const ortc_product_plan *p = j->r->p;
    const ortc_product_vec *vec = p->line->moves->vec;
    const int64_t ldb = ldb_of(j->r);
    const float *x = j->it.a;
    if (p->types.a != ORTC_F32) {
        float *wide = (float *)(void *)j->scratch;
        vec->load[ortc_float_index(p->types.a)](1, (size_t)p->k, j->it.a, 0, wide, 0);
        x = wide;
    }
    for (int64_t i = n0; i < n1; i += ORTC_DOT_ROWS) {
        const size_t nr = (size_t)min64(n1 - i, ORTC_DOT_ROWS);
        float y[ORTC_DOT_ROWS], wide[ORTC_DOT_ROWS]; /* c may be the residual */
        size_t stride;
        vec->dot[ortc_float_index(p->types.b)](nr, (size_t)p->k, x,
                                               ortc_product_at(j->it.b, i * ldb, p->types.b), (size_t)ldb, y);
        ortc_uk_tail_f32 t;
        tail_at(j, 0, i, residual_at(j, 0, i, 1, nr, wide, &stride), 0, &t);
        ortc_product_tail(&t, y, nr, 1, nr);
        call_tile(j, y, nr, 1, nr, 0, i);
        store(j, y, nr, 1, nr, 0, i, p->n);
    }
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

#define FAR_BYTES (1024 * 1024) /* of rows of A: more are not in L2 */

/* What a task needs to know about one chunk of K. */
typedef struct chunk {
    int64_t k0, kc, groups;
    int64_t a_unit, b_unit; /* bytes of a row of A, of a column of B */
    int64_t b_kc, b_skip;   /* the chunk of K as it lies in B, and bytes of a column before this one */
    int last;
    const char *a; /* packed rows, this chunk, blocks from a_block (at a_row) on */
    int64_t a_row, a_block;
    const int32_t *row_sums; /* of rows that are not packed, from row 0 of A on; NULL: they do not count */
    int64_t rows, longer;    /* of a block of A; so many of all of A have one more */
    int64_t share;           /* lines of the next panel of B for which one of a panel's blocks asks */
    int many;                /* a micro-kernel takes several blocks at once: no zero point is about rows */
    int64_t b0;              /* the task's first block */
    int64_t far_panel;       /* the panel that brings rows of A from afar; -1: none does */
    char *sums;              /* of the task, or NULL: element (0, 0) of the matrix, and the row stride */
    int64_t sums_ld;
    ortc_uk_product *tile; /* the line's, or that of its wide one */
} chunk;

/* What packing has added to each element of an operand. */
static int32_t moved(const ortc_product_form *f, ortc_dtype type)
{
    return f->type == ORTC_U8 && type == ORTC_I8 ? 128 : f->type == ORTC_I8 && type == ORTC_U8 ? -128 : 0;
}

/* Zero points: what they add to the sums of a chunk is taken off; of numbers sums may begin with it. Beyond
 * COLUMNS it needs sums of rows. */
enum { ZEROS_NONE, ZEROS_COLUMNS, ZEROS_BOTH, ZEROS_VECTORS };
static int zeros_of(const job *j, int64_t row, int64_t col, int64_t kc, ortc_product_zeros *z)
{
    const ortc_product_plan *p = j->r->p;
    const ortc_product_args *x = j->r->x;
    if (p->line->sum != ORTC_I32 || kc == 0) return ZEROS_NONE;
    *z = (ortc_product_zeros){.a = j->it.zeros_a ? j->it.zeros_a + row : &x->zero_a,
                              .b = j->it.zeros_b ? j->it.zeros_b + col : &x->zero_b,
                              .a_step = j->it.zeros_a != NULL,
                              .b_step = j->it.zeros_b != NULL,
                              .a_moved = moved(&p->line->a, p->types.a),
                              .b_moved = moved(&p->line->b, p->types.b)};
    if (z->a_step || z->b_step) return ZEROS_VECTORS;
    if (*z->b + z->b_moved != 0) return ZEROS_BOTH;
    return *z->a + z->a_moved == 0 ? ZEROS_NONE : ZEROS_COLUMNS;
}

/* What sums begin with: first [ldb], each [rows] (of columns alone not written). ra, cb: sums over k. */
static void begin_with(const ortc_product_line *line, const ortc_product_zeros *z, int zeros, size_t rows,
                       size_t ldb, int64_t k, const int32_t *ra, const int32_t *cb, int32_t *first,
                       int32_t *each)
{
    const int32_t za = *z->a + z->a_moved;
    const uint32_t zb = (uint32_t)(*z->b + z->b_moved), all = (uint32_t)k * (uint32_t)za;
    line->moves->bytes->begin(ldb, za, cb, first);
    for (size_t i = 0; zeros == ZEROS_BOTH && i < rows; i++)
        each[i] = (int32_t)(zb * (all - (uint32_t)ra[i]));
}

/* A finished tile of sums in memory: what the micro-kernel's tail could not do, the callback, and to C. */
static void finish(const job *j, void *sums, size_t ld, size_t rows, size_t cols, int64_t row, int64_t col,
                   const ortc_uk_tail_f32 *tail)
{
    const ortc_product_plan *p = j->r->p;
    float *tile = sums;
    if (j->r->x->sums) {
        j->r->x->sums(j->r->x->tile_arg, sums, rows, cols, ld, j->index * p->m + row, col);
        return;
    }
    if (p->line->sum == ORTC_I32)
        for (size_t i = 0; i < rows; i++)
            for (size_t c = 0; c < cols; c++) {
                int32_t v;
                memcpy(&v, tile + i * ld + c, sizeof v);
                tile[i * ld + c] = (float)v;
            }
    if (!(p->line->can & ORTC_LINE_TAIL)) ortc_product_tail(tail, tile, ld, rows, cols);
    call_tile(j, tile, ld, rows, cols, row, col);
    store(j, tile, ld, rows, cols, row, col, j->r->x->ldc);
}

static void tail_of(const job *j, int64_t row, int64_t col, int64_t rows, int64_t cols, ortc_uk_tail_f32 *t)
{
    size_t stride = 0;
    float *wide = (float *)(void *)(j->scratch + j->r->p->at_residual);
    const float *residual = NULL;
    if (j->it.residual && j->r->halves) { /* of bf16, as it lies */
        stride = (size_t)j->r->x->residual_stride;
        residual = ortc_product_at(j->it.residual, row * j->r->x->residual_stride + col, ORTC_BF16);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t at = 0; at < cols; at += 32)
                __builtin_prefetch((const uint16_t *)(const void *)residual + i * (int64_t)stride + at);
    } else if (j->it.residual) {
        residual = residual_at(j, row, col, (size_t)rows, (size_t)cols, wide, &stride);
    }
    tail_at(j, row, col, residual, stride, t);
}

/* A panel of B part by part, over which all blocks pass before the next, while that is brought to L2. */
static void tiles_by_parts(const job *j, const chunk *ch, int64_t b0, int64_t b1, int64_t n0, const char *b,
                           int64_t ldb)
{
    const ortc_product_plan *p = j->r->p;
    const ortc_product_line *line = p->line;
    const run_args *r = j->r;
    const int64_t cols = min64(p->n - n0, line->b.width), blocks = b1 - b0, ldc = r->x->ldc;
    const int64_t group_a = ortc_form_data(&line->a, 1, line->a.group),
                  group_b = ortc_form_data(&line->b, ldb, line->b.group);
    for (int64_t g = 0, n; g < ch->groups; g += n, b += n * group_b) {
        n = min64(p->near, ch->groups - g);
        const int last = g + n == ch->groups;
        for (int64_t i = 0; i < blocks; i++) {
            const int64_t row = ortc_product_row(p->m, p->blocks, b0 + i),
                          rows = ortc_product_row(p->m, p->blocks, b0 + i + 1) - row;
            const char *a = ch->a + (row - ch->a_row) * ch->a_unit + g * group_a * rows;
            float *sums = (float *)(void *)(j->scratch + p->at_near) + i * line->a.width * line->b.width;
            const int64_t lines = n * group_b / 64, from = lines * i / blocks;
            const ortc_uk_ahead ahead = {b + (lines + from) * 64, (size_t)(lines * (i + 1) / blocks - from),
                                         1, g ? sums : NULL};
            if (!last) {
                ch->tile((size_t)rows, (size_t)ldb, (size_t)n, a, b, (size_t)ldb, sums, (size_t)ldb, 0, NULL,
                         &ahead);
                continue;
            }
            ortc_uk_tail_f32 tail;
            tail_of(j, row, n0, rows, cols, &tail);
            const int in_c = r->straight || r->halves;
            void *to = in_c ? ortc_product_at(j->it.c, row * ldc + n0, p->types.c) : sums;
            ch->tile((size_t)rows, (size_t)cols, (size_t)n, a, b, (size_t)ldb, to,
                     (size_t)(in_c ? ldc : cols), r->halves ? ORTC_UK_TO_BF16 : 0, &tail, &ahead);
            if (!in_c) finish(j, sums, (size_t)cols, (size_t)rows, (size_t)cols, row, n0, &tail);
        }
    }
}

/* Finished rows of a panel that wait in a tile's place until they are p->together blocks of rows, or the
 * last: a program costs some hundred clocks however few elements it is about. */
typedef struct waiting {
    int64_t row, rows, end; /* the first one, how many, and where the blocks that pass over the panel end */
} waiting;

/* Lines of C that are written long after are asked for. */
static void ask_for(const job *j, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const int64_t ldc = j->r->x->ldc, size = ortc_dtype_bits(j->r->p->types.c) / 8;
    const char *c = ortc_product_at(j->it.c, row * ldc + col, j->r->p->types.c);
    for (int64_t i = 0; i < rows; i++, c += ldc * size)
        for (int64_t at = 0; at < cols * size; at += 64) __builtin_prefetch(c + at, 1);
}

static const int32_t no_sums[64]; /* of rows that are not packed: where they would count */

/* The tiles of `count` blocks of as many rows each (of lines that take no MORE one) and `panels` panels from
 * column n0 on; w: NULL where they are finished at once. No division here: small tiles take few hundred
 * clocks. */
static void some_tiles(const job *j, const chunk *ch, int64_t block, int64_t count, int64_t n0,
                       int64_t panels, const void *b, int64_t ldb, uint32_t flags, ortc_uk_ahead *ahead,
                       waiting *w)
{
    const run_args *r = j->r;
    const ortc_product_plan *p = r->p;
    const ortc_product_line *line = p->line;
    const int64_t high = ch->rows + (block < ch->longer), rows = high * count,
                  row = block * ch->rows + min64(block, ch->longer); /* ortc_product_row */
    const int64_t cols = min64(p->n - n0, panels * line->b.width), ldc = r->x->ldc;
    const int finish_now = ch->last && !(p->flags & ORTC_PRODUCT_TRANS_C);
    const int direct = p->how_a == ORTC_PRODUCT_DIRECT;
    const char *a = ch->a + (row - ch->a_row) * ch->a_unit +
                    (direct ? 0 : (block - ch->a_block) * ortc_form_sums(&line->a));
    char *tile = j->scratch + p->at_tile;
    void *sums;
    size_t ld;
    if (ch->sums) {
        sums = ch->sums + (row * ch->sums_ld + n0) * 4, ld = (size_t)ch->sums_ld;
    } else if (!finish_now || r->straight || r->halves) {
        sums = ortc_product_at(j->it.c, row * ldc + n0, p->types.c), ld = (size_t)ldc;
    } else { /* contiguous, in L1 */
        if (w && w->rows == 0) w->row = row;
        if (w) tile += w->rows * cols * 4, w->rows += rows;
        sums = tile, ld = (size_t)cols;
        ask_for(j, row, rows, n0, cols);
        for (int64_t i = 0; i < rows && ch->k0 > 0; i++)
            memcpy(tile + i * cols * 4, ortc_product_at(j->it.c, (row + i) * ldc + n0, p->types.c),
                   (size_t)cols * 4);
    }
    ortc_uk_tail_f32 tail;
    if (finish_now) tail_of(j, row, n0, rows, cols, &tail);
    if (ch->k0 > 0) flags |= ORTC_UK_ACCUMULATE;
    if (r->halves) flags |= ORTC_UK_TO_BF16;
    const ortc_uk_panel panel = {b, j->scratch + p->at_pieces, p->alone};
    if (p->alone) memset(panel.pieces, 0, ORTC_UK_PANEL_STATE);
    const ortc_uk_plain plain = {a, (size_t)r->x->lda};
    const void *rows_of_a = a;
    const int32_t *column_sums = (const int32_t *)(const void *)((const char *)b + ldb * ch->b_unit),
                  *row_sums = !direct        ? (const int32_t *)(const void *)(a + high * ch->a_unit)
                              : ch->row_sums ? ch->row_sums + row
                                             : no_sums;
    int32_t first[ORTC_FORM_WIDTH], each[ORTC_FORM_WIDTH];
    ortc_product_zeros z;
    int zeros = zeros_of(j, row, n0, ch->kc, &z);
    if (ahead && ((zeros == ZEROS_COLUMNS && line->can & ORTC_LINE_FIRST) ||
                  (zeros == ZEROS_BOTH && line->can & ORTC_LINE_EACH))) {
        begin_with(line, &z, zeros, (size_t)rows, (size_t)ldb, ch->kc, row_sums, column_sums, first, each);
        ahead->first = first, ahead->each = zeros == ZEROS_BOTH ? each : NULL;
        zeros = ZEROS_NONE;
    }
    if (direct && p->m > 1) rows_of_a = &plain, flags |= ORTC_UK_A_PLAIN;
    if (ahead) ahead->more = (size_t)count - 1, ahead->skip = (size_t)ortc_form_sums(&line->a);
    ch->tile((size_t)high, (size_t)cols, (size_t)ch->groups, rows_of_a,
             line->can & ORTC_LINE_SPLIT ? (const void *)&panel : b, (size_t)ldb, sums, ld, flags,
             finish_now && (line->can & ORTC_LINE_TAIL) ? &tail : NULL, ahead);
    if (zeros != ZEROS_NONE)
        line->moves->bytes->correct((size_t)rows, (size_t)cols, sums, ld, (int32_t)ch->kc, row_sums,
                                    column_sums, &z);
    if (!finish_now || r->straight || r->halves) return;
    if (!w) {
        finish(j, sums, ld, (size_t)rows, (size_t)cols, row, n0, &tail);
    } else if (row + rows == w->end || w->rows > (p->together - 1) * line->a.width) {
        finish(j, j->scratch + p->at_tile, ld, (size_t)w->rows, (size_t)cols, w->row, n0, &tail);
        w->rows = 0;
    }
}

static ortc_product_source source_a(const job *j)
{
    const ortc_product_plan *p = j->r->p;
    const ortc_product_args *x = j->r->x;
    return (ortc_product_source){p->line->moves,
                                 j->it.a,
                                 p->types.a,
                                 x->lda,
                                 !(p->flags & ORTC_PRODUCT_TRANS_A),
                                 p->flags & ORTC_PRODUCT_CUSTOM_A ? x->pack : NULL,
                                 x->arg,
                                 j->index};
}
static ortc_product_source source_b(const job *j)
{
    const ortc_product_plan *p = j->r->p;
    const ortc_product_args *x = j->r->x;
    return (ortc_product_source){p->line->moves,
                                 j->it.b,
                                 p->types.b,
                                 ldb_of(j->r),
                                 !!(p->flags & ORTC_PRODUCT_TRANS_B),
                                 p->flags & ORTC_PRODUCT_CUSTOM_B ? x->pack : NULL,
                                 x->arg,
                                 j->index,
                                 !!(p->flags & ORTC_PRODUCT_GROUPED_B)};
}

/* The packed rows of a task for one chunk, wherever they are. */
static void find_a(const job *j, int64_t b0, int64_t b1, chunk *ch)
{
    const ortc_product_plan *p = j->r->p;
    const ortc_product_form *f = &p->line->a;
    const int64_t at_chunk = ortc_form_at(f, p->m, p->blocks, ch->k0, p->kc);
    ch->a_row = ch->a_block = 0;
    switch (p->how_a) {
    case ORTC_PRODUCT_PACKED: ch->a = (const char *)j->it.a + at_chunk; break;
    case ORTC_PRODUCT_SHARED: ch->a = j->r->shared_a + at_chunk; break;
    case ORTC_PRODUCT_DIRECT:
        ch->a = ortc_product_at(j->it.a, ch->k0, p->types.a);
        ch->a_unit = j->r->x->lda * ortc_product_size(p->line->a.type);
        if (p->sums_rows) {
            const int64_t row = ortc_product_row(p->m, p->blocks, b0);
            int32_t *to = (int32_t *)(void *)(j->scratch + p->at_row_sums);
            p->line->moves->bytes->sums((size_t)(ortc_product_row(p->m, p->blocks, b1) - row), (size_t)ch->kc,
                                        (const uint8_t *)ch->a + row * ch->a_unit, (size_t)ch->a_unit,
                                        p->types.a, to);
            ch->row_sums = to - row;
        }
        break;
    default: {
        const ortc_product_source src = source_a(j);
        ch->a = j->scratch;
        ch->a_block = b0, ch->a_row = ortc_product_row(p->m, p->blocks, b0);
        ortc_product_pack_panels(f, &src, p->m, p->blocks, b0, b1, ch->k0, ch->kc,
                                 j->scratch - ortc_form_panel_at(f, ch->a_row, b0, ch->kc));
    }
    }
}

/* TRANS_C: the task's sums, [m][columns] in scratch, become rows n0.. of C, some at a time, and get what a
 * tail gives them. */
static void turn(const job *j, int64_t n0, int64_t columns, const float *sums)
{
    const ortc_product_plan *p = j->r->p;
    const ortc_product_args *x = j->r->x;
    const int in_c = p->types.c == ORTC_F32 && !x->tile;
    for (int64_t q = 0; q < columns; q += ORTC_TURNED) {
        const size_t rows = (size_t)min64(columns - q, ORTC_TURNED), m = (size_t)p->m;
        float *c = in_c ? ortc_product_at(j->it.c, (n0 + q) * p->m, ORTC_F32)
                        : (float *)(void *)(j->scratch + p->at_tile);
        float *wide = (float *)(void *)(j->scratch + p->at_residual);
        size_t stride;
        /* [m][rows] to [rows][m] */
        p->line->moves->transpose(m, rows, sums + q, (size_t)columns, c, m);
        const float *residual = residual_at(j, n0 + q, 0, rows, m, wide, &stride);
        ortc_uk_tail_f32 t = {x->alpha, x->beta, NULL, NULL, residual, stride, x->act, x->lo, x->hi};
        if (j->it.bias_col) t.bias_row = j->it.bias_col + n0 + q;
        if (j->it.bias_row) t.bias_col = j->it.bias_row;
        ortc_product_tail(&t, c, m, rows, m);
        if (in_c) continue;
        call_tile(j, c, m, rows, m, n0 + q, 0);
        store(j, c, m, rows, m, n0 + q, 0, p->m);
    }
}

/* Of the packed panel behind q's what the task's block `block` may ask for: they share it. */
static ortc_uk_ahead part_of_next(const ortc_product_plan *p, const chunk *ch, const char *panel, int64_t q,
                                  int64_t block)
{
    const ortc_product_form *f = &p->line->b;
    if (q == ch->far_panel) { /* the rows of the block behind this */
        const int64_t next = ch->b0 + block + 1, row = next * ch->rows + min64(next, ch->longer);
        return (ortc_uk_ahead){ch->a + row * ch->a_unit, (size_t)(ch->rows * ch->a_unit / 64), p->unasked,
                               NULL};
    }
    if (ch->share == 0 || q + 1 >= p->panels) return (ortc_uk_ahead){NULL, 0, p->unasked, NULL};
    const int64_t lines = f->width * ch->b_unit / 64, first = min64(lines, ch->share * block);
    return (ortc_uk_ahead){panel + ortc_form_panel_at(f, f->width, 1, ch->b_kc) + first * 64,
                           (size_t)min64(ch->share, lines - first), 0, NULL};
}

/* Whether all of A lies row behind row, not packed, and not in L2 either. */
static int rows_are_far(const run_args *r)
{
    const ortc_product_plan *p = r->p;
    return p->how_a == ORTC_PRODUCT_DIRECT && p->m > 1 && p->chunks == 1 && r->x->lda == p->k &&
           p->m * p->k * ortc_product_size(p->line->a.type) > FAR_BYTES;
}

/* Blocks from b on that a micro-kernel has at once: as high as b, and where more happens to finished tiles
 * than it does, as many as wait. */
static int64_t as_many(const job *j, const chunk *ch, int64_t b, int64_t b1, const waiting *w)
{
    const ortc_product_plan *p = j->r->p;
    const int64_t end = b < ch->longer && ch->longer < b1 ? ch->longer : b1;
    if (!ch->many) return 1;
    if (!ch->last || p->flags & ORTC_PRODUCT_TRANS_C || j->r->straight || j->r->halves) return end - b;
    if (!w) return 1;
    return min64(end - b, (p->together * p->line->a.width - w->rows) / (ch->rows + (b < ch->longer)));
}

/* Panels q0..q1 over blocks b0..b1. With panels packed on the spot several are kept, and a block of A passes
 * over all of them; otherwise one panel stays in cache and the blocks pass over it. */
static void tile_task(const job *j, int64_t b0, int64_t b1, int64_t q0, int64_t q1)
{
    const ortc_product_plan *p = j->r->p;
    const ortc_product_form *f = &p->line->b;
    const int64_t nr = f->width, columns = min64(p->n, q1 * nr) - q0 * nr;
    const int keeps = p->flags & ORTC_PRODUCT_TRANS_C || (p->chunks > 1 && !p->sums_in_c);
    char *local_b = j->scratch + p->at_b, *sums = j->scratch + p->at_sums;
    for (int64_t i = j->r->chunk0; i < j->r->chunk1; i++) {
        chunk ch = {.k0 = i * p->kc, .last = i == p->chunks - 1, .sums_ld = columns};
        ch.kc = min64(p->k - ch.k0, p->kc);
        ch.groups = ortc_product_ceil_div(ch.kc, f->group);
        ch.a_unit = ortc_form_data(&p->line->a, 1, ch.kc), ch.b_unit = ortc_form_data(f, 1, ch.kc);
        ch.b_kc = ch.kc;
        ch.rows = p->m / p->blocks, ch.longer = p->m % p->blocks;
        ortc_product_zeros z;
        ch.many = p->line->can & ORTC_LINE_MORE && zeros_of(j, 0, 0, ch.kc, &z) <= ZEROS_COLUMNS;
        if (p->how_b == ORTC_PRODUCT_PACKED && b1 - b0 > 1)
            ch.share = ortc_product_ceil_div(nr * ch.b_unit / 64, b1 - b0);
        waiting held = {0, 0, ortc_product_row(p->m, p->blocks, b1)}, *w = NULL;
        const int may_wait = p->line->can & ORTC_LINE_TAIL ||
                             j->r->x->sums; /* else its tail is about a tile */
        if (ch.last && !keeps && p->together > 1 && may_wait) w = &held;
        ch.b0 = b0, ch.far_panel = rows_are_far(j->r) ? q0 : -1;
        if (keeps) ch.sums = sums - (ortc_product_row(p->m, p->blocks, b0) * columns + q0 * nr) * 4;
        find_a(j, b0, b1, &ch);
        for (int64_t g = q0; g < q1; g += p->local_panels) {
            const int64_t g1 = min64(q1, g + p->local_panels);
            const char *packed = p->how_b == ORTC_PRODUCT_PACKED ? j->it.b : j->r->shared_b;
            const int64_t k0 = ch.k0 ? ch.k0 / p->packed_kc * p->packed_kc : 0, /* of the packed chunk */
                packed_kc = min64(p->k - k0, p->packed_kc);
            if (p->how_b == ORTC_PRODUCT_LOCAL) {
                const ortc_product_source src = source_b(j);
                packed = local_b - ortc_form_panel_at(f, g * nr, g, ch.kc);
                ortc_product_pack_panels(f, &src, p->n, p->panels, g, g1, ch.k0, ch.kc,
                                         (void *)(uintptr_t)packed);
            } else if (p->how_b == ORTC_PRODUCT_SHARED) {
                packed += ortc_form_at(f, p->n, p->panels, ch.k0, p->kc);
            } else if (p->how_b == ORTC_PRODUCT_PACKED) {
                packed += ortc_form_at(f, p->n, p->panels, k0, p->packed_kc);
                ch.b_kc = packed_kc, ch.b_skip = ortc_form_data(f, 1, ch.k0 - k0);
            }
            ch.tile = p->line->tile;
            if (p->line->can & ORTC_LINE_SPLIT) /* one panel at a time, which is yet to be */
                memset(j->scratch + p->at_pieces, 0, ORTC_UK_PANEL_STATE);
            if (p->wide) { /* one panel at a time, which its first tile widens */
                const int64_t width = p->n - g * nr >= nr ? nr : ortc_form_padded(f, p->n - g * nr);
                const char *panel = packed + g * nr * ch.b_unit;
                float *wide = (float *)(void *)(j->scratch + p->at_wide);
                for (int64_t b = b0, count; b < b1; b += count) {
                    ortc_uk_ahead ahead = part_of_next(p, &ch, panel, g, b - b0);
                    if (b == b0) ahead.wide = wide;
                    count = b > b0 ? as_many(j, &ch, b, b1, w) : 1;
                    some_tiles(j, &ch, b, count, g * nr, 1, b == b0 ? panel : (const char *)wide, width, 0,
                               &ahead, w);
                    ch.tile = p->wide->tile;
                }
                continue;
            }
            for (int64_t q = g; p->near && q < g1; q++)
                tiles_by_parts(j, &ch, b0, b1, q * nr, packed + q * nr * ch.b_unit,
                               p->n - q * nr >= nr ? nr : ortc_form_padded(f, p->n - q * nr));
            /* several panels at once, which are whole ones and lie one behind the other */
            const int as_packed = p->how_b == ORTC_PRODUCT_PACKED || p->flags & ORTC_PRODUCT_PASSING_B;
            const int row = p->m == 1 && p->line->can & ORTC_LINE_ROW && as_packed &&
                            g1 - g == ORTC_UK_ROW_PANELS && p->n >= g1 * nr && packed_kc == ch.kc;
            const int many = g1 - g == 1 && p->how_b != ORTC_PRODUCT_DIRECT;
            for (int64_t b = b0, count; !p->near && b < b1; b += count) {
                count = many ? as_many(j, &ch, b, b1, w) : 1;
                for (int64_t q = g, n = row ? ORTC_UK_ROW_PANELS : 1; q < g1; q += n) {
                    const int64_t n0 = q * nr;
                    if (p->how_b == ORTC_PRODUCT_DIRECT) {
                        const int64_t ldb = ldb_of(j->r);
                        some_tiles(j, &ch, b, 1, n0, 1, ortc_product_at(j->it.b, ch.k0 * ldb + n0, f->type),
                                   ldb, ORTC_UK_B_EXACT, NULL, g1 - g == 1 ? w : NULL);
                    } else {
                        const int64_t width = p->n - n0 >= nr ? nr : ortc_form_padded(f, p->n - n0);
                        const char *panel = packed + ortc_form_panel_at(f, n0, q, ch.b_kc) +
                                            width * ch.b_skip;
                        ortc_uk_ahead ahead = part_of_next(p, &ch, panel, q, b - b0);
                        some_tiles(j, &ch, b, count, n0, n, panel, width, 0, &ahead, g1 - g == 1 ? w : NULL);
                    }
                }
            }
        }
    }
    if (p->flags & ORTC_PRODUCT_TRANS_C) turn(j, q0 * nr, columns, (const float *)(const void *)sums);
}

/* Task t, where each of so many shares is walked from its end. */
static int64_t turned(int64_t t, int64_t tasks, int64_t shares)
{
    int64_t i = t / (tasks / shares + 1);
    while (ortc_product_row(tasks, shares, i + 1) <= t) i++;
    return ortc_product_row(tasks, shares, i) + ortc_product_row(tasks, shares, i + 1) - 1 - t;
}

/* Of the rows of task t. Those with a block more are dealt evenly, too: threads have neighbouring tasks. */
static int64_t first_block(const ortc_product_plan *p, int64_t t)
{
    return t * (p->blocks / p->tasks_m) + t * (p->blocks % p->tasks_m) / p->tasks_m;
}

static void task_body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const run_args *r = arg;
    const ortc_product_plan *p = r->p;
    const int64_t per = p->tasks_m * p->tasks_n;
    if (p->line->begin && !p->dot) p->line->begin();
    for (int64_t t = begin; t < end; t++) {
        const int64_t at = r->x->backward ? turned(t, r->tasks, r->x->backward) : t;
        const int64_t tm = at % per / p->tasks_n, tn = at % p->tasks_n;
        const int64_t b0 = first_block(p, tm), b1 = first_block(p, tm + 1);
        const int64_t q0 = tn * p->task_panels, q1 = min64(p->panels, q0 + p->task_panels);
        job j = {r, r->item, r->index, scratch};
        if (!p->batch_outside) j.index = at / per, j.it = locate(p, r->x, j.index);
        if (p->dot)
            dot_task(&j, q0 * p->line->b.width, min64(p->n, q1 * p->line->b.width));
        else
            tile_task(&j, b0, b1, q0, q1);
    }
    if (p->line->end && !p->dot) p->line->end();
}

/* ---- Shared packing ------------------------------------------------------------------------------------ */

#define SLOT_BYTES (32 * 1024) /* some microseconds */

/* Blocks of A and panels of B, as far as they are shared, are packed in slots: a slot takes its fraction of
 * both, so that a thread with the first slots packs the first rows of A, which the first tasks read, and B is
 * dealt evenly too. */
static int64_t shared_blocks(const ortc_product_plan *p)
{
    return p->how_a == ORTC_PRODUCT_SHARED ? p->blocks : 0;
}
static int64_t shared_panels(const ortc_product_plan *p)
{
    return p->how_b == ORTC_PRODUCT_SHARED ? p->panels : 0;
}
static int64_t shared_slots(const ortc_product_plan *p)
{
    const int64_t na = shared_blocks(p), nb = shared_panels(p), most = na > nb ? na : nb;
    const ortc_product_form *fa = &p->line->a, *fb = &p->line->b;
    const int64_t bytes = ortc_form_data(fa, na * fa->width, p->k) + ortc_form_data(fb, nb * fb->width, p->k);
    return min64(bytes / SLOT_BYTES + (most > 0), most);
}

static void shared_body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const run_args *r = arg;
    const ortc_product_plan *p = r->p;
    const ortc_product_form *fa = &p->line->a, *fb = &p->line->b;
    const int64_t na = shared_blocks(p), nb = shared_panels(p), slots = shared_slots(p);
    const job j = {r, r->item, r->index, scratch};
    const ortc_product_source a = source_a(&j), b = source_b(&j);
    for (int64_t s = begin; s < end; s++)
        for (int64_t k0 = 0; k0 < p->k; k0 += p->kc) {
            const int64_t kc = min64(p->k - k0, p->kc);
            if (na)
                ortc_product_pack_panels(fa, &a, p->m, p->blocks, ortc_product_row(na, slots, s),
                                         ortc_product_row(na, slots, s + 1), k0, kc,
                                         r->shared_a + ortc_form_at(fa, p->m, p->blocks, k0, p->kc));
            if (nb)
                ortc_product_pack_panels(fb, &b, p->n, p->panels, ortc_product_row(nb, slots, s),
                                         ortc_product_row(nb, slots, s + 1), k0, kc,
                                         r->shared_b + ortc_form_at(fb, p->n, p->panels, k0, p->kc));
        }
}

static int32_t run_items(run_args *r, int64_t tasks, const ortc_product_threads *th)
{
    const ortc_product_plan *p = r->p;
    const int64_t slots = p->dot ? 0 : shared_slots(p);
    r->tasks = tasks;
    if (slots > 0) {
        const int32_t s = th->parallel(th->context, slots, 1, shared_body, r);
        if (s) return s;
    }
    /* Small matrices of a batch go out several at a time. */
    int64_t grain = 1;
    if (!p->batch_outside && p->batch > 1) {
        const double each = p->flops / (double)p->batch + p->bytes / (double)p->batch;
        grain = each > 0 && each < 5e5 ? (int64_t)(5e5 / each) + 1 : each > 0 ? 1 : 1024;
    }
    /* Where sums wait in C, all tasks go through a chunk before the next: rows that they share stay near. */
    const int by_chunk = p->sums_in_c && p->m > 1 && (p->batch == 1 || p->batch_outside) && tasks > 1 &&
                         p->how_a != ORTC_PRODUCT_LOCAL && p->how_b != ORTC_PRODUCT_LOCAL;
    for (r->chunk0 = 0; r->chunk0 < p->chunks; r->chunk0 = r->chunk1) {
        r->chunk1 = by_chunk ? r->chunk0 + 1 : p->chunks;
        const int32_t s = th->parallel(th->context, tasks, grain, task_body, r);
        if (s) return s;
    }
    return 0;
}

int32_t ortc_product_run(const ortc_product_plan *p, const ortc_product_args *x,
                         const ortc_product_threads *th)
{
    if (p->m == 0 || p->n == 0 || p->batch == 0) return 0;
    run_args r = {.p = p, .x = x};
    char *ws = x->workspace;
    r.straight = p->sums_in_c && !x->sums &&
                 (p->types.c == ORTC_I32 || ((p->line->can & ORTC_LINE_TAIL) && !x->tile));
    r.halves = p->line->can & ORTC_LINE_BF16 && p->types.c == ORTC_BF16 && p->chunks == 1 && !x->tile &&
               !x->sums && !(p->flags & ORTC_PRODUCT_TRANS_C);
    if (p->how_a == ORTC_PRODUCT_SHARED)
        r.shared_a = ws, ws += (ortc_product_packed_bytes(&p->line->a, p->m, p->k) + 63) / 64 * 64;
    if (p->how_b == ORTC_PRODUCT_SHARED) r.shared_b = ws;
    const int64_t per = p->tasks_m * p->tasks_n;
    if (p->batch > 1 && !p->batch_outside) return run_items(&r, p->batch * per, th);
    for (int64_t i = 0; i < p->batch; i++) {
        r.index = i;
        r.item = locate(p, x, i);
        const int32_t s = run_items(&r, per, th);
        if (s) return s;
    }
    return 0;
}

const ortc_product_line *ortc_product_line_for(ortc_dtype t)
{
    const ortc_product_line *line = ortc_product_select(ORTC_F32, t);
    return line ? line : ortc_product_select(ORTC_F32, ORTC_F32);
}

const float *ortc_product_floats(const ortc_product_line *line, ortc_dtype t, const void *src, int64_t n,
                                 float *space)
{
    if (!src || t == ORTC_F32) return src;
    line->moves->vec->load[ortc_float_index(t)](1, (size_t)n, src, 0, space, 0);
    return space;
}
