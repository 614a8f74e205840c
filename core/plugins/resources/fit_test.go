// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

func defaultFit() *NodeResourcesFit { return plugintest.Must(NewNodeResourcesFit(DefaultFitArgs())) }

// What fits beside what, and the words for what does not. The node offers 2 CPU, 4Gi memory, 10Gi ephemeral storage,
// 2 devices and capacity for 3 pods. Mutants: all of fit-*.
func TestFitTellsWhatIsMissing(t *testing.T) {
	taken := func(pairs ...string) *v1.Pod {
		return plugintest.Pod("taken", plugintest.Requests(pairs...), plugintest.OnNode("n"))
	}
	sidecar := func(p *v1.Pod) {
		always := v1.ContainerRestartPolicyAlways
		p.Spec.InitContainers[0].RestartPolicy = &always
	}
	for _, story := range []struct {
		name         string
		there        []any
		pod          *v1.Pod
		want         []string
		unresolvable bool
	}{
		{name: "an empty pod on an empty node", pod: plugintest.Pod("p", plugintest.Requests())},
		{name: "all that is free", there: []any{taken("cpu", "1500m")}, pod: plugintest.Pod("p", plugintest.Requests("cpu", "500m"))},
		{name: "a little more than is free", there: []any{taken("cpu", "1500m")}, pod: plugintest.Pod("p", plugintest.Requests("cpu", "501m")),
			want: []string{"Insufficient cpu"}},
		{name: "all the node has", pod: plugintest.Pod("p", plugintest.Requests("cpu", "2"))},
		{name: "more than the node has", pod: plugintest.Pod("p", plugintest.Requests("cpu", "2001m")),
			want: []string{"Insufficient cpu"}, unresolvable: true},
		{name: "memory alone", there: []any{taken("memory", "3Gi")}, pod: plugintest.Pod("p", plugintest.Requests("memory", "2Gi")),
			want: []string{"Insufficient memory"}},
		{name: "memory beside CPU that fits", there: []any{taken("memory", "3Gi")}, pod: plugintest.Pod("p", plugintest.Requests("cpu", "1", "memory", "2Gi")),
			want: []string{"Insufficient memory"}},
		{name: "ephemeral storage", there: []any{taken("ephemeral-storage", "6Gi")}, pod: plugintest.Pod("p", plugintest.Requests("ephemeral-storage", "5Gi")),
			want: []string{"Insufficient ephemeral-storage"}},
		{name: "a device too many", there: []any{taken("example.com/gpu", "1")}, pod: plugintest.Pod("p", plugintest.Requests("example.com/gpu", "2")),
			want: []string{"Insufficient example.com/gpu"}},
		{name: "a device that no node has", pod: plugintest.Pod("p", plugintest.Requests("absent.org/thing", "1")),
			want: []string{"Insufficient absent.org/thing"}, unresolvable: true},
		{name: "a device asked for with 0", pod: plugintest.Pod("p", plugintest.Requests("absent.org/thing", "0"))},
		{name: "a pod that asks for nothing, on an oversold node", there: []any{taken("cpu", "3", "memory", "9Gi")}, pod: plugintest.Pod("p", plugintest.Requests())},
		{name: "only what is asked for is compared", there: []any{taken("cpu", "3")}, pod: plugintest.Pod("p", plugintest.Requests("memory", "1Gi"))},
		{name: "the last place", there: []any{plugintest.Pod("a", plugintest.Requests(), plugintest.OnNode("n")), plugintest.Pod("b", plugintest.Requests(), plugintest.OnNode("n"))}, pod: plugintest.Pod("p", plugintest.Requests())},
		{name: "no place left, which an eviction can change",
			there: []any{plugintest.Pod("a", plugintest.Requests(), plugintest.OnNode("n")), plugintest.Pod("b", plugintest.Requests(), plugintest.OnNode("n")), plugintest.Pod("c", plugintest.Requests(), plugintest.OnNode("n"))},
			pod:   plugintest.Pod("p", plugintest.Requests()), want: []string{"Too many pods"}},
		{name: "everything at once, in upstream's order",
			there: []any{plugintest.Pod("a", plugintest.Requests(), plugintest.OnNode("n")), plugintest.Pod("b", plugintest.Requests(), plugintest.OnNode("n")), taken("cpu", "1", "memory", "3Gi", "ephemeral-storage", "9Gi", "example.com/gpu", "2")},
			pod:   plugintest.Pod("p", plugintest.Requests("cpu", "2", "memory", "2Gi", "ephemeral-storage", "2Gi", "example.com/gpu", "1")),
			want:  []string{"Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage", "Insufficient example.com/gpu"}},
		{name: "one hopeless reason makes the node hopeless", there: []any{taken("cpu", "1500m")}, pod: plugintest.Pod("p", plugintest.Requests("cpu", "1", "memory", "5Gi")),
			want: []string{"Insufficient cpu", "Insufficient memory"}, unresolvable: true},
		{name: "overhead counts", pod: plugintest.Pod("p", plugintest.Requests("cpu", "1500m"), plugintest.Overhead("cpu", "501m")),
			want: []string{"Insufficient cpu"}, unresolvable: true},
		{name: "the largest init container counts", pod: plugintest.Pod("p", plugintest.Requests("cpu", "1"), plugintest.InitRequests("cpu", "1"), plugintest.InitRequests("cpu", "2100m")),
			want: []string{"Insufficient cpu"}, unresolvable: true},
		{name: "init containers do not add up", pod: plugintest.Pod("p", plugintest.Requests("cpu", "1"), plugintest.InitRequests("cpu", "1500m"), plugintest.InitRequests("cpu", "1500m"))},
		{name: "sidecars add to containers", pod: plugintest.Pod("p", plugintest.Requests("cpu", "1500m"), plugintest.InitRequests("cpu", "501m"), sidecar),
			want: []string{"Insufficient cpu"}, unresolvable: true},
	} {
		t.Run(story.name, func(t *testing.T) {
			w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Allocatable("cpu", "2", "memory", "4Gi", "ephemeral-storage", "10Gi", "example.com/gpu", "2", "pods", "3")))
			w.With(story.there...)
			got, unresolvable := w.Reasons(t, defaultFit(), story.pod, "n")
			if !slices.Equal(got, story.want) || unresolvable != story.unresolvable {
				t.Errorf("got %q (unresolvable %v), want %q (unresolvable %v)", got, unresolvable, story.want, story.unresolvable)
			}
		})
	}
}

