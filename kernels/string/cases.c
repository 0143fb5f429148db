/* kernels/string/cases.c: cases for operators on text; the words are in tests/python/test_values.py, compared
 * with onnxruntime. */
#include "kernels/common/cases.h"

#define POOL \
    "ngram_counts=[0,3] ngram_indexes=[0,1,2,3,1] pool_int64s=[1,2,3,1,2,3,1] " \
    "weights=[1.0,2.0,3.0,4.0,5.0] "
#define M "com.microsoft:"
#define WORDS "ngram_counts=[0,2] ngram_indexes=[2,0,1] pool_strings=['a','b','a','b'] "

const ortc_case ortc_cases_string[] = {
    {"StringConcat", "string[2,2]={a,b,,d} string[2]={x,y}", ""},
    {"StringConcat", "string[] string[3,1]={x,,y}", ""},
    {"StringConcat@20", "string[0] string[0]!", ""},
    {"StringSplit", "string[3]={a.b..c,,x}", "delimiter='.'", .outputs = 2},
    {"StringSplit", "string[2]={a.b.c,x}", "delimiter='.' maxsplit=1", .outputs = 2},
    {"StringSplit", "string[1,2]={ab,cd}", "", .outputs = 2},
    {"StringSplit", "string[0]", "delimiter='.'"},
    {"StringNormalizer", "string[4]={Monday,tuesday,MONDAY,x}", "stopwords=['monday']"},
    {"StringNormalizer", "string[1,3]={Monday,tuesday,MONDAY}",
     "stopwords=['Monday'] is_case_sensitive=1 case_change_action='UPPER'"},
    {"StringNormalizer@10", "string[2]={Ab,cD}", "case_change_action='LOWER'"},
    {"StringNormalizer", "string[2]={a,A}", "stopwords=['a']"},
    {"StringNormalizer", "string[2,2]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"StringNormalizer", "string[2]", "case_change_action='TITLE'", .fails = ORTC_INVALID_MODEL},
    {"RegexFullMatch", "string[4]={ab,a,abb,b}", "pattern='ab*'"},
    {"RegexFullMatch", "string[2]={ab,a}", "pattern='(?i)ab'", .fails = ORTC_UNSUPPORTED},
    {"RegexFullMatch", "string[2]={ab,a}", "pattern='(a'", .fails = ORTC_UNSUPPORTED},
    {"RegexFullMatch", "string[2]={ab,a}", "pattern='(((a{1000}){1000}){1000})'", .fails = ORTC_UNSUPPORTED},
    {"TfIdfVectorizer", "T[6]={1,2,3,1,2,9}",
     "mode='TF' min_gram_length=1 max_gram_length=2 max_skip_count=0 " POOL, "T=i64,i32"},
    {"TfIdfVectorizer", "i64[2,5]={1,2,3,1,2,9,3,1,7,3}",
     "mode='TFIDF' min_gram_length=1 max_gram_length=2 max_skip_count=3 " POOL},
    {"TfIdfVectorizer", "i64[2,5]={1,2,3,1,2,9,3,1,7,3}",
     "mode='IDF' min_gram_length=2 max_gram_length=2 max_skip_count=9 " POOL},
    {"TfIdfVectorizer", "string[5]={a,b,x,a,b}",
     "mode='TF' min_gram_length=1 max_gram_length=2 max_skip_count=1 " WORDS},
    {"TfIdfVectorizer", "string[2,0]",
     "mode='TF' min_gram_length=1 max_gram_length=2 max_skip_count=1 " WORDS},
    {"TfIdfVectorizer@9", "string[2]",
     "mode='TF' min_gram_length=1 max_gram_length=2 max_skip_count=1 ngram_counts=[0,1] ngram_indexes=[0] "
     "pool_strings=['a','b']",
     .fails = ORTC_INVALID_MODEL},
    {"TfIdfVectorizer", "i64[2]", "mode='TF' min_gram_length=1 max_gram_length=2 max_skip_count=1 " WORDS,
     .fails = ORTC_INVALID_MODEL},
    {M "Tokenizer@1", "string[3]={ab-c,,-d}", "mark=1 mincharnum=1 pad_value='#' separators=['-']"},
    {M "Tokenizer@1", "string[1,2]={abc,d}", "mark=0 mincharnum=1 pad_value='#' separators=['']"},
    {M "Tokenizer@1", "string[2]={ab1c,d}", "mark=0 mincharnum=2 pad_value='' tokenexp='[a-z]+'"},
    {M "Tokenizer@1", "string[0]", "mark=1 mincharnum=1 pad_value='#' tokenexp='.'"},
    {M "Tokenizer@1", "string[2]", "mark=0 mincharnum=2 pad_value='' tokenexp='.'",
     .fails = ORTC_INVALID_MODEL},
    {M "Tokenizer@1", "string[2]", "mark=0 mincharnum=1 pad_value=''", .fails = ORTC_INVALID_MODEL},
    {M "Tokenizer@1", "string[1,1,2]", "mark=0 mincharnum=1 pad_value='' tokenexp='.'",
     .fails = ORTC_SHAPE_MISMATCH},
    {M "MurmurHash3@1", "T[2,3]", "seed=3", "T=u32,i32,u64,i64,f32,f64"},
    {M "MurmurHash3@1", "string[4]={,a,abcd,abcdefg}", "positive=0"},
    {0},
};
