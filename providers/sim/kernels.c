/* providers/sim/kernels.c: ref's kernels on sim's queues: planned as they are, run later, on addresses that
 * work (sim.h).
 *
 * One kernel per operator that ref has, all with the same functions; which of ref's kernels computes a node
 * is asked when the node is known. What ref reads on the host when it is called (shapes) is copied then, for
 * it runs late.
 */
#include "sim.h"

/* ---- Preparing and planning ---------------------------------------------------------------------------- */

typedef struct state {
    const ortc_kernel *inner;
    void *inner_state;
    sim_device *device;
} state;

typedef struct pstate {
    const ortc_kernel *inner;
    void *inner_state; /* borrowed */
    void *inner_pstate;
    size_t bytes, per_worker; /* of workspace */
} pstate;

/* Kernels that must know extents, run subgraphs or handle values stay on the host. */
#define NOT_HERE (uint32_t)(ORTC_KERNEL_LATE_OUT | ORTC_KERNEL_VALUES)

const ortc_kernel *sim_inner(const sim_device *d, const ortc_node *n, ortc_why *why)
{
    char op[128];
    if (d->only[0]) {
        snprintf(op, sizeof op, "+%s+", ortc_node_op(n));
        if (!strstr(d->only, op)) {
            ortc_no(why, "it was told to take %s only", d->only);
            return NULL;
        }
    }
    const ortc_kernel *k = ortc_host_kernel_for(d->host, "ref", n);
    if (!k || (k->flags & NOT_HERE)) {
        ortc_no(why, k ? "results with late extents, and values that are not tensors, are made on the host"
                       : "ref cannot either");
        return NULL;
    }
    return k;
}

static ortc_status supports(const ortc_node *n, const ortc_device *d, ortc_why *why)
{
    for (uint32_t i = 0; i < ortc_node_n_in(n) + ortc_node_n_out(n); i++) {
        ortc_port port = i < ortc_node_n_in(n) ? ortc_node_in(n, i) : ortc_node_out(n, i - ortc_node_n_in(n));
        if (port.type && (port.type->kind != ORTC_KIND_TENSOR || port.dtype == ORTC_STRING))
            return ortc_no(why, "strings, sequences, maps and optionals are made on the host");
    }
    return sim_inner((const sim_device *)d, n, why) ? ORTC_OK : ORTC_UNSUPPORTED;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    sim_device *d = (sim_device *)ORTC_API_OF(ortc_prep_api, prep)->device(prep);
    state *s = (state *)calloc(1, sizeof *s);
    if (!s) return ORTC_OUT_OF_MEMORY;
    s->device = d;
    s->inner = ortc_host_kernel_for(d->host, "ref", n);
    ortc_status status = s->inner ? ORTC_OK : ortc_prep_fail(prep, ORTC_INTERNAL, "ref has lost its kernel");
    if (status == ORTC_OK && s->inner->prepare) status = s->inner->prepare(n, prep, &s->inner_state);
    if (status != ORTC_OK) {
        free(s);
        return status;
    }
    *out = s;
    return ORTC_OK;
}

static void release(void *p)
{
    state *s = (state *)p;
    if (s->inner_state) (s->inner->release ? s->inner->release : free)(s->inner_state);
    free(s);
}

/* ---- Layouts ------------------------------------------------------------------------------------------- */

/* The one that the device likes, for tensors of this rank; plain: none. */
static ortc_layout liked(const sim_device *d, int32_t rank)
{
    return rank < 3         ? ORTC_PLAIN
           : d->layout == 1 ? ortc_layout_last(rank, 1)
           : d->layout == 2 ? ortc_layout_blocked(1, 4)
                            : ORTC_PLAIN;
}

static ortc_layout wanted(const state *s, const ortc_question *q, const ortc_view *v)
{
    const ortc_view *y = &q->out[0];
    const int fits = v->dtype && v->rank == y->rank && !(v->flags & (ORTC_VIEW_CONST | ORTC_VIEW_LATE)) &&
                     ortc_dtype_bits(v->dtype) >= 8;
    return fits ? liked(s->device, v->rank) : ORTC_PLAIN;
}

