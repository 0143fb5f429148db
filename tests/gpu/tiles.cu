/* tests/gpu/tiles.cu: the products of kernels/gemm, kernel by kernel, on a GPU, without the rest of ortc.
 *
 *   tiles test [SEED [ROUNDS]]
 *                           every kernel on random shapes around its tile, in every layout, batched, with
 *                           every epilogue, against sums in
 *                           double; results are poisoned before, must be written within their bounds only,
 *                           and twice the same bits; then products of one A side by side, likewise
 *   tiles accuracy          f32: errors of every kernel and of cuBLAS, of sums of various lengths and
 *                           spreads; that of split operands may be off by no more than twice what cuBLAS
 *                           is (fused multiply-adds sum one by one, and lose more the longer K is)
 *   tiles time [M N K]...   every kernel beside cuBLAS (if it can be opened), inside captured graphs,
 *                           operands rotating through more than the
 *                           cache; `*` marks what ortc_cu_gemm_plan chooses, the last column is its time
 *                           over the best one's
 *   tiles together          products of one A side by side, by every kernel that can, and one by one: `*`
 *                           marks what ortc_cu_gemm_plan_together chooses, then its time over the best's
 */
#include <dlfcn.h>

#include "tests/gpu/by_hand.cuh"

#include "kernels/gemm/cuda_gemm.h"

static const char *const names[] = {"-",        "mma128x128", "mma128x64", "mma64x64", "mma64x32", "mma_any",
                                    "ffma128",  "ffma64",     "vector",    "w128x256", "w128x192", "w128x128",
                                    "t128x128", "w64x192",    "w64x128",   "w64x64",   "p128x128", "p64x192",
                                    "p64x128",  "p64x64",     "p32x64",    "p16x64",   "split128", "split64",
                                    "few16x64", "o64x64",     "o64x128",   "o64x192"};
static_assert(sizeof names / sizeof *names == ORTC_CU_GEMM_WGMMA_END, "a name for each kernel");

static int processors;

/* ---- Elements ------------------------------------------------------------------------------------------ */

__device__ static float load(const void *p, int type, int64_t i)
{
    return type == ORTC_F32   ? ((const float *)p)[i]
           : type == ORTC_F16 ? __half2float(((const __half *)p)[i])
                              : __bfloat162float(((const __nv_bfloat16 *)p)[i]);
}
__global__ static void fill(void *p, int type, int64_t n, uint64_t seed, float scale)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15ull + seed;
        float sum = 0;
        for (int r = 0; r < 4; r++) {
            x ^= x >> 32, x *= 0xd6e8feb86659fd93ull, x ^= x >> 29;
            sum += (float)(x >> 40) * 0x1p-24f - 0.5f;
        }
        const float v = sum * 1.732f * scale; /* nearly normal */
        if (type == ORTC_F32)
            ((float *)p)[i] = v;
        else if (type == ORTC_F16)
            ((__half *)p)[i] = __float2half(v);
        else
            ((__nv_bfloat16 *)p)[i] = __float2bfloat16(v);
    }
}

__device__ static double act(const ortc_cu_gemm &g, double v)
{
    switch (g.act) {
    case ORTC_CU_ACT_RELU: return v < 0 ? 0 : v;
    case ORTC_CU_ACT_CLIP: return v != v ? v : fmin(fmax(v, (double)g.act_alpha), (double)g.act_beta);
    case ORTC_CU_ACT_LEAKY_RELU: return v < 0 ? g.act_alpha * v : v;
    case ORTC_CU_ACT_SIGMOID: return 1 / (1 + exp(-v));
    case ORTC_CU_ACT_TANH: return tanh(v);
    case ORTC_CU_ACT_GELU: return 0.5 * v * (1 + erf(v * sqrt(0.5)));
    case ORTC_CU_ACT_GELU_TANH: return 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    case ORTC_CU_ACT_SILU: return v / (1 + exp(-v));
    case ORTC_CU_ACT_HARD_SWISH: return v * fmin(fmax(v / 6 + 0.5, 0.0), 1.0);
    default: return v;
    }
}

/* out[0]: the largest error over (1 + |exact|); out[1], out[2]: sums of squares of the error, of what is
 * exact. */
