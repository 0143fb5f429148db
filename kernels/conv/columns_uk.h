/* The micro-kernels that gather image rows for convolutions: their contract, and the table that lists them.
 *
 * For each of `rows` rows r: dst[r*dst_step ..] becomes `left` zeros, then `count` elements of src +
 * r*src_step that lie `stride` apart, then `right` zeros. Reads nothing before the first or behind the
 * last of them (src at any alignment), writes exactly left + count + right a row. No state, no allocation.
 */
#ifndef ORTC_KERNELS_CONV_COLUMNS_UK_H
#define ORTC_KERNELS_CONV_COLUMNS_UK_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/common/uk.h"

typedef void ortc_uk_columns_f32(size_t rows, float *dst, size_t dst_step, const float *src, size_t src_step,
                                 size_t stride, size_t left, size_t count, size_t right);

/* dst[q*dst_step + i] = src[i*stride + q] for i < count and q < n: neighbours of elements that lie `stride`
 * apart. Reads and writes nothing else. */
typedef void ortc_uk_phases_f32(size_t count, size_t n, size_t stride, const float *src, float *dst,
                                size_t dst_step);
ortc_uk_phases_f32 ortc_uk_phases_f32_avx512, ortc_uk_phases_f32_avx2;

typedef struct ortc_columns_uk {
    const char *name;
    uint32_t isa; /* bits of cpu_features.h, all needed */
    ortc_uk_columns_f32 *run;
    ortc_uk_phases_f32 *phases; /* NULL: one by one, by `run`, is as quick */
} ortc_columns_uk;

/* The same of bytes, with `pad` for zeros (columns_vec.c). */
typedef struct ortc_columns_bytes {
    void (*run)(size_t rows, uint8_t *dst, size_t dst_step, const uint8_t *src, size_t src_step,
                size_t stride, size_t left, size_t count, size_t right, uint8_t pad);
} ortc_columns_bytes;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_columns_bytes)
const ortc_columns_bytes *ortc_columns_bytes_best(void);

#define ORTC_COLUMNS_UK(isa_bit, isa, phases) ortc_uk_columns_f32 ortc_uk_columns_f32_##isa;
#include "columns_uk.inc"
#undef ORTC_COLUMNS_UK

/* All of them, best first. Thread: any. */
extern const ortc_columns_uk ortc_columns_uks[];
extern const size_t ortc_columns_uk_count;

/* The best that ortc_cpu_features() allows; never NULL. Thread: any. */
const ortc_columns_uk *ortc_columns_uk_select(void);

#endif