/* A filter is a constant of the input's rank: such nodes are twice as fast in the layout that is liked. Its
 * own Reorder takes any. */
static ortc_status choose(const void *p, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const state *s = (const state *)p;
    const ortc_view *y = &q->out[0];
    const int filter = q->n_in > 1 && q->in[1].rank == q->in[0].rank && (q->in[1].flags & ORTC_VIEW_CONST);
    o->clocks = q->n_out && y->dtype && !(y->flags & ORTC_VIEW_LATE) ? 100 * (double)ortc_view_count(y) : 0;
    if (q->n_in == 1 && q->in[0].layout != y->layout) {
        o->clocks /= 100;
        return ORTC_OK;
    }
    if (q->layout == ORTC_PLAIN) return ORTC_OK;
    const ortc_layout l = q->n_out ? wanted(s, q, y) : ORTC_PLAIN;
    if (!l || (q->layout == ORTC_ANY_LAYOUT ? !filter : q->layout != l))
        return ortc_no(why, "not in this layout");
    if (filter) o->clocks /= 2;
    for (uint32_t i = 0; i < q->n_in; i++) o->in[i] = wanted(s, q, &q->in[i]);
    for (uint32_t i = 0; i < q->n_out; i++) o->out[i] = wanted(s, q, &q->out[i]);
    return ORTC_OK;
}

/* A plan that notes the workspace and passes everything else on. */
typedef struct noted_plan {
    ortc_plan plan;
    ortc_plan *outer;
    size_t bytes, per_worker;
} noted_plan;

static ortc_plan *outer(ortc_plan *p) { return ((noted_plan *)(void *)p)->outer; }
static void note_workspace(ortc_plan *p, size_t bytes, size_t per_worker)
{
    noted_plan *n = (noted_plan *)(void *)p;
    n->bytes = (bytes + 255) / 256 * 256;
    n->per_worker = per_worker;
    ortc_plan_workspace(n->outer, n->bytes + per_worker, 0); /* one worker */
}
static void pass_reuse(ortc_plan *p, uint32_t out, uint32_t in) { ortc_plan_may_reuse(outer(p), out, in); }
static void pass_view(ortc_plan *p, uint32_t out, uint32_t in, int64_t offset)
{
    ortc_plan_view(outer(p), out, in, offset);
}
static void pass_part(ortc_plan *p, uint32_t out, uint32_t in, int64_t offset)
{
    ortc_plan_part(outer(p), out, in, offset);
}
static ortc_status pass_pack(ortc_plan *p, uint32_t in, const ortc_packing *how, const void *param,
                             size_t bytes, const ortc_packed **out)
{
    return ortc_plan_pack(outer(p), in, how, param, bytes, out);
}
static void pass_cost(ortc_plan *p, double flops, double bytes) { ortc_plan_cost(outer(p), flops, bytes); }
static ortc_status pass_fail(ortc_plan *p, ortc_status s, const char *fmt, va_list args)
{
    return outer(p)->api->fail(outer(p), s, fmt, args);
}
static const ortc_device *pass_device(const ortc_plan *p)
{
    const ortc_plan *o = ((const noted_plan *)(const void *)p)->outer;
    return o->api->device(o);
}
static const ortc_plan_api plan_api = {ORTC_SIZED(ortc_plan_api),
                                       note_workspace,
                                       pass_reuse,
                                       pass_view,
                                       pass_pack,
                                       pass_cost,
                                       pass_fail,
                                       pass_device,
                                       pass_part};

