/* kernels/gemm/nbits_job.h: what nbits.c and nbits_rounded.c share of a product of MatMulNBits. */
#ifndef ORTC_KERNELS_NBITS_JOB_H
#define ORTC_KERNELS_NBITS_JOB_H

#include <stdbool.h>

#include "kernels/common/vector/convert.h"
#include "kernels/gemm/nbits.h"
#include "kernels/gemm/product.h"
#include "ortc/op.h"

enum { A, B, SCALES, ZEROS, G_IDX, BIAS };
enum { MOST = 8, PORTS = BIAS + 1 };

typedef struct sibling {
    int64_t n;
    uint32_t out;        /* the node's output */
    int32_t port[PORTS]; /* the node's inputs; -1: left out */
} sibling;

typedef struct nbits_state {
    int64_t k, bits, block;
    bool rounds; /* x to bytes, where it is finite */
    bool zeros;  /* there are zero points: of all products, or of none */
    uint32_t count;
    sibling of[MOST];
} nbits_state;

/* Where what rounded rows need lies, in bytes. */
typedef struct nbits_rounded_plan {
    const ortc_nbits_bytes *bodies;
    bool one;                                   /* row of x */
    ortc_uk_pack_f32 *transpose;                /* moves bits */
    int64_t part;                               /* blocks at a time */
    size_t bytes, scale, less, offset, strange; /* workspace; strange: rows with NaN or infinities */
    size_t words, scales, zeros, sums, some;    /* scratch */
    int64_t ldx, parts, lanes;                  /* of x: bytes of a row, scales of it, words of a group */
} nbits_rounded_plan;

typedef struct nbits_plan {
    const ortc_nbits_vec *body;
    const ortc_convert *convert;
    ortc_product_plan product[MOST]; /* of many rows */
    nbits_rounded_plan rounded;
    ortc_nbits_pairs *pairs;                         /* many rows go by tiles of bf16; NULL: of f32 */
    bool few, rounds;                                /* rounds: rows that are finite, to bytes */
    int64_t m, blocks, width, row_bytes, zero_bytes; /* width: K in whole blocks */
    int64_t ldx, part;                               /* width in whole groups; of K at a time */
    int64_t grain;                                   /* rows of weights of a task */
    /* elements of f32: few rows: x, spread x, sums of its blocks; biases */
    size_t at_x, at_spread, at_sums, at_bias[MOST];
    size_t at_y, at_lanes, at_scale, at_zero, at_bytes; /* bytes in scratch */
} nbits_plan;

/* One product. */
typedef struct nbits_job {
    const nbits_state *s;
    const nbits_plan *p;
    int64_t n;
    ortc_view in[PORTS], out;
    const float *x, *spread, *sums, *bias;
    bool exact; /* x holds NaN or infinities, which must not meet what is taken off */
} nbits_job;

static inline const void *ortc_nbits_given(const nbits_job *j, uint32_t port)
{
    return j->in[port].dtype ? j->in[port].data : NULL;
}

/* Room for `count` elements of `bytes` behind *sum, at a whole line of cache: where. */
static inline size_t ortc_nbits_room(size_t *sum, int64_t count, size_t bytes)
{
    const size_t at = *sum;
    *sum += ((size_t)count * bytes + 63) & ~(size_t)63;
    return at;
}

/* Scales of `count` blocks of a row of weights from `first` on: in the file, or in `space`. */
const float *ortc_nbits_scales(const nbits_job *j, int64_t row, int64_t first, int64_t count, float *space);
/* What zero points of nc rows from n0 on are above the middle: of `count` blocks from `first` on,
 * [count][ld]. */
void ortc_nbits_zeros(const nbits_job *j, int64_t n0, int64_t nc, int64_t first, int64_t count, float *to,
                      int64_t ld);
/* Zero points of the blocks of a row; space: a byte for each. */
void ortc_nbits_zeros_of(const nbits_job *j, int64_t row, uint8_t *space, float *to);
bool ortc_nbits_finite(int64_t n, const float *x);

/* Makes room in workspace and scratch, where both may be used otherwise when rows are not rounded. */
void ortc_nbits_plan_rounded(const nbits_state *s, nbits_plan *p, size_t *workspace, size_t *scratch);
/* All products of a group; *finite = false: x was not, and nothing was written. */
ortc_status ortc_nbits_run_rounded(const nbits_job *jobs, uint32_t count, ortc_call *c, bool *finite);

#endif
