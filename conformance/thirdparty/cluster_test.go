// SPDX-License-Identifier: Apache-2.0

package thirdparty

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// The copy of scheduler-plugins that tools/plugins.sh makes.
const copied = "../../out/plugins/scheduler-plugins/"

// programs are the schedulers: name -> the package of the program. Their names are in those of their profiles.
var programs = map[string]string{"kumiki": "./cmd/kumiki-plugins", "kube-scheduler": "./cmd/kube-scheduler-plugins"}

// definitions are the custom resources of the plugins: manifest in the copy -> group and version.
var definitions = map[string]string{
	"coscheduling":         "scheduling.x-k8s.io/v1alpha1",
	"noderesourcetopology": "topology.node.k8s.io/v1alpha2",
	"appgroup":             "appgroup.diktyo.x-k8s.io/v1alpha1",
	"networktopology":      "networktopology.diktyo.x-k8s.io/v1alpha1",
	"sysched":              "security-profiles-operator.x-k8s.io/v1beta1",
}

// world is a cluster with both schedulers.
type world struct {
	*testing.T
	cluster *testcluster.Cluster
	kubectl string
	client  *kubernetes.Clientset
	dynamic dynamic.Interface
	watcher string // the address of the load watcher
}

// with returns the same cluster for a subtest.
func (w *world) with(t *testing.T) *world {
	out := *w
	out.T = t
	return &out
}

// TestPluginsInBothSchedulers runs all plugins on a local cluster, in one process of each scheduler, and those that
// sort the queue in further ones. kumiki records its process, and the stock kumiki replays the recording and a bundle.
func TestPluginsInBothSchedulers(t *testing.T) {
	w := newWorld(t)
	w.define()
	built := map[string]string{} // scheduler -> its program
	tape := filepath.Join(t.TempDir(), "tape")
	port := freePort(t)
	var kumiki *exec.Cmd
	for name, program := range programs { // order: each is started
		built[name] = w.build(name, program, ".")
		w.fixtures(name)
		args := []string{"--secure-port=0"}
		if name == "kumiki" {
			args = []string{"--bind-address=127.0.0.1", fmt.Sprint("--secure-port=", port), "--record=" + tape}
		}
		started := w.start(name, built[name], w.file("testdata/all.yaml", map[string]string{"NAME": name}), args...)
		if name == "kumiki" {
			kumiki = started
		}
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		t.Run(name, func(t *testing.T) { w.with(t).plugins(name, built[name]) })
	}
	stock := w.build("stock", "./cmd/kumiki", "../..")
	t.Run("bundle", func(t *testing.T) { w.with(t).bundle(stock) })
	t.Run("replay", func(t *testing.T) { w.with(t).replay(stock, kumiki, tape) })
}

// define installs the custom resources of the plugins.
func (w *world) define() {
	w.Helper()
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		w.apply(string(w.read(copied + "manifests/" + name + "/crd.yaml")))
	}
	w.await("the custom resources are served", func() string {
		for _, version := range definitions { // order: all must be served
			if _, err := w.client.Discovery().ServerResourcesForGroupVersion(version); err != nil {
				return err.Error()
			}
		}
		return ""
	})
}

// plugins judges each plugin in one of the schedulers.
func (w *world) plugins(name, program string) {
	for _, plugin := range []struct {
		name  string
		judge func(*world, string)
	}{
		{"coscheduling", (*world).coscheduling}, {"coscheduling-events", (*world).coschedulingEvents},
		{"podstate", (*world).podState}, {"allocatable", (*world).allocatable},
		{"topology", (*world).topology}, {"topology-cache", (*world).topologyCache},
		{"network", (*world).network}, {"syscalls", (*world).syscalls},
		{"load", (*world).load}, {"low-risk", (*world).lowRisk},
	} {
		w.Run(plugin.name, func(t *testing.T) { plugin.judge(w.with(t), name) })
	}
	w.Run("qos", func(t *testing.T) { w.with(t).qos(name, program) })
	w.Run("topological", func(t *testing.T) { w.with(t).topological(name, program) })
}

