/* runtime/session/operators.c: every operator with the kernels that providers have for it (ortc.h). */
#include "graph/ir/pointwise.h"
#include "runtime/registry/registry.h"
#include "session.h"

typedef ORTC_ARRAY(const ortc_op *) op_list;
typedef ORTC_ARRAY(ortc_kernel_info) kernel_list;

static void collect(void *arg, const ortc_op *op) { (void)!ortc_array_push((op_list *)arg, op); }

static int by_name(const void *a, const void *b)
{
    const ortc_op *x = *(const ortc_op *const *)a, *y = *(const ortc_op *const *)b;
    const int domains = strcmp(x->domain, y->domain);
    return domains ? domains : strcmp(x->name, y->name);
}

static void add(kernel_list *list, const char *provider, const ortc_kernel_item *item, int32_t since,
                int32_t until, const uint64_t *types)
{
    (void)!ortc_array_push(list, ((ortc_kernel_info){.size = sizeof(ortc_kernel_info),
                                                     .since_min = since,
                                                     .since_max = until,
                                                     .provider = provider,
                                                     .kernel = item->entry->kernel->name,
                                                     .types = types}));
}

/* ---- Kernels that run programs: what they take is found by asking -------------------------------------- */

enum { MOST_CONSTRAINTS = 8, MOST_COMBINATIONS = 1024 };

static ortc_edge *typed_edge(ortc_graph *g, const ortc_formal *f, const ortc_dtype *bound)
{
    static const ortc_dim extent = 2;
    ortc_edge *e = ortc_edge_create(g, NULL);
    ortc_dtype t = f->constraint >= 0 ? bound[f->constraint] : 0;
    for (ortc_dtype k = 1; !t && k < ORTC_DTYPE_COUNT; k++)
        if (f->mask >> k & 1) t = k;
    return e && ortc_edge_set_shape(e, ortc_tensor_type(t), 1, &extent) ? e : NULL;
}

/* A node with every input that the operator names, and two where any number may stand. */
static ortc_node *example(ortc_graph *g, const ortc_op *op, const ortc_dtype *bound)
{
    const ortc_schema *s = ortc_op_schema(op);
    const uint32_t n_in = s->n_in + (s->n_in && s->in[s->n_in - 1].flags & ORTC_FORMAL_VARIADIC ? 1 : 0);
    ortc_node *n = ortc_node_create(g, op, "", n_in, s->n_out);
    if (!n) return NULL;
    n->version = op->since;
    for (uint32_t i = 0; i < n_in + s->n_out; i++) {
        ortc_edge *e = typed_edge(g, i < n_in ? ortc_schema_in(s, i) : ortc_schema_out(s, i - n_in), bound);
        if (!e || !(i < n_in ? ortc_node_set_in(n, i, e) : ortc_node_set_out(n, i - n_in, e))) return NULL;
    }
    return n;
}

/* The next combination of types; false: that was the last. */
static bool next(const ortc_schema *s, ortc_dtype *bound)
{
    for (uint32_t i = 0; i < s->n_types; i++) {
        while (++bound[i] < ORTC_DTYPE_COUNT)
            if (s->masks[i] >> bound[i] & 1) return true;
        bound[i] = 0;
        while (!(s->masks[i] >> ++bound[i] & 1)) {}
    }
    return false;
}

