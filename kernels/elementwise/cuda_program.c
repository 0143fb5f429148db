/* kernels/elementwise/cuda_program.c: nodes to programs, programs to launches (cuda_program.h).
 *
 * Nodes come in an order of execution; each gives one value. The accumulator holds the latest one. A value
 * that is needed again when the accumulator is about to be taken goes into a temporary. Operands that are
 * neither are inputs of the program.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/element.h"
#include "kernels/elementwise/cuda_maker.h"
#include "kernels/elementwise/direct_cuda.h"

#define F32_LIKE (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16))
#define SIGNED ORTC_TYPES_INT
#define UNSIGNED (ORTC_TYPES_UINT | ORTC_TYPE(ORTC_BOOL))
#define REGISTERS (F32_LIKE | ORTC_TYPE(ORTC_F64) | SIGNED | UNSIGNED)

/* ---- Operators ----------------------------------------------------------------------------------------- */

enum { BINARY, VARIADIC, UNARY, CLIP, WHERE, CAST, GATE, IS_INF, POWER };
enum { RARE = 1 };

static const struct operation {
    const char *name;
    uint8_t kind, op, other, flags; /* other: with the operands exchanged */
    const char *first, *second;     /* attributes that are constants */
    float first_default, second_default;
} operations[] = {
    {"Add", BINARY, ORTC_CU_ADD, ORTC_CU_ADD},
    {"Sub", BINARY, ORTC_CU_SUB, ORTC_CU_RSUB},
    {"Mul", BINARY, ORTC_CU_MUL, ORTC_CU_MUL},
    {"Div", BINARY, ORTC_CU_DIV, ORTC_CU_RDIV},
    {"Pow", POWER, ORTC_CU_POW, ORTC_CU_NONE},
    {"Equal", BINARY, ORTC_CU_EQUAL, ORTC_CU_EQUAL},
    {"Less", BINARY, ORTC_CU_LESS, ORTC_CU_GREATER},
    {"Greater", BINARY, ORTC_CU_GREATER, ORTC_CU_LESS},
    {"LessOrEqual", BINARY, ORTC_CU_LESS_EQUAL, ORTC_CU_GREATER_EQUAL},
    {"GreaterOrEqual", BINARY, ORTC_CU_GREATER_EQUAL, ORTC_CU_LESS_EQUAL},
    {"And", BINARY, ORTC_CU_AND, ORTC_CU_AND},
    {"Or", BINARY, ORTC_CU_OR, ORTC_CU_OR},
    {"Xor", BINARY, ORTC_CU_XOR, ORTC_CU_XOR},
    {"PRelu", BINARY, ORTC_CU_PRELU, ORTC_CU_NONE},
    {"Min", VARIADIC, ORTC_CU_MIN},
    {"Max", VARIADIC, ORTC_CU_MAX},
    {"Sum", VARIADIC, ORTC_CU_ADD},
    {"Mean", VARIADIC, ORTC_CU_ADD},
    {"Neg", UNARY, ORTC_CU_NEG},
    {"Abs", UNARY, ORTC_CU_ABS},
    {"Sign", UNARY, ORTC_CU_SIGN},
    {"Not", UNARY, ORTC_CU_NOT},
    {"Sqrt", UNARY, ORTC_CU_SQRT},
    {"Exp", UNARY, ORTC_CU_EXP},
    {"Log", UNARY, ORTC_CU_LOG},
    {"Reciprocal", UNARY, ORTC_CU_RECIPROCAL},
    {"Floor", UNARY, ORTC_CU_FLOOR},
    {"Ceil", UNARY, ORTC_CU_CEIL},
    {"Round", UNARY, ORTC_CU_ROUND},
    {"Sin", UNARY, ORTC_CU_SIN, 0, RARE},
    {"Cos", UNARY, ORTC_CU_COS, 0, RARE},
    {"Tan", UNARY, ORTC_CU_TAN, 0, RARE},
    {"Asin", UNARY, ORTC_CU_ASIN, 0, RARE},
    {"Acos", UNARY, ORTC_CU_ACOS, 0, RARE},
    {"Atan", UNARY, ORTC_CU_ATAN, 0, RARE},
    {"Sinh", UNARY, ORTC_CU_SINH, 0, RARE},
    {"Cosh", UNARY, ORTC_CU_COSH, 0, RARE},
    {"Asinh", UNARY, ORTC_CU_ASINH, 0, RARE},
    {"Acosh", UNARY, ORTC_CU_ACOSH, 0, RARE},
    {"Atanh", UNARY, ORTC_CU_ATANH, 0, RARE},
    {"IsNaN", UNARY, ORTC_CU_IS_NAN},
    {"IsInf", IS_INF, ORTC_CU_IS_INF},
    {"Relu", UNARY, ORTC_CU_RELU},
    {"LeakyRelu", UNARY, ORTC_CU_LEAKY_RELU, 0, 0, "alpha"},
    {"Sigmoid", UNARY, ORTC_CU_SIGMOID},
    {"Tanh", UNARY, ORTC_CU_TANH},
    {"Gelu", UNARY, ORTC_CU_GELU},
    {"Erf", UNARY, ORTC_CU_ERF},
    {"HardSwish", UNARY, ORTC_CU_HARD_SWISH},
    {"HardSigmoid", UNARY, ORTC_CU_CLAMP01, 0, 0, "alpha", "beta"},
    {"Elu", UNARY, ORTC_CU_ELU, 0, 0, "alpha"},
    {"Selu", UNARY, ORTC_CU_ELU, 0, 0, "alpha", "gamma", 1.67326319217681884765625F,
     1.05070102214813232421875F},
    {"Celu", UNARY, ORTC_CU_ELU, 0, 0, "alpha"},
    {"Softplus", UNARY, ORTC_CU_SOFTPLUS},
    {"Softsign", UNARY, ORTC_CU_SOFTSIGN},
    {"Mish", UNARY, ORTC_CU_MISH},
    {"Swish", UNARY, ORTC_CU_SWISH, 0, 0, "alpha"},
    {"ThresholdedRelu", UNARY, ORTC_CU_THRESHOLDED_RELU, 0, 0, "alpha"},
    {"SwiGLU", GATE, ORTC_CU_SWISH, 0, 0, "alpha"},
    {"Clip", CLIP, ORTC_CU_MAX},
    {"Where", WHERE, ORTC_CU_BLEND},
    {"Cast", CAST, 0},
};

