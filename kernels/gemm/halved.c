/* Packing, and the loops around tiles, of halved.h. */
#include "halved.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/common/counts.h"
#include "kernels/common/cpu_features.h"

#define LINE 64
#define TASK_MACS 2e6
#define TASKS_EACH 4 /* of a thread */
#define ROWS 48      /* of a part: sums of so many, and of PANELS, stay in L1 */
#define PANELS 4

#if defined(__x86_64__)
extern const ortc_halved_body ortc_halved_body_avx2, ortc_halved_body_avx512;
#endif
const ortc_halved_body *ortc_halved_get(void)
{
#if defined(__x86_64__)
    const uint32_t has = ortc_cpu_features(),
                   better = ORTC_CPU_AVX512_VNNI | ORTC_CPU_AVX_VNNI | ORTC_CPU_AMX;
    if (has & better) return NULL;
    if (has & ORTC_CPU_AVX512) return &ortc_halved_body_avx512;
    if (has & ORTC_CPU_AVX2) return &ortc_halved_body_avx2;
#endif
    return NULL;
}

/* ---- Packing ------------------------------------------------------------------------------------------- */

static size_t to_line(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

/* Where things lie in a packed B. */
typedef struct packed {
    int64_t panels, words, width;
    size_t panel; /* bytes of one */
    size_t sums;  /* at which byte they begin, */
    size_t begin; /* and uint32_t [registers + 1]: where what is taken once more by each begins, */
    size_t more;  /* uint32_t [n], their words; behind these, at a line, weights [n][lanes][4] */
} packed;

static packed packed_of(const ortc_halved_body *body, int64_t n, int64_t k)
{
    const int64_t width = 2 * (int64_t)body->lanes;
    packed p = {ceil_div(n, width), ceil_div(k, 4), width, 0, 0, 0, 0};
    p.panel = (size_t)(p.words * width * 4);
    p.sums = p.panel * (size_t)p.panels;
    p.begin = p.sums + to_line((size_t)(p.panels * width) * sizeof(int32_t));
    p.more = p.begin + to_line((size_t)(2 * p.panels + 1) * sizeof(uint32_t));
    return p;
}

/* Compared bytewise. */
typedef struct pack_param {
    const ortc_halved_body *body;
    int64_t n, k, along; /* along: it is [n][k], else [k][n] */
} pack_param;

/* Panels that are filled side by side, a block of k after the other: they share lines of B, whose rows may be
 * a page apart. */
#define BESIDE 4
#define BLOCK 64
#define MOST_WIDTH 32 /* of a panel */

/* Words of n panels from q on, and the sums of their columns. */
static void fill_panels(const packed *p, int64_t q, int64_t n, const pack_param *of, const ortc_view *src,
                        int8_t *w, int32_t *sums)
{
    const ortc_product_moves *moves = ortc_product_moves_select();
    const uint8_t *b = src->data;
    memset(sums, 0, (size_t)(n * p->width) * sizeof *sums);
    for (int64_t k = 0; k < of->k; k += BLOCK) {
        for (int64_t r = k + BLOCK; !of->along && r < min64(k + 2 * BLOCK, of->k); r++)
            __builtin_prefetch(b + r * of->n + q * p->width);
        for (int64_t i = 0; i < n; i++) {
            const int64_t first = (q + i) * p->width;
            const size_t cols = (size_t)min64(p->width, of->n - first),
                         rows = (size_t)min64(BLOCK, of->k - k);
            int8_t *to = w + i * (int64_t)p->panel + k * p->width;
            if (!of->along) {
                moves->bytes->rows(cols, rows, b + k * of->n + first, (size_t)of->n, (int)src->dtype, ORTC_I8,
                                   to, (size_t)p->width, sums + i * p->width);
                continue;
            }
            float lines[MOST_WIDTH][BLOCK / sizeof(float)]; /* whose words change places like floats */
            memset(lines, 0, sizeof lines);
            for (size_t c = 0; c < cols; c++)
                sums[i * p->width + (int64_t)c] += moves->bytes->line(rows,
                                                                      b + (first + (int64_t)c) * of->k + k,
                                                                      (int)src->dtype, ORTC_I8, lines[c]);
            moves->transpose(cols, (rows + 3) / 4, lines[0], BLOCK / sizeof(float), (float *)(void *)to,
                             (size_t)p->width);
        }
    }
}

/* How many words of a register, of panels, are split. */
static size_t far_words(const ortc_halved_body *body, const packed *p, int64_t half, const int8_t *w)
{
    const size_t size = (size_t)body->lanes * 4;
    return body->far((size_t)p->words, w + (size_t)half * size, 2 * size);
}

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const pack_param *of = param;
    const ortc_halved_body *body = of->body;
    const packed p = packed_of(body, of->n, of->k);
    int8_t *w = malloc(BESIDE * p.panel + 1);
    int32_t *sums = malloc((size_t)(BESIDE * p.width) * sizeof *sums);
    size_t more = 0;
    for (int64_t q = 0; w && sums && q < p.panels; q += BESIDE) {
        const int64_t n = min64(BESIDE, p.panels - q);
        fill_panels(&p, q, n, of, src, w, sums);
        for (int64_t i = 0; i < 2 * n; i++) more += far_words(body, &p, i % 2, w + i / 2 * (int64_t)p.panel);
    }
    if (!w || !sums) more = (size_t)(2 * p.panels * p.words); /* memory is short: as many as there may be */
    free(w);
    free(sums);
    return more <= UINT32_MAX ? p.more + to_line(more * sizeof(uint32_t)) + more * body->lanes * 4 : 0;
}

