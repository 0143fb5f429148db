/* Sums of s32 to 8 bits in fixed point, blocks of 16 channels (integer_tail.h): its numbers, and what is done
 * step by step. The pixels are integer_tail_avx2.c's and integer_tail_avx512.c's.
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
 * (257 + b) + 6 residuals + bias + 4 * 257). What is added between the two is rounded in a sum, and in the
 * bias that it is a part of: three times that in all; what the first, or a sum behind its scale, is
 * multiplied with rounds one product more. b is a bias and what is added to sums, each by itself: they may
 * cancel each other. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "integer_tail_fixed.h"

#define INLINE static inline __attribute__((always_inline))
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

/* From the first that is rounded (less its zero point, if there are two), to results; it is multiplied with
 * `by`, and `more` is added (nothing: -0). */
INLINE __m256i last_of(const ortc_int_fixed *f, __m256 v, float by, float more, __m256 residual)
{
    const ortc_int_steps *s = &f->steps;
    if (s->to.type) {
        v = _mm256_sub_ps(v, _mm256_set1_ps(s->from.zero - s->to.zero));
        v = _mm256_mul_ps(v, _mm256_set1_ps(s->from.scale));
    }
    v = _mm256_add_ps(_mm256_mul_ps(v, _mm256_set1_ps(by)), _mm256_set1_ps(more));
    if (f->adds) v = _mm256_add_ps(v, residual);
    v = clipped(v, &s->last);
    return _mm256_cvtps_epi32(_mm256_add_ps(quantised(v, &s->y), _mm256_set1_ps(s->y.zero)));
}

/* Whether the last of two is right with this window: of all that the first, and a residual, can be. With the
 * window `known` it is, so that only what is near its edge, by twice as much as it says, is looked at. */
