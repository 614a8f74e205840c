// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/localcluster/supervise"
)

// mainEnv makes the test binary behave as the program: the supervisor starts
// its children from its own executable, which here is the test.
const mainEnv = "KUMIKI_LOCALCLUSTER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// program is a running instance of the program under test.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	ready  supervise.Ready
	client kubernetes.Interface
	stderr *syncBuffer
	exited chan error
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), mainEnv+"=1", dataDirEnv+"=")
	return cmd
}

// launch starts a cluster and waits until it is ready. Clusters of different
// tests take turns, also with those of the other modules.
func launch(t *testing.T, args ...string) *program {
	t.Helper()
	takeTurn(t)
	p := &program{t: t, cmd: command(t, args...), stderr: &syncBuffer{}, exited: make(chan error, 1)}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the program said:\n%s", p.stderr)
		}
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		<-p.exited
	})
	line := bufio.NewScanner(stdout)
	ok := line.Scan()
	go func() {
		p.exited <- p.cmd.Wait()
		close(p.exited)
	}()
	if !ok {
		t.Fatalf("no ready line")
	}
	if err := json.Unmarshal(line.Bytes(), &p.ready); err != nil {
		t.Fatalf("ready line %q: %v", line.Bytes(), err)
	}
	p.client = clientOf(t, p.ready.Kubeconfig)
	return p
}

// lockDir is where all modules' tests look for the lock; a test may point
// os.TempDir elsewhere.
var lockDir = os.TempDir()

// takeTurn takes one of the locks of internal/testcluster, of which this module knows no more than the names.
func takeTurn(t *testing.T) {
	t.Helper()
	limit, _ := strconv.Atoi(os.Getenv("KUMIKI_TEST_CLUSTERS"))
	for ; ; time.Sleep(100 * time.Millisecond) {
		for i := range max(limit, 1) {
			number := ""
			if i > 0 {
				number = "-" + strconv.Itoa(i+1)
			}
			path := filepath.Join(lockDir, fmt.Sprintf("kumiki-testcluster-%d%s.lock", os.Getuid(), number))
			f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
			if err != nil {
				t.Fatal(err)
			}
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			if err == nil {
				t.Cleanup(func() { f.Close() })
				return
			}
			f.Close()
			if err != syscall.EWOULDBLOCK {
				t.Fatal(err)
			}
		}
	}
}

func clientOf(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// control runs a sub-command against the cluster and returns its exit code.
func (p *program) control(args ...string) int {
	p.t.Helper()
	cmd := command(p.t, append(args, "--data-dir="+p.ready.DataDir)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("%v: %v", args, err)
	}
	p.t.Logf("%s: %s", strings.Join(args, " "), bytes.TrimSpace(out))
	return cmd.ProcessState.ExitCode()
}

func (p *program) pids() []int {
	p.t.Helper()
	reply, err := supervise.Call(p.ready.DataDir, supervise.Status, "")
	if err != nil {
		p.t.Fatal(err)
	}
	pids := []int{reply.PID}
	for _, c := range reply.Children {
		pids = append(pids, c.PID)
	}
	return pids
}

// terminate sends SIGTERM and gives the exit code.
func (p *program) terminate() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	<-p.exited
	return p.cmd.ProcessState.ExitCode()
}

// podOn makes a pod that asks for the given resources and is bound to node by
// hand, through the binding subresource as a scheduler does it.
func (p *program) podOn(node, name string, requests map[string]string, edit ...func(*v1.Pod)) {
	p.t.Helper()
	pod := testPod(name, requests)
	for _, e := range edit {
		e(pod)
	}
	pods := p.client.CoreV1().Pods(metav1.NamespaceDefault)
	if _, err := pods.Create(p.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	p.bind(node, name)
}

func (p *program) bind(node, name string) {
	p.t.Helper()
	err := p.client.CoreV1().Pods(metav1.NamespaceDefault).Bind(p.t.Context(), &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
}

func testPod(name string, requests map[string]string) *v1.Pod {
	list := v1.ResourceList{}
	limits := v1.ResourceList{}
	for k, q := range requests {
		list[v1.ResourceName(k)] = resource.MustParse(q)
		// Huge pages and extended resources cannot be overcommitted.
		if k != "cpu" && k != "memory" && k != "ephemeral-storage" {
			limits[v1.ResourceName(k)] = resource.MustParse(q)
		}
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: v1.PodSpec{
			SchedulerName: "by-hand",
			Containers: []v1.Container{{
				Name: "c", Image: "none", Resources: v1.ResourceRequirements{Requests: list, Limits: limits},
			}},
		},
	}
}

// patience is how long a test waits for something that must happen. It is an
// upper bound for a loaded machine, not a measurement.
const patience = time.Minute

// eventually waits until check returns "".
func eventually(t *testing.T, what string, check func() string) {
	t.Helper()
	within(t, patience, what, check)
}

// within waits until check returns "", but no longer than an upper bound.
func within(t *testing.T, bound time.Duration, what string, check func() string) {
	t.Helper()
	deadline := time.Now().Add(bound)
	for {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, problem)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// settled waits until the kubelet has decided about the pod and returns it.
func (p *program) settled(name string) *v1.Pod {
	p.t.Helper()
	var pod *v1.Pod
	eventually(p.t, "pod "+name, func() string {
		var err error
		pod, err = p.client.CoreV1().Pods(metav1.NamespaceDefault).Get(p.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if pod.Status.Phase == v1.PodPending {
			return "is Pending"
		}
		return ""
	})
	return pod
}

func (p *program) wantRunning(name string) {
	p.t.Helper()
	if s := p.settled(name).Status; s.Phase != v1.PodRunning || s.PodIP == "" || s.StartTime == nil {
		p.t.Errorf("pod %s is %s (%s: %s), want Running with an address", name, s.Phase, s.Reason, s.Message)
	}
}

func (p *program) wantRefused(name, reason, message string) {
	p.t.Helper()
	s := p.settled(name).Status
	if s.Phase != v1.PodFailed || s.Reason != reason || s.Message != "Pod was rejected: "+message {
		p.t.Errorf("pod %s is %s (%s: %s), want Failed with %s: %s", name, s.Phase, s.Reason, s.Message, reason, message)
	}
}

// clear deletes all pods and waits until they are gone.
func (p *program) clear() {
	p.t.Helper()
	pods := p.client.CoreV1().Pods(metav1.NamespaceDefault)
	if err := pods.DeleteCollection(p.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, "pods go", func() string {
		list, err := pods.List(p.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if len(list.Items) > 0 {
			return fmt.Sprintf("%d are left", len(list.Items))
		}
		return ""
	})
}
