// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/kube/gangapi"
)

// gangVersion chooses the version in which the objects of an API are read: the first of its versions that the API
// server serves. It chooses again before each list and each watch, because an API server can be upgraded, or gain an
// API, while the scheduler runs. If a watch would be of another version than the list before it, the reflector lists
// again.
//
// Asking discovery first also keeps the start short: an API that is not served is forbidden to users without the right
// to it, and for a forbidden kind the start waits a moment, since the right may come.
type gangVersion struct {
	discovery discovery.DiscoveryInterface
	api       gangapi.API
	set       func(version string) // takes the version of each list

	mu     sync.Mutex
	listed string // the version of the newest list; empty before the first
}

// choose returns the version to read; ok is false if the API server serves none.
func (v *gangVersion) choose(ctx context.Context) (version string, ok bool) {
	for _, version := range v.api.Versions {
		served, err := serves(ctx, v.discovery, v.api.Resource.WithVersion(version))
		switch {
		case err != nil:
			// The answer of the list will be the better one.
			if last := v.last(); last != "" {
				return last, true
			}
			return version, true
		case served:
			return version, true
		}
	}
	return "", false
}

func (v *gangVersion) last() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.listed
}

func (v *gangVersion) setListed(version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listed = version
	v.set(version)
}

// listWatch reads the objects in the chosen version. in returns the source of one version.
func (v *gangVersion) listWatch(in func(schema.GroupVersionResource) *cache.ListWatch) *cache.ListWatch {
	notServed := apierrors.NewNotFound(v.api.Resource, "")
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			version, ok := v.choose(ctx)
			if !ok {
				return nil, notServed
			}
			v.setListed(version)
			return in(v.api.Resource.WithVersion(version)).ListWithContextFunc(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			version, ok := v.choose(ctx)
			switch {
			case !ok:
				return nil, notServed
			case o.SendInitialEvents != nil && *o.SendInitialEvents: // a list in the form of a watch
				v.setListed(version)
			case version != v.last():
				return nil, apierrors.NewResourceExpired("served in version " + version +
					" now, listed in version " + v.last())
			}
			return in(v.api.Resource.WithVersion(version)).WatchFuncWithContext(ctx, o)
		},
	}
}
