// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// sharedDevices is quality.Devices as a plugin of upstream's framework. A nil one does nothing.
type sharedDevices struct{ *quality.Devices }

func newDevices(nodes []*v1.Node) *sharedDevices {
	gpus := map[string]int{} // node -> GPUs
	for _, n := range nodes {
		gpus[n.Name] = int(milliOf(n.Status.Allocatable) / quality.WholeGPU)
	}
	return &sharedDevices{quality.NewDevices(gpus)}
}

// registry returns the plugin for upstream; empty without devices.
func (d *sharedDevices) registry() frameworkruntime.Registry {
	if d == nil {
		return nil
	}
	return frameworkruntime.Registry{
		quality.DevicesName: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return d, nil },
	}
}

// Filter rejects nodes whose GPUs are too full.
func (d *sharedDevices) Filter(_ context.Context, _ fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
	if d.Fits(n.Node().Name, requestOf(p)) {
		return nil
	}
	return fwk.NewStatus(fwk.Unschedulable, "node(s) had too little free on their GPUs")
}

func (d *sharedDevices) take(p *v1.Pod) {
	if d != nil {
		d.Take(p.Name, p.Spec.NodeName, requestOf(p))
	}
}

func (d *sharedDevices) release(p *v1.Pod) {
	if d != nil {
		d.Release(p.Name)
	}
}

// requestOf returns the thousandths of GPUs that a pod requests.
func requestOf(p *v1.Pod) int64 { return milliOf(p.Spec.Containers[0].Resources.Requests) }

func milliOf(list v1.ResourceList) int64 {
	q := list[quality.GPUMilli]
	return q.Value()
}
