// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/record"
)

// logStep writes what a step did: troubles always, decisions at 3, queue moves with their cause at 4, scores at 5.
func logStep(log klog.Logger, effects []engine.Effect) {
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Trouble:
			log.Error(nil, "Contained", "object", f.Object, "what", f.What, "details", f.Details)
		case engine.Decided:
			logDecision(log, &f.Decision)
		case engine.Evict:
			log.V(2).Info("Evicting", "decision", f.Decision, "for", call.PodName(f.For), "node", f.Node,
				"victims", len(f.Victims), "undo", f.Undo)
		case engine.Rechecked:
			log.V(2).Info("Judged again after a bind by someone else", "found", call.PodName(f.Found), "node", f.Node,
				"pods", f.Pods, "conflicts", f.Conflicts)
		case engine.Moved:
			if v := log.V(4); v.Enabled() {
				m := &f.Move
				v.Info("Moved", "pod", call.PodName(m.Pod), "from", m.From, "to", m.To, "event", m.Event,
					"plugin", m.Hint, "cause", m.Cause)
			}
		}
	}
}

func logDecision(log klog.Logger, d *record.Decision) {
	v := log.V(3)
	if !v.Enabled() {
		return
	}
	pod := call.PodName(d.Pod)
	switch d.Verdict {
	case record.Placed:
		v.Info("Decided", "decision", d.Number, "pod", pod, "attempt", d.Attempt, "node", d.Winner.Node,
			"feasible", d.Feasible, "nodes", d.Nodes, "tied", d.Tied)
		if v := log.V(5); v.Enabled() {
			v.Info("Scored", "decision", d.Number, "winner", d.Winner, "runnerUp", d.RunnerUp)
		}
	case record.Recalled:
		v.Info("Taken back", "decision", d.Number, "pod", pod, "attempt", d.Attempt, "message", d.Message)
	case record.SetAside:
		log.Error(nil, "Pod set aside", "decision", d.Number, "pod", pod, "attempt", d.Attempt, "message", d.Message)
	default:
		v.Info("Not placed", "decision", d.Number, "instance", d.Instance, "pod", pod, "attempt", d.Attempt,
			"verdict", d.Verdict, "nodes", d.Nodes, "plugins", d.Plugins, "message", d.Message)
	}
}
