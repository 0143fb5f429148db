/* Packing operands into their forms (product_uk.h): f32 in place by an instruction set's moves; other floats
 * through blocks of f32 on the stack; forms with groups or planes from those blocks; bytes by the instruction
 * set's, too. Constants are packed once (fill); what tasks share, and what a
 * task packs for itself, goes through the same functions.
 */
#include "product_pack.h"

#include "kernels/common/counts.h"
#include "kernels/common/vector/convert.h"
#include "product_packed.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Steps of k at a time: a panel is a few cache lines of each row of B, and rows are often a power of two
 * apart, where lines evict each other; so a block of rows gives to all panels before the next. */
#define BLOCK 64
_Static_assert(BLOCK % ORTC_FORM_GROUP == 0, "a block is whole groups");

/* ---- One piece of a panel ------------------------------------------------------------------------------ */

/* Whether k runs along the rows of a group of bf16, rather than in pairs of columns; of bytes. */
static int is_in_rows(const ortc_product_form *f)
{
    return f->order == ORTC_ORDER_KFAST && f->group * ortc_product_size(f->type) > 4;
}

/* Whether it goes in as it is: bf16 along k. */
static int copy_rows(const ortc_product_form *f, const ortc_product_source *s, const ortc_product_panel *at,
                     int64_t k, int64_t count, char *dst)
{
    const int64_t group = f->group, bytes = group * 2;
    if (s->type != f->type || f->planes > 1 || !is_in_rows(f) || !s->along || s->custom) return 0;
    for (int64_t k0 = 0; k0 < count; k0 += group)
        for (int64_t j = 0; j < at->width; j++, dst += bytes) {
            const int64_t have = j >= at->have ? 0 : 2 * min64(count - k0, group);
            if (have == 64) { /* one move */
                memcpy(dst, (const char *)s->data + 2 * ((at->first + j) * s->ld + k + k0), 64);
                continue;
            }
            if (have)
                memcpy(dst, (const char *)s->data + 2 * ((at->first + j) * s->ld + k + k0), (size_t)have);
            memset(dst + have, 0, (size_t)(bytes - have));
        }
    return 1;
}

/* Returns whether there is an element that pieces do not hold. */
static int pack_floats(const ortc_product_form *f, const ortc_product_source *s, const ortc_product_panel *at,
                       int64_t k, int64_t count, char *dst)
{
    const ortc_product_vec *vec = s->moves->vec;
    const size_t w = (size_t)at->have, dw = (size_t)at->width, n = (size_t)count;
    const size_t size = (size_t)ortc_product_size(s->type), first = (size_t)at->first, ld = (size_t)s->ld;
    const int pieces = f->group > 1 || f->planes > 1, in_rows = pieces && is_in_rows(f);
    float wide[BLOCK * ORTC_FORM_WIDTH], block[BLOCK * ORTC_FORM_WIDTH];
    float *out = ortc_form_is_plain(f) ? (float *)(void *)dst : block;
    if (copy_rows(f, s, at, k, count, dst)) return 0;
    const float *from = wide; /* [k][w], or along k [w][k]; by then f32 */
    size_t from_ld = s->along && !s->custom ? n : w;
    if (s->custom) {
        float *to = s->type == ORTC_F32 ? out : wide;
        s->custom(s->arg, s->index, k, count, at->first, at->have, to, dw);
        if (to != out) vec->load[ortc_float_index(s->type)](1, n * dw, to, 0, out, 0);
        from = out, from_ld = dw;
    } else {
        const char *src = (const char *)s->data +
                          (s->along ? first * ld + (size_t)k : (size_t)k * ld + first) * size;
        if (s->type == ORTC_F32)
            from = (const float *)(const void *)src, from_ld = ld;
        else
            vec->load[ortc_float_index(s->type)](s->along ? w : n, s->along ? n : w, src, ld, wide, from_ld);
    }
    if (in_rows) {
        if (!s->along || s->custom) {
            s->moves->transpose(n, w, from, from_ld, from == wide ? block : wide, BLOCK);
            from = from == wide ? block : wide, from_ld = BLOCK;
        }
        if (w < dw) memset(dst, 0, (size_t)ortc_form_data(f, (int64_t)dw, count));
        return s->moves->pieces->runs(w, n, from, from_ld, f->planes, f->group, (uint16_t *)(void *)dst, dw);
    }
    if (from != out) (s->along ? s->moves->transpose : s->moves->rows)(w, n, from, from_ld, out, dw);
    if (out != block) return 0;
    if (pieces) /* B has one */
        s->moves->pieces->pairs(dw, n, block, 1, f->group, dst);
    else
        vec->store[ortc_float_index(f->type)](1, n * dw, block, 0, dst, 0);
    return 0;
}

