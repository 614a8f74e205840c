// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/fault"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
)

// arena is a part of a cluster in which pods are evicted: nodes of 4 cores with the label part.
type arena struct {
	t      *testing.T
	client *kubernetes.Clientset
	part   string
	// scheduler is the name of the one who places the part's pods.
	scheduler string
}

// pod makes a pod of a priority that selects the part.
func (a *arena) pod(name, class, cpu string, change ...func(*v1.Pod)) {
	a.t.Helper()
	p := pod(a.part+"-"+name, cpu)
	p.Spec.NodeSelector = map[string]string{"part": a.part}
	p.Spec.PriorityClassName, p.Spec.SchedulerName = class, a.scheduler
	p.Spec.TerminationGracePeriodSeconds = new(int64)
	for _, c := range change {
		c(p)
	}
	create(a.t, a.client, p)
}

// on puts a pod on a node from the start.
func on(node string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.NodeName = node } }

// clinging is a pod that takes an hour to die, unless it is let go.
func clinging(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = &anHour }

var anHour = int64(3600)

func (a *arena) letGo(name string) {
	a.t.Helper()
	if err := a.client.CoreV1().Pods("default").Delete(a.t.Context(), a.part+"-"+name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		a.t.Fatal(err)
	}
}

// has waits until the part's pods are as they should be: name -> node, or ! and the nominated node of one that
// waits. Pods that are going must be there too, with a - before the node.
func (a *arena) has(what string, want map[string]string) {
	a.t.Helper()
	eventually(a.t, what, func() (bool, string) {
		is := map[string]string{}
		for _, p := range listPods(a.t, a.client) {
			if p.Labels["part"] != a.part && p.Spec.NodeSelector["part"] != a.part {
				continue
			}
			at := p.Spec.NodeName
			switch {
			case at == "":
				at = "!" + p.Status.NominatedNodeName
			case p.DeletionTimestamp != nil:
				at = "-" + at
			}
			is[p.Name[len(a.part)+1:]] = at
		}
		return fmt.Sprint(is) == fmt.Sprint(want), fmt.Sprintf("is %v, want %v", is, want)
	})
}

// stays tells that nothing changes for a while.
func (a *arena) stays(what string, want map[string]string) {
	a.t.Helper()
	for range 20 {
		time.Sleep(100 * time.Millisecond)
		a.has(what, want)
	}
}

// TestEvictionsSurvive plays what happens between the decision to evict and the bind: the scheduler is killed and
// another takes over, it is paused, or the API server does not accept the deletes. The pod is placed on its node, and
// no more pods are evicted than it needs.
func TestEvictionsSurvive(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{NoHeartbeats: true, PodStages: "realistic", NodeSpec: `
shapes:
- {name: restart, count: 2, labels: {part: restart}, capacity: {cpu: "4", memory: 8Gi}}
- {name: paused, count: 1, labels: {part: paused}, capacity: {cpu: "4", memory: 8Gi}}
- {name: refused, count: 2, labels: {part: refused}, capacity: {cpu: "4", memory: 8Gi}}
- {name: lost, count: 2, labels: {part: lost}, capacity: {cpu: "4", memory: 8Gi}}
- {name: unmarked, count: 2, labels: {part: unmarked}, capacity: {cpu: "4", memory: 8Gi}}
`})
	client := adminClient(t, cluster)
	history := checker.Follow(t.Context(), client)
	for name, value := range map[string]int32{"low": 10, "mid": 500, "high": 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	scheduler := startProcess(t, cluster.SchedulerKubeconfig)
	rules := &fault.Rules{}
	neighbour(t, cluster.SchedulerKubeconfig, "behind-faults", rules)
	in := func(part, scheduler string) *arena { return &arena{t, client, part, scheduler} }
	survivesARestart(in("restart", v1.DefaultSchedulerName), scheduler)
	waitsForThePause(in("paused", v1.DefaultSchedulerName), &succession{t: t, client: client})
	for part, q := range map[string]fault.Request{
		// More often than one eviction tries.
		"refused":  {Verb: "delete", Resource: "pods", Times: 8, Fate: fault.ErrorBefore(http.StatusInternalServerError)},
		"lost":     {Verb: "delete", Resource: "pods", Times: 1, Fate: fault.CutAfter()},
		"unmarked": {Verb: "patch", Resource: "pods", Subresource: "status", Name: "unmarked-low", Times: 2, Fate: fault.TooMany(time.Second)},
	} {
		survivesFaults(in(part, "behind-faults"), rules, q)
	}
	judge(t, client, history)
}

// survivesARestart: the scheduler is killed while a victim terminates. The next one keeps the capacity for the pod,
// evicts no other pod, and places no pod of lower priority there.
func survivesARestart(a *arena, scheduler *process) {
	a.pod("low", "low", "3", on("restart-0000"), clinging)
	a.pod("mid", "mid", "3", on("restart-0001"))
	a.pod("high", "high", "3500m")
	waiting := map[string]string{"low": "-restart-0000", "mid": "restart-0001", "high": "!restart-0000"}
	a.has("a victim is going", waiting)
	scheduler.kill()
	a.pod("thief", "mid", "2")
	waiting["thief"] = "!"
	eventually(a.t, "the next scheduler has looked at the pods", func() (bool, string) {
		for _, p := range listPods(a.t, a.client) {
			if p.Name == "restart-thief" && waits(&p) != "" {
				return true, ""
			}
		}
		return false, ""
	})
	a.stays("the nomination stays", waiting)
	a.letGo("low")
	a.has("the pod has its capacity", map[string]string{"high": "restart-0000", "mid": "restart-0001", "thief": "!"})
}

// waitsForThePause: a paused scheduler evicts no pod.
func waitsForThePause(a *arena, s *succession) {
	a.pod("low", "low", "3", on("paused-0000"))
	a.has("the node is taken", map[string]string{"low": "paused-0000"})
	reason := "a look at the cluster"
	s.note(kube.PausedAnnotation, &reason)
	s.pausedBy("")
	a.pod("high", "high", "3")
	a.stays("no pod is evicted in a pause", map[string]string{"low": "paused-0000", "high": "!"})
	s.note(kube.PausedAnnotation, nil)
	a.has("the pod has its capacity after the pause", map[string]string{"high": "paused-0000"})
}

// survivesFaults: the API server does not take what an eviction sends, or its answer is lost. In the end one pod
// has gone.
func survivesFaults(a *arena, rules *fault.Rules, q fault.Request) {
	a.pod("low", "low", "3", on(a.part+"-0000"))
	a.pod("mid", "mid", "3", on(a.part+"-0001"))
	a.has("the nodes are taken", map[string]string{"low": a.part + "-0000", "mid": a.part + "-0001"})
	rule := rules.On(q)
	a.pod("high", "high", "3")
	a.has("the pod has its capacity", map[string]string{"high": a.part + "-0000", "mid": a.part + "-0001"})
	if rule.Hits() != q.Times {
		a.t.Errorf("%s: struck %d times, want %d", a.part, rule.Hits(), q.Times)
	}
	rule.Remove()
}