typedef struct fill_arg {
    const pack_param *of;
    const ortc_view *src;
    packed p;
    int8_t *w;
    int32_t *sums;
    uint32_t *begin; /* while panels are filled, how many there are of each */
    uint32_t *more;
    int8_t *more_w;
} fill_arg;

static void fill_some(void *arg, int64_t first, int64_t end, void *scratch)
{
    const fill_arg *a = arg;
    (void)scratch;
    for (int64_t q = first * BESIDE; q < min64(end * BESIDE, a->p.panels); q += BESIDE) {
        const int64_t n = min64(BESIDE, a->p.panels - q);
        int8_t *w = a->w + (int64_t)a->p.panel * q;
        fill_panels(&a->p, q, n, a->of, a->src, w, a->sums + q * a->p.width);
        for (int64_t i = 0; i < 2 * n; i++)
            a->begin[2 * q + i] = (uint32_t)far_words(a->of->body, &a->p, i % 2,
                                                      w + i / 2 * (int64_t)a->p.panel);
    }
}

static void split_registers(void *arg, int64_t first, int64_t end, void *scratch)
{
    const fill_arg *a = arg;
    const int64_t size = (int64_t)a->of->body->lanes * 4;
    (void)scratch;
    for (int64_t part = first; part < end; part++) {
        if (a->begin[part] == a->begin[part + 1]) continue;
        int8_t *w = a->w + (int64_t)a->p.panel * (part / 2) + part % 2 * size,
               *more_w = a->more_w + a->begin[part] * size;
        uint32_t *more = a->more + a->begin[part];
        for (int64_t i = 0; i < a->p.words; i++, w += 2 * size) {
            if (!a->of->body->split(w, more_w)) continue;
            *more++ = (uint32_t)i;
            more_w += size;
        }
    }
}

static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const pack_param *of = param;
    const packed p = packed_of(of->body, of->n, of->k);
    char *to = dst;
    fill_arg a = {of,
                  src,
                  p,
                  dst,
                  (int32_t *)(void *)(to + p.sums),
                  (uint32_t *)(void *)(to + p.begin),
                  (uint32_t *)(void *)(to + p.more),
                  NULL};
    const ortc_status filled = ortc_parallel(call, ceil_div(p.panels, BESIDE), 1, fill_some, &a);
    if (filled) return filled;
    uint32_t count = 0;
    for (int64_t i = 0; i <= 2 * p.panels; i++) {
        const uint32_t n = i < 2 * p.panels ? a.begin[i] : 0;
        a.begin[i] = count;
        count += n;
    }
    a.more_w = (int8_t *)dst + p.more + to_line(count * sizeof *a.more);
    return ortc_parallel(call, 2 * p.panels, 2, split_registers, &a);
}

ortc_status ortc_halved_packed(ortc_plan *p, uint32_t port, const ortc_halved_body *body, int64_t n,
                               int64_t k, int along, const ortc_packed **out)
{
    static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.halved", pack_bytes, pack_fill,
                                         ORTC_PACKING_PASSES};
    const pack_param param = {body, n, k, along};
    return ortc_plan_pack(p, port, &packing, &param, sizeof param, out);
}

/* ---- Running ------------------------------------------------------------------------------------------- */

void ortc_halved_init(const ortc_halved_body *body, int64_t m, int64_t n, int64_t k, ortc_dtype a,
                      uint32_t threads, ortc_halved *h)
{
    const int64_t width = 2 * (int64_t)body->lanes, panels = ceil_div(n, width);
    *h = (ortc_halved){
        .body = body, .m = m, .n = n, .k = k, .flip = a == ORTC_I8, .copies = a == ORTC_I8 || k % 4};
    const double macs = (double)m * (double)n * (double)k;
    const int64_t want = macs < TASK_MACS || threads == 1
                             ? 1
                             : min64((int64_t)(macs / TASK_MACS) + 1, TASKS_EACH * (threads ? threads : 8));
    h->rows = m, h->panels = ceil_div(panels, min64(panels, want));
    const int64_t by_columns = ceil_div(panels, h->panels);
    if (by_columns < want) {
        const int64_t tiles = ceil_div(m, ORTC_HALVED_ROWS);
        h->rows = ceil_div(tiles, min64(tiles, ceil_div(want, by_columns))) * ORTC_HALVED_ROWS;
    }
    h->scratch = (size_t)(min64(m, ROWS) * PANELS * width) * sizeof(int32_t);
    h->workspace = (h->copies ? (size_t)(m * ceil_div(k, 4) * 4) : 0) +
                   (size_t)(panels * width) * sizeof(int32_t);
}

