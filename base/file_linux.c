/* base/file_linux.c: writing a file so that its name is never seen with half of its contents.
 *
 * Bytes go to a file without a reader beside the target; commit makes them durable and then renames. Whoever
 * has the old file open or mapped keeps it as it was, so a model may be written over the file that it was
 * loaded from.
 */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 64 << 10,
    MAX_TRIES = 100, /* names of temporary files that are taken */
};

static ortc_status write_error(ortc_file *f, const char *what)
{
    char buffer[128];
    return ortc_fail(f->error, errno == ENOENT ? ORTC_NOT_FOUND : ORTC_IO, "cannot %s '%s': %s", what,
                     f->path, strerror_r(errno, buffer, sizeof buffer));
}

ortc_status ortc_file_create(ortc_file *f, const char *path, ortc_error *error)
{
    static atomic_uint serial;
    size_t length = strlen(path);
    struct stat old;

    *f = (ortc_file){.descriptor = -1, .error = error};
    f->path = ortc_arena_string(&f->arena, path, length);
    f->buffer = ortc_arena_alloc(&f->arena, BUFFER_BYTES);
    if (!f->path || !f->buffer) return ortc_no_memory(error, BUFFER_BYTES);
    /* A device, a pipe, a folder: not to be replaced by a file. */
    if (stat(path, &old) == 0 && !S_ISREG(old.st_mode))
        return ortc_fail(error, ORTC_IO, "cannot write '%s': it is not a regular file", path);
    for (int i = 0; i < MAX_TRIES && f->descriptor < 0; i++) {
        char *name = ortc_arena_printf(&f->arena, "%s.%ld-%u.tmp", path, (long)getpid(),
                                       atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed));
        if (!name) return ortc_no_memory(error, length);
        f->descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (f->descriptor >= 0)
            f->temporary = name;
        else if (errno != EEXIST)
            break;
    }
    return f->descriptor < 0 ? write_error(f, "write") : ORTC_OK;
}

static ortc_status write_all(ortc_file *f, const char *data, size_t bytes)
{
    while (bytes > 0) {
        /* Linux writes at most 2 GiB at a time. */
        ssize_t n = write(f->descriptor, data, bytes < (size_t)1 << 30 ? bytes : (size_t)1 << 30);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return write_error(f, "write");
        data += n;
        bytes -= (size_t)n;
    }
    return ORTC_OK;
}

static ortc_status flush(ortc_file *f)
{
    size_t n = f->n_buffer;
    f->n_buffer = 0;
    return write_all(f, f->buffer, n);
}

ortc_status ortc_file_write(ortc_file *f, const void *data, size_t bytes)
{
    f->bytes += bytes;
    if (bytes > BUFFER_BYTES - f->n_buffer) ORTC_TRY(flush(f));
    if (bytes > BUFFER_BYTES) return write_all(f, data, bytes);
    if (bytes) memcpy(f->buffer + f->n_buffer, data, bytes);
    f->n_buffer += bytes;
    return ORTC_OK;
}

ortc_status ortc_file_pad(ortc_file *f, uint64_t to)
{
    static const char zeros[4096];
    while (f->bytes < to)
        ORTC_TRY(
            ortc_file_write(f, zeros, to - f->bytes < sizeof zeros ? (size_t)(to - f->bytes) : sizeof zeros));
    return ORTC_OK;
}

/* The folder's entry becomes durable too; file systems that cannot do that lose nothing but the new name. */
static void sync_folder(ortc_file *f)
{
    const char *slash = strrchr(f->path, '/');
    char *folder = slash ? ortc_arena_string(&f->arena, f->path, (size_t)(slash - f->path) + 1) : NULL;
    int d = open(folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d < 0) return;
    (void)fsync(d);
    close(d);
}

ortc_status ortc_file_commit(ortc_file *f)
{
    struct stat old;

    ORTC_TRY(flush(f));
    if (stat(f->path, &old) == 0 && S_ISREG(old.st_mode))
        (void)fchmod(f->descriptor, old.st_mode & 0777); /* a wish */
    if (fsync(f->descriptor) != 0 && errno != EINVAL) return write_error(f, "write");
    if (rename(f->temporary, f->path) != 0) return write_error(f, "replace");
    f->temporary = NULL;
    sync_folder(f);
    return ORTC_OK;
}

void ortc_file_close(ortc_file *f)
{
    if (f->descriptor >= 0) close(f->descriptor);
    if (f->temporary) unlink(f->temporary);
    ortc_arena_deinit(&f->arena);
    *f = (ortc_file){.descriptor = -1};
}