__global__ static void compare(const __grid_constant__ ortc_cu_gemm g, int64_t count, double *out)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t rest = i / (g.m * g.n), a = 0, b = 0, y = 0;
        const int64_t row = i / g.n % g.m, col = i % g.n;
        for (int d = g.rank - 1; d >= 0; d--) {
            const int64_t at = rest % g.dims[d];
            rest /= g.dims[d];
            a += at * g.a_step[d], b += at * g.b_step[d], y += at * g.y_step[d];
        }
        double sum = 0;
        for (int64_t k = 0; k < g.k; k++)
            sum += (double)load(g.a, g.type, a + row * g.a_row + k * g.a_col) *
                   (double)load(g.b, g.type, b + k * g.b_row + col * g.b_col);
        sum *= g.alpha;
        if (g.c) sum += (double)g.beta * load(g.c, g.type, row * g.c_row + col * g.c_col);
        if (g.bias) sum += load(g.bias, g.type, col);
        y += row * g.y_row + col;
        if (g.residual) sum += load(g.residual, g.type, y);
        const double exact = act(g, sum), is = load(g.y, g.out_type, y);
        double off = is == (double)(float)exact || (is != is && exact != exact)
                         ? 0
                         : fabs(is - exact) / (1 + fabs(exact));
        if (!(off >= 0)) off = 1e30;
        atomicMax((unsigned long long *)out, (unsigned long long)__double_as_longlong(off));
        atomicAdd(out + 1, (is - exact) * (is - exact));
        atomicAdd(out + 2, exact * exact);
    }
}

/* ---- Test ---------------------------------------------------------------------------------------------- */

static int bytes_of(int type) { return type == ORTC_F32 ? 4 : 2; }

static void *room(int64_t bytes)
{
    void *p;
    CHECK(cudaMalloc(&p, (size_t)bytes + 1024));
    return p;
}

struct Case {
    ortc_cu_gemm g;
    int64_t a, b, y, c; /* elements */
};

static bool is_f32(int kernel)
{
    return kernel == ORTC_CU_GEMM_FFMA_128X128 || kernel == ORTC_CU_GEMM_FFMA_64X64 ||
           kernel == ORTC_CU_GEMM_SPLIT_128X128 || kernel == ORTC_CU_GEMM_FEW_16X64 ||
           kernel == ORTC_CU_GEMM_SPLIT_64X128;
}

/* A tile for each block: no batch. */
static bool is_once(int kernel) { return kernel >= ORTC_CU_GEMM_ONCE_64X64; }

/* Whether K is one part. */
static bool is_whole(int kernel) { return kernel < ORTC_CU_GEMM_WGMMA_128X128_PARTS || is_once(kernel); }

static Case random_case(int kernel)
{
    static const int tm[] = {0,  128, 128, 64, 64, 64, 128, 64, 8,   128, 128, 128, 128, 64,
                             64, 64,  128, 64, 64, 64, 32,  16, 128, 64,  16,  64,  64,  64};
    static const int tn[] = {0,   128, 64,  64,  32,  64, 128, 64, 32,  256, 192, 128, 128, 192,
                             128, 64,  128, 192, 128, 64, 64,  64, 128, 128, 64,  64,  128, 192};
    const bool wgmma = kernel > ORTC_CU_GEMM_VECTOR, f32 = is_f32(kernel);
    const bool few = kernel == ORTC_CU_GEMM_VECTOR || kernel == ORTC_CU_GEMM_WGMMA_32X64_PARTS ||
                     kernel == ORTC_CU_GEMM_WGMMA_16X64_PARTS;
    Case c = {};
    ortc_cu_gemm &g = c.g;
    g.kernel = kernel;
    g.processors = processors;
    g.m = few ? 1 + draw(tm[kernel]) : 1 + draw(tm[kernel] * 2 + 2);
    g.n = (1 + draw(tn[kernel] * 3 / 8)) * 8;
    g.k = (1 + draw(draw(4) ? 40 : 200)) * 8;
    g.type = f32 ? ORTC_F32 : draw(2) ? ORTC_F16 : ORTC_BF16;
    g.out_type = draw(5) ? g.type : ORTC_F32;
    const bool ta = !few &&
                    (kernel == ORTC_CU_GEMM_WGMMA_128X128_TURNS || kernel == ORTC_CU_GEMM_WGMMA_64X64 ||
                     kernel == ORTC_CU_GEMM_SPLIT_128X128) &&
                    draw(3) == 0,
               tb = draw(2);
    if (ta) g.m = (g.m + 7) / 8 * 8;
    if (wgmma && draw(3) == 0 && !ta) { /* odd extents where no pitch is made of them */
        if (tb)
            g.n += draw(8);
        else if (!few)
            g.k += 0;
    }
    g.a_row = ta ? 1 : g.k + 8 * draw(2), g.a_col = ta ? g.m : 1;
    g.b_row = tb ? 1 : g.n + 8 * draw(2), g.b_col = tb ? g.k + 8 * draw(2) : 1;
    g.y_row = g.n + draw(3);
    g.rank = is_once(kernel) || draw(2) ? 0 : 1 + draw(3);
    int64_t sa = (ta ? g.k * g.m : g.m * g.a_row), sb = tb ? g.n * g.b_col : g.k * g.b_row,
            sy = g.m * g.y_row;
    sa = (sa + 7) / 8 * 8, sb = (sb + 7) / 8 * 8;
    c.a = sa, c.b = sb, c.y = sy;
    int64_t batch = 1;
    for (int d = g.rank - 1; d >= 0; d--) {
        g.dims[d] = 1 + draw(3);
        g.a_step[d] = draw(3) ? c.a : 0, g.b_step[d] = draw(3) ? c.b : 0, g.y_step[d] = c.y;
        if (g.a_step[d]) c.a *= g.dims[d];
        if (g.b_step[d]) c.b *= g.dims[d];
        c.y *= g.dims[d];
        batch *= g.dims[d];
    }
    g.alpha = draw(2) ? 1 : 0.5f, g.beta = draw(2) ? 1 : 0.25f;
    g.act = draw(ORTC_CU_ACT_END);
    g.act_alpha = g.act == ORTC_CU_ACT_LEAKY_RELU ? 0.1f : -0.5f, g.act_beta = 0.7f;
    c.c = draw(3) ? 0 : g.m * g.n;
    g.c_row = draw(2) ? g.n : 0, g.c_col = draw(2);
    g.b_constant = draw(2);
    g.parts = is_whole(kernel) ? 1 : 1 + draw(8);
    g.parts = (int)std::min<int64_t>(g.parts, (g.k + 63) / 64);
    return c;
}

