/* kernels/signal/cpu.c: DFT and STFT on the cpu provider, in f32: passes over several lines at once
 * (lines.h).
 *
 * A real line of even length is half as many complex numbers, as it lies; so is what onesided frequencies
 * become. Lengths with a prime factor beyond 13 are convolutions with a chirp (Bluestein). Which lines go
 * together follows from shapes alone, and none of them sees another.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/counts.h"
#include "kernels/common/element.h"
#include "kernels/common/vector/convert.h"
#include "kernels/common/vector/squares.h"
#include "kernels/signal/dft.h"
#include "kernels/signal/fft.h"
#include "kernels/signal/lines.h"

ORTC_VEC_TABLE(ortc_fft_lines)
ORTC_VEC_TABLE(ortc_squares)

#define NEAR 32768 /* complex numbers of all lines that go together: with their copies they stay in L2 */
enum { MOST_PASSES = 32, LANES = 16 };

/* ---- Transforms ---------------------------------------------------------------------------------------- */

/* What depends on the length; one block of memory. */
typedef struct transform {
    int64_t n;    /* numbers of a line */
    int64_t h;    /* complex ones that are transformed: n, or half of them, */
    int64_t size; /* by passes over so many */
    int halves;   /* h is n / 2 */
    int n_passes;
    int64_t radix[MOST_PASSES];
    const float *w[MOST_PASSES];
    const float *half;   /* e^(-pi i k / h) / 2, k up to h; where h is n / 2 */
    const float *chirp;  /* e^(-pi i k^2 / h); NULL: size is h */
    const float *filter; /* the transform of the conjugate chirp, over `size`, and divided by it */
} transform;

static const int64_t radices[ORTC_FFT_RADICES] = {13, 11, 8, 7, 5, 4, 3, 2};

/* The factors of n, largest first; how many, 0: it has others. */
static int factors_of(int64_t n, int64_t *factor)
{
    int count = 0;
    for (int i = 0; i < ORTC_FFT_RADICES; i++)
        for (; n % radices[i] == 0; n /= radices[i]) factor[count++] = radices[i];
    return n == 1 ? count : 0;
}

/* The least of 1, 3 and 5 times powers of two that is no less than n. */
static int64_t size_for(int64_t n)
{
    int64_t best = 0;
    for (int64_t odd = 1; odd <= 5; odd += 2) {
        int64_t m = odd;
        while (m < n) m *= 2;
        best = !best || m < best ? m : best;
    }
    return best;
}

static int64_t size_of(int64_t h)
{
    int64_t factor[MOST_PASSES];
    return h == 1 || factors_of(h, factor) ? h : size_for(2 * h - 1);
}

static void put_root(float *to, int64_t k, int64_t n, double scale)
{
    double r[2];
    ortc_fft_root(k % n, n, r);
    to[0] = (float)(r[0] * scale), to[1] = (float)(r[1] * scale);
}

static int fill_chirp(transform *t, float *chirp, float *filter)
{
    ortc_fft *fft = ortc_fft_create(t->size);
    double *wide = calloc(2 * (size_t)t->size, sizeof *wide), r[2];
    void *scratch = malloc(ortc_fft_scratch_for(t->size));
    for (int64_t k = 0, square = 0; wide && k < t->h; square = (square + 2 * k + 1) % (2 * t->h), k++) {
        ortc_fft_root(square, 2 * t->h, r); /* square: k^2 modulo 2 h */
        chirp[2 * k] = (float)r[0], chirp[2 * k + 1] = (float)r[1];
        for (int64_t at = k, i = 0; i < 2; i++, at = (t->size - k) % t->size)
            wide[2 * at] = r[0], wide[2 * at + 1] = -r[1];
    }
    const int good = fft && wide && scratch;
    if (good) ortc_fft_run(fft, wide, scratch, 0);
    for (int64_t i = 0; good && i < 2 * t->size; i++) filter[i] = (float)(wide[i] / (double)t->size);
    t->chirp = chirp, t->filter = filter;
    free(scratch), free(wide), free(fft);
    return good;
}

