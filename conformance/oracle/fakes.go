// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// Devices makes upstream's manager of resource claims, fed as the scheduler feeds it
// (scheduler.go and eventhandlers.go): classes reach the cache of extended resources before any
// other component.
func (o *Objects) Devices(ctx context.Context) *dynamicresources.DefaultDRAManager {
	resources := o.Factory.Resource().V1()
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), resources.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(ctx, tracker.Options{
		EnableDeviceTaintRules:   utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules),
		EnableConsumableCapacity: utilfeature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            resources.ResourceSlices(),
		TaintInformer:            resources.DeviceTaintRules(),
	})
	if err != nil {
		panic(fmt.Sprintf("upstream's tracker of resource slices: %v", err))
	}
	m := dynamicresources.NewDRAManager(ctx, claims, slices, o.Factory)
	if cache, ok := m.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache); ok && cache != nil {
		if _, err := resources.DeviceClasses().Informer().AddEventHandler(cache); err != nil {
			panic(fmt.Sprintf("upstream's cache of extended resources: %v", err))
		}
	}
	o.claims, o.slices = claims, slices
	return m
}

// nominator answers from a fixed list of nominated pods.
type nominator struct {
	// byNode: node name -> pods nominated to it, in scenario order.
	byNode map[string][]fwk.PodInfo
}

func newNominator(pods []*v1.Pod) *nominator {
	n := &nominator{}
	n.set(pods)
	return n
}

func (n *nominator) set(pods []*v1.Pod) {
	n.byNode = map[string][]fwk.PodInfo{}
	for _, p := range pods {
		// Upstream's queue goes on with what it could parse, too.
		info, _ := framework.NewPodInfo(p)
		n.byNode[p.Status.NominatedNodeName] = append(n.byNode[p.Status.NominatedNodeName], info)
	}
}

func (n *nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (n *nominator) DeleteNominatedPodIfExists(*v1.Pod)                            {}
func (n *nominator) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}
func (n *nominator) NominatedPodsForNode(node string) []fwk.PodInfo                { return n.byNode[node] }
