// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// scenarios show that the controllers of a local cluster work.
var scenarios = []scenario{
	{"a namespace gets what pods need, and goes with its objects", []string{"namespace-controller",
		"serviceaccount-controller", "root-ca-certificate-publisher-controller"}, namespacesWork},
	{"an aggregated role gets the rules of others", []string{"clusterrole-aggregation-controller"}, aggregationWorks},
	{"objects go with their owners", []string{"garbage-collector-controller"}, collectionWorks},
	{"a replication controller has its pods", []string{"replicationcontroller-controller"}, replicationWorks},
	{"a deployment has its pods, and a budget for them", []string{"deployment-controller", "replicaset-controller",
		"disruption-controller"}, deploymentWorks},
	{"a stateful set has its pods in order", []string{"statefulset-controller"}, statefulSetWorks},
	{"a daemon set has a pod for each node that it selects", []string{"daemonset-controller"}, daemonSetWorks},
	{"a job completes", []string{"job-controller"}, jobWorks},
	{"a cron job makes jobs", []string{"cronjob-controller"}, cronJobWorks},
	{"a quota counts what is used", []string{"resourcequota-controller"}, quotaWorks},
	{"a pod that was never scheduled can go", []string{"pod-garbage-collector-controller"}, unscheduledPodGoes},
	{"pods that do not tolerate a taint go", []string{"taint-eviction-controller"}, taintEvicts},
	{"pods with a tainted device go", []string{"device-taint-eviction-controller"}, deviceTaintEvicts},
	{"a claim of devices is made for a pod, and goes with it", []string{"resourceclaim-controller"},
		resourceClaimWorks},
	{"a pod group stays while it has pods", []string{"podgroup-protection-controller"}, podGroupIsProtected},
	{"a claim of a volume is made for a pod", []string{"ephemeral-volume-controller"}, ephemeralVolumeWorks},
	{"a claim is bound, and claim and volume stay while they are used", []string{"persistentvolume-binder-controller",
		"persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller"}, volumesWork},
	{lastScenario, []string{"node-lifecycle-controller", "taint-eviction-controller",
		"pod-garbage-collector-controller"}, nodesFail},
}

// runs is a pod's spec: it is bound to a node that runs it.
const runs = `{nodeName: NODE, containers: [{name: c, image: none}]}`

func namespacesWork(c *tenant) {
	want, err := os.ReadFile(c.program.ready.DataDir + "/pki/ca.crt")
	c.must(err)
	c.until("the certificate authority is published", func() string {
		m, err := c.CoreV1().ConfigMaps(c.ns).Get(c.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if !bytes.Equal([]byte(m.Data["ca.crt"]), want) {
			return "it is another one"
		}
		return ""
	})
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}`)
	c.apply(`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: ` + runs + `}`)
	c.apply(`{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {schedule: "0 0 1 1 *", suspend: true,
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: none}]}}}}}}`)
	c.must(c.CoreV1().Namespaces().Delete(c.Context(), c.ns, metav1.DeleteOptions{}))
	c.untilGone("the namespace", func() error {
		_, err := c.CoreV1().Namespaces().Get(c.Context(), c.ns, metav1.GetOptions{})
		return err
	})
}

func aggregationWorks(c *tenant) {
	c.apply(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-all}, rules: [],
  aggregationRule: {clusterRoleSelectors: [{matchLabels: {part-of: NS}}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-part, labels: {part-of: NS}},
  rules: [{apiGroups: [example.com], resources: [things], verbs: [get]}]}`)
	for name, least := range map[string]int{c.ns + "-all": 1, "view": 10} {
		c.until("rules of "+name, func() string {
			role, err := c.RbacV1().ClusterRoles().Get(c.Context(), name, metav1.GetOptions{})
			if err != nil || len(role.Rules) < least {
				return fmt.Sprintf("%d (%v)", len(role.Rules), err)
			}
			return ""
		})
	}
}

