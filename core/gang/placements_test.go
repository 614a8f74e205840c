// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// proposed are Placements with answers of a test, which notes the calls.
type proposed struct {
	answer plugin.Candidates
	totals []int64 // by candidate
	err    error   // of Totals
	calls  []string
	pods   func() int // in the store
}

func (p *proposed) Generate(_ cluster.Snapshot, members []*cluster.Pod) plugin.Candidates {
	p.calls = append(p.calls, fmt.Sprintf("generate %d", len(members)))
	if p.answer.List != nil {
		p.answer.Search = p
	}
	return p.answer
}

func (p *proposed) Enter(i int) {
	p.calls = append(p.calls, fmt.Sprintf("enter %d", i))
	if n := p.pods(); n > 0 {
		p.calls = append(p.calls, fmt.Sprintf("with %d pods in place", n))
	}
}

func (p *proposed) Totals(_ cluster.Snapshot, tries []plugin.CandidatePlacement) ([]int64, error) {
	var out []int64
	call := "totals"
	for _, try := range tries {
		call += fmt.Sprintf(" %d:%v", try.Candidate, try.Nodes)
		out = append(out, p.totals[try.Candidate])
	}
	p.calls = append(p.calls, call)
	return out, p.err
}

func (p *proposed) Leave(kept int) { p.calls = append(p.calls, fmt.Sprintf("leave %d", kept)) }

// racks is a world with three racks of two nodes: nodes 0 and 1 have four cores, 2 and 3 two, 4 and 5 eight.
func racks(t tester) (*world, *proposed) {
	w := newWorld(t)
	p := &proposed{totals: []int64{1, 2, 3}, pods: func() int { return w.store.Snapshot().PodCount() }}
	for i, cpu := range []int{4, 4, 2, 2, 8, 8} {
		w.node(fmt.Sprintf("n%d", i), map[string]string{"rack": fmt.Sprint(i / 2)}, cores(cpu))
	}
	for i := range cluster.NodeIdx(3) {
		p.answer.List = append(p.answer.List,
			plugin.Candidate{Name: fmt.Sprint("rack-", i), Rows: []cluster.NodeIdx{2 * i, 2*i + 1}})
	}
	w.placements = p
	return w, p
}

// inBestCandidate: of the candidates that hold the gang, the one with the highest total gets it, where the pass had it.
// Candidates that do not hold it are not scored. Mutants: candidateLowest, candidateStays.
func inBestCandidate(t tester) {
	w, p := racks(t)
	a := w.answer(all(w.members(2, pod("m", cores(3)))))
	if a.Verdict != gang.Placed || !slices.Equal(a.Nodes, []cluster.NodeIdx{4, 5}) ||
		!slices.Equal(a.Domains, []string{"rack-2"}) {
		t.Errorf("%v on %v in %v: %s", a.Verdict, a.Nodes, a.Domains, a.Why.Message)
	}
	want := "generate 2, enter 0, enter 1, enter 2, totals 0:[1 0] 2:[4 5], leave 2"
	if got := strings.Join(p.calls, ", "); got != want {
		t.Errorf("calls %s, want %s", got, want)
	}
	p.totals[0], p.calls = 9, nil
	if a = w.answer(all(w.members(2, pod("m", cores(3))))); !slices.Equal(a.Domains, []string{"rack-0"}) {
		t.Errorf("on %v, though the first candidate has the highest total", a.Nodes)
	}
}

// inOnlyCandidate: a single candidate that holds the gang is not scored. The topology of the gang does not count: that
// no node has its label proves nothing. Mutants: candidateAlwaysScored, candidateInTopology.
func inOnlyCandidate(t tester) {
	w, p := racks(t)
	zone := cluster.GangTopology{Key: "zone", Required: true}
	a := w.answer(all(w.members(5, pod("m", cores(4))), zone))
	if a.Verdict != gang.Unschedulable || a.Proof != "" {
		t.Errorf("%v on %v: %s", a.Verdict, a.Nodes, a.Proof)
	}
	p.calls = nil
	a = w.answer(all(w.members(2, pod("m", cores(5))), zone))
	if a.Verdict != gang.Placed || strings.Contains(strings.Join(p.calls, ","), "totals") {
		t.Errorf("%v: %v", a.Verdict, p.calls)
	}
}

