/* base/base.h: what everything else stands on: errors, checked sizes, memory, strings, the log, the clock.
 *
 * base depends on nothing but libc. What touches the operating system is in platform_<os>.c; threads are in
 * threads.h, run-time values in value.h.
 */
#ifndef ORTC_BASE_H
#define ORTC_BASE_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ortc/ortc.h"

#define ORTC_ALIGNMENT 256 /* of every tensor, workspace and slab of ours */
#define ORTC_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define ORTC_TRY(expression) \
    do { \
        ortc_status ortc_try_status = (expression); \
        if (ortc_try_status != ORTC_OK) return ortc_try_status; \
    } while (0)

/* ---- Errors: the code is returned, the text written where the caller wants it -------------------------- */

ORTC_PRINTF(3, 4) ortc_status ortc_fail(ortc_error *, ortc_status, const char *fmt, ...);
ortc_status ortc_vfail(ortc_error *, ortc_status, const char *fmt, va_list);
/* Puts text before an error's text ("node 'conv1' (Conv): "), keeping the code; for callers that know
 * more. */
ORTC_PRINTF(2, 3) void ortc_error_prefix(ortc_error *, const char *fmt, ...);
ortc_status ortc_no_memory(ortc_error *, size_t bytes);

/* ---- Checked sizes: false on overflow, *out untouched then --------------------------------------------- */

static inline bool ortc_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool ortc_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool ortc_align_size(size_t a, size_t alignment, size_t *out)
{
    if (a > SIZE_MAX - (alignment - 1)) return false;
    *out = (a + alignment - 1) & ~(alignment - 1);
    return true;
}
/* Elements of a shape; false when a dim is negative or the product overflows int64. Rank 0 is 1 element. */
bool ortc_count_elements(int32_t rank, const int64_t *dims, int64_t *out);
/* Bytes of `count` elements, sub-byte types packed; false on overflow or for types without a fixed size. */
bool ortc_tensor_bytes(ortc_dtype, int64_t count, size_t *out);

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* ORTC_ALIGNMENT-aligned host memory, contents undefined; large blocks ask for huge pages. NULL when there is
 * none. */
void *ortc_alloc_aligned(size_t bytes);
void ortc_free_aligned(void *, size_t bytes); /* NULL allowed; as many bytes as were asked for */
/* Blocks of so many bytes and more, and of less than the most, lie beside each other in huge pages (heap.c).
 * For tests, before there is any: SIZE_MAX leaves all to the C library. */
extern size_t ortc_heap_least;
/* So many bytes of blocks are about to be asked for. */
void ortc_heap_expect(size_t bytes);
#define ORTC_HEAP_MOST ((size_t)32 << 20)
/* A block that knows its bytes, for data whose owner does not; aligned to 16, to ORTC_ALIGNMENT where it lies
 * with others. */
void *ortc_data_alloc(size_t bytes);
void ortc_data_free(void *); /* NULL allowed */
/* Huge pages without a block go back to the system; the bytes that went. */
uint64_t ortc_heap_trim(void);
/* ortc_platform_join_page for two megabytes in which such blocks lie; false: all have been. */
bool ortc_heap_join(void);

/* The same from a caller's allocator; NULL: ours. */
void *ortc_alloc_with(const ortc_allocator *, size_t bytes);
void ortc_free_with(const ortc_allocator *, void *, size_t bytes);

/* A bump allocator for objects that live and die together (a graph, a plan). Blocks are zeroed, 16-byte
 * aligned. Not for concurrent use. ortc_arena_alloc gives NULL when memory is short. */
typedef struct ortc_arena {
    struct ortc_arena_block *blocks;
    size_t bytes; /* reserved in all */
} ortc_arena;
void *ortc_arena_alloc(ortc_arena *, size_t bytes);
/* checked; count 0 gives a non-NULL pointer */
void *ortc_arena_array(ortc_arena *, size_t count, size_t element_bytes);
void *ortc_arena_copy(ortc_arena *, const void *, size_t bytes);
char *ortc_arena_string(ortc_arena *, const char *, size_t length); /* terminated copy */
ORTC_PRINTF(2, 3) char *ortc_arena_printf(ortc_arena *, const char *fmt, ...);
void ortc_arena_deinit(ortc_arena *);

