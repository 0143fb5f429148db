/* base/platform_linux.c: everything that asks the operating system: clock, memory, files, modules, the
 * floating-point environment. Processors are counted in processors_linux.c, threads are in threads.c.
 *
 * Files are mapped privately and read-only. A file that is cut short by another process while it is mapped
 * faults when the lost part is read; applications that cannot rule that out load through a reader without a
 * map.
 */
#include "base.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux 5.7, of files 5.13 */
#endif

/* ---- Clock, memory ------------------------------------------------------------------------------------- */

int64_t ortc_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The whole pages inside a block; false: there are none. */
static bool whole_pages(const void *block, size_t bytes, uintptr_t page, uintptr_t *begin, uintptr_t *end)
{
    *begin = ((uintptr_t)block + page - 1) & ~(page - 1);
    *end = ((uintptr_t)block + bytes) & ~(page - 1);
    return *begin < *end;
}

#define HUGE_PAGE ((uintptr_t)ORTC_HUGE_PAGE)

void ortc_platform_find_pages(void *block, size_t bytes)
{
    enum { SLOW_NS = 1000000 }; /* for two megabytes; zeroing them takes a tenth to a half of it */
    /* bytes that are to be small pages, and how many when it is slow again */
    static _Atomic size_t small, next;
    uintptr_t begin, end;
    if (!whole_pages(block, bytes, HUGE_PAGE, &begin, &end)) return;
    size_t left = atomic_load_explicit(&small, memory_order_relaxed);
    if (left) {
        left = left > end - begin ? left - (end - begin) : 0;
        atomic_store_explicit(&small, left, memory_order_relaxed);
        madvise((void *)begin, end - begin, MADV_NOHUGEPAGE);
        return;
    }
    if (madvise((void *)begin, end - begin, MADV_HUGEPAGE)) return; /* a wish */
    const int64_t start = ortc_now_ns();
    *(volatile char *)begin = 0;
    if (ortc_now_ns() - start < SLOW_NS) return;
    size_t more = atomic_load_explicit(&next, memory_order_relaxed);
    more = more ? more < (size_t)1 << 30 ? 2 * more : more : (size_t)64 << 20;
    atomic_store_explicit(&next, more, memory_order_relaxed);
    atomic_store_explicit(&small, more, memory_order_relaxed);
    madvise((void *)(begin + HUGE_PAGE), end - begin - HUGE_PAGE, MADV_NOHUGEPAGE);
}

#ifndef MADV_POPULATE_WRITE /* of Linux 5.14; others say that they know no such thing */
#define MADV_POPULATE_WRITE 23
#endif
void ortc_platform_fill_pages(void *block, size_t bytes, size_t from, size_t to)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin, end;
    if (!from && whole_pages(block, bytes, page, &begin, &end))
        madvise((void *)begin, end - begin, MADV_NOHUGEPAGE);
    if (whole_pages((char *)block + from, to - from, page, &begin, &end))
        madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}

