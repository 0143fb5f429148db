/* Moving by strides (strided.h). Dims are merged; then one of these, from the last dim's point of view:
 *   run        the source lies together too: copies
 *   same       the source does not move: one element over and over
 *   transpose  another dim lies together in the source: squares of both, through registers
 *   element    neither: one by one
 * A task is a piece of the last dim, or a tile of the two dims, at one place of the others.
 */
#include "kernels/common/vector/strided.h"
#include "kernels/common/vector/interleave.h"
#include "kernels/common/vector/squares.h"

#include <string.h>

enum { RUN, SAME, TRANSPOSE, ELEMENT };

typedef struct job {
    int how;
    char *to;
    const char *from;
    size_t bytes;
    int64_t n, step, last;   /* the last dim: extent, step in the source, in the target */
    int64_t m, m_step, m_to; /* a second one; for TRANSPOSE that which lies together in the source */
    int64_t piece, pieces;   /* of n */
    int64_t tile, tiles;     /* of m */
    ortc_walk outer;         /* operand 0: target, 1: source */
} job;

/* ---- Squares of 16 / bytes rows and columns ------------------------------------------------------------ */

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define LOW_1 ORTC_LOW_BYTES
#define HIGH_1 ORTC_HIGH_BYTES
#define LOW_2 ORTC_LOW_PAIRS
#define HIGH_2 ORTC_HIGH_PAIRS
#define LOW_4 ORTC_LOW_WORDS
#define HIGH_4 ORTC_HIGH_WORDS
#define LOW_8(a, b) __builtin_shufflevector(a, b, 0, 2)
#define HIGH_8(a, b) __builtin_shufflevector(a, b, 1, 3)

/* Interleaving the upper half of the rows with the lower, log2 of them times, is a transpose. Steps in
 * bytes. */
#define SQUARE(size, type) \
    static void square_##size(const char *from, int64_t from_step, char *to, int64_t to_step) \
    { \
        enum { N = 16 / (size) }; \
        typedef type vec __attribute__((vector_size(16))); \
        vec r[N], s[N]; \
        UNROLL for (int i = 0; i < N; i++) memcpy(&r[i], from + i * from_step, 16); \
        UNROLL for (int h = 1; h < N; h *= 2) \
        { \
            UNROLL for (int i = 0; i < N / 2; i++) \
            { \
                s[2 * i] = LOW_##size(r[i], r[i + N / 2]); \
                s[2 * i + 1] = HIGH_##size(r[i], r[i + N / 2]); \
            } \
            UNROLL for (int i = 0; i < N; i++) r[i] = s[i]; \
        } \
        UNROLL for (int i = 0; i < N; i++) memcpy(to + i * to_step, &r[i], 16); \
    }
SQUARE(1, uint8_t)
SQUARE(2, uint16_t)
SQUARE(4, uint32_t)
SQUARE(8, uint64_t)

/* n elements, steps in bytes. */
#define ELEMENTS(size) \
    static void elements_##size(char *to, int64_t to_step, const char *from, int64_t step, int64_t n) \
    { \
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * step, size); \
    }
ELEMENTS(1)
ELEMENTS(2)
ELEMENTS(4)
ELEMENTS(8)
ELEMENTS(16)

static void elements(char *to, int64_t to_step, const char *from, int64_t step, int64_t n, size_t bytes)
{
    switch (bytes) {
    case 1: elements_1(to, to_step, from, step, n); break;
    case 2: elements_2(to, to_step, from, step, n); break;
    case 4: elements_4(to, to_step, from, step, n); break;
    case 8: elements_8(to, to_step, from, step, n); break;
    default: elements_16(to, to_step, from, step, n);
    }
}

/* Up to 64 bytes, multiples of 16; all of them by one copy, which compilers make a few instructions. */
static inline void copy_line(char *to, const char *from, int64_t bytes)
{
    if (bytes == 64)
        memcpy(to, from, 64);
    else
        memcpy(to, from, (size_t)bytes);
}

