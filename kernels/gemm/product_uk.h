/* The micro-kernels of matrix products: what a line of their table says, and the table.
 *
 * A micro-kernel computes one tile, at most MR rows by NR columns, of A B over one chunk of K, from operands
 * packed as the line's two forms say. It has no state, allocates nothing, and trusts its arguments (it
 * asserts them). Drivers, packers and planners know no line: all that they need is a number in it.
 *
 * A packed operand is [panel][group][plane][width][k of the group], a panel being MR rows of A or NR columns
 * of B, a group `group` consecutive k, a plane one of the pieces that an element is cut into; behind a panel,
 * where the form has sums, the s32 sums over k of its rows or columns. K is padded with zeros to whole
 * groups. With groups of 1 and one plane: A [K][mr], B [K][w]. Of lines that SPLIT B it is that, too, and the
 * first tile over a panel makes pieces of it for all of a task, between its products.
 * Widths: the rows of A are dealt evenly to ceil(M/MR) panels (blocks), exact and never padded, so there is
 * no scalar tail in M; B's last panel has its columns rounded up to `step`, padding is zero. Results in
 * columns beyond nr are neither read nor written. B may also be read where it lies (row stride ldb, B_EXACT)
 * if the line CAN_DIRECT: then nothing beyond nr columns is read.
 * Lines that CAN_TAIL run the cheap part of an epilogue on registers before the only store; when K is cut in
 * chunks, raw sums are kept between them, and the epilogue comes with the last chunk. Leaves to others:
 * blocking, packing order, threads, conversions and everything else that happens to a result (product.h).
 */
#ifndef ORTC_KERNELS_GEMM_PRODUCT_UK_H
#define ORTC_KERNELS_GEMM_PRODUCT_UK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/common/uk.h"
#include "kernels/gemm/uk_act.h"
#include "ortc/types.h"