/* Those that take products of one A side by side. */
static const int side_by_side[] = {ORTC_CU_GEMM_WGMMA_128X256,       ORTC_CU_GEMM_WGMMA_128X192,
                                   ORTC_CU_GEMM_WGMMA_128X128_TURNS, ORTC_CU_GEMM_WGMMA_64X192,
                                   ORTC_CU_GEMM_WGMMA_64X128,        ORTC_CU_GEMM_WGMMA_64X64_PARTS};

/* Two to four products of one A in one launch, by every kernel that can. */
static int test_together(int rounds)
{
    int failed = 0, done = 0;
    double *out, is[3];
    CHECK(cudaMalloc(&out, 24));
    for (int round = 0; round < rounds; round++)
        for (int kernel : side_by_side) {
            Case c = random_case(kernel);
            ortc_cu_gemm g[ORTC_CU_GEMM_TOGETHER] = {c.g};
            if (g->a_col != 1) g->a_row = g->k, g->a_col = 1;
            const int count = 2 + draw(ORTC_CU_GEMM_TOGETHER - 1);
            std::vector<void *> rooms;
            int error = 0, outside = 0, same = 1, good = 1;
            double worst = 0;
            g->rank = 0, g->parts = 1, g->alpha = 1, g->out_type = g->type;
            const bool n_dense = g->b_col == 1;
            const int64_t a_count = g->a_col == 1 ? g->m * g->a_row : g->k * g->m;
            auto filled = [&](int64_t n, float by) {
                rooms.push_back(room(n * 2));
                fill<<<256, 256>>>(rooms.back(), g->type, n, draw(1 << 30), by);
                return rooms.back();
            };
            g->a = filled(a_count, 1);
            for (int i = 0; i < count; i++) {
                ortc_cu_gemm &p = g[i] = *g;
                if (i)
                    p.n = (1 + draw(60)) * 8;
                else
                    p.n = p.n / 8 * 8 + 8;
                p.b_row = n_dense ? p.n + 8 * draw(2) : 1, p.b_col = n_dense ? 1 : p.k + 8 * draw(2);
                p.y_row = p.n + 8 * draw(2);
                p.b = filled(n_dense ? p.k * p.b_row : p.n * p.b_col, 1 / sqrtf((float)p.k));
                p.bias = draw(2) ? filled(p.n, 1) : NULL;
                rooms.push_back(p.y = room(p.m * p.y_row * 2 + 512));
            }
            std::vector<char> h[2][ORTC_CU_GEMM_TOGETHER];
            for (int twice = 0; twice < 2; twice++) {
                for (int i = 0; i < count; i++)
                    CHECK(cudaMemset(g[i].y, 0xff, g[i].m * g[i].y_row * 2 + 512));
                if (!error) error = ortc_cu_gemm_run_together(g, count, kernel, NULL);
                if (!error) error = cudaDeviceSynchronize();
                for (int i = 0; i < count && !error; i++) {
                    h[twice][i].resize((size_t)(g[i].m * g[i].y_row * 2 + 512));
                    CHECK(cudaMemcpy(h[twice][i].data(), g[i].y, h[twice][i].size(), cudaMemcpyDeviceToHost));
                }
            }
            for (int i = 0; i < count && !error; i++) {
                const ortc_cu_gemm &p = g[i];
                CHECK(cudaMemset(out, 0, 24));
                compare<<<1024, 128>>>(p, p.m * p.n, out);
                CHECK(cudaMemcpy(is, out, 24, cudaMemcpyDeviceToHost));
                good &= is[0] < (g->type == ORTC_F16 ? 1.2e-3 : 8e-3);
                worst = std::max(worst, is[0]);
                same &= h[0][i] == h[1][i];
                for (int64_t at = 0; at < p.m * p.y_row + 256; at++)
                    if (at >= p.m * p.y_row || at % p.y_row >= p.n)
                        outside += h[0][i][at * 2] != (char)0xff || h[0][i][at * 2 + 1] != (char)0xff;
            }
            done++;
            if (error || !good || outside || !same) {
                failed++;
                printf("FAILED %s, %d together: %lldx(%lld %lld ..)x%lld type %d a %lld,%lld b %lld,%lld act "
                       "%d: %s, error "
                       "%.2e, outside %d, same %d\n",
                       names[kernel], count, (long long)g->m, (long long)g->n, (long long)g[1].n,
                       (long long)g->k, g->type, (long long)g->a_row, (long long)g->a_col,
                       (long long)g->b_row, (long long)g->b_col, g->act,
                       cudaGetErrorString((cudaError_t)error), worst, outside, same);
                if (error) return 1;
            }
            for (void *p : rooms) cudaFree(p);
        }
    printf("together: %d passed, %d failed\n", done - failed, failed);
    return failed != 0;
}

