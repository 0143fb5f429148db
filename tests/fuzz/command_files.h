/* tests/fuzz/command_files.h: the command line's input, as one block of bytes, and how blocks are made from a
 * seed.
 *
 *   0       which call it is, of commands.c's list
 *   1       n, bytes of words: what else the call is given, an option or value a line
 *   2 ..    the words, then the file that the call reads
 */
#ifndef ORTC_TESTS_COMMAND_FILES_H
#define ORTC_TESTS_COMMAND_FILES_H

#include <stddef.h>
#include <stdint.h>

/* What calls read, in the order of commands.c's list: a file of that kind fits. */
enum {
    FILE_NPY,
    FILE_NPZ,
    FILE_PB,
    FILE_SEQUENCE,
    FILE_TOLERANCE,
    FILE_SKIPS,
    FILE_BENCH,
    FILE_LABELS,
    FILE_NONE
};
/* Makes the folder that this process and those that it forks write into; it goes with this one. */
void command_enter(void);
/* The kind of the call's file. */
int command_file_kind(uint8_t call);
/* A well-formed call with parts of it damaged. Owner: the caller; free(). */
uint8_t *command_make(uint64_t seed, size_t *out_bytes);

/* The models that calls are about: "m" of inputs x f32[n,3], k i64[2], s string[m]; "w" of a i4[n], b
 * f8e4m3fn[n], c bf16[n], d c64[n]; "q" of a sequence of f32. Owner: the caller; free(). */
uint8_t *command_model(char which, size_t *out_bytes);
/* A TensorProto of f32 [2, 3]. Owner: the caller; free(). */
uint8_t *command_tensor(size_t *out_bytes);

#endif
