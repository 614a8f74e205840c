// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

var filterPoints = []config.Point{config.PreFilter, config.Filter}

// TestPreFilterStatuses: each status of PreFilter has the effect, the message and the plugin of upstream's framework.
func TestPreFilterStatuses(t *testing.T) {
	for name, tt := range map[string]struct {
		status        *fwk.Status
		nodes         sets.Set[string]
		message, err  string
		feasible      int
		calls, rejecs string // of the second plugin; plugins that reject
	}{
		"success":        {feasible: 3, calls: "B PreFilter p"},
		"skip":           {status: fwk.NewStatus(fwk.Skip), feasible: 3, calls: "B PreFilter p"},
		"subset":         {nodes: sets.New("a", "c", "nowhere"), feasible: 2, calls: "B PreFilter p"},
		"no node":        {nodes: sets.New[string](), message: "0/3 nodes are available: node(s) didn't satisfy plugin A.", rejecs: "A"},
		"unresolvable":   {status: fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "never"), message: "0/3 nodes are available: never.", rejecs: "A"},
		"unschedulable":  {status: fwk.NewStatus(fwk.Unschedulable, "not now"), message: "0/3 nodes are available: not now.", calls: "B PreFilter p", rejecs: "A"},
		"without reason": {status: fwk.NewStatus(fwk.UnschedulableAndUnresolvable), message: "0/3 nodes are available: rejected without a reason.", rejecs: "A"},
		"error":          {status: fwk.AsStatus(errors.New("down")), err: `running PreFilter plugin "A": down`},
		"pending":        {status: fwk.NewStatus(fwk.Pending, "later"), err: `running PreFilter plugin "A": later`},
		"wait":           {status: fwk.NewStatus(fwk.Wait), err: `running PreFilter plugin "A": unexpected status Wait`},
		"unknown":        {status: fwk.NewStatus(fwk.Code(17)), err: `running PreFilter plugin "A": plugin "A" at preFilter: unknown status code 17`},
	} {
		t.Run(name, func(t *testing.T) {
			var log []string
			a := &scripted{name: "A", preFilter: func(fwk.CycleState, *v1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
				if tt.nodes != nil {
					return &fwk.PreFilterResult{NodeNames: tt.nodes}, tt.status
				}
				return nil, tt.status
			}}
			w := newWorld(t, nil, filterPoints, a, &scripted{name: "B", log: &log}).nodes("a", "b", "c")
			out, why := w.place(plugintest.Pod("p"))
			if tt.err != "" {
				if out.Err == nil || out.Err.Error() != tt.err {
					t.Errorf("error %v, want %s", out.Err, tt.err)
				}
				return
			}
			if out.Err != nil || out.Feasible != tt.feasible {
				t.Errorf("%d nodes fit, error %v, want %d", out.Feasible, out.Err, tt.feasible)
			}
			if tt.feasible == 0 && why.Message != tt.message {
				t.Errorf("message %q, want %q", why.Message, tt.message)
			}
			if tt.feasible == 0 && strings.Join(why.Plugins, " ") != tt.rejecs {
				t.Errorf("rejected by %v, want %s", why.Plugins, tt.rejecs)
			}
			prepared := slices.DeleteFunc(log, func(s string) bool { return !strings.HasPrefix(s, "B PreFilter") })
			if strings.Join(prepared, " ") != tt.calls {
				t.Errorf("calls of B %v, want %s", log, tt.calls)
			}
		})
	}
}

// TestFilterStatuses: rejections of single nodes are counted by reason and attributed to the plugin; an error fails the
// attempt; Pending is apart from other rejections.
func TestFilterStatuses(t *testing.T) {
	answers := map[string]*fwk.Status{
		"a": fwk.NewStatus(fwk.Unschedulable, "busy", "hot"),
		"b": fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "busy", "hot"),
		"c": fwk.NewStatus(fwk.Unschedulable, "cold"),
	}
	pl := &scripted{name: "A", filter: func(_ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
		return answers[n.Node().Name]
	}}
	w := newWorld(t, nil, filterPoints, pl).nodes("a", "b", "c")
	out, why := w.place(plugintest.Pod("p"))
	if out.Feasible != 0 || why.Message != "0/3 nodes are available: 1 cold, 2 busy, 2 hot." ||
		!slices.Equal(why.Plugins, []string{"A"}) || len(why.Pending) != 0 {
		t.Errorf("%+v", why)
	}
	if r := why.Reasons[0]; r.Plugin != "A" || r.Reason != "busy" || r.Nodes != 2 || r.Unresolvable != 1 {
		t.Errorf("first reason %+v", r)
	}
	answers["c"] = fwk.NewStatus(fwk.Pending, "cold")
	_, why = w.place(plugintest.Pod("p"))
	if !slices.Equal(why.Plugins, []string{"A"}) || !slices.Equal(why.Pending, []string{"A"}) {
		t.Errorf("with a pending node: plugins %v, pending %v", why.Plugins, why.Pending)
	}
	answers["b"] = fwk.AsStatus(errors.New("down"))
	if out, _ = w.place(plugintest.Pod("p")); out.Err == nil || out.Err.Error() != `running "A" filter plugin: down` {
		t.Errorf("error %v", out.Err)
	}
}

