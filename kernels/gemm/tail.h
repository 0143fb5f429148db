/* kernels/gemm/tail.h: what of an epilogue (ortc_node_epilogue) a product can do on registers, and what is
 * left.
 *
 *   sum * scale + bias[channel] + residual[element], then Clip (Relu) or LeakyRelu
 *
 * A part of it is split off a program as long as each value is read by the next step alone; the rest is a
 * program over what comes out. Knows no provider: the cpu runs the rest over tiles (epilogue.h), cuda looks
 * what it is.
 */
#ifndef ORTC_KERNELS_GEMM_TAIL_H
#define ORTC_KERNELS_GEMM_TAIL_H

#include "kernels/gemm/uk_act.h"
#include "ortc/program.h"

/* Places that the operator itself leaves free. */
enum {
    ORTC_TAIL_SCALE = 1,
    ORTC_TAIL_BIAS = 2,     /* a vector along the channels, of the operator's type */
    ORTC_TAIL_RESIDUAL = 4, /* a tensor of the result's shape and the operator's type */
    ORTC_TAIL_ACT = 8,
    ORTC_TAIL_ALL = 15,
    ORTC_TAIL_WIDER = 16, /* the result may be f32 where the operator's type has 16 bits */
    ORTC_TAIL_BYTES = 32  /* the result may be integers of 8 bits */
};

typedef struct ortc_tail {
    float scale;            /* 1: none */
    int32_t bias, residual; /* input ports, -1: none */
    int32_t act;            /* ORTC_UK_ACT_* */
    float lo, hi;           /* its parameters */
    int32_t widens;         /* the result is f32, the operator's type is not */
    int32_t to_bytes;       /* the result is integers of 8 bits */
    int32_t has_rest;
    uint32_t at; /* the step of the rest that is its input 0; as many as it has: it reads none */
    uint8_t lies[ORTC_PW_INPUTS]; /* of every input that the program reads: ORTC_PW_ONE ... */
    /* Input 0 is what comes out of the part above; else the node's program. Results that are f32 in registers
     * are stored as such. Steps that nobody needs may stand in it. */
    union {
        ortc_pointwise rest;
        char bytes[offsetof(ortc_pointwise, steps) + ORTC_PW_STEPS * sizeof(ortc_pw_step)];
    } u;
} ortc_tail;

/* Reads the node's epilogue (none: nothing happens). axis: of the channels in the
 * result, -1: there are none; may: ORTC_TAIL_*.
 * 0: not done here, *why says what: an input that is broadcast otherwise, sums that are not f32, a result of
 * another type than the operator's. */
int ortc_tail_read(const ortc_node *, int32_t axis, uint32_t may, ortc_tail *, const char **why);

/* How often what the result needs reads each value; uses[] has ORTC_PW_STEPS zeros before. */
void ortc_tail_count_uses(const ortc_pointwise *, uint16_t *uses);

#endif
