// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/blocked"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// holdTime is for how long capacity is held for gangs without a pause.
const holdTime = time.Duration(blocked.DefaultHoldFor)

// judge checks what must hold at any time of a run with one scheduler.
type judge struct {
	*Measure
	t     *rapid.T
	bound map[cluster.UID]bool // UID -> it was bound
	last  time.Duration
	// beside is since when a pod by itself waits and fits some node, without a break.
	beside map[cluster.UID]time.Duration // UID -> time
	// longest is how long it may.
	longest time.Duration
}

// Advanced checks that time does not go back, and that no pod waits too long beside capacity for it.
func (j *judge) Advanced(w *World) {
	if w.Now() < j.last {
		j.t.Fatalf("time went from %v to %v", j.last, w.Now())
	}
	j.last = w.Now()
	for uid, p := range w.pods { // order: each by itself
		n := freeNode(w, p)
		since, was := j.beside[uid]
		switch {
		case n == nil:
			delete(j.beside, uid)
		case !was:
			j.beside[uid] = w.Now()
		case w.Now()-since > j.longest:
			j.t.Fatalf("at %v, pod %s waits since %v beside capacity for it, now on node %s, used %v", w.Now(),
				p.Record.Name, since, n.Record.Name, n.Used)
		}
	}
}

// Bound checks that a pod is bound once, and that its node has the capacity.
func (j *judge) Bound(w *World, p *Pod) {
	j.Measure.Bound(w, p)
	if j.bound[p.Record.UID] {
		j.t.Fatalf("pod %s was bound twice", p.Record.Name)
	}
	j.bound[p.Record.UID] = true
	if n := p.node; n != nil {
		for i := range n.Used {
			if n.Used[i] > n.Capacity.at(i) {
				j.t.Fatalf("at %v, pod %s overcommits node %s: %v of %v", w.Now(), p.Record.Name, n.Record.Name, n.Used,
					n.Capacity)
			}
		}
	}
}

// TestRandomHistories runs random workloads on random clusters, with failures of binds and nodes, drains, frozen and
// lost watches, and kills of the scheduler at any moment, for one scheduler: no node is overcommitted at any time, a pod is bound once, time never goes back, the run
// ends by itself, and at its end no pod by itself waits that fits a node. During the run none waits so for longer than
// capacity may be held, whatever the number of blocked gangs.
func TestRandomHistories(t *testing.T) { rapid.Check(t, history) }

