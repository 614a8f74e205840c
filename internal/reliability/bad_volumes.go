// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"fmt"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// badVolumes: claims and volumes that cannot work, each with the correct reason.
func badVolumes() []Case {
	return []Case{
		{ID: "B21", What: "claims: missing, lost, without a class, to volumes that no node reaches", Run: deadClaims},
		{ID: "B21a", What: "a provisioner that gives the choice of a node back each time", Run: provisionerLoop},
		{ID: "B22", What: "two pods, one ReadWriteOncePod claim", Run: oncePod},
	}
}

// selectedNode is the annotation with which the scheduler reports its choice to a provisioner.
const selectedNode = "volume.kubernetes.io/selected-node"

// class creates a storage class named as the case, with a suffix.
func (g *Ground) class(ctx context.Context, suffix, provisioner string, mode storagev1.VolumeBindingMode) error {
	name := g.Name + suffix
	_, err := g.Client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}, metav1.CreateOptions{})
	if err != nil {
		return Unjudged("create storage class: %w", err)
	}
	g.Cleanup(func(ctx context.Context) error {
		return g.Client.StorageV1().StorageClasses().Delete(ctx, name, metav1.DeleteOptions{})
	})
	return nil
}

// volume creates a local volume for one claim, and waits for nothing.
func (g *Ground) volume(ctx context.Context, claim, class string, mode v1.PersistentVolumeAccessMode, reach ...v1.NodeSelectorRequirement) error {
	name := g.Name + "-" + claim
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeSpec{
		StorageClassName: class, AccessModes: []v1.PersistentVolumeAccessMode{mode}, Capacity: v1.ResourceList{"storage": resource.MustParse("1Gi")},
		PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
		ClaimRef:                      &v1.ObjectReference{Namespace: g.Name, Name: claim},
		PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "x.example.com", VolumeHandle: name}},
	}}
	if len(reach) > 0 {
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: reach}}}}
	}
	if _, err := g.Client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{}); err != nil {
		return Unjudged("create volume: %w", err)
	}
	g.Cleanup(func(ctx context.Context) error {
		_, _ = g.Client.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		_ = g.Client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{})
		return nil
	})
	return nil
}

// claim creates a claim of 1Gi.
func (g *Ground) claim(ctx context.Context, name, class string, mode v1.PersistentVolumeAccessMode) error {
	pvc := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []v1.PersistentVolumeAccessMode{mode},
		Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{"storage": resource.MustParse("1Gi")}},
	}}
	if _, err := g.Client.CoreV1().PersistentVolumeClaims(g.Name).Create(ctx, pvc, metav1.CreateOptions{}); err != nil {
		return Unjudged("create claim: %w", err)
	}
	return nil
}

