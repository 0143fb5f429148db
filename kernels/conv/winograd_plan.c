/* Batches of tiles and parts of filters: the plan of winograd.h. */
#include "winograd_batch.h"

#define L2_BYTES (640 * 1024)    /* of a batch: what is transformed, and sums */
#define MOST_BATCH 56            /* 4 of the widest tiles */
#define FEW_THREADS 4            /* each may do again what others do */
#define MANY_WEIGHTS 2           /* times as many bytes as patches */
#define OWN_BYTES (7 << 18)      /* of what they then transform: in L2 */
#define TASKS 16                 /* batches that are enough tasks by themselves, */
#define TASKS_WIDE 8             /* if weights come for two of the widest tiles, and three in four threads */
#define SHARED_BYTES (64 << 20)  /* of what is transformed first */
#define SCRATCH_BYTES (16 << 20) /* of the same for one thread, in pieces */
#define MOST_CHANNELS (1 << 16)
#define LEAST_CHANNELS 32 /* in pieces: a group's */

ORTC_VEC_TABLE(ortc_winograd_uk)

const ortc_winograd_side *ortc_winograd_side_of(int m) { return &ortc_winograd_uk_select()->of[m == 4]; }

static int is_for(const ortc_conv_geometry *g)
{
    const int32_t first = g->spatial - 2; /* of the two dims that are transformed */
    int yes = (first == 0 || first == 1) && g->group == 1 && g->images > 0 && g->channels > 0 &&
              g->filters > 0 && g->channels <= MOST_CHANNELS && g->filters <= MOST_CHANNELS;
    for (int32_t i = first; i < g->spatial && yes; i++)
        yes = g->kernel[i] == 3 && g->stride[i] == 1 && g->out[i] > 0;
    return yes && (first == 0 || (g->kernel[0] <= MOST_PLANES && g->out[0] > 0));
}

/* The same about one plane of the output, as many images as there are; a window of 3 x 3 for each of its
 * planes. */
