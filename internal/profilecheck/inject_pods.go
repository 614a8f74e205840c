// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

func gated(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	n := between(r, 30, 150)
	change := gate
	if g.removed {
		change = nil
	}
	g.load(10, nil)
	return fmt.Sprintf("%d pods", n), g.backlog(ctx, n, change)
}

func tooLarge(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	n := between(r, 30, 150)
	g.load(10, nil)
	return fmt.Sprintf("%d pods", n), g.backlog(ctx, n, func(p *v1.Pod) {
		if !g.removed {
			request(p, "5000")
		}
	})
}

// highPriority is a priority class of pods that evict others.
const highPriority = "profilecheck-high"

// fill fills all nodes with pods, this many on each, which leave no capacity.
func (g *ground) fill(ctx context.Context, each int, grace *int64) error {
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: highPriority}, Value: 1000}
	_, err := g.client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating a priority class: %w", err)
	}
	list, err := g.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	var n atomic.Int64
	return g.backlog(ctx, each*len(list.Items), func(p *v1.Pod) {
		node := &list.Items[(n.Add(1)-1)%int64(len(list.Items))]
		cpu := node.Status.Allocatable.Cpu().MilliValue() / int64(each)
		request(p, fmt.Sprintf("%dm", cpu))
		p.Spec.TerminationGracePeriodSeconds = grace
		p.Spec.NodeName = node.Name // bound from the start
	})
}

// longVictims lets pods evict others that do not terminate, because what stands for the kubelets is stopped.
func longVictims(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	n, grace := between(r, 5, 20), int64(3600)
	if g.removed {
		grace = 0
	} else {
		if err := g.cluster.Stop(testcluster.Nodes); err != nil {
			return "", fmt.Errorf("stopping the nodes: %w", err)
		}
		g.cleanup(func() { _ = g.cluster.Cont(testcluster.Nodes) })
	}
	if err := g.fill(ctx, 1, &grace); err != nil {
		return "", err
	}
	g.whenReady(func(ctx context.Context) error {
		return g.backlog(ctx, n, func(p *v1.Pod) {
			p.Spec.PriorityClassName = highPriority
			request(p, "4")
		})
	})
	return fmt.Sprintf("%d pods", n), nil
}

// slowVolumes provides each volume late.
func slowVolumes(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	d := time.Duration(between(r, 300, 1200)) * time.Millisecond
	wait := v1.PersistentVolumeReclaimRetain
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: g.namespace}, Provisioner: "example.com/slow",
		VolumeBindingMode: &mode, ReclaimPolicy: &wait}
	if _, err := g.client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("creating a storage class: %w", err)
	}
	late := d
	if g.removed {
		late = 0
	}
	var n atomic.Int64
	g.whenReady(func(ctx context.Context) error {
		g.loads.Go(func() { g.provide(ctx, late) })
		return nil
	})
	g.load(10, func(p *v1.Pod) {
		name := fmt.Sprint("claim-", n.Add(1))
		if err := g.claim(ctx, name); err != nil {
			return // the pod waits then, and the result shows it
		}
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	})
	g.cleanup(func() {
		_ = g.client.CoreV1().PersistentVolumeClaims(g.namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{})
	})
	return d.String(), nil
}

func (g *ground) claim(ctx context.Context, name string) error {
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeClaimSpec{
		StorageClassName: &g.namespace, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{
			v1.ResourceStorage: resource.MustParse("1Gi")}}}}
	_, err := g.client.CoreV1().PersistentVolumeClaims(g.namespace).Create(ctx, c, metav1.CreateOptions{})
	return err
}

// selectedNode is the annotation with which a scheduler asks for a volume.
const selectedNode = "volume.kubernetes.io/selected-node"

// provide provides the volumes that the scheduler asks for, each after a time, until the load ends.
func (g *ground) provide(ctx context.Context, late time.Duration) {
	claims, volumes := g.client.CoreV1().PersistentVolumeClaims(g.namespace), g.client.CoreV1().PersistentVolumes()
	w, err := claims.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	defer w.Stop()
	seen := map[string]bool{} // claim -> asked for
	for event := range w.ResultChan() {
		c, is := event.Object.(*v1.PersistentVolumeClaim)
		if !is || c.Annotations[selectedNode] == "" || seen[c.Name] {
			continue
		}
		seen[c.Name] = true
		volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: g.namespace + "-" + c.Name},
			Spec: v1.PersistentVolumeSpec{StorageClassName: g.namespace, AccessModes: c.Spec.AccessModes,
				Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")},
				ClaimRef: &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: g.namespace,
					Name: c.Name, UID: c.UID},
				PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
					Driver: "example.com", VolumeHandle: string(c.UID)}}}}
		g.loads.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(late):
				_, _ = volumes.Create(ctx, volume, metav1.CreateOptions{})
			}
		})
	}
}