/* NULL: no memory. Owner: free(). */
static transform *transform_create(int64_t n, int halves)
{
    const int64_t h = halves ? n / 2 : n, size = size_of(h);
    int64_t floats = 0, factor[MOST_PASSES];
    const int count = factors_of(size, factor);
    for (int64_t i = 0, left = size; i < count; i++) left /= factor[i], floats += 2 * left * (factor[i] - 1);
    if (halves) floats += 2 * (h + 1);
    if (size > h) floats += 2 * (h + size);
    transform *t = malloc(sizeof *t + (size_t)floats * sizeof(float));
    if (!t) return NULL;
    float *to = (float *)(t + 1);
    *t = (transform){.n = n, .h = h, .size = size, .halves = halves, .n_passes = count};
    int64_t left = size;
    for (int i = 0; i < count; i++) {
        const int64_t r = factor[i], all = left;
        left /= r;
        t->radix[i] = r, t->w[i] = to;
        for (int64_t p = 0; p < left; p++)
            for (int64_t q = 1; q < r; q++, to += 2) put_root(to, p * q, all, 1);
    }
    if (halves) {
        t->half = to;
        for (int64_t k = 0; k <= h; k++, to += 2) put_root(to, k, 2 * h, 0.5);
    }
    if (size > h && !fill_chirp(t, to, to + 2 * h)) {
        free(t);
        return NULL;
    }
    return t;
}

/* ---- Lines together ------------------------------------------------------------------------------------ */

/* How lines lie in a worker's two buffers: an element's real parts beside its imaginary ones, where lines are
 * as many as a register has lanes; else all real parts, then all imaginary ones. */
typedef struct lanes {
    int64_t n;    /* lines */
    int64_t room; /* elements of a buffer */
    int64_t step, im;
    int together;
} lanes;

static lanes lanes_of(int64_t room, int64_t lines)
{
    lanes l = {.n = min64(lines, max64(1, min64(LANES, NEAR / room))), .room = room};
    l.together = l.n == LANES;
    l.step = l.together ? 2 * l.n : l.n, l.im = l.together ? l.n : l.room * l.n;
    return l;
}

typedef struct job {
    const ortc_fft_lines *body;
    const ortc_squares *squares;
    const ortc_convert *convert;
    const transform *t;
    lanes l;
    ortc_dft_lines lines;
    int64_t n, groups; /* numbers of a line; groups of lines of an outer index */
    int inverse, completes, type;
    const char *x;
    char *y;
    const float *window;
} job;

/* Floats of a worker: two buffers, and a type of 16 bits as f32. */
static int64_t buffer_floats(const lanes *l) { return 2 * l->room * l->n; }
static int64_t staged_floats(const job *j)
{
    const ortc_dft_side *x = &j->lines.x, *y = &j->lines.y;
    const int64_t in = min64(x->count, j->n) * x->parts, out = y->count * y->parts;
    return j->type == ORTC_FLOAT_F32 ? 0 : max64(in, out) * j->l.n;
}

/* Row r of a buffer: of pairs real and imaginary parts by turns, else real parts. */
static float *row_at(const lanes *l, float *buffer, int64_t r, int pairs)
{
    return pairs ? buffer + r / 2 * l->step + (r & 1) * l->im : buffer + r * l->step;
}

