/* tests/unit/test_base.c: errors, sizes, arenas, maps, text, files below a folder, the floating-point
 * environment. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/base.h"

Test(base, errors_are_cut_off_never_overrun)
{
    struct {
        ortc_error error;
        char guard[8];
    } e = {ORTC_ERROR_INIT, "guarded"};
    char big[2000];
    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = 0;
    cr_expect(ortc_fail(&e.error, ORTC_IO, "%s", big) == ORTC_IO);
    cr_expect(strlen(e.error.text) == sizeof e.error.text - 1);
    ortc_error_prefix(&e.error, "node '%d': ", 7);
    cr_expect(strncmp(e.error.text, "node '7': aaa", 13) == 0);
    cr_expect(strlen(e.error.text) == sizeof e.error.text - 1);
    cr_expect_str_eq(e.guard, "guarded");

    e.error.size = offsetof(ortc_error, text) + 8; /* an older application's struct */
    e.error.text[8] = '!';
    ortc_fail(&e.error, ORTC_LIMIT, "0123456789");
    cr_expect_str_eq(e.error.text, "0123456");
    ortc_error_prefix(&e.error, "ab ");
    cr_expect_str_eq(e.error.text, "ab 0123");
    cr_expect(e.error.text[8] == '!');
    cr_expect(ortc_fail(NULL, ORTC_LIMIT, "x") == ORTC_LIMIT);
    cr_expect_str_eq(ortc_status_name(ORTC_INVALID_MODEL), "INVALID_MODEL");
    cr_expect_str_eq(ortc_status_name(ORTC_INTERNAL), "INTERNAL");
    cr_expect_str_eq(ortc_status_name(99), "?");
}

Test(base, sizes_are_checked)
{
    int64_t count;
    size_t bytes;
    cr_expect(ortc_count_elements(0, NULL, &count) && count == 1);
    cr_expect(ortc_count_elements(2, (int64_t[]){3, 0}, &count) && count == 0);
    cr_expect(ortc_count_elements(3, (int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40, 0}, &count) &&
              count == 0);
    cr_expect(!ortc_count_elements(2, (int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40}, &count));
    cr_expect(!ortc_count_elements(2, (int64_t[]){0, -1}, &count));
    cr_expect(ortc_tensor_bytes(ORTC_F32, 5, &bytes) && bytes == 20);
    cr_expect(ortc_tensor_bytes(ORTC_U4, 5, &bytes) && bytes == 3);
    cr_expect(ortc_tensor_bytes(ORTC_I2, 5, &bytes) && bytes == 2);
    cr_expect(ortc_tensor_bytes(ORTC_F6E2M3, 5, &bytes) && bytes == 4);
    cr_expect(ortc_tensor_bytes(ORTC_F6E2M3, 8, &bytes) && bytes == 6);
    cr_expect(!ortc_tensor_bytes(ORTC_F64, INT64_MAX, &bytes));
    cr_expect(!ortc_tensor_bytes(ORTC_STRING, 1, &bytes));
    cr_expect(ortc_align_size(1, 256, &bytes) && bytes == 256);
    cr_expect(!ortc_align_size(SIZE_MAX, 256, &bytes));
}

Test(base, arenas_give_zeroed_aligned_blocks)
{
    ortc_arena a = {0};
    for (size_t n = 1; n < 5000; n += 37) {
        char *p = ortc_arena_alloc(&a, n);
        cr_assert_not_null(p);
        cr_expect((uintptr_t)p % 16 == 0);
        for (size_t i = 0; i < n; i++) cr_assert(p[i] == 0);
        memset(p, 0xff, n);
    }
    char *large = ortc_arena_alloc(&a, 3 << 20);
    cr_assert_not_null(large);
    cr_expect_null(ortc_arena_alloc(&a, SIZE_MAX - 8));
    cr_expect_null(ortc_arena_array(&a, SIZE_MAX / 2, 8));
    cr_expect_not_null(ortc_arena_array(&a, 0, 8));
    cr_expect_str_eq(ortc_arena_printf(&a, "%d-%s", 5, "x"), "5-x");
    for (int n = 120; n < 140; n++) {
        const char *text = ortc_arena_printf(&a, "%*d", n, 7);
        cr_expect(strlen(text) == (size_t)n && text[n - 1] == '7' && text[0] == ' ', "%d characters", n);
    }
    cr_expect_str_eq(ortc_arena_string(&a, "abcdef", 3), "abc");
    ortc_arena_deinit(&a);
    cr_expect(a.bytes == 0);
}

