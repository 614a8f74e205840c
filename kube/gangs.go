// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"

	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// gangAPI is an API whose objects declare gangs.
type gangAPI struct {
	source   cluster.GangSource
	resource schema.GroupVersionResource
	kind     string
	// convert reads an object of the API that was made known by a resource definition; nil for the native one, which has
	// a typed client.
	convert func(*unstructured.Unstructured) *cluster.Gang
	// status tells what must change in the status of such an object, nothing when it is as wished.
	status func(*unstructured.Unstructured, engine.GangStatus, metav1.Time) map[string]any
}

// gangAPIs are told after all other kinds, in this order.
var gangAPIs = []gangAPI{
	{cluster.GangOfGroup, schedulingv1alpha2.SchemeGroupVersion.WithResource("podgroups"), "PodGroup", nil, nil},
	{cluster.GangOfSigs, schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}, "PodGroup", sigsGang, sigsStatus},
	{cluster.GangOfVolcano, schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}, "PodGroup", volcanoGang, volcanoStatus},
}

// watchName is what the watch of an API is called in logs and metrics.
func (a gangAPI) watchName() string { return a.resource.Resource + "." + a.resource.Group }

// consequence says what is lost while objects of the API cannot be read.
func (a gangAPI) consequence(onlyIfRead bool) string {
	if onlyIfRead {
		return "pods of pod groups are scheduled one by one"
	}
	return "pods of the gangs that they declare wait"
}

// ReadGangs makes an Inbox take in what declares gangs: the marks of pods, and objects of the APIs that count. Call it
// before the first object comes.
func (in *Inbox) ReadGangs(r cluster.GangRules) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.intake.DeclareGangs(r)
	in.groupsIfRead, in.groupsRead = r.GroupIfRead, !r.GroupIfRead
	for _, api := range gangAPIs {
		if api.source == cluster.GangOfGroup && !r.Group || api.source == cluster.GangOfSigs && !r.Sigs || api.source == cluster.GangOfVolcano && !r.Volcano {
			continue
		}
		t := newRows(rank(len(in.objects)), sameObject)
		t.kind, t.gangs = cluster.KindGang, api
		if api.source == cluster.GangOfGroup && r.GroupIfRead {
			t.onList = in.readGroupsLocked
		}
		in.objects = append(in.objects, t)
	}
}

// readGroupsLocked lets pod groups count from the first list of them on, and for good: what was known of them stays when
// the API goes. Pods that said so before are told anew.
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
		in.pods.enqueue(in, key, in.pods.rows[key])
	}
}

// asRead is a pod as it counts while pod groups can be read or not.
func (in *Inbox) asRead(p *cluster.Pod) *cluster.Pod {
	if p == nil || in.groupsRead || p.Gang == nil || p.Gang.Key.Source != cluster.GangOfGroup {
		return p
	}
	other := *p
	if other.Gang = p.Gang.Unread; other.Gang == nil {
		other.Bound = nil
	}
	return &other
}

// Gang returns the newest record of the object that declares a gang, nil when there is none.
func (in *Inbox) Gang(key cluster.GangKey) *cluster.Gang {
	in.mu.Lock()
	defer in.mu.Unlock()
	at := key.Object()
	for _, t := range in.objects {
		if t.kind == cluster.KindGang && t.gangs.source == key.Source {
			g, _ := t.rows[objectKey{at.Namespace, at.Name}].newest.(*cluster.Gang)
			return g
		}
	}
	return nil
}

// newGroupStore feeds an Inbox from native pod groups, newGangStore from objects of resource definitions.
func newGroupStore(in *Inbox, t *rows[cluster.Object]) store[*schedulingv1alpha2.PodGroup, cluster.Object] {
	return store[*schedulingv1alpha2.PodGroup, cluster.Object]{in, t, func(obj *schedulingv1alpha2.PodGroup) cluster.Object {
		return in.convertGang(t, obj, func() *cluster.Gang { return groupGang(obj) })
	}, string(t.gangs.source) + "/"}
}

func newGangStore(in *Inbox, t *rows[cluster.Object]) store[*unstructured.Unstructured, cluster.Object] {
	return store[*unstructured.Unstructured, cluster.Object]{in, t, func(obj *unstructured.Unstructured) cluster.Object {
		return in.convertGang(t, obj, func() *cluster.Gang { return t.gangs.convert(obj) })
	}, string(t.gangs.source) + "/"}
}

