/* tests/cuda_host/emulate.cc: fibers for the threads of a block (cuda_runtime.h). */
#include "cuda_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <mutex>
#include <vector>

emulated_index threadIdx, blockIdx, blockDim, gridDim;
alignas(1024) char emulated_shared[256 << 10];

namespace {

struct fiber {
    ucontext_t context;
    std::vector<char> stack;
    bool done;
    unsigned long blocks, warps; /* barriers passed */
};
std::vector<fiber> fibers;
ucontext_t scheduler;
const std::function<void()> *body;
alignas(16) char slots[2][1024 * EMULATED_SLOT]; /* two, so that one exchange may follow another */

void entry()
{
    (*body)();
    fibers[threadIdx.x].done = true;
    swapcontext(&fibers[threadIdx.x].context, &scheduler);
}

void yield()
{
    const unsigned me = threadIdx.x;
    swapcontext(&fibers[me].context, &scheduler);
    threadIdx.x = me;
}

template <typename Count> void meet(unsigned first, unsigned last, Count count)
{
    const unsigned long mine = ++count(fibers[threadIdx.x]);
    for (bool all = false; !all;) {
        all = true;
        for (unsigned i = first; i < last && i < fibers.size(); i++)
            all &= fibers[i].done || count(fibers[i]) >= mine;
        if (!all) yield();
    }
}

} // namespace

void __syncthreads()
{
    meet(0, blockDim.x, [](fiber &f) -> unsigned long & { return f.blocks; });
}
void __syncwarp(unsigned)
{
    const unsigned warp = threadIdx.x / 32 * 32;
    meet(warp, warp + 32, [](fiber &f) -> unsigned long & { return f.warps; });
}
const void *emulated_exchange(const void *mine, size_t bytes)
{
    char *at = slots[fibers[threadIdx.x].warps % 2];
    memcpy(at + threadIdx.x * EMULATED_SLOT, mine, bytes);
    __syncwarp();
    return at + threadIdx.x / 32 * 32 * EMULATED_SLOT;
}

void emulate(unsigned blocks, unsigned threads, const std::function<void()> &thread)
{
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    body = &thread;
    blockDim = {threads, 1, 1};
    gridDim = {blocks, 1, 1};
    for (unsigned b = 0; b < blocks; b++) {
        blockIdx = {b, 0, 0};
        memset(emulated_shared, 0xff, sizeof emulated_shared); /* NaN: what is read must have been written */
        fibers.resize(threads);
        for (unsigned i = 0; i < threads; i++) {
            fiber &f = fibers[i];
            f.stack.resize(64 << 10);
            f.done = false;
            f.blocks = f.warps = 0;
            getcontext(&f.context);
            f.context.uc_stack.ss_sp = f.stack.data();
            f.context.uc_stack.ss_size = f.stack.size();
            f.context.uc_link = nullptr;
            makecontext(&f.context, entry, 0);
        }
        for (bool more = true; more;) {
            more = false;
            for (unsigned i = 0; i < threads; i++)
                if (!fibers[i].done) {
                    threadIdx = {i, 0, 0};
                    swapcontext(&scheduler, &fibers[i].context);
                    more = true;
                }
        }
    }
}
