#!/bin/sh
# All 2^32 inputs of every unary function of the vector layer on every instruction set of this machine (pow: 2^28 pairs):
# the largest errors that math.h and unary.inc state. Some minutes a function. usage: sweep.sh VECTORS [FUNCTION...]
set -eu
vectors=$1
shift
[ $# -gt 0 ] || set -- exp log tanh erf sigmoid sin cos rsqrt expm1 log1p asin acos atan sqrt rint floor ceil trunc pow
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 "$vectors" sweep
