// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// basePod returns a pod without a template: one container with requests and limits of 100m and 500Mi (scheduler_perf,
// MakePodSpec).
func basePod() *corev1.Pod {
	needs := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("500Mi")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "pause", Image: "registry.k8s.io/pause:3.10.1", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			Resources: corev1.ResourceRequirements{Requests: needs, Limits: needs.DeepCopy()},
		}}},
	}
}

// podMaker makes pods of an operation with their volumes.
type podMaker struct {
	pod    maker[*corev1.Pod]
	volume maker[*corev1.PersistentVolume]      // nil without volumes
	claim  maker[*corev1.PersistentVolumeClaim] // nil without volumes
	count  int
}

// podMaker reads the templates of an operation. Equal pods are copied when they are needed; others are made now, so
// that the measurement does not include the reading of templates.
func (r *run) podMaker(op *workload.CreatePods) (*podMaker, error) {
	m := &podMaker{count: op.Count, pod: func(int, int) (*corev1.Pod, error) { return basePod(), nil }}
	template := op.Template
	if template == nil {
		template = r.plan.DefaultPod
	}
	var err error
	if template != nil {
		if m.pod, err = makerOf[corev1.Pod](template); err != nil {
			return nil, err
		}
		if op.SignatureBatch > 0 {
			m.pod = signed(m.pod, op.SignatureBatch)
		}
		if strings.Contains(template.Text, "{{") {
			ready := make([]*corev1.Pod, op.Count)
			for i := range ready {
				if ready[i], err = m.pod(i, op.Count); err != nil {
					return nil, err
				}
			}
			m.pod = func(i, _ int) (*corev1.Pod, error) { return ready[i].DeepCopy(), nil }
		}
	}
	if op.Volume == nil {
		return m, nil
	}
	if m.volume, err = makerOf[corev1.PersistentVolume](op.Volume); err != nil {
		return nil, err
	}
	m.claim, err = makerOf[corev1.PersistentVolumeClaim](op.Claim)
	return m, err
}

// signatureLabel makes pods of one template different (scheduler_perf, podTemplateWithParams).
const signatureLabel = "signature"

// signed adds the label to the pods: the same value for each batch of them.
func signed(make maker[*corev1.Pod], batch int) maker[*corev1.Pod] {
	return func(index, count int) (*corev1.Pod, error) {
		pod, err := make(index, count)
		if err != nil {
			return nil, err
		}
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[signatureLabel] = fmt.Sprintf("signature-label-%d", index/batch)
		return pod, nil
	}
}

// createPods creates the pods of an operation and waits for their stage.
func (r *run) createPods(ctx context.Context, op *workload.CreatePods, namespace string) error {
	namespace = r.ownNamespace(namespace)
	if err := r.ensureNamespace(ctx, namespace); err != nil {
		return err
	}
	m, err := r.podMaker(op)
	if err != nil {
		return err
	}
	if op.CollectMetrics {
		if err := r.startCollecting(ctx, Collection{Op: r.index, Name: namespace, Namespaces: []string{namespace}}); err != nil {
			return err
		}
	}
	if op.Steady > 0 {
		err = r.steady(ctx, op, m, namespace)
	} else {
		err = r.burst(ctx, op, m, namespace)
	}
	if err != nil {
		return err
	}
	if op.CollectMetrics {
		return r.stopCollecting()
	}
	return nil
}

// createPodSets creates the pods of an operation in one namespace after the other.
func (r *run) createPodSets(ctx context.Context, op *workload.CreatePodSets) error {
	for i := range op.Count {
		if err := r.createPods(ctx, &op.Pods, fmt.Sprintf("%s-%d", op.NamespacePrefix, i)); err != nil {
			return err
		}
	}
	return nil
}

