// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

func defaultFit() *NodeResourcesFit { return must(NewNodeResourcesFit(DefaultFitArgs())) }

// What fits beside what, and the words for what does not. The node offers 2 CPU, 4Gi memory, 10Gi ephemeral storage,
// 2 devices and room for 3 pods. Mutants: all of fit-*.
func TestFitTellsWhatIsMissing(t *testing.T) {
	taken := func(pairs ...string) *v1.Pod { return pod("taken", asks(pairs...), onNode("n")) }
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
		{name: "an empty pod on an empty node", pod: pod("p", asks())},
		{name: "all that is free", there: []any{taken("cpu", "1500m")}, pod: pod("p", asks("cpu", "500m"))},
		{name: "a little more than is free", there: []any{taken("cpu", "1500m")}, pod: pod("p", asks("cpu", "501m")),
			want: []string{"Insufficient cpu"}},
		{name: "all the node has", pod: pod("p", asks("cpu", "2"))},
		{name: "more than the node has", pod: pod("p", asks("cpu", "2001m")),
			want: []string{"Insufficient cpu"}, unresolvable: true},
		{name: "memory alone", there: []any{taken("memory", "3Gi")}, pod: pod("p", asks("memory", "2Gi")),
			want: []string{"Insufficient memory"}},
		{name: "memory beside CPU that fits", there: []any{taken("memory", "3Gi")}, pod: pod("p", asks("cpu", "1", "memory", "2Gi")),
			want: []string{"Insufficient memory"}},
		{name: "ephemeral storage", there: []any{taken("ephemeral-storage", "6Gi")}, pod: pod("p", asks("ephemeral-storage", "5Gi")),
			want: []string{"Insufficient ephemeral-storage"}},
		{name: "a device too many", there: []any{taken("example.com/gpu", "1")}, pod: pod("p", asks("example.com/gpu", "2")),
			want: []string{"Insufficient example.com/gpu"}},
		{name: "a device that no node has", pod: pod("p", asks("absent.org/thing", "1")),
			want: []string{"Insufficient absent.org/thing"}, unresolvable: true},
		{name: "a device asked for with 0", pod: pod("p", asks("absent.org/thing", "0"))},
		{name: "a pod that asks for nothing, on an oversold node", there: []any{taken("cpu", "3", "memory", "9Gi")}, pod: pod("p", asks())},
		{name: "only what is asked for is compared", there: []any{taken("cpu", "3")}, pod: pod("p", asks("memory", "1Gi"))},
		{name: "the last place", there: []any{pod("a", asks(), onNode("n")), pod("b", asks(), onNode("n"))}, pod: pod("p", asks())},
		{name: "no place left, which an eviction can change",
			there: []any{pod("a", asks(), onNode("n")), pod("b", asks(), onNode("n")), pod("c", asks(), onNode("n"))},
			pod:   pod("p", asks()), want: []string{"Too many pods"}},
		{name: "everything at once, in upstream's order",
			there: []any{pod("a", asks(), onNode("n")), pod("b", asks(), onNode("n")), taken("cpu", "1", "memory", "3Gi", "ephemeral-storage", "9Gi", "example.com/gpu", "2")},
			pod:   pod("p", asks("cpu", "2", "memory", "2Gi", "ephemeral-storage", "2Gi", "example.com/gpu", "1")),
			want:  []string{"Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage", "Insufficient example.com/gpu"}},
		{name: "one hopeless reason makes the node hopeless", there: []any{taken("cpu", "1500m")}, pod: pod("p", asks("cpu", "1", "memory", "5Gi")),
			want: []string{"Insufficient cpu", "Insufficient memory"}, unresolvable: true},
		{name: "overhead counts", pod: pod("p", asks("cpu", "1500m"), overhead("cpu", "501m")),
			want: []string{"Insufficient cpu"}, unresolvable: true},
		{name: "the largest init container counts", pod: pod("p", asks("cpu", "1"), initAsks("cpu", "1"), initAsks("cpu", "2100m")),
			want: []string{"Insufficient cpu"}, unresolvable: true},
		{name: "init containers do not add up", pod: pod("p", asks("cpu", "1"), initAsks("cpu", "1500m"), initAsks("cpu", "1500m"))},
		{name: "sidecars add to containers", pod: pod("p", asks("cpu", "1500m"), initAsks("cpu", "501m"), sidecar),
			want: []string{"Insufficient cpu"}, unresolvable: true},
	} {
		t.Run(story.name, func(t *testing.T) {
			w := newWorld().with(node("n", offers("cpu", "2", "memory", "4Gi", "ephemeral-storage", "10Gi", "example.com/gpu", "2", "pods", "3")))
			w.with(story.there...)
			got, unresolvable := w.says(t, defaultFit(), story.pod, "n")
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
			w := newWorld().with(node("n"))
			reasons, _ := w.says(t, must(NewNodeResourcesFit(args)), pod("p", asks(story.asks, "1")), "n")
			if fits := len(reasons) == 0; fits != story.fits {
				t.Errorf("fits: %v (%q), want %v", fits, reasons, story.fits)
			}
		})
	}
}

