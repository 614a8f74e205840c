// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// signer is a plugin whose Filter depends on the label "v" of the pod, which it signs.
type signer struct {
	scripted
	sign  func(*v1.Pod) ([]fwk.SignFragment, *fwk.Status) // nil signs the label
	asked int                                             // calls of Filter
}

func (s *signer) SignPod(_ context.Context, p *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if s.sign != nil {
		return s.sign(p)
	}
	return []fwk.SignFragment{{Key: "label", Value: p.Labels["v"]}}, nil
}

func (s *signer) Filter(ctx context.Context, state fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
	s.asked++
	return s.scripted.Filter(ctx, state, p, n)
}

// newSigning returns a world with a signer, whose verdicts are used again or not.
func newSigning(t testing.TB, reuse config.Reuse, pl *signer) *world {
	pl.name = "A"
	w := newWorld(t, nil, filterPoints, pl)
	w.profile.host.env.Limits.Reuse = reuse
	return w
}

// labelledAs gives a pod a label.
func labelledAs(v string) plugintest.PodOption {
	return func(p *v1.Pod) { p.Labels = map[string]string{"v": v} }
}

// TestSignedVerdicts: Filter is called again for a pod of another signature, for a node that has changed, after half a
// second, and if the plugin does not sign the pod; and for no other reason.
func TestSignedVerdicts(t *testing.T) {
	pl := &signer{}
	pl.filter = func(_ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
		if n.Node().Name == "b" {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "never", "at all")
		}
		return nil
	}
	w := newSigning(t, config.ReuseSigned, pl).nodes("a", "b", "c")
	now := record.Second
	place := func(name, v string) int {
		t.Helper()
		w.Store.SetNow(now)
		pl.asked = 0
		out, _ := w.place(plugintest.Pod(name, labelledAs(v)))
		if out.Err != nil || out.Feasible != 2 {
			t.Errorf("%s: %d nodes fit: %v", name, out.Feasible, out.Err)
		}
		if _, why := w.placer.WhyNot(w.Store.Snapshot(), out, 1); !slices.Equal(why, []string{"never", "at all"}) {
			t.Errorf("%s: node b is rejected because of %q", name, why)
		}
		return pl.asked
	}
	expect := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: Filter was called for %d nodes, want %d", what, got, want)
		}
	}
	expect("first", place("p1", "1"), 3)
	expect("same signature", place("p2", "1"), 0)
	expect("another signature", place("p3", "2"), 3)
	w.With(plugintest.Pod("on-c", plugintest.OnNode("c")))
	expect("a node has changed", place("p4", "1"), 1)
	now += record.Second / 2
	expect("after 500 ms", place("p5", "1"), 0)
	now++
	expect("after more", place("p6", "1"), 3)
	for what, answer := range map[string]func(*v1.Pod) ([]fwk.SignFragment, *fwk.Status){
		"not signed": func(*v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
			return nil, fwk.NewStatus(fwk.Unschedulable, "special")
		},
		"failed": func(*v1.Pod) ([]fwk.SignFragment, *fwk.Status) { return nil, fwk.AsStatus(errors.New("down")) },
		"unreadable": func(*v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
			return []fwk.SignFragment{{Key: "k", Value: func() {}}}, nil
		},
	} {
		pl.sign = answer
		for range 2 {
			expect(what, place("p7", "1"), 3)
		}
	}
	if n := len(w.problems); n != 4 || !strings.Contains(w.problems[0].Err.Error(), `plugin "A" at signPod: `) {
		t.Errorf("problems %+v", w.problems)
	}
	pl.sign = nil
	w.profile.host.env.Limits.Reuse = config.ReuseNone
	expect("switched off", place("p8", "1"), 3)
}

