/* kernels/string/ref_hash.c: com.microsoft's MurmurHash3 on ref: the 32 bits of MurmurHash3_x86_32 (Austin
 * Appleby, in the public domain) of an element's bytes, or of a string's. */
#include <stdlib.h>

#include "kernels/string/string.h"

static uint32_t turn(uint32_t x, int by) { return x << by | x >> (32 - by); }

static uint32_t word_at(const unsigned char *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint32_t mixed(uint32_t k) { return turn(k * 0xcc9e2d51u, 15) * 0x1b873593u; }

static uint32_t hash(const unsigned char *bytes, size_t n, uint32_t seed)
{
    uint32_t h = seed, rest = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) h = turn(h ^ mixed(word_at(bytes + i)), 13) * 5 + 0xe6546b64u;
    for (size_t k = 0; i + k < n; k++) rest |= (uint32_t)bytes[i + k] << (8 * k);
    if (rest) h ^= mixed(rest); /* of 0 it is 0 */
    h ^= (uint32_t)n;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    uint32_t *seed = malloc(sizeof *seed);
    if (!seed) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *seed = (uint32_t)ortc_node_int(n, "seed", 0);
    *out = seed;
    return ORTC_OK;
}

typedef struct job {
    const ortc_view *x;
    uint32_t *y, seed;
} job;

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const size_t bytes = ortc_dtype_bits(j->x->dtype) / 8;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        if (j->x->dtype == ORTC_STRING) {
            const ortc_span s = ortc_span_at(j->x, i);
            j->y[i] = hash((const unsigned char *)s.text, s.length, j->seed);
        } else {
            j->y[i] = hash((const unsigned char *)j->x->data + (size_t)i * bytes, bytes, j->seed);
        }
    }
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    job j = {&c->in[0], c->out[0].data, *(const uint32_t *)state};
    (void)pstate;
    return ortc_parallel(c, ortc_view_count(j.x), ortc_grain(10), chunk, &j);
}

const ortc_kernel ortc_ref_murmur = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "murmur_hash.ref",
                                     .prepare = prepare,
                                     .run = run};