static const struct operation *operation_of(const ortc_node *n)
{
    for (size_t i = 0; !*ortc_node_domain(n) && i < sizeof operations / sizeof *operations; i++)
        if (!strcmp(operations[i].name, ortc_node_op(n))) return &operations[i];
    return NULL;
}

static int class_of(ortc_dtype t)
{
    const uint64_t bit = ORTC_TYPE(t);
    return bit & F32_LIKE  ? ORTC_CU_F32
           : t == ORTC_F64 ? ORTC_CU_F64
           : bit & SIGNED  ? ORTC_CU_I64
                           : ORTC_CU_U64;
}

static int is_float(ortc_dtype t) { return class_of(t) <= ORTC_CU_F64; }

int ortc_cuda_registers_of(const ortc_node *n)
{
    const struct operation *o = operation_of(n);
    const uint32_t n_in = ortc_node_n_in(n);
    if (!o || !n_in) return -1;
    const ortc_port x = ortc_node_in(n, o->kind == WHERE ? 1 : 0);
    for (uint32_t i = 0; i < n_in; i++) {
        const ortc_port p = ortc_node_in(n, i);
        if (p.type && (!p.dtype || !(REGISTERS >> p.dtype & 1))) return -1;
    }
    const ortc_port y = ortc_node_out(n, 0);
    if (!x.dtype || !y.dtype || !(REGISTERS >> y.dtype & 1)) return -1;
    if (o->flags & RARE) return ORTC_CU_F64;
    if (o->kind == POWER && !is_float(x.dtype) && is_float(ortc_node_in(n, 1).dtype)) return -1;
    if (o->kind == POWER && is_float(x.dtype) && ortc_node_in(n, 1).dtype == ORTC_F64) return ORTC_CU_F64;
    if (o->op == ORTC_CU_GELU && strcmp(ortc_node_string(n, "approximate", "none"), "none") &&
        strcmp(ortc_node_string(n, "approximate", "none"), "tanh"))
        return -1; /* ref says what is wrong */
    return class_of(x.dtype);
}

/* ---- Making -------------------------------------------------------------------------------------------- */

static int fail(ortc_cuda_maker *m) { return m->failed = 1, 0; }

static void emit(ortc_cuda_maker *m, int op, int operand)
{
    if (m->n_code == ORTC_CU_CODE) {
        fail(m);
        return;
    }
    m->code[m->n_code].op = (uint8_t)op;
    m->code[m->n_code++].operand = (uint8_t)operand;
}

