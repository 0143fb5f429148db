/* graph/ir/dims.h: extents that may be symbols: interned expressions over a model's symbolic dims.
 *
 * Expressions are kept in a canonical form (sums of products with integer factors; quotients with common
 * factors cancelled; operands of commutative operations in order), so that equal ids prove equality. Products
 * and quotients assume that symbols are not zero, which only costs a proof: numbers are computed anew for
 * every plan. A table only grows, up to a limit, and belongs to one root graph.
 */
#ifndef ORTC_DIMS_H
#define ORTC_DIMS_H

#include "ortc/op.h"
#include "base/base.h"

typedef struct ortc_dim_expr {
    int32_t what;    /* 0: a symbol; else ORTC_DIM_* */
    uint32_t symbol; /* number of the symbol */
    ortc_dim a, b;   /* operands */
} ortc_dim_expr;

typedef struct ortc_dims {
    ORTC_ARRAY(ortc_dim_expr) exprs;  /* the id of exprs[i] is ORTC_DIM_NUMBERS - 1 - i */
    ORTC_ARRAY(const char *) symbols; /* names; NULL for fresh ones; borrowed from the graph's arena */
    ortc_map names;                   /* name -> index in symbols + 1, of the first n_named */
    size_t n_named;
    uint32_t *table; /* hash of exprs: index + 1 */
    size_t table_capacity;
} ortc_dims;

/* The dim of a named symbol, made on first use: its name is copied then. ORTC_LIMIT at the table's limit,
 * ORTC_OUT_OF_MEMORY; *out ORTC_DIM_UNKNOWN then. */
ortc_status ortc_dims_symbol(ortc_dims *, ortc_arena *names, const char *name, ortc_dim *out);
ortc_status ortc_dims_fresh(ortc_dims *, ortc_dim *out);
/* a `what` b. ORTC_DIM_UNKNOWN for division by zero, and where an operand is unknown. ORTC_SHAPE_MISMATCH
 * where numbers do not broadcast, or make one that no dim can hold (what tells which); else as above. *out is
 * ORTC_DIM_UNKNOWN then. */
ortc_status ortc_dims_combine(ortc_dims *, int32_t what, ortc_dim a, ortc_dim b, ortc_dim *out);
/* Is d the lesser of `of` and a number above 1? Then it broadcasts with `of` only where it is the same.
 * Positions and masks are cut to the length of the input from a table that is long enough. */
bool ortc_dims_is_clamped(const ortc_dims *, ortc_dim d, ortc_dim of);
/* The same, or how many of `of` positions behind others are in such a table? It is never more than `of`. */
bool ortc_dims_is_cut(const ortc_dims *, ortc_dim d, ortc_dim of);
/* the text for what symbol and fresh return; ORTC_OK stays it */
ortc_status ortc_dims_failed(ortc_error *, ortc_status);
/* Numbers of all that is in the table, given numbers of the symbols (-1: not known): free() them; NULL:
 * memory is short. One of them, ORTC_DIM_UNKNOWN where the symbols do not settle it. */
ortc_dim *ortc_dims_evaluate(const ortc_dims *, const int64_t *symbol_values);
ortc_dim ortc_dims_number(const ortc_dim *evaluated, ortc_dim);
void ortc_dims_text(const ortc_dims *, ortc_dim, ortc_text *); /* "batch", "(seq + 1)", "17", "?" */
bool ortc_dims_copy(const ortc_dims *from, ortc_dims *to);     /* same ids; names are borrowed as they are */
void ortc_dims_deinit(ortc_dims *);

#endif
