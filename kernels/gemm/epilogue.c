/* Epilogues on the cpu: the rest of a program, lowered once for a node, and where its inputs lie under a
 * tile (epilogue.h). */
#include "epilogue.h"

#include "kernels/common/cpu_features.h"

int ortc_tail_spec_init(const ortc_node *n, int32_t axis, uint32_t may, ortc_tail_spec *out, const char **why)
{
    ortc_tail t;
    const uint32_t rounds = ORTC_CPU_AMX | ORTC_CPU_AVX512_BF16, has = ortc_cpu_features();
    memset(out, 0, sizeof *out);
    out->bias = out->residual = -1;
    if (!ortc_tail_read(n, axis, may, &t, why)) return 0;
    out->alpha = t.scale;
    out->act = t.act, out->lo = t.lo, out->hi = t.hi;
    out->bias = t.bias, out->residual = t.residual;
    out->widens = t.widens, out->to_bytes = t.to_bytes, out->has_rest = t.has_rest;
    memcpy(out->lies, t.lies, sizeof out->lies);
    if (!t.has_rest) return 1;
    if (!ortc_pw_lower(&t.u.rest, &out->rest, why)) return 0;
    ortc_pw_step *steps = t.u.rest.steps;
    const ortc_dtype type = ortc_node_epilogue(n)->steps[t.u.rest.n - 1].type;
    steps[t.u.rest.n - 1].type = type;
    if (ortc_dtype_bits(type) == 16 && !ortc_pw_lower(&t.u.rest, &out->stored, why)) return 0;
    if (type == ORTC_BF16) { /* as exact as what is stored */
        out->rest = out->stored;
        out->rest.out = ORTC_F32;
        out->rest.lines[out->rest.n - 1].op = ORTC_PWL_store;
    }
    if (type == ORTC_BF16 && has & ORTC_CPU_AVX512 && has & rounds) /* by an instruction, as other ends do */
        out->stored.lines[out->stored.n - 1].op = ORTC_PWL_store_bf16_amx;
    if (ortc_pw_tile_can(&out->rest)) return 1;
    *why = "the epilogue has too many inputs or values";
    return 0;
}

static void over(const ortc_tail_spec *s, const ortc_pw_code *code, const ortc_view *in,
                 const ortc_tail_place *at, const float *tile, size_t ld, void *y, size_t y_ld, size_t rows,
                 size_t cols)
{
    ortc_pw_place places[ORTC_PW_INPUTS];
    for (uint32_t k = 1; k < s->rest.n_in; k++) {
        ortc_pw_place *p = &places[k];
        int64_t first = 0;
        if (!s->rest.in[k]) continue;
        *p = (ortc_pw_place){in[k].data, 0, 0};
        if (s->lies[k] == ORTC_PW_CHANNEL)
            first = at->channel, p->row = at->channel_row, p->col = at->channel_col;
        else if (s->lies[k] == ORTC_PW_FULL)
            first = at->element, p->row = at->row, p->col = at->col;
        p->data = (const char *)p->data + first * (int64_t)(ortc_dtype_bits(s->rest.in[k]) / 8);
    }
    ortc_pw_tile(code, places, tile, ld, y, y_ld, rows, cols);
}

void ortc_tail_over(const ortc_tail_spec *s, const ortc_view *in, const ortc_tail_place *at,
                    const float *tile, size_t ld, float *y, size_t y_ld, size_t rows, size_t cols)
{
    if (s->has_rest) over(s, &s->rest, in, at, tile, ld, y, y_ld, rows, cols);
}

void ortc_tail_store(const ortc_tail_spec *s, const ortc_view *in, const ortc_tail_place *at,
                     const float *tile, size_t ld, void *y, size_t y_ld, size_t rows, size_t cols)
{
    over(s, s->to_bytes ? &s->rest : &s->stored, in, at, tile, ld, y, y_ld, rows, cols);
}

void ortc_tail_tile(void *arg, float *tile, size_t rows, size_t cols, size_t ld, int64_t row0, int64_t col0)
{
    const ortc_tail_run *r = arg;
    const int by_row = r->channels > 0;
    const ortc_tail_place at = {.channel = by_row ? row0 % r->channels : col0,
                                .channel_row = (size_t)by_row,
                                .channel_col = (size_t)!by_row,
                                .element = row0 * r->width + col0,
                                .row = (size_t)r->width,
                                .col = 1};
    ortc_tail_over(r->spec, r->in, &at, tile, ld, tile, ld, rows, cols);
}
