// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Writes sends the writes that each scheduled pod costs. Its methods may be called from any goroutine. An error that
// the API server answered is an apierrors.APIStatus; any other error leaves open whether the write was carried out.
type Writes interface {
	// Bind sends a binding of the pod that it names, which must have a namespace and a name.
	Bind(ctx context.Context, b *v1.Binding) error
	// CreateEvent creates an event, which must have a namespace.
	CreateEvent(ctx context.Context, e *eventsv1.Event) error
}

// Typed returns the Writes that uses client-go's typed clients.
func Typed(client kubernetes.Interface) Writes { return typed{client} }

type typed struct{ client kubernetes.Interface }

// Bind implements Writes.
func (t typed) Bind(ctx context.Context, b *v1.Binding) error {
	return t.client.CoreV1().Pods(b.Namespace).Bind(ctx, b, metav1.CreateOptions{})
}

// CreateEvent implements Writes.
func (t typed) CreateEvent(ctx context.Context, e *eventsv1.Event) error {
	_, err := t.client.EventsV1().Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
	return err
}
