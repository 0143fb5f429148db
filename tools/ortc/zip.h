/* tools/ortc/zip.h: zip archives, as much of them as .npz needs: stored and deflated members, zip64.
 *
 * Reading works on the whole archive in memory and follows the central directory alone. Every offset and size
 * is checked against the archive; a member that says it grows more than deflate can (1032 times), or beyond
 * the limit, is refused before memory is asked for. Not read: encryption, other methods, archives in several
 * files.
 */
#ifndef ZIP_H
#define ZIP_H

#include "cli.h"

typedef struct zip_member {
    char *name;
    uint64_t packed, size, offset; /* offset: of the local header */
    uint32_t crc;
    uint16_t method, flags;
} zip_member;

typedef struct zip_archive {
    const uint8_t *data; /* borrowed */
    size_t bytes;
    size_t count;
    zip_member *members;
} zip_archive;

/* Errors: INVALID_ARGUMENT; the archive is empty then. */
ortc_status zip_open(const void *data, size_t bytes, zip_archive *out, ortc_error *);
void zip_close(zip_archive *);
/* A member's contents, checked by its CRC. Owner of out->data: the caller; free(). */
ortc_status zip_read(const zip_archive *, const zip_member *, uint64_t limit, blob *out, ortc_error *);

/* Writing: members one after the other, then the directory. */
typedef struct zip_writer {
    buffer out, directory;
    size_t count;
    bool deflated;
} zip_writer;
ortc_status zip_add(zip_writer *, const char *name, const void *data, size_t bytes, ortc_error *);
/* Ends the archive: what is in w->out then is the file. The caller frees w->out.data. */
void zip_end(zip_writer *);

#endif
