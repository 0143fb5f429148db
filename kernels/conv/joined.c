/* Groups of channels that are no whole blocks, several as one of a ConvInteger (cpu.h): what is between them
 * is multiplied by zeros, which integers do not notice. (A zero times an infinity is NaN, so that floats
 * have their groups to themselves.) */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "kernels/common/blocks.h"

int ortc_conv_join_groups(ortc_conv_geometry *g)
{
    const int64_t c = g->channels, f = g->filters;
    if (g->group < 2 || (c % ORTC_BLOCK == 0 && f % ORTC_BLOCK == 0) || c == 0 || f == 0) return 1;
    for (int64_t m = 2; m <= ORTC_BLOCK && m <= g->group; m++) {
        if (g->group % m ||
            (m < g->group && (m * (c % ORTC_BLOCK) % ORTC_BLOCK || m * (f % ORTC_BLOCK) % ORTC_BLOCK)))
            continue;
        if (__builtin_mul_overflow(m, c, &g->channels) || __builtin_mul_overflow(m, f, &g->filters)) return 0;
        g->group /= m, g->joined = m;
        return 1;
    }
    return 0;
}

ortc_status ortc_conv_joined_weights(const ortc_conv_geometry *g, ortc_dtype type, const void *w, void **out)
{
    const int64_t m = g->joined, filters = g->filters / m, taps = g->kernel_count,
                  own = g->channels / m * taps, all = g->channels * taps;
    const char *from = w;
    size_t bytes;
    char *to = NULL;
    if (!__builtin_mul_overflow((size_t)(g->group * g->filters), (size_t)all, &bytes)) to = malloc(bytes + 1);
    *out = to;
    if (!to) return ORTC_OUT_OF_MEMORY;
    memset(to, type == ORTC_U8 ? 128 : 0, bytes); /* which are moved by as much */
    for (int64_t i = 0; i < g->group * g->filters; i++)
        memcpy(to + i * all + i / filters % m * own, from + i * own, (size_t)own);
    return ORTC_OK;
}
