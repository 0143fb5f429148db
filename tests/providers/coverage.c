/* tests/providers/coverage.c: every registered kernel entry needs a case, with every element type that it
 * takes. */
#include "coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/families.h"

typedef struct reached {
    char op[64], kernel[64], provider[32];
    uint64_t types; /* of any input or output */
} reached;

static reached *list;
static size_t count;

void coverage_note(const node_text *n, const run_result *r)
{
    size_t i = 0;
    if (!r->kernel[0]) return;
    while (i < count && (strcmp(list[i].op, n->op) || strcmp(list[i].kernel, r->kernel) ||
                         strcmp(list[i].provider, r->provider)))
        i++;
    if (i == count) {
        list = realloc(list, ++count * sizeof *list);
        if (!list) abort();
        list[i] = (reached){{0}};
        snprintf(list[i].op, sizeof list[i].op, "%s", n->op);
        snprintf(list[i].kernel, sizeof list[i].kernel, "%s", r->kernel);
        snprintf(list[i].provider, sizeof list[i].provider, "%s", r->provider);
    }
    for (size_t k = 0; k < n->n_in; k++) list[i].types |= UINT64_C(1) << n->in[k].dtype;
    for (size_t k = 0; k < n->n_out; k++)
        for (const ortc_type *t = r->out[k] ? ortc_value_type(r->out[k]) : NULL; t; t = t->of)
            list[i].types |= UINT64_C(1) << t->dtype; /* of a sequence those of its elements */
}

/* Groups are made by specialising: of this node and another where a way chains them, and by
 * tests/session/test_pointwise.c. */
static bool is_group(const ortc_kernel_entry *e)
{
    return !strcmp(e->domain, "ortc") && !strcmp(e->op, "Group");
}

/* A line of text holds no subgraph: control operators are tested by the suite and by
 * tests/python/test_models.py. */
static bool is_control(const ortc_family *f, const char *op)
{
    for (uint32_t i = 0; i < f->n_ops; i++)
        if (!strcmp(f->ops[i].name, op)) return (f->ops[i].flags & ORTC_OP_CONTROL) != 0;
    return false;
}

static size_t entry_missing(const ortc_kernel_table *t, const ortc_kernel_entry *e)
{
    uint64_t seen = 0, wanted = 0;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i].op, e->op) && !strcmp(list[i].kernel, e->kernel->name) &&
            !strcmp(list[i].provider, t->provider)) {
            any = true;
            seen |= list[i].types;
        }
    for (int m = 0; m < 8; m++) wanted |= e->types[m];
    if (!any) {
        printf("no case reaches kernel %s of %s on %s\n", e->kernel->name, e->op, t->provider);
        return 1;
    }
    if (!(wanted & ~seen)) return 0;
    printf("no case reaches kernel %s of %s on %s with", e->kernel->name, e->op, t->provider);
    for (ortc_dtype d = 1; d < ORTC_DTYPE_COUNT; d++)
        if (wanted & ~seen & ORTC_TYPE(d)) printf(" %s", ortc_dtype_name(d));
    printf("\n");
    return 1;
}

size_t coverage_missing(const char *provider, const char *family)
{
    size_t missing = 0;
    for (const ortc_family *const *f = ortc_families; *f; f++)
        for (uint32_t k = 0; k < (*f)->n_tables && (!family || !strcmp(family, (*f)->name)); k++) {
            const ortc_kernel_table *t = (*f)->tables[k];
            if (!t) continue;
            for (uint32_t i = 0; i < t->count && !strcmp(t->provider, provider); i++)
                missing += is_control(*f, t->entries[i].op) || is_group(&t->entries[i])
                               ? 0
                               : entry_missing(t, &t->entries[i]);
        }
    return missing;
}
