// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	res "github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The defaults for scores are added without a second look at a pod whose containers say all they want; the slow twin
// always looks twice. Mutants: statesCPUAndMemory leaves out init containers, or asks for one of the two only.
func TestDefaultsOfScoresAgreeWithTheSlowTwin(t *testing.T) {
	containers := rapid.Custom(func(t *rapid.T) []v1.Container {
		list := make([]v1.Container, rapid.IntRange(0, 3).Draw(t, "containers"))
		for i := range list {
			requests := v1.ResourceList{}
			for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
				if rapid.Bool().Draw(t, "states "+string(name)) {
					requests[name] = *apiresource.NewMilliQuantity(rapid.Int64Range(0, 400_000_000_000).Draw(t,
						string(name)), apiresource.DecimalSI)
				}
			}
			list[i].Resources.Requests = requests
		}
		return list
	})
	always := v1.ContainerRestartPolicyAlways
	rapid.Check(t, func(t *rapid.T) {
		p := &v1.Pod{Spec: v1.PodSpec{Containers: containers.Draw(t, "containers"),
			InitContainers: containers.Draw(t, "init containers")}}
		for i := range p.Spec.InitContainers {
			if rapid.Bool().Draw(t, "sidecar") {
				p.Spec.InitContainers[i].RestartPolicy = &always
			}
		}
		want := cpuAndMemory(resource.PodRequests(p,
			resource.PodResourcesOptions{NonMissingContainerRequests: defaults}))
		s := &cluster.PodSpec{}
		if read(s, p); s.ScoreNonZero != want || s.HeldNonZero != want {
			t.Fatalf("scored with %v, held with %v, want %v", s.ScoreNonZero, s.HeldNonZero, want)
		}
	})
}

// What a pod asks for and holds is read off its containers where their status says the same; the slow twin always
// adds up, with upstream's function. Mutants: settled looks at names alone, or leaves out what is allocated, or init
// containers; askedBy forgets the overhead.
func TestRequestsAgreeWithTheSlowTwin(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	list := func(t *rapid.T) v1.ResourceList {
		requests := v1.ResourceList{}
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "example.com/gpu"} {
			if n := rapid.IntRange(0, 3).Draw(t, string(name)); n > 0 {
				requests[name] = *apiresource.NewMilliQuantity(int64(n)*1500, apiresource.DecimalSI)
			}
		}
		return requests
	}
	rapid.Check(t, func(t *rapid.T) {
		p := &v1.Pod{}
		status := func(c *v1.Container) v1.ContainerStatus {
			st := v1.ContainerStatus{Name: c.Name}
			asked := func() v1.ResourceList {
				if rapid.IntRange(0, 3).Draw(t, "resized") == 0 {
					return list(t)
				}
				return c.Resources.Requests.DeepCopy()
			}
			if rapid.Bool().Draw(t, "has resources") {
				st.Resources = &v1.ResourceRequirements{Requests: asked()}
			}
			if rapid.Bool().Draw(t, "is allocated") {
				st.AllocatedResources = asked()
			}
			return st
		}
		for i := range rapid.IntRange(1, 2).Draw(t, "containers") {
			c := v1.Container{Name: string(rune('a' + i)), Resources: v1.ResourceRequirements{Requests: list(t)}}
			p.Spec.Containers, p.Status.ContainerStatuses = append(p.Spec.Containers, c),
				append(p.Status.ContainerStatuses, status(&c))
		}
		if rapid.IntRange(0, 2).Draw(t, "sidecar") == 0 {
			c := v1.Container{Name: "s", RestartPolicy: &always, Resources: v1.ResourceRequirements{Requests: list(t)}}
			p.Spec.InitContainers, p.Status.InitContainerStatuses = append(p.Spec.InitContainers, c),
				append(p.Status.InitContainerStatuses, status(&c))
		}
		if rapid.IntRange(0, 3).Draw(t, "overhead") == 0 {
			p.Spec.Overhead = list(t)
		}
		if rapid.IntRange(0, 3).Draw(t, "infeasible") == 0 {
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Status: v1.ConditionTrue,
				Reason: v1.PodReasonInfeasible}}
		}
		resized := resource.PodResourcesOptions{UseStatusResources: true,
			InPlacePodLevelResourcesVerticalScalingEnabled: true}
		asks, holds := res.FromList(resource.PodRequests(p, resource.PodResourcesOptions{})),
			res.FromList(resource.PodRequests(p, resized))
		withDefaults := resized
		withDefaults.NonMissingContainerRequests = defaults
		nonZero := cpuAndMemory(resource.PodRequests(p, withDefaults))
		s := &cluster.PodSpec{}
		if read(s, p); !s.Request.Equal(&asks) || !s.Scored.Equal(&asks) || !s.Held.Equal(&holds) ||
			s.HeldNonZero != nonZero {
			t.Fatalf("asks for %+v, holds %+v and with defaults %v; slow twin %+v, %+v and %v", s.Request, s.Held,
				s.HeldNonZero, asks, holds, nonZero)
		}
	})
}

