/* kernels/image/pnm.c: portable bit, grey and pixel maps, P1 to P6: numbers in text, or in bytes behind it.
 * Samples are brought to 0..255, rounded. */
#include "kernels/image/formats.h"

typedef struct reader {
    const uint8_t *at, *end;
} reader;

static bool is_blank(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static void skip_blanks(reader *r)
{
    for (; r->at < r->end && (is_blank(*r->at) || *r->at == '#'); r->at++)
        if (*r->at == '#')
            while (r->at + 1 < r->end && r->at[1] != '\n') r->at++;
}

/* A number of at most `digits` digits. */
static bool number(reader *r, int digits, uint32_t *out)
{
    int n = 0;
    *out = 0;
    for (skip_blanks(r); r->at < r->end && *r->at >= '0' && *r->at <= '9' && n < digits; r->at++, n++)
        *out = *out * 10 + (uint32_t)(*r->at - '0');
    return n > 0;
}

bool image_pnm(image_job *j)
{
    const int kind = j->bytes > 2 ? j->data[1] - '0' : 0;
    const bool text = kind < 4, bits = kind == 1 || kind == 4;
    reader r = {j->data + 2, j->data + j->bytes};
    uint32_t width, height, most = 1;
    if (kind < 1 || kind > 6) return image_fail(j, "it is not %s", ortc_image_codec()->formats);
    if (!number(&r, 9, &width) || !number(&r, 9, &height) || (!bits && !number(&r, 5, &most)) || most < 1 ||
        most > 65535)
        return image_fail(j, "its header is damaged");
    if (!text && (r.at == r.end || !is_blank(*r.at++))) return image_fail(j, "its header is damaged");
    const uint32_t channels = kind == 3 || kind == 6 ? 3 : 1;
    const uint64_t row = (uint64_t)width * channels, wide = most > 255 ? 2 : 1,
                   row_bytes = bits ? (row + 7) / 8 : row * wide;
    const uint64_t left = (uint64_t)(r.end - r.at), least = text ? row : row_bytes; /* a digit a sample */
    if (width && height && least > left / height) return image_fail(j, "the file ends too early");
    if (!image_begin(j, width, height, channels)) return false;
    uint8_t *to = j->out->pixels;
    for (uint32_t y = 0; y < height; y++) {
        const uint8_t *line = r.at + (text ? 0 : y * row_bytes);
        for (uint64_t x = 0; x < row; x++) {
            uint32_t v;
            if (text && !number(&r, bits ? 1 : 5, &v))
                return image_fail(j, "sample %llu is no number", (unsigned long long)(y * row + x));
            if (!text)
                v = bits        ? line[x / 8] >> (7 - x % 8) & 1
                    : wide == 2 ? line[2 * x] * 256u + line[2 * x + 1]
                                : line[x];
            if (v > most) v = most;
            *to++ = (uint8_t)(bits ? (v ? 0 : 255) : (v * 255 + most / 2) / most);
        }
    }
    return true;
}
