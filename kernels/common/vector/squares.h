/* kernels/common/vector/squares.h: rows become columns, for what moves by strides (strided.c). Steps are in
 * bytes, addresses of any alignment. */
#ifndef ORTC_KERNELS_VECTOR_SQUARES_H
#define ORTC_KERNELS_VECTOR_SQUARES_H

#include "kernels/common/uk.h"

enum { ORTC_FEW_ROWS = 4 };

typedef struct ortc_squares {
    size_t side; /* bytes of a square's rows; 0: there are none */
    /* By the size of elements, 2 or 4 bytes, NULL: none. Column b of n rows of m elements becomes row b: n
     * and m are whole squares. */
    void (*turn[5])(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, int64_t m);
    /* Of elements of 1, 2, 4 or 8 bytes: n groups of 2 to ORTC_FEW_ROWS, side by side, become so many rows
     * of n; and backwards. */
    void (*split)(char *to, int64_t to_step, const char *from, int64_t n, int64_t rows, size_t bytes);
    void (*join)(char *to, const char *from, int64_t from_step, int64_t n, int64_t rows, size_t bytes);
} ortc_squares;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_squares)

#endif
