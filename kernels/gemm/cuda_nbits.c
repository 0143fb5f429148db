/* kernels/gemm/cuda_nbits.c: MatMulNBits (com.microsoft) on a GPU: weights of 4 and 8 bits as the file has
 * them.
 *
 * Few rows (decoding): unpacked on the way to the multiplier, by tensor cores for f16 and bf16. More: panels
 * of weights are unpacked into the workspace, and a product is taken of each. Left to the composition: 2
 * bits.
 */
#include <stdint.h>
#include <stdlib.h>

#include "kernels/common/cuda.h"
#include "kernels/gemm/cuda_gemm.h"
#include "kernels/gemm/cuda_nbits.h"

enum { A, B, SCALES, ZEROS, G_IDX, BIAS };
enum { PANEL_BYTES = 32 << 20 }; /* of unpacked weights: what stays in the cache of a large device */

typedef struct nbits_state {
    int64_t k, n, bits, block;
    int32_t constant;
} nbits_state;

typedef struct nbits_plan {
    ortc_cu_nbits product;
    ortc_cu_gemm whole, last; /* panels of `count` rows of weights, and what is left */
    int64_t pitch, count;
    int32_t hopper;
} nbits_plan;

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const int64_t bits = ortc_node_int(n, "bits", 4), block = ortc_node_int(n, "block_size", 0);
    const ortc_port a = ortc_node_in(n, A), zeros = ortc_node_in(n, ZEROS);
    (void)device;
    if (ortc_node_in(n, 4).type)
        return ortc_no(why, "columns in an order of their own are not unpacked here");
    if ((bits != 4 && bits != 8) || block < 16 || block & (block - 1))
        return ortc_no(why, "%lld bits in blocks of %lld are not unpacked here", (long long)bits,
                       (long long)block);
    if (zeros.type && zeros.dtype != ORTC_U8 && zeros.dtype != a.dtype)
        return ortc_no(why, "zero points of another type than A are not read here");
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    nbits_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (nbits_state){ortc_node_int(n, "K", 0), ortc_node_int(n, "N", 0), ortc_node_int(n, "bits", 4),
                       ortc_node_int(n, "block_size", 0), 1};
    for (uint32_t i = B; i <= ZEROS; i++) {
        const ortc_port port = ortc_node_in(n, i);
        s->constant &= !port.type || (port.flags & ORTC_PORT_CONST) != 0;
    }
    *out = s;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *c, void **out)
{
    const nbits_state *s = state;
    const ortc_cuda_device *device = ortc_cuda_device_of(c);
    const int64_t size = ortc_dtype_bits(c->in[A].dtype) / 8;
    nbits_plan *p = calloc(1, sizeof *p);
    if (!p) return ortc_plan_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    ortc_cu_nbits *g = &p->product;
    *g = (ortc_cu_nbits){.m = ortc_view_count(&c->in[A]) / s->k,
                         .n = s->n,
                         .k = s->k,
                         .block = (int32_t)s->block,
                         .blocks = (s->k + s->block - 1) / s->block,
                         .bits = (int32_t)s->bits,
                         .type = c->in[A].dtype,
                         .processors = device->processors,
                         .constant = s->constant};
    g->row_bytes = g->blocks * s->block / 8 * s->bits;
    g->zero_bytes = (g->blocks * s->bits + 7) / 8;
    g->real = c->n_in > ZEROS && c->in[ZEROS].dtype && c->in[ZEROS].dtype != ORTC_U8;
    p->pitch = (s->k + 7) / 8 * 8;
    p->hopper = ortc_cu_has_wgmma(device->major * 10 + device->minor) &&
                device->shared_bytes >= ORTC_CU_NBITS_RING_SHARED;
    if (g->m >
        ORTC_CU_NBITS_ROWS) { /* also where few rows meet addresses that tensor cores' way does not take */
        p->count = PANEL_BYTES / (p->pitch * size) / 256 * 256;
        p->count = p->count < 256 ? 256 : p->count;
        p->count = p->count < s->n ? p->count : s->n;
        p->whole = (ortc_cu_gemm){.alpha = 1,
                                  .type = g->type,
                                  .out_type = g->type,
                                  .m = g->m,
                                  .n = p->count,
                                  .k = s->k,
                                  .a_row = s->k,
                                  .a_col = 1,
                                  .b_row = 1,
                                  .b_col = p->pitch,
                                  .y_row = s->n};
        p->last = p->whole;
        p->last.n = s->n % p->count;
        ortc_cu_gemm_plan(&p->whole, device->processors, device->major * 10 + device->minor);
        ortc_cu_gemm_plan(&p->last, device->processors, device->major * 10 + device->minor);
        ortc_plan_workspace(c, (size_t)(p->count * p->pitch * size), 0);
    }
    ortc_plan_cost(c, 2.0 * (double)g->m * (double)s->n * (double)s->k, (double)s->n * (double)g->row_bytes);
    *out = p;
    return ORTC_OK;
}

