/* kernels/string/op.c: operators on text: StringConcat, StringSplit, StringNormalizer, RegexFullMatch,
 * TfIdfVectorizer, and com.microsoft's Tokenizer and MurmurHash3: schemas. */
#include "kernels/string/string.h"

extern const ortc_kernel_table ortc_kernels_ref_string;

static ortc_status infer_concat(ortc_infer *c) { return ortc_infer_out_broadcast(c, 0, ORTC_STRING, 0, 2); }

/* One more dim, as long as the text with the most pieces. */
static ortc_status infer_split(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim dims[ORTC_RANK_LIMIT + 1];
    ORTC_TRY(ortc_infer_out(c, 1, ORTC_I64, x.rank, x.dims));
    if (x.rank < 0 || x.rank >= ORTC_RANK_LIMIT) return ortc_infer_out(c, 0, ORTC_STRING, -1, NULL);
    for (int32_t d = 0; d < x.rank; d++) dims[d] = x.dims[d];
    dims[x.rank] = ORTC_DIM_UNKNOWN;
    return ortc_infer_out(c, 0, ORTC_STRING, x.rank + 1, dims);
}

/* [C] or [1,C]; with stop words, how many are left is known when it has run. */
static ortc_status infer_normalizer(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    size_t stops = ortc_node_attr(ortc_infer_node(c), "stopwords").kind == ORTC_ATTR_STRINGS;
    if (x.rank == 0 || x.rank > 2 || (x.rank == 2 && x.dims[0] >= 0 && x.dims[0] != 1))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input must be [C] or [1,C]");
    if (x.rank < 0) return ortc_infer_out(c, 0, ORTC_STRING, -1, NULL);
    const ortc_dim count = x.dims[x.rank - 1],
                   left = stops || count == 0 || count < 0 ? ORTC_DIM_UNKNOWN : count;
    return ortc_infer_out(c, 0, ORTC_STRING, x.rank, x.rank == 2 ? (const ortc_dim[]){1, left} : &left);
}

static ortc_status infer_regex(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    return ortc_infer_out(c, 0, ORTC_BOOL, x.rank, x.dims);
}

static ortc_status infer_tfidf(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    size_t n;
    const int64_t *at = ortc_node_ints(ortc_infer_node(c), "ngram_indexes", &n);
    ortc_dim dims[2] = {x.rank == 2 ? x.dims[0] : 0, 0}, most = 0;
    for (size_t i = 0; i < n; i++) {
        if (at[i] < 0 || at[i] > INT32_MAX)
            return ortc_infer_fail(c, ORTC_INVALID_MODEL, "ngram_indexes[%zu] is %lld", i, (long long)at[i]);
        most = at[i] >= most ? at[i] + 1 : most;
    }
    if (x.rank == 0 || x.rank > 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input must be [C] or [N,C]");
    dims[x.rank == 2] = most;
    return ortc_infer_out(c, 0, ORTC_F32, x.rank, x.rank < 0 ? NULL : dims);
}

/* One more dim, as long as the text with the most tokens. */
static ortc_status infer_tokenizer(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    if (x.rank == 0 || x.rank > 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input must be [C] or [N,C]");
    if (x.rank < 0) return ortc_infer_out(c, 0, ORTC_STRING, -1, NULL);
    const ortc_dim dims[3] = {x.dims[0], x.rank == 2 ? x.dims[1] : ORTC_DIM_UNKNOWN, ORTC_DIM_UNKNOWN};
    return ortc_infer_out(c, 0, ORTC_STRING, x.rank + 1, dims);
}

static ortc_status infer_murmur(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const bool positive = ortc_node_int(ortc_infer_node(c), "positive", 1) != 0;
    return ortc_infer_out(c, 0, positive ? ORTC_U32 : ORTC_I32, x.rank, x.dims);
}

static const ortc_op ops[] = {
    ORTC_OP("", "StringConcat", 20, 20, "", "X:T Y:T", "Z:T", "", "T=string", infer_concat, NULL, 0),
    ORTC_OP("", "StringSplit", 20, 20, "", "X:T1", "Y:T2 Z:T3", "delimiter:s? maxsplit:i?",
            "T1=string T2=string T3=i64", infer_split, NULL, 0),
    ORTC_OP("", "StringNormalizer", 10, 10, "", "X:string", "Y:string",
            "case_change_action:s=NONE is_case_sensitive:i=0 locale:s? stopwords:ss?", "", infer_normalizer,
            NULL, 0),
    ORTC_OP("", "RegexFullMatch", 20, 20, "", "X:T1", "Y:T2", "pattern:s?", "T1=string T2=bool", infer_regex,
            NULL, 0),
    ORTC_OP("", "TfIdfVectorizer", 9, 9, "", "X:T", "Y:T1",
            "mode:s! min_gram_length:i! max_gram_length:i! max_skip_count:i! ngram_counts:is! "
            "ngram_indexes:is! pool_int64s:is? "
            "pool_strings:ss? weights:fs?",
            "T=string,i32,i64 T1=f32", infer_tfidf, NULL, 0),
    ORTC_OP("com.microsoft", "Tokenizer", 1, 1, "", "X:T", "Y:T",
            "mark:i! mincharnum:i! pad_value:s! separators:ss? tokenexp:s?", "T=string", infer_tokenizer,
            NULL, 0),
    ORTC_OP("com.microsoft", "MurmurHash3", 1, 1, "", "X:T1", "Y:T2", "positive:i=1 seed:i=0",
            "T1=u32,i32,u64,i64,f32,f64,string T2=u32,i32", infer_murmur, NULL, 0),
};
ORTC_FAMILY(string, ops, &ortc_kernels_ref_string);
