// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Template is what pods have in common that were created alike.
type Template struct {
	record cluster.Pod
	need   Vector
	labels labels.Set
	grace  time.Duration
	shape  *shape // of the measurement; nil until the first pod
	// ephemeral are the generic ephemeral volumes, for each of which every pod gets a claim of its own.
	ephemeral []v1.Volume
}

// defaultGrace is the grace period of pods that state none.
const defaultGrace = 30 * time.Second

// Template converts a pod object. Its name and UID are those of no pod.
func (w *World) Template(p *v1.Pod) *Template {
	t := &Template{record: *w.intake.Pod(p), labels: labels.Set(p.Labels), grace: defaultGrace,
		ephemeral: ephemeral(p)}
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
		t.grace = time.Duration(*g) * time.Second
	}
	t.need = w.vector(&t.record.Spec.Held, 1)
	return t
}

// TemplateOf makes a template of a record that was made before, as those of a capture.
func (w *World) TemplateOf(p *cluster.Pod) *Template {
	t := &Template{record: *p, labels: labels.Set(p.Spec.Labels), grace: defaultGrace}
	t.need = w.vector(&p.Spec.Held, 1)
	return t
}

// Priority returns the priority of the pods.
func (t *Template) Priority() int32 { return t.record.Spec.Priority }

// Need returns what each pod requests.
func (t *Template) Need() Vector { return t.need }

// Pod is a pod of a World.
type Pod struct {
	Template *Template
	// Record is its newest version in the API server.
	Record *cluster.Pod
	Number uint64 // in the order of creation
	// Work is how long it runs before it ends by itself; 0 for without end. Fails reports whether it fails then.
	Work  time.Duration
	Fails bool
	Owner Owner
	// Created, BoundAt and Started are times; the latter two are -1 until then.
	Created, BoundAt, Started time.Duration
	// By is the scheduler that bound it, -1 for none.
	By int

	node     *Node // nil if the API server has none of the name
	binds    uint64
	admitted bool
	gone     bool
	ending   End // of a terminating pod
}

// Owner is what created a pod, and follows it.
type Owner interface {
	// Binds is called when the pod has a node.
	Binds(*Pod)
	// Runs is called when the pod runs.
	Runs(*Pod)
	// Leaves is called once, when the pod terminates or has ended.
	Leaves(*Pod, End)
	// Ended is called when the pod is gone.
	Ended(*Pod, End)
}

// noOwner follows nothing.
type noOwner struct{}

func (noOwner) Binds(*Pod)       {}
func (noOwner) Runs(*Pod)        {}
func (noOwner) Leaves(*Pod, End) {}
func (noOwner) Ended(*Pod, End)  {}

// NewPod is what a pod has of its own.
type NewPod struct {
	Name  string
	UID   cluster.UID // unique in the World; empty for the name
	Gang  *cluster.GangMark
	Work  time.Duration
	Fails bool
	Owner Owner  // nil for none
	Node  string // for a pod that is bound from its beginning
}

// Create creates a pod.
func (w *World) Create(t *Template, n NewPod) *Pod {
	rec := t.record
	rec.Name, rec.UID = n.Name, cmp.Or(n.UID, cluster.UID(n.Name))
	if rec.Namespace == "" {
		rec.Namespace = v1.NamespaceDefault
	}
	if rec.Created == 0 {
		rec.Created = w.record(w.now)
	}
	rec.NodeName = n.Node
	if n.Gang != nil {
		rec.Gang = n.Gang
	}
	w.created++
	p := &Pod{Template: t, Record: &rec, Number: w.created, Work: n.Work, Fails: n.Fails, Owner: n.Owner,
		Created: w.now,
		BoundAt: -1, Started: -1, By: -1}
	if p.Owner == nil {
		p.Owner = noOwner{}
	}
	if w.pods[rec.UID] != nil {
		panic(fmt.Sprintf("sim: two pods of the UID %s", rec.UID))
	}
	w.pods[rec.UID] = p
	w.pending++
	w.changed = w.now
	w.setup.Observer.Created(w, p)
	if len(t.ephemeral) > 0 {
		w.After(w.setup.Model.Controller, func() { w.createClaims(p) })
	}
	if n.Node == "" {
		w.announce(p)
		return p
	}
	w.put(p, n.Node)
	w.showBind(p)
	return p
}

