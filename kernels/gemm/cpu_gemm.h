/* kernels/gemm/cpu_gemm.h: one MatMul or Gemm on the cpu, as a node of its own (cpu.c) and among products of
 * one A (cpu_siblings.c), whose ports are others. */
#ifndef ORTC_KERNELS_GEMM_CPU_H
#define ORTC_KERNELS_GEMM_CPU_H

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/matmul_shape.h"
#include "kernels/gemm/product.h"
#include "ortc/op.h"

typedef struct ortc_gemm_state {
    int32_t trans_a, trans_b, is_matmul;
    float alpha, beta;
    ortc_tail_spec tail;
} ortc_gemm_state;

typedef struct ortc_gemm_plan {
    ortc_product_plan product;
    ortc_dtype type;
    ortc_matmul_shape shape;
    const ortc_packed *packed_a, *packed_b; /* of constants; NULL: it is none */
    int64_t packed_step;                    /* bytes of a matrix of packed_b */
    int32_t c_kind;
    size_t
        c_offset; /* bytes: where in the workspace a stretched, scaled or widened C goes; behind it a bias */
    int64_t c_count;    /* its elements; 0: C is used as it is */
    int64_t bias_count; /* of a widened bias */
    size_t workspace;   /* bytes in all */
} ortc_gemm_plan;

/* Attributes and epilogue. 0: not done here, *why says what. */
int ortc_gemm_read(const ortc_node *, ortc_gemm_state *, const char **why);

/* 0: the ranks are not possible here. */
int ortc_gemm_shape(const ortc_gemm_state *, const ortc_view *in, const ortc_view *out, ortc_matmul_shape *);

/* Ways to compute it, which are lines of the table of micro-kernels: f32, f16 and bf16 on fused multiply-
 * adds; f32 and f16 in pieces of bf16; bf16, to which f32 is rounded where the session says so. NULL: this
 * machine has not the instructions. And what one would take, in clocks: of a constant B it reads what is
 * packed. */
enum { ORTC_GEMM_FUSED, ORTC_GEMM_PIECES, ORTC_GEMM_BF16, ORTC_GEMM_WAYS };
const ortc_product_line *ortc_gemm_line(int way, ortc_dtype type);
double ortc_gemm_clocks(const ortc_product_line *, const ortc_matmul_shape *, int constant_b);
/* The quicker of the lines of FUSED and PIECES for operands of these types. Thread: any. */
const ortc_product_line *ortc_gemm_quicker(ortc_dtype a, ortc_dtype b, int64_t m, int64_t n, int64_t k,
                                           int64_t batch, int constant_b);

/* `in`: the node's ports, B being input port_b of the plan; packed_a: A comes packed. The text of an error is
 * set. */
ortc_status ortc_gemm_plan_on(const ortc_gemm_state *, ortc_plan *, const ortc_view *in, uint32_t n_in,
                              const ortc_view *out, uint32_t port_b, const ortc_product_line *, int packed_a,
                              ortc_gemm_plan *);
ortc_status ortc_gemm_run_on(const ortc_gemm_state *, const ortc_gemm_plan *, ortc_call *,
                             const ortc_view *in, uint32_t n_in, void *out, const void *packed_a,
                             void *workspace);

/* Before each run of a step: every second one walks the B of one row from its end, so that what of it the
 * run before read last, and the cache still has, comes first. */
void ortc_gemm_turn(ortc_call *);

#endif