Test(base, maps_find_what_was_set)
{
    enum { N = 20000 };
    ortc_map map = {0};
    static char keys[N][12];
    cr_expect_null(ortc_map_get(&map, "x"));
    for (int i = 0; i < N; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i * 7);
        cr_assert(ortc_map_set(&map, keys[i], keys[i]));
    }
    cr_expect(map.count == N);
    for (int i = 0; i < N; i++) cr_assert(ortc_map_get(&map, keys[i]) == keys[i]);
    cr_expect_null(ortc_map_get(&map, "k1"));
    cr_expect(ortc_map_set(&map, "k7", keys[0]));
    cr_expect(ortc_map_get(&map, "k7") == keys[0] && map.count == N);
    ortc_map_deinit(&map);
    cr_expect(ortc_hash("abc", 3, 0) != ortc_hash("abd", 3, 0));
    cr_expect(ortc_hash("abc", 3, 0) != ortc_hash("abc", 3, 1));
    cr_expect(ortc_hash("a\0", 2, 0) != ortc_hash("a", 1, 0));
}

Test(base, text_ends_at_its_buffer)
{
    char buffer[12];
    ortc_text t = ORTC_TEXT(buffer);
    ortc_text_tensor(&t, ORTC_F32, 2, (int64_t[]){2, -1});
    cr_expect_str_eq(buffer, "f32[2,?]");
    ortc_text_add(&t, "and more");
    ortc_text_add(&t, "and more");
    cr_expect_str_eq(buffer, "f32[2,?]and");
    t = (ortc_text)ORTC_TEXT(buffer);
    ortc_text_tensor(&t, ORTC_I64, -1, NULL);
    cr_expect_str_eq(buffer, "i64[...]");
}

static int n_logged;
static void count_log(void *arg, int32_t level, const char *text)
{
    n_logged += level == *(int *)arg && !strcmp(text, "n 5");
}

Test(base, the_log_is_silent_until_it_is_set)
{
    int level = ORTC_LOG_WARNING;
    ortc_log(ORTC_LOG_ERROR, "n %d", 5);
    ortc_log_set(count_log, &level, ORTC_LOG_WARNING);
    ortc_log(ORTC_LOG_WARNING, "n %d", 5);
    ortc_log(ORTC_LOG_INFO, "n %d", 5);
    ortc_log_set(NULL, NULL, 0);
    cr_expect(n_logged == 1);
}

/* ---- Files --------------------------------------------------------------------------------------------- */

static char folder[64];

static void write_file(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
}

static void make_folder(void)
{
    char path[160];
    snprintf(folder, sizeof folder, "/tmp/ortc-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/sub", folder);
    cr_assert(mkdir(path, 0700) == 0);
}