// announce shows a new pod to the schedulers. Where the delay of the first sight was measured, nothing else waits for
// it: most of it is the API server's handling of the request.
func (w *World) announce(p *Pod) {
	m := &w.setup.Model
	if m.Sight.IsZero() || !w.started || w.setup.Ideal {
		w.publishPod(p)
		return
	}
	w.After(m.Sight.draw(mix(w.setup.Seed, streamSight, draws(&m.Sight, w.now, p.Number), 0)), func() {
		if !p.gone {
			w.publishPodAfter(Always(0), p)
		}
	})
}

// publishPod shows the newest version of a pod to the schedulers.
func (w *World) publishPod(p *Pod) { w.publishPodAfter(w.setup.Model.Watch, p) }

// publishPodAfter is publishPod with another delay than that of the watch.
func (w *World) publishPodAfter(delay Durations, p *Pod) {
	if !w.setup.Ideal {
		p.Record.ResourceVersion = w.nextVersion()
	}
	ev := engine.PodSet{Pod: p.Record}
	for _, s := range w.schedulers {
		if s.wants(p.Record) {
			s.seeAfter(delay, ev)
		}
	}
}

// change replaces a pod's record by a changed copy, which is not published yet.
func (p *Pod) change(with func(*cluster.Pod)) {
	next := *p.Record
	with(&next)
	p.Record = &next
}

// bind is a bind with its preconditions. It is shown by showBind.
func (w *World) bind(b engine.Bind, by *scheduler) engine.BindDone {
	p := w.pods[cluster.UID(b.Pod.UID)]
	out := engine.BindDone{Pod: b.Pod, Node: b.Node}
	switch {
	case p == nil:
		by.tally.Vanished++
		out.Outcome, out.Message = engine.PodVanished, "pods \""+b.Pod.Name+"\" not found"
	case p.Record.NodeName != "":
		by.tally.Conflicts++
		out.Outcome, out.Node = engine.BoundElsewhere, p.Record.NodeName
		out.Message = "pod is already assigned to node " + p.Record.NodeName
	default:
		p.By = by.index
		by.tally.Binds++
		if g := b.Gang; g != nil {
			p.change(func(c *cluster.Pod) { c.Bound = &cluster.BoundMark{Decision: g.Decision, Quorum: g.Quorum} })
		}
		if w.put(p, b.Node) {
			by.tally.Overcommits++
		}
	}
	return out
}

// put gives a pod a node, and reports whether the node has no capacity for it.
func (w *World) put(p *Pod, node string) (overcommits bool) {
	if p.BoundAt >= 0 {
		panic(fmt.Sprintf("sim: pod %s is bound a second time", p.Record.Name))
	}
	p.change(func(c *cluster.Pod) {
		c.NodeName, c.Nominated, c.Condition = node, "", cluster.Condition{}
		if w.setup.Ideal && c.Start == 0 {
			c.Start = w.record(w.now) // there is no kubelet
		}
	})
	p.BoundAt = w.now
	w.pending--
	w.changed = w.now
	if p.node = w.nodes[node]; p.node == nil {
		return false
	}
	overcommits = !p.node.Capacity.fits(p.node.Used, p.Template.need)
	p.node.Used.add(p.Template.need, 1)
	p.node.pods = append(p.node.pods, p)
	return overcommits
}

// showBind publishes a bind, and lets the kubelet see it.
func (w *World) showBind(p *Pod) {
	w.publishPod(p)
	p.Owner.Binds(p)
	w.setup.Observer.Bound(w, p)
	if w.setup.Ideal {
		w.run(p)
		return
	}
	w.After(w.setup.Model.Kubelet.draw(mix(w.setup.Seed, streamKubelet, p.Number, 0)), func() { w.admit(p) })
}

