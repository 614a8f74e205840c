// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"maps"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// PodInfo is a pod with the figures that the scheduler counts for it. It is immutable.
type PodInfo struct {
	pod    *v1.Pod
	record *cluster.Pod
	// original is a copy of the object; nil unless changes are checked.
	original *v1.Pod
	terms    atomic.Pointer[affinityTerms] // nil until they are read; there is one for each pod of the cluster
}

// affinityTerms are the terms of a pod, parsed. A term that cannot be parsed leaves its list empty.
type affinityTerms struct {
	required, requiredAnti   []fwk.AffinityTerm
	preferred, preferredAnti []fwk.WeightedAffinityTerm
}

var _ fwk.PodInfo = (*PodInfo)(nil)

// newPodInfo returns the PodInfo of a pod on a node. The object names the node, also while the pod is only assumed
// there; an empty node leaves the object as it is.
func newPodInfo(p *cluster.Pod, node string) *PodInfo {
	pod := p.Full
	if pod == nil { // the record comes from a recording, or from before KeepFull
		pod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID),
			Labels: p.Spec.Labels}}
		pod.Spec.NodeName = p.NodeName
	}
	if node != "" && pod.Spec.NodeName != node {
		assumed := *pod
		assumed.Spec.NodeName = node
		pod = &assumed
	}
	return &PodInfo{pod: pod, record: p}
}

// GetPod returns the object.
func (p *PodInfo) GetPod() *v1.Pod { return p.pod }

// noTerms are those of a pod without affinity.
var noTerms affinityTerms

func (p *PodInfo) parsed() *affinityTerms {
	a := p.pod.Spec.Affinity
	if a == nil {
		return &noTerms
	}
	if t := p.terms.Load(); t != nil {
		return t
	}
	t := &affinityTerms{}
	t.required, _ = fwk.GetAffinityTerms(p.pod, fwk.GetPodAffinityTerms(a))
	t.requiredAnti, _ = fwk.GetAffinityTerms(p.pod, fwk.GetPodAntiAffinityTerms(a))
	if a.PodAffinity != nil {
		t.preferred, _ = fwk.GetWeightedAffinityTerms(p.pod,
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		t.preferredAnti, _ = fwk.GetWeightedAffinityTerms(p.pod,
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	p.terms.CompareAndSwap(nil, t)
	return p.terms.Load()
}

// GetRequiredAffinityTerms returns the required terms of affinity.
func (p *PodInfo) GetRequiredAffinityTerms() []fwk.AffinityTerm { return p.parsed().required }

// GetRequiredAntiAffinityTerms returns the required terms of anti-affinity.
func (p *PodInfo) GetRequiredAntiAffinityTerms() []fwk.AffinityTerm { return p.parsed().requiredAnti }

// GetPreferredAffinityTerms returns the preferred terms of affinity.
func (p *PodInfo) GetPreferredAffinityTerms() []fwk.WeightedAffinityTerm { return p.parsed().preferred }

// GetPreferredAntiAffinityTerms returns the preferred terms of anti-affinity.
func (p *PodInfo) GetPreferredAntiAffinityTerms() []fwk.WeightedAffinityTerm {
	return p.parsed().preferredAnti
}

// CalculateResource returns what the pod holds on a node.
func (p *PodInfo) CalculateResource() fwk.PodResource {
	spec := p.record.Spec
	return fwk.PodResource{Resource: resourceOf(&spec.Held), Non0CPU: spec.HeldNonZero[0],
		Non0Mem: spec.HeldNonZero[1]}
}

// Resource is amounts of resources.
type Resource struct {
	amounts resource.Amounts
	scalars map[v1.ResourceName]int64 // resource -> amount; nil if there are none
}

var _ fwk.Resource = (*Resource)(nil)

// resourceOf converts amounts.
func resourceOf(a *resource.Amounts) *Resource {
	r := &Resource{amounts: *a}
	if len(a.Scalars) > 0 {
		r.scalars = make(map[v1.ResourceName]int64, len(a.Scalars))
		for _, sc := range a.Scalars {
			r.scalars[sc.Name] = sc.Value
		}
	}
	return r
}

// GetMilliCPU returns thousandths of a CPU.
func (r *Resource) GetMilliCPU() int64 { return r.amounts.MilliCPU }

// GetMemory returns bytes.
func (r *Resource) GetMemory() int64 { return r.amounts.Memory }

// GetEphemeralStorage returns bytes.
func (r *Resource) GetEphemeralStorage() int64 { return r.amounts.Ephemeral }

// GetAllowedPodNumber returns how many pods a node allows; 0 for amounts that pods hold.
func (r *Resource) GetAllowedPodNumber() int { return int(r.amounts.Pods) }

// GetScalarResources returns all other resources. The map must not be changed.
func (r *Resource) GetScalarResources() map[v1.ResourceName]int64 { return r.scalars }

// SetMaxResource raises each amount to that of a list.
func (r *Resource) SetMaxResource(list v1.ResourceList) {
	other := resource.FromList(list)
	r.amounts.MilliCPU = max(r.amounts.MilliCPU, other.MilliCPU)
	r.amounts.Memory = max(r.amounts.Memory, other.Memory)
	r.amounts.Ephemeral = max(r.amounts.Ephemeral, other.Ephemeral)
	for _, sc := range other.Scalars {
		if r.scalars == nil {
			r.scalars = map[v1.ResourceName]int64{}
		}
		r.scalars[sc.Name] = max(r.scalars[sc.Name], sc.Value)
	}
}

// add adds amounts, or subtracts them if sign is -1. The number of pods stays.
func (r *Resource) add(other fwk.Resource, sign int64) {
	r.amounts.MilliCPU = resource.Add(r.amounts.MilliCPU, sign*other.GetMilliCPU())
	r.amounts.Memory = resource.Add(r.amounts.Memory, sign*other.GetMemory())
	r.amounts.Ephemeral = resource.Add(r.amounts.Ephemeral, sign*other.GetEphemeralStorage())
	for name, v := range other.GetScalarResources() {
		if r.scalars == nil {
			r.scalars = map[v1.ResourceName]int64{}
		}
		r.scalars[name] = resource.Add(r.scalars[name], sign*v)
	}
}

func (r *Resource) clone() *Resource {
	return &Resource{amounts: r.amounts, scalars: maps.Clone(r.scalars)}
}
