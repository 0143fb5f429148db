/* Sums of s32 to 8 bits in fixed point, blocks of 16 channels, four pixels at a time (integer_tail.h), for
 * AVX-512.
 *
 * An element is one fused multiply-add per rounding, in units of what is rounded to with 16 bits behind the
 * point, half a unit and the window more: so that its upper half is the result, its lower half below twice
 * the window only where the program's own roundings could end elsewhere (then that channel of four pixels is
 * done step by step), and saturating is what packing does.
 *
 * How far the program and this are apart, u being 2^-24: only results within the bounds of their type matter,
 * elsewhere both end in the same bound. There quotients are below 257, and products of sums below 257 + b, b
 * being the bias in these units. The program rounds a product, a sum and a quotient; here the factor, the
 * bias and the result are: at most u * (3 (257 + b) + 3 * 257) in all. Sums of 2^24 and more, too, are
 * rounded, which counts where 257 + b is that many factors. Of the last after another the program rounds the
 * first's product, the residual's, their sum and its quotient, and here two factors, a bias, a sum and the
 * result are rounded: u * (3 products + 3 residuals + bias + 4 * 257); of one with a residual alone u * (3
 * (257 + b) + 6 residuals + bias + 4 * 257). */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "integer_tail.h"

#define INLINE static inline __attribute__((always_inline))
enum { BLOCK = 16, GROUP = 4 };
#define UNITS 65536.0
#define LARGEST 32768.0 /* biases in units of what is rounded to */

/* ---- Numbers ------------------------------------------------------------------------------------------- */

static int is_usual(float scale) { return scale > 0x1p-100f && scale < 0x1p100f; }

/* A power of two above what is u * `most` off, a quarter for what is not counted and half for the rounding to
 * an integer; as a mask of the bits above twice that; *window as well. */
static int32_t mask_of(double most, double *window)
{
    const double need = most * 0x1p-24 * UNITS + 0.75;
    int32_t w = 1;
    while (w < need) w *= 2;
    *window = w;
    return 0xffff & ~(2 * w - 1);
}

/* As the program has it: v to the type, less what makes it u8. */
static uint8_t bound_of(float v, const ortc_int_scaled *s)
{
    const float low = s->type == ORTC_I8 ? -128 : 0, q = rintf(v / s->scale) + s->zero;
    return (uint8_t)((q < low ? low : q > low + 255 ? low + 255 : q) - low);
}

/* ---- The program, step by step ------------------------------------------------------------------------- */

/* v / scale to the type, as a number less its zero point. */
INLINE __m256 quantised(__m256 v, const ortc_int_scaled *s)
{
    const float low = (s->type == ORTC_I8 ? -128 : 0) - s->zero;
    v = _mm256_div_ps(v, _mm256_set1_ps(s->scale));
    v = _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm256_min_ps(_mm256_set1_ps(low + 255), _mm256_max_ps(_mm256_set1_ps(low), v));
}

INLINE __m256 clipped(__m256 v, const ortc_int_bounds *b)
{
    return _mm256_min_ps(_mm256_set1_ps(b->hi), _mm256_max_ps(_mm256_set1_ps(b->lo), v));
}

/* r: bytes. */
INLINE __m256 residual_of(const ortc_int_fixed *f, __m256i r)
{
    const int32_t flip = f->adds == 1 ? 0 : 128, zero = (int32_t)f->steps.residual.zero + flip;
    r = _mm256_sub_epi32(_mm256_xor_si256(r, _mm256_set1_epi32(flip)), _mm256_set1_epi32(zero));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(r), _mm256_set1_ps(f->steps.residual.scale));
}

/* From the first that is rounded (less its zero point, if there are two), to results; more: the residual. */
INLINE __m256i last_of(const ortc_int_fixed *f, __m256 v, __m256 more)
{
    const ortc_int_steps *s = &f->steps;
    if (s->to.type) {
        v = _mm256_sub_ps(v, _mm256_set1_ps(s->from.zero - s->to.zero));
        v = _mm256_mul_ps(v, _mm256_set1_ps(s->from.scale));
    }
    if (f->adds) v = _mm256_add_ps(v, more);
    if (s->to.type || f->adds) v = clipped(v, &s->last);
    return _mm256_cvtps_epi32(_mm256_add_ps(quantised(v, &s->y), _mm256_set1_ps(s->y.zero)));
}

