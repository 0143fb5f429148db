/* graph/ir/pointwise.c: from nodes to pointwise programs (pointwise.h): every node's operator expands itself,
 * given the values of its inputs. */
#include "pointwise.h"

#include <math.h>

#define MOST_PORTS 64
#define UNMADE (-2)

static double half(const void *data)
{
    uint16_t h;
    memcpy(&h, data, sizeof h);
    const int exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    const double v = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
                     : exponent     ? ldexp(mantissa | 0x400, exponent - 25)
                                    : ldexp(mantissa, -24);
    return h & 0x8000 ? -v : v;
}
static double brain(const void *data) /* bf16: the upper half of an f32 */
{
    uint16_t h;
    memcpy(&h, data, sizeof h);
    const uint32_t bits = (uint32_t)h << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return (double)v;
}

/* A constant of one element. */
static int32_t number(ortc_pw_builder *b, const ortc_constant *c)
{
    ortc_pw_step s;
    memset(&s, 0, sizeof s);
    s.op = ORTC_PW_CONST;
    s.type = (uint8_t)ortc_pw_register(c->dtype);
    switch (c->dtype) {
#define READ(t, type, field) \
    case t: { \
        type v; \
        memcpy(&v, c->data, sizeof v); \
        s.k.field = v; \
        break; \
    }
        READ(ORTC_F32, float, f)
        READ(ORTC_F64, double, f)
        READ(ORTC_I8, int8_t, i)
        READ(ORTC_I16, int16_t, i)
        READ(ORTC_I32, int32_t, i)
        READ(ORTC_I64, int64_t, i)
        READ(ORTC_U8, uint8_t, i)
        READ(ORTC_U16, uint16_t, i)
        READ(ORTC_U32, uint32_t, i)
#undef READ
    case ORTC_F16: s.k.f = half(c->data); break;
    case ORTC_BF16: s.k.f = brain(c->data); break;
    case ORTC_U64: memcpy(&s.k.i, c->data, sizeof s.k.i); break;
    case ORTC_BOOL: s.k.i = *(const uint8_t *)c->data != 0; break;
    default: return ORTC_PW_NONE;
    }
    return ortc_pw_add(b, s);
}

static int32_t value_of(ortc_pw_builder *b, const ortc_edge *e, uint32_t input)
{
    if (!e) return ORTC_PW_NONE;
    if (!e->type || e->type->kind != ORTC_KIND_TENSOR) return b->failed = 1, ORTC_PW_NONE;
    if (ortc_edge_is_const(e) && e->constant->count == 1) {
        const int32_t v = number(b, e->constant);
        if (v >= 0) return v;
    }
    return input < ORTC_PW_INPUTS ? ortc_pw_load(b, input, e->type->dtype) : (b->failed = 1, ORTC_PW_NONE);
}

static int32_t expand(ortc_pw_builder *b, const ortc_node *n, const int32_t *ports)
{
    const ortc_edge *y = n->n_out == 1 ? n->out[0] : NULL;
    b->ports = ports;
    b->n_ports = n->n_in;
    if (!n->op || !n->op->expand || n->epilogue || !y || !y->type || y->type->kind != ORTC_KIND_TENSOR ||
        n->version < n->op->form || b->failed)
        return ORTC_PW_NONE;
    const int32_t v = n->op->expand(n, b);
    return b->failed || v < 0 || ortc_pw_type(b, v) != ortc_pw_register(y->type->dtype) ? ORTC_PW_NONE : v;
}

static const ortc_pointwise *finish(ortc_pw_builder *b, int32_t value, const ortc_edge *y, ortc_arena *arena)
{
    if (value < 0 || ortc_pw_to(b, ORTC_PW_STORE, y->type->dtype, value) < 0) return NULL;
    const size_t bytes = ortc_pointwise_bytes(b->n);
    ortc_pointwise *p = ortc_arena_alloc(arena, bytes);
    if (!p) return NULL;
    p->bytes = (uint32_t)bytes;
    p->n_in = (uint16_t)b->n_in;
    p->n = (uint16_t)b->n;
    memcpy(p->steps, b->steps, b->n * sizeof *p->steps);
    return p;
}

const ortc_pointwise *ortc_pointwise_of(const ortc_node *n)
{
    ortc_pw_builder b = {.size = sizeof b, .n_in = n->n_in};
    int32_t ports[MOST_PORTS];
    if (!n->op || !n->op->expand || n->n_in > MOST_PORTS) return NULL;
    for (uint32_t i = 0; i < n->n_in; i++) ports[i] = value_of(&b, n->in[i], i);
    const int32_t v = expand(&b, n, ports);
    return v < 0 ? NULL : finish(&b, v, n->out[0], &n->graph->arena);
}

const ortc_pointwise *ortc_pointwise_of_body(ortc_graph *body)
{
    ortc_pw_builder b = {.size = sizeof b, .n_in = body->n_inputs};
    const ortc_pointwise *p = NULL;
    int32_t ports[MOST_PORTS], *values = malloc((body->edges.count + 1) * sizeof *values);
    bool good = values && body->n_outputs == 1;
    for (size_t i = 0; good && i < body->edges.count; i++) values[i] = UNMADE;
    for (const ortc_node *n = body->first; good && n; n = n->next) {
        good = n->n_in <= MOST_PORTS;
        for (uint32_t i = 0; good && i < n->n_in; i++) {
            const ortc_edge *e = n->in[i];
            if (e && values[e->id] == UNMADE)
                values[e->id] = value_of(&b, e, e->input >= 0 ? (uint32_t)e->input : ORTC_PW_INPUTS);
            ports[i] = e ? values[e->id] : ORTC_PW_NONE;
        }
        const int32_t v = good ? expand(&b, n, ports) : ORTC_PW_NONE;
        good = v >= 0;
        if (good) values[n->out[0]->id] = v;
    }
    if (good) p = finish(&b, values[body->outputs[0].edge->id], body->outputs[0].edge, &body->arena);
    free(values);
    return p;
}
