/* tests/fuzz/command_files.c: see command_files.h. */
#include "command_files.h"

#include <stdbool.h>
#include <stdio.h>
#include <zlib.h>

#include "tests/unit/wire_writer.h"

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))
#define PICK(d, list) (list)[roll(d, LENGTH(list))]

/* splitmix64 */
static uint64_t draw(uint64_t *dice)
{
    uint64_t z = *dice += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static uint32_t roll(uint64_t *dice, size_t below) { return (uint32_t)(draw(dice) % below); }
static bool one_in(uint64_t *dice, uint32_t n) { return roll(dice, n) == 0; }
static void put_text(buffer *b, const char *text) { put_bytes(b, text, strlen(text)); }
static void put_number(buffer *b, uint64_t v, size_t bytes) { put_bytes(b, &v, bytes); }

/* ---- Models -------------------------------------------------------------------------------------------- */

static void put_identity(buffer *g, const char *op, const char *name, int dtype, int rank,
                         const int64_t *dims)
{
    char out[8];
    buffer part = make_value_info(name, dtype, rank, dims);
    snprintf(out, sizeof out, "%s_out", name);
    put_message(g, 11, &part);
    part = make_node(op, "", name, out);
    put_message(g, 1, &part);
    part = make_value_info(out, dtype, rank, dims);
    put_message(g, 12, &part);
}

uint8_t *command_model(char which, size_t *out_bytes)
{
    buffer g = {0}, m;
    if (which == 'm') {
        put_identity(&g, "Neg", "x", 1, 2, (int64_t[]){-1, 3});
        put_identity(&g, "Neg", "k", 7, 1, (int64_t[]){2});
        put_identity(&g, "Identity", "s", 8, 1, (int64_t[]){-2});
    } else if (which == 'w') {
        static const int dtypes[] = {22, 17, 16, 14};
        for (int i = 0; i < 4; i++)
            put_identity(&g, "Identity", (char[]){(char)('a' + i), 0}, dtypes[i], 1, (int64_t[]){-1});
    } else {
        buffer tensor = {0}, type = {0}, sequence = {0}, outer = {0},
               part = make_node("SequenceLength", "", "q", "n");
        put_message(&g, 1, &part);
        put_int(&tensor, 1, 1);
        put_message(&type, 1, &tensor);
        put_message(&sequence, 1, &type);
        put_message(&outer, 4, &sequence);
        put_string(&part, 1, "q");
        put_message(&part, 2, &outer);
        put_message(&g, 11, &part);
        part = make_value_info("n", 7, 0, NULL);
        put_message(&g, 12, &part);
    }
    m = make_model(10, 21, &g);
    *out_bytes = m.bytes;
    return m.data;
}

uint8_t *command_tensor(size_t *out_bytes)
{
    static const float values[6] = {0, 1, 2, 3, 4, 5};
    buffer t = make_tensor("x", 1, 2, (int64_t[]){2, 3}, values, sizeof values);
    *out_bytes = t.bytes;
    return t.data;
}

/* ---- Files --------------------------------------------------------------------------------------------- */

static buffer make_npy(uint64_t *d)
{
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"<f4", 4}, {"<f4", 4}, {"<i8", 8},   {"<f8", 8},   {">i8", 8}, {"<f2", 2},       {"|b1", 1},
                 {"|u1", 1}, {"<c8", 8}, {">c16", 16}, {"|S3", 3},   {"<U2", 8}, {">U1", 4},       {"|V1", 1},
                 {"<V2", 2}, {"|S0", 0}, {"|O", 8},    {"<f16", 16}, {"<M8", 8}, {"<U99999999", 0}};
    static const char *const shapes[] = {"(2, 3)",
                                         "(2, 3)",
                                         "(2,)",
                                         "(2,)",
                                         "()",
                                         "(0, 3)",
                                         "(1, 1, 1, 1, 2, 3)",
                                         "(2L, 3L)",
                                         "(4294967296, 4294967296)",
                                         "(-1,)",
                                         "(9223372036854775807, 0)",
                                         "(,)",
                                         "6"};
    static const int counts[] = {6, 6, 2, 2, 1, 0, 6, 6, 0, 0, 0, 0, 6};
    const uint32_t t = roll(d, LENGTH(types)), s = roll(d, LENGTH(shapes));
    const int version = one_in(d, 4) ? 1 + (int)roll(d, 5) : 1;
    char header[256];
    buffer b = {0};
    int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }",
                     types[t].name, one_in(d, 3) ? "True" : "False", shapes[s]);
    const int pad = 63 - (n + (version == 1 ? 10 : 12)) % 64;
    memset(header + n, ' ', (size_t)pad);
    n += pad;
    header[n++] = '\n';
    put_bytes(&b, "\x93NUMPY", 6);
    put_number(&b, (uint64_t)version, 2);
    put_number(&b, (uint64_t)n, version == 1 ? 2 : 4);
    put_bytes(&b, header, (size_t)n);
    for (size_t i = 0; i < (size_t)counts[s] * types[t].bytes; i++)
        put_number(&b, one_in(d, 3) ? roll(d, 256) : 0, 1);
    return b;
}

