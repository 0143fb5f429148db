# shellcheck shell=bash
# What demo.sh, check.sh and .ci/run share: installing Debian packages that are missing, and setting up Meson's
# build trees. Sourced with the project's root as working directory. Quick and silent where nothing is to be done.

export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
unset DESTDIR # would move what the tests install

# Trees and the virtual environment live inside build/, beside Meson's own files.
BUILD_KEEPS=(venv asan tsan clang)

say() { printf '== %s\n' "$*"; }
die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# have PACKAGE: is what we need from it there, from Debian or from elsewhere?
have() {
    case $1 in
    gcc | g++ | clang | chromium-headless-shell | clang-format | cmake | meson | pkg-config | python3) command -v "$1" >/dev/null ;;
    ninja-build) command -v ninja >/dev/null ;;
    protobuf-c-compiler) command -v protoc-c >/dev/null ;;
    libc6-dev) [ -e /usr/include/stdio.h ] ;;
    zlib1g-dev) pkg-config --exists zlib ;;
    libpng-dev) pkg-config --exists libpng ;;
    libjpeg-dev) pkg-config --exists libjpeg ;;
    libwebp-dev) pkg-config --exists libwebp ;;
    libtiff-dev) pkg-config --exists libtiff-4 ;;
    libopenjp2-7-dev) pkg-config --exists libopenjp2 ;;
    libprotobuf-c-dev) pkg-config --exists libprotobuf-c ;;
    libcriterion-dev) pkg-config --exists criterion ;;
    python3-venv) python3 -c 'import ensurepip, venv' ;;
    *) dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed ;;
    esac >/dev/null 2>&1
}

# need PACKAGE...: installs those that are missing.
need() {
    local package log missing=()
    for package; do have "$package" || missing+=("$package"); done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "missing: ${missing[*]} (Debian's names); there is no apt-get to install them"
    [ "$(id -u)" = 0 ] || die "missing: ${missing[*]}; as root: apt-get install --no-install-recommends ${missing[*]}"
    say "installing ${missing[*]}"
    log=$(mktemp)
    if ! { apt-get -o Acquire::Retries=3 -qq update &&
        apt-get -o Acquire::Retries=3 -qq -y --no-install-recommends install "${missing[@]}"; } >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        rm -f "$log"
        die "apt-get could not install ${missing[*]}"
    fi
    rm -f "$log"
    for package in "${missing[@]}"; do have "$package" || die "$package is installed but does not work"; done
}

# clear_tree DIR: removes Meson's files from DIR, but keeps the other trees inside build/.
clear_tree() {
    local name keep=()
    for name in "${BUILD_KEEPS[@]}"; do keep+=(! -name "$name"); done
    [ ! -d "$1" ] || find "$1" -mindepth 1 -maxdepth 1 "${keep[@]}" -exec rm -rf {} +
}

