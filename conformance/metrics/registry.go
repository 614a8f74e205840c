// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	componentmetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	upstreamvolume "k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/metrics"
	upstream "k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// Metric is what a registry says of a metric.
type Metric struct {
	Name, Type, Help string // the help begins with the stability level
	Labels           string // joined by commas, sorted
	Buckets          string // upper bounds
}

// Upstream is what kube-scheduler registers with the feature gates at their defaults, by name.
func Upstream() ([]Metric, error) {
	upstream.Register()
	touchUpstream()
	return read(legacyregistry.Registerer(), legacyregistry.DefaultGatherer)
}

// Kumiki is what kumiki registers, by name.
func Kumiki() ([]Metric, error) {
	reg := &keeping{KubeRegistry: componentmetrics.NewKubeRegistry()}
	// Without a recorder the metrics of times have no values.
	metrics.New(reg).ShowTiming(timing.New(timing.Options{Epoch: "e", Since: 1}))
	for _, m := range reg.all {
		touch(m)
	}
	return read(reg.Registerer(), reg)
}

// keeping is a registry that remembers what was registered.
type keeping struct {
	componentmetrics.KubeRegistry
	all []componentmetrics.Registerable
}

// Register registers and remembers.
func (k *keeping) Register(m componentmetrics.Registerable) error {
	k.all = append(k.all, m)
	return k.KubeRegistry.Register(m)
}

// touch makes a metric with labels appear.
func touch(m any) {
	for n := 1; n < 6; n++ { // as many values as there are labels is what works
		values := make([]string, n)
		func() {
			defer func() { _ = recover() }()
			switch m := m.(type) {
			case *componentmetrics.CounterVec:
				m.WithLabelValues(values...).Inc()
			case *componentmetrics.GaugeVec:
				m.WithLabelValues(values...).Set(1)
			case *componentmetrics.HistogramVec:
				m.WithLabelValues(values...).Observe(1)
			}
		}()
	}
}

// touchUpstream makes upstream's metrics with labels appear, also those that only functions can reach.
func touchUpstream() {
	for _, m := range []any{
		upstream.EventHandlingLatency, upstream.InFlightEvents, upstream.Goroutines,
		upstream.BatchAttemptStats, upstream.BatchCacheFlushed,
		upstream.QueuedEntities, upstream.SchedulerQueueIncomingEntities, upstream.BatchRescoreAttempts,
		upstream.BatchRescoreDuration,
		upstream.PreQueueingHintEvaluations,
		upstream.GetNodeHintDuration, upstream.StoreScheduleResultsDuration, upstream.PodSchedulingSLIDuration,
		upstream.FrameworkExtensionPointDuration, upstream.PluginExecutionDuration, upstream.PermitWaitDuration, upstream.CacheSize,
		upstream.PluginEvaluationTotal, upstream.SchedulerQueueIncomingPods, upstream.PreemptionGoroutinesDuration,
		upstream.PreemptionGoroutinesExecutionTotal, upstream.ResourceClaimCreatesTotal, upstream.DRABindingConditionsAllocationsTotal,
		upstream.DRABindingConditionsPreBindDuration,
		upstreamvolume.VolumeBindingRequestSchedulerBinderCache, upstreamvolume.VolumeSchedulingStageFailed,
	} {
		touch(m)
	}
	upstream.PodScheduled("", 1)
	upstream.ActivePods().Inc()
	upstream.UnschedulableReason("", "").Inc()
	stop := make(chan struct{})
	recorder := upstream.NewMetricsAsyncRecorder(1, 0, stop)
	close(stop)
	<-recorder.IsStoppedCh
	recorder.ObserveQueueingHintDurationAsync("", "", "", 1)
	recorder.FlushMetrics()
}

// described is how a description reads in text.
var described = regexp.MustCompile(`fqName: "(\w+)"`)

// read says what a registry holds under the prefixes scheduler_, kumiki_ and dynamic_resource_allocation_. A metric that has no value yet is an
// error: nothing could be said of it.
func read(registerer any, gatherer componentmetrics.Gatherer) ([]Metric, error) {
	names := map[string]bool{} // name -> it has a value
	holder, can := registerer.(componentmetrics.Collector)
	if !can {
		return nil, fmt.Errorf("a %T does not describe itself", registerer)
	}
	for _, text := range drain(holder.Describe) {
		if name := described.FindStringSubmatch(text); name != nil && ours(name[1]) {
			names[name[1]] = false
		}
	}
	families, err := gatherer.Gather()
	if err != nil {
		return nil, err
	}
	var all []Metric
	for _, f := range families {
		if !ours(f.GetName()) {
			continue
		}
		names[f.GetName()] = true
		first := f.GetMetric()[0]
		m := Metric{Name: f.GetName(), Type: f.GetType().String(), Help: f.GetHelp()}
		var labels []string
		for _, l := range first.GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		m.Labels = strings.Join(labels, ",")
		for _, b := range first.GetHistogram().GetBucket() {
			m.Buckets += fmt.Sprint(b.GetUpperBound(), " ")
		}
		all = append(all, m)
	}
	for name, has := range names { // order: the message names one of them
		if !has {
			return nil, fmt.Errorf("%s is registered and has no value: nothing can be said of its labels", name)
		}
	}
	slices.SortFunc(all, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func ours(name string) bool {
	return strings.HasPrefix(name, "scheduler_") || strings.HasPrefix(name, "kumiki_") ||
		strings.HasPrefix(name, "dynamic_resource_allocation_")
}

// drain collects what is described.
func drain[D fmt.Stringer](describe func(chan<- D)) []string {
	descriptions := make(chan D, 1<<14) // more than any registry holds
	describe(descriptions)
	close(descriptions)
	var texts []string
	for d := range descriptions {
		texts = append(texts, d.String())
	}
	return texts
}
