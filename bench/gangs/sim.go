// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// AttemptCost is the virtual time of an attempt for one pod: that of a scheduler of some 200 pods per second. An
// attempt for a whole gang takes as much for each evaluated placement.
const AttemptCost = 5 * time.Millisecond

// Named is a way to schedule gangs with its name in tables.
type Named struct {
	Name  string
	Style *Style // nil: the engine, which places a gang in one decision
	// NoHold: the engine holds no capacity for a blocked gang.
	NoHold bool
	// Stated: pods state how long they run.
	Stated bool
	// List makes a scheduler of the literature; nil for the others.
	List func() *listScheduler
}

// Styles are all ways that are compared.
func Styles() []Named {
	co, pfnet, improved := Coscheduling(), Pfnet(), ImprovedCoscheduling()
	return []Named{{Name: "coscheduling", Style: &co}, {Name: "pfnet", Style: &pfnet}, {Name: "improvedCoscheduling", Style: &improved},
		{Name: "transaction, nothing held", NoHold: true}, {Name: "transaction (kumiki)"},
		{Name: "transaction, ends stated", Stated: true},
		{Name: "EASY backfill", Stated: true, List: func() *listScheduler { return newListScheduler(false) }},
		{Name: "conservative backfill", Stated: true, List: func() *listScheduler { return newListScheduler(true) }}}
}

// subject is a scheduler that a simulation runs: the engine, or a model of another scheduler.
type subject = sim.Stepper

// simulation is a run of a scheduler on virtual time (package sim), with an ideal API server: binds take no time.
type simulation struct {
	sim.NoObserver
	s      Scenario
	stated bool // pods state how long they run
	w      *sim.World
	tally  *Tally
}

// batch is a batch of a scenario with its pods that are not gone.
type batch struct {
	m     *simulation
	index int
	pods  []*sim.Pod
}

// Simulate runs a scenario under a style.
func Simulate(s Scenario, style Named) Result {
	m := &simulation{s: s, stated: style.Stated, tally: NewTally(s, style.Name)}
	m.w = sim.New(sim.Setup{
		Ideal: true, Observer: m, Model: sim.Model{Decision: AttemptCost},
		Schedulers: []sim.Scheduler{{Name: style.Name, Make: func() sim.Stepper { return style.start() }}},
	})
	return m.run()
}

// start makes the scheduler, which knows no nodes and no pods.
func (n Named) start() subject {
	switch {
	case n.Style != nil:
		return newScheduler(*n.Style)
	case n.List != nil:
		return n.List()
	}
	var hold *engine.Hold // the default
	if n.NoHold {
		hold = &engine.Hold{}
	}
	return engine.New(engine.Config{
		Seed: seed, Profiles: []engine.Profile{engine.DefaultProfile(v1.DefaultSchedulerName)}, Less: basic.PrioritySort{}, Hold: hold,
		InitialBackoff: initialBackoff, MaxBackoff: maxBackoff, UnschedulableTimeout: unschedulableTimeout,
	})
}

// run plays the scenario to its end.
func (m *simulation) run() Result {
	s := m.s
	for i := range s.Nodes {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
		n.Status.Allocatable = v1.ResourceList{
			v1.ResourceCPU: *apiresource.NewQuantity(int64(s.Cores), apiresource.DecimalSI), v1.ResourcePods: apiresource.MustParse("110")}
		m.w.AddNode(n)
	}
	m.w.Start()
	for i, b := range s.Batches {
		one := &batch{m: m, index: i}
		m.w.At(b.At, one.create)
		if b.Dies > 0 {
			m.w.At(b.Dies, one.end)
		}
	}
	if s.Probe > 0 {
		m.w.At(s.Probe, m.probe)
	}
	m.w.Run(sim.Limits{Until: s.Until, Done: m.tally.Done})
	return m.tally.Result(m.w.Tallies()[0].Attempts)
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// Passing counts the pods that have a node in the scheduler and wait for others.
func (m *simulation) Passing(w *sim.World, _ time.Duration) { m.tally.Holding(w.Binding()) }

// Advanced follows the time.
func (m *simulation) Advanced(w *sim.World) { m.tally.At(w.Now()) }

// template returns a pod that requests cpu and, if that is known, states how long it runs.
func (m *simulation) template(cpu string, lasts time.Duration) *sim.Template {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault}}
	if lasts > 0 {
		p.Annotations = map[string]string{convert.DurationAnnotation: lasts.String()}
	}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}
	return m.w.Template(p)
}

// lasts returns for how long pods of a batch state that they run, 0 for not stated.
func (m *simulation) lasts(b Batch) time.Duration {
	switch {
	case !m.stated:
		return 0
	case b.Dies > 0:
		return b.Dies - b.At
	}
	return b.Run
}

// create creates the pods of a batch.
func (b *batch) create() {
	m, from := b.m, b.m.s.Batches[b.index]
	t := m.template("1", m.lasts(from))
	for k := range from.Pods {
		n := sim.NewPod{Name: podName(from, k), Owner: b}
		if from.Gang != "" {
			n.Gang = &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation,
				Namespace: v1.NamespaceDefault, Name: from.Gang}, Size: from.Size}
		}
		if from.Running {
			n.Node = nodeName(0)
		}
		b.pods = append(b.pods, m.w.Create(t, n))
		m.tally.Came(b.index)
	}
}

// end deletes the pods of a batch.
func (b *batch) end() {
	for _, p := range b.pods {
		if p.BoundAt >= 0 {
			b.m.tally.Ended(b.index)
		}
		b.m.w.Delete(p, sim.Deleted)
	}
	b.pods = nil
}

// Binds follows a pod that has a node. The batch runs for its time from when all of them have one.
func (b *batch) Binds(p *sim.Pod) {
	if run := b.m.s.Batches[b.index].Run; b.m.tally.Bound(b.index) && run > 0 && p.By >= 0 {
		b.m.w.After(run, b.end)
	}
}

// Runs does nothing.
func (b *batch) Runs(*sim.Pod) {}

// Leaves does nothing.
func (b *batch) Leaves(*sim.Pod, sim.End) {}

// Ended does nothing.
func (b *batch) Ended(*sim.Pod, sim.End) {}

// probe creates a pod without requests, and deletes it after a second.
func (m *simulation) probe() {
	p := m.w.Create(m.template("0", 0), sim.NewPod{Name: fmt.Sprintf("probe-%d", m.w.Now()/time.Second)})
	m.w.After(time.Second, func() { m.w.Delete(p, sim.Deleted) })
	m.w.After(m.s.Probe, m.probe)
}
