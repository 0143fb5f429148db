/* The decisions behind product.h: chunks of K, the grid of tasks, and where operands are packed.
 *
 * Rules, with N the columns that share a packed A and M the rows that share a packed B:
 * - K stays whole up to the micro-kernel's longest chunk, else equal chunks, multiples of 64: then C is
 * loaded and
 *   stored once per chunk. Chunks depend on K and the instruction set alone, so packed forms do too.
 * - Where every task can read all of a constant B, its rows of A are its own: nothing is packed for others.
 * - A task's rows of A stay within L2; there are enough tasks for the plan's threads to share evenly,
 *   none so long that a cancelled run lingers, none so short that handing it out costs more than it.
 * - An operand is packed by each task for itself when tasks share it little, or few threads have one each,
 *   else once into the workspace; rows of A that are near are read where they lie if columns are few.
 * All numbers below are for cores with 1 MB of L2 or more, and only cost speed elsewhere.
 */
#include "product.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/common/cpu_features.h"
#include "product_packed.h"

#define L2_A_BYTES (512 * 1024)        /* a task's packed rows of A, */
#define L2_A_BYTES_SPLIT (1024 * 1024) /* where a machine has tiles, and then 2 MB of L2, with pieces of B, */
#define L2_A_BYTES_TILES (896 * 1024)  /* and without: results go through L2, too; but where B is large, */
#define L2_A_BYTES_ONCE (1536 * 1024)  /* it comes from memory once for all rows */
#define LARGE_B_BYTES (2048 * 1024)
#define TILES_PANELS 16            /* so many of tiles are tasks enough: rows are not dealt to several */
#define NEAR_B_BYTES (2560 * 1024) /* packed B that every task may read anew: a core's share of L3 */
#define LOCAL_B_BYTES (192 * 1024) /* panels that a task packs at a time */
#define DIRECT_KC 256   /* chunk of K when B is read where it lies: a page a row, and 256 are quickly found */
#define DIRECT_BLOCKS 2 /* of rows: up to there B is read where it lies; */
#define DIRECT_BLOCKS_SPLIT 6      /* where a task makes pieces of it anyway */
#define ALONE_BLOCKS 2             /* of a task: pieces of B are made for each, in L1 */
#define DIRECT_B_BYTES (32 * 1024) /* a B that stays in L1 without packing */
#define PLAIN_BYTES (1024 * 1024)  /* of A that is read where it lies: near, */
#define PLAIN_BLOCKS 4             /* or a task's own rows, whose first block alone comes from far, */
#define PLAIN_COLUMNS 1024         /* with so few columns; more pay for packing, */
#define PLAIN_COLUMNS_ALONE 512    /* fewer where nobody waits for another's packing, */
#define PLAIN_AWAY 1024            /* nor then where rows lie so many elements apart: all in one set of L1 */
#define PLAIN_AWAY_BYTES 4096      /* of bytes, which are packed by fours: more columns pay for no packing */
#define PLAIN_COLUMNS_FAR 128      /* so few never do, wherever A is */
#define NEAR_BYTES (16 * 1024)     /* of a panel of B on a unit of tiles: in L1, beside A's, */
#define NEAR_BLOCKS 4              /* where enough blocks pass over it while the next part comes */
#define TOGETHER 2048              /* elements of finished tiles that a program takes at once: in L1 */
#define WIDE_BLOCKS 4              /* of rows of a task: from there on a panel of 16 bits is widened first */
#define TASK_FLOPS 1.0e6           /* 4 to 10 us on one core */
#define TASK_FLOPS_MAX 64.0e6      /* keeps a task within a millisecond with vectors, */
#define TASK_FLOPS_TILES 512.0e6   /* within some with tiles */
#define TASK_BYTES (256.0 * 1024)  /* when memory is the limit */
#define TASKS 48                   /* enough for 8 threads to end together; */
#define TASKS_EACH 6               /* so many for each of fewer threads, one alone waits for nobody */
#define OWN_BLOCKS 4  /* then: of rows at least where tasks share none, else columns are dealt, */
#define OWN_ROWS 24   /* where there are no tiles (one block goes over all of B again) */
#define FEW_THREADS 2 /* that each make pieces of all of A (four lost a fourteenth of SVTR), */
#define EVEN_PANELS 8 /* where as many panels, or so many, are each one's */
#define MANY_THREADS 4
#define AGAIN_BYTES (1024 * 1024) /* of A, which chunks of K bring into L2 anew for each task's columns */
#define WIDE_SUMS_BYTES (256.0 * 1024)
#define ROUNDS 4 /* of tasks, after which the last one is not felt */
#define BEGIN 0.25
#define LEAST_FLOPS 0.25e6
#define SERIAL_FLOPS 0.25e6
#define BATCH_INSIDE_FLOPS 16.0e6 /* smaller matrices of a batch are not split over threads */

