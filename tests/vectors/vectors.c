/* Tests of the vector layer (kernels/common/vector) on every instruction set of this machine.
 *
 *   vectors test          special values and a sample of all inputs: errors against f64 within the stated
 *                         bounds, the same
 *                         bits on every instruction set with FMA, conversions against their definition, and
 *                         no element
 *                         touched beyond a count. Ends with "N passed, N failed, N skipped".
 *   vectors hash          a line for each function: its name and a hash of its results, on the first
 *                         instruction set with
 *                         FMA, so that machines can be compared
 *   vectors sweep NAME    all 2^32 inputs of a unary function on every instruction set: largest errors
 *
 * A program of its own without other parts of ortc than the layer, so that it is compiled for other
 * processors, too (neon.sh).
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"
#include "kernels/common/floats.h"
#include "kernels/common/uk.h"

ORTC_EACH_ISA(ORTC_VEC_DECLARE, vec_functions)
static const ortc_uk_vec sets[] = {ORTC_EACH_ISA(ORTC_VEC_LINE, vec_functions)};
#define N_SETS (sizeof sets / sizeof *sets)
static const vec_functions *set_at(size_t i)
{
    return sets[i].isa & ~ortc_cpu_features() ? NULL : sets[i].body;
}

#define VEC_UNARY(name, exact, bound, bound_without_fma) \
    static double exact_##name(double x) { return exact; }
#include "unary.inc"
#undef VEC_UNARY
static const struct {
    const char *name;
    double (*exact)(double);
    double bound, bound_without_fma;
} unary[] = {
#define VEC_UNARY(name, exact, bound, bound_without_fma) {#name, exact_##name, bound, bound_without_fma},
#include "unary.inc"
#undef VEC_UNARY
};

static int passed, failed, skipped;
static void result(const char *what, const char *isa, size_t bad)
{
    bad ? failed++ : passed++;
    if (bad) printf("FAILED %s, %s: %zu wrong\n", what, isa, bad);
}

static uint32_t bits_of(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}
static float float_of(uint32_t b)
{
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}
static int same(float a, float b)
{
    return bits_of(a) == bits_of(b) || (a != a && b != b);
} /* a NaN is a NaN */

/* |y - t| in units of t's last place as an f32; infinite where only one of them is a NaN, an infinity or of
 * its sign. */
static double error_of(float y, double t)
{
    if (t != t || y != y) return t != t && y != y ? 0 : INFINITY;
    const double a = fabs(t);
    if (a >= 0x1p128 - 0x1p103) /* rounds to infinity, or is just so small that a neighbour may */
        return isinf(y) && (y > 0) == (t > 0) ? 0 : a < 0x1p128 + 0x1p105 ? fabs(y - t) / 0x1p104 : INFINITY;
    if (isinf(y)) return a > 0x1p128 - 0x1p105 && (y > 0) == (t > 0) ? (0x1p128 - a) / 0x1p104 : INFINITY;
    if (t == 0 && y == 0) return !signbit(t) == !signbit(y) ? 0 : INFINITY;
    const int e = a < 0x1p-126 ? -126 : ilogb(a);
    return fabs(y - t) / ldexp(1, e - 23);
}

/* ---- Inputs -------------------------------------------------------------------------------------------- */

static uint64_t state = 1;
static uint64_t next(void) /* splitmix64 */
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#define N (1 << 18)
static float in_a[N], in_b[N], in_c[N], out_a[N], out_b[N];
static size_t n_special;

