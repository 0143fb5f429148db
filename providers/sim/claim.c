/* providers/sim/claim.c: groups of nodes taken as one, and a compiler for them: a list of instructions on f32
 * tensors (sim.h).
 *
 * compile says whether it can; the kernel that it gives does the work in prepare, from the body of the
 * group's node. Shapes of the values in between follow from those of the inputs, when they are known: in
 * plan.
 */
#include "sim.h"

#define MAX_GROUP 64
#define MAX_RANK 8

enum { ADD, SUB, MUL, RELU, MATMUL, NONE };

static int code_of(const ortc_node *n)
{
    static const char *const names[] = {"Add", "Sub", "Mul", "Relu", "MatMul"};
    if (*ortc_node_domain(n)) return NONE;
    for (int i = 0; i < NONE; i++)
        if (!strcmp(ortc_node_op(n), names[i]) && ortc_node_in(n, 0).dtype == ORTC_F32) return i;
    return NONE;
}

static int shares(const ortc_node *n, const ortc_node *const *group, uint32_t count)
{
    for (uint32_t g = 0; g < count; g++)
        for (uint32_t i = 0; i < ortc_node_n_in(n); i++)
            if (ortc_node_in(n, i).edge == ortc_node_out(group[g], 0).edge) return 1;
    return 0;
}

ortc_status sim_claim(ortc_device *device, const ortc_graph *graph,
                      ortc_status (*take)(void *, const ortc_claim *), void *arg)
{
    const sim_device *d = (const sim_device *)device;
    const ortc_node *group[MAX_GROUP], *next;
    uint32_t count = 0, wanted = d->claim > MAX_GROUP ? MAX_GROUP : (uint32_t)d->claim;
    if (!wanted) return ORTC_OK;
    for (const ortc_node *n = ortc_graph_next(graph, NULL); n; n = next) {
        next = ortc_graph_next(graph, n);
        if (code_of(n) == NONE) continue;
        if (count && !shares(n, group, count)) count = 0;
        group[count++] = n;
        if (count < wanted) continue;
        ortc_claim claim;
        claim.size = ORTC_SIZED(ortc_claim);
        claim.n = count;
        claim.flags = 0;
        claim.nodes = group;
        take(arg, &claim); /* a no is fine: the nodes are placed singly then */
        count = 0;
    }
    return ORTC_OK;
}

/* ---- The compiled form --------------------------------------------------------------------------------- */

typedef struct operand {
    const float *constant;
    int32_t input; /* of the group; -1 */
    int32_t rank;
    int64_t dims[MAX_RANK];
} operand;
typedef struct instruction {
    int code;
    uint32_t a, b, out; /* operands */
} instruction;
typedef struct program {
    uint32_t n_operands, n_instructions, n_out;
    operand operands[4 * MAX_GROUP];
    uint32_t edges[4 * MAX_GROUP]; /* of the body, by operand */
    instruction instructions[MAX_GROUP];
    uint32_t out[MAX_GROUP]; /* operand per output of the group */
    float *constants[4 * MAX_GROUP];
} program;

static int find(program *p, const ortc_port *port, int32_t input)
{
    for (uint32_t i = 0; i < p->n_operands; i++)
        if (p->edges[i] == port->edge) return (int)i;
    if (p->n_operands == 4 * MAX_GROUP) return -1;
    operand *o = &p->operands[p->n_operands];
    p->edges[p->n_operands] = port->edge;
    o->input = input;
    if (port->data) { /* a constant: its bytes may lie anywhere */
        int64_t count = 1;
        o->rank = port->rank;
        for (int32_t i = 0; i < port->rank && i < MAX_RANK; i++) count *= o->dims[i] = port->dims[i];
        float *copy = (float *)malloc((size_t)count * sizeof(float) + 1);
        if (!copy || port->rank > MAX_RANK) {
            free(copy);
            return -1;
        }
        memcpy(copy, port->data, (size_t)count * sizeof(float));
        p->constants[p->n_operands] = copy;
        o->constant = copy;
    }
    return (int)p->n_operands++;
}

