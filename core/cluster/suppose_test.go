// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
)

// trace is what a store shows of itself that decisions and caches read.
func trace(s cluster.Snapshot) string {
	_, changes, _ := s.Changes(0)
	_, nodes, _ := s.NodeChanges(0)
	_, renewals, _ := s.Renewals(0)
	text := fmt.Sprintf("revision %d, changes %d, of nodes %d, renewals %d, rows %d\n", s.Revision(), changes, nodes,
		renewals, s.Rows())
	for n := range cluster.NodeIdx(s.Rows()) {
		text += fmt.Sprintf("%d %q %p taints %d", n, s.NodeName(n), s.Node(n), first(s.TaintSets())[n])
		s.EachPod(n, func(p *cluster.Pod, assumed bool) { text += fmt.Sprintf(" %p/%v", p, assumed) })
		for _, name := range resources {
			if id, ok := s.Names().Lookup(name); ok {
				text += fmt.Sprintf(" %d/%d/%d", s.Allocatable(id).At(n), s.Requested(id).At(n), s.Assumed(id).At(n))
			}
		}
		text += "\n"
	}
	return text
}

func first[A, B any](a A, _ B) A { return a }

// TestASuppositionLeavesNoTrace runs two stores through the same random history. One of them is asked questions in
// between: nodes come and go in them, pods leave, trials are made, counters are read. Both stay the same, row for
// row, and what comes later takes the same rows. Counters, dictionaries and terms that live through questions stay a
// recount. Mutants: a supposition that is an ordinary transaction (revision and journals go on, rows stay); rows that
// are given up in another order than they were taken; a counter or a dictionary that keeps the rows of a question.
func TestASuppositionLeavesNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := convert.NewIntake()
		plain, w := cluster.NewStore(), &counted{in: in, s: cluster.NewStore()}
		asked := w.s
		_, seq, _ := asked.Snapshot().Changes(0)
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			node, pod := drawCountedNode(t, in), drawCountedPod(t, in, rapid.IntRange(0, 9).Draw(t, "pod"))
			gone := fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(t, "gone"))
			what := rapid.IntRange(0, 3).Draw(t, "change")
			for _, s := range []*cluster.Store{plain, asked} {
				switch what {
				case 0:
					s.SetNode(node)
				case 1:
					s.DeleteNode(gone)
				case 2:
					s.DeletePod(pod.UID)
				default:
					s.SetPod(pod)
				}
			}
			w.ask(t)
			before := trace(asked.Snapshot())
			suppose(t, w)
			if after := trace(asked.Snapshot()); after != before {
				t.Fatalf("the store was\n%s\nand is after a question\n%s", before, after)
			}
			w.ask(t)
			if got, want := trace(asked.Snapshot()), trace(plain.Snapshot()); got != want {
				t.Fatalf("the store that was asked is\n%s\nthe other is\n%s", got, want)
			}
		}
		for n := range cluster.NodeIdx(plain.Snapshot().Rows()) {
			if got, want := asked.Snapshot().NodeName(n), plain.Snapshot().NodeName(n); got != want {
				t.Fatalf("row %d is of node %q, without questions of %q", n, got, want)
			}
		}
		if rows, _, ok := asked.Snapshot().Changes(seq); !ok || len(rows) != len(first2(plain.Snapshot().Changes(0))) {
			t.Fatalf("the journal names %d changes, known %v", len(rows), ok)
		}
	})
}

func first2[A, B, C any](a A, _ B, _ C) A { return a }

// suppose asks one question.
func suppose(t *rapid.T, w *counted) {
	p := w.s.Suppose()
	defer p.End()
	for i := range rapid.IntRange(0, 6).Draw(t, "suppositions") {
		if rapid.Bool().Draw(t, "new node") {
			labels := map[string]string{"kubernetes.io/hostname": fmt.Sprintf("new-%d", i),
				"zone": rapid.SampledFrom([]string{"a", "b", "new"}).Draw(t, "zone")}
			w.s.SetNode(w.in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("new-%d", i),
				Labels: labels},
				Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("4"),
					"example.com/new": apiresource.MustParse("1")}}}))
		} else {
			w.step(t, nil)
		}
		w.ask(t)
	}
	if !rapid.Bool().Draw(t, "trial") {
		return
	}
	tr := w.s.Trial()
	w.step(t, tr)
	w.ask(t)
	if rapid.Bool().Draw(t, "discard") {
		tr.Discard()
	}
}

// TestASuppositionIsNotKept: it cannot be committed, and ends once.
func TestASuppositionIsNotKept(t *testing.T) {
	for name, misuse := range map[string]func(*cluster.Store, *cluster.Supposition){
		"commit":    func(s *cluster.Store, _ *cluster.Supposition) { s.Commit() },
		"second":    func(s *cluster.Store, _ *cluster.Supposition) { s.Suppose() },
		"end twice": func(_ *cluster.Store, p *cluster.Supposition) { p.End(); p.End() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if _, broken := recover().(cluster.Broken); !broken {
					t.Error("no invariant was found broken")
				}
			}()
			s := cluster.NewStore()
			misuse(s, s.Suppose())
		})
	}
}
