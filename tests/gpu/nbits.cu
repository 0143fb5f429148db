/* tests/gpu/nbits.cu: products with weights of 4 and 8 bits (kernels/gemm/nbits.cu) on a GPU, without the
 * rest of ortc.
 *
 *   nbits test [SEED [ROUNDS]]   each kernel on random shapes, blocks, zero points and types against sums in
 *                                double of the weights as it has them; results are poisoned before, must be
 *                                written within their bounds only, and twice the same bits
 *   nbits time [N K BLOCK]...    microseconds inside captured graphs, weights rotating through more than the
 *                                cache, random, and the rate at which they and their scales are read, beside
 *                                reads of as many bytes, with scales and without; one row of f16 and 4 bits
 *                                of the shapes that are given
 */
#include "tests/gpu/by_hand.cuh"

#include "kernels/gemm/cuda_nbits.h"

static float number() { return (float)draw(2001) / 1000.0f - 1.0f; }

/* ---- Elements ------------------------------------------------------------------------------------------ */

static int size_of(int type) { return type == ORTC_F32 ? 4 : 2; }
static float get(const std::vector<char> &v, int type, int64_t i)
{
    if (type == ORTC_F32) return ((const float *)v.data())[i];
    return type == ORTC_F16 ? __half2float(((const __half *)v.data())[i])
                            : __bfloat162float(((const __nv_bfloat16 *)v.data())[i]);
}
static void set(std::vector<char> &v, int type, int64_t i, float x)
{
    if (type == ORTC_F32)
        ((float *)v.data())[i] = x;
    else if (type == ORTC_F16)
        ((__half *)v.data())[i] = __float2half_rn(x);
    else
        ((__nv_bfloat16 *)v.data())[i] = __float2bfloat16_rn(x);
}
static float rounded(float x, int type)
{
    return type == ORTC_F32   ? x
           : type == ORTC_F16 ? __half2float(__float2half_rn(x))
                              : __bfloat162float(__float2bfloat16_rn(x));
}
static void *on_device(const std::vector<char> &v)
{
    void *p;
    CHECK(cudaMalloc(&p, v.size() ? v.size() : 1));
    CHECK(cudaMemcpy(p, v.data(), v.size(), cudaMemcpyHostToDevice));
    return p;
}

/* ---- Against sums in double ---------------------------------------------------------------------------- */

enum { MMA, ROWS, UNPACK, ROW, RING, WAYS };

static ortc_cu_nbits shape(int64_t m, int64_t n, int64_t k, int bits, int64_t block, int type)
{
    ortc_cu_nbits g = {};
    g.m = m, g.n = n, g.k = k, g.bits = bits, g.block = (int32_t)block, g.type = type;
    g.processors = 132;
    g.blocks = (k + block - 1) / block;
    g.row_bytes = g.blocks * block / 8 * bits;
    g.zero_bytes = (g.blocks * bits + 7) / 8;
    return g;
}