// The configuration can take extended resources out of the filter, by name or by all that stands before the slash.
// Mutants: fit-ignored-counts, fit-group-by-prefix.
func TestFitIgnoresWhatTheConfigurationSays(t *testing.T) {
	for _, story := range []struct {
		name    string
		ignored []string
		groups  []string
		asks    string
		fits    bool
	}{
		{"by name", []string{"example.com/gpu"}, nil, "example.com/gpu", true},
		{"another of the group is checked", []string{"example.com/gpu"}, nil, "example.com/fpga", false},
		{"by group", nil, []string{"example.com"}, "example.com/gpu", true},
		{"a group is a whole name", nil, []string{"example"}, "example.com/gpu", false},
		{"huge pages are no extended resource", []string{"hugepages-2Mi"}, nil, "hugepages-2Mi", false},
		{"CPU cannot be ignored", []string{"cpu"}, nil, "cpu", false},
	} {
		t.Run(story.name, func(t *testing.T) {
			args := DefaultFitArgs()
			args.IgnoredResources, args.IgnoredResourceGroups = story.ignored, story.groups
			w := plugintest.NewCluster().With(plugintest.Node("n"))
			reasons, _ := w.Reasons(t, plugintest.Must(NewNodeResourcesFit(args)), plugintest.Pod("p", plugintest.Requests(story.asks, "1")), "n")
			if fits := len(reasons) == 0; fits != story.fits {
				t.Errorf("fits: %v (%q), want %v", fits, reasons, story.fits)
			}
		})
	}
}

// A request that int64 cannot hold lands nowhere, not even where the node's quantity overflows as well. Upstream reads
// 50E of memory as 0 and takes any node. Mutant: fit-overflow-lands.
func TestFitRefusesOverflowedRequests(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("huge", plugintest.Allocatable("cpu", "50E", "memory", "50E", "example.com/gpu", "50E")), plugintest.Node("small", plugintest.Allocatable("cpu", "1", "memory", "1Gi")))
	for _, name := range []string{"cpu", "memory", "example.com/gpu"} {
		for _, on := range []string{"huge", "small"} {
			got, unresolvable := w.Reasons(t, defaultFit(), plugintest.Pod("p", plugintest.Requests(name, "50E")), on)
			if want := []string{"Insufficient " + name}; !slices.Equal(got, want) || !unresolvable {
				t.Errorf("50E of %s on the %s node: %q (unresolvable %v), want %q", name, on, got, unresolvable, want)
			}
		}
	}
	if got, _ := w.Reasons(t, defaultFit(), plugintest.Pod("p", plugintest.Requests("memory", "8E"), plugintest.Requests("memory", "8E")), "huge"); len(got) == 0 {
		t.Errorf("two containers of 8E each fit, their sum is more than int64 holds")
	}
	if got, _ := w.Reasons(t, defaultFit(), plugintest.Pod("p", plugintest.Requests("memory", "5E")), "huge"); len(got) != 0 {
		t.Errorf("5E, which int64 holds, on a node that overflows: %q", got)
	}
}