static ortc_status compile_body(const ortc_graph *body, program *p)
{
    for (uint32_t i = 0; i < ortc_graph_n_in(body); i++) {
        ortc_port port = ortc_graph_in(body, i);
        if (port.dtype != ORTC_F32 || port.rank < 0 || port.rank > MAX_RANK || find(p, &port, (int32_t)i) < 0)
            return ORTC_UNSUPPORTED;
    }
    for (const ortc_node *n = ortc_graph_next(body, NULL); n; n = ortc_graph_next(body, n)) {
        ortc_port a = ortc_node_in(n, 0), b = ortc_node_in(n, 1), out = ortc_node_out(n, 0);
        int code = code_of(n);
        if (code == NONE || p->n_instructions == MAX_GROUP ||
            (code == MATMUL && (a.rank != 2 || b.rank != 2)))
            return ORTC_UNSUPPORTED;
        int ia = find(p, &a, -1), ib = code == RELU ? ia : find(p, &b, -1), io = find(p, &out, -1);
        if (ia < 0 || ib < 0 || io < 0) return ORTC_UNSUPPORTED;
        instruction *i = &p->instructions[p->n_instructions++];
        i->code = code;
        i->a = (uint32_t)ia;
        i->b = (uint32_t)ib;
        i->out = (uint32_t)io;
    }
    for (uint32_t i = 0; i < ortc_graph_n_out(body); i++) {
        ortc_port port = ortc_graph_out(body, i);
        int at = find(p, &port, -1);
        if (at < 0 || p->n_out == MAX_GROUP) return ORTC_UNSUPPORTED;
        p->out[p->n_out++] = (uint32_t)at;
    }
    return ORTC_OK;
}

static void release(void *state)
{
    program *p = (program *)state;
    for (uint32_t i = 0; i < p->n_operands; i++) free(p->constants[i]);
    free(p);
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    program *p = (program *)calloc(1, sizeof *p);
    if (!p) return ORTC_OUT_OF_MEMORY;
    ortc_status s = compile_body(ortc_node_body(n), p);
    if (s != ORTC_OK) {
        release(p);
        return ortc_prep_fail(prep, s, "the group has changed since it was compiled");
    }
    *out = p;
    return ORTC_OK;
}

/* ---- Running it ---------------------------------------------------------------------------------------- */

typedef struct group_task {
    sim_task task;
    const program *p;
    uint32_t n_in, n_out;
    ortc_view views[2 * MAX_GROUP];
} group_task;

static int64_t elements(const operand *o)
{
    int64_t n = 1;
    for (int32_t i = 0; i < o->rank; i++) n *= o->dims[i];
    return n;
}

/* Offset of an operand's element at the broadcast index of the result. */
static int64_t at(const operand *o, const operand *result, int64_t index)
{
    int64_t offset = 0, stride = 1;
    for (int32_t i = 0; i < result->rank; i++) {
        int32_t k = o->rank - 1 - i;
        int64_t extent = result->dims[result->rank - 1 - i], here = index % extent;
        index /= extent;
        if (k < 0) continue;
        offset += o->dims[k] == 1 ? 0 : here * stride;
        stride *= o->dims[k];
    }
    return offset;
}

static void shape(int code, const operand *a, const operand *b, operand *out)
{
    if (code == MATMUL) {
        out->rank = 2;
        out->dims[0] = a->dims[0];
        out->dims[1] = b->dims[1];
        return;
    }
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int32_t i = 0; i < out->rank; i++) {
        int64_t da = i < a->rank ? a->dims[a->rank - 1 - i] : 1,
                db = i < b->rank ? b->dims[b->rank - 1 - i] : 1;
        out->dims[out->rank - 1 - i] = da == 1 ? db : da;
    }
}

