// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestWhatIf runs testdata/whatif/*.txt, scenarios of questions. They are written as those of TestPreemption, with
// these words more:
//
//	if pod|gang NAME: CONDITION; CONDITION …
func TestWhatIf(t *testing.T) {
	playStories(t, "testdata/whatif/*.txt", func(t *testing.T, script []byte) []byte { return newAsking(t).play(script) })
}

// asking is a story in which questions are asked.
type asking struct{ robbing }

func newAsking(t *testing.T) asking { return asking{newRobbing(t)} }

func (s asking) play(script []byte) []byte { return s.playBy(script, s.tell) }

func (s asking) tell(verb string, args []string) {
	if verb != "if" {
		s.robbing.tell(verb, args)
		return
	}
	about, conditions, _ := strings.Cut(strings.Join(args, " "), ":")
	s.ask(strings.Fields(about), strings.Split(conditions, ";"))
}

// ask asks twice: the second answer is the first, and the revision stays.
func (s asking) ask(about, conditions []string) {
	if len(conditions) == 1 && strings.TrimSpace(conditions[0]) == "" {
		conditions = nil
	}
	ask := inspect(s.engine).WhatIfPod
	if about[0] == "gang" {
		ask = inspect(s.engine).WhatIfGang
	}
	revision := s.engine.Snapshot().Revision()
	r, err := ask("default", about[1], conditions)
	recordQuestion(s.engine, append([]string{"if", about[0], "default", about[1]}, conditions...))
	again, _ := ask("default", about[1], conditions)
	if !reflect.DeepEqual(r, again) {
		panic(fmt.Sprintf("asked twice: %+v\nand %+v", r, again))
	}
	if now := s.engine.Snapshot().Revision(); now != revision {
		panic(fmt.Sprintf("the revision was %d and is %d", revision, now))
	}
	var no *record.Refusal
	if errors.As(err, &no) {
		fmt.Fprintf(&s.out, "  refused (missing %v): %s\n", no.Missing || no.About, no.Message)
		return
	}
	for _, c := range r.If {
		fmt.Fprintf(&s.out, "  %s: %s\n", c.If, c.Does)
	}
	s.prospect("now", r.Now)
	s.prospect("then", r.Then)
	if m := r.Moved; m != nil {
		fmt.Fprintf(&s.out, "  moved: %d pods, %d lost, %d tried (%d first), %d fit\n", m.Pods, m.Lost, m.Tried, m.First, m.Fit)
		for _, b := range m.Blocked {
			fmt.Fprintf(&s.out, "    %s: %s\n", b.Pod.Name, b.Message)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&s.out, "  note: %s\n", note)
	}
}

func (s asking) prospect(when string, p record.Prospect) {
	fmt.Fprintf(&s.out, "  %s: %s", when, p.Outcome)
	if p.Node != "" {
		s.out.WriteString(" on " + p.Node)
	}
	for _, at := range p.Places {
		fmt.Fprintf(&s.out, " %s:%s", at.Pod.Name, at.Node)
	}
	if f := p.Fit; f != nil {
		fmt.Fprintf(&s.out, ", %d of %d nodes fit", f.Feasible, f.Nodes)
	}
	if f := p.Gang; f != nil {
		fmt.Fprintf(&s.out, ", %s: %d of %d", f.Verdict, f.Placed, f.Needed)
	}
	if p.Reason != "" {
		s.out.WriteString("; " + p.Reason)
	}
	if v := p.Preemption; v != nil {
		for _, v := range v.Victims {
			fmt.Fprintf(&s.out, ", without %s of priority %d", v.Pod.Name, v.Priority)
			if v.Shielded {
				s.out.WriteString(" (shielded)")
			}
		}
		if v.Node == "" {
			s.out.WriteString("; " + v.Message)
		}
		for _, o := range v.Others {
			fmt.Fprintf(&s.out, "\n    not %s: %s", o.Node, o.Why)
		}
	}
	s.out.WriteByte('\n')
}

