// SPDX-License-Identifier: Apache-2.0

package fakenodes

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/localcluster/admission"
)

var now = time.Unix(1_000_000, 0)

func stagesNamed(t *testing.T, name string) Stages {
	t.Helper()
	s, err := StagesByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// life plays a pod's steps on, with time going by, until nothing is left to do
// or it is removed; it returns the phases it went through and the time taken.
func life(s Stages, v view) (phases []v1.PodPhase, took time.Duration, removed bool) {
	at := now
	for range 10 {
		step := s.next(v, at)
		switch {
		case step.remove:
			return phases, at.Sub(now), true
		case step.status != nil:
			p := v.pod.DeepCopy()
			p.Status = *step.status
			v.pod = p
			phases = append(phases, p.Status.Phase)
		case step.wait > 0:
			at = at.Add(step.wait)
		default:
			return phases, at.Sub(now), false
		}
	}
	panic("a pod's life has no end")
}

func place(p *v1.Pod, state podState) view {
	n := node("n", "4")
	n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.7"}}
	return view{pod: p, node: n, state: state}
}

func job(p *v1.Pod) *v1.Pod {
	p.Spec.RestartPolicy = v1.RestartPolicyNever
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j"}}
	return p
}

func deleted(p *v1.Pod, grace time.Duration) *v1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: now.Add(grace)}
	seconds := int64(grace.Seconds())
	p.DeletionGracePeriodSeconds = &seconds
	return p
}

func TestLivesOfPods(t *testing.T) {
	always := func() *v1.Pod {
		p := pod("a", "n", "1")
		p.Spec.RestartPolicy = v1.RestartPolicyAlways
		return p
	}
	failing := job(pod("a", "n", "1"))
	failing.Annotations = map[string]string{RunForAnnotation: "3s", ExitCodeAnnotation: "2"}
	held := deleted(inPhase(always(), v1.PodRunning), 0)
	held.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	for name, test := range map[string]struct {
		stages  string
		view    view
		phases  []v1.PodPhase
		took    time.Duration
		removed bool
	}{
		"fast: runs at once and stays":          {"fast", place(always(), admitted), []v1.PodPhase{v1.PodRunning}, 0, false},
		"fast: a job ends at once":              {"fast", place(job(pod("a", "n", "1")), admitted), []v1.PodPhase{v1.PodRunning, v1.PodSucceeded}, 0, false},
		"fast: a job that fails after a while":  {"fast", place(failing, admitted), []v1.PodPhase{v1.PodRunning, v1.PodFailed}, 3 * time.Second, false},
		"fast: refused pods never run":          {"fast", place(always(), refused), []v1.PodPhase{v1.PodFailed}, 0, false},
		"fast: undecided pods are left alone":   {"fast", place(always(), undecided), nil, 0, false},
		"fast: deletion does not wait":          {"fast", place(deleted(inPhase(always(), v1.PodRunning), time.Minute), admitted), nil, 0, true},
		"fast: a finalizer needs the end first": {"fast", place(held, admitted), []v1.PodPhase{v1.PodFailed}, 0, false},
		"realistic: starting takes a second":    {"realistic", place(always(), admitted), []v1.PodPhase{v1.PodPending, v1.PodRunning}, time.Second, false},
		"realistic: a job takes its time": {"realistic", place(job(pod("a", "n", "1")), admitted),
			[]v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodSucceeded}, 6 * time.Second, false},
		"realistic: grace is honoured": {"realistic", place(deleted(inPhase(always(), v1.PodRunning), time.Minute), admitted),
			[]v1.PodPhase{v1.PodFailed}, time.Minute, true},
		"realistic: what never ran goes at once": {"realistic", place(deleted(always(), time.Minute), undecided),
			[]v1.PodPhase{v1.PodFailed}, 0, true},
		"none: stays as bound":   {"none", place(always(), admitted), nil, 0, false},
		"none: oversell shows":   {"none", place(always(), refused), []v1.PodPhase{v1.PodFailed}, 0, false},
		"none: is still removed": {"none", place(deleted(always(), time.Minute), admitted), nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			phases, took, removed := life(stagesNamed(t, test.stages), test.view)
			if len(phases) != len(test.phases) || took != test.took || removed != test.removed {
				t.Fatalf("phases %v in %s, removed %v; want %v in %s, %v", phases, took, removed, test.phases, test.took, test.removed)
			}
			for i := range phases {
				if phases[i] != test.phases[i] {
					t.Fatalf("phases %v, want %v", phases, test.phases)
				}
			}
		})
	}
}

func TestStatusOfRefused(t *testing.T) {
	v := place(pod("a", "n", "9"), refused)
	v.verdict = admission.Verdict{Reason: "OutOfcpu", Message: "too much"}
	got := stagesNamed(t, "fast").next(v, now).status
	if got.Phase != v1.PodFailed || got.Reason != "OutOfcpu" || got.Message != "Pod was rejected: too much" || got.StartTime == nil {
		t.Errorf("status is %+v", got)
	}
	if len(got.ContainerStatuses) != 0 {
		t.Errorf("containers of a refused pod: %+v", got.ContainerStatuses)
	}
}

// A running pod is what controllers and kubectl expect of one.
func TestStatusOfRunning(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	p := pod("a", "n", "1")
	p.Spec.InitContainers = []v1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
	p.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "gate"}}
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}
	got := stagesNamed(t, "fast").next(place(p, admitted), now).status
	if got.HostIP != "10.0.0.7" || got.PodIP == "" || len(got.ContainerStatuses) != 1 || !got.ContainerStatuses[0].Ready {
		t.Errorf("status is %+v", got)
	}
	if got.InitContainerStatuses[0].State.Terminated == nil || got.InitContainerStatuses[1].State.Running == nil {
		t.Errorf("init containers are %+v; want the first ended, the sidecar running", got.InitContainerStatuses)
	}
	// values: condition -> status.
	values := map[v1.PodConditionType]v1.ConditionStatus{}
	for _, c := range got.Conditions {
		values[c.Type] = c.Status
	}
	for _, want := range []v1.PodConditionType{v1.PodScheduled, v1.PodInitialized, v1.PodReady, v1.ContainersReady, "gate"} {
		if values[want] != v1.ConditionTrue {
			t.Errorf("condition %s is %q, want True", want, values[want])
		}
	}
	if len(p.Status.Conditions) != 1 {
		t.Error("the watched object was changed")
	}
}
