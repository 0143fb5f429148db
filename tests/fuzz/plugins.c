/* tests/fuzz/plugins.c: the descriptors of a plugin, as bytes say (targets.h): operators, kernels, tables,
 * families and providers with fields left out, sizes of other headers, words of schemas in any order. Their
 * functions are sane and the memory that they promise is there: what is tried is what the host makes of the
 * rest. Whatever it takes in is then used, by a model of one to three nodes.
 */
#include <stdio.h>

#include "runtime/registry/registry.h"
#include "targets.h"
#include "tests/unit/wire_writer.h"

/* ---- Bytes --------------------------------------------------------------------------------------------- */

typedef struct reader {
    const uint8_t *at, *end;
} reader;

static uint8_t next(reader *r) { return r->at < r->end ? *r->at++ : 0; }
static bool one_in(reader *r, unsigned n) { return next(r) % n == n - 1; } /* no more bytes: false */
#define PICK(r, list) (list)[next(r) % ORTC_LENGTH(list)]

/* What is registered stays for the life of the process, and so does what it points to. */
static void *keep(size_t bytes)
{
    static void **last;
    void **block = calloc(1, sizeof *block + bytes + !bytes);
    if (!block) exit(1);
    *block = last;
    last = block;
    return block + 1;
}

/* In memory of that size alone. */
static void *copy(const void *from, size_t bytes, size_t size)
{
    void *to = keep(size);
    memcpy(to, from, bytes < size ? bytes : size);
    return to;
}

/* The size of a struct as another header might have it. */
static uint32_t size_of(reader *r, size_t true_size)
{
    const size_t sizes[] = {true_size, true_size, true_size, true_size,     true_size,     true_size,
                            0,         4,         8,         true_size / 2, true_size - 8, true_size + 64};
    return (uint32_t)PICK(r, sizes);
}

static const char *words(reader *r, const char *const *known, size_t n_known, int most)
{
    char text[512] = "";
    size_t length = 0;
    if (one_in(r, 64)) return NULL;
    for (int n = next(r) % (most + 1); n; n--) {
        char raw[12] = "";
        const char *word = known[next(r) % n_known];
        if (one_in(r, 32)) {
            for (size_t i = 0; i + 1 < sizeof raw; i++) raw[i] = (char)next(r);
            word = raw;
        }
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", length ? " " : "", word);
        if (length >= sizeof text) length = sizeof text - 1;
    }
    return copy(text, length, length + 1);
}
#define WORDS(r, list, most) words(r, list, ORTC_LENGTH(list), most)

/* ---- Operators ----------------------------------------------------------------------------------------- */

static const char *const op_names[] = {"A", "B", "C", "Relu"};

static ortc_status infer_like(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }
static ortc_status infer_fixed(ortc_infer *c)
{
    return ortc_infer_out(c, 0, ORTC_F32, 2, (ortc_dim[]){2, 3});
}
static ortc_status infer_late(ortc_infer *c)
{
    return ortc_infer_out(c, 0, ORTC_F32, 1, (ortc_dim[]){ORTC_DIM_UNKNOWN});
}
static ortc_status infer_no(ortc_infer *c) { return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "never"); }
static ortc_status lift_nothing(ortc_lift *l)
{
    (void)l;
    return ORTC_OK;
}
static ortc_status lift_rename(ortc_lift *l) { return ortc_lift_rename(l, "B"); }
static ortc_status lift_write(ortc_lift *l) { return ortc_lift_write(l, "Y = Relu(X)\n"); }
static ortc_status lift_no(ortc_lift *l) { return ortc_lift_fail(l, ORTC_UNSUPPORTED, "never"); }

