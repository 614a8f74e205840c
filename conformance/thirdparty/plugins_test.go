// SPDX-License-Identifier: Apache-2.0

package thirdparty

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

const (
	podGroupLabel = "scheduling.x-k8s.io/pod-group"
	appGroupLabel = "appgroup.diktyo.x-k8s.io"
)

// podGroup is a group with a number of members.
func podGroup(name string, members int) string {
	return fmt.Sprintf("apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\n"+
		"metadata: {name: %s, namespace: default}\nspec: {minMember: %d, scheduleTimeoutSeconds: 30}\n", name, members)
}

// fixtures creates what the plugins of a scheduler read when it starts. Some plugins know only pods that run then.
func (w *world) fixtures(name string) {
	w.Helper()
	w.apply(w.expand("testdata/objects.yaml", map[string]string{"NAME": name}))
	for node, cpu := range map[string]string{"0000": "1", "0001": "4", "0002": "4"} { // order: each is created
		w.apply(w.expand("testdata/topology.yaml", map[string]string{"NODE": name + "-numa-" + node, "CPU": cpu}))
	}
	fixtures := []string{name + "-foreign", name + "-db", name + "-full", name + "-covered", name + "-overcommitted"}
	w.pod(name+"-foreign", "none", bound(name+"-numa-0001"), requesting("1", "1"))
	w.pod(name+"-db", "none", bound(name+"-net-0000"), requesting("4", "4"), labelled(appOf(name+"-shop", "db")))
	w.pod(name+"-full", "none", bound(name+"-syscalls-0000"), confined("full-seccomp"))
	w.pod(name+"-covered", "none", bound(name+"-risk-0000"), requesting("4", "4"))
	w.pod(name+"-overcommitted", "none", bound(name+"-risk-0001"), requesting("100m", "64"))
	for i := range 5 {
		small := fmt.Sprintf("%s-small-%d", name, i)
		fixtures = append(fixtures, small)
		w.pod(small, "none", bound(name+"-syscalls-0001"), confined("small"), requesting("1", "1"))
	}
	w.await("the fixtures run", func() string {
		for _, pod := range fixtures {
			if p := w.get(pod); p.Status.Phase != v1.PodRunning {
				return fmt.Sprintf("%s is %s", pod, p.Status.Phase)
			}
		}
		return ""
	})
}

// appOf are the labels of a pod of a workload in an AppGroup.
func appOf(group, workload string) map[string]string {
	return map[string]string{appGroupLabel: group, appGroupLabel + ".workload": workload}
}

// confined gives a pod a SeccompProfile.
func confined(profile string) change {
	path := "operator/default/" + profile + ".json"
	return func(p *v1.Pod) {
		p.Spec.SecurityContext = &v1.PodSecurityContext{
			SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: &path}}
	}
}

// loads serves the load of the nodes as a load watcher does: the first node is near to the target of 40 %, the second
// one is busy, the third one is idle and steady. The window ends later, so that no pod counts as missing in it.
func loads(out http.ResponseWriter, _ *http.Request) {
	var nodes []string
	for name := range programs { // order: a map of JSON
		for node, cpu := range map[string][2]int{ // order: a map of JSON
			"load-0000": {38, 10}, "load-0001": {80, 10}, "load-0002": {5, 0}, "risk-0000": {5, 0}, "risk-0001": {5, 0},
		} {
			nodes = append(nodes, fmt.Sprintf(`"%s-%s": {"metrics": [{"type": "CPU", "operator": "AVG", "value": %d},
				{"type": "CPU", "operator": "STD", "value": %d}]}`, name, node, cpu[0], cpu[1]))
		}
	}
	out.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(out, `{"timestamp": 1, "window": {"duration": "15m", "start": 1, "end": 32503680000},
		"source": "test", "data": {"NodeMetricsMap": {%s}}}`, strings.Join(nodes, ","))
}

// coscheduling creates two pods of a group of three, which wait, and then the third: all run.
func (w *world) coscheduling(name string) {
	group := name + "-group"
	w.apply(podGroup(group, 3))
	member := func(i int) string { return fmt.Sprintf("%s-%d", group, i) }
	create := func(i int) {
		w.pod(member(i), name+"-coscheduling", on("node"), labelled(map[string]string{podGroupLabel: group}))
	}
	for i := range 2 {
		create(i)
	}
	for i := range 2 {
		w.waits(member(i), "cannot find enough sibling pods")
	}
	create(2)
	w.bound(member(0), member(1), member(2))
}

