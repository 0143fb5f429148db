/* kernels/elementwise/cuda_maker.h: making programs of cuda_program.h from nodes, and launching them. C
 * only. */
#ifndef ORTC_KERNELS_ELEMENTWISE_CUDA_MAKER_H
#define ORTC_KERNELS_ELEMENTWISE_CUDA_MAKER_H

#include "kernels/common/cuda.h"
#include "kernels/elementwise/cuda_program.h"

typedef struct ortc_cuda_made { /* a value that a node of the program makes */
    uint32_t edge, uses;        /* uses: reads that are still to come */
    int temp;                   /* -1: in none */
} ortc_cuda_made;

/* A program in the making, without shapes. edges[i]: the value that input i is. */
typedef struct ortc_cuda_maker {
    int registers, failed;
    uint32_t n_code, n_constants, n_in, n_temps, n_made;
    uint32_t accumulator; /* the edge whose value it holds; 0: none */
    uint32_t edges[ORTC_CU_INPUTS], temps[ORTC_CU_TEMPS];
    ortc_cu_instruction code[ORTC_CU_CODE];
    double constants[ORTC_CU_CONSTANTS];
    ortc_cuda_made made[ORTC_CU_CODE];
} ortc_cuda_maker;

/* The registers that a node's program needs; -1: there is no such program. */
int ortc_cuda_registers_of(const ortc_node *);

void ortc_cuda_maker_init(ortc_cuda_maker *, int registers);
/* Adds a node whose result is read `uses` times by later nodes of the program. 0: it does not fit. */
int ortc_cuda_make(ortc_cuda_maker *, const ortc_node *, uint32_t uses);

/* A program for these shapes and addresses; input i is in[ports[i]]. Ranks are at most ORTC_CU_RANK. */
void ortc_cuda_program_shape(const ortc_cuda_maker *, const uint32_t *ports, const ortc_view *in,
                             const ortc_view *out, ortc_cu_program *);
/* cudaError_t; no elements: no launch. */
int ortc_cuda_program_launch(int registers, const ortc_cu_program *, void *queue);

/* cuda_elementwise.c: the kernel of single nodes, for the tables of families that have such operators. */
extern const ortc_kernel ortc_cuda_elementwise;

#endif
