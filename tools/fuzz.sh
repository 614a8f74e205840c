#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs each fuzz target of the three modules for a while: fuzz.sh 10s. go test fuzzes one target of one package at a
# time, hence the loop. A failing input is kept by go test under testdata/fuzz of the package.
set -u
cd "$(dirname "$0")/.." || exit 1
GO=${GO:-go}
each_for=${1:-10s}
failed=0
targets=$(mktemp)
trap 'rm -f "$targets"' EXIT
grep -rho --include='*_test.go' --exclude-dir=bin --exclude-dir=out -H '^func Fuzz[A-Za-z0-9_]*' . |
	sed 's|/[^/]*_test.go:func | |' | sort >"$targets"
if [ ! -s "$targets" ]; then
	echo "no fuzz targets found" >&2
	exit 1
fi
while read -r dir target; do
	echo "==> $dir $target for $each_for"
	# Nested modules are in the workspace, so every directory can be named from here.
	$GO test -run '^$' -fuzz "^$target\$" -fuzztime "$each_for" -fuzzminimizetime 5x "$dir" || failed=$((failed + 1))
done <"$targets"
if [ "$failed" -gt 0 ]; then
	echo "$failed fuzz targets FAILED"
	exit 1
fi
echo "all fuzz targets ok"
