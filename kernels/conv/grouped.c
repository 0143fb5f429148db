/* Laying images of bytes out in groups of channels, panels of columns from that, and W (grouped.h). */
#include "grouped.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/common/counts.h"
#include "kernels/common/uk.h"
#include "kernels/gemm/epilogue.h"

ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_grouped_body)
ORTC_VEC_TABLE(ortc_grouped_body)

#define LEAST 3    /* channels: of fewer most of a group would be padding */
#define TASK 65536 /* bytes laid out together */

/* Channels in 4 bytes of a panel: longer groups are several of those, one behind the other. */
static int32_t together(const ortc_product_form *form)
{
    return form->order == ORTC_ORDER_QUADS ? 4 : form->group;
}
/* Of all taps, in whole groups of the form; what fills up the last is 0. */
static int64_t length(const ortc_product_form *form, int64_t groups, int64_t taps)
{
    return (groups * taps * together(form) + form->group - 1) / form->group * form->group;
}

int ortc_grouped_init(const ortc_conv_geometry *g, ortc_dtype type, const ortc_product_form *form,
                      ortc_grouped *p)
{
    int64_t bytes;
    *p = (ortc_grouped){.group = together(form), .type = type, .to = form->type, .channels = g->channels};
    if (g->spatial != 2 || g->channels < LEAST) return 0;
    for (int i = 0; i < 2; i++) {
        p->in[i] = g->in[i], p->out[i] = g->out[i], p->kernel[i] = g->kernel[i];
        p->stride[i] = g->stride[i], p->dilation[i] = g->dilation[i], p->pad[i] = g->pad[i];
        if (g->pad[i] < 0) return 0;
        const int64_t reach = (g->out[i] - 1) * g->stride[i] + (g->kernel[i] - 1) * g->dilation[i] + 1;
        *(i ? &p->columns : &p->rows) = reach;
    }
    p->taps = g->kernel_count;
    p->groups = (g->channels + p->group - 1) / p->group;
    p->images = g->images * g->group;
    if (__builtin_mul_overflow(p->groups * p->group, p->taps, &p->k) || p->k > INT64_MAX - form->group ||
        __builtin_mul_overflow(p->rows, p->columns, &bytes) ||
        __builtin_mul_overflow(bytes, 4 * p->groups, &bytes) ||
        __builtin_mul_overflow(bytes, p->images, &bytes) || bytes > INT64_MAX / 4)
        return 0;
    p->bytes = (size_t)bytes;
    p->k = length(form, p->groups, p->taps);
    return p->taps > 0;
}

/* ---- The image ----------------------------------------------------------------------------------------- */

typedef struct lay_job {
    const ortc_grouped *p;
    const ortc_product_bytes *bytes;
    const uint8_t *x;
    int32_t *to, zero;
} lay_job;

/* A row of one group of channels. */
static void lay_row(const lay_job *j, int64_t image, int64_t group, int64_t row, int32_t *to)
{
    const ortc_grouped *p = j->p;
    const int64_t from = row - p->pad[0], count = p->in[0] * p->in[1];
    const int64_t first = group * p->group, some = min64(p->channels - first, p->group);
    const int64_t left = min64(p->pad[1], p->columns), have = min64(p->in[1], p->columns - left);
    if (from < 0 || from >= p->in[0]) {
        for (int64_t i = 0; i < p->columns; i++) to[i] = j->zero;
        return;
    }
    for (int64_t i = 0; i < left; i++) to[i] = j->zero;
    j->bytes->rows((size_t)have, (size_t)some, j->x + (image * p->channels + first) * count + from * p->in[1],
                   (size_t)count, p->type, p->to, to + left, (size_t)have, NULL);
    for (int64_t i = left + have; i < p->columns; i++) to[i] = j->zero;
}

static void lay(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const lay_job *j = arg;
    const ortc_grouped *p = j->p;
    (void)scratch;
    for (int64_t i = begin; i < end; i++)
        lay_row(j, i / p->rows / p->groups, i / p->rows % p->groups, i % p->rows, j->to + i * p->columns);
}

ortc_status ortc_grouped_lay(const ortc_grouped *p, const uint8_t *x, uint8_t zero, void *to, ortc_call *call)
{
    lay_job j = {p, ortc_product_moves_select()->bytes, x, to, 0};
    const uint8_t zeros[4] = {zero, zero, zero, zero};
    j.bytes->rows(1, (size_t)p->group, zeros, 1, p->type, p->to, &j.zero, 1, NULL);
    return ortc_parallel(call, p->images * p->groups * p->rows, 1 + TASK / (1 + 4 * p->columns), lay, &j);
}