/* Columns of n lines of floats, `apart` from each other, to rows of a buffer, or back. */
static void turn_in(const job *j, const float *from, int64_t apart, int64_t n, int64_t columns, int pairs,
                    float *buffer)
{
    const lanes *l = &j->l;
    int64_t done = 0;
    if (l->together && n == l->n && j->squares->side && j->squares->side / 4 <= (size_t)l->n) {
        const int64_t side = (int64_t)j->squares->side / 4;
        done = columns / side * side;
        j->squares->turn[4]((char *)buffer, (pairs ? l->n : 2 * l->n) * 4, (const char *)from, apart * 4, n,
                            done);
    } else if (pairs && l->n == 1) {
        done = columns / 2 * 2;
        j->body->split((size_t)(columns / 2), from, buffer, buffer + l->im);
    }
    for (int64_t r = done; r < columns; r++) {
        float *row = row_at(l, buffer, r, pairs);
        for (int64_t k = 0; k < n; k++) row[k] = from[k * apart + r];
    }
}
static void turn_out(const job *j, float *buffer, int64_t apart, int64_t n, int64_t columns, int pairs,
                     float *to)
{
    const lanes *l = &j->l;
    int64_t done = 0;
    if (l->together && n == l->n && j->squares->side && j->squares->side / 4 <= (size_t)l->n) {
        const int64_t side = (int64_t)j->squares->side / 4;
        done = columns / side * side;
        j->squares->turn[4]((char *)to, apart * 4, (const char *)buffer, (pairs ? l->n : 2 * l->n) * 4, done,
                            n);
    } else if (pairs && l->n == 1) {
        done = columns / 2 * 2;
        j->body->join((size_t)(columns / 2), buffer, buffer + l->im, to);
    }
    for (int64_t r = done; r < columns; r++) {
        const float *row = row_at(l, buffer, r, pairs);
        for (int64_t k = 0; k < n; k++) to[k * apart + r] = row[k];
    }
}

static int64_t size_of_type(const job *j) { return j->type == ORTC_FLOAT_F32 ? 4 : 2; }

/* `count` numbers of n lines, from element `at` on. pairs: they are complex, or two make one. */
static void load(const job *j, int64_t at, int64_t n, int64_t count, int pairs, float *buffer, float *staged)
{
    const ortc_dft_side *x = &j->lines.x;
    const int64_t size = size_of_type(j), columns = count * x->parts;
    const char *from = j->x + at * size;
    if (x->step == x->parts) { /* a line's numbers lie beside each other */
        const float *lines = (const float *)(const void *)from;
        int64_t apart = x->line;
        if (staged) {
            for (int64_t k = 0; k < n; k++)
                j->convert->widen[j->type]((size_t)columns, from + k * x->line * size, staged + k * columns);
            lines = staged, apart = columns;
        }
        turn_in(j, lines, apart, n, columns, pairs, buffer);
        return;
    }
    for (int64_t i = 0; i < count; i++, from += x->step * size) { /* those of neighbouring lines do */
        const float *row = (const float *)(const void *)from;
        if (staged) j->convert->widen[j->type]((size_t)(n * x->parts), from, staged), row = staged;
        float *to = row_at(&j->l, buffer, i, pairs && x->parts == 1);
        if (x->parts == 2)
            j->body->split((size_t)n, row, to, to + j->l.im);
        else
            memcpy(to, row, (size_t)n * sizeof *to);
    }
}

static void store(const job *j, int64_t at, int64_t n, int pairs, float *buffer, float *staged)
{
    const ortc_dft_side *y = &j->lines.y;
    const int64_t size = size_of_type(j), columns = y->count * y->parts;
    char *to = j->y + at * size;
    if (y->step == y->parts) {
        float *lines = staged ? staged : (float *)(void *)to;
        turn_out(j, buffer, staged ? columns : y->line, n, columns, pairs, lines);
        for (int64_t k = 0; staged && k < n; k++)
            j->convert->narrow[j->type]((size_t)columns, staged + k * columns, to + k * y->line * size);
        return;
    }
    for (int64_t i = 0; i < y->count; i++, to += y->step * size) {
        float *row = staged ? staged : (float *)(void *)to;
        const float *from = row_at(&j->l, buffer, i, pairs && y->parts == 1);
        if (y->parts == 2)
            j->body->join((size_t)n, from, from + j->l.im, row);
        else
            memcpy(row, from, (size_t)n * sizeof *row);
        if (staged) j->convert->narrow[j->type]((size_t)(n * y->parts), staged, to);
    }
}

/* Elements first .. end-1 become 0. */
static void clear(const lanes *l, float *buffer, int64_t first, int64_t end)
{
    const size_t bytes = end > first ? (size_t)((end - first) * l->step) * sizeof(float) : 0;
    memset(buffer + first * l->step, 0, bytes);
    if (!l->together) memset(buffer + l->im + first * l->step, 0, bytes);
}

