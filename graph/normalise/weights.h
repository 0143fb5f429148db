/* graph/normalise/weights.h: what passes that compute new weights share. They are computed in double; those
 * of half precision only become what keeps it (ortc_weights_keep). */
#ifndef ORTC_NORMALISE_WEIGHTS_H
#define ORTC_NORMALISE_WEIGHTS_H

#include <math.h>

#include "graph/ir/half.h"
#include "match.h"

static inline bool ortc_weights_are(const ortc_constant *c)
{
    return c->dtype == ORTC_F32 || c->dtype == ORTC_F64 || c->dtype == ORTC_F16 || c->dtype == ORTC_BF16;
}

static inline bool ortc_weights_half(ortc_dtype t) { return t == ORTC_F16 || t == ORTC_BF16; }

static inline float ortc_weights_widen(ortc_dtype t, uint16_t code)
{
    const uint32_t bits = (uint32_t)code << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return t == ORTC_F16 ? ortc_f16_decode(code) : f;
}
static inline uint16_t ortc_weights_narrow(ortc_dtype t, float f)
{
    return t == ORTC_F16 ? ortc_f16_encode(f) : ortc_bf16_encode(f);
}

/* Element i of memory of any alignment. */
static inline __attribute__((always_inline)) double ortc_weights_read(ortc_dtype t, const void *data,
                                                                      int64_t i)
{
    double d;
    float f;
    uint16_t h;
    if (ortc_weights_half(t)) {
        memcpy(&h, (const char *)data + i * 2, 2);
        return ortc_weights_widen(t, h);
    }
    if (t == ORTC_F64) {
        memcpy(&d, (const char *)data + i * 8, 8);
        return d;
    }
    memcpy(&f, (const char *)data + i * 4, 4);
    return f;
}

static inline __attribute__((always_inline)) void ortc_weights_write(ortc_dtype t, void *data, int64_t i,
                                                                     double v)
{
    if (ortc_weights_half(t))
        ((uint16_t *)data)[i] = ortc_weights_narrow(t, (float)v);
    else if (t == ORTC_F64)
        ((double *)data)[i] = v;
    else
        ((float *)data)[i] = (float)v;
}

/* to[i] = from[i] * by of `count` elements from `first` on; both may be the same. `from` of any alignment. */
void ortc_weights_scale(ortc_dtype t, const void *from, void *to, int64_t first, int64_t count, double by);

/* The largest of `count` elements from `first` on; NaN where one is. */
static inline double ortc_weights_largest(ortc_dtype t, const void *data, int64_t first, int64_t count)
{
    double most = 0;
    for (int64_t i = first; i < first + count && !isnan(most); i++) {
        const double v = fabs(ortc_weights_read(t, data, i));
        most = v > most || isnan(v) ? v : most;
    }
    return most;
}

/* Whether weights of a filter of which this is the largest are as exact as the type lets them: of f16, they
 * are none beyond its range, and what is below it, in steps of 2^-24, is little beside the largest. */
static inline bool ortc_weights_keep(ortc_dtype t, double largest)
{
    return t != ORTC_F16 || largest == 0 || (largest >= 0x1p-8 && largest < 65504);
}

/* An input that is a constant vector of so many elements of a type, or, beside one of half precision, of f32;
 * NULL: it is none. */
static inline const ortc_constant *ortc_weights_vector(const ortc_node *n, uint32_t port, ortc_dtype t,
                                                       int64_t count)
{
    const ortc_edge *e = ortc_node_in_edge(n, port);
    const ortc_constant *c = e && ortc_edge_is_const(e) ? e->constant : NULL;
    return c && (c->dtype == t || (ortc_weights_half(t) && c->dtype == ORTC_F32)) && c->rank == 1 &&
                   c->count == count
               ? c
               : NULL;
}

/* What BatchNormalization does in inference: y = (x - mean) * by + shift, by = scale / sqrt(var +
 * epsilon). */
typedef struct ortc_batchnorm {
    ortc_dtype t;
    const ortc_constant *scale, *shift, *mean, *var;
    double epsilon;
} ortc_batchnorm;

/* false: it trains, or its numbers are not constants of type t for so many channels. */
static inline bool ortc_weights_batchnorm(const ortc_node *n, ortc_dtype t, int64_t channels,
                                          ortc_batchnorm *out)
{
    if (!ortc_match_is(n, "BatchNormalization") || ortc_node_int(n, "training_mode", 0)) return false;
    *out = (ortc_batchnorm){t,
                            ortc_weights_vector(n, 1, t, channels),
                            ortc_weights_vector(n, 2, t, channels),
                            ortc_weights_vector(n, 3, t, channels),
                            ortc_weights_vector(n, 4, t, channels),
                            (double)ortc_node_float(n, "epsilon", 1e-5f)};
    return out->scale && out->shift && out->mean && out->var;
}

static inline double ortc_batchnorm_by(const ortc_batchnorm *b, int64_t c)
{
    return ortc_weights_read(b->scale->dtype, b->scale->data, c) /
           sqrt(ortc_weights_read(b->var->dtype, b->var->data, c) + b->epsilon);
}

/* What becomes of v, of channel c. */
static inline double ortc_batchnorm_of(const ortc_batchnorm *b, int64_t c, double v)
{
    return (v - ortc_weights_read(b->mean->dtype, b->mean->data, c)) * ortc_batchnorm_by(b, c) +
           ortc_weights_read(b->shift->dtype, b->shift->data, c);
}

/* Notes that a node of this type has gone into n. */
static inline void ortc_weights_note(ortc_normalise *p, ortc_node *n, const char *type)
{
    n->fused = ortc_arena_printf(&p->graph->arena, "%s%s%s", n->fused ? n->fused : "", n->fused ? " " : "",
                                 type);
}

#endif
