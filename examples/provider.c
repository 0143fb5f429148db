/* examples/provider.c: a small execution provider from the installed headers alone: the skeleton to clone
 * (docs/add-a-provider.md).
 *
 * "pocket" is a device with memory of its own that works at once, on the calling thread. It computes Relu and
 * Add of f32 node by node, and takes an Add that only a Relu reads as one: it claims the two, and compiles
 * them into a kernel. Everything else stays where it was. For a real device replace the bodies between the
 * dashed lines: memory, queue, kernels.
 *
 *   cc -std=c11 -shared -fPIC -I PREFIX/include provider.c -o pocket.so
 *   ortc run --plugin ./pocket.so --provider pocket,cpu model.onnx --input rand
 */
#include <stdlib.h>
#include <string.h>

#include <ortc/provider.h>

/* ---- The device: what there is, opening it ------------------------------------------------------------- */

typedef struct pocket {
    const ortc_host *host;
} pocket;

static ortc_status devices(const ortc_host *host, ortc_device_info *infos, uint32_t *inout_n, ortc_why *why)
{
    (void)host, (void)why; /* ortc_no(why, "no driver: ...") and ORTC_NOT_FOUND where the machine has none */
    if (*inout_n > 0) {
        memset(infos, 0, sizeof *infos);
        infos[0].size = ORTC_SIZED(ortc_device_info);
        infos[0].memory_kind = ORTC_MEMORY_DEVICE;
        strcpy(infos[0].name, "a pocket calculator");
    }
    *inout_n = 1;
    return ORTC_OK;
}

static ortc_status open_device(const ortc_host *host, uint32_t ordinal, const ortc_options *options,
                               ortc_device **out, ortc_why *why)
{
    (void)ordinal;
    if (options->count) /* "pocket:key=value": this one has none */
        return ortc_no(why, "it has no option '%s'", options->keys[0]), ORTC_INVALID_ARGUMENT;
    pocket *d = (pocket *)malloc(sizeof *d);
    if (!d) return ORTC_OUT_OF_MEMORY;
    d->host = host;
    *out = (ortc_device *)d;
    return ORTC_OK;
}

static void close_device(ortc_device *d) { free(d); }

/* ---- Memory and queue ---------------------------------------------------------------------------------- */

static ortc_status slab_alloc(ortc_device *d, uint32_t kind, size_t bytes, void **out)
{
    (void)d, (void)kind;
    *out = aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *out ? ORTC_OK : ORTC_OUT_OF_MEMORY;
}

static void slab_free(ortc_device *d, uint32_t kind, void *p, size_t bytes)
{
    (void)d, (void)kind, (void)bytes;
    free(p);
}

/* Called with one side on the host, or both on this device. A real one queues it and returns. */
static ortc_status copy(void *queue, ortc_memory dst, void *to, ortc_memory src, const void *from,
                        size_t bytes)
{
    (void)queue, (void)dst, (void)src;
    memcpy(to, from, bytes);
    return ORTC_OK;
}

static ortc_status queue_create(ortc_device *d, void *native, void **out)
{
    *out = native ? native : d; /* any pointer that is not NULL: kernels find it in call->queue */
    return ORTC_OK;
}

static void queue_destroy(ortc_device *d, void *queue, int32_t native) { (void)d, (void)queue, (void)native; }

static ortc_status signal_queue(void *queue,
                                void **event) /* what is queued so far has been done: nothing to remember */
{
    *event = queue;
    return ORTC_OK;
}

static ortc_status wait_event(void *queue, void *event)
{
    (void)queue, (void)event;
    return ORTC_OK; /* a real one gives here what has failed in its queue */
}

/* ---- Kernels ------------------------------------------------------------------------------------------- */

static ortc_status run_relu(const void *state, const void *pstate, ortc_call *c)
{
    const float *x = (const float *)c->in[0].data;
    float *y = (float *)c->out[0].data;
    (void)state, (void)pstate;
    for (int64_t i = 0, n = ortc_view_count(&c->out[0]); i < n; i++)
        y[i] = x[i] < 0 ? 0 : x[i]; /* NaN stays */
    return ORTC_OK;
}

/* A yes holds for every shape that the node admits: equal symbols are equal extents. */
static int same_shape(const ortc_port *a, const ortc_port *b)
{
    if (a->rank < 0 || a->rank != b->rank) return 0;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return 0;
    return 1;
}

static ortc_status supports_add(const ortc_node *n, const ortc_device *d, ortc_why *why)
{
    ortc_port a = ortc_node_in(n, 0), b = ortc_node_in(n, 1);
    (void)d;
    return same_shape(&a, &b) ? ORTC_OK : ortc_no(why, "shapes that broadcast are not done here");
}

static ortc_status run_add(const void *state, const void *pstate, ortc_call *c)
{
    const float *a = (const float *)c->in[0].data, *b = (const float *)c->in[1].data;
    float *y = (float *)c->out[0].data;
    (void)state, (void)pstate;
    for (int64_t i = 0, n = ortc_view_count(&c->out[0]); i < n; i++) y[i] = a[i] + b[i];
    return ORTC_OK;
}

