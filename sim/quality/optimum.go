// SPDX-License-Identifier: Apache-2.0

package quality

// OptimumFile is the environment variable with the file to which the comparison with optima writes an OptimumResult.
const OptimumFile = "KUMIKI_OPTIMUM_FILE"

// OptimumResult is how often schedulers reach the optimum on small clusters.
type OptimumResult struct {
	Cases, WithoutGangs, Proved int
	Rows                        []OptimumRow
}

// OptimumRow is one scheduler.
type OptimumRow struct {
	Name           string
	Cases, Optimal int
	// Fewer and More count the cases without gangs in which it places fewer or more pods than kube-scheduler; the pods
	// of the highest priority that differ count.
	Fewer, More int
}
