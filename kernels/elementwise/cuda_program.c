/* kernels/elementwise/cuda_program.c: code, shapes and addresses to launches (cuda_program.h). */
#include <string.h>

#include "kernels/elementwise/cuda_code.h"
#include "kernels/elementwise/direct_cuda.h"

#define F32_LIKE (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16))

/* Which of a result's dims one input follows: elements from one to the next, 0 where it is broadcast. */
static void steps_of(const ortc_view *x, uint32_t behind, const ortc_view *y, int64_t *steps)
{
    int64_t n = 1;
    for (int32_t d = y->rank - 1; d >= 0; d--) {
        const int32_t own = d - (y->rank - x->rank) + (int32_t)behind;
        const int64_t extent = own >= 0 && own < x->rank ? x->dims[own] : 1;
        steps[d] = extent != 1 ? n : 0;
        n *= extent;
    }
}

/* Dims that lie together in every input become one. */
static uint32_t merge(const ortc_cu_code *m, const ortc_view *in, const ortc_view *y, ortc_cu_program *p)
{
    const uint32_t n_in = m->n_in;
    int64_t steps[ORTC_CU_INPUTS][ORTC_CU_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < n_in; i++) steps_of(&in[m->ports[i]], m->behind[i], y, steps[i]);
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

void ortc_cu_shape(const ortc_cu_code *m, const ortc_view *in, const ortc_view *out, ortc_cu_program *p)
{
    const int width = ortc_cu_width(m->registers);
    const uint8_t *ports = m->ports;
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
    p->rank = merge(m, in, out, p);
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
    const ortc_cu_input *x = &p->in[p->code[0].operand],
                        *a = op->operand < ORTC_CU_INPUTS ? &p->in[op->operand] : NULL;
    const int64_t width = p->out_dtype == ORTC_F32 ? 4 : 8;
    const uint32_t last = p->rank - 1;
    if (p->n_code != 2 || p->code[0].op != ORTC_CU_LOAD || p->code[0].operand >= ORTC_CU_INPUTS ||
        !p->vector || p->count % width || p->count / width >= INT64_C(1) << 31 ||
        !(F32_LIKE >> p->out_dtype & 1))
        return 0;
    if (a && !is_dense(p, x) && (op->op == ORTC_CU_ADD || op->op == ORTC_CU_MUL || op->op == ORTC_CU_MAX)) {
        const ortc_cu_input *other = a;
        a = x;
        x = other;
    }
    if (!is_dense(p, x) || x->dtype != p->out_dtype) return 0;
    ortc_cu_direct d = {.y = p->out, .x = x->data, .packs = p->count / width, .dtype = p->out_dtype};
    if (op->operand == ORTC_CU_NONE) return ortc_cu_direct_unary(op->op, &d, queue, error);
    if (op->operand != ORTC_CU_SELF && op->operand & ORTC_CU_CONSTANT) {
        d.number = (float)p->constants[op->operand & (ORTC_CU_CONSTANT - 1)].f;
        return ortc_cu_direct_binary(op->op, &d, queue, error);
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

int ortc_cu_launch(int registers, const ortc_cu_program *p, void *queue)
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
