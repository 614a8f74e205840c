// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// deviceClass backs an extended resource; none when that is empty.
func deviceClass(name, resource string) *resourceapi.DeviceClass {
	c := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if resource != "" {
		c.Spec.ExtendedResourceName = &resource
	}
	return c
}

// Where a device class backs a resource, NodeResourcesFit leaves it to DynamicResources, except on nodes that offer it
// themselves. Mutant: fit-backed-checked.
func TestFitLeavesWhatAClassBacks(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("without", plugintest.Allocatable("cpu", "2", "pods", "3")), plugintest.Node("zero", plugintest.Allocatable("example.com/gpu", "0", "pods", "3")),
		plugintest.Node("with", plugintest.Allocatable("example.com/gpu", "1", "pods", "3")))
	one, two := plugintest.Pod("p", plugintest.Requests("example.com/gpu", "1")), plugintest.Pod("p", plugintest.Requests("example.com/gpu", "2"))
	implicit := plugintest.Pod("p", plugintest.Requests("deviceclass.resource.kubernetes.io/gpu", "1"))
	expect := func(when string, pod string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s, %s: %q, want %q", when, pod, got, want)
		}
	}
	short := []string{"Insufficient example.com/gpu"}
	for _, n := range []string{"without", "zero"} {
		got, _ := w.Reasons(t, defaultFit(), one, n)
		expect("no class", "one on "+n, got, short)
	}
	got, _ := w.Reasons(t, defaultFit(), implicit, "without")
	expect("no class", "implicit", got, []string{"Insufficient deviceclass.resource.kubernetes.io/gpu"})

	w.With(deviceClass("gpu", "example.com/gpu"))
	for _, n := range []string{"without", "zero"} {
		got, _ := w.Reasons(t, defaultFit(), two, n)
		expect("a class", "two on "+n, got, nil)
	}
	got, _ = w.Reasons(t, defaultFit(), implicit, "without")
	expect("a class", "implicit", got, nil)
	got, unresolvable := w.Reasons(t, defaultFit(), two, "with")
	expect("a class", "two where the node offers one", got, short)
	if !unresolvable {
		t.Errorf("two where the node offers one is resolvable")
	}
	got, _ = w.Reasons(t, defaultFit(), one, "with")
	expect("a class", "one where the node offers one", got, nil)
}

// The verdicts of a prepared filter hold until a class changes, for pods that may ask for what classes back.
func TestFitVersionOfDeviceClasses(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("n"))
	s := w.Store.Snapshot()
	version := func(resource string) uint64 {
		p := w.Intake.PendingPod(plugintest.Pod("p", plugintest.Requests(resource, "1")))
		return plugin.VersionOf(defaultFit().PrepareFilter(s, p).Filter, s)
	}
	gpu, cpu := version("example.com/gpu"), version("cpu")
	w.With(deviceClass("any", ""))
	if version("example.com/gpu") == gpu || version("cpu") != cpu {
		t.Fatalf("after a change of classes: gpu %d and now %d, cpu %d and now %d", gpu, version("example.com/gpu"), cpu,
			version("cpu"))
	}
}

// Mutant: fit-hint-any-class.
func TestFitWakesOnDeviceClasses(t *testing.T) {
	in := convert.NewIntake()
	p := in.Pod(plugintest.Pod("p", plugintest.Requests("example.com/gpu", "1", "deviceclass.resource.kubernetes.io/tpu", "1")))
	for _, story := range []struct {
		name     string
		old, now *resourceapi.DeviceClass
		want     plugin.Hint
	}{
		{"a class for the resource", nil, deviceClass("gpu", "example.com/gpu"), plugin.QueueHint},
		{"a class by its own name", nil, deviceClass("tpu", ""), plugin.QueueHint},
		{"a class for something else", nil, deviceClass("gpu", "example.com/other"), plugin.SkipHint},
		{"a class begins to back it", deviceClass("gpu", ""), deviceClass("gpu", "example.com/gpu"), plugin.QueueHint},
		{"a class backs it as before", deviceClass("gpu", "example.com/gpu"), deviceClass("gpu", "example.com/gpu"), plugin.SkipHint},
		{"a class stops backing it", deviceClass("gpu", "example.com/gpu"), deviceClass("gpu", ""), plugin.SkipHint},
		{"an update of the class by its own name", deviceClass("tpu", ""), deviceClass("tpu", "example.com/other"), plugin.SkipHint},
	} {
		ch := plugin.Change{Event: plugin.Event{Resource: plugin.DeviceClassObject, Action: plugin.Update}, NewObject: story.now}
		if story.old == nil {
			ch.Event.Action = plugin.Add
		} else {
			ch.OldObject = story.old
		}
		if got, asked := plugintest.HintOf(defaultFit(), p, ch); !asked || got != story.want {
			t.Errorf("%s: hint %v (asked: %v), want %v", story.name, got, asked, story.want)
		}
	}
}

