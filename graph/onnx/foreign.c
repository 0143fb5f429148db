/* graph/onnx/foreign.c: what a file is that is no ONNX model: people pass what they have downloaded.
 *
 * Only for messages, when reading has failed already: a guess from the first bytes.
 */
#include "foreign.h"

#include <strings.h>

typedef struct signature {
    size_t at;         /* offset in the file */
    const char *bytes; /* NULL: the end */
    size_t length;
    const char *what; /* "a ...: what to do" */
} signature;

#define S(at, bytes, what) \
    { \
        at, bytes, sizeof bytes - 1, what \
    }
static const signature signatures[] = {
    S(0, "version https://git-lfs", "a Git LFS pointer: the model itself is fetched with `git lfs pull`"),
    S(0, "GGUF", "a GGUF model (llama.cpp): export the original model to ONNX"),
    S(4, "TFL3", "a TensorFlow Lite model: convert it, for instance with tf2onnx --tflite"),
    S(4, "ORTM", "a model in onnxruntime's own format: use the .onnx file that it was made from"),
    S(0, "\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes: convert it, for instance with tf2onnx"),
    S(0, "\x1f\x8b", "compressed by gzip: unpack it first"),
    S(0, "\x28\xb5\x2f\xfd", "compressed by Zstandard: unpack it first"),
    S(0,
      "\xfd"
      "7zXZ",
      "compressed by xz: unpack it first"),
    S(0, "BZh", "compressed by bzip2: unpack it first"),
    S(0, "7z\xbc\xaf", "a 7-Zip archive: unpack it first"),
    S(0, "\x93NUMPY", "a NumPy array, not a model"),
    S(0, "\x89PNG", "a PNG picture, not a model"),
    S(0, "%PDF", "a PDF document"),
    S(0,
      "\x7f"
      "ELF",
      "an ELF program or library"),
    {0},
};
#undef S

/* Whether a word stands in the first 4 KiB. */
static bool holds(const uint8_t *data, size_t bytes, const char *word)
{
    return memmem(data, bytes < 4096 ? bytes : 4096, word, strlen(word)) != NULL;
}

static uint64_t little_endian(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 8; i-- > 0;) v = v << 8 | p[i];
    return v;
}

static bool begins(const uint8_t *data, size_t bytes, const char *word)
{
    return bytes >= strlen(word) && strncasecmp((const char *)data, word, strlen(word)) == 0;
}

const char *ortc_foreign_format(const void *file, size_t bytes)
{
    const uint8_t *data = file;
    if (!data) return NULL;
    for (const signature *s = signatures; s->bytes; s++)
        if (bytes >= s->at + s->length && !memcmp(data + s->at, s->bytes, s->length)) return s->what;
    if (bytes > 4 && !memcmp(data, "PK\x03\x04", 4))
        return holds(data, bytes, "data.pkl") || holds(data, bytes, "/version")
                   ? "a PyTorch file: export the model with torch.onnx.export"
               : holds(data, bytes, ".npy") ? "a NumPy archive (.npz), not a model"
                                            : "a zip archive: unpack it first";
    if (bytes > 2 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5)
        return "a Python pickle, as older PyTorch writes: export the model with torch.onnx.export";
    if (bytes > 9 && data[8] == '{' && little_endian(data) > 1 && little_endian(data) <= bytes - 8)
        return "a safetensors file: weights without a graph; export the model that they belong to";
    size_t at = 0;
    while (at < bytes && at < 4096 && strchr(" \t\r\n", data[at]) && data[at]) at++;
    if (begins(data + at, bytes - at, "<!doctype html") || begins(data + at, bytes - at, "<html"))
        return "a web page: the download gave a page instead of the file";
    if (begins(data + at, bytes - at, "<?xml") || begins(data + at, bytes - at, "<net"))
        return holds(data, bytes, "<net") ? "a model of OpenVINO: use the .onnx file that it was made from"
                                          : "XML text";
    if (at < bytes && (data[at] == '{' || data[at] == '[')) return "JSON text";
    return NULL;
}
