/* tests/unit/test_value.c: values of every kind, and their messages. */
#include <criterion/criterion.h>

#include "base/value.h"
#include "wire_writer.h"

static int n_released;
static void count_release(void *arg) { n_released += arg == &n_released; }

Test(value, tensors_own_or_borrow_their_memory)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_value *v;
    float data[6] = {1, 2, 3, 4, 5, 6};
    cr_assert(ortc_value_create(ORTC_F32, 2, (int64_t[]){2, 3}, &v, &e) == ORTC_OK, "%s", e.text);
    cr_expect(ortc_value_count(v) == 6 && ortc_value_bytes(v) == 24 && ortc_value_rank(v) == 2);
    cr_expect((uintptr_t)ortc_value_data(v) % ORTC_ALIGNMENT == 0);
    cr_expect(ortc_value_dims(v)[1] == 3 && ortc_value_dtype(v) == ORTC_F32);
    cr_expect_null(ortc_value_string(v, 0, NULL));
    cr_expect_null(ortc_value_element(v, 0));
    ortc_value_release(v);

    cr_assert(ortc_value_wrap(data, ORTC_F32, 1, (int64_t[]){6}, count_release, &n_released, &v, &e) ==
              ORTC_OK);
    ortc_value_retain(v);
    ortc_value_release(v);
    cr_expect(n_released == 0 && ortc_value_host(v) == data);
    ortc_value_release(v);
    cr_expect(n_released == 1);
    v = ortc_wrap(data, ORTC_F32, 0, NULL);
    cr_expect(ortc_value_count(v) == 1);
    ortc_value_release(v);
    ortc_value_release(NULL);
}

Test(value, wrong_arguments_are_refused)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_value *v = (ortc_value *)&e;
    cr_expect(ortc_value_create(ORTC_F32, 1, (int64_t[]){-1}, &v, &e) == ORTC_INVALID_ARGUMENT && v == NULL);
    cr_expect(ortc_value_create(ORTC_F32, 65, NULL, &v, &e) == ORTC_INVALID_ARGUMENT);
    cr_expect(ortc_value_create(ORTC_STRING, 0, NULL, &v, &e) == ORTC_INVALID_ARGUMENT);
    cr_expect(ortc_value_create(77, 0, NULL, &v, &e) == ORTC_INVALID_ARGUMENT);
    cr_expect(ortc_value_create(ORTC_F32, 2, (int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40}, &v, &e) ==
              ORTC_LIMIT);
    cr_expect(ortc_value_create(ORTC_F64, 1, (int64_t[]){INT64_MAX / 4}, &v, &e) == ORTC_LIMIT);
    cr_expect(ortc_value_wrap(NULL, ORTC_F32, 0, NULL, NULL, NULL, &v, &e) == ORTC_INVALID_ARGUMENT);
    cr_expect_null(ortc_wrap(NULL, ORTC_F32, 1, (int64_t[]){4}));
}