static void damage(uint64_t *d, buffer *b)
{
    static const uint8_t bytes[] = {0,   1,   2,    10,  0x7f, 0x80, 0xff, '(',
                                    ')', ',', '\'', '9', '-',  '{',  '}',  ' '};
    for (uint32_t n = roll(d, 4); n && b->bytes; n--) {
        const size_t at = roll(d, b->bytes);
        switch (roll(d, 6)) {
        case 0: b->bytes = at; break;
        case 1: { /* the last of it twice */
            buffer twice = {0};
            put_bytes(&twice, b->data + at, b->bytes - at);
            put_bytes(b, twice.data, twice.bytes);
            buffer_free(&twice);
            break;
        }
        case 2: /* a piece is left out */
            if (b->bytes - at > 4) {
                memmove(b->data + at, b->data + at + 4, b->bytes - at - 4);
                b->bytes -= 4;
            }
            break;
        case 3:
            if (b->bytes - at >= 4) memset(b->data + at, one_in(d, 2) ? 0xff : 0, 4);
            break;
        default: b->data[at] = one_in(d, 4) ? (uint8_t)roll(d, 256) : PICK(d, bytes);
        }
    }
}

/* Members stored or, as a claim alone, deflated; sizes and offsets that are seldom true of all. */
static buffer make_npz(uint64_t *d)
{
    static const char *const names[] = {"x.npy", "k.npy", "s.npy", "x", "q.npy", ""};
    buffer b = {0}, directory = {0};
    const uint32_t n = 1 + roll(d, 3);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = PICK(d, names);
        buffer npy = make_npy(d);
        if (one_in(d, 2)) damage(d, &npy);
        const bool deflated = one_in(d, 4), extra = one_in(d, 8);
        buffer packed = {0};
        if (deflated) {
            uLongf size = compressBound(npy.bytes);
            uint8_t *z = malloc(size);
            if (!z || compress(z, &size, npy.data ? npy.data : (const uint8_t *)"", npy.bytes) != Z_OK)
                exit(1);
            put_bytes(&packed, z + 2, size - 6); /* without zlib's own frame */
            free(z);
        } else
            put_bytes(&packed, npy.data, npy.bytes);
        buffer common = {0};
        put_number(&common, one_in(d, 32) ? 1 : 0, 2); /* flags: encrypted */
        put_number(&common, deflated ? 8 : one_in(d, 32) ? 9 : 0, 2);
        put_number(&common, 0, 4);
        put_number(&common, crc32(0, npy.data, (uInt)npy.bytes), 4);
        put_number(&common, extra ? UINT32_MAX : packed.bytes, 4);
        put_number(&common, extra ? UINT32_MAX : npy.bytes + (one_in(d, 16) ? 1000 : 0), 4);
        put_number(&common, strlen(name), 2);
        put_number(&common, extra ? 20 : 0, 2);
        const size_t offset = b.bytes;
        put_bytes(&b, "PK\3\4\24\0", 6);
        put_bytes(&b, common.data, common.bytes);
        put_bytes(&directory, "PK\1\2\24\0\24\0", 8);
        put_bytes(&directory, common.data, common.bytes);
        put_bytes(&directory, "\0\0\0\0\0\0\0\0\0\0", 10);
        put_number(&directory, offset, 4);
        for (int side = 0; side < 2; side++) {
            buffer *to = side ? &directory : &b;
            put_text(to, name);
            if (!extra) continue;
            put_number(to, 1, 2);
            put_number(to, 16, 2);
            put_number(to, npy.bytes, 8);
            put_number(to, packed.bytes, 8);
        }
        put_bytes(&b, packed.data, packed.bytes);
        buffer_free(&packed);
        buffer_free(&common);
        buffer_free(&npy);
    }
    const size_t at = b.bytes;
    put_bytes(&b, directory.data, directory.bytes);
    if (one_in(d, 4)) { /* zip64 */
        const size_t end = b.bytes;
        put_bytes(&b, "PK\6\6", 4);
        put_number(&b, 44, 8);
        put_number(&b, 45 | 45 << 16, 4);
        put_number(&b, 0, 8);
        put_number(&b, n, 8);
        put_number(&b, n, 8);
        put_number(&b, directory.bytes, 8);
        put_number(&b, at, 8);
        put_bytes(&b, "PK\6\7\0\0\0\0", 8);
        put_number(&b, end, 8);
        put_number(&b, 1, 4);
    }
    put_bytes(&b, "PK\5\6\0\0\0\0", 8);
    put_number(&b, n, 2);
    put_number(&b, n, 2);
    put_number(&b, directory.bytes, 4);
    put_number(&b, at, 4);
    put_number(&b, 0, 2);
    buffer_free(&directory);
    return b;
}

