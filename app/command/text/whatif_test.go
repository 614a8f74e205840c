// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"testing"

	"github.com/kumiki-scheduler/kumiki/record"
)

func victim(name string, priority int32) record.Victim {
	return record.Victim{Pod: pod(name), Priority: priority}
}

// cheapest is the choice of a node among some.
func cheapest() *record.Preemption {
	shielded := victim("cache-1", 5)
	shielded.Shielded = true
	return &record.Preemption{
		Node: "node-3", Victims: []record.Victim{shielded, victim("batch-7", 1)}, Violations: 1, Nodes: 40, Tried: 3,
		Loss: &record.UnitsLoss{Violations: 1, Highest: 5, Units: 2, Pods: 2}, Wasted: 1,
		Others: []record.VictimNode{
			{Node: "node-8", Victims: 1, Violations: 1, Highest: 7, Why: "a victim has priority 7, not at most 5"},
			{Node: "node-1", Victims: 2, Violations: 2, Highest: 1,
				Why: "disruption budgets protect 2 of its victims, not 1"},
		},
	}
}

// together is the choice of units.
func together() *record.Preemption {
	return &record.Preemption{
		Node: "node-1", Victims: []record.Victim{victim("low-0", 1), victim("low-1", 1), victim("lone", 2)},
		Places: []record.Nomination{{Pod: pod("train-0"), Node: "node-1"}, {Pod: pod("train-1"), Node: "node-1"},
			{Pod: pod("train-2"), Node: "node-2"}},
		Loss: &record.UnitsLoss{Highest: 2, Units: 2, Pods: 3}, Unproved: 1,
		Units: []record.VictimUnit{{Name: "shop/low", Gang: true, Priority: 1, Pods: 2},
			{Name: "shop/lone", Priority: 2, Pods: 1}},
		Considered: []record.VictimUnit{{Name: "shop/other", Gang: true, Priority: 1, Pods: 4,
			Why: "spared: it fits beside it"},
			{Name: "shop/agent", Priority: 0, Pods: 1, Why: "it belongs to its node"}},
		Awaited: []record.PodRef{pod("old-1")},
	}
}

func drained() record.WhatIf {
	ref := pod("big")
	return record.WhatIf{
		At: now, Pod: &ref,
		If: []record.Supposed{
			{If: "drain node/node-1", Does: "5 pods leave, 2 belong to the node (DaemonSet, static); the node " +
				"takes no pods", Leave: 5, Stay: 2},
			{If: "add-nodes 3 like node/node-2", Does: "node-2-if-1, node-2-if-2, node-2-if-3", Added: 3},
		},
		Now: record.Prospect{Outcome: record.FitsNot, Fit: tooBig().Fit,
			Preemption: &record.Preemption{Message: "preemption: not eligible due to preemptionPolicy=Never."}},
		Then: record.Prospect{Outcome: record.Fits, Node: "node-2-if-1", Fit: &record.Fit{Nodes: 103, Feasible: 3}},
		Moved: &record.Moved{Pods: 5, Lost: 1, Tried: 4, Fit: 3,
			Blocked: []record.BlockedPod{{Pod: pod("db-0"),
				Message: "0/103 nodes are available: 103 Insufficient memory."}}},
	}
}