static void make_inputs(void)
{
    static const float special[] = {0,
                                    -0.0f,
                                    1,
                                    -1,
                                    0.5f,
                                    -0.5f,
                                    1.5f,
                                    2.5f,
                                    -2.5f,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    -NAN,
                                    0x1p-149f,
                                    -0x1p-149f,
                                    0x1p-126f,
                                    -0x1p-126f,
                                    0x1.fffffcp-127f,
                                    0x1.fffffep127f,
                                    -0x1.fffffep127f,
                                    0x1p23f,
                                    0x1.000002p23f,
                                    -0x1p23f,
                                    0x1p22f,
                                    0x1.fffffep21f,
                                    0x1p24f,
                                    0x1p31f,
                                    -0x1p31f,
                                    0x1.fffffep30f,
                                    -0x1.000002p31f,
                                    88.72283f,
                                    88.72284f,
                                    -87.33655f,
                                    -103.97208f,
                                    -103.9721f,
                                    -104,
                                    104,
                                    0.55f,
                                    0.9f,
                                    4,
                                    1.5707964f,
                                    3.1415927f,
                                    0.70710677f,
                                    1.4142135f,
                                    3,
                                    -3,
                                    1e30f};
    n_special = sizeof special / sizeof *special;
    memcpy(in_a, special, sizeof special);
    for (size_t i = n_special; i < N; i++)
        in_a[i] = float_of(
            (uint32_t)((i - n_special) * 16411)); /* a prime step through all patterns, then around again */
    size_t at = 0;
    for (size_t i = 0; i < N; i++) {
        const float near = (float)((double)(next() >> 40) / (1 << 24) * 40 - 20);
        in_b[i] = i < N / 2 ? near : float_of((uint32_t)next());
        in_c[i] = i % 3 ? near * 3 : float_of((uint32_t)next());
    }
    for (size_t i = 0; i < n_special; i++) /* every pair of special values stands at the end of b and c */
        for (size_t k = 0; k < n_special; k++, at++)
            in_b[N - 1 - at] = special[i], in_c[N - 1 - at] = special[k];
}

/* ---- Tests --------------------------------------------------------------------------------------------- */

static void test_unary(void)
{
    for (size_t f = 0; f < VEC_UNARY_COUNT; f++) {
        const vec_functions *first = NULL;
        for (size_t s = 0; s < N_SETS; s++) {
            const vec_functions *v = set_at(s);
            if (!v) {
                skipped++;
                continue;
            }
            size_t bad = 0, other = 0;
            float *y = first ? out_b : out_a;
            v->unary[f](N, in_a, y);
            const double bound = v->has_fma ? unary[f].bound : unary[f].bound_without_fma;
            for (size_t i = 0; i < N; i++) bad += !(error_of(y[i], unary[f].exact(in_a[i])) <= bound);
            result(unary[f].name, sets[s].name, bad);
            if (first && v->has_fma) {
                for (size_t i = 0; i < N; i++) other += !same(out_a[i], out_b[i]);
                result(unary[f].name, "other bits than the first instruction set", other);
            }
            if (v->has_fma && !first) first = v;
        }
    }
}

static double worst_pow(const float *x, const float *y, const float *z, size_t *bad)
{
    double worst = 0;
    for (size_t i = 0; i < N; i++) {
        const double t = pow(x[i], y[i]), e = error_of(z[i], t);
        worst = e > worst ? e : worst;
        *bad += !(e <= 0.51);
    }
    return worst;
}
static void positive(float *x)
{
    for (size_t i = 0; i < N / 4; i++) x[i] = fabsf(x[i]);
}
static void test_pow(void)
{
    const vec_functions *first = NULL;
    for (size_t s = 0; s < N_SETS; s++) {
        const vec_functions *v = set_at(s);
        size_t bad = 0;
        if (!v) continue;
        float *z = first ? out_b : out_a;
        v->pow(N, in_b, in_c, z);
        worst_pow(in_b, in_c, z, &bad);
        result("pow", sets[s].name, bad);
        bad = 0;
        for (size_t i = 0; first && v->has_fma && i < N; i++) bad += !same(out_a[i], out_b[i]);
        result("pow, the same bits", sets[s].name, bad);
        if (v->has_fma && !first) first = v;
    }
}

