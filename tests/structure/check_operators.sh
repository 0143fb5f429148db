#!/bin/sh
# Checks that docs/operators.md is what `ortc ops --markdown` says. usage: check_operators.sh ORTC ROOT
if "$1" ops --markdown --provider ref,cpu | cmp -s - "$2/docs/operators.md"; then
    echo "1 passed, 0 failed"
else
    "$1" ops --markdown --provider ref,cpu | diff - "$2/docs/operators.md" | head -20
    echo "docs/operators.md is old: build/ortc ops --markdown --provider ref,cpu >docs/operators.md"
    echo "0 passed, 1 failed"
    exit 1
fi
