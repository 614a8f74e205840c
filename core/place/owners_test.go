// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// TestOwnersMakeFewClasses: the pods of one owner differ in the node they are pinned to, their index among the
// labels, and the names of their claims; to what a Placer keeps they are alike. At most two classes and two groupings
// may come of 15,000 daemon pods, 10,000 stateful pods, and 10,000 pods of an indexed job. Faults: a class for each
// pinned pod; labels or claims in PodSpec.Alike; groupings by spec.
func TestOwnersMakeFewClasses(t *testing.T) {
	for _, owner := range []struct {
		name  string
		nodes int
		pods  int
		shape func(p *v1.Pod, i int)
	}{
		{"DaemonSet", 15_000, 15_000, func(p *v1.Pod, i int) {
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
				NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
					{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{ownerNode(i)}}}}}}}}
		}},
		{"StatefulSet", 12, 10_000, func(p *v1.Pod, i int) {
			p.Labels["apps.kubernetes.io/pod-index"], p.Labels["statefulset.kubernetes.io/pod-name"] = fmt.Sprint(i), p.Name
			p.Spec.Hostname = p.Name
			p.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claimOf(i)}}}}
		}},
		{"Job", 12, 10_000, func(p *v1.Pod, i int) {
			p.Labels["batch.kubernetes.io/job-completion-index"] = fmt.Sprint(i)
			p.Spec.Hostname = p.Name
			p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "it"}}}}
		}},
	} {
		t.Run(owner.name, func(t *testing.T) {
			s, in := cluster.NewStore(), convert.NewIntake()
			for i := range owner.nodes {
				s.SetNode(in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: ownerNode(i), Labels: map[string]string{v1.LabelTopologyZone: fmt.Sprint(i % 3)}},
					Status: v1.NodeStatus{Allocatable: list("1000", "1000Gi")}}))
			}
			late := storagev1.VolumeBindingWaitForFirstConsumer
			s.SetObject(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "made"}, Provisioner: "example.com/disk", VolumeBindingMode: &late})
			pl := place.New(defaultProfile(t), noMeter{}, place.DefaultClassBytes)
			for i := range owner.pods {
				p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", i), UID: types.UID(fmt.Sprint(i)), Labels: map[string]string{"app": "it"}}}
				p.Spec.Containers = []v1.Container{{}}
				owner.shape(p, i)
				if len(p.Spec.Volumes) > 0 {
					class := "made"
					s.SetObject(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: claimOf(i)},
						Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}}})
				}
				if out := pl.Place(s.Snapshot(), in.Pod(p), promised{}, func(int) int { return 0 }); out.Node == cluster.NoNode {
					t.Fatalf("pod %d fits nowhere: %+v", i, pl.Why(s.Snapshot(), out))
				}
			}
			classes, _ := pl.Classes()
			if groupings := place.Groupings(pl); classes > 2 || groupings > 2 {
				t.Errorf("%d pods of one owner make %d classes and %d groupings", owner.pods, classes, groupings)
			}
		})
	}
}

func ownerNode(i int) string { return fmt.Sprint("node-", i) }

func claimOf(i int) string { return fmt.Sprint("data-", i) }

func list(cpu, memory string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu), v1.ResourceMemory: apiresource.MustParse(memory), v1.ResourcePods: apiresource.MustParse("100000")}
}