Test(value, containers_hold_references)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_value *keys, *scores, *map, *list, *some, *none, *bad;
    int64_t k[2] = {7, -9};
    float s[2] = {0.5f, 0.25f};
    char shown[64];
    ortc_text t = ORTC_TEXT(shown);
    keys = ortc_wrap(k, ORTC_I64, 1, (int64_t[]){2});
    scores = ortc_wrap(s, ORTC_F32, 1, (int64_t[]){2});
    cr_assert(ortc_value_create_map(keys, scores, &map, &e) == ORTC_OK, "%s", e.text);
    cr_assert(ortc_value_create_sequence(ortc_value_type(map), 1, &map, &list, &e) == ORTC_OK, "%s", e.text);
    ortc_text_type(&t, ortc_value_type(list));
    cr_expect_str_eq(shown, "sequence(map(i64,f32))");
    cr_expect(ortc_value_create_sequence(ortc_tensor_type(ORTC_F32), 1, &map, &bad, &e) ==
              ORTC_TYPE_MISMATCH);
    cr_expect(ortc_value_create_map(scores, keys, &bad, &e) == ORTC_TYPE_MISMATCH);
    cr_assert(ortc_value_create_optional(NULL, list, &some, &e) == ORTC_OK);
    cr_assert(ortc_value_create_optional(ortc_value_type(list), NULL, &none, &e) == ORTC_OK);
    cr_expect(ortc_type_equal(ortc_value_type(some), ortc_value_type(none)));
    cr_expect(!ortc_type_equal(ortc_value_type(some), ortc_value_type(list)));
    cr_expect(ortc_value_count(some) == 1 && ortc_value_count(none) == 0);
    ortc_value_release(keys);
    ortc_value_release(scores);
    ortc_value_release(map);
    ortc_value_release(list);
    list = ortc_value_element(some, 0);
    cr_expect(((const int64_t *)ortc_value_host(ortc_value_element(ortc_value_element(list, 0), 0)))[1] ==
              -9);
    ortc_value_release(some);
    ortc_value_release(none);

    ortc_value *deep = ortc_wrap(s, ORTC_F32, 0, NULL), *outer;
    ortc_status status = ORTC_OK;
    for (int i = 0; i < 100 && status == ORTC_OK; i++) {
        status = ortc_value_create_optional(NULL, deep, &outer, &e);
        ortc_value_release(deep);
        deep = outer;
    }
    cr_expect(status == ORTC_LIMIT);
    ortc_value_release(deep);
}

/* Encodes, decodes as `type`, and gives the result. */
static ortc_value *round_trip(ortc_value *v, const ortc_type *type)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_value *back = NULL;
    void *data;
    size_t bytes;
    cr_assert(ortc_value_encode(v, "name", &data, &bytes, &e) == ORTC_OK, "%s", e.text);
    cr_assert(ortc_value_decode(data, bytes, type, &back, &e) == ORTC_OK, "%s", e.text);
    cr_expect(ortc_type_equal(ortc_value_type(v), ortc_value_type(back)));
    free(data);
    return back;
}

Test(value, every_element_type_survives_its_message)
{
    for (ortc_dtype d = 1; d < ORTC_DTYPE_COUNT; d++) {
        ortc_value *v, *back;
        if (d == ORTC_STRING) continue;
        cr_assert(ortc_value_create(d, 2, (int64_t[]){3, 5}, &v, NULL) == ORTC_OK);
        for (size_t i = 0; i < ortc_value_bytes(v); i++)
            ((uint8_t *)ortc_value_data(v))[i] = (uint8_t)(d == ORTC_BOOL ? i % 2 : 37 * i + 11);
        back = round_trip(v, ortc_tensor_type(d));
        cr_expect(ortc_value_bytes(back) == ortc_value_bytes(v), "%s", ortc_dtype_name(d));
        cr_expect(memcmp(ortc_value_host(back), ortc_value_host(v), ortc_value_bytes(v)) == 0, "%s",
                  ortc_dtype_name(d));
        ortc_value_release(v);
        ortc_value_release(back);
    }
}