// collectionWorks deletes an owner in each of the three ways.
func collectionWorks(c *tenant) {
	maps := c.CoreV1().ConfigMaps(c.ns)
	get := func(name string) (*v1.ConfigMap, error) { return maps.Get(c.Context(), name, metav1.GetOptions{}) }
	family := func(way string, finalizers ...string) {
		owner, err := maps.Create(c.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: way}},
			metav1.CreateOptions{})
		c.must(err)
		_, err = maps.Create(c.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: way + "-child",
			Finalizers: finalizers, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap",
				Name: way, UID: owner.UID, BlockOwnerDeletion: ptr.To(true)}}}}, metav1.CreateOptions{})
		c.must(err)
	}
	family("foreground", "example.com/hold")
	family("background")
	family("orphan")
	for name, way := range map[string]metav1.DeletionPropagation{"foreground": metav1.DeletePropagationForeground,
		"background": metav1.DeletePropagationBackground, "orphan": metav1.DeletePropagationOrphan} {
		c.must(maps.Delete(c.Context(), name, metav1.DeleteOptions{PropagationPolicy: &way}))
	}
	c.untilTerminating("the child", func() (metav1.Object, error) { return get("foreground-child") },
		"example.com/hold")
	c.untilTerminating("its owner", func() (metav1.Object, error) { return get("foreground") },
		metav1.FinalizerDeleteDependents)
	_, err := maps.Patch(c.Context(), "foreground-child", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	c.must(err)
	for _, name := range []string{"foreground", "foreground-child", "background-child", "orphan"} {
		c.untilGone(name, func() error { _, err := get(name); return err })
	}
	child, err := get("orphan-child")
	if err != nil || len(child.OwnerReferences) > 0 {
		c.Errorf("the orphan has the owners %v (%v)", child.OwnerReferences, err)
	}
}

func replicationWorks(c *tenant) {
	c.apply(`{apiVersion: v1, kind: ReplicationController, metadata: {name: rc}, spec: {replicas: 2,
  selector: {app: rc}, template: {metadata: {labels: {app: rc}}, spec: ` + runs + `}}}`)
	c.untilPods("app=rc", 2, v1.PodRunning)
}

// deploymentWorks rolls an update out, and reads what the budget allows.
func deploymentWorks(c *tenant) {
	c.apply(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3,
  selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web, version: old}}, spec: ` + runs + `}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {maxUnavailable: 1,
  selector: {matchLabels: {app: web}}}}`)
	c.untilPods("version=old", 3, v1.PodRunning)
	c.until("the budget allows one disruption of three pods", func() string {
		b, err := c.PolicyV1().PodDisruptionBudgets(c.ns).Get(c.Context(), "web", metav1.GetOptions{})
		if err != nil || b.Status.ExpectedPods != 3 || b.Status.DisruptionsAllowed != 1 {
			return fmt.Sprintf("%+v (%v)", b.Status, err)
		}
		return ""
	})
	_, err := c.AppsV1().Deployments(c.ns).Patch(c.Context(), "web", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"labels":{"version":"new"}}}}}`), metav1.PatchOptions{})
	c.must(err)
	c.untilPods("app=web", 3, v1.PodRunning)
	c.untilPods("version=new", 3, v1.PodRunning)
}

