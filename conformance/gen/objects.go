// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// namespaces that pods live in.
var namespaces = []string{"default", "default", "team-a", "team-a", "team-b"}

// owner is a controller that pods of its namespace can belong to.
type owner struct{ apiVersion, kind, name string }

func (m *maker) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), ResourceVersion: "1", CreationTimestamp: Created}
}

func add(s *scenario.Scenario, o scenario.APIObject) {
	s.Objects = append(s.Objects, scenario.Object{APIObject: o})
}

// objects makes what the cluster holds besides nodes and pods.
func (m *maker) objects(s *scenario.Scenario) {
	m.owners = map[string][]owner{}
	if m.has["InterPodAffinity"] {
		for _, name := range []string{"default", "team-a", "team-b", "empty"} {
			if m.Chance(90) {
				add(s, m.namespace(name))
			}
		}
	}
	if m.has["PodTopologySpread"] && m.Chance(60) {
		m.groups(s)
	}
}

func (m *maker) namespace(name string) *v1.Namespace {
	n := &v1.Namespace{ObjectMeta: m.meta("", name), Status: v1.NamespaceStatus{Phase: v1.NamespaceActive}}
	n.Labels = map[string]string{v1.LabelMetadataName: name}
	if m.Chance(70) {
		n.Labels["team"] = Pick(m.Rand, "a", "b")
	}
	if m.Chance(40) {
		n.Labels["env"] = "prod"
	}
	return n
}

// groups makes services and controllers, whose selectors default spreading reads.
func (m *maker) groups(s *scenario.Scenario) {
	for i := range m.Intn(4) {
		ns := Pick(m.Rand, namespaces...)
		svc := &v1.Service{ObjectMeta: m.meta(ns, fmt.Sprintf("svc-%d", i)), Spec: v1.ServiceSpec{Selector: map[string]string{"app": Pick(m.Rand, "a", "b", "c")}}}
		if m.Chance(20) {
			svc.Spec.Selector["tier"] = "web"
		}
		if m.Chance(10) {
			svc.Spec.Selector = Pick(m.Rand, nil, map[string]string{})
		}
		add(s, svc)
	}
	for i := range m.Intn(5) {
		ns := Pick(m.Rand, namespaces...)
		app := Pick(m.Rand, "a", "b", "c")
		name := fmt.Sprintf("owner-%d", i)
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		if m.Chance(15) {
			selector = m.selector()
		}
		o := owner{"apps/v1", "ReplicaSet", name}
		switch m.Intn(3) {
		case 0:
			add(s, &appsv1.ReplicaSet{ObjectMeta: m.meta(ns, name), Spec: appsv1.ReplicaSetSpec{Selector: selector}})
		case 1:
			o.kind = "StatefulSet"
			add(s, &appsv1.StatefulSet{ObjectMeta: m.meta(ns, name), Spec: appsv1.StatefulSetSpec{Selector: selector}})
		case 2:
			o.apiVersion, o.kind = "v1", "ReplicationController"
			add(s, &v1.ReplicationController{ObjectMeta: m.meta(ns, name), Spec: v1.ReplicationControllerSpec{Selector: map[string]string{"app": app}}})
		}
		m.owners[ns] = append(m.owners[ns], o)
	}
}

// own gives the pod a controller, one that is not there now and then.
func (m *maker) own(p *v1.Pod) {
	list := m.owners[p.Namespace]
	if len(list) == 0 || m.Chance(40) {
		return
	}
	o := Pick(m.Rand, list...)
	switch {
	case m.Rare(15):
		o.name = "gone"
	case m.Rare(20):
		o.apiVersion = Pick(m.Rand, "apps/v1beta1", "example.com/v1", "v1")
	case m.Rare(20):
		o.kind = "DaemonSet"
	}
	yes := true
	ref := metav1.OwnerReference{APIVersion: o.apiVersion, Kind: o.kind, Name: o.name, UID: "uid-owner"}
	if !m.Rare(20) {
		ref.Controller = &yes
	}
	p.OwnerReferences = []metav1.OwnerReference{ref}
}

// changeObjects lets objects come, change and go between two questions.
func (m *maker) changeObjects(s *scenario.Scenario, a *scenario.Ask) {
	if len(s.Objects) == 0 || !m.Chance(15) {
		return
	}
	o := Pick(m.Rand, s.Objects...)
	if m.Chance(20) {
		if class, is := o.APIObject.(*resourceapi.DeviceClass); is {
			if m.sharesResource(class.Name) {
				return
			}
			delete(m.resourceOf, class.Name)
		}
		a.DeleteObjects = append(a.DeleteObjects, o.Key())
		return
	}
	if changed := m.changed(o.APIObject); changed != nil {
		a.SetObjects = append(a.SetObjects, scenario.Object{APIObject: changed})
	}
}

// changed is another version of an object, nil for kinds that do not change here.
func (m *maker) changed(o scenario.APIObject) scenario.APIObject {
	m.serial++
	next := o.DeepCopyObject().(scenario.APIObject)
	next.SetResourceVersion(fmt.Sprint(1 + m.serial))
	switch n := next.(type) {
	case *v1.Namespace:
		n.Labels = m.namespace(n.Name).Labels
	case *v1.Service:
		n.Spec.Selector = map[string]string{"app": Pick(m.Rand, "a", "b", "c")}
	case *appsv1.ReplicaSet:
		n.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": Pick(m.Rand, "a", "b", "c")}}
	case *appsv1.StatefulSet:
		n.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": Pick(m.Rand, "a", "b", "c")}}
	case *v1.ReplicationController:
		n.Spec.Selector = map[string]string{"app": Pick(m.Rand, "a", "b", "c")}
	default:
		return m.changedStorage(next)
	}
	return next
}