/* ---- Panels -------------------------------------------------------------------------------------------- */

void ortc_grouped_panel(const ortc_grouped *p, const void *laid, int64_t index, int64_t k0, int64_t kc,
                        int64_t n0, int64_t nc, void *dst, size_t dw)
{
    const ortc_grouped_body *body = ortc_grouped_body_select();
    const int64_t plane = p->rows * p->columns, g1 = (k0 + kc) / p->group, have = p->groups * p->taps;
    const int32_t *image = (const int32_t *)laid + index * p->groups * plane;
    int32_t *to = dst;
    for (int64_t g = k0 / p->group; g < g1; g++, to += dw) {
        if (g >= have) {
            memset(to, 0, dw * sizeof *to);
            continue;
        }
        const int64_t tap = g % p->taps;
        const int32_t *from = image + g / p->taps * plane + tap / p->kernel[1] * p->dilation[0] * p->columns +
                              tap % p->kernel[1] * p->dilation[1];
        int64_t done = 0;
        while (done < nc) { /* runs within a row of results */
            const int64_t row = (n0 + done) / p->out[1], column = (n0 + done) % p->out[1];
            const int64_t some = min64(p->out[1] - column, nc - done);
            body->words((size_t)some, (size_t)p->stride[1],
                        from + row * p->stride[0] * p->columns + column * p->stride[1], to + done);
            done += some;
        }
        memset(to + nc, 0, (dw - (size_t)nc) * sizeof *to);
    }
}

/* ---- W ------------------------------------------------------------------------------------------------- */

/* Compared bytewise: no padding between these. */
typedef struct pack_param {
    int64_t groups, filters, channels, taps;
    ortc_product_form form, form_b; /* of W; of the panels */
    ortc_dtype type;
    int32_t nothing;
} pack_param;
_Static_assert(sizeof(pack_param) == 4 * 8 + 2 * sizeof(ortc_product_form) + 8, "padding has no fixed bytes");

static int64_t k_of(const pack_param *p)
{
    const int64_t G = together(&p->form_b);
    return length(&p->form_b, (p->channels + G - 1) / G, p->taps);
}

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const pack_param *p = param;
    size_t all;
    (void)src;
    return __builtin_mul_overflow(ortc_product_packed_bytes(&p->form, p->filters, k_of(p)), (size_t)p->groups,
                                  &all)
               ? 0
               : all;
}

/* [channels][taps] to [group of channels][tap][channel]; channels that are not there are 0 when packed. */
static void turn(const pack_param *p, const char *w, char *to)
{
    const int64_t G = together(&p->form_b);
    char *const end = to + k_of(p);
    const char nothing = p->type == ORTC_I8 && p->form.type == ORTC_U8   ? (char)0x80
                         : p->type == ORTC_U8 && p->form.type == ORTC_I8 ? (char)0x80
                                                                         : 0;
    for (int64_t c = 0; c < p->channels; c += G)
        for (int64_t tap = 0; tap < p->taps; tap++)
            for (int64_t i = 0; i < G; i++)
                *to++ = c + i < p->channels ? w[(c + i) * p->taps + tap] : nothing;
    memset(to, nothing, (size_t)(end - to));
}

static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const pack_param *p = param;
    const ortc_product_threads threads = {ortc_call_parallel, call};
    const int64_t k = k_of(p), count = p->filters * k;
    const size_t step = ortc_product_packed_bytes(&p->form, p->filters, k);
    const char *w = src->data;
    ortc_status s = ORTC_OK;
    char *turned = malloc((size_t)count + 1);
    if (!turned) return ortc_call_fail(call, ORTC_OUT_OF_MEMORY, "no memory to pack weights");
    for (int64_t g = 0; g < p->groups && !s; g++) {
        for (int64_t f = 0; f < p->filters; f++)
            turn(p, w + (g * p->filters + f) * p->channels * p->taps, turned + f * k);
        s = ortc_product_fill(ortc_product_moves_select(), &p->form, p->type, p->filters, k, 1, turned, k,
                              (char *)dst + (size_t)g * step, &threads);
    }
    free(turned);
    return s;
}

static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.conv.grouped", pack_bytes, pack_fill,
                                     ORTC_PACKING_PASSES};

ortc_status ortc_grouped_pack(ortc_plan *p, uint32_t port, const ortc_grouped *how,
                              const ortc_conv_geometry *g, const ortc_product_line *line,
                              const ortc_packed **out)
{
    const pack_param param = {g->group, g->filters, how->channels,    how->taps,
                              line->a,  line->b,    p->in[port].dtype};
    return ortc_plan_pack(p, port, &packing, &param, sizeof param, out);
}