/* Whether the last of two is right with this window: of all that the first, and a residual, can be. */
static int holds(const ortc_int_fixed *f, int32_t last, float last_bias, double lo, double hi)
{
    const __m256i least = _mm256_set1_epi32(f->least), most = _mm256_set1_epi32(f->most),
                  flip = _mm256_set1_epi32(f->flip), near = _mm256_set1_epi32(last);
    for (double q = lo; q <= hi; q++) {
        const __m256 first = _mm256_set1_ps((float)q),
                     v = _mm256_fmadd_ps(_mm256_set1_ps((float)((q + f->zero) * UNITS)),
                                         _mm256_set1_ps(f->next), _mm256_set1_ps(last_bias));
        for (int r = 0; r < (f->adds ? 256 : 1); r += 8) {
            const __m256i bytes = _mm256_add_epi32(_mm256_set1_epi32(r),
                                                   _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
                          moved = f->adds == 1 ? bytes : _mm256_srai_epi32(_mm256_slli_epi32(bytes, 24), 24);
            const __m256 number = f->adds ? _mm256_cvtepi32_ps(moved) : _mm256_setzero_ps();
            const __m256i sum = _mm256_cvtps_epi32(_mm256_fmadd_ps(number, _mm256_set1_ps(f->residual), v));
            __m256i y = _mm256_srai_epi32(sum, 16);
            y = _mm256_xor_si256(_mm256_min_epi32(_mm256_max_epi32(y, least), most), flip);
            const __m256i right = _mm256_and_si256(last_of(f, first, residual_of(f, bytes)),
                                                   _mm256_set1_epi32(255));
            if (_mm256_mask_cmpneq_epi32_mask(_mm256_test_epi32_mask(sum, near), y, right)) return 0;
        }
    }
    return 1;
}

static __attribute__((cold)) int init(const ortc_int_pass *p, int adds, ortc_int_fixed *out)
{
    const ortc_int_steps *s = p->steps;
    const int back = s->to.type != 0, own = back || adds;
    const ortc_int_scaled *first = back ? &s->to : &s->y;
    const ortc_int_bounds *bounds = own ? &s->last : &s->clip;
    const double low = s->y.type == ORTC_I8 ? -128 : 0, next = back ? s->from.scale / (double)s->y.scale : 0,
                 residual = adds ? s->residual.scale / (double)s->y.scale : 0,
                 zero = s->y.zero - low - (adds ? residual * s->residual.zero : 0),
                 moved = back ? (s->from.zero - s->to.zero) * next : 0;
    double last = 0, window = 0;
    if (!p->ends || p->before.row || p->scale.row || p->bias.row || !is_usual(first->scale) ||
        !is_usual(s->y.scale) || (adds && s->residual.type == ORTC_F32) ||
        (adds && !back && (s->clip.lo > -INFINITY || s->clip.hi < INFINITY)) || !(next >= 0) ||
        !(residual >= 0))
        return 0;
    /* the first without its zero point: its bounds, what is between them at most */
    const double z = first->zero - (first->type == ORTC_I8 ? -128 : 0), lo = bound_of(s->clip.lo, first) - z,
                 hi = bound_of(s->clip.hi, first) - z, between = fmax(fabs(lo), fabs(hi));
    if (own)
        last = 3 * between * next + 2 * fabs(moved) + (back ? 3 : 6) * 255 * residual + fabs(zero) + 4 * 257;
    if (!(last < LARGEST)) return 0;
    /* Moved by whole units the bounds of most are as far below 0 as above it, which one operation takes. */
    const double to_middle = fmod(hi - lo, 2) != 0 ? -(lo + hi + 1) / 2 : 0;
    *out = (ortc_int_fixed){.back = back,
                            .adds = !adds                         ? 0
                                    : s->residual.type == ORTC_U8 ? 1
                                                                  : 2,
                            .unit = 1.0 / first->scale,
                            .zero = back ? to_middle : zero,
                            .moved = fmod(hi - lo, 2) != 0,
                            .off = 6 * 257 + (back ? 0 : last),
                            .beside = back ? 0 : 255 * residual,
                            .residual = (float)(residual * UNITS),
                            .again = s->again.type != 0,
                            .again_zero = s->again.zero,
                            .again_scale = s->again.scale,
                            .steps = *s,
                            .least = bound_of(bounds->lo, &s->y),
                            .most = bound_of(bounds->hi, &s->y),
                            .flip = s->y.type == ORTC_I8 ? 0x80 : 0};
    if (back) {
        out->lo = (float)((lo + to_middle) * UNITS + UNITS / 2);
        out->hi = (float)((hi + to_middle) * UNITS + UNITS / 2);
        out->next = (float)next;
        /* A smaller window than what is known of roundings asks for may do. */
        out->last = mask_of(last, &window);
        const double most = window;
        for (window = 1; window <= most; window *= 2) {
            out->last = 0xffff & ~(2 * (int32_t)window - 1);
            out->last_bias = (float)((zero - moved - to_middle * next) * UNITS + UNITS / 2 + window);
            if (window == most || holds(out, out->last, out->last_bias, lo, hi)) break;
        }
    }
    return 1;
}

/* Eight numbers of a vector from i on. */
INLINE __m512d eight(const ortc_int_vector *v, int is_int, size_t i, double otherwise)
{
    const char *p = (const char *)v->data + 4 * i * v->col;
    if (!v->data) return _mm512_set1_pd(otherwise);
    __m256i bits;
    if (v->col) {
        bits = _mm256_loadu_si256((const __m256i *)(const void *)p);
    } else {
        int32_t one;
        memcpy(&one, p, sizeof one);
        bits = _mm256_set1_epi32(one);
    }
    return is_int ? _mm512_cvtepi32_pd(bits) : _mm512_cvtps_pd(_mm256_castsi256_ps(bits));
}

static int block(const ortc_int_fixed *f, const ortc_int_pass *p, ortc_int_block *out)
{
    const __m512d all = _mm512_set1_pd(257), unit = _mm512_set1_pd(f->unit), units = _mm512_set1_pd(UNITS);
    __m512d most = _mm512_setzero_pd(), biases[2];
    for (size_t i = 0; i < 2; i++) {
        const __m512d factor = eight(&p->scale, 0, i * 8, 1) * unit, before = eight(&p->before, 1, i * 8, 0);
        biases[i] = eight(&p->bias, 0, i * 8, 0) * unit + before * factor;
        const __m512d b = _mm512_abs_pd(biases[i]), reach = all + b + _mm512_set1_pd(f->beside),
                      sums = _mm512_abs_pd(factor) * _mm512_set1_pd(0x1p24);
        __m512d here = _mm512_set1_pd(f->off) + _mm512_set1_pd(3) * b;
        here = _mm512_mask_add_pd(here, _mm512_cmp_pd_mask(sums, reach, _CMP_NGT_UQ), here,
                                  _mm512_set1_pd(4) * (reach + b));
        /* a NaN is larger than all */
        if (_mm512_cmp_pd_mask(here, _mm512_set1_pd(LARGEST), _CMP_NLT_UQ) ||
            _mm512_cmp_pd_mask(_mm512_abs_pd(before), _mm512_set1_pd(0x1p30), _CMP_NLT_UQ) ||
            _mm512_cmp_pd_mask(sums, _mm512_set1_pd(LARGEST * 0x1p24), _CMP_NLT_UQ))
            return 0;
        most = _mm512_max_pd(most, here);
        _mm256_storeu_ps(out->factor + i * 8, _mm512_cvtpd_ps(factor * units));
        _mm256_storeu_ps(out->scale + i * 8, _mm512_cvtpd_ps(eight(&p->scale, 0, i * 8, 1)));
        _mm256_storeu_ps(out->added + i * 8, _mm512_cvtpd_ps(eight(&p->bias, 0, i * 8, -0.0)));
        _mm256_storeu_si256((__m256i *)(void *)(out->before + i * 8), _mm512_cvtpd_epi32(before));
    }
    double window;
    out->near = mask_of(_mm512_reduce_max_pd(most), &window);
    for (size_t i = 0; i < 2; i++)
        _mm256_storeu_ps(out->bias + i * 8, _mm512_cvtpd_ps((biases[i] + _mm512_set1_pd(f->zero)) * units +
                                                            _mm512_set1_pd(UNITS / 2 + window)));
    return 1;
}

/* ---- Four pixels --------------------------------------------------------------------------------------- */

/* What registers hold. */
typedef struct steady {
    __m512 factor, bias, lo, hi, next, last_bias, residual;
    __m512i first, last, integer, pixels, order, least, most, flip;
    int moved;   /* lo is -hi */
    int bounded; /* not just by u8, to which packing saturates */
} steady;

/* The lower half that is the smallest of four: above it nothing counts. */
INLINE __m512i nearest(const __m512i *v)
{
    return _mm512_min_epu16(_mm512_min_epu16(v[0], v[1]), _mm512_min_epu16(v[2], v[3]));
}

/* adds: 0; 1: of u8; 2: of s8. Returns which channels have no element near a half. */
INLINE __mmask16 four(const int back, const int adds, const steady *k, const int32_t *sums,
                      const uint8_t *residual, uint8_t *y)
{
    __m512i to[GROUP], first[GROUP];
#pragma GCC unroll 4
    for (int i = 0; i < GROUP; i++) {
        __m512 v = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums + i * BLOCK));
        v = _mm512_fmadd_ps(v, k->factor, k->bias);
        if (back) {
            v = k->moved ? _mm512_range_ps(v, k->hi, 2 /* the smaller of |v| and hi, with v's sign */)
                         : _mm512_min_ps(_mm512_max_ps(v, k->lo), k->hi);
            const __m512i q = _mm512_cvtps_epi32(v);
            first[i] = q;
            v = _mm512_cvtepi32_ps(_mm512_and_si512(q, k->integer));
            v = _mm512_fmadd_ps(v, k->next, k->last_bias);
        }
        if (adds) {
            const __m128i r = _mm_loadu_si128((const __m128i *)(const void *)(residual + i * BLOCK));
            v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(adds == 1 ? _mm512_cvtepu8_epi32(r)
                                                             : _mm512_cvtepi8_epi32(r)),
                                k->residual, v);
        }
        to[i] = _mm512_cvtps_epi32(v);
    }
    __mmask16 sure = _mm512_test_epi32_mask(nearest(to), k->last);
    if (back) sure = _mm512_mask_test_epi32_mask(sure, nearest(first), k->first);
    /* upper halves, of two in turn */
    const __m512i ab = _mm512_ternarylogic_epi32(k->integer, to[1], _mm512_srli_epi32(to[0], 16), 0xca),
                  cd = _mm512_ternarylogic_epi32(k->integer, to[3], _mm512_srli_epi32(to[2], 16), 0xca);
    /* [4 channels][two pixels][channel][pixel] to [4 channels][pixel][channel], and these words to pixels */
    __m512i bytes = _mm512_shuffle_epi8(_mm512_packus_epi16(ab, cd), k->pixels);
    bytes = _mm512_permutexvar_epi32(k->order, bytes);
    if (k->bounded)
        bytes = _mm512_xor_si512(_mm512_min_epu8(_mm512_max_epu8(bytes, k->least), k->most), k->flip);
    _mm512_storeu_si512(y, bytes);
    return sure;
}

