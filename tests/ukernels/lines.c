/* Test-only lines; see lines.h. */
#include "lines.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/common/element.h"

/* u8 times s8, exactly. */
#define U8_GROUP 4
ortc_uk_product ortc_uk_product_u8_s8_5x12_test;
void ortc_uk_product_u8_s8_5x12_test(size_t mr, size_t nr, size_t groups, const void *a, const void *b,
                                     size_t ldb, void *sums, size_t ld, uint32_t flags,
                                     const ortc_uk_tail_f32 *tail, const ortc_uk_ahead *ahead)
{
    (void)ahead;
    const uint8_t *x = a;
    const int8_t *y = b;
    int32_t *s = sums;
    if (tail || flags & ORTC_UK_B_EXACT) abort(); /* it can neither */
    for (size_t i = 0; i < mr; i++)
        for (size_t j = 0; j < nr; j++) {
            int32_t v = flags & ORTC_UK_ACCUMULATE ? s[i * ld + j] : 0;
            for (size_t g = 0; g < groups; g++)
                for (size_t k = 0; k < U8_GROUP; k++)
                    v += x[(g * mr + i) * U8_GROUP + k] * y[(g * ldb + j) * U8_GROUP + k];
            s[i * ld + j] = v;
        }
}

/* begin and end of a task: emulated tiles are none outside of one (amx_emulated.c) */
void emulated_begin(void), emulated_end(void);
#define LINE(bits, isa, A, B, S, mr, nr, ...) ortc_uk_product ORTC_LINE_NAME(A, B, mr, nr, isa);
#define EMULATED(LINE) \
    LINE(0, emulated, s8, s8, s32, 32, 32, 16, 64, 1, QUADS, 1, 192, 48, 0, emulated_begin, emulated_end) \
    LINE(0, emulated, u8, u8, s32, 32, 32, 16, 64, 1, QUADS, 1, 8192, 48, 0, emulated_begin, emulated_end) \
    LINE(0, emulated, u8, s8, s32, 32, 32, 16, 64, 1, QUADS, 1, 8192, 48, 0, emulated_begin, emulated_end) \
    LINE(0, emulated, s8, u8, s32, 32, 32, 16, 64, 1, QUADS, 1, 8192, 48, 0, emulated_begin, emulated_end) \
    LINE(0, emulated, bf16, bf16, f32, 32, 32, 16, 32, 1, PAIRS, 0, 3072, 90, \
         ORTC_LINE_TAIL | ORTC_LINE_BF16, emulated_begin, emulated_end) \
    LINE(0, emulated, bf16x2, f16, f32, 32, 32, 16, 32, 2, KFAST, 0, 1024, 330, \
         ORTC_LINE_TAIL | ORTC_LINE_DIRECT | ORTC_LINE_SPLIT, emulated_begin, emulated_end) \
    LINE(0, emulated, bf16x3, f32, f32, 32, 32, 16, 32, 3, KFAST, 0, 1024, 480, \
         ORTC_LINE_TAIL | ORTC_LINE_DIRECT | ORTC_LINE_SPLIT, emulated_begin, emulated_end)
EMULATED(LINE)
#undef LINE

#define LINE(bits, isa, ...) ORTC_LINE_OF(bits, isa, __VA_ARGS__, NULL),
static const ortc_product_line test_only[] = {
    LINE(0, test, u8, s8, s32, 5, 12, 4, U8_GROUP, 1, KFAST, 1, 192, 240, 0, NULL, NULL) EMULATED(LINE)};
#undef LINE

const ortc_product_line *test_line(size_t index)
{
    static ortc_product_line made[sizeof test_only / sizeof *test_only];
    if (index < ortc_product_line_count) return &ortc_product_lines[index];
    index -= ortc_product_line_count;
    if (index >= sizeof test_only / sizeof *test_only) return NULL;
    made[index] = test_only[index];
    made[index].moves = ortc_product_moves_select();
    return &made[index];
}

ortc_product_types test_types(const ortc_product_line *line, rng *r)
{
    static const ortc_dtype floats[] = {ORTC_F32, ORTC_BF16, ORTC_F16};
    const ortc_dtype a = floats[rng_next(r) % 3], b = floats[rng_next(r) % 3], c = floats[rng_next(r) % 3];
    if (line->sum == ORTC_I32) /* bytes of both signs; sums are beyond f16 */
        return (ortc_product_types){rng_next(r) % 2 ? ORTC_I8 : ORTC_U8, rng_next(r) % 2 ? ORTC_I8 : ORTC_U8,
                                    c == ORTC_F16 ? ORTC_I32 : c};
    /* what is packed holds all of its source */
    const ortc_dtype held_b = line->b.type != ORTC_F32 ? line->b.type : b;
    if (line->a.planes == 2) return (ortc_product_types){a == ORTC_F32 ? ORTC_F16 : a, held_b, c};
    return (ortc_product_types){line->a.planes == 1 && line->a.type != ORTC_F32 ? line->a.type : a, held_b,
                                c};
}

void test_fill(rng *r, ortc_dtype type, void *p, size_t n)
{
    if (type == ORTC_F32)
        rng_fill(r, p, n);
    else
        for (size_t i = 0; i < n; i++) {
            if (ortc_class_of(type) == ORTC_CLASS_FLOAT)
                ortc_store_f64(p, type, (int64_t)i, rng_float(r));
            else
                ((uint8_t *)p)[i] = (uint8_t)rng_next(r);
        }
}

double test_rounding(ortc_dtype type, double v)
{
    int e;
    if (type != ORTC_F16 && type != ORTC_BF16) return 0;
    frexp(v, &e);
    const int bits = type == ORTC_F16 ? 11 : 8, least = type == ORTC_F16 ? -13 : -125;
    return ldexp(0.5, (e < least ? least : e) - bits);
}