/* All passes over x, by turns with `other`: where the result is. Inverse: parts have changed places. */
static float *run_passes(const job *j, float *x, float *other, int inverse)
{
    const transform *t = j->t;
    const lanes *l = &j->l;
    const int64_t part = inverse ? l->im : 0;
    int64_t left = t->size, s = 1;
    for (int i = 0; i < t->n_passes; i++, s *= t->radix[i - 1]) {
        left /= t->radix[i];
        const ortc_fft_pass pass = {.radix = (size_t)t->radix[i],
                                    .m = (size_t)left,
                                    .block = (size_t)(s * l->step),
                                    .repeat = (size_t)(l->together ? s : 1),
                                    .step = (size_t)l->step,
                                    .count = (size_t)(l->together ? l->n : s * l->n),
                                    .im = inverse ? -l->im : l->im,
                                    .w = t->w[i]};
        j->body->pass(&pass, x + part, other + part);
        float *const was = x;
        x = other, other = was;
    }
    return x;
}

/* The transform of h numbers in x, by turns with `other`: where it is. */
static float *run_transform(const job *j, float *x, float *other, int inverse)
{
    const transform *t = j->t;
    const lanes *l = &j->l;
    const int64_t part = inverse ? l->im : 0;
    const ortc_fft_rows rows = {(size_t)l->step, (size_t)l->n, inverse ? -l->im : l->im};
    if (!t->chirp) return run_passes(j, x, other, inverse);
    j->body->multiply(&rows, (size_t)t->h, x + part, t->chirp, x + part);
    clear(l, x, t->h, t->size);
    float *y = run_passes(j, x, other, inverse), *free_one = y == x ? other : x;
    j->body->multiply(&rows, (size_t)t->size, y + part, t->filter, y + part);
    y = run_passes(j, y, free_one, !inverse);
    j->body->multiply(&rows, (size_t)t->h, y + part, t->chirp, y + part);
    return y;
}

/* Elements from h + 1 on of n: those of the other half, conjugate. */
static void mirror(const lanes *l, float *x, int64_t n)
{
    for (int64_t i = n / 2 + 1; i < n; i++) {
        const float *from = x + (n - i) * l->step;
        float *to = x + i * l->step;
        for (int64_t k = 0; k < l->n; k++) to[k] = from[k], to[l->im + k] = -from[l->im + k];
    }
}

static void scale_rows(const job *j, float *x, int64_t n, float re, float im)
{
    for (int64_t i = 0; i < n; i++, x += j->l.step) {
        j->body->scale((size_t)j->l.n, x, re);
        j->body->scale((size_t)j->l.n, x + j->l.im, im);
    }
}

/* n lines of a group. */
static void run_group(const job *j, int64_t at_x, int64_t at_y, int64_t n, float *a, float *b, float *staged)
{
    const transform *t = j->t;
    const lanes *l = &j->l;
    const ortc_dft_side *x = &j->lines.x;
    const ortc_fft_rows rows = {(size_t)l->step, (size_t)l->n, l->im};
    const int halves = t->halves, real = x->parts == 1;
    const int64_t needed = j->completes ? t->n / 2 + 1 : t->n, count = x->count < needed ? x->count : needed;
    const float by = j->inverse ? 1 / (float)t->n : 1;
    const int pairs = x->parts == 2 || (halves && !j->completes);
    if (n < l->n || count < needed || !pairs) clear(l, a, 0, l->room);
    load(j, at_x, n, count, pairs, a, staged);
    for (int64_t r = 0; j->window && r < count; r++) {
        j->body->scale((size_t)l->n, row_at(l, a, r, pairs && real), j->window[r]);
        if (!real) j->body->scale((size_t)l->n, a + r * l->step + l->im, j->window[r]);
    }
    if (j->completes && halves) {
        j->body->halves(&rows, (size_t)t->h, a, t->half, b);
        float *y = run_transform(j, b, a, 1);
        scale_rows(j, y, t->h, 2 * by, 2 * by);
        store(j, at_y, n, 1, y, staged);
        return;
    }
    if (j->completes) {
        memset(a + l->im, 0, (size_t)l->n * sizeof *a);
        mirror(l, a, t->n);
    }
    float *y = run_transform(j, a, b, j->inverse && !halves);
    if (halves) {
        float *to = y == a ? b : a;
        j->body->whole(&rows, (size_t)t->h, y, t->half, to);
        y = to;
        if (j->lines.y.count > t->h + 1) mirror(l, y, t->n);
    }
    /* the inverse of real numbers is the conjugate transform */
    if (j->inverse) scale_rows(j, y, j->lines.y.count, by, halves ? -by : by);
    store(j, at_y, n, j->lines.y.parts == 2, y, staged);
}

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const int64_t floats = buffer_floats(&j->l);
    float *a = scratch, *b = a + floats, *staged = staged_floats(j) ? b + floats : NULL;
    for (int64_t i = begin; i < end; i++) {
        const int64_t outer = i / j->groups, first = i % j->groups * j->l.n, left = j->lines.lines - first;
        run_group(j, outer * j->lines.x.outer + first * j->lines.x.line,
                  outer * j->lines.y.outer + first * j->lines.y.line, left < j->l.n ? left : j->l.n, a, b,
                  staged);
    }
}