#define ceil_div ortc_product_ceil_div
static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

/* a * b * c bytes, added to *sum, which stays a multiple of a cache line; -1 if it does not fit. */
static int add_bytes(size_t *sum, int64_t a, int64_t b, int64_t c)
{
    size_t v;
    if (__builtin_mul_overflow((size_t)a, (size_t)b, &v) || __builtin_mul_overflow(v, (size_t)c, &v) ||
        __builtin_add_overflow(v, (size_t)63, &v))
        return -1;
    v &= ~(size_t)63;
    return __builtin_add_overflow(*sum, v, sum) || *sum > SIZE_MAX / 2 ? -1 : 0;
}

/* The same of an operand's extent and k, packed. */
static int add_packed(size_t *sum, const ortc_product_form *f, int64_t extent, int64_t k)
{
    const size_t bytes = ortc_product_packed_bytes(f, extent, k);
    return bytes ? add_bytes(sum, (int64_t)bytes, 1, 1) : -1;
}

/* Whether sums of all of a task's columns wait in its scratch. */
static int keeps_sums(const ortc_product_plan *p)
{
    return p->flags & ORTC_PRODUCT_TRANS_C || (p->chunks > 1 && !p->sums_in_c);
}

/* So many share the work evenly. Fewer pack, widen and cut less anew for each; which panels one row goes over
 * at once, and with that the order of its sums, must not depend on threads. */
static double tasks_enough(const ortc_product_plan *p)
{
    if (!p->threads || p->threads * TASKS_EACH > TASKS || p->m == 1 || keeps_sums(p)) return TASKS;
    return p->threads == 1 ? 1 : p->threads * TASKS_EACH;
}

static double tasks_wanted(const ortc_product_plan *p, double flops, double bytes)
{
    const double longest = p->line->begin ? TASK_FLOPS_TILES
                           : p->line->isa ? TASK_FLOPS_MAX
                                          : TASK_FLOPS_MAX / 8;
    const double enough = tasks_enough(p);
    double want = flops / TASK_FLOPS > bytes / TASK_BYTES ? flops / TASK_FLOPS : bytes / TASK_BYTES;
    if (flops < SERIAL_FLOPS && bytes < TASK_BYTES) return 1;
    if (want > enough) want = enough;
    return want < flops / longest ? flops / longest : want;
}

/* The same for tasks of some columns, each of which reads rows of A that L2 does not hold: one thread has
 * fewer and wider ones, as far as sums that wait in scratch stay in L2 (384 x 768 x 3072 0.86 to 0.90 of a
 * Zen 5's peak; two lose by waiting for each other). */
static double tasks_of_columns(const ortc_product_plan *p, double want, double flops)
{
    const double sums = keeps_sums(p) ? (double)p->m * (double)p->n * 4 / WIDE_SUMS_BYTES : 0,
                 least = flops / TASK_FLOPS_TILES, wide = sums > least ? sums : least;
    if (p->threads != 1 || p->how_b != ORTC_PRODUCT_PACKED || p->chunks == 1 || p->m == 1 ||
        p->flags & ORTC_PRODUCT_TRANS_C || p->m * p->k * ortc_product_size(p->line->a.type) <= AGAIN_BYTES ||
        wide >= want)
        return want;
    return wide < 1 ? 1 : wide;
}