static int one(int way)
{
    const bool one_row = way == ROW || way == RING, halves = way == MMA || one_row;
    const int type = halves         ? (draw(2) ? ORTC_F16 : ORTC_BF16)
                     : draw(3) == 0 ? ORTC_F32
                     : draw(2)      ? ORTC_F16
                                    : ORTC_BF16;
    const int bits = one_row || draw(2) ? 4 : 8, most = way == MMA ? ORTC_CU_NBITS_MMA_ROWS
                                                        : one_row  ? 1
                                                                   : ORTC_CU_NBITS_ROWS;
    int64_t k = 1 + draw(draw(3) ? 700 : 3000);
    const int64_t block = one_row ? 32 << draw(4) : 16 << draw(5);
    if (way == RING) k = 2048 + draw(draw(3) ? 2500 : 14000) / 8 * 8;
    if (draw(2)) k = (k + 31) / 32 * 32;
    const int columns = way == RING && draw(8) == 0 ? 5000 : 90; /* more than one tile a block */
    ortc_cu_nbits g = shape(1 + draw(most), 1 + draw(columns), k, bits, block, type);
    if (halves && (g.row_bytes % 16 || k % 8)) return -1;
    if (way == RING && g.blocks % 8) return -1;
    const int zeros = way == RING ? 0 : draw(way == ROW ? 2 : 3), biased = draw(2), has_y = way != UNPACK;
    const int64_t pitch = (k + 7) / 8 * 8, count = has_y ? g.m * g.n : g.n * pitch;
    std::vector<char> a(g.m * k * size_of(type)), b(g.n * g.row_bytes),
        scales(g.n * g.blocks * size_of(type)),
        zero(zeros == 2 ? g.n * g.blocks * size_of(type) : g.n * g.zero_bytes), bias(g.n * size_of(type));
    for (int64_t i = 0; i < g.m * k; i++) set(a, type, i, number());
    if (one_row && draw(8) == 0) { /* what zero points cannot be taken off afterwards */
        const float odd[] = {INFINITY, -INFINITY, NAN};
        set(a, type, draw((uint32_t)k), odd[draw(3)]);
    }
    for (char &x : b) x = (char)draw(256);
    for (int64_t i = 0; i < g.n * g.blocks; i++)
        set(scales, type, i, (bits == 4 ? 0.1f : 0.01f) * (1.1f + number()));
    if (zeros == 2)
        for (int64_t i = 0; i < g.n * g.blocks; i++) set(zero, type, i, (float)(1 << (bits - 1)) + number());
    else
        for (char &x : zero) x = (char)draw(256);
    for (int64_t i = 0; i < g.n; i++) set(bias, type, i, number());
    g.a = on_device(a), g.b = (const uint8_t *)on_device(b), g.scales = on_device(scales);
    g.zeros = zeros ? on_device(zero) : NULL;
    g.bias = biased ? on_device(bias) : NULL;
    g.real = zeros == 2, g.constant = draw(2);
    const int64_t bytes = count * size_of(type), guard = 256;
    std::vector<char> got[2];
    for (auto &to : got) {
        to.assign(bytes + 2 * guard, (char)0xff);
        char *y = (char *)on_device(to);
        g.y = y + guard;
        CHECK(way == MMA    ? ortc_cu_nbits_mma(&g, NULL)
              : way == ROW  ? ortc_cu_nbits_row(&g, NULL)
              : way == RING ? ortc_cu_nbits_ring(&g, NULL)
              : way == ROWS ? ortc_cu_nbits_rows(&g, NULL)
                            : ortc_cu_nbits_unpack(&g, 0, g.n, g.y, pitch, NULL));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(to.data(), y, to.size(), cudaMemcpyDeviceToHost));
        CHECK(cudaFree(y));
    }
    int bad = memcmp(got[0].data(), got[1].data(), got[0].size()) != 0;
    for (int64_t i = 0; i < guard; i++)
        bad |= got[0][i] != (char)0xff || got[0][guard + bytes + i] != (char)0xff;
    const std::vector<char> y(got[0].begin() + guard, got[0].end() - guard);
    std::vector<float> w(g.n * k);
    for (int64_t n = 0; n < g.n; n++)
        for (int64_t i = 0; i < k; i++) {
            const int64_t at = i / block;
            const uint8_t *q = (const uint8_t *)b.data() + n * g.row_bytes,
                          *z = (const uint8_t *)zero.data() + n * g.zero_bytes;
            const int value = bits == 8 ? q[i] : q[i / 2] >> (i % 2 * 4) & 15;
            const float off = zeros == 2   ? get(zero, type, n * g.blocks + at)
                              : zeros == 0 ? (float)(1 << (bits - 1))
                              : bits == 8  ? z[at]
                                           : (float)(z[at / 2] >> (at % 2 * 4) & 15);
            float d = (float)value - off;
            if (way == MMA && zeros == 2) d = rounded(d, type);
            d *= get(scales, type, n * g.blocks + at);
            w[n * k + i] = way == ROWS || one_row ? d : rounded(d, type);
        }
    double worst = 0;
    const double unit = type == ORTC_F32 ? 0x1p-23 : type == ORTC_F16 ? 0x1p-10 : 0x1p-7;
    for (int64_t i = 0; i < count; i++) {
        double sum = 0, size = 0;
        if (has_y) {
            for (int64_t j = 0; j < k; j++) {
                const double x = (double)get(a, type, i / g.n * k + j) * (double)w[i % g.n * k + j];
                sum += x, size += fabs(x);
            }
            if (biased) sum += (double)get(bias, type, i % g.n);
        } else
            sum = i % pitch < k ? (double)w[i / pitch * k + i % pitch] : 0;
        const double is = (double)get(y, type, i), may = 0.51 * unit * fabs(sum) + 1e-6 * size + 1e-7;
        const double off = is == sum || (is != is && sum != sum) ? 0 : fabs(is - sum) / may;
        if (!(off <= worst)) worst = off;
    }
    bad |= !(worst <= 1);
    if (bad)
        printf("way %d type %d bits %d block %d m %d n %d k %d zeros %d: %.3g of what it may be off\n", way,
               type, bits, (int)block, (int)g.m, (int)g.n, (int)k, zeros, worst);
    for (const void *p : {g.a, (const void *)g.b, g.scales, g.zeros, g.bias}) CHECK(cudaFree((void *)p));
    return bad;
}

