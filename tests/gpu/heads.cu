/* tests/gpu/heads.cu: attention in one pass on a GPU, kernel by kernel, without the rest of ortc.
 *
 *   heads test [SEED [ROUNDS]]
 *                       random lengths around the tiles, head sizes, groups, masks of every kind, windows,
 *                       softcap, lengths from device memory; against softmax in double; results are poisoned
 *                       before, and twice the same bits
 *   heads time [few]    the kernels of many queries inside captured graphs: TFLOP/s, the operations of a
 *                       causal one halved; that of few, by parts of the keys, through more memory than the
 *                       cache holds: GB/s
 */
#include "tests/gpu/by_hand.cuh"

#include "kernels/attention/cuda_mask.cuh"

using namespace ortc_attention;

/* zeros: one in so many is -infinity (or false); 0: none. */
__global__ static void fill(void *p, int type, int64_t n, uint64_t seed, float scale, int zeros)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15ull + seed;
        float sum = 0;
        for (int r = 0; r < 4; r++) {
            x ^= x >> 32, x *= 0xd6e8feb86659fd93ull, x ^= x >> 29;
            sum += (float)(x >> 40) * 0x1p-24f - 0.5f;
        }
        const float v = zeros && x % (uint64_t)zeros == 0 ? -CUDART_INF_F : sum * 1.732f * scale;
        switch (type) {
        case ORTC_F32: ((float *)p)[i] = v; break;
        case ORTC_F16: ((__half *)p)[i] = __float2half(v); break;
        case ORTC_BF16: ((__nv_bfloat16 *)p)[i] = __float2bfloat16(v); break;
        case ORTC_BOOL: ((uint8_t *)p)[i] = v != -CUDART_INF_F; break;
        }
    }
}

/* A block for each row of queries. out[0]: the largest error over (1 + |exact|). */
__global__ static void compare(const __grid_constant__ ortc_cu_flash f, double *out)
{
    extern __shared__ double scores[];
    const ortc_cu_rows &p = f.rows;
    const int64_t row = blockIdx.x % p.length, head = blockIdx.x / p.length, b = head / p.heads,
                  h = head % p.heads, kv = h / f.group;
    const Row r = row_of(p, b, h, row);
    auto at = [&](const void *x, int64_t i) { return (double)load_mask(p.type, x, i); };
    for (int64_t j = threadIdx.x; j < p.total; j += blockDim.x) {
        double s = 0;
        for (int d = 0; d < f.size; d++)
            s += at(f.q, b * f.q_step[0] + h * f.q_step[1] + row * f.q_step[2] + d) *
                 at(f.k, b * f.k_step[0] + kv * f.k_step[1] + j * f.k_step[2] + d);
        s *= f.scale;
        if (p.softcap > 0) s = p.softcap * tanh(s / p.softcap);
        scores[j] = s + bias_of(p, r, j);
    }
    __syncthreads();
    double most = -CUDART_INF, sum = 0;
    bool seen = false;
    for (int64_t j = 0; j < p.total; j++) {
        most = fmax(most, scores[j]);
        seen |= bias_of(p, r, j) != -CUDART_INF_F;
    }
    if (most == -CUDART_INF) most = 0;
    if (seen)
        for (int64_t j = 0; j < p.total; j++) sum += exp(scores[j] - most);
    for (int d = threadIdx.x; d < f.value_size; d += blockDim.x) {
        double y = 0;
        for (int64_t j = 0; j < p.total; j++)
            y += (seen ? exp(scores[j] - most) : 0) *
                 at(f.v, b * f.v_step[0] + kv * f.v_step[1] + j * f.v_step[2] + d);
        y /= sum == 0 ? 1 : sum;
        const double is = at(f.y, b * f.y_step[0] + h * f.y_step[1] + row * f.y_step[2] + d);
        double off = is == y || (is != is && y != y) ? 0 : fabs(is - y) / (1 + fabs(y));
        if (!(off >= 0)) off = 1e30;
        atomicMax((unsigned long long *)out, (unsigned long long)__double_as_longlong(off));
    }
}

static int processors;

static void *room(int64_t bytes)
{
    void *p;
    CHECK(cudaMalloc(&p, (size_t)bytes + 1024));
    return p;
}

