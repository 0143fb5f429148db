/* The services of op.h as far as kernels of the cpu provider use them. */
#include "mock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "pool.h"

/* ---- Node ---------------------------------------------------------------------------------------------- */

static ortc_dtype dtype_of(const mock_node *n) { return n->dtype ? n->dtype : ORTC_F32; }
static const mock_node *mock(const ortc_node *n) { return (const mock_node *)(const void *)n; }

static const char *node_empty(const ortc_node *n) { return n ? "" : NULL; }
static const char *node_op(const ortc_node *n) { return mock(n)->op; }
static int32_t node_version(const ortc_node *n) { return n ? ORTC_NEWEST : 0; }
static uint32_t node_n_in(const ortc_node *n) { return mock(n)->n_in; }
static uint32_t node_n_out(const ortc_node *n) { return n ? 1 : 0; }

static void describe(const mock_node *n, const mock_tensor *t, ortc_port *out)
{
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->rank = -1;
    if (!t || t->rank < 0) return;
    out->type = &n->type;
    out->rank = t->rank;
    out->dtype = dtype_of(n);
    out->dims = t->dims;
    out->flags = t->is_const ? ORTC_PORT_CONST : 0;
    out->data = t->is_const ? t->data : NULL;
}
static void node_in(const ortc_node *n, uint32_t i, ortc_port *out)
{
    describe(mock(n), i < mock(n)->n_in ? &mock(n)->in[i] : NULL, out);
}
static void node_out(const ortc_node *n, uint32_t i, ortc_port *out)
{
    describe(mock(n), i == 0 ? &mock(n)->out : NULL, out);
}
static void node_attr(const ortc_node *n, const char *name, ortc_attr *out)
{
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    for (const mock_attr *a = mock(n)->attrs; a && a->name; a++) {
        if (strcmp(a->name, name)) continue;
        out->kind = a->kind, out->i = a->i, out->f = a->f, out->count = a->count;
        if (a->kind == ORTC_ATTR_STRING) out->u.s = a->s;
        if (a->kind == ORTC_ATTR_INTS) out->u.ints = a->ints;
    }
}
static const struct ortc_pointwise *node_epilogue(const ortc_node *n) { return mock(n)->epilogue; }
static const ortc_graph *node_body(const ortc_node *n)
{
    (void)n;
    return NULL;
}
static const ortc_node_api node_api = {sizeof node_api, node_empty, node_op,       node_version,
                                       node_empty,      node_n_in,  node_n_out,    node_in,
                                       node_out,        node_attr,  node_epilogue, node_body};

/* ---- Prep, why ----------------------------------------------------------------------------------------- */

static ortc_status say(ortc_status s, const char *fmt, va_list args)
{
    printf("  kernel: ");
    vprintf(fmt, args);
    printf("\n");
    return s;
}

typedef struct mock_prep {
    const ortc_prep_api *api;
} mock_prep;
static const ortc_device *prep_device(const ortc_prep *p)
{
    (void)p;
    return NULL;
}
static ortc_status prep_fail(ortc_prep *p, ortc_status s, const char *fmt, va_list args)
{
    (void)p;
    return say(s, fmt, args);
}
static const ortc_prep_api prep_api = {sizeof prep_api, prep_device, prep_fail};

/* That a kernel is not for a node is no failure. */
static void why_because(ortc_why *w, const char *fmt, va_list args) { (void)w, (void)fmt, (void)args; }
static const ortc_why_api why_api = {sizeof why_api, why_because};

/* ---- Call ---------------------------------------------------------------------------------------------- */

typedef struct mock_call {
    ortc_call base;
    pool *threads; /* NULL: chunks in reverse order */
    void *scratch;
} mock_call;

static ortc_status call_parallel(ortc_call *c, int64_t n, int64_t grain, ortc_parallel_fn body, void *arg)
{
    mock_call *m = (mock_call *)c;
    if (m->threads) {
        const ortc_product_threads th = pool_threads(m->threads);
        return th.parallel(th.context, n, grain, body, arg);
    }
    for (int64_t i = (n - 1) / grain * grain; n > 0 && i >= 0; i -= grain)
        body(arg, i, i + grain < n ? i + grain : n, m->scratch);
    return ORTC_OK;
}
static ortc_status call_fail(ortc_call *c, ortc_status s, const char *fmt, va_list args)
{
    (void)c;
    return say(s, fmt, args);
}
static ortc_status call_poll(ortc_call *c)
{
    (void)c;
    return ORTC_OK;
}
static const ortc_call_api call_api = {.size = sizeof call_api,
                                       .parallel = call_parallel,
                                       .poll = call_poll,
                                       .fail = call_fail};

/* ---- Plan ---------------------------------------------------------------------------------------------- */