// TestQuestions holds the pages of questions and of evictions.
func TestQuestions(t *testing.T) {
	ref := pod("big")
	still := record.WhatIf{At: now, Pod: &ref,
		If:  []record.Supposed{{If: "cordon node/node-3", Does: "the node takes no pods"}},
		Now: record.Prospect{Outcome: record.FitsEvict, Node: "node-3", Fit: tooBig().Fit, Preemption: cheapest()},
		Then: record.Prospect{Outcome: record.FitsNot, Fit: tooBig().Fit,
			Preemption: &record.Preemption{
				Message: "preemption: 0/100 nodes are available: 100 No preemption victims found for incoming pod."}},
		Notes: []string{"the added nodes have no devices of drivers: those of node-2 are not copied"}}
	evicts := drained()
	evicts.Then, evicts.Moved = record.Prospect{Outcome: record.FitsEvict, Node: "node-3",
		Fit: &record.Fit{Nodes: 103}, Preemption: cheapest()}, nil
	gang := record.WhatIf{At: now, Gang: "shop/train",
		If: []record.Supposed{{If: "delete gang/shop/low", Does: "2 pods leave 1 node"}},
		Now: record.Prospect{Outcome: record.FitsNot, Gang: &record.GangFit{Verdict: "does not fit now", Placed: 1,
			Needed: 3, Blocked: "train-1", Message: "0/2 nodes are available: 2 Insufficient cpu."}},
		Then: record.Prospect{Outcome: record.Fits, Places: together().Places,
			Gang: &record.GangFit{Verdict: "placed", Placed: 3, Needed: 3}}}
	gangNot := gang
	gangNot.Then = gang.Now
	gangEvicts := gang
	gangEvicts.Then = record.Prospect{Outcome: record.FitsEvict, Places: together().Places, Gang: gang.Now.Gang,
		Preemption: together()}

	waiting := tooBig()
	waiting.Preemption = cheapest()
	never := tooBig()
	never.Preemption = &record.Preemption{Message: "preemption: not eligible due to preemptionPolicy=Never."}
	evicted := tooBig()
	evicted.Nominated = "node-3"
	evicted.Last = &record.Decision{Number: 12, At: now - 3*record.Second, Verdict: record.DoesNotFit,
		Message: "0/100 nodes are available: 100 Insufficient cpu.", Preemption: cheapest()}
	evicted.Preemption = &record.Preemption{
		Message: "preemption: not eligible due to a terminating pod on the nominated node."}
	// It was tried again since, and the page still shows which pods the decision before evicted.
	again := evicted
	again.Evicted, again.Last = evicted.Last,
		&record.Decision{Number: 15, At: now - record.Second, Verdict: record.DoesNotFit,
			Message: "0/100 nodes are available: 100 Insufficient cpu. " + evicted.Preemption.Message}
	landed := record.PodReport{At: now, Pod: pod("big"), Node: "node-3", Evicted: evicted.Last,
		Last: &record.Decision{Number: 16, At: now - record.Second, Verdict: record.Placed, Attempt: 3, Nodes: 100,
			Feasible: 1, Winner: &record.Candidate{Node: "node-3"}}}
	crowd := tooBig()
	crowd.Preemption = &record.Preemption{Node: "node-3", Loss: &record.UnitsLoss{Highest: 1, Units: 30, Pods: 30},
		PausedUntil: now + 20*record.Second}
	for i := range 30 {
		crowd.Preemption.Victims = append(crowd.Preemption.Victims, victim(fmt.Sprintf("batch-%d", i), 1))
	}
	// Evictions would help, and are delayed.
	later := cheapest()
	later.DelayedUntil = now + 18*record.Second
	delayed := tooBig()
	delayed.Preemption = later
	const message = "preemption: no pod is evicted for it before it has waited for new nodes (preemption.after)."
	delayed.Last = &record.Decision{Number: 12, At: now - 12*record.Second, Verdict: record.DoesNotFit,
		Message:    "0/100 nodes are available: 100 Insufficient cpu. " + message,
		Preemption: &record.Preemption{Message: message, DelayedUntil: later.DelayedUntil}}
	ifDelayed := evicts
	ifDelayed.Then.Preemption = later
	ifDelayed.Now = ifDelayed.Then
	gangWaits := record.GangReport{At: now, Name: "shop/train", Source: "annotation", Quorum: 3, Stated: true,
		Waiting: 3, Priority: 5, Where: record.Unschedulable,
		Fit: gang.Now.Gang, Preemption: together()}
	// No pod is evicted for it, and its page shows the candidates, regardless of the last try's text.
	gangAlone := gangWaits
	gangAlone.Preemption = &record.Preemption{
		Message: "preemption: there is no room with all 1 units of lower priority gone either.",
		Considered: []record.VictimUnit{{Name: "shop/low", Gang: true, Pods: 2, Priority: 1,
			Why: "its going, and that of all others, would not be enough"}}}
	gangAlone.Last = &record.Decision{Number: 20, At: now - record.Second, Verdict: record.DoesNotFit,
		Message:    "gang shop/train does not fit now. " + gangAlone.Preemption.Message,
		Preemption: gangAlone.Preemption}

	for name, write := range map[string]func(io.Writer) error{
		"if-fits":         func(w io.Writer) error { return WhatIf(w, drained(), false) },
		"if-fits-not":     func(w io.Writer) error { return WhatIf(w, still, false) },
		"if-evicts":       func(w io.Writer) error { return WhatIf(w, evicts, false) },
		"if-gang":         func(w io.Writer) error { return WhatIf(w, gang, false) },
		"if-gang-wide":    func(w io.Writer) error { return WhatIf(w, gang, true) },
		"if-gang-not":     func(w io.Writer) error { return WhatIf(w, gangNot, false) },
		"if-gang-evicts":  func(w io.Writer) error { return WhatIf(w, gangEvicts, false) },
		"evicts":          func(w io.Writer) error { return Pod(w, waiting, false) },
		"evicts-delayed":  func(w io.Writer) error { return Pod(w, delayed, false) },
		"if-delayed":      func(w io.Writer) error { return WhatIf(w, ifDelayed, false) },
		"evicts-nobody":   func(w io.Writer) error { return Pod(w, never, false) },
		"evicted":         func(w io.Writer) error { return Pod(w, evicted, false) },
		"evicted-again":   func(w io.Writer) error { return Pod(w, again, false) },
		"evicted-landed":  func(w io.Writer) error { return Pod(w, landed, false) },
		"evicts-nothing":  func(w io.Writer) error { return Gang(w, gangAlone, false) },
		"evicts-crowd":    func(w io.Writer) error { return Pod(w, crowd, false) },
		"evicts-gang":     func(w io.Writer) error { return Gang(w, gangWaits, false) },
		"evicts-limited":  func(w io.Writer) error { return Pod(w, limited(waiting), false) },
		"gang-limited":    func(w io.Writer) error { return Gang(w, limitedGang(gangWaits), false) },
		"if-limited":      func(w io.Writer) error { return WhatIf(w, limitedIf(), false) },
		"decision-evicts": func(w io.Writer) error { return Decision(w, *evicted.Last) },
	} {
		t.Run(name, func(t *testing.T) { holds(t, name, write) })
	}
}

