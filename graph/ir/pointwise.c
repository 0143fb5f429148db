/* graph/ir/pointwise.c: from nodes to pointwise programs (pointwise.h): every node's operator expands itself,
 * given the values of its inputs. */
#include "pointwise.h"

#include <math.h>

enum { MOST_PORTS = 64, MOST_EDGES = 256 };

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

/* ---- Nodes in a row ------------------------------------------------------------------------------------ */

/* Values of edges while a program is made. */
typedef struct making {
    ortc_pw_builder b;
    struct {
        const ortc_edge *edge;
        int32_t value;
    } made[MOST_EDGES];
    uint32_t n_made;
} making;

static int32_t keep(making *m, const ortc_edge *e, int32_t value)
{
    if (m->n_made == MOST_EDGES) return m->b.failed = 1, ORTC_PW_NONE;
    m->made[m->n_made].edge = e;
    return m->made[m->n_made++].value = value;
}

/* The value of an edge; of one that no node before made, as input `input` of the program. */
static int32_t value_of(making *m, const ortc_edge *e, uint32_t input)
{
    int32_t v = ORTC_PW_NONE;
    if (!e) return ORTC_PW_NONE;
    for (uint32_t i = 0; i < m->n_made; i++)
        if (m->made[i].edge == e) return m->made[i].value;
    if (!e->type || e->type->kind != ORTC_KIND_TENSOR) return m->b.failed = 1, ORTC_PW_NONE;
    if (ortc_edge_is_const(e) && e->constant->count == 1) v = number(&m->b, e->constant);
    if (v < 0 && input < ORTC_PW_INPUTS) v = ortc_pw_load(&m->b, input, e->type->dtype);
    return v < 0 ? (m->b.failed = 1, ORTC_PW_NONE) : keep(m, e, v);
}

static uint32_t input_of(const ortc_edge *e, ortc_edge *const *inputs, uint32_t n_inputs)
{
    uint32_t i = 0;
    while (i < n_inputs && inputs[i] != e) i++;
    return i < n_inputs ? i : ORTC_PW_INPUTS;
}

/* Adds a node that reads `inputs`, or what nodes before it made. */
static bool add(making *m, const ortc_node *n, ortc_edge *const *inputs, uint32_t n_inputs)
{
    const ortc_edge *y = n->n_out == 1 ? n->out[0] : NULL;
    int32_t ports[MOST_PORTS];
    if (!n->op || !n->op->expand || n->epilogue || n->n_in > MOST_PORTS || n->version < n->op->form || !y ||
        !y->type || y->type->kind != ORTC_KIND_TENSOR)
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        ports[i] = value_of(m, n->in[i], input_of(n->in[i], inputs, n_inputs));
    m->b.ports = ports;
    m->b.n_ports = n->n_in;
    const int32_t v = m->b.failed ? ORTC_PW_NONE : n->op->expand(n, &m->b);
    m->b.ports = NULL;
    m->b.n_ports = 0;
    return !m->b.failed && v >= 0 && ortc_pw_type(&m->b, v) == ortc_pw_register(y->type->dtype) &&
           keep(m, y, v) >= 0;
}

/* The program that stores what `y` is. */
static const ortc_pointwise *finish(making *m, const ortc_edge *y, ortc_arena *arena)
{
    ortc_pw_builder *b = &m->b;
    const int32_t value = value_of(m, y, ORTC_PW_INPUTS);
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

#define MAKING(n_inputs) \
    { \
        .b = {.size = sizeof(ortc_pw_builder), .n_in = (n_inputs) } \
    }

const ortc_pointwise *ortc_pointwise_of(const ortc_node *n)
{
    making m = MAKING(n->n_in);
    return add(&m, n, n->in, n->n_in) ? finish(&m, n->out[0], &n->graph->arena) : NULL;
}

const ortc_pointwise *ortc_pointwise_of_body(ortc_graph *body)
{
    making m = MAKING(body->n_inputs);
    ortc_edge *inputs[ORTC_PW_INPUTS];
    if (body->n_inputs > ORTC_PW_INPUTS || body->n_outputs != 1) return NULL;
    for (uint32_t i = 0; i < body->n_inputs; i++) inputs[i] = body->inputs[i].edge;
    for (const ortc_node *n = body->first; n; n = n->next)
        if (!add(&m, n, inputs, body->n_inputs)) return NULL;
    return finish(&m, body->outputs[0].edge, &body->arena);
}

const ortc_pointwise *ortc_pointwise_behind(const ortc_edge *result, ortc_node *const *nodes,
                                            uint32_t n_nodes, ortc_edge *const *ports, uint32_t n_ports)
{
    making m = MAKING(n_ports);
    if (!result->type || result->type->kind != ORTC_KIND_TENSOR || n_nodes == 0) return NULL;
    if (keep(&m, result, ortc_pw_load(&m.b, 0, ortc_pw_register(result->type->dtype))) < 0) return NULL;
    for (uint32_t i = 0; i < n_nodes; i++)
        if (!add(&m, nodes[i], ports, n_ports)) return NULL;
    return finish(&m, nodes[n_nodes - 1]->out[0], &result->graph->arena);
}