static ortc_status plan(const void *p, ortc_plan *the_plan, void **out)
{
    const state *s = (const state *)p;
    pstate *ps = (pstate *)calloc(1, sizeof *ps);
    noted_plan n;
    ortc_status status = ORTC_OK;
    if (!ps) return ORTC_OUT_OF_MEMORY;
    n.plan = *the_plan;
    n.plan.api = &plan_api;
    n.outer = the_plan;
    n.bytes = n.per_worker = 0;
    if (s->inner->plan) status = s->inner->plan(s->inner_state, &n.plan, &ps->inner_pstate);
    if (status != ORTC_OK) {
        free(ps);
        return status;
    }
    ps->inner = s->inner;
    ps->inner_state = s->inner_state;
    ps->bytes = n.bytes;
    ps->per_worker = n.per_worker;
    *out = ps;
    return ORTC_OK;
}

static void release_plan(const void *s, void *p)
{
    pstate *ps = (pstate *)p;
    (void)s;
    if (ps->inner_pstate) {
        if (ps->inner->release_plan)
            ps->inner->release_plan(ps->inner_state, ps->inner_pstate);
        else
            free(ps->inner_pstate);
    }
    free(ps);
}

/* ---- Running ------------------------------------------------------------------------------------------- */

typedef struct kernel_task {
    sim_task task;
    ortc_call call; /* what ref sees; the api's functions find the task around it */
    const pstate *ps;
    void *workspace; /* as the device sees it */
    uint64_t seed;
    char *scratch;
    int fails;
    /* n_in + n_out as they were given, as many for ref, then the bytes of host inputs: one allocation with
     * the task */
    ortc_view *views;
} kernel_task;

static kernel_task *task_of(ortc_call *c)
{
    return (kernel_task *)(void *)((char *)c - offsetof(kernel_task, call));
}

static ortc_status late_resize(ortc_call *c, uint32_t out, int32_t rank, const int64_t *dims)
{
    const ortc_view *v = &c->out[out];
    int same = v->rank == rank && (!rank || !memcmp(v->dims, dims, (size_t)rank * sizeof *dims));
    return same ? ORTC_OK : ORTC_UNSUPPORTED;
}
/* The same chunks as on the host: results must not depend on where they are computed. */
static ortc_status late_parallel(ortc_call *c, int64_t n, int64_t grain, ortc_parallel_fn body, void *arg)
{
    kernel_task *t = task_of(c);
    grain = grain < 1 ? 1 : grain;
    for (int64_t begin = 0; begin < n; begin += grain)
        body(arg, begin, n - begin < grain ? n : begin + grain, t->scratch);
    return ORTC_OK;
}
static ortc_status late_poll(ortc_call *c)
{
    (void)c;
    return ORTC_OK;
}
static ortc_status late_fail(ortc_call *c, ortc_status s, const char *fmt, va_list args)
{
    vsnprintf(task_of(c)->task.text, sizeof task_of(c)->task.text, fmt, args);
    return s;
}
static ortc_value *no_value(ortc_call *c, int32_t port)
{
    (void)c, (void)port;
    return NULL;
}
static uint64_t late_seed(ortc_call *c) { return task_of(c)->seed; }
static void no_mark(ortc_call *c, const char *phase) { (void)c, (void)phase; }

/* filled once: the functions that are not there stay NULL, ref does not call them on tensors */
static ortc_call_api call_api;

/* What ref does not know: a tensor in another layout becomes a plain one, and back; what fills up blocks is
 * zero. */
static void reorder(const ortc_view *v, char *plain, int back)
{
    const size_t bytes = ortc_dtype_bits(v->dtype) / 8;
    const int64_t count = ortc_view_count(v);
    int64_t index[64];
    if (back && ortc_view_stored(v) != count) memset(v->data, 0, (size_t)ortc_view_stored(v) * bytes);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i;
        for (int32_t d = v->rank - 1; d >= 0; d--) {
            index[d] = rest % v->dims[d];
            rest /= v->dims[d];
        }
        char *a = plain + (size_t)i * bytes,
             *b = (char *)v->data + (size_t)ortc_layout_at(v->layout, v->rank, v->dims, index) * bytes;
        memcpy(back ? b : a, back ? a : b, bytes);
    }
}