/* Few threads make pieces of all of A each for itself: what another has packed comes from its cache, half of
 * all for two, which takes longer. */
static int packs_alone(const ortc_product_plan *p)
{
    return p->line->can & ORTC_LINE_SPLIT && p->how_b == ORTC_PRODUCT_PACKED && p->m > 1 && p->tasks_m == 1 &&
           p->threads > 1 && p->threads <= FEW_THREADS && !keeps_sums(p);
}

/* Where threads are many and tasks few, the last round of these is felt: fewer blocks and panels a task,
 * where the thread that has most to do has a twentieth less so. A task costs BEGIN of a block over a panel
 * more. */
static void deal_evenly(ortc_product_plan *p, double flops)
{
    const int64_t blocks = p->task_blocks, panels = p->task_panels;
    const double each = flops / ((double)p->blocks * (double)p->panels);
    double best = INFINITY;
    if (p->threads <= MANY_THREADS || p->m == 1 || p->batch != 1 || keeps_sums(p) ||
        p->tasks_m * p->tasks_n >= ROUNDS * (int64_t)p->threads)
        return;
    for (int64_t m = blocks; m >= (p->line->begin ? blocks : 1); m--)
        for (int64_t n = panels; n >= 1; n--) {
            const int64_t rounds = ceil_div(ceil_div(p->blocks, m) * ceil_div(p->panels, n), p->threads);
            const double cost = (double)rounds * ((double)(m * n) + BEGIN);
            if (cost >= 0.95 * best || each * (double)(m * n) < LEAST_FLOPS) continue;
            best = cost, p->task_blocks = m, p->task_panels = n;
        }
    p->tasks_m = ceil_div(p->blocks, p->task_blocks), p->tasks_n = ceil_div(p->panels, p->task_panels);
}

/* The grid: how many row blocks and panels make a task. */
static void split(ortc_product_plan *p, double flops, double bytes)
{
    const int64_t block_bytes = ortc_form_data(&p->line->a, p->line->a.width, p->kc);
    const int large_b = ortc_form_data(&p->line->b, p->panels * p->line->b.width, p->kc) > LARGE_B_BYTES;
    const int64_t near_bytes = !p->line->begin                  ? L2_A_BYTES
                               : p->line->can & ORTC_LINE_SPLIT ? L2_A_BYTES_SPLIT
                               : large_b                        ? L2_A_BYTES_ONCE
                                                                : L2_A_BYTES_TILES;
    const int64_t fit = clamp(near_bytes / (block_bytes ? block_bytes : 1), 1, p->blocks ? p->blocks : 1);
    const double enough = tasks_enough(p);
    double want = tasks_wanted(p, flops, bytes);
    const int64_t few = p->line->begin ? OWN_BLOCKS : ceil_div(OWN_ROWS, p->line->a.width);
    const double own = enough < TASKS ? (double)few : 1;
    p->tasks_m = ceil_div(p->blocks, fit);
    /* Tasks of all columns pack the rows that they alone read, where the constant B is near enough. */
    if (p->how_b == ORTC_PRODUCT_PACKED && !(p->flags & ORTC_PRODUCT_PACKED_A) &&
        want * own <= (double)p->blocks &&
        ortc_form_data(&p->line->b, p->panels * p->line->b.width, p->kc) <= NEAR_B_BYTES) {
        p->tasks_m = clamp((int64_t)(want + 0.999), p->tasks_m, p->blocks);
        p->task_blocks = ceil_div(p->blocks, p->tasks_m);
        p->tasks_m = ceil_div(p->blocks, p->task_blocks);
        p->task_panels = p->panels, p->tasks_n = 1;
        return;
    }
    want = tasks_of_columns(p, want, flops);
    /* Else rows by L2, and further only where columns do not give enough tasks. */
    if (want > (double)p->tasks_m * (double)p->panels && !(p->line->begin && p->panels >= TILES_PANELS)) {
        const double per = want / (double)(p->panels ? p->panels : 1);
        p->tasks_m = per >= (double)p->blocks ? p->blocks
                                              : clamp((int64_t)(per + 0.999), p->tasks_m, p->blocks);
    }
    p->task_blocks = ceil_div(p->blocks, p->tasks_m ? p->tasks_m : 1);
    p->tasks_m = p->task_blocks ? ceil_div(p->blocks, p->task_blocks) : 0;
    const double columns = want / (double)(p->tasks_m ? p->tasks_m : 1);
    p->tasks_n = columns >= (double)p->panels ? p->panels : clamp((int64_t)(columns + 0.999), 1, p->panels);
    if (packs_alone(p) && !(p->flags & ORTC_PRODUCT_PACKED_A) && p->tasks_n > p->threads &&
        flops <= TASK_FLOPS_TILES * p->threads &&
        (p->panels % p->threads == 0 || p->panels >= EVEN_PANELS * (int64_t)p->threads))
        p->tasks_n = p->threads;
    p->task_panels = ceil_div(p->panels, p->tasks_n ? p->tasks_n : 1);
    p->tasks_n = p->task_panels ? ceil_div(p->panels, p->task_panels) : 0;
    if (p->tasks_m * p->tasks_n > 1) deal_evenly(p, flops);
}

