/* The choice between the micro-kernels' own activations and those that run over a finished tile. */
#include "epilogue.h"

#include <math.h>

#include "activation.h"

ORTC_VEC_TABLE(ortc_activations)

/* arg: one of the functions of ortc_activations. */
static void over_tile(void *arg, float *tile, size_t rows, size_t cols, size_t ld, int64_t row0, int64_t col0)
{
    ortc_activation *over = *(ortc_activation *const *)arg;
    if (ld == cols)
        over(rows * cols, tile);
    else
        for (size_t i = 0; i < rows; i++) over(cols, tile + i * ld);
}

static int over(ortc_tail_spec *out, int which)
{
    out->tile = over_tile;
    out->tile_arg = (void *)(uintptr_t)&ortc_activations_select()->over[which];
    return 1;
}

int ortc_tail_spec_init(const ortc_epilogue *e, ortc_tail_spec *out)
{
    *out = (ortc_tail_spec){.act = ORTC_UK_ACT_NONE, .bias = -1, .residual = -1};
    if (!e) return 1;
    out->bias = e->bias;
    out->residual = e->residual;
    switch (e->activation) {
    case ORTC_ACT_NONE: return 1;
    case ORTC_ACT_RELU: out->act = ORTC_UK_ACT_CLIP, out->lo = 0, out->hi = INFINITY; return 1;
    case ORTC_ACT_CLIP: out->act = ORTC_UK_ACT_CLIP, out->lo = e->alpha, out->hi = e->beta; return 1;
    case ORTC_ACT_LEAKY_RELU: out->act = ORTC_UK_ACT_LEAKY, out->lo = e->alpha; return 1;
    case ORTC_ACT_SIGMOID: return over(out, ORTC_OVER_SIGMOID);
    case ORTC_ACT_TANH: return over(out, ORTC_OVER_TANH);
    case ORTC_ACT_GELU: return over(out, ORTC_OVER_GELU);
    case ORTC_ACT_GELU_TANH: return over(out, ORTC_OVER_GELU_TANH);
    case ORTC_ACT_SILU: return over(out, ORTC_OVER_SILU);
    case ORTC_ACT_HARD_SWISH: return over(out, ORTC_OVER_HARD_SWISH);
    default: return 0;
    }
}
