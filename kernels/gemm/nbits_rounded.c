/* kernels/gemm/nbits_rounded.c: MatMulNBits where accuracy_level 4 lets A be rounded to bytes, by the blocks
 * that weights have, for any number of rows.
 *
 * A panel of weights, some blocks of it at a time, is turned from rows to columns as it lies, in words of 32
 * bits, which the tile pulls apart (nbits_tile.inc); all rows of x go over it while it is in the caches. So
 * weights are read once for up to ROWS rows, and nothing is unpacked in memory. Sums of a row and a column go
 * from block to block, whatever the tasks: results have the same bits for any number of threads.
 */
#include "kernels/gemm/nbits_job.h"

#include <assert.h>
#include <string.h>

#include "kernels/common/cpu_features.h"
#include "kernels/gemm/product_uk.h"

enum {
    WIDTH = ORTC_NBITS_COLUMNS,
    ROWS = 96,        /* of x over a panel; their sums are in L1 */
    PART_WORDS = 256, /* of a column: a panel of 32 KB. Of 64, memory follows less well */
    TASK_PRODUCTS = 256 * 1024,
    ROUND_ELEMENTS = 16 * 1024 /* that a task rounds */
};

typedef struct rounded_run {
    const nbits_job *jobs;
    const nbits_plan *p;
    uint32_t count;
    int64_t tiers;     /* of ROWS rows */
    int64_t end[MOST]; /* panels of a product and of those before */
    char *workspace;
} rounded_run;

static ortc_nbits_tile *tile_of(const ortc_nbits_vec *body)
{
    const uint32_t has = ortc_cpu_features();
    (void)has;
#ifdef ORTC_TILES_avx512vnni
    if ((has & ORTC_CPU_AVX512) && (has & ORTC_CPU_AVX512_VNNI)) return ortc_nbits_tile_avx512vnni;
#endif
#ifdef ORTC_TILES_avxvnni
    if (!(has & ORTC_CPU_AVX512) && (has & ORTC_CPU_AVX2) && (has & ORTC_CPU_AVX_VNNI))
        return ortc_nbits_tile_avxvnni;
#endif
    return body->tile;
}

void ortc_nbits_plan_rounded(const nbits_state *s, nbits_plan *p, size_t *workspace, size_t *scratch)
{
    nbits_rounded_plan *r = &p->rounded;
    size_t shared = 0, own = 0;
    const int64_t words = s->block * s->bits / 32;
    r->tile = tile_of(p->body);
    r->transpose = ortc_product_moves_select()->transpose;
    r->part = PART_WORDS > words ? PART_WORDS / words : 1;
    r->part = r->part < p->blocks ? r->part : p->blocks;
    r->bytes = ortc_nbits_room(&shared, p->m * p->width, 1);
    r->scale = ortc_nbits_room(&shared, p->m * p->blocks, sizeof(float));
    r->less = ortc_nbits_room(&shared, p->m * p->blocks, sizeof(int32_t));
    r->strange = ortc_nbits_room(&shared, p->m, 1);
    r->words = ortc_nbits_room(&own, r->part * words * WIDTH, sizeof(uint32_t));
    r->scales = ortc_nbits_room(&own, r->part * WIDTH, sizeof(float));
    r->zeros = ortc_nbits_room(&own, s->zeros ? r->part * WIDTH : 0, sizeof(float));
    r->some = ortc_nbits_room(&own, r->part * WIDTH, sizeof(float));
    r->sums = ortc_nbits_room(&own, (p->m < ROWS ? p->m : ROWS) * WIDTH, sizeof(float));
    const size_t row = (size_t)p->width * sizeof(float); /* of x, before it is rounded */
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

/* `count` bytes from their order to the tile's; their sum. */
static int32_t lay_out(int64_t count, int64_t bits, const int8_t *from, int8_t *to)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < count; i += 8) {
        uint64_t eight;
        memcpy(&eight, from + i, sizeof eight);
        sum += sum_of_bytes(eight);
        if (bits == 4) eight = every_other(eight) | every_other(eight >> 8) << 32;
        memcpy(to + i, &eight, sizeof eight);
    }
    return sum;
}

static void round_rows(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const rounded_run *run = arg;
    const nbits_job *j = run->jobs;
    const nbits_plan *p = run->p;
    const nbits_rounded_plan *q = &p->rounded;
    const int type = ortc_float_index(j->in[A].dtype);
    const int64_t k = j->s->k, block = j->s->block, bits = j->s->bits;
    float *x = scratch;
    for (int64_t r = begin; r < end; r++) {
        int8_t *to = (int8_t *)run->workspace + q->bytes + r * p->width;
        float *scale = (float *)(void *)(run->workspace + q->scale) + r * p->blocks;
        int32_t *less = (int32_t *)(void *)(run->workspace + q->less) + r * p->blocks;
        p->convert->widen[type]((size_t)k,
                                (const char *)j->in[A].data + r * k * ortc_product_size(j->in[A].dtype), x);
        memset(x + k, 0, (size_t)(p->width - k) * sizeof(float));
        run->workspace[q->strange + (size_t)r] = !ortc_nbits_finite(k, x);
        if (run->workspace[q->strange + (size_t)r]) continue;
        p->body->round((size_t)p->blocks, (size_t)block, x, (int8_t *)x, scale);
        for (int64_t b = 0; b < p->blocks; b++)
            less[b] = -(1 << (bits - 1)) *
                      lay_out(block, bits, (const int8_t *)x + b * block, to + b * block);
    }
}

/* ---- Panels of weights --------------------------------------------------------------------------------- */

/* Rows r0.. of x times nc rows of weights from n0 on. */
static void panel(const rounded_run *run, const nbits_job *j, int64_t n0, int64_t nc, int64_t r0,
                  int64_t rows, char *scratch)
{
    const nbits_plan *p = run->p;
    const nbits_rounded_plan *q = &p->rounded;
    const int64_t bits = j->s->bits, block = j->s->block, words = block * bits / 32;
    const size_t size = (size_t)ortc_product_size(j->in[SCALES].dtype);
    const bool plain = j->in[SCALES].dtype == ORTC_F32;
    uint32_t *w = (uint32_t *)(void *)(scratch + q->words);
    float *scales = (float *)(void *)(scratch + q->scales), *some = (float *)(void *)(scratch + q->some),
          *sums = (float *)(void *)(scratch + q->sums),
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
        const ortc_nbits_rounded x = {(const int8_t *)run->workspace + q->bytes + r0 * p->width + b * block,
                                      (const float *)(const void *)(run->workspace + q->scale) +
                                          r0 * p->blocks + b,
                                      (const int32_t *)(const void *)(run->workspace + q->less) +
                                          r0 * p->blocks + b,
                                      (size_t)p->width, (size_t)p->blocks};
        q->tile((size_t)rows, (size_t)count, (size_t)words, (int)bits, &x, w, scales, zeros, sums);
    }
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
    rounded_run run = {.jobs = jobs, .p = p, .count = count, .workspace = c->workspace};
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
