#!/usr/bin/env bash
# Installs what is missing (as root, on Debian), builds ortc, and lets it name ten handwritten digits.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. .ci/common.sh

need "${BUILD_PACKAGES[@]}"
set_up build -Dbuildtype=release || die "Meson cannot set up build/"
compile build || die "the build failed"

for digit in 0 1 2 3 4 5 6 7 8 9; do
    command=(build/ortc run models/digits.onnx --input "models/digits/$digit.png" --topk 3)
    printf '\n$ %s\n' "${command[*]}"
    "${command[@]}"
done