// coschedulingEvents rejects pods whose PodGroup does not exist, and then requires too many members: the events of the
// custom resource wake them.
func (w *world) coschedulingEvents(name string) {
	group := name + "-late"
	members := []string{group + "-0", group + "-1"}
	for _, pod := range members {
		w.pod(pod, name+"-coscheduling", on("node"), labelled(map[string]string{podGroupLabel: group}))
	}
	for _, pod := range members {
		w.waits(pod, "PodGroup not found")
	}
	w.waking(group, 3, func() string {
		for _, pod := range members {
			p := w.get(pod)
			if p.Spec.NodeName != "" {
				w.Fatalf("%s is bound to %s, and one pod is missing", pod, p.Spec.NodeName)
			}
			if message := conditionOf(p); strings.Contains(message, "PodGroup not found") {
				return pod + " waits as before: " + message
			}
		}
		return ""
	})
	w.waking(group, 2, func() string { return w.unbound(members...) })
}

// waking applies a PodGroup until nothing is missing, with a change every two seconds: a pod that an event wakes before
// the plugin's own informer shows the change is rejected once more, and waits for the next event.
func (w *world) waking(group string, members int, missing func() string) {
	w.Helper()
	due := time.Time{}
	w.await("the pods of the group are tried again", func() string {
		if time.Now().After(due) {
			due = time.Now().Add(2 * time.Second)
			changed := fmt.Sprintf("namespace: default, annotations: {changed: %q}", due.Format(time.RFC3339))
			w.apply(strings.Replace(podGroup(group, members), "namespace: default", changed, 1))
		}
		return missing()
	})
}

// podState lets a pod be on its way out of a node, which a new pod prefers therefore.
func (w *world) podState(name string) {
	const node = "node-0002"
	leaving := name + "-leaving"
	w.pod(leaving, "none", bound(node))
	w.await("a pod runs", func() string {
		if p := w.get(leaving); p.Status.Phase != v1.PodRunning {
			return "it is " + string(p.Status.Phase)
		}
		return ""
	})
	// No kubelet ends the pod, so it stays for its grace period.
	if err := w.cluster.Stop(testcluster.Nodes); err != nil {
		w.Fatal(err)
	}
	defer func() {
		if err := w.cluster.Cont(testcluster.Nodes); err != nil {
			w.Error(err)
		}
	}()
	if err := w.client.CoreV1().Pods("default").Delete(w.Context(), leaving, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	if p := w.get(leaving); p.DeletionTimestamp == nil || p.Status.Phase != v1.PodRunning {
		w.Fatalf("the pod has the time of deletion %v and is %s", p.DeletionTimestamp, p.Status.Phase)
	}
	w.pod(name+"-next", name+"-podstate", on("node"))
	w.runsOn(name+"-next", node)
}

// allocatable prefers the smaller of two nodes, which the default profile would not.
func (w *world) allocatable(name string) {
	w.pod(name+"-fits-small", name+"-allocatable", on(name+"-size"), requesting("100m", "100m"))
	w.runsOn(name+"-fits-small", name+"-small-0000")
}

// topology rejects a pod by the custom resource of its node, until that shows enough CPUs on one NUMA node.
func (w *world) topology(name string) {
	node, pod := name+"-numa-0000", name+"-aligned"
	w.pod(pod, name+"-topology", onNode(node), requesting("2", "2"))
	w.waits(pod, "cannot align container")
	w.apply(w.expand("testdata/topology.yaml", map[string]string{"NODE": node, "CPU": "4"}))
	w.runsOn(pod, node)
}

// topologyCache counts what was reserved since the custom resource was written, and rejects nodes with pods of other
// schedulers, which the plugin knows only if its Handle is a framework.Framework.
func (w *world) topologyCache(name string) {
	node := name + "-numa-0002"
	w.pod(name+"-first", name+"-topology-cache", onNode(node), requesting("3", "3"))
	w.runsOn(name+"-first", node)
	w.pod(name+"-second", name+"-topology-cache", onNode(node), requesting("3", "3"))
	w.waits(name+"-second", "cannot align container")
	w.pod(name+"-stranded", name+"-topology-cache", onNode(name+"-numa-0001"), requesting("1", "1"))
	w.waits(name+"-stranded", "invalid node topology data")
}

// network prefers the node of the pod that an application depends on, although it is the busiest one, and rejects
// nodes that are too far from it.
func (w *world) network(name string) {
	web := labelled(appOf(name+"-shop", "web"))
	w.pod(name+"-near", name+"-network", on(name+"-net"), web)
	w.runsOn(name+"-near", name+"-net-0000")
	w.pod(name+"-far", name+"-network", onNode(name+"-net-0002"), web)
	w.waits(name+"-far", "does not meet several network requirements")
}

// syscalls prefers the node whose pods make no other system calls, although it is the busier one.
func (w *world) syscalls(name string) {
	w.pod(name+"-confined", name+"-syscalls", on(name+"-syscalls"), confined("small"))
	w.runsOn(name+"-confined", name+"-syscalls-0001")
}

// load gives one pod to each of three plugins, which prefer three nodes: the one nearest to the target, the one with
// the lowest and steadiest load, and the one whose power rises least.
func (w *world) load(name string) {
	for i, profile := range []string{"target-load", "peaks", "load-variation"} {
		pod := name + "-" + profile
		w.pod(pod, pod, on(name+"-load"), requesting("100m", "100m"))
		w.runsOn(pod, fmt.Sprintf("%s-load-000%d", name, i))
	}
}

// lowRisk prefers the node whose limits are covered, although more is requested on it.
func (w *world) lowRisk(name string) {
	w.pod(name+"-safe", name+"-low-risk", on(name+"-risk"), requesting("100m", "100m"))
	w.runsOn(name+"-safe", name+"-risk-0000")
}

// qos lets three pods wait for one port of a node, the least important first. When the scheduler starts, the pod with
// guaranteed resources gets it.
func (w *world) qos(name, binary string) {
	burstable := func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}
	}
	port := hostPort(8000 + int32(len(name)))
	w.pod(name+"-besteffort", name+"-qos", onNode("node-0000"), port)
	w.pod(name+"-burstable", name+"-qos", onNode("node-0000"), port, burstable)
	w.pod(name+"-guaranteed", name+"-qos", onNode("node-0000"), port, requesting("100m", "100m"))
	w.start(name, binary, w.file("testdata/sorting.yaml",
		map[string]string{"PROFILE": name + "-qos", "PLUGIN": "QOSSort"}), "--secure-port=0")
	w.first(name, "guaranteed", "burstable", "besteffort")
}