static ortc_conv_geometry plane_of(const ortc_conv_geometry *g, ortc_winograd_depth *depth)
{
    ortc_conv_geometry flat = *g;
    *depth = (ortc_winograd_depth){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    if (g->spatial == 2) return flat;
    *depth = (ortc_winograd_depth){g->in[0],     g->out[0],      g->kernel[0],
                                   g->stride[0], g->dilation[0], g->pad[0]};
    flat.spatial = 2, flat.images = g->images * g->out[0];
    for (int i = 0; i < 2; i++) {
        flat.in[i] = g->in[i + 1], flat.out[i] = g->out[i + 1], flat.pad[i] = g->pad[i + 1];
        flat.dilation[i] = g->dilation[i + 1];
    }
    return flat;
}

const ortc_tiled_uk *ortc_winograd_tiles(const ortc_conv_geometry *g)
{
    return g->channels >= LEAST_CHANNELS ? ortc_tiled_uk_get(ORTC_TILED_PIECES) : NULL;
}

/* Tiles of a batch: whole register tiles, as many as L2 holds. */
static void make_batches(ortc_winograd_plan *p, uint32_t threads)
{
    const int64_t most = (int64_t)p->uk->most_pixels,
                  tile_bytes = (patches_of(p, most) + p->points * sum_step(p, most)) / most *
                               (int64_t)sizeof(float);
    p->batch = max64(1, min64(L2_BYTES / tile_bytes, MOST_BATCH) / most) * most;
    p->batches = ceil_div(p->count, p->batch);
    const int64_t each = max64(TASKS_WIDE, (int64_t)threads * 3 / 4);
    p->together = p->batches < (threads && p->batch >= 2 * most ? min64(each, TASKS) : TASKS);
    if (p->together) {
        const int64_t parts = ceil_div(p->outs, p->wide);
        p->batch = MOST_BATCH / most * most;
        while (p->batch >= 2 * most && ceil_div(p->count, p->batch) * parts < TASKS) p->batch -= most;
        p->batches = ceil_div(p->count, p->batch);
    }
    p->batch = ceil_div(p->count, p->batches);
}

/* The same in pieces, by what was measured (docs/performance.md): two operands of tiles, whose patches and
 * sums L2 holds beside weights; where these are many more they are read by twice as many tiles, and patches
 * by four times as many filters. Of batches too few for the threads at hand each thread transforms all, where
 * weights are many more and L2 holds it, and goes over its filters; or they are smaller, where that is even
 * and weights are not many more; or transformed first. */
static void make_batches_in_pieces(ortc_winograd_plan *p, uint32_t threads)
{
    const int64_t units = ceil_div(p->count, ORTC_TILE_HALF), want = threads ? threads : 8;
    const double bytes = (double)patches_of(p, ORTC_TILE_HALF) * sizeof(float);
    const int few = p->plain || units <= 4;
    int64_t each = few ? 4 : 2;
    p->wide = min64(p->plain ? 4 * PAIR : PAIR, ceil_div(p->outs, PAIR) * PAIR);
    if (ceil_div(units, each) < want) {
        const int64_t pairs = ceil_div(p->outs, PAIR);
        const double all = (double)units * bytes,
                     weights = (double)(p->outs * weight_bytes(&p->g, (int)p->m, ORTC_WINOGRAD_PIECES));
        if (each >= units && want <= FEW_THREADS && pairs >= want && weights > MANY_WEIGHTS * all &&
            all <= OWN_BYTES) {
            p->wide = min64(p->wide, ceil_div(pairs, want) * PAIR);
            p->parts = min64(want, ceil_div(p->outs, p->wide));
        } else if (few ? units % want == 0 && weights <= MANY_WEIGHTS * all : units >= want) {
            each = few ? units / want : 1;
        }
        p->together = p->parts == 1 && ceil_div(units, each) < want && all <= SHARED_BYTES;
    }
    while (p->together && p->wide > PAIR && ceil_div(units, each) * ceil_div(p->outs, p->wide) < 2 * want)
        p->wide -= PAIR;
    if (p->together && want > FEW_THREADS) /* the second time weights are read they are in L3 */
        while (each > 1 && ceil_div(units, each) * ceil_div(p->outs, p->wide) < want) each--;
    while (!p->together && each > 1 && (double)each * bytes > SCRATCH_BYTES) each--;
    p->batches = ceil_div(units, each);
    p->batch = ceil_div(units, p->batches) * ORTC_TILE_HALF;
}

int ortc_winograd_plan_init(const ortc_conv_geometry *g, ortc_dtype type, int m, const ortc_tiled_uk *tiles,
                            const ortc_blocked_pairs *pairs, uint32_t threads, ortc_winograd_plan *p)
{
    if (!is_for(g)) return 0;
    ortc_winograd_depth depth;
    const ortc_conv_geometry flat = plane_of(g, &depth);
    g = &flat;
    *p = (ortc_winograd_plan){.side = ortc_winograd_side_of(m),
                              .uk = ortc_blocked_uk_get(),
                              .tiles = tiles,
                              .pairs = pairs,
                              .vector = pairs ? BLOCK / 2 : BLOCK,
                              .g = *g,
                              .type = ortc_float_index(type),
                              .m = m,
                              .n = m + 2,
                              .points = (m + 2) * (m + 2),
                              .window = depth,
                              .ins = ceil_div(g->channels, BLOCK),
                              .all = planes_of(g) * ceil_div(g->channels, BLOCK),
                              .depth = (g->channels - 1) % BLOCK + 1,
                              .groups = planes_of(g) * ceil_div(g->channels, 2 * BLOCK),
                              .outs = ceil_div(g->filters, BLOCK),
                              .lanes = (g->filters - 1) % BLOCK + 1};
    for (int i = 0; i < 2; i++) {
        p->dilation[i] = g->dilation[i];
        p->phases[i] = min64(g->dilation[i], g->out[i]);
        p->extent[i] = ceil_div(g->out[i], g->dilation[i]);
    }
    p->down = ceil_div(p->extent[0], m), p->across = ceil_div(p->extent[1], m);
    p->plain = tiles && is_plain(g, m);
    p->wide = (int64_t)p->uk->most_blocks;
    const double parts = (double)g->images * (double)p->phases[0] * (double)p->phases[1];
    if (parts * (double)p->down * (double)p->across > 1e12) return 0;
    p->count = g->images * p->phases[0] * p->phases[1] * p->down * p->across, p->parts = 1;
    if (tiles)
        make_batches_in_pieces(p, threads);
    else
        make_batches(p, threads);
    const int64_t points = p->points * BLOCK, patches = patches_of(p, p->batch),
                  sums = p->points * sum_step(p, p->batch),
                  rows = p->m * min64(p->across, p->batch) * p->m * BLOCK;
    if (p->together) {
        if (!tiles && (double)p->batches * (double)patches * 4 > SHARED_BYTES) return 0;
        p->shared = (size_t)(p->batches * patches) * sizeof(float);
    }
    p->at_sums = p->together ? 0 : patches;
    p->at_rows = p->at_sums + sums;
    p->at_patch = p->at_rows + rows;
    p->at_weights = p->at_patch +
                    points * p->all; /* the patch of all blocks, when a tile is computed again */
    p->at_cut = ceil_div(p->at_weights + p->all * 9 * BLOCK * BLOCK, BLOCK) * BLOCK;
    p->scratch = (size_t)p->at_cut * sizeof(float) + (size_t)(p->plain ? PAIR * p->groups * WEIGHTS : 0);
    return 1;
}

int ortc_winograd_plan_chunks(ortc_winograd_plan *p, uint32_t threads, int64_t bytes)
{
    const int64_t each = weight_bytes(&p->g, (int)p->m, form_of(p)),
                  tasks = ceil_div(threads ? threads : 8, p->batches),
                  chunk = max64(tasks, bytes / (p->wide * each)) * p->wide;
    if (p->tiles || !p->together || chunk >= p->outs) return 0;
    p->chunk = chunk;
    p->shared = shared_patches(p) + (size_t)(chunk * each);
    return 1;
}