/* One float at any byte address: constants lie in model files at any alignment. Compiles to a plain load. */
static inline float ortc_uk_load_f32(const float *p)
{
    float v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

/* What happens to a finished sum s of row i, column j, in this order:
 *   s*alpha + bias_col[j] + bias_row[i] + beta*residual[i*residual_stride + j], then the activation.
 * Pointers are to the tile's own first element; NULL: that term is left out. */
typedef struct ortc_uk_tail_f32 {
    float alpha, beta;
    const float *bias_col;
    const float *bias_row;
    const float *residual;
    size_t residual_stride; /* elements */
    int32_t act;
    float lo, hi;
} ortc_uk_tail_f32;

enum {
    ORTC_UK_ACCUMULATE = 1u, /* `sums` holds those of earlier chunks */
    ORTC_UK_B_EXACT = 2u,    /* b has only nr readable columns: it is not a packed panel */
    ORTC_UK_A_PLAIN = 8u,    /* a is an ortc_uk_plain; of lines that CAN_PLAIN */
    /* sums is C, of bf16, and so is the tail's residual; of lines that CAN_BF16, with a tail, not with
     * ACCUMULATE */
    ORTC_UK_TO_BF16 = 4u,
};

#define ORTC_UK_ROW_PANELS \
    4 /* whole packed panels, one behind the other, that lines with ROW take for one row */

/* What a tile does for those after it. Lines of 64 bytes that these will read soon, from farther than L2: a
 * tile that is long enough asks for them evenly between its groups, so that what comes from memory comes
 * while there is something to multiply. */
typedef struct ortc_uk_ahead {
    const char *from;
    size_t lines;
    int near; /* b itself is in L1, or comes as fast unasked: no line asks for its next group */
    /* of lines that CAN_BF16: sums of earlier parts, [mr][ldb], in place of ACCUMULATE; NULL: none */
    const float *sums;
    /* of vectors' lines of f32 whose B has 16 bits and is packed: where the tile leaves it as f32, [k][ldb],
     * with room for a vector more; NULL: nowhere */
    float *wide;
    const int32_t *first; /* of lines with FIRST: what the sums of each row begin with, [ldb]; NULL: 0; */
    const int32_t *each;  /* of lines with EACH: and what is added to those of a row, [mr]; NULL: 0 */
    /* of lines that take MORE: so many blocks of mr rows follow this one, in a, of packed ones `skip` bytes
     * behind each other, in sums, the tail's rows and the lines asked for; not with `wide` or `each` */
    size_t more, skip;
} ortc_uk_ahead;

/* B of lines that SPLIT it: a panel as it is packed, or with B_EXACT where it lies, and a place for its
 * pieces, which the first tile over it makes and others find. */
#define ORTC_UK_PANEL_STATE 64 /* bytes in front of them: s32 0 until they are made, then the line's own */
typedef struct ortc_uk_panel {
    const void *data;
    void *pieces; /* aligned to 64 bytes; planes of A's form times two bytes for each element, k in groups of
                     A's form, columns in steps of B's */
    int alone;    /* no other tile reads them: room for two groups does */
} ortc_uk_panel;

/* Rows of A where they lie, of f32 or, in whole groups, of the form's type: element (i, k) is i * ld + k
 * elements behind data. */
typedef struct ortc_uk_plain {
    const void *data;
    size_t ld;
} ortc_uk_plain;

/* mr 1..MR; nr 1..NR, or with mr 1 of lines that CAN_ROW ORTC_UK_ROW_PANELS * NR; groups of k of B's form
 * >= 0; a a packed block of mr rows, or
 * with A_PLAIN an ortc_uk_plain; b a packed panel, ldb its width, or with B_EXACT [k][ldb]; of lines that
 * SPLIT it, an ortc_uk_panel of either; sums [mr][ld] of the line's type of sum. tail: only of lines that
 * CAN_TAIL, and NULL: store the raw sums. ahead: NULL, or hints that lines may ignore, and what it says that
 * some lines do. */
typedef void ortc_uk_product(size_t mr, size_t nr, size_t groups, const void *a, const void *b, size_t ldb,
                             void *sums, size_t ld, uint32_t flags, const ortc_uk_tail_f32 *tail,
                             const ortc_uk_ahead *ahead);

/* ---- Moves: what an instruction set gives to all of its lines ------------------------------------------ */

/* Packing f32: w columns of k rows become dst [k][dw], dw >= w, columns w..dw-1 zero.
 * rows: src is [k][ld], a copy; transpose: src is [w][ld], k runs along its rows. */
typedef void ortc_uk_pack_f32(size_t w, size_t k, const float *src, size_t ld, float *dst, size_t dw);

/* Bodies over vectors (product_vec.c); arrays go by ORTC_FLOAT_*, memory of any alignment. */
#define ORTC_DOT_ROWS 8
typedef struct ortc_product_vec {
    /* [rows][cols], rows a stride apart, to f32 and back, rounded once. */
    void (*load[3])(size_t rows, size_t cols, const void *src, size_t ld, float *dst, size_t dst_ld);
    void (*store[3])(size_t rows, size_t cols, const float *src, size_t ld, void *dst, size_t dst_ld);
    /* y[j] = sum over i of x[i] * w[j*ldw + i], for nr rows of w, 1..ORTC_DOT_ROWS: matrix times vector where
     * rows are contiguous. */
    void (*dot[3])(size_t nr, size_t k, const float *x, const void *w, size_t ldw, float *y);
} ortc_product_vec;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_product_vec)

/* Zero points of the rows of A and the columns of B; step 0: one for all. `moved` is added to each. */
typedef struct ortc_product_zeros {
    const int32_t *a, *b;
    size_t a_step, b_step;
    int32_t a_moved, b_moved;
} ortc_product_zeros;

/* Bytes into forms of groups of 4 bytes, and what zero points add to sums (product_bytes_vec.c). */
typedef struct ortc_product_bytes {
    /* k steps (the last group filled up with zeros) of w columns, src being [k][ld], become dst
     * [group][dw][4 bytes]; sums [dw], of what is stored, are added to. `type` and `to`: ORTC_U8, I8; of the
     * form. */
    void (*rows)(size_t w, size_t k, const uint8_t *src, size_t ld, int type, int to, void *dst, size_t dw,
                 int32_t *sums);
    /* n bytes as they are stored; returns the sum of them. */
    int32_t (*line)(size_t n, const uint8_t *src, int type, int to, void *dst);
    /* sums [rows][ld] -= zb[j] * ra[i] + za[i] * cb[j] - k * za[i] * zb[j]; ra, cb: sums over k. */
    void (*correct)(size_t rows, size_t cols, int32_t *sums, size_t ld, int32_t k, const int32_t *ra,
                    const int32_t *cb, const struct ortc_product_zeros *);
    /* The same of one za, and no zb, as what sums begin with: first [cols]. */
    void (*begin)(size_t cols, int32_t za, const int32_t *cb, int32_t *first);
    void (*sums)(size_t rows, size_t k, const uint8_t *src, size_t ld, int type, int32_t *out); /* over k */
} ortc_product_bytes;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_product_bytes)