// A request that int64 cannot hold lands nowhere, not even where the node's quantity overflows as well. Upstream reads
// 50E of memory as 0 and takes any node. Mutant: fit-overflow-lands.
func TestFitRefusesOverflowedRequests(t *testing.T) {
	w := newWorld().with(node("huge", offers("cpu", "50E", "memory", "50E", "example.com/gpu", "50E")), node("small", offers("cpu", "1", "memory", "1Gi")))
	for _, name := range []string{"cpu", "memory", "example.com/gpu"} {
		for _, on := range []string{"huge", "small"} {
			got, unresolvable := w.says(t, defaultFit(), pod("p", asks(name, "50E")), on)
			if want := []string{"Insufficient " + name}; !slices.Equal(got, want) || !unresolvable {
				t.Errorf("50E of %s on the %s node: %q (unresolvable %v), want %q", name, on, got, unresolvable, want)
			}
		}
	}
	if got, _ := w.says(t, defaultFit(), pod("p", asks("memory", "8E"), asks("memory", "8E")), "huge"); len(got) == 0 {
		t.Errorf("two containers of 8E each fit, their sum is more than int64 holds")
	}
	if got, _ := w.says(t, defaultFit(), pod("p", asks("memory", "5E")), "huge"); len(got) != 0 {
		t.Errorf("5E, which int64 holds, on a node that overflows: %q", got)
	}
}

// A node that has not reported what it offers takes no pod.
func TestFitOnNodeWithoutAllocatable(t *testing.T) {
	n := node("n")
	n.Status.Allocatable = nil
	w := newWorld().with(n)
	got, unresolvable := w.says(t, defaultFit(), pod("p", asks("cpu", "1")), "n")
	if want := []string{"Too many pods", "Insufficient cpu"}; !slices.Equal(got, want) || !unresolvable {
		t.Errorf("got %q (unresolvable %v), want %q, unresolvable", got, unresolvable, want)
	}
}

// Limits of hugepages-2Mi: 100Mi and hugepages-1Gi: 2Gi need 50 pages of the one and 2 of the other on one node; the
// pages are counted apart from memory and never overcommitted. Mutant: fit-scalar-free.
func TestFitHugePages(t *testing.T) {
	limits := list("hugepages-2Mi", "100Mi", "hugepages-1Gi", "2Gi", "memory", "100Mi", "cpu", "1")
	hungry := pod("hungry", asks())
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
		w := newWorld().with(node("n", offers("cpu", "4", "memory", "1Gi", "hugepages-2Mi", story.two, "hugepages-1Gi", story.one)))
		if got, _ := w.says(t, defaultFit(), hungry, "n"); !slices.Equal(got, story.want) {
			t.Errorf("%s of 2Mi pages and %s of 1Gi pages: %q, want %q", story.two, story.one, got, story.want)
		}
	}
	w := newWorld().with(node("n", offers("cpu", "4", "memory", "1Gi", "hugepages-2Mi", "198Mi", "hugepages-1Gi", "8Gi")))
	first := hungry.DeepCopy()
	first.UID, first.Spec.NodeName = "uid-first", "n"
	w.with(first)
	got, unresolvable := w.says(t, defaultFit(), hungry, "n")
	if want := []string{"Insufficient hugepages-2Mi"}; !slices.Equal(got, want) || unresolvable {
		t.Errorf("49 pages left of 99: %q (unresolvable %v), want %q, resolvable", got, unresolvable, want)
	}
}