// TestNodesAreEqualWhenNothingDiffers sets one field after the other. Mutant: a field of Node that Equal leaves out.
func TestNodesAreEqualWhenNothingDiffers(t *testing.T) {
	var a, b cluster.Node
	if !a.Equal(&b) {
		t.Error("two empty records differ")
	}
	v := reflect.ValueOf(&a).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Name == "Full" {
			continue // fields that no native plugin reads change with each heartbeat
		}
		eachLeaf(v.Field(i), v.Type().Field(i).Name, 6, func(path string) {
			if a.Equal(&b) || b.Equal(&a) {
				t.Errorf("%s makes no difference", path)
			}
		})
	}
}

// Pods that belong to their node are distinguished from those that a controller creates on any node. Mutants: a
// mirror without its owner is not recognised; every owner counts.
func TestPodsOfTheirNode(t *testing.T) {
	yes := true
	for name, tt := range map[string]struct {
		owner       string
		annotations map[string]string
		want        bool
	}{
		"DaemonSet":        {"DaemonSet", nil, true},
		"static":           {"Node", nil, true},
		"mirror, no owner": {"", map[string]string{v1.MirrorPodAnnotationKey: "hash"}, true},
		"ReplicaSet":       {"ReplicaSet", nil, false},
		"nobody's":         {"", nil, false},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Annotations: tt.annotations}}
		if tt.owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: tt.owner, Name: "owner", Controller: &yes}}
		}
		if got := NewIntake().Pod(p).OfNode; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A pod counts as preempted only while it goes, and only when a scheduler evicted it.
func TestPreempted(t *testing.T) {
	in := NewIntake()
	for _, c := range []struct {
		name      string
		going     bool
		condition v1.PodCondition
		want      bool
	}{
		{"goes for another", true, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: v1.PodReasonPreemptionByScheduler}, true},
		{"is marked and not deleted yet", false, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: v1.PodReasonPreemptionByScheduler}, false},
		{"goes because of a taint", true, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: "DeletionByTaintManager"}, false},
		{"was marked once", true, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionFalse,
			Reason: v1.PodReasonPreemptionByScheduler}, false},
		{"goes by itself", true, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue}, false},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"},
			Status: v1.PodStatus{Conditions: []v1.PodCondition{c.condition}}}
		if c.going {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		if got := in.Pod(p).Preempted; got != c.want {
			t.Errorf("a pod that %s: preempted %v", c.name, got)
		}
	}
}

// TestUnschedulableSince: the time of the condition PodScheduled counts only with the reason Unschedulable.
func TestUnschedulableSince(t *testing.T) {
	at, none := metav1.Unix(1000, 0), metav1.Time{}
	for _, c := range []struct {
		status v1.ConditionStatus
		reason string
		since  metav1.Time
		want   record.Time
	}{
		{v1.ConditionFalse, v1.PodReasonUnschedulable, at, 1000 * record.Second},
		{v1.ConditionFalse, v1.PodReasonUnschedulable, none, 0},
		{v1.ConditionFalse, v1.PodReasonSchedulingGated, at, 0},
		{v1.ConditionFalse, v1.PodReasonSchedulerError, at, 0},
		{v1.ConditionTrue, v1.PodReasonUnschedulable, at, 0},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
		p.Status.Conditions = []v1.PodCondition{
			{Type: v1.PodScheduled, Status: c.status, Reason: c.reason, LastTransitionTime: c.since},
		}
		if got := NewIntake().Pod(p).UnschedulableSince; got != c.want {
			t.Errorf("%s %s at %v: since %d, want %d", c.status, c.reason, c.since, got, c.want)
		}
	}
}

// TestPodsOfOneShapeAreKin: specs that differ in requests only are in one equivalence class, others are not.
func TestPodsOfOneShapeAreKin(t *testing.T) {
	in := NewIntake()
	spec := func(cpu, selector string) *cluster.PodSpec {
		p := &v1.Pod{Spec: v1.PodSpec{NodeSelector: map[string]string{"disk": selector},
			Containers: []v1.Container{{}}}}
		if cpu != "" {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu),
				"example.com/x": apiresource.MustParse("1")}
		}
		return in.Pod(p).Spec.Alike
	}
	small, large, silent, other := spec("1", "ssd"), spec("2", "ssd"), spec("", "ssd"), spec("1", "hdd")
	if small == large || small.WithoutRequests != large.WithoutRequests || small.WithoutRequests != silent.WithoutRequests {
		t.Errorf("pods that differ in requests alone: specs %p and %p, without requests %p, %p and %p", small, large, small.WithoutRequests,
			large.WithoutRequests, silent.WithoutRequests)
	}
	if small.WithoutRequests == other.WithoutRequests || small.WithoutRequests == nil || small.WithoutRequests.WithoutRequests != small.WithoutRequests || small.WithoutRequests.Alike != small.WithoutRequests {
		t.Errorf("pods of another selector: without requests %p and %p", small.WithoutRequests, other.WithoutRequests)
	}
}
