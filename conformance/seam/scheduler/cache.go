// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// nodes shows kumiki's cluster in the interface of upstream's cache. Methods that change a cache panic.
type nodes struct {
	internalcache.Cache // nil
	s                   *Scheduler
}

// NodeCount returns the number of nodes.
func (n *nodes) NodeCount() (count int) {
	n.s.ask(func(v engine.View) { count = v.Snapshot().Nodes() })
	return count
}

// PodCount returns the number of pods on nodes, assumed ones included.
func (n *nodes) PodCount() (count int, _ error) {
	n.s.ask(func(v engine.View) { count = v.Snapshot().PodCount() })
	return count, nil
}

// GetPod returns a pod that is on a node.
func (n *nodes) GetPod(pod *v1.Pod) (out *v1.Pod, err error) {
	n.s.ask(func(v engine.View) {
		if p, _, _, on := v.Snapshot().PodOn(cluster.UID(pod.UID)); on {
			out = object(p)
		}
	})
	if out == nil {
		return nil, fmt.Errorf("pod %s/%s is on no node", pod.Namespace, pod.Name)
	}
	return out, nil
}

// IsAssumedPod reports whether a pod has a node that the API server has not shown.
func (n *nodes) IsAssumedPod(pod *v1.Pod) (is bool, _ error) {
	n.s.ask(func(v engine.View) { _, _, is, _ = v.Snapshot().PodOn(cluster.UID(pod.UID)) })
	return is, nil
}

// GetNode returns the node with its pods.
func (n *nodes) GetNode(name string) (info *framework.NodeInfo, err error) {
	n.s.ask(func(v engine.View) { info = nodeInfo(v.Snapshot(), name) })
	if info == nil {
		return nil, fmt.Errorf("node %q is not known", name)
	}
	return info, nil
}

func nodeInfo(s cluster.Snapshot, name string) *framework.NodeInfo {
	row, there := s.Find(name)
	if !there {
		return nil
	}
	var pods []*v1.Pod
	s.EachPod(row, func(p *cluster.Pod, _ bool) { pods = append(pods, object(p)) })
	info := framework.NewNodeInfo(pods...)
	if full := s.Node(row).Full; full != nil {
		info.SetNode(full)
		return info
	}
	node := &v1.Node{}
	node.Name = name
	info.SetNode(node)
	return info
}

// Dump returns all nodes and the assumed pods.
func (n *nodes) Dump() *internalcache.Dump {
	out := &internalcache.Dump{AssumedPods: sets.New[string](), Nodes: map[string]*framework.NodeInfo{}}
	n.s.ask(func(v engine.View) {
		s := v.Snapshot()
		for row := range cluster.NodeIdx(s.Rows()) {
			if name := s.NodeName(row); name != "" && s.Node(row) != nil {
				out.Nodes[name] = nodeInfo(s, name)
			}
			s.EachPod(row, func(p *cluster.Pod, assumed bool) {
				if assumed {
					out.AssumedPods.Insert(string(p.UID))
				}
			})
		}
	})
	return out
}