/* ---- Kernels ------------------------------------------------------------------------------------------- */

/* Whether n numbers are half as many complex ones: real, or what becomes so. */
static int halves_of(const job *j, int64_t n)
{
    return n % 2 == 0 && (j->completes || j->lines.x.parts == 1);
}

static void describe(const ortc_dft_state *s, ortc_dtype type, const ortc_dft_lines *lines, int64_t n, job *j)
{
    memset(j, 0, sizeof *j);
    j->n = n;
    j->lines = *lines;
    j->type = ortc_float_index(type);
    j->inverse = s->inverse, j->completes = s->inverse && s->onesided;
    const int64_t h = halves_of(j, n) ? n / 2 : n, out = lines->y.parts == 2 ? lines->y.count : 0;
    j->l = lanes_of(max64(size_of(h), max64(h + 1, out)), lines->lines);
    j->groups = ceil_div(lines->lines, j->l.n);
}

static size_t scratch_of(const job *j)
{
    return (size_t)(2 * buffer_floats(&j->l) + staged_floats(j)) * sizeof(float);
}

/* Of a length that the plan does not know: what any up to n takes at most. */
static size_t most_scratch(int64_t n)
{
    n = n < 1 ? 1 : n > ORTC_FFT_LIMIT ? ORTC_FFT_LIMIT : n;
    return (size_t)(6 * NEAR + 18 * n + 64) * sizeof(float);
}

static ortc_status plan_known(const ortc_dft_state *s, ortc_plan *p, const ortc_dft_lines *lines, int64_t n,
                              const ortc_view *window, void **pstate)
{
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    job j;
    if (n > ORTC_FFT_LIMIT || ortc_view_count(y) == 0) return ORTC_OK; /* the run says so */
    describe(s, x->dtype, lines, n, &j);
    ortc_plan_workspace(p, window ? (size_t)n * sizeof(float) : 0, scratch_of(&j));
    *pstate = transform_create(n, halves_of(&j, n));
    if (!*pstate) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for the roots of unity");
    const double all = (double)lines->outers * (double)lines->lines * (double)n;
    ortc_plan_cost(p, 5 * all * log2((double)n + 1),
                   (double)(ortc_view_count(x) + ortc_view_count(y)) * ortc_dtype_bits(x->dtype) / 8);
    return ORTC_OK;
}

