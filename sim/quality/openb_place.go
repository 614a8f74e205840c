// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// GPUMilli is the resource that has the thousandths of all GPUs of a node.
const GPUMilli v1.ResourceName = "example.com/gpu-milli"

// Devices is a filter that knows what is free on each GPU of each node. It stands for claims of devices with consumable
// capacity: a share is on one GPU, and GPUs that are requested as a whole are free before. A share is placed on the GPU
// with the least free capacity that is enough. Scorers see the sum of a node.
type Devices struct {
	nodes map[string]*openbState // node -> what is free
	held  map[string]holding     // pod -> what it has
}

// holding is the GPUs of a pod.
type holding struct {
	node  *openbState
	gpus  []int
	milli int64 // of each
}

// DevicesName is its name.
const DevicesName = "SharedDevices"

// NewDevices returns the GPUs of nodes without pods: node -> GPUs.
func NewDevices(gpus map[string]int) *Devices {
	d := &Devices{nodes: map[string]*openbState{}, held: map[string]holding{}}
	for name, n := range gpus { // order: each node by itself
		state := &openbState{gpus: n}
		for k := range n {
			state.free[k] = WholeGPU
		}
		d.nodes[name] = state
	}
	return d
}

// devices returns the GPUs of the nodes.
func (o *Openb) devices() *Devices {
	gpus := map[string]int{} // node -> GPUs
	for i := range o.Nodes {
		gpus[o.Nodes[i].Name] = o.Nodes[i].GPUs
	}
	return NewDevices(gpus)
}

// gpuShape returns the GPUs of a request in thousandths: a share, or whole ones.
func gpuShape(milli int64) *OpenbShape {
	if milli >= WholeGPU {
		return &OpenbShape{GPUs: int(milli / WholeGPU), Milli: WholeGPU}
	}
	return &OpenbShape{GPUs: 1, Milli: milli}
}

// Fits reports whether the GPUs of a node have capacity for a request in thousandths.
func (d *Devices) Fits(node string, milli int64) bool {
	return milli == 0 || d.nodes[node].holds(gpuShape(milli))
}

// Take gives a pod GPUs of a node.
func (d *Devices) Take(pod, node string, milli int64) {
	if milli == 0 {
		return
	}
	n, s := d.nodes[node], gpuShape(milli)
	h := holding{n, n.choose(s, n.tightest(s)), s.Milli}
	for _, k := range h.gpus {
		n.free[k] -= h.milli
	}
	d.held[pod] = h
}

// Release takes the GPUs of a pod back.
func (d *Devices) Release(pod string) {
	h := d.held[pod]
	for _, k := range h.gpus {
		h.node.free[k] += h.milli
	}
	delete(d.held, pod)
}

// Name returns DevicesName.
func (*Devices) Name() string { return DevicesName }

// PrepareFilter skips pods without GPUs.
func (d *Devices) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	milli := p.Spec.Request.Get(GPUMilli)
	if milli == 0 {
		return plugin.FilterPlan{}
	}
	return plugin.FilterPlan{Filter: &deviceFilter{d, gpuShape(milli)}}
}

// deviceFilter is Devices prepared for a pod.
type deviceFilter struct {
	*Devices
	shape *OpenbShape
}

const devicesTooFull plugin.Code = 1

func (f *deviceFilter) judge(name string) plugin.Code {
	if !f.nodes[name].holds(f.shape) {
		return devicesTooFull
	}
	return plugin.Fit
}

// Plain returns the verdict on one node.
func (f *deviceFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	return f.judge(v.Node.Name)
}

// Column returns the verdicts on rows lo to hi-1.
func (f *deviceFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	for n := lo; n < hi; n++ {
		if out[n] != plugin.Fits {
			continue
		}
		if code := f.judge(s.NodeName(n)); code != plugin.Fit {
			out[n] = tag.With(code)
		}
	}
}

// Reasons returns the text of a rejection.
func (*deviceFilter) Reasons(plugin.Code) []string {
	return []string{"node(s) had too little free on their GPUs"}
}

