#!/bin/sh
# Installs a build into a temporary folder and uses what was installed: the example against headers, libraries and
# ortc.pc, shared and static, with plain cc; the command with a picture; names and needs of the libraries.
# usage: test_install.sh BUILD_DIR SOURCE_DIR
set -u
build=$1 source=$2
passed=0 failed=0
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

check() { # check NAME COMMAND...: passes when the command does
    name=$1
    shift
    if out=$("$@" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: %s\n' "$name" "$out"
    fi
}
finish() {
    echo "$passed passed, $failed failed, 0 skipped"
    [ "$failed" = 0 ]
    exit
}

check 'meson install' meson install -C "$build" --destdir "$root" --no-rebuild
pc=$(find "$root" -name ortc.pc)
[ -n "$pc" ] || { echo 'FAIL ortc.pc is not installed'; failed=$((failed + 1)); finish; }
libdir=$(dirname "$(dirname "$pc")")
# A destdir is not a prefix: the file says where it will be, not where it is now.
prefix=$root$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --variable=prefix ortc)
pkg() { PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --define-variable=prefix="$prefix" "$@" ortc; }
model=$source/models/digits.onnx
cc=${CC:-cc}

says_one() { "$@" "$model" | grep -q '^class 1$'; }
compile() { $cc -std=c11 -Wall -Wextra -Werror "$source/examples/hello.c" "$@"; }
exports_ortc_only() { # the library's names are ortc_*, and nothing else
    ! nm -D --defined-only "$1" | awk '{print $NF}' | grep -v '^ortc_' | grep -v '^\(_init\|_fini\|LIBORTC.*\)$' | grep .
}
needs_only() { # libraries that FILE needs, as a pattern
    ! readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE "^($2)$" | grep .
}
system='libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux.*'

# shellcheck disable=SC2046
check 'hello, shared' compile $(pkg --cflags --libs) -o "$root/hello"
check 'hello, shared, runs' says_one env LD_LIBRARY_PATH="$libdir" "$root/hello"
check 'hello needs libortc.so.0' sh -c "readelf -d '$root/hello' | grep -q 'NEEDED.*libortc\.so\.0'"

# The provider to clone, as C and as C++, from the installed headers alone.
plugin() { "$@" -shared -fPIC -Wall -Wextra -Werror "-I$prefix/include" -o "$root/pocket.so"; }
takes() { # takes PATTERN ARGUMENT...
    pattern=$1
    shift
    "$prefix/bin/ortc" info --plugin "$root/pocket.so" --placement "$@" | grep -q "$pattern"
}
for language in "$cc -std=c11 -D_ISOC11_SOURCE" "${CXX:-c++} -std=c++17 -x c++"; do
    # shellcheck disable=SC2086
    check "operator, $language" plugin $language "$source/examples/operator.c"
    check "provider, $language" plugin $language "$source/examples/provider.c"
    # Provider sim, too, is made of what is installed.
    # shellcheck disable=SC2086
    check "sim, $language" sh -c "$language -shared -fPIC -D_GNU_SOURCE '-I$prefix/include' -o '$root/sim.so' '$source'/providers/sim/*.c -lpthread"
    check 'sim, computes' sh -c "'$prefix/bin/ortc' run --plugin '$root/sim.so' --provider sim '$model' -i '$source/models/digits/7.png' | grep -q probabilities"
    check 'provider, its Relu' takes 'pocket.relu' --provider pocket "$model"
    check 'provider, runs' sh -c "'$prefix/bin/ortc' run --plugin '$root/pocket.so' --provider pocket '$model' -i '$source/models/digits/7.png' | grep -q 7"
done

# Where only libortc.a is found, and Libs.private says what it needs.
mkdir "$root/static"
cp "$libdir/libortc.a" "$root/static/" || failed=$((failed + 1))
# shellcheck disable=SC2046
check 'hello, static' compile $(pkg --cflags) $(pkg --define-variable=libdir="$root/static" --static --libs) -o "$root/hello-static"
check 'hello, static, runs' says_one "$root/hello-static"
check 'hello, static, needs the system only' needs_only "$root/hello-static" "$system"
check 'the version' sh -c "[ \"\$('$prefix/bin/ortc' --version)\" = \"ortc $(pkg --modversion)\" ]"

check 'libortc exports ortc_* only' exports_ortc_only "$libdir/libortc.so.0"
check 'libortc needs the system only' needs_only "$libdir/libortc.so.0" "$system"
check 'ortc needs zlib besides' needs_only "$prefix/bin/ortc" "$system|libz\.so\.1"
for header in types ortc op provider; do
    check "$header.h is installed" test -f "$prefix/include/ortc/$header.h"
done

check 'ortc, installed, starts' "$prefix/bin/ortc" info "$model"
if [ -e "$libdir/libortc_image.so" ]; then
    check 'the image module exports nothing else' exports_ortc_only "$libdir/libortc_image.so"
    check 'ortc, installed, reads a picture' sh -c "'$prefix/bin/ortc' run '$model' --input '$source/models/digits/7.png' -q -k1 | grep -q '^  7 '"
    rm "$libdir/libortc_image.so"
fi
without=$("$prefix/bin/ortc" run "$model" --input "$source/models/digits/7.png" 2>&1)
code=$?
check 'without the image module: an error' test "$code" = 2
check 'without the image module: it says so' sh -c "printf '%s' \"\$1\" | grep -q 'pictures need the module libortc_image.so'" sh "$without"
check 'without the image module: the rest works' "$prefix/bin/ortc" run "$model" --input rand -q
finish
