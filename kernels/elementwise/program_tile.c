/* kernels/elementwise/program_tile.c: a program over a tile of sums, f32 or i32, other inputs beside it: what
 * products do to their results while those are in L1 (program.h). Rows are put together to runs of many
 * blocks, for a line costs its jump however few elements it has; what the other inputs have for a run is laid
 * out in the same order first.
 */
#include <assert.h>
#include <string.h>

#include "kernels/elementwise/program.h"

ORTC_VEC_TABLE(ortc_pw_body)

/* Constants, temporaries and a block to spill to; elements of all runs; of one, at most. */
enum { BLOCKS = 24, ELEMENTS = 4096, TOGETHER = 1024, BLOCK = ORTC_PW_BLOCK_BYTES / 4 };

static uint32_t others(const ortc_pw_code *code)
{
    uint32_t n = 0;
    for (uint32_t k = 1; k < code->n_in; k++) n += code->in[k] != 0;
    return n;
}

int ortc_pw_tile_can(const ortc_pw_code *code)
{
    return (!code->in[0] || code->in[0] == ORTC_F32 || code->in[0] == ORTC_I32) && code->element == 4 &&
           others(code) <= ORTC_PW_TILE_IN && code->n_constants + code->n_temps < BLOCKS;
}

typedef struct runs {
    float *at[ORTC_PW_INPUTS]; /* of input k; 0: of the tile */
    size_t most;               /* elements */
} runs;

static void deal(const ortc_pw_code *code, float *space, runs *r)
{
    const size_t n = ELEMENTS / (1 + others(code)) / BLOCK * BLOCK;
    r->most = n < TOGETHER ? n : TOGETHER;
    r->at[0] = space;
    for (uint32_t k = 1; k < code->n_in; k++)
        if (code->in[k]) r->at[k] = space += r->most;
}

static size_t bytes_of(ortc_dtype t) { return ortc_dtype_bits(t) / 8; }

static void connect(const ortc_pw_code *code, const ortc_pw_body *body, char *blocks, const runs *r,
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
            const uint32_t block = o >= ORTC_PWO_SPILL      ? spill
                                   : o >= ORTC_PWO_CONSTANT ? (uint32_t)o - ORTC_PWO_CONSTANT
                                                            : code->n_constants + o - ORTC_PWO_TEMP;
            at[k] = o < ORTC_PWO_TEMP   ? (char *)r->at[o]
                    : o == ORTC_PWO_OUT ? (char *)r->at[0]
                                        : blocks + block * body->bytes;
            step[k] = o < ORTC_PWO_TEMP   ? bytes_of(code->in[o])
                      : o == ORTC_PWO_OUT ? bytes_of(code->out) /* a block is read before it is written */
                                          : 0;
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

/* rows x cols elements of `size` bytes, those of a row and rows beside each other, from where they lie. */
static void lay_out(size_t size, const char *from, size_t row, size_t col, size_t rows, size_t cols, char *to)
{
    if (col == 1 && (row == cols || rows == 1)) {
        memcpy(to, from, rows * cols * size);
        return;
    }
    for (size_t r = 0; r < rows; r++, from += row * size, to += cols * size) {
        if (row == 0 && r > 0)
            memcpy(to, to - cols * size, cols * size);
        else if (col == 1)
            memcpy(to, from, cols * size);
        else if (size == 4)
            for (size_t c = 0; c < cols; c++) memcpy(to + 4 * c, from + 4 * col * c, 4);
        else if (size == 2)
            for (size_t c = 0; c < cols; c++) memcpy(to + 2 * c, from + 2 * col * c, 2);
        else
            for (size_t c = 0; c < cols; c++) to[c] = from[col * c];
    }
}

void ortc_pw_tile(const ortc_pw_code *code, const ortc_pw_place *in, const void *tile, size_t ld, void *out,
                  size_t out_ld, size_t rows, size_t cols)
{
    const size_t size = bytes_of(code->out);
    const ortc_pw_body *body = ortc_pw_body_select();
    const size_t block = body->bytes / sizeof(float);
    _Alignas(64) char blocks[BLOCKS * ORTC_PW_BLOCK_BYTES];
    _Alignas(64) float space[ELEMENTS];
    ortc_pw_op ops[ORTC_PW_LINES_MAX + 1];
    runs r;
    assert(ortc_pw_tile_can(code));
    deal(code, space, &r);
    connect(code, body, blocks, &r, ops);
    for (size_t j = 0; j < cols; j += r.most) {
        const size_t n = cols - j < r.most ? cols - j : r.most, most = r.most / n;
        for (size_t i = 0; i < rows; i += most) {
            const size_t some = rows - i < most ? rows - i : most, count = some * n,
                         whole = (count + block - 1) / block * block;
            const float *from = (const float *)tile + i * ld + j;
            char *to = (char *)out + (i * out_ld + j) * size;
            lay_out(sizeof *from, (const char *)from, ld, 1, some, n, (char *)r.at[0]);
            for (uint32_t k = 1; k < code->n_in; k++) {
                const size_t each = bytes_of(code->in[k]);
                if (!code->in[k]) continue;
                lay_out(each, (const char *)in[k].data + (i * in[k].row + j * in[k].col) * each, in[k].row,
                        in[k].col, some, n, (char *)r.at[k]);
                memset((char *)r.at[k] + count * each, 0, (whole - count) * each);
            }
            memset(r.at[0] + count, 0, (whole - count) * sizeof *from);
            body->run(ops, whole, block);
            if (out_ld == n || some == 1)
                memcpy(to, r.at[0], count * size);
            else
                for (size_t k = 0; k < some; k++)
                    memcpy(to + k * out_ld * size, (const char *)r.at[0] + k * n * size, n * size);
        }
    }
}
