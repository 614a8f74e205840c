// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// preemptionLimit is how long a pod group may take to preempt and start. It is shorter than the default
// UnschedulableTimeout and AuditPeriod (app.DefaultOptions), so that neither hides a missing wake-up.
const preemptionLimit = 30 * time.Second

// TestPodGroupsEvict: native pod groups preempt on a node that is full with pods of lower priority, and every pod
// of a group that can fit is bound. Catches pods of a group that neither preempt nor are retried, and wait forever.
func TestPodGroupsEvict(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{NoHeartbeats: true, Gangs: true, NodeSpec: `
shapes:
- {name: basic, count: 1, labels: {part: basic}, capacity: {cpu: "3", memory: 8Gi}}
- {name: oversized, count: 1, labels: {part: oversized}, capacity: {cpu: "3", memory: 8Gi}}
- {name: surplus, count: 1, labels: {part: surplus}, capacity: {cpu: "4", memory: 8Gi}}
`})
	client := adminClient(t, cluster)
	history := checker.Follow(t.Context(), client)
	for name, value := range map[string]int32{"low": 10, "high": 100} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	startProcess(t, cluster.SchedulerKubeconfig)
	in := func(t *testing.T, part string) *arena { return &arena{t, client, part, v1.DefaultSchedulerName} }
	t.Run("basic", func(t *testing.T) { basicGroupEvicts(in(t, "basic")) })
	t.Run("basic with an oversized pod", func(t *testing.T) { oversizedPodDoesNotBlock(in(t, "oversized")) })
	t.Run("gang with a surplus pod", func(t *testing.T) { surplusPodEvicts(in(t, "surplus")) })
	judge(t, client, history)
}

// basicGroupEvicts: each pod of a basic group evicts one pod. Catches a basic group that is scheduled as one unit: its
// first pod evicted and was bound, and the others waited forever.
func basicGroupEvicts(a *arena) {
	a.fill(3)
	a.podGroup(schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}})
	a.members(3)
	a.standsSoon("all pods of the group are bound", map[string]stand{"low": {}, "member": {bound: 3}})
}

// oversizedPodDoesNotBlock: the first pod of a basic group is larger than the node. Catches a basic group whose
// pods wait for a pod that never fits.
func oversizedPodDoesNotBlock(a *arena) {
	a.fill(3)
	a.podGroup(schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}})
	a.pod("oversized", "high", "9", a.inPodGroup)
	a.members(3)
	a.standsSoon("the other pods of the group are bound", map[string]stand{"low": {}, "member": {bound: 3}, "oversized": {waiting: 1}})
}

// surplusPodEvicts: a gang with minCount 3 has four pods, and the fourth evicts too. The PodGroup is created last,
// so that the scheduler tries the four pods together. Catches surplus pods that do not evict and wait forever.
func surplusPodEvicts(a *arena) {
	a.fill(4)
	a.members(4)
	a.podGroup(schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 3}})
	a.standsSoon("all pods of the gang are bound", map[string]stand{"low": {}, "member": {bound: 4}})
}

// fill creates n pods of low priority and 1 cpu on the part's only node, and waits until they run.
func (a *arena) fill(n int) {
	a.t.Helper()
	for i := range n {
		a.pod(fmt.Sprint("low-", i), "low", "1", on(a.part+"-0000"))
	}
	eventually(a.t, "the pods of low priority run", func() (bool, string) {
		running := 0
		for _, p := range listPods(a.t, a.client) {
			if strings.HasPrefix(p.Name, a.part+"-low-") && p.Status.Phase == v1.PodRunning {
				running++
			}
		}
		return running == n, fmt.Sprintf("%d of %d run", running, n)
	})
}

// podGroup creates the part's PodGroup, which has high priority.
func (a *arena) podGroup(policy schedulingv1beta1.PodGroupSchedulingPolicy) {
	a.t.Helper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: a.part},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: policy, PriorityClassName: "high"}}
	if _, err := a.client.SchedulingV1beta1().PodGroups("default").Create(a.t.Context(), group, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// inPodGroup makes a pod a member of the part's PodGroup.
func (a *arena) inPodGroup(p *v1.Pod) {
	p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &a.part}
}

// members creates n pods of the part's PodGroup, with high priority and 1 cpu.
func (a *arena) members(n int) {
	a.t.Helper()
	for i := range n {
		a.pod(fmt.Sprint("member-", i), "high", "1", a.inPodGroup)
	}
}

// standsSoon is stands with a limit of preemptionLimit. A failure shows why pods wait.
func (a *arena) standsSoon(what string, want map[string]stand) {
	a.t.Helper()
	var wrong []string
	for limit := time.Now().Add(preemptionLimit); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		wrong = nil
		for name, w := range want { // order: affects the failure message only
			if got := a.stand(name); got != w {
				wrong = append(wrong, fmt.Sprintf("%s: %+v, want %+v", name, got, w))
			}
		}
		if wrong == nil {
			return
		}
	}
	for _, p := range listPods(a.t, a.client) {
		if strings.HasPrefix(p.Name, a.part+"-") && p.Spec.NodeName == "" {
			wrong = append(wrong, p.Name+" waits: "+waits(&p))
		}
	}
	a.t.Fatalf("waited for: %s:\n%s", what, strings.Join(wrong, "\n"))
}
