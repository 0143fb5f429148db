/* tests/providers/coverage.c: every registered kernel entry needs a case, with every element type that it
 * takes. */
#include "coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/ir/graph.h"
#include "kernels/common/cpu_features.h"

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

/* Of sets of nodes; what one alone does is asked of every operator that has a program. */
static bool is_group(const ortc_operator_info *op)
{
    return !strcmp(op->domain, "ortc") && !strcmp(op->name, "Group");
}

/* A line of text holds no subgraph: control operators are tested by the suite and by
 * tests/python/test_models.py. */
static bool is_control(const ortc_operator_info *info)
{
    const ortc_op *op = ortc_op_find(info->domain, info->name);
    return op && op->flags & ORTC_OP_CONTROL;
}

/* Kernels that cases reach only where the machine has one of some instruction sets and no better one, or
 * never, because a device's option is asked for (tests/session/test_siblings.c). */
static bool is_out_of_reach(const ortc_kernel_info *k)
{
    static const struct {
        const char *kernel;
        uint32_t any, better;
    } rare[] = {{"gemm.pieces", ORTC_CPU_AMX_F32, 0},
                {"gemm.bf16", ORTC_CPU_AMX | ORTC_CPU_AVX512_BF16, 0},
                {"gemm.rounded", 0, 0},
                {"recurrent.rounded", 0, 0},
                {"conv.pieces", ORTC_CPU_AMX_F32, 0},
                {"conv.bf16", ORTC_CPU_AMX, 0},
                {"conv.rounded", 0, 0},
                {"conv.pairs", ORTC_CPU_AVX512_BF16, 0},
                {"conv.rounded_pairs", 0, 0},
                {"conv.rounded_winograd", 0, 0},
                {"conv_transpose.rounded", 0, 0},
                {"conv_integer.tiled", ORTC_CPU_AMX, 0},
                {"conv_integer.few", ORTC_CPU_AVX512_VNNI, ORTC_CPU_AMX},
                {"conv_integer.stem", ORTC_CPU_AVX512_VNNI, ORTC_CPU_AMX},
                {"conv_integer.blocked", ORTC_CPU_AVX512_VNNI, ORTC_CPU_AMX}};
    const uint32_t has = ortc_cpu_features();
    for (size_t i = 0; i < sizeof rare / sizeof *rare; i++)
        if (!strcmp(k->kernel, rare[i].kernel)) return !(has & rare[i].any) || has & rare[i].better;
    return false;
}

static size_t kernel_missing(const ortc_operator_info *op, const ortc_kernel_info *k)
{
    uint64_t seen = 0, wanted = 0;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i].op, op->name) && !strcmp(list[i].kernel, k->kernel) &&
            !strcmp(list[i].provider, k->provider)) {
            any = true;
            seen |= list[i].types;
        }
    for (int m = 0; m < 8; m++) wanted |= k->types[m];
    if (is_out_of_reach(k)) return 0;
    if (!any) {
        printf("no case reaches kernel %s of %s on %s\n", k->kernel, op->name, k->provider);
        return 1;
    }
    if (!(wanted & ~seen)) return 0;
    printf("no case reaches kernel %s of %s on %s with", k->kernel, op->name, k->provider);
    for (ortc_dtype d = 1; d < ORTC_DTYPE_COUNT; d++)
        if (wanted & ~seen & ORTC_TYPE(d)) printf(" %s", ortc_dtype_name(d));
    printf("\n");
    return 1;
}

typedef struct asked {
    const char *provider, *family;
    size_t missing;
} asked;

static int each_operator(void *arg, const ortc_operator_info *op)
{
    asked *a = arg;
    if ((a->family && strcmp(a->family, op->family)) || is_group(op) || is_control(op)) return 0;
    for (uint32_t k = 0; k < op->n_kernels; k++)
        if (!strcmp(op->kernels[k].provider, a->provider)) a->missing += kernel_missing(op, &op->kernels[k]);
    return 0;
}

size_t coverage_missing(const char *provider, const char *family)
{
    asked a = {provider, family, 0};
    ortc_operators(each_operator, &a);
    return a.missing;
}