/* Bytes in groups of 4, [k / 4][dw][4]; of 16 bits, of 2. */
static void pack_quads(const ortc_product_form *f, const ortc_product_source *s, const ortc_product_panel *at,
                       int64_t k, int64_t count, void *dst, int32_t *sums)
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
        const size_t size = (size_t)ortc_product_size(f->type), quads = (n * size + 3) / 4;
        for (size_t j = 0; j < w; j++) {
            const int32_t sum = bytes->line(n, src + (at->first + (int64_t)j) * s->ld + k, s->type, f->type,
                                            lines[j]);
            memset((char *)lines[j] + n * size, 0, quads * 4 - n * size);
            if (sums) sums[j] += sum;
        }
        s->moves->transpose(w, quads, lines[0], sizeof *lines / sizeof **lines, (float *)(void *)dst, dw);
    }
}

static void pack_bytes(const ortc_product_form *f, const ortc_product_source *s, const ortc_product_panel *at,
                       int64_t k, int64_t count, char *dst, int32_t *sums)
{
    const int64_t group = f->group * ortc_product_size(f->type), width = at->width;
    if (!is_in_rows(f)) {
        const int64_t have = ortc_product_ceil_div(count * ortc_product_size(f->type), 4) * 4;
        pack_quads(f, s, at, k, count, dst, sums);
        memset(dst + have * width, 0, (size_t)((ortc_product_ceil_div(have, group) * group - have) * width));
        return;
    }
    for (int64_t k0 = 0; k0 < count; k0 += f->group, dst += width * group) {
        const int64_t n = min64(count - k0, f->group);
        if (s->along && !s->custom) {
            const uint8_t *src = (const uint8_t *)s->data + at->first * s->ld + k + k0;
            for (int64_t j = 0; j < width; j++) {
                const int64_t have = j < at->have ? n : 0;
                char *to = dst + j * group;
                if (have && sums)
                    sums[j] += s->moves->bytes->line((size_t)n, src + j * s->ld, s->type, f->type, to);
                memset(to + have, 0, (size_t)(group - have));
            }
        } else {
            float quads[BLOCK / 4 * ORTC_FORM_WIDTH];
            pack_quads(f, s, at, k + k0, n, quads, sums);
            s->moves->transpose((size_t)ortc_product_ceil_div(n, 4), (size_t)width, quads, (size_t)width,
                                (float *)(void *)dst, (size_t)group / 4);
        }
    }
}

/* A panel with an element that pieces do not hold. */
static void pack_whole(const ortc_product_form *f, const ortc_product_source *s, const ortc_product_panel *at,
                       void *dst)
{
    const ortc_product_form plain = {.type = ORTC_F32, .width = f->width, .group = 1, .planes = 1};
    const int64_t padded = ortc_product_ceil_div(at->kc, f->group) * f->group;
    ortc_product_pack(&plain, s, at, 0, at->kc, dst);
    memset((float *)dst + at->kc * at->width, 0, (size_t)((padded - at->kc) * at->width) * sizeof(float));
}

