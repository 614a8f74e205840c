#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Applies the patches of docs/upstream to scheduler_perf of the Kubernetes that conformance/ requires, and runs go vet and
# the tests that they add. The source comes from the module cache and is copied: nothing there is changed.
# usage: sh tools/upstream-patches.sh [flags of go test]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
go=${GO:-go}
source=$("$go" -C "$root/conformance" list -m -f '{{.Dir}}' k8s.io/kubernetes)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT INT TERM
package=test/integration/scheduler_perf

mkdir -p "$work/tree/$package" "$work/module/scheduler_perf"
cp "$source/$package/"*.go "$work/tree/$package/"
chmod -R u+w "$work/tree"
for p in "$root"/docs/upstream/*.patch; do
	echo "==> $(basename "$p")"
	(cd "$work/tree" && git apply --check --whitespace=error-all "$p" && git apply "$p")
done
unformatted=$(gofmt -l "$work/tree")
if [ -n "$unformatted" ]; then
	echo "not formatted: $unformatted"
	exit 1
fi

# The package is compiled as one of a module that requires what conformance/ does: that is built already.
cp "$work/tree/$package/"*.go "$work/module/scheduler_perf/"
sed -e 's|^module .*|module example.com/patched|' -e "s|=> \.\.$|=> $root|" -e "s|=> \.\./|=> $root/|" "$root/conformance/go.mod" > "$work/module/go.mod"
cp "$root/conformance/go.sum" "$work/module/go.sum"
cd "$work/module"
GOWORK=off GOFLAGS="${GOFLAGS:-} -mod=mod"
export GOWORK GOFLAGS
"$go" vet ./scheduler_perf
"$go" test -count 1 -timeout 5m -run 'TestRun|TestUnroll|TestCollectedName|TestMetricThreshold' "$@" ./scheduler_perf