static const ortc_op *make_op(reader *r, uint32_t stride)
{
    static const char *const ports[] = {"X:T",   "Y:T",   "B:T?", "k:i64!", "xs:T*", "xs:T+", "ys:T*~",
                                        "S:seq", "Z:f32", "bad",  "X:",     ":T",    "X:?",   "X:T?*+~!"};
    static const char *const types[] = {"T=f32",      "T=float", "T=f32,f16,i64", "I=i32,i64", "T=all",
                                        "T=seq(f32)", "T=",      "=f32",          "T",         "T=f99"};
    static const char *const attributes[] = {"axis:i=-1",     "axis:i=",   "pads:is?",
                                             "pads:is=1,2,3", "is:is=",    "mode:s=NOTSET",
                                             "scale:f=0.5",   "fs:fs=1,2", "ss:ss?",
                                             "ss:ss=a",       "body:g!",   "v:t?",
                                             "v:t=1",         "p:p?",      "x:i!",
                                             "x:q",           "x:",        "x",
                                             "axis:i*"};
    static const char *const older[] = {"", "", "", "13 6 1", "1 6", "0", "-3", "x", "99", NULL};
    static const int32_t versions[] = {1, 1, 1, 1, 2, 13, 0, -1, INT32_MAX};
    static ortc_status (*const infers[])(ortc_infer *) = {infer_like, infer_like, infer_fixed,
                                                          infer_late, infer_no,   NULL};
    static ortc_status (*const lifts[])(ortc_lift *) = {NULL,        NULL,       lift_nothing,
                                                        lift_rename, lift_write, lift_no};
    static const char *const domains[] = {"fz", "fz", "fz", "", "ai.onnx", NULL};
    static const uint32_t flags[] = {0, 0, 0, 0, 1, 2, 4, 8, 16, 32, UINT32_C(1) << 30};
    ortc_op op = {.size = size_of(r, sizeof op), .flags = PICK(r, flags), .domain = PICK(r, domains)};
    op.name = one_in(r, 32) ? (next(r) & 1 ? NULL : "") : PICK(r, op_names);
    op.since = PICK(r, versions);
    op.form = one_in(r, 4) ? PICK(r, versions) : op.since;
    op.older = PICK(r, older);
    op.inputs = one_in(r, 3) ? WORDS(r, ports, 4) : "X:T B:T?";
    op.outputs = one_in(r, 3) ? WORDS(r, ports, 3) : "Y:T";
    op.attributes = one_in(r, 3) ? WORDS(r, attributes, 4) : "axis:i=-1";
    op.types = one_in(r, 3) ? WORDS(r, types, 3) : "T=f32";
    op.infer = PICK(r, infers);
    op.lift = PICK(r, lifts);
    return copy(&op, sizeof op, stride);
}

/* ---- Kernels ------------------------------------------------------------------------------------------- */

static ortc_status run_zeros(const void *state, const void *pstate, ortc_call *c)
{
    (void)state, (void)pstate;
    for (uint32_t i = 0; i < c->n_out; i++) {
        ortc_view *v = &c->out[i];
        if (v->flags & ORTC_VIEW_LATE) {
            const int64_t dims[] = {2};
            ortc_status s = ortc_call_resize(c, i, v->rank == 1 ? 1 : 0, dims);
            if (s != ORTC_OK) return s;
        }
        if (v->dtype && v->dtype != ORTC_STRING && v->data)
            memset(v->data, 0, (size_t)ortc_view_count(v) * ortc_dtype_bits(v->dtype) / 8);
    }
    return ORTC_OK;
}
static ortc_status run_no(const void *state, const void *pstate, ortc_call *c)
{
    (void)state, (void)pstate;
    return ortc_call_fail(c, ORTC_UNSUPPORTED, "never");
}
static ortc_status supports_no(const ortc_node *n, const ortc_device *d, ortc_why *w)
{
    (void)n, (void)d;
    return ortc_no(w, "never");
}
static ortc_status prepare_state(const ortc_node *n, ortc_prep *p, void **state)
{
    (void)n, (void)p;
    return (*state = malloc(16)) ? ORTC_OK : ORTC_OUT_OF_MEMORY;
}
static ortc_status prepare_no(const ortc_node *n, ortc_prep *p, void **state)
{
    (void)n, (void)state;
    return ortc_prep_fail(p, ORTC_INVALID_MODEL, "never");
}
static ortc_status plan_workspace(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_workspace(p, 1000, 100);
    return ORTC_OK;
}
static ortc_status plan_huge(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_workspace(p, SIZE_MAX / 2, SIZE_MAX / 2);
    return ORTC_OK;
}
static ortc_status choose_cheap(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *w)
{
    (void)state, (void)q, (void)w;
    o->clocks = 1;
    return ORTC_OK;
}
static ortc_status choose_no(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *w)
{
    (void)state, (void)q, (void)o;
    return ortc_no(w, "never");
}