/* to[a + b * to_step] = from[a * from_step + b] for a < n, b < m. Steps in elements. */
static void transpose_16(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, int64_t m,
                         size_t bytes)
{
    static void (*const squares[])(const char *, int64_t, char *, int64_t) = {
        [1] = square_1, [2] = square_2, [4] = square_4, [8] = square_8};
    const int64_t size = (int64_t)bytes, side = 16 / size, whole_n = bytes < 16 ? n / side * side : 0,
                  whole_m = m / side * side;
    /* A line of the cache's worth of both at a time, by way of a copy: rows of the source a power of two
     * apart share the few places of the first cache, where they would not stay until all of a line is used.
     * */
    const int64_t line = 64 / size;
    char block[64 * 64];
    for (int64_t first = 0; first < whole_n; first += line) {
        const int64_t last = first + line < whole_n ? first + line : whole_n;
        for (int64_t next = 0; next < whole_m; next += line) {
            const int64_t end = next + line < whole_m ? next + line : whole_m;
            for (int64_t a = first; a < last; a++)
                copy_line(block + (a - first) * 64, from + (a * from_step + next) * size,
                          (end - next) * size);
            for (int64_t b = next; b < end; b += side)
                for (int64_t a = first; a < last; a += side)
                    squares[bytes](block + (a - first) * 64 + (b - next) * size, 64,
                                   to + (a + b * to_step) * size, to_step * size);
        }
    }
    for (int64_t b = 0; b < m; b++) {
        const int64_t a = b < whole_m ? whole_n : 0;
        elements(to + (a + b * to_step) * size, size, from + (a * from_step + b) * size, from_step * size,
                 n - a, bytes);
    }
}

ORTC_VEC_TABLE(ortc_squares)

/* The same by the machine's squares, as far as they go. */
static void transpose(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, int64_t m,
                      size_t bytes)
{
    const int64_t size = (int64_t)bytes;
    const ortc_squares *squares = ortc_squares_select();
    const int64_t side = bytes == 2 || bytes == 4 ? (int64_t)squares->side / size : 0;
    if (m > 1 && m <= ORTC_FEW_ROWS && from_step == m && bytes < 16) {
        squares->split(to, to_step * size, from, n, m, bytes);
        return;
    }
    if (n > 1 && n <= ORTC_FEW_ROWS && to_step == n && bytes < 16) {
        squares->join(to, from, from_step * size, m, n, bytes);
        return;
    }
    const int64_t whole_n = side ? n / side * side : 0, whole_m = side ? m / side * side : 0;
    if (!whole_n || !whole_m) {
        transpose_16(to, to_step, from, from_step, n, m, bytes);
        return;
    }
    squares->turn[bytes](to, to_step * size, from, from_step * size, whole_n, whole_m);
    if (whole_m < m)
        transpose_16(to + whole_m * to_step * size, to_step, from + whole_m * size, from_step, whole_n,
                     m - whole_m, bytes);
    if (whole_n < n)
        transpose_16(to + whole_n * size, to_step, from + whole_n * from_step * size, from_step, n - whole_n,
                     m, bytes);
}

/* n times one element: a block of them over and over, the last one up to the end. */
static void same(char *to, const char *from, int64_t n, size_t bytes)
{
    enum { BLOCK = 16 };
    const size_t all = (size_t)n * bytes;
    char block[BLOCK];
    if (all < BLOCK) {
        elements(to, (int64_t)bytes, from, 0, n, bytes);
        return;
    }
    elements(block, (int64_t)bytes, from, 0, BLOCK / (int64_t)bytes, bytes);
    for (size_t at = 0; at + BLOCK <= all; at += BLOCK) memcpy(to + at, block, BLOCK);
    memcpy(to + all - BLOCK, block, BLOCK);
}

/* One line of the last dim. */
static inline __attribute__((always_inline)) void line(const job *j, char *to, const char *from, int64_t n)
{
    const int64_t size = (int64_t)j->bytes;
    switch (j->how) {
    case RUN: memcpy(to, from, (size_t)(n * size)); break;
    case SAME: same(to, from, n, j->bytes); break;
    default: elements(to, j->last * size, from, j->step * size, n, j->bytes);
    }
}

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const int64_t size = (int64_t)j->bytes, each = j->pieces * j->tiles;
    ortc_walk w = j->outer;
    (void)scratch;
    ortc_walk_seek(&w, begin / each);
    for (int64_t task = begin; task < end; task++) {
        const int64_t a = task % j->pieces * j->piece, b = task / j->pieces % j->tiles * j->tile;
        const int64_t n = j->n - a < j->piece ? j->n - a : j->piece,
                      m = j->m - b < j->tile ? j->m - b : j->tile;
        char *to = j->to + (w.at[0] + a * j->last + b * j->m_to) * size;
        const char *from = j->from + (w.at[1] + a * j->step + b * j->m_step) * size;
        if (j->how == TRANSPOSE)
            transpose(to, j->m_to, from, j->step, n, m, j->bytes);
        else
            for (int64_t k = 0; k < m; k++) line(j, to + k * j->m_to * size, from + k * j->m_step * size, n);
        if ((task + 1) % each == 0) ortc_walk_next(&w);
    }
}

