// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// podGroups gives native pod groups and their pods, as they are when it is asked.
type podGroups struct{ h *Host }

var _ fwk.PodGroupManager = podGroups{}

// PodGroups returns the lister of pod groups.
func (g podGroups) PodGroups() fwk.PodGroupLister { return podGroupLister(g) }

// PodGroupStates returns the lister of their pods.
func (g podGroups) PodGroupStates() fwk.PodGroupStateLister { return podGroupStates(g) }

// CompositePodGroups returns a lister that has none.
func (podGroups) CompositePodGroups() fwk.CompositePodGroupLister { return noComposites{} }

// CompositePodGroupStates returns a lister that has none.
func (podGroups) CompositePodGroupStates() fwk.CompositePodGroupStateLister {
	return noCompositeStates{}
}

// BuildHierarchySnapshotFromPod returns the states of the group of a pod, which do not change any more.
func (g podGroups) BuildHierarchySnapshotFromPod(pod *v1.Pod) (fwk.PodGroupManager, error) {
	if pod.Spec.SchedulingGroup == nil {
		return nil, fmt.Errorf("pod %s/%s has no scheduling group", pod.Namespace, pod.Name)
	}
	name := *pod.Spec.SchedulingGroup.PodGroupName
	group, err := g.PodGroups().Get(pod.Namespace, name)
	if err != nil {
		return nil, err
	}
	state, err := g.PodGroupStates().Get(pod.Namespace, name)
	if err != nil {
		return nil, err
	}
	return onePodGroup{g, group, state}, nil
}

// GetRootKeyForGroup returns the key of a pod group itself, since there are no composite pod groups.
func (g podGroups) GetRootKeyForGroup(key fwk.EntityKey) (root fwk.EntityKey, found bool, err error) {
	if key.Type == fwk.PodKeyType {
		return fwk.EntityKey{}, false, fmt.Errorf("%s is not the key of a group", key)
	}
	s, err := g.h.readable()
	if err != nil {
		return fwk.EntityKey{}, false, err
	}
	if key.Type != fwk.PodGroupKeyType || s.GangObject(gangKey(key.Namespace, key.Name)) == nil {
		return fwk.EntityKey{}, false, nil
	}
	return key, true, nil
}

// gangKey returns the key of a native pod group.
func gangKey(namespace, name string) cluster.GangKey {
	return cluster.GangKey{Source: cluster.GangOfGroup, Namespace: namespace, Name: name}
}

// podGroupLister lists native pod groups.
type podGroupLister struct{ h *Host }

// Get returns a pod group with the fields that the scheduler reads.
func (l podGroupLister) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	s, err := l.h.readable()
	if err != nil {
		return nil, err
	}
	gang := s.GangObject(gangKey(namespace, name))
	if gang == nil {
		return nil, fmt.Errorf("pod group object not found for pod group %s", fwk.PodGroupKey(namespace, name))
	}
	return podGroupOf(gang), nil
}

// podGroupOf returns the object of a gang, with the fields that the scheduler reads.
func podGroupOf(g *cluster.Gang) *schedulingv1beta1.PodGroup {
	out := &schedulingv1beta1.PodGroup{ObjectMeta: g.ObjectMeta}
	out.Name = g.Key.Name
	if g.Basic {
		out.Spec.SchedulingPolicy.Basic = &schedulingv1beta1.BasicSchedulingPolicy{}
	} else {
		out.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(g.MinCount)}
	}
	out.Spec.Priority = g.Priority
	if g.NeverPreempts {
		out.Spec.PreemptionPolicy = new(schedulingv1beta1.PreemptNever)
	}
	if g.EvictWhole {
		out.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	}
	for _, level := range g.Topology {
		if out.Spec.SchedulingConstraints == nil {
			out.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{}
		}
		c := out.Spec.SchedulingConstraints
		c.Topology = append(c.Topology, schedulingv1beta1.TopologyConstraint{Key: level.Key})
	}
	if g.Condition != (cluster.GangCondition{}) {
		status := metav1.ConditionFalse
		if g.Condition.Scheduled {
			status = metav1.ConditionTrue
		}
		out.Status.Conditions = []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: status,
			Reason: g.Condition.Reason, Message: g.Condition.Message, ObservedGeneration: g.Condition.Generation}}
	}
	return out
}

// podGroupStates lists the pods of native pod groups.
type podGroupStates struct{ h *Host }