// A node that has not reported what it offers takes no pod.
func TestFitOnNodeWithoutAllocatable(t *testing.T) {
	n := plugintest.Node("n")
	n.Status.Allocatable = nil
	w := plugintest.NewCluster().With(n)
	got, unresolvable := w.Reasons(t, defaultFit(), plugintest.Pod("p", plugintest.Requests("cpu", "1")), "n")
	if want := []string{"Too many pods", "Insufficient cpu"}; !slices.Equal(got, want) || !unresolvable {
		t.Errorf("got %q (unresolvable %v), want %q, unresolvable", got, unresolvable, want)
	}
}

// Limits of hugepages-2Mi: 100Mi and hugepages-1Gi: 2Gi need 50 pages of the one and 2 of the other on one node; the
// pages are counted apart from memory and never overcommitted. Mutant: fit-scalar-free.
func TestFitHugePages(t *testing.T) {
	limits := plugintest.ResourceList("hugepages-2Mi", "100Mi", "hugepages-1Gi", "2Gi", "memory", "100Mi", "cpu", "1")
	hungry := plugintest.Pod("hungry", plugintest.Requests())
	hungry.Spec.Containers[0].Resources = v1.ResourceRequirements{Limits: limits, Requests: limits}
	for _, story := range []struct {
		two, one string
		want     []string
	}{
		{"100Mi", "2Gi", nil},
		{"98Mi", "2Gi", []string{"Insufficient hugepages-2Mi"}},
		{"100Mi", "1Gi", []string{"Insufficient hugepages-1Gi"}},
		{"0", "0", []string{"Insufficient hugepages-1Gi", "Insufficient hugepages-2Mi"}},
	} {
		w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Allocatable("cpu", "4", "memory", "1Gi", "hugepages-2Mi", story.two, "hugepages-1Gi", story.one)))
		if got, _ := w.Reasons(t, defaultFit(), hungry, "n"); !slices.Equal(got, story.want) {
			t.Errorf("%s of 2Mi pages and %s of 1Gi pages: %q, want %q", story.two, story.one, got, story.want)
		}
	}
	w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Allocatable("cpu", "4", "memory", "1Gi", "hugepages-2Mi", "198Mi", "hugepages-1Gi", "8Gi")))
	first := hungry.DeepCopy()
	first.UID, first.Spec.NodeName = "uid-first", "n"
	w.With(first)
	got, unresolvable := w.Reasons(t, defaultFit(), hungry, "n")
	if want := []string{"Insufficient hugepages-2Mi"}; !slices.Equal(got, want) || unresolvable {
		t.Errorf("49 pages left of 99: %q (unresolvable %v), want %q, resolvable", got, unresolvable, want)
	}
}

// A pod may ask for more resources than a verdict has bits, and still gets a reason for each one that is missing.
func TestFitManyResources(t *testing.T) {
	var want []string
	ask, have := []string{"cpu", "1"}, []string{"cpu", "1"}
	for i := range 30 {
		name := fmt.Sprintf("example.com/r%02d", i)
		ask = append(ask, name, "2")
		if i%3 == 0 {
			have = append(have, name, "1")
			want = append(want, "Insufficient "+name)
		} else {
			have = append(have, name, "2")
		}
	}
	w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Allocatable(have...)))
	got, unresolvable := w.Reasons(t, defaultFit(), plugintest.Pod("p", plugintest.Requests(ask...)), "n")
	if !slices.Equal(got, want) || !unresolvable {
		t.Errorf("got %q (unresolvable %v), want %q, unresolvable", got, unresolvable, want)
	}
}

