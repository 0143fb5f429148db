/* Conv, MatMul and Gemm of the cpu provider against ref, kernel to kernel, without a runtime between: random
 * shapes, attributes and constants with every combination of epilogues, NaN in some inputs, f32, f16 and
 * bf16, 1 to 3 threads bit-equal. The bound: ref sums in double, so what cpu may differ by is (K + 8) eps
 * times the sum of absolute values, taken from ref itself run on the absolute values of the inputs; the
 * epilogue is interpreted in double, the bound with it; types of 16 bits are computed by ref from the same
 * values in f32, and may differ by one rounding of the result more.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cpu_features.h"
#include "kernels/common/vector/isas.h"
#include "kernels/common/element.h"
#include "lines.h"
#include "mock.h"
#include "programs.h"
#include "tests.h"

extern const ortc_kernel_table ortc_kernels_ref_conv, ortc_kernels_cpu_conv, ortc_kernels_ref_gemm,
    ortc_kernels_cpu_gemm;

enum { EPILOGUES = 64 * PROGRAM_ACTS }; /* each combination once for an operator */

typedef struct op_case {
    mock_node node;
    mock_attr attrs[8];
    program_space epilogue;
    int has_epilogue;
    char said[96];        /* what the epilogue is */
    uint32_t own;         /* ports of the operator */
    int64_t k;            /* products per element of the output */
    int32_t channel_axis; /* of the output: along it go an epilogue's vectors; -1: none do */
    guard memory[MOCK_PORTS + 1];
} op_case;

static mock_tensor *add_in(op_case *c, int32_t rank, const int64_t *dims, int is_const)
{
    mock_tensor *t = &c->node.in[c->node.n_in++];
    *t = (mock_tensor){.rank = rank, .is_const = is_const};
    if (rank > 0) memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
    return t;
}

static void add_ints(op_case *c, int *n, const char *name, const int64_t *v, size_t count)
{
    mock_attr *a = &c->attrs[(*n)++];
    *a = (mock_attr){.name = name, .kind = ORTC_ATTR_INTS, .count = count};
    memcpy(a->ints, v, count * sizeof *v);
}

/* ---- Random nodes -------------------------------------------------------------------------------------- */