typedef struct job {
    const ortc_halved *h;
    const ortc_halved_args *x;
    const ortc_halved_body *body;
    packed p;
    const uint8_t *a;
    size_t lda;
    const int32_t *first; /* what sums of columns begin with */
} job;

static ortc_halved_panel panel_at(const job *j, int64_t q)
{
    const char *b = j->x->b;
    const uint32_t *begin = (const uint32_t *)(const void *)(b + j->p.begin) + 2 * q,
                   all = ((const uint32_t *)(const void *)(b + j->p.begin))[2 * j->p.panels];
    const uint32_t *more = (const uint32_t *)(const void *)(b + j->p.more);
    const int8_t *more_w = (const int8_t *)b + j->p.more + to_line(all * sizeof *more);
    ortc_halved_panel p = {.w = (const int8_t *)b + (int64_t)j->p.panel * q,
                           .first = j->first + q * j->p.width};
    for (int half = 0; half < 2; half++) {
        p.more[half] = more + begin[half], p.n_more[half] = begin[half + 1] - begin[half];
        p.more_w[half] = more_w + begin[half] * j->body->lanes * 4;
    }
    return p;
}

/* Rows r0 .. r1-1, ROWS at most, under panels q0 .. q1-1, PANELS at most. */
static void part(const job *j, int64_t r0, int64_t r1, int64_t q0, int64_t q1, int32_t *sums)
{
    const int64_t width = j->p.width, ld = (q1 - q0) * width;
    const int64_t tiles = ceil_div(r1 - r0, ORTC_HALVED_ROWS);
    for (int64_t q = q0; q < q1; q++) {
        const ortc_halved_panel panel = panel_at(j, q);
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t at = (r1 - r0) * t / tiles, end = (r1 - r0) * (t + 1) / tiles;
            j->body->tile((size_t)(end - at), (size_t)j->p.words, j->a + (size_t)(r0 + at) * j->lda, j->lda,
                          &panel, sums + at * ld + (q - q0) * width, (size_t)ld);
        }
    }
    const int64_t columns = min64(q1 * width, j->h->n) - q0 * width;
    if (j->x->sums) {
        j->x->sums(j->x->arg, sums, (size_t)(r1 - r0), (size_t)columns, (size_t)ld, r0, q0 * width);
        return;
    }
    for (int64_t i = 0; i < r1 - r0; i++)
        memcpy(j->x->c + (r0 + i) * j->h->n + q0 * width, sums + i * ld, (size_t)columns * sizeof *sums);
}

static void task_body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const int64_t across = ceil_div(j->p.panels, j->h->panels);
    for (int64_t i = begin; i < end; i++) {
        const int64_t r = i / across * j->h->rows, q = i % across * j->h->panels;
        const int64_t r_end = min64(j->h->m, r + j->h->rows), q_end = min64(j->p.panels, q + j->h->panels);
        for (int64_t q0 = q; q0 < q_end; q0 += PANELS)
            for (int64_t r0 = r; r0 < r_end; r0 += ROWS)
                part(j, r0, min64(r_end, r0 + ROWS), q0, min64(q_end, q0 + PANELS), scratch);
    }
}

static void copy_body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const uint8_t flip = j->h->flip ? 0x80 : 0;
    const int64_t k = j->h->k;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        uint8_t *to = (uint8_t *)(uintptr_t)j->a + (size_t)i * j->lda;
        for (int64_t c = 0; c < k; c++) to[c] = j->x->a[i * k + c] ^ flip;
        memset(to + k, 0, j->lda - (size_t)k);
    }
}

int32_t ortc_halved_run(const ortc_halved *h, const ortc_halved_args *x, const ortc_product_threads *th)
{
    job j = {.h = h, .x = x, .body = h->body, .a = x->a, .lda = (size_t)h->k};
    j.p = packed_of(j.body, h->n, h->k);
    const int64_t columns = j.p.panels * j.p.width;
    const int32_t *sums = (const int32_t *)(const void *)((const char *)x->b + j.p.sums);
    int32_t *first = x->workspace;
    const int32_t zero = x->zero + (h->flip ? 128 : 0);
    for (int64_t c = 0; c < columns; c++) first[c] = -zero * sums[c];
    j.first = first;
    if (h->copies) {
        j.a = (const uint8_t *)(first + columns), j.lda = (size_t)(j.p.words * 4);
        const int32_t status = th->parallel(th->context, h->m, 16384 / (h->k + 1) + 1, copy_body, &j);
        if (status) return status;
    }
    return th->parallel(th->context, ceil_div(h->m, h->rows) * ceil_div(j.p.panels, h->panels), 1, task_body,
                        &j);
}