typedef struct mock_plan {
    ortc_plan base;
    size_t workspace, scratch;
    ortc_packed packed[4];
    guard packed_memory[4];
    int n_packed;
} mock_plan;

static void plan_workspace(ortc_plan *p, size_t bytes, size_t each)
{
    ((mock_plan *)p)->workspace = bytes, ((mock_plan *)p)->scratch = each;
}
static void plan_may_reuse(ortc_plan *p, uint32_t out, uint32_t in) { (void)p, (void)out, (void)in; }
static ortc_status plan_pack(ortc_plan *p, uint32_t in, const ortc_packing *how, const void *param,
                             size_t bytes, const ortc_packed **out)
{
    mock_plan *m = (mock_plan *)p;
    (void)bytes;
    const size_t size = how->bytes(&p->in[in], param);
    guard *g = &m->packed_memory[m->n_packed];
    *g = guard_open(size, 1);
    m->packed[m->n_packed] = (ortc_packed){g->data, size};
    *out = &m->packed[m->n_packed++];
    mock_call c = {.base = {.api = &call_api, .size = sizeof(ortc_call)}};
    return how->fill(g->data, &p->in[in], param, &c.base);
}
static void plan_cost(ortc_plan *p, double flops, double bytes) { (void)p, (void)flops, (void)bytes; }
static ortc_status plan_fail(ortc_plan *p, ortc_status s, const char *fmt, va_list args)
{
    (void)p;
    return say(s, fmt, args);
}
static const ortc_plan_api plan_api = {.size = sizeof plan_api,
                                       .workspace = plan_workspace,
                                       .may_reuse = plan_may_reuse,
                                       .pack = plan_pack,
                                       .cost = plan_cost,
                                       .fail = plan_fail};

/* ---- One run ------------------------------------------------------------------------------------------- */

const ortc_kernel *mock_kernel(const ortc_kernel_table *t, const char *op)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (!strcmp(t->entries[i].op, op)) return t->entries[i].kernel;
    return NULL;
}

int64_t mock_count(const mock_tensor *t)
{
    int64_t n = 1;
    for (int32_t i = 0; i < t->rank; i++) n *= t->dims[i];
    return t->rank < 0 ? 0 : n;
}

static ortc_view view_of(const mock_node *n, const mock_tensor *t, int planning)
{
    ortc_view v = {.dtype = t->rank < 0 ? 0 : dtype_of(n),
                   .rank = t->rank < 0 ? 0 : t->rank,
                   .dims = t->dims};
    v.data = planning && !t->is_const ? NULL : t->data;
    v.flags = (uint16_t)(ORTC_VIEW_HOST | (t->is_const ? ORTC_VIEW_CONST : 0));
    return v;
}

struct mock_session {
    const ortc_kernel *k;
    mock_node *n;
    mock_plan plan;
    mock_call call;
    ortc_view in[MOCK_PORTS], out;
    void *state, *pstate, *slot;
    guard workspace, scratch; /* 256-byte aligned, with the guard right behind */
    int planned, threads;
};

static ortc_status prepare(mock_session *m)
{
    const ortc_node *node = (const ortc_node *)(const void *)m->n;
    mock_prep prep = {&prep_api};
    struct {
        const ortc_why_api *api;
    } why = {&why_api};
    ortc_status s = m->k->supports ? m->k->supports(node, NULL, (ortc_why *)(void *)&why) : ORTC_OK;
    if (!s && m->k->prepare) s = m->k->prepare(node, (ortc_prep *)(void *)&prep, &m->state);
    if (s) return s;
    m->out = view_of(m->n, &m->n->out, 1);
    m->out.data = NULL;
    for (uint32_t i = 0; i < m->n->n_in; i++) m->in[i] = view_of(m->n, &m->n->in[i], 1);
    m->plan.base = (ortc_plan){.api = &plan_api,
                               .size = sizeof(ortc_plan),
                               .n_in = m->n->n_in,
                               .n_out = 1,
                               .in = m->in,
                               .out = &m->out};
    m->planned = 1;
    return m->k->plan ? m->k->plan(m->state, &m->plan.base, &m->pstate) : ORTC_OK;
}

