/* The activations that run on a tile after its store, and the choice between them and the micro-kernels'
 * own. */
#include "epilogue.h"

#include <math.h>

#define POST(name, ...) \
    static void name(const void *arg, float *c, size_t ldc, size_t rows, size_t cols) \
    { \
        (void)arg; \
        for (size_t i = 0; i < rows; i++) \
            for (size_t j = 0; j < cols; j++) { \
                const float x = c[i * ldc + j]; \
                c[i * ldc + j] = __VA_ARGS__; \
            } \
    }

POST(post_sigmoid, 1.0f / (1.0f + expf(-x)))
POST(post_tanh, tanhf(x))
POST(post_gelu, 0.5f * x * (1.0f + erff(x * 0.70710678f)))
POST(post_gelu_tanh, 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x))))
POST(post_silu, x / (1.0f + expf(-x)))

/* Comparisons with NaN are false: x * NaN stays. */
static float hard_sigmoid(float x)
{
    float y = x * (1.0f / 6.0f) + 0.5f;
    y = y < 0.0f ? 0.0f : y;
    return y > 1.0f ? 1.0f : y;
}
POST(post_hard_swish, x *hard_sigmoid(x))

int ortc_tail_spec_init(const ortc_epilogue *e, ortc_tail_spec *out)
{
    *out = (ortc_tail_spec){ORTC_UK_ACT_NONE, 0, 0, NULL, -1, -1};
    if (!e) return 1;
    out->bias = e->bias;
    out->residual = e->residual;
    switch (e->activation) {
    case ORTC_ACT_NONE: return 1;
    case ORTC_ACT_RELU: out->act = ORTC_UK_ACT_CLIP, out->lo = 0, out->hi = INFINITY; return 1;
    case ORTC_ACT_CLIP: out->act = ORTC_UK_ACT_CLIP, out->lo = e->alpha, out->hi = e->beta; return 1;
    case ORTC_ACT_LEAKY_RELU: out->act = ORTC_UK_ACT_LEAKY, out->lo = e->alpha; return 1;
    case ORTC_ACT_SIGMOID: out->post = post_sigmoid; return 1;
    case ORTC_ACT_TANH: out->post = post_tanh; return 1;
    case ORTC_ACT_GELU: out->post = post_gelu; return 1;
    case ORTC_ACT_GELU_TANH: out->post = post_gelu_tanh; return 1;
    case ORTC_ACT_SILU: out->post = post_silu; return 1;
    case ORTC_ACT_HARD_SWISH: out->post = post_hard_swish; return 1;
    default: return 0;
    }
}
