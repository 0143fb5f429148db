/* Packing operands into their forms (product_uk.h): f32 in place by an instruction set's moves; other floats
 * through blocks of f32 on the stack; forms with groups or planes element by element, from those
 * blocks; bytes by the instruction set's, too. Constants are packed once (fill); what tasks share, and what a
 * task packs for itself, goes through the same functions.
 */
#include "product_pack.h"

#include "kernels/common/vector/convert.h"
#include "product_packed.h"

/* Steps of k at a time: a panel is a few cache lines of each row of B, and rows are often a power of two
 * apart, where lines evict each other; so a block of rows gives to all panels before the next. */
#define BLOCK 64
_Static_assert(BLOCK % ORTC_FORM_GROUP == 0, "a block is whole groups");

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- From blocks to forms ------------------------------------------------------------------------------ */

/* Place of column j, step `kk` of its group, in a group's plane. */
static int64_t place(const ortc_product_form *f, int64_t width, int64_t j, int64_t kk)
{
    return f->order == ORTC_ORDER_PAIRS ? (kk / 2 * width + j) * 2 + kk % 2 : j * f->group + kk;
}

static uint16_t bf16_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return v != v ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static float f32_of(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* [count][width] of f32 as bf16 pieces: what is left of an element after a piece goes to the next plane;
 * infinity and NaN leave nothing. Steps behind `count` are zero. */
static void pack_pieces(const ortc_product_form *f, const float *src, int64_t count, int64_t width,
                        uint16_t *dst)
{
    for (int64_t k = 0; k < ortc_product_ceil_div(count, f->group) * f->group; k++)
        for (int64_t j = 0; j < width; j++) {
            float v = k < count ? src[k * width + j] : 0;
            for (int64_t p = 0; p < f->planes; p++) {
                const uint16_t piece = bf16_of(v);
                dst[(k / f->group * f->planes + p) * width * f->group + place(f, width, j, k % f->group)] =
                    piece;
                v = v - v == 0 ? v - f32_of(piece) : 0;
            }
        }
}

/* ---- One piece of a panel ------------------------------------------------------------------------------ */

static void pack_floats(const ortc_product_form *f, const ortc_product_source *s,
                        const ortc_product_panel *at, int64_t k, int64_t count, char *dst)
{
    const ortc_product_vec *vec = s->moves->vec;
    const size_t w = (size_t)at->have, dw = (size_t)at->width, n = (size_t)count;
    const size_t size = (size_t)ortc_product_size(s->type), first = (size_t)at->first, ld = (size_t)s->ld;
    float wide[BLOCK * ORTC_FORM_WIDTH], block[BLOCK * ORTC_FORM_WIDTH];
    float *out = ortc_form_is_plain(f) ? (float *)(void *)dst : block;
    if (s->custom) {
        void *to = s->type == ORTC_F32 ? out : wide;
        s->custom(s->arg, s->index, k, count, at->first, at->have, to, dw);
        if (to != out) vec->load[ortc_float_index(s->type)](1, n * dw, to, 0, out, 0);
    } else {
        const char *src = (const char *)s->data +
                          (s->along ? first * ld + (size_t)k : (size_t)k * ld + first) * size;
        const float *from = (const float *)(const void *)src;
        size_t from_ld = ld;
        if (s->type != ORTC_F32) {
            from = wide, from_ld = s->along ? n : w;
            vec->load[ortc_float_index(s->type)](s->along ? w : n, s->along ? n : w, src, ld, wide, from_ld);
        }
        (s->along ? s->moves->transpose : s->moves->rows)(w, n, from, from_ld, out, dw);
    }
    if (out != block) return;
    if (f->group == 1 && f->planes == 1)
        vec->store[ortc_float_index(f->type)](1, n * dw, block, 0, dst, 0);
    else
        pack_pieces(f, block, count, at->width, (uint16_t *)(void *)dst);
}

static void pack_bytes(const ortc_product_form *f, const ortc_product_source *s, const ortc_product_panel *at,
                       int64_t k, int64_t count, char *dst, int32_t *sums)
{
    const ortc_product_bytes *bytes = s->moves->bytes;
    const size_t w = (size_t)at->have, dw = (size_t)at->width, n = (size_t)count;
    const uint8_t *src = s->data;
    if (s->custom && s->grouped) {
        s->custom(s->arg, s->index, k, count, at->first, at->have, dst, dw);
    } else if (s->custom) {
        uint8_t block[BLOCK * ORTC_FORM_WIDTH];
        s->custom(s->arg, s->index, k, count, at->first, at->have, block, dw);
        bytes->rows(w, n, block, dw, s->type, f->type, dst, dw, sums);
    } else if (!s->along) {
        bytes->rows(w, n, src + k * s->ld + at->first, (size_t)s->ld, s->type, f->type, dst, dw, sums);
    } else { /* rows as they are stored, whose groups change places like floats */
        float lines[ORTC_FORM_WIDTH][BLOCK * 2 / sizeof(float)];
        const size_t groups = (n + f->group - 1u) / f->group, size = (size_t)ortc_product_size(f->type);
        for (size_t j = 0; j < w; j++) {
            const int32_t sum = bytes->line(n, src + (at->first + (int64_t)j) * s->ld + k, s->type, f->type,
                                            lines[j]);
            memset((char *)lines[j] + n * size, 0, (groups * f->group - n) * size);
            if (sums) sums[j] += sum;
        }
        s->moves->transpose(w, groups, lines[0], sizeof *lines / sizeof **lines, (float *)(void *)dst, dw);
    }
}

void ortc_product_pack(const ortc_product_form *f, const ortc_product_source *s, const ortc_product_panel *at,
                       int64_t from, int64_t count, void *dst)
{
    char *to = (char *)dst + ortc_form_data(f, at->width, from);
    const int64_t k0 = at->k0 + from;
    if (ortc_form_is_bytes(f)) {
        int32_t *sums = f->sums ? (int32_t *)(void *)((char *)dst + ortc_form_data(f, at->width, at->kc))
                                : NULL;
        if (sums && from == 0) memset(sums, 0, (size_t)ortc_form_sums(f));
        for (int64_t k = 0; k < count; k += BLOCK)
            pack_bytes(f, s, at, k0 + k, min64(count - k, BLOCK), to + ortc_form_data(f, at->width, k), sums);
    } else if (ortc_form_is_plain(f) && s->type == ORTC_F32 && s->custom) {
        s->custom(s->arg, s->index, k0, count, at->first, at->have, to, (size_t)at->width);
    } else if (ortc_form_is_plain(f) && s->type == ORTC_F32) {
        const float *src = (const float *)s->data +
                           (s->along ? at->first * s->ld + k0 : k0 * s->ld + at->first);
        (s->along ? s->moves->transpose : s->moves->rows)((size_t)at->have, (size_t)count, src, (size_t)s->ld,
                                                          (float *)(void *)to, (size_t)at->width);
    } else {
        for (int64_t k = 0; k < count; k += BLOCK)
            pack_floats(f, s, at, k0 + k, min64(count - k, BLOCK), to + ortc_form_data(f, at->width, k));
    }
}

void ortc_product_pack_panels(const ortc_product_form *f, const ortc_product_source *s, int64_t extent,
                              int64_t panels, int64_t q0, int64_t q1, int64_t k0, int64_t kc, void *dst)
{
    const int64_t step = s->along || s->custom ? kc : BLOCK;
    for (int64_t k = 0; k < kc; k += step) {
        const int64_t count = min64(kc - k, step);
        for (int64_t q = q0; q < q1; q++) {
            const int64_t first = ortc_form_first(f, extent, panels, q),
                          end = min64(extent, ortc_form_first(f, extent, panels, q + 1));
            const ortc_product_panel at = {first, end - first, ortc_form_padded(f, end - first), k0, kc};
            ortc_product_pack(f, s, &at, k, count, (char *)dst + ortc_form_panel_at(f, first, q, kc));
        }
    }
}

/* ---- Constants ----------------------------------------------------------------------------------------- */

typedef struct fill_args {
    const ortc_product_form *form;
    ortc_product_source src;
    int64_t extent, k;
    char *dst;
} fill_args;

static void fill_body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_args *f = arg;
    const int64_t chunk = ortc_form_chunk(f->form, f->k), panels = ortc_form_panels(f->form, f->extent);
    (void)scratch;
    for (int64_t k0 = 0; k0 < f->k; k0 += chunk)
        ortc_product_pack_panels(f->form, &f->src, f->extent, panels, begin, end, k0, min64(f->k - k0, chunk),
                                 f->dst + ortc_form_at(f->form, f->extent, panels, k0, chunk));
}

