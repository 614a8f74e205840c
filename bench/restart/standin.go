// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/bench/standin"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

// RunStandin measures starts with a simulated API server.
func RunStandin(ctx context.Context, o testbed.Options) (_ Report, err error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if err := completeRestart(&o); err != nil {
		return Report{}, err
	}
	f, err := newStandinCluster(o)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return startAll(ctx, o, f)
}

// standinCluster is a simulated API server full of bound pods.
type standinCluster struct {
	*standin.Server
	dir  string
	file string // kubeconfig
}

// newStandinCluster fills a simulated API server with the nodes and pods of a local cluster.
func newStandinCluster(o testbed.Options) (*standinCluster, error) {
	fmt.Fprintf(o.Progress, "filling a stand-in with %d nodes and %d bound pods\n", o.Nodes, o.Pods)
	server, err := standin.Start()
	if err != nil {
		return nil, err
	}
	f := &standinCluster{Server: server}
	if f.dir, err = os.MkdirTemp("", "kumiki-bench-"); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	if f.file, err = server.WriteKubeconfig(f.dir); err != nil {
		return nil, errors.Join(err, f.close())
	}
	server.AddNamespace(namespace)
	for i := range o.Nodes {
		server.AddNode(fakeNode(i))
	}
	for i := range o.Pods {
		p := boundPod(podName(i), nodeName(i%o.Nodes), i)
		asStored(p)
		server.AddPod(p)
	}
	return f, nil
}

func (f *standinCluster) close() error { return errors.Join(f.Close(), os.RemoveAll(f.dir)) }

func nodeName(i int) string { return fmt.Sprintf("node-%06d", i) }

// uid returns a value like the UIDs of an API server: of the same length, and different for each name.
func uid(kind string, i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-5b1d-4c6e-9f3a-%04x%08x", i*2654435761&0xffffffff, len(kind), i))
}

// fakeNode returns a node of the local cluster with the status from a kubelet.
func fakeNode(i int) *corev1.Node {
	name := nodeName(i)
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

// asStored adds to a pod what an API server adds: defaults, tolerations, the token of its service account, the fields
// that its creator manages.
func asStored(p *corev1.Pod) {
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

// managed returns the managed fields of boundPod, as the API server records them.
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

func (f *standinCluster) kubeconfigs() (scheduler, admin string) { return f.file, f.file }

func (f *standinCluster) wait(_ context.Context, p *corev1.Pod) error {
	asStored(p)
	f.AddPod(p)
	return nil
}

func (f *standinCluster) isBound(_ context.Context, name string) (bool, error) {
	return !f.Bound(namespace, name).IsZero(), nil
}

func (f *standinCluster) sent(context.Context) (Sent, error) {
	sent := Sent{}
	for resource, v := range f.Sent() { // order: into a map
		sent[resource] = Volume(v)
	}
	return sent, nil
}

func (f *standinCluster) listed() time.Time {
	pods, nodes := f.Streamed("pods"), f.Streamed("nodes")
	if nodes.After(pods) {
		return nodes
	}
	return pods
}

// serverPids returns none: this process serves.
func (f *standinCluster) serverPids() []int { return nil }
