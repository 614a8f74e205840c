// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/release"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/host/devices"
	"github.com/kumiki-scheduler/kumiki/record"
)

// world is one cluster on both sides.
type world struct {
	t     *testing.T
	m     *maker
	nodes []*v1.Node

	h       *handle
	api     *server
	up      *dynamicresources.DynamicResources
	manager *dynamicresources.DefaultDRAManager
	tracker *tracker.Tracker

	store *cluster.Store
	in    *convert.Intake
	inv   *devices.Inventory
	ours  *devices.Plugin
}

// handle is what upstream's plugins ask of the framework.
type handle struct {
	fwk.Handle
	client   kubernetes.Interface
	factory  informers.SharedInformerFactory
	manager  fwk.SharedDRAManager
	snapshot *internalcache.Snapshot
}

func (h *handle) ClientSet() kubernetes.Interface                        { return h.client }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (h *handle) ProfileName() string                                    { return oracle.SchedulerName }
func (h *handle) SharedDRAManager() fwk.SharedDRAManager                 { return h.manager }
func (h *handle) SnapshotSharedLister() fwk.SharedLister                 { return h.snapshot }

// server answers upstream's calls about claims, and shows every change to both sides at once. What is patched into pods
// is kept.
type server struct {
	w       *world
	objects *oracle.Objects
	version int
	named   *v1.PodExtendedResourceClaimStatus // the last one patched into a pod
	refuses string                             // the claim of which no update is accepted; empty for none
}

var errRefused = errors.New("the update is refused")

func (s *server) ref(namespace, name string) scenario.ObjectRef {
	return scenario.ObjectRef{Kind: "ResourceClaim", Namespace: namespace, Name: name}
}

func (s *server) claim(namespace, name string) *resourceapi.ResourceClaim {
	obj, ok := s.objects.Get(s.ref(namespace, name))
	if !ok {
		return nil
	}
	return obj.(*resourceapi.ResourceClaim).DeepCopy()
}

// put gives an object its next version.
func (s *server) put(obj scenario.APIObject) {
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	s.objects.Set(obj)
	s.w.txn(func() { s.w.store.SetObject(obj.DeepCopyObject().(cluster.Object)) })
}

func (s *server) react(action clienttesting.Action) (handled bool, ret runtime.Object, err error) {
	switch a := action.(type) {
	case clienttesting.UpdateActionImpl:
		sent := a.GetObject().(*resourceapi.ResourceClaim)
		is := s.claim(sent.Namespace, sent.Name)
		switch {
		case s.refuses != "" && s.refuses == sent.Name:
			return true, nil, errRefused
		case is == nil:
			return true, nil, apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), sent.Name)
		case sent.ResourceVersion != is.ResourceVersion:
			return true, nil, apierrors.NewConflict(resourceapi.Resource("resourceclaims"), sent.Name, nil)
		}
		if a.Subresource == "status" {
			is.Status = sent.DeepCopy().Status
		} else {
			is.ObjectMeta = *sent.ObjectMeta.DeepCopy()
		}
		s.put(is)
		return true, is.DeepCopy(), nil
	case clienttesting.CreateActionImpl:
		is := a.GetObject().(*resourceapi.ResourceClaim).DeepCopy()
		is.Name = is.GenerateName + "made"
		is.UID = types.UID("uid-" + is.Name)
		s.put(is)
		return true, is.DeepCopy(), nil
	case clienttesting.DeleteActionImpl:
		s.remove(a.Namespace, a.Name)
		if s.w.m.chance(30) { // another client was first
			return true, nil, apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), a.Name)
		}
		return true, nil, nil
	case clienttesting.GetActionImpl:
		return true, s.claim(a.Namespace, a.Name), nil
	case clienttesting.PatchActionImpl:
		return true, s.unreserve(a), nil
	}
	return true, nil, fmt.Errorf("nobody answers %s %s", action.GetVerb(), action.GetResource())
}

func (s *server) removeRule(name string) {
	s.objects.Delete(scenario.ObjectRef{Kind: "DeviceTaintRule", Name: name})
	s.w.txn(func() { s.w.store.DeleteObject(cluster.KindDeviceTaint, cluster.ObjectKey{Name: name}) })
}

func (s *server) remove(namespace, name string) {
	s.objects.Delete(s.ref(namespace, name))
	s.w.txn(func() {
		s.w.store.DeleteObject(cluster.KindDeviceClaim, cluster.ObjectKey{Namespace: namespace, Name: name})
	})
}

