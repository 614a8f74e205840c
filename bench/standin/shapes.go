// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is scheduler_perf's pod: one container that requests 100m and 500Mi.
func Pod(namespace, name string) *corev1.Pod {
	noToken := false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &noToken,
			Containers: []corev1.Container{{
				Name: "pause", Image: "registry.k8s.io/pause:3.10.1",
				Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("500Mi"),
				}},
			}},
		},
	}
}

// ServicePod is a pod of an ordinary service: some variables, a probe, an owner's labels.
func ServicePod(namespace, name, node string, i int) *corev1.Pod {
	p := Pod(namespace, name)
	p.Labels = map[string]string{"app": fmt.Sprintf("app-%03d", i%500), "pod-template-hash": "5d5f7b8c9d",
		"tier": "backend"}
	p.Annotations = map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}
	p.Spec.NodeName = node
	c := &p.Spec.Containers[0]
	for _, name := range []string{"LOG_LEVEL", "DATABASE_HOST", "DATABASE_NAME", "CACHE_HOST", "REGION", "CLUSTER"} {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: "value-of-" + strings.ToLower(name)})
	}
	p.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{
			Name: p.Labels["app"]}}}}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config", ReadOnly: true}}
	return p
}

// NodeName is the name of the node with an index.
func NodeName(i int) string { return fmt.Sprintf("node-%06d", i) }

// uid returns a value like the UIDs of an API server: of the same length, and different for each name.
func uid(kind string, i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-5b1d-4c6e-9f3a-%04x%08x", i*2654435761&0xffffffff, len(kind), i))
}

// Node returns a node of the local cluster with the status from a kubelet.
func Node(i int) *corev1.Node {
	name := NodeName(i)
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods: resource.MustParse("110")}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid("node", i), CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.1",
			OperatingSystem: "linux", Architecture: "amd64"}},
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		status := corev1.ConditionFalse
		if kind == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, Reason: "Kubelet" + string(kind),
			Message: "kubelet has posted its status", LastTransitionTime: n.CreationTimestamp, LastHeartbeatTime: n.CreationTimestamp})
	}
	return n
}

// AsStored adds to a pod what an API server adds: defaults, tolerations, the token of its service account, the fields
// that its creator manages.
func AsStored(p *corev1.Pod) {
	i := 0
	_, _ = fmt.Sscanf(p.Name[strings.LastIndexByte(p.Name, '-')+1:], "%d", &i) // a name without a number has 0
	p.UID, p.Generation, p.CreationTimestamp = uid(p.Name, i), 1, metav1.NewTime(time.Unix(1_700_000_000+int64(i), 0))
	grace, seconds, priority, links := int64(30), int64(300), int32(0), true
	policy := corev1.PreemptLowerPriority
	s := &p.Spec
	s.RestartPolicy, s.DNSPolicy, s.SchedulerName, s.ServiceAccountName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, corev1.DefaultSchedulerName, "default"
	s.DeprecatedServiceAccount, s.TerminationGracePeriodSeconds, s.Priority, s.EnableServiceLinks = "default", &grace, &priority, &links
	s.PreemptionPolicy, s.SecurityContext = &policy, &corev1.PodSecurityContext{}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
	}
	for c := range s.Containers {
		s.Containers[c].TerminationMessagePath, s.Containers[c].TerminationMessagePolicy = "/dev/termination-log", corev1.TerminationMessageReadFile
		s.Containers[c].ImagePullPolicy = corev1.PullIfNotPresent
	}
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable}
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kumiki", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		Time: &p.CreationTimestamp, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(managed)}}
}

// managed returns the managed fields of ServicePod, as the API server records them.
const managed = `{"f:metadata":{"f:annotations":{".":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:labels":{".":{},"f:app":{},` +
	`"f:pod-template-hash":{},"f:tier":{}}},"f:spec":{"f:automountServiceAccountToken":{},"f:containers":{"k:{\"name\":\"pause\"}":{".":{},"f:env":` +
	`{".":{},"k:{\"name\":\"CACHE_HOST\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"CLUSTER\"}":{".":{},"f:name":{},"f:value":{}},` +
	`"k:{\"name\":\"DATABASE_HOST\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"DATABASE_NAME\"}":{".":{},"f:name":{},"f:value":{}},` +
	`"k:{\"name\":\"LOG_LEVEL\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"REGION\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},` +
	`"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},` +
	`"f:resources":{".":{},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},` +
	`"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/etc/config\"}":{".":{},"f:mountPath":{},"f:name":{},"f:readOnly":{}}}}},"f:dnsPolicy":{},` +
	`"f:enableServiceLinks":{},"f:nodeName":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{},` +
	`"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},"f:defaultMode":{},"f:name":{}},"f:name":{}}}}}`