// admit is the kubelet's admission of a pod.
func (w *World) admit(p *Pod) {
	switch n := p.node; {
	case p.gone || p.Record.Terminating:
	case n == nil || n.gone:
		w.After(w.setup.Model.Controller, func() { w.remove(p, Lost) }) // the garbage collector
	case n.failed:
	case !n.Capacity.fits(n.admitted, p.Template.need):
		if p.By >= 0 {
			w.schedulers[p.By].tally.Turned++
		}
		w.remove(p, Rejected)
	default:
		n.admitted.add(p.Template.need, 1)
		p.admitted = true
		if p.Record.Start != 0 { // it was captured while it ran
			w.run(p)
			return
		}
		p.change(func(c *cluster.Pod) { c.Start = w.record(w.now) })
		w.publishPod(p)
		w.After(w.setup.Model.Start.draw(mix(w.setup.Seed, streamKubelet, p.Number, 1)), func() { w.run(p) })
	}
}

// run starts a pod.
func (w *World) run(p *Pod) {
	if p.gone || p.Record.Terminating || p.node != nil && p.node.failed {
		return
	}
	p.Started = w.now
	w.changed = w.now
	w.setup.Observer.Running(w, p)
	w.healthChanged(p)
	p.Owner.Runs(p)
	if p.Work > 0 {
		w.After(p.Work, func() { w.Finish(p) })
	}
}

// Finish ends the work of a running pod.
func (w *World) Finish(p *Pod) {
	if p.gone || p.node == nil || p.node.failed || p.node.gone {
		return
	}
	how := Succeeded
	if p.Fails {
		how = Failed
	}
	w.remove(p, how)
}

// Vanish ends a pod at once, as one whose end was recorded.
func (w *World) Vanish(p *Pod, how End) { w.remove(p, how) }

// Delete requests the deletion of a pod, with its grace period.
func (w *World) Delete(p *Pod, why End) {
	if p.gone || p.Record.Terminating {
		return
	}
	if p.Record.NodeName == "" || w.setup.Ideal {
		w.remove(p, why)
		return
	}
	p.ending = why
	p.change(func(c *cluster.Pod) {
		c.Terminating, c.Preempted = true, why == Evicted
		c.DeletedAt = w.record(w.now)
		c.GoneBy = w.record(w.now + p.Template.grace)
	})
	w.publishPod(p)
	w.healthChanged(p)
	p.Owner.Leaves(p, why)
	stop := w.setup.Model.Stop.draw(mix(w.setup.Seed, streamStop, p.Number, 0))
	w.After(min(stop, p.Template.grace), func() {
		if p.node == nil || !p.node.failed {
			w.remove(p, why)
		}
	})
}

// remove ends a pod.
func (w *World) remove(p *Pod, how End) {
	if p.gone {
		return
	}
	p.gone = true
	w.changed = w.now
	delete(w.pods, p.Record.UID)
	if p.Record.NodeName == "" {
		w.pending--
	}
	if n := p.node; n != nil {
		n.Used.add(p.Template.need, -1)
		if p.admitted {
			n.admitted.add(p.Template.need, -1)
		}
		n.drop(p)
	}
	ev := engine.PodGone{Pod: p.Record.Ref()}
	for _, s := range w.schedulers {
		s.see(ev)
	}
	w.setup.Observer.Ended(w, p, how)
	if len(p.Template.ephemeral) > 0 {
		w.After(w.setup.Model.Controller, func() { w.deleteClaims(p) })
	}
	w.healthChanged(p)
	if !p.Record.Terminating {
		p.Owner.Leaves(p, how)
	}
	p.Owner.Ended(p, how)
}

// patch writes the status of a pod that is not bound.
func (w *World) patch(f engine.Effect) {
	var ref record.PodRef
	var with func(*cluster.Pod)
	switch f := f.(type) {
	case engine.Nominate:
		ref, with = f.Pod, func(c *cluster.Pod) { c.Nominated = f.Node }
	case engine.Condition:
		ref, with = f.Pod, func(c *cluster.Pod) {
			c.Condition = cluster.Condition{Reason: f.Reason, Message: f.Message, Generation: f.Generation}
			if f.Reason != v1.PodReasonUnschedulable {
				c.UnschedulableSince = 0
			} else if c.UnschedulableSince == 0 {
				c.UnschedulableSince = w.record(w.now)
			}
			if f.ClearNomination {
				c.Nominated = ""
			}
			if f.Nominate != "" {
				c.Nominated = f.Nominate
			}
		}
	}
	p := w.pods[cluster.UID(ref.UID)]
	if p == nil || p.Record.NodeName != "" {
		return
	}
	p.change(with)
	w.publishPod(p)
}