static void test_binary(const vec_functions *v, const char *isa)
{
    size_t bad = 0;
    static uint8_t m[N];
    v->max(N, in_b, in_c, out_a), v->min(N, in_b, in_c, out_b);
    for (size_t i = 0; i < N; i++)
        bad += !same(out_a[i], in_b[i] > in_c[i] ? in_b[i] : in_c[i]) +
               !same(out_b[i], in_b[i] < in_c[i] ? in_b[i] : in_c[i]);
    result("max, min", isa, bad), bad = 0;
    v->max_nan(N, in_b, in_c, out_a), v->min_nan(N, in_b, in_c, out_b);
    for (size_t i = 0; i < N; i++) {
        const int nan = in_b[i] != in_b[i] || in_c[i] != in_c[i];
        bad += nan ? out_a[i] == out_a[i] || out_b[i] == out_b[i]
                   : out_a[i] != fmaxf(in_b[i], in_c[i]) || out_b[i] != fminf(in_b[i], in_c[i]);
    }
    result("max_nan, min_nan", isa, bad), bad = 0;
    v->less(N, in_b, in_c, m);
    for (size_t i = 0; i < N; i++) bad += m[i] != (in_b[i] < in_c[i]);
    result("less", isa, bad), bad = 0;
    for (size_t i = 0; i < N; i++) m[i] = (uint8_t)(next() & 3) * 0x55;
    v->choose(N, m, in_b, in_c, out_a);
    for (size_t i = 0; i < N; i++) bad += !same(out_a[i], m[i] ? in_b[i] : in_c[i]);
    result("choose", isa, bad), bad = 0;
    memcpy(out_a, in_c, sizeof out_a);
    v->masked(N - 3, m, in_b, out_a);
    for (size_t i = 0; i < N; i++) bad += !same(out_a[i], i < N - 3 && m[i] ? in_b[i] : in_c[i]);
    result("masked loads and stores", isa, bad), bad = 0;
    v->fma(N, in_a, in_b, in_c, out_a);
    for (size_t i = 0; v->has_fma && i < N; i++) bad += !same(out_a[i], fmaf(in_a[i], in_b[i], in_c[i]));
    result("fma", isa, bad);
}

