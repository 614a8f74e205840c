// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/sim/bound"
)

// Measure observes a run and computes its Result. It belongs to one World.
type Measure struct {
	NoObserver
	every time.Duration // between samples
	next  time.Duration // the next sample

	capacity, used Vector
	nodesUsed      int // nodes with at least one pod
	// dirty is set when capacity or demand has changed since fewest was computed.
	dirty, nodesDirty bool
	nodes             *bound.Nodes
	fewest            int
	fits              bool

	capacityTime, usedTime []float64 // amount times seconds
	nodeTime, fewestTime   float64   // nodes times seconds
	usedMax, fewestMax     int
	mostCapacity           Vector
	partialTime            float64 // pods times seconds

	created, bound int
	running        int
	ended          [7]int            // End -> pods
	waits          []time.Duration   // from the creation to the bind, of each bound pod
	bySched        [][]time.Duration // the same, by scheduler
	lost           []float64         // amount times seconds that pods ran without success
	makespan       bound.Makespan
	firstCreated   time.Duration
	lastSuccess    time.Duration

	shapes  []*shape
	byNeed  map[string]*shape // printed need -> shape
	samples []Sample
	frag    []float64 // sums over samples, by resource
	strand  []float64
}

// NewMeasure returns a measurement that takes a sample as often as every.
func NewMeasure(every time.Duration) *Measure {
	return &Measure{every: every, byNeed: map[string]*shape{}, nodesDirty: true, firstCreated: -1, lastSuccess: -1}
}

// Sample is the state at a time.
type Sample struct {
	Seconds   float64   `json:"seconds"`
	Nodes     int       `json:"nodes"`
	NodesUsed int       `json:"nodesUsed"`
	Fewest    int       `json:"nodesBound"` // bound B1 for what is bound now
	Pending   int       `json:"pending"`
	Running   int       `json:"running"`
	Used      []float64 `json:"used"`      // share of the capacity, by resource
	Fragments []float64 `json:"fragments"` // share of the capacity that the mix of shapes cannot use, by resource
	Conflicts []int     `json:"conflicts"` // so far, by scheduler
}

// Passing adds what holds until to.
func (m *Measure) Passing(w *World, to time.Duration) {
	for ; m.next <= to && m.every > 0; m.next += m.every {
		m.sample(w, m.next)
	}
	passed := (to - w.now).Seconds()
	if passed <= 0 {
		return
	}
	m.update(w)
	grow(&m.capacityTime, len(m.capacity))
	grow(&m.usedTime, len(m.used))
	for i, v := range m.capacity {
		m.capacityTime[i] += float64(float64(v) * passed)
	}
	for i, v := range m.used {
		m.usedTime[i] += float64(float64(v) * passed)
	}
	m.nodeTime += float64(float64(m.nodesUsed) * passed)
	m.fewestTime += float64(float64(m.fewest) * passed)
	m.partialTime += float64(float64(w.partial) * passed)
	m.usedMax, m.fewestMax = max(m.usedMax, m.nodesUsed), max(m.fewestMax, m.fewest)
}

// update computes the bound for what is bound now.
func (m *Measure) update(w *World) {
	if m.nodesDirty {
		m.recount(w)
		list := make([][]int64, len(w.order))
		for i, n := range w.order {
			list[i] = n.Capacity
		}
		m.nodes = bound.NewNodes(list)
	}
	if m.nodesDirty || m.dirty {
		m.fewest, m.fits = m.nodes.Fewest(m.used)
		if !m.fits { // an overcommitted cluster: the bound says nothing
			m.fewest = 0
		}
	}
	m.nodesDirty, m.dirty = false, false
}

func grow(list *[]float64, n int) {
	for len(*list) < n {
		*list = append(*list, 0)
	}
}

// NodesChanged has the nodes counted anew before time passes: once for all that change at one time.
func (m *Measure) NodesChanged(*World) { m.nodesDirty = true }

// recount counts what the nodes have.
func (m *Measure) recount(w *World) {
	m.capacity, m.used, m.nodesUsed = nil, nil, 0
	for _, n := range w.order {
		m.capacity.add(n.Capacity, 1)
		m.used.add(n.Used, 1)
		if len(n.pods) > 0 {
			m.nodesUsed++
		}
	}
	for len(m.mostCapacity) < len(m.capacity) {
		m.mostCapacity = append(m.mostCapacity, 0)
	}
	for i, v := range m.capacity {
		m.mostCapacity[i] = max(m.mostCapacity[i], v)
	}
}

// Created counts a pod.
func (m *Measure) Created(w *World, p *Pod) {
	m.created++
	if m.firstCreated < 0 {
		m.firstCreated = w.now
	}
	m.shapeOf(p.Template).pods++
}

// Bound counts a pod on its node.
func (m *Measure) Bound(w *World, p *Pod) {
	m.bound++
	if p.By >= 0 { // otherwise it was bound from its beginning
		wait := p.BoundAt - p.Created
		m.waits = append(m.waits, wait)
		for len(m.bySched) <= p.By {
			m.bySched = append(m.bySched, nil)
		}
		m.bySched[p.By] = append(m.bySched[p.By], wait)
	}
	if n := p.node; n != nil && !n.gone {
		m.dirty = true
		m.used.add(p.Template.need, 1)
		if len(n.pods) == 1 {
			m.nodesUsed++
		}
	}
}

// Running counts a pod that runs.
func (m *Measure) Running(*World, *Pod) { m.running++ }

// Ended counts a pod that is gone.
func (m *Measure) Ended(w *World, p *Pod, how End) {
	m.ended[how]++
	if n := p.node; n != nil && !n.gone {
		m.dirty = true
		m.used.add(p.Template.need, -1)
		if len(n.pods) == 0 {
			m.nodesUsed--
		}
	}
	if p.Started < 0 {
		return
	}
	m.running--
	ran := (w.now - p.Started).Seconds()
	if how == Succeeded {
		m.lastSuccess = w.now
		m.makespan.Add(bound.Job{Release: p.Created.Seconds(), Work: ran, Need: p.Template.need})
		return
	}
	if p.Work > 0 || how != Deleted {
		grow(&m.lost, len(p.Template.need))
		for i, v := range p.Template.need {
			m.lost[i] += float64(float64(v) * ran)
		}
	}
}

// sample records the state at a time.
func (m *Measure) sample(w *World, at time.Duration) {
	m.update(w)
	s := Sample{Seconds: at.Seconds(), Nodes: len(w.order), NodesUsed: m.nodesUsed, Fewest: m.fewest,
		Pending: w.pending,
		Running: m.running, Used: make([]float64, len(m.capacity))}
	for i, c := range m.capacity {
		if c > 0 {
			s.Used[i] = float64(m.used.at(i)) / float64(c)
		}
	}
	var stranded []float64
	s.Fragments, stranded = m.fragments(w)
	grow(&m.frag, len(s.Fragments))
	grow(&m.strand, len(stranded))
	for i := range s.Fragments {
		m.frag[i] += s.Fragments[i]
		m.strand[i] += stranded[i]
	}
	for _, sched := range w.schedulers {
		s.Conflicts = append(s.Conflicts, sched.tally.Conflicts+sched.tally.Overcommits)
	}
	m.samples = append(m.samples, s)
}
