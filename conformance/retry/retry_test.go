// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentmetrics "k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/effects"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/record"
)

// answers are what an API server may answer to a write, by name. The write is carried out for "done" and "lost" only.
var answers = map[string]error{
	"done":        nil,
	"internal":    apierrors.NewInternalError(errors.New("etcdserver: leader changed")),
	"unavailable": apierrors.NewServiceUnavailable("starting"),
	"refused":     fmt.Errorf("dial tcp 127.0.0.1:6443: %w", syscall.ECONNREFUSED),
	"conflict":    apierrors.NewConflict(kubetest.PodResource, "p", errors.New("the object has been modified")),
	"lost":        kubetest.ErrLost,
}

// most is how many answers are drawn; from then on every write is done. Upstream sends a write four times.
const most = 5

// sequences calls f with each list of answers that ends with one that a scheduler has no reason to repeat, or is full.
func sequences(f func(list []string)) {
	names := []string{"done", "internal", "unavailable", "refused", "conflict", "lost"}
	var extend func(list []string)
	extend = func(list []string) {
		if len(list) == most || len(list) > 0 && list[len(list)-1] == "done" {
			f(list)
			return
		}
		for _, name := range names {
			extend(append(slices.Clone(list), name))
		}
	}
	extend(nil)
}

// scripted is an API server with a pod, which answers the calls of a verb from a list.
func scripted(verb string, list []string) *kubetest.APIServer {
	api := kubetest.NewAPIServer(kubetest.PendingPod("p", "u1"))
	calls := 0
	answer := func(v string) string {
		if v != verb || calls >= len(list) {
			return "done"
		}
		return list[calls]
	}
	api.Before = func(v, _ string) error {
		if name := answer(v); name != "lost" {
			if name != "done" {
				calls++
			}
			return answers[name]
		}
		return nil
	}
	api.After = func(v, _ string) error {
		name := answer(v)
		if v == verb {
			calls++
		}
		return answers[name]
	}
	return api
}

// TestBindsThatUpstreamBringsThrough: kumiki binds too, and reports what the API server has. (Of a bind whose answer is
// lost upstream knows nothing; kumiki reads the pod.)
func TestBindsThatUpstreamBringsThrough(t *testing.T) {
	bound, more := 0, 0
	sequences(func(list []string) {
		synctest.Test(t, func(t *testing.T) {
			theirs, ours := scripted("bind", list), scripted("bind", list)
			err := util.BindPod(t.Context(), theirs, &v1.Binding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u1"},
				Target:     v1.ObjectReference{Kind: "Node", Name: "a"}})

			var done engine.BindDone
			b := effects.NewBinder(t.Context(), ours, 0, metrics.New(componentmetrics.NewKubeRegistry()),
				func(d engine.BindDone) { done = d })
			b.Bind(engine.Bind{Pod: kubetest.Ref(kubetest.PendingPod("p", "u1")), Node: "a", Decision: 1})
			time.Sleep(time.Hour)
			synctest.Wait()
			b.Drain(t.Context())

			has := ours.Pod("ns/p").Spec.NodeName == "a"
			switch {
			case err == nil && done.Outcome != engine.Bound:
				t.Errorf("%v: upstream binds, kumiki answers %+v", list, done)
			case has != (done.Outcome == engine.Bound):
				t.Errorf("%v: the pod is bound: %v, kumiki answers %+v", list, has, done)
			case ours.Bound() > 1:
				t.Errorf("%v: bound %d times", list, ours.Bound())
			}
			if err == nil {
				bound++
			} else if has {
				more++
			}
		})
	})
	t.Logf("%d sequences end bound for both, %d for kumiki alone", bound, more)
	if bound < 40 || more == 0 {
		t.Error("too few sequences show anything")
	}
}

// TestPatchesThatUpstreamBringsThrough: a condition that upstream writes, kumiki writes too.
func TestPatchesThatUpstreamBringsThrough(t *testing.T) {
	written := 0
	sequences(func(list []string) {
		synctest.Test(t, func(t *testing.T) {
			theirs, ours := scripted("patch", list), scripted("patch", list)
			pod := kubetest.PendingPod("p", "u1")
			want := pod.Status.DeepCopy()
			want.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse,
				Reason: "Unschedulable", Message: "no node"}}
			err := util.PatchPodStatus(t.Context(), theirs, "p", "ns", &pod.Status, want)

			p := effects.NewPatcher(t.Context(), ours,
				func(record.PodRef) *cluster.Pod { return kubetest.NewRecord(ours.Pod("ns/p")) },
				metrics.New(componentmetrics.NewKubeRegistry()))
			p.Set(engine.Condition{Pod: kubetest.Ref(pod), Reason: "Unschedulable", Message: "no node"})
			time.Sleep(time.Hour)
			synctest.Wait()
			p.Stop()

			has := slices.ContainsFunc(ours.Pod("ns/p").Status.Conditions, func(c v1.PodCondition) bool {
				return c.Type == v1.PodScheduled && strings.Contains(c.Message, "no node")
			})
			if err == nil {
				written++
				if !has {
					t.Errorf("%v: upstream writes the condition, kumiki does not", list)
				}
			}
		})
	})
	if written < 40 {
		t.Errorf("%d sequences show anything", written)
	}
}
