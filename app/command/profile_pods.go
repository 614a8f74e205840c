// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/pods"
)

// reachWithin bounds how long the API server is asked before a recording begins.
const reachWithin = 5 * time.Second

// podWatch notes when pods that are created during a recording are first seen, and when they are seen bound.
type podWatch struct {
	began time.Time
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu    sync.Mutex
	times pods.Times        // guarded by mu
	at    map[types.UID]int // UID -> index in times.Pods; guarded by mu
	err   error             // why the times are not complete; guarded by mu
}

// watchPods starts to watch. What denies it is an error of the part, not of the recording.
func watchPods(ctx context.Context, cfg *rest.Config) *podWatch {
	w := &podWatch{began: time.Now(), times: pods.Times{Created: pods.FromWatch}, at: map[types.UID]int{}}
	ctx, w.stop = context.WithCancel(ctx)
	var r *watchtools.RetryWatcher
	if r, w.err = podsSinceNow(ctx, cfg); w.err != nil {
		return w
	}
	w.done.Go(func() {
		defer r.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case e, open := <-r.ResultChan():
				if ctx.Err() != nil || !w.see(e, open, time.Now()) { // the end of ctx closes the channel too
					return
				}
			}
		}
	})
	return w
}

// podsSinceNow returns a watch of all pods from the current revision on.
func podsSinceNow(ctx context.Context, cfg *rest.Config) (*watchtools.RetryWatcher, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType, cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf", ""
	api, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	client := api.CoreV1().Pods(metav1.NamespaceAll)
	first, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	list, err := client.List(first, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	// The right to watch is asked for before the recording, so that its lack is known at once.
	probe, err := client.Watch(first, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, err
	}
	probe.Stop()
	return watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, o)
		}})
}

// see notes an event. It reports whether the watch goes on.
func (w *podWatch) see(e watch.Event, open bool, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !open || e.Type == watch.Error {
		w.err = errors.New("the watch of pods broke off")
		if status, is := e.Object.(*metav1.Status); is {
			w.err = fmt.Errorf("%w: %s", w.err, status.Message)
		}
		return false
	}
	p, is := e.Object.(*v1.Pod)
	if !is {
		return true
	}
	i, known := w.at[p.UID]
	if !known {
		if e.Type != watch.Added {
			return true // it is older than the recording
		}
		before := len(w.times.Pods)
		w.times.Add(pods.Pod{Namespace: p.Namespace, Name: p.Name, Created: now.UnixNano()})
		if len(w.times.Pods) == before {
			return true
		}
		i = before
		w.at[p.UID] = i
	}
	if one := &w.times.Pods[i]; one.Bound == 0 && p.Spec.NodeName != "" {
		one.Bound = max(now.UnixNano(), one.Created)
	}
	return true
}

// denied returns why the times are not complete; nil if they are so far.
func (w *podWatch) denied() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// addTo ends the watch and adds the times to a bundle, or the reason why there are none.
func (w *podWatch) addTo(b *bundle.Writer) error {
	w.stop()
	w.done.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		b.AddMissing(bundle.Part{Kind: bundle.Pods, Source: string(pods.FromWatch), Began: w.began.UTC(),
			Ended: time.Now().UTC()}, w.err.Error())
		return nil
	}
	return w.times.AddTo(b, w.began)
}