/* The sum as reduce.h defines it, element by element. */
static float sum_by_definition(size_t n, const float *x)
{
    float lane[64] = {0};
    for (size_t i = 0; i < n; i++) lane[i % 64] += x[i];
    for (size_t h = 32; h > 0; h /= 2)
        for (size_t k = 0; k < h; k++) lane[k] += lane[k + h];
    return lane[0];
}
static void test_reduce(const vec_functions *v, const char *isa)
{
    size_t bad = 0;
    static float x[1024];
    for (size_t n = 0; n <= 1000; n++) {
        for (size_t i = 0; i < n; i++) x[i] = (float)((double)(next() >> 40) / (1 << 24) - 0.7);
        bad += !same(v->sum(n, x), sum_by_definition(n, x));
        float top = -INFINITY;
        for (size_t i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
        bad += !same(v->highest(n, x), top);
        if (n) {
            x[next() % n] = NAN;
            bad += !(v->highest(n, x) != v->highest(n, x));
        }
    }
    result("reductions", isa, bad);
}

static void test_floats(const vec_functions *v, const char *isa)
{
    static uint16_t h[N];
    static double d[N];
    const ortc_float_format *formats[] = {ortc_float_format_of(ORTC_F16), ortc_float_format_of(ORTC_BF16)};
    size_t bad = 0;
    for (size_t i = 0; i < 65536; i++) h[i] = (uint16_t)i;
    v->load_f16(65536, h, out_a), v->load_bf16(65536, h, out_b);
    for (size_t i = 0; i < 65536; i++)
        bad += !same(out_a[i], (float)ortc_float_decode(formats[0], (uint32_t)i)) +
               !same(out_b[i], (float)ortc_float_decode(formats[1], (uint32_t)i));
    result("loads of f16 and bf16", isa, bad), bad = 0;
    for (int k = 0; k < 2; k++) {
        for (int halves = 0; halves < 2; halves++) {
            /* a sample of everything; then every number, every middle between two, and their neighbours */
            for (size_t i = 0; halves && i < N; i++)
                out_b[i] = float_of(
                    bits_of((float)ortc_float_decode(formats[k], (uint32_t)(i >> 3 & 0xffff))) +
                    ((i & 1) << (k ? 15 : 12)) + (uint32_t)(i >> 1 & 3) - 1);
            const float *x = halves ? out_b : in_a;
            (k ? v->store_bf16 : v->store_f16)(N, x, h);
            for (size_t i = 0; i < N; i++)
                bad += x[i] != x[i] ? !isnan(ortc_float_decode(formats[k], h[i]))
                                    : h[i] != ortc_float_encode(formats[k], x[i], false);
        }
        result(k ? "stores of bf16" : "stores of f16", isa, bad), bad = 0;
    }
    for (size_t i = 0; i < N; i++) d[i] = in_a[i] * (1 + 0x1p-26 * (double)(next() & 3));
    v->load_f64(N, d, out_a);
    for (size_t i = 0; i < N; i++) bad += !same(out_a[i], (float)d[i]);
    v->store_f64(N, in_a, d);
    for (size_t i = 0; i < N; i++) bad += !(d[i] == in_a[i] || (d[i] != d[i] && in_a[i] != in_a[i]));
    result("f64", isa, bad);
}

/* Two halves of 16 bits in each lane. */
static void test_halves(const vec_functions *v, const char *isa)
{
    enum { COUNT = 4096 };
    static uint16_t upper[2 * COUNT], halves[2][2 * COUNT], most[2 * COUNT], least[2 * COUNT];
    static int32_t words[4][COUNT];
    size_t bad = 0;
    v->upper_halves(COUNT, in_a, in_b, upper);
    for (size_t i = 0; i < COUNT; i++) {
        const size_t at = i / v->lanes * 2 * v->lanes + i % v->lanes;
        bad += upper[at] != bits_of(in_a[i]) >> 16 || upper[at + v->lanes] != bits_of(in_b[i]) >> 16;
    }
    result("upper halves", isa, bad), bad = 0;
    for (size_t i = 0; i < 2 * COUNT; i++) {
        halves[0][i] = (uint16_t)next();
        halves[1][i] = i % 8 ? (uint16_t)next() : (uint16_t)(halves[0][i] + i / 8 % 3 - 1);
    }
    memcpy(words[0], halves[0], sizeof words[0]), memcpy(words[1], halves[1], sizeof words[1]);
    v->max_u16(COUNT, words[0], words[1], words[2]), v->min_u16(COUNT, words[0], words[1], words[3]);
    memcpy(most, words[2], sizeof most), memcpy(least, words[3], sizeof least);
    for (size_t i = 0; i < 2 * COUNT; i++) {
        const uint16_t a = halves[0][i], b = halves[1][i];
        bad += most[i] != (a > b ? a : b) || least[i] != (a < b ? a : b);
    }
    result("larger and smaller halves", isa, bad);
}

#define EXTENDS(type) \
    { \
        static type narrow[4096]; \
        for (size_t i = 0; i < 4096; i++) narrow[i] = (type)next(); \
        v->LOAD(4096, narrow, wide); \
        for (size_t i = 0; i < 4096; i++) bad += wide[i] != (int32_t)(uint32_t)(uint64_t)narrow[i]; \
        for (size_t i = 0; i < 4096; i++) wide[i] = (int32_t)next(); \
        v->STORE(4096, wide, narrow); \
        for (size_t i = 0; i < 4096; i++) bad += narrow[i] != (type)wide[i]; \
    }
static void test_integers(const vec_functions *v, const char *isa)
{
    static int32_t wide[N];
    size_t bad = 0;
#define LOAD load_i8
#define STORE store_i8
    EXTENDS(int8_t)
#undef LOAD
#undef STORE
#define LOAD load_u8
#define STORE store_u8
    EXTENDS(uint8_t)
#undef LOAD
#undef STORE
#define LOAD load_i16
#define STORE store_i16
    EXTENDS(int16_t)
#undef LOAD
#undef STORE
#define LOAD load_u16
#define STORE store_u16
    EXTENDS(uint16_t)
#undef LOAD
#undef STORE
#define LOAD load_i64
#define STORE store_i64
    EXTENDS(int64_t)
    result("narrow and wide integers", isa, bad), bad = 0;
    v->i32_of_f32(N, in_a, wide);
    for (size_t i = 0; i < N; i++) {
        const double x = in_a[i];
        bad += wide[i] != (x != x ? 0 : x >= 0x1p31 ? INT32_MAX : x < -0x1p31 ? INT32_MIN : (int32_t)x);
    }
    for (size_t i = 0; i < N; i++) wide[i] = (int32_t)next();
    v->f32_of_i32(N, wide, out_a);
    for (size_t i = 0; i < N; i++) bad += out_a[i] != (float)wide[i];
    v->low4(N, wide, out_a);
    for (size_t i = 0; i < N; i++) bad += out_a[i] != (float)((wide[i] & 15) - 8);
    result("i32 and f32", isa, bad), bad = 0;
    for (size_t i = 0; i < N; i++) wide[i] = (int32_t)(next() % N);
    v->gather(N, in_a, wide, out_a);
    for (size_t i = 0; i < N; i++) bad += !same(out_a[i], in_a[wide[i]]);
    result("gather", isa, bad), bad = 0;
    for (size_t i = 0; i < N; i++) wide[i] = (int32_t)(next() % v->lanes);
    v->pick(N / v->lanes * v->lanes, wide, in_a, out_a);
    for (size_t i = 0; i < N / v->lanes * v->lanes; i++)
        bad += !same(out_a[i], in_a[i - i % v->lanes + (size_t)wide[i]]);
    result("pick", isa, bad);
}

/* For every count up to some registers: elements of each width behind it stay as they are, and those before
 * are right. */
#define TAIL(call, type, expected) \
    do { \
        type *to = (type *)(void *)bytes; \
        memset(bytes, 0xa5, sizeof bytes); \
        call; \
        for (size_t i = 0; i < n; i++) bad += to[i] != (type)(expected); \
        for (size_t i = n * sizeof(type); i < sizeof bytes; i++) bad += bytes[i] != 0xa5; \
    } while (0)
static void test_tails(const vec_functions *v, const char *isa)
{
    static _Alignas(64) unsigned char bytes[1024];
    static const int32_t ints[64] = {5, 4, 3, 2, 1, 6, 7, 8, 9, 1, 2, 3};
    static const float floats[64] = {5, 4, 3, 2, 1, 6, 7, 8, 9, 1, 2, 3};
    size_t bad = 0;
    for (size_t n = 0; n <= 40; n++) {
        for (size_t i = 0; i < 128; i++) out_b[N - 1 - i] = (float)i;
        TAIL(v->even(n, out_b + N - (n ? 2 * n - 1 : 0), to), float, 2 * (n - 1 - i));
        TAIL(v->low4(n, ints, to), float, (ints[i] & 15) - 8);
        /* what is repeated ends where its memory does */
        for (size_t times = 1; times <= 64; times *= 2)
            TAIL(v->repeat(n, times, out_b + N - (n + times - 1) / times, to), float,
                 (n + times - 1) / times - 1 - i / times);
        TAIL(v->store_i8(n, ints, (int8_t *)to), int8_t, ints[i]);
        TAIL(v->store_u16(n, ints, (uint16_t *)to), uint16_t, ints[i]);
        TAIL(v->f32_of_i32(n, ints, to), float, ints[i]);
        TAIL(v->i32_of_f32(n, floats, to), int32_t, ints[i]);
        TAIL(v->store_f64(n, floats, to), double, floats[i]);
        TAIL(v->store_i64(n, ints, to), int64_t, ints[i]);
        TAIL(v->store_f16(n, floats, to), uint16_t,
             ortc_float_encode(ortc_float_format_of(ORTC_F16), floats[i], false));
        TAIL(v->store_bf16(n, floats, to), uint16_t,
             ortc_float_encode(ortc_float_format_of(ORTC_BF16), floats[i], false));
    }
    result("tails", isa, bad);
}

static int test(void)
{
    test_unary();
    test_pow();
    for (size_t s = 0; s < N_SETS; s++) {
        const vec_functions *v = set_at(s);
        if (!v) {
            printf("%s: this machine, or ORTC_CPU, has not its instructions\n", sets[s].name);
            skipped++;
            continue;
        }
        test_binary(v, sets[s].name);
        test_reduce(v, sets[s].name);
        test_floats(v, sets[s].name);
        test_halves(v, sets[s].name);
        test_integers(v, sets[s].name);
        test_tails(v, sets[s].name);
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}

/* ---- Between machines ---------------------------------------------------------------------------------- */

static void hash_line(const char *name, const float *y, size_t n)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a over words */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (y[i] != y[i] ? 0x7fc00000u : bits_of(y[i]))) * UINT64_C(1099511628211);
    printf("%s %016" PRIx64 "\n", name, h);
}

