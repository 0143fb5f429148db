/* kernels/elementwise/program.h: pointwise programs (ortc/program.h) on the cpu: the machine that runs them.
 *
 * SSA becomes lines for a machine with one accumulator (program_lower.c): a block of eight vector registers,
 * handed from line to line (program_vec.c). A line works on the accumulator and up to two operands in
 * memory: rows of inputs, or blocks that stay in L1: constants, saved values, what is broadcast along a row.
 * Whoever has rows makes steps of the lines by putting addresses in (cpu_program.c, program_tile.c).
 *
 * Registers have 32 bits (f32, i32 and u32 with the narrower integers, bool as 0 and 1), or all have 64 (i64,
 * u64, f64, bool). Lines of i32 and i64 work on the unsigned types, too, where the bits are the same; what is
 * not, and what f64 has no line for, goes one by one.
 */
#ifndef ORTC_KERNELS_ELEMENTWISE_PROGRAM_H
#define ORTC_KERNELS_ELEMENTWISE_PROGRAM_H

#include "kernels/common/uk.h"
#include "ortc/program.h"

/* Lines. a: the accumulator; p, q: operands as registers; LOAD and STORE name memory's type. store_bf16_amx
 * is by the instruction that every AMX comes with: denormals become 0. */
/* clang-format off */
#define ORTC_PW_LINES(X) \
    X(load) X(load_f16) X(load_bf16) X(load_i8) X(load_u8) X(load_i16) X(load_u16) X(load_bool) \
    X(load_bool_64) \
    X(store) X(store_f16) X(store_bf16) X(store_bf16_amx) X(store_8) X(store_16) X(store_8_64) \
    X(save) /* and goes on */ \
    X(add_f) X(sub_f) X(rsub_f) X(mul_f) X(div_f) X(rdiv_f) X(min_f) X(max_f) X(fma_f) \
    X(eq_f) X(lt_f) X(gt_f) X(le_f) X(ge_f) \
    X(eq_store) X(lt_store) X(gt_store) X(le_store) X(ge_store) /* of f32, to bytes at q */ \
    X(neg_f) X(abs_f) X(sign_f) X(sqrt_f) X(reciprocal_f) X(floor_f) X(ceil_f) X(round_f) X(is_nan_f) \
    X(to_f16) X(to_bf16) X(i32_of_f) X(f_of_i32) X(bool_of_f) X(bool_of_i32) X(bool_of_i64) \
    X(hard_swish_f) \
    X(quantise_i8) X(quantise_u8) /* QuantizeLinear by a scale at p and a zero point at q, numbers */ \
    X(exp_f) X(expm1_f) X(log_f) X(log1p_f) X(tanh_f) X(erf_f) X(sigmoid_f) X(sin_f) X(cos_f) \
    X(asin_f) X(acos_f) X(atan_f) X(pow_f) X(gelu_f) \
    X(sigmoid_bf16) X(gelu_bf16) X(gelu_tanh_bf16) /* as exact as values of bf16 are */ \
    X(each_f) X(each2_f) /* one by one, in double */ \
    X(add_i) X(sub_i) X(rsub_i) X(mul_i) X(min_i) X(max_i) X(eq_i) X(lt_i) X(gt_i) X(le_i) X(ge_i) \
    X(and_i) X(or_i) X(xor_i) X(neg_i) X(abs_i) X(sign_i) X(select_i) X(each2_i) \
    X(wrap_i8) X(wrap_u8) X(wrap_i16) X(wrap_u16) \
    X(add_l) X(sub_l) X(rsub_l) X(mul_l) X(min_l) X(max_l) X(eq_l) X(lt_l) X(gt_l) X(le_l) X(ge_l) \
    X(neg_l) X(abs_l) X(sign_l) X(select_l) X(each2_l) \
    X(each_d) X(each2_d) X(small)
/* What the one line `small` does, by number: what is rare is a loop in it rather than a line of its own. */
#define ORTC_PW_SMALL(X) \
    X(shl_i) X(shr_i) X(shr_u) X(add_d) X(sub_d) X(mul_d) X(div_d) X(min_d) X(max_d) X(eq_d) X(lt_d) X(le_d)
/* clang-format on */
enum {
#define ORTC_PW_LINE(name) ORTC_PWL_##name,
    ORTC_PW_LINES(ORTC_PW_LINE)
#undef ORTC_PW_LINE
        ORTC_PWL_COUNT
};
enum {
    ORTC_PWS_NONE = 200, /* above the lines */
#define ORTC_PW_LINE(name) ORTC_PWS_##name,
    ORTC_PW_SMALL(ORTC_PW_LINE)
#undef ORTC_PW_LINE
};

