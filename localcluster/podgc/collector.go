// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	apipod "k8s.io/kubernetes/pkg/api/v1/pod"
	utilpod "k8s.io/kubernetes/pkg/util/pod"
	"k8s.io/utils/clock"
)

const (
	// period is the time between two passes over all pods.
	period = 20 * time.Second
	// quarantine is how long a node must be missing in the cache before the API server is asked for it: pods and nodes
	// come from two watches, so a pod can be seen before its node.
	quarantine = 40 * time.Second
	// sideBySide bounds the concurrent deletions of a pass.
	sideBySide = 50
)

// The condition of a pod whose node is gone.
const (
	orphanReason  = "DeletionByPodGC"
	orphanMessage = "PodGC: node no longer exists"
)

// Collector deletes pods that nothing else will delete.
type Collector struct {
	client    kubernetes.Interface
	pods      corelisters.PodLister
	nodes     corelisters.NodeLister
	synced    []cache.InformerSynced
	threshold int
	clock     clock.PassiveClock
	// missing: name of a node that a pod names and the cache lacks -> when its quarantine ends. Only collect uses it.
	missing map[string]time.Time
}

// New returns a collector. It keeps threshold terminated pods; 0 or less keeps all.
func New(client kubernetes.Interface, pods coreinformers.PodInformer, nodes coreinformers.NodeInformer,
	threshold int) *Collector {
	return &Collector{
		client:    client,
		pods:      pods.Lister(),
		nodes:     nodes.Lister(),
		synced:    []cache.InformerSynced{pods.Informer().HasSynced, nodes.Informer().HasSynced},
		threshold: threshold,
		clock:     clock.RealClock{},
		missing:   map[string]time.Time{},
	}
}

// Run makes a pass every 20 seconds until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return
	}
	wait.UntilWithContext(ctx, c.collect, period)
}

// collect makes one pass. What fails is tried again in a later one.
func (c *Collector) collect(ctx context.Context) {
	logger := klog.FromContext(ctx)
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		logger.Error(err, "List pods")
		return
	}
	list, err := c.nodes.List(labels.Everything())
	if err != nil {
		logger.Error(err, "List nodes")
		return
	}
	nodes := make(map[string]*v1.Node, len(list))
	for _, node := range list {
		nodes[node.Name] = node
	}
	removals := choose(pods, nodes, c.goneNodes(ctx, pods, nodes), c.threshold)
	workqueue.ParallelizeUntil(ctx, sideBySide, len(removals), func(i int) {
		r := removals[i]
		logger.Info("Delete pod", "pod", klog.KObj(r.pod), "node", r.pod.Spec.NodeName, "cause", r.cause)
		if err := c.remove(ctx, r); err != nil {
			logger.Error(err, "Delete pod", "pod", klog.KObj(r.pod), "cause", r.cause)
		}
	})
}

// goneNodes returns the nodes that a pod names, that the cache lacked when the quarantine began and lacks now, and that
// the API server does not have.
func (c *Collector) goneNodes(ctx context.Context, pods []*v1.Pod, nodes map[string]*v1.Node) sets.Set[string] {
	now := c.clock.Now()
	for _, pod := range pods {
		name := pod.Spec.NodeName
		if name == "" || nodes[name] != nil {
			continue
		}
		if _, waits := c.missing[name]; !waits {
			c.missing[name] = now.Add(quarantine)
		}
	}
	gone := sets.New[string]()
	for name, end := range c.missing {
		if now.Before(end) {
			continue
		}
		// If a pod still names the node in the next pass, its quarantine begins anew.
		delete(c.missing, name)
		if nodes[name] != nil {
			continue
		}
		_, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			gone.Insert(name)
		case err != nil:
			klog.FromContext(ctx).Error(err, "Get node", "node", name)
		}
	}
	return gone
}

// remove deletes a pod at once. A pod that has not terminated is marked Failed first: no kubelet will do that, and
// owners such as jobs count the phase.
func (c *Collector) remove(ctx context.Context, r removal) error {
	pod := r.pod
	if !terminated(pod) {
		status := pod.Status.DeepCopy()
		status.Phase = v1.PodFailed
		status.ObservedGeneration = apipod.CalculatePodStatusObservedGeneration(pod)
		if r.cause == orphaned {
			apipod.UpdatePodCondition(status, &v1.PodCondition{
				Type:   v1.DisruptionTarget,
				Status: v1.ConditionTrue,
				ObservedGeneration: apipod.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation,
					v1.DisruptionTarget),
				Reason:  orphanReason,
				Message: orphanMessage,
			})
		}
		if _, _, _, err := utilpod.PatchPodStatus(ctx, c.client, pod.Namespace, pod.Name, pod.UID, pod.Status,
			*status); err != nil {
			return fmt.Errorf("mark pod %s/%s as failed: %w", pod.Namespace, pod.Name, err)
		}
	}
	err := c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
