/* graph/normalise/weights.h: what passes that compute new weights share. Weights are f32 or f64, and computed
 * in double. */
#ifndef ORTC_NORMALISE_WEIGHTS_H
#define ORTC_NORMALISE_WEIGHTS_H

#include <math.h>

#include "match.h"

static inline bool ortc_weights_are(const ortc_constant *c)
{
    return c->dtype == ORTC_F32 || c->dtype == ORTC_F64;
}

/* Element i of memory of any alignment. */
static inline __attribute__((always_inline)) double ortc_weights_read(ortc_dtype t, const void *data,
                                                                      int64_t i)
{
    double d;
    float f;
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
    if (t == ORTC_F64)
        ((double *)data)[i] = v;
    else
        ((float *)data)[i] = (float)v;
}

/* to[i] = from[i] * by of `count` elements from `first` on; both may be the same. */
static inline void ortc_weights_scale(ortc_dtype t, const void *from, void *to, int64_t first, int64_t count,
                                      double by)
{
    if (t == ORTC_F64)
        for (int64_t i = first; i < first + count; i++)
            ortc_weights_write(ORTC_F64, to, i, ortc_weights_read(ORTC_F64, from, i) * by);
    else
        for (int64_t i = first; i < first + count; i++)
            ortc_weights_write(ORTC_F32, to, i, ortc_weights_read(ORTC_F32, from, i) * by);
}

/* An input that is a constant vector of so many elements of a type; NULL: it is none. */
static inline const ortc_constant *ortc_weights_vector(const ortc_node *n, uint32_t port, ortc_dtype t,
                                                       int64_t count)
{
    const ortc_edge *e = ortc_node_in_edge(n, port);
    const ortc_constant *c = e && ortc_edge_is_const(e) ? e->constant : NULL;
    return c && c->dtype == t && c->rank == 1 && c->count == count ? c : NULL;
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
    return ortc_weights_read(b->t, b->scale->data, c) /
           sqrt(ortc_weights_read(b->t, b->var->data, c) + b->epsilon);
}

/* What becomes of v, of channel c. */
static inline double ortc_batchnorm_of(const ortc_batchnorm *b, int64_t c, double v)
{
    return (v - ortc_weights_read(b->t, b->mean->data, c)) * ortc_batchnorm_by(b, c) +
           ortc_weights_read(b->t, b->shift->data, c);
}

/* Notes that a node of this type has gone into n. */
static inline void ortc_weights_note(ortc_normalise *p, ortc_node *n, const char *type)
{
    n->fused = ortc_arena_printf(&p->graph->arena, "%s%s%s", n->fused ? n->fused : "", n->fused ? " " : "",
                                 type);
}

#endif
