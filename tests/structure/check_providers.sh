#!/bin/sh
# Checks that no provider names an operator, in quotes: which operators run where is said by the families' tables alone, and a
# layout is a kernel's offer. What compiles groups must know what it compiles: sim's claim.c. usage: check_providers.sh ORTC ROOT
"$1" ops --provider ref | awk 'NR > 1 { sub(/.*:/, "", $1); print "\"" $1 "\"" }' >operators.$$
if [ "$(wc -l <operators.$$)" -lt 200 ]; then
    echo "there are no operators to look for"
    failed=1
else
    find "$2/providers" -name '*.[ch]' ! -path '*/sim/claim.c' -o -name '*.cu' | xargs grep -nFwf operators.$$ && failed=1 || failed=0
fi
rm -f operators.$$
echo "$((1 - failed)) passed, $failed failed"
exit $failed