static int constant(ortc_cuda_maker *m, double v)
{
    if (m->n_constants == ORTC_CU_CONSTANTS) return fail(m);
    m->constants[m->n_constants] = v;
    return ORTC_CU_CONSTANT | (int)m->n_constants++;
}
static int constants(ortc_cuda_maker *m, double first, double second)
{
    if (m->n_constants + 2 > ORTC_CU_CONSTANTS) return fail(m);
    const int at = constant(m, first);
    constant(m, second);
    return at;
}

static ortc_cuda_made *made_of(ortc_cuda_maker *m, uint32_t edge)
{
    for (uint32_t i = 0; i < m->n_made; i++)
        if (m->made[i].edge == edge) return &m->made[i];
    return NULL;
}

/* A single number that is known now goes into the program, where its type loses nothing by that. */
static int known(const ortc_cuda_maker *m, const ortc_port *p, double *out)
{
    if (!p->data || m->registers > ORTC_CU_F64 || m->n_constants == ORTC_CU_CONSTANTS) return 0;
    for (int32_t d = 0; d < p->rank; d++)
        if (p->dims[d] != 1) return 0;
    *out = ortc_load_f64(p->data, p->dtype, 0);
    return 1;
}

static int input_of(ortc_cuda_maker *m, const ortc_port *p)
{
    double v;
    if (known(m, p, &v)) return constant(m, v);
    for (uint32_t i = 0; i < m->n_in; i++)
        if (m->edges[i] == p->edge) return (int)i;
    if (m->n_in == ORTC_CU_INPUTS) return fail(m);
    m->edges[m->n_in] = p->edge;
    return (int)m->n_in++;
}

/* The operand for a value that is not in the accumulator. */
static int operand_of(ortc_cuda_maker *m, const ortc_port *p)
{
    const ortc_cuda_made *v = made_of(m, p->edge);
    if (!v) return input_of(m, p);
    return v->temp >= 0 ? ORTC_CU_TEMP | v->temp : fail(m);
}

static int in_accumulator(const ortc_cuda_maker *m, const ortc_port *p)
{
    return m->accumulator == p->edge && p->edge;
}

static void save(ortc_cuda_maker *m, ortc_cuda_made *v)
{
    int slot = 0;
    while (slot < ORTC_CU_TEMPS && m->temps[slot]) slot++;
    if (slot == ORTC_CU_TEMPS) {
        fail(m);
        return;
    }
    m->temps[slot] = v->edge;
    v->temp = slot;
    m->n_temps = m->n_temps > (uint32_t)slot + 1 ? m->n_temps : (uint32_t)slot + 1;
    emit(m, ORTC_CU_SAVE, slot);
}

/* The accumulator is about to be taken by a node that reads its value `reads` times: if others read it later
 * it is kept. */
static void keep(ortc_cuda_maker *m, uint32_t reads)
{
    ortc_cuda_made *v = m->accumulator ? made_of(m, m->accumulator) : NULL;
    if (v && v->temp < 0 && v->uses > reads) save(m, v);
}

static uint32_t reads_of(const ortc_node *n, uint32_t edge)
{
    uint32_t reads = 0;
    for (uint32_t i = 0; i < ortc_node_n_in(n); i++) reads += ortc_node_in(n, i).edge == edge;
    return reads;
}

/* Brings an input of the node into the accumulator. */
static void bring(ortc_cuda_maker *m, const ortc_port *p)
{
    if (in_accumulator(m, p)) return;
    const int operand = operand_of(m, p);
    emit(m, ORTC_CU_LOAD, operand);
    m->accumulator = p->edge;
}

/* What a node's accumulator holds that is also read as another operand, or whose place another operand takes
 * first, needs a temporary of its own. */
static void settle(ortc_cuda_maker *m)
{
    ortc_cuda_made *v = m->accumulator ? made_of(m, m->accumulator) : NULL;
    if (v && v->temp < 0) save(m, v);
}

static void binary(ortc_cuda_maker *m, const ortc_node *n, const struct operation *o)
{
    const ortc_port a = ortc_node_in(n, 0), b = ortc_node_in(n, 1);
    double v;
    if (a.edge == b.edge) {
        bring(m, &a);
        emit(m, o->op, ORTC_CU_SELF);
    } else if (o->other != ORTC_CU_NONE &&
               (in_accumulator(m, &b) || (known(m, &a, &v) && !known(m, &b, &v)))) {
        bring(m, &b);
        emit(m, o->other, operand_of(m, &a));
    } else {
        if (!in_accumulator(m, &a)) settle(m);
        bring(m, &a);
        emit(m, o->op, operand_of(m, &b));
    }
}

