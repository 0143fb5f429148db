/* kernels/elementwise/cuda_program.h: short programs that work element by element, and the one kernel that
 * interprets them.
 *
 * The machine: every thread has an accumulator of some elements in registers, and temporaries: the first
 * ones in registers as well, the others in shared memory. An instruction takes the accumulator and at most
 * one more operand: an input (read with broadcasting, converted to the register's type), a temporary, a
 * constant, or the accumulator itself. cuda_lower.c makes the code from pointwise programs (ortc/program.h),
 * cuda_program.c the launches; interpret.cuh runs them, once for each type of register.
 *
 * Plain C and C++: nvcc reads it too.
 */
#ifndef ORTC_KERNELS_ELEMENTWISE_CUDA_PROGRAM_H
#define ORTC_KERNELS_ELEMENTWISE_CUDA_PROGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ORTC_CU_RANK = 8, ORTC_CU_INPUTS = 12, ORTC_CU_CODE = 64, ORTC_CU_CONSTANTS = 16 };
enum { ORTC_CU_TEMPS = 6, ORTC_CU_NEAR = 2 }; /* temporaries, those of them that are registers */

/* Types of registers: f32 for f32, f16 and bf16; i64 also for all shorter integers. */
enum { ORTC_CU_F32, ORTC_CU_F64, ORTC_CU_I64, ORTC_CU_U64 };

/* Operands. */
enum {
    ORTC_CU_NONE = 0xff,
    ORTC_CU_SELF = 0xfe,
    ORTC_CU_CONSTANT = 0x80,
    ORTC_CU_TEMP = 0x40 /* below: inputs */
};

/* RSUB and RDIV have the accumulator on the right. TEST keeps which elements are not zero, BLEND puts the
 * operand where they were. AND .. XOR are of conditions in float registers, of bits in integer ones. NUMBER
 * makes 0 of NaN, BOOL 1 of what is not 0. SHL .. TO_U32 are for integers, from SQRT on for floats, GELU ..
 * HARD_SWISH for f32. */
/* clang-format off */
#define ORTC_CU_OPS(X) \
    X(LOAD) X(SAVE) X(ADD) X(SUB) X(RSUB) X(MUL) X(DIV) X(RDIV) X(MOD) X(REM) X(MIN) X(MAX) X(EQUAL) \
    X(LESS) X(GREATER) X(LESS_EQUAL) X(GREATER_EQUAL) X(AND) X(OR) X(XOR) X(NEG) X(ABS) X(SIGN) X(TEST) \
    X(BLEND) X(BOOL) X(POW) X(PRELU) X(SHL) X(SHR) X(TO_I8) X(TO_U8) X(TO_I16) X(TO_U16) X(TO_I32) \
    X(TO_U32) X(SQRT) X(EXP) X(EXPM1) X(LOG) X(LOG1P) X(RECIPROCAL) X(FLOOR) X(CEIL) X(ROUND) X(ERF) \
    X(TANH) X(SIGMOID) X(TO_F16) X(TO_BF16) X(IS_NAN) X(NUMBER) X(SIN) X(COS) X(TAN) X(ASIN) X(ACOS) \
    X(ATAN) X(SINH) X(COSH) X(ASINH) X(ACOSH) X(ATANH) X(GELU) X(GELU_TANH) X(SWISH) X(HARD_SWISH)
/* clang-format on */
enum {
#define ORTC_CU_OP(name) ORTC_CU_##name,
    ORTC_CU_OPS(ORTC_CU_OP)
#undef ORTC_CU_OP
        ORTC_CU_OP_COUNT
};

typedef union ortc_cu_number { /* a constant: f for float registers */
    double f;
    int64_t i;
} ortc_cu_number;

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
    ortc_cu_number constants[ORTC_CU_CONSTANTS];
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
