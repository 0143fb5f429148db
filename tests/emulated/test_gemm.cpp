/* tests/emulated/test_gemm.cpp: the GEMM kernels for a GPU, emulated on the host, against sums in double:
 * every kernel, every layout, sizes around tiles, odd pitches and addresses, batches, what the epilogue adds;
 * canaries around Y. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/gemm/cuda_gemm.h"
#include "ortc/op.h"

namespace {

size_t failures, passed;
uint64_t seed = 1;
double random_number()
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(seed >> 33) / (double)(1u << 30) - 1;
}

int width(int type) { return type == ORTC_F32 ? 4 : 2; }
void put(int type, char *p, int64_t i, double x)
{
    if (type == ORTC_F32)
        ((float *)p)[i] = (float)x;
    else if (type == ORTC_F16)
        ((__half *)p)[i] = __float2half((float)x);
    else
        ((__nv_bfloat16 *)p)[i] = __float2bfloat16((float)x);
}
double get(int type, const char *p, int64_t i)
{
    return type == ORTC_F32   ? ((const float *)p)[i]
           : type == ORTC_F16 ? __half2float(((const __half *)p)[i])
                              : __bfloat162float(((const __nv_bfloat16 *)p)[i]);
}

struct Buffer {
    std::vector<char> bytes;
    char *at;
    int type;
    int64_t n;
    Buffer(int t, int64_t count, int offset) : bytes((size_t)(count + 64) * width(t) + 256), type(t), n(count)
    {
        at = bytes.data() + (256 - (uintptr_t)bytes.data() % 256) + offset * width(t);
        for (int64_t i = 0; i < count; i++) put(t, at, i, random_number());
    }
};

struct Case {
    int64_t m, n, k, batch; /* batch: of A and Y; B has one matrix if b_shared */
    bool ta, tb, b_shared;
    int offset, act;
    bool c, bias, residual;
};

void check(int type, const Case &c, int force, bool f32_out)
{
    const int out = f32_out ? ORTC_F32 : type;
    Buffer a(type, c.batch * c.m * c.k, c.offset), b(type, c.batch * c.k * c.n, c.offset),
        y(out, c.batch * c.m * c.n, c.offset), added(type, c.m * c.n, c.offset), bias(type, c.n, 0),
        residual(type, c.batch * c.m * c.n, 0);
    ortc_cu_gemm g = {};
    g.a = a.at, g.b = b.at, g.y = y.at;
    g.c = c.c ? added.at : NULL, g.bias = c.bias ? bias.at : NULL,
    g.residual = c.residual ? residual.at : NULL;
    g.m = c.m, g.n = c.n, g.k = c.k;
    g.a_row = c.ta ? 1 : c.k, g.a_col = c.ta ? c.m : 1, g.b_row = c.tb ? 1 : c.n, g.b_col = c.tb ? c.k : 1,
    g.y_row = c.n;
    g.c_row = c.n, g.c_col = 1;
    g.alpha = 0.5f, g.beta = 2, g.act = c.act, g.act_alpha = -0.25f, g.act_beta = 0.5f, g.type = type,
    g.out_type = out;
    if (c.batch != 1) {
        g.rank = 1, g.dims[0] = c.batch, g.a_step[0] = c.m * c.k, g.b_step[0] = c.b_shared ? 0 : c.k * c.n,
        g.y_step[0] = c.m * c.n;
    }
    ortc_cu_gemm_plan(&g, 132, 80);
    if (force && g.kernel > ORTC_CU_GEMM_NOTHING && (g.kernel != ORTC_CU_GEMM_VECTOR || force < 0) &&
        (g.kernel != ORTC_CU_GEMM_MMA_ANY || force == ORTC_CU_GEMM_MMA_ANY))
        g.kernel = force;
    const size_t all = (size_t)(y.n + 64) * width(out) + 256;
    std::vector<char> before = y.bytes;
    const int error = ortc_cu_gemm_run(&g, NULL);
    double worst = 0;
    for (int64_t z = 0; z < c.batch; z++)
        for (int64_t i = 0; i < c.m; i++)
            for (int64_t j = 0; j < c.n; j++) {
                double sum = 0;
                for (int64_t k = 0; k < c.k; k++)
                    sum += get(type, a.at, z * c.m * c.k + i * g.a_row + k * g.a_col) *
                           get(type, b.at, (c.b_shared ? 0 : z * c.k * c.n) + k * g.b_row + j * g.b_col);
                sum *= 0.5;
                sum += c.c ? 2 * get(type, added.at, i * c.n + j) : 0;
                sum += c.bias ? get(type, bias.at, j) : 0;
                sum += c.residual ? get(type, residual.at, (z * c.m + i) * c.n + j) : 0;
                if (c.act == ORTC_CU_ACT_CLIP) sum = sum < -0.25 ? -0.25 : sum > 0.5 ? 0.5 : sum;
                if (c.act == ORTC_CU_ACT_GELU) sum = 0.5 * sum * (1 + erf(sum / sqrt(2.0)));
                const double got = get(out, y.at, (z * c.m + i) * c.n + j),
                             off = fabs(got - sum) / (1 + fabs(sum));
                worst = off > worst || off != off ? off : worst;
                put(out, y.at, (z * c.m + i) * c.n + j,
                    get(out, before.data() + (y.at - y.bytes.data()), (z * c.m + i) * c.n + j));
            }
    const bool canaries = !memcmp(before.data(), y.bytes.data(), all);
    const double allowed = out == ORTC_F32 ? 2e-5 : type == ORTC_F16 ? 1e-3 : 8e-3;
    if (error || !canaries || !(worst <= allowed)) {
        failures++;
        printf("FAILED type %d m %lld n %lld k %lld batch %lld ta %d tb %d kernel %d offset %d: off by %g%s, "
               "error %d\n",
               type, (long long)c.m, (long long)c.n, (long long)c.k, (long long)c.batch, c.ta, c.tb, g.kernel,
               c.offset, worst, canaries ? "" : ", wrote outside", error);
    } else
        passed++;
}

} // namespace

