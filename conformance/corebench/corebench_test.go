// SPDX-License-Identifier: Apache-2.0

package corebench

import (
	"context"
	"io"
	"regexp"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/bench/core"
)

// TestEverySchedulerPlacesEveryPod of every family, so that what is compared is the same work. Catches a pod that
// one of them gives up, which is cheap, and upstream's queue giving out another pod than the one that came.
func TestEverySchedulerPlacesEveryPod(t *testing.T) {
	const pods = 30
	contenders := append([]core.Contender{core.Kumiki(0)}, Contenders()...)
	runs, err := core.Measure(context.Background(), core.Options{Nodes: []int{120}, Families: regexp.MustCompile("^([^1].*|1[^0].*)$"), Pods: pods,
		Warmup: 5, Runs: 1, Contenders: contenders, Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.Pods != pods {
			t.Errorf("%s places %d of %d pods of %s", r.Contender, r.Pods, pods, r.Family)
		}
	}
	if want := (len(core.Families()) - 1) * len(contenders); len(runs) != want { // without 1000 templates
		t.Errorf("%d runs, want %d", len(runs), want)
	}
}

// TestUpstreamsClusterStaysAsFull checks that the cluster stays as full as it is at the start, and that upstream
// evaluates as many nodes as the name of the contender states. Catches a deletion that does not reach its handlers, a
// bind that is counted beside the assumption of the same pod, and a share of nodes that the configuration does not
// reach.
func TestUpstreamsClusterStaysAsFull(t *testing.T) {
	const nodes, bound, pods = 400, 30, 20
	family := core.Families()[0]
	for _, c := range []struct {
		share     int32
		evaluated func(int) bool
	}{{0, func(n int) bool { return n < nodes }}, {100, func(n int) bool { return n == nodes }}} {
		u, err := start(c.share)
		if err != nil {
			t.Fatal(err)
		}
		evaluated := 0
		u.evaluated = func(n int) { evaluated = n }
		for i := range nodes {
			u.AddNode(core.Node(i))
		}
		for i := range bound {
			u.AddBound(family.Bound(i, nodes))
		}
		var taken []*v1.Pod
		for i := range pods {
			taken = append(taken, family.Pod(bound+i))
		}
		u.Take(taken)
		for i := range taken {
			placed, err := u.Place(i)
			if err != nil || placed.Node == "" {
				t.Fatalf("pod %d: %+v, %v", i, placed, err)
			}
			u.Retire()
		}
		if n, err := u.sched.Cache.PodCount(); err != nil || n != bound {
			t.Errorf("share %d: %d pods at the end (%v), want %d", c.share, n, err, bound)
		}
		if !c.evaluated(evaluated) {
			t.Errorf("share %d: %d of %d nodes were looked at", c.share, evaluated, nodes)
		}
		u.Close()
	}
}
