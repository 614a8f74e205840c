#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs every test of all modules and ends with a summary. Cheap tests come first, so that a mistake shows early;
# a step that fails does not keep the next one from running. Tests that start a cluster wait most of the time: several of
# their packages run at a time. They are never answered from the test cache, which cannot see the cluster's binary.
#
#   KUMIKI_TEST_CLUSTERS  how many clusters run at a time, 3 if it is not set
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

# first puts the packages that match $1 before the others. What takes long comes first, so that it is not left alone at
# the end, with a processor that idles.
first() {
	listed=$(tr ' ' '\n')
	echo "$listed" | grep -E "$1"
	echo "$listed" | grep -vE "$1"
}

root_cluster=$(cluster_packages . | words)
root_fast=$(other_packages . "$root_cluster" | words)
if [ -z "$root_cluster" ]; then
	echo "test.sh: go list names no package that needs a cluster" >&2 # else all of them would run in the wrong step
	exit 1
fi
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

# timed runs one command, and keeps how it ended and how long it took beside the log $1.
timed() {
	kept=$1
	shift
	start=$(date +%s)
	"$@" 2>&1
	echo $? >"$kept.code"
	echo $(($(date +%s) - start)) >"$kept.took"
}

# note adds a step with the log $2 to the summary.
note() {
	if [ "$(cat "$2.code")" = 0 ]; then
		result=ok
	else
		result=FAILED
		failed=$((failed + 1))
	fi
	printf '%-8s %5ss  %s\n' "$result" "$(cat "$2.took")" "$1" >>"$logs/summary"
	[ "$result" = ok ] || grep -e '^FAIL.*/' -e '^ *--- FAIL' "$2" | sort -u | sed 's/^/           /' >>"$logs/summary"
}

# step runs one command, shows and keeps what it prints, and notes how it ended.
step() {
	name=$1
	shift
	steps=$((steps + 1))
	log=$logs/$steps.log
	echo "==> $name"
	timed "$log" "$@" | tee "$log" | grep -v 'no test files'
	note "$name" "$log"
}

# behind starts a step that runs while others do, and joined waits for it and shows it.
behind() {
	behind=$1
	shift
	steps=$((steps + 1))
	behind_log=$logs/$steps.log
	timed "$behind_log" "$@" >"$behind_log" &
}

joined() {
	wait
	echo "==> $behind"
	grep -v 'no test files' "$behind_log"
	note "$behind" "$behind_log"
}

step "rules of the repository" $GO test ./internal/lint
# The lists of packages below are meant to split at spaces.
# shellcheck disable=SC2046,SC2086
step "root module, without a cluster" $GO test \
	$(echo "$root_fast" | first 'kumiki/(app|core/engine|core/preempt/units|internal/mutation)$' | grep -v '/internal/lint$')

step "faults that tests must detect" $GO run ./internal/mutation/mutants

conf_cluster=$(cluster_packages conformance | words)
conf_fast=$(other_packages conformance "$conf_cluster" | words)
# The comparison of command lines runs a program that it builds, which the test cache cannot see.
conf_programs=$(echo "$conf_fast" | tr ' ' '\n' | grep '/flags$')
# shellcheck disable=SC2046,SC2086
step "conformance with kube-scheduler 1.37.1" $GO -C conformance test -timeout 20m \
	$(echo "$conf_fast" | first '/kumiki$' | grep -v '/flags$')
# shellcheck disable=SC2086
step "conformance of command lines" $GO -C conformance test -count 1 -timeout 20m $conf_programs

# It takes libraries of its own, at versions that the others must not be drawn to; it stands outside go.work.
step "chart, alerts and dashboard" env GOWORK=off $GO -C deploy/test test -count 1 -skip '^TestCluster' ./...

# Likewise: it packs images.
step "images and other tools" env GOWORK=off $GO -C tools test ./...

step "build the local cluster" "$MAKE" --no-print-directory build
KUMIKI_TEST_CLUSTERS=${KUMIKI_TEST_CLUSTERS:-3}
export KUMIKI_TEST_CLUSTERS

on_cluster="$root_cluster $conf_cluster $(cluster_packages kubescheduler | words) \
	$($GO -C localcluster list -e -buildvcs=false ./... | words)"

behind "chart, on a cluster" env GOWORK=off $GO -C deploy/test test -count 1 -timeout 40m -run '^TestCluster' .
# shellcheck disable=SC2046
step "local cluster, and all modules on it" $GO test -count 1 -p "$KUMIKI_TEST_CLUSTERS" -timeout 40m \
	$(echo "$on_cluster" | first '/(learntest|e2e|localcluster|bench|ladder)$')
joined

echo
echo "==> summary"
cat "$logs/summary"
echo "packages: $(cat "$logs"/*.log | grep -c '^ok ') ok, $(cat "$logs"/*.log | grep -c '^FAIL.*/') failed, in $(($(date +%s) - began))s"
if [ "$failed" -gt 0 ]; then
	echo "$failed of $steps steps FAILED; the output of each is in $logs"
	exit 1
fi
echo "all $steps steps ok"
