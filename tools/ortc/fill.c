/* tools/ortc/fill.c: made-up inputs; see fill.h. Random numbers: splitmix64 (Steele, Lea, Flood 2014), normal
 * ones by Box and Muller. */
#include "fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "element.h"

static bool arguments(const char *text, fill *out)
{
    if (!*text) return true;
    size_t n = strlen(text);
    if (text[0] != '(' || text[n - 1] != ')') return false;
    char *inner = mem_printf("%.*s", (int)(n - 2), text + 1);
    double v[2];
    bool good = args_numbers(inner, v, 2) == 2;
    free(inner);
    if (good) {
        out->a = v[0];
        out->b = v[1];
    }
    return good && (out->kind == FILL_UNIFORM ? out->a <= out->b : out->b >= 0);
}

int fill_parse(const char *text, fill *out)
{
    *out = (fill){0};
    if (strcmp(text, "zeros") == 0 || strcmp(text, "ones") == 0) {
        out->kind = text[0] == 'z' ? FILL_ZEROS : FILL_ONES;
        return 1;
    }
    if (strcmp(text, "rand") == 0) {
        *out = (fill){FILL_UNIFORM, .natural = true};
        return 1;
    }
    if (strncmp(text, "rand:", 5) != 0) return 0;
    text += 5;
    if (strncmp(text, "uniform", 7) == 0) {
        *out = (fill){FILL_UNIFORM, .a = 0, .b = 1};
        return arguments(text + 7, out) ? 1 : -1;
    }
    if (strncmp(text, "normal", 6) == 0) {
        *out = (fill){FILL_NORMAL, .a = 0, .b = 1};
        return arguments(text + 6, out) ? 1 : -1;
    }
    return -1;
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double unit(uint64_t *state) { return (double)(next(state) >> 11) * 0x1p-53; } /* [0, 1) */

static double draw(const fill *f, ortc_dtype t, uint64_t *state)
{
    if (f->kind == FILL_ZEROS || f->kind == FILL_ONES) return f->kind == FILL_ONES;
    if (f->kind == FILL_NORMAL) {
        double radius = sqrt(-2 * log(1 - unit(state)));
        return f->a + f->b * radius * cos(6.283185307179586 * unit(state));
    }
    if (f->natural && t == ORTC_BOOL) return (double)(next(state) & 1);
    if (!dtype_is_integer(t)) return f->natural ? unit(state) : f->a + (f->b - f->a) * unit(state);
    /* Integers are often indices: small ones are valid in most tables. Bytes are mostly samples. */
    double low = f->natural ? 0 : ceil(f->a), high = f->natural ? (t == ORTC_U8 ? 255 : 9) : floor(f->b);
    if (f->natural && ortc_dtype_bits(t) < 8) high = t == ORTC_U2 || t == ORTC_I2 ? 1 : 7;
    return low + floor(unit(state) * (high - low + 1));
}

static ortc_status strings(const fill *f, int32_t rank, const int64_t *dims, int64_t count, ortc_value **out,
                           ortc_error *error)
{
    if (f->kind != FILL_ZEROS)
        return fail(error, ORTC_TYPE_MISMATCH,
                    "strings can only be filled with zeros (empty ones); pass an .npy");
    const char **texts = mem_grow(NULL, (size_t)count, sizeof *texts);
    for (int64_t i = 0; i < count; i++) texts[i] = "";
    ortc_status s = ortc_value_create_strings(rank, dims, texts, NULL, out, error);
    free(texts);
    return s;
}

ortc_status fill_value(const fill *f, ortc_dtype t, int32_t rank, const int64_t *dims, uint64_t seed,
                       ortc_value **out, ortc_error *error)
{
    int64_t count;
    *out = NULL;
    if (!count_elements(rank, dims, &count)) return fail(error, ORTC_LIMIT, "the shape's size overflows");
    if (t == ORTC_STRING) return strings(f, rank, dims, count, out, error);
    ortc_status s = ortc_value_create(t, rank, dims, out, error);
    if (s != ORTC_OK) return s;
    void *data = ortc_value_data(*out);
    if (count) memset(data, 0, ortc_value_bytes(*out));
    uint64_t state = seed;
    for (int64_t i = 0; i < count && f->kind != FILL_ZEROS; i++) element_set(t, data, i, draw(f, t, &state));
    return ORTC_OK;
}
