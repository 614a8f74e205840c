// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/bench/ops"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// second is a moment of a run; 0 is no time.
func second(s float64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second)))
}

func lived(op int, asked, attempted, bound, gone float64) ops.Pod {
	return ops.Pod{Op: op, Asked: second(asked), Attempted: second(attempted), Bound: second(bound), Gone: second(gone)}
}

func spanOf(from, to float64) *span { return &span{from: second(from), to: second(to)} }

// Catches: a pod that was never bound left out, one that was deleted before it could be counted as never bound, pods of
// others and of before counted, and those that a steady state has pending when its time is over.
func TestWhichPodsAreMeasured(t *testing.T) {
	plan := &workload.Plan{Ops: []workload.Op{&workload.CreatePods{}, &workload.CreatePods{Steady: time.Second}}}
	s := spanOf(10, 20)
	for what, c := range map[string]struct {
		pod  ops.Pod
		want bool
	}{
		"bound":                        {lived(0, 11, 12, 12, 0), true},
		"bound and deleted":            {lived(0, 11, 12, 12, 13), true},
		"bound when it is over":        {lived(0, 19, 21, 21, 0), true},
		"never bound":                  {lived(0, 11, 12, 0, 0), true},
		"deleted before it was bound":  {lived(0, 11, 12, 0, 13), false},
		"asked for before":             {lived(0, 9, 12, 12, 0), false},
		"of another client":            {lived(-1, 11, 12, 12, 0), false},
		"steady, bound":                {lived(1, 11, 12, 12, 0), true},
		"steady, pending at the end":   {lived(1, 19, 0, 0, 0), false},
		"steady, bound when it's over": {lived(1, 19, 21, 21, 0), false},
	} {
		if got := measured(&c.pod, s, plan); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// Catches: a rate over another time than from the first pod asked for to the last one bound; the last, broken second in the
// throughput; binds outside of the span; pods that waited before it counted from before.
func TestViewOfASpan(t *testing.T) {
	plan := &workload.Plan{Ops: []workload.Op{&workload.CreatePods{}}}
	pods := []ops.Pod{lived(0, 11, 12.2, 12.2, 0), lived(0, 11.5, 12.5, 12.5, 0), lived(0, 12, 14, 14, 0), lived(0, 13, 0, 0, 0), lived(0, 5, 6, 6, 0)}
	v := viewOf(spanOf(10, 14.5), pods, plan, map[string]*gang{})
	if v.pods != 4 || v.bound != 3 || !v.first.Equal(second(11)) || !v.last.Equal(second(14)) {
		t.Errorf("%d pods, %d bound, from %v to %v", v.pods, v.bound, v.first, v.last)
	}
	if !slices.Equal(v.boundBy, []int{0, 0, 2, 2}) {
		t.Errorf("bound by the end of each whole second: %v", v.boundBy)
	}
	if slices.Sort(v.took); !math.IsInf(v.took[3], 1) || v.took[2] != 2 {
		t.Errorf("the pods took %v", v.took)
	}
	waited := viewOf(spanOf(10, 14), []ops.Pod{lived(0, 5, 6, 12, 0)}, plan, map[string]*gang{})
	if waited.pods != 1 || waited.bound != 1 || !waited.first.Equal(second(10)) || len(waited.took) != 0 {
		t.Errorf("a pod that waited before: %+v", waited)
	}
}

// Catches: a gang that counts as bound when its first pod is, or whose time begins with its last; one of which a pod has no
// node that looks finished, whichever of its pods comes first.
func TestGangsAreBoundWhenAllPodsAre(t *testing.T) {
	plan := &workload.Plan{Ops: []workload.Op{&workload.CreatePods{}}}
	of := func(group string, p ops.Pod) ops.Pod {
		p.Group = group
		return p
	}
	gangs := map[string]*gang{}
	viewOf(spanOf(10, 20), []ops.Pod{
		of("whole", lived(0, 12, 14, 14, 0)), of("whole", lived(0, 11, 13, 13, 0)),
		of("late", lived(0, 11, 12, 12, 0)), of("late", lived(0, 11, 12, 0, 0)),
		of("early", lived(0, 11, 12, 0, 0)), of("early", lived(0, 11, 12, 12, 0)),
	}, plan, gangs)
	l := gangLatency(gangs)
	if l.Count != 3 || !math.IsInf(float64(l.P99), 1) || !math.IsInf(float64(l.P50), 1) {
		t.Errorf("three gangs, one of them whole: %+v", l)
	}
	if g := gangs["whole"]; g.last.Sub(g.first) != 3*time.Second {
		t.Errorf("the whole gang took %s, want 3s", g.last.Sub(g.first))
	}
}

// Catches: a pod that was refused and bound later taken for one that was bound at once, after which no more events come.
func TestWhoWasRefused(t *testing.T) {
	for what, c := range map[string]struct {
		pod  ops.Pod
		want bool
	}{"bound at once": {lived(0, 1, 2, 2, 0), false}, "bound later": {lived(0, 1, 2, 3, 0), true}, "refused": {lived(0, 1, 2, 0, 0), true}, "not looked at": {lived(0, 1, 0, 0, 0), false}} {
		if got := wasRefused(&c.pod); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}
