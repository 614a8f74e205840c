// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
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
}

// Styles are all ways that are compared.
func Styles() []Named {
	co, pfnet, improved := Coscheduling(), Pfnet(), ImprovedCoscheduling()
	return []Named{{Name: "coscheduling", Style: &co}, {Name: "pfnet", Style: &pfnet}, {Name: "improvedCoscheduling", Style: &improved},
		{Name: "transaction, nothing held", NoHold: true}, {Name: "transaction (kumiki)"}}
}

// subject is a scheduler that a simulation runs: the engine, or a model of another scheduler.
type subject interface {
	Step(engine.Event) []engine.Effect
	// Ready reports whether a Cycle would try something.
	Ready() bool
	// Binding returns how many pods have a node and are not seen bound.
	Binding() int
}

// simulation is a run of a scheduler on virtual time. Binds take no time.
type simulation struct {
	s        Scenario
	subject  subject
	intake   *convert.Intake
	tally    *Tally
	now      time.Duration
	due      []event
	seq      int
	pods     map[string]*pod // UID -> pod
	wake     time.Duration   // as the scheduler asked
	attempts int
}

// event is an action of the workload.
type event struct {
	at  time.Duration
	seq int
	do  func()
}

type pod struct {
	batch int // -1 for a probe
	api   *cluster.Pod
	bound bool
}

// start is the engine's time at 0: it takes 0 for no time.
const start = 1000 * record.Second

// Simulate runs a scenario under a style.
func Simulate(s Scenario, style Named) Result {
	return newSimulation(s, style).run()
}

func newSimulation(s Scenario, style Named) *simulation {
	return &simulation{s: s, subject: style.start(), intake: convert.NewIntake(), tally: NewTally(s, style.Name), pods: map[string]*pod{}}
}

// start makes the scheduler, which knows no nodes and no pods.
func (n Named) start() subject {
	if n.Style != nil {
		return newScheduler(*n.Style)
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
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(int64(s.Cores), apiresource.DecimalSI), v1.ResourcePods: apiresource.MustParse("110")}
		m.step(engine.NodeSet{Node: m.intake.Node(n)})
	}
	m.step(engine.Synced{})
	m.step(engine.Tick{Now: start})
	for i, b := range s.Batches {
		m.at(b.At, func() { m.create(i) })
		if b.Dies > 0 {
			m.at(b.Dies, func() { m.end(i) })
		}
	}
	if s.Probe > 0 {
		m.at(s.Probe, m.probe)
	}
	for m.now < s.Until && !m.tally.Done() {
		m.turn()
	}
	return m.tally.Result(m.attempts)
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func (m *simulation) at(t time.Duration, do func()) {
	m.seq++
	e := event{t, m.seq, do}
	i, _ := slices.BinarySearchFunc(m.due, e, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	m.due = slices.Insert(m.due, i, e)
}

// turn executes due events, or lets the engine try a unit, or advances the time.
func (m *simulation) turn() {
	switch {
	case len(m.due) > 0 && m.due[0].at <= m.now:
		e := m.due[0]
		m.due = m.due[1:]
		e.do()
	case m.subject.Ready():
		m.step(engine.Cycle{})
	default:
		next := m.s.Until
		if len(m.due) > 0 {
			next = min(next, m.due[0].at)
		}
		if m.wake > m.now {
			next = min(next, m.wake)
		}
		m.pass(next)
	}
}

// pass advances the time.
func (m *simulation) pass(to time.Duration) {
	m.tally.Holding(m.holding())
	m.now = to
	m.tally.At(to)
	m.step(engine.Tick{Now: start + record.Time(to)})
}

// holding returns how many pods have a node in the engine and wait for others.
func (m *simulation) holding() int { return m.subject.Binding() }

func (m *simulation) step(ev engine.Event) {
	tried := 0
	var binds []engine.Bind
	for _, f := range m.subject.Step(ev) {
		switch f := f.(type) {
		case engine.Wake:
			m.wake = time.Duration(f.At - start)
		case engine.Bind:
			binds = append(binds, f)
		case engine.Decided:
			tried = max(tried+1, triedIn(f.Decision))
		}
	}
	for _, b := range binds {
		m.bind(b)
	}
	if _, is := ev.(engine.Cycle); is {
		m.attempts += tried
		m.pass(m.now + time.Duration(max(tried, 1))*AttemptCost)
	}
}

func triedIn(d record.Decision) int {
	if d.Gang == nil {
		return 0
	}
	return d.Gang.Tried
}

func (m *simulation) bind(b engine.Bind) {
	p := m.pods[b.Pod.UID]
	bound := *p.api
	bound.NodeName = b.Node
	p.api, p.bound = &bound, true
	m.step(engine.BindDone{Pod: b.Pod, Node: b.Node})
	m.step(engine.PodSet{Pod: &bound})
	if p.batch < 0 {
		return
	}
	if i := p.batch; m.tally.Bound(i) && m.s.Batches[i].Run > 0 {
		m.at(m.now+m.s.Batches[i].Run, func() { m.end(i) })
	}
}

func (m *simulation) create(i int) {
	b := m.s.Batches[i]
	for k := range b.Pods {
		m.add(podName(b, k), i, "1", b)
		m.tally.Came(i)
	}
}

func (m *simulation) add(name string, batch int, cpu string, b Batch) *pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(0, int64(start)+int64(m.now)))}}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}
	compact := m.intake.Pod(p)
	if b.Gang != "" {
		compact.Gang = &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default", Name: b.Gang}, Size: b.Size}
	}
	one := &pod{batch: batch, api: compact}
	m.pods[name] = one
	if b.Running {
		compact.NodeName, one.bound = nodeName(0), true
		m.tally.Bound(batch)
	}
	m.step(engine.PodSet{Pod: compact})
	return one
}

// end deletes the pods of a batch.
func (m *simulation) end(i int) {
	b := m.s.Batches[i]
	for k := range b.Pods {
		name := podName(b, k)
		p := m.pods[name]
		if p == nil {
			continue
		}
		delete(m.pods, name)
		if p.bound {
			m.tally.Ended(i)
		}
		m.step(engine.PodGone{Pod: p.api.Ref()})
	}
}

// probe creates a pod without requests, and deletes it after a second.
func (m *simulation) probe() {
	name := fmt.Sprintf("probe-%d", m.now/time.Second)
	p := m.add(name, -1, "0", Batch{})
	m.at(m.now+time.Second, func() {
		delete(m.pods, name)
		m.step(engine.PodGone{Pod: p.api.Ref()})
	})
	m.at(m.now+m.s.Probe, m.probe)
}
