// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/record"
)

// step gives an event to the engine, and does what it asks for at once.
func (c *Cluster) step(ev engine.Event) {
	c.t.Helper()
	effects := slices.Clone(c.engine.Step(ev)) // the answers are steps, too
	if after := c.host.Observe(ev); after != nil {
		after()
	}
	for _, effect := range effects {
		switch f := effect.(type) {
		case engine.Decided:
			c.last[keyOfRef(f.Decision.Pod)] = f.Decision
		case engine.WriteEvent:
			c.note(Event{Object: keyOfRef(f.Pod).String(), Type: f.Type, Reason: f.Reason, Note: f.Note})
		case engine.Wake:
			c.wake = f.At
		case engine.Prepare:
			c.step(engine.WritesDone{Pod: f.Pod, Decision: f.Decision})
		case engine.Bind:
			c.step(c.bind(f))
		case engine.Evict:
			c.evict(f)
		case engine.Nominate:
			c.status(f.Pod, func(s *v1.PodStatus) { s.NominatedNodeName = f.Node })
		case engine.Condition:
			c.condition(f)
		}
	}
}

func keyOfRef(p record.PodRef) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// bind binds a pod, by a plugin if one does, and reads back that it is bound.
func (c *Cluster) bind(f engine.Bind) engine.BindDone {
	done := engine.BindDone{Pod: f.Pod, Node: f.Node, Outcome: engine.Bound}
	err := framework.ErrNative
	if f.Via == framework.Via {
		_, err = c.host.Bind(context.Background(), f.Pod, f.Node)
	}
	if errors.Is(err, framework.ErrNative) {
		err = bindIn(c.client, keyOfRef(f.Pod), f.Node)
	}
	if err == nil {
		err = c.verify(f)
	}
	if err != nil {
		return done.Failed(err)
	}
	return done
}

// verify returns an error unless a pod is bound to the node of a bind.
func (c *Cluster) verify(f engine.Bind) error {
	obj, err := c.client.Tracker().Get(podResource, f.Pod.Namespace, f.Pod.Name)
	if err != nil {
		return err
	}
	if got := obj.(*v1.Pod).Spec.NodeName; got != f.Node {
		return fmt.Errorf("a plugin reported that it bound pod %s to %s, and it is on %q", keyOfRef(f.Pod), f.Node, got)
	}
	return nil
}

// evict deletes the victims at once.
func (c *Cluster) evict(f engine.Evict) {
	done := engine.EvictDone{For: f.For, Decision: f.Decision}
	for _, victim := range f.Victims {
		c.note(Event{Object: keyOfRef(victim).String(), Type: v1.EventTypeNormal, Reason: "Preempted",
			Note: "evicted for " + keyOfRef(f.For).String()})
		err := c.client.Tracker().Delete(podResource, victim.Namespace, victim.Name)
		if err != nil && done.Message == "" {
			done.Message = err.Error()
		}
	}
	c.step(done)
}

// condition sets the condition PodScheduled.
func (c *Cluster) condition(f engine.Condition) {
	c.status(f.Pod, func(s *v1.PodStatus) {
		condition := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: f.Reason,
			Message: f.Message, ObservedGeneration: f.Generation,
			LastTransitionTime: metav1.NewTime(c.Now().Truncate(time.Second))}
		for _, old := range s.Conditions {
			if old.Type == v1.PodScheduled && old.Status == condition.Status {
				condition.LastTransitionTime = old.LastTransitionTime
			}
		}
		s.Conditions = []v1.PodCondition{condition}
		switch {
		case f.ClearNomination:
			s.NominatedNodeName = ""
		case f.Nominate != "":
			s.NominatedNodeName = f.Nominate
		}
	})
}

// status changes the status of a pod, if there is one.
func (c *Cluster) status(pod record.PodRef, how func(*v1.PodStatus)) {
	// The pod may have been deleted: then the API server rejects the patch, too.
	_ = change(c.client, keyOfRef(pod), func(p *v1.Pod) error {
		if string(p.UID) == pod.UID {
			how(&p.Status)
		}
		return nil
	})
}
