/* Packing constant operands (product_packing.h), keyed by their form, extents and type. */
#include "product_packing.h"

#include "kernels/common/element.h"
#include "kernels/gemm/epilogue.h"

/* Of a form: the system clears its pages, which takes longer than packing it. */
#define LEFT_BYTES ((size_t)32 << 20)

/* Compared bytewise: no padding between these. */
typedef struct pack_param {
    ortc_product_constant of;
    ortc_product_form form;
    uint32_t reserved;
} pack_param;
_Static_assert(sizeof(pack_param) == 4 * 8 + sizeof(ortc_product_form) + 4, "no padding");

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const pack_param *p = param;
    size_t all;
    (void)src;
    const size_t one = ortc_product_packed_bytes(&p->form, p->of.extent, p->of.k);
    return __builtin_mul_overflow(one, (size_t)p->of.groups, &all) ? 0 : all;
}

static void done_with(void *call, const void *src, size_t bytes) { ortc_call_done_with(call, src, bytes); }

static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const pack_param *p = param;
    const ortc_product_constant *c = &p->of;
    const ortc_product_threads threads = {ortc_call_parallel, call};
    const size_t step = ortc_product_packed_bytes(&p->form, c->extent, c->k);
    ortc_status s = ORTC_OK;
    for (int64_t g = 0; g < c->groups && !s; g++)
        s = ortc_product_fill_far(ortc_product_moves_select(), &p->form, src->dtype, c->extent, c->k,
                                  c->along, ortc_product_at(src->data, g * c->extent * c->k, src->dtype),
                                  (char *)dst + (size_t)g * step, &threads, done_with);
    return s;
}

/* To forms of bf16 f32 is rounded. */
static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.product", pack_bytes, pack_fill,
                                     ORTC_PACKING_PASSES},
                          packing_left = {ORTC_SIZED(ortc_packing), "cpu.product", pack_bytes, pack_fill,
                                          ORTC_PACKING_PASSES | ORTC_PACKING_LEFT},
                          packing_bf16 = {ORTC_SIZED(ortc_packing), "cpu.product", pack_bytes, pack_fill,
                                          ORTC_PACKING_ROUNDS | ORTC_PACKING_PASSES};

ortc_status ortc_product_packed(ortc_plan *p, uint32_t port, const ortc_product_form *form,
                                const ortc_product_constant *what, const ortc_packed **out)
{
    const pack_param param = {.of = *what, .form = *form};
    return ortc_plan_pack(p, port, form->type == ORTC_BF16 ? &packing_bf16 : &packing, &param, sizeof param,
                          out);
}

ortc_status ortc_product_packed_or_left(ortc_plan *p, uint32_t port, const ortc_product_line *line,
                                        const ortc_product_constant *what, int64_t m, const ortc_packed **out)
{
    const pack_param param = {.of = *what, .form = line->b};
    const int large = m == 1 || pack_bytes(NULL, &param) > LEFT_BYTES;
    if (!large || line->begin || line->can & ORTC_LINE_SPLIT || line->b.type != p->in[port].dtype)
        return ortc_product_packed(p, port, &line->b, what, out);
    return ortc_plan_pack(p, port, &packing_left, &param, sizeof param, out);
}

int ortc_product_symmetric(const ortc_view *in, uint32_t n_in, int64_t moved)
{
    const ortc_view *v = n_in > 3 && in[3].dtype ? &in[3] : NULL;
    if (!v) return moved == 0;
    const int64_t n = ortc_view_count(v), size = ortc_dtype_bits(v->dtype) / 8;
    if (!(v->flags & ORTC_VIEW_CONST) || !v->data || !size) return 0;
    /* the first is 0, and each as the one before it */
    return !n || (ortc_load_i64(v->data, v->dtype, 0) + moved == 0 &&
                  !memcmp(v->data, (const char *)v->data + size, (size_t)((n - 1) * size)));
}

int ortc_product_symmetric_as(const ortc_view *in, uint32_t n_in, const ortc_product_form *form)
{
    const ortc_dtype w = in[1].dtype;
    return ortc_product_symmetric(in, n_in,
                                  form->type == ORTC_U8 && w == ORTC_I8   ? 128
                                  : form->type == ORTC_I8 && w == ORTC_U8 ? -128
                                                                          : 0);
}
