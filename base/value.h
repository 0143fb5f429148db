/* base/value.h: the inside of ortc_value, one type for everything that a run takes and gives.
 *
 * A tensor's memory belongs to the value (ortc_alloc_aligned), to a caller (wrap with or without a release),
 * or to a pool (release gives it back). Values are immutable once they are shared; the reference count is
 * atomic.
 */
#ifndef ORTC_VALUE_H
#define ORTC_VALUE_H

#include "base.h"
#include "ortc/op.h"

#define ORTC_MAX_RANK 64 /* more dims than that are refused when a model is loaded */

struct ortc_value {
    atomic_int references;
    const ortc_type *type; /* static, or in `owned` */
    /* tensor */
    int32_t rank;
    uint32_t device; /* 0: host */
    int64_t *dims;   /* in the same allocation as the value */
    int64_t count;   /* elements of a tensor or a sequence; pairs of a map; 0 or 1 of an optional */
    size_t bytes;    /* of data; strings: of the ortc_strings block */
    void *data;
    void (*release)(void *arg);
    void *release_arg;
    int64_t pending; /* strings that are still to be appended (ortc_strings_append) */
    size_t room;     /* of the block of strings while some are pending */
    /* sequence, optional: count elements; map: keys, values */
    ortc_value **elements;
    ortc_arena owned; /* types */
};

/* The static type "tensor of dtype". */
const ortc_type *ortc_tensor_type(ortc_dtype);
bool ortc_type_equal(const ortc_type *, const ortc_type *);
const ortc_type *ortc_type_copy(ortc_arena *, const ortc_type *); /* deep; NULL when memory is short */
void ortc_text_type(ortc_text *, const ortc_type *);              /* "f32", "sequence(map(i64,f32))" */

static inline bool ortc_value_is_tensor(const ortc_value *v) { return v->type->kind == ORTC_KIND_TENSOR; }

/* A handle with room for `rank` dims, everything else 0; NULL when memory is short. */
ortc_value *ortc_value_new(int32_t rank, const int64_t *dims);
/* Rank and dims of a tensor that may be made; the number of its elements. */
ortc_status ortc_value_check_shape(int32_t rank, const int64_t *dims, int64_t *out_count, ortc_error *);
/* A reference that may outlive a run: the value itself, or a copy where its memory, or that of an element,
 * belongs to somebody who will use it again (wrapped without a release). */
ortc_status ortc_value_keep(ortc_value *, ortc_value **out, ortc_error *);

/* ---- Memory that is kept (kept.c) ---------------------------------------------------------------------- */

/* Memory of released values, for those that are made next. Any thread. */
typedef struct ortc_kept ortc_kept;
ortc_kept *ortc_kept_create(void); /* NULL when memory is short */
ortc_kept *ortc_kept_retain(ortc_kept *);
/* Frees what is kept; what values still have goes with them. NULL allowed here and below. */
void ortc_kept_release(ortc_kept *);
uint64_t ortc_kept_trim(ortc_kept *); /* frees what is kept; bytes */
void ortc_kept_run(ortc_kept *);      /* a run begins: what several before it have not used goes */
/* As ortc_value_create. */
ortc_status ortc_value_create_kept(ortc_kept *, ortc_dtype, int32_t rank, const int64_t *dims,
                                   ortc_value **out, ortc_error *);

/* ---- Strings (strings.c) ------------------------------------------------------------------------------- */

/* As ortc_value_create, in memory of a caller's allocator; NULL: the library's. */
ortc_status ortc_value_create_with(const ortc_allocator *, ortc_dtype, int32_t rank, const int64_t *dims,
                                   ortc_value **out, ortc_error *);

/* A tensor of strings over a block that it takes (free()d with it). */
ortc_status ortc_value_take_strings(ortc_strings *, int32_t rank, const int64_t *dims, ortc_value **out,
                                    ortc_error *);
/* The same over a block that somebody else keeps alive. */
ortc_status ortc_value_wrap_strings(const ortc_strings *, int32_t rank, const int64_t *dims, ortc_value **out,
                                    ortc_error *);
/* A tensor of strings in the making; whole when `pending` is 0. */
ortc_status ortc_strings_begin(int32_t rank, const int64_t *dims, ortc_value **out, ortc_error *);
ortc_status ortc_strings_append(ortc_value *, const char *bytes, size_t n, ortc_error *);

#endif
