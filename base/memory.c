/* base/memory.c: checked sizes of tensors, arenas, growable arrays.
 *
 * Arenas grow by blocks that double up to a limit, so that small objects (a value's types) stay small and a
 * large graph takes few blocks. A request that does not fit into the rest of the current block gets a new
 * one. Under AddressSanitizer every object ends where it was asked to end, with a zone behind it that nobody
 * may touch: a block carved into views, dims and calls would else hide an index that is one too large.
 */
#include "base.h"

#include <stdio.h>

#include "sanitize.h"

#ifdef ORTC_SANITIZED
enum { ZONE = 128 }; /* three views: also out[2] of a call with none is seen */
#else
enum { ZONE = 0 };
#endif

enum { FIRST_BLOCK = 512, LAST_BLOCK = 1 << 20, ARENA_ALIGNMENT = 16 };

struct ortc_arena_block {
    struct ortc_arena_block *next; /* older */
    size_t used, capacity;         /* bytes after this header */
    size_t reserved;               /* keeps the header a multiple of ARENA_ALIGNMENT */
};

bool ortc_count_elements(int32_t rank, const int64_t *dims, int64_t *out)
{
    int64_t count = 1;
    bool overflow = false, zero = false;

    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] < 0) return false;
        zero |= dims[i] == 0;
        if (!overflow && __builtin_mul_overflow(count, dims[i], &count)) overflow = true;
    }
    /* [2^40, 2^40, 0] is a legal empty tensor. */
    if (overflow && !zero) return false;
    *out = zero ? 0 : count;
    return true;
}

bool ortc_tensor_bytes(ortc_dtype dtype, int64_t count, size_t *out)
{
    uint32_t bits = ortc_dtype_bits(dtype);
    size_t n = (size_t)count, whole;

    if (bits == 0 || count < 0) return false;
    if (bits >= 8) return ortc_mul_size(n, bits / 8, out);
    /* Eight elements take `bits` bytes; the rest is rounded up. */
    if (!ortc_mul_size(n / 8, bits, &whole)) return false;
    return ortc_add_size(whole, (n % 8 * bits + 7) / 8, out);
}

void *ortc_arena_alloc(ortc_arena *arena, size_t bytes)
{
    struct ortc_arena_block *block = arena->blocks;
    size_t capacity = block ? 2 * block->capacity : FIRST_BLOCK, asked = bytes;
    char *at;

    if (!ortc_add_size(bytes ? bytes : 1, ZONE, &bytes) || !ortc_align_size(bytes, ARENA_ALIGNMENT, &bytes))
        return NULL;
    if (!block || bytes > block->capacity - block->used) {
        if (capacity > LAST_BLOCK) capacity = LAST_BLOCK;
        if (capacity < bytes) capacity = bytes;
        if (capacity > SIZE_MAX - sizeof *block) return NULL;
        block = ortc_data_alloc(sizeof *block + capacity);
        if (!block) return NULL;
        *block = (struct ortc_arena_block){.capacity = capacity};
        ORTC_FORBID(block + 1, capacity);
        arena->bytes += sizeof *block + capacity;
        if (arena->blocks && capacity == bytes &&
            arena->blocks->capacity - arena->blocks->used > LAST_BLOCK / 16) {
            /* One large object: the block before it still has room for small ones. */
            block->next = arena->blocks->next;
            arena->blocks->next = block;
        } else {
            block->next = arena->blocks;
            arena->blocks = block;
        }
    }
    at = (char *)(block + 1) + block->used;
    block->used += bytes;
    ORTC_ALLOW(at, asked);
    return memset(at, 0, asked);
}

void *ortc_arena_array(ortc_arena *arena, size_t count, size_t element_bytes)
{
    size_t bytes;
    return ortc_mul_size(count, element_bytes, &bytes) ? ortc_arena_alloc(arena, bytes) : NULL;
}

void *ortc_arena_copy(ortc_arena *arena, const void *from, size_t bytes)
{
    void *to = ortc_arena_alloc(arena, bytes);
    if (to && bytes) memcpy(to, from, bytes);
    return to;
}

char *ortc_arena_string(ortc_arena *arena, const char *s, size_t length)
{
    char *to = length < SIZE_MAX ? ortc_arena_alloc(arena, length + 1) : NULL;
    if (to && length) memcpy(to, s, length);
    return to;
}

char *ortc_arena_printf(ortc_arena *arena, const char *fmt, ...)
{
    char few[128]; /* names, mostly: written once, and copied */
    va_list args, again;
    char *to = NULL;
    int length;

    va_start(args, fmt);
    va_copy(again, args);
    length = vsnprintf(few, sizeof few, fmt, args);
    if (length >= 0) to = ortc_arena_alloc(arena, (size_t)length + 1);
    if (to && (size_t)length < sizeof few)
        memcpy(to, few, (size_t)length + 1);
    else if (to)
        vsnprintf(to, (size_t)length + 1, fmt, again);
    va_end(again);
    va_end(args);
    return to;
}

void ortc_arena_deinit(ortc_arena *arena)
{
    struct ortc_arena_block *block = arena->blocks, *next;
    for (; block; block = next) {
        next = block->next;
        ORTC_ALLOW(block + 1, block->capacity);
        ortc_data_free(block);
    }
    arena->blocks = NULL;
    arena->bytes = 0;
}

bool ortc_array_reserve_(void **data, size_t *capacity, size_t count, size_t element_bytes)
{
    size_t wanted = *capacity < 8 ? 8 : *capacity, bytes;
    void *grown;

    if (count <= *capacity) return true;
    while (wanted < count)
        if (!ortc_mul_size(wanted, 2, &wanted)) return false;
    if (!ortc_mul_size(wanted, element_bytes, &bytes)) return false;
    grown = realloc(*data, bytes);
    if (!grown) return false;
    *data = grown;
    *capacity = wanted;
    return true;
}