void ortc_product_pack(const ortc_product_form *f, const ortc_product_source *s, const ortc_product_panel *at,
                       int64_t from, int64_t count, void *dst)
{
    char *to = (char *)dst + ortc_form_data(f, at->width, from);
    const int64_t k0 = at->k0 + from;
    int32_t *behind = ortc_form_sums(f)
                          ? (int32_t *)(void *)((char *)dst + ortc_form_data(f, at->width, at->kc))
                          : NULL;
    if (behind && from == 0) memset(behind, 0, (size_t)ortc_form_sums(f));
    if (ortc_form_is_bytes(f)) {
        for (int64_t k = 0; k < count; k += BLOCK)
            pack_bytes(f, s, at, k0 + k, min64(count - k, BLOCK), to + ortc_form_data(f, at->width, k),
                       behind);
    } else if (s->custom && (s->grouped || (ortc_form_is_plain(f) && s->type == ORTC_F32))) {
        s->custom(s->arg, s->index, k0, count, at->first, at->have, to, (size_t)at->width);
    } else if (ortc_form_is_plain(f) && s->type == ORTC_F32) {
        const float *src = (const float *)s->data +
                           (s->along ? at->first * s->ld + k0 : k0 * s->ld + at->first);
        (s->along ? s->moves->transpose : s->moves->rows)((size_t)at->have, (size_t)count, src, (size_t)s->ld,
                                                          (float *)(void *)to, (size_t)at->width);
    } else {
        for (int64_t k = 0; k < count; k += BLOCK) {
            const int other = pack_floats(f, s, at, k0 + k, min64(count - k, BLOCK),
                                          to + ortc_form_data(f, at->width, k));
            if (behind) *behind |= other;
        }
        if (behind && *behind && from + count == at->kc) pack_whole(f, s, at, dst);
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

/* What is written once and not read soon goes past the caches: no line is fetched to be overwritten. A task
 * ends with far_done, so that other threads may read it. */
static void write_far(void *dst, const void *src, int64_t bytes)
{
#if defined(__SSE2__)
    if (((uintptr_t)dst | (uintptr_t)src | (uintptr_t)bytes) % sizeof(__m128i) == 0) {
        __m128i *to = dst;
        const __m128i *from = src;
        for (int64_t i = 0; i < bytes / (int64_t)sizeof *to; i++) _mm_stream_si128(to + i, from[i]);
        return;
    }
#endif
    memcpy(dst, src, (size_t)bytes);
}
static void far_done(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#define FAR_BYTES (1 << 20) /* forms of which so much is not in a cache when they are read */
#define FAR_ROWS 16         /* of the source: longer blocks are more pages than a core knows at once */
#define FAR_PANELS 48       /* rows of so many come at memory's rate */
#define FAR_TASK (1 << 18)  /* bytes */

/* of tasks that run together, before the source hears that it was read: an eighth of all, within these */
#define FAR_STEP_LEAST (1 << 20)
#define FAR_STEP_MOST (4 << 20)

/* Tasks of forms that are written far are of some panels and some k. */
typedef struct far_args {
    const fill_args *f;
    int64_t panels, chunk, tall, deep; /* panels, and k, of a task */
    int64_t q0, q1, k0, k1;            /* of those that run together */
} far_args;

/* Panels q0 .. q1-1, steps k0 .. k1-1. */
static void fill_far(const far_args *a, int64_t q0, int64_t q1, int64_t k0, int64_t k1)
{
    _Alignas(64) char block[BLOCK * ORTC_FORM_WIDTH * sizeof(float)];
    const fill_args *f = a->f;
    const ortc_product_form *form = f->form;
    const int64_t step = f->src.along || form->group > FAR_ROWS ? BLOCK : FAR_ROWS;
    for (int64_t k = k0, count; k < k1; k += count) {
        const int64_t at_chunk = k / a->chunk * a->chunk, kc = min64(f->k - at_chunk, a->chunk);
        char *dst = f->dst + ortc_form_at(form, f->extent, a->panels, at_chunk, a->chunk);
        count = min64(min64(step, k1 - k), at_chunk + kc - k);
        for (int64_t q = q0; q < q1; q++) {
            const int64_t first = ortc_form_first(form, f->extent, a->panels, q),
                          have = min64(f->extent, ortc_form_first(form, f->extent, a->panels, q + 1)) - first,
                          width = ortc_form_padded(form, have);
            const ortc_product_panel at = {first, have, width, k, count};
            ortc_product_pack(form, &f->src, &at, 0, count, block);
            write_far(dst + ortc_form_panel_at(form, first, q, kc) +
                          ortc_form_data(form, width, k - at_chunk),
                      block, ortc_form_data(form, width, count));
        }
    }
}

static void far_body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const far_args *a = arg;
    const int64_t parts = ortc_product_ceil_div(a->k1 - a->k0, a->deep);
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t q = a->q0 + i / parts * a->tall, k = a->k0 + i % parts * a->deep;
        fill_far(a, q, min64(a->q1, q + a->tall), k, min64(a->k1, k + a->deep));
    }
    far_done();
}

static void fill_body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_args *f = arg;
    const int64_t chunk = ortc_form_chunk(f->form, f->k), panels = ortc_form_panels(f->form, f->extent);
    (void)scratch;
    for (int64_t k0 = 0; k0 < f->k; k0 += chunk)
        ortc_product_pack_panels(f->form, &f->src, f->extent, panels, begin, end, k0, min64(f->k - k0, chunk),
                                 f->dst + ortc_form_at(f->form, f->extent, panels, k0, chunk));
}

