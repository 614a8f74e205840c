// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

func namespace(name, rv string, labels map[string]string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: rv, Labels: labels}}
}

// TestObjectsComeBeforeNodesAndNodesBeforePods: a component that receives a pod finds its claim and its
// namespace. Catches an order by name alone, and decisions while a list is missing.
func TestObjectsComeBeforeNodesAndNodesBeforePods(t *testing.T) {
	in, pods, nodes := newTestInbox(t, cluster.KindClaim, cluster.KindNamespace)
	if kinds := in.Kinds(); len(kinds) != 2 || kinds[0] != cluster.KindNamespace {
		t.Fatalf("kinds %v", kinds)
	}
	namespaces, claims := newObjectStore(in, in.objects[0]), newObjectStore(in, in.objects[1])
	pods.Replace([]any{kubetest.PendingPod("a", "u1")}, "1")
	nodes.Replace([]any{kubetest.Node("z"), kubetest.Node("b")}, "1")
	claims.Replace([]any{kubetest.VolumeClaim("d", "u", "1"), kubetest.VolumeClaim("c", "u", "1")}, "1")
	expectTaken(t, in, "")
	namespaces.Replace([]any{namespace("y", "1", nil)}, "1")
	expectTaken(t, in, "+Namespace:y +PersistentVolumeClaim:c +PersistentVolumeClaim:d +b +z +a/u1@ synced")

	// Another object of the name is another object.
	claims.Update(kubetest.VolumeClaim("c", "other", "2"))
	claims.Delete(kubetest.VolumeClaim("d", "u", "1"))
	expectTaken(t, in, "-PersistentVolumeClaim:c +PersistentVolumeClaim:c -PersistentVolumeClaim:d")
	claims.Replace(nil, "3")
	expectTaken(t, in, "-PersistentVolumeClaim:c")

	in.awaitLists()
	namespaces.Update(namespace("x", "9", nil))
	pods.Replace(nil, "9")
	nodes.Replace(nil, "9")
	claims.Replace(nil, "9")
	expectTaken(t, in, "")
	namespaces.Replace([]any{namespace("x", "9", nil)}, "9")
	if got := taken(in, 1000); !strings.Contains(got, "+Namespace:x") || !strings.Contains(got, "-Namespace:y") {
		t.Errorf("took %q", got)
	}
}

// TestAVersionCountsWhereItIsAPrecondition: the status of a replica set changes with each of its pods, and is nothing
// to the engine; a claim's version is what its write insists on.
func TestAVersionCountsWhereItIsAPrecondition(t *testing.T) {
	in, pods, nodes := newTestInbox(t, cluster.KindClaim, cluster.KindReplicaSet)
	sets, claims := newObjectStore(in, in.objects[0]), newObjectStore(in, in.objects[1])
	set := func(rv string, replicas int32) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u", ResourceVersion: rv},
			Status: appsv1.ReplicaSetStatus{Replicas: replicas}}
	}
	pods.Replace(nil, "1")
	nodes.Replace(nil, "1")
	sets.Replace([]any{set("1", 1)}, "1")
	claims.Replace([]any{kubetest.VolumeClaim("c", "u", "1")}, "1")
	taken(in, 1000)
	sets.Update(set("2", 2))
	expectTaken(t, in, "")
	claims.Update(kubetest.VolumeClaim("c", "u", "2"))
	expectTaken(t, in, "+PersistentVolumeClaim:c")
}