int64_t ortc_product_pack_grain(const ortc_product_form *form, int64_t k)
{
    const int64_t bytes = ortc_form_data(form, form->width, k > 0 ? k : 1), target = 64 * 1024, least = 4;
    return bytes >= target / least ? least : target / bytes;
}

int32_t ortc_product_fill(const ortc_product_moves *moves, const ortc_product_form *form, ortc_dtype type,
                          int64_t extent, int64_t k, int along, const void *src, int64_t ld, void *dst,
                          const ortc_product_threads *threads)
{
    fill_args f = {
        form, {.moves = moves, .data = src, .type = type, .ld = ld, .along = along}, extent, k, dst};
    if (extent == 0 || k == 0) return 0;
    return threads->parallel(threads->context, ortc_form_panels(form, extent),
                             ortc_product_pack_grain(form, k), fill_body, &f);
}

/* Never 0 for an empty operand: 0 means "does not fit". */
size_t ortc_product_packed_bytes(const ortc_product_form *form, int64_t extent, int64_t k)
{
    const int64_t most = INT64_MAX / 2 - 64;
    int64_t v, chunks;
    if (extent > most || k > most) return 0;
    const int64_t unit = ortc_form_data(form, 1, ORTC_FORM_GROUP) /
                         ORTC_FORM_GROUP; /* bytes of a k and a column */
    if (__builtin_mul_overflow(ortc_form_padded(form, extent), k + form->group, &v) ||
        __builtin_mul_overflow(v, unit, &v))
        return 0;
    chunks = k ? (k - 1) / ortc_form_chunk(form, k) + 1 : 0;
    v = ortc_form_at(form, extent, 0, k, 0);
    const int64_t sums = ortc_form_sums(form) * ortc_form_panels(form, extent);
    if (__builtin_mul_overflow(sums, chunks, &chunks) || __builtin_add_overflow(v, chunks, &v)) return 0;
    return v ? (size_t)v : sizeof(float);
}