static ortc_status transform_lines(const ortc_dft_state *s, const transform *known, ortc_call *c,
                                   const ortc_dft_lines *lines, int64_t n, const ortc_view *window)
{
    job j;
    if (n > ORTC_FFT_LIMIT)
        return ortc_call_fail(c, ORTC_LIMIT, "%lld elements are transformed, at most %lld can be",
                              (long long)n, (long long)ORTC_FFT_LIMIT);
    describe(s, c->in[0].dtype, lines, n, &j);
    transform *made = known ? NULL : transform_create(n, halves_of(&j, n));
    if (!known && !made) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for the roots of unity");
    j.t = known ? known : made;
    j.body = ortc_fft_lines_select(), j.squares = ortc_squares_select(), j.convert = ortc_convert_get();
    j.x = c->in[0].data, j.y = c->out[0].data;
    if (window) {
        j.convert->widen[j.type]((size_t)n, window->data, c->workspace);
        j.window = c->workspace;
    }
    const double clocks = (double)(n * j.l.n) * (4 + log2((double)n));
    const ortc_status status = ortc_parallel(c, lines->outers * j.groups, 1 + (int64_t)(1e5 / clocks), chunk,
                                             &j);
    free(made);
    return status;
}

static ortc_status dft_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    int32_t axis = 0;
    int64_t n = 1;
    *pstate = NULL;
    if (ortc_dft_length(state, p->in, p->n_in, y, &axis, &n) && ortc_view_count(y) > 0) {
        const ortc_dft_lines lines = ortc_dft_lines_of(x, y, axis);
        return plan_known(state, p, &lines, n, NULL, pstate);
    }
    for (int32_t d = 0; d < y->rank - 1; d++) /* half of it may be left out in the result */
        n = y->dims[d] > ORTC_FFT_LIMIT || 2 * y->dims[d] > n ? 2 * y->dims[d] : n;
    for (int32_t d = 0; d < x->rank - 1; d++) n = x->dims[d] > n ? x->dims[d] : n;
    ortc_plan_workspace(p, 0, most_scratch(n));
    return ORTC_OK;
}

static ortc_status dft_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    int32_t axis = 0;
    int64_t n;
    if (ortc_view_count(y) == 0) return ORTC_OK;
    if (!ortc_dft_length(state, c->in, c->n_in, y, &axis, &n))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the axis is outside of the input's rank");
    const ortc_dft_lines lines = ortc_dft_lines_of(x, y, axis);
    return transform_lines(state, pstate, c, &lines, n, NULL);
}

static const ortc_view *window_of(const ortc_view *in, uint32_t n_in)
{
    return n_in > 2 && in[2].dtype ? &in[2] : NULL;
}

/* A frame's length decides a shape; its step alone may come with the run. */
static ortc_status stft_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    *pstate = NULL;
    if (ortc_view_count(y) == 0) return ORTC_OK; /* other extents may be any */
    if (p->n_in > 3 && p->in[3].dtype && !p->in[3].data) {
        const int64_t n = 2 * min64(y->dims[2], ORTC_FFT_LIMIT);
        ortc_plan_workspace(p, (size_t)n * sizeof(float), most_scratch(n));
        return ORTC_OK;
    }
    const int64_t n = ortc_stft_length(p->in, p->n_in);
    const ortc_dft_lines lines = ortc_stft_lines_of(x, y, 1, n);
    return plan_known(state, p, &lines, n, window_of(p->in, p->n_in), pstate);
}

static ortc_status stft_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    if (ortc_view_count(y) == 0) return ORTC_OK;
    const int64_t n = ortc_stft_length(c->in, c->n_in);
    const ortc_dft_lines lines = ortc_stft_lines_of(x, y, ortc_load_i64(c->in[1].data, c->in[1].dtype, 0), n);
    return transform_lines(state, pstate, c, &lines, n, window_of(c->in, c->n_in));
}

static const ortc_kernel dft_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "dft.cpu",
                                    .prepare = ortc_dft_prepare,
                                    .plan = dft_plan,
                                    .run = dft_run};
static const ortc_kernel stft_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "stft.cpu",
                                     .prepare = ortc_dft_prepare,
                                     .plan = stft_plan,
                                     .run = stft_run};

#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
ORTC_KERNELS(cpu, signal, ORTC_KERNEL("DFT", 20, ORTC_NEWEST, (ORTC_TYPES_BY_F32, INDEX), &dft_cpu),
             ORTC_KERNEL("STFT", 17, ORTC_NEWEST, (ORTC_TYPES_BY_F32, INDEX), &stft_cpu));
