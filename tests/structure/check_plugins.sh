#!/bin/sh
# A plugin links to nothing of ours: what it leaves undefined is the C library's (and C++'s, and a sanitizer's).
# usage: check_plugins.sh PLUGIN...
passed=0 failed=0
for plugin; do
    ours=$(nm -D --undefined-only "$plugin" | awk '{print $NF}' | grep -i ortc)
    if [ -z "$ours" ] && nm -D --defined-only "$plugin" | grep -q ' ortc_plugin$'; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $plugin: it wants $ours, or does not export ortc_plugin"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
