// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unique"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// The metrics of /metrics/resources (upstream: pkg/scheduler/metrics/resources).
var (
	podRequest = perPod("kube_pod_resource_request", "Resources requested by workloads on the cluster, broken down by pod. This shows the resource usage the scheduler and kubelet expect per pod for resources along with the unit for the resource if any.")
	podLimit   = perPod("kube_pod_resource_limit", "Resources limit for workloads on the cluster, broken down by pod. This shows the resource usage the scheduler and kubelet expect per pod for resources along with the unit for the resource if any.")
)

func perPod(name, help string) *metrics.Desc {
	return metrics.NewDesc(name, help, []string{"namespace", "pod", "node", "scheduler", "priority", "resource", "unit"}, nil, metrics.STABLE, "")
}

// resources answers with what each pod asks for. It says nothing while another leads.
func (h Health) resources() http.Handler {
	handler := PodResources(h.Loop.cfg.Inbox)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.leads() {
			handler.ServeHTTP(w, r)
		}
	})
}

// PodResources answers with what each pod of an inbox asks for, and what it may use at most.
func PodResources(in *Inbox) http.Handler {
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(&podResources{inbox: in})
	return metrics.HandlerWithReset(registry, metrics.HandlerOpts{})
}

func (h Health) leads() bool {
	if h.Election == nil {
		return true
	}
	select {
	case <-h.Election.Won():
		return true
	default:
		return false
	}
}

// podResources reads the newest records of an inbox.
type podResources struct {
	metrics.BaseStableCollector
	inbox *Inbox
}

// DescribeWithStability tells which metrics there are.
func (*podResources) DescribeWithStability(to chan<- *metrics.Desc) {
	to <- podRequest
	to <- podLimit
}

// CollectWithStability tells of all pods.
func (c *podResources) CollectWithStability(to chan<- metrics.Metric) {
	for _, p := range c.inbox.newestPods() {
		tell := func(of *metrics.Desc, name string, value float64) {
			if value != 0 {
				to <- metrics.NewLazyConstMetric(of, metrics.GaugeValue, value, p.Namespace, p.Name, p.NodeName, p.Spec.SchedulerName,
					strconv.Itoa(int(p.Spec.Priority)), name, unitOf(name))
			}
		}
		eachRequest(&p.Spec.Request, func(name string, value float64) { tell(podRequest, name, value) })
		eachLimit(p.Limits, func(name string, value float64) { tell(podLimit, name, value) })
	}
}

// newestPods are the records of all pods. They are copied out, so that the loop does not wait for who reads them.
func (in *Inbox) newestPods() []*cluster.Pod {
	in.mu.Lock()
	defer in.mu.Unlock()
	list := make([]*cluster.Pod, 0, len(in.pods.rows))
	for _, r := range in.pods.rows { // order: a registry sorts what it gathers
		if r.newest != nil {
			list = append(list, r.newest)
		}
	}
	return list
}

func eachRequest(a *resource.Amounts, visit func(name string, value float64)) {
	visit(string(v1.ResourceCPU), float64(a.MilliCPU)/1000)
	visit(string(v1.ResourceMemory), float64(a.Memory))
	visit(string(v1.ResourceEphemeralStorage), float64(a.Ephemeral))
	for _, s := range a.Scalars {
		visit(string(s.Name), float64(s.Value))
	}
}

// limitsOf is what a pod may use at most, as text that all pods with the same limits share.
func limitsOf(p *v1.Pod) unique.Handle[string] {
	limits := resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{})
	if len(limits) == 0 {
		return unique.Handle[string]{}
	}
	parts := make([]string, 0, len(limits))
	for name, q := range limits { // order: sorted below
		parts = append(parts, string(name)+"="+strconv.FormatFloat(q.AsApproximateFloat64(), 'g', -1, 64))
	}
	slices.Sort(parts)
	return unique.Make(strings.Join(parts, ","))
}

// eachLimit reads what limitsOf wrote.
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
	case name == string(v1.ResourceMemory), name == string(v1.ResourceStorage), name == string(v1.ResourceEphemeralStorage),
		strings.HasPrefix(name, v1.ResourceHugePagesPrefix):
		return "bytes"
	case strings.HasPrefix(name, v1.ResourceAttachableVolumesPrefix):
		return "integer"
	}
	return ""
}
