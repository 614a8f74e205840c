#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs upstream's integration tests of the scheduler against kumiki: conformance/seam/scheduler takes the place of
# pkg/scheduler in a copy of the module k8s.io/kubernetes, of the release that conformance/go.mod names. Nothing else of
# the copy is changed.
#
#   seam.sh copy                 only make out/seam/kubernetes
#   seam.sh PACKAGES [TESTS]     packages below test/integration/scheduler, such as "plugins bind"; TESTS is a regular
#                                expression. Results go to conformance/seam/testdata/results, the list to tests.md.
set -eu
go=${GO:-go}
root=$(cd "$(dirname "$0")/.." && pwd)
module=$root/conformance/seam
out=$root/out/seam
copy=$out/kubernetes

source=$("$go" -C "$root/conformance" list -m -f '{{.Dir}}' k8s.io/kubernetes)
test -n "$source"
rm -rf "$copy"
mkdir -p "$copy"
for part in api cmd pkg plugin test third_party go.mod LICENSE; do
	# Hard links need no space; the module cache may be on another file system.
	cp -Rl "$source/$part" "$copy/" 2>/dev/null || { rm -rf "${copy:?}/$part"; cp -R "$source/$part" "$copy/"; }
done
find "$copy" -type d -exec chmod u+w {} +
rm -f "$copy"/pkg/scheduler/*.go
cp "$module"/scheduler/*.go "$copy/pkg/scheduler/"
[ "$1" = copy ] && exit 0

export GOWORK=off
tests=${2:-.}
mkdir -p "$out/bin"
printf '#!/bin/sh\nexec "%s" role etcd -- "$@"\n' "$root/bin/kumiki-localcluster" >"$out/bin/etcd"
chmod +x "$out/bin/etcd"
PATH=$out/bin:$PATH
export PATH
for package in $1; do
	binary=$out/$(echo "$package" | tr / -).test
	"$go" -C "$module" test -c -vet=off -o "$binary" "k8s.io/kubernetes/test/integration/scheduler/$package"
	"$go" -C "$module" run ./report -binary "$binary" -package "$package" -run "$tests" \
		-dir "$copy/test/integration/scheduler/$package" -log "$out/log"
done
"$go" -C "$module" run ./report -list