func statefulSetWorks(c *tenant) {
	c.apply(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2, serviceName: db,
  selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: ` + runs + `}}}`)
	c.untilPhase("db-1", v1.PodRunning)
	first, err := c.CoreV1().Pods(c.ns).Get(c.Context(), "db-0", metav1.GetOptions{})
	c.must(err)
	second, err := c.CoreV1().Pods(c.ns).Get(c.Context(), "db-1", metav1.GetOptions{})
	c.must(err)
	if second.CreationTimestamp.Before(&first.CreationTimestamp) {
		c.Errorf("db-0 was created at %v, db-1 at %v", first.CreationTimestamp, second.CreationTimestamp)
	}
}

// daemonSetWorks: a scheduler would place the pods, so they stay Pending here.
func daemonSetWorks(c *tenant) {
	c.apply(`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {
  selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {
    nodeSelector: {kubernetes.io/hostname: node-0001},
    containers: [{name: c, image: none}]}}}}`)
	c.untilPods("app=agent", 1, v1.PodPending)
	pods, err := c.CoreV1().Pods(c.ns).List(c.Context(), metav1.ListOptions{})
	c.must(err)
	affinity := pods.Items[0].Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil {
		c.Errorf("the pod has the affinity %v, want that of its node", affinity)
	}
}

func jobWorks(c *tenant) {
	c.apply(`{apiVersion: batch/v1, kind: Job, metadata: {name: sum}, spec: {completions: 3, parallelism: 2,
  template: {spec: {restartPolicy: Never, nodeName: NODE, containers: [{name: c, image: none}]}}}}`)
	c.until("the job completes", func() string {
		j, err := c.BatchV1().Jobs(c.ns).Get(c.Context(), "sum", metav1.GetOptions{})
		if err != nil || j.Status.CompletionTime == nil || j.Status.Succeeded != 3 {
			return fmt.Sprintf("%+v (%v)", j.Status, err)
		}
		return ""
	})
}

func cronJobWorks(c *tenant) {
	c.apply(`{apiVersion: batch/v1, kind: CronJob, metadata: {name: often}, spec: {schedule: "* * * * *",
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, nodeName: NODE,
    containers: [{name: c, image: none}]}}}}}}`)
	c.until("a job completes", func() string {
		jobs, err := c.BatchV1().Jobs(c.ns).List(c.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, j := range jobs.Items {
			if j.Status.CompletionTime != nil && metav1.IsControlledBy(&j, controllerOf(c, "often")) {
				return ""
			}
		}
		return fmt.Sprintf("%d jobs, none of the cron job is complete", len(jobs.Items))
	})
}

func controllerOf(c *tenant, name string) metav1.Object {
	owner, err := c.BatchV1().CronJobs(c.ns).Get(c.Context(), name, metav1.GetOptions{})
	c.must(err)
	return owner
}

// quotaWorks: admission adds to what is used; only the controller takes it off again, and counts what was there before.
func quotaWorks(c *tenant) {
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: before}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {requests.cpu: "4", count/configmaps: "9",
  count/deployments.apps: "3", count/podgroups.scheduling.k8s.io: "2"}}}`)
	used := func(name v1.ResourceName, want string) {
		c.Helper()
		c.until(fmt.Sprintf("%s of %s is used", want, name), func() string {
			q, err := c.CoreV1().ResourceQuotas(c.ns).Get(c.Context(), "q", metav1.GetOptions{})
			got, counted := q.Status.Used[name]
			if err != nil || !counted || got.String() != want {
				return fmt.Sprintf("%v (%v)", got.String(), err)
			}
			return ""
		})
	}
	// The certificate authority is a config map, too.
	used("count/configmaps", "2")
	used("count/deployments.apps", "0")
	c.apply(`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: NODE, containers: [{name: c, image: none,
  resources: {requests: {cpu: "1"}}}]}}
---
{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: g}, spec: {schedulingPolicy: {basic: {}}}}`)
	used("requests.cpu", "1")
	used("count/podgroups.scheduling.k8s.io", "1")
	c.must(c.CoreV1().Pods(c.ns).Delete(c.Context(), "p", metav1.DeleteOptions{}))
	c.must(c.CoreV1().ConfigMaps(c.ns).Delete(c.Context(), "before", metav1.DeleteOptions{}))
	c.must(c.SchedulingV1beta1().PodGroups(c.ns).Delete(c.Context(), "g", metav1.DeleteOptions{}))
	used("requests.cpu", "0")
	used("count/configmaps", "1")
	used("count/podgroups.scheduling.k8s.io", "0")
}

func unscheduledPodGoes(c *tenant) {
	c.apply(`{apiVersion: v1, kind: Pod, metadata: {name: p, finalizers: [example.com/hold]},
  spec: {containers: [{name: c, image: none}]}}`)
	c.must(c.CoreV1().Pods(c.ns).Delete(c.Context(), "p", metav1.DeleteOptions{}))
	c.untilPhase("p", v1.PodFailed)
	_, err := c.CoreV1().Pods(c.ns).Patch(c.Context(), "p", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	c.must(err)
	c.untilPodGone("p")
}

func taintEvicts(c *tenant) {
	const node = "node-0002"
	c.apply(`{apiVersion: v1, kind: Pod, metadata: {name: goes}, spec: {nodeName: node-0002,
  containers: [{name: c, image: none}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: stays}, spec: {nodeName: node-0002, containers: [{name: c, image: none}],
  tolerations: [{key: NS, operator: Exists}]}}`)
	c.untilPhase("goes", v1.PodRunning)
	c.untilPhase("stays", v1.PodRunning)
	taint := func(taints ...v1.Taint) {
		c.Helper()
		c.until("change the taints of the node", func() string {
			n, err := c.CoreV1().Nodes().Get(c.Context(), node, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			n.Spec.Taints = taints
			_, err = c.CoreV1().Nodes().Update(c.Context(), n, metav1.UpdateOptions{})
			return problem(err)
		})
	}
	taint(v1.Taint{Key: c.ns, Effect: v1.TaintEffectNoExecute})
	c.untilPodGone("goes")
	c.untilPhase("stays", v1.PodRunning)
	taint()
}

// deviceTaintEvicts allocates a device as a scheduler does, then its driver taints it.
func deviceTaintEvicts(c *tenant) {
	c.apply(`{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: NS}, spec: {driver: NS.example.com,
  nodeName: NODE, pool: {name: pool, generation: 1, resourceSliceCount: 1}, devices: [{name: d0}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: claim}, spec: {devices: {requests: [{name: r,
  exactly: {deviceClassName: any}}]}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: NODE,
  resourceClaims: [{name: r, resourceClaimName: claim}], containers: [{name: c, image: none}]}}`)
	pod, err := c.CoreV1().Pods(c.ns).Get(c.Context(), "p", metav1.GetOptions{})
	c.must(err)
	claims := c.ResourceV1().ResourceClaims(c.ns)
	c.until("the claim is allocated", func() string {
		claim, err := claims.Get(c.Context(), "claim", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: c.ns + ".example.com",
				Pool: "pool", Device: "d0"}}}}
		claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{
			{Resource: "pods", Name: "p", UID: pod.UID}}
		_, err = claims.UpdateStatus(c.Context(), claim, metav1.UpdateOptions{})
		return problem(err)
	})
	c.untilPhase("p", v1.PodRunning)
	slices := c.ResourceV1().ResourceSlices()
	slice, err := slices.Get(c.Context(), c.ns, metav1.GetOptions{})
	c.must(err)
	slice.Spec.Pool.Generation++
	slice.Spec.Devices[0].Taints = []resourceapi.DeviceTaint{
		{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoExecute}}
	_, err = slices.Update(c.Context(), slice, metav1.UpdateOptions{})
	c.must(err)
	c.untilPodGone("p")
	c.must(slices.Delete(c.Context(), c.ns, metav1.DeleteOptions{}))
}