static const ortc_kernel *make_kernel(reader *r)
{
    static const uint32_t flags[] = {0, 0, 0, 0, 0, 4, 8, 16, 32, 64, 128, 256, UINT32_C(1) << 30};
    static const uint32_t hosts[] = {0, 0, 0, 1, 2, UINT32_C(1) << 31, UINT32_MAX};
    ortc_kernel k = {.size = size_of(r, sizeof k), .flags = PICK(r, flags)};
    const uint32_t size = k.size;
    k.name = one_in(r, 32) ? NULL : "fuzzed";
    k.host_in = PICK(r, hosts), k.host_out = PICK(r, hosts);
    k.supports = one_in(r, 8) ? supports_no : NULL;
    k.prepare = one_in(r, 4) ? prepare_state : one_in(r, 8) ? prepare_no : NULL;
    k.plan = one_in(r, 4) ? plan_workspace : one_in(r, 8) ? plan_huge : NULL;
    k.run = one_in(r, 16) ? NULL : one_in(r, 8) ? run_no : run_zeros;
    k.choose = one_in(r, 4) ? choose_cheap : one_in(r, 8) ? choose_no : NULL;
    return copy(&k, sizeof k, size > 4 ? size : 4);
}

static const ortc_kernel_table *make_table(reader *r)
{
    static const char *const providers[] = {"fz", "fz", "fz", "ref", "cpu", "", NULL};
    static const int32_t versions[] = {1, 1, 1, 13, 0, -1, INT32_MAX};
    static const uint64_t masks[] = {0, 0, ORTC_TYPE(ORTC_F32), ORTC_TYPES_ALL, UINT64_MAX};
    ortc_kernel_table t = {.size = ORTC_SIZED(t)};
    t.entry_size = size_of(r, sizeof(ortc_kernel_entry));
    t.count = 1 + next(r) % 4;
    t.provider = PICK(r, providers);
    char *entries = keep((size_t)t.count * t.entry_size);
    for (uint32_t i = 0; i < t.count; i++) {
        ortc_kernel_entry e = {.domain = one_in(r, 8) ? NULL : "fz", .op = PICK(r, op_names)};
        if (one_in(r, 32)) e.op = NULL;
        e.since_min = PICK(r, versions);
        e.since_max = one_in(r, 4) ? PICK(r, versions) : ORTC_NEWEST;
        e.types[0] = PICK(r, masks);
        e.kernel = one_in(r, 32) ? NULL : make_kernel(r);
        memcpy(entries + (size_t)i * t.entry_size, &e, t.entry_size < sizeof e ? t.entry_size : sizeof e);
    }
    t.entries = one_in(r, 32) ? NULL : (const ortc_kernel_entry *)(void *)entries;
    return copy(&t, sizeof t, sizeof t);
}

