/* The activations that run on a tile after its store, and the choice between them and the micro-kernels' own.
 * They are pointwise programs (kernels/elementwise/program.h), lowered once in a process. */
#include "epilogue.h"

#include <math.h>
#include <pthread.h>

#include "kernels/elementwise/program.h"

static int32_t of_sigmoid(ortc_pw_builder *b, int32_t x) { return ortc_pw_1(b, ORTC_PW_SIGMOID, x); }
static int32_t of_tanh(ortc_pw_builder *b, int32_t x) { return ortc_pw_1(b, ORTC_PW_TANH, x); }
static int32_t of_silu(ortc_pw_builder *b, int32_t x)
{
    return ortc_pw_2(b, ORTC_PW_MUL, x, of_sigmoid(b, x));
}
/* x / 2 (1 + f), where f of x is an erf or a tanh */
static int32_t half_of(ortc_pw_builder *b, int32_t x, int32_t f)
{
    return ortc_pw_2(b, ORTC_PW_MUL, ortc_pw_2(b, ORTC_PW_MUL, x, ortc_pw_const(b, x, 0.5)),
                     ortc_pw_2(b, ORTC_PW_ADD, f, ortc_pw_const(b, x, 1)));
}
static int32_t of_gelu(ortc_pw_builder *b, int32_t x)
{
    const int32_t root = ortc_pw_2(b, ORTC_PW_MUL, x, ortc_pw_const(b, x, 0.70710678118654752440));
    return half_of(b, x, ortc_pw_1(b, ORTC_PW_ERF, root));
}
static int32_t of_gelu_tanh(ortc_pw_builder *b, int32_t x)
{
    const double k = 0.79788456080286535588; /* sqrt(2 / pi) */
    const int32_t square = ortc_pw_2(b, ORTC_PW_MUL, x, x);
    const int32_t by = ortc_pw_2(b, ORTC_PW_ADD,
                                 ortc_pw_2(b, ORTC_PW_MUL, square, ortc_pw_const(b, x, k * 0.044715)),
                                 ortc_pw_const(b, x, k));
    return half_of(b, x, ortc_pw_1(b, ORTC_PW_TANH, ortc_pw_2(b, ORTC_PW_MUL, x, by)));
}
static int32_t of_hard_swish(ortc_pw_builder *b, int32_t x)
{
    const int32_t line = ortc_pw_2(b, ORTC_PW_ADD, ortc_pw_2(b, ORTC_PW_MUL, x, ortc_pw_const(b, x, 1.0 / 6)),
                                   ortc_pw_const(b, x, 0.5));
    const int32_t above = ortc_pw_2(b, ORTC_PW_MAX, line, ortc_pw_const(b, x, 0));
    return ortc_pw_2(b, ORTC_PW_MUL, x, ortc_pw_2(b, ORTC_PW_MIN, above, ortc_pw_const(b, x, 1)));
}

#define POSTS(X) X(sigmoid) X(tanh) X(gelu) X(gelu_tanh) X(silu) X(hard_swish)
enum {
#define NUMBER(name) POST_##name,
    POSTS(NUMBER) N_POSTS
};
static ortc_pw_code codes[N_POSTS];
/* arg: one of `codes`. */
static void over_tile(void *arg, float *tile, size_t rows, size_t cols, size_t ld, int64_t row0, int64_t col0)
{
    (void)row0, (void)col0;
    ortc_pw_tile(arg, tile, ld, rows, cols);
}

static int over(ortc_tail_spec *out, int which)
{
    out->tile = over_tile;
    out->tile_arg = &codes[which];
    return 1;
}

static int lowered;
static void lower_all(void)
{
#define OF(name) of_##name,
    static int32_t (*const all[])(ortc_pw_builder *, int32_t) = {POSTS(OF)};
    union {
        ortc_pointwise p;
        char bytes[sizeof(ortc_pointwise) + ORTC_PW_STEPS * sizeof(ortc_pw_step)];
    } u;
    const char *why;
    lowered = 1;
    for (int i = 0; i < N_POSTS; i++) {
        ortc_pw_builder b = {.size = sizeof b, .n_in = 1};
        ortc_pw_to(&b, ORTC_PW_STORE, ORTC_F32, all[i](&b, ortc_pw_load(&b, 0, ORTC_F32)));
        u.p.bytes = (uint32_t)ortc_pointwise_bytes(b.n);
        u.p.n_in = 1;
        u.p.n = (uint16_t)b.n;
        memcpy(u.p.steps, b.steps, b.n * sizeof *b.steps);
        lowered &= !b.failed && ortc_pw_lower(&u.p, &codes[i], &why) && ortc_pw_tile_can(&codes[i]);
    }
}

int ortc_tail_spec_init(const ortc_epilogue *e, ortc_tail_spec *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    *out = (ortc_tail_spec){.act = ORTC_UK_ACT_NONE, .bias = -1, .residual = -1};
    if (!e) return 1;
    pthread_once(&once, lower_all);
    if (!lowered) return 0;
    out->bias = e->bias;
    out->residual = e->residual;
    switch (e->activation) {
    case ORTC_ACT_NONE: return 1;
    case ORTC_ACT_RELU: out->act = ORTC_UK_ACT_CLIP, out->lo = 0, out->hi = INFINITY; return 1;
    case ORTC_ACT_CLIP: out->act = ORTC_UK_ACT_CLIP, out->lo = e->alpha, out->hi = e->beta; return 1;
    case ORTC_ACT_LEAKY_RELU: out->act = ORTC_UK_ACT_LEAKY, out->lo = e->alpha; return 1;
    case ORTC_ACT_SIGMOID: return over(out, POST_sigmoid);
    case ORTC_ACT_TANH: return over(out, POST_tanh);
    case ORTC_ACT_GELU: return over(out, POST_gelu);
    case ORTC_ACT_GELU_TANH: return over(out, POST_gelu_tanh);
    case ORTC_ACT_SILU: return over(out, POST_silu);
    case ORTC_ACT_HARD_SWISH: return over(out, POST_hard_swish);
    default: return 0;
    }
}