static buffer make_pb(uint64_t *d)
{
    static const int dtypes[] = {1, 1, 1, 7, 7, 6, 8, 9, 10, 11, 14, 16, 17, 21, 22, 23, 0, 99};
    static const int64_t extents[] = {2, 3, 2, 3, 0, 1, -1, INT64_MAX, INT64_C(1) << 32};
    int64_t dims[4];
    const int rank = one_in(d, 3) ? (int)roll(d, 5) : 2, dtype = PICK(d, dtypes);
    uint8_t raw[64];
    for (int i = 0; i < rank; i++) dims[i] = one_in(d, 4) ? PICK(d, extents) : 2 + i;
    for (size_t i = 0; i < sizeof raw; i++) raw[i] = (uint8_t)roll(d, 4);
    buffer b = make_tensor("x", dtype, rank, dims, one_in(d, 4) ? NULL : raw,
                           one_in(d, 3) ? roll(d, 65) : 24);
    if (dtype == 8)
        for (int i = 0; i < 6; i++) put_string(&b, 6, i % 2 ? "text" : "");
    for (int i = 0; one_in(d, 4) && i < 6; i++) put_float(&b, 4, (float)i);
    for (int i = 0; one_in(d, 4) && i < 6; i++) put_int(&b, 7, i);
    return b;
}

static buffer make_sequence(uint64_t *d)
{
    buffer b = {0};
    put_string(&b, 1, "q");
    put_int(&b, 2, one_in(d, 4) ? roll(d, 7) : 1);
    for (uint32_t n = roll(d, 4); n; n--) {
        buffer t = make_pb(d);
        put_message(&b, 3, &t);
    }
    return b;
}

static buffer make_words(uint64_t *d, const char *const *known, size_t n_known, uint32_t most, char between)
{
    buffer b = {0};
    for (uint32_t n = roll(d, most + 1); n; n--) {
        put_text(&b, known[roll(d, n_known)]);
        put_number(&b, (uint8_t)between, 1);
    }
    return b;
}
#define WORDS(d, list, most, between) make_words(d, list, LENGTH(list), most, between)

static buffer make_file(uint64_t *d, int kind)
{
    static const char *const tolerance[] = {"{",           "}",          "\"rtol\"", ":",  "1e-3",
                                            ",",           "\"atol\"",   "1e999",    "-1", "nan",
                                            "\"compare\"", "\"values\"", "\"shape\""};
    static const char *const skips[] = {"case", "cas*", "[",  "#",          "a reason",
                                        "\n",   "\r\n", "\t", "case why\n", "nonesuch why\n"};
    static const char *const bench[] = {"\"command\": \"bench\"",
                                        "\"p50\":",
                                        "1.5",
                                        "-1",
                                        "\"throughput\":",
                                        "1e999",
                                        "\"noise\":",
                                        "{",
                                        "}",
                                        "0"};
    static const char *const labels[] = {"cat", "dog", "\n", "\r\n", "\x1b[31m", "\xc2\x9b", "%s", ""};
    switch (kind) {
    case FILE_NPY: return make_npy(d);
    case FILE_NPZ: return make_npz(d);
    case FILE_PB: return make_pb(d);
    case FILE_SEQUENCE: return make_sequence(d);
    case FILE_TOLERANCE: {
        buffer b = {0};
        if (one_in(d, 2)) return WORDS(d, tolerance, 12, ' ');
        put_text(&b, "{\"rtol\": 1e-3, \"atol\": 1e-7, \"compare\": \"values\"}");
        return b;
    }
    case FILE_SKIPS: return WORDS(d, skips, 12, ' ');
    case FILE_BENCH: return WORDS(d, bench, 12, ' ');
    case FILE_LABELS: return WORDS(d, labels, 12, ' ');
    default: return (buffer){0};
    }
}