static int test(uint64_t seed, int rounds)
{
    int failed = 0, done = 0;
    double *out;
    CHECK(cudaMalloc(&out, 24));
    state = seed;
    double worst[ORTC_CU_GEMM_WGMMA_END] = {};
    for (int round = 0; round < rounds; round++)
        for (int kernel = 1; kernel < ORTC_CU_GEMM_WGMMA_END; kernel++) {
            Case c = random_case(kernel);
            ortc_cu_gemm &g = c.g;
            const int size = bytes_of(g.type), out_size = bytes_of(g.out_type);
            char *a = (char *)room(c.a * size), *b = (char *)room(c.b * size),
                 *y = (char *)room(c.y * out_size + 512), *y2 = (char *)room(c.y * out_size + 512);
            char *extra = (char *)room(c.c * size), *bias = (char *)room(g.n * size),
                 *residual = (char *)room(c.y * size);
            fill<<<256, 256>>>(a, g.type, c.a, draw(1 << 30), 1);
            fill<<<256, 256>>>(b, g.type, c.b, draw(1 << 30), 1.0f / sqrtf((float)g.k));
            if ((kernel == ORTC_CU_GEMM_SPLIT_128X128 || kernel == ORTC_CU_GEMM_SPLIT_64X128) &&
                draw(3) == 0) { /* what splitting cannot carry */
                const float odd[] = {INFINITY, -INFINITY, NAN, 3.4e38f, 1e-42f};
                CHECK(cudaMemcpy(a + draw((uint32_t)c.a) * 4, &odd[draw(5)], 4, cudaMemcpyHostToDevice));
            }
            fill<<<256, 256>>>(extra, g.type, c.c, draw(1 << 30), 1);
            fill<<<256, 256>>>(bias, g.type, g.n, draw(1 << 30), 1);
            fill<<<256, 256>>>(residual, g.type, c.y, draw(1 << 30), 1);
            CHECK(cudaMemset(y, 0xff, c.y * out_size + 512));
            CHECK(cudaMemset(y2, 0xff, c.y * out_size + 512));
            g.a = a, g.b = b, g.c = c.c ? extra : NULL, g.bias = draw(2) ? bias : NULL,
            g.residual = draw(2) ? residual : NULL;
            g.y = y2 + 256;
            int error = ortc_cu_gemm_run(&g, NULL);
            g.y = y + 256;
            if (!error) error = ortc_cu_gemm_run(&g, NULL);
            if (!error) error = cudaDeviceSynchronize();
            CHECK(cudaMemset(out, 0, 24));
            int64_t count = g.m * g.n;
            for (int d = 0; d < g.rank; d++) count *= g.dims[d];
            double is[3] = {};
            std::vector<char> h((size_t)c.y * out_size + 512), h2(h.size());
            if (!error) {
                compare<<<1024, 128>>>(g, count, out);
                CHECK(cudaMemcpy(is, out, 24, cudaMemcpyDeviceToHost));
                CHECK(cudaMemcpy(h.data(), y, h.size(), cudaMemcpyDeviceToHost));
                CHECK(cudaMemcpy(h2.data(), y2, h.size(), cudaMemcpyDeviceToHost));
            }
            int outside = 0;
            for (int i = 0; i < 256; i++)
                outside += h[i] != (char)0xff || h[h.size() - 256 + i] != (char)0xff;
            for (int64_t i = 0; i < c.y; i++) /* between rows */
                if (i % g.y_row >= g.n)
                    for (int e = 0; e < out_size; e++) outside += h[256 + i * out_size + e] != (char)0xff;
            const int same = !memcmp(h.data(), h2.data(), h.size());
            const double bound = g.out_type == ORTC_F32 ? 2e-5 : g.type == ORTC_F16 ? 1.2e-3 : 8e-3;
            worst[kernel] = std::max(worst[kernel], is[0] / bound);
            done++;
            if (error || !(is[0] < bound) || outside || !same) {
                failed++;
                if (failed < 40)
                    printf("FAILED %s %lldx%lldx%lld type %d out %d rank %d (%lld %lld %lld) a %lld,%lld b "
                           "%lld,%lld y %lld parts %d act %d c %d bias %d "
                           "residual %d: %s, error %.2e of %.1e, norm %.1e, outside %d, same %d\n",
                           names[kernel], (long long)g.m, (long long)g.n, (long long)g.k, g.type, g.out_type,
                           g.rank, (long long)g.dims[0], (long long)g.dims[1], (long long)g.dims[2],
                           (long long)g.a_row, (long long)g.a_col, (long long)g.b_row, (long long)g.b_col,
                           (long long)g.y_row, g.parts, g.act, g.c != NULL, g.bias != NULL,
                           g.residual != NULL, cudaGetErrorString((cudaError_t)error), is[0], bound,
                           sqrt(is[1] / is[2]), outside, same);
                if (error == cudaErrorIllegalAddress || error == cudaErrorLaunchFailure ||
                    error == cudaErrorIllegalInstruction)
                    return 1;
            }
            for (char *p : {a, b, y, y2, extra, bias, residual}) cudaFree(p);
        }
    for (int k = 1; k < ORTC_CU_GEMM_WGMMA_END; k++) printf("%s %.2f  ", names[k], worst[k]);
    printf("(largest error over its bound)\n%d passed, %d failed\n", done - failed, failed);
    return test_together(rounds) || failed;
}

