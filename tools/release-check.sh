#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds a release of the present commit twice, in two clones with paths of different lengths, and compares all bytes.
#
#   release-check.sh VERSION PLATFORMS
set -eu
cd "$(dirname "$0")/.."
MAKE=${MAKE:-make}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for copy in one another-path; do
	git clone -q . "$work/$copy"
	echo "==> $copy" >&2
	"$MAKE" --no-print-directory -C "$work/$copy" release VERSION="$1" PLATFORMS="$2"
done
diff -r "$work/one/out/release" "$work/another-path/out/release"
echo "both builds are equal:"
cat "$work/one/out/release/SHA256SUMS"
