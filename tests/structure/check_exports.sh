#!/bin/sh
# libortc exports what ortc.h declares and nothing else, needs libc, libm, threads and dl only, and starts nothing when it
# is loaded.
# usage: check_exports.sh LIBORTC.so HEADER [LIBORTC.a]
set -eu
passed=0 failed=0
check() { # NAME WRONG: passes when WRONG is empty
    if [ -z "$2" ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        printf 'FAILED %s:\n%s\n' "$1" "$2"
    fi
}
without() { # lines of $1 that are not lines of $2
    printf '%s\n' "$1" | while read -r line; do
        printf '%s\n' "$2" | grep -qxF "$line" || printf '%s\n' "$line"
    done
}
exports=$(nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | grep -vE '^(__asan|__odr_asan|__tsan|__ubsan)' | sort)
declared=$(grep -oE 'ORTC_EXPORT[^;(]*\(' "$2" | grep -oE 'ortc_[a-z0-9_]+ ?\($' | tr -d ' (' | sort -u)
check "ortc.h declares something" "$([ -n "$declared" ] || echo nothing)"
check "everything that ortc.h declares is exported" "$(without "$declared" "$exports")"
check "nothing else is exported" "$(without "$exports" "$declared")"
check "needs libc, libm, threads and dl only" "$(readelf -d "$1" | awk '/NEEDED/ {gsub(/[][]/, "", $5); print $5}' |
    grep -vE '^(libc|libm|libpthread|libdl|ld-linux-x86-64|libgcc_s|libasan|libubsan|libtsan)\.so' || true)"
check "no text relocations" "$(readelf -d "$1" | grep TEXTREL || true)"
if ! readelf -d "$1" | grep -qE 'lib[atu][a-z]*san'; then
    # One entry of eight bytes comes from the compiler's own start-up file.
    check "no constructors" "$(readelf -S -W "$1" | awk '/ \.init_array / {for (i = 1; i < NF; i++) if ($i == "INIT_ARRAY" && $(i+3) != "000008") print}')"
fi
if [ $# -gt 2 ] && [ -e "$3" ]; then
    static=$(nm --defined-only -g "$3" 2>/dev/null | awk 'NF == 3 {print $3}' | sort)
    check "libortc.a has everything that ortc.h declares" "$(without "$declared" "$static")"
    check "libortc.a has no other global symbol" "$(without "$static" "$declared")"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
