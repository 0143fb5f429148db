/* kernels/gemm/nbits_rounded.c: MatMulNBits where accuracy_level 4 lets A be rounded to bytes, by the blocks
 * that weights have, for any number of rows; of many where there is no unit of tiles (nbits.c).
 *
 * A panel of weights, some blocks of it at a time, is turned from rows to columns as it lies, in words of 32
 * bits, which the tile pulls apart (nbits_bytes.inc); all rows of x go over it while it is in the caches. So
 * weights are read once for up to ROWS rows, and nothing is unpacked in memory. Sums of a row and a column go
 * from block to block, whatever the tasks: results have the same bits for any number of threads. One row of x
 * goes over rows of weights as they lie, since memory is what it waits for.
 */
#include "kernels/gemm/nbits_job.h"

#include <string.h>

#include "kernels/common/cpu_features.h"
#include "kernels/gemm/product_uk.h"

enum {
    WIDTH = ORTC_NBITS_COLUMNS,
    ROWS = 96,        /* of x over a panel; their sums are in L1 */
    PART_WORDS = 256, /* of a column: a panel of 32 KB. Of 64, memory follows less well */
    TASK_PRODUCTS = 64 * 1024,
    ROUND_ELEMENTS = 16 * 1024 /* that a task rounds */
};

typedef struct rounded_run {
    const nbits_job *jobs;
    const nbits_plan *p;
    int64_t tiers;     /* of ROWS rows */
    int64_t end[MOST]; /* panels of a product and of those before */
    char *workspace;
} rounded_run;

static const ortc_nbits_bytes *bodies_of(const ortc_nbits_vec *body)
{
    const uint32_t has = ortc_cpu_features();
    (void)has;
#ifdef ORTC_TILES_avx512vnni
    if ((has & ORTC_CPU_AVX512) && (has & ORTC_CPU_AVX512_VNNI)) return &ortc_nbits_bytes_avx512vnni;
#endif
#ifdef ORTC_TILES_avxvnni
    if (!(has & ORTC_CPU_AVX512) && (has & ORTC_CPU_AVX2) && (has & ORTC_CPU_AVX_VNNI))
        return &ortc_nbits_bytes_avxvnni;
#endif
    return body->bytes;
}

void ortc_nbits_plan_rounded(const nbits_state *s, nbits_plan *p, size_t *workspace, size_t *scratch)
{
    nbits_rounded_plan *r = &p->rounded;
    size_t shared = 0, own = 0;
    const int64_t each = 32 / s->bits, words = s->block / each;
    r->bodies = bodies_of(p->body);
    r->transpose = ortc_product_moves_select()->transpose;
    r->one = p->m == 1;
    r->lanes = r->one ? (int64_t)r->bodies->lanes : 1;
    const int64_t group = r->lanes * each;
    r->ldx = (p->width + group - 1) / group * group;
    r->parts = r->one ? r->ldx / each : p->blocks;
    r->part = PART_WORDS > words ? PART_WORDS / words : 1;
    r->part = r->part < p->blocks ? r->part : p->blocks;
    r->bytes = ortc_nbits_room(&shared, p->m * r->ldx, 1);
    r->scale = ortc_nbits_room(&shared, p->m * r->parts, sizeof(float));
    r->less = ortc_nbits_room(&shared, p->m * r->parts, sizeof(int32_t));
    r->offset = ortc_nbits_room(&shared, r->one ? p->blocks : 0, sizeof(float));
    r->strange = ortc_nbits_room(&shared, p->m, 1);
    r->words = ortc_nbits_room(&own, r->one ? 0 : r->part * words * WIDTH, sizeof(uint32_t));
    r->scales = ortc_nbits_room(&own, (r->one ? p->blocks : r->part) * WIDTH, sizeof(float));
    r->zeros = ortc_nbits_room(&own, !s->zeros ? 0 : r->one ? p->blocks : r->part * WIDTH, sizeof(float));
    r->some = ortc_nbits_room(&own, r->one ? p->blocks : r->part * WIDTH, sizeof(float));
    r->sums = ortc_nbits_room(&own, (p->m < ROWS ? p->m : ROWS) * WIDTH, sizeof(float));
    const size_t row = (size_t)(r->ldx + p->blocks) * sizeof(float); /* of x, before it is rounded; scales */
    own = own > row ? own : row;
    *workspace = *workspace > shared ? *workspace : shared;
    *scratch = *scratch > own ? *scratch : own;
}

/* ---- Rows of x ----------------------------------------------------------------------------------------- */

bool ortc_nbits_finite(int64_t n, const float *x)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    return most < 0x7f800000;
}

typedef struct x_row {
    int8_t *bytes;
    float *scale;
    int32_t *less;
} x_row;

static x_row row_of(const rounded_run *run, int64_t r)
{
    const nbits_rounded_plan *q = &run->p->rounded;
    char *at = run->workspace;
    return (x_row){(int8_t *)at + q->bytes + r * q->ldx, (float *)(void *)(at + q->scale) + r * q->parts,
                   (int32_t *)(void *)(at + q->less) + r * q->parts};
}