// TestPanicIsAnError: a panic in a plugin fails the attempt, names the plugin and the point, and is reported.
func TestPanicIsAnError(t *testing.T) {
	pl := &scripted{name: "A", filter: func(fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status { panic("oh no") }}
	w := newWorld(t, nil, filterPoints, pl).nodes("a")
	out, _ := w.place(plugintest.Pod("p"))
	if want := `running "A" filter plugin: plugin "A" at filter: panic: oh no`; out.Err == nil || out.Err.Error() != want {
		t.Errorf("error %v, want %s", out.Err, want)
	}
	if len(w.problems) != 1 || w.problems[0].Plugin != "A" || w.problems[0].Point != config.Filter {
		t.Errorf("reported %+v", w.problems)
	}
}

// TestSkippedPodTakesTheFastPath: a pod that each hosted plugin skips is decided by the ranking of its class, and one
// that they filter is not.
func TestSkippedPodTakesTheFastPath(t *testing.T) {
	points := append(slices.Clone(filterPoints), config.PreScore, config.Score)
	skip := true
	status := func() *fwk.Status {
		if skip {
			return fwk.NewStatus(fwk.Skip)
		}
		return nil
	}
	pl := &scripted{name: "A",
		preFilter: func(fwk.CycleState, *v1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
			return nil, status()
		},
		preScore: func(fwk.CycleState, []fwk.NodeInfo) *fwk.Status { return status() }}
	w := newWorld(t, []plugin.Plugin{fit(t)}, points, pl).nodes("a", "b", "c")
	w.With(plugintest.Node("full", plugintest.Allocatable("cpu", "1")))
	for _, request := range []string{"100m", "2"} { // all nodes fit, and all but one
		if out, _ := w.place(plugintest.Pod("p", plugintest.Requests("cpu", request))); out.Path != place.Ranked {
			t.Errorf("a pod of %s CPU that is skipped takes path %d", request, out.Path)
		}
	}
	skip = false
	if out, _ := w.place(plugintest.Pod("p", plugintest.Requests("cpu", "2"))); out.Path != place.Scanned || out.Feasible != 3 {
		t.Errorf("a pod that is not skipped takes path %d, %d nodes fit", out.Path, out.Feasible)
	}
}

func fit(t testing.TB) plugin.Plugin {
	t.Helper()
	pl, err := resources.NewNodeResourcesFit(resources.DefaultFitArgs())
	if err != nil {
		t.Fatal(err)
	}
	return pl
}

// counted is data in a CycleState.
type counted struct{ n int }

func (c *counted) Clone() fwk.StateData { return &counted{c.n} }

// TestDryRunsUseCopies: pods that are nominated to a node are added to a copy of the CycleState, as upstream does; the
// state of the decision stays, and each node starts from it.
func TestDryRunsUseCopies(t *testing.T) {
	var seen []int
	pl := &scripted{name: "A",
		preFilter: func(state fwk.CycleState, _ *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
			state.Write("k", &counted{10})
			return nil, nil
		},
		add: func(state fwk.CycleState, _ fwk.PodInfo, sign int) *fwk.Status {
			c, err := state.Read("k")
			if err != nil {
				return fwk.AsStatus(err)
			}
			c.(*counted).n += 2*sign + 1 // not undone by the opposite call: only a copy restores it
			return nil
		},
		filter: func(state fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) *fwk.Status {
			c, _ := state.Read("k")
			seen = append(seen, c.(*counted).n)
			return nil
		}}
	w := newWorld(t, nil, filterPoints, pl).nodes("a", "b")
	nominated := w.Intake.PendingPod(plugintest.Pod("n1"))
	if out, _ := w.placeWith(plugintest.Pod("p"), nominations{"b": {nominated}}); out.Feasible != 2 {
		t.Errorf("%d nodes fit: %v", out.Feasible, out.Err)
	}
	if !slices.Equal(seen, []int{13, 10, 10}) {
		t.Errorf("filter saw %v, want 13 with the nominated pod, then 10 twice", seen)
	}
	w.profile.plugins[0].preFilter.(*scripted).add = func(fwk.CycleState, fwk.PodInfo, int) *fwk.Status {
		return fwk.AsStatus(errors.New("cannot add"))
	}
	out, _ := w.placeWith(plugintest.Pod("p"), nominations{"b": {nominated}})
	if out.Err == nil || !strings.Contains(out.Err.Error(), "cannot add") {
		t.Errorf("an AddPod that fails: error %v", out.Err)
	}
}

// TestDryRunsKeepTheState: what Filter writes with nominated pods on the node is dropped, also for a plugin without
// PreFilterExtensions.
func TestDryRunsKeepTheState(t *testing.T) {
	var seen []string
	pl := &scripted{name: "A", filter: func(state fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
		before := sumOf(state)
		state.Write("sum", sum(before+1))
		seen = append(seen, fmt.Sprint(n.Node().Name, len(n.GetPods()), " ", before))
		return nil
	}}
	w := newWorld(t, nil, filterPoints, pl).nodes("a", "b")
	w.placeWith(plugintest.Pod("p"), nominations{"b": {w.Intake.PendingPod(plugintest.Pod("n1"))}})
	if want := []string{"b1 0", "a0 0", "b0 1"}; !slices.Equal(seen, want) {
		t.Errorf("Filter saw %v, want %v: node, pods on it, calls in the same state before", seen, want)
	}
}

// TestNominatedNodeIsTriedFirst: Filter is called for the node that the pod is nominated to before all others, and again
// if it rejects that node, whatever nodes PreFilter names.
func TestNominatedNodeIsTriedFirst(t *testing.T) {
	var log []string
	named, rejected := sets.New("a", "b"), ""
	pl := &scripted{name: "A", log: &log,
		preFilter: func(fwk.CycleState, *v1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
			return &fwk.PreFilterResult{NodeNames: named}, nil
		},
		filter: func(_ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
			if n.Node().Name == rejected {
				return fwk.NewStatus(fwk.Unschedulable, "busy")
			}
			return nil
		}}
	w := newWorld(t, nil, filterPoints, pl).nodes("a", "b", "c")
	for _, tt := range []struct {
		named               sets.Set[string]
		nominated, rejected string
		node, calls         string
	}{
		{sets.New("a", "b"), "b", "", "b", "b"},
		{sets.New("a", "b"), "b", "b", "a", "b a b"},
		{sets.New("a", "b"), "c", "", "c", "c"}, // upstream: names of PreFilter do not count there
		{sets.New("a", "b"), "c", "c", "a", "c a b"},
		{nil, "b", "", "b", "b"},
		{nil, "b", "b", "a", "b a b c"},
		{nil, "nowhere", "", "a", "a b c"},
	} {
		log, named, rejected = nil, tt.named, tt.rejected
		pod := plugintest.Pod("p")
		pod.Status.NominatedNodeName = tt.nominated
		out, _ := w.place(pod)
		calls := strings.ReplaceAll(strings.Join(log[1:], " "), "A Filter ", "")
		if got := w.Store.Snapshot().NodeName(out.Node); got != tt.node || calls != tt.calls {
			t.Errorf("%+v: node %s, Filter of %s", tt, got, calls)
		}
		if _, why := w.placer.WhyNot(w.Store.Snapshot(), out, 2); tt.rejected == "c" && !slices.Equal(why, []string{"busy"}) {
			t.Errorf("%+v: node c is rejected because of %q", tt, why)
		}
	}
}

// TestSharedState: the plugins of a profile share the CycleState of a decision, and the next decision has another one.
func TestSharedState(t *testing.T) {
	var read []bool
	a := &scripted{name: "A", preFilter: func(state fwk.CycleState, p *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
		if p.Name == "first" {
			state.Write("k", &counted{1})
		}
		return nil, nil
	}}
	b := &scripted{name: "B", preFilter: func(state fwk.CycleState, _ *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
		_, err := state.Read("k")
		read = append(read, err == nil)
		return nil, nil
	}}
	w := newWorld(t, nil, filterPoints, a, b).nodes("a")
	w.place(plugintest.Pod("first"))
	w.place(plugintest.Pod("second"))
	if !slices.Equal(read, []bool{true, false}) {
		t.Errorf("B read what A wrote: %v, want true in the first decision only", read)
	}
}

// TestWithoutObject: a record without its object fails the attempt and calls no plugin.
func TestWithoutObject(t *testing.T) {
	var log []string
	w := newWorld(t, nil, filterPoints, &scripted{name: "A", log: &log}).nodes("a")
	rec := *w.Intake.PendingPod(plugintest.Pod("p"))
	rec.Full = nil
	out := w.placer.Place(w.Store.Snapshot(), &rec, nominations{}, func(int) int { return 0 })
	if out.Err == nil || !strings.Contains(out.Err.Error(), "object of pod ns/p is not known") || len(log) > 0 {
		t.Errorf("error %v, calls %v", out.Err, log)
	}
}
