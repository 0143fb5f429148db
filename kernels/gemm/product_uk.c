/* The tables of product_uk.h and the choices from them. Nothing here knows an instruction set: the lines of
 * product_lines.inc do. */
#include "product_uk.h"

/* ---- Moves --------------------------------------------------------------------------------------------- */

#define DECLARE(isa) ortc_uk_pack_f32 ortc_uk_pack_rows_f32_##isa, ortc_uk_pack_transpose_f32_##isa;
#define MOVES(bits, isa, packs) \
    { \
        "moves_" #isa, bits, ortc_uk_pack_rows_f32_##packs, ortc_uk_pack_transpose_f32_##packs, \
            &ortc_product_vec_##isa, &ortc_product_bytes_##isa, &ortc_product_pieces_##isa \
    }
#if defined(__x86_64__)
DECLARE(avx512)
DECLARE(avx2)
#endif
DECLARE(scalar)
enum {
#if defined(__x86_64__)
    moves_avx512,
    moves_avx2,
    moves_amx = moves_avx512,
    moves_avx512bf16 = moves_avx512,
    moves_avx512vnni = moves_avx512,
    moves_avxvnni = moves_avx2,
#elif defined(__aarch64__)
    moves_neon,
#endif
    moves_scalar
};
const ortc_product_moves ortc_product_all_moves[] = {
#if defined(__x86_64__)
    MOVES(ORTC_CPU_AVX512, avx512, avx512), MOVES(ORTC_CPU_AVX2, avx2, avx2),
#elif defined(__aarch64__)
    MOVES(ORTC_CPU_NEON, neon, scalar),
#endif
    MOVES(ORTC_CPU_SCALAR, scalar, scalar)};
const size_t ortc_product_moves_count = sizeof ortc_product_all_moves / sizeof ortc_product_all_moves[0];

const ortc_product_moves *ortc_product_moves_select(void)
{
    return ORTC_UK_SELECT(ortc_product_all_moves, ortc_product_moves_count);
}

/* ---- Lines --------------------------------------------------------------------------------------------- */

void ortc_amx_begin(void), ortc_amx_end(void);
#define LINE(bits, isa, A, B, S, mr, nr, ...) ortc_uk_product ORTC_LINE_NAME(A, B, mr, nr, isa);
#include "product_lines.inc"
#undef LINE

#define LINE(bits, isa, A, B, S, mr, nr, step, kg, planes, order, sums, chunk, ...) \
    _Static_assert((planes) == 1 || ((chunk) >= 1024 && (chunk) <= ORTC_CHUNK_FLOATS), \
                   "chunks of pieces of A are those of B, or parts of the one there is"); \
    _Static_assert((mr) * (nr)*4 <= 4096, "raw sums of a tile must stay in L1"); \
    _Static_assert((mr) <= ORTC_FORM_WIDTH && (nr) <= ORTC_FORM_WIDTH && ORTC_FORM_GROUP % (kg) == 0, \
                   "what packers can do");
#include "product_lines.inc"
#undef LINE

#define LINE(bits, isa, ...) ORTC_LINE_OF(bits, isa, __VA_ARGS__, &ortc_product_all_moves[moves_##isa]),
const ortc_product_line ortc_product_lines[] = {
#include "product_lines.inc"
};
#undef LINE

const size_t ortc_product_line_count = sizeof ortc_product_lines / sizeof ortc_product_lines[0];

static int is_allowed(const ortc_product_line *l) { return (l->isa & ~ortc_cpu_features()) == 0; }

const ortc_product_line *ortc_product_integers(ortc_dtype a, ortc_dtype b, int constant_a)
{
    const ortc_dtype other = a == ORTC_U8 ? ORTC_I8 : ORTC_U8, moved_a = a == b && !constant_a ? other : a,
                     moved_b = a == b && constant_a ? other : b;
    for (size_t i = 0; i < ortc_product_line_count; i++) {
        const ortc_product_line *l = &ortc_product_lines[i];
        if (is_allowed(l) && l->sum == ORTC_I32 &&
            ((l->a.type == a && l->b.type == b) || (l->a.type == moved_a && l->b.type == moved_b) ||
             l->a.type == ORTC_I16))
            return l;
    }
    return NULL;
}

const ortc_product_line *ortc_product_select(ortc_dtype a, ortc_dtype b)
{
    for (size_t i = 0; i < ortc_product_line_count; i++) {
        const ortc_product_line *l = &ortc_product_lines[i];
        if (is_allowed(l) && l->a.type == a && l->b.type == b && l->a.planes == 1) return l;
    }
    return NULL;
}

const ortc_product_line *ortc_product_in_pieces(ortc_dtype type)
{
    const uint8_t planes = type == ORTC_F32 ? 3 : type == ORTC_F16 ? 2 : 0;
    for (size_t i = 0; planes && i < ortc_product_line_count; i++)
        if (is_allowed(&ortc_product_lines[i]) && ortc_product_lines[i].a.planes == planes)
            return &ortc_product_lines[i];
    return NULL;
}
