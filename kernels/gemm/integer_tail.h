/* Epilogues (ortc_node_epilogue) of products of integers on the cpu: what becomes of sums of s32.
 *
 *   (sum + bias) as f32 * scale + bias, then Clip, QuantizeLinear to 8 bits and back, * scale + bias,
 *   + residual, Clip, QuantizeLinear to 8 bits, DequantizeLinear
 *
 * is one pass over a finished tile, each part of it optional, scale and biases being numbers or vectors
 * along the channels, the residual f32 or quantised. Where sums become 8 bits and more is to happen to them
 * (a bias, Sigmoid, Mul, a residual, each between DequantizeLinear and QuantizeLinear), the pass ends there,
 * and links from 8 bits to 8 bits follow: a table for what is about those alone, a pass for what else is
 * added. What of a program comes before or after that, lowered for the machine of
 * kernels/elementwise/program.h, runs over the tile, too. The bits are those of the program: every operation
 * is one of its steps.
 */
#ifndef ORTC_KERNELS_GEMM_INTEGER_TAIL_H
#define ORTC_KERNELS_GEMM_INTEGER_TAIL_H

#include "kernels/elementwise/program.h"
#include "kernels/gemm/epilogue.h"

/* ---- One pass (integer_tail_vec.c) --------------------------------------------------------------------- */

/* A number for each row, for each column (elements from one to the next: 0 or 1), or for all. */
typedef struct ortc_int_vector {
    const void *data; /* f32; of `before` i32; NULL: left out */
    size_t row, col;
} ortc_int_vector;

/* 8 bits of a scale; type 0: there are none. */
typedef struct ortc_int_scaled {
    int32_t type; /* ORTC_U8, I8; of a residual ORTC_F32, too, which is as it is */
    float scale, zero;
} ortc_int_scaled;

typedef struct ortc_int_bounds {
    float lo, hi; /* -+infinity: none */
} ortc_int_bounds;

/* What is said in numbers. */
typedef struct ortc_int_steps {
    ortc_int_bounds clip, last;  /* before `to`, behind the residual */
    ortc_int_scaled to, from;    /* to 8 bits and back */
    ortc_int_scaled residual, y; /* y: type 0: f32 */
    ortc_int_scaled again;       /* type not 0: y is dequantised to f32 by it */
} ortc_int_steps;

typedef struct ortc_int_pass {
    ortc_int_vector before, scale, bias, by, more; /* the last two: behind `from` */
    const void *residual;                          /* element (0, 0) */
    size_t residual_row;
    const ortc_int_steps *steps;
    int32_t ends; /* the result is as y, and `again`, say; else f32 */
} ortc_int_pass;

typedef struct ortc_int_passes {
    /* sums [rows][ld] to y [rows][y_ld], which may be the sums if it is f32 */
    void (*run)(const ortc_int_pass *, size_t rows, size_t cols, const int32_t *sums, size_t ld, void *y,
                size_t y_ld);
} ortc_int_passes;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_int_passes)

/* ---- Blocks of 16 channels, in fixed point (integer_tail_fixed.c) -------------------------------------- */

/* Results of 8 bits by numbers in units of what is rounded to, with 16 bits behind the point: of the node; */
typedef struct ortc_int_fixed {
    int32_t back, adds; /* two are rounded; a residual (0: none) of u8 (1) or s8 (2) */
    double unit, zero;  /* of the first that is rounded: of f32; what is added to it, in units */
    int32_t moved;      /* of two: that, so that hi is -lo */
    double off, beside; /* units of 2^-24 that roundings make but for biases'; a residual's largest */
    float lo, hi;       /* bounds of the first, where it is followed by another; */
    float next, last_bias, residual; /* of that, and of the residual, to the last */
    /* Of two: the first at most, what it is moved by, what the last begins with, and units of 2^-24 that
     * roundings make of the last but for products with the first. */
    double between, shift, start, farthest;
    int32_t last;  /* as ortc_int_block.near */
    int32_t again; /* results are dequantised to f32 by these */
    float again_zero, again_scale;
    uint8_t least, most, flip; /* bounds of results as u8; what makes these s8 */
    ortc_int_steps steps;      /* of the program */
} ortc_int_fixed;

/* and of 16 channels. */
typedef struct ortc_int_block {
    float factor[16], bias[16];    /* of sums, to the first that is rounded */
    int32_t near;                  /* bits of which one is set in all but those near a half; 0: not done so */
    float next[16], last_bias[16]; /* of the first, to the last, with `by` and `more` */
    int32_t last;                  /* as near, of the last of two */
    int32_t before[16];            /* what the program adds to sums, */
    float scale[16], added[16];    /* multiplies them with and adds, */
    float by[16], more[16];        /* and does so with the first that is rounded, or behind that */
} ortc_int_block;