const ortc_kernel *mock_choose(const ortc_kernel_table *t, mock_node *n)
{
    const ortc_kernel *best = NULL;
    double least = 0;
    ortc_view in[MOCK_PORTS], out = view_of(n, &n->out, 1);
    mock_prep prep = {&prep_api};
    struct {
        const ortc_why_api *api;
    } why = {&why_api};
    n->api = &node_api;
    n->type = (ortc_type){.kind = ORTC_KIND_TENSOR, .dtype = dtype_of(n)};
    for (uint32_t i = 0; i < n->n_in; i++) in[i] = view_of(n, &n->in[i], 1);
    const ortc_question q = {.size = sizeof q, .n_in = n->n_in, .n_out = 1, .in = in, .out = &out};
    for (uint32_t i = 0; i < t->count; i++) {
        const ortc_kernel *k = t->entries[i].kernel;
        ortc_offer offer = {.size = sizeof offer};
        void *state = NULL;
        if (strcmp(t->entries[i].op, n->op) || !(t->entries[i].types[0] & ORTC_TYPE(n->type.dtype))) continue;
        if (k->supports && k->supports((const ortc_node *)(const void *)n, NULL, (ortc_why *)(void *)&why))
            continue;
        if (!k->choose) return best ? best : k;
        if (k->prepare && k->prepare((const ortc_node *)(const void *)n, (ortc_prep *)(void *)&prep, &state))
            continue;
        if (!k->choose(state, &q, &offer, (ortc_why *)(void *)&why) && (!best || offer.clocks < least)) {
            best = k;
            least = offer.clocks;
        }
        if (state) k->release ? k->release(state) : free(state);
    }
    return best;
}

mock_session *mock_open(const ortc_kernel *k, mock_node *n, int threads)
{
    mock_session *m = calloc(1, sizeof *m);
    m->k = k, m->n = n, m->threads = threads;
    n->api = &node_api;
    n->type = (ortc_type){.kind = ORTC_KIND_TENSOR, .dtype = dtype_of(n)};
    const ortc_status s = prepare(m);
    m->workspace = guard_open((m->plan.workspace + 255) / 256 * 256, 1);
    m->scratch = guard_open((m->plan.scratch + 255) / 256 * 256, 1);
    m->call.threads = threads ? pool_open(threads, m->plan.scratch) : NULL;
    m->call.scratch = m->scratch.data;
    if (s) {
        mock_close(m);
        return NULL;
    }
    return m;
}

int mock_execute(mock_session *m)
{
    m->out = view_of(m->n, &m->n->out, 0);
    for (uint32_t i = 0; i < m->n->n_in; i++) m->in[i] = view_of(m->n, &m->n->in[i], 0);
    m->call.base = (ortc_call){.api = &call_api,
                               .size = sizeof(ortc_call),
                               .n_in = m->n->n_in,
                               .n_out = 1,
                               .in = m->in,
                               .out = &m->out,
                               .workspace = m->workspace.data,
                               .slot = &m->slot};
    return m->k->run(m->state, m->pstate, &m->call.base);
}

struct pool *mock_pool(mock_session *m) { return m->call.threads; }

int mock_close(mock_session *m)
{
    int bad = !guard_intact(&m->workspace) || !guard_intact(&m->scratch);
    for (int i = 0; i < m->plan.n_packed; i++) {
        bad |= !guard_intact(&m->plan.packed_memory[i]);
        guard_close(&m->plan.packed_memory[i]);
    }
    if (m->call.threads) pool_close(m->call.threads);
    guard_close(&m->workspace), guard_close(&m->scratch);
    if (m->slot && m->k->release_slot) m->k->release_slot(m->slot);
    if (m->planned && m->k->release_plan)
        m->k->release_plan(m->state, m->pstate);
    else
        free(m->pstate);
    if (m->planned && m->k->release)
        m->k->release(m->state);
    else
        free(m->state);
    free(m);
    return bad ? -1 : 0;
}

int mock_run(const ortc_kernel *k, mock_node *n, int threads)
{
    mock_session *m = mock_open(k, n, threads);
    if (!m) return ORTC_INTERNAL;
    const int s = mock_execute(m), t = mock_close(m);
    return s ? s : t;
}

static ortc_status serial(ortc_call *c, int64_t n, int64_t grain, ortc_parallel_fn body, void *arg)
{
    (void)c, (void)grain;
    if (n > 0) body(arg, 0, n, NULL);
    return ORTC_OK;
}
static const ortc_call_api serial_api = {.size = sizeof serial_api, .parallel = serial};
ortc_call mock_serial(void) { return (ortc_call){.api = &serial_api, .size = sizeof(ortc_call)}; }

static ortc_status pack_serially(ortc_plan *base, uint32_t in, const ortc_packing *how, const void *param,
                                 size_t bytes, const ortc_packed **out)
{
    mock_packing *p = (mock_packing *)base;
    ortc_call call = mock_serial();
    (void)bytes;
    const size_t size = how->bytes(&base->in[in], param);
    p->memory = guard_open((size + 63) / 64 * 64, 1);
    p->packed = (ortc_packed){p->memory.data, size};
    *out = &p->packed;
    return how->fill(p->memory.data, &base->in[in], param, &call);
}
mock_packing mock_packing_of(const ortc_view *in)
{
    static const ortc_plan_api api = {.size = sizeof api, .pack = pack_serially};
    return (mock_packing){.base = {.api = &api, .size = sizeof(ortc_plan), .n_in = 1, .in = in}};
}
