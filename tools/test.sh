#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs every test of all modules and ends with a summary. Cheap tests come first, so that a mistake shows early;
# a step that fails does not keep the next one from running. Tests that start a cluster run one package at a time, and
# are never answered from the test cache, which cannot see the cluster's binary.
#
#   test.sh               all of it
#   test.sh --list-fast   only print the packages of the root module that need no cluster
set -u
cd "$(dirname "$0")/.." || exit 1
GO=${GO:-go}
MAKE=${MAKE:-make}
TESTCLUSTER=github.com/kumiki-scheduler/kumiki/internal/testcluster

# cluster_packages lists the packages of a module whose tests can start a cluster. go list prints each test binary with
# all it is made of; a package compiled anew for a test has the name of the test behind its own.
cluster_packages() {
	$GO -C "$1" list -e -buildvcs=false -test -f '{{.ImportPath}}|{{join .Deps "|"}}|' ./... |
		grep -E "\\|$TESTCLUSTER( \\[[^|]*\\])?\\|" | cut -d'|' -f1 | sed -n 's/\.test$//p' | sort -u
}

# other_packages lists the rest of a module; $2 are its cluster packages.
other_packages() {
	$GO -C "$1" list -e -buildvcs=false ./... | while read -r p; do
		case " $2 " in *" $p "*) ;; *) echo "$p" ;; esac
	done
}

words() { tr '\n' ' ' | sed 's/ *$//'; }

root_cluster=$(cluster_packages . | words)
root_fast=$(other_packages . "$root_cluster" | words)
if [ "${1:-}" = "--list-fast" ]; then
	echo "$root_fast"
	exit 0
fi

logs=out/test
rm -rf "$logs"
mkdir -p "$logs"
failed=0
steps=0
began=$(date +%s)

# step runs one command, shows and keeps what it prints, and notes how it ended.
step() {
	name=$1
	shift
	steps=$((steps + 1))
	log=$logs/$steps.log
	echo "==> $name"
	start=$(date +%s)
	{
		"$@" 2>&1
		echo $? >"$log.code"
	} | tee "$log" | grep -v 'no test files'
	took=$(($(date +%s) - start))
	if [ "$(cat "$log.code")" = 0 ]; then
		result=ok
	else
		result=FAILED
		failed=$((failed + 1))
	fi
	printf '%-8s %5ss  %s\n' "$result" "$took" "$name" >>"$logs/summary"
	[ "$result" = ok ] || grep -e '^FAIL.*/' -e '^ *--- FAIL' "$log" | sort -u | sed 's/^/           /' >>"$logs/summary"
}

step "rules of the repository" $GO test ./internal/lint
# The lists of packages below are meant to split at spaces.
# shellcheck disable=SC2046,SC2086
step "root module, without a cluster" $GO test $(echo "$root_fast" | tr ' ' '\n' | grep -v '/internal/lint$')

step "faults that tests must detect" $GO run ./internal/mutation/mutants

conf_cluster=$(cluster_packages conformance | words)
conf_fast=$(other_packages conformance "$conf_cluster" | words)
# The comparison of command lines runs a program that it builds, which the test cache cannot see.
conf_programs=$(echo "$conf_fast" | tr ' ' '\n' | grep '/flags$')
# shellcheck disable=SC2046,SC2086
step "conformance with kube-scheduler 1.37.1" $GO -C conformance test -timeout 20m $(echo "$conf_fast" | tr ' ' '\n' | grep -v '/flags$')
# shellcheck disable=SC2086
step "conformance of command lines" $GO -C conformance test -count 1 -timeout 20m $conf_programs

# It takes libraries of its own, at versions that the others must not be drawn to; it stands outside go.work.
step "chart, alerts and dashboard" env GOWORK=off $GO -C deploy/test test -count 1 -skip '^TestCluster' ./...

# Likewise: it packs images.
step "images and other tools" env GOWORK=off $GO -C tools test ./...

step "build the local cluster" "$MAKE" --no-print-directory build
step "local cluster" $GO -C localcluster test -count 1 -p 1 -timeout 20m ./...
if [ -n "$root_cluster" ]; then
	# shellcheck disable=SC2086
	step "root module, on a cluster" $GO test -count 1 -p 1 -timeout 30m $root_cluster
fi
step "chart, on a cluster" env GOWORK=off $GO -C deploy/test test -count 1 -timeout 20m -run '^TestCluster' .
if [ -n "$conf_cluster" ]; then
	# shellcheck disable=SC2086
	step "conformance, on a cluster" $GO -C conformance test -count 1 -p 1 -timeout 30m $conf_cluster
fi

echo
echo "==> summary"
cat "$logs/summary"
echo "packages: $(cat "$logs"/*.log | grep -c '^ok ') ok, $(cat "$logs"/*.log | grep -c '^FAIL.*/') failed, in $(($(date +%s) - began))s"
if [ "$failed" -gt 0 ]; then
	echo "$failed of $steps steps FAILED; the output of each is in $logs"
	exit 1
fi
echo "all $steps steps ok"
