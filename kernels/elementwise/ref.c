/* kernels/elementwise/ref.c: the table of the family's kernels on ref. */
#include "kernels/elementwise/elementwise.h"

#define K(op, since, kernel, ...) ORTC_KERNEL(op, since, ORTC_NEWEST, (__VA_ARGS__), kernel)
#define BOOL ORTC_TYPE(ORTC_BOOL)
#define STRING ORTC_TYPE(ORTC_STRING)
#define SIGNED (ORTC_TYPES_FLOAT | ORTC_TYPES_INT)
#define PLAIN (ORTC_TYPES_NUM | BOOL)
/* Strings and complex numbers are not converted here. */
#define CASTS (ORTC_TYPES_ALL & ~(STRING | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128)))
#define F8 \
    (ORTC_TYPE(ORTC_F8E4M3FN) | ORTC_TYPE(ORTC_F8E4M3FNUZ) | ORTC_TYPE(ORTC_F8E5M2) | \
     ORTC_TYPE(ORTC_F8E5M2FNUZ))
#define F6 (ORTC_TYPE(ORTC_F6E2M3) | ORTC_TYPE(ORTC_F6E3M2))

ORTC_KERNELS(
    ref, elementwise, K("Add", 14, &ortc_ref_binary, ORTC_TYPES_NUM),
    K("Sub", 14, &ortc_ref_binary, ORTC_TYPES_NUM), K("Mul", 14, &ortc_ref_binary, ORTC_TYPES_NUM),
    K("Div", 14, &ortc_ref_binary, ORTC_TYPES_NUM),
    K("Pow", 15, &ortc_ref_pow, ORTC_TYPES_FLOAT | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64), ORTC_TYPES_NUM),
    K("And", 7, &ortc_ref_binary, BOOL), K("Or", 7, &ortc_ref_binary, BOOL),
    K("Xor", 7, &ortc_ref_binary, BOOL), K("Equal", 19, &ortc_ref_binary, PLAIN | STRING, BOOL),
    K("Greater", 13, &ortc_ref_binary, ORTC_TYPES_NUM, BOOL),
    K("Less", 13, &ortc_ref_binary, ORTC_TYPES_NUM, BOOL),
    K("GreaterOrEqual", 16, &ortc_ref_binary, ORTC_TYPES_NUM, BOOL),
    K("LessOrEqual", 16, &ortc_ref_binary, ORTC_TYPES_NUM, BOOL),
    K("Min", 13, &ortc_ref_variadic, ORTC_TYPES_NUM), K("Max", 13, &ortc_ref_variadic, ORTC_TYPES_NUM),
    K("Sum", 13, &ortc_ref_variadic, ORTC_TYPES_FLOAT), K("Mean", 13, &ortc_ref_variadic, ORTC_TYPES_FLOAT),
    K("Mod", 28, &ortc_ref_mod, ORTC_TYPES_NUM), K("IsNaN", 20, &ortc_ref_is, ORTC_TYPES_FLOAT | F8, BOOL),
    K("IsInf", 20, &ortc_ref_is, ORTC_TYPES_FLOAT | F8, BOOL),
    K("CastLike", 25, &ortc_ref_cast, CASTS & ~F6, CASTS & ~F6),
    K("CastLike", 25, &ortc_ref_cast_string, STRING, (CASTS & ~F6) | STRING),
    K("CastLike", 25, &ortc_ref_cast_string, CASTS & ~F6, STRING), K("Neg", 13, &ortc_ref_unary, SIGNED),
    K("Abs", 13, &ortc_ref_unary, ORTC_TYPES_NUM), K("Sign", 13, &ortc_ref_unary, ORTC_TYPES_NUM),
    K("Sqrt", 13, &ortc_ref_unary, ORTC_TYPES_FLOAT), K("Exp", 13, &ortc_ref_unary, ORTC_TYPES_FLOAT),
    K("Log", 13, &ortc_ref_unary, ORTC_TYPES_FLOAT), K("Reciprocal", 13, &ortc_ref_unary, ORTC_TYPES_FLOAT),
    K("Floor", 13, &ortc_ref_unary, ORTC_TYPES_FLOAT), K("Ceil", 13, &ortc_ref_unary, ORTC_TYPES_FLOAT),
    K("Round", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT), K("Sin", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT),
    K("Cos", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT), K("Tan", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT),
    K("Asin", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT), K("Acos", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT),
    K("Atan", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT), K("Sinh", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT),
    K("Cosh", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT), K("Asinh", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT),
    K("Acosh", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT), K("Atanh", 22, &ortc_ref_unary, ORTC_TYPES_FLOAT),
    K("Not", 1, &ortc_ref_unary, BOOL),
    K("Where", 16, &ortc_ref_where, BOOL, PLAIN | STRING | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128)),
    K("Cast", 28, &ortc_ref_cast, CASTS, CASTS), K("Cast", 28, &ortc_ref_cast_string, STRING, CASTS | STRING),
    K("Cast", 28, &ortc_ref_cast_string, CASTS, STRING));
