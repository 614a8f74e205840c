// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestClaimsAreGivenOnceWhenProcessesDie kills the scheduler and the API server while pods are being placed that
// need volumes and devices, which fill the cluster to the last device. Then it looks: every pod is bound, every
// device is given to one claim, every claim to its pod, every volume can be reached from where its pod is. Catches
// writes that are repeated on other nodes or devices than before, and claims that stay taken by an attempt that has
// failed.
func TestClaimsAreGivenOnceWhenProcessesDie(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{NodeSpec: `
shapes:
- name: n
  count: 6
  capacity: {cpu: "16", memory: 64Gi, pods: "110"}
  csi: {` + disk + `: 12}
  claimable: [{driver: ` + gpu + `, count: 10}]
  labels: {scenario: default}
`})
	client := adminClient(t, cluster)
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	on := &stage{&suite{client: client, dynamic: dynamic.NewForConfigOrDie(cfg)}, "default"}
	scheduler := startProcess(t, cluster.SchedulerKubeconfig)
	apply := func(text string) {
		t.Helper()
		if err := on.apply(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	apply(deviceClass("") + claimed("ResourceClaimTemplate", "device", oneDevice) + strings.ReplaceAll(storageClass(disk, late, ""), "name: SCENARIO", "name: default"))
	pods := func(stage string, n int) string {
		return repeated(n, `{kind: Pod, name: `+stage+`-device-%d, spec: {resourceClaims: [{name: c, resourceClaimTemplateName: device}], containers: [{resources: {claims: [{name: c}]}}]}}`) +
			repeated(n, `{kind: PersistentVolumeClaim, name: `+stage+`-%d, spec: {storageClassName: default, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`) +
			repeated(n, `{kind: Pod, name: `+stage+`-volume-%d, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: `+stage+`-%d}}]}}`)
	}
	const each = 20 // 3 times 20 devices are all there are
	for i, strike := range []func() error{
		func() error { scheduler.kill(); return nil },
		func() error {
			return errors.Join(cluster.Kill(testcluster.APIServer), cluster.Restart(testcluster.APIServer))
		},
		func() error { scheduler.terminate(); return nil },
	} {
		before := boundPods(t, client)
		struck := make(chan error, 1)
		apply(pods(fmt.Sprint("s", i), each))
		go func() {
			eventually(t, "the burst is under way", func() (bool, string) { return boundPods(t, client) >= before+each/4, "" })
			struck <- strike()
		}()
		if err := <-struck; err != nil {
			t.Fatal(err)
		}
		allBound(t, client, (i+1)*2*each)
	}
	judgeClaims(t, client)
	t.Logf("scheduler started %d times", scheduler.started())
}

func boundPods(t *testing.T, client *kubernetes.Clientset) int {
	n := 0
	for _, p := range listPods(t, client) {
		if p.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// madeKnown reports whether the managed fields of an object still name the client that set its spec: an update that
// names none keeps them.
func madeKnown(fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
		return f.FieldsV1 != nil && strings.Contains(string(f.FieldsV1.GetRawBytes()), `"f:spec"`)
	})
}

// judgeClaims holds what was given out against the rules.
func judgeClaims(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	nodeOf := map[string]string{} // UID of a pod -> its node
	claims := map[string]string{} // volume claim -> node of its pod
	for _, p := range listPods(t, client) {
		nodeOf[string(p.UID)] = p.Spec.NodeName
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				claims[v.PersistentVolumeClaim.ClaimName] = p.Spec.NodeName
			}
		}
	}
	devices, err := client.ResourceV1().ResourceClaims("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{} // pool/device -> claim
	for _, c := range devices.Items {
		if !madeKnown(c.ManagedFields) {
			t.Errorf("claim %s does not tell any more who made it: %v", c.Name, c.ManagedFields)
		}
		if c.Status.Allocation == nil || len(c.Status.ReservedFor) != 1 {
			t.Errorf("claim %s: allocation %+v, reserved for %+v", c.Name, c.Status.Allocation, c.Status.ReservedFor)
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if other := given[r.Pool+"/"+r.Device]; other != "" {
				t.Errorf("device %s of %s is given to %s and %s", r.Device, r.Pool, other, c.Name)
			}
			given[r.Pool+"/"+r.Device] = c.Name
			if on := nodeOf[string(c.Status.ReservedFor[0].UID)]; on != r.Pool {
				t.Errorf("claim %s has a device of %s, its pod is on %q", c.Name, r.Pool, on)
			}
		}
	}
	volumes, err := client.CoreV1().PersistentVolumeClaims("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range volumes.Items {
		if !madeKnown(c.ManagedFields) {
			t.Errorf("claim %s does not tell any more who made it: %v", c.Name, c.ManagedFields)
		}
		if c.Status.Phase != v1.ClaimBound {
			t.Errorf("claim %s of a pod on %s is %s", c.Name, claims[c.Name], c.Status.Phase)
			continue
		}
		pv, err := client.CoreV1().PersistentVolumes().Get(t.Context(), c.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if host := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]; host != claims[c.Name] {
			t.Errorf("volume %s can be reached from %s, its pod is on %s", pv.Name, host, claims[c.Name])
		}
	}
	if len(given) != len(devices.Items) || len(devices.Items) == 0 || len(volumes.Items) == 0 {
		t.Errorf("%d devices are given to %d claims; %d volume claims", len(given), len(devices.Items), len(volumes.Items))
	}
}

// TestAKindThatMayNotBeReadBlocksNoPod takes a right away from the scheduler's role, as it is where the role is
// older than the scheduler. (That a kind is read once that is allowed is a scenario of package kube.)
func TestAKindThatMayNotBeReadBlocksNoPod(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 2})
	client := adminClient(t, cluster)
	role, err := client.RbacV1().ClusterRoles().Get(t.Context(), "system:kube-scheduler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, "resource.k8s.io") })
	if _, err := client.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	scheduler := startProcess(t, cluster.SchedulerKubeconfig)
	create(t, client, pod("p", "100m"))
	allBound(t, client, 1)
	if lines := strings.Count(scheduler.log.String(), "pods that ask for devices wait"); lines != 3 {
		t.Errorf("%d lines name kinds of devices that cannot be read, want one for each of 3", lines)
	}
}
