/* kernels/shape/cuda_strided.c: a strided copy in its simplest form (cuda_strided.h). */
#include <string.h>

#include "kernels/shape/cuda_strided.h"

static void drop(ortc_cu_move *m, int32_t d)
{
    for (m->rank--; d < m->rank; d++) {
        m->dims[d] = m->dims[d + 1];
        m->to_step[d] = m->to_step[d + 1];
        m->from_step[d] = m->from_step[d + 1];
    }
}

/* Elements of 16 bytes may lie at addresses good for 8. */
static void halve(ortc_cu_move *m)
{
    const uint64_t at = (uint64_t)(uintptr_t)m->to | (uint64_t)(uintptr_t)m->from;
    if (m->bytes != 16 || at % 16 == 0) return;
    for (int32_t d = 0; d < m->rank; d++) {
        m->to_step[d] *= 2;
        m->from_step[d] *= 2;
    }
    m->dims[m->rank] = 2;
    m->to_step[m->rank] = m->from_step[m->rank] = 1;
    m->rank++;
    m->bytes = 8;
}

/* Neighbours that stay neighbours move together, as far as every address allows. */
static void widen(ortc_cu_move *m)
{
    const int32_t last = m->rank - 1;
    if (m->to_step[last] != 1 || m->from_step[last] != 1) return;
    uint64_t all = (uint64_t)(uintptr_t)m->to | (uint64_t)(uintptr_t)m->from |
                   (uint64_t)m->dims[last] * m->bytes;
    for (int32_t d = 0; d < last; d++)
        all |= ((uint64_t)m->to_step[d] | (uint64_t)m->from_step[d]) * m->bytes;
    while (m->bytes < 16 && all % (2 * m->bytes) == 0) {
        m->bytes *= 2;
        m->dims[last] /= 2;
        for (int32_t d = 0; d < last; d++) {
            m->to_step[d] /= 2;
            m->from_step[d] /= 2;
        }
    }
}

int ortc_cu_move_simplify(ortc_cu_move *m)
{
    for (int32_t d = 0; d < m->rank; d++)
        if (m->dims[d] == 0) return 0;
    halve(m);
    for (int32_t d = m->rank - 1; d >= 0; d--)
        if (m->dims[d] == 1) drop(m, d);
    for (int32_t d = m->rank - 1; d > 0; d--)
        if (m->to_step[d - 1] == m->to_step[d] * m->dims[d] &&
            m->from_step[d - 1] == m->from_step[d] * m->dims[d]) {
            m->dims[d] *= m->dims[d - 1];
            drop(m, d - 1);
        }
    if (m->rank == 0) {
        m->dims[0] = m->to_step[0] = m->from_step[0] = 1;
        m->rank = 1;
    }
    widen(m);
    return 1;
}