// newWorld starts a cluster with the nodes of both schedulers, and a load watcher.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t}
	shapes := "shapes:\n- {name: node, count: 3, capacity: {cpu: 8, memory: 16Gi}, labels: {kind: node}}\n"
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		shapes += w.expand("testdata/nodes.yaml", map[string]string{"NAME": name})
	}
	w.cluster = testcluster.Start(t, testcluster.Options{NodeSpec: shapes})
	w.connect()
	served := httptest.NewServer(http.HandlerFunc(loads))
	t.Cleanup(served.Close)
	w.watcher = served.URL
	return w
}

// connect makes a client of the cluster.
func (w *world) connect() {
	w.Helper()
	var err error
	if w.kubectl, err = testcluster.Build(w.Context(), testcluster.Matched, nil); err != nil {
		w.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", w.cluster.Kubeconfig)
	if err != nil {
		w.Fatal(err)
	}
	w.client, w.dynamic = kubernetes.NewForConfigOrDie(cfg), dynamic.NewForConfigOrDie(cfg)
}

// bundle writes the bundle of an incident of the running kumiki with plugins, and replays it without them: as it is,
// and with pseudonyms.
func (w *world) bundle(stock string) {
	dir := w.TempDir()
	name, anonymous := filepath.Join(dir, "now.kumiki"), filepath.Join(dir, "anonymous.kumiki")
	w.command(stock, "incident", "get", "--now", "-f", name, "--kubeconfig", w.cluster.Kubeconfig,
		"--scheduler-lease", "kube-system/kumiki-plugins")
	w.command(stock, "incident", "anonymize", name, "-f", anonymous)
	for _, file := range []string{name, anonymous} {
		if out := w.command(stock, "replay", file); !strings.Contains(out, "the same") {
			w.Errorf("replay of %s: %s", filepath.Base(file), out)
		}
		out := w.command(stock, "incident", "replay", file, "-o", "json")
		var replayed struct{ Decisions, Different, Events int }
		err := json.Unmarshal([]byte(out), &replayed)
		w.Logf("%s: %+v", filepath.Base(file), replayed)
		if err != nil || replayed.Different > 0 || replayed.Decisions < 10 {
			w.Errorf("incident replay of %s: %v, %s", filepath.Base(file), err, out)
		}
	}
}

// replay ends the kumiki with plugins, and replays its recording with the stock one, which has none.
func (w *world) replay(stock string, recorded *exec.Cmd, tape string) {
	if err := recorded.Process.Signal(syscall.SIGTERM); err != nil {
		w.Fatal(err)
	}
	if err := recorded.Wait(); err != nil {
		w.Fatalf("kumiki ended with %v", err)
	}
	text := w.read(tape)
	for _, plugin := range []string{"Coscheduling", "NodeResourceTopologyMatch", "Peaks"} {
		if !bytes.Contains(text, []byte(plugin)) {
			w.Errorf("the recording does not name %s", plugin)
		}
	}
	out := w.command(stock, "replay", tape)
	w.Logf("recording of %d bytes: %s", len(text), out)
	if !strings.Contains(out, "byte for byte") {
		w.Errorf("replay: %s", out)
	}
}

// build builds a program of a module.
func (w *world) build(name, program, module string) string {
	w.Helper()
	binary := filepath.Join(w.TempDir(), name)
	build := exec.CommandContext(w.Context(), "go", "build", "-buildvcs=false", "-o", binary, program)
	build.Dir, build.Env = module, append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		w.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return binary
}

// start runs a scheduler with a configuration file until the test ends.
func (w *world) start(name, binary, file string, args ...string) *exec.Cmd {
	w.Helper()
	log := &bytes.Buffer{}
	run := exec.Command(binary, append([]string{"--config", file, "--v=2"}, args...)...)
	run.Stdout, run.Stderr = log, log
	run.SysProcAttr = testcluster.ChildAttributes(syscall.SIGKILL)
	if err := testcluster.Spawn(run); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
		if w.Failed() {
			text := log.String()
			w.Logf("%s wrote last:\n%s", name, text[max(0, len(text)-6000):])
		}
	})
	return run
}

// command runs a program to its end and returns what it writes to stdout.
func (w *world) command(binary string, args ...string) string {
	w.Helper()
	var out, errs bytes.Buffer
	c := exec.CommandContext(w.Context(), binary, args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		w.Fatalf("%v: %v\n%s%s", args, err, out.String(), errs.String())
	}
	return out.String()
}