typedef struct ortc_int_blocks {
    /* adds: there is a residual. 0: not for these numbers, which are all that decide. */
    int (*init)(const ortc_int_pass *, int adds, ortc_int_fixed *out);
    /* Of the 16 channels from column 0 of a pass on. Sums, and what is added to them, are below 2^30. 0: not
     * for these numbers. */
    int (*block)(const ortc_int_fixed *, const ortc_int_pass *, ortc_int_block *out);
    /* n rows of 16 sums, `ld` apart, to as many of y, `y_ld` elements apart, as are the residual's; n up to
     * 256. */
    void (*run)(const ortc_int_fixed *, const ortc_int_block *, size_t n, const int32_t *sums, size_t ld,
                const void *residual, void *y, size_t y_ld);
    void (*widen)(size_t n, int is_signed, const uint8_t *bytes, int32_t *sums); /* n rows of 16 */
} ortc_int_blocks;
#if defined(__x86_64__)
extern const ortc_int_blocks ortc_int_blocks_avx512, ortc_int_blocks_avx2;
#endif

/* ---- A node's epilogue --------------------------------------------------------------------------------- */

/* A vector's source: an input port, or a number (port -1). */
typedef struct ortc_int_source {
    int32_t given, port;
    union {
        float f;
        int32_t i;
    } k;
} ortc_int_source;

/* 8 bits become others, or the result: by a table, and then by a pass over them as sums, each optional. */
typedef struct ortc_int_link {
    int32_t has_table, has_pass;
    uint8_t table[256];
    ortc_int_source moved, times, by,
        bias;         /* i32 that is added, what is multiplied with, f32 that is added */
    int32_t residual; /* as the tail's, one of its own */
    ortc_int_steps steps;
} ortc_int_link;
enum { ORTC_INT_LINKS = 3 };

typedef struct ortc_int_tail {
    ortc_dtype type;  /* of the node's result */
    int32_t has_pass; /* sums become f32, or the result, in one pass */
    int32_t has_rest; /* behind the pass, or instead of it; neither: the sums are the result */
    ortc_int_source before, scale, bias, by, more;
    int32_t residual; /* its port; -1: none */
    int32_t n_links;  /* behind the pass, */
    ortc_int_link links[ORTC_INT_LINKS];
    ortc_int_steps steps;
    uint8_t lies[ORTC_PW_INPUTS];
    ortc_pw_code rest;
} ortc_int_tail;
/* So much of it is ever read. */
static inline size_t ortc_int_tail_bytes(const ortc_int_tail *t)
{
    return t->has_rest ? sizeof *t : offsetof(ortc_int_tail, rest);
}

/* Reads the epilogue of a node whose sums are i32 (none: the sums are the result). axis: of the channels in
 * the result. 0: not done here, *why says what. */
int ortc_int_tail_init(const ortc_node *n, int32_t axis, ortc_int_tail *out, const char **why);

/* For a product (ortc_product_args.sums and tile_arg), whose C is a matrix `width` wide. */
typedef struct ortc_int_run {
    const ortc_int_tail *tail;
    const struct ortc_int_ends *ends; /* of columns; NULL: none */
    const ortc_view *in;              /* the call's */
    void *y;
    int64_t width, channels; /* channels: row r is of channel r % channels; 0: columns are channels */
} ortc_int_run;
ortc_sums_fn ortc_int_tail_tile; /* arg: an ortc_int_run */

/* Blocks of 16 channels, or channels whose pixels are beside each other (along), that go by fixed point, in
 * the pass and all links, where the epilogue's vectors are constants: a plan has them. `first` [channels] is
 * added to sums before anything else; with it they are below 2^30. NULL: a node goes by ortc_int_tail_over,
 * as those do that are not in it (ortc_int_ends_has). Owner: free(). */
typedef struct ortc_int_ends {
    const ortc_int_tail *tail;     /* whose epilogue it is */
    size_t channels, count, taken; /* count: of blocks (along: channels); taken: of those done so */
    ortc_int_fixed fixed[1 + ORTC_INT_LINKS];
    ortc_int_block blocks[]; /* [1 + links][count] */
} ortc_int_ends;
ortc_int_ends *ortc_int_ends_create(const ortc_int_tail *, const ortc_view *in, const int32_t *first,
                                    size_t channels, int along);
static inline int ortc_int_ends_has(const ortc_int_ends *e, size_t block)
{
    return e && block < e->count && e->blocks[block].near != 0;
}
/* n pixels [n][16] of a block, without `first`, to y; residuals lie as y does, in the call's views
 * `in`, from element `at` on. Channels that only pad the last block, whose sums are 0, become 0. */
void ortc_int_ends_run(const ortc_int_ends *, size_t block, const int32_t *sums, size_t n,
                       const ortc_view *in, int64_t at, void *y);

/* n neighbouring pixels of a channel (along), without `first`, to as many of y; as above. */
void ortc_int_ends_along(const ortc_int_ends *, size_t channel, const int32_t *sums, size_t n,
                         const ortc_view *in, int64_t at, void *y);

/* Where a tile's results go, and where it lies. The sums are written over. */
void ortc_int_tail_over(const ortc_int_tail *, const ortc_view *in, const ortc_tail_place *, int32_t *sums,
                        size_t ld, void *y, size_t y_ld, size_t rows, size_t cols);

#endif