/* ---- Time ---------------------------------------------------------------------------------------------- */

typedef int (*gemm_ex)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *,
                       int, int, const void *, void *, int, int, int, int);
static void *blas;
static gemm_ex blas_gemm;

static void open_blas(cudaStream_t stream)
{
    void *lib = getenv("NO_BLAS") ? NULL : dlopen("libcublas.so.13", RTLD_NOW);
    if (!lib) {
        printf("no cuBLAS: %s\n", dlerror());
        return;
    }
    void *workspace;
    CHECK(cudaMalloc(&workspace, 64 << 20));
    ((int (*)(void **))dlsym(lib, "cublasCreate_v2"))(&blas);
    ((int (*)(void *, cudaStream_t))dlsym(lib, "cublasSetStream_v2"))(blas, stream);
    ((int (*)(void *, void *, size_t))dlsym(lib, "cublasSetWorkspace_v2"))(blas, workspace, 64 << 20);
    blas_gemm = (gemm_ex)dlsym(lib, "cublasGemmEx");
}

__global__ static void spread(float *p, int64_t n, int octaves)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        p[i] = ldexpf(p[i], (int)((uint64_t)i * 2654435761u >> 7) % (2 * octaves + 1) - octaves);
}

static int accuracy()
{
    const int64_t m = 256, n = 384;
    double *out, is[3];
    int failed = 0;
    CHECK(cudaMalloc(&out, 24));
    for (int octaves : {0, 8})
        for (int64_t k : {16, 64, 512, 4096, 16384}) {
            float *a = (float *)room(m * k * 4), *b = (float *)room(n * k * 4), *y = (float *)room(m * n * 4);
            ortc_cu_gemm g = {};
            double bound = 0;
            fill<<<1024, 256>>>(a, ORTC_F32, m * k, 5, 1);
            fill<<<1024, 256>>>(b, ORTC_F32, n * k, 6, 1);
            spread<<<1024, 256>>>(a, m * k, octaves);
            spread<<<1024, 256>>>(b, n * k, octaves);
            g.m = m, g.n = n, g.k = k, g.a_row = k, g.a_col = 1, g.b_row = n, g.b_col = 1, g.y_row = n,
            g.alpha = 1, g.type = g.out_type = ORTC_F32, g.processors = processors, g.parts = 1;
            g.a = a, g.b = b, g.y = y;
            printf("K %lld, spread over %d octaves:", (long long)k, 2 * octaves);
            for (int kernel = 0; kernel < ORTC_CU_GEMM_WGMMA_END; kernel++) {
                if (kernel ? !is_f32(kernel) : !blas_gemm) continue;
                const float one = 1, zero = 0;
                CHECK(cudaDeviceSynchronize());
                CHECK(cudaMemset(y, 0xff, m * n * 4));
                g.kernel = kernel;
                if (kernel)
                    CHECK(ortc_cu_gemm_run(&g, NULL));
                else
                    blas_gemm(blas, 0, 0, (int)n, (int)m, (int)k, &one, b, 0, (int)n, a, 0, (int)k, &zero, y,
                              0, (int)n, 68, -1);
                CHECK(cudaDeviceSynchronize());
                CHECK(cudaMemset(out, 0, 24));
                compare<<<1024, 128>>>(g, m * n, out);
                CHECK(cudaMemcpy(is, out, 24, cudaMemcpyDeviceToHost));
                const double off = sqrt(is[1] / is[2]);
                if (!kernel) bound = 2 * off;
                const bool good = kernel < ORTC_CU_GEMM_SPLIT_128X128 || !bound || off <= bound;
                failed += !good;
                printf("  %s %.2e%s", kernel ? names[kernel] : "cuBLAS", off, good ? "" : " FAILED");
            }
            printf("\n");
            for (float *p : {a, b, y}) cudaFree(p);
        }
    printf("%s\n", !blas_gemm ? "nothing to compare with" : failed ? "failed" : "passed");
    return failed != 0;
}

