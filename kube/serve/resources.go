// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"strconv"
	"strings"
	"unique"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// The metrics of /metrics/resources (upstream: pkg/scheduler/metrics/resources).
var (
	podRequest = perPod("kube_pod_resource_request",
		"Resources requested by workloads on the cluster, broken down by pod. This shows the resource usage the "+
			"scheduler and kubelet expect per pod for resources along with the unit for the resource if any.")
	podLimit = perPod("kube_pod_resource_limit",
		"Resources limit for workloads on the cluster, broken down by pod. This shows the resource usage the "+
			"scheduler and kubelet expect per pod for resources along with the unit for the resource if any.")
)

func perPod(name, help string) *metrics.Desc {
	return metrics.NewDesc(name, help, []string{"namespace", "pod", "node", "scheduler", "priority", "resource",
		"unit"}, nil, metrics.STABLE, "")
}

// PodResources answers with what each pod requests, and with its limits. pods gives the newest records of all pods.
func PodResources(pods func() []*cluster.Pod) http.Handler {
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(&podResources{pods: pods})
	return metrics.HandlerWithReset(registry, metrics.HandlerOpts{})
}

// podResources collects from the newest records of pods.
type podResources struct {
	metrics.BaseStableCollector
	pods func() []*cluster.Pod
}

// DescribeWithStability tells which metrics there are.
func (*podResources) DescribeWithStability(to chan<- *metrics.Desc) {
	to <- podRequest
	to <- podLimit
}

// CollectWithStability tells of all pods.
func (c *podResources) CollectWithStability(to chan<- metrics.Metric) {
	for _, p := range c.pods() {
		tell := func(of *metrics.Desc, name string, value float64) {
			if value != 0 {
				to <- metrics.NewLazyConstMetric(of, metrics.GaugeValue, value, p.Namespace, p.Name, p.NodeName,
					p.Spec.SchedulerName,
					strconv.Itoa(int(p.Spec.Priority)), name, unitOf(name))
			}
		}
		eachRequest(&p.Spec.Request, func(name string, value float64) { tell(podRequest, name, value) })
		eachLimit(p.Limits, func(name string, value float64) { tell(podLimit, name, value) })
	}
}

func eachRequest(a *resource.Amounts, visit func(name string, value float64)) {
	visit(string(v1.ResourceCPU), float64(a.MilliCPU)/1000)
	visit(string(v1.ResourceMemory), float64(a.Memory))
	visit(string(v1.ResourceEphemeralStorage), float64(a.Ephemeral))
	for _, s := range a.Scalars {
		visit(string(s.Name), float64(s.Value))
	}
}

// eachLimit reads the limits of a record of a pod, as intake writes them.
func eachLimit(text unique.Handle[string], visit func(name string, value float64)) {
	if text == (unique.Handle[string]{}) {
		return
	}
	for part := range strings.SplitSeq(text.Value(), ",") {
		name, number, _ := strings.Cut(part, "=")
		value, _ := strconv.ParseFloat(number, 64)
		visit(name, value)
	}
}

// unitOf is the unit label; resources of unknown meaning have none.
func unitOf(name string) string {
	switch {
	case name == string(v1.ResourceCPU):
		return "cores"
	case name == string(v1.ResourceMemory), name == string(v1.ResourceStorage),
		name == string(v1.ResourceEphemeralStorage),
		strings.HasPrefix(name, v1.ResourceHugePagesPrefix):
		return "bytes"
	case strings.HasPrefix(name, v1.ResourceAttachableVolumesPrefix):
		return "integer"
	}
	return ""
}
