/* The vector layer as plain functions over arrays, one struct for each instruction set: what the tests
 * call. */
#ifndef ORTC_TESTS_VECTORS_FUNCTIONS_H
#define ORTC_TESTS_VECTORS_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#define VEC_UNARY(name, exact, bound, bound_without_fma) VEC_##name,
enum {
#include "unary.inc"
    VEC_UNARY_COUNT
};
#undef VEC_UNARY

typedef struct vec_functions {
    size_t lanes;
    int has_fma;
    void (*unary[VEC_UNARY_COUNT])(size_t n, const float *x, float *y);
    void (*pow)(size_t n, const float *x, const float *y, float *z);
    void (*fma)(size_t n, const float *a, const float *b, const float *c, float *d);
    void (*max)(size_t n, const float *a, const float *b, float *c);
    void (*min)(size_t n, const float *a, const float *b, float *c);
    void (*max_nan)(size_t n, const float *a, const float *b, float *c);
    void (*min_nan)(size_t n, const float *a, const float *b, float *c);
    void (*less)(size_t n, const float *a, const float *b, uint8_t *c);
    void (*choose)(size_t n, const uint8_t *m, const float *a, const float *b, float *c);
    float (*sum)(size_t n, const float *x);
    float (*highest)(size_t n, const float *x);
    void (*gather)(size_t n, const float *base, const int32_t *index, float *y);
    /* y[i] = x[i - i % lanes + index[i]] */
    void (*pick)(size_t n, const int32_t *index, const float *x, float *y);
    void (*masked)(size_t n, const uint8_t *m, const float *x, float *y); /* y[i] = x[i] where m[i] */
    void (*even)(size_t n, const float *x, float *y);
    void (*low4)(size_t n, const int32_t *x, float *y);
    void (*repeat)(size_t n, size_t times, const float *x, float *y); /* y[i] = x[i / times] */
    /* n whole registers' lanes: z [n / lanes][x's lanes, y's lanes] */
    void (*upper_halves)(size_t n, const float *x, const float *y, uint16_t *z);
    void (*max_u16)(size_t n, const int32_t *x, const int32_t *y, int32_t *z); /* of each half */
    void (*min_u16)(size_t n, const int32_t *x, const int32_t *y, int32_t *z);
    void (*load_f16)(size_t n, const uint16_t *x, float *y);
    void (*store_f16)(size_t n, const float *x, uint16_t *y);
    void (*load_bf16)(size_t n, const uint16_t *x, float *y);
    void (*store_bf16)(size_t n, const float *x, uint16_t *y);
    void (*load_f64)(size_t n, const double *x, float *y);
    void (*store_f64)(size_t n, const float *x, double *y);
    void (*i32_of_f32)(size_t n, const float *x, int32_t *y);
    void (*f32_of_i32)(size_t n, const int32_t *x, float *y);
    void (*load_i8)(size_t n, const int8_t *x, int32_t *y);
    void (*load_u8)(size_t n, const uint8_t *x, int32_t *y);
    void (*load_i16)(size_t n, const int16_t *x, int32_t *y);
    void (*load_u16)(size_t n, const uint16_t *x, int32_t *y);
    void (*load_i64)(size_t n, const int64_t *x, int32_t *y);
    void (*store_i8)(size_t n, const int32_t *x, int8_t *y);
    void (*store_u8)(size_t n, const int32_t *x, uint8_t *y);
    void (*store_i16)(size_t n, const int32_t *x, int16_t *y);
    void (*store_u16)(size_t n, const int32_t *x, uint16_t *y);
    void (*store_i64)(size_t n, const int32_t *x, int64_t *y);
} vec_functions;

#endif