/* Few threads have neighbouring tasks, as many each. Where these are of rows alone, there are as many for
 * each; where threads have the rows of one each, one with a block more is waited for: blocks are a little
 * less high then, if A's are not packed for good. */
#define MORE_BLOCKS 8 /* at most one for so many, */
#define EVEN_HIGH 8   /* and so high: lower tiles sum in another order */
static void even_rows(ortc_product_plan *p)
{
    const ortc_product_form *a = &p->line->a;
    const int64_t threads = p->threads;
    if (p->tasks_m < 2 || threads < 2 || threads > MANY_THREADS || p->batch != 1) return;
    if (p->tasks_n == 1 && p->tasks_m > threads) {
        const int64_t tasks = ceil_div(p->tasks_m, threads) * threads;
        if (tasks > p->blocks) return;
        p->tasks_m = tasks, p->task_blocks = ceil_div(p->blocks, tasks);
        return;
    }
    const int64_t each = ceil_div(p->blocks, p->tasks_m), even = each * p->tasks_m;
    if (p->tasks_m > threads || p->flags & ORTC_PRODUCT_PACKED_A || a->step || ortc_form_sums(a) ||
        even - p->blocks > p->blocks / MORE_BLOCKS || p->m / even < EVEN_HIGH)
        return;
    p->blocks = even, p->task_blocks = each;
}

/* The same of tasks of columns alone: so many panels each that the thread which has most to do has least, the
 * most of them where there are several such numbers. */
static void even_columns(ortc_product_plan *p)
{
    const int64_t threads = p->threads;
    int64_t best = INT64_MAX, panels = p->task_panels;
    if (p->tasks_m != 1 || p->tasks_n < threads || threads < 2 || threads > MANY_THREADS || p->batch != 1 ||
        p->m == 1 || keeps_sums(p))
        return;
    for (int64_t n = p->task_panels * 4 / 3; n >= (p->task_panels + 1) / 2; n--) {
        const int64_t tasks = ceil_div(p->panels, n), most = ceil_div(tasks, threads) * n;
        if (most >= best) continue;
        best = most, panels = n;
    }
    p->task_panels = panels, p->tasks_n = ceil_div(p->panels, panels);
}

/* One row over several panels at once. */
static int takes_rows(const ortc_product_plan *p)
{
    return p->m == 1 && (p->line->can & ORTC_LINE_ROW) &&
           (p->how_b == ORTC_PRODUCT_PACKED || p->flags & ORTC_PRODUCT_PASSING_B);
}

