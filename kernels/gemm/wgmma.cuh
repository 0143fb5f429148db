/* kernels/gemm/wgmma.cuh: Hopper's own instructions (sm_90a) as functions: products by a warpgroup (wgmma),
 * copies of tiles by the copy engine (TMA) that report to barriers in shared memory, and clusters. Nothing
 * else here is assembler.
 *
 * A warpgroup, 4 warps in a row, multiplies 64 x 16 by 16 x N into 64 x N sums: thread t of it holds d[4 j +
 * 2 i + e] = row t / 32 * 16 + t % 32 / 4 + 8 i, column 8 j + t % 4 * 2 + e. Operands lie in shared memory in
 * slabs as TMA's 128-byte swizzle writes them: 64 rows of 64 elements, 8 KB, at multiples of 1024 bytes.
 * K-major: a row is 64 elements of K, slabs follow along M or N; the next 16 of K are 32 bytes on. MN-major:
 * a row is 64 elements of M or N, a slab has 64 of K; the next 16 of K are 16 rows on.
 */
#ifndef ORTC_KERNELS_GEMM_WGMMA_CUH
#define ORTC_KERNELS_GEMM_WGMMA_CUH

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ORTC_HOPPER 1
#endif

namespace ortc_hopper {

constexpr int SLAB = 8192; /* bytes */

/* Where a warpgroup finds an operand. */
__device__ __forceinline__ uint64_t operand(uint32_t address, bool mn_major)
{
    const uint64_t next_slab = mn_major ? SLAB >> 4 : 1, next_8_rows = 1024 >> 4, swizzled_128 = 1;
    return (uint64_t)(address >> 4 & 0x3fff) | next_slab << 16 | next_8_rows << 32 | swizzled_128 << 62;
}
/* What to add to it for the next 16 of K. */
__host__ __device__ constexpr int next_16(bool mn_major) { return (mn_major ? 2048 : 32) >> 4; }

#ifdef ORTC_HOPPER

/* ---- wgmma --------------------------------------------------------------------------------------------- */

/* Before the first product, and after other instructions have touched the sums or A's registers. */
__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ __forceinline__ void products_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
/* All groups but the latest N are done. */
template <int N> __device__ __forceinline__ void products_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");
}
/* The compiler moves no use of the sums across. */
template <int N> __device__ __forceinline__ void settle(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

#define ORTC_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ORTC_D16(i) ORTC_D4(i), ORTC_D4(i + 4), ORTC_D4(i + 8), ORTC_D4(i + 12)
#define ORTC_D32 ORTC_D16(0), ORTC_D16(16)
#define ORTC_D64 ORTC_D32, ORTC_D16(32), ORTC_D16(48)
#define ORTC_D96 ORTC_D64, ORTC_D16(64), ORTC_D16(80)
#define ORTC_D128 ORTC_D96, ORTC_D16(96), ORTC_D16(112)
#define ORTC_L10(tens) \
    "%" tens "0, %" tens "1, %" tens "2, %" tens "3, %" tens "4, %" tens "5, %" tens "6, %" tens "7, %" tens \
    "8, %" tens "9, "
#define ORTC_L30 ORTC_L10("") ORTC_L10("1") ORTC_L10("2")
#define ORTC_L60 ORTC_L30 ORTC_L10("3") ORTC_L10("4") ORTC_L10("5")
#define ORTC_L90 ORTC_L60 ORTC_L10("6") ORTC_L10("7") ORTC_L10("8")
#define ORTC_L32 ORTC_L30 "%30, %31"
#define ORTC_L64 ORTC_L60 "%60, %61, %62, %63"
#define ORTC_L96 ORTC_L90 "%90, %91, %92, %93, %94, %95"
#define ORTC_L128 \
    ORTC_L90 ORTC_L10("9") ORTC_L10("10") ORTC_L10("11") "%120, %121, %122, %123, %124, %125, %126, %127"

template <typename T> struct is_half {
    static constexpr bool value = false;
};
template <> struct is_half<__half> {
    static constexpr bool value = true;
};

/* d = A B, added to d where `more`. TA, TB: the operand is MN-major. */
template <typename T, int TA, int TB, int R>
__device__ __forceinline__ void multiply(float (&d)[R], uint64_t a, uint64_t b, int more)
{
#define ORTC_WGMMA(N, R, TYPE, A, B, MORE, S, U) \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %" MORE ", 0; wgmma.mma_async.sync.aligned.m64n" #N \
                 "k16.f32." TYPE "." TYPE " {" ORTC_L##R "}, %" A ", %" B ", p, 1, 1, %" S ", %" U ";}\n" \
                 : ORTC_D##R \
                 : "l"(a), "l"(b), "r"(more), "n"(TA), "n"(TB))
#define ORTC_WGMMA_OF(N, R, A, B, MORE, S, U) \
    if constexpr (is_half<T>::value) \
        ORTC_WGMMA(N, R, "f16", A, B, MORE, S, U); \
    else \
        ORTC_WGMMA(N, R, "bf16", A, B, MORE, S, U)
    if constexpr (R == 32) {
        ORTC_WGMMA_OF(64, 32, "32", "33", "34", "35", "36");
    } else if constexpr (R == 64) {
        ORTC_WGMMA_OF(128, 64, "64", "65", "66", "67", "68");
    } else if constexpr (R == 96) {
        ORTC_WGMMA_OF(192, 96, "96", "97", "98", "99", "100");
    } else {
        static_assert(R == 128, "");
        ORTC_WGMMA_OF(256, 128, "128", "129", "130", "131", "132");
    }
#undef ORTC_WGMMA_OF
#undef ORTC_WGMMA
}