// A pod may ask for more resources than a verdict has bits, and still hears of each one that is missing.
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
	w := newWorld().with(node("n", offers(have...)))
	got, unresolvable := w.says(t, defaultFit(), pod("p", asks(ask...)), "n")
	if !slices.Equal(got, want) || !unresolvable {
		t.Errorf("got %q (unresolvable %v), want %q, unresolvable", got, unresolvable, want)
	}
}

// The last resource that has a bit, and the first that has none, are told like all others: one that is taken can come
// free, one that is not offered cannot.
func TestFitAsManyResourcesAsBits(t *testing.T) {
	for _, count := range []int{maxScalars, maxScalars + 1} {
		var ask, have []string
		for i := range count {
			ask = append(ask, fmt.Sprintf("example.com/r%02d", i), "1")
			have = append(have, fmt.Sprintf("example.com/r%02d", i), "1")
		}
		last := ask[len(ask)-2]
		w := newWorld().with(node("n", offers(have...)), pod("taken", asks(last, "1"), onNode("n")))
		got, unresolvable := w.says(t, defaultFit(), pod("p", asks(ask...)), "n")
		if want := []string{"Insufficient " + last}; !slices.Equal(got, want) || unresolvable {
			t.Errorf("%d resources: got %q (unresolvable %v), want %q, resolvable", count, got, unresolvable, want)
		}
	}
}