// unreserve carries out the one patch of a claim that upstream sends.
func (s *server) unreserve(a clienttesting.PatchActionImpl) runtime.Object {
	var patch struct {
		Status struct {
			ReservedFor []struct{ UID types.UID }
		}
	}
	if err := json.Unmarshal(a.Patch, &patch); err != nil || len(patch.Status.ReservedFor) != 1 {
		s.w.t.Fatalf("patch of a claim: %s: %v", a.Patch, err)
	}
	is := s.claim(a.Namespace, a.Name)
	var rest []resourceapi.ResourceClaimConsumerReference
	for _, r := range is.Status.ReservedFor {
		if r.UID != patch.Status.ReservedFor[0].UID {
			rest = append(rest, r)
		}
	}
	is.Status.ReservedFor = rest
	s.put(is)
	return is.DeepCopy()
}

func (s *server) reactToPods(action clienttesting.Action) (handled bool, ret runtime.Object, err error) {
	var patch struct{ Status v1.PodStatus }
	if err := json.Unmarshal(action.(clienttesting.PatchActionImpl).Patch, &patch); err != nil {
		return true, nil, err
	}
	s.named = patch.Status.ExtendedResourceClaimStatus
	return true, &v1.Pod{}, nil
}

// gates are those of upstream's plugins at present.
func gates() feature.Features {
	return feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
}

func newWorld(t *testing.T, m *maker) *world {
	w := &world{t: t, m: m, store: cluster.NewStore(), in: convert.NewIntake(), inv: devices.NewInventory(app.DeviceFeatures(release.Features()))}
	m.now, m.sharing = time.Now(), gates().EnableDRAConsumableCapacity
	w.store.SetNow(record.Time(m.now.UnixNano()))
	for i := range 1 + m.IntN(5) {
		name := fmt.Sprintf("n%d", i)
		n := m.node(name)
		m.nodes, w.nodes = append(m.nodes, name), append(w.nodes, n)
		w.txn(func() { w.store.SetNode(w.in.Node(n)) })
	}
	w.upstream()
	ours, err := devices.New(devices.DefaultArgs(), w.inv)
	if err != nil {
		t.Fatal(err)
	}
	w.ours = ours
	for _, c := range m.classes() {
		w.api.put(c)
	}
	for _, driver := range drivers {
		m.publish(driver)
	}
	for _, slice := range m.slices {
		w.api.put(slice)
	}
	for i := range m.IntN(3) {
		w.api.put(m.rule(i))
	}
	for i := range m.IntN(4) {
		c := m.claim(fmt.Sprintf("taken%d", i))
		m.allocate(c)
		w.api.put(c)
	}
	return w
}

// upstream makes the plugin and its manager, fed as the scheduler feeds them.
func (w *world) upstream() {
	ctx := context.Background()
	w.api = &server{w: w, objects: oracle.NewObjects()}
	resources := w.api.objects.Factory.Resource().V1()
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), resources.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(ctx, tracker.Options{EnableConsumableCapacity: gates().EnableDRAConsumableCapacity,
		EnableDeviceTaintRules: utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules),
		SliceInformer:          resources.ResourceSlices(), TaintInformer: resources.DeviceTaintRules()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.tracker = slices
	w.manager = dynamicresources.NewDRAManager(ctx, claims, slices, w.api.objects.Factory)
	if _, err := resources.DeviceClasses().Informer().AddEventHandler(w.manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache)); err != nil {
		w.t.Fatal(err)
	}
	client := &fake.Clientset{}
	client.PrependReactor("*", "resourceclaims", w.api.react)
	client.PrependReactor("patch", "pods", w.api.reactToPods)
	w.h = &handle{client: client, factory: w.api.objects.Factory, manager: w.manager, snapshot: internalcache.NewSnapshot(nil, w.nodes)}
	args := &config.DynamicResourcesArgs{}
	pl, err := dynamicresources.New(ctx, args, w.h, gates())
	if err != nil {
		w.t.Fatal(err)
	}
	w.up = pl.(*dynamicresources.DynamicResources)
}

func (w *world) txn(f func()) {
	w.store.Begin()
	f()
	w.store.Commit()
}

func (w *world) info(name string) fwk.NodeInfo {
	info, err := w.h.snapshot.NodeInfos().Get(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return info
}