static const ortc_family *make_family(reader *r)
{
    ortc_family f = {.size = size_of(r, sizeof f), .name = one_in(r, 16) ? NULL : "fuzzed"};
    const uint32_t size = f.size;
    f.op_size = size_of(r, sizeof(ortc_op));
    f.n_ops = next(r) % 4;
    char *ops = keep((size_t)f.n_ops * f.op_size);
    for (uint32_t i = 0; i < f.n_ops; i++)
        memcpy(ops + (size_t)i * f.op_size, make_op(r, f.op_size), f.op_size);
    f.ops = one_in(r, 32) ? NULL : (const ortc_op *)(void *)ops;
    f.n_tables = next(r) % 3;
    const ortc_kernel_table **tables = keep(f.n_tables * sizeof *tables);
    for (uint32_t i = 0; i < f.n_tables; i++) tables[i] = one_in(r, 32) ? NULL : make_table(r);
    f.tables = one_in(r, 32) ? NULL : tables;
    return copy(&f, sizeof f, size > 4 ? size : 4);
}

/* ---- Providers ----------------------------------------------------------------------------------------- */

static int device; /* any address */
static uint32_t n_devices, memory_kind;

static ortc_status devices(const ortc_host *h, ortc_device_info *info, uint32_t *n, ortc_why *w)
{
    (void)h, (void)w;
    for (uint32_t i = 0; i < *n && i < n_devices; i++) {
        info[i].memory_kind = memory_kind;
        snprintf(info[i].name, sizeof info[i].name, "device %u", i);
    }
    *n = n_devices;
    return ORTC_OK;
}
static ortc_status devices_no(const ortc_host *h, ortc_device_info *info, uint32_t *n, ortc_why *w)
{
    (void)h, (void)info, (void)n;
    ortc_no(w, "never");
    return ORTC_NOT_FOUND;
}
static ortc_status open_it(const ortc_host *h, uint32_t ordinal, const ortc_options *o, ortc_device **out,
                           ortc_why *w)
{
    (void)h, (void)ordinal, (void)o, (void)w;
    *out = (ortc_device *)(void *)&device;
    return ORTC_OK;
}
static ortc_status open_no(const ortc_host *h, uint32_t ordinal, const ortc_options *o, ortc_device **out,
                           ortc_why *w)
{
    (void)h, (void)ordinal, (void)o, (void)out;
    ortc_no(w, "never");
    return ORTC_DEVICE_ERROR;
}
static void close_it(ortc_device *d) { (void)d; }
static ortc_status slab_alloc(ortc_device *d, uint32_t kind, size_t bytes, void **out)
{
    (void)d, (void)kind;
    return bytes <= 64 << 20 && (*out = aligned_alloc(256, (bytes + 255) & ~(size_t)255))
               ? ORTC_OK
               : ORTC_OUT_OF_MEMORY;
}
static void slab_free(ortc_device *d, uint32_t kind, void *p, size_t bytes)
{
    (void)d, (void)kind, (void)bytes;
    free(p);
}
static ortc_status copy_now(void *queue, ortc_memory dst, void *to, ortc_memory src, const void *from,
                            size_t bytes)
{
    (void)queue, (void)dst, (void)src;
    memmove(to, from, bytes);
    return ORTC_OK;
}
static ortc_status queue_create(ortc_device *d, void *native, void **queue)
{
    (void)d, (void)native;
    *queue = &device;
    return ORTC_OK;
}
static void queue_destroy(ortc_device *d, void *queue, int32_t native) { (void)d, (void)queue, (void)native; }
static ortc_status signal_now(void *queue, void **event)
{
    (void)queue;
    *event = &device;
    return ORTC_OK;
}
static ortc_status wait_now(void *queue, void *event)
{
    (void)queue, (void)event;
    return ORTC_OK;
}
static void event_destroy(ortc_device *d, void *event) { (void)d, (void)event; }
static ortc_status begin(void *queue)
{
    (void)queue;
    return ORTC_OK;
}
static ortc_status end(void *queue, void **exec)
{
    (void)queue, (void)exec;
    return ORTC_UNSUPPORTED;
}
static ortc_status claim_all(ortc_device *d, const ortc_graph *g,
                             ortc_status (*take)(void *, const ortc_claim *), void *arg)
{
    const ortc_node *nodes[8];
    ortc_claim c = {.size = ORTC_SIZED(c), .nodes = nodes};
    (void)d;
    for (const ortc_node *n = ortc_graph_next(g, NULL); n && c.n < 8; n = ortc_graph_next(g, n))
        nodes[c.n++] = n;
    return take(arg, &c);
}
static ortc_status claim_odd(ortc_device *d, const ortc_graph *g,
                             ortc_status (*take)(void *, const ortc_claim *), void *arg)
{
    const ortc_node *n = ortc_graph_next(g, NULL), *twice[] = {n, n};
    ortc_status s = take(arg, &(ortc_claim){.size = ORTC_SIZED(ortc_claim)});
    (void)d;
    if (s == ORTC_OK && n) s = take(arg, &(ortc_claim){.size = 8, .n = 2, .nodes = twice});
    return s;
}
static ortc_status compile_no(ortc_device *d, const ortc_graph *g, const ortc_cache *c,
                              const ortc_kernel **out, ortc_why *w)
{
    (void)d, (void)g, (void)c, (void)out;
    return ortc_no(w, "never");
}
static ortc_status compile_zeros(ortc_device *d, const ortc_graph *g, const ortc_cache *c,
                                 const ortc_kernel **out, ortc_why *w)
{
    static const ortc_kernel k = {.size = ORTC_SIZED(k), .name = "compiled", .run = run_zeros};
    (void)d, (void)g, (void)c, (void)w;
    *out = &k;
    return ORTC_OK;
}