// TestWhatIsNotReadIsNotKept: templates, secrets, drivers' parameters and foreign annotations must not reach a record
// or a recording.
func TestWhatIsNotReadIsNotKept(t *testing.T) {
	m := metav1.ObjectMeta{Namespace: "ns", Name: "o", UID: "u", ResourceVersion: "7", Labels: map[string]string{"l": "1"},
		Annotations:   map[string]string{"secret": "x", "volume.kubernetes.io/selected-node": "n"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "secret"}}, Finalizers: []string{"f"}}
	secret := &v1.SecretReference{Name: "secret"}
	template := v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "secret"}}}}
	for _, obj := range []cluster.Object{
		&v1.Namespace{ObjectMeta: m},
		&v1.Service{ObjectMeta: m, Spec: v1.ServiceSpec{ExternalName: "secret"}},
		&v1.ReplicationController{ObjectMeta: m, Spec: v1.ReplicationControllerSpec{Template: &template}},
		&appsv1.ReplicaSet{ObjectMeta: m, Spec: appsv1.ReplicaSetSpec{Template: template}},
		&appsv1.StatefulSet{ObjectMeta: m, Spec: appsv1.StatefulSetSpec{Template: template}},
		&v1.PersistentVolumeClaim{ObjectMeta: m, Spec: v1.PersistentVolumeClaimSpec{DataSource: &v1.TypedLocalObjectReference{Name: "secret"}}},
		&v1.PersistentVolume{ObjectMeta: m, Spec: v1.PersistentVolumeSpec{MountOptions: []string{"secret"}, PersistentVolumeSource: v1.PersistentVolumeSource{
			CSI: &v1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h", VolumeAttributes: map[string]string{"k": "secret"}, NodeStageSecretRef: secret},
		}}},
		&v1.PersistentVolume{ObjectMeta: m, Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
			AzureFile: &v1.AzureFilePersistentVolumeSource{SecretName: "secret", ShareName: "s"}}}},
		&v1.PersistentVolume{ObjectMeta: m, Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
			RBD: &v1.RBDPersistentVolumeSource{SecretRef: secret}}}},
		&v1.PersistentVolume{ObjectMeta: m, Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
			ISCSI: &v1.ISCSIPersistentVolumeSource{SecretRef: secret}}}},
		&v1.PersistentVolume{ObjectMeta: m, Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
			Cinder: &v1.CinderPersistentVolumeSource{SecretRef: secret}}}},
		&v1.PersistentVolume{ObjectMeta: m, Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
			FlexVolume: &v1.FlexPersistentVolumeSource{SecretRef: secret}}}},
		&storagev1.StorageClass{ObjectMeta: m, Parameters: map[string]string{"k": "secret"}},
		&storagev1.CSINode{ObjectMeta: m},
		&storagev1.CSIDriver{ObjectMeta: m, Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "secret"}}}},
		&storagev1.CSIStorageCapacity{ObjectMeta: m},
		&storagev1.VolumeAttachment{ObjectMeta: m, Spec: storagev1.VolumeAttachmentSpec{Source: storagev1.VolumeAttachmentSource{
			InlineVolumeSpec: &v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{NodePublishSecretRef: secret}}}}}},
		&resourceapi.ResourceClaim{ObjectMeta: m, Status: resourceapi.ResourceClaimStatus{Devices: []resourceapi.AllocatedDeviceStatus{{
			Driver: "d", Data: &runtime.RawExtension{Raw: []byte("secret")}}}}},
		&resourceapi.ResourceSlice{ObjectMeta: m},
		&resourceapi.DeviceClass{ObjectMeta: m},
		&policyv1.PodDisruptionBudget{ObjectMeta: m, Status: policyv1.PodDisruptionBudgetStatus{
			Conditions: []metav1.Condition{{Message: "secret"}}}},
	} {
		kind := cluster.KindOf(obj)
		kept := Trim(obj)
		if cluster.KindOf(kept) != kind || cluster.KeyOf(kept) != cluster.KeyOf(obj) || kept.GetUID() != "u" || kept.GetResourceVersion() != "7" {
			t.Errorf("%s became %T %v", kind, kept, kept)
		}
		raw, err := kept.(interface{ Marshal() ([]byte, error) }).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "secret") {
			t.Errorf("%s keeps what it must not: %q", kind, raw)
		}
		if kept.GetAnnotations()["volume.kubernetes.io/selected-node"] != "n" {
			t.Errorf("%s lost an annotation that is read", kind)
		}
	}
}

