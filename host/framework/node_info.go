// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// NodeInfo is a node with its pods. One that belongs to a row is computed at the first use, from the state of the
// decision in which the plugin received it: plugins use it until Permit has returned, as upstream requires. It is lent:
// plugins change copies (Snapshot).
type NodeInfo struct {
	node *v1.Node
	load sync.Once
	of   *nodeInfos // computes the content of row; nil if complete
	row  cluster.NodeIdx
	// before is the NodeInfo of the row before the last change, for its PodInfos; nil if complete.
	before *NodeInfo
	// original is what the NodeInfo was; nil unless changes are checked.
	original *original

	record     *cluster.Node
	pods       []fwk.PodInfo
	affinity   []fwk.PodInfo
	anti       []fwk.PodInfo // with required anti-affinity
	ports      fwk.HostPortInfo
	requested  *Resource
	nonZero    *Resource
	fromNode   *nodePart
	claims     map[string]int // namespace/name of a claim -> pods that use it
	generation int64
}

// nodePart is what follows from the node object alone. It is shared by the NodeInfos of one version of a node.
type nodePart struct {
	record      *cluster.Node
	nodes       uint64 // Snapshot.NodeSet, which numbers of nodes with an image depend on
	allocatable *Resource
	images      map[string]*fwk.ImageStateSummary // image -> its state
	features    ndf.FeatureSet
}

var (
	_              fwk.NodeInfo   = (*NodeInfo)(nil)
	_              klog.KMetadata = (*NodeInfo)(nil)
	lastGeneration atomic.Int64
)

// complete computes the content, once.
func (n *NodeInfo) complete() *NodeInfo {
	n.load.Do(func() {
		if n.of != nil {
			n.of.fill(n, n.row)
			n.of, n.before = nil, nil
			if n.original != nil {
				n.keepContent()
			}
		}
	})
	return n
}

// GetName returns the name of the node.
func (n *NodeInfo) GetName() string {
	switch {
	case n == nil:
		return "<nil>"
	case n.node == nil:
		return "<no node>"
	}
	return n.node.Name
}

// GetNamespace is empty.
func (n *NodeInfo) GetNamespace() string { return "" }

// Node returns the object.
func (n *NodeInfo) Node() *v1.Node {
	if n == nil {
		return nil
	}
	return n.node
}

// GetPods returns the pods on the node, those that are assumed there among them.
func (n *NodeInfo) GetPods() []fwk.PodInfo { return n.complete().pods }

// GetPodsWithAffinity returns the pods with affinity or anti-affinity to pods.
func (n *NodeInfo) GetPodsWithAffinity() []fwk.PodInfo { return n.complete().affinity }

// GetPodsWithRequiredAntiAffinity returns the pods with required anti-affinity.
func (n *NodeInfo) GetPodsWithRequiredAntiAffinity() []fwk.PodInfo { return n.complete().anti }

// GetPodsWithRequiredNonHostScopedAntiAffinity is empty, as upstream's is without the gate
// InterPodAffinityHostnameFastPath.
func (n *NodeInfo) GetPodsWithRequiredNonHostScopedAntiAffinity() []fwk.PodInfo { return nil }

// GetUsedPorts returns the ports of the node that pods use.
func (n *NodeInfo) GetUsedPorts() fwk.HostPortInfo { return n.complete().ports }

// GetRequested returns what the pods hold.
func (n *NodeInfo) GetRequested() fwk.Resource { return n.complete().requested }

// GetNonZeroRequested returns CPU and memory that the pods hold, with defaults for containers without requests.
func (n *NodeInfo) GetNonZeroRequested() fwk.Resource { return n.complete().nonZero }

// GetAllocatable returns what the node offers.
func (n *NodeInfo) GetAllocatable() fwk.Resource { return n.complete().fromNode.allocatable }

// GetImageStates returns the images on the node.
func (n *NodeInfo) GetImageStates() map[string]*fwk.ImageStateSummary {
	return n.complete().fromNode.images
}

// GetPVCRefCounts returns how many pods on the node use a claim, by namespace/name of the claim.
func (n *NodeInfo) GetPVCRefCounts() map[string]int { return n.complete().claims }

// GetGeneration returns a number that is another one for each change of the node or its pods.
func (n *NodeInfo) GetGeneration() int64 { return n.generation }

// GetNodeDeclaredFeatures returns the features that the node declares.
func (n *NodeInfo) GetNodeDeclaredFeatures() ndf.FeatureSet { return n.complete().fromNode.features }

// Snapshot returns a copy, which can be changed.
func (n *NodeInfo) Snapshot() fwk.NodeInfo { return n.complete().copied() }