static ortc_status run_plain(kernel_task *t, ortc_view *views)
{
    uint32_t n = t->call.n_in + t->call.n_out;
    char *plain[16] = {NULL};
    ortc_view given[16];
    ortc_status s = ORTC_OK;
    for (uint32_t i = 0; i < n && i < 16; i++) {
        given[i] = views[i];
        if (!views[i].dtype || !views[i].layout || (t->ps->inner->flags & ORTC_KERNEL_LAYOUTS)) continue;
        plain[i] = (char *)malloc((size_t)ortc_view_count(&views[i]) * ortc_dtype_bits(views[i].dtype) / 8 +
                                  1);
        if (!plain[i])
            s = ORTC_OUT_OF_MEMORY;
        else if (i < t->call.n_in)
            reorder(&views[i], plain[i], 0);
        views[i].data = plain[i];
        views[i].layout = ORTC_PLAIN;
    }
    if (s == ORTC_OK) s = t->ps->inner->run(t->ps->inner_state, t->ps->inner_pstate, &t->call);
    for (uint32_t i = 0; i < n && i < 16; i++)
        if (plain[i]) {
            if (i >= t->call.n_in && s == ORTC_OK) reorder(&given[i], plain[i], 1);
            free(plain[i]);
        }
    return s;
}

static void run_kernel(sim_task *task)
{
    kernel_task *t = (kernel_task *)(void *)task;
    uint32_t n = t->call.n_in + t->call.n_out;
    ortc_view *views = t->views + n; /* a captured task runs many times: what was given stays */
    task->status = ORTC_OK;
    memcpy(views, t->views, n * sizeof *views);
    for (uint32_t i = 0; i < n; i++)
        if (views[i].dtype && !(views[i].flags & ORTC_VIEW_HOST) &&
            !(views[i].data = sim_real(views[i].data))) {
            task->status = ORTC_DEVICE_ERROR; /* a host address where one of the device was promised */
            snprintf(task->text, sizeof task->text, "operand %u is not in the device's memory", i);
        }
    t->call.workspace = t->workspace ? sim_real(t->workspace) : NULL;
    t->scratch = t->ps->per_worker && t->call.workspace ? (char *)t->call.workspace + t->ps->bytes : NULL;
    if (t->fails) task->status = ORTC_DEVICE_ERROR;
    if (task->status == ORTC_OK) task->status = run_plain(t, views);
    uint32_t *fault = (uint32_t *)(t->call.fault ? sim_real(t->call.fault) : NULL);
    if (task->status == ORTC_INVALID_ARGUMENT &&
        fault) { /* an index out of range: a device says so in its own way */
        *fault |= ORTC_FAULT_INDEX;
        task->status = ORTC_OK;
    }
}

static size_t bytes_of(const ortc_view *v)
{
    /* no element type is larger; what is copied is bounded by the caller */
    return (size_t)ortc_view_count(v) * 16;
}

static ortc_status run(const void *p, const void *pp, ortc_call *call)
{
    const state *s = (const state *)p;
    uint32_t n = call->n_in + call->n_out;
    size_t host = 0;
    for (uint32_t i = 0; i < call->n_in; i++)
        if (call->in[i].dtype && (call->in[i].flags & ORTC_VIEW_HOST)) host += bytes_of(&call->in[i]);
    kernel_task *t = (kernel_task *)calloc(1, sizeof *t + 2 * n * sizeof *t->views + host);
    if (!t) return ORTC_OUT_OF_MEMORY;
    t->task.run = run_kernel;
    t->call = *call;
    t->call.api = &call_api;
    t->ps = (const pstate *)pp;
    t->seed = ortc_call_seed(call);
    t->fails = s->device->fail > 0 && __atomic_sub_fetch(&s->device->fail, 1, __ATOMIC_RELAXED) == 0;
    t->views = (ortc_view *)(void *)(t + 1);
    memcpy(t->views, call->in, call->n_in * sizeof *t->views);
    memcpy(t->views + call->n_in, call->out, call->n_out * sizeof *t->views);
    t->call.in = t->views + n;
    t->call.out = t->views + n + call->n_in;
    t->workspace = call->workspace;
    char *to = (char *)(t->views + 2 * n);
    for (uint32_t i = 0; i < call->n_in; i++) {
        ortc_view *v = &t->views[i];
        if (!v->dtype || !(v->flags & ORTC_VIEW_HOST) || !v->data) continue;
        size_t bytes = (size_t)ortc_view_count(v) * (v->dtype == ORTC_I64                           ? 8
                                                     : v->dtype == ORTC_I32 || v->dtype == ORTC_F32 ? 4
                                                                                                    : 1);
        memcpy(to, v->data, bytes);
        v->data = to;
        to += bytes_of(v);
    }
    sim_push((sim_queue *)call->queue, &t->task);
    return ORTC_OK;
}