// phase waits until a claim is in a phase.
func (g *Ground) phase(ctx context.Context, name string, phase v1.PersistentVolumeClaimPhase) error {
	err := eventually(ctx, fmt.Sprintf("claim %s is %s", name, phase), func() string {
		c, err := g.Client.CoreV1().PersistentVolumeClaims(g.Name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if c.Status.Phase != phase {
			return "it is " + string(c.Status.Phase)
		}
		return ""
	})
	if err != nil {
		return unjudged{err}
	}
	return nil
}

// mounts makes a pod use a claim.
func mounts(claim string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
}

func deadClaims(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1, func(n *v1.Node) { n.Labels["size"] = "big" }); err != nil {
		return err
	}
	const noProvisioner = "kubernetes.io/no-provisioner"
	if err := g.class(ctx, "-late", noProvisioner, storagev1.VolumeBindingWaitForFirstConsumer); err != nil {
		return err
	}
	is := func(key string, op v1.NodeSelectorOperator, values ...string) v1.NodeSelectorRequirement {
		return v1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	reach := map[string][]v1.NodeSelectorRequirement{
		"text": {is("size", v1.NodeSelectorOpGt, "seven")}, "contradicts": {is("size", v1.NodeSelectorOpExists), is("size", v1.NodeSelectorOpDoesNotExist)},
		"nowhere": {is(v1.LabelHostname, v1.NodeSelectorOpIn, "nobody")}, "lost": nil,
	}
	want := map[string]string{}
	for name, r := range reach {
		if err := g.volume(ctx, name, g.Name, v1.ReadWriteOnce, r...); err != nil {
			return err
		}
		if err := g.claim(ctx, name, g.Name, v1.ReadWriteOnce); err != nil {
			return err
		}
		want[name] = "!node(s) didn't match PersistentVolume's node affinity"
	}
	for name := range reach {
		if err := g.phase(ctx, name, v1.ClaimBound); err != nil {
			return err
		}
	}
	volumes := g.Client.CoreV1().PersistentVolumes()
	if _, err := volumes.Patch(ctx, g.Name+"-lost", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		return Unjudged("free the volume: %w", err)
	}
	if err := volumes.Delete(ctx, g.Name+"-lost", metav1.DeleteOptions{}); err != nil {
		return Unjudged("delete the volume: %w", err)
	}
	if err := g.phase(ctx, "lost", v1.ClaimLost); err != nil {
		return err
	}
	if err := g.claim(ctx, "never", g.Name+"-late", v1.ReadWriteOnce); err != nil {
		return err
	}
	if err := g.claim(ctx, "no-class", g.Name+"-nobody", v1.ReadWriteOnce); err != nil {
		return err
	}
	want["missing"] = `!persistentvolumeclaim "missing" not found`
	want["never"] = "!didn't find available persistent volumes to bind"
	want["no-class"] = "!pod has unbound immediate PersistentVolumeClaims"
	want["lost"] = `!persistentvolumeclaim "lost" bound to non-existent persistentvolume`
	var pods []*v1.Pod
	for name := range want {
		pods = append(pods, g.Pod(name, mounts(name)))
	}
	want["ordinary"] = "0"
	return g.Play(ctx, append(pods, g.Pod("ordinary")), want)
}

// provisionerLoop simulates a driver that removes the selected node several times, and provisions at last.
func provisionerLoop(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 2); err != nil {
		return err
	}
	if err := g.class(ctx, "", "never.example.com", storagev1.VolumeBindingWaitForFirstConsumer); err != nil {
		return err
	}
	if err := g.claim(ctx, "c", g.Name, v1.ReadWriteOnce); err != nil {
		return err
	}
	if err := g.Create(ctx, g.Pod("p", mounts("c")), g.Pod("ordinary")); err != nil {
		return err
	}
	const rounds = 4
	var given atomic.Int32
	claims := g.Client.CoreV1().PersistentVolumeClaims(g.Name)
	err := eventually(ctx, "the scheduler has chosen a node again and again", func() string {
		c, err := claims.Get(ctx, "c", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if c.Annotations[selectedNode] != "" && given.Load() < rounds {
			if _, err := claims.Patch(ctx, "c", types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+selectedNode+`":null}}}`), metav1.PatchOptions{}); err == nil {
				given.Add(1)
			}
		}
		if n := given.Load(); n < rounds {
			return fmt.Sprintf("%d times", n)
		}
		return ""
	})
	if err != nil {
		return err
	}
	if err := g.volume(ctx, "c", g.Name, v1.ReadWriteOnce); err != nil {
		return err
	}
	return g.Wants(ctx, map[string]string{"p": "*", "ordinary": "*"})
}

func oncePod(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 2); err != nil {
		return err
	}
	if err := g.volume(ctx, "c", g.Name, v1.ReadWriteOncePod); err != nil {
		return err
	}
	if err := g.claim(ctx, "c", g.Name, v1.ReadWriteOncePod); err != nil {
		return err
	}
	if err := g.phase(ctx, "c", v1.ClaimBound); err != nil {
		return err
	}
	if err := g.Play(ctx, []*v1.Pod{g.Pod("first", mounts("c"))}, map[string]string{"first": "*"}); err != nil {
		return err
	}
	err := g.Play(ctx, []*v1.Pod{g.Pod("second", mounts("c"))}, map[string]string{"second": "!ReadWriteOncePod access mode already in-use"})
	if err != nil {
		return err
	}
	if err := g.Delete(ctx, "first"); err != nil {
		return err
	}
	return g.Wants(ctx, map[string]string{"second": "*"})
}