/* Channels of four pixels (those not in `sure`) as the program has them; lanes are these pixels, twice. */
static __attribute__((noinline)) void again(const ortc_int_fixed *f, const ortc_int_block *b, uint32_t sure,
                                            const int32_t *sums, const uint8_t *residual, uint8_t *y)
{
    const ortc_int_steps *s = &f->steps;
    const __m256i pixels = _mm256_setr_epi32(0, 16, 32, 48, 0, 16, 32, 48);
    for (uint32_t left = 0xffff & ~sure; left; left &= left - 1) {
        const int c = __builtin_ctz(left);
        const __m256i sum = _mm256_add_epi32(_mm256_i32gather_epi32(sums + c, pixels, 4),
                                             _mm256_set1_epi32(b->before[c]));
        const uint8_t *r = f->adds ? residual + c : NULL;
        __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(b->scale[c])), more = v;
        v = clipped(_mm256_add_ps(v, _mm256_set1_ps(b->added[c])), &s->clip);
        if (s->to.type) v = quantised(v, &s->to);
        if (r) more = residual_of(f, _mm256_setr_epi32(r[0], r[16], r[32], r[48], 0, 0, 0, 0));
        uint32_t to[8];
        _mm256_storeu_si256((__m256i *)(void *)to, last_of(f, v, more));
        for (int i = 0; i < GROUP; i++) y[i * BLOCK + c] = (uint8_t)to[i];
    }
}

