/* tests/gpu/rows.cu: what is bound by memory, beside a copy of as many bytes, on a GPU and without the rest
 * of ortc (that results are right is the cases' to say, but for norms of many rows, which they have few of).
 *
 *   rows test [SEED]        norms of random rows, lengths and types, in place too, against sums in double;
 *                           results are poisoned before, must be written within their bounds only, and twice
 *                           the same bits
 *   rows [ROWS LENGTH]...   softmax, norms, a sum and Gelu of f16 (BF16=1: bf16) inside captured graphs,
 *                           tensors rotating through more than the cache: microseconds, GB/s read and
 *                           written, and the share of the rate that the device copies such a tensor at
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

/* ---- Norms against sums in double ---------------------------------------------------------------------- */

static float get(const std::vector<char> &v, int type, int64_t i)
{
    if (type == ORTC_F32) return ((const float *)v.data())[i];
    return type == ORTC_F16 ? __half2float(((const __half *)v.data())[i])
                            : __bfloat162float(((const __nv_bfloat16 *)v.data())[i]);
}
static std::vector<char> numbers(int type, int64_t n, float around)
{
    std::vector<char> v((size_t)n * (type == ORTC_F32 ? 4 : 2));
    for (int64_t i = 0; i < n; i++) {
        const float x = around + (float)draw(2001) / 1000.0f - 1.0f;
        if (type == ORTC_F32)
            ((float *)v.data())[i] = x;
        else if (type == ORTC_F16)
            ((__half *)v.data())[i] = __float2half_rn(x);
        else
            ((__nv_bfloat16 *)v.data())[i] = __float2bfloat16_rn(x);
    }
    return v;
}
static char *on_device(const std::vector<char> &v)
{
    char *p;
    CHECK(cudaMalloc(&p, v.size() ? v.size() : 1));
    CHECK(cudaMemcpy(p, v.data(), v.size(), cudaMemcpyHostToDevice));
    return p;
}

