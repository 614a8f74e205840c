// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// chooser is an extender with a say in which pods are evicted, and no other.
type chooser struct {
	engine.Foreign
	asked  []string // what it was asked, and what the pods of each node in it were
	answer func([]place.ForeignVictims) ([]place.ForeignVictims, error)
}

func (*chooser) Takes(*cluster.Pod) bool    { return false }
func (*chooser) Binder(*cluster.Pod) string { return "" }
func (*chooser) Preempts(*cluster.Pod) bool { return true }

func (c *chooser) Preempt(_ *cluster.Pod, of []place.ForeignVictims, on func(string) ([]record.PodRef, bool)) ([]place.ForeignVictims, error) {
	var line []string
	for _, v := range of {
		pods, _ := on(v.Node)
		line = append(line, fmt.Sprintf("%s %v of %v", v.Node, named(v.Pods), named(pods)))
	}
	c.asked = append(c.asked, strings.Join(line, "; "))
	return c.answer(of)
}

const amongGangs = `node n1 cpu=2
node n2 cpu=2
node n3 cpu=2
node n4 cpu=2
pod a cpu=2 priority=1 on=n1 start=10
pod g1 cpu=2 priority=1 on=n2 start=10 gang=low size=2
pod g2 cpu=2 priority=1 on=n3 start=10 gang=low size=2
pod own cpu=2 priority=9 on=n4 start=10
synced
tick 1000
pod boss cpu=2 priority=9
cycle
`

// only keeps one node, with so many of its victims.
func only(node string, first int) func([]place.ForeignVictims) ([]place.ForeignVictims, error) {
	return func(of []place.ForeignVictims) (left []place.ForeignVictims, _ error) {
		for _, v := range of {
			if v.Node == node {
				v.Pods = v.Pods[first:]
				left = append(left, v)
			}
		}
		return left, nil
	}
}

func askedAboutUnits(t interface{ Errorf(string, ...any) }) {
	const all = "n1 [a] of [a]; n2 [g1 g2] of [g1 g2]; n3 [g1 g2] of [g2 g1]"
	for _, c := range []struct {
		what   string
		answer func([]place.ForeignVictims) ([]place.ForeignVictims, error)
		want   string
	}{
		{"it leaves all", func(of []place.ForeignVictims) ([]place.ForeignVictims, error) { return of, nil }, "evict [a] from n1 for boss"},
		{"it keeps a", only("n2", 0), "evict [g1 g2] from n2 for boss"},
		{"it names a part of a gang, which goes whole (R5)", only("n3", 1), "evict [g1 g2] from n3 for boss"},
		{"it keeps all", func([]place.ForeignVictims) ([]place.ForeignVictims, error) { return nil, nil }, "preemption: no candidate node for preemption"},
		{"it fails", func([]place.ForeignVictims) ([]place.ForeignVictims, error) { return nil, errors.New("no mind to") }, "preemption: no mind to"},
		{"it names one that may not go (R4)", func(of []place.ForeignVictims) ([]place.ForeignVictims, error) {
			return []place.ForeignVictims{{Node: "n4", Pods: []record.PodRef{{Namespace: "default", Name: "own", UID: "own"}}}}, nil
		}, "preemption: no candidate node for preemption"},
		{"it names a node where that is no help", func(of []place.ForeignVictims) ([]place.ForeignVictims, error) {
			return []place.ForeignVictims{{Node: "n4", Pods: []record.PodRef{{Namespace: "default", Name: "a", UID: "a"}}}}, nil
		}, "preemption: no candidate node for preemption"},
	} {
		who := &chooser{answer: c.answer}
		prof := locked()
		prof.Preemption, prof.Foreign = &preempt.Config{}, who
		s := robbing{&story{t: nil, engine: engine.New(engine.Config{Seed: 1, Profiles: []engine.Profile{prof}, Less: basic.PrioritySort{},
			InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second}), intake: convert.NewIntake(), pods: map[string]*v1.Pod{}}}
		told := string(s.play([]byte(amongGangs)))
		if !strings.Contains(told, c.want) || len(who.asked) != 1 || who.asked[0] != all {
			t.Errorf("%s: not told: %s\nasked %q\n%s", c.what, c.want, who.asked, told)
		}
	}
}

// TestForeignCodeIsAskedAboutUnits: an extender is asked about each node with whole gangs, and what it leaves is
// made whole again and held against the rules. Catches unitsUnasked and askedInPart.
func TestForeignCodeIsAskedAboutUnits(t *testing.T) { askedAboutUnits(t) }
