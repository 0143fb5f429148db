/* Guard pages, random numbers and counting for the tests of micro-kernels. */
#include "guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define PATTERN 0xa7

/* Maps that were closed, by pages: mapping them anew is a third of the tests' time. */
enum { MOST_PAGES = 64, KEPT = 16 };
static unsigned char *kept[MOST_PAGES + 1][KEPT];
static int n_kept[MOST_PAGES + 1];

guard guard_open(size_t bytes, int at_end)
{
    guard g;
    const size_t inner = (bytes + PAGE - 1) / PAGE * PAGE + (bytes ? 0 : PAGE);
    g.bytes = bytes;
    g.map_bytes = inner + 2 * PAGE;
    const size_t pages = inner / PAGE;
    if (pages <= MOST_PAGES && n_kept[pages])
        g.map = kept[pages][--n_kept[pages]];
    else {
        g.map = mmap(NULL, g.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (g.map == MAP_FAILED) abort();
        if (mprotect(g.map, PAGE, PROT_NONE) || mprotect(g.map + PAGE + inner, PAGE, PROT_NONE)) abort();
    }
    memset(g.map + PAGE, PATTERN, inner);
    g.data = at_end ? g.map + PAGE + inner - bytes : g.map + PAGE;
    return g;
}

int guard_intact(const guard *g)
{
    for (const unsigned char *p = g->map + PAGE; p < g->data; p++)
        if (*p != PATTERN) return 0;
    for (const unsigned char *p = g->data + g->bytes; p < g->map + g->map_bytes - PAGE; p++)
        if (*p != PATTERN) return 0;
    return 1;
}

void guard_close(guard *g)
{
    const size_t pages = g->map_bytes / PAGE - 2;
    if (pages <= MOST_PAGES && n_kept[pages] < KEPT)
        kept[pages][n_kept[pages]++] = g->map;
    else
        munmap(g->map, g->map_bytes);
}

uint32_t rng_next(rng *r)
{
    /* splitmix64 */
    uint64_t z = (r->s += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

int64_t rng_range(rng *r, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(rng_next(r) % (uint64_t)(hi - lo + 1));
}

float rng_float(rng *r) { return (float)(int32_t)rng_next(r) / 2147483648.0f; }

void rng_fill(rng *r, float *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float v = rng_float(r);
        memcpy((char *)p + i * sizeof v, &v, sizeof v); /* p may be unaligned */
    }
}

int tally_begins(tally *t, const char *name, int can)
{
    if (t->filter && !strstr(name, t->filter)) return 0;
    if (can) return 1;
    t->skipped++;
    printf("skip %s: this machine, or ORTC_CPU, has not its instructions\n", name);
    return 0;
}

int tally_count(const tally *t, int of) { return (of + t->every - 1) / t->every; }

void tally_result(tally *t, const char *name, int failures)
{
    if (failures) {
        t->failed++;
        printf("FAIL %s: %d failures, --seed %llu\n", name, failures, (unsigned long long)t->seed);
    } else {
        t->passed++;
        printf("ok   %s\n", name);
    }
    fflush(stdout);
}
