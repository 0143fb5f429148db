/* base/transpose.c: a matrix of bytes turned, squares of 16 at a time. */
#include <string.h>

#include "base/base.h"

enum { SIDE = 16, BAND = 64 };
typedef uint8_t line __attribute__((vector_size(16)));
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

/* Each step joins lines half of the rest apart: after four a line is a column. */
static void square(const uint8_t *x, int64_t x_step, uint8_t *y, int64_t y_step)
{
    line a[SIDE], b[SIDE];
    for (int i = 0; i < SIDE; i++) memcpy(&a[i], x + i * x_step, SIDE);
#define STEP(from, to) \
    for (int i = 0; i < SIDE / 2; i++) { \
        to[2 * i] = LOW(from[i], from[i + SIDE / 2]); \
        to[2 * i + 1] = HIGH(from[i], from[i + SIDE / 2]); \
    }
    STEP(a, b)
    STEP(b, a)
    STEP(a, b)
    STEP(b, a)
#undef STEP
    for (int i = 0; i < SIDE; i++) memcpy(y + i * y_step, &a[i], SIDE);
}

void ortc_transpose_bytes(int64_t rows, int64_t cols, const void *x, int64_t x_step, void *y, int64_t y_step)
{
    const uint8_t *from = x;
    uint8_t *to = y;
    /* bands of rows that fill lines of `to`, and in them columns: a line of `from` is read by four squares in
     * a row, and one of `to` is written by four */
    for (int64_t band = 0; band < rows; band += BAND)
        for (int64_t j = 0; j < cols; j += SIDE)
            for (int64_t i = band; i < rows && i < band + BAND; i += SIDE) {
                if (rows - i >= SIDE && cols - j >= SIDE) {
                    square(from + i * x_step + j, x_step, to + j * y_step + i, y_step);
                    continue;
                }
                for (int64_t r = i; r < rows && r < i + SIDE; r++)
                    for (int64_t c = j; c < cols && c < j + SIDE; c++)
                        to[c * y_step + r] = from[r * x_step + c];
            }
}
