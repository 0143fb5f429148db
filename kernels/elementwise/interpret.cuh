/* kernels/elementwise/interpret.cuh: the interpreter of cuda_program.h. Included by one .cu file for each
 * type of register.
 *
 * The program is the kernel's parameter, so every thread of a warp takes the same way. Vector items are
 * neighbours whose rows begin at multiples of 16 bytes; other items are single elements, neighbours in
 * neighbouring threads, some of them per thread. Results may lie in the memory of an input (same place, same
 * thread), so inputs are not read through the read-only path.
 */
#ifndef ORTC_KERNELS_ELEMENTWISE_INTERPRET_CUH
#define ORTC_KERNELS_ELEMENTWISE_INTERPRET_CUH

#include <math.h>

#include "kernels/common/cuda.cuh"
#include "kernels/common/registers.cuh"
#include "kernels/elementwise/cuda_program.h"

namespace {

constexpr int THREADS = 256;

template <typename R> struct is_float {
    static constexpr bool value = false;
};
template <> struct is_float<float> {
    static constexpr bool value = true;
};
template <> struct is_float<double> {
    static constexpr bool value = true;
};
template <typename R> constexpr bool floats = is_float<R>::value;

/* N bytes in as few accesses as can be: several elements at a good address. */
template <int N> struct words {
    uint4 at[N / 16];
};
template <> struct words<8> {
    uint2 at;
};
template <> struct words<4> {
    uint32_t at;
};
template <> struct words<2> {
    uint16_t at;
};

template <typename E, int V> struct pack {
    E at[V];
    static __device__ inline pack load(const E *from)
    {
        pack p;
        const words<sizeof(E) *V> w = *(const words<sizeof(E) * V> *)from;
        memcpy(&p, &w, sizeof p);
        return p;
    }
    __device__ inline void store(E *to) const
    {
        words<sizeof(E) * V> w;
        memcpy(&w, this, sizeof w);
        *(words<sizeof(E) * V> *)to = w;
    }
};

/* The place of an item's first element in an input. */
__device__ inline int64_t place(const ortc_cu_program &p, const ortc_cu_input &in, int64_t item)
{
    int64_t at = 0;
    if (p.wide) {
        for (int d = (int)p.rank - 1; d > 0; d--) {
            int64_t rest = (int64_t)((double)item * p.inverses[d]), within = item - rest * p.dims[d];
            /* the product is off by one at most */
            const int off = within < 0 ? -1 : within >= p.dims[d] ? 1 : 0;
            rest += off;
            at += (within - off * p.dims[d]) * in.step[d];
            item = rest;
        }
        return at + item * in.step[0];
    }
    uint32_t i = (uint32_t)item;
    for (int d = (int)p.rank - 1; d > 0; d--) {
        uint32_t rest = (__umulhi(i, p.divisors[d].multiplier) + i) >> p.divisors[d].shift;
        at += (int64_t)(i - rest * p.divisors[d].divisor) * in.step[d];
        i = rest;
    }
    return at + (int64_t)i * in.step[0];
}

/* V elements: of one item of neighbours, or of V single items that lie THREADS apart. */
template <typename R, typename E, int V, bool vector>
__device__ inline void read(const ortc_cu_program &p, const ortc_cu_input &in, int64_t item, R (&to)[V])
{
    const E *data = (const E *)in.data;
    if constexpr (vector) {
        int64_t at = place(p, in, item);
        if (in.step[p.rank - 1] == 0) { /* one element for all */
            R v = get<R, E>::from(data[at]);
#pragma unroll
            for (int k = 0; k < V; k++) to[k] = v;
        } else if (p.count - item * V >= V) {
            const pack<E, V> v = pack<E, V>::load(data + at);
#pragma unroll
            for (int k = 0; k < V; k++) to[k] = get<R, E>::from(v.at[k]);
        } else { /* the end of a flat result */
#pragma unroll
            for (int k = 0; k < V; k++) to[k] = item * V + k < p.count ? get<R, E>::from(data[at + k]) : (R)0;
        }
    } else {
#pragma unroll
        for (int k = 0; k < V; k++) {
            int64_t mine = item + (int64_t)k * THREADS;
            to[k] = mine < p.items ? get<R, E>::from(data[in.flat ? mine : place(p, in, mine)]) : (R)0;
        }
    }
}

template <typename R, typename E, int V, bool vector>
__device__ inline void write(const ortc_cu_program &p, int64_t item, const R (&v)[V])
{
    E *out = (E *)p.out;
    if (vector && p.count - item * V >= V) {
        pack<E, V> several;
#pragma unroll
        for (int k = 0; k < V; k++) several.at[k] = put<E>::from(v[k]);
        several.store(out + item * V);
        return;
    }
#pragma unroll
    for (int k = 0; k < V; k++) {
        int64_t at = vector ? item * V + k : item + (int64_t)k * THREADS;
        if (at < p.count) out[at] = put<E>::from(v[k]);
    }
}

/* ---- Arithmetic ---------------------------------------------------------------------------------------- */

template <typename R> __device__ inline R divide(R a, R b) { return a / b; }
/* Bit by bit: the compiler's own division is a call, around which everything would be spilled. */
template <> __device__ inline uint64_t divide(uint64_t a, uint64_t b)
{
    uint64_t rest = 0;
    if (b == 0) return 0;
#pragma unroll 1
    for (int i = 0; i < 64; i++) {
        const bool carry = rest >> 63;
        rest = rest << 1 | a >> 63;
        a <<= 1;
        if (carry || rest >= b) {
            rest -= b;
            a |= 1;
        }
    }
    return a;
}
/* Towards zero; the lowest number has no opposite. */
template <> __device__ inline int64_t divide(int64_t a, int64_t b)
{
    const uint64_t q = divide(a < 0 ? 0 - (uint64_t)a : (uint64_t)a, b < 0 ? 0 - (uint64_t)b : (uint64_t)b);
    return (int64_t)((a < 0) != (b < 0) ? 0 - q : q);
}

/* Modulo 2^64; a negative exponent gives 1 / x towards zero. */
__device__ inline uint64_t whole_power(uint64_t base, uint64_t exponent, bool negative)
{
    if (negative) return base == 1 ? 1 : base == UINT64_MAX ? (exponent & 1 ? UINT64_MAX : 1) : 0;
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base *= base) result *= exponent & 1 ? base : 1;
    return result;
}
__device__ inline float power(float a, float b) { return powf(a, b); }
__device__ inline double power(double a, double b) { return pow(a, b); }
__device__ inline int64_t power(int64_t a, int64_t b)
{
    return (int64_t)whole_power((uint64_t)a, (uint64_t)b, b < 0);
}
__device__ inline uint64_t power(uint64_t a, uint64_t b) { return whole_power(a, b, false); }

