/* kernels/common/vector/vec_avx512.h: AVX-512 F, BW, DQ, VL. Masks are its own registers. */
#include <immintrin.h>

#define V_LANES 16
V_TYPES(V_LANES)
typedef __mmask16 vm32;
typedef __mmask8 vm64;

/* Lanes h .. in the first places; what follows them is unspecified. */
#define v_down(v, h) \
    __builtin_shufflevector(v, v, (h)&15, ((h) + 1) & 15, ((h) + 2) & 15, ((h) + 3) & 15, ((h) + 4) & 15, \
                            ((h) + 5) & 15, ((h) + 6) & 15, ((h) + 7) & 15, ((h) + 8) & 15, ((h) + 9) & 15, \
                            ((h) + 10) & 15, ((h) + 11) & 15, ((h) + 12) & 15, ((h) + 13) & 15, \
                            ((h) + 14) & 15, ((h) + 15) & 15)
/* Every other lane of a, then of b. */
#define v_even(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)

#define v_fma v_fma
VFN vf32 v_fma(vf32 a, vf32 b, vf32 c) { return _mm512_fmadd_ps(a, b, c); }
VFN vf64 v_fma_f64(vf64 a, vf64 b, vf64 c) { return _mm512_fmadd_pd(a, b, c); }
#define v_lt v_lt
VFN vm32 v_lt(vf32 a, vf32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
VFN vm32 v_le(vf32 a, vf32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
VFN vm32 v_eq(vf32 a, vf32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
VFN vm32 v_ne(vf32 a, vf32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
VFN vm32 v_lt_i32(vi32 a, vi32 b) { return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b); }
VFN vm32 v_eq_i32(vi32 a, vi32 b) { return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b); }
VFN vm32 v_lt_u32(vu32 a, vu32 b) { return _mm512_cmplt_epu32_mask((__m512i)a, (__m512i)b); }
VFN vm64 v_lt_f64(vf64 a, vf64 b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
VFN vm64 v_eq_f64(vf64 a, vf64 b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
VFN vm64 v_lt_i64(vi64 a, vi64 b) { return _mm512_cmplt_epi64_mask((__m512i)a, (__m512i)b); }
VFN vm64 v_eq_i64(vi64 a, vi64 b) { return _mm512_cmpeq_epi64_mask((__m512i)a, (__m512i)b); }
#define v_sel v_sel
VFN vf32 v_sel(vm32 m, vf32 a, vf32 b) { return _mm512_mask_mov_ps(b, m, a); }
VFN vi32 v_sel_i32(vm32 m, vi32 a, vi32 b) { return (vi32)_mm512_mask_mov_epi32((__m512i)b, m, (__m512i)a); }
VFN vf64 v_sel_f64(vm64 m, vf64 a, vf64 b) { return _mm512_mask_mov_pd(b, m, a); }
VFN vi64 v_sel_i64(vm64 m, vi64 a, vi64 b) { return (vi64)_mm512_mask_mov_epi64((__m512i)b, m, (__m512i)a); }
#define v_turn v_turn
VFN void v_turn(vf32 r[V_LANES])
{
    vf32 t[V_LANES];
    V_UNROLL for (int i = 0; i < 16; i += 2)
    {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    V_UNROLL for (int i = 0; i < 16; i += 4)
    {
        r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[i + 2])));
        r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[i + 2])));
        r[i + 2] = _mm512_castpd_ps(
            _mm512_unpacklo_pd(_mm512_castps_pd(t[i + 1]), _mm512_castps_pd(t[i + 3])));
        r[i + 3] = _mm512_castpd_ps(
            _mm512_unpackhi_pd(_mm512_castps_pd(t[i + 1]), _mm512_castps_pd(t[i + 3])));
    }
    V_UNROLL for (int i = 0; i < 4; i++)
    {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    V_UNROLL for (int i = 0; i < 4; i++)
    {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
}
/* The table is 128 words, of which two permutations give those of 32 bytes, by bits 1 to 6 and 7; bit 0 says
 * which half of a word it is. */
VFN __m512i v_look_up_words(const __m512i *t, __m512i byte)
{
    const __m512i word = _mm512_srli_epi16(byte, 1);
    const __m512i low = _mm512_permutex2var_epi16(t[0], word, t[1]),
                  high = _mm512_permutex2var_epi16(t[2], word, t[3]);
    const __m512i both = _mm512_mask_mov_epi16(low, _mm512_test_epi16_mask(byte, _mm512_set1_epi16(128)),
                                               high);
    return _mm512_srlv_epi16(both, _mm512_slli_epi16(_mm512_and_si512(byte, _mm512_set1_epi16(1)), 3));
}
#define v_look_up v_look_up
VFN void v_look_up(size_t n, const uint8_t *table, const uint8_t *x, uint8_t *y)
{
    const __m512i low = _mm512_set1_epi16(0xff);
    const __m512i t[4] = {_mm512_loadu_si512(table), _mm512_loadu_si512(table + 64),
                          _mm512_loadu_si512(table + 128), _mm512_loadu_si512(table + 192)};
    for (size_t i = 0; i < n; i += 64) {
        const int all = n - i >= 64;
        const __mmask64 in = all ? ~(__mmask64)0 : ((__mmask64)1 << (n - i)) - 1;
        const __m512i v = all ? _mm512_loadu_si512(x + i) : _mm512_maskz_loadu_epi8(in, x + i);
        const __m512i even = v_look_up_words(t, _mm512_and_si512(v, low)),
                      odd = v_look_up_words(t, _mm512_srli_epi16(v, 8));
        const __m512i to = _mm512_or_si512(_mm512_and_si512(even, low), _mm512_slli_epi16(odd, 8));
        if (all)
            _mm512_storeu_si512(y + i, to);
        else
            _mm512_mask_storeu_epi8(y + i, in, to);
    }
}
#define v_any v_any
VFN int v_any(vm32 m) { return m != 0; }
#define v_first v_first
VFN vm32 v_first(size_t n) { return n >= V_LANES ? (vm32)0xffff : (vm32)((1u << n) - 1u); }
#define v_max v_max
VFN vf32 v_max(vf32 a, vf32 b) { return _mm512_max_ps(a, b); }
VFN vf32 v_min(vf32 a, vf32 b) { return _mm512_min_ps(a, b); }
#define v_max_nan v_max_nan
VFN vf32 v_max_nan(vf32 a, vf32 b)
{
    return _mm512_mask_max_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b);
}
VFN vf32 v_min_nan(vf32 a, vf32 b)
{
    return _mm512_mask_min_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b);
}
#define v_max_f64 v_max_f64
VFN vf64 v_max_f64(vf64 a, vf64 b) { return _mm512_max_pd(a, b); }
VFN vf64 v_min_f64(vf64 a, vf64 b) { return _mm512_min_pd(a, b); }
#define v_sqrt v_sqrt
VFN vf32 v_sqrt(vf32 a) { return _mm512_sqrt_ps(a); }
#define v_rint v_rint
VFN vf32 v_rint(vf32 x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
VFN vf32 v_floor(vf32 x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
VFN vf32 v_ceil(vf32 x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
VFN vf32 v_trunc(vf32 x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
#define v_scale2 v_scale2
VFN vf32 v_scale2(vf32 p, vf32 n, vi32 ni) { return (void)ni, _mm512_scalef_ps(p, n); }
#define v_pick_8 v_pick_8
VFN vf32 v_pick_8(const float table[8], vi32 i)
{
    const __m512 both = _mm512_broadcast_f32x8(_mm256_loadu_ps(table));
    return _mm512_permutexvar_ps((__m512i)i, both);
}
#define v_f64_lo v_f64_lo
VFN vf64 v_f64_lo(vf32 x) { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
VFN vf64 v_f64_hi(vf32 x) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)); }
VFN vf32 v_f32_of_f64(vf64 lo, vf64 hi)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(lo)), _mm512_cvtpd_ps(hi), 1);
}

