// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"time"

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
	in.groupsIfRead, in.groups, in.groupPolicy = r.GroupIfRead, groupsReadable, r.GroupPolicy
	if r.GroupIfRead {
		in.groups = groupsAbsent
	}
	for _, api := range gangapi.APIs {
		if api.Source == cluster.GangOfGroup && !r.Group || api.Source == cluster.GangOfSigs && !r.Sigs ||
			api.Source == cluster.GangOfVolcano && !r.Volcano {
			continue
		}
		t := newRows(rank(len(in.objects)), sameObject, in.listedLocked)
		t.kind, t.gangs, t.version = cluster.KindGang, api, api.Versions[0]
		if api.Source == cluster.GangOfGroup {
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
	was := in.groups
	in.groups = groupsReadable
	clear(in.ungrouped)
	if was == groupsAbsent {
		in.enqueueMembersLocked()
	}
}

// missGroups notes that the API server does not serve pod groups, or forbids them. If they count all the same, their
// pods wait.
func (in *Inbox) missGroups(t *rows[cluster.Object]) {
	in.goOnWithout(t)
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.groups != groupsAbsent {
		in.failGroupsLocked()
	}
}

// failGroups notes that the API server serves pod groups and cannot list them. Scheduling goes on: what is known of
// groups stays, the pods of other groups wait for theirs, and pods without a node are reported.
func (in *Inbox) failGroups(t *rows[cluster.Object]) {
	in.goOnWithout(t)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.failGroupsLocked()
}

func (in *Inbox) failGroupsLocked() {
	was := in.groups
	in.groups = groupsFailing
	switch was {
	case groupsFailing:
	case groupsAbsent: // reported when they become events again
		in.enqueueMembersLocked()
	case groupsReadable:
		for key, r := range in.pods.rows { // order: TakeUngrouped sorts
			in.noteUngroupedLocked(key, nil, r.newest)
		}
	}
	in.signal()
}

// enqueueMembersLocked makes the pods that name a pod group events again.
func (in *Inbox) enqueueMembersLocked() {
	var members []objectKey
	for key, r := range in.pods.rows { // order: sorted below
		if inGroup(r.newest) {
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

// GangVersion returns the version in which the objects of an API that declares gangs are read, the preferred one as
// long as none has been served.
func (in *Inbox) GangVersion(source cluster.GangSource) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, t := range in.objects {
		if t.kind == cluster.KindGang && t.gangs.Source == source {
			return t.version
		}
	}
	panic("kube: objects of " + string(source) + " are not watched")
}

// setGangVersion takes the version in which the objects of an API are read from now on.
func (in *Inbox) setGangVersion(t *rows[cluster.Object], version string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	t.version = version
}

// newGangStore feeds an Inbox from objects that declare gangs.
func newGangStore(in *Inbox, t *rows[cluster.Object]) store[*unstructured.Unstructured, cluster.Object] {
	return store[*unstructured.Unstructured, cluster.Object]{in, t,
		func(obj *unstructured.Unstructured) cluster.Object {
			return in.convertGang(t, obj, func() *cluster.Gang {
				g := t.gangs.Convert(obj)
				g.NeverPreempts = g.NeverPreempts && in.groupPolicy
				return g
			})
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
