/* Tiles of pieces whose weights lie in f32 (tiled.h): a chunk of a pair of blocks' is split by the first tile
 * that goes over it, into what the others read, and all ask for the next chunk. So weights are 4 bytes of
 * memory where their pieces are 6, and come while the unit is at work. */
#include "tiled_loops.h"

#define BLOCK ORTC_BLOCK
#define SUMS (ORTC_TILE_BLOCKS * ORTC_TILED_UNIT * BLOCK) /* of a unit */

typedef ortc_tiled_job job;
typedef ortc_tiled_band band;

/* Units of a task: those of one band, or of all bands of a group, that have been laid out. */
typedef struct task {
    const job *j;
    const band *only; /* NULL: all */
    int64_t group, b0, b1, u0, u1;
    int64_t last; /* blocks before this one come next */
    int64_t tiles;
    float *sums;
    char *split;
} task;

typedef struct unit {
    band b;
    int64_t from, to;
} unit;

static unit unit_of(const task *t, int64_t i)
{
    const ortc_tiled_plan *p = t->j->p;
    unit u = {.from = 0};
    if (t->only) {
        u.b = *t->only;
    } else {
        const int64_t each = p->bands / p->images / p->group, m = i / p->units,
                      n = (m / each * p->group + t->group) * each + m % each;
        u.b = ortc_tiled_band_of(t->j, n, t->j->shared + n * p->band);
        if (t->j->odd[n]) return u;
    }
    u.from = ortc_tiled_unit(&u.b, i % p->units, &u.to);
    if (u.from > u.to) u.to = u.from;
    return u;
}

static int64_t tiles_of(const unit *u) { return ceil_div(u->to - u->from, 2 * u->b.j->p->half); }

/* A chunk of groups from `g` on, of n blocks whose weights of it begin at `begin`, over units. `end`: of what
 * is asked for. */
static void over_chunk(const task *t, int64_t n, int64_t g, const unit *units, int64_t count,
                       ortc_tiled_tile *tile, const char *end)
{
    const ortc_tiled_plan *p = t->j->p;
    for (int64_t i = 0; i < count; i++)
        for (int64_t q = units[i].from; q < units[i].to; q += 2 * p->half) {
            ortc_tiled_tile now = *tile;
            now.x = units[i].b.laid + g * tile->group + q * p->step;
            now.sums = t->sums + i * SUMS + (q - units[i].from) * BLOCK;
            if (now.next >= end) now.next_lines = 0;
            p->uk->run[p->kind](units[i].to - q > p->half ? 2 : 1, (int)n, &now);
            tile->next += now.next_lines * 64 * now.groups * now.taps;
            tile->plain = NULL;
        }
}

/* n blocks from k on. */
static void over_units(const task *t, int64_t k, int64_t n)
{
    const job *j = t->j;
    const ortc_tiled_plan *p = j->p;
    const int whole = p->chunk == p->groups;
    const int64_t block = t->group * p->outs + k;
    ortc_tiled_tile tile = ortc_tiled_tile_of(j);
    const char *w = ortc_tiled_weights_at(j, block, &tile.plain_step, &tile.w_block);
    const int64_t step = p->taps * tile.plain_step, all = p->groups * step,
                  lines = n * ORTC_TILED_PLAIN_BYTES / ORTC_TILE_ROW;
    tile.w = t->split, tile.w_block = p->pieces * ORTC_TILED_TILE_BYTES, tile.w_step = n * tile.w_block;
    tile.bias = j->a->bias + block * BLOCK;
    for (int64_t i = t->u0, count; i < t->u1; i += count) {
        unit units[ORTC_TILED_UNITS];
        int64_t tiles = 0;
        count = min64(ORTC_TILED_UNITS, t->u1 - i);
        for (int64_t u = 0; u < count; u++) {
            units[u] = unit_of(t, i + u);
            tiles += tiles_of(&units[u]);
        }
        tile.next_lines = (size_t)ceil_div(lines, max64(whole ? t->tiles : tiles, 1));
        for (int64_t g = 0; g < p->groups; g += p->chunk) {
            const int64_t now = min64(p->chunk, p->groups - g), next = (g + now) * step;
            if (!whole || i == t->u0) tile.plain = w + g * step, tile.next = w + next;
            tile.groups = (size_t)now;
            tile.more = g > 0;
            over_chunk(t, n, g, units, count, &tile,
                       w + min64(next + p->chunk * step, k + n < t->last ? all + p->chunk * step : all));
        }
        for (int64_t u = 0; u < count; u++)
            if (units[u].to > units[u].from)
                ortc_tiled_finish(&units[u].b, 0, t->sums + u * SUMS, block, n, units[u].from, units[u].to);
    }
}

static void run(task *t, void *scratch)
{
    const ortc_tiled_plan *p = t->j->p;
    t->sums = scratch, t->split = (char *)scratch + p->at_split;
    for (int64_t i = t->u0; i < t->u1; i++) {
        const unit u = unit_of(t, i);
        t->tiles += tiles_of(&u);
    }
    for (int64_t k = t->b0, n; k < t->b1; k += n) {
        n = ortc_tiled_run_of_blocks(t->j, t->group * p->outs, k, t->b1);
        if (n > 0)
            over_units(t, k, n);
        else
            n = 1;
    }
}

void ortc_tiled_plain_band(const band *b, int64_t b0, int64_t b1, void *scratch)
{
    task t = {.j = b->j, .only = b, .group = b->group, .b0 = b0, .b1 = b1, .u1 = b->j->p->units, .last = b1};
    run(&t, scratch);
}

static void run_task(const job *j, int64_t i, void *scratch)
{
    const ortc_tiled_plan *p = j->p;
    const int64_t part = i % p->unit_parts, units = p->bands / p->group * p->units;
    i /= p->unit_parts;
    task t = {.j = j, .group = i / p->block_parts, .b0 = i % p->block_parts * p->blocks};
    t.b1 = min64(t.b0 + p->blocks, p->outs);
    /* the next task is one of other pixels, or of the blocks that follow */
    t.last = p->unit_parts > 1 ? t.b1 : p->outs;
    t.u0 = dealt(units, p->unit_parts, part);
    t.u1 = dealt(units, p->unit_parts, part + 1);
    run(&t, scratch);
}

void ortc_tiled_plain_tasks(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    j->p->uk->begin(j->p->half);
    for (int64_t i = begin; i < end; i++) run_task(j, i, scratch);
    j->p->uk->end();
}
