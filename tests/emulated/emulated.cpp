/* tests/emulated/emulated.cpp: a GPU played by the host: launches, barriers (emulated.h), and as much of
 * CUDA's runtime as provider cuda calls. Memory that is handed out is full of a pattern, so that what nobody
 * wrote shows.
 */
#include "emulated.h"

#include <mutex>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { MOST_SHARED = 232448 }; /* bytes of a block */
emulated_index emulated_thread, emulated_block, emulated_threads, emulated_blocks;
alignas(1024) unsigned char emulated_shared[MOST_SHARED];

namespace {

constexpr int MOST = 1024, PROCESSORS = 3; /* few, so that small cases meet the choices of large ones */
constexpr size_t STACK = 128 << 10;

enum state { READY, AT_BLOCK, AT_WARP, DONE };
/* A fiber runs block after block. Its context is entered once; from then on it is left and resumed by
 * _longjmp, which asks nothing of the kernel. */
struct fiber {
    ucontext_t context;
    jmp_buf left;
    state at;
    char *stack;
};

fiber fibers[MOST];
jmp_buf scheduler;
int current, count;
size_t shared_bytes;
const std::function<void()> *body;
std::mutex one_at_a_time;
alignas(16) char boxes[MOST / 32][32][EMULATED_BOX];

void stop(state at)
{
    fibers[current].at = at;
    if (!_setjmp(fibers[current].left)) _longjmp(scheduler, 1);
}

void entry()
{
    for (;;) {
        (*body)();
        stop(DONE);
    }
}

void resume(fiber *f)
{
    if (_setjmp(scheduler)) return;
    if (f->stack) _longjmp(f->left, 1);
    f->stack = (char *)malloc(STACK);
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK;
    makecontext(&f->context, entry, 0);
    setcontext(&f->context);
}

/* Lets fibers first .. last go on from a barrier when all that are left have come there. */
bool release(int first, int last, state at)
{
    bool some = false;
    for (int t = first; t < last; t++) {
        if (fibers[t].at != at && fibers[t].at != DONE) return false;
        some |= fibers[t].at == at;
    }
    for (int t = first; t < last; t++) fibers[t].at = fibers[t].at == at ? READY : DONE;
    return some;
}

void run_block()
{
    memset(emulated_shared, 0xff, shared_bytes); /* NaN: what is read must have been written */
    for (int t = 0; t < count; t++) fibers[t].at = READY;
    for (bool any = true; any;) {
        any = false;
        for (int t = 0; t < count; t++)
            if (fibers[t].at == READY) {
                current = t;
                emulated_thread.x = (unsigned)t % emulated_threads.x;
                emulated_thread.y = (unsigned)t / emulated_threads.x % emulated_threads.y;
                emulated_thread.z = (unsigned)t / (emulated_threads.x * emulated_threads.y);
                resume(&fibers[t]);
            }
        for (int first = 0; first < count; first += 32)
            any |= release(first, first + 32 < count ? first + 32 : count, AT_WARP);
        any |= !any && release(0, count, AT_BLOCK);
    }
    for (int t = 0; t < count; t++)
        if (fibers[t].at != DONE) {
            fprintf(stderr, "emulated: a barrier that not all threads come to\n");
            abort();
        }
}

} // namespace

void __syncthreads() { stop(AT_BLOCK); }
void __syncwarp(unsigned) { stop(AT_WARP); }
int emulated_lane() { return current % 32; }
const char *emulated_gather(const void *mine, size_t bytes)
{
    if (bytes > EMULATED_BOX) abort();
    memcpy(boxes[current / 32][current % 32], mine, bytes);
    __syncwarp();
    return boxes[current / 32][0];
}

void emulated_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel)
{
    std::lock_guard<std::mutex> hold(one_at_a_time);
    count = (int)(block.x * block.y * block.z);
    if (count < 1 || count > MOST || !grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535 ||
        shared > MOST_SHARED) {
        fprintf(stderr, "emulated: a launch of %u x %u x %u blocks of %d threads with %zu bytes\n", grid.x,
                grid.y, grid.z, count, shared);
        abort();
    }
    shared_bytes = shared;
    body = &kernel;
    emulated_blocks = {grid.x, grid.y, grid.z};
    emulated_threads = {block.x, block.y, block.z};
    for (emulated_block.z = 0; emulated_block.z < grid.z; emulated_block.z++)
        for (emulated_block.y = 0; emulated_block.y < grid.y; emulated_block.y++)
            for (emulated_block.x = 0; emulated_block.x < grid.x; emulated_block.x++) run_block();
}

/* ---- The runtime: everything happens at once ----------------------------------------------------------- */

#define AT_ONCE(name, parameters) \
    cudaError_t name parameters { return cudaSuccess; }
#define CANNOT(name, parameters) \
    cudaError_t name parameters { return cudaErrorNotSupported; }

extern "C" {
const char *cudaGetErrorString(cudaError_t) { return "an error of the emulation"; }
AT_ONCE(cudaGetLastError, ())
AT_ONCE(cudaSetDevice, (int))
AT_ONCE(cudaStreamWaitEvent, (cudaStream_t, cudaEvent_t, unsigned))
AT_ONCE(cudaEventRecord, (cudaEvent_t, cudaStream_t))
AT_ONCE(cudaEventSynchronize, (cudaEvent_t))
AT_ONCE(cudaEventQuery, (cudaEvent_t))
AT_ONCE(cudaGraphDestroy, (cudaGraph_t))
AT_ONCE(cudaGraphExecDestroy, (cudaGraphExec_t))
CANNOT(cudaStreamBeginCapture, (cudaStream_t, cudaStreamCaptureMode))
CANNOT(cudaStreamEndCapture, (cudaStream_t, cudaGraph_t *))
CANNOT(cudaGraphInstantiate, (cudaGraphExec_t *, cudaGraph_t, unsigned long long))
CANNOT(cudaGraphLaunch, (cudaGraphExec_t, cudaStream_t))

cudaError_t cudaGetDeviceCount(int *n) { return *n = 1, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *v) { return *v = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *v) { return *v = 13000, cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    return *available = *total = (size_t)1 << 32, cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    memset(p, 0, sizeof *p);
    strcpy(p->name, "the host");
    p->major = 9;
    p->multiProcessorCount = PROCESSORS;
    p->totalGlobalMem = (size_t)1 << 32;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int)
{
    *v = a == cudaDevAttrComputeCapabilityMajor         ? 9
         : a == cudaDevAttrMultiProcessorCount          ? PROCESSORS
         : a == cudaDevAttrMaxSharedMemoryPerBlockOptin ? MOST_SHARED
         : a == cudaDevAttrL2CacheSize                  ? 50 << 20
                                                        : 0;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    *p = aligned_alloc(256, (bytes + 255) & ~(size_t)255);
    if (*p) memset(*p, 0xcd, bytes);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaMallocHost(void **p, size_t bytes) { return cudaMalloc(p, bytes); }
cudaError_t cudaFree(void *p) { return free(p), cudaSuccess; }
cudaError_t cudaFreeHost(void *p) { return free(p), cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    return *s = (cudaStream_t)malloc(1), cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) { return free(s), cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    return *e = (cudaEvent_t)malloc(1), cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) { return free(e), cudaSuccess; }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t)
{
    return memcpy(to, from, bytes), cudaSuccess;
}
}
