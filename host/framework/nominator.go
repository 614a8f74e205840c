// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// nominator is a copy of the nominations that the engine knows, with the changes that plugins made and that are on
// their way to it. It is safe for concurrent use, as plugins call it from any goroutine.
type nominator struct {
	mu sync.Mutex
	on map[string][]fwk.PodInfo // node -> pods, in order of nomination. Invariant: no list is empty.
	of map[types.UID]string     // pod -> node. Invariant: on[of[uid]] has the pod exactly once.
	// collects: changes are part of the answer of the plugin that is called now, and else events.
	collects bool
	changes  []record.Nomination
}

var _ plugin.Nominator = (*nominator)(nil)

// Nominator returns what follows the nominations of the engine, nil if the host has no plugin.
func (h *Host) Nominator() plugin.Nominator {
	if !slices.ContainsFunc(h.profiles, func(p *Profile) bool { return !p.Empty() }) {
		return nil
	}
	return &h.nominated
}

// Nominated replaces the pods of a node.
func (n *nominator) Nominated(node string, pods []*cluster.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, info := range n.on[node] {
		delete(n.of, info.GetPod().UID)
	}
	delete(n.on, node)
	for _, p := range pods {
		n.put(newPodInfo(p, p.NodeName), node)
	}
}

// put nominates a pod; an empty node ends its nomination.
func (n *nominator) put(info fwk.PodInfo, node string) {
	uid := info.GetPod().UID
	if was, known := n.of[uid]; known {
		delete(n.of, uid)
		n.on[was] = slices.DeleteFunc(n.on[was], func(other fwk.PodInfo) bool { return other.GetPod().UID == uid })
		if len(n.on[was]) == 0 {
			delete(n.on, was)
		}
	}
	if node == "" {
		return
	}
	if n.on == nil {
		n.on, n.of = map[string][]fwk.PodInfo{}, map[types.UID]string{}
	}
	n.of[uid] = node
	n.on[node] = append(n.on[node], info)
}

// nodeOf returns the nominated node of a pod.
func (n *nominator) nodeOf(uid types.UID) (node string, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	node, known = n.of[uid]
	return node, known
}

// pods returns the pods nominated to a node.
func (n *nominator) pods(node string) []fwk.PodInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.on[node])
}

// all returns all nominated pods, in no order.
func (n *nominator) all() (pods []fwk.PodInfo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, on := range n.on { // order: the caller looks for one
		pods = append(pods, on...)
	}
	return pods
}

// collect makes changes part of an answer.
func (n *nominator) collect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.collects = true
}

// collected returns the changes since collect, and ends it.
func (n *nominator) collected() []record.Nomination {
	n.mu.Lock()
	defer n.mu.Unlock()
	made := n.changes
	n.collects, n.changes = false, nil
	return made
}

// nominate changes the nomination of a pod for a plugin. The engine corrects the copy if it does not know the pod.
func (h *Host) nominate(info fwk.PodInfo, node string) {
	pod, n := info.GetPod(), &h.nominated
	change := record.Nomination{Node: node,
		Pod: record.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}}
	n.mu.Lock()
	n.put(info, node)
	collects := n.collects
	if collects {
		n.changes = append(n.changes, change)
	}
	n.mu.Unlock()
	if !collects && h.env.Post != nil {
		h.env.Post(message.Nominations{List: []record.Nomination{change}})
	}
}

// AddNominatedPod nominates a pod, or changes its nomination.
func (h *handle) AddNominatedPod(_ klog.Logger, info fwk.PodInfo, to *fwk.NominatingInfo) {
	h.p.host.nominate(info, nominatedNode(info.GetPod(), to))
}

// DeleteNominatedPodIfExists ends the nomination of a pod.
func (h *handle) DeleteNominatedPodIfExists(pod *v1.Pod) {
	if _, known := h.p.host.nominated.nodeOf(pod.UID); known {
		h.p.host.nominate(&PodInfo{pod: pod}, "")
	}
}

// UpdateNominatedPod replaces a version of a pod. The nomination is that of the new status; if neither version has one,
// it stays.
func (h *handle) UpdateNominatedPod(_ klog.Logger, was *v1.Pod, info fwk.PodInfo) {
	node := info.GetPod().Status.NominatedNodeName
	if was.Status.NominatedNodeName == "" && node == "" {
		node, _ = h.p.host.nominated.nodeOf(was.UID)
	}
	h.p.host.nominate(info, node)
}

// NominatedPodsForNode returns the pods that are nominated to a node.
func (h *handle) NominatedPodsForNode(node string) []fwk.PodInfo {
	return h.p.host.nominated.pods(node)
}