// The last resource that has a bit, and the first that has none, are reported like all others: one that is taken can
// come free, one that is not offered cannot.
func TestFitAsManyResourcesAsBits(t *testing.T) {
	for _, count := range []int{maxScalars, maxScalars + 1} {
		var ask, have []string
		for i := range count {
			ask = append(ask, fmt.Sprintf("example.com/r%02d", i), "1")
			have = append(have, fmt.Sprintf("example.com/r%02d", i), "1")
		}
		last := ask[len(ask)-2]
		w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Allocatable(have...)), plugintest.Pod("taken", plugintest.Requests(last, "1"), plugintest.OnNode("n")))
		got, unresolvable := w.Reasons(t, defaultFit(), plugintest.Pod("p", plugintest.Requests(ask...)), "n")
		if want := []string{"Insufficient " + last}; !slices.Equal(got, want) || unresolvable {
			t.Errorf("%d resources: got %q (unresolvable %v), want %q, resolvable", count, got, unresolvable, want)
		}
	}
}

// Which changes give a pod that Fit rejected another try. Mutants: fit-hint-*.
func TestFitWakes(t *testing.T) {
	in := convert.NewIntake()
	waiting := in.Pod(plugintest.Pod("waiting", plugintest.Requests("cpu", "2", "example.com/gpu", "1")))
	idle := in.Pod(plugintest.Pod("idle", plugintest.Requests()))
	big := plugintest.Allocatable("cpu", "4", "memory", "8Gi", "example.com/gpu", "1")
	bound := func(cpu, memory string) *v1.Pod {
		return plugintest.Pod("other", plugintest.Requests("cpu", cpu, "memory", memory), plugintest.OnNode("n"))
	}
	ignoring := DefaultFitArgs()
	ignoring.IgnoredResources = []string{"example.com/gpu"}
	for _, story := range []struct {
		name     string
		pod      *cluster.Pod
		event    plugin.Event
		old, new any
		args     FitArgs
		want     plugin.Hint
	}{
		{"a node that fits", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, plugintest.Node("n", big), DefaultFitArgs(), plugin.QueueHint},
		{"a node that is too small", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, plugintest.Node("n", plugintest.Allocatable("cpu", "1", "example.com/gpu", "1")), DefaultFitArgs(), plugin.SkipHint},
		{"a node without the device", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, plugintest.Node("n", plugintest.Allocatable("cpu", "4")), DefaultFitArgs(), plugin.SkipHint},
		{"the hint does not know what the filter ignores", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, plugintest.Node("n", plugintest.Allocatable("cpu", "4")), ignoring, plugin.SkipHint},
		{"a node that allows no pods", idle, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, plugintest.Node("n", plugintest.Allocatable("pods", "0")), DefaultFitArgs(), plugin.SkipHint},
		{"a node that grew in what is asked for", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeAllocatable}, plugintest.Node("n", big, plugintest.Allocatable("cpu", "3")), plugintest.Node("n", big), DefaultFitArgs(), plugin.QueueHint},
		{"a node that grew in something else", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeAllocatable}, plugintest.Node("n", big, plugintest.Allocatable("memory", "1Gi")), plugintest.Node("n", big), DefaultFitArgs(), plugin.SkipHint},
		{"a node that allows more pods", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeAllocatable}, plugintest.Node("n", big, plugintest.Allocatable("pods", "3")), plugintest.Node("n", big), DefaultFitArgs(), plugin.QueueHint},
		{"a node that shrank", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeAllocatable}, plugintest.Node("n", big, plugintest.Allocatable("cpu", "8")), plugintest.Node("n", big), DefaultFitArgs(), plugin.SkipHint},
		{"a pod that leaves a node", waiting, plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, bound("1", "1Gi"), nil, DefaultFitArgs(), plugin.QueueHint},
		{"a nominated pod that goes", waiting, plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, plugintest.Pod("other", plugintest.Nominated("n")), nil, DefaultFitArgs(), plugin.QueueHint},
		{"a pending pod that goes", waiting, plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, plugintest.Pod("other"), nil, DefaultFitArgs(), plugin.SkipHint},
		{"a pod that gives back CPU", waiting, plugin.Event{Resource: plugin.AssignedPod, Action: plugin.UpdatePodScaleDown}, bound("2", "1Gi"), bound("1", "1Gi"), DefaultFitArgs(), plugin.QueueHint},
		{"a pod that gives back memory", waiting, plugin.Event{Resource: plugin.AssignedPod, Action: plugin.UpdatePodScaleDown}, bound("2", "2Gi"), bound("2", "1Gi"), DefaultFitArgs(), plugin.SkipHint},
		{"the pod itself asks for less", waiting, plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodScaleDown}, plugintest.Pod("waiting", plugintest.Requests("cpu", "3")), plugintest.Pod("waiting", plugintest.Requests("cpu", "2")), DefaultFitArgs(), plugin.QueueHint},
	} {
		t.Run(story.name, func(t *testing.T) {
			got, asked := plugintest.HintOf(plugintest.Must(NewNodeResourcesFit(story.args)), story.pod, plugintest.ChangeOf(in, story.event, story.old, story.new))
			if !asked || got != story.want {
				t.Errorf("hint %v (asked: %v), want %v", got, asked, story.want)
			}
		})
	}
	if _, asked := plugintest.HintOf(defaultFit(), waiting, plugintest.ChangeOf(in, plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeTaint}, plugintest.Node("n"), plugintest.Node("n"))); asked {
		t.Errorf("a change of taints asks NodeResourcesFit")
	}
	if _, asked := plugintest.HintOf(defaultFit(), waiting, plugintest.ChangeOf(in, plugin.Event{Resource: plugin.UnscheduledPod, Action: plugin.UpdatePodScaleDown}, plugintest.Pod("other"), plugintest.Pod("other"))); asked {
		t.Errorf("a change of another pod that waits asks NodeResourcesFit")
	}
}