/* Panels of one row's tasks come by fours where tasks enough are left, or little is made of three. */
#define ROW_TASKS 4
static void whole_rows(ortc_product_plan *p)
{
    const int64_t panels = ceil_div(p->task_panels, ORTC_UK_ROW_PANELS) * ORTC_UK_ROW_PANELS,
                  tasks = panels ? ceil_div(p->panels, panels) : 0;
    if (tasks < ROW_TASKS && panels - p->task_panels > p->task_panels / 3) return;
    p->task_panels = panels, p->tasks_n = tasks;
}

/* A Zen 4's core reads 100 GB/s from L3 unasked and 78 asked, from memory some 3 % more unasked; cores with
 * AMX gain by asking (product_tile.inc); others were not measured. */
static uint8_t comes_unasked(void) { return !(ortc_cpu_features_detected() & ORTC_CPU_AMX); }

/* Rows of A as they lie: one is a packed block of one row, others while they are near and columns too few for
 * packing to pay, or so few that it never does (of a Zen 5's peak 16384 x 32 x 128 0.70 to 0.87, 4096 x 64 x
 * 768 0.73 to 0.89). */
static int reads_rows(const ortc_product_plan *p)
{
    const int bytes = p->line->sum == ORTC_I32;
    if (p->types.a != p->line->a.type || p->flags & (ORTC_PRODUCT_CUSTOM_A | ORTC_PRODUCT_TRANS_A)) return 0;
    if (p->m == 1) return ortc_form_is_plain(&p->line->a);
    if (!(p->line->can & ORTC_LINE_PLAIN)) return 0;
    if (bytes && p->k % p->line->a.group) return 0;
    if (p->n <= PLAIN_COLUMNS_FAR) return 1;
    const int own = p->tasks_n == 1 && p->task_blocks >= PLAIN_BLOCKS;
    const int64_t rows = own ? p->task_blocks * p->line->a.width : p->m;
    if (rows > PLAIN_BYTES / ortc_product_size(p->line->a.type) / (p->k ? p->k : 1)) return 0;
    if (bytes) return p->k % PLAIN_AWAY_BYTES != 0;
    return p->threads > 1 ? p->n <= PLAIN_COLUMNS : p->n <= PLAIN_COLUMNS_ALONE && p->k % PLAIN_AWAY;
}

static void choose_packing(ortc_product_plan *p)
{
    const int serial = p->tasks_m * p->tasks_n <= 1 || (p->batch > 1 && !p->batch_outside);
    /* a B that is unpacked on the way is larger in the workspace than where it comes from */
    const int made = (p->flags & ORTC_PRODUCT_CUSTOM_B) && !(p->flags & ORTC_PRODUCT_PACKED_A);
    if (p->flags & ORTC_PRODUCT_PACKED_A)
        p->how_a = ORTC_PRODUCT_PACKED;
    else if (reads_rows(p))
        p->how_a = ORTC_PRODUCT_DIRECT;
    else
        p->how_a = serial || p->tasks_n == 1 || (packs_alone(p) && p->tasks_n <= p->threads)
                       ? ORTC_PRODUCT_LOCAL
                       : ORTC_PRODUCT_SHARED;
    if (p->how_b != ORTC_PRODUCT_PACKED && p->how_b != ORTC_PRODUCT_DIRECT)
        p->how_b = serial || p->tasks_m == 1 || made ? ORTC_PRODUCT_LOCAL : ORTC_PRODUCT_SHARED;
}

/* Convolution: A is packed, B made column by column from the image. Tasks of all rows pack each column once
 * and keep it in L2; with few columns the grid above is better. */
static void prefer_columns(ortc_product_plan *p, double flops)
{
    if (!(p->flags & ORTC_PRODUCT_PACKED_A) || p->how_b == ORTC_PRODUCT_PACKED ||
        p->how_b == ORTC_PRODUCT_DIRECT)
        return;
    if (p->panels < 8 || p->tasks_m == 1) return;
    const double want = tasks_wanted(p, flops, 0);
    p->tasks_m = 1;
    p->task_blocks = p->blocks;
    p->tasks_n = want >= (double)p->panels ? p->panels : clamp((int64_t)want, 1, p->panels);
    p->task_panels = ceil_div(p->panels, p->tasks_n);
    p->tasks_n = ceil_div(p->panels, p->task_panels);
}