/* The compiled form of Add and Relu. A real compiler looks at ortc_node_body(node) in a prepare function and
 * keeps its result as the kernel's state. */
static ortc_status run_add_relu(const void *state, const void *pstate, ortc_call *c)
{
    ortc_status s = run_add(state, pstate, c);
    float *y = (float *)c->out[0].data;
    for (int64_t i = 0, n = ortc_view_count(&c->out[0]); i < n; i++) y[i] = y[i] < 0 ? 0 : y[i];
    return s;
}

/* size, flags, name, host_in, host_out, supports, prepare, plan, run, release_slot, release_plan, release */
static const ortc_kernel relu = {
    ORTC_SIZED(ortc_kernel), 0, "pocket.relu", 0, 0, NULL, NULL, NULL, run_relu, NULL, NULL, NULL, NULL};
static const ortc_kernel add = {ORTC_SIZED(ortc_kernel),
                                0,
                                "pocket.add",
                                0,
                                0,
                                supports_add,
                                NULL,
                                NULL,
                                run_add,
                                NULL,
                                NULL,
                                NULL,
                                NULL};
static const ortc_kernel add_relu = {ORTC_SIZED(ortc_kernel),
                                     0,
                                     "pocket.add_relu",
                                     0,
                                     0,
                                     NULL,
                                     NULL,
                                     NULL,
                                     run_add_relu,
                                     NULL,
                                     NULL,
                                     NULL,
                                     NULL};

/* 14 is the since_version of the operators' form that these compute (`ortc info --placement` shows it:
 * Add-14). */
ORTC_KERNELS(pocket, pocket, ORTC_KERNEL("Relu", 14, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32)), &relu),
             ORTC_KERNEL("Add", 14, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32)), &add));

/* ---- Claiming and compiling ---------------------------------------------------------------------------- */

/* An Add of two tensors of one shape whose result goes to this Relu and nowhere else. */
static int fits(const ortc_node *first, const ortc_node *second)
{
    ortc_port a = ortc_node_in(first, 0), b = ortc_node_in(first, 1), sum = ortc_node_out(first, 0),
              x = ortc_node_in(second, 0);
    return !strcmp(ortc_node_op(first), "Add") && !*ortc_node_domain(first) &&
           !strcmp(ortc_node_op(second), "Relu") && !*ortc_node_domain(second) && sum.edge == x.edge &&
           sum.dtype == ORTC_F32 && same_shape(&a, &b) && !a.data && !b.data &&
           a.edge != b.edge; /* a constant of one element would come inside the group */
}

static ortc_status claim(ortc_device *d, const ortc_graph *graph,
                         ortc_status (*take)(void *arg, const ortc_claim *), void *arg)
{
    const ortc_node *next;
    (void)d;
    for (const ortc_node *n = ortc_graph_next(graph, NULL); n; n = next) {
        next = ortc_graph_next(graph, n); /* before `take`, which puts one node in the place of the two */
        if (!next || !fits(n, next)) continue;
        const ortc_node *pair[] = {n, next};
        ortc_claim c = {ORTC_SIZED(ortc_claim), 2, 0, pair};
        next = ortc_graph_next(graph, next);
        take(arg, &c); /* a no is fine: the nodes are then placed one by one */
    }
    return ORTC_OK;
}

static ortc_status compile(ortc_device *d, const ortc_graph *body, const ortc_cache *cache,
                           const ortc_kernel **out, ortc_why *why)
{
    (void)d, (void)cache;
    if (ortc_graph_n_in(body) != 2 || ortc_graph_n_out(body) != 1) /* the sum is read elsewhere, too */
        return ortc_no(why, "the group has other inputs or outputs than those of Add and Relu");
    *out = &add_relu;
    return ORTC_OK;
}

/* ---- The plugin ---------------------------------------------------------------------------------------- */

static const ortc_kernel_table *const tables[] = {&ortc_kernels_pocket_pocket};
static ortc_family family;
static ortc_provider provider;

static ortc_status init(const ortc_host *host)
{
    provider.size = ORTC_SIZED(ortc_provider);
    provider.abi = ORTC_ABI;
    provider.name = "pocket";
    provider.devices = devices;
    provider.open = open_device;
    provider.close = close_device;
    provider.slab_alloc = slab_alloc;
    provider.slab_free = slab_free;
    provider.copy = copy;
    provider.queue_create = queue_create;
    provider.queue_destroy = queue_destroy;
    provider.signal = signal_queue;
    provider.wait = wait_event;
    provider.claim = claim;
    provider.compile = compile;
    family.size = ORTC_SIZED(ortc_family);
    family.op_size = ORTC_SIZED(ortc_op);
    family.name = "pocket"; /* no operators of its own: kernels only */
    family.tables = tables;
    family.n_tables = 1;
    ortc_status s = ortc_host_add_provider(host, &provider);
    return s == ORTC_OK ? ortc_host_add_family(host, &family) : s;
}

ORTC_PLUGIN("pocket", "1.0", init)
