// SPDX-License-Identifier: Apache-2.0

package workload

// Plan is one workload of one case, ready to run.
type Plan struct {
	// Name is case/workload.
	Name   string
	Labels []string
	// Params are those of the workload: name -> value.
	Params map[string]any
	// Gates: feature gate -> on.
	Gates map[string]bool
	// SchedulerConfig is the text of the configuration that the case wants its scheduler to have; empty for the default.
	SchedulerConfig string
	// DefaultPod is the pod of CreatePods without a template; nil for the built-in one.
	DefaultPod *Template
	Ops        []Op
	// Threshold is what Selector must reach; 0 for none.
	Threshold float64
	// TopicThresholds: topic -> what takes the place of Threshold there. A topic is a name that a user gives to a run, so
	// that the same file can be held to other figures elsewhere.
	TopicThresholds map[string]float64
	Selector        MetricSelector
	// Metrics are the histograms to collect; empty for the default ones.
	Metrics []Metric
}

// ThresholdFor is the threshold of a run with a topic.
func (p *Plan) ThresholdFor(topic string) float64 {
	if special, ok := p.TopicThresholds[topic]; ok {
		return special
	}
	return p.Threshold
}

// Metric is a histogram of the scheduler, collected once for each combination of the values of its labels.
type Metric struct {
	Name   string
	Labels []MetricLabel
}

// MetricLabel is a label of a metric with the values to collect.
type MetricLabel struct {
	Label  string
	Values []string
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