// burst creates all pods and waits for them, if the operation wants that.
func (r *run) burst(ctx context.Context, op *workload.CreatePods, m *podMaker, namespace string) error {
	wait := expect(workload.Scheduled, op.Count)
	began := r.Clock.Now()
	err := r.each(ctx, op.Count, func(ctx context.Context, i int) error {
		var due time.Time
		if r.Rate > 0 {
			due = began.Add(time.Duration(float64(i) / r.Rate * float64(time.Second)))
			if err := r.until(ctx, due); err != nil {
				return err
			}
		}
		e := &entry{awaited: true, waiting: []*waiter{wait}}
		return r.createPod(ctx, m, namespace, i, i, due, e)
	})
	if err != nil || op.SkipWait {
		return err
	}
	return r.await(ctx, wait)
}

// createPod creates the pod of an index, under a name with a serial number, and its volume. Its creation time is when
// it was due, or now. The entry has the caller's data for the watch.
func (r *run) createPod(ctx context.Context, m *podMaker, namespace string, index, serial int, due time.Time, e *entry) error {
	p, err := m.pod(index, m.count)
	if err != nil {
		return err
	}
	p.Namespace = namespace
	name(p, r.index, serial)
	if m.volume != nil {
		if err := r.createVolume(ctx, m, p, index, serial); err != nil {
			return err
		}
	}
	e.Namespace, e.Name, e.Labels, e.Group, e.Op, e.Asked = namespace, p.Name, p.Labels, groupOf(p), r.index, due
	if due.IsZero() {
		// The time starts here and not at the answer: the delay of an API server that a scheduler keeps busy counts
		// for the scheduler.
		e.Asked = r.Clock.Now()
	}
	r.Watch.ask(e)
	if _, err := r.Client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create pod %s/%s: %w", namespace, p.Name, err)
	}
	return nil
}

// createVolume creates a volume and a claim that are bound to each other and adds them to the pod. The claim of the
// pod with serial number i is pvc-i (as scheduler_perf's): other pods in the namespace may name it.
func (r *run) createVolume(ctx context.Context, m *podMaker, p *corev1.Pod, index, serial int) error {
	claim, err := m.claim(index, m.count)
	if err != nil {
		return err
	}
	volume, err := m.volume(index, m.count)
	if err != nil {
		return err
	}
	claim.Namespace, claim.Name = p.Namespace, fmt.Sprintf("pvc-%d", serial)
	volume.Name = claim.Namespace + "-" + claim.Name
	claim.Spec.VolumeName = volume.Name
	volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name}
	switch source := &volume.Spec.PersistentVolumeSource; {
	case source.CSI != nil:
		source.CSI.VolumeHandle = volume.Name
	case source.AWSElasticBlockStore != nil:
		source.AWSElasticBlockStore.VolumeID = volume.Name
	}
	claims, volumes := r.Client.CoreV1().PersistentVolumeClaims(p.Namespace), r.Client.CoreV1().PersistentVolumes()
	// The volume refers to the claim's UID, so that no controller treats it as the volume of a deleted claim.
	claim, err = claims.Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create claim %s/%s: %w", p.Namespace, p.Name, err)
	}
	volume.Spec.ClaimRef.UID = claim.UID
	if volume, err = volumes.Create(ctx, volume, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create volume of %s/%s: %w", p.Namespace, p.Name, err)
	}
	// A create ignores the status.
	if err := r.setPhases(ctx, claim, volume); err != nil {
		return err
	}
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "vol", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
	}})
	return nil
}

// setPhases sets the phase of a claim and its volume to Bound. It does not conflict with a controller: the patch
// changes only the phase.
func (r *run) setPhases(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	patch := []byte(`{"status":{"phase":"Bound"}}`)
	claims, volumes := r.Client.CoreV1().PersistentVolumeClaims(claim.Namespace), r.Client.CoreV1().PersistentVolumes()
	if _, err := claims.Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("set phase of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	if _, err := volumes.Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("set phase of volume %s: %w", volume.Name, err)
	}
	return nil
}
