/* The bodies of bodies.h: plain loops, of which compilers make what the instruction set has. */
#include "kernels/index/bodies.h"

#include "kernels/common/vector/vec.h"

#define WITHIN(itype) \
    static int within_##itype(size_t n, const void *indices, int64_t extent) \
    { \
        const itype *at = indices; \
        const uint64_t all = 2 * (uint64_t)extent; \
        uint64_t wrong = 0; \
        for (size_t k = 0; k < n; k++) wrong |= (uint64_t)at[k] + (uint64_t)extent >= all; \
        return !wrong; \
    }
WITHIN(int32_t)
WITHIN(int64_t)

const ortc_index_bodies V_NAME(ortc_index_bodies) = {{within_int32_t, within_int64_t}};
