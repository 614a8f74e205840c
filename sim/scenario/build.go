// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// Trace adds recorded work to a run.
type Trace interface {
	// Load requests everything of the trace in a World, before it starts, and returns its workloads. index is the
	// first number for them.
	Load(w *sim.World, index int) ([]*sim.Workload, error)
}

// Run is one run of a scenario.
type Run struct {
	World   *sim.World
	Measure *sim.Measure
	loads   []*sim.Workload
	file    *File
	groups  map[string]int // name of a group of nodes -> nodes that were created
}

// Limit returns when a run ends at the latest.
func (f *File) Limit() time.Duration {
	if f.Until > 0 {
		return f.Until
	}
	return DefaultUntil
}

// Start makes a run with a seed and schedulers, at time 0.
func (f *File) Start(seed uint64, schedulers []sim.Scheduler) (*Run, error) {
	every := f.Sample
	if every == 0 {
		every = max(f.Limit()/120, time.Second)
	}
	r := &Run{Measure: sim.NewMeasure(every), file: f, groups: map[string]int{}}
	setup := sim.Setup{Seed: seed, Schedulers: schedulers, Model: f.Model.resolve(), Observer: r.Measure}
	for _, t := range f.Traces {
		if c, is := t.(*Capture); is {
			setup.Epoch = c.Began
		}
	}
	r.World = sim.New(setup)
	if f.KeepFull {
		r.World.Intake().KeepFull()
	}
	r.World.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1.NamespaceDefault,
		Labels: map[string]string{v1.LabelMetadataName: v1.NamespaceDefault}}})
	for i := range f.Storage {
		c := &f.Storage[i]
		r.World.AddClass(sim.StorageClass{Name: c.Name, Immediate: c.Immediate, Static: c.PerNode > 0,
			Topology: c.Topology})
	}
	for _, g := range f.Nodes {
		r.addNodes(g, g.Count)
	}
	for _, b := range f.Budgets {
		if err := r.World.AddBudget(b.object()); err != nil {
			return nil, fmt.Errorf("budget %s: %w", b.Name, err)
		}
	}
	for i := range f.Workloads {
		l := f.Workloads[i].load()
		r.loads = append(r.loads, l)
	}
	for _, t := range f.Traces {
		more, err := t.Load(r.World, len(r.loads))
		if err != nil {
			return nil, err
		}
		r.loads = append(r.loads, more...)
	}
	r.World.Start()
	for i := range f.Workloads {
		r.World.Load(r.loads[i], i)
	}
	for _, e := range f.Events {
		r.World.At(e.At, func() { r.happen(e) })
	}
	return r, nil
}

// Finish runs it to its end. progress is called now and then with the virtual time; nil for not at all.
func (r *Run) Finish(progress func(time.Duration)) sim.Result {
	if progress != nil {
		step := max(r.file.Limit()/1000, time.Second)
		next := step
		done := func() bool {
			if r.World.Now() >= next {
				progress(r.World.Now())
				next = r.World.Now() + step
			}
			return false
		}
		return r.Measure.Result(r.World, r.loads, r.World.Run(sim.Limits{Until: r.file.Limit(), Done: done,
			WhenQuiet: true}))
	}
	why := r.World.Run(sim.Limits{Until: r.file.Limit(), WhenQuiet: true})
	return r.Measure.Result(r.World, r.loads, why)
}

// Names returns the names of the metrics that runs have.
func (r *Run) Names() (list []string) {
	result := r.Measure.Result(r.World, r.loads, "")
	for _, m := range result.Metrics {
		list = append(list, m.Name)
	}
	return list
}

