// SPDX-License-Identifier: Apache-2.0

package framework

import (
	fwk "k8s.io/kube-scheduler/framework"
)

// lister lists the nodes as they are in the decision. It is empty before the first decision.
type lister struct{ h *Host }

var (
	_ fwk.SharedLister      = lister{}
	_ fwk.NodeInfoLister    = lister{}
	_ fwk.StorageInfoLister = lister{}
)

// NodeInfos lists nodes.
func (l lister) NodeInfos() fwk.NodeInfoLister { return l }

// StorageInfos lists the use of claims.
func (l lister) StorageInfos() fwk.StorageInfoLister { return l }

// PodGroupStates lists the pods of native pod groups.
func (l lister) PodGroupStates() fwk.PodGroupStateLister { return podGroupStates(l) }

// PodGroups lists native pod groups.
func (l lister) PodGroups() fwk.PodGroupLister { return podGroupLister(l) }

// CompositePodGroupStates returns a lister that has none.
func (l lister) CompositePodGroupStates() fwk.CompositePodGroupStateLister {
	return noCompositeStates{}
}

// CompositePodGroups returns a lister that has none.
func (l lister) CompositePodGroups() fwk.CompositePodGroupLister { return noComposites{} }

// List returns all nodes, in the order of rows.
func (l lister) List() ([]fwk.NodeInfo, error) { return l.h.infos.all, nil }

// HavePodsWithAffinityList returns the nodes that have pods with affinity or anti-affinity to pods.
func (l lister) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	return l.having(fwk.NodeInfo.GetPodsWithAffinity), nil
}

// HavePodsWithRequiredAntiAffinityList returns the nodes that have pods with required anti-affinity.
func (l lister) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return l.having(fwk.NodeInfo.GetPodsWithRequiredAntiAffinity), nil
}

// HavePodsWithRequiredNonHostScopedAntiAffinityList is empty, as upstream's without the gate
// InterPodAffinityHostnameFastPath.
func (l lister) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	return nil, nil
}

func (l lister) having(pods func(fwk.NodeInfo) []fwk.PodInfo) []fwk.NodeInfo {
	var out []fwk.NodeInfo
	for _, info := range l.h.infos.all {
		if len(pods(info)) > 0 {
			out = append(out, info)
		}
	}
	return out
}

// Get returns a node.
func (l lister) Get(name string) (fwk.NodeInfo, error) { return l.h.infos.named(name) }

// IsPVCUsedByPods reports whether a pod on a node uses a claim, by namespace/name of the claim.
func (l lister) IsPVCUsedByPods(key string) bool {
	for _, info := range l.h.infos.all {
		if info.GetPVCRefCounts()[key] > 0 {
			return true
		}
	}
	return false
}