/* A growable array of pointers or PODs: data is realloc'ed; false when memory is short. */
#define ORTC_ARRAY(type) \
    struct { \
        type *data; \
        size_t count; \
        size_t capacity; \
    }
bool ortc_array_reserve_(void **data, size_t *capacity, size_t count, size_t element_bytes);
#define ortc_array_reserve(a, n) \
    ortc_array_reserve_((void **)&(a)->data, &(a)->capacity, (n), sizeof *(a)->data)
#define ortc_array_push(a, ...) \
    (ortc_array_reserve((a), (a)->count + 1) && (((a)->data[(a)->count++] = (__VA_ARGS__)), true))
#define ortc_array_deinit(a) (free((a)->data), (a)->data = NULL, (a)->count = (a)->capacity = 0)

/* ---- Hashing ------------------------------------------------------------------------------------------- */

uint64_t ortc_hash(const void *, size_t bytes, uint64_t seed);
static inline uint64_t ortc_hash_string(const char *s) { return ortc_hash(s, strlen(s), 0); }

/* String -> pointer, open addressing. Keys are borrowed: they must outlive the map. */
typedef struct ortc_map {
    struct ortc_map_cell *cells;
    size_t count, capacity;
} ortc_map;
void *ortc_map_get(const ortc_map *, const char *key);       /* NULL: not there */
bool ortc_map_set(ortc_map *, const char *key, void *value); /* replaces; false when memory is short */
void ortc_map_deinit(ortc_map *);

/* ---- Text ---------------------------------------------------------------------------------------------- */

/* Appends to a fixed buffer, always terminated; truncates silently. */
typedef struct ortc_text {
    char *data;
    size_t capacity, length;
} ortc_text;
#define ORTC_TEXT(buffer) \
    { \
        buffer, sizeof(buffer), 0 \
    }
ORTC_PRINTF(2, 3) void ortc_text_add(ortc_text *, const char *fmt, ...);
void ortc_text_dims(ortc_text *, int32_t rank, const int64_t *dims); /* "[2,3]" */
/* "f32[2,3]" */
void ortc_text_tensor(ortc_text *, ortc_dtype, int32_t rank, const int64_t *dims);

/* ---- Log ----------------------------------------------------------------------------------------------- */

ORTC_PRINTF(2, 3) void ortc_log(int32_t level, const char *fmt, ...);

/* ---- Platform (platform_linux.c) ----------------------------------------------------------------------- */

int64_t ortc_now_ns(void); /* CLOCK_MONOTONIC */

/* A whole file mapped read-only; a small one is read: to map it takes longer. bytes 0: data is NULL. */
typedef struct ortc_mapping {
    const void *data;
    size_t bytes;
    uint64_t device, inode; /* to recognise the same file */
    bool read;              /* the bytes are ours, not the file's pages */
} ortc_mapping;
ortc_status ortc_map_file(const char *path, ortc_mapping *out, ortc_error *);
/* A relative path that does not begin with '/' and has no component "..". */
bool ortc_path_stays_beneath(const char *relative);
/* The same for a file below a directory, without leaving it: no absolute path, no "..", no symbolic link
 * unless follow_links, no hard links (more than one name) unless follow_links. */
ortc_status ortc_map_file_beneath(const char *directory, const char *relative, bool follow_links,
                                  ortc_mapping *out, ortc_error *);
void ortc_unmap_file(ortc_mapping *);
/* Tells the system that these bytes of a mapping will not be needed soon: their pages leave our resident
 * size. */
void ortc_mapping_drop(const void *data, size_t bytes);
/* Bytes of a mapping once more, where no page of theirs is a huge one, for what is read here and there: where
 * the system holds a file in huge pages, each row of a table would bring two megabytes into our resident
 * size. NULL: it cannot. */
const void *ortc_mapping_again(const void *data, size_t bytes);
void ortc_mapping_again_end(const void *again, size_t bytes);