// A node that does not offer the resource may help a pod whose resource a class backs: slices may come with it.
func TestFitWakesOnNodesForBackedResources(t *testing.T) {
	w := plugintest.NewCluster().With(deviceClass("gpu", "example.com/gpu"))
	p := w.Intake.Pod(plugintest.Pod("p", plugintest.Requests("example.com/gpu", "1")))
	plain, grown := w.Intake.Node(plugintest.Node("n", plugintest.Allocatable("cpu", "1"))), w.Intake.Node(plugintest.Node("n", plugintest.Allocatable("cpu", "2")))
	for _, state := range []cluster.Snapshot{w.Store.Snapshot(), plugintest.NewCluster().Store.Snapshot()} {
		want := plugin.SkipHint
		if state == w.Store.Snapshot() {
			want = plugin.QueueHint
		}
		add := plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, NewNode: plain, State: state}
		if got, _ := plugintest.HintOf(defaultFit(), p, add); got != want {
			t.Errorf("a new node: hint %v, want %v", got, want)
		}
		update := plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeAllocatable}, OldNode: plain, NewNode: grown, State: state}
		if got, _ := plugintest.HintOf(defaultFit(), p, update); got != want {
			t.Errorf("a node that grew: hint %v, want %v", got, want)
		}
	}
}

func TestFitFormsAgreeWithDeviceClasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, nodes := plugintest.RandomCluster(t, 40)
		for _, name := range plugintest.ExtendedResources {
			if plugintest.Chance(t, 50, "backs "+name) {
				w.With(deviceClass("class-"+name, name))
			}
		}
		s := w.Store.Snapshot()
		p := w.Intake.PendingPod(plugintest.RandomPod(t, "pending", nodes))
		plugintest.CheckForms(t, s, plugintest.Prepare(s, p, []plugin.Plugin{defaultFit()}), 0, cluster.NodeIdx(s.Rows()))
	})
}

// twoOfFour says that a class backs example.com/gpu: four devices on every node, of which as many are taken as it says.
type twoOfFour struct{ taken int64 }

func (c *twoOfFour) Revision(cluster.Snapshot) uint64 { return uint64(c.taken) }

func (c *twoOfFour) Count(_ cluster.Snapshot, _ cluster.NodeIdx, name v1.ResourceName) (devices, taken int64) {
	if name != "example.com/gpu" {
		return 0, 0
	}
	return 4, c.taken
}

// Devices count for the score of the resource that they back, on nodes that offer none of it themselves. Mutant:
// score-devices-uncounted.
func TestScoresCountDevices(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("devices", plugintest.Allocatable("cpu", "4")), plugintest.Node("plugin", plugintest.Allocatable("cpu", "4", "example.com/gpu", "2")))
	counts := &twoOfFour{2}
	gpu, one := []WeightedResource{{"example.com/gpu", 1}}, plugintest.Pod("p", plugintest.Requests("example.com/gpu", "1"))
	fit := plugintest.Must(NewNodeResourcesFit(FitArgs{Strategy: MostAllocated, Resources: gpu})).WithDevices(counts).(plugin.Scorer)
	for nodeName, want := range map[string]int64{"devices": 75, "plugin": 50} {
		if got, _ := w.Score(t, fit, one, nodeName); got != want {
			t.Errorf("MostAllocated on %s: %d, want %d", nodeName, got, want)
		}
	}
	balanced := plugintest.Must(NewNodeResourcesBalancedAllocation(BalancedArgs{append(DefaultBalancedArgs().Resources[:1:1], gpu...)})).WithDevices(counts).(plugin.Scorer)
	// The node without the pod: no CPU, half of the devices; with it, three quarters.
	if got, _ := w.Score(t, balanced, one, "devices"); got != 50+(50+62-75)/2 {
		t.Errorf("balance: %d, want %d", got, 50+(50+62-75)/2)
	}
	s := w.Store.Snapshot()
	asking := fit.PrepareScore(s, w.Intake.Pod(one))
	silent := fit.PrepareScore(s, w.Intake.Pod(plugintest.Pod("q", plugintest.Requests("cpu", "1"))))
	before, quiet := plugin.VersionOf(asking, s), plugin.VersionOf(silent, s)
	counts.taken = 3
	if plugin.VersionOf(asking, s) == before || plugin.VersionOf(silent, s) != quiet {
		t.Errorf("versions after a device was taken: %d to %d for a pod that requests one, %d to %d for one that does not",
			before, plugin.VersionOf(asking, s), quiet, plugin.VersionOf(silent, s))
	}
}
