/* Epilogues of nodes (ortc_node_epilogue) on the cpu: shared by the families that compute through product.h,
 * or finish tiles of their own.
 *
 * A scale, a bias, a residual, Clip and LeakyRelu happen on registers, in the micro-kernels (tail.h). The
 * rest is a program, lowered for the machine of kernels/elementwise/program.h, that runs over each finished
 * tile of f32 while it is in L1. There is no list of activations.
 */
#ifndef ORTC_KERNELS_GEMM_EPILOGUE_H
#define ORTC_KERNELS_GEMM_EPILOGUE_H

#include <stddef.h>

#include "kernels/elementwise/program.h"
#include "kernels/gemm/product.h"
#include "kernels/gemm/tail.h"
#include "ortc/op.h"

/* What a kernel keeps of an epilogue. */
typedef struct ortc_tail_spec {
    float alpha;            /* on registers: as in ortc_tail */
    int32_t act;            /* ORTC_UK_ACT_* */
    float lo, hi;           /* its parameters */
    int32_t bias, residual; /* input ports, -1: none */
    int32_t widens;         /* the result is f32, the operator's type is not */
    int32_t to_bytes;       /* the result is integers of 8 bits */
    int32_t has_rest;       /* else nothing is done to tiles */
    uint8_t lies[ORTC_PW_INPUTS];
    ortc_pw_code rest;   /* to f32, or to bytes */
    ortc_pw_code stored; /* the same, to the operator's type of 16 bits; else nothing */
} ortc_tail_spec;
/* So much of it is ever read. */
static inline size_t ortc_tail_spec_bytes(const ortc_tail_spec *t)
{
    return t->has_rest ? sizeof *t : offsetof(ortc_tail_spec, rest);
}

/* Fills `out` from a node's epilogue, if it has one. axis: of the channels in the node's output; may: what
 * is done on registers (ORTC_TAIL_*). 0 if it is not done here, and *why says what is not. */
int ortc_tail_spec_init(const ortc_node *n, int32_t axis, uint32_t may, ortc_tail_spec *out,
                        const char **why);

/* Where a tile lies in the node's output: the channel of its (0, 0) and how many on it is from one row, and
 * from one column, to the next (one of them 1, the other 0); the same of the element in the output as it is
 * stored. Rows of pixels and columns of channels, of [N, C, pixels]: {channel, 0, 1, element, 1, pixels}. */
typedef struct ortc_tail_place {
    int64_t channel, element;
    size_t channel_row, channel_col, row, col;
} ortc_tail_place;

/* The rest of an epilogue over a finished tile of f32, rows `ld` apart, to rows `y_ld` apart; y may be the
 * tile. `in`: the call's. Nothing if there is no rest. */
void ortc_tail_over(const ortc_tail_spec *, const ortc_view *in, const ortc_tail_place *, const float *tile,
                    size_t ld, float *y, size_t y_ld, size_t rows, size_t cols);

/* The same to the result's type, which has 16 bits: rounded once; or 8. There is a rest. */
void ortc_tail_store(const ortc_tail_spec *, const ortc_view *in, const ortc_tail_place *, const float *tile,
                     size_t ld, void *y, size_t y_ld, size_t rows, size_t cols);

/* The same for a product (ortc_product_args.tile and tile_arg), whose C is a matrix `width` wide. */
typedef struct ortc_tail_run {
    const ortc_tail_spec *spec;
    const ortc_view *in;
    int64_t width, channels; /* channels: row r is of channel r % channels; 0: columns are channels */
} ortc_tail_run;
ortc_tile_fn ortc_tail_tile; /* arg: an ortc_tail_run */

/* The data of input `port` of a call; NULL for -1, for a port that is not there and for one left out. */
static inline const void *ortc_call_data(const ortc_call *c, int32_t port)
{
    return port >= 0 && (uint32_t)port < c->n_in && c->in[port].dtype ? c->in[port].data : NULL;
}

/* ortc_parallel as ortc_product_threads wants it; the context is the call. */
static inline ortc_status ortc_call_parallel(void *call, int64_t n, int64_t grain, ortc_parallel_fn body,
                                             void *arg)
{
    return ortc_parallel((ortc_call *)call, n, grain, body, arg);
}

#endif