/* Panels that a thread packs at a time: of columns several, which share cache lines of the source's rows. */
static int64_t pack_grain(const ortc_product_form *form, int64_t k, int along)
{
    const int64_t bytes = ortc_form_data(form, form->width, k > 0 ? k : 1), least = along ? 1 : 4,
                  target = least * 16 * 1024;
    return bytes >= target / least ? least : target / bytes;
}

int32_t ortc_product_fill(const ortc_product_moves *moves, const ortc_product_form *form, ortc_dtype type,
                          int64_t extent, int64_t k, int along, const void *src, int64_t ld, void *dst,
                          const ortc_product_threads *threads)
{
    fill_args f = {
        form, {.moves = moves, .data = src, .type = type, .ld = ld, .along = along}, extent, k, dst};
    if (extent == 0 || k == 0) return 0;
    return threads->parallel(threads->context, ortc_form_panels(form, extent), pack_grain(form, k, along),
                             fill_body, &f);
}

int32_t ortc_product_fill_far(const ortc_product_moves *moves, const ortc_product_form *form, ortc_dtype type,
                              int64_t extent, int64_t k, int along, const void *src, void *dst,
                              const ortc_product_threads *threads, ortc_product_done *done)
{
    const int64_t ld = along ? k : extent, size = ortc_product_size(type);
    const fill_args f = {
        form, {.moves = moves, .data = src, .type = type, .ld = ld, .along = along}, extent, k, dst};
    far_args a = {&f, ortc_form_panels(form, extent), ortc_form_chunk(form, k), along ? 1 : FAR_PANELS};
    if (ortc_form_sums(form) || form->planes > 1 || ortc_form_data(form, extent, k) < FAR_BYTES)
        return ortc_product_fill(moves, form, type, extent, k, along, src, ld, dst, threads);
    a.deep = ortc_product_ceil_div(FAR_TASK, ortc_form_data(form, a.tall * form->width, BLOCK)) * BLOCK;
    a.q1 = a.panels, a.k1 = k;
    /* rows of the source, one behind the other: of panels, or of k */
    int64_t *from = along ? &a.q0 : &a.k0, *to = along ? &a.q1 : &a.k1;
    const int64_t all = *to, unit = along ? 1 : a.deep;
    const int64_t eighth = max64(FAR_STEP_LEAST, ortc_form_data(form, extent, k) / 8),
                  together = min64(eighth, FAR_STEP_MOST),
                  bytes = along ? ortc_form_data(form, form->width, k) : ortc_form_data(form, extent, unit),
                  step = unit * (bytes < together ? together / bytes : 1);
    int32_t status = 0;
    for (; *from < all && !status; *from = *to) {
        *to = min64(all, *from + step);
        const int64_t tasks = ortc_product_ceil_div(a.q1 - a.q0, a.tall) *
                              ortc_product_ceil_div(a.k1 - a.k0, a.deep);
        status = threads->parallel(threads->context, tasks, 1, far_body, &a);
        const int64_t row = along ? ortc_form_first(form, extent, a.panels, a.q0) : a.k0,
                      end = along ? min64(extent, ortc_form_first(form, extent, a.panels, a.q1)) : a.k1;
        if (done)
            done(threads->context, (const char *)src + row * ld * size, (size_t)((end - row) * ld * size));
    }
    return status;
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
