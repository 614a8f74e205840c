// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// What the API server told of a pod that is not bound, as upstream labels it.
var (
	pendingSet   = plugin.Event{Resource: plugin.UnscheduledPod, Action: plugin.Add}
	pendingReset = plugin.Event{Resource: plugin.UnscheduledPod, Action: plugin.Update}
	pendingGone  = plugin.Event{Resource: plugin.UnscheduledPod, Action: plugin.Delete}
)

// queued tells whether the pod of an event waits.
func (t *tally) queued(ev engine.Event) bool {
	uid := ""
	switch ev := ev.(type) {
	case engine.PodSet:
		uid = string(ev.Pod.UID)
	case engine.PodGone:
		uid = ev.Pod.UID
	default:
		return false
	}
	p := t.pods[uid]
	return p != nil && p.queued
}

// handled counts how long it took to take in what a watch brought, under all that the engine made of it.
func (t *tally) handled(ev engine.Event, took time.Duration, queuedBefore bool) {
	switch ev := ev.(type) {
	case engine.NodeSet, engine.NodeGone, engine.ObjectSet, engine.ObjectGone:
	case engine.PodSet:
		switch {
		case ev.Pod.NodeName != "":
		case queuedBefore:
			t.handledAs(pendingReset, took)
		case t.queued(ev):
			t.handledAs(pendingSet, took)
		}
	case engine.PodGone:
		if queuedBefore {
			t.handledAs(pendingGone, took)
		}
	default:
		return
	}
	for _, as := range t.meter.stepEvents() {
		if as != pendingReset {
			t.handledAs(as, took)
		}
	}
}

func (t *tally) handledAs(as plugin.Event, took time.Duration) {
	to := t.handling[as]
	if to == nil {
		to = t.m.eventHandling.WithLabelValues(as.String())
		t.handling[as] = to
	}
	to.Observe(took.Seconds())
}

// overseer is an engine that can tell which nodes are oversold.
type overseer interface{ Oversold(visit func(node string)) }

// lookEvery is how often things are looked at that take a look at everything.
const lookEvery = time.Second

// slowly reports what need not be known each turn.
func (t *tally) slowly(e Stepper) {
	now := time.Now()
	if now.Sub(t.looked) < lookEvery {
		return
	}
	t.looked = now
	t.meter.forget()
	clear(t.handling)
	t.heard.tell(t.m)
	if o, can := e.(overseer); can {
		t.oversee(o)
	}
	if g, can := e.(census); can {
		t.gangs(g.GangCensus(), record.Time(now.UnixNano()))
	}
}

// census is an engine that can count gangs.
type census interface{ GangCensus() engine.GangCensus }

// heldResult: the gang got its places -> as the end of a hold is labelled.
var heldResult = map[bool]string{true: "placed", false: "given_up"}

func seconds(t record.Time) float64 { return float64(t) / float64(record.Second) }

func (t *tally) gangs(c engine.GangCensus, now record.Time) {
	longest := record.Time(0)
	if c.Part > 0 {
		longest = max(0, now-c.Since)
	}
	t.m.gangsPartNow.Set(float64(c.Part))
	t.m.gangsPartLongest.Set(seconds(longest))
	t.m.gangHeldPods.Set(float64(c.Held))
	for w, count := range c.Waiting {
		t.m.gangsWaiting.WithLabelValues(engine.GangWait(w).String()).Set(float64(count))
	}
}

func (t *tally) oversee(o overseer) {
	t.round++
	count := 0
	o.Oversold(func(node string) {
		count++
		if _, known := t.oversold[node]; !known {
			t.m.oversells.Inc()
		}
		t.oversold[node] = t.round
	})
	for node, round := range t.oversold { // order: each is judged for itself
		if round != t.round {
			delete(t.oversold, node)
		}
	}
	t.m.oversold.Set(float64(count))
}
