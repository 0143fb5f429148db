/* kernels/contrib/attention.h: what the liftings of com.microsoft's attentions share.
 *
 * B batch, S new tokens, L keys that come with them, P past keys, T = P + L all keys, N heads (G of keys,
 * where they are shared), H elements of a head. What masks is added to the scores: mask_filter_value, -10000
 * where nothing is said, so that a row of nothing but masked keys follows its scores. */
#ifndef ORTC_KERNELS_CONTRIB_ATTENTION_H
#define ORTC_KERNELS_CONTRIB_ATTENTION_H

#include "kernels/contrib/contrib.h"

#define LL(x) ((long long)(x))

/* op_attention_parts.c */
/* " scale=.." or nothing */
const char *ortc_contrib_scale(ortc_lift *, char buffer[40]);
/* *out, the name of a mask or "_": from `keys`, what masks them (lengths, flags of keys, of pairs), and what
 * is `added`. `total` is a vector of one element, T. */
ortc_status ortc_contrib_mask(ortc_lift *, const char *keys, const char *added, const char *query,
                              const char **out);
/* `begun`, a vector of one element: how many keys of a buffer that past and present share are the past. */
ortc_status ortc_contrib_begun(ortc_lift *);
/* `to`, the buffer `room` with the keys `grown` in its first places. */
ortc_status ortc_contrib_put_back(ortc_lift *, const char *to, const char *room, const char *grown);
/* `to` [B, heads, S, H] from `from` [B, S, heads * H] */
ortc_status ortc_contrib_split_heads(ortc_lift *, const char *to, const char *from, int64_t heads);
/* `present`: the past with what is new written behind each line's length, and room for all of it. */
ortc_status ortc_contrib_append(ortc_lift *, const char *past, const char *fresh, const char *present);

/* Query, keys and values of `heads` and `groups` heads as three, by the names that are read then. */
typedef struct ortc_trio {
    const char *q, *k, *v;
    int64_t heads, groups;
} ortc_trio;

ortc_status ortc_contrib_take_apart(ortc_lift *, ortc_trio *);
/* `places` [B, S], where each line's new tokens stand: behind its past, as `lengths` [B], past and new
 * together, say. A first prompt that is padded begins at 0. */
ortc_status ortc_contrib_places(ortc_lift *);
/* Queries and keys turned by the angles of `where`. */
ortc_status ortc_contrib_turn(ortc_lift *, ortc_trio *, const char *where);
/* q4 [B, N, S, H], k4 and v4 [B, G, S, H] */
ortc_status ortc_contrib_split_all(ortc_lift *, const ortc_trio *);
/* Heads of `*name` divided by the root of the mean of their squares, times a weight: `to`, which *name is
 * then. */
ortc_status ortc_contrib_normalise(ortc_lift *, const char **name, const char *to, const char *weight,
                                   int64_t heads);

/* A cache of integers: how they are told from numbers. */
typedef struct ortc_kv_cache {
    const char *scale; /* an input: one number, or one for each head's channel */
    const char *shape; /* that it is brought to */
    int64_t bits;      /* 0: the cache is of numbers */
    ortc_dtype type;
} ortc_kv_cache;

/* kind, width: attributes; a width that is not said (NULL: by none) follows from the type. channels: the
 * shape of a scale for each head's channel. */
ortc_status ortc_contrib_read_cache(ortc_lift *, const char *past, const char *scale, const char *kind,
                                    const char *width, const char *channels, ortc_kv_cache *out);
/* `to` from `from`, of rank 4, the last axis a head: as the cache keeps it, and back. Two elements of 4 bits
 * lie in a byte, the first in its low half, and 8 stands for 0. */
ortc_status ortc_contrib_into_cache(ortc_lift *, const ortc_kv_cache *, const char *to, const char *from);
ortc_status ortc_contrib_out_of_cache(ortc_lift *, const ortc_kv_cache *, const char *to, const char *from);

/* `sunk_key` and `sunk_value`: behind `key` and `value` one of zeros, and `masked`, what is added to the
 * scores of q4: for that one the head's sink (0 for the smooth softmax), so that its weight is lost. From
 * `added`, or from `open`. */
ortc_status ortc_contrib_sink(ortc_lift *, int64_t heads, bool added, const char *key, const char *value);

/* op_packed.c */
/* `to` [B, S, width], zeros where there is padding, from tokens `from` [T, width] and `token_offset`. */
ortc_status ortc_contrib_spread(ortc_lift *, const char *to, const char *from);

#endif