/* The line of f32 with the tiles of one whose packed B has 16 bits. */
static const ortc_product_line *widened(const ortc_product_line *line)
{
    if (line->a.type != ORTC_F32 || (line->b.type != ORTC_F16 && line->b.type != ORTC_BF16)) return NULL;
    for (size_t i = 0; i < ortc_product_line_count; i++) {
        const ortc_product_line *l = &ortc_product_lines[i];
        if (l->isa == line->isa && l->a.type == ORTC_F32 && l->b.type == ORTC_F32 &&
            l->a.width == line->a.width && l->b.width == line->b.width && l->a.planes == 1)
            return l;
    }
    return NULL;
}

/* A unit of tiles takes operands as fast as L2 gives those of one side. */
static int64_t near_groups(const ortc_product_plan *p)
{
    const int64_t group = p->line->b.group,
                  near = NEAR_BYTES / ortc_form_data(&p->line->b, p->line->b.width, group);
    const int may = p->line->begin && p->line->sum == ORTC_F32 && !(p->line->can & ORTC_LINE_SPLIT) &&
                    p->chunks == 1 && p->how_b != ORTC_PRODUCT_DIRECT && !(p->flags & ORTC_PRODUCT_TRANS_C);
    return may && p->task_blocks >= NEAR_BLOCKS && p->kc >= near * group * 3 / 2 ? near : 0;
}

/* Scratch of a task: its rows of A, its panels of B, one of them widened, its sums where they are not in C,
 * finished tiles (or rows of a turned one, ORTC_TURNED of them), and the residual under them. */
static int scratch_of_tiles(ortc_product_plan *p)
{
    const int64_t mr = p->line->a.width, nr = p->line->b.width;
    const int64_t tile = p->flags & ORTC_PRODUCT_TRANS_C && ORTC_TURNED * p->m > mr * nr ? ORTC_TURNED * p->m
                                                                                         : mr * nr;
    const int64_t blocks = clamp(TOGETHER / (mr * nr), 1, p->task_blocks);
    const int waits = (p->line->can & ORTC_LINE_TAIL || p->line->sum == ORTC_I32) &&
                      !(p->flags & ORTC_PRODUCT_TRANS_C);
    p->together = waits ? blocks : 1;
    if (p->how_a == ORTC_PRODUCT_LOCAL &&
        add_bytes(&p->scratch,
                  ortc_form_data(&p->line->a, p->line->a.width, p->kc) + ortc_form_sums(&p->line->a),
                  p->task_blocks, 1))
        return -1;
    p->at_row_sums = p->scratch;
    p->sums_rows = p->how_a == ORTC_PRODUCT_DIRECT && p->line->sum == ORTC_I32 &&
                   !(p->flags & ORTC_PRODUCT_SYMMETRIC_B);
    if (p->sums_rows && add_bytes(&p->scratch, p->task_blocks, mr, 4)) return -1;
    p->at_b = p->scratch;
    if (p->how_b == ORTC_PRODUCT_LOCAL &&
        add_bytes(&p->scratch,
                  ortc_form_data(&p->line->b, p->line->b.width, p->kc) + ortc_form_sums(&p->line->b),
                  p->local_panels, 1))
        return -1;
    p->at_wide = p->scratch;
    if ((p->how_b == ORTC_PRODUCT_PACKED || p->how_b == ORTC_PRODUCT_SHARED) && p->task_blocks >= WIDE_BLOCKS)
        p->wide = widened(p->line);
    if (p->wide && add_bytes(&p->scratch, p->kc + 1, nr, sizeof(float))) return -1;
    p->at_pieces = p->scratch;
    if (p->line->can & ORTC_LINE_SPLIT) {
        const int64_t group = p->line->a.group, deep = ceil_div(p->kc, group) * group;
        p->alone = p->task_blocks <= ALONE_BLOCKS;
        if (add_bytes(&p->scratch, ORTC_UK_PANEL_STATE, 1, 1) ||
            add_bytes(&p->scratch, p->alone ? 2 * group : deep, nr, 2 * p->line->a.planes))
            return -1;
    }
    p->at_sums = p->scratch;
    if (keeps_sums(p)) {
        const int64_t rows = p->task_blocks * mr < p->m ? p->task_blocks * mr : p->m;
        if (add_bytes(&p->scratch, rows, p->task_panels * nr, 4)) return -1;
    }
    p->near = near_groups(p);
    p->at_near = p->scratch;
    if (p->near && add_bytes(&p->scratch, p->task_blocks, mr * nr, 4)) return -1;
    p->at_tile = p->scratch;
    if (add_bytes(&p->scratch, tile, 4, p->together)) return -1;
    p->at_residual = p->scratch;
    return p->types.c == ORTC_F32 ? 0 : add_bytes(&p->scratch, tile, 4, p->together);
}