// NewPlacer makes a scheduler on nodes. last is a filter that it must run after its others; nil for none.
type NewPlacer func(nodes []*v1.Node, last *Devices) (Placer, error)

// openbRun is a scheduler under the protocol.
type openbRun struct {
	o         *Openb
	placer    Placer
	devices   *Devices
	templates map[OpenbShape]*cluster.Pod // shape -> pod
}

func (o *Openb) start(make NewPlacer) (*openbRun, error) {
	r := &openbRun{o: o, devices: o.devices(), templates: map[OpenbShape]*cluster.Pod{}}
	var nodes []*v1.Node
	for i := range o.Nodes {
		nodes = append(nodes, o.Nodes[i].object())
	}
	var err error
	r.placer, err = make(nodes, r.devices)
	return r, err
}

// place places the i-th pod, and returns nil if it fits no node.
func (r *openbRun) place(i int) (*cluster.Pod, error) {
	s := &r.o.Pods[i].OpenbShape
	if s.Models != "" {
		return nil, fmt.Errorf("pod %s names models of GPUs, which is not supported", r.o.Pods[i].Name)
	}
	template := r.templates[*s]
	if template == nil {
		template = r.placer.Template(s.object())
		r.templates[*s] = template
	}
	p := r.placer.Place(template)
	if err := r.placer.Err(); err != nil || p.NodeName == "" {
		return nil, err
	}
	r.devices.Take(p.Name, p.NodeName, s.GPUMilli())
	return p, nil
}

// Place runs a scheduler under the protocol.
func (o *Openb) Place(make NewPlacer, seed int64) (*Curve, error) {
	r, err := o.start(make)
	if err != nil {
		return nil, err
	}
	curve := o.NewCurve()
	for _, i := range o.Arrive(seed) {
		p, err := r.place(i)
		if err != nil {
			return nil, err
		}
		curve.Arrived(o.Pods[i].GPUMilli(), p != nil)
	}
	return curve, nil
}

// object returns the node as the API has it.
func (n *OpenbNode) object() *v1.Node {
	out := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID(n.Name),
		Labels: map[string]string{v1.LabelHostname: n.Name}}}
	out.Status.Allocatable = amounts(n.CPU, n.Memory, int64(n.GPUs)*WholeGPU)
	out.Status.Allocatable[v1.ResourcePods] = *apiresource.NewQuantity(1000, apiresource.DecimalSI)
	return out
}

// object returns a pod of the shape as the API has it.
func (s *OpenbShape) object() *v1.Pod { return podOf(amounts(s.CPU, s.Memory, s.GPUMilli())) }

func podOf(requests v1.ResourceList) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "template", UID: "template"}}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: requests}}}
	return p
}

func amounts(cpuMilli, memoryMiB, gpuMilli int64) v1.ResourceList {
	list := v1.ResourceList{
		v1.ResourceCPU:    *apiresource.NewMilliQuantity(cpuMilli, apiresource.DecimalSI),
		v1.ResourceMemory: *apiresource.NewQuantity(memoryMiB<<20, apiresource.BinarySI),
	}
	if gpuMilli > 0 {
		list[GPUMilli] = *apiresource.NewQuantity(gpuMilli, apiresource.DecimalSI)
	}
	return list
}

// Sizes returns the arrivals of a seed until a share of the GPUs was requested, by what each requests of one GPU:
// thousandths -> requests.
func (o *Openb) Sizes(seed int64, share float64) map[int64]int64 {
	sizes := map[int64]int64{}
	arrived := int64(0)
	for _, i := range o.Arrive(seed) {
		s := &o.Pods[i].OpenbShape
		if arrived += s.GPUMilli(); float64(arrived) > share*float64(o.TotalGPU()) {
			break
		}
		if s.GPUs > 0 {
			sizes[s.Milli] += int64(s.GPUs)
		}
	}
	return sizes
}