// topological does the same with three pods of an AppGroup, of which c is the first one in its order.
func (w *world) topological(name, binary string) {
	port := hostPort(9000 + int32(len(name)))
	for _, workload := range []string{"b", "a", "c"} {
		w.pod(name+"-chain-"+workload, name+"-topological", onNode("node-0001"), port,
			labelled(appOf(name+"-chain", workload)))
	}
	w.start(name, binary, w.file("testdata/sorting.yaml",
		map[string]string{"PROFILE": name + "-topological", "PLUGIN": "TopologicalSort"}), "--secure-port=0")
	w.first(name, "chain-c", "chain-a", "chain-b")
}

// hostPort makes a pod use a port of its node.
func hostPort(port int32) change {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: port}}
	}
}

// first waits until one of several pods is bound, which must be the first one, and the others are rejected.
func (w *world) first(name, first string, others ...string) {
	w.Helper()
	w.await("a pod has the port", func() string {
		for _, pod := range others {
			if node := w.get(name + "-" + pod).Spec.NodeName; node != "" {
				w.Fatalf("%s is bound before %s", pod, first)
			}
		}
		if w.get(name+"-"+first).Spec.NodeName == "" {
			return "no pod is bound"
		}
		return ""
	})
	for _, pod := range others {
		w.waits(name+"-"+pod, "free ports")
	}
}

// bound waits until pods are bound.
func (w *world) bound(pods ...string) {
	w.Helper()
	w.await("all are bound", func() string { return w.unbound(pods...) })
}

// unbound returns why one of several pods is not bound, empty if all are.
func (w *world) unbound(pods ...string) string {
	w.Helper()
	for _, pod := range pods {
		if p := w.get(pod); p.Spec.NodeName == "" {
			return pod + " is not bound: " + conditionOf(p)
		}
	}
	return ""
}
