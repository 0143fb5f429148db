/* kernels/image/bmp.c: Windows bitmaps: 1, 4 and 8 bits by palette, 16, 24 and 32 bits by masks. Run
 * lengths are refused. */
#include "kernels/image/formats.h"

static uint32_t u16(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8; }
static uint32_t u32(const uint8_t *p) { return u16(p) | u16(p + 2) << 16; }

/* A field of a pixel, as 8 bits. */
static uint8_t field(uint32_t pixel, uint32_t mask)
{
    if (!mask) return 0;
    const int shift = __builtin_ctz(mask);
    const uint64_t most = mask >> shift, v = (pixel & mask) >> shift;
    return (uint8_t)((v * 255 + most / 2) / most);
}

typedef struct bitmap {
    uint32_t width, height, bits, colors, mask[3];
    bool down;              /* its first row is the top one */
    const uint8_t *palette; /* blue, green, red and, where entry is 4, nothing */
    uint32_t entry;
    const uint8_t *pixels;
} bitmap;

static bool read_header(image_job *j, bitmap *b)
{
    const uint8_t *p = j->data + 14;
    if (j->bytes < 26) return image_fail(j, "the file ends too early");
    const uint32_t header = u32(p), start = u32(j->data + 10);
    const bool core = header == 12;
    if ((!core && header < 40) || header > j->bytes - 14) return image_fail(j, "its header is damaged");
    const int32_t height = core ? (int32_t)u16(p + 6) : (int32_t)u32(p + 8);
    b->width = core ? u16(p + 4) : u32(p + 4);
    b->height = (uint32_t)(height < 0 ? -(int64_t)height : height);
    b->down = height < 0;
    b->bits = u16(p + (core ? 10 : 14));
    const uint32_t compression = core ? 0 : u32(p + 16), used = core ? 0 : u32(p + 32);
    size_t behind = 14 + (size_t)header;
    static const uint32_t plain[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};
    for (int c = 0; c < 3; c++) b->mask[c] = plain[b->bits != 16][c];
    if (compression == 3 || compression == 6) { /* masks: in a longer header, or behind this one */
        const size_t at = 14 + 40;
        if (at + 12 > j->bytes || (b->bits != 16 && b->bits != 32))
            return image_fail(j, "its header is damaged");
        for (size_t c = 0; c < 3; c++) b->mask[c] = u32(j->data + at + 4 * c);
        if (header == 40) behind += compression == 3 ? 12 : 16;
    } else if (compression) {
        return image_fail(j, "compression %u is not read", compression);
    }
    if (b->bits != 1 && b->bits != 4 && b->bits != 8 && b->bits != 16 && b->bits != 24 && b->bits != 32)
        return image_fail(j, "%u bits a pixel are not read", b->bits);
    b->entry = core ? 3 : 4;
    b->colors = b->bits > 8 ? 0 : used && used < 1u << b->bits ? used : 1u << b->bits;
    b->palette = j->data + behind;
    if (behind > j->bytes || b->colors * (size_t)b->entry > j->bytes - behind || start > j->bytes)
        return image_fail(j, "the file ends too early");
    b->pixels = j->data + start;
    const uint64_t row = ((uint64_t)b->width * b->bits + 31) / 32 * 4;
    if (b->width && b->height && row > (j->bytes - start) / b->height)
        return image_fail(j, "the file ends too early");
    return true;
}

bool image_bmp(image_job *j)
{
    bitmap b = {0};
    if (!read_header(j, &b) || !image_begin(j, b.width, b.height, 3)) return false;
    const size_t row = (size_t)(((uint64_t)b.width * b.bits + 31) / 32 * 4);
    for (uint32_t y = 0; y < b.height; y++) {
        const uint8_t *from = b.pixels + row * (b.down ? y : b.height - 1 - y);
        uint8_t *to = j->out->pixels + (size_t)y * b.width * 3;
        for (uint32_t x = 0; x < b.width; x++, to += 3) {
            if (b.bits <= 8) {
                const uint32_t at = from[(uint64_t)x * b.bits / 8] >> (8 - b.bits - x * b.bits % 8) &
                                    ((1u << b.bits) - 1);
                for (uint32_t c = 0; at < b.colors && c < 3; c++) to[c] = b.palette[at * b.entry + 2 - c];
            } else if (b.bits == 24) {
                for (uint32_t c = 0; c < 3; c++) to[c] = from[3 * (size_t)x + 2 - c];
            } else {
                const uint32_t v = b.bits == 16 ? u16(from + 2 * (size_t)x) : u32(from + 4 * (size_t)x);
                for (uint32_t c = 0; c < 3; c++) to[c] = field(v, b.mask[c]);
            }
        }
    }
    return true;
}
