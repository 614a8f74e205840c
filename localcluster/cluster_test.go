// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const spec = `
shapes:
- name: plain
  count: 2
  zones: [east, west]
  capacity: {cpu: "4", memory: 8Gi, pods: "5"}
  reserved: {cpu: "1", memory: 1Gi}
  hugePages: {2Mi: 512, 1Gi: 1}
- name: gpu
  count: 1
  capacity: {cpu: "4", memory: 8Gi}
  devices: {example.com/gpu: 2}
  csi: {disk.csi.example.com: 3}
  claimable: [{driver: gpu.example.com, count: 2, attributes: {model: a}}]
  taints: [{key: only, value: gpu, effect: NoExecute}]
`

// One cluster carries the scenario: nodes come up as described, pods that fit run,
// pods that do not are failed, servers die and come back, and at the end
// nothing is left.
func TestCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spec.yaml")
	if err := os.WriteFile(file, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "kubeconfig")
	p := launch(t, "--node-spec="+file, "--kubeconfig-out="+out)
	// A restart of the nodes must not need the file any more.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	scenario := func(name string, f func(*testing.T, *program)) {
		t.Run(name, func(t *testing.T) {
			q := *p
			q.t = t
			defer q.clear()
			f(t, &q)
		})
	}
	scenario("nodes are as described", nodesAreAsDescribed)
	scenario("drivers publish and make volumes", driversWork)
	scenario("users may what they should", usersMayWhatTheyShould)
	scenario("oversell fails", oversellFails)
	scenario("a burst admits exactly what fits", burstAdmitsWhatFits)
	scenario("every rule of admission", everyRule)
	scenario("pods that end free capacity", endsFreeCapacity)
	scenario("a resize is granted when there is capacity", resizeWaitsForCapacity)
	scenario("controllers work", controllersWork)
	scenario("the API server dies and comes back", apiServerDies)
	scenario("etcd dies and comes back", etcdDies)
	scenario("the nodes die and come back", nodesDie)
	scenario("a frozen server goes on", frozenServerGoesOn)

	clientOf(t, out)
	pids := p.pids()
	if code := p.terminate(); code != exitOK {
		t.Errorf("exit code after SIGTERM is %d", code)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is left: %v", pid, err)
		}
	}
	for _, path := range []string{p.ready.DataDir, out} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	if code := p.control("status"); code != exitNoCluster {
		t.Errorf("status of a cluster that is gone exits with %d, want %d", code, exitNoCluster)
	}
}

func nodesAreAsDescribed(t *testing.T, p *program) {
	list, err := p.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 3 || p.ready.Nodes != 3 {
		t.Fatalf("%d nodes, ready line says %d, want 3", len(list.Items), p.ready.Nodes)
	}
	node, err := p.client.CoreV1().Nodes().Get(t.Context(), "plain-0001", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// 8Gi less 1Gi reserved, 1Gi of small and 1Gi of large huge pages.
	for name, want := range map[v1.ResourceName]string{"cpu": "3", "memory": "5Gi", "pods": "5", "hugepages-2Mi": "1Gi", "hugepages-1Gi": "1Gi"} {
		if q := node.Status.Allocatable[name]; q.String() != want {
			t.Errorf("allocatable %s is %s, want %s", name, q.String(), want)
		}
	}
	if zone := node.Labels[v1.LabelTopologyZone]; zone != "west" {
		t.Errorf("zone is %q, want west", zone)
	}
	if len(node.Spec.Taints) != 0 {
		t.Errorf("taints %v on a node that is ready", node.Spec.Taints)
	}
}

// A claim gets its volume where a scheduler said, and the volume goes with the
// claim. Nodes own what their drivers publish.
func driversWork(t *testing.T, p *program) {
	csi, err := p.client.StorageV1().CSINodes().Get(t.Context(), "gpu-0000", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d := csi.Spec.Drivers; len(d) != 1 || *d[0].Allocatable.Count != 3 || len(csi.OwnerReferences) != 1 {
		t.Errorf("CSINode: %+v", csi)
	}
	slices, err := p.client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(slices.Items) != 1 || len(slices.Items[0].Spec.Devices) != 2 {
		t.Errorf("slices: %+v", slices.Items)
	}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: "disk.csi.example.com", VolumeBindingMode: &mode}
	if _, err := p.client.StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	claims := p.client.CoreV1().PersistentVolumeClaims("default")
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{"volume.kubernetes.io/selected-node": "gpu-0000"}},
		Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class.Name, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}},
	}
	if _, err := claims.Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var volume string
	eventually(t, "the claim is bound", func() string {
		c, err := claims.Get(t.Context(), "c", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		volume = c.Spec.VolumeName
		if c.Status.Phase != v1.ClaimBound {
			return string(c.Status.Phase)
		}
		return ""
	})
	if err := claims.Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the volume is gone", func() string {
		if _, err := p.client.CoreV1().PersistentVolumes().Get(t.Context(), volume, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprint("still there: ", err)
		}
		return ""
	})
}

func usersMayWhatTheyShould(t *testing.T, p *program) {
	scheduler := clientOf(t, p.ready.SchedulerKubeconfig)
	if _, err := scheduler.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("system:kube-scheduler may not list nodes: %v", err)
	}
	if err := scheduler.CoreV1().Nodes().Delete(t.Context(), "plain-0000", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("system:kube-scheduler deletes a node: %v, want forbidden", err)
	}
	viewer := clientOf(t, p.ready.ViewerKubeconfig)
	if _, err := viewer.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the viewer may not list nodes: %v", err)
	}
	if _, err := viewer.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the viewer lists secrets: %v, want forbidden", err)
	}
}

func oversellFails(t *testing.T, p *program) {
	p.podOn("plain-0000", "first", map[string]string{"cpu": "2"})
	p.wantRunning("first")
	p.podOn("plain-0000", "second", map[string]string{"cpu": "1500m"})
	p.wantRefused("second", "OutOfcpu", "Node didn't have enough resource: cpu, requested: 1500, used: 2000, capacity: 3000")
	p.podOn("plain-0001", "third", map[string]string{"cpu": "1500m"})
	p.wantRunning("third")
	wantEvent(t, p, "second", "OutOfcpu")
}

func wantEvent(t *testing.T, p *program, pod, reason string) {
	t.Helper()
	eventually(t, "event of "+pod, func() string {
		events, err := p.client.CoreV1().Events("default").List(t.Context(),
			metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod + ",reason=" + reason})
		if err != nil {
			return err.Error()
		}
		if len(events.Items) == 0 {
			return "none yet"
		}
		return ""
	})
}

// Twenty pods are bound at the same moment to a node with capacity for three.
func burstAdmitsWhatFits(t *testing.T, p *program) {
	const burst, fit = 20, 3
	for i := range burst {
		if _, err := p.client.CoreV1().Pods("default").Create(t.Context(), testPod(fmt.Sprintf("b%d", i), map[string]string{"cpu": "1"}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range burst {
		wg.Go(func() { p.bind("plain-0000", fmt.Sprintf("b%d", i)) })
	}
	wg.Wait()
	running := 0
	for i := range burst {
		if p.settled(fmt.Sprintf("b%d", i)).Status.Phase == v1.PodRunning {
			running++
		}
	}
	if running != fit {
		t.Errorf("%d pods of one core run on three cores", running)
	}
}

func everyRule(t *testing.T, p *program) {
	p.podOn("plain-0000", "memory", map[string]string{"memory": "6Gi"})
	p.wantRefused("memory", "OutOfmemory", "Node didn't have enough resource: memory, requested: 6442450944, used: 0, capacity: 5368709120")
	p.podOn("plain-0000", "huge", map[string]string{"cpu": "100m", "hugepages-2Mi": "1Gi"})
	p.wantRunning("huge")
	p.podOn("plain-0000", "huge2", map[string]string{"cpu": "100m", "hugepages-2Mi": "2Mi"})
	p.wantRefused("huge2", "OutOfhugepages-2Mi", "Node didn't have enough resource: hugepages-2Mi, requested: 2097152, used: 1073741824, capacity: 1073741824")
	port := func(pod *v1.Pod) {
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	}
	p.podOn("plain-0000", "port", nil, port)
	p.wantRunning("port")
	p.podOn("plain-0000", "port2", nil, port)
	p.wantRefused("port2", "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports")
	p.podOn("plain-0000", "affinity", nil, func(pod *v1.Pod) { pod.Spec.NodeSelector = map[string]string{"topology.kubernetes.io/zone": "west"} })
	p.wantRefused("affinity", "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")
	// The taint eviction controller deletes this pod at once, so only the event
	// is sure to be seen.
	p.podOn("gpu-0000", "taint", nil)
	wantEvent(t, p, "taint", "TaintToleration")
	p.podOn("gpu-0000", "device", map[string]string{"example.com/gpu": "3"}, func(pod *v1.Pod) {
		pod.Spec.Tolerations = []v1.Toleration{{Key: "only", Operator: v1.TolerationOpExists}}
	})
	p.wantRefused("device", "OutOfexample.com/gpu", "Node didn't have enough resource: example.com/gpu, requested: 3, used: 0, capacity: 2")
	for i := range 3 {
		p.podOn("plain-0000", fmt.Sprintf("fill%d", i), nil)
		p.wantRunning(fmt.Sprintf("fill%d", i))
	}
	p.podOn("plain-0000", "one-too-many", nil)
	p.wantRefused("one-too-many", "OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 5, capacity: 5")
}

func endsFreeCapacity(t *testing.T, p *program) {
	p.podOn("plain-0000", "old", map[string]string{"cpu": "3"})
	p.wantRunning("old")
	p.clear()
	p.podOn("plain-0000", "job", map[string]string{"cpu": "3"}, func(pod *v1.Pod) {
		pod.Spec.RestartPolicy = v1.RestartPolicyNever
		pod.Annotations = map[string]string{"kumiki.dev/run-for": "10ms"}
	})
	eventually(t, "the job ends", func() string {
		if phase := p.settled("job").Status.Phase; phase != v1.PodSucceeded {
			return string(phase)
		}
		return ""
	})
	p.podOn("plain-0000", "next", map[string]string{"cpu": "3"})
	p.wantRunning("next")
}

func resizeWaitsForCapacity(t *testing.T, p *program) {
	p.podOn("plain-0000", "grows", map[string]string{"cpu": "1"})
	p.podOn("plain-0000", "other", map[string]string{"cpu": "1"})
	p.wantRunning("other")
	pod := p.settled("grows")
	pod.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("3")
	pods := p.client.CoreV1().Pods("default")
	if _, err := pods.UpdateResize(t.Context(), "grows", pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the resize is deferred", func() string {
		for _, c := range p.settled("grows").Status.Conditions {
			if c.Type == v1.PodResizePending && c.Reason == v1.PodReasonDeferred {
				return ""
			}
		}
		return "no condition says so"
	})
	if err := pods.Delete(t.Context(), "other", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the resize is granted", func() string {
		if q := p.settled("grows").Status.ContainerStatuses[0].AllocatedResources.Cpu(); q.String() != "3" {
			return "it has " + q.String() + " cores"
		}
		return ""
	})
}

// A deployment gets pods, and they go when it goes: replica set controller and
// garbage collector are there.
func controllersWork(t *testing.T, p *program) {
	replicas := int32(2)
	labels := map[string]string{"app": "web"}
	template := testPod("", map[string]string{"cpu": "100m"})
	_, err := p.client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := func(want int) {
		t.Helper()
		eventually(t, "pods of the deployment", func() string {
			pods, err := p.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
			if err != nil {
				return err.Error()
			}
			if len(pods.Items) != want {
				return fmt.Sprintf("%d, want %d", len(pods.Items), want)
			}
			return ""
		})
	}
	count(2)
	if err := p.client.AppsV1().Deployments("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	count(0)
}

// A pod that is bound just before the API server dies runs when it is back,
// and what ran before still counts.
func apiServerDies(t *testing.T, p *program) {
	p.podOn("plain-0000", "before", map[string]string{"cpu": "2"})
	if code := p.control("kill", "apiserver"); code != exitOK {
		t.Fatalf("kill exits with %d", code)
	}
	if code := p.control("kill", "apiserver"); code != exitFailed {
		t.Errorf("killing a dead server exits with %d, want %d", code, exitFailed)
	}
	if code := p.control("restart", "apiserver"); code != exitOK {
		t.Fatalf("restart exits with %d", code)
	}
	p.wantRunning("before")
	p.podOn("plain-0000", "after", map[string]string{"cpu": "2"})
	p.wantRefused("after", "OutOfcpu", "Node didn't have enough resource: cpu, requested: 2000, used: 2000, capacity: 3000")
}

func etcdDies(t *testing.T, p *program) {
	p.podOn("plain-0001", "kept", map[string]string{"cpu": "1"})
	p.wantRunning("kept")
	if code := p.control("kill", "etcd"); code != exitOK {
		t.Fatalf("kill exits with %d", code)
	}
	if code := p.control("restart", "etcd"); code != exitOK {
		t.Fatalf("restart exits with %d", code)
	}
	p.wantRunning("kept")
	p.podOn("plain-0001", "new", map[string]string{"cpu": "1"})
	p.wantRunning("new")
}

func nodesDie(t *testing.T, p *program) {
	p.podOn("plain-0000", "before", map[string]string{"cpu": "2"})
	p.wantRunning("before")
	if code := p.control("kill", "nodes"); code != exitOK {
		t.Fatalf("kill exits with %d", code)
	}
	p.podOn("plain-0000", "meanwhile", map[string]string{"cpu": "1"})
	if code := p.control("restart", "nodes"); code != exitOK {
		t.Fatalf("restart exits with %d", code)
	}
	p.wantRunning("meanwhile")
	p.podOn("plain-0000", "after", map[string]string{"cpu": "1"})
	p.wantRefused("after", "OutOfcpu", "Node didn't have enough resource: cpu, requested: 1000, used: 3000, capacity: 3000")
}

func frozenServerGoesOn(t *testing.T, p *program) {
	if code := p.control("stop", "controllers"); code != exitOK {
		t.Fatalf("stop exits with %d", code)
	}
	if code := p.control("stop", "controllers"); code != exitFailed {
		t.Errorf("stopping a stopped server exits with %d, want %d", code, exitFailed)
	}
	if code := p.control("cont", "controllers"); code != exitOK {
		t.Fatalf("cont exits with %d", code)
	}
	controllersWork(t, p)
}

// Grace periods are honoured with --pod-stages=realistic, and a data directory
// that is kept brings the cluster back as it was, under the same address.
func TestKeptDataDirAndGracePeriods(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	args := []string{"--nodes=2", "--data-dir=" + dir, "--pod-stages=realistic", "--restart-children"}
	var server string
	t.Run("first life", func(t *testing.T) {
		p := launch(t, args...)
		server = p.ready.Server
		p.podOn("node-0000", "slow", map[string]string{"cpu": "1"})
		p.wantRunning("slow")
		grace := int64(3600)
		if err := p.client.CoreV1().Pods("default").Delete(t.Context(), "slow", metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
			t.Fatal(err)
		}
		p.podOn("node-0001", "quick", map[string]string{"cpu": "1"})
		p.wantRunning("quick")
		short := int64(1)
		if err := p.client.CoreV1().Pods("default").Delete(t.Context(), "quick", metav1.DeleteOptions{GracePeriodSeconds: &short}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the short grace period ends", func() string {
			_, err := p.client.CoreV1().Pods("default").Get(t.Context(), "quick", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return ""
			}
			return fmt.Sprintf("still there (%v)", err)
		})
		childrenComeBack(t, p)
		if code := p.terminate(); code != exitOK {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("second life", func(t *testing.T) {
		p := launch(t, args...)
		if p.ready.Server != server {
			t.Errorf("the address moved from %s to %s", server, p.ready.Server)
		}
		pod, err := p.client.CoreV1().Pods("default").Get(t.Context(), "slow", metav1.GetOptions{})
		if err != nil {
			t.Fatalf("the pod with an hour of grace: %v", err)
		}
		if pod.DeletionTimestamp == nil || pod.Status.Phase != v1.PodRunning {
			t.Errorf("the pod with an hour of grace is %s, deletion %v; want it Running and terminating", pod.Status.Phase, pod.DeletionTimestamp)
		}
		second := command(t, args...)
		if err := second.Run(); err == nil || second.ProcessState.ExitCode() != exitFailed {
			t.Errorf("a second cluster in the same directory: %v, want exit code %d", err, exitFailed)
		}
	})
}

// With --restart-children what ends on its own is started again, but what was
// killed by name stays dead.
func childrenComeBack(t *testing.T, p *program) {
	before := p.pids()
	// The order is that of the status: supervisor, etcd, API server, ...
	for _, pid := range before[1:3] {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "etcd and API server come back", func() string {
		if after := p.pids(); after[1] == before[1] || after[2] == before[2] {
			return "not started"
		}
		if _, err := p.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	if code := p.control("kill", "controllers"); code != exitOK {
		t.Fatalf("kill exits with %d", code)
	}
	p.podOn("node-0001", "without-controllers", nil)
	p.wantRunning("without-controllers")
	if pid := p.pids()[3]; pid != before[3] {
		t.Error("a child that was killed by name was started again")
	}
}

// Errors of the user come back at once, with the exit code for them and
// nothing left.
func TestWrongUse(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("shapes: [{name: x, count: 1}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"unknown flag":                         {[]string{"--nodess=1"}, exitUsage},
		"no such spec":                         {[]string{"--node-spec=/does/not/exist"}, exitUsage},
		"incomplete spec":                      {[]string{"--node-spec=" + bad}, exitUsage},
		"unknown stages":                       {[]string{"--pod-stages=slow"}, exitUsage},
		"a controller that is not there":       {[]string{"--controllers-arg=--controllers=route"}, exitUsage},
		"a flag of another controller manager": {[]string{"--controllers-arg=--leader-elect=true"}, exitUsage},
		"negative nodes":                       {[]string{"--nodes=-1"}, exitUsage},
		"unknown role":                         {[]string{"kill", "scheduler"}, exitUsage},
		"no cluster there":                     {[]string{"kill", "etcd", "--data-dir=" + t.TempDir()}, exitNoCluster},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, test.args...)
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.ExitCode() != test.code {
				t.Errorf("exit code %d, want %d; it said: %s", cmd.ProcessState.ExitCode(), test.code, out)
			}
		})
	}
}

// A supervisor that is killed takes its children along, and the next start
// removes the directory it could not.
func TestKilledSupervisorLeavesNoProcess(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	p := launch(t, "--nodes=1")
	pids := p.pids()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.exited
	for _, pid := range pids[1:] {
		eventually(t, fmt.Sprintf("process %d ends", pid), func() string {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				return fmt.Sprintf("it is there (%v)", err)
			}
			return ""
		})
	}
	if _, err := os.Stat(p.ready.DataDir); err != nil {
		t.Fatalf("the directory of the killed supervisor is gone already: %v", err)
	}
	// A start that is stopped before it is ready still sweeps and cleans up.
	cmd := command(t, "--nodes=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the next start sweeps", func() string {
		if _, err := os.Stat(p.ready.DataDir); err == nil {
			return "the old directory is there"
		}
		return ""
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("stopped before it was ready: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(tmp, "kumiki-localcluster-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
