// SPDX-License-Identifier: Apache-2.0

//go:build ecosystem

package ecosystem

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// kueueNodes: each scenario has four nodes of its own, in two racks. A ResourceFlavor of the scenario's name selects
// them.
const kueueNodes = `- name: NAME
  count: 4
  capacity: {cpu: "8", memory: 32Gi}
  zones: [zone-a]
  racks: 2
  labels: {pool: NAME}
`

// kueueQueue is a queue for the nodes of a scenario: the quota for four pods of gangJob.
const kueueQueue = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: POOL}
spec:
  nodeLabels: {pool: POOL}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: POOL
      resources: [{name: cpu, nominalQuota: 24}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: NAME, namespace: default}
spec: {clusterQueue: NAME}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
`

// gangJob is a gang of pods that fill a node each. The Job begins suspended, and Kueue decides when that ends.
type gangJob struct {
	name, queue string
	pods        int
	// runFor is how long the pods run; empty: to the end of the test.
	runFor string
	// labels are further labels of the Job, annotations of its pods, both in the flow style of YAML after a comma.
	labels, annotations string
}

func (j gangJob) String() string {
	if j.runFor == "" {
		j.runFor = "1h"
	}
	return fmt.Sprintf(`
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: %[1]s, namespace: default}
spec: {schedulingPolicy: {gang: {minCount: %[3]d}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s, namespace: default, labels: {kueue.x-k8s.io/queue-name: %[2]s%[5]s}}
spec:
  suspend: true
  parallelism: %[3]d
  completions: %[3]d
  completionMode: Indexed
  template:
    metadata: {annotations: {kumiki.dev/run-for: %[4]s%[6]s}}
    spec:
      schedulingGroup: {podGroupName: %[1]s}
      restartPolicy: Never
      containers: [{name: main, image: registry.example/train:1, resources: {requests: {cpu: "6"}}}]
`, j.name, j.queue, j.pods, j.runFor, j.labels, j.annotations)
}

// kueueSuite is a suite with helpers for Kueue's objects.
type kueueSuite struct{ *suite }

// TestKueue: Kueue decides which gangs may use the quota, kumiki places each of them whole.
func TestKueue(t *testing.T) {
	scenarios := []struct {
		name string
		play func(kueueSuite)
	}{
		{"quota", kueueSuite.quota},
		{"preemption", kueueSuite.preemption},
		{"pods", kueueSuite.podGroups},
		{"topology", kueueSuite.topology},
		{"fragmented", kueueSuite.fragmented},
		{"reserved", kueueSuite.reserved},
	}
	spec := "shapes:\n"
	for _, sc := range scenarios {
		spec += strings.ReplaceAll(kueueNodes, "NAME", sc.name)
	}
	s := newCluster(t, testcluster.Options{NodeSpec: spec, NoHeartbeats: true, Gangs: true})
	s.schedule(allGangs)
	s.start(Kueue)
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			one := *s
			one.T = t
			sc.play(kueueSuite{&one})
		})
	}
}

// queue creates a queue with a quota of its own for the nodes of a pool.
func (s kueueSuite) queue(name, pool string) {
	s.Helper()
	s.apply(strings.NewReplacer("NAME", name, "POOL", pool).Replace(kueueQueue))
}

// submit applies a gang and ends it with the scenario.
func (s kueueSuite) submit(j gangJob) {
	s.Helper()
	s.apply(j.String())
	s.Cleanup(func() {
		objects, err := Objects([]byte(j.String()))
		if err != nil {
			s.Fatal(err)
		}
		for _, o := range objects {
			resource, err := s.Resource(o)
			if err != nil {
				s.Fatal(err)
			}
			// It may be gone already, and the test's context has ended.
			background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
			_ = resource.Delete(context.Background(), o.GetName(), background)
		}
	})
}

// workload returns the Workload that Kueue made for an object.
func (s kueueSuite) workload(ctx context.Context, owner string) (*unstructured.Unstructured, error) {
	workloads := schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}
	list, err := s.dynamic.Resource(workloads).Namespace("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		for _, o := range list.Items[i].GetOwnerReferences() {
			if o.Name == owner || strings.HasPrefix(o.Name, owner+"-") {
				return &list.Items[i], nil
			}
		}
	}
	return nil, fmt.Errorf("%s has no Workload", owner)
}

// reports waits until Kueue reports a condition of a workload, as TYPE=STATUS REASON with a part of the message.
func (s kueueSuite) reports(owner, condition, message string) {
	s.Helper()
	s.eventually(fmt.Sprintf("workload of %s: %s", owner, condition), func(ctx context.Context) error {
		w, err := s.workload(ctx, owner)
		if err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(w.Object, "status", "conditions")
		if err != nil {
			return err
		}
		var all []string
		for _, c := range conditions {
			f := c.(map[string]any)
			text := fmt.Sprintf("%s=%s %s", f["type"], f["status"], f["reason"])
			if text == condition && strings.Contains(fmt.Sprint(f["message"]), message) {
				return nil
			}
			all = append(all, fmt.Sprintf("%s: %s", text, f["message"]))
		}
		return fmt.Errorf("%q is not in %q", condition+": "+message, all)
	})
}

// noneLive waits until no pod with a prefix lives. Kueue's finalizer keeps the objects of evicted plain pods.
func (s kueueSuite) noneLive(prefix string) {
	s.Helper()
	s.eventually("no pod "+prefix, func(ctx context.Context) error {
		pods, err := s.pods(ctx, "default", prefix)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d pods live", len(pods))
		}
		return err
	})
}

// suspended waits until a Job is suspended and has no pods that live.
func (s kueueSuite) suspended(job string) {
	s.Helper()
	s.eventually(job+" is suspended", func(ctx context.Context) error {
		j, err := s.Kube.BatchV1().Jobs("default").Get(ctx, job, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pods, err := s.pods(ctx, "default", job+"-")
		if err == nil && (!*j.Spec.Suspend || len(pods) > 0) {
			err = fmt.Errorf("suspend is %v, and there are %d pods", *j.Spec.Suspend, len(pods))
		}
		return err
	})
}

// occupy binds pods of 4 cores to nodes without a scheduler: they use no quota.
func (s kueueSuite) occupy(nodes ...string) {
	s.Helper()
	for _, node := range nodes {
		s.apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: on-%[1]s, namespace: default}
spec:
  nodeName: %[1]s
  containers: [{name: main, image: registry.example/web:1, resources: {requests: {cpu: "4"}}}]
`, node))
	}
}