static int test(uint64_t seed, int rounds)
{
    int ran = 0, failed = 0;
    state = seed;
    for (int i = 0; i < rounds; i++) {
        const int bad = one(i % WAYS);
        ran += bad >= 0;
        failed += bad > 0;
    }
    printf("%d passed, %d failed\n", ran - failed, failed);
    return failed != 0;
}

/* ---- Times --------------------------------------------------------------------------------------------- */

/* What is timed: any bytes (type 0), or numbers from around - 1 to around + 1, times `by`. */
__global__ static void fill(void *p, int type, int64_t n, uint64_t seed, float around, float by)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        uint64_t x = ((uint64_t)i + (seed << 40)) * 0x9e3779b97f4a7c15ull;
        x ^= x >> 32, x *= 0xd6e8feb86659fd93ull, x ^= x >> 29;
        const float v = (around + (float)(x >> 40) * 0x1p-23f - 1.0f) * by;
        switch (type) {
        case 0: ((uint8_t *)p)[i] = (uint8_t)(x >> 40); break;
        case ORTC_F32: ((float *)p)[i] = v; break;
        case ORTC_F16: ((__half *)p)[i] = __float2half(v); break;
        default: ((__nv_bfloat16 *)p)[i] = __float2bfloat16(v);
        }
    }
}

__global__ static void read_all(const uint4 *p, int64_t n, uint4 *to)
{
    uint4 x = make_uint4(0, 0, 0, 0);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        const uint4 v = __ldcs(p + i);
        x.x ^= v.x, x.y ^= v.y, x.z ^= v.z, x.w ^= v.w;
    }
    if (x.x == 1 && x.y == 2 && x.z == 3 && x.w == 4) *to = x; /* never, but who knows */
}

template <typename F> static float replayed(cudaStream_t stream, int repeats, F f)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t from, to;
    std::vector<float> times;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < repeats; i++) f(i);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    for (int i = 0; i < 9; i++) {
        float ms;
        CHECK(cudaEventRecord(from, stream));
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaEventRecord(to, stream));
        CHECK(cudaEventSynchronize(to));
        CHECK(cudaEventElapsedTime(&ms, from, to));
        times.push_back(1e3f * ms / (float)repeats);
    }
    std::sort(times.begin(), times.end());
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    return times[times.size() / 2];
}

