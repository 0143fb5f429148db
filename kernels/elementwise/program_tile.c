/* kernels/elementwise/program_tile.c: a program over a tile of sums, f32 or i32, other inputs beside it: what
 * products do to their results while those are in L1 (program.h). Where rows lie side by side, whole blocks
 * are read and written where they are, what is left is one more, and a vector along the columns is one.
 * Elsewhere rows are put together to runs of many blocks, for a line costs its jump however few elements it
 * has; what the other inputs have for a run is laid out in the same order first.
 */
#include <assert.h>
#include <string.h>

#include "kernels/elementwise/program.h"

ORTC_VEC_TABLE(ortc_pw_body)

/* Constants, temporaries, a block to spill to, and one for the last results; elements of all runs; of one, at
 * most. */
enum { BLOCKS = 25, ELEMENTS = 4096, TOGETHER = 1024, BLOCK = ORTC_PW_BLOCK_BYTES / 4 };

static uint32_t others(const ortc_pw_code *code)
{
    uint32_t n = 0;
    for (uint32_t k = 1; k < code->n_in; k++) n += code->in[k] != 0;
    return n;
}

int ortc_pw_tile_can(const ortc_pw_code *code)
{
    return (!code->in[0] || code->in[0] == ORTC_F32 || code->in[0] == ORTC_I32) && code->element == 4 &&
           others(code) <= ORTC_PW_TILE_IN && code->n_constants + code->n_temps < BLOCKS - 1;
}

/* Where a program finds what it reads and writes; steps as of ortc_pw_op. */
typedef struct operands {
    char *in[ORTC_PW_INPUTS], *out; /* in[0]: the tile */
    size_t step[ORTC_PW_INPUTS];
} operands;

static size_t bytes_of(ortc_dtype t) { return ortc_dtype_bits(t) / 8; }

/* Space for a run of every input that is read; returns how many elements it has at most. */
static size_t deal(const ortc_pw_code *code, float *space, operands *o)
{
    const size_t n = ELEMENTS / (1 + others(code)) / BLOCK * BLOCK, most = n < TOGETHER ? n : TOGETHER;
    o->in[0] = o->out = (char *)space; /* a block is read before it is written */
    o->step[0] = bytes_of(code->in[0] ? code->in[0] : ORTC_F32);
    for (uint32_t k = 1; k < code->n_in; k++)
        if (code->in[k]) o->in[k] = (char *)(space += most), o->step[k] = bytes_of(code->in[k]);
    return most;
}

static void fill_constants(const ortc_pw_code *code, const ortc_pw_body *body, char *blocks)
{
    for (uint32_t k = 0; k < code->n_constants; k++) {
        int32_t *to = (int32_t *)(void *)(blocks + k * body->bytes);
        for (size_t i = 0; i < body->bytes / 4; i++) to[i] = (int32_t)code->constants[k];
    }
}