/* A file being written, under another name until it is whole (file_linux.c). After any failure: close. */
typedef struct ortc_file {
    const char *path, *temporary; /* in the arena; temporary NULL: committed */
    ortc_error *error;
    char *buffer;
    size_t n_buffer;
    uint64_t bytes; /* written so far */
    int descriptor;
    ortc_arena arena;
} ortc_file;
ortc_status ortc_file_create(ortc_file *, const char *path, ortc_error *); /* close it also when this fails */
ortc_status ortc_file_write(ortc_file *, const void *, size_t bytes);
ortc_status ortc_file_pad(ortc_file *, uint64_t to); /* zeros up to this offset */
/* durable, and under its name, instead of what was there */
ortc_status ortc_file_commit(ortc_file *);
void ortc_file_close(ortc_file *); /* without a commit nothing is left */

/* Processors that this process may use (processors_linux.c). */
#define ORTC_MAX_NODES 16
typedef struct ortc_processor {
    uint32_t number;   /* the system's */
    uint16_t node;     /* of memory, whichever are ours: 0 .. n_nodes - 1 */
    uint16_t capacity; /* beside others', 1024 as a rule */
    bool slow;         /* an efficiency core: at most half of the largest capacity */
    bool sibling;      /* shares its core with one before it */
} ortc_processor;
typedef struct ortc_processors {
    /* as affinity and cgroup cpu.max leave them: processors, cores, cores that are not slow; at least 1 */
    uint32_t threads, cores, usual;
    uint32_t n_nodes;
    uint32_t count; /* of the list, which knows no quota; ascending by number; 0: the system does not say */
    ortc_processor *list; /* Owner: the caller; free() */
} ortc_processors;
ortc_processors ortc_platform_processors(void);
/* Without quotas. sys: "/sys", or a test's own; allowed: a list, "0-3,8"; NULL: the process's affinity. */
ortc_processors ortc_platform_count(const char *sys, const char *allowed);
uint32_t ortc_platform_node(const ortc_processors *); /* on which the calling thread is now; one node: 0 */
/* From now on the calling thread runs on a node's processors only, on slow ones only if it may. */
void ortc_platform_stay(const ortc_processors *, uint32_t node, bool also_slow);
#define ORTC_HUGE_PAGE ((size_t)2 << 20)
/* Of a block that nobody has written yet and somebody soon will: its pages are to be huge, unless the system
 * takes long to find one, which is tried. A virtual machine whose host has yet to find the memory takes
 * milliseconds for each, where small pages, which others have just left, come at once: then some of what is
 * asked for next is of those. */
void ortc_platform_find_pages(void *block, size_t bytes);
/* Of a block whose pages are to be small: those of bytes from .. to come now, all at once, in half the time
 * that they take one by one, each by a fault. */
void ortc_platform_fill_pages(void *block, size_t bytes, size_t from, size_t to);
/* Whole huge pages of a block lose what they hold, and their memory. */
void ortc_platform_drop_pages(void *block, size_t bytes);
/* Of a block that is written and stays: the system may join small pages to huge ones in its own time. */
void ortc_platform_join_pages(void *block, size_t bytes);
/* The same now, of the first two megabytes with an address that is a multiple of these from *at bytes on,
 * which take up to some milliseconds; *at becomes what is behind them. False: there are none. Who reads or
 * writes there meanwhile waits. */
bool ortc_platform_join_page(void *block, size_t bytes, size_t *at);
/* Pages of a block that nobody has touched yet come from all nodes in turn; with one node, or where the
 * system refuses, nothing happens. */
void ortc_platform_interleave(void *block, size_t bytes);

void *ortc_platform_open_module(const char *path, ortc_error *); /* dlopen; NULL with an error */
void *ortc_platform_symbol(void *module, const char *name);
/* of the file that this code is in; false: not known */
bool ortc_platform_own_folder(char *out, size_t bytes);

/* The default floating-point environment (round to nearest, no flush to zero, exceptions masked) for a
 * scope. */
typedef struct ortc_fp_env {
    uint32_t control; /* mxcsr on x86 */
} ortc_fp_env;
ortc_fp_env ortc_fp_enter(void);
void ortc_fp_leave(ortc_fp_env);

#endif