// reserves waits until kumiki reserves capacity for a gang and says so with a text. A gang that has waited long enough
// gets its reservation when it is tried next, which the end of a small pod on a node causes.
func (s kueueSuite) reserves(gang, node, text string) {
	s.Helper()
	n := 0
	s.eventually("a reservation for "+gang, func(ctx context.Context) error {
		answer := s.why(ctx, "default", gang)
		if strings.Contains(answer, text) {
			return nil
		}
		n++
		crumb := s.read(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: crumb-%d, namespace: default}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: registry.example/web:1, resources: {requests: {cpu: 100m}}}]
`, n, node))[0]
		if err := s.Apply(ctx, crumb); err != nil {
			return err
		}
		if err := s.Kube.CoreV1().Pods("default").Delete(ctx, crumb.GetName(), metav1.DeleteOptions{}); err != nil {
			return err
		}
		return fmt.Errorf("%q is not in\n%s", text, answer)
	})
}

// quota: two gangs and a quota for one. The second has no pods until the first ends.
func (s kueueSuite) quota() {
	s.queue("quota", "quota")
	s.submit(gangJob{name: "first", queue: "quota", pods: 4, runFor: "10s"})
	s.runs("default", "first-", 4)
	s.submit(gangJob{name: "second", queue: "quota", pods: 4})
	s.reports("second", "QuotaReserved=False Pending", "insufficient unused quota for cpu in flavor quota")
	s.eventually("second runs", func(ctx context.Context) error {
		list, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		first, second, running := 0, 0, 0
		for _, p := range list.Items {
			switch {
			case strings.HasPrefix(p.Name, "first-") && p.Status.Phase == v1.PodRunning:
				first++
			case strings.HasPrefix(p.Name, "second-"):
				second++
				if p.Status.Phase == v1.PodRunning {
					running++
				}
			}
		}
		if first > 0 && second > 0 {
			s.Fatalf("%d pods of first run, and %d of second exist", first, second)
		}
		if running != 4 {
			return fmt.Errorf("%d of 4 pods run", running)
		}
		return nil
	})
	s.reports("first", "Finished=True Succeeded", "")
	s.explains("default", "second", "running", "4 bound")
}

// preemption: a workload of higher priority gets the quota. The first gang loses all of its pods, and gets them back
// together.
func (s kueueSuite) preemption() {
	s.queue("preemption", "preemption")
	low := gangJob{name: "low", queue: "preemption", pods: 4}
	s.submit(low)
	before := s.runs("default", "low-", 4)

	boss := gangJob{name: "boss", queue: "preemption", pods: 3, labels: ", kueue.x-k8s.io/priority-class: urgent"}
	s.submit(boss)
	s.reports("low", "Evicted=True Preempted", "")
	s.runs("default", "boss-", 3)
	s.suspended("low")
	s.explains("default", "boss", "running", "3 bound")

	s.remove(boss.String())
	s.restarted("default", "low-", 4, before)
	s.explains("default", "low", "running", "4 bound")
}

// trio are three pods that are a group to Kueue and a gang to kumiki.
func trio() string {
	text := `
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: trio, namespace: default}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
`
	for i := range 3 {
		text += fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata:
  name: trio-%d
  namespace: default
  labels: {kueue.x-k8s.io/queue-name: pods, kueue.x-k8s.io/pod-group-name: trio}
  annotations: {kueue.x-k8s.io/pod-group-total-count: "3"}
spec:
  schedulingGroup: {podGroupName: trio}
  restartPolicy: Never
  containers: [{name: main, image: registry.example/train:1, resources: {requests: {cpu: "6"}}}]
`, i)
	}
	return text
}