static void connect(const ortc_pw_code *code, const ortc_pw_body *body, char *blocks, const operands *o,
                    ortc_pw_op *ops)
{
    const uint32_t spill = code->n_constants + code->n_temps;
    for (uint32_t i = 0; i < code->n; i++) {
        const ortc_pw_line *line = &code->lines[i];
        const uint8_t operand[2] = {line->p, line->q};
        char *at[2];
        size_t step[2];
        for (int k = 0; k < 2; k++) {
            const uint8_t n = operand[k];
            const uint32_t block = n >= ORTC_PWO_SPILL      ? spill
                                   : n >= ORTC_PWO_CONSTANT ? (uint32_t)n - ORTC_PWO_CONSTANT
                                                            : code->n_constants + n - ORTC_PWO_TEMP;
            at[k] = n < ORTC_PWO_TEMP ? o->in[n] : n == ORTC_PWO_OUT ? o->out : blocks + block * body->bytes;
            step[k] = n < ORTC_PWO_TEMP ? o->step[n] : n == ORTC_PWO_OUT ? bytes_of(code->out) : 0;
        }
        ops[i] = (ortc_pw_op){body->fn[line->op], at[0], at[1], step[0], step[1], {NULL}};
        ortc_pw_each(line->each, &ops[i]);
    }
    memset(&ops[code->n], 0, sizeof *ops);
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

/* A block of which `count` elements exist. */
static void part_of_block(size_t size, const char *from, size_t count, size_t block, char *to)
{
    memcpy(to, from, count * size);
    memset(to + count * size, 0, (block - count) * size);
}

/* A tile whose rows, and those of the result, lie side by side, where they are; a last block that is not
 * whole is one by itself. 0: the other inputs do not lie so. */
static int straight(const ortc_pw_code *code, const ortc_pw_body *body, const ortc_pw_place *in,
                    const void *tile, void *out, size_t rows, size_t cols, char *blocks, ortc_pw_op *ops)
{
    const size_t block = body->bytes / sizeof(float), done = rows * cols / block * block,
                 left = rows * cols - done;
    _Alignas(64) char space[ORTC_PW_TILE_IN + 1][ORTC_PW_BLOCK_BYTES]; /* what repeats itself, or is last */
    operands o; /* as far as it is read: all of it is 200 clocks of zeros */
    uint32_t used = 0;
    o.in[0] = (char *)(uintptr_t)tile, o.out = out;
    o.step[0] = bytes_of(code->in[0] ? code->in[0] : ORTC_F32);
    for (uint32_t k = 1; k < code->n_in; k++) {
        const ortc_pw_place *p = &in[k];
        if (!code->in[k]) continue;
        const size_t size = bytes_of(code->in[k]);
        if (p->col == 1 && (rows == 1 || p->row == cols)) {
            o.in[k] = (char *)(uintptr_t)p->data, o.step[k] = size;
        } else if ((p->row == 0 || rows == 1) && (p->col == 0 || (rows > 1 && block % cols == 0))) {
            o.in[k] = space[used++], o.step[k] = 0;
            lay_out(size, p->data, 0, p->col, p->col ? block / cols : 1, p->col ? cols : block, o.in[k]);
        } else {
            return 0;
        }
    }
    connect(code, body, blocks, &o, ops);
    if (done > 0) body->run(ops, done, block);
    if (left == 0) return 1;
    for (uint32_t k = 0; k < code->n_in; k++) {
        if (!code->in[k] || o.step[k] == 0) continue;
        part_of_block(o.step[k], o.in[k] + done * o.step[k], left, block, space[used]);
        o.in[k] = space[used++];
    }
    o.out = blocks + (BLOCKS - 1) * ORTC_PW_BLOCK_BYTES;
    connect(code, body, blocks, &o, ops);
    body->run(ops, block, block);
    memcpy((char *)out + done * bytes_of(code->out), o.out, left * bytes_of(code->out));
    return 1;
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
    operands o; /* as far as it is read, and so above */
    assert(ortc_pw_tile_can(code));
    fill_constants(code, body, blocks);
    if ((rows == 1 || (ld == cols && out_ld == cols)) &&
        straight(code, body, in, tile, out, rows, cols, blocks, ops))
        return;
    const size_t most = deal(code, space, &o);
    connect(code, body, blocks, &o, ops);
    for (size_t j = 0; j < cols; j += most) {
        const size_t n = cols - j < most ? cols - j : most, together = most / n;
        for (size_t i = 0; i < rows; i += together) {
            const size_t some = rows - i < together ? rows - i : together, count = some * n,
                         whole = (count + block - 1) / block * block;
            const float *from = (const float *)tile + i * ld + j;
            char *to = (char *)out + (i * out_ld + j) * size;
            lay_out(sizeof *from, (const char *)from, ld, 1, some, n, o.in[0]);
            for (uint32_t k = 1; k < code->n_in; k++) {
                const size_t each = bytes_of(code->in[k]);
                if (!code->in[k]) continue;
                lay_out(each, (const char *)in[k].data + (i * in[k].row + j * in[k].col) * each, in[k].row,
                        in[k].col, some, n, o.in[k]);
                memset(o.in[k] + count * each, 0, (whole - count) * each);
            }
            memset(o.in[0] + count * sizeof *from, 0, (whole - count) * sizeof *from);
            body->run(ops, whole, block);
            if (out_ld == n || some == 1)
                memcpy(to, o.out, count * size);
            else
                for (size_t k = 0; k < some; k++)
                    memcpy(to + k * out_ld * size, o.out + k * n * size, n * size);
        }
    }
}

void ortc_pw_tabulate(const ortc_pw_code *code, ortc_dtype in, uint8_t table[256])
{
    _Alignas(64) int32_t all[256];
    for (int i = 0; i < 256; i++) all[i] = in == ORTC_I8 && i > 127 ? i - 256 : i;
    ortc_pw_tile(code, NULL, all, 256, table, 256, 1, 256);
}

void ortc_pw_look_up(size_t n, const uint8_t table[256], const uint8_t *x, uint8_t *y)
{
    ortc_pw_body_select()->look_up(n, table, x, y);
}