func (n *NodeInfo) copied() *NodeInfo {
	out := &NodeInfo{node: n.node, record: n.record, generation: n.generation, pods: slices.Clone(n.pods),
		affinity: slices.Clone(n.affinity), anti: slices.Clone(n.anti), ports: fwk.HostPortInfo{},
		requested: n.requested.clone(), nonZero: n.nonZero.clone(), claims: maps.Clone(n.claims)}
	part := *n.fromNode
	part.allocatable = n.fromNode.allocatable.clone()
	out.fromNode = &part
	for ip, taken := range n.ports { // order: builds a map
		out.ports[ip] = maps.Clone(taken)
	}
	return out
}

// String lists the pods and the amounts.
func (n *NodeInfo) String() string {
	n.complete()
	names := make([]string, len(n.pods))
	for i, p := range n.pods {
		names[i] = p.GetPod().Name
	}
	return fmt.Sprintf("NodeInfo of %s: pods %v, requested %+v, allocatable %+v", n.GetName(), names, *n.requested,
		*n.fromNode.allocatable)
}

// AddPodInfo adds a pod.
func (n *NodeInfo) AddPodInfo(info fwk.PodInfo) {
	n.complete().insert(info)
}

func (n *NodeInfo) insert(info fwk.PodInfo) {
	pod := info.GetPod()
	n.pods = append(n.pods, info)
	if a := pod.Spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
		n.affinity = append(n.affinity, info)
	}
	if len(fwk.GetPodAntiAffinityTerms(pod.Spec.Affinity)) > 0 {
		n.anti = append(n.anti, info)
	}
	n.count(info, 1)
}

// RemovePod removes a pod, which is found by its UID.
func (n *NodeInfo) RemovePod(_ klog.Logger, pod *v1.Pod) error {
	n.complete()
	at := slices.IndexFunc(n.pods, func(p fwk.PodInfo) bool { return p.GetPod().UID == pod.UID })
	if at < 0 {
		return fmt.Errorf("no corresponding pod %s in pods of node %s", pod.Name, n.GetName())
	}
	removed := n.pods[at]
	n.pods = without(n.pods, pod.UID)
	n.affinity = without(n.affinity, pod.UID)
	n.anti = without(n.anti, pod.UID)
	n.count(removed, -1)
	return nil
}

// without returns pods without one of them; nil if none is left.
func without(pods []fwk.PodInfo, uid types.UID) []fwk.PodInfo {
	pods = slices.DeleteFunc(pods, func(p fwk.PodInfo) bool { return p.GetPod().UID == uid })
	if len(pods) == 0 {
		return nil
	}
	return pods
}

// count adds what a pod uses, or subtracts it if sign is -1.
func (n *NodeInfo) count(info fwk.PodInfo, sign int64) {
	held := info.CalculateResource()
	n.requested.add(held.Resource, sign)
	n.nonZero.amounts.MilliCPU = resource.Add(n.nonZero.amounts.MilliCPU, sign*held.Non0CPU)
	n.nonZero.amounts.Memory = resource.Add(n.nonZero.amounts.Memory, sign*held.Non0Mem)
	pod := info.GetPod()
	eachHostPort(pod, func(p *v1.ContainerPort) {
		if sign > 0 {
			n.ports.Add(p.HostIP, string(p.Protocol), p.HostPort)
		} else {
			n.ports.Remove(p.HostIP, string(p.Protocol), p.HostPort)
		}
	})
	eachClaim(pod, func(key string) {
		if n.claims[key] += int(sign); n.claims[key] <= 0 {
			delete(n.claims, key)
		}
	})
	n.generation = lastGeneration.Add(1)
}

// eachHostPort calls f for each port of the node that a pod uses: those of containers and of sidecars.
func eachHostPort(pod *v1.Pod, f func(*v1.ContainerPort)) {
	for i := range pod.Spec.Containers {
		for k := range pod.Spec.Containers[i].Ports {
			if p := &pod.Spec.Containers[i].Ports[k]; p.HostPort > 0 {
				f(p)
			}
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != v1.ContainerRestartPolicyAlways {
			continue
		}
		for k := range c.Ports {
			if p := &c.Ports[k]; p.HostPort > 0 {
				f(p)
			}
		}
	}
}

// eachClaim calls f with namespace/name of the claim of each volume of a pod that names one.
func eachClaim(pod *v1.Pod, f func(key string)) {
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			f(pod.Namespace + "/" + claim.ClaimName)
		}
	}
}

// SetNode replaces the object.
func (n *NodeInfo) SetNode(node *v1.Node) {
	n.complete()
	amounts := resource.FromList(node.Status.Allocatable)
	n.node = node
	n.fromNode = &nodePart{allocatable: resourceOf(&amounts), images: n.fromNode.images,
		features: ndf.DefaultFramework.TryMap(node.Status.DeclaredFeatures)}
	n.generation = lastGeneration.Add(1)
}