static int hash(void)
{
    for (size_t s = 0; s < N_SETS; s++) {
        const vec_functions *v = set_at(s);
        if (!v || !v->has_fma) continue;
        for (size_t f = 0; f < VEC_UNARY_COUNT; f++) {
            v->unary[f](N, in_a, out_a);
            hash_line(unary[f].name, out_a, N);
        }
        v->pow(N, in_b, in_c, out_a);
        hash_line("pow", out_a, N);
        for (size_t n = 0; n < 4096; n++) out_a[n] = v->sum(n, in_b);
        hash_line("sum", out_a, 4096);
        return 0;
    }
    printf("no instruction set with FMA\n");
    return 1;
}

/* ---- All inputs ---------------------------------------------------------------------------------------- */

static int sweep(const char *name)
{
    enum { BLOCK = 4096 };
    for (size_t f = 0; f < VEC_UNARY_COUNT; f++) {
        double worst[N_SETS] = {0}, t[BLOCK];
        float at[N_SETS] = {0}, x[BLOCK], y[BLOCK], first[BLOCK];
        uint64_t other = 0;
        if (strcmp(name, unary[f].name)) continue;
        for (uint64_t b = 0; b < UINT64_C(1) << 32; b += BLOCK) {
            const vec_functions *leader = NULL;
            for (uint32_t i = 0; i < BLOCK; i++) t[i] = unary[f].exact(x[i] = float_of((uint32_t)b + i));
            for (size_t s = 0; s < N_SETS; s++) {
                const vec_functions *v = set_at(s);
                if (!v) continue;
                v->unary[f](BLOCK, x, y);
                for (size_t i = 0; i < BLOCK; i++) {
                    const double e = error_of(y[i], t[i]);
                    if (e > worst[s]) worst[s] = e, at[s] = x[i];
                }
                for (size_t i = 0; leader && v->has_fma && i < BLOCK; i++) other += !same(first[i], y[i]);
                if (!leader && v->has_fma) leader = v, memcpy(first, y, sizeof y);
            }
        }
        for (size_t s = 0; s < N_SETS; s++)
            if (set_at(s))
                printf("%-8s %-24s largest error %.4f ulp, at %a\n", name, sets[s].name, worst[s], at[s]);
        printf("%-8s %" PRIu64 " inputs with other bits on another instruction set with FMA\n", name, other);
        return 0;
    }
    if (!strcmp(name, "pow")) { /* 2^28 pairs */
        double worst[N_SETS] = {0};
        for (int round = 0; round < 1024; round++) {
            for (size_t i = 0; i < N; i++) {
                in_b[i] = float_of((uint32_t)next());
                in_c[i] = round & 1 ? float_of((uint32_t)next())
                                    : (float)((double)(next() >> 40) / (1 << 24) * 40 - 20);
                if (round & 2) in_b[i] = (float)((double)(next() >> 40) / (1 << 24) * 4);
            }
            positive(in_b);
            for (size_t s = 0; s < N_SETS; s++) {
                size_t bad = 0;
                if (!set_at(s)) continue;
                set_at(s)->pow(N, in_b, in_c, out_a);
                const double e = worst_pow(in_b, in_c, out_a, &bad);
                worst[s] = e > worst[s] ? e : worst[s];
            }
        }
        for (size_t s = 0; s < N_SETS; s++)
            printf("%-8s %-24s largest error %.4f ulp over 2^28 pairs\n", name, sets[s].name, worst[s]);
        return 0;
    }
    fprintf(stderr, "there is no function %s\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    make_inputs();
    if (argc == 2 && !strcmp(argv[1], "test")) return test();
    if (argc == 2 && !strcmp(argv[1], "hash")) return hash();
    if (argc == 3 && !strcmp(argv[1], "sweep")) return sweep(argv[2]);
    fprintf(stderr, "usage: vectors test | hash | sweep FUNCTION\n");
    return 2;
}
