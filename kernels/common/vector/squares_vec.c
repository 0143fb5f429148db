/* The body of ortc_squares: squares of as many rows as registers have lanes. Where those are four, the
 * squares that strided.c has itself are as good. */
#include "squares.h"

#include "kernels/common/vector/vec.h"

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

const ortc_squares V_NAME(ortc_squares) = {4 * SIDE, {[2] = turn_2, [4] = turn_4}};
#else
const ortc_squares V_NAME(ortc_squares) = {0};
#endif