// Get returns the pods of a group as they are now. It is an error if there is neither the group nor a pod of it.
func (l podGroupStates) Get(namespace, name string) (fwk.PodGroupState, error) {
	s, err := l.h.readable()
	if err != nil {
		return nil, err
	}
	key, state := gangKey(namespace, name), &podGroupState{}
	for _, m := range s.GangMembers(key) {
		pod := fullOf(m.Pod, s.NodeName(m.Row))
		if m.Assumed {
			state.assumed = append(state.assumed, pod)
		} else {
			state.assigned = append(state.assigned, pod)
		}
	}
	if l.h.pending != nil {
		for p := range l.h.pending() {
			if _, _, _, placed := s.PodOn(p.UID); !placed && p.Gang != nil && p.Gang.Key == key {
				state.unscheduled = append(state.unscheduled, fullOf(p, ""))
			}
		}
		slices.SortFunc(state.unscheduled, func(a, b *v1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	}
	if state.AllPodsCount() == 0 && s.GangObject(key) == nil {
		return nil, fmt.Errorf("pod group state not found for pod group %s/%s", namespace, name)
	}
	return state, nil
}

// podGroupState is the pods of a group at one moment.
type podGroupState struct{ unscheduled, assumed, assigned []*v1.Pod }

var _ fwk.PodGroupState = (*podGroupState)(nil)

// uids returns the UIDs of pods.
func uids(lists ...[]*v1.Pod) sets.Set[types.UID] {
	out := sets.New[types.UID]()
	for _, pods := range lists {
		for _, p := range pods {
			out.Insert(p.UID)
		}
	}
	return out
}

// AllPods returns the pods that the scheduler knows.
func (g *podGroupState) AllPods() sets.Set[types.UID] {
	return uids(g.unscheduled, g.assumed, g.assigned)
}

// AllPodsCount returns their number.
func (g *podGroupState) AllPodsCount() int { return len(g.unscheduled) + g.ScheduledPodsCount() }

// UnscheduledPods returns the pods that have no node, by name.
func (g *podGroupState) UnscheduledPods() map[string]*v1.Pod {
	out := make(map[string]*v1.Pod, len(g.unscheduled))
	for _, p := range g.unscheduled {
		out[p.Name] = p
	}
	return out
}

// AssumedPods returns the pods that have a node and are not bound.
func (g *podGroupState) AssumedPods() sets.Set[types.UID] { return uids(g.assumed) }

// AssignedPods returns the pods that are bound.
func (g *podGroupState) AssignedPods() sets.Set[types.UID] { return uids(g.assigned) }

// ScheduledPods returns the pods that have a node.
func (g *podGroupState) ScheduledPods() []*v1.Pod { return slices.Concat(g.assigned, g.assumed) }

// ScheduledPodsCount returns their number.
func (g *podGroupState) ScheduledPodsCount() int { return len(g.assumed) + len(g.assigned) }

// onePodGroup is one group, as it was at one moment.
type onePodGroup struct {
	podGroups
	group *schedulingv1beta1.PodGroup
	state fwk.PodGroupState
}

// PodGroups returns a lister that has the group alone.
func (o onePodGroup) PodGroups() fwk.PodGroupLister { return onePodGroupLister(o) }

// PodGroupStates returns a lister that has its state alone.
func (o onePodGroup) PodGroupStates() fwk.PodGroupStateLister { return onePodGroupState(o) }

// BuildHierarchySnapshotFromPod returns the same states, as upstream does.
func (o onePodGroup) BuildHierarchySnapshotFromPod(*v1.Pod) (fwk.PodGroupManager, error) {
	return o, nil
}

// GetRootKeyForGroup returns the key of the group itself.
func (o onePodGroup) GetRootKeyForGroup(key fwk.EntityKey) (root fwk.EntityKey, found bool, err error) {
	if key.Type == fwk.PodKeyType {
		return fwk.EntityKey{}, false, fmt.Errorf("%s is not the key of a group", key)
	}
	if key != fwk.PodGroupKey(o.group.Namespace, o.group.Name) {
		return fwk.EntityKey{}, false, nil
	}
	return key, true, nil
}

// is reports whether a name is that of the group.
func (o onePodGroup) is(namespace, name string) bool {
	return o.group.Namespace == namespace && o.group.Name == name
}

type onePodGroupLister onePodGroup

// Get returns the group.
func (l onePodGroupLister) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	if !onePodGroup(l).is(namespace, name) {
		return nil, fmt.Errorf("pod group object not found for pod group %s", fwk.PodGroupKey(namespace, name))
	}
	return l.group, nil
}

type onePodGroupState onePodGroup

// Get returns the state.
func (l onePodGroupState) Get(namespace, name string) (fwk.PodGroupState, error) {
	if !onePodGroup(l).is(namespace, name) {
		return nil, fmt.Errorf("pod group state not found for pod group %s/%s", namespace, name)
	}
	return l.state, nil
}

// noComposites has no composite pod group, as upstream without the gate CompositePodGroup.
type noComposites struct{}

// Get returns an error.
func (noComposites) Get(namespace, name string) (*schedulingv1alpha3.CompositePodGroup, error) {
	return nil, errNoComposite(namespace, name)
}

// noCompositeStates is noComposites for their states.
type noCompositeStates struct{}

// Get returns an error.
func (noCompositeStates) Get(namespace, name string) (fwk.CompositePodGroupState, error) {
	return nil, errNoComposite(namespace, name)
}

func errNoComposite(namespace, name string) error {
	return fmt.Errorf("composite pod group %s/%s: kumiki does not have composite pod groups", namespace, name)
}
