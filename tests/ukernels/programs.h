/* Pointwise programs in tests: interpreted in f64, one element at a time, with a bound on what f32 may make
 * of it. */
#ifndef ORTC_TESTS_PROGRAMS_H
#define ORTC_TESTS_PROGRAMS_H

#include "ortc/program.h"

/* A value, and how far from it another machine's may be. */
typedef struct bounded {
    double v, e;
} bounded;

/* The element that p makes of input 0 and, of the others, in[i], which are exact. The rounding of its store
 * is left out. */
bounded program_element(const ortc_pointwise *p, bounded first, const double *in);

typedef union program_space {
    ortc_pointwise p;
    char bytes[sizeof(ortc_pointwise) + ORTC_PW_STEPS * sizeof(ortc_pw_step)];
} program_space;

/* What the builder has, with a store of value v; 0: it failed. */
int program_finish(ortc_pw_builder *b, int32_t v, ortc_dtype type, program_space *out);

/* Activations to make programs of: the first is none. `slope`: a value for PRelu. */
enum { PROGRAM_ACTS = 13 };
extern const char *const program_acts[PROGRAM_ACTS];
int32_t program_act(ortc_pw_builder *b, int act, int32_t x, int32_t slope);

#endif