int main()
{
    static const Case cases[] = {{1, 1, 1, 1},
                                 {9, 8, 8, 1},
                                 {64, 64, 64, 1},
                                 {65, 72, 40, 1},
                                 {130, 136, 200, 1},
                                 {128, 128, 128, 1},
                                 {100, 250, 77, 1},
                                 {17, 33, 65, 1},
                                 {33, 24, 264, 2},
                                 {20, 40, 72, 3, false, true},
                                 {129, 129, 17, 2},
                                 {9, 7, 0, 1},
                                 {0, 7, 5, 1},
                                 {70, 64, 96, 1, true, false},
                                 {70, 64, 95, 1, true, true},
                                 {70, 64, 96, 1, false, true},
                                 {67, 130, 72, 2, false, true},
                                 {40, 48, 56, 1, false, false, false, 1},
                                 {40, 48, 56, 1, false, true, false, 1, ORTC_CU_ACT_CLIP, true, true, true},
                                 {40, 48, 56, 2, false, true, true, 0, ORTC_CU_ACT_CLIP, false, true, true},
                                 {140, 150, 56, 1, false, false, false, 0, ORTC_CU_ACT_GELU, true, true,
                                  false},
                                 {1, 64, 100, 1},
                                 {1, 264, 2100, 1, false, false, false, 0, ORTC_CU_ACT_GELU, true, true,
                                  true},
                                 {2, 40, 33, 1},
                                 {3, 72, 16, 2},
                                 {4, 8, 1030, 1},
                                 {8, 104, 520, 1},
                                 {5, 104, 72, 3},
                                 {1, 65, 104, 1, false, true},
                                 {1, 17, 2056, 1, false, true, false, 0, ORTC_CU_ACT_CLIP, true, true, true},
                                 {2, 40, 32, 1, false, true},
                                 {3, 33, 1288, 2, false, true},
                                 {8, 50, 520, 1, false, true},
                                 {6, 16, 0, 1, false, true},
                                 {8, 16, 0, 1},
                                 {8, 64, 64, 1, false, false, false, 1},
                                 {8, 64, 64, 1, false, true, false, 1},
                                 {300, 1, 64, 1, false, true},
                                 {12, 1, 7, 4, false, true}};
    for (const Case &c : cases)
        for (int type : {ORTC_F16, ORTC_BF16, ORTC_F32}) {
            check(type, c, 0, false);
            if (type == ORTC_F32) {
                check(type, c, ORTC_CU_GEMM_FFMA_128X128, false);
                check(type, c, ORTC_CU_GEMM_FFMA_64X64, false);
                continue;
            }
            check(type, c, 0, true);
            for (int kernel = ORTC_CU_GEMM_MMA_128X128; kernel < ORTC_CU_GEMM_FFMA_128X128; kernel++)
                check(type, c, kernel, false);
        }
    printf("%zu passed, %zu failed\n", passed, failures);
    return failures != 0;
}