static void compute(int code, const operand *oa, const float *a, const operand *ob, const float *b,
                    const operand *oo, float *out)
{
    int64_t n = elements(oo);
    for (int64_t i = 0; i < n; i++) {
        if (code == MATMUL) {
            int64_t row = i / oo->dims[1], column = i % oo->dims[1];
            double sum = 0;
            for (int64_t k = 0; k < oa->dims[1]; k++)
                sum += (double)a[row * oa->dims[1] + k] * (double)b[k * ob->dims[1] + column];
            out[i] = (float)sum;
            continue;
        }
        float x = a[at(oa, oo, i)], y = b[at(ob, oo, i)];
        out[i] = code == ADD ? x + y : code == SUB ? x - y : code == MUL ? x * y : x < 0 ? 0 : x;
    }
}

static void run_group(sim_task *task)
{
    group_task *t = (group_task *)(void *)task;
    const program *p = t->p;
    operand *operands = (operand *)malloc(sizeof p->operands);
    float **data = (float **)calloc(p->n_operands + 1, sizeof *data);
    int *own = (int *)calloc(p->n_operands + 1, sizeof *own);
    task->status = operands && data && own ? ORTC_OK : ORTC_OUT_OF_MEMORY;
    if (operands) memcpy(operands, p->operands, sizeof p->operands);
    for (uint32_t i = 0; i < p->n_operands && task->status == ORTC_OK; i++) {
        operand *o = &operands[i];
        if (o->constant) data[i] = (float *)(uintptr_t)o->constant;
        if (o->input < 0) continue;
        const ortc_view *v = &t->views[o->input];
        o->rank = v->rank;
        for (int32_t k = 0; k < v->rank; k++) o->dims[k] = v->dims[k];
        if (!(data[i] = (float *)sim_real(v->data))) task->status = ORTC_DEVICE_ERROR;
    }
    for (uint32_t i = 0; i < p->n_instructions && task->status == ORTC_OK; i++) {
        const instruction *in = &p->instructions[i];
        shape(in->code, &operands[in->a], &operands[in->b], &operands[in->out]);
        data[in->out] = (float *)malloc((size_t)elements(&operands[in->out]) * sizeof(float) + 1);
        own[in->out] = 1;
        if (!data[in->out])
            task->status = ORTC_OUT_OF_MEMORY;
        else
            compute(in->code, &operands[in->a], data[in->a], &operands[in->b], data[in->b],
                    &operands[in->out], data[in->out]);
    }
    for (uint32_t i = 0; i < t->n_out && task->status == ORTC_OK; i++) {
        void *to = t->views[t->n_in + i].dtype ? sim_real(t->views[t->n_in + i].data) : NULL;
        if (to) memcpy(to, data[p->out[i]], (size_t)elements(&operands[p->out[i]]) * sizeof(float));
    }
    for (uint32_t i = 0; own && data && i < p->n_operands; i++)
        if (own[i]) free(data[i]);
    free(operands);
    free(data);
    free(own);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *call)
{
    (void)pstate;
    if (call->n_in + call->n_out > 2 * MAX_GROUP)
        return ortc_call_fail(call, ORTC_LIMIT, "more than %d operands", 2 * MAX_GROUP);
    group_task *t = (group_task *)calloc(1, sizeof *t);
    if (!t) return ORTC_OUT_OF_MEMORY;
    t->task.run = run_group;
    t->p = (const program *)state;
    t->n_in = call->n_in;
    t->n_out = call->n_out;
    memcpy(t->views, call->in, call->n_in * sizeof *t->views);
    memcpy(t->views + call->n_in, call->out, call->n_out * sizeof *t->views);
    sim_push((sim_queue *)call->queue, &t->task);
    return ORTC_OK;
}

ortc_status sim_compile(ortc_device *device, const ortc_graph *body, const ortc_cache *cache,
                        const ortc_kernel **out, ortc_why *why)
{
    static const ortc_kernel kernel = {
        ORTC_SIZED(ortc_kernel), 0, "sim.group", 0, 0, NULL, prepare, NULL, run, NULL, NULL, release, NULL};
    program *p = (program *)calloc(1, sizeof *p);
    (void)device, (void)cache;
    if (!p) return ORTC_OUT_OF_MEMORY;
    ortc_status s = compile_body(body, p);
    release(p);
    *out = &kernel;
    return s == ORTC_OK ? s
                        : ortc_no(why, "the group has a node, a type or a rank that is not compiled here");
}
