/* Where things lie in packed operands: shared by the planner, the packers and the loops over tiles, and by no
 * one else. A packed operand is a sequence of chunks of K; within a chunk, panels one behind the other, as
 * the operand's form (product_uk.h) says.
 */
#ifndef ORTC_KERNELS_GEMM_PRODUCT_PACKED_H
#define ORTC_KERNELS_GEMM_PRODUCT_PACKED_H

#include "product.h"

static inline int64_t ortc_product_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* Rows of a turned C that are finished together. */
#define ORTC_TURNED 16

/* Length of a chunk of K: all of it, or equal parts rounded up to 64. */
static inline int64_t ortc_form_chunk(const ortc_product_form *f, int64_t k)
{
    if (k <= f->chunk) return k;
    const int64_t longest = f->chunk < 1024 ? f->chunk : 1024;
    const int64_t parts = (k - 1) / longest + 1;
    return ((k - 1) / parts + 64) / 64 * 64;
}

/* First element of part b when n are dealt evenly to `parts`. */
static inline int64_t ortc_product_row(int64_t n, int64_t parts, int64_t b)
{
    const int64_t base = n / parts, more = n % parts;
    return b * base + (b < more ? b : more);
}

static inline int64_t ortc_form_panels(const ortc_product_form *f, int64_t extent)
{
    return ortc_product_ceil_div(extent, f->width);
}

/* An extent as it is stored. */
static inline int64_t ortc_form_padded(const ortc_product_form *f, int64_t extent)
{
    return f->step ? extent / f->step * f->step + (extent % f->step ? f->step : 0) : extent;
}

/* First row or column of a panel of `extent` in `panels`. */
static inline int64_t ortc_form_first(const ortc_product_form *f, int64_t extent, int64_t panels,
                                      int64_t panel)
{
    return f->step ? panel * f->width : ortc_product_row(extent, panels, panel);
}

/* Bytes of kc deep and `width` wide, padding of K included, sums not. */
static inline int64_t ortc_form_data(const ortc_product_form *f, int64_t width, int64_t kc)
{
    return ortc_product_ceil_div(kc, f->group) * f->group * f->planes * width * ortc_product_size(f->type);
}

/* Bytes behind a panel, for its sums or the word that says what lies in it: lines of a cache, so that the
 * next panel is aligned as it would be without. */
static inline int64_t ortc_form_sums(const ortc_product_form *f)
{
    return f->sums ? (4 * f->width + 63) / 64 * 64 : f->planes > 1 ? 64 : 0;
}

/* Bytes of a chunk, or of an operand that is one. */
static inline int64_t ortc_form_bytes(const ortc_product_form *f, int64_t extent, int64_t panels, int64_t kc)
{
    return ortc_form_data(f, ortc_form_padded(f, extent), kc) + panels * ortc_form_sums(f);
}

/* Where, in bytes, the chunk that begins at k0 (a multiple of `chunk`) does. */
static inline int64_t ortc_form_at(const ortc_product_form *f, int64_t extent, int64_t panels, int64_t k0,
                                   int64_t chunk)
{
    return ortc_form_data(f, ortc_form_padded(f, extent), k0) +
           (chunk ? k0 / chunk : 0) * panels * ortc_form_sums(f);
}

/* Where in its chunk a panel begins: `first` rows or columns and `panel` panels are before it. */
static inline int64_t ortc_form_panel_at(const ortc_product_form *f, int64_t first, int64_t panel, int64_t kc)
{
    return ortc_form_data(f, first, kc) + panel * ortc_form_sums(f);
}

/* Integers, in groups of 4 bytes. */
static inline int ortc_form_is_bytes(const ortc_product_form *f)
{
    return f->type == ORTC_U8 || f->type == ORTC_I8 || f->type == ORTC_I16;
}

/* f32 as it is: packers write it in place. */
static inline int ortc_form_is_plain(const ortc_product_form *f)
{
    return f->type == ORTC_F32 && f->group == 1 && f->planes == 1 && !f->sums;
}

#endif
