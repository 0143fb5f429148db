/* kernels/common/uk.h: tables of micro-kernels, and the one choice from them.
 *
 * Every line of every table begins like ortc_uk; lines stand best first, and the first whose instruction sets
 * are all allowed (cpu_features.h: the machine, ORTC_CPU, a test's mask) is taken. The last line needs none.
 *
 * Bodies over vectors (kernels/common/vector) export one const struct T of functions under V_NAME(T). Whoever
 * calls them writes ORTC_VEC_TABLE(T) once, which makes the table of it, with a line for each instruction set
 * of the build, and `static const T *T##_select(void)`.
 */
#ifndef ORTC_KERNELS_UK_H
#define ORTC_KERNELS_UK_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/common/cpu_features.h"
#include "kernels/common/vector/isas.h" /* generated from the list in meson.build: ORTC_EACH_ISA */

typedef struct ortc_uk { /* how a line of a table begins */
    const char *name;
    uint32_t isa; /* bits of cpu_features.h, all needed */
} ortc_uk;

/* The best line that ortc_cpu_features() allows; never NULL. Thread: any. */
const void *ortc_uk_select(const void *lines, size_t line_bytes, size_t count);
#define ORTC_UK_SELECT(lines, count) ortc_uk_select(lines, sizeof *(lines), count)

typedef struct ortc_uk_vec { /* a line of a table of bodies */
    const char *name;
    uint32_t isa;
    const void *body; /* the struct of functions */
} ortc_uk_vec;

#define ORTC_VEC_DECLARE(isa, needs, T) extern const T T##_##isa;
#define ORTC_VEC_LINE(isa, needs, T) {#T "_" #isa, needs, &T##_##isa},
#define ORTC_VEC_TABLE(T) \
    ORTC_EACH_ISA(ORTC_VEC_DECLARE, T) \
    static const ortc_uk_vec T##_lines[] = {ORTC_EACH_ISA(ORTC_VEC_LINE, T)}; \
    static const T *T##_select(void) \
    { \
        const ortc_uk_vec *line = ORTC_UK_SELECT(T##_lines, sizeof T##_lines / sizeof *T##_lines); \
        return line->body; \
    }

#endif
