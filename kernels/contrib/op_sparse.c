/* kernels/contrib/op_sparse.c: SparseAttention: blocks of queries and keys that see each other. */
#include "kernels/contrib/attention.h"

/* `blocks` [layouts, blocks, blocks], by rows of queries and columns of keys: which see each other, from
 * rows and columns of compressed sparse rows; columns may be padded. Entry j of a layout belongs to the row
 * before as many rows end as end at j. */
static ortc_status write_blocks(ortc_lift *l, int64_t blocks)
{
    return ortc_lift_write(l,
                           "row_ends_32 = Slice(block_row_indices, [1], [9223372036854775807], [1])\n"
                           "row_ends = Cast(row_ends_32) to=7\n"
                           "columns = Cast(block_col_indices) to=7\n"
                           "entries = Shape(columns) start=1\n"
                           "entry_count = Reshape(entries, [])\n"
                           "entry = Range(0, entry_count, 1)\n"
                           "entry_tall = Unsqueeze(entry, [1])\n"
                           "ends_wide = Unsqueeze(row_ends, [1])\n"
                           "is_over = GreaterOrEqual(entry_tall, ends_wide)\n"
                           "over = Cast(is_over) to=7\n"
                           "row_of = ReduceSum(over, [2]) keepdims=0\n"
                           "row_flags = OneHot(row_of, %lld, [0,1]:f32) axis=1\n"
                           "is_padding = Less(columns, 0)\n"
                           "column_of = Where(is_padding, %lld, columns)\n"
                           "column_flags = OneHot(column_of, %lld, [0,1]:f32) axis=2\n"
                           "hits = MatMul(row_flags, column_flags)\n"
                           "blocks = Greater(hits, 0:f32)",
                           LL(blocks), LL(blocks), LL(blocks));
}

ortc_status ortc_contrib_sparse_attention(ortc_lift *l)
{
    const ortc_port rows = ortc_lift_look(l, "block_row_indices");
    const int64_t size = ortc_lift_int(l, "sparse_block_size", 0);
    char scale[40];
    ortc_trio t;
    if (rows.rank != 2 || rows.dims[0] < 1 || rows.dims[1] < 2 || rows.dims[1] > INT32_MAX)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the shape of block_row_indices must be known");
    ORTC_TRY(ortc_contrib_take_apart(l, &t));
    if (size < 1 || size > INT32_MAX || t.heads % rows.dims[0])
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "%lld layouts of blocks of %lld for %lld heads",
                              LL(rows.dims[0]), LL(size), LL(t.heads));
    ORTC_TRY(ortc_lift_write(l, "whole_lengths = Cast(key_total_sequence_lengths) to=7\n"
                                "lengths = Reshape(whole_lengths, [-1])"));
    ORTC_TRY(ortc_contrib_places(l));
    if (ortc_lift_int(l, "do_rotary", 0)) ORTC_TRY(ortc_contrib_turn(l, &t, "places"));
    ORTC_TRY(ortc_contrib_split_all(l, &t));
    ORTC_TRY(ortc_contrib_append(l, "past_key", "k4", "cached_key"));
    ORTC_TRY(ortc_contrib_append(l, "past_value", "v4", "cached_value"));
    ORTC_TRY(ortc_lift_write(l, "present_key = Identity(cached_key)\n"
                                "present_value = Identity(cached_value)"));
    ORTC_TRY(write_blocks(l, rows.dims[1] - 1));
    return ortc_lift_write(l,
                           "all_keys = Shape(cached_key) start=2 end=3\n"
                           "last = Reshape(all_keys, [])\n"
                           "key = Range(0, last, 1)\n"
                           "key_block_any = Div(key, %lld)\n"
                           "key_block = Min(key_block_any, %lld)\n"
                           "row_block_any = Div(places, %lld)\n"
                           "row_block = Min(row_block_any, %lld)\n"
                           "by_row = Gather(blocks, row_block) axis=1\n"
                           "by_key = Gather(by_row, key_block) axis=3\n"
                           "layouts = Transpose(by_key) perm=[1,0,2,3]\n"
                           "layouts_real = Cast(layouts) to=1\n"
                           "heads_real = Tile(layouts_real, [1,%lld,1,1])\n"
                           "in_layout = Cast(heads_real) to=9\n"
                           "here = Unsqueeze(places, [1,3])\n"
                           "seen = LessOrEqual(key, here)\n"
                           "open = And(in_layout, seen)\n"
                           "mixed = Attention(q4, cached_key, cached_value, open)%s\n"
                           "turned_back = Transpose(mixed) perm=[0,2,1,3]\n"
                           "output = Reshape(turned_back, [0,0,-1])",
                           LL(size), LL(rows.dims[1] - 2), LL(size), LL(rows.dims[1] - 2),
                           LL(t.heads / rows.dims[0]), ortc_contrib_scale(l, scale));
}