enum { ORTC_PW_REGISTERS = 8, ORTC_PW_BLOCK_BYTES = 8 * 64 }; /* of a block, on the widest machine */

typedef double (*ortc_pw_f1)(double);
typedef double (*ortc_pw_f2)(double, double);
typedef int64_t (*ortc_pw_i2)(int64_t, int64_t);

/* A line with addresses. */
typedef struct ortc_pw_op {
    void (*fn)(void); /* of the body; NULL: the end */
    char *p, *q;      /* of element 0 */
    size_t p_step;    /* bytes from one element to the next; 0: a block that stays */
    size_t q_step;
    union {
        ortc_pw_f1 f1;
        ortc_pw_f2 f2;
        ortc_pw_i2 i2;
        intptr_t small; /* ORTC_PWS_* */
    } each;
} ortc_pw_op;

typedef struct ortc_pw_body {
    size_t bytes; /* of a block: 8 vectors */
    void (*fn[ORTC_PWL_COUNT])(void);
    /* Elements 0 .. count, whole blocks of `block` elements. */
    void (*run)(const ortc_pw_op *ops, size_t count, size_t block);
    /* y[i] = table[x[i]]; y may be x. */
    void (*look_up)(size_t n, const uint8_t table[256], const uint8_t *x, uint8_t *y);
    /* y[i] = table[2 * (a[i] != 0) + (b[i] != 0)]; y may be a or b. */
    void (*look_up_flags)(size_t n, const uint8_t table[4], const uint8_t *a, const uint8_t *b, uint8_t *y);
} ortc_pw_body;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_pw_body)

/* ---- Lowered programs ---------------------------------------------------------------------------------- */

enum { ORTC_PW_LINES_MAX = 192, ORTC_PW_TEMPS = 16, ORTC_PW_CONSTANTS = 48 };
enum { /* an operand: an input's number, or one of these, + an index */
       ORTC_PWO_TEMP = 64,
       ORTC_PWO_CONSTANT = 128,
       ORTC_PWO_OUT = 253,
       ORTC_PWO_SPILL = 254, /* the block that a line may write as it likes */
       ORTC_PWO_NONE = 255
};

typedef struct ortc_pw_line {
    uint8_t op, p, q, each; /* each: for ortc_pw_each */
} ortc_pw_line;

typedef struct ortc_pw_code {
    uint32_t n, n_temps, n_constants, n_in;
    uint32_t element; /* bytes of an element in a register: 4 or 8 */
    uint32_t heavy;   /* lines that cost like an exp */
    ortc_dtype out;
    ortc_dtype in[ORTC_PW_INPUTS];  /* 0: not read */
    uint8_t behind[ORTC_PW_INPUTS]; /* dims of 1 that an input has behind its own */
    int64_t constants[ORTC_PW_CONSTANTS];
    ortc_pw_line lines[ORTC_PW_LINES_MAX];
} ortc_pw_code;

/* 0: not done on this machine's registers, *why says what. */
int ortc_pw_lower(const ortc_pointwise *, ortc_pw_code *, const char **why);

/* ---- Over a tile in memory (program_tile.c) ------------------------------------------------------------ */

/* Where a program's input lies under a tile: the address of the element of its (0, 0), and elements from one
 * row and from one column to the next. A vector along the columns: 0, 1; along the rows: 1, 0; one element:
 * 0, 0; a matrix: its stride, 1. Of any of the types that a program reads. */
typedef struct ortc_pw_place {
    const void *data;
    size_t row, col;
} ortc_pw_place;

enum { ORTC_PW_TILE_IN = 6 }; /* inputs besides the tile, at most */

/* Programs whose input 0 is f32 or i32: over rows of `cols` of them, `ld` apart, input k being at in[k] (of
 * n_in of them; NULL: the program reads no other). The results, of the program's type, go to rows `out_ld`
 * apart; `out` may be the tile, where they have its size and rows. What an element becomes does not depend
 * on its place in a tile. Any thread; some 40 KiB of stack. */
int ortc_pw_tile_can(const ortc_pw_code *);
void ortc_pw_tile(const ortc_pw_code *, const ortc_pw_place *in, const void *tile, size_t ld, void *out,
                  size_t out_ld, size_t rows, size_t cols);

/* A program with no other input, whose input 0 is 8 bits of the type `in` and whose result is 8 bits, as a
 * table of all of them. `code`: of the program with i32 for `in`. */
void ortc_pw_tabulate(const ortc_pw_code *code, ortc_dtype in, uint8_t table[256]);
void ortc_pw_look_up(size_t n, const uint8_t table[256], const uint8_t *x, uint8_t *y); /* y may be x */

/* What a line's `each` stands for: a function, or one of ORTC_PWS_*. */
void ortc_pw_each(uint8_t each, ortc_pw_op *);

#endif