Test(value, containers_and_strings_survive_their_messages)
{
    ortc_value *strings, *keys, *values, *map, *list, *some, *back, *k8;
    size_t n;
    cr_assert(ortc_value_create_strings(1, (int64_t[]){3}, (const char *[]){"a", "", "b\0c"},
                                        (size_t[]){1, 0, 3}, &strings, NULL) == ORTC_OK);
    back = round_trip(strings, NULL);
    cr_expect(memcmp(ortc_value_string(back, 2, &n), "b\0c", 3) == 0 && n == 3);
    ortc_value_string(back, 1, &n);
    cr_expect(n == 0);
    ortc_value_release(back);

    values = ortc_wrap((float[]){1, 2, 3}, ORTC_F32, 1, (int64_t[]){3});
    k8 = ortc_wrap((int8_t[]){-1, 5, 127}, ORTC_I8, 1, (int64_t[]){3});
    cr_assert(ortc_value_create_map(strings, values, &map, NULL) == ORTC_OK);
    back = round_trip(map, ortc_value_type(map));
    cr_expect(((const float *)ortc_value_host(ortc_value_element(back, 1)))[2] == 3);
    ortc_value_release(back);
    ortc_value_release(map);
    cr_assert(ortc_value_create_map(k8, strings, &map, NULL) == ORTC_OK);
    cr_assert(ortc_value_create_sequence(ortc_value_type(map), 2, (ortc_value *[]){map, map}, &list, NULL) ==
              ORTC_OK);
    cr_assert(ortc_value_create_optional(NULL, list, &some, NULL) == ORTC_OK);
    back = round_trip(some, ortc_value_type(some));
    keys = ortc_value_element(ortc_value_element(ortc_value_element(back, 0), 1), 0);
    cr_expect(memcmp(ortc_value_host(keys), (int8_t[]){-1, 5, 127}, 3) == 0);
    ortc_value_release(back);
    ortc_value_release(some);
    cr_assert(ortc_value_create_optional(ortc_value_type(list), NULL, &some, NULL) == ORTC_OK);
    back = round_trip(some, ortc_value_type(some));
    cr_expect(ortc_value_count(back) == 0);
    ortc_value_release(back);
    ortc_value_release(some);
    ortc_value_release(list);
    ortc_value_release(map);
    ortc_value_release(k8);
    ortc_value_release(values);
    ortc_value_release(strings);
}

static ortc_status decode(buffer *b, ortc_value **out)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = ortc_value_decode(b->data, b->bytes, NULL, out, &e);
    buffer_free(b);
    return s;
}

Test(value, typed_fields_are_unpacked)
{
    ortc_value *v;
    buffer b = make_tensor("", ORTC_F16, 1, (int64_t[]){2}, NULL, 0);
    put_int(&b, 5, 0x3c00); /* unpacked */
    put_int(&b, 5, 0xc000);
    cr_assert(decode(&b, &v) == ORTC_OK);
    cr_expect(memcmp(ortc_value_host(v), (uint16_t[]){0x3c00, 0xc000}, 4) == 0);
    ortc_value_release(v);

    b = make_tensor("", ORTC_F6E2M3, 1, (int64_t[]){5}, NULL, 0); /* one element an entry */
    for (int i = 0; i < 5; i++) put_int(&b, 5, (int64_t[]){1, 63, 32, 5, 2}[i]);
    cr_assert(decode(&b, &v) == ORTC_OK);
    cr_expect(memcmp(ortc_value_host(v), (uint8_t[]){0xc1, 0x0f, 0x16, 0x02}, 4) == 0);
    ortc_value_release(v);

    b = make_tensor("", ORTC_I4, 1, (int64_t[]){3}, NULL, 0); /* a packed byte an entry */
    put_int(&b, 5, 0x21);
    put_int(&b, 5, 0x03);
    cr_assert(decode(&b, &v) == ORTC_OK);
    cr_expect(memcmp(ortc_value_host(v), (uint8_t[]){0x21, 0x03}, 2) == 0);
    ortc_value_release(v);

    b = make_tensor("", ORTC_U32, 1, (int64_t[]){1}, NULL, 0);
    put_int(&b, 11, 4000000000);
    cr_assert(decode(&b, &v) == ORTC_OK);
    cr_expect(*(const uint32_t *)ortc_value_host(v) == 4000000000u);
    ortc_value_release(v);

    b = make_tensor("", ORTC_BOOL, 1, (int64_t[]){3}, "\0\2\1", 3); /* kernels count on 0 and 1 */
    cr_assert(decode(&b, &v) == ORTC_OK);
    cr_expect(memcmp(ortc_value_host(v), "\0\1\1", 3) == 0);
    ortc_value_release(v);

    b = make_tensor("", ORTC_C64, 1, (int64_t[]){1}, NULL, 0);
    put_float(&b, 4, 1);
    put_float(&b, 4, -1);
    cr_assert(decode(&b, &v) == ORTC_OK);
    cr_expect(((const float *)ortc_value_host(v))[1] == -1);
    ortc_value_release(v);
}