static const ortc_provider *make_provider(reader *r)
{
    static const char *const names[] = {"fz", "fz", "fz", "fz", "fz", "cpu", "a:b", "x,y", "", NULL};
    static const uint32_t flags[] = {
        0, 0, 0, 0, ORTC_PROVIDER_ASYNC, ORTC_PROVIDER_CAPTURE, UINT32_C(1) << 30};
    static const uint32_t counts[] = {1, 1, 1, 1, 2, 0, 5, UINT32_MAX}, kinds[] = {0, 0, 0, 2, 1, 77};
    ortc_provider p = {.size = size_of(r, sizeof p), .abi = one_in(r, 32) ? ORTC_ABI + 1 : ORTC_ABI};
    const uint32_t size = p.size;
    n_devices = PICK(r, counts);
    memory_kind = PICK(r, kinds);
    p.name = PICK(r, names);
    p.flags = PICK(r, flags);
    p.devices = one_in(r, 32) ? NULL : one_in(r, 16) ? devices_no : devices;
    p.open = one_in(r, 8) ? NULL : one_in(r, 8) ? open_no : open_it;
    p.close = one_in(r, 8) ? NULL : close_it;
    if (one_in(r, 2)) {
        p.slab_alloc = slab_alloc;
        p.slab_free = one_in(r, 16) ? NULL : slab_free;
        p.copy = one_in(r, 16) ? NULL : copy_now;
        p.queue_create = one_in(r, 16) ? NULL : queue_create;
        p.queue_destroy = one_in(r, 16) ? NULL : queue_destroy;
        p.signal = one_in(r, 16) ? NULL : signal_now;
        p.wait = one_in(r, 16) ? NULL : wait_now;
        p.event_destroy = one_in(r, 4) ? NULL : event_destroy;
    }
    if (one_in(r, 8)) p.capture_begin = begin, p.capture_end = one_in(r, 4) ? NULL : end;
    p.claim = one_in(r, 4) ? claim_all : one_in(r, 8) ? claim_odd : NULL;
    p.compile = one_in(r, 2) ? compile_zeros : one_in(r, 2) ? compile_no : NULL;
    return copy(&p, sizeof p, size > 4 ? size : 4);
}

/* ---- A model of what was registered -------------------------------------------------------------------- */