static const void *given(const ortc_call *c, uint32_t port)
{
    return port < c->n_in && c->in[port].dtype ? c->in[port].data : NULL;
}

static int run_panels(const nbits_plan *p, const ortc_cu_nbits *g, const ortc_call *c)
{
    const int64_t size = ortc_dtype_bits((ortc_dtype)g->type) / 8;
    for (int64_t first = 0; first < g->n; first += p->count) {
        const int64_t left = g->n - first, count = left < p->count ? left : p->count;
        ortc_cu_gemm product = count == p->count ? p->whole : p->last;
        product.a = g->a;
        product.b = c->workspace;
        product.y = (char *)g->y + first * size;
        product.bias = g->bias ? (const char *)g->bias + first * size : NULL;
        int error = ortc_cu_nbits_unpack(g, first, count, c->workspace, p->pitch, c->queue);
        if (!error) error = ortc_cu_gemm_run(&product, c->queue);
        if (error) return error;
    }
    return 0;
}

static int run_row(const nbits_plan *p, const ortc_cu_nbits *g, void *queue)
{
    if (p->hopper && ortc_cu_nbits_ring_fits(g)) return ortc_cu_nbits_ring(g, queue);
    return ortc_cu_nbits_row(g, queue);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const nbits_plan *p = pstate;
    ortc_cu_nbits g = p->product;
    (void)state;
    if (g.m == 0) return ORTC_OK;
    g.a = c->in[A].data;
    g.b = c->in[B].data;
    g.scales = c->in[SCALES].data;
    g.zeros = given(c, ZEROS);
    g.bias = given(c, BIAS);
    g.y = c->out[0].data;
    const int aligned =
        ((uintptr_t)g.a | (uintptr_t)(2 * g.k) | (uintptr_t)g.b | (uintptr_t)g.row_bytes) % 16 == 0;
    const int halves = aligned && g.type != ORTC_F32, row = halves && g.m == 1 && g.bits == 4 &&
                                                            g.block >= 32 && g.block <= 1024 && !g.real &&
                                                            g.k <= ORTC_CU_NBITS_ROW_K;
    const int error = row                                       ? run_row(p, &g, c->queue)
                      : halves && g.m <= ORTC_CU_NBITS_MMA_ROWS ? ortc_cu_nbits_mma(&g, c->queue)
                      : g.m <= ORTC_CU_NBITS_ROWS               ? ortc_cu_nbits_rows(&g, c->queue)
                                                                : run_panels(p, &g, c);
    return ortc_cuda_done(c, error);
}

static const ortc_kernel kernel = {.size = sizeof kernel,
                                   .name = "nbits.cuda",
                                   .supports = supports,
                                   .prepare = prepare,
                                   .plan = plan,
                                   .run = run};

#define TYPES (ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16) | ORTC_TYPE(ORTC_F32))
ORTC_KERNELS(cuda, nbits,
             ORTC_KERNEL_IN("com.microsoft", "MatMulNBits", 1, ORTC_NEWEST,
                            (TYPES, TYPES | ORTC_TYPE(ORTC_U8)), &kernel));