static int test(uint64_t seed)
{
    static const int types[] = {ORTC_F32, ORTC_F16, ORTC_BF16}, guard = 256;
    int failed = 0, rounds = 400;
    double worst = 0;
    state = seed;
    for (int round = 0; round < rounds; round++) {
        ortc_cu_norm a = {};
        a.dtype = types[draw(3)];
        const int size = a.dtype == ORTC_F32 ? 4 : 2, width = 16 / size;
        const int64_t packs = 1 + draw(draw(2) ? 130 : draw(2) ? 600 : 2100);
        a.length = packs * width, a.rows = 1 + draw(draw(2) ? 40 : draw(3) ? 300 : 3000), a.centred = draw(2);
        a.groups = a.each = 1, a.scale_count = a.bias_count = a.length, a.epsilon = 1e-5f;
        const bool biased = draw(2), in_place = draw(4) == 0, told = draw(2);
        const std::vector<char> x = numbers(a.dtype, a.rows * a.length, a.centred ? 3.0f : 0.0f),
                                scale = numbers(a.dtype, a.length, 0.5f),
                                bias = numbers(a.dtype, a.length, 0.0f);
        char *on_x = on_device(x), *on_scale = on_device(scale), *on_bias = on_device(bias);
        std::vector<char> got[2], told_of[2];
        for (int twice = 0; twice < 2; twice++) {
            std::vector<char> all(x.size() + 2 * guard, (char)0xff);
            if (in_place) memcpy(all.data() + guard, x.data(), x.size());
            char *y = on_device(all), *of = on_device(std::vector<char>((size_t)a.rows * 8, (char)0xff));
            a.y = y + guard, a.x = in_place ? y + guard : on_x, a.scale = on_scale;
            a.bias = biased ? on_bias : NULL;
            a.mean = told ? (float *)of : NULL, a.inverse = told ? (float *)of + a.rows : NULL;
            CHECK(ortc_cu_norm_run(&a, NULL));
            CHECK(cudaDeviceSynchronize());
            got[twice].resize(all.size()), told_of[twice].resize((size_t)a.rows * 8);
            CHECK(cudaMemcpy(got[twice].data(), y, all.size(), cudaMemcpyDeviceToHost));
            CHECK(cudaMemcpy(told_of[twice].data(), of, (size_t)a.rows * 8, cudaMemcpyDeviceToHost));
            CHECK(cudaFree(y));
            CHECK(cudaFree(of));
        }
        int bad = got[0] != got[1] || told_of[0] != told_of[1];
        for (int i = 0; i < guard; i++)
            bad |= got[0][(size_t)i] != (char)0xff || got[0][got[0].size() - 1 - (size_t)i] != (char)0xff;
        const std::vector<char> y(got[0].begin() + guard, got[0].end() - guard);
        const double unit = a.dtype == ORTC_F32 ? 0x1p-17 : a.dtype == ORTC_F16 ? 0x1p-10 : 0x1p-7;
        for (int64_t r = 0; r < a.rows; r++) {
            double mean = 0, squares = 0;
            for (int64_t i = 0; i < a.length && a.centred; i++) mean += get(x, a.dtype, r * a.length + i);
            mean /= (double)a.length;
            for (int64_t i = 0; i < a.length; i++) {
                const double d = get(x, a.dtype, r * a.length + i) - mean;
                squares += d * d;
            }
            const double inverse = 1 / sqrt(squares / (double)a.length + (double)a.epsilon);
            if (told)
                bad |= fabs(((float *)told_of[0].data())[r] - mean) > 1e-5 * (1 + fabs(mean)) ||
                       !(fabs(((float *)told_of[0].data())[a.rows + r] - inverse) < 1e-4 * inverse);
            for (int64_t i = 0; i < a.length; i++) {
                const double is = (get(x, a.dtype, r * a.length + i) - mean) * inverse *
                                      get(scale, a.dtype, i) +
                                  (biased ? get(bias, a.dtype, i) : 0);
                const double off = fabs(get(y, a.dtype, r * a.length + i) - is) / (unit * (1 + fabs(is)));
                if (!(off <= worst)) worst = off;
                bad |= !(off <= 1);
            }
        }
        failed += bad;
        if (bad)
            printf("type %d rows %d length %d centred %d bias %d in place %d\n", a.dtype, (int)a.rows,
                   (int)a.length, a.centred, biased, in_place);
        for (char *p : {on_x, on_scale, on_bias}) CHECK(cudaFree(p));
    }
    printf("largest error over its bound %.2f\n%d passed, %d failed\n", worst, rounds - failed, failed);
    return failed != 0;
}

/* ---- Times --------------------------------------------------------------------------------------------- */

static int timed = ORTC_F16;

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
        a.groups = a.each = 1, a.scale_count = a.bias_count = length, a.epsilon = 1e-5f, a.dtype = timed,
        a.centred = centred;
        return ortc_cu_norm_run(&a, stream);
    };
    auto direct = [&](const __half *from, const __half *other, __half *to) {
        ortc_cu_direct d = {};
        int error = 0;
        d.y = to, d.x = from, d.a = other, d.packs = n / 8, d.dtype = timed;
        if (!(other ? ortc_cu_direct_binary(ORTC_CU_ADD, &d, stream, &error)
                    : ortc_cu_direct_unary(ORTC_CU_GELU, &d, stream, &error)))
            return (int)cudaErrorInvalidValue;
        return error;
    };
    add("copy", 2, [&](const __half *from, __half *to, int) {
        return (int)cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, stream);
    });
    add("softmax", 2, [&](const __half *from, __half *to, int) {
        return ortc_cu_softmax(timed, 0, to, from, rows, length, 1, stream);
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
    if (argc > 1 && !strcmp(argv[1], "test")) return test(argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
    if (getenv("BF16")) timed = ORTC_BF16;
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