static void remove_folder(void)
{
    char command[80];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

static ortc_status beneath(const char *relative, bool follow)
{
    ortc_mapping m;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = ortc_map_file_beneath(folder, relative, follow, &m, &e);
    ortc_unmap_file(&m);
    return s;
}

Test(base, files_are_mapped_and_dropped, .init = make_folder, .fini = remove_folder)
{
    char path[160];
    ortc_mapping m;
    write_file("a", "hello");
    write_file("empty", "");
    snprintf(path, sizeof path, "%s/a", folder);
    cr_assert(ortc_map_file(path, &m, NULL) == ORTC_OK);
    cr_expect(m.bytes == 5 && m.read && memcmp(m.data, "hello", 5) == 0);
    ortc_unmap_file(&m);
    enum { MOST = 256 * 1024, SIZES = 3 }; /* what is read, and what is mapped */
    static const int sizes[SIZES] = {MOST - 1, MOST, MOST + 1};
    for (int i = 0; i < SIZES; i++) {
        FILE *f = fopen(path, "wb");
        cr_assert_not_null(f);
        for (int k = 0; k < sizes[i]; k++) putc(k * 7 & 0xff, f);
        cr_assert(fclose(f) == 0);
        cr_assert(ortc_map_file(path, &m, NULL) == ORTC_OK && m.bytes == (size_t)sizes[i]);
        cr_expect(m.read == (i < 2));
        if (!m.read) ortc_mapping_drop(m.data, m.bytes);
        for (int k = 0; k < sizes[i]; k++) cr_assert(((const uint8_t *)m.data)[k] == (k * 7 & 0xff));
        ortc_unmap_file(&m);
        cr_expect_null(m.data);
    }
    snprintf(path, sizeof path, "%s/empty", folder);
    cr_expect(ortc_map_file(path, &m, NULL) == ORTC_OK && m.bytes == 0 && m.data == NULL);
    ortc_error e = ORTC_ERROR_INIT;
    cr_expect(ortc_map_file("/nonexistent/x", &m, &e) == ORTC_NOT_FOUND);
    cr_expect_str_eq(e.text, "cannot open '/nonexistent/x': No such file or directory");
    cr_expect(ortc_map_file(folder, &m, &e) == ORTC_IO);
}

Test(base, bytes_of_a_mapping_are_mapped_again, .init = make_folder, .fini = remove_folder)
{
    enum { BYTES = 5 << 20, AT = 4099, LENGTH = (4 << 20) + 5 };
    char path[160];
    ortc_mapping m;
    snprintf(path, sizeof path, "%s/large", folder);
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f);
    for (int i = 0; i < BYTES; i++) putc((i * 7 + i / 4096) & 0xff, f);
    cr_assert(fclose(f) == 0);
    cr_assert(ortc_map_file(path, &m, NULL) == ORTC_OK && m.bytes == BYTES);
    const char *first = (const char *)m.data + AT, *again = ortc_mapping_again(first, LENGTH);
    if (!again) cr_skip_test("this system does not map a file's bytes again");
    cr_expect(again != first && memcmp(again, first, LENGTH) == 0);
    const char *third = ortc_mapping_again(again, LENGTH); /* of those, too */
    cr_expect(third && memcmp(third, first, LENGTH) == 0);
    ortc_mapping_drop(again, LENGTH);
    cr_expect(memcmp(again, first, LENGTH) == 0);
    ortc_unmap_file(&m); /* each is by itself */
    for (int i = 0; i < LENGTH; i++)
        cr_assert((unsigned char)again[i] == (((i + AT) * 7 + (i + AT) / 4096) & 0xff));
    ortc_mapping_again_end(again, LENGTH);
    if (third) ortc_mapping_again_end(third, LENGTH);
    const char here[] = "not a mapping of a file";
    const char *none = ortc_mapping_again(here, SIZE_MAX - 1);
    cr_expect_null(none);
}

Test(base, files_below_a_folder_stay_below_it, .init = make_folder, .fini = remove_folder)
{
    char path[160], target[160];
    write_file("a", "1");
    write_file("sub/b", "2");
    cr_expect(beneath("a", false) == ORTC_OK);
    cr_expect(beneath("sub/b", false) == ORTC_OK);
    cr_expect(beneath("sub//b", false) == ORTC_OK);
    cr_expect(beneath("./a", false) == ORTC_OK);
    cr_expect(beneath("sub/../a", false) == ORTC_INVALID_MODEL);
    cr_expect(beneath("../a", false) == ORTC_INVALID_MODEL);
    cr_expect(beneath("..", true) == ORTC_INVALID_MODEL);
    cr_expect(beneath("/etc/passwd", false) == ORTC_INVALID_MODEL);
    cr_expect(beneath("/etc/passwd", true) == ORTC_INVALID_MODEL);
    cr_expect(beneath("", false) == ORTC_INVALID_MODEL);
    cr_expect(beneath("none", false) == ORTC_NOT_FOUND);
    cr_expect(beneath("sub", false) == ORTC_IO);

    snprintf(path, sizeof path, "%s/link", folder);
    cr_assert(symlink("/etc/passwd", path) == 0);
    cr_expect(beneath("link", false) == ORTC_INVALID_MODEL);
    cr_expect(beneath("link", true) == ORTC_OK);
    snprintf(path, sizeof path, "%s/dir", folder);
    cr_assert(symlink("sub", path) == 0);
    cr_expect(beneath("dir/b", false) == ORTC_INVALID_MODEL);
    snprintf(path, sizeof path, "%s/hard", folder);
    snprintf(target, sizeof target, "%s/a", folder);
    cr_assert(link(target, path) == 0);
    cr_expect(beneath("hard", false) == ORTC_INVALID_MODEL);
    cr_expect(beneath("hard", true) == ORTC_OK);
    snprintf(path, sizeof path, "%s/fifo", folder);
    cr_assert(mkfifo(path, 0600) == 0);
    cr_expect(beneath("fifo", false) == ORTC_IO); /* and does not hang */
}

Test(base, processors_and_clock)
{
    int64_t now = ortc_now_ns();
    const ortc_processors n = ortc_platform_processors();
    cr_expect(n.usual >= 1 && n.cores >= n.usual && n.threads >= n.cores && n.n_nodes >= 1);
    free(n.list);
    cr_expect(ortc_now_ns() >= now);
    ortc_error e = ORTC_ERROR_INIT;
    cr_expect_null(ortc_platform_open_module("/nonexistent/x.so", &e));
    cr_expect(e.code == ORTC_NOT_FOUND);
}