template <typename R> __device__ inline R negate(R a) { return -a; }
template <> __device__ inline int64_t negate(int64_t a) { return (int64_t)(0 - (uint64_t)a); }
template <> __device__ inline uint64_t negate(uint64_t a) { return 0 - a; }
template <typename R> __device__ inline R magnitude(R a) { return is_negative(a) ? negate(a) : a; }
template <> __device__ inline uint64_t magnitude(uint64_t a) { return a; }
template <> __device__ inline float magnitude(float a) { return fabsf(a); }
template <> __device__ inline double magnitude(double a) { return fabs(a); }
template <typename R> __device__ inline R sum(R a, R b) { return a + b; }
template <> __device__ inline int64_t sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
template <typename R> __device__ inline R difference(R a, R b) { return a - b; }
template <> __device__ inline int64_t difference(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
template <typename R> __device__ inline R product(R a, R b) { return a * b; }
template <> __device__ inline int64_t product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Of floats: in the register's own type. */
#define ORTC_CU_BOTH(name, f, d) \
    __device__ inline float name##_(float x) { return f(x); } \
    __device__ inline double name##_(double x) { return d(x); }
ORTC_CU_BOTH(sqrt, sqrtf, sqrt)
ORTC_CU_BOTH(exp, expf, exp)
ORTC_CU_BOTH(expm1, expm1f, expm1)
ORTC_CU_BOTH(log, logf, log)
ORTC_CU_BOTH(log1p, log1pf, log1p)
ORTC_CU_BOTH(floor, floorf, floor)
ORTC_CU_BOTH(ceil, ceilf, ceil)
ORTC_CU_BOTH(rint, rintf, rint)
ORTC_CU_BOTH(erf, erff, erf)
ORTC_CU_BOTH(tanh, tanhf, tanh)

/* The remainder of a division towards zero, and of one rounded down; of integers by 0: 0. */
__device__ inline float remainder_of(float a, float b) { return fmodf(a, b); }
__device__ inline double remainder_of(double a, double b) { return fmod(a, b); }
__device__ inline int64_t remainder_of(int64_t a, int64_t b)
{
    return b == 0 ? 0 : (int64_t)((uint64_t)a - (uint64_t)divide(a, b) * (uint64_t)b);
}
__device__ inline uint64_t remainder_of(uint64_t a, uint64_t b) { return b == 0 ? 0 : a - divide(a, b) * b; }
template <typename R> __attribute__((noinline)) __device__ R remainder_at(R a, R b, bool down)
{
    R r = remainder_of(a, b);
    if (!down) return r;
    if constexpr (floats<R>) {
        if (r == 0) return copysign(R(0), b);
    }
    return r != 0 && is_negative(r) != is_negative(b) ? sum(r, b) : r;
}

/* With the sign of what stands before it where the shift is of a signed type; bit 63 is 0 where it is not. */
template <typename R> __device__ inline R shifted(R a, R by, bool left)
{
    const uint64_t n = (uint64_t)by & 63;
    return left ? (R)((uint64_t)a << n) : (R)(a >> n);
}

/* Of rare functions: in double, and called, for else they would be most of the kernel. */
__attribute__((noinline)) __device__ double rare(int op, double x)
{
    switch (op) {
    case ORTC_CU_SIN: return sin(x);
    case ORTC_CU_COS: return cos(x);
    case ORTC_CU_TAN: return tan(x);
    case ORTC_CU_ASIN: return asin(x);
    case ORTC_CU_ACOS: return acos(x);
    case ORTC_CU_ATAN: return atan(x);
    case ORTC_CU_SINH: return sinh(x);
    case ORTC_CU_COSH: return cosh(x);
    case ORTC_CU_ASINH: return asinh(x);
    case ORTC_CU_ACOSH: return acosh(x);
    case ORTC_CU_ATANH: return atanh(x);
    default: return x;
    }
}

#define EACH(expression) \
    _Pragma("unroll") for (int k = 0; k < V; k++) \
    { \
        R x = acc[k]; \
        acc[k] = (expression); \
    } \
    break

__device__ inline float hard_swish(float x)
{
    const float line = x * (1.0f / 6) + 0.5f;
    return x * (line < 0 ? 0 : line > 1 ? 1 : line);
}

template <typename R, int V> __device__ inline void f32_only(int, R (&)[V]) {}
template <int V> __device__ inline void f32_only(int op, float (&acc)[V])
{
    typedef float R;
    switch (op) {
    case ORTC_CU_GELU: EACH(0.5f * x * (1 + erff(x * 0.70710678118654752440f)));
    case ORTC_CU_GELU_TANH:
        EACH(0.5f * x * (1 + tanhf(0.79788456080286535588f * (x + 0.044715f * x * x * x))));
    case ORTC_CU_SWISH: EACH(x / (1 + expf(-x)));
    case ORTC_CU_HARD_SWISH: EACH(hard_swish(x));
    default: break;
    }
}

template <typename R, int V> __device__ inline void floats_only(int op, R (&acc)[V])
{
    switch (op) {
    case ORTC_CU_SQRT: EACH(sqrt_(x));
    case ORTC_CU_EXP: EACH(exp_(x));
    case ORTC_CU_EXPM1: EACH(expm1_(x));
    case ORTC_CU_LOG: EACH(log_(x));
    case ORTC_CU_LOG1P: EACH(log1p_(x));
    case ORTC_CU_RECIPROCAL: EACH(1 / x);
    case ORTC_CU_FLOOR: EACH(floor_(x));
    case ORTC_CU_CEIL: EACH(ceil_(x));
    case ORTC_CU_ROUND: EACH(rint_(x));
    case ORTC_CU_ERF: EACH(erf_(x));
    case ORTC_CU_TANH: EACH(tanh_(x));
    case ORTC_CU_SIGMOID: EACH(1 / (1 + exp_(-x)));
    case ORTC_CU_TO_F16: EACH((R)__half2float(put<__half>::from(x)));
    case ORTC_CU_TO_BF16: EACH((R)__bfloat162float(put<__nv_bfloat16>::from(x)));
    case ORTC_CU_IS_NAN: EACH(x != x ? R(1) : R(0));
    case ORTC_CU_NUMBER: EACH(x != x ? R(0) : x);
    default:
        if (op >= ORTC_CU_SIN && op <= ORTC_CU_ATANH) {
#pragma unroll
            for (int k = 0; k < V; k++) acc[k] = (R)rare(op, (double)acc[k]);
        }
        f32_only(op, acc);
    }
}

template <typename R, int V> __device__ inline void integers_only(int op, R (&acc)[V], const R (&a)[V])
{
    switch (op) {
    case ORTC_CU_SHL: EACH(shifted(x, a[k], true));
    case ORTC_CU_SHR: EACH(shifted(x, a[k], false));
    case ORTC_CU_TO_I8: EACH((R)(int8_t)x);
    case ORTC_CU_TO_U8: EACH((R)(uint8_t)x);
    case ORTC_CU_TO_I16: EACH((R)(int16_t)x);
    case ORTC_CU_TO_U16: EACH((R)(uint16_t)x);
    case ORTC_CU_TO_I32: EACH((R)(int32_t)x);
    case ORTC_CU_TO_U32: EACH((R)(uint32_t)x);
    case ORTC_CU_AND: EACH((R)(x & a[k]));
    case ORTC_CU_OR: EACH((R)(x | a[k]));
    case ORTC_CU_XOR: EACH((R)(x ^ a[k]));
    default: break;
    }
}

template <typename R, int V> __device__ inline void step(int op, R (&acc)[V], const R (&a)[V], uint32_t &mask)
{
    switch (op) {
    case ORTC_CU_LOAD: EACH((void(x), a[k]));
    case ORTC_CU_ADD: EACH(sum(x, a[k]));
    case ORTC_CU_SUB: EACH(difference(x, a[k]));
    case ORTC_CU_RSUB: EACH(difference(a[k], x));
    case ORTC_CU_MUL: EACH(product(x, a[k]));
    case ORTC_CU_DIV: EACH(divide(x, a[k]));
    case ORTC_CU_RDIV: EACH(divide(a[k], x));
    case ORTC_CU_MOD: EACH(remainder_at(x, a[k], true));
    case ORTC_CU_REM: EACH(remainder_at(x, a[k], false));
    case ORTC_CU_MIN: EACH(a[k] < x || a[k] != a[k] ? a[k] : x);
    case ORTC_CU_MAX: EACH(a[k] > x || a[k] != a[k] ? a[k] : x);
    case ORTC_CU_EQUAL: EACH(x == a[k] ? R(1) : R(0));
    case ORTC_CU_LESS: EACH(x < a[k] ? R(1) : R(0));
    case ORTC_CU_GREATER: EACH(x > a[k] ? R(1) : R(0));
    case ORTC_CU_LESS_EQUAL: EACH(x <= a[k] ? R(1) : R(0));
    case ORTC_CU_GREATER_EQUAL: EACH(x >= a[k] ? R(1) : R(0));
    case ORTC_CU_NEG: EACH(negate(x));
    case ORTC_CU_ABS: EACH(magnitude(x));
    case ORTC_CU_SIGN: EACH(x > 0 ? R(1) : is_negative(x) ? (R)-1 : x);
    case ORTC_CU_BOOL: EACH(x != 0 ? R(1) : R(0));
    case ORTC_CU_POW: EACH(power(x, a[k]));
    case ORTC_CU_PRELU: EACH(is_negative(x) ? product(x, a[k]) : x);
    case ORTC_CU_TEST: mask = 0;
#pragma unroll
        for (int k = 0; k < V; k++) mask |= (acc[k] != 0 ? 1u : 0u) << k;
        break;
    case ORTC_CU_BLEND: EACH(mask >> k & 1 ? x : a[k]);
    default:
        if constexpr (floats<R>) {
            switch (op) {
            case ORTC_CU_AND: EACH(x != 0 && a[k] != 0 ? R(1) : R(0));
            case ORTC_CU_OR: EACH(x != 0 || a[k] != 0 ? R(1) : R(0));
            case ORTC_CU_XOR: EACH((x != 0) != (a[k] != 0) ? R(1) : R(0));
            default: floats_only(op, acc);
            }
        } else {
            integers_only(op, acc, a);
        }
    }
}
#undef EACH

/* ---- The kernel ---------------------------------------------------------------------------------------- */

template <typename R, int V, bool vector>
__global__ void __launch_bounds__(THREADS, 3) interpret(const __grid_constant__ ortc_cu_program p)
{
    extern __shared__ __align__(16) unsigned char shared[];
    R *far = (R *)shared; /* of a thread: THREADS apart, so that banks do not meet */
    const int64_t stride = (int64_t)gridDim.x * THREADS * (vector ? 1 : V);
    const int64_t first = (int64_t)blockIdx.x * THREADS * (vector ? 1 : V) + threadIdx.x;
    for (int64_t item = first; item < p.items; item += stride) {
        R acc[V], a[V], near[ORTC_CU_NEAR][V];
        uint32_t mask = 0;
#pragma unroll
        for (int k = 0; k < V; k++) acc[k] = a[k] = near[0][k] = near[1][k] = 0;
        for (uint32_t pc = 0; pc < p.n_code; pc++) {
            const int op = p.code[pc].op, operand = p.code[pc].operand;
            if (op == ORTC_CU_SAVE) {
#pragma unroll
                for (int k = 0; k < V; k++)
                    if (operand == 0)
                        near[0][k] = acc[k];
                    else if (operand == 1)
                        near[1][k] = acc[k];
                    else
                        far[((operand - ORTC_CU_NEAR) * V + k) * THREADS + threadIdx.x] = acc[k];
                continue;
            }
            if (operand == ORTC_CU_NONE) {
            } else if (operand == ORTC_CU_SELF) {
#pragma unroll
                for (int k = 0; k < V; k++) a[k] = acc[k];
            } else if (operand & ORTC_CU_CONSTANT) {
                const ortc_cu_number c = p.constants[operand & (ORTC_CU_CONSTANT - 1)];
#pragma unroll
                for (int k = 0; k < V; k++) a[k] = floats<R> ? (R)c.f : (R)c.i;
            } else if (operand & ORTC_CU_TEMP) {
                const int t = operand & (ORTC_CU_TEMP - 1);
#pragma unroll
                for (int k = 0; k < V; k++)
                    a[k] = t == 0   ? near[0][k]
                           : t == 1 ? near[1][k]
                                    : far[((t - ORTC_CU_NEAR) * V + k) * THREADS + threadIdx.x];
            } else {
                const ortc_cu_input &in = p.in[operand];
                switch (in.dtype) {
#define ORTC_CU_READ(t, E) \
    case t: read<R, E, V, vector>(p, in, item, a); break;
                    ORTC_CU_ELEMENTS(ORTC_CU_READ)
#undef ORTC_CU_READ
                }
            }
            step(op, acc, a, mask);
        }
        switch (p.out_dtype) {
#define ORTC_CU_WRITE(t, E) \
    case t: write<R, E, V, vector>(p, item, acc); break;
            ORTC_CU_ELEMENTS(ORTC_CU_WRITE)
#undef ORTC_CU_WRITE
        }
    }
}

/* V: ortc_cu_width. Single items are fewer per thread, for each finds its own way through the dims. */
template <typename R, int V> int launch(const ortc_cu_program *p, void *queue)
{
    constexpr int SINGLE = V > 4 ? 4 : V;
    cudaStream_t stream = (cudaStream_t)queue;
    const size_t slots = (p->n_temps > ORTC_CU_NEAR ? p->n_temps - ORTC_CU_NEAR : 0) * THREADS * sizeof(R);
    if (p->vector)
        interpret<R, V, true><<<ortc_cu_blocks(p->items, THREADS), THREADS, slots * V, stream>>>(*p);
    else
        interpret<R, SINGLE, false>
            <<<ortc_cu_blocks((p->items + SINGLE - 1) / SINGLE, THREADS), THREADS, slots * SINGLE, stream>>>(
                *p);
    return cudaGetLastError();
}

} // namespace

#endif
