// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"iter"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// ErrNotInCall is the error of methods of Handle that read the state of the engine, if the scheduling loop is not
// waiting for a plugin: the state may be changing then.
var ErrNotInCall = errors.New("the state of the scheduler can only be read while the scheduling loop waits for a " +
	"plugin")

// ReadPending says where the host finds the pods that wait, for the states of pod groups. They are read on the loop's
// goroutine, or while it waits.
func (h *Host) ReadPending(pending func() iter.Seq[*cluster.Pod]) { h.pending = pending }

// readable returns the state of the cluster, for plugins that are being called.
func (h *Host) readable() (cluster.Snapshot, error) {
	if !h.watch.busy() || h.infos.state == (cluster.Snapshot{}) {
		return cluster.Snapshot{}, ErrNotInCall
	}
	return h.infos.state, nil
}

// busy reports whether the scheduling loop waits for a call.
func (w *watch) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plugin != nil
}

// csiManager gives the CSINodes of the cluster.
type csiManager struct{ h *Host }

var _ fwk.CSIManager = csiManager{}

// CSINodes returns the lister.
func (c csiManager) CSINodes() fwk.CSINodeLister { return c }

// List returns all CSINodes, by name.
func (c csiManager) List() ([]*storagev1.CSINode, error) { return listOf[*storagev1.CSINode](c.h) }

// Get returns a CSINode.
func (c csiManager) Get(name string) (*storagev1.CSINode, error) {
	return objectNamed[*storagev1.CSINode](c.h, "", name, func() error {
		return apierrors.NewNotFound(storagev1.Resource("csinodes"), name)
	})
}

// listOf returns the objects of a kind, by namespace and name.
func listOf[T cluster.Object](h *Host) ([]T, error) {
	s, err := h.readable()
	if err != nil {
		return nil, err
	}
	var out []T
	cluster.Each(s, func(obj T) bool {
		out = append(out, obj)
		return true
	})
	return out, nil
}

// objectNamed returns an object of a kind, or the error that says that there is none.
func objectNamed[T cluster.Object](h *Host, namespace, name string, missing func() error) (obj T, err error) {
	s, err := h.readable()
	if err != nil {
		return obj, err
	}
	obj, found := cluster.Find[T](s, namespace, name)
	if !found {
		return obj, missing()
	}
	return obj, nil
}

// fullOf returns the object of a pod that is on a node, or assumed there.
func fullOf(p *cluster.Pod, node string) *v1.Pod { return newPodInfo(p, node).pod }