uint8_t *command_make(uint64_t seed, size_t *out_bytes)
{
    static const char *const options[] = {"--set",
                                          "n=4",
                                          "--set=n=-1",
                                          "--set=m=2",
                                          "--set==",
                                          "--shape",
                                          "x=2x3",
                                          "x=",
                                          "x=1x2x3x4x5x6x7x8x9",
                                          "x=99999999x3",
                                          "--shape=y=1",
                                          "-i",
                                          "--input",
                                          "zeros",
                                          "ones",
                                          "rand",
                                          "x=rand",
                                          "x=rand:normal(0,1)",
                                          "x=rand:uniform(1,0)",
                                          "x=rand:uniform(",
                                          "k=ones",
                                          "s=zeros",
                                          "x=f",
                                          "=",
                                          "x=",
                                          "--cast",
                                          "--seed",
                                          "-1",
                                          "99",
                                          "--topk",
                                          "3",
                                          "-k",
                                          "--json",
                                          "-q",
                                          "-v",
                                          "-qv",
                                          "--keep",
                                          "x_out",
                                          "nonesuch",
                                          "--tie",
                                          "x=x_out",
                                          "x=x_out:1:4",
                                          "s=s_out:0",
                                          "x=x_out:0:9223372036854775807",
                                          ":::",
                                          "--deadline",
                                          "1000",
                                          "--repeat",
                                          "2",
                                          "--labels",
                                          "f",
                                          "--mean",
                                          "1,2,3",
                                          "--std",
                                          "0",
                                          "--scale",
                                          "1/255",
                                          "1/0",
                                          "nan",
                                          "--layout",
                                          "nhwc",
                                          "--resize",
                                          "bilinear",
                                          "--",
                                          "-",
                                          "--nonesuch",
                                          "-iXx",
                                          "--out",
                                          "o.npz",
                                          "--out=o.npy",
                                          "--out=o.pb",
                                          "--compress",
                                          "--provider",
                                          "ref",
                                          "cpu,ref",
                                          "sim",
                                          "cpu:9",
                                          "--require=ref",
                                          "--choose",
                                          "Neg=ref",
                                          "*=",
                                          "--threads",
                                          "1",
                                          "--precision=bf16",
                                          "--no-fusion",
                                          "--fold=1",
                                          "--start-deadline",
                                          "1",
                                          "--name",
                                          "n",
                                          "--dtype",
                                          "f16",
                                          "i4",
                                          "string",
                                          "--color=always",
                                          "--profile",
                                          "p.json",
                                          "--help",
                                          "--list",
                                          "--unsupported=skip",
                                          "--junit",
                                          "j.xml"};
    uint64_t dice = seed;
    const uint8_t call = (uint8_t)roll(&dice, 256);
    buffer words = one_in(&dice, 2) ? (buffer){0} : WORDS(&dice, options, 6, '\n'), b = {0};
    buffer file = make_file(&dice, one_in(&dice, 16) ? (int)roll(&dice, FILE_NONE) : command_file_kind(call));
    if (one_in(&dice, 4)) damage(&dice, &words);
    if (!one_in(&dice, 4)) damage(&dice, &file);
    if (words.bytes > 255) words.bytes = 255;
    put_bytes(&b, &call, 1);
    put_number(&b, words.bytes, 1);
    put_bytes(&b, words.data, words.bytes);
    put_bytes(&b, file.data, file.bytes);
    buffer_free(&words);
    buffer_free(&file);
    *out_bytes = b.bytes;
    return b.data;
}