func resourceClaimWorks(c *tenant) {
	c.apply(`{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: t}, spec: {spec: {
  devices: {requests: [{name: r, exactly: {deviceClassName: any}}]}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {resourceClaims: [{name: mine, resourceClaimTemplateName: t}],
  containers: [{name: c, image: none}]}}`)
	var claim string
	c.until("the status of the pod names the claim", func() string {
		pod, err := c.CoreV1().Pods(c.ns).Get(c.Context(), "p", metav1.GetOptions{})
		if err != nil || len(pod.Status.ResourceClaimStatuses) != 1 {
			return fmt.Sprintf("%v (%v)", pod.Status.ResourceClaimStatuses, err)
		}
		claim = *pod.Status.ResourceClaimStatuses[0].ResourceClaimName
		return ""
	})
	_, err := c.ResourceV1().ResourceClaims(c.ns).Get(c.Context(), claim, metav1.GetOptions{})
	c.must(err)
	c.must(c.CoreV1().Pods(c.ns).Delete(c.Context(), "p", metav1.DeleteOptions{}))
	c.untilGone("the claim", func() error {
		_, err := c.ResourceV1().ResourceClaims(c.ns).Get(c.Context(), claim, metav1.GetOptions{})
		return err
	})
}

func podGroupIsProtected(c *tenant) {
	c.apply(`{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: g},
  spec: {schedulingPolicy: {basic: {}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: NODE, schedulingGroup: {podGroupName: g},
  containers: [{name: c, image: none}]}}`)
	c.untilPhase("p", v1.PodRunning)
	groups := c.SchedulingV1beta1().PodGroups(c.ns)
	c.must(groups.Delete(c.Context(), "g", metav1.DeleteOptions{}))
	c.untilTerminating("the group", func() (metav1.Object, error) {
		return groups.Get(c.Context(), "g", metav1.GetOptions{})
	}, "scheduling.k8s.io/podgroup-protection")
	c.must(c.CoreV1().Pods(c.ns).Delete(c.Context(), "p", metav1.DeleteOptions{}))
	c.untilGone("the group", func() error {
		_, err := groups.Get(c.Context(), "g", metav1.GetOptions{})
		return err
	})
}