static void variadic(ortc_cuda_maker *m, const ortc_node *n, const struct operation *o)
{
    const uint32_t n_in = ortc_node_n_in(n);
    const ortc_port first = ortc_node_in(n, 0);
    if (!in_accumulator(m, &first) || reads_of(n, first.edge) > 1) settle(m);
    bring(m, &first);
    for (uint32_t i = 1; i < n_in; i++) {
        const ortc_port p = ortc_node_in(n, i);
        emit(m, o->op, operand_of(m, &p));
    }
    if (!strcmp(o->name, "Mean")) emit(m, ORTC_CU_DIV, constant(m, n_in));
}

static void unary(ortc_cuda_maker *m, const ortc_node *n, const struct operation *o)
{
    const ortc_port x = ortc_node_in(n, 0);
    const double first = o->first ? (double)ortc_node_float(n, o->first, o->first_default) : 0;
    const double second = o->second ? (double)ortc_node_float(n, o->second, o->second_default) : 0;
    bring(m, &x);
    if (o->op == ORTC_CU_ELU) {
        const int celu = !strcmp(o->name, "Celu");
        emit(m, ORTC_CU_ELU, constants(m, first, celu ? 1 / first : 1));
        if (o->second) emit(m, ORTC_CU_MUL, constant(m, second));
    } else if (o->op == ORTC_CU_CLAMP01) {
        emit(m, ORTC_CU_MUL, constant(m, first));
        emit(m, ORTC_CU_ADD, constant(m, second));
        emit(m, ORTC_CU_CLAMP01, ORTC_CU_NONE);
    } else if (o->op == ORTC_CU_GELU && !strcmp(ortc_node_string(n, "approximate", "none"), "tanh")) {
        emit(m, ORTC_CU_GELU_TANH, ORTC_CU_NONE);
    } else {
        emit(m, o->op, o->first ? constant(m, first) : ORTC_CU_NONE);
    }
}

static void clip(ortc_cuda_maker *m, const ortc_node *n)
{
    for (uint32_t i = 0; i < 3 && i < ortc_node_n_in(n); i++) {
        const ortc_port p = ortc_node_in(n, i);
        if (i == 0)
            bring(m, &p);
        else if (p.type)
            emit(m, i == 1 ? ORTC_CU_MAX : ORTC_CU_MIN, operand_of(m, &p));
    }
}

static void where(ortc_cuda_maker *m, const ortc_node *n)
{
    const ortc_port condition = ortc_node_in(n, 0), x = ortc_node_in(n, 1), y = ortc_node_in(n, 2);
    if (!in_accumulator(m, &condition) || reads_of(n, condition.edge) > 1) settle(m);
    bring(m, &condition);
    emit(m, ORTC_CU_TEST, ORTC_CU_NONE);
    emit(m, ORTC_CU_LOAD, operand_of(m, &x));
    emit(m, ORTC_CU_BLEND, operand_of(m, &y));
}

static void gate(ortc_cuda_maker *m, const ortc_node *n)
{
    const ortc_port a = ortc_node_in(n, 0), b = ortc_node_in(n, 1);
    if (!in_accumulator(m, &a) || a.edge == b.edge) settle(m);
    bring(m, &a);
    emit(m, ORTC_CU_SWISH, constant(m, (double)ortc_node_float(n, "alpha", 1)));
    emit(m, ORTC_CU_MUL, operand_of(m, &b));
}

/* Inside of a program a value has the register's precision, but where a Cast asks for less. */
static void cast(ortc_cuda_maker *m, const ortc_node *n)
{
    const ortc_port x = ortc_node_in(n, 0), y = ortc_node_out(n, 0);
    bring(m, &x);
    if (x.dtype != y.dtype && m->registers <= ORTC_CU_F64 && (y.dtype == ORTC_F16 || y.dtype == ORTC_BF16))
        emit(m, y.dtype == ORTC_F16 ? ORTC_CU_TO_F16 : ORTC_CU_TO_BF16, ORTC_CU_NONE);
}

void ortc_cuda_maker_init(ortc_cuda_maker *m, int registers)
{
    memset(m, 0, sizeof *m);
    m->registers = registers;
}