// askAtRandom asks what becomes of a pod or a gang if things happen.
func askAtRandom(t *rapid.T, e *engine.Engine, pods map[string]*v1.Pod) {
	names := sortedKeys(pods)
	if len(names) == 0 || rapid.IntRange(0, 3).Draw(t, "ask") != 0 {
		return
	}
	var conditions []string
	for range rapid.IntRange(1, 4).Draw(t, "conditions") {
		other, node := pods[one(t, names)], fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "node"))
		conditions = append(conditions, rapid.SampledFrom([]string{
			"delete pod/" + other.Name, "delete gang/g0", "drain node/" + node, "delete node/" + node, "cordon node/" + node, "uncordon " + node,
			"add-nodes 2 like node/" + node,
		}).Draw(t, "condition"))
	}
	p := pods[one(t, names)]
	before := stateOf(e.Snapshot())
	ask := func() (record.WhatIf, error) {
		if gang := p.Annotations[gangAnnotation]; gang != "" {
			return inspect(e).WhatIfGang(p.Namespace, gang, conditions)
		}
		return inspect(e).WhatIfPod(p.Namespace, p.Name, conditions)
	}
	r, err := ask()
	if gang := p.Annotations[gangAnnotation]; gang != "" {
		recordQuestion(e, append([]string{"if", "gang", p.Namespace, gang}, conditions...))
	} else {
		recordQuestion(e, append([]string{"if", "pod", p.Namespace, p.Name}, conditions...))
	}
	again, _ := ask()
	if !reflect.DeepEqual(r, again) {
		t.Fatalf("asked twice about %s if %q: %+v\n%+v", p.Name, conditions, r, again)
	}
	var no *record.Refusal
	if err != nil && !errors.As(err, &no) {
		t.Fatalf("asked about %s if %q: %v", p.Name, conditions, err)
	}
	if after := stateOf(e.Snapshot()); after != before {
		t.Fatalf("asked about %s if %q, the store was\n%s\nand is\n%s", p.Name, conditions, before, after)
	}
}

func one(t *rapid.T, names []string) string { return rapid.SampledFrom(names).Draw(t, "pod") }

// stateOf is what a store shows.
func stateOf(s cluster.Snapshot) string {
	var b strings.Builder
	_, changes, _ := s.Changes(0)
	fmt.Fprintf(&b, "revision %d, changes %d, rows %d\n", s.Revision(), changes, s.Rows())
	for n := range cluster.NodeIdx(s.Rows()) {
		fmt.Fprintf(&b, "%s %p", s.NodeName(n), s.Node(n))
		s.EachPod(n, func(p *cluster.Pod, assumed bool) { fmt.Fprintf(&b, " %s/%v", p.UID, assumed) })
		b.WriteByte('\n')
	}
	return b.String()
}

// TestQuestionsChangeNothing runs random histories in which questions are asked, and plays the same events to an
// engine that is asked nothing: both decide the same, record for record. Nodes, pods, gangs, locks and evictions
// are in it. Mutant: questionsShow.
func TestQuestionsChangeNothing(t *testing.T) {
	t.Run("pods", func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { askedHistory(t, newWorld(t)) }) })
	t.Run("gangs", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			w := newWorld(t)
			w.gangs = &gangWorld{sizes: map[string]int{}, whole: map[string]bool{}}
			askedHistory(t, w)
		})
	})
	t.Run("evictions", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a := newArena(t, preempt.Config{})
			for range rapid.IntRange(1, 40).Draw(t, "moves") {
				a.do(rapid.SampledFrom([]string{"pod", "pod", "watch", "watch", "watch", "cycle", "cycle", "bind", "answer", "work", "end", "tick", "delete", "node"}).Draw(t, "move"))
				askAtRandom(t, a.engine, a.pods)
			}
			a.settle()
			a.checkReplay()
		})
	})
}

func askedHistory(t *rapid.T, w *world) {
	w.setNode("n0")
	w.setNode("n1")
	for range rapid.IntRange(1, 40).Draw(t, "moves") {
		if w.gangs != nil && rapid.IntRange(0, 5).Draw(t, "gang") == 0 {
			w.createGang()
		}
		w.happen()
		askAtRandom(t, w.engine, w.pods)
	}
	w.settle()
	w.checkReplay()
}
