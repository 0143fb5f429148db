/* tools/ortc/npy_write.c: writes one array in numpy's format; see npy.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "npy.h"

static const char *descr_of(ortc_dtype t)
{
    static const char *const names[ORTC_DTYPE_COUNT] = {
        [ORTC_F32] = "<f4",    [ORTC_U8] = "|u1",     [ORTC_I8] = "|i1",         [ORTC_U16] = "<u2",
        [ORTC_I16] = "<i2",    [ORTC_I32] = "<i4",    [ORTC_I64] = "<i8",        [ORTC_BOOL] = "|b1",
        [ORTC_F16] = "<f2",    [ORTC_F64] = "<f8",    [ORTC_U32] = "<u4",        [ORTC_U64] = "<u8",
        [ORTC_C64] = "<c8",    [ORTC_C128] = "<c16",  [ORTC_BF16] = "<V2",       [ORTC_F8E4M3FN] = "|V1",
        [ORTC_F8E5M2] = "|V1", [ORTC_F8E8M0] = "|V1", [ORTC_F8E4M3FNUZ] = "|V1", [ORTC_F8E5M2FNUZ] = "|V1",
        [ORTC_U4] = "|u1",     [ORTC_I4] = "|i1",     [ORTC_U2] = "|u1",         [ORTC_I2] = "|i1",
        [ORTC_F4E2M1] = "|V1", [ORTC_F6E2M3] = "|V1", [ORTC_F6E3M2] = "|V1"};
    return t > 0 && t < ORTC_DTYPE_COUNT ? names[t] : NULL;
}

/* The next code point of valid UTF-8; a byte that is none stands for itself, so nothing is lost silently. */
static uint32_t next_code(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *s = *at;
    size_t n = s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 1;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (s + i == end || (s[i] & 0xc0) != 0x80) {
            *at += 1;
            return s[0];
        }
        c = c << 6 | (s[i] & 0x3f);
    }
    *at += n;
    return c;
}

static void encode_strings(const ortc_value *v, int64_t count, size_t longest, buffer *out)
{
    for (int64_t i = 0; i < count; i++) {
        size_t bytes, written = 0;
        const uint8_t *at = (const uint8_t *)ortc_value_string(v, i, &bytes), *end = at + bytes;
        for (; written < longest; written++) {
            uint32_t c = at < end ? next_code(&at, end) : 0;
            uint8_t b[4] = {(uint8_t)c, (uint8_t)(c >> 8), (uint8_t)(c >> 16), (uint8_t)(c >> 24)};
            buffer_add(out, b, 4);
        }
    }
}

static size_t longest_string(const ortc_value *v, int64_t count)
{
    size_t longest = 1;
    for (int64_t i = 0; i < count; i++) {
        size_t bytes, n = 0;
        const uint8_t *at = (const uint8_t *)ortc_value_string(v, i, &bytes), *end = at + bytes;
        for (; at < end; n++) next_code(&at, end);
        if (n > longest) longest = n;
    }
    return longest;
}

static void encode_elements(const ortc_value *v, int64_t count, buffer *out)
{
    ortc_dtype t = ortc_value_dtype(v);
    const uint8_t *data = ortc_value_host(v);
    uint32_t bits = ortc_dtype_bits(t);
    if (bits >= 8) {
        buffer_add(out, data, ortc_value_bytes(v));
        return;
    }
    bool integer = dtype_is_integer(t);
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i * bits;
        uint32_t code = data[at / 8] | (at % 8 + bits > 8 ? (uint32_t)data[at / 8 + 1] << 8 : 0);
        uint8_t byte = (uint8_t)(code >> at % 8 & ((1u << bits) - 1));
        if (integer) byte = (uint8_t)(int)element_get(t, data, i);
        buffer_add(out, &byte, 1);
    }
}

ortc_status npy_encode(const ortc_value *v, buffer *out, ortc_error *error)
{
    ortc_dtype t = ortc_value_dtype(v);
    int64_t count = ortc_value_count(v);
    if (ortc_value_type(v)->kind != ORTC_KIND_TENSOR || (t != ORTC_STRING && !ortc_value_host(v) && count))
        return fail(error, ORTC_UNSUPPORTED, "only tensors on the host can be written as npy");
    char descr[32];
    size_t longest = 0;
    if (t == ORTC_STRING) {
        longest = longest_string(v, count);
        snprintf(descr, sizeof descr, "<U%zu", longest);
    } else {
        snprintf(descr, sizeof descr, "%s", descr_of(t) ? descr_of(t) : "|V1");
    }
    buffer text = {0};
    buffer_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t i = 0; i < ortc_value_rank(v); i++)
        buffer_printf(&text, "%lld,%s", (long long)ortc_value_dims(v)[i],
                      i + 1 < ortc_value_rank(v) ? " " : "");
    buffer_printf(&text, "), }");
    while ((10 + text.size + 1) % 64) buffer_printf(&text, " ");
    buffer_printf(&text, "\n");
    uint8_t head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)text.size, (uint8_t)(text.size >> 8)};
    buffer_add(out, head, sizeof head);
    buffer_add(out, text.data, text.size);
    free(text.data);
    if (t == ORTC_STRING)
        encode_strings(v, count, longest, out);
    else
        encode_elements(v, count, out);
    return ORTC_OK;
}