// tiedCandidates: of candidates with the highest total one is drawn. Mutant: candidateFirstOfTies.
func tiedCandidates(t tester) {
	w, p := racks(t)
	p.totals = []int64{5, 5, 5}
	drawn := map[string]int{}
	for decision := range uint64(40) {
		w.decision = decision
		a := w.answer(all(w.members(2, pod("m", cores(1)))))
		drawn[strings.Join(a.Domains, " ")]++
	}
	for _, name := range []string{"rack-0", "rack-1", "rack-2"} {
		if drawn[name] < 5 {
			t.Errorf("drawn %v", drawn)
		}
	}
}

// inNoCandidate: a gang that fits all nodes and no candidate is rejected, with the status of the first candidate, and
// nothing stays in place. Mutants: candidateOutside, candidateStatusLost,
// candidateBoundUncounted.
func inNoCandidate(t tester) {
	w, p := racks(t)
	key := cluster.GangKey{Source: cluster.GangOfGroup, Namespace: "ns", Name: "g"}
	meta := metav1.ObjectMeta{Namespace: "ns", Name: key.Object().Name}
	w.store.SetObject(&cluster.Gang{ObjectMeta: meta, Key: key, MinCount: 4})
	members := w.members(3, pod("m", cores(4)))
	for i := range members {
		members[i].Gang = &cluster.GangMark{Key: key}
	}
	for i, rows := range [][]cluster.NodeIdx{{0, 2}, {1, 3}, {2, 3}} {
		p.answer.List[i].Rows = rows
	}
	need := all(members)
	need.Bound = []cluster.NodeIdx{5}
	a := w.answer(need)
	want := "0/3 placements are available, first placement status: minCount (4) cannot be satisfied: 2 scheduled, " +
		"1 remaining"
	if a.Verdict == gang.Placed || a.Unavailable != want {
		t.Errorf("%v: %q, want %q", a.Verdict, a.Unavailable, want)
	}
	if last := p.calls[len(p.calls)-1]; last != "leave -1" || strings.Contains(strings.Join(p.calls, ","), "in place") {
		t.Errorf("calls %v", p.calls)
	}
	if message := (&gang.Attempt{Need: need, Answer: a}).Message(); !strings.Contains(message, want) {
		t.Errorf("message %q", message)
	}
}

// candidatesSearched: the order of the unit leaves no node for the large member in any candidate, another order does.
// Mutant: candidateOnePass.
func candidatesSearched(t tester) {
	w, p := racks(t)
	p.answer.List = p.answer.List[:1]
	members := append(w.members(2, pod("m", cores(2))), w.members(1, pod("l", cores(4)))...)
	members[0].Nominated, members[1].Nominated = "n0", "n1"
	a := w.answer(all(members))
	if a.Verdict != gang.Placed || !slices.Equal(a.Domains, []string{"rack-0"}) {
		t.Errorf("%v in %v: %s", a.Verdict, a.Domains, a.Why.Message)
	}
}

// candidatesRejected: a plugin that rejects the gang, fails, names nodes that do not exist, or fails while it scores.
// Mutants: candidateErrorIgnored, candidateRejectionLost.
func candidatesRejected(t tester) {
	broken := errors.New("it is broken")
	for name, c := range map[string]struct { // order: each is a scenario of its own
		set  func(*proposed)
		want gang.Verdict
		text string
	}{
		"rejects": {func(p *proposed) { p.answer = plugin.Candidates{By: "A", Rejected: "no rack"} }, gang.Unschedulable,
			"no rack"},
		"fails":  {func(p *proposed) { p.answer = plugin.Candidates{Err: broken} }, gang.Failed, "it is broken"},
		"bad":    {func(p *proposed) { p.answer.List[2].Err = broken }, gang.Failed, "it is broken"},
		"scores": {func(p *proposed) { p.err = broken }, gang.Failed, "it is broken"},
	} {
		w, p := racks(t)
		c.set(p)
		need := all(w.members(2, pod("m", cores(1))))
		a := w.answer(need)
		message := (&gang.Attempt{Need: need, Answer: a}).Message()
		if a.Verdict != c.want || !strings.Contains(message, c.text) {
			t.Errorf("%s: %v, %q", name, a.Verdict, message)
		}
		if name == "rejects" && !slices.Equal(a.Why.Plugins, []string{"A"}) {
			t.Errorf("rejected by %v", a.Why.Plugins)
		}
	}
}

// noCandidates: plugins that propose nothing leave the gang to the search.
func noCandidates(t tester) {
	w, p := racks(t)
	p.answer = plugin.Candidates{}
	if a := w.answer(all(w.members(4, pod("m", cores(4))))); a.Verdict != gang.Placed || a.Domains != nil {
		t.Errorf("%v in %v: %s", a.Verdict, a.Domains, a.Why.Message)
	}
}