/* A system of our own: processors 2n and 2n + 1 share a core, or all share one, or nothing is there. */
Test(base, siblings_on_one_core_are_counted)
{
    char root[] = "/tmp/ortc-processors-XXXXXX", command[320], path[256];
    enum { MOST = 4096 };
    cpu_set_t *set = CPU_ALLOC(MOST);
    uint32_t threads = 0, pairs = 0;
    bool before = false;
    cr_assert_not_null(mkdtemp(root));
    cr_assert_not_null(set);
    cr_assert_eq(sched_getaffinity(0, CPU_ALLOC_SIZE(MOST), set), 0);
    for (int i = 0; i < MOST; i++) {
        const bool allowed = CPU_ISSET_S(i, CPU_ALLOC_SIZE(MOST), set);
        threads += allowed;
        pairs += allowed && !(i % 2 && before);
        before = allowed;
    }
    ortc_processors n = ortc_platform_count(root, NULL);
    cr_expect(n.threads == threads && n.cores == threads, "%u of %u", n.cores, n.threads);
    free(n.list);
    for (int way = 0; way < 2; way++) {
        for (int i = 0; i < MOST; i++) {
            if (!CPU_ISSET_S(i, CPU_ALLOC_SIZE(MOST), set)) continue;
            snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology", root, i);
            snprintf(command, sizeof command, "mkdir -p %s", path);
            cr_assert_eq(system(command), 0);
            strcat(path, "/thread_siblings_list");
            FILE *f = fopen(path, "w");
            cr_assert_not_null(f);
            if (way)
                fprintf(f, "0-%d\n", MOST - 1);
            else
                fprintf(f, "%d,%d\n", i & ~1, i | 1);
            fclose(f);
        }
        n = ortc_platform_count(root, NULL);
        cr_expect(n.threads == threads && n.cores == (way ? 1 : pairs), "%u of %u", n.cores, n.threads);
        free(n.list);
    }
    CPU_FREE(set);
    snprintf(command, sizeof command, "rm -r %s", root);
    cr_expect_eq(system(command), 0);
}

/* ---- Machines of our own: files of a folder in the place of /sys --------------------------------------- */

static char machine[] = "/tmp/ortc-machine-XXXXXX";

static void machine_begin(void)
{
    strcpy(strrchr(machine, '-'), "-XXXXXX");
    cr_assert_not_null(mkdtemp(machine));
}
static void machine_end(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", machine);
    cr_expect_eq(system(command), 0);
}

ORTC_PRINTF(2, 3) static void machine_file(const char *text, const char *fmt, ...)
{
    char path[256], command[600];
    va_list args;
    int n = snprintf(path, sizeof path, "%s/devices/", machine);
    va_start(args, fmt);
    vsnprintf(path + n, sizeof path - (size_t)n, fmt, args);
    va_end(args);
    snprintf(command, sizeof command, "mkdir -p %s && rmdir %s", path, path);
    cr_assert_eq(system(command), 0);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fprintf(f, "%s\n", text);
    fclose(f);
}

static void expect_counts(const char *allowed, uint32_t threads, uint32_t cores, uint32_t usual,
                          uint32_t nodes)
{
    const ortc_processors n = ortc_platform_count(machine, allowed);
    cr_expect(n.threads == threads && n.cores == cores && n.usual == usual && n.n_nodes == nodes,
              "of %s: %u processors, %u cores, %u usual, %u nodes", allowed, n.threads, n.cores, n.usual,
              n.n_nodes);
    free(n.list);
}

/* Two sockets of four cores with two processors each: 0-3 and 8-11, 4-7 and 12-15. */
Test(base, sockets_are_told_apart, .init = machine_begin, .fini = machine_end)
{
    char text[16];
    for (int i = 0; i < 16; i++) {
        snprintf(text, sizeof text, "%d,%d", i % 8, i % 8 + 8);
        machine_file(text, "system/cpu/cpu%d/topology/thread_siblings_list", i);
    }
    machine_file("0-1,3", "system/node/online"); /* 3: memory without processors */
    machine_file("0-3,8-11", "system/node/node0/cpulist");
    machine_file("4-7,12-15", "system/node/node1/cpulist");
    machine_file("", "system/node/node3/cpulist");
    expect_counts("0-15", 16, 8, 8, 2);
    expect_counts("4-7,12", 5, 4, 4, 1);
    expect_counts("2-5", 4, 4, 4, 2);
    const ortc_processors n = ortc_platform_count(machine, "2-5,10");
    cr_assert_eq(n.count, 5);
    static const uint16_t node[5] = {0, 0, 1, 1, 0};
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(n.list[i].node, node[i]);
        cr_expect_eq(n.list[i].sibling, i == 4);
        cr_expect(!n.list[i].slow);
    }
    free(n.list);
}