// Which changes give a pod that Fit rejected another try. Mutants: fit-hint-*.
func TestFitWakes(t *testing.T) {
	in := cluster.NewIntake()
	waiting := in.Pod(pod("waiting", asks("cpu", "2", "example.com/gpu", "1")))
	idle := in.Pod(pod("idle", asks()))
	big := offers("cpu", "4", "memory", "8Gi", "example.com/gpu", "1")
	bound := func(cpu, memory string) *v1.Pod {
		return pod("other", asks("cpu", cpu, "memory", memory), onNode("n"))
	}
	ignoring := DefaultFitArgs()
	ignoring.IgnoredResources = []string{"example.com/gpu"}
	for _, story := range []struct {
		name     string
		pod      *cluster.Pod
		event    Event
		old, new any
		args     FitArgs
		want     Hint
	}{
		{"a node that fits", waiting, Event{Resource: NodeObject, Action: Add}, nil, node("n", big), DefaultFitArgs(), QueueHint},
		{"a node that is too small", waiting, Event{Resource: NodeObject, Action: Add}, nil, node("n", offers("cpu", "1", "example.com/gpu", "1")), DefaultFitArgs(), SkipHint},
		{"a node without the device", waiting, Event{Resource: NodeObject, Action: Add}, nil, node("n", offers("cpu", "4")), DefaultFitArgs(), SkipHint},
		{"the hint does not know what the filter ignores", waiting, Event{Resource: NodeObject, Action: Add}, nil, node("n", offers("cpu", "4")), ignoring, SkipHint},
		{"a node that allows no pods", idle, Event{Resource: NodeObject, Action: Add}, nil, node("n", offers("pods", "0")), DefaultFitArgs(), SkipHint},
		{"a node that grew in what is asked for", waiting, Event{Resource: NodeObject, Action: UpdateNodeAllocatable}, node("n", big, offers("cpu", "3")), node("n", big), DefaultFitArgs(), QueueHint},
		{"a node that grew in something else", waiting, Event{Resource: NodeObject, Action: UpdateNodeAllocatable}, node("n", big, offers("memory", "1Gi")), node("n", big), DefaultFitArgs(), SkipHint},
		{"a node that allows more pods", waiting, Event{Resource: NodeObject, Action: UpdateNodeAllocatable}, node("n", big, offers("pods", "3")), node("n", big), DefaultFitArgs(), QueueHint},
		{"a node that shrank", waiting, Event{Resource: NodeObject, Action: UpdateNodeAllocatable}, node("n", big, offers("cpu", "8")), node("n", big), DefaultFitArgs(), SkipHint},
		{"a pod that leaves a node", waiting, Event{Resource: AssignedPod, Action: Delete}, bound("1", "1Gi"), nil, DefaultFitArgs(), QueueHint},
		{"a nominated pod that goes", waiting, Event{Resource: AssignedPod, Action: Delete}, pod("other", nominated("n")), nil, DefaultFitArgs(), QueueHint},
		{"a pending pod that goes", waiting, Event{Resource: UnscheduledPod, Action: Delete}, pod("other"), nil, DefaultFitArgs(), SkipHint},
		{"a pod that gives back CPU", waiting, Event{Resource: AssignedPod, Action: UpdatePodScaleDown}, bound("2", "1Gi"), bound("1", "1Gi"), DefaultFitArgs(), QueueHint},
		{"a pod that gives back memory", waiting, Event{Resource: AssignedPod, Action: UpdatePodScaleDown}, bound("2", "2Gi"), bound("2", "1Gi"), DefaultFitArgs(), SkipHint},
		{"a pending pod that asks for less", waiting, Event{Resource: UnscheduledPod, Action: UpdatePodScaleDown}, pod("other", asks("cpu", "2")), pod("other", asks("cpu", "1")), DefaultFitArgs(), SkipHint},
		{"the pod itself asks for less", waiting, Event{Resource: UnscheduledPod, Action: UpdatePodScaleDown}, pod("waiting", asks("cpu", "3")), pod("waiting", asks("cpu", "2")), DefaultFitArgs(), QueueHint},
	} {
		t.Run(story.name, func(t *testing.T) {
			got, asked := wakes(must(NewNodeResourcesFit(story.args)), story.pod, changeOf(in, story.event, story.old, story.new))
			if !asked || got != story.want {
				t.Errorf("hint %v (asked: %v), want %v", got, asked, story.want)
			}
		})
	}
	if _, asked := wakes(defaultFit(), waiting, changeOf(in, Event{Resource: NodeObject, Action: UpdateNodeTaint}, node("n"), node("n"))); asked {
		t.Errorf("a change of taints asks NodeResourcesFit")
	}
}

// changeOf makes a change of API objects; nil, or nothing of the kind, where there is none.
func changeOf(in *cluster.Intake, e Event, old, now any) Change {
	ch := Change{Event: e}
	switch o := old.(type) {
	case *v1.Pod:
		ch.OldPod = in.Pod(o)
	case *v1.Node:
		ch.OldNode = in.Node(o)
	}
	switch o := now.(type) {
	case *v1.Pod:
		ch.NewPod = in.Pod(o)
	case *v1.Node:
		ch.NewNode = in.Node(o)
	}
	return ch
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
		{"a shape for LeastAllocated", func(a *FitArgs) { a.Shape = []ShapePoint{{0, 0}} }, "a shape goes with"},
		{"no shape", func(a *FitArgs) { a.Strategy = RequestedToCapacityRatio }, "needs a shape"},
		{"a shape out of order", func(a *FitArgs) {
			a.Strategy, a.Shape = RequestedToCapacityRatio, []ShapePoint{{50, 0}, {50, 1}}
		}, "sorted in increasing order"},
		{"a shape point above 100", func(a *FitArgs) { a.Strategy, a.Shape = RequestedToCapacityRatio, []ShapePoint{{101, 0}} }, "utilization 101"},
		{"a score above 10", func(a *FitArgs) { a.Strategy, a.Shape = RequestedToCapacityRatio, []ShapePoint{{1, 11}} }, "score 11"},
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

// Free room is a difference that does not wrap, whatever the amounts.
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
