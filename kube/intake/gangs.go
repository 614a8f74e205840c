// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"time"

	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/kube/gangapi"
)

// ReadGangs makes an Inbox take in what declares gangs: the marks of pods, and objects of the APIs that count. Call it
// before the first object comes.
func (in *Inbox) ReadGangs(r convert.GangRules) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.intake.DeclareGangs(r)
	in.groupsIfRead, in.groupsRead = r.GroupIfRead, !r.GroupIfRead
	for _, api := range gangapi.APIs {
		if api.Source == cluster.GangOfGroup && !r.Group || api.Source == cluster.GangOfSigs && !r.Sigs ||
			api.Source == cluster.GangOfVolcano && !r.Volcano {
			continue
		}
		t := newRows(rank(len(in.objects)), sameObject, in.listedLocked)
		t.kind, t.gangs = cluster.KindGang, api
		if api.Source == cluster.GangOfGroup && r.GroupIfRead {
			t.onList = func(came time.Time) {
				in.readGroupsLocked()
				in.listedLocked(came)
			}
		}
		in.objects = append(in.objects, t)
	}
}

// readGroupsLocked lets pod groups count from the first list of them on, and for good: what was known of them stays
// when the API goes. Pods that named a group before become events again.
func (in *Inbox) readGroupsLocked() {
	if in.groupsRead {
		return
	}
	in.groupsRead = true
	var members []objectKey
	for key, r := range in.pods.rows { // order: sorted below
		if p := r.newest; p != nil && p.Gang != nil && p.Gang.Key.Source == cluster.GangOfGroup {
			members = append(members, key)
		}
	}
	slices.SortFunc(members, compareKeys)
	for _, key := range members {
		in.pods.enqueue(&in.backlog, key, in.pods.rows[key])
	}
}

// Gang returns the newest record of the object that declares a gang, nil when there is none.
func (in *Inbox) Gang(key cluster.GangKey) *cluster.Gang {
	in.mu.Lock()
	defer in.mu.Unlock()
	at := key.Object()
	for _, t := range in.objects {
		if t.kind == cluster.KindGang && t.gangs.Source == key.Source {
			g, _ := t.rows[objectKey{at.Namespace, at.Name}].newest.(*cluster.Gang)
			return g
		}
	}
	return nil
}

// newGroupStore feeds an Inbox from native pod groups, newGangStore from objects of resource definitions.
func newGroupStore(in *Inbox, t *rows[cluster.Object]) store[*schedulingv1alpha2.PodGroup, cluster.Object] {
	return store[*schedulingv1alpha2.PodGroup, cluster.Object]{in, t,
		func(obj *schedulingv1alpha2.PodGroup) cluster.Object {
			return in.convertGang(t, obj, func() *cluster.Gang { return gangapi.PodGroup(obj) })
		}, string(t.gangs.Source) + "/"}
}

func newGangStore(in *Inbox, t *rows[cluster.Object]) store[*unstructured.Unstructured, cluster.Object] {
	return store[*unstructured.Unstructured, cluster.Object]{in, t,
		func(obj *unstructured.Unstructured) cluster.Object {
			return in.convertGang(t, obj, func() *cluster.Gang { return t.gangs.Convert(obj) })
		}, string(t.gangs.Source) + "/"}
}

// convertGang makes the compact record, nil when the object broke the conversion.
func (in *Inbox) convertGang(t *rows[cluster.Object], obj metav1.Object,
	convert func() *cluster.Gang) (rec cluster.Object) {
	defer func() {
		if problem := recover(); problem != nil {
			in.trouble(t.gangs.WatchName()+" "+obj.GetNamespace()+"/"+obj.GetName(), problem)
			rec = nil
		}
	}()
	return convert()
}