Test(value, broken_tensors_are_refused)
{
    ortc_value *v;
    buffer b = make_tensor("", ORTC_F32, 1, (int64_t[]){2}, "1234567", 7);
    cr_expect(decode(&b, &v) == ORTC_INVALID_MODEL && v == NULL);
    b = make_tensor("", ORTC_F32, 1, (int64_t[]){1}, "12345678", 8); /* too long is fine */
    cr_expect(decode(&b, &v) == ORTC_OK);
    ortc_value_release(v);
    b = make_tensor("", ORTC_F32, 1, (int64_t[]){1}, "1234", 4);
    put_float(&b, 4, 1); /* twice */
    cr_expect(decode(&b, &v) == ORTC_INVALID_MODEL);
    b = make_tensor("", ORTC_F32, 2, (int64_t[]){1 << 30, 1 << 30}, "", 0); /* must not allocate */
    cr_expect(decode(&b, &v) == ORTC_INVALID_MODEL);
    b = make_tensor("", ORTC_F32, 2, (int64_t[]){INT64_MAX, INT64_MAX}, "", 0);
    cr_expect(decode(&b, &v) == ORTC_LIMIT);
    b = make_tensor("", ORTC_F32, 1, (int64_t[]){-1}, "", 0);
    cr_expect(decode(&b, &v) == ORTC_INVALID_MODEL);
    b = make_tensor("", 99, 0, NULL, "1234", 4);
    cr_expect(decode(&b, &v) == ORTC_INVALID_MODEL);
    b = make_tensor("", ORTC_STRING, 0, NULL, "1234", 4);
    cr_expect(decode(&b, &v) == ORTC_INVALID_MODEL);
    b = make_tensor("", ORTC_F32, 1, (int64_t[]){0}, NULL, 0); /* no elements, no data */
    cr_expect(decode(&b, &v) == ORTC_OK && ortc_value_count(v) == 0);
    ortc_value_release(v);
    b = make_tensor("", ORTC_F32, 0, NULL, "1234", 4);
    ortc_error e = ORTC_ERROR_INIT;
    cr_expect(ortc_value_decode(b.data, b.bytes, ortc_tensor_type(ORTC_I32), &v, &e) == ORTC_TYPE_MISMATCH);
    cr_expect_str_eq(e.text, "expected a value of type i32, got f32");
    buffer_free(&b);
}

Test(value, strings_are_appended_one_by_one)
{
    ortc_value *v;
    ortc_error e = ORTC_ERROR_INIT;
    char text[64];
    size_t n;
    cr_assert(ortc_strings_begin(2, (int64_t[]){20, 50}, &v, &e) == ORTC_OK);
    cr_expect_eq(v->pending, 1000);
    for (int i = 0; i < 1000; i++) {
        memset(text, 'a' + i % 26, sizeof text);
        cr_assert(ortc_strings_append(v, text, (size_t)(i % 64), &e) == ORTC_OK);
    }
    cr_expect(ortc_strings_append(v, "x", 1, &e) == ORTC_INVALID_STATE, "one too many");
    for (int i = 0; i < 1000; i++) {
        const char *s = ortc_value_string(v, i, &n);
        cr_assert(n == (size_t)(i % 64) && (n == 0 || (s[0] == 'a' + i % 26 && s[n - 1] == s[0])),
                  "string %d", i);
    }
    ortc_value_release(v);
    cr_assert(ortc_strings_begin(1, (int64_t[]){2}, &v, &e) == ORTC_OK);
    cr_assert(ortc_strings_append(v, "a", 1, &e) == ORTC_OK);
    ortc_value *kept;
    cr_expect(ortc_value_keep(v, &kept, &e) == ORTC_INVALID_STATE, "it is not whole");
    ortc_value_release(v);
    cr_assert(ortc_strings_begin(1, (int64_t[]){0}, &v, &e) == ORTC_OK && !v->pending);
    ortc_value_release(v);
}

