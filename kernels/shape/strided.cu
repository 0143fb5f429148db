/* kernels/shape/strided.cu: strided copies (cuda_strided.h): piece by piece, or, where rows become columns,
 * by tiles that turn in shared memory, so that both sides see neighbours. And filling.
 */
#include <string.h>

#include "kernels/common/cuda.cuh"
#include "kernels/elementwise/cuda_program.h"
#include "kernels/shape/cuda_strided.h"

namespace {

struct move {
    void *to;
    const void *from;
    uint32_t pieces;
    int rank;
    int64_t to_step[ORTC_CU_MOVE_RANK], from_step[ORTC_CU_MOVE_RANK];
    ortc_cu_divisor dims[ORTC_CU_MOVE_RANK];
};

__device__ inline uint32_t quotient(uint32_t n, const ortc_cu_divisor &d)
{
    return (__umulhi(n, d.multiplier) + n) >> d.shift;
}

template <typename Piece> __global__ void __launch_bounds__(256) copy(const __grid_constant__ move m)
{
    for (uint32_t at = blockIdx.x * 256 + threadIdx.x; at < m.pieces; at += gridDim.x * 256) {
        int64_t to = 0, from = 0;
        uint32_t i = at;
        for (int d = m.rank - 1; d >= 0; d--) {
            const uint32_t rest = quotient(i, m.dims[d]), within = i - rest * m.dims[d].divisor;
            to += within * m.to_step[d];
            from += within * m.from_step[d];
            i = rest;
        }
        ((Piece *)m.to)[to] = ((const Piece *)m.from)[from];
    }
}

/* Dim 0 runs along neighbours of `from`, dim 1 along neighbours of `to`; the others count tiles' bases. */
constexpr int TILE = 32, ROWS = 8;

template <typename Piece>
__global__ void __launch_bounds__(TILE *ROWS) turn(const __grid_constant__ move m, uint32_t n0, uint32_t n1)
{
    __shared__ Piece tile[TILE][TILE + 1];
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    for (uint32_t block = blockIdx.x; block < m.pieces; block += gridDim.x) {
        int64_t to = 0, from = 0;
        uint32_t i = block;
        const uint32_t rest = quotient(i, m.dims[0]), first0 = (i - rest * m.dims[0].divisor) * TILE;
        i = quotient(rest, m.dims[1]);
        const uint32_t first1 = (rest - i * m.dims[1].divisor) * TILE;
        for (int d = 2; d < m.rank; d++) {
            const uint32_t next = quotient(i, m.dims[d]), within = i - next * m.dims[d].divisor;
            to += within * m.to_step[d];
            from += within * m.from_step[d];
            i = next;
        }
        for (int r = y; r < TILE; r += ROWS)
            if (first0 + x < n0 && first1 + r < n1)
                tile[r][x] =
                    ((const Piece *)
                         m.from)[from + (int64_t)(first0 + x) + (int64_t)(first1 + r) * m.from_step[1]];
        __syncthreads();
        for (int r = y; r < TILE; r += ROWS)
            if (first1 + x < n1 && first0 + r < n0)
                ((Piece *)m.to)[to + (int64_t)(first1 + x) + (int64_t)(first0 + r) * m.to_step[0]] =
                    tile[x][r];
        __syncthreads();
    }
}

struct pair {
    uint64_t low, high;
}; /* 16 bytes at addresses good for 8 */
template <typename Piece>
__global__ void __launch_bounds__(256) fill(Piece *to, int64_t count, const Piece *value, Piece v)
{
    if (value) v = *value;
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < count; i += (int64_t)gridDim.x * 256)
        to[i] = v;
}

/* The dim of `from`'s neighbours, where it is not that of `to`'s: worth tiles when both have some length. */
int turned(const ortc_cu_move *c)
{
    const int last = c->rank - 1;
    if (c->to_step[last] != 1 || c->from_step[last] == 1 || c->dims[last] < 8) return -1;
    for (int d = 0; d < last; d++)
        if (c->from_step[d] == 1 && c->dims[d] >= 8) return d;
    return -1;
}