/* The same with A in registers: two elements each, of columns t % 4 * 2 and + 1 (+ 8 in a[2], a[3]), rows as
 * those of the sums (a[1], a[3]: + 8). */
template <typename T, int TB, int R>
__device__ __forceinline__ void multiply(float (&d)[R], const uint32_t (&a)[4], uint64_t b, int more)
{
#define ORTC_WGMMA(N, R, TYPE, A, B, MORE, U) \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %" MORE ", 0; wgmma.mma_async.sync.aligned.m64n" #N \
                 "k16.f32." TYPE "." TYPE " {" ORTC_L##R "}, {" A "}, %" B ", p, 1, 1, %" U ";}\n" \
                 : ORTC_D##R \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more), "n"(TB))
#define ORTC_WGMMA_OF(N, R, A, B, MORE, U) \
    if constexpr (is_half<T>::value) \
        ORTC_WGMMA(N, R, "f16", A, B, MORE, U); \
    else \
        ORTC_WGMMA(N, R, "bf16", A, B, MORE, U)
    if constexpr (R == 32) {
        ORTC_WGMMA_OF(64, 32, "%32, %33, %34, %35", "36", "37", "38");
    } else if constexpr (R == 64) {
        ORTC_WGMMA_OF(128, 64, "%64, %65, %66, %67", "68", "69", "70");
    } else if constexpr (R == 96) {
        ORTC_WGMMA_OF(192, 96, "%96, %97, %98, %99", "100", "101", "102");
    } else {
        static_assert(R == 128, "");
        ORTC_WGMMA_OF(256, 128, "%128, %129, %130, %131", "132", "133", "134");
    }
#undef ORTC_WGMMA_OF
#undef ORTC_WGMMA
}

/* How many registers each thread of this warpgroup has from now on: what one gives up, others take. */
template <int N> __device__ __forceinline__ void registers_less()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(N));
}
template <int N> __device__ __forceinline__ void registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(N));
}

/* ---- Barriers in shared memory ------------------------------------------------------------------------- */

__device__ __forceinline__ void barrier_init(uint32_t barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals) : "memory");
}
/* After the barriers are made, before the copy engine or another block uses them. */
__device__ __forceinline__ void barriers_made()
{
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}
/* Arrives, and makes the phase wait for so many bytes of copies. */
__device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
/* Until the phase of this parity is over. */
__device__ __forceinline__ void barrier_wait(uint32_t barrier, int parity)
{
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\nbra again;\nover:\n}\n" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}
/* Whether it is. */
__device__ __forceinline__ bool barrier_over(uint32_t barrier, int parity)
{
    uint32_t over;
    asm volatile("{\n.reg .pred done;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, done;\n}\n"
                 : "=r"(over)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return over;
}

/* ---- The copy engine ----------------------------------------------------------------------------------- */

__device__ __forceinline__ void map_prefetch(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];\n" ::"l"((uint64_t)map) : "memory");
}
/* To this address, reporting to this barrier, both this block's. */
__device__ __forceinline__ void tile_load(uint32_t to, const CUtensorMap *map, uint32_t barrier, int x, int y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
        "%4}], [%2];\n" ::"r"(to),
        "l"((uint64_t)map), "r"(barrier), "r"(x), "r"(y)
        : "memory");
}
__device__ __forceinline__ void tile_load(uint32_t to, const CUtensorMap *map, uint32_t barrier, int x, int y,
                                          const int (&at)[3])
{
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
        "%4, %5, %6, %7}], [%2];\n" ::"r"(to),
        "l"((uint64_t)map), "r"(barrier), "r"(x), "r"(y), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
}