// SchedulerNames returns the scheduler names of the pods.
func (f *File) SchedulerNames() (list []string) {
	seen := map[string]bool{}
	add := func(name string) {
		if name == "" {
			name = v1.DefaultSchedulerName
		}
		if !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	for i := range f.Workloads {
		add(f.Workloads[i].schedulerName())
	}
	for _, t := range f.Traces {
		if c, is := t.(*Capture); is {
			for _, name := range c.SchedulerNames() {
				add(name)
			}
		} else {
			add("")
		}
	}
	return list
}

func (l *Workload) schedulerName() string {
	if l.Scheduler != "" {
		return l.Scheduler
	}
	return l.Spec.SchedulerName
}

func (m *Model) resolve() sim.Model {
	out := sim.DefaultModel()
	override(&out.Decision, m.Decision)
	override(&out.Watch, m.Watch)
	override(&out.Sight, m.Sight)
	override(&out.Call, m.Call)
	override(&out.Answer, m.Answer)
	override(&out.InFlight, m.InFlight)
	override(&out.Reread, m.Reread)
	override(&out.Kubelet, m.Kubelet)
	override(&out.Start, m.Start)
	override(&out.Stop, m.Stop)
	override(&out.Controller, m.Controller)
	override(&out.Detect, m.Detect)
	override(&out.Remove, m.Remove)
	override(&out.Volume, m.Volume)
	if d := m.Decisions; d != nil {
		out.Decisions = map[record.Path]time.Duration{}
		for path, v := range map[record.Path]*time.Duration{ // order: each path by itself
			record.Ranked: d.Ranked, record.Grouped: d.Grouped, record.Scanned: d.Scanned} {
			if v != nil {
				out.Decisions[path] = *v
			}
		}
	}
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, sim.CallLatency{InFlight: c.InFlight, Latency: c.Latency})
	}
	for _, l := range m.Loads {
		out.Loads = append(out.Loads, sim.CallLatency{InFlight: l.Sent, Latency: l.Latency})
	}
	if m.FailedBinds != nil {
		out.Failed = float64(*m.FailedBinds)
	}
	if m.LostAnswers != nil {
		out.Lost = float64(*m.LostAnswers)
	}
	return out
}

func override[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// addNodes adds nodes to a group.
func (r *Run) addNodes(g NodeGroup, count int) {
	for range count {
		i := r.groups[g.Name]
		r.groups[g.Name]++
		name := g.Name + "-" + strconv.Itoa(i)
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			Labels: map[string]string{v1.LabelHostname: name, "group": g.Name}}}
		if g.Zones > 0 {
			n.Labels[v1.LabelTopologyZone] = "zone-" + strconv.Itoa(i%g.Zones)
		}
		for k, v := range g.Labels { // order: each key by itself
			n.Labels[k] = v
		}
		n.Spec.Taints = g.Taints
		n.Status.Allocatable = g.Capacity
		r.World.AddNode(n)
		r.addVolumes(n)
	}
}

func (b Budget) object() policyv1.PodDisruptionBudget {
	out := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: b.Name,
		UID: types.UID("budget-" + b.Name)}}
	out.Spec.Selector = &metav1.LabelSelector{MatchLabels: b.Labels}
	if n := b.MinAvailable; n != nil {
		v := intstr.FromInt32(*n)
		out.Spec.MinAvailable = &v
	} else if n := b.MaxUnavailable; n != nil {
		v := intstr.FromInt32(*n)
		out.Spec.MaxUnavailable = &v
	}
	return out
}

// addVolumes adds the volumes that a new node has.
func (r *Run) addVolumes(n *v1.Node) {
	for i := range r.file.Storage {
		c := &r.file.Storage[i]
		if c.PerNode > 0 && matches(n.Labels, c.Labels) {
			for k := range c.PerNode {
				r.World.AddVolume(fmt.Sprintf("%s-%s-%d", c.Name, n.Name, k), c.Name, *c.Size, n.Name)
			}
		}
	}
}

// matches reports whether labels have all that are wanted.
func matches(labels, want map[string]string) bool {
	for k, v := range want { // order: a conjunction
		if labels[k] != v {
			return false
		}
	}
	return true
}

