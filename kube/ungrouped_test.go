// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// TestPodsOfUnreadableGroupsGetAnEvent: they are scheduled one by one, and their owners learn why. Pods of other
// schedulers and pods without a group get no such event.
func TestPodsOfUnreadableGroupsGetAnEvent(t *testing.T) {
	pod := func(name, group, scheduler string) *v1.Pod {
		p := kubetest.PendingPod(name, types.UID("uid-"+name))
		p.Spec.SchedulerName = scheduler
		if group != "" {
			p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
		}
		return p
	}
	api := kubetest.NewAPIServer(pod("a", "g", v1.DefaultSchedulerName), pod("b", "g", v1.DefaultSchedulerName),
		pod("solo", "", v1.DefaultSchedulerName), pod("other", "g", "another-scheduler"))
	wholeScenario(t, false, api, func(t *testing.T, w *whole) {
		w.after(time.Minute)
		events, err := api.EventsV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var reported []string
		for _, e := range events.Items {
			if e.Reason == "PodGroupNotReadable" {
				reported = append(reported, e.Regarding.Name)
				if !strings.Contains(e.Note, "pod group ns/g cannot be read") || e.Type != v1.EventTypeWarning {
					t.Errorf("event %s: %s", e.Type, e.Note)
				}
			}
		}
		if got := strings.Join(reported, " "); got != "a b" {
			t.Errorf("events on %q, want them on a and b", got)
		}
		if w.on("ns/a") == "" || w.on("ns/b") == "" {
			t.Error("a pod without a readable group was not scheduled alone")
		}
		if got := kubetest.Value(t, w.reg, "kumiki_pods_without_readable_group_total"); got != 2 {
			t.Errorf("%v pods counted, want 2", got)
		}
	}, func(o *wholeOptions) { o.groups = true })
}