/* From this address to memory, what lies outside the matrix left out. What was stored there before by
 * `tile_written`, in the thread that calls; after that come tile_stores_commit and, before the address is
 * written again, tile_stores_read. */
__device__ __forceinline__ void tile_written()
{
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
__device__ __forceinline__ void tile_store(const CUtensorMap *map, uint32_t from, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];\n" ::"l"(
                     (uint64_t)map),
                 "r"(from), "r"(x), "r"(y)
                 : "memory");
}
__device__ __forceinline__ void tile_store(const CUtensorMap *map, uint32_t from, int x, int y,
                                           const int (&at)[3])
{
    asm volatile(
        "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];\n" ::"l"(
            (uint64_t)map),
        "r"(from), "r"(x), "r"(y), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
}
__device__ __forceinline__ void tile_stores_commit()
{
    asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}
/* All groups of this thread but the latest N have been read. */
template <int N> __device__ __forceinline__ void tile_stores_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(N) : "memory");
}

/* Four 8 x 8 matrices of 16-bit elements into shared memory: a lane gives the address of a row (lanes 8 i to
 * 8 i + 7 those of matrix i), and of each matrix two elements of row lane / 4, as the sums lie. */
__device__ __forceinline__ void store_matrices(uint32_t address, const uint32_t (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

/* 16 bytes of shared memory. */
__device__ __forceinline__ float4 quad_at(uint32_t address)
{
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(address));
    return x;
}

__device__ __forceinline__ uint4 words_at(uint32_t address)
{
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(address));
    return x;
}
/* 4 and 2 bytes. */
__device__ __forceinline__ uint32_t word_at(uint32_t address)
{
    uint32_t x;
    asm volatile("ld.shared.u32 %0, [%1];\n" : "=r"(x) : "r"(address));
    return x;
}
__device__ __forceinline__ uint32_t half_at(uint32_t address)
{
    uint16_t x;
    asm volatile("ld.shared.u16 %0, [%1];\n" : "=h"(x) : "r"(address));
    return x;
}

/* ---- Clusters, and kernels that begin while the one before ends ---------------------------------------- */

/* Until all threads of the cluster are here. Orders execution only: what one block writes for another goes
 * through barriers. */
__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n" ::: "memory");
}
/* The same in two steps. */
__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.relaxed;\n" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait;\n" ::: "memory"); }
/* The address that this one has in another block of the cluster. */
__device__ __forceinline__ uint32_t address_in(uint32_t address, int block)
{
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(address), "r"(block));
    return there;
}
/* Two floats to another block, which its barrier counts as 8 bytes. */
__device__ __forceinline__ void push(uint32_t there, float x, float y, uint32_t barrier_there)
{
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];\n" ::"r"(
            there),
        "f"(x), "f"(y), "r"(barrier_there)
        : "memory");
}
/* Four, 16 bytes. */
__device__ __forceinline__ void push(uint32_t there, float x, float y, float z, float w,
                                     uint32_t barrier_there)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
                 "[%5];\n" ::"r"(there),
                 "f"(x), "f"(y), "f"(z), "f"(w), "r"(barrier_there)
                 : "memory");
}
/* So many bytes, whole 16s, from here (tile_written) to another block, which its barrier counts. */
__device__ __forceinline__ void push(uint32_t there, uint32_t from, int bytes, uint32_t barrier_there)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::
            "r"(there),
        "r"(from), "r"(bytes), "r"(barrier_there)
        : "memory");
}
__device__ __forceinline__ int cluster_rank()
{
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
    return rank;
}
/* What this kernel needs of the one before is there; nothing in global memory is touched earlier. */
__device__ __forceinline__ void previous_wait() { asm volatile("griddepcontrol.wait;\n" ::: "memory"); }
/* The next kernel's blocks may start where there is room, to wait for the end of this one. */
__device__ __forceinline__ void next_may_start()
{
    asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
}
/* Threads of some warps only, those that arrive counted; barriers 1 to 15. */
__device__ __forceinline__ void warps_arrive(int barrier, int threads)
{
    asm volatile("bar.arrive %0, %1;\n" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void warps_sync(int barrier, int threads)
{
    asm volatile("bar.sync %0, %1;\n" ::"r"(barrier), "r"(threads) : "memory");
}

#endif

} // namespace ortc_hopper

#endif
