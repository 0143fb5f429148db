/* Epilogues (ortc_node_epilogue) of products of integers on the cpu: what becomes of sums of s32.
 *
 *   (sum + bias) as f32 * scale + bias, then Clip, QuantizeLinear to 8 bits and back, + residual, Clip,
 *   QuantizeLinear to 8 bits
 *
 * is one pass over a finished tile, each part of it optional, scale and biases being numbers or vectors along
 * the channels, the residual f32 or quantised. What of a program comes before or after that, lowered for the
 * machine of kernels/elementwise/program.h, runs over the tile, too. The bits are those of the program: every
 * operation is one of its steps.
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
} ortc_int_steps;

typedef struct ortc_int_pass {
    ortc_int_vector before, scale, bias;
    const void *residual; /* element (0, 0) */
    size_t residual_row;
    const ortc_int_steps *steps;
    int32_t ends; /* the result is as y says; else f32 */
} ortc_int_pass;

typedef struct ortc_int_passes {
    /* sums [rows][ld] to y [rows][y_ld], which may be the sums if it is f32 */
    void (*run)(const ortc_int_pass *, size_t rows, size_t cols, const int32_t *sums, size_t ld, void *y,
                size_t y_ld);
} ortc_int_passes;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_int_passes)

/* ---- A node's epilogue --------------------------------------------------------------------------------- */

/* A vector's source: an input port, or a number (port -1). */
typedef struct ortc_int_source {
    int32_t given, port;
    union {
        float f;
        int32_t i;
    } k;
} ortc_int_source;

typedef struct ortc_int_tail {
    ortc_dtype type;  /* of the node's result */
    int32_t has_pass; /* sums become f32, or the result, in one pass */
    int32_t has_rest; /* behind the pass, or instead of it; neither: the sums are the result */
    ortc_int_source before, scale, bias;
    int32_t residual; /* its port; -1: none */
    ortc_int_steps steps;
    uint8_t lies[ORTC_PW_INPUTS];
    ortc_pw_code rest;
} ortc_int_tail;

/* Reads the epilogue of a node whose sums are i32 (none: the sums are the result). axis: of the channels in
 * the result. 0: not done here, *why says what. */
int ortc_int_tail_init(const ortc_node *n, int32_t axis, ortc_int_tail *out, const char **why);

/* For a product (ortc_product_args.sums and tile_arg), whose C is a matrix `width` wide. */
typedef struct ortc_int_run {
    const ortc_int_tail *tail;
    const ortc_view *in; /* the call's */
    void *y;
    int64_t width, channels; /* channels: row r is of channel r % channels; 0: columns are channels */
} ortc_int_run;
ortc_sums_fn ortc_int_tail_tile; /* arg: an ortc_int_run */

/* Where a tile's results go, and where it lies. The sums are written over. */
void ortc_int_tail_over(const ortc_int_tail *, const ortc_view *in, const ortc_tail_place *, int32_t *sums,
                        size_t ld, void *y, size_t y_ld, size_t rows, size_t cols);

#endif
