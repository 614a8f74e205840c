// SPDX-License-Identifier: Apache-2.0

package workload

// Plan is one workload of one case, ready to run.
type Plan struct {
	// Name is case/workload.
	Name   string
	Labels []string
	// Gates: feature gate -> on.
	Gates map[string]bool
	// SchedulerConfig is the configuration that the case wants its scheduler to have; empty for the default.
	SchedulerConfig string
	// DefaultPod is the pod of CreatePods without a template; nil for the built-in one.
	DefaultPod *Template
	Ops        []Op
	// Threshold is what Selector must reach; 0 for none.
	Threshold float64
	Selector  MetricSelector
}

// MetricSelector names one figure of a run.
type MetricSelector struct {
	Name   string
	Labels map[string]string
	// Bucket is Average, Perc50, Perc90, Perc95 or Perc99.
	Bucket string
	// ExpectLower tells that the figure must stay below the threshold.
	ExpectLower bool
}