/* ---- Registering --------------------------------------------------------------------------------------- */

typedef struct gathering {
    ortc_kernel_entry *entries;
    ortc_kernel *kernels;
    size_t n, room;
} gathering;

static ortc_status gather(void *arg, const ortc_kernel_entry *e)
{
    gathering *g = (gathering *)arg;
    if (e->kernel->flags & NOT_HERE) return ORTC_OK;
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->entries[i].op, e->op) && !strcmp(g->entries[i].domain, e->domain)) {
            g->kernels[i].flags |= e->kernel->flags; /* supports asks which kernel it is in the end */
            return ORTC_OK;
        }
    if (g->n == g->room) {
        size_t room = g->room ? g->room * 2 : 256;
        ortc_kernel_entry *entries = (ortc_kernel_entry *)realloc(g->entries, room * sizeof *entries);
        if (entries) g->entries = entries;
        ortc_kernel *kernels = (ortc_kernel *)realloc(g->kernels, room * sizeof *kernels);
        if (kernels) g->kernels = kernels;
        if (!entries || !kernels) return ORTC_OUT_OF_MEMORY;
        g->room = room;
    }
    ortc_kernel *k = &g->kernels[g->n];
    memset(k, 0, sizeof *k);
    k->size = ORTC_SIZED(ortc_kernel);
    k->flags = e->kernel->flags | ORTC_KERNEL_FAULTS | ORTC_KERNEL_LAYOUTS;
    k->name = e->kernel->name;
    k->host_in = e->kernel->host_in;
    k->supports = supports;
    k->prepare = prepare;
    k->plan = plan;
    k->run = run;
    k->release_plan = release_plan;
    k->release = release;
    k->choose = choose;
    ortc_kernel_entry *to = &g->entries[g->n++];
    memset(to, 0, sizeof *to);
    to->domain = e->domain;
    to->op = e->op;
    to->since_max = 1 << 30;
    return ORTC_OK;
}

ortc_status sim_add_kernels(const ortc_host *host)
{
    static ortc_kernel_table table;
    static const ortc_kernel_table *tables[] = {&table};
    static ortc_family family;
    gathering g;
    memset(&g, 0, sizeof g);
    call_api.size = ORTC_SIZED(ortc_call_api);
    call_api.resize = late_resize;
    call_api.parallel = late_parallel;
    call_api.poll = late_poll;
    call_api.fail = late_fail;
    call_api.value = no_value;
    call_api.seed = late_seed;
    call_api.mark = no_mark;
    ortc_status s = ortc_host_kernels(host, "ref", gather, &g);
    if (s != ORTC_OK) return s;
    for (size_t i = 0; i < g.n; i++) /* after the last move of the array */
        g.entries[i].kernel = &g.kernels[i];
    table.size = ORTC_SIZED(ortc_kernel_table);
    table.entry_size = ORTC_SIZED(ortc_kernel_entry);
    table.count = (uint32_t)g.n;
    table.provider = "sim";
    table.entries = g.entries;
    family.size = ORTC_SIZED(ortc_family);
    family.op_size = ORTC_SIZED(ortc_op);
    family.name = "sim";
    family.tables = tables;
    family.n_tables = 1;
    return ortc_host_add_family(host, &family);
}