# set_up DIR -Doption=value...: makes the tree DIR, or brings its options up to date. A tree that another Meson,
# another compiler or another checkout made is made anew.
set_up() {
    local dir=$1 stamp=$1/.ortc-setup maker option log changed=()
    shift
    maker="$PWD meson $(meson --version) cc ${CC:-cc} $("${CC:-cc}" -dumpfullversion 2>/dev/null || true)"
    log=$(mktemp)
    if [ -f "$dir/build.ninja" ] && [ "$(head -n 1 "$stamp" 2>/dev/null)" = "$maker" ]; then
        for option; do grep -qxF -e "$option" "$stamp" || changed+=("$option"); done
        if [ ${#changed[@]} -eq 0 ]; then
            rm -f "$log"
            return 0
        fi
        say "configuring $dir: ${changed[*]}"
        if meson configure "$dir" "${changed[@]}" >"$log" 2>&1; then
            for option in "${changed[@]}"; do sed -i "/^${option%%=*}=/d" "$stamp"; done
            printf '%s\n' "${changed[@]}" >>"$stamp"
            rm -f "$log"
            return 0
        fi
    fi
    clear_tree "$dir"
    say "setting up $dir: $*"
    if ! meson setup "$dir" "$@" >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
    printf '%s\n' "$maker" "$@" >"$stamp"
}

# compile DIR [TARGET]: builds everything in it, or that; silent but for a line, unless something fails or warns.
compile() {
    local log rc=0 started=$SECONDS
    say "building $1"
    log=$(mktemp)
    meson compile -C "$1" ${2:+"--ninja-args=$2"} >"$log" 2>&1 || rc=$?
    if [ $rc != 0 ]; then
        grep -vE '^\[[0-9]+/[0-9]+\] ' "$log" >&2 || true
    else
        grep -E -A 6 'warning:' "$log" >&2 || true
    fi
    rm -f "$log"
    [ $rc = 0 ] || {
        say "$1 does not build"
        return 1
    }
    say "$1 is built ($((SECONDS - started)) s)"
}

# What every build of ortc needs.
# shellcheck disable=SC2034 # used by those who source this
BUILD_PACKAGES=(gcc libc6-dev pkg-config meson ninja-build zlib1g-dev libpng-dev libprotobuf-c-dev protobuf-c-compiler)

# test_tree DIR: sets up, builds and tests one of our trees. Which trees there are, and what each tests, stands here.
# Whatever goes wrong before the tests leaves no test log, which tally.py counts as a failure.
test_tree() {
    local dir=$1 started runner=() select=() target= options=(-Dtests=enabled -Dwerror=false)
    # Lines are what a sanitizer's report names; the places of variables, and -O2, cost half of its build's time each.
    # Warnings are the other trees': -O1 has some that are none.
    local sanitized=(-Dbuildtype=debugoptimized -Doptimization=1 "-Dc_args=-g1 -w" "-Dcpp_args=-g1 -w" -Dthorough=false)
    [ "${CI-}" != true ] || options=(-Dtests=enabled -Dwerror=true)
    rm -f "$dir/meson-logs/testlog.json"
    case $dir in
    build)
        local quick=false # where no GPU can run it, device code is only seen to compile
        [ "${CI-}" != true ] || [ -e /dev/nvidiactl ] || quick=true
        options+=(-Dbuildtype=release "-Dgpu_quick=$quick")
        ;;
    build/clang)
        local -x CC=clang CXX=clang++
        options+=(-Dbuildtype=release -Dthorough=false -Dgpu_arch=none)
        select=(--no-suite python-slow --no-suite python)
        ;;
    build/asan) # no test of the CUDA module runs under a sanitizer without a GPU
        options+=("${sanitized[@]}" "-Db_sanitize=address,undefined" -Dcuda=disabled)
        select=(--no-suite python-slow --timeout-multiplier 5)
        ;;
    build/tsan) # its tests are plain programs: Criterion cannot start under ThreadSanitizer (Snaipe/Criterion#274)
        options+=("${sanitized[@]}" -Db_sanitize=thread -Dcuda=disabled)
        select=(--suite tsan --timeout-multiplier 10) target=tsan-tests
        # gcc 12's ThreadSanitizer cannot start where the kernel randomises mappings by more than 28 bits ("unexpected
        # memory mapping"), as newer kernels do. Without randomisation it always can.
        if setarch -R true 2>/dev/null; then
            runner=(setarch -R)
        elif [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ]; then
            say "this container forbids setarch -R; if the tests of $dir die at once, set vm.mmap_rnd_bits to 28 on the host"
        fi
        ;;
    *) die "no such tree: $dir" ;;
    esac
    if ! set_up "$dir" "${options[@]}" || ! compile "$dir" ${target:+"$target"}; then return 1; fi
    say "testing $dir"
    started=$SECONDS
    "${runner[@]}" meson test -C "$dir" --no-rebuild --print-errorlogs "${select[@]}" || {
        say "$dir: some tests failed ($((SECONDS - started)) s)"
        return 1
    }
    say "$dir is tested ($((SECONDS - started)) s)"
}

# Sanitizers say all they know, once, and end the program.
export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:strict_string_checks=1:print_stacktrace=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=second_deadlock_stack=1:halt_on_error=1

# tally DIR...: the totals; fails where a test failed.
tally() {
    total_printed=1
    python3 tests/python/tally.py "$@"
}

# promise_total: from here on the last line is a total, even if something breaks before there is one.
promise_total() {
    total_printed=
    trap '[ -n "$total_printed" ] || echo "0 passed, 1 failed"' EXIT
}
