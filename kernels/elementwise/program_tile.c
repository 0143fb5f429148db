/* kernels/elementwise/program_tile.c: a program of one f32 input over a tile in place: what products do
 * to their results while those are in L1. Rows are put together to runs of many blocks, for a line costs its
 * jump however few elements it has. */
#include <assert.h>
#include <string.h>

#include "kernels/elementwise/program.h"

ORTC_VEC_TABLE(ortc_pw_body)

enum { TOGETHER = 1024, BLOCKS = 24 }; /* elements; constants, temporaries, and a block to spill to */

int ortc_pw_tile_can(const ortc_pw_code *code)
{
    for (uint32_t k = 1; k < code->n_in; k++)
        if (code->in[k]) return 0;
    return code->in[0] == ORTC_F32 && code->out == ORTC_F32 && code->element == 4 &&
           code->n_constants + code->n_temps < BLOCKS;
}

static void connect(const ortc_pw_code *code, const ortc_pw_body *body, char *blocks, float *run,
                    ortc_pw_op *ops)
{
    const uint32_t spill = code->n_constants + code->n_temps;
    for (uint32_t i = 0; i < code->n; i++) {
        const ortc_pw_line *line = &code->lines[i];
        const uint8_t operands[2] = {line->p, line->q};
        char *at[2];
        size_t step[2];
        for (int k = 0; k < 2; k++) {
            const uint8_t o = operands[k];
            const int row = o < ORTC_PWO_TEMP || o == ORTC_PWO_OUT;
            const uint32_t block = o >= ORTC_PWO_SPILL      ? spill
                                   : o >= ORTC_PWO_CONSTANT ? (uint32_t)o - ORTC_PWO_CONSTANT
                                                            : code->n_constants + o - ORTC_PWO_TEMP;
            at[k] = row ? (char *)run : blocks + block * body->bytes;
            step[k] = row ? sizeof(float) : 0;
        }
        ops[i] = (ortc_pw_op){body->fn[line->op], at[0], at[1], step[0], step[1], {NULL}};
        ortc_pw_each(line->each, &ops[i]);
    }
    memset(&ops[code->n], 0, sizeof *ops);
    for (uint32_t k = 0; k < code->n_constants; k++) {
        int32_t *to = (int32_t *)(void *)(blocks + k * body->bytes);
        for (size_t i = 0; i < body->bytes / 4; i++) to[i] = (int32_t)code->constants[k];
    }
}

void ortc_pw_tile(const ortc_pw_code *code, float *tile, size_t ld, size_t rows, size_t cols)
{
    const ortc_pw_body *body = ortc_pw_body_select();
    const size_t block = body->bytes / sizeof(float);
    _Alignas(64) char blocks[BLOCKS * ORTC_PW_BLOCK_BYTES];
    _Alignas(64) float run[TOGETHER];
    ortc_pw_op ops[ORTC_PW_LINES_MAX + 1];
    assert(ortc_pw_tile_can(code));
    connect(code, body, blocks, run, ops);
    for (size_t j = 0; j < cols; j += TOGETHER) {
        const size_t n = cols - j < TOGETHER ? cols - j : TOGETHER, most = TOGETHER / n;
        for (size_t i = 0; i < rows; i += most) {
            const size_t some = rows - i < most ? rows - i : most,
                         whole = (some * n + block - 1) / block * block;
            float *from = tile + i * ld + j;
            for (size_t r = 0; r < some; r++) memcpy(run + r * n, from + r * ld, n * sizeof *run);
            memset(run + some * n, 0, (whole - some * n) * sizeof *run);
            body->run(ops, whole, block);
            for (size_t r = 0; r < some; r++) memcpy(from + r * ld, run + r * n, n * sizeof *run);
        }
    }
}