/* f32 as bf16, or as sums of `planes` of them, the largest first, into forms of groups
 * (product_pieces_vec.c). Several do not do where a value is other than 0 and smaller than 2^-103, where the
 * last piece would be denormal, or 2^57 and larger, where sums might overflow that do not; infinity; NaN; or
 * a row (of B: a column) is not all 0, and none of it reaches 2^-50. So what a unit that flushes denormals
 * loses is below 2^-26 of the row's largest times the column's. Below 2^-133 `runs` finds none, and counts
 * them as 0. Products' B is cut as it is multiplied, with the same limits (amx_split.h). */
#define ORTC_PIECES_LEAST 0x0c000000u
#define ORTC_PIECES_LARGEST 0x26800000u
#define ORTC_PIECES_BEYOND 0x5c000000u
typedef struct ortc_product_pieces {
    /* w rows [ld] of k values each become the first of dst [group][plane][dw][group], the last group filled
     * up with zeros; of several pieces all but the last are cut off, those of pairs rounded. Returns whether
     * several do not do */
    int (*runs)(size_t w, size_t k, const float *src, size_t ld, size_t planes, size_t group, uint16_t *dst,
                size_t dw);
    /* [k][w] becomes dst [group][plane][group / 2][w][2] */
    void (*pairs)(size_t w, size_t k, const float *src, size_t planes, size_t group, void *dst);
    int (*odd)(size_t w, size_t k, const float *src); /* whether several do not do for a [k][w] */
} ortc_product_pieces;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_product_pieces)

typedef struct ortc_product_moves {
    const char *name;
    uint32_t isa;
    ortc_uk_pack_f32 *rows, *transpose;
    const ortc_product_vec *vec;
    const ortc_product_bytes *bytes;
    const ortc_product_pieces *pieces;
} ortc_product_moves;

/* All of them, best first; the best that ortc_cpu_features() allows. They differ in speed, and dot in how it
 * rounds. Thread: any. */
extern const ortc_product_moves ortc_product_all_moves[];
extern const size_t ortc_product_moves_count;
const ortc_product_moves *ortc_product_moves_select(void);

/* ---- Lines --------------------------------------------------------------------------------------------- */

#define ORTC_FORM_WIDTH 64     /* the widest panel, */
#define ORTC_FORM_GROUP 64     /* and the longest group */
#define ORTC_CHUNK_FLOATS 1536 /* the longest chunk of floats as they are */

enum {
    ORTC_ORDER_KFAST = 0, /* [width][group] */
    ORTC_ORDER_PAIRS = 2, /* [group / 2][width][2] */
    ORTC_ORDER_QUADS = 4  /* [group / 4][width][4] */
};

/* How an operand lies when packed. Two operands of the same form, extents and source are the same bytes, on
 * whatever machine: keys of packed constants hold a form, never a line. No padding: compared bytewise. */
typedef struct ortc_product_form {
    /* ORTC_F32, ...: of an element, or of a piece of one. Bytes of the other sign are moved by 128; in I16
     * bytes of both are as they are */
    uint8_t type;
    uint8_t width; /* of a full panel: MR, NR */
    uint8_t step;  /* what a last panel's width is rounded up to; 0: dealt evenly */
    uint8_t group; /* consecutive k that lie together; divides 64 */
    /* More than 1, of A: an f32 as a sum of so many pieces, an f16 as one of two; the s32 behind a panel is
     * not 0 where one of its elements is none, and all of it [k][width] of f32 instead, K padded with zeros.
     * B is then packed as it is, for a line that SPLITs it: as fused multiply-adds of its type read it */
    uint8_t planes;
    uint8_t order; /* within a group: ORTC_ORDER_* */
    uint8_t sums;  /* 1: s32 sums over k behind each panel */
    uint8_t reserved;
    uint32_t chunk; /* the longest chunk of K, and the length of chunks beyond it */
} ortc_product_form;