/* Microseconds of one of `repeats` in a captured graph. */
template <typename F> static cudaGraphExec_t capture(cudaStream_t stream, int repeats, F f)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    f(0);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < repeats; i++) f(i);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    cudaGraphDestroy(graph);
    return exec;
}

static float replay(cudaStream_t stream, cudaGraphExec_t exec, int repeats)
{
    static cudaEvent_t begin, end;
    if (!begin) cudaEventCreate(&begin), cudaEventCreate(&end);
    CHECK(cudaEventRecord(begin, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaEventSynchronize(end));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    return ms * 1000 / repeats;
}

static void time_shape(cudaStream_t stream, int64_t m, int64_t n, int64_t k, int type)
{
    const int size = bytes_of(type);
    const double flops = 2.0 * m * n * k, bytes = size * (double)(m * k + n * k + m * n);
    const int repeats = (int)std::min(64.0, std::max(4.0, 1.5e3 / std::max(3.0, flops / 6e8 + bytes / 4e6))),
              sets = getenv("SETS") ? atoi(getenv("SETS"))
                                    : (int)std::min<double>(repeats, ceil(2e8 / bytes));
    std::vector<char *> a(sets), b(sets), y(sets);
    for (int i = 0; i < sets; i++) {
        a[i] = (char *)room(m * k * size), b[i] = (char *)room(n * k * size),
        y[i] = (char *)room(m * n * size);
        fill<<<1024, 256>>>(a[i], type, m * k, i, 1);
        fill<<<1024, 256>>>(b[i], type, n * k, i + 100, 1 / sqrtf((float)k));
    }
    CHECK(cudaDeviceSynchronize());
    struct Way {
        int kernel, parts;
        cudaGraphExec_t exec;
        std::vector<float> us;
    };
    std::vector<Way> ways;
    ortc_cu_gemm g = {};
    g.m = m, g.n = n, g.k = k, g.a_row = k, g.a_col = 1, g.b_row = n, g.b_col = 1, g.y_row = n, g.alpha = 1,
    g.beta = 1, g.type = g.out_type = type;
    g.b_constant = !getenv("FRESH");
    g.act = getenv("ACT") ? atoi(getenv("ACT")) : 0;
    ortc_cu_gemm_plan(&g, processors, 90);
    const int chosen = g.kernel, chosen_parts = g.parts > 1 ? g.parts : 1;
    if (blas_gemm)
        ways.push_back({-1, 1, capture(stream, repeats, [&](int i) {
                            const float one = 1, zero = 0;
                            const int t = type == ORTC_F32 ? 0 : type == ORTC_F16 ? 2 : 14;
                            blas_gemm(blas, 0, 0, (int)n, (int)m, (int)k, &one, b[i % sets], t, (int)n,
                                      a[i % sets], t, (int)k, &zero, y[i % sets], t, (int)n, 68, -1);
                        })});
    for (int kernel = 1; kernel < ORTC_CU_GEMM_WGMMA_END; kernel++)
        for (int parts : {1, 2, 3, 4, 6, 8}) {
            const bool f32 = is_f32(kernel);
            const bool is_chosen = kernel == chosen && parts == chosen_parts;
            if (!is_chosen &&
                (kernel == ORTC_CU_GEMM_MMA_ANY || f32 != (type == ORTC_F32) ||
                 (kernel == ORTC_CU_GEMM_VECTOR && m > 8) ||
                 (kernel == ORTC_CU_GEMM_WGMMA_32X64_PARTS && m > 32) ||
                 (kernel == ORTC_CU_GEMM_WGMMA_16X64_PARTS && m > 16) ||
                 (kernel < ORTC_CU_GEMM_VECTOR && !f32 && kernel > 1 && flops > 2e10) ||
                 (parts > 1 && (is_whole(kernel) || (k + 63) / 64 < parts * 2 || flops > 2e10))))
                continue;
            g.kernel = kernel, g.parts = parts, g.processors = processors;
            ways.push_back({kernel, parts, capture(stream, repeats, [&](int i) {
                                g.a = a[i % sets], g.b = b[i % sets], g.y = y[i % sets];
                                CHECK(ortc_cu_gemm_run(&g, stream));
                            })});
        }
    for (int round = 0; round < 8; round++)
        for (Way &w : ways) {
            const float us = replay(stream, w.exec, repeats);
            if (round) w.us.push_back(us);
        }
    float best = 1e30f, own = 0, peer = 0;
    for (Way &w : ways) {
        std::sort(w.us.begin(), w.us.end());
        const float us = w.us[w.us.size() / 2];
        if (w.kernel < 0)
            peer = us;
        else
            best = std::min(best, us);
        if (w.kernel == chosen && w.parts == chosen_parts) own = us;
    }
    printf("%5lld %5lld %5lld  cublas %7.2f  own %7.2f %s/%d  best %7.2f  cublas/own %.3f  own/best %.3f |",
           (long long)m, (long long)n, (long long)k, peer, own, names[chosen], chosen_parts, best, peer / own,
           own / best);
    std::sort(ways.begin(), ways.end(),
              [](const Way &x, const Way &z) { return x.us[x.us.size() / 2] < z.us[z.us.size() / 2]; });
    int shown = 0;
    for (Way &w : ways) {
        if (w.kernel >= 0 && shown++ < (getenv("ALL") ? 100 : 12))
            printf(" %s/%d %.2f", names[w.kernel], w.parts, w.us[w.us.size() / 2]);
    }
    printf("\n");
    fflush(stdout);
    for (int i = 0; i < sets; i++) cudaFree(a[i]), cudaFree(b[i]), cudaFree(y[i]);
}

/* f16; n: columns of each. */
static void time_together(cudaStream_t stream, int64_t m, int64_t k, const std::vector<int64_t> &n)
{
    const int count = (int)n.size();
    int64_t columns = 0;
    for (int64_t each : n) columns += each;
    const double flops = 2.0 * m * columns * k, bytes = 2.0 * (m * k + columns * k + m * columns);
    const int repeats = (int)std::min(64.0, std::max(4.0, 1.5e3 / std::max(3.0, flops / 6e8 + bytes / 4e6))),
              sets = (int)std::min<double>(repeats, ceil(2e8 / bytes));
    std::vector<char *> a(sets), b(sets), y(sets);
    for (int i = 0; i < sets; i++) {
        a[i] = (char *)room(m * k * 2), b[i] = (char *)room(columns * k * 2),
        y[i] = (char *)room(m * columns * 2);
        fill<<<1024, 256>>>(a[i], ORTC_F16, m * k, i, 1);
        fill<<<1024, 256>>>(b[i], ORTC_F16, columns * k, i + 100, 1 / sqrtf((float)k));
    }
    CHECK(cudaDeviceSynchronize());
    ortc_cu_gemm g[ORTC_CU_GEMM_TOGETHER] = {};
    for (int i = 0; i < count; i++) {
        ortc_cu_gemm &p = g[i];
        p.m = m, p.n = n[i], p.k = k, p.a_row = k, p.a_col = 1, p.b_row = p.y_row = n[i], p.b_col = 1;
        p.alpha = p.beta = 1, p.type = p.out_type = ORTC_F16, p.b_constant = 1;
        ortc_cu_gemm_plan(&p, processors, 90);
    }
    const int chosen = ortc_cu_gemm_plan_together(g, count, 90);
    std::vector<int> kernels(side_by_side, side_by_side + sizeof side_by_side / sizeof *side_by_side);
    kernels.insert(kernels.begin(), ORTC_CU_GEMM_NOTHING);
    std::vector<cudaGraphExec_t> graphs;
    std::vector<std::vector<float>> us(kernels.size());
    for (int kernel : kernels)
        graphs.push_back(capture(stream, repeats, [&](int i) {
            int64_t at = 0;
            for (int j = 0; j < count; at += n[j++])
                g[j].a = a[i % sets], g[j].b = b[i % sets] + at * k * 2, g[j].y = y[i % sets] + at * m * 2;
            CHECK(ortc_cu_gemm_run_together(g, count, kernel, stream));
        }));
    for (int round = 0; round < 8; round++)
        for (size_t i = 0; i < graphs.size(); i++) {
            const float t = replay(stream, graphs[i], repeats);
            if (round) us[i].push_back(t);
        }
    float best = 1e30f, own = 0;
    printf("%5lld x (", (long long)m);
    for (int64_t each : n) printf(" %lld", (long long)each);
    printf(" ) x %5lld:", (long long)k);
    for (size_t i = 0; i < graphs.size(); i++) {
        std::sort(us[i].begin(), us[i].end());
        const float t = us[i][us[i].size() / 2];
        best = std::min(best, t);
        if (kernels[i] == chosen) own = t;
        printf(" %s%s %.2f", kernels[i] ? names[kernels[i]] : "one_by_one", kernels[i] == chosen ? "*" : "",
               t);
        CHECK(cudaGraphExecDestroy(graphs[i]));
    }
    printf("  own/best %.3f\n", own / best);
    fflush(stdout);
    for (int i = 0; i < sets; i++) cudaFree(a[i]), cudaFree(b[i]), cudaFree(y[i]);
}

int main(int argc, char **argv)
{
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) {
        printf("skipped: no GPU\n");
        return 77;
    }
    if (argc > 1 && !strcmp(argv[1], "test"))
        return test(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, argc > 3 ? atoi(argv[3]) : 40);
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    open_blas(stream);
    if (argc > 1 && !strcmp(argv[1], "accuracy")) return accuracy();
    if (argc > 1 && !strcmp(argv[1], "together")) {
        /* queries, keys and values of BERT-base and of heads in groups; gate and up */
        for (int64_t m : {16, 64, 128, 256, 512, 1024, 4096}) time_together(stream, m, 768, {768, 768, 768});
        for (int64_t m : {1, 8, 16, 64, 128, 512, 2048}) {
            time_together(stream, m, 4096, {4096, 1024, 1024});
            time_together(stream, m, 4096, {4096, 4096, 4096});
            time_together(stream, m, 4096, {11008, 11008});
        }
        return 0;
    }
    static const int shapes[][3] = {{4096, 4096, 4096},  {8192, 8192, 8192},  {2048, 2048, 2048},
                                    {2048, 11008, 4096}, {2048, 4096, 11008}, {2048, 12288, 4096},
                                    {4096, 3072, 768},   {4096, 768, 3072},   {4096, 768, 768},
                                    {1024, 1024, 1024},  {512, 768, 768},     {512, 3072, 768},
                                    {512, 768, 3072},    {128, 768, 768},     {128, 2304, 768},
                                    {128, 3072, 768},    {128, 768, 3072},    {64, 4096, 4096},
                                    {32, 4096, 4096},    {16, 4096, 4096},    {8, 4096, 4096},
                                    {2, 4096, 4096},     {1, 4096, 4096},     {8, 11008, 4096},
                                    {8, 4096, 11008},    {64, 11008, 4096}};
    const int type = getenv("BF16") ? ORTC_BF16 : getenv("F32") ? ORTC_F32 : ORTC_F16;
    if (argc > 4)
        for (int i = 2; i + 2 < argc; i += 3)
            time_shape(stream, atoll(argv[i]), atoll(argv[i + 1]), atoll(argv[i + 2]), type);
    else
        for (const auto &s : shapes) time_shape(stream, s[0], s[1], s[2], type);
    return 0;
}
