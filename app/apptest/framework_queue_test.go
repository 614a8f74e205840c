// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"cmp"
	"fmt"
	"strconv"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
)

// sorter is a QueueSort plugin: pods with a higher label order go first, of equal ones the newer one. A pod with the
// label order=liar goes before all others and all others before it; order=bad makes the comparison panic.
type sorter struct {
	name string
	log  *[]string
}

func (s *sorter) Name() string { return s.name }

func (s *sorter) Less(a, b fwk.QueuedEntityInfo) bool {
	orderOf := func(e fwk.QueuedEntityInfo) string {
		return e.(interface{ GetPodInfo() fwk.PodInfo }).GetPodInfo().GetPod().Labels["order"]
	}
	oa, ob := orderOf(a), orderOf(b)
	switch {
	case oa == "bad" || ob == "bad":
		panic("no order")
	case oa == "liar" || ob == "liar":
		return true
	}
	if a.GetAttempts() > 0 {
		line := fmt.Sprintf("%s sees %s after %d attempts, rejected by %v", s.name, a.Type(), a.GetAttempts(),
			a.GetUnschedulablePlugins().UnsortedList())
		if len(*s.log) == 0 {
			*s.log = append(*s.log, line)
		}
	}
	na, _ := strconv.Atoi(oa)
	nb, _ := strconv.Atoi(ob)
	return cmp.Or(cmp.Compare(nb, na), b.GetTimestamp().Compare(a.GetTimestamp())) < 0
}

const sorterProfile = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: A}]}
- schedulerName: other
  plugins:
    queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: A}]}
`

var _ fwk.QueueSortPlugin = (*sorter)(nil)

// TestFrameworkQueueSort plays testdata/framework-queue-sort.txt. The order in which pods get the places of a node is
// that of the queue.
func TestFrameworkQueueSort(t *testing.T) {
	playStories(t, "framework-queue-sort.txt", sorterProfile, func(log *[]string) app.Plugins {
		return pluginsOf(t, func(name string, _ fwk.Handle) fwk.Plugin { return &sorter{name, log} })
	})
}