enum {
    ORTC_LINE_TAIL = 1u,   /* takes a tail */
    ORTC_LINE_DIRECT = 2u, /* reads B where it lies, of the form's type */
    ORTC_LINE_BF16 = 4u,   /* stores results of bf16 */
    ORTC_LINE_PLAIN = 32u, /* reads rows of A where they lie (ortc_uk_plain) */
    ORTC_LINE_ROW = 16u,   /* takes several panels of B for one row of A */
    ORTC_LINE_SPLIT = 8u,  /* makes pieces of B as it multiplies; of A they are packed */
    ORTC_LINE_FIRST = 64u, /* sums may begin with others than 0 (ortc_uk_ahead.first), */
    ORTC_LINE_EACH = 128u, /* and each row's with its own */
    ORTC_LINE_MORE = 256u, /* takes several blocks of rows (ortc_uk_ahead.more) */
};

typedef struct ortc_product_line {
    const char *name;
    uint32_t isa; /* bits of cpu_features.h, all needed */
    ortc_product_form a, b;
    uint8_t sum;     /* ORTC_F32 or ORTC_I32 */
    uint16_t can;    /* ORTC_LINE_* */
    uint16_t clocks; /* of a full tile and 16 k, for cost models */
    /* Of a task on its thread: tile configuration, release. NULL: nothing. */
    void (*begin)(void), (*end)(void);
    ortc_uk_product *tile;
    const ortc_product_moves *moves;
} ortc_product_line;

/* A line from the arguments of product_lines.inc; K group and planes are A's, and B's but of lines that SPLIT
 * it. */
#define ORTC_LINE_NAME(a, b, mr, nr, isa) ortc_uk_product_##a##_##b##_##mr##x##nr##_##isa
#define ORTC_LINE_f32 ORTC_F32
#define ORTC_LINE_f16 ORTC_F16
#define ORTC_LINE_bf16 ORTC_BF16
#define ORTC_LINE_bf16x2 ORTC_BF16
#define ORTC_LINE_bf16x3 ORTC_BF16
#define ORTC_LINE_u8 ORTC_U8
#define ORTC_LINE_s8 ORTC_I8
#define ORTC_LINE_s16 ORTC_I16
#define ORTC_LINE_s32 ORTC_I32
#define ORTC_LINE_OF(bits, isa, A, B, S, mr, nr, step, kg, planes, order_b, sums, chunk, clocks, can, begin, \
                     end, its_moves) \
    { \
        "product_" #A "_" #B "_" #mr "x" #nr "_" #isa, bits, \
            {ORTC_LINE_##A, mr, 0, kg, planes, ORTC_ORDER_KFAST, sums, 0, chunk}, \
            {ORTC_LINE_##B, \
             nr, \
             step, \
             (planes) > 1 ? 1 : (kg), \
             1, \
             ORTC_ORDER_##order_b, \
             sums, \
             0, \
             (planes) > 1 ? ORTC_CHUNK_FLOATS : (chunk)}, \
            ORTC_LINE_##S, can, clocks, begin, end, ORTC_LINE_NAME(A, B, mr, nr, isa), its_moves \
    }

/* All of them, best first. Thread: any. */
extern const ortc_product_line ortc_product_lines[];
extern const size_t ortc_product_line_count;

/* The best that ortc_cpu_features() allows for packed elements of these types, in one plane; NULL: none.
 * There always is one for (f32, f32), which packers and drivers make serve for f16 and bf16. Thread: any. */
const ortc_product_line *ortc_product_select(ortc_dtype a, ortc_dtype b);

/* The best that multiplies values of a type (ORTC_F32, F16) in pieces of bf16; NULL: none. Thread: any. */
const ortc_product_line *ortc_product_in_pieces(ortc_dtype type);

/* The best for bytes of these types (ORTC_U8, I8), whose sums are s32 and exact. Where the types are the
 * same, a line may have to move one operand by 128, which costs its counterpart's sums: the operand that is
 * not `constant_a`'s. There always is one. Thread: any. */
const ortc_product_line *ortc_product_integers(ortc_dtype a, ortc_dtype b, int constant_a);

#endif
