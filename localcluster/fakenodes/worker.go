// SPDX-License-Identifier: Apache-2.0

package fakenodes

import (
	"context"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

// Limits of the pod workers. They wait for the API server most of the time.
const (
	podWorkers   = 24
	firstRetry   = 20 * time.Millisecond
	longestRetry = 2 * time.Second
)

// kubelets carries out the steps of all pods.
type kubelets struct {
	client kubernetes.Interface
	ledger *ledger
	stages Stages
	queue  workqueue.TypedRateLimitingInterface[podUID]
}

func newKubelets(client kubernetes.Interface, l *ledger, stages Stages) *kubelets {
	return &kubelets{
		client: client,
		ledger: l,
		stages: stages,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[podUID](firstRetry, longestRetry)),
	}
}

// run works until ctx ends.
func (k *kubelets) run(ctx context.Context) {
	for range podWorkers {
		go func() {
			for {
				uid, shutdown := k.queue.Get()
				if shutdown {
					return
				}
				k.work(ctx, uid)
				k.queue.Done(uid)
			}
		}()
	}
	<-ctx.Done()
	k.queue.ShutDown()
}

// work does one step for a pod. A write that fails is tried again until the pod
// is gone: a kubelet does not give up when the API server is away.
func (k *kubelets) work(ctx context.Context, uid podUID) {
	v, ok := k.ledger.look(uid)
	if !ok {
		k.queue.Forget(uid)
		return
	}
	next := k.stages.next(v, time.Now())
	err := k.apply(ctx, v.pod, next)
	switch {
	case err == nil:
		k.queue.Forget(uid)
		if next.wait > 0 {
			k.queue.AddAfter(uid, next.wait)
		}
	case apierrors.IsNotFound(err):
		// The deletion is on its way through the watch.
		k.queue.Forget(uid)
	default:
		// A conflict means that a newer version is on its way; the retry finds
		// it. All else is the API server's trouble.
		if !apierrors.IsConflict(err) {
			slog.Warn("write pod", "pod", v.pod.Namespace+"/"+v.pod.Name, "err", err)
		}
		k.queue.AddRateLimited(uid)
	}
}

// apply writes a step. The UID and resource version in the object keep it from
// landing on a newer pod of the same name.
func (k *kubelets) apply(ctx context.Context, pod *v1.Pod, next step) error {
	pods := k.client.CoreV1().Pods(pod.Namespace)
	switch {
	case next.status != nil:
		changed := *pod
		changed.Status = *next.status
		_, err := pods.UpdateStatus(ctx, &changed, metav1.UpdateOptions{})
		return err
	case next.remove:
		now := int64(0)
		uid := pod.UID
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now,
			Preconditions:      &metav1.Preconditions{UID: &uid},
		})
	}
	return nil
}
