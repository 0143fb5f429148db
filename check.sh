#!/usr/bin/env bash
# Installs what is missing (as root, on Debian), builds ortc three times and runs the tests of each build:
#   build/       release                    every test
#   build/asan/  address and undefined      all but the suite python-slow, some of the cases
#   build/tsan/  threads                    the suite tsan
# The last line is the total. --quick leaves the sanitizers out. CI=true makes warnings errors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. .ci/common.sh

trees=(build build/asan build/tsan)
case ${1-} in
'') ;;
--quick) trees=(build) ;;
-h | --help)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
*) die "unknown option $1; there is only --quick" ;;
esac

promise_total
need "${BUILD_PACKAGES[@]}" libjpeg-dev libwebp-dev libtiff-dev libopenjp2-7-dev g++ ca-certificates chromium-headless-shell cmake doxygen fish libcriterion-dev python3 python3-dev python3-venv gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user zsh

# The tests' Python packages, in build/venv. Made anew when the list or the interpreter changes.
python=/usr/bin/python3 # Debian's: the one that python3-venv belongs to
[ -x "$python" ] || python=python3
venv_is_made_from() { "$python" --version && cat tests/requirements.txt; }
if ! venv_is_made_from | cmp -s - build/venv/made-from || ! build/venv/bin/python -c '' 2>/dev/null; then
    say "installing the tests' Python packages into build/venv"
    rm -rf build/venv
    "$python" -m venv build/venv
    build/venv/bin/python -m pip --disable-pip-version-check install -q --no-deps --only-binary :all: \
        -r tests/requirements.txt
    build/venv/bin/python -m pip --disable-pip-version-check check >/dev/null ||
        die "tests/requirements.txt is not complete: see build/venv/bin/pip check"
    venv_is_made_from >build/venv/made-from
fi

tried=() failed=0
for tree in "${trees[@]}"; do
    tried+=("$tree")
    test_tree "$tree" && continue
    failed=1
    [ -f "$tree/meson-logs/testlog.json" ] || break # it does not build: nor would the others
done
tally "${tried[@]}" || failed=1
exit $failed
