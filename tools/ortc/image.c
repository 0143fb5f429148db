/* tools/ortc/image.c: finds and opens the module of picture codecs, and reads pictures through it; see
 * image.h.
 *
 * The module is looked for beside the executable (a build folder, an unpacked archive), then in the library
 * folder as seen from the executable (an installation that was moved), then where it was installed. Never by
 * bare name: a search path that somebody else controls must not put code into this process.
 */
#include "image.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define MODULE "libortc_image.so"

static const uint64_t max_file = 256 << 20, max_pixels = 64 << 20;

static void executable_folder(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    out[n > 0 ? n : 0] = 0;
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = 0;
    else
        strcpy(out, ".");
}

static const image_codec *open_module(ortc_error *error)
{
    char folder[4000];
    executable_folder(folder, sizeof folder);
    char *places[] = {
        mem_printf("%s/%s", folder, MODULE),
        mem_printf("%s/../%s/%s", folder, ORTC_LIBDIR_NAME, MODULE),
        mem_printf("%s/%s", ORTC_LIBDIR, MODULE),
    };
    const image_codec *codec = NULL;
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(places) && !found; i++) {
        if (access(places[i], F_OK) != 0) continue;
        found = true;
        void *module = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        const char *why = module ? NULL : dlerror();
        const image_codec *(*get)(void) = NULL;
        if (module) *(void **)&get = dlsym(module, IMAGE_CODEC_SYMBOL);
        codec = get ? get() : NULL;
        if (codec && codec->version != IMAGE_CODEC_VERSION) codec = NULL;
        if (!codec)
            fail(error, ORTC_UNSUPPORTED, "the picture module cannot be used: %s%s", places[i],
                 why ? "" : " belongs to another version of ortc");
        if (why && error) fail(error, ORTC_UNSUPPORTED, "the picture module cannot be loaded: %s", why);
    }
    if (!found)
        fail(error, ORTC_UNSUPPORTED,
             "pictures need the module %s, which is neither in %s nor in %s: build ortc with "
             "-Dimage=enabled, or pass the input as .npy",
             MODULE, folder, ORTC_LIBDIR);
    for (size_t i = 0; i < COUNT_OF(places); i++) free(places[i]);
    return codec;
}

ortc_status image_load(const char *path, image *out, ortc_error *error)
{
    static const image_codec *codec;
    memset(out, 0, sizeof *out);
    blob file;
    ortc_status s = file_read(path, max_file, &file, error);
    if (s != ORTC_OK) return s;
    if (!codec) codec = open_module(error);
    if (!codec) {
        free(file.data);
        return ORTC_UNSUPPORTED;
    }
    char why[IMAGE_ERROR_BYTES] = "";
    if (codec->decode(file.data, file.size, max_pixels, out, why) != 0)
        s = fail(error, ORTC_INVALID_ARGUMENT, "'%s' cannot be read: %s", path, why);
    free(file.data);
    return s;
}
