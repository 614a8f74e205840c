// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// job is a Prepare or a Release.
type job struct {
	pod      record.PodRef
	decision uint64
	writes   []cluster.Write
	release  bool
}

// objectWriter writes the objects of volumes and devices. The jobs of its pool are those of a Writer.
type objectWriter struct {
	*workerPool[job]
	turns keyedMutex[resourceapi.ResourceClaim]
	// unwritten is Known.Unwritten; nil where everything is read before it is written.
	unwritten func(cluster.Kind, cluster.Target) metav1.Object
}

// watched is the object of a target as the watch has it, zero where that is not kept.
func watched[T metav1.Object](w *objectWriter, kind cluster.Kind, target cluster.Target) (obj T) {
	if w.unwritten != nil {
		obj, _ = w.unwritten(kind, target).(T)
	}
	return obj
}

// atFirst gives out what is known of an object, if anything is, and asks the API server from then on.
func atFirst[T comparable](have T, ask func(context.Context) (T, error)) func(context.Context) (T, error) {
	var none T
	return func(ctx context.Context) (T, error) {
		if obj := have; obj != none {
			have = none
			return obj, nil
		}
		return ask(ctx)
	}
}
