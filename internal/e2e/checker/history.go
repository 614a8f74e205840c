// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// History follows every pod of a cluster and records violations. If a watch breaks, it lists again, so the API server
// may restart.
type History struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex
	on    map[types.UID]string // pod -> the first node that was seen
	found []string
}

// Follow begins to watch. Stop it.
func Follow(ctx context.Context, client kubernetes.Interface) *History {
	h := &History{client: client, ended: make(chan struct{}), on: map[types.UID]string{}}
	ctx, h.cancel = context.WithCancel(ctx)
	go func() {
		defer close(h.ended)
		for ctx.Err() == nil {
			h.follow(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return h
}

// Stop ends the watch and returns what was found, in the order of finding.
func (h *History) Stop() []string {
	h.cancel()
	<-h.ended
	return h.Found()
}

// Found returns the violations so far, in the order of detection.
func (h *History) Found() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.found)
}

// Bound counts the pods that were seen on a node.
func (h *History) Bound() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.on)
}

// follow lists and watches until something breaks.
func (h *History) follow(ctx context.Context) {
	api := h.client.CoreV1().Pods(metav1.NamespaceAll)
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range list.Items {
		h.see(&list.Items[i])
	}
	w, err := api.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	defer w.Stop()
	defer context.AfterFunc(ctx, w.Stop)()
	for ev := range w.ResultChan() {
		p, isPod := ev.Object.(*v1.Pod)
		if !isPod || ev.Type == watch.Error {
			return
		}
		h.see(p)
	}
}

func (h *History) see(p *v1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, known := h.on[p.UID]
	switch {
	case p.Spec.NodeName == "" && known:
		h.found = append(h.found, fmt.Sprintf("pod %s/%s was on node %s and is on none now", p.Namespace, p.Name, before))
	case p.Spec.NodeName == "":
	case !known:
		h.on[p.UID] = p.Spec.NodeName
	case before != p.Spec.NodeName:
		h.found = append(h.found, fmt.Sprintf("pod %s/%s moved from node %s to %s", p.Namespace, p.Name, before, p.Spec.NodeName))
	}
}
