/* kernels/elementwise/cuda_program.h: short programs that work element by element, and the one kernel that
 * interprets them.
 *
 * The machine: every thread has an accumulator of some elements in registers, and temporaries of its own in
 * shared memory. An instruction takes the accumulator and at most one more operand: an input (read with
 * broadcasting, converted to the register's type), a temporary, a constant, or the accumulator itself.
 * Programs come from a node (cuda_elementwise.c) or from a group of nodes (cuda_chain.c); cuda_program.c
 * makes them; interpret.cuh runs them, once for each type of register.
 *
 * Plain C and C++: nvcc reads it too.
 */
#ifndef ORTC_KERNELS_ELEMENTWISE_CUDA_PROGRAM_H
#define ORTC_KERNELS_ELEMENTWISE_CUDA_PROGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ORTC_CU_RANK = 8, ORTC_CU_INPUTS = 12, ORTC_CU_CODE = 64, ORTC_CU_CONSTANTS = 16, ORTC_CU_TEMPS = 4 };

/* Types of registers: f32 for f32, f16 and bf16; integers are exact; f64 also for functions that are rare. */
enum { ORTC_CU_F32, ORTC_CU_F64, ORTC_CU_I64, ORTC_CU_U64 };

/* Operands. */
enum {
    ORTC_CU_NONE = 0xff,
    ORTC_CU_SELF = 0xfe,
    ORTC_CU_CONSTANT = 0x80,
    ORTC_CU_TEMP = 0x40 /* below: inputs */
};

/* From SQRT on for floats, from SIN on for f64 registers alone. RSUB and RDIV have the accumulator on the
 * right. TEST keeps which elements are not zero, BLEND puts the operand where they were. ELU's and IS_INF's
 * operands are constants: ELU has its scale behind its alpha; IS_INF's is 1 for positive ones, 2 for negative
 * ones, 3 for both. */
/* clang-format off */
#define ORTC_CU_OPS(X) \
    X(LOAD) X(SAVE) X(ADD) X(SUB) X(RSUB) X(MUL) X(DIV) X(RDIV) X(MIN) X(MAX) X(EQUAL) X(LESS) X(GREATER) \
    X(LESS_EQUAL) X(GREATER_EQUAL) X(AND) X(OR) X(XOR) X(NOT) X(NEG) X(ABS) X(SIGN) X(RELU) X(TEST) X(BLEND) \
    X(POW) X(PRELU) X(SQRT) X(EXP) X(LOG) X(RECIPROCAL) X(FLOOR) X(CEIL) X(ROUND) X(ERF) X(TANH) X(SIGMOID) \
    X(LEAKY_RELU) X(GELU) X(GELU_TANH) X(HARD_SWISH) X(CLAMP01) X(ELU) X(SOFTPLUS) X(SOFTSIGN) X(MISH) \
    X(SWISH) X(THRESHOLDED_RELU) X(TO_F16) X(TO_BF16) X(IS_NAN) X(IS_INF) X(SIN) X(COS) X(TAN) X(ASIN) \
    X(ACOS) X(ATAN) X(SINH) X(COSH) X(ASINH) X(ACOSH) X(ATANH)
/* clang-format on */
enum {
#define ORTC_CU_OP(name) ORTC_CU_##name,
    ORTC_CU_OPS(ORTC_CU_OP)
#undef ORTC_CU_OP
        ORTC_CU_OP_COUNT
};

typedef struct ortc_cu_instruction {
    uint8_t op, operand; /* SAVE: to the temporary `operand` */
} ortc_cu_instruction;

/* Division of numbers below 2^31 by a constant in 1 .. 2^31 - 1: (umulhi(n, multiplier) + n) >> shift. */
typedef struct ortc_cu_divisor {
    uint32_t divisor, multiplier, shift;
} ortc_cu_divisor;
static inline ortc_cu_divisor ortc_cu_divisor_of(uint32_t d)
{
    ortc_cu_divisor r;
    r.divisor = d;
    r.shift = 0;
    while (r.shift < 31 && (UINT32_C(1) << r.shift) < d) r.shift++;
    r.multiplier = (uint32_t)((((UINT64_C(1) << 32) * ((UINT64_C(1) << r.shift) - d)) / d) + 1);
    return r;
}

typedef struct ortc_cu_input {
    const void *data;
    int64_t step[ORTC_CU_RANK]; /* elements; 0: broadcast. Of the last dim: per item */
    int32_t dtype;
    int32_t flat; /* every element has an item of its own: the item's number is its place */
} ortc_cu_input;

/* What a launch takes. An item is what one thread does at a time: 1 element, or ortc_cu_width neighbours. */
typedef struct ortc_cu_program {
    int64_t items, count;   /* count: elements of the result */
    uint32_t n_code, rank;  /* of the dims of items */
    uint32_t wide, n_temps; /* wide: numbers of items do not fit 31 bits */
    int64_t dims[ORTC_CU_RANK];
    double inverses[ORTC_CU_RANK]; /* of the dims */
    ortc_cu_divisor divisors[ORTC_CU_RANK];
    void *out;
    int32_t out_dtype, vector; /* vector: items of several neighbours */
    ortc_cu_input in[ORTC_CU_INPUTS];
    double constants[ORTC_CU_CONSTANTS];
    ortc_cu_instruction code[ORTC_CU_CODE];
} ortc_cu_program;

/* Neighbours in a vector item. */
static inline int ortc_cu_width(int registers)
{
    return registers == ORTC_CU_F32 ? 8 : registers == ORTC_CU_F64 ? 2 : 4;
}

int ortc_cu_interpret_f32(const ortc_cu_program *, void *queue);
int ortc_cu_interpret_f64(const ortc_cu_program *, void *queue);
int ortc_cu_interpret_i64(const ortc_cu_program *, void *queue);
int ortc_cu_interpret_u64(const ortc_cu_program *, void *queue);

#ifdef __cplusplus
}
#endif
#endif
