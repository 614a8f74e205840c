// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// recentKinds are the kinds that the oldest supported release of the API server does not serve: kind -> the resource
// that is read.
var recentKinds = map[cluster.Kind]schema.GroupVersionResource{
	cluster.KindDeviceTaint: resourceapi.SchemeGroupVersion.WithResource("devicetaintrules"), // since 1.37
}

// serves reports whether the API server serves a resource. An error means that discovery does not answer, or that ctx
// ended before it did.
func serves(ctx context.Context, d discovery.DiscoveryInterface, r schema.GroupVersionResource) (bool, error) {
	asked := discovery.ToDiscoveryInterfaceWithContext(d)
	list, err := asked.ServerResourcesForGroupVersionWithContext(ctx, r.GroupVersion().String())
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(a metav1.APIResource) bool { return a.Name == r.Resource }), nil
}

// ifServed asks discovery before each list and each watch of a resource, so that one that is not served is reported as
// not found: to a user without the right to it, it would be forbidden, for which the start waits a moment.
func ifServed(d discovery.DiscoveryInterface, r schema.GroupVersionResource, lw *cache.ListWatch) *cache.ListWatch {
	check := func(ctx context.Context) error {
		if served, err := serves(ctx, d, r); err == nil && !served {
			return apierrors.NewNotFound(r.GroupResource(), "")
		}
		return nil // without an answer, that of the list is the better one
	}
	list, watches := lw.ListWithContextFunc, lw.WatchFuncWithContext
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if err := check(ctx); err != nil {
				return nil, err
			}
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if err := check(ctx); err != nil {
				return nil, err
			}
			return watches(ctx, o)
		},
	}
}