void ortc_platform_join_pages(void *block, size_t bytes)
{
    uintptr_t begin, end;
    if (whole_pages(block, bytes, HUGE_PAGE, &begin, &end))
        madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

#ifndef MADV_COLLAPSE /* of Linux 6.1; others say that they know no such thing */
#define MADV_COLLAPSE 25
#endif
bool ortc_platform_join_page(void *block, size_t bytes, size_t *at)
{
    uintptr_t begin, end;
    if (*at >= bytes || !whole_pages((char *)block + *at, bytes - *at, HUGE_PAGE, &begin, &end)) return false;
    madvise((void *)begin, HUGE_PAGE, MADV_HUGEPAGE);
    madvise((void *)begin, HUGE_PAGE, MADV_COLLAPSE); /* a wish */
    *at = begin + HUGE_PAGE - (uintptr_t)block;
    return true;
}

void ortc_platform_drop_pages(void *block, size_t bytes)
{
    uintptr_t begin, end;
    if (whole_pages(block, bytes, HUGE_PAGE, &begin, &end))
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void ortc_platform_interleave(void *block, size_t bytes)
{
    enum { MOST = 1024, WORD = 8 * sizeof(unsigned long) }; /* as many nodes as kernels know */
    unsigned long nodes[MOST / WORD] = {0};
    uintptr_t begin, end;
    int n = 0;
    if (!whole_pages(block, bytes, (uintptr_t)sysconf(_SC_PAGESIZE), &begin, &end)) return;
    if (syscall(SYS_get_mempolicy, NULL, nodes, (unsigned long)MOST, NULL,
                (unsigned long)MPOL_F_MEMS_ALLOWED))
        return;
    for (size_t i = 0; i < ORTC_LENGTH(nodes); i++) n += __builtin_popcountl(nodes[i]);
    if (n > 1) /* it takes one bit less than it is told */
        syscall(SYS_mbind, begin, end - begin, (unsigned long)MPOL_INTERLEAVE, nodes, (unsigned long)MOST + 1,
                0ul);
}

/* ---- Files --------------------------------------------------------------------------------------------- */

#define SMALL_FILE (256 * 1024)

static ortc_status file_error(ortc_error *error, int number, const char *what, const char *path)
{
    ortc_status code = number == ENOENT || number == ENOTDIR ? ORTC_NOT_FOUND
                       : number == ENOMEM                    ? ORTC_OUT_OF_MEMORY
                                                             : ORTC_IO;
    char buffer[128];
    return ortc_fail(error, code, "cannot %s '%s': %s", what, path,
                     strerror_r(number, buffer, sizeof buffer));
}

/* data [bytes] becomes those of an open file. */
static ortc_status read_descriptor(int fd, const char *path, char *data, size_t bytes, ortc_error *error)
{
    for (size_t n = 0; n < bytes;) {
        const ssize_t now = read(fd, data + n, bytes - n);
        if (now < 0 && errno == EINTR) continue;
        if (now < 0) return file_error(error, errno, "read", path);
        if (!now)
            return ortc_fail(error, ORTC_IO, "'%s' became shorter while it was read: %zu bytes, expected %zu",
                             path, n, bytes);
        n += (size_t)now;
    }
    return ORTC_OK;
}

/* Maps an open file, or reads a small one, and closes it, also on failure. */
static ortc_status map_descriptor(int fd, const char *path, bool one_name, ortc_mapping *out,
                                  ortc_error *error)
{
    ortc_status status = ORTC_OK;
    void *data = NULL;
    struct stat s;

    if (fstat(fd, &s) != 0) {
        status = file_error(error, errno, "read", path);
    } else if (!S_ISREG(s.st_mode)) {
        status = ortc_fail(error, ORTC_IO, "cannot read '%s': it is %s, expected a file", path,
                           S_ISDIR(s.st_mode) ? "a directory" : "not an ordinary file");
    } else if (one_name && s.st_nlink > 1) {
        status = ortc_fail(error, ORTC_INVALID_MODEL,
                           "'%s' has %ju names (hard links): refused, as it may be a file from elsewhere; "
                           "allowed when links are followed",
                           path, (uintmax_t)s.st_nlink);
    } else if ((uintmax_t)s.st_size > (uintmax_t)PTRDIFF_MAX) {
        status = ortc_fail(error, ORTC_LIMIT, "'%s' is too large to be mapped", path);
    } else if (s.st_size > 0 && s.st_size <= SMALL_FILE) {
        data = ortc_data_alloc((size_t)s.st_size);
        status = data ? read_descriptor(fd, path, data, (size_t)s.st_size, error)
                      : ortc_no_memory(error, (size_t)s.st_size);
        if (status != ORTC_OK) ortc_data_free(data);
    } else if (s.st_size > 0) {
        data = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) status = file_error(error, errno, "map", path);
    }
    close(fd);
    if (status == ORTC_OK)
        *out = (ortc_mapping){data, (size_t)s.st_size, s.st_dev, s.st_ino, s.st_size <= SMALL_FILE};
    return status;
}

/* O_NONBLOCK: opening a named pipe must not wait for a writer. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

ortc_status ortc_map_file(const char *path, ortc_mapping *out, ortc_error *error)
{
    int fd = open(path, OPEN_FLAGS);

    *out = (ortc_mapping){0};
    if (fd < 0) return file_error(error, errno, "open", path);
    return map_descriptor(fd, path, false, out, error);
}

/* For kernels without openat2: one component at a time, never through a link. -1 with errno. */
static int open_by_components(int directory, const char *relative)
{
    char name[256];
    int at = directory, next;

    for (;;) {
        size_t length = strcspn(relative, "/");
        const char *rest = relative + length + strspn(relative + length, "/");
        bool last = *rest == 0;

        if (length >= sizeof name) {
            next = -1;
            errno = ENAMETOOLONG;
        } else {
            memcpy(name, relative, length);
            name[length] = 0;
            next = openat(at, name,
                          last ? (int)OPEN_FLAGS | O_NOFOLLOW
                               : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        if (at != directory) {
            int number = errno;
            close(at);
            errno = number;
        }
        if (last || next < 0) return next;
        at = next;
        relative = rest;
    }
}

static int open_beneath(int directory, const char *relative, bool follow_links)
{
    if (follow_links) /* links of a hub's cache lead out of the folder on purpose */
        return openat(directory, relative, OPEN_FLAGS);
#if defined(SYS_openat2) && defined(RESOLVE_BENEATH)
    for (int tries = 0; tries < 8; tries++) {
        struct open_how how = {.flags = OPEN_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
        int fd = (int)syscall(SYS_openat2, directory, relative, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != ENOSYS && errno != EPERM)) return fd;
        if (errno != EAGAIN) break;
    }
#endif
    return open_by_components(directory, relative);
}

bool ortc_path_stays_beneath(const char *relative)
{
    if (*relative == 0 || *relative == '/') return false;
    for (const char *p = relative; *p; p += strspn(p, "/")) {
        size_t length = strcspn(p, "/");
        if (length == 2 && p[0] == '.' && p[1] == '.') return false;
        p += length;
    }
    return true;
}

ortc_status ortc_map_file_beneath(const char *directory, const char *relative, bool follow_links,
                                  ortc_mapping *out, ortc_error *error)
{
    int dir, fd, number;

    *out = (ortc_mapping){0};
    if (!ortc_path_stays_beneath(relative))
        return ortc_fail(error, ORTC_INVALID_MODEL,
                         "'%s' leads out of the model's folder: expected a relative path without '..'",
                         relative);
    dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return file_error(error, errno, "open", directory);
    fd = open_beneath(dir, relative, follow_links);
    number = errno;
    close(dir);
    if (fd < 0 && (number == ELOOP || number == EXDEV))
        return ortc_fail(error, ORTC_INVALID_MODEL,
                         "'%s' is reached through a symbolic link: refused, unless links are followed "
                         "(ORTC_MODEL_FOLLOW_LINKS)",
                         relative);
    if (fd < 0) return file_error(error, number, "open", relative);
    return map_descriptor(fd, relative, !follow_links, out, error);
}

void ortc_unmap_file(ortc_mapping *mapping)
{
    void *data = (void *)(uintptr_t)mapping->data;
    if (mapping->read)
        ortc_data_free(data);
    else if (data)
        munmap(data, mapping->bytes);
    *mapping = (ortc_mapping){0};
}

void ortc_mapping_drop(const void *data, size_t bytes)
{
    /* Whole pages inside the range only: the neighbours' bytes may be in use. */
    uintptr_t begin, end;
    if (whole_pages(data, bytes, (uintptr_t)sysconf(_SC_PAGESIZE), &begin, &end))
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* The whole pages around bytes. */
static size_t around(const void *data, size_t bytes, uintptr_t *begin)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    *begin = (uintptr_t)data & ~(page - 1);
    return (((uintptr_t)data + bytes + page - 1) & ~(page - 1)) - *begin;
}

/* A huge page of a file is mapped as one where addresses and the file's places differ by whole ones: here
 * they differ by a half more than where the mapping is. */
const void *ortc_mapping_again(const void *data, size_t bytes)
{
    const size_t most = SIZE_MAX - 4 * HUGE_PAGE;
    uintptr_t begin;
    const size_t length = bytes < most ? around(data, bytes, &begin) : 0, spare = HUGE_PAGE;
    if (!length) return NULL;
    char *room = mmap(NULL, length + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return NULL;
    const size_t before = (begin + HUGE_PAGE / 2 - (uintptr_t)room) % HUGE_PAGE;
    char *at = mremap((void *)begin, length, length, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                      room + before);
    if (at == MAP_FAILED) {
        munmap(room, length + spare);
        return NULL;
    }
    if (before) munmap(room, before);
    munmap(at + length, spare - before);
    return at + ((uintptr_t)data - begin);
}

void ortc_mapping_again_end(const void *again, size_t bytes)
{
    uintptr_t begin;
    const size_t length = around(again, bytes, &begin);
    munmap((void *)begin, length);
}

/* ---- Modules ------------------------------------------------------------------------------------------- */

void *ortc_platform_open_module(const char *path, ortc_error *error)
{
    void *module;

    if (strchr(path, '/') && access(path, F_OK) != 0) {
        file_error(error, errno, "open", path);
        return NULL;
    }
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        const char *why = dlerror();
        ortc_fail(error, ORTC_INCOMPATIBLE_PLUGIN, "cannot load '%s': %s", path,
                  why ? why : "unknown reason");
    }
    return module;
}

void *ortc_platform_symbol(void *module, const char *name) { return dlsym(module, name); }

bool ortc_platform_own_folder(char *out, size_t bytes)
{
    Dl_info info;
    char *slash;

    if (!dladdr((const void *)(uintptr_t)&ortc_platform_own_folder, &info) || !info.dli_fname) return false;
    /* a program's own name may be relative, or not a path at all */
    char *path = realpath(info.dli_fname, NULL);
    if (!path || !strchr(info.dli_fname, '/')) {
        free(path);
        path = realpath("/proc/self/exe", NULL);
    }
    if (!path || !(slash = strrchr(path, '/')) || (size_t)(slash - path) >= bytes) {
        free(path);
        return false;
    }
    memcpy(out, path, (size_t)(slash - path));
    out[slash - path] = 0;
    free(path);
    return true;
}

/* ---- Floating point ------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
enum { DEFAULT_MXCSR = 0x1f80, MXCSR_FLAGS = 0x3f };

ortc_fp_env ortc_fp_enter(void)
{
    ortc_fp_env env = {_mm_getcsr()};
    if ((env.control & ~(uint32_t)MXCSR_FLAGS) != DEFAULT_MXCSR)
        _mm_setcsr(DEFAULT_MXCSR | (env.control & MXCSR_FLAGS));
    return env;
}

void ortc_fp_leave(ortc_fp_env env)
{
    /* The sticky flags come back as they were, too: what we computed is not the caller's exception. */
    if (_mm_getcsr() != env.control) _mm_setcsr(env.control);
}
#elif defined(__aarch64__)
ortc_fp_env ortc_fp_enter(void)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    if (fpcr != 0) __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)));
    return (ortc_fp_env){(uint32_t)fpcr};
}

void ortc_fp_leave(ortc_fp_env env)
{
    if (env.control != 0) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)env.control));
}
#else
ortc_fp_env ortc_fp_enter(void) { return (ortc_fp_env){0}; }

void ortc_fp_leave(ortc_fp_env env) { (void)env; }
#endif