#define v_load_f32 v_load_f32
VFN vf32 v_load_f32(const float *p, size_t n)
{
    return n >= V_LANES ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(v_first(n), p);
}
VFN void v_store_f32(float *p, vf32 v, size_t n)
{
    if (n >= V_LANES)
        _mm512_storeu_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, v_first(n), v);
}
#define v_load_masked_f32 v_load_masked_f32
VFN vf32 v_load_masked_f32(const float *p, vm32 m)
{
    return m == 0xffff ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(m, p);
}
VFN void v_store_masked_f32(float *p, vf32 v, vm32 m)
{
    if (m == 0xffff)
        _mm512_storeu_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, m, v);
}
VFN vi32 v_load_i32(const int32_t *p, size_t n)
{
    return (vi32)(n >= V_LANES ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi32(v_first(n), p));
}
/* Masked stores are slow to be read again, and of some processors slow altogether. */
VFN void v_store_i32(int32_t *p, vi32 v, size_t n)
{
    if (n >= V_LANES)
        _mm512_storeu_si512(p, (__m512i)v);
    else
        _mm512_mask_storeu_epi32(p, v_first(n), (__m512i)v);
}
#define v_load_i8 v_load_i8
VFN vi32 v_load_i8(const int8_t *p, size_t n)
{
    return (vi32)_mm512_cvtepi8_epi32(n >= V_LANES ? _mm_loadu_si128((const __m128i *)(const void *)p)
                                                   : _mm_maskz_loadu_epi8(v_first(n), p));
}
VFN vi32 v_load_u8(const uint8_t *p, size_t n)
{
    return (vi32)_mm512_cvtepu8_epi32(n >= V_LANES ? _mm_loadu_si128((const __m128i *)(const void *)p)
                                                   : _mm_maskz_loadu_epi8(v_first(n), p));
}
VFN vi32 v_load_i16(const int16_t *p, size_t n)
{
    return (vi32)_mm512_cvtepi16_epi32(n >= V_LANES ? _mm256_loadu_si256((const __m256i *)(const void *)p)
                                                    : _mm256_maskz_loadu_epi16(v_first(n), p));
}
VFN vi32 v_load_u16(const uint16_t *p, size_t n)
{
    return (vi32)_mm512_cvtepu16_epi32(n >= V_LANES ? _mm256_loadu_si256((const __m256i *)(const void *)p)
                                                    : _mm256_maskz_loadu_epi16(v_first(n), p));
}
VFN void v_store_i8(int8_t *p, vi32 v, size_t n)
{
    if (n >= V_LANES)
        _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8((__m512i)v));
    else
        _mm_mask_storeu_epi8(p, v_first(n), _mm512_cvtepi32_epi8((__m512i)v));
}
VFN void v_store_u8(uint8_t *p, vi32 v, size_t n)
{
    if (n >= V_LANES)
        _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8((__m512i)v));
    else
        _mm_mask_storeu_epi8(p, v_first(n), _mm512_cvtepi32_epi8((__m512i)v));
}
#define v_store_bool v_store_bool
VFN void v_store_bool(uint8_t *p, vm32 m, size_t n)
{
    _mm_mask_storeu_epi8(p, v_first(n), _mm_maskz_set1_epi8(m, 1));
}
VFN void v_store_i16(int16_t *p, vi32 v, size_t n)
{
    if (n >= V_LANES)
        _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16((__m512i)v));
    else
        _mm256_mask_storeu_epi16(p, v_first(n), _mm512_cvtepi32_epi16((__m512i)v));
}
VFN void v_store_u16(uint16_t *p, vi32 v, size_t n)
{
    if (n >= V_LANES)
        _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16((__m512i)v));
    else
        _mm256_mask_storeu_epi16(p, v_first(n), _mm512_cvtepi32_epi16((__m512i)v));
}
#define v_max_u16 v_max_u16
VFN vi32 v_max_u16(vi32 a, vi32 b) { return (vi32)_mm512_max_epu16((__m512i)a, (__m512i)b); }
VFN vi32 v_min_u16(vi32 a, vi32 b) { return (vi32)_mm512_min_epu16((__m512i)a, (__m512i)b); }
VFN __m512i upper_words(void) /* of two registers; of one, twice */
{
    return _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27, 25,
                            23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
}
VFN vi32 v_upper_halves(vf32 a, vf32 b)
{
    return (vi32)_mm512_permutex2var_epi16((__m512i)a, upper_words(), (__m512i)b);
}
/* Half of the operations: a carry where the last bit that stays is set, and the upper halves picked. */
#define v_store_bf16 v_store_bf16
VFN void v_store_bf16(uint16_t *p, vf32 v, size_t n)
{
    const __m512i x = (__m512i)v, half = _mm512_set1_epi32(0x7fff), last = _mm512_set1_epi32(0x10000);
    __m512i up = _mm512_add_epi32(x, half);
    up = _mm512_mask_add_epi32(up, _mm512_test_epi32_mask(x, last), up, _mm512_set1_epi32(1));
    up = _mm512_mask_or_epi32(up, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), x, _mm512_set1_epi32(0x400000));
    const __m256i to = _mm512_castsi512_si256(_mm512_permutexvar_epi16(upper_words(), up));
    if (n >= V_LANES)
        _mm256_storeu_si256((__m256i *)(void *)p, to);
    else
        _mm256_mask_storeu_epi16(p, v_first(n), to);
}
#define v_load_f16 v_load_f16
#define v_h2f v_h2f
VFN vf32 v_load_f16(const uint16_t *p, size_t n)
{
    return _mm512_cvtph_ps(n >= V_LANES ? _mm256_loadu_si256((const __m256i *)(const void *)p)
                                        : _mm256_maskz_loadu_epi16(v_first(n), p));
}
VFN void v_store_f16(uint16_t *p, vf32 v, size_t n)
{
    const __m256i to = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (n >= V_LANES)
        _mm256_storeu_si256((__m256i *)(void *)p, to);
    else
        _mm256_mask_storeu_epi16(p, v_first(n), to);
}
#define v_load_f64 v_load_f64
VFN vf32 v_load_f64(const double *p, size_t n)
{
    const vm32 m = v_first(n);
    if (n >= V_LANES) return v_f32_of_f64(_mm512_loadu_pd(p), _mm512_loadu_pd(p + 8));
    return v_f32_of_f64(_mm512_maskz_loadu_pd((__mmask8)m, p),
                        _mm512_maskz_loadu_pd((__mmask8)(m >> 8), p + 8));
}
VFN void v_store_f64(double *p, vf32 v, size_t n)
{
    const vm32 m = v_first(n);
    if (n >= V_LANES) {
        _mm512_storeu_pd(p, v_f64_lo(v)), _mm512_storeu_pd(p + 8, v_f64_hi(v));
    } else {
        _mm512_mask_storeu_pd(p, (__mmask8)m, v_f64_lo(v));
        _mm512_mask_storeu_pd(p + 8, (__mmask8)(m >> 8), v_f64_hi(v));
    }
}
VFN vi32 v_load_i64(const int64_t *p, size_t n)
{
    const vm32 m = v_first(n);
    const int all = n >= V_LANES;
    const __m512i lo = all ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi64((__mmask8)m, p),
                  hi = all ? _mm512_loadu_si512(p + 8) : _mm512_maskz_loadu_epi64((__mmask8)(m >> 8), p + 8);
    return (vi32)_mm512_inserti32x8(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(lo)),
                                    _mm512_cvtepi64_epi32(hi), 1);
}
VFN void v_store_i64(int64_t *p, vi32 v, size_t n)
{
    const vm32 m = v_first(n);
    const __m512i lo = _mm512_cvtepi32_epi64(_mm512_castsi512_si256((__m512i)v)),
                  hi = _mm512_cvtepi32_epi64(_mm512_extracti32x8_epi32((__m512i)v, 1));
    if (n >= V_LANES) {
        _mm512_storeu_si512(p, lo), _mm512_storeu_si512(p + 8, hi);
    } else {
        _mm512_mask_storeu_epi64(p, (__mmask8)m, lo);
        _mm512_mask_storeu_epi64(p + 8, (__mmask8)(m >> 8), hi);
    }
}
#define v_gather_f32 v_gather_f32
VFN vf32 v_gather_f32(const float *base, vi32 index, size_t n)
{
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), v_first(n), (__m512i)index, base, 4);
}
#define v_pick_i32 v_pick_i32
VFN vi32 v_pick_i32(vi32 v, vi32 index) { return (vi32)_mm512_permutexvar_epi32((__m512i)index, (__m512i)v); }
#define v_f32_of_low4 v_f32_of_low4
VFN vf32 v_f32_of_low4(vi32 x) /* the upper bits of an index are not looked at */
{
    const __m512 values = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    return _mm512_permutexvar_ps((__m512i)x, values);
}
#define v_dot_pairs v_dot_pairs
VFN vi32 v_dot_pairs(vi32 sum, vi32 a, vi32 x, vi32 b, vi32 y)
{
    const __m512i both = _mm512_add_epi16(_mm512_maddubs_epi16((__m512i)a, (__m512i)x),
                                          _mm512_maddubs_epi16((__m512i)b, (__m512i)y));
    return sum + (vi32)_mm512_madd_epi16(both, _mm512_set1_epi16(1));
}
#define v_dot_bytes v_dot_bytes
VFN vi32 v_dot_bytes(vi32 sum, vi32 a, vi32 x) /* by halves, whose pairs of products 16 bits hold */
{
    const __m512i half = _mm512_set1_epi8(15), low = _mm512_and_si512((__m512i)a, half),
                  high = _mm512_and_si512(_mm512_srli_epi16((__m512i)a, 4), half);
    sum += (vi32)_mm512_madd_epi16(_mm512_maddubs_epi16(low, (__m512i)x), _mm512_set1_epi16(1));
    return sum + (vi32)_mm512_madd_epi16(_mm512_maddubs_epi16(high, (__m512i)x), _mm512_set1_epi16(16));
}
#define v_repeat_f32 v_repeat_f32
VFN vf32 v_repeat_f32(const float *p, size_t times, size_t n)
{
    const int by = __builtin_ctzll(times);
    const size_t count = ((n < V_LANES ? n : V_LANES) + times - 1) >> by;
    const __m512i at = _mm512_srli_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                                           15),
                                         (unsigned)by);
    __m512 some; /* without a mask, since a Zen 5 foresees no memory that is read with one */
    switch (count) {
    case 1: return _mm512_maskz_broadcastss_ps(v_first(n), _mm_load_ss(p));
    case 2:
        some = _mm512_castps128_ps512(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)p)));
        break;
    case 4: some = _mm512_castps128_ps512(_mm_loadu_ps(p)); break;
    case 8: some = _mm512_castps256_ps512(_mm256_loadu_ps(p)); break;
    default: some = _mm512_maskz_loadu_ps(v_first(count), p);
    }
    return _mm512_maskz_permutexvar_ps(v_first(n), at, some);
}