static void put_attribute(reader *r, buffer *node)
{
    static const char *const names[] = {"axis", "pads", "mode", "x", "scale"};
    const int64_t v = (int8_t)next(r);
    buffer a = {0};
    put_string(&a, 1, PICK(r, names));
    switch (next(r) % 3) {
    case 0:
        put_int(&a, 3, v);
        put_int(&a, 20, 2);
        break;
    case 1:
        for (int i = 0; i < 3; i++) put_int(&a, 8, v);
        put_int(&a, 20, 7);
        break;
    default: put_string(&a, 4, "text"); put_int(&a, 20, 3);
    }
    put_message(node, 5, &a);
}

static buffer make_nodes(reader *r)
{
    static const char *const ins[] = {"%s", "%s", "%s %s", "%s - %s", "-", ""};
    static const char *const outs[] = {"v%d", "v%d", "v%d", "v%d w%d", "- v%d", "v%d - w%d"};
    buffer g = {0}, part = make_value_info("x", ORTC_F32, 2, (int64_t[]){-1, 3}), m;
    char last[16] = "x";
    put_message(&g, 11, &part);
    for (int i = 0, n = 1 + next(r) % 3; i < n; i++) {
        char in[64], out[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
        snprintf(in, sizeof in, PICK(r, ins), last, last);
        snprintf(out, sizeof out, PICK(r, outs), i, i);
#pragma GCC diagnostic pop
        part = make_node(PICK(r, op_names), one_in(r, 8) ? "" : "fz", in, out);
        put_string(&part, 3, "node");
        if (one_in(r, 3)) put_attribute(r, &part);
        put_message(&g, 1, &part);
        snprintf(last, sizeof last, "v%d", i);
    }
    part = make_value_info(last, ORTC_F32, -1, NULL);
    put_message(&g, 12, &part);
    m = make_model(8, 13, &g);
    put_opset(&m, 8, "fz", 1 + next(r) % 3);
    return m;
}

static int each_operator(void *arg, const ortc_operator_info *o)
{
    *(size_t *)arg += strlen(o->name);
    return 0;
}
static int each_provider(void *arg, const ortc_provider_info *p)
{
    *(size_t *)arg += strlen(p->provider);
    return 0;
}

void fuzz_plugin(const uint8_t *data, size_t bytes)
{
    static const char *const named[] = {"fz", "fz", "fz,cpu", "ref", "fz:1", "fz:0:a=b"};
    reader r = {data, data + bytes};
    size_t told = 0;
    ortc_model *model;
    if (ortc_registry_init(NULL) != ORTC_OK) abort();
    const ortc_host *host = ortc_host_get();
    for (int n = 1 + next(&r) % 3; n; n--) {
        const ortc_status s = one_in(&r, 2) ? ortc_host_add_provider(host, make_provider(&r))
                                            : ortc_host_add_family(host, make_family(&r));
        if (s == ORTC_INTERNAL || (s != ORTC_OK && !*ortc_registry_refusal())) abort();
    }
    if (one_in(&r, 16)) ortc_operators(each_operator, &told); /* all of ours, too */
    ortc_providers(each_provider, &told);
    ortc_error e = ORTC_ERROR_INIT;
    buffer file = make_nodes(&r);
    ortc_status s = ortc_model_load_memory(file.data, file.bytes, NULL, &model, &e);
    /* what a plugin's lifting writes is not the host's, which says INTERNAL of its own, too */
    const bool written = s == ORTC_INTERNAL && strstr(e.text, "the composition of ");
    if ((s == ORTC_INTERNAL && !written) || (s != ORTC_OK && !e.text[0]) ||
        (s == ORTC_OK) != (model != NULL)) {
        fprintf(stderr, "load: %s\n", e.text);
        abort();
    }
    if (model) fuzz_run_on(model, PICK(&r, named));
    ortc_model_release(model);
    buffer_free(&file);
}