static int memory(ortc_product_plan *p)
{
    p->local_panels = takes_rows(p) ? ORTC_UK_ROW_PANELS : 1;
    if (p->how_b == ORTC_PRODUCT_LOCAL && !(p->line->can & ORTC_LINE_SPLIT) && !takes_rows(p)) {
        const int64_t panel = ortc_form_data(&p->line->b, p->line->b.width, p->kc);
        p->local_panels = clamp(LOCAL_B_BYTES / (panel ? panel : 1), 1, p->task_panels ? p->task_panels : 1);
    }
    if (p->m == 0 || p->n == 0 || p->batch == 0) return 0;
    if (p->dot) return p->types.a == ORTC_F32 ? 0 : add_bytes(&p->scratch, p->k, sizeof(float), 1);
    if (p->how_a == ORTC_PRODUCT_SHARED && add_packed(&p->workspace, &p->line->a, p->m, p->k)) return -1;
    if (p->how_b == ORTC_PRODUCT_SHARED && add_packed(&p->workspace, &p->line->b, p->n, p->k)) return -1;
    return scratch_of_tiles(p);
}

static int is_float(ortc_dtype t) { return t == ORTC_F32 || t == ORTC_F16 || t == ORTC_BF16; }

/* Whether floats of a type can be packed without loss. */
static int holds(const ortc_product_form *f, ortc_dtype t)
{
    return is_float(t) && is_float(f->type) &&
           (f->type == t || f->type == ORTC_F32 || f->planes > (t == ORTC_F32 ? 2 : 1));
}