/* Takes dim d out of the walk. */
static void drop(ortc_walk *w, int32_t d)
{
    for (w->rank--; d < w->rank; d++) {
        w->dims[d] = w->dims[d + 1];
        w->step[0][d] = w->step[0][d + 1];
        w->step[1][d] = w->step[1][d + 1];
    }
}

/* A short last dim that lies together on both sides is a larger element. */
static void enlarge(job *j, ortc_walk *w)
{
    const int32_t last = w->rank - 1;
    const int64_t n = w->rank > 1 ? w->dims[last] : 1, bytes = n * (int64_t)j->bytes;
    bool may = n > 1 && w->step[0][last] == 1 && w->step[1][last] == 1 &&
               (bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16);
    for (int32_t d = 0; may && d < last; d++) may = w->step[0][d] % n == 0 && w->step[1][d] % n == 0;
    if (!may) return;
    drop(w, last);
    for (int32_t d = 0; d < last; d++) w->step[0][d] /= n, w->step[1][d] /= n;
    j->bytes = (size_t)bytes;
}

ortc_status ortc_strided_move(ortc_call *c, const ortc_strided *m)
{
    job j = {.to = m->to,
             .from = m->from,
             .bytes = m->bytes,
             .n = 1,
             .step = 1,
             .last = 1,
             .m = 1,
             .tile = 1,
             .tiles = 1};
    int64_t count = 1;
    ortc_walk *w = &j.outer;
    for (int32_t d = 0; d < m->rank; d++)
        if (m->dims[d] == 0) return ORTC_OK;
    ortc_walk_init(w, m->rank, m->dims);
    ortc_walk_strided(w, m->to_step, 0);
    ortc_walk_strided(w, m->from_step, 0);
    ortc_walk_merge(w);
    enlarge(&j, w);
    for (int32_t d = 0; d < w->rank; d++) count *= w->dims[d];
    if (w->rank > 0) {
        const int32_t last = w->rank - 1;
        j.n = w->dims[last];
        j.step = w->step[1][last];
        j.last = w->step[0][last];
        drop(w, last);
    }
    j.how = j.last != 1 ? ELEMENT : j.step == 1 ? RUN : j.step == 0 ? SAME : ELEMENT;
    int32_t second = w->rank - 1;
    for (int32_t d = w->rank - 1; d >= 0 && j.how == ELEMENT && j.last == 1; d--)
        if (w->step[1][d] == 1) {
            j.how = TRANSPOSE;
            second = d;
        }
    if (second >= 0) {
        j.m = w->dims[second];
        j.m_to = w->step[0][second];
        j.m_step = w->step[1][second];
        drop(w, second);
    }
    /* Some 64 KB a task: of the last dim alone, or lines of it; of a transpose squares of 512 bytes, or as
     * much of few rows. */
    const int64_t square = 512 / (int64_t)j.bytes, all = 65536 / (int64_t)j.bytes;
    j.piece = j.how == TRANSPOSE && j.m > ORTC_FEW_ROWS ? square : all;
    j.piece = j.n < j.piece ? j.n : j.piece;
    j.pieces = (j.n + j.piece - 1) / j.piece;
    j.tile = j.how == TRANSPOSE && j.n > ORTC_FEW_ROWS ? square : all / j.piece;
    j.tile = j.m < j.tile ? j.m : j.tile;
    j.tiles = (j.m + j.tile - 1) / j.tile;
    const int64_t tasks = count / j.n / j.m * j.pieces * j.tiles, work = j.piece * j.tile * (int64_t)j.bytes;
    return ortc_parallel(c, tasks, 65536 / work > 0 ? 65536 / work : 1, chunk, &j);
}