static void time_shape(cudaStream_t stream, int64_t m, int64_t n, int64_t k, int bits, int64_t block,
                       int type)
{
    ortc_cu_nbits g = shape(m, n, k, bits, block, type);
    g.constant = 1;
    const int64_t each = n * g.row_bytes, scales = n * g.blocks * size_of(type);
    const int copies = (int)std::max<int64_t>(2, (400ll << 20) / each);
    char *b, *s, *a, *y;
    CHECK(cudaMalloc(&b, copies * each + scales)); /* the last is read with as many bytes behind it */
    CHECK(cudaMalloc(&s, copies * scales));
    CHECK(cudaMalloc(&a, m * k * size_of(type)));
    CHECK(cudaMalloc(&y, m * n * size_of(type)));
    fill<<<1024, 256>>>(b, 0, copies * each + scales, 1, 0, 0);
    fill<<<1024, 256>>>(s, type, copies * scales / size_of(type), 2, 1.1f, bits == 4 ? 0.1f : 0.01f);
    fill<<<1024, 256>>>(a, type, m * k, 3, 0, 1);
    CHECK(cudaDeviceSynchronize());
    auto product = [&](int i) {
        g.a = a, g.b = (const uint8_t *)b + i % copies * each, g.scales = s + i % copies * scales, g.y = y;
        CHECK(type == ORTC_F32 ? ortc_cu_nbits_rows(&g, stream)
              : m == 1 && bits == 4 && ortc_cu_nbits_ring_fits(&g) && !getenv("TILES") && !getenv("ROW")
                  ? ortc_cu_nbits_ring(&g, stream)
              : m == 1 && bits == 4 && block >= 32 && k <= ORTC_CU_NBITS_ROW_K && !getenv("TILES")
                  ? ortc_cu_nbits_row(&g, stream)
                  : ortc_cu_nbits_mma(&g, stream));
    };
    const float t = replayed(stream, 40, product);
    auto read = [&](int64_t bytes) {
        return replayed(stream, 40, [&](int i) {
            read_all<<<132 * 8, 256, 0, stream>>>((const uint4 *)(b + i % copies * each), bytes / 16,
                                                  (uint4 *)y);
        });
    };
    const float weights = read(each), all = read(each + scales);
    printf("m %3d n %6d k %6d bits %d block %3d type %2d: %8.2f us, %7.1f GB/s; a read %8.2f us, share %.2f; "
           "with scales %8.2f us, %.2f\n",
           (int)m, (int)n, (int)k, bits, (int)block, type, t, (double)(each + scales) / t / 1e3, weights,
           weights / t, all, all / t);
    for (char *p : {b, s, a, y}) CHECK(cudaFree(p));
}

int main(int argc, char **argv)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("skipped: no GPU\n");
        return 77;
    }
    if (argc > 1 && !strcmp(argv[1], "test"))
        return test(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, argc > 3 ? atoi(argv[3]) : 600);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    if (argc > 4) {
        for (int i = 2; i + 2 < argc; i += 3)
            time_shape(stream, 1, atoll(argv[i]), atoll(argv[i + 1]), 4, atoll(argv[i + 2]), ORTC_F16);
        return 0;
    }
    const int64_t shapes[][2] = {{4096, 4096}, {14336, 4096}, {4096, 14336}, {32000, 4096}, {3072, 768}};
    for (auto &x : shapes)
        for (int64_t m : {1, 2, 8, 16, 32}) time_shape(stream, m, x[0], x[1], 4, 32, ORTC_F16);
    time_shape(stream, 1, 4096, 4096, 4, 128, ORTC_F16);
    time_shape(stream, 1, 4096, 4096, 4, 16, ORTC_F16);
    time_shape(stream, 1, 4096, 4096, 8, 32, ORTC_F16);
    time_shape(stream, 1, 14336, 4096, 8, 128, ORTC_F16);
    time_shape(stream, 1, 14336, 4096, 4, 32, ORTC_BF16);
    time_shape(stream, 1, 14336, 4096, 8, 32, ORTC_BF16);
    time_shape(stream, 1, 14336, 4096, 4, 32, ORTC_F32);
}