// TestABudgetIsWhatPreemptionReads: the selector, how many pods may go, and which are going already. Catches one of
// them left out, and an event for each pod of the budget that becomes healthy.
func TestABudgetIsWhatPreemptionReads(t *testing.T) {
	in, pods, nodes := newTestInbox(t, cluster.KindBudget)
	budgets := newObjectStore(in, in.objects[0])
	budget := func(rv string, allowed, healthy int32) *policyv1.PodDisruptionBudget {
		least := intstr.FromInt32(2)
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", UID: "u", ResourceVersion: rv, Labels: map[string]string{"l": rv}},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: healthy, ObservedGeneration: int64(healthy),
				DisruptedPods: map[string]metav1.Time{"going": metav1.Unix(7, 0)}},
		}
	}
	pods.Replace(nil, "1")
	nodes.Replace(nil, "1")
	budgets.Replace([]any{budget("1", 1, 3)}, "1")
	events, _ := in.Take(nil, 10)
	kept := events[0].(engine.ObjectSet).Object.(*policyv1.PodDisruptionBudget)
	if kept.Namespace != "ns" || kept.Spec.Selector.MatchLabels["app"] != "a" || kept.Status.DisruptionsAllowed != 1 ||
		kept.Status.DisruptedPods["going"] != metav1.Unix(7, 0) {
		t.Errorf("kept %+v", kept)
	}
	budgets.Update(budget("2", 1, 4))
	expectTaken(t, in, "")
	budgets.Update(budget("3", 0, 2))
	expectTaken(t, in, "+PodDisruptionBudget:b")
}

// TestAKindThatCannotBeReadCountsAsEmpty starts with an API server without device claims, and with a role that does not
// let us read namespaces: pods are placed all the same, and both kinds come when they can. Catches a start that hangs
// on a list that never comes.
func TestAKindThatCannotBeReadCountsAsEmpty(t *testing.T) {
	api := kubetest.NewAPIServer(kubetest.PendingPod("p", "u1"))
	var served atomic.Bool
	refuse := func(err error) clienttesting.ReactionFunc {
		return func(clienttesting.Action) (bool, runtime.Object, error) { return !served.Load(), nil, err }
	}
	api.PrependReactor("list", "resourceclaims", refuse(apierrors.NewNotFound(schema.GroupResource{Resource: "resourceclaims"}, "")))
	api.PrependReactor("list", "namespaces", refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", nil)))
	synctest.Test(t, func(t *testing.T) {
		in := NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) }, cluster.KindDeviceClaim, cluster.KindNamespace)
		informers := NewInformers(api, in)
		defer informers.Stop()
		informers.Start(t.Context())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expectTaken(t, in, "") // a role may come a little later
		time.Sleep(10 * time.Second)
		synctest.Wait()
		expectTaken(t, in, "+p/u1@ synced")
		if in.Behind() {
			t.Error("behind for good")
		}
		served.Store(true)
		if err := api.Tracker().Add(namespace("late", "1", nil)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * longestAbsence)
		synctest.Wait()
		expectTaken(t, in, "+Namespace:late")
	})
}

// TestAnObjectThatBreaksTheIntakeStaysAsItWas and does not take the list with it.
func TestAnObjectThatBreaksTheIntakeStaysAsItWas(t *testing.T) {
	var troubles []string
	in := NewInbox(func(object string, _ any) { troubles = append(troubles, object) }, cluster.KindNamespace)
	broken := newObjectStore(in, in.objects[0])
	whole := broken.convert
	broken.convert = func(obj cluster.Object) cluster.Object {
		if obj.GetResourceVersion() == "2" {
			return in.convertObject(cluster.KindNamespace, &v1.ConfigMap{}) // of no kind that is known
		}
		return whole(obj)
	}
	newPodStore(in).Replace(nil, "1")
	newNodeStore(in).Replace(nil, "1")
	broken.Replace([]any{namespace("a", "1", map[string]string{"l": "old"})}, "1")
	expectTaken(t, in, "+Namespace:a synced")
	broken.Update(namespace("a", "2", nil))
	broken.Replace([]any{namespace("a", "2", nil), namespace("b", "3", nil)}, "3")
	events, _ := in.Take(nil, 10)
	if len(events) != 1 || events[0].(engine.ObjectSet).Object.GetName() != "b" {
		t.Errorf("took %v", events)
	}
	if len(troubles) != 2 {
		t.Errorf("troubles %v", troubles)
	}
}