// convertGang makes the compact record, nil when the object broke the conversion.
func (in *Inbox) convertGang(t *rows[cluster.Object], obj metav1.Object, convert func() *cluster.Gang) (rec cluster.Object) {
	defer func() {
		if problem := recover(); problem != nil {
			in.trouble(t.gangs.watchName()+" "+obj.GetNamespace()+"/"+obj.GetName(), problem)
			rec = nil
		}
	}()
	return convert()
}

// gangMeta is what is kept of the metadata of an object that declares a gang.
func gangMeta(source cluster.GangSource, obj metav1.Object) *cluster.Gang {
	g := &cluster.Gang{Key: cluster.GangKey{Source: source, Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	g.ObjectMeta = metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: g.Key.Object().Name, UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
		Generation: obj.GetGeneration(), CreationTimestamp: obj.GetCreationTimestamp(), DeletionTimestamp: obj.GetDeletionTimestamp(),
	}
	return g
}

// setMinCount takes how many pods a gang needs.
func setMinCount(g *cluster.Gang, field string, n int64) {
	switch {
	case n < 1:
		g.Bad = fmt.Sprintf("%s must be above 0, it is %d", field, n)
	case n > cluster.MaxGangSize:
		g.Bad = fmt.Sprintf("%s must be at most %d, it is %d", field, cluster.MaxGangSize, n)
	default:
		g.MinCount = int(n)
	}
}

// maxTopologyLevels bounds the levels of a topology constraint; the API server allows one.
const maxTopologyLevels = 8

// groupGang reads a native pod group. The API server refuses most of what is bad here; another version of it may not have.
func groupGang(o *schedulingv1alpha2.PodGroup) *cluster.Gang {
	g := gangMeta(cluster.GangOfGroup, o)
	for _, c := range o.Status.Conditions {
		if c.Type == schedulingv1alpha2.PodGroupScheduled {
			g.Condition = cluster.GangCondition{Scheduled: c.Status == metav1.ConditionTrue, Reason: c.Reason, Message: c.Message,
				Generation: c.ObservedGeneration}
		}
	}
	spec := &o.Spec
	g.Priority = spec.Priority
	switch policy := spec.SchedulingPolicy; {
	case policy.Basic != nil && policy.Gang != nil:
		g.Bad = "spec.schedulingPolicy is both basic and gang"
	case policy.Basic != nil:
		g.Basic, g.MinCount = true, 1
	case policy.Gang != nil:
		setMinCount(g, "spec.schedulingPolicy.gang.minCount", int64(policy.Gang.MinCount))
	default:
		g.Bad = "spec.schedulingPolicy is none that is known here"
	}
	if m := spec.DisruptionMode; m != nil {
		switch *m {
		case schedulingv1alpha2.DisruptionModePod:
		case schedulingv1alpha2.DisruptionModePodGroup:
			g.EvictWhole = true
		default:
			g.Bad = fmt.Sprintf("spec.disruptionMode %.64q is not known here", string(*m))
		}
	}
	if c := spec.SchedulingConstraints; c != nil {
		for _, level := range c.Topology[:min(len(c.Topology), maxTopologyLevels)] {
			if level.Key == "" {
				g.Bad = "spec.schedulingConstraints.topology names no label of nodes"
			}
			g.Topology = append(g.Topology, cluster.GangTopology{Key: level.Key, Required: true})
		}
		if len(c.Topology) > maxTopologyLevels {
			g.Bad = fmt.Sprintf("spec.schedulingConstraints.topology has %d levels, at most %d are allowed", len(c.Topology), maxTopologyLevels)
		}
	}
	if len(spec.ResourceClaims) > 0 {
		g.Bad = "spec.resourceClaims are not supported: claims that a pod group holds for its pods (gate DRAWorkloadResourceClaims)"
	}
	return g
}

// ifServed asks discovery first whether an API is served. Without that, one that is not served would be forbidden for
// whoever has no right to it, and a right may come a moment later: the start would wait.
func ifServed(d discovery.DiscoveryInterface, resource schema.GroupVersionResource, lw *cache.ListWatch) *cache.ListWatch {
	served := func() error {
		list, err := d.ServerResourcesForGroupVersion(resource.GroupVersion().String())
		if apierrors.IsNotFound(err) || err == nil && !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
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
