/* kernels/common/vector/vec_avx2.h: AVX2 with FMA and F16C. */
#include <immintrin.h>

#define V_LANES 8
V_TYPES(V_LANES)
V_LANE_MASKS

/* Lanes h .. in the first places; what follows them is unspecified. */
#define v_down(v, h) \
    __builtin_shufflevector(v, v, (h)&7, ((h) + 1) & 7, ((h) + 2) & 7, ((h) + 3) & 7, ((h) + 4) & 7, \
                            ((h) + 5) & 7, ((h) + 6) & 7, ((h) + 7) & 7)
/* Every other lane of a, then of b. */
#define v_even(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)

#define v_fma v_fma
VFN vf32 v_fma(vf32 a, vf32 b, vf32 c) { return _mm256_fmadd_ps(a, b, c); }
VFN vf64 v_fma_f64(vf64 a, vf64 b, vf64 c) { return _mm256_fmadd_pd(a, b, c); }
#define v_max v_max
VFN vf32 v_max(vf32 a, vf32 b) { return _mm256_max_ps(a, b); }
VFN vf32 v_min(vf32 a, vf32 b) { return _mm256_min_ps(a, b); }
#define v_max_f64 v_max_f64
VFN vf64 v_max_f64(vf64 a, vf64 b) { return _mm256_max_pd(a, b); }
VFN vf64 v_min_f64(vf64 a, vf64 b) { return _mm256_min_pd(a, b); }
#define v_sel v_sel
VFN vf32 v_sel(vm32 m, vf32 a, vf32 b) { return _mm256_blendv_ps(b, a, (__m256)m); }
VFN vi32 v_sel_i32(vm32 m, vi32 a, vi32 b)
{
    return (vi32)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)m);
}
VFN vf64 v_sel_f64(vm64 m, vf64 a, vf64 b) { return _mm256_blendv_pd(b, a, (__m256d)m); }
VFN vi64 v_sel_i64(vm64 m, vi64 a, vi64 b)
{
    return (vi64)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)m);
}
#define v_turn v_turn
VFN void v_turn(vf32 r[V_LANES])
{
    vf32 t[V_LANES];
    V_UNROLL for (int i = 0; i < 8; i += 2)
    {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    V_UNROLL for (int i = 0; i < 8; i += 4)
    {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    V_UNROLL for (int i = 0; i < 4; i++)
    {
        t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
    V_UNROLL for (int i = 0; i < 8; i++) r[i] = t[i];
}
#define v_any v_any
VFN int v_any(vm32 m) { return _mm256_movemask_ps((__m256)m) != 0; }
#define v_first v_first
VFN vm32 v_first(size_t n)
{
    return (vm32)_mm256_cmpgt_epi32(_mm256_set1_epi32(n < V_LANES ? (int)n : V_LANES),
                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#define v_sqrt v_sqrt
VFN vf32 v_sqrt(vf32 a) { return _mm256_sqrt_ps(a); }
#define v_rint v_rint
VFN vf32 v_rint(vf32 x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
VFN vf32 v_floor(vf32 x) { return _mm256_floor_ps(x); }
VFN vf32 v_ceil(vf32 x) { return _mm256_ceil_ps(x); }
VFN vf32 v_trunc(vf32 x) { return _mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
#define v_pick_8 v_pick_8
VFN vf32 v_pick_8(const float table[8], vi32 i)
{
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)i);
}
#define v_f64_lo v_f64_lo
VFN vf64 v_f64_lo(vf32 x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
VFN vf64 v_f64_hi(vf32 x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }
VFN vf32 v_f32_of_f64(vf64 lo, vf64 hi) { return _mm256_set_m128(_mm256_cvtpd_ps(hi), _mm256_cvtpd_ps(lo)); }

/* Masked stores are microcoded on AMD's cores and still faster than lane by lane (2 to 3 ns against 10). */
#define v_load_f32 v_load_f32
VFN vf32 v_load_f32(const float *p, size_t n)
{
    return n >= V_LANES ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, (__m256i)v_first(n));
}
VFN void v_store_f32(float *p, vf32 v, size_t n)
{
    if (n >= V_LANES)
        _mm256_storeu_ps(p, v);
    else
        _mm256_maskstore_ps(p, (__m256i)v_first(n), v);
}
#define v_load_i8 v_load_i8
VFN __m128i v_some_bytes(const void *p, size_t n, size_t of) /* n of so many, up to 16 bytes; 0 behind them */
{
    uint8_t t[16] = {0};
    if (n >= of) return of == 8 ? _mm_loadl_epi64((const __m128i *)p) : _mm_loadu_si128((const __m128i *)p);
    memcpy(t, p, n);
    return _mm_loadu_si128((const __m128i *)(const void *)t);
}
VFN vi32 v_load_i8(const int8_t *p, size_t n) { return (vi32)_mm256_cvtepi8_epi32(v_some_bytes(p, n, 8)); }
VFN vi32 v_load_u8(const uint8_t *p, size_t n) { return (vi32)_mm256_cvtepu8_epi32(v_some_bytes(p, n, 8)); }
VFN vi32 v_load_i16(const int16_t *p, size_t n)
{
    return (vi32)_mm256_cvtepi16_epi32(v_some_bytes(p, 2 * n, 16));
}
VFN vi32 v_load_u16(const uint16_t *p, size_t n)
{
    return (vi32)_mm256_cvtepu16_epi32(v_some_bytes(p, 2 * n, 16));
}
VFN void v_store_i8(int8_t *p, vi32 v, size_t n)
{
    const __m128i lowest = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i low = _mm256_shuffle_epi8((__m256i)v, _mm256_broadcastsi128_si256(lowest));
    const __m128i all = _mm_unpacklo_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    memcpy(p, &all, n >= V_LANES ? V_LANES : n);
}
VFN void v_store_u8(uint8_t *p, vi32 v, size_t n) { v_store_i8((int8_t *)p, v, n); }
VFN void v_store_i16(int16_t *p, vi32 v, size_t n)
{
    const __m128i lower = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i low = _mm256_shuffle_epi8((__m256i)v, _mm256_broadcastsi128_si256(lower));
    const __m128i all = _mm256_castsi256_si128(_mm256_permute4x64_epi64(low, 0x08));
    memcpy(p, &all, n >= V_LANES ? sizeof all : n * sizeof *p);
}
VFN void v_store_u16(uint16_t *p, vi32 v, size_t n) { v_store_i16((int16_t *)p, v, n); }
/* A shuffle of bytes looks 16 up, and gives 0 where the index is negative. An index below 128 that goes down
 * by 16 at a time is negative once its own line of the table is past: what lines differ by adds up to it. */
#define v_look_up v_look_up
VFN void v_look_up(size_t n, const uint8_t *table, const uint8_t *x, uint8_t *y)
{
    const __m256i line = _mm256_set1_epi8(16), upper = _mm256_set1_epi8((char)0x80);
    __m256i t[16];
    for (int i = 0; i < 16; i++)
        t[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(table + 16 * i)));
    for (int i = 15; i > 0; i--)
        if (i != 8) t[i] = _mm256_xor_si256(t[i], t[i - 1]);
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(x + i)),
                high = _mm256_xor_si256(low, upper),
                v = _mm256_xor_si256(_mm256_shuffle_epi8(t[0], low), _mm256_shuffle_epi8(t[8], high));
#pragma GCC unroll 8
        for (int k = 1; k < 8; k++) {
            low = _mm256_subs_epi8(low, line), high = _mm256_subs_epi8(high, line);
            v = _mm256_xor_si256(v, _mm256_xor_si256(_mm256_shuffle_epi8(t[k], low),
                                                     _mm256_shuffle_epi8(t[k + 8], high)));
        }
        _mm256_storeu_si256((__m256i *)(void *)(y + i), v);
    }
    for (; i < n; i++) y[i] = table[x[i]];
}
#define v_load_masked_f32 v_load_masked_f32
VFN vf32 v_load_masked_f32(const float *p, vm32 m) { return _mm256_maskload_ps(p, (__m256i)m); }
VFN void v_store_masked_f32(float *p, vf32 v, vm32 m) { _mm256_maskstore_ps(p, (__m256i)m, v); }
VFN vi32 v_load_i32(const int32_t *p, size_t n)
{
    return (vi32)(n >= V_LANES ? _mm256_loadu_si256((const __m256i *)p)
                               : _mm256_maskload_epi32(p, (__m256i)v_first(n)));
}
VFN void v_store_i32(int32_t *p, vi32 v, size_t n)
{
    if (n >= V_LANES)
        _mm256_storeu_si256((__m256i *)p, (__m256i)v);
    else
        _mm256_maskstore_epi32(p, (__m256i)v_first(n), (__m256i)v);
}
#define v_h2f v_h2f
VFN vf32 v_h2f(v_mem_u16 h) { return _mm256_cvtph_ps((__m128i)h); }
VFN v_mem_u16 v_f2h(vf32 v) { return (v_mem_u16)_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
#define v_gather_f32 v_gather_f32
VFN vf32 v_gather_f32(const float *base, vi32 index, size_t n)
{
    if (n >= V_LANES) return _mm256_i32gather_ps(base, (__m256i)index, 4);
    return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), base, (__m256i)index, (__m256)v_first(n), 4);
}
#define v_pick_i32 v_pick_i32
VFN vi32 v_pick_i32(vi32 v, vi32 index)
{
    return (vi32)_mm256_permutevar8x32_epi32((__m256i)v, (__m256i)index);
}
#define v_dot_pairs v_dot_pairs
VFN vi32 v_dot_pairs(vi32 sum, vi32 a, vi32 x, vi32 b, vi32 y)
{
    const __m256i both = _mm256_add_epi16(_mm256_maddubs_epi16((__m256i)a, (__m256i)x),
                                          _mm256_maddubs_epi16((__m256i)b, (__m256i)y));
    return sum + (vi32)_mm256_madd_epi16(both, _mm256_set1_epi16(1));
}
#define v_dot_bytes v_dot_bytes
VFN vi32 v_dot_bytes(vi32 sum, vi32 a, vi32 x) /* by halves, whose pairs of products 16 bits hold */
{
    const __m256i half = _mm256_set1_epi8(15), low = _mm256_and_si256((__m256i)a, half),
                  high = _mm256_and_si256(_mm256_srli_epi16((__m256i)a, 4), half);
    sum += (vi32)_mm256_madd_epi16(_mm256_maddubs_epi16(low, (__m256i)x), _mm256_set1_epi16(1));
    return sum + (vi32)_mm256_madd_epi16(_mm256_maddubs_epi16(high, (__m256i)x), _mm256_set1_epi16(16));
}
#define v_repeat_f32 v_repeat_f32
VFN vf32 v_repeat_f32(const float *p, size_t times, size_t n)
{
    const int by = __builtin_ctzll(times);
    const size_t count = ((n < V_LANES ? n : V_LANES) + times - 1) >> by;
    const __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256 some; /* without a mask, since a Zen 5 foresees no memory that is read with one */
    switch (count) {
    case 1: return _mm256_and_ps(_mm256_broadcast_ss(p), (__m256)v_first(n));
    case 2:
        some = _mm256_castps128_ps256(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)p)));
        break;
    case 4: some = _mm256_castps128_ps256(_mm_loadu_ps(p)); break;
    default: some = _mm256_maskload_ps(p, (__m256i)v_first(count));
    }
    return _mm256_and_ps(_mm256_permutevar8x32_ps(some, _mm256_srli_epi32(at, by)), (__m256)v_first(n));
}
