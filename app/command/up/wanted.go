// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// wanted is the number of pods of each applied workload: workload -> pods. The number of a daemon set is -1 until its
// controller has counted the nodes.
type wanted map[workload]int

// wantedOf derives it from the manifests. Kinds that create pods at a later time, such as cron jobs, are not in it.
func wantedOf(objects []*unstructured.Unstructured) wanted {
	out := wanted{}
	for _, o := range objects {
		key := workload{o.GetKind(), o.GetNamespace(), o.GetName()}
		number := func(field string, otherwise int64) int {
			if n, found, err := unstructured.NestedInt64(o.Object, "spec", field); found && err == nil {
				otherwise = n
			}
			return int(otherwise)
		}
		switch o.GetKind() {
		case "Pod":
			out[key] = 1
		case "Deployment", "ReplicaSet", "StatefulSet":
			out[key] = number("replicas", 1)
		case "Job":
			out[key] = number("completions", int64(number("parallelism", 1)))
		case "DaemonSet":
			out[key] = -1
		}
	}
	return out
}

// count reads the number of nodes of the daemon sets.
func (w wanted) count(ctx context.Context, api kubernetes.Interface) error {
	for key, n := range w {
		if n >= 0 {
			continue
		}
		set, err := api.AppsV1().DaemonSets(key.namespace).Get(ctx, key.name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("daemon set %s/%s: %w", key.namespace, key.name, err)
		}
		if set.Status.ObservedGeneration == set.Generation && set.Status.DesiredNumberScheduled > 0 {
			w[key] = int(set.Status.DesiredNumberScheduled)
		}
	}
	return nil
}

// total returns the expected number of pods; complete is false while a daemon set has not been counted.
func (w wanted) total() (n int, complete bool) {
	complete = true
	for _, pods := range w {
		n += max(pods, 0)
		complete = complete && pods >= 0
	}
	return n, complete
}

// reached reports whether every workload has its pods.
func (w wanted) reached(s summary) bool {
	have := map[workload]int{} // workload -> pods seen
	for _, row := range s.workloads {
		have[row.workload] = row.pods
	}
	for key, n := range w {
		if n < 0 || have[key] < n {
			return false
		}
	}
	return true
}
