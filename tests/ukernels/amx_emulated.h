/* The tile instructions of AMX (kernels/gemm/amx.h) in plain C, so that loops over them and what is laid out
 * for them are tested where there is no AMX, and under sanitizers: included first by a file of tests that
 * includes micro-kernels. As the processor does: shapes are what was configured, tiles that are not are an
 * error, so are operands whose shapes do not match; bf16 is summed as two chains of fused multiply-adds, of
 * even and odd k, and denormals are zero. */
#ifndef ORTC_TESTS_AMX_EMULATED_H
#define ORTC_TESTS_AMX_EMULATED_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void tile_config(const void *shape);
static inline void tile_release(void);
static inline void tile_zero(int t);
static inline void tile_load(int t, const void *from, size_t stride);
static inline void tile_store(int t, void *to, size_t stride);
static inline void tile_bf16(int c, int a, int b);
static inline void tile_bytes(int c, int a, int b, int signed_a, int signed_b);
#define AMX_CONFIG(shape) tile_config(shape)
#define AMX_RELEASE() tile_release()
#define AMX_ZERO(t) tile_zero(t)
#define AMX_LOAD(t, from, stride) tile_load(t, from, stride)
#define AMX_STORE(t, to, stride) tile_store(t, to, stride)
#define AMX_TDP(op, c, a, b) AMX_TDP_##op(c, a, b)
#define AMX_TDP_bf16ps(c, a, b) tile_bf16(c, a, b)
#define AMX_TDP_bssd(c, a, b) tile_bytes(c, a, b, 1, 1)
#define AMX_TDP_bsud(c, a, b) tile_bytes(c, a, b, 1, 0)
#define AMX_TDP_busd(c, a, b) tile_bytes(c, a, b, 0, 1)
#define AMX_TDP_buud(c, a, b) tile_bytes(c, a, b, 0, 0)

#include "kernels/gemm/amx.h"

static _Thread_local int is_configured;
static _Thread_local amx_shape now;
static _Thread_local unsigned char tiles[8][16][AMX_ROW];

static inline void expect(int what)
{
    if (!what) abort();
}
static inline int rows_of(int t)
{
    expect(is_configured && now.rows[t] >= 1 && now.rows[t] <= 16 && now.row_bytes[t] == AMX_ROW);
    return now.rows[t];
}

static inline void tile_config(const void *shape)
{
    memcpy(&now, shape, sizeof now);
    expect(now.palette == 1);
    memset(tiles, 0, sizeof tiles);
    is_configured = 1;
}
static inline void tile_release(void) { is_configured = 0; }
static inline void tile_zero(int t)
{
    rows_of(t);
    memset(tiles[t], 0, sizeof tiles[t]);
}
static inline void tile_load(int t, const void *from, size_t stride)
{
    memset(tiles[t], 0, sizeof tiles[t]);
    for (int i = 0; i < rows_of(t); i++)
        memcpy(tiles[t][i], (const char *)from + (size_t)i * stride, AMX_ROW);
}
static inline void tile_store(int t, void *to, size_t stride)
{
    for (int i = 0; i < rows_of(t); i++) memcpy((char *)to + (size_t)i * stride, tiles[t][i], AMX_ROW);
}

static inline float flushed(float v) { return fabsf(v) < 0x1p-126f ? 0 : v; }
static inline float half_of(const unsigned char *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    const uint32_t bits = (uint32_t)h << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return flushed(v);
}
/* Fused multiply-adds by way of f64, in which products of bf16 are exact: where they are no instructions,
 * calls of fmaf cost ten times as much. */
static inline void tile_bf16(int c, int a, int b)
{
    float columns[32][16]; /* B by k */
    expect(rows_of(c) == rows_of(a) && rows_of(b) == 16);
    for (int k = 0; k < 32; k++)
        for (int j = 0; j < 16; j++) columns[k][j] = half_of(&tiles[b][k / 2][j * 4 + k % 2 * 2]);
    for (int i = 0; i < rows_of(c); i++) {
        float chains[2][16] = {{0}}, sums[16];
        for (int k = 0; k < 32; k++) {
            const double x = half_of(&tiles[a][i][k * 2]);
            float *chain = chains[k % 2];
            for (int j = 0; j < 16; j++) chain[j] = flushed((float)(x * columns[k][j] + chain[j]));
        }
        memcpy(sums, tiles[c][i], sizeof sums);
        for (int j = 0; j < 16; j++)
            sums[j] = flushed(flushed(sums[j]) + flushed(chains[0][j] + chains[1][j]));
        memcpy(tiles[c][i], sums, sizeof sums);
    }
}
static inline void tile_bytes(int c, int a, int b, int signed_a, int signed_b)
{
    int16_t columns[64][16]; /* B by k */
    expect(rows_of(c) == rows_of(a) && rows_of(b) == 16);
    for (int k = 0; k < 64; k++)
        for (int j = 0; j < 16; j++) {
            const unsigned char y = tiles[b][k / 4][j * 4 + k % 4];
            columns[k][j] = signed_b ? (int8_t)y : y;
        }
    for (int i = 0; i < rows_of(c); i++) {
        uint32_t sums[16]; /* wrap */
        memcpy(sums, tiles[c][i], sizeof sums);
        for (int k = 0; k < 64; k++) {
            const unsigned char v = tiles[a][i][k];
            const int x = signed_a ? (int8_t)v : v;
            for (int j = 0; j < 16; j++) sums[j] += (uint32_t)(x * columns[k][j]);
        }
        memcpy(tiles[c][i], sums, sizeof sums);
    }
}

#endif