Test(value, what_is_kept_outlives_the_memory_of_others)
{
    static const char *const words[] = {"one", "two"};
    ortc_value *own, *text, *wrapped, *sequence, *map, *kept[3];
    float *memory = malloc(2 * sizeof *memory);
    memory[0] = 1, memory[1] = 2;
    cr_assert(ortc_value_create(ORTC_F32, 1, (int64_t[]){1}, &own, NULL) == ORTC_OK);
    cr_assert(ortc_value_create_strings(1, (int64_t[]){2}, words, NULL, &text, NULL) == ORTC_OK);
    wrapped = ortc_wrap(memory, ORTC_F32, 1, (int64_t[]){2});
    cr_assert(ortc_value_create_map(text, wrapped, &map, NULL) == ORTC_OK);
    cr_assert(ortc_value_create_sequence(ortc_tensor_type(ORTC_F32), 2, (ortc_value *[]){own, wrapped},
                                         &sequence, NULL) == ORTC_OK);
    cr_assert(ortc_value_keep(own, &kept[0], NULL) == ORTC_OK && kept[0] == own);
    cr_assert(ortc_value_keep(sequence, &kept[1], NULL) == ORTC_OK && kept[1] != sequence);
    cr_assert(ortc_value_keep(map, &kept[2], NULL) == ORTC_OK && kept[2] != map);
    cr_expect(ortc_value_element(kept[1], 0) == own, "only what must be is copied");
    cr_expect(ortc_value_element(kept[2], 0) == text);
    ortc_value *gone[] = {own, text, wrapped, map, sequence};
    for (size_t i = 0; i < 5; i++) ortc_value_release(gone[i]);
    free(memory);
    cr_expect(((const float *)ortc_value_host(ortc_value_element(kept[1], 1)))[1] == 2);
    cr_expect(((const float *)ortc_value_host(ortc_value_element(kept[2], 1)))[0] == 1);
    for (int i = 0; i < 3; i++) ortc_value_release(kept[i]);
}

/* ---- Memory that is kept ------------------------------------------------------------------------------- */

static ortc_value *lend(ortc_kept *k, int64_t bytes)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_value *v;
    cr_assert_eq(ortc_value_create_kept(k, ORTC_U8, 1, &bytes, &v, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(ortc_value_bytes(v), (size_t)bytes);
    memset(ortc_value_data(v), 1, (size_t)bytes);
    return v;
}
/* Where it was. */
static void *lend_once(ortc_kept *k, int64_t bytes)
{
    ortc_value *v = lend(k, bytes);
    void *data = ortc_value_data(v);
    ortc_value_release(v);
    return data;
}

Test(value, memory_of_released_results_serves_the_next)
{
    enum { LARGE = 1 << 20 };
    ortc_kept *k = ortc_kept_create();
    void *first = lend_once(k, LARGE);
    cr_expect_eq(lend_once(k, LARGE), first, "the same size");
    cr_expect_eq(lend_once(k, LARGE - LARGE / 5), first, "a little less");
    ortc_value *small = lend(k, LARGE / 2), *large = lend(k, LARGE);
    cr_expect_neq(ortc_value_data(small), first, "half of it would be wasted");
    cr_expect_eq(ortc_value_data(large), first);
    ortc_value_release(small);
    ortc_value_release(large);
    cr_expect_eq(ortc_kept_trim(k), LARGE + LARGE / 2, "no more is kept than was in use at one time");
    cr_expect_eq(ortc_kept_trim(k), 0);
    ortc_kept_release(k);
}

Test(value, no_more_is_kept_than_was_in_use_at_once_and_not_for_ever)
{
    enum { LARGE = 1 << 20, RUNS = 40 };
    ortc_kept *k = ortc_kept_create();
    for (int i = 1; i <= 6; i++) lend_once(k, i * LARGE); /* none is of use to the next */
    cr_expect_leq(ortc_kept_trim(k), 6 * LARGE);
    lend_once(k, LARGE);
    for (int i = 0; i < RUNS; i++) {
        ortc_kept_run(k);
        lend_once(k, LARGE / 2);
    }
    cr_expect_eq(ortc_kept_trim(k), LARGE / 2, "what runs do not use goes");
    ortc_value *v = lend(k, LARGE);
    ortc_kept_release(k); /* the value lives on: its memory goes with it */
    memset(ortc_value_data(v), 2, LARGE);
    ortc_value_release(v);
}