// TestSignedVerdictsOfErrors: an error is not used again.
func TestSignedVerdictsOfErrors(t *testing.T) {
	pl := &signer{}
	fails := true
	pl.filter = func(fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
		if fails {
			return fwk.AsStatus(errors.New("down"))
		}
		return nil
	}
	w := newSigning(t, config.ReuseSigned, pl).nodes("a")
	if out, _ := w.place(plugintest.Pod("p")); out.Err == nil {
		t.Error("no error")
	}
	fails = false
	if out, _ := w.place(plugintest.Pod("p")); out.Err != nil || out.Feasible != 1 {
		t.Errorf("%d nodes fit after an error of the pod before: %v", out.Feasible, out.Err)
	}
}

// TestSignedVerdictsAreThoseWithout compares decisions about random pods in a changing cluster with those of a host
// that calls Filter each time. Filter depends on the label of the pod and on all that the NodeInfo shows.
func TestSignedVerdictsAreThoseWithout(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		answer := func(_ fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
			h := 7
			for _, c := range p.Labels["v"] + shown(n) {
				h = h*31 + int(c)
			}
			switch h = (h%6 + 6) % 6; h {
			case 0, 1:
				return fwk.NewStatus(fwk.Unschedulable, fmt.Sprint("busy ", h))
			case 2:
				return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "unfit")
			case 3:
				return fwk.NewStatus(fwk.Pending, "later")
			}
			return nil
		}
		with, without := &signer{scripted: scripted{filter: answer}}, &signer{scripted: scripted{filter: answer}}
		worlds := []*world{newSigning(t, config.ReuseSigned, with), newSigning(t, config.ReuseNone, without)}
		now, pods := record.Second, 0
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			node := fmt.Sprint("n", rapid.IntRange(0, 4).Draw(rt, "node"))
			kind, v := rapid.IntRange(0, 6).Draw(rt, "step"), fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "v"))
			now += record.Time(rapid.IntRange(0, 3).Draw(rt, "time")) * record.Second / 10
			pods++
			var got []string
			for _, w := range worlds {
				w.Store.SetNow(now)
				switch kind {
				case 0:
					w.With(plugintest.Node(node, plugintest.Labels("v", v)))
				case 1:
					w.With(plugintest.Pod(fmt.Sprint("p", pods), plugintest.OnNode(node)))
				case 2:
					if _, exists := w.Store.Snapshot().Find(node); exists {
						w.Store.DeleteNode(node)
					}
				default:
					out, why := w.place(plugintest.Pod("waits", labelledAs(v)))
					got = append(got, fmt.Sprint(out.Node, out.Feasible, out.Err, why.Message, why.Plugins, why.Pending,
						why.Reasons))
				}
			}
			if len(got) == 2 && got[0] != got[1] {
				rt.Fatalf("with reuse:    %s\nwithout reuse: %s", got[0], got[1])
			}
		}
		if with.asked > without.asked {
			rt.Fatalf("%d calls with reuse, %d without", with.asked, without.asked)
		}
	})
}

// BenchmarkSigned is a decision at 5,000 nodes with a plugin that signs the pod, one row changed since the last one.
func BenchmarkSigned(b *testing.B) {
	for _, reuse := range []config.Reuse{config.ReuseNone, config.ReuseSigned} {
		b.Run(string(reuse), func(b *testing.B) {
			pl := &signer{scripted: scripted{filter: func(_ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
				if n.GetRequested().GetMilliCPU() > 32_000 {
					return fwk.NewStatus(fwk.Unschedulable, "busy")
				}
				return nil
			}}}
			w := newSigning(b, reuse, pl)
			for i := range plugintest.BenchNodes {
				w.With(plugintest.Node(fmt.Sprint("n", i), plugintest.Allocatable("cpu", "64")))
			}
			p := w.Intake.PendingPod(plugintest.Pod("p", labelledAs("1")))
			filler := w.Intake.Pod(plugintest.Pod("f", plugintest.Requests("cpu", "1m"), plugintest.OnNode("n0")))
			s := w.Store.Snapshot()
			b.ReportAllocs()
			for b.Loop() {
				w.Store.SetPod(filler)
				w.placer.Place(s, p, nominations{}, func(int) int { return 0 })
				w.Store.DeletePod(cluster.UID("uid-f"))
			}
		})
	}
}
