#!/bin/sh
# Runs a part of the tests that need a GPU, on a machine that has one: run.sh PART [BUILD]
#   cases      every family's cases on cuda against ref
#   kernels    products, 4-bit products, attention and norms kernel by kernel on random shapes, against sums in f64
#   models     models wholly on cuda: BERT with symbolic dims, the decoder with tied caches, the eight models
#   python     PyTorch's tensors in and out of the Python package, which must be installed
#   sanitizer  compute-sanitizer: memcheck over the cases, racecheck over the kernels that use shared memory, both over some of `kernels`
#   times      kernel by kernel: every product kernel beside cuBLAS, products side by side, 4-bit products, attention, rows
#   peers      products, attention, norms and a network beside PyTorch in the same run
#   bench      products and softmax beside PyTorch in the same run; an empty captured plan
#   pack       no test: FILE, the third word, becomes an archive of what the other parts need of BUILD, to be unpacked on another machine
# BUILD (default: build) is a folder built with -Dcuda=enabled (and `ninja gpu-programs` for kernels, times and sanitizer); what runs
# are its plain programs, Python where a part says so (numpy, onnx; PyTorch for peers and bench). Each part prints a last line "N
# passed, N failed" or a table. Without a GPU it says so and ends well.
set -u
part=${1:-}
build=$(cd "${2:-build}" && pwd) || exit 2
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
plugin=$build/libortc_cuda.so
cases=$build/tests/providers/cases
export LD_LIBRARY_PATH="$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

if [ "$part" = pack ]; then
    to=$(realpath "${3:?pack needs a FILE to write}") || exit 2
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    mkdir -p "$folder/build/tests/gpu" "$folder/build/tests/providers"
    for file in libortc.so.0 libortc_cuda.so libortc_image.so ortc tests/providers/cases tests/gpu/decode tests/gpu/stress \
        tests/gpu/bench_replay tests/gpu/tiles tests/gpu/nbits tests/gpu/heads tests/gpu/rows; do
        if [ -f "$build/$file" ]; then strip -o "$folder/build/$file" "$build/$file" || exit 1; else echo "$build/$file is not there"; fi
    done
    ln -s libortc.so.0 "$folder/build/libortc.so"
    XZ_OPT=-T0 tar -cJf "$to" -C "$folder" build && ls -l "$to"
    exit
fi

[ -f "$plugin" ] || { echo "skipped: $plugin is not there: build with -Dcuda=enabled"; exit 77; }
"$build/ortc" providers | grep '^cuda' | grep -q 'not available' && { "$build/ortc" providers | grep '^cuda'; echo 'skipped: no GPU that works'; exit 77; }

failed=0
run() { # run NAME COMMAND...: its last lines, and whether it failed
    name=$1
    shift
    echo "== $name"
    if "$@" >/tmp/ortc-gpu.$$ 2>&1; then :; else failed=1; grep -m 20 FAILED /tmp/ortc-gpu.$$; fi
    tail -n "${lines:-2}" /tmp/ortc-gpu.$$
    rm -f /tmp/ortc-gpu.$$
}

case $part in
cases)
    run 'cases' "$cases" --provider cuda --plugin "$plugin"
    ;;
kernels)
    for program in tiles nbits heads rows; do run "$program" "$build/tests/gpu/$program" test; done
    run 'tiles accuracy' "$build/tests/gpu/tiles" accuracy
    ;;
models)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    "$python" "$root/tests/models/write_decoder.py" "$folder" || exit 1
    run 'decoder, tied caches' "$build/tests/gpu/decode" "$folder/decoder.onnx" "$folder/logits.f32" cuda
    run 'threads, a full device, a stream of the caller' "$build/tests/gpu/stress" cuda
    run 'BERT' "$python" "$root/tests/gpu/test_bert.py" "$build/ortc" cuda
    run 'products of one value' "$python" "$root/tests/gpu/test_siblings.py" "$build/ortc" cuda
    run 'models' "$python" "$root/tests/python/test_models.py" "$build/ortc" cuda cuda,cpu
    ;;
python)
    exec "$python" "$root/tests/gpu/test_dlpack.py" "$plugin"
    ;;
sanitizer)
    # cuobjdump tells which kernels use shared memory; these families have them.
    run 'memcheck' compute-sanitizer --tool memcheck --error-exitcode 9 "$cases" --provider cuda --plugin "$plugin"
    for family in gemm softmax norm reduce attention shape order cumulative; do
        run "racecheck $family" compute-sanitizer --tool racecheck --error-exitcode 9 "$cases" --provider cuda --plugin "$plugin" --family "$family"
    done
    # SEED ROUNDS: as many as end within minutes
    # shellcheck disable=SC2086
    while read -r words; do
        run "memcheck $words" compute-sanitizer --tool memcheck --error-exitcode 9 "$build/tests/gpu/"$words </dev/null
        run "racecheck $words" compute-sanitizer --tool racecheck --error-exitcode 9 "$build/tests/gpu/"$words </dev/null
    done <<END
tiles test 5 1
nbits test 5 120
heads test 7 12
END
    ;;
times)
    lines=400
    run 'products, f16' "$build/tests/gpu/tiles" time
    run 'products, f32' env F32=1 "$build/tests/gpu/tiles" time
    run 'products side by side' "$build/tests/gpu/tiles" together
    run 'weights of 4 and 8 bits' "$build/tests/gpu/nbits" time
    run 'attention' "$build/tests/gpu/heads" time
    run 'rows' "$build/tests/gpu/rows"
    ;;
peers)
    exec "$python" "$root/tests/bench/gpu_peers.py" "$build"
    ;;
bench)
    lines=40
    run 'products and softmax' "$python" "$root/tests/bench/bench_gemm_cuda.py" "$build"
    run 'an empty plan' "$build/tests/gpu/bench_replay" cuda
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
exit $failed
