/* tests/gpu/rows.cu: what is bound by memory, beside a copy of as many bytes, on a GPU and without the rest
 * of ortc (that results are right is the cases' to say).
 *
 *   rows [ROWS LENGTH]...   softmax, norms, a sum and Gelu of f16 inside captured graphs, tensors rotating
 *                           through more than the cache: microseconds, GB/s read and written, and the share
 *                           of the rate that the device copies such a tensor at
 */
#include "tests/gpu/by_hand.cuh"

#include "kernels/elementwise/direct_cuda.h"
#include "kernels/norm/norm_cuda.h"
#include "kernels/softmax/softmax_cuda.h"

__global__ static void fill(__half *p, int64_t n, uint64_t seed)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        uint64_t x = ((uint64_t)i + seed) * 0x9e3779b97f4a7c15ull;
        x ^= x >> 32, x *= 0xd6e8feb86659fd93ull, x ^= x >> 29;
        p[i] = __float2half((float)(x >> 40) * 0x1p-23f - 1.0f);
    }
}

struct Way {
    const char *name;
    double tensors; /* read and written */
    cudaGraphExec_t exec;
    std::vector<float> us;
};

static void time_rows(cudaStream_t stream, int64_t rows, int64_t length)
{
    const int64_t n = rows * length, bytes = n * 2;
    const int sets = (int)std::max<int64_t>(3, std::min<int64_t>(64, (INT64_C(300) << 20) / bytes)),
              repeats = std::max(sets, 12);
    std::vector<__half *> x((size_t)sets), y((size_t)sets);
    __half *scale;
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaMalloc(&scale, (size_t)length * 2));
    fill<<<64, 256>>>(scale, length, 7);
    for (int i = 0; i < sets; i++) {
        CHECK(cudaMalloc(&x[(size_t)i], (size_t)bytes));
        CHECK(cudaMalloc(&y[(size_t)i], (size_t)bytes));
        fill<<<1024, 256>>>(x[(size_t)i], n, (uint64_t)i * 12345);
    }
    CHECK(cudaDeviceSynchronize());
    std::vector<Way> ways;
    auto add = [&](const char *name, double tensors, auto f) {
        cudaGraph_t graph;
        Way w = {name, tensors, NULL, {}};
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < repeats; i++) CHECK(f(x[(size_t)(i % sets)], y[(size_t)(i % sets)], i));
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&w.exec, graph, 0));
        CHECK(cudaGraphDestroy(graph));
        ways.push_back(w);
    };
    auto norm = [&](bool centred, const __half *from, __half *to) {
        ortc_cu_norm a = {};
        a.y = to, a.x = from, a.scale = scale, a.bias = centred ? scale : NULL, a.rows = rows,
        a.length = length;
        a.groups = a.each = 1, a.scale_count = a.bias_count = length, a.epsilon = 1e-5f, a.dtype = ORTC_F16,
        a.centred = centred;
        return ortc_cu_norm_run(&a, stream);
    };
    auto direct = [&](const __half *from, const __half *other, __half *to) {
        ortc_cu_direct d = {};
        int error = 0;
        d.y = to, d.x = from, d.a = other, d.packs = n / 8, d.dtype = ORTC_F16;
        if (!(other ? ortc_cu_direct_binary(ORTC_CU_ADD, &d, stream, &error)
                    : ortc_cu_direct_unary(ORTC_CU_GELU, &d, stream, &error)))
            return (int)cudaErrorInvalidValue;
        return error;
    };
    add("copy", 2, [&](const __half *from, __half *to, int) {
        return (int)cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, stream);
    });
    add("softmax", 2, [&](const __half *from, __half *to, int) {
        return ortc_cu_softmax(ORTC_F16, 0, to, from, rows, length, 1, stream);
    });
    add("layer norm", 2, [&](const __half *from, __half *to, int) { return norm(true, from, to); });
    add("rms norm", 2, [&](const __half *from, __half *to, int) { return norm(false, from, to); });
    add("gelu", 2, [&](const __half *from, __half *to, int) { return direct(from, NULL, to); });
    add("add", 3,
        [&](const __half *from, __half *to, int i) { return direct(from, x[(size_t)((i + 1) % sets)], to); });
    for (int round = 0; round < 12; round++)
        for (Way &w : ways) {
            float ms;
            CHECK(cudaEventRecord(begin, stream));
            CHECK(cudaGraphLaunch(w.exec, stream));
            CHECK(cudaEventRecord(end, stream));
            CHECK(cudaEventSynchronize(end));
            CHECK(cudaEventElapsedTime(&ms, begin, end));
            if (round) w.us.push_back(1e3f * ms / (float)repeats);
        }
    double copied = 0;
    printf("%lld x %lld:", (long long)rows, (long long)length);
    for (Way &w : ways) {
        std::sort(w.us.begin(), w.us.end());
        const double us = w.us[w.us.size() / 2], rate = w.tensors * (double)bytes / us / 1e3;
        if (!copied) copied = rate;
        printf("  %s %.2f us %.0f GB/s %.2f", w.name, us, rate, rate / copied);
        CHECK(cudaGraphExecDestroy(w.exec));
    }
    printf("\n");
    for (const auto &all : {x, y})
        for (__half *p : all) CHECK(cudaFree(p));
    CHECK(cudaFree(scale));
}

int main(int argc, char **argv)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        printf("skipped: no GPU\n");
        return 77;
    }
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (argc > 2)
        for (int i = 1; i + 1 < argc; i += 2) time_rows(stream, atoll(argv[i]), atoll(argv[i + 1]));
    else
        for (const auto &s : {std::pair<int64_t, int64_t>(8192, 4096),
                              {16384, 1024},
                              {4096, 8192},
                              {2048, 16384},
                              {32768, 768},
                              {128, 768}})
            time_rows(stream, s.first, s.second);
    return 0;
}