func history(t *rapid.T) {
	model := DefaultModel()
	model.Failed = float64(rapid.IntRange(0, 30).Draw(t, "failed %")) / 100
	model.Lost = float64(rapid.IntRange(0, 30).Draw(t, "lost %")) / 100
	model.InFlight = rapid.IntRange(0, 3).Draw(t, "in flight")
	model.Watch = Durations{Shape: Uniform, B: time.Duration(rapid.IntRange(0, 5000).Draw(t, "watch ms")) * time.Millisecond}
	m := NewMeasure(time.Minute)
	j := &judge{Measure: m, t: t, bound: map[cluster.UID]bool{}, beside: map[cluster.UID]time.Duration{},
		longest: holdTime + 2*time.Minute}
	model.Volume = Durations{Shape: Uniform, B: time.Duration(rapid.IntRange(0, 30).Draw(t, "volume s")) * time.Second}
	w := New(Setup{Seed: rapid.Uint64().Draw(t, "seed"), Schedulers: []Scheduler{kumiki("a")}, Model: model, Observer: j})
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		w.AddNode(node(fmt.Sprintf("n%d", i), "4"))
	}
	w.AddClass(StorageClass{Name: "disk", Topology: v1.LabelHostname})
	w.Start()
	var loads []*Workload
	for i := range rapid.IntRange(1, 4).Draw(t, "workloads") {
		l := &Workload{Name: fmt.Sprintf("w%d", i), Kind: rapid.SampledFrom([]Kind{Pods, ReplicaSet, StatefulSet, Job, Gang}).Draw(t, "kind"),
			Pod:   asking(fmt.Sprint(rapid.IntRange(1, 5).Draw(t, "cpu")), int32(rapid.IntRange(0, 2).Draw(t, "priority"))),
			Size:  rapid.IntRange(1, 4).Draw(t, "size"),
			Count: rapid.IntRange(1, 5).Draw(t, "count"), Retries: rapid.IntRange(0, 3).Draw(t, "retries"),
			Every:    Durations{Shape: Exponential, A: 30 * time.Second},
			FailRate: float64(rapid.IntRange(0, 50).Draw(t, "fail %")) / 100,
			Work:     Durations{Shape: Uniform, A: time.Minute, B: 10 * time.Minute},
		}
		if l.Kind == ReplicaSet || l.Kind == StatefulSet {
			l.Work = Durations{}
		}
		if rapid.IntRange(0, 3).Draw(t, "claims") == 0 {
			addClaims(l)
		}
		w.Load(l, i)
		loads = append(loads, l)
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "events") {
		at := time.Duration(rapid.IntRange(0, 900_000).Draw(t, "at ms")) * time.Millisecond
		what := rapid.SampledFrom([]string{"fail", "remove", "drain", "add", "freeze", "relist", "outage", "kill"}).
			Draw(t, "what")
		k := rapid.IntRange(0, 3).Draw(t, "node")
		if slices.Contains([]string{"freeze", "relist", "outage", "kill"}, what) {
			j.longest += time.Minute
		}
		w.At(at, func() { disturb(w, what, k, i) })
	}
	why := w.Run(Limits{Until: 1000 * time.Hour, WhenQuiet: true})
	if why != Finished && why != Stuck {
		t.Fatalf("the run ended at %v, because %s", w.Now(), why)
	}
	m.Result(w, loads, why)
	checkWaiting(t, w)
}

// addClaims gives each pod of a workload a claim.
func addClaims(l *Workload) {
	if l.Kind != StatefulSet {
		l.Pod.Spec.Volumes = claiming("1", "disk").Spec.Volumes
		return
	}
	l.Claims = []v1.PersistentVolumeClaim{{Spec: claimSpec("disk")}}
	l.Claims[0].Name = "data"
}

func disturb(w *World, what string, k, i int) {
	n := w.Node(fmt.Sprintf("n%d", k))
	switch {
	case what == "add":
		w.AddNode(node(fmt.Sprintf("later%d", i), "4"))
	case what == "freeze":
		w.Freeze(0, w.Now()+time.Minute)
	case what == "relist":
		w.Relist(0, w.Now()+time.Minute)
	case what == "kill":
		w.Kill(0, 15*time.Second)
	case what == "outage":
		w.FailCalls(w.Now() + time.Minute)
	case n == nil:
	case what == "fail":
		w.Fail(n)
	case what == "remove":
		w.Remove(n)
	case what == "drain":
		w.Drain(n)
	}
}

// checkWaiting checks that no pod by itself waits that would fit a node.
func checkWaiting(t *rapid.T, w *World) {
	for _, p := range w.pods { // order: each by itself
		if n := freeNode(w, p); n != nil {
			t.Fatalf("pod %s waits for %s and would fit node %s, used %v", p.Record.Name,
				fmt.Sprint(p.Template.record.Spec.Request.Get(v1.ResourceCPU)), n.Record.Name, n.Used)
		}
	}
}

// freeNode returns a node that a pod by itself fits that has none, nil if there is no such node.
func freeNode(w *World, p *Pod) *Node {
	if p.Record.NodeName != "" || p.Record.Gang != nil || p.Record.Terminating || len(p.Record.Spec.Volumes) > 0 {
		return nil
	}
	for _, n := range w.Nodes() {
		if !n.Record.Unschedulable && len(n.Record.Taints) == 0 && n.Capacity.fits(n.Used, p.Template.need) {
			return n
		}
	}
	return nil
}