/* Per constraint the types in some combination that the kernel takes, in `types`; false: none. */
static bool ask(ortc_graph *g, const ortc_op *op, const ortc_kernel *k, uint64_t *types)
{
    const ortc_schema *s = ortc_op_schema(op);
    ortc_dtype bound[MOST_CONSTRAINTS] = {0};
    ortc_why why;
    bool any = false, more = s->n_types > 0 && s->n_types <= MOST_CONSTRAINTS;
    ortc_why_init(&why, NULL);
    for (uint32_t i = 0; i < s->n_types && more; i++) {
        while (bound[i] < ORTC_DTYPE_COUNT && !(s->masks[i] >> bound[i] & 1)) bound[i]++;
        more = bound[i] < ORTC_DTYPE_COUNT;
    }
    for (uint32_t n = 0; more && n < MOST_COMBINATIONS; n++, more = next(s, bound)) {
        const ortc_node *node = example(g, op, bound);
        if (!node || !ortc_pointwise_of(node) || (k->supports && k->supports(node, NULL, &why) != ORTC_OK))
            continue;
        for (uint32_t i = 0; i < s->n_types; i++) types[i] |= UINT64_C(1) << bound[i];
        any = true;
    }
    return any;
}

/* Whether kernels in the list take all of that: then nobody behind them is asked. */
static bool is_taken(const kernel_list *list, const char *provider, const uint64_t *types, uint32_t n)
{
    bool all = true;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t taken = 0;
        for (size_t k = 0; k < list->count; k++)
            if (list->data[k].provider == provider)
                taken |= list->data[k].types[i] ? list->data[k].types[i] : ~UINT64_C(0);
        all &= !(types[i] & ~taken);
    }
    return all;
}

static void add_programs(kernel_list *list, ortc_graph *g, const ortc_op *op, const char *provider)
{
    const ortc_kernel_item *item = ortc_kernels_of(provider, ortc_op_group.domain, ortc_op_group.name);
    for (; item; item = item->next) {
        uint64_t *types = ortc_arena_array(&g->arena, MOST_CONSTRAINTS, sizeof *types);
        if (types && ask(g, op, item->entry->kernel, types) &&
            !is_taken(list, provider, types, ortc_op_schema(op)->n_types))
            add(list, provider, item, op->form, ORTC_NEWEST, types);
    }
}

/* ---- The listing --------------------------------------------------------------------------------------- */

static int describe(const ortc_op *op, int (*each)(void *arg, const ortc_operator_info *), void *arg)
{
    const ortc_schema *schema = ortc_op_schema(op);
    if (!schema) return 0;
    ortc_graph *examples = op->expand ? ortc_graph_create(NULL) : NULL;
    kernel_list kernels = {0};
    const ortc_provider *p;
    for (size_t k = 0; (p = ortc_provider_at(k)); k++) {
        for (const ortc_kernel_item *i = ortc_kernels_of(p->name, op->domain, op->name); i; i = i->next)
            add(&kernels, p->name, i, i->entry->since_min, i->entry->since_max, i->entry->types);
        if (examples) add_programs(&kernels, examples, op, p->name);
    }
    const ortc_operator_info info = {.size = sizeof info,
                                     .since = op->since,
                                     .form = op->form,
                                     .lifts = op->lift != NULL,
                                     .domain = op->domain,
                                     .name = op->name,
                                     .older = op->older,
                                     .family = ortc_op_family(op),
                                     .n_types = schema->n_types,
                                     .n_kernels = (uint32_t)kernels.count,
                                     .type_names = (const char *const *)schema->type_names,
                                     .types = schema->masks,
                                     .kernels = kernels.data,
                                     .composed = (op->flags & ORTC_OP_COMPOSED) != 0,
                                     .module = (op->flags & ORTC_OP_MODULE) != 0};
    const int stop = each(arg, &info);
    ortc_array_deinit(&kernels);
    ortc_graph_destroy(examples);
    return stop;
}

void ortc_operators(int (*each)(void *arg, const ortc_operator_info *), void *arg)
{
    op_list ops = {0};
    if (ortc_registry_init(NULL) != ORTC_OK) return;
    ortc_providers_load_all();
    ortc_op_each(collect, &ops);
    if (ops.count) qsort(ops.data, ops.count, sizeof *ops.data, by_name);
    for (size_t i = 0; i < ops.count && !describe(ops.data[i], each, arg); i++) {}
    ortc_array_deinit(&ops);
}