/* Two performance cores of two processors each, four efficiency cores. */
Test(base, efficiency_cores_are_told_apart, .init = machine_begin, .fini = machine_end)
{
    char text[16];
    for (int i = 0; i < 8; i++) {
        snprintf(text, sizeof text, "%d-%d", i < 4 ? i & ~1 : i, i < 4 ? i | 1 : i);
        machine_file(text, "system/cpu/cpu%d/topology/thread_siblings_list", i);
    }
    expect_counts("0-7", 8, 6, 6, 1);
    machine_file("0-3", "cpu_core/cpus");
    machine_file("4-7", "cpu_atom/cpus");
    expect_counts("0-7", 8, 6, 2, 1);
    expect_counts("4-7", 4, 4, 4, 1); /* all that there is */
}

/* A telephone: one large, three middle, four little. */
Test(base, capacities_tell_cores_apart, .init = machine_begin, .fini = machine_end)
{
    static const char *const capacity[8] = {"160", "160", "160", "160", "790", "790", "790", "1024"};
    for (int i = 0; i < 8; i++) machine_file(capacity[i], "system/cpu/cpu%d/cpu_capacity", i);
    expect_counts("0-7", 8, 8, 4, 1);
    expect_counts("0-3", 4, 4, 4, 1);
    expect_counts("0-6", 7, 7, 3, 1);
}

Test(base, what_is_written_stays_where_pages_are_asked_for)
{
    char *large = ortc_alloc_aligned(7 << 20);
    cr_assert_not_null(large);
    memset(large, 7, 3 << 20); /* of the rest the next huge page may be tried; nobody has written it */
    ortc_platform_find_pages(large + (3 << 20), (4 << 20) - 1);
    ortc_platform_find_pages(large + 1, 1000);
    for (int i = 0; i < 3 << 20; i += 4096) cr_expect_eq(large[i], 7);
    memset(large, 8, 7 << 20);
    ortc_free_aligned(large, 7 << 20);
}

Test(base, small_pages_are_joined_where_they_are)
{
    enum { BYTES = 9 << 20 };
    void *aligned;
    cr_assert_eq(posix_memalign(&aligned, ORTC_HUGE_PAGE, BYTES), 0);
    char *block = aligned;
    size_t at = 1, pages = 0;
    for (int i = 0; i < BYTES; i++) block[i] = (char)(i * 7 >> 3);
    while (ortc_platform_join_page(block, BYTES - 1, &at)) { /* four megabytes and more begin at a multiple */
        cr_assert_eq(((size_t)(uintptr_t)block + at) % (2 << 20), 0);
        cr_assert_leq(at, (size_t)BYTES - 1);
        pages++;
    }
    cr_expect_eq(pages,
                 3); /* neither the first, which begins before `at`, nor the last, which is no whole one */
    for (int i = 0; i < BYTES; i++) cr_assert_eq(block[i], (char)(i * 7 >> 3));
    at = BYTES;
    cr_expect(!ortc_platform_join_page(block, BYTES, &at));
    at = 0;
    cr_expect(!ortc_platform_join_page(block + 1, 100, &at));
    cr_expect_eq(at, 0);
    free(block);
}

Test(base, interleaving_is_a_wish)
{
    char *block = ortc_alloc_aligned(1 << 20);
    cr_assert_not_null(block);
    ortc_platform_interleave(block, 1 << 20);
    ortc_platform_interleave(block + 100, 10); /* no whole page */
    memset(block, 1, 1 << 20);
    ortc_free_aligned(block, 1 << 20);
}

#if defined(__x86_64__)
Test(base, the_callers_floating_point_environment_comes_back)
{
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040 | 0x2000); /* flush to zero, denormals are zero, round down */
    unsigned odd = _mm_getcsr();
    ortc_fp_env env = ortc_fp_enter();
    volatile float tiny = 1e-38f, tenth = 0.1f;
    volatile float product = tiny * tenth;
    cr_expect((_mm_getcsr() & 0xffc0) == 0x1f80);
    cr_expect(product > 0);
    ortc_fp_leave(env);
    cr_expect(_mm_getcsr() == odd);
    _mm_setcsr(before);
}
#endif
