// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/kube/call"
)

func listWatch[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	watches func(context.Context, metav1.ListOptions) (watch.Interface, error),
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return list(ctx, o)
		},
		WatchFuncWithContext: watches,
	}
}

const (
	// forbiddenGrace is how long a kind may be forbidden before the scheduler goes on without it. An API server that
	// has just been started forbids what it allows a moment later, when it has read the roles.
	forbiddenGrace = 5 * time.Second
	// firstAbsence and longestAbsence bound the wait before a kind that is not served, or not to us, is asked for
	// again.
	firstAbsence, longestAbsence = time.Second, time.Minute
)

// patient wraps the source of a kind without which the scheduler can go on: one that this API server does not serve, or
// does not let us read. Such an answer is kept from the reflector, which would tell of it again and again, and the
// question is asked again, less and less often. absent is called, once for each call of patient, when the kind must
// count as listed. ctx ends the asking: a reflector lists without a context of its own.
func patient(ctx context.Context, lw *cache.ListWatch, a absence, absent func()) *cache.ListWatch {
	list, watches := lw.ListWithContextFunc, lw.WatchFuncWithContext
	p := &patience{ctx: ctx, absence: a, absent: absent}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (got runtime.Object, err error) {
			p.ask(func() error { got, err = list(ctx, o); return err })
			return got, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (got watch.Interface, err error) {
			p.ask(func() error { got, err = watches(ctx, o); return err })
			return got, err
		},
	}
}

// absence tells of a kind that cannot be read.
type absence struct {
	kind, so string // its name, and what it turns off
	// expected: the absence needs no log line at the default verbosity.
	expected bool
}

// patience belongs to the goroutine of one reflector: its list and its watch follow each other.
type patience struct {
	ctx context.Context
	absence
	absent func()
	logged bool
}

// ask asks until the kind is there, or the answer is of another sort, or ctx ends.
func (p *patience) ask(do func() error) {
	wait := firstAbsence
	for waited := time.Duration(0); ; {
		err := do()
		forbidden := apierrors.IsForbidden(err)
		if !forbidden && !apierrors.IsNotFound(err) {
			if p.logged && err == nil {
				klog.FromContext(p.ctx).Info("Objects of a kind can be read now", "kind", p.kind)
				p.logged = false
			}
			return
		}
		if !p.logged && (!forbidden || waited >= forbiddenGrace) {
			level := 0
			if p.expected {
				level = 2
			}
			klog.FromContext(p.ctx).V(level).Info("Objects of a kind cannot be read; going on as if there were none",
				"kind", p.kind,
				"so", p.so, "err", err)
			p.logged = true
			p.absent()
		}
		if !call.Sleep(p.ctx, wait) {
			return
		}
		waited += wait
		wait = min(2*wait, longestAbsence)
	}
}

// ifServed asks discovery first whether an API is served. Without that, one that is not served would be forbidden for
// a user without the right to it, and a right may come a moment later: the start would wait.
func ifServed(d discovery.DiscoveryInterface, resource schema.GroupVersionResource,
	lw *cache.ListWatch) *cache.ListWatch {
	served := func() error {
		list, err := d.ServerResourcesForGroupVersion(resource.GroupVersion().String())
		named := func(r metav1.APIResource) bool { return r.Name == resource.Resource }
		if apierrors.IsNotFound(err) || err == nil && !slices.ContainsFunc(list.APIResources, named) {
			return apierrors.NewNotFound(resource.GroupResource(), "")
		}
		return nil // what discovery does not know, the list will tell
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if err := served(); err != nil {
				return nil, err
			}
			return lw.ListWithContextFunc(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if err := served(); err != nil {
				return nil, err
			}
			return lw.WatchFuncWithContext(ctx, o)
		},
	}
}
