// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Objects are the API objects that are sent to extenders: the versions that the store has. They are not changed.
type Objects interface {
	// Pod returns nil if the pod is unknown.
	Pod(record.PodRef) *v1.Pod
	// Node returns nil if the node is unknown.
	Node(name string) *v1.Node
}

// Ignored is a failed call that did not end the attempt: the extender is ignorable, or the call was only to rank
// nodes.
type Ignored struct {
	Extender string // its URL prefix
	Verb     string
	Pod      record.PodRef
	Err      error
}

// Extenders calls the extenders of a configuration. It is safe for concurrent use if Objects is: binds run beside the
// loop.
type Extenders struct {
	ctx     context.Context // ends all calls but binds
	clients []*client       // in the order of calls
	objects Objects
	ignored func(Ignored)
}

var _ place.Foreign = (*Extenders)(nil)

// New prepares the extenders of a configuration; there must be at least one. ctx ends calls when the scheduler stops;
// ignored may be nil. The error names the extender whose TLS settings are invalid.
func New(ctx context.Context, configs []configv1.Extender, objects Objects, ignored func(Ignored)) (*Extenders, error) {
	if ignored == nil {
		ignored = func(Ignored) {}
	}
	x := &Extenders{ctx: ctx, objects: objects, ignored: ignored}
	for _, canIgnore := range []bool{false, true} {
		for i := range configs {
			if configs[i].Ignorable != canIgnore {
				continue
			}
			c, err := newClient(configs[i])
			if err != nil {
				return nil, err
			}
			x.clients = append(x.clients, c)
		}
	}
	return x, nil
}

// takes reports whether the extender takes part in deciding about p: one without managed resources takes part in all
// decisions. Managed resources are extended resources only, so whatever PodSpec.Devices leaves out requests none of
// them.
func (c *client) takes(p *cluster.Pod) bool {
	if len(c.managed) == 0 {
		return true
	}
	d := p.Spec.Devices
	return d != nil && (c.manages(d.Main) || c.manages(d.Init))
}

func (c *client) manages(containers []v1.Container) bool {
	for i := range containers {
		for _, list := range []v1.ResourceList{containers[i].Resources.Requests, containers[i].Resources.Limits} {
			for name := range list { // order: any match suffices
				if c.managed[string(name)] {
					return true
				}
			}
		}
	}
	return false
}

// Takes reports whether an extender filters or ranks nodes for p.
func (x *Extenders) Takes(p *cluster.Pod) bool {
	for _, c := range x.clients {
		if (c.FilterVerb != "" || c.PrioritizeVerb != "") && c.takes(p) {
			return true
		}
	}
	return false
}

// Binder returns the URL prefix of the extender that binds p. A configuration has at most one that binds.
func (x *Extenders) Binder(p *cluster.Pod) string {
	if c := x.binder(); c != nil && c.takes(p) {
		return c.URLPrefix
	}
	return ""
}

func (x *Extenders) binder() *client {
	for _, c := range x.clients {
		if c.BindVerb != "" {
			return c
		}
	}
	return nil
}

// ErrNotBound means that the extender that binds has failed and is ignorable: the pod is to be bound without it.
var ErrNotBound = errors.New("the extender has not bound the pod and may be ignored")

// Bind lets the extender bind a pod to a node. If the response is lost, the pod may be bound all the same.
func (x *Extenders) Bind(ctx context.Context, ref record.PodRef, node string) error {
	c := x.binder()
	if c == nil {
		return fmt.Errorf("binding pod %s/%s: no extender binds", ref.Namespace, ref.Name)
	}
	question := &extenderv1.ExtenderBindingArgs{PodName: ref.Name, PodNamespace: ref.Namespace,
		PodUID: types.UID(ref.UID), Node: node}
	var answer extenderv1.ExtenderBindingResult
	err := c.call(ctx, c.BindVerb, question, &answer)
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	if err != nil && c.Ignorable {
		x.ignored(Ignored{c.URLPrefix, c.BindVerb, ref, err})
		return ErrNotBound
	}
	return err
}

// pod returns the object of p that is sent to extenders.
func (x *Extenders) pod(ref record.PodRef) (*v1.Pod, error) {
	if p := x.objects.Pod(ref); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("asking extenders about pod %s/%s (%s): the pod is not known", ref.Namespace, ref.Name,
		ref.UID)
}