int ortc_cuda_make(ortc_cuda_maker *m, const ortc_node *n, uint32_t uses)
{
    const struct operation *o = operation_of(n);
    const ortc_port y = ortc_node_out(n, 0);
    if (!o || m->n_made == ORTC_CU_CODE) return fail(m);
    keep(m, m->accumulator ? reads_of(n, m->accumulator) : 0);
    switch (o->kind) {
    case BINARY:
    case POWER: binary(m, n, o); break;
    case VARIADIC: variadic(m, n, o); break;
    case CLIP: clip(m, n); break;
    case WHERE: where(m, n); break;
    case GATE: gate(m, n); break;
    case CAST: cast(m, n); break;
    case IS_INF: {
        const ortc_port x = ortc_node_in(n, 0);
        bring(m, &x);
        emit(m, ORTC_CU_IS_INF,
             constant(m, (ortc_node_int(n, "detect_positive", 1) ? 1 : 0) +
                             (ortc_node_int(n, "detect_negative", 1) ? 2 : 0)));
        break;
    }
    default: unary(m, n, o);
    }
    for (uint32_t i = 0; i < ortc_node_n_in(n); i++) { /* temporaries that nobody reads any more */
        ortc_cuda_made *v = made_of(m, ortc_node_in(n, i).edge);
        if (v && v->uses && --v->uses == 0 && v->temp >= 0) {
            m->temps[v->temp] = 0;
            v->temp = -1;
        }
    }
    m->made[m->n_made].edge = y.edge;
    m->made[m->n_made].uses = uses;
    m->made[m->n_made++].temp = -1;
    m->accumulator = y.edge;
    return !m->failed;
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

/* Which of a result's dims one input follows: elements from one to the next, 0 where it is broadcast. */
static void steps_of(const ortc_view *x, const ortc_view *y, int64_t *steps)
{
    int64_t n = 1;
    for (int32_t d = y->rank - 1; d >= 0; d--) {
        const int32_t own = d - (y->rank - x->rank);
        steps[d] = own >= 0 && x->dims[own] != 1 ? n : 0;
        n *= own >= 0 ? x->dims[own] : 1;
    }
}

/* Dims that lie together in every input become one. */
static uint32_t merge(const ortc_view *in, const uint32_t *ports, uint32_t n_in, const ortc_view *y,
                      ortc_cu_program *p)
{
    int64_t steps[ORTC_CU_INPUTS][ORTC_CU_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < n_in; i++) steps_of(&in[ports[i]], y, steps[i]);
    for (int32_t d = 0; d < y->rank; d++) {
        int joins = rank > 0;
        if (y->dims[d] == 1) continue;
        for (uint32_t i = 0; joins && i < n_in; i++)
            joins = p->in[i].step[rank - 1] == steps[i][d] * y->dims[d];
        if (joins)
            p->dims[rank - 1] *= y->dims[d];
        else
            p->dims[rank++] = y->dims[d];
        for (uint32_t i = 0; i < n_in; i++) p->in[i].step[rank - 1] = steps[i][d];
    }
    if (rank == 0) {
        p->dims[rank++] = 1;
        for (uint32_t i = 0; i < n_in; i++) p->in[i].step[0] = 0;
    }
    return rank;
}

static uint64_t alignment_of(const void *data, ortc_dtype t, int width)
{
    const uint64_t bytes = (uint64_t)width * ortc_dtype_bits(t) / 8;
    return (uint64_t)(uintptr_t)data % (bytes > 16 ? 16 : bytes);
}

/* Neighbours can be taken together: rows are whole items, but for the end of a single one, and all begin at
 * good addresses. */
static int can_be_vector(const ortc_cu_program *p, uint32_t n_in, int width)
{
    const uint32_t last = p->rank - 1;
    if (p->count < width || (p->rank > 1 && p->dims[last] % width) ||
        alignment_of(p->out, p->out_dtype, width))
        return 0;
    for (uint32_t i = 0; i < n_in; i++) {
        const ortc_cu_input *in = &p->in[i];
        if (in->step[last] == 0) continue;
        if (in->step[last] != 1 || alignment_of(in->data, in->dtype, width)) return 0;
        for (uint32_t d = 0; d < last; d++)
            if (in->step[d] % width) return 0;
    }
    return 1;
}

void ortc_cuda_program_shape(const ortc_cuda_maker *m, const uint32_t *ports, const ortc_view *in,
                             const ortc_view *out, ortc_cu_program *p)
{
    const int width = ortc_cu_width(m->registers);
    memset(p, 0, sizeof *p);
    p->n_code = m->n_code;
    p->n_temps = m->n_temps;
    memcpy(p->code, m->code, sizeof p->code);
    memcpy(p->constants, m->constants, sizeof p->constants);
    p->count = p->items = ortc_view_count(out);
    p->out = out->data;
    p->out_dtype = out->dtype;
    for (uint32_t i = 0; i < m->n_in; i++) {
        p->in[i].data = in[ports[i]].data;
        p->in[i].dtype = in[ports[i]].dtype;
    }
    if (!p->count) return;
    p->rank = merge(in, ports, m->n_in, out, p);
    for (uint32_t i = 0; i < m->n_in; i++) p->in[i].flat = p->rank == 1 && p->in[i].step[0] == 1;
    p->vector = can_be_vector(p, m->n_in, width);
    if (p->vector) {
        int64_t *row = &p->dims[p->rank - 1];
        *row = (*row + width - 1) / width;
        for (uint32_t i = 0; i < m->n_in; i++) p->in[i].step[p->rank - 1] *= width;
        p->items = 1;
        for (uint32_t d = 0; d < p->rank; d++) p->items *= p->dims[d];
    }
    p->wide = p->items >= INT64_C(1) << 31;
    for (uint32_t d = 0; d < p->rank; d++) {
        p->inverses[d] = 1.0 / (double)p->dims[d];
        if (!p->wide) p->divisors[d] = ortc_cu_divisor_of((uint32_t)p->dims[d]);
    }
}

/* Whether an input is as the result is: steps of items are those of a dense tensor. */
static int is_dense(const ortc_cu_program *p, const ortc_cu_input *in)
{
    int64_t step = ortc_cu_width(ORTC_CU_F32);
    for (uint32_t d = p->rank; d-- > 0; step *= p->dims[d])
        if (in->step[d] != step) return 0;
    return 1;
}

/* A load and one operation, all of one type: most programs, and they are compiled (direct_cuda.h). */
static int launch_direct(const ortc_cu_program *p, void *queue, int *error)
{
    const ortc_cu_instruction *op = &p->code[1];
    const ortc_cu_input *x = &p->in[0], *a = op->operand < ORTC_CU_INPUTS ? &p->in[op->operand] : NULL;
    const int64_t width = p->out_dtype == ORTC_F32 ? 4 : 8;
    const uint32_t last = p->rank - 1;
    if (p->n_code != 2 || p->code[0].op != ORTC_CU_LOAD || p->code[0].operand != 0 || !p->vector ||
        p->count % width || p->count / width >= INT64_C(1) << 31 || !(F32_LIKE >> p->out_dtype & 1))
        return 0;
    if (a && !is_dense(p, x) && (op->op == ORTC_CU_ADD || op->op == ORTC_CU_MUL)) {
        const ortc_cu_input *other = a;
        a = x;
        x = other;
    }
    if (!is_dense(p, x) || x->dtype != p->out_dtype) return 0;
    ortc_cu_direct d = {.y = p->out, .x = x->data, .packs = p->count / width, .dtype = p->out_dtype};
    if (op->operand == ORTC_CU_NONE) return ortc_cu_direct_unary(op->op, &d, queue, error);
    if (op->operand != ORTC_CU_SELF && op->operand & ORTC_CU_CONSTANT) {
        d.number = (float)p->constants[op->operand & (ORTC_CU_CONSTANT - 1)];
        return ortc_cu_direct_unary(op->op, &d, queue, error) ||
               ortc_cu_direct_binary(op->op, &d, queue, error);
    }
    if (!a || a->dtype != p->out_dtype) return 0;
    d.a = a->data;
    if (is_dense(p, a)) return ortc_cu_direct_binary(op->op, &d, queue, error);
    /* whole items: rows of a result with several dims */
    const int64_t row = p->dims[last] * ortc_cu_width(ORTC_CU_F32) / width;
    if (last != 1 || a->step[0] != 0 || a->step[1] != ortc_cu_width(ORTC_CU_F32)) return 0;
    d.repeated = 1;
    d.row = ortc_cu_divisor_of((uint32_t)row);
    return ortc_cu_direct_binary(op->op, &d, queue, error);
}

int ortc_cuda_program_launch(int registers, const ortc_cu_program *p, void *queue)
{
    int error;
    if (!p->count) return 0;
    if (registers == ORTC_CU_F32 && launch_direct(p, queue, &error)) return error;
    switch (registers) {
    case ORTC_CU_F32: return ortc_cu_interpret_f32(p, queue);
    case ORTC_CU_F64: return ortc_cu_interpret_f64(p, queue);
    case ORTC_CU_I64: return ortc_cu_interpret_i64(p, queue);
    default: return ortc_cu_interpret_u64(p, queue);
    }
}
