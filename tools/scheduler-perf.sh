#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs workloads of scheduler_perf, of the release that conformance/go.mod names, against kumiki: each of upstream's
# performance-config.yaml files with the workloads that have a label. The report of each file is in out/scheduler-perf.
# It ends with a table, and with 1 if a run failed or a threshold was missed.
#
#   scheduler-perf.sh LABELS [FILES]   FILES is a regular expression, such as '^(dra|misc)'
set -u
cd "$(dirname "$0")/.." || exit 1
GO=${GO:-go}
LABELS=$1
FILES=${2:-.}
source=$($GO -C conformance list -m -f '{{.Dir}}' k8s.io/kubernetes)/test/integration/scheduler_perf
out=$PWD/out/scheduler-perf
mkdir -p "$out"
failed=0

summary=$out/summary
printf '%-36s %9s  %s\n' file workloads result >"$summary"
for config in $(cd "$source" && find . -name performance-config.yaml | sort); do
	name=$(dirname "${config#./}")
	echo "$name" | grep -Eq "$FILES" || continue
	report=$out/$(echo "$name" | tr / -)
	echo "==> $name" >&2
	bin/kumiki bench -f "$source/$name/performance-config.yaml" --labels "$LABELS" --scheduler kumiki --runs 1 \
		>"$report.txt" 2>"$report.log"
	code=$?
	result=ok
	if [ "$code" != 0 ]; then
		result="exit code $code, see out/scheduler-perf/$(basename "$report").txt"
		failed=1
	fi
	printf '%-36s %9s  %s\n' "$name" "$(grep -c ', round 1: ' "$report.log")" "$result" >>"$summary"
	tail -1 "$summary" >&2
done
cat "$summary"
exit $failed