// podGroups: Kueue gates plain pods until their group is admitted. kumiki binds none of them before, and all after.
// Evicted, all of them go.
func (s kueueSuite) podGroups() {
	s.queue("pods", "pods")
	other := gangJob{name: "other", queue: "pods", pods: 4}
	s.submit(other)
	s.runs("default", "other-", 4)

	s.apply(trio())
	s.reports("trio", "QuotaReserved=False Pending", "insufficient unused quota")
	pods, err := s.pods(s.Context(), "default", "trio-")
	if err != nil {
		s.Fatal(err)
	}
	if len(pods) != 3 || bound(pods) != 0 {
		s.Fatalf("%d pods exist, and %d are bound", len(pods), bound(pods))
	}
	for _, p := range pods {
		gates := p.Spec.SchedulingGates
		if len(gates) == 0 || gates[0].Name != "kueue.x-k8s.io/admission" || p.Spec.SchedulingGroup == nil {
			s.Errorf("pod %s: gates %v, group %v", p.Name, gates, p.Spec.SchedulingGroup)
		}
	}
	s.explains("default", "trio", "waits for its pods")
	s.remove(other.String())
	s.runs("default", "trio-", 3)
	s.explains("default", "trio", "running", "3 bound")

	s.submit(gangJob{name: "chief", queue: "pods", pods: 4, labels: ", kueue.x-k8s.io/priority-class: urgent"})
	s.runs("default", "chief-", 4)
	s.noneLive("trio-")
}

// kueueTopology gives a flavor the levels rack and node.
const kueueTopology = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: racks}
spec:
  levels:
  - nodeLabel: topology.kumiki.dev/rack
  - nodeLabel: kubernetes.io/hostname
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: topology}
spec:
  nodeLabels: {pool: topology}
  topologyName: racks