static int run(const ortc_cu_flash &f, int wgmma, cudaStream_t stream)
{
    if (f.rows.type == ORTC_F32) {
        const int64_t heads = f.rows.batch * f.rows.heads / f.group,
                      bytes = ortc_cu_flash_split_bytes(heads, f.rows.total, f.size, f.value_size);
        static void *work;
        static int64_t has;
        if (bytes > has) {
            cudaFree(work);
            CHECK(cudaMalloc(&work, (size_t)(has = bytes)));
        }
        return ortc_cu_flash_split(&f, work, stream);
    }
    if (wgmma == 2) return ortc_cu_decode(&f, f.warps, stream);
    if (f.rows.type == ORTC_F16)
        return wgmma ? ortc_cu_flash_wgmma_f16(&f, stream) : ortc_cu_flash_f16(&f, stream);
    return wgmma ? ortc_cu_flash_wgmma_bf16(&f, stream) : ortc_cu_flash_bf16(&f, stream);
}

static void steps(int64_t *s, bool packed, int64_t heads, int64_t length, int64_t size)
{
    s[0] = heads * length * size, s[1] = packed ? size : length * size, s[2] = packed ? heads * size : size;
}

static int test(uint64_t seed, int rounds)
{
    int failed = 0, done = 0;
    double *out, worst[4] = {}, is;
    state = seed;
    CHECK(cudaMalloc(&out, 8));
    CHECK(cudaFuncSetAttribute(compare, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    for (int round = 0; round < rounds; round++) {
        ortc_cu_flash f = {};
        ortc_cu_rows &p = f.rows;
        static const int sizes[] = {64, 128, 32, 40, 80, 96, 8, 72, 120, 192, 256, 136, 200};
        p.type = draw(3) == 0 ? ORTC_F32 : draw(2) ? ORTC_F16 : ORTC_BF16;
        const bool f32 = p.type == ORTC_F32;
        const int most = f32 ? 9 : 13, width = f32 ? 4 : 2;
        f.size = sizes[draw(most)], f.value_size = draw(4) ? f.size : sizes[draw(most)];
        if (f32 && draw(4) == 0) f.size = 1 + draw(128), f.value_size = 1 + draw(128);
        f.group = 1 + draw(draw(2) ? 3 : 8);
        const int64_t kv_heads = 1 + draw(3);
        p.batch = 1 + draw(3), p.heads = kv_heads * f.group,
        p.length = 1 + draw(draw(3) == 0 ? 4
                            : draw(2)    ? 140
                                         : 400),
        p.total = 1 + draw(draw(2) ? 140 : 700);
        p.past = draw(2) ? 0 : draw((uint32_t)p.total);
        p.causal = draw(3) == 0, p.left = draw(4) ? -1 : draw(200), p.right = draw(4) ? -1 : draw(200),
        p.softcap = draw(4) ? 0 : 5;
        f.scale = draw(8) ? 1 / sqrtf((float)f.size) : -0.2f;
        f.warps = draw(2) ? 4 : 8;
        f.processors = draw(2) ? processors : 1 + draw(9); /* decides how decode goes */
        const bool packed = draw(2);
        steps(f.q_step, packed, p.heads, p.length, f.size),
            steps(f.y_step, packed, p.heads, p.length, f.value_size);
        steps(f.k_step, packed, kv_heads, p.total, f.size),
            steps(f.v_step, packed, kv_heads, p.total, f.value_size);
        const int64_t nq = p.batch * p.heads * p.length * f.size,
                      ny = p.batch * p.heads * p.length * f.value_size,
                      nk = p.batch * kv_heads * p.total * f.size,
                      nv = p.batch * kv_heads * p.total * f.value_size;
        void *q = room(nq * width), *k = room(nk * width), *v = room(nv * width), *y = room(ny * width),
             *m = NULL, *lengths = NULL;
        fill<<<256, 256>>>(q, p.type, nq, draw(1 << 30), 1, 0);
        fill<<<256, 256>>>(k, p.type, nk, draw(1 << 30), 1, 0);
        fill<<<256, 256>>>(v, p.type, nv, draw(1 << 30), 1, 0);
        if (draw(2)) {
            static const int types[] = {ORTC_BOOL, ORTC_F32, ORTC_F16, ORTC_BF16};
            p.mask_type = types[draw(4)];
            p.mask_count = draw(3) ? p.total : 1 + draw((uint32_t)p.total);
            int64_t n = p.mask_count;
            const bool rows = draw(2), heads = draw(2), batches = draw(2);
            p.mask_step[2] = rows ? n : 0, n *= rows ? p.length : 1;
            p.mask_step[1] = heads ? n : 0, n *= heads ? p.heads : 1;
            p.mask_step[0] = batches ? n : 0, n *= batches ? p.batch : 1;
            m = room(n * 4);
            fill<<<256, 256>>>(m, p.mask_type, n, draw(1 << 30), 2, 1 + draw(5));
            p.mask = m;
        }
        if (draw(4) == 0) {
            int64_t host[4];
            for (int64_t &n : host) n = (int64_t)draw((uint32_t)p.total + 3) - INT64_C(1);
            lengths = room(32);
            CHECK(cudaMemcpy(lengths, host, 32, cudaMemcpyHostToDevice));
            p.nonpad = (const int64_t *)lengths;
        }
        f.q = q, f.k = k, f.v = v, f.y = y;
        if (f32 && draw(5) == 0) { /* what splitting cannot carry */
            const float odd[] = {INFINITY, -INFINITY, NAN, 1e20f, -1e20f};
            const int which = draw(3);
            CHECK(cudaMemcpy((float *)(which == 0   ? q
                                       : which == 1 ? k
                                                    : v) +
                                 draw((uint32_t)(which == 0   ? nq
                                                 : which == 1 ? nk
                                                              : nv)),
                             &odd[draw(5)], 4, cudaMemcpyHostToDevice));
        }
        const bool few = p.length * f.group <= ORTC_CU_DECODE_ROWS && f.size <= 128 && f.value_size <= 128;
        for (int way = f32 ? 3 : 0; way < (f32 ? 4 : few ? 3 : 2); way++) {
            if (way == 2) f.warps = 1 + draw(8);
            std::vector<char> h[2];
            int error = 0;
            for (int twice = 0; twice < 2; twice++) {
                h[twice].resize((size_t)(ny * width + 512));
                CHECK(cudaMemset(y, 0xff, ny * width + 512));
                error |= run(f, way, NULL);
                error |= cudaDeviceSynchronize();
                CHECK(cudaMemcpy(h[twice].data(), y, h[twice].size(), cudaMemcpyDeviceToHost));
            }
            CHECK(cudaMemset(out, 0, 8));
            compare<<<(unsigned)(p.batch * p.heads * p.length), 64, p.total * 8>>>(f, out);
            CHECK(cudaMemcpy(&is, out, 8, cudaMemcpyDeviceToHost));
            int outside = 0;
            for (int i = 0; i < 512; i++) outside += h[1][(size_t)(ny * width + i)] != (char)0xff;
            const double bound = f32 ? 4e-6 : p.type == ORTC_F16 ? 3e-3 : 2e-2;
            done++;
            worst[way] = std::max(worst[way], is / bound);
            if (error || !(is < bound) || outside || h[0] != h[1]) {
                if (++failed < 30)
                    printf("FAILED %s: B %lld H %lld/%lld L %lld P %lld T %lld D %d/%d causal %d left %lld "
                           "right %lld cap %g mask %d (%lld: %lld %lld %lld) nonpad %d "
                           "packed %d type %d scale %g: %s, error %.2e, outside %d, same %d\n",
                           way == 3   ? "f32"
                           : way == 2 ? "decode"
                           : way      ? "wgmma"
                                      : "mma",
                           (long long)p.batch, (long long)p.heads, (long long)kv_heads, (long long)p.length,
                           (long long)p.past, (long long)p.total, f.size, f.value_size, p.causal,
                           (long long)p.left, (long long)p.right, p.softcap, p.mask_type,
                           (long long)p.mask_count, (long long)p.mask_step[0], (long long)p.mask_step[1],
                           (long long)p.mask_step[2], p.nonpad != NULL, packed, p.type, f.scale,
                           cudaGetErrorString((cudaError_t)error), is, outside, h[0] == h[1]);
                if (error) return 1;
            }
        }
        for (void *x : {q, k, v, y, m, lengths}) cudaFree(x);
    }
    printf("largest error over its bound: mma %.2f, wgmma %.2f, few queries %.2f, f32 %.2f\n%d passed, %d "
           "failed\n",
           worst[0], worst[1], worst[2], worst[3], done - failed, failed);
    return failed != 0;
}

static void time_all(cudaStream_t stream)
{
    static const int cases[][6] = {/* batch, heads, length, size, causal, mask */
                                   {1, 12, 128, 64, 0, 0},    {1, 12, 128, 64, 0, 1},
                                   {32, 12, 128, 64, 0, 0},   {32, 12, 128, 64, 0, 1},
                                   {8, 12, 512, 64, 0, 0},    {4, 32, 2048, 64, 0, 0},
                                   {4, 32, 2048, 64, 1, 0},   {4, 16, 2048, 128, 0, 0},
                                   {2, 16, 4096, 128, 0, 0},  {2, 16, 4096, 128, 1, 0},
                                   {1, 16, 16384, 128, 0, 0}, {1, 16, 16384, 128, 1, 0},
                                   {1, 16, 128, 128, 0, 0},   {32, 16, 77, 64, 0, 0},
                                   {2, 8, 4096, 192, 0, 0},   {2, 8, 4096, 256, 0, 0},
                                   {2, 8, 4096, 256, 1, 0}};
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (const auto &c : cases) {
        ortc_cu_flash f = {};
        ortc_cu_rows &p = f.rows;
        p.type = ORTC_F16, p.batch = c[0], p.heads = c[1], p.length = p.total = c[2], p.causal = c[4],
        p.left = p.right = -1;
        f.size = f.value_size = c[3], f.group = 1, f.scale = 1 / sqrtf((float)c[3]),
        f.warps = (c[2] + 127) / 128 * c[0] * c[1] >= 132 ? 8 : 4;
        steps(f.q_step, false, c[1], c[2], c[3]), steps(f.k_step, false, c[1], c[2], c[3]),
            steps(f.v_step, false, c[1], c[2], c[3]), steps(f.y_step, true, c[1], c[2], c[3]);
        const int64_t n = (int64_t)c[0] * c[1] * c[2] * c[3];
        void *q = room(n * 2), *k = room(n * 2), *v = room(n * 2), *y = room(n * 2),
             *m = room(c[0] * c[2] * 2);
        fill<<<1024, 256>>>(q, p.type, n, 1, 1, 0);
        fill<<<1024, 256>>>(k, p.type, n, 2, 1, 0);
        fill<<<1024, 256>>>(v, p.type, n, 3, 1, 0);
        fill<<<1024, 256>>>(m, p.type, c[0] * c[2], 4, 1, 5);
        if (c[5]) p.mask_type = ORTC_F16, p.mask = m, p.mask_count = c[2], p.mask_step[0] = c[2];
        f.q = q, f.k = k, f.v = v, f.y = y;
        const double flops = 4.0 * c[0] * c[1] * c[2] * c[2] * c[3] / (c[4] ? 2 : 1);
        const int repeats = flops > 2e11 ? 4 : 40;
        printf("B %d H %d L %d D %d %s%s:", c[0], c[1], c[2], c[3], c[4] ? "causal" : "", c[5] ? "mask" : "");
        for (int wgmma = 0; wgmma < 2; wgmma++) {
            cudaGraph_t graph;
            cudaGraphExec_t exec;
            CHECK(run(f, wgmma, stream));
            CHECK(cudaStreamSynchronize(stream));
            CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
            for (int i = 0; i < repeats; i++) run(f, wgmma, stream);
            CHECK(cudaStreamEndCapture(stream, &graph));
            CHECK(cudaGraphInstantiate(&exec, graph, 0));
            std::vector<float> us;
            for (int i = 0; i < 9; i++) {
                float ms;
                CHECK(cudaEventRecord(begin, stream));
                CHECK(cudaGraphLaunch(exec, stream));
                CHECK(cudaEventRecord(end, stream));
                CHECK(cudaEventSynchronize(end));
                CHECK(cudaEventElapsedTime(&ms, begin, end));
                us.push_back(ms * 1000 / repeats);
            }
            std::sort(us.begin(), us.end());
            printf("  %s %.2f us, %.0f TFLOP/s", wgmma ? "wgmma" : "mma", us[4], flops / us[4] / 1e6);
        }
        printf("\n");
        for (void *x : {q, k, v, y, m}) cudaFree(x);
    }
}

static void time_decode(cudaStream_t stream)
{
    static const int cases[][4] = {/* batch, heads, group, keys */
                                   {1, 32, 1, 2048},
                                   {16, 32, 1, 2048},
                                   {1, 32, 1, 8192},
                                   {1, 8, 4, 2048},
                                   {16, 8, 4, 2048}};
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (const auto &c : cases) {
        ortc_cu_flash f = {};
        ortc_cu_rows &p = f.rows;
        p.type = ORTC_F16, p.batch = c[0], p.heads = c[1] * c[2], p.length = 1, p.total = c[3],
        p.left = p.right = -1;
        f.processors = processors, f.size = f.value_size = 128, f.group = c[2], f.scale = 1 / sqrtf(128.0f);
        const int64_t n = (int64_t)c[0] * c[1] * c[3] * 128, nq = p.batch * p.heads * 128;
        const int sets = (int)std::max<int64_t>(1, (INT64_C(150) << 20) / (n * 4)), repeats = sets * 4;
        steps(f.q_step, false, p.heads, 1, 128), steps(f.y_step, false, p.heads, 1, 128),
            steps(f.k_step, false, c[1], c[3], 128), steps(f.v_step, false, c[1], c[3], 128);
        std::vector<void *> k((size_t)sets), v((size_t)sets);
        void *q = room(nq * 2), *y = room(nq * 2);
        fill<<<1024, 256>>>(q, p.type, nq, 1, 1, 0);
        for (int i = 0; i < sets; i++) {
            k[(size_t)i] = room(n * 2), v[(size_t)i] = room(n * 2);
            fill<<<1024, 256>>>(k[(size_t)i], p.type, n, 2 + i, 1, 0);
            fill<<<1024, 256>>>(v[(size_t)i], p.type, n, 9 + i, 1, 0);
        }
        f.q = q, f.y = y;
        CHECK(cudaDeviceSynchronize());
        printf("decode B %d H %d/%d keys %d:", c[0], c[1] * c[2], c[1], c[3]);
        for (int parts = 1; parts <= 8; parts++) {
            cudaGraph_t graph;
            cudaGraphExec_t exec;
            CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
            for (int i = 0; i < repeats; i++) {
                f.k = k[(size_t)(i % sets)], f.v = v[(size_t)(i % sets)];
                CHECK(ortc_cu_decode(&f, parts, stream));
            }
            CHECK(cudaStreamEndCapture(stream, &graph));
            CHECK(cudaGraphInstantiate(&exec, graph, 0));
            std::vector<float> us;
            for (int i = 0; i < 9; i++) {
                float ms;
                CHECK(cudaEventRecord(begin, stream));
                CHECK(cudaGraphLaunch(exec, stream));
                CHECK(cudaEventRecord(end, stream));
                CHECK(cudaEventSynchronize(end));
                CHECK(cudaEventElapsedTime(&ms, begin, end));
                us.push_back(ms * 1000 / repeats);
            }
            std::sort(us.begin(), us.end());
            printf("  %d: %.2f us, %.0f GB/s", parts, us[4], 4e-3 * n / us[4]);
        }
        printf("\n");
        for (void *x : k) cudaFree(x);
        for (void *x : v) cudaFree(x);
        cudaFree(q), cudaFree(y);
    }
}

int main(int argc, char **argv)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0 ||
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0) != cudaSuccess) {
        printf("skipped: no GPU\n");
        return 77;
    }
    if (argc > 1 && !strcmp(argv[1], "test"))
        return test(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, argc > 3 ? atoi(argv[3]) : 600);
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (argc < 3) time_all(stream);
    time_decode(stream);
    return 0;
}