template <typename Piece> int launch(const ortc_cu_move *c, int64_t pieces, cudaStream_t stream)
{
    move m;
    const int with = turned(c), last = c->rank - 1;
    m.to = c->to;
    m.from = c->from;
    m.rank = c->rank;
    if (with < 0) {
        m.pieces = (uint32_t)pieces;
        for (int d = 0; d < c->rank; d++) {
            m.dims[d] = ortc_cu_divisor_of((uint32_t)c->dims[d]);
            m.to_step[d] = c->to_step[d];
            m.from_step[d] = c->from_step[d];
        }
        copy<Piece><<<ortc_cu_blocks(pieces, 256), 256, 0, stream>>>(m);
        return cudaGetLastError();
    }
    int order[ORTC_CU_MOVE_RANK], n = 0;
    order[n++] = with;
    order[n++] = last;
    for (int d = last - 1; d >= 0; d--)
        if (d != with) order[n++] = d;
    int64_t blocks = 1;
    for (int k = 0; k < n; k++) {
        const int64_t extent = k < 2 ? (c->dims[order[k]] + TILE - 1) / TILE : c->dims[order[k]];
        m.dims[k] = ortc_cu_divisor_of((uint32_t)extent);
        m.to_step[k] = c->to_step[order[k]];
        m.from_step[k] = c->from_step[order[k]];
        blocks *= extent;
    }
    m.pieces = (uint32_t)blocks;
    turn<Piece><<<ortc_cu_blocks(blocks, 1), TILE * ROWS, 0, stream>>>(m, (uint32_t)c->dims[with],
                                                                       (uint32_t)c->dims[last]);
    return cudaGetLastError();
}

int run(const ortc_cu_move *c, cudaStream_t stream)
{
    int64_t pieces = 1;
    for (int d = 0; d < c->rank; d++) pieces *= c->dims[d];
    if (pieces >= INT64_C(1) << 31) { /* in halves along the longest dim */
        int longest = 0;
        for (int d = 1; d < c->rank; d++) longest = c->dims[d] > c->dims[longest] ? d : longest;
        ortc_cu_move part = *c;
        part.dims[longest] = c->dims[longest] / 2;
        const int error = run(&part, stream);
        part.to = (char *)c->to + part.dims[longest] * c->to_step[longest] * c->bytes;
        part.from = (const char *)c->from + part.dims[longest] * c->from_step[longest] * c->bytes;
        part.dims[longest] = c->dims[longest] - part.dims[longest];
        return error ? error : run(&part, stream);
    }
    switch (c->bytes) {
    case 16: return launch<uint4>(c, pieces, stream);
    case 8: return launch<uint2>(c, pieces, stream);
    case 4: return launch<uint32_t>(c, pieces, stream);
    case 2: return launch<uint16_t>(c, pieces, stream);
    default: return launch<uint8_t>(c, pieces, stream);
    }
}

template <typename Piece>
int fill_all(void *to, int64_t count, const void *value, Piece v, cudaStream_t stream)
{
    fill<Piece><<<ortc_cu_blocks(count, 256), 256, 0, stream>>>((Piece *)to, count, (const Piece *)value, v);
    return cudaGetLastError();
}

template <typename Piece> Piece repeated(uint64_t bits, uint32_t bytes)
{
    Piece v;
    for (uint32_t at = 0; at < sizeof v; at += bytes) memcpy((char *)&v + at, &bits, bytes);
    return v;
}

} // namespace

extern "C" int ortc_cu_move_run(const ortc_cu_move *given, void *queue)
{
    ortc_cu_move c = *given;
    return ortc_cu_move_simplify(&c) ? run(&c, (cudaStream_t)queue) : 0;
}

extern "C" int ortc_cu_fill(void *to, int64_t count, uint32_t bytes, const void *value, void *queue)
{
    cudaStream_t stream = (cudaStream_t)queue;
    if (count == 0) return 0;
    switch (bytes) {
    case 16: return fill_all<pair>(to, count, value, pair(), stream);
    case 8: return fill_all<uint64_t>(to, count, value, 0, stream);
    case 4: return fill_all<uint32_t>(to, count, value, 0, stream);
    case 2: return fill_all<uint16_t>(to, count, value, 0, stream);
    default: return fill_all<uint8_t>(to, count, value, 0, stream);
    }
}

extern "C" int ortc_cu_fill_with(void *to, int64_t count, uint32_t bytes, uint64_t bits, void *queue)
{
    cudaStream_t stream = (cudaStream_t)queue;
    const int64_t all = count * bytes;
    if (count == 0) return 0;
    if (((uint64_t)(uintptr_t)to | (uint64_t)all) % 16 == 0)
        return fill_all<uint4>(to, all / 16, NULL, repeated<uint4>(bits, bytes), stream);
    switch (bytes) {
    case 8: return fill_all<uint64_t>(to, count, NULL, bits, stream);
    case 4: return fill_all<uint32_t>(to, count, NULL, (uint32_t)bits, stream);
    case 2: return fill_all<uint16_t>(to, count, NULL, (uint16_t)bits, stream);
    default: return fill_all<uint8_t>(to, count, NULL, (uint8_t)bits, stream);
    }
}