// Arguments that upstream's validation refuses are refused with the plugin and the field in the message.
func TestFitArguments(t *testing.T) {
	good := DefaultFitArgs()
	for _, story := range []struct {
		name string
		bend func(*FitArgs)
		want string
	}{
		{"unknown strategy", func(a *FitArgs) { a.Strategy = "Best" }, `scoringStrategy: unknown type "Best"`},
		{"no resources", func(a *FitArgs) { a.Resources = nil }, "no resources"},
		{"weight 0", func(a *FitArgs) { a.Resources = []WeightedResource{{"cpu", 0}} }, "resource weight of cpu not in valid range (0, 100]: 0"},
		{"weight 101", func(a *FitArgs) { a.Resources = []WeightedResource{{"cpu", 101}} }, "not in valid range (0, 100]: 101"},
		{"a shape for LeastAllocated", func(a *FitArgs) { a.Shape = []plugin.ShapePoint{{Utilization: 0, Score: 0}} }, "a shape goes with"},
		{"no shape", func(a *FitArgs) { a.Strategy = RequestedToCapacityRatio }, "at least one point"},
		{"a shape out of order", func(a *FitArgs) {
			a.Strategy, a.Shape = RequestedToCapacityRatio, []plugin.ShapePoint{{Utilization: 50, Score: 0}, {Utilization: 50, Score: 1}}
		}, "sorted in increasing order"},
		{"a shape point above 100", func(a *FitArgs) {
			a.Strategy, a.Shape = RequestedToCapacityRatio, []plugin.ShapePoint{{Utilization: 101, Score: 0}}
		}, "utilization 101"},
		{"a score above 10", func(a *FitArgs) {
			a.Strategy, a.Shape = RequestedToCapacityRatio, []plugin.ShapePoint{{Utilization: 1, Score: 11}}
		}, "score 11"},
		{"a group with a slash", func(a *FitArgs) { a.IgnoredResourceGroups = []string{"a/b"} }, `"a/b" can't contain '/'`},
	} {
		args := good
		story.bend(&args)
		_, err := NewNodeResourcesFit(args)
		if err == nil || !strings.Contains(err.Error(), story.want) || !strings.Contains(err.Error(), NodeResourcesFitName) {
			t.Errorf("%s: %v, want %q", story.name, err, story.want)
		}
	}
}

// Free capacity is a difference that does not wrap, whatever the amounts.
func TestFitNeverWraps(t *testing.T) {
	nd := need{name: v1.ResourceMemory, amount: 1, code: shortOfMemory}
	for _, c := range []struct {
		used, alloc int64
		short       bool
	}{
		{resource.Overflowed, 0, true},
		{resource.Overflowed, resource.Overflowed, true},
		{0, resource.Overflowed, false},
		{1, math.MinInt64, true},
	} {
		if short, _ := nd.judge(c.used, c.alloc); short != c.short {
			t.Errorf("1 asked, %d of %d used: short %v, want %v", c.used, c.alloc, short, c.short)
		}
	}
}
