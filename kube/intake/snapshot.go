// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// Snapshot lists a cluster once, with rights to list and watch and no others: the events from which an engine knows it,
// from the first object to Synced. inbox is new and serves nothing else. objects may be nil where no objects of
// resource definitions declare gangs. ctx bounds the waiting.
func Snapshot(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface,
	inbox *Inbox) ([]engine.Event, error) {
	// Without pods and nodes there is no snapshot; asking for one of each says so at once instead of trying endlessly.
	one := metav1.ListOptions{Limit: 1}
	if _, err := client.CoreV1().Nodes().List(ctx, one); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	if _, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, one); err != nil {
		return nil, fmt.Errorf("listing pods of all namespaces: %w", err)
	}
	informers := NewInformers(client, inbox)
	informers.Dynamic = objects
	informers.Start(ctx)
	defer informers.Stop()
	const atOnce = 1 << 16
	var events []engine.Event
	for {
		events, _ = inbox.Take(events, atOnce)
		if n := len(events); n > 0 && events[n-1] == (engine.Synced{}) {
			return events, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("listing the cluster: %w", ctx.Err())
		case <-inbox.ready:
		}
	}
}
