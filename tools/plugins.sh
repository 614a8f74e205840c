#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compiles the plugins of sigs.k8s.io/scheduler-plugins against the Kubernetes that is matched, runs their own unit tests
# there, and runs some of them inside of kumiki and of kube-scheduler on a local cluster. What the matched release requires
# of a plugin is in conformance/thirdparty/testdata/patches, applied alike for both schedulers; the lines are counted.
#
#   plugins.sh copy    only make out/plugins/scheduler-plugins
#   plugins.sh         all of it
set -eu
go=${GO:-go}
root=$(cd "$(dirname "$0")/.." && pwd)
module=$root/conformance/thirdparty
copy=$root/out/plugins/scheduler-plugins
version=$(sed -n 's|^.*sigs.k8s.io/scheduler-plugins v|v|p' "$module/go.mod" | head -n 1)
export GOWORK=off

# The module cache is read-only, and go build does not replace files in it.
source=$(cd "${TMPDIR:-/tmp}" && GOFLAGS=-mod=mod "$go" mod download -json "sigs.k8s.io/scheduler-plugins@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
test -n "$source"
rm -rf "$copy"
mkdir -p "$copy"
cp -R "$source/apis" "$source/manifests" "$source/pkg" "$source/test" "$source/go.mod" "$source/go.sum" "$source/LICENSE" "$copy/"
chmod -R u+w "$copy"
for patch in "$module"/testdata/patches/*.patch; do
	echo "==> $(basename "$patch"): $(grep -c '^+[^+]' "$patch") lines added, $(grep -c '^-[^-]' "$patch") removed"
	(cd "$copy" && GIT_CEILING_DIRECTORIES=$root/out/plugins git apply "$patch") # as outside of this repository
done
[ "${1:-}" = copy ] && exit 0

packages=$(sed -n 's|^test \([^ ]*\).*|sigs.k8s.io/scheduler-plugins/\1|p' "$module/testdata/packages.txt")
failed=0
echo "==> unit tests of $(echo "$packages" | wc -l) packages, with the framework of kube-scheduler"
# The list is meant to split at spaces.
# shellcheck disable=SC2086
"$go" -C "$module" test -vet=off -count 1 $packages || failed=1
echo "==> inside of both schedulers, on a local cluster"
"$go" -C "$module" vet ./... || failed=1
"$go" -C "$module" test -count 1 -p 1 -timeout 20m -v ./... || failed=1
GOWORK='' "$go" -C "$root/conformance" test -count 1 -timeout 20m -v -tags plugins ./randomscheduler || failed=1
exit $failed