// limited is a report as a user of one namespace gets it: one victim is of another namespace.
func limited(r record.PodReport) record.PodReport {
	p := *r.Preemption
	p.Victims, p.Elsewhere = p.Victims[:1], &record.Elsewhere{Victims: 1}
	r.Preemption, r.Only = &p, "shop"
	return r
}

// limitedGang is a report in which all victims are of other namespaces, and capacity is reserved for a gang of another.
func limitedGang(r record.GangReport) record.GangReport {
	p := *r.Preemption
	p.Elsewhere = &record.Elsewhere{Victims: len(p.Victims), Units: len(p.Units), Considered: len(p.Considered),
		Awaited: len(p.Awaited)}
	p.Victims, p.Units, p.Considered, p.Awaited = nil, nil, nil, nil
	r.Preemption, r.Only = &p, "shop"
	r.HeldByOther = &record.GangHold{Gang: record.OtherNamespace, Pods: 2, Until: r.At + 30*record.Second}
	return r
}

// limitedIf is an answer in which no blocked pod is named.
func limitedIf() record.WhatIf {
	ref := pod("web")
	return record.WhatIf{At: now, Pod: &ref, If: []record.Supposed{{If: "drain node/n1", Does: "3 pods leave", Leave: 3}},
		Now: record.Prospect{Outcome: record.FitsNot}, Then: record.Prospect{Outcome: record.Fits, Node: "n2"},
		Moved: &record.Moved{Pods: 3, Tried: 3, Fit: 1, BlockedElsewhere: 2}, Only: "shop"}
}