// addClaims gives each pod of a workload a claim: those of StatefulSets outlive their pods, the others are generic
// ephemeral volumes.
func (l *Workload) addClaims(to *sim.Workload) {
	to.Parallel = l.Parallel
	for i := range l.Claims {
		c := &l.Claims[i]
		spec := v1.PersistentVolumeClaimSpec{StorageClassName: &c.Class,
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: *c.Size}}}
		if to.Kind == sim.StatefulSet {
			to.Claims = append(to.Claims, v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: c.Name},
				Spec: spec})
			continue
		}
		to.Pod.Spec.Volumes = append(to.Pod.Spec.Volumes, v1.Volume{Name: c.Name, VolumeSource: v1.VolumeSource{
			Ephemeral: &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{Spec: spec}}}})
	}
}

// load converts a workload.
func (l *Workload) load() *sim.Workload {
	out := &sim.Workload{Name: l.Name, Kind: sim.Kind(l.Kind), Size: l.Size, Completions: l.Completions, Work: l.Work,
		FailRate: float64(l.FailRate), Retries: 6, Count: 1, First: l.First, Every: l.Every}
	if l.Retries != nil {
		out.Retries = *l.Retries
	}
	if l.Count != nil {
		if out.Count = *l.Count; out.Count == 0 {
			out.Count = -1
		}
	}
	p := &v1.Pod{Spec: *l.Spec.DeepCopy()}
	p.Labels = map[string]string{}
	for k, v := range l.Labels { // order: each key by itself
		p.Labels[k] = v
	}
	p.Spec.SchedulerName = l.schedulerName()
	if l.Priority != nil {
		p.Spec.Priority = l.Priority
	}
	if len(p.Spec.Containers) == 0 {
		p.Spec.Containers = []v1.Container{{Name: "c"}}
	}
	if len(l.Requests) > 0 {
		p.Spec.Containers[0].Resources.Requests = l.Requests
	}
	out.Pod = p
	l.addClaims(out)
	return out
}

// pick returns the nodes of a selection.
func (r *Run) pick(s Selection) (list []*sim.Node) {
	for _, n := range r.World.Nodes() {
		if matches(n.Record.Labels, s.Labels) && (s.Count == 0 || len(list) < s.Count) {
			list = append(list, n)
		}
	}
	return list
}

// happen carries out an event.
func (r *Run) happen(e Event) {
	each := func(s *Selection, do func(*sim.Node)) {
		if s != nil {
			for _, n := range r.pick(*s) {
				do(n)
			}
		}
	}
	each(e.FailNodes, r.World.Fail)
	each(e.DrainNodes, r.World.Drain)
	each(e.RemoveNodes, r.World.Remove)
	if t := e.TaintNodes; t != nil {
		each(&t.Nodes, func(n *sim.Node) {
			r.World.Taint(n, t.Taint)
			if t.For > 0 {
				r.World.After(t.For, func() { r.World.Untaint(n, t.Taint.Key) })
			}
		})
	}
	if a := e.AddNodes; a != nil {
		for _, g := range r.file.Nodes {
			if g.Name == a.Group {
				r.addNodes(g, a.Count)
			}
		}
	}
	if s := e.Scale; s != nil {
		for _, l := range r.loads {
			if l.Name != s.Workload {
				continue
			}
			for _, u := range l.Units() {
				u.Scale(s.Size)
			}
		}
	}
	r.stop(e.FreezeWatch, func(i int, long time.Duration) {
		if e.FreezeWatch.Relist {
			r.World.Relist(i, r.World.Now()+long)
			return
		}
		r.World.Freeze(i, r.World.Now()+long)
	})
	r.stop(e.Kill, r.World.Kill)
	if o := e.FailCalls; o != nil {
		r.World.FailCalls(r.World.Now() + o.For)
	}
}

// stop stops the schedulers that an event names.
func (r *Run) stop(z *Freeze, how func(scheduler int, long time.Duration)) {
	if z == nil {
		return
	}
	for i, t := range r.World.Tallies() {
		if z.Scheduler == "" || t.Name == z.Scheduler || strings.HasPrefix(t.Name, z.Scheduler+"-") {
			how(i, z.For)
		}
	}
}