static int holds(const ortc_int_fixed *f, double window, double known, int32_t last, float last_bias,
                 double lo, double hi)
{
    enum { BYTES = 256, STEP = 8 };
    float numbers[BYTES] = {0}; /* of residuals */
    for (int r = 0; r < (f->adds ? BYTES : 0); r++)
        numbers[r] = (float)(f->adds == 1 || r < 128 ? r : r - 256);
    const __m256i least = _mm256_set1_epi32(f->least), most = _mm256_set1_epi32(f->most),
                  flip = _mm256_set1_epi32(f->flip), near = _mm256_set1_epi32(last),
                  behind = _mm256_set1_epi32((int32_t)(known - window)),
                  far = _mm256_set1_epi32(0xffff & ~(4 * (int32_t)known - 1));
    for (double q = lo; q <= hi; q++) {
        const __m256 first = _mm256_set1_ps((float)q),
                     v = _mm256_fmadd_ps(_mm256_set1_ps((float)((q + f->zero) * UNITS)),
                                         _mm256_set1_ps(f->next), _mm256_set1_ps(last_bias));
        for (int r = 0; r < (f->adds ? BYTES : 1); r += STEP) {
            const __m256 number = _mm256_loadu_ps(numbers + r);
            const __m256i sum = _mm256_cvtps_epi32(_mm256_fmadd_ps(number, _mm256_set1_ps(f->residual), v)),
                          edge = _mm256_and_si256(_mm256_add_epi32(sum, behind), far),
                          at_edge = _mm256_cmpeq_epi32(edge, _mm256_setzero_si256());
            if (_mm256_testz_si256(at_edge, at_edge)) continue;
            const __m256i bytes = _mm256_add_epi32(_mm256_set1_epi32(r),
                                                   _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            __m256i y = _mm256_srai_epi32(sum, 16);
            y = _mm256_xor_si256(_mm256_min_epi32(_mm256_max_epi32(y, least), most), flip);
            const __m256i right = _mm256_and_si256(last_of(f, first, 1, -0.0f, residual_of(f, bytes)),
                                                   _mm256_set1_epi32(255));
            const __m256i unsure = _mm256_cmpeq_epi32(_mm256_and_si256(sum, near), _mm256_setzero_si256());
            if (!_mm256_testc_si256(_mm256_or_si256(unsure, _mm256_cmpeq_epi32(y, right)),
                                    _mm256_set1_epi32(-1)))
                return 0;
        }
    }
    return 1;
}

__attribute__((cold)) int ortc_int_fixed_init(const ortc_int_pass *p, int adds, ortc_int_fixed *out)
{
    const ortc_int_steps *s = p->steps;
    const int back = s->to.type != 0, own = back || adds, behind = own || p->by.data || p->more.data;
    const ortc_int_scaled *first = back ? &s->to : &s->y;
    const ortc_int_bounds *bounds = behind ? &s->last : &s->clip;
    const double low = s->y.type == ORTC_I8 ? -128 : 0, next = back ? s->from.scale / (double)s->y.scale : 0,
                 residual = adds ? s->residual.scale / (double)s->y.scale : 0,
                 zero = s->y.zero - low - (adds ? residual * s->residual.zero : 0),
                 moved = back ? (s->from.zero - s->to.zero) * next : 0;
    double last = 0, window = 0;
    if (!p->ends || p->before.row || p->scale.row || p->bias.row || p->by.row || p->more.row ||
        !is_usual(first->scale) || !is_usual(s->y.scale) || (adds && s->residual.type == ORTC_F32) ||
        (behind && !back && (s->clip.lo > -INFINITY || s->clip.hi < INFINITY)) || !(next >= 0) ||
        (!back && p->bias.data && (p->by.data || p->more.data)) || !(residual >= 0))
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
    if (!behind) out->steps.last = (ortc_int_bounds){-INFINITY, INFINITY};
    if (back) {
        out->lo = (float)((lo + to_middle) * UNITS + UNITS / 2);
        out->hi = (float)((hi + to_middle) * UNITS + UNITS / 2);
        out->next = (float)next;
        /* A smaller window than what is known of roundings asks for may do. */
        out->last = mask_of(last, &window);
        const double most = window;
        out->farthest = 2 * fabs(moved) + (3 * 255 * residual + fabs(zero) + 4 * 257);
        out->between = between;
        out->shift = s->from.zero - s->to.zero + to_middle;
        out->start = zero;
        for (window = p->by.data || p->more.data ? most : 1; window <= most; window *= 2) {
            out->last = 0xffff & ~(2 * (int32_t)window - 1);
            out->last_bias = (float)((zero - out->shift * next) * UNITS + UNITS / 2 + window);
            if (window == most || holds(out, window, most, out->last, out->last_bias, lo, hi)) break;
        }
    }
    return 1;
}

/* Four numbers of a vector from i on. */
INLINE __m256d some(const ortc_int_vector *v, int is_int, size_t i, double otherwise)
{
    const char *p = (const char *)v->data + 4 * i * v->col;
    if (!v->data) return _mm256_set1_pd(otherwise);
    __m128i bits;
    if (v->col) {
        bits = _mm_loadu_si128((const __m128i *)(const void *)p);
    } else {
        int32_t one;
        memcpy(&one, p, sizeof one);
        bits = _mm_set1_epi32(one);
    }
    return is_int ? _mm256_cvtepi32_pd(bits) : _mm256_cvtps_pd(_mm_castsi128_ps(bits));
}

INLINE __m256d magnitude(__m256d v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }

/* Whether one is not below `most`: a NaN is not. */
INLINE int reaches(__m256d v, double most)
{
    return _mm256_movemask_pd(_mm256_cmp_pd(v, _mm256_set1_pd(most), _CMP_NLT_UQ));
}

INLINE double largest(__m256d v)
{
    double d[4];
    _mm256_storeu_pd(d, v);
    return fmax(fmax(d[0], d[1]), fmax(d[2], d[3]));
}

/* Of a block what is behind the first that is rounded, or else behind scale and bias: the last of two. The
 * program rounds one product more where there is `by`. */
static int last_of_block(const ortc_int_fixed *f, const ortc_int_pass *p, ortc_int_block *out)
{
    double next[ORTC_INT_BLOCK], more[ORTC_INT_BLOCK], farthest = 0, window;
    out->last = f->last;
    for (size_t i = 0; i < ORTC_INT_BLOCK; i++) {
        out->next[i] = f->next, out->last_bias[i] = f->last_bias;
        out->by[i] = 1, out->more[i] = -0.0f;
    }
    if (!p->by.data && !p->more.data) return 1;
    for (size_t i = 0; i < ORTC_INT_BLOCK; i++) {
        if (p->by.data) memcpy(&out->by[i], (const char *)p->by.data + 4 * i * p->by.col, 4);
        if (p->more.data) memcpy(&out->more[i], (const char *)p->more.data + 4 * i * p->more.col, 4);
    }
    if (!f->back) return 1;
    for (size_t i = 0; i < ORTC_INT_BLOCK; i++) {
        next[i] = f->steps.from.scale / (double)f->steps.y.scale * out->by[i];
        more[i] = out->more[i] / (double)f->steps.y.scale;
        const double far = f->farthest + 4 * f->between * fabs(next[i]) + 3 * fabs(more[i]) +
                           2 * fabs(f->shift * next[i]);
        if (!(far < LARGEST)) return 0; /* a NaN, too */
        farthest = fmax(farthest, far);
    }
    out->last = mask_of(farthest, &window);
    for (size_t i = 0; i < ORTC_INT_BLOCK; i++) {
        out->next[i] = (float)next[i];
        out->last_bias[i] = (float)((f->start - f->shift * next[i] + more[i]) * UNITS + UNITS / 2 + window);
    }
    return 1;
}

int ortc_int_fixed_block(const ortc_int_fixed *f, const ortc_int_pass *p, ortc_int_block *out)
{
    enum { AT_ONCE = 4 };
    const ortc_int_vector none = {NULL, 0, 0}, by = f->back ? none : p->by, more = f->back ? none : p->more;
    const __m256d all = _mm256_set1_pd(257), unit = _mm256_set1_pd(f->unit), units = _mm256_set1_pd(UNITS);
    __m256d most = _mm256_setzero_pd(), biases[ORTC_INT_BLOCK / AT_ONCE];
    for (size_t i = 0; i < ORTC_INT_BLOCK; i += AT_ONCE) {
        const __m256d scale = some(&p->scale, 0, i, 1), before = some(&p->before, 1, i, 0),
                      factor = scale * some(&by, 0, i, 1) * unit, first = before * factor,
                      added = (some(&p->bias, 0, i, 0) + some(&more, 0, i, 0)) * unit,
                      b = magnitude(first) + magnitude(added), reach = all + b + _mm256_set1_pd(f->beside),
                      sums = magnitude(factor) * _mm256_set1_pd(0x1p24);
        __m256d here = _mm256_set1_pd(f->off) + _mm256_set1_pd(3) * b;
        here = _mm256_blendv_pd(here, here + _mm256_set1_pd(4) * (reach + b),
                                _mm256_cmp_pd(sums, reach, _CMP_NGT_UQ));
        if (by.data) here += reach;
        if (reaches(here, LARGEST) || reaches(magnitude(before), 0x1p30) || reaches(sums, LARGEST * 0x1p24))
            return 0;
        most = _mm256_max_pd(most, here);
        biases[i / AT_ONCE] = first + added;
        _mm_storeu_ps(out->factor + i, _mm256_cvtpd_ps(factor * units));
        _mm_storeu_ps(out->scale + i, _mm256_cvtpd_ps(scale));
        _mm_storeu_ps(out->added + i, _mm256_cvtpd_ps(some(&p->bias, 0, i, -0.0)));
        _mm_storeu_si128((__m128i *)(void *)(out->before + i), _mm256_cvtpd_epi32(before));
    }
    double window;
    out->near = mask_of(largest(most), &window);
    const __m256d zero = _mm256_set1_pd(f->zero), half = _mm256_set1_pd(UNITS / 2 + window);
    for (size_t i = 0; i < ORTC_INT_BLOCK; i += AT_ONCE)
        _mm_storeu_ps(out->bias + i, _mm256_cvtpd_ps((biases[i / AT_ONCE] + zero) * units + half));
    return last_of_block(f, p, out);
}

/* ---- Again --------------------------------------------------------------------------------------------- */

void ortc_int_fixed_again(const ortc_int_fixed *f, const ortc_int_block *b, uint32_t sure,
                          const int32_t *sums, size_t ld, const uint8_t *residual, uint8_t *y, size_t y_ld)
{
    const ortc_int_steps *s = &f->steps;
    for (uint32_t left = 0xffff & ~sure; left; left &= left - 1) {
        const int c = __builtin_ctz(left);
        const int32_t *from = sums + c;
        const __m256i pixels = _mm256_setr_epi32(from[0], from[ld], from[2 * ld], from[3 * ld], 0, 0, 0, 0),
                      sum = _mm256_add_epi32(pixels, _mm256_set1_epi32(b->before[c]));
        const uint8_t *r = f->adds ? residual + c : NULL;
        __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(b->scale[c])), more = v;
        v = clipped(_mm256_add_ps(v, _mm256_set1_ps(b->added[c])), &s->clip);
        if (s->to.type) v = quantised(v, &s->to);
        if (r) more = residual_of(f, _mm256_setr_epi32(r[0], r[y_ld], r[2 * y_ld], r[3 * y_ld], 0, 0, 0, 0));
        uint32_t to[8];
        _mm256_storeu_si256((__m256i *)(void *)to, last_of(f, v, b->by[c], b->more[c], more));
        for (size_t i = 0; i < ORTC_INT_GROUP; i++) y[i * y_ld + c] = (uint8_t)to[i];
    }
}
