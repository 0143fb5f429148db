/* The body of ortc_squares: squares of as many rows as registers have lanes. Where those are four, the
 * squares that strided.c has itself are as good. And of few rows. */
#include "squares.h"

#include "kernels/common/vector/vec.h"

/* Few rows: loops that compilers make shuffles of, where their number is one. */
#define FEW(size, type) \
    typedef type any_##size __attribute__((aligned(1), may_alias)); \
    VFN void split_rows_##size(any_##size *restrict to, int64_t step, const any_##size *restrict from, \
                               int64_t n, const int rows) \
    { \
        any_##size *a = to, *b = to + step, *c = to + 2 * step, *d = to + 3 * step; \
        for (int64_t i = 0; i < n; i++) { \
            a[i] = from[rows * i], b[i] = from[rows * i + 1]; \
            if (rows > 2) c[i] = from[rows * i + 2]; \
            if (rows > 3) d[i] = from[rows * i + 3]; \
        } \
    } \
    VFN void join_rows_##size(any_##size *restrict to, const any_##size *restrict from, int64_t step, \
                              int64_t n, const int rows) \
    { \
        const any_##size *a = from, *b = from + step, *c = from + 2 * step, *d = from + 3 * step; \
        for (int64_t i = 0; i < n; i++) { \
            to[rows * i] = a[i], to[rows * i + 1] = b[i]; \
            if (rows > 2) to[rows * i + 2] = c[i]; \
            if (rows > 3) to[rows * i + 3] = d[i]; \
        } \
    } \
    static void split_##size(void *to, int64_t step, const void *from, int64_t n, int64_t rows) \
    { \
        if (rows == 2) \
            split_rows_##size(to, step, from, n, 2); \
        else if (rows == 3) \
            split_rows_##size(to, step, from, n, 3); \
        else \
            split_rows_##size(to, step, from, n, 4); \
    } \
    static void join_##size(void *to, const void *from, int64_t step, int64_t n, int64_t rows) \
    { \
        if (rows == 2) \
            join_rows_##size(to, from, step, n, 2); \
        else if (rows == 3) \
            join_rows_##size(to, from, step, n, 3); \
        else \
            join_rows_##size(to, from, step, n, 4); \
    }
FEW(1, uint8_t)
FEW(2, uint16_t)
FEW(4, uint32_t)
FEW(8, uint64_t)

static void split(char *to, int64_t to_step, const char *from, int64_t n, int64_t rows, size_t bytes)
{
    switch (bytes) {
    case 1: split_1(to, to_step, from, n, rows); break;
    case 2: split_2(to, to_step / 2, from, n, rows); break;
    case 4: split_4(to, to_step / 4, from, n, rows); break;
    default: split_8(to, to_step / 8, from, n, rows);
    }
}
static void join(char *to, const char *from, int64_t from_step, int64_t n, int64_t rows, size_t bytes)
{
    switch (bytes) {
    case 1: join_1(to, from, from_step, n, rows); break;
    case 2: join_2(to, from, from_step / 2, n, rows); break;
    case 4: join_4(to, from, from_step / 4, n, rows); break;
    default: join_8(to, from, from_step / 8, n, rows);
    }
}

#if V_LANES > 4
enum {
    SIDE = V_LANES,
    LINE = 64,
    PARTS = LINE / (4 * SIDE)
}; /* squares that lines of the target consist of */

VFN vf32 load(const char *from)
{
    vf32 v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* The target's lines are asked for before they are written: whole ones, so far apart, cost a wait each. */
VFN void ask_for(char *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" ::"m"(*line));
#else
    __builtin_prefetch(line, 1);
#endif
}

VFN void store(vf32 r[V_LANES], char *to, int64_t to_step)
{
    v_turn(r);
    V_UNROLL for (int i = 0; i < SIDE; i++) memcpy(to + i * to_step, &r[i], sizeof r[i]);
}

VFN void square_4(const char *from, int64_t from_step, char *to, int64_t to_step)
{
    vf32 r[V_LANES];
    V_UNROLL for (int i = 0; i < SIDE; i++) r[i] = load(from + i * from_step);
    store(r, to, to_step);
}

/* Pairs of two rows' elements, of the even columns and of the odd ones, are squares of 32 bits. */
VFN void square_2(const char *from, int64_t from_step, char *to, int64_t to_step)
{
    vf32 low[V_LANES], high[V_LANES];
    V_UNROLL for (int i = 0; i < SIDE; i++)
    {
        const vu32 even = (vu32)load(from + 2 * i * from_step),
                   odd = (vu32)load(from + (2 * i + 1) * from_step);
        low[i] = (vf32)((even & 0xffffu) | odd << 16);
        high[i] = (vf32)(even >> 16 | (odd & 0xffff0000u));
    }
    store(low, to, 2 * to_step);
    store(high, to + to_step, 2 * to_step);
}

VFN void turn(const int size, char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
              int64_t m)
{
    const int64_t side = SIDE * 4 / size, line = side * PARTS;
    for (int64_t first = 0; first < n; first += line)
        for (int64_t b = 0; b < m; b += side) {
            for (int64_t i = b + side; i < b + 2 * side && i < m; i++)
                ask_for(to + i * to_step + first * size);
            for (int64_t a = first; a < first + line && a < n; a += side) {
                const char *s = from + a * from_step + b * size;
                char *d = to + b * to_step + a * size;
                (size == 4 ? square_4 : square_2)(s, from_step, d, to_step);
            }
        }
}

static void turn_4(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, int64_t m)
{
    turn(4, to, to_step, from, from_step, n, m);
}
static void turn_2(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, int64_t m)
{
    turn(2, to, to_step, from, from_step, n, m);
}

const ortc_squares V_NAME(ortc_squares) = {4 * SIDE, {[2] = turn_2, [4] = turn_4}, split, join};
#else
const ortc_squares V_NAME(ortc_squares) = {0, {NULL}, split, join};
#endif