int ortc_product_plan_init(ortc_product_plan *p, const ortc_product_line *line,
                           const ortc_product_types *types, int64_t m, int64_t n, int64_t k, int64_t batch,
                           uint32_t flags, uint32_t threads)
{
    const uint32_t fixed = ORTC_PRODUCT_PACKED_A | ORTC_PRODUCT_PACKED_B | ORTC_PRODUCT_PASSING_B |
                           ORTC_PRODUCT_CUSTOM_B | ORTC_PRODUCT_CUSTOM_A;
    assert(types->c != ORTC_I32 || line->sum == ORTC_I32);
    assert(!(flags & ORTC_PRODUCT_TRANS_C) || line->sum == ORTC_F32);
    memset(p, 0, sizeof *p);
    size_t whole = 0; /* every matrix exists somewhere, so every product of two extents fits */
    if (m < 0 || n < 0 || k < 0 || batch < 0) return -1;
    if (add_bytes(&whole, m, n, batch) || add_bytes(&whole, m, k, 1) || add_bytes(&whole, k, n, 1) ||
        whole > SIZE_MAX / 8) /* of elements */
        return -1;
    p->line = line, p->types = *types, p->threads = threads;
    p->batch = batch;
    if (n == 1 && m > 1 && !(flags & fixed) && holds(&line->b, types->a) && holds(&line->a, types->b)) {
        p->swapped = 1; /* y = A x is the row y' = x' A' */
        flags = flags & ORTC_PRODUCT_TRANS_A ? 0 : ORTC_PRODUCT_TRANS_B;
        p->types.a = types->b, p->types.b = types->a;
        n = m, m = 1;
    }
    p->m = m, p->n = n, p->k = k, p->flags = flags;
    const double mf = (double)m, nf = (double)n, kf = (double)k;
    const double flops = 2.0 * mf * nf * kf;
    const double bytes = (double)ortc_product_size(p->types.a) * mf * kf +
                         (double)ortc_product_size(p->types.b) * nf * kf +
                         (double)ortc_product_size(p->types.c) * mf * nf;
    p->flops = flops * (double)batch;
    p->bytes = bytes * (double)batch;
    p->dot = m == 1 && (flags & ORTC_PRODUCT_TRANS_B) && !(flags & fixed) && is_float(p->types.a) &&
             is_float(p->types.b) && line->sum == ORTC_F32;
    p->batch_outside = batch > 1 && flops >= BATCH_INSIDE_FLOPS;
    p->sums_in_c = p->types.c == line->sum && !(flags & ORTC_PRODUCT_TRANS_C);

    const double b_bytes = (double)ortc_product_size(p->types.b) * nf * kf;
    const int plain_b = !(flags & (ORTC_PRODUCT_TRANS_B | ORTC_PRODUCT_PACKED_B | ORTC_PRODUCT_CUSTOM_B)) &&
                        (line->can & ORTC_LINE_DIRECT) && p->types.b == line->b.type;
    const int64_t few = line->can & ORTC_LINE_SPLIT ? DIRECT_BLOCKS_SPLIT : DIRECT_BLOCKS;
    p->blocks = ceil_div(m, line->a.width);
    p->panels = ceil_div(n, line->b.width);
    p->kc = ortc_form_chunk(&line->a, k), p->packed_kc = ortc_form_chunk(&line->b, k);
    if (flags & (ORTC_PRODUCT_PACKED_B | ORTC_PRODUCT_PASSING_B)) {
        p->how_b = ORTC_PRODUCT_PACKED; /* the same tasks of both */
    } else if (p->dot || (plain_b && (p->blocks <= few || b_bytes <= DIRECT_B_BYTES))) {
        p->how_b = ORTC_PRODUCT_DIRECT;
        if (!(flags & ORTC_PRODUCT_PACKED_A) && !(line->can & ORTC_LINE_SPLIT) && p->kc > DIRECT_KC)
            p->kc = DIRECT_KC;
    } else {
        p->how_b = ORTC_PRODUCT_LOCAL; /* or SHARED, decided below */
    }
    p->chunks = k > p->kc ? ceil_div(k, p->kc) : 1;
    split(p, flops, bytes);
    if (batch > 1 && !p->batch_outside) { /* a task is a whole matrix */
        p->task_blocks = p->blocks, p->tasks_m = p->blocks > 0;
        p->task_panels = p->panels, p->tasks_n = p->panels > 0;
    } else if (flags & ORTC_PRODUCT_TRANS_C) { /* a task's C is turned in its scratch, all rows of it */
        const int64_t tasks = p->tasks_m * p->tasks_n;
        p->task_blocks = p->blocks, p->tasks_m = p->blocks > 0;
        p->task_panels = ceil_div(p->panels, clamp(tasks, 1, p->panels > 0 ? p->panels : 1));
        p->tasks_n = p->task_panels ? ceil_div(p->panels, p->task_panels) : 0;
    } else {
        prefer_columns(p, flops);
    }
    even_rows(p);
    even_columns(p);
    if (takes_rows(p)) whole_rows(p);
    p->unasked = comes_unasked();
    choose_packing(p);
    if (flags & ORTC_PRODUCT_PASSING_B) p->how_b = ORTC_PRODUCT_LOCAL;
    return memory(p);
}
