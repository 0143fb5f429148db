/* kernels/elementwise/cuda_elementwise.c: single nodes as programs of their own (cuda_program.h), for every
 * operator that cuda_program.c knows. Integers are computed exactly, in registers of 64 bits.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/shape.h"
#include "kernels/elementwise/cuda_maker.h"

typedef struct single {
    ortc_cuda_maker program;
    uint32_t ports[ORTC_CU_INPUTS];
} single;

static int is_scalar(const ortc_port *p)
{
    for (int32_t d = 0; d < p->rank; d++)
        if (p->dims[d] != 1) return 0;
    return p->rank >= 0;
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const int clips = !strcmp(ortc_node_op(n), "Clip");
    (void)device;
    if (ortc_cuda_registers_of(n) < 0) return ortc_no(why, "not these types or attributes");
    const ortc_port y = ortc_node_out(n, 0);
    if (y.rank < 0 || y.rank > ORTC_CU_RANK)
        return ortc_no(why, "the rank must be known and at most %d", ORTC_CU_RANK);
    for (uint32_t i = 0; i < ortc_node_n_in(n); i++) {
        const ortc_port p = ortc_node_in(n, i);
        if (p.type && (p.rank < 0 || p.rank > y.rank) && !(clips && i && p.rank >= 0))
            return ortc_no(why, "the rank of input %u must be known", i);
        if (clips && i && p.type && !is_scalar(&p)) return ortc_no(why, "bounds must have one element");
    }
    return ortc_node_n_in(n) > ORTC_CU_INPUTS ? ortc_no(why, "at most %d inputs", ORTC_CU_INPUTS) : ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    single *s = calloc(1, sizeof *s);
    if (!s) return ORTC_OUT_OF_MEMORY;
    ortc_cuda_maker_init(&s->program, ortc_cuda_registers_of(n));
    if (!ortc_cuda_make(&s->program, n, 0)) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "no program for operator '%s'", ortc_node_op(n));
    }
    for (uint32_t i = 0; i < s->program.n_in; i++)
        while (ortc_node_in(n, s->ports[i]).edge != s->program.edges[i]) s->ports[i]++;
    *out = s;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    if (p->n_in == 1 && p->in[0].dtype == p->out[0].dtype &&
        ((const single *)state)->program.code[0].op == ORTC_CU_LOAD &&
        ((const single *)state)->program.n_code == 1)
        ortc_plan_view(p, 0, 0, 0); /* a cast to what it is */
    double bytes = 0;
    for (uint32_t i = 0; i < p->n_in; i++) {
        if (!p->in[i].dtype) continue;
        ortc_plan_in_place(p, 0, i);
        bytes += (double)ortc_view_count(&p->in[i]) * ortc_dtype_bits(p->in[i].dtype) / 8;
    }
    ortc_plan_cost(p, (double)ortc_view_count(&p->out[0]),
                   bytes + (double)ortc_view_count(&p->out[0]) * ortc_dtype_bits(p->out[0].dtype) / 8);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const single *s = state;
    ortc_cu_program p;
    (void)pstate;
    ortc_cuda_program_shape(&s->program, s->ports, c->in, &c->out[0], &p);
    return ortc_cuda_done(c, ortc_cuda_program_launch(s->program.registers, &p, c->queue));
}

const ortc_kernel ortc_cuda_elementwise = {.size = sizeof(ortc_kernel),
                                           .name = "elementwise.cuda",
                                           .supports = supports,
                                           .prepare = prepare,
                                           .plan = plan,
                                           .run = run};

#define BOOL ORTC_TYPE(ORTC_BOOL)
#define PLAIN (ORTC_TYPES_NUM | BOOL)
#define K(op, since, ...) ORTC_KERNEL(op, since, ORTC_NEWEST, (__VA_ARGS__), &ortc_cuda_elementwise)
ORTC_KERNELS(cuda, elementwise, K("Add", 14, ORTC_TYPES_NUM), K("Sub", 14, ORTC_TYPES_NUM),
             K("Mul", 14, ORTC_TYPES_NUM), K("Div", 14, ORTC_TYPES_NUM),
             K("Pow", 15, ORTC_TYPES_FLOAT | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64), ORTC_TYPES_NUM),
             K("And", 7, BOOL), K("Or", 7, BOOL), K("Xor", 7, BOOL), K("Not", 1, BOOL), K("Equal", 19, PLAIN),
             K("Greater", 13, ORTC_TYPES_NUM), K("Less", 13, ORTC_TYPES_NUM),
             K("GreaterOrEqual", 16, ORTC_TYPES_NUM), K("LessOrEqual", 16, ORTC_TYPES_NUM),
             K("Min", 13, ORTC_TYPES_NUM), K("Max", 13, ORTC_TYPES_NUM), K("Sum", 13, ORTC_TYPES_FLOAT),
             K("Mean", 13, ORTC_TYPES_FLOAT), K("Neg", 13, ORTC_TYPES_FLOAT | ORTC_TYPES_INT),
             K("Abs", 13, ORTC_TYPES_NUM), K("Sign", 13, ORTC_TYPES_NUM), K("Sqrt", 13, ORTC_TYPES_FLOAT),
             K("Exp", 13, ORTC_TYPES_FLOAT), K("Log", 13, ORTC_TYPES_FLOAT),
             K("Reciprocal", 13, ORTC_TYPES_FLOAT), K("Floor", 13, ORTC_TYPES_FLOAT),
             K("Ceil", 13, ORTC_TYPES_FLOAT), K("Round", 22, ORTC_TYPES_FLOAT),
             K("Sin", 22, ORTC_TYPES_FLOAT), K("Cos", 22, ORTC_TYPES_FLOAT), K("Tan", 22, ORTC_TYPES_FLOAT),
             K("Asin", 22, ORTC_TYPES_FLOAT), K("Acos", 22, ORTC_TYPES_FLOAT),
             K("Atan", 22, ORTC_TYPES_FLOAT), K("Sinh", 22, ORTC_TYPES_FLOAT),
             K("Cosh", 22, ORTC_TYPES_FLOAT), K("Asinh", 22, ORTC_TYPES_FLOAT),
             K("Acosh", 22, ORTC_TYPES_FLOAT), K("Atanh", 22, ORTC_TYPES_FLOAT),
             K("IsNaN", 20, ORTC_TYPES_FLOAT, BOOL), K("IsInf", 20, ORTC_TYPES_FLOAT, BOOL),
             K("Where", 16, BOOL, PLAIN), K("Cast", 28, PLAIN, PLAIN));