/* The even bytes of eight, in the lower half. */
static uint64_t every_other(uint64_t v)
{
    v &= UINT64_C(0x00ff00ff00ff00ff);
    v = (v | v >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (v | v >> 16) & UINT64_C(0xffffffff);
}

/* Of eight signed bytes. */
static int32_t sum_of_bytes(uint64_t v)
{
    const uint64_t bytes = UINT64_C(0x00ff00ff00ff00ff);
    v ^= UINT64_C(0x8080808080808080); /* 128 more each, and unsigned */
    v = (v & bytes) + (v >> 8 & bytes);
    return (int32_t)(v * UINT64_C(0x0001000100010001) >> 48) - 8 * 128;
}

/* A row of x, rounded, from its order to that of the tile or the row; what is behind it is 0. */
static void lay_out(const nbits_plan *p, const nbits_state *s, const int8_t *from, const float *its, x_row to)
{
    const nbits_rounded_plan *q = &p->rounded;
    const int64_t each = 32 / s->bits, words = s->block / each, group = q->lanes;
    uint32_t *out = (uint32_t *)(void *)to.bytes;
    memset(to.bytes, 0, (size_t)q->ldx);
    memset(to.scale, 0, (size_t)q->parts * sizeof *to.scale);
    memset(to.less, 0, (size_t)q->parts * sizeof *to.less);
    for (int64_t b = 0, i = 0; b < p->blocks; b++)
        for (const int64_t stop = i + words; i < stop; i++) {
            const int64_t part = q->one ? i : b, at = i / group * 2 * group + i % group;
            uint64_t eight = 0;
            memcpy(&eight, from + i * each, (size_t)each);
            to.less[part] -= (1 << (s->bits - 1)) * sum_of_bytes(eight);
            to.scale[part] = its[b];
            if (s->bits == 8)
                out[i] = (uint32_t)eight;
            else
                out[at] = (uint32_t)every_other(eight), out[at + group] = (uint32_t)every_other(eight >> 8);
        }
}

/* Of blocks of x, as it was rounded: what zero points take off. */
static void sums_of_blocks(const nbits_plan *p, const nbits_state *s, x_row x, float *to)
{
    const int64_t words = s->block * s->bits / 32;
    for (int64_t b = 0, i = 0; b < p->blocks; b++) {
        const float scale = x.scale[i];
        int64_t less = 0;
        for (const int64_t stop = i + words; i < stop; i++) less += x.less[i];
        to[b] = scale * (float)(less / -(1 << (s->bits - 1)));
    }
}

static void round_rows(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const rounded_run *run = arg;
    const nbits_job *j = run->jobs;
    const nbits_plan *p = run->p;
    const nbits_rounded_plan *q = &p->rounded;
    const int type = ortc_float_index(j->in[A].dtype);
    const int64_t k = j->s->k, size = ortc_product_size(j->in[A].dtype);
    float *x = scratch, *its = x + q->ldx;
    for (int64_t r = begin; r < end; r++) {
        const x_row to = row_of(run, r);
        char *strange = run->workspace + q->strange + r;
        p->convert->widen[type]((size_t)k, (const char *)j->in[A].data + r * k * size, x);
        memset(x + k, 0, (size_t)(p->width - k) * sizeof(float));
        *strange = !ortc_nbits_finite(k, x);
        if (*strange) continue;
        p->body->round((size_t)p->blocks, (size_t)j->s->block, x, (int8_t *)x, its);
        lay_out(p, j->s, (const int8_t *)x, its, to);
        if (q->one && j->s->zeros) sums_of_blocks(p, j->s, to, (float *)(void *)(run->workspace + q->offset));
    }
}

/* ---- Panels of weights --------------------------------------------------------------------------------- */

/* Rows r0.. of x times nc rows of weights from n0 on, to `sums`. */
static void tiles(const rounded_run *run, const nbits_job *j, int64_t n0, int64_t nc, int64_t r0,
                  int64_t rows, char *scratch, float *sums)
{
    const nbits_plan *p = run->p;
    const nbits_rounded_plan *q = &p->rounded;
    const int64_t bits = j->s->bits, block = j->s->block, words = block * bits / 32;
    const size_t size = (size_t)ortc_product_size(j->in[SCALES].dtype);
    const bool plain = j->in[SCALES].dtype == ORTC_F32;
    uint32_t *w = (uint32_t *)(void *)(scratch + q->words);
    float *scales = (float *)(void *)(scratch + q->scales), *some = (float *)(void *)(scratch + q->some),
          *zeros = j->s->zeros ? (float *)(void *)(scratch + q->zeros) : NULL;
    memset(sums, 0, (size_t)(rows * WIDTH) * sizeof *sums);
    for (int64_t b = 0; b < p->blocks; b += q->part) {
        const int64_t count = p->blocks - b < q->part ? p->blocks - b : q->part;
        const char *from = (const char *)j->in[B].data + n0 * p->row_bytes + b * words * 4,
                   *its = (const char *)j->in[SCALES].data + (n0 * p->blocks + b) * (int64_t)size;
        q->transpose((size_t)nc, (size_t)(count * words), (const float *)(const void *)from,
                     (size_t)p->row_bytes / 4, (float *)(void *)w, WIDTH);
        for (int64_t c = 0; !plain && c < nc; c++)
            memcpy(some + c * count, ortc_nbits_scales(j, n0 + c, b, count, some + c * count),
                   (size_t)count * sizeof *some);
        q->transpose((size_t)nc, (size_t)count, plain ? (const float *)(const void *)its : some,
                     (size_t)(plain ? p->blocks : count), scales, WIDTH);
        if (zeros) ortc_nbits_zeros(j, n0, nc, b, count, zeros, WIDTH);
        const x_row of = row_of(run, r0);
        const ortc_nbits_rounded x = {of.bytes + b * block, of.scale + b, of.less + b, (size_t)q->ldx,
                                      (size_t)q->parts};
        q->bodies->tile((size_t)rows, (size_t)count, (size_t)words, (int)bits, &x, w, scales, zeros, sums);
    }
}

/* The one row of x times nc rows of weights. */
static void row(const rounded_run *run, const nbits_job *j, int64_t n0, int64_t nc, char *scratch,
                float *sums)
{
    const nbits_plan *p = run->p;
    const nbits_rounded_plan *q = &p->rounded;
    const int64_t words = j->s->block * j->s->bits / 32, blocks = p->blocks;
    float *scales = (float *)(void *)(scratch + q->scales), *zeros = (float *)(void *)(scratch + q->zeros);
    const float *offset = (const float *)(const void *)(run->workspace + q->offset);
    const x_row of = row_of(run, 0);
    const ortc_nbits_rounded x = {of.bytes, of.scale, of.less, (size_t)q->ldx, (size_t)q->parts};
    const float *its = ortc_nbits_scales(j, n0, 0, nc * blocks, scales);
    q->bodies->rows((size_t)nc, (size_t)(blocks * words), (size_t)words, (int)j->s->bits, &x,
                    (const uint8_t *)j->in[B].data + n0 * p->row_bytes, its, sums);
    for (int64_t c = 0; j->s->zeros && c < nc; c++) {
        ortc_nbits_zeros_of(j, n0 + c, (uint8_t *)scratch + q->some, zeros);
        sums[c] -= p->body->offset((size_t)blocks, its + c * blocks, zeros, (float)(1 << (j->s->bits - 1)),
                                   offset);
    }
}

static void panel(const rounded_run *run, const nbits_job *j, int64_t n0, int64_t nc, int64_t r0,
                  int64_t rows, char *scratch)
{
    const nbits_plan *p = run->p;
    float *sums = (float *)(void *)(scratch + p->rounded.sums);
    if (p->rounded.one)
        row(run, j, n0, nc, scratch, sums);
    else
        tiles(run, j, n0, nc, r0, rows, scratch, sums);
    for (int64_t r = 0; r < rows; r++) {
        float *y = sums + r * WIDTH;
        for (int64_t c = 0; j->bias && c < nc; c++) y[c] += j->bias[n0 + c];
        p->convert->narrow[ortc_float_index(j->out.dtype)](
            (size_t)nc, y, (char *)j->out.data + ((r0 + r) * j->n + n0) * ortc_product_size(j->out.dtype));
    }
}

static void panels(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const rounded_run *run = arg;
    for (int64_t task = begin, i = 0; task < end; task++) {
        const int64_t at = task / run->tiers, r0 = task % run->tiers * ROWS;
        while (at >= run->end[i]) i++;
        const nbits_job *j = &run->jobs[i];
        const int64_t n0 = (at - (i ? run->end[i - 1] : 0)) * WIDTH;
        panel(run, j, n0, j->n - n0 < WIDTH ? j->n - n0 : WIDTH, r0,
              run->p->m - r0 < ROWS ? run->p->m - r0 : ROWS, scratch);
    }
}

ortc_status ortc_nbits_run_rounded(const nbits_job *jobs, uint32_t count, ortc_call *c, bool *finite)
{
    const nbits_plan *p = jobs->p;
    rounded_run run = {.jobs = jobs, .p = p, .workspace = c->workspace};
    run.tiers = (p->m + ROWS - 1) / ROWS;
    for (uint32_t i = 0; i < count; i++)
        run.end[i] = (i ? run.end[i - 1] : 0) + (jobs[i].out.dtype ? (jobs[i].n + WIDTH - 1) / WIDTH : 0);
    const int64_t rows = p->m < ROWS ? p->m : ROWS, grain = TASK_PRODUCTS / (rows * WIDTH * p->width) + 1;
    const ortc_status status = ortc_parallel(c, p->m, ROUND_ELEMENTS / p->width + 1, round_rows, &run);
    *finite = false;
    if (status) return status;
    for (int64_t r = 0; r < p->m; r++)
        if (run.workspace[p->rounded.strange + (size_t)r]) return ORTC_OK;
    *finite = true;
    return ortc_parallel(c, run.end[count - 1] * run.tiers, grain, panels, &run);
}