// read returns the content of a file.
func (w *world) read(name string) []byte {
	w.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		w.Fatal(err)
	}
	return text
}

// expand returns a file with values for $NAME and its like.
func (w *world) expand(name string, values map[string]string) string {
	w.Helper()
	return os.Expand(string(w.read(name)), func(key string) string {
		value, has := values[key]
		if !has {
			w.Fatalf("%s: no value for %s", name, key)
		}
		return value
	})
}

// file writes a configuration file with values for $NAME and its like.
func (w *world) file(name string, values map[string]string) string {
	w.Helper()
	values["KUBECONFIG"], values["WATCHER"] = w.cluster.Kubeconfig, w.watcher
	file := filepath.Join(w.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(w.expand(name, values)), 0o600); err != nil {
		w.Fatal(err)
	}
	return file
}

// apply applies manifests.
func (w *world) apply(manifests string) {
	w.Helper()
	w.await("manifests are applied", func() string {
		c := exec.CommandContext(w.Context(), w.kubectl, "kubectl", "--kubeconfig", w.cluster.Kubeconfig, "apply", "-f", "-")
		c.Stdin = strings.NewReader(manifests)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
}

const image = "registry.k8s.io/pause:3.10"

// change changes a pod before it is created.
type change func(*v1.Pod)

// on restricts a pod to nodes of a kind.
func on(kind string) change {
	return func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"kind": kind} }
}

// onNode restricts a pod to a node.
func onNode(node string) change {
	return func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{v1.LabelHostname: node} }
}

// bound puts a pod on a node without a scheduler.
func bound(node string) change {
	return func(p *v1.Pod) { p.Spec.SchedulerName, p.Spec.NodeName = "none", node }
}

func labelled(labels map[string]string) change { return func(p *v1.Pod) { p.Labels = labels } }

// requesting makes a pod request an amount of CPU, with a limit, and some memory.
func requesting(cpu, limit string) change {
	return func(p *v1.Pod) {
		memory := resource.MustParse("64Mi")
		p.Spec.Containers[0].Resources = v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: memory},
			Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse(limit), v1.ResourceMemory: memory},
		}
	}
}

// pod creates a pod of a profile.
func (w *world) pod(name, profile string, changes ...change) {
	w.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec = v1.PodSpec{SchedulerName: profile, Containers: []v1.Container{{Name: "main", Image: image}}}
	for _, c := range changes {
		c(p)
	}
	w.create(p)
}

func (w *world) create(p *v1.Pod) {
	w.Helper()
	w.await("pod "+p.Name+" is created", func() string {
		_, err := w.client.CoreV1().Pods("default").Create(w.Context(), p, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err.Error() // the service account may not exist yet
		}
		return ""
	})
}

func (w *world) get(name string) *v1.Pod {
	w.Helper()
	p, err := w.client.CoreV1().Pods("default").Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// conditionOf returns why a pod waits.
func conditionOf(p *v1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled {
			return c.Message
		}
	}
	return ""
}

// runsOn waits until a pod is bound, and fails unless it is bound to a node.
func (w *world) runsOn(pod, node string) {
	w.Helper()
	w.await(pod+" is bound", func() string {
		p := w.get(pod)
		if p.Spec.NodeName == "" {
			return "it is not: " + conditionOf(p)
		}
		return ""
	})
	if got := w.get(pod).Spec.NodeName; got != node {
		w.Errorf("%s is on %s, want %s", pod, got, node)
	}
}

// waits waits until a pod is rejected with a reason.
func (w *world) waits(pod, reason string) {
	w.Helper()
	w.await(pod+" is rejected", func() string {
		p := w.get(pod)
		if p.Spec.NodeName != "" {
			w.Fatalf("%s is bound to %s, want %q", pod, p.Spec.NodeName, reason)
		}
		if message := conditionOf(p); !strings.Contains(message, reason) {
			return "its condition is: " + message
		}
		return ""
	})
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// await asks until nothing is missing, for at most 90 seconds.
func (w *world) await(what string, missing func() string) {
	w.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.Context(), 200*time.Millisecond, 90*time.Second, true,
		func(context.Context) (bool, error) {
			last = missing()
			return last == "", nil
		})
	if err != nil {
		w.Fatalf("%s: %v; last: %s", what, err, last)
	}
}