static void make_conv(op_case *c, rng *r)
{
    static const char *const pads[] = {"NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const int32_t spatial = (int32_t)rng_range(r, 1, 3);
    const int depthwise = rng_next(r) % 3 == 0;
    const int64_t group = depthwise ? rng_range(r, 1, 6) : rng_next(r) % 3 ? 1 : rng_range(r, 2, 3);
    const int64_t channels = depthwise ? 1 : rng_range(r, 1, 20);
    const int64_t filters = depthwise ? rng_range(r, 1, 3) : rng_range(r, 1, rng_next(r) % 2 ? 40 : 90);
    const int pointwise = !depthwise && rng_next(r) % 4 == 0, pad_kind = (int)(rng_next(r) % 5);
    int64_t x[MOCK_RANK] = {rng_range(r, 0, 9) ? rng_range(r, 1, 3) : 0, group * channels}, y[MOCK_RANK];
    int64_t w[MOCK_RANK] = {group * filters, channels}, stride[3], dilation[3], pad[6] = {0};
    y[0] = x[0], y[1] = w[0], c->k = channels;
    for (int32_t i = 0; i < spatial; i++) {
        stride[i] = pointwise ? 1 : rng_range(r, 1, 3), dilation[i] = pointwise ? 1 : rng_range(r, 1, 2);
        w[i + 2] = pointwise ? 1 : rng_range(r, 1, 4);
        const int64_t span = (w[i + 2] - 1) * dilation[i] + 1;
        x[i + 2] = span + (rng_next(r) % 2 ? rng_range(r, 0, 4)
                                           : rng_range(r, 0,
                                                       spatial == 1   ? 200
                                                       : spatial == 2 ? 24
                                                                      : 7));
        c->k *= w[i + 2];
        if (pad_kind < 2 && !pointwise) pad[i] = rng_range(r, 0, 2), pad[spatial + i] = rng_range(r, 0, 2);
        y[i + 2] = pad_kind == 2 || pad_kind == 3
                       ? (x[i + 2] + stride[i] - 1) / stride[i]
                       : (x[i + 2] + pad[i] + pad[spatial + i] - span) / stride[i] + 1;
    }
    c->node.op = "Conv";
    int n = 0;
    c->attrs[n++] = (mock_attr){.name = "group", .kind = ORTC_ATTR_INT, .i = group};
    c->attrs[n++] = (mock_attr){.name = "auto_pad", .kind = ORTC_ATTR_STRING, .s = pads[pad_kind]};
    add_ints(c, &n, "strides", stride, (size_t)spatial);
    add_ints(c, &n, "dilations", dilation, (size_t)spatial);
    if (pad_kind < 2) add_ints(c, &n, "pads", pad, 2 * (size_t)spatial);
    add_in(c, spatial + 2, x, 0);
    add_in(c, spatial + 2, w, rng_next(r) % 4 != 0);
    if (rng_next(r) % 2)
        add_in(c, 1, w, 1);
    else
        add_in(c, -1, NULL, 0);
    c->node.out = (mock_tensor){.rank = spatial + 2};
    memcpy(c->node.out.dims, y, sizeof y);
    c->channel_axis = 1;
    c->own = 3;
}

static void make_matmul(op_case *c, rng *r)
{
    const int64_t m = rng_range(r, 0, 19) ? rng_range(r, 1, 40) : 0, n = rng_range(r, 1, 70);
    const int64_t k = rng_range(r, 0, 9) ? rng_range(r, 1, 90) : 0;
    const int32_t ra = (int32_t)rng_range(r, 1, 4), rb = (int32_t)rng_range(r, 1, 4);
    const int32_t ba = ra > 2 ? ra - 2 : 0, bb = rb > 2 ? rb - 2 : 0, batch = ba > bb ? ba : bb;
    int64_t a[MOCK_RANK], b[MOCK_RANK], y[MOCK_RANK];
    for (int32_t d = 0; d < batch; d++) {
        const int64_t e = rng_range(r, 1, 3);
        y[d] = 1;
        if (d - (batch - ba) >= 0) {
            a[d - (batch - ba)] = d - (batch - bb) >= 0 && rng_next(r) % 3 == 0 ? 1 : e;
            if (a[d - (batch - ba)] != 1) y[d] = e;
        }
        if (d - (batch - bb) >= 0) {
            b[d - (batch - bb)] = d - (batch - ba) >= 0 && rng_next(r) % 2 == 0 ? 1 : e;
            if (b[d - (batch - bb)] != 1) y[d] = e;
        }
    }
    if (ra > 1) a[ra - 2] = m;
    a[ra - 1] = k;
    if (rb > 1) b[rb - 2] = k;
    b[rb - 1] = rb > 1 ? n : k;
    int32_t rank = batch;
    if (ra > 1) y[rank++] = m;
    if (rb > 1) y[rank++] = n;
    c->node.op = "MatMul";
    add_in(c, ra, a, 0);
    add_in(c, rb, b, rng_next(r) % 2 != 0);
    c->node.out = (mock_tensor){.rank = rank};
    memcpy(c->node.out.dims, y, (size_t)rank * sizeof *y);
    c->k = k;
    c->channel_axis = rb > 1 ? rank - 1 : -1; /* no vector after a product with a vector */
    c->own = 2;
}

static void make_gemm(op_case *c, rng *r)
{
    const int64_t m = rng_range(r, 1, 60), n = rng_range(r, 1, 70),
                  k = rng_range(r, 0, 9) ? rng_range(r, 1, 90) : 0;
    const int64_t ta = rng_next(r) % 2, tb = rng_next(r) % 2, a[] = {ta ? k : m, ta ? m : k},
                  b[] = {tb ? n : k, tb ? k : n};
    const int64_t shapes[][2] = {{m, n}, {1, n}, {m, 1}, {1, 1}, {n, 0}, {1, 0}, {0, 0}};
    const int kind = (int)(rng_next(r) % 8);
    int at = 0;
    c->node.op = "Gemm";
    c->attrs[at++] = (mock_attr){.name = "transA", .kind = ORTC_ATTR_INT, .i = ta};
    c->attrs[at++] = (mock_attr){.name = "transB", .kind = ORTC_ATTR_INT, .i = tb};
    if (rng_next(r) % 2)
        c->attrs[at++] = (mock_attr){.name = "alpha", .kind = ORTC_ATTR_FLOAT, .f = rng_float(r)};
    if (rng_next(r) % 2)
        c->attrs[at++] = (mock_attr){.name = "beta", .kind = ORTC_ATTR_FLOAT, .f = rng_float(r)};
    add_in(c, 2, a, 0);
    add_in(c, 2, b, rng_next(r) % 2 != 0);
    if (kind < 7)
        add_in(c, kind < 4 ? 2 : kind < 6 ? 1 : 0, shapes[kind], 1);
    else
        add_in(c, -1, NULL, 0);
    c->node.out = (mock_tensor){.rank = 2, .dims = {m, n}};
    c->k = k;
    c->channel_axis = 1;
    c->own = 3;
}

/* A port of the epilogue, and its value: a vector along the channels, or a tensor of the result's shape. */
static int32_t add_vector(op_case *c, ortc_pw_builder *b)
{
    int64_t dims[MOCK_RANK];
    const int32_t rank = c->node.out.rank - c->channel_axis;
    for (int32_t d = 0; d < rank; d++) dims[d] = d ? 1 : c->node.out.dims[c->channel_axis];
    add_in(c, rank, dims, 1);
    return ortc_pw_load(b, c->node.n_in - 1, c->node.dtype);
}
static int32_t add_tensor(op_case *c, ortc_pw_builder *b)
{
    add_in(c, c->node.out.rank, c->node.out.dims, 0);
    return ortc_pw_load(b, c->node.n_in - 1, c->node.dtype);
}

/* Combination `i` of activations and of what stands before and behind them. */
static void make_epilogue(op_case *c, int i)
{
    const int act = i % PROGRAM_ACTS, scaled = i & 1, vectors = c->channel_axis >= 0;
    const int bias = i >> 1 & vectors, before = i >> 2 & 1, after = i >> 3 & 1, scales = i >> 4 & vectors,
              one = i >> 5 & 1;
    const int64_t dims[1] = {1};
    ortc_pw_builder b = {.size = sizeof b, .n_in = MOCK_PORTS};
    while (c->node.n_in < c->own) add_in(c, -1, NULL, 0);
    int32_t v = ortc_pw_load(&b, 0, ORTC_F32);
    if (scaled) v = ortc_pw_2(&b, ORTC_PW_MUL, v, ortc_pw_const(&b, v, 0.75));
    if (bias) v = ortc_pw_2(&b, ORTC_PW_ADD, v, add_vector(c, &b));
    if (before) v = ortc_pw_2(&b, ORTC_PW_ADD, add_tensor(c, &b), v);
    const int32_t slope = act != 5 ? v : vectors ? add_vector(c, &b) : add_tensor(c, &b);
    v = program_act(&b, act, v, slope);
    if (scales) v = ortc_pw_2(&b, ORTC_PW_MUL, v, add_vector(c, &b));
    if (after) v = ortc_pw_2(&b, ORTC_PW_ADD, v, add_tensor(c, &b));
    if (one) {
        add_in(c, c->node.out.rank > 0, dims, 0);
        v = ortc_pw_2(&b, ORTC_PW_SUB, ortc_pw_load(&b, c->node.n_in - 1, c->node.dtype), v);
    }
    b.n_in = c->node.n_in;
    c->has_epilogue = program_finish(&b, v, c->node.dtype, &c->epilogue);
    snprintf(c->said, sizeof c->said, "scale %d bias %d residual %d, %s, scales %d residual %d one %d%s",
             scaled, bias, before, program_acts[act], scales, after, one, c->has_epilogue ? "" : ": NONE");
}

/* ---- One case ------------------------------------------------------------------------------------------ */

/* The epilogue on ref's results: `e` has the bounds of y, and gets the new ones. */
static void apply_epilogue(const op_case *c, double *y, double *e, int64_t count)
{
    int64_t inner = 1;
    if (!c->has_epilogue) return;
    for (int32_t d = c->channel_axis + 1; c->channel_axis >= 0 && d < c->node.out.rank; d++)
        inner *= c->node.out.dims[d];
    for (int64_t i = 0; i < count; i++) {
        double in[MOCK_PORTS] = {0};
        for (uint32_t k = c->own; k < c->node.n_in; k++) {
            const mock_tensor *t = &c->node.in[k];
            const int64_t n = mock_count(t);
            const int whole = n == count && t->rank == c->node.out.rank;
            in[k] = t->data[n == 1 ? 0 : whole ? i : i / inner % n];
        }
        const bounded out = program_element(&c->epilogue.p, (bounded){y[i], e[i]}, in);
        y[i] = out.v, e[i] = out.e;
    }
}

/* The operator alone, on ref, into `out`. */
static int run_ref(const op_case *c, const ortc_kernel *ref, int absolute, float *out)
{
    mock_node n = c->node;
    n.epilogue = NULL;
    n.n_in = n.n_in > c->own ? c->own : n.n_in;
    mock_attr attrs[8];
    memcpy(attrs, c->attrs, sizeof attrs);
    n.attrs = attrs;
    float *copies[3] = {NULL};
    for (uint32_t i = 0; absolute && i < n.n_in; i++) {
        const int64_t count = mock_count(&n.in[i]);
        if (n.in[i].rank < 0) continue;
        copies[i] = malloc((size_t)count * sizeof(float) + 1);
        for (int64_t j = 0; j < count; j++) copies[i][j] = fabsf(n.in[i].data[j]);
        n.in[i].data = copies[i];
    }
    for (int i = 0; absolute && i < 8; i++) attrs[i].f = fabsf(attrs[i].f);
    n.out.data = out;
    const int s = mock_run(ref, &n, 1);
    for (int i = 0; i < 3; i++) free(copies[i]);
    return s;
}

static void describe(const op_case *c)
{
    printf("  %s of type %d", c->node.op, (int)c->node.dtype);
    for (uint32_t i = 0; i <= c->node.n_in; i++) {
        const mock_tensor *t = i < c->node.n_in ? &c->node.in[i] : &c->node.out;
        printf(i < c->node.n_in ? " [" : " -> [");
        for (int32_t d = 0; d < t->rank; d++) printf("%s%lld", d ? "," : "", (long long)t->dims[d]);
        printf("]%s", t->rank < 0 ? "absent" : t->is_const ? "const" : "");
    }
    for (const mock_attr *a = c->attrs; a->name; a++) {
        printf(" %s=", a->name);
        if (a->kind == ORTC_ATTR_INTS)
            for (size_t i = 0; i < a->count; i++) printf("%lld ", (long long)a->ints[i]);
        else if (a->kind == ORTC_ATTR_STRING)
            printf("%s", a->s);
        else
            printf("%g", a->kind == ORTC_ATTR_INT ? (double)a->i : (double)a->f);
    }
    printf(" epilogue: %s", c->said);
    printf("\n");
}

static int compare(const op_case *c, const void *results, const double *want, const double *e, int64_t count)
{
    int bad = 0;
    for (int64_t i = 0; i < count; i++) {
        const double got = ortc_load_f64(results, c->node.dtype, i);
        double bound = e[i] + 1e-7;
        bound += test_rounding(c->node.dtype, fabs(want[i]) + bound);
        const int ok = isnan(want[i])   ? isnan(got)
                       : isinf(want[i]) ? got == want[i]
                                        : fabs(got - want[i]) <= bound;
        if (!ok && !bad++)
            printf("  element %lld is %g, expected %g +- %g\n", (long long)i, got, want[i], bound);
    }
    return bad;
}

/* An input at random in the case's type; t->data are the same values in f32. */
static void fill_input(op_case *c, uint32_t i, rng *r, float **wide)
{
    mock_tensor *t = &c->node.in[i];
    const int64_t count = mock_count(t);
    c->memory[i] = guard_open((size_t)count * (size_t)ortc_product_size(c->node.dtype), 1);
    *wide = malloc((size_t)count * sizeof(float) + 1);
    rng_fill(r, *wide, (size_t)count);
    if (i == 0 && count && rng_next(r) % 8 == 0) (*wide)[0] = NAN;
    for (int64_t j = 0; j < count; j++) {
        ortc_store_f64(c->memory[i].data, c->node.dtype, j, (*wide)[j]);
        (*wide)[j] = (float)ortc_load_f64(c->memory[i].data, c->node.dtype, j);
    }
    t->data = *wide;
}

static int check_case(op_case *c, rng *r, int i, const ortc_kernel_table *ref, const ortc_kernel_table *cpu)
{
    static const ortc_dtype types[] = {ORTC_F32, ORTC_F16, ORTC_BF16};
    const int64_t count = mock_count(&c->node.out);
    const size_t bytes = (size_t)count * sizeof(float);
    float *wide[MOCK_PORTS];
    int bad = 0;
    c->node.attrs = c->attrs;
    c->node.dtype = types[rng_next(r) % 3];
    make_epilogue(c, i);
    bad += !c->has_epilogue;
    for (uint32_t k = 0; k < c->node.n_in; k++) fill_input(c, k, r, &wide[k]);
    float *raw = malloc(bytes + 1), *raw_mag = malloc(bytes + 1), *again = malloc(bytes + 1);
    double *want = malloc(2 * bytes + 1), *e = malloc(2 * bytes + 1);
    const ortc_dtype type = c->node.dtype;
    c->node.dtype = ORTC_F32;
    bad += run_ref(c, mock_kernel(ref, c->node.op), 0, raw) != 0;
    bad += run_ref(c, mock_kernel(ref, c->node.op), 1, raw_mag) != 0;
    for (int64_t k = 0; k < count; k++)
        want[k] = raw[k], e[k] = ((double)c->k + 8) * FLT_EPSILON * (double)raw_mag[k];
    apply_epilogue(c, want, e, count);

    c->node.dtype = type;
    for (uint32_t k = 0; k < c->node.n_in; k++) c->node.in[k].data = (void *)c->memory[k].data;
    guard out = guard_open((size_t)count * (size_t)ortc_product_size(type), 1);
    c->node.out.data = (void *)out.data;
    c->node.epilogue = c->has_epilogue ? &c->epilogue.p : NULL;
    const ortc_kernel *k = mock_choose(cpu, &c->node);
    for (int threads = 0; threads <= 3 && !bad; threads++) {
        bad += mock_run(k, &c->node, threads) != 0;
        if (threads == 0) bad += compare(c, out.data, want, e, count);
        if (threads == 0) memcpy(again, out.data, out.bytes);
        if (memcmp(again, out.data, out.bytes)) printf("  %d threads give other bits\n", threads), bad++;
        bad += !guard_intact(&out);
        memset(out.data, 0xff, out.bytes);
    }
    for (uint32_t p = 0; p < c->node.n_in; p++) {
        bad += !guard_intact(&c->memory[p]);
        guard_close(&c->memory[p]);
        free(wide[p]);
    }
    guard_close(&out);
    free(raw), free(raw_mag), free(again), free(want), free(e);
    if (bad) describe(c);
    return bad;
}

/* ---- All of them --------------------------------------------------------------------------------------- */

void test_cpu(tally *t, uint32_t isa_bits)
{
    static const struct {
        const char *name;
        void (*make)(op_case *, rng *);
        const ortc_kernel_table *ref, *cpu;
    } ops[] = {{"Conv", make_conv, &ortc_kernels_ref_conv, &ortc_kernels_cpu_conv},
               {"MatMul", make_matmul, &ortc_kernels_ref_gemm, &ortc_kernels_cpu_gemm},
               {"Gemm", make_gemm, &ortc_kernels_ref_gemm, &ortc_kernels_cpu_gemm}};
#define LEVEL(isa, needs, unused) {#isa, needs},
    static const struct {
        const char *name;
        uint32_t needs;
    } levels[] = {ORTC_EACH_ISA(LEVEL, 0)};
    for (size_t level = sizeof levels / sizeof *levels; level-- > 0;) {
        int known;
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            char name[64];
            snprintf(name, sizeof name, "%s on cpu, %s, against ref", ops[o].name, levels[level].name);
            if (!tally_begins(t, name, !(levels[level].needs & ~isa_bits))) continue;
            ortc_cpu_features_set_mask(ortc_cpu_level_mask(levels[level].name, &known));
            rng r = {t->seed + o};
            int bad = 0;
            for (int i = (int)(level + o) % t->every; i < EPILOGUES; i += t->every) {
                op_case c;
                memset(&c, 0, sizeof c);
                ops[o].make(&c, &r);
                bad += check_case(&c, &r, i, ops[o].ref, ops[o].cpu);
            }
            tally_result(t, name, bad);
            ortc_cpu_features_set_mask(UINT32_MAX);
        }
    }
}