`

// topology: Kueue assigns nodes of one rack when it admits, and gates the pods until it has written the assignment into
// them. kumiki binds within it.
func (s kueueSuite) topology() {
	s.apply(kueueTopology)
	_, queues, _ := strings.Cut(strings.NewReplacer("NAME", "topology", "POOL", "topology").Replace(kueueQueue), "---")
	s.apply(queues)
	// One node of rack 0 is too full; only rack 1 has two.
	s.occupy("topology-0000")
	s.submit(gangJob{name: "close", queue: "topology", pods: 2,
		annotations: ", kueue.x-k8s.io/podset-required-topology: topology.kumiki.dev/rack"})
	s.runs("default", "close-", 2)
	w, err := s.workload(s.Context(), "close")
	if err != nil {
		s.Fatal(err)
	}
	sets, _, err := unstructured.NestedSlice(w.Object, "status", "admission", "podSetAssignments")
	if err != nil || len(sets) != 1 || sets[0].(map[string]any)["topologyAssignment"] == nil {
		s.Fatalf("no topology is assigned: %v, %v", sets, err)
	}
	pods, err := s.pods(s.Context(), "default", "close-")
	if err != nil {
		s.Fatal(err)
	}
	nodes := map[string]bool{}
	for _, p := range pods {
		nodes[p.Spec.NodeName] = true
		if selected := p.Spec.NodeSelector[v1.LabelHostname]; selected != p.Spec.NodeName {
			s.Errorf("pod %s is on %s, and Kueue assigned %q", p.Name, p.Spec.NodeName, selected)
		}
	}
	if !nodes["topology-0001"] || !nodes["topology-0003"] {
		s.Errorf("the pods are on %v, want both nodes of rack 1", nodes)
	}

	// No rack has two nodes now: Kueue does not admit, so kumiki sees no pods.
	s.submit(gangJob{name: "wide", queue: "topology", pods: 2,
		annotations: ", kueue.x-k8s.io/podset-required-topology: topology.kumiki.dev/rack"})
	s.reports("wide", "QuotaReserved=False Pending", "topology")
	s.suspended("wide")
}

// fragmented: the quota is enough for a gang and the nodes are not. Both sides report it. After the timeout Kueue takes
// the quota back, and the next gang gets it and the capacity that kumiki had reserved.
func (s kueueSuite) fragmented() {
	s.queue("fragmented", "fragmented")
	s.occupy("fragmented-0000", "fragmented-0001")
	s.submit(gangJob{name: "big", queue: "fragmented", pods: 4})
	s.reports("big", "Admitted=True Admitted", "")
	s.reports("big", "PodsReady=False WaitForStart", "Not all pods are ready or succeeded")
	s.waits("default", "big-", "big", "waits for capacity", "the best try places 2, 4 are needed", "Insufficient cpu")
	s.submit(gangJob{name: "small", queue: "fragmented", pods: 2})
	s.reports("small", "QuotaReserved=False Pending", "insufficient unused quota")
	s.reserves("big", "fragmented-0000", "Capacity for 2 pods is reserved for it on fragmented-000")

	s.reports("big", "Evicted=True PodsReadyTimeout", "Exceeded the PodsReady timeout")
	s.runs("default", "small-", 2)
	s.suspended("big")
	s.explains("default", "small", "running", "2 bound")
}

// reserved: Kueue evicts a gang while kumiki reserves capacity for one of another queue. What the evicted gang leaves
// goes to that one first, and the gang that Kueue admitted instead follows.
func (s kueueSuite) reserved() {
	s.queue("reserved", "reserved")
	s.queue("beside", "reserved")
	s.submit(gangJob{name: "victim", queue: "reserved", pods: 3})
	s.runs("default", "victim-", 3)
	waiting := gangJob{name: "waiting", queue: "beside", pods: 2}
	s.submit(waiting)
	s.waits("default", "waiting-", "waiting", "waits for capacity", "the best try places 1, 2 are needed")
	s.reserves("waiting", "reserved-0000", "Capacity for 1 pod is reserved for it on reserved-000")

	s.submit(gangJob{name: "heir", queue: "reserved", pods: 3, labels: ", kueue.x-k8s.io/priority-class: urgent"})
	s.reports("victim", "Evicted=True Preempted", "")
	s.runs("default", "waiting-", 2)
	s.suspended("victim")
	s.reports("heir", "Admitted=True Admitted", "")
	s.waits("default", "heir-", "heir", "waits for capacity", "the best try places 2, 3 are needed")

	s.remove(waiting.String())
	s.runs("default", "heir-", 3)
	s.suspended("victim")
}