/* The last four begin earlier where they are not whole, and up to three pixels alone are taken from here, and
 * put back. */
INLINE void all(const int back, const int adds, const ortc_int_fixed *f, const ortc_int_block *b,
                const steady *k, size_t n, const int32_t *sums, const uint8_t *residual, uint8_t *y)
{
    int32_t some[GROUP * BLOCK];
    uint8_t other[2][GROUP * BLOCK];
    uint8_t *const to = y;
    const size_t few = n < GROUP ? n : 0;
    if (few) {
        memset(some, 0, sizeof some), memset(other, 0, sizeof other);
        memcpy(some, sums, few * sizeof *some * BLOCK);
        if (adds) memcpy(other[0], residual, few * BLOCK);
        sums = some, residual = other[0], y = other[1], n = GROUP;
    }
    for (size_t i = 0; i < n; i += GROUP) {
        const size_t at = (i + GROUP <= n ? i : n - GROUP) * BLOCK;
        const uint8_t *r = adds ? residual + at : NULL;
        const __mmask16 sure = four(back, adds, k, sums + at, r, y + at);
        if (__builtin_expect(sure != 0xffff, 0)) again(f, b, sure, sums + at, r, y + at);
    }
    if (few) memcpy(to, other[1], few * BLOCK);
}

static void to_bytes(const ortc_int_fixed *f, const ortc_int_block *b, size_t n, const int32_t *sums,
                     const void *residual, void *y)
{
    const __m128i pixels = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const steady k = {.factor = _mm512_loadu_ps(b->factor),
                      .bias = _mm512_loadu_ps(b->bias),
                      .lo = _mm512_set1_ps(f->lo),
                      .hi = _mm512_set1_ps(f->hi),
                      .next = _mm512_set1_ps(f->next),
                      .last_bias = _mm512_set1_ps(f->last_bias),
                      .residual = _mm512_set1_ps(f->residual),
                      .first = _mm512_set1_epi32(b->near),
                      .last = _mm512_set1_epi32(f->back ? f->last : b->near),
                      .integer = _mm512_set1_epi32(-65536),
                      .pixels = _mm512_broadcast_i32x4(pixels),
                      .order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                      .least = _mm512_set1_epi8((char)f->least),
                      .most = _mm512_set1_epi8((char)f->most),
                      .flip = _mm512_set1_epi8((char)f->flip),
                      .moved = f->moved,
                      .bounded = f->least > 0 || f->most < 255 || f->flip};
    switch (f->back * 3 + f->adds) {
    case 0: all(0, 0, f, b, &k, n, sums, residual, y); break;
    case 1: all(0, 1, f, b, &k, n, sums, residual, y); break;
    case 2: all(0, 2, f, b, &k, n, sums, residual, y); break;
    case 3: all(1, 0, f, b, &k, n, sums, residual, y); break;
    case 4: all(1, 1, f, b, &k, n, sums, residual, y); break;
    default: all(1, 2, f, b, &k, n, sums, residual, y);
    }
}

static void run(const ortc_int_fixed *f, const ortc_int_block *b, size_t n, const int32_t *sums,
                const void *residual, void *y)
{
    if (!f->again) {
        to_bytes(f, b, n, sums, residual, y);
        return;
    }
    uint8_t bytes[256 * BLOCK];
    to_bytes(f, b, n, sums, residual, bytes);
    const __m512 zero = _mm512_set1_ps(f->again_zero), scale = _mm512_set1_ps(f->again_scale);
    for (size_t i = 0; i < n; i++) {
        const __m128i q = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i * BLOCK));
        const __m512 v = _mm512_cvtepi32_ps(f->flip ? _mm512_cvtepi8_epi32(q) : _mm512_cvtepu8_epi32(q));
        _mm512_storeu_ps((float *)y + i * BLOCK, (v - zero) * scale);
    }
}

const ortc_int_blocks ortc_int_blocks_avx512 = {init, block, run};