func ephemeralVolumeWorks(c *tenant) {
	c.apply(`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: none}],
  volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: none,
    accessModes: [ReadWriteOnce],
    resources: {requests: {storage: 1Gi}}}}}}]}}`)
	pod, err := c.CoreV1().Pods(c.ns).Get(c.Context(), "p", metav1.GetOptions{})
	c.must(err)
	c.until("the claim of the pod", func() string {
		claim, err := c.CoreV1().PersistentVolumeClaims(c.ns).Get(c.Context(), "p-scratch", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if !metav1.IsControlledBy(claim, pod) {
			return fmt.Sprintf("it belongs to %v", claim.OwnerReferences)
		}
		return ""
	})
}

// volumesWork binds a claim, deletes claim and volume while a pod uses them, ends the pod, and sees the volume recycled
// by the pod that the volume plugin for host paths makes.
func volumesWork(c *tenant) {
	c.apply(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS}, spec: {storageClassName: NS,
  capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Recycle,
  hostPath: {path: /tmp/NS}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim}, spec: {storageClassName: NS,
  accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: NODE, containers: [{name: c, image: none}],
  volumes: [{name: v, persistentVolumeClaim: {claimName: claim}}]}}`)
	claims, volumes := c.CoreV1().PersistentVolumeClaims(c.ns), c.CoreV1().PersistentVolumes()
	c.until("the claim is bound", func() string {
		claim, err := claims.Get(c.Context(), "claim", metav1.GetOptions{})
		if err != nil || claim.Status.Phase != v1.ClaimBound || claim.Spec.VolumeName != c.ns {
			return fmt.Sprintf("%s to %q (%v)", claim.Status.Phase, claim.Spec.VolumeName, err)
		}
		return ""
	})
	c.untilPhase("p", v1.PodRunning)
	c.must(claims.Delete(c.Context(), "claim", metav1.DeleteOptions{}))
	c.untilTerminating("the claim", func() (metav1.Object, error) {
		return claims.Get(c.Context(), "claim", metav1.GetOptions{})
	}, "kubernetes.io/pvc-protection")
	c.must(c.CoreV1().Pods(c.ns).Delete(c.Context(), "p", metav1.DeleteOptions{}))
	c.untilGone("the claim", func() error {
		_, err := claims.Get(c.Context(), "claim", metav1.GetOptions{})
		return err
	})
	recycler := "recycler-for-" + c.ns
	c.until("the pod that recycles the volume", func() string {
		_, err := c.CoreV1().Pods("default").Get(c.Context(), recycler, metav1.GetOptions{})
		return problem(err)
	})
	c.must(volumes.Delete(c.Context(), c.ns, metav1.DeleteOptions{}))
	c.untilGone("the volume", func() error {
		_, err := volumes.Get(c.Context(), c.ns, metav1.GetOptions{})
		return err
	})
	err := c.CoreV1().Pods("default").Delete(c.Context(), recycler, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		c.must(err)
	}
}

// nodesFail stops the heartbeats of all nodes, and sends those of one itself: if all nodes were silent, the controller
// would assume that the network is broken and evict nothing.
func nodesFail(c *tenant) {
	c.apply(`{apiVersion: v1, kind: Pod, metadata: {name: silent}, spec: {nodeName: node-0003,
  containers: [{name: c, image: none}], tolerations: [{key: node.kubernetes.io/unreachable,
    operator: Exists, effect: NoExecute, tolerationSeconds: 1}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: gone}, spec: {nodeName: node-0004,
  containers: [{name: c, image: none}]}}`)
	c.untilPhase("silent", v1.PodRunning)
	c.untilPhase("gone", v1.PodRunning)
	if code := c.program.control("kill", "nodes"); code != exitOK {
		c.Fatalf("kill exits with %d", code)
	}
	c.must(c.CoreV1().Nodes().Delete(c.Context(), "node-0004", metav1.DeleteOptions{}))
	c.until("the pod of the silent node is evicted", func() string {
		beat(c, "node-0000")
		pod, err := c.CoreV1().Pods(c.ns).Get(c.Context(), "silent", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if pod.DeletionTimestamp == nil {
			return "it is not"
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == v1.DisruptionTarget && condition.Reason == "DeletionByTaintManager" {
				return ""
			}
		}
		return fmt.Sprintf("its conditions are %v", pod.Status.Conditions)
	})
	node, err := c.CoreV1().Nodes().Get(c.Context(), "node-0003", metav1.GetOptions{})
	c.must(err)
	for _, condition := range node.Status.Conditions {
		if condition.Type == v1.NodeReady && condition.Status != v1.ConditionUnknown {
			c.Errorf("the silent node is Ready=%s", condition.Status)
		}
	}
	c.untilPodGone("gone")
}

// beat renews the lease of a node, as its kubelet does.
func beat(c *tenant, node string) {
	leases := c.CoordinationV1().Leases(v1.NamespaceNodeLease)
	lease, err := leases.Get(c.Context(), node, metav1.GetOptions{})
	c.must(err)
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now()))
	_, err = leases.Update(c.Context(), lease, metav1.UpdateOptions{})
	c.must(err)
}
