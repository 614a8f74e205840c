// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// member puts a pod into a gang of a size.
func member(gang string, size int) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Annotations = map[string]string{"pod_group": gang, "pod_group_size": fmt.Sprint(size)}
	}
}

// stand is how a part's pods of a name stand: how many are bound, going, nominated, and in wait for a node.
type stand struct{ bound, going, nominated, waiting int }

func (a *arena) stand(name string) (s stand) {
	for _, p := range listPods(a.t, a.client) {
		switch {
		case !strings.HasPrefix(p.Name, a.part+"-"+name):
		case p.DeletionTimestamp != nil:
			s.going++
		case p.Spec.NodeName != "":
			s.bound++
		default:
			s.waiting++
			if p.Status.NominatedNodeName != "" {
				s.nominated++
			}
		}
	}
	return s
}

func (a *arena) stands(what string, want map[string]stand) {
	a.t.Helper()
	eventually(a.t, what, func() (bool, string) {
		for name, w := range want {
			if got := a.stand(name); got != w {
				return false, fmt.Sprintf("%s: %+v, want %+v", name, got, w)
			}
		}
		return true, ""
	})
}

// TestGangsAreEvictedWholeOnARealAPIServer: a gang evicts a whole gang of lower priority; so does one pod of high
// priority; pods that declare that they may be evicted for gangs go for one of their own priority; and if the scheduler is killed while the victims terminate, the next one keeps the capacity for the gang
// and evicts no more pods. Catches nominations of gangs that do not reach the API server, and victims that are
// separated from their gang there.
func TestGangsAreEvictedWholeOnARealAPIServer(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{NoHeartbeats: true, PodStages: "realistic", NodeSpec: `
shapes:
- {name: gang, count: 3, labels: {part: gang}, capacity: {cpu: "4", memory: 8Gi}}
- {name: solo, count: 2, labels: {part: solo}, capacity: {cpu: "4", memory: 8Gi}}
- {name: agreed, count: 3, labels: {part: agreed}, capacity: {cpu: "4", memory: 8Gi}}
- {name: killed, count: 3, labels: {part: killed}, capacity: {cpu: "4", memory: 8Gi}}
`})
	client := adminClient(t, cluster)
	for name, value := range map[string]int32{"low": 10, "mid": 500, "high": 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	scheduler := startProcess(t, cluster.SchedulerKubeconfig)
	in := func(part string) *arena { return &arena{t, client, part, v1.DefaultSchedulerName} }
	gangEvictsGang(in("gang"))
	podEvictsGang(in("solo"))
	podsAgree(in("agreed"))
	gangSurvivesARestart(in("killed"), scheduler)
}

// gangEvictsGang: the third pod of the low gang is evicted, too, although its capacity is not needed (rule R5).
func gangEvictsGang(a *arena) {
	for i := range 3 {
		a.pod(fmt.Sprint("low-", i), "low", "3", on(fmt.Sprintf("gang-000%d", i)), member("gang-low", 3))
	}
	a.stands("the low gang runs", map[string]stand{"low": {bound: 3}})
	for i := range 2 {
		a.pod(fmt.Sprint("high-", i), "high", "3", member("gang-high", 2))
	}
	a.stands("the high gang has its places", map[string]stand{"low": {}, "high": {bound: 2}})
	eventually(a.t, "the victims have events that name the preemptor", func() (bool, string) {
		events, err := a.client.EventsV1().Events("default").List(a.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		named := 0
		for _, e := range events.Items {
			if strings.HasPrefix(e.Regarding.Name, "gang-low-") && e.Reason == "Preempted" && e.Note == "Preempted by podgroup default/gang-high on node cluster" {
				named++
			}
		}
		return named == 3, fmt.Sprint(named, " events")
	})
}

// podEvictsGang: one pod needs one node, and the gang on two goes whole.
func podEvictsGang(a *arena) {
	for i := range 2 {
		a.pod(fmt.Sprint("low-", i), "low", "3", on(fmt.Sprintf("solo-000%d", i)), member("solo-low", 2))
	}
	a.pod("high", "high", "3")
	a.stands("the pod has its place, and no half of the gang is left", map[string]stand{"low": {}, "high": {bound: 1}})
}

// podsAgree: of three pods of the gang's priority, the two that declare that they may be evicted for gangs go, with an
// event of their own.
func podsAgree(a *arena) {
	agree := func(p *v1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "kumiki.dev/evictable-for-gangs", "true") }
	for i := range 2 {
		a.pod(fmt.Sprint("spare-", i), "high", "3", on(fmt.Sprintf("agreed-000%d", i)), agree)
	}
	a.pod("stays", "high", "3", on("agreed-0002"))
	for i := range 2 {
		a.pod(fmt.Sprint("member-", i), "high", "3", member("agreed-gang", 2))
	}
	a.stands("the gang has the places of the pods that agree",
		map[string]stand{"spare": {}, "stays": {bound: 1}, "member": {bound: 2}})
	eventually(a.t, "the pods that agreed have events that say so", func() (bool, string) {
		events, err := a.client.EventsV1().Events("default").List(a.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		told := 0
		for _, e := range events.Items {
			if strings.HasPrefix(e.Regarding.Name, "agreed-spare-") && e.Reason == "EvictedForGang" {
				told++
			}
		}
		return told == 2, fmt.Sprint(told, " events")
	})
}

// gangSurvivesARestart: no other pod is evicted, and no pod of lower priority is placed there. The third node keeps
// its pod.
func gangSurvivesARestart(a *arena, scheduler *process) {
	for i := range 2 {
		a.pod(fmt.Sprint("low-", i), "low", "3", on(fmt.Sprintf("killed-000%d", i)), member("killed-low", 2), clinging)
	}
	a.pod("mid", "mid", "3", on("killed-0002"))
	for i := range 2 {
		a.pod(fmt.Sprint("high-", i), "high", "3", member("killed-high", 2))
	}
	waiting := map[string]stand{"low": {going: 2}, "mid": {bound: 1}, "high": {waiting: 2, nominated: 2}}
	a.stands("the low gang is going", waiting)
	before := scheduler.started()
	scheduler.kill()
	a.pod("thief", "low", "2")
	eventually(a.t, "the next scheduler has looked at the pods", func() (bool, string) {
		for _, p := range listPods(a.t, a.client) {
			if p.Name == "killed-thief" && waits(&p) != "" {
				return scheduler.started() > before, "not started again"
			}
		}
		return false, "no pod was tried"
	})
	a.letGo("low-0")
	waiting["low"], waiting["thief"] = stand{going: 1}, stand{waiting: 1}
	a.stands("with half of the capacity the gang waits, nominated, and the thief stays out", waiting)
	a.letGo("low-1")
	a.stands("the gang has its places", map[string]stand{"low": {}, "mid": {bound: 1}, "high": {bound: 2}, "thief": {waiting: 1}})
}
