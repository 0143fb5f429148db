/* kernels/elementwise/cuda_code.h: pointwise programs (ortc/program.h) as code for the machine of
 * cuda_program.h, and its launches. C only. */
#ifndef ORTC_KERNELS_ELEMENTWISE_CUDA_CODE_H
#define ORTC_KERNELS_ELEMENTWISE_CUDA_CODE_H

#include "kernels/common/cuda.h"
#include "kernels/elementwise/cuda_program.h"
#include "ortc/program.h"

/* Code without shapes. */
typedef struct ortc_cu_code {
    int registers; /* ORTC_CU_F32 ... */
    uint32_t n_code, n_constants, n_in, n_temps;
    uint8_t ports[ORTC_CU_INPUTS];  /* of the node, by operand */
    uint8_t behind[ORTC_CU_INPUTS]; /* dims of 1 that the input has behind its own */
    ortc_cu_instruction code[ORTC_CU_CODE];
    ortc_cu_number constants[ORTC_CU_CONSTANTS];
} ortc_cu_code;

/* 0: not done on this machine's registers, *why says what. */
int ortc_cu_lower(const ortc_pointwise *, ortc_cu_code *, const char **why);

/* The code for these shapes and addresses, of which in[ports[i]] are the inputs. Ranks of results are at most
 * ORTC_CU_RANK; inputs have no higher one, but for single elements. */
void ortc_cu_shape(const ortc_cu_code *, const ortc_view *in, const ortc_view *out, ortc_cu_program *);
/* cudaError_t; no elements: no launch. */
int ortc_cu_launch(int registers, const ortc_cu_program *, void *queue);

#endif
