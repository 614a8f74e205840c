// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// reportUngrouped reports the pods whose pod group cannot be read: an event on each pod, a counter, and one warning in
// the log for the life of the process. Only a process that decides reports them, so that a standby writes no events.
func (l *Loop) reportUngrouped(log klog.Logger) {
	pods, waits := l.cfg.Inbox.TakeUngrouped()
	for _, p := range pods {
		if !slices.Contains(l.cfg.SchedulerNames, p.Spec.SchedulerName) {
			continue
		}
		l.cfg.Metrics.Ungrouped.Inc()
		if !l.warnedUngrouped {
			l.warnedUngrouped = true
			log.Info("WARNING: pods name a pod group, and pod groups cannot be read: "+ungroupedReason(waits),
				"pod", klog.KRef(p.Namespace, p.Name), "podGroup", p.Gang.Key.Name)
		}
		l.cfg.Executor.WriteEvent(engine.WriteEvent{Pod: p.Ref(), Type: "Warning", Reason: "PodGroupNotReadable",
			Action: "Scheduling", Note: "pod group " + p.Namespace + "/" + p.Gang.Key.Name + " cannot be read: " +
				ungroupedReason(waits)})
	}
}

// ungroupedReason returns why a pod group cannot be read, and what follows for its pods.
func ungroupedReason(waits bool) string {
	if waits {
		return "the API server cannot list podgroups.scheduling.k8s.io, does not serve them, or does not let the " +
			"scheduler read them. The pod waits until they can be read, unless the group is known from before."
	}
	return "the API server does not serve podgroups.scheduling.k8s.io, or does not let the scheduler read them. " +
		"The pod is scheduled alone, not as part of a gang."
}
