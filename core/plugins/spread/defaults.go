// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// defaultRevisions changes whenever defaultSelector may.
func defaultRevisions(s cluster.Snapshot) [4]uint64 {
	return [4]uint64{s.KindRevision(cluster.KindService), s.KindRevision(cluster.KindController),
		s.KindRevision(cluster.KindReplicaSet), s.KindRevision(cluster.KindStatefulSet)}
}

// defaultSelector matches the pods that belong with p: those that all services select which select p, and that p's
// controller selects (upstream: plugins/helper/spread.go). It matches everything where there are neither.
func defaultSelector(s cluster.Snapshot, p *cluster.Pod) labels.Selector {
	all := labels.Set{}
	cluster.EachIn(s, p.Namespace, func(svc *v1.Service) bool {
		// A service without a selector selects no pod, whatever its endpoints are.
		if sel := svc.Spec.Selector; sel != nil && selectsAll(sel, p.Spec.Labels) {
			maps.Copy(all, sel)
		}
		return true
	})
	selector := labels.SelectorFromSet(all)
	controller := p.Spec.Controller
	gv, err := schema.ParseGroupVersion(controller.APIVersion)
	if controller.Name == "" || err != nil {
		return selector
	}
	var of *metav1.LabelSelector
	switch gv.WithKind(controller.Kind) {
	case v1.SchemeGroupVersion.WithKind("ReplicationController"):
		if rc, ok := cluster.Find[*v1.ReplicationController](s, p.Namespace, controller.Name); ok {
			maps.Copy(all, rc.Spec.Selector)
		}
		return labels.SelectorFromSet(all)
	case appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):
		if rs, ok := cluster.Find[*appsv1.ReplicaSet](s, p.Namespace, controller.Name); ok {
			of = rs.Spec.Selector
		}
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet"):
		if ss, ok := cluster.Find[*appsv1.StatefulSet](s, p.Namespace, controller.Name); ok {
			of = ss.Spec.Selector
		}
	}
	if own, err := metav1.LabelSelectorAsSelector(of); err == nil {
		if requirements, ok := own.Requirements(); ok {
			selector = selector.Add(requirements...)
		}
	}
	return selector
}

// selectsAll reports whether a pod has all the labels that a service asks for.
func selectsAll(want, have map[string]string) bool {
	for key, value := range want { // order: all must hold
		if got, ok := have[key]; !ok || got != value {
			return false
		}
	}
	return true
}
